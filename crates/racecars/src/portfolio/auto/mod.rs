//! `auto`: a portfolio that goes by evidence. The default algorithm.
//!
//! If the budget allows, a few dozen evaluations tell whether coordinates interact and whether the objective is
//! multimodal (`survey`). Up to 100 coordinates, the search then begins with a descent from the centre, or from
//! the points that the user gave, and continues with the member that is fit for the shape, until that
//! stalls and another one takes over (`contest`). In more dimensions, and for noisy objectives, the shape and the
//! budget determine which algorithm gets which part of it (`plan`): RACE-CARS if coordinates can be optimized
//! one by one, CMA-ES if they have to change together. At the end, parabolas along the coordinates refine the
//! best point (`polish`).
//!
//! In spaces with discrete coordinates, a Gaussian process gets a small budget. A larger one goes to evolution if
//! all coordinates are choices among a few values. If some coordinates are real, RACE-CARS and CMA-ES are followed by
//! `auto` on these, while the others are held (`held`); otherwise RACE-CARS has the budget.

mod contest;
mod plan;
mod survey;

use super::held::{HeldSearch, Part};
use super::polish::PolishSearch;
use super::referee::Referee;
use super::scan::ScanSearch;
use super::{Origin, PortfolioSearch, Rule, Team};
use crate::error::Result;
use crate::optimizers::Algorithm;
use crate::optimizers::cma_es::CmaEs;
use crate::optimizers::gaussian_process::GaussianProcess;
use crate::optimizers::saved::ID_HEADROOM;
use crate::optimizers::settings::{choices, settings};
use crate::optimizers::shell::{Setup, Shell, Tools};
use crate::random::Random;
use crate::space::Space;
use contest::Contest;
use plan::{Leg, Role};
use serde::{Deserialize, Serialize};
use survey::{Shape, Survey};

/// The initial standard deviation of CMA-ES, as a fraction of each axis.
const INITIAL_SIGMA: f64 = 0.2;
/// The same after a short descent, from which it begins with a model.
const SIGMA_AFTER_DESCENT: f64 = 0.05;
/// The bounds of that deviation if CMA-ES continues from the region of RACE-CARS.
const SIGMA_AFTER_RACE_CARS: [f64; 2] = [0.01, 0.05];
/// The initial step of polishing after CMA-ES, as a fraction of each axis.
const POLISH_STEP: f64 = 1e-3;
/// The bounds of that step after RACE-CARS, where it depends on the region.
const POLISH_STEP_AFTER_RACE_CARS: [f64; 2] = [1e-4, 0.037];

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

