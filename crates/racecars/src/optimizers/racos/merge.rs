//! Improvements that were found side by side, taken together.
//!
//! With q candidates out, several of them may be better than the best point that they were made from, each
//! in a coordinate of its own. Only one becomes the best, and the others are lost: with 32 out that is most
//! of what the search finds. So their changes are collected in one point, which is proposed next. If it is
//! no better than the best, the changes did not go together, and the collection starts anew.

use crate::outcome::Rank;
use crate::sample::Sample;
use crate::space::Space;
use serde::{Deserialize, Serialize};

/// How a pending candidate was made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Move {
    /// Drawn before there were enough outcomes to learn from.
    Start,
    /// When the best point had this rank. `changed` is the only coordinate in which it differs from the
    /// positive point, with the value there, if that is known.
    From { best: Rank, changed: Option<(u32, f64)> },
    /// By [`Merge`].
    Merged,
}

impl Move {
    /// Checks the invariants of a deserialized mark.
    pub(super) fn is_sound(self, dimension: usize) -> bool {
        match self {
            Move::Start | Move::Merged => true,
            Move::From { best, changed } => {
                best.is_sound()
                    && changed.is_none_or(|(i, old)| (i as usize) < dimension && old.is_finite())
            }
        }
    }
}

/// The collected changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Merge {
    /// A best point with all changes since; empty if there are none.
    point: Vec<f64>,
    /// Whether it has changed since it was proposed.
    is_due: bool,
}

impl Merge {
    /// Adds a candidate that was better than the best when it was asked, because of coordinate `index`,
    /// which had the value `old`. `best` is the best before this outcome, and `has_moved` whether it has
    /// changed since the candidate was asked.
    pub(super) fn add(
        &mut self,
        best: &Sample,
        has_moved: bool,
        index: usize,
        old: f64,
        candidate: &Sample,
    ) {
        if self.point.is_empty() {
            if !has_moved {
                return;
            }
            self.point.extend_from_slice(&best.point);
        }
        // Where another change of this coordinate was accepted, it is not known which is better.
        if self.point[index] == old {
            self.point[index] = candidate.point[index];
            self.is_due = *self.point != *candidate.point;
        }
    }

    /// The point to propose, if there is one.
    #[inline]
    pub(super) fn take_due(&mut self) -> Option<&[f64]> {
        std::mem::take(&mut self.is_due).then_some(&self.point)
    }

    /// Learns whether a merged point was better than the best.
    pub(super) fn learn(&mut self, is_better: bool) {
        if !is_better {
            self.point.clear();
            self.is_due = false;
        }
    }

    /// Checks the invariants of a deserialized state.
    pub(super) fn is_sound(&self, space: &Space) -> bool {
        match self.point.is_empty() {
            true => !self.is_due,
            false => space.check_box(&self.point).is_ok(),
        }
    }
}
