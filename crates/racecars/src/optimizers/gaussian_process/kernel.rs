//! The covariance of the model, and its likelihood.
//!
//! One Matern-5/2 kernel over all features, with a length scale for each (automatic relevance
//! determination): k = (1 + a + a²/3) exp(-a) with a² = 5 r² and r² = sum of d_j² / l_j², where d_j is the
//! difference of a numeric feature, and 0 or 1 for equal and different categories. That is the kernel of
//! one-hot vectors, so it is positive definite in any mixture of features.
//!
//! Length scales l and the noise, a share of the signal's variance, maximize the posterior density. The
//! mean and the variance of the signal have closed forms (Rasmussen and Williams, "Gaussian Processes for
//! Machine Learning", sections 2.7 and 5.4.1; Jones et al., "Efficient global optimization", 1998).
//! The prior of the length scales grows with the square root of the dimension (Hvarfner et al., "Vanilla
//! Bayesian optimization performs great in high dimensions", 2024).

use super::descent;
use crate::linalg::cholesky::{NotPositiveDefinite, factorize, invert};
use crate::linalg::product::dot;
use crate::linalg::triangular::Lower;
use serde::{Deserialize, Serialize};

/// The bounds of log l.
const LOG_SCALE_BOUNDS: (f64, f64) = (-5.0, 8.0);

/// The bounds of the logarithm of the noise.
const LOG_NOISE_BOUNDS: (f64, f64) = (-18.0, 2.0);

/// The prior: log (l / sqrt n) and the logarithm of the noise are normally distributed. Chosen by
/// measurement.
const LOG_SCALE_CENTER: f64 = -1.0;
const LOG_SCALE_DEVIATION: f64 = 1.4;
const LOG_NOISE_CENTER: f64 = -10.0;
const LOG_NOISE_DEVIATION: f64 = 2.0;
/// The same if the objective is known to be noisy: from a hundredth of the signal's deviation to all of it.
const NOISY_LOG_NOISE_CENTER: f64 = -4.0;
const NOISY_LOG_NOISE_DEVIATION: f64 = 3.0;

/// A fit ends when the logarithm of the density gains less than this share.
const FIT_TOLERANCE: f64 = 1e-4;

/// The variance of the signal has an inverse gamma prior around 1, worth this many points.
const SIGNAL_PRIOR_POINTS: f64 = 2.0;

/// The hyperparameters of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Kernel {
    /// log l_j for each feature, then the logarithm of the noise.
    parameters: Vec<f64>,
    /// Whether the objective is known to be noisy.
    is_noisy: bool,
}

/// A kernel with its parameters as the loops need them.
#[derive(Debug, Clone, Default)]
pub(super) struct Covariance {
    /// 1 / l_j².
    weights: Vec<f64>,
    /// The number of numeric features.
    numeric: usize,
    pub(super) noise: f64,
}

impl Kernel {
    /// The most likely kernel a priori.
    pub(super) fn new(features: usize, is_noisy: bool) -> Self {
        let mut parameters = vec![log_scale_center(features); features];
        parameters.push(log_noise_prior(is_noisy).0);
        let mut kernel = Kernel { parameters, is_noisy };
        kernel.confine();
        kernel
    }

    fn confine(&mut self) {
        let (low, high) = bounds(self.parameters.len());
        let ends = low.iter().zip(&high);
        self.parameters.iter_mut().zip(ends).for_each(|(x, (low, high))| *x = x.clamp(*low, *high));
    }

    pub(super) fn covariance(&self, numeric: usize) -> Covariance {
        let (log_noise, log_scales) = self.parameters.split_last().unwrap_or((&0.0, &[]));
        Covariance {
            weights: log_scales.iter().map(|x| (-2.0 * x).exp()).collect(),
            numeric,
            noise: log_noise.exp(),
        }
    }

    /// log l_j of each feature.
    pub(super) fn log_scales(&self) -> &[f64] {
        &self.parameters[..self.parameters.len() - 1]
    }

    /// Makes the noise larger, because the matrix was not positive definite. False if it is at its bound.
    pub(super) fn raise_noise(&mut self) -> bool {
        let Some(noise) = self.parameters.last_mut() else { return false };
        let is_possible = *noise < LOG_NOISE_BOUNDS.1;
        *noise = (*noise + 2.0).min(LOG_NOISE_BOUNDS.1);
        is_possible
    }

