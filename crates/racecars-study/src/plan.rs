//! From settings to a [`Plan`] and back: what was given over what the study was begun with, checked.

use crate::error::{Error, Result};
use crate::extract::Source;
use crate::known::{Known, KnownPoints};
use crate::outcome::Direction;
use crate::parameter::{self, Parameter};
use crate::point::NamedPoint;
pub use crate::settings::Plan;
use crate::settings::value::choices;
use crate::settings::{Basis, Settings};
use crate::shell::command_line;
use crate::text::Names;
use crate::transfer;
use racecars::{Budget, Space, Values};
use serde::de::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};

/// The journal format that this version writes.
pub(crate) const VERSION: u32 = 2;

/// When the journal is forced to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sync {
    /// At least every 100 ms.
    #[default]
    Periodic,
    /// After each line.
    Always,
}

choices!(Sync { Periodic => "periodic", Always => "always" });

/// Which evaluations' own folders are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// None.
    None,
    /// Those of evaluations that failed.
    #[default]
    Failed,
    /// All.
    All,
}

choices!(Keep { None => "none", Failed => "failed", All => "all" });

/// How repeated values are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Aggregate {
    /// Their mean.
    #[default]
    Mean,
    /// Their median.
    Median,
}

choices!(Aggregate { Mean => "mean", Median => "median" });

impl Plan {
    /// The largest budget that can be given. It stands for no limit, as of a search that only its time limits.
    pub const NO_LIMIT: u64 = 1_000_000_000_000_000;

    /// The number of evaluations, if it is limited.
    pub fn limit(&self) -> Option<u64> {
        (self.budget < Plan::NO_LIMIT).then_some(self.budget)
    }

