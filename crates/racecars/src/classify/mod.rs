//! The classifier: RACOS's randomized coordinate shrinking (Algorithm 2 of the paper, `Training`)
//! and sampling of a new point from the learned box.
//!
//! Training starts from the whole space. It cuts one random coordinate at a time, between a positive
//! point x+ and a negative point that is still inside, until no negative is left. It only looks at
//! coordinates that are cut, so its cost does not grow with the dimension.
//!
//! `training` learns a box, from `examples`; this file has what a step draws from it.
//!
//! A sample needs only the part of the box that concerns its redrawn coordinates, and only that part is
//! learned. A continuous coordinate needs training if a cut falls on it: see `FirstUncertainCut`. A discrete
//! coordinate needs training while a negative inside the box differs from x+ there, and in a discrete space
//! only with the negatives that are connected with that one: see `Classifier::collect_related`. Samples have
//! the same distribution as those from complete boxes.
//!
//! Departures from the paper, taken from the public implementation that the published runs used (see
//! docs/paper.md): a negative is also excluded if a cut falls exactly on it, and the new point is a
//! copy of x+ in which only a few *uncertain* coordinates are redrawn. Cuts of discrete coordinates are
//! only made where x+ and the negative differ.

mod cuts;
mod examples;
mod table;
#[cfg(test)]
mod tests;
mod training;

pub(crate) use examples::Examples;
pub(crate) use table::{DifferenceTable, all_differences};

use crate::random::Random;
use crate::space::{Axis, Interval, SearchRegion, draw_other_value};
use cuts::Cuts;
use training::{CutOrder, FirstUncertainCut};

/// The learned box around x+, stored as the few coordinates in which it is smaller than the space.
/// Transient: every proposal learns a new box.
#[derive(Debug, Default)]
pub(crate) struct Classifier {
    cuts: Cuts,
    /// Indices of the negatives inside the box that training is to exclude.
    inside: Vec<u32>,
    /// The negatives that training has excluded, or is about to, as bits. Empty in continuous spaces, and before
    /// training.
    excluded: Vec<u64>,
    /// The coordinates to redraw.
    uncertain: Vec<usize>,
    /// The redrawn coordinates with their values.
    changes: Vec<(usize, f64)>,
    /// Discrete coordinates in which x+ and a negative differ.
    differences: Vec<usize>,
    /// The coordinates that connect the related negatives; the same as bits, where there is a table of differences.
    connections: Vec<usize>,
    connected: Vec<u64>,
    /// Cached by the number of uncertain coordinates modulo the length.
    first_cuts: [FirstUncertainCut; 4],
}
/// Which coordinates of x+ are redrawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Uncertain {
    /// The number of redrawn coordinates.
    pub(crate) count: usize,
    /// A coordinate to include, unless it is fixed to x+'s value. The others are random.
    pub(crate) first: Option<usize>,
    /// Whether discrete coordinates get other values than x+'s, if they can have one.
    pub(crate) must_change: bool,
    /// Whether samples that change few coordinates have been seen. Then the box that excludes the negatives, which
    /// are as near, does not fix unordered coordinates.
    pub(crate) is_far: bool,
    /// Whether the box leaves categories free that must change: only x+'s value and those that were seen are excluded.
    ///
    /// Departure from the paper: a negative says that one value of three or more is bad, and the box fixes the
    /// coordinate to x+'s value. A negative that is as good as x+ stays, so that the other values would never be tried,
    /// and searches used to end one coordinate short of the optimum.
    pub(crate) frees_categories: bool,
}

