//! The shrunken search region of RACE-CARS (Algorithm 4): the space Omega intersected with a box of
//! gamma^k times its size around a centre.

use super::axis::{greater, lesser};
use super::{Axis, Interval};
use crate::random::{Random, mix, permuted};

/// A region around a centre that covers the same `fraction` of every axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchRegion<'a> {
    center: &'a [f64],
    /// The fraction of each axis inside the region: gamma^k.
    fraction: f64,
    /// Selects the random subsets that unordered axes are restricted to, as in Algorithm 4. `None`
    /// never fixes a discrete coordinate: an ordered axis keeps the neighbours of the centre's value,
    /// and an unordered axis keeps all values.
    key: Option<u64>,
}

impl<'a> SearchRegion<'a> {
    pub(crate) fn new(center: &'a [f64], fraction: f64, key: u64) -> Self {
        SearchRegion { center, fraction, key: Some(key) }
    }

    /// A region that never fixes a discrete coordinate.
    pub(crate) fn keeping_neighbours(center: &'a [f64], fraction: f64) -> Self {
        SearchRegion { center, fraction, key: None }
    }

    pub(crate) fn center(&self) -> &'a [f64] {
        self.center
    }

    pub(crate) fn fraction(&self) -> f64 {
        self.fraction
    }

    /// The region's interval on a continuous or ordered axis.
    #[inline]
    pub(crate) fn interval(&self, index: usize, axis: Axis) -> Interval {
        let center = self.center[index];
        if let (Axis::Ordered { last, log_from: None }, None) = (axis, self.key)
            && self.fraction * (last + 1.0) < 2.0
        {
            // The same as below, as the region has no other values than the centre's.
            return Interval { low: greater(center - 1.0, 0.0), high: lesser(center + 1.0, last) };
        }
        let Interval { low, high } = axis.around(center, self.fraction);
        let interval = match axis {
            Axis::Ordered { last, .. } if self.key.is_none() => Interval {
                low: greater(lesser(low, center - 1.0), 0.0),
                high: lesser(greater(high, center + 1.0), last),
            },
            _ => Interval { low, high },
        };
        debug_assert!(interval.contains(center), "a region contains its centre");
        interval
    }

    /// The region's part of an unordered axis; `None` for all of it.
    #[inline]
    pub(crate) fn subset(&self, index: usize) -> Option<Subset> {
        let key = mix(self.key? ^ mix(index as u64));
        Some(Subset { center: self.center[index], fraction: self.fraction, key })
    }
}

/// A part of an unordered axis: the centre's value and a random subset of the others, ceil(gamma^k count)
/// values in total. The subset is a function of the region's key and the coordinate, so it stays the same
/// until the next shrink without being stored.
pub(crate) struct Subset {
    center: f64,
    fraction: f64,
    key: u64,
}

impl Subset {
    /// Draws uniformly, from an axis of `count` values.
    pub(crate) fn draw(&self, count: u64, random: &mut Random) -> f64 {
        let &Subset { center, fraction, key } = self;
        debug_assert!((0.0..count as f64).contains(&center), "a region contains its centre");
        let kept = ((fraction * count as f64).ceil() as u64).clamp(1, count);
        match random.below(kept) {
            0 => center,
            i => {
                let other = permuted(i - 1, count - 1, key) as f64;
                other + f64::from(u8::from(other >= center))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Space;
    use std::collections::BTreeSet;

    #[test]
    fn a_region_that_keeps_neighbours_never_fixes_a_coordinate() {
        let space = Space::builder().integer("i", 0, 9).log_integer("k", 1, 1000).build().unwrap();
        let ends = |region: &SearchRegion, index| {
            let Interval { low, high } = region.interval(index, space.axis(index));
            (low, high)
        };
        for (center, expected) in [(0.0, (0.0, 1.0)), (5.0, (4.0, 6.0)), (9.0, (8.0, 9.0))] {
            let point = [center; 2];
            let region = SearchRegion::new(&point, 1e-6, 0);
            assert_eq!(ends(&region, 0), (center, center));
            let region = SearchRegion::keeping_neighbours(&point, 1e-6);
            assert_eq!(ends(&region, 0), expected);
            assert_eq!(ends(&region, 1), ((center - 1.0).max(0.0), center + 1.0));
        }
        assert!(SearchRegion::keeping_neighbours(&[3.0], 1e-6).subset(0).is_none());
    }

    #[test]
    fn an_unordered_axis_keeps_a_fixed_random_subset_with_the_centre() {
        let mut random = Random::new(1);
        let mut subsets = BTreeSet::new();
        for key in 0..50 {
            let subset = SearchRegion::new(&[3.0], 0.35, key).subset(0).unwrap();
            let drawn: BTreeSet<u64> =
                (0..500).map(|_| subset.draw(10, &mut random) as u64).collect();
            assert_eq!(drawn.len(), 4, "ceil(0.35 * 10) values");
            assert!(drawn.contains(&3) && drawn.iter().all(|&v| v < 10));
            subsets.insert(drawn);
        }
        assert!(subsets.len() > 20, "the subset depends on the key");
    }
}
