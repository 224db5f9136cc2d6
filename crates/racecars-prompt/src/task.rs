//! A search of prompts, checked and complete: what there is to choose, the texts, and the request that a
//! candidate makes of a text.
//!
//! A candidate is a point of a [`Space`]. Choices of texts are numbers from 1, in the order of the file; `pick`
//! is a subset of the pool of examples, `order` a permutation, and fields of the request have their own names.

use crate::data::{self, Row};
use crate::error::{Error, Result};
use crate::metric::{Metric, Question};
use crate::settings::{Api, Settings, Words};
use crate::template::Template;
use racecars::random::Random;
use racecars::{Domain, Space, Value, Values};
use racecars_study::{NamedPoint, Parameter};
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// The name of the coordinate with the chosen examples.
const PICK: &str = "pick";
/// The name of the coordinate with their order.
const ORDER: &str = "order";
/// The name of the coordinate with the label words.
const WORDS: &str = "words";

/// See the module.
#[derive(Debug)]
pub struct Task {
    /// What the file says.
    pub settings: Settings,
    /// What is searched.
    pub space: Space,
    /// The training texts, in the order in which they are used.
    pub train: Vec<Row>,
    /// The development texts.
    pub dev: Vec<Row>,
    /// The test texts.
    pub test: Vec<Row>,
    /// How answers are scored.
    pub metric: Metric,
    pool: Vec<Row>,
    system: Option<Template>,
    template: Template,
    example: Option<Template>,
    choices: Vec<Choice>,
    words: Vec<BTreeMap<String, String>>,
    /// Fields of the request that are the same in all.
    fixed: Map<String, Json>,
    /// Those that are searched.
    searched: Vec<String>,
}

#[derive(Debug)]
struct Choice {
    name: String,
    /// The texts to choose from; empty for a range of numbers. Those that are written during the search come
    /// after these.
    texts: Vec<String>,
}

/// A candidate: a prompt without a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The text of each choice.
    chosen: BTreeMap<String, String>,
    /// Choices that have no text yet: the name and the number among those to be written, from 0.
    open: Vec<(String, usize)>,
    examples: Vec<usize>,
    words: usize,
    sampling: Map<String, Json>,
}

impl Task {
    /// Reads the data and checks everything.
    pub fn new(settings: Settings) -> Result<Task> {
        let metric = Metric::new(&settings.metric)?;
        let label = settings.data.label.clone();
        let read =
            |path: &std::path::Path, texts: Option<usize>, stream: u64| -> Result<Vec<Row>> {
                let rows = data::read(path, &[&label])?;
                let mut random = Random::stream(settings.search.seed, stream);
                let mut rows = data::shuffled(rows, &label, &mut random);
                rows.truncate(texts.unwrap_or(usize::MAX));
                match rows.is_empty() {
                    true => Err(Error::setting(
                        "data.train_texts, dev_texts and test_texts are at least 1",
                    )),
                    false => Ok(rows),
                }
            };
        let data = &settings.data;
        let train = read(&data.train, data.train_texts, 1)?;
        let optional = |path: &Option<std::path::PathBuf>, texts, stream| {
            path.as_ref().map_or(Ok(Vec::new()), |path| read(path, texts, stream))
        };
        let dev = optional(&data.dev, data.dev_texts, 2)?;
        let test = optional(&data.test, data.test_texts, 3)?;
        let pool = match &settings.examples {
            None => Vec::new(),
            Some(examples) => match &examples.file {
                Some(file) => read(file, examples.pool, 4)?,
                None => train.iter().take(examples.pool.unwrap_or(usize::MAX)).cloned().collect(),
            },
        };
        let words = words(&settings, &label, [&train, &dev, &test, &pool])?;
        let parse = |place: &str, text: &Option<String>| {
            text.as_ref().map(|text| Template::parse(place, text)).transpose()
        };
        let system = parse("prompt.system", &settings.prompt.system)?;
        let template = Template::parse("prompt.template", &settings.prompt.template)?;
        let example = parse("prompt.example", &settings.prompt.example)?;
        let (choices, choice_space) = choices(&settings)?;
        let (fixed, searched, mut parameters) = sampling(&settings, &metric)?;
        parameters.splice(0..0, choice_space);
        if words.len() > 1 {
            parameters.push(numbered(WORDS, words.len())?);
        }
        if let Some(examples) = &settings.examples {
            parameters.extend(example_parameters(examples.count, pool.len())?);
        }
        let space = space(&parameters)?;
        let task = Task {
            settings,
            space,
            train,
            dev,
            test,
            metric,
            pool,
            system,
            template,
            example,
            choices,
            words,
            fixed,
            searched,
        };
        task.check_templates()?;
        Ok(task)
    }

