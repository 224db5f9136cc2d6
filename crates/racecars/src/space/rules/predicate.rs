//! Constraints that are functions of the point.

use super::super::{Point, Space};
use std::fmt;
use std::sync::Arc;

/// Whether a point is allowed.
type Holds = dyn Fn(&Point<'_>) -> bool + Send + Sync;

/// A constraint that is a function. It has a name, by which spaces are compared and saved: a space that was
/// read from a file knows no more of it.
#[derive(Clone)]
pub(in crate::space) struct Predicate {
    name: String,
    holds: Option<Arc<Holds>>,
}

impl Predicate {
    pub(in crate::space) fn new(
        name: String,
        holds: impl Fn(&Point<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Predicate { name, holds: Some(Arc::new(holds)) }
    }

    /// A function of which only the name is known. It holds everywhere.
    pub(in crate::space) fn named(name: String) -> Self {
        Predicate { name, holds: None }
    }

    pub(in crate::space) fn name(&self) -> &str {
        &self.name
    }

    pub(in crate::space) fn is_missing(&self) -> bool {
        self.holds.is_none()
    }

    /// Whether a point is allowed. `space` has the same entries, and no constraints.
    pub(super) fn holds(&self, space: &Space, point: &[f64]) -> bool {
        self.holds.as_ref().is_none_or(|holds| holds(&space.view(point)))
    }
}

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Predicate({})", self.name)
    }
}
