//! The population: its members, the best one, and the next target.

use super::settings::MIN_MEMBERS;
use crate::random::Random;
use crate::sample::Sample;
use crate::space::{Interval, Space};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Population {
    members: Vec<Sample>,
    /// The index of the best member.
    best: usize,
    /// The next target of the current round, which covers the members `0..round`.
    pub(super) turn: usize,
    round: usize,
    /// For L-SHADE, the members from best to worst at the start of the round. Members only improve within
    /// a round, so the first ones remain good.
    order: Vec<u32>,
}

impl Population {
    pub(super) fn members(&self) -> &[Sample] {
        &self.members
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are enough members for mutation.
    pub(super) fn is_ready(&self) -> bool {
        self.members.len() >= MIN_MEMBERS
    }

    pub(super) fn best_index(&self) -> usize {
        self.best
    }

    /// The best member; `None` if all failed.
    pub(super) fn best(&self) -> Option<&Sample> {
        self.members.get(self.best).filter(|sample| !sample.rank.is_failure())
    }

    /// The best member; `None` if all failed.
    pub(super) fn into_best(mut self) -> Option<Sample> {
        self.best()?;
        Some(self.members.swap_remove(self.best))
    }

    /// Whether the next target is the first of a new round.
    pub(super) fn is_round_over(&self) -> bool {
        self.turn >= self.round || self.turn >= self.members.len()
    }

    /// Whether the members are equal up to rounding: their points, or their values at points nearby, since
    /// selection does not contract a population whose values are equal.
    pub(super) fn has_converged(&self, space: &Space) -> bool {
        const POINT_TOLERANCE: f64 = 1e-13;
        const NEARBY: f64 = 1e-6;
        const VALUE_TOLERANCE: f64 = 1e-14;
        let Some(best) = self.best().filter(|_| self.is_ready()) else { return false };
        let are_within = |tolerance: f64| {
            space.axes().all(|(range, axis)| {
                let Interval { low, high } = axis.extent();
                let is_near = |i: usize, member: &Sample| {
                    (member.point[i] - best.point[i]).abs() <= tolerance * (high - low)
                };
                range.into_iter().all(|i| self.members.iter().all(|member| is_near(i, member)))
            })
        };
        let has_equal_value = |member: &Sample| {
            let values = member.rank.value().zip(best.rank.value());
            values.is_some_and(|(a, b)| a - b <= VALUE_TOLERANCE * b.abs())
        };
        are_within(NEARBY)
            && (are_within(POINT_TOLERANCE) || self.members.iter().all(has_equal_value))
    }

    /// The next target; `None` at the end of the round.
    pub(super) fn next_target(&mut self) -> Option<usize> {
        let turn = self.turn;
        if turn >= self.round || turn >= self.members.len() {
            return None;
        }
        self.turn += 1;
        Some(turn)
    }

    /// Begins a round over all members, and returns its first target.
    pub(super) fn begin_round(&mut self, needs_order: bool) -> usize {
        self.round = self.members.len();
        self.turn = 1;
        if needs_order {
            let members = &self.members;
            self.order.clear();
            self.order.extend(0..members.len() as u32);
            self.order.sort_unstable_by_key(|&i| (members[i as usize].rank, i));
        }
        0
    }

    /// A random member among the best `share` of them, but at least the best two.
    pub(super) fn draw_good(&self, share: f64, random: &mut Random) -> usize {
        let count = ((share * self.order.len() as f64).round() as usize).max(2);
        match self.order.get(random.index(count)) {
            Some(&i) => i as usize,
            None => self.best,
        }
    }

    /// Adds a sample without a target: as a new member while there are fewer than `capacity`, else in
    /// place of the worst member if it is better. Returns the sample that drops out.
    pub(super) fn join(&mut self, sample: Sample, capacity: usize) -> Option<Sample> {
        if self.members.len() < capacity {
            self.members.push(sample);
            self.update_best(self.members.len() - 1);
            return None;
        }
        let ranked = self.members.iter().enumerate();
        match ranked.max_by_key(|(_, member)| member.rank) {
            Some((worst, member)) if sample.rank.beats(member.rank) => {
                Some(self.replace(worst, sample))
            }
            _ => Some(sample),
        }
    }

    /// Replaces a member by a sample that is no worse. Returns the replaced member.
    pub(super) fn replace(&mut self, index: usize, sample: Sample) -> Sample {
        let replaced = std::mem::replace(&mut self.members[index], sample);
        self.update_best(index);
        replaced
    }

    /// Drops the worst members until `count` are left. Calls `moved` with the new index of each member;
    /// `None` if it was dropped.
    pub(super) fn shrink(&mut self, count: usize, mut moved: impl FnMut(&[Option<u32>])) {
        if self.members.len() <= count {
            return;
        }
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        order.sort_unstable_by_key(|&i| (self.members[i].rank, i));
        let mut places: Vec<Option<u32>> = vec![Some(0); self.members.len()];
        order[count..].iter().for_each(|&i| places[i] = None);
        let mut old = 0;
        self.members.retain(|_| {
            old += 1;
            places[old - 1].is_some()
        });
        places.iter_mut().flatten().enumerate().for_each(|(new, place)| *place = new as u32);
        // The best member is dropped only if all others have the same rank.
        self.best = places.get(self.best).copied().flatten().unwrap_or(0) as usize;
        debug_assert!(self.is_best_index_valid(), "the best member has the best rank");
        self.order.clear();
        self.round = 0;
        moved(&places);
    }

    fn update_best(&mut self, index: usize) {
        if self.members[index].rank.beats(self.members[self.best].rank) {
            self.best = index;
        }
        debug_assert!(self.is_best_index_valid(), "the best member has the best rank");
    }

    fn is_best_index_valid(&self) -> bool {
        let Some(best) = self.members.get(self.best) else { return false };
        self.members.iter().all(|member| !member.rank.beats(best.rank))
    }

    /// Checks the invariants of a deserialized population.
    pub(super) fn is_sound(&self, capacity: usize) -> bool {
        let count = self.members.len();
        count <= capacity
            && (self.is_best_index_valid() || (self.members.is_empty() && self.best == 0))
            && self.order.iter().all(|&i| (i as usize) < count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;

    fn sample(value: f64) -> Sample {
        Sample { point: vec![value].into_boxed_slice(), rank: Outcome::from(value).rank(), key: 0 }
    }

    fn values(population: &Population) -> Vec<f64> {
        population.members.iter().map(|m| m.point[0]).collect()
    }

    fn filled(values: &[f64]) -> Population {
        let mut population = Population::default();
        for &value in values {
            assert_eq!(population.join(sample(value), values.len()), None);
        }
        population
    }

    #[test]
    fn a_full_population_replaces_its_worst_member_by_a_better_sample() {
        let mut population = filled(&[3.0, 1.0, 5.0, 4.0]);
        assert_eq!(population.join(sample(9.0), 4).unwrap().point[0], 9.0);
        assert_eq!(population.join(sample(0.5), 4).unwrap().point[0], 5.0);
        assert_eq!(values(&population), [3.0, 1.0, 0.5, 4.0]);
        assert_eq!(population.best().unwrap().point[0], 0.5);
        assert!(population.is_sound(4));
    }

    #[test]
    fn a_round_visits_every_member_once() {
        let mut population = filled(&[3.0, 1.0, 5.0]);
        assert_eq!(population.next_target(), None);
        assert_eq!(population.begin_round(true), 0);
        assert_eq!(population.order, [1, 0, 2]);
        assert_eq!([1, 2].map(Some), [population.next_target(), population.next_target()]);
        assert_eq!(population.next_target(), None);
    }

    #[test]
    fn the_worst_members_are_dropped_and_the_new_indices_reported() {
        let mut population = filled(&[3.0, f64::NAN, 1.0, 5.0, 4.0, 2.0]);
        population.shrink(4, |places| {
            assert_eq!(places, [Some(0), None, Some(1), None, Some(2), Some(3)]);
        });
        assert_eq!(values(&population), [3.0, 1.0, 4.0, 2.0]);
        assert_eq!(population.best().unwrap().point[0], 1.0);
        assert!(population.is_sound(4));
    }

    #[test]
    fn failures_are_never_best() {
        let mut population = filled(&[f64::NAN, f64::INFINITY]);
        assert_eq!(population.best(), None);
        population.join(sample(7.0), 2);
        assert_eq!(population.best().unwrap().point[0], 7.0);
    }
}
