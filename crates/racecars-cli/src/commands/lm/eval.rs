//! `racecars lm eval`: a tuned prompt on a test file.

use super::{ModelArguments, check_fit};
use crate::output::{print, print_json, short, table};
use clap::Args;
use racecars_lm::loss::score;
use racecars_lm::{Prompt, Score, UploadedExamples, data};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Evaluate a tuned prompt on a test file, next to no prompt and the untuned prompt
#[derive(Args)]
pub(crate) struct EvalCommand {
    /// The prompt, as `lm tune` saved it
    #[arg(long, value_name = "FILE")]
    prompt: PathBuf,
    #[command(flatten)]
    which: ModelArguments,
    /// The test file, or a folder with a test.*
    #[arg(long, value_name = "FILE|DIR")]
    data: PathBuf,
    /// The number of examples, from the start of the file [default: all]
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

impl EvalCommand {
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
        check_fit(&prompt, &*service)?;
        let panel = UploadedExamples::new(
            &*service,
            &settings.task,
            settings.position,
            &settings.base,
            &examples,
        )?;
        // In one call, so that long files are uploaded once.
        let untuned = vec![0.0; prompt.numbers.len()];
        let all = panel.logits(&[Vec::new(), untuned, prompt.numbers.clone()])?;
        let (words, labels) = (settings.task.words.len(), panel.labels());
        let scores = (all.into_iter().enumerate())
            .map(|(i, logits)| {
                let logits = if i == 2 { prompt.calibrated(logits?) } else { logits? };
                Ok(score(settings.loss, &logits, words, &labels))
            })
            .collect::<anyhow::Result<Vec<_>>>()?;
        let [without, untuned, tuned] = scores[..] else {
            anyhow::bail!("the service did not answer for all prompts");
        };
        let evaluation =
            Evaluation { data: path, examples: examples.len(), without, untuned, tuned };
        if self.json {
            print_json(&evaluation)?;
            return Ok(ExitCode::SUCCESS);
        }
        print(format!("{} examples of {}\n", evaluation.examples, evaluation.data.display()))?;
        let mut table = table(&["prompt", "loss", "accuracy"], 1);
        let name = if prompt.origin.shifts.is_empty() { "tuned" } else { "tuned, calibrated" };
        for (name, score) in [("none", without), ("untuned", untuned), (name, tuned)] {
            let accuracy = format!("{:.1} %", 100.0 * score.accuracy);
            table.add_row([name.to_string(), short(score.loss), accuracy]);
        }
        print(table)?;
        Ok(ExitCode::SUCCESS)
    }
}
