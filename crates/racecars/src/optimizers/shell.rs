//! The shell that every algorithm runs in: the space, the candidates that are out, the points that are
//! taken, the best evaluation, the random generator, buffers, saving and restoring. An algorithm is
//! a [`Search`]: it proposes points and learns from their outcomes, over a state of its own.

use super::incumbent::Incumbent;
use super::ledger::{Ledger, Settled};
use super::saved;
use super::{Best, Candidate, Optimizer, Portfolio, ShrunkRegion};
use crate::error::Result;
use crate::outcome::{Outcome, Rank};
use crate::random::Random;
use crate::sample::Sample;
use crate::space::Space;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What an algorithm is made for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup<'a> {
    pub(crate) space: &'a Space,
    /// The number of evaluations planned, if known.
    pub(crate) budget: Option<u64>,
    pub(crate) seed: u64,
}

/// An algorithm: what it proposes and what it learns. Its state serializes; what can be rebuilt is
/// skipped by serde, and rebuilt by [`Search::prepare`].
pub(crate) trait Search: fmt::Debug + Send + Serialize + DeserializeOwned {
    /// What is remembered of a candidate while it is out.
    type Mark: fmt::Debug + Clone + Send + Serialize + DeserializeOwned;

    /// Whether the best evaluation is part of the algorithm's state anyway; then [`Search::best`] has
    /// it, and the shell keeps no copy.
    const KEEPS_BEST: bool = false;

    /// The next point; `None` when there is none.
    fn propose(&mut self, tools: &mut Tools<'_, Self::Mark>) -> Option<Proposal<Self::Mark>>;

    /// Learns the outcome of a point. Returns its buffer, or another that is of no more use.
    fn learn(
        &mut self,
        told: Evaluated<Self::Mark>,
        tools: &mut Tools<'_, Self::Mark>,
    ) -> Result<Option<Box<[f64]>>>;

    /// Rebuilds what is not saved, after the state was made or restored. `depth` counts the optimizers
    /// that this one is nested in.
    fn prepare(&mut self, _space: &Space, _depth: usize) -> Result<()> {
        Ok(())
    }

    /// Checks the invariants of a deserialized state; an error names a setting or point that is out of
    /// range.
    fn is_sound(&self, space: &Space, ledger: &Ledger<Self::Mark>) -> Result<bool>;

    /// The best evaluation, if the algorithm [keeps](Search::KEEPS_BEST) it.
    fn best(&self) -> Option<Best<'_>> {
        None
    }

    /// Whether points may be proposed again in a space with discrete coordinates.
    fn repeats(&self) -> bool {
        false
    }

    fn region(&self) -> Option<ShrunkRegion<'_>> {
        None
    }

    fn is_heavy(&self, _space: &Space) -> bool {
        false
    }

    fn is_noisy(&self) -> bool {
        false
    }

    fn portfolio(&self) -> Option<Portfolio> {
        None
    }

    fn revise(&mut self, _point: &[f64], _rank: Rank) {}
}

/// A point to evaluate.
pub(crate) struct Proposal<M> {
    pub(crate) point: Box<[f64]>,
    /// The point's key, see `Space::key_term`.
    pub(crate) key: u64,
    pub(crate) mark: M,
}

/// An evaluated point that is learned from.
pub(crate) struct Evaluated<M> {
    pub(crate) sample: Sample,
    /// The candidate's id and mark; `None` for a point that was not asked.
    pub(crate) asked: Option<(u64, M)>,
    /// Whether it is the best so far, where the shell keeps the best.
    pub(crate) is_best: bool,
}

/// What the shell lends to an algorithm.
pub(crate) struct Tools<'a, M> {
    pub(crate) space: &'a Space,
    pub(crate) random: &'a mut Random,
    pub(crate) ledger: &'a mut Ledger<M>,
    /// The best evaluation told, the one that is being learned included.
    pub(crate) best: &'a Incumbent,
    buffers: &'a mut Buffers,
}

