//! Inner products: of two vectors, and of many rows with many others in tiles.
//!
//! A tile of R x C products loads R + C numbers for R C multiplications and keeps its sums in
//! registers (Golub and Van Loan, "Matrix Computations", section 1.5). 4 x 2 sums of 2 lanes each,
//! 4 + 1 rows and a product in flight are the 16 registers of x86-64 without extensions.

use std::array::from_fn;
use std::ops::Range;

/// Rows of a tile.
pub(super) const TILE: usize = 4;

/// Partial sums of each product in a tile. Products at the edges use the same number, so the value of an
/// entry does not depend on its position.
const LANES: usize = 2;

/// The inner product of two vectors, in partial sums that the compiler vectorizes.
#[inline]
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let length = a.len().min(b.len());
    let (a, a_rest) = a[..length].as_chunks::<8>();
    let (b, b_rest) = b[..length].as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums.iter().sum::<f64>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f64>()
}

/// The squared Euclidean length.
#[inline]
pub(crate) fn squared(x: &[f64]) -> f64 {
    dot(x, x)
}

/// y += factor x.
#[inline]
pub(crate) fn add_scaled(y: &mut [f64], factor: f64, x: &[f64]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += factor * x);
}

/// Calls `store` with i, j and the inner product of the first `length` entries of `left(i)` and
/// `right(j)`, for all `i` in `rows` and `j` in `columns`.
#[inline]
pub(crate) fn inner_products<'a>(
    rows: Range<usize>,
    columns: Range<usize>,
    length: usize,
    left: impl Fn(usize) -> &'a [f64],
    right: impl Fn(usize) -> &'a [f64],
    mut store: impl FnMut(usize, usize, f64),
) {
    let left = |i: usize| &left(i)[..length];
    let right = |j: usize| &right(j)[..length];
    let mut i = rows.start;
    while i + TILE <= rows.end {
        let left: [&[f64]; TILE] = from_fn(|k| left(i + k));
        let mut j = columns.start;
        while j + 2 <= columns.end {
            let products = tile(left, [right(j), right(j + 1)]);
            for (k, [first, second]) in products.into_iter().enumerate() {
                store(i + k, j, first);
                store(i + k, j + 1, second);
            }
            j += 2;
        }
        if j < columns.end {
            let products = tile(left, [right(j)]);
            products.into_iter().enumerate().for_each(|(k, [product])| store(i + k, j, product));
        }
        i += TILE;
    }
    for i in i..rows.end {
        for j in columns.clone() {
            let [[product]] = tile([left(i)], [right(j)]);
            store(i, j, product);
        }
    }
}

/// The inner products of R rows with C others, all of the same length.
#[inline]
fn tile<const R: usize, const C: usize>(left: [&[f64]; R], right: [&[f64]; C]) -> [[f64; C]; R] {
    let length = left.first().map_or(0, |row| row.len());
    let even = length / LANES * LANES;
    let sums = partial_sums(left.map(|row| &row[..even]), right.map(|row| &row[..even]));
    from_fn(|i| {
        from_fn(|j| {
            let rest = left[i][even..].iter().zip(&right[j][even..]);
            rest.fold(sums[i][j].iter().sum(), |sum: f64, (a, b)| sum + a * b)
        })
    })
}

/// The loop of [`tile`]: never inlined, so that the sums stay in registers whatever is around it.
#[inline(never)]
fn partial_sums<const R: usize, const C: usize>(
    left: [&[f64]; R],
    right: [&[f64]; C],
) -> [[[f64; LANES]; C]; R] {
    let left: [&[[f64; LANES]]; R] = left.map(|row| row.as_chunks().0);
    let right: [&[[f64; LANES]]; C] = right.map(|row| row.as_chunks().0);
    let count = left.iter().chain(&right).map(|row| row.len()).min().unwrap_or(0);
    let (left, right) = (left.map(|row| &row[..count]), right.map(|row| &row[..count]));
    let mut sums = [[[0.0; LANES]; C]; R];
    for k in 0..count {
        let a: [[f64; LANES]; R] = from_fn(|i| left[i][k]);
        let b: [[f64; LANES]; C] = from_fn(|j| right[j][k]);
        sums = from_fn(|i| from_fn(|j| from_fn(|lane| sums[i][j][lane] + a[i][lane] * b[j][lane])));
    }
    sums
}

/// Columns of a panel, whose entries are contiguous.
pub(super) const PANEL: usize = 8;

