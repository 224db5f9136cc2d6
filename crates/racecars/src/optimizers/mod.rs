//! The algorithms, each a pure ask/tell state machine: no clock, threads, files or printing inside.
//!
//! - [`racos`]: RACOS, SRACOS and RACE-CARS, which share one state machine
//! - [`cma_es`]: CMA-ES and its separable variant, with restarts
//! - [`differential_evolution`]: best/1/bin, rand/1/bin and L-SHADE
//! - [`zo_adam`]: descent on estimated gradients
//! - [`quasi_random`]: a scrambled Halton sequence
//! - [`random_search`]: uniform draws
//! - [`embedding`]: a search of random subspaces, by any of the others
//!
//! `auto`, the default, is a [`portfolio`](crate::portfolio) of them.
//!
//! All follow the contract documented on [`Optimizer`]. `registry` has a row for each; `shell` is what
//! they share, so that an algorithm is a state with `propose` and `learn`; `settings` declares what can
//! be set.

pub mod cma_es;
pub mod differential_evolution;
pub mod embedding;
pub(crate) mod incumbent;
pub(crate) mod ledger;
pub(crate) mod nested;
pub mod quasi_random;
pub mod racos;
pub mod random_search;
mod registry;
pub(crate) mod saved;
pub(crate) mod settings;
pub(crate) mod shell;
pub mod zo_adam;

pub use registry::Algorithm;
pub(crate) use registry::split_outside_brackets;
pub use saved::load;
pub use settings::Setting;
pub use shell::Shell;

use crate::error::Result;
use crate::outcome::{Direction, Outcome, Rank};
use crate::space::{Point, Space};
use serde::Serialize;

/// A point to evaluate. It goes back to its optimizer, with the outcome, by [`Optimizer::tell`].
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub(crate) id: u64,
    /// The fingerprint of the space that the point is of.
    pub(crate) space: u64,
    /// The point's key, see `Space::key_term`.
    pub(crate) key: u64,
    pub(crate) point: Box<[f64]>,
}

impl Candidate {
    /// The id of candidates that no optimizer proposed.
    const KNOWN: u64 = u64::MAX;

    /// A point that no optimizer proposed, for telling what is already known about it. The space
    /// checks it when it is told.
    pub fn known(point: impl Into<Box<[f64]>>) -> Self {
        Candidate { id: Candidate::KNOWN, space: 0, key: 0, point: point.into() }
    }

    /// A candidate that was asked before, made anew from its number and its encoded point, for drivers
    /// whose candidates travel as data: to another process, or past a restart.
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

    /// The candidate's number: 0, 1, 2, ... in the order asked, `None` for a known point.
    pub fn id(&self) -> Option<u64> {
        (self.id != Candidate::KNOWN).then_some(self.id)
    }

    /// The encoded point; [`Space::view`] gives access by name.
    pub fn point(&self) -> &[f64] {
        &self.point
    }
}

/// The best evaluation that an optimizer has been told of.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Best<'a> {
    /// The encoded point.
    pub point: &'a [f64],
    /// Its outcome's rank: a value, or the violation of the least infeasible point.
    pub rank: Rank,
    /// The number of evaluations that the value is a mean of: 1, unless the objective is known to be noisy
    /// and the point was re-evaluated.
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
    /// The encoded point it is centred on.
    pub center: &'a [f64],
    /// The share of each axis that is inside.
    pub share: f64,
}

/// What a portfolio of algorithms did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Portfolio {
    /// Whether the objective is known to be noisy. Then the best value is the mean of the values that the
    /// best point had when it was evaluated again.
    pub noisy: bool,
    /// What was decided, in order.
    pub decisions: Vec<Decision>,
    /// The members that had evaluations.
    pub members: Vec<MemberAccount>,
}

impl Portfolio {
    /// The same in the user's sense, for an objective of this direction.
    pub fn signed(mut self, direction: Direction) -> Self {
        for best in self.members.iter_mut().filter_map(|member| member.best.as_mut()) {
            *best = direction.signed(*best);
        }
        self
    }
}

/// A decision of a portfolio.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Decision {
    /// The points asked before it.
    pub at: u64,
    /// What was decided, or the reason.
    pub what: String,
}

/// What a member of a portfolio did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MemberAccount {
    /// The member's name.
    pub name: String,
    /// The evaluations it had.
    pub evaluations: u64,
    /// How many of them were better than everything before.
    pub improvements: u64,
    /// The best value it found, in the optimizer's sense: of a function to be minimized.
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
/// Any number of candidates may be out at a time; they may be told in any order, late, or never.
///
/// The trait is sealed: optimizers are made by [`Algorithm::optimizer`] or
/// [`Relay`](crate::Relay), so that each can be saved and restored.
pub trait Optimizer: sealed::Sealed + std::fmt::Debug + Send {
    /// The space that is searched.
    fn space(&self) -> &Space;

    /// The algorithm's name, as the command line spells it.
    fn name(&self) -> &'static str;

    /// Proposes a point; never waits for tells. Where coordinates are discrete it is one that has been
    /// neither proposed nor told before, unless the objective is known to be noisy; `None` when there is none
    /// left.
    fn ask(&mut self) -> Option<Candidate>;

    /// Learns the outcome of a candidate, or of a point [known](Candidate::known) from elsewhere.
    ///
    /// Refuses, and changes nothing, if the candidate was told before, or the point is not of this
    /// space.
    fn tell(&mut self, candidate: Candidate, outcome: Outcome) -> Result<()>;

    /// The number of outcomes told.
    fn told(&self) -> u64;

    /// The number of candidates out.
    fn pending(&self) -> usize;

    /// The best evaluation told, `None` while all have failed. An infeasible point is best only
    /// while no feasible one is known.
    fn best(&self) -> Option<Best<'_>>;

    /// The region that the search is confined to, where the algorithm has one.
    fn region(&self) -> Option<ShrunkRegion<'_>>;

    /// Whether the next ask or tell may take milliseconds, so that a caller should let others go on.
    fn is_heavy(&self) -> bool;

    /// Whether the objective is known to be noisy. Then the best value is a mean, see
    /// [`Best::evaluations`], and may get worse as the best point is re-evaluated.
    fn is_noisy(&self) -> bool;

    /// What a portfolio of algorithms did, and why; `None` for a single algorithm.
    fn portfolio(&self) -> Option<Portfolio>;

    /// Takes points as proposed, by their keys, so that they are not proposed again.
    #[doc(hidden)]
    fn mark_seen(&mut self, keys: &[u64]);

    /// The best point, if it is this one, was re-evaluated and has this rank now.
    #[doc(hidden)]
    fn revise(&mut self, point: &[f64], rank: Rank);

    /// The whole state, random generator included, as bytes that [`load`] takes back. A restored
    /// optimizer goes on exactly as this one would have.
    fn save(&self) -> Vec<u8>;

    /// A view of the best point by name.
    fn best_point(&self) -> Option<Point<'_>> {
        self.best().map(|best| self.space().view(best.point))
    }
}

mod sealed {
    pub trait Sealed {}
}
