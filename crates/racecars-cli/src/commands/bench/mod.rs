//! `racecars bench`: compare algorithms on test problems.

mod suite;

use super::{Tuning, algorithm_help, at_least_one, cores};
use crate::interrupt::{INTERRUPTED, on_interrupt};
use crate::output::{print, print_json, short, table};
use crate::progress::ProgressDisplay;
use clap::Args;
use racecars::{Algorithm, Budget};
use racecars_lab::bench::{BenchCell, BenchResult};
use serde::Serialize;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use suite::{SuiteArguments, SuiteSelection};

/// Compare algorithms on test problems, with trials in parallel on all cores
///
/// Every combination of problem, dimension, budget and algorithm is run with seeds S, S+1, ... The same
/// command gives the same values on any number of cores. `overhead us` is the optimizer's own time per
/// evaluation in microseconds, without the objective.
#[derive(Args)]
pub(crate) struct BenchCommand {
    /// The problems (see `racecars problem`)
    #[arg(long, value_name = "P,..", value_delimiter = ',', required_unless_present = "suite")]
    problem: Vec<String>,
    /// The dimensions
    #[arg(long, alias = "dims", value_name = "N,..", value_delimiter = ',',
        required_unless_present = "suite", value_parser = at_least_one)]
    dim: Vec<usize>,
    /// The evaluations of a trial, as a number or per dimension [default: 100n; a suite: 10n,30n,100n,300n]
    #[arg(long, alias = "budgets", value_name = "T|30n,..", value_delimiter = ',')]
    budget: Vec<Budget>,
    #[arg(long, alias = "algorithms", value_name = "A,..", value_delimiter = ',',
        help = algorithm_help("The algorithms [default: auto; a suite: all that learn]"))]
    algorithm: Vec<Algorithm>,
    #[command(flatten)]
    tuning: Tuning,
    /// The number of trials of each combination [default: 5; a suite: 10]
    #[arg(long, alias = "seeds", value_name = "K", value_parser = at_least_one)]
    trials: Option<usize>,
    /// The seed of the first trial and of the problems' random parts
    #[arg(long, value_name = "S", default_value = "0")]
    seed: u64,
    /// Add normal noise with this standard deviation to every value. The values shown are then those without
    /// noise at the recommended points
    #[arg(long, value_name = "SD", default_value = "0", hide_default_value = true,
        allow_negative_numbers = true, conflicts_with = "suite", value_parser = deviation)]
    noise: f64,
    /// Ask for this many points ahead of the outcomes told, as --deterministic studies and several jobs
    /// do: what that costs in quality
    #[arg(long, value_name = "L,..", value_delimiter = ',', default_value = "1",
        hide_default_value = true, conflicts_with = "suite", value_parser = at_least_one)]
    lookahead: Vec<usize>,
    /// The number of parallel trials [default: the number of cores]
    #[arg(long, value_name = "J", value_parser = at_least_one)]
    jobs: Option<usize>,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    suite: SuiteArguments,
}

#[derive(Serialize)]
struct BenchReport {
    results: Vec<BenchResult>,
}

impl BenchCommand {
    pub(crate) fn run(mut self) -> anyhow::Result<ExitCode> {
        if self.suite.suite.is_some() {
            let narrowed = SuiteSelection {
                functions: self.problem,
                dims: self.dim,
                budgets: self.budget,
                singles: self.algorithm,
                seeds: self.trials,
                seed: self.seed,
            };
            return self.suite.run(narrowed, self.jobs, self.json);
        }
        if self.algorithm.is_empty() {
            self.algorithm.push(self.tuning.algorithm(None)?);
        }
        if self.budget.is_empty() {
            self.budget.push(Budget::PerDimension(100.0));
        }
        self.tuning.apply(&mut self.algorithm)?;
        let bench = racecars_lab::bench::Bench {
            cells: self.cells(),
            trials: self.trials.unwrap_or(5),
            seed: self.seed,
            noise: self.noise,
        };
        let cancel = on_interrupt()?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(cores(self.jobs)).build()?;
        let progress = ProgressDisplay::new(bench.len() as u64);
        let done = AtomicU64::new(0);
        let results = pool.install(|| {
            bench.run(&cancel, |cell| {
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                progress.show(done, || format!("trials, {} n={}", cell.problem, cell.dim));
            })
        })?;
        drop(progress);
        if self.json {
            print_json(&BenchReport { results })?;
        } else {
            show(&results)?;
        }
        Ok(if cancel.is_cancelled() { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
    }

    fn cells(&self) -> Vec<BenchCell> {
        let mut cells = Vec::new();
        for problem in &self.problem {
            for &dim in &self.dim {
                for budget in &self.budget {
                    for algorithm in &self.algorithm {
                        cells.extend(self.lookahead.iter().map(|&lookahead| BenchCell {
                            problem: problem.clone(),
                            dim,
                            budget: budget.evaluations(dim),
                            algorithm: algorithm.clone(),
                            lookahead,
                        }));
                    }
                }
            }
        }
        cells
    }
}

/// Parses a standard deviation.
fn deviation(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "not a finite number of at least 0".to_string())
}

fn show(results: &[BenchResult]) -> anyhow::Result<()> {
    let headings = [
        "problem",
        "algorithm",
        "dim",
        "budget",
        "ahead",
        "trials",
        "mean",
        "std",
        "median",
        "min",
        "max",
        "seconds",
        "overhead us",
    ];
    let mut table = table(&headings, 2);
    for result in results {
        let summary = &result.summary;
        table.add_row([
            result.problem.clone(),
            result.algorithm.clone(),
            result.dim.to_string(),
            result.budget.to_string(),
            result.lookahead.to_string(),
            result.trials.to_string(),
            short(summary.mean),
            short(summary.std),
            short(summary.median),
            short(summary.min),
            short(summary.max),
            short(result.seconds),
            short(result.overhead_us),
        ]);
    }
    print(table)
}
