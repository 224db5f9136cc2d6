//! The arguments of the commands that read a study: its folder, by `--study` as everywhere, or alone.

use anyhow::bail;
use clap::Args;
use racecars_study::{FOLDER, journal};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(super) struct StudyFolder {
    /// The study's folder [default: racecars-study]
    #[arg(long = "study", value_name = "DIR")]
    study: Option<PathBuf>,
    /// The same, without --study
    #[arg(value_name = "STUDY", conflicts_with = "study")]
    folder: Option<PathBuf>,
}

impl StudyFolder {
    /// The study's folder: the given one or the default one. The folder that contains it is also accepted.
    pub(super) fn find(&self) -> PathBuf {
        let folder = self.study.as_ref().or(self.folder.as_ref());
        let given = folder.cloned().unwrap_or_else(|| PathBuf::from("."));
        let inside = if folder.is_some() { given.join(FOLDER) } else { FOLDER.into() };
        let has_journal = |folder: &Path| folder.join(journal::FILE).exists();
        match folder {
            Some(_) if has_journal(&given) || !has_journal(&inside) => given,
            None if has_journal(&given) && !has_journal(&inside) => given,
            _ => inside,
        }
    }

    /// The study's folder; an error if it has no study.
    pub(super) fn find_begun(&self) -> anyhow::Result<PathBuf> {
        let folder = self.find();
        if !folder.join(journal::FILE).exists() {
            bail!("there is no study in {}; `racecars run` begins one", folder.display());
        }
        Ok(folder)
    }
}
