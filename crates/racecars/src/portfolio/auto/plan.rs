//! Which algorithm gets which part of the budget, by what a survey found: the rule of `auto` in many
//! dimensions, and for noisy objectives.
//!
//! docs/auto.md has the measurements behind each rule, the problems it was chosen on, and the results on
//! other problems.

use super::contest;
use super::survey::{Shape, Survey};
use crate::optimizers::saved::ID_HEADROOM;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The algorithms of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Role {
    RaceCars,
    CmaEs,
    Polish,
    /// A scan along the coordinates.
    Scan,
    Quadratic,
    QuasiNewton,
    /// For constraints that evaluations measure.
    Sqp,
    LShade,
    GaussianProcess,
    Evolution,
    LocalSearch,
    /// `auto` on the real coordinates of a mixed space, while the others are held.
    Reals,
}

/// A part of the run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Leg {
    pub(super) role: Role,
    /// The number of points asked at its end.
    pub(super) until: u64,
    /// Whether it ends early, when its member has converged or stalled.
    pub(super) hands_over: bool,
}

impl Leg {
    pub(super) fn new(role: Role, until: u64) -> Self {
        Leg { role, until, hands_over: false }
    }

    pub(super) fn handing_over(role: Role, until: u64) -> Self {
        Leg { role, until, hands_over: true }
    }
}

/// A division of the budget, and the reason for it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BudgetPlan {
    pub(super) legs: Vec<Leg>,
    /// Whether CMA-ES learns the full covariance matrix.
    pub(super) is_full: bool,
    pub(super) reason: String,
}

/// Without a budget, a contest begins with a descent of this many evaluations per coordinate, and at least this many. In
/// few dimensions the descent is shorter, and CMA-ES with a model follows up to the second number.
const FIRST_PER_COORDINATE: u64 = 10;
const FIRST_WITH_MODEL_PER_COORDINATE: u64 = 50;
const FIRST_MIN: u64 = 100;
/// After that, and above the dimensions of a contest, this many are planned for, and then twice as many, again and
/// again.
const NEXT_PER_COORDINATE: u64 = 100;
/// With noise, and in spaces with discrete coordinates, this many are planned for at once.
const LONG_PER_COORDINATE: u64 = 600;
/// No run has more evaluations than this.
pub(super) const MAX_HORIZON: u64 = ID_HEADROOM / 4;
/// The survey may use at most 1/14 of the budget.
const BUDGET_PER_SURVEY: u64 = 14;
/// From this budget on, the first point is evaluated twice to detect noise.
const NOISE_CHECK_MIN_BUDGET: u64 = 20;
/// Above this share of crossed pairs coordinates interact, for multimodal and for unimodal profiles.
/// Ackley's function, which is almost separable, has 0.03; Rosenbrock's has 0.1.
const INTERACTION_THRESHOLDS: [f64; 2] = [0.15, 0.03];
/// Up to this share of profiles with a crest, these are the bends of a valley rather than waves.
const MAX_SMOOTH_WAVES: f64 = 0.1;
/// Evaluations per coordinate that RACE-CARS needs to reach the valley of a unimodal function.
const DESCENT_PER_COORDINATE: u64 = 25;
/// Below this budget per coordinate, CMA-ES has too few generations to make progress.
const CMA_ES_MIN_PER_COORDINATE: u64 = 10;
/// From this budget per coordinate on, CMA-ES is better than RACE-CARS in a valley of interacting
/// coordinates.
const CMA_ES_VALLEY_PER_COORDINATE: u64 = 60;
/// From this budget per coordinate on, CMA-ES learns the full covariance matrix.
const FULL_MATRIX_PER_COORDINATE: u64 = 200;
/// The largest dimension in which CMA-ES learns the full covariance matrix.
pub(super) const FULL_MATRIX_MAX_DIMENSION: usize = 200;

impl Shape {
    pub(super) fn is_wavy(self) -> bool {
        self.waves > 0.0
    }

    /// Whether so many profiles have a crest that these are not the bends of a valley.
    pub(super) fn is_clearly_wavy(self) -> bool {
        self.waves > MAX_SMOOTH_WAVES
    }

    pub(super) fn interacts(self) -> bool {
        let [wavy, smooth] = INTERACTION_THRESHOLDS;
        self.interaction > if self.is_clearly_wavy() { wavy } else { smooth }
    }

    /// Whether coordinates can be in the wrong valley one by one.
    pub(super) fn wants_scan(self) -> bool {
        self.is_clearly_wavy() && !self.interacts()
    }

