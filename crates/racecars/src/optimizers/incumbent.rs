//! The best evaluation so far.

use super::Best;
use crate::outcome::Rank;
use crate::sample::Sample;
use crate::space::Space;
use serde::{Deserialize, Serialize};

/// The best evaluation so far; empty while all evaluations failed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Incumbent(Option<Sample>);

impl Incumbent {
    pub(crate) fn sample(&self) -> Option<&Sample> {
        self.0.as_ref()
    }

    pub(crate) fn best(&self) -> Option<Best<'_>> {
        self.sample().map(|sample| Best::single(&sample.point, sample.rank))
    }

    /// The best value; `None` if there is no feasible point.
    pub(crate) fn value(&self) -> Option<f64> {
        self.sample()?.rank.value()
    }

    /// Whether an outcome of this rank is better. A failure never is.
    pub(crate) fn is_beaten_by(&self, rank: Rank) -> bool {
        !rank.is_failure() && self.sample().is_none_or(|best| rank.beats(best.rank))
    }

    /// Replaces the incumbent by a copy of this point, whether it is better or not.
    pub(crate) fn replace(&mut self, point: &[f64], rank: Rank, key: u64) {
        match &mut self.0 {
            Some(best) => {
                best.point.copy_from_slice(point);
                (best.rank, best.key) = (rank, key);
            }
            none => *none = Some(Sample { point: point.into(), rank, key }),
        }
    }

    /// Updates the rank of the point after a re-evaluation.
    pub(crate) fn revise(&mut self, rank: Rank) -> Option<&Sample> {
        let best = self.0.as_mut()?;
        best.rank = rank;
        Some(best)
    }

    /// Checks the invariants of a deserialized state.
    pub(crate) fn is_sound(&self, space: &Space) -> bool {
        self.sample().is_none_or(|best| best.is_sound(space) && !best.rank.is_failure())
    }
}
