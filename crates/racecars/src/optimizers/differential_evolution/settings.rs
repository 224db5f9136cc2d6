//! The settings of differential evolution, and their derived defaults.

use crate::error::{Result, ensure};
use crate::optimizers::settings::settings;
use serde::{Deserialize, Serialize};

settings! {
    /// Settings of differential evolution, best/1/bin and rand/1/bin. Settings that are not given are
    /// derived.
    #[derive(Copy)]
    pub struct DifferentialEvolution {
        /// N: the population size. Default: 15 n, or T / 100 if the budget T is less than 100 generations
        /// of 15 n; at least 10, and at most 128 MB of coordinates.
        population: Option<usize>,
        /// F: the range from which the weight of differences is drawn, once per generation. Equal bounds
        /// fix the weight. Default: [0.5, 1].
        weight: Option<(f64, f64)>,
        /// CR: the probability that a coordinate comes from the mutant. Default: 0.7.
        crossover: Option<f64>,
    }
}

settings! {
    /// Settings of L-SHADE. Settings that are not given are derived.
    #[derive(Copy)]
    pub struct LShade {
        /// N: the initial population size of a run. Default: 18 n, or T / 100 if the evaluations T planned
        /// for the run are less than 100 generations of 18 n; at least 10, and at most 128 MB of
        /// coordinates, including the archive. Without a budget, runs of 1000 n, 2000 n, 4000 n, ... follow
        /// each other.
        population: Option<usize>,
    }
}

/// The mutation strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Strategy {
    /// best/1/bin: a difference of two members is added to the best one.
    Best,
    /// rand/1/bin: a difference of two members is added to a third.
    Random,
    /// L-SHADE: current-to-pbest/1 with an archive, weights and crossover rates learned from
    /// success, and a population that shrinks over each run.
    LShade,
}

/// [`DifferentialEvolution`] or [`LShade`] with all settings resolved and checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Resolved {
    pub(super) strategy: Strategy,
    pub(super) population: usize,
    /// Whether the population of an L-SHADE run is derived from the evaluations planned for it.
    pub(super) is_population_derived: bool,
    /// Not used by L-SHADE, which draws F for each trial.
    pub(super) weight: (f64, f64),
    /// Not used by L-SHADE, which draws CR for each trial.
    pub(super) crossover: f64,
    /// The evaluations planned.
    pub(super) budget: Option<u64>,
}

/// The smallest population that mutation works with: a target and three other members. Also the final
/// size of an L-SHADE population.
pub(super) const MIN_MEMBERS: usize = 4;

/// The size of L-SHADE's archive, as a multiple of the population.
pub(super) const ARCHIVE_RATE: f64 = 2.6;

impl DifferentialEvolution {
    pub(super) fn resolve(
        &self,
        strategy: Strategy,
        dimension: usize,
        budget: Option<u64>,
    ) -> Result<Resolved> {
        let default_population = || default_population(15, 1.0, dimension, budget);
        let resolved = Resolved {
            strategy,
            population: self.population.unwrap_or_else(default_population),
            is_population_derived: false,
            weight: self.weight.unwrap_or((0.5, 1.0)),
            crossover: self.crossover.unwrap_or(0.7),
            budget,
        };
        resolved.check()?;
        Ok(resolved)
    }
}

impl LShade {
    pub(super) fn resolve(&self, dimension: usize, budget: Option<u64>) -> Result<Resolved> {
        let default_population = || default_population(18, 1.0 + ARCHIVE_RATE, dimension, budget);
        let population = self.population.unwrap_or_else(default_population);
        let settings = DifferentialEvolution::default().population(population);
        let resolved = settings.resolve(Strategy::LShade, dimension, budget)?;
        Ok(Resolved { is_population_derived: self.population.is_none(), ..resolved })
    }
}

/// 15 n is scipy's default and 18 n L-SHADE's, both for budgets of thousands of n. A few dozen generations
/// are not enough for such a population to converge, so scipy's default is much worse at T = 100 n
/// (sphere, n = 40: median 393, with T / 100 members 4.6).
///
/// Minima of 20, 40, 60, 100 and 150 generations were compared with best/1, in 20 runs each on the
/// sphere, a rotated ellipsoid, Rosenbrock and a rotated Rastrigin at n = 10 and 40, T = 100 n and
/// 1000 n. None was significantly worse than scipy anywhere, and more generations were mostly better.
/// With 100, the population is 15 n from T = 1500 n on.
///
/// `copies` is the number of points stored per member.
fn default_population(
    per_coordinate: usize,
    copies: f64,
    dimension: usize,
    budget: Option<u64>,
) -> usize {
    const MIN_GENERATIONS: u64 = 100;
    const MIN_POPULATION: usize = 10;
    /// 128 MB.
    const MAX_COORDINATES: f64 = (1 << 24) as f64;
    let by_budget = budget.map_or(u64::MAX, |budget| budget / MIN_GENERATIONS);
    let by_memory = MAX_COORDINATES / (copies * dimension as f64);
    let max = usize::try_from(by_budget.min(by_memory as u64)).unwrap_or(usize::MAX);
    (per_coordinate * dimension).min(max).max(MIN_POPULATION)
}

impl Resolved {
    pub(super) fn check(&self) -> Result<()> {
        const MAX_POPULATION: usize = 10_000_000;
        let Resolved { population, weight: (low, high), crossover, .. } = *self;
        ensure!(
            (MIN_MEMBERS..=MAX_POPULATION).contains(&population),
            setting,
            "population N = {population} is not from {MIN_MEMBERS} to {MAX_POPULATION}"
        );
        ensure!(
            low > 0.0 && low <= high && high <= 2.0,
            setting,
            "weight F = {low} to {high} is not an ascending range above 0, up to 2"
        );
        let is_rate = (0.0..=1.0).contains(&crossover);
        ensure!(is_rate, setting, "crossover rate CR = {crossover} is not from 0 to 1");
        Ok(())
    }

    /// The population of a run that is planned for `horizon` evaluations.
    pub(super) fn population_for(&self, dimension: usize, horizon: Option<u64>) -> usize {
        if self.is_population_derived {
            default_population(18, 1.0 + ARCHIVE_RATE, dimension, horizon)
        } else {
            self.population
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_population_depends_on_the_budget_and_the_memory() {
        let de = |n: usize, budget: Option<u64>| {
            let settings = DifferentialEvolution::default();
            settings.resolve(Strategy::Best, n, budget).unwrap().population
        };
        assert_eq!(de(10, None), 150, "15 n");
        assert_eq!(de(10, Some(100_000)), 150);
        assert_eq!(de(10, Some(6000)), 60, "100 generations");
        assert_eq!(de(10, Some(50)), 10);
        assert_eq!(de(100_000, None), 167, "128 MB");
        assert_eq!(LShade::default().resolve(10, None).unwrap().population, 180);
    }

    #[test]
    fn errors_name_the_setting_out_of_range() {
        let de = DifferentialEvolution::default();
        for (settings, message) in [
            (de.population(3), "population N = 3 is not from 4 to 10000000"),
            (
                de.weight((0.5, f64::NAN)),
                "weight F = 0.5 to NaN is not an ascending range above 0, up to 2",
            ),
            (de.crossover(1.5), "crossover rate CR = 1.5 is not from 0 to 1"),
        ] {
            let error = settings.resolve(Strategy::Best, 10, None).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
        let error = LShade::default().population(3).resolve(10, None).unwrap_err();
        assert_eq!(error.to_string(), "population N = 3 is not from 4 to 10000000");
    }
}
