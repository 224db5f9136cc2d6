//! The posterior of the Gaussian process: mean and deviation at any point.
//!
//! Rows are added to the Cholesky factor as points are told, and it is the same to the bit as one computed
//! from all of them. Pending candidates are rows without values: conditioning on the posterior mean
//! ("kriging believer", Ginsbourger et al. 2010) changes the deviation only.

use super::kernel::{Covariance, Weights};
use crate::linalg::cholesky::{NotPositiveDefinite, extend};
use crate::linalg::product::dot;
use crate::linalg::triangular::Lower;

/// The least variance, as a share of the signal's.
const MIN_VARIANCE: f64 = 1e-12;

#[derive(Debug)]
pub(super) struct Model {
    covariance: Covariance,
    /// The number of features.
    width: usize,
    /// The features of the points told, then of the pending ones.
    rows: Vec<f64>,
    /// The number of points told.
    told: usize,
    matrix: Lower,
    factor: Lower,
    /// The number of rows of the factor that are computed.
    factorized: usize,
    values: Vec<f64>,
    weights: Weights,
}

/// Buffers of a prediction.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    covariances: Vec<f64>,
    solved: Vec<f64>,
}

impl Model {
    pub(super) fn new(covariance: Covariance, width: usize) -> Self {
        Model {
            covariance,
            width,
            rows: Vec::new(),
            told: 0,
            matrix: Lower::identity(0),
            factor: Lower::identity(0),
            factorized: 0,
            values: Vec::new(),
            weights: Weights::default(),
        }
    }

    /// The number of points told.
    pub(super) fn told(&self) -> usize {
        self.told
    }

    /// Adds the features of a point that was told. There must be no pending ones.
    pub(super) fn add_told(&mut self, features: &[f64]) {
        self.add_row(features);
        self.told += 1;
    }

    /// Factorizes the matrix of the points told.
    pub(super) fn factorize(&mut self) -> Result<(), NotPositiveDefinite> {
        let count = self.matrix.order();
        self.factor.resize(count);
        extend(&self.matrix, &mut self.factor, self.factorized)?;
        self.factorized = count;
        Ok(())
    }

    /// Sets the values of the points told.
    pub(super) fn set_values(&mut self, values: Vec<f64>) {
        self.weights = Weights::new(&self.factor, &values);
        self.values = values;
    }

