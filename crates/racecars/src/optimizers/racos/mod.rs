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

pub use settings::{Classification, Replacing, Shrinking};

use super::ledger::Ledger;
use super::{Best, Candidate, Optimizer, saved};
use crate::classify::{Classifier, Sample, Uncertain};
use crate::error::Result;
use crate::outcome::{Outcome, Rank};
use crate::random::Random;
use crate::space::{Interval, Region, Space};
use schedule::Schedule;
use serde::{Deserialize, Serialize};
use settings::Resolved;
use training_set::TrainingSet;

/// An optimizer of the RACOS family.
pub struct Racos {
    space: Space,
    state: State,
    scratch: Scratch,
}

/// Which of the three algorithms this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Variant {
    Racos,
    Sracos,
    RaceCars,
}

/// Everything that a resumed run needs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    variant: Variant,
    settings: Resolved,
    random: Random,
    ledger: Ledger,
    training: TrainingSet,
    /// RACOS: the part of the batch that has been told, to be taken in together.
    batch: Vec<Sample>,
    schedule: Schedule,
}

/// What is rebuilt at will.
#[derive(Default)]
struct Scratch {
    classifier: Classifier,
    /// Buffers for points to come, at most as many as candidates were ever out at a time.
    spare: Vec<Box<[f64]>>,
    most_out: usize,
}

impl Racos {
    /// RACOS in batches of r.
    pub fn batch(
        space: &Space,
        settings: &Classification,
        budget: Option<u64>,
        seed: u64,
    ) -> Result<Self> {
        Racos::new(Variant::Racos, space, settings, Schedule::Still, budget, seed)
    }

    /// Sequential RACOS.
    pub fn sequential(
        space: &Space,
        settings: &Classification,
        budget: Option<u64>,
        seed: u64,
    ) -> Result<Self> {
        Racos::new(Variant::Sracos, space, settings, Schedule::Still, budget, seed)
    }

    /// RACE-CARS.
    pub fn race_cars(
        space: &Space,
        settings: &Classification,
        shrinking: &Shrinking,
        budget: Option<u64>,
        seed: u64,
    ) -> Result<Self> {
        if *shrinking == Shrinking::default() {
            let schedule = Schedule::adaptive(space, budget);
            let settings = settings.or_adaptive();
            return Racos::new(Variant::RaceCars, space, &settings, schedule, budget, seed);
        }
        let (gamma, rho) = shrinking.resolve(space.dimension(), budget)?;
        let schedule = Schedule::fixed(gamma, rho);
        Racos::new(Variant::RaceCars, space, settings, schedule, budget, seed)
    }

    fn new(
        variant: Variant,
        space: &Space,
        settings: &Classification,
        schedule: Schedule,
        budget: Option<u64>,
        seed: u64,
    ) -> Result<Self> {
        let settings = settings.resolve(space, budget)?;
        Ok(Racos {
            space: space.clone(),
            state: State {
                variant,
                random: Random::new(seed),
                ledger: Ledger::default(),
                training: TrainingSet::new(settings.training_size, settings.positive_size),
                batch: Vec::new(),
                schedule,
                settings,
            },
            scratch: Scratch::default(),
        })
    }

    /// Takes a saved state back, if it is one that this code could have written.
    pub(super) fn restore(space: Space, state: State) -> Result<Self> {
        let settings = &state.settings;
        settings.check(space.dimension())?;
        let samples = || state.training.samples().chain(&state.batch);
        let is_sound = state.random.is_alive()
            && state.ledger.is_sound(&space)
            && state.training.is_sound(settings.training_size, settings.positive_size)
            && state.schedule.is_sound(&space)
            && samples().all(|sample| sample.is_sound(&space));
        if !is_sound {
            return Err(saved::unsound());
        }
        Ok(Racos { space, state, scratch: Scratch::default() })
    }

