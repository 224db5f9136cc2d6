//! The classifier: RACOS's randomized coordinate shrinking (Algorithm 2 of the paper, `Training`)
//! and sampling of a new point from the learned box.
//!
//! Training starts from the whole space. It cuts one random coordinate at a time, between a positive
//! point x+ and a negative point that is still inside, until no negative is left. It only looks at
//! coordinates that are cut, so its cost does not grow with the dimension.
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

mod table;

pub(crate) use table::DifferenceTable;

use crate::random::Random;
use crate::sample::Sample;
use crate::space::{Axis, Interval, SearchRegion, Space};
use table::{bits, words};

/// The learned box around x+, stored as the few coordinates in which it is smaller than the space.
/// Transient: every proposal learns a new box.
#[derive(Debug, Default)]
pub(crate) struct Classifier {
    cuts: Vec<Cut>,
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
    /// The coordinates that connect the related negatives.
    connections: Vec<usize>,
    /// Cached by the number of uncertain coordinates modulo the length.
    first_cuts: [FirstUncertainCut; 4],
}

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
    fn all(&self, word: usize) -> u64 {
        u64::MAX >> (64 - (self.negatives.len() - 64 * word).min(64))
    }

    /// The negatives from `64 * word` on that differ from x+ in a coordinate, as bits.
    #[inline]
    fn differing(&self, index: usize, word: usize) -> u64 {
        if let Some(table) = self.differences {
            return table.differing(index, word);
        }
        let plus = self.positive.point[index];
        let negatives = self.negatives[64 * word..].iter().take(64).enumerate();
        negatives.fold(0, |set, (i, negative)| set | u64::from(negative.point[index] != plus) << i)
    }

    /// Whether a negative differs from x+ in a coordinate.
    #[inline]
    fn differs(&self, negative: usize, index: usize) -> bool {
        match self.differences {
            Some(table) => table.differs(negative, index),
            None => self.negatives[negative].point[index] != self.positive.point[index],
        }
    }

    /// [`all_differences`] of x+ and a negative.
    #[inline]
    fn differences_of(&self, negative: usize, found: impl FnMut(usize) -> bool) -> bool {
        match self.differences {
            Some(table) => table.differences(negative, found),
            None => all_differences(&self.positive.point, &self.negatives[negative].point, found),
        }
    }
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

#[derive(Debug)]
struct Cut {
    index: usize,
    /// The remaining part of a continuous or ordered axis.
    interval: Interval,
    /// Whether an unordered axis is restricted to x+'s value.
    is_fixed: bool,
}

/// Random attempts in a row to find one more uncertain coordinate, before the complete box is learned and
/// all coordinates are searched.
const MAX_RANDOM_TRIES: usize = 16;
/// A difference between two points is searched by trying one in this many coordinates at random, which
/// takes as long as reading both points, and then by reading them.
const SHARE_TRIED: usize = 16;
/// The number of differences up to which they are listed. If there are more, one is found by trying
/// random coordinates.
const MAX_LISTED: usize = 32;
/// The number of coordinates that may connect related negatives. If there are more, all negatives are
/// taken: they have many coordinates in common, so a few cuts exclude them.
const MAX_CONNECTIONS: usize = 8;

/// The distribution of the first cut that falls on an uncertain coordinate, among the cuts of continuous
/// coordinates.
///
/// Each cut excludes at least one negative, so there are at most `negatives` cuts. Their coordinates
/// are independent and uniform, so the index of the first such cut is geometric.
#[derive(Debug, Default, Clone, PartialEq)]
struct FirstUncertainCut {
    dimension: usize,
    uncertain: usize,
    negatives: usize,
    /// The logarithm of the probability that a cut misses the uncertain coordinates.
    ln_miss: f64,
    /// The probability that `negatives` cuts all miss them.
    miss_all: f64,
}

impl FirstUncertainCut {
    fn new(dimension: usize, uncertain: usize, negatives: usize) -> Self {
        let ln_miss = (-(uncertain as f64) / dimension as f64).ln_1p();
        let miss_all = (negatives as f64 * ln_miss).exp();
        FirstUncertainCut { dimension, uncertain, negatives, ln_miss, miss_all }
    }

