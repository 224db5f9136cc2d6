//! `auto`: a portfolio that goes by evidence. The default algorithm.
//!
//! If the budget allows, a few dozen evaluations tell whether coordinates interact and whether the objective is
//! multimodal (`survey`). Up to 100 coordinates, the search then begins with a descent from the centre, or from
//! the points that the user gave, and continues with the member that is fit for the shape, until that
//! stalls and another one takes over (`contest` has the numbers, `leaders` who is next). In more dimensions, and for noisy objectives, the shape and the
//! budget determine which algorithm gets which part of it (`plan`): RACE-CARS if coordinates can be optimized
//! one by one, CMA-ES if they have to change together. At the end, parabolas along the coordinates refine the
//! best point (`polish`). How each member begins is in `members`.
//!
//! In spaces with discrete coordinates, a Gaussian process gets a small budget. A larger one goes to evolution if
//! all coordinates are choices among a few values. If some coordinates are real, RACE-CARS and CMA-ES are followed by
//! `auto` on these, while the others are held (`held`); otherwise RACE-CARS has the budget.

mod contest;
mod leaders;
mod members;
mod plan;
mod survey;

use super::held::Part;
use super::referee::Referee;
use super::{Origin, PortfolioSearch, Rule, Team};
use crate::error::Result;
use crate::optimizers::saved::ID_HEADROOM;
use crate::optimizers::settings::{choices, settings};
use crate::optimizers::shell::{Setup, Tools};
use crate::random::Random;
use crate::space::Space;
use contest::Contest;
use plan::{Leg, Role};
use serde::{Deserialize, Serialize};
use survey::{Shape, Survey};

settings! {
    /// Settings of `auto`.
    #[derive(Copy)]
    pub struct Auto {
        /// Whether the objective is noisy: detect, yes or no. If it is, points that may look better only
        /// by chance are re-evaluated, and the best value is a mean. `detect`, the default, evaluates the
        /// first point twice, from a budget of 20 on.
        noise: Noise,
    }
}

/// Whether the objective is noisy.
///
/// ```
/// use racecars::{Algorithm, Auto, Noise, Space, minimize};
///
/// let space = Space::cube(5, -5.0, 5.0)?;
/// let mut calls = 0;
/// let noisy = Algorithm::Auto(Auto::default().noise(Noise::Yes));
/// let solution = minimize(&space).algorithm(noisy).budget(500).run(|x| {
///     calls += 1;
///     let noise = f64::from(calls * 7919 % 1000) / 1000.0 - 0.5;
///     x.coordinates().iter().map(|x| x * x).sum::<f64>() + noise
/// })?;
/// assert!(solution.portfolio().is_some_and(|portfolio| portfolio.noisy));
/// assert!(solution.value().is_some_and(|mean| mean < 1.0));
/// # Ok::<(), racecars::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Noise {
    /// Detect noise by evaluating the first point twice. With a budget of less than 20, or just enough for
    /// every point of a discrete space, the objective counts as deterministic.
    #[default]
    Detect,
    /// Noisy.
    Yes,
    /// Deterministic.
    No,
}

choices!(Noise { Detect => "detect", Yes => "yes", No => "no" });

/// Other candidates that may be told before a probe that is out counts as lost.
const MAX_NOISE_CHECK_WAIT: u64 = 30;

/// The rule of `auto`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct AutoRule {
    seed: u64,
    noise: Noise,
    budget: Option<u64>,
    /// The number of evaluations planned for: the budget, or without one a number that doubles.
    horizon: u64,
    survey: Option<Survey>,
    /// The number of outcomes told before the survey began.
    surveyed_from: u64,
    /// Empty until all probes were asked. In a contest, the next leg is added when the last one ends.
    legs: Vec<Leg>,
    /// The index of the current leg.
    leg: usize,
    is_contest: bool,
    /// Whether evaluations measure constraints, or have values at infeasible points; and whether the legs are
    /// for that.
    has_constraints: bool,
    is_constrained: bool,
    /// Whether CMA-ES learns the full covariance matrix.
    is_full: bool,
    /// The latest member of each role.
    members: Vec<(Role, usize)>,
    /// The restarts of the current member when its leg began.
    restarts: u64,
    /// The best value, and the number of points asked when it last improved or a leg began.
    best: Option<f64>,
    own_best: Option<f64>,
    improved_at: u64,
    /// The roles that have led since the best value last improved.
    tired: Vec<Role>,
    /// Whether CMA-ES and a descent take turns, which is no change of the leader.
    takes_turns: bool,
    /// The role whose descents from random points have looked for other valleys since CMA-ES converged.
    looked: Option<Role>,
    /// Whether a scan has begun since the horizon was set.
    has_scanned: bool,
}

