//! Quasi-Newton descents on difference quotients, for smooth functions: L-BFGS (Nocedal and Wright,
//! "Numerical Optimization", 2nd edition, algorithms 7.4 and 7.5) within bounds.
//!
//! - `curvature`: the pairs of steps and changes of the gradient, and the direction that they give
//! - `line`: the search along that direction
//!
//! This file has the settings, the difference quotients, convergence and restarts.
//!
//! A gradient costs n evaluations and a trial along the direction only one, so the search along the line
//! goes on for as long as a parabola promises much more. Coordinates that are at a bound, and would leave
//! the box, are held (Bertsekas, "Projected Newton methods", 1982). Axes have length 1.
//!
//! Differences are taken to one side with a step near the root of the rounding error. When the direction
//! that they give leads nowhere, the values may have more noise than that, or the objective is steep: the
//! next gradients are taken from both sides, with larger steps. When that fails as well the descent has
//! converged, and the next one starts at a random point.
//!
//! All points of a gradient can be out at a time. Further candidates are the other sides of the
//! quotients. While a trial is out, the gradient at its point is taken already, which is the next one if
//! the trial is accepted; after that, other steps along the line are tried.

mod curvature;
mod line;

use self::curvature::Curvature;
use self::line::{LineSearch, Verdict};
use super::differences::{self, ROUNDING, beside, make_spare};
use super::ledger::Ledger;
use super::saved::ID_HEADROOM;
use super::settings::settings;
use super::shell::{Evaluated, Proposal, Search, Setup, Tools};
use super::unit_box::{scale_down, scale_up};
use crate::error::{Result, ensure};
use crate::linalg::product::dot;
use crate::random::Random;
use crate::space::Space;
use serde::{Deserialize, Serialize};

settings! {
    /// Settings of quasi-Newton descents. Settings that are not given are derived.
    #[derive(Copy)]
    pub struct QuasiNewton {
        /// The number of steps from which the curvature is estimated. Default: n, from 5 to 30.
        memory: Option<usize>,
        /// The first step of the difference quotients, as a fraction of each axis. Default: 1e-9, which is
        /// right for values that are exact up to rounding.
        difference: Option<f64>,
    }
}

/// The steps of difference quotients from both sides, as fractions of each axis, that follow on the first.
const CENTRAL_DIFFERENCES: [f64; 2] = [1e-5, 1e-3];
/// A descent has converged after this many steps without a noticeable improvement.
const MAX_IDLE_STEPS: u32 = 2;

/// [`QuasiNewton`] with all settings resolved and checked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Resolved {
    memory: usize,
    difference: f64,
}

impl QuasiNewton {
    fn resolve(&self, dimension: usize) -> Result<Resolved> {
        let resolved = Resolved {
            memory: self.memory.unwrap_or(dimension.clamp(5, 30)),
            difference: self.difference.unwrap_or(1e-9),
        };
        resolved.check()?;
        Ok(resolved)
    }
}

impl Resolved {
    fn check(&self) -> Result<()> {
        let Resolved { memory, difference } = *self;
        ensure!((1..=1000).contains(&memory), setting, "memory = {memory} is not from 1 to 1000");
        let is_possible = (1e-12..=0.1).contains(&difference);
        ensure!(is_possible, setting, "difference = {difference} is not from 1e-12 to 0.1");
        Ok(())
    }
}

/// Descents, one after the other.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct QuasiNewtonSearch {
    settings: Resolved,
    /// The number of stages so far. Outcomes of earlier stages are not waited for.
    stage_number: u64,
    /// The number of difference quotients so far.
    quotients: u64,
    /// Descents that converged.
    restarts: u64,
    /// x.
    iterate: Vec<f64>,
    /// f(x), once it is known.
    value: Option<f64>,
    /// The gradient at the iterate, or at the previous one while its quotients are out; empty at first.
    gradient: Vec<f64>,
    /// The step to the iterate.
    step: Vec<f64>,
    curvature: Curvature,
    /// How differences are taken: 0 to one side, then the [`CENTRAL_DIFFERENCES`].
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
    /// The value of the iterate is out.
    Value,
    Gradient(Quotients),
    /// With the quotients at the trial that is waited for: the next gradient, if that trial is accepted.
    Line(LineSearch, Quotients),
}

/// The difference quotients of a gradient.
#[derive(Debug, Serialize, Deserialize)]
struct Quotients {
    /// Tells them from earlier ones.
    number: u64,
    /// The length of the trial around which they are; 0 for the iterate.
    length: f64,
    /// The values at both sides of each coordinate, the first side first.
    values: Vec<[Told; 2]>,
    /// The number of points asked, in the order of [`Quotients::side`]; above 2 n they are spare ones.
    asked: usize,
    /// The points without which the gradient is not complete, and how many of them were told.
    needed: usize,
    told: usize,
}

