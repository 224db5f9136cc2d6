//! The arguments that `run`, `check` and `ask` share: what the study is. The flags are those of the table of
//! settings in `racecars-study`.

use anyhow::{Context, bail};
use clap::builder::{PossibleValuesParser, ValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use racecars_study::{FOLDER, Row, Settings, Takes, journal};
use std::path::{Path, PathBuf};

#[derive(Debug, Default)]
pub(crate) struct StudyArguments {
    file: Option<PathBuf>,
    settings: Settings,
}

impl Args for StudyArguments {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new("file")
            .value_name("STUDY.TOML")
            .value_parser(ValueParser::path_buf())
            .help(
                "A study file; ./study.toml if there is one and neither -p, nor a command, nor a folder \
                 with a study is given",
            );
        command.arg(file).args(Settings::rows().iter().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        StudyArguments::augment_args(command)
    }
}

/// The flag of a setting.
fn argument(row: &Row) -> Arg {
    let argument = Arg::new(row.name).help(row.help()).value_name(row.value_name);
    let argument = match row.is_command {
        true => argument.last(true).num_args(1..),
        false => argument.long(row.flag),
    };
    let argument = match row.takes {
        // `--shell=false` takes back what a study file says.
        Takes::Nothing => {
            return argument
                .value_name("true|false")
                .value_parser(["true", "false"])
                .hide_possible_values(true)
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true");
        }
        Takes::Many => argument.action(ArgAction::Append),
        _ => argument.action(ArgAction::Set),
    };
    let argument = match row.choices {
        [] => {
            let row = row.clone();
            argument
                .allow_negative_numbers(true)
                .value_parser(move |text: &str| row.check(text).map(|()| text.to_string()))
        }
        choices => argument.value_parser(PossibleValuesParser::new(choices)),
    };
    let argument = match row.bare {
        Some(bare) => argument.num_args(0..=1).default_missing_value(bare),
        None => argument,
    };
    let argument = match row.excludes {
        Some(other) => argument.conflicts_with(other),
        None => argument,
    };
    row.short.into_iter().fold(argument, Arg::short)
}

impl FromArgMatches for StudyArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut arguments = StudyArguments::default();
        arguments.update_from_arg_matches(matches)?;
        Ok(arguments)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.file = matches.get_one("file").cloned();
        for row in Settings::rows() {
            if let Some(texts) = matches.get_many::<String>(row.name) {
                let texts: Vec<String> = texts.cloned().collect();
                (row.read(&mut self.settings, &texts))
                    .map_err(|error| clap::Error::raw(ErrorKind::ValueValidation, error))?;
            }
        }
        Ok(())
    }
}

/// A study that was asked for.
pub(crate) struct Wanted {
    pub(crate) settings: Settings,
    /// The study's folder.
    pub(crate) folder: PathBuf,
    /// The folder that commands are relative to.
    pub(crate) base: PathBuf,
}

impl StudyArguments {
    /// The study in this folder, and nothing else said.
    pub(crate) fn of_folder(folder: Option<PathBuf>) -> Self {
        let mut arguments = StudyArguments::default();
        arguments.settings.study = folder;
        arguments
    }

