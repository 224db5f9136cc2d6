//! The library's one error: opaque, with a kind to branch on and a message that names what was
//! wrong, where, and what is allowed.

use std::fmt;

/// What went wrong in a call to this library.
///
/// The message is for people; programs branch on [`Error::kind`].
///
/// ```
/// use racecars::{ErrorKind, Space};
///
/// let error = Space::builder().real("x", 3.0, 1.0).build().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Space);
/// assert_eq!(error.to_string(), "coordinate `x`: low 3 is not below high 1");
/// ```
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
    /// A search space that cannot be searched.
    Space,
    /// A point that does not belong to the space, or a name that the space does not have.
    Point,
    /// An algorithm's setting outside its range.
    Setting,
    /// A candidate told twice.
    Repeated,
    /// A candidate that was never asked.
    Unasked,
    /// Saved bytes that are damaged, foreign or of another version.
    Saved,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl fmt::Display) -> Self {
        Error { kind, message: message.to_string() }
    }

    pub(crate) fn space(message: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Space, message)
    }

    pub(crate) fn point(message: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Point, message)
    }

    pub(crate) fn setting(message: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Setting, message)
    }

    pub(crate) fn saved(message: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Saved, message)
    }

    /// What kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

/// The library's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;
