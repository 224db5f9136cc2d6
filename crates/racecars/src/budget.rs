//! An evaluation budget: a number of evaluations, or a multiple of the dimension.

use crate::error::{Error, Result};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::str::FromStr;

/// A budget of evaluations: `5000`, `1e5`, or `30n` for 30 evaluations per dimension.
///
/// ```
/// use racecars::Budget;
///
/// let budget: Budget = "30n".parse().unwrap();
/// assert_eq!(budget.evaluations(50), 1500);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Budget {
    /// A number of evaluations.
    Evaluations(u64),
    /// A number of evaluations per dimension.
    PerDimension(f64),
}

impl Budget {
    /// The number of evaluations in a space of this dimension.
    pub fn evaluations(self, dimension: usize) -> u64 {
        match self {
            Budget::Evaluations(evaluations) => evaluations,
            Budget::PerDimension(times) => ((times * dimension as f64).round() as u64).max(1),
        }
    }
}

impl FromStr for Budget {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::setting("not a positive number such as 5000, 1e5 or 30n");
        let per_dimension = text.strip_suffix('n');
        let number = per_dimension.unwrap_or(text).replace('_', "");
        let number: f64 = number.parse().map_err(|_| wrong())?;
        if !(number > 0.0 && number <= 1e15) {
            return Err(wrong());
        }
        match per_dimension {
            Some(_) => Ok(Budget::PerDimension(number)),
            None if number.fract() == 0.0 => Ok(Budget::Evaluations(number as u64)),
            None => Err(Error::setting("not a whole number of evaluations")),
        }
    }
}

/// Deserializes from a number, or from a string such as `"30n"`.
impl<'de> Deserialize<'de> for Budget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a number or a string")]
        enum Given {
            Integer(i64),
            Real(f64),
            Text(String),
        }
        let text = match Given::deserialize(deserializer)? {
            Given::Integer(number) => number.to_string(),
            Given::Real(number) => number.to_string(),
            Given::Text(text) => text,
        };
        text.parse().map_err(|what| serde::de::Error::custom(format!("budget {text} is {what}")))
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Budget::Evaluations(evaluations) => write!(f, "{evaluations}"),
            Budget::PerDimension(times) => write!(f, "{times}n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_number_or_a_multiple_of_the_dimension() {
        let evaluations = |text: &str| text.parse::<Budget>().map(|budget| budget.evaluations(50));
        assert_eq!(evaluations("5000"), Ok(5000));
        assert_eq!(evaluations("1e5"), Ok(100_000));
        assert_eq!(evaluations("30n"), Ok(1500));
        assert_eq!(evaluations("2.5n"), Ok(125));
        for wrong in ["", "n", "0", "-3", "abc", "1.5", "nan", "inf", "0n", "1e300"] {
            assert!(evaluations(wrong).is_err(), "{wrong}");
        }
    }
}
