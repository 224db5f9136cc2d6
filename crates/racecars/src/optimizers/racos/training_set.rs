//! The training set of the classifier: the best m points are positive, the others negative. The
//! `Replacing` sub-procedure updates it.

use super::settings::Replacing;
use crate::classify::{DifferenceTable, Examples};
use crate::outcome::Rank;
use crate::random::Random;
use crate::sample::Sample;
use crate::space::{Axis, Interval, Space};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TrainingSet {
    /// Best first, at most m.
    positives: Vec<Sample>,
    /// In no order, at most r - m.
    negatives: Vec<Sample>,
    positive_size: usize,
    negative_size: usize,
    /// The ranks of the negatives with their indices, in ascending order, where the worst one is replaced. Empty until
    /// it is needed.
    #[serde(skip)]
    by_rank: Vec<(Rank, usize)>,
    /// Where the negatives differ from the positive point, if there is only one and all coordinates are discrete. Where
    /// some are real, new negatives are so frequent that reading the points is as fast.
    #[serde(skip)]
    differences: DifferenceTable,
}

impl TrainingSet {
    pub(super) fn new(training_size: usize, positive_size: usize) -> Self {
        let negative_size = training_size - positive_size;
        TrainingSet {
            positives: Vec::with_capacity(positive_size + 1),
            negatives: Vec::with_capacity(negative_size),
            positive_size,
            negative_size,
            by_rank: Vec::new(),
            differences: DifferenceTable::default(),
        }
    }

    /// Whether there are r points, of which at least one did not fail.
    pub(super) fn is_ready(&self) -> bool {
        self.negatives.len() == self.negative_size && self.best().is_some()
    }

    /// The best point; `None` if all failed.
    pub(super) fn best(&self) -> Option<&Sample> {
        self.positives.first().filter(|best| !best.rank.is_failure())
    }

    /// The best point; `None` if all failed.
    pub(super) fn into_best(mut self) -> Option<Sample> {
        self.best()?;
        Some(self.positives.swap_remove(0))
    }

    /// Builds the table of differences, if it is missing and of use.
    #[inline]
    pub(super) fn prepare(&mut self, space: &Space) {
        if self.differences.is_empty() && self.positive_size == 1 && space.is_discrete() {
            self.differences.build(&self.positives[0].point, &self.negatives);
        }
    }

    /// A random positive point that did not fail, and the negatives. The set must be ready.
    pub(super) fn draw<'a>(&'a self, space: &'a Space, random: &mut Random) -> Examples<'a> {
        debug_assert!(self.is_ready(), "positives are drawn from a complete training set");
        let succeeded =
            self.positives.iter().take_while(|sample| !sample.rank.is_failure()).count();
        let positive = &self.positives[random.index(succeeded.max(1))];
        let differences = Some(&self.differences).filter(|table| !table.is_empty());
        Examples { space, positive, negatives: &self.negatives, differences }
    }

    /// Whether a sample of this rank becomes a positive.
    pub(super) fn is_positive(&self, rank: Rank) -> bool {
        self.place_of(rank) < self.positive_size
    }

    /// The place of a new sample of this rank among the positives.
    fn place_of(&self, rank: Rank) -> usize {
        self.positives.partition_point(|positive| positive.rank.beats(rank))
    }

    /// Inserts a sample into the sorted positives. The last positive then replaces a negative. Returns the
    /// point that drops out, once the set is full.
    ///
    /// Of equal ranks the newest comes first, so that the search moves along plateaus.
    pub(super) fn insert(
        &mut self,
        sample: Sample,
        replacing: Replacing,
        space: &Space,
        random: &mut Random,
    ) -> Option<Box<[f64]>> {
        let displaced = self.insert_positive(sample);
        debug_assert!(
            self.positives.is_sorted_by_key(|sample| sample.rank),
            "ranks of positives are ordered"
        );
        self.insert_negative(displaced?, replacing, space, random)
    }

    /// Inserts a sample into the positives. Returns the sample that is not among the best m, if there are
    /// more.
    fn insert_positive(&mut self, sample: Sample) -> Option<Sample> {
        let index = self.place_of(sample.rank);
        if index >= self.positive_size {
            return Some(sample);
        }
        self.positives.insert(index, sample);
        let displaced = (self.positives.len() > self.positive_size).then(|| self.positives.pop());
        let displaced = displaced.flatten()?;
        // The table is empty unless there is one positive.
        self.differences.set_positive(&displaced.point, &self.positives[0].point, &self.negatives);
        Some(displaced)
    }

