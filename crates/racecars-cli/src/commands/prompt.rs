//! `racecars prompt`: search prompts of a language model behind an OpenAI-compatible endpoint.

use super::at_least_one;
use crate::interrupt::{INTERRUPTED, request_or_exit};
use crate::output::{print, print_json, short, table, warn};
use crate::progress::ProgressDisplay;
use clap::Args;
use racecars_prompt::statistics::Interval;
use racecars_prompt::{PROMPT, Progress, Report, Reported, Settings, Stop, TableScore, Task};
use racecars_study::units;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Search prompts of a language model behind an OpenAI-compatible endpoint
///
/// A TOML file has the templates, texts to choose from, a pool of examples, the data, how answers are scored, the
/// endpoint, and limits on calls, tokens and money. Prompts race on minibatches of training texts, and bad ones are
/// dropped early. Every answer is kept in the study's folder: run the same command again to resume, also after a
/// crash; nothing is paid for twice. The best prompt is written to prompt.json there.
///
/// Ctrl-C once: wait for the answers under way, then stop; twice: stop now, and lose these answers.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = FILE_AND_EXAMPLES)]
pub(crate) struct PromptCommand {
    /// The file with the settings; --help shows a small one
    file: PathBuf,
    /// The study's folder [default: the name of the file with -study instead of .toml]
    #[arg(long, value_name = "DIR")]
    study: Option<PathBuf>,
    /// Number of requests under way at once
    #[arg(long, value_name = "J", default_value = "4", value_parser = at_least_one)]
    jobs: usize,
    /// Instead of limits.calls in the file
    #[arg(long, value_name = "N")]
    calls: Option<u64>,
    /// Instead of search.seed in the file
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Search afresh; answers that are there are not paid for again
    #[arg(long)]
    restart: bool,
    /// Show the first prompt and what is planned, and send nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

macro_rules! examples {
    () => {
        "\
Examples:
  racecars prompt sentiment.toml --dry-run             the first prompt as it would be sent
  racecars prompt sentiment.toml                       search, or resume the search
  racecars prompt sentiment.toml --calls 5000          go on with a larger limit
  racecars report sentiment-study                      an HTML page about the search"
    };
}

const EXAMPLES: &str = examples!();

const FILE_AND_EXAMPLES: &str = concat!(
    r#"A small file (all keys: docs/prompts.md, "The file"):
  [endpoint]
  url = "http://127.0.0.1:8080/v1"
  model = "the-model"
  key_variable = "API_KEY"                       # leave it out if no key is needed
  [prompt]
  template = "{instruction}\nReview: {review}\nSentiment:"   # review: a column of the data
  [choices]
  instruction = ["Is the review positive or negative?", "Judge the review with one word."]
  [data]                                         # tables with the columns review and label
  train = "train.tsv"
  dev = "dev.tsv"
  test = "test.tsv"
  [limits]
  calls = 1000

"#,
    examples!()
);

impl PromptCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut settings = Settings::read(&self.file)?;
        settings.limits.calls = self.calls.unwrap_or(settings.limits.calls);
        settings.search.seed = self.seed.unwrap_or(settings.search.seed);
        let task = Task::new(settings)?;
        for (table, earlier, count) in task.shared_texts() {
            warn(format!(
                "{count} of the {table} texts are {earlier} texts, too: scores on them are too good"
            ));
        }
        if self.dry_run {
            return show_plan(&task);
        }
        let folder = self.study.clone().unwrap_or_else(|| default_folder(&self.file));
        if self.restart
            && let Some(aside) = racecars_prompt::restart(&folder)?
        {
            warn(format!("the journal so far is now {}", aside.display()));
        }
        if self.jobs > task.settings.search.batch {
            let (jobs, batch) = (self.jobs, task.settings.search.batch);
            eprintln!(
                "only {batch} of {jobs} jobs can be busy: a minibatch has {batch} texts (search.batch)"
            );
        }
        let interrupt = request_or_exit()?;
        let display = ProgressDisplay::new(task.settings.limits.calls);
        let say_retry = |why: &str| warn(format!("{why}; trying again"));
        let mut show_progress =
            |progress: &Progress| display.show(progress.spent.calls, || line(progress));
        let report = racecars_prompt::search(
            &task,
            &folder,
            self.jobs,
            &interrupt,
            say_retry,
            &mut show_progress,
        );
        drop(display);
        let report = report?;
        if self.json {
            print_json(&report)?;
        } else {
            show(&report, &task, &folder)?;
        }
        Ok(match report.stop {
            Stop::Interrupted => ExitCode::from(INTERRUPTED),
            _ => ExitCode::SUCCESS,
        })
    }
}

fn default_folder(file: &Path) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    PathBuf::from(format!("{stem}-study"))
}

/// After the number of calls.
fn line(progress: &Progress) -> String {
    let Progress { candidates, stage, .. } = progress;
    let best = progress.best.map_or("none yet".to_string(), short);
    let money = if progress.money > 0.0 {
        format!(", cost {}", short(progress.money))
    } else {
        String::new()
    };
    format!("calls, {stage}: {candidates} prompts, best {best}{money}")
}

