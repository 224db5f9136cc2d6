//! RACOS, SRACOS and RACE-CARS: classification-based optimization.
//!
//! One state machine carries all three, since each is the next one's special case:
//!
//! - **RACOS** (Algorithms 1 and 2; Yu et al. 2016): draw a batch of r points from learned boxes, then
//!   keep the best r of old and new.
//! - **SRACOS** (Algorithm 3; Hu et al. 2017): renew the training set after every point.
//! - **RACE-CARS** (Algorithm 4): SRACOS, and with probability rho at each step shrink the region
//!   that points are drawn from around the best one.
//!
//! A step costs one copy of a point and a handful of random numbers: points move in and out of the
//! training set without being copied, and a point told goes into the buffer of the next one asked.

mod schedule;
mod settings;
mod training_set;

pub use settings::{Classification, RaceCars, Replacing};

use super::ledger::Ledger;
use super::shell::{Evaluated, Proposal, Search, Setup, Shell, Tools};
use super::{Best, ShrunkRegion};
use crate::classify::{Classifier, Uncertain};
use crate::error::Result;
use crate::outcome::Rank;
use crate::random::Random;
use crate::sample::Sample;
use crate::space::{Interval, SearchRegion, Space};
use schedule::RegionSchedule;
use serde::{Deserialize, Serialize};
use settings::Resolved;
use training_set::TrainingSet;

/// RACOS, SRACOS or RACE-CARS.
#[derive(Debug, Serialize, Deserialize)]
pub struct RacosSearch {
    variant: Variant,
    settings: Resolved,
    training: TrainingSet,
    /// RACOS: the part of the batch that has been told, to be taken in together.
    batch: Vec<Sample>,
    schedule: RegionSchedule,
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
    /// An optimizer with these settings, as [`Algorithm::optimizer`](super::Algorithm::optimizer) makes
    /// it, whose hypotheses can be looked at.
    pub fn optimizer(
        &self,
        space: &Space,
        budget: Option<u64>,
        seed: u64,
    ) -> Result<Shell<RacosSearch>> {
        let setup = Setup { space, budget, seed };
        Shell::new("race-cars", setup, |setup, _| RacosSearch::race_cars(self, setup))
    }
}

impl Shell<RacosSearch> {
    /// A hypothesis as the theorems have it: the box learned around a random positive, within the
    /// region as the last step left it. For studying a run: the optimizer itself learns only what a step
    /// needs, and this neither changes it nor its random generator.
    ///
    /// `None` until there are r outcomes to learn from, and in spaces that are not continuous.
    pub fn hypothesis(&self, random: &mut Random) -> Option<Vec<Interval>> {
        let (space, search) = (super::Optimizer::space(self), self.search());
        if !search.training.is_ready() || !space.is_continuous() {
            return None;
        }
        let (positive, negatives) = search.training.draw_positive(random);
        let mut classifier = Classifier::default();
        Some(classifier.learn(space, positive, negatives, search.active_region(), random))
    }
}

impl RacosSearch {
    /// RACE-CARS.
    pub(crate) fn race_cars(settings: &RaceCars, setup: Setup<'_>) -> Result<Self> {
        let Setup { space, budget, .. } = setup;
        let (classification, schedule) = if settings.is_adaptive() {
            (settings.classification.or_adaptive(), RegionSchedule::adaptive(space, budget))
        } else {
            let (gamma, rho) = settings.shrinking(space.dimension(), budget)?;
            (settings.classification, RegionSchedule::fixed(gamma, rho))
        };
        RacosSearch::new(Variant::RaceCars, &classification, schedule, setup)
    }

