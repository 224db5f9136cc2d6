//! Random embeddings: a search in many coordinates as one in few.
//!
//! Where only a few directions matter, it is enough to search a random subspace of little more
//! dimensions: x = A y with a random matrix A holds, with probability 1, a point as good as the optimum
//! (Wang et al., "Bayesian Optimization in a Billion Dimensions via Random Embeddings", 2016, Theorem
//! 2). Where the others matter a little, one subspace after the other can be searched, each from where
//! the last one ended (Qian, Hu and Yu, "Derivative-Free Optimization of High-Dimensional Non-Convex
//! Functions by Sequential Random Embeddings", 2016; the public implementation is ZOOpt's).

use crate::error::{Error, Result};
use crate::optimizers::Algorithm;
use crate::outcome::Outcome;
use crate::random::Random;
use crate::run::minimize;
use crate::space::{Axis, Point, Space};

/// The largest matrix: 1 GiB.
const MOST: usize = 1 << 27;

/// A random subspace of a continuous space.
///
/// ```
/// use racecars::{Embedding, Space, minimize};
///
/// // Ten thousand coordinates, of which two matter.
/// let space = Space::cube(10_000, -5.0, 5.0)?;
/// let embedding = Embedding::new(&space, 6, 1)?;
/// let solution = minimize(embedding.space())
///     .budget(1000)
///     .run(embedding.wrap(|p| (p.coordinates()[7] - 1.0).powi(2) + (p.coordinates()[77] + 2.0).powi(2)))?;
/// assert!(solution.value().unwrap() < 0.1);
/// let point = embedding.lift(solution.point().unwrap().coordinates());
/// assert_eq!(point.len(), 10_000);
/// # Ok::<(), racecars::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Embedding {
    whole: Space,
    small: Space,
    /// The least and the greatest of each coordinate.
    axes: Vec<(f64, f64)>,
    /// A: a row per coordinate of the whole space.
    rows: Vec<f64>,
    /// Where the last search ended, as shares of the half widths; y then has its multiple first.
    last: Option<Vec<f64>>,
}

impl Embedding {
    /// A random subspace of `dim` dimensions through the middle of `space`, which must be continuous.
    ///
    /// The coordinates y are in [-1, 1]. A y, with entries of A standard normal, is the point as shares
    /// of the half width of each coordinate, cut off at 1.
    pub fn new(space: &Space, dim: usize, seed: u64) -> Result<Self> {
        Embedding::build(space, dim, seed, None)
    }

    /// As [`Embedding::new`], through a multiple of `last` as well, a point of `space`: y has one
    /// coordinate more, which comes first, is in [-1, 1], and says which multiple (ZOOpt's
    /// *withdraw* factor). So `last` is in the subspace, at (1, 0, ..., 0).
    pub fn through(space: &Space, dim: usize, seed: u64, last: &[f64]) -> Result<Self> {
        space.check(last)?;
        Embedding::build(space, dim, seed, Some(last))
    }

    fn build(space: &Space, dim: usize, seed: u64, last: Option<&[f64]>) -> Result<Self> {
        let count = space.dimension();
        if !matches!(dim.checked_mul(count), Some(1..=MOST)) {
            return Err(Error::setting(format!(
                "an embedding of {dim} dimensions into {count} has not between 1 and {MOST} entries"
            )));
        }
        let axes = (0..count)
            .map(|i| match space.axis(i) {
                Axis::Continuous { low, high } => Ok((low, high)),
                _ => Err(Error::space(format!(
                    "coordinate `{}` is not continuous; embeddings need all to be",
                    space.coordinate_name(i)
                ))),
            })
            .collect::<Result<Vec<_>>>()?;
        let last = last.map(|last| {
            let shares = last.iter().zip(&axes);
            shares.map(|(x, axis)| (x - middle(*axis)) / half(*axis)).collect()
        });
        let mut rows = vec![0.0; dim * count];
        Random::stream(seed, 0x65_6d_62_65).fill_normal(&mut rows);
        Ok(Embedding {
            whole: space.clone(),
            small: Space::cube(dim + usize::from(last.is_some()), -1.0, 1.0)?,
            axes,
            rows,
            last,
        })
    }

    /// The space of few coordinates, to be searched.
    pub fn space(&self) -> &Space {
        &self.small
    }

    /// The space of many coordinates.
    pub fn whole(&self) -> &Space {
        &self.whole
    }

