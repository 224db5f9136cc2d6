//! Follows a run: counts, best value, history, stop rules, observers.

use super::Direction;
use super::history::History;
use super::stop::{Flow, StopReason, Stops};
use crate::outcome::{Outcome, Rank};
use crate::space::Point;
use std::time::{Duration, Instant};

pub(super) type Observer<'o> = Box<dyn FnMut(&Progress<'_>) -> Flow + 'o>;

/// What an observer sees after each evaluation.
#[derive(Debug)]
pub struct Progress<'a> {
    /// The evaluations done, this one included.
    pub evaluations: u64,
    /// The point just evaluated.
    pub point: Point<'a>,
    /// What came of it.
    pub outcome: &'a Outcome,
    /// Whether it is the best so far.
    pub improved: bool,
    /// The best value so far, if any evaluation gave one.
    pub best: Option<f64>,
    /// The evaluations that failed or timed out.
    pub failures: u64,
    started: Instant,
}

impl Progress<'_> {
    /// The time since the run began.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

pub(super) struct Tracker<'o> {
    direction: Direction,
    stops: Stops,
    observers: Vec<Observer<'o>>,
    started: Instant,
    pub(super) evaluations: u64,
    pub(super) failures: u64,
    pub(super) infeasible: u64,
    pub(super) first_error: Option<String>,
    pub(super) history: History,
    pub(super) reason: Option<StopReason>,
    /// The best rank so far, in the optimizers' sense.
    best: Option<Rank>,
    last_improvement: u64,
}

impl<'o> Tracker<'o> {
    /// `best` is what is known before the run.
    pub(super) fn new(
        direction: Direction,
        stops: Stops,
        observers: Vec<Observer<'o>>,
        best: Option<Rank>,
    ) -> Self {
        let mut tracker = Tracker {
            direction,
            stops,
            observers,
            started: Instant::now(),
            evaluations: 0,
            failures: 0,
            infeasible: 0,
            first_error: None,
            history: History::default(),
            reason: None,
            best,
            last_improvement: 0,
        };
        tracker.note_best();
        tracker
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Ends the run; the first reason given stays.
    pub(super) fn stop(&mut self, reason: StopReason) {
        self.reason.get_or_insert(reason);
    }

    /// Whether another candidate may be handed out while `out` are being evaluated.
    pub(super) fn may_ask(&mut self, out: u64) -> bool {
        if self.reason.is_some() {
            return false;
        }
        if self.stops.cancel.as_ref().is_some_and(|cancel| cancel.is_cancelled()) {
            self.stop(StopReason::Cancelled);
        } else if self.stops.time.is_some_and(|limit| self.elapsed() >= limit) {
            self.stop(StopReason::Time);
        } else if let Some(budget) = self.stops.evaluations {
            if self.evaluations >= budget {
                self.stop(StopReason::Evaluations);
            }
            return self.reason.is_none() && self.evaluations + out < budget;
        }
        self.reason.is_none()
    }

    /// Enters an evaluation, in the user's sense.
    pub(super) fn record(&mut self, point: Point<'_>, outcome: &Outcome) {
        self.evaluations += 1;
        let inward = match (self.direction, outcome) {
            (Direction::Maximize, Outcome::Value(value)) => Outcome::Value(-value).rank(),
            _ => outcome.rank(),
        };
        if inward.is_failure() {
            self.failures += 1;
            if self.first_error.is_none() {
                let evaluation = self.evaluations;
                self.first_error = Some(format!("evaluation {evaluation} at {point}: {outcome}"));
            }
        } else if inward.value().is_none() {
            self.infeasible += 1;
        }
        let improved = !inward.is_failure() && self.best.is_none_or(|best| inward.beats(best));
        if improved {
            self.best = Some(inward);
            self.last_improvement = self.evaluations;
            self.note_best();
        }
        let waited = self.evaluations - self.last_improvement;
        if self.stops.patience.is_some_and(|patience| waited >= patience) {
            self.stop(StopReason::NoImprovement);
        }
        self.show(point, outcome, improved);
    }

    /// Enters the best value into the history, and compares it with the target.
    fn note_best(&mut self) {
        let Some(value) = self.best.and_then(Rank::value) else { return };
        self.history.push(self.evaluations, self.direction.turn(value));
        if self.stops.target.is_some_and(|target| value <= target) {
            self.stop(StopReason::Target);
        }
    }

    fn show(&mut self, point: Point<'_>, outcome: &Outcome, improved: bool) {
        if self.observers.is_empty() {
            return;
        }
        let progress = Progress {
            evaluations: self.evaluations,
            point,
            outcome,
            improved,
            best: self.best.and_then(Rank::value).map(|value| self.direction.turn(value)),
            failures: self.failures,
            started: self.started,
        };
        let mut wants_stop = false;
        for observer in &mut self.observers {
            wants_stop |= observer(&progress) == Flow::Stop;
        }
        if wants_stop {
            self.stop(StopReason::Observer);
        }
    }
}