impl<M> Tools<'_, M> {
    /// A buffer for a point, whose numbers are left over from another.
    #[inline]
    pub(crate) fn buffer(&mut self) -> Box<[f64]> {
        let spare = self.buffers.spare.pop();
        spare.unwrap_or_else(|| vec![0.0; self.space.dimension()].into_boxed_slice())
    }

    /// Keeps a buffer for a point to come.
    pub(crate) fn keep(&mut self, buffer: Box<[f64]>) {
        self.buffers.keep(buffer);
    }

    /// Fills `point` with a uniform draw that was not seen before, and returns its key; `None` when no
    /// unseen point is left.
    #[inline]
    pub(crate) fn draw(&mut self, point: &mut [f64]) -> Option<u64> {
        self.ledger.draw(self.space, self.random, point)
    }

    /// The first point out of `tries` writes that was not seen before, with its key and what was
    /// written beside it; then a uniform draw without the latter. `write` gets the number of the
    /// attempt, and may give up. Where points do not repeat there is one attempt.
    #[inline]
    pub(crate) fn unseen<T>(
        &mut self,
        tries: usize,
        point: &mut [f64],
        mut write: impl FnMut(&mut Self, usize, &mut [f64]) -> Option<(u64, T)>,
    ) -> Option<(u64, Option<T>)> {
        let tries = if self.space.can_repeat() { tries } else { 1 };
        for attempt in 0..tries {
            let Some((key, beside)) = write(self, attempt, point) else { break };
            if !self.ledger.has_seen(key) {
                return Some((key, Some(beside)));
            }
        }
        Some((self.draw(point)?, None))
    }
}

/// Buffers of points told, for points to come.
#[derive(Debug, Default)]
struct Buffers {
    spare: Vec<Box<[f64]>>,
    /// The most candidates that were ever out at a time: points told without being asked could
    /// otherwise pile up.
    most_out: usize,
}

impl Buffers {
    #[inline]
    fn keep(&mut self, buffer: Box<[f64]>) {
        if self.spare.len() < self.most_out {
            self.spare.push(buffer);
        }
    }
}

/// An algorithm in its shell: an [`Optimizer`].
#[derive(Debug)]
#[allow(private_bounds, reason = "algorithms are ours to write")]
pub struct Shell<S: Search> {
    name: &'static str,
    space: Space,
    random: Random,
    ledger: Ledger<S::Mark>,
    best: Incumbent,
    search: S,
    buffers: Buffers,
}

/// The saved form.
#[derive(Serialize)]
struct SavedStateRef<'a, S: Search> {
    random: &'a Random,
    ledger: &'a Ledger<S::Mark>,
    best: &'a Incumbent,
    search: &'a S,
}

/// The same, read.
#[derive(Deserialize)]
#[serde(bound = "")]
struct SavedState<S: Search> {
    random: Random,
    ledger: Ledger<S::Mark>,
    best: Incumbent,
    search: S,
}

