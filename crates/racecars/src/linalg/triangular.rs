//! Lower triangular matrices, stored by rows without the zeros.

use super::product::{OuterProducts, PANEL, TILE, add_scaled, dot, inner_products};
use serde::{Deserialize, Serialize};

/// A lower triangular matrix, or the lower half of a symmetric one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lower {
    order: usize,
    /// Row i begins at i (i + 1) / 2 and has i + 1 entries.
    entries: Vec<f64>,
}

impl Lower {
    pub(crate) fn identity(order: usize) -> Self {
        let mut identity = Lower { order, entries: vec![0.0; start(order)] };
        (0..order).for_each(|i| identity.row_mut(i)[i] = 1.0);
        identity
    }

    /// Changes the number of rows. All entries become 0.
    pub(crate) fn reset(&mut self, order: usize) {
        self.entries.clear();
        self.resize(order);
    }

    /// Adds rows of zeros, or removes the last rows.
    pub(crate) fn resize(&mut self, order: usize) {
        self.order = order;
        self.entries.resize(start(order), 0.0);
    }

    /// The number of rows.
    pub(crate) fn order(&self) -> usize {
        self.order
    }

    /// Row i, up to and including the diagonal.
    #[inline]
    pub(crate) fn row(&self, i: usize) -> &[f64] {
        &self.entries[start(i)..start(i + 1)]
    }

    #[inline]
    pub(crate) fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.entries[start(i)..start(i + 1)]
    }

    #[inline]
    pub(crate) fn diagonal(&self, i: usize) -> f64 {
        self.entries[start(i + 1) - 1]
    }

    /// Column j, from the diagonal down.
    pub(crate) fn column(&self, j: usize) -> impl Iterator<Item = f64> {
        (j..self.order).map(move |i| self.entries[start(i) + j])
    }

    /// Checks the invariants of a deserialized matrix: its size, and that all entries are finite.
    pub(crate) fn is_sound(&self, order: usize) -> bool {
        self.order == order
            && self.entries.len() == start(order)
            && self.entries.iter().all(|x| x.is_finite())
    }

    /// Writes L z to `out` for each of several vectors z, stored one after the other.
    pub(crate) fn multiply(&self, vectors: &[f64], out: &mut [f64]) {
        let n = self.order;
        for first in (0..n).step_by(TILE) {
            let rows = first..n.min(first + TILE);
            // Up to the diagonal block all rows of the tile are equally long.
            inner_products(
                rows,
                0..vectors.len() / n,
                first,
                |i| self.row(i),
                |j| &vectors[j * n..(j + 1) * n],
                |i, j, product| {
                    let corner = self.row(i)[first..].iter().zip(&vectors[j * n + first..]);
                    out[j * n + i] = corner.fold(product, |sum, (l, z)| sum + l * z);
                },
            );
        }
    }

    /// Self = keep self + the lower half of the sum of weight y y^T over the weighted vectors.
    pub(crate) fn update<'a>(
        &mut self,
        keep: f64,
        vectors: impl Iterator<Item = (f64, &'a [f64])> + Clone,
        buffer: &mut OuterProducts,
    ) {
        let n = self.order;
        buffer.collect(n, vectors);
        for i in (0..n).step_by(2) {
            // The second row is missing at the end of an odd number of rows.
            let (first, second) = self.entries[start(i)..].split_at_mut(i + 1);
            let second_length = if i + 1 < n { i + 2 } else { 0 };
            buffer.rows(i, |column, [a, b]| {
                mix(keep, first, column, a);
                mix(keep, &mut second[..second_length], column, b);
            });
        }
    }

    /// x = L x.
    pub(crate) fn apply(&self, x: &mut [f64]) {
        for i in (0..self.order).rev() {
            x[i] = dot(self.row(i), &x[..=i]);
        }
    }

    /// x = L^T x.
    pub(crate) fn apply_transposed(&self, x: &mut [f64]) {
        for i in 0..self.order {
            let (head, tail) = x.split_at_mut(i);
            add_scaled(head, tail[0], self.row(i));
            tail[0] *= self.diagonal(i);
        }
    }

    /// Writes S x to `out`, where this is the lower half of the symmetric matrix S.
    pub(crate) fn multiply_symmetric(&self, x: &[f64], out: &mut [f64]) {
        for i in 0..self.order {
            let row = self.row(i);
            out[i] = dot(row, &x[..=i]);
            add_scaled(&mut out[..i], x[i], &row[..i]);
        }
    }

    /// x^T S x, where this is the lower half of the symmetric matrix S.
    pub(crate) fn quadratic_form(&self, x: &[f64]) -> f64 {
        let rows = (0..self.order).map(|i| {
            let (row, diagonal) = (&self.row(i)[..i], self.diagonal(i));
            x[i] * (2.0 * dot(row, &x[..i]) + diagonal * x[i])
        });
        rows.sum()
    }

    /// Writes L^-1 to `inverse`, row by row: a row is a sum of the rows above it.
    pub(crate) fn invert(&self, inverse: &mut Lower) {
        inverse.reset(self.order);
        for i in 0..self.order {
            let (above, rest) = inverse.entries.split_at_mut(start(i));
            let row = &mut rest[..=i];
            for (k, &factor) in self.row(i)[..i].iter().enumerate() {
                add_scaled(&mut row[..=k], -factor, &above[start(k)..start(k + 1)]);
            }
            row[i] = 1.0;
            let diagonal = self.diagonal(i);
            row.iter_mut().for_each(|x| *x /= diagonal);
        }
    }

    /// x = L^-1 x, by forward substitution (Golub and Van Loan, algorithm 3.1.1).
    pub(crate) fn solve(&self, x: &mut [f64]) {
        self.solve_first(&mut x[..self.order]);
    }

    /// Like [`Lower::solve`], with as many of the first rows as `x` is long.
    pub(crate) fn solve_first(&self, x: &mut [f64]) {
        for i in 0..x.len() {
            x[i] = (x[i] - dot(self.row(i), &x[..i])) / self.diagonal(i);
        }
    }

    /// x = L^-T x, by back substitution on the rows of L (Golub and Van Loan, algorithm 3.1.4).
    pub(crate) fn solve_transposed(&self, x: &mut [f64]) {
        self.solve_first_transposed(&mut x[..self.order]);
    }

    /// Like [`Lower::solve_transposed`], with as many of the first rows as `x` is long.
    pub(crate) fn solve_first_transposed(&self, x: &mut [f64]) {
        for i in (0..x.len()).rev() {
            let (head, tail) = x.split_at_mut(i);
            tail[0] /= self.diagonal(i);
            add_scaled(head, -tail[0], self.row(i));
        }
    }
}

