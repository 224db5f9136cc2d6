//! The file of a search of prompts, as people write it in TOML. [`Task`](crate::task::Task) is made of it.

use crate::error::{Error, Result};
use racecars::Algorithm;
use racecars_study::units::Time;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a file says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Where the model is.
    pub endpoint: EndpointSettings,
    /// The templates.
    pub prompt: PromptSettings,
    /// Named texts to choose from, or ranges of numbers; templates have them as `{name}`.
    #[serde(default)]
    pub choices: toml::Table,
    /// Examples within the prompt.
    pub examples: Option<ExampleSettings>,
    /// The texts.
    pub data: DataSettings,
    /// What the labels of the data are called in prompts and answers.
    pub labels: Option<LabelSettings>,
    /// How an answer is scored.
    #[serde(default)]
    pub metric: MetricSettings,
    /// Fields of the request such as `temperature`: fixed, or ranges to search.
    #[serde(default)]
    pub sampling: toml::Table,
    /// How prompts are searched.
    #[serde(default)]
    pub search: SearchSettings,
    /// New instructions that a model writes during the search.
    pub propose: Option<ProposeSettings>,
    /// What may be spent.
    pub limits: LimitSettings,
}

/// Which requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// `POST /chat/completions`.
    Chat,
    /// `POST /completions`.
    Completions,
}

/// `[endpoint]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointSettings {
    /// The address, up to and with `/v1`.
    pub url: String,
    /// Which requests are sent.
    #[serde(default = "chat")]
    pub api: Api,
    /// The model's name.
    pub model: String,
    /// The environment variable that has the key.
    pub key_variable: Option<String>,
    /// How long an answer may take.
    #[serde(default = "minute", deserialize_with = "time")]
    pub timeout: Time,
    /// How often a request is sent again that failed for a passing reason.
    #[serde(default = "six")]
    pub retries: u32,
    /// The price of a million tokens of prompts.
    pub input_price: Option<f64>,
    /// The price of a million tokens of answers.
    pub output_price: Option<f64>,
}

fn chat() -> Api {
    Api::Chat
}

fn minute() -> Time {
    // A constant that can be read.
    "60s".parse().unwrap_or_else(|_: String| unreachable!())
}

fn six() -> u32 {
    6
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

/// `[prompt]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptSettings {
    /// The system message of a chat.
    pub system: Option<String>,
    /// The user's message of a chat, or the text to complete.
    pub template: String,
    /// How an example is written, where `template` or `system` has `{examples}`.
    pub example: Option<String>,
}

/// `[examples]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExampleSettings {
    /// The table that examples are taken from; the training texts if not given.
    pub file: Option<PathBuf>,
    /// How many of its rows are used: a random choice with the seed.
    pub pool: Option<usize>,
    /// How many examples a prompt has: `4`, or from and to, `0..4`.
    pub count: Count,
}

/// A number, or from and to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// At least.
    pub least: usize,
    /// At most.
    pub most: usize,
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Given {
            Number(usize),
            Text(String),
        }
        let parse = |text: &str| text.trim().parse::<usize>().ok();
        let given = Given::deserialize(deserializer)?;
        let (least, most) = match &given {
            Given::Number(number) => (Some(*number), Some(*number)),
            Given::Text(text) => match text.split_once("..") {
                Some((least, most)) => (parse(least), parse(most)),
                None => (parse(text), parse(text)),
            },
        };
        match (least, most) {
            (Some(least), Some(most)) if least <= most && most > 0 => Ok(Count { least, most }),
            _ => Err(serde::de::Error::custom(
                "a number of examples is a whole number above 0, or from and to such as \"0..4\"",
            )),
        }
    }
}

/// `[data]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSettings {
    /// The texts that prompts are searched on.
    pub train: PathBuf,
    /// The texts that choose among the best.
    pub dev: Option<PathBuf>,
    /// The texts of the report, which choose nothing.
    pub test: Option<PathBuf>,
    /// The column of the label.
    #[serde(default = "label")]
    pub label: String,
    /// How many training texts are used.
    pub train_texts: Option<usize>,
    /// How many development texts are used.
    pub dev_texts: Option<usize>,
    /// How many test texts are used.
    pub test_texts: Option<usize>,
}

fn label() -> String {
    "label".to_string()
}

/// `[labels]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelSettings {
    /// The word of each label, or several such tables to choose from.
    pub words: Words,
}

/// One table of words, or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Words {
    /// One.
    One(BTreeMap<String, String>),
    /// Several to choose from.
    Several(Vec<BTreeMap<String, String>>),
}

