//! With which population and step size the next run starts: not at all different, IPOP (Auger and
//! Hansen, "A restart CMA evolution strategy with increasing population size", 2005), or BIPOP
//! (Hansen, "Benchmarking a bi-population CMA-ES on the BBOB-2009 function testbed", 2009).

use super::super::saved::ROOM;
use super::settings::{Resolved, Restarts};
use crate::random::Random;
use serde::{Deserialize, Serialize};

/// The run that is on, and what the regimes have used so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Schedule {
    /// lambda of this run.
    pub(super) population: usize,
    /// The first step size of this run.
    pub(super) sigma: f64,
    /// Runs before this one.
    pub(super) restarts: u64,
    /// Evaluations in this run.
    evaluations: u64,
    /// Evaluations after which this run is over, where it is one of a small population.
    limit: Option<u64>,
    /// lambda of the last run that was not of a small population.
    large: usize,
    /// Evaluations of the runs before this one, by regime.
    used_large: u64,
    used_small: u64,
    /// Evaluations of the last large run.
    last_large: u64,
}

impl Schedule {
    pub(super) fn new(settings: &Resolved) -> Self {
        Schedule {
            population: settings.population,
            sigma: settings.sigma,
            restarts: 0,
            evaluations: 0,
            limit: None,
            large: settings.population,
            used_large: 0,
            used_small: 0,
            last_large: 0,
        }
    }

    /// Counts an evaluation of this run.
    pub(super) fn count(&mut self) {
        self.evaluations += 1;
    }

    /// Whether this run has used up its share.
    pub(super) fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.evaluations >= limit)
    }

    /// Goes on to the next run, of a population of at most `most`.
    pub(super) fn restart(&mut self, settings: &Resolved, most: usize, random: &mut Random) {
        self.restarts += 1;
        let evaluations = std::mem::take(&mut self.evaluations);
        (self.population, self.sigma) = (settings.population, settings.sigma);
        if settings.restarts == Restarts::None {
            return;
        }
        let doubled = self.large.saturating_mul(2).min(most.max(settings.population));
        if settings.restarts == Restarts::Ipop {
            self.large = doubled;
            self.population = doubled;
            return;
        }
        // The first run, of the default population, counts as small: the next one is large.
        let was_small = self.limit.take().is_some() || self.restarts == 1;
        if was_small {
            self.used_small += evaluations;
        } else {
            self.used_large += evaluations;
            self.last_large = evaluations;
        }
        if self.used_small < self.used_large {
            // lambda_s = lambda (lambda_l / (2 lambda))^(U²), sigma_s = sigma 10^(-2 U).
            let ratio = (self.large as f64 / (2.0 * settings.population as f64)).max(1.0);
            let power = random.unit().powi(2);
            self.population = (settings.population as f64 * ratio.powf(power)).floor() as usize;
            self.sigma *= 10f64.powf(-2.0 * random.unit());
            self.limit = Some((self.last_large / 2).max(1));
        } else {
            self.large = doubled;
            self.population = doubled;
        }
    }

    /// Whether these settings could have led here.
    pub(super) fn is_sound(&self, settings: &Resolved, most: usize) -> bool {
        let most = most.max(settings.population);
        (2..=most).contains(&self.population)
            && (settings.population..=most).contains(&self.large)
            && self.sigma > 0.0
            && self.sigma <= settings.sigma
            && [self.restarts, self.evaluations, self.used_large, self.used_small, self.last_large]
                .iter()
                .all(|&count| count < ROOM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(restarts: Restarts) -> Resolved {
        Resolved { population: 10, sigma: 0.2, separable: false, restarts }
    }

    /// The populations of the first runs, each of as many evaluations as `length` says.
    fn populations(restarts: Restarts, runs: usize, length: impl Fn(usize) -> usize) -> Vec<usize> {
        let settings = settings(restarts);
        let (mut schedule, mut random) = (Schedule::new(&settings), Random::new(1));
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
    fn populations_stay_or_double() {
        assert_eq!(populations(Restarts::None, 4, |_| 100), [10, 10, 10, 10]);
        assert_eq!(populations(Restarts::Ipop, 4, |_| 100), [10, 20, 40, 80]);
        assert_eq!(*populations(Restarts::Ipop, 20, |_| 100).last().unwrap(), 1000);
    }

    #[test]
    fn bipop_shares_evaluations_between_its_regimes() {
        let runs = populations(Restarts::Bipop, 40, |population| 100 * population);
        assert_eq!(runs[..2], [10, 20]);
        assert!(runs.iter().filter(|&&p| p == 40).count() >= 1, "{runs:?}");
        let small = runs.iter().filter(|&&p| p < 80).count();
        assert!(small > 20, "{runs:?}");
        assert!(runs.iter().all(|&p| p >= 10), "{runs:?}");
    }
}
