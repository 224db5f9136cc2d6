//! The local optima, which coordinates are linked in them, and the move that copies linked coordinates from one.

use super::draft::{Draft, heavy_tailed};
use super::{EvolutionSearch, Scratch};
use crate::sample::Sample;

/// The local optima that are kept: as many as a word has bits, but at most this many coordinates in all.
pub(super) const MAX_OPTIMA: usize = 64;
const MAX_KEPT_COORDINATES: usize = 1 << 22;

impl EvolutionSearch {
    /// Copies linked coordinates from an optimum that disagrees in some of them.
    pub(super) fn mix(&mut self, draft: &mut Draft<'_>) {
        let EvolutionSearch { optima, disagreement, scratch, .. } = self;
        let Scratch { information, entropies, .. } = scratch;
        let n = disagreement.len();
        let first = draft.random.index(n);
        let size = heavy_tailed(1.0, n.div_ceil(2), draft.random);
        linked(disagreement, first, optima.len(), entropies, information);
        let size = size.min(information.len());
        if size < information.len() {
            let descending = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0);
            information.select_nth_unstable_by(size, descending);
        }
        let mask = &information[..size];
        let donors = mask.iter().fold(0, |donors, &(_, i)| donors | disagreement[i as usize]);
        if donors == 0 {
            return;
        }
        let donor = nth_bit(donors, draft.random.index(donors.count_ones() as usize));
        let donor = &optima[donor].point;
        for &(_, i) in mask {
            let (i, old) = (i as usize, draft.point[i as usize]);
            draft.set(i, old, donor[i]);
        }
    }

    /// Keeps the solution as a local optimum.
    pub(super) fn keep_optimum(&mut self) {
        let Some(solution) = &self.solution else { return };
        if self.optima.iter().any(|optimum| optimum.point == solution.point) {
            return;
        }
        let most = (MAX_KEPT_COORDINATES / solution.point.len()).clamp(2, MAX_OPTIMA);
        if self.optima.len() < most {
            self.optima.push(solution.clone());
        } else {
            self.optima[self.oldest] = solution.clone();
            self.oldest = (self.oldest + 1) % most;
        }
        self.compare();
    }

    /// Compares the solution with the local optima.
    pub(super) fn compare(&mut self) {
        let EvolutionSearch { solution, optima, disagreement, .. } = self;
        let word = |i: usize| match &*solution {
            Some(solution) => disagreeing(optima, i, solution.point[i]),
            None => 0,
        };
        disagreement.iter_mut().enumerate().for_each(|(i, old)| *old = word(i));
        let entropy =
            |count: usize| if count == 0 { 0.0 } else { count as f64 * (count as f64).ln() };
        self.scratch.entropies = (0..=optima.len()).map(entropy).collect();
    }
}

/// The optima that have another value of this coordinate, as bits.
pub(super) fn disagreeing(optima: &[Sample], coordinate: usize, value: f64) -> u64 {
    let bit = |(p, optimum): (usize, &Sample)| u64::from(optimum.point[coordinate] != value) << p;
    optima.iter().enumerate().map(bit).fold(0, |word, bit| word | bit)
}

/// Lists the coordinates with their mutual information with the first one, in which some optimum disagrees. The
/// first one has more than any other.
pub(super) fn linked(
    words: &[u64],
    first: usize,
    optima: usize,
    entropies: &[f64],
    information: &mut Vec<(f64, u32)>,
) {
    let (word, all) = (words[first], u64::MAX >> (64 - optima.clamp(1, 64)));
    let h = |bits: u64| entropies[bits.count_ones() as usize];
    information.clear();
    information.push((f64::INFINITY, first as u32));
    for (i, &other) in words.iter().enumerate() {
        // Where all agree, there is nothing to copy.
        if i == first || other == 0 {
            continue;
        }
        // P times the mutual information, but for a constant that depends on the first one only.
        let joint =
            h(word & other) + h(word & !other) + h(other & !word) + h(all & !(word | other));
        information.push((joint - h(other) - h(all & !other), i as u32));
    }
}

/// The position of the bit of this rank among those that are set.
pub(super) fn nth_bit(mut word: u64, rank: usize) -> usize {
    (0..rank).for_each(|_| word &= word - 1);
    word.trailing_zeros() as usize
}
