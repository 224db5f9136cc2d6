//! The settings of the Gaussian process search, and their derived defaults.

use crate::error::{Result, ensure};
use crate::optimizers::settings::settings;
use serde::{Deserialize, Serialize};

settings! {
    /// Settings of the Gaussian process search. Settings that are not given are derived.
    #[derive(Copy)]
    pub struct GaussianProcess {
        /// The number of points that fill the space before the model is used. Known points count.
        /// Default: n + 2, at most an eighth of the budget and 50, at least 4.
        design: Option<usize>,
        /// The largest number of points in the model when it is fitted. A step takes time in proportion to
        /// its square. Default: 200.
        points: Option<usize>,
        /// Whether the objective is noisy. If it is, the model expects noise, and the trust region goes by
        /// the model rather than by single values. Default: false.
        noisy: bool,
    }
}

/// [`GaussianProcess`] with all settings resolved and checked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Resolved {
    pub(super) design: usize,
    pub(super) points: usize,
    pub(super) noisy: bool,
}

const MAX_DESIGN: usize = 1 << 20;
const MIN_POINTS: usize = 10;
const MAX_POINTS: usize = 1000;

impl GaussianProcess {
    pub(super) fn resolve(&self, dimension: usize, budget: Option<u64>) -> Result<Resolved> {
        let eighth = budget.map_or(50, |budget| (budget / 8).min(50) as usize);
        let resolved = Resolved {
            design: self.design.unwrap_or_else(|| (dimension + 2).min(eighth).max(4)),
            points: self.points.unwrap_or(200),
            noisy: self.noisy,
        };
        resolved.check()?;
        Ok(resolved)
    }
}

impl Resolved {
    pub(super) fn check(&self) -> Result<()> {
        let Resolved { design, points, .. } = *self;
        ensure!(design <= MAX_DESIGN, setting, "design = {design} is not at most {MAX_DESIGN}");
        let is_possible = (MIN_POINTS..=MAX_POINTS).contains(&points);
        ensure!(is_possible, setting, "points = {points} is not from {MIN_POINTS} to {MAX_POINTS}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_design_is_small_beside_the_budget() {
        let design = |n, budget| GaussianProcess::default().resolve(n, budget).unwrap().design;
        assert_eq!(
            (design(2, Some(20)), design(20, Some(100)), design(20, Some(1000))),
            (4, 12, 22)
        );
        assert_eq!(
            (design(1, Some(0)), design(900, None), design(900, Some(u64::MAX))),
            (4, 50, 50)
        );
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let message =
            |settings: GaussianProcess| settings.resolve(3, None).unwrap_err().to_string();
        let settings = GaussianProcess::default();
        assert_eq!(message(settings.points(9usize)), "points = 9 is not from 10 to 1000");
        let huge = message(settings.design(usize::MAX));
        assert!(huge.starts_with("design = 18446744073709551615 is not at most"), "{huge}");
    }
}
