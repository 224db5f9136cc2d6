//! The trust region (TuRBO, Eriksson et al. 2019): a box around the best point that expands on success,
//! shrinks on failure, and begins elsewhere when it has become too small.

use crate::optimizers::saved::ID_HEADROOM;
use crate::outcome::Rank;
use serde::{Deserialize, Serialize};

/// The side length at which a region has converged.
const MIN_LENGTH: f64 = 1e-4;

const MAX_LENGTH: f64 = 2.0;

/// The first side length: in a continuous space, and in one with discrete coordinates, where a region must
/// reach other categories and the places where they are good.
const FIRST_LENGTH: f64 = 0.5;
const DISCRETE_FIRST_LENGTH: f64 = 1.0;

/// Successes in a row before the region expands.
const SUCCESSES: u32 = 3;

/// Failures in a row before the region shrinks, for each coordinate, and at least.
const FAILURES_PER_COORDINATE: f64 = 0.3;
const MIN_FAILURES: f64 = 4.0;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TrustRegion {
    /// The number of regions before this one.
    pub(super) number: u64,
    /// The side length, as a share of the space; of a feature with a mean length scale.
    pub(super) length: f64,
    successes: u32,
    failures: f64,
    /// The best outcome told in this region.
    best: Option<Rank>,
}

impl TrustRegion {
    pub(super) fn new(number: u64, is_discrete: bool) -> Self {
        let length = if is_discrete { DISCRETE_FIRST_LENGTH } else { FIRST_LENGTH };
        TrustRegion { number, length, successes: 0, failures: 0.0, best: None }
    }

    /// Learns the outcome of a point of this region. It is a success if it is less than `limit`, or without one
    /// better than the best so far. With several pending candidates each
    /// of them counts for less, since they did not know of each other. Returns whether the region has
    /// converged.
    pub(super) fn learn(
        &mut self,
        rank: Rank,
        limit: Option<f64>,
        dimension: usize,
        pending: usize,
    ) -> bool {
        let tolerance = (FAILURES_PER_COORDINATE * dimension as f64).max(MIN_FAILURES);
        let is_better = match (limit, self.best) {
            (Some(limit), _) => rank.value().is_some_and(|value| value < limit),
            (None, Some(best)) => rank.beats(best),
            (None, None) => !rank.is_failure(),
        };
        if is_better {
            self.best = Some(rank);
            self.successes += 1;
            self.failures = 0.0;
        } else {
            self.successes = 0;
            // What is infeasible beside a feasible point is learned by the model of feasibility; the region may be
            // right.
            let has_feasible = self.best.is_some_and(|best| best.value().is_some());
            if rank.value().is_some() || !has_feasible {
                self.failures += 1.0 / (1.0 + pending as f64);
            }
        }
        if self.successes >= SUCCESSES {
            self.length = (2.0 * self.length).min(MAX_LENGTH);
            self.successes = 0;
        } else if self.failures >= tolerance {
            self.length *= 0.5;
            self.failures = 0.0;
        }
        self.length < MIN_LENGTH
    }

    /// The sides of the box along features with these logarithms of length scales: longer where the
    /// objective changes slowly, with the same volume.
    pub(super) fn sides(&self, log_scales: &[f64]) -> Vec<f64> {
        /// How much longer or shorter than the mean a side may be.
        const MAX_LOG_RATIO: f64 = 1.5;
        let mean = log_scales.iter().sum::<f64>() / log_scales.len().max(1) as f64;
        let ratio = |x: &f64| (x - mean).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp();
        log_scales.iter().map(|x| self.length * ratio(x)).collect()
    }

    /// Checks the invariants of a deserialized state.
    pub(super) fn is_sound(&self) -> bool {
        self.number < ID_HEADROOM
            && (MIN_LENGTH..=MAX_LENGTH).contains(&self.length)
            && self.successes < SUCCESSES
            && (0.0..1e6).contains(&self.failures)
            && self.best.is_none_or(Rank::is_sound)
    }
}
