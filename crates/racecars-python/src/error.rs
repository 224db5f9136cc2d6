//! The core's errors as Python's.

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::{PyErr, create_exception};
use racecars::ErrorKind;

create_exception!(
    racecars,
    SpaceExhausted,
    PyRuntimeError,
    "Every point of a discrete space has been proposed or told."
);

/// What the core refuses is a bad value, or a keyword that does not exist.
pub(crate) fn refused(error: racecars::Error) -> PyErr {
    match error.kind() {
        ErrorKind::UnknownSetting => PyTypeError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

pub(crate) fn exhausted(space: &racecars::Space) -> PyErr {
    SpaceExhausted::new_err(match space.cardinality() {
        Some(points) => format!("all {points} points of the space have been proposed or told"),
        None => "no point of the space is left to propose".to_string(),
    })
}

pub(crate) fn in_use() -> PyErr {
    PyRuntimeError::new_err("the optimizer is in use by `minimize`, which asks and tells it")
}

pub(crate) fn closed() -> PyErr {
    PyRuntimeError::new_err("the session is closed")
}

/// What the core or a study's journal refuses, where there is no interpreter to make an exception with.
pub(crate) enum Refused {
    Core(racecars::Error),
    Study(racecars_study::Error),
}

impl From<racecars::Error> for Refused {
    fn from(error: racecars::Error) -> Self {
        Refused::Core(error)
    }
}

impl From<racecars_study::Error> for Refused {
    fn from(error: racecars_study::Error) -> Self {
        Refused::Study(error)
    }
}

impl From<Refused> for PyErr {
    fn from(error: Refused) -> Self {
        match error {
            Refused::Core(error) => refused(error),
            Refused::Study(error) => crate::study::refused(error),
        }
    }
}