    /// Checks the invariants of a deserialized state.
    pub(super) fn is_sound(&self, features: usize) -> bool {
        let (low, high) = bounds(self.parameters.len());
        let mut ends = self.parameters.iter().zip(low.iter().zip(&high));
        self.parameters.len() == features + 1
            && ends.all(|(x, (low, high))| (*low..=*high).contains(x))
    }

    /// Maximizes the posterior density of the parameters given the values at some points, whose features
    /// are stored one after the other.
    pub(super) fn fit(&mut self, rows: &[f64], values: &[f64], numeric: usize, evaluations: usize) {
        let (low, high) = bounds(self.parameters.len());
        let mut scratch = Scratch::default();
        let (mut parameters, is_noisy) = (self.parameters.clone(), self.is_noisy);
        descent::minimize(
            &mut parameters,
            &low,
            &high,
            (evaluations, FIT_TOLERANCE),
            |parameters, gradient| {
                let kernel = Kernel { parameters: parameters.to_vec(), is_noisy };
                kernel
                    .negative_log_density(rows, values, numeric, &mut scratch, gradient)
                    .unwrap_or(f64::INFINITY)
            },
        );
        if parameters.iter().all(|x| x.is_finite()) {
            self.parameters = parameters;
        }
    }

    /// The negative logarithm of the posterior density, up to a constant, and its gradient.
    fn negative_log_density(
        &self,
        rows: &[f64],
        values: &[f64],
        numeric: usize,
        scratch: &mut Scratch,
        gradient: &mut [f64],
    ) -> Result<f64, NotPositiveDefinite> {
        let covariance = self.covariance(numeric);
        let n = covariance.weights.len();
        let Scratch { matrix, slopes, factor, columns, inverse } = scratch;
        let count = values.len();
        matrix.resize(count);
        slopes.resize(count);
        factor.resize(count);
        for a in 0..count {
            let x = &rows[a * n..(a + 1) * n];
            for b in 0..a {
                let r2 = covariance.squared_distance(x, &rows[b * n..(b + 1) * n]);
                let (k, slope) = matern(r2);
                matrix.row_mut(a)[b] = k;
                slopes.row_mut(a)[b] = slope;
            }
            matrix.row_mut(a)[a] = 1.0 + covariance.noise;
        }
        factorize(matrix, factor)?;
        let Weights { alpha, signal, .. } = Weights::new(factor, values);
        invert(factor, columns, inverse);
        let log_determinant: f64 = (0..count).map(|i| factor.diagonal(i).ln()).sum();
        let mut density =
            -0.5 * (count as f64 + SIGNAL_PRIOR_POINTS) * signal.ln() - log_determinant;

        gradient.fill(0.0);
        let (noise_gradient, scale_gradient) =
            gradient.split_last_mut().ok_or(NotPositiveDefinite)?;
        for a in 0..count {
            let x = &rows[a * n..(a + 1) * n];
            for b in 0..a {
                // d density / d r² of this pair, both halves of the matrix.
                let pull = alpha[a] * alpha[b] / signal - inverse.row(a)[b];
                let factor = pull * slopes.row(a)[b];
                covariance.add_differences(factor, x, &rows[b * n..(b + 1) * n], scale_gradient);
            }
            *noise_gradient +=
                0.5 * covariance.noise * (alpha[a] * alpha[a] / signal - inverse.diagonal(a));
        }
        // d r² / d log l_j = -2 d_j² / l_j².
        for (slope, weight) in scale_gradient.iter_mut().zip(&covariance.weights) {
            *slope *= -2.0 * weight;
        }
        let center = log_scale_center(n);
        for (x, slope) in self.log_scales().iter().zip(scale_gradient) {
            let off = (x - center) / LOG_SCALE_DEVIATION;
            density -= 0.5 * off * off;
            *slope -= off / LOG_SCALE_DEVIATION;
        }
        let (center, deviation) = log_noise_prior(self.is_noisy);
        let off = (self.parameters[n] - center) / deviation;
        density -= 0.5 * off * off;
        *noise_gradient -= off / deviation;
        gradient.iter_mut().for_each(|slope| *slope = -*slope);
        Ok(-density)
    }
}

