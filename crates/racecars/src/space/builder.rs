//! The builder of spaces, and the checks that every space passes.

use super::numbers::is_by_position;
use super::{Domain, Entry, MAX_DIMENSION, Space, Value};
use crate::error::{Error, Result, ensure};
use std::collections::HashSet;

/// Builds a [`Space`] coordinate by coordinate. [`SpaceBuilder::build`] checks all of them.
#[derive(Debug, Clone, Default)]
pub struct SpaceBuilder {
    coordinates: Vec<NamedDomain>,
}

#[derive(Debug, Clone)]
struct NamedDomain {
    name: String,
    /// The length of an array; `None` for a single coordinate.
    count: Option<usize>,
    domain: Domain,
}

impl SpaceBuilder {
    /// Adds a single coordinate.
    pub fn coordinate(mut self, name: impl Into<String>, domain: Domain) -> Self {
        self.coordinates.push(NamedDomain { name: name.into(), count: None, domain });
        self
    }

    /// Adds an array of `count` coordinates under one name, all with the same domain.
    pub fn array(mut self, name: impl Into<String>, count: usize, domain: Domain) -> Self {
        self.coordinates.push(NamedDomain { name: name.into(), count: Some(count), domain });
        self
    }

    /// Adds a real from `low` to `high`.
    pub fn real(self, name: impl Into<String>, low: f64, high: f64) -> Self {
        self.coordinate(name, Domain::real(low, high))
    }

    /// Adds an array of `count` reals from `low` to `high`.
    pub fn reals(self, name: impl Into<String>, count: usize, low: f64, high: f64) -> Self {
        self.array(name, count, Domain::real(low, high))
    }

    /// Adds a real from `low` to `high` on a log scale.
    pub fn log_real(self, name: impl Into<String>, low: f64, high: f64) -> Self {
        self.coordinate(name, Domain::log_real(low, high))
    }

    /// Adds an integer from `low` to `high`.
    pub fn integer(self, name: impl Into<String>, low: i64, high: i64) -> Self {
        self.coordinate(name, Domain::integer(low, high))
    }

    /// Adds an array of `count` integers from `low` to `high`.
    pub fn integers(self, name: impl Into<String>, count: usize, low: i64, high: i64) -> Self {
        self.array(name, count, Domain::integer(low, high))
    }

    /// Adds an integer from `low` to `high` on a log scale.
    pub fn log_integer(self, name: impl Into<String>, low: i64, high: i64) -> Self {
        self.coordinate(name, Domain::log_integer(low, high))
    }

    /// Adds a number from the grid `low, low + step, ..., high`.
    pub fn grid(self, name: impl Into<String>, low: f64, high: f64, step: f64) -> Self {
        self.coordinate(name, Domain::grid(low, high, step))
    }

    /// Adds a choice among values with an order.
    pub fn levels<V: Into<Value>>(
        self,
        name: impl Into<String>,
        levels: impl IntoIterator<Item = V>,
    ) -> Self {
        self.coordinate(name, Domain::levels(levels))
    }

    /// Adds a choice among values without an order.
    pub fn categorical<V: Into<Value>>(
        self,
        name: impl Into<String>,
        choices: impl IntoIterator<Item = V>,
    ) -> Self {
        self.coordinate(name, Domain::categorical(choices))
    }

    /// Adds a boolean.
    pub fn boolean(self, name: impl Into<String>) -> Self {
        self.coordinate(name, Domain::Boolean)
    }

    /// Builds the space. The error names the first coordinate that cannot be searched.
    pub fn build(self) -> Result<Space> {
        ensure!(!self.coordinates.is_empty(), space, "the space has no coordinates");
        let mut names = HashSet::with_capacity(self.coordinates.len());
        let mut entries = Vec::with_capacity(self.coordinates.len());
        let mut dimension = 0usize;
        for NamedDomain { name, count, domain } in self.coordinates {
            let place = entries.len();
            ensure!(!name.is_empty(), space, "coordinate {place} has an empty name");
            ensure!(count != Some(0), space, "coordinate `{name}`: an array of 0 coordinates");
            let is_new = names.insert(name.clone());
            ensure!(is_new, space, "coordinate `{name}`: the name is repeated");
            let refuse = |what| Error::space(format!("coordinate `{name}`: {what}"));
            let axis = domain.axis().map_err(refuse)?;
            let offset = dimension;
            dimension = dimension.saturating_add(count.unwrap_or(1));
            ensure!(
                dimension <= MAX_DIMENSION,
                space,
                "coordinate `{name}`: the space has {dimension} coordinates up to here; \
                 at most {MAX_DIMENSION} are allowed"
            );
            let is_by_position = is_by_position(&domain);
            entries.push(Entry { name, domain, axis, offset, count, is_by_position });
        }
        Ok(Space::from_entries(entries, dimension))
    }
}