impl Uncertain {
    /// Whether the box cannot fix coordinates of this axis to x+'s value.
    #[inline]
    fn frees(&self, axis: Axis) -> bool {
        let has_others = matches!(axis, Axis::Unordered { last } if last > 1.0);
        self.is_far || (self.frees_categories && self.must_change && has_others)
    }
}
/// Random attempts in a row to find one more uncertain coordinate, before the complete box is learned and
/// all coordinates are searched.
const MAX_RANDOM_TRIES: usize = 16;
impl Classifier {
    /// Draws a sample from a box learned around x+ and projected on `region` (Algorithm 4, `Train`, `Proj`
    /// and `Sample`): a copy of x+ in which the `uncertain` coordinates are redrawn. Returns the sample's
    /// key, or `None` if `is_seen` refuses it. [`Classifier::write`] writes the sample.
    #[inline]
    pub(crate) fn draw(
        &mut self,
        examples: Examples<'_>,
        region: Option<SearchRegion>,
        uncertain: Uncertain,
        random: &mut Random,
        is_seen: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        let space = examples.space;
        self.forget();
        self.choose_uncertain(space.dimension(), uncertain, random);
        let is_unordered = |&index: &usize| matches!(space.axis(index), Axis::Unordered { .. });
        if !space.is_continuous() && self.uncertain.iter().all(is_unordered) {
            // Values of unordered axes do not depend on the box, so a sample that was seen needs none.
            let key = self.redraw(examples, region, uncertain, random);
            if is_seen(key) {
                return None;
            }
            let is_free = |&index: &usize| uncertain.frees(space.axis(index));
            if self.uncertain.iter().all(is_free) || !self.replace_fixed(examples, random) {
                return Some(key);
            }
        } else {
            self.replace_fixed(examples, random);
        }
        let continuous = space.continuous_count();
        if continuous > 0 && !self.is_complete(examples) {
            self.train_continuous(examples, continuous, random);
        }
        let key = self.redraw(examples, region, uncertain, random);
        (!is_seen(key)).then_some(key)
    }

    /// Writes the last sample, which was drawn from a box around `positive`.
    #[inline]
    pub(crate) fn write(&self, positive: &[f64], point: &mut [f64]) {
        point.copy_from_slice(positive);
        self.changes.iter().for_each(|&(index, new)| point[index] = new);
    }

    /// Learns a complete box around x+, projected on `region`: one interval per coordinate of
    /// a continuous space. [`Classifier::draw`] learns only the part that it needs.
    pub(crate) fn learn(
        &mut self,
        examples: Examples<'_>,
        region: Option<SearchRegion>,
        random: &mut Random,
    ) -> Vec<Interval> {
        self.forget();
        self.train_all(examples, CutOrder::Uniform, random);
        let interval = |index| self.interval(index, examples.space.axis(index), region);
        (0..examples.space.dimension()).map(interval).collect()
    }

    /// Forgets the last box.
    #[inline]
    fn forget(&mut self) {
        self.cuts.clear();
        self.excluded.clear();
    }

    /// Whether all negatives of a space that is not continuous have been learned.
    fn is_complete(&self, examples: Examples<'_>) -> bool {
        let mut parts = self.excluded.iter().enumerate();
        !self.excluded.is_empty() && parts.all(|(word, set)| *set == examples.all(word))
    }

    /// The learned interval of a continuous or ordered axis, projected on the region.
    #[inline]
    fn interval(&self, index: usize, axis: Axis, region: Option<SearchRegion>) -> Interval {
        let learned = self.cuts.get(index).map_or(axis.extent(), |cut| cut.interval);
        match region {
            None => learned,
            // If box and region do not intersect, the region is used.
            Some(region) => {
                let allowed = region.interval(index, axis);
                learned.intersection(allowed).unwrap_or(allowed)
            }
        }
    }