/// The center and the deviation of the logarithm of the noise a priori.
fn log_noise_prior(is_noisy: bool) -> (f64, f64) {
    match is_noisy {
        true => (NOISY_LOG_NOISE_CENTER, NOISY_LOG_NOISE_DEVIATION),
        false => (LOG_NOISE_CENTER, LOG_NOISE_DEVIATION),
    }
}

/// The center of log l a priori: distances in a cube grow with the square root of its dimension.
fn log_scale_center(features: usize) -> f64 {
    LOG_SCALE_CENTER + 0.5 * (features.max(1) as f64).ln()
}

fn bounds(count: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut low, mut high) = (vec![LOG_SCALE_BOUNDS.0; count], vec![LOG_SCALE_BOUNDS.1; count]);
    if let (Some(low), Some(high)) = (low.last_mut(), high.last_mut()) {
        (*low, *high) = LOG_NOISE_BOUNDS;
    }
    (low, high)
}

#[derive(Debug)]
struct Scratch {
    matrix: Lower,
    /// dk / d r² of each pair.
    slopes: Lower,
    factor: Lower,
    columns: Vec<f64>,
    inverse: Lower,
}

impl Default for Scratch {
    fn default() -> Self {
        let empty = || Lower::identity(0);
        Scratch {
            matrix: empty(),
            slopes: empty(),
            factor: empty(),
            columns: Vec::new(),
            inverse: empty(),
        }
    }
}

/// The mean, the variance of the signal, and the weights K^-1 (y - mean) of the values.
#[derive(Debug, Default)]
pub(super) struct Weights {
    pub(super) alpha: Vec<f64>,
    pub(super) mean: f64,
    pub(super) signal: f64,
}

impl Weights {
    /// From the factor of K and the values y, which are as many as its first rows.
    pub(super) fn new(factor: &Lower, values: &[f64]) -> Self {
        let mut ones = vec![1.0; values.len()];
        factor.solve_first(&mut ones);
        let mut alpha = values.to_vec();
        factor.solve_first(&mut alpha);
        let mean = dot(&ones, &alpha) / dot(&ones, &ones).max(f64::MIN_POSITIVE);
        alpha.iter_mut().zip(&ones).for_each(|(a, one)| *a -= mean * one);
        let count = values.len() as f64;
        let signal = (dot(&alpha, &alpha) + SIGNAL_PRIOR_POINTS) / (count + SIGNAL_PRIOR_POINTS);
        factor.solve_first_transposed(&mut alpha);
        Weights { alpha, mean, signal }
    }

    /// The logarithm of the density of the values, up to a term that only depends on the factor.
    pub(super) fn log_density(&self) -> f64 {
        -0.5 * (self.alpha.len() as f64 + SIGNAL_PRIOR_POINTS) * self.signal.ln()
    }
}

impl Covariance {
    /// r².
    #[inline]
    pub(super) fn squared_distance(&self, a: &[f64], b: &[f64]) -> f64 {
        let (weights, categories) = self.weights.split_at(self.numeric);
        let ((a, a_rest), (b, b_rest)) = (a.split_at(self.numeric), b.split_at(self.numeric));
        let (wide_w, w) = weights.as_chunks::<4>();
        let (wide_a, a) = a.as_chunks::<4>();
        let (wide_b, b) = b.as_chunks::<4>();
        let mut sums = [0.0; 4];
        for ((w, a), b) in wide_w.iter().zip(wide_a).zip(wide_b) {
            for lane in 0..4 {
                let difference = a[lane] - b[lane];
                sums[lane] += w[lane] * difference * difference;
            }
        }
        let mut sum: f64 = sums.iter().sum();
        for ((w, a), b) in w.iter().zip(a).zip(b) {
            sum += w * (a - b) * (a - b);
        }
        for ((w, a), b) in categories.iter().zip(a_rest).zip(b_rest) {
            sum += if a == b { 0.0 } else { *w };
        }
        sum
    }

    /// sums_j += factor d_j².
    #[inline]
    fn add_differences(&self, factor: f64, a: &[f64], b: &[f64], sums: &mut [f64]) {
        let (numeric, categories) = sums.split_at_mut(self.numeric);
        let ((a, a_rest), (b, b_rest)) = (a.split_at(self.numeric), b.split_at(self.numeric));
        for ((sum, a), b) in numeric.iter_mut().zip(a).zip(b) {
            *sum += factor * (a - b) * (a - b);
        }
        for ((sum, a), b) in categories.iter_mut().zip(a_rest).zip(b_rest) {
            *sum += if a == b { 0.0 } else { factor };
        }
    }

