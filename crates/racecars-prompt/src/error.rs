//! The crate's one error: a message for people and a kind to branch on.

use std::fmt;
use std::path::Path;

/// What went wrong with a search of prompts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// The kinds of [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file with the settings, or data that it names.
    Setting,
    /// The endpoint cannot be reached, refuses, or answers what is no answer.
    Endpoint,
    /// The study's folder: its journal, its answers, or its lock.
    Study,
    /// The disk or the system refused.
    System,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl fmt::Display) -> Self {
        Error { kind, message: message.to_string() }
    }

    pub(crate) fn setting(message: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Setting, message)
    }

    pub(crate) fn endpoint(message: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Endpoint, message)
    }

    /// The system refused to do `what` (a verb in the infinitive) with `path`.
    pub(crate) fn system(what: &str, path: &Path, error: impl fmt::Display) -> Self {
        Error::new(ErrorKind::System, format!("cannot {what} {}: {error}", path.display()))
    }

    /// What kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl From<racecars_study::Error> for Error {
    fn from(error: racecars_study::Error) -> Self {
        Error::new(ErrorKind::Study, error)
    }
}

impl From<racecars::Error> for Error {
    fn from(error: racecars::Error) -> Self {
        Error::setting(error)
    }
}

impl From<racecars_figures::files::FileError> for Error {
    fn from(error: racecars_figures::files::FileError) -> Self {
        Error::new(ErrorKind::System, error)
    }
}

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;
