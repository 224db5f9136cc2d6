//! A study's settings, complete and checked: the first line of its journal.

use crate::budget::Budget;
use crate::config::Settings;
use crate::error::{Error, Result};
use crate::outcome::Direction;
use crate::parameter;
use racecars::{Algorithm, Noise, Space, Workers};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The journal format that this version writes.
pub(crate) const VERSION: u32 = 1;

/// When the journal is forced to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sync {
    /// At least every 100 ms.
    #[default]
    Periodic,
    /// After each line.
    Always,
}

/// Which evaluations' own folders are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// None.
    None,
    /// Those of evaluations that failed.
    #[default]
    Failed,
    /// All.
    All,
}

/// What is made of repeated values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregate {
    /// Their mean.
    #[default]
    Mean,
    /// Their median.
    Median,
}

/// A point whose outcome is known before the study begins. The algorithm learns from it; it is not
/// evaluated, and counts as no evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownPoint {
    /// The values of the parameters, by name.
    pub params: serde_json::Map<String, serde_json::Value>,
    /// The outcome: `value`, `infeasible`, or `failed`.
    #[serde(flatten)]
    pub outcome: racecars::Outcome,
}

/// The complete settings of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Plan {
    /// The format of the journal.
    pub version: u32,
    /// What is searched.
    #[serde(with = "space_format")]
    pub space: Option<Space>,
    /// The algorithm's name.
    pub algorithm: String,
    /// The seed of the search.
    pub seed: u64,
    /// The number of evaluations; the algorithm plans with that of the study's first session.
    pub budget: u64,
    /// Which way is better.
    pub direction: Direction,
    /// Whether outcomes are told in the order asked.
    pub deterministic: bool,
    /// In deterministic mode: how many candidates may be out.
    pub lookahead: u64,
    /// How many evaluations run at once.
    pub jobs: usize,
    /// The program and its arguments; empty for a study that is evaluated by hand.
    pub command: Vec<String>,
    /// Whether a shell runs it.
    pub shell: bool,
    /// Variables for the program.
    pub env: Vec<String>,
    /// Whether it gets JSON on standard input.
    pub stdin: bool,
    /// Files that are filled in.
    pub templates: Vec<String>,
    /// Where the value is found.
    pub objective: String,
    /// Where values are found that must be at most 0.
    pub constraints: Vec<String>,
    /// How often each point is evaluated.
    pub repeat: u32,
    /// What is made of repeated values.
    pub aggregate: Aggregate,
    /// How often the leading points are evaluated again at the end.
    pub confirm: u32,
    /// Whether the program is noisy, for `auto`.
    pub noise: Noise,
    /// How many points are the leading ones.
    pub leaders: usize,
    /// The longest time of an evaluation, in seconds.
    pub timeout: Option<f64>,
    /// How often a failed evaluation is tried again.
    pub retries: u32,
    /// The most memory of an evaluation, in bytes.
    pub memory: Option<u64>,
    /// When the journal is forced to disk.
    pub sync: Sync,
    /// Which evaluations' folders are kept.
    pub keep: Keep,
    /// Stop at a value as good as this.
    pub target: Option<f64>,
    /// Stop a run after this many seconds.
    pub time_limit: Option<f64>,
    /// Stop after this many evaluations without an improvement.
    pub patience: Option<u64>,
    /// Points to evaluate first, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<serde_json::Map<String, serde_json::Value>>,
    /// Points whose outcome is known already.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<KnownPoint>,
    /// The folder that commands and templates are relative to.
    pub base: PathBuf,
    /// When the study began, in milliseconds since 1970.
    pub started: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            version: VERSION,
            space: None,
            algorithm: Algorithm::default().name().to_string(),
            seed: 0,
            budget: 0,
            direction: Direction::Minimize,
            deterministic: false,
            lookahead: 0,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            command: Vec::new(),
            shell: false,
            env: Vec::new(),
            stdin: false,
            templates: Vec::new(),
            objective: "last".to_string(),
            constraints: Vec::new(),
            repeat: 1,
            aggregate: Aggregate::Mean,
            confirm: 0,
            noise: Noise::Detect,
            leaders: 5,
            timeout: None,
            retries: 0,
            memory: None,
            sync: Sync::Periodic,
            keep: Keep::Failed,
            target: None,
            time_limit: None,
            patience: None,
            start: Vec::new(),
            known: Vec::new(),
            base: PathBuf::new(),
            started: 0,
        }
    }
}