/// The index of the first entry of row i.
#[inline]
fn start(i: usize) -> usize {
    i * (i + 1) / 2
}

/// entry = keep entry + sum, for up to [`PANEL`] entries of a row from `column` on.
#[inline]
fn mix(keep: f64, row: &mut [f64], column: usize, sums: &[f64; PANEL]) {
    // Empty if the row ends before this panel, or is missing at the end of an odd number of rows.
    let entries = row.get_mut(column..).unwrap_or_default();
    if let Some(entries) = entries.first_chunk_mut::<PANEL>() {
        entries.iter_mut().zip(sums).for_each(|(entry, sum)| *entry = keep * *entry + sum);
    } else {
        entries.iter_mut().zip(sums).for_each(|(entry, sum)| *entry = keep * *entry + sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const ORDERS: [usize; 9] = [1, 2, 3, 4, 5, 8, 17, 64, 201];

    fn numbers(count: usize, seed: u64) -> Vec<f64> {
        let mut numbers = vec![0.0; count];
        Random::new(seed).fill_normal(&mut numbers);
        numbers
    }

    /// A random matrix that is far from singular.
    fn triangle(n: usize) -> Lower {
        let mut lower = Lower { order: n, entries: numbers(start(n), 1) };
        (0..n).for_each(|i| lower.row_mut(i)[i] = n as f64 + i as f64);
        lower
    }

    fn entry(lower: &Lower, i: usize, j: usize) -> f64 {
        lower.row(i).get(j).copied().unwrap_or(0.0)
    }

    fn assert_near(a: &[f64], b: &[f64]) {
        let scale = b.iter().fold(1.0, |scale: f64, x| scale.max(x.abs()));
        assert_eq!(a.len(), b.len());
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-13 * scale), "{a:?}\n{b:?}");
    }

    #[test]
    fn products_equal_those_of_a_simple_loop() {
        for n in ORDERS {
            let lower = triangle(n);
            for count in [1, 2, 5] {
                let vectors = numbers(n * count, 2);
                let mut out = vec![f64::NAN; n * count];
                lower.multiply(&vectors, &mut out);
                for (z, y) in vectors.chunks_exact(n).zip(out.chunks_exact(n)) {
                    let sum = |i| (0..n).map(|j| entry(&lower, i, j) * z[j]).sum::<f64>();
                    assert_near(y, &(0..n).map(sum).collect::<Vec<_>>());
                    let mut x = z.to_vec();
                    lower.apply(&mut x);
                    assert_near(&x, y);
                    let sum = |j| (0..n).map(|i| entry(&lower, i, j) * z[i]).sum::<f64>();
                    let mut x = z.to_vec();
                    lower.apply_transposed(&mut x);
                    assert_near(&x, &(0..n).map(sum).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn solves_undo_products() {
        for n in ORDERS {
            let (lower, x) = (triangle(n), numbers(n, 3));
            let mut y = x.clone();
            lower.apply(&mut y);
            lower.solve(&mut y);
            assert_near(&y, &x);
            lower.apply_transposed(&mut y);
            lower.solve_transposed(&mut y);
            assert_near(&y, &x);
        }
    }

    #[test]
    fn inverses_undo_products() {
        for n in ORDERS {
            let (lower, x) = (triangle(n), numbers(n, 3));
            let mut inverse = Lower::identity(0);
            lower.invert(&mut inverse);
            let mut y = x.clone();
            lower.apply(&mut y);
            inverse.apply(&mut y);
            assert_near(&y, &x);
        }
    }

    #[test]
    fn symmetric_products_equal_those_of_a_simple_loop() {
        for n in ORDERS {
            let (lower, x) = (triangle(n), numbers(n, 3));
            let full = |i: usize, j: usize| lower.row(i.max(j))[i.min(j)];
            let plain = |i| (0..n).map(|j| full(i, j) * x[j]).sum::<f64>();
            let plain: Vec<f64> = (0..n).map(plain).collect();
            let mut out = vec![f64::NAN; n];
            lower.multiply_symmetric(&x, &mut out);
            assert_near(&out, &plain);
            let form = dot(&plain, &x);
            assert!((lower.quadratic_form(&x) - form).abs() <= 1e-12 * form.abs().max(1.0));
        }
    }

    #[test]
    fn updates_equal_those_of_a_simple_loop() {
        let mut buffer = OuterProducts::default();
        for n in ORDERS {
            for count in [0, 1, 2, 7, 24] {
                let (vectors, weights) = (numbers(n * count, 4), numbers(count, 5));
                let weighted = || weights.iter().copied().zip(vectors.chunks_exact(n));
                let before = triangle(n);
                let mut after = before.clone();
                after.update(0.25, weighted(), &mut buffer);
                for i in 0..n {
                    let sum = |j| weighted().map(|(w, y)| w * y[i] * y[j]).sum::<f64>();
                    let plain = (0..=i).map(|j| 0.25 * before.row(i)[j] + sum(j));
                    assert_near(after.row(i), &plain.collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn rows_columns_and_the_diagonal_agree() {
        let lower = triangle(7);
        for j in 0..7 {
            let column: Vec<f64> = (j..7).map(|i| lower.row(i)[j]).collect();
            assert_eq!(lower.column(j).collect::<Vec<_>>(), column);
            assert_eq!(lower.diagonal(j), column[0]);
        }
        assert!(lower.is_sound(7) && !lower.is_sound(6));
        let mut broken = lower.clone();
        broken.row_mut(3)[1] = f64::NAN;
        assert!(!broken.is_sound(7));
    }
}
