//! CMA-ES, and its separable variant: evolution of a normal distribution.
//!
//! After Hansen, "The CMA Evolution Strategy: A Tutorial" (arXiv 1604.00772): cumulative step-size
//! adaptation, rank-one and rank-mu update of the covariance matrix with negative weights for the
//! worse half, and restarts. The files by role:
//!
//! - `parameters`: weights and learning rates, eqs. (48) to (58)
//! - `covariance`: the matrix, or its diagonal, and its Cholesky factor
//! - `distribution`: one step of the evolution, eqs. (38) to (47)
//! - `generation`: the candidates asked and told between two such steps
//! - `stopping` and `restarts`: when a run is over, and how the next one starts
//! - `encoding`: bounds and discrete coordinates, which the distribution knows nothing of
//!
//! Asking and telling. The distribution moves on as soon as lambda outcomes are told, whichever they
//! are. A candidate told after that was drawn from an earlier distribution; it is taken in as an
//! *injected* point (Hansen, "Injecting external solutions into CMA-ES", 2011): as the step that leads
//! to it from the current mean, shortened to a length that the current distribution might have drawn.
//! One that is more than two generations late, or of an earlier run, only counts for the best point:
//! with candidates of any age the step size collapses. So with many more workers than lambda a
//! generation takes more than lambda evaluations, and a population of their number is the better
//! choice.
//!
//! A point that was never asked is injected too, and does not count towards lambda. Of such points
//! told before the first ask, the best one is where the search starts.

mod covariance;
mod distribution;
mod encoding;
mod generation;
mod parameters;
mod restarts;
mod settings;
mod stopping;

pub use settings::{CmaEs, Restarts};
pub use stopping::Stop;

use super::incumbent::Incumbent;
use super::ledger::Ledger;
use super::{Best, Candidate, Optimizer, saved};
use crate::classify::Sample;
use crate::error::Result;
use crate::outcome::{Outcome, Rank};
use crate::random::Random;
use crate::space::Space;
use distribution::{Distribution, Step};
use generation::Generation;
use parameters::Parameters;
use restarts::Schedule;
use serde::{Deserialize, Serialize};
use settings::Resolved;
use stopping::History;

/// How many generations late a candidate may be told and still count.
const LATEST: usize = 2;

/// An optimizer by CMA-ES.
pub struct Cma {
    space: Space,
    state: State,
    scratch: Scratch,
}

/// Everything that a resumed run needs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    settings: Resolved,
    random: Random,
    ledger: Ledger,
    best: Incumbent,
    /// How many candidates were asked, which is the id of the next one.
    asked: u64,
    /// The id of the first candidate of this generation of the run, of the one before, and so on: of
    /// those that still count.
    from: [u64; LATEST + 1],
    schedule: Schedule,
    distribution: Distribution,
    generation: Generation,
    history: History,
    last_stop: Option<Stop>,
}

/// What follows from the state, and buffers.
struct Scratch {
    parameters: Parameters,
    /// By how much each coordinate's deviation is scaled up; empty where none is discrete.
    scale: Vec<f64>,
    distribution: distribution::Scratch,
    /// The columns of the generation, by rank.
    order: Vec<usize>,
    /// A step.
    step: Vec<f64>,
    /// Buffers for points to come.
    spare: Vec<Box<[f64]>>,
}

impl Cma {
    /// A search that is a function of the seed.
    ///
    /// Refuses a space with unordered coordinates of more than two values.
    pub fn new(space: &Space, settings: &CmaEs, seed: u64) -> Result<Self> {
        let settings = settings.resolve(space)?;
        let mut random = Random::new(seed);
        let schedule = Schedule::new(&settings);
        let distribution = first_distribution(space, &settings, &schedule, &mut random);
        let state = State {
            settings,
            random,
            ledger: Ledger::default(),
            best: Incumbent::default(),
            asked: 0,
            from: [0; LATEST + 1],
            schedule,
            distribution,
            generation: Generation::default(),
            history: History::default(),
            last_stop: None,
        };
        Ok(Cma::assemble(space.clone(), state))
    }

    /// Takes a saved state back, if it is one that this code could have written.
    pub(super) fn restore(space: Space, state: State) -> Result<Self> {
        let settings = &state.settings;
        settings.check(&space)?;
        let n = space.dimension();
        let State { schedule, distribution, generation, history, asked, .. } = &state;
        let is_sound = state.random.is_alive()
            && state.ledger.is_sound(&space)
            && state.ledger.next_id() == *asked
            && schedule.is_sound(settings, Resolved::most(n))
            && distribution.is_sound(n, settings.separable)
            && generation.is_sound(n, schedule.population, *asked)
            && history.is_sound()
            && state.from.iter().all(|from| from <= asked)
            && state.best.is_sound(&space);
        if !is_sound {
            return Err(saved::unsound());
        }
        Ok(Cma::assemble(space, state))
    }

