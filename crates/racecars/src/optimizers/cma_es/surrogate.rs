//! A global linear or quadratic model of the objective, after Hansen, "A global surrogate assisted CMA-ES"
//! (GECCO 2019, lq-CMA-ES). A generation evaluates its candidates in the order of the model, until the
//! model ranks the latest evaluations as the objective does (Kendall's tau of at least 0.85). The model
//! ranks the other candidates.
//!
//! The model is fitted by weighted least squares to the better three quarters of the latest evaluations
//! of the run. It is linear at first, then has squares, then products of coordinates. Its minimum is a
//! candidate of the next generation.
//!
//! The model is of the point in the box, not of the unbounded coordinates of the search: mirrored at the
//! bounds, a smooth function is not smooth.
//!
//! Departures: the coordinates of the model are those in which the current distribution is standard normal, so
//! that it is invariant to affine transformations, and the normal equations have a small condition number.
//! They are solved by a Cholesky factorization with a ridge of relative size 10^-11, instead of by a
//! pseudoinverse. The minimum is that in a ball around the mean, so that a model that is linear or not convex
//! has one, too. On plateaus there is no model.

use super::distribution::{Distribution, longest_step};
use super::encoding::{bend, tangent};
use crate::linalg::cholesky::factorize;
use crate::linalg::product::{OuterProducts, dot};
use crate::linalg::triangular::Lower;
use crate::optimizers::trust_region::{Region, Solver};
use serde::{Deserialize, Serialize};

/// Up to this dimension the model has products of coordinates. A fit costs about n^6 / 4 operations.
const MAX_FULL_DIMENSION: usize = 24;

/// Up to this dimension there is a model, with squares of coordinates. A fit costs about 10 n^3 operations.
pub(super) const MAX_DIMENSION: usize = 100;

/// The rank correlation of model and objective with which a generation ends.
const TAU_THRESHOLD: f64 = 0.85;

/// The share of the stored evaluations that the model is fitted to: the best ones.
const FITTED_SHARE: f64 = 0.75;

/// The stored evaluations per coefficient of the largest model.
const ARCHIVE_FACTOR: usize = 2;

/// The fitted evaluations per coefficient from which a larger model is used.
const MIN_RELATIVE_SIZE: f64 = 1.1;

/// The weight of the best fitted evaluation, relative to the worst.
const MAX_WEIGHT: f64 = 20.0;

/// The ridge, relative to the diagonal of the normal equations.
const RIDGE: f64 = 1e-11;

/// The latest evaluations of a run, and how many the generation needs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Surrogate {
    /// Points in the unit box, n numbers per evaluation, oldest first.
    points: Vec<f64>,
    values: Vec<f64>,
    /// The number of outcomes after which the model is checked next.
    pub(super) required: usize,
    /// The minimum of the model at the end of the previous generation, in the unit box.
    pub(super) minimum: Option<Vec<f64>>,
}

/// The form of the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Linear,
    Diagonal,
    Full,
}

impl Form {
    fn coefficients(self, n: usize) -> usize {
        match self {
            Form::Linear => n + 1,
            Form::Diagonal => 2 * n + 1,
            Form::Full => (n + 1) * (n + 2) / 2,
        }
    }

    /// The largest form in this dimension.
    fn largest(n: usize) -> Self {
        if n <= MAX_FULL_DIMENSION { Form::Full } else { Form::Diagonal }
    }
}

/// The number of evaluations that are stored in dimension n, unless the population is larger.
pub(crate) fn capacity(n: usize) -> usize {
    ARCHIVE_FACTOR * Form::largest(n).coefficients(n)
}

impl Surrogate {
    /// The number of stored evaluations.
    fn len(&self) -> usize {
        self.values.len()
    }

    /// Stores an evaluation at coordinates of the search, unless the point is stored already: twice the same value
    /// would look like a plateau. The oldest ones are dropped.
    pub(super) fn push(&mut self, v: impl Iterator<Item = f64>, value: f64, lambda: usize) {
        let before = self.points.len();
        self.points.extend(v.map(bend));
        let (stored, latest) = self.points.split_at(before);
        let n = latest.len();
        if stored.chunks_exact(n).any(|point| point == latest) {
            self.points.truncate(before);
            return;
        }
        self.values.push(value);
        let capacity = capacity(n).max(lambda);
        if self.len() > capacity {
            let excess = self.len() - capacity;
            self.points.drain(..excess * n);
            self.values.drain(..excess);
        }
    }

    /// Begins a generation: a model needs some evaluations at first, and one in each generation.
    pub(super) fn begin_generation(&mut self, lambda: usize) {
        let least = 1 + (lambda / 50).max(4usize.saturating_sub(self.len()));
        self.required = least.min(lambda);
    }

