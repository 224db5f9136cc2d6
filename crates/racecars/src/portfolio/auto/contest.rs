//! Which members run for how long where the dimension allows models of curvature: the rule of `auto` up
//! to [`MAX_DIMENSION`] coordinates.
//!
//! A run begins with a descent: by quadratic models if evaluations are few, else by quasi-Newton steps. If there are
//! enough for a full quadratic model but not for a survey, the descent is short, and CMA-ES begins with a model of all
//! its values; so does every run without a budget in few dimensions. A descent that converges, stalls or has had its part hands over to the member that is fit for the shape of the
//! objective: RACE-CARS if coordinates do not interact, CMA-ES if they do. If there was no survey, or it is unclear,
//! both have a heat, and the one with the best value continues. While CMA-ES is behind a descent that was cut off, the
//! two take turns. A member that stalls hands over to one that has not led yet, else to the next best. When CMA-ES has
//! converged, descents from random points look for other valleys; after RACE-CARS on a wavy objective a scan along the
//! coordinates looks for those in the wrong one (`scan`), and after CMA-ES if the survey saw no waves. With large budgets in few dimensions, L-SHADE is last.
//!
//! docs/auto.md has the measurements behind each number, and the problems it was chosen on.

use super::super::held::Part;
use super::super::scan::ScanSearch;
use super::plan::{self, Leg, Role};
use super::survey::Shape;
use crate::optimizers::cma_es::surrogate_capacity;
use crate::space::{Axis, Space};

/// With constraints that evaluations measure: the least budget per coordinate of which L-SHADE has a part, and the
/// share of the budget at which that ends.
const CONSTRAINED_EVOLUTION_PER_COORDINATE: u64 = 300;
const CONSTRAINED_EVOLUTION_END: f64 = 0.85;
/// The greatest dimension for this rule. Above it, `plan` divides the budget by a survey.
pub(super) const MAX_DIMENSION: usize = 100;
/// Descents use quadratic models up to this dimension or budget per coordinate, and quasi-Newton steps above:
/// these need more evaluations to begin with, and fewer after that.
const QUADRATIC_MAX_DIMENSION: u64 = 12;
const QUADRATIC_MAX_PER_COORDINATE: u64 = 15;
/// Up to this dimension, quadratic models are complete with a few values, and better in long runs, too.
const FULL_QUADRATIC_MAX_DIMENSION: u64 = 2;
/// Above this dimension, steps of quadratic models take milliseconds. Up to it they are used if at least as many candidates are
/// out as there are coordinates, of which quasi-Newton steps make use of n only; and to look for other valleys.
const CHEAP_QUADRATIC_MAX_DIMENSION: u64 = 50;
/// From this budget per coordinate on, and from this budget, a descent is not all.
const LONG_PER_COORDINATE: u64 = 45;
const LONG_MIN: u64 = 150;
/// From this budget on, divided by the coefficients of a full quadratic, CMA-ES begins after a short descent with a model
/// of all values: up to this budget per coordinate, unless there is time for a survey.
const MODEL_PER_COEFFICIENT: f64 = 4.5;
const MODEL_MAX_PER_COORDINATE: u64 = 80;
/// The evaluations per coordinate of that descent; and without a budget, where CMA-ES always begins in this way in few
/// dimensions, but the run may end at any time.
const MODEL_DESCENT_PER_COORDINATE: u64 = 5;
const OPEN_MODEL_DESCENT_PER_COORDINATE: u64 = 7;
/// With more candidates than this out, several members need this many rounds: the budget divided by the
/// candidates out. With fewer rounds, one member learns more.
const FEW_OUT: u64 = 3;
const MIN_ROUNDS: u64 = 150;
/// CMA-ES learns its covariance matrix within this many evaluations times n^2, with and without a surrogate.
/// With a smaller budget, a descent on a smooth function continues for as long as it makes progress.
const MATRIX_PER_SQUARED_DIMENSION: [u64; 2] = [15, 40];
/// Up to this dimension and budget, the surrogate of CMA-ES is worth its milliseconds.
const SURROGATE_MAX: [(u64, u64); 2] = [(10, 20_000), (24, 3_000)];
/// The part of the budget that a descent takes at most before CMA-ES with a surrogate, and without.
const BUDGET_PER_DESCENT: [u64; 2] = [10, 5];
/// The same if the objective is clearly wavy, and if coordinates do not interact and no profile has a crest: then parabolas
/// along the coordinates are the better descent.
const BUDGET_PER_WAVY_DESCENT: u64 = 10;
const BUDGET_PER_SEPARABLE_DESCENT: u64 = 20;
/// While CMA-ES is behind a descent that was cut off, the descent has one evaluation for this many of CMA-ES, in
/// turns of at least this many evaluations per coordinate.
const CMA_ES_PER_DESCENT: u64 = 2;
const TURN_PER_COORDINATE: u64 = 20;
/// When CMA-ES has converged, descents from random points have this part of the budget to find another valley.
const BUDGET_PER_LOOK: u64 = 10;
/// While the valleys they find are as good as that of CMA-ES, they end after as many evaluations without an improvement as
/// a leader that has stalled, but at most this many per coordinate: after that, restarts and L-SHADE find more.
const LEVEL_LOOK_MAX_PER_COORDINATE: u64 = 600;
/// The greatest part of the budget that a scan along the coordinates may take, and the evaluations per coordinate of the
/// polish after it.
const BUDGET_PER_SCAN: u64 = 6;
const POLISH_PER_COORDINATE: u64 = 10;
/// The part of the budget that a heat takes.
const BUDGET_PER_HEAT: u64 = 10;
/// A leader has stalled after this part of the budget, but at least [`STALL_PER_COORDINATE`] evaluations per
/// coordinate, without an improvement.
const BUDGET_PER_STALL: u64 = 5;
const STALL_PER_COORDINATE: u64 = 20;
/// In few dimensions and with this budget, divided by n^2, L-SHADE takes over from a CMA-ES that has stalled
/// after this part of the budget.
const EVOLUTION_MAX_DIMENSION: u64 = 10;
const EVOLUTION_PER_SQUARED_DIMENSION: u64 = 300;
const BUDGET_PER_EVOLUTION: u64 = 5;
/// Evaluations per coordinate after which RACE-CARS has reached the valley of a separable function.
const VALLEY_PER_COORDINATE: u64 = 25;
/// Noisy objectives: up to this budget a Gaussian process averages best.
const NOISY_MODEL_MAX_BUDGET: u64 = 300;
/// In a space with discrete coordinates, the Gaussian process is better than RACE-CARS with this budget or
/// less, and without a budget up to this many evaluations.
pub(super) const DISCRETE_MODEL_MAX_BUDGET: u64 = 300;
/// The same where there are orders or selections, against local search.
const MOVES_MODEL_MAX_BUDGET: u64 = 100;

