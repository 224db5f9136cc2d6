//! RACOS, SRACOS and RACE-CARS: classification-based optimization.
//!
//! One state machine implements all three, since each is a special case of the next:
//!
//! - **RACOS** (Algorithms 1 and 2; Yu et al. 2016): sample a batch of r points from learned boxes, then
//!   keep the best r of old and new points.
//! - **SRACOS** (Algorithm 3; Hu et al. 2017): update the training set after every point.
//! - **RACE-CARS** (Algorithm 4): SRACOS, and with probability rho at each step shrink the region
//!   that points are sampled from around the best point.
//!
//! While several candidates are out, the best point may change between an ask and its tell. A candidate is
//! judged by the best point that it was made from, and if it was better in one coordinate, that change is
//! merged into the best of the time (`merge`). With one candidate out neither makes a difference. The
//! paper has one candidate out.
//!
//! A step costs one copy of a point and a few random numbers: points move into and out of the training set
//! without being copied, and the buffer of a told point is reused for the next proposal.

mod merge;
mod schedule;
mod settings;
mod training_set;

pub use settings::{Classification, RaceCars, Replacing, Shrinking};

use super::ledger::Ledger;
use super::shell::{Evaluated, Proposal, Search, Setup, Shell, Tools};
use super::{Best, ShrunkRegion};
use crate::classify::{Classifier, Uncertain};
use crate::error::Result;
use crate::outcome::Rank;
use crate::random::Random;
use crate::sample::Sample;
use crate::space::{Interval, SearchRegion, Space};
use merge::{Merge, Move};
use schedule::{AdaptiveRegion, RegionSchedule};
use serde::{Deserialize, Serialize};
use settings::Resolved;
use training_set::TrainingSet;

/// The state of RACOS, SRACOS or RACE-CARS.
///
/// Public only as the type parameter of the [`Shell`] that [`RaceCars::optimizer`] returns.
#[derive(Debug, Serialize, Deserialize)]
pub struct RacosSearch {
    variant: Variant,
    settings: Resolved,
    training: TrainingSet,
    /// RACOS: the told points of the current batch, which enter the training set together.
    batch: Vec<Sample>,
    schedule: RegionSchedule,
    /// The best of earlier runs.
    record: Option<Sample>,
    /// The id of the first candidate of this run.
    first_id: u64,
    merge: Merge,
    #[serde(skip)]
    classifier: Classifier,
}

/// Which of the three algorithms this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Variant {
    Racos,
    Sracos,
    RaceCars,
}

impl RaceCars {
    /// Creates the same optimizer as [`Algorithm::optimizer`](super::Algorithm::optimizer), with access to
    /// its hypotheses: see [`Shell::hypothesis`].
    pub fn optimizer(
        &self,
        space: &Space,
        budget: Option<u64>,
        seed: u64,
    ) -> Result<Shell<RacosSearch>> {
        let setup = Setup { space, budget, seed };
        Shell::new("race-cars", setup, |_| RacosSearch::race_cars(self, setup))
    }
}

impl Shell<RacosSearch> {
    /// A hypothesis as in the theorems of the paper: the box learned around a random positive point,
    /// projected on the current region. For the analysis of a run: a step learns only the part of the box
    /// that it needs. This does not change the optimizer or its random generator.
    ///
    /// `None` until there are r outcomes to learn from, and in spaces that are not continuous.
    pub fn hypothesis(&self, random: &mut Random) -> Option<Vec<Interval>> {
        let (space, search) = (super::Optimizer::space(self), self.search());
        if !search.training.is_ready() || !space.is_continuous() {
            return None;
        }
        let examples = search.training.draw(space, random);
        Some(Classifier::default().learn(examples, search.active_region(), random))
    }
}

