//! The settings of a study: the table that declares them, and what people give of them in a study file, by
//! flags, or both.
//!
//! **A new setting is one row of the table**, and a line in `example.toml`, which a test asks for.

mod table;
pub(crate) mod value;

pub use table::Row;
pub use value::{AlgorithmSetting, Takes};

use crate::command::{TemplateFile, Variable};
use crate::error::{Error, Result};
use crate::extract::Source;
use crate::known::{Known, KnownPoints};
use crate::outcome::Direction;
use crate::parameter::Parameter;
use crate::plan::{Aggregate, Keep, Sync};
use crate::point::NamedPoint;
use crate::units::{Memory, Time};
use racecars::{Algorithm, Budget, Noise, Space, Workers};
use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use std::fmt;
use std::path::{Path, PathBuf};
use table::{plain_name, row, settings};
use value::{SettingValue, Texts};

settings! {
    /// What was given of a study's settings; `None` stands for what was not. The fields are those of
    /// [the table](Settings::rows), from which `racecars run` has its flags.
    pub struct Settings;

    /// The settings of a study, complete and checked: the first line of its journal.
    pub struct Plan: Basis {
        /// The format of the journal.
        version: u32,
        /// What is searched.
        space: Space,
        /// The algorithm and its settings.
        algorithm: Algorithm,
        /// The number of evaluations; the algorithm plans with that of the study's first session.
        budget: u64,
        /// Which way is better.
        direction: Direction,
        /// Where the value is found.
        objective: Source,
        /// Parameters that are not searched: the same in every evaluation.
        #[serde(skip_serializing_if = "NamedPoint::is_empty")]
        fixed: NamedPoint,
        /// Points whose outcomes were known when the study began.
        known: Vec<Known>,
        /// The folder that commands and templates are relative to.
        base: PathBuf,
        /// When the study began, in milliseconds since 1970.
        started: u64,
        /// What the user should know of how the plan came about; not in the journal.
        #[serde(skip)]
        notes: Vec<String>,
    }

    /// A parameter: x=0:10, k=1..64, lr=1e-5:1e-1:log, k=1..64:log, x=0:1:step=0.1, mode=a,b,c,
    /// `size=small<medium<large`, flag=bool; an array of five: `w[5]=-1:1`; an order: order=perm:10; a
    /// selection: `pick=subset:2 of a,b,c`; shares of 1: `mix[3]=simplex`; always the same, and not
    /// searched: y=5. Only where something holds: `degree=2..5 if mode=poly`.
    parameters: Vec<Parameter>; row("NAME=RANGE").flag("parameter").short('p');
    /// A constraint on the parameters that every evaluated point satisfies: `a < b`, `x + y <= 10`,
    /// `not (mode = fast and level > 3)`; may be given several times. It costs no evaluations.
    r#where: Vec<String>; row("CONDITION");
    /// Number of evaluations, or of evaluations per parameter.
    budget: Budget; row("T|30n").default("20n, at least 100").changes();
    /// Number of evaluations that run at once.
    jobs: usize = std::thread::available_parallelism().map_or(1, usize::from),
        jobs > 0 => "at least 1"; row("J").default("the number of cores").changes().always_written();
    /// Time limit of an evaluation: 60s, 500ms, 5m. Then its whole process group gets SIGTERM, and
    /// two seconds later SIGKILL. Time in which racecars is paused (Ctrl-Z) does not count.
    timeout: Option<Time> = None; row("TIME").changes();
    /// Number of times that a failed evaluation is tried again.
    retries: u32 = 0; row("K").changes();
    /// Limit on the resident memory of an evaluation's process group: 512M, 2G. Needs Linux.
    memory: Option<Memory> = None; row("SIZE").changes();
    /// Minimize this value. last: the last number on the last line of standard output; `json:a.b[-1]` or
    /// `json:["a.b"]`: in the last JSON that has this path; `regex:loss=(\S+)`; time: the run time; stderr;
    /// file:PATH; stderr and file:PATH may be followed by :json:PATH or :regex:RE. What is not clearly one
    /// number, such as 1,5, is a failure.
    minimize: Source; row("VALUE").bare("last").default("last");
    /// Maximize this value, found as with --minimize.
    maximize: Source; row("VALUE").bare("last").excludes("minimize");
    /// A value that must be at most 0, found as with --minimize; may be given several times.
    constraints: Vec<Source> = Vec::new(); row("VALUE").flag("constraint");
    /// Pass parameters in the environment: all as `RACECARS_<name>` (*), or one as NAME={name}.
    env: Vec<Variable> = Vec::new(); row("NAME=TEXT").bare("*");
    /// Pass the parameters as JSON on standard input.
    stdin: bool = false; row("");
    /// Fill in {name} in this file for each evaluation, which runs in a folder of its own.
    templates: Vec<TemplateFile> = Vec::new(); row("FILE[=TARGET]").flag("template");
    /// Run the command with `sh -c`. Values are quoted, so {name} must not stand in quotes, unless all its
    /// values are numbers or plain words.
    shell: bool = false; row("");
    /// Evaluate each point this many times. The budget counts points: with --budget 20, --repeat 5 runs the
    /// program 125 times, 100 for the points and 25 for --confirm.
    repeat: u32 = 1, repeat > 0 => "at least 1"; row("K");
    /// How the values of a repeated evaluation are combined.
    aggregate: Aggregate = Aggregate::Mean; row("HOW");
    /// At the end, evaluate each of the leading points this many times more, and recommend the best by
    /// these fresh values. The budget does not count these runs, --leaders times K.
    confirm: u32 = if repeat > 1 { repeat } else { 0 };
        row("K").default("the value of --repeat if that is above 1, otherwise 0");
    /// Number of leading points.
    leaders: usize = 5, leaders > 0 => "at least 1"; row("M");
    /// The algorithm.
    algorithm: Algorithm; row("A").examples(Algorithm::NAMES).default("auto").always_written();
    /// A setting of the algorithm, such as population=40; `racecars algorithms` lists them. May be
    /// given several times.
    set: Vec<AlgorithmSetting>; row("NAME=VALUE");
    /// Short for --set noise=..: whether the objective is noisy. Then `auto` re-evaluates points that may
    /// look better only by chance. detect: find out by evaluating the first point twice.
    noise: Noise; row("NOISE").default("detect");
    /// Seed of the search, and of {seed} in commands.
    seed: u64 = 0; row("S").always_written();
    /// Tell outcomes to the algorithm in the order asked: the same seed then gives the same run on any
    /// number of jobs and after any interruption.
    deterministic: bool = false; row("");
    /// With --deterministic: the number of points asked ahead of the outcomes told, and the most jobs
    /// that can be busy. The run depends on it, and the more are asked ahead, the less each knows: 8 instead
    /// of 1 cost a factor of 8 to 500 in the final value with some hundred evaluations (docs/parallel.md).
    lookahead: u64 = if deterministic { Workers::LOOKAHEAD as u64 } else { 0 },
        !deterministic || lookahead > 0 => "at least 1"; row("L").default("2");
    /// A point that is evaluated first: `x=1,mode=a,w=[1,2,3]`; may be given several times. Parameters that
    /// it leaves out are as in the best known point (--known, --from), or without one in the middle of their
    /// ranges, and the first of choices.
    start: Vec<NamedPoint> = Vec::new(); row("POINT");
    /// A file of points whose values are known when the study begins. A table of comma-separated values: a
    /// column for each parameter, and `value`; `racecars export --to csv` writes such. Or a line of JSON for
    /// each point: {"params": {"x": 1}, "value": 2.5}, or "infeasible": 0.5 (the violation), or "failed":
    /// "why". Also the JSON itself. May be given several times.
    known: Vec<KnownPoints>; row("FILE");
    /// Another study, whose trials are taken over as known points when this one begins: a study's folder, or
    /// a journal. Trials outside of the ranges here, and those that failed, are left out; parameters that
    /// this study does not have are ignored. May be given several times.
    from: Vec<PathBuf>; row("STUDY");
    /// With --from: the value that a parameter had there which the other study does not have, such as
    /// lr=0.1. May be given several times.
    assume: Vec<NamedPoint>; row("NAME=VALUE");
    /// Stop when the best value is at least as good as this.
    target: Option<f64> = None; row("V").changes();
    /// Stop when the best value has not improved for this many evaluations.
    patience: Option<u64> = None, patience != Some(0) => "at least 1"; row("K").changes();
    /// With --patience: an improvement counts only once the best value is better by this than when it last
    /// counted.
    patience_tolerance: f64 = 0.0, (0.0..).contains(&patience_tolerance) => "at least 0";
        row("D").flag("patience-tolerance").changes();
    /// Start no more evaluations after this time: 8h, 30m.
    time_limit: Option<Time> = None; row("TIME").flag("time-limit").changes();
    /// When the journal is forced to disk: every 100 ms, or after each line.
    sync: Sync = Sync::Periodic; row("WHEN").changes();
    /// Which evaluations' own folders are kept.
    keep: Keep = Keep::Failed; row("WHICH").changes();
    /// The study's folder.
    study: PathBuf; row("DIR").default("racecars-study, beside the study file if there is one").changes();
    /// The program and its arguments, with {name} for parameters. {trial}, {seed}, {dir} (a folder of the
    /// evaluation's own), {base} (the folder of the study file) and {worker} (0 to jobs - 1; no two
    /// evaluations under way have the same) are built in; {w...} spreads an array over arguments, `{w[0]}` is
    /// one of its values, {flag?--fast} is --fast where flag is true and left out where it is false, and
    /// {{x}} is {x} itself.
    command: Vec<String> = Vec::new(); row("COMMAND").command();
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
    ///     algorithm = "cma-es"
    ///     [set]
    ///     population = 40
    ///     [parameters]
    ///     x = "0:10"
    /// "#)?;
    /// assert_eq!(settings.parameters.unwrap()[0].name, "x");
    /// # Ok::<(), racecars_study::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Settings> {
        let refuse = |error: toml::de::Error| Error::setting(error.to_string().trim_end());
        let file = toml::Deserializer::parse(text).map_err(refuse)?;
        file.deserialize_map(Keys { name: Row::key }).map_err(refuse)
    }

    /// Reads the keys of a journal's first line, which are rows of the table.
    pub(crate) fn of_journal(keys: serde_json::Map<String, serde_json::Value>) -> Result<Settings> {
        let keys = serde_json::Value::Object(keys);
        keys.deserialize_map(Keys { name: |row| row.name.to_string() }).map_err(Error::setting)
    }

    /// These settings, and where they leave something open those of `below`.
    pub fn over(mut self, mut below: Settings) -> Settings {
        self.gather();
        below.gather();
        // A goal overrules the other one.
        if self.minimize.is_some() || self.maximize.is_some() {
            (below.minimize, below.maximize) = (None, None);
        }
        // An algorithm overrules the settings of another one.
        if let (Some(ours), Some(theirs)) = (&self.algorithm, &below.algorithm)
            && ours.name() != theirs.name()
        {
            below.set = None;
        }
        // Settings of the algorithm are merged by name: the last counts.
        if let (Some(ours), Some(theirs)) = (&mut self.set, &mut below.set) {
            theirs.append(ours);
            self.set = None;
        }
        self.or(below)
    }

    /// Moves the settings of the algorithm to `set`: those in brackets after its name, and `noise`.
    pub(crate) fn gather(&mut self) {
        let mut set = Vec::new();
        let setting = |name: &str, text: String| AlgorithmSetting { name: name.to_string(), text };
        if let Some(algorithm) = &mut self.algorithm {
            set.extend(algorithm.given().into_iter().map(|given| setting(given.name, given.text)));
            if let Ok(bare) = algorithm.name().parse() {
                *algorithm = bare;
            }
        }
        set.extend(self.set.take().unwrap_or_default());
        set.extend(self.noise.take().map(|noise| setting("noise", noise.to_string())));
        self.set = (!set.is_empty()).then_some(set);
    }

    /// The algorithm with its settings.
    pub(crate) fn configured(&self) -> Result<Algorithm> {
        let mut settings = self.clone();
        settings.gather();
        let mut set = settings.set.unwrap_or_default();
        // The default, which is true of any algorithm; older journals have it for each.
        if settings.algorithm.as_ref().is_some_and(|algorithm| !algorithm.has_setting("noise")) {
            set.retain(|setting| (&*setting.name, &*setting.text) != ("noise", "detect"));
        }
        let set = set.into_iter().map(|AlgorithmSetting { name, text }| (name, text));
        Ok(Algorithm::configured(settings.algorithm, set)?)
    }

    /// The words of a command that gives these settings.
    pub fn words(&self) -> Vec<String> {
        let (mut words, mut command) = (Vec::new(), Vec::new());
        for row in Settings::rows() {
            let Some(texts) = row.texts(self) else { continue };
            if row.is_command {
                command.push("--".to_string());
                command.extend(texts);
                continue;
            }
            let flag = row.short.map_or(format!("--{}", row.flag), |short| format!("-{short}"));
            for text in texts {
                match row.takes {
                    Takes::Nothing if text == "true" => words.push(flag.clone()),
                    Takes::Nothing => {}
                    // Not to be taken for a flag.
                    _ if text.starts_with('-') => words.push(format!("--{}={text}", row.flag)),
                    _ => words.extend([flag.clone(), text]),
                }
            }
        }
        words.extend(command);
        words
    }
}