    /// Reads the study file, if there is one, under the flags.
    pub(crate) fn wanted(self) -> anyhow::Result<Wanted> {
        let here = std::env::current_dir().context("cannot tell the current folder")?;
        let usual = Path::new("study.toml");
        let is_begun = |folder: &PathBuf| folder.join(journal::FILE).exists();
        let given = &self.settings;
        let is_bare = given.parameters.is_none()
            && given.command.is_none()
            && !given.study.as_ref().is_some_and(is_begun);
        let file = match self.file {
            Some(file) if file.is_dir() => Some(file.join(usual)),
            Some(file) => Some(file),
            None if is_bare && usual.exists() => Some(usual.to_path_buf()),
            None => None,
        };
        let has_folder = given.study.is_some() || Path::new(FOLDER).exists();
        if file.is_none() && is_bare && !has_folder {
            bail!(
                "nothing to run: give parameters with -p and a command after --, or a study file \
                 (`racecars init` writes one)"
            );
        }
        let mut settings = self.settings.relative_to(&here);
        let mut base = here;
        if let Some(file) = file {
            let from_file = Settings::read(&file)?;
            if let Some(folder) = std::path::absolute(&file)?.parent() {
                base = folder.to_path_buf();
            }
            settings = settings.over(from_file.relative_to(&base));
        }
        let folder = settings.study.clone().unwrap_or_else(|| base.join(FOLDER));
        Ok(Wanted { settings, folder, base })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Arguments, CliCommand};
    use clap::Parser;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::{Index, select, subsequence};
    use proptest::test_runner::{Config, TestRunner};
    use racecars::random::Random;
    use racecars::{Algorithm, Space};
    use racecars_study::{NamedPoint, Parameter, Plan, Row, Settings, Takes};
    use std::cell::RefCell;
    use std::collections::BTreeSet;
    use std::path::Path;

    const PARAMETERS: &[&str] = &[
        "x=0:10",
        "rate=1e-5:0.1:log",
        "g=0:1:step=0.1",
        "n=1..64",
        "k=1..64:log",
        "q=0..64:step=32",
        "mode=a,it's,\"c d\",$x",
        "size=small<007<1.5<a,b<{c}",
        "flag=bool",
        "w[3]=-1:1",
        "m[2]=1,b",
        "fixed=5",
        "word=it.is",
        "truth=true",
        "half=0.5",
        "five=5.0",
        "big=1e300",
        "id=007",
        "order=perm:4",
        "turn=perm:it's,b,{c}",
        "pick=subset:<=2 of u,$v,it's",
        "mix[3]=simplex",
        "deep=1..3 if not (2 > 3 or 1 = 2)",
    ];
    const ALGORITHMS: &[&str] = &[
        "auto",
        "auto(noise=yes)",
        "race-cars(training_size=7, replacing=farthest, repeats=true, gamma=0.9)",
        "de(weight=[0.5, 0.75], crossover=0.25)",
        "cma-es(population=40, sigma=0.1)",
        "embedding(dimension=1, algorithm=cma-es(population=9))",
        "relay(legs=[race-cars 1.0, l-shade(population=30) 2.0], noisy=true)",
        "random",
    ];
    /// Texts of all kinds: every row must find some of its own among these.
    const TEXTS: &[&str] = &[
        "0",
        "1",
        "2",
        "3",
        "17",
        "0.5",
        "-2.5",
        "30n",
        "1m30s",
        "250ms",
        "2G",
        "1000k",
        "mean",
        "median",
        "periodic",
        "always",
        "none",
        "failed",
        "all",
        "last",
        "time",
        "json:a.b[2]",
        r"regex:loss=(\S+) '$x'",
        "stderr:json:a",
        "file:{dir}/o u t:regex:-?\\d+",
        "*",
        "RATE=r $HOME `x` {x}",
        "A=",
        "-A=b",
        "in put.template",
        "a.in=b/c",
        "true",
        "false",
    ];

    /// What a plan is made of.
    #[derive(Debug, Clone)]
    struct Draw {
        parameters: Vec<&'static str>,
        maximize: bool,
        /// Where the texts of each row are among those that it takes, if it is given.
        rows: Vec<Option<Vec<Index>>>,
        /// Texts that are drawn themselves.
        texts: Vec<String>,
        command: Vec<String>,
        points: u64,
    }

    fn draws() -> impl Strategy<Value = Draw> {
        let count = Settings::rows().len();
        let texts =
            (any::<f64>(), any::<u64>(), any::<u32>(), 1e-9..3e9f64, "[A-Z]{1,3}=\\PC{0,9}");
        let texts = texts.prop_map(|(x, seed, number, seconds, variable)| {
            vec![x.to_string(), seed.to_string(), number.to_string(), seconds.to_string(), variable]
        });
        (
            subsequence(PARAMETERS, 1..6).prop_filter("something is searched", |all| {
                all.iter().any(|text| text.parse::<Parameter>().unwrap().fixed().is_none())
            }),
            any::<bool>(),
            vec(prop::option::of(vec(any::<Index>(), 1..4)), count),
            texts,
            vec(
                prop_oneof![
                    "\\PC{0,12}",
                    select(vec!["--", "-p", "--seed=1", "", "a b", "\n"]).prop_map(String::from)
                ],
                0..5,
            ),
            any::<u64>(),
        )
            .prop_map(|(parameters, maximize, rows, texts, command, points)| Draw {
                parameters,
                maximize,
                rows,
                texts,
                command,
                points,
            })
    }

