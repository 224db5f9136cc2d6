//! The settings of CMA-ES, and their derived defaults.

use super::surrogate;
use crate::error::{Result, ensure};
use crate::optimizers::settings::{choices, settings};
use crate::space::Space;
use serde::{Deserialize, Serialize};

settings! {
    /// Settings of CMA-ES and of its separable variant. Settings that are not given are derived.
    #[derive(Copy)]
    pub struct CmaEs {
        /// lambda: the number of candidates per generation. Default: 4 + 3 ln n, and 3.5 ln(d / 4) more if
        /// d > 4 coordinates are discrete, rounded down.
        population: Option<usize>,
        /// The initial standard deviation, as a fraction of each coordinate's range. Default: 0.2.
        sigma: Option<f64>,
        /// The population of the next run after a run has converged or stalled: the same (none), doubled
        /// each time (ipop), or alternately large and small (bipop). Default: ipop.
        restarts: Restarts,
        /// Whether a quadratic model of the objective replaces evaluations where it ranks the candidates well
        /// (lq-CMA-ES): far fewer evaluations on smooth functions, at a cost of up to milliseconds per
        /// evaluation. In continuous spaces of up to 100 coordinates. Default: false.
        surrogate: bool,
    }
}

/// How the search restarts after a run has converged or stalled. It always restarts, since an optimizer can
/// always be asked, and always from a uniformly random point.
///
/// IPOP is the default by measurement. With 10,000 n evaluations in 5, 10 and 20 dimensions, 20 seeds
/// each, this many runs found the optimum:
///
/// | function | IPOP | BIPOP | unchanged population |
/// |---|---|---|---|
/// | rotated Rastrigin | 20, 12, 2 | 16, 11, 1 | 4, 0, 0 |
/// | Schwefel | 13, 7, 10 | 10, 8, 3 | 7, 0, 0 |
///
/// On the 12 multimodal functions of BBOB (3, 4, 15 to 24) with n = 5, 15 runs each, IPOP reaches 36, 52 and
/// 62 % of the targets with 1000 n, 3000 n and 10,000 n evaluations, BIPOP 36, 50 and 70 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Restarts {
    /// With an unchanged population.
    None,
    /// With a population doubled each time (Auger and Hansen 2005).
    #[default]
    Ipop,
    /// With two regimes that get equal shares of the evaluations: doubled populations, and small
    /// populations with small initial deviations (Hansen 2009).
    Bipop,
}

choices!(Restarts { None => "none", Ipop => "ipop", Bipop => "bipop" });

/// The largest number of coordinates in one generation: a gigabyte of numbers.
const MAX_GENERATION_COORDINATES: usize = 1 << 27;

const MAX_POPULATION: usize = 1 << 20;

/// [`CmaEs`] with all settings resolved and checked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Resolved {
    pub(super) population: usize,
    pub(super) sigma: f64,
    pub(super) separable: bool,
    pub(super) restarts: Restarts,
    pub(super) surrogate: bool,
}

impl CmaEs {
    /// Resolves the settings for a space in which this many coordinates are discrete.
    pub(super) fn resolve(
        &self,
        separable: bool,
        dimension: usize,
        discrete: usize,
    ) -> Result<Resolved> {
        // Eq. (48) of the tutorial, and more where many coordinates are discrete: their least deviation is
        // proportional to the population, and a small one does not move them. (pycma adds 2 + 3 ln d for d of them.)
        let more = 3.5 * (discrete as f64 / 4.0).max(1.0).ln();
        let default_population = (4.0 + 3.0 * (dimension as f64).ln() + more).floor() as usize;
        let resolved = Resolved {
            population: self.population.unwrap_or(default_population),
            sigma: self.sigma.unwrap_or(0.2),
            separable,
            restarts: self.restarts,
            surrogate: self.surrogate,
        };
        resolved.check(dimension)?;
        Ok(resolved)
    }
}

impl Resolved {
    pub(super) fn check(&self, dimension: usize) -> Result<()> {
        let Resolved { population, sigma, .. } = *self;
        let max = Resolved::max_population(dimension);
        let is_possible = (2..=max).contains(&population);
        ensure!(is_possible, setting, "population {population} is not from 2 to {max}");
        ensure!(
            sigma > 0.0 && sigma <= 1.0,
            setting,
            "initial deviation sigma = {sigma} is not above 0 and at most 1"
        );
        Ok(())
    }

    /// Whether there is a surrogate: if the setting is on, in continuous spaces that are not too large.
    pub(super) fn uses_surrogate(&self, space: &Space) -> bool {
        self.surrogate && space.is_continuous() && space.dimension() <= surrogate::MAX_DIMENSION
    }

    /// The largest population in this dimension.
    pub(super) fn max_population(dimension: usize) -> usize {
        (MAX_GENERATION_COORDINATES / dimension.max(1)).clamp(64, MAX_POPULATION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn the_default_population_is_that_of_the_tutorial() {
        for (n, population) in [(1, 4), (2, 6), (10, 10), (40, 15), (500, 22), (4096, 28)] {
            assert_eq!(CmaEs::default().resolve(false, n, 0).unwrap().population, population);
        }
        for (n, discrete, population) in [(5, 4, 8), (10, 8, 13), (20, 16, 17), (40, 32, 22)] {
            let resolved = CmaEs::default().resolve(false, n, discrete).unwrap();
            assert_eq!(resolved.population, population);
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let refused = |settings: CmaEs| {
            let error = settings.resolve(false, 3, 0).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Setting);
            error.to_string()
        };
        let message = refused(CmaEs::default().population(1));
        assert_eq!(message, "population 1 is not from 2 to 1048576");
        for sigma in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
            let message = refused(CmaEs::default().sigma(sigma));
            assert!(message.starts_with("initial deviation sigma = "), "{message}");
        }
    }
}