    /// After a check that failed: half as many evaluations again.
    pub(super) fn require_more(&mut self, lambda: usize) {
        self.required = (self.required + self.required.div_ceil(2)).min(lambda);
    }

    /// Checks the invariants of a deserialized state.
    pub(super) fn is_sound(&self, n: usize, lambda: usize, told: usize) -> bool {
        self.len().checked_mul(n) == Some(self.points.len())
            && self.len() <= capacity(n).max(lambda)
            && self.values.iter().all(|value| value.is_finite())
            && self
                .points
                .iter()
                .chain(self.minimum.iter().flatten())
                .all(|x| (0.0..=1.0).contains(x))
            && self.minimum.as_ref().is_none_or(|minimum| minimum.len() == n)
            && self.required <= lambda
            && told < lambda
    }
}

/// A fitted model, and buffers.
#[derive(Debug, Default)]
pub(super) struct Model {
    form: Form,
    /// Of the constant, the coordinates, their squares, and their products by rows.
    coefficients: Vec<f64>,
    /// The values are relative to this one.
    offset: f64,
    /// The place of the mean in the unit box, and the slope of the encoding there.
    tangents: Vec<(f64, f64)>,
    /// A stored evaluation in standard coordinates.
    white: Vec<f64>,
    centred: Vec<f64>,
    /// The features of the fitted evaluations.
    features: Vec<f64>,
    weights: Vec<f64>,
    scales: Vec<f64>,
    order: Vec<usize>,
    gram: Option<(Lower, Lower)>,
    products: OuterProducts,
    hessian: Lower,
    solver: Solver,
}

impl Model {
    /// Fits the model to the evaluations. `false` if there are too few, or if the fit fails.
    pub(super) fn fit(&mut self, surrogate: &Surrogate, distribution: &Distribution) -> bool {
        let n = distribution.mean.len();
        let size = surrogate.len();
        let means = distribution.mean.iter().enumerate();
        self.tangents.clear();
        self.tangents.extend(means.map(|(i, &mean)| tangent(mean, distribution.deviation(i))));
        if size < 3 {
            return false;
        }
        let usable = FITTED_SHARE * size as f64;
        let is_enough = |form: &Form| usable >= MIN_RELATIVE_SIZE * form.coefficients(n) as f64;
        let forms = [Form::Full, Form::Diagonal].into_iter();
        let mut possible = forms.skip_while(|form| *form != Form::largest(n));
        self.form = possible.find(is_enough).unwrap_or(Form::Linear);
        let count = self.form.coefficients(n);
        let fitted = ((usable.ceil() as usize).max(count + 2)).min(size);

        self.order.clear();
        self.order.extend(0..size);
        // Of equal values the latest comes first.
        let values = &surrogate.values;
        self.order.sort_by(|&a, &b| values[a].total_cmp(&values[b]).then(b.cmp(&a)));
        // Where the objective has plateaus, the ranks of a smooth model mean nothing.
        if self.order.windows(2).any(|pair| values[pair[0]] == values[pair[1]]) {
            return false;
        }
        self.order.truncate(fitted);
        self.offset = values[self.order[0]];
        let spread = values[self.order[fitted - 1]] - self.offset;
        if !(spread > 0.0 && spread.is_finite()) {
            return false;
        }

        self.features.clear();
        self.weights.clear();
        for place in 0..fitted {
            let index = self.order[place];
            let point = &surrogate.points[index * n..(index + 1) * n];
            self.whiten(point.iter().copied(), distribution);
            add_features(self.form, &self.white, &mut self.features);
            let share = place as f64 / (fitted - 1).max(1) as f64;
            let weight = MAX_WEIGHT + share * (1.0 - MAX_WEIGHT);
            self.weights.push(weight * weight);
        }
        // Columns are scaled to unit length.
        self.scales.clear();
        self.scales.resize(count, 0.0);
        for (row, weight) in self.features.chunks_exact(count).zip(&self.weights) {
            self.scales.iter_mut().zip(row).for_each(|(sum, x)| *sum += weight * x * x);
        }
        for scale in &mut self.scales {
            *scale = if *scale > 0.0 { 1.0 / scale.sqrt() } else { 0.0 };
        }
        if !self.scales.iter().all(|scale| scale.is_finite()) {
            return false;
        }
        self.coefficients.clear();
        self.coefficients.resize(count, 0.0);
        let rows = self.features.chunks_exact_mut(count).zip(&self.weights);
        for ((row, weight), &index) in rows.zip(&self.order) {
            row.iter_mut().zip(&self.scales).for_each(|(x, scale)| *x *= scale);
            let target = weight * ((values[index] - self.offset) / spread);
            self.coefficients.iter_mut().zip(&*row).for_each(|(sum, x)| *sum += target * x);
        }
        let (gram, factor) = match &mut self.gram {
            Some(gram) if gram.0.order() == count => gram,
            gram => gram.insert((Lower::identity(count), Lower::identity(count))),
        };
        let rows = self.weights.iter().copied().zip(self.features.chunks_exact(count));
        gram.update(0.0, rows, &mut self.products);
        for i in 0..count {
            gram.row_mut(i)[i] += RIDGE;
        }
        if factorize(gram, factor).is_err() {
            return false;
        }
        factor.solve(&mut self.coefficients);
        factor.solve_transposed(&mut self.coefficients);
        for (coefficient, scale) in self.coefficients.iter_mut().zip(&self.scales) {
            *coefficient *= spread * scale;
        }
        self.coefficients.iter().all(|c| c.is_finite())
    }

