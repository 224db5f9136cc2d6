//! Watching a run and stopping it from outside.

use crate::outcome::Outcome;
use crate::session::Session;
use crate::space::Point;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub(super) type Observer<'o> = Box<dyn FnMut(&Progress<'_>) -> Flow + 'o>;

/// What an observer sees after each evaluation.
#[derive(Debug)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// The evaluations done, this one included.
    pub evaluations: u64,
    /// The point just evaluated.
    pub point: Point<'a>,
    /// Its outcome.
    pub outcome: &'a Outcome,
    /// Whether the best improved.
    pub improved: bool,
    /// The best value so far, if any evaluation gave one. Where the objective is known to be noisy, a
    /// mean.
    pub best: Option<f64>,
    /// The number of evaluations that the best value is the mean of.
    pub best_evaluations: u64,
    /// The evaluations that failed.
    pub failures: u64,
    started: Instant,
}

impl<'a> Progress<'a> {
    /// The progress by the latest outcome told, `None` before the first.
    pub(super) fn of(session: &'a Session, started: Instant) -> Option<Self> {
        let latest = session.latest()?;
        Some(Progress {
            evaluations: session.counts().evaluations,
            point: latest.point,
            outcome: latest.outcome,
            improved: latest.improved,
            best: session.value(),
            best_evaluations: session.best_evaluations(),
            failures: session.counts().failures,
            started,
        })
    }

    /// The time since the run began.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

/// An observer's decision on whether the run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// Stop; evaluations under way are waited for.
    Stop,
}

/// A token that stops a run from elsewhere. Clones share it.
///
/// ```
/// use racecars::{Cancel, Space, StopReason, minimize};
///
/// let cancel = Cancel::new();
/// let from_elsewhere = cancel.clone();
/// let mut calls = 0;
/// let solution = minimize(&Space::cube(2, 0.0, 1.0)?).cancel(&cancel).run(|p| {
///     calls += 1;
///     if calls == 10 {
///         from_elsewhere.cancel();
///     }
///     p.coordinates()[0]
/// })?;
/// assert_eq!((solution.evaluations(), solution.stop()), (10, StopReason::Interrupted));
/// # Ok::<(), racecars::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A token that has not been cancelled.
    pub fn new() -> Self {
        Cancel::default()
    }

    /// Stops the runs that have this token.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the token was cancelled.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
