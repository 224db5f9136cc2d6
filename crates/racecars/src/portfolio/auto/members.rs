//! The members of `auto`: which algorithm a role is, with which settings, and what it is told when it begins.

use super::super::held::{HeldSearch, Part};
use super::super::polish::PolishSearch;
use super::super::scan::ScanSearch;
use super::super::{Origin, Team};
use super::plan::{Leg, Role};
use super::survey::Survey;
use super::{Auto, AutoRule, Noise};
use crate::error::Result;
use crate::optimizers::Algorithm;
use crate::optimizers::cma_es::CmaEs;
use crate::optimizers::gaussian_process::GaussianProcess;
use crate::optimizers::shell::{Setup, Shell, Tools};
use crate::random::Random;

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

impl AutoRule {
    /// Activates the member of the current leg, and creates it unless it can go on from where it was.
    pub(super) fn begin_leg(
        &mut self,
        team: &mut Team,
        tools: &mut Tools<'_, Origin>,
    ) -> Result<()> {
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
}
