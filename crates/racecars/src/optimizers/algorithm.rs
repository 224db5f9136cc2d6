//! The choice of an algorithm with its settings.

use super::Optimizer;
use super::auto::{Auto, Noise};
use super::cma_es::{Cma, CmaEs};
use super::differential_evolution::{DifferentialEvolution, Evolution};
use super::quasi_random::QuasiRandom;
use super::racos::{Classification, Racos, Shrinking};
use super::random_search::RandomSearch;
use super::zo_adam::{Descent, ZoAdam};
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
    /// A portfolio: looks at the objective, then chooses who leads.
    Auto(Noise),
    /// RACE-CARS: SRACOS within a region that shrinks around the best point (Algorithm 4).
    RaceCars(Classification, Shrinking),
    /// SRACOS: sequential classification-based optimization (Algorithm 3).
    Sracos(Classification),
    /// RACOS: classification-based optimization in batches (Algorithms 1 and 2).
    Racos(Classification),
    /// CMA-ES: evolution of a normal distribution; `separable` for independent coordinates.
    CmaEs(CmaEs),
    /// Differential evolution: best/1/bin, rand/1/bin or L-SHADE.
    DifferentialEvolution(DifferentialEvolution),
    /// ZO-Adam: descent with adaptive moments on estimated gradients; continuous spaces only.
    ZoAdam(ZoAdam),
    /// Quasi-random search: a scrambled Halton sequence.
    QuasiRandom,
    /// Random search.
    Random,
}

impl Default for Algorithm {
    fn default() -> Self {
        Algorithm::Auto(Noise::Detect)
    }
}

impl Algorithm {
    /// The names that parse to an algorithm.
    pub const NAMES: [&'static str; 12] = [
        "auto",
        "race-cars",
        "sracos",
        "racos",
        "cma-es",
        "sep-cma-es",
        "de",
        "de-rand",
        "l-shade",
        "zo-adam",
        "quasi-random",
        "random",
    ];

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
            Algorithm::Auto(_) => "auto",
            Algorithm::RaceCars(..) => "race-cars",
            Algorithm::Sracos(_) => "sracos",
            Algorithm::Racos(_) => "racos",
            Algorithm::CmaEs(CmaEs { separable: false, .. }) => "cma-es",
            Algorithm::CmaEs(CmaEs { separable: true, .. }) => "sep-cma-es",
            Algorithm::DifferentialEvolution(settings) => settings.strategy.name(),
            Algorithm::ZoAdam(_) => "zo-adam",
            Algorithm::QuasiRandom => "quasi-random",
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
            Algorithm::Auto(noise) => Box::new(Auto::new(space, *noise, budget, seed)?),
            Algorithm::RaceCars(classification, shrinking) => {
                Box::new(Racos::race_cars(space, classification, shrinking, budget, seed)?)
            }
            Algorithm::Sracos(settings) => {
                Box::new(Racos::sequential(space, settings, budget, seed)?)
            }
            Algorithm::Racos(settings) => Box::new(Racos::batch(space, settings, budget, seed)?),
            Algorithm::CmaEs(settings) => Box::new(Cma::new(space, settings, seed)?),
            Algorithm::DifferentialEvolution(settings) => {
                Box::new(Evolution::new(space, settings, budget, seed)?)
            }
            Algorithm::ZoAdam(settings) => Box::new(Descent::new(space, settings, budget, seed)?),
            Algorithm::QuasiRandom => Box::new(QuasiRandom::new(space, seed)),
            Algorithm::Random => Box::new(RandomSearch::new(space, seed)),
        })
    }
}

impl FromStr for Algorithm {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "auto" => Ok(Algorithm::default()),
            "race-cars" => Ok(Algorithm::race_cars()),
            "sracos" => Ok(Algorithm::sracos()),
            "racos" => Ok(Algorithm::racos()),
            "cma-es" => Ok(Algorithm::cma_es()),
            "sep-cma-es" => Ok(Algorithm::sep_cma_es()),
            "de" => Ok(Algorithm::DifferentialEvolution(DifferentialEvolution::best())),
            "de-rand" => Ok(Algorithm::DifferentialEvolution(DifferentialEvolution::random())),
            "l-shade" => Ok(Algorithm::DifferentialEvolution(DifferentialEvolution::l_shade())),
            "zo-adam" => Ok(Algorithm::ZoAdam(ZoAdam::default())),
            "quasi-random" => Ok(Algorithm::QuasiRandom),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizers::load;

    #[test]
    fn every_name_makes_an_optimizer_of_that_name_that_can_be_saved() {
        let space = Space::cube(3, 0.0, 1.0).unwrap();
        for name in Algorithm::NAMES {
            let algorithm: Algorithm = name.parse().unwrap();
            assert_eq!(algorithm.name(), name);
            let mut optimizer = algorithm.optimizer(&space, Some(100), 1).unwrap();
            assert_eq!(optimizer.name(), name);
            assert_eq!(load(&optimizer.save()).unwrap().ask(), optimizer.ask());
        }
    }
}
