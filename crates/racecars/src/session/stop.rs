//! When and why a session stops.

use crate::error::{Error, Result, ensure};
use crate::outcome::words;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::time::Duration;

/// Why a run, a study or a session of one stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StopReason {
    /// The evaluation budget is spent.
    #[serde(alias = "limit")]
    Evaluations,
    /// The time limit has passed.
    Time,
    /// The target value was reached.
    Target,
    /// The best value has not improved for as long as the patience.
    NoImprovement,
    /// An observer or a callback asked for it.
    #[serde(alias = "callback")]
    Observer,
    /// Someone outside asked for it: a [`Cancel`](crate::Cancel) token, or Ctrl-C.
    #[serde(alias = "cancelled")]
    Interrupted,
    /// Every point of the space has been proposed.
    Exhausted,
    /// The first evaluations all failed, and none has ever worked.
    FirstFailures,
    /// All workers died or cannot be reached.
    #[serde(alias = "workers")]
    WorkersLost,
}

words! {
    StopReason;
    /// All reasons.
    ALL;
    /// The name for programs, in results and in journals. [`FromStr`] takes it back.
    name;
    Evaluations: "evaluations", "evaluation budget spent";
    Time: "time", "time limit reached";
    Target: "target", "target reached";
    NoImprovement: "no-improvement", "no further improvement";
    Observer: "observer", "observer's request";
    Interrupted: "interrupted", "interrupted";
    Exhausted: "exhausted", "search space exhausted";
    FirstFailures: "first-failures", "first evaluations all failed";
    WorkersLost: "workers-lost", "workers lost";
}

impl StopReason {
    /// Whether the search is complete as far as its settings go. Otherwise it was cut short, and can be
    /// resumed with the same settings.
    pub fn is_complete(self) -> bool {
        matches!(
            self,
            StopReason::Evaluations
                | StopReason::Target
                | StopReason::NoImprovement
                | StopReason::Exhausted
        )
    }
}

impl FromStr for StopReason {
    type Err = Error;

    /// Reads a [name](StopReason::name), or one that earlier versions wrote.
    fn from_str(name: &str) -> Result<Self> {
        let name = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(name);
        StopReason::deserialize(name)
            .map_err(|error| Error::setting(format!("stop reason: {error}")))
    }
}

/// When a session stops by itself. Without a rule it goes on until the space is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct StopRules {
    /// After this many evaluations.
    pub evaluations: Option<u64>,
    /// When this much time has passed; evaluations under way are waited for.
    pub time: Option<Duration>,
    /// When the best value is at least as good as this, in the user's sense. Where the objective is
    /// noisy, or may be as far as the algorithm knows, the best value must be the mean of
    /// [`NOISY_TARGET_EVALUATIONS`](StopRules::NOISY_TARGET_EVALUATIONS), so that a lucky value does not
    /// end the run.
    pub target: Option<f64>,
    /// After this many evaluations in which the best value has not improved.
    pub patience: Option<u64>,
    /// With patience: the best value has improved only once it is better by at least this than when it
    /// last counted as improved, so that small steps count once they add up to it. The first value and a
    /// smaller violation always count.
    pub patience_tolerance: f64,
}

impl StopRules {
    /// How many evaluations the best value of an objective that is known to be noisy must be the mean
    /// of, before it counts as reaching the target.
    ///
    /// Among hundreds of points even a mean of 3 is lucky now and then. Measured on a noisy sphere with a
    /// target one standard deviation of the noise below the optimum, 60 runs of 2000 evaluations in 4
    /// dimensions: 45 stopped with 1, 18 with 3, 6 with 5, 1 with 8. At targets that can be reached, 8
    /// stop after about a fifth more evaluations than 3.
    pub const NOISY_TARGET_EVALUATIONS: u64 = 8;

    /// The usual budget of a run without a limit: 100 evaluations per dimension, at least 1000.
    pub fn default_budget(dimension: usize) -> u64 {
        (100 * dimension as u64).max(1000)
    }

    /// These rules, with the [default budget](StopRules::default_budget) unless evaluations, time or
    /// patience are limited.
    pub fn limited(mut self, dimension: usize) -> Self {
        if self.evaluations.is_none() && self.time.is_none() && self.patience.is_none() {
            self.evaluations = Some(StopRules::default_budget(dimension));
        }
        self
    }

    /// The evaluations that an algorithm can plan with, if this many of the budget are start points.
    pub fn planned(&self, starts: usize) -> Option<u64> {
        Some(self.evaluations?.saturating_sub(starts as u64).max(1))
    }

    pub(super) fn check(&self) -> Result<()> {
        for (name, count) in [("budget", self.evaluations), ("patience", self.patience)] {
            ensure!(count != Some(0), setting, "the {name} is 0; it must be at least 1");
        }
        let is_nan = self.target.is_some_and(f64::is_nan);
        ensure!(!is_nan, setting, "the target is NaN; it must be a number");
        let tolerance = self.patience_tolerance;
        let is_tolerance = tolerance >= 0.0 && tolerance.is_finite();
        ensure!(
            is_tolerance,
            setting,
            "the patience tolerance is {tolerance}; it must be a finite number that is at least 0"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_so_are_those_of_earlier_versions() {
        for reason in StopReason::ALL {
            assert_eq!(reason.name().parse::<StopReason>().unwrap(), *reason);
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.name());
        }
        let old = ["cancelled", "limit", "callback", "workers"];
        let new = [
            StopReason::Interrupted,
            StopReason::Evaluations,
            StopReason::Observer,
            StopReason::WorkersLost,
        ];
        assert_eq!(old.map(|name| name.parse::<StopReason>().unwrap()), new);
        let error = "tired".parse::<StopReason>().unwrap_err().to_string();
        assert!(error.contains("`tired`") && error.contains("`no-improvement`"), "{error}");
    }
}
