//! The classifier: RACOS's randomized coordinate shrinking (Algorithm 2 of the paper, `Training`)
//! and sampling of a new point from the learned box.
//!
//! Training starts from the whole space. It cuts one random coordinate at a time, between a positive
//! point x+ and a negative point that is still inside, until no negative is left. It only looks at
//! coordinates that are cut, so its cost does not grow with the dimension.
//!
//! In a continuous space most steps need no training. The choice of redrawn coordinates does not
//! depend on the cuts, and a cut of any other coordinate changes nothing. Training is only needed if
//! a cut falls on a redrawn coordinate: see `FirstUncertainCut`.
//!
//! Departures from the paper, taken from the public implementation that the published runs used (see
//! docs/paper.md): a negative is also excluded if a cut falls exactly on it, and the new point is a
//! copy of x+ in which only a few *uncertain* coordinates are redrawn.

use crate::random::Random;
use crate::sample::Sample;
use crate::space::{Axis, Interval, SearchRegion, Space};

/// The learned box around x+, stored as the few coordinates in which it is smaller than the space.
/// Transient: every proposal learns a new box.
#[derive(Debug, Default)]
pub(crate) struct Classifier {
    cuts: Vec<Cut>,
    /// Indices of the negatives inside the box.
    inside: Vec<u32>,
    /// The coordinates to redraw.
    uncertain: Vec<usize>,
    /// Cached by the number of uncertain coordinates modulo the length.
    first_cuts: [FirstUncertainCut; 4],
}

/// What a box is learned from: a positive point x+ and the negatives, points of a space.
#[derive(Clone, Copy)]
pub(crate) struct Examples<'a> {
    pub(crate) space: &'a Space,
    pub(crate) positive: &'a Sample,
    pub(crate) negatives: &'a [Sample],
}

/// Which coordinates of x+ are redrawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Uncertain {
    /// The number of redrawn coordinates.
    pub(crate) count: usize,
    /// A coordinate to include, unless it is fixed to x+'s value. The others are random.
    pub(crate) first: Option<usize>,
}

#[derive(Debug)]
struct Cut {
    index: usize,
    /// The remaining part of a continuous or ordered axis.
    interval: Interval,
    /// Whether an unordered axis is restricted to x+'s value.
    is_fixed: bool,
}

/// Random attempts to find a coordinate in which x+ and a negative differ, before all coordinates are
/// searched. Only discrete axes need more than one.
const MAX_RANDOM_TRIES: usize = 16;

/// The distribution of the first cut that falls on an uncertain coordinate, in a continuous space.
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

/// The order in which training cuts coordinates.
#[derive(Clone, Copy)]
enum CutOrder {
    /// Every coordinate is uniformly random.
    Uniform,
    /// This many certain coordinates, then an uncertain one, then uniformly random ones.
    UncertainAfter(usize),
}

impl Classifier {
    /// Writes to `point` a sample from a box learned around x+ and projected on `region`
    /// (Algorithm 4, `Train`, `Proj` and `Sample`): a copy of x+ in which the `uncertain` coordinates
    /// are redrawn. Returns the point's key.
    #[inline]
    pub(crate) fn draw(
        &mut self,
        examples: Examples<'_>,
        region: Option<SearchRegion>,
        uncertain: Uncertain,
        random: &mut Random,
        point: &mut [f64],
    ) -> u64 {
        let Examples { space, positive, negatives } = examples;
        point.copy_from_slice(&positive.point);
        if space.is_continuous() {
            self.cuts.clear();
            self.choose_uncertain(point.len(), uncertain, random);
            let (dimension, uncertain, negatives_len) =
                (point.len(), self.uncertain.len(), negatives.len());
            let first_cut = &mut self.first_cuts[uncertain % 4];
            if (first_cut.dimension, first_cut.uncertain, first_cut.negatives)
                != (dimension, uncertain, negatives_len)
            {
                *first_cut = FirstUncertainCut::new(dimension, uncertain, negatives_len);
            }
            if let Some(misses) = first_cut.draw(random) {
                let order = CutOrder::UncertainAfter(misses);
                self.train(examples, order, random);
            }
        } else {
            self.train(examples, CutOrder::Uniform, random);
            self.choose_uncertain(point.len(), uncertain, random);
        }
        self.redraw(space, region, random, point, positive.key)
    }