/// The value of a point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Told {
    NotYet,
    /// It failed, or is infeasible.
    NoValue,
    Value(f64),
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
    /// A side of a difference quotient: the number of the quotients, and its place in the order of asking.
    Side(u64, usize),
    /// A trial along the line, with its step length.
    Trial(f64),
    Spare,
}

impl Quotients {
    fn new(number: u64, length: f64, dimension: usize, is_central: bool) -> Self {
        let needed = if is_central { 2 * dimension } else { dimension };
        let values = vec![[Told::NotYet; 2]; dimension];
        Quotients { number, length, values, asked: 0, needed, told: 0 }
    }

    fn tell(&mut self, place: usize, told: Told) {
        let (index, side) = self.side(place);
        let slot = &mut self.values[index][side];
        if *slot == Told::NotYet {
            *slot = told;
            self.told += usize::from(place < self.needed);
        }
    }

    /// The coordinate and the side of the point that is asked at this place.
    fn side(&self, place: usize) -> (usize, usize) {
        (place % self.values.len(), place / self.values.len())
    }

    /// Whether the points that are not told are lost, when this many candidates are out: twice as many
    /// others were asked since.
    fn is_overdue(&self, out: usize) -> bool {
        self.asked > 2 * self.values.len() + 2 * out + 16
    }
}

impl QuasiNewtonSearch {
    pub(crate) fn new(settings: &QuasiNewton, setup: Setup<'_>) -> Result<Self> {
        let n = setup.space.dimension();
        Ok(QuasiNewtonSearch {
            settings: settings.resolve(n)?,
            stage_number: 0,
            quotients: 0,
            restarts: 0,
            iterate: vec![0.5; n],
            value: None,
            gradient: Vec::new(),
            step: Vec::new(),
            curvature: Curvature::default(),
            precision: 0,
            jitter: 1.0,
            idle: 0,
            stage: Stage::Unstarted,
        })
    }

    fn enter(&mut self, stage: Stage) {
        self.stage_number += 1;
        self.stage = stage;
    }

    /// Begins a descent at the iterate, whose value may be known.
    fn descend(&mut self, value: Option<f64>, random: &mut Random) {
        self.value = value;
        self.jitter = 0.5 + 0.5 * random.unit();
        self.gradient.clear();
        self.step.clear();
        self.curvature.clear();
        (self.precision, self.idle) = (0, 0);
        match value {
            Some(_) => self.begin_gradient(),
            None => self.enter(Stage::Value),
        }
    }

    fn new_quotients(&mut self, length: f64) -> Quotients {
        self.quotients += 1;
        Quotients::new(self.quotients, length, self.iterate.len(), self.precision > 0)
    }

    fn begin_gradient(&mut self) {
        let quotients = self.new_quotients(0.0);
        self.enter(Stage::Gradient(quotients));
    }

    /// The descent has converged: the next one starts at a random point.
    fn restart(&mut self, random: &mut Random) {
        self.restarts += 1;
        self.iterate.iter_mut().for_each(|x| *x = random.unit());
        self.descend(None, random);
    }

    /// The coordinate at a side of the difference quotient at x.
    fn side(&self, x: f64, side: usize) -> f64 {
        let length = match self.precision {
            0 => self.settings.difference,
            central => CENTRAL_DIFFERENCES[central - 1],
        } * self.jitter;
        beside(x, length, side == 0)
    }

