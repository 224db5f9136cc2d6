//! How the search region shrinks: by gamma and rho as in the paper, or adaptively.

use crate::optimizers::saved::ID_HEADROOM;
use crate::random::Random;
use crate::space::{Axis, SearchRegion, Space};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum RegionSchedule {
    /// The region is the whole space, as in RACOS and SRACOS.
    WholeSpace,
    /// Algorithm 4: at each step, with probability rho, the region becomes gamma^k of the space
    /// around the best point, and k grows by one.
    Fixed { gamma: f64, rho: f64, shrunken: Option<FixedRegion> },
    /// The width of the region depends on success and on the budget.
    Adaptive(AdaptiveRegion),
}

/// The region of Algorithm 4.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct FixedRegion {
    /// The best point when it last shrank.
    center: Box<[f64]>,
    /// gamma^k
    fraction: f64,
    /// Selects the remaining values of the unordered axes.
    key: u64,
}

/// A region centred on the best point, whose width adapts. Each improvement widens it by the factor
/// 1 + a/n. Each other outcome narrows it, such that one improvement in five outcomes keeps the width.
/// The budget sets a lower limit: after t of T evaluations the width is at least (1 - t / 0.95 T)^2.5 of
/// the space. This limit makes the search explore first and converge at the end.
///
/// Coordinates are redrawn in random permutations, so that all have the same number of turns. 5 % of the
/// draws are from the whole axis: a coordinate can leave a wrong valley even if the region is small. The
/// search has stalled when all coordinates had some turns without an improvement. Then two or more
/// coordinates are redrawn together, since a point may be optimal in each coordinate alone but not in
/// two.
///
/// In continuous spaces the search restarts with a new training set when the region is so narrow that
/// nothing more can be gained, or when the evaluations planned for the run are used. A budget of thousands
/// of n is divided into several runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct AdaptiveRegion {
    budget: Option<u64>,
    /// The number of evaluations told when this run started, and the number planned for it.
    start: u64,
    horizon: Option<u64>,
    /// Whether a run that has converged is followed by another one: in continuous spaces.
    restarts: bool,
    /// The number of earlier runs.
    pub(super) runs: u64,
    /// Whether this run has converged.
    has_converged: bool,
    /// The width, as a fraction of each axis.
    width: f64,
    /// Below this width the search has converged: it restarts, or the width is reset to 1, and the pace is
    /// halved.
    narrowest: f64,
    /// a: how fast the width adapts.
    pace: f64,
    /// Outcomes since the last improvement.
    stalled: u64,
    /// The current permutation of the coordinates: the number of coordinates left, the last coordinate,
    /// and the distance to the next one, modulo the dimension.
    left: u64,
    last: u64,
    stride: u64,
    /// The number of points that differ from a point in one coordinate; unlimited if a coordinate is continuous.
    neighbours: u64,
    /// Draws of one changed coordinate in a row that were seen before, since the positive points last changed.
    seen_nearby: u64,
}

