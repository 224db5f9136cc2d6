//! The iterate of a descent: values, slopes and curvature, the step that they suggest, and what it is worth.

use super::subproblem::{Row, RowSlopes, Solution, solve};
use super::{MIN_RADIUS, RADIUS};
use crate::linalg::cholesky;
use crate::linalg::product::{dot, squared};
use crate::linalg::triangular::Lower;
use serde::{Deserialize, Serialize};

/// The first margin of constraints, as a share of their change over the axes.
const MARGIN: f64 = 1e-12;
/// The first price of violations, in units of the ratio of the slopes of objective and constraint; it grows by
/// this factor while a constraint is not met, up to a limit.
const PRICE: f64 = 10.0;
const MAX_PRICE: f64 = 1e12;
/// The weight of a violation in units of the multiplier.
const WEIGHT: f64 = 1.1;
/// The share of the mean of its diagonal that is added to that of B.
const RIDGE: f64 = 1e-12;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Iterate {
    /// x, scaled to axes of length 1.
    pub(super) point: Vec<f64>,
    /// The objective, then the constraints; empty until they are known.
    pub(super) values: Vec<f64>,
    /// Their slopes, one row after the other; those at the previous point until they are taken here.
    slopes: Vec<f64>,
    /// The step from there.
    step: Vec<f64>,
    /// B, an estimate of the curvature of the Lagrangian; of order 0 until there are slopes.
    curvature: Lower,
    /// Whether no step has told its scale yet.
    is_fresh: bool,
    multipliers: Vec<f64>,
    /// The prices of violations in the quadratic program: limits of the multipliers.
    prices: Vec<f64>,
    /// The weights of violations where steps are judged.
    weights: Vec<f64>,
    /// Whether no step has been planned with these slopes.
    is_first_plan: bool,
    pub(super) radius: f64,
    pub(super) margin: f64,
}

/// A step, and what it is expected to improve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Plan {
    step: Vec<f64>,
    multipliers: Vec<f64>,
    pub(super) predicted: f64,
    /// The largest coordinate of the step.
    pub(super) size: f64,
}

impl Plan {
    pub(super) fn is_sound(&self, dimension: usize, constraints: usize) -> bool {
        self.step.len() == dimension
            && self.multipliers.len() == constraints
            && self.step.iter().chain(&self.multipliers).all(|x| x.is_finite())
            && self.predicted.is_finite()
            && self.size.is_finite()
    }
}

impl Iterate {
    pub(super) fn new(point: Vec<f64>, constraints: usize) -> Self {
        Iterate {
            point,
            values: Vec::new(),
            slopes: Vec::new(),
            step: Vec::new(),
            curvature: Lower::identity(0),
            is_fresh: true,
            multipliers: vec![0.0; constraints],
            prices: Vec::new(),
            weights: Vec::new(),
            is_first_plan: true,
            radius: RADIUS,
            margin: MARGIN,
        }
    }

    /// The slopes of the objective (row 0), or of a constraint.
    fn slopes_of(&self, row: usize) -> &[f64] {
        &self.slopes[row * self.point.len()..][..self.point.len()]
    }

    pub(super) fn has_slopes(&self) -> bool {
        self.slopes.len() == self.point.len() * self.values.len()
    }

    pub(super) fn forget_curvature(&mut self) {
        self.curvature = Lower::identity(0);
        self.is_fresh = true;
        self.step.clear();
    }

    /// The slope of the Lagrangian along a coordinate.
    fn lagrangian_slope(&self, slopes: &[f64], index: usize) -> f64 {
        let n = self.point.len();
        let of_constraints = self.multipliers.iter().enumerate();
        slopes[index] + of_constraints.map(|(j, by)| by * slopes[(j + 1) * n + index]).sum::<f64>()
    }

    /// Takes the slopes at the point, and learns the curvature from their change.
    pub(super) fn take_slopes(&mut self, slopes: Vec<f64>) {
        let n = self.point.len();
        if self.step.len() == n && self.curvature.order() == n {
            let change: Vec<f64> = (0..n)
                .map(|i| self.lagrangian_slope(&slopes, i) - self.lagrangian_slope(&self.slopes, i))
                .collect();
            let step = std::mem::take(&mut self.step);
            self.learn_curvature(&step, change);
        }
        self.step.clear();
        self.slopes = slopes;
        self.is_first_plan = true;
        if self.curvature.order() != n {
            self.reset_curvature();
        }
    }

