//! Training (Algorithm 2 of the paper): cuts between x+ and the negatives, until none of those that matter is left.

use super::table::{DifferenceTable, bits, draw_bit, words};
use super::{Classifier, Examples};
use crate::random::Random;
use crate::space::{Axis, Interval, Space};

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
pub(super) struct FirstUncertainCut {
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
pub(super) enum CutOrder {
    /// Every coordinate is uniformly random.
    Uniform,
    /// This many certain coordinates, then an uncertain one, then uniformly random ones.
    UncertainAfter(usize),
}
impl Classifier {
    /// Learns all negatives, if a cut falls on an uncertain continuous coordinate.
    #[inline]
    pub(super) fn train_continuous(
        &mut self,
        examples: Examples<'_>,
        continuous: usize,
        random: &mut Random,
    ) {
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
    pub(super) fn train_discrete(
        &mut self,
        examples: Examples<'_>,
        index: usize,
        random: &mut Random,
    ) {
        let parts = 0..words(examples.negatives.len());
        if parts.clone().all(|word| examples.differing(index, word) == 0) {
            return;
        }
        if !examples.space.is_discrete() {
            // Continuous coordinates connect all negatives.
            return self.train_all(examples, CutOrder::Uniform, random);
        }
        self.excluded.resize(parts.len(), 0);
        if let (Some(table), [_]) = (examples.differences, &self.excluded[..]) {
            return self.train_by_table(examples, table, index, random);
        }
        self.inside.clear();
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

    /// [`Classifier::train_discrete`] with a table of the differences of at most 64 negatives: sets of negatives are
    /// single words.
    #[inline]
    fn train_by_table(
        &mut self,
        examples: Examples<'_>,
        table: &DifferenceTable,
        index: usize,
        random: &mut Random,
    ) {
        let differing = table.differing(index, 0);
        let first = differing & !self.excluded[0];
        if first == 0 {
            return;
        }
        let related = self.related(table, first, index, examples.all(0));
        let mut inside = related;
        while inside & differing != 0 {
            let chosen = draw_bit(inside, random);
            match table.draw_difference(chosen, random) {
                Some(at) => self.cut_by_table(examples, table, at, chosen, &mut inside, random),
                None => inside &= !(1 << chosen),
            }
        }
        self.excluded[0] |= related & !inside;
    }

    /// The set that [`Classifier::collect_related`] completes, from `first` on.
    #[inline]
    fn related(&mut self, table: &DifferenceTable, first: u64, index: usize, all: u64) -> u64 {
        let Classifier { connected, excluded, .. } = self;
        let mut word = [0];
        let connected = match table.row_words() {
            1 => &mut word[..],
            words => {
                connected.clear();
                connected.resize(words, 0);
                connected
            }
        };
        connected[index / 64] |= 1 << (index % 64);
        let (mut inside, mut left, mut connections) = (first, first, 1);
        while left != 0 {
            let negative = left.trailing_zeros() as usize;
            left &= left - 1;
            for (part, (&row, connected)) in
                table.row(negative).iter().zip(&mut *connected).enumerate()
            {
                let new = row & !*connected;
                *connected |= new;
                for bit in bits(new) {
                    connections += 1;
                    if connections > MAX_CONNECTIONS {
                        return all & !excluded[0];
                    }
                    let more = table.differing(64 * part + bit, 0) & !excluded[0] & !inside;
                    inside |= more;
                    left |= more;
                }
            }
        }
        inside
    }

    /// [`Classifier::cut`] in a discrete coordinate. Negatives that are equal to x+ there stay inside.
    #[inline]
    fn cut_by_table(
        &mut self,
        examples: Examples<'_>,
        table: &DifferenceTable,
        index: usize,
        chosen: usize,
        inside: &mut u64,
        random: &mut Random,
    ) {
        let axis = examples.space.axis(index);
        let outside = *inside & table.differing(index, 0);
        if matches!(axis, Axis::Unordered { .. }) {
            self.cuts.at(index, axis).is_fixed = true;
            *inside &= !outside;
            return;
        }
        let at = |i: usize| examples.negatives[i].point[index];
        let plus = examples.positive.point[index];
        let interval = self.narrow(index, axis);
        cut_ordered(interval, plus, at(chosen), random);
        let Interval { low, high } = *interval;
        for i in bits(outside) {
            let value = at(i);
            *inside &= !(u64::from(value < low || value > high) << i);
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
    pub(super) fn train_all(
        &mut self,
        examples: Examples<'_>,
        order: CutOrder,
        random: &mut Random,
    ) {
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
                let interval = self.narrow(index, axis);
                cut_ordered(interval, plus, minus, random);
                let Interval { low, high } = *interval;
                keep(&mut self.inside, |i| (low..=high).contains(&at(i)));
            }
            Axis::Unordered { .. } => {
                self.cuts.at(index, axis).is_fixed = true;
                keep(&mut self.inside, |i| at(i) == plus);
            }
        }
    }

    fn narrow(&mut self, index: usize, axis: Axis) -> &mut Interval {
        &mut self.cuts.at(index, axis).interval
    }
}

/// Cuts an ordered coordinate between the values of x+ and of a negative, which differ.
fn cut_ordered(interval: &mut Interval, plus: f64, minus: f64, random: &mut Random) {
    if plus < minus {
        interval.high = plus + random.below((minus - plus) as u64) as f64;
    } else {
        interval.low = plus - random.below((plus - minus) as u64) as f64;
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
