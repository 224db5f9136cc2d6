//! Noise: what is made of repeated values, and which points lead once they are evaluated again.
//!
//! The best value seen is the luckiest of many draws. So at the end the leading points are evaluated
//! again, and recommended is the one that is best by these fresh values alone.

use crate::outcome::Direction;
use crate::plan::Aggregate;
use std::collections::BTreeMap;

/// The mean or median of values; `None` of none.
pub(crate) fn aggregated(values: &[f64], aggregate: Aggregate) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some(match aggregate {
        Aggregate::Mean => mean(values),
        Aggregate::Median => {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            f64::midpoint(sorted[(values.len() - 1) / 2], sorted[values.len() / 2])
        }
    })
}

/// The mean of finite values: finite, also where their sum overflows.
pub(crate) fn mean(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let sum: f64 = values.iter().sum();
    if sum.is_finite() {
        return sum / count;
    }
    values.iter().map(|value| value / count).sum::<f64>().clamp(f64::MIN, f64::MAX)
}

/// A leading point.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Leader {
    /// Its trial.
    pub(crate) trial: u64,
    /// The value that brought it here.
    pub(crate) value: f64,
    /// The encoded point.
    pub(crate) point: Vec<f64>,
}

/// A point recommended by the values of later evaluations, not by the one that made it the best.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Recommended {
    pub(crate) trial: u64,
    /// The encoded point.
    pub(crate) point: Vec<f64>,
    /// The mean or median of these evaluations.
    pub(crate) value: f64,
    /// Their number.
    pub(crate) evaluations: u64,
}

/// The leading points of a study, best first, and the fresh values of those evaluated again.
#[derive(Debug, Clone)]
pub(crate) struct Leaders {
    direction: Direction,
    capacity: usize,
    leaders: Vec<Leader>,
    /// By trial and number; `None` stands for an evaluation that failed.
    fresh: BTreeMap<(u64, u64), Option<f64>>,
}

impl Leaders {
    pub(crate) fn new(direction: Direction, capacity: usize) -> Self {
        Leaders { direction, capacity, leaders: Vec::new(), fresh: BTreeMap::new() }
    }

    /// Enters a feasible trial, if it leads. Of equal values the earlier leads.
    pub(crate) fn enter(&mut self, trial: u64, value: f64, point: &[f64]) {
        let ours = self.direction.signed(value);
        let is_ahead = |leader: &Leader| {
            let theirs = self.direction.signed(leader.value);
            theirs.total_cmp(&ours).then(leader.trial.cmp(&trial)).is_lt()
        };
        let place = self.leaders.partition_point(is_ahead);
        if place < self.capacity {
            self.leaders.insert(place, Leader { trial, value, point: point.to_vec() });
            self.leaders.truncate(self.capacity);
        }
    }

    /// The leading points, best first.
    pub(crate) fn leaders(&self) -> &[Leader] {
        &self.leaders
    }

    /// Enters the `number`-th fresh value of a trial.
    pub(crate) fn enter_fresh(&mut self, trial: u64, number: u64, value: Option<f64>) {
        self.fresh.insert((trial, number), value);
    }

    /// Which of `count` fresh evaluations of the leaders are missing: place among the leaders, and
    /// number.
    pub(crate) fn missing(&self, count: u64) -> Vec<(usize, u64)> {
        let all = (0..count).flat_map(|number| (0..self.leaders.len()).map(move |i| (i, number)));
        all.filter(|&(i, number)| !self.fresh.contains_key(&(self.leaders[i].trial, number)))
            .collect()
    }

    /// The leader that is best by fresh values. One that failed even once is only recommended if nothing
    /// else is.
    pub(crate) fn recommended(&self, aggregate: Aggregate) -> Option<Recommended> {
        let judged = self.leaders.iter().filter_map(|leader| {
            let fresh = || self.fresh.range((leader.trial, 0)..=(leader.trial, u64::MAX));
            let values: Vec<f64> = fresh().filter_map(|(_, value)| *value).collect();
            let (value, evaluations) = (aggregated(&values, aggregate)?, values.len() as u64);
            let Leader { trial, point, .. } = leader.clone();
            let has_failed = fresh().count() > values.len();
            Some((has_failed, Recommended { trial, point, value, evaluations }))
        });
        let rank = |recommended: &Recommended| self.direction.signed(recommended.value);
        judged
            .min_by(|a, b| a.0.cmp(&b.0).then(rank(&a.1).total_cmp(&rank(&b.1))))
            .map(|(_, recommended)| recommended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_medians() {
        assert_eq!(aggregated(&[], Aggregate::Mean), None);
        assert_eq!(aggregated(&[1.0, 2.0, 6.0], Aggregate::Mean), Some(3.0));
        assert_eq!(aggregated(&[1.6e308, 1.6e308], Aggregate::Mean), Some(1.6e308));
        assert_eq!(aggregated(&[6.0, 1.0, 2.0], Aggregate::Median), Some(2.0));
        assert_eq!(aggregated(&[4.0, 1.0, 2.0, 3.0], Aggregate::Median), Some(2.5));
        let (low, high) = (-1.7e308, 1.7e308);
        assert_eq!(aggregated(&[high, high], Aggregate::Mean), Some(high));
        assert_eq!(aggregated(&[high, high], Aggregate::Median), Some(high));
        assert_eq!(aggregated(&[low, high], Aggregate::Median), Some(0.0));
        assert_eq!(aggregated(&[f64::MAX; 3], Aggregate::Mean), Some(f64::MAX));
    }

    #[test]
    fn a_lucky_draw_does_not_win() {
        let mut leaders = Leaders::new(Direction::Minimize, 3);
        for (trial, value) in [5.0, 0.1, 3.0, 2.0, 4.0].into_iter().enumerate() {
            leaders.enter(trial as u64, value, &[value]);
        }
        let trials: Vec<u64> = leaders.leaders().iter().map(|leader| leader.trial).collect();
        assert_eq!(trials, [1, 3, 2]);
        assert_eq!(leaders.recommended(Aggregate::Mean), None);
        assert_eq!(leaders.missing(1), [(0, 0), (1, 0), (2, 0)]);
        for (trial, number, value) in [(1, 0, 5.0), (1, 1, 6.0), (3, 1, 2.0), (2, 0, 2.5)] {
            leaders.enter_fresh(trial, number, Some(value));
        }
        assert_eq!(leaders.missing(2), [(1, 0), (2, 1)]);
        let recommended = leaders.recommended(Aggregate::Mean).unwrap();
        let Recommended { trial, value, evaluations, .. } = recommended;
        assert_eq!((trial, value, evaluations), (3, 2.0, 1));
        leaders.enter_fresh(3, 0, None);
        assert_eq!(leaders.recommended(Aggregate::Mean).unwrap().trial, 2);
    }

    #[test]
    fn larger_leads_when_maximizing() {
        let mut leaders = Leaders::new(Direction::Maximize, 2);
        for (trial, value) in [1.0, 3.0, 3.0, 2.0].into_iter().enumerate() {
            leaders.enter(trial as u64, value, &[]);
        }
        let trials: Vec<u64> = leaders.leaders().iter().map(|leader| leader.trial).collect();
        assert_eq!(trials, [1, 2]);
    }
}
