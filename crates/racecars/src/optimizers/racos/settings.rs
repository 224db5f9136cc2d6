//! The settings of RACOS, SRACOS and RACE-CARS, and their derived defaults.

use crate::error::{Result, ensure};
use crate::optimizers::settings::{choices, settings};
use crate::space::Space;
use serde::{Deserialize, Serialize};

/// The largest training set.
const MAX_TRAINING_SIZE: usize = 1_000_000;

settings! {
    /// Settings of the classification in RACOS, SRACOS and RACE-CARS. Settings that are not given are
    /// derived.
    #[derive(Copy)]
    pub struct Classification {
        /// r: the size of the training set. Default: by budget T, 4 up to 50, 6 up to 100, 12 up to 1000,
        /// 22 above or without a budget.
        training_size: Option<usize>,
        /// m: the number of positive points. Default: 1 if the region is adaptive; else by budget T, 1 up
        /// to 100, 2 above.
        positive_size: Option<usize>,
        /// lambda: the probability of sampling from the learned box instead of the whole space. Default: 1
        /// if the region is adaptive, else 0.99.
        exploitation: Option<f64>,
        /// u: the number of coordinates of a positive point that are redrawn. Default: 1 if the region is
        /// adaptive. Else, if any coordinate is continuous: 1 up to n = 100, 2 up to 1000, 3 above; if all
        /// are discrete: 1 up to 10, 2 up to 50, 3 up to 100, 4 up to 1000, 5 above.
        uncertain: Option<usize>,
        /// Which negative point is replaced: worst, random or farthest (from the best point). Default:
        /// worst.
        replacing: Replacing,
        /// Whether points may be proposed repeatedly in spaces with discrete coordinates, for noisy
        /// objectives. Default: false.
        repeats: bool,
    }
}

settings! {
    /// Settings of RACE-CARS. With neither gamma nor rho the region is adaptive: its width depends on
    /// success and on the budget. With one of them it shrinks as in the paper, and the other is derived.
    #[derive(Copy)]
    pub struct RaceCars {
        ../// The settings shared with RACOS and SRACOS.
        classification: Classification,
        /// gamma: the factor of the region's width at each shrink. Default: 0.95 if rho is given.
        gamma: Option<f64>,
        /// rho: the probability of a shrink at each step. Default, if gamma is given: 55 / T, or 1.8 / n
        /// without a budget T.
        rho: Option<f64>,
    }
}

/// The `Replacing` sub-procedure: which negative point is replaced (Hu et al. 2017).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Replacing {
    /// The worst point, if the new one is better.
    #[default]
    Worst,
    /// A random point.
    Random,
    /// The point farthest from the best one ("largest margin").
    Farthest,
}

choices!(Replacing { Worst => "worst", Random => "random", Farthest => "farthest" });

/// The shrinking of RACE-CARS' region in the paper.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Shrinking {
    /// gamma: the factor of the region's width at each shrink.
    pub gamma: f64,
    /// rho: the probability of a shrink at each step.
    pub rho: f64,
}

/// [`Classification`] with all settings resolved and checked.
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
    /// Fills in the defaults for an adaptive region: moves start from the best point and change one
    /// coordinate.
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
        ensure!(
            (2..=MAX_TRAINING_SIZE).contains(&r),
            setting,
            "training size r = {r} is not from 2 to {MAX_TRAINING_SIZE}"
        );
        ensure!(
            (1..r).contains(&m),
            setting,
            "positive size m = {m} is not from 1 to r - 1 = {}",
            r - 1
        );
        let is_rate = (0.0..=1.0).contains(&lambda);
        ensure!(is_rate, setting, "exploitation rate lambda = {lambda} is not from 0 to 1");
        ensure!(
            (1..=dimension).contains(&u),
            setting,
            "uncertain coordinates u = {u} is not from 1 to the dimension {dimension}"
        );
        Ok(())
    }
}

impl RaceCars {
    /// Whether the region is adaptive: neither gamma nor rho is given.
    pub fn is_adaptive(&self) -> bool {
        self.gamma.is_none() && self.rho.is_none()
    }

    /// gamma and rho, resolved and checked.
    pub fn shrinking(&self, dimension: usize, budget: Option<u64>) -> Result<Shrinking> {
        // Table 1 (gamma = 0.95, T = 30 n) is best if n rho is about 1.83: some 55 shrinks per run.
        let default_rho = match budget {
            Some(budget) => 55.0 / budget.max(1) as f64,
            None => 1.8 / dimension as f64,
        };
        let gamma = self.gamma.unwrap_or(0.95);
        let rho = self.rho.unwrap_or(default_rho.min(1.0));
        let is_factor = gamma > 0.0 && gamma < 1.0;
        ensure!(is_factor, setting, "shrinking rate gamma = {gamma} is not between 0 and 1");
        let is_rate = (0.0..=1.0).contains(&rho);
        ensure!(is_rate, setting, "shrinking frequency rho = {rho} is not from 0 to 1");
        Ok(Shrinking { gamma, rho })
    }
}
