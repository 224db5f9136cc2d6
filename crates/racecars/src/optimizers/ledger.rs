//! Ask/tell manners that all optimizers share: which candidates are out, which points of a
//! space with discrete coordinates are taken, and what a tell must satisfy.

use super::Candidate;
use super::saved::ROOM;
use crate::error::{Error, ErrorKind, Result};
use crate::random::Random;
use crate::space::{Seen, Space};
use serde::{Deserialize, Serialize};

/// The books of one optimizer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Ledger {
    next_id: u64,
    /// The ids of the candidates out, ascending: asking appends, and telling mostly takes from near
    /// the end.
    pending: Vec<u64>,
    told: u64,
    seen: Seen,
}

impl Ledger {
    /// The id of the next candidate.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id
    }

    pub(super) fn told(&self) -> u64 {
        self.told
    }

    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The ids of the candidates out, ascending.
    pub(super) fn pending_ids(&self) -> &[u64] {
        &self.pending
    }

    /// Whether the point with this key was proposed or told before; never where all coordinates are
    /// continuous.
    pub(super) fn has_seen(&self, key: u64) -> bool {
        self.seen.contains(key)
    }

    /// Whether nothing is left to propose.
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
    pub(super) fn issue(&mut self, space: &Space, point: Box<[f64]>, key: u64) -> Candidate {
        let id = self.next_id;
        self.next_id += 1;
        self.pending.push(id);
        self.mark_seen(space, key);
        Candidate { id, space: space.fingerprint(), key, point }
    }

    /// Takes a told candidate off the books, and returns its point and key.
    pub(super) fn settle(
        &mut self,
        space: &Space,
        candidate: Candidate,
    ) -> Result<(Box<[f64]>, u64)> {
        let Candidate { id, space: origin, key, point } = candidate;
        if id == Candidate::KNOWN {
            space.check(&point)?;
            let key = space.key(&point);
            self.mark_seen(space, key);
            self.told += 1;
            return Ok((point, key));
        }
        // Instead of checking the point, whose copy is most of a step's cost.
        if origin != space.fingerprint() {
            return Err(Error::point(format!("candidate {id} is a point of another space")));
        }
        // The common case, and any other.
        let place = match self.pending.last() {
            Some(&last) if last == id => Ok(self.pending.len() - 1),
            _ => self.pending.binary_search(&id),
        };
        let Ok(place) = place else {
            let (kind, what) = match id < self.next_id {
                true => (ErrorKind::Repeated, "has been told before"),
                false => (ErrorKind::Unasked, "was never asked"),
            };
            return Err(Error::new(kind, format!("candidate {id} {what}")));
        };
        self.pending.remove(place);
        self.told += 1;
        Ok((point, key))
    }

    /// Whether a saved state holds books such as these methods keep, with room to go on.
    pub(super) fn is_sound(&self, space: &Space) -> bool {
        self.next_id < ROOM
            && self.told < ROOM
            && self.pending.is_sorted_by(|a, b| a < b)
            && self.pending.last().is_none_or(|&last| last < self.next_id)
            && self.seen.is_sound(space)
    }

    fn mark_seen(&mut self, space: &Space, key: u64) {
        if space.can_repeat() {
            self.seen.insert(key);
        }
    }
}
