//! `racecars run`: optimize a program.

use super::study_arguments::StudyArguments;
use crate::interrupt::{INTERRUPTED, request_on_interrupt};
use crate::live::Live;
use crate::output::{portfolio_table, print, print_json, warn};
use clap::Args;
use racecars::Value;
use racecars_study::{
    Aggregate, Chosen, Direction, Orphanage, Plan, StopReason, Study, Summary, report, units,
};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Optimize a program
///
/// The program gets its parameters as {name} in its arguments, by --env, --stdin or --template, and by
/// default prints its value as the last number of its output. Everything is in the study's folder: run
/// the same command again to resume after an interruption, or `racecars run --study DIR`.
///
/// Ctrl-C once: finish what runs, then stop; twice: stop now.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(super) study: StudyArguments,
    /// Begin afresh; the journal of the study so far is moved aside
    #[arg(long)]
    restart: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  racecars run -p x=0:10 -p k=1..64 -p lr=1e-5:1e-1:log -p mode=a,b,c \\
    --budget 200 --jobs 4 --timeout 60s -- ./sim --x {x} --k {k} --lr {lr} --mode {mode}
  racecars run -p level=1..19 -p window=10..27 --minimize time \\
    -- zstd -qf -{level} --long={window} big
  racecars run -p x=0:10 --algorithm cma-es --set population=40 --start x=3 -- ./sim {x}
  racecars run -p x=0:20 -p fast=bool -p data=big.csv --from OLD --assume fast=false --study NEW \
    -- ./sim {x} {fast?--fast} {data} --gpu {worker}
  racecars run study.toml --budget 1000        a study file, and more evaluations than it says
  racecars run --study racecars-study          resume the study in this folder";

impl Run {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut wanted = self.study.wanted()?;
        if self.restart
            && let Some(aside) = Study::restart(&wanted.folder, &wanted.settings, &wanted.base)?
        {
            warn(format!("the journal so far is now {}", aside.display()));
            // A study may begin afresh with what it knows.
            for from in wanted.settings.from.iter_mut().flatten() {
                if is_same_folder(from, &wanted.folder) {
                    from.clone_from(&aside);
                }
            }
        }
        let interrupt = request_on_interrupt()?;
        let mut study = Study::open(&wanted.folder, &wanted.settings, &wanted.base)?;
        let counts = study.totals();
        if study.is_resumed() {
            let waiting = counts.asked - counts.told;
            eprintln!(
                "going on with {} evaluations done of {}{}",
                counts.told,
                study.plan().budget,
                if waiting > 0 { format!(", {waiting} to run again") } else { String::new() }
            );
        }
        let plan = study.plan();
        show_notes(plan);
        if plan.deterministic && plan.jobs as u64 > plan.lookahead {
            eprintln!(
                "only {} of {} jobs can be busy: with --deterministic the lookahead is the most",
                plan.lookahead, plan.jobs
            );
        }
        if let Some(planned) = planned_runs(plan) {
            eprintln!("{planned}");
        }
        let _orphanage = Orphanage::open();
        let mut live = Live::new();
        let summary = study.run(&interrupt, &mut |status| live.show(status));
        live.finish();
        let summary = summary?;
        let page = study.folder().join("report.html");
        // The result does not depend on a page about it.
        let reported = report::write(study.folder(), &page);
        if self.json {
            print_json(&summary)?;
        } else {
            show(&summary, &study)?;
        }
        match reported {
            Err(error) => warn(format!("warning: no report: {error}")),
            Ok(()) if self.json => {}
            Ok(()) => print(format!("report       {}", page.display()))?,
        }
        Ok(match summary.stop {
            StopReason::Interrupted => ExitCode::from(INTERRUPTED),
            _ => ExitCode::SUCCESS,
        })
    }
}

/// What the user should know of how the plan came about.
pub(super) fn show_notes(plan: &Plan) {
    for note in &plan.notes {
        eprintln!("{note}");
    }
}