/// How an answer is scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetricKind {
    /// By the log-probabilities of the label words as the first token of the answer.
    LabelWords,
    /// The answer is the label's word.
    #[default]
    Exact,
    /// What a regular expression finds in the answer is the label's word.
    Regex,
    /// A field of the answer, which is JSON, is the label's word.
    Json,
    /// A program prints the score.
    Program,
}

/// What is maximized with [`MetricKind::LabelWords`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The mean logarithm of the probability that the right word has among the label words.
    LogProbability,
    /// The share of texts whose right word is the most probable.
    Accuracy,
}

/// `[metric]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricSettings {
    /// How an answer is scored.
    #[serde(default)]
    pub kind: MetricKind,
    /// What is maximized with label words.
    pub objective: Option<Objective>,
    /// How many of the most probable tokens are asked for with label words.
    pub top: Option<u32>,
    /// The regular expression; its first group, or all of it, is compared.
    pub pattern: Option<String>,
    /// The path of the field, such as `result.label`.
    pub field: Option<String>,
    /// The program and its arguments.
    pub command: Option<Vec<String>>,
    /// Whether upper and lower case are the same.
    #[serde(default)]
    pub ignore_case: bool,
}

/// `[search]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SearchSettings {
    /// The algorithm; if not given, `gp(design=12)`, and `auto` for more than 300 prompts or 1000 coordinates.
    #[serde(deserialize_with = "algorithm")]
    pub algorithm: Option<Algorithm>,
    /// The seed.
    pub seed: u64,
    /// How many prompts are looked at; the algorithm plans with it.
    pub candidates: Option<u64>,
    /// The texts of a minibatch.
    pub batch: usize,
    /// The level of the test that drops a prompt; 0: none is dropped.
    pub drop_level: f64,
    /// How many prompts the development texts choose from.
    pub finalists: usize,
}

impl Default for SearchSettings {
    fn default() -> Self {
        SearchSettings {
            algorithm: None,
            seed: 0,
            candidates: None,
            batch: 4,
            drop_level: 0.3,
            finalists: 5,
        }
    }
}

fn algorithm<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Algorithm>, D::Error> {
    let name = String::deserialize(deserializer)?;
    name.parse().map(Some).map_err(serde::de::Error::custom)
}

/// `[propose]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposeSettings {
    /// The choice that gets new texts.
    pub choice: String,
    /// How many.
    pub count: usize,
    /// What the task is, in a sentence, for the model that writes them.
    pub task: Option<String>,
    /// The temperature of these requests.
    #[serde(default = "one")]
    pub temperature: f64,
}

fn one() -> f64 {
    1.0
}

/// `[limits]`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSettings {
    /// The number of calls, report included.
    pub calls: u64,
    /// The number of tokens, of prompts and answers.
    pub tokens: Option<u64>,
    /// The sum of the prices.
    pub money: Option<f64>,
}

impl Settings {
    /// Reads the file at `path`. Paths in it are relative to its folder.
    pub fn read(path: &Path) -> Result<Settings> {
        let text =
            std::fs::read_to_string(path).map_err(|error| Error::system("read", path, error))?;
        let mut settings = Settings::parse(&text)
            .map_err(|error| Error::setting(format!("{}: {error}", path.display())))?;
        let base = path.parent().unwrap_or(Path::new("."));
        let data = &mut settings.data;
        let mut paths = vec![&mut data.train];
        paths.extend(data.dev.as_mut());
        paths.extend(data.test.as_mut());
        paths.extend(settings.examples.as_mut().and_then(|examples| examples.file.as_mut()));
        for path in paths {
            *path = base.join(&*path);
        }
        Ok(settings)
    }

    /// Reads settings, whose paths stay as they are.
    pub fn parse(text: &str) -> Result<Settings> {
        let settings: Settings = toml::from_str(text).map_err(Error::setting)?;
        settings.check()?;
        Ok(settings)
    }

