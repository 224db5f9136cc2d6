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
//! - `surrogate`: a model of the objective that takes the place of some evaluations, as an option
//! - `encoding`: bounds and discrete coordinates, which the distribution does not have
//!
//! Asking and telling. The distribution is updated as soon as lambda outcomes are told, for any
//! candidates. A candidate told after that was drawn from an earlier distribution. It is *injected*
//! (Hansen, "Injecting external solutions into CMA-ES", 2011): as the step from the current mean to it,
//! shortened to a length that is likely under the current distribution. A candidate that is more than
//! two generations late, or from an earlier run, only counts for the best point: with candidates of any
//! age the step size collapses. For the same reason, if many more than lambda candidates are out, a
//! generation takes half as many outcomes as are out, with the parameters of that population.
//!
//! A point that was never asked is also injected, and does not count towards lambda. The search starts at
//! the best of the points told before the first ask, and a surrogate begins with all of them.

mod covariance;
mod distribution;
mod encoding;
mod generation;
mod parameters;
mod restarts;
mod settings;
mod stopping;
mod surrogate;

pub use settings::{CmaEs, Restarts};
pub(crate) use surrogate::capacity as surrogate_capacity;

use super::ledger::Ledger;
use super::shell::{Evaluated, Proposal, Search, Setup, Tools};
use crate::error::Result;
use crate::linalg::cholesky::NotPositiveDefinite;
use crate::outcome::{Outcome, Rank};
use crate::random::Random;
use crate::sample::Sample;
use crate::space::Space;
use distribution::{Distribution, Step, UpdateBuffers};
use generation::Generation;
use parameters::Parameters;
use restarts::RestartSchedule;
use serde::{Deserialize, Serialize};
use settings::Resolved;
use stopping::{Stop, ValueHistory};
use surrogate::{Model, Surrogate};

/// The number of generations by which a candidate may be late and still be injected.
const MAX_LATE_GENERATIONS: usize = 2;

/// A generation takes at least one outcome for this many candidates out, but at most this many times lambda.
/// With generations of lambda candidates most would be late, and the step size may collapse.
const OUT_PER_OUTCOME: usize = 2;
const MAX_GENERATION_FACTOR: usize = 4;

/// The largest deviation of a coordinate, as a fraction of its axis. Without a limit the step size grows on
/// functions with a weak global structure until the draws are nearly uniform, since bounds are mirrored.
/// (A departure: the tutorial has no bounds.) A larger initial deviation is kept.
const MAX_DEVIATION: f64 = 0.3;

/// The least deviation of a discrete coordinate, as a part of a cell; less if n is large (see `encoding`).
const MIN_DISCRETE_DEVIATION: f64 = 0.2;

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
    /// The number of candidates out when the last one was asked, itself included.
    out: usize,
    distribution: Distribution,
    generation: Generation,
    values: ValueHistory,
    /// Why the previous run ended.
    last_stop: Option<Stop>,
    /// The best value of earlier runs.
    record: Option<f64>,
    /// The model of the objective, if the setting is on and the space suits it.
    surrogate: Option<Surrogate>,
    #[serde(skip)]
    scratch: Scratch,
}

/// Derived values and buffers.
#[derive(Debug, Default)]
struct Scratch {
    parameters: Parameters,
    /// The factor of each coordinate's deviation; empty in continuous spaces.
    scale: Vec<f64>,
    distribution: UpdateBuffers,
    /// The columns of the generation, sorted by rank.
    order: Vec<usize>,
    /// A buffer for a step.
    step: Vec<f64>,
    model: Model,
    /// The values of the model for the columns of a generation that ends by the model, else empty.
    predicted: Vec<f64>,
}

