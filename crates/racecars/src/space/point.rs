//! A view of an encoded point with typed access by name.

use super::{Entry, Space, Value, Values};
use crate::error::{Error, Result};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// A view of a point of a space, with typed access by name.
///
/// ```
/// use racecars::Space;
///
/// let space = Space::builder().log_real("rate", 1e-4, 1.0).categorical("mode", ["a", "b"]).build()?;
/// let point = space.encode([("rate", 0.01.into()), ("mode", "b".into())])?;
/// let point = space.view(&point);
/// assert!((point.real("rate")? - 0.01).abs() < 1e-12);
/// assert_eq!(point.text("mode")?, "b");
/// assert_eq!(
///     point.real("speed").unwrap_err().to_string(),
///     "no coordinate is named `speed`; the space has rate, mode"
/// );
/// # Ok::<(), racecars::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Point<'a> {
    space: &'a Space,
    coordinates: &'a [f64],
}

impl<'a> Point<'a> {
    pub(super) fn new(space: &'a Space, coordinates: &'a [f64]) -> Self {
        Point { space, coordinates }
    }

    /// The point's space.
    pub fn space(&self) -> &'a Space {
        self.space
    }

    /// The encoded coordinates. A real on a linear scale is encoded as itself, so in a space of such
    /// reals these are the values.
    #[inline]
    pub fn coordinates(&self) -> &'a [f64] {
        self.coordinates
    }

    /// The value of a single coordinate.
    pub fn get(&self, name: &str) -> Result<Value> {
        let entry = self.active_entry(name)?;
        match entry.array_len() {
            None => Ok(entry.domain().decode(self.coordinates[entry.range().start])),
            Some(count) => Err(Error::point(format!(
                "coordinate `{name}` is an array of {count}: use `reals` or `values`"
            ))),
        }
    }

    /// The number under this name.
    pub fn real(&self, name: &str) -> Result<f64> {
        self.typed(name, "a number", |value| value.as_real())
    }

    /// The integer under this name.
    pub fn integer(&self, name: &str) -> Result<i64> {
        self.typed(name, "an integer", |value| value.as_integer())
    }

    /// The boolean under this name.
    pub fn boolean(&self, name: &str) -> Result<bool> {
        self.typed(name, "true or false", |value| value.as_boolean())
    }

    /// The string under this name.
    pub fn text(&self, name: &str) -> Result<String> {
        self.typed(name, "a string", |value| value.as_text().map(str::to_string))
    }

    /// The numbers of an array; a single coordinate is an array of length 1. Borrowed without a copy
    /// if they are reals on a linear scale.
    pub fn reals(&self, name: &str) -> Result<Cow<'a, [f64]>> {
        let entry = self.active_entry(name)?;
        let coordinates = &self.coordinates[entry.range()];
        if entry.domain().is_plain() {
            return Ok(Cow::Borrowed(coordinates));
        }
        let number = |&code: &f64| entry.domain().decode(code).as_real();
        let numbers: Option<Vec<f64>> = coordinates.iter().map(number).collect();
        let wrong = || Error::point(format!("coordinate `{name}` does not hold numbers"));
        numbers.map(Cow::Owned).ok_or_else(wrong)
    }

    /// The values under this name: those of an array, the items of a permutation in their order, those of a
    /// subset, or a single value.
    pub fn values(&self, name: &str) -> Result<Values> {
        Ok(self.active_entry(name)?.decode(self.coordinates))
    }

    /// Whether this name is active: it has no condition, or its condition holds.
    pub fn is_active(&self, name: &str) -> Result<bool> {
        let entry = self.space.entry(name)?;
        Ok(entry.condition().is_none() || self.active_names().any(|active| active == name))
    }

    fn active_names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let names = self.space.entries().iter().map(Entry::name);
        let active = self.space.active(self.coordinates);
        names.zip(active).filter(|(_, is_active)| *is_active).map(|(name, _)| name)
    }

    /// The entry of this name, if it is active.
    fn active_entry(&self, name: &str) -> Result<&'a Entry> {
        let entry = self.space.entry(name)?;
        match entry.condition() {
            Some(condition) if !self.is_active(name)? => Err(Error::point(format!(
                "coordinate `{name}` is inactive: its condition is `{condition}`"
            ))),
            _ => Ok(entry),
        }
    }

    /// The values of each active name, in the order of the space.
    pub fn assignments(&self) -> impl Iterator<Item = (&'a str, Values)> + use<'a> {
        let Point { space, coordinates } = *self;
        let entries = space.entries().iter().zip(space.active(coordinates));
        let active = entries.filter(|(_, is_active)| *is_active);
        active.map(move |(entry, _)| (entry.name(), entry.decode(coordinates)))
    }

    fn typed<T>(&self, name: &str, what: &str, read: impl Fn(&Value) -> Option<T>) -> Result<T> {
        let value = self.get(name)?;
        let wrong = || Error::point(format!("coordinate `{name}` is {value}, not {what}"));
        read(&value).ok_or_else(wrong)
    }
}

/// The encoded coordinate with this index, as in [`Point::coordinates`]: in a space of reals on a linear scale
/// its value. Values of other kinds are read by name: [`Point::real`], [`Point::text`] and so on.
///
/// ```
/// let space = racecars::Space::cube(3, -5.0, 5.0)?;
/// let point = space.view(&[1.0, 2.0, 3.0]);
/// assert_eq!(point[1], 2.0);
/// # Ok::<(), racecars::Error>(())
/// ```
impl std::ops::Index<usize> for Point<'_> {
    type Output = f64;

    #[inline]
    fn index(&self, index: usize) -> &f64 {
        &self.coordinates[index]
    }
}

impl fmt::Display for Point<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, values)) in self.assignments().enumerate() {
            let gap = if i == 0 { "" } else { " " };
            write!(f, "{gap}{name}={values}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Point<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Point({self})")
    }
}

/// A point serializes as a map from names to values, which [`Space::encode`] accepts.
impl Serialize for Point<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, values) in self.assignments() {
            map.serialize_entry(name, &values)?;
        }
        map.end()
    }
}
