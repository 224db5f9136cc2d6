//! `racecars._core`: the core for Python, thin. What users see is in `python/racecars`.
//!
//! - `space`: spaces, and points as arrays and dicts; `predicate`: constraints that are Python functions
//! - `algorithm`: an algorithm from its name and keyword options
//! - `candidate`, `optimizer`: ask and tell
//! - `session`, `drive`: runs, and the loop that calls a Python function one point after the other
//! - `trials`: the trials of a run as flat arrays; `study`: their journal and its report
//! - `embedding`: many coordinates as few
//!
//! Locks are held only while the core works, never while Python code runs, and waiting for one
//! releases the interpreter. Work of more than some microseconds releases it, too.

mod algorithm;
mod candidate;
mod drive;
mod embedding;
mod error;
mod optimizer;
mod predicate;
mod session;
mod space;
mod study;
mod trials;

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use racecars::{Algorithm, Workers};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits for a lock without the interpreter.
fn lock<'a, T>(py: Python<'_>, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
    mutex.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
}

/// Works, without the interpreter if it may take long.
#[inline(always)]
fn work<T: Send>(py: Python<'_>, is_long: bool, what: impl FnOnce() -> T + Send) -> T {
    if is_long { py.detach(what) } else { what() }
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<space::Space>()?;
    module.add_class::<candidate::Candidate>()?;
    module.add_class::<optimizer::Optimizer>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<embedding::Embedding>()?;
    module.add_class::<trials::TrialData>()?;
    module.add_function(wrap_pyfunction!(study::read_study, module)?)?;
    module.add_function(wrap_pyfunction!(study::write_journal, module)?)?;
    module.add_function(wrap_pyfunction!(study::write_report, module)?)?;
    module.add_function(wrap_pyfunction!(study::report_data, module)?)?;
    module.add_function(wrap_pyfunction!(algorithm::settings, module)?)?;
    module.add_function(wrap_pyfunction!(algorithm::algorithm_name, module)?)?;
    module.add_function(wrap_pyfunction!(algorithm::budget, module)?)?;
    module.add("SpaceExhausted", module.py().get_type::<error::SpaceExhausted>())?;
    module.add("METHODS", Algorithm::NAMES.to_vec())?;
    module.add("STOP_REASONS", algorithm::stop_reasons())?;
    module.add("RETRYABLE", algorithm::retryable())?;
    module.add("LOOKAHEAD", Workers::LOOKAHEAD)?;
    module.add("MAX_COORDINATES", trials::MAX_COORDINATES)?;
    module.add("MAX_TRIALS", trials::MAX_TRIALS)?;
    module.add("MAX_SHORT_COORDINATES", trials::MAX_SHORT_COORDINATES)?;
    module.add("MAX_SHORT_TRIALS", trials::MAX_SHORT_TRIALS)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
