//! Sequential quadratic programming on difference quotients, for smooth objectives with smooth constraints
//! that the evaluation measures (Nocedal and Wright, "Numerical Optimization", 2nd edition, chapter 18).
//!
//! - `subproblem`: the quadratic program of a step
//! - `iterate`: values, slopes and curvature at a point, and what a step is expected to bring
//!
//! This file has the candidates: difference quotients, trial steps, convergence and restarts.
//!
//! One point gives the objective and all constraints, so the slopes of all of them cost n evaluations. A step is
//! the solution of a quadratic program within a trust region: B is a damped BFGS estimate (procedure 18.2) of
//! the curvature of the Lagrangian, and constraints are linear. Where they cannot be met, violations have a
//! price. A step is accepted if it lowers the objective plus weighted violations (eq. 18.24), whose weights
//! follow the multipliers up and, slowly, down. A step that fails because constraints are curved is corrected
//! once (eq. 18.36).
//!
//! Departures: constraints are met with a margin of 1e-12 of their change over the axes, which grows if the
//! descent ends outside, so that the point it converges to is feasible; difference quotients are taken from both
//! sides, with larger steps, before a descent counts as converged. Then the next one starts at a random point.

mod iterate;
mod subproblem;

use self::iterate::{Iterate, Plan};
use super::differences::{ROUNDING, beside, make_spare, slope};
use super::ledger::Ledger;
use super::saved::ID_HEADROOM;
use super::settings::settings;
use super::shell::{Evaluated, Proposal, Search, Setup, Tools};
use super::unit_box::{scale_down, scale_up};
use crate::error::Result;
use crate::outcome::{Measured, Rank};
use crate::random::Random;
use crate::space::Space;
use serde::{Deserialize, Serialize};

settings! {
    /// Sequential quadratic programming has no settings.
    pub struct Sqp {}
}

/// The steps of the difference quotients, as fractions of each axis: to one side, then from both.
const DIFFERENCES: [f64; 2] = [1e-8, 1e-5];
/// A descent has converged after this many steps without a noticeable improvement.
const MAX_IDLE_STEPS: u32 = 3;
/// The share of the predicted improvement that a step must bring.
const SUFFICIENT: f64 = 0.05;
/// The least radius of the trust region.
const MIN_RADIUS: f64 = 1e-9;
/// The first radius.
const RADIUS: f64 = 0.2;
/// The largest margin of constraints, as a share of their change over the axes.
const MAX_MARGIN: f64 = 1e-6;
/// Stands for a value that an infeasible point does not have: such a step is corrected, but not accepted.
const NO_VALUE: f64 = 1e300;

/// Descents, one after the other.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SqpSearch {
    /// The number of stages so far. Outcomes of earlier stages are not waited for.
    stage_number: u64,
    /// Descents that converged.
    restarts: u64,
    /// The number of constraints, as far as they are known.
    constraints: usize,
    iterate: Iterate,
    /// How differences are taken: the index in [`DIFFERENCES`].
    precision: usize,
    /// A random factor of the differences, from 0.5 to 1, so that descents differ by the seed.
    jitter: f64,
    /// The number of steps without a noticeable improvement.
    idle: u32,
    stage: Stage,
}

#[derive(Debug, Serialize, Deserialize)]
enum Stage {
    /// No candidate was asked yet.
    Unstarted,
    /// The values of the iterate are out.
    Value,
    Slopes(Quotients),
    Trial(Trial),
}

/// The difference quotients at the iterate.
#[derive(Debug, Serialize, Deserialize)]
struct Quotients {
    /// Points to evaluate, in the order asked.
    sides: Vec<Side>,
    /// The number of them that were asked; beyond their number, of spare candidates as well.
    asked: usize,
    told: usize,
}

/// A point beside the iterate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Side {
    index: usize,
    /// Whether it is on the side that is taken if one of both has no value.
    is_other: bool,
    is_told: bool,
    /// The changes of the objective and of the constraints; empty if there is no value.
    values: Vec<f64>,
}

