//! The covariance matrix C, full or diagonal: sampling from N(0, C), Mahalanobis lengths, and updates.
//!
//! The full matrix is stored with its Cholesky factor, C = A A^T. The factor is not recomputed at every
//! update of C (section B.2 of the tutorial).
//!
//! A departure: the tutorial factorizes C = B D² B^T. Its draws y = B D z have the same distribution
//! as ours, y = A z, and y^T C^-1 y is the same. Only p_sigma differs: eq. (43) becomes a sum of
//! `A^-1 <y>_w` instead of `C^(-1/2) <y>_w`. Both are standard normal under neutral selection, and perform
//! equally well (Krause, Arbones and Igel, "CMA-ES with optimal covariance update and storage
//! complexity", 2016). A factorization costs n³/3 operations, an eigendecomposition about 9 n³, and a
//! product with a triangular matrix half of one with a square matrix.

use super::distribution::is_bounded;
use crate::linalg::cholesky::{NotPositiveDefinite, extreme_singular_values, factorize};
use crate::linalg::product::{OuterProducts, squared};
use crate::linalg::triangular::Lower;
use crate::optimizers::saved::ID_HEADROOM;
use crate::random::Random;
use serde::{Deserialize, Serialize};

/// C, up to the factor sigma².
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Covariance {
    /// The full matrix.
    Full(Full),
    /// The variances of independent coordinates.
    Diagonal(Vec<f64>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Full {
    /// The lower half of C.
    matrix: Lower,
    /// A: the factor of C at the last factorization.
    factor: Lower,
    /// Estimates of the least and the greatest deviation along the principal axes of A A^T.
    extremes: (f64, f64),
    /// The number of updates of C since the last factorization.
    stale: u64,
}

/// Buffers.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    /// For normal numbers, or a vector.
    numbers: Vec<f64>,
    /// For the update.
    products: OuterProducts,
}

impl Covariance {
    /// The identity.
    pub(super) fn new(dimension: usize, separable: bool) -> Self {
        if separable {
            return Covariance::Diagonal(vec![1.0; dimension]);
        }
        let (matrix, factor) = (Lower::identity(dimension), Lower::identity(dimension));
        Covariance::Full(Full { matrix, factor, extremes: (1.0, 1.0), stale: 0 })
    }

    pub(super) fn dimension(&self) -> usize {
        match self {
            Covariance::Full(full) => full.matrix.order(),
            Covariance::Diagonal(variances) => variances.len(),
        }
    }

    /// The variance of one coordinate.
    #[inline]
    pub(super) fn variance(&self, index: usize) -> f64 {
        match self {
            Covariance::Full(full) => full.matrix.diagonal(index),
            Covariance::Diagonal(variances) => variances[index],
        }
    }

    /// Fills `steps`, columns of n numbers, with draws y = A z from N(0, C), instead of eqs. (38) and (39).
    /// Calls `length` with |z|² of each.
    pub(super) fn sample(
        &self,
        random: &mut Random,
        steps: &mut [f64],
        work: &mut Workspace,
        mut length: impl FnMut(f64),
    ) {
        let n = self.dimension();
        match self {
            Covariance::Full(full) => {
                let z = &mut work.numbers;
                z.resize(steps.len(), 0.0);
                random.fill_normal(z);
                z.chunks_exact(n).for_each(|z| length(squared(z)));
                full.factor.multiply(z, steps);
            }
            Covariance::Diagonal(variances) => {
                random.fill_normal(steps);
                for y in steps.chunks_exact_mut(n) {
                    length(squared(y));
                    y.iter_mut().zip(variances).for_each(|(y, variance)| *y *= variance.sqrt());
                }
            }
        }
    }

    /// Writes A^-1 y to `out`, as eq. (43) needs. It is standard normal if y is from N(0, C).
    pub(super) fn whiten(&self, y: &[f64], out: &mut [f64]) {
        match self {
            Covariance::Full(full) => {
                out.copy_from_slice(y);
                full.factor.solve(out);
            }
            Covariance::Diagonal(variances) => {
                for (out, (y, variance)) in out.iter_mut().zip(y.iter().zip(variances)) {
                    *out = y / variance.sqrt();
                }
            }
        }
    }

    /// z = A z: the inverse of [`Covariance::whiten`].
    pub(super) fn color(&self, z: &mut [f64]) {
        match self {
            Covariance::Full(full) => full.factor.apply(z),
            Covariance::Diagonal(variances) => {
                z.iter_mut().zip(variances).for_each(|(z, variance)| *z *= variance.sqrt());
            }
        }
    }

    /// The squared Mahalanobis length y^T C^-1 y.
    pub(super) fn squared_length(&self, y: &[f64], work: &mut Workspace) -> f64 {
        match self {
            Covariance::Full(full) => {
                let z = &mut work.numbers;
                z.clear();
                z.extend_from_slice(y);
                full.factor.solve(z);
                squared(z)
            }
            Covariance::Diagonal(variances) => {
                y.iter().zip(variances).map(|(y, variance)| y * y / variance).sum()
            }
        }
    }

    /// Eq. (47): C = keep C + sum of w y y^T over the weighted steps.
    pub(super) fn update<'a>(
        &mut self,
        keep: f64,
        steps: impl Iterator<Item = (f64, &'a [f64])> + Clone,
        work: &mut Workspace,
    ) {
        match self {
            Covariance::Full(full) => {
                full.matrix.update(keep, steps, &mut work.products);
                full.stale += 1;
            }
            Covariance::Diagonal(variances) => {
                variances.iter_mut().for_each(|variance| *variance *= keep);
                for (weight, y) in steps {
                    for (variance, y) in variances.iter_mut().zip(y) {
                        *variance += weight * y * y;
                    }
                }
            }
        }
    }

    /// Checks C after an update, and factorizes it if there were `gap` updates since the last time.
    pub(super) fn refresh(
        &mut self,
        gap: u64,
        work: &mut Workspace,
    ) -> Result<(), NotPositiveDefinite> {
        match self {
            Covariance::Full(full) if full.stale >= gap => full.factorize(work),
            _ => {
                let is_sound = (0..self.dimension()).all(|i| is_positive(self.variance(i)));
                if is_sound { Ok(()) } else { Err(NotPositiveDefinite) }
            }
        }
    }

    /// The least and the greatest deviation along the principal axes.
    pub(super) fn extremes(&self) -> (f64, f64) {
        match self {
            Covariance::Full(full) => full.extremes,
            Covariance::Diagonal(variances) => {
                let least = variances.iter().copied().fold(f64::INFINITY, f64::min);
                (least.sqrt(), variances.iter().copied().fold(0.0, f64::max).sqrt())
            }
        }
    }

    /// Column `index` of A from the diagonal down. `None` for a diagonal matrix, whose axes are those of the
    /// space.
    pub(super) fn axis(&self, index: usize) -> Option<impl Iterator<Item = f64>> {
        match self {
            Covariance::Full(full) => Some(full.factor.column(index)),
            Covariance::Diagonal(_) => None,
        }
    }

    /// Checks the invariants of a deserialized matrix.
    pub(super) fn is_sound(&self, dimension: usize, separable: bool) -> bool {
        match self {
            Covariance::Full(Full { matrix, factor, extremes, stale }) => {
                !separable
                    && *stale < ID_HEADROOM
                    && is_positive(extremes.0)
                    && is_positive(extremes.1)
                    && [matrix, factor].iter().all(|lower| {
                        lower.is_sound(dimension)
                            && (0..dimension).all(|i| {
                                is_positive(lower.diagonal(i))
                                    && lower.row(i).iter().all(|&x| is_bounded(x))
                            })
                    })
            }
            Covariance::Diagonal(variances) => {
                separable
                    && variances.len() == dimension
                    && variances.iter().all(|variance| is_positive(*variance))
            }
        }
    }
}

impl Full {
    fn factorize(&mut self, work: &mut Workspace) -> Result<(), NotPositiveDefinite> {
        factorize(&self.matrix, &mut self.factor)?;
        self.extremes = extreme_singular_values(&self.factor, &mut work.numbers);
        if !(is_positive(self.extremes.0) && is_positive(self.extremes.1)) {
            return Err(NotPositiveDefinite);
        }
        self.stale = 0;
        Ok(())
    }
}

fn is_positive(x: f64) -> bool {
    x > 0.0 && is_bounded(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(n: usize, count: usize, seed: u64) -> Vec<f64> {
        let mut steps = vec![0.0; n * count];
        Random::new(seed).fill_normal(&mut steps);
        steps
    }

    /// A factorized covariance after an update, and C as a plain matrix.
    fn learned(n: usize) -> (Covariance, Vec<f64>) {
        let (mut covariance, mut work) = (Covariance::new(n, false), Workspace::default());
        let steps = steps(n, 3, 7);
        let weighted = || [0.5, 0.25, 0.125].into_iter().zip(steps.chunks_exact(n));
        covariance.update(0.5, weighted(), &mut work);
        covariance.refresh(1, &mut work).unwrap();
        let mut plain = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                let sum: f64 = weighted().map(|(w, y)| w * y[i] * y[j]).sum();
                plain[i * n + j] = sum + if i == j { 0.5 } else { 0.0 };
            }
        }
        (covariance, plain)
    }

    #[test]
    fn the_update_and_the_factor_are_correct() {
        for n in [1, 2, 5, 64, 65, 130] {
            let (covariance, plain) = learned(n);
            let Covariance::Full(full) = &covariance else { panic!() };
            for i in 0..n {
                for j in 0..=i {
                    assert!((full.matrix.row(i)[j] - plain[i * n + j]).abs() < 1e-12);
                    let pairs = full.factor.row(i).iter().zip(full.factor.row(j));
                    let product: f64 = pairs.map(|(a, b)| a * b).sum();
                    assert!((product - plain[i * n + j]).abs() < 1e-12, "n = {n}: {product}");
                }
            }
            assert!(covariance.is_sound(n, false));
        }
    }

    #[test]
    fn draws_have_the_covariance_and_the_right_length() {
        let n = 5;
        let (covariance, plain) = learned(n);
        let (mut random, mut work) = (Random::new(1), Workspace::default());
        let (mut draws, mut lengths) = (vec![0.0; n * 50_000], Vec::new());
        covariance.sample(&mut random, &mut draws, &mut work, |length| lengths.push(length));
        for i in 0..n {
            for j in 0..n {
                let sum: f64 = draws.chunks_exact(n).map(|y| y[i] * y[j]).sum();
                assert!((sum / 50_000.0 - plain[i * n + j]).abs() < 0.05);
            }
        }
        for (y, length) in draws.chunks_exact(n).zip(lengths).take(100) {
            assert!((covariance.squared_length(y, &mut work) - length).abs() < 1e-9);
            let mut white = vec![0.0; n];
            covariance.whiten(y, &mut white);
            assert!((squared(&white) - length).abs() < 1e-9);
            covariance.color(&mut white);
            assert!(white.iter().zip(y).all(|(a, b)| (a - b).abs() < 1e-9));
        }
    }

    #[test]
    fn the_diagonal_variant_equals_the_diagonal_of_the_matrix() {
        let (n, mut work) = (9, Workspace::default());
        let (mut full, mut diagonal) = (Covariance::new(n, false), Covariance::new(n, true));
        let steps = steps(n, 4, 3);
        for covariance in [&mut full, &mut diagonal] {
            let weights = [0.3, 0.2, 0.1, -0.01];
            covariance.update(0.6, weights.into_iter().zip(steps.chunks_exact(n)), &mut work);
        }
        assert!((0..n).all(|i| (full.variance(i) - diagonal.variance(i)).abs() < 1e-14));
    }

    #[test]
    fn matrices_that_are_not_positive_definite_are_degenerate() {
        for separable in [false, true] {
            let mut work = Workspace::default();
            let mut covariance = Covariance::new(3, separable);
            covariance.update(1.0, [(-2.0, &[0.0, 1.0, 0.0][..])].into_iter(), &mut work);
            assert_eq!(covariance.refresh(1, &mut work), Err(NotPositiveDefinite));
        }
    }
}
