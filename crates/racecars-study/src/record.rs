//! What is known of a study: counts, the best trial, the leading points.

use crate::journal::{Repeat, Tell};
use crate::noise::{Leaders, Recommended};
use crate::outcome::{Direction, Outcome};
use crate::plan::{Aggregate, Plan};
use racecars::Rank;

/// The best trial so far.
#[derive(Debug, Clone, PartialEq)]
pub struct BestTrial {
    /// The trial.
    pub trial: u64,
    /// Its outcome: a value, or infeasible while nothing feasible is known.
    pub outcome: Outcome,
    /// The encoded point.
    pub point: Vec<f64>,
    rank: Rank,
}

/// Counts over all runs of a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Points proposed.
    pub asked: u64,
    /// Outcomes in the journal.
    pub told: u64,
    /// Failed evaluations among them.
    pub failures: u64,
    /// Infeasible points among them.
    pub infeasible: u64,
    /// Runs of the program beyond the first of each evaluation, because it failed.
    pub retries: u64,
    /// Evaluations of leading points.
    pub repeats: u64,
    /// The number of outcomes when the best came in.
    pub best_at: u64,
}

/// The record of a study.
#[derive(Debug)]
pub(crate) struct Record {
    direction: Direction,
    aggregate: Aggregate,
    repeat: u32,
    pub(crate) counts: Totals,
    pub(crate) best: Option<BestTrial>,
    pub(crate) leaders: Leaders,
}

impl Record {
    pub(crate) fn new(plan: &Plan) -> Record {
        Record {
            direction: plan.direction,
            aggregate: plan.aggregate,
            repeat: plan.repeat,
            counts: Totals::default(),
            best: None,
            leaders: Leaders::new(plan.direction, plan.leaders),
        }
    }

    /// Enters the outcome of the trial at `point`.
    pub(crate) fn enter(&mut self, tell: &Tell, point: &[f64]) {
        let counts = &mut self.counts;
        counts.told += 1;
        match &tell.outcome {
            Outcome::Failed(_) => counts.failures += 1,
            outcome => match outcome.value() {
                Some(value) => self.leaders.enter(tell.trial, value, point),
                None => counts.infeasible += 1,
            },
        }
        counts.retries += u64::from(tell.attempts.saturating_sub(self.repeat));
        let rank = tell.outcome.rank_in(self.direction);
        // Of equals the earlier is best, whichever ended first.
        let is_best =
            self.best.as_ref().is_none_or(|best| (rank, tell.trial) < (best.rank, best.trial));
        if is_best && !rank.is_failure() {
            counts.best_at = counts.told;
            let (trial, outcome) = (tell.trial, tell.outcome.clone());
            self.best = Some(BestTrial { trial, outcome, point: point.to_vec(), rank });
        }
    }

    /// Enters a fresh value of a leading point.
    pub(crate) fn enter_repeat(&mut self, repeat: &Repeat) {
        self.counts.repeats += 1;
        self.leaders.enter_fresh(repeat.trial, repeat.number, repeat.value);
    }

    /// The leading point that is best by fresh values.
    pub(crate) fn recommended(&self) -> Option<Recommended> {
        self.leaders.recommended(self.aggregate)
    }
}
