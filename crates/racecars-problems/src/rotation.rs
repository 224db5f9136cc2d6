//! Random rotations, which make a separable test function nonseparable.

use crate::functions::sum_of_pairs;
use racecars::random::Random;

/// An orthogonal transformation of R^n.
#[derive(Debug, Clone, PartialEq)]
pub struct Rotation {
    n: usize,
    form: Form,
}

#[derive(Debug, Clone, PartialEq)]
enum Form {
    /// Its matrix, row-major, n by n.
    Matrix(Vec<f64>),
    /// A sequence of rotations of two coordinates each.
    Turns(Vec<Turn>),
}

/// A rotation of the plane of two coordinates.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Turn {
    places: (usize, usize),
    cosine: f64,
    sine: f64,
}

impl Rotation {
    /// A transformation drawn uniformly from all orthogonal ones, reflections included; a function of `n`
    /// and `seed` only.
    ///
    /// The distribution is that of the orthogonal factor of a Gaussian matrix, and comes from
    /// Householder reflections of Gaussian vectors of 1, 2, ..., n coordinates (G. W. Stewart, "The
    /// efficient generation of random orthogonal matrices", 1980), so that no matrix is factored.
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
        Rotation { n, form: Form::Matrix(matrix) }
    }

    /// A transformation of about 3/2 n log2 n rotations, each of two random coordinates by a random angle, so
    /// that it is applied in that many steps instead of n²; a function of `n` and `seed` only.
    ///
    /// It is Kac's random walk in rounds of disjoint pairs: after this order of rotations, the image of a
    /// fixed vector is nearly uniform on the sphere (N. Pillai and A. Smith, "Kac's walk on n-sphere mixes in
    /// n log n steps", 2017). A round removes a quarter of the alignment with the axes (the sum of fourth
    /// powers), so that 3 log2 n rounds leave about 1/n^1.2 of it.
    pub fn of_turns(n: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let rounds = if n < 2 { 0 } else { 3 * (n.ilog2() + 1) };
        let mut places: Vec<usize> = (0..n).collect();
        let mut turns = Vec::new();
        for _ in 0..rounds {
            random.shuffle(&mut places);
            for pair in places.chunks_exact(2) {
                let (sine, cosine) = random.between(0.0, std::f64::consts::TAU).sin_cos();
                turns.push(Turn { places: (pair[0], pair[1]), cosine, sine });
            }
        }
        Rotation { n, form: Form::Turns(turns) }
    }

    /// The number of coordinates.
    pub fn dimension(&self) -> usize {
        self.n
    }

    /// The rows of the matrix.
    pub fn rows(&self) -> Vec<Vec<f64>> {
        match &self.form {
            Form::Matrix(matrix) => {
                matrix.chunks_exact(self.n.max(1)).map(<[f64]>::to_vec).collect()
            }
            Form::Turns(_) => {
                let mut rows = vec![vec![0.0; self.n]; self.n];
                let mut image = vec![0.0; self.n];
                for axis in 0..self.n {
                    let unit: Vec<f64> =
                        (0..self.n).map(|i| f64::from(u8::from(i == axis))).collect();
                    self.apply(&unit, &mut image);
                    rows.iter_mut().zip(&image).for_each(|(row, &entry)| row[axis] = entry);
                }
                rows
            }
        }
    }

    /// Writes the image of `x` to `out`; both have [`Rotation::dimension`] coordinates.
    pub fn apply(&self, x: &[f64], out: &mut [f64]) {
        debug_assert_eq!((x.len(), out.len()), (self.n, self.n));
        match &self.form {
            Form::Matrix(matrix) => {
                for (out, row) in out.iter_mut().zip(matrix.chunks_exact(self.n)) {
                    *out = dot(row, x);
                }
            }
            Form::Turns(turns) => {
                out.copy_from_slice(x);
                for &Turn { places: (i, j), cosine, sine } in turns {
                    let (a, b) = (out[i], out[j]);
                    (out[i], out[j]) = (cosine * a - sine * b, sine * a + cosine * b);
                }
            }
        }
    }
}

/// The unit normal of a mirror that sends the first axis to `sign` times a random direction.
fn reflection(random: &mut Random, n: usize) -> (Vec<f64>, f64) {
    let mut normal: Vec<f64> = (0..n).map(|_| random.normal()).collect();
    // Of the two possible mirrors, the one without cancellation in its normal.
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
        let both = |n| [Rotation::random(n, 1), Rotation::of_turns(n, 1)];
        for rotation in [1, 2, 3, 7, 8, 9, 50, 200].into_iter().flat_map(both) {
            let n = rotation.dimension();
            let rows = rotation.rows();
            for i in 0..n {
                for j in 0..=i {
                    let expected = if i == j { 1.0 } else { 0.0 };
                    let product = dot(&rows[i], &rows[j]);
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

    /// Every entry of a uniformly drawn 3 by 3 matrix is uniform on [-1, 1].
    #[test]
    fn directions_are_even() {
        let draws = 20_000;
        let mut means = [0.0; 9];
        let mut squares = [0.0; 9];
        for seed in 0..draws {
            for (i, entry) in Rotation::random(3, seed).rows().concat().into_iter().enumerate() {
                means[i] += entry / draws as f64;
                squares[i] += entry * entry / draws as f64;
            }
        }
        assert!(means.iter().all(|mean| mean.abs() < 0.02), "{means:?}");
        assert!(squares.iter().all(|square| (square - 1.0 / 3.0).abs() < 0.01), "{squares:?}");
    }

    #[test]
    fn rows_are_what_is_applied() {
        let x: Vec<f64> = (0..9).map(|i| f64::from(i).cos()).collect();
        for rotation in [Rotation::random(9, 5), Rotation::of_turns(9, 5)] {
            let image = applied(&rotation, &x);
            for (row, entry) in rotation.rows().iter().zip(image) {
                assert!((dot(row, &x) - entry).abs() < 1e-13);
            }
        }
    }

    /// The fourth powers of a random unit vector's entries add up to about 3 / n.
    #[test]
    fn turns_leave_nothing_along_the_axes() {
        let n = 300;
        for row in Rotation::of_turns(n, 6).rows() {
            let spread = n as f64 * row.iter().map(|entry| entry.powi(4)).sum::<f64>();
            assert!((1.8..8.0).contains(&spread), "{spread}");
        }
    }

    #[test]
    fn no_coordinates_is_no_trouble() {
        assert_eq!(Rotation::random(0, 1).dimension(), 0);
        assert!(Rotation::of_turns(0, 1).rows().is_empty());
    }
}
