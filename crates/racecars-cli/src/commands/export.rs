//! `racecars export`: a study's trials for other programs.

use super::study_folder::StudyFolder;
use crate::output::print;
use anyhow::Context;
use clap::Args;
use racecars_figures::files;
use racecars_study::export::{Format, export};
use racecars_study::journal;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Export a study's trials
///
/// csv: one row per trial, one column per parameter. json: one document. optuna: a file for Optuna's
/// JournalStorage, which `optuna.load_study` and `optuna-dashboard` open.
///
/// In csv, a text that begins with = + - @ or an apostrophe has an apostrophe before it, or spreadsheets would
/// take it for a formula; numbers have none. In json all texts are unchanged.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExportCommand {
    #[command(flatten)]
    study: StudyFolder,
    /// The format: csv, json, optuna
    #[arg(long, value_name = "FORMAT")]
    to: Format,
    /// The file to write; - for standard output [default: -]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  racecars export --to csv > trials.csv
  racecars export --to optuna --out study.log && optuna-dashboard study.log";

impl ExportCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let folder = self.study.find_begun()?;
        let out = self.out.filter(|path| *path != Path::new("-"));
        let exported = match &out {
            None => export(&folder, self.to, &mut BufWriter::new(std::io::stdout().lock()))?,
            Some(path) => {
                journal::check_output(path)?;
                let exported = files::write_with(path, |out| export(&folder, self.to, out))
                    .with_context(|| format!("cannot write {}", path.display()))?;
                print(format!("wrote {} ({} trials)", path.display(), exported.trials))?;
                exported
            }
        };
        if let Some(first) = exported.damaged.first() {
            let lines = match exported.damaged.len() {
                1 => format!("line {first} of the journal is damaged and was"),
                count => {
                    format!("{count} lines of the journal, from {first} on, are damaged and were")
                }
            };
            eprintln!("warning: {lines} left out");
        }
        Ok(ExitCode::SUCCESS)
    }
}
