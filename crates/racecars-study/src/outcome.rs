//! What came of running the program once for a trial, as the journal writes it.

use crate::process::Ending;
use racecars::Outcome;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Smaller values are better.
    #[default]
    Minimize,
    /// Larger values are better.
    Maximize,
}

impl Direction {
    /// A number between the user's sense and the optimizers', who minimize.
    pub fn turn(self, value: f64) -> f64 {
        match self {
            Direction::Minimize => value,
            Direction::Maximize => -value,
        }
    }
}

/// The kinds of failure, as the journal spells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Failure {
    /// An exit code other than 0.
    Exit,
    /// A signal.
    Signal,
    /// Over the time limit.
    Timeout,
    /// No value found in what it printed.
    Unparseable,
    /// A value that is not a finite number.
    Nan,
    /// Over the memory limit.
    Memory,
    /// It could not be started.
    NotStarted,
    /// Told to be a failure by who evaluated it (`racecars tell`).
    Reported,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::Exit => "exit code",
            Failure::Signal => "signal",
            Failure::Timeout => "timeout",
            Failure::Unparseable => "unparseable output",
            Failure::Nan => "not a finite number",
            Failure::Memory => "memory limit",
            Failure::NotStarted => "not started",
            Failure::Reported => "reported",
        })
    }
}

/// The outcome of a trial, in the user's sense.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Verdict {
    /// A constraint is violated.
    Infeasible {
        /// By how much, over all constraints.
        infeasible: f64,
        /// The value all the same, if there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<f64>,
    },
    /// It failed.
    Failed {
        /// How.
        failed: Failure,
        /// In words.
        detail: String,
    },
    /// A value.
    Value {
        /// The value, finite.
        value: f64,
    },
}

impl Verdict {
    /// A failure.
    pub fn failed(failed: Failure, detail: impl fmt::Display) -> Verdict {
        Verdict::Failed { failed, detail: detail.to_string() }
    }

    /// A value; one that is not finite is a failure.
    pub fn value(value: f64) -> Verdict {
        if value.is_finite() {
            Verdict::Value { value }
        } else {
            Verdict::failed(Failure::Nan, format!("the value is {value}, not a finite number"))
        }
    }

    /// Why a run gave no value, if it ended badly.
    pub(crate) fn of_ending(ending: &Ending) -> Option<Verdict> {
        Some(match ending {
            Ending::Exit(0) | Ending::Stopped => return None,
            Ending::Exit(code) => Verdict::failed(Failure::Exit, format!("exit code {code}")),
            Ending::Signal(signal) => {
                Verdict::failed(Failure::Signal, format!("signal {}", signal_name(*signal)))
            }
            Ending::Timeout => Verdict::failed(Failure::Timeout, "over the time limit"),
            Ending::Memory => Verdict::failed(Failure::Memory, "over the memory limit"),
            Ending::NotStarted(why) => Verdict::failed(Failure::NotStarted, why),
        })
    }

    /// The value of a feasible trial.
    pub fn feasible_value(&self) -> Option<f64> {
        match self {
            Verdict::Value { value } => Some(*value),
            _ => None,
        }
    }

    /// Whether it failed.
    pub fn is_failure(&self) -> bool {
        matches!(self, Verdict::Failed { .. })
    }

    /// The outcome as the optimizer learns it.
    pub fn outcome(&self, direction: Direction) -> Outcome {
        match self {
            Verdict::Value { value } => Outcome::from(direction.turn(*value)),
            Verdict::Infeasible { infeasible, .. } => Outcome::infeasible(*infeasible),
            Verdict::Failed { failed: Failure::Timeout, .. } => Outcome::TimedOut,
            Verdict::Failed { detail, .. } => Outcome::failed(detail),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Value { value } => write!(f, "{value}"),
            Verdict::Infeasible { infeasible, .. } => write!(f, "infeasible by {infeasible}"),
            Verdict::Failed { detail, .. } => write!(f, "failed: {detail}"),
        }
    }
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        _ => return signal.to_string(),
    };
    format!("{signal} ({name})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_spells_outcomes_as_agreed() {
        let spelled = |verdict: &Verdict| serde_json::to_string(verdict).unwrap();
        let cases = [
            (Verdict::value(1.25), r#"{"value":1.25}"#),
            (
                Verdict::Infeasible { infeasible: 0.5, value: Some(1.25) },
                r#"{"infeasible":0.5,"value":1.25}"#,
            ),
            (Verdict::Infeasible { infeasible: 0.5, value: None }, r#"{"infeasible":0.5}"#),
            (
                Verdict::failed(Failure::NotStarted, "gone"),
                r#"{"failed":"not-started","detail":"gone"}"#,
            ),
        ];
        for (verdict, text) in cases {
            assert_eq!(spelled(&verdict), text);
            assert_eq!(serde_json::from_str::<Verdict>(text).unwrap(), verdict);
        }
        assert!(Verdict::value(f64::NAN).is_failure());
    }
}
