//! The choice of an algorithm with its settings.

use super::Optimizer;
use super::cma_es::{Cma, CmaEs};
use super::racos::{Classification, Racos, Shrinking};
use super::random_search::RandomSearch;
use crate::error::{Error, Result};
use crate::space::Space;
use std::fmt;
use std::str::FromStr;

/// An algorithm and its settings. Everything that is not given is derived from the dimension and
/// the budget.
///
/// ```
/// use racecars::{Algorithm, Shrinking};
///
/// let by_name: Algorithm = "race-cars".parse()?;
/// assert_eq!(by_name, Algorithm::race_cars());
///
/// let tuned = Algorithm::RaceCars(
///     Default::default(),
///     Shrinking { gamma: Some(0.9), rho: Some(0.01) },
/// );
/// assert_eq!(tuned.name(), "race-cars");
/// # Ok::<(), racecars::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Algorithm {
    /// RACE-CARS: SRACOS within a region that shrinks around the best point (Algorithm 4).
    RaceCars(Classification, Shrinking),
    /// SRACOS: sequential classification-based optimization (Algorithm 3).
    Sracos(Classification),
    /// RACOS: classification-based optimization in batches (Algorithms 1 and 2).
    Racos(Classification),
    /// CMA-ES: evolution of a normal distribution; `separable` for independent coordinates.
    CmaEs(CmaEs),
    /// Random search.
    Random,
}

impl Default for Algorithm {
    fn default() -> Self {
        Algorithm::race_cars()
    }
}

impl Algorithm {
    /// The names that parse to an algorithm.
    pub const NAMES: [&'static str; 6] =
        ["race-cars", "sracos", "racos", "cma-es", "sep-cma-es", "random"];

    /// RACE-CARS with everything derived.
    pub fn race_cars() -> Self {
        Algorithm::RaceCars(Classification::default(), Shrinking::default())
    }

    /// SRACOS with everything derived.
    pub fn sracos() -> Self {
        Algorithm::Sracos(Classification::default())
    }

    /// RACOS with everything derived.
    pub fn racos() -> Self {
        Algorithm::Racos(Classification::default())
    }

    /// CMA-ES with everything derived.
    pub fn cma_es() -> Self {
        Algorithm::CmaEs(CmaEs::default())
    }

    /// Separable CMA-ES with everything derived.
    pub fn sep_cma_es() -> Self {
        Algorithm::CmaEs(CmaEs { separable: true, ..CmaEs::default() })
    }

    /// The algorithm's name.
    pub fn name(&self) -> &'static str {
        match self {
            Algorithm::RaceCars(..) => "race-cars",
            Algorithm::Sracos(_) => "sracos",
            Algorithm::Racos(_) => "racos",
            Algorithm::CmaEs(CmaEs { separable: false, .. }) => "cma-es",
            Algorithm::CmaEs(CmaEs { separable: true, .. }) => "sep-cma-es",
            Algorithm::Random => "random",
        }
    }

    /// An optimizer of this algorithm. `budget` is the number of evaluations planned, if known;
    /// `None` is allowed everywhere.
    pub fn optimizer(
        &self,
        space: &Space,
        budget: Option<u64>,
        seed: u64,
    ) -> Result<Box<dyn Optimizer>> {
        Ok(match self {
            Algorithm::RaceCars(classification, shrinking) => {
                Box::new(Racos::race_cars(space, classification, shrinking, budget, seed)?)
            }
            Algorithm::Sracos(settings) => {
                Box::new(Racos::sequential(space, settings, budget, seed)?)
            }
            Algorithm::Racos(settings) => Box::new(Racos::batch(space, settings, budget, seed)?),
            Algorithm::CmaEs(settings) => Box::new(Cma::new(space, settings, seed)?),
            Algorithm::Random => Box::new(RandomSearch::new(space, seed)),
        })
    }
}

impl FromStr for Algorithm {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "race-cars" => Ok(Algorithm::race_cars()),
            "sracos" => Ok(Algorithm::sracos()),
            "racos" => Ok(Algorithm::racos()),
            "cma-es" => Ok(Algorithm::cma_es()),
            "sep-cma-es" => Ok(Algorithm::sep_cma_es()),
            "random" => Ok(Algorithm::Random),
            other => Err(Error::setting(format!(
                "algorithm `{other}` is not one of {}",
                Algorithm::NAMES.join(", ")
            ))),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