    /// Redraws the uncertain coordinates of x+ from the learned box and the region. Returns the key of the
    /// sample.
    #[inline]
    fn redraw(
        &mut self,
        examples: Examples<'_>,
        region: Option<SearchRegion>,
        uncertain: Uncertain,
        random: &mut Random,
    ) -> u64 {
        let Examples { space, positive, .. } = examples;
        let mut key = positive.key;
        self.changes.clear();
        for &index in &self.uncertain {
            let axis = space.axis(index);
            let old = positive.point[index];
            let new = match axis {
                Axis::Unordered { last } => match region.and_then(|region| region.subset(index)) {
                    Some(subset) => subset.draw(last as u64 + 1, random),
                    None if uncertain.must_change => draw_other_value(last, old, random),
                    None => axis.draw_within(axis.extent(), random),
                },
                _ => {
                    let interval = self.interval(index, axis, region);
                    match uncertain.must_change {
                        true => axis.draw_other_within(interval, old, random),
                        false => axis.draw_within(interval, random),
                    }
                }
            };
            self.changes.push((index, new));
            key = space.changed_key(key, index, axis, old, new);
        }
        key
    }

    /// Chooses distinct coordinates.
    #[inline]
    fn choose_uncertain(&mut self, dimension: usize, uncertain: Uncertain, random: &mut Random) {
        let wanted = uncertain.count;
        self.uncertain.clear();
        self.uncertain.extend(uncertain.first);
        // Finding most of the coordinates by trial takes long.
        if wanted > dimension / 2 && wanted > 1 && self.uncertain.is_empty() {
            return self.select(dimension, wanted, random);
        }
        while self.uncertain.len() < wanted {
            let index = random.index(dimension);
            if !self.uncertain.contains(&index) {
                self.uncertain.push(index);
            }
        }
    }

    /// Replaces the uncertain coordinates that the box fixes to x+'s value by others. Returns whether there
    /// were any. If all coordinates are fixed, one of them is chosen.
    #[inline]
    fn replace_fixed(&mut self, examples: Examples<'_>, random: &mut Random) -> bool {
        let wanted = self.uncertain.len();
        let mut place = 0;
        while let Some(&index) = self.uncertain.get(place) {
            if self.is_fixed(examples, index, random) {
                self.uncertain.swap_remove(place);
            } else {
                place += 1;
            }
        }
        if place == wanted {
            return false;
        }
        let mut tries = MAX_RANDOM_TRIES;
        while self.uncertain.len() < wanted && tries > 0 {
            let index = random.index(examples.space.dimension());
            if self.uncertain.contains(&index) || self.is_fixed(examples, index, random) {
                tries -= 1;
            } else {
                self.uncertain.push(index);
                tries = MAX_RANDOM_TRIES;
            }
        }
        if self.uncertain.len() < wanted {
            self.train_all(examples, CutOrder::Uniform, random);
            self.select(examples.space.dimension(), wanted, random);
            if self.uncertain.is_empty() {
                let cuts = self.cuts.iter();
                let place = random.index(cuts.len());
                self.uncertain.extend(cuts.as_slice()[place..].first().map(|cut| cut.index));
            }
        }
        true
    }

    /// Whether the box fixes coordinate `index` to x+'s value. Learns the part of the box that concerns it.
    #[inline]
    fn is_fixed(&mut self, examples: Examples<'_>, index: usize, random: &mut Random) -> bool {
        let space = examples.space;
        if space.is_continuous() || matches!(space.axis(index), Axis::Continuous { .. }) {
            return false;
        }
        self.train_discrete(examples, index, random);
        self.cuts.fixes(index)
    }

    /// Adds uncertain coordinates until there are `wanted`, or all that are not fixed. All subsets are equally
    /// likely: selection sampling (Knuth), in one pass.
    fn select(&mut self, dimension: usize, wanted: usize, random: &mut Random) {
        let Classifier { cuts, uncertain, .. } = self;
        let chosen = uncertain.len();
        let mut left = dimension - chosen - cuts.iter().filter(|cut| cut.is_fixed).count();
        let mut needed = left.min(wanted - chosen);
        for index in 0..dimension {
            if cuts.fixes(index) || uncertain[..chosen].contains(&index) {
                continue;
            }
            if random.index(left) < needed {
                uncertain.push(index);
                needed -= 1;
            }
            left -= 1;
        }
    }
}
