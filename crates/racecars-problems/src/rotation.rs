//! Random rotations, which take from a test function what makes it separable.

use crate::functions::sum_of_pairs;
use racecars::random::Random;

/// An orthogonal transformation of R^n: lengths and angles stay, axes do not.
#[derive(Debug, Clone, PartialEq)]
pub struct Rotation {
    n: usize,
    /// Row-major, n by n.
    matrix: Vec<f64>,
}

impl Rotation {
    /// A transformation drawn evenly from all orthogonal ones, reflections included; a function of
    /// `n` and `seed` alone.
    ///
    /// The distribution is that of the orthogonal factor of a Gaussian matrix, and comes from
    /// Householder reflections of Gaussian vectors of 1, 2, ..., n coordinates (G. W. Stewart, "The
    /// efficient generation of random orthogonal matrices", 1980): no matrix to factor.
    pub fn random(n: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut matrix = vec![0.0; n * n];
        for corner in (0..n).rev() {
            // The block from (corner, corner) on becomes diag(sign, block so far) times the
            // reflection. Its first row is then the Gaussian vector, normalised.
            let (mirror, sign) = reflection(&mut random, n - corner);
            matrix[corner * n + corner] = sign;
            for row in matrix.chunks_exact_mut(n).skip(corner) {
                reflect(&mut row[corner..], &mirror);
            }
        }
        Rotation { n, matrix }
    }

    /// The number of coordinates.
    pub fn dimension(&self) -> usize {
        self.n
    }

    /// The rows of the matrix.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.matrix.chunks_exact(self.n.max(1))
    }

    /// Writes the image of `x` to `out`; both have [`Rotation::dimension`] coordinates.
    pub fn apply(&self, x: &[f64], out: &mut [f64]) {
        debug_assert_eq!((x.len(), out.len()), (self.n, self.n));
        for (out, row) in out.iter_mut().zip(self.matrix.chunks_exact(self.n)) {
            *out = dot(row, x);
        }
    }
}

/// The unit normal of a mirror that sends the first axis to `sign` times a random direction.
fn reflection(random: &mut Random, n: usize) -> (Vec<f64>, f64) {
    let mut normal: Vec<f64> = (0..n).map(|_| random.normal()).collect();
    // Of the two mirrors, the one whose normal does not cancel.
    let sign = normal[0].signum();
    normal[0] += sign * dot(&normal, &normal).sqrt();
    let length = dot(&normal, &normal).sqrt();
    normal.iter_mut().for_each(|x| *x /= length);
    (normal, -sign)
}

/// Mirrors `x` at the hyperplane with this unit normal.
fn reflect(x: &mut [f64], normal: &[f64]) {
    let twice = 2.0 * dot(x, normal);
    for (x, normal) in x.iter_mut().zip(normal) {
        *x -= twice * normal;
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    sum_of_pairs(x, y, |x, y| x * y)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(rotation: &Rotation, x: &[f64]) -> Vec<f64> {
        let mut out = vec![f64::NAN; x.len()];
        rotation.apply(x, &mut out);
        out
    }

    #[test]
    fn rows_are_orthonormal() {
        for n in [1, 2, 3, 7, 8, 9, 50, 200] {
            let rotation = Rotation::random(n, 1);
            let rows: Vec<&[f64]> = rotation.matrix.chunks_exact(n).collect();
            for i in 0..n {
                for j in 0..=i {
                    let expected = if i == j { 1.0 } else { 0.0 };
                    let product = dot(rows[i], rows[j]);
                    assert!(
                        (product - expected).abs() < 1e-13,
                        "n = {n}, rows {i} and {j}: {product}"
                    );
                }
            }
        }
    }

    #[test]
    fn lengths_stay() {
        let x: Vec<f64> = (0..300).map(|i| f64::from(i).sin()).collect();
        let y = applied(&Rotation::random(300, 2), &x);
        assert!((dot(&x, &x) - dot(&y, &y)).abs() < 1e-11);
        assert!(x.iter().zip(&y).any(|(x, y)| (x - y).abs() > 0.1));
    }

    #[test]
    fn the_seed_alone_decides() {
        assert_eq!(Rotation::random(20, 3), Rotation::random(20, 3));
        assert_ne!(Rotation::random(20, 3), Rotation::random(20, 4));
    }

    /// Every entry of an evenly drawn 3 by 3 matrix is uniform on [-1, 1].
    #[test]
    fn directions_are_even() {
        let draws = 20_000;
        let mut means = [0.0; 9];
        let mut squares = [0.0; 9];
        for seed in 0..draws {
            for (i, entry) in Rotation::random(3, seed).matrix.into_iter().enumerate() {
                means[i] += entry / draws as f64;
                squares[i] += entry * entry / draws as f64;
            }
        }
        assert!(means.iter().all(|mean| mean.abs() < 0.02), "{means:?}");
        assert!(squares.iter().all(|square| (square - 1.0 / 3.0).abs() < 0.01), "{squares:?}");
    }

    #[test]
    fn no_coordinates_is_no_trouble() {
        assert_eq!(Rotation::random(0, 1).dimension(), 0);
    }
}
