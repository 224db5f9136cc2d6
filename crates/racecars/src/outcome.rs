//! Outcomes of evaluations, the direction of optimization, and the order in which outcomes are ranked.
//!
//! Finite values come first, by value; then infeasible points, by violation; then failed evaluations.
//! NaN and infinities are failures, so they are never the best.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::cmp::Ordering;
use std::fmt;

/// Gives an enum its list of variants, and each variant a name for programs and a text for people.
macro_rules! words {
    (
        $type:ident;
        #[doc = $all_about:literal]
        ALL;
        #[doc = $name_about:literal]
        name;
        $( $variant:ident: $name:literal, $text:literal; )*
    ) => {
        impl $type {
            #[doc = $all_about]
            pub const ALL: &[$type] = &[$($type::$variant),*];

            #[doc = $name_about]
            pub fn name(self) -> &'static str {
                match self {
                    $( $type::$variant => $name, )*
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $( $type::$variant => $text, )*
                })
            }
        }
    };
}

pub(crate) use words;

/// Whether smaller or larger values are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Smaller values are better.
    #[default]
    Minimize,
    /// Larger values are better.
    Maximize,
}

impl Direction {
    /// Converts a value between the user's direction and the optimizers', which minimize: negates it when
    /// maximizing. Its own inverse.
    #[inline]
    pub fn signed(self, value: f64) -> f64 {
        match self {
            Direction::Minimize => value,
            Direction::Maximize => -value,
        }
    }
}

/// The result of evaluating one candidate. Optimizers minimize: smaller values are better.
///
/// Objectives rarely construct one: `f64`, `Option<f64>` (`None` is a failure) and `Result<f64, E>`
/// convert.
///
/// ```
/// use racecars::{FailureKind, Outcome};
///
/// assert_eq!(Outcome::from(1.5).value(), Some(1.5));
/// assert!(Outcome::from(f64::NAN).is_failure());
/// let killed = Outcome::failure(FailureKind::Signal, "killed by signal 9");
/// assert_eq!(killed.to_string(), "failed: killed by signal 9");
/// ```
///
/// # As JSON
///
/// `{"value":1.5}`, `{"infeasible":0.5}` (the violation), `{"infeasible":0.5,"value":1.5}`, or
/// `{"failed":"exit","detail":"exit code 3"}`; the first three also with `"constraints":[0.5,-2.0]`, each at
/// most 0 where it is met. JSON has neither NaN nor infinities, so a value, violation or constraint that is
/// not finite is written as a failure. Other keys, and keys that contradict each other, are refused.
/// `{"infeasible":null}`, which earlier versions wrote, is infeasible by [`f64::MAX`].
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The objective's value. Use `Outcome::from(value)`, which converts NaN and infinities to failures.
    Value(f64),
    /// The point violates a constraint.
    Infeasible {
        /// The amount of violation: finite and not negative, smaller is better.
        violation: f64,
        /// The objective's value, if it was evaluated.
        value: Option<f64>,
    },
    /// The evaluation measured constraints.
    Measured(Box<Measured>),
    /// The evaluation failed.
    Failed(Failure),
}

/// The objective and the constraints at a point. It is feasible if no constraint is above 0.
///
/// ```
/// use racecars::Outcome;
///
/// assert_eq!(Outcome::measured(1.5, [-2.0, 0.0]).value(), Some(1.5));
/// let outside = Outcome::measured(1.5, [0.5, -2.0, 0.25]);
/// assert_eq!((outside.value(), outside.violation()), (None, Some(0.75)));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The objective's value, if it was evaluated.
    pub value: Option<f64>,
    /// The constraints, each at most 0 where it is met; finite.
    pub constraints: Vec<f64>,
}

impl Measured {
    /// The sum of the violations; 0 if all constraints are met.
    pub fn violation(&self) -> f64 {
        // Each is finite; a sum that overflows is still a violation.
        self.constraints.iter().map(|by| by.max(0.0)).sum::<f64>().min(f64::MAX)
    }

