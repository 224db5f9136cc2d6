//! `racecars overhead`: the cost of a step of an optimizer, and of a study.

use super::{algorithm_help, at_least_one, cores};
use crate::output::{print, print_json, short, table};
use crate::progress::ProgressDisplay;
use clap::Args;
use racecars::{Algorithm, Budget};
use racecars_lab::overhead::{self, Overhead as Measured, SpaceKind};
use racecars_lab::program;
use racecars_study::{Interrupt, Settings, Study};
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

/// Measure the cost of a step of an optimizer, next to its floor
///
/// A step is an ask and a tell in steady state, without the objective. Its floor, measured in the same
/// process, is copying a point, drawing the random numbers that a step needs and, where coordinates are
/// discrete, looking up and adding a key in the record of points seen. Spaces are reals, integers of 21 values,
/// bits, categories of 5 values, and a mixture of all four.
///
/// With --program: the overhead of `racecars run` for a program that ends at once, next to a bare loop that
/// starts the same program on as many threads. The two take turns.
#[derive(Args)]
pub(crate) struct OverheadCommand {
    /// The dimensions
    #[arg(
        long, value_name = "N,..", value_delimiter = ',', default_value = "50,500,5000,1000000",
        value_parser = at_least_one
    )]
    dim: Vec<usize>,
    #[arg(long, value_name = "A,..", value_delimiter = ',', default_value = "race-cars,sracos",
        help = algorithm_help("The algorithms"))]
    algorithm: Vec<Algorithm>,
    /// The spaces: reals, integers, bits, categories, mixed
    #[arg(
        long,
        value_name = "S,..",
        value_delimiter = ',',
        default_value = "reals,integers,bits,categories,mixed"
    )]
    space: Vec<SpaceKind>,
    /// Measure a study of this program instead
    #[arg(
        long, value_name = "PROGRAM", num_args = 0..=1, default_missing_value = "true",
        conflicts_with_all = ["dim", "algorithm", "space"]
    )]
    program: Option<String>,
    /// With --program: the number of parallel runs [default: the number of cores]
    #[arg(long, value_name = "J", requires = "program", value_parser = at_least_one)]
    jobs: Option<usize>,
    /// With --program: the number of runs of each kind
    #[arg(long, value_name = "K", requires = "program", default_value = "16000")]
    runs: u64,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct OverheadReport {
    results: Vec<Measured>,
}

impl OverheadCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(program) = &self.program {
            return self.run_program(program);
        }
        let count = self.dim.len() * self.algorithm.len() * self.space.len();
        let progress = ProgressDisplay::new(count as u64);
        let mut results = Vec::new();
        for algorithm in &self.algorithm {
            for &space in &self.space {
                for &dim in &self.dim {
                    let what = || format!("measuring {algorithm}, {space}, n={dim}");
                    progress.show(results.len() as u64, what);
                    results.push(overhead::measure(algorithm, space, dim)?);
                }
            }
        }
        drop(progress);
        if self.json {
            print_json(&OverheadReport { results })?;
            return Ok(ExitCode::SUCCESS);
        }
        let headings = [
            "algorithm",
            "space",
            "dim",
            "ns per step",
            "draws",
            "floor ns",
            "ratio",
            "to its members",
        ];
        let mut table = table(&headings, 2);
        for result in &results {
            table.add_row([
                result.algorithm.clone(),
                result.space.to_string(),
                result.dim.to_string(),
                short(result.ns_per_step),
                format!("{:.1}", result.draws),
                short(result.floor_ns),
                format!("{:.2}", result.ratio),
                result.members_ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")),
            ]);
        }
        print(table)?;
        Ok(ExitCode::SUCCESS)
    }

    fn run_program(&self, program: &str) -> anyhow::Result<ExitCode> {
        let folder = tempfile::tempdir()?;
        let jobs = cores(self.jobs);
        let mut studies = 0;
        let result = program::measure(program, jobs, self.runs, |evaluations| {
            studies += 1;
            run_study(program, jobs, evaluations, &folder.path().join(format!("study-{studies}")))
        })?;
        if self.json {
            print_json(&result)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut table = table(&["program", "jobs", "runs", "study/s", "bare loop/s", "share"], 1);
        table.add_row([
            result.program,
            result.jobs.to_string(),
            result.runs.to_string(),
            short(result.study_per_second),
            short(result.bare_per_second),
            format!("{:.1} %", 100.0 * result.share),
        ]);
        print(table)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Runs a study of the program in a new folder.
fn run_study(
    program: &str,
    jobs: usize,
    evaluations: u64,
    folder: &Path,
) -> racecars_study::Result<()> {
    let mut settings = Settings::parse("minimize = 'time'\n[parameters]\nx = '0:1'")?;
    settings.command = Some(vec![program.to_string(), "{x}".to_string()]);
    settings.jobs = Some(jobs);
    settings.budget = Some(Budget::Evaluations(evaluations));
    let mut study = Study::open(folder, &settings, Path::new("."))?;
    study.run(&Interrupt::new(), &mut |_| {})?;
    Ok(())
}
