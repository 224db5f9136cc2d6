//! `racecars theory --simulate`: the example in which the algorithm itself breaks the printed theorem.

use super::{TheoryCommand, figure_file, probability};
use crate::output::{print, print_json, table};
use crate::progress::ProgressDisplay;
use racecars_lab::theory::simulated::{EXAMPLES, SimulatedRow, SimulatedRuns, example};
use std::process::ExitCode;

/// The number of runs of each example.
const TRIALS: usize = 20_000;

pub(super) fn run(theory: &TheoryCommand) -> anyhow::Result<ExitCode> {
    let trials = theory.random.trials.unwrap_or(TRIALS) as u64;
    let progress = ProgressDisplay::new(trials * EXAMPLES.len() as u64);
    let mut rows: Vec<SimulatedRow> = Vec::new();
    let mut figure = None;
    for (place, settings) in EXAMPLES.into_iter().enumerate() {
        let before = place as u64 * trials;
        let runs = SimulatedRuns::new(example(settings), trials, theory.random.seed, |done| {
            progress.show(before + done, || "runs".into());
        })?;
        rows.extend(runs.rows()?);
        if place == 0
            && let Some(directory) = &theory.random.out
        {
            figure = Some(figure_file(directory, "theory-failure", &runs.figure()?)?);
        }
    }
    drop(progress);
    if theory.json {
        print_json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    print(format!(
        "Omega = [0,1], f = |x - 1/2|, hypotheses are regions; eta = 1, lambda = 0.99, r = 22; {trials} runs, \
         seed {}\n",
        theory.random.seed
    ))?;
    let headings = [
        "gamma",
        "rho",
        "target",
        "delta",
        "kappa",
        "version",
        "T",
        "F(T)",
        "simulated",
        "± s.e.",
        "tau first",
    ];
    let mut table = table(&headings, 0);
    for row in &rows {
        table.add_row([
            format!("{:.4}", row.gamma),
            row.rho.to_string(),
            format!("{:.0e}", row.target),
            row.delta.to_string(),
            row.kappa.to_string(),
            row.version.to_string(),
            row.queries.to_string(),
            probability(row.ideal),
            format!("{:.4}", row.failure),
            format!("{:.4}", row.standard_error),
            format!("{:.4}", row.tau),
        ]);
    }
    print(table)?;
    print(
        "\nF(T): a run that hits exactly as assumed. tau first: the region lost a part of the target before the \
         first hit.",
    )?;
    if let Some(file) = figure {
        print(format!("wrote        {}", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
