//! `racecars lm tune`: a prompt for a task.

use super::ModelArguments;
use crate::commands::{algorithm_help, at_least_one};
use crate::interrupt::{INTERRUPTED, on_interrupt};
use crate::output::{print, print_json, short, table};
use crate::progress::ProgressDisplay;
use clap::Args;
use racecars::Algorithm;
use racecars_lm::{
    Draw, Loss, PROMPT, Position, ProjectionSettings, PromptScores, Task, TuneSettings, TuneStatus,
    Tuned, data, tune,
};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Tune a prompt: minimize the loss over z, where the prompt is A z + p0
///
/// After an interrupt or a crash, run the same command again to resume; no call is made twice. Every
/// --look-every calls, the best prompt on the training texts is evaluated on the development texts. The
/// prompt that is best there is saved as DIR/prompt.safetensors, for `lm eval` and `lm predict`.
#[derive(Args)]
pub(crate) struct TuneCommand {
    /// The task: sst2, yelp, agnews, rte, or a TOML file
    #[arg(long, value_name = "NAME|FILE")]
    task: String,
    /// Its data: a folder with SHOTS-*/train.tsv and dev.tsv, or with a train.* to draw from
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    #[command(flatten)]
    which: ModelArguments,
    #[arg(long, value_name = "A", default_value = "race-cars", help = algorithm_help("The algorithm"))]
    algorithm: Algorithm,
    #[command(flatten)]
    search: Search,
    /// The seed of the split, the projection and the search. If there are folders SHOTS-*, SHOTS-SEED is the
    /// split, or else the one at this place in their order
    #[arg(long, value_name = "S", default_value = "0")]
    seed: u64,
    /// The folder of the journal and the prompt [default: lm-TASK-ALGORITHM-SEED]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// The settings of the search.
#[derive(Args)]
pub(super) struct Search {
    /// The number of coordinates of z
    #[arg(long, value_name = "N", default_value = "500", value_parser = at_least_one)]
    dim: usize,
    /// The coordinates of z are within ± this
    #[arg(long, value_name = "B", default_value = "50")]
    bound: f64,
    /// The number of tokens of the prompt
    #[arg(long, value_name = "N", default_value = "50", value_parser = at_least_one)]
    prompt_tokens: usize,
    /// The number of calls: prompts evaluated on the training texts
    #[arg(long, value_name = "T", default_value = "8000")]
    pub(super) budget: u64,
    /// The number of examples of each label
    #[arg(long, value_name = "K", default_value = "16", value_parser = at_least_one)]
    pub(super) shots: usize,
    /// The loss: cross-entropy or hinge
    #[arg(long, value_name = "L", default_value = "cross-entropy")]
    loss: Loss,
    /// Take the model's bias out of the loss: for every prompt, one number per label word is fitted on the
    /// training texts and added to its logit. The saved prompt has the numbers, and `lm eval` and `lm predict`
    /// add them
    #[arg(long)]
    calibrate: bool,
    /// Evaluate on the development texts, and keep, the mean of this many best prompts on the training texts
    #[arg(long, value_name = "K", default_value = "1", value_parser = at_least_one)]
    average: usize,
    /// The position of the prompt: prefix (before everything) or suffix (after the text, which a causal model
    /// then runs only once)
    #[arg(long, value_name = "P", default_value = "prefix")]
    position: Position,
    /// The distribution of A: normal, with standard deviation alpha * std / (sqrt(d) * sigma), or uniform
    #[arg(long, value_name = "P", default_value = "normal")]
    projection: Draw,
    /// The scale of a normal projection
    #[arg(long, value_name = "X", default_value = "1")]
    alpha: f64,
    /// The expected spread of z
    #[arg(long, value_name = "X", default_value = "1")]
    sigma: f64,
    /// p0 is the embedding of this text, repeated [default: the task's `base`, or zero]
    #[arg(long, value_name = "TEXT")]
    base: Option<String>,
    /// The number of candidates in a request. Algorithms learn more from one at a time
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one)]
    batch: usize,
    /// Evaluate the best prompt on the development texts every N calls
    #[arg(long, value_name = "N", default_value = "50")]
    look_every: u64,
}

#[derive(Serialize)]
struct TuneReport<'a> {
    task: &'a str,
    algorithm: &'a str,
    seed: u64,
    dim: usize,
    prompt_tokens: usize,
    budget: u64,
    prompt: PathBuf,
    #[serde(flatten)]
    tuned: &'a Tuned,
}

