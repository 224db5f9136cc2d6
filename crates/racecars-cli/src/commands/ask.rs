//! `racecars ask`: proposes points of a study for evaluation elsewhere.

use super::run::show_notes;
use super::study_arguments::StudyArguments;
use crate::output::print_json;
use clap::Args;
use racecars_study::Study;
use std::process::ExitCode;

/// Propose points of a study, for evaluation elsewhere
///
/// Prints a JSON list of {"trial": 0, "params": {...}, "seed": 1, "command": "..."}. The list is empty when
/// the budget or the space is exhausted, or with --deterministic while as many points as the lookahead
/// are pending. A command is not required: without one there is no "command", and "seed" is the trial's
/// number; with one it is drawn from --seed and the trial's number, as {seed} is in `racecars run`; {worker} is 0. Report
/// the outcomes with `racecars tell`.
#[derive(Args)]
pub(crate) struct AskCommand {
    #[command(flatten)]
    study: StudyArguments,
    /// The number of points
    #[arg(short = 'n', long, value_name = "N", default_value = "1")]
    count: usize,
    /// Propose nothing; print the pending points, whose outcomes have not been told
    #[arg(long)]
    pending: bool,
}

impl AskCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let wanted = self.study.wanted()?;
        let mut study = Study::open_to_ask(&wanted.folder, &wanted.settings, &wanted.base)?;
        show_notes(study.plan());
        let asked = if self.pending { study.pending() } else { study.ask(self.count)? };
        print_json(&asked)?;
        Ok(ExitCode::SUCCESS)
    }
}
