//! The score of an answer.

use crate::answer::Answer;
use crate::data::Row;
use crate::error::{Error, Result};
use crate::settings::{MetricKind, MetricSettings, Objective};
use racecars_study::process::{self, Ending, Invocation, Limits};
use regex_lite::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long a program may take to score an answer.
const PROGRAM_TIME: Duration = Duration::from_secs(60);
/// Added to the probability of each label word: one that is not among the most probable tokens has a logarithm, and a
/// few texts that the model is sure to get wrong do not outweigh all others.
const LEAST_PROBABILITY: f64 = 0.01;

/// The score of a text.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// What is maximized.
    pub value: f64,
    /// Whether the answer is right; for a program, the same as `value`.
    pub accuracy: f64,
}

/// How answers are scored.
#[derive(Debug)]
pub struct Metric {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    LabelWords { objective: Objective, top: u32 },
    Exact { ignore_case: bool },
    Regex { pattern: Regex, ignore_case: bool },
    Json { path: Vec<String>, ignore_case: bool },
    Program { command: Vec<String> },
}

/// What an answer is scored by.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The text.
    pub row: &'a Row,
    /// Its label, as in the data.
    pub label: &'a str,
    /// The words of all labels.
    pub words: &'a BTreeMap<String, String>,
}

impl Question<'_> {
    fn word(&self) -> &str {
        self.words.get(self.label).map_or(self.label, String::as_str)
    }
}

impl Metric {
    /// The metric of a file.
    pub fn new(settings: &MetricSettings) -> Result<Metric> {
        let ignore_case = settings.ignore_case;
        let kind = match settings.kind {
            MetricKind::LabelWords => Kind::LabelWords {
                objective: settings.objective.unwrap_or(Objective::LogProbability),
                top: settings.top.unwrap_or(20),
            },
            MetricKind::Exact => Kind::Exact { ignore_case },
            MetricKind::Regex => {
                let pattern = settings.pattern.as_deref().unwrap_or("");
                let pattern = Regex::new(pattern)
                    .map_err(|error| Error::setting(format!("metric.pattern: {error}")))?;
                Kind::Regex { pattern, ignore_case }
            }
            MetricKind::Json => {
                let field = settings.field.as_deref().unwrap_or("");
                let path: Vec<String> = field.split('.').map(str::to_string).collect();
                if path.iter().any(String::is_empty) {
                    return Err(Error::setting(format!(
                        "metric.field: `{field}` is not a path such as result.label"
                    )));
                }
                Kind::Json { path, ignore_case }
            }
            MetricKind::Program => {
                Kind::Program { command: settings.command.clone().unwrap_or_default() }
            }
        };
        Ok(Metric { kind })
    }

    /// How many of the most probable tokens are to be asked for.
    pub fn top_tokens(&self) -> Option<u32> {
        match self.kind {
            Kind::LabelWords { top, .. } => Some(top),
            _ => None,
        }
    }

    /// Whether every score is 0 or 1.
    pub fn is_accuracy(&self) -> bool {
        match self.kind {
            Kind::LabelWords { objective, .. } => objective == Objective::Accuracy,
            Kind::Program { .. } => false,
            _ => true,
        }
    }

    /// Whether `accuracy` of a score is a share of right answers.
    pub fn has_accuracy(&self) -> bool {
        !matches!(self.kind, Kind::Program { .. })
    }

