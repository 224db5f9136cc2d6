//! `racecars theory --measure`: measures a run and prints the checkpoints.

use super::TheoryCommand;
use crate::commands::at_least_one;
use crate::output::{print, print_json, short, table};
use crate::progress::ProgressDisplay;
use anyhow::Context;
use clap::Args;
use racecars_lab::theory::measured::figure;
use racecars_lab::theory::{BoundSetting, Bounds, Checkpoint, MeasuredRun, Measurement, Queries};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The arguments of --measure.
#[derive(Args)]
pub(crate) struct MeasureArguments {
    /// With --measure: the number of points to draw from the target
    #[arg(long, value_name = "K", default_value = "2000", requires = "measure",
        value_parser = at_least_one)]
    samples: usize,
}

/// The number of checkpoints printed.
const ROWS: usize = 12;

impl MeasureArguments {
    pub(super) fn run(&self, problem: &str, theory: &TheoryCommand) -> anyhow::Result<ExitCode> {
        let dim = theory.dim.unwrap_or(5);
        let measurement = Measurement {
            problem: problem.to_string(),
            dim,
            budget: theory.budget.evaluations(dim),
            gamma: theory.gamma.or(Some(0.95)),
            rho: theory.rho,
            lambda: theory.lambda,
            seed: theory.random.seed,
            epsilon: theory.epsilon.unwrap_or(1.0),
            samples: self.samples,
        };
        // Started at the first checkpoint: drawing the target's points is not part of the run.
        let mut progress = None;
        let measured = measurement.run(|done| {
            let progress = progress.get_or_insert_with(|| ProgressDisplay::new(measurement.budget));
            progress.show(done, || "evaluations".into());
        })?;
        drop(progress);
        let files = match &theory.random.out {
            Some(directory) => write(&measured, directory)?,
            None => Vec::new(),
        };
        if theory.json {
            print_json(&measured)?;
            return Ok(ExitCode::SUCCESS);
        }
        show(&measured, theory.lambda)?;
        for file in files {
            print(format!("wrote        {}", file.display()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn write(measured: &MeasuredRun, directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    let name = format!("theory-{}-n{}", measured.problem, measured.dim);
    let mut files = Vec::new();
    for (end, text) in [("csv", measured.csv()), ("svg", figure::svg(measured))] {
        let file = directory.join(format!("{name}.{end}"));
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        files.push(file);
    }
    Ok(files)
}

fn show(measured: &MeasuredRun, lambda: Option<f64>) -> anyhow::Result<()> {
    let MeasuredRun { problem, dim, gamma, rho, seed, .. } = measured;
    print(format!("{problem}, n = {dim}, gamma = {gamma}, rho = {}, seed {seed}\n", short(*rho)))?;
    let headings = [
        "evaluations",
        "gap",
        "shrinks",
        "region",
        "hypotheses",
        "eta",
        "eta range",
        "in region",
        "condition",
        "covered",
    ];
    let mut table = table(&headings, 0);
    let known = |x: Option<f64>| x.map_or("?".to_string(), |x| format!("{x:.3}"));
    let yes = |x: Option<bool>| x.map_or("?", |x| if x { "yes" } else { "no" }).to_string();
    let row = |look: &Checkpoint| {
        [
            look.evaluations.to_string(),
            short(look.gap),
            look.shrinks.to_string(),
            Queries::power_of_ten(look.region_log10),
            Queries::power_of_ten(look.hypothesis_log10),
            known(look.eta),
            format!("{} .. {}", known(look.eta_least), known(look.eta_most)),
            known(look.region_share),
            yes(look.condition),
            yes(look.covered),
        ]
    };
    let looks = &measured.checkpoints;
    let mut shown = None;
    for i in 1..=ROWS {
        let place = (i * looks.len()).div_ceil(ROWS).checked_sub(1);
        if let Some(look) = place.filter(|_| place != shown).and_then(|place| looks.get(place)) {
            table.add_row(row(look));
        }
        shown = place;
    }
    print(table)?;
    print("")?;
    print(format!("target       {}", target(measured)))?;
    let until = |until: Option<u64>| match until {
        None => "at every checkpoint".to_string(),
        Some(0) => "from the first checkpoint on not".to_string(),
        Some(until) => format!("until evaluation {until}"),
    };
    if looks.iter().all(|look| look.covered.is_some()) {
        print(format!("condition    holds {}", until(measured.condition_until())))?;
        print(format!("region       covers the target {}", until(measured.covered_until())))?;
    }
    let hit = match measured.first_hit {
        Some(first) => format!("evaluation {first}, {} in all", measured.hits),
        None => "none".to_string(),
    };
    print(format!("first hit    {hit}"))?;
    print(format!("theorem      {}", theorem(measured, lambda)?))
}

fn target(measured: &MeasuredRun) -> String {
    let MeasuredRun { target_points: points, target_draws: draws, .. } = measured;
    let from = if measured.target_framed {
        "a box that holds it"
    } else {
        "the whole domain, since no box that holds it is known"
    };
    match measured.target_log10 {
        None => format!("no sample hit it, in {draws} draws from {from}"),
        Some(log10) => {
            let measure = Queries::power_of_ten(log10);
            format!("{measure} of the space; {points} points of it in {draws} draws from {from}")
        }
    }
}

/// The theorem with the least eta measured before the first hit.
fn theorem(measured: &MeasuredRun, lambda: Option<f64>) -> anyhow::Result<String> {
    let usual = BoundSetting::default();
    let (Some(eta), Some(target)) = (measured.least_eta(), measured.target_log10) else {
        return Ok("eta is not known".to_string());
    };
    let bounds = Bounds::new(BoundSetting {
        eta,
        p: 1.0,
        lambda: lambda.unwrap_or(usual.lambda),
        gamma: measured.gamma,
        rho: measured.rho,
        dimension: measured.dim,
        training_size: measured.training_size,
        ln_target: target * std::f64::consts::LN_10,
        delta: usual.delta,
    })?;
    let theorem = bounds.theorem(None)?;
    Ok(format!(
        "with eta = {eta:.3}, the least mean before the first hit, up to {} shrinks: {} queries but for {} of \
         runs (SRACOS: {})",
        theorem.kappa(),
        theorem.queries_held(),
        short(usual.delta + theorem.exhausted()),
        bounds.sracos()
    ))
}