    /// Learns a complete box around x+, projected on `region`: one interval per coordinate of
    /// a continuous space. [`Classifier::draw`] learns only the part that it needs.
    pub(crate) fn learn(
        &mut self,
        examples: Examples<'_>,
        region: Option<SearchRegion>,
        random: &mut Random,
    ) -> Vec<Interval> {
        self.train(examples, CutOrder::Uniform, random);
        let interval = |index| self.interval(index, examples.space.axis(index), region);
        (0..examples.space.dimension()).map(interval).collect()
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

    /// Learns a box that contains x+ and none of the negatives. In a discrete space, a negative equal to
    /// x+ cannot be excluded and is ignored.
    fn train(&mut self, examples: Examples<'_>, order: CutOrder, random: &mut Random) {
        let positive = &examples.positive.point;
        let mut drawn = 0;
        self.cuts.clear();
        self.inside.clear();
        self.inside.extend(0..examples.negatives.len() as u32);
        let mut tries = 0;
        while !self.inside.is_empty() {
            let chosen = self.inside[random.index(self.inside.len())];
            if tries < MAX_RANDOM_TRIES {
                let index = self.next_coordinate(positive.len(), order, drawn, random);
                drawn += 1;
                let is_cut = self.cut(examples, index, chosen, random);
                tries = if is_cut { 0 } else { tries + 1 };
                continue;
            }
            match find_difference(examples, chosen, random) {
                Some(index) => {
                    self.cut(examples, index, chosen, random);
                }
                None => self.inside.retain(|&i| i != chosen),
            }
            tries = 0;
        }
        debug_assert!(
            self.cuts
                .iter()
                .all(|cut| { cut.is_fixed || cut.interval.contains(positive[cut.index]) }),
            "a learned box contains its positive point"
        );
    }

    fn next_coordinate(
        &self,
        dimension: usize,
        order: CutOrder,
        drawn: usize,
        random: &mut Random,
    ) -> usize {
        match order {
            CutOrder::UncertainAfter(misses) if drawn == misses => {
                self.uncertain[random.index(self.uncertain.len())]
            }
            CutOrder::UncertainAfter(misses) if drawn < misses => loop {
                let index = random.index(dimension);
                if !self.uncertain.contains(&index) {
                    break index;
                }
            },
            _ => random.index(dimension),
        }
    }

    /// Cuts coordinate `index` between x+ and the chosen negative, and drops the excluded negatives.
    /// Returns false if the two do not differ in this coordinate.
    fn cut(
        &mut self,
        examples: Examples<'_>,
        index: usize,
        chosen: u32,
        random: &mut Random,
    ) -> bool {
        let Examples { space, positive, negatives } = examples;
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
                true
            }
            Axis::Ordered { .. } => {
                if plus < minus {
                    let cut = plus + random.below((minus - plus) as u64) as f64;
                    self.narrow(index, axis).high = cut;
                    keep(&mut self.inside, |i| at(i) <= cut);
                } else if plus > minus {
                    let cut = plus - random.below((plus - minus) as u64) as f64;
                    self.narrow(index, axis).low = cut;
                    keep(&mut self.inside, |i| at(i) >= cut);
                }
                plus != minus
            }
            Axis::Unordered { .. } => {
                let before = self.inside.len();
                keep(&mut self.inside, |i| at(i) == plus);
                let is_cut = self.inside.len() < before;
                if is_cut {
                    self.cut_at(index, axis).is_fixed = true;
                }
                is_cut
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

    /// Redraws the uncertain coordinates of `point` from the learned box and the region. `point` is a
    /// copy of x+, and `key` is its key. Returns the new key.
    #[inline]
    fn redraw(
        &self,
        space: &Space,
        region: Option<SearchRegion>,
        random: &mut Random,
        point: &mut [f64],
        mut key: u64,
    ) -> u64 {
        for &index in &self.uncertain {
            let axis = space.axis(index);
            let new = match (axis, region) {
                (Axis::Unordered { .. }, None) => axis.draw(random),
                (Axis::Unordered { last }, Some(region)) => {
                    region.draw_unordered(index, last as u64 + 1, random)
                }
                _ => axis.draw_within(self.interval(index, axis, region), random),
            };
            let old = std::mem::replace(&mut point[index], new);
            key = key
                .wrapping_sub(space.key_term(index, old))
                .wrapping_add(space.key_term(index, new));
        }
        key
    }

    /// Chooses distinct coordinates among those that are not fixed to x+'s value. If all are fixed, it
    /// chooses one of them.
    fn choose_uncertain(&mut self, dimension: usize, uncertain: Uncertain, random: &mut Random) {
        self.uncertain.clear();
        let cuts = &self.cuts;
        let wanted = uncertain.count;
        let is_fixed = |index: usize| cuts.iter().any(|cut| cut.is_fixed && cut.index == index);
        self.uncertain.extend(uncertain.first.filter(|&index| !is_fixed(index)));
        if self.uncertain.len() == wanted {
            return;
        }
        let free = dimension - cuts.iter().filter(|cut| cut.is_fixed).count();
        if free == 0 {
            self.uncertain.push(cuts[random.index(cuts.len())].index);
        } else if wanted <= free / 2 || wanted == 1 || !self.uncertain.is_empty() {
            while self.uncertain.len() < wanted.min(free) {
                let index = random.index(dimension);
                if !is_fixed(index) && !self.uncertain.contains(&index) {
                    self.uncertain.push(index);
                }
            }
        } else {
            // Selection sampling (Knuth): one pass, all subsets equally likely.
            let (mut left, mut needed) = (free, wanted.min(free));
            for index in (0..dimension).filter(|&index| !is_fixed(index)) {
                if random.index(left) < needed {
                    self.uncertain.push(index);
                    needed -= 1;
                }
                left -= 1;
            }
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

/// A coordinate in which a cut can exclude the chosen negative. The search starts at a random index.
fn find_difference(examples: Examples<'_>, chosen: u32, random: &mut Random) -> Option<usize> {
    let Examples { space, positive, negatives } = examples;
    let (positive, negative) = (&positive.point, &negatives[chosen as usize].point);
    let tells_apart = |&index: &usize| {
        positive[index] != negative[index] || matches!(space.axis(index), Axis::Continuous { .. })
    };
    let start = random.index(positive.len());
    (start..positive.len()).chain(0..start).find(tells_apart)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;

    fn any(count: usize) -> Uncertain {
        Uncertain { count, first: None }
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
        Examples { space, positive: &samples[0], negatives: &samples[1..] }
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
                classifier.train(examples(&space, &all), CutOrder::Uniform, &mut random);
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
            classifier.train(examples(&space, &all), CutOrder::Uniform, &mut random);
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
            classifier.train(examples(&space, &equal), CutOrder::Uniform, &mut random);
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
                        Uncertain { count: uncertain, first },
                        &mut random,
                        &mut point,
                    );
                    space.check(&point).unwrap();
                    assert_eq!(key, space.key(&point));
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

    #[test]
    fn skipping_irrelevant_cuts_does_not_change_the_distribution() {
        let mut random = Random::new(6);
        for (dimension, uncertain, negatives) in [(1, 1, 5), (3, 1, 6), (4, 2, 20), (30, 2, 20)] {
            let space = Space::cube(dimension, 0.0, 1.0).unwrap();
            let all = samples(&space, negatives + 1, &mut random);
            let positive = &all[0];
            let examples = examples(&space, &all);
            let mut classifier = Classifier::default();
            let (mut lazy, mut full) = (Vec::new(), Vec::new());
            let mut point = vec![0.0; dimension];
            let change = |point: &[f64]| {
                let changed = point.iter().zip(&positive.point).find(|(a, b)| a != b);
                changed.map_or(0.0, |(a, b)| a - b)
            };
            for _ in 0..20_000 {
                classifier.draw(examples, None, any(uncertain), &mut random, &mut point);
                lazy.push(change(&point));
                point.copy_from_slice(&positive.point);
                classifier.train(examples, CutOrder::Uniform, &mut random);
                classifier.choose_uncertain(dimension, any(uncertain), &mut random);
                classifier.redraw(&space, None, &mut random, &mut point, 0);
                full.push(change(&point));
            }
            assert!(have_same_distribution(lazy, full), "n={dimension} u={uncertain}");
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
