//! The settings of differential evolution, and the defaults derived for those not given.

use crate::error::{Error, Result};
use crate::space::Space;
use serde::{Deserialize, Serialize};

/// Settings of differential evolution. `None` means: derive it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DifferentialEvolution {
    /// How trials are made.
    pub strategy: Strategy,
    /// N: the number of members, for L-SHADE at the start. 15 n, for L-SHADE 18 n, if the budget T
    /// is enough for 100 generations of so many, else T / 100, but at least 10; and never more than
    /// take 128 MB.
    pub population: Option<usize>,
    /// F: the range that the weight of differences is drawn from, anew for each generation.
    /// 0.5 to 1; a range of no length fixes it. L-SHADE finds its own.
    pub weight: Option<(f64, f64)>,
    /// CR: the probability that a coordinate comes from the mutant. 0.7. L-SHADE finds its own.
    pub crossover: Option<f64>,
}

/// How differential evolution makes its trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Strategy {
    /// best/1/bin: a difference of two members is added to the best one.
    #[default]
    Best,
    /// rand/1/bin: a difference of two members is added to a third.
    Random,
    /// L-SHADE: current-to-pbest/1 with an archive, weights and crossover rates learned from
    /// success, and a population that shrinks over the budget, where there is one.
    LShade,
}

impl Strategy {
    /// The name of the algorithm that uses this strategy.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Best => "de",
            Strategy::Random => "de-rand",
            Strategy::LShade => "l-shade",
        }
    }
}

/// [`DifferentialEvolution`] with every setting filled in and checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Resolved {
    pub(super) strategy: Strategy,
    pub(super) population: usize,
    pub(super) weight: (f64, f64),
    pub(super) crossover: f64,
    /// The evaluations over which an L-SHADE population shrinks.
    pub(super) budget: Option<u64>,
}

/// The fewest members that mutation can work with: a target and three others. Also what an L-SHADE
/// population shrinks to.
pub(super) const LEAST_MEMBERS: usize = 4;

/// The size of L-SHADE's archive, as a multiple of the population.
pub(super) const ARCHIVE_RATE: f64 = 2.6;

impl DifferentialEvolution {
    /// best/1/bin with everything derived.
    pub fn best() -> Self {
        DifferentialEvolution::default()
    }

    /// rand/1/bin with everything derived.
    pub fn random() -> Self {
        DifferentialEvolution { strategy: Strategy::Random, ..Default::default() }
    }

    /// L-SHADE with everything derived.
    pub fn l_shade() -> Self {
        DifferentialEvolution { strategy: Strategy::LShade, ..Default::default() }
    }

    pub(super) fn resolve(&self, space: &Space, budget: Option<u64>) -> Result<Resolved> {
        let adapts = self.strategy == Strategy::LShade;
        if adapts && self.weight.is_some() {
            return Err(Error::setting("weight F is given, but l-shade finds its own"));
        }
        if adapts && self.crossover.is_some() {
            return Err(Error::setting("crossover rate CR is given, but l-shade finds its own"));
        }
        let resolved = Resolved {
            strategy: self.strategy,
            population: self
                .population
                .unwrap_or_else(|| default_population(adapts, space.dimension(), budget)),
            weight: self.weight.unwrap_or((0.5, 1.0)),
            crossover: self.crossover.unwrap_or(0.7),
            budget,
        };
        resolved.check()?;
        Ok(resolved)
    }
}

/// 15 n is scipy's default and 18 n L-SHADE's, both meant for budgets of thousands of n. With a
/// few dozen generations such a population has no time to gather, so that scipy's default is far
/// behind at 100 n (sphere, n = 40: median 393, with T / 100 members 4.6).
///
/// At least 20, 40, 60, 100 and 150 generations were tried with best/1, in 20 runs each on the sphere,
/// a rotated ellipsoid, Rosenbrock and a rotated Rastrigin at n = 10 and 40, T = 100 n and 1000 n. None
/// was significantly worse than scipy anywhere, and more generations were mostly better; 100 is a
/// choice that stays with 15 n from T = 1500 n on.
fn default_population(adapts: bool, dimension: usize, budget: Option<u64>) -> usize {
    const GENERATIONS: u64 = 100;
    const FEWEST: usize = 10;
    /// 128 MB of coordinates.
    const MOST_COORDINATES: f64 = (1 << 24) as f64;
    let (per_coordinate, copies) = if adapts { (18, 1.0 + ARCHIVE_RATE) } else { (15, 1.0) };
    let by_budget = budget.map_or(u64::MAX, |budget| budget / GENERATIONS);
    let by_memory = MOST_COORDINATES / (copies * dimension as f64);
    let most = usize::try_from(by_budget.min(by_memory as u64)).unwrap_or(usize::MAX);
    (per_coordinate * dimension).min(most).max(FEWEST)
}

