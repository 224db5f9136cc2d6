//! A descent from the initial points to a local minimum: the trust region's radius, the resolution, and what
//! to evaluate next.
//!
//! The decisions are those of NEWUOA and BOBYQA (Powell, "The NEWUOA software for unconstrained
//! optimization without derivatives", 2006, section 2). The radius (Delta) follows the ratio of actual to
//! predicted reductions, and is never below the resolution (rho). After a poor step, a point that is far
//! away is moved to where its Lagrange function is large. If there is none, and the steps have become as
//! short as the resolution, the resolution is reduced, until the final one ends the descent.
//!
//! For several candidates at a time: where a step would repeat a pending one, the point is a step of another
//! radius, one that improves the geometry, or a random point of the trust region.

use super::model::Model;
use super::{FINAL_RESOLUTION, MAX_RADIUS};
use crate::linalg::product::squared;
use crate::linalg::triangular::Lower;
use crate::optimizers::trust_region::{Region, Solver};
use crate::outcome::Rank;
use crate::random::Random;
use serde::{Deserialize, Serialize};

/// Values that differ by less than this share are equal up to rounding.
const ROUNDING: f64 = 64.0 * f64::EPSILON;

/// The factors of the radius for steps that are asked while a step is out.
const SPECULATIVE_FACTORS: [f64; 2] = [2.0, 0.5];

/// Decisions without a point to evaluate, before a random one is taken. A descent has far fewer.
const MAX_DECISIONS: usize = 100;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Descent {
    pub(super) model: Model,
    /// Delta: the trust region's radius.
    radius: f64,
    /// rho.
    resolution: f64,
    /// The best value when the resolution was last reduced.
    reduced_at: Option<f64>,
    next: Next,
    /// The model's errors at the last three steps, the latest first.
    errors: [f64; 3],
    /// Steps told since the resolution was reduced.
    steps: u64,
    /// Failed evaluations in a row.
    failures: u8,
    /// Steps in a row after which the model of least norm had a far smaller gradient.
    least_norm_wins: u8,
    #[serde(skip)]
    scratch: Scratch,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Next {
    /// Minimize the model in the trust region.
    Step,
    /// Move a point that is farther away than this.
    Improve {
        beyond: f64,
        is_after_short_step: bool,
        otherwise: Otherwise,
    },
    Reduce,
}

/// What to do if no point is far away.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Otherwise {
    Step,
    Reduce,
}

/// The purpose of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) enum Purpose {
    /// Minimizes the model.
    Step {
        /// The value at the centre of the trust region.
        from: f64,
        /// The predicted reduction, in the model's units.
        reduction: f64,
        length: f64,
        /// The trust region's radius.
        radius: f64,
    },
    /// Replaces this point of the model.
    Improvement { target: usize },
    /// Proposed because others are pending.
    Extra,
}

impl Purpose {
    pub(super) fn is_sound(&self) -> bool {
        match *self {
            Purpose::Step { from, reduction, length, radius } => {
                from.is_finite()
                    && reduction.is_finite()
                    && (0.0..1e3).contains(&length)
                    && (0.0..=MAX_RADIUS).contains(&radius)
            }
            _ => true,
        }
    }
}

#[derive(Debug, Default)]
struct Scratch {
    solver: Solver,
    low: Vec<f64>,
    high: Vec<f64>,
    step: Vec<f64>,
    other: Vec<f64>,
    gradient: Vec<f64>,
    curvature: Option<Lower>,
}

/// What [`Descent::propose`] came to.
pub(super) enum Decision {
    Evaluate(Purpose),
    /// The descent has converged.
    End,
}

impl Descent {
    /// A descent from some points, whose steps from each other have this length.
    pub(super) fn new(points: Vec<f64>, values: Vec<f64>, radius: f64) -> Self {
        let model = Model::new(points, values, radius);
        // A departure: points that have moved along several axes reach farther than a step.
        let reach = (model.gradient().len() as f64).powf(0.25);
        Descent {
            model,
            radius: (reach * radius).min(MAX_RADIUS),
            resolution: radius,
            reduced_at: None,
            next: Next::Step,
            errors: [0.0; 3],
            steps: 0,
            failures: 0,
            least_norm_wins: 0,
            scratch: Scratch::default(),
        }
    }