impl CmaEsSearch {
    /// `separable` selects one variance per coordinate instead of the full covariance matrix.
    pub(crate) fn new(
        settings: &CmaEs,
        separable: bool,
        setup: Setup<'_>,
        random: &mut Random,
    ) -> Result<Self> {
        let n = setup.space.dimension();
        let discrete = n - setup.space.continuous_count();
        let settings = settings.resolve(separable, n, discrete)?;
        let schedule = RestartSchedule::new(&settings);
        let distribution = initial_distribution(setup.space, &settings, &schedule, random);
        let surrogate = settings.uses_surrogate(setup.space).then(|| {
            let mut surrogate = Surrogate::default();
            surrogate.begin_generation(schedule.population);
            surrogate
        });
        Ok(CmaEsSearch {
            settings,
            first_ids: [0; MAX_LATE_GENERATIONS + 1],
            schedule,
            out: 0,
            distribution,
            generation: Generation::default(),
            values: ValueHistory::default(),
            last_stop: None,
            record: None,
            surrogate,
            scratch: Scratch::default(),
        })
    }

    /// Computes the factors of the deviations of discrete coordinates for this generation.
    fn update_scale(&mut self, space: &Space) {
        let Scratch { parameters, scale, .. } = &mut self.scratch;
        if !scale.is_empty() {
            let distribution = &self.distribution;
            let least = (parameters.mu_eff / scale.len() as f64).min(MIN_DISCRETE_DEVIATION);
            let deviation = |i| distribution.deviation(i);
            encoding::margins(space, &distribution.mean, deviation, least, scale);
        }
    }