    /// The point, in the whole space, that coordinates `y` stand for.
    pub fn lift(&self, y: &[f64]) -> Vec<f64> {
        let (multiple, y) = match &self.last {
            Some(_) => (y.first().copied().unwrap_or(0.0), y.get(1..).unwrap_or(&[])),
            None => (0.0, y),
        };
        let dim = self.rows.len() / self.axes.len();
        let last = |i: usize| self.last.as_ref().map_or(0.0, |last| multiple * last[i]);
        let coordinate = |(i, row): (usize, &[f64])| {
            let share = last(i) + row.iter().zip(y).map(|(a, y)| a * y).sum::<f64>();
            let axis = self.axes[i];
            // Rounding must not lead out of the space.
            (middle(axis) + half(axis) * share.clamp(-1.0, 1.0)).clamp(axis.0, axis.1)
        };
        self.rows.chunks_exact(dim).enumerate().map(coordinate).collect()
    }

    /// An objective on the whole space as one on the small.
    pub fn wrap<'a, O: 'a>(
        &'a self,
        mut objective: impl FnMut(Point<'_>) -> O + 'a,
    ) -> impl FnMut(Point<'_>) -> O + 'a {
        move |y| objective(self.whole.view(&self.lift(y.coordinates())))
    }
}

/// Halving first keeps the widest finite ranges from overflowing.
fn middle((low, high): (f64, f64)) -> f64 {
    0.5 * low + 0.5 * high
}

fn half((low, high): (f64, f64)) -> f64 {
    0.5 * high - 0.5 * low
}

/// Sequential random embedding: one random subspace after the other, each through where the last
/// search ended.
#[derive(Debug, Clone, PartialEq)]
pub struct SequentialEmbedding {
    /// The dimensions of each subspace.
    pub dim: usize,
    /// The number of subspaces.
    pub rounds: usize,
    /// What searches them.
    pub algorithm: Algorithm,
    /// The evaluations, of all rounds together; at least one per round.
    pub budget: u64,
    /// The seed of subspaces and searches.
    pub seed: u64,
}

/// What came of a sequential random embedding.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// The best value.
    pub value: f64,
    /// Where it was found.
    pub point: Vec<f64>,
    /// The evaluations made.
    pub evaluations: u64,
    /// The best value after each round.
    pub rounds: Vec<f64>,
}

impl SequentialEmbedding {
    /// Five rounds, as ZOOpt has them, of RACE-CARS.
    pub fn new(dim: usize, budget: u64, seed: u64) -> Self {
        SequentialEmbedding { dim, rounds: 5, algorithm: Algorithm::race_cars(), budget, seed }
    }

