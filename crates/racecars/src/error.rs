//! The library's error type: opaque, with a kind to match on and a message that names the field, the
//! value and what is allowed.

use std::fmt;
use std::sync::Arc;

/// The error of all calls to this library.
///
/// The message is for people; programs match on [`Error::kind`]. An error that wraps another one returns
/// it as its [`source`](std::error::Error::source).
///
/// ```
/// use racecars::{ErrorKind, Space};
///
/// let error = Space::builder().real("x", 3.0, 1.0).build().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Space);
/// assert_eq!(error.to_string(), "coordinate `x`: low 3 is not below high 1");
/// ```
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// The kinds of [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A space that cannot be searched.
    Space,
    /// A point outside of the space, or an unknown coordinate name.
    Point,
    /// A setting outside of its range, or an algorithm that does not take the space.
    Setting,
    /// A setting that the algorithm does not have.
    UnknownSetting,
    /// A candidate or trial was told twice.
    Repeated,
    /// A candidate or trial was told that was never asked.
    Unasked,
    /// Saved bytes are damaged, of another version, or not from this library.
    Saved,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl fmt::Display) -> Self {
        Error { kind, message: message.to_string(), source: None }
    }

    /// This error, caused by another.
    pub(crate) fn caused_by(self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Error { source: Some(Arc::new(source)), ..self }
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

    /// This candidate or trial was told twice.
    #[cold]
    pub(crate) fn told_before(what: &str, number: u64) -> Self {
        Error::new(ErrorKind::Repeated, format!("{what} {number} has been told before"))
    }

    /// This candidate or trial was told, but never asked.
    #[cold]
    pub(crate) fn never_asked(what: &str, number: u64) -> Self {
        Error::new(ErrorKind::Unasked, format!("{what} {number} was never asked"))
    }

    /// The kind of this error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

/// Errors are equal if their kinds and messages are equal.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, &self.message) == (other.kind, &other.message)
    }
}

impl Eq for Error {}

/// Returns an error with this message unless the condition holds. `$kind` is a constructor of [`Error`].
macro_rules! ensure {
    ($condition:expr, $kind:ident, $($message:tt)+) => {
        if !$condition {
            return Err($crate::error::Error::$kind(format!($($message)+)));
        }
    };
}

pub(crate) use ensure;

/// The library's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;