    /// Writes the next point to evaluate, scaled to axes of length 1, when this many others are out.
    fn next(&mut self, out: usize, random: &mut Random, point: &mut [f64]) -> Purpose {
        let n = self.iterate.len();
        point.copy_from_slice(&self.iterate);
        loop {
            match &mut self.stage {
                Stage::Gradient(quotients) if quotients.asked < 2 * quotients.values.len() => {
                    let place = quotients.asked;
                    quotients.asked += 1;
                    let (number, (index, side)) = (quotients.number, quotients.side(place));
                    let at = self.side(self.iterate[index], side);
                    if at == self.iterate[index] {
                        // A side at a bound equals the iterate, and has no value of its own.
                        self.tell_side(number, place, Told::NoValue, random);
                        point.copy_from_slice(&self.iterate);
                        continue;
                    }
                    point[index] = at;
                    return Purpose::Side(number, place);
                }
                Stage::Gradient(quotients) => {
                    quotients.asked += 1;
                    if quotients.is_overdue(out) {
                        self.begin_line(random);
                        point.copy_from_slice(&self.iterate);
                        continue;
                    }
                }
                Stage::Line(line, quotients) => {
                    // The trial first, then the gradient there, then other trials.
                    let is_due = line.is_trial_out();
                    if is_due && quotients.length != line.length() {
                        let length = line.length();
                        self.quotients += 1;
                        *quotients = Quotients::new(self.quotients, length, n, self.precision > 0);
                    }
                    if is_due && quotients.asked < quotients.needed {
                        let place = quotients.asked;
                        quotients.asked += 1;
                        let (number, (index, side)) = (quotients.number, quotients.side(place));
                        line.write(&self.iterate, quotients.length, point);
                        let at = self.side(point[index], side);
                        if at == point[index] {
                            self.tell_side(number, place, Told::NoValue, random);
                            point.copy_from_slice(&self.iterate);
                            continue;
                        }
                        point[index] = at;
                        return Purpose::Side(number, place);
                    }
                    if let Some(length) = line.next() {
                        line.write(&self.iterate, length, point);
                        return Purpose::Trial(length);
                    }
                }
                Stage::Value | Stage::Unstarted => {}
            }
            make_spare(point, random);
            return Purpose::Spare;
        }
    }

    fn tell_side(&mut self, number: u64, place: usize, told: Told, random: &mut Random) {
        match &mut self.stage {
            Stage::Gradient(quotients) if quotients.number == number => {
                quotients.tell(place, told);
                if quotients.told >= quotients.needed {
                    self.begin_line(random);
                }
            }
            Stage::Line(_, quotients) if quotients.number == number => quotients.tell(place, told),
            _ => {}
        }
    }

    /// The slope along a coordinate.
    fn slope(&self, quotients: &Quotients, index: usize, value: f64) -> f64 {
        let x = self.iterate[index];
        let difference = |side: usize| match quotients.values[index][side] {
            Told::Value(other) => Some((other - value, self.side(x, side) - x)),
            Told::NotYet | Told::NoValue => None,
        };
        differences::slope(difference(0), difference(1))
    }

    /// Takes the gradient from the quotients, learns the curvature, and begins a search along a line.
    fn begin_line(&mut self, random: &mut Random) {
        let (Stage::Gradient(quotients), Some(value)) = (&self.stage, self.value) else { return };
        let n = self.iterate.len();
        let gradient: Vec<f64> = (0..n).map(|i| self.slope(quotients, i, value)).collect();
        if self.gradient.len() == n && self.step.len() == n {
            let change: Vec<f64> =
                gradient.iter().zip(&self.gradient).map(|(new, old)| new - old).collect();
            self.curvature.learn(std::mem::take(&mut self.step), change, self.settings.memory);
        }
        self.step.clear();
        self.gradient = gradient;
        // Coordinates that are at a bound, and would leave the box, are held.
        let is_held = |i: usize, slope: f64| {
            self.iterate[i] <= 0.0 && slope > 0.0 || self.iterate[i] >= 1.0 && slope < 0.0
        };
        let free: Vec<f64> = (self.gradient.iter().enumerate())
            .map(|(i, &slope)| if is_held(i, slope) { 0.0 } else { slope })
            .collect();
        let mut direction = self.curvature.direction(&free);
        for (i, d) in direction.iter_mut().enumerate() {
            if free[i] == 0.0 || is_held(i, -*d) {
                *d = 0.0;
            }
        }
        let slope = dot(&direction, &free);
        let is_noticeable = -slope > ROUNDING * value.abs();
        match LineSearch::new(direction, slope, value, self.curvature.is_empty()) {
            Some(line) if is_noticeable => {
                let quotients = self.new_quotients(0.0);
                self.enter(Stage::Line(line, quotients));
            }
            _ => self.fail(random),
        }
    }

    /// The direction led nowhere: takes better differences, or ends the descent.
    fn fail(&mut self, random: &mut Random) {
        if self.precision >= CENTRAL_DIFFERENCES.len() {
            return self.restart(random);
        }
        self.precision += 1;
        // The gradients before were wrong, and so was their change.
        self.curvature.clear();
        self.step.clear();
        self.begin_gradient();
    }

