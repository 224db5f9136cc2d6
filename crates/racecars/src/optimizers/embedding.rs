//! Random embeddings: a search in a random subspace of few dimensions.
//!
//! If only a few directions matter, it is enough to search a random subspace of slightly more dimensions:
//! with a random matrix A, the points x = A y include one as good as the optimum with probability 1
//! (Wang et al., "Bayesian Optimization in a Billion Dimensions via Random Embeddings", 2016, Theorem
//! 2). If the other directions matter a little, several subspaces are searched one after the other, each
//! through the best point so far (Qian, Hu and Yu, "Derivative-Free Optimization of High-Dimensional
//! Non-Convex Functions by Sequential Random Embeddings", 2016; the public implementation is ZOOpt's).

use super::incumbent::Incumbent;
use super::ledger::Ledger;
use super::nested::Nested;
use super::saved::ID_HEADROOM;
use super::settings::settings;
use super::shell::{Evaluated, Proposal, Search, Setup, Tools};
use super::{Algorithm, Best, Candidate};
use crate::error::{Error, Result, ensure};
use crate::outcome::Outcome;
use crate::random::{Random, mix};
use crate::space::{Axis, Interval, Point, Space};
use serde::{Deserialize, Serialize};

/// The largest number of matrix entries: 1 GiB.
const MAX_ENTRIES: usize = 1 << 27;

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
    /// The bounds of each coordinate.
    axes: Vec<Interval>,
    /// A: one row per coordinate of the whole space.
    rows: Vec<f64>,
    /// The point that the subspace passes through, relative to the middle and in units of the half widths.
    /// Its factor is then the first coordinate of y.
    last: Option<Vec<f64>>,
}

impl Embedding {
    /// A random subspace of `dim` dimensions through the middle of `space`, which must be continuous.
    ///
    /// The coordinates y are in [-1, 1], and the entries of A are standard normal. A y is the point
    /// relative to the middle of `space`, in units of the half widths, clipped to [-1, 1].
    pub fn new(space: &Space, dim: usize, seed: u64) -> Result<Self> {
        Embedding::build(space, dim, seed, None)
    }

    /// Like [`Embedding::new`], but also through `last`, a point of `space`: the subspace has one more
    /// dimension. The first coordinate of y, in [-1, 1], is the factor of `last` (ZOOpt's *withdraw*
    /// factor), so `last` is at (1, 0, ..., 0).
    pub fn through(space: &Space, dim: usize, seed: u64, last: &[f64]) -> Result<Self> {
        space.check(last)?;
        Embedding::build(space, dim, seed, Some(last))
    }

