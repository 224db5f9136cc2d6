//! The result of a run.

use crate::optimizers::{Optimizer, Portfolio};
use crate::outcome::Outcome;
use crate::session::{Evaluation, History, Session, StopReason};
use crate::space::Point;
use std::fmt;
use std::time::Duration;

/// The result of a run: the best point, what it cost, and why the run stopped.
pub struct Solution {
    pub(super) session: Session,
    pub(super) stop: StopReason,
    pub(super) elapsed: Duration,
    pub(super) trials: Vec<KeptTrial>,
}

/// See [`Evaluation`].
pub(super) struct KeptTrial {
    trial: u64,
    point: Box<[f64]>,
    outcome: Outcome,
    improved: bool,
}

impl KeptTrial {
    pub(super) fn of(evaluation: &Evaluation<'_>) -> Self {
        KeptTrial {
            trial: evaluation.trial,
            point: evaluation.point.coordinates().into(),
            outcome: evaluation.outcome.clone(),
            improved: evaluation.improved,
        }
    }
}

impl Solution {
    /// The best value, `None` if no evaluation gave one. Where the objective is known to be noisy, a
    /// mean: see [`Solution::best_evaluations`].
    pub fn value(&self) -> Option<f64> {
        self.session.value()
    }

    /// The best point; the least infeasible one if none is feasible, and `None` if all evaluations
    /// failed.
    pub fn point(&self) -> Option<Point<'_>> {
        self.session.point()
    }

    /// The number of evaluations that the best value is the mean of: 1, unless the objective is known
    /// to be noisy and the point was evaluated again; 0 if there is no best.
    pub fn best_evaluations(&self) -> u64 {
        self.session.best_evaluations()
    }

    /// The number of evaluations.
    pub fn evaluations(&self) -> u64 {
        self.session.counts().evaluations
    }

    /// How many evaluations failed.
    pub fn failures(&self) -> u64 {
        self.session.counts().failures
    }

    /// How many evaluations were of infeasible points.
    pub fn infeasible(&self) -> u64 {
        self.session.counts().infeasible
    }

    /// The first failure: where it happened, and why.
    pub fn first_error(&self) -> Option<&str> {
        self.session.first_error()
    }

    /// Whether there were evaluations and all of them failed.
    pub fn is_all_failed(&self) -> bool {
        self.evaluations() > 0 && self.failures() == self.evaluations()
    }

    /// How the best value improved.
    pub fn history(&self) -> &History {
        self.session.history()
    }

    /// The evaluations in the order in which the algorithm learned of them; none unless the run was told to
    /// [keep them](super::Run::keep_trials).
    pub fn trials(&self) -> impl ExactSizeIterator<Item = Evaluation<'_>> {
        let space = self.session.space();
        self.trials.iter().map(move |kept| Evaluation {
            trial: kept.trial,
            point: space.view(&kept.point),
            outcome: &kept.outcome,
            improved: kept.improved,
        })
    }

    /// Why the run stopped.
    pub fn stop(&self) -> StopReason {
        self.stop
    }

    /// How long the run took.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// What a portfolio of algorithms did, and why; `None` for a single algorithm.
    pub fn portfolio(&self) -> Option<Portfolio> {
        self.session.portfolio()
    }

    /// The optimizer as the run left it, to save, to use in a loop of your own, or for
    /// [`Run::optimizer`](super::Run::optimizer).
    pub fn optimizer(&self) -> &dyn Optimizer {
        self.session.optimizer()
    }

    /// The optimizer, owned.
    pub fn into_optimizer(self) -> Box<dyn Optimizer> {
        self.session.into_optimizer()
    }
}

impl fmt::Display for Solution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.value(), self.point()) {
            (Some(value), Some(point)) => writeln!(f, "best value {value} at {point}")?,
            (None, Some(point)) => writeln!(f, "no feasible point; least infeasible: {point}")?,
            _ if self.is_all_failed() => writeln!(f, "every evaluation failed")?,
            _ => writeln!(f, "nothing was evaluated")?,
        }
        let (evaluations, stop) = (self.evaluations(), self.stop);
        write!(f, "{evaluations} evaluations in {:.2?}; {stop}", self.elapsed)?;
        if let Some(error) = self.first_error() {
            write!(f, "\n{} failed, first: {error}", self.failures())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Solution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Solution({self})")
    }
}
