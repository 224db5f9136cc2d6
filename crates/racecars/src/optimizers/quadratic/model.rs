//! The interpolation points and the quadratic model through them.
//!
//! The model is q(x) = f(b) + g.(x - b) + (x - b).B.(x - b) / 2 with b the best of the points. When a
//! point is exchanged, the model changes by the quadratic D that interpolates all residuals and has the
//! least norm |B_D|^2 / 2 + |g_D|^2 / (2 w), in units of length of the trust region. That is M. J. D. Powell's
//! update by the least Frobenius norm ("Least Frobenius norm updating of quadratic models that satisfy
//! interpolation conditions", Math. Program. 100, 2004), which has 1 / w = 0. Some passes of the solution
//! below come near to that limit.
//!
//! With w finite but large, D is the interpolant of a kernel, k(s, t) = w s.t + (s.t)^2 / 2 with s and t
//! relative to b: D = sum of c_j k(s_j, .), K c = residuals. K is positive definite, so that a fresh
//! Cholesky factor in every step replaces the updates of Powell's matrix H, their loss of accuracy and its
//! rescue, and any number of points has a model. K^-1 gives his other quantities: the Lagrange functions
//! l_t (the columns), alpha_t (the diagonal), beta (the kernel's power function), tau_t = l_t(x), and the
//! ratio sigma_t = alpha_t beta + tau_t^2 of the determinants after and before point t is exchanged for x
//! ("The BOBYQA algorithm for bound constrained optimization without derivatives", 2009, section 4).

use crate::linalg::cholesky::factorize;
use crate::linalg::product::{OuterProducts, add_scaled, dot, inner_products, squared};
use crate::linalg::triangular::Lower;
use serde::{Deserialize, Serialize};

/// w: the weight of the kernel's linear part.
const LINEAR_WEIGHT: f64 = 1e3;

/// Passes of [`System::solve_for_least_curvature`].
const PASSES: usize = 3;

/// The power of the squared distance, in radii, by which far points are preferred for exchange. A departure:
/// BOBYQA has 2, NEWUOA 3. From 3 to 10 there is little difference, and 2 takes twice as many
/// evaluations in the valley of Rosenbrock's function.
const DISTANCE_POWER: i32 = 6;

/// The greatest size of values in the model, whose squares are finite.
const MAX_VALUE: f64 = 1e120;

/// Points and the quadratic through them, in coordinates scaled to axes of length 1.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Model {
    dimension: usize,
    /// The points, one after the other.
    points: Vec<f64>,
    values: Vec<f64>,
    /// The index of the best point.
    best: usize,
    /// Values in the model are multiplied by this. 1 unless they are huge.
    unit: f64,
    /// The unit of length in the kernel.
    scale: f64,
    /// g.
    gradient: Vec<f64>,
    /// B.
    curvature: Lower,
    #[serde(skip)]
    system: System,
}

/// The kernel's matrix, a function of the points, the best one and the scale.
#[derive(Debug)]
struct System {
    /// The points relative to the best one, divided by the scale.
    offsets: Vec<f64>,
    matrix: Lower,
    /// L with L L^T = K. The best point, at which the kernel is 0, has a row of the identity.
    factor: Lower,
    /// L^-1.
    inverse: Lower,
    outer: OuterProducts,
    /// Residuals, then coefficients.
    coefficients: Vec<f64>,
    buffer: Vec<f64>,
    offset: Vec<f64>,
}

impl Default for System {
    fn default() -> Self {
        let empty = || Lower::identity(0);
        System {
            offsets: Vec::new(),
            matrix: empty(),
            factor: empty(),
            inverse: empty(),
            outer: OuterProducts::default(),
            coefficients: Vec::new(),
            buffer: Vec::new(),
            offset: Vec::new(),
        }
    }
}

/// k(s, t), given s.t.
fn kernel(product: f64) -> f64 {
    LINEAR_WEIGHT * product + 0.5 * product * product
}

impl Model {
    /// The model of least norm through some points and values, which are not empty. `scale` is the unit of
    /// length.
    pub(super) fn new(points: Vec<f64>, values: Vec<f64>, scale: f64) -> Self {
        let dimension = points.len() / values.len().max(1);
        let best = (0..values.len()).fold(0, |a, b| if values[b] < values[a] { b } else { a });
        let greatest = values.iter().fold(0.0f64, |max, value| max.max(value.abs()));
        let mut model = Model {
            dimension,
            points,
            values,
            best,
            unit: if greatest > 1e100 { 1.0 / greatest } else { 1.0 },
            scale,
            gradient: vec![0.0; dimension],
            curvature: Lower::identity(0),
            system: System::default(),
        };
        model.curvature.reset(dimension);
        model.fit();
        model
    }