    /// The best point, if it is this one, turned out to be worth this rank. Nothing becomes better than it
    /// by that.
    pub(super) fn revise_best(&mut self, point: &[f64], rank: Rank) {
        self.state.training.revise_best(point, rank);
    }

    /// A hypothesis as the theorems have it: the box learned around a random positive, within the
    /// region as the last step left it. For studying a run ([`crate::theory`]): the optimizer itself
    /// learns only what a step needs, and this neither changes it nor its random generator.
    ///
    /// `None` until there are r outcomes to learn from, and in spaces that are not continuous.
    pub fn hypothesis(&self, random: &mut Random) -> Option<Vec<Interval>> {
        let training = &self.state.training;
        if !training.is_ready() || !self.space.is_continuous() {
            return None;
        }
        let (positive, negatives) = training.draw_positive(random);
        let mut classifier = Classifier::default();
        Some(classifier.learn(&self.space, positive, negatives, self.active_region(), random))
    }

    /// The region as the last step left it, once there was one.
    fn active_region(&self) -> Option<Region<'_>> {
        let State { training, schedule, .. } = &self.state;
        let best = training.best().filter(|_| training.is_ready())?;
        schedule.region(&best.point)
    }

    /// Draws a point from a learned box within the region, into `point`.
    fn exploit(&mut self, point: &mut [f64]) -> Option<u64> {
        /// Where points can repeat: draws within the region, then as many in the whole space, before
        /// giving up on a neighbour of x+ that was not seen before.
        const TRIES: usize = 8;
        let Racos { space, state, scratch } = self;
        let State { settings, random, ledger, training, schedule, .. } = state;
        let avoids_repeats = space.can_repeat() && !settings.repeats;
        let tries = if avoids_repeats { 2 * TRIES } else { 1 };
        for attempt in 0..tries {
            let (positive, negatives) = training.draw_positive(random);
            let is_inside = attempt < TRIES && !schedule.leaves_region(random);
            let first = schedule.next_coordinate(space.dimension(), random);
            let more = schedule.more_coordinates(space.dimension(), random);
            let count = (settings.uncertain + more).min(space.dimension());
            let uncertain = Uncertain { first, count };
            let best = training.best().filter(|_| is_inside);
            let region = best.and_then(|best| schedule.region(&best.point));
            let key = (scratch.classifier)
                .draw(space, positive, negatives, region, uncertain, random, point);
            if !(avoids_repeats && ledger.has_seen(key)) {
                return Some(key);
            }
        }
        ledger.draw(space, random, point)
    }

    /// Draws a point from the whole space, into `point`.
    fn explore(&mut self, point: &mut [f64]) -> Option<u64> {
        let State { settings, random, ledger, .. } = &mut self.state;
        if settings.repeats {
            self.space.draw(random, point);
            return Some(self.space.key(point));
        }
        ledger.draw(&self.space, random, point)
    }

    fn take_in(&mut self, sample: Sample) {
        let State { variant, settings, training, random, .. } = &mut self.state;
        // RACOS selects the best r of all, which is what replacing the worst amounts to.
        let replacing = match variant {
            Variant::Racos => Replacing::Worst,
            _ => settings.replacing,
        };
        if let Some(left) = training.insert(sample, replacing, &self.space, random) {
            self.keep_buffer(left.point);
        }
    }

    /// Keeps a buffer for a point to come; points told from elsewhere could otherwise pile up.
    fn keep_buffer(&mut self, buffer: Box<[f64]>) {
        if self.scratch.spare.len() < self.scratch.most_out {
            self.scratch.spare.push(buffer);
        }
    }
}

impl Optimizer for Racos {
    fn space(&self) -> &Space {
        &self.space
    }