impl Plan {
    /// The plan of these settings. What they leave open is as in `old`, the study's plan so far, or
    /// as usual. `base` is the folder that commands are relative to.
    pub fn new(settings: &Settings, base: &Path, old: Option<&Plan>) -> Result<Plan> {
        let mut plan = old.cloned().unwrap_or_else(|| Plan {
            base: base.to_path_buf(),
            started: now(),
            ..Plan::default()
        });
        if !settings.command.is_empty() {
            plan.base = base.to_path_buf();
        }
        if !settings.parameters.is_empty() || plan.space.is_none() {
            plan.space = Some(parameter::space(&settings.parameters)?);
        }
        macro_rules! take {
            (values: $($value:ident)*; options: $($option:ident)*; lists: $($list:ident)*) => {
                $(if let Some(value) = settings.$value.clone() { plan.$value = value; })*
                $(if settings.$option.is_some() { plan.$option = settings.$option; })*
                $(if !settings.$list.is_empty() { plan.$list = settings.$list.clone(); })*
            };
        }
        take! {
            values: algorithm seed deterministic jobs shell stdin repeat aggregate confirm noise
                leaders retries sync keep;
            options: memory target patience;
            lists: command env templates constraints start known
        }
        (plan.direction, plan.objective) = match (&settings.minimize, &settings.maximize) {
            (Some(_), Some(_)) => {
                return Err(Error::setting(
                    "both minimize and maximize are given; there is one goal",
                ));
            }
            (Some(source), None) => (Direction::Minimize, source.clone()),
            (None, Some(source)) => (Direction::Maximize, source.clone()),
            (None, None) => (plan.direction, plan.objective),
        };
        let seconds = |time: Duration| time.as_secs_f64();
        plan.timeout = settings.timeout.map(seconds).or(plan.timeout);
        plan.time_limit = settings.time_limit.map(seconds).or(plan.time_limit);
        if settings.confirm.is_none() && old.is_none() && plan.repeat > 1 {
            plan.confirm = plan.repeat;
        }
        let dimension = plan.space()?.dimension();
        plan.budget = match (settings.budget, plan.budget) {
            (Some(budget), _) => budget.evaluations(dimension),
            (None, 0) => Budget::PerDimension(20.0).evaluations(dimension).max(100),
            (None, budget) => budget,
        };
        if plan.deterministic && plan.lookahead == 0 {
            plan.lookahead = Workers::LOOKAHEAD as u64;
        }
        plan.lookahead = settings.lookahead.unwrap_or(plan.lookahead);
        plan.check()?;
        Ok(plan)
    }

