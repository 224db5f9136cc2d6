//! The trust-region subproblem with bounds: minimize g.d + d.B.d / 2 over |d| <= radius and low <= d <= high.
//!
//! Without bounds it is solved nearly exactly by the method of J. J. Moré and D. C. Sorensen, "Computing a
//! trust region step", SIAM J. Sci. Stat. Comput. 4 (1983): the multiplier of the radius is found by
//! Newton's iterations on the Cholesky factor of B + multiplier I. Coordinates that would leave the bounds
//! are fixed there, the others are solved for again, and fixed coordinates that the model pulls inside
//! are released.
//!
//! A departure from BOBYQA, whose truncated conjugate gradients stop where they first meet the radius:
//! factors of this size are cheap next to an evaluation, and exact steps need fewer of those where B is
//! ill-conditioned.

use crate::linalg::cholesky::{extreme_singular_values, factorize};
use crate::linalg::product::{dot, squared};
use crate::linalg::triangular::Lower;

/// The steps allowed. `low` is not positive and `high` is not negative.
#[derive(Debug, Clone, Copy)]
pub(super) struct Region<'a> {
    pub(super) radius: f64,
    pub(super) low: &'a [f64],
    pub(super) high: &'a [f64],
}

/// The rounds of fixing and releasing coordinates.
const MAX_ROUNDS: usize = 12;

/// The iterations for the multiplier of the radius.
const MAX_ITERATIONS: usize = 25;

/// The relative error of a step's length at the radius.
const LENGTH_TOLERANCE: f64 = 0.02;

/// Buffers.
#[derive(Debug, Default)]
pub(super) struct Solver {
    /// The problem in units in which the radius is 1 and the greatest coefficient too.
    gradient: Vec<f64>,
    curvature: Lower,
    low: Vec<f64>,
    high: Vec<f64>,
    /// Whether a coordinate is at its bound.
    is_fixed: Vec<bool>,
    trial: Vec<f64>,
    product: Vec<f64>,
    reduced: Reduced,
}

/// The problem in the free coordinates.
#[derive(Debug, Default)]
struct Reduced {
    coordinates: Vec<usize>,
    gradient: Vec<f64>,
    curvature: Lower,
    shifted: Lower,
    factor: Lower,
    step: Vec<f64>,
    buffer: Vec<f64>,
}

impl Solver {
    /// Writes a step that (nearly) minimizes `sign` times the quadratic, and returns the decrease, which is
    /// 0 for the step 0.
    pub(super) fn minimize(
        &mut self,
        sign: f64,
        gradient: &[f64],
        curvature: &Lower,
        region: Region<'_>,
        step: &mut [f64],
    ) -> f64 {
        step.fill(0.0);
        let unit = self.scale(sign, gradient, curvature, region);
        if !(unit > 0.0 && unit.is_finite()) {
            return 0.0;
        }
        let n = gradient.len();
        self.is_fixed.clear();
        for i in 0..n {
            let (g, low, high) = (self.gradient[i], self.low[i], self.high[i]);
            self.is_fixed.push((low >= 0.0 && g >= 0.0) || (high <= 0.0 && g <= 0.0));
        }
        self.trial.clear();
        self.trial.resize(n, 0.0);
        let mut least = 0.0;
        let mut releases = 0;
        for _ in 0..MAX_ROUNDS {
            let has_violations = self.solve_free();
            let change = self.change_at_trial();
            if change < least {
                least = change;
                step.copy_from_slice(&self.trial);
            }
            // `product` is B times the trial step.
            if !has_violations && (releases > 2 || !self.release(&mut releases)) {
                break;
            }
        }
        if least >= 0.0 {
            least = self.descend(step);
        }
        step.iter_mut().for_each(|d| *d *= region.radius);
        for ((d, low), high) in step.iter_mut().zip(region.low).zip(region.high) {
            *d = d.clamp(*low, *high);
        }
        -least * unit
    }

    /// An estimate from above of the least eigenvalue of a matrix; 0 if it is not positive definite.
    pub(super) fn least_curvature(&mut self, curvature: &Lower) -> f64 {
        let Reduced { factor, buffer, .. } = &mut self.reduced;
        factor.reset(curvature.order());
        match factorize(curvature, factor) {
            Ok(()) => extreme_singular_values(factor, buffer).0.powi(2),
            Err(_) => 0.0,
        }
    }