    fn check_templates(&self) -> Result<()> {
        let refuse = |what: String| Err(Error::setting(what));
        let columns: Vec<&str> = self.train[0].columns().keys().map(String::as_str).collect();
        let chosen: Vec<&str> = self.choices.iter().map(|choice| choice.name.as_str()).collect();
        for name in &chosen {
            if columns.contains(name) || ["examples", "label"].contains(name) {
                return refuse(format!(
                    "choices.{name} has the name of something else in templates"
                ));
            }
        }
        let label = self.settings.data.label.as_str();
        let texts: Vec<&str> = columns.iter().copied().filter(|column| *column != label).collect();
        let all = [("prompt.system", &self.system), ("prompt.example", &self.example)];
        let all = all.into_iter().filter_map(|(place, template)| Some((place, template.as_ref()?)));
        for (place, template) in all.chain([("prompt.template", &self.template)]) {
            let is_example = place == "prompt.example";
            let extra = if is_example { "label" } else { "examples" };
            for name in template.names() {
                if name == label && !is_example {
                    return refuse(format!(
                        "{place} has {{{name}}}, the label that is to be found"
                    ));
                }
                if !texts.contains(&name) && !chosen.contains(&name) && name != extra {
                    let names = [&texts[..], &chosen[..], &[extra]].concat().join("}, {");
                    return refuse(format!("{place} has {{{name}}}; there are {{{names}}}"));
                }
            }
        }
        // Tables other than the first may have other columns.
        let asked = [Some(&self.template), self.system.as_ref()];
        let shown = [self.example.as_ref().or(Some(&self.template)), None];
        for (place, rows, templates) in [
            ("data.dev", &self.dev, asked),
            ("data.test", &self.test, asked),
            ("the pool of examples", &self.pool, shown),
        ] {
            let Some(row) = rows.first() else { continue };
            let mut needed = templates.into_iter().flatten().flat_map(Template::names);
            if let Some(name) = needed.find(|name| texts.contains(name) && row.get(name).is_none())
            {
                let names: Vec<&str> = row.columns().keys().map(String::as_str).collect();
                return refuse(format!(
                    "{place} has no column `{name}`, which a template has; there are {}",
                    names.join(", ")
                ));
            }
        }
        let used = |name: &str| {
            let all = [Some(&self.template), self.system.as_ref(), self.example.as_ref()];
            all.into_iter().flatten().any(|template| template.has(name))
        };
        if let Some(name) = chosen.iter().find(|name| !used(name)) {
            return refuse(format!(
                "choices.{name} is in no template: put {{{name}}} where it belongs"
            ));
        }
        if !texts.iter().any(|name| self.template.has(name)) {
            let names = texts.join("}, {");
            return refuse(format!("prompt.template has no column of the data: {{{names}}}"));
        }
        let has_examples = used("examples");
        match (self.settings.examples.is_some(), &self.example, has_examples) {
            (true, None, true) => refuse("prompt.example is missing: how an example is written".to_string()),
            (true, _, false) if self.settings.endpoint.api == Api::Completions => {
                refuse("[examples] is given, and prompt.template has no {examples}".to_string())
            }
            (true, Some(_), false) => refuse(
                "prompt.example is given, and no template has {examples}; without both, examples are \
                 earlier turns of the chat"
                    .to_string(),
            ),
            (false, _, true) => refuse("a template has {examples}, and [examples] is missing".to_string()),
            (false, Some(_), _) => refuse("prompt.example is given, and [examples] is missing".to_string()),
            _ => Ok(()),
        }
    }

    /// The prompt that others are compared with: the first text of each choice, the fewest examples, the middle
    /// of each range.
    pub fn start(&self) -> Result<Vec<f64>> {
        let mut values: Vec<(String, Values)> = Vec::new();
        for entry in self.space.entries() {
            let name = entry.name();
            let value = match (name, entry.domain()) {
                (PICK, _) if self.settings.examples.is_some() => {
                    let least = self.settings.examples.as_ref().map_or(0, |e| e.count.least);
                    Values::Many((1..=least as i64).map(Value::Integer).collect())
                }
                (_, Domain::Categorical(values)) if entry.structure().is_none() => {
                    Values::One(values[0].clone())
                }
                _ => self.space.middle(entry),
            };
            values.push((name.to_string(), value));
        }
        Ok(self.space.encode(values)?)
    }