    fn reset_curvature(&mut self) {
        let n = self.point.len();
        let scale = squared(self.slopes_of(0)).sqrt().max(1e-12) / self.radius;
        self.curvature = scaled_identity(n, scale);
        self.is_fresh = true;
    }

    /// The damped update of B, procedure 18.2 of Nocedal and Wright.
    fn learn_curvature(&mut self, step: &[f64], mut change: Vec<f64>) {
        let n = step.len();
        let product = dot(step, &change);
        if self.is_fresh && product > 1e-300 {
            // Eq. (6.20).
            self.curvature = scaled_identity(n, (squared(&change) / product).clamp(1e-8, 1e16));
            self.is_fresh = false;
        }
        let mut old = vec![0.0; n];
        self.curvature.multiply_symmetric(step, &mut old);
        let curved = dot(step, &old);
        if curved <= 0.0 {
            return;
        }
        if product < 0.2 * curved {
            let share = 0.8 * curved / (curved - product);
            for (y, old) in change.iter_mut().zip(&old) {
                *y = share * *y + (1.0 - share) * old;
            }
        }
        let product = dot(step, &change);
        if product <= 1e-300 {
            return;
        }
        for i in 0..n {
            for (j, entry) in self.curvature.row_mut(i).iter_mut().enumerate() {
                *entry += change[i] * change[j] / product - old[i] * old[j] / curved;
            }
        }
    }

    /// The factor of B with a ridge. If B is not positive definite, it is forgotten.
    fn factor(&mut self) -> Option<Lower> {
        let n = self.point.len();
        let mut factor = Lower::identity(n);
        for _ in 0..2 {
            let mean = (0..n).map(|i| self.curvature.diagonal(i)).sum::<f64>() / n as f64;
            let mut matrix = self.curvature.clone();
            (0..n).for_each(|i| matrix.row_mut(i)[i] += RIDGE * mean);
            if cholesky::factorize(&matrix, &mut factor).is_ok() {
                return Some(factor);
            }
            self.reset_curvature();
        }
        None
    }

    /// By how much constraint j must stay below 0.
    fn margin(&self, j: usize) -> f64 {
        self.margin * squared(self.slopes_of(j + 1)).sqrt()
    }

    /// The weighted violations of these values.
    pub(super) fn cost(&self, values: &[f64]) -> f64 {
        let by = |(j, weight): (usize, &f64)| weight * (values[j + 1] + self.margin(j)).max(0.0);
        self.weights.iter().enumerate().map(by).sum()
    }

    /// By how much these values are better than those of the iterate.
    pub(super) fn improvement(&self, values: &[f64]) -> f64 {
        self.values[0] + self.cost(&self.values) - values[0] - self.cost(values)
    }

    /// The step of the quadratic program. With a step that was tried and its values, the one that is corrected
    /// for the curvature of the constraints.
    pub(super) fn plan(&mut self, tried: Option<(&Plan, &[f64])>) -> Option<Plan> {
        let (n, count) = (self.point.len(), self.multipliers.len());
        let factor = self.factor()?;
        let steepness = squared(self.slopes_of(0)).sqrt();
        let unit_price =
            |own: &Self, j: usize| steepness / squared(own.slopes_of(j + 1)).sqrt().max(1e-12);
        if self.prices.len() != count {
            self.prices = (0..count).map(|j| PRICE * unit_price(self, j)).collect();
        }
        // The constraints where the step ends, as far as they are linear.
        let offset = |own: &Self, j: usize| match tried {
            None => own.values[j + 1],
            Some((plan, values)) => values[j + 1] - dot(own.slopes_of(j + 1), &plan.step),
        };
        let offsets: Vec<f64> = (0..count).map(|j| offset(self, j)).collect();
        let ends = |own: &Self, i: usize| {
            let x = own.point[i];
            [(-x).max(-own.radius), (1.0 - x).min(own.radius)]
        };
        let mut found;
        let mut round = 0;
        loop {
            let mut rows: Vec<Row<'_>> = (0..count)
                .map(|j| Row {
                    slopes: RowSlopes::Dense(self.slopes_of(j + 1)),
                    offset: offsets[j] + self.margin(j),
                    limit: self.prices[j],
                })
                .collect();
            for i in 0..n {
                let [low, high] = ends(self, i);
                for (sign, end) in [(1.0, -high), (-1.0, low)] {
                    let slopes = RowSlopes::Coordinate(i, sign);
                    rows.push(Row { slopes, offset: end, limit: f64::INFINITY });
                }
            }
            found = solve(&factor, self.slopes_of(0), &rows);
            for (i, d) in found.step.iter_mut().enumerate() {
                let [low, high] = ends(self, i);
                *d = d.clamp(low, high);
            }
            let is_missed = |j: usize| {
                found.multipliers[j] >= self.prices[j] * (1.0 - 1e-9)
                    && dot(self.slopes_of(j + 1), &found.step) + offsets[j] > 0.0
                    && self.prices[j] < MAX_PRICE * unit_price(self, j)
            };
            let missed: Vec<usize> = (0..count).filter(|&j| is_missed(j)).collect();
            if missed.is_empty() || round == 2 {
                break;
            }
            missed.into_iter().for_each(|j| self.prices[j] *= PRICE);
            round += 1;
        }
        let Solution { step, mut multipliers } = found;
        multipliers.truncate(count);
        if step.iter().chain(&multipliers).any(|x| !x.is_finite()) {
            return None;
        }
        if tried.is_none() {
            self.weigh(&multipliers);
        }
        let linear = |row: usize| self.values[row] + dot(self.slopes_of(row), &step);
        let expected: Vec<f64> = (0..=count).map(linear).collect();
        let predicted = self.improvement(&expected) - 0.5 * self.curvature.quadratic_form(&step);
        let size = step.iter().fold(0.0, |size: f64, d| size.max(d.abs()));
        predicted.is_finite().then_some(Plan { step, multipliers, predicted, size })
    }