impl Resolved {
    pub(super) fn check(&self) -> Result<()> {
        let Resolved { population, weight: (low, high), crossover, .. } = *self;
        if !(LEAST_MEMBERS..=10_000_000).contains(&population) {
            return Err(Error::setting(format!(
                "population N = {population} is not from {LEAST_MEMBERS} to 10000000"
            )));
        }
        if !(low > 0.0 && low <= high && high <= 2.0) {
            return Err(Error::setting(format!(
                "weight F = {low} to {high} is not an ascending range above 0, up to 2"
            )));
        }
        if !(0.0..=1.0).contains(&crossover) {
            return Err(Error::setting(format!(
                "crossover rate CR = {crossover} is not from 0 to 1"
            )));
        }
        Ok(())
    }

    /// How many members there should be after so many evaluations: L-SHADE's linear population size
    /// reduction (equation 10 of the paper); always N without a budget or for the other strategies.
    pub(super) fn population_after(&self, told: u64) -> usize {
        let (Strategy::LShade, Some(budget)) = (self.strategy, self.budget) else {
            return self.population;
        };
        let share = (told as f64 / budget.max(1) as f64).min(1.0);
        let (first, last) = (self.population as f64, LEAST_MEMBERS as f64);
        (first + share * (last - first)).round() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn population(settings: DifferentialEvolution, n: usize, budget: Option<u64>) -> usize {
        settings.resolve(&Space::cube(n, 0.0, 1.0).unwrap(), budget).unwrap().population
    }

    #[test]
    fn the_population_fits_the_budget_and_the_memory() {
        let de = DifferentialEvolution::best();
        assert_eq!(population(de, 10, None), 150, "15 n");
        assert_eq!(population(de, 10, Some(100_000)), 150);
        assert_eq!(population(de, 10, Some(6000)), 60, "100 generations");
        assert_eq!(population(de, 10, Some(50)), 10);
        assert_eq!(population(de, 100_000, None), 167, "128 MB");
        assert_eq!(population(DifferentialEvolution::l_shade(), 10, None), 180);
    }

    #[test]
    fn l_shade_shrinks_to_four_members_when_there_is_a_budget() {
        let space = Space::cube(10, 0.0, 1.0).unwrap();
        let settings = DifferentialEvolution::l_shade();
        let planned = settings.resolve(&space, Some(100_000)).unwrap();
        let sizes = [0, 50_000, 100_000, 200_000].map(|told| planned.population_after(told));
        assert_eq!(sizes, [180, 92, 4, 4]);
        assert_eq!(settings.resolve(&space, None).unwrap().population_after(1 << 40), 180);
    }

    #[test]
    fn settings_out_of_range_are_refused_by_name() {
        let space = Space::cube(10, 0.0, 1.0).unwrap();
        let de = DifferentialEvolution::best();
        for (settings, message) in [
            (
                DifferentialEvolution { population: Some(3), ..de },
                "population N = 3 is not from 4 to 10000000",
            ),
            (
                DifferentialEvolution { weight: Some((0.5, f64::NAN)), ..de },
                "weight F = 0.5 to NaN is not an ascending range above 0, up to 2",
            ),
            (
                DifferentialEvolution { crossover: Some(1.5), ..de },
                "crossover rate CR = 1.5 is not from 0 to 1",
            ),
            (
                DifferentialEvolution { crossover: Some(0.5), ..DifferentialEvolution::l_shade() },
                "crossover rate CR is given, but l-shade finds its own",
            ),
        ] {
            assert_eq!(settings.resolve(&space, None).unwrap_err().to_string(), message);
        }
    }
}