    pub(super) fn radius(&self) -> f64 {
        self.radius
    }

    /// Decides what to evaluate, and writes it to `point`. `pending` are the points and purposes of recent
    /// candidates that are out, and `best` is the best value of all descents.
    pub(super) fn propose<'a>(
        &mut self,
        best: f64,
        pending: impl Iterator<Item = (&'a [f64], Purpose)> + Clone,
        random: &mut Random,
        point: &mut [f64],
    ) -> Decision {
        let targets = || {
            pending.clone().filter_map(|(_, purpose)| match purpose {
                Purpose::Improvement { target } => Some(target),
                _ => None,
            })
        };
        for _ in 0..MAX_DECISIONS {
            match self.next {
                Next::Step => {
                    let reduction = self.minimize_model(self.radius);
                    let length = squared(&self.scratch.step).sqrt();
                    let is_useful = reduction > 0.0 && reduction.is_finite();
                    if length < 0.5 * self.resolution || !is_useful {
                        self.next = self.after_short_step();
                        continue;
                    }
                    self.write(point);
                    let is_out = |this: &Self, point: &[f64]| {
                        pending.clone().any(|(other, _)| this.is_near(point, other))
                    };
                    let from = self.model.best_value();
                    if !is_out(self, point) {
                        let radius = self.radius;
                        return Decision::Evaluate(Purpose::Step {
                            from,
                            reduction,
                            length,
                            radius,
                        });
                    }
                    // Other radii, which are the next ones if the step that is out turns out well, or badly.
                    for factor in SPECULATIVE_FACTORS {
                        let radius = (factor * self.radius).clamp(self.resolution, MAX_RADIUS);
                        let reduction = self.minimize_model(radius);
                        let length = squared(&self.scratch.step).sqrt();
                        self.write(point);
                        let is_useful = reduction > 0.0 && reduction.is_finite();
                        if is_useful && !is_out(self, point) {
                            return Decision::Evaluate(Purpose::Step {
                                from,
                                reduction,
                                length,
                                radius,
                            });
                        }
                    }
                    return self.propose_extra(targets(), random, point);
                }
                Next::Improve { beyond, is_after_short_step, otherwise } => {
                    let Some((target, distance)) = self.farthest(targets(), beyond) else {
                        self.next = match otherwise {
                            Otherwise::Step => Next::Step,
                            Otherwise::Reduce => Next::Reduce,
                        };
                        continue;
                    };
                    if is_after_short_step {
                        self.set_radius((0.1 * self.radius).min(0.5 * distance));
                    }
                    let radius = (0.1 * distance).min(self.radius).max(self.resolution);
                    self.next = Next::Step;
                    self.maximize_lagrange(target, radius);
                    self.write(point);
                    return Decision::Evaluate(Purpose::Improvement { target });
                }
                Next::Reduce => {
                    if self.resolution <= FINAL_RESOLUTION
                        || self.model.relative_spread() <= ROUNDING
                        || self.is_behind(best)
                    {
                        return Decision::End;
                    }
                    self.reduce_resolution();
                    self.next = Next::Step;
                }
            }
        }
        self.propose_extra(targets(), random, point)
    }

    /// The decision when the model's minimum is nearer than half the resolution.
    fn after_short_step(&mut self) -> Next {
        let error = self.errors.iter().copied().fold(0.0, f64::max);
        let curvature = self.scratch.solver.least_curvature(self.model.curvature());
        let is_settled =
            self.steps > 2 && error <= 0.125 * self.resolution * self.resolution * curvature;
        if is_settled {
            return Next::Reduce;
        }
        Next::Improve {
            beyond: 10.0 * self.resolution,
            is_after_short_step: true,
            otherwise: Otherwise::Reduce,
        }
    }

