//! The outcome of running the program once, in the core's words.

use crate::process::Ending;
pub(crate) use racecars::{Direction, FailureKind, Outcome};

/// The outcome of a run that ended badly; `None` if it did not, or was stopped.
pub(crate) fn of_ending(ending: &Ending) -> Option<Outcome> {
    Some(match ending {
        Ending::Exit(0) | Ending::Stopped => return None,
        Ending::Exit(code) => Outcome::failure(FailureKind::Exit, format!("exit code {code}")),
        Ending::Signal(signal) => {
            Outcome::failure(FailureKind::Signal, format!("signal {}", signal_name(*signal)))
        }
        Ending::Timeout => Outcome::failure(FailureKind::Timeout, "over the time limit"),
        Ending::Memory => Outcome::failure(FailureKind::Memory, "over the memory limit"),
        Ending::NotStarted(why) => Outcome::failure(FailureKind::NotStarted, why),
    })
}

/// The value and the violation of an outcome, where it has them.
pub(crate) fn value_and_violation(outcome: &Outcome) -> (Option<f64>, Option<f64>) {
    match outcome {
        Outcome::Value(value) => (Some(*value), None),
        Outcome::Infeasible { violation, value } => (*value, Some(*violation)),
        Outcome::Measured(measured) => (measured.value, outcome.violation()),
        Outcome::Failed(_) => (None, None),
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
