//! Trials of algorithms on problems, in parallel on all cores.

use racecars::random::Random;
use racecars::{Algorithm, Cancel, Point, StopReason, Workers, minimize};
use racecars_figures::statistics::SummaryStatistics;
use racecars_problems::{Problem, ProblemError};
use rayon::prelude::*;
use serde::Serialize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One row of a comparison: an algorithm on a problem.
#[derive(Debug, Clone)]
pub struct BenchCell {
    /// The problem's name.
    pub problem: String,
    /// Its dimension.
    pub dim: usize,
    /// The evaluations of each trial.
    pub budget: u64,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// How many points are asked ahead of the outcomes told, as in a deterministic run; 1 for none.
    pub lookahead: usize,
}

/// A comparison: cells, and the number of trials of each.
#[derive(Debug, Clone)]
pub struct Bench {
    /// The cells.
    pub cells: Vec<BenchCell>,
    /// How many trials each cell has.
    pub trials: usize,
    /// Trial `i` has seed `seed + i`; the random parts of a problem (shift, rotation) have `seed`.
    pub seed: u64,
    /// The standard deviation of normal noise added to every value. A trial is then scored by the value
    /// without noise at its recommended point, since the best noisy value is a lucky one.
    pub noise: f64,
}

/// The results of a cell's trials. The times are of single trials on one core each.
#[derive(Debug, Clone, Serialize)]
pub struct BenchResult {
    /// The problem's name.
    pub problem: String,
    /// Its dimension.
    pub dim: usize,
    /// The evaluations of each trial.
    pub budget: u64,
    /// The algorithm's name.
    pub algorithm: String,
    /// How many points were asked ahead of the outcomes told.
    pub lookahead: usize,
    /// The number of finished trials, which all other fields are computed from.
    pub trials: usize,
    /// Statistics of the trials' best values.
    #[serde(flatten)]
    pub summary: SummaryStatistics,
    /// The evaluations of all trials together.
    pub evaluations: u64,
    /// The mean time of a trial in seconds.
    pub seconds: f64,
    /// The optimizer's time per evaluation in microseconds, without the objective's.
    pub overhead_us: f64,
    /// The best value of each trial, in the order of the seeds.
    pub finals: Vec<f64>,
}

#[derive(Clone, Copy)]
struct BenchTrial {
    best: f64,
    evaluations: u64,
    elapsed: Duration,
    in_objective: Duration,
}

impl Bench {
    /// The total number of trials.
    pub fn len(&self) -> usize {
        self.cells.len() * self.trials
    }

    /// Whether there are no trials.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Runs all trials on `rayon`'s current threads. `finished` is called after each trial, from any
    /// thread. When `cancel` is cancelled, the results are those of the finished trials.
    pub fn run(
        &self,
        cancel: &Cancel,
        finished: impl Fn(&BenchCell) + Sync,
    ) -> Result<Vec<BenchResult>, BenchError> {
        let problems: Vec<Problem> = (self.cells.iter())
            .map(|cell| Problem::named(&cell.problem, cell.dim, self.seed))
            .collect::<Result<_, _>>()?;
        for (cell, problem) in self.cells.iter().zip(&problems) {
            cell.algorithm.optimizer(problem.space(), Some(cell.budget), 0)?;
        }
        let clock = clock_cost();
        let trials: Vec<Option<BenchTrial>> = (0..self.len())
            .into_par_iter()
            .with_max_len(1)
            .map(|job| {
                let (place, trial) = (job / self.trials, job % self.trials);
                let cell = &self.cells[place];
                let seed = self.seed.wrapping_add(trial as u64);
                let trial = run_trial(cell, &problems[place], self.noise, seed, cancel)?;
                finished(cell);
                Ok(trial)
            })
            .collect::<Result<_, racecars::Error>>()?;
        let of_cells = self.cells.iter().zip(trials.chunks(self.trials.max(1)));
        Ok(of_cells.filter_map(|(cell, trials)| BenchResult::of(cell, trials, clock)).collect())
    }
}

/// Why a comparison cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// An unknown problem.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// An invalid setting, or a space that an algorithm does not support.
    #[error(transparent)]
    Optimizer(#[from] racecars::Error),
}