    fn rank(&self) -> Rank {
        let violation = self.violation();
        if violation > 0.0 {
            return Rank { class: Class::Infeasible, amount: violation };
        }
        self.value
            .filter(|value| value.is_finite())
            .map_or(Rank::FAILURE, |amount| Rank { class: Class::Feasible, amount })
    }

    /// Checks the invariants of a deserialized measurement.
    pub(crate) fn is_sound(&self) -> bool {
        self.value.is_none_or(f64::is_finite) && self.constraints.iter().all(|by| by.is_finite())
    }
}

/// Why an evaluation failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The kind, for programs.
    pub kind: FailureKind,
    /// The reason, for people.
    pub reason: String,
}

impl Failure {
    /// A failure of this kind with this reason.
    pub fn new(kind: FailureKind, reason: impl fmt::Display) -> Self {
        Failure { kind, reason: reason.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed: {}", self.reason)
    }
}

/// The kinds of [`Failure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FailureKind {
    /// A program ended with an exit code other than 0.
    Exit,
    /// A program was ended by a signal.
    Signal,
    /// The evaluation took longer than allowed.
    Timeout,
    /// No value was found in what a program printed.
    Unparseable,
    /// The value is not a finite number.
    Nan,
    /// A program used more memory than allowed.
    Memory,
    /// A program could not be started.
    NotStarted,
    /// Reported as failed by the evaluator, without details.
    Reported,
    /// The objective returned an error, raised an exception or panicked.
    Error,
    /// The worker that evaluated it died or cannot be reached.
    Lost,
}

words! {
    FailureKind;
    /// All kinds.
    ALL;
    /// The name in JSON: `exit`, `not-started`, ...
    name;
    Exit: "exit", "exit code";
    Signal: "signal", "signal";
    Timeout: "timeout", "timeout";
    Unparseable: "unparseable", "unparseable output";
    Nan: "nan", "not a finite number";
    Memory: "memory", "memory limit";
    NotStarted: "not-started", "not started";
    Reported: "reported", "reported";
    Error: "error", "error";
    Lost: "lost", "worker lost";
}

impl FailureKind {
    /// Whether another attempt may succeed; drivers retry only then. False for NaN and infinities, where
    /// the evaluation itself succeeded, and for reported failures.
    pub fn is_retryable(self) -> bool {
        !matches!(self, FailureKind::Nan | FailureKind::Reported)
    }
}

impl Outcome {
    /// A point that violates a constraint by `violation`. NaN, infinite and negative amounts are
    /// failures.
    pub fn infeasible(violation: f64) -> Self {
        Outcome::Infeasible { violation, value: None }.checked()
    }

    /// The value and the constraints of a point, which is feasible if none of these is above 0. Constraints
    /// that are not finite, and a feasible point without a value, are failures.
    pub fn measured(
        value: impl Into<Option<f64>>,
        constraints: impl IntoIterator<Item = f64>,
    ) -> Self {
        let (value, constraints) = (value.into(), constraints.into_iter().collect());
        Outcome::Measured(Box::new(Measured { value, constraints })).checked()
    }

    /// A failed evaluation of kind [`FailureKind::Error`].
    pub fn failed(reason: impl fmt::Display) -> Self {
        Outcome::failure(FailureKind::Error, reason)
    }

    /// A failed evaluation of this kind.
    pub fn failure(kind: FailureKind, reason: impl fmt::Display) -> Self {
        Outcome::Failed(Failure::new(kind, reason))
    }

    /// Converts invalid numbers to a failure: a value that is not finite, or a violation that is negative
    /// or not finite. A value next to a violation is dropped if it is not finite.
    #[inline]
    pub fn checked(self) -> Self {
        match self {
            Outcome::Value(value) if value.is_finite() => Outcome::Value(value),
            other => other.checked_in_full(),
        }
    }

