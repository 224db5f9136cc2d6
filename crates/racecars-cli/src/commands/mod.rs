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

/// The algorithm settings that several commands have.
#[derive(Args)]
pub(crate) struct Tuning {
    /// RACE-CARS with the paper's fixed schedule: each shrink multiplies the region's width by this
    /// [default: 0.95]. Without --gamma and --rho the region adapts itself
    #[arg(long, value_name = "G")]
    gamma: Option<f64>,
    /// RACE-CARS with the paper's fixed schedule: the probability of a shrink at each step
    /// [default: 55 / budget]
    #[arg(long, value_name = "R")]
    rho: Option<f64>,
    /// RACE-CARS, SRACOS, RACOS: the probability of a draw from the learned box rather than from the whole
    /// space [default: 0.99; 1 if the region adapts itself]
    #[arg(long, value_name = "L")]
    lambda: Option<f64>,
}

impl Tuning {
    /// The algorithm if none is named: the default, or RACE-CARS if one of its settings is given.
    fn default_algorithm(&self) -> Algorithm {
        let is_given = self.gamma.is_some() || self.rho.is_some() || self.lambda.is_some();
        if is_given { Algorithm::race_cars() } else { Algorithm::default() }
    }

    /// Applies the settings to the algorithms that have them; it is an error if none has.
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

/// `racecars lm` in a build without language models: an error that says how to build with them.
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

/// The help of an argument that takes algorithm names.
fn algorithms(what: &str) -> String {
    format!("{what}: {}", Algorithm::NAMES.join(", "))
}

/// The number of parallel jobs: the given one, or the number of cores.
fn cores(jobs: Option<usize>) -> usize {
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    jobs.unwrap_or_else(available)
}

/// Shows the progress of an experiment, in percent.
fn show_step(progress: &ProgressDisplay, step: &TrialProgress<'_>) {
    progress.show((100.0 * step.share) as u64, || {
        let (trials, of, cell) = (step.trials, step.of, step.cell);
        let (algorithm, problem, dim) = (&cell.algorithm, &cell.problem, cell.dim);
        format!("% of the work, trial {trials} of {of}: {algorithm} on {problem} n={dim}")
    });
}

/// Reports an interrupted experiment, and returns the exit code.
fn say_interrupted(kept: usize, of: usize, out: &Path) -> ExitCode {
    let out = out.display();
    eprintln!(
        "interrupted: {kept} of {of} trials are saved in {out}; run the same command again to resume"
    );
    ExitCode::from(INTERRUPTED)
}

/// Parses an integer of at least 1.
fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("not a whole number of at least 1".to_string()),
        Ok(number) => Ok(number),
    }
}
