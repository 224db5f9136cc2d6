//! The shell around every algorithm: space, pending candidates, seen points, best evaluation, random
//! generator, buffers, saving and restoring. An algorithm is a [`Search`]: a state that proposes points
//! and learns from their outcomes.

use super::incumbent::Incumbent;
use super::ledger::{Ledger, PendingCandidate};
use super::saved;
use super::{Best, Candidate, Optimizer, Portfolio, ShrunkRegion};
use crate::error::Result;
use crate::outcome::{Measured, Rank};
use crate::random::Random;
use crate::sample::Sample;
use crate::space::{Space, StepSize};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;

/// What an algorithm is constructed for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup<'a> {
    pub(crate) space: &'a Space,
    /// The number of evaluations planned, if known.
    pub(crate) budget: Option<u64>,
    pub(crate) seed: u64,
}

/// An algorithm. Its state serializes. Derived data is skipped by serde and rebuilt by
/// [`Search::prepare`].
pub(crate) trait Search: fmt::Debug + Send + Serialize + DeserializeOwned {
    /// The data stored with a pending candidate.
    type Mark: fmt::Debug + Clone + Send + Serialize + DeserializeOwned;

    /// Whether the best evaluation is part of the algorithm's state. If so, [`Search::best`] returns it,
    /// and the shell stores no copy.
    const KEEPS_BEST: bool = false;

    /// Whether proposed points satisfy the rules of the space already, as draws and those of a portfolio's members
    /// do. They are not changed then. Other algorithms propose points of the box.
    const SETTLES: bool = false;

    /// Proposes the next point; `None` if there is none.
    fn propose(&mut self, tools: &mut Tools<'_, Self::Mark>) -> Option<Proposal<Self::Mark>>;

    /// Learns the outcome of a point. May return a buffer that is no longer needed. By default nothing is
    /// learned.
    fn learn(
        &mut self,
        evaluated: Evaluated<Self::Mark>,
        _tools: &mut Tools<'_, Self::Mark>,
    ) -> Result<Option<Box<[f64]>>> {
        Ok(Some(evaluated.sample.point))
    }

    /// Rebuilds derived data after construction or deserialization. `depth` is the number of optimizers
    /// that this one is nested in.
    fn prepare(&mut self, _space: &Space, _depth: usize) -> Result<()> {
        Ok(())
    }

    /// Checks the invariants of a deserialized state. An error names a setting or point out of range.
    fn is_sound(&self, space: &Space, ledger: &Ledger<Self::Mark>) -> Result<bool>;

    /// The best evaluation, if the algorithm [stores](Search::KEEPS_BEST) it.
    fn best(&self) -> Option<Best<'_>> {
        None
    }

    /// Whether points may be proposed repeatedly in a space with discrete coordinates.
    fn repeats(&self) -> bool {
        false
    }

    fn region(&self) -> Option<ShrunkRegion<'_>> {
        None
    }

    fn is_heavy(&self, _space: &Space) -> bool {
        false
    }

    fn is_noisy(&self) -> Option<bool> {
        Some(false)
    }

    /// The number of runs that ended by convergence, stagnation or failures, each followed by a restart.
    /// Portfolios take it as the end of what the algorithm can do from where it started.
    fn restarts(&self) -> u64 {
        0
    }

    fn portfolio(&self) -> Option<Portfolio> {
        None
    }

    fn revise(&mut self, _point: &[f64], _latest: Rank, _mean: Rank) {}

    fn favourite(&mut self) -> Option<(Box<[f64]>, Rank)> {
        None
    }
}

/// A point to evaluate.
pub(crate) struct Proposal<M> {
    pub(crate) point: Box<[f64]>,
    /// The point's key, see `Space::key`.
    pub(crate) key: u64,
    pub(crate) mark: M,
}

/// An evaluated point to learn from.
pub(crate) struct Evaluated<M> {
    pub(crate) sample: Sample,
    /// The candidate; `None` for a point that was not asked.
    pub(crate) asked: Option<PendingCandidate<M>>,
    /// Whether it is the best so far. Always false if the algorithm stores the best.
    pub(crate) is_best: bool,
}

/// The parts of the shell that an algorithm can use.
pub(crate) struct Tools<'a, M> {
    pub(crate) space: &'a Space,
    pub(crate) random: &'a mut Random,
    pub(crate) ledger: &'a mut Ledger<M>,
    /// The best evaluation told, including the one being learned.
    pub(crate) best: &'a Incumbent,
    /// The constraints of the point being learned, where they were measured.
    pub(crate) measured: Option<&'a Measured>,
    buffers: &'a mut Buffers,
}