    /// The next column of the generation that was not asked yet. Draws more columns if there is none.
    #[expect(clippy::expect_used, reason = "see the message")]
    fn next_column(&mut self, random: &mut Random) -> usize {
        /// Columns drawn at a time after the first lambda.
        const EXTRA_COLUMNS: usize = 8;
        let most = 4 * self.generation_size();
        let CmaEsSearch { distribution, generation, surrogate, scratch, .. } = self;
        if let Some(column) = generation.take_ready() {
            return column;
        }
        let (n, lambda) = (distribution.mean.len(), scratch.parameters.lambda);
        // Lost candidates must not accumulate.
        if generation.len() >= most {
            generation.forget_pending(n);
        }
        let is_first = generation.len() < lambda;
        let count = if is_first { lambda } else { EXTRA_COLUMNS.min(lambda) };
        let Scratch { model, step, distribution: UpdateBuffers { work, .. }, .. } = scratch;
        let (steps, add_column) = generation.extend(count, n);
        distribution.covariance.sample(random, steps, work, add_column);
        if is_first && let Some(surrogate) = surrogate {
            if let Some(minimum) = surrogate.minimum.take() {
                for ((y, x), &mean) in step.iter_mut().zip(minimum).zip(&distribution.mean) {
                    let v = encoding::mirrored(encoding::unbend(x), mean);
                    *y = (v - mean) / distribution.sigma;
                }
                let length = distribution.shorten(step, work);
                generation.replace_last(step, length);
            }
            if model.fit(surrogate, distribution) {
                generation.sort_ready(n, |y| model.value(y, distribution));
            }
        }
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

    /// Learns a point before the first candidate: the mean moves to the best one.
    fn learn_first(&mut self, space: &Space, point: &[f64], rank: Rank, is_best: bool) {
        let mut place = vec![0.0; point.len()];
        // No mirror image is nearer to the middle of the box than the point itself.
        self.scratch.step.fill(0.5);
        encoding::encode(space, point, &self.scratch.step, &mut place);
        if let (Some(surrogate), Some(value)) = (&mut self.surrogate, rank.value()) {
            surrogate.push(place.iter().copied(), value, self.schedule.population);
            surrogate.begin_generation(self.schedule.population);
        }
        if is_best {
            self.distribution.mean = place;
            self.update_scale(space);
        }
    }

    /// Injects a point that was not drawn from the current distribution (Hansen 2011, eqs. (3) and (4)).
    fn inject(&mut self, space: &Space, point: &[f64], rank: Rank, known: bool) {
        let CmaEsSearch { distribution, generation, surrogate, scratch, .. } = self;
        let Scratch { parameters, scale, distribution: buffers, step, .. } = scratch;
        encoding::encode(space, point, &distribution.mean, step);
        for (i, (y, mean)) in step.iter_mut().zip(&distribution.mean).enumerate() {
            *y = (*y - mean) / (distribution.sigma * scale.get(i).unwrap_or(&1.0));
        }
        // The value is that of the point itself, not of the shortened step.
        if let (Some(surrogate), Some(value)) = (surrogate, rank.value()) {
            let Distribution { mean, sigma, .. } = &*distribution;
            let point = step.iter().zip(mean).map(|(y, mean)| mean + *sigma * y);
            surrogate.push(point, value, parameters.lambda);
        }
        let length = distribution.shorten(step, &mut buffers.work);
        generation.inject(step, length, rank, known, parameters.lambda / 2);
    }

    /// Records the outcome of a candidate of this generation.
    fn tell_column(&mut self, column: usize, rank: Rank) {
        let CmaEsSearch { distribution, generation, surrogate, scratch, .. } = self;
        generation.tell(column, rank);
        if let (Some(surrogate), Some(value)) = (surrogate, rank.value()) {
            let Distribution { mean, sigma, .. } = distribution;
            let steps = generation.step(column, mean.len()).iter().zip(&*mean);
            let point = steps.map(|(y, mean)| mean + *sigma * y);
            surrogate.push(point, value, scratch.parameters.lambda);
        }
    }

    /// The number of outcomes that end a generation: lambda, or more if many candidates are out.
    fn generation_size(&self) -> usize {
        let lambda = self.schedule.population;
        self.out.div_ceil(OUT_PER_OUTCOME).clamp(lambda, MAX_GENERATION_FACTOR * lambda)
    }

    /// Whether the generation is over, when this many candidates are out: enough outcomes are told, or as
    /// many as the surrogate requires, and its model is accurate. Then the values of the model are in the
    /// scratch space.
    fn is_generation_over(&mut self, out: usize) -> bool {
        let size = self.generation_size();
        let CmaEsSearch { distribution, generation, surrogate, scratch, .. } = self;
        let Scratch { parameters, model, predicted, .. } = scratch;
        let (lambda, told) = (parameters.lambda, generation.told());
        if told >= size {
            return true;
        }
        let Some(surrogate) = surrogate else { return false };
        let n = distribution.mean.len();
        // Shorter generations would be over before the candidates that are out are told, which are
        // injected for two generations only.
        if out > 0 && told < 1 + out.div_ceil(2) {
            return false;
        }
        while told < lambda && told >= surrogate.required {
            // The model has no failures and infeasible points: a generation with any is evaluated in full.
            let is_usable = generation.len() >= lambda
                && generation.has_only_values()
                && model.fit(surrogate, distribution);
            if is_usable && model.is_accurate(surrogate, distribution, told, lambda) {
                surrogate.minimum = model.minimum(distribution);
                let steps = (0..generation.len()).map(|column| generation.step(column, n));
                predicted.clear();
                predicted.extend(steps.map(|y| model.value(y, distribution)));
                return true;
            }
            if is_usable {
                generation.sort_ready(n, |y| model.value(y, distribution));
            }
            surrogate.require_more(lambda);
        }
        false
    }

    /// Updates the distribution at the end of a generation.
    #[expect(clippy::expect_used, reason = "see the message")]
    fn evolve(&mut self, tools: &mut Tools<'_, ()>) {
        let CmaEsSearch {
            settings,
            distribution,
            generation,
            values,
            schedule,
            surrogate,
            record,
            scratch,
            ..
        } = self;
        let Scratch { parameters, scale, distribution: buffers, order, predicted, .. } = scratch;
        let lambda = parameters.lambda.max(generation.told());
        let larger = (lambda > parameters.lambda)
            .then(|| Parameters::new(distribution.mean.len(), lambda, settings.separable));
        let parameters = larger.as_ref().unwrap_or(parameters);
        let best = if predicted.is_empty() {
            generation.rank(order);
            generation.column(order[0]).rank()
        } else {
            generation.rank_by(predicted, order);
            order.iter().filter_map(|&column| generation.column(column).rank()).min()
        };
        // Known points displace the worst ones.
        order.truncate(parameters.lambda);
        let rank_at = |place: usize| {
            let column = order[place];
            let predicted = || Some(Outcome::from(*predicted.get(column)?).rank());
            let rank = generation.column(column).rank().or_else(predicted);
            rank.expect("sorted columns have ranks or predictions")
        };
        let (best, median) = (best.unwrap_or(rank_at(0)), rank_at(parameters.lambda / 2));
        let worst = rank_at(parameters.lambda - 1);
        let is_mixed = !tools.space.is_continuous() && !tools.space.is_discrete();
        let stop = if best.is_failure() {
            values.push_failed()
        } else {
            let n = distribution.mean.len();
            if !scale.is_empty() {
                let Distribution { mean, sigma, .. } = &*distribution;
                let selected = &order[..parameters.mu.min(order.len())];
                let unit = |i: usize| sigma * scale[i];
                encoding::center(tools.space, mean, unit, selected, generation.steps_mut());
            }
            let steps = order.iter().map(|&column| Step {
                y: generation.step(column, n),
                length: generation.column(column).length,
                is_drawn: !generation.column(column).is_known(),
            });
            match distribution.update(parameters, steps, scale, is_mixed, buffers) {
                Err(NotPositiveDefinite) => Some(Stop::ConditionCov),
                Ok(()) => {
                    distribution.limit_deviation(MAX_DEVIATION.max(schedule.sigma));
                    encoding::confine(tools.space, &mut distribution.mean);
                    let shortest = ValueHistory::lengths(parameters, n).1;
                    debug_assert!(
                        distribution.is_sound(n, settings.separable),
                        "a distribution is finite and positive definite"
                    );
                    values.push(best, median, worst, shortest);
                    values.stop(distribution, parameters, schedule.sigma, *record, is_mixed)
                }
            }
        };
        let is_repeating = 2 * generation.strays > parameters.lambda;
        let stop = stop
            .or(is_repeating.then_some(Stop::Repeats))
            .or(schedule.is_over().then_some(Stop::BudgetShare));
        generation.clear();
        predicted.clear();
        if let Some(surrogate) = surrogate {
            surrogate.begin_generation(schedule.population);
        }
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
        self.record = self.record.into_iter().chain(self.values.best()).reduce(f64::min);
        let (space, random) = (tools.space, &mut *tools.random);
        let CmaEsSearch { settings, schedule, distribution, .. } = self;
        let n = space.dimension();
        schedule.restart(settings, Resolved::max_population(n), random);
        *distribution = initial_distribution(space, settings, schedule, random);
        self.scratch.parameters = Parameters::new(n, schedule.population, settings.separable);
        self.values = ValueHistory::default();
        if let Some(surrogate) = &mut self.surrogate {
            *surrogate = Surrogate::default();
            surrogate.begin_generation(self.schedule.population);
        }
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
        self.out = tools.ledger.out() + 1;
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
                    Some(column) => self.tell_column(column, rank),
                    None => self.inject(tools.space, &point, rank, false),
                }
                if self.is_generation_over(tools.ledger.out()) {
                    self.evolve(tools);
                }
            }
            None if rank.is_failure() => {}
            None if tools.ledger.next_id() > 0 => self.inject(tools.space, &point, rank, true),
            None => self.learn_first(tools.space, &point, rank, is_best),
        }
        Ok(Some(point))
    }

    fn is_sound(&self, space: &Space, ledger: &Ledger<()>) -> Result<bool> {
        let CmaEsSearch { settings, schedule, distribution, generation, .. } = self;
        let (n, asked) = (space.dimension(), ledger.next_id());
        settings.check(n)?;
        Ok(schedule.is_sound(settings, Resolved::max_population(n))
            && distribution.is_sound(n, settings.separable)
            && generation.is_sound(n, MAX_GENERATION_FACTOR * schedule.population, asked)
            && self.out <= 1 << 31
            && self.values.is_sound()
            && self.record.is_none_or(f64::is_finite)
            && self.surrogate.is_some() == settings.uses_surrogate(space)
            && self.surrogate.as_ref().is_none_or(|surrogate| {
                surrogate.is_sound(n, schedule.population, generation.told())
            })
            && self.first_ids.iter().all(|&first| first <= asked))
    }

    fn restarts(&self) -> u64 {
        self.schedule.restarts
    }

    fn is_heavy(&self, space: &Space) -> bool {
        self.surrogate.is_some() || !self.settings.separable && space.dimension() >= HEAVY_DIMENSION
    }
}

#[cfg(test)]
mod tests;