impl TuneCommand {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let search = &self.search;
        let settings = search.settings(Task::find(&self.task)?, &self.algorithm, self.seed);
        // Before the model is loaded, which takes longest.
        settings.check()?;
        let split = data::split(&self.data, &settings.task, search.shots, self.seed)?;
        let cancel = on_interrupt()?;
        let service = self.which.open()?;
        let folder = self.dir.clone().unwrap_or_else(|| {
            format!("lm-{}", folder_name(&settings.task, &self.algorithm, self.seed)).into()
        });
        eprintln!("texts of {}", split.source);
        let progress = ProgressDisplay::new(search.budget);
        let tuned = tune(&*service, &settings, &split, &folder, &cancel, |seen| {
            progress.show_resumed(seen.calls, seen.session, || status(seen));
        })?;
        drop(progress);
        let prompt = folder.join(PROMPT);
        if self.json {
            print_json(&TuneReport {
                task: &settings.task.name,
                algorithm: &settings.algorithm,
                seed: self.seed,
                dim: search.dim,
                prompt_tokens: search.prompt_tokens,
                budget: search.budget,
                prompt,
                tuned: &tuned,
            })?;
        } else {
            show(&tuned)?;
            print(format!("\nprompt  {}", prompt.display()))?;
        }
        Ok(match tuned.is_interrupted {
            true => ExitCode::from(INTERRUPTED),
            false => ExitCode::SUCCESS,
        })
    }
}

impl Search {
    /// The settings of a tuning.
    pub(super) fn settings(&self, task: Task, algorithm: &Algorithm, seed: u64) -> TuneSettings {
        let base = self.base.clone().or_else(|| task.base.clone()).unwrap_or_default();
        TuneSettings {
            task,
            shots: self.shots,
            seed,
            algorithm: algorithm.to_string(),
            dim: self.dim,
            bound: self.bound,
            prompt_tokens: self.prompt_tokens,
            budget: self.budget,
            batch: self.batch,
            look_every: self.look_every,
            loss: self.loss,
            calibrate: self.calibrate,
            average: self.average,
            position: self.position,
            projection: ProjectionSettings {
                draw: self.projection,
                alpha: self.alpha,
                sigma: self.sigma,
                seed,
            },
            base,
        }
    }
}

/// The name of a tuning's folder: `sst2-race-cars-gamma=0.7,rho=0.002-0`.
pub(super) fn folder_name(task: &Task, algorithm: &Algorithm, seed: u64) -> String {
    let algorithm = algorithm.to_string().replace('(', "-").replace([')', ' '], "");
    format!("{}-{algorithm}-{seed}", task.name)
}

/// The progress of a tuning in a few words.
pub(super) fn status(status: &TuneStatus) -> String {
    let rate = status.rate.map_or(String::new(), |rate| format!("{}/s · ", short(rate)));
    let best = status.best.map_or("none yet".into(), |best| short(best.loss));
    let dev = status
        .look
        .map_or(String::new(), |look| format!(" · dev {:.1} %", 100.0 * look.dev.accuracy));
    format!("{rate}loss {best}{dev}")
}

fn show(tuned: &Tuned) -> anyhow::Result<()> {
    let Tuned { model, data, calls, failures, other_evaluations, seconds, .. } = tuned;
    print(format!(
        "{model} on {data}: {calls} calls in {seconds:.0} s, {failures} failed; {other_evaluations} other \
         evaluations\n"
    ))?;
    let mut table =
        table(&["prompt", "calls", "train loss", "accuracy", "dev loss", "accuracy"], 1);
    let mut row = |name: &str, look: &PromptScores| {
        table.add_row([
            name.to_string(),
            look.calls.to_string(),
            short(look.train.loss),
            format!("{:.1} %", 100.0 * look.train.accuracy),
            short(look.dev.loss),
            format!("{:.1} %", 100.0 * look.dev.accuracy),
        ]);
    };
    row("none", &tuned.baselines.without);
    row("untuned", &tuned.baselines.untuned);
    row("untuned, calibrated", &tuned.baselines.calibrated);
    if let Some(last) = tuned.looks.last() {
        row("best on training texts", last);
    }
    row("kept: best on development texts", &tuned.kept);
    print(table)
}
