//! Which candidates are out, which points of a space with discrete coordinates are taken, and what a
//! tell must satisfy.

use super::Candidate;
use super::saved::ID_HEADROOM;
use crate::error::{Error, ErrorKind, Result};
use crate::random::Random;
use crate::space::{Seen, Space};
use serde::{Deserialize, Serialize};

/// The candidates of one optimizer. `M` is what the algorithm remembers of each candidate that is out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ledger<M> {
    next_id: u64,
    /// The candidates out, by ascending id: asking appends, and telling mostly takes from near the end.
    pending: Vec<(u64, M)>,
    told: u64,
    seen: Seen,
}

impl<M> Default for Ledger<M> {
    fn default() -> Self {
        Ledger { next_id: 0, pending: Vec::new(), told: 0, seen: Seen::default() }
    }
}

/// A candidate taken off the ledger.
pub(super) struct Settled<M> {
    pub(super) point: Box<[f64]>,
    pub(super) key: u64,
    /// `None` for a point that was not asked.
    pub(super) asked: Option<(u64, M)>,
}

impl<M> Ledger<M> {
    /// The id of the next candidate, which is the number of candidates asked so far.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id
    }

    pub(crate) fn told(&self) -> u64 {
        self.told
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// What is remembered of the candidates out, by ascending id.
    pub(crate) fn marks(&self) -> impl Iterator<Item = &M> {
        self.pending.iter().map(|(_, mark)| mark)
    }

    pub(crate) fn marks_mut(&mut self) -> impl Iterator<Item = &mut M> {
        self.pending.iter_mut().map(|(_, mark)| mark)
    }

    /// Whether the point with this key was proposed or told before; never where all coordinates are
    /// continuous.
    pub(crate) fn has_seen(&self, key: u64) -> bool {
        self.seen.contains(key)
    }

    /// The keys of the points proposed or told, ascending.
    pub(crate) fn seen_keys(&self) -> Vec<u64> {
        self.seen.clone().into()
    }

    /// Whether every point of the space has been proposed or told.
    pub(super) fn is_exhausted(&self, space: &Space) -> bool {
        self.seen.exhausts(space)
    }

    /// Fills `point` with a uniform draw that was not seen before, and returns its key; `None` when no
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

    /// Enters a new candidate.
    #[inline]
    pub(super) fn issue(
        &mut self,
        space: &Space,
        point: Box<[f64]>,
        key: u64,
        mark: M,
    ) -> Candidate {
        let id = self.next_id;
        self.next_id += 1;
        self.pending.push((id, mark));
        self.mark_seen(space, key);
        Candidate { id, space: space.fingerprint(), key, point }
    }

    /// Takes a told candidate off the ledger.
    #[inline]
    pub(super) fn settle(&mut self, space: &Space, candidate: Candidate) -> Result<Settled<M>> {
        let Candidate { id, space: origin, key, point } = candidate;
        if id == Candidate::KNOWN {
            space.check(&point)?;
            let key = space.key(&point);
            self.mark_seen(space, key);
            self.told += 1;
            return Ok(Settled { point, key, asked: None });
        }
        // Instead of checking the point, whose copy is most of a step's cost.
        if origin != space.fingerprint() {
            return Err(Error::point(format!("candidate {id} is a point of another space")));
        }
        // The common case, and any other.
        let place = match self.pending.last() {
            Some(&(last, _)) if last == id => Ok(self.pending.len() - 1),
            _ => self.pending.binary_search_by_key(&id, |(id, _)| *id),
        };
        let Ok(place) = place else {
            return Err(match id < self.next_id {
                true => {
                    Error::new(ErrorKind::Repeated, format!("candidate {id} has been told before"))
                }
                false => Error::new(ErrorKind::Unasked, format!("candidate {id} was never asked")),
            });
        };
        let asked = self.pending.remove(place);
        self.told += 1;
        Ok(Settled { point, key, asked: Some(asked) })
    }

    /// Checks the invariants of a deserialized ledger, with headroom to count on.
    pub(super) fn is_sound(&self, space: &Space) -> bool {
        self.next_id < ID_HEADROOM
            && self.told < ID_HEADROOM
            && self.pending.is_sorted_by(|a, b| a.0 < b.0)
            && self.pending.last().is_none_or(|(last, _)| *last < self.next_id)
            && self.seen.is_sound(space)
    }

    pub(super) fn mark_seen(&mut self, space: &Space, key: u64) {
        if space.can_repeat() {
            self.seen.insert(key);
        }
    }
}