/// One trial; `None` if it was cancelled.
fn run_trial(
    cell: &BenchCell,
    problem: &Problem,
    noise: f64,
    seed: u64,
    cancel: &Cancel,
) -> Result<Option<BenchTrial>, racecars::Error> {
    let mut in_objective = Duration::ZERO;
    let mut random = Random::stream(seed, 0x6e6f6973);
    let run = minimize(problem.space())
        .algorithm(cell.algorithm.clone())
        .budget(cell.budget)
        .seed(seed)
        .cancel(cancel);
    let mut evaluate = |point: Point<'_>| {
        let start = Instant::now();
        let mut value = problem.evaluate(point);
        if noise > 0.0 {
            value += noise * random.normal();
        }
        in_objective += start.elapsed();
        value
    };
    let solution = if cell.lookahead == 1 {
        run.run(evaluate)?
    } else {
        // A single thread evaluates in the order asked.
        let workers = Workers::Deterministic { threads: 1, lookahead: cell.lookahead };
        let evaluate = Mutex::new(&mut evaluate);
        run.run_on(workers, |point| {
            let mut evaluate = evaluate.lock().unwrap_or_else(PoisonError::into_inner);
            (*evaluate)(point)
        })?
    };
    let best = solution.point().map_or(f64::INFINITY, |point| problem.evaluate(point));
    Ok((solution.stop() != StopReason::Interrupted).then(|| BenchTrial {
        best,
        evaluations: solution.evaluations(),
        elapsed: solution.elapsed(),
        in_objective,
    }))
}

impl BenchResult {
    fn of(cell: &BenchCell, trials: &[Option<BenchTrial>], clock: f64) -> Option<BenchResult> {
        let done: Vec<BenchTrial> = trials.iter().copied().flatten().collect();
        let finals: Vec<f64> = done.iter().map(|trial| trial.best).collect();
        let summary = SummaryStatistics::of(&finals)?;
        let evaluations: u64 = done.iter().map(|trial| trial.evaluations).sum();
        let total = |part: fn(&BenchTrial) -> Duration| -> f64 {
            done.iter().map(|trial| part(trial).as_secs_f64()).sum()
        };
        let outside = total(|trial| trial.elapsed.saturating_sub(trial.in_objective));
        Some(BenchResult {
            problem: cell.problem.clone(),
            dim: cell.dim,
            budget: cell.budget,
            algorithm: cell.algorithm.to_string(),
            lookahead: cell.lookahead,
            trials: done.len(),
            summary,
            evaluations,
            seconds: total(|trial| trial.elapsed) / done.len() as f64,
            overhead_us: (1e6 * (outside / evaluations as f64 - clock)).max(0.0),
            finals,
        })
    }
}

/// The time in seconds that reading the clock before and after an evaluation adds to the optimizer's time.
fn clock_cost() -> f64 {
    const READINGS: u32 = 20_000;
    let start = Instant::now();
    let mut inside = Duration::ZERO;
    for _ in 0..READINGS {
        let reading = Instant::now();
        inside += reading.elapsed();
    }
    start.elapsed().saturating_sub(inside).as_secs_f64() / f64::from(READINGS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench() -> Bench {
        let cell = |algorithm: &str| BenchCell {
            problem: "shifted-sphere".into(),
            dim: 10,
            budget: 300,
            algorithm: algorithm.parse().unwrap(),
            lookahead: 1,
        };
        Bench { cells: vec![cell("race-cars"), cell("random")], trials: 4, seed: 5, noise: 0.0 }
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let results = pool.install(|| bench().run(&Cancel::new(), |_| {})).unwrap();
            results.into_iter().map(|result| result.finals).collect::<Vec<_>>()
        };
        let finals = on(1);
        assert_eq!(finals, on(3));
        assert!(finals[0].iter().zip(&finals[1]).all(|(ours, random)| ours < random));
        assert_eq!(finals[0].len(), 4);
    }

    #[test]
    fn a_cancelled_comparison_gives_what_is_done() {
        let cancel = Cancel::new();
        cancel.cancel();
        assert!(bench().run(&cancel, |_| {}).unwrap().is_empty());
    }

    #[test]
    fn unknown_problems_are_refused_before_anything_runs() {
        let mut bench = bench();
        bench.cells[1].problem = "nothing".into();
        assert!(bench.run(&Cancel::new(), |_| panic!("ran")).is_err());
    }
}