    /// What the value is called.
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::LabelWords { objective: Objective::LogProbability, .. } => "log-probability",
            Kind::Program { .. } => "score",
            _ => "accuracy",
        }
    }

    /// The score of an answer.
    pub fn score(&self, question: Question<'_>, answer: &Answer) -> Result<Score> {
        let is_right = |found: Option<&str>, ignore_case: bool| {
            let (found, word) = (found.unwrap_or("").trim(), question.word().trim());
            match ignore_case {
                true => found.to_lowercase() == word.to_lowercase(),
                false => found == word,
            }
        };
        let is_right = match &self.kind {
            Kind::LabelWords { objective, .. } => return label_words(question, answer, *objective),
            Kind::Program { command } => return run(command, question, answer),
            Kind::Exact { ignore_case } => is_right(Some(&answer.text), *ignore_case),
            Kind::Regex { pattern, ignore_case } => {
                let found = pattern.captures(&answer.text);
                let found = found.as_ref().and_then(|found| found.get(1).or_else(|| found.get(0)));
                found.is_some() && is_right(found.map(|found| found.as_str()), *ignore_case)
            }
            Kind::Json { path, ignore_case } => {
                let found = field(&answer.text, path);
                found.is_some() && is_right(found.as_deref(), *ignore_case)
            }
        };
        let value = f64::from(u8::from(is_right));
        Ok(Score { value, accuracy: value })
    }
}