    /// Copies the problem in units in which its numbers are at most 1, and returns the unit of values.
    fn scale(&mut self, sign: f64, gradient: &[f64], curvature: &Lower, region: Region<'_>) -> f64 {
        let (n, radius) = (gradient.len(), region.radius);
        let slope = gradient.iter().fold(0.0f64, |max, g| max.max((g * radius).abs()));
        let bend = (0..n).flat_map(|i| curvature.row(i));
        let bend = bend.fold(0.0f64, |max, b| max.max((b * radius * radius).abs()));
        let unit = slope.max(bend);
        self.gradient.clear();
        self.gradient.extend(gradient.iter().map(|g| sign * (g * radius / unit)));
        self.curvature.reset(n);
        for i in 0..n {
            let entries = self.curvature.row_mut(i).iter_mut().zip(curvature.row(i));
            entries.for_each(|(to, b)| *to = sign * (b * radius * radius / unit));
        }
        self.low.clear();
        self.low.extend(region.low.iter().map(|low| low / radius));
        self.high.clear();
        self.high.extend(region.high.iter().map(|high| high / radius));
        unit
    }

    /// Solves for the free coordinates, writes the trial step, and fixes those that leave the bounds.
    /// Whether there were any.
    fn solve_free(&mut self) -> bool {
        let Solver { gradient, curvature, low, high, is_fixed, trial, reduced, .. } = self;
        reduced.coordinates.clear();
        reduced.coordinates.extend((0..gradient.len()).filter(|&i| !is_fixed[i]));
        let fixed = (0..gradient.len()).filter(|&i| is_fixed[i]);
        let room = 1.0 - fixed.clone().map(|i| trial[i] * trial[i]).sum::<f64>();
        if reduced.coordinates.is_empty() || room <= 1e-8 {
            return false;
        }
        let entry = |i: usize, j: usize| curvature.row(i.max(j))[i.min(j)];
        reduced.gradient.clear();
        for &i in &reduced.coordinates {
            let pull: f64 = fixed.clone().map(|j| entry(i, j) * trial[j]).sum();
            reduced.gradient.push(gradient[i] + pull);
        }
        reduced.curvature.reset(reduced.coordinates.len());
        for (a, &i) in reduced.coordinates.iter().enumerate() {
            let row = reduced.curvature.row_mut(a).iter_mut();
            row.zip(&reduced.coordinates).for_each(|(to, &j)| *to = curvature.row(i)[j]);
        }
        reduced.solve(room.sqrt());
        let mut has_violations = false;
        for (&i, &d) in reduced.coordinates.iter().zip(&reduced.step) {
            is_fixed[i] = !(low[i]..=high[i]).contains(&d);
            has_violations |= is_fixed[i];
            trial[i] = d.clamp(low[i], high[i]);
        }
        has_violations
    }

    /// The change of the quadratic at the trial step.
    fn change_at_trial(&mut self) -> f64 {
        let Solver { gradient, curvature, trial, product, .. } = self;
        product.resize(trial.len(), 0.0);
        curvature.multiply_symmetric(trial, product);
        dot(gradient, trial) + 0.5 * dot(product, trial)
    }

    /// Releases the coordinates at bounds along which the quadratic decreases inwards. Whether there are any.
    fn release(&mut self, releases: &mut usize) -> bool {
        let Solver { gradient, low, high, is_fixed, trial, product, .. } = self;
        let mut is_any = false;
        for i in (0..gradient.len()).filter(|&i| low[i] < high[i]) {
            let slope = gradient[i] + product[i];
            let is_pulled = (trial[i] <= low[i] && slope < -1e-9)
                || (trial[i] >= high[i] && slope > 1e-9)
                // Solved for with other coordinates at their bounds.
                || (trial[i] > low[i] && trial[i] < high[i]);
            if is_fixed[i] && is_pulled {
                is_fixed[i] = false;
                is_any = true;
            }
        }
        *releases += 1;
        is_any
    }

