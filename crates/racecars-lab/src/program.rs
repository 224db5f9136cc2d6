//! What a study adds to running a program: its rate beside that of a bare loop that starts the same
//! program on the same number of threads, measured in turns in one process.

use racecars_study::{Interrupt, Settings, Study};
use serde::Serialize;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// How often the two take turns, so that a busy moment of the machine strikes both.
const ROUNDS: u64 = 4;

/// The rates of a study and of a bare loop.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProgramOverhead {
    /// The program.
    pub program: String,
    /// How many ran at once.
    pub jobs: usize,
    /// How often each started it.
    pub runs: u64,
    /// Evaluations of the study per second.
    pub study_per_second: f64,
    /// Runs of the bare loop per second.
    pub bare_per_second: f64,
    /// The former divided by the latter.
    pub share: f64,
}

/// Measures `program`, which should end at once, over about `runs` runs of each kind. Studies are made
/// in `folder`.
pub fn measure(
    program: &str,
    jobs: usize,
    runs: u64,
    folder: &Path,
) -> racecars_study::Result<ProgramOverhead> {
    let count = (runs / ROUNDS).max(1);
    let (mut bare, mut study) = (0.0, 0.0);
    for round in 0..ROUNDS {
        bare += bare_loop(program, jobs, count)?;
        study += a_study(program, jobs, count, &folder.join(format!("round-{round}")))?;
    }
    let runs = count * ROUNDS;
    let (study_per_second, bare_per_second) = (runs as f64 / study, runs as f64 / bare);
    Ok(ProgramOverhead {
        program: program.to_string(),
        jobs,
        runs,
        study_per_second,
        bare_per_second,
        share: study_per_second / bare_per_second,
    })
}

/// The seconds that a loop takes which starts the program and waits for it, and does nothing else.
fn bare_loop(program: &str, jobs: usize, count: u64) -> racecars_study::Result<f64> {
    let next = AtomicU64::new(0);
    let failures = AtomicU64::new(0);
    let start = Instant::now();
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
    let seconds = start.elapsed().as_secs_f64();
    match failures.into_inner() {
        0 => Ok(seconds),
        // The study says why.
        _ => {
            a_study(program, 1, 1, &std::env::temp_dir().join("racecars-overhead")).map(|_| seconds)
        }
    }
}

/// The seconds that a study takes.
fn a_study(program: &str, jobs: usize, count: u64, folder: &Path) -> racecars_study::Result<f64> {
    let mut settings = Settings::parse("minimize = 'time'\n[parameters]\nx = '0:1'")?;
    settings.command = vec![program.to_string(), "{x}".to_string()];
    settings.jobs = Some(jobs);
    settings.budget = Some(racecars_study::Budget::Evaluations(count));
    let start = Instant::now();
    let mut study = Study::open(folder, &settings, Path::new("."))?;
    study.run(&Interrupt::new(), &mut |_| {})?;
    Ok(start.elapsed().as_secs_f64())
}