impl AutoRule {
    pub(crate) fn portfolio(
        settings: &Auto,
        setup: Setup<'_>,
        random: &mut Random,
    ) -> Result<PortfolioSearch<AutoRule>> {
        let Setup { space, budget, seed } = setup;
        let n = space.dimension();
        let horizon = plan::horizon(budget, n, !space.is_real_box());
        let noise = settings.noise;
        let coordinates = match space.is_real_box() {
            false => plan::checks_noise(budget, horizon, space.cardinality()).then_some(0),
            // Without a budget, a descent comes first.
            true if budget.is_none() && n <= contest::MAX_DIMENSION => Some(0),
            true => plan::surveyed_coordinates(horizon, n),
        };
        let survey = coordinates
            // Without coordinates, it only looks for noise.
            .filter(|&coordinates| coordinates > 0 || noise != Noise::No)
            .map(|coordinates| Survey::new(coordinates, random.bits()));
        let rule = AutoRule { seed, noise, budget, horizon, survey, ..AutoRule::default() };
        let keeps = if space.is_real_box() { contest::keeps(n) } else { 0 };
        Ok(PortfolioSearch::new(rule, budget).keeping(keeps))
    }

    /// Whether the survey is complete, or has waited long enough for lost candidates.
    fn is_surveyed(&self, told: u64) -> bool {
        let Some(survey) = &self.survey else { return true };
        let lost_after = 2 * survey.len() as u64 + MAX_NOISE_CHECK_WAIT.min(self.horizon / 4);
        survey.is_complete() || told >= self.surveyed_from + lost_after
    }

    fn contest(&self, tools: &Tools<'_, Origin>) -> Contest {
        let (n, out) = (tools.space.dimension() as u64, tools.ledger.out() as u64 + 1);
        Contest { horizon: self.horizon, n, out, has_budget: self.budget.is_some() }
    }

    /// Whether a member may begin while probes are out, so that nobody waits for them: if all were asked,
    /// and a descent may be wanted. The decision is made again with their values.
    fn may_begin(&self, space: &Space) -> bool {
        self.survey.as_ref().is_none_or(Survey::is_asked)
            && self.noise != Noise::Yes
            && space.is_real_box()
            && space.dimension() <= contest::MAX_DIMENSION
    }

    /// Begins a survey that the horizon allows now. Whether it does.
    fn begin_survey(&mut self, team: &mut Team, tools: &mut Tools<'_, Origin>) -> bool {
        let has_shape = self.survey.as_ref().is_some_and(|survey| !survey.is_noise_check());
        // The horizon will be doubled. Where CMA-ES has begun, a survey is less urgent.
        let has_begun = self.place_of(Role::CmaEs).is_some();
        let horizon = if has_begun { self.horizon } else { 2 * self.horizon };
        let coordinates = plan::surveyed_coordinates(horizon, tools.space.dimension());
        let Some(coordinates) = coordinates.filter(|&coordinates| coordinates > 0 && !has_shape)
        else {
            return false;
        };
        let asked = tools.ledger.next_id();
        if self.is_noisy() == Some(true) {
            // The new survey need not find it again.
            self.noise = Noise::Yes;
        }
        let survey = Survey::new(coordinates, tools.random.bits());
        team.pause(
            asked,
            format!("evaluations {} to {}: survey", asked + 1, asked + survey.len() as u64),
        );
        self.survey = Some(survey);
        self.surveyed_from = tools.ledger.told();
        (self.legs, self.leg) = (Vec::new(), 0);
        true
    }

    /// Whether a plan that was made without a budget is over, so that one for twice the horizon is due.
    fn outlasts_plan(&self, asked: u64) -> bool {
        let is_over = asked >= self.horizon && self.horizon < plan::MAX_HORIZON;
        let is_last = matches!(self.legs[self.leg].role, Role::Polish | Role::Reals);
        self.budget.is_none() && !self.is_contest && is_last && is_over
    }

