//! The runs of L-SHADE. A run is planned for a number of evaluations, over which its population shrinks. The
//! next run starts with a new population when this one has converged, or, without a budget, when it has
//! used its evaluations. (A departure: the paper has one run, and needs a budget.)

use super::population::Population;
use super::settings::{MIN_MEMBERS, Resolved, Strategy};
use crate::optimizers::saved::ID_HEADROOM;
use crate::sample::Sample;
use crate::space::Space;
use serde::{Deserialize, Serialize};

/// Without a budget, the evaluations per coordinate of the first run. Each run is twice as long as the last.
const FIRST_HORIZON: u64 = 1000;

/// With a budget, the evaluations per coordinate that must be left for another run.
const MIN_HORIZON: u64 = 50;

/// The current run, and the best of earlier runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Run {
    /// The number of earlier runs.
    pub(super) restarts: u64,
    /// The id of its first candidate.
    pub(super) first_id: u64,
    /// The number of evaluations told before it.
    start: u64,
    /// The number of evaluations that it is planned for; `None` if the population does not shrink.
    horizon: Option<u64>,
    /// The size of its initial population.
    pub(super) population: usize,
    /// The best point of earlier runs.
    pub(super) record: Option<Sample>,
}

impl Run {
    pub(super) fn new(settings: &Resolved, dimension: usize) -> Self {
        let horizon = match settings.strategy {
            Strategy::LShade => {
                Some(settings.budget.unwrap_or(FIRST_HORIZON.saturating_mul(dimension as u64)))
            }
            _ => None,
        };
        let population = settings.population_for(dimension, horizon);
        Run { restarts: 0, first_id: 0, start: 0, horizon, population, record: None }
    }

    /// The population size after `told` evaluations: linear population size reduction (equation 10 of the
    /// L-SHADE paper).
    pub(super) fn population_after(&self, told: u64) -> usize {
        let Some(horizon) = self.horizon else { return self.population };
        let share = (told.saturating_sub(self.start) as f64 / horizon.max(1) as f64).min(1.0);
        let (first, last) = (self.population as f64, MIN_MEMBERS as f64);
        (first + share * (last - first)).round() as usize
    }

    /// Starts the next run after `told` evaluations, if this one is over. Returns whether it did.
    pub(super) fn restart(
        &mut self,
        settings: &Resolved,
        population: &mut Population,
        space: &Space,
        told: u64,
        next_id: u64,
    ) -> bool {
        let Some(planned) = self.horizon else { return false };
        // In discrete spaces points are not repeated, so that a population does not converge.
        if !space.is_continuous() {
            return false;
        }
        let n = space.dimension();
        let used = told.saturating_sub(self.start);
        let is_used = settings.budget.is_none() && used >= planned;
        if !is_used && !population.has_converged(space) {
            return false;
        }
        let horizon = match settings.budget {
            Some(budget) => {
                let left = budget.saturating_sub(told);
                if left < MIN_HORIZON.saturating_mul(n as u64) {
                    return false;
                }
                left
            }
            None => planned.saturating_mul(2).min(ID_HEADROOM - 1),
        };
        if let Some(best) = std::mem::take(population).into_best() {
            self.keep(best);
        }
        self.restarts += 1;
        (self.first_id, self.start, self.horizon) = (next_id, told, Some(horizon));
        self.population = settings.population_for(n, self.horizon);
        true
    }

    /// Keeps the better of a sample and the best point of earlier runs. Returns the point of the other.
    pub(super) fn keep(&mut self, sample: Sample) -> Option<Box<[f64]>> {
        match &self.record {
            Some(record) if !sample.rank.beats(record.rank) => Some(sample.point),
            _ if sample.rank.is_failure() => Some(sample.point),
            _ => self.record.replace(sample).map(|old| old.point),
        }
    }

    /// Checks the invariants of a deserialized run.
    pub(super) fn is_sound(&self, settings: &Resolved, space: &Space, asked: u64) -> bool {
        let largest = settings.population_for(space.dimension(), None).max(settings.population);
        let is_shrinking = settings.strategy == Strategy::LShade;
        (MIN_MEMBERS..=largest).contains(&self.population)
            && self.horizon.is_some() == is_shrinking
            && self.first_id <= asked
            && [self.restarts, self.start].iter().all(|&count| count < ID_HEADROOM)
            && self
                .record
                .as_ref()
                .is_none_or(|record| record.is_sound(space) && !record.rank.is_failure())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizers::differential_evolution::settings::LShade;

    #[test]
    fn a_population_shrinks_to_four_members_over_the_run() {
        let sizes = |budget: Option<u64>| {
            let settings = LShade::default().resolve(10, budget).unwrap();
            let run = Run::new(&settings, 10);
            [0, 5000, 10_000, 50_000, 200_000].map(|told| run.population_after(told))
        };
        assert_eq!(sizes(Some(100_000)), [180, 171, 162, 92, 4]);
        assert_eq!(sizes(None), [100, 52, 4, 4, 4]);
    }
}