/// The sum of weight y y^T over some vectors, computed as a stream of pieces of two rows.
#[derive(Debug, Default)]
pub(crate) struct OuterProducts {
    /// The number of vectors.
    count: usize,
    /// weight y, coordinate by coordinate: `count` numbers for each.
    weighted: Vec<f64>,
    /// y, by panels of coordinates: `count` pieces for each panel. The last one ends with zeros.
    panels: Vec<[f64; PANEL]>,
}

impl OuterProducts {
    /// Replaces the vectors by these weighted vectors of length n.
    pub(super) fn collect<'a>(
        &mut self,
        n: usize,
        vectors: impl Iterator<Item = (f64, &'a [f64])> + Clone,
    ) {
        // No vectors at all are treated as one of weight 0.
        let count = vectors.clone().count().max(1);
        self.count = count;
        // One more row, to complete the last pair of an odd number.
        self.weighted.clear();
        self.weighted.resize((n + 1) * count, 0.0);
        self.panels.clear();
        self.panels.resize(n.div_ceil(PANEL) * count, [0.0; PANEL]);
        for (k, (weight, y)) in vectors.enumerate() {
            let weighted = self.weighted.iter_mut().skip(k).step_by(count);
            weighted.zip(y).for_each(|(weighted, y)| *weighted = weight * y);
            let panels = self.panels.iter_mut().skip(k).step_by(count);
            for (panel, y) in panels.zip(y.chunks(PANEL)) {
                panel[..y.len()].copy_from_slice(y);
            }
        }
    }

    /// Calls `store` with the pieces of rows i and i + 1 of the sum, up to the diagonal: the first
    /// column of a piece, and its entries.
    #[inline]
    pub(super) fn rows(&self, i: usize, mut store: impl FnMut(usize, [&[f64; PANEL]; 2])) {
        let count = self.count;
        let (a, b) = self.weighted[i * count..(i + 2) * count].split_at(count);
        for (index, panel) in self.panels.chunks_exact(count).take((i + 1) / PANEL + 1).enumerate()
        {
            let (mut first, mut second) = ([0.0; PANEL], [0.0; PANEL]);
            for (y, (a, b)) in panel.iter().zip(a.iter().zip(b)) {
                for lane in 0..PANEL {
                    first[lane] += a * y[lane];
                    second[lane] += b * y[lane];
                }
            }
            store(index * PANEL, [&first, &second]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn numbers(count: usize, seed: u64) -> Vec<f64> {
        let mut numbers = vec![0.0; count];
        Random::new(seed).fill_normal(&mut numbers);
        numbers
    }

    fn naive(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn inner_products_equal_those_of_a_simple_loop() {
        for length in [0, 1, 2, 3, 7, 8, 9, 16, 17, 100, 201] {
            let (a, b) = (numbers(length, 1), numbers(length, 2));
            assert!((dot(&a, &b) - naive(&a, &b)).abs() < 1e-12);
            // Extra entries of the longer vector are ignored.
            assert_eq!(dot(&a, &numbers(length + 3, 2)), dot(&a, &b));
        }
    }

    #[test]
    fn tiles_cover_every_pair_once_and_do_not_depend_on_the_position() {
        for (rows, columns) in [(1, 1), (3, 2), (4, 2), (4, 1), (5, 3), (9, 7), (0, 3), (12, 0)] {
            for length in [0, 1, 2, 3, 5, 8, 33] {
                let stride = length + 2;
                let (a, b) = (numbers(rows * stride, 3), numbers(columns * stride, 4));
                let mut products = vec![f64::NAN; rows * columns];
                inner_products(
                    0..rows,
                    0..columns,
                    length,
                    |i| &a[i * stride..(i + 1) * stride],
                    |j| &b[j * stride..(j + 1) * stride],
                    |i, j, product| {
                        assert!(products[i * columns + j].is_nan());
                        products[i * columns + j] = product;
                    },
                );
                for (index, product) in products.iter().enumerate() {
                    let (i, j) = (index / columns, index % columns);
                    let (a, b) = (&a[i * stride..][..length], &b[j * stride..][..length]);
                    assert_eq!(*product, tile([a], [b])[0][0]);
                    assert!((product - naive(a, b)).abs() < 1e-13);
                }
            }
        }
    }

    #[test]
    fn nan_propagates() {
        assert!(dot(&[1.0, f64::NAN], &[1.0, 1.0]).is_nan());
        assert!(tile([&[f64::NAN, 1.0, 1.0][..]], [&[1.0; 3][..]])[0][0].is_nan());
    }
}