    fn point(space: &Space, seed: u64) -> NamedPoint {
        let mut point = vec![0.0; space.dimension()];
        space.draw(&mut Random::stream(seed, 1), &mut point);
        NamedPoint::decode(space, &point)
    }

    /// The texts of a row: those that it takes, or for some rows what fits the plan.
    fn texts(row: &Row, draw: &Draw, space: &Space) -> Vec<String> {
        let points = (0..3).map(|i| point(space, draw.points ^ i));
        match row.name {
            // Given by the draw, or none of the plan.
            "parameters" | "command" | "set" | "noise" | "study" | "from" | "assume" => Vec::new(),
            // Points that are given satisfy these, whatever the parameters.
            "where" => ["1 < 2", "not (3 <= 2 or 1 > 4)", "2 in (1, 2)"].map(String::from).into(),
            "minimize" if draw.maximize => Vec::new(),
            "maximize" if !draw.maximize => Vec::new(),
            "algorithm" => {
                let takes = |text: &&&str| text.parse::<Algorithm>().unwrap().takes(space).is_ok();
                ALGORITHMS.iter().filter(takes).map(ToString::to_string).collect()
            }
            "start" => points.map(|point| point.to_string()).collect(),
            "known" => {
                let outcome = ["\"value\":-1.5", "\"infeasible\":0.25", "\"failed\":\"it's\""];
                let point = |(point, outcome): (NamedPoint, &str)| {
                    format!("{{\"params\":{},{outcome}}}", serde_json::to_string(&point).unwrap())
                };
                points.zip(outcome).map(point).collect()
            }
            _ => {
                let all = TEXTS.iter().map(ToString::to_string).chain(draw.texts.iter().cloned());
                let texts: Vec<String> = all.filter(|text| row.check(text).is_ok()).collect();
                assert!(texts.len() > 1, "no texts for `{}`: add some to TEXTS", row.name);
                texts
            }
        }
    }

    fn settings(draw: &Draw) -> Settings {
        let mut settings = Settings::default();
        settings.parameters =
            Some(draw.parameters.iter().map(|text| text.parse().unwrap()).collect());
        let space = Plan::new(&settings, Path::new("/"), None).unwrap().space;
        for (row, chosen) in Settings::rows().iter().zip(&draw.rows) {
            let (texts, Some(chosen)) = (texts(row, draw, &space), chosen) else { continue };
            if texts.is_empty() {
                continue;
            }
            let mut given: Vec<String> =
                chosen.iter().map(|index| index.get(&texts).clone()).collect();
            if row.takes != Takes::Many {
                given.truncate(1);
            }
            row.read(&mut settings, &given).unwrap();
        }
        if settings.deterministic != Some(true) {
            settings.lookahead = None;
        }
        if !matches!(settings.patience, Some(Some(_))) {
            settings.patience_tolerance = None;
        }
        settings.command = Some(draw.command.clone());
        settings
    }

    /// The words of a line, by a shell's rules: a shell splits it.
    fn split(line: &str) -> Vec<String> {
        let script = format!("printf '%s\\0' {line}");
        let output = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_terminator('\0').map(String::from).collect()
    }

    /// The plan of a command.
    fn plan_of(line: &str) -> Plan {
        let arguments = Arguments::try_parse_from(split(line));
        let CliCommand::Run(run) =
            arguments.unwrap_or_else(|error| panic!("{line}\n{error}")).command
        else {
            panic!("{line} is another command")
        };
        let wanted = run.study.wanted().unwrap();
        assert!(wanted.folder.ends_with("a study"));
        Plan::new(&wanted.settings, &wanted.base, None).unwrap()
    }

