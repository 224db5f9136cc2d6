//! What a box is learned from.

use super::table::{DifferenceTable, all_differences};
use crate::sample::Sample;
use crate::space::Space;

/// What a box is learned from: a positive point x+ and the negatives, points of a space.
#[derive(Clone, Copy)]
pub(crate) struct Examples<'a> {
    pub(crate) space: &'a Space,
    pub(crate) positive: &'a Sample,
    pub(crate) negatives: &'a [Sample],
    /// Where the negatives differ from x+, if that is known. Otherwise the points are read.
    pub(crate) differences: Option<&'a DifferenceTable>,
}

impl Examples<'_> {
    /// The negatives from `64 * word` on, as bits.
    #[inline]
    pub(super) fn all(&self, word: usize) -> u64 {
        u64::MAX >> (64 - (self.negatives.len() - 64 * word).min(64))
    }

    /// The negatives from `64 * word` on that differ from x+ in a coordinate, as bits.
    #[inline]
    pub(super) fn differing(&self, index: usize, word: usize) -> u64 {
        if let Some(table) = self.differences {
            return table.differing(index, word);
        }
        let plus = self.positive.point[index];
        let negatives = self.negatives[64 * word..].iter().take(64).enumerate();
        negatives.fold(0, |set, (i, negative)| set | u64::from(negative.point[index] != plus) << i)
    }

    /// Whether a negative differs from x+ in a coordinate.
    #[inline]
    pub(super) fn differs(&self, negative: usize, index: usize) -> bool {
        match self.differences {
            Some(table) => table.differs(negative, index),
            None => self.negatives[negative].point[index] != self.positive.point[index],
        }
    }

    /// [`all_differences`] of x+ and a negative.
    #[inline]
    pub(super) fn differences_of(&self, negative: usize, found: impl FnMut(usize) -> bool) -> bool {
        match self.differences {
            Some(table) => table.differences(negative, found),
            None => all_differences(&self.positive.point, &self.negatives[negative].point, found),
        }
    }
}
