//! Tasks: how an example becomes a text with positions for the prompt and the label word.
//!
//! The four tasks of the paper are built in, with the templates and label words of Sun et al. 2022 for
//! masked models. A causal model sees nothing after the label word, so it has its own templates.

use crate::data::Example;
use crate::error::{Error, Result};
use crate::model::{InputText, ModelKind};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::str::FromStr;

/// A classification task.
///
/// As TOML, with `template` as the template of both kinds of models:
///
/// ```toml
/// name = "mood"
/// template = "{text} It was {mask}."
/// words = ["terrible", "great"]     # label words, one token each
/// labels = ["0", "1"]               # what the data files have for them
/// base = " so"                      # optional: the text of p0, unless another is given
/// ```
///
/// A template may have `{prompt}`, the position of the prompt, before `{mask}`. What a causal model sees before it
/// is computed once, so a call costs only the tokens from there on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// The template for all models, if there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The template for masked models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masked: Option<String>,
    /// The template for causal models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causal: Option<String>,
    /// The label words.
    pub words: Vec<String>,
    /// The labels in data files that correspond to them.
    pub labels: Vec<String>,
    /// The text of p0, unless another is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The maximum number of words of a column; the rest is cut off.
    #[serde(default = "most_words")]
    pub most_words: usize,
}

fn most_words() -> usize {
    200
}

/// The position of the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Position {
    /// Before everything, as in the paper. A template with `{prompt}` has its own position.
    #[default]
    Prefix,
    /// After the last column before the label word. A causal model then runs the text only once.
    Suffix,
}

impl FromStr for Position {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "prefix" => Ok(Position::Prefix),
            "suffix" => Ok(Position::Suffix),
            _ => Err(Error::input(format!("position `{name}` is not one of prefix, suffix"))),
        }
    }
}

