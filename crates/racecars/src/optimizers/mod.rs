//! The algorithms. Each is a pure ask/tell state machine without clock, threads, files or printing.
//!
//! - [`racos`]: RACOS, SRACOS and RACE-CARS, which share one state machine
//! - [`cma_es`]: CMA-ES and its separable variant, with restarts
//! - [`differential_evolution`]: best/1/bin, rand/1/bin and L-SHADE
//! - [`gaussian_process`]: a trust-region Gaussian process, for few and expensive evaluations
//! - [`quasi_newton`]: L-BFGS on difference quotients
//! - [`zo_adam`]: gradient descent on estimated gradients
//! - [`quadratic`]: quadratic models in a trust region
//! - [`sqp`]: sequential quadratic programming, for constraints that evaluations measure
//! - [`evolution`]: climbs, mixing and restarts for discrete coordinates
//! - [`local_search`]: moves that fit each kind of coordinate, late acceptance
//! - [`quasi_random`]: a scrambled Halton sequence
//! - [`random_search`]: uniform sampling
//! - [`embedding`]: a search of random subspaces by any other algorithm
//!
//! `auto`, the default, is a [`portfolio`](crate::portfolio) of them.
//!
//! All follow the contract documented on [`Optimizer`]. `registry` has one row per algorithm, `shell` has
//! everything that algorithms share, and `settings` declares their settings. An algorithm itself is a
//! state with `propose` and `learn`.

pub mod cma_es;
mod differences;
pub mod differential_evolution;
pub mod embedding;
pub mod evolution;
pub mod gaussian_process;
pub(crate) mod incumbent;
pub(crate) mod ledger;
pub mod local_search;
pub(crate) mod nested;
pub mod quadratic;
pub mod quasi_newton;
pub mod quasi_random;
pub mod racos;
pub mod random_search;
mod registry;
pub(crate) mod saved;
pub(crate) mod settings;
pub(crate) mod shell;
pub mod sqp;
mod trust_region;
mod unit_box;
pub mod zo_adam;

pub use registry::Algorithm;
pub(crate) use registry::split_outside_brackets;
pub use saved::{load, load_in};
pub use settings::{GivenSetting, Setting};
pub use shell::Shell;

use crate::error::Result;
use crate::outcome::{Direction, Measured, Outcome, Rank};
use crate::space::{Point, Space};
use serde::{Deserialize, Serialize};

/// A point to evaluate. Return it to its optimizer with the outcome by [`Optimizer::tell`].
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub(crate) id: u64,
    /// The fingerprint of the point's space.
    pub(crate) space: u64,
    /// The point's key, see `Space::key`.
    pub(crate) key: u64,
    pub(crate) point: Box<[f64]>,
}

impl Candidate {
    /// The id of points that no optimizer proposed.
    const KNOWN_ID: u64 = u64::MAX;

    /// A point that no optimizer proposed, for telling a known outcome. Telling checks that it belongs to
    /// the space.
    pub fn known(point: impl Into<Box<[f64]>>) -> Self {
        Candidate { id: Candidate::KNOWN_ID, space: 0, key: 0, point: point.into() }
    }

    /// Recreates a candidate that was asked before from its id and its encoded point, for drivers that
    /// send candidates to other processes or resume after a restart.
    ///
    /// ```
    /// use racecars::{Algorithm, Candidate, Optimizer, Outcome, Space, load};
    ///
    /// let space = Space::cube(3, 0.0, 1.0)?;
    /// let mut optimizer = Algorithm::race_cars().optimizer(&space, None, 1)?;
    /// let asked = optimizer.ask().unwrap();
    /// let (id, point) = (asked.id().unwrap(), asked.point().to_vec());
    ///
    /// let mut restored = load(&optimizer.save())?;
    /// restored.tell(Candidate::asked(&space, id, point)?, Outcome::from(0.5))?;
    /// assert_eq!(restored.pending(), 0);
    /// # Ok::<(), racecars::Error>(())
    /// ```
    pub fn asked(space: &Space, id: u64, point: impl Into<Box<[f64]>>) -> Result<Self> {
        let point = point.into();
        space.check(&point)?;
        Ok(Candidate { id, space: space.fingerprint(), key: space.key(&point), point })
    }

    /// The candidate's id: 0, 1, 2, ... in the order asked; `None` for a known point.
    pub fn id(&self) -> Option<u64> {
        (self.id != Candidate::KNOWN_ID).then_some(self.id)
    }

    /// The encoded point; [`Space::view`] gives access by name.
    pub fn point(&self) -> &[f64] {
        &self.point
    }
}

/// The best evaluation told to an optimizer.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Best<'a> {
    /// The encoded point.
    pub point: &'a [f64],
    /// The rank of its outcome: a value, or the violation if no feasible point is known.
    pub rank: Rank,
    /// The number of evaluations averaged in the value: 1, unless the objective is known to be noisy and
    /// the point was re-evaluated.
    pub evaluations: u64,
}

impl<'a> Best<'a> {
    pub(crate) fn single(point: &'a [f64], rank: Rank) -> Self {
        Best { point, rank, evaluations: 1 }
    }
}

/// The part of the space that a search is confined to.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ShrunkRegion<'a> {
    /// The encoded centre.
    pub center: &'a [f64],
    /// The fraction of each axis inside the region.
    pub share: f64,
}

/// A report on a portfolio of algorithms.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Portfolio {
    /// Whether the objective is known to be noisy. Then the best value is the mean over re-evaluations of
    /// the best point.
    pub noisy: bool,
    /// The decisions, in order.
    pub decisions: Vec<Decision>,
    /// The members with at least one evaluation.
    pub members: Vec<MemberAccount>,
}