    /// Rebuilds derived data after deserialization.
    pub(super) fn prepare(&mut self) {
        self.system.factorize(&self.points, self.dimension, self.best, self.scale);
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn point(&self, j: usize) -> &[f64] {
        &self.points[j * self.dimension..(j + 1) * self.dimension]
    }

    pub(super) fn best_index(&self) -> usize {
        self.best
    }

    pub(super) fn best_point(&self) -> &[f64] {
        self.point(self.best)
    }

    pub(super) fn best_value(&self) -> f64 {
        self.values[self.best]
    }

    pub(super) fn worst_value(&self) -> f64 {
        self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// The gradient at the best point.
    pub(super) fn gradient(&self) -> &[f64] {
        &self.gradient
    }

    pub(super) fn curvature(&self) -> &Lower {
        &self.curvature
    }

    /// A value in the model's units.
    pub(super) fn in_units(&self, value: f64) -> f64 {
        (value * self.unit).clamp(-MAX_VALUE, MAX_VALUE)
    }

    /// The squared distance of a point from the best one.
    pub(super) fn squared_distance(&self, j: usize) -> f64 {
        let pairs = self.point(j).iter().zip(self.best_point());
        pairs.map(|(a, b)| (a - b) * (a - b)).sum()
    }

    /// The model's change from the best point, in its units.
    pub(super) fn change(&self, step: &[f64]) -> f64 {
        dot(&self.gradient, step) + 0.5 * self.curvature.quadratic_form(step)
    }

    /// The difference of the worst and the best value, as a share of the best one.
    pub(super) fn relative_spread(&self) -> f64 {
        let (best, worst) = (self.in_units(self.best_value()), self.in_units(self.worst_value()));
        if worst > best { (worst - best) / best.abs() } else { 0.0 }
    }

    /// The place for a new point in a set of at most `capacity` points: the index of the one to
    /// replace, or the number of points to add it; `None` if it would not improve the geometry. A point that
    /// `is_better` always has a place. `radius` is the trust region's.
    pub(super) fn place(
        &mut self,
        point: &[f64],
        is_better: bool,
        radius: f64,
        capacity: usize,
    ) -> Option<usize> {
        let Weights { beta, size } = self.weigh(point);
        if self.len() < capacity && beta > 1e-6 * size {
            return Some(self.len());
        }
        let taus = &self.system.coefficients;
        let tau_of_best = 1.0 - taus.iter().sum::<f64>();
        let (mut place, mut greatest) = (None, if is_better { 0.0 } else { 1.0 });
        for t in (0..self.len()).filter(|&t| is_better || t != self.best) {
            let (alpha, tau) = match t == self.best {
                true => (self.system.alpha_of_best(self.best), tau_of_best),
                false => (self.system.alpha(t), taus[t]),
            };
            let sigma = alpha * beta + tau * tau;
            // The distance from what will be the best point.
            let distance = match is_better {
                true => self.point(t).iter().zip(point).map(|(a, b)| (a - b) * (a - b)).sum(),
                false => self.squared_distance(t),
            };
            let weighted = sigma * (distance / (radius * radius)).powi(DISTANCE_POWER).max(1.0);
            if weighted > greatest {
                (place, greatest) = (Some(t), weighted);
            }
        }
        if place.is_none() && is_better {
            // No sigma is a number: exchange the farthest.
            let farthest = |&a: &usize, &b: &usize| {
                self.squared_distance(a).total_cmp(&self.squared_distance(b))
            };
            place = (0..self.len()).max_by(farthest);
        }
        place
    }

    /// Computes tau_t for all points except the best one, into `coefficients`, and beta.
    fn weigh(&mut self, point: &[f64]) -> Weights {
        let System { offsets, factor, coefficients, buffer, offset, .. } = &mut self.system;
        let best = &self.points[self.best * self.dimension..][..self.dimension];
        offset.clear();
        offset.extend(point.iter().zip(best).map(|(x, b)| (x - b) / self.scale));
        buffer.clear();
        buffer.extend(offsets.chunks_exact(self.dimension).map(|s| kernel(dot(s, offset))));
        coefficients.clone_from(buffer);
        factor.solve(coefficients);
        let size = kernel(squared(offset));
        let beta = (size - squared(coefficients)).max(0.0);
        factor.solve_transposed(coefficients);
        Weights { beta, size }
    }

    /// Puts a point at a place given by [`Model::place`] and updates the model.
    pub(super) fn put(&mut self, place: usize, point: &[f64], value: f64, scale: f64) {
        let is_better = value < self.best_value();
        let old = self.best_point().to_vec();
        if place < self.len() {
            self.points[place * self.dimension..][..self.dimension].copy_from_slice(point);
            self.values[place] = value;
        } else {
            self.points.extend_from_slice(point);
            self.values.push(value);
        }
        if is_better || place == self.best {
            // If the best point was replaced by a worse one, another may be the best.
            let values = &self.values;
            self.best = (0..values.len()).fold(place.min(values.len() - 1), |a, b| {
                if values[b] < values[a] { b } else { a }
            });
            let step: Vec<f64> =
                self.best_point().iter().zip(&old).map(|(new, old)| new - old).collect();
            let mut product = vec![0.0; self.dimension];
            self.curvature.multiply_symmetric(&step, &mut product);
            add_scaled(&mut self.gradient, 1.0, &product);
        }
        self.scale = scale;
        self.fit();
    }

    /// Changes the model by the least interpolant of its residuals.
    fn fit(&mut self) {
        let Model { dimension, best, scale, .. } = *self;
        self.system.factorize(&self.points, dimension, best, scale);
        if !self.add_interpolant() {
            // Start again from the quadratic 0. Values beyond all bounds leave nothing better.
            self.forget();
            if !self.add_interpolant() {
                self.forget();
            }
        }
    }

    fn forget(&mut self) {
        self.gradient.fill(0.0);
        self.curvature.reset(self.dimension);
    }

    /// Adds the least interpolant of the residuals. Whether the model is still finite.
    fn add_interpolant(&mut self) -> bool {
        let best_value = self.in_units(self.best_value());
        let mut residuals = std::mem::take(&mut self.system.coefficients);
        residuals.clear();
        let n = self.dimension;
        for (j, s) in self.system.offsets.chunks_exact(n).enumerate() {
            let change = self.scale * dot(&self.gradient, s)
                + 0.5 * self.scale * self.scale * self.curvature.quadratic_form(s);
            residuals.push(self.in_units(self.values[j]) - best_value - change);
        }
        residuals[self.best] = 0.0;
        self.system.coefficients = residuals;
        let slope = self.system.solve_for_least_curvature(n);
        add_scaled(&mut self.gradient, 1.0 / self.scale, &slope);
        self.system.combine(self.scale, 1.0, &mut self.gradient, &mut self.curvature);
        self.curvature.is_sound(n) && self.gradient.iter().all(|g| g.is_finite())
    }

    /// The model of least norm through all values: its gradient at the best point and its curvature.
    pub(super) fn least_norm(&mut self) -> (Vec<f64>, Lower) {
        let mut curvature = Lower::identity(0);
        curvature.reset(self.dimension);
        let gradient = std::mem::replace(&mut self.gradient, vec![0.0; self.dimension]);
        let curvature = std::mem::replace(&mut self.curvature, curvature);
        if !self.add_interpolant() {
            self.forget();
        }
        (
            std::mem::replace(&mut self.gradient, gradient),
            std::mem::replace(&mut self.curvature, curvature),
        )
    }

    /// Replaces the quadratic, at the same points.
    pub(super) fn replace(&mut self, (gradient, curvature): (Vec<f64>, Lower)) {
        (self.gradient, self.curvature) = (gradient, curvature);
    }

    /// Writes the gradient at the best point and the curvature of the Lagrange function of point t, which
    /// is not the best one.
    pub(super) fn lagrange(&mut self, t: usize, gradient: &mut [f64], curvature: &mut Lower) {
        let System { factor, coefficients, .. } = &mut self.system;
        coefficients.clear();
        coefficients.resize(self.values.len(), 0.0);
        coefficients[t] = 1.0;
        factor.solve(coefficients);
        factor.solve_transposed(coefficients);
        gradient.fill(0.0);
        curvature.reset(self.dimension);
        self.system.combine(self.scale, 0.0, gradient, curvature);
    }

    /// Checks the invariants of a deserialized model.
    pub(super) fn is_sound(&self, dimension: usize, capacity: usize) -> bool {
        let Model { points, values, best, unit, scale, gradient, curvature, .. } = self;
        self.dimension == dimension
            && (1..=capacity).contains(&values.len())
            && points.len() == dimension * values.len()
            && points.iter().all(|x| (0.0..=1.0).contains(x))
            && values.iter().all(|value| value.is_finite())
            && values.get(*best).is_some_and(|best| values.iter().all(|value| value >= best))
            && *unit > 0.0
            && *unit <= 1.0
            && (1e-14..=10.0).contains(scale)
            && gradient.len() == dimension
            && gradient.iter().all(|g| g.is_finite())
            && curvature.is_sound(dimension)
    }
}

/// What a new point would do to the kernel's matrix.
struct Weights {
    /// The kernel's power function.
    beta: f64,
    /// k(x, x).
    size: f64,
}

impl System {
    /// Computes K, its factor and the factor's inverse.
    fn factorize(&mut self, points: &[f64], dimension: usize, best: usize, scale: f64) {
        let center = &points[best * dimension..][..dimension];
        self.offsets.clear();
        for point in points.chunks_exact(dimension) {
            self.offsets.extend(point.iter().zip(center).map(|(x, b)| (x - b) / scale));
        }
        let count = points.len() / dimension;
        self.matrix.reset(count);
        self.factor.reset(count);
        let (offsets, matrix) = (&self.offsets, &mut self.matrix);
        let row = |i: usize| &offsets[i * dimension..][..dimension];
        const BLOCK: usize = 4;
        for top in (0..count).step_by(BLOCK) {
            let bottom = count.min(top + BLOCK);
            inner_products(top..bottom, 0..bottom, dimension, row, row, |i, j, product| {
                if j <= i {
                    matrix.row_mut(i)[j] = kernel(product);
                }
            });
        }
        matrix.row_mut(best)[best] = 1.0;
        let greatest = (0..count).map(|i| matrix.diagonal(i)).fold(0.0, f64::max);
        // Points that coincide make K singular; a ridge then shares their residuals. It is relative to each
        // diagonal entry, since points may be at very different distances.
        let mut ridge = 1e-14;
        for i in 0..count {
            let diagonal = &mut matrix.row_mut(i)[i];
            *diagonal = diagonal.max(1e-28 * greatest);
        }
        loop {
            (0..count).for_each(|i| matrix.row_mut(i)[i] *= 1.0 + ridge);
            if factorize(matrix, &mut self.factor).is_ok() {
                break;
            }
            ridge *= 30.0;
            if ridge > 1e3 {
                // Only if K is not finite.
                self.factor = Lower::identity(count);
                break;
            }
        }
        self.factor.invert(&mut self.inverse);
    }

    /// Solves for the coefficients, given the residuals. Returns a linear part to be added, in units of the
    /// scale.
    ///
    /// Each pass takes over the gradient of the one before without its norm (a proximal point iteration),
    /// which divides the difference from Powell's limit of an infinite weight by about the weight.
    fn solve_for_least_curvature(&mut self, n: usize) -> Vec<f64> {
        let System { offsets, factor, coefficients, buffer, .. } = self;
        let mut slope = vec![0.0; n];
        buffer.clone_from(coefficients);
        for pass in 1..=PASSES {
            coefficients.clone_from(buffer);
            factor.solve(coefficients);
            factor.solve_transposed(coefficients);
            if pass == PASSES {
                break;
            }
            let mut more = vec![0.0; n];
            for (c, s) in coefficients.iter().zip(offsets.chunks_exact(n)) {
                add_scaled(&mut more, LINEAR_WEIGHT * c, s);
            }
            for (residual, s) in buffer.iter_mut().zip(offsets.chunks_exact(n)) {
                *residual -= dot(&more, s);
            }
            add_scaled(&mut slope, 1.0, &more);
        }
        slope
    }

    /// alpha_t: the diagonal entry of K^-1.
    fn alpha(&self, t: usize) -> f64 {
        self.inverse.column(t).map(|x| x * x).sum()
    }

    /// alpha of the best point, in the limit of a kernel with an infinitely weighted constant: the sum of
    /// K^-1 over all other points.
    fn alpha_of_best(&self, best: usize) -> f64 {
        let rows = (0..self.inverse.order()).filter(|&i| i != best);
        rows.map(|i| self.inverse.row(i).iter().sum::<f64>().powi(2)).sum()
    }

    /// Adds the quadratic with these coefficients of the kernel to `keep` times a matrix, and to a gradient.
    fn combine(&mut self, scale: f64, keep: f64, gradient: &mut [f64], curvature: &mut Lower) {
        let n = gradient.len();
        let System { offsets, coefficients, outer, .. } = self;
        for (c, s) in coefficients.iter().zip(offsets.chunks_exact(n)) {
            add_scaled(gradient, LINEAR_WEIGHT * c / scale, s);
        }
        let square = scale * scale;
        let weighted = coefficients.iter().map(|c| c / square).zip(offsets.chunks_exact(n));
        curvature.update(keep, weighted, outer);
    }
}
