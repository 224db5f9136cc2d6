//! One file per command.

pub(crate) mod algorithms;
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
#[cfg(feature = "net")]
pub(crate) mod prompt;
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
use clap::Args;
use racecars::Algorithm;
use racecars_lab::trials::TrialProgress;
use racecars_study::AlgorithmSetting;
use std::path::Path;
use std::process::ExitCode;

/// The algorithm settings that several commands have.
#[derive(Args)]
pub(crate) struct Tuning {
    /// A setting of the algorithm; `racecars algorithms` lists them. May be given several times
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<AlgorithmSetting>,
    /// Short for --set gamma=G: RACE-CARS as in the paper, where each shrink multiplies the region's
    /// width by this [default: the region adapts itself; 0.95 if --rho is given]
    #[arg(long, value_name = "G")]
    gamma: Option<f64>,
    /// Short for --set rho=R: RACE-CARS as in the paper, with this probability of a shrink at each step
    /// [default: the region adapts itself; 55 / budget if --gamma is given]
    #[arg(long, value_name = "R")]
    rho: Option<f64>,
    /// Short for --set exploitation=L, of race-cars, sracos and racos: the probability to draw from the
    /// learned box rather than from the whole space [default: 0.99; 1 where the region adapts itself]
    #[arg(long, value_name = "L")]
    lambda: Option<f64>,
}

impl Tuning {
    /// The settings given, by name.
    fn settings(&self) -> Vec<(String, String)> {
        let short = [("gamma", self.gamma), ("rho", self.rho), ("exploitation", self.lambda)];
        let short = short.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let short = short.map(|(name, value)| (name.to_string(), value.to_string()));
        let set =
            self.set.iter().map(|AlgorithmSetting { name, text }| (name.clone(), text.clone()));
        set.chain(short).collect()
    }

    /// The algorithm with the settings given.
    fn algorithm(&self, named: Option<Algorithm>) -> anyhow::Result<Algorithm> {
        Ok(Algorithm::configured(named, self.settings())?)
    }

    /// Gives each setting to the algorithms that have it; it is an error if none has.
    fn apply(&self, algorithms: &mut [Algorithm]) -> anyhow::Result<()> {
        for (name, text) in self.settings() {
            let mut is_set = false;
            for algorithm in algorithms.iter_mut().filter(|other| other.has_setting(&name)) {
                algorithm.set(&name, &text)?;
                is_set = true;
            }
            if let ([first, ..], false) = (&mut *algorithms, is_set) {
                // Of one it says what it has; of several, any will do.
                first.set(&name, &text)?;
            }
        }
        Ok(())
    }
}

/// A command that this build does not have: an error that says how to build with it.
#[cfg(not(all(feature = "lm", feature = "net")))]
#[derive(Args)]
pub(crate) struct Missing {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<String>,
}

#[cfg(not(all(feature = "lm", feature = "net")))]
impl Missing {
    /// `what` is missing without `feature`; `command` needs it.
    pub(crate) fn run(self, what: &str, feature: &str, command: &str) -> anyhow::Result<ExitCode> {
        anyhow::bail!(
            "this build has no {what}: cargo run --release --features {feature} -- {command} ..."
        )
    }
}

/// The help of an argument that takes algorithms.
fn algorithm_help(what: &str) -> String {
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
