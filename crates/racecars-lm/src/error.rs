//! The crate's one error: a message for people and a kind to branch on.

use std::fmt;
use std::path::Path;

/// What went wrong with a language model, its service, or the tuning of a prompt.
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
    /// An invalid request: wrong length, not a number, too long, settings out of range.
    Input,
    /// An unknown batch.
    Unknown,
    /// The service is full, slow or shutting down; the same request may succeed later.
    Busy,
    /// The API key is missing or wrong.
    Unauthorized,
    /// A model file that is damaged or not supported.
    Model,
    /// A data file in the wrong format.
    Data,
    /// A journal or a prompt that is damaged or belongs to another run.
    Journal,
    /// The service could not be reached, or sent an invalid answer.
    Network,
    /// An error of the disk or the operating system.
    System,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl fmt::Display) -> Self {
        Error { kind, message: message.to_string() }
    }

    pub(crate) fn input(message: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Input, message)
    }

    pub(crate) fn model(message: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Model, message)
    }

    pub(crate) fn data(message: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Data, message)
    }

    pub(crate) fn journal(message: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Journal, message)
    }

    pub(crate) fn network(message: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Network, message)
    }

    /// The operating system failed to do `what` (an infinitive) with `path`.
    pub(crate) fn system(what: &str, path: &Path, error: impl fmt::Display) -> Self {
        Error::new(ErrorKind::System, format!("cannot {what} {}: {error}", path.display()))
    }

    /// The same error with the place where it happened in front of the message.
    pub(crate) fn within(self, place: impl fmt::Display) -> Self {
        Error { message: format!("{place}: {}", self.message), ..self }
    }

    /// The kind of error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl From<racecars::Error> for Error {
    fn from(error: racecars::Error) -> Self {
        Error::input(error)
    }
}

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;