    /// Makes the plan from the findings of the survey.
    fn decide(&mut self, team: &mut Team, tools: &mut Tools<'_, Origin>) -> Result<()> {
        let (space, asked) = (tools.space, tools.ledger.next_id());
        let n = space.dimension();
        if self.budget.is_none() && self.is_noisy() == Some(true) && n <= contest::MAX_DIMENSION {
            self.horizon = self.horizon.max(plan::long_horizon(n as u64));
            if space.is_real_box() && self.begin_survey(team, tools) {
                return Ok(());
            }
        }
        if self.budget.is_none()
            && space.is_real_box()
            && self.horizon <= plan::horizon_with_model(n as u64)
        {
            // The number of candidates out may be known only now.
            let first = self.contest(tools).first_horizon();
            self.horizon = first.unwrap_or_else(|| plan::horizon(None, n, false));
        }
        let horizon = self.horizon;
        let was_full = self.is_full;
        (self.is_contest, self.is_full) = (false, false);
        self.is_constrained =
            self.has_constraints && self.is_noisy() != Some(true) && takes_constraints(space);
        self.tired.clear();
        self.takes_turns = false;
        let contest = self.contest(tools);
        let shape = self.survey.as_ref().and_then(Survey::shape).filter(|_| !team.is_provisional);
        let noise = self.survey.as_ref().and_then(Survey::noise);
        // What is still not known by now counts as deterministic: the repeated point failed or was lost.
        let is_noisy = self.is_noisy() == Some(true);
        let is_discrete = !space.is_real_box();
        let model = contest.model_reason(is_discrete, is_noisy, space.cardinality());
        let (mut legs, reason) = if self.is_constrained {
            (contest.constrained(), "evaluations measure constraints".to_string())
        } else if let Some(reason) = model {
            (vec![Leg::new(Role::GaussianProcess, horizon)], reason.to_string())
        } else if space.has_orders_or_selections() {
            let reason = format!("there are orders or selections{}", plan::noise(is_noisy));
            (contest.discrete(Role::LocalSearch, self.budget.is_some()), reason)
        } else if is_discrete {
            let has_choices = contest::is_of_choices(space) && !space.has_rules();
            let role = match has_choices && !is_noisy {
                true => Role::Evolution,
                // Along the boundary of constraints coordinates move together.
                false if space.is_continuous() && n <= contest::MAX_DIMENSION => Role::LShade,
                false => Role::RaceCars,
            };
            let is_mixed = contest::is_mixed(space) && !space.has_rules();
            // A space that the budget exhausts is left to RACE-CARS.
            let is_grid = contest::is_grid(space)
                && !space.has_rules()
                && space.cardinality().is_none_or(|points| points > horizon);
            let what = match (has_choices, is_mixed, space.has_rules()) {
                (true, ..) => "all coordinates are choices",
                (_, true, _) => "some coordinates are real, the others are discrete",
                (_, _, true) => "the space has conditions or constraints",
                _ => "all coordinates are discrete",
            };
            let reason = format!("{what}{}", plan::noise(is_noisy));
            if (is_mixed || is_grid) && !is_noisy {
                self.is_full = n <= contest::MAX_DIMENSION || plan::learns_matrix(horizon, n);
                let middle = match 2 * Part::Ordered.dimension(space) >= n {
                    true => Role::CmaEs,
                    false => Role::Evolution,
                };
                let reals = space.continuous_count();
                (contest.mixed(reals, middle, self.budget.is_some()), reason)
            } else {
                (contest.discrete(role, self.budget.is_some() || is_noisy), reason)
            }
        } else if is_noisy || !contest.is_open() {
            let plan = plan::plan(shape, is_noisy, horizon, n);
            if plan.is_full && !was_full {
                self.members.retain(|member| member.0 != Role::CmaEs);
            }
            self.is_full = plan.is_full;
            (plan.legs, plan.reason)
        } else {
            self.is_contest = true;
            // A separable valley needs no more than one variance per coordinate.
            let is_separable = |shape: Shape| !shape.interacts() && !shape.is_wavy();
            self.is_full = !shape.is_some_and(is_separable)
                || plan::learns_matrix(horizon, n)
                || self.budget.is_none();
            if self.budget.is_none() && shape.is_none_or(Shape::is_wavy) {
                // CMA-ES began near the end of a descent, which may be in any valley.
                self.members.retain(|member| member.0 != Role::CmaEs);
            }
            contest.opening(shape, asked)
        };
        // Legs that would already be over are dropped.
        legs.retain(|leg| leg.until > asked);
        if legs.is_empty() {
            legs.push(Leg::new(Role::RaceCars, horizon.max(asked + 1)));
        }
        let is_by_model = legs[0].role == Role::GaussianProcess;
        team.referee = is_noisy.then(|| Referee::new(noise, self.budget, is_by_model));
        let until = if team.is_provisional { "until the survey is complete: " } else { "" };
        let planned = match self.budget {
            None => format!(" (planned for {horizon} evaluations)"),
            Some(_) => String::new(),
        };
        team.note(asked, format!("{until}{reason}{planned}"));
        debug_assert!(legs.is_sorted_by(|a, b| a.until <= b.until), "legs are in order");
        (self.legs, self.leg) = (legs, 0);
        self.begin_leg(team, tools)
    }

    fn place_of(&self, role: Role) -> Option<usize> {
        self.members.iter().find(|member| member.0 == role).map(|member| member.1)
    }
}

