//! CMA-ES, and its separable variant: evolution of a normal distribution.
//!
//! After Hansen, "The CMA Evolution Strategy: A Tutorial" (arXiv 1604.00772): cumulative step-size
//! adaptation, rank-one and rank-mu update of the covariance matrix with negative weights for the
//! worse half, and restarts. The files by role:
//!
//! - `parameters`: weights and learning rates, eqs. (48) to (58)
//! - `covariance`: the matrix, or its diagonal, and its Cholesky factor
//! - `distribution`: one generation of the evolution, eqs. (38) to (47)
//! - `generation`: the candidates of one generation
//! - `stopping` and `restarts`: when a run ends, and how the next one starts
//! - `encoding`: bounds and discrete coordinates, which the distribution does not have
//!
//! Asking and telling. The distribution is updated as soon as lambda outcomes are told, for any
//! candidates. A candidate told after that was drawn from an earlier distribution. It is *injected*
//! (Hansen, "Injecting external solutions into CMA-ES", 2011): as the step from the current mean to it,
//! shortened to a length that is likely under the current distribution. A candidate that is more than
//! two generations late, or from an earlier run, only counts for the best point: with candidates of any
//! age the step size collapses. So with many more workers than lambda, a generation takes more than
//! lambda evaluations, and a population as large as the number of workers is the better choice.
//!
//! A point that was never asked is also injected, and does not count towards lambda. The search starts at
//! the best of the points told before the first ask.

mod covariance;
mod distribution;
mod encoding;
mod generation;
mod parameters;
mod restarts;
mod settings;
mod stopping;

pub use settings::{CmaEs, Restarts};

use super::ledger::Ledger;
use super::shell::{Evaluated, Proposal, Search, Setup, Tools};
use crate::error::Result;
use crate::linalg::cholesky::NotPositiveDefinite;
use crate::outcome::Rank;
use crate::random::Random;
use crate::sample::Sample;
use crate::space::Space;
use distribution::{Distribution, Step};
use generation::Generation;
use parameters::Parameters;
use restarts::RestartSchedule;
use serde::{Deserialize, Serialize};
use settings::Resolved;
use stopping::{Stop, ValueHistory};

/// The number of generations by which a candidate may be late and still be injected.
const MAX_LATE_GENERATIONS: usize = 2;

/// From this dimension on, an update of the full covariance matrix may take milliseconds.
const HEAVY_DIMENSION: usize = 30;

/// CMA-ES or separable CMA-ES.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CmaEsSearch {
    settings: Resolved,
    /// The ids of the first candidates of the current generation and of the previous ones whose candidates
    /// are still injected, latest first.
    first_ids: [u64; MAX_LATE_GENERATIONS + 1],
    schedule: RestartSchedule,
    distribution: Distribution,
    generation: Generation,
    values: ValueHistory,
    /// Why the previous run ended.
    last_stop: Option<Stop>,
    #[serde(skip)]
    scratch: Scratch,
}

/// Derived values and buffers.
#[derive(Debug, Default)]
struct Scratch {
    parameters: Parameters,
    /// The factor of each coordinate's deviation; empty in continuous spaces.
    scale: Vec<f64>,
    distribution: distribution::UpdateBuffers,
    /// The columns of the generation, sorted by rank.
    order: Vec<usize>,
    /// A buffer for a step.
    step: Vec<f64>,
}

impl CmaEsSearch {
    /// `separable` selects one variance per coordinate instead of the full covariance matrix.
    pub(crate) fn new(
        settings: &CmaEs,
        separable: bool,
        setup: Setup<'_>,
        random: &mut Random,
    ) -> Result<Self> {
        let settings = settings.resolve(separable, setup.space.dimension())?;
        let schedule = RestartSchedule::new(&settings);
        let distribution = initial_distribution(setup.space, &settings, &schedule, random);
        Ok(CmaEsSearch {
            settings,
            first_ids: [0; MAX_LATE_GENERATIONS + 1],
            schedule,
            distribution,
            generation: Generation::default(),
            values: ValueHistory::default(),
            last_stop: None,
            scratch: Scratch::default(),
        })
    }

    /// Computes the factors of the deviations of discrete coordinates for this generation.
    fn update_scale(&mut self, space: &Space) {
        let Scratch { parameters, scale, .. } = &mut self.scratch;
        if !scale.is_empty() {
            let distribution = &self.distribution;
            let alpha = 1.0 / (scale.len() * parameters.lambda) as f64;
            let deviation = |i| distribution.deviation(i);
            encoding::margins(space, &distribution.mean, deviation, alpha, scale);
        }
    }

