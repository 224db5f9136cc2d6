//! The criteria that end a run and start the next one: section B.3 of the tutorial. A departure:
//! tolerances on values are relative instead of absolute, so that the scale of the objective does not
//! matter.

use super::distribution::Distribution;
use super::parameters::Parameters;
use crate::outcome::Rank;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Why a run ended and the next one started. The names are the tutorial's, if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stop {
    /// The values of the last generation, and the best values of the last 10 + 30 n / lambda
    /// generations, are equal up to rounding. With real and discrete coordinates, only the best values.
    TolFun,
    /// The deviation is below 10^-12 of the initial one in every coordinate.
    TolX,
    /// The deviation is above 10^4 times the initial one.
    TolXUp,
    /// The condition number of the covariance matrix is above 10^14, or the matrix is no longer positive
    /// definite.
    ConditionCov,
    /// A tenth of a deviation along an axis does not change the mean. (The axes are the columns of the
    /// Cholesky factor; in the tutorial they are the principal axes.)
    NoEffectAxis,
    /// A fifth of the deviation of a coordinate does not change the mean.
    NoEffectCoord,
    /// The best and the median values of recent generations are not below those of earlier ones.
    Stagnation,
    /// The run converges to a value that is worse than the best of earlier runs. (Not in the tutorial: most
    /// of the evaluations of a run are for the last digits of its optimum.)
    Inferior,
    /// All evaluations failed for [`MAX_FAILED_GENERATIONS`] generations.
    Failures,
    /// In a space with discrete coordinates: most drawn points were seen before.
    Repeats,
    /// BIPOP: a run with a small population has used its share of the evaluations.
    BudgetShare,
}

/// The values of a run that the criteria depend on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ValueHistory {
    /// The values of the latest generations that have both a best and a median value.
    values: VecDeque<GenerationValues>,
    /// The largest difference between the best and the median value of one generation.
    spread: f64,
    /// The worst value of the last generation, if all its points had values.
    worst: Option<f64>,
    /// The number of consecutive generations in which all evaluations failed.
    failed: u32,
}

/// The best and the median value of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct GenerationValues {
    best: f64,
    median: f64,
}

/// A run ends after this many consecutive generations in which all evaluations failed.
const MAX_FAILED_GENERATIONS: u32 = 10;

/// A run ends if it improves within 10 + 30 n / lambda generations by less than this share of the distance
/// to the best value of earlier runs.
const INFERIOR_SHARE: f64 = 0.1;

/// The largest number of generations considered for stagnation.
const MAX_STAGNATION_WINDOW: usize = 20_000;

impl ValueHistory {
    /// Records a generation whose evaluations all failed.
    pub(super) fn push_failed(&mut self) -> Option<Stop> {
        self.failed += 1;
        (self.failed >= MAX_FAILED_GENERATIONS).then_some(Stop::Failures)
    }

    /// Records the best, the median and the worst rank of a generation. `shortest` is the minimum length of
    /// the history.
    pub(super) fn push(&mut self, best: Rank, median: Rank, worst: Rank, shortest: usize) {
        self.failed = 0;
        self.worst = worst.value();
        // Infeasible generations are not recorded. Such runs end by criteria on the distribution.
        let (Some(best), Some(median)) = (best.value(), median.value()) else { return };
        self.values.push_back(GenerationValues { best, median });
        if (median - best).is_finite() {
            self.spread = self.spread.max(median - best);
        }
        if self.values.len() > shortest.max(MAX_STAGNATION_WINDOW) {
            self.values.pop_front();
        }
    }

    /// The number of generations considered for TolFun, and the minimum number for stagnation.
    pub(super) fn lengths(parameters: &Parameters, dimension: usize) -> (usize, usize) {
        let adapting = (30.0 * dimension as f64 / parameters.lambda as f64).ceil() as usize;
        (10 + adapting, 120 + adapting)
    }

