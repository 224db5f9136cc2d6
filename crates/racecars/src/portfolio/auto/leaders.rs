//! Who leads in a contest: when a leg ends, and which comes next.

use super::super::{Origin, Team};
use super::AutoRule;
use super::plan::{Leg, Role};
use super::survey::Survey;
use crate::optimizers::shell::Tools;

/// Two valleys are equally good if their values differ by less than this part of what CMA-ES gained on the survey.
const MAX_GAP: f64 = 1e-3;

impl AutoRule {
    /// The leg in which the current member continues when the horizon was doubled, unless it has stalled or a scan is due; a
    /// descent only up to its part, and RACE-CARS only if it is ahead.
    pub(super) fn continued(&self, team: &Team, tools: &Tools<'_, Origin>) -> Option<Leg> {
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

    /// Notes improvements. Returns why the current leg is over, if it is.
    pub(super) fn end_of_leg(&mut self, team: &Team, tools: &Tools<'_, Origin>) -> Option<String> {
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
    pub(super) fn is_looking(&self, role: Role) -> bool {
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
    pub(super) fn next_leg(&mut self, team: &mut Team, tools: &Tools<'_, Origin>) -> Option<Leg> {
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
