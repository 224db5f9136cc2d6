//! `auto`: a portfolio that surveys the objective first. The default algorithm.
//!
//! A few dozen evaluations tell whether coordinates interact and whether the objective is multimodal
//! (`survey`). The findings, the dimension and the budget determine which algorithm gets which part of
//! the budget (`plan`): adaptive RACE-CARS if coordinates can be optimized one by one or if the budget is
//! small, CMA-ES if they have to change together. Each starts from the best point known if that helps. At
//! the end, parabolas along the coordinates refine the best point (`polish`).
//!
//! In spaces with discrete coordinates, RACE-CARS gets the whole budget.

mod plan;
mod survey;

use super::polish::PolishSearch;
use super::referee::Referee;
use super::{Origin, PortfolioSearch, Rule, Team};
use crate::error::Result;
use crate::optimizers::Algorithm;
use crate::optimizers::cma_es::CmaEs;
use crate::optimizers::settings::{choices, settings};
use crate::optimizers::shell::{Setup, Shell, Tools};
use crate::random::Random;
use crate::space::Space;
use plan::{Leg, Role};
use serde::{Deserialize, Serialize};
use survey::Survey;

/// The initial standard deviation of CMA-ES, as a fraction of each axis.
const INITIAL_SIGMA: f64 = 0.2;
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
        /// first point twice, unless a coordinate is discrete.
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
    /// Detect noise by evaluating the first point twice. Spaces with discrete coordinates count as
    /// deterministic, since no point is asked twice there.
    #[default]
    Detect,
    /// Noisy.
    Yes,
    /// Deterministic.
    No,
}

choices!(Noise { Detect => "detect", Yes => "yes", No => "no" });

/// The rule of `auto`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct AutoRule {
    seed: u64,
    noise: Noise,
    budget: Option<u64>,
    survey: Option<Survey>,
    /// Empty until the survey is complete.
    legs: Vec<Leg>,
    /// The index of the current leg.
    leg: usize,
    /// Whether CMA-ES learns the full covariance matrix.
    is_full: bool,
    /// The index of RACE-CARS in the team.
    race_cars: Option<usize>,
}

impl AutoRule {
    pub(crate) fn portfolio(
        settings: &Auto,
        setup: Setup<'_>,
        random: &mut Random,
    ) -> Result<PortfolioSearch<AutoRule>> {
        let Setup { space, budget, seed } = setup;
        let horizon = plan::horizon(budget, space.dimension());
        let coordinates =
            plan::surveyed_coordinates(horizon, space.dimension()).filter(|_| !space.can_repeat());
        let survey = coordinates.map(|coordinates| Survey::new(coordinates, random.bits()));
        let noise = settings.noise;
        let rule = AutoRule { seed, noise, budget, survey, ..AutoRule::default() };
        Ok(PortfolioSearch::new(rule, budget))
    }

    /// Whether the survey is complete, or has waited long enough for lost candidates.
    fn is_surveyed(&self, told: u64) -> bool {
        let Some(survey) = &self.survey else { return true };
        survey.is_complete() || told >= 2 * survey.len() as u64
    }

    /// Makes the plan from the findings of the survey, and creates RACE-CARS, which most plans use.
    fn decide(&mut self, team: &mut Team, tools: &mut Tools<'_, Origin>) -> Result<()> {
        let (space, asked) = (tools.space, tools.ledger.next_id());
        let n = space.dimension();
        let horizon = plan::horizon(self.budget, n);
        let shape = self.survey.as_ref().and_then(Survey::shape);
        let noise = self.survey.as_ref().and_then(Survey::noise);
        // What is still not known by now counts as deterministic: the repeated point failed or was lost.
        let is_noisy = self.is_noisy() == Some(true);
        let mut plan = if space.can_repeat() {
            plan::BudgetPlan {
                legs: vec![Leg { role: Role::RaceCars, until: horizon }],
                is_full: false,
                reason: format!("some coordinates are discrete{}", plan::noise(is_noisy)),
            }
        } else {
            plan::plan(shape, is_noisy, horizon, n)
        };
        // Legs that would already be over are dropped.
        plan.legs.retain(|leg| leg.until > asked);
        if plan.legs.is_empty() {
            plan.legs.push(Leg { role: Role::RaceCars, until: horizon.max(asked + 1) });
        }
        let part = plan.legs.iter().find(|leg| leg.role == Role::RaceCars);
        // Without a budget, RACE-CARS has none either, unless its leg is one of several.
        let own = match (self.budget, part, plan.legs.len()) {
            (None, _, 0 | 1) => None,
            (_, Some(leg), _) => Some(leg.until),
            (_, None, _) => Some(horizon),
        };
        let race_cars = Algorithm::race_cars().optimizer(space, own, self.seed)?;
        let place = team.add(race_cars, false, tools);
        team.tell_early(place)?;
        team.referee = is_noisy.then(|| Referee::new(noise, self.budget));
        team.note(asked, plan.reason);
        debug_assert!(plan.legs.is_sorted_by(|a, b| a.until < b.until), "legs are in order");
        (self.race_cars, self.is_full, self.legs) = (Some(place), plan.is_full, plan.legs);
        self.begin_leg(team, tools)
    }