    fn assemble(space: Space, state: State) -> Self {
        let n = space.dimension();
        let scratch = Scratch {
            parameters: Parameters::new(n, state.schedule.population, state.settings.separable),
            scale: if encoding::has_cells(&space) { vec![1.0; n] } else { Vec::new() },
            distribution: Default::default(),
            order: Vec::new(),
            step: vec![0.0; n],
            spare: Vec::new(),
        };
        let mut cma = Cma { space, state, scratch };
        cma.stretch();
        cma
    }

    /// How often the search has started again.
    pub fn restarts(&self) -> u64 {
        self.state.schedule.restarts
    }

    /// Why it last did.
    pub fn last_stop(&self) -> Option<Stop> {
        self.state.last_stop
    }

    /// The population of the run that is on.
    pub fn population(&self) -> usize {
        self.scratch.parameters.lambda
    }

    /// Finds by how much the deviations of discrete coordinates are scaled up in this generation.
    fn stretch(&mut self) {
        let Scratch { parameters, scale, .. } = &mut self.scratch;
        if !scale.is_empty() {
            let distribution = &self.state.distribution;
            let alpha = 1.0 / (scale.len() * parameters.lambda) as f64;
            let deviation = |i| distribution.deviation(i);
            encoding::margins(&self.space, &distribution.mean, deviation, alpha, scale);
        }
    }

    /// Writes a point to propose, and returns its key and its column, if it is from one.
    fn propose(&mut self, point: &mut [f64]) -> Option<(u64, Option<usize>)> {
        /// In a discrete space: draws from the distribution before giving up on one that was not seen.
        const TRIES: usize = 16;
        let tries = if self.space.can_repeat() { TRIES } else { 1 };
        for _ in 0..tries {
            let column = self.next_column();
            let Some(column) = column else { break };
            self.decode(column, point);
            let key = self.space.key(point);
            if !self.state.ledger.has_seen(key) {
                return Some((key, Some(column)));
            }
        }
        let State { ledger, random, generation, .. } = &mut self.state;
        generation.strays += 1;
        let key = ledger.draw(&self.space, random, point)?;
        Some((key, None))
    }

    /// The next column of the generation that is not asked yet; draws more where there is none.
    fn next_column(&mut self) -> Option<usize> {
        /// After the first lambda, how many are drawn at a time.
        const MORE: usize = 8;
        let State { random, distribution, generation, .. } = &mut self.state;
        if let Some(column) = generation.take_ready() {
            return Some(column);
        }
        let (n, lambda) = (distribution.mean.len(), self.scratch.parameters.lambda);
        // Candidates that never come back must not pile up.
        if generation.len() >= 4 * lambda {
            generation.forget_out(n);
        }
        let count = if generation.len() < lambda { lambda } else { MORE.min(lambda) };
        let work = &mut self.scratch.distribution.work;
        let (steps, columns) = generation.extend(count, n);
        distribution.covariance.sample(random, steps, work, |length| {
            Generation::push_drawn(columns, length);
        });
        generation.take_ready()
    }

    /// Writes the point of a column: x = m + sigma y, eq. (40), through the encoding.
    fn decode(&self, column: usize, point: &mut [f64]) {
        let Distribution { mean, sigma, .. } = &self.state.distribution;
        let y = self.state.generation.step(column, mean.len());
        let scale = &self.scratch.scale;
        if scale.is_empty() {
            encoding::decode(&self.space, |i| mean[i] + sigma * y[i], point);
        } else {
            encoding::decode(&self.space, |i| mean[i] + sigma * scale[i] * y[i], point);
        }
    }

    /// Learns the rank of a point: of an asked one, unless it is of an earlier run; and of a known one,
    /// unless it failed.
    fn learn(&mut self, id: Option<u64>, point: &[f64], rank: Rank) {
        match id {
            Some(id) if id < self.state.from[LATEST] => return,
            Some(id) => {
                self.state.schedule.count();
                match self.state.generation.find(id) {
                    Some(column) => self.state.generation.tell(column, rank),
                    None => self.inject(point, rank, false),
                }
            }
            None if rank.is_failure() => return,
            None if self.state.asked == 0 => {
                if self.state.best.is_beaten_by(rank) {
                    // From the middle of the box, no mirror image is nearer than the point.
                    let Distribution { mean, .. } = &mut self.state.distribution;
                    self.scratch.step.fill(0.5);
                    encoding::encode(&self.space, point, &self.scratch.step, mean);
                    self.stretch();
                }
                return;
            }
            None => self.inject(point, rank, true),
        }
        if self.state.generation.told() >= self.scratch.parameters.lambda {
            self.evolve();
        }
    }