/// In a mixed space, the percentages of the budget after which RACE-CARS and CMA-ES end. The rest is for the real
/// coordinates. The second numbers are for spaces in which at least three quarters of the coordinates are real.
const MIXED_PERCENT: [[u64; 2]; 2] = [[33, 85], [20, 40]];
/// The same of RACE-CARS with less than this budget per coordinate, which is too small for CMA-ES.
const SMALL_MIXED_PERCENT: [u64; 2] = [85, 20];
const MIXED_CMA_ES_PER_COORDINATE: u64 = 60;

/// Ordered coordinates with more values than this are no choices: RACE-CARS, which narrows ranges, is better.
const CHOICES_MAX_VALUES: f64 = 6.0;

/// The number of evaluations with which CMA-ES begins in this dimension: those that its surrogate stores.
pub(super) fn keeps(dimension: usize) -> usize {
    let has_surrogate = SURROGATE_MAX.iter().any(|&(most, _)| dimension as u64 <= most);
    if has_surrogate { surrogate_capacity(dimension) } else { 0 }
}

/// Whether a full quadratic model takes few evaluations.
pub(super) fn is_of_few_dimensions(n: u64) -> bool {
    (2..=QUADRATIC_MAX_DIMENSION).contains(&n)
}

/// Whether all coordinates are choices among a few values.
pub(super) fn is_of_choices(space: &Space) -> bool {
    space.axes().all(|(_, axis)| match axis {
        Axis::Unordered { .. } => true,
        Axis::Ordered { last, .. } => last < CHOICES_MAX_VALUES,
        Axis::Continuous { .. } => false,
    })
}

/// Whether some coordinates are real and others are not.
pub(super) fn is_mixed(space: &Space) -> bool {
    (1..space.dimension()).contains(&space.continuous_count())
}

/// Whether all coordinates are discrete, and at least half of them are ordered or bits, some with many values: CMA-ES
/// takes them as real ones.
pub(super) fn is_grid(space: &Space) -> bool {
    space.is_discrete()
        && !is_of_choices(space)
        && 2 * Part::Ordered.dimension(space) >= space.dimension()
}

