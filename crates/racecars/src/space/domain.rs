//! The values that one coordinate can have, and their encoding as one `f64`: a real is itself (its
//! logarithm on a log scale), a discrete value is its index.

use super::axis::Axis;
use super::value::Value;

/// The largest magnitude up to which `f64` represents all integers exactly.
const MAX_INTEGER: i64 = 1 << 53;

/// The scale of a range: linear or logarithmic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Scale {
    /// Distances are differences.
    #[default]
    Linear,
    /// Distances are ratios. The range must be positive.
    Log,
}

/// The values that a coordinate can have.
///
/// ```
/// use racecars::{Domain, Space};
///
/// let space = Space::builder()
///     .coordinate("rate", Domain::log_real(1e-5, 1e-1))
///     .array("layer", 3, Domain::integer(1, 64))
///     .build()?;
/// assert_eq!(space.dimension(), 4);
/// # Ok::<(), racecars::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Domain {
    /// All numbers of a range.
    Real {
        /// The least value.
        low: f64,
        /// The greatest value.
        high: f64,
        /// The scale of the range.
        scale: Scale,
    },
    /// All integers of a range.
    Integer {
        /// The least value.
        low: i64,
        /// The greatest value.
        high: i64,
        /// The scale of the range.
        scale: Scale,
    },
    /// The numbers `low, low + step, ..., high`.
    Grid {
        /// The least value.
        low: f64,
        /// The greatest value.
        high: f64,
        /// The distance between neighbours.
        step: f64,
    },
    /// Values with an order. Neighbours are similar.
    Levels(Vec<Value>),
    /// Values without an order.
    Categorical(Vec<Value>),
    /// True or false.
    Boolean,
}

impl Domain {
    /// All numbers from `low` to `high`.
    pub fn real(low: f64, high: f64) -> Self {
        Domain::Real { low, high, scale: Scale::Linear }
    }

    /// All numbers from `low` to `high`, on a log scale.
    pub fn log_real(low: f64, high: f64) -> Self {
        Domain::Real { low, high, scale: Scale::Log }
    }

    /// All integers from `low` to `high`.
    pub fn integer(low: i64, high: i64) -> Self {
        Domain::Integer { low, high, scale: Scale::Linear }
    }

    /// All integers from `low` to `high`, on a log scale.
    pub fn log_integer(low: i64, high: i64) -> Self {
        Domain::Integer { low, high, scale: Scale::Log }
    }

    /// The numbers `low, low + step, ..., high`.
    pub fn grid(low: f64, high: f64, step: f64) -> Self {
        Domain::Grid { low, high, step }
    }

    /// Values with an order.
    pub fn levels<V: Into<Value>>(levels: impl IntoIterator<Item = V>) -> Self {
        Domain::Levels(levels.into_iter().map(Into::into).collect())
    }

    /// Values without an order.
    pub fn categorical<V: Into<Value>>(choices: impl IntoIterator<Item = V>) -> Self {
        Domain::Categorical(choices.into_iter().map(Into::into).collect())
    }

