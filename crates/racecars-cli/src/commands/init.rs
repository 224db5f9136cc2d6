//! `racecars init`: write a study file.

use crate::output::print;
use anyhow::{Context, bail};
use clap::Args;
use racecars_study::EXAMPLE;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Write a commented study file
#[derive(Args)]
pub(crate) struct InitCommand {
    /// The file to write
    #[arg(value_name = "FILE", default_value = "study.toml")]
    file: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

impl InitCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let shown = self.file.display();
        let mut options = std::fs::OpenOptions::new();
        match self.force {
            true => options.create(true).truncate(true),
            false => options.create_new(true),
        };
        match options.write(true).open(&self.file) {
            Ok(mut file) => file.write_all(EXAMPLE.as_bytes()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                bail!("{shown} is there already; --force replaces it")
            }
            Err(error) => Err(error),
        }
        .with_context(|| format!("cannot write {shown}"))?;
        print(format!("wrote {shown}: edit it, then `racecars check` and `racecars run`"))?;
        Ok(ExitCode::SUCCESS)
    }
}