impl RacosSearch {
    /// RACE-CARS.
    pub(crate) fn race_cars(settings: &RaceCars, setup: Setup<'_>) -> Result<Self> {
        let Setup { space, budget, .. } = setup;
        let (classification, schedule) = if settings.is_adaptive() {
            let region = AdaptiveRegion::new(space, budget);
            (settings.classification.or_adaptive(), RegionSchedule::Adaptive(region))
        } else {
            let Shrinking { gamma, rho } = settings.shrinking(space.dimension(), budget)?;
            (settings.classification, RegionSchedule::Fixed { gamma, rho, shrunken: None })
        };
        RacosSearch::new(Variant::RaceCars, &classification, schedule, setup)
    }

    /// RACOS or SRACOS: the region is the whole space.
    pub(super) fn whole_space(
        variant: Variant,
        settings: &Classification,
        setup: Setup<'_>,
    ) -> Result<Self> {
        RacosSearch::new(variant, settings, RegionSchedule::WholeSpace, setup)
    }

    fn new(
        variant: Variant,
        settings: &Classification,
        schedule: RegionSchedule,
        setup: Setup<'_>,
    ) -> Result<Self> {
        let settings = settings.resolve(setup.space, setup.budget)?;
        Ok(RacosSearch {
            variant,
            training: TrainingSet::new(settings.training_size, settings.positive_size),
            batch: Vec::new(),
            schedule,
            record: None,
            first_id: 0,
            merge: Merge::default(),
            settings,
            classifier: Classifier::default(),
        })
    }

