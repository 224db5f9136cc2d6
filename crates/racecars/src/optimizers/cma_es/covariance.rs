//! The covariance matrix C: drawing from N(0, C), measuring by it, and updating it, in the form of a
//! whole matrix or of its diagonal alone.
//!
//! The whole matrix is kept with its eigendecomposition C = B D² B^T, which is renewed only now and
//! then (section B.2 of the tutorial): in between, C learns while B and D stay. All products are
//! those of matrices, blocked and in one thread, so the order of no sum depends on anything but sizes.

use crate::optimizers::saved::ID_HEADROOM;
use crate::random::Random;
use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use serde::{Deserialize, Serialize};

/// C, up to the factor sigma².
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Covariance {
    /// The whole matrix.
    Full(Full),
    /// The variances of independent coordinates.
    Diagonal(Vec<f64>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Full {
    /// C by columns; only what is on and below the diagonal counts.
    matrix: Vec<f64>,
    /// B by columns: the eigenvectors of C when it was last decomposed.
    basis: Vec<f64>,
    /// The diagonal of D: the square roots of the eigenvalues, ascending.
    axes: Vec<f64>,
    /// Updates of C since it was decomposed.
    stale: u64,
}

/// Buffers, rebuilt at will.
#[derive(Default)]
pub(super) struct Workspace {
    /// For normal numbers, or weighted steps.
    left: Vec<f64>,
    /// For the steps themselves.
    right: Vec<f64>,
    /// For the decomposition.
    stack: Option<MemBuffer>,
}

/// C can no longer be decomposed into positive eigenvalues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Degenerate;

impl Covariance {
    /// The identity.
    pub(super) fn new(dimension: usize, separable: bool) -> Self {
        if separable {
            return Covariance::Diagonal(vec![1.0; dimension]);
        }
        let mut matrix = vec![0.0; dimension * dimension];
        matrix.iter_mut().step_by(dimension + 1).for_each(|x| *x = 1.0);
        let basis = matrix.clone();
        Covariance::Full(Full { matrix, basis, axes: vec![1.0; dimension], stale: 0 })
    }

    pub(super) fn dimension(&self) -> usize {
        match self {
            Covariance::Full(full) => full.axes.len(),
            Covariance::Diagonal(variances) => variances.len(),
        }
    }

    /// The variance of one coordinate.
    #[inline]
    pub(super) fn variance(&self, index: usize) -> f64 {
        match self {
            Covariance::Full(full) => full.matrix[index * (full.axes.len() + 1)],
            Covariance::Diagonal(variances) => variances[index],
        }
    }

    /// Fills `steps`, some columns of n numbers, with draws y = B D z from N(0, C), eqs. (38) and
    /// (39), and calls `length` with |z|² of each.
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
                let count = steps.len() / n;
                work.left.resize(steps.len(), 0.0);
                random.fill_normal(&mut work.left);
                for z in work.left.chunks_exact_mut(n) {
                    length(squared(z));
                    z.iter_mut().zip(&full.axes).for_each(|(z, d)| *z *= d);
                }
                let scaled = MatRef::from_column_major_slice(&work.left, n, count);
                let steps = MatMut::from_column_major_slice_mut(steps, n, count);
                matmul(steps, Accum::Replace, full.basis(), scaled, 1.0, Par::Seq);
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

    /// Writes C^(-1/2) y to `out`, with which `y` becomes standard normal again in the coordinates of
    /// the space, as eq. (43) needs.
    pub(super) fn whiten(&self, y: &[f64], out: &mut [f64], work: &mut Workspace) {
        match self {
            Covariance::Full(full) => {
                let n = full.axes.len();
                full.standardize(y, work);
                let z = MatRef::from_column_major_slice(&work.left, n, 1);
                let out = MatMut::from_column_major_slice_mut(out, n, 1);
                matmul(out, Accum::Replace, full.basis(), z, 1.0, Par::Seq);
            }
            Covariance::Diagonal(variances) => {
                for (out, (y, variance)) in out.iter_mut().zip(y.iter().zip(variances)) {
                    *out = y / variance.sqrt();
                }
            }
        }
    }

    /// The squared Mahalanobis length |C^(-1/2) y|².
    pub(super) fn squared_length(&self, y: &[f64], work: &mut Workspace) -> f64 {
        match self {
            Covariance::Full(full) => {
                full.standardize(y, work);
                squared(&work.left)
            }
            Covariance::Diagonal(variances) => {
                y.iter().zip(variances).map(|(y, variance)| y * y / variance).sum()
            }
        }
    }

    /// C = keep C + sum of w y y^T over the weighted steps, which is eq. (47).
    pub(super) fn update<'a>(
        &mut self,
        keep: f64,
        steps: impl Iterator<Item = (f64, &'a [f64])>,
        work: &mut Workspace,
    ) {
        match self {
            Covariance::Full(full) => {
                work.left.clear();
                work.right.clear();
                for (weight, y) in steps {
                    work.right.extend_from_slice(y);
                    work.left.extend(y.iter().map(|y| weight * y));
                }
                full.update(keep, &work.left, &work.right);
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

    /// Checks C after an update, and decomposes it anew if the last time is `gap` updates ago.
    pub(super) fn refresh(&mut self, gap: u64, work: &mut Workspace) -> Result<(), Degenerate> {
        match self {
            Covariance::Full(full) if full.stale >= gap => full.decompose(work),
            Covariance::Full(_) => Ok(()),
            Covariance::Diagonal(variances) => {
                let is_sound = variances.iter().all(|variance| is_positive(*variance));
                if is_sound { Ok(()) } else { Err(Degenerate) }
            }
        }
    }

    /// The least and the greatest deviation along the principal axes.
    pub(super) fn extremes(&self) -> (f64, f64) {
        let range = |numbers: &[f64]| {
            let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
            (least, numbers.iter().copied().fold(0.0, f64::max))
        };
        match self {
            Covariance::Full(full) => range(&full.axes),
            Covariance::Diagonal(variances) => {
                let (least, greatest) = range(variances);
                (least.sqrt(), greatest.sqrt())
            }
        }
    }

    /// The deviation along a principal axis and its direction; `None` where the axes are those of
    /// the space.
    pub(super) fn axis(&self, index: usize) -> Option<(f64, &[f64])> {
        match self {
            Covariance::Full(full) => {
                let n = full.axes.len();
                Some((full.axes[index], &full.basis[index * n..(index + 1) * n]))
            }
            Covariance::Diagonal(_) => None,
        }
    }

    /// Whether this could be the covariance of so many coordinates.
    pub(super) fn is_sound(&self, dimension: usize, separable: bool) -> bool {
        match self {
            Covariance::Full(Full { matrix, basis, axes, stale }) => {
                !separable
                    && *stale < ID_HEADROOM
                    && axes.len() == dimension
                    && matrix.len() == dimension * dimension
                    && basis.len() == matrix.len()
                    && axes.iter().all(|axis| is_positive(*axis))
                    && matrix.iter().chain(basis).all(|x| x.is_finite())
                    && (0..dimension).all(|i| is_positive(self.variance(i)))
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
    fn basis(&self) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice(&self.basis, self.axes.len(), self.axes.len())
    }

    /// Leaves z = D^-1 B^T y in the left buffer.
    fn standardize(&self, y: &[f64], work: &mut Workspace) {
        let n = self.axes.len();
        work.left.resize(n, 0.0);
        let y = MatRef::from_column_major_slice(y, n, 1);
        let z = MatMut::from_column_major_slice_mut(&mut work.left, n, 1);
        matmul(z, Accum::Replace, self.basis().transpose(), y, 1.0, Par::Seq);
        work.left.iter_mut().zip(&self.axes).for_each(|(z, d)| *z /= d);
    }

    /// C = keep C + left right^T, panel by panel from the diagonal down: the other half is not needed.
    fn update(&mut self, keep: f64, left: &[f64], right: &[f64]) {
        const PANEL: usize = 64;
        let n = self.axes.len();
        let count = left.len() / n;
        let left = MatRef::from_column_major_slice(left, n, count);
        let right = MatRef::from_column_major_slice(right, n, count);
        for start in (0..n).step_by(PANEL) {
            let width = PANEL.min(n - start);
            for column in self.matrix.chunks_exact_mut(n).skip(start).take(width) {
                column[start..].iter_mut().for_each(|x| *x *= keep);
            }
            let panel = MatMut::from_column_major_slice_mut(&mut self.matrix, n, n);
            let panel = panel.submatrix_mut(start, start, n - start, width);
            let left = left.submatrix(start, 0, n - start, count);
            let right = right.submatrix(start, 0, width, count);
            matmul(panel, Accum::Add, left, right.transpose(), 1.0, Par::Seq);
        }
    }

    fn decompose(&mut self, work: &mut Workspace) -> Result<(), Degenerate> {
        let n = self.axes.len();
        // The decomposition of what is not finite might not end.
        let is_sound = (0..n).all(|i| {
            let column = &self.matrix[i * n..(i + 1) * n];
            is_positive(column[i]) && column[i..].iter().all(|x| x.is_finite())
        });
        if !is_sound {
            return Err(Degenerate);
        }
        let stack = work.stack.get_or_insert_with(|| {
            let vectors = ComputeEigenvectors::Yes;
            let params = Default::default();
            MemBuffer::new(self_adjoint_evd_scratch::<f64>(n, vectors, Par::Seq, params))
        });
        self_adjoint_evd(
            MatRef::from_column_major_slice(&self.matrix, n, n),
            DiagMut::from_slice_mut(&mut self.axes),
            Some(MatMut::from_column_major_slice_mut(&mut self.basis, n, n)),
            Par::Seq,
            MemStack::new(stack),
            Default::default(),
        )
        .map_err(|_| Degenerate)?;
        for axis in &mut self.axes {
            if !is_positive(*axis) {
                return Err(Degenerate);
            }
            *axis = axis.sqrt();
        }
        self.stale = 0;
        Ok(())
    }
}

fn is_positive(x: f64) -> bool {
    x > 0.0 && x.is_finite()
}

/// The squared length, in partial sums that the compiler vectorises.
pub(super) fn squared(x: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (chunks, rest) = x.as_chunks::<8>();
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, x)| *sum += x * x);
    }
    sums.iter().sum::<f64>() + rest.iter().map(|x| x * x).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(n: usize, count: usize, seed: u64) -> Vec<f64> {
        let mut steps = vec![0.0; n * count];
        Random::new(seed).fill_normal(&mut steps);
        steps
    }

    /// A covariance that has learned from some steps and been decomposed, and C written out.
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
    fn the_update_and_the_decomposition_are_those_of_the_matrix() {
        for n in [1, 2, 5, 64, 65, 130] {
            let (covariance, plain) = learned(n);
            let Covariance::Full(full) = &covariance else { panic!() };
            for i in 0..n {
                for j in 0..=i {
                    // The matrix is by columns.
                    assert!((full.matrix[j * n + i] - plain[i * n + j]).abs() < 1e-12);
                    let product: f64 = (0..n)
                        .map(|k| {
                            full.basis[k * n + i] * full.axes[k].powi(2) * full.basis[k * n + j]
                        })
                        .sum();
                    assert!((product - plain[i * n + j]).abs() < 1e-11, "n = {n}: {product}");
                }
            }
            assert!(covariance.is_sound(n, false));
        }
    }

    #[test]
    fn draws_have_the_covariance_and_know_their_length() {
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
            covariance.whiten(y, &mut white, &mut work);
            assert!((squared(&white) - length).abs() < 1e-9);
        }
    }

    #[test]
    fn the_diagonal_is_that_of_the_matrix() {
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
    fn what_is_not_positive_is_degenerate() {
        for separable in [false, true] {
            let mut work = Workspace::default();
            let mut covariance = Covariance::new(3, separable);
            covariance.update(1.0, [(-2.0, &[0.0, 1.0, 0.0][..])].into_iter(), &mut work);
            assert_eq!(covariance.refresh(1, &mut work), Err(Degenerate));
        }
    }
}