impl<M> Tools<'_, M> {
    /// A buffer for a point, with unspecified contents.
    #[inline]
    pub(crate) fn buffer(&mut self) -> Box<[f64]> {
        let spare = self.buffers.spare.pop();
        spare.unwrap_or_else(|| vec![0.0; self.space.dimension()].into_boxed_slice())
    }

    /// Stores a buffer for reuse.
    pub(crate) fn keep(&mut self, buffer: Box<[f64]>) {
        self.buffers.keep(buffer);
    }

    /// Fills `point` with a uniform draw that was not seen before, and returns its key; `None` if no
    /// unseen point is left.
    #[inline]
    pub(crate) fn draw(&mut self, point: &mut [f64]) -> Option<u64> {
        self.ledger.draw(self.space, self.random, point)
    }

    /// Calls `write` up to `tries` times, with the index of the attempt, until it writes a point that was
    /// not seen before, and returns that point's key. In continuous spaces there is one attempt.
    #[inline]
    pub(crate) fn try_unseen(
        &mut self,
        tries: usize,
        point: &mut [f64],
        mut write: impl FnMut(&mut Self, usize, &mut [f64]) -> u64,
    ) -> Option<u64> {
        let tries = if self.space.can_repeat() { tries } else { 1 };
        for attempt in 0..tries {
            let key = write(self, attempt, point);
            if !self.ledger.has_seen(key) {
                return Some(key);
            }
        }
        None
    }

    /// Like [`Tools::try_unseen`], and after the last attempt an unseen uniform draw.
    #[inline]
    pub(crate) fn unseen(
        &mut self,
        tries: usize,
        point: &mut [f64],
        write: impl FnMut(&mut Self, usize, &mut [f64]) -> u64,
    ) -> Option<u64> {
        self.try_unseen(tries, point, write).or_else(|| self.draw(point))
    }

    /// Proposes the point that `write` writes, given the best point and its value; `None` if it has nothing to propose,
    /// or there is no best point.
    pub(crate) fn beside_best(
        &mut self,
        write: impl FnOnce(&[f64], f64, &mut Random, &mut [f64]) -> Option<M>,
    ) -> Option<Proposal<M>> {
        let (best, value) = (self.best.sample()?, self.best.value()?);
        let mut point = self.buffer();
        let Some(mark) = write(&best.point, value, self.random, &mut point) else {
            self.keep(point);
            return None;
        };
        let key = self.space.key(&point);
        Some(Proposal { point, key, mark })
    }
}

/// Buffers of told points, for reuse.
#[derive(Debug, Default)]
struct Buffers {
    spare: Vec<Box<[f64]>>,
    /// The largest number of candidates that were pending at a time. It limits the buffers, since known
    /// points add buffers without using any.
    max_pending: usize,
}

impl Buffers {
    #[inline]
    fn keep(&mut self, buffer: Box<[f64]>) {
        if self.spare.len() < self.max_pending {
            self.spare.push(buffer);
        }
    }
}

/// The [`Optimizer`] around an algorithm.
///
/// Most callers use `Box<dyn Optimizer>` from [`Algorithm::optimizer`](super::Algorithm::optimizer). This
/// type is public for [`RaceCars::optimizer`](crate::RaceCars::optimizer), whose optimizer gives access to
/// its hypotheses.
#[derive(Debug)]
#[allow(private_bounds, reason = "algorithms are internal")]
pub struct Shell<S: Search> {
    name: &'static str,
    space: Space,
    random: Random,
    ledger: Ledger<S::Mark>,
    best: Incumbent,
    search: S,
    buffers: Buffers,
}

/// The state that is saved.
type SavedState<S> = (Random, Ledger<<S as Search>::Mark>, Incumbent, S);