    /// Writes the standard coordinates of a point of the unit box to `white`.
    fn whiten(&mut self, point: impl Iterator<Item = f64>, distribution: &Distribution) {
        let steps = point.zip(&self.tangents).map(|(x, (at, slope))| (x - at) / slope);
        self.centred.clear();
        self.centred.extend(steps.map(|step| step / distribution.sigma));
        self.white.resize(self.centred.len(), 0.0);
        distribution.covariance.whiten(&self.centred, &mut self.white);
    }

    /// The value of the model at the step y from the mean.
    pub(super) fn value(&mut self, y: &[f64], distribution: &Distribution) -> f64 {
        let Distribution { mean, sigma, .. } = distribution;
        self.whiten(y.iter().zip(mean).map(|(y, mean)| bend(mean + sigma * y)), distribution);
        self.value_here()
    }

    /// The value of the model at `white`.
    fn value_here(&mut self) -> f64 {
        self.features.clear();
        add_features(self.form, &self.white, &mut self.features);
        self.offset + dot(&self.features, &self.coefficients)
    }

    /// Whether the model ranks the latest evaluations as the objective does, when `evaluated` of a
    /// generation of `lambda` are evaluated.
    pub(super) fn is_accurate(
        &mut self,
        surrogate: &Surrogate,
        distribution: &Distribution,
        evaluated: usize,
        lambda: usize,
    ) -> bool {
        let n = distribution.mean.len();
        let wanted = (1.2 * evaluated as f64).min(0.75 * lambda as f64).max(15.0) as usize;
        let first = surrogate.len() - wanted.min(surrogate.len());
        let mut pairs = Vec::with_capacity(surrogate.len() - first);
        for index in first..surrogate.len() {
            let point = &surrogate.points[index * n..(index + 1) * n];
            self.whiten(point.iter().copied(), distribution);
            pairs.push((surrogate.values[index], self.value_here()));
        }
        pairs.len() >= 3 && kendall_tau(&pairs) >= TAU_THRESHOLD
    }

    /// The minimum of the model among likely steps, in the unit box.
    pub(super) fn minimum(&mut self, distribution: &Distribution) -> Option<Vec<f64>> {
        let n = distribution.mean.len();
        let (gradient, quadratic) = self.coefficients.get(1..)?.split_at_checked(n)?;
        let (squares, mut products) = quadratic.split_at(quadratic.len().min(n));
        self.hessian.reset(n);
        for i in 0..n {
            let row = self.hessian.row_mut(i);
            row[i] = 2.0 * squares.get(i).unwrap_or(&0.0);
            if self.form == Form::Full {
                let (head, rest) = products.split_at(i);
                row[..i].copy_from_slice(head);
                products = rest;
            }
        }
        // No farther than injected points.
        let radius = longest_step(n);
        let (low, high) = (vec![f64::NEG_INFINITY; n], vec![f64::INFINITY; n]);
        let region = Region { radius, low: &low, high: &high };
        let mut z = vec![0.0; n];
        if self.solver.minimize(1.0, gradient, &self.hessian, region, &mut z) <= 0.0 {
            return None;
        }
        distribution.covariance.color(&mut z);
        for (x, &(at, slope)) in z.iter_mut().zip(&self.tangents) {
            let to = at + slope * distribution.sigma * *x;
            // On a bound the candidate would draw the mean to where the encoding is flat.
            *x = if (0.0..=1.0).contains(&to) { to } else { at };
        }
        Some(z)
    }
}

/// Adds 1, the coordinates, their squares, and the products z_i z_j with j < i by rows.
fn add_features(form: Form, z: &[f64], features: &mut Vec<f64>) {
    features.push(1.0);
    features.extend_from_slice(z);
    if form != Form::Linear {
        features.extend(z.iter().map(|z| z * z));
    }
    if form == Form::Full {
        for (i, a) in z.iter().enumerate() {
            features.extend(z[..i].iter().map(|b| a * b));
        }
    }
}