impl Task {
    /// The names of the built-in tasks.
    pub const NAMES: [&'static str; 4] = ["sst2", "yelp", "agnews", "rte"];

    /// A built-in task.
    pub fn named(name: &str) -> Option<Self> {
        let (masked, causal, words, labels): (_, _, &[&str], &[&str]) = match name {
            "sst2" => (
                "{sentence} . It was {mask} .",
                "{sentence} It was {mask}",
                &["terrible", "great"],
                &["0", "1"],
            ),
            "yelp" => (
                "{text} . It was {mask} .",
                "{text} It was {mask}",
                &["terrible", "great"],
                &["0", "1"],
            ),
            "agnews" => (
                "{mask} News: {text}",
                "{text} This is news about {mask}",
                &["World", "Sports", "Business", "Tech"],
                &["0", "1", "2", "3"],
            ),
            "rte" => (
                "{sentence1} ? {mask} , {sentence2}",
                "{sentence1} Question: {sentence2} Yes or no? Answer: {mask}",
                &["Yes", "No"],
                &["entailment", "not_entailment"],
            ),
            _ => return None,
        };
        let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        Some(Task {
            name: name.to_string(),
            template: None,
            masked: Some(masked.to_string()),
            causal: Some(causal.to_string()),
            words: texts(words),
            labels: texts(labels),
            base: None,
            most_words: most_words(),
        })
    }

    /// A task by name, or from a TOML file.
    pub fn find(name: &str) -> Result<Self> {
        if let Some(task) = Task::named(name) {
            return Ok(task);
        }
        let path = Path::new(name);
        if !path.is_file() {
            return Err(Error::input(format!(
                "task `{name}` is none of {}, and no file",
                Task::NAMES.join(", ")
            )));
        }
        let text =
            std::fs::read_to_string(path).map_err(|error| Error::system("read", path, error))?;
        Task::parse(&text).map_err(|error| error.within(path.display()))
    }

    /// A task from TOML.
    pub fn parse(text: &str) -> Result<Self> {
        let task: Task = toml::from_str(text).map_err(Error::input)?;
        task.check()?;
        Ok(task)
    }

    fn check(&self) -> Result<()> {
        if self.words.len() < 2 || self.words.len() != self.labels.len() {
            return Err(Error::input(format!(
                "{} words and {} labels; there must be as many, at least 2",
                self.words.len(),
                self.labels.len()
            )));
        }
        for (what, texts) in [("word", &self.words), ("label", &self.labels)] {
            let is_earlier = |i: usize| texts[..i].contains(&texts[i]);
            if let Some(i) = (0..texts.len()).find(|i| is_earlier(*i)) {
                return Err(Error::input(format!("{what} `{}` is there twice", texts[i])));
            }
        }
        for kind in [ModelKind::Masked, ModelKind::Causal] {
            if let Ok(template) = self.template(kind) {
                TaskTemplate::parse(template)?;
            }
        }
        if self.most_words == 0 {
            return Err(Error::input("most_words is 0; it must be at least 1"));
        }
        Ok(())
    }

    fn template(&self, kind: ModelKind) -> Result<&str> {
        let own = match kind {
            ModelKind::Masked => &self.masked,
            ModelKind::Causal => &self.causal,
        };
        own.as_deref().or(self.template.as_deref()).ok_or_else(|| {
            let kind = format!("{kind:?}").to_lowercase();
            Error::input(format!("task `{}` has no template for {kind} models", self.name))
        })
    }

    /// The text of an example, for a kind of model.
    pub fn text(
        &self,
        kind: ModelKind,
        position: Position,
        example: &Example,
    ) -> Result<InputText> {
        let template = TaskTemplate::parse(self.template(kind)?)?;
        let mut filled: [String; 3] = Default::default();
        let cut = template.prompt.unwrap_or_else(|| match position {
            Position::Prefix => 0,
            Position::Suffix => template.after_last_column(),
        });
        for (i, part) in template.parts.iter().enumerate() {
            let to = match i {
                _ if i >= template.mask => 2,
                _ if i >= cut => 1,
                _ => 0,
            };
            match part {
                TemplatePart::Plain(text) => filled[to] += text,
                TemplatePart::Column(name) => filled[to] += &self.column(example, name)?,
            }
        }
        let [before, after, tail] = filled;
        // The token of the label word includes the space before it.
        Ok(InputText { before, after: after.trim_end_matches(' ').to_string(), tail })
    }

    /// A column of an example, cut to `most_words` words.
    fn column(&self, example: &Example, name: &str) -> Result<String> {
        let text = example.column(name).ok_or_else(|| {
            Error::data(format!(
                "task `{}` needs column `{name}`; the data have {}",
                self.name,
                example.names().collect::<Vec<_>>().join(", ")
            ))
        })?;
        let mut words = text.split_whitespace();
        let kept: Vec<_> = words.by_ref().take(self.most_words).collect();
        Ok(if words.next().is_some() { kept.join(" ") } else { text.to_string() })
    }

    /// The index of a label of the data files.
    pub fn label(&self, text: &str) -> Result<usize> {
        self.labels.iter().position(|label| label == text).ok_or_else(|| {
            Error::data(format!("label `{text}` is none of {}", self.labels.join(", ")))
        })
    }
}

/// A template in parts.
struct TaskTemplate {
    parts: Vec<TemplatePart>,
    /// The part before which the label word is.
    mask: usize,
    /// The part before which the prompt is, if the template says so.
    prompt: Option<usize>,
}

enum TemplatePart {
    Plain(String),
    Column(String),
}

impl TaskTemplate {
    fn parse(text: &str) -> Result<Self> {
        let wrong = |what: &str| Error::input(format!("template {text:?}: {what}"));
        let (mut parts, mut mask, mut prompt, mut rest) = (Vec::new(), None, None, text);
        while !rest.is_empty() {
            let (plain, more) = rest.split_once('{').unwrap_or((rest, ""));
            let is_last = plain.len() == rest.len();
            if !plain.is_empty() {
                parts.push(TemplatePart::Plain(plain.to_string()));
            }
            if is_last {
                break;
            }
            let (name, more) =
                more.split_once('}').ok_or_else(|| wrong("a brace is not closed"))?;
            match name {
                "mask" if mask.is_some() => return Err(wrong("{mask} is there twice")),
                "mask" => mask = Some(parts.len()),
                "prompt" if prompt.is_some() => return Err(wrong("{prompt} is there twice")),
                "prompt" if mask.is_some() => return Err(wrong("{prompt} is not before {mask}")),
                "prompt" => prompt = Some(parts.len()),
                "" => return Err(wrong("there is nothing between two braces")),
                name => parts.push(TemplatePart::Column(name.to_string())),
            }
            rest = more;
        }
        let mask = mask.ok_or_else(|| wrong("{mask}, the place of the label word, is missing"))?;
        if !parts.iter().any(|part| matches!(part, TemplatePart::Column(_))) {
            return Err(wrong("there is no column of the data in it, such as {text}"));
        }
        Ok(TaskTemplate { parts, mask, prompt })
    }