    fn build(space: &Space, dim: usize, seed: u64, last: Option<&[f64]>) -> Result<Self> {
        let count = space.dimension();
        if !matches!(dim.checked_mul(count), Some(1..=MAX_ENTRIES)) {
            return Err(Error::setting(format!(
                "an embedding of {dim} dimensions into {count} does not have from 1 to {MAX_ENTRIES} matrix entries"
            )));
        }
        let axes = (0..count)
            .map(|i| match space.axis(i) {
                Axis::Continuous { low, high } => Ok(Interval { low, high }),
                _ => Err(Error::space(format!(
                    "coordinate `{}` is not continuous; embeddings require continuous coordinates",
                    space.coordinate_name(i)
                ))),
            })
            .collect::<Result<Vec<_>>>()?;
        let last = last.map(|last| {
            let shares = last.iter().zip(&axes);
            let share = |(x, axis): (&f64, &Interval)| match half(*axis) {
                // The logarithms of a narrow range may round to a single number.
                0.0 => 0.0,
                half => (x - middle(*axis)) / half,
            };
            shares.map(share).collect()
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

    /// The low-dimensional space to search.
    pub fn space(&self) -> &Space {
        &self.small
    }

    /// The space that the subspace is embedded in.
    pub fn whole(&self) -> &Space {
        &self.whole
    }

    /// The point of the whole space at coordinates `y`, which are those of [`Embedding::space`]. Missing
    /// coordinates count as 0.
    pub fn lift(&self, y: &[f64]) -> Vec<f64> {
        let mut point = vec![0.0; self.axes.len()];
        self.lift_into(y, &mut point);
        point
    }

    fn lift_into(&self, y: &[f64], point: &mut [f64]) {
        let (factor, y) = match &self.last {
            Some(_) => (y.first().copied().unwrap_or(0.0), y.get(1..).unwrap_or(&[])),
            None => (0.0, y),
        };
        let dim = self.rows.len() / self.axes.len();
        let last = |i: usize| self.last.as_ref().map_or(0.0, |last| factor * last[i]);
        let coordinate = |(i, row): (usize, &[f64])| {
            let share = last(i) + row.iter().zip(y).map(|(a, y)| a * y).sum::<f64>();
            let axis = self.axes[i];
            // Rounding must not leave the space.
            (middle(axis) + half(axis) * share.clamp(-1.0, 1.0)).clamp(axis.low, axis.high)
        };
        let rows = self.rows.chunks_exact(dim).enumerate();
        point.iter_mut().zip(rows).for_each(|(x, row)| *x = coordinate(row));
    }

    /// Converts an objective on the whole space to one on the subspace.
    pub fn wrap<'a, O: 'a>(
        &'a self,
        mut objective: impl FnMut(Point<'_>) -> O + 'a,
    ) -> impl FnMut(Point<'_>) -> O + 'a {
        move |y| objective(self.whole.view(&self.lift(y.coordinates())))
    }
}

/// Halving first keeps the widest finite ranges from overflowing.
fn middle(Interval { low, high }: Interval) -> f64 {
    0.5 * low + 0.5 * high
}

fn half(Interval { low, high }: Interval) -> f64 {
    0.5 * high - 0.5 * low
}

settings! {
    /// Settings of sequential random embedding: a search of one random subspace after the other, each
    /// through the best point so far.
    pub struct SequentialEmbedding {
        /// The dimension of each subspace. Default: 10, or that of the space if it is less.
        dimension: Option<usize>,
        /// The number of subspaces, which get equal parts of the budget. Default: 5.
        rounds: Option<usize>,
        /// The algorithm that searches the subspaces. Default: auto.
        algorithm: Box<Algorithm>,
    }
}

/// A search of one random subspace after the other, each by an optimizer of its own.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EmbeddingSearch {
    algorithm: Algorithm,
    dimension: usize,
    rounds: u64,
    /// The number of evaluations in each round.
    per_round: u64,
    seed: u64,
    /// The index of the current round.
    round: u64,
    /// The best point at the start of the round, which the subspace passes through.
    through: Option<Box<[f64]>>,
    inner: Nested,
    /// The inner optimizer's best evaluation, as a point of the whole space.
    best: Incumbent,
    /// The best evaluation of a point outside of the subspace.
    outside: Incumbent,
    #[serde(skip)]
    embedding: Option<Embedding>,
}

/// The inner optimizer's candidate of a pending candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct InnerCandidate {
    round: u64,
    id: u64,
    point: Box<[f64]>,
    key: u64,
}

impl EmbeddingSearch {
    pub(super) fn new(settings: &SequentialEmbedding, setup: Setup<'_>) -> Result<Self> {
        let Setup { space, budget, seed } = setup;
        let dimension = settings.dimension.unwrap_or(space.dimension().min(10));
        let rounds = settings.rounds.unwrap_or(5) as u64;
        ensure!(rounds > 0, setting, "rounds of an embedding is 0, not at least 1");
        let per_round = match budget {
            Some(budget) => budget.div_ceil(rounds).max(1),
            None => 100 * dimension as u64,
        };
        let algorithm = Algorithm::clone(&settings.algorithm);
        let seed_of_round = Self::seed_of(seed, 0);
        let embedding = Embedding::new(space, dimension, seed_of_round)?;
        let inner = algorithm.optimizer(embedding.space(), Some(per_round), seed_of_round)?;
        Ok(EmbeddingSearch {
            algorithm,
            dimension,
            rounds,
            per_round,
            seed,
            round: 0,
            through: None,
            inner: Nested::Open(inner),
            best: Incumbent::default(),
            outside: Incumbent::default(),
            embedding: Some(embedding),
        })
    }

    /// The seed of a round's subspace and optimizer.
    fn seed_of(seed: u64, round: u64) -> u64 {
        mix(seed.wrapping_add(mix(round)))
    }

    fn embed(&self, space: &Space) -> Result<Embedding> {
        let seed = Self::seed_of(self.seed, self.round);
        Embedding::build(space, self.dimension, seed, self.through.as_deref())
    }

    /// Advances to the next subspace, through the best point.
    fn next_round(&mut self, tools: &Tools<'_, InnerCandidate>) -> Result<()> {
        self.round += 1;
        let value = self.incumbent().value();
        self.through = value.and(self.incumbent().sample()).map(|best| best.point.clone());
        if value.is_none() {
            // The next optimizer is not told an infeasible point.
            self.outside = self.incumbent().clone();
        }
        let embedding = self.embed(tools.space)?;
        let seed = Self::seed_of(self.seed, self.round);
        let mut inner = self.algorithm.optimizer(embedding.space(), Some(self.per_round), seed)?;
        if let Some(value) = value {
            let mut start = vec![0.0; self.dimension + 1];
            start[0] = 1.0;
            inner.tell(Candidate::known(start), Outcome::from(value))?;
        }
        (self.inner, self.embedding) = (Nested::Open(inner), Some(embedding));
        Ok(())
    }

    /// Follows the inner optimizer's best, which a re-evaluation may make worse.
    fn update_best(&mut self) {
        let (Some(inner), Some(embedding)) = (self.inner.optimizer().best(), &self.embedding)
        else {
            return;
        };
        if self.best.sample().is_none_or(|best| best.rank != inner.rank) {
            self.best.replace(&embedding.lift(inner.point), inner.rank, 0);
        }
    }

    fn is_outside(&self) -> bool {
        self.outside.sample().is_some_and(|outside| self.best.is_beaten_by(outside.rank))
    }

    fn incumbent(&self) -> &Incumbent {
        if self.is_outside() { &self.outside } else { &self.best }
    }
}

impl Search for EmbeddingSearch {
    type Mark = InnerCandidate;

    const KEEPS_BEST: bool = true;

    fn prepare(&mut self, space: &Space, depth: usize) -> Result<()> {
        let embedding = self.embed(space)?;
        self.inner.open(embedding.space(), depth)?;
        self.embedding = Some(embedding);
        if self.round + 1 < self.rounds {
            // Later rounds have one more dimension, for the best point. If the algorithm cannot search
            // that, it is refused now. The optimizer itself is discarded.
            let next = Space::cube(self.dimension + 1, -1.0, 1.0)?;
            self.algorithm.optimizer(&next, Some(self.per_round), 0)?;
        }
        Ok(())
    }

    #[expect(clippy::expect_used, reason = "see the messages")]
    fn propose(
        &mut self,
        tools: &mut Tools<'_, InnerCandidate>,
    ) -> Option<Proposal<InnerCandidate>> {
        let until = self.per_round.saturating_mul(self.round + 1);
        if self.round + 1 < self.rounds && tools.ledger.next_id() >= until {
            self.next_round(tools).expect("`prepare` checked the settings of the next round");
        }
        let Candidate { id, point: inner, key, .. } = self.inner.optimizer_mut().ask()?;
        let mut point = tools.buffer();
        let embedding = self.embedding.as_ref().expect("`prepare` made the embedding");
        embedding.lift_into(&inner, &mut point);
        let mark = InnerCandidate { round: self.round, id, point: inner, key };
        Some(Proposal { point, key: 0, mark })
    }

    fn learn(
        &mut self,
        evaluated: Evaluated<InnerCandidate>,
        _: &mut Tools<'_, InnerCandidate>,
    ) -> Result<Option<Box<[f64]>>> {
        let Evaluated { sample, asked, .. } = evaluated;
        match asked.map(|asked| asked.mark) {
            Some(InnerCandidate { round, id, point, key }) if round == self.round => {
                let inner = self.inner.optimizer_mut();
                let space = inner.space().fingerprint();
                inner.tell_rank(Candidate { id, space, key, point }, sample.rank)?;
                self.update_best();
            }
            // Late outcomes of a noisy objective may be lucky, and are not evaluated again.
            Some(_) if self.inner.optimizer().is_noisy() != Some(false) => {}
            // The next subspace passes through the best point, also if it is known or late.
            _ if self.outside.is_beaten_by(sample.rank) => {
                self.outside.replace(&sample.point, sample.rank, 0);
            }
            _ => {}
        }
        Ok(Some(sample.point))
    }

    fn best(&self) -> Option<Best<'_>> {
        let best = self.incumbent().best()?;
        let inner = self.inner.optimizer().best();
        let evaluations = inner.filter(|inner| !self.is_outside() && inner.rank == best.rank);
        Some(Best { evaluations: evaluations.map_or(1, |inner| inner.evaluations), ..best })
    }

    fn is_noisy(&self) -> Option<bool> {
        self.inner.optimizer().is_noisy()
    }

    fn is_sound(&self, space: &Space, ledger: &Ledger<InnerCandidate>) -> Result<bool> {
        let inner = self.dimension.saturating_add(usize::from(self.through.is_some()));
        // A mark of a later round would be told to that round's optimizer.
        let is_mark = |mark: &InnerCandidate| {
            mark.round < self.round || (mark.round == self.round && mark.point.len() == inner)
        };
        Ok((1..ID_HEADROOM).contains(&self.rounds)
            && self.round < self.rounds
            && self.per_round > 0
            && self.best.is_sound(space)
            && self.outside.is_sound(space)
            && self.through.as_ref().is_none_or(|point| space.check(point).is_ok())
            && ledger.marks().all(is_mark))
    }

    fn is_heavy(&self, _: &Space) -> bool {
        self.inner.optimizer().is_heavy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizers::load;
    use crate::run::minimize;

    fn few_matter(p: Point<'_>) -> f64 {
        let x = p.coordinates();
        (x[3] - 2.0).powi(2) + (x[30] + 1.0).powi(2) + (x[300] - 0.5).powi(2)
    }

    #[test]
    fn points_are_in_the_space_and_zero_is_its_middle() {
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
    fn a_subspace_passes_through_the_last_point() {
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
    fn if_few_coordinates_matter_a_subspace_is_better_than_the_whole_space() {
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
    fn each_round_passes_through_the_best_point_and_saving_changes_nothing() {
        // All coordinates matter a little, three of them a lot.
        let all_matter = |x: &[f64]| {
            let little: f64 = x.iter().map(|x| (x - 1.0).powi(2)).sum();
            (x[3] - 2.0).powi(2) + (x[30] + 1.0).powi(2) + (x[300] - 0.5).powi(2) + 1e-3 * little
        };
        let space = Space::cube(1000, -5.0, 5.0).unwrap();
        let settings =
            SequentialEmbedding::default().dimension(8).algorithm(Algorithm::race_cars());
        let algorithm = Algorithm::Embedding(settings);
        let mut optimizer = algorithm.optimizer(&space, Some(2000), 1).unwrap();
        let mut by_round = Vec::new();
        for evaluation in 1..=2000 {
            if evaluation % 300 == 0 {
                optimizer = load(&optimizer.save()).unwrap();
            }
            let candidate = optimizer.ask().unwrap();
            space.check(candidate.point()).unwrap();
            let value = all_matter(candidate.point());
            optimizer.tell(candidate, Outcome::from(value)).unwrap();
            if evaluation % 400 == 0 {
                by_round.push(optimizer.best().unwrap().rank.value().unwrap());
            }
        }
        assert!(by_round.is_sorted_by(|a, b| a >= b) && by_round[4] < by_round[0], "{by_round:?}");
        let best = optimizer.best().unwrap();
        assert_eq!(best.rank.value(), Some(all_matter(best.point)));
    }

    #[test]
    fn failures_and_bad_settings_are_reported() {
        let space = Space::cube(10, 0.0, 1.0).unwrap();
        let refused = |settings: SequentialEmbedding| {
            Algorithm::Embedding(settings).optimizer(&space, Some(50), 1).unwrap_err().to_string()
        };
        let settings = SequentialEmbedding::default;
        assert!(refused(settings().rounds(0)).contains("rounds of an embedding is 0"));
        assert!(refused(settings().dimension(0)).contains("0 dimensions"));
        assert!(Embedding::new(&space, usize::MAX, 1).is_err());
        // This population is allowed in 128 dimensions, but later rounds have one more.
        let space = Space::cube(200, 0.0, 1.0).unwrap();
        let algorithm = Algorithm::CmaEs(crate::CmaEs::default().population(1 << 20));
        let embed = |rounds: usize| {
            let settings = settings().dimension(128).rounds(rounds).algorithm(algorithm.clone());
            Algorithm::Embedding(settings).optimizer(&space, Some(50), 1)
        };
        assert!(embed(1).is_ok());
        assert!(embed(2).unwrap_err().to_string().contains("population 1048576"));
        let mut optimizer = Algorithm::embedding().optimizer(&space, Some(50), 1).unwrap();
        for _ in 0..60 {
            let candidate = optimizer.ask().unwrap();
            optimizer.tell(candidate, Outcome::from(f64::NAN)).unwrap();
        }
        assert!(optimizer.best().is_none());
        let mixed = Space::builder().real("x", 0.0, 1.0).integer("n", 1, 5).build().unwrap();
        let error = Embedding::new(&mixed, 1, 1).unwrap_err().to_string();
        assert!(error.contains("`n` is not continuous"), "{error}");
    }
}