    /// The current region, if there is one.
    fn active_region(&self) -> Option<SearchRegion<'_>> {
        let best = self.training.best().filter(|_| self.training.is_ready())?;
        self.schedule.region(&best.point)
    }

    /// Writes a sample from a learned box within the region to `point`. Also returns the only coordinate
    /// that is known to differ from x+, with the value there.
    #[inline]
    fn exploit(
        &mut self,
        tools: &mut Tools<'_, Move>,
        point: &mut [f64],
    ) -> Option<(u64, Option<(u32, f64)>)> {
        /// In spaces where points can repeat: attempts to find an unseen point within the region, then as
        /// many attempts in the whole space.
        const MAX_TRIES: usize = 8;
        let RacosSearch { settings, training, schedule, classifier, .. } = self;
        let (space, random, ledger) = (tools.space, &mut *tools.random, &*tools.ledger);
        let can_repeat = settings.repeats || !space.can_repeat();
        training.prepare(space);
        for attempt in schedule.first_attempt(random)..2 * MAX_TRIES {
            let examples = training.draw(space, random);
            let positive = examples.positive;
            let is_inside = attempt < MAX_TRIES && !schedule.leaves_region(random);
            let first = schedule.next_coordinate(space.dimension(), random);
            let extra = schedule.extra_coordinates(space.dimension(), attempt, random);
            let count = (settings.uncertain + extra).min(space.dimension());
            let best = training.best().filter(|_| is_inside);
            let region = best.and_then(|best| schedule.region(&best.point));
            // Where what is near was seen, redrawing the old value would only lead back there.
            let is_far = attempt >= AdaptiveRegion::TRIES_PER_COORDINATE && extra > 0;
            let must_change = !can_repeat && (count == 1 || is_far);
            let frees_categories = schedule.is_adaptive();
            let uncertain = Uncertain { first, count, must_change, is_far, frees_categories };
            let is_seen = |key| !can_repeat && (key == positive.key || ledger.has_seen(key));
            if let Some(key) = classifier.draw(examples, region, uncertain, random, is_seen) {
                classifier.write(&positive.point, point);
                // In discrete spaces another coordinate may have been redrawn.
                let changed = first.filter(|&i| count == 1 && point[i] != positive.point[i]);
                let old = changed.map(|i| positive.point[i]);
                if count == 1 && !can_repeat {
                    schedule.learn_nearby(false);
                }
                return Some((key, changed.zip(old).map(|(i, old)| (i as u32, old))));
            }
            if count == 1 {
                schedule.learn_nearby(true);
            }
        }
        tools.draw(point).map(|key| (key, None))
    }

    /// Writes the merged point to `point`, if there is one to be proposed that was not seen before.
    #[inline]
    fn merged(&mut self, tools: &Tools<'_, Move>, point: &mut [f64]) -> Option<u64> {
        point.copy_from_slice(self.merge.take_due()?);
        let key = tools.space.key(point);
        (self.settings.repeats || !tools.ledger.has_seen(key)).then_some(key)
    }

    /// Learns from the outcome of a candidate how wide the region is to be, and what to merge.
    #[inline]
    fn judge(&mut self, sample: &Sample, mark: Move, tools: &mut Tools<'_, Move>) {
        let Some(best) = self.training.best() else { return };
        let is_better = match mark {
            Move::From { best, .. } => sample.rank < best,
            Move::Start => sample.rank < best.rank,
            Move::Merged => {
                self.merge.learn(sample.rank < best.rank);
                return;
            }
        };
        self.schedule.learn(is_better, tools.space.dimension());
        if let (Move::From { best: rank, changed: Some((index, old)) }, true) = (mark, is_better) {
            let has_moved = best.rank != rank;
            self.merge.add(best, has_moved, index as usize, old, sample);
        }
    }

    /// Writes a uniform sample of the whole space to `point`.
    fn explore(&mut self, tools: &mut Tools<'_, Move>, point: &mut [f64]) -> Option<u64> {
        if self.settings.repeats {
            tools.space.draw(tools.random, point);
            return Some(tools.space.key(point));
        }
        tools.draw(point)
    }

    /// Starts a run with a new training set. The best point is kept apart, so that the search does not
    /// return to it.
    #[cold]
    fn restart(&mut self, first_id: u64) {
        self.first_id = first_id;
        self.merge = Merge::default();
        let training = TrainingSet::new(self.settings.training_size, self.settings.positive_size);
        let old = std::mem::replace(&mut self.training, training);
        if let Some(best) = old.into_best() {
            self.keep_record(best);
        }
    }

    /// Keeps the better of a sample and the best of earlier runs. Returns the buffer of the other.
    fn keep_record(&mut self, sample: Sample) -> Option<Box<[f64]>> {
        match &self.record {
            Some(record) if !sample.rank.beats(record.rank) => Some(sample.point),
            _ if sample.rank.is_failure() => Some(sample.point),
            _ => self.record.replace(sample).map(|old| old.point),
        }
    }

    /// Inserts a sample into the training set. Returns the point that drops out.
    fn insert(&mut self, sample: Sample, tools: &mut Tools<'_, Move>) -> Option<Box<[f64]>> {
        // RACOS keeps the best r of all points, which is the same as replacing the worst.
        let replacing = match self.variant {
            Variant::Racos => Replacing::Worst,
            _ => self.settings.replacing,
        };
        if self.training.is_positive(sample.rank) {
            // It has neighbours of its own.
            self.schedule.learn_nearby(false);
        }
        self.training.insert(sample, replacing, tools.space, tools.random)
    }
}

impl Search for RacosSearch {
    type Mark = Move;

    const KEEPS_BEST: bool = true;

    #[inline]
    fn propose(&mut self, tools: &mut Tools<'_, Move>) -> Option<Proposal<Move>> {
        if self.schedule.restart(tools.ledger.told(), tools.space.dimension()) {
            self.restart(tools.ledger.next_id());
        }
        let mut point = tools.buffer();
        // Until r outcomes are known, proposals are uniform draws, since asking never waits.
        let Some(best) = self.training.best().filter(|_| self.training.is_ready()) else {
            let key = self.explore(tools, &mut point)?;
            return Some(Proposal { point, key, mark: Move::Start });
        };
        let rank = best.rank;
        let asked = tools.ledger.told() + tools.ledger.pending() as u64;
        self.schedule.step(&best.point, asked, tools.random);
        if let Some(key) = self.merged(tools, &mut point) {
            return Some(Proposal { point, key, mark: Move::Merged });
        }
        let (key, changed) = if tools.random.chance(self.settings.exploitation) {
            self.exploit(tools, &mut point)?
        } else {
            (self.explore(tools, &mut point)?, None)
        };
        Some(Proposal { point, key, mark: Move::From { best: rank, changed } })
    }

