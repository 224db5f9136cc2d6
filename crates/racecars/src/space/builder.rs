//! The builder of spaces, and the checks that every space passes.

use super::numbers::is_by_position;
use super::rules::Predicate;
use super::{Domain, Entry, MAX_DIMENSION, Point, Space, Structure, Value};
use crate::error::{Error, Result, ensure};
use std::collections::HashSet;

/// Builds a [`Space`] coordinate by coordinate. [`SpaceBuilder::build`] checks all of them.
#[derive(Debug, Clone, Default)]
pub struct SpaceBuilder {
    coordinates: Vec<NamedDomain>,
    constraints: Vec<String>,
    predicates: Vec<Predicate>,
    /// The first condition that was given before any coordinate.
    stray_condition: Option<String>,
}

#[derive(Debug, Clone)]
struct NamedDomain {
    name: String,
    /// The length of an array; `None` for a single coordinate.
    count: Option<usize>,
    domain: Domain,
    condition: Option<String>,
    structure: Option<Structure>,
}

impl SpaceBuilder {
    /// Adds a single coordinate.
    pub fn coordinate(self, name: impl Into<String>, domain: Domain) -> Self {
        self.add(name.into(), None, domain, None)
    }

    fn add(
        mut self,
        name: String,
        count: Option<usize>,
        domain: Domain,
        structure: Option<Structure>,
    ) -> Self {
        let condition = None;
        self.coordinates.push(NamedDomain { name, count, domain, condition, structure });
        self
    }

    /// Makes the last coordinate or array conditional: it is active only where this holds. An inactive
    /// coordinate is not part of a point.
    ///
    /// ```
    /// use racecars::Space;
    ///
    /// let space = Space::builder()
    ///     .categorical("kernel", ["linear", "poly", "rbf"])
    ///     .integer("degree", 2, 5).when("kernel = poly")
    ///     .log_real("gamma", 1e-4, 1.0).when("kernel in (poly, rbf)")
    ///     .build()?;
    /// let point = space.encode([("kernel", "rbf".into()), ("gamma", 1.0.into())])?;
    /// assert_eq!(space.view(&point).to_string(), "kernel=rbf gamma=1");
    /// # Ok::<(), racecars::Error>(())
    /// ```
    pub fn when(mut self, condition: impl Into<String>) -> Self {
        match self.coordinates.last_mut() {
            Some(last) => last.condition = Some(condition.into()),
            None => self.stray_condition = Some(condition.into()),
        }
        self
    }

    /// Adds a constraint that every point satisfies. Comparisons (`<`, `<=`, `>`, `>=`, `=`, `!=`, `in`) of
    /// sums, products and the functions `abs`, `sqrt`, `exp`, `log`, `min`, `max` and `sum` are combined by
    /// `and`, `or` and `not`. A constraint that depends on an inactive coordinate holds.
    ///
    /// ```
    /// use racecars::Space;
    ///
    /// let space = Space::builder()
    ///     .real("a", 0.0, 1.0)
    ///     .real("b", 0.0, 1.0)
    ///     .categorical("mode", ["fast", "exact"])
    ///     .subject_to("a < b")
    ///     .subject_to("not (mode = fast and a + b > 1.5)")
    ///     .build()?;
    /// # Ok::<(), racecars::Error>(())
    /// ```
    pub fn subject_to(mut self, constraint: impl Into<String>) -> Self {
        self.constraints.push(constraint.into());
        self
    }

    /// Adds a constraint that is a function: every point satisfies it. It is called for points that satisfy all
    /// else, often several times for a candidate, so it should be fast; the same point must have the same answer.
    ///
    /// Functions cannot be saved. Spaces are compared by their functions' names, and a saved optimizer is
    /// [loaded into](crate::load_in) a space that has them.
    ///
    /// ```
    /// use racecars::Space;
    ///
    /// let space = Space::builder()
    ///     .reals("x", 3, 0.0, 1.0)
    ///     .subject_to_function("ascending", |point| point.coordinates().is_sorted())
    ///     .build()?;
    /// assert!(space.center().is_sorted());
    /// # Ok::<(), racecars::Error>(())
    /// ```
    pub fn subject_to_function(
        mut self,
        name: impl Into<String>,
        holds: impl Fn(&Point<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.predicates.push(Predicate::new(name.into(), holds));
        self
    }

    /// A function of which only the name is known.
    pub(super) fn subject_to_named(mut self, name: &str) -> Self {
        self.predicates.push(Predicate::named(name.to_string()));
        self
    }

    /// Adds an order of the numbers 0 to `count` - 1.
    pub fn permutation(self, name: impl Into<String>, count: usize) -> Self {
        let items = (0..count as i64).map(Value::Integer).collect();
        self.order_of(name, items)
    }

    /// Adds an order of these items.
    pub fn order_of(self, name: impl Into<String>, items: Vec<Value>) -> Self {
        let count = items.len();
        self.add(name.into(), Some(count), Domain::Categorical(items), Some(Structure::Permutation))
    }

    /// Adds a selection of `sizes.start()` to `sizes.end()` of these items.
    ///
    /// ```
    /// use racecars::Space;
    ///
    /// let space = Space::builder()
    ///     .subset("pick", 2..=2, ["a", "b", "c", "d"])
    ///     .permutation("order", 5)
    ///     .simplex("mix", 3)
    ///     .build()?;
    /// # Ok::<(), racecars::Error>(())
    /// ```
    pub fn subset<V: Into<Value>>(
        self,
        name: impl Into<String>,
        sizes: std::ops::RangeInclusive<usize>,
        items: impl IntoIterator<Item = V>,
    ) -> Self {
        let items: Vec<Value> = items.into_iter().map(Into::into).collect();
        let (count, least, most) = (items.len(), *sizes.start(), *sizes.end());
        let structure = Structure::Subset { items, least, most };
        self.add(name.into(), Some(count), Domain::Boolean, Some(structure))
    }

    /// Adds `count` numbers from 0 that add up to 1: the shares of a mixture.
    pub fn simplex(self, name: impl Into<String>, count: usize) -> Self {
        self.add(name.into(), Some(count), Domain::real(0.0, 1.0), Some(Structure::Simplex))
    }

    /// Adds an array of `count` coordinates under one name, all with the same domain.
    pub fn array(self, name: impl Into<String>, count: usize, domain: Domain) -> Self {
        self.add(name.into(), Some(count), domain, None)
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
        if let Some(stray) = self.stray_condition {
            return Err(Error::space(format!("condition `{stray}` is before any coordinate")));
        }
        for NamedDomain { name, count, domain, condition, structure } in self.coordinates {
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
            if let Some(structure) = &structure {
                structure.check(count.unwrap_or(1)).map_err(refuse)?;
            }
            let is_by_position = is_by_position(&domain);
            entries.push(Entry {
                name,
                domain,
                axis,
                offset,
                count,
                is_by_position,
                condition,
                structure,
            });
        }
        Space::from_entries(entries, &self.constraints, &self.predicates)
    }
}