/// A step that is tried.
#[derive(Debug, Serialize, Deserialize)]
struct Trial {
    plan: Plan,
    is_asked: bool,
    /// The step before it was corrected, with its values and its improvement.
    corrected: Option<(Plan, Vec<f64>, f64)>,
}

/// The data of a pending candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Query {
    stage: u64,
    purpose: Purpose,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Purpose {
    Iterate,
    /// The place of the side in the order of asking.
    Side(usize),
    Trial,
    Spare,
}

impl Quotients {
    fn new(dimension: usize, is_central: bool) -> Self {
        let side = |index: usize, is_other: bool| Side {
            index,
            is_other,
            is_told: false,
            values: Vec::new(),
        };
        let mut sides: Vec<Side> = (0..dimension).map(|index| side(index, false)).collect();
        if is_central {
            sides.extend((0..dimension).map(|index| side(index, true)));
        }
        Quotients { sides, asked: 0, told: 0 }
    }

    /// Whether all outcomes are known.
    fn is_complete(&self) -> bool {
        self.told >= self.sides.len()
    }

    fn tell(&mut self, place: usize, values: Option<Vec<f64>>) {
        let Some(side) = self.sides.get_mut(place).filter(|side| !side.is_told) else { return };
        side.is_told = true;
        self.told += 1;
        let (index, is_other) = (side.index, side.is_other);
        match values {
            Some(values) => side.values = values,
            // The other side may have a value.
            None if !is_other && self.asked <= self.sides.len() => {
                let is_there = |side: &Side| side.index == index && side.is_other;
                if !self.sides.iter().any(is_there) {
                    self.sides.push(Side {
                        index,
                        is_other: true,
                        is_told: false,
                        values: Vec::new(),
                    });
                }
            }
            None => {}
        }
    }

    /// Whether the points that are not told are lost, when this many candidates are out: twice as many
    /// others were asked since.
    fn is_overdue(&self, out: usize) -> bool {
        self.asked > self.sides.len() + 2 * out + 16
    }
}

impl SqpSearch {
    pub(crate) fn new(setup: Setup<'_>) -> Self {
        SqpSearch {
            stage_number: 0,
            restarts: 0,
            constraints: 0,
            iterate: Iterate::new(vec![0.5; setup.space.dimension()], 0),
            precision: 0,
            jitter: 1.0,
            idle: 0,
            stage: Stage::Unstarted,
        }
    }

    fn enter(&mut self, stage: Stage) {
        self.stage_number += 1;
        self.stage = stage;
    }

    /// Begins a descent at a point, with its values, if they are known.
    fn descend(&mut self, point: Vec<f64>, values: Option<Vec<f64>>, random: &mut Random) {
        self.iterate = Iterate::new(point, self.constraints);
        self.jitter = 1.0 - 0.5 * random.unit();
        (self.precision, self.idle) = (0, 0);
        match values {
            Some(values) => {
                self.iterate.values = values;
                self.begin_slopes();
            }
            None => self.enter(Stage::Value),
        }
    }

    fn begin_slopes(&mut self) {
        let quotients = Quotients::new(self.iterate.point.len(), self.precision > 0);
        self.enter(Stage::Slopes(quotients));
    }

    /// The descent has converged: the next one starts at a random point.
    fn restart(&mut self, random: &mut Random) {
        self.restarts += 1;
        self.descend_anywhere(random);
    }

    fn descend_anywhere(&mut self, random: &mut Random) {
        let point = self.iterate.point.iter().map(|_| random.unit()).collect();
        self.descend(point, None, random);
    }

    /// The coordinate at a side of the iterate.
    fn side(&self, index: usize, is_other: bool) -> f64 {
        beside(self.iterate.point[index], DIFFERENCES[self.precision] * self.jitter, !is_other)
    }

