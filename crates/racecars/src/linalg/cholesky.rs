//! The Cholesky factor L of a symmetric positive definite matrix, A = L L^T, and estimates of its
//! extreme singular values.

use super::product::{TILE, dot, inner_products, squared};
use super::triangular::Lower;

/// The matrix is not positive definite, or not finite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotPositiveDefinite;

/// Writes the factor of `matrix` to `factor`. After an error the contents of `factor` are unspecified.
///
/// By rows (Golub and Van Loan, section 4.2), tile by tile: the inner products with the rows above
/// come first, and only a triangle of [`TILE`] rows is left to solve.
pub(crate) fn factorize(matrix: &Lower, factor: &mut Lower) -> Result<(), NotPositiveDefinite> {
    extend(matrix, factor, 0)
}

/// Like [`factorize`], if the first `known` rows of `factor` are those of the factor already. An entry is
/// the same sum however many rows are known, so the factor is the same to the bit.
pub(crate) fn extend(
    matrix: &Lower,
    factor: &mut Lower,
    known: usize,
) -> Result<(), NotPositiveDefinite> {
    let n = matrix.order();
    for top in (known / TILE * TILE..n).step_by(TILE) {
        let rows = top..n.min(top + TILE);
        for left in (0..=top).step_by(TILE) {
            let columns = left..n.min(left + TILE);
            let mut products = [[0.0; TILE]; TILE];
            inner_products(
                rows.clone(),
                columns.clone(),
                left,
                |i| factor.row(i),
                |j| factor.row(j),
                |i, j, product| products[i - top][j - left] = product,
            );
            for i in rows.clone() {
                for j in left..columns.end.min(i + 1) {
                    let terms = factor.row(i)[left..j].iter().zip(&factor.row(j)[left..j]);
                    let within: f64 = terms.map(|(a, b)| a * b).sum();
                    let entry = matrix.row(i)[j] - products[i - top][j - left] - within;
                    factor.row_mut(i)[j] = if j < i {
                        entry / factor.diagonal(j)
                    } else if entry > 0.0 && entry.is_finite() {
                        entry.sqrt()
                    } else {
                        return Err(NotPositiveDefinite);
                    };
                }
            }
        }
    }
    Ok(())
}

/// Writes the lower half of the inverse of the matrix with this factor to `inverse`: L^-T L^-1, by the
/// columns of L^-1, which are stored in `columns` one after the other.
pub(crate) fn invert(factor: &Lower, columns: &mut Vec<f64>, inverse: &mut Lower) {
    let n = factor.order();
    columns.clear();
    columns.resize(n * n, 0.0);
    for (j, column) in columns.chunks_exact_mut(n.max(1)).enumerate() {
        column[j] = 1.0 / factor.diagonal(j);
        for i in j + 1..n {
            column[i] = -dot(&factor.row(i)[j..i], &column[j..i]) / factor.diagonal(i);
        }
    }
    inverse.resize(n);
    for i in 0..n {
        let (head, column) = (&columns[..(i + 1) * n], &columns[i * n + i..(i + 1) * n]);
        for (j, entry) in inverse.row_mut(i).iter_mut().enumerate() {
            *entry = dot(&head[j * n + i..(j + 1) * n], column);
        }
    }
}