    /// Minimizes an objective on a continuous space; `None` if every evaluation failed.
    ///
    /// Departure from ZOOpt: there a round that found nothing better still replaces the point that the
    /// next one starts from; here the best is kept, and each round begins by knowing it.
    pub fn minimize<O: Into<Outcome>>(
        &self,
        space: &Space,
        mut objective: impl FnMut(Point<'_>) -> O,
    ) -> Result<Option<Embedded>> {
        let rounds = self.rounds as u64;
        if rounds == 0 || self.budget < rounds {
            return Err(Error::setting(format!(
                "{} evaluations in {rounds} rounds: there must be a round, and one for each",
                self.budget
            )));
        }
        let mut best: Option<Embedded> = None;
        let mut evaluations = 0;
        for round in 0..rounds {
            let seed = self.seed.wrapping_mul(rounds).wrapping_add(round);
            let embedding = match &best {
                None => Embedding::new(space, self.dim, seed)?,
                Some(best) => Embedding::through(space, self.dim, seed, &best.point)?,
            };
            // What does not divide goes to the first rounds.
            let budget = self.budget / rounds + u64::from(round < self.budget % rounds);
            let mut run = minimize(embedding.space())
                .algorithm(self.algorithm.clone())
                .budget(budget)
                .seed(seed);
            if let Some(best) = &best {
                let mut start = vec![0.0; self.dim + 1];
                start[0] = 1.0;
                run = run.known(start, best.value);
            }
            let solution = run.run(embedding.wrap(&mut objective))?;
            evaluations += solution.evaluations();
            if let (Some(value), Some(y)) = (solution.value(), solution.point()) {
                let mut values = best.as_ref().map_or(Vec::new(), |best| best.rounds.clone());
                if best.as_ref().is_none_or(|best| value < best.value) {
                    let point = embedding.lift(y.coordinates());
                    best = Some(Embedded { value, point, evaluations, rounds: Vec::new() });
                }
                if let Some(best) = &mut best {
                    values.push(best.value);
                    (best.rounds, best.evaluations) = (values, evaluations);
                }
            }
        }
        Ok(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn few_matter(p: Point<'_>) -> f64 {
        let x = p.coordinates();
        (x[3] - 2.0).powi(2) + (x[30] + 1.0).powi(2) + (x[300] - 0.5).powi(2)
    }

    #[test]
    fn points_are_in_the_space_and_the_middle_is_the_middle() {
        let space =
            Space::builder().reals("a", 40, -1.0, 3.0).log_real("b", 1e-5, 1e-1).build().unwrap();
        let embedding = Embedding::new(&space, 5, 1).unwrap();
        let mut random = Random::new(2);
        for _ in 0..200 {
            let y: Vec<f64> = (0..5).map(|_| random.between(-1.0, 1.0)).collect();
            space.check(&embedding.lift(&y)).unwrap();
        }
        let middle = embedding.lift(&[0.0; 5]);
        assert_eq!(middle[..40], [1.0; 40]);
        let rate = space.view(&middle).real("b").unwrap();
        assert!((rate - 1e-3).abs() < 1e-12, "{rate}");
        assert_ne!(
            embedding.lift(&[0.1; 5]),
            Embedding::new(&space, 5, 2).unwrap().lift(&[0.1; 5])
        );
    }

    #[test]
    fn a_subspace_goes_through_the_last_point() {
        let space = Space::cube(50, -2.0, 6.0).unwrap();
        let mut last = vec![0.0; 50];
        space.draw(&mut Random::new(1), &mut last);
        let embedding = Embedding::through(&space, 3, 7, &last).unwrap();
        let lifted = embedding.lift(&[1.0, 0.0, 0.0, 0.0]);
        assert!(lifted.iter().zip(&last).all(|(a, b)| (a - b).abs() < 1e-12));
        assert_eq!(embedding.lift(&[0.0; 4]), vec![2.0; 50]);
        assert!(Embedding::through(&space, 3, 7, &[0.0; 49]).is_err());
        assert!(Embedding::through(&space, 3, 7, &[9.0; 50]).is_err());
    }

    #[test]
    fn where_few_coordinates_matter_it_does_better_than_the_whole_space() {
        let space = Space::cube(5000, -5.0, 5.0).unwrap();
        let mut wins = 0;
        for seed in 0..5 {
            let search =
                |space| minimize(space).algorithm(Algorithm::race_cars()).budget(300).seed(seed);
            let whole = search(&space).run(few_matter).unwrap();
            let embedding = Embedding::new(&space, 8, seed).unwrap();
            let small = search(embedding.space()).run(embedding.wrap(few_matter)).unwrap();
            wins += usize::from(small.value().unwrap() < whole.value().unwrap());
        }
        assert!(wins >= 4, "{wins}");
    }

    #[test]
    fn each_round_starts_from_the_best_and_gets_no_worse() {
        // All coordinates matter a little, three of them a lot.
        let all_matter = |p: Point<'_>| {
            few_matter(p) + 1e-3 * p.coordinates().iter().map(|x| (x - 1.0).powi(2)).sum::<f64>()
        };
        let space = Space::cube(1000, -5.0, 5.0).unwrap();
        let settings = SequentialEmbedding::new(8, 2003, 1);
        let found = settings.minimize(&space, all_matter).unwrap().unwrap();
        assert_eq!((found.evaluations, found.rounds.len()), (2003, 5));
        assert!(found.rounds.is_sorted_by(|a, b| a >= b) && found.rounds[4] < found.rounds[0]);
        assert_eq!(found.value, all_matter(space.view(&found.point)));
        assert_eq!(settings.minimize(&space, all_matter).unwrap().unwrap(), found);
    }

    #[test]
    fn failures_and_bad_settings_are_reported() {
        let space = Space::cube(10, 0.0, 1.0).unwrap();
        let settings = SequentialEmbedding::new(2, 50, 1);
        assert_eq!(settings.minimize(&space, |_| f64::NAN).unwrap(), None);
        assert!(Embedding::new(&space, 0, 1).is_err());
        assert!(Embedding::new(&space, usize::MAX, 1).is_err());
        let none = SequentialEmbedding { rounds: 0, ..settings.clone() };
        assert!(none.minimize(&space, |_| 0.0).is_err());
        let few = SequentialEmbedding { budget: 4, ..settings };
        assert!(few.minimize(&space, |_| 0.0).is_err());
        let mixed = Space::builder().real("x", 0.0, 1.0).integer("n", 1, 5).build().unwrap();
        let error = Embedding::new(&mixed, 1, 1).unwrap_err().to_string();
        assert!(error.contains("`n` is not continuous"), "{error}");
    }
}
