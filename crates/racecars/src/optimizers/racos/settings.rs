//! The settings of RACOS, SRACOS and RACE-CARS, and the defaults derived for those not given.

use crate::error::{Error, Result};
use crate::optimizers::settings::{choices, settings};
use crate::space::Space;
use serde::{Deserialize, Serialize};

/// The most points that may be kept to learn from.
const MAX_TRAINING_SIZE: usize = 1_000_000;

settings! {
    /// Settings of the classification that RACOS, SRACOS and RACE-CARS share. What is not given is
    /// derived.
    #[derive(Copy)]
    pub struct Classification {
        /// r: the number of evaluated points that are kept to learn from. By budget T: 4 up to 50, 6 up
        /// to 100, 12 up to 1000, 22 above or when it is not known.
        training_size: Option<usize>,
        /// m: how many of them are positive. 1 where the region adapts itself; else by budget T: 1 up to
        /// 100, 2 above.
        positive_size: Option<usize>,
        /// lambda: the probability to draw from the learned box rather than from the whole space. 1
        /// where the region adapts itself, else 0.99.
        exploitation: Option<f64>,
        /// u: how many coordinates of a positive point are redrawn. 1 where the region adapts itself.
        /// Else, where any coordinate is continuous: 1 up to n = 100, 2 up to 1000, 3 above; where all
        /// are discrete: 1 up to 10, 2 up to 50, 3 up to 100, 4 up to 1000, 5 above.
        uncertain: Option<usize>,
        /// Which negative point a new one replaces: worst, random or farthest (from the best point).
        replacing: Replacing,
        /// Whether points may be proposed again where coordinates are discrete, for noisy objectives.
        repeats: bool,
    }
}

settings! {
    /// Settings of RACE-CARS. With neither gamma nor rho, the region follows success and the budget. With
    /// one of them it is the paper's, and the other is derived.
    #[derive(Copy)]
    pub struct RaceCars {
        ../// What it shares with RACOS and SRACOS.
        classification: Classification,
        /// gamma: each shrink multiplies the region's width by this. 0.95 where rho is given.
        gamma: Option<f64>,
        /// rho: the probability of a shrink at each step. Where gamma is given: 55 / T, or 1.8 / n when
        /// the budget T is not known.
        rho: Option<f64>,
    }
}

/// The `Replacing` sub-procedure: which negative makes way (Hu et al. 2017).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Replacing {
    /// The worst, if the new one is better.
    #[default]
    Worst,
    /// A random one.
    Random,
    /// The one farthest from the best point ("largest margin").
    Farthest,
}

choices!(Replacing { Worst => "worst", Random => "random", Farthest => "farthest" });

/// [`Classification`] with every setting filled in and checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Resolved {
    pub(super) training_size: usize,
    pub(super) positive_size: usize,
    pub(super) exploitation: f64,
    pub(super) uncertain: usize,
    pub(super) replacing: Replacing,
    pub(super) repeats: bool,
}

impl Classification {
    /// What an adaptive region wants of the settings that are not given: to move from the best point
    /// itself, one coordinate at a time.
    pub(super) fn or_adaptive(&self) -> Self {
        Classification {
            positive_size: self.positive_size.or(Some(1)),
            exploitation: self.exploitation.or(Some(1.0)),
            uncertain: self.uncertain.or(Some(1)),
            ..*self
        }
    }

    pub(super) fn resolve(&self, space: &Space, budget: Option<u64>) -> Result<Resolved> {
        let dimension = space.dimension();
        let (default_r, default_m) = match budget {
            Some(..=50) => (4, 1),
            Some(51..=100) => (6, 1),
            Some(101..=1000) => (12, 2),
            _ => (22, 2),
        };
        let default_u = match (space.is_discrete(), dimension) {
            (false, ..=100) => 1,
            (false, ..=1000) => 2,
            (false, _) => 3,
            (true, ..=10) => 1,
            (true, ..=50) => 2,
            (true, ..=100) => 3,
            (true, ..=1000) => 4,
            (true, _) => 5,
        };
        let positive_size = self.positive_size.unwrap_or(match self.training_size {
            Some(r) => default_m.min(r.saturating_sub(1)).max(1),
            None => default_m,
        });
        let least_r = positive_size.saturating_add(1).min(MAX_TRAINING_SIZE);
        let training_size = self.training_size.unwrap_or(default_r.max(least_r));
        let resolved = Resolved {
            training_size,
            positive_size,
            exploitation: self.exploitation.unwrap_or(0.99),
            uncertain: self.uncertain.unwrap_or(default_u.min(dimension)),
            replacing: self.replacing,
            repeats: self.repeats,
        };
        resolved.check(dimension)?;
        Ok(resolved)
    }
}

impl Resolved {
    pub(super) fn check(&self, dimension: usize) -> Result<()> {
        let Resolved {
            training_size: r, positive_size: m, exploitation: lambda, uncertain: u, ..
        } = *self;
        if !(2..=MAX_TRAINING_SIZE).contains(&r) {
            return Err(Error::setting(format!(
                "training size r = {r} is not from 2 to {MAX_TRAINING_SIZE}"
            )));
        }
        if m == 0 || m >= r {
            return Err(Error::setting(format!(
                "positive size m = {m} is not from 1 to r - 1 = {}",
                r - 1
            )));
        }
        if !(0.0..=1.0).contains(&lambda) {
            return Err(Error::setting(format!(
                "exploitation rate lambda = {lambda} is not from 0 to 1"
            )));
        }
        if u == 0 || u > dimension {
            return Err(Error::setting(format!(
                "uncertain coordinates u = {u} is not from 1 to the dimension {dimension}"
            )));
        }
        Ok(())
    }
}

impl RaceCars {
    /// Whether the region follows success and the budget, and not gamma and rho.
    pub fn is_adaptive(&self) -> bool {
        self.gamma.is_none() && self.rho.is_none()
    }

    /// gamma and rho, filled in and checked.
    pub fn shrinking(&self, dimension: usize, budget: Option<u64>) -> Result<(f64, f64)> {
        // Table 1 (gamma = 0.95, T = 30 n) is best where n rho is about 1.83: some 55 shrinks a run.
        let default_rho = match budget {
            Some(budget) => 55.0 / budget.max(1) as f64,
            None => 1.8 / dimension as f64,
        };
        let gamma = self.gamma.unwrap_or(0.95);
        let rho = self.rho.unwrap_or(default_rho.min(1.0));
        if !(gamma > 0.0 && gamma < 1.0) {
            return Err(Error::setting(format!(
                "shrinking rate gamma = {gamma} is not between 0 and 1"
            )));
        }
        if !(0.0..=1.0).contains(&rho) {
            return Err(Error::setting(format!(
                "shrinking frequency rho = {rho} is not from 0 to 1"
            )));
        }
        Ok((gamma, rho))
    }
}