    /// The candidate of a point.
    pub fn candidate(&self, point: &[f64]) -> Result<Candidate> {
        let point = NamedPoint::decode(&self.space, point);
        let value =
            |name: &str| point.values().iter().find(|(other, _)| other == name).map(|(_, v)| v);
        let number = |name: &str| match value(name) {
            Some(Values::One(value)) => value.as_integer().unwrap_or(1).max(1) as usize - 1,
            _ => 0,
        };
        let (mut chosen, mut open) = (BTreeMap::new(), Vec::new());
        for choice in &self.choices {
            let text = match choice.texts.is_empty() {
                true => value(&choice.name).map(Values::to_string),
                false => choice.texts.get(number(&choice.name)).cloned(),
            };
            match text {
                Some(text) => drop(chosen.insert(choice.name.clone(), text)),
                None => open.push((choice.name.clone(), number(&choice.name) - choice.texts.len())),
            }
        }
        let examples = match (value(PICK), value(ORDER), self.pool.is_empty()) {
            (Some(Values::Many(pick)), order, false) => ordered(pick, order),
            _ => Vec::new(),
        };
        let mut sampling = self.fixed.clone();
        for name in &self.searched {
            if let Some(Values::One(value)) = value(name) {
                sampling.insert(name.clone(), json!(value));
            }
        }
        let words = if self.words.len() > 1 { number(WORDS) } else { 0 };
        Ok(Candidate { chosen, open, examples, words, sampling })
    }

    /// The texts of a choice that the file has.
    pub(crate) fn texts(&self, name: &str) -> &[String] {
        let choice = self.choices.iter().find(|choice| choice.name == name);
        choice.map_or(&[], |choice| &choice.texts)
    }

    /// What an answer about a row is scored by.
    pub fn question<'a>(&'a self, candidate: &Candidate, row: &'a Row) -> Question<'a> {
        let label = row.get(&self.settings.data.label).unwrap_or("");
        Question { row, label, words: &self.words[candidate.words] }
    }

    /// The word of a row's label.
    pub(crate) fn word(&self, candidate: &Candidate, row: &Row) -> String {
        let Question { label, words, .. } = self.question(candidate, row);
        words.get(label).map_or(label, String::as_str).to_string()
    }

    /// The words of the labels that a candidate uses.
    pub fn words(&self, candidate: &Candidate) -> &BTreeMap<String, String> {
        &self.words[candidate.words]
    }

    /// The messages of a chat, or one without a role for a text to complete. Without a row, its columns stay
    /// as `{column}`.
    pub fn messages(
        &self,
        candidate: &Candidate,
        row: Option<&Row>,
    ) -> Vec<(&'static str, String)> {
        // What is asked about is no example for itself.
        let is_other = |i: &&usize| row.is_none_or(|row| self.pool[**i] != *row);
        let examples: Vec<&Row> =
            candidate.examples.iter().filter(is_other).map(|i| &self.pool[*i]).collect();
        let chosen = |name: &str| candidate.chosen.get(name).map(String::as_str);
        let written: String = match &self.example {
            None => String::new(),
            Some(example) => (examples.iter())
                .map(|row| {
                    let word = self.word(candidate, row);
                    let label = self.settings.data.label.as_str();
                    example.fill(|name| match name {
                        "label" => Some(&word),
                        name if name == label => Some(&word),
                        name => chosen(name).or_else(|| row.get(name)),
                    })
                })
                .collect(),
        };
        let fill = |template: &Template, row: Option<&Row>| {
            let columns = row.map(Row::columns);
            template.fill(|name| match name {
                "examples" => Some(&written),
                name => chosen(name)
                    .or_else(|| columns.and_then(|columns| columns.get(name)).map(String::as_str)),
            })
        };
        if self.settings.endpoint.api == Api::Completions {
            return vec![("", fill(&self.template, row))];
        }
        let mut messages = Vec::new();
        messages.extend(self.system.as_ref().map(|system| ("system", fill(system, row))));
        if self.example.is_none() {
            for example in examples {
                messages.push(("user", fill(&self.template, Some(example))));
                messages.push(("assistant", self.word(candidate, example)));
            }
        }
        messages.push(("user", fill(&self.template, row)));
        messages
    }