/// The budget, and what it allows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contest {
    pub(super) horizon: u64,
    pub(super) n: u64,
    /// The number of candidates out at a time.
    pub(super) out: u64,
    /// Whether the horizon is the budget, and is not doubled.
    pub(super) has_budget: bool,
}

impl Contest {
    /// The legs where evaluations measure constraints: descents and restarts, and if the budget is enough, L-SHADE
    /// once they have stalled, and a descent from its best point.
    pub(super) fn constrained(&self) -> Vec<Leg> {
        let Contest { horizon, n, has_budget, .. } = *self;
        if !has_budget || horizon < CONSTRAINED_EVOLUTION_PER_COORDINATE * n {
            return vec![Leg::new(Role::Sqp, horizon)];
        }
        let last = (CONSTRAINED_EVOLUTION_END * horizon as f64) as u64;
        vec![
            Leg::handing_over(Role::Sqp, last),
            Leg::new(Role::LShade, last),
            Leg::new(Role::Sqp, horizon),
        ]
    }

    /// Whether the Gaussian process gets the budget, and why. `points` is the number of points of a discrete
    /// space.
    pub(super) fn model_reason(
        self,
        is_discrete: bool,
        is_noisy: bool,
        points: Option<u64>,
    ) -> Option<&'static str> {
        let Contest { horizon, n, .. } = self;
        if n as usize > MAX_DIMENSION {
            return None;
        }
        // In a small space the model chooses which points to re-evaluate when all were evaluated.
        let noisy = horizon.min(points.unwrap_or(u64::MAX));
        match (is_discrete, is_noisy) {
            (_, true) if noisy <= NOISY_MODEL_MAX_BUDGET => {
                Some("few evaluations of a noisy objective")
            }
            _ => None,
        }
    }

    /// The legs in a space with discrete coordinates, by the role that gets large budgets.
    pub(super) fn discrete(self, large: Role, has_budget: bool) -> Vec<Leg> {
        let Contest { horizon, n, .. } = self;
        let model = match large {
            Role::LocalSearch => MOVES_MODEL_MAX_BUDGET,
            _ => DISCRETE_MODEL_MAX_BUDGET,
        };
        match has_budget {
            _ if n as usize > MAX_DIMENSION => vec![Leg::new(large, horizon)],
            true if horizon <= model => vec![Leg::new(Role::GaussianProcess, horizon)],
            true => vec![Leg::new(large, horizon)],
            // The run may end at any time.
            false => vec![
                Leg::new(Role::GaussianProcess, model),
                Leg::new(large, horizon.max(2 * model)),
            ],
        }
    }

    /// The legs in a mixed space with this many real coordinates. `middle` is the member between RACE-CARS and the
    /// search of these; if there are none, it continues to the end.
    pub(super) fn mixed(self, reals: usize, middle: Role, has_budget: bool) -> Vec<Leg> {
        let Contest { horizon, n, .. } = self;
        let (has_model, model) = (n as usize <= MAX_DIMENSION, DISCRETE_MODEL_MAX_BUDGET);
        if has_budget && has_model && horizon <= model {
            return vec![Leg::new(Role::GaussianProcess, horizon)];
        }
        let until = |percent: u64| (horizon as f64 * percent as f64 / 100.0) as u64;
        let kind = usize::from(4 * reals as u64 >= 3 * n);
        let [descent, end] = MIXED_PERCENT[kind];
        let mut legs = match horizon >= MIXED_CMA_ES_PER_COORDINATE.saturating_mul(n) {
            true => vec![Leg::new(Role::RaceCars, until(descent)), Leg::new(middle, until(end))],
            false => vec![Leg::new(Role::RaceCars, until(SMALL_MIXED_PERCENT[kind]))],
        };
        match (reals, legs.last_mut()) {
            (0, Some(last)) => last.until = horizon,
            _ => legs.push(Leg::new(Role::Reals, horizon)),
        }
        // The run may end at any time.
        if has_model && !has_budget && model < legs[0].until {
            legs.insert(0, Leg::new(Role::GaussianProcess, model));
        }
        legs
    }

    /// Whether CMA-ES begins early, with a model of all values.
    pub(super) fn models_all(self) -> bool {
        let Contest { horizon, n, has_budget, .. } = self;
        if !has_budget {
            return self.first_horizon() == Some(horizon);
        }
        let coefficients = ((n + 1) * (n + 2) / 2) as f64;
        let is_enough = horizon as f64 >= MODEL_PER_COEFFICIENT * coefficients;
        let is_surveyed = plan::surveyed_coordinates(horizon, n as usize) > Some(0);
        is_of_few_dimensions(n)
            && is_enough
            && horizon <= MODEL_MAX_PER_COORDINATE * n
            && !is_surveyed
            && self.has_rounds()
    }

    /// Without a budget, the first horizon where CMA-ES begins early.
    pub(super) fn first_horizon(self) -> Option<u64> {
        let is_possible = is_of_few_dimensions(self.n) && self.out <= FEW_OUT;
        is_possible.then(|| plan::horizon_with_model(self.n))
    }

    /// Whether members compete.
    pub(super) fn is_open(self) -> bool {
        self.n as usize <= MAX_DIMENSION
    }

    /// Whether there is time for more than a descent.
    pub(super) fn is_long(self) -> bool {
        self.horizon >= (LONG_PER_COORDINATE * self.n).max(LONG_MIN) && self.has_rounds()
    }

    /// Whether the candidates that are out come back often enough for several members to learn.
    fn has_rounds(self) -> bool {
        self.out <= FEW_OUT || self.horizon / self.out >= MIN_ROUNDS
    }

    /// The descent of a long run.
    pub(super) fn descent(self) -> Role {
        let is_wide = self.out >= self.n && self.out > FEW_OUT;
        let is_quadratic = is_wide && self.n <= CHEAP_QUADRATIC_MAX_DIMENSION;
        match is_quadratic || self.n <= FULL_QUADRATIC_MAX_DIMENSION {
            true => Role::Quadratic,
            false => Role::QuasiNewton,
        }
    }

    /// The evaluations of a turn of the descent beside CMA-ES, if one is due by the evaluations of both.
    pub(super) fn turn(self, cma_es: u64, descent: u64) -> Option<u64> {
        let due = (cma_es / CMA_ES_PER_DESCENT).saturating_sub(descent);
        (due >= TURN_PER_COORDINATE * self.n).then_some(due)
    }

    /// The descents that look for other valleys when CMA-ES has converged: quadratic models where their steps are
    /// cheap.
    pub(super) fn look(self) -> Role {
        match self.n <= CHEAP_QUADRATIC_MAX_DIMENSION {
            true => Role::Quadratic,
            false => Role::QuasiNewton,
        }
    }

    /// The number of evaluations without an improvement after which these descents end. Where they find valleys as
    /// good as that of CMA-ES, which takes far longer for each, they are the better search.
    pub(super) fn patience_of_look(self, is_level: bool) -> u64 {
        match is_level {
            true => self.patience().min(LEVEL_LOOK_MAX_PER_COORDINATE * self.n),
            false => (self.horizon / BUDGET_PER_LOOK).max(STALL_PER_COORDINATE * self.n),
        }
    }

    /// The number of evaluations of a scan along the coordinates, if there are enough.
    pub(super) fn scan(self) -> Option<u64> {
        let cost = ScanSearch::cost() * self.n;
        (cost <= self.horizon / BUDGET_PER_SCAN).then_some(cost)
    }

    /// The number of evaluations of the polish after a scan.
    pub(super) fn polish_of_scan(self) -> u64 {
        POLISH_PER_COORDINATE * self.n
    }

    /// The number of evaluations of a heat.
    pub(super) fn heat(self) -> u64 {
        self.horizon / BUDGET_PER_HEAT
    }

    /// Whether CMA-ES has a surrogate. A run without a budget may be a long one.
    pub(super) fn has_surrogate(self) -> bool {
        let n = self.n;
        let horizon = match self.has_budget {
            true => self.horizon,
            false => self.horizon.max(plan::long_horizon(n)),
        };
        SURROGATE_MAX.iter().any(|&(most, budget)| n <= most && horizon <= budget)
    }

    /// The first legs.
    pub(super) fn opening(self, shape: Option<Shape>, asked: u64) -> (Vec<Leg>, String) {
        let Contest { horizon, n, out, .. } = self;
        let is_wavy = shape.is_some_and(Shape::is_clearly_wavy);
        if self.models_all() {
            let per_coordinate = match self.has_budget {
                true => MODEL_DESCENT_PER_COORDINATE,
                false => OPEN_MODEL_DESCENT_PER_COORDINATE,
            };
            let descent = asked + per_coordinate * n;
            let legs = vec![
                Leg::handing_over(Role::Quadratic, descent),
                Leg::handing_over(Role::CmaEs, horizon),
            ];
            let reason = "too few evaluations for a survey: a short descent, then CMA-ES with a model of all values";
            return (legs, reason.to_string());
        }
        if !self.is_long() && !is_wavy {
            let is_few = horizon < QUADRATIC_MAX_PER_COORDINATE * n;
            // Without a budget, evaluations may take less time than the steps.
            let is_cheap = self.has_budget || n <= CHEAP_QUADRATIC_MAX_DIMENSION;
            let is_quadratic = n <= QUADRATIC_MAX_DIMENSION || is_few && is_cheap;
            let role = if is_quadratic { Role::Quadratic } else { self.descent() };
            let few = match self.has_rounds() {
                true => "per coordinate".to_string(),
                false => format!("for {out} candidates out at a time"),
            };
            let reason = format!("few evaluations {few}: a descent from the centre");
            return (vec![Leg::handing_over(role, horizon)], reason);
        }
        let end = self.end();
        let descent = Leg::handing_over(self.descent(), self.end_of_descent(shape));
        let Some(shape) = shape else {
            let reason = "too few evaluations to tell the objective's shape";
            let cma_es = self.learns_matrix().then(|| Leg::handing_over(Role::CmaEs, end));
            return ([descent].into_iter().chain(cma_es).collect(), reason.to_string());
        };
        let legs = if shape.interacts() {
            vec![descent, Leg::handing_over(Role::CmaEs, end)]
        } else if shape.is_unclear() && self.learns_matrix() {
            let first = (descent.until.max(asked) + self.heat()).min(end);
            let second = (first + self.heat()).min(end);
            vec![descent, Leg::new(Role::RaceCars, first), Leg::new(Role::CmaEs, second)]
        } else if shape.is_wavy() {
            let scan = self.scan().filter(|_| shape.wants_scan());
            let race_cars = Leg::handing_over(Role::RaceCars, end - scan.unwrap_or(0));
            let scan = scan.map(|_| Leg::handing_over(Role::Scan, end));
            [descent, race_cars].into_iter().chain(scan).collect()
        } else {
            let valley = descent.until.max(asked) + VALLEY_PER_COORDINATE * n;
            vec![
                descent,
                Leg::new(Role::RaceCars, valley),
                Leg::new(Role::Polish, valley + 4 * n),
                Leg::handing_over(Role::CmaEs, end),
            ]
        };
        (legs, shape.to_string())
    }

    /// The points asked after which a descent that still makes progress ends.
    pub(super) fn end_of_descent(self, shape: Option<Shape>) -> u64 {
        let horizon = self.horizon;
        match shape {
            Some(shape) if !shape.interacts() && !shape.is_wavy() => {
                horizon / BUDGET_PER_SEPARABLE_DESCENT
            }
            Some(shape) if shape.is_clearly_wavy() => horizon / BUDGET_PER_WAVY_DESCENT,
            _ if self.learns_matrix() => horizon / self.by_surrogate(BUDGET_PER_DESCENT),
            _ => self.end(),
        }
    }

    /// Whether the budget is enough for CMA-ES to learn its matrix. Without a budget it may be, and in few dimensions
    /// CMA-ES has begun already.
    fn learns_matrix(self) -> bool {
        let has_begun = !self.has_budget && self.first_horizon().is_some();
        has_begun
            || self.horizon >= self.by_surrogate(MATRIX_PER_SQUARED_DIMENSION) * self.n * self.n
    }

    /// The first number if CMA-ES has a surrogate, else the second.
    fn by_surrogate(self, [with, without]: [u64; 2]) -> u64 {
        if self.has_surrogate() { with } else { without }
    }

    /// The number of evaluations without an improvement after which a leader has stalled.
    pub(super) fn patience(self) -> u64 {
        (self.horizon / BUDGET_PER_STALL).max(STALL_PER_COORDINATE * self.n)
    }

    /// The points asked after which L-SHADE may begin, if it has a part.
    pub(super) fn evolution(self) -> Option<u64> {
        let Contest { horizon, n, .. } = self;
        let has_part =
            n <= EVOLUTION_MAX_DIMENSION && horizon >= EVOLUTION_PER_SQUARED_DIMENSION * n * n;
        has_part.then_some(horizon / BUDGET_PER_EVOLUTION)
    }

    /// The points asked after which only polishing is left.
    pub(super) fn end(self) -> u64 {
        let Contest { horizon, n, .. } = self;
        if !self.has_budget {
            return horizon;
        }
        horizon - (4 * n).max(horizon / 100 * 6).min(horizon / 10)
    }
}