    /// The part before which a suffix prompt is.
    fn after_last_column(&self) -> usize {
        let before = &self.parts[..self.mask];
        before.iter().rposition(|part| matches!(part, TemplatePart::Column(_))).map_or(0, |i| i + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(columns: &[(&str, &str)]) -> Example {
        let texts = columns.iter().map(|(name, text)| (name.to_string(), text.to_string()));
        Example::new(texts.collect(), 0)
    }

    fn text(before: &str, after: &str, tail: &str) -> InputText {
        InputText { before: before.into(), after: after.into(), tail: tail.into() }
    }

    #[test]
    fn prompts_stand_where_they_should() {
        let film = example(&[("sentence", "a fine film .")]);
        let sst2 = Task::named("sst2").unwrap();
        let of = |kind, position| sst2.text(kind, position, &film).unwrap();
        let whole = text("", "a fine film . . It was", " .");
        assert_eq!(of(ModelKind::Masked, Position::Prefix), whole);
        assert_eq!(of(ModelKind::Causal, Position::Suffix), text("a fine film .", " It was", ""));
        assert_eq!(of(ModelKind::Causal, Position::Prefix), text("", "a fine film . It was", ""));

        let news = example(&[("text", "Ball in goal")]);
        let agnews = Task::named("agnews").unwrap();
        let masked = agnews.text(ModelKind::Masked, Position::Suffix, &news).unwrap();
        assert_eq!(masked, text("", "", " News: Ball in goal"));
    }

    #[test]
    fn every_built_in_task_is_sound() {
        for name in Task::NAMES {
            let task = Task::named(name).unwrap();
            task.check().unwrap();
            assert_eq!(Task::parse(&toml::to_string(&task).unwrap()).unwrap(), task);
        }
    }

    #[test]
    fn own_tasks_are_read_and_mistakes_named() {
        let good =
            "name='m'\ntemplate='{text} It was {mask}.'\nwords=['bad','good']\nlabels=['n','y']\n";
        let task = Task::parse(&format!("{good}most_words=2")).unwrap();
        let long = example(&[("text", "one two  three")]);
        let cut = task.text(ModelKind::Causal, Position::Suffix, &long).unwrap();
        assert_eq!(cut, text("one two", " It was", "."));
        assert_eq!(task.label("y").unwrap(), 1);
        let placed = Task::parse(&good.replace("It was {mask}", "It was{prompt} {mask}")).unwrap();
        for position in [Position::Prefix, Position::Suffix] {
            let cut = placed.text(ModelKind::Causal, position, &long).unwrap();
            assert_eq!(cut, text("one two  three It was", "", "."));
        }
        for (from, to, message) in [
            ("{mask}", "", "{mask}, the place of the label word, is missing"),
            ("{mask}", "{mask}{mask}", "{mask} is there twice"),
            ("{mask}", "{prompt}{prompt}{mask}", "{prompt} is there twice"),
            ("{mask}", "{mask}{prompt}", "{prompt} is not before {mask}"),
            ("{text}", "", "no column"),
            ("{text}", "{text", "between two braces"),
            ("'good'", "", "1 words and 2 labels"),
            ("'good'", "'bad'", "word `bad` is there twice"),
            ("'y'", "'n'", "label `n` is there twice"),
            ("name", "nam", "nam"),
        ] {
            let error = Task::parse(&good.replacen(from, to, 1)).unwrap_err().to_string();
            let is_named =
                error.contains(message) || from == "{text}" && error.contains("template");
            assert!(is_named, "{message}: {error}");
        }
        let error =
            task.text(ModelKind::Causal, Position::Suffix, &example(&[("x", "")])).unwrap_err();
        assert_eq!(error.to_string(), "task `m` needs column `text`; the data have x");
    }
}
