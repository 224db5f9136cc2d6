//! When and how the search region shrinks: as in the paper, by given gamma and rho, or by itself.

use crate::optimizers::saved::ID_HEADROOM;
use crate::random::Random;
use crate::space::{SearchRegion, Space};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum RegionSchedule {
    /// The region is the whole space: RACOS and SRACOS.
    Still,
    /// Algorithm 4: at each step, with probability rho, the region becomes gamma^k of the space
    /// around the best point, and k grows by one.
    Fixed { gamma: f64, rho: f64, shrunken: Option<FixedRegion> },
    /// The region follows success and the budget.
    Adaptive(AdaptiveRegion),
}

/// What Algorithm 4 made of the space.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct FixedRegion {
    /// The best point when it last shrank.
    center: Box<[f64]>,
    /// gamma^k
    fraction: f64,
    /// Which values of the unordered axes are left.
    key: u64,
}

/// A region that stays centred on the best point. Its width follows success: each improvement widens it
/// by the factor 1 + a/n, each other outcome narrows it such that one improvement in five outcomes keeps
/// it. But the budget sets a limit: after t of T evaluations it is not narrower than
/// (1 - t / 0.95 T)^2.5 of the space. While that holds it wide the search explores; in the end it
/// converges.
///
/// Coordinates are redrawn in random permutations, so that each has its turn, one in twenty from the
/// whole axis: a coordinate in the wrong valley gets out of it even when the region is small. When all
/// have had some turns and none helped, two or more are redrawn together: what is best in each
/// coordinate alone may not be so in two. Where all coordinates are discrete, every second draw is then
/// one from the whole space: there is nothing to refine, and the next better point may be anywhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct AdaptiveRegion {
    budget: Option<u64>,
    /// The width, as a share of the space.
    width: f64,
    /// The width at which the search has converged: it widens again, and takes its time.
    narrowest: f64,
    /// a: how quickly the width follows success.
    pace: f64,
    /// Outcomes since the last improvement.
    stalled: u64,
    /// The permutation of the coordinates that is on: how many are left of it, the last one, and how
    /// far it is from one to the next, around the end.
    left: u64,
    last: u64,
    stride: u64,
}

impl RegionSchedule {
    pub(super) fn fixed(gamma: f64, rho: f64) -> Self {
        RegionSchedule::Fixed { gamma, rho, shrunken: None }
    }

    pub(super) fn adaptive(space: &Space, budget: Option<u64>) -> Self {
        RegionSchedule::Adaptive(AdaptiveRegion::new(space, budget))
    }

    /// Before a step, `told` evaluations being known: perhaps changes the region. It is taken anew from
    /// the whole space each time, not from within the last one.
    pub(super) fn step(&mut self, best: &[f64], told: u64, random: &mut Random) {
        match self {
            RegionSchedule::Still => {}
            RegionSchedule::Fixed { gamma, rho, shrunken } => {
                if random.chance(*rho) {
                    let key = random.bits();
                    match shrunken {
                        // gamma^k as a product, which is the same number on every machine; powf is not.
                        Some(shrunken) => {
                            shrunken.center.copy_from_slice(best);
                            (shrunken.fraction, shrunken.key) = (*gamma * shrunken.fraction, key);
                        }
                        None => {
                            *shrunken =
                                Some(FixedRegion { center: best.into(), fraction: *gamma, key })
                        }
                    }
                }
            }
            RegionSchedule::Adaptive(adaptive) => adaptive.widen_by_budget(told),
        }
    }

    /// The region, `best` being the best point.
    pub(super) fn region<'a>(&'a self, best: &'a [f64]) -> Option<SearchRegion<'a>> {
        match self {
            RegionSchedule::Still => None,
            RegionSchedule::Fixed { shrunken, .. } => {
                let FixedRegion { center, fraction, key } = shrunken.as_ref()?;
                Some(SearchRegion::new(center, *fraction, *key))
            }
            RegionSchedule::Adaptive(adaptive) => {
                Some(SearchRegion::keeping_neighbours(best, adaptive.width))
            }
        }
    }

    /// Learns whether an outcome is better than the best before it. Those of points that were not asked
    /// say nothing about the region.
    pub(super) fn learn(&mut self, is_better: bool, is_asked: bool, dimension: usize) {
        if let (RegionSchedule::Adaptive(adaptive), true) = (self, is_asked) {
            adaptive.learn(is_better, dimension as f64);
        }
    }

    /// The coordinate to redraw, if it is not any.
    pub(super) fn next_coordinate(
        &mut self,
        dimension: usize,
        random: &mut Random,
    ) -> Option<usize> {
        let RegionSchedule::Adaptive(adaptive) = self else { return None };
        Some(adaptive.next_coordinate(dimension as u64, random) as usize)
    }

    /// The probability to draw from the learned box, where it is `usual` otherwise.
    pub(super) fn exploitation(&self, usual: f64, space: &Space) -> f64 {
        if space.is_discrete() && self.is_stalled(space.dimension()) { 0.5 * usual } else { usual }
    }

    /// How many coordinates more than usual are redrawn.
    pub(super) fn more_coordinates(&self, dimension: usize, random: &mut Random) -> usize {
        let mut more = 0;
        if self.is_stalled(dimension) {
            while more + 1 < dimension && random.chance(0.5) {
                more += 1;
            }
        }
        more
    }

    /// Whether each coordinate had some turns since the last improvement.
    fn is_stalled(&self, dimension: usize) -> bool {
        match self {
            RegionSchedule::Adaptive(adaptive) => {
                adaptive.stalled / AdaptiveRegion::TURNS_BEFORE_STALL >= dimension as u64
            }
            _ => false,
        }
    }

