//! The pending candidates, the seen points of spaces with discrete coordinates, and the checks of tells.

use super::Candidate;
use super::saved::ID_HEADROOM;
use crate::error::{Error, Result, ensure};
use crate::random::Random;
use crate::space::{Seen, Space};
use serde::{Deserialize, Serialize};

/// The candidates of one optimizer. `M` is the data that the algorithm stores with a pending candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ledger<M> {
    next_id: u64,
    /// By ascending id: asking appends, and telling mostly removes near the end.
    pending: Vec<PendingCandidate<M>>,
    told: u64,
    seen: Seen,
}

/// A candidate that was asked and not told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PendingCandidate<M> {
    pub(crate) id: u64,
    pub(crate) mark: M,
}

impl<M> Default for Ledger<M> {
    fn default() -> Self {
        Ledger { next_id: 0, pending: Vec::new(), told: 0, seen: Seen::default() }
    }
}

impl<M> Ledger<M> {
    /// The id of the next candidate, which equals the number of candidates asked.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id
    }

    pub(crate) fn told(&self) -> u64 {
        self.told
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The number of candidates that are out at a time. Lost ones do not count: when w are out, the k-th
    /// latest was asked hardly more than w candidates ago.
    pub(crate) fn out(&self) -> usize {
        let is_recent = |&(place, pending): &(u64, &PendingCandidate<M>)| {
            self.next_id - pending.id <= 4 * place
        };
        let recent = (1..).zip(self.pending.iter().rev()).filter(is_recent);
        recent.last().map_or(0, |(place, _)| place as usize)
    }

    /// The data of the pending candidates, by ascending id.
    pub(crate) fn marks(&self) -> impl DoubleEndedIterator<Item = &M> + Clone {
        self.pending.iter().map(|pending| &pending.mark)
    }

    pub(crate) fn marks_mut(&mut self) -> impl Iterator<Item = &mut M> {
        self.pending.iter_mut().map(|pending| &mut pending.mark)
    }

    /// Whether the point with this key was proposed or told before. Always false in continuous spaces.
    pub(crate) fn has_seen(&self, key: u64) -> bool {
        self.seen.contains(key)
    }

    /// The keys of the points proposed or told, in ascending order.
    pub(crate) fn seen_keys(&self) -> Vec<u64> {
        self.seen.clone().into()
    }

    /// Whether every point of the space has been proposed or told.
    pub(super) fn is_exhausted(&self, space: &Space) -> bool {
        self.seen.exhausts(space)
    }

    /// Fills `point` with a uniform draw that was not seen before, and returns its key; `None` if no
    /// unseen point is left.
    pub(super) fn draw(
        &self,
        space: &Space,
        random: &mut Random,
        point: &mut [f64],
    ) -> Option<u64> {
        if space.can_repeat() {
            self.seen.draw_unseen(space, random, point)
        } else {
            space.draw(random, point);
            Some(0)
        }
    }

    /// Records a new candidate.
    #[inline]
    pub(super) fn issue(
        &mut self,
        space: &Space,
        point: Box<[f64]>,
        key: u64,
        mark: M,
    ) -> Candidate {
        let id = self.next_id;
        debug_assert!(
            self.pending.last().is_none_or(|last| last.id < id),
            "ids of pending candidates ascend"
        );
        self.next_id += 1;
        self.pending.push(PendingCandidate { id, mark });
        self.mark_seen(space, key);
        Candidate { id, space: space.fingerprint(), key, point }
    }

    /// Checks a told candidate, completes its key, and removes it from the ledger. Returns what was stored
    /// of it, `None` if it was not asked.
    #[inline(always)]
    pub(super) fn settle(
        &mut self,
        space: &Space,
        candidate: &mut Candidate,
    ) -> Result<Option<PendingCandidate<M>>> {
        let is_last = self.pending.last().is_some_and(|last| last.id == candidate.id);
        // Cheaper than checking the point: reading it would be most of a step's cost.
        let asked = if is_last && candidate.space == space.fingerprint() {
            self.pending.pop()
        } else {
            self.settle_uncommon(space, candidate)?
        };
        self.told += 1;
        Ok(asked)
    }

    /// [`Ledger::settle`] of any candidate but the last.
    #[inline(never)]
    fn settle_uncommon(
        &mut self,
        space: &Space,
        candidate: &mut Candidate,
    ) -> Result<Option<PendingCandidate<M>>> {
        let Candidate { id, space: origin, key, point } = candidate;
        if *id == Candidate::KNOWN_ID {
            space.check(point)?;
            *key = space.key(point);
            self.mark_seen(space, *key);
            return Ok(None);
        }
        let is_ours = *origin == space.fingerprint();
        ensure!(is_ours, point, "candidate {id} is a point of another space");
        match self.pending.binary_search_by_key(id, |pending| pending.id) {
            Ok(place) => Ok(Some(self.pending.remove(place))),
            Err(_) if *id < self.next_id => Err(Error::told_before("candidate", *id)),
            Err(_) => Err(Error::never_asked("candidate", *id)),
        }
    }

    /// Checks the invariants of a deserialized ledger.
    pub(super) fn is_sound(&self, space: &Space) -> bool {
        self.next_id < ID_HEADROOM
            && self.told < ID_HEADROOM
            && self.pending.is_sorted_by(|a, b| a.id < b.id)
            && self.pending.last().is_none_or(|last| last.id < self.next_id)
            && self.seen.is_sound(space)
    }

    pub(super) fn mark_seen(&mut self, space: &Space, key: u64) {
        if space.can_repeat() {
            self.seen.insert(key);
        }
    }
}