fn show_plan(task: &Task) -> anyhow::Result<ExitCode> {
    let planned = racecars_prompt::planned_prompts(task)?;
    let start = task.candidate(&task.start()?)?;
    for (role, content) in task.messages(&start, task.train.first()) {
        print(format!("--- {}", if role.is_empty() { "prompt" } else { role }))?;
        print(content)?;
    }
    print("--- request")?;
    print(task.body(&start, &task.train[0]))?;
    print("---")?;
    let count = match task.space.cardinality() {
        Some(count) => format!("{count} prompts"),
        None => "more prompts than can be counted".to_string(),
    };
    print(format!("to choose from   {count}; {planned} are planned"))?;
    let (train, dev, test) = (task.train.len(), task.dev.len(), task.test.len());
    print(format!(
        "texts            {train} for training, {dev} for development, {test} for the test"
    ))?;
    let (calls, kept) = (task.settings.limits.calls, task.final_calls());
    print(format!(
        "calls            {calls} at most, {kept} of them for development and test texts"
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn show(report: &Report, task: &Task, folder: &Path) -> anyhow::Result<()> {
    let counts = &report.counts;
    match &report.best {
        None => print("no prompt has been tried on all training texts yet")?,
        Some(best) => {
            print(scores(report, best))?;
            if let Some(gain) = report.gain {
                let ahead = if gain.value >= 0.0 { "+" } else { "" };
                print(format!(
                    "gain         {ahead}{} on test texts, 95 % interval",
                    percent(report, gain)
                ))?;
            }
            print(format!("prompt       {}", folder.join(PROMPT).display()))?;
            for (role, content) in task.messages(best.candidate(), None) {
                let role = if role.is_empty() { "prompt" } else { role };
                print(format!("--- {role}\n{content}"))?;
            }
            print("---")?;
        }
    }
    let mut tried = format!(
        "prompts      {} of {} planned, {} dropped early",
        counts.candidates, counts.planned, counts.dropped
    );
    if counts.refused > 0 {
        tried += &format!(", {} refused by the endpoint", counts.refused);
    }
    if counts.written > 0 {
        tried += &format!(", {} texts written by the model", counts.written);
    }
    print(tried)?;
    let spent = counts.spent;
    let mut calls = format!("calls        {} of {}", spent.calls, task.settings.limits.calls);
    if spent.lost > 0 {
        calls += &format!(", {} without a usable answer", spent.lost);
    }
    if counts.retries > 0 {
        calls += &format!(", {} retries", counts.retries);
    }
    print(calls)?;
    print(format!(
        "tokens       {} in prompts, {} in answers",
        spent.prompt_tokens, spent.answer_tokens
    ))?;
    if counts.money > 0.0 {
        print(format!("cost         {}", short(counts.money)))?;
    }
    if report.damaged_answers > 0 {
        print(format!(
            "damaged      {} lines of the answers, which are lost",
            report.damaged_answers
        ))?;
    }
    print(format!("time         {}", units::show(Duration::from_secs_f64(report.seconds))))?;
    let resume = match report.stop {
        Stop::Interrupted => "; run the same command again to resume",
        Stop::Limit(_) => "; raise it and run the same command again to go on",
        _ => "",
    };
    print(format!("stopped      {}{resume}", report.stop))?;
    print(format!("in           {}", folder.display()))
}

fn percent(report: &Report, Interval { value, low, high }: Interval) -> String {
    match report.is_accuracy {
        true => format!("{:.1} % ({:.1} to {:.1})", 100.0 * value, 100.0 * low, 100.0 * high),
        false => format!("{} ({} to {})", short(value), short(low), short(high)),
    }
}

/// The best prompt beside the first one.
fn scores(report: &Report, best: &Reported) -> String {
    let heading = if report.is_accuracy { "accuracy" } else { "score" };
    let mut rows = table(
        &[
            "texts",
            "number",
            report.metric,
            &format!("{heading} of the best (95 %)"),
            "of the first",
        ],
        1,
    );
    let first = report.start.as_ref();
    let tables: [(&str, Option<TableScore>, Option<TableScore>); 3] = [
        ("training", Some(best.train), first.map(|first| first.train)),
        ("development", best.dev, None),
        ("test", best.test, first.and_then(|first| first.test)),
    ];
    for (name, ours, theirs) in tables {
        if let Some(ours) = ours {
            let theirs = theirs.map_or(String::new(), |theirs| {
                // The first prompt may have been dropped after some of the training texts.
                let part = match theirs.texts == ours.texts {
                    true => String::new(),
                    false => format!(", {} texts", theirs.texts),
                };
                percent(report, theirs.accuracy) + &part
            });
            rows.add_row([
                name.to_string(),
                ours.texts.to_string(),
                short(ours.value),
                percent(report, ours.accuracy),
                theirs,
            ]);
        }
    }
    rows.to_string()
}
