//! `racecars lm predict`: texts classified with a tuned prompt.

use super::{ModelArguments, check_fit};
use crate::output::print;
use anyhow::Context;
use clap::Args;
use racecars_lm::data::Example;
use racecars_lm::{Prompt, UploadedExamples, loss};
use serde::Serialize;
use std::io::BufRead;
use std::path::PathBuf;
use std::process::ExitCode;

/// Classify texts with a tuned prompt: the given texts, or the lines of standard input
#[derive(Args)]
pub(crate) struct PredictCommand {
    /// The prompt, as `lm tune` saved it
    #[arg(long, value_name = "FILE")]
    prompt: PathBuf,
    #[command(flatten)]
    which: ModelArguments,
    /// Print JSON, an object per line
    #[arg(long)]
    json: bool,
    /// The texts
    texts: Vec<String>,
}

#[derive(Serialize)]
struct Prediction<'a> {
    text: &'a str,
    label: &'a str,
    word: &'a str,
    /// The probability of each label word.
    shares: Vec<f64>,
}

impl PredictCommand {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let prompt = Prompt::load(&self.prompt)?;
        let settings = &prompt.origin.settings;
        let texts = match self.texts.is_empty() {
            true => std::io::stdin().lock().lines().collect::<Result<Vec<_>, _>>()?,
            false => self.texts,
        };
        let texts: Vec<String> = texts.into_iter().filter(|text| !text.trim().is_empty()).collect();
        if texts.is_empty() {
            anyhow::bail!("there is no text to classify");
        }
        let examples: Vec<_> = texts.iter().map(|text| Example::of_text(text)).collect();
        let service = self.which.open()?;
        check_fit(&prompt, &*service)?;
        let task = &settings.task;
        let panel =
            UploadedExamples::new(&*service, task, settings.position, &settings.base, &examples)?;
        let logits = panel.logits(std::slice::from_ref(&prompt.numbers))?.into_iter().next();
        let logits = prompt.calibrated(logits.context("the service did not answer")??);
        for (text, row) in texts.iter().zip(logits.chunks(task.words.len())) {
            let Some(best) = loss::best(row) else {
                anyhow::bail!("the logits of {text:?} are not numbers");
            };
            let most = f64::from(row[best]);
            let shares: Vec<f64> = row.iter().map(|&x| (f64::from(x) - most).exp()).collect();
            let sum: f64 = shares.iter().sum();
            let shares: Vec<f64> = shares.iter().map(|share| share / sum).collect();
            let (label, word) = (&*task.labels[best], &*task.words[best]);
            let share = shares[best];
            match self.json {
                true => {
                    let prediction = Prediction { text, label, word, shares };
                    print(serde_json::to_string(&prediction)?)?;
                }
                false => print(format!("{label}\t{word}\t{:.1} %\t{text}", 100.0 * share))?,
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