    /// The body of the request about a row.
    pub fn body(&self, candidate: &Candidate, row: &Row) -> String {
        let messages = self.messages(candidate, Some(row));
        self.body_of(messages, &candidate.sampling, self.metric.top_tokens())
    }

    /// The body of a request.
    pub(crate) fn body_of(
        &self,
        messages: Vec<(&'static str, String)>,
        sampling: &Map<String, Json>,
        top: Option<u32>,
    ) -> String {
        let mut body = Map::new();
        body.insert("model".to_string(), json!(self.settings.endpoint.model));
        let is_chat = self.settings.endpoint.api == Api::Chat;
        if is_chat {
            let messages = messages.into_iter();
            let messages =
                messages.map(|(role, content)| json!({"role": role, "content": content}));
            body.insert("messages".to_string(), messages.collect());
        } else {
            let text = messages.into_iter().next().map(|(_, text)| text).unwrap_or_default();
            body.insert("prompt".to_string(), json!(text));
        }
        body.extend(sampling.iter().map(|(name, value)| (name.clone(), value.clone())));
        match top {
            Some(top) if is_chat => {
                body.insert("logprobs".to_string(), json!(true));
                body.insert("top_logprobs".to_string(), json!(top));
            }
            Some(top) => drop(body.insert("logprobs".to_string(), json!(top))),
            None => {}
        }
        Json::Object(body).to_string()
    }

    /// The most tokens that an answer may have.
    pub(crate) fn answer_tokens(&self, candidate: &Candidate) -> u64 {
        let names = ["max_tokens", "max_completion_tokens"];
        let most = names.iter().filter_map(|name| candidate.sampling.get(*name)?.as_f64());
        most.fold(f64::NAN, f64::min).max(1.0) as u64
    }

    /// The most tokens and money that a request of the first prompt about the first text can cost.
    pub(crate) fn most_of_request(&self) -> Result<(u64, f64)> {
        let start = self.candidate(&self.start()?)?;
        let prompt = self.body(&start, &self.train[0]).len() as u64;
        let answer = self.answer_tokens(&start);
        let price = |price: Option<f64>| price.unwrap_or(0.0) / 1e6;
        let endpoint = &self.settings.endpoint;
        let cost = |tokens: u64, each: Option<f64>| tokens as f64 * price(each);
        let money = cost(prompt, endpoint.input_price) + cost(answer, endpoint.output_price);
        Ok((prompt + answer, money))
    }

    /// The number of calls for choosing among the best, and for the report.
    pub fn final_calls(&self) -> u64 {
        (self.settings.search.finalists * self.dev.len() + 2 * self.test.len()) as u64
    }

    /// How many development and test texts are in a table that the search has used before: scores on these are too
    /// good. Each with the names of the two tables.
    pub fn shared_texts(&self) -> Vec<(&'static str, &'static str, usize)> {
        let label = self.settings.data.label.as_str();
        let texts = |row: &Row| -> Vec<String> {
            row.columns()
                .iter()
                .filter(|(name, _)| *name != label)
                .map(|(_, t)| t.clone())
                .collect()
        };
        let [train, dev] =
            [&self.train, &self.dev].map(|rows| rows.iter().map(texts).collect::<BTreeSet<_>>());
        let shared = |rows: &[Row], earlier: &BTreeSet<Vec<String>>| {
            rows.iter().filter(|row| earlier.contains(&texts(row))).count()
        };
        let pairs = [
            ("development", "training", shared(&self.dev, &train)),
            ("test", "training", shared(&self.test, &train)),
            ("test", "development", shared(&self.test, &dev)),
        ];
        pairs.into_iter().filter(|(_, _, count)| *count > 0).collect()
    }

    /// Hashes of what must stay the same in a study, by the name of the part.
    pub fn fingerprints(&self) -> BTreeMap<&'static str, String> {
        let Settings { endpoint, prompt, search, propose, .. } = &self.settings;
        let hash = |parts: &dyn std::fmt::Debug| {
            let hash = Sha256::digest(format!("{parts:?}").as_bytes());
            hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        BTreeMap::from([
            ("[endpoint] url, api or model", hash(&(&endpoint.url, endpoint.api, &endpoint.model))),
            ("[prompt]", hash(&prompt)),
            (
                "[choices] or propose.count",
                hash(&(&self.choices, propose.as_ref().map(|propose| propose.count))),
            ),
            ("the training texts", hash(&self.train)),
            ("the pool of examples", hash(&self.pool)),
            (
                "examples.count",
                hash(&self.settings.examples.as_ref().map(|e| (e.count.least, e.count.most))),
            ),
            ("[labels]", hash(&self.words)),
            ("[metric]", hash(&self.settings.metric)),
            ("[sampling]", hash(&self.settings.sampling.to_string())),
            (
                "[search] batch, drop_level or seed",
                hash(&(search.batch, search.drop_level.to_bits(), search.seed)),
            ),
        ])
    }
}

impl Candidate {
    /// The choices that have no text yet.
    pub(crate) fn open(&self) -> &[(String, usize)] {
        &self.open
    }

