//! An evaluated point, as optimizers store it.

use crate::outcome::Rank;
use crate::space::Space;
use serde::{Deserialize, Serialize};

/// An evaluated point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) point: Box<[f64]>,
    pub(crate) rank: Rank,
    /// The point's key, see `Space::key`.
    pub(crate) key: u64,
}

impl Sample {
    /// Checks the invariants of a deserialized sample.
    pub(crate) fn is_sound(&self, space: &Space) -> bool {
        space.check(&self.point).is_ok()
            && self.key == space.key(&self.point)
            && self.rank.is_sound()
    }
}