    /// The criterion that ends the run, if any. `sigma` is its initial step size, `record` the best value of
    /// earlier runs, and `is_mixed` whether there are real and discrete coordinates.
    pub(super) fn stop(
        &self,
        distribution: &Distribution,
        parameters: &Parameters,
        sigma: f64,
        record: Option<f64>,
        is_mixed: bool,
    ) -> Option<Stop> {
        let n = distribution.mean.len();
        let (flat, stagnant) = ValueHistory::lengths(parameters, n);
        let (least, greatest) = distribution.covariance.extremes();
        if greatest > 1e7 * least {
            return Some(Stop::ConditionCov);
        }
        if distribution.sigma * greatest > 1e4 * sigma {
            return Some(Stop::TolXUp);
        }
        if distribution.is_narrow(1e-12 * sigma) {
            return Some(Stop::TolX);
        }
        if self.is_flat(flat, is_mixed) {
            return Some(Stop::TolFun);
        }
        if record.is_some_and(|record| self.is_inferior(record, flat)) {
            return Some(Stop::Inferior);
        }
        let Distribution { mean, covariance, generation, .. } = distribution;
        let has_no_effect = |i: usize| mean[i] + 0.2 * distribution.deviation(i) == mean[i];
        if (0..n).any(has_no_effect) {
            return Some(Stop::NoEffectCoord);
        }
        let index = (generation % n as u64) as usize;
        if let Some(axis) = covariance.axis(index) {
            let step = 0.1 * distribution.sigma;
            if mean[index..].iter().zip(axis).all(|(mean, d)| mean + step * d == *mean) {
                return Some(Stop::NoEffectAxis);
            }
        }
        // Medians of long histories are expensive, so this is not checked in every generation.
        if generation.is_multiple_of(20) && self.is_stagnant(stagnant, *generation) {
            return Some(Stop::Stagnation);
        }
        None
    }

    /// The best value of the run.
    pub(super) fn best(&self) -> Option<f64> {
        self.values.iter().map(|values| values.best).reduce(f64::min)
    }

    /// Whether the values of the latest generations differ by a small share of what is missing to the best
    /// value of earlier runs.
    fn is_inferior(&self, record: f64, length: usize) -> bool {
        if self.values.len() < length {
            return false;
        }
        let recent = || self.values.iter().rev().take(length);
        let least = recent().map(|values| values.best).fold(f64::INFINITY, f64::min);
        let greatest = recent().map(|values| values.median).fold(f64::NEG_INFINITY, f64::max);
        greatest - least < INFERIOR_SHARE * (least - record)
    }

    /// TolFun is 10^-12 in the tutorial. Here it is the maximum of 10^-14 times the value, which is near
    /// rounding, and, for optima of value 0, 10^-20 times the spread of the run's values.
    ///
    /// In a mixed space the worst value does not count: discrete coordinates keep moving when the reals have
    /// converged, so that some candidates of most generations are far worse. The tolerance is 10^-12 times the
    /// value there, as another run is more likely to help than more digits: such runs often converge to discrete
    /// values that are not optimal.
    fn is_flat(&self, length: usize, is_mixed: bool) -> bool {
        let Some(last) = self.values.back().filter(|_| self.values.len() >= length) else {
            return false;
        };
        let (worst, tolerance) =
            if is_mixed { (Some(last.best), 1e-12) } else { (self.worst, 1e-14) };
        let Some(worst) = worst else { return false };
        let recent = || self.values.iter().rev().take(length).map(|values| values.best);
        let least = recent().fold(last.best, f64::min);
        let greatest = recent().fold(worst, f64::max);
        greatest - least <= (tolerance * least.abs()).max(1e-20 * self.spread)
    }

    /// Compares the medians of the latest and the earliest 30% of a window: the last 20% of the run, but
    /// at least `shortest` generations.
    fn is_stagnant(&self, shortest: usize, generation: u64) -> bool {
        let length =
            ((generation / 5) as usize).clamp(shortest, shortest.max(MAX_STAGNATION_WINDOW));
        if self.values.len() < length {
            return false;
        }
        let part = (3 * length / 10).max(1);
        let window = || self.values.iter().skip(self.values.len() - length);
        let has_not_decreased = |value: fn(&GenerationValues) -> f64| {
            let early = window().take(part).map(value).collect();
            let late = window().skip(length - part).map(value).collect();
            median(late) >= median(early)
        };
        has_not_decreased(|values| values.best) && has_not_decreased(|values| values.median)
    }

    /// Checks the invariants of a deserialized history.
    pub(super) fn is_sound(&self) -> bool {
        let are_finite =
            |values: &GenerationValues| values.best.is_finite() && values.median.is_finite();
        self.values.iter().all(are_finite)
            && self.spread.is_finite()
            && self.spread >= 0.0
            && self.worst.is_none_or(f64::is_finite)
            && self.failed <= MAX_FAILED_GENERATIONS
    }
}