#[allow(private_bounds, reason = "algorithms are internal")]
impl<S: Search> Shell<S> {
    /// Constructs an algorithm and its shell. `make` may draw from the generator of the search.
    pub(crate) fn new(
        name: &'static str,
        setup: Setup<'_>,
        make: impl FnOnce(&mut Random) -> Result<S>,
    ) -> Result<Self> {
        let mut random = Random::new(setup.seed);
        let mut search = make(&mut random)?;
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

    /// Restores a saved state and checks its invariants.
    pub(crate) fn restore(
        name: &'static str,
        space: Space,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Self> {
        let (random, ledger, best, mut search): SavedState<S> = saved::read(bytes)?;
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

    /// Makes a proposed point satisfy the rules of the space, and returns its key.
    fn settle(&mut self, point: &mut [f64]) -> Option<u64> {
        /// Points tried before an unseen one is drawn.
        const MAX_TRIES: usize = 32;
        if S::SETTLES && self.space.admits(point) {
            return Some(self.space.key(point));
        }
        let anchor: Option<Box<[f64]>> = self.best().map(|best| best.point.into());
        let Shell { space, random, ledger, .. } = self;
        for _ in 0..MAX_TRIES {
            space.settle(point, anchor.as_deref(), random);
            let key = space.key(point);
            let is_seen = match space.can_repeat() {
                true => ledger.has_seen(key),
                false => anchor.as_deref() == Some(&*point),
            };
            if !is_seen {
                return Some(key);
            }
            space.step(StepSize::Middle, point, random);
        }
        ledger.draw(space, random, point)
    }

    /// Learns the outcome of a candidate.
    fn take(
        &mut self,
        mut candidate: Candidate,
        rank: Rank,
        measured: Option<&Measured>,
    ) -> Result<()> {
        let asked = self.ledger.settle(&self.space, &mut candidate)?;
        let sample = Sample { point: candidate.point, rank, key: candidate.key };
        let is_best = !S::KEEPS_BEST && self.best.is_beaten_by(rank);
        if is_best {
            self.best.replace(&sample.point, rank, sample.key);
            debug_assert!(
                !self.space.can_repeat() || sample.key == self.space.key(&sample.point),
                "{}: the best has the key of its point",
                self.name
            );
        }
        let (search, mut tools) = self.parts();
        tools.measured = measured;
        if let Some(buffer) = search.learn(Evaluated { sample, asked, is_best }, &mut tools)? {
            self.buffers.keep(buffer);
        }
        debug_assert!(
            rank.is_failure()
                || self.is_noisy() != Some(false)
                || self.best().is_some_and(|best| !rank.beats(best.rank)),
            "{}: no told point is better than the best",
            self.name
        );
        Ok(())
    }

    fn parts(&mut self) -> (&mut S, Tools<'_, S::Mark>) {
        let Shell { space, random, ledger, best, search, buffers, .. } = self;
        (search, Tools { space, random, ledger, best, measured: None, buffers })
    }

    /// The random generator, to count what a step draws.
    #[doc(hidden)]
    pub fn random(&self) -> &Random {
        &self.random
    }
}

#[allow(private_bounds, reason = "algorithms are internal")]
impl<S: Search> super::sealed::Sealed for Shell<S> {}

#[allow(private_bounds, reason = "algorithms are internal")]
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
        let Proposal { mut point, mut key, mark } = search.propose(&mut tools)?;
        if self.space.has_rules() {
            key = self.settle(&mut point)?;
        }
        debug_assert_eq!(self.space.check(&point), Ok(()), "{}: a point of the space", self.name);
        debug_assert!(
            !self.space.can_repeat() || key == self.space.key(&point),
            "{}: a proposal has the key of its point",
            self.name
        );
        debug_assert!(
            !self.space.is_discrete() || self.search.repeats() || !self.ledger.has_seen(key),
            "{}: a point is proposed once",
            self.name
        );
        let candidate = self.ledger.issue(&self.space, point, key, mark);
        self.buffers.max_pending = self.buffers.max_pending.max(self.ledger.pending());
        Some(candidate)
    }

    fn tell_rank(&mut self, candidate: Candidate, rank: Rank) -> Result<()> {
        self.take(candidate, rank, None)
    }

    fn tell_measured(
        &mut self,
        candidate: Candidate,
        rank: Rank,
        measured: &Measured,
    ) -> Result<()> {
        self.take(candidate, rank, Some(measured))
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
        debug_assert_eq!(
            self.space.check(region.center),
            Ok(()),
            "a centre is a point of the space"
        );
        debug_assert!((0.0..=1.0).contains(&region.share), "a region is inside the space");
        Some(region)
    }

    fn is_heavy(&self) -> bool {
        self.search.is_heavy(&self.space)
    }

    fn is_noisy(&self) -> Option<bool> {
        self.search.is_noisy()
    }

    fn restarts(&self) -> u64 {
        self.search.restarts()
    }

    fn portfolio(&self) -> Option<Portfolio> {
        self.search.portfolio()
    }

    fn mark_seen(&mut self, keys: &[u64]) {
        keys.iter().for_each(|&key| self.ledger.mark_seen(&self.space, key));
    }

    fn revise(&mut self, point: &[f64], latest: Rank, mean: Rank) {
        self.search.revise(point, latest, mean);
    }

    fn favourite(&mut self) -> Option<(Box<[f64]>, Rank)> {
        self.search.favourite()
    }

    fn save(&self) -> Vec<u8> {
        let Shell { random, ledger, best, search, .. } = self;
        // By reference, the fields of `SavedState`.
        saved::save(self.name, &self.space, &(random, ledger, best, search))
    }
}