/// Two valleys are equally good if their values differ by less than this part of what CMA-ES gained on the survey.
const MAX_GAP: f64 = 1e-3;

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

    /// The leg in which the current member continues when the horizon was doubled, unless it has stalled or a scan is due; a
    /// descent only up to its part, and RACE-CARS only if it is ahead.
    fn continued(&self, team: &Team, tools: &Tools<'_, Origin>) -> Option<Leg> {
        let (asked, contest) = (tools.ledger.next_id(), self.contest(tools));
        let Leg { role, hands_over, .. } = self.legs[self.leg];
        let shape = self.survey.as_ref().and_then(Survey::shape);
        let scan = self.scan(team, tools);
        if scan.is_some() {
            return scan;
        }
        let until = match role {
            Role::Quadratic | Role::QuasiNewton if !self.is_looking(role) => {
                contest.end_of_descent(shape)
            }
            _ => contest.end(),
        };
        let has_stalled = asked.saturating_sub(self.improved_at) >= contest.patience();
        // RACE-CARS makes most of its progress early; the others may overtake.
        let is_behind = self.place_of(role).is_some_and(|place| team.is_behind(place));
        let is_left = role == Role::Polish || role == Role::RaceCars && is_behind;
        (until > asked && !has_stalled && !is_left).then_some(Leg { role, until, hands_over })
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

    /// Activates the member of the current leg, and creates it unless it can go on from where it was.
    fn begin_leg(&mut self, team: &mut Team, tools: &mut Tools<'_, Origin>) -> Result<()> {
        let asked = tools.ledger.next_id();
        if let (Role::Scan, Some(cost)) = (self.legs[self.leg].role, self.contest(tools).scan()) {
            // RACE-CARS may have handed over early.
            let until = &mut self.legs[self.leg].until;
            *until = (*until).min(asked + cost);
            self.has_scanned = true;
        }
        let Leg { role, until, hands_over } = self.legs[self.leg];
        // RACE-CARS plans with its budget, and a polish with the step, so that they begin anew.
        // What is held is that of the best point now.
        let goes_on = match role {
            Role::RaceCars | Role::Polish | Role::Scan | Role::Reals => None,
            role => self.place_of(role).filter(|&place| {
                let name = team.member(place).name();
                name != HeldSearch::ORDERED
            }),
        };
        let place = match goes_on {
            Some(place) => place,
            None => {
                let place = self.create(role, until.saturating_sub(asked).max(1), team, tools)?;
                self.members.retain(|member| member.0 != role);
                self.members.push((role, place));
                place
            }
        };
        if goes_on.is_some() && role == Role::Sqp {
            // A new descent, from the best point of the others.
            team.tell_best(place)?;
        }
        self.restarts = team.member(place).restarts();
        (self.best, self.own_best) = (team.best.value(), team.own_best(place));
        self.takes_turns &= matches!(role, Role::CmaEs | Role::Quadratic | Role::QuasiNewton);
        if !self.takes_turns {
            self.improved_at = asked;
        }
        if hands_over && !self.tired.contains(&role) {
            self.tired.push(role);
        }
        team.activate(place, asked, until);
        Ok(())
    }

    /// Creates a member for this many evaluations. Members of a contest start on their own, so that their
    /// values can be compared; later ones start from the best point known.
    fn create(
        &mut self,
        role: Role,
        evaluations: u64,
        team: &mut Team,
        tools: &mut Tools<'_, Origin>,
    ) -> Result<usize> {
        let space = tools.space;
        let is_first = self.leg == 0 && self.surveyed_from == 0;
        let is_heat = self.is_contest
            && matches!(role, Role::RaceCars | Role::CmaEs)
            && self.place_of(role).is_none();
        let was_active = |role: Role| self.legs[..self.leg].iter().any(|leg| leg.role == role);
        let share = self
            .place_of(Role::RaceCars)
            .filter(|_| was_active(Role::RaceCars))
            .and_then(|place| team.member(place).region())
            .map(|region| region.share);
        // Without a budget, a member that has all of it has none either, nor has the last one in a
        // discrete space, which has no polish.
        let is_mixed = self.legs.iter().any(|leg| leg.role == Role::Reals);
        let is_open = self.legs.len() == 1 || (self.leg > 0 && !space.is_real_box() && !is_mixed);
        let own = (self.budget.is_some() || !is_open || self.is_contest).then_some(evaluations);
        let contest = self.contest(tools);
        let has_surrogate = self.is_contest && contest.has_surrogate();
        let models_all = self.is_contest && contest.models_all();
        let has_shape = self.survey.as_ref().is_some_and(|survey| survey.shape().is_some());
        let algorithm = match role {
            Role::RaceCars => Algorithm::race_cars(),
            Role::Quadratic => Algorithm::quadratic(),
            Role::QuasiNewton => Algorithm::quasi_newton(),
            Role::Sqp => Algorithm::sqp(),
            Role::LShade => Algorithm::l_shade(),
            Role::Evolution => Algorithm::evolution(),
            Role::LocalSearch => Algorithm::local_search(),
            Role::GaussianProcess => {
                Algorithm::Gp(GaussianProcess::default().noisy(team.referee.is_some()))
            }
            Role::CmaEs => {
                let sigma = match share {
                    Some(share)
                        if !self.is_contest && !was_active(Role::Polish) && space.is_real_box() =>
                    {
                        let [least, most] = SIGMA_AFTER_RACE_CARS;
                        share.clamp(least, most)
                    }
                    // A small step does not leave a plateau.
                    _ if has_surrogate && models_all && !team.has_plateaus() => SIGMA_AFTER_DESCENT,
                    _ => INITIAL_SIGMA,
                };
                let settings = CmaEs::default().sigma(sigma).surrogate(has_surrogate);
                let algorithm = match self.is_full {
                    true => Algorithm::CmaEs(settings),
                    false => Algorithm::SepCmaEs(settings),
                };
                if algorithm.takes(space).is_err() {
                    return self.add_held(Part::Ordered, &algorithm, own, team, tools);
                }
                algorithm
            }
            Role::Reals => {
                let algorithm = Algorithm::Auto(Auto::default().noise(Noise::No));
                return self.add_held(Part::Real, &algorithm, own, team, tools);
            }
            Role::Polish => {
                let [least, most] = POLISH_STEP_AFTER_RACE_CARS;
                let share = share.filter(|_| !was_active(Role::CmaEs));
                let step = share.map_or(POLISH_STEP, |share| share.clamp(least, most));
                let setup = Setup { space, budget: None, seed: tools.random.bits() };
                let make = |_: &mut Random| Ok(PolishSearch::new(space, step));
                let polish = Shell::new(PolishSearch::NAME, setup, make)?;
                return Ok(team.add(Box::new(polish), true, tools));
            }
            Role::Scan => {
                let setup = Setup { space, budget: None, seed: tools.random.bits() };
                let make = |random: &mut Random| Ok(ScanSearch::new(space, random));
                let scan = Shell::new(ScanSearch::NAME, setup, make)?;
                return Ok(team.add(Box::new(scan), true, tools));
            }
        };
        // RACE-CARS in a discrete space is the same run as on its own.
        let seed = if is_first { self.seed } else { tools.random.bits() };
        let place = team.add(algorithm.optimizer(space, own, seed)?, false, tools);
        let starts_at_best = was_active(Role::RaceCars) || team.has_known;
        if is_first && self.is_contest && !team.has_known {
            // Begins at the centre, which a survey's points say nothing about.
            if self.survey.as_ref().is_none_or(Survey::is_noise_check) {
                team.tell_early(place)?;
            }
        } else if role == Role::Sqp {
            team.tell_early(place)?;
            team.tell_best(place)?;
        } else if role == Role::CmaEs && has_surrogate && (models_all || has_shape) {
            // Its first model is of the values that others have measured.
            team.tell_best(place)?;
            team.tell_latest(place)?;
        } else if is_first || is_heat {
            team.tell_early(place)?;
        } else if (role != Role::CmaEs || self.is_contest || starts_at_best)
            && !self.is_looking(role)
        {
            team.tell_best(place)?;
        }
        Ok(place)
    }

    /// Adds a member that searches some coordinates, while the others are held at the best point, or at the
    /// centre if there is none.
    fn add_held(
        &self,
        part: Part,
        algorithm: &Algorithm,
        budget: Option<u64>,
        team: &mut Team,
        tools: &mut Tools<'_, Origin>,
    ) -> Result<usize> {
        let space = tools.space;
        let best = team.best.sample();
        let centre = || {
            let mut point = vec![0.0; space.dimension()];
            space.write_center(tools.random, &mut point);
            point
        };
        let held: Vec<f64> = best.map_or_else(centre, |best| best.point.to_vec());
        let rank = best.map(|best| best.rank);
        let setup = Setup { space, budget, seed: tools.random.bits() };
        let name = match part {
            Part::Real => HeldSearch::REALS,
            Part::Ordered => HeldSearch::ORDERED,
        };
        let make = |_: &mut Random| HeldSearch::new(part, algorithm, setup, &held, rank);
        Ok(team.add(Box::new(Shell::new(name, setup, make)?), false, tools))
    }

    /// Notes improvements. Returns why the current leg is over, if it is.
    fn end_of_leg(&mut self, team: &Team, tools: &Tools<'_, Origin>) -> Option<String> {
        let asked = tools.ledger.next_id();
        let Leg { role, until, hands_over } = self.legs[self.leg];
        let place = self.place_of(role)?;
        let is_less = |value: f64, than: Option<f64>| than.is_none_or(|than| value < than);
        if team.best.value().is_some_and(|value| is_less(value, self.best)) {
            self.best = team.best.value();
            self.improved_at = asked;
            self.tired.retain(|&other| other == role);
        }
        // Descents that look for other valleys find better ones of their own for long, which says little.
        let own_best = team.own_best(place).filter(|_| !self.is_looking(role));
        if own_best.is_some_and(|value| is_less(value, self.own_best)) {
            self.own_best = team.own_best(place);
            self.improved_at = asked;
        }
        if asked >= until {
            return Some(String::new());
        }
        if !hands_over {
            return None;
        }
        let contest = self.contest(tools);
        if self.turn(team, tools).is_some() {
            return Some("cma-es is still behind the descent".to_string());
        }
        if self.has_converged(team) {
            return Some("cma-es has converged".to_string());
        }
        // The restarts of CMA-ES take a long time to improve on the first run, and are better than other
        // members except L-SHADE.
        let is_kept = || contest.evolution().is_none_or(|begin| asked < begin);
        if role == Role::CmaEs && is_kept() && !self.is_level(team) {
            return None;
        }
        let name = team.member(place).name();
        // A first descent ends when it has converged; later on, descents from random points take turns with
        // the others.
        let is_turn = self.takes_turns && role != Role::CmaEs;
        let is_first = is_turn || self.legs[..self.leg].iter().all(|leg| leg.role == role);
        // With constraints a descent from another point may end in a better valley.
        let is_first = is_first && role != Role::Sqp && !self.is_looking(role);
        if is_first && team.member(place).restarts() > self.restarts {
            return Some(format!("{name} has converged"));
        }
        let idle = asked.saturating_sub(self.improved_at);
        let patience = match self.is_looking(role) {
            true => contest.patience_of_look(self.is_level(team)),
            false => contest.patience(),
        };
        (idle >= patience && !is_turn)
            .then(|| format!("{name} has not improved in {idle} evaluations"))
    }

    /// Whether the descents of this role look for other valleys.
    fn is_looking(&self, role: Role) -> bool {
        self.looked == Some(role)
    }

    /// Whether the descents that look for other valleys have found one as good as that of CMA-ES, but for a part of
    /// what CMA-ES was better than the survey.
    fn is_level(&self, team: &Team) -> bool {
        let own = |role: Role| self.place_of(role).and_then(|place| team.own_best(place));
        self.looked.and_then(own).zip(own(Role::CmaEs)).is_some_and(|(looking, cma_es)| {
            let gain = team.best_of_survey().map_or(0.0, |first| (first - cma_es).max(0.0));
            looking <= cma_es + MAX_GAP * gain
        })
    }

    /// Whether CMA-ES leads and has converged, and no descents have looked for other valleys.
    fn has_converged(&self, team: &Team) -> bool {
        self.legs[self.leg].role == Role::CmaEs
            && self.looked.is_none()
            && self.place_of(Role::CmaEs).is_some_and(|place| team.member(place).restarts() > 0)
    }

    /// A turn of the descent, if one is due: CMA-ES leads, and is behind a descent that was cut off while it made
    /// progress.
    fn turn(&self, team: &Team, tools: &Tools<'_, Origin>) -> Option<Leg> {
        if self.legs[self.leg].role != Role::CmaEs || self.looked.is_some() {
            return None;
        }
        let cma_es = self.place_of(Role::CmaEs)?;
        let descents = [Role::QuasiNewton, Role::Quadratic].into_iter();
        let mut descents = descents.filter_map(|role| Some((role, self.place_of(role)?)));
        let (role, descent) = descents.find(|&(_, place)| {
            let values = team.own_best(place).zip(team.own_best(cma_es));
            team.member(place).restarts() == 0 && values.is_some_and(|(ahead, own)| ahead < own)
        })?;
        let (asked, contest) = (tools.ledger.next_id(), self.contest(tools));
        let turn = contest.turn(team.evaluations(cma_es), team.evaluations(descent))?;
        Some(Leg::handing_over(role, (asked + turn).min(contest.end())))
    }

    /// A scan along the coordinates, if one is due: they do not interact, and the objective is wavy. Where the survey saw no
    /// waves, it may have missed them, which shows when CMA-ES has converged.
    fn scan(&self, team: &Team, tools: &Tools<'_, Origin>) -> Option<Leg> {
        let (asked, contest) = (tools.ledger.next_id(), self.contest(tools));
        let shape = self.survey.as_ref().and_then(Survey::shape)?;
        let cma_es = self.place_of(Role::CmaEs);
        let has_converged = cma_es.is_some_and(|place| team.member(place).restarts() > 0);
        let is_due = !shape.interacts() && (shape.is_clearly_wavy() || has_converged);
        let until = asked + contest.scan().filter(|_| is_due && !self.has_scanned)?;
        (!contest.has_budget || until <= contest.end())
            .then_some(Leg::handing_over(Role::Scan, until))
    }

    /// The next leg of a contest.
    fn next_leg(&mut self, team: &mut Team, tools: &Tools<'_, Origin>) -> Option<Leg> {
        let asked = tools.ledger.next_id();
        let contest = self.contest(tools);
        let (end, role) = (contest.end(), self.legs[self.leg].role);
        if asked >= end {
            // A run that is continued beyond its budget goes on with its last member.
            let is_polished = role == Role::Polish;
            return (!is_polished && asked < self.horizon)
                .then(|| Leg::new(Role::Polish, self.horizon));
        }
        if let Some(turn) = self.turn(team, tools) {
            self.takes_turns = true;
            return Some(turn);
        }
        let scan = self.scan(team, tools);
        if scan.is_some() {
            return scan;
        }
        if self.has_converged(team) {
            self.looked = Some(contest.look());
            self.takes_turns = false;
            return Some(Leg::handing_over(contest.look(), end));
        }
        if (self.takes_turns && role != Role::CmaEs) || self.is_looking(role) {
            return Some(Leg::handing_over(Role::CmaEs, end));
        }
        // An improvement lets RACE-CARS rest no longer.
        if role == Role::Scan && !self.tired.contains(&Role::RaceCars) {
            return Some(Leg::new(Role::Polish, (asked + contest.polish_of_scan()).min(end)));
        }
        let evolution = contest.evolution();
        if evolution.is_some_and(|begin| asked >= begin) && !self.tired.contains(&Role::LShade) {
            return Some(Leg::new(Role::LShade, end));
        }
        if let Some(look) = self.looked.filter(|_| role == Role::CmaEs && self.is_level(team)) {
            return Some(Leg::handing_over(look, end));
        }
        let has_shape = self.survey.as_ref().is_some_and(|survey| survey.shape().is_some());
        if contest.is_long() && !has_shape {
            let is_new = |role: &Role| self.place_of(*role).is_none();
            let role = [Role::RaceCars, Role::CmaEs].into_iter().find(is_new);
            if let Some(role) = role {
                return Some(Leg::new(role, (asked + contest.heat()).min(end)));
            }
        }
        let roles = match contest.is_long() {
            true => vec![contest.descent(), Role::CmaEs, Role::RaceCars],
            false => vec![Role::RaceCars],
        };
        let mut members: Vec<(Role, f64)> = (roles.iter().copied())
            .filter(|role| !self.tired.contains(role))
            .map(|role| {
                // One that has not led yet comes before those that have.
                let own = self.place_of(role).and_then(|place| team.own_best(place));
                (role, own.unwrap_or(f64::NEG_INFINITY))
            })
            .collect();
        members.sort_by(|a, b| a.1.total_cmp(&b.1));
        let Some(&(role, value)) = members.first() else {
            self.tired.clear();
            let role = if contest.is_long() { Role::CmaEs } else { Role::Quadratic };
            return Some(Leg::handing_over(role, end));
        };
        let until = evolution.filter(|&begin| begin > asked).unwrap_or(end);
        if value.is_finite() && members.len() > 1 {
            let name = |role: Role| match self.place_of(role) {
                Some(place) => team.member(place).name(),
                None => "none",
            };
            let others: Vec<String> = (members[1..].iter())
                .map(|&(role, value)| format!("{} {value:.4}", name(role)))
                .collect();
            team.note(
                asked,
                format!("{} leads with {value:.4}; {}", name(role), others.join(", ")),
            );
        }
        Some(Leg::handing_over(role, until))
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
mod tests {
    use super::*;
    use crate::optimizers::load;
    use crate::outcome::Outcome;

    fn rosenbrock(x: &[f64]) -> f64 {
        x.windows(2).map(|x| 100.0 * (x[1] - x[0] * x[0]).powi(2) + (1.0 - x[0]).powi(2)).sum()
    }

    /// Runs `auto` without a budget, with this many candidates out, and returns its decisions. A run that is saved
    /// and loaded all the time is the same.
    fn decisions(n: usize, evaluations: usize, out: usize, noise: f64) -> Vec<(u64, String)> {
        decisions_of(rosenbrock, None, n, evaluations, out, noise)
    }

    fn decisions_of(
        objective: fn(&[f64]) -> f64,
        budget: Option<u64>,
        n: usize,
        evaluations: usize,
        out: usize,
        noise: f64,
    ) -> Vec<(u64, String)> {
        let space = Space::cube(n, -5.0, 5.0).unwrap();
        let new = || Algorithm::auto().optimizer(&space, budget, 3).unwrap();
        let (mut straight, mut broken) = (new(), new());
        let (mut random, mut pending) = (Random::new(1), Vec::new());
        for i in 0..evaluations {
            if i % 7 == 0 {
                broken = load(&broken.save()).unwrap();
            }
            let (a, b) = (straight.ask().unwrap(), broken.ask().unwrap());
            assert_eq!(a, b);
            pending.push((a, b));
            if pending.len() >= out {
                let (a, b) = pending.swap_remove(random.index(out));
                let outcome = Outcome::from(objective(a.point()) + noise * random.normal());
                straight.tell(a, outcome.clone()).unwrap();
                broken.tell(b, outcome).unwrap();
            }
        }
        assert_eq!(straight.save(), broken.save());
        let portfolio = straight.portfolio().unwrap();
        assert_eq!(portfolio.noisy, noise > 0.0);
        portfolio.decisions.into_iter().map(|decision| (decision.at, decision.what)).collect()
    }

    #[test]
    fn without_a_budget_a_descent_comes_before_the_survey_and_horizons_are_doubled() {
        let with_model =
            ["72: quadratic", "500: cma-es", "561: survey", "planned for 1000", "2000: cma-es"];
        // More candidates are out than CMA-ES takes early.
        let without =
            ["100: quadratic", "161: survey", "planned for 1000", "1000: quasi", "2000: cma-es"];
        for (out, places) in [(1, with_model), (3, with_model), (5, without)] {
            let found = decisions(10, 2500, out, 0.0);
            let position = |what: &str| found.iter().rposition(|(_, text)| text.contains(what));
            let places: Vec<Option<usize>> = places.into_iter().map(position).collect();
            assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{out} {found:?}");
        }
    }

    #[test]
    fn a_descent_that_was_cut_off_takes_turns_with_a_cma_es_that_is_behind_it() {
        // A narrow valley with many bends.
        let valley: fn(&[f64]) -> f64 = |x| {
            let bends = x.windows(2).map(|x| 3e3 * (x[1] - x[0] * x[0]).powi(2));
            bends.sum::<f64>() + x.iter().map(|x| (1.0 - x).powi(2)).sum::<f64>()
        };
        for (budget, out) in [(Some(3000), 1), (None, 1), (None, 40)] {
            let found = decisions_of(valley, budget, 10, 3000, out, 0.0);
            let turns = |what: &str| found.iter().filter(|(_, text)| text.contains(what)).count();
            let behind = turns("cma-es is still behind the descent");
            assert!(behind < 50, "{budget:?} {out} {found:?}");
            assert!(budget.is_none() || behind > 0, "{budget:?} {out} {found:?}");
        }
    }

    #[test]
    fn without_a_survey_cma_es_begins_with_a_model_of_the_descent() {
        // The square of the distance, in coordinates of very different scale that are not those of the box.
        let ellipsoid: fn(&[f64]) -> f64 = |x| {
            let sum: f64 = x.iter().sum();
            1e4 * (sum - 1.0).powi(2) + x.iter().map(|x| (x - 0.7).powi(2)).sum::<f64>()
        };
        let reason = "too few evaluations for a survey: a short descent";
        for (budget, n, out, models) in [
            (150, 5, 1, true),
            (150, 5, 3, true),
            (94, 5, 1, false),
            (150, 5, 9, false),
            (300, 10, 1, true),
            (200, 10, 1, false),
            (600, 10, 1, false),
            (160, 2, 1, true),
            (200, 2, 1, false),
            (60, 1, 1, false),
        ] {
            let found = decisions_of(ellipsoid, Some(budget), n, budget as usize, out, 0.0);
            let is_model = found.iter().any(|(_, text)| text.starts_with(reason));
            assert_eq!(is_model, models, "{budget} {n} {out} {found:?}");
        }
        let space = Space::cube(5, -5.0, 5.0).unwrap();
        let solved =
            crate::minimize(&space).budget(200).seed(1).run(|x| ellipsoid(x.coordinates()));
        let value = solved.unwrap().value().unwrap();
        // The minimum is 1.24998.
        assert!(value < 1.2501, "{value}");
    }

    #[test]
    fn plateaus_after_the_descent_are_left() {
        // Steps in directions that are not those of the coordinates, and of different importance.
        let steps: fn(&[f64]) -> f64 = |x| {
            let sum: f64 = x.iter().map(|x| x - 1.3).sum();
            let step = |(i, x): (i32, &f64)| 3f64.powi(i) * (x - 1.3 - 0.5 * sum).round().powi(2);
            (0..).zip(x).map(step).sum()
        };
        let space = Space::cube(5, -5.0, 5.0).unwrap();
        let solved = |seed: u64| {
            let run = crate::minimize(&space).budget(400).seed(seed);
            run.run(|x| steps(x.coordinates())).unwrap().value().unwrap()
        };
        let values: Vec<f64> = (0..8).map(solved).collect();
        assert!(values.iter().all(|value| *value == 0.0), "{values:?}");
    }

    #[test]
    fn a_scan_follows_race_cars_where_coordinates_do_not_interact() {
        let waves: fn(&[f64]) -> f64 = |x| {
            let wave = |x: &f64| x * x - 10.0 * (6.3 * x).cos();
            x.iter().map(wave).sum()
        };
        for out in [1, 7] {
            let found = decisions_of(waves, Some(3000), 5, 3000, out, 0.0);
            assert!(found.iter().any(|(_, text)| text.ends_with(": scan")), "{out} {found:?}");
            // With fewer evaluations it would take too large a part.
            let found = decisions_of(waves, Some(1000), 5, 1000, out, 0.0);
            assert!(!found.iter().any(|(_, text)| text.ends_with(": scan")), "{out} {found:?}");
        }
    }

    #[test]
    fn waves_that_the_survey_missed_are_scanned_when_cma_es_has_converged() {
        // Waves near the minimum only.
        let waves: fn(&[f64]) -> f64 = |x| {
            let wave = |x: &f64| {
                let x = x - 0.7;
                x * x + 0.3 * (1.0 - (20.0 * x).cos()) * (-2.0 * x * x).exp()
            };
            x.iter().map(wave).sum()
        };
        for (budget, out) in [(Some(5000), 1), (None, 1), (Some(5000), 7)] {
            let found = decisions_of(waves, budget, 5, 5000, out, 0.0);
            let position = |what: &str| found.iter().position(|(_, text)| text.ends_with(what));
            let places = [
                found.iter().position(|(_, text)| text.contains("is not wavy")),
                position("cma-es has converged"),
                position(": scan"),
            ];
            assert!(places.iter().all(Option::is_some), "{budget:?} {out} {found:?}");
            assert!(places.is_sorted(), "{budget:?} {out} {found:?}");
        }
    }

    #[test]
    fn when_cma_es_has_converged_descents_look_for_other_valleys() {
        // Two valleys, neither along the coordinates.
        let valleys: fn(&[f64]) -> f64 = |x| {
            let to = |at: f64, high: f64| {
                let sum: f64 = x.iter().sum();
                let far: f64 = x.iter().map(|x| (x - at).powi(2)).sum();
                high + far + 30.0 * (sum - x.len() as f64 * at).powi(2)
            };
            to(1.0, 0.5).min(to(-3.0, 0.0))
        };
        for (budget, out) in [(Some(5000), 1), (None, 1), (None, 5)] {
            let found = decisions_of(valleys, budget, 5, 5000, out, 0.0);
            let converged = found.iter().position(|(_, text)| text == "cma-es has converged");
            let next = converged.and_then(|place| found.get(place + 1));
            assert!(
                next.is_some_and(|(_, text)| text.ends_with("quadratic")),
                "{budget:?} {out} {found:?}"
            );
        }
    }

    #[test]
    fn without_a_budget_a_noisy_objective_is_surveyed_at_once() {
        let found = decisions(4, 400, 1, 1.0);
        assert!(found[0].0 == 2 && found[0].1.ends_with("survey"), "{found:?}");
        assert!(found[1].1.contains("noisy (planned for 2400"), "{found:?}");
    }
}