/// Kendall's rank correlation. Ties count as neither concordant nor discordant.
fn kendall_tau(pairs: &[(f64, f64)]) -> f64 {
    let mut balance = 0.0;
    for (i, a) in pairs.iter().enumerate() {
        for b in &pairs[..i] {
            let sign = |d: f64| f64::from(i8::from(d > 0.0) - i8::from(d < 0.0));
            balance += sign(a.0 - b.0) * sign(a.1 - b.1);
        }
    }
    let count = pairs.len() as f64;
    balance / (0.5 * count * (count - 1.0)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn quadratic(x: &[f64]) -> f64 {
        let sum: f64 =
            x.iter().enumerate().map(|(i, x)| (i + 1) as f64 * (x - 0.3) * (x - 0.3)).sum();
        5.0 + sum + 0.5 * (x[0] - 0.3) * (x[1] - 0.3)
    }

    /// A surrogate with this many evaluations of a function of 4 coordinates.
    fn filled(count: usize, f: impl Fn(&[f64]) -> f64) -> (Surrogate, Distribution) {
        let (mut surrogate, mut random) = (Surrogate::default(), Random::new(1));
        for _ in 0..count {
            let point: Vec<f64> = (0..4).map(|_| 0.1 + 0.8 * random.unit()).collect();
            surrogate.push(point.iter().copied(), f(&point), 8);
        }
        (surrogate, Distribution::new(vec![0.5; 4], 0.2, false))
    }

    #[test]
    fn a_quadratic_function_is_modelled_exactly() {
        let (surrogate, distribution) = filled(30, quadratic);
        let mut model = Model::default();
        assert!(model.fit(&surrogate, &distribution));
        assert_eq!(model.form, Form::Full);
        let y = [0.4, -0.3, 0.2, 0.9];
        let x: Vec<f64> = y.iter().map(|y| 0.5 + 0.2 * y).collect();
        assert!((model.value(&y, &distribution) - quadratic(&x)).abs() < 1e-6);
        assert!(model.is_accurate(&surrogate, &distribution, 8, 8));
        let minimum = model.minimum(&distribution).unwrap();
        assert!(minimum.iter().all(|x| (x - 0.3).abs() < 1e-6), "{minimum:?}");
    }

    #[test]
    fn the_form_depends_on_the_number_of_evaluations() {
        for (count, form) in
            [(3, Form::Linear), (13, Form::Linear), (14, Form::Diagonal), (22, Form::Full)]
        {
            let (surrogate, distribution) = filled(count, |x| x[0] + 2.0 * x[1]);
            let mut model = Model::default();
            assert!(model.fit(&surrogate, &distribution), "{count}");
            assert_eq!(model.form, form, "{count}");
            // In the ball around the mean, even a linear model has a minimum. Here it is beyond the second bound.
            let minimum = model.minimum(&distribution).unwrap();
            assert!(count == 3 || minimum[0] < 0.4 && minimum[1] == 0.5, "{minimum:?}");
        }
        for flat in [|_: &[f64]| 1.0, |x: &[f64]| (10.0 * (x[0] + x[1])).round()] {
            let (surrogate, distribution) = filled(30, flat);
            assert!(!Model::default().fit(&surrogate, &distribution), "plateaus have no order");
        }
    }

    #[test]
    fn noise_is_not_modelled_accurately() {
        let random = std::cell::RefCell::new(Random::new(2));
        let (surrogate, distribution) = filled(30, |_| random.borrow_mut().unit());
        let mut model = Model::default();
        assert!(model.fit(&surrogate, &distribution));
        assert!(!model.is_accurate(&surrogate, &distribution, 8, 8));
    }

    #[test]
    fn old_evaluations_are_dropped_and_states_checked() {
        let (mut surrogate, _) = filled(100, quadratic);
        assert_eq!(surrogate.len(), 30);
        surrogate.begin_generation(8);
        assert_eq!(surrogate.required, 1);
        assert!(surrogate.is_sound(4, 8, 7) && !surrogate.is_sound(4, 8, 8));
        surrogate.require_more(8);
        surrogate.require_more(8);
        assert_eq!(surrogate.required, 3);
        surrogate.values[3] = f64::NAN;
        assert!(!surrogate.is_sound(4, 8, 0));
    }

    #[test]
    fn kendall_tau_compares_orders() {
        assert_eq!(kendall_tau(&[(1.0, 2.0), (2.0, 3.0), (3.0, 9.0)]), 1.0);
        assert_eq!(kendall_tau(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]), -1.0);
        assert_eq!(kendall_tau(&[(1.0, 1.0), (2.0, 1.0)]), 0.0);
    }
}
