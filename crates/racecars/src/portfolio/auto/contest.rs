//! Which members run for how long where the dimension allows models of curvature: the rule of `auto` up
//! to [`MAX_DIMENSION`] coordinates.
//!
//! With few evaluations per coordinate there is time for one descent from the centre, by quadratic models or
//! by quasi-Newton steps; below that, for a Gaussian process. With more, three kinds of search have a heat
//! each, and the one with the best value gets the budget: descents (smooth functions), RACE-CARS
//! (separable or rough ones) and CMA-ES (the others). A leader that converges or stalls hands over to the
//! next best.
//!
//! docs/auto.md has the measurements behind each number, and the problems it was chosen on.

use super::plan::{Leg, Role};
use super::survey::Shape;

/// The greatest dimension for this rule. Above it, `plan` divides the budget by a survey.
pub(super) const MAX_DIMENSION: usize = 100;
/// Below this budget per coordinate, a Gaussian process makes more of a value than a descent does.
const DESCENT_MIN_PER_COORDINATE: u64 = 3;
/// Up to this dimension, descents use quadratic models: they need 2 n values before the first step, and
/// fewer than quasi-Newton steps after that.
const QUADRATIC_MAX_DIMENSION: usize = 12;
/// From this budget per coordinate on there are heats.
const HEATS_MIN_PER_COORDINATE: u64 = 45;
/// The part of the budget that a heat takes.
const BUDGET_PER_HEAT: u64 = 10;
/// The part of the budget that a descent before CMA-ES takes at most.
const BUDGET_PER_DESCENT: u64 = 5;
const BUDGET_PER_SEPARABLE_DESCENT: u64 = 20;
/// A leader has stalled after this part of the budget, but at least [`STALL_PER_COORDINATE`] evaluations per
/// coordinate, without an improvement.
const BUDGET_PER_STALL: u64 = 10;
const STALL_PER_COORDINATE: u64 = 20;
/// From this budget per coordinate on there are no heats: CMA-ES needs hundreds of evaluations per coordinate
/// to learn its matrix, and would lose every heat before that.
const SURVEY_MIN_PER_COORDINATE: u64 = 600;
/// In few dimensions and with this budget per coordinate, L-SHADE gets the last two thirds.
const EVOLUTION_MAX_DIMENSION: u64 = 10;
const EVOLUTION_MIN_PER_COORDINATE: u64 = 2000;
/// Evaluations per coordinate after which RACE-CARS has reached the valley of a separable function.
const VALLEY_PER_COORDINATE: u64 = 25;
/// Noisy objectives: up to this budget a Gaussian process averages best.
const NOISY_MODEL_MAX_BUDGET: u64 = 300;
/// In a space with discrete coordinates, the Gaussian process is better than RACE-CARS with this budget or
/// less, and without a budget up to this many evaluations.
const DISCRETE_MODEL_MAX_BUDGET: u64 = 300;

/// The budget, and what it allows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contest {
    pub(super) horizon: u64,
    pub(super) n: u64,
}

