//! Who gets which part of the budget: the rule of `auto`.
//!
//! docs/auto.md has the figures behind each line, the problems it was chosen on, and the results on
//! others.

use super::survey::{Shape, Survey};
use serde::{Deserialize, Serialize};

/// Who may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Role {
    RaceCars,
    CmaEs,
    Polish,
}

/// A part of the run, until this many points were asked in all.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Leg {
    pub(super) role: Role,
    pub(super) until: u64,
}

/// A plan, and the reason for it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BudgetPlan {
    pub(super) legs: Vec<Leg>,
    /// Whether CMA-ES learns the whole covariance matrix.
    pub(super) is_full: bool,
    pub(super) reason: String,
}

/// The evaluations per coordinate to plan for where there is no budget; after them, the leader goes on.
const DEFAULT_PER_COORDINATE: u64 = 100;
/// The survey may use at most 1/14 of the budget.
const BUDGET_PER_SURVEY: u64 = 14;
/// Above this share of crossed pairs coordinates interact: where the objective is wavy and where it is
/// not. Ackley's function, which is not quite a sum over coordinates, has 0.03; Rosenbrock's 0.1.
const INTERACTION_THRESHOLDS: [f64; 2] = [0.15, 0.03];
/// The evaluations per coordinate that RACE-CARS takes to come down into the one valley of a function
/// without waves.
const DESCENT_PER_COORDINATE: u64 = 25;
/// Below this budget per coordinate CMA-ES has too few generations to get anywhere.
const CMA_ES_MIN_PER_COORDINATE: u64 = 10;
/// From this budget per coordinate on CMA-ES goes down a valley of interacting coordinates further than
/// RACE-CARS.
const CMA_ES_VALLEY_PER_COORDINATE: u64 = 60;
/// From this budget per coordinate on, CMA-ES learns the full covariance matrix.
const FULL_MATRIX_PER_COORDINATE: u64 = 200;
/// The largest dimension in which CMA-ES learns the full covariance matrix.
const FULL_MATRIX_MAX_DIMENSION: u64 = 200;

/// The evaluations to plan for.
pub(super) fn horizon(budget: Option<u64>, dimension: usize) -> u64 {
    budget.unwrap_or(DEFAULT_PER_COORDINATE.saturating_mul(dimension as u64)).max(1)
}

/// How many coordinates a survey looks at, if there is one: none where it only looks for noise.
pub(super) fn surveyed(horizon: u64, dimension: usize) -> Option<usize> {
    let fits =
        |coordinates: &usize| BUDGET_PER_SURVEY * Survey::cost(*coordinates) as u64 <= horizon;
    // One coordinate has no others to depend on.
    let is_possible = |coordinates: &usize| dimension > 1 || *coordinates == 0;
    [6, 4, 0].into_iter().filter(is_possible).find(fits)
}

/// The evaluations at the end that are kept for polishing: two turns of each coordinate or 6 %, but not
/// more than 30 %.
fn kept_for_polish(horizon: u64, n: u64) -> u64 {
    n.saturating_mul(4).max(horizon / 100 * 6).min(horizon / 10 * 3)
}

/// The end of a reason.
pub(super) fn noise(is_noisy: bool) -> &'static str {
    if is_noisy { "; it is noisy" } else { "" }
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
    let Some(Shape { interaction, waves }) = shape else {
        let reason = format!("too few values to tell the objective's shape{noise}");
        return finish(&[(RaceCars, end)], horizon, false, reason);
    };
    let is_wavy = waves > 0.0;
    let [wavy, smooth] = INTERACTION_THRESHOLDS;
    let interacts = interaction > if is_wavy { wavy } else { smooth };
    let mut legs = match (interacts, is_wavy) {
        (false, true) => vec![(RaceCars, end)],
        (true, true) if reaches(CMA_ES_MIN_PER_COORDINATE) => vec![(CmaEs, end)],
        (true, true) => vec![(RaceCars, end)],
        (true, false) if !reaches(CMA_ES_VALLEY_PER_COORDINATE) => vec![(RaceCars, end)],
        (true, false) => vec![(RaceCars, descent), (CmaEs, end)],
        // What looks like one valley may still have ripples at its bottom, which CMA-ES steps over.
        (false, false) if polish > 0 => {
            let polished = descent.saturating_add(4 * n).min(horizon);
            vec![(RaceCars, descent), (Polish, polished), (CmaEs, end)]
        }
        (false, false) => vec![(RaceCars, descent), (CmaEs, end)],
    };
    legs.dedup_by(|next, last| next.1 <= last.1);
    let is_full = reaches(FULL_MATRIX_PER_COORDINATE) && n <= FULL_MATRIX_MAX_DIMENSION;
    let reason = format!(
        "coordinates {} ({:.0} % of comparisons depend on the others), the objective is {} \
         ({:.0} % of profiles have a crest){noise}",
        if interacts { "interact" } else { "do not interact" },
        100.0 * interaction,
        if is_wavy { "wavy" } else { "not wavy" },
        100.0 * waves,
    );
    finish(&legs, horizon, is_full, reason)
}

/// Adds the last leg.
fn finish(legs: &[(Role, u64)], horizon: u64, is_full: bool, reason: String) -> BudgetPlan {
    let mut legs: Vec<Leg> = legs.iter().map(|&(role, until)| Leg { role, until }).collect();
    if legs.last().is_some_and(|leg| leg.until < horizon) {
        legs.push(Leg { role: Role::Polish, until: horizon });
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
    fn the_rule() {
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
    fn noise_is_not_polished() {
        let shape = Some(Shape { interaction: 0.0, waves: 0.0 });
        let plan = plan(shape, true, 5000, 50);
        assert!(plan.legs.iter().all(|leg| leg.role != Role::Polish));
        assert!(plan.reason.ends_with("noisy"));
    }

    #[test]
    fn a_tiny_budget_is_not_spent_on_a_survey() {
        assert_eq!(surveyed(20, 9), None);
        assert_eq!(surveyed(570, 9), Some(0));
        assert_eq!(surveyed(600, 9), Some(4));
        assert_eq!(surveyed(1000, 9), Some(6));
        assert_eq!(surveyed(1000, 1), Some(0));
        let plan = plan(None, false, 1, 1);
        assert_eq!(plan.legs, [Leg { role: Role::RaceCars, until: 1 }]);
    }
}