    /// Writes the covariances of a point with each of the rows.
    pub(super) fn with_rows(&self, x: &[f64], rows: &[f64], out: &mut [f64]) {
        for (k, row) in out.iter_mut().zip(rows.chunks_exact(self.weights.len().max(1))) {
            *k = matern(self.squared_distance(x, row)).0;
        }
    }

    /// Adds `factors[i] dk(x, row i) / dx_j` to `gradient[j]`, for the numeric features.
    pub(super) fn add_gradient(
        &self,
        x: &[f64],
        rows: &[f64],
        factors: impl Iterator<Item = f64>,
        gradient: &mut [f64],
    ) {
        let gradient = &mut gradient[..self.numeric];
        for (row, factor) in rows.chunks_exact(self.weights.len().max(1)).zip(factors) {
            let slope = 2.0 * factor * matern(self.squared_distance(x, row)).1;
            let terms = self.weights.iter().zip(x).zip(row);
            for (sum, ((weight, x), row)) in gradient.iter_mut().zip(terms) {
                *sum += slope * weight * (x - row);
            }
        }
    }
}

/// The Matern-5/2 kernel and its derivative by r².
#[inline]
fn matern(squared: f64) -> (f64, f64) {
    let a = (5.0 * squared).sqrt();
    let decay = (-a).exp();
    ((1.0 + a + a * a / 3.0) * decay, -5.0 / 6.0 * (1.0 + a) * decay)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Points with two numeric features and a category, and values that depend on the first and the last.
    fn data(count: usize) -> (Vec<f64>, Vec<f64>) {
        let mut random = Random::new(1);
        let mut rows = Vec::new();
        for _ in 0..count {
            rows.extend([random.unit(), random.unit(), random.index(3) as f64]);
        }
        let values =
            rows.chunks_exact(3).map(|x| (9.0 * x[0]).sin() + if x[2] == 1.0 { 1.0 } else { 0.0 });
        let values = values.collect();
        (rows, values)
    }

    #[test]
    fn the_gradient_of_the_density_is_its_slope() {
        let (rows, values) = data(20);
        let mut kernel = Kernel::new(3, false);
        kernel.parameters.copy_from_slice(&[-0.5, 0.3, 0.8, -4.0]);
        let mut gradient = vec![0.0; 4];
        let mut scratch = Scratch::default();
        let mut density = |kernel: &Kernel, gradient: &mut [f64]| {
            kernel.negative_log_density(&rows, &values, 2, &mut scratch, gradient).unwrap()
        };
        density(&kernel, &mut gradient);
        for (i, slope) in gradient.into_iter().enumerate() {
            let mut at = |by: f64| {
                let mut kernel = kernel.clone();
                kernel.parameters[i] += by;
                density(&kernel, &mut [0.0; 4])
            };
            let expected = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!(
                (slope - expected).abs() < 1e-5 * expected.abs().max(1.0),
                "{slope} {expected}"
            );
        }
    }

    #[test]
    fn features_without_effect_get_long_scales() {
        let (rows, values) = data(60);
        let mut kernel = Kernel::new(3, false);
        kernel.fit(&rows, &values, 2, 60);
        assert!(kernel.is_sound(3));
        let [first, second, category] = kernel.log_scales()[..] else { panic!() };
        assert!(first < second - 1.0 && category < second, "{first} {second} {category}");
    }

    #[test]
    fn matrices_of_mixed_features_are_positive_definite() {
        let (rows, _) = data(100);
        let covariance = Kernel::new(3, false).covariance(2);
        let mut matrix = Lower::identity(100);
        for (i, row) in rows.chunks_exact(3).enumerate() {
            covariance.with_rows(row, &rows, &mut matrix.row_mut(i)[..i]);
        }
        assert!(factorize(&matrix, &mut Lower::identity(100)).is_ok());
    }

    #[test]
    fn the_noise_is_raised_up_to_its_bound() {
        let mut kernel = Kernel::new(2, false);
        for _ in 0..100 {
            kernel.raise_noise();
            assert!(kernel.is_sound(2));
        }
        assert!(!kernel.raise_noise());
    }
}
