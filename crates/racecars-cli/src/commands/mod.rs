//! One file per command.

pub(crate) mod ask;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod export;
pub(crate) mod init;
#[cfg(feature = "lm")]
pub(crate) mod lm;
pub(crate) mod overhead;
pub(crate) mod paper;
pub(crate) mod problem;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod solve;
mod study_arguments;
mod study_folder;
pub(crate) mod tell;
pub(crate) mod theory;
pub(crate) mod watch;

use crate::interrupt::INTERRUPTED;
use crate::progress::ProgressDisplay;
use anyhow::bail;
use clap::Args;
use racecars::{Algorithm, Shrinking};
use racecars_lab::trials::TrialProgress;
use std::path::Path;
use std::process::ExitCode;

/// The settings of algorithms that commands share.
#[derive(Args)]
pub(crate) struct Tuning {
    /// RACE-CARS as in the paper, where the region adapts itself if neither this nor --rho is given:
    /// each shrink multiplies its width by this [default: 0.95]
    #[arg(long, value_name = "G")]
    gamma: Option<f64>,
    /// RACE-CARS as in the paper: the probability of a shrink at each step [default: 55 / budget]
    #[arg(long, value_name = "R")]
    rho: Option<f64>,
    /// The RACOS family: the probability to draw from the learned box rather than from the whole
    /// space [default: 0.99; 1 where the region adapts itself]
    #[arg(long, value_name = "L")]
    lambda: Option<f64>,
}

impl Tuning {
    /// The algorithm where none is named: the default, or the one whose settings are given.
    fn default_algorithm(&self) -> Algorithm {
        let is_given = self.gamma.is_some() || self.rho.is_some() || self.lambda.is_some();
        if is_given { Algorithm::race_cars() } else { Algorithm::default() }
    }

    /// Gives the settings to the algorithms that have them; it is an error if none has.
    fn apply(&self, algorithms: &mut [Algorithm]) -> anyhow::Result<()> {
        let shrinks = |algorithm: &Algorithm| matches!(algorithm, Algorithm::RaceCars(..));
        let learns = |algorithm: &Algorithm| {
            matches!(
                algorithm,
                Algorithm::RaceCars(..) | Algorithm::Sracos(_) | Algorithm::Racos(_)
            )
        };
        if (self.gamma.is_some() || self.rho.is_some()) && !algorithms.iter().any(shrinks) {
            bail!("--gamma and --rho are settings of race-cars, which is not among the algorithms");
        }
        if self.lambda.is_some() && !algorithms.iter().any(learns) {
            bail!(
                "--lambda is a setting of race-cars, sracos and racos; none is among the algorithms"
            );
        }
        for algorithm in algorithms {
            match algorithm {
                Algorithm::RaceCars(classification, shrinking) => {
                    *shrinking = Shrinking { gamma: self.gamma, rho: self.rho };
                    classification.exploitation = self.lambda;
                }
                Algorithm::Sracos(classification) | Algorithm::Racos(classification) => {
                    classification.exploitation = self.lambda;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// What a build without language models says about them.
#[cfg(not(feature = "lm"))]
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct LmMissing {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<String>,
}

#[cfg(not(feature = "lm"))]
impl LmMissing {
    pub(crate) fn run(self) -> anyhow::Result<std::process::ExitCode> {
        bail!(
            "this build has no language models, which take some minutes to compile: \
             cargo run --release --features lm -- lm ..."
        )
    }
}

/// The help of an argument that takes algorithms.
fn algorithms(what: &str) -> String {
    format!("{what}: {}", Algorithm::NAMES.join(", "))
}

/// How many jobs run at once: as many as given, or as there are cores.
fn cores(jobs: Option<usize>) -> usize {
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    jobs.unwrap_or_else(available)
}

/// Shows how far kept trials are; the steps of the display are percents.
fn show_step(progress: &ProgressDisplay, step: &TrialProgress<'_>) {
    progress.show((100.0 * step.share) as u64, || {
        let (trials, of, cell) = (step.trials, step.of, step.cell);
        let (algorithm, problem, dim) = (&cell.algorithm, &cell.problem, cell.dim);
        format!("% of the work, trial {trials} of {of}: {algorithm} on {problem} n={dim}")
    });
}

/// Says what an interrupt left, and gives the exit code.
fn say_interrupted(kept: usize, of: usize, out: &Path) -> ExitCode {
    let out = out.display();
    eprintln!("interrupted; {kept} of {of} trials are kept in {out}: the same command goes on");
    ExitCode::from(INTERRUPTED)
}

/// Reads a number of at least 1.
fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("not a whole number of at least 1".to_string()),
        Ok(number) => Ok(number),
    }
}
