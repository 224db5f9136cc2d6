//! The settings of a tuning: complete, validated, and the first line of its journal.

use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::projection::ProjectionSettings;
use crate::task::{Position, Task};
use racecars::{Algorithm, Optimizer, Space};
use serde::{Deserialize, Serialize};

/// Everything that determines a tuning, except the model and the data, which the journal names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuneSettings {
    /// The task.
    pub task: Task,
    /// The number of examples of each label.
    pub shots: usize,
    /// The seed of the split, the projection and the search.
    pub seed: u64,
    /// The algorithm, with its settings: `race-cars(gamma=0.7, rho=0.002)`.
    pub algorithm: String,
    /// The number of searched coordinates, d.
    pub dim: usize,
    /// The coordinates are within ± this.
    pub bound: f64,
    /// The number of tokens of the prompt.
    pub prompt_tokens: usize,
    /// The number of calls: prompts evaluated on the training texts.
    pub budget: u64,
    /// The number of candidates in a request.
    pub batch: usize,
    /// The best prompt is evaluated on the development texts every this many calls.
    pub look_every: u64,
    /// The loss.
    pub loss: Loss,
    /// Whether label shifts are fitted for every prompt on the training texts, and the loss is that of the
    /// shifted logits.
    #[serde(default, skip_serializing_if = "is_false")]
    pub calibrate: bool,
    /// The mean of this many best prompts on the training texts is what is evaluated on the development texts, and
    /// kept.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub average: usize,
    /// The position of the prompt.
    pub position: Position,
    /// The random projection.
    pub projection: ProjectionSettings,
    /// The text whose embedding is p0; empty for zero.
    pub base: String,
}

fn one() -> usize {
    1
}

fn is_one(count: &usize) -> bool {
    *count == 1
}

fn is_false(is_true: &bool) -> bool {
    !is_true
}

impl TuneSettings {
    /// The algorithm with its settings.
    pub fn algorithm(&self) -> Result<Algorithm> {
        Ok(self.algorithm.parse()?)
    }

    /// Checks all that needs neither the model nor the data.
    pub fn check(&self) -> Result<()> {
        for (name, count, most) in [
            ("dim", self.dim as u64, 1 << 20),
            ("prompt-tokens", self.prompt_tokens as u64, 1 << 12),
            ("budget", self.budget, 1 << 40),
            ("batch", self.batch as u64, 1 << 10),
            ("shots", self.shots as u64, 1 << 20),
            ("average", self.average as u64, 1 << 10),
            ("look-every", self.look_every, 1 << 40),
        ] {
            if count == 0 || count > most {
                return Err(Error::input(format!("{name} {count} is not between 1 and {most}")));
            }
        }
        if !(self.bound.is_finite() && self.bound > 0.0) {
            return Err(Error::input(format!("bound {} is not a positive number", self.bound)));
        }
        self.projection.check()?;
        self.optimizer(self.budget)?;
        Ok(())
    }

    /// The optimizer, planning with `budget` calls.
    pub(super) fn optimizer(&self, budget: u64) -> Result<Box<dyn Optimizer>> {
        let space = Space::cube(self.dim, -self.bound, self.bound)?;
        Ok(self.algorithm()?.optimizer(&space, Some(budget), self.seed)?)
    }

    /// The first setting that differs from `other`, the budget excepted; `None` if they are settings of the
    /// same tuning.
    pub(super) fn difference(&self, other: &TuneSettings) -> Option<String> {
        let value = |settings: &TuneSettings| serde_json::to_value(settings).unwrap_or_default();
        let (mine, theirs) = (value(self), value(other));
        let (mine, theirs) = (mine.as_object()?, theirs.as_object()?);
        let names = mine.keys().chain(theirs.keys().filter(|name| !mine.contains_key(*name)));
        (names.filter(|name| *name != "budget"))
            .find(|name| mine.get(*name) != theirs.get(*name))
            .map(|name| {
                let shown = |value: Option<&serde_json::Value>| {
                    value.map_or("not given".to_string(), ToString::to_string)
                };
                let (now, then) = (shown(mine.get(name)), shown(theirs.get(name)));
                format!("{name} was {then}, and is {now} now")
            })
    }
}