    fn tell_trial(&mut self, length: f64, value: Option<f64>, random: &mut Random) {
        let Stage::Line(line, quotients) = &mut self.stage else { return };
        match line.tell(length, value, self.iterate.len()) {
            Verdict::Continue => {}
            Verdict::Failed => self.fail(random),
            Verdict::Accepted { length, value } => {
                let mut moved = vec![0.0; self.iterate.len()];
                line.write(&self.iterate, length, &mut moved);
                let is_next = quotients.length == length && quotients.asked > 0;
                let next =
                    is_next.then(|| std::mem::replace(quotients, Quotients::new(0, 0.0, 0, false)));
                let before = self.value.replace(value).unwrap_or(value);
                self.step = moved.iter().zip(&self.iterate).map(|(new, old)| new - old).collect();
                self.iterate = moved;
                let is_idle = before - value <= ROUNDING * (before.abs() + value.abs());
                self.idle = if is_idle { self.idle + 1 } else { 0 };
                if self.idle >= MAX_IDLE_STEPS {
                    self.restart(random);
                } else if let Some(next) = next {
                    let is_complete = next.told >= next.needed;
                    self.enter(Stage::Gradient(next));
                    if is_complete {
                        self.begin_line(random);
                    }
                } else {
                    self.begin_gradient();
                }
            }
        }
    }
}

impl Search for QuasiNewtonSearch {
    type Mark = Query;

    fn propose(&mut self, tools: &mut Tools<'_, Query>) -> Option<Proposal<Query>> {
        if let Stage::Unstarted = self.stage {
            let best = tools.best.sample();
            if let Some(best) = best {
                scale_down(tools.space, &best.point, &mut self.iterate);
            }
            self.descend(best.and_then(|best| best.rank.value()), tools.random);
        }
        let mut point = tools.buffer();
        let is_value_asked = || {
            tools
                .ledger
                .marks()
                .any(|mark| mark.purpose == Purpose::Iterate && mark.stage == self.stage_number)
        };
        let purpose = if matches!(self.stage, Stage::Value) && !is_value_asked() {
            point.copy_from_slice(&self.iterate);
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
        let value = sample.rank.value();
        match asked.map(|asked| asked.mark) {
            Some(Query { purpose: Purpose::Side(number, place), .. }) => {
                let told = value.map_or(Told::NoValue, Told::Value);
                self.tell_side(number, place, told, tools.random);
            }
            Some(Query { stage, purpose }) if stage == self.stage_number => match purpose {
                Purpose::Iterate => match value {
                    Some(_) => {
                        self.value = value;
                        self.begin_gradient();
                    }
                    // The start has no value.
                    None => {
                        self.iterate.iter_mut().for_each(|x| *x = tools.random.unit());
                        self.descend(None, tools.random);
                    }
                },
                Purpose::Side(..) => {}
                Purpose::Trial(length) => self.tell_trial(length, value, tools.random),
                // A descent may as well start here, before the value of its start is known.
                Purpose::Spare if matches!(self.stage, Stage::Value) && value.is_some() => {
                    scale_down(tools.space, &sample.point, &mut self.iterate);
                    self.descend(value, tools.random);
                }
                Purpose::Spare => {}
            },
            Some(_) => {}
            // A known point that is better than the iterate is the start of a new descent.
            None => {
                let is_better = |value: f64| self.value.is_some_and(|ours| value < ours);
                if let Some(value) = value.filter(|&value| is_better(value)) {
                    scale_down(tools.space, &sample.point, &mut self.iterate);
                    self.descend(Some(value), tools.random);
                }
            }
        }
        Ok(Some(sample.point))
    }

    fn restarts(&self) -> u64 {
        self.restarts
    }

    fn is_sound(&self, space: &Space, ledger: &Ledger<Query>) -> Result<bool> {
        self.settings.check()?;
        let n = space.dimension();
        let is_vector = |x: &[f64]| x.len() == n && x.iter().all(|x| x.is_finite());
        let is_side = |told: &Told| !matches!(told, Told::Value(value) if !value.is_finite());
        let is_quotients = |quotients: &Quotients| {
            let Quotients { number, length, values, asked, needed, told } = quotients;
            *number <= self.quotients
                && length.is_finite()
                && values.len() == n
                && values.iter().flatten().all(is_side)
                && (*asked as u64) < ID_HEADROOM
                && [n, 2 * n].contains(needed)
                && told <= needed
        };
        let is_stage = match &self.stage {
            Stage::Unstarted | Stage::Value => self.value.is_none(),
            Stage::Gradient(quotients) => {
                self.value.is_some() && is_quotients(quotients) && quotients.told < quotients.needed
            }
            Stage::Line(line, quotients) => {
                self.value.is_some() && line.is_sound(n) && is_quotients(quotients)
            }
        };
        let is_query = |query: &Query| match query.purpose {
            Purpose::Side(_, place) => place < 2 * n,
            Purpose::Trial(length) => length.is_finite(),
            Purpose::Iterate | Purpose::Spare => true,
        };
        Ok(is_stage
            && self.stage_number < ID_HEADROOM
            && self.quotients < ID_HEADROOM
            && self.restarts < ID_HEADROOM
            && is_vector(&self.iterate)
            && self.iterate.iter().all(|x| (0.0..=1.0).contains(x))
            && self.value.is_none_or(f64::is_finite)
            && (self.gradient.is_empty() || is_vector(&self.gradient))
            && (self.step.is_empty() || is_vector(&self.step))
            && self.curvature.is_sound(n, self.settings.memory)
            && self.precision <= CENTRAL_DIFFERENCES.len()
            && (0.5..=1.0).contains(&self.jitter)
            && self.idle < MAX_IDLE_STEPS
            && ledger.marks().all(is_query))
    }
}

#[cfg(test)]
mod tests {
    use crate::optimizers::Algorithm;
    use crate::outcome::Outcome;
    use crate::space::Space;

