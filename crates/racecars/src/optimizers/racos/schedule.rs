//! When and how the search region shrinks: as in the paper, by given gamma and rho, or by itself.

use crate::random::{Random, permuted};
use crate::space::{Region, Space};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Schedule {
    /// The region is the whole space: RACOS and SRACOS.
    Still,
    /// Algorithm 4: at each step, with probability rho, the region becomes gamma^k of the space
    /// around the best point, and k grows by one.
    Fixed { gamma: f64, rho: f64 },
    /// The region follows success and the budget.
    Adaptive(Adaptive),
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
pub(super) struct Adaptive {
    budget: Option<u64>,
    /// The width, as a share of the space.
    width: f64,
    /// The width at which the search has converged: it widens again, and takes its time.
    narrowest: f64,
    /// a: how quickly the width follows success.
    pace: f64,
    /// Whether the best point is no longer the region's centre.
    has_moved: bool,
    /// Outcomes since the last improvement.
    stalled: u64,
    /// The permutation of the coordinates that is on, and the place in it.
    permutation: u64,
    place: u64,
}

impl Schedule {
    pub(super) fn fixed(gamma: f64, rho: f64) -> Self {
        Schedule::Fixed { gamma, rho }
    }

    pub(super) fn adaptive(space: &Space, budget: Option<u64>) -> Self {
        Schedule::Adaptive(Adaptive::new(space, budget))
    }

    /// Before a step, `told` evaluations being known: perhaps changes the region around `best`. The
    /// region is taken anew from the whole space each time, not from within the last one.
    pub(super) fn step(
        &mut self,
        region: &mut Option<Region>,
        best: &[f64],
        told: u64,
        random: &mut Random,
    ) {
        let fraction = match self {
            Schedule::Still => return,
            Schedule::Fixed { gamma, rho } => {
                if !random.chance(*rho) {
                    return;
                }
                // gamma^k as a product, which is the same number on every machine; powf is not.
                *gamma * region.as_ref().map_or(1.0, Region::fraction)
            }
            Schedule::Adaptive(adaptive) => adaptive.fraction(told),
        };
        let key = random.bits();
        match region {
            Some(region) if !self.recenters() => region.resize(fraction, key),
            Some(region) => region.recenter(best, fraction, key),
            None => {
                let new = Region::new(best, fraction, key);
                let is_adaptive = matches!(self, Schedule::Adaptive(_));
                *region = Some(if is_adaptive { new.keep_neighbours() } else { new });
            }
        }
    }

    /// Whether the region's centre is to be set anew, which costs a copy.
    fn recenters(&mut self) -> bool {
        match self {
            Schedule::Adaptive(adaptive) => std::mem::take(&mut adaptive.has_moved),
            _ => true,
        }
    }

    /// Learns how an outcome compares with the best before it: equal ones move the best point, too.
    /// Those of points that were not asked say nothing about the region.
    pub(super) fn learn(&mut self, compared: Ordering, is_asked: bool, dimension: usize) {
        if let Schedule::Adaptive(adaptive) = self {
            adaptive.has_moved |= compared.is_le();
            if is_asked {
                adaptive.learn(compared.is_lt(), dimension as f64);
            }
        }
    }

    /// The coordinate to redraw, if it is not any.
    pub(super) fn next_coordinate(
        &mut self,
        dimension: usize,
        random: &mut Random,
    ) -> Option<usize> {
        let Schedule::Adaptive(adaptive) = self else { return None };
        if adaptive.place >= dimension as u64 {
            (adaptive.place, adaptive.permutation) = (0, random.bits());
        }
        let index = permuted(adaptive.place, dimension as u64, adaptive.permutation);
        adaptive.place += 1;
        Some(index as usize)
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
            Schedule::Adaptive(adaptive) => {
                adaptive.stalled / Adaptive::PATIENCE >= dimension as u64
            }
            _ => false,
        }
    }

    /// Whether a draw is from the whole axis rather than from the region.
    pub(super) fn leaves_region(&self, random: &mut Random) -> bool {
        matches!(self, Schedule::Adaptive(_)) && random.chance(Adaptive::OUTSIDE)
    }

    /// Whether it is one that this code could have written.
    pub(super) fn is_sound(&self) -> bool {
        match self {
            Schedule::Still => true,
            Schedule::Fixed { gamma, rho } => {
                *gamma > 0.0 && *gamma < 1.0 && (0.0..=1.0).contains(rho)
            }
            Schedule::Adaptive(adaptive) => {
                let is_share = |x: f64| x > 0.0 && x <= 1.0;
                is_share(adaptive.width)
                    && is_share(adaptive.narrowest)
                    && adaptive.pace > 0.0
                    && adaptive.pace <= Adaptive::PACE
            }
        }
    }
}

impl Adaptive {
    /// a, to begin with.
    const PACE: f64 = 1.5;
    /// The share of improvements that keeps the width.
    const SUCCESS: f64 = 0.2;
    /// The share of the budget after which it no longer widens the region.
    const EXPLORATION: f64 = 0.95;
    /// The share of draws from the whole axis.
    const OUTSIDE: f64 = 0.05;
    /// How many turns each coordinate has without an improvement before several are redrawn at once.
    const PATIENCE: u64 = 3;

    fn new(space: &Space, budget: Option<u64>) -> Self {
        // Where all is discrete, nothing is left to narrow below a single value.
        let counts = space.entries().iter().map(|entry| space.axis(entry.range().start).count());
        let most = counts.map(|count| count.map_or(f64::INFINITY, |count| count as f64));
        let narrowest = (1.0 / most.fold(1.0, f64::max)).max(1e-10);
        Adaptive {
            budget,
            width: 1.0,
            narrowest,
            pace: Adaptive::PACE,
            has_moved: true,
            stalled: 0,
            permutation: 0,
            place: u64::MAX,
        }
    }

    /// The share of the space that the region is after `told` evaluations. What the budget widens is not
    /// narrowed by a lack of success.
    fn fraction(&mut self, told: u64) -> f64 {
        let by_budget = self.budget.map_or(0.0, |budget| {
            let left = 1.0 - told as f64 / (Adaptive::EXPLORATION * budget.max(1) as f64);
            let left = left.max(0.0);
            left * left * left.sqrt()
        });
        self.width = self.width.max(by_budget);
        self.width
    }

    fn learn(&mut self, is_better: bool, n: f64) {
        self.stalled = if is_better { 0 } else { self.stalled.saturating_add(1) };
        if is_better {
            self.width = (self.width * (1.0 + self.pace / n)).min(1.0);
            return;
        }
        let narrowing = self.pace * Adaptive::SUCCESS / (1.0 - Adaptive::SUCCESS);
        self.width /= 1.0 + narrowing / n;
        if self.width < self.narrowest {
            self.width = 1.0;
            self.pace *= 0.5;
        }
    }
}