    /// Adds a negative, or replaces one. Returns the point that drops out.
    #[expect(clippy::expect_used, reason = "see the message")]
    fn insert_negative(
        &mut self,
        displaced: Sample,
        replacing: Replacing,
        space: &Space,
        random: &mut Random,
    ) -> Option<Box<[f64]>> {
        if self.negatives.len() < self.negative_size {
            self.negatives.push(displaced);
            return None;
        }
        const NOT_EMPTY: &str = "a training set has at least one negative";
        let index = match replacing {
            Replacing::Worst => {
                if self.by_rank.is_empty() {
                    let ranks = self.negatives.iter().map(|negative| negative.rank);
                    self.by_rank.extend(ranks.zip(0..));
                    self.by_rank.sort_unstable();
                }
                let &(worst, index) = self.by_rank.last().expect(NOT_EMPTY);
                if !displaced.rank.beats(worst) {
                    return Some(displaced.point);
                }
                let entry = (displaced.rank, index);
                let place = self.by_rank.partition_point(|other| *other < entry);
                self.by_rank.copy_within(place..self.negatives.len() - 1, place + 1);
                self.by_rank[place] = entry;
                index
            }
            Replacing::Random => random.index(self.negatives.len()),
            Replacing::Farthest => {
                let best = &self.positives[0].point;
                let distances = self.negatives.iter().map(|n| distance(space, best, &n.point));
                let farthest = distances.enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b));
                farthest.expect(NOT_EMPTY).0
            }
        };
        self.differences.set_negative(&self.positives[0].point, index, &displaced.point);
        Some(std::mem::replace(&mut self.negatives[index], displaced).point)
    }

    /// Updates the rank of the best point, if it is this one. Positives that would then be better get the
    /// same rank, so that it remains the best.
    pub(super) fn revise_best(&mut self, point: &[f64], rank: Rank) {
        if self.best().is_some_and(|best| *best.point == *point) {
            self.positives[0].rank = rank;
            for positive in &mut self.positives[1..] {
                positive.rank = positive.rank.max(rank);
            }
        }
    }

    /// All samples.
    pub(super) fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.positives.iter().chain(&self.negatives)
    }

    /// Checks the invariants of a deserialized training set.
    pub(super) fn is_sound(&self, training_size: usize, positive_size: usize) -> bool {
        self.positive_size == positive_size
            && self.negative_size == training_size - positive_size
            && self.positives.len() <= self.positive_size
            && self.negatives.len() <= self.negative_size
            && (self.negatives.is_empty() || self.positives.len() == self.positive_size)
            && self.positives.is_sorted_by_key(|sample| sample.rank)
    }
}

/// The squared distance of two points, relative to the length of each axis. Different values of an
/// unordered axis have distance 1.
fn distance(space: &Space, a: &[f64], b: &[f64]) -> f64 {
    let squares = space.axes().map(|(range, axis)| {
        let Interval { low, high } = axis.extent();
        let length = if high > low { high - low } else { 1.0 };
        let pairs = a[range.clone()].iter().zip(&b[range]);
        match axis {
            Axis::Unordered { .. } => pairs.filter(|(a, b)| a != b).count() as f64,
            // Division comes first, since squares of the widest and narrowest ranges overflow.
            _ => pairs.map(|(a, b)| ((a - b) / length).powi(2)).sum(),
        }
    });
    squares.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;

    fn sample(x: f64, value: f64) -> Sample {
        Sample { point: vec![x].into_boxed_slice(), rank: Outcome::from(value).rank(), key: 0 }
    }

    fn values(samples: &[Sample]) -> Vec<f64> {
        samples.iter().map(|s| s.rank.value().unwrap_or(f64::INFINITY)).collect()
    }

    fn filled(replacing: Replacing) -> (TrainingSet, Space, Random) {
        let (space, mut random) = (Space::cube(1, 0.0, 10.0).unwrap(), Random::new(1));
        let mut set = TrainingSet::new(5, 2);
        for value in [4.0, 2.0, 5.0, 1.0, 3.0] {
            assert!(set.insert(sample(value, value), replacing, &space, &mut random).is_none());
        }
        assert!(set.is_ready());
        assert_eq!(values(&set.positives), [1.0, 2.0]);
        (set, space, random)
    }

    #[test]
    fn the_best_points_are_positive_and_the_displaced_one_replaces_the_worst_negative() {
        let (mut set, space, mut random) = filled(Replacing::Worst);
        let left = set.insert(sample(0.0, 1.5), Replacing::Worst, &space, &mut random).unwrap();
        assert_eq!(left[0], 5.0);
        assert_eq!(values(&set.positives), [1.0, 1.5]);
        let left = set.insert(sample(9.0, 9.0), Replacing::Worst, &space, &mut random).unwrap();
        assert_eq!(left[0], 9.0, "a sample worse than all others is not inserted");
        assert!(set.is_sound(5, 2));
    }

    #[test]
    fn farthest_replaces_the_negative_farthest_from_the_best() {
        let (mut set, space, mut random) = filled(Replacing::Farthest);
        let left = set.insert(sample(9.0, 9.0), Replacing::Farthest, &space, &mut random).unwrap();
        assert_eq!(left[0], 5.0);
    }

    #[test]
    fn random_replaces_any_negative() {
        let mut replaced = std::collections::BTreeSet::new();
        for seed in 0..50 {
            let (mut set, space, _) = filled(Replacing::Random);
            let random = &mut Random::new(seed);
            let left = set.insert(sample(9.0, 9.0), Replacing::Random, &space, random).unwrap();
            replaced.insert(left[0] as i64);
        }
        assert_eq!(replaced.into_iter().collect::<Vec<_>>(), [3, 4, 5]);
    }

    #[test]
    fn a_set_of_failures_is_not_ready() {
        let (space, mut random) = (Space::cube(1, 0.0, 10.0).unwrap(), Random::new(1));
        let mut set = TrainingSet::new(3, 1);
        for _ in 0..5 {
            set.insert(sample(1.0, f64::NAN), Replacing::Worst, &space, &mut random);
            assert!(!set.is_ready());
        }
        set.insert(sample(1.0, 2.0), Replacing::Worst, &space, &mut random);
        assert!(set.is_ready());
    }
}
