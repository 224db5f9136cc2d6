//! `racecars report`, `racecars watch` and `racecars export`: what came of a study.

use crate::output::print;
use anyhow::{Context, bail};
use clap::Args;
use racecars_study::export::{Format, export};
use racecars_study::watch::Watch;
use racecars_study::{FOLDER, journal, report};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write a study's report: one HTML page that needs no network
///
/// Convergence, the best point, importance and slices of the parameters, the best tenth, the shrinking
/// region over time, failures, the workers' timeline, warnings, and how to reproduce it all. The study may
/// be running.
#[derive(Args)]
pub(crate) struct Report {
    #[command(flatten)]
    study: StudyFolder,
    /// Where to write it [default: report.html in the study's folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Show a study's report live, in the browser, while the study runs
///
/// Serves the page that `racecars report` writes, and brings it up to date as evaluations end. The study
/// may not have begun, or may be over; this goes on until it is stopped with Ctrl-C.
#[derive(Args)]
pub(crate) struct WatchStudy {
    #[command(flatten)]
    study: StudyFolder,
    /// Where to serve it; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787")]
    addr: SocketAddr,
    /// Allow an address that other machines can reach; whoever reaches it sees the study
    #[arg(long)]
    allow_remote: bool,
}

/// Export a study's trials
///
/// csv: one row per trial, one column per parameter. json: one document. optuna: a file for Optuna's
/// JournalStorage, which `optuna.load_study` and `optuna-dashboard` open.
#[derive(Args)]
#[command(after_help = EXPORTING)]
pub(crate) struct Export {
    #[command(flatten)]
    study: StudyFolder,
    /// What to: csv, json, optuna
    #[arg(long, value_name = "FORMAT")]
    to: Format,
    /// Where to [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

const EXPORTING: &str = "\
Examples:
  racecars export --to csv > trials.csv
  racecars export --to optuna --out study.log && optuna-dashboard study.log";

#[derive(Args)]
struct StudyFolder {
    /// The study's folder [default: racecars-study]
    #[arg(value_name = "STUDY")]
    folder: Option<PathBuf>,
}

impl StudyFolder {
    /// The folder meant: the one given, or the usual one; either may also be the folder around it.
    fn find(&self) -> PathBuf {
        let given = self.folder.clone().unwrap_or_else(|| PathBuf::from("."));
        let inside = if self.folder.is_some() { given.join(FOLDER) } else { FOLDER.into() };
        let has_journal = |folder: &Path| folder.join(journal::FILE).exists();
        match self.folder {
            Some(_) if has_journal(&given) || !has_journal(&inside) => given,
            None if has_journal(&given) && !has_journal(&inside) => given,
            _ => inside,
        }
    }

    /// The folder meant, if a study has begun in it.
    fn find_begun(&self) -> anyhow::Result<PathBuf> {
        let folder = self.find();
        if !folder.join(journal::FILE).exists() {
            bail!("there is no study in {}; `racecars run` begins one", folder.display());
        }
        Ok(folder)
    }
}

impl Report {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let folder = self.study.find_begun()?;
        let out = self.out.unwrap_or_else(|| folder.join("report.html"));
        report::write(&folder, &out).context("cannot write the report")?;
        print(format!("wrote {}", out.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl WatchStudy {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let folder = self.study.find();
        let watch = Watch::bind(&folder, self.addr, self.allow_remote)?;
        print(format!("{} at http://{} (Ctrl-C ends this)", folder.display(), watch.address()?))?;
        watch.serve()?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Export {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let folder = self.study.find_begun()?;
        let exported = match &self.out {
            None => export(&folder, self.to, &mut BufWriter::new(std::io::stdout().lock()))?,
            Some(path) => {
                let refuse = || format!("cannot write {}", path.display());
                let mut out = BufWriter::new(File::create(path).with_context(refuse)?);
                let exported = export(&folder, self.to, &mut out).with_context(refuse)?;
                out.flush().with_context(refuse)?;
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