    fn name(&self) -> &'static str {
        match self.state.variant {
            Variant::Racos => "racos",
            Variant::Sracos => "sracos",
            Variant::RaceCars => "race-cars",
        }
    }

    fn ask(&mut self) -> Option<Candidate> {
        if !self.state.settings.repeats && self.state.ledger.is_exhausted(&self.space) {
            return None;
        }
        let mut point = (self.scratch.spare.pop())
            .unwrap_or_else(|| vec![0.0; self.space.dimension()].into_boxed_slice());
        // Until r outcomes are known, whoever asks gets a uniform draw: asking never waits.
        let State { training, schedule, random, settings, ledger, .. } = &mut self.state;
        let key = match training.best() {
            Some(best) if training.is_ready() => {
                schedule.step(&best.point, ledger.told(), random);
                if random.chance(schedule.exploitation(settings.exploitation, &self.space)) {
                    self.exploit(&mut point)
                } else {
                    self.explore(&mut point)
                }
            }
            _ => self.explore(&mut point),
        }?;
        let candidate = self.state.ledger.issue(&self.space, point, key);
        self.scratch.most_out = self.scratch.most_out.max(self.state.ledger.pending());
        Some(candidate)
    }

    fn tell(&mut self, candidate: Candidate, outcome: Outcome) -> Result<()> {
        let is_asked = candidate.id().is_some();
        let (point, key) = self.state.ledger.settle(&self.space, candidate)?;
        let rank = outcome.rank();
        let State { training, schedule, .. } = &mut self.state;
        if training.is_ready() {
            let is_better = training.best().is_none_or(|best| rank < best.rank);
            schedule.learn(is_better, is_asked, self.space.dimension());
        }
        let sample = Sample { point, rank, key };
        if self.state.variant != Variant::Racos || !self.state.training.is_ready() {
            self.take_in(sample);
            return Ok(());
        }
        self.state.batch.push(sample);
        if self.state.batch.len() >= self.state.settings.training_size {
            let mut batch = std::mem::take(&mut self.state.batch);
            batch.drain(..).for_each(|sample| self.take_in(sample));
            self.state.batch = batch;
        }
        Ok(())
    }

    fn told(&self) -> u64 {
        self.state.ledger.told()
    }

    fn pending(&self) -> usize {
        self.state.ledger.pending()
    }

    fn best(&self) -> Option<Best<'_>> {
        let told = self.state.batch.iter().filter(|sample| !sample.rank.is_failure());
        let best = told.chain(self.state.training.best()).min_by_key(|sample| sample.rank)?;
        Some(Best { point: &best.point, rank: best.rank, evaluations: 1 })
    }

    fn region(&self) -> Option<(&[f64], f64)> {
        let region = self.active_region()?;
        Some((region.center(), region.fraction()))
    }

    fn save(&self) -> Vec<u8> {
        saved::save(self.name(), &self.space, &self.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `racecars overhead` measures a step against a floor with so many random numbers.
    #[test]
    fn a_step_draws_five_or_eight_random_numbers() {
        let space = Space::cube(500, -10.0, 10.0).unwrap();
        let settings = Classification { exploitation: Some(1.0), ..Default::default() };
        let paper = Shrinking { gamma: Some(0.95), rho: None };
        for (shrinking, expected) in [(Shrinking::default(), 5.0), (paper, 8.0)] {
            let mut optimizer =
                Racos::race_cars(&space, &settings, &shrinking, Some(50_000), 1).unwrap();
            let mut draws = 0u32;
            let (warm_up, steps) = (2000, 2000);
            for step in 0..warm_up + steps {
                let mut counter = optimizer.state.random.clone();
                let candidate = optimizer.ask().unwrap();
                let value: f64 = candidate.point().iter().map(|x| x * x).sum();
                optimizer.tell(candidate, Outcome::from(value)).unwrap();
                while step >= warm_up && counter != optimizer.state.random {
                    counter.bits();
                    draws += 1;
                }
            }
            let mean = f64::from(draws) / f64::from(steps);
            assert!((expected - 0.5..expected + 1.0).contains(&mean), "{mean}");
        }
    }
}