    #[inline]
    fn learn(
        &mut self,
        evaluated: Evaluated<Move>,
        tools: &mut Tools<'_, Move>,
    ) -> Result<Option<Box<[f64]>>> {
        let Evaluated { sample, asked, .. } = evaluated;
        // A candidate of an earlier run would draw this one back to where that run converged.
        if asked.as_ref().is_some_and(|asked| asked.id < self.first_id) {
            return Ok(self.keep_record(sample));
        }
        // Points that were not asked say nothing about the region.
        if let (Some(asked), true) = (asked, self.training.is_ready()) {
            self.judge(&sample, asked.mark, tools);
        }
        if self.variant != Variant::Racos || !self.training.is_ready() {
            return Ok(self.insert(sample, tools));
        }
        self.batch.push(sample);
        if self.batch.len() >= self.settings.training_size {
            let mut batch = std::mem::take(&mut self.batch);
            for sample in batch.drain(..) {
                if let Some(buffer) = self.insert(sample, tools) {
                    tools.keep(buffer);
                }
            }
            self.batch = batch;
        }
        Ok(None)
    }

    fn is_sound(&self, space: &Space, ledger: &Ledger<Move>) -> Result<bool> {
        let RacosSearch { settings, training, batch, schedule, merge, .. } = self;
        settings.check(space.dimension())?;
        Ok(training.is_sound(settings.training_size, settings.positive_size)
            && schedule.is_sound(space)
            && merge.is_sound(space)
            && self.first_id <= ledger.next_id()
            && self
                .record
                .as_ref()
                .is_none_or(|record| record.is_sound(space) && !record.rank.is_failure())
            && ledger.marks().all(|mark| mark.is_sound(space.dimension()))
            && training.samples().chain(batch).all(|sample| sample.is_sound(space)))
    }

