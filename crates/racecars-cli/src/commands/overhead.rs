//! `racecars overhead`: what a step of an optimizer costs.

use super::{algorithms, at_least_one};
use crate::output::{print, print_json, short, table};
use crate::progress::Progress;
use clap::Args;
use racecars::Algorithm;
use racecars_lab::overhead::{self, Overhead as Measured};
use serde::Serialize;
use std::process::ExitCode;

/// Measure what a step of an optimizer costs, beside its floor
///
/// A step is an ask and a tell in steady state, without the objective. Its floor, measured in the same
/// process, is copying a point and drawing the random numbers that a step needs.
#[derive(Args)]
pub(crate) struct Overhead {
    /// The numbers of coordinates
    #[arg(
        long, value_name = "N,..", value_delimiter = ',', default_value = "50,500,5000,1000000",
        value_parser = at_least_one
    )]
    dim: Vec<usize>,
    #[arg(long, value_name = "A,..", value_delimiter = ',', default_value = "race-cars,sracos",
        help = algorithms("The algorithms"))]
    algorithm: Vec<Algorithm>,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    results: Vec<Measured>,
}

impl Overhead {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let progress = Progress::new((self.dim.len() * self.algorithm.len()) as u64);
        let mut results = Vec::new();
        for algorithm in &self.algorithm {
            for &dim in &self.dim {
                progress.show(results.len() as u64, || format!("measuring {algorithm} n={dim}"));
                results.push(overhead::measure(algorithm, dim)?);
            }
        }
        drop(progress);
        if self.json {
            print_json(&Report { results })?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut table = table(&["algorithm", "dim", "ns per step", "floor ns", "ratio"], 1);
        for result in &results {
            table.add_row([
                result.algorithm.clone(),
                result.dim.to_string(),
                short(result.ns_per_step),
                short(result.floor_ns),
                format!("{:.2}", result.ratio),
            ]);
        }
        print(table)?;
        Ok(ExitCode::SUCCESS)
    }
}
