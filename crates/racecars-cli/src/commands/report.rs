//! `racecars report`: the page about a study.

use super::study_folder::StudyFolder;
use crate::output::print;
use anyhow::Context;
use clap::Args;
use racecars_study::{journal, report};
use std::path::PathBuf;
use std::process::ExitCode;

/// Write a study's report: one HTML page that needs no network
///
/// The page shows convergence, the best point, the importance and slices of the parameters, the best 10 % of
/// trials, the search region over time, a table of trials, failures, the workers' timeline, warnings, and how to
/// reproduce the study. The study may still be running.
#[derive(Args)]
pub(crate) struct ReportCommand {
    #[command(flatten)]
    study: StudyFolder,
    /// Where to write it [default: report.html in the study's folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl ReportCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let folder = self.study.find_begun()?;
        let out = self.out.unwrap_or_else(|| folder.join("report.html"));
        journal::check_output(&out)?;
        report::write(&folder, &out).context("cannot write the report")?;
        print(format!("wrote {}", out.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}
