//! The settings of the Gaussian process search, and their derived defaults.

use crate::error::{Result, ensure};
use crate::optimizers::settings::settings;
use crate::space::Space;
use serde::{Deserialize, Serialize};

settings! {
    /// Settings of the Gaussian process search. Settings that are not given are derived.
    #[derive(Copy)]
    pub struct GaussianProcess {
        /// The number of points that fill the space before the model is used. Known points count.
        /// Default: n + 2, at most 50 and an eighth of the budget, at least 4. If some coordinates are discrete and
        /// others are not, a quarter of the budget up to 10.
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

/// Where discrete and real coordinates are mixed, up to this many points may be a quarter of the budget instead of an
/// eighth.
const MAX_FIRST_IN_MIXTURE: u64 = 10;
const MAX_DESIGN: usize = 1 << 20;
const MIN_POINTS: usize = 10;
const MAX_POINTS: usize = 1000;

impl GaussianProcess {
    pub(super) fn resolve(&self, space: &Space, budget: Option<u64>) -> Result<Resolved> {
        let budget = budget.unwrap_or(u64::MAX);
        // In a mixture each category may have a valley of its own.
        let is_mixed = space.can_repeat() && !space.is_discrete();
        let least = if is_mixed { (budget / 4).min(MAX_FIRST_IN_MIXTURE) } else { 0 };
        let most = (budget / 8).max(least).min(50) as usize;
        let resolved = Resolved {
            design: self.design.unwrap_or_else(|| (space.dimension() + 2).min(most).max(4)),
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
        let cube = |n| Space::cube(n, 0.0, 1.0).unwrap();
        let design =
            |space, budget| GaussianProcess::default().resolve(&space, budget).unwrap().design;
        assert_eq!(design(cube(2), Some(20)), 4);
        assert_eq!((design(cube(20), Some(100)), design(cube(20), Some(1000))), (12, 22));
        assert_eq!((design(cube(1), Some(0)), design(cube(900), None)), (4, 50));
        assert_eq!(design(cube(900), Some(u64::MAX)), 50);
        let builder = || Space::builder().integers("i", 5, 0, 9);
        assert_eq!(design(builder().build().unwrap(), Some(32)), 4);
        let mixed = || builder().reals("x", 45, 0.0, 1.0).build().unwrap();
        assert_eq!([30, 50, 96].map(|budget| design(mixed(), Some(budget))), [7, 10, 12]);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let space = Space::cube(3, 0.0, 1.0).unwrap();
        let message =
            |settings: GaussianProcess| settings.resolve(&space, None).unwrap_err().to_string();
        let settings = GaussianProcess::default();
        assert_eq!(message(settings.points(9usize)), "points = 9 is not from 10 to 1000");
        let huge = message(settings.design(usize::MAX));
        assert!(huge.starts_with("design = 18446744073709551615 is not at most"), "{huge}");
    }
}