/// Estimates of the least and the greatest singular value of L, by power iterations with L^T L and
/// its inverse (Golub and Van Loan, section 8.2).
///
/// The least is never underestimated, and the greatest is never overestimated. If the start vector has
/// a component s along the singular vector, then k iterations leave an error factor of about s^(-1/k):
/// about 1.5 in hundreds of dimensions, which is enough to detect a nearly singular matrix.
pub(crate) fn extreme_singular_values(factor: &Lower, buffer: &mut Vec<f64>) -> (f64, f64) {
    const ITERATIONS: usize = 8;
    // Pseudo-random signs. In a diagonal matrix all axes have the same component.
    let fill = |x: &mut Vec<f64>| {
        let sign =
            |i: u64| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32).count_ones();
        x.clear();
        x.extend((0..factor.order() as u64).map(|i| if sign(i) % 2 == 0 { 1.0 } else { -1.0 }));
    };
    // Scaling in between keeps squares from overflowing.
    let scale = |x: &mut [f64]| {
        let norm = squared(x).sqrt();
        x.iter_mut().for_each(|x| *x /= norm);
        norm
    };
    let (mut least, mut greatest) = (f64::INFINITY, 0.0f64);
    fill(buffer);
    scale(buffer);
    for _ in 0..ITERATIONS {
        factor.apply(buffer);
        scale(buffer);
        factor.apply_transposed(buffer);
        greatest = scale(buffer);
    }
    fill(buffer);
    scale(buffer);
    for _ in 0..ITERATIONS {
        factor.solve_transposed(buffer);
        scale(buffer);
        factor.solve(buffer);
        least = 1.0 / scale(buffer);
    }
    (least, greatest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::product::OuterProducts;
    use crate::random::Random;

    const ORDERS: [usize; 8] = [1, 2, 3, 4, 5, 17, 64, 200];

    /// ridge I + the mean of y y^T over some random y with deviations `scale(i)`.
    fn matrix(n: usize, count: usize, ridge: f64, scale: impl Fn(usize) -> f64) -> Lower {
        let mut vectors = vec![0.0; n * count];
        Random::new(1).fill_normal(&mut vectors);
        for vector in vectors.chunks_exact_mut(n) {
            vector.iter_mut().enumerate().for_each(|(i, x)| *x *= scale(i));
        }
        let mut matrix = Lower::identity(n);
        let weighted = vectors.chunks_exact(n).map(|y| (1.0 / count as f64, y));
        matrix.update(ridge, weighted, &mut OuterProducts::default());
        matrix
    }

    /// The greatest error of L L^T, as a share of the deviations of row and column.
    fn error(matrix: &Lower, factor: &Lower) -> f64 {
        let n = matrix.order();
        let pairs = (0..n).flat_map(|i| (0..=i).map(move |j| (i, j)));
        let errors = pairs.map(|(i, j)| {
            let terms = factor.row(i).iter().zip(factor.row(j));
            let product: f64 = terms.map(|(a, b)| a * b).sum();
            let scale = matrix.diagonal(i).sqrt() * matrix.diagonal(j).sqrt();
            (product - matrix.row(i)[j]).abs() / scale
        });
        errors.fold(0.0, f64::max)
    }

    fn factor(matrix: &Lower) -> Result<Lower, NotPositiveDefinite> {
        // The previous contents do not matter.
        let mut factor = Lower::identity(matrix.order());
        (0..matrix.order()).for_each(|i| factor.row_mut(i).fill(f64::NAN));
        factorize(matrix, &mut factor).map(|()| factor)
    }

    #[test]
    fn the_factor_times_its_transpose_is_the_matrix() {
        for n in ORDERS {
            let matrices = [
                ("random", matrix(n, 2 * n, 0.0, |_| 1.0)),
                ("identity", Lower::identity(n)),
                ("low rank", matrix(n, 1, 1.0, |_| 10.0)),
                ("nearly singular", matrix(n, n.div_ceil(2), 1e-12, |_| 1.0)),
                ("small", matrix(n, 2 * n, 0.0, |_| 1e-75)),
                ("large", matrix(n, 2 * n, 0.0, |_| 1e75)),
                ("badly scaled", matrix(n, 2 * n, 0.0, |i| [1e-75, 1.0, 1e75][i % 3])),
            ];
            for (name, matrix) in matrices {
                let factor = factor(&matrix).unwrap();
                assert!(error(&matrix, &factor) < 1e-13, "{name} n = {n}");
            }
        }
    }

    #[test]
    fn an_extended_factor_is_the_whole_one_to_the_bit() {
        for n in ORDERS {
            let whole = matrix(n, 2 * n, 0.0, |_| 1.0);
            let expected = factor(&whole).unwrap();
            for known in [0, n / 3, n / 2, n - 1, n] {
                let mut extended = expected.clone();
                (known..n).for_each(|i| extended.row_mut(i).fill(f64::NAN));
                extend(&whole, &mut extended, known).unwrap();
                assert_eq!(extended, expected, "{known} of {n}");
            }
        }
    }

    #[test]
    fn the_inverse_times_the_matrix_is_the_identity() {
        for n in ORDERS {
            let matrix = matrix(n, 2 * n, 0.1, |_| 1.0);
            let (mut columns, mut inverse) = (Vec::new(), Lower::identity(0));
            invert(&factor(&matrix).unwrap(), &mut columns, &mut inverse);
            let at = |a: &Lower, i: usize, j: usize| a.row(i.max(j))[i.min(j)];
            for i in 0..n {
                for j in 0..n {
                    let terms = (0..n).map(|k| at(&matrix, i, k) * at(&inverse, k, j));
                    let expected = if i == j { 1.0 } else { 0.0 };
                    assert!((terms.sum::<f64>() - expected).abs() < 1e-10, "{n}: {i}, {j}");
                }
            }
        }
    }

    #[test]
    fn matrices_that_are_not_positive_definite_are_refused() {
        for n in ORDERS {
            for (i, j) in [(0, 0), (n - 1, 0), (n - 1, n - 1), (n / 2, n / 3)] {
                for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -3.0] {
                    let mut broken = Lower::identity(n);
                    broken.row_mut(i)[j] = wrong;
                    assert_eq!(factor(&broken), Err(NotPositiveDefinite), "{wrong} in {n}");
                }
            }
        }
        assert_eq!(factor(&matrix(9, 1, 0.0, |_| 1.0)), Err(NotPositiveDefinite));
    }

    #[test]
    fn extreme_singular_values_are_near_and_never_outside() {
        let mut buffer = Vec::new();
        for n in ORDERS {
            // Matrices with known spectra: diagonal, and the identity plus one long direction.
            for (least, greatest) in [(1.0, 1.0), (1e-7, 1.0), (1e-75, 1e75), (2.0, 3.0)] {
                let mut diagonal = Lower::identity(n);
                for i in 0..n {
                    let share = i as f64 / (n.max(2) - 1) as f64;
                    diagonal.row_mut(i)[i] = f64::powf(greatest / least, share) * least;
                }
                let greatest = diagonal.diagonal(n - 1);
                let (low, high) = extreme_singular_values(&diagonal, &mut buffer);
                let least = diagonal.diagonal(0);
                assert!(low >= least * (1.0 - 1e-12) && low < 1.6 * least, "{n}: {low} {least}");
                assert!(high <= greatest * (1.0 + 1e-12) && high > greatest / 1.6, "{n}: {high}");
            }
            let mut long = Lower::identity(n);
            let direction: Vec<f64> = (0..n).map(|i| 1e5 * (i as f64).cos()).collect();
            let vectors = [(1.0, &direction[..])].into_iter();
            long.update(1.0, vectors, &mut OuterProducts::default());
            let (low, high) = extreme_singular_values(&factor(&long).unwrap(), &mut buffer);
            let length = squared(&direction).sqrt();
            assert!((high / length - 1.0).abs() < 1e-9, "{n}: {high} {length}");
            assert!(n == 1 || (0.9..1.6).contains(&low), "{n}: {low}");
        }
    }
}
