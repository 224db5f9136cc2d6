//! `racecars check`: validates a study and runs one evaluation, verbosely.

use super::run::show_notes;
use super::study_arguments::StudyArguments;
use crate::interrupt::flag_on_interrupt;
use crate::output::print;
use clap::Args;
use racecars_study::process::Ending;
use racecars_study::{DryRun, Orphanage, Plan, Study, units};
use std::process::ExitCode;

/// Validate a study and run one evaluation, showing everything about it
///
/// Nothing is recorded. The exit code is 0 if the evaluation gave a value.
#[derive(Args)]
pub(crate) struct CheckCommand {
    #[command(flatten)]
    study: StudyArguments,
}

impl CheckCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let wanted = self.study.wanted()?;
        // The program has its own process group, so Ctrl-C reaches only this process, which stops it.
        let stop = flag_on_interrupt()?;
        let _orphanage = Orphanage::open();
        let (plan, dry_run) = Study::check(&wanted.folder, &wanted.settings, &wanted.base, &stop)?;
        show_notes(&plan);
        show(&plan, &dry_run)?;
        Ok(match dry_run.outcome.is_failure() {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        })
    }
}

fn show(plan: &Plan, dry_run: &DryRun) -> anyhow::Result<()> {
    let space = &plan.space;
    let points = match space.cardinality() {
        Some(points) => format!("{points} points"),
        None => "endless points".to_string(),
    };
    print(format!(
        "space        {} parameters, {points}; {} evaluations of {} with seed {}",
        space.dimension(),
        plan.budget,
        plan.algorithm,
        plan.seed
    ))?;
    if !plan.fixed.is_empty() {
        print(format!("fixed        {}", plan.fixed))?;
    }
    print(format!("command      {}", dry_run.command))?;
    if let Some(folder) = &dry_run.invocation.folder {
        print(format!("in           {}", folder.display()))?;
    }
    for (name, value) in &dry_run.invocation.environment {
        print(format!("variable     {name}={value}"))?;
    }
    if let Some(input) = &dry_run.invocation.input {
        print(format!("input        {}", input.trim_end()))?;
    }
    let ending = match &dry_run.finished.ending {
        Ending::Exit(code) => format!("exit code {code}"),
        Ending::Signal(signal) => format!("signal {signal}"),
        Ending::Timeout => "over the time limit".to_string(),
        Ending::Memory => "over the memory limit".to_string(),
        Ending::NotStarted(why) => format!("not started: {why}"),
        Ending::Stopped => "stopped".to_string(),
    };
    print(format!("ended        {ending} after {}", units::show(dry_run.finished.elapsed)))?;
    if dry_run.finished.is_paused {
        print(
            "paused       the run was paused; in a study whose value is the time it is run again",
        )?;
    }
    for (name, captured) in
        [("stdout", &dry_run.finished.stdout), ("stderr", &dry_run.finished.stderr)]
    {
        /// The number of lines shown of each stream.
        const SHOWN_LINES: usize = 20;
        let lines: Vec<&str> = captured.text.lines().collect();
        if captured.is_cut {
            print(format!(
                "{name:<12} ... longer than is kept; these are its last {} bytes",
                captured.text.len()
            ))?;
        }
        if lines.len() > SHOWN_LINES {
            print(format!("{name:<12} ... {} lines before", lines.len() - SHOWN_LINES))?;
        }
        for line in &lines[lines.len().saturating_sub(SHOWN_LINES)..] {
            print(format!("{name:<12} {line}"))?;
        }
    }
    print(format!("outcome      {}", dry_run.outcome))
}