/// Whether both are one folder, however they are written.
fn is_same_folder(a: &Path, b: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().ok();
    whole(a).is_some_and(|a| Some(a) == whole(b))
}

/// How often the program is to run, where that is not the budget.
fn planned_runs(plan: &Plan) -> Option<String> {
    let Plan { budget, repeat, confirm, .. } = *plan;
    let leaders = (plan.leaders as u64).min(budget);
    let runs = |points: u64, times: u32| points.saturating_mul(times.into());
    let all = runs(budget, repeat).saturating_add(runs(leaders, confirm));
    let at_the_end = match confirm {
        0 => String::new(),
        times => format!(", and {leaders} leading points x {times} at the end"),
    };
    (all != budget)
        .then(|| format!("up to {all} program runs: {budget} points x {repeat}{at_the_end}"))
}

fn show(summary: &Summary, study: &Study) -> anyhow::Result<()> {
    let Summary { evaluations, budget, failures, infeasible, repeats, .. } = summary;
    let best = if summary.recommended.is_some() { "best seen" } else { "best" };
    match (&summary.best, &summary.recommended) {
        (None, _) => print("no evaluation gave a value")?,
        (Some(chosen), recommended) => {
            print(line(best, chosen, summary.direction))?;
            if let Some(recommended) = recommended {
                let value = line("recommended", recommended, summary.direction);
                print(format!("{value} ({})", basis(recommended, study.plan())))?;
            }
            let last = recommended.as_ref().unwrap_or(chosen);
            print(format!("at           {}", parameters(last)))?;
            if let Some(command) = &last.command {
                print(format!("command      {command}"))?;
            }
        }
    }
    if let Some(known) = &summary.best_known {
        print(format!("best known   {}, told and not evaluated", Value::Real(known.value)))?;
        print(format!("at           {}", known.params))?;
    }
    let mut counts = format!("evaluations  {evaluations} of {budget}");
    for (count, what) in [(failures, "failed"), (infeasible, "infeasible"), (repeats, "confirming")]
    {
        if *count > 0 {
            counts += &format!(", {count} {what}");
        }
    }
    print(counts)?;
    if let Some(portfolio) = &summary.portfolio {
        print(portfolio_table(portfolio))?;
    }
    print(format!("time         {}", units::show(Duration::from_secs_f64(summary.seconds))))?;
    let how_to_resume =
        if summary.stop.is_complete() { "" } else { "; run the same command again to resume" };
    print(format!("stopped      {}{how_to_resume}", summary.stop))?;
    print(format!("in           {}", study.folder().display()))
}

/// How many evaluations are behind a recommended value.
fn basis(recommended: &Chosen, plan: &Plan) -> String {
    // Algorithms that know of noise take means.
    let aggregate = if plan.confirm > 0 { plan.aggregate } else { Aggregate::Mean };
    match recommended.evaluations {
        1 => "a single evaluation of a noisy program".to_string(),
        count => format!("the {aggregate} of {count} evaluations"),
    }
}

fn line(name: &str, chosen: &Chosen, direction: Direction) -> String {
    let extreme = match direction {
        Direction::Minimize => "",
        Direction::Maximize => " (largest)",
    };
    match (chosen.value, chosen.infeasible) {
        (Some(value), None) => {
            format!("{name:<12} {}{extreme} in trial {}", Value::Real(value), chosen.trial)
        }
        (_, Some(by)) => format!("{name:<12} infeasible by {by} in trial {}", chosen.trial),
        (None, None) => format!("{name:<12} none"),
    }
}

fn parameters(chosen: &Chosen) -> String {
    let Some(map) = chosen.params.as_object() else { return chosen.params.to_string() };
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let all: Vec<String> =
        map.iter().map(|(name, value)| format!("{name}={}", text(value))).collect();
    all.join(" ")
}
