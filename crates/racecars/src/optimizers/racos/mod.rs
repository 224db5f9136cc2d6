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
//! A step costs one copy of a point and a few random numbers: points move into and out of the training set
//! without being copied, and the buffer of a told point is reused for the next proposal.

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
            settings,
            classifier: Classifier::default(),
        })
    }

    /// The current region, if there is one.
    fn active_region(&self) -> Option<SearchRegion<'_>> {
        let best = self.training.best().filter(|_| self.training.is_ready())?;
        self.schedule.region(&best.point)
    }

    /// Writes a sample from a learned box within the region to `point`.
    fn exploit(&mut self, tools: &mut Tools<'_, ()>, point: &mut [f64]) -> Option<u64> {
        /// In spaces where points can repeat: attempts to find an unseen point within the region, then as
        /// many attempts in the whole space.
        const MAX_TRIES: usize = 8;
        let RacosSearch { settings, training, schedule, classifier, .. } = self;
        let mut learn = |tools: &mut Tools<'_, ()>, attempt: usize, point: &mut [f64]| {
            let (space, random) = (tools.space, &mut *tools.random);
            let examples = training.draw(space, random);
            let is_inside = attempt < MAX_TRIES && !schedule.leaves_region(random);
            let first = schedule.next_coordinate(space.dimension(), random);
            let extra = schedule.extra_coordinates(space.dimension(), random);
            let count = (settings.uncertain + extra).min(space.dimension());
            let uncertain = Uncertain { first, count };
            let best = training.best().filter(|_| is_inside);
            let region = best.and_then(|best| schedule.region(&best.point));
            classifier.draw(examples, region, uncertain, random, point)
        };
        if settings.repeats || !tools.space.can_repeat() {
            return Some(learn(tools, 0, point));
        }
        tools.unseen(2 * MAX_TRIES, point, learn)
    }

    /// Writes a uniform sample of the whole space to `point`.
    fn explore(&mut self, tools: &mut Tools<'_, ()>, point: &mut [f64]) -> Option<u64> {
        if self.settings.repeats {
            tools.space.draw(tools.random, point);
            return Some(tools.space.key(point));
        }
        tools.draw(point)
    }

    /// Inserts a sample into the training set. Returns the buffer of the sample that drops out.
    fn insert(&mut self, sample: Sample, tools: &mut Tools<'_, ()>) -> Option<Box<[f64]>> {
        // RACOS keeps the best r of all points, which is the same as replacing the worst.
        let replacing = match self.variant {
            Variant::Racos => Replacing::Worst,
            _ => self.settings.replacing,
        };
        let dropped = self.training.insert(sample, replacing, tools.space, tools.random);
        dropped.map(|sample| sample.point)
    }
}

impl Search for RacosSearch {
    type Mark = ();

    const KEEPS_BEST: bool = true;

    #[inline]
    fn propose(&mut self, tools: &mut Tools<'_, ()>) -> Option<Proposal<()>> {
        let mut point = tools.buffer();
        // Until r outcomes are known, proposals are uniform draws, since asking never waits.
        let key = match self.training.best() {
            Some(best) if self.training.is_ready() => {
                self.schedule.step(&best.point, tools.ledger.told(), tools.random);
                let default = self.settings.exploitation;
                if tools.random.chance(self.schedule.exploitation(default, tools.space)) {
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
        evaluated: Evaluated<()>,
        tools: &mut Tools<'_, ()>,
    ) -> Result<Option<Box<[f64]>>> {
        let Evaluated { sample, asked, .. } = evaluated;
        // Points that were not asked say nothing about the region.
        if asked.is_some() && self.training.is_ready() {
            let is_better = self.training.best().is_none_or(|best| sample.rank < best.rank);
            self.schedule.learn(is_better, tools.space.dimension());
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

    fn revise(&mut self, point: &[f64], rank: Rank) {
        self.training.revise_best(point, rank);
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
}
