//! The crate's one error: a message for people and a kind to branch on.

use std::fmt;
use std::path::Path;

/// What went wrong with a study.
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
    /// A setting outside its range, or settings that do not go together.
    Setting,
    /// A journal that is damaged, or that is another study's.
    Journal,
    /// Another process is at work on the study.
    Locked,
    /// The disk or the system refused.
    System,
    /// The first evaluations all failed.
    FirstFailures,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl fmt::Display) -> Self {
        Error { kind, message: message.to_string() }
    }

    pub(crate) fn setting(message: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Setting, message)
    }

    pub(crate) fn journal(message: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Journal, message)
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

impl From<racecars::Error> for Error {
    fn from(error: racecars::Error) -> Self {
        Error::setting(error)
    }
}

/// For what also the system may refuse: reading a journal on, writing a report.
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        std::io::Error::other(error)
    }
}

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;
