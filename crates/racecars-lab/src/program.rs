//! The overhead of a study: its rate of evaluations next to that of a bare loop that starts the same
//! program on the same number of threads. The two take turns in one process.

use serde::Serialize;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// How many turns each has, so that a busy moment of the machine affects both.
const ROUNDS: u64 = 4;

/// The rates of a study and of a bare loop.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProgramOverhead {
    /// The program.
    pub program: String,
    /// How many runs of the program were in parallel.
    pub jobs: usize,
    /// How many times each of the two started the program.
    pub runs: u64,
    /// Evaluations of the study per second.
    pub study_per_second: f64,
    /// Runs of the bare loop per second.
    pub bare_per_second: f64,
    /// The first divided by the second.
    pub share: f64,
}

/// Measures `program`, which should end at once, over about `runs` runs in a bare loop and as many in a
/// study. `study` runs a new study of the program with the given number of evaluations.
pub fn measure<E>(
    program: &str,
    jobs: usize,
    runs: u64,
    mut study: impl FnMut(u64) -> Result<(), E>,
) -> Result<ProgramOverhead, E> {
    let count = (runs / ROUNDS).max(1);
    let (mut bare_seconds, mut study_seconds) = (0.0, 0.0);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let failures = bare_loop(program, jobs, count);
        bare_seconds += start.elapsed().as_secs_f64();
        if failures > 0 {
            // The study's error says why.
            study(1)?;
        }
        let start = Instant::now();
        study(count)?;
        study_seconds += start.elapsed().as_secs_f64();
    }
    let runs = count * ROUNDS;
    let (study_per_second, bare_per_second) =
        (runs as f64 / study_seconds, runs as f64 / bare_seconds);
    Ok(ProgramOverhead {
        program: program.to_string(),
        jobs,
        runs,
        study_per_second,
        bare_per_second,
        share: study_per_second / bare_per_second,
    })
}

/// Starts the program `count` times and waits for it, on `jobs` threads. Returns the number of failures.
fn bare_loop(program: &str, jobs: usize, count: u64) -> u64 {
    let next = AtomicU64::new(0);
    let failures = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while next.fetch_add(1, Ordering::Relaxed) < count {
                    let status = Command::new(program)
                        .arg("0.5")
                        .stdin(Stdio::null())
                        .stdout(Stdio::null())
                        .stderr(Stdio::null())
                        .status();
                    if !status.is_ok_and(|status| status.success()) {
                        failures.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    failures.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_start_the_program_equally_often() {
        let mut evaluations = 0;
        let overhead = measure("true", 2, 10, |count| {
            evaluations += count;
            Ok::<(), String>(())
        })
        .unwrap();
        assert_eq!((overhead.runs, evaluations), (8, 8));
        assert!(overhead.bare_per_second > 0.0);
    }

    #[test]
    fn the_study_says_why_a_program_fails() {
        let error = measure("false", 1, 4, |_| Err("exit code 1")).unwrap_err();
        assert_eq!(error, "exit code 1");
    }
}
