//! The population and the step size of each run: unchanged, IPOP (Auger and Hansen,
//! "A restart CMA evolution strategy with increasing population size", 2005), or BIPOP (Hansen,
//! "Benchmarking a bi-population CMA-ES on the BBOB-2009 function testbed", 2009).

use super::settings::{Resolved, Restarts};
use crate::optimizers::saved::ID_HEADROOM;
use crate::random::Random;
use serde::{Deserialize, Serialize};

/// The current run, and the evaluations used by each regime.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RestartSchedule {
    /// lambda of this run.
    pub(super) population: usize,
    /// The initial step size of this run.
    pub(super) sigma: f64,
    /// The number of earlier runs.
    pub(super) restarts: u64,
    /// The number of evaluations in this run.
    evaluations: u64,
    /// The maximum number of evaluations in this run, if it is one of BIPOP's runs with a small population.
    limit: Option<u64>,
    /// lambda of the last run with a large population.
    large_population: usize,
    /// Evaluations of earlier runs, by regime.
    used_large: u64,
    used_small: u64,
    /// The number of evaluations in the last run with a large population.
    last_large: u64,
}

impl RestartSchedule {
    pub(super) fn new(settings: &Resolved) -> Self {
        RestartSchedule {
            population: settings.population,
            sigma: settings.sigma,
            large_population: settings.population,
            ..RestartSchedule::default()
        }
    }

    /// Counts an evaluation of this run.
    pub(super) fn count(&mut self) {
        self.evaluations += 1;
    }

    /// Whether this run has used its share of evaluations.
    pub(super) fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.evaluations >= limit)
    }

    /// Advances to the next run, with a population of at most `max_population`.
    pub(super) fn restart(
        &mut self,
        settings: &Resolved,
        max_population: usize,
        random: &mut Random,
    ) {
        self.restarts += 1;
        let evaluations = std::mem::take(&mut self.evaluations);
        (self.population, self.sigma) = (settings.population, settings.sigma);
        if settings.restarts == Restarts::None {
            return;
        }
        let doubled = self.large_population.saturating_mul(2).min(max_population);
        if settings.restarts == Restarts::Ipop {
            self.large_population = doubled;
            self.population = doubled;
            return;
        }
        // The first run counts as small, so the second one is large.
        let was_small = self.limit.take().is_some() || self.restarts == 1;
        if was_small {
            self.used_small += evaluations;
        } else {
            self.used_large += evaluations;
            self.last_large = evaluations;
        }
        if self.used_small < self.used_large {
            // lambda_s = lambda (lambda_l / (2 lambda))^(U²), sigma_s = sigma 10^(-2 U).
            let ratio =
                (self.large_population as f64 / (2.0 * settings.population as f64)).max(1.0);
            let power = random.unit().powi(2);
            self.population = (settings.population as f64 * ratio.powf(power)).floor() as usize;
            self.sigma *= 10f64.powf(-2.0 * random.unit());
            self.limit = Some((self.last_large / 2).max(1));
        } else {
            self.large_population = doubled;
            self.population = doubled;
        }
    }

    /// Checks the invariants of a deserialized schedule.
    pub(super) fn is_sound(&self, settings: &Resolved, max_population: usize) -> bool {
        (2..=max_population).contains(&self.population)
            && (settings.population..=max_population).contains(&self.large_population)
            && self.sigma > 0.0
            && self.sigma <= settings.sigma
            && [self.restarts, self.evaluations, self.used_large, self.used_small, self.last_large]
                .iter()
                .all(|&count| count < ID_HEADROOM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(restarts: Restarts) -> Resolved {
        Resolved { population: 10, sigma: 0.2, separable: false, restarts, surrogate: false }
    }

    /// The populations of the first runs, where a run with population p takes `length(p)` evaluations.
    fn populations(restarts: Restarts, runs: usize, length: impl Fn(usize) -> usize) -> Vec<usize> {
        let settings = settings(restarts);
        let (mut schedule, mut random) = (RestartSchedule::new(&settings), Random::new(1));
        (0..runs)
            .map(|_| {
                let population = schedule.population;
                for _ in 0..length(population) {
                    if !schedule.is_over() {
                        schedule.count();
                    }
                }
                schedule.restart(&settings, 1000, &mut random);
                assert!(schedule.is_sound(&settings, 1000));
                population
            })
            .collect()
    }

    #[test]
    fn populations_stay_the_same_or_double() {
        assert_eq!(populations(Restarts::None, 4, |_| 100), [10, 10, 10, 10]);
        assert_eq!(populations(Restarts::Ipop, 4, |_| 100), [10, 20, 40, 80]);
        assert_eq!(*populations(Restarts::Ipop, 20, |_| 100).last().unwrap(), 1000);
    }

    #[test]
    fn bipop_divides_evaluations_between_its_regimes() {
        let runs = populations(Restarts::Bipop, 40, |population| 100 * population);
        assert_eq!(runs[..2], [10, 20]);
        assert!(runs.iter().filter(|&&p| p == 40).count() >= 1, "{runs:?}");
        let small = runs.iter().filter(|&&p| p < 80).count();
        assert!(small > 20, "{runs:?}");
        assert!(runs.iter().all(|&p| p >= 10), "{runs:?}");
    }
}
