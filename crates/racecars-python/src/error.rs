//! The core's errors as Python's.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::{PyErr, create_exception};

create_exception!(
    racecars,
    SpaceExhausted,
    PyRuntimeError,
    "Every point of a discrete space has been proposed or told."
);

/// Everything that the core refuses is a value that it was given.
pub(crate) fn refused(error: racecars::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub(crate) fn exhausted(space: &racecars::Space) -> PyErr {
    SpaceExhausted::new_err(match space.cardinality() {
        Some(points) => format!("all {points} points of the space have been proposed or told"),
        None => "no point of the space is left to propose".to_string(),
    })
}
