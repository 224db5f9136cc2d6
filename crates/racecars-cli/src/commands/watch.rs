//! `racecars watch`: the page about a study, live.

use super::study_folder::StudyFolder;
use crate::output::print;
use clap::Args;
use racecars_study::watch::Watch;
use std::net::SocketAddr;
use std::process::ExitCode;

/// Show a study's report live, in the browser, while the study runs
///
/// Serves the page that `racecars report` writes, and updates it as evaluations end. The study may not have
/// started yet, or may be over. Stop with Ctrl-C.
#[derive(Args)]
pub(crate) struct WatchCommand {
    #[command(flatten)]
    study: StudyFolder,
    /// The address to listen on; port 0 takes any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787")]
    addr: SocketAddr,
    /// Allow an address that other machines can reach. Anyone who can connect sees the study
    #[arg(long)]
    allow_remote: bool,
}

impl WatchCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let folder = self.study.find();
        let watch = Watch::bind(&folder, self.addr, self.allow_remote)?;
        print(format!("{} at http://{} (Ctrl-C ends this)", folder.display(), watch.address()?))?;
        watch.serve()?;
        Ok(ExitCode::SUCCESS)
    }
}
