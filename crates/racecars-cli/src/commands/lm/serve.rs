//! `racecars lm serve`: a model behind HTTP.

use super::{KEY_VARIABLE, open};
use crate::commands::at_least_one;
use crate::interrupt::on_interrupt;
use crate::output::print;
use clap::Args;
use racecars_lm::wire::ServiceLimits;
use racecars_lm::{Server, ServerSettings, Service};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Serve a model over HTTP: texts and prompts in, logits and losses out
///
/// If the environment variable RACECARS_LM_KEY is set, requests must send it: `Authorization: Bearer KEY`.
/// Ctrl-C finishes the running requests. docs/lm.md has the protocol.
#[derive(Args)]
pub(crate) struct ServeCommand {
    /// The model: a GGUF file, a folder, or the name of a fetched model (smollm2,
    /// gemma3-270m, OWNER/NAME)
    #[arg(long, value_name = "FILE|DIR|NAME")]
    model: String,
    /// The address to listen on; port 0 takes any free port
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8123")]
    addr: SocketAddr,
    /// The maximum number of waiting requests
    #[arg(long, value_name = "N", default_value = "32", value_parser = at_least_one)]
    waiting: usize,
    /// The time limit of a request in seconds
    #[arg(long, value_name = "S", default_value = "300", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// The size limit of a request in MiB
    #[arg(long, value_name = "M", default_value = "64", value_parser = clap::value_parser!(u16).range(1..))]
    request_mib: u16,
    /// The memory limit of uploaded texts in MiB
    #[arg(long, value_name = "M", default_value = "4096", value_parser = clap::value_parser!(u32).range(1..))]
    held_mib: u32,
}

impl ServeCommand {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let key = std::env::var(KEY_VARIABLE).ok();
        if !self.addr.ip().is_loopback() && key.is_none() {
            eprintln!(
                "warning: {} is reachable from other machines, and {KEY_VARIABLE} is not set",
                self.addr
            );
        }
        let limits = ServiceLimits {
            request_bytes: usize::from(self.request_mib) << 20,
            held_bytes: (self.held_mib as usize) << 20,
            ..ServiceLimits::default()
        };
        let cancel = on_interrupt()?;
        eprintln!("loading {}", self.model);
        let start = Instant::now();
        let service = Arc::new(Service::new(open(&self.model)?, limits));
        eprintln!("loaded in {:.1} s", start.elapsed().as_secs_f64());
        let timeout = Duration::from_secs(self.timeout);
        let settings = ServerSettings { key, waiting: self.waiting, timeout };
        let server = Server::start(service, self.addr, settings)?;
        print(format!("http://{}", server.address()))?;
        while !cancel.is_cancelled() {
            std::thread::sleep(Duration::from_millis(50));
        }
        eprintln!("finishing the running requests");
        server.stop();
        Ok(ExitCode::SUCCESS)
    }
}
