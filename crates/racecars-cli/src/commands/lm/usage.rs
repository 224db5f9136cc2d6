//! `racecars lm eval` and `predict`: what a tuned prompt is good for.

use super::Which;
use crate::output::{print, print_json, short, table};
use clap::Args;
use racecars_lm::data::{self, Example};
use racecars_lm::wire::Wanted;
use racecars_lm::{BlackBox, Panel, Prompt, Score, loss};
use serde::Serialize;
use std::io::BufRead;
use std::path::PathBuf;
use std::process::ExitCode;

/// Evaluate a tuned prompt on a test file, beside no prompt and the untuned one
#[derive(Args)]
pub(crate) struct Eval {
    /// The prompt, as `lm tune` saved it
    #[arg(long, value_name = "FILE")]
    prompt: PathBuf,
    #[command(flatten)]
    which: Which,
    /// The test file, or a folder with a test.*
    #[arg(long, value_name = "FILE|DIR")]
    data: PathBuf,
    /// How many examples, from the file's beginning [default: all]
    #[arg(long, value_name = "N", value_parser = crate::commands::at_least_one)]
    limit: Option<usize>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Evaluation {
    data: PathBuf,
    examples: usize,
    without: Score,
    untuned: Score,
    tuned: Score,
}

impl Eval {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let prompt = Prompt::load(&self.prompt)?;
        let settings = &prompt.origin.settings;
        let path = match self.data.is_dir() {
            true => data::test_file(&self.data, &settings.task)?,
            false => self.data,
        };
        let mut examples = data::read(&path, &settings.task)?;
        examples.truncate(self.limit.unwrap_or(usize::MAX));
        let service = self.which.open()?;
        fits(&prompt, &*service)?;
        let panel =
            Panel::new(&*service, &settings.task, settings.position, &settings.base, &examples)?;
        let wanted = Wanted { loss: settings.loss, logits: false };
        let (untuned, tuned) = (vec![0.0; prompt.numbers.len()], prompt.numbers.clone());
        // Together, so that long files are uploaded once.
        let both = panel.scores(&[untuned, tuned], wanted)?;
        let Ok([untuned, tuned]) = <[_; 2]>::try_from(both) else {
            anyhow::bail!("the service did not answer for both prompts");
        };
        let (untuned, tuned) = (untuned?, tuned?);
        let without = panel.score(Vec::new(), wanted)?;
        let evaluation =
            Evaluation { data: path, examples: examples.len(), without, untuned, tuned };
        if self.json {
            print_json(&evaluation)?;
            return Ok(ExitCode::SUCCESS);
        }
        print(format!("{} examples of {}\n", evaluation.examples, evaluation.data.display()))?;
        let mut table = table(&["prompt", "loss", "accuracy"], 1);
        for (name, score) in [("none", without), ("untuned", untuned), ("tuned", tuned)] {
            let accuracy = format!("{:.1} %", 100.0 * score.accuracy);
            table.add_row([name.to_string(), short(score.loss), accuracy]);
        }
        print(table)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn fits(prompt: &Prompt, service: &dyn BlackBox) -> anyhow::Result<()> {
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

/// Classify texts with a tuned prompt: the ones given, or the lines of standard input
#[derive(Args)]
pub(crate) struct Predict {
    /// The prompt, as `lm tune` saved it
    #[arg(long, value_name = "FILE")]
    prompt: PathBuf,
    #[command(flatten)]
    which: Which,
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
    /// The share of each label word.
    shares: Vec<f64>,
}

impl Predict {
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
        fits(&prompt, &*service)?;
        let task = &settings.task;
        let panel = Panel::new(&*service, task, settings.position, &settings.base, &examples)?;
        for (text, row) in texts.iter().zip(panel.logits(&prompt.numbers)?) {
            let Some(best) = loss::best(&row) else {
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
