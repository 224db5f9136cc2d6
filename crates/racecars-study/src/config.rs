//! The settings of a study as people give them: in a study file, by flags, or both.

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::parameter::Parameter;
use crate::plan::{Aggregate, Keep, KnownPoint, Sync};
use crate::units::{self, Text};
use racecars::Noise;
use serde::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What was given; `None` and empty lists stand for what was not. Every field has the meaning of the
/// command line's flag of the same name.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[non_exhaustive]
pub struct Settings {
    /// The program and its arguments.
    #[serde(deserialize_with = "words")]
    pub command: Vec<String>,
    /// Whether a shell runs the command.
    pub shell: Option<bool>,
    /// The study's folder.
    pub study: Option<PathBuf>,
    /// How many evaluations there are to be.
    pub budget: Option<Budget>,
    /// How many run at once.
    pub jobs: Option<usize>,
    /// The longest time of an evaluation.
    #[serde(deserialize_with = "time")]
    pub timeout: Option<Duration>,
    /// How often a failed evaluation is tried again.
    pub retries: Option<u32>,
    /// The most memory of an evaluation, in bytes.
    #[serde(deserialize_with = "memory")]
    pub memory: Option<u64>,
    /// Where the value to be minimized is found.
    pub minimize: Option<String>,
    /// Where the value to be maximized is found.
    pub maximize: Option<String>,
    /// Where values are found that must be at most 0.
    pub constraints: Vec<String>,
    /// Variables for the program: `*` for all parameters as `RACECARS_<name>`, or `NAME=text`.
    pub env: Vec<String>,
    /// Whether the program reads its parameters as JSON on standard input.
    pub stdin: Option<bool>,
    /// Files to fill in for each evaluation: `source` or `source=target`.
    pub templates: Vec<String>,
    /// How often each point is evaluated.
    pub repeat: Option<u32>,
    /// What is made of the repeated values.
    pub aggregate: Option<Aggregate>,
    /// How often the leading points are evaluated again at the end.
    pub confirm: Option<u32>,
    /// Whether the program is noisy, for the algorithm that cares.
    pub noise: Option<Noise>,
    /// How many points are the leading ones.
    pub leaders: Option<usize>,
    /// The algorithm.
    pub algorithm: Option<String>,
    /// The seed.
    pub seed: Option<u64>,
    /// Whether outcomes are told in the order asked.
    pub deterministic: Option<bool>,
    /// In deterministic mode: how many candidates may be out.
    pub lookahead: Option<u64>,
    /// When the journal is forced to disk.
    pub sync: Option<Sync>,
    /// Which evaluations' folders are kept.
    pub keep: Option<Keep>,
    /// Stop when a value is at least as good as this.
    pub target: Option<f64>,
    /// Stop starting evaluations when a session has taken this long.
    #[serde(deserialize_with = "time")]
    pub time_limit: Option<Duration>,
    /// Stop after this many evaluations without an improvement.
    pub patience: Option<u64>,
    /// Points to evaluate first, by name.
    pub start: Vec<serde_json::Map<String, serde_json::Value>>,
    /// Points whose outcome is known already.
    pub known: Vec<KnownPoint>,
    /// The parameters.
    #[serde(deserialize_with = "parameters")]
    pub parameters: Vec<Parameter>,
}

impl Settings {
    /// Reads a study file.
    pub fn read(path: &Path) -> Result<Settings> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::system("read the study file", path, error))?;
        Settings::parse(&text)
            .map_err(|error| Error::setting(format!("{}: {error}", path.display())))
    }

    /// Reads the text of a study file.
    ///
    /// ```
    /// use racecars_study::Settings;
    ///
    /// let settings = Settings::parse(r#"
    ///     command = ["./sim", "--x", "{x}"]
    ///     timeout = "60s"
    ///     [parameters]
    ///     x = "0:10"
    /// "#)?;
    /// assert_eq!(settings.parameters[0].name, "x");
    /// # Ok::<(), racecars_study::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Settings> {
        toml::from_str(text).map_err(|error| Error::setting(error.to_string().trim_end()))
    }

    /// These settings, and where they leave something open those of `file`.
    pub fn over(mut self, file: Settings) -> Settings {
        macro_rules! fall_back {
            (options: $($option:ident)*; lists: $($list:ident)*) => {
                $(self.$option = self.$option.or(file.$option);)*
                $(if self.$list.is_empty() { self.$list = file.$list; })*
            };
        }
        // A flag for one direction overrules the file's other one.
        if self.minimize.is_none() && self.maximize.is_none() {
            (self.minimize, self.maximize) = (file.minimize, file.maximize);
        }
        fall_back! {
            options: shell study budget jobs timeout retries memory stdin repeat aggregate confirm
                leaders noise algorithm seed deterministic lookahead sync keep target time_limit
                patience;
            lists: command constraints env templates start known parameters
        }
        self
    }
}