    /// Whether a draw is from the whole axis rather than from the region.
    pub(super) fn leaves_region(&self, random: &mut Random) -> bool {
        matches!(self, RegionSchedule::Adaptive(_))
            && random.chance(AdaptiveRegion::WHOLE_AXIS_SHARE)
    }

    /// Whether it is one that this code could have written.
    pub(super) fn is_sound(&self, space: &Space) -> bool {
        match self {
            RegionSchedule::Still => true,
            RegionSchedule::Fixed { gamma, rho, shrunken } => {
                *gamma > 0.0
                    && *gamma < 1.0
                    && (0.0..=1.0).contains(rho)
                    && shrunken.as_ref().is_none_or(|shrunken| {
                        space.check(&shrunken.center).is_ok()
                            && (0.0..=1.0).contains(&shrunken.fraction)
                    })
            }
            RegionSchedule::Adaptive(adaptive) => {
                let is_share = |x: f64| x > 0.0 && x <= 1.0;
                is_share(adaptive.width)
                    && is_share(adaptive.narrowest)
                    && adaptive.left < ID_HEADROOM
                    && adaptive.last < ID_HEADROOM
                    && adaptive.stride < ID_HEADROOM
                    && adaptive.stalled < ID_HEADROOM
                    && adaptive.pace > 0.0
                    && adaptive.pace <= AdaptiveRegion::INITIAL_PACE
            }
        }
    }
}

impl AdaptiveRegion {
    /// a, to begin with.
    const INITIAL_PACE: f64 = 1.5;
    /// The share of improvements that keeps the width.
    const TARGET_SUCCESS_RATE: f64 = 0.2;
    /// The share of the budget after which it no longer widens the region.
    const EXPLORATION_SHARE: f64 = 0.95;
    /// The share of draws from the whole axis.
    const WHOLE_AXIS_SHARE: f64 = 0.05;
    /// How many turns each coordinate has without an improvement before several are redrawn at once.
    const TURNS_BEFORE_STALL: u64 = 3;

    fn new(space: &Space, budget: Option<u64>) -> Self {
        // Where all is discrete, nothing is left to narrow below a single value.
        let counts = space.entries().iter().map(|entry| space.axis(entry.range().start).count());
        let most = counts.map(|count| count.map_or(f64::INFINITY, |count| count as f64));
        let narrowest = (1.0 / most.fold(1.0, f64::max)).max(1e-10);
        AdaptiveRegion {
            budget,
            width: 1.0,
            narrowest,
            pace: AdaptiveRegion::INITIAL_PACE,
            stalled: 0,
            left: 0,
            last: 0,
            stride: 1,
        }
    }

    /// What the budget widens after `told` evaluations is not narrowed by a lack of success.
    fn widen_by_budget(&mut self, told: u64) {
        let by_budget = self.budget.map_or(0.0, |budget| {
            let left =
                1.0 - told as f64 / (AdaptiveRegion::EXPLORATION_SHARE * budget.max(1) as f64);
            let left = left.max(0.0);
            left * left * left.sqrt()
        });
        self.width = self.width.max(by_budget);
    }

    /// Steps on by a stride that meets every coordinate once: one that has no divisor in common with
    /// their number. Begin and stride are random, which is as good here as any permutation, and needs no
    /// memory.
    fn next_coordinate(&mut self, n: u64, random: &mut Random) -> u64 {
        if self.left == 0 {
            (self.left, self.last) = (n, random.below(n));
            self.stride = loop {
                let stride = 1 + random.below(n);
                if greatest_common_divisor(stride, n) == 1 {
                    break stride;
                }
            };
        }
        self.left -= 1;
        self.last = (self.last + self.stride) % n;
        self.last
    }

    fn learn(&mut self, is_better: bool, n: f64) {
        self.stalled = if is_better { 0 } else { self.stalled.saturating_add(1) };
        if is_better {
            self.width = (self.width * (1.0 + self.pace / n)).min(1.0);
            return;
        }
        let narrowing = self.pace * AdaptiveRegion::TARGET_SUCCESS_RATE
            / (1.0 - AdaptiveRegion::TARGET_SUCCESS_RATE);
        self.width /= 1.0 + narrowing / n;
        if self.width < self.narrowest {
            self.width = 1.0;
            self.pace *= 0.5;
        }
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_coordinate_has_its_turn() {
        let mut random = Random::new(1);
        for dimension in 1..60 {
            let space = Space::cube(dimension, 0.0, 1.0).unwrap();
            let mut adaptive = AdaptiveRegion::new(&space, None);
            for _ in 0..5 {
                let mut turns: Vec<u64> = (0..dimension)
                    .map(|_| adaptive.next_coordinate(dimension as u64, &mut random))
                    .collect();
                turns.sort_unstable();
                assert!(turns.into_iter().eq(0..dimension as u64));
            }
        }
    }

    #[test]
    fn the_region_is_as_wide_as_the_budget_allows_and_converges_in_the_end() {
        let space = Space::cube(10, 0.0, 1.0).unwrap();
        let mut adaptive = AdaptiveRegion::new(&space, Some(1000));
        let mut widths = Vec::new();
        for told in 0..1000 {
            adaptive.widen_by_budget(told);
            widths.push(adaptive.width);
            adaptive.learn(false, 10.0);
        }
        assert!(widths.is_sorted_by(|a, b| a >= b));
        assert!(widths[475] > 0.17 && widths[475] < 0.18, "half of the 95 %: {}", widths[475]);
        assert!(widths[999] < 1e-3, "{}", widths[999]);
    }
}