    /// Whether a few comparisons depend on the others, which may be due to waves: Ackley's function has up to 15 %,
    /// and a rotated function with steps sometimes less.
    pub(super) fn is_unclear(self) -> bool {
        let [_, smooth] = INTERACTION_THRESHOLDS;
        !self.interacts() && self.interaction > smooth
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "coordinates {} ({:.0} % of comparisons depend on the others), the objective is {} \
             ({:.0} % of profiles have a crest)",
            if self.interacts() { "interact" } else { "do not interact" },
            100.0 * self.interaction,
            if self.is_wavy() { "wavy" } else { "not wavy" },
            100.0 * self.waves,
        )
    }
}

/// The number of evaluations to plan for at first.
pub(super) fn horizon(budget: Option<u64>, dimension: usize, is_discrete: bool) -> u64 {
    let n = dimension as u64;
    let first = match dimension > contest::MAX_DIMENSION {
        true => NEXT_PER_COORDINATE.saturating_mul(n),
        false if is_discrete => long_horizon(n),
        false => (FIRST_PER_COORDINATE * n).max(FIRST_MIN),
    };
    budget.unwrap_or(first).clamp(1, MAX_HORIZON)
}

/// The number of evaluations to plan for at first where CMA-ES begins with a model, without a budget.
pub(super) fn horizon_with_model(n: u64) -> u64 {
    (FIRST_WITH_MODEL_PER_COORDINATE * n).max(FIRST_MIN)
}

/// The number of evaluations to plan for next, without a budget.
pub(super) fn next_horizon(horizon: u64, n: u64) -> u64 {
    (2 * horizon).max(NEXT_PER_COORDINATE * n).min(MAX_HORIZON)
}

/// The number of evaluations to plan for without a budget where there is no descent, or a run may be a long one.
pub(super) fn long_horizon(n: u64) -> u64 {
    LONG_PER_COORDINATE * n
}

/// The number of coordinates to survey: 0 to detect noise only, `None` for no survey.
pub(super) fn surveyed_coordinates(horizon: u64, dimension: usize) -> Option<usize> {
    let fits = |coordinates: &usize| match *coordinates {
        0 => horizon >= NOISE_CHECK_MIN_BUDGET,
        _ => BUDGET_PER_SURVEY * Survey::cost(*coordinates) as u64 <= horizon,
    };
    // A single coordinate cannot interact.
    let is_possible = |coordinates: &usize| dimension > 1 || *coordinates == 0;
    [6, 4, 0].into_iter().filter(is_possible).find(fits)
}

/// Whether noise is looked for in a space with discrete coordinates and this many points. If the budget is
/// just enough for all points, each is evaluated once.
pub(super) fn checks_noise(budget: Option<u64>, horizon: u64, points: Option<u64>) -> bool {
    match points.filter(|&points| points <= horizon) {
        Some(points) => budget.is_some_and(|budget| budget > points),
        None => horizon >= NOISE_CHECK_MIN_BUDGET,
    }
}

/// The evaluations reserved for polishing at the end: two turns of each coordinate or 6 %, but not more
/// than 30 %.
fn kept_for_polish(horizon: u64, n: u64) -> u64 {
    n.saturating_mul(4).max(horizon / 100 * 6).min(horizon / 10 * 3)
}

/// The part of a reason about noise.
pub(super) fn noise(is_noisy: bool) -> &'static str {
    if is_noisy { "; it is noisy" } else { "" }
}

/// Whether CMA-ES learns the full covariance matrix.
pub(super) fn learns_matrix(horizon: u64, dimension: usize) -> bool {
    horizon >= FULL_MATRIX_PER_COORDINATE.saturating_mul(dimension as u64)
        && dimension <= FULL_MATRIX_MAX_DIMENSION
}

pub(super) fn plan(
    shape: Option<Shape>,
    is_noisy: bool,
    horizon: u64,
    dimension: usize,
) -> BudgetPlan {
    use Role::{CmaEs, Polish, RaceCars};
    let n = dimension as u64;
    let polish = if is_noisy { 0 } else { kept_for_polish(horizon, n) };
    let noise = noise(is_noisy);
    let end = horizon - polish;
    let reaches = |multiple: u64| horizon >= multiple.saturating_mul(n);
    let descent = DESCENT_PER_COORDINATE.saturating_mul(n).min(end);
    let Some(shape) = shape else {
        let reason = format!("too few values to tell the objective's shape{noise}");
        return finish(&[(RaceCars, end)], horizon, false, reason);
    };
    let (interacts, is_wavy) = (shape.interacts(), shape.is_wavy());
    let mut legs = match (interacts, is_wavy) {
        (false, true) => vec![(RaceCars, end)],
        (true, true) if reaches(CMA_ES_MIN_PER_COORDINATE) => vec![(CmaEs, end)],
        (true, true) => vec![(RaceCars, end)],
        (true, false) if !reaches(CMA_ES_VALLEY_PER_COORDINATE) => vec![(RaceCars, end)],
        (true, false) => vec![(RaceCars, descent), (CmaEs, end)],
        // A profile that looks unimodal may have ripples near the optimum, which CMA-ES smooths over.
        (false, false) if polish > 0 => {
            let polished = descent.saturating_add(4 * n).min(horizon);
            vec![(RaceCars, descent), (Polish, polished), (CmaEs, end)]
        }
        (false, false) => vec![(RaceCars, descent), (CmaEs, end)],
    };
    legs.dedup_by(|next, last| next.1 <= last.1);
    let is_full = learns_matrix(horizon, dimension);
    let reason = format!("{shape}{noise}");
    finish(&legs, horizon, is_full, reason)
}

