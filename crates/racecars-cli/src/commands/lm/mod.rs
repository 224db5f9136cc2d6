//! `racecars lm`: language models as a service, and the tuning of their prompts.

mod eval;
mod fetch;
pub(crate) mod paper;
mod predict;
mod serve;
mod tune;

use crate::output::warn;
use anyhow::Context;
use clap::{Args, Subcommand};
use racecars_lm::fetch::{PACKAGES, models_folder};
use racecars_lm::hub::HubModel;
use racecars_lm::wire::ServiceLimits;
use racecars_lm::{BlackBox, Client, Model, Prompt, Service, VllmClient};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Language models as a service: serve one, tune a prompt for it, use the prompt
#[derive(Subcommand)]
pub(crate) enum LmCommand {
    Fetch(fetch::FetchCommand),
    Serve(serve::ServeCommand),
    Tune(Box<tune::TuneCommand>),
    Eval(eval::EvalCommand),
    Predict(predict::PredictCommand),
}

impl LmCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            LmCommand::Fetch(fetch) => fetch.run(),
            LmCommand::Serve(serve) => serve.run(),
            LmCommand::Tune(tune) => tune.run(),
            LmCommand::Eval(eval) => eval.run(),
            LmCommand::Predict(predict) => predict.run(),
        }
    }
}

/// The model: in this process, or behind a service.
#[derive(Args)]
#[group(required = true, multiple = true)]
struct ModelArguments {
    /// A model to run in this process: a GGUF file, a folder, or the name of a fetched model (smollm2,
    /// gemma3-270m, OWNER/NAME)
    #[arg(long, value_name = "FILE|DIR|NAME")]
    model: Option<String>,
    /// The URL of a service, such as http://127.0.0.1:8123. If it needs a key, that is read from the environment
    /// variable RACECARS_LM_KEY
    #[arg(long, value_name = "URL", conflicts_with_all = ["model", "vllm"])]
    model_url: Option<String>,
    /// Run the model on a vLLM server at this URL (`vllm serve --enable-prompt-embeds`); --model has its tokenizer
    /// and embedding table
    #[arg(long, value_name = "URL", requires = "model")]
    vllm: Option<String>,
    /// The model's name on the vLLM server [default: the name of --model]
    #[arg(long, value_name = "NAME", requires = "vllm")]
    vllm_model: Option<String>,
}

/// The environment variable of the API key, which should not appear in a command line.
const KEY_VARIABLE: &str = "RACECARS_LM_KEY";

impl ModelArguments {
    fn open(&self) -> anyhow::Result<Box<dyn BlackBox>> {
        match (&self.model, &self.model_url) {
            (_, Some(url)) => {
                let client = Client::new(url, std::env::var(KEY_VARIABLE).ok())?;
                Ok(Box::new(client.on_retry(say_retry)))
            }
            (Some(model), None) => match &self.vllm {
                None => Ok(Box::new(Service::new(open(model)?, ServiceLimits::default()))),
                Some(url) => {
                    let (file, key) = (open(model)?, std::env::var(KEY_VARIABLE).ok());
                    let name = self.vllm_model.as_ref().unwrap_or(model);
                    Ok(Box::new(VllmClient::new(url, key, file, name)?.on_retry(say_retry)))
                }
            },
            (None, None) => anyhow::bail!("neither --model nor --model-url is given"),
        }
    }
}

/// Says why a service has not answered: until it is given up, a minute may pass.
fn say_retry(error: &racecars_lm::Error, pause: Duration) {
    warn(format!("{error}; trying again in {:.1} s", pause.as_secs_f64()));
}

/// Opens a model by path, or by the name of a fetched model.
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
            Err(_) => {
                let names: Vec<&str> = PACKAGES.iter().map(|package| package.name).collect();
                anyhow::bail!(
                    "there is no file {model}, and it is not the name of a model: {}, or OWNER/NAME of the hub",
                    names.join(", ")
                );
            }
        },
    };
    found.with_context(|| {
        format!("there is no model {model}; download it with `racecars lm fetch {model}`")
    })
}

/// Checks that the prompt fits the model: refuses another embedding size, warns of another model.
fn check_fit(prompt: &Prompt, service: &dyn BlackBox) -> anyhow::Result<()> {
    let info = service.describe()?.info;
    if info.hidden != prompt.origin.hidden {
        anyhow::bail!(
            "the prompt is for {}, whose embeddings have {} numbers; {} has {}",
            prompt.origin.model,
            prompt.origin.hidden,
            info.name,
            info.hidden
        );
    }
    if info.name != prompt.origin.model {
        eprintln!(
            "warning: the prompt was tuned for {}, not for {}",
            prompt.origin.model, info.name
        );
    }
    Ok(())
}