    /// The next column of the generation that was not asked yet. Draws more columns if there is none.
    #[expect(clippy::expect_used, reason = "see the message")]
    fn next_column(&mut self, random: &mut Random) -> usize {
        /// Columns drawn at a time after the first lambda.
        const EXTRA_COLUMNS: usize = 8;
        let CmaEsSearch { distribution, generation, scratch, .. } = self;
        if let Some(column) = generation.take_ready() {
            return column;
        }
        let (n, lambda) = (distribution.mean.len(), scratch.parameters.lambda);
        // Lost candidates must not accumulate.
        if generation.len() >= 4 * lambda {
            generation.forget_pending(n);
        }
        let count = if generation.len() < lambda { lambda } else { EXTRA_COLUMNS.min(lambda) };
        let work = &mut scratch.distribution.work;
        let (steps, add_column) = generation.extend(count, n);
        distribution.covariance.sample(random, steps, work, add_column);
        generation.take_ready().expect("columns were drawn")
    }

    /// Writes the point of a column: x = m + sigma y, eq. (40), through the encoding.
    fn decode(&self, space: &Space, column: usize, point: &mut [f64]) {
        let Distribution { mean, sigma, .. } = &self.distribution;
        let y = self.generation.step(column, mean.len());
        let scale = &self.scratch.scale;
        if scale.is_empty() {
            encoding::decode(space, |i| mean[i] + sigma * y[i], point);
        } else {
            encoding::decode(space, |i| mean[i] + sigma * scale[i] * y[i], point);
        }
    }

    /// Moves the mean to a point, before the first candidate of a run.
    fn start_at(&mut self, space: &Space, point: &[f64]) {
        // No mirror image is nearer to the middle of the box than the point itself.
        self.scratch.step.fill(0.5);
        encoding::encode(space, point, &self.scratch.step, &mut self.distribution.mean);
        self.update_scale(space);
    }

    /// Injects a point that was not drawn from the current distribution (Hansen 2011, eqs. (3) and (4)).
    fn inject(&mut self, space: &Space, point: &[f64], rank: Rank, known: bool) {
        let CmaEsSearch { distribution, generation, scratch, .. } = self;
        let Scratch { parameters, scale, distribution: buffers, step, .. } = scratch;
        encoding::encode(space, point, &distribution.mean, step);
        for (i, (y, mean)) in step.iter_mut().zip(&distribution.mean).enumerate() {
            *y = (*y - mean) / (distribution.sigma * scale.get(i).unwrap_or(&1.0));
        }
        let n = step.len() as f64;
        let longest = n.sqrt() + 2.0 * n / (n + 2.0);
        let mut length = distribution.covariance.squared_length(step, &mut buffers.work);
        if length > longest * longest {
            let factor = longest / length.sqrt();
            step.iter_mut().for_each(|y| *y *= factor);
            length = longest * longest;
        }
        // A step that overflowed is replaced by a zero step.
        if !(length.is_finite() && step.iter().all(|y| y.is_finite())) {
            step.fill(0.0);
            length = 0.0;
        }
        generation.inject(step, length, rank, known, parameters.lambda / 2);
    }

    /// Updates the distribution after lambda outcomes.
    #[expect(clippy::expect_used, reason = "see the message")]
    fn evolve(&mut self, tools: &mut Tools<'_, ()>) {
        let CmaEsSearch { settings, distribution, generation, values, schedule, scratch, .. } =
            self;
        let Scratch { parameters, scale, distribution: buffers, order, .. } = scratch;
        generation.rank(order);
        // Known points displace the worst ones.
        order.truncate(parameters.lambda);
        let rank_at = |place: usize| {
            generation.column(order[place]).rank().expect("sorted columns have ranks")
        };
        let (best, median) = (rank_at(0), rank_at(parameters.lambda / 2));
        let worst = rank_at(parameters.lambda - 1);
        let stop = if best.is_failure() {
            values.push_failed()
        } else {
            let n = distribution.mean.len();
            let steps = order.iter().map(|&column| Step {
                y: generation.step(column, n),
                length: generation.column(column).length,
                is_drawn: !generation.column(column).is_known(),
            });
            match distribution.update(parameters, steps, scale, buffers) {
                Err(NotPositiveDefinite) => Some(Stop::ConditionCov),
                Ok(()) => {
                    encoding::confine(tools.space, &mut distribution.mean);
                    let shortest = ValueHistory::lengths(parameters, n).1;
                    debug_assert!(
                        distribution.is_sound(n, settings.separable),
                        "a distribution is finite and positive definite"
                    );
                    values.push(best, median, worst, shortest);
                    values.stop(distribution, parameters, schedule.sigma)
                }
            }
        };
        let is_repeating = 2 * generation.strays > parameters.lambda;
        let stop = stop
            .or(is_repeating.then_some(Stop::Repeats))
            .or(schedule.is_over().then_some(Stop::BudgetShare));
        generation.clear();
        match stop {
            Some(stop) => self.restart(stop, tools),
            None => {
                self.first_ids.rotate_right(1);
                self.first_ids[0] = tools.ledger.next_id();
                self.update_scale(tools.space);
            }
        }
    }

