//! The shrunken search region of RACE-CARS (Algorithm 4): Omega intersected with the box of
//! gamma^k times Omega's size around a centre.

use super::{Axis, Interval, Space};
use crate::random::{Random, mix, permuted};
use serde::{Deserialize, Serialize};

/// A region around a centre, the same `fraction` of every axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Region {
    center: Box<[f64]>,
    /// The share of each axis's length that is inside: gamma^k.
    fraction: f64,
    /// Which random subsets the unordered axes are restricted to.
    key: u64,
    /// Whether an ordered axis keeps the neighbours of the centre's value, however small the region,
    /// and an unordered one, which has no neighbours, all its values. Algorithm 4 fixes them.
    keeps_neighbours: bool,
}

impl Region {
    pub(crate) fn new(center: &[f64], fraction: f64, key: u64) -> Self {
        Region { center: center.into(), fraction, key, keeps_neighbours: false }
    }

    /// The same, but no discrete coordinate is ever fixed.
    pub(crate) fn keep_neighbours(mut self) -> Self {
        self.keeps_neighbours = true;
        self
    }

    /// Takes a new place and size, without allocating.
    pub(crate) fn recenter(&mut self, center: &[f64], fraction: f64, key: u64) {
        self.center.copy_from_slice(center);
        (self.fraction, self.key) = (fraction, key);
    }

    /// Takes a new size around the same centre.
    pub(crate) fn resize(&mut self, fraction: f64, key: u64) {
        (self.fraction, self.key) = (fraction, key);
    }

    /// Whether a saved region is one of this space.
    pub(crate) fn is_sound(&self, space: &Space) -> bool {
        space.check(&self.center).is_ok() && (0.0..=1.0).contains(&self.fraction)
    }

    pub(crate) fn center(&self) -> &[f64] {
        &self.center
    }

    pub(crate) fn fraction(&self) -> f64 {
        self.fraction
    }

    /// The region's part of a continuous or ordered axis.
    #[inline]
    pub(crate) fn interval(&self, index: usize, axis: Axis) -> Interval {
        let center = self.center[index];
        let Interval { low, high } = axis.around(center, self.fraction);
        match axis {
            Axis::Ordered { last, .. } if self.keeps_neighbours => Interval {
                low: low.min(center - 1.0).max(0.0),
                high: high.max(center + 1.0).min(last),
            },
            _ => Interval { low, high },
        }
    }

    /// A uniform draw from the region's part of an unordered axis: the centre's value and a random
    /// subset of the others, ceil(gamma^k count) in all. The subset is not stored but is a function
    /// of the region's key and the coordinate, so it stays the same until the next shrink.
    pub(crate) fn draw_unordered(&self, index: usize, count: u64, random: &mut Random) -> f64 {
        if self.keeps_neighbours {
            return random.below(count) as f64;
        }
        let center = self.center[index];
        let kept = ((self.fraction * count as f64).ceil() as u64).clamp(1, count);
        match random.below(kept) {
            0 => center,
            i => {
                let other = permuted(i - 1, count - 1, mix(self.key ^ mix(index as u64))) as f64;
                other + f64::from(u8::from(other >= center))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn neighbours_are_kept_where_they_are_to_be() {
        let space = Space::builder().integer("i", 0, 9).log_integer("k", 1, 1000).build().unwrap();
        let ends = |region: &Region, index| {
            let Interval { low, high } = region.interval(index, space.axis(index));
            (low, high)
        };
        for (center, expected) in [(0.0, (0.0, 1.0)), (5.0, (4.0, 6.0)), (9.0, (8.0, 9.0))] {
            let region = Region::new(&[center, center], 1e-6, 0);
            assert_eq!(ends(&region, 0), (center, center));
            let region = region.keep_neighbours();
            assert_eq!(ends(&region, 0), expected);
            assert_eq!(ends(&region, 1), ((center - 1.0).max(0.0), center + 1.0));
        }
        let region = Region::new(&[3.0], 1e-6, 0).keep_neighbours();
        let drawn: BTreeSet<u64> =
            (0..500).map(|i| region.draw_unordered(0, 10, &mut Random::new(i)) as u64).collect();
        assert_eq!(drawn.len(), 10);
    }

    #[test]
    fn an_unordered_axis_keeps_a_fixed_random_subset_that_holds_the_centre() {
        let mut random = Random::new(1);
        let mut subsets = BTreeSet::new();
        for key in 0..50 {
            let region = Region::new(&[3.0], 0.35, key);
            let drawn: BTreeSet<u64> =
                (0..500).map(|_| region.draw_unordered(0, 10, &mut random) as u64).collect();
            assert_eq!(drawn.len(), 4, "ceil(0.35 * 10) values");
            assert!(drawn.contains(&3) && drawn.iter().all(|&v| v < 10));
            subsets.insert(drawn);
        }
        assert!(subsets.len() > 20, "the subset depends on the key");
    }
}
