//! The decoded value of a coordinate.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The decoded value of one coordinate of a point. In JSON and TOML it is a plain number, boolean or
/// string.
///
/// ```
/// use racecars::Value;
///
/// assert_eq!(Value::from("relu").to_string(), "relu");
/// assert_eq!(Value::from(3).as_real(), Some(3.0));
/// assert_eq!(Value::from(2.5).as_integer(), None);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// True or false.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// A number.
    Real(f64),
    /// A string.
    Text(String),
}

impl Value {
    /// This value as a number, if it is one.
    pub fn as_real(&self) -> Option<f64> {
        match self {
            Value::Integer(i) => Some(*i as f64),
            Value::Real(x) => Some(*x),
            _ => None,
        }
    }

    /// This value as an integer, if it is a whole number.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Value::Integer(i) => Some(*i),
            Value::Real(x) if x.fract() == 0.0 && x.abs() <= (1i64 << 53) as f64 => Some(*x as i64),
            _ => None,
        }
    }

    /// This value as a boolean, if it is one.
    pub fn as_boolean(&self) -> Option<bool> {
        match self {
            Value::Boolean(b) => Some(*b),
            _ => None,
        }
    }

    /// This value as a string, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A hashable key that is the same for equal values; `2` equals `2.0`.
    pub(super) fn identity(&self) -> (u8, u64, &str) {
        match self {
            Value::Boolean(b) => (0, u64::from(*b), ""),
            Value::Integer(i) => (1, (*i as f64 + 0.0).to_bits(), ""),
            Value::Real(x) => (1, (x + 0.0).to_bits(), ""),
            Value::Text(text) => (2, 0, text),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Boolean(b) => write!(f, "{b}"),
            Value::Integer(i) => write!(f, "{i}"),
            Value::Real(x) if *x != 0.0 && !(1e-4..1e15).contains(&x.abs()) => write!(f, "{x:e}"),
            Value::Real(x) => write!(f, "{x}"),
            Value::Text(text) => write!(f, "{text}"),
        }
    }
}

macro_rules! value_from {
    ($($from:ty => $variant:ident),* $(,)?) => {$(
        impl From<$from> for Value {
            fn from(x: $from) -> Self {
                Value::$variant(x.into())
            }
        }
    )*};
}
value_from!(bool => Boolean, i32 => Integer, i64 => Integer, f64 => Real, &str => Text, String => Text);

/// The values of one name: a single value, or those of an array.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Values {
    /// The value of a single coordinate.
    One(Value),
    /// The values of an array of coordinates.
    Many(Vec<Value>),
}

impl<V: Into<Value>> From<V> for Values {
    fn from(value: V) -> Self {
        Values::One(value.into())
    }
}

impl<V: Into<Value>> From<Vec<V>> for Values {
    fn from(values: Vec<V>) -> Self {
        Values::Many(values.into_iter().map(Into::into).collect())
    }
}

impl<V: Into<Value> + Clone> From<&[V]> for Values {
    fn from(values: &[V]) -> Self {
        Values::Many(values.iter().cloned().map(Into::into).collect())
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The number of array values that are shown.
        const MAX_SHOWN: usize = 6;
        match self {
            Values::One(value) => write!(f, "{value}"),
            Values::Many(values) => {
                let shown: Vec<String> =
                    values.iter().take(MAX_SHOWN).map(Value::to_string).collect();
                write!(f, "[{}", shown.join(", "))?;
                if values.len() > MAX_SHOWN {
                    write!(f, ", ... {} values", values.len())?;
                }
                write!(f, "]")
            }
        }
    }
}
