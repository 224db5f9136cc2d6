//! The success history of L-SHADE: successful weights and crossover rates, and the archive of replaced
//! members (R. Tanabe & A. Fukunaga, "Improving the search performance of SHADE using linear population
//! size reduction", CEC 2014, whose equations are cited).

use super::settings::ARCHIVE_RATE;
use crate::random::Random;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// H: the number of memory entries.
const MEMORY_SIZE: usize = 6;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SuccessHistory {
    memories: [Memory; MEMORY_SIZE],
    /// k: the index of the memory entry that the next generation overwrites.
    next: usize,
    /// S_F, S_CR and the gains of the current generation.
    successes: Vec<Success>,
    /// A: the points of members replaced by better ones.
    archive: Vec<Box<[f64]>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Memory {
    /// M_F.
    weight: f64,
    /// M_CR; `None` is the terminal value, with which CR is always 0.
    crossover: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Success {
    weight: f64,
    crossover: f64,
    /// The decrease of the value, if both points had one.
    gain: Option<f64>,
}

impl SuccessHistory {
    pub(super) fn new() -> Self {
        let memory = Memory { weight: 0.5, crossover: Some(0.5) };
        SuccessHistory {
            memories: [memory; MEMORY_SIZE],
            next: 0,
            successes: Vec::new(),
            archive: Vec::new(),
        }
    }

    /// Draws F and CR for one trial around a random memory entry (equations 1 and 2): F from a Cauchy
    /// distribution, redrawn until positive, at most 1; CR from a normal distribution, clipped to [0, 1].
    pub(super) fn draw(&self, random: &mut Random) -> (f64, f64) {
        let Memory { weight: center, crossover } = self.memories[random.index(MEMORY_SIZE)];
        let crossover = match crossover {
            Some(mean) => (mean + 0.1 * random.normal()).clamp(0.0, 1.0),
            None => 0.0,
        };
        loop {
            let weight = center + 0.1 * (PI * (random.unit() - 0.5)).tan();
            if weight > 0.0 {
                return (weight.min(1.0), crossover);
            }
        }
    }

    /// Records a trial that was better than its target. `gain` is the decrease of the value, if both had
    /// one.
    pub(super) fn record(&mut self, weight: f64, crossover: f64, gain: Option<f64>) {
        self.successes.push(Success { weight, crossover, gain });
    }

    /// Ends a generation: the means of its successes, weighted by their gains, overwrite one memory entry
    /// (Algorithm 1, equations 7 to 9).
    pub(super) fn learn(&mut self) {
        if self.successes.is_empty() {
            return;
        }
        // Gains are relative to the largest one, so that sums do not overflow. An infeasible or failed
        // target counts as the largest gain. (The paper has no such targets.)
        let gains = self.successes.iter().filter_map(|success| success.gain);
        let largest = gains.fold(0.0, f64::max).min(f64::MAX);
        let share = |gain: Option<f64>| match gain {
            Some(gain) if largest > 0.0 => gain.min(f64::MAX) / largest,
            _ => 1.0,
        };
        let lehmer_mean = |of: fn(&Success) -> f64| {
            let terms = self.successes.iter().map(|s| (share(s.gain) * of(s), of(s)));
            let (sum, squares) =
                terms.fold((0.0, 0.0), |(sum, squares), (wx, x)| (sum + wx, squares + wx * x));
            if sum > 0.0 { Some(squares / sum) } else { None }
        };
        let (weight, crossover) = (lehmer_mean(|s| s.weight), lehmer_mean(|s| s.crossover));
        let memory = &mut self.memories[self.next];
        if let Some(weight) = weight {
            memory.weight = weight;
        }
        memory.crossover = memory.crossover.and(crossover);
        debug_assert!(
            memory.weight > 0.0 && memory.weight <= 1.0,
            "a mean of weights is a weight: {memory:?}"
        );
        self.next = (self.next + 1) % MEMORY_SIZE;
        self.successes.clear();
    }

    pub(super) fn archive(&self) -> &[Box<[f64]>] {
        &self.archive
    }

    /// Archives the point of a replaced member. If the archive is full for this population, it replaces a
    /// random point, which is returned.
    pub(super) fn archive_point(
        &mut self,
        point: Box<[f64]>,
        population: usize,
        random: &mut Random,
    ) -> Option<Box<[f64]>> {
        if self.archive.len() < archive_size(population) {
            self.archive.push(point);
            return None;
        }
        let place = random.index(self.archive.len());
        Some(std::mem::replace(&mut self.archive[place], point))
    }

    /// Drops random points until the archive fits this population.
    pub(super) fn shrink_archive(&mut self, population: usize, random: &mut Random) {
        while self.archive.len() > archive_size(population) {
            self.archive.swap_remove(random.index(self.archive.len()));
        }
    }

    /// Checks the invariants of a deserialized history.
    pub(super) fn is_sound(&self, population: usize) -> bool {
        let is_rate = |x: f64| (0.0..=1.0).contains(&x);
        let is_gain = |gain: Option<f64>| gain.is_none_or(|gain| gain >= 0.0);
        self.next < MEMORY_SIZE
            && self.archive.len() <= archive_size(population)
            && (self.memories.iter())
                .all(|m| m.weight > 0.0 && is_rate(m.weight) && m.crossover.is_none_or(is_rate))
            && (self.successes.iter()).all(|s| {
                s.weight > 0.0 && is_rate(s.weight) && is_rate(s.crossover) && is_gain(s.gain)
            })
    }
}

fn archive_size(population: usize) -> usize {
    (ARCHIVE_RATE * population as f64).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_overwrites_one_memory_entry_with_weighted_means() {
        let mut history = SuccessHistory::new();
        history.record(0.2, 0.1, Some(1.0));
        history.record(0.8, 0.9, Some(3.0));
        history.learn();
        // (1 * 0.04 + 3 * 0.64) / (1 * 0.2 + 3 * 0.8), (0.01 + 2.43) / (0.1 + 2.7)
        let Memory { weight, crossover } = history.memories[0];
        assert!((weight - 1.96 / 2.6).abs() < 1e-12);
        assert!((crossover.unwrap() - 2.44 / 2.8).abs() < 1e-12);
        assert_eq!(history.memories[1], Memory { weight: 0.5, crossover: Some(0.5) });
        history.learn();
        assert_eq!(history.next, 1, "without a success the memory does not change");
    }

    #[test]
    fn a_crossover_rate_of_zero_is_terminal() {
        let mut history = SuccessHistory::new();
        for _ in 0..2 * MEMORY_SIZE {
            history.record(0.5, 0.0, Some(1.0));
            history.learn();
        }
        history.record(0.5, 0.8, Some(1.0));
        history.learn();
        assert!(history.memories.iter().all(|memory| memory.crossover.is_none()));
        assert_eq!(history.draw(&mut Random::new(1)).1, 0.0);
    }

    #[test]
    fn gains_of_every_size_leave_a_valid_memory() {
        for gain in [None, Some(0.0), Some(f64::MIN_POSITIVE), Some(f64::MAX), Some(f64::INFINITY)]
        {
            let mut history = SuccessHistory::new();
            let mut random = Random::new(1);
            for _ in 0..100 {
                let (weight, crossover) = history.draw(&mut random);
                assert!(weight > 0.0 && weight <= 1.0 && (0.0..=1.0).contains(&crossover));
                history.record(weight, crossover, gain);
                history.record(weight, crossover, Some(1.0));
                history.learn();
                assert!(history.is_sound(10), "{gain:?}: {history:?}");
            }
        }
    }

    #[test]
    fn the_archive_fits_the_population() {
        let (mut history, mut random) = (SuccessHistory::new(), Random::new(1));
        for i in 0..100 {
            history.archive_point(vec![f64::from(i)].into_boxed_slice(), 10, &mut random);
        }
        assert_eq!(history.archive().len(), 26);
        history.shrink_archive(4, &mut random);
        assert_eq!(history.archive().len(), 10);
    }
}