impl Portfolio {
    /// Converts the values to the user's direction: see [`Direction::signed`].
    pub fn signed(mut self, direction: Direction) -> Self {
        for best in self.members.iter_mut().filter_map(|member| member.best.as_mut()) {
            *best = direction.signed(*best);
        }
        self
    }
}

/// A decision of a portfolio.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Decision {
    /// The number of points asked before it.
    pub at: u64,
    /// The decision, or its reason.
    pub what: String,
}

/// The evaluations of one member of a portfolio.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MemberAccount {
    /// The member's name.
    pub name: String,
    /// The number of its evaluations.
    pub evaluations: u64,
    /// The number of evaluations that improved the best value.
    pub improvements: u64,
    /// The best value it found. Optimizers minimize: see [`Portfolio::signed`].
    pub best: Option<f64>,
}

/// An optimizer: a state machine that proposes points and learns from their outcomes. It minimizes.
///
/// ```
/// use racecars::{Algorithm, Optimizer, Outcome, Space};
///
/// let space = Space::cube(10, -10.0, 10.0)?;
/// let mut optimizer = Algorithm::race_cars().optimizer(&space, Some(500), 1)?;
/// while optimizer.told() < 500 {
///     let Some(candidate) = optimizer.ask() else { break };
///     let value: f64 = candidate.point().iter().map(|x| x * x).sum();
///     optimizer.tell(candidate, Outcome::from(value))?;
/// }
/// assert!(optimizer.best().is_some_and(|best| best.rank.value().unwrap() < 10.0));
/// # Ok::<(), racecars::Error>(())
/// ```
///
/// Any number of candidates may be pending. They may be told in any order, late, or never.
///
/// The trait is sealed, so that every optimizer can be saved and restored. Optimizers are created by
/// [`Algorithm::optimizer`]; [`Relay`](crate::Relay) composes several algorithms.
pub trait Optimizer: sealed::Sealed + std::fmt::Debug + Send {
    /// The search space.
    fn space(&self) -> &Space;

    /// The algorithm's name, as in [`Algorithm::NAMES`].
    fn name(&self) -> &'static str;

    /// Proposes a point, without waiting for pending candidates. In a space with discrete coordinates the
    /// point has been neither proposed nor told before, unless the objective is known to be noisy or `auto`
    /// finds out by evaluating a point twice. `None` if no such point is left.
    fn ask(&mut self) -> Option<Candidate>;

    /// Learns the outcome of a candidate, or of a [known](Candidate::known) point.
    ///
    /// Fails without changing the state if the candidate was told before or never asked, or if the point
    /// does not belong to the space.
    fn tell(&mut self, candidate: Candidate, outcome: Outcome) -> Result<()> {
        match outcome.to_measured(Direction::Minimize) {
            Some(measured) => self.tell_measured(candidate, outcome.rank(), &measured),
            None => self.tell_rank(candidate, outcome.rank()),
        }
    }

    /// Learns the rank of a candidate's outcome, and its constraints.
    #[doc(hidden)]
    fn tell_measured(
        &mut self,
        candidate: Candidate,
        rank: Rank,
        measured: &Measured,
    ) -> Result<()>;

    /// Learns the rank of a candidate's outcome, which is all that most optimizers use.
    #[doc(hidden)]
    fn tell_rank(&mut self, candidate: Candidate, rank: Rank) -> Result<()>;

    /// The number of outcomes told.
    fn told(&self) -> u64;

    /// The number of candidates asked and not told.
    fn pending(&self) -> usize;

    /// The best evaluation told; `None` while all have failed. An infeasible point is the best only while
    /// no feasible point is known.
    fn best(&self) -> Option<Best<'_>>;

    /// The region that the search is confined to, if the algorithm has one.
    fn region(&self) -> Option<ShrunkRegion<'_>>;

    /// Whether the next ask or tell may take milliseconds, so that callers should release locks meanwhile.
    fn is_heavy(&self) -> bool;

    /// Whether the objective is noisy as far as the algorithm knows; `None` while it finds out. If it is,
    /// the best value is a mean, see [`Best::evaluations`], and may get worse as the best point is
    /// re-evaluated.
    fn is_noisy(&self) -> Option<bool>;

    /// The report of a portfolio of algorithms; `None` for a single algorithm.
    fn portfolio(&self) -> Option<Portfolio>;

    /// The number of times that the algorithm restarted after it had converged or stalled.
    fn restarts(&self) -> u64;

    /// Marks points as proposed by their keys, so that they are not proposed again.
    #[doc(hidden)]
    fn mark_seen(&mut self, keys: &[u64]);

    /// Learns that a point told before was re-evaluated: the rank of the new outcome, and that of the mean
    /// of its re-evaluations.
    #[doc(hidden)]
    fn revise(&mut self, point: &[f64], latest: Rank, mean: Rank);

    /// The point that is the best of those told by a model that averages noise, and the rank of the mean of
    /// its values; `None` if the algorithm has no such model.
    #[doc(hidden)]
    fn favourite(&mut self) -> Option<(Box<[f64]>, Rank)>;

    /// Saves the state, including the random generator, as bytes for [`load`]. A restored optimizer
    /// continues exactly as this one would.
    fn save(&self) -> Vec<u8>;

    /// A view of the best point by name.
    fn best_point(&self) -> Option<Point<'_>> {
        self.best().map(|best| self.space().view(best.point))
    }
}

mod sealed {
    pub trait Sealed {}
}