    /// Replaces the pending points by these. If they are too near to each other, there are none.
    pub(super) fn set_pending<'a>(&mut self, pending: impl Iterator<Item = &'a [f64]>) {
        self.remove_pending();
        pending.for_each(|features| self.add_row(features));
        if self.factorize().is_err() {
            self.remove_pending();
        }
    }

    pub(super) fn remove_pending(&mut self) {
        self.rows.truncate(self.told * self.width);
        self.matrix.resize(self.told);
        self.factor.resize(self.told);
        self.factorized = self.factorized.min(self.told);
    }

    fn add_row(&mut self, features: &[f64]) {
        let count = self.matrix.order();
        self.matrix.resize(count + 1);
        let row = self.matrix.row_mut(count);
        self.covariance.with_rows(features, &self.rows, row);
        row[count] = 1.0 + self.covariance.noise;
        self.rows.extend_from_slice(features);
    }

    pub(super) fn factor(&self) -> &Lower {
        &self.factor
    }

    /// The features of a point told.
    pub(super) fn row(&self, index: usize) -> &[f64] {
        &self.rows[index * self.width..(index + 1) * self.width]
    }

    /// The posterior mean at a point told.
    pub(super) fn fitted(&self, index: usize) -> f64 {
        self.values[index] - self.covariance.noise * self.weights.alpha[index]
    }

    /// The mean and the deviation of the objective at a point, without noise.
    pub(super) fn predict(&self, x: &[f64], buffers: &mut Buffers) -> (f64, f64) {
        let Buffers { covariances, solved } = buffers;
        covariances.resize(self.matrix.order(), 0.0);
        self.covariance.with_rows(x, &self.rows, covariances);
        solved.clone_from(covariances);
        self.factor.solve(solved);
        let Weights { alpha, mean, signal } = &self.weights;
        let variance = (1.0 - dot(solved, solved)).max(MIN_VARIANCE);
        (mean + dot(alpha, covariances), (signal * variance).sqrt())
    }

    /// Like [`Model::predict`], with the gradients of mean and deviation by the numeric features.
    pub(super) fn predict_with_gradients(
        &self,
        x: &[f64],
        buffers: &mut Buffers,
        mean_gradient: &mut [f64],
        deviation_gradient: &mut [f64],
    ) -> (f64, f64) {
        let (mean, deviation) = self.predict(x, buffers);
        let Weights { alpha, signal, .. } = &self.weights;
        mean_gradient.fill(0.0);
        let told = &self.rows[..self.told * self.width];
        self.covariance.add_gradient(x, told, alpha.iter().copied(), mean_gradient);
        // d (1 - k K^-1 k) = -2 (K^-1 k) dk, and the deviation is the root.
        let solved = &mut buffers.solved;
        self.factor.solve_transposed(solved);
        let scale = -signal / deviation;
        deviation_gradient.fill(0.0);
        let factors = solved.iter().map(|x| scale * x);
        self.covariance.add_gradient(x, &self.rows, factors, deviation_gradient);
        (mean, deviation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizers::gaussian_process::kernel::Kernel;
    use crate::random::Random;

    fn function(x: &[f64]) -> f64 {
        (4.0 * x[0]).sin() + x[1] * x[1] - if x[2] == 1.0 { 0.5 } else { 0.0 }
    }

    fn draw(random: &mut Random) -> [f64; 3] {
        [random.unit(), random.unit(), random.index(2) as f64]
    }

    /// A model of [`function`] from 40 points.
    fn model(random: &mut Random) -> Model {
        let mut model = Model::new(Kernel::new(3, false).covariance(2), 3);
        let points: Vec<[f64; 3]> = (0..40).map(|_| draw(random)).collect();
        points.iter().for_each(|x| model.add_told(x));
        model.factorize().unwrap();
        model.set_values(points.iter().map(|x| function(x)).collect());
        model
    }

    #[test]
    fn values_are_interpolated_and_predicted() {
        let mut random = Random::new(1);
        let (model, mut buffers) = (model(&mut random), Buffers::default());
        for i in 0..40 {
            let (mean, deviation) = model.predict(model.row(i), &mut buffers);
            assert!((mean - model.values[i]).abs() < 0.01 && deviation < 0.05);
            assert!((mean - model.fitted(i)).abs() < 1e-6);
        }
        for _ in 0..100 {
            let x = draw(&mut random);
            let (mean, deviation) = model.predict(&x, &mut buffers);
            assert!((mean - function(&x)).abs() < 4.0 * deviation + 0.01, "{x:?}");
        }
    }

    #[test]
    fn gradients_are_slopes() {
        let mut random = Random::new(2);
        let (mut model, mut buffers) = (model(&mut random), Buffers::default());
        let pending = draw(&mut random);
        model.set_pending([&pending[..]].into_iter());
        let (mut by_mean, mut by_deviation) = ([0.0; 3], [0.0; 3]);
        for _ in 0..20 {
            let x = draw(&mut random);
            model.predict_with_gradients(&x, &mut buffers, &mut by_mean, &mut by_deviation);
            for j in 0..2 {
                let mut at = |by: f64| {
                    let mut x = x;
                    x[j] += by;
                    model.predict(&x, &mut buffers)
                };
                let (high, low) = (at(1e-5), at(-1e-5));
                let slopes = ((high.0 - low.0) / 2e-5, (high.1 - low.1) / 2e-5);
                assert!((slopes.0 - by_mean[j]).abs() < 1e-4, "{slopes:?} {by_mean:?}");
                assert!((slopes.1 - by_deviation[j]).abs() < 1e-3, "{slopes:?} {by_deviation:?}");
            }
        }
    }

    #[test]
    fn pending_points_change_the_deviation_only() {
        let mut random = Random::new(3);
        let (mut model, mut buffers) = (model(&mut random), Buffers::default());
        let (pending, other) = (draw(&mut random), draw(&mut random));
        let before = [pending, other].map(|x| model.predict(&x, &mut buffers));
        model.set_pending([&pending[..]].into_iter());
        let after = [pending, other].map(|x| model.predict(&x, &mut buffers));
        assert_eq!(before.map(|x| x.0), after.map(|x| x.0));
        assert!(after[0].1 < 0.9 * before[0].1 && after[1].1 <= before[1].1);
        model.remove_pending();
        assert_eq!([pending, other].map(|x| model.predict(&x, &mut buffers)), before);
    }

    #[test]
    fn a_model_that_grew_equals_one_built_at_once() {
        let (mut random, mut buffers) = (Random::new(4), Buffers::default());
        let whole = model(&mut random);
        let mut grown = Model::new(whole.covariance.clone(), 3);
        for i in 0..40 {
            grown.add_told(whole.row(i));
            grown.factorize().unwrap();
            grown.set_values(whole.values[..=i].to_vec());
            grown.set_pending([&draw(&mut random)[..], &draw(&mut random)].into_iter());
            grown.remove_pending();
        }
        let x = draw(&mut random);
        assert_eq!(grown.predict(&x, &mut buffers), whole.predict(&x, &mut buffers));
    }
}