    /// Writes the next point to evaluate, scaled to axes of length 1, when this many others are out.
    fn next(&mut self, out: usize, random: &mut Random, point: &mut [f64]) -> Purpose {
        loop {
            point.copy_from_slice(&self.iterate.point);
            match &mut self.stage {
                Stage::Slopes(quotients) if quotients.asked < quotients.sides.len() => {
                    let place = quotients.asked;
                    quotients.asked += 1;
                    let Side { index, is_other, .. } = quotients.sides[place];
                    let at = self.side(index, is_other);
                    if at == point[index] {
                        // A side at a bound equals the iterate.
                        self.tell_side(place, None, random);
                        continue;
                    }
                    point[index] = at;
                    return Purpose::Side(place);
                }
                Stage::Slopes(quotients) => {
                    quotients.asked += 1;
                    if quotients.is_overdue(out) {
                        self.take_slopes(random);
                        continue;
                    }
                }
                Stage::Trial(trial) if !trial.is_asked => {
                    trial.is_asked = true;
                    self.iterate.write(&trial.plan, point);
                    return Purpose::Trial;
                }
                Stage::Trial(_) | Stage::Value | Stage::Unstarted => {}
            }
            make_spare(point, random);
            return Purpose::Spare;
        }
    }

    fn tell_side(&mut self, place: usize, values: Option<Vec<f64>>, random: &mut Random) {
        let Stage::Slopes(quotients) = &mut self.stage else { return };
        quotients.tell(place, values);
        if quotients.is_complete() {
            self.take_slopes(random);
        }
    }

    /// Takes the slopes from the quotients, learns the curvature, and tries a step.
    fn take_slopes(&mut self, random: &mut Random) {
        let Stage::Slopes(quotients) = std::mem::replace(&mut self.stage, Stage::Value) else {
            return;
        };
        let n = self.iterate.point.len();
        let mut slopes = vec![0.0; n * self.iterate.values.len()];
        for index in 0..n {
            let difference = |is_other: bool| {
                let is_it = |side: &&Side| {
                    side.index == index && side.is_other == is_other && !side.values.is_empty()
                };
                let side = quotients.sides.iter().find(is_it)?;
                Some((&side.values, self.side(index, is_other) - self.iterate.point[index]))
            };
            let (one, other) = (difference(false), difference(true));
            for (row, &value) in self.iterate.values.iter().enumerate() {
                let change = |(values, step): (&Vec<f64>, f64)| (values[row] - value, step);
                slopes[row * n + index] = slope(one.map(change), other.map(change));
            }
        }
        self.iterate.take_slopes(slopes);
        self.try_step(random);
    }

    /// Tries the step of the quadratic program, unless that brings nothing.
    fn try_step(&mut self, random: &mut Random) {
        let floor = ROUNDING / 10.0 * (self.iterate.values[0].abs() + 1e-10);
        match self.iterate.plan(None) {
            Some(plan) if plan.size >= 1e-10 && plan.predicted > floor => {
                self.enter(Stage::Trial(Trial { plan, is_asked: false, corrected: None }));
            }
            _ => self.end(true, random),
        }
    }

    /// No step brings an improvement: goes on with a larger margin if the iterate is infeasible, takes better
    /// differences, or ends the descent.
    fn end(&mut self, has_slopes: bool, random: &mut Random) {
        self.idle = 0;
        let is_outside = self.iterate.values[1..].iter().any(|&by| by > 0.0);
        if is_outside && self.iterate.margin < MAX_MARGIN {
            self.iterate.margin *= 10.0;
            self.iterate.radius = self.iterate.radius.max(1e-6);
            return match has_slopes {
                true => self.try_step(random),
                false => self.begin_slopes(),
            };
        }
        if self.precision + 1 < DIFFERENCES.len() {
            self.precision += 1;
            self.iterate.forget_curvature();
            self.iterate.radius = self.iterate.radius.max(1e-3);
            return self.begin_slopes();
        }
        self.restart(random);
    }