    /// Learns the outcome of a point that was asked for this purpose, or of a known point.
    ///
    /// An infeasible point has the worst value of the model. So has a failed one, unless it is the first
    /// in a row: that may be chance, and would spoil the model.
    pub(super) fn learn(
        &mut self,
        point: &[f64],
        rank: Rank,
        purpose: Option<Purpose>,
        capacity: usize,
    ) {
        let value = rank.value().unwrap_or_else(|| self.model.worst_value());
        self.failures = if rank.is_failure() { self.failures.saturating_add(1) } else { 0 };
        let is_better = value < self.model.best_value();
        let mut is_step = false;
        if let Some(Purpose::Step { from, reduction, length, radius }) = purpose {
            is_step = true;
            self.judge(value, from, reduction, length, radius);
        }
        if self.failures == 1 {
            return;
        }
        if let Some(place) = self.model.place(point, is_better, self.radius, capacity) {
            self.model.put(place, point, value, self.radius);
            if is_step {
                self.compare_least_norm();
            }
        }
    }

    /// Adapts the radius to how well a step was predicted.
    fn judge(&mut self, value: f64, from: f64, reduction: f64, length: f64, radius: f64) {
        let actual = self.model.in_units(from) - self.model.in_units(value);
        let error = (reduction - actual).abs().min(f64::MAX);
        self.errors = [error, self.errors[0], self.errors[1]];
        self.steps += 1;
        let ratio = actual / reduction;
        // With several steps out, this one may have had another radius. Then a good step does not reduce the
        // current one, and a bad step says nothing about shorter ones.
        let is_longer = radius > self.radius;
        let least = if radius == self.radius { 0.0 } else { self.radius };
        self.set_radius(if ratio > 0.7 {
            (0.5 * radius).max(2.0 * length).max(least)
        } else if ratio > 0.1 {
            (0.5 * radius).max(length).max(least)
        } else {
            (0.5 * radius).min(length).min(self.radius)
        });
        self.next = if ratio >= 0.1 {
            Next::Step
        } else if is_longer {
            self.next
        } else {
            let is_short = ratio <= 0.0 && self.radius.max(length) <= self.resolution;
            Next::Improve {
                beyond: (2.0 * self.radius).max(10.0 * self.resolution),
                is_after_short_step: false,
                otherwise: if is_short { Otherwise::Reduce } else { Otherwise::Step },
            }
        };
    }

    /// Sets the radius, to the resolution if it is not much greater.
    fn set_radius(&mut self, radius: f64) {
        let radius = if radius.is_finite() { radius.min(MAX_RADIUS) } else { self.resolution };
        self.radius = if radius <= 1.5 * self.resolution { self.resolution } else { radius };
    }

    /// A departure: a descent ends early if it is farther behind the best one than what it gained at the last
    /// resolution. At each one it gains less than at the one before.
    fn is_behind(&self, best: f64) -> bool {
        let value = self.model.best_value();
        self.reduced_at.is_some_and(|before| value - best > before - value)
    }

    /// Powell 2006, equation (7.6).
    fn reduce_resolution(&mut self) {
        self.reduced_at = Some(self.model.best_value());
        let old = self.resolution;
        let ratio = old / FINAL_RESOLUTION;
        self.resolution = if ratio <= 16.0 {
            FINAL_RESOLUTION
        } else if ratio <= 250.0 {
            ratio.sqrt() * FINAL_RESOLUTION
        } else {
            0.1 * old
        };
        self.radius = (0.5 * old).max(self.resolution);
        self.steps = 0;
    }

    /// Replaces the model by the one of least norm if that has had a far smaller gradient after three
    /// steps in a row: old curvature then does more harm than good (Powell 2009, section 5).
    fn compare_least_norm(&mut self) {
        let current = projected(self.model.gradient(), self.model.best_point());
        let least_norm = self.model.least_norm();
        let least = projected(&least_norm.0, self.model.best_point());
        if current < 3.0 * least {
            self.least_norm_wins = 0;
            return;
        }
        self.least_norm_wins += 1;
        if self.least_norm_wins >= 3 {
            self.model.replace(least_norm);
            self.least_norm_wins = 0;
        }
    }

    /// A point while others are pending: one that improves the geometry, or a random one.
    fn propose_extra(
        &mut self,
        targets: impl Iterator<Item = usize> + Clone,
        random: &mut Random,
        point: &mut [f64],
    ) -> Decision {
        if let Some((target, _)) = self.farthest(targets, 0.0) {
            self.maximize_lagrange(target, self.radius);
            self.write(point);
            return Decision::Evaluate(Purpose::Improvement { target });
        }
        let step = &mut self.scratch.step;
        step.resize(point.len(), 0.0);
        random.fill_normal(step);
        let share = self.radius / squared(step).sqrt().max(f64::MIN_POSITIVE);
        step.iter_mut().for_each(|d| *d *= share);
        self.write(point);
        Decision::Evaluate(Purpose::Extra)
    }