    /// Draws the number of cuts before the first one on an uncertain coordinate; `None` if there is
    /// no such cut.
    fn draw(&self, random: &mut Random) -> Option<usize> {
        let u = 1.0 - random.unit();
        // P(at least t misses) = exp(t ln_miss), inverted.
        (u > self.miss_all).then(|| (u.ln() / self.ln_miss) as usize)
    }
}

/// The order in which training draws continuous coordinates.
#[derive(Clone, Copy)]
enum CutOrder {
    /// Every coordinate is uniformly random.
    Uniform,
    /// This many certain coordinates, then an uncertain one, then uniformly random ones.
    UncertainAfter(usize),
}

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
        let cut = self.cuts.iter().find(|cut| cut.index == index);
        let learned = cut.map_or(axis.extent(), |cut| cut.interval);
        match region {
            None => learned,
            // If box and region do not intersect, the region is used.
            Some(region) => {
                let allowed = region.interval(index, axis);
                learned.intersection(allowed).unwrap_or(allowed)
            }
        }
    }

    /// Learns all negatives, if a cut falls on an uncertain continuous coordinate.
    #[inline]
    fn train_continuous(&mut self, examples: Examples<'_>, continuous: usize, random: &mut Random) {
        let space = examples.space;
        let uncertain = if space.is_continuous() {
            self.uncertain.len()
        } else {
            let is_real = |&&index: &&usize| matches!(space.axis(index), Axis::Continuous { .. });
            self.uncertain.iter().filter(is_real).count()
        };
        if uncertain == 0 {
            return;
        }
        let negatives = examples.negatives.len();
        let first_cut = &mut self.first_cuts[uncertain % 4];
        if (first_cut.dimension, first_cut.uncertain, first_cut.negatives)
            != (continuous, uncertain, negatives)
        {
            *first_cut = FirstUncertainCut::new(continuous, uncertain, negatives);
        }
        if let Some(misses) = first_cut.draw(random) {
            self.train_all(examples, CutOrder::UncertainAfter(misses), random);
        }
    }

    /// Learns the part of the box that concerns a discrete coordinate: until no negative inside the box
    /// differs from x+ there, so that no cut can fall on it any more.
    #[inline]
    fn train_discrete(&mut self, examples: Examples<'_>, index: usize, random: &mut Random) {
        let parts = 0..words(examples.negatives.len());
        if parts.clone().all(|word| examples.differing(index, word) == 0) {
            return;
        }
        if !examples.space.is_discrete() {
            // Continuous coordinates connect all negatives.
            return self.train_all(examples, CutOrder::Uniform, random);
        }
        self.inside.clear();
        self.excluded.resize(parts.len(), 0);
        parts.for_each(|word| self.collect(word, examples.differing(index, word)));
        if self.inside.is_empty() {
            return;
        }
        self.collect_related(examples, index);
        while self.inside.iter().any(|&i| examples.differs(i as usize, index)) {
            self.cut_once(examples, CutOrder::Uniform, 0, random);
        }
        for &i in &self.inside {
            self.excluded[i as usize / 64] &= !(1 << (i % 64));
        }
    }

    /// Adds to `inside` those of 64 negatives, from `64 * word` on, that have not been learned.
    #[inline]
    fn collect(&mut self, word: usize, negatives: u64) {
        let new = negatives & !self.excluded[word];
        self.excluded[word] |= new;
        self.inside.extend(bits(new).map(|i| (64 * word + i) as u32));
    }

    /// Learns all negatives that have not been learned.
    fn train_all(&mut self, examples: Examples<'_>, order: CutOrder, random: &mut Random) {
        self.inside.clear();
        self.collect_all(examples);
        self.train(examples, order, random);
    }

    /// Adds to `inside` all negatives that have not been learned.
    fn collect_all(&mut self, examples: Examples<'_>) {
        let negatives = examples.negatives.len();
        if examples.space.is_continuous() {
            self.inside.extend(0..negatives as u32);
            return;
        }
        self.excluded.resize(words(negatives), 0);
        (0..words(negatives)).for_each(|word| self.collect(word, examples.all(word)));
    }

    /// Completes `inside`, the negatives of a discrete space that differ from x+ in coordinate `index`, by
    /// those that share another difference with one of them, and so on. Cuts that exclude the other
    /// negatives are at other coordinates and exclude none of these.
    fn collect_related(&mut self, examples: Examples<'_>, index: usize) {
        self.connections.clear();
        self.connections.push(index);
        let (mut next, mut examined) = (1, 0);
        loop {
            while let Some(&i) = self.inside.get(examined) {
                examined += 1;
                let connections = &mut self.connections;
                let are_few = examples.differences_of(i as usize, |at| {
                    if !connections.contains(&at) {
                        connections.push(at);
                    }
                    connections.len() <= MAX_CONNECTIONS
                });
                if !are_few {
                    return self.collect_all(examples);
                }
            }
            let Some(&connection) = self.connections.get(next) else { return };
            next += 1;
            for word in 0..self.excluded.len() {
                self.collect(word, examples.differing(connection, word));
            }
        }
    }

    /// Cuts the box until none of the negatives in `inside` is left in it. In a discrete space, a negative
    /// equal to x+ cannot be excluded and is ignored.
    fn train(&mut self, examples: Examples<'_>, order: CutOrder, random: &mut Random) {
        let mut drawn = 0;
        while !self.inside.is_empty() {
            self.cut_once(examples, order, drawn, random);
            drawn += 1;
        }
        let positive = &examples.positive.point;
        debug_assert!(
            self.cuts
                .iter()
                .all(|cut| { cut.is_fixed || cut.interval.contains(positive[cut.index]) }),
            "a learned box contains its positive point"
        );
    }

    /// Cuts the box between x+ and a random negative inside, after `drawn` other cuts.
    #[inline]
    fn cut_once(
        &mut self,
        examples: Examples<'_>,
        order: CutOrder,
        drawn: usize,
        random: &mut Random,
    ) {
        let chosen = self.inside[random.index(self.inside.len())];
        match self.next_cut(examples, chosen, order, drawn, random) {
            Some(index) => self.cut(examples, index, chosen, random),
            None => self.inside.retain(|&i| i != chosen),
        }
    }

    /// Draws a coordinate whose cut can exclude the chosen negative: any continuous one, or a discrete one
    /// in which it differs from x+. `None` if there is none.
    #[inline]
    fn next_cut(
        &mut self,
        examples: Examples<'_>,
        chosen: u32,
        order: CutOrder,
        drawn: usize,
        random: &mut Random,
    ) -> Option<usize> {
        let Examples { space, .. } = examples;
        let continuous = space.continuous_count();
        if space.is_continuous() {
            return Some(self.next_continuous(space, continuous, order, drawn, random));
        }
        let is_real =
            |index: usize| continuous > 0 && matches!(space.axis(index), Axis::Continuous { .. });
        let (dimension, chosen) = (space.dimension(), chosen as usize);
        let mut tries = dimension / SHARE_TRIED;
        loop {
            if tries == 0 {
                self.differences.clear();
                let listed = &mut self.differences;
                let are_all = examples.differences_of(chosen, |index| {
                    if !is_real(index) {
                        listed.push(index);
                    }
                    listed.len() < MAX_LISTED
                });
                if are_all {
                    break;
                }
                // They are found by trial, as there are so many.
                tries = usize::MAX;
            }
            tries -= 1;
            let index = random.index(dimension);
            if is_real(index) {
                return Some(self.next_continuous(space, continuous, order, drawn, random));
            }
            if examples.differs(chosen, index) {
                return Some(index);
            }
        }
        let count = continuous + self.differences.len();
        if count == 0 {
            return None;
        }
        let place = random.index(count);
        Some(match place.checked_sub(continuous) {
            Some(place) => self.differences[place],
            None => self.next_continuous(space, continuous, order, drawn, random),
        })
    }

    /// Draws a continuous coordinate.
    #[inline]
    fn next_continuous(
        &self,
        space: &Space,
        continuous: usize,
        order: CutOrder,
        drawn: usize,
        random: &mut Random,
    ) -> usize {
        let mut any = || space.continuous_index(random.index(continuous));
        match order {
            CutOrder::UncertainAfter(misses) if drawn == misses => loop {
                let index = self.uncertain[random.index(self.uncertain.len())];
                if space.is_continuous() || matches!(space.axis(index), Axis::Continuous { .. }) {
                    break index;
                }
            },
            CutOrder::UncertainAfter(misses) if drawn < misses => loop {
                let index = any();
                if !self.uncertain.contains(&index) {
                    break index;
                }
            },
            _ => any(),
        }
    }

    /// Cuts coordinate `index` between x+ and the chosen negative, and drops the excluded negatives. The two
    /// differ there, unless it is continuous.
    fn cut(&mut self, examples: Examples<'_>, index: usize, chosen: u32, random: &mut Random) {
        let Examples { space, positive, negatives, .. } = examples;
        let axis = space.axis(index);
        let plus = positive.point[index];
        let at = |i: u32| negatives[i as usize].point[index];
        let minus = at(chosen);
        match axis {
            Axis::Continuous { .. } => {
                // On a tie the cut is at x+ itself, on a random side.
                if plus < minus || (plus == minus && random.chance(0.5)) {
                    let cut = random.between(plus, minus);
                    self.narrow(index, axis).high = cut;
                    keep(&mut self.inside, |i| at(i) < cut);
                } else {
                    let cut = random.between(minus, plus);
                    self.narrow(index, axis).low = cut;
                    keep(&mut self.inside, |i| at(i) > cut);
                }
            }
            Axis::Ordered { .. } => {
                if plus < minus {
                    let cut = plus + random.below((minus - plus) as u64) as f64;
                    self.narrow(index, axis).high = cut;
                    keep(&mut self.inside, |i| at(i) <= cut);
                } else {
                    let cut = plus - random.below((plus - minus) as u64) as f64;
                    self.narrow(index, axis).low = cut;
                    keep(&mut self.inside, |i| at(i) >= cut);
                }
            }
            Axis::Unordered { .. } => {
                self.cut_at(index, axis).is_fixed = true;
                keep(&mut self.inside, |i| at(i) == plus);
            }
        }
    }

    /// The cut of coordinate `index`; a new one spans the whole axis.
    fn cut_at(&mut self, index: usize, axis: Axis) -> &mut Cut {
        let place = match self.cuts.iter().position(|cut| cut.index == index) {
            Some(place) => place,
            None => {
                self.cuts.push(Cut { index, interval: axis.extent(), is_fixed: false });
                self.cuts.len() - 1
            }
        };
        &mut self.cuts[place]
    }

    fn narrow(&mut self, index: usize, axis: Axis) -> &mut Interval {
        &mut self.cut_at(index, axis).interval
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
            let draw = |interval: Interval, random: &mut Random| match uncertain.must_change {
                true => axis.draw_other_within(interval, old, random),
                false => axis.draw_within(interval, random),
            };
            let new = match axis {
                Axis::Unordered { last } => match region.and_then(|region| region.subset(index)) {
                    Some(subset) => subset.draw(last as u64 + 1, random),
                    None => draw(axis.extent(), random),
                },
                _ => draw(self.interval(index, axis, region), random),
            };
            self.changes.push((index, new));
            key = space.changed_key(key, index, old, new);
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
                self.uncertain.push(self.cuts[random.index(self.cuts.len())].index);
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
        self.cuts.iter().any(|cut| cut.is_fixed && cut.index == index)
    }

    /// Adds uncertain coordinates until there are `wanted`, or all that are not fixed. All subsets are equally
    /// likely: selection sampling (Knuth), in one pass.
    fn select(&mut self, dimension: usize, wanted: usize, random: &mut Random) {
        let Classifier { cuts, uncertain, .. } = self;
        let chosen = uncertain.len();
        let mut left = dimension - chosen - cuts.iter().filter(|cut| cut.is_fixed).count();
        let mut needed = left.min(wanted - chosen);
        for index in 0..dimension {
            let is_fixed = cuts.iter().any(|cut| cut.is_fixed && cut.index == index);
            if is_fixed || uncertain[..chosen].contains(&index) {
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

/// Keeps the indices that satisfy `holds`, in order, without branching on the data.
fn keep(indices: &mut Vec<u32>, holds: impl Fn(u32) -> bool) {
    let mut kept = 0;
    for place in 0..indices.len() {
        let index = indices[place];
        indices[kept] = index;
        kept += usize::from(holds(index));
    }
    indices.truncate(kept);
}

/// Calls `found` with each coordinate in which two points differ, in ascending order, until it returns
/// false. Returns whether it never did. Equal blocks are skipped at the speed of reading them.
#[inline]
pub(crate) fn all_differences(a: &[f64], b: &[f64], mut found: impl FnMut(usize) -> bool) -> bool {
    const BLOCK: usize = 8;
    let (a_blocks, a_rest) = a.as_chunks::<BLOCK>();
    let (b_blocks, b_rest) = b.as_chunks::<BLOCK>();
    for (block, (a, b)) in a_blocks.iter().zip(b_blocks).enumerate() {
        let differ = (0..BLOCK).fold(false, |differ, i| differ | (a[i] != b[i]));
        if differ && !(0..BLOCK).all(|i| a[i] == b[i] || found(block * BLOCK + i)) {
            return false;
        }
    }
    let rest = a.len() - a_rest.len();
    (0..a_rest.len()).all(|i| a_rest[i] == b_rest[i] || found(rest + i))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;

    fn any(count: usize) -> Uncertain {
        Uncertain { count, first: None, must_change: false, is_far: false, frees_categories: false }
    }

    fn samples(space: &Space, count: usize, random: &mut Random) -> Vec<Sample> {
        let draw = |_| {
            let mut point = vec![0.0; space.dimension()].into_boxed_slice();
            space.draw(random, &mut point);
            Sample { key: space.key(&point), point, rank: Outcome::from(0.0).rank() }
        };
        (0..count).map(draw).collect()
    }

    fn mixed() -> Space {
        Space::builder()
            .reals("x", 3, -1.0, 1.0)
            .integers("i", 3, -5, 5)
            .categorical("c", ["a", "b", "c", "d"])
            .log_integer("l", 1, 1000)
            .build()
            .unwrap()
    }

    fn discrete() -> Space {
        let builder = Space::builder().integers("i", 4, 0, 3).categorical("c", ["a", "b", "c"]);
        builder.boolean("b").build().unwrap()
    }

    /// The first sample is positive.
    fn examples<'a>(space: &'a Space, samples: &'a [Sample]) -> Examples<'a> {
        Examples { space, positive: &samples[0], negatives: &samples[1..], differences: None }
    }

    /// Whether the learned box contains this point (the interior, on a continuous axis).
    fn holds(classifier: &Classifier, space: &Space, positive: &[f64], point: &[f64]) -> bool {
        classifier.cuts.iter().all(|cut| {
            let x = point[cut.index];
            let Interval { low, high } = cut.interval;
            match space.axis(cut.index) {
                Axis::Continuous { .. } => low < x && x < high,
                Axis::Ordered { .. } => low <= x && x <= high,
                Axis::Unordered { .. } => x == positive[cut.index],
            }
        })
    }

    #[test]
    fn the_learned_box_contains_the_positive_and_no_negative() {
        let mut random = Random::new(1);
        for space in
            [Space::cube(1, 0.0, 1.0).unwrap(), Space::cube(30, 0.0, 1.0).unwrap(), mixed()]
        {
            let mut classifier = Classifier::default();
            for _ in 0..300 {
                let all = samples(&space, 21, &mut random);
                let (positive, negatives) = (&all[0].point, &all[1..]);
                classifier.forget();
                classifier.train_all(examples(&space, &all), CutOrder::Uniform, &mut random);
                for cut in classifier.cuts.iter().filter(|cut| !cut.is_fixed) {
                    let Interval { low, high } = cut.interval;
                    assert!(low <= positive[cut.index] && positive[cut.index] <= high);
                }
                assert!(!negatives.iter().any(|n| holds(&classifier, &space, positive, &n.point)));
            }
        }
    }

    #[test]
    fn a_complete_box_is_inside_the_region_and_excludes_all_negatives() {
        let (space, mut random) = (Space::cube(6, 0.0, 1.0).unwrap(), Random::new(7));
        let mut classifier = Classifier::default();
        for _ in 0..200 {
            let all = samples(&space, 22, &mut random);
            let region = SearchRegion::new(&all[0].point, 0.4, 0);
            let learned = classifier.learn(examples(&space, &all), Some(region), &mut random);
            for (index, part) in learned.iter().enumerate() {
                let allowed = region.interval(index, space.axis(index));
                assert_eq!(part.intersection(allowed), Some(*part));
                assert!(part.low <= all[0].point[index] && all[0].point[index] <= part.high);
            }
            let outside = |n: &Sample| {
                let mut parts = n.point.iter().zip(&learned);
                parts.any(|(x, part)| *x <= part.low || *x >= part.high)
            };
            assert!(all[1..].iter().all(outside));
        }
    }

    #[test]
    fn in_a_discrete_space_every_different_negative_is_excluded() {
        let (space, mut random) = (discrete(), Random::new(2));
        let mut classifier = Classifier::default();
        for _ in 0..500 {
            let all = samples(&space, 40, &mut random);
            let (positive, negatives) = (&all[0], &all[1..]);
            classifier.forget();
            classifier.train_all(examples(&space, &all), CutOrder::Uniform, &mut random);
            for negative in negatives.iter().filter(|n| n.key != positive.key) {
                assert!(!holds(&classifier, &space, &positive.point, &negative.point));
            }
        }
    }

    #[test]
    fn training_ends_if_all_points_are_equal() {
        let mut random = Random::new(3);
        for space in [Space::cube(5, 0.0, 1.0).unwrap(), mixed(), discrete()] {
            let equal = vec![samples(&space, 1, &mut random)[0].clone(); 21];
            let mut classifier = Classifier::default();
            classifier.forget();
            classifier.train_all(examples(&space, &equal), CutOrder::Uniform, &mut random);
            assert!(classifier.cuts.is_empty() || !space.is_discrete());
        }
    }

    #[test]
    fn a_sample_differs_from_its_positive_in_uncertain_coordinates_only_and_has_the_right_key() {
        let mut random = Random::new(4);
        for space in [mixed(), discrete()] {
            let mut classifier = Classifier::default();
            for uncertain in 1..=space.dimension() {
                for _ in 0..100 {
                    let mut all = samples(&space, 22, &mut random);
                    let center = all.remove(1);
                    let region = SearchRegion::new(&center.point, random.unit(), random.bits());
                    let region = random.chance(0.5).then_some(region);
                    let first = random.chance(0.5).then(|| random.index(space.dimension()));
                    let mut point = vec![0.0; space.dimension()];
                    let key = classifier.draw(
                        examples(&space, &all),
                        region,
                        Uncertain {
                            count: uncertain,
                            first,
                            must_change: random.chance(0.5),
                            is_far: random.chance(0.5),
                            frees_categories: random.chance(0.5),
                        },
                        &mut random,
                        |_| false,
                    );
                    classifier.write(&all[0].point, &mut point);
                    space.check(&point).unwrap();
                    assert_eq!(key, Some(space.key(&point)));
                    let changed = point.iter().zip(&all[0].point).filter(|(a, b)| a != b).count();
                    assert!(changed <= uncertain);
                }
            }
        }
    }

    /// Two-sample Kolmogorov-Smirnov test, at a level of about 0.001.
    fn have_same_distribution(mut a: Vec<f64>, mut b: Vec<f64>) -> bool {
        a.sort_by(f64::total_cmp);
        b.sort_by(f64::total_cmp);
        let share =
            |list: &[f64], x: f64| list.partition_point(|&y| y <= x) as f64 / list.len() as f64;
        let gap = a.iter().map(|&x| (share(&a, x) - share(&b, x)).abs()).fold(0.0, f64::max);
        gap < 1.95 * (1.0 / a.len() as f64 + 1.0 / b.len() as f64).sqrt()
    }

    /// A sample from a completely learned box.
    fn draw_completely(
        classifier: &mut Classifier,
        examples: Examples<'_>,
        uncertain: Uncertain,
        random: &mut Random,
    ) {
        classifier.forget();
        classifier.train_all(examples, CutOrder::Uniform, random);
        classifier.choose_uncertain(examples.space.dimension(), uncertain, random);
        classifier.replace_fixed(examples, random);
        classifier.redraw(examples, None, uncertain, random);
    }

    /// The change of the first changed coordinate, which differs between coordinates.
    fn change(positive: &[f64], point: &[f64]) -> f64 {
        let mut pairs = point.iter().zip(positive).enumerate();
        let changed = pairs.find(|(_, (a, b))| a != b);
        changed.map_or(0.0, |(index, (a, b))| 100.0 * index as f64 + a - b)
    }

    /// Checks that samples have the distribution that they would have if boxes were learned completely.
    fn assert_same_samples(
        examples: Examples<'_>,
        uncertain: Uncertain,
        draws: usize,
        random: &mut Random,
    ) {
        let mut classifier = Classifier::default();
        let (mut lazy, mut full) = (Vec::new(), Vec::new());
        let positive = &examples.positive.point;
        let mut point = vec![0.0; positive.len()];
        for _ in 0..draws {
            classifier.draw(examples, None, uncertain, random, |_| false);
            classifier.write(positive, &mut point);
            lazy.push(change(positive, &point));
            draw_completely(&mut classifier, examples, uncertain, random);
            classifier.write(positive, &mut point);
            full.push(change(positive, &point));
        }
        assert!(have_same_distribution(lazy, full), "n={} {uncertain:?}", positive.len());
    }

    #[test]
    fn skipping_irrelevant_cuts_does_not_change_the_distribution() {
        let mut random = Random::new(6);
        for (dimension, uncertain, negatives) in [(1, 1, 5), (3, 1, 6), (4, 2, 20), (30, 2, 20)] {
            let space = Space::cube(dimension, 0.0, 1.0).unwrap();
            let all = samples(&space, negatives + 1, &mut random);
            assert_same_samples(examples(&space, &all), any(uncertain), 20_000, &mut random);
        }
    }

    #[test]
    fn learning_related_negatives_only_does_not_change_the_distribution() {
        let mut random = Random::new(8);
        let bits = Space::builder().array("b", 12, crate::Domain::Boolean).build().unwrap();
        let integers = Space::builder().integers("i", 12, 0, 9).build().unwrap();
        for space in [bits, integers, mixed()] {
            for distance in [1, 2, 4] {
                // Negatives that differ from x+ in a few coordinates, as late in a run.
                let mut all = vec![samples(&space, 1, &mut random)[0].clone(); 9];
                for negative in &mut all[1..] {
                    for _ in 0..distance {
                        let index = random.index(space.dimension());
                        negative.point[index] = space.axis(index).draw(&mut random);
                    }
                    negative.key = space.key(&negative.point);
                }
                for first in [None, Some(0)] {
                    for count in [1, 2] {
                        let uncertain = Uncertain { first, ..any(count) };
                        assert_same_samples(examples(&space, &all), uncertain, 4000, &mut random);
                    }
                }
            }
        }
    }

    #[test]
    fn differences_are_found_in_order() {
        let mut random = Random::new(9);
        for len in 0..40 {
            let a: Vec<f64> = (0..len).map(|_| random.index(3) as f64).collect();
            let b: Vec<f64> =
                a.iter().map(|x| if random.chance(0.2) { x + 1.0 } else { *x }).collect();
            let expected: Vec<usize> = (0..len).filter(|&i| a[i] != b[i]).collect();
            let mut found = Vec::new();
            let wanted = random.index(6);
            let are_all = all_differences(&a, &b, |index| {
                found.push(index);
                found.len() < wanted
            });
            assert_eq!(are_all, expected.is_empty() || expected.len() < wanted);
            assert_eq!(found, expected[..expected.len().min(wanted.max(1))]);
        }
    }

    #[test]
    fn all_subsets_of_uncertain_coordinates_are_equally_likely() {
        let mut random = Random::new(5);
        let mut classifier = Classifier::default();
        for wanted in [1, 2, 4] {
            let mut counts = [0u32; 5];
            for _ in 0..10_000 {
                classifier.choose_uncertain(5, any(wanted), &mut random);
                assert_eq!(classifier.uncertain.len(), wanted);
                classifier.uncertain.iter().for_each(|&index| counts[index] += 1);
            }
            let expected = 2000 * wanted as u32;
            assert!(counts.iter().all(|&c| c.abs_diff(expected) < 250), "{counts:?}");
        }
    }
}