    /// Puts a text where there was none.
    pub(crate) fn write(&mut self, name: &str, text: String) {
        self.open.retain(|(other, _)| other != name);
        self.chosen.insert(name.to_string(), text);
    }

    /// The text of a choice.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.chosen.get(name).map(String::as_str)
    }

    /// The fields of the request.
    pub fn sampling(&self) -> &Map<String, Json> {
        &self.sampling
    }

    /// The number of examples.
    pub fn examples(&self) -> usize {
        self.examples.len()
    }
}

/// The picked examples, by position from 0, as the permutation has them: the first of `k` picked ones comes
/// where 0 is among the numbers below `k`, and so on.
fn ordered(pick: &[Value], order: Option<&Values>) -> Vec<usize> {
    let mut pick: Vec<usize> =
        pick.iter().filter_map(Value::as_integer).map(|i| i.max(1) as usize - 1).collect();
    pick.sort_unstable();
    let Some(Values::Many(order)) = order else { return pick };
    let ranks = order.iter().filter_map(Value::as_integer);
    ranks.filter_map(|rank| pick.get(rank as usize).copied()).collect()
}

/// A choice among the numbers from 1 to `count`.
fn numbered(name: &str, count: usize) -> Result<Parameter> {
    let numbers: Vec<String> = (1..=count).map(|i| i.to_string()).collect();
    Ok(Parameter::new(name, &numbers.join(","))?)
}

fn choices(settings: &Settings) -> Result<(Vec<Choice>, Vec<Parameter>)> {
    let (mut choices, mut parameters) = (Vec::new(), Vec::new());
    let proposed = settings.propose.as_ref();
    if let Some(propose) = proposed
        && (!settings.choices.get(&propose.choice).is_some_and(toml::Value::is_array)
            || propose.count == 0)
    {
        return Err(Error::setting(format!(
            "propose.choice is `{}`, which is no list of texts in [choices], or propose.count is 0",
            propose.choice
        )));
    }
    for (name, given) in &settings.choices {
        let refuse = |what: &str| Err(Error::setting(format!("choices.{name}: {what}")));
        let texts = match given {
            toml::Value::Array(items) => items
                .iter()
                .map(|item| item.as_str().map(str::to_string))
                .collect::<Option<Vec<String>>>(),
            toml::Value::String(range) => {
                parameters.push(Parameter::new(name, range)?);
                choices.push(Choice { name: name.clone(), texts: Vec::new() });
                continue;
            }
            _ => None,
        };
        let Some(texts) = texts.filter(|texts| !texts.is_empty()) else {
            return refuse("a list of texts, or a range such as \"1..5\", is wanted");
        };
        if texts.iter().collect::<BTreeSet<_>>().len() < texts.len() {
            return refuse("a text is there twice");
        }
        let open =
            proposed.filter(|propose| propose.choice == *name).map_or(0, |propose| propose.count);
        if texts.len() + open > 1 {
            parameters.push(numbered(name, texts.len() + open)?);
        }
        choices.push(Choice { name: name.clone(), texts });
    }
    Ok((choices, parameters))
}

/// Fields of the request that are fixed, the names of those that are searched, and their ranges.
type Sampling = (Map<String, Json>, Vec<String>, Vec<Parameter>);

