//! The arguments that `run`, `check` and `ask` share: what the study is.

use super::algorithm_help;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use racecars::{Algorithm, Noise};
use racecars_study::{Aggregate, Budget, FOLDER, Keep, Parameter, Settings, Sync, journal, units};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Args, Default)]
pub(crate) struct StudyArguments {
    /// A study file; ./study.toml if there is one and neither -p, nor a command, nor a folder with
    /// a study is given
    #[arg(value_name = "STUDY.TOML")]
    file: Option<PathBuf>,
    /// A parameter: x=0:10, n=1..64, lr=1e-5:1e-1:log, n=1..64:log, x=0:1:step=0.1, mode=a,b,c,
    /// `size=small<medium<large`, flag=bool; an array of five: `w[5]=-1:1`
    #[arg(short = 'p', long = "parameter", value_name = "NAME=RANGE")]
    parameters: Vec<Parameter>,
    /// The number of evaluations, or so many per parameter [default: 20n, at least 100]
    #[arg(long, value_name = "T|30n")]
    budget: Option<Budget>,
    /// How many evaluations run at once [default: the number of cores]
    #[arg(long, value_name = "J")]
    jobs: Option<usize>,
    /// The longest time of an evaluation: 60s, 500ms, 5m. Then its whole process group gets SIGTERM,
    /// and two seconds later SIGKILL
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    timeout: Option<Duration>,
    /// How often a failed evaluation is tried again [default: 0]
    #[arg(long, value_name = "K")]
    retries: Option<u32>,
    /// The most resident memory of an evaluation's process group: 512M, 2G
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    memory: Option<u64>,
    /// Minimize this value [default: last]. last: the last number on the last line of standard output;
    /// `json:a.b[0]`; `regex:loss=(\S+)`; time: the run time; stderr; file:PATH; stderr and file:PATH may
    /// be followed by :json:.. or :regex:..
    #[arg(long, value_name = "VALUE", num_args = 0..=1, default_missing_value = "last")]
    minimize: Option<String>,
    /// Maximize this value
    #[arg(
        long, value_name = "VALUE", num_args = 0..=1, default_missing_value = "last",
        conflicts_with = "minimize"
    )]
    maximize: Option<String>,
    /// A value that must be at most 0, found as with --minimize; may be given several times
    #[arg(long = "constraint", value_name = "VALUE")]
    constraints: Vec<String>,
    /// Pass the parameters in the environment: all as `RACECARS_<name>`, or one as NAME={name}
    #[arg(long, value_name = "NAME=TEXT", num_args = 0..=1, default_missing_value = "*")]
    env: Vec<String>,
    /// Pass the parameters as JSON on standard input
    #[arg(long)]
    stdin: bool,
    /// Fill in this file's {name}s for each evaluation, which runs in a folder of its own
    #[arg(long = "template", value_name = "FILE[=TARGET]")]
    templates: Vec<String>,
    /// Run the command by `sh -c`; values are quoted
    #[arg(long)]
    shell: bool,
    /// Evaluate each point so often [default: 1]
    #[arg(long, value_name = "K")]
    repeat: Option<u32>,
    /// What is made of the repeated values [default: mean]
    #[arg(long)]
    aggregate: Option<AggregateName>,
    /// At the end evaluate the leading points again so often, and recommend the best by these fresh
    /// values [default: as --repeat, if that is above 1]
    #[arg(long, value_name = "K")]
    confirm: Option<u32>,
    /// Whether `auto` takes the program for noisy, and evaluates again what is only better by luck perhaps;
    /// `detect` evaluates the first point twice, unless parameters are discrete [default: detect]
    #[arg(long)]
    noise: Option<NoiseName>,
    /// How many points are the leading ones [default: 5]
    #[arg(long, value_name = "M")]
    leaders: Option<usize>,
    #[arg(long, value_name = "A", help = algorithm_help("The algorithm [default: auto]"))]
    algorithm: Option<Algorithm>,
    /// The seed of the search, and of the {seed}s of evaluations [default: 0]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Tell outcomes in the order asked: the same seed gives the same run on any number of jobs and
    /// after any interruption
    #[arg(long)]
    deterministic: bool,
    /// With --deterministic: how many points may be out; part of what determines the run [default: 8]
    #[arg(long, value_name = "L")]
    lookahead: Option<u64>,
    /// When the journal is forced to disk: every 100 ms, or after each line [default: periodic]
    #[arg(long)]
    sync: Option<SyncName>,
    /// Which evaluations' own folders are kept [default: failed]
    #[arg(long)]
    keep: Option<KeepName>,
    /// Stop when a value is at least as good as this
    #[arg(long, value_name = "V", allow_negative_numbers = true)]
    target: Option<f64>,
    /// Start no more evaluations after this time: 8h, 30m
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    time_limit: Option<Duration>,
    /// The study's folder [default: racecars-study, beside the study file if there is one]
    #[arg(long, value_name = "DIR")]
    study: Option<PathBuf>,
    /// The program and its arguments, with {name} for parameters. {trial}, {seed}, {dir} (a folder of
    /// the evaluation's own) and {base} are built in; {w...} spreads an array over arguments, `{w[0]}`
    /// is one of its values, and {{x}} is {x} itself
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum AggregateName {
    Mean,
    Median,
}

