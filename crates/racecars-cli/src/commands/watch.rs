//! `racecars watch`: the page about a study, live.

use super::study_folder::StudyFolder;
use crate::output::print;
use clap::Args;
use racecars_study::watch::Watch;
use std::net::SocketAddr;
use std::process::ExitCode;

/// Show a study's report live, in the browser, while the study runs
///
/// Serves the page that `racecars report` writes, and brings it up to date as evaluations end. The study
/// may not have begun, or may be over; this goes on until it is stopped with Ctrl-C.
#[derive(Args)]
pub(crate) struct WatchCommand {
    #[command(flatten)]
    study: StudyFolder,
    /// Where to serve it; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787")]
    addr: SocketAddr,
    /// Allow an address that other machines can reach; whoever reaches it sees the study
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
