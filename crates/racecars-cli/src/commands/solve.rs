//! `racecars solve`: minimize a test problem.

use super::{Tuning, algorithm_help, at_least_one};
use crate::interrupt::{INTERRUPTED, on_interrupt};
use crate::output::{portfolio_table, print, print_json, short};
use crate::plot;
use crate::progress::ProgressDisplay;
use clap::Args;
use racecars::{
    Algorithm, Budget, Flow, Point, Portfolio, Solution, StopReason, Workers, minimize,
};
use racecars_problems::Problem;
use serde::Serialize;
use std::process::ExitCode;

/// Minimize a test problem and plot the progress
///
/// Problems on [-10,10]^n: ackley, levy, rastrigin, sphere, rosenbrock, griewank, schwefel, ellipsoid. They
/// take the prefixes discontinuous- or stepped-, then shifted-, then rotated- or turned-. Others:
/// mixed-ackley, shifted-mixed-ackley, integer-sphere, mixed-categorical.
#[derive(Args)]
pub(crate) struct SolveCommand {
    /// The problem's name
    problem: String,
    /// The number of coordinates
    #[arg(long, value_name = "N", default_value = "100", value_parser = at_least_one)]
    dim: usize,
    /// The number of evaluations, as a number or per dimension
    #[arg(long, value_name = "T|30n", default_value = "100n")]
    budget: Budget,
    #[arg(long, value_name = "A", help = algorithm_help("The algorithm [default: auto]"))]
    algorithm: Option<Algorithm>,
    #[command(flatten)]
    tuning: Tuning,
    /// The seed of the run and of the problem's random parts
    #[arg(long, value_name = "S", default_value = "0")]
    seed: u64,
    /// The number of parallel evaluations
    #[arg(long, value_name = "J", default_value = "1", value_parser = at_least_one)]
    jobs: usize,
    /// With several jobs: tell outcomes in the order of the asks, so that the same seed gives the same run
    /// on any number of jobs
    #[arg(long)]
    deterministic: bool,
    /// Stop when a value is at most this
    #[arg(long, value_name = "V", allow_negative_numbers = true)]
    target: Option<f64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct SolveReport<'a> {
    problem: &'a str,
    dim: usize,
    algorithm: &'a str,
    seed: u64,
    budget: u64,
    best: Option<f64>,
    optimum: f64,
    evaluations: u64,
    failures: u64,
    seconds: f64,
    stop: &'a str,
    history: &'a [(u64, f64)],
    point: Option<Point<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    portfolio: Option<Portfolio>,
}

impl SolveCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let algorithm = self.tuning.algorithm(self.algorithm.clone())?;
        let problem = Problem::named(&self.problem, self.dim, self.seed)?;
        let budget = self.budget.evaluations(self.dim);
        let cancel = on_interrupt()?;
        let progress = ProgressDisplay::new(budget);
        let mut run = minimize(problem.space())
            .algorithm(algorithm)
            .budget(budget)
            .seed(self.seed)
            .cancel(&cancel)
            .observe(|seen| {
                progress.show(seen.evaluations, || {
                    seen.best.map_or("no value yet".into(), |best| format!("best {}", short(best)))
                });
                Flow::Continue
            });
        if let Some(target) = self.target {
            run = run.target(target);
        }
        let objective = |point: Point<'_>| problem.evaluate(point);
        let solution = match (self.jobs, self.deterministic) {
            (jobs, true) => run.run_on(Workers::deterministic(jobs), objective)?,
            (1, false) => run.run(objective)?,
            (jobs, false) => run.run_on(Workers::Asynchronous(jobs), objective)?,
        };
        drop(progress);
        if self.json {
            print_json(&self.report(&solution, problem.optimum(), budget))?;
        } else {
            self.show(&solution)?;
        }
        Ok(match solution.stop() {
            StopReason::Interrupted => ExitCode::from(INTERRUPTED),
            _ => ExitCode::SUCCESS,
        })
    }

    fn report<'a>(&'a self, solution: &'a Solution, optimum: f64, budget: u64) -> SolveReport<'a> {
        SolveReport {
            problem: &self.problem,
            dim: self.dim,
            algorithm: solution.optimizer().name(),
            seed: self.seed,
            budget,
            best: solution.value(),
            optimum,
            evaluations: solution.evaluations(),
            failures: solution.failures(),
            seconds: solution.elapsed().as_secs_f64(),
            stop: solution.stop().name(),
            history: solution.history().improvements(),
            point: solution.point(),
            portfolio: solution.portfolio(),
        }
    }

    fn show(&self, solution: &Solution) -> anyhow::Result<()> {
        let evaluations = solution.evaluations();
        if let Some(plot) = plot::convergence(solution.history().improvements(), evaluations) {
            print(format!("{plot}\n"))?;
        }
        let seconds = solution.elapsed().as_secs_f64();
        let rate = evaluations as f64 / seconds.max(1e-9);
        let best = solution.value().map_or("none".to_string(), |value| format!("{value}"));
        print(format!("best value   {best}"))?;
        if let Some(point) = solution.point() {
            print(format!("at           {point}"))?;
        }
        print(format!("evaluations  {evaluations}"))?;
        print(format!("time         {seconds:.3} s ({} per second)", short(rate)))?;
        if let Some(portfolio) = solution.portfolio() {
            print(portfolio_table(&portfolio))?;
        }
        if let Some(error) = solution.first_error() {
            print(format!("failures     {}, first: {error}", solution.failures()))?;
        }
        print(format!("stopped      {}", solution.stop()))
    }
}
