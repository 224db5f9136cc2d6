//! What comes out of a run.

use super::Direction;
use super::history::History;
use super::stop::StopReason;
use super::tracker::Tracker;
use crate::optimizers::{Optimizer, Portfolio};
use crate::space::Point;
use std::fmt;
use std::time::Duration;

/// The result of a run: the best point, what it cost, and why the run stopped.
pub struct Solution {
    direction: Direction,
    optimizer: Box<dyn Optimizer>,
    evaluations: u64,
    failures: u64,
    infeasible: u64,
    first_error: Option<String>,
    history: History,
    stop: StopReason,
    elapsed: Duration,
}

impl Solution {
    pub(super) fn new(
        direction: Direction,
        optimizer: Box<dyn Optimizer>,
        tracker: Tracker<'_>,
    ) -> Self {
        Solution {
            direction,
            optimizer,
            elapsed: tracker.elapsed(),
            evaluations: tracker.evaluations,
            failures: tracker.failures,
            infeasible: tracker.infeasible,
            first_error: tracker.first_error,
            history: tracker.history,
            // A run ends by not handing out another candidate, which sets the reason.
            stop: tracker.reason.unwrap_or(StopReason::Evaluations),
        }
    }

    /// The best value, `None` if no evaluation gave one.
    pub fn value(&self) -> Option<f64> {
        let value = self.optimizer.best()?.rank.value()?;
        Some(self.direction.turn(value))
    }

    /// The best point; the least infeasible one if none is feasible, and `None` if all evaluations
    /// failed.
    pub fn point(&self) -> Option<Point<'_>> {
        self.optimizer.best_point()
    }

    /// The evaluations done.
    pub fn evaluations(&self) -> u64 {
        self.evaluations
    }

    /// How many evaluations failed or timed out.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// How many evaluations were of infeasible points.
    pub fn infeasible(&self) -> u64 {
        self.infeasible
    }

    /// The first failure: where it happened, and why.
    pub fn first_error(&self) -> Option<&str> {
        self.first_error.as_deref()
    }

    /// Whether there were evaluations and all of them failed.
    pub fn is_all_failed(&self) -> bool {
        self.evaluations > 0 && self.failures == self.evaluations
    }

    /// How the best value improved.
    pub fn history(&self) -> &History {
        &self.history
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
        Some(self.optimizer.portfolio()?.map_values(|best| self.direction.turn(best)))
    }

    /// The optimizer as the run left it, to save, to go on with by hand, or to hand to
    /// [`Run::optimizer`](super::Run::optimizer).
    pub fn optimizer(&self) -> &dyn Optimizer {
        &*self.optimizer
    }

    /// The optimizer, owned.
    pub fn into_optimizer(self) -> Box<dyn Optimizer> {
        self.optimizer
    }
}

impl fmt::Display for Solution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Solution { evaluations, stop, .. } = self;
        match (self.value(), self.point()) {
            (Some(value), Some(point)) => writeln!(f, "best value {value} at {point}")?,
            (None, Some(point)) => writeln!(f, "no feasible point; least infeasible: {point}")?,
            _ if self.is_all_failed() => writeln!(f, "every evaluation failed")?,
            _ => writeln!(f, "nothing was evaluated")?,
        }
        write!(f, "{evaluations} evaluations in {:.2?}; {stop}", self.elapsed)?;
        if let Some(error) = &self.first_error {
            write!(f, "\n{} failed, first: {error}", self.failures)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Solution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Solution({self})")
    }
}