    #[inline(never)]
    fn checked_in_full(self) -> Self {
        match self {
            Outcome::Value(value) if !value.is_finite() => Outcome::failure(
                FailureKind::Nan,
                format!("the value is {value}, not a finite number"),
            ),
            Outcome::Infeasible { violation, .. } if !(0.0..f64::INFINITY).contains(&violation) => {
                Outcome::failure(
                    FailureKind::Nan,
                    format!("the violation is {violation}, not a finite number from 0 up"),
                )
            }
            Outcome::Infeasible { violation, value } => {
                Outcome::Infeasible { violation, value: value.filter(|value| value.is_finite()) }
            }
            Outcome::Measured(mut measured) => {
                if let Some(by) = measured.constraints.iter().find(|by| !by.is_finite()) {
                    let reason = format!("a constraint is {by}, not a finite number");
                    return Outcome::failure(FailureKind::Nan, reason);
                }
                let value = measured.value;
                if value.is_none_or(|value| !value.is_finite()) && measured.violation() <= 0.0 {
                    return match value {
                        Some(value) => Outcome::Value(value).checked(),
                        None => Outcome::failure(FailureKind::Nan, "the point has no value"),
                    };
                }
                measured.value = value.filter(|value| value.is_finite());
                Outcome::Measured(measured)
            }
            outcome => outcome,
        }
    }

    /// The value of a feasible point.
    pub fn value(&self) -> Option<f64> {
        match self {
            Outcome::Value(value) if value.is_finite() => Some(*value),
            Outcome::Measured(measured) => measured.rank().value(),
            _ => None,
        }
    }

    /// The objective's value, whether the point is feasible or not.
    pub fn objective(&self) -> Option<f64> {
        match self {
            Outcome::Infeasible { value, .. } => *value,
            Outcome::Measured(measured) => measured.value,
            _ => self.value(),
        }
    }

    /// The violation of an infeasible point.
    pub fn violation(&self) -> Option<f64> {
        self.rank().violation()
    }

    /// The constraints, each at most 0 where it is met, if they were measured.
    pub fn constraints(&self) -> Option<&[f64]> {
        match self {
            Outcome::Measured(measured) => Some(&measured.constraints),
            _ => None,
        }
    }

    /// What an optimizer can learn besides the rank, in its own direction: constraints, or the value at an
    /// infeasible point, whose violation is then its only constraint.
    pub(crate) fn to_measured(&self, direction: Direction) -> Option<Measured> {
        let signed = |value: &f64| direction.signed(*value);
        match self {
            Outcome::Measured(measured) => Some(Measured {
                value: measured.value.as_ref().map(signed),
                constraints: measured.constraints.clone(),
            }),
            Outcome::Infeasible { violation, value: value @ Some(_) } => {
                Some(Measured { value: value.as_ref().map(signed), constraints: vec![*violation] })
            }
            _ => None,
        }
    }