    /// Creates and activates the member of the current leg.
    #[expect(clippy::expect_used, reason = "see the message")]
    fn begin_leg(&mut self, team: &mut Team, tools: &mut Tools<'_, Origin>) -> Result<()> {
        let (space, asked) = (tools.space, tools.ledger.next_id());
        let Leg { role, until } = self.legs[self.leg];
        let was_active = |role: Role| self.legs[..self.leg].iter().any(|leg| leg.role == role);
        // The region is only meaningful if RACE-CARS was active.
        let race_cars = self.race_cars.filter(|_| was_active(Role::RaceCars));
        let region = race_cars.and_then(|place| team.member(place).region());
        let share = region.map(|region| region.share);
        let place = match role {
            Role::RaceCars => self.race_cars.expect("RACE-CARS is created with the plan"),
            Role::CmaEs => {
                let sigma = match share {
                    Some(share) if !was_active(Role::Polish) => {
                        let [least, most] = SIGMA_AFTER_RACE_CARS;
                        share.clamp(least, most)
                    }
                    _ => INITIAL_SIGMA,
                };
                let settings = CmaEs::default().sigma(sigma);
                let algorithm = match self.is_full {
                    true => Algorithm::CmaEs(settings),
                    false => Algorithm::SepCmaEs(settings),
                };
                let cma_es = algorithm.optimizer(space, None, tools.random.bits())?;
                let place = team.add(cma_es, false, tools);
                if was_active(Role::RaceCars) || team.has_known {
                    team.tell_best(place)?;
                }
                place
            }
            Role::Polish => {
                let [least, most] = POLISH_STEP_AFTER_RACE_CARS;
                let share = share.filter(|_| !was_active(Role::CmaEs));
                let step = share.map_or(POLISH_STEP, |share| share.clamp(least, most));
                let setup = Setup { space, budget: None, seed: tools.random.bits() };
                let make = |_: &mut Random| Ok(PolishSearch::new(space, step));
                let polish = Shell::new(PolishSearch::NAME, setup, make)?;
                team.add(Box::new(polish), true, tools)
            }
        };
        team.activate(place, asked, until);
        Ok(())
    }
}

impl Rule for AutoRule {
    fn advance(&mut self, team: &mut Team, tools: &mut Tools<'_, Origin>) -> Result<()> {
        if self.legs.is_empty() {
            return match self.is_surveyed(tools.ledger.told()) {
                true => self.decide(team, tools),
                false => Ok(()),
            };
        }
        while self.leg + 1 < self.legs.len() && tools.ledger.next_id() >= self.legs[self.leg].until
        {
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
        let is_race_cars =
            |place: usize| place < team.members.len() && team.member(place).name() == "race-cars";
        self.survey.as_ref().is_none_or(Survey::is_sound)
            && self.leg < self.legs.len().max(1)
            && self.legs.is_sorted_by(|a, b| a.until < b.until)
            && self.race_cars.is_some() != self.legs.is_empty()
            && self.race_cars.is_none_or(is_race_cars)
            && team.has_active_member() != self.legs.is_empty()
            && !(self.is_full && space.dimension() > plan::FULL_MATRIX_MAX_DIMENSION)
            && !(space.can_repeat() && self.legs.iter().any(|leg| leg.role != Role::RaceCars))
    }
}