    fn tell_trial(&mut self, values: Option<Vec<f64>>, random: &mut Random) {
        let Stage::Trial(trial) = std::mem::replace(&mut self.stage, Stage::Value) else { return };
        let Trial { mut plan, corrected, .. } = trial;
        let mut improvement =
            values.as_ref().map_or(f64::NEG_INFINITY, |values| self.iterate.improvement(values));
        let mut values = values.unwrap_or_default();
        let is_enough = |improvement: f64, plan: &Plan| improvement >= SUFFICIENT * plan.predicted;
        match corrected {
            Some((first, old, improved)) => {
                let predicted = first.predicted;
                if improved >= improvement {
                    (plan, values, improvement) = (first, old, improved);
                }
                plan.predicted = predicted;
            }
            None if !is_enough(improvement, &plan)
                && !values.is_empty()
                && self.iterate.cost(&values) > 1e-3 * plan.predicted =>
            {
                // A second-order correction.
                if let Some(mut next) = self.iterate.plan(Some((&plan, &values))) {
                    next.predicted = plan.predicted;
                    let corrected = Some((plan, values, improvement));
                    self.enter(Stage::Trial(Trial { plan: next, is_asked: false, corrected }));
                    return;
                }
            }
            None => {}
        }
        if !is_enough(improvement, &plan) || values.is_empty() {
            self.iterate.radius = 0.3 * self.iterate.radius.min(plan.size);
            return match self.iterate.radius < MIN_RADIUS {
                true => self.end(true, random),
                false => self.try_step(random),
            };
        }
        let (before, now) = (self.iterate.values[0], values[0]);
        self.iterate.accept(&plan, values, improvement);
        let is_idle = improvement <= ROUNDING * (before.abs() + now.abs());
        self.idle = if is_idle { self.idle + 1 } else { 0 };
        match self.idle >= MAX_IDLE_STEPS {
            true => self.end(false, random),
            false => self.begin_slopes(),
        }
    }

    /// The objective and the constraints of an outcome. A feasible point whose constraints were not measured
    /// meets them just so. The objective is [`NO_VALUE`] where only constraints were measured.
    fn values(&mut self, rank: Rank, measured: Option<&Measured>) -> Option<Vec<f64>> {
        let count = self.constraints;
        match (measured, rank.value()) {
            (Some(measured), _) if measured.constraints.len() == count => {
                let value = measured.value.unwrap_or(NO_VALUE);
                Some(std::iter::once(value).chain(measured.constraints.clone()).collect())
            }
            (Some(_), _) => None,
            (None, value) => {
                Some(std::iter::once(value?).chain(std::iter::repeat_n(0.0, count)).collect())
            }
        }
    }
}

impl Search for SqpSearch {
    type Mark = Query;

    fn propose(&mut self, tools: &mut Tools<'_, Query>) -> Option<Proposal<Query>> {
        if let Stage::Unstarted = self.stage {
            let mut start = self.iterate.point.clone();
            if let Some(best) = tools.best.sample() {
                scale_down(tools.space, &best.point, &mut start);
            }
            self.descend(start, None, tools.random);
        }
        let mut point = tools.buffer();
        let is_value_asked = || {
            let is_it =
                |mark: &Query| mark.purpose == Purpose::Iterate && mark.stage == self.stage_number;
            tools.ledger.marks().any(is_it)
        };
        let purpose = if matches!(self.stage, Stage::Value) && !is_value_asked() {
            point.copy_from_slice(&self.iterate.point);
            Purpose::Iterate
        } else {
            self.next(tools.ledger.pending(), tools.random, &mut point)
        };
        scale_up(tools.space, &mut point);
        let key = tools.space.key(&point);
        Some(Proposal { point, key, mark: Query { stage: self.stage_number, purpose } })
    }

