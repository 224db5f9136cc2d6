//! When and why a run stops.

use crate::error::{Error, Result};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Why a run stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The budget of evaluations is spent.
    Evaluations,
    /// The time limit has passed.
    Time,
    /// The target value was reached.
    Target,
    /// There was no improvement for as long as the run's patience.
    NoImprovement,
    /// An observer asked for it.
    Observer,
    /// The run was cancelled.
    Cancelled,
    /// Every point of the space has been proposed.
    Exhausted,
}

impl StopReason {
    /// A word for programs.
    pub fn name(self) -> &'static str {
        match self {
            StopReason::Evaluations => "evaluations",
            StopReason::Time => "time",
            StopReason::Target => "target",
            StopReason::NoImprovement => "no-improvement",
            StopReason::Observer => "observer",
            StopReason::Cancelled => "cancelled",
            StopReason::Exhausted => "exhausted",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StopReason::Evaluations => "all evaluations of the budget are done",
            StopReason::Time => "the time limit has passed",
            StopReason::Target => "the target was reached",
            StopReason::NoImprovement => "there was no improvement for long enough",
            StopReason::Observer => "an observer asked to stop",
            StopReason::Cancelled => "the run was cancelled",
            StopReason::Exhausted => "every point of the space has been evaluated",
        })
    }
}

/// An observer's word on whether the run goes on.
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
/// assert_eq!((solution.evaluations(), solution.stop()), (10, StopReason::Cancelled));
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
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The stop rules of a run, in the optimizers' sense: smaller is better.
#[derive(Default)]
pub(super) struct Stops {
    pub(super) evaluations: Option<u64>,
    pub(super) time: Option<Duration>,
    pub(super) target: Option<f64>,
    pub(super) patience: Option<u64>,
    pub(super) cancel: Option<Cancel>,
}

impl Stops {
    /// Whether some rule is bound to end the run.
    pub(super) fn limits_evaluations(&self) -> bool {
        self.evaluations.is_some() || self.time.is_some() || self.patience.is_some()
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.evaluations == Some(0) {
            return Err(Error::setting("a budget of 0 evaluations; at least 1 is needed"));
        }
        if self.patience == Some(0) {
            return Err(Error::setting("a patience of 0 evaluations; at least 1 is needed"));
        }
        match self.target {
            Some(target) if target.is_nan() => {
                Err(Error::setting("the target is NaN, not a number"))
            }
            _ => Ok(()),
        }
    }
}