    /// What is searched.
    pub fn space(&self) -> Result<&Space> {
        self.space.as_ref().ok_or_else(|| Error::journal("the study has no space"))
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Result<Algorithm> {
        match (self.algorithm.parse()?, self.noise) {
            (Algorithm::Auto(settings), noise) => Ok(Algorithm::Auto(settings.noise(noise))),
            (algorithm, Noise::Detect) => Ok(algorithm),
            (algorithm, _) => {
                Err(Error::setting(format!("noise is a setting of auto, not of {algorithm}")))
            }
        }
    }

    fn check(&self) -> Result<()> {
        self.algorithm()?;
        for (name, number) in [
            ("jobs", self.jobs as u64),
            ("repeat", self.repeat.into()),
            ("leaders", self.leaders as u64),
            ("budget", self.budget),
        ] {
            if number == 0 {
                return Err(Error::setting(format!("{name} is 0; at least 1 is needed")));
            }
        }
        if self.deterministic && self.lookahead == 0 {
            return Err(Error::setting("lookahead is 0; at least 1 is needed"));
        }
        if self.patience == Some(0) {
            return Err(Error::setting("patience is 0; at least 1 is needed"));
        }
        if self.target.is_some_and(|target| !target.is_finite()) {
            return Err(Error::setting("the target is not a finite number"));
        }
        Ok(())
    }

    /// Refuses to go on with a study under settings that would make it another one. Free to change
    /// are the budget (not below the first), jobs, limits, retries, and what concerns files.
    pub(crate) fn check_continues(&self, old: &Plan, folder: &Path) -> Result<()> {
        if old.version != VERSION {
            return Err(Error::journal(format!(
                "the journal is of format {}; this version reads format {VERSION}",
                old.version
            )));
        }
        let free = [
            "budget",
            "jobs",
            "timeout",
            "retries",
            "memory",
            "sync",
            "keep",
            "target",
            "time_limit",
            "patience",
            "base",
            "started",
        ];
        let (ours, theirs) = (as_map(self)?, as_map(old)?);
        for (key, value) in &ours {
            let was = theirs.get(key).unwrap_or(&serde_json::Value::Null);
            if key == "space" && value != was {
                let difference = parameters_differ(self.space()?, old.space()?);
                return Err(Error::setting(format!(
                    "{difference} in the study in {}. {ADVICE}",
                    folder.display()
                )));
            }
            if value != was && !free.contains(&key.as_str()) {
                return Err(Error::setting(format!(
                    "{key} is {value}, but the study in {} was begun with {was}. {ADVICE}",
                    folder.display()
                )));
            }
        }
        if self.budget < old.budget {
            return Err(Error::setting(format!(
                "budget is {}, but the study was begun with {}; it can only be made larger",
                self.budget, old.budget
            )));
        }
        Ok(())
    }
}

const ADVICE: &str =
    "Give the same, choose another folder with --study, or begin afresh with --restart";

/// The first difference of two spaces, in words.
fn parameters_differ(ours: &Space, theirs: &Space) -> String {
    for entry in ours.entries() {
        match theirs.entries().iter().find(|other| other.name() == entry.name()) {
            None => return format!("parameter `{}` is not", entry.name()),
            Some(other)
                if (other.domain(), other.array_len()) != (entry.domain(), entry.array_len()) =>
            {
                return format!("parameter `{}` has another range", entry.name());
            }
            Some(_) => {}
        }
    }
    let is_missing = |name: &str| !ours.entries().iter().any(|entry| entry.name() == name);
    match theirs.entries().iter().find(|entry| is_missing(entry.name())) {
        Some(entry) => format!("parameter `{}` is missing, which is", entry.name()),
        None => "the parameters are in another order".to_string(),
    }
}

fn as_map(plan: &Plan) -> Result<serde_json::Map<String, serde_json::Value>> {
    match serde_json::to_value(plan) {
        Ok(serde_json::Value::Object(map)) => Ok(map),
        other => Err(Error::journal(format!("the settings cannot be written: {other:?}"))),
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// A space in place, not wrapped as an option.
mod space_format {
    use racecars::Space;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        space: &Option<Space>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        space.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Space>, D::Error> {
        Space::deserialize(deserializer).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(more: &str) -> Settings {
        Settings::parse(&format!("{more}\n[parameters]\nx = '0:10'\nn = '1..9'")).unwrap()
    }

    fn plan(more: &str) -> Result<Plan> {
        Plan::new(&settings(more), Path::new("/base"), None)
    }

    #[test]
    fn a_plan_survives_the_journal() {
        let plan = plan("maximize = 'json:a'\ntimeout = 3\ndeterministic = true").unwrap();
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
        assert!(text.contains(r#""direction":"maximize""#) && text.contains(r#""lookahead":8"#));
        assert_eq!(plan.budget, 100);
    }

    #[test]
    fn what_is_left_open_stays_as_it_was() {
        let old = plan("repeat = 3\nseed = 7\nmaximize = 'time'").unwrap();
        assert_eq!(old.confirm, 3);
        let new = Plan::new(&Settings::default(), Path::new("/elsewhere"), Some(&old)).unwrap();
        assert_eq!(new, old);
    }

    #[test]
    fn another_study_is_refused_and_a_longer_one_is_not() {
        let old = plan("budget = 100\nseed = 7").unwrap();
        let go_on = |more: &str| {
            let new = Plan::new(&settings(more), Path::new("/base"), Some(&old))?;
            new.check_continues(&old, Path::new("s"))
        };
        assert_eq!(go_on("budget = 200\njobs = 64\ntimeout = 5\nretries = 2"), Ok(()));
        let error = |more| go_on(more).unwrap_err().to_string();
        assert!(error("seed = 8").starts_with("seed is 8, but the study in s was begun with 7."));
        assert!(error("budget = 50").contains("can only be made larger"));
        assert!(error("command = 'other'").starts_with("command is"));
        let space = Settings::parse("[parameters]\nx = '0:11'").unwrap();
        let new = Plan::new(&space, Path::new("/base"), Some(&old)).unwrap();
        let error = new.check_continues(&old, Path::new("s")).unwrap_err().to_string();
        assert!(error.starts_with("parameter `x` has another range in the study in s."), "{error}");
    }

    #[test]
    fn mistakes_are_named() {
        let error = |more| plan(more).unwrap_err().to_string();
        assert!(error("jobs = 0").contains("jobs is 0"));
        assert!(error("algorithm = 'magic'").contains("`magic` is not one of auto"));
        assert!(error("minimize = 'time'\nmaximize = 'time'").contains("both"));
        assert!(error("deterministic = true\nlookahead = 0").contains("lookahead is 0"));
    }
}