/// The upper median of some numbers.
fn median(mut numbers: Vec<f64>) -> f64 {
    let middle = numbers.len() / 2;
    *numbers.select_nth_unstable_by(middle, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;

    fn parameters() -> Parameters {
        Parameters::new(2, 6, false)
    }

    fn distribution(sigma: f64) -> Distribution {
        Distribution::new(vec![0.5; 2], sigma, false)
    }

    /// A history with these best values, and medians larger by 1.
    fn history(values: impl Iterator<Item = f64>) -> ValueHistory {
        let mut history = ValueHistory::default();
        let rank = |value: f64| Outcome::from(value).rank();
        for value in values {
            history.push(rank(value), rank(value + 1.0), rank(value + 2.0), 130);
        }
        history
    }

    fn stop(history: &ValueHistory, distribution: &Distribution) -> Option<Stop> {
        history.stop(distribution, &parameters(), 0.2, None, false)
    }

    #[test]
    fn progress_does_not_end_a_run() {
        let history = history((0..1000).map(|i| 1.0 / f64::from(i + 1)));
        assert_eq!(stop(&history, &distribution(0.2)), None);
    }

    #[test]
    fn extreme_step_sizes_end_a_run() {
        let history = ValueHistory::default();
        assert_eq!(stop(&history, &distribution(1e-14)), Some(Stop::TolX));
        assert_eq!(stop(&history, &distribution(1e5)), Some(Stop::TolXUp));
        let history = ValueHistory::default();
        let narrow = distribution(1e-16);
        let stop = history.stop(&narrow, &parameters(), 1e-6, None, false);
        assert_eq!(stop, Some(Stop::NoEffectCoord));
    }

    #[test]
    fn flat_and_stagnant_values_end_a_run() {
        let mut flat = ValueHistory::default();
        let rank = Outcome::from(3.0).rank();
        for _ in 0..20 {
            assert_eq!(stop(&flat, &distribution(0.2)), None);
            flat.push(rank, rank, rank, 130);
        }
        assert_eq!(stop(&flat, &distribution(0.2)), Some(Stop::TolFun));
        let stagnant = history((0..200).map(|i| f64::from(i % 7)));
        assert_eq!(stop(&stagnant, &distribution(0.2)), Some(Stop::Stagnation));
    }

    #[test]
    fn in_mixed_spaces_equal_best_values_end_a_run() {
        // The medians are larger by 1 and the worst values by 2.
        let history = history((0..20).map(|_| 3.0));
        let stop = |is_mixed| {
            history.stop(&distribution(0.2), &Parameters::new(2, 20, false), 0.2, None, is_mixed)
        };
        assert_eq!((stop(false), stop(true)), (None, Some(Stop::TolFun)));
    }

    #[test]
    fn a_run_that_converges_to_a_worse_value_than_earlier_ones_ends() {
        let converging = history((0..100).map(|i| 7.0 + 0.5f64.powi(i)));
        let stop = |record| converging.stop(&distribution(0.2), &parameters(), 0.2, record, false);
        assert_eq!(stop(None), None);
        // The medians are larger by 1.
        assert_eq!(stop(Some(-4.0)), Some(Stop::Inferior));
        assert_eq!(stop(Some(-2.0)), None);
        assert_eq!(stop(Some(8.0)), None);
    }

    #[test]
    fn failed_generations_end_a_run() {
        let mut history = ValueHistory::default();
        assert!((1..MAX_FAILED_GENERATIONS).all(|_| history.push_failed().is_none()));
        assert_eq!(history.push_failed(), Some(Stop::Failures));
    }

    #[test]
    fn a_large_condition_number_ends_a_run() {
        use crate::optimizers::cma_es::covariance::Workspace;
        let mut distribution = distribution(0.2);
        let (mut work, step) = (Workspace::default(), [2e7, 0.0]);
        distribution.covariance.update(1.0, [(1.0, &step[..])].into_iter(), &mut work);
        distribution.covariance.refresh(1, &mut work).unwrap();
        assert_eq!(stop(&ValueHistory::default(), &distribution), Some(Stop::ConditionCov));
    }
}