    /// The name of this kind of domain in the file format.
    pub fn kind(&self) -> &'static str {
        match self {
            Domain::Real { .. } => "real",
            Domain::Integer { .. } => "integer",
            Domain::Grid { .. } => "grid",
            Domain::Levels(_) => "levels",
            Domain::Categorical(_) => "categorical",
            Domain::Boolean => "boolean",
        }
    }

    /// The encoded coordinate. The error says why this domain cannot be searched.
    pub(super) fn axis(&self) -> Result<Axis, String> {
        match self {
            Domain::Real { low, high, scale } => {
                check_range(*low, *high)?;
                match scale {
                    Scale::Linear => Ok(Axis::Continuous { low: *low, high: *high }),
                    Scale::Log if *low <= 0.0 => {
                        Err(format!("low {low} is not positive, as a log scale requires"))
                    }
                    Scale::Log => Ok(Axis::Continuous { low: low.ln(), high: high.ln() }),
                }
            }
            Domain::Integer { low, high, scale } => {
                if low > high {
                    return Err(format!("low {low} is above high {high}"));
                }
                if low.unsigned_abs().max(high.unsigned_abs()) > MAX_INTEGER.unsigned_abs() {
                    return Err(format!(
                        "{low}..{high} is not within the integers up to 2^53 in magnitude"
                    ));
                }
                // Codes are distances from `low`, which must be exact as well.
                if high.abs_diff(*low) > MAX_INTEGER.unsigned_abs() {
                    return Err(format!("{low}..{high} is longer than 2^53"));
                }
                let count = high.abs_diff(*low) + 1;
                match scale {
                    Scale::Linear => Ok(Axis::ordered(count)),
                    Scale::Log if *low < 1 => {
                        Err(format!("low {low} is not positive, as a log scale requires"))
                    }
                    Scale::Log => Ok(Axis::log_ordered(count, *low as f64)),
                }
            }
            Domain::Grid { low, high, step } => {
                check_range(*low, *high)?;
                if !(step.is_finite() && *step > 0.0) {
                    return Err(format!("step {step} is not a positive number"));
                }
                let steps = (high - low) / step;
                if *step < 4.0 * f64::EPSILON * low.abs().max(high.abs()) {
                    return Err(format!(
                        "step {step} is below the rounding of numbers as large as {low}..{high}"
                    ));
                }
                if steps > MAX_INTEGER as f64 {
                    return Err(format!(
                        "step {step} divides {low}..{high} into more than 2^53 values"
                    ));
                }
                if (steps - steps.round()).abs() > 1e-9 * steps.max(1.0) || steps.round() < 1.0 {
                    return Err(format!(
                        "step {step} does not fit: {low}..{high} is {steps} steps, not a whole number"
                    ));
                }
                Ok(Axis::ordered(steps.round() as u64 + 1))
            }
            Domain::Levels(values) => {
                check_values("levels", values)?;
                Ok(Axis::ordered(values.len() as u64))
            }
            Domain::Categorical(values) => {
                check_values("choices", values)?;
                Ok(Axis::unordered(values.len() as u64))
            }
            Domain::Boolean => Ok(Axis::unordered(2)),
        }
    }

    /// Decodes a value.
    pub(super) fn decode(&self, code: f64) -> Value {
        match self {
            Domain::Real { low, high, scale } => Value::Real(match scale {
                Scale::Linear => code,
                Scale::Log => code.exp().clamp(*low, *high),
            }),
            // Exact in i64: the index is at most 2^53, and `low` is at least -2^53.
            Domain::Integer { low, high, .. } => {
                Value::Integer(low.saturating_add(code as i64).min(*high))
            }
            Domain::Grid { low, high, step } => Value::Real(grid_value(*low, *high, *step, code)),
            Domain::Levels(values) | Domain::Categorical(values) => {
                values[(code as usize).min(values.len() - 1)].clone()
            }
            Domain::Boolean => Value::Boolean(code >= 0.5),
        }
    }

    /// Encodes a value. The error says what is allowed.
    pub(super) fn encode(&self, value: &Value) -> Result<f64, String> {
        self.code(value).ok_or_else(|| self.refusal(value))
    }

    fn code(&self, value: &Value) -> Option<f64> {
        match self {
            Domain::Real { low, high, scale } => {
                let x = value.as_real().filter(|x| (*low..=*high).contains(x))?;
                Some(match scale {
                    Scale::Linear => x,
                    Scale::Log => x.ln().clamp(low.ln(), high.ln()),
                })
            }
            Domain::Integer { low, high, .. } => {
                let i = value.as_integer().filter(|i| (*low..=*high).contains(i))?;
                Some(i.abs_diff(*low) as f64)
            }
            Domain::Grid { low, high, step } => {
                let x = value.as_real()?;
                let index = ((x - low) / step).round();
                let near = (grid_value(*low, *high, *step, index) - x).abs() <= 1e-6 * step;
                let inside = (0.0..=((high - low) / step).round()).contains(&index);
                (near && inside).then_some(index)
            }
            Domain::Levels(values) | Domain::Categorical(values) => {
                Some(values.iter().position(|v| v.identity() == value.identity())? as f64)
            }
            Domain::Boolean => Some(f64::from(u8::from(value.as_boolean()?))),
        }
    }

    /// Whether a value is encoded as itself.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Domain::Real { scale: Scale::Linear, .. })
    }

    fn refusal(&self, got: &Value) -> String {
        let allowed = match self {
            Domain::Real { low, high, .. } => format!("a number from {low} to {high}"),
            Domain::Integer { low, high, .. } => format!("an integer from {low} to {high}"),
            Domain::Grid { low, high, step } => {
                format!("a number from {low} to {high} in steps of {step}")
            }
            Domain::Levels(values) | Domain::Categorical(values) => {
                let mut names: Vec<String> = values.iter().take(12).map(Value::to_string).collect();
                if values.len() > names.len() {
                    names.push(format!("... ({} in all)", values.len()));
                }
                format!("one of {}", names.join(", "))
            }
            Domain::Boolean => "true or false".to_string(),
        };
        format!("{got} is not {allowed}")
    }
}

/// The number of a grid at this index. If the step is a unit fraction (0.1, 0.25, ...), the number is
/// computed as a quotient of integers, so that it equals the decimal number that the user expects.
fn grid_value(low: f64, high: f64, step: f64, index: f64) -> f64 {
    let inverse = (1.0 / step).round();
    let (first, off) = ((low * inverse).round(), low * inverse);
    let is_decimal = inverse >= 1.0
        && (step * inverse - 1.0).abs() < 1e-12
        && (first - off).abs() < 1e-9
        && first.abs() < MAX_INTEGER as f64;
    let x = if is_decimal { (first + index) / inverse } else { low + index * step };
    x.clamp(low, high)
}

fn check_range(low: f64, high: f64) -> Result<(), String> {
    for (end, x) in [("low", low), ("high", high)] {
        if !x.is_finite() {
            return Err(format!("{end} is {x}, not a finite number"));
        }
    }
    if low >= high {
        return Err(format!("low {low} is not below high {high}"));
    }
    if !(high - low).is_finite() {
        return Err(format!("{low}..{high} is wider than the largest number"));
    }
    Ok(())
}

fn check_values(what: &str, values: &[Value]) -> Result<(), String> {
    if values.is_empty() {
        return Err(format!("no {what}"));
    }
    let mut seen = std::collections::HashSet::with_capacity(values.len());
    for value in values {
        if matches!(value, Value::Real(x) if !x.is_finite()) {
            return Err(format!("{value} among the {what} is not a finite number"));
        }
        if !seen.insert(value.identity()) {
            return Err(format!("{value} is repeated among the {what}"));
        }
    }
    Ok(())
}