    fn learn(
        &mut self,
        evaluated: Evaluated<Query>,
        tools: &mut Tools<'_, Query>,
    ) -> Result<Option<Box<[f64]>>> {
        let Evaluated { sample, asked, .. } = evaluated;
        if let Some(measured) = tools.measured
            && measured.constraints.len() > self.constraints
        {
            self.constraints = measured.constraints.len();
            // The descent does not know them.
            if !matches!(self.stage, Stage::Unstarted | Stage::Value) {
                let point = self.iterate.point.clone();
                self.descend(point, None, tools.random);
            } else {
                self.iterate = Iterate::new(self.iterate.point.clone(), self.constraints);
            }
        }
        let constraints = self.values(sample.rank, tools.measured);
        let values = constraints.clone().filter(|values| values[0] < NO_VALUE);
        match asked.map(|asked| asked.mark) {
            Some(Query { stage, purpose }) if stage == self.stage_number => match purpose {
                Purpose::Iterate => match values {
                    Some(values) => {
                        self.iterate.values = values;
                        self.begin_slopes();
                    }
                    // The start has no value.
                    None => self.descend_anywhere(tools.random),
                },
                Purpose::Side(place) => self.tell_side(place, values, tools.random),
                Purpose::Trial => self.tell_trial(constraints, tools.random),
                // A descent may as well start here, before the value of its start is known.
                Purpose::Spare if matches!(self.stage, Stage::Value) && values.is_some() => {
                    let mut start = self.iterate.point.clone();
                    scale_down(tools.space, &sample.point, &mut start);
                    self.descend(start, values, tools.random);
                }
                Purpose::Spare => {}
            },
            Some(_) => {}
            // A known point that is better than the iterate is the start of a new descent.
            None if evaluated.is_best && !matches!(self.stage, Stage::Unstarted) => {
                let mut start = self.iterate.point.clone();
                scale_down(tools.space, &sample.point, &mut start);
                // Its constraints may not have been told.
                self.descend(start, None, tools.random);
            }
            None => {}
        }
        Ok(Some(sample.point))
    }

    fn restarts(&self) -> u64 {
        self.restarts
    }

    fn is_heavy(&self, space: &Space) -> bool {
        space.dimension() + self.constraints > 20
    }

    fn is_sound(&self, space: &Space, ledger: &Ledger<Query>) -> Result<bool> {
        let n = space.dimension();
        let count = self.constraints + 1;
        let is_values = |values: &[f64]| {
            (values.is_empty() || values.len() == count) && values.iter().all(|x| x.is_finite())
        };
        let is_known = self.iterate.values.len() == count;
        let is_stage = match &self.stage {
            Stage::Unstarted | Stage::Value => true,
            Stage::Slopes(Quotients { sides, asked, told }) => {
                is_known
                    && sides.len() <= 2 * n
                    && sides.iter().all(|side| side.index < n && is_values(&side.values))
                    && (*asked as u64) < ID_HEADROOM
                    && *told < sides.len()
                    && *told == sides.iter().filter(|side| side.is_told).count()
            }
            Stage::Trial(Trial { plan, corrected, .. }) => {
                is_known
                    && self.iterate.has_slopes()
                    && plan.is_sound(n, self.constraints)
                    && corrected.as_ref().is_none_or(|(plan, values, _)| {
                        plan.is_sound(n, self.constraints)
                            && values.len() == count
                            && is_values(values)
                    })
            }
        };
        let is_query = |query: &Query| match query.purpose {
            Purpose::Side(place) => place < 2 * n,
            Purpose::Iterate | Purpose::Trial | Purpose::Spare => true,
        };
        Ok(is_stage
            && self.iterate.is_sound(n, self.constraints)
            && self.stage_number < ID_HEADROOM
            && self.restarts < ID_HEADROOM
            && self.precision < DIFFERENCES.len()
            && (0.5..=1.0).contains(&self.jitter)
            && self.idle <= MAX_IDLE_STEPS
            && ledger.marks().all(is_query))
    }
}

#[cfg(test)]
mod tests;