/// Adds polishing as the last leg, if evaluations are left.
fn finish(legs: &[(Role, u64)], horizon: u64, is_full: bool, reason: String) -> BudgetPlan {
    let mut legs: Vec<Leg> = legs.iter().map(|&(role, until)| Leg::new(role, until)).collect();
    if legs.last().is_some_and(|leg| leg.until < horizon) {
        legs.push(Leg::new(Role::Polish, horizon));
    }
    BudgetPlan { legs, is_full, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(interaction: f64, waves: f64, per_coordinate: u64) -> Vec<Role> {
        let shape = Some(Shape { interaction, waves });
        let plan = plan(shape, false, per_coordinate * 50, 50);
        assert!(plan.legs.is_sorted_by(|a, b| a.until < b.until));
        assert_eq!(plan.legs.last().unwrap().until, per_coordinate * 50);
        plan.legs.iter().map(|leg| leg.role).collect()
    }

    #[test]
    fn the_survey_and_the_budget_determine_the_legs() {
        use Role::{CmaEs, Polish, RaceCars};
        assert_eq!(members(0.0, 0.5, 100), [RaceCars, Polish]);
        assert_eq!(members(0.4, 0.5, 100), [CmaEs, Polish]);
        assert_eq!(members(0.4, 0.5, 9), [RaceCars, Polish]);
        assert_eq!(members(0.4, 0.0, 30), [RaceCars, Polish]);
        assert_eq!(members(0.4, 0.0, 100), [RaceCars, CmaEs, Polish]);
        assert_eq!(members(0.0, 0.0, 100), [RaceCars, Polish, CmaEs, Polish]);
        assert_eq!(members(0.0, 0.0, 10), [RaceCars, Polish]);
    }

    #[test]
    fn a_single_crest_is_not_taken_for_waves() {
        let verdicts = |interaction, waves| {
            let shape = Shape { interaction, waves };
            (shape.interacts(), shape.is_unclear())
        };
        assert_eq!(verdicts(0.08, 0.08), (true, false));
        assert_eq!(verdicts(0.08, 0.3), (false, true));
        assert_eq!(verdicts(0.0, 0.3), (false, false));
        assert_eq!(verdicts(0.4, 0.3), (true, false));
    }

    #[test]
    fn a_noisy_objective_is_not_polished() {
        let shape = Some(Shape { interaction: 0.0, waves: 0.0 });
        let plan = plan(shape, true, 5000, 50);
        assert!(plan.legs.iter().all(|leg| leg.role != Role::Polish));
        assert!(plan.reason.ends_with("noisy"));
    }

    #[test]
    fn a_small_budget_has_no_survey() {
        assert_eq!(surveyed_coordinates(19, 9), None);
        assert_eq!(surveyed_coordinates(20, 9), Some(0));
        assert_eq!(surveyed_coordinates(570, 9), Some(0));
        assert_eq!(surveyed_coordinates(600, 9), Some(4));
        assert_eq!(surveyed_coordinates(1000, 9), Some(6));
        assert_eq!(surveyed_coordinates(1000, 1), Some(0));
        for (budget, points, is_checked) in [
            (Some(19), None, false),
            (Some(20), None, true),
            (Some(19), Some(20), false),
            (Some(20), Some(20), false),
            (Some(21), Some(20), true),
            (Some(7), Some(6), true),
            (None, Some(6), false),
            (None, Some(1000), false),
            (None, Some(2000), true),
        ] {
            let horizon = horizon(budget, 2, true);
            assert_eq!(checks_noise(budget, horizon, points), is_checked, "{budget:?} {points:?}");
        }
        let plan = plan(None, false, 1, 1);
        assert_eq!(plan.legs, [Leg::new(Role::RaceCars, 1)]);
    }
}