    /// The plan of these settings. What they leave open is as in `old`, the plan that the study has so
    /// far, or the default. `base` is the folder that commands are relative to.
    pub fn new(settings: &Settings, base: &Path, old: Option<&Plan>) -> Result<Plan> {
        let parameters = match (&settings.parameters, old) {
            (None, Some(old)) if settings.r#where.is_none() => {
                (old.space.clone(), old.fixed.clone())
            }
            (given, old) => {
                // What is not given is as it was.
                let old = old.map(|old| old.settings(true)).unwrap_or_default();
                let parameters = given.clone().or(old.parameters).unwrap_or_default();
                let constraints = settings.r#where.clone().or(old.r#where).unwrap_or_default();
                parameter::space(&parameters, &constraints)?
            }
        };
        Plan::in_space(parameters, settings, base, old)
    }

    /// The same in this space and with these fixed parameters, which need not be such that can be written.
    pub(crate) fn in_space(
        parameters: (Space, NamedPoint),
        settings: &Settings,
        base: &Path,
        old: Option<&Plan>,
    ) -> Result<Plan> {
        let mut settings = settings.clone();
        let (lookahead, tolerance) = (settings.lookahead, settings.patience_tolerance);
        let plan = match old {
            None => Plan::resolve(settings, parameters, base.into(), now())?,
            Some(old) => {
                let base = if settings.command.is_some() { base } else { &old.base };
                // Known points are read once, when the study begins.
                (settings.known, settings.from, settings.assume) = (None, None, None);
                let settings = settings.over(old.settings(true));
                Plan::resolve(settings, parameters, base.into(), old.started)?
            }
        };
        match (lookahead, tolerance) {
            (Some(lookahead), _) if !plan.deterministic => Err(Error::setting(format!(
                "lookahead is {lookahead}, which has an effect only with deterministic"
            ))),
            (_, Some(tolerance)) if tolerance > 0.0 && plan.patience.is_none() => {
                Err(Error::setting(format!(
                    "patience-tolerance is {tolerance}, which has an effect only with patience"
                )))
            }
            _ => Ok(plan),
        }
    }

    /// The parameters that placeholders can name.
    pub(crate) fn names(&self) -> Names<'_> {
        Names { space: &self.space, fixed: &self.fixed }
    }

    /// An encoded point by name, with the parameters that are fixed.
    pub(crate) fn named(&self, point: &[f64]) -> NamedPoint {
        NamedPoint::decode(&self.space, point).completed(&self.fixed)
    }

    /// The plan of settings in which nothing is left open but what is to have its default.
    fn resolve(
        mut settings: Settings,
        (space, fixed): (Space, NamedPoint),
        base: PathBuf,
        started: u64,
    ) -> Result<Plan> {
        let (direction, objective) = match (settings.minimize.take(), settings.maximize.take()) {
            (Some(_), Some(_)) => {
                return Err(Error::setting(
                    "both minimize and maximize are given; there is one goal",
                ));
            }
            (None, Some(source)) => (Direction::Maximize, source),
            (source, None) => (Direction::Minimize, source.unwrap_or_default()),
        };
        check_text(&base)?;
        let dimension = space.dimension();
        let budget = match settings.budget {
            Some(budget) => budget.evaluations(dimension),
            None => Budget::PerDimension(20.0).evaluations(dimension).max(100),
        };
        let (mut known, mut notes) = (Vec::new(), Vec::new());
        let names = Names { space: &space, fixed: &fixed };
        for points in settings.known.take().unwrap_or_default() {
            for Known { point, outcome } in points.read(names)? {
                let point = point.without_fixed(&fixed).and_then(|point| point.of_space(&space));
                known.push(Known {
                    point: point.map_err(|error| of_setting("known", error))?,
                    outcome,
                });
            }
        }
        let (from, assume) = (settings.from.take(), settings.assume.take());
        if let (None, Some([first, ..])) = (&from, assume.as_deref()) {
            return Err(Error::setting(format!(
                "assume is {first}, which has an effect only with from"
            )));
        }
        let assume = assume.unwrap_or_default().into_iter();
        let assume = assume.fold(NamedPoint::default(), |all, point| all.completed(&point));
        for study in from.unwrap_or_default() {
            let taken = transfer::take_over(&study, names, &assume, &objective)
                .map_err(|error| of_setting("from", error))?;
            known.extend(taken.known);
            notes.push(taken.note);
        }
        notes.extend(space.narrow_note());
        let (algorithm, version) = (settings.configured()?, VERSION);
        algorithm.takes(&space)?;
        let basis = Basis {
            version,
            space,
            algorithm,
            budget,
            direction,
            objective,
            fixed,
            known,
            base,
            started,
            notes,
        };
        let mut plan = Plan::complete(basis, settings)?;
        plan.complete_starts().map_err(|error| of_setting("start", error))?;
        Ok(plan)
    }

    /// Fills in what start points leave out: as in the best known point, or without one in the middle of
    /// the ranges.
    fn complete_starts(&mut self) -> Result<()> {
        if self.start.is_empty() {
            return Ok(());
        }
        let rank = |known: &Known| known.outcome.rank_in(self.direction);
        let usual = match self.known.iter().min_by_key(|known| rank(known)) {
            Some(best) if !best.outcome.is_failure() => best.point.clone(),
            _ => NamedPoint::decode(&self.space, &self.space.center()),
        };
        // Parameters that are inactive in that point.
        let middle = self.space.entries().iter();
        let middle = middle.map(|entry| (entry.name().to_string(), self.space.middle(entry)));
        let middle = NamedPoint::new(middle.collect());
        for point in &mut self.start {
            let given = point.without_fixed(&self.fixed)?;
            *point = given.completed(&usual).completed(&middle).of_space(&self.space)?;
        }
        Ok(())
    }

    /// The settings that give this plan: all, or those that are needed to give it.
    fn settings(&self, all: bool) -> Settings {
        let mut settings = self.rows(all);
        let fixed = self.fixed.values().iter().filter_map(|(name, values)| match values {
            Values::One(value) => Some(Parameter::of_fixed(name, value)),
            Values::Many(_) => None,
        });
        let searched = self.space.entries().iter().map(Parameter::of);
        settings.parameters = Some(searched.chain(fixed).collect());
        let constraints: Vec<String> = self.space.constraints().map(str::to_string).collect();
        settings.r#where = (!constraints.is_empty()).then_some(constraints);
        settings.budget = Some(Budget::Evaluations(self.budget));
        settings.algorithm = Some(self.algorithm.clone());
        settings.gather();
        let goal = Some(self.objective.clone());
        match self.direction {
            Direction::Minimize => settings.minimize = goal,
            Direction::Maximize => settings.maximize = goal,
        }
        if !self.known.is_empty() {
            let known = self.known.iter().cloned();
            settings.known = Some(known.map(KnownPoints::Point).collect());
        }
        settings
    }

    /// The command that runs a study of this plan in the folder `study`, as a line for a shell. It is to be
    /// run in [`Plan::base`].
    ///
    /// ```
    /// use racecars_study::{Plan, Settings};
    /// use std::path::Path;
    ///
    /// let settings = Settings::parse(r#"
    ///     command = ["./sim", "{x}"]
    ///     repeat = 3
    ///     confirm = 0
    ///     jobs = 2
    ///     [parameters]
    ///     x = "0:10"
    /// "#)?;
    /// assert_eq!(
    ///     Plan::new(&settings, Path::new("."), None)?.command_line(Path::new("s")),
    ///     "racecars run -p x=0:10 --budget 100 --jobs 2 --minimize last --repeat 3 --confirm 0 \
    ///      --algorithm auto --seed 0 --study s -- ./sim '{x}'"
    /// );
    /// # Ok::<(), racecars_study::Error>(())
    /// ```
    pub fn command_line(&self, study: &Path) -> String {
        let mut settings = self.settings(false);
        settings.study = Some(study.to_path_buf());
        let words = ["racecars", "run"].map(String::from).into_iter().chain(settings.words());
        command_line(&words.collect::<Vec<_>>())
    }

    /// Refuses to resume a study under settings that would make it another one. The budget may change, but
    /// not below the first, and so may the rows of the table that say so.
    pub(crate) fn check_continues(&self, old: &Plan, folder: &Path) -> Result<()> {
        let folder = folder.display();
        if self.space != old.space {
            let difference = parameters_differ(&self.space, &old.space);
            return Err(Error::setting(format!("{difference} in the study in {folder}. {ADVICE}")));
        }
        if self.fixed != old.fixed {
            let (ours, theirs) = (&self.fixed, &old.fixed);
            return Err(Error::setting(format!(
                "the fixed parameters are {ours}, but the study in {folder} was begun with {theirs}. \
                 {ADVICE}"
            )));
        }
        let goal = |plan: &Plan| match plan.direction {
            Direction::Minimize => format!("to minimize {}", plan.objective),
            Direction::Maximize => format!("to maximize {}", plan.objective),
        };
        let changed = if self.algorithm != old.algorithm {
            Some(("algorithm", self.algorithm.to_string(), old.algorithm.to_string()))
        } else if goal(self) != goal(old) {
            Some(("the goal", goal(self), goal(old)))
        } else {
            self.changed_row(old)
        };
        if let Some((name, ours, theirs)) = changed {
            return Err(Error::setting(format!(
                "{name} is {ours}, but the study in {folder} was begun with {theirs}. {ADVICE}"
            )));
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

/// Reads what is written, and the plans of journals that have `noise` beside the algorithm.
impl<'de> Deserialize<'de> for Plan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        struct Written {
            #[serde(default)]
            version: u32,
            space: Space,
            #[serde(default)]
            direction: Direction,
            #[serde(default)]
            objective: Option<String>,
            #[serde(default)]
            fixed: NamedPoint,
            #[serde(default)]
            base: PathBuf,
            #[serde(default)]
            started: u64,
            #[serde(flatten)]
            rows: serde_json::Map<String, serde_json::Value>,
        }
        let refuse = |error: Error| serde::de::Error::custom(error);
        let written = Written::deserialize(deserializer)?;
        let mut settings = Settings::of_journal(written.rows).map_err(refuse)?;
        let objective = written.objective.as_deref().map(str::parse::<Source>);
        let objective = objective.transpose().map_err(refuse)?;
        match written.direction {
            Direction::Minimize => settings.minimize = objective,
            Direction::Maximize => settings.maximize = Some(objective.unwrap_or_default()),
        }
        let parameters = (written.space, written.fixed);
        let plan = Plan::resolve(settings, parameters, written.base, written.started);
        Ok(Plan { version: written.version, ..plan.map_err(refuse)? })
    }
}