    /// The best value after this many evaluations with `out` candidates out at a time, and the number of
    /// restarts.
    fn minimized(n: usize, budget: u64, out: usize, f: impl Fn(&[f64]) -> f64) -> (f64, u64) {
        let space = Space::cube(n, -5.0, 5.0).unwrap();
        let mut optimizer = Algorithm::quasi_newton().optimizer(&space, None, 1).unwrap();
        let mut pending = std::collections::VecDeque::new();
        while optimizer.told() < budget {
            while pending.len() < out {
                pending.push_back(optimizer.ask().unwrap());
            }
            let candidate = pending.pop_front().unwrap();
            let value = f(candidate.point());
            optimizer.tell(candidate, Outcome::from(value)).unwrap();
        }
        (optimizer.best().unwrap().rank.value().unwrap(), optimizer.restarts())
    }

    fn ellipsoid(x: &[f64]) -> f64 {
        let n = x.len();
        // Reflected at (1, ..., 1), so that coordinates interact.
        let mean = x.iter().map(|x| x - 0.3).sum::<f64>() / n as f64;
        let weight = |i: usize| 1e6f64.powf(i as f64 / (n - 1) as f64);
        x.iter().enumerate().map(|(i, x)| weight(i) * (x - 0.3 - 2.0 * mean).powi(2)).sum()
    }

    fn rosenbrock(x: &[f64]) -> f64 {
        x.windows(2).map(|x| 100.0 * (x[1] - x[0] * x[0]).powi(2) + (1.0 - x[0]).powi(2)).sum()
    }

    #[test]
    fn smooth_functions_are_solved_in_a_few_gradients_per_coordinate() {
        assert!(minimized(10, 40, 1, |x| x.iter().map(|x| (x - 1.2).powi(2)).sum()).0 < 1e-12);
        assert!(
            minimized(10, 900, 1, rosenbrock).0 < 1e-8,
            "{:?}",
            minimized(10, 900, 1, rosenbrock)
        );
        assert!(
            minimized(10, 1500, 1, ellipsoid).0 < 1e-2,
            "{:?}",
            minimized(10, 1500, 1, ellipsoid)
        );
    }

    #[test]
    fn several_candidates_may_be_out() {
        assert!(
            minimized(10, 4000, 8, rosenbrock).0 < 1e-8,
            "{:?}",
            minimized(10, 4000, 8, rosenbrock)
        );
        assert!(
            minimized(3, 4000, 32, rosenbrock).0 < 1e-6,
            "{:?}",
            minimized(3, 4000, 32, rosenbrock)
        );
    }

    #[test]
    fn optima_on_bounds_are_reached() {
        let (value, _) = minimized(6, 200, 1, |x| x.iter().map(|x| (x - 7.0).powi(2)).sum());
        assert!(value - 24.0 < 1e-9, "{value}");
        let (value, _) = minimized(1, 60, 1, |x| x[0]);
        assert_eq!(value, -5.0);
    }

    #[test]
    fn it_restarts_after_convergence_and_where_there_is_no_slope() {
        let (value, restarts) =
            minimized(2, 1000, 1, |x| x.iter().map(|x| x * x + 3.0 * (2.0 * x).cos()).sum());
        assert!(restarts > 3 && value < -1.0, "{value} {restarts}");
        assert!(minimized(4, 500, 1, |_| 1.0).1 > 10);
        // Values with noise far above rounding.
        let rough = |x: &[f64]| x.iter().map(|x| (x - 1.0).powi(2) + 1e-7 * (1e9 * x).sin()).sum();
        assert!(minimized(5, 600, 1, rough).0 < 1e-4, "{:?}", minimized(5, 600, 1, rough));
    }
}