    /// The weights follow the multipliers, down only by half (Powell, "A fast algorithm for nonlinearly
    /// constrained optimization calculations", 1978), and only once for the same slopes.
    fn weigh(&mut self, multipliers: &[f64]) {
        if self.weights.len() != multipliers.len() {
            self.weights = vec![0.0; multipliers.len()];
        }
        for (weight, by) in self.weights.iter_mut().zip(multipliers) {
            let wanted = WEIGHT * by;
            let least = if self.is_first_plan { 0.5 * (*weight + wanted) } else { *weight };
            *weight = wanted.max(least);
        }
        self.is_first_plan = false;
    }

    /// Writes the end of a step.
    pub(super) fn write(&self, plan: &Plan, point: &mut [f64]) {
        for ((to, x), d) in point.iter_mut().zip(&self.point).zip(&plan.step) {
            *to = (x + d).clamp(0.0, 1.0);
        }
    }

    /// Moves to the end of a step.
    pub(super) fn accept(&mut self, plan: &Plan, values: Vec<f64>, improvement: f64) {
        let mut moved = self.point.clone();
        self.write(plan, &mut moved);
        self.step = moved.iter().zip(&self.point).map(|(new, old)| new - old).collect();
        let size = self.step.iter().fold(0.0, |size: f64, d| size.max(d.abs()));
        if improvement > 0.7 * plan.predicted && size > 0.8 * self.radius {
            self.radius = (2.5 * self.radius).min(1.0);
        } else if improvement < 0.25 * plan.predicted {
            self.radius = (0.5 * size).max(MIN_RADIUS);
        }
        (self.point, self.values) = (moved, values);
        self.multipliers.clone_from(&plan.multipliers);
    }

    /// Checks the invariants of a deserialized state.
    pub(super) fn is_sound(&self, dimension: usize, constraints: usize) -> bool {
        let is_finite = |x: &[f64]| x.iter().all(|x| x.is_finite());
        let count = constraints + 1;
        let is_empty_or = |x: &[f64], length: usize| x.is_empty() || x.len() == length;
        self.point.len() == dimension
            && self.point.iter().all(|x| (0.0..=1.0).contains(x))
            && is_empty_or(&self.values, count)
            && is_empty_or(&self.slopes, count * dimension)
            && is_empty_or(&self.step, dimension)
            && (self.step.is_empty() || !self.slopes.is_empty())
            && [0, dimension].iter().any(|&order| self.curvature.is_sound(order))
            && (self.slopes.is_empty() || self.values.len() == count)
            && self.multipliers.len() == constraints
            && is_empty_or(&self.prices, constraints)
            && is_empty_or(&self.weights, constraints)
            && [
                &self.values,
                &self.slopes,
                &self.step,
                &self.multipliers,
                &self.prices,
                &self.weights,
            ]
            .into_iter()
            .all(|x| is_finite(x))
            && (0.0..=1.0).contains(&self.radius)
            && (MARGIN..=1e-5).contains(&self.margin)
    }
}

fn scaled_identity(order: usize, scale: f64) -> Lower {
    let mut matrix = Lower::identity(order);
    (0..order).for_each(|i| matrix.row_mut(i)[i] = scale);
    matrix
}
