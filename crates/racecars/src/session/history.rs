//! How the best value changed over a session, thinned so that a million evaluations stay small.

/// The best values of a session: `(evaluations so far, best value)`, oldest first. Where the objective is
/// known to be noisy, a best value may be worse than the one before, as its point was evaluated again.
///
/// At most [`History::CAPACITY`] are kept: when they grow beyond that, every other one is dropped,
/// but never the first and the latest.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    improvements: Vec<(u64, f64)>,
}

impl History {
    /// The maximum number of improvements kept.
    pub const CAPACITY: usize = 1024;

    pub(super) fn push(&mut self, evaluation: u64, best: f64) {
        if self.improvements.len() == History::CAPACITY {
            let mut place = 0;
            self.improvements.retain(|_| {
                place += 1;
                place % 2 == 1
            });
        }
        self.improvements.push((evaluation, best));
    }

    /// The improvements kept.
    pub fn improvements(&self) -> &[(u64, f64)] {
        &self.improvements
    }

    /// The best value after this many evaluations, `None` before the first.
    pub fn best_after(&self, evaluations: u64) -> Option<f64> {
        let later = self.improvements.partition_point(|&(evaluation, _)| evaluation <= evaluations);
        later.checked_sub(1).map(|place| self.improvements[place].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_improvements_stay_small_with_both_ends() {
        let mut history = History::default();
        for evaluation in 1..=1_000_000 {
            history.push(evaluation, -(evaluation as f64));
        }
        let kept = history.improvements();
        assert!(kept.len() <= History::CAPACITY && kept.len() > History::CAPACITY / 4);
        assert_eq!((kept[0], kept[kept.len() - 1].0), ((1, -1.0), 1_000_000));
        assert!(kept.is_sorted_by_key(|&(evaluation, _)| evaluation));
    }

    #[test]
    fn the_best_is_that_of_the_latest_improvement() {
        let mut history = History::default();
        history.push(3, 5.0);
        history.push(7, 2.0);
        let bests = [2, 3, 6, 7, 100].map(|evaluations| history.best_after(evaluations));
        assert_eq!(bests, [None, Some(5.0), Some(5.0), Some(2.0), Some(2.0)]);
    }
}