    /// RACOS in batches of r, or SRACOS: the region is the whole space.
    pub(super) fn still(
        variant: Variant,
        settings: &Classification,
        setup: Setup<'_>,
    ) -> Result<Self> {
        RacosSearch::new(variant, settings, RegionSchedule::Still, setup)
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
            settings,
            classifier: Classifier::default(),
        })
    }

    /// The region as the last step left it, once there was one.
    fn active_region(&self) -> Option<SearchRegion<'_>> {
        let best = self.training.best().filter(|_| self.training.is_ready())?;
        self.schedule.region(&best.point)
    }

    /// Draws a point from a learned box within the region, into `point`.
    fn exploit(&mut self, tools: &mut Tools<'_, ()>, point: &mut [f64]) -> Option<u64> {
        /// Where points can repeat: draws within the region, then as many in the whole space, before
        /// giving up on a neighbour of x+ that was not seen before.
        const MAX_TRIES: usize = 8;
        let RacosSearch { settings, training, schedule, classifier, .. } = self;
        let mut learn = |tools: &mut Tools<'_, ()>, attempt: usize, point: &mut [f64]| {
            let (space, random) = (tools.space, &mut *tools.random);
            let (positive, negatives) = training.draw_positive(random);
            let is_inside = attempt < MAX_TRIES && !schedule.leaves_region(random);
            let first = schedule.next_coordinate(space.dimension(), random);
            let more = schedule.more_coordinates(space.dimension(), random);
            let count = (settings.uncertain + more).min(space.dimension());
            let uncertain = Uncertain { first, count };
            let best = training.best().filter(|_| is_inside);
            let region = best.and_then(|best| schedule.region(&best.point));
            classifier.draw(space, positive, negatives, region, uncertain, random, point)
        };
        if settings.repeats {
            return Some(learn(tools, 0, point));
        }
        let drawn = tools.unseen(2 * MAX_TRIES, point, |tools, attempt, point| {
            Some((learn(tools, attempt, point), ()))
        });
        drawn.map(|(key, _)| key)
    }

    /// Draws a point from the whole space, into `point`.
    fn explore(&mut self, tools: &mut Tools<'_, ()>, point: &mut [f64]) -> Option<u64> {
        if self.settings.repeats {
            tools.space.draw(tools.random, point);
            return Some(tools.space.key(point));
        }
        tools.draw(point)
    }

    /// Takes a sample into the training set, and returns the buffer that is left over.
    fn take_in(&mut self, sample: Sample, tools: &mut Tools<'_, ()>) -> Option<Box<[f64]>> {
        // RACOS selects the best r of all, which is what replacing the worst amounts to.
        let replacing = match self.variant {
            Variant::Racos => Replacing::Worst,
            _ => self.settings.replacing,
        };
        let left = self.training.insert(sample, replacing, tools.space, tools.random);
        left.map(|sample| sample.point)
    }
}

impl Search for RacosSearch {
    type Mark = ();

    const KEEPS_BEST: bool = true;

    #[inline]
    fn propose(&mut self, tools: &mut Tools<'_, ()>) -> Option<Proposal<()>> {
        let mut point = tools.buffer();
        // Until r outcomes are known, whoever asks gets a uniform draw: asking never waits.
        let key = match self.training.best() {
            Some(best) if self.training.is_ready() => {
                self.schedule.step(&best.point, tools.ledger.told(), tools.random);
                let usual = self.settings.exploitation;
                if tools.random.chance(self.schedule.exploitation(usual, tools.space)) {
                    self.exploit(tools, &mut point)
                } else {
                    self.explore(tools, &mut point)
                }
            }
            _ => self.explore(tools, &mut point),
        }?;
        Some(Proposal { point, key, mark: () })
    }

    #[inline]
    fn learn(
        &mut self,
        told: Evaluated<()>,
        tools: &mut Tools<'_, ()>,
    ) -> Result<Option<Box<[f64]>>> {
        let Evaluated { sample, asked, .. } = told;
        if self.training.is_ready() {
            let is_better = self.training.best().is_none_or(|best| sample.rank < best.rank);
            self.schedule.learn(is_better, asked.is_some(), tools.space.dimension());
        }
        if self.variant != Variant::Racos || !self.training.is_ready() {
            return Ok(self.take_in(sample, tools));
        }
        self.batch.push(sample);
        if self.batch.len() >= self.settings.training_size {
            let mut batch = std::mem::take(&mut self.batch);
            for sample in batch.drain(..) {
                if let Some(buffer) = self.take_in(sample, tools) {
                    tools.keep(buffer);
                }
            }
            self.batch = batch;
        }
        Ok(None)
    }

    fn is_sound(&self, space: &Space, _: &Ledger<()>) -> Result<bool> {
        let RacosSearch { settings, training, batch, schedule, .. } = self;
        settings.check(space.dimension())?;
        Ok(training.is_sound(settings.training_size, settings.positive_size)
            && schedule.is_sound(space)
            && training.samples().chain(batch).all(|sample| sample.is_sound(space)))
    }

    fn best(&self) -> Option<Best<'_>> {
        if self.batch.is_empty() {
            let best = self.training.best()?;
            return Some(Best::single(&best.point, best.rank));
        }
        let told = self.batch.iter().filter(|sample| !sample.rank.is_failure());
        let best = told.chain(self.training.best()).min_by_key(|sample| sample.rank)?;
        Some(Best::single(&best.point, best.rank))
    }

    fn repeats(&self) -> bool {
        self.settings.repeats
    }

    fn region(&self) -> Option<ShrunkRegion<'_>> {
        let region = self.active_region()?;
        Some(ShrunkRegion { center: region.center(), share: region.fraction() })
    }

    /// Nothing becomes better than the best point by that.
    fn revise(&mut self, point: &[f64], rank: Rank) {
        self.training.revise_best(point, rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizers::Optimizer;
    use crate::outcome::Outcome;

    /// `racecars overhead` measures a step against a floor with as many random numbers.
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
}