    /// The failure of a [`Outcome::Failed`]. See [`Outcome::is_failure`], which includes values that are
    /// not finite.
    pub fn as_failure(&self) -> Option<&Failure> {
        match self {
            Outcome::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// Whether the evaluation failed. NaN is a failure, an infeasible point is not.
    #[inline]
    pub fn is_failure(&self) -> bool {
        self.rank().is_failure()
    }

    /// Whether the evaluation failed and another attempt may succeed: see
    /// [`FailureKind::is_retryable`].
    pub fn is_retryable(&self) -> bool {
        self.as_failure().is_some_and(|failure| failure.kind.is_retryable())
    }

    /// Converts an outcome between the user's direction and the optimizers', which minimize: see
    /// [`Direction::signed`]. Its own inverse.
    pub fn signed(self, direction: Direction) -> Self {
        match self {
            Outcome::Value(value) => Outcome::Value(direction.signed(value)),
            Outcome::Infeasible { violation, value } => {
                Outcome::Infeasible { violation, value: value.map(|value| direction.signed(value)) }
            }
            Outcome::Measured(mut measured) => {
                measured.value = measured.value.map(|value| direction.signed(value));
                Outcome::Measured(measured)
            }
            failed => failed,
        }
    }

    /// The rank of an outcome whose value is in the user's direction.
    #[inline]
    pub fn rank_in(&self, direction: Direction) -> Rank {
        match self {
            Outcome::Value(value) => Outcome::Value(direction.signed(*value)).rank(),
            other => match other.rank() {
                Rank { class: Class::Feasible, amount } => {
                    Rank { class: Class::Feasible, amount: direction.signed(amount) }
                }
                rank => rank,
            },
        }
    }

    /// The rank of this outcome; smaller is better.
    #[inline]
    pub fn rank(&self) -> Rank {
        match self {
            Outcome::Value(value) if value.is_finite() => {
                Rank { class: Class::Feasible, amount: *value }
            }
            Outcome::Infeasible { violation, .. } if (0.0..f64::INFINITY).contains(violation) => {
                Rank { class: Class::Infeasible, amount: *violation }
            }
            Outcome::Measured(measured) => measured.rank(),
            _ => Rank::FAILURE,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Value(value) => write!(f, "{value}"),
            Outcome::Infeasible { violation, .. } => write!(f, "infeasible by {violation}"),
            Outcome::Measured(measured) => match (measured.violation(), measured.value) {
                (violation, Some(value)) if violation <= 0.0 => write!(f, "{value}"),
                (violation, _) => write!(f, "infeasible by {violation}"),
            },
            Outcome::Failed(failure) => write!(f, "{failure}"),
        }
    }
}

impl From<f64> for Outcome {
    #[inline]
    fn from(value: f64) -> Self {
        Outcome::Value(value).checked()
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

/// The serialized form of an [`Outcome`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OutcomeForm {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<FailureKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "violation")]
    infeasible: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    constraints: Option<Vec<f64>>,
}

/// The key alone says that the point is infeasible: `null` is a violation that overflowed.
fn violation<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Ok(Some(Option::deserialize(deserializer)?.unwrap_or(f64::MAX)))
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (mut failed, mut detail, mut infeasible, mut value) = (None, None, None, None);
        let mut constraints = None;
        match self.clone().checked() {
            Outcome::Value(number) => value = Some(number),
            Outcome::Infeasible { violation, value: number } => {
                (infeasible, value) = (Some(violation), number);
            }
            Outcome::Measured(measured) => {
                infeasible = Some(measured.violation()).filter(|&violation| violation > 0.0);
                (value, constraints) = (measured.value, Some(measured.constraints));
            }
            Outcome::Failed(Failure { kind, reason }) => {
                (failed, detail) = (Some(kind), Some(reason));
            }
        }
        if serializer.is_human_readable() {
            OutcomeForm { failed, detail, infeasible, value, constraints }.serialize(serializer)
        } else {
            // Formats without field names need all fields.
            (failed, detail, infeasible, value, constraints).serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = if deserializer.is_human_readable() {
            OutcomeForm::deserialize(deserializer)?
        } else {
            let (failed, detail, infeasible, value, constraints) =
                Deserialize::deserialize(deserializer)?;
            OutcomeForm { failed, detail, infeasible, value, constraints }
        };
        let OutcomeForm { failed, detail, infeasible, value, constraints } = form;
        if let (None, Some(constraints), None) = (failed, &constraints, &detail) {
            let outcome = Outcome::measured(value, constraints.iter().copied());
            if infeasible.is_some() == (outcome.violation().is_some()) {
                return Ok(outcome);
            }
            return Err(D::Error::custom("`infeasible` is given where a constraint is above 0"));
        }
        match (failed, infeasible, value, &detail) {
            _ if constraints.is_some() => Err(D::Error::custom("a failure has no `constraints`")),
            // The reason is optional in files.
            (Some(kind), None, None, _) => Ok(Outcome::failure(kind, detail.unwrap_or_default())),
            (None, Some(violation), value, None) => {
                Ok(Outcome::Infeasible { violation, value }.checked())
            }
            (None, None, Some(value), None) => Ok(Outcome::from(value)),
            _ => Err(D::Error::custom(
                "an outcome has one of `value`, `infeasible` (with or without a value) and `failed` (with \
                 or without a `detail`)",
            )),
        }
    }
}

/// The rank of an outcome: a total order in which smaller is better.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Rank {
    class: Class,
    amount: f64,
}

/// As wide as the amount, since padding would be copied wherever a sample moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u64)]
enum Class {
    Feasible,
    Infeasible,
    Failure,
}

impl Rank {
    /// The rank of all failed evaluations: after all others.
    pub const FAILURE: Rank = Rank { class: Class::Failure, amount: 0.0 };