    fn restart(&mut self, stop: Stop, tools: &mut Tools<'_, ()>) {
        let (space, random) = (tools.space, &mut *tools.random);
        let CmaEsSearch { settings, schedule, distribution, .. } = self;
        let n = space.dimension();
        schedule.restart(settings, Resolved::max_population(n), random);
        *distribution = initial_distribution(space, settings, schedule, random);
        self.scratch.parameters = Parameters::new(n, schedule.population, settings.separable);
        self.values = ValueHistory::default();
        self.first_ids = [tools.ledger.next_id(); MAX_LATE_GENERATIONS + 1];
        self.last_stop = Some(stop);
        self.update_scale(space);
    }
}

/// The initial distribution of a run, around a uniformly random point.
fn initial_distribution(
    space: &Space,
    settings: &Resolved,
    schedule: &RestartSchedule,
    random: &mut Random,
) -> Distribution {
    let mut mean: Vec<f64> = (0..space.dimension()).map(|_| random.unit()).collect();
    encoding::confine(space, &mut mean);
    Distribution::new(mean, schedule.sigma, settings.separable)
}

impl Search for CmaEsSearch {
    type Mark = ();

    fn prepare(&mut self, space: &Space, _: usize) -> Result<()> {
        let n = space.dimension();
        self.scratch = Scratch {
            parameters: Parameters::new(n, self.schedule.population, self.settings.separable),
            scale: if space.is_continuous() { Vec::new() } else { vec![1.0; n] },
            step: vec![0.0; n],
            ..Scratch::default()
        };
        self.update_scale(space);
        Ok(())
    }

    fn propose(&mut self, tools: &mut Tools<'_, ()>) -> Option<Proposal<()>> {
        /// In spaces where points can repeat: draws from the distribution before a uniform draw.
        const MAX_TRIES: usize = 16;
        let mut point = tools.buffer();
        let mut column = 0;
        let unseen = tools.try_unseen(MAX_TRIES, &mut point, |tools, _, point| {
            column = self.next_column(tools.random);
            self.decode(tools.space, column, point);
            tools.space.key(point)
        });
        match unseen {
            Some(_) => self.generation.set_pending(column, tools.ledger.next_id()),
            None => self.generation.strays += 1,
        }
        let key = unseen.or_else(|| tools.draw(&mut point))?;
        Some(Proposal { point, key, mark: () })
    }

    fn learn(
        &mut self,
        evaluated: Evaluated<()>,
        tools: &mut Tools<'_, ()>,
    ) -> Result<Option<Box<[f64]>>> {
        let Evaluated { sample: Sample { point, rank, .. }, asked, is_best } = evaluated;
        match asked.map(|asked| asked.id) {
            Some(id) if id < self.first_ids[MAX_LATE_GENERATIONS] => {}
            Some(id) => {
                self.schedule.count();
                match self.generation.find(id) {
                    Some(column) => self.generation.tell(column, rank),
                    None => self.inject(tools.space, &point, rank, false),
                }
                if self.generation.told() >= self.scratch.parameters.lambda {
                    self.evolve(tools);
                }
            }
            None if rank.is_failure() => {}
            None if tools.ledger.next_id() > 0 => self.inject(tools.space, &point, rank, true),
            None if is_best => self.start_at(tools.space, &point),
            None => {}
        }
        Ok(Some(point))
    }

    fn is_sound(&self, space: &Space, ledger: &Ledger<()>) -> Result<bool> {
        let CmaEsSearch { settings, schedule, distribution, generation, .. } = self;
        let (n, asked) = (space.dimension(), ledger.next_id());
        settings.check(n)?;
        Ok(schedule.is_sound(settings, Resolved::max_population(n))
            && distribution.is_sound(n, settings.separable)
            && generation.is_sound(n, schedule.population, asked)
            && self.values.is_sound()
            && self.first_ids.iter().all(|&first| first <= asked))
    }

    fn is_heavy(&self, space: &Space) -> bool {
        !self.settings.separable && space.dimension() >= HEAVY_DIMENSION
    }
}

#[cfg(test)]
mod tests;