    /// The point farthest from the best one, if it is beyond this distance, that is no target yet.
    fn farthest(
        &self,
        targets: impl Iterator<Item = usize> + Clone,
        beyond: f64,
    ) -> Option<(usize, f64)> {
        let free = (0..self.model.len())
            .filter(|&t| t != self.model.best_index() && !targets.clone().any(|other| other == t));
        let distances = free.map(|t| (t, self.model.squared_distance(t).sqrt()));
        let farthest = distances.max_by(|a, b| a.1.total_cmp(&b.1));
        farthest.filter(|(_, distance)| *distance > beyond)
    }

    /// Whether a point is so near another that evaluating both is a waste.
    fn is_near(&self, point: &[f64], other: &[f64]) -> bool {
        let distance: f64 = point.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum();
        distance.sqrt() < 0.1 * self.resolution
    }

    /// The best point plus the step, inside the box.
    fn write(&self, point: &mut [f64]) {
        let moved = self.model.best_point().iter().zip(&self.scratch.step);
        point.iter_mut().zip(moved).for_each(|(to, (x, d))| *to = (x + d).clamp(0.0, 1.0));
    }

    /// Writes the bounds of steps.
    fn bound(&mut self) {
        let Scratch { low, high, step, .. } = &mut self.scratch;
        let best = self.model.best_point();
        low.clear();
        low.extend(best.iter().map(|x| -x));
        high.clear();
        high.extend(best.iter().map(|x| 1.0 - x));
        step.resize(best.len(), 0.0);
    }

    /// Writes the step that minimizes the model, and returns the predicted reduction.
    fn minimize_model(&mut self, radius: f64) -> f64 {
        self.bound();
        let Scratch { solver, low, high, step, .. } = &mut self.scratch;
        let region = Region { radius, low, high };
        solver.minimize(1.0, self.model.gradient(), self.model.curvature(), region, step);
        -self.model.change(step)
    }

    /// Writes the step that maximizes the absolute value of a Lagrange function.
    fn maximize_lagrange(&mut self, target: usize, radius: f64) {
        self.bound();
        let Scratch { solver, low, high, step, other, gradient, curvature } = &mut self.scratch;
        let n = step.len();
        let curvature = curvature.get_or_insert_with(|| Lower::identity(n));
        gradient.resize(n, 0.0);
        other.resize(n, 0.0);
        self.model.lagrange(target, gradient, curvature);
        let region = Region { radius, low, high };
        let down = solver.minimize(1.0, gradient, curvature, region, step);
        let up = solver.minimize(-1.0, gradient, curvature, region, other);
        if up > down {
            std::mem::swap(step, other);
        }
    }

    /// Checks the invariants of a deserialized state.
    pub(super) fn is_sound(&self, dimension: usize, capacity: usize) -> bool {
        let is_distance = |x: f64| x.is_finite() && x >= 0.0;
        self.model.is_sound(dimension, capacity)
            && (FINAL_RESOLUTION..=MAX_RADIUS).contains(&self.resolution)
            && (self.resolution..=MAX_RADIUS).contains(&self.radius)
            && self.errors.into_iter().all(is_distance)
            && self.reduced_at.is_none_or(f64::is_finite)
            && self.steps < crate::optimizers::saved::ID_HEADROOM
            && self.least_norm_wins < 3
            && match self.next {
                Next::Improve { beyond, .. } => is_distance(beyond),
                _ => true,
            }
    }
}

/// The greatest slope of a gradient at a point that does not lead out of the box.
fn projected(gradient: &[f64], point: &[f64]) -> f64 {
    let slopes = gradient.iter().zip(point).map(|(g, x)| match (*x <= 0.0, *x >= 1.0) {
        (true, _) => g.min(0.0),
        (_, true) => g.max(0.0),
        _ => *g,
    });
    slopes.fold(0.0f64, |max, g| max.max(g.abs()))
}