impl Contest {
    /// Whether the Gaussian process gets the budget in a continuous space, and why.
    pub(super) fn model_reason(self, is_noisy: bool) -> Option<&'static str> {
        let Contest { horizon, n } = self;
        if n as usize > MAX_DIMENSION {
            return None;
        }
        match is_noisy {
            true if horizon <= NOISY_MODEL_MAX_BUDGET => {
                Some("few evaluations of a noisy objective")
            }
            false if horizon < DESCENT_MIN_PER_COORDINATE * n => {
                Some("too few evaluations for a descent")
            }
            _ => None,
        }
    }

    /// The legs in a space with discrete coordinates.
    pub(super) fn discrete(self, has_budget: bool) -> Vec<Leg> {
        let Contest { horizon, n } = self;
        let model = DISCRETE_MODEL_MAX_BUDGET;
        match has_budget {
            _ if n as usize > MAX_DIMENSION => vec![Leg::new(Role::RaceCars, horizon)],
            true if horizon <= model => vec![Leg::new(Role::GaussianProcess, horizon)],
            true => vec![Leg::new(Role::RaceCars, horizon)],
            // The run may end at any time.
            false => vec![
                Leg::new(Role::GaussianProcess, model),
                Leg::new(Role::RaceCars, horizon.max(2 * model)),
            ],
        }
    }

    /// Whether members compete: not if the shape of the objective says who is best with this budget.
    pub(super) fn is_open(self, shape: Option<Shape>) -> bool {
        let is_descent = |shape: Shape| shape.interacts() && !shape.is_wavy();
        let is_long = self.horizon >= SURVEY_MIN_PER_COORDINATE * self.n;
        self.n as usize <= MAX_DIMENSION && (is_long || shape.is_none_or(is_descent))
    }

    /// Whether there is time for heats.
    pub(super) fn has_heats(self) -> bool {
        self.horizon >= HEATS_MIN_PER_COORDINATE * self.n
    }

    /// The first legs.
    pub(super) fn opening(self, shape: Option<Shape>) -> (Vec<Leg>, String) {
        let Contest { horizon, n } = self;
        let heat = horizon / BUDGET_PER_HEAT;
        match shape {
            Some(shape) if horizon >= SURVEY_MIN_PER_COORDINATE * n => {
                (self.surveyed(shape), shape.to_string())
            }
            _ if self.has_heats() => {
                let roles = [Role::QuasiNewton, Role::RaceCars, Role::CmaEs];
                let legs = (1..).zip(roles).map(|(place, role)| Leg::new(role, place * heat));
                let what = "for a descent, RACE-CARS and CMA-ES";
                (legs.collect(), format!("heats of {heat} evaluations {what}"))
            }
            _ => {
                let is_small = n as usize <= QUADRATIC_MAX_DIMENSION;
                let role = if is_small { Role::Quadratic } else { Role::QuasiNewton };
                let reason = "few evaluations per coordinate: a descent from the centre";
                (vec![Leg::handing_over(role, horizon)], reason.to_string())
            }
        }
    }

    /// The first legs of a long run: a descent, and then who is fit for the shape.
    fn surveyed(self, shape: Shape) -> Vec<Leg> {
        let Contest { horizon, n } = self;
        let end = self.end();
        if shape.interacts() {
            return vec![
                Leg::handing_over(Role::QuasiNewton, horizon / BUDGET_PER_DESCENT),
                Leg::new(Role::CmaEs, self.evolution().unwrap_or(end)),
            ];
        }
        let descent = horizon / BUDGET_PER_SEPARABLE_DESCENT;
        let mut legs = vec![Leg::handing_over(Role::QuasiNewton, descent)];
        if shape.is_wavy() {
            legs.push(Leg::new(Role::RaceCars, end));
        } else {
            legs.extend([
                Leg::new(Role::RaceCars, descent + VALLEY_PER_COORDINATE * n),
                Leg::new(Role::Polish, descent + (VALLEY_PER_COORDINATE + 4) * n),
                Leg::new(Role::CmaEs, end),
            ]);
        }
        legs
    }

    /// The number of evaluations without an improvement after which a leader has stalled.
    pub(super) fn patience(self) -> u64 {
        (self.horizon / BUDGET_PER_STALL).max(STALL_PER_COORDINATE * self.n)
    }

    /// The points asked after which L-SHADE begins, if it has a part.
    pub(super) fn evolution(self) -> Option<u64> {
        let Contest { horizon, n } = self;
        let has_part = n <= EVOLUTION_MAX_DIMENSION && horizon >= EVOLUTION_MIN_PER_COORDINATE * n;
        has_part.then_some(horizon / 3)
    }

    /// The points asked after which only polishing is left.
    pub(super) fn end(self) -> u64 {
        let Contest { horizon, n } = self;
        horizon - (4 * n).max(horizon / 100 * 6).min(horizon / 10)
    }
}