#[allow(private_bounds, reason = "algorithms are ours to write")]
impl<S: Search> Shell<S> {
    /// Puts an algorithm into its shell. `make` may draw from the generator that the search goes on
    /// with.
    pub(crate) fn new(
        name: &'static str,
        setup: Setup<'_>,
        make: impl FnOnce(Setup<'_>, &mut Random) -> Result<S>,
    ) -> Result<Self> {
        let mut random = Random::new(setup.seed);
        let mut search = make(setup, &mut random)?;
        search.prepare(setup.space, 0)?;
        Ok(Shell {
            name,
            space: setup.space.clone(),
            random,
            ledger: Ledger::default(),
            best: Incumbent::default(),
            search,
            buffers: Buffers::default(),
        })
    }

    /// Takes a saved state back, if it is one that this code could have written.
    pub(crate) fn restore(
        name: &'static str,
        space: Space,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Self> {
        let SavedState::<S> { random, ledger, best, mut search } = saved::read(bytes)?;
        let is_sound = random.is_alive()
            && ledger.is_sound(&space)
            && best.is_sound(&space)
            && (!S::KEEPS_BEST || best.sample().is_none())
            && search.is_sound(&space, &ledger)?;
        if !is_sound {
            return Err(saved::unsound());
        }
        search.prepare(&space, depth)?;
        Ok(Shell { name, space, random, ledger, best, search, buffers: Buffers::default() })
    }

    pub(crate) fn search(&self) -> &S {
        &self.search
    }

    fn parts(&mut self) -> (&mut S, Tools<'_, S::Mark>) {
        let Shell { space, random, ledger, best, search, buffers, .. } = self;
        (search, Tools { space, random, ledger, best, buffers })
    }

    #[cfg(test)]
    pub(crate) fn random(&self) -> &Random {
        &self.random
    }
}

#[allow(private_bounds, reason = "algorithms are ours to write")]
impl<S: Search> super::sealed::Sealed for Shell<S> {}

#[allow(private_bounds, reason = "algorithms are ours to write")]
impl<S: Search> Optimizer for Shell<S> {
    fn space(&self) -> &Space {
        &self.space
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn ask(&mut self) -> Option<Candidate> {
        if !self.search.repeats() && self.ledger.is_exhausted(&self.space) {
            return None;
        }
        let (search, mut tools) = self.parts();
        let Proposal { point, key, mark } = search.propose(&mut tools)?;
        debug_assert_eq!(self.space.check(&point), Ok(()), "{} left its space", self.name);
        debug_assert!(
            !self.space.can_repeat() || key == self.space.key(&point),
            "{} proposed a point with another one's key",
            self.name
        );
        let candidate = self.ledger.issue(&self.space, point, key, mark);
        self.buffers.most_out = self.buffers.most_out.max(self.ledger.pending());
        Some(candidate)
    }

    fn tell(&mut self, candidate: Candidate, outcome: Outcome) -> Result<()> {
        let Settled { point, key, asked } = self.ledger.settle(&self.space, candidate)?;
        let sample = Sample { point, rank: outcome.rank(), key };
        let rank = sample.rank;
        let is_best = !S::KEEPS_BEST && self.best.is_beaten_by(rank);
        if is_best {
            self.best.replace(&sample.point, rank, key);
        }
        let (search, mut tools) = self.parts();
        if let Some(buffer) = search.learn(Evaluated { sample, asked, is_best }, &mut tools)? {
            self.buffers.keep(buffer);
        }
        debug_assert!(
            rank.is_failure()
                || self.is_noisy()
                || self.best().is_some_and(|best| !rank.beats(best.rank)),
            "{} was told of a better point than its best",
            self.name
        );
        Ok(())
    }

    fn told(&self) -> u64 {
        self.ledger.told()
    }

    fn pending(&self) -> usize {
        self.ledger.pending()
    }

    fn best(&self) -> Option<Best<'_>> {
        if S::KEEPS_BEST { self.search.best() } else { self.best.best() }
    }

    fn region(&self) -> Option<ShrunkRegion<'_>> {
        let region = self.search.region()?;
        debug_assert_eq!(self.space.check(region.center), Ok(()), "a region holds its centre");
        debug_assert!((0.0..=1.0).contains(&region.share), "a region is a share of the space");
        Some(region)
    }

    fn is_heavy(&self) -> bool {
        self.search.is_heavy(&self.space)
    }

    fn is_noisy(&self) -> bool {
        self.search.is_noisy()
    }

    fn portfolio(&self) -> Option<Portfolio> {
        self.search.portfolio()
    }

    fn mark_seen(&mut self, keys: &[u64]) {
        keys.iter().for_each(|&key| self.ledger.mark_seen(&self.space, key));
    }

    fn revise(&mut self, point: &[f64], rank: Rank) {
        self.search.revise(point, rank);
    }

    fn save(&self) -> Vec<u8> {
        let Shell { random, ledger, best, search, .. } = self;
        saved::save(self.name, &self.space, &SavedStateRef { random, ledger, best, search })
    }
}