    /// Takes in a point that the current distribution did not draw (Hansen 2011, eqs. (3) and (4)).
    fn inject(&mut self, point: &[f64], rank: Rank, known: bool) {
        let Scratch { parameters, scale, distribution: scratch, step, .. } = &mut self.scratch;
        let State { distribution, generation, .. } = &mut self.state;
        encoding::encode(&self.space, point, &distribution.mean, step);
        for (i, (y, mean)) in step.iter_mut().zip(&distribution.mean).enumerate() {
            *y = (*y - mean) / (distribution.sigma * scale.get(i).unwrap_or(&1.0));
        }
        let n = step.len() as f64;
        let longest = n.sqrt() + 2.0 * n / (n + 2.0);
        let mut length = distribution.covariance.squared_length(step, &mut scratch.work);
        if length > longest * longest {
            let factor = longest / length.sqrt();
            step.iter_mut().for_each(|y| *y *= factor);
            length = longest * longest;
        }
        // A step too long for arithmetic: as good as none.
        if !(length.is_finite() && step.iter().all(|y| y.is_finite())) {
            step.fill(0.0);
            length = 0.0;
        }
        generation.inject(step, length, rank, known, parameters.lambda / 2);
    }

    /// Moves the distribution on, lambda outcomes being told.
    fn evolve(&mut self) {
        let Scratch { parameters, scale, distribution: scratch, order, .. } = &mut self.scratch;
        let State { distribution, generation, history, schedule, .. } = &mut self.state;
        generation.rank(order);
        // Known points take the places of the worst.
        order.truncate(parameters.lambda);
        let rank_at = |place: usize| {
            let column = order.get(place).map(|&column| generation.column(column));
            column.and_then(generation::Column::rank).unwrap_or(Rank::FAILURE)
        };
        let (best, median) = (rank_at(0), rank_at(parameters.lambda / 2));
        let worst = rank_at(parameters.lambda - 1);
        let stop = if best.is_failure() {
            history.push_failed()
        } else {
            let n = distribution.mean.len();
            let steps = order.iter().map(|&column| Step {
                y: generation.step(column, n),
                length: generation.column(column).length,
                is_drawn: !generation.column(column).is_known(),
            });
            match distribution.update(parameters, steps, scale, scratch) {
                Err(covariance::Degenerate) => Some(Stop::Condition),
                Ok(()) => {
                    encoding::confine(&self.space, &mut distribution.mean);
                    let shortest = History::lengths(parameters, n).1;
                    history.push(best, median, worst, shortest);
                    history.stop(distribution, parameters, schedule.sigma)
                }
            }
        };
        let is_stray = 2 * generation.strays > parameters.lambda;
        let stop =
            stop.or(is_stray.then_some(Stop::Seen)).or(schedule.is_over().then_some(Stop::Share));
        generation.clear();
        match stop {
            Some(stop) => self.restart(stop),
            None => {
                let State { from, asked, .. } = &mut self.state;
                from.rotate_right(1);
                from[0] = *asked;
                self.stretch();
            }
        }
    }

    fn restart(&mut self, stop: Stop) {
        let State { settings, random, schedule, distribution, .. } = &mut self.state;
        let n = self.space.dimension();
        schedule.restart(settings, Resolved::most(n), random);
        *distribution = first_distribution(&self.space, settings, schedule, random);
        self.scratch.parameters = Parameters::new(n, schedule.population, settings.separable);
        self.state.history = History::default();
        self.state.from = [self.state.asked; LATEST + 1];
        self.state.last_stop = Some(stop);
        self.stretch();
    }
}

/// Where a run starts: around a uniformly random point.
fn first_distribution(
    space: &Space,
    settings: &Resolved,
    schedule: &Schedule,
    random: &mut Random,
) -> Distribution {
    let mut mean = vec![0.0; space.dimension()];
    encoding::draw_mean(space, random, &mut mean);
    Distribution::new(mean, schedule.sigma, settings.separable)
}

impl Optimizer for Cma {
    fn space(&self) -> &Space {
        &self.space
    }

    fn name(&self) -> &'static str {
        self.state.settings.name()
    }

    fn ask(&mut self) -> Option<Candidate> {
        if self.state.ledger.is_exhausted(&self.space) {
            return None;
        }
        let mut point = (self.scratch.spare.pop())
            .unwrap_or_else(|| vec![0.0; self.space.dimension()].into_boxed_slice());
        let (key, column) = self.propose(&mut point)?;
        let id = self.state.asked;
        self.state.asked += 1;
        if let Some(column) = column {
            self.state.generation.set_out(column, id);
        }
        Some(self.state.ledger.issue(&self.space, point, key))
    }

    fn tell(&mut self, candidate: Candidate, outcome: Outcome) -> Result<()> {
        let id = candidate.id();
        let (point, key) = self.state.ledger.settle(&self.space, candidate)?;
        let rank = outcome.rank();
        self.learn(id, &point, rank);
        let left = self.state.best.offer(Sample { point, rank, key });
        // Points told from elsewhere could otherwise pile up.
        let Scratch { spare, .. } = &mut self.scratch;
        if spare.len() <= self.state.ledger.pending() {
            spare.extend(left);
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
        self.state.best.best()
    }

    fn save(&self) -> Vec<u8> {
        saved::save(self.name(), &self.space, &self.state)
    }
}

#[cfg(test)]
mod tests;