    /// Checks what needs no data.
    fn check(&self) -> Result<()> {
        let refuse = |what: &str| Err(Error::setting(what));
        let EndpointSettings { url, model, input_price, output_price, .. } = &self.endpoint;
        let Some((scheme, rest)) = url.split_once("://") else {
            return refuse("endpoint.url begins with neither http:// nor https://");
        };
        if !matches!(scheme, "http" | "https") {
            return refuse("endpoint.url begins with neither http:// nor https://");
        }
        let host = rest.split('/').next().unwrap_or("");
        if host.contains('@') {
            return refuse(
                "endpoint.url has a user or password, which would be written to disk: name an environment \
                 variable with the key by endpoint.key_variable",
            );
        }
        if host.is_empty() || url.contains(['?', '#', ' ']) {
            return refuse("endpoint.url is an address such as http://127.0.0.1:8080/v1");
        }
        if model.trim().is_empty() {
            return refuse("endpoint.model is empty");
        }
        if let Some(name) = &self.endpoint.key_variable {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(is_name) {
                // Somebody may have put the key itself here: it is not shown.
                return refuse(
                    "endpoint.key_variable is the name of an environment variable, such as OPENAI_API_KEY, and \
                     not the key itself",
                );
            }
        }
        for (name, price) in [("input_price", input_price), ("output_price", output_price)] {
            if price.is_some_and(|price| !(price.is_finite() && price >= 0.0)) {
                return Err(Error::setting(format!("endpoint.{name} is not a number from 0 on")));
            }
        }
        let LimitSettings { calls, tokens, money } = self.limits;
        if calls == 0 || tokens == Some(0) {
            return refuse("limits.calls and limits.tokens are at least 1");
        }
        if money.is_some_and(|money| !(money.is_finite() && money > 0.0)) {
            return refuse("limits.money is a number above 0");
        }
        if money.is_some() && (input_price.is_none() || output_price.is_none()) {
            return refuse(
                "limits.money needs endpoint.input_price and endpoint.output_price, for a million tokens",
            );
        }
        let SearchSettings { batch, drop_level, finalists, candidates, .. } = self.search;
        if batch == 0 || finalists == 0 || candidates == Some(0) {
            return refuse("search.batch, search.finalists and search.candidates are at least 1");
        }
        if !(0.0..0.5).contains(&drop_level) {
            return refuse("search.drop_level is a probability from 0 to below 0.5");
        }
        if self.prompt.system.is_some() && self.endpoint.api == Api::Completions {
            return refuse(
                "prompt.system is for chats: with endpoint.api = \"completions\" put it into template",
            );
        }
        self.check_metric()
    }

    fn check_metric(&self) -> Result<()> {
        let MetricSettings { kind, objective, top, pattern, field, command, ignore_case } =
            &self.metric;
        let label_words = *kind == MetricKind::LabelWords;
        let comparing = matches!(kind, MetricKind::Exact | MetricKind::Regex | MetricKind::Json);
        for (key, is_given, is_needed, is_allowed) in [
            ("objective", objective.is_some(), false, label_words),
            ("top", top.is_some(), false, label_words),
            ("pattern", pattern.is_some(), *kind == MetricKind::Regex, *kind == MetricKind::Regex),
            ("field", field.is_some(), *kind == MetricKind::Json, *kind == MetricKind::Json),
            (
                "command",
                command.is_some(),
                *kind == MetricKind::Program,
                *kind == MetricKind::Program,
            ),
            ("ignore_case", *ignore_case, false, comparing),
        ] {
            let kind = serde_json::to_string(kind).unwrap_or_default();
            if is_given && !is_allowed {
                return Err(Error::setting(format!("metric.{key} is not for kind = {kind}")));
            }
            if is_needed && !is_given {
                return Err(Error::setting(format!(
                    "metric.{key} is missing; kind = {kind} needs it"
                )));
            }
        }
        if top.is_some_and(|top| top == 0) || command.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::setting("metric.top and metric.command are not empty"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
        endpoint = { url = "http://127.0.0.1:1/v1", model = "m" }
        prompt = { template = "{text}" }
        data = { train = "train.tsv" }
        limits = { calls = 10 }
    "#;

    #[test]
    fn the_smallest_file_has_defaults() {
        let settings = Settings::parse(SMALL).unwrap();
        assert_eq!(settings.endpoint.api, Api::Chat);
        assert_eq!((settings.search.batch, settings.data.label.as_str()), (4, "label"));
    }

    #[test]
    fn mistakes_are_named() {
        for (from, to, what) in [
            ("http:", "ftp:", "neither http:// nor https://"),
            ("127.0.0.1", "me:secret@host", "has a user or password"),
            ("calls = 10", "calls = 0", "at least 1"),
            ("calls = 10", "calls = 10, money = 1", "needs endpoint.input_price"),
            ("calls = 10", "call = 10", "unknown field `call`"),
            ("model = \"m\"", "model = \"m\", key_variable = \"sk-12\"", "not the key itself"),
            ("model = \"m\"", "model = \"m\", timeout = \"soon\"", "not a positive time"),
            ("limits", "metric = { kind = \"regex\" }\nlimits", "metric.pattern is missing"),
            ("limits", "metric = { field = \"a\" }\nlimits", "not for kind = \"exact\""),
            ("limits", "search = { algorithm = \"x\" }\nlimits", "x"),
            ("limits", "search = { drop_level = 0.7 }\nlimits", "from 0 to below 0.5"),
            ("limits", "examples = { count = \"4..2\" }\nlimits", "from and to"),
        ] {
            let error = Settings::parse(&SMALL.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(what), "{to}: {error}");
            assert!(!error.contains("sk-12") && !error.contains("secret"), "{error}");
        }
    }
}