    /// Whether this is the rank of a failed evaluation.
    #[inline]
    pub fn is_failure(self) -> bool {
        self.class == Class::Failure
    }

    /// The objective's value, if the point is feasible.
    #[inline]
    pub fn value(self) -> Option<f64> {
        (self.class == Class::Feasible).then_some(self.amount)
    }

    /// The violation, if the point is infeasible.
    #[inline]
    pub fn violation(self) -> Option<f64> {
        (self.class == Class::Infeasible).then_some(self.amount)
    }

    /// Checks the invariants of a deserialized rank.
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
        // What `total_cmp` calls equal.
        self.class == other.class && self.amount.to_bits() == other.amount.to_bits()
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
    use proptest::prelude::*;

    #[test]
    fn values_come_before_infeasible_points_before_failures() {
        let mut outcomes = [
            Outcome::failure(FailureKind::Timeout, "late"),
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
        assert_eq!(outcomes[2..4], [Outcome::infeasible(0.5), Outcome::infeasible(2.0)]);
        assert!(outcomes[4..].iter().all(Outcome::is_failure));
    }

    #[test]
    fn outcomes_have_this_json_form() {
        let cases = [
            (Outcome::from(1.25), r#"{"value":1.25}"#),
            (Outcome::infeasible(0.5), r#"{"infeasible":0.5}"#),
            (
                Outcome::Infeasible { violation: 0.5, value: Some(1.25) },
                r#"{"infeasible":0.5,"value":1.25}"#,
            ),
            (
                Outcome::failure(FailureKind::NotStarted, "gone"),
                r#"{"failed":"not-started","detail":"gone"}"#,
            ),
        ];
        for (outcome, text) in cases {
            assert_eq!(serde_json::to_string(&outcome).unwrap(), text);
            assert_eq!(serde_json::from_str::<Outcome>(text).unwrap(), outcome);
        }
        for (text, violation) in
            [(r#"{"infeasible":null}"#, f64::MAX), (r#"{"infeasible":2}"#, 2.0)]
        {
            assert_eq!(
                serde_json::from_str::<Outcome>(text).unwrap(),
                Outcome::infeasible(violation)
            );
        }
        for wrong in [
            "{}",
            r#"{"value":null}"#,
            r#"{"value":1,"failed":"exit"}"#,
            r#"{"infeasible":1,"failed":"exit"}"#,
            r#"{"value":1,"detail":"exit code 3"}"#,
            r#"{"value":1,"violation":2}"#,
        ] {
            assert!(serde_json::from_str::<Outcome>(wrong).is_err(), "{wrong}");
        }
        for kind in FailureKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }

    fn outcome() -> impl Strategy<Value = Outcome> {
        let kind = prop::sample::select(FailureKind::ALL);
        prop_oneof![
            any::<f64>().prop_map(Outcome::Value),
            (any::<f64>(), any::<Option<f64>>())
                .prop_map(|(violation, value)| Outcome::Infeasible { violation, value }),
            (kind, "\\PC{0,9}").prop_map(|(kind, reason)| Outcome::failure(kind, reason)),
        ]
    }

    proptest! {
        #[test]
        fn every_outcome_survives_a_round_trip(outcome in outcome()) {
            let checked = outcome.clone().checked();
            let json = serde_json::to_string(&outcome).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Outcome>(&json).unwrap(), &checked, "{}", json);
            let bytes = postcard::to_stdvec(&outcome).unwrap();
            prop_assert_eq!(&postcard::from_bytes::<Outcome>(&bytes).unwrap(), &checked);
            prop_assert_eq!(outcome.rank(), checked.rank());
            let twice = checked.clone().signed(Direction::Maximize).signed(Direction::Maximize);
            prop_assert_eq!(twice, checked);
        }
    }
}
