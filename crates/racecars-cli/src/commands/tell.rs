//! `racecars tell`: reports outcomes of points that `racecars ask` proposed, or of others.

use super::study_arguments::StudyArguments;
use crate::output::print_json;
use anyhow::{Context, bail};
use clap::Args;
use racecars_study::{Study, Told};
use serde_json::json;
use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

/// Tell outcomes of points that `racecars ask` proposed, or of others
///
/// Reads JSON: an object, a list of objects, or an object per line. An outcome is {"trial": 0, "value": 1.5},
/// {"trial": 1, "infeasible": 0.2} (the constraint violation) or {"trial": 2, "failed": "reason"};
/// "seconds" is optional. A point that was never asked for has "params" instead of "trial":
/// {"params": {"x": 1}, "value": 2.5}. The search learns from it; it is no evaluation of the study, so it does
/// not count towards the budget. Prints the state of the study.
#[derive(Args)]
pub(crate) struct TellCommand {
    /// The outcomes as JSON [default: standard input]
    #[arg(value_name = "JSON")]
    outcomes: Vec<String>,
    /// The study's folder [default: racecars-study]
    #[arg(long, value_name = "DIR")]
    study: Option<PathBuf>,
}

impl TellCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut text = self.outcomes.join("\n");
        if self.outcomes.is_empty() {
            std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
        }
        let outcomes = outcomes(&text)?;
        let wanted = StudyArguments::of_folder(self.study).wanted()?;
        if !wanted.folder.join(racecars_study::journal::FILE).exists() {
            bail!("there is no study in {}; `racecars ask` begins one", wanted.folder.display());
        }
        let mut study = Study::open_to_ask(&wanted.folder, &wanted.settings, &wanted.base)?;
        for told in &outcomes {
            study.tell(told)?;
        }
        let counts = study.totals();
        let best = study.best().map(|best| json!({"trial": best.trial, "outcome": best.outcome}));
        print_json(&json!({
            "told": outcomes.len(),
            "known": study.known(),
            "evaluations": counts.told,
            "pending": counts.asked - counts.told,
            "failures": counts.failures,
            "best": best,
        }))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Parses outcomes: JSON objects and lists of them, concatenated.
fn outcomes(text: &str) -> anyhow::Result<Vec<Told>> {
    let mut all = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>() {
        let values = match value.context("the outcomes are not JSON")? {
            serde_json::Value::Array(values) => values,
            other => vec![other],
        };
        for value in values {
            let shown = value.to_string();
            let told =
                serde_json::from_value(value).with_context(|| format!("the outcome {shown}"))?;
            all.push(told);
        }
    }
    if all.is_empty() {
        bail!(
            "no outcomes; tell some like {{\"trial\": 0, \"value\": 1.5}} or {{\"params\": {{\"x\": 1}}, \
             \"value\": 2.5}}"
        );
    }
    Ok(all)
}
