//! The best evaluation so far, which optimizers keep that have no other use for it.

use super::Best;
use crate::classify::Sample;
use crate::outcome::Rank;
use crate::space::Space;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Incumbent(Option<Sample>);

impl Incumbent {
    pub(super) fn sample(&self) -> Option<&Sample> {
        self.0.as_ref()
    }

    pub(super) fn best(&self) -> Option<Best<'_>> {
        self.sample().map(|Sample { point, rank, .. }| Best { point, rank: *rank, evaluations: 1 })
    }

    /// The best value, if there is one: the best may be infeasible.
    pub(super) fn value(&self) -> Option<f64> {
        self.sample()?.rank.value()
    }

    /// Whether an outcome of this rank would be the best. A failure never is.
    pub(super) fn is_beaten_by(&self, rank: Rank) -> bool {
        !rank.is_failure() && self.sample().is_none_or(|best| rank.beats(best.rank))
    }

    /// Takes in what is better, and returns the buffer that is left over.
    pub(super) fn offer(&mut self, sample: Sample) -> Option<Box<[f64]>> {
        if self.is_beaten_by(sample.rank) {
            self.0.replace(sample).map(|old| old.point)
        } else {
            Some(sample.point)
        }
    }

    /// Takes in a copy, better or not.
    pub(super) fn replace(&mut self, point: &[f64], rank: Rank, key: u64) {
        match &mut self.0 {
            Some(best) => {
                best.point.copy_from_slice(point);
                (best.rank, best.key) = (rank, key);
            }
            none => *none = Some(Sample { point: point.into(), rank, key }),
        }
    }

    /// The same point is of another rank.
    pub(super) fn revise(&mut self, rank: Rank) -> Option<&Sample> {
        let best = self.0.as_mut()?;
        best.rank = rank;
        Some(best)
    }

    /// Whether it is one that this code could have written.
    pub(super) fn is_sound(&self, space: &Space) -> bool {
        self.sample().is_none_or(|best| best.is_sound(space) && !best.rank.is_failure())
    }
}