    /// A step along the projected negative gradient, for cases in which nothing else decreased the
    /// quadratic. Returns its change.
    fn descend(&mut self, step: &mut [f64]) -> f64 {
        let length = squared(&self.gradient).sqrt();
        let mut share = 1.0 / length.max(f64::MIN_POSITIVE);
        for _ in 0..20 {
            for (i, d) in self.trial.iter_mut().enumerate() {
                *d = (-share * self.gradient[i]).clamp(self.low[i], self.high[i]);
            }
            let change = self.change_at_trial();
            if change < 0.0 {
                step.copy_from_slice(&self.trial);
                return change;
            }
            share *= 0.25;
        }
        0.0
    }
}

impl Reduced {
    /// Minimizes over the ball of this radius.
    fn solve(&mut self, radius: f64) {
        let Reduced { gradient, curvature, shifted, factor, step, buffer, .. } = self;
        let n = gradient.len();
        let slope = squared(gradient).sqrt();
        let entries =
            (0..n).map(|i| 2.0 * squared(&curvature.row(i)[..i]) + curvature.diagonal(i).powi(2));
        let norm = entries.sum::<f64>().sqrt();
        let least_diagonal = (0..n).map(|i| curvature.diagonal(i)).fold(f64::INFINITY, f64::min);
        // The multiplier is in between (Moré and Sorensen, section 3).
        let mut low = (slope / radius - norm).max(-least_diagonal).max(0.0);
        // A little more than the bound, so that there is a factor if the gradient is 0.
        let mut high = 1.01 * (slope / radius + norm);
        let mut multiplier = low;
        step.clear();
        step.resize(n, 0.0);
        for _ in 0..MAX_ITERATIONS {
            shifted.clone_from(curvature);
            (0..n).for_each(|i| shifted.row_mut(i)[i] += multiplier);
            factor.reset(n);
            if factorize(shifted, factor).is_err() {
                low = low.max(multiplier);
                multiplier = (low * high).sqrt().max(low + 0.05 * (high - low));
                continue;
            }
            step.iter_mut().zip(gradient.iter()).for_each(|(d, g)| *d = -g);
            factor.solve(step);
            factor.solve_transposed(step);
            let length = squared(step).sqrt();
            if !length.is_finite() {
                low = low.max(multiplier);
                multiplier = (low * high).sqrt().max(low + 0.05 * (high - low));
                continue;
            }
            if length <= radius && multiplier == 0.0 {
                return;
            }
            if (length - radius).abs() <= LENGTH_TOLERANCE * radius {
                break;
            }
            if length < radius {
                high = high.min(multiplier);
            } else {
                low = low.max(multiplier);
            }
            if length < radius && high - low <= 0.02 * high {
                // The hard case: the gradient has no component along the least eigenvector.
                extend(factor, step, radius, buffer);
                break;
            }
            buffer.clear();
            buffer.extend_from_slice(step);
            factor.solve(buffer);
            let newton =
                multiplier + length * length / squared(buffer) * (length - radius) / radius;
            multiplier = if newton > low && newton < high {
                newton
            } else if newton <= low && low == 0.0 {
                0.0
            } else {
                (low * high).sqrt().max(low + 0.05 * (high - low))
            };
        }
        let length = squared(step).sqrt();
        if length > radius {
            step.iter_mut().for_each(|d| *d *= radius / length);
        }
    }
}

/// Lengthens a step to the radius along a direction in which the nearly singular matrix L L^T is least,
/// found by inverse iterations.
fn extend(factor: &Lower, step: &mut [f64], radius: f64, direction: &mut Vec<f64>) {
    direction.clear();
    direction.extend((0..step.len()).map(|i| if i % 3 == 0 { 1.0 } else { -0.7 }));
    for _ in 0..3 {
        factor.solve(direction);
        factor.solve_transposed(direction);
        let length = squared(direction).sqrt();
        if !(length > 0.0 && length.is_finite()) {
            return;
        }
        direction.iter_mut().for_each(|x| *x /= length);
    }
    // |step + t direction| = radius, by the root of smaller size.
    let along = dot(step, direction);
    let rest = radius * radius - squared(step);
    let root = (along * along + rest.max(0.0)).sqrt();
    let t = if along > 0.0 { root - along } else { -root - along };
    step.iter_mut().zip(direction.iter()).for_each(|(d, u)| *d += t * u);
}