/// A command as a list of words, or as one text: for a shell, or without need of quotes.
fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a text or a list of texts")]
    enum Command {
        List(Vec<String>),
        Text(String),
    }
    Ok(match Command::deserialize(deserializer)? {
        Command::List(words) => words,
        Command::Text(text) => vec![text],
    })
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = Text::deserialize(deserializer)?.0;
    units::duration(&text).map(Some).map_err(serde::de::Error::custom)
}

fn memory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let text = Text::deserialize(deserializer)?.0;
    units::bytes(&text).map(Some).map_err(serde::de::Error::custom)
}

/// A table from names to ranges, in the file's order.
fn parameters<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Parameter>, D::Error> {
    let table = toml::Table::deserialize(deserializer)?;
    let read = |(name, range): (&String, &toml::Value)| match range {
        toml::Value::String(range) => Parameter::new(name, range),
        other => Err(Error::setting(format!(
            "parameter `{name}` is {other}, not a text such as \"0:10\", \"1..64\" or \"a,b,c\""
        ))),
    };
    table.iter().map(read).collect::<Result<_>>().map_err(serde::de::Error::custom)
}

/// The study file that `racecars init` writes: one that runs, with every setting explained.
pub const EXAMPLE: &str = include_str!("example.toml");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_read_and_so_is_every_setting_commented_out_in_it() {
        assert!(Settings::parse(EXAMPLE).is_ok());
        // `#key = value` is a setting, `# words` are words.
        let is_setting = |line: &&str| {
            line.strip_prefix('#').is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic()))
        };
        let all: Vec<&str> = EXAMPLE.lines().filter(is_setting).map(|line| &line[1..]).collect();
        assert!(all.len() >= 20);
        let settings = Settings::parse(&all.join("\n")).unwrap();
        assert_eq!(settings.memory, Some(2 << 30));
    }

    #[test]
    fn flags_overrule_the_file() {
        let file =
            "command = ['a']\nbudget = 10\nmaximize = 'last'\nseed = 5\n[parameters]\nx='0:1'";
        let file = Settings::parse(file).unwrap();
        let flags = Settings {
            budget: Some(Budget::Evaluations(20)),
            minimize: Some("time".into()),
            ..Settings::default()
        };
        let both = flags.over(file.clone());
        assert_eq!(both.budget, Some(Budget::Evaluations(20)));
        assert_eq!((both.minimize.as_deref(), both.maximize.as_deref()), (Some("time"), None));
        assert_eq!((both.seed, both.command), (Some(5), vec!["a".to_string()]));
        assert_eq!(both.parameters, file.parameters);
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text| Settings::parse(text).unwrap_err().to_string();
        assert!(error("buget = 10").contains("unknown field `buget`"));
        assert!(error("timeout = 'soon'").contains("`soon` is not a positive time"));
        assert!(error("budget = 0").contains("budget 0 is not a positive number"));
        assert!(error("[parameters]\nx = 5").contains("parameter `x` is 5, not a text"));
        assert!(error("[parameters]\nx = '5'").contains("parameter `x`: `5` is none of"));
        assert!(error("sync = 'never'").contains("always"));
    }

    #[test]
    fn parameters_keep_their_order() {
        let settings = Settings::parse("[parameters]\nz='0:1'\na='0:1'\n'm[3]'='0:1'").unwrap();
        let names: Vec<&str> = settings.parameters.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["z", "a", "m"]);
    }
}