impl RegionSchedule {
    /// Updates the region before a step, after `told` evaluations. It is always relative to the whole
    /// space, not to the previous region.
    #[inline]
    pub(super) fn step(&mut self, best: &[f64], told: u64, random: &mut Random) {
        match self {
            RegionSchedule::WholeSpace => {}
            RegionSchedule::Fixed { gamma, rho, shrunken } => {
                if random.chance(*rho) {
                    let key = random.bits();
                    match shrunken {
                        // gamma^k as a product is the same number on all machines; powf is not.
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

    /// Starts the next run if this one has converged or has used its evaluations. Returns whether it did.
    #[inline]
    pub(super) fn restart(&mut self, told: u64, dimension: usize) -> bool {
        match self {
            RegionSchedule::Adaptive(adaptive) => adaptive.restart(told, dimension),
            _ => false,
        }
    }

    /// Whether the width of the region depends on success, unlike in the paper.
    #[inline]
    pub(super) fn is_adaptive(&self) -> bool {
        matches!(self, RegionSchedule::Adaptive(_))
    }

    /// The number of runs that ended.
    pub(super) fn restarts(&self) -> u64 {
        match self {
            RegionSchedule::Adaptive(adaptive) => adaptive.runs,
            _ => 0,
        }
    }

    /// The current region, if `best` is the best point.
    pub(super) fn region<'a>(&'a self, best: &'a [f64]) -> Option<SearchRegion<'a>> {
        match self {
            RegionSchedule::WholeSpace => None,
            RegionSchedule::Fixed { shrunken, .. } => {
                let FixedRegion { center, fraction, key } = shrunken.as_ref()?;
                Some(SearchRegion::new(center, *fraction, *key))
            }
            RegionSchedule::Adaptive(adaptive) => {
                Some(SearchRegion::keeping_neighbours(best, adaptive.width))
            }
        }
    }

    /// Learns whether the outcome of an asked point is an improvement.
    pub(super) fn learn(&mut self, is_better: bool, dimension: usize) {
        if let RegionSchedule::Adaptive(adaptive) = self {
            adaptive.learn(is_better, dimension as f64);
        }
    }

    /// The coordinate to redraw; `None` for a random one.
    #[inline]
    pub(super) fn next_coordinate(
        &mut self,
        dimension: usize,
        random: &mut Random,
    ) -> Option<usize> {
        let RegionSchedule::Adaptive(adaptive) = self else { return None };
        Some(adaptive.next_coordinate(dimension as u64, random) as usize)
    }

    /// The number of additional coordinates to redraw. `attempt` counts the draws of this step that were seen before:
    /// where what is near has been seen, more coordinates change.
    pub(super) fn extra_coordinates(
        &self,
        dimension: usize,
        attempt: usize,
        random: &mut Random,
    ) -> usize {
        let RegionSchedule::Adaptive(_) = self else { return 0 };
        let mut extra = attempt / AdaptiveRegion::TRIES_PER_COORDINATE;
        if self.has_stalled(dimension) {
            while extra + 1 < dimension && random.coin() {
                extra += 1;
            }
        }
        extra
    }

    /// The attempt that a step begins with. Where changes of one coordinate were seen again and again, most steps change
    /// several at once.
    #[inline]
    pub(super) fn first_attempt(&self, random: &mut Random) -> usize {
        match self {
            RegionSchedule::Adaptive(adaptive)
                if adaptive.seen_nearby >= adaptive.neighbours
                    && random.index(AdaptiveRegion::NEARBY_INTERVAL) > 0 =>
            {
                AdaptiveRegion::TRIES_PER_COORDINATE
            }
            _ => 0,
        }
    }

    /// Learns whether a change of one coordinate was seen before.
    #[inline]
    pub(super) fn learn_nearby(&mut self, is_seen: bool) {
        if let RegionSchedule::Adaptive(adaptive) = self {
            adaptive.seen_nearby = if is_seen { adaptive.seen_nearby.saturating_add(1) } else { 0 };
        }
    }

    /// Whether each coordinate had [`AdaptiveRegion::TURNS_BEFORE_STALL`] turns since the last improvement.
    fn has_stalled(&self, dimension: usize) -> bool {
        match self {
            RegionSchedule::Adaptive(adaptive) => {
                adaptive.stalled / AdaptiveRegion::TURNS_BEFORE_STALL >= dimension as u64
            }
            _ => false,
        }
    }

    /// Draws whether the next draw is from the whole axis instead of the region.
    pub(super) fn leaves_region(&self, random: &mut Random) -> bool {
        self.is_adaptive() && random.chance(AdaptiveRegion::WHOLE_AXIS_SHARE)
    }

    /// Checks the invariants of a deserialized state.
    pub(super) fn is_sound(&self, space: &Space) -> bool {
        match self {
            RegionSchedule::WholeSpace => true,
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
                    && adaptive.last < space.dimension() as u64
                    && adaptive.stride <= space.dimension() as u64
                    && adaptive.stalled < ID_HEADROOM
                    && adaptive.neighbours == neighbours(space)
                    && adaptive.seen_nearby < ID_HEADROOM
                    && adaptive.restarts == space.is_continuous()
                    && adaptive.start < ID_HEADROOM
                    && adaptive.runs < ID_HEADROOM
                    && adaptive.horizon.is_none_or(|horizon| horizon < u64::MAX / 2)
                    && adaptive.pace > 0.0
                    && adaptive.pace <= AdaptiveRegion::INITIAL_PACE
            }
        }
    }
}

impl AdaptiveRegion {
    /// The least number of evaluations per coordinate that a run is planned for, if the budget allows. More
    /// do not help: on 24 functions of BBOB with n = 5 and 3000 n evaluations, one run reaches 43.6 % of
    /// the targets, runs of 1000 n 45.9 %, of 500 n 46.1 % and of 300 n 47.1 %, the last two with losses on
    /// separable functions.
    const MIN_RUN: u64 = 1000;
    /// The evaluations per coordinate that must be left for another run after convergence.
    const MIN_LAST_RUN: u64 = 20;
    /// The initial value of a.
    const INITIAL_PACE: f64 = 1.5;
    /// The rate of improvements at which the width stays the same.
    const TARGET_SUCCESS_RATE: f64 = 0.2;
    /// The share of the budget after which it no longer limits the width.
    const EXPLORATION_SHARE: f64 = 0.95;
    /// The share of draws from the whole axis.
    const WHOLE_AXIS_SHARE: f64 = 0.05;
    /// Draws of points that were seen before after which one more coordinate is redrawn.
    pub(super) const TRIES_PER_COORDINATE: usize = 4;
    /// Where changes of one coordinate were seen, one step in so many tries them first nevertheless.
    const NEARBY_INTERVAL: usize = 8;
    /// Turns of each coordinate without an improvement after which the search has stalled.
    const TURNS_BEFORE_STALL: u64 = 3;

    pub(super) fn new(space: &Space, budget: Option<u64>) -> Self {
        // In a discrete space the region need not be narrower than a single value.
        let count = |axis: Axis| axis.count().map_or(f64::INFINITY, |count| count as f64);
        let counts = space.axes().map(|(_, axis)| count(axis));
        let narrowest = (1.0 / counts.fold(1.0, f64::max)).max(1e-10);
        let dimension = space.dimension();
        AdaptiveRegion {
            budget,
            start: 0,
            horizon: budget.map(|budget| horizon(budget, dimension)),
            restarts: space.is_continuous(),
            runs: 0,
            has_converged: false,
            width: 1.0,
            narrowest,
            pace: AdaptiveRegion::INITIAL_PACE,
            stalled: 0,
            left: 0,
            last: 0,
            stride: 1,
            neighbours: neighbours(space),
            seen_nearby: 0,
        }
    }

    /// Starts the next run after `told` evaluations, if this one is over. Returns whether it did. Without a
    /// budget, the run is planned for as many evaluations as there were before.
    #[inline]
    fn restart(&mut self, told: u64, dimension: usize) -> bool {
        let used = told.saturating_sub(self.start);
        let is_over = self.has_converged || self.horizon.is_some_and(|horizon| used >= horizon);
        // First, as it is all that most steps need.
        if !is_over || !self.restarts {
            return false;
        }
        let least = AdaptiveRegion::MIN_LAST_RUN.saturating_mul(dimension as u64);
        let is_last = self.budget.is_some_and(|budget| budget.saturating_sub(told) < least);
        if is_last {
            return false;
        }
        self.start = told;
        self.horizon = Some(match self.budget {
            Some(budget) => horizon(budget - told, dimension),
            None => told,
        });
        self.runs += 1;
        self.has_converged = false;
        (self.width, self.pace, self.stalled) = (1.0, AdaptiveRegion::INITIAL_PACE, 0);
        true
    }

    /// Applies the lower limit of the width after `told` evaluations.
    fn widen_by_budget(&mut self, told: u64) {
        let by_budget = self.horizon.map_or(0.0, |budget| {
            let told = told.saturating_sub(self.start);
            let left =
                1.0 - told as f64 / (AdaptiveRegion::EXPLORATION_SHARE * budget.max(1) as f64);
            let left = left.max(0.0);
            left * left * left.sqrt()
        });
        self.width = self.width.max(by_budget);
        debug_assert!(self.width > 0.0 && self.width <= 1.0, "a width is a fraction: {self:?}");
    }

    /// Advances by a stride that is coprime to the dimension, so that every coordinate is visited once.
    /// Start and stride are random. This is as good here as a random permutation, and needs no memory.
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
        // Both are at most n, so that this is the remainder, without a division.
        let next = self.last + self.stride;
        self.last = if next < n { next } else { next - n };
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
            self.has_converged = self.restarts;
            self.width = 1.0;
            self.pace *= 0.5;
        }
    }
}

/// The evaluations of the next run: the remaining ones, divided into runs of at least
/// [`AdaptiveRegion::MIN_RUN`] per coordinate.
fn horizon(remaining: u64, dimension: usize) -> u64 {
    let shortest = AdaptiveRegion::MIN_RUN.saturating_mul(dimension as u64);
    remaining / (remaining / shortest.max(1)).max(1)
}

/// The number of points that differ from a point in one coordinate; unlimited if a coordinate is continuous.
fn neighbours(space: &Space) -> u64 {
    let others = |axis: Axis| axis.count().map_or(u64::MAX, |count| count - 1);
    let along = space.axes().map(|(range, axis)| others(axis).saturating_mul(range.len() as u64));
    along.fold(0, u64::saturating_add)
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
    use crate::space::SpaceBuilder;

    #[test]
    fn every_coordinate_is_visited_once_per_permutation() {
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
    fn where_all_neighbours_were_seen_most_steps_change_several_coordinates() {
        let of = |builder: SpaceBuilder| {
            let space = builder.build().unwrap();
            RegionSchedule::Adaptive(AdaptiveRegion::new(&space, None))
        };
        let mut random = Random::new(1);
        let mut skips = |schedule: &RegionSchedule| {
            (0..800).filter(|_| schedule.first_attempt(&mut random) > 0).count()
        };
        let discrete = Space::builder().integers("i", 2, 0, 4).boolean("b");
        let mut schedule = of(discrete.clone());
        (0..8).for_each(|_| schedule.learn_nearby(true));
        assert_eq!(skips(&schedule), 0, "it has nine neighbours");
        schedule.learn_nearby(true);
        assert!((650..750).contains(&skips(&schedule)));
        schedule.learn_nearby(false);
        assert_eq!(skips(&schedule), 0);
        let mut mixed = of(discrete.real("x", 0.0, 1.0));
        (0..1000).for_each(|_| mixed.learn_nearby(true));
        assert_eq!(skips(&mixed), 0);
    }

    #[test]
    fn a_large_budget_is_divided_into_runs() {
        let space = Space::cube(10, 0.0, 1.0).unwrap();
        let starts = |budget: u64| {
            let mut adaptive = AdaptiveRegion::new(&space, Some(budget));
            let mut starts: Vec<u64> = Vec::new();
            for told in 0..30_000 {
                if adaptive.restart(told, 10) {
                    starts.push(told);
                }
                adaptive.widen_by_budget(told);
                // An improvement in five outcomes keeps the width.
                adaptive.learn(told % 5 == 0, 10.0);
            }
            starts
        };
        assert_eq!(starts(30_000), vec![10_000, 20_000]);
        assert!(starts(19_000).is_empty());
        let mut adaptive = AdaptiveRegion::new(&space, None);
        while !adaptive.has_converged {
            adaptive.learn(false, 10.0);
        }
        assert!(adaptive.restart(700, 10) && !adaptive.restart(701, 10));
        assert_eq!((adaptive.runs, adaptive.horizon), (1, Some(700)));
    }

    #[test]
    fn the_width_follows_the_limit_of_the_budget_and_then_converges() {
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