/// Whether constraints that evaluations measure are used in this space.
fn takes_constraints(space: &Space) -> bool {
    space.is_real_box() && space.dimension() <= contest::MAX_DIMENSION
}

impl Rule for AutoRule {
    fn advance(&mut self, team: &mut Team, tools: &mut Tools<'_, Origin>) -> Result<()> {
        if self.has_constraints && !self.is_constrained && takes_constraints(tools.space) {
            self.survey.iter_mut().for_each(Survey::shorten);
            if self.is_surveyed(tools.ledger.told()) && self.is_noisy() != Some(true) {
                team.is_provisional = false;
                return self.decide(team, tools);
            }
        }
        if self.legs.is_empty() || team.is_provisional {
            let is_surveyed = self.is_surveyed(tools.ledger.told());
            if is_surveyed || (self.legs.is_empty() && self.may_begin(tools.space)) {
                team.is_provisional = !is_surveyed;
                return self.decide(team, tools);
            }
            if self.legs.is_empty() {
                return Ok(());
            }
        }
        let asked = tools.ledger.next_id();
        // Each leg asks at least one point, so that this ends.
        while let Some(reason) = self.end_of_leg(team, tools) {
            while self.legs.get(self.leg + 1).is_some_and(|next| next.until <= asked) {
                self.legs.remove(self.leg + 1);
            }
            if self.leg + 1 == self.legs.len() {
                if self.outlasts_plan(asked) {
                    self.horizon *= 2;
                    return self.decide(team, tools);
                }
                let is_over = asked >= self.horizon && self.horizon < plan::MAX_HORIZON;
                let mut next = None;
                if self.is_contest && self.budget.is_none() && is_over {
                    self.horizon = plan::next_horizon(self.horizon, tools.space.dimension() as u64);
                    if self.begin_survey(team, tools) {
                        return Ok(());
                    }
                    self.has_scanned = false;
                    next = self.continued(team, tools);
                    self.looked = self.looked.filter(|&role| role == self.legs[self.leg].role);
                }
                if self.is_contest && next.is_none() {
                    next = self.next_leg(team, tools);
                }
                let Some(next) = next.filter(|next| next.until > asked) else { break };
                self.legs.push(next);
            }
            if !reason.is_empty() {
                team.note(asked, reason);
            }
            self.leg += 1;
            self.begin_leg(team, tools)?;
        }
        Ok(())
    }

    fn probe(&mut self, space: &Space, point: &mut [f64]) -> Option<usize> {
        self.survey.as_mut()?.next(space, point)
    }

    fn learn_probe(&mut self, number: usize, value: Option<f64>) {
        if let Some(survey) = &mut self.survey {
            survey.tell(number, value);
        }
    }

    fn learn_constraints(&mut self) {
        self.has_constraints = true;
    }

    fn is_noisy(&self) -> Option<bool> {
        match (self.noise, &self.survey) {
            (Noise::Yes, _) => Some(true),
            (Noise::No, _) | (Noise::Detect, None) => Some(false),
            (Noise::Detect, Some(survey)) => match survey.repeated() {
                Some(_) => Some(survey.noise().is_some()),
                None if self.legs.is_empty() => None,
                None => Some(false),
            },
        }
    }

    fn is_sound(&self, team: &Team, space: &Space) -> bool {
        let n = space.dimension();
        let is_member = |&(_, place): &(Role, usize)| place < team.members.len();
        let takes_discrete = |role: Role| match role {
            Role::RaceCars | Role::GaussianProcess | Role::Evolution => true,
            Role::LocalSearch | Role::LShade => true,
            Role::CmaEs => !space.has_rules(),
            Role::Reals => space.continuous_count() > 0 && !space.has_rules(),
            _ => false,
        };
        self.survey.as_ref().is_none_or(Survey::is_sound)
            && self.leg < self.legs.len().max(1)
            && (1..ID_HEADROOM).contains(&self.horizon)
            && self.improved_at < ID_HEADROOM
            && self.surveyed_from < ID_HEADROOM
            && self.restarts < ID_HEADROOM
            && self.best.is_none_or(f64::is_finite)
            && self.own_best.is_none_or(f64::is_finite)
            && self.members.iter().all(is_member)
            && self.tired.len() <= 16
            && (self.legs.is_empty() || self.place_of(self.legs[self.leg].role).is_some())
            && team.has_active_member() != self.legs.is_empty()
            && !(self.is_contest && (n > contest::MAX_DIMENSION || !space.is_real_box()))
            && (!self.is_constrained || takes_constraints(space))
            && !(self.is_full && n > plan::FULL_MATRIX_MAX_DIMENSION)
            && (space.is_real_box() || self.legs.iter().all(|leg| takes_discrete(leg.role)))
    }
}

#[cfg(test)]
mod tests;