    #[test]
    fn the_command_of_a_plan_gives_the_plan() {
        let given = RefCell::new(BTreeSet::new());
        // An algorithm that takes the parameters may not take constraints.
        let is_needless = |error: &racecars_study::Error| {
            [" is needed", " take this space"].iter().any(|end| error.to_string().ends_with(end))
        };
        let check = |draw: Draw| {
            let settings = settings(&draw);
            let plan = match Plan::new(&settings, Path::new("/base"), None) {
                Err(error) if is_needless(&error) => return Err(TestCaseError::reject("0")),
                plan => plan.unwrap(),
            };
            let rows = Settings::rows();
            let rows = rows.iter().filter(|row| row.texts(&settings).is_some());
            given.borrow_mut().extend(rows.map(|row| row.name));
            let mut again = plan_of(&plan.command_line(Path::new("a study")));
            // What by nature differs.
            (again.base, again.started) = (plan.base.clone(), plan.started);
            prop_assert_eq!(&again, &plan);
            let journal = serde_json::to_string(&plan).unwrap();
            prop_assert_eq!(serde_json::from_str::<Plan>(&journal).unwrap(), plan);
            Ok(())
        };
        let mut runner =
            TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(200) });
        runner.run(&draws(), check).unwrap();
        for row in Settings::rows() {
            // In the text of the algorithm, not part of a plan, or in it as known points.
            let is_elsewhere = ["set", "noise", "study", "from", "assume"].contains(&row.name);
            assert!(
                is_elsewhere || given.borrow().contains(row.name),
                "`{}` was never given",
                row.name
            );
        }
    }

    #[test]
    fn the_command_of_a_plan_has_a_zero_where_it_is_not_the_default() {
        let line = "racecars run -p x=0:1 --repeat 3 --confirm 0 --study 'a study' -- true {x}";
        let plan = plan_of(line);
        assert_eq!((plan.repeat, plan.confirm), (3, 0));
        let again = plan.command_line(Path::new("a study"));
        assert!(again.contains("--confirm 0"), "{again}");
        assert_eq!(plan_of(&again).confirm, 0);
    }

    #[test]
    fn a_switch_can_take_back_what_a_file_says() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("study.toml");
        std::fs::write(&file, "stdin = true\n[parameters]\nx = '0:1'").unwrap();
        let stdin = |switch: &str| {
            let words = ["racecars", "run", file.to_str().unwrap(), "--study", "a study"];
            let arguments = Arguments::try_parse_from(words.into_iter().chain([switch])).unwrap();
            let CliCommand::Run(run) = arguments.command else { panic!("another command") };
            run.study.wanted().unwrap().settings.stdin
        };
        assert_eq!(stdin("--stdin=false"), Some(false));
        assert_eq!(stdin("--stdin"), Some(true));
        assert_eq!(stdin("--shell"), Some(true));
    }

    #[test]
    fn mistakes_name_the_flag_the_value_and_what_is_allowed() {
        let error = |words: &[&str]| {
            let words = ["racecars", "run"].iter().chain(words);
            Arguments::try_parse_from(words).err().unwrap().to_string()
        };
        for (words, parts) in [
            (["--jobs", "two"], ["'two' for '--jobs <J>'", "`two` is not a whole number"]),
            (["--timeout", "soon"], ["'--timeout <TIME>'", "60s, 500ms, 5m"]),
            (["--aggregate", "sum"], ["'sum' for '--aggregate <HOW>'", "mean, median"]),
            (["--set", "population"], ["'--set <NAME=VALUE>'", "`population` is not NAME=VALUE"]),
            (["--start", "3"], ["'--start <POINT>'", "x=1,mode=a,w=[1,2,3]"]),
            (["--algorithm", "magic"], ["'--algorithm <A>'", "is not one of auto, race-cars"]),
        ] {
            let message = error(&words);
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        }
    }
}