fn sampling(settings: &Settings, metric: &Metric) -> Result<Sampling> {
    let (mut fixed, mut searched, mut parameters) = (Map::new(), Vec::new(), Vec::new());
    let has = |name: &str| settings.sampling.contains_key(name);
    if !has("temperature") {
        fixed.insert("temperature".to_string(), json!(0));
    }
    if !has("max_tokens") && !has("max_completion_tokens") {
        let most = if metric.top_tokens().is_some() { 1 } else { 16 };
        fixed.insert("max_tokens".to_string(), json!(most));
    }
    for (name, given) in &settings.sampling {
        if ["model", "messages", "prompt", "stream", "n", "logprobs", "top_logprobs"]
            .contains(&name.as_str())
        {
            return Err(Error::setting(format!("sampling.{name} is set by racecars")));
        }
        if let toml::Value::String(range) = given {
            let parameter = Parameter::new(name, range)
                .map_err(|error| Error::setting(format!("sampling.{name}: {error}")))?;
            match parameter.fixed() {
                Some(value) => drop(fixed.insert(name.clone(), json!(value))),
                None => {
                    searched.push(name.clone());
                    parameters.push(parameter);
                }
            }
            continue;
        }
        let value = serde_json::to_value(given).map_err(Error::setting)?;
        fixed.insert(name.clone(), value);
    }
    Ok((fixed, searched, parameters))
}

fn example_parameters(count: crate::settings::Count, pool: usize) -> Result<Vec<Parameter>> {
    let crate::settings::Count { least, most } = count;
    if most > pool {
        return Err(Error::setting(format!(
            "examples.count is up to {most}, and the pool has {pool} examples"
        )));
    }
    let items: Vec<String> = (1..=pool).map(|i| i.to_string()).collect();
    let mut parameters =
        vec![Parameter::new(PICK, &format!("subset:{least}..{most} of {}", items.join(",")))?];
    if most > 1 {
        parameters.push(Parameter::new(ORDER, &format!("perm:{most}"))?);
    }
    Ok(parameters)
}

fn space(parameters: &[Parameter]) -> Result<Space> {
    let mut builder = Space::builder();
    for Parameter { name, count, domain, structure, .. } in parameters {
        use racecars::space::Structure;
        builder = match (structure, domain, count) {
            (Some(Structure::Subset { items, least, most }), ..) => {
                builder.subset(name, *least..=*most, items.iter().cloned())
            }
            (Some(Structure::Permutation), Domain::Categorical(items), _) => {
                builder.order_of(name, items.clone())
            }
            (None, domain, None) => builder.coordinate(name, domain.clone()),
            _ => {
                return Err(Error::setting(format!(
                    "`{name}` is an array, which a prompt has not"
                )));
            }
        };
    }
    if parameters.is_empty() {
        return Err(Error::setting(
            "there is nothing to choose: give several texts in [choices], [examples], several tables of label \
             words, or ranges in [sampling]",
        ));
    }
    Ok(builder.build()?)
}

/// The tables of label words; each has a word for every label of the data.
fn words(
    settings: &Settings,
    label: &str,
    tables: [&Vec<Row>; 4],
) -> Result<Vec<BTreeMap<String, String>>> {
    let labels: BTreeSet<&str> =
        tables.into_iter().flatten().filter_map(|row| row.get(label)).collect();
    if labels.iter().any(|label| label.trim().is_empty()) {
        return Err(Error::setting(format!(
            "a text of the data has an empty label (column `{label}`, data.label)"
        )));
    }
    let given = match &settings.labels {
        None => vec![labels.iter().map(|label| (label.to_string(), label.to_string())).collect()],
        Some(labels) => match &labels.words {
            Words::One(words) => vec![words.clone()],
            Words::Several(several) => several.clone(),
        },
    };
    if given.is_empty() {
        return Err(Error::setting("labels.words is empty"));
    }
    for words in &given {
        if let Some(missing) = labels.iter().find(|label| !words.contains_key(**label)) {
            let known: Vec<&str> = words.keys().map(String::as_str).collect();
            return Err(Error::setting(format!(
                "labels.words has no word for label `{missing}` of the data; it has {}",
                known.join(", ")
            )));
        }
        let distinct: BTreeSet<&str> = words.values().map(|word| word.trim()).collect();
        if distinct.len() < words.len() || distinct.contains("") {
            return Err(Error::setting("labels.words has a word twice, or an empty one"));
        }
    }
    Ok(given)
}
