//! The result of a search, and the best prompt as a file for others.

use crate::caller::Limit;
use crate::error::{Error, Result};
use crate::metric::Score;
use crate::race::mean;
use crate::search::Standing;
use crate::settings::Api;
use crate::statistics::{Interval, bootstrap, wilson};
use crate::store::Spent;
use crate::task::{Candidate, Task};
use racecars::random::Random;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt;

/// The name of the file with the best prompt.
pub const PROMPT: &str = "prompt.json";

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// All planned prompts have been looked at.
    Candidates,
    /// All prompts that there are have been looked at.
    Exhausted,
    /// A limit is reached.
    Limit(Limit),
    /// Somebody asked for it.
    Interrupted,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Candidates => f.write_str("all planned prompts were tried"),
            Stop::Exhausted => f.write_str("all possible prompts were tried"),
            Stop::Limit(limit) => write!(f, "{limit} reached"),
            Stop::Interrupted => f.write_str("interrupted"),
        }
    }
}

/// Counts over all runs of a study, but for the retries.
#[derive(Debug, Clone, Serialize)]
pub struct Counts {
    /// Prompts tried.
    pub candidates: u64,
    /// Those dropped early.
    pub dropped: u64,
    /// Those that the endpoint refused.
    pub refused: u64,
    /// Prompts planned; as many as were tried if those are more.
    pub planned: u64,
    /// Calls and tokens.
    #[serde(flatten)]
    pub spent: Spent,
    /// What they cost, by the prices in the file.
    pub money: f64,
    /// Requests that were sent again in this run.
    pub retries: u64,
    /// Texts that the model wrote.
    pub written: usize,
}

/// The score of a prompt on some texts.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TableScore {
    /// The number of texts.
    pub texts: usize,
    /// What is maximized: the mean.
    pub value: f64,
    /// The share of right answers with Wilson's interval, or a program's mean score with the bootstrap's.
    pub accuracy: Interval,
}

/// A prompt in a report.
#[derive(Debug, Clone, Serialize)]
pub struct Reported {
    /// The trial's number in the journal.
    pub trial: u64,
    /// What was chosen.
    pub choices: Value,
    /// On the training texts, which it was chosen by. The first prompt may have seen only some of them.
    pub train: TableScore,
    /// On the development texts, which chose it among the best.
    pub dev: Option<TableScore>,
    /// On the test texts, which chose nothing.
    pub test: Option<TableScore>,
    #[serde(skip)]
    candidate: Candidate,
}

/// The result of a search.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Why it ended.
    pub stop: Stop,
    /// What is maximized.
    pub metric: &'static str,
    /// Whether `accuracy` is a share of right answers; otherwise it is a program's score.
    pub is_accuracy: bool,
    /// Counts.
    #[serde(flatten)]
    pub counts: Counts,
    /// The chosen prompt.
    pub best: Option<Reported>,
    /// The first prompt: the first text of each choice, the fewest examples.
    pub start: Option<Reported>,
    /// The accuracy of the best minus that of the first on the test texts, with the interval of the paired
    /// bootstrap.
    pub gain: Option<Interval>,
    /// Lines of the answers that are damaged; they are paid for again if they are needed.
    pub damaged_answers: u64,
    /// How long this run took.
    pub seconds: f64,
}

/// A prompt, and its scores on the training and test texts.
pub(crate) type Scored = (Standing, Vec<Score>, Vec<Score>);

impl Reported {
    /// The prompt, for [`Task::messages`].
    pub fn candidate(&self) -> &Candidate {
        &self.candidate
    }
}

impl Report {
    pub(crate) fn new(
        task: &Task,
        stop: Stop,
        prompts: Vec<Scored>,
        dev: Vec<Score>,
        counts: Counts,
    ) -> Report {
        let seed = task.settings.search.seed;
        let table = |scores: &[Score]| (!scores.is_empty()).then(|| table_score(task, scores));
        let mut reported = prompts.iter().map(|(standing, train, test)| Reported {
            trial: standing.trial,
            choices: serde_json::to_value(&standing.point).unwrap_or(Value::Null),
            train: table_score(task, train),
            dev: None,
            test: table(test),
            candidate: standing.candidate.clone(),
        });
        let best = reported.next().map(|best| Reported { dev: table(&dev), ..best });
        let start = reported.next();
        let gain = match &prompts[..] {
            [(_, _, best), (_, _, start)] if !best.is_empty() && best.len() == start.len() => {
                let pairs = best.iter().zip(start);
                let differences: Vec<f64> = pairs.map(|(a, b)| a.accuracy - b.accuracy).collect();
                Some(bootstrap(&differences, &mut Random::stream(seed, 11)))
            }
            _ => None,
        };
        Report {
            stop,
            metric: task.metric.name(),
            is_accuracy: task.metric.has_accuracy(),
            counts,
            best,
            start,
            gain,
            damaged_answers: 0,
            seconds: 0.0,
        }
    }

    pub(crate) fn best_candidate(&self) -> Option<&Reported> {
        self.best.as_ref()
    }

    /// As JSON.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string_pretty(self).map_err(Error::setting)
    }

    /// The best prompt as a file: what to send for a text, whose columns are filled in for `{column}`.
    pub(crate) fn prompt_file(&self, task: &Task, best: &Reported) -> Result<String> {
        let messages = task.messages(&best.candidate, None);
        let columns: Vec<&str> = (task.train[0].columns().keys())
            .map(String::as_str)
            .filter(|column| *column != task.settings.data.label)
            .collect();
        let mut file = json!({
            "format": "racecars-prompt 1",
            "api": task.settings.endpoint.api,
            "model": task.settings.endpoint.model,
            "columns": columns,
            "settings": best.candidate.sampling(),
            "labels": task.words(&best.candidate),
            "metric": task.settings.metric.kind,
            "scores": { "train": best.train, "dev": best.dev, "test": best.test },
            "choices": best.choices,
        });
        match task.settings.endpoint.api {
            Api::Chat => {
                let messages = messages.into_iter();
                file["messages"] = messages
                    .map(|(role, content)| json!({"role": role, "content": content}))
                    .collect();
            }
            Api::Completions => {
                file["prompt"] = json!(messages.into_iter().next().map(|(_, text)| text));
            }
        }
        serde_json::to_string_pretty(&file).map_err(Error::setting)
    }
}

fn table_score(task: &Task, scores: &[Score]) -> TableScore {
    let accuracies: Vec<f64> = scores.iter().map(|score| score.accuracy).collect();
    let accuracy = match task.metric.has_accuracy() {
        true => wilson(accuracies.iter().sum(), scores.len()),
        false => bootstrap(&accuracies, &mut Random::stream(task.settings.search.seed, 12)),
    };
    TableScore { texts: scores.len(), value: mean(scores), accuracy }
}
