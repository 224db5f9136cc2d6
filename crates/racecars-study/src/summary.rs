//! The result of a run of a study, and `best.json`.

use crate::error::{Error, ErrorKind, Result};
use crate::outcome::Direction;
use racecars::{Portfolio, StopReason};
use racecars_figures::files;
use serde::Serialize;
use std::path::Path;

/// The result of a run; the counts are over all runs of the study.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Why the run ended.
    pub stop: StopReason,
    /// The evaluations done.
    pub evaluations: u64,
    /// The evaluations planned.
    pub budget: u64,
    /// The evaluations that failed.
    pub failures: u64,
    /// The points that were infeasible.
    pub infeasible: u64,
    /// The runs of the program that were needed because others failed.
    pub retries: u64,
    /// The evaluations of leading points at the end.
    pub repeats: u64,
    /// How long the run took.
    pub seconds: f64,
    /// Which way is better.
    pub direction: Direction,
    /// The algorithm.
    pub algorithm: String,
    /// The seed.
    pub seed: u64,
    /// The best trial seen; the least infeasible one while none is feasible.
    pub best: Option<Chosen>,
    /// The trial that is best by fresh values, where leading points were evaluated again; its value is
    /// what these come to.
    pub recommended: Option<Chosen>,
    /// The best of the points that are known without an evaluation here, if no trial is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_known: Option<BestKnown>,
    /// What each member of a portfolio did, and why, where the algorithm is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub portfolio: Option<Portfolio>,
}

/// A point that is known without an evaluation here, and is better than all trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BestKnown {
    /// Its value.
    pub value: f64,
    /// The values of the parameters, by name.
    pub params: serde_json::Value,
}

/// A trial worth showing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chosen {
    /// The trial.
    pub trial: u64,
    /// Its value.
    pub value: Option<f64>,
    /// The number of evaluations that the value is the mean of (the median, with `aggregate = median`).
    pub evaluations: u64,
    /// By how much it violates constraints, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infeasible: Option<f64>,
    /// The values of the parameters, by name.
    pub params: serde_json::Value,
    /// The program with these values, as a line for a shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl Summary {
    /// Writes `best.json`, whole or not at all.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join("best.json");
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| Error::system("write", &path, error))?;
        files::write(&path, &(text + "\n")).map_err(|error| Error::new(ErrorKind::System, error))
    }
}