    fn best(&self) -> Option<Best<'_>> {
        let told = self.batch.iter().filter(|sample| !sample.rank.is_failure());
        let earlier = self.training.best().into_iter().chain(&self.record);
        let best = told.chain(earlier).min_by_key(|sample| sample.rank)?;
        Some(Best::single(&best.point, best.rank))
    }

    fn repeats(&self) -> bool {
        self.settings.repeats
    }

    fn region(&self) -> Option<ShrunkRegion<'_>> {
        let region = self.active_region()?;
        Some(ShrunkRegion { center: region.center(), share: region.fraction() })
    }

    fn restarts(&self) -> u64 {
        self.schedule.restarts()
    }

    fn revise(&mut self, point: &[f64], _: Rank, mean: Rank) {
        self.training.revise_best(point, mean);
        let record = self.record.as_mut().filter(|record| *record.point == *point);
        if let Some(record) = record.filter(|_| !mean.is_failure()) {
            record.rank = mean;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizers::Optimizer;
    use crate::outcome::Outcome;

    /// `racecars overhead` compares a step with a baseline that draws the same number of random numbers.
    #[test]
    fn a_step_draws_five_or_eight_random_numbers() {
        let space = Space::cube(500, -10.0, 10.0).unwrap();
        let adaptive =
            RaceCars::default().classification(Classification::default().exploitation(1.0));
        for (settings, expected) in [(adaptive, 5.0), (adaptive.gamma(0.95), 8.0)] {
            let mut optimizer = settings.optimizer(&space, Some(50_000), 1).unwrap();
            let mut draws = 0u32;
            let (warm_up, steps) = (2000, 2000);
            for step in 0..warm_up + steps {
                let mut counter = optimizer.random().clone();
                let candidate = optimizer.ask().unwrap();
                let value: f64 = candidate.point().iter().map(|x| x * x).sum();
                optimizer.tell(candidate, Outcome::from(value)).unwrap();
                while step >= warm_up && counter != *optimizer.random() {
                    counter.bits();
                    draws += 1;
                }
            }
            let mean = f64::from(draws) / f64::from(steps);
            assert!((expected - 0.5..expected + 1.0).contains(&mean), "{mean}");
        }
    }

    fn sphere(point: &[f64]) -> f64 {
        point.iter().map(|x| x * x).sum()
    }

    /// The coordinates in which two points differ.
    fn differences(a: &[f64], b: &[f64]) -> Vec<usize> {
        (0..a.len()).filter(|&i| a[i] != b[i]).collect()
    }

    #[test]
    fn improvements_that_were_out_together_are_merged() {
        let space = Space::cube(10, -10.0, 10.0).unwrap();
        let mut optimizer = RaceCars::default().optimizer(&space, Some(1000), 1).unwrap();
        for _ in 0..100 {
            let candidate = optimizer.ask().unwrap();
            let value = sphere(candidate.point());
            optimizer.tell(candidate, Outcome::from(value)).unwrap();
        }
        let (base, value) = {
            let best = optimizer.best().unwrap();
            (best.point.to_vec(), best.rank.value().unwrap())
        };
        let asked: Vec<_> = (0..3).map(|_| optimizer.ask().unwrap()).collect();
        let points: Vec<Vec<f64>> = asked.iter().map(|c| c.point().to_vec()).collect();
        let changed: Vec<usize> = points.iter().flat_map(|p| differences(p, &base)).collect();
        assert_eq!(changed.len(), 3, "each differs from the best in a coordinate of its own");
        for (place, candidate) in asked.into_iter().enumerate() {
            // The second is no improvement.
            let outcome = Outcome::from(value + [-2.0, 1.0, -1.0][place]);
            optimizer.tell(candidate, outcome).unwrap();
        }
        let merged = optimizer.ask().unwrap();
        let mut expected = points[0].clone();
        expected[changed[2]] = points[2][changed[2]];
        assert_eq!(merged.point(), expected);
        // Both together are worse: the best is the first again.
        optimizer.tell(merged, Outcome::from(value)).unwrap();
        let next = optimizer.ask().unwrap();
        assert_eq!(differences(next.point(), &points[0]).len(), 1);
    }

    /// Negatives that are as good as x+ must not fix the only coordinate in which both are wrong.
    #[test]
    fn the_last_wrong_category_is_found() {
        let colours = crate::Domain::categorical(["red", "green", "blue", "white", "black"]);
        let space = Space::builder().array("c", 30, colours).build().unwrap();
        for seed in 0..10 {
            let mut optimizer = RaceCars::default().optimizer(&space, Some(1500), seed).unwrap();
            for _ in 0..1500 {
                let candidate = optimizer.ask().unwrap();
                let wrong = candidate.point().iter().filter(|c| **c != 0.0).count();
                optimizer.tell(candidate, Outcome::from(wrong as f64)).unwrap();
            }
            assert_eq!(optimizer.best().unwrap().rank.value(), Some(0.0), "seed {seed}");
        }
    }

    #[test]
    fn nothing_is_merged_with_one_candidate_out() {
        let space = Space::cube(10, -10.0, 10.0).unwrap();
        let mut optimizer = RaceCars::default().optimizer(&space, Some(1000), 1).unwrap();
        for _ in 0..1000 {
            let candidate = optimizer.ask().unwrap();
            let value = sphere(candidate.point());
            optimizer.tell(candidate, Outcome::from(value)).unwrap();
            assert_eq!(optimizer.search().merge, Merge::default());
        }
    }
}
