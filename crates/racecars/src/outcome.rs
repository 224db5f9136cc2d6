//! What came of an evaluation, and the one order in which outcomes are ranked.
//!
//! Finite values come first, by value; then infeasible points, by violation; then evaluations that
//! failed or timed out. NaN and infinities are failures, so they never win.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// What came of evaluating one candidate. Smaller values are better.
///
/// Objectives rarely build one by hand: an `f64`, an `Option<f64>` (`None` is a failure) and a
/// `Result<f64, E>` convert.
///
/// ```
/// use racecars::Outcome;
///
/// assert_eq!(Outcome::from(1.5).value(), Some(1.5));
/// assert!(Outcome::from(f64::NAN).is_failure());
/// assert!(Outcome::from(f64::NEG_INFINITY).is_failure());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Outcome {
    /// The objective's value. Build it with `Outcome::from(value)`, which turns NaN and infinities
    /// into failures.
    Value(f64),
    /// The point breaks a constraint, by this much (positive and finite; less is better).
    Infeasible(f64),
    /// The evaluation failed, for this reason.
    Failed(String),
    /// The evaluation took longer than allowed.
    TimedOut,
}

impl Outcome {
    /// A point that breaks a constraint by `violation`; NaN, infinite and negative amounts are
    /// failures.
    pub fn infeasible(violation: f64) -> Self {
        if violation.is_finite() && violation >= 0.0 {
            Outcome::Infeasible(violation)
        } else {
            Outcome::Failed(format!("a constraint was violated by {violation}"))
        }
    }

    /// A failed evaluation, with its reason.
    pub fn failed(reason: impl fmt::Display) -> Self {
        Outcome::Failed(reason.to_string())
    }

    /// The objective's value, if the evaluation gave one.
    pub fn value(&self) -> Option<f64> {
        match self {
            Outcome::Value(value) if value.is_finite() => Some(*value),
            _ => None,
        }
    }

    /// Whether the evaluation failed or timed out (an infeasible point is no failure).
    pub fn is_failure(&self) -> bool {
        self.rank().is_failure()
    }

    /// This outcome of a function to be maximized, as one of a function to be minimized.
    pub fn negated(self) -> Self {
        match self {
            Outcome::Value(value) => Outcome::Value(-value),
            other => other,
        }
    }

    /// Where this outcome stands in the order; smaller is better.
    pub fn rank(&self) -> Rank {
        match self {
            Outcome::Value(value) if value.is_finite() => {
                Rank { class: Class::Feasible, amount: *value }
            }
            Outcome::Infeasible(violation) if violation.is_finite() => {
                Rank { class: Class::Infeasible, amount: *violation }
            }
            _ => Rank::FAILURE,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Value(value) => write!(f, "{value}"),
            Outcome::Infeasible(violation) => write!(f, "infeasible by {violation}"),
            Outcome::Failed(reason) => write!(f, "failed: {reason}"),
            Outcome::TimedOut => write!(f, "timed out"),
        }
    }
}

impl From<f64> for Outcome {
    fn from(value: f64) -> Self {
        if value.is_finite() {
            Outcome::Value(value)
        } else {
            Outcome::Failed(format!("the objective returned {value}"))
        }
    }
}

impl From<Option<f64>> for Outcome {
    fn from(value: Option<f64>) -> Self {
        value.map_or_else(|| Outcome::failed("the objective returned no value"), Outcome::from)
    }
}

impl<E: fmt::Display> From<Result<f64, E>> for Outcome {
    fn from(result: Result<f64, E>) -> Self {
        result.map_or_else(Outcome::failed, Outcome::from)
    }
}

/// An outcome's place in the order: total, small to copy, smaller is better.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Rank {
    class: Class,
    amount: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Class {
    Feasible,
    Infeasible,
    Failure,
}

impl Rank {
    /// The rank of every failed evaluation: behind all others.
    pub const FAILURE: Rank = Rank { class: Class::Failure, amount: 0.0 };

    /// Whether this is the rank of a failed evaluation.
    #[inline]
    pub fn is_failure(self) -> bool {
        self.class == Class::Failure
    }

    /// The objective's value, where there is one.
    #[inline]
    pub fn value(self) -> Option<f64> {
        (self.class == Class::Feasible).then_some(self.amount)
    }

    /// By how much the point breaks a constraint, where it does.
    #[inline]
    pub fn violation(self) -> Option<f64> {
        (self.class == Class::Infeasible).then_some(self.amount)
    }

    /// Whether an outcome can have this rank, which a damaged save may not.
    pub(crate) fn is_sound(self) -> bool {
        self.amount.is_finite()
    }

    /// Whether this rank is strictly better than `other`.
    #[inline]
    pub fn beats(self, other: Rank) -> bool {
        self < other
    }
}

impl PartialEq for Rank {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Rank {}

impl Ord for Rank {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        (self.class.cmp(&other.class)).then(self.amount.total_cmp(&other.amount))
    }
}

impl PartialOrd for Rank {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_before_infeasible_points_before_failures() {
        let mut outcomes = [
            Outcome::TimedOut,
            Outcome::infeasible(2.0),
            Outcome::Value(f64::NAN),
            Outcome::from(5.0),
            Outcome::infeasible(0.5),
            Outcome::from(-5.0),
            Outcome::Value(f64::NEG_INFINITY),
        ];
        outcomes.sort_by_key(Outcome::rank);
        let values: Vec<_> = outcomes.iter().map(Outcome::value).collect();
        assert_eq!(values[..2], [Some(-5.0), Some(5.0)]);
        assert_eq!(outcomes[2..4], [Outcome::Infeasible(0.5), Outcome::Infeasible(2.0)]);
        assert!(outcomes[4..].iter().all(Outcome::is_failure));
    }
}