/// Reads settings from a map, by the table.
struct Keys {
    /// The key of a row.
    name: fn(&Row) -> String,
}

impl<'de> Visitor<'de> for Keys {
    type Value = Settings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the settings of a study")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Settings, M::Error> {
        let (rows, mut settings) = (Settings::rows(), Settings::default());
        while let Some(key) = map.next_key::<String>()? {
            let Some(row) = rows.iter().find(|row| (self.name)(row) == key) else {
                let names: Vec<String> = rows.iter().map(self.name).collect();
                return Err(serde::de::Error::custom(format!(
                    "unknown field `{key}`, expected one of {}",
                    names.join(", ")
                )));
            };
            map.next_value_seed(Value { row, settings: &mut settings })?;
        }
        Ok(settings)
    }
}

/// Reads the value of a key, so that an error knows its place.
struct Value<'a> {
    row: &'a Row,
    settings: &'a mut Settings,
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let Texts(texts) = serde::Deserialize::deserialize(deserializer)?;
        self.row.read(self.settings, &texts).map_err(serde::de::Error::custom)
    }
}

/// The study file that `racecars init` writes: one that runs, with every setting explained.
pub const EXAMPLE: &str = include_str!("settings/example.toml");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_read_and_has_every_setting() {
        let given = Settings::parse(EXAMPLE).unwrap();
        // `#key = value` is a setting, `# words` are words.
        let is_setting = |line: &&str| {
            line.strip_prefix('#')
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic() || c == '['))
        };
        let all: Vec<&str> = EXAMPLE.lines().filter(is_setting).map(|line| &line[1..]).collect();
        let at_rest = Settings::parse(&all.join("\n")).unwrap();
        assert_eq!(at_rest.memory, Some(Some("2G".parse().unwrap())));
        for row in Settings::rows() {
            let is_there = [&given, &at_rest].iter().any(|part| row.texts(part).is_some());
            // There is one goal.
            assert!(is_there || row.name == "maximize", "no `{}` in example.toml", row.key());
        }
        assert!(EXAMPLE.contains("# maximize = "));
    }

    #[test]
    fn flags_overrule_the_file() {
        let file =
            "command = ['a']\nbudget = 10\nmaximize = 'last'\nseed = 5\n[parameters]\nx='0:1'";
        let file = Settings::parse(file).unwrap();
        let flags = Settings::parse("budget = 20\nminimize = 'time'").unwrap();
        let both = flags.over(file.clone());
        assert_eq!(both.budget, Some(Budget::Evaluations(20)));
        assert_eq!((both.minimize, both.maximize), ("time".parse().ok(), None));
        assert_eq!((both.seed, both.command), (Some(5), Some(vec!["a".to_string()])));
        assert_eq!(both.parameters, file.parameters);
    }

    #[test]
    fn settings_of_the_algorithm_are_merged_by_name() {
        let over = |flags: &str, file: &str| {
            let file = Settings::parse(file).unwrap();
            let algorithm = Settings::parse(flags).unwrap().over(file).configured();
            algorithm.map_or_else(|error| error.to_string(), |algorithm| algorithm.to_string())
        };
        let file = "algorithm = 'cma-es(sigma=0.5)'\n[set]\npopulation = 40";
        assert_eq!(over("", file), "cma-es(population=40, sigma=0.5)");
        assert_eq!(over("set = ['population=50']", file), "cma-es(population=50, sigma=0.5)");
        let same = "algorithm = 'cma-es(sigma=0.25)'";
        assert_eq!(over(same, file), "cma-es(population=40, sigma=0.25)");
        assert_eq!(over("algorithm = 'de'", file), "de");
        assert_eq!(over("set = ['noise=no']", "noise = 'yes'"), "auto(noise=no)");
        assert_eq!(over("noise = 'no'", "set = {noise = 'yes'}"), "auto(noise=no)");
        assert_eq!(over("", "set = {gamma = 0.9}"), "race-cars(gamma=0.9)");
        assert_eq!(
            over("", "algorithm = 'de'\nset = {weight = [0.5, 0.75]}"),
            "de(weight=[0.5, 0.75])"
        );
        assert_eq!(
            over("", "algorithm = 'relay'\nset = {legs = ['race-cars 1', 'cma-es 2']}"),
            "relay(legs=[race-cars 1.0, cma-es 2.0])"
        );
        assert_eq!(over("noise = 'detect'", "algorithm = 'de'"), "de");
        assert!(over("noise = 'no'", "algorithm = 'de'").starts_with("de has no setting `noise`"));
        assert_eq!(
            over("", "set = {population = 'many'}\nalgorithm = 'cma-es'"),
            "setting `population` of cma-es is `many`, not a whole number"
        );
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text| Settings::parse(text).unwrap_err().to_string();
        let message = error("seed = 3\nbuget = 10");
        assert!(
            message.contains("unknown field `buget`, expected one of parameters, where, budget")
        );
        let message = error("seed = 3\ntimeout = 'soon'");
        assert!(
            message.contains("line 2") && message.contains("timeout: `soon` is not a positive")
        );
        assert!(error("budget = 0").contains("budget: `0` is not a positive number"));
        assert!(error("jobs = -1").contains("jobs: `-1` is not a whole number"));
        assert!(error("jobs = [1, 2]").contains("jobs: it takes one value, not 2"));
        assert!(error("shell = 'yes'").contains("shell: `yes` is not true or false"));
        assert!(error("[parameters]\nx = '5 %'").contains("parameter `x`: `5 %` is none of"));
        assert!(error("sync = 'never'").contains("`never` is not one of periodic, always"));
        assert!(error("noise = 'maybe'").contains("`maybe` is not detect, yes or no"));
        assert!(error("algorithm = 'magic'").contains("`magic` is not one of auto"));
    }

    #[test]
    fn parameters_keep_their_order() {
        let settings = Settings::parse("[parameters]\nz='0:1'\na='0:1'\n'm[3]'='0:1'").unwrap();
        let parameters = settings.parameters.unwrap();
        let names: Vec<&str> = parameters.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["z", "a", "m"]);
    }

    #[test]
    fn help_has_the_default() {
        let rows = Settings::rows();
        let help = |name: &str| rows.iter().find(|row| row.name == name).unwrap().help();
        assert_eq!(
            help("retries"),
            "Number of times that a failed evaluation is tried again [default: 0]"
        );
        assert_eq!(help("stdin"), "Pass the parameters as JSON on standard input");
        assert!(help("aggregate").ends_with("[default: mean]"));
    }
}
