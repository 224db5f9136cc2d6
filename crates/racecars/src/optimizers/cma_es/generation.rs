//! The candidates of one generation, which ends when lambda of them are told.
//!
//! Asking never waits: when all columns have been asked, more are drawn. Steps are drawn in batches,
//! since one matrix-matrix product costs less than a matrix-vector product for each step. Lost
//! candidates are forgotten at the end of the generation, or when there are too many.

use crate::optimizers::saved::ID_HEADROOM;
use crate::outcome::Rank;
use serde::{Deserialize, Serialize};

/// The candidates of one generation, stored as columns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Generation {
    /// The steps y, n numbers per column.
    steps: Vec<f64>,
    columns: Vec<Column>,
    /// No column before this one is ready.
    next: usize,
    /// The number of outcomes told that count towards lambda.
    told: usize,
    /// The number of uniform draws, in a space with discrete coordinates, because the distribution only
    /// gave points seen before.
    pub(super) strays: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Column {
    /// y^T C^-1 y.
    pub(super) length: f64,
    status: ColumnStatus,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum ColumnStatus {
    /// Drawn, not yet asked.
    Ready,
    /// Asked under this id, not yet told.
    Pending(u64),
    /// Told.
    Told(Rank),
    /// Told without being asked. It does not count towards lambda.
    Known(Rank),
    /// Not asked, because its point was seen before.
    Dropped,
}

impl Column {
    /// The rank, if it is told.
    pub(super) fn rank(&self) -> Option<Rank> {
        match self.status {
            ColumnStatus::Told(rank) | ColumnStatus::Known(rank) => Some(rank),
            _ => None,
        }
    }

    pub(super) fn is_known(&self) -> bool {
        matches!(self.status, ColumnStatus::Known(_))
    }
}

impl Generation {
    pub(super) fn told(&self) -> usize {
        self.told
    }

    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    pub(super) fn column(&self, index: usize) -> &Column {
        &self.columns[index]
    }

    pub(super) fn step(&self, index: usize, n: usize) -> &[f64] {
        &self.steps[index * n..(index + 1) * n]
    }

    /// All steps, n numbers per column.
    pub(super) fn steps_mut(&mut self) -> &mut [f64] {
        &mut self.steps
    }

    /// The next column to ask, if one is ready.
    pub(super) fn take_ready(&mut self) -> Option<usize> {
        let is_ready = |column: &Column| column.status == ColumnStatus::Ready;
        let ahead = self.columns[self.next..].iter().position(is_ready);
        let Some(ahead) = ahead else {
            self.next = self.columns.len();
            return None;
        };
        let index = self.next + ahead;
        self.next = index + 1;
        self.columns[index].status = ColumnStatus::Dropped;
        Some(index)
    }

    /// Records that a column was asked under this id.
    pub(super) fn set_pending(&mut self, index: usize, id: u64) {
        self.columns[index].status = ColumnStatus::Pending(id);
    }

    /// The column asked under this id, unless it was forgotten.
    pub(super) fn find(&self, id: u64) -> Option<usize> {
        self.columns.iter().rposition(|column| column.status == ColumnStatus::Pending(id))
    }

    pub(super) fn tell(&mut self, index: usize, rank: Rank) {
        self.columns[index].status = ColumnStatus::Told(rank);
        self.told += 1;
    }

    /// Adds the steps of `count` new columns. Returns these steps, which the caller fills, and the function
    /// that adds the column of each step by its length.
    pub(super) fn extend(&mut self, count: usize, n: usize) -> (&mut [f64], impl FnMut(f64)) {
        let Generation { steps, columns, .. } = self;
        let start = steps.len();
        steps.resize(start + count * n, 0.0);
        let add = |length| columns.push(Column { length, status: ColumnStatus::Ready });
        (&mut steps[start..], add)
    }

    /// Adds a step that was not drawn from the current distribution. Of the `known` ones, which were never
    /// asked, the best `max_known` are kept.
    pub(super) fn inject(
        &mut self,
        y: &[f64],
        length: f64,
        rank: Rank,
        known: bool,
        max_known: usize,
    ) {
        let status = if known { ColumnStatus::Known(rank) } else { ColumnStatus::Told(rank) };
        let column = Column { length, status };
        let others = || self.columns.iter().enumerate().filter(|(_, column)| column.is_known());
        if !known || others().count() < max_known {
            self.steps.extend_from_slice(y);
            self.columns.push(column);
            self.told += usize::from(!known);
        } else if let Some((worst, other)) = others().max_by_key(|(_, column)| column.rank())
            && Some(rank) < other.rank()
        {
            self.steps[worst * y.len()..][..y.len()].copy_from_slice(y);
            self.columns[worst] = column;
        }
    }

    /// Writes the columns with a rank to `order`, sorted by rank, ties by index.
    pub(super) fn rank(&self, order: &mut Vec<usize>) {
        order.clear();
        order.extend((0..self.columns.len()).filter(|&i| self.columns[i].rank().is_some()));
        order.sort_by_key(|&i| self.columns[i].rank());
    }

    /// Writes the columns that were not dropped to `order`, sorted by value, ties by index.
    pub(super) fn rank_by(&self, values: &[f64], order: &mut Vec<usize>) {
        order.clear();
        let is_kept = |i: &usize| self.columns[*i].status != ColumnStatus::Dropped;
        order.extend((0..self.columns.len()).filter(is_kept));
        order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    }

    /// Whether all outcomes told are values.
    pub(super) fn has_only_values(&self) -> bool {
        self.columns.iter().all(|column| column.rank().is_none_or(|rank| rank.value().is_some()))
    }

    /// Replaces the step of the last column, if it is ready.
    pub(super) fn replace_last(&mut self, y: &[f64], length: f64) {
        let start = self.steps.len().saturating_sub(y.len());
        if let Some(column) = self.columns.last_mut()
            && column.status == ColumnStatus::Ready
        {
            self.steps[start..].copy_from_slice(y);
            column.length = length;
        }
    }

    /// Sorts the columns that are ready by the value of their steps.
    pub(super) fn sort_ready(&mut self, n: usize, mut value: impl FnMut(&[f64]) -> f64) {
        let is_ready = |i: &usize| self.columns[*i].status == ColumnStatus::Ready;
        let ready: Vec<usize> = (0..self.columns.len()).filter(is_ready).collect();
        let mut sorted: Vec<(f64, f64, Vec<f64>)> = (ready.iter())
            .map(|&i| {
                let y = self.step(i, n);
                (value(y), self.columns[i].length, y.to_vec())
            })
            .collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (i, (_, length, y)) in ready.into_iter().zip(sorted) {
            self.columns[i].length = length;
            self.steps[i * n..(i + 1) * n].copy_from_slice(&y);
        }
    }

    /// Forgets the pending candidates. They are injected when they are told.
    pub(super) fn forget_pending(&mut self, n: usize) {
        let mut kept = 0;
        for i in 0..self.columns.len() {
            if self.columns[i].rank().is_some() {
                self.steps.copy_within(i * n..(i + 1) * n, kept * n);
                self.columns.swap(i, kept);
                kept += 1;
            }
        }
        self.columns.truncate(kept);
        self.steps.truncate(kept * n);
        self.next = kept;
    }

    pub(super) fn clear(&mut self) {
        self.steps.clear();
        self.columns.clear();
        (self.next, self.told, self.strays) = (0, 0, 0);
    }

    /// Checks the invariants of a deserialized generation. `asked` is the number of candidates asked.
    pub(super) fn is_sound(&self, n: usize, lambda: usize, asked: u64) -> bool {
        let told =
            self.columns.iter().filter(|column| matches!(column.status, ColumnStatus::Told(_)));
        let is_possible = |column: &Column| match column.status {
            ColumnStatus::Pending(id) => id < asked,
            ColumnStatus::Told(rank) | ColumnStatus::Known(rank) => rank.is_sound(),
            _ => true,
        };
        self.columns.len().checked_mul(n) == Some(self.steps.len())
            && self.steps.iter().all(|y| y.is_finite())
            && self.columns.iter().all(|c| c.length.is_finite() && c.length >= 0.0)
            && self.columns.iter().all(is_possible)
            && told.count() == self.told
            && self.told < lambda
            && self.next <= self.columns.len()
            && (self.strays as u64) < ID_HEADROOM
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;

    fn rank(value: f64) -> Rank {
        Outcome::from(value).rank()
    }

    fn drawn(count: usize) -> Generation {
        let mut generation = Generation::default();
        let (steps, mut add_column) = generation.extend(count, 2);
        for (i, y) in steps.chunks_exact_mut(2).enumerate() {
            y.fill(i as f64);
            add_column(i as f64);
        }
        drop(add_column);
        generation
    }

    #[test]
    fn columns_are_asked_once_and_sorted_by_rank() {
        let mut generation = drawn(3);
        for id in 0..3 {
            let column = generation.take_ready().unwrap();
            generation.set_pending(column, id);
        }
        assert_eq!(generation.take_ready(), None);
        for (id, value) in [(2, 1.0), (0, 3.0), (1, f64::NAN)] {
            let column = generation.find(id).unwrap();
            generation.tell(column, rank(value));
            assert_eq!(generation.find(id), None);
        }
        let mut order = Vec::new();
        generation.rank(&mut order);
        assert_eq!((order, generation.told()), (vec![2, 0, 1], 3));
        assert!(generation.is_sound(2, 4, 3) && !generation.is_sound(2, 3, 3));
    }

    #[test]
    fn pending_candidates_can_be_forgotten() {
        let mut generation = drawn(4);
        for id in 0..3 {
            let column = generation.take_ready().unwrap();
            generation.set_pending(column, id);
        }
        generation.tell(1, rank(5.0));
        generation.forget_pending(2);
        assert_eq!((generation.len(), generation.told()), (1, 1));
        assert_eq!(generation.step(0, 2), [1.0, 1.0]);
        assert_eq!(generation.find(0), None);
        assert!(generation.is_sound(2, 4, 3));
    }

    #[test]
    fn only_the_best_known_points_are_kept() {
        let mut generation = drawn(1);
        for value in [5.0, 3.0, 4.0, 9.0, 1.0] {
            generation.inject(&[value; 2], 1.0, rank(value), true, 2);
        }
        let mut order = Vec::new();
        generation.rank(&mut order);
        let values: Vec<f64> = order.iter().map(|&i| generation.step(i, 2)[0]).collect();
        assert_eq!(values, [1.0, 3.0]);
        assert_eq!(generation.told(), 0);
    }
}