/// The field of the JSON in an answer, which may be in a fence or among other text.
fn field(text: &str, path: &[String]) -> Option<String> {
    let (from, to) = (text.find('{')?, text.rfind('}')?);
    let mut value: Value = serde_json::from_str(text.get(from..=to)?).ok()?;
    for step in path {
        value = match value {
            Value::Object(mut map) => map.remove(step)?,
            Value::Array(mut list) => {
                let index = step.parse::<usize>().ok().filter(|index| *index < list.len())?;
                list.swap_remove(index)
            }
            _ => return None,
        };
    }
    match value {
        Value::String(text) => Some(text),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

/// A token stands for the label word that it is, or that begins with it, if that is one only. An answer without any
/// label word is as bad as one that is sure of a wrong one: a prompt that never gets an answer must not pass for
/// an undecided one.
fn label_words(question: Question<'_>, answer: &Answer, objective: Objective) -> Result<Score> {
    let words = question.words;
    let (mut probabilities, mut has_word) = (vec![LEAST_PROBABILITY; words.len()], false);
    for (token, log_probability) in &answer.first_tokens {
        let token = token.trim();
        let is_of = |word: &str| word == token || (token.len() > 1 && word.starts_with(token));
        let mut of = words.values().enumerate().filter(|(_, word)| is_of(word.trim()));
        if let (Some((i, _)), None) = (of.next(), of.next()) {
            probabilities[i] += log_probability.exp();
            has_word = true;
        }
    }
    let Some(right) = words.keys().position(|label| label == question.label) else {
        return Err(Error::setting(format!("label `{}` has no word", question.label)));
    };
    let total: f64 = probabilities.iter().sum();
    let others = probabilities.iter().enumerate().filter(|(i, _)| *i != right).map(|(_, p)| *p);
    // A tie is wrong.
    let is_right = others.fold(f64::NEG_INFINITY, f64::max) < probabilities[right];
    let accuracy = f64::from(u8::from(is_right));
    let value = match objective {
        Objective::LogProbability if has_word => (probabilities[right] / total).ln(),
        Objective::LogProbability => LEAST_PROBABILITY.ln(),
        Objective::Accuracy => accuracy,
    };
    Ok(Score { value, accuracy })
}

/// Runs the program, which reads an object with the text, the label and the answer, and prints a number.
fn run(command: &[String], question: Question<'_>, answer: &Answer) -> Result<Score> {
    let input = serde_json::json!({
        "text": question.row.columns(),
        "label": question.label,
        "word": question.word(),
        "answer": answer.text,
    });
    let (arguments, input) = (command.to_vec(), Some(format!("{input}\n")));
    let invocation = Invocation { arguments, input, ..Invocation::default() };
    let limits = Limits { time: Some(PROGRAM_TIME), memory: None };
    let program = &command[0];
    let refuse = |what: String| Err(Error::setting(format!("metric.command: {program} {what}")));
    let finished = process::run(&invocation, limits, &AtomicBool::new(false));
    let finished = match finished {
        Ok(finished) => finished,
        Err(error) => return refuse(format!("could not be run: {error}")),
    };
    let said = || finished.stderr.text.trim().lines().next_back().unwrap_or("").to_string();
    match &finished.ending {
        Ending::Exit(0) => {}
        Ending::Exit(code) => return refuse(format!("ended with exit code {code}: {}", said())),
        Ending::NotStarted(why) => return refuse(format!("could not be started: {why}")),
        Ending::Timeout => return refuse("took longer than 60 s".to_string()),
        _ => return refuse(format!("was ended: {}", said())),
    }
    let last = finished.stdout.text.trim().lines().next_back().unwrap_or("").trim().to_string();
    match last.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Score { value, accuracy: value }),
        _ => refuse(format!("printed {last:?} as its last line, which is not a finite number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str, tokens: &[(&str, f64)]) -> Answer {
        let first_tokens = tokens.iter().map(|(token, p)| (token.to_string(), p.ln())).collect();
        Answer { text: text.to_string(), first_tokens, ..Answer::default() }
    }

    fn score(settings: &str, answer: &Answer) -> Result<Score> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tsv");
        std::fs::write(&path, "text\tlabel\nx\t1\n").unwrap();
        let row = &crate::data::read(&path, &[]).unwrap()[0];
        let words = [("0", "terrible"), ("1", "great")];
        let words = words.map(|(label, word)| (label.to_string(), word.to_string())).into();
        let metric = Metric::new(&toml::from_str(settings).unwrap())?;
        metric.score(Question { row, label: "1", words: &words }, answer)
    }

    fn value(settings: &str, text: &str) -> f64 {
        score(settings, &answer(text, &[])).unwrap().value
    }

    #[test]
    fn texts_are_compared() {
        assert_eq!(value("kind = 'exact'", " great\n"), 1.0);
        assert_eq!(value("kind = 'exact'", "Great"), 0.0);
        assert_eq!(value("kind = 'exact'\nignore_case = true", "Great"), 1.0);
        let regex = "kind = 'regex'\npattern = 'answer: (\\w+)'";
        assert_eq!(value(regex, "I think answer: great."), 1.0);
        assert_eq!(value(regex, "great"), 0.0);
        let json = "kind = 'json'\nfield = 'result.0.label'";
        assert_eq!(value(json, "```json\n{\"result\": [{\"label\": \"great\"}]}\n```"), 1.0);
        assert_eq!(value(json, "{\"result\": []}"), 0.0);
        assert_eq!(value(json, "{\"result\": [{\"label\": \"gre"), 0.0);
        assert!(Metric::new(&toml::from_str("kind = 'regex'\npattern = '('").unwrap()).is_err());
    }

    #[test]
    fn label_words_are_found_among_the_tokens() {
        let settings = "kind = 'label-words'";
        let tokens = [(" great", 0.3), (" terr", 0.1), ("the", 0.4), ("t", 0.1)];
        let found = score(settings, &answer("", &tokens)).unwrap();
        assert!((found.value - (0.31f64 / 0.42).ln()).abs() < 1e-9, "{found:?}");
        assert_eq!(found.accuracy, 1.0);
        let none = score(settings, &answer("", &[("a", 1.0)])).unwrap();
        assert_eq!((none.value, none.accuracy), (LEAST_PROBABILITY.ln(), 0.0));
        let wrong = score(settings, &answer("", &[("terrible", 1.0)])).unwrap();
        assert!((wrong.value - none.value).abs() < 0.02, "{wrong:?}");
    }

    #[cfg(unix)]
    #[test]
    fn a_program_prints_the_score() {
        let program = |script: &str| {
            let settings = format!("kind = 'program'\ncommand = ['sh', '-c', '{script}']");
            score(&settings, &answer("yes", &[]))
        };
        assert_eq!(program("grep -c yes").unwrap().value, 1.0);
        for (script, what) in [
            ("echo nan", "not a finite number"),
            ("echo bad >&2; exit 3", "exit code 3: bad"),
            ("true", "printed \"\""),
        ] {
            let error = program(script).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }
}
