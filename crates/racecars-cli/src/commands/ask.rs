//! `racecars ask`: points of a study that are evaluated elsewhere.

use super::study_arguments::StudyArguments;
use crate::output::print_json;
use clap::Args;
use racecars_study::Study;
use std::process::ExitCode;

/// Propose points of a study, for evaluation elsewhere
///
/// Prints a JSON list of {"trial": 0, "params": {...}, "seed": 1, "command": "..."}. It is empty when the
/// budget or the space is used up, or with --deterministic while the lookahead is. A command is not
/// needed; outcomes go back by `racecars tell`.
#[derive(Args)]
pub(crate) struct AskCommand {
    #[command(flatten)]
    study: StudyArguments,
    /// How many points
    #[arg(short = 'n', long, value_name = "N", default_value = "1")]
    count: usize,
    /// Propose nothing; print the points whose outcome has not been told
    #[arg(long)]
    pending: bool,
}

impl AskCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let wanted = self.study.wanted()?;
        let mut study = Study::open_by_hand(&wanted.folder, &wanted.settings, &wanted.base)?;
        let asked = if self.pending { study.pending() } else { study.ask(self.count)? };
        print_json(&asked)?;
        Ok(ExitCode::SUCCESS)
    }
}
