//! The settings of CMA-ES, and the defaults derived for those not given.

use super::encoding;
use crate::error::{Error, Result};
use crate::space::Space;
use serde::{Deserialize, Serialize};

/// Settings of CMA-ES. `None` means: derive it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CmaEs {
    /// lambda: how many candidates make a generation. 4 + floor(3 ln n).
    pub population: Option<usize>,
    /// The first standard deviation, as a share of each coordinate's range. 0.2.
    pub sigma: Option<f64>,
    /// Learn one variance per coordinate instead of the whole covariance matrix: linear instead of
    /// quadratic in the dimension, and faster to adapt, but blind to dependencies of coordinates.
    pub separable: bool,
    /// How the search starts again when it has converged or no longer gets ahead.
    pub restarts: Restarts,
}

/// How the search starts again, always from a uniformly random point. Since an optimizer can always
/// be asked, it always does.
///
/// IPOP is the default by measurement: with 10,000 n evaluations of a rotated Rastrigin function it
/// found the optimum from 20, 12 and 2 of 20 seeds in 5, 10 and 20 dimensions, BIPOP from 16, 11 and
/// 1, an unchanged population from 4, 0 and 0; of Schwefel's function from 13, 7 and 10, against 10,
/// 8 and 3, and 7, 0 and 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Restarts {
    /// As at first, with the same population.
    None,
    /// Each time with twice the population (Auger and Hansen 2005).
    #[default]
    Ipop,
    /// Two regimes that get the same share of evaluations: twice the population each time, and
    /// small populations with small first deviations (Hansen 2009).
    Bipop,
}

/// The greatest dimension for the whole covariance matrix, of which a handful of copies are kept.
const MAX_FULL: usize = 4096;

/// The most numbers in one generation: a gigabyte.
const MAX_NUMBERS: usize = 1 << 27;

/// The largest population.
const MAX_POPULATION: usize = 1 << 20;

/// [`CmaEs`] with every setting filled in and checked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Resolved {
    pub(super) population: usize,
    pub(super) sigma: f64,
    pub(super) separable: bool,
    pub(super) restarts: Restarts,
}

impl CmaEs {
    pub(super) fn resolve(&self, space: &Space) -> Result<Resolved> {
        // Eq. (48) of the tutorial.
        let default_population = 4 + (3.0 * (space.dimension() as f64).ln()).floor() as usize;
        let resolved = Resolved {
            population: self.population.unwrap_or(default_population),
            sigma: self.sigma.unwrap_or(0.2),
            separable: self.separable,
            restarts: self.restarts,
        };
        resolved.check(space)?;
        Ok(resolved)
    }
}

impl Resolved {
    pub(super) fn check(&self, space: &Space) -> Result<()> {
        encoding::check(space)?;
        let (dimension, population) = (space.dimension(), self.population);
        if !self.separable && dimension > MAX_FULL {
            return Err(Error::setting(format!(
                "cma-es takes at most {MAX_FULL} coordinates, the space has {dimension}; \
                 sep-cma-es, race-cars, sracos, racos, de and random take it"
            )));
        }
        let most = Resolved::most(dimension);
        if !(2..=most).contains(&population) {
            return Err(Error::setting(format!("population {population} is not from 2 to {most}")));
        }
        if !(self.sigma > 0.0 && self.sigma <= 1.0) {
            return Err(Error::setting(format!(
                "first deviation sigma = {} is not above 0 and at most 1",
                self.sigma
            )));
        }
        Ok(())
    }

    /// The largest population in so many dimensions.
    pub(super) fn most(dimension: usize) -> usize {
        (MAX_NUMBERS / dimension.max(1)).clamp(64, MAX_POPULATION)
    }

    pub(super) fn name(&self) -> &'static str {
        if self.separable { "sep-cma-es" } else { "cma-es" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn the_population_is_that_of_the_tutorial() {
        for (n, population) in [(1, 4), (2, 6), (10, 10), (40, 15), (500, 22), (4096, 28)] {
            let space = Space::cube(n, 0.0, 1.0).unwrap();
            assert_eq!(CmaEs::default().resolve(&space).unwrap().population, population);
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let space = Space::cube(3, 0.0, 1.0).unwrap();
        let refused = |settings: CmaEs| {
            let error = settings.resolve(&space).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Setting);
            error.to_string()
        };
        let message = refused(CmaEs { population: Some(1), ..Default::default() });
        assert_eq!(message, "population 1 is not from 2 to 1048576");
        for sigma in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
            let message = refused(CmaEs { sigma: Some(sigma), ..Default::default() });
            assert!(message.starts_with("first deviation sigma = "), "{message}");
        }
    }

    #[test]
    fn large_spaces_are_for_the_separable_variant() {
        let space = Space::cube(100_000, 0.0, 1.0).unwrap();
        let message = CmaEs::default().resolve(&space).unwrap_err().to_string();
        assert!(message.contains("sep-cma-es"), "{message}");
        CmaEs { separable: true, ..Default::default() }.resolve(&space).unwrap();
    }
}