/// Refuses a folder whose name is no text: the journal, `{dir}` and what commands get are texts.
pub(crate) fn check_text(folder: &Path) -> Result<()> {
    match folder.to_str() {
        Some(_) => Ok(()),
        None => Err(Error::setting(format!(
            "the name of the folder {folder:?} is not UTF-8, which a study's journal and commands need; \
             rename it, or work in another one"
        ))),
    }
}

/// The error with the setting that it is of.
fn of_setting(name: &str, error: Error) -> Error {
    Error::setting(format!("{name}: {error}"))
}

const ADVICE: &str =
    "Give the same, choose another folder with --study, or begin afresh with --restart";

/// The first difference of two spaces, in words.
fn parameters_differ(ours: &Space, theirs: &Space) -> String {
    for entry in ours.entries() {
        match theirs.entries().iter().find(|other| other.name() == entry.name()) {
            None => return format!("parameter `{}` is not", entry.name()),
            Some(other) if Parameter::of(other) != Parameter::of(entry) => {
                return format!("parameter `{}` has another range", entry.name());
            }
            Some(_) => {}
        }
    }
    let is_missing = |name: &str| !ours.entries().iter().any(|entry| entry.name() == name);
    match theirs.entries().iter().find(|entry| is_missing(entry.name())) {
        Some(entry) => format!("parameter `{}` is missing, which is", entry.name()),
        None if ours.constraints().ne(theirs.constraints()) => {
            "the constraints in `where` are others than".to_string()
        }
        None => "the parameters are in another order".to_string(),
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(more: &str) -> Settings {
        let parameters = Settings::parse("[parameters]\nx = '0:10'\nn = '1..9'").unwrap();
        Settings::parse(more).unwrap().over(parameters)
    }

    fn plan(more: &str) -> Result<Plan> {
        Plan::new(&settings(more), Path::new("/base"), None)
    }

    #[test]
    fn a_plan_survives_the_journal() {
        let plan = plan(
            "maximize = 'json:a'\ntimeout = 3\nmemory = '2G'\ndeterministic = true\nnoise = 'no'\n\
             start = ['n=2,x=1']\nknown = [{params = {x = 1, n = 2}, value = 3}]\n\
             env = ['*']\ntemplates = ['a.in']\nconstraints = ['stderr']",
        )
        .unwrap();
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
        for part in [
            r#""direction":"maximize","objective":"json:a""#,
            r#""algorithm":"auto(noise=no)""#,
            r#""lookahead":2"#,
            r#""timeout":3.0"#,
            r#""memory":2147483648"#,
            r#""time_limit":null"#,
            r#""start":[{"x":1.0,"n":2}]"#,
            r#""known":[{"params":{"x":1.0,"n":2},"value":3.0}]"#,
            r#""constraints":["stderr"]"#,
        ] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        assert_eq!(plan.budget, 100);
    }

    #[test]
    fn journals_from_before_are_read() {
        let text = r#"{"version":1,"space":{"coordinates":[{"name":"x","type":"real","low":0.0,"high":10.0}]},
            "algorithm":"auto","seed":7,"budget":60,"direction":"maximize","deterministic":true,
            "lookahead":4,"jobs":2,"command":["./sim","{x}"],"shell":false,"env":["*","A={x}"],
            "stdin":false,"templates":[],"objective":"json:a.b","constraints":["stderr"],"repeat":3,
            "aggregate":"median","confirm":0,"noise":"yes","leaders":5,"timeout":1.5,"retries":2,
            "memory":1024,"sync":"always","keep":"all","target":null,"time_limit":null,
            "base":"/work","started":17}"#;
        let plan: Plan = serde_json::from_str(text).unwrap();
        assert_eq!(plan.algorithm.to_string(), "auto(noise=yes)");
        assert_eq!((plan.repeat, plan.confirm, plan.lookahead), (3, 0, 4));
        assert_eq!(
            (plan.direction, plan.objective.to_string()),
            (Direction::Maximize, "json:a.b".into())
        );
        assert_eq!(plan.timeout.map(|time| time.duration().as_secs_f64()), Some(1.5));
        assert_eq!((plan.patience, plan.start.len(), plan.started), (None, 0, 17));
        assert_eq!(plan.base, Path::new("/work"));
        let other = text.replace("\"yes\"", "\"detect\"").replace("\"auto\"", "\"race-cars\"");
        let other: Plan = serde_json::from_str(&other).unwrap();
        assert_eq!(other.algorithm, racecars::Algorithm::race_cars());
        let short = r#"{"version":1,"space":{"coordinates":[]}}"#;
        assert!(serde_json::from_str::<Plan>(short).is_err());
        let error = serde_json::from_str::<Plan>(&text.replace("\"auto\"", "\"magic\""));
        assert!(error.unwrap_err().to_string().contains("algorithm `magic` is not one of"));
    }

    #[test]
    fn what_is_left_open_stays_as_it_was() {
        let old = plan("repeat = 3\nseed = 7\nmaximize = 'time'\nset = {noise = 'yes'}").unwrap();
        assert_eq!(old.confirm, 3);
        let new = Plan::new(&Settings::default(), Path::new("/elsewhere"), Some(&old)).unwrap();
        assert_eq!(new, old);
        let same = Settings::parse("algorithm = 'auto'").unwrap();
        assert_eq!(Plan::new(&same, Path::new("/elsewhere"), Some(&old)).unwrap(), old);
        let limited = plan("timeout = 5\npatience = 9").unwrap();
        let lifted = Settings::parse("timeout = 'none'").unwrap();
        let lifted = Plan::new(&lifted, Path::new("/base"), Some(&limited)).unwrap();
        assert_eq!((lifted.timeout, lifted.patience), (None, Some(9)));
    }

    #[test]
    fn known_points_are_read_when_the_study_begins() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known.jsonl");
        std::fs::write(&path, "{\"params\":{\"n\":2,\"x\":1},\"failed\":\"oh\"}\n").unwrap();
        let settings = settings("known = 'known.jsonl'").relative_to(folder.path());
        let old = Plan::new(&settings, Path::new("/base"), None).unwrap();
        assert_eq!(old.known[0].point.to_string(), "x=1,n=2");
        std::fs::remove_file(&path).unwrap();
        let new = Plan::new(&settings, Path::new("/base"), Some(&old)).unwrap();
        assert_eq!(new, old);
    }

    #[test]
    fn start_points_are_completed_from_the_best_known_point_or_the_middle() {
        let space =
            "[parameters]\nx = '0:10'\nn = '1..9'\nk = '1..100:log'\nm = 'a,b'\nf = 'bool'\ny = 5";
        let starts = |more: &str| {
            let settings = Settings::parse(&format!("{more}\n{space}")).unwrap();
            let plan = Plan::new(&settings, Path::new("/base"), None)?;
            // A resumed study has the same.
            let again = Plan::new(&settings, Path::new("/base"), Some(&plan)).unwrap();
            assert_eq!(again.start, plan.start);
            Ok(plan.start.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let error =
            |more: &str| starts(more).map_err(|error: Error| error.to_string()).unwrap_err();
        assert_eq!(
            starts("start = ['x=1', 'y=5,m=b']").unwrap(),
            ["x=1,n=5,k=10,m=a,f=false", "x=5,n=5,k=10,m=b,f=false"]
        );
        let known = "known = [{params = {x = 1, n = 2, k = 3, m = 'b', f = true}, value = 3},
                              {params = {x = 2, n = 3, k = 4, m = 'a', f = true, y = 5}, value = 4}]";
        let minimized = starts(&format!("start = [{{n = 9}}]\n{known}")).unwrap();
        assert_eq!(minimized, ["x=1,n=9,k=3,m=b,f=true"]);
        let maximized =
            starts(&format!("maximize = 'last'\nstart = [{{n = 9}}]\n{known}")).unwrap();
        assert_eq!(maximized, ["x=2,n=9,k=4,m=a,f=true"]);
        assert!(error("start = ['y=6']").contains("parameter `y` is fixed at 5"));
    }

    #[test]
    fn fixed_parameters_are_part_of_what_makes_it_the_same_study() {
        let of = |y: &str| Settings::parse(&format!("[parameters]\nx = '0:1'\ny = {y}\nm = 'it'"));
        let old = Plan::new(&of("5").unwrap(), Path::new("/base"), None).unwrap();
        assert_eq!((old.space.dimension(), old.fixed.to_string()), (1, "y=5,m=it".to_string()));
        let text = serde_json::to_string(&old).unwrap();
        assert!(text.contains(r#""fixed":{"y":5,"m":"it"}"#), "{text}");
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), old);
        let new = Plan::new(&of("6").unwrap(), Path::new("/base"), Some(&old)).unwrap();
        let error = new.check_continues(&old, Path::new("s")).unwrap_err().to_string();
        assert!(
            error.starts_with("the fixed parameters are y=6,m=it, but the study in s"),
            "{error}"
        );
        let same = Plan::new(&Settings::default(), Path::new("/base"), Some(&old)).unwrap();
        assert_eq!(same, old);
    }

    #[test]
    fn another_study_is_refused_and_a_longer_one_is_not() {
        let old = plan("budget = 100\nseed = 7").unwrap();
        let go_on = |more: &str| {
            let new = Plan::new(&settings(more), Path::new("/base"), Some(&old))?;
            new.check_continues(&old, Path::new("s"))
        };
        let free = "budget = 200\njobs = 64\ntimeout = 5\nretries = 2\npatience = 3\nkeep = 'all'";
        assert_eq!(go_on(free), Ok(()));
        let error = |more| go_on(more).unwrap_err().to_string();
        assert!(error("seed = 8").starts_with("seed is 8, but the study in s was begun with 7."));
        assert!(error("budget = 50").contains("can only be made larger"));
        assert!(error("command = 'other'").starts_with("command is other, but"));
        assert!(error("noise = 'no'").starts_with("algorithm is auto(noise=no), but"));
        assert!(error("maximize = 'time'").starts_with("the goal is to maximize time, but"));
        assert!(error("start = ['x=1,n=1']").starts_with("start is x=1,n=1, but"));
        let space = Settings::parse("[parameters]\nx = '0:11'").unwrap();
        let new = Plan::new(&space, Path::new("/base"), Some(&old)).unwrap();
        let error = new.check_continues(&old, Path::new("s")).unwrap_err().to_string();
        assert!(error.starts_with("parameter `x` has another range in the study in s."), "{error}");
    }

    #[test]
    fn constraints_that_leave_little_are_noted() {
        let notes = |text: &str| {
            let settings =
                Settings::parse(&format!("where = ['{text}']\n[parameters]\n'x[4]' = '0:1'"));
            Plan::new(&settings.unwrap(), Path::new("/base"), None).unwrap().notes
        };
        let thin = notes("sum(x) < 0.3");
        assert!(
            thin[0].contains("of the ranges satisfies the constraints; `sum(x) < 0.3` alone"),
            "{thin:?}"
        );
        assert!(notes("x[0] < x[1]").is_empty());
    }

    #[test]
    fn the_study_files_of_the_page_about_spaces_are_plans() {
        let page = include_str!("../../../docs/spaces.md");
        let files: Vec<&str> = page.split("```toml\n").skip(1).collect();
        assert_eq!(files.len(), 2);
        for file in files {
            let file = file.split("```").next().unwrap_or_default();
            let plan =
                Plan::new(&Settings::parse(file).unwrap(), Path::new("/base"), None).unwrap();
            // A plan with conditions, constraints and structures survives the journal and the command line.
            let text = serde_json::to_string(&plan).unwrap();
            assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
            let again = Plan::new(&plan.settings(false), Path::new("/base"), None).unwrap();
            assert_eq!(again.space, plan.space);
        }
    }

    #[test]
    fn mistakes_are_named() {
        let error = |more| plan(more).unwrap_err().to_string();
        assert_eq!(error("jobs = 0"), "jobs is 0; at least 1 is needed");
        assert_eq!(error("patience = 0"), "patience is 0; at least 1 is needed");
        assert!(error("minimize = 'time'\nmaximize = 'time'").contains("both"));
        assert!(error("deterministic = true\nlookahead = 0").contains("lookahead is 0"));
        assert!(error("lookahead = 8").contains("only with deterministic"));
        assert!(error("algorithm = 'zo-adam'").contains("`n` is discrete"));
        assert!(error("start = ['y=1']").starts_with("start: `y=1,x=5,n=5`: `y` is no parameter;"));
        assert!(
            error("assume = ['x=1']").contains("assume is x=1, which has an effect only with from")
        );
        assert!(error("patience-tolerance = 0.5").contains("only with patience"));
        assert_eq!(
            error("patience = 3\npatience-tolerance = -1"),
            "patience-tolerance is -1; at least 0 is needed"
        );
        assert!(error("known = 'none'").contains("cannot read the known points none"));
        assert_eq!(
            Plan::new(&Settings::default(), Path::new(""), None).unwrap_err().to_string()[..13],
            *"no parameters"
        );
    }
}
