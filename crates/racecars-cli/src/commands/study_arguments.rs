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
        Takes::Nothing => return argument.action(ArgAction::SetTrue),
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
            let texts = match row.takes {
                Takes::Nothing => matches.get_flag(row.name).then(|| vec!["true".to_string()]),
                _ => matches.get_many(row.name).map(|texts| texts.cloned().collect()),
            };
            if let Some(texts) = texts {
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