#[derive(Clone, Copy, ValueEnum)]
enum NoiseName {
    Detect,
    Yes,
    No,
}

#[derive(Clone, Copy, ValueEnum)]
enum SyncName {
    Periodic,
    Always,
}

#[derive(Clone, Copy, ValueEnum)]
enum KeepName {
    None,
    Failed,
    All,
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
        StudyArguments { study: folder, ..StudyArguments::default() }
    }

    /// Reads the study file, if there is one, under the flags.
    pub(crate) fn wanted(self) -> anyhow::Result<Wanted> {
        let here = std::env::current_dir().context("cannot tell the current folder")?;
        let usual = Path::new("study.toml");
        let is_begun = |folder: &PathBuf| folder.join(journal::FILE).exists();
        let is_bare = self.parameters.is_empty()
            && self.command.is_empty()
            && !self.study.as_ref().is_some_and(is_begun);
        let file = match &self.file {
            Some(file) if file.is_dir() => Some(file.join(usual)),
            Some(file) => Some(file.clone()),
            None if is_bare && usual.exists() => Some(usual.to_path_buf()),
            None => None,
        };
        let has_folder = self.study.is_some() || Path::new(FOLDER).exists();
        if file.is_none() && is_bare && !has_folder {
            bail!(
                "nothing to run: give parameters with -p and a command after --, or a study file \
                 (`racecars init` writes one)"
            );
        }
        let settings = self.settings();
        let Some(file) = file else {
            let folder = settings.study.clone().unwrap_or_else(|| FOLDER.into());
            return Ok(Wanted { folder: here.join(folder), base: here, settings });
        };
        let from_file = Settings::read(&file)?;
        let base = match std::path::absolute(&file)?.parent() {
            Some(parent) => parent.to_path_buf(),
            None => here.clone(),
        };
        let folder = match (&settings.study, &from_file.study) {
            (Some(folder), _) => here.join(folder),
            (None, Some(folder)) => base.join(folder),
            (None, None) => base.join(FOLDER),
        };
        Ok(Wanted { settings: settings.over(from_file), folder, base })
    }

    fn settings(self) -> Settings {
        let mut settings = Settings::default();
        settings.command = self.command;
        settings.shell = self.shell.then_some(true);
        settings.study = self.study;
        settings.budget = self.budget;
        settings.jobs = self.jobs;
        settings.timeout = self.timeout;
        settings.retries = self.retries;
        settings.memory = self.memory;
        settings.minimize = self.minimize;
        settings.maximize = self.maximize;
        settings.constraints = self.constraints;
        settings.env = self.env;
        settings.stdin = self.stdin.then_some(true);
        settings.templates = self.templates;
        settings.repeat = self.repeat;
        settings.aggregate = self.aggregate.map(|name| match name {
            AggregateName::Mean => Aggregate::Mean,
            AggregateName::Median => Aggregate::Median,
        });
        settings.confirm = self.confirm;
        settings.noise = self.noise.map(|name| match name {
            NoiseName::Detect => Noise::Detect,
            NoiseName::Yes => Noise::Yes,
            NoiseName::No => Noise::No,
        });
        settings.leaders = self.leaders;
        settings.algorithm = self.algorithm.map(|algorithm| algorithm.name().to_string());
        settings.seed = self.seed;
        settings.deterministic = self.deterministic.then_some(true);
        settings.lookahead = self.lookahead;
        settings.sync = self.sync.map(|name| match name {
            SyncName::Periodic => Sync::Periodic,
            SyncName::Always => Sync::Always,
        });
        settings.keep = self.keep.map(|name| match name {
            KeepName::None => Keep::None,
            KeepName::Failed => Keep::Failed,
            KeepName::All => Keep::All,
        });
        settings.target = self.target;
        settings.time_limit = self.time_limit;
        settings.parameters = self.parameters;
        settings
    }
}
