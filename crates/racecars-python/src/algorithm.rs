//! Algorithms by name with keyword options, as the core's registry has them.

use crate::error::refused;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use racecars::{Algorithm, FailureKind, StopReason, StopRules};
use std::time::Duration;

/// The algorithm of this name, or the default one, with these settings.
pub(crate) fn algorithm(method: Option<&str>, options: &Bound<'_, PyDict>) -> PyResult<Algorithm> {
    let named = method.map(str::parse).transpose().map_err(refused)?;
    let mut settings: Vec<(String, String)> = Vec::with_capacity(options.len());
    for (name, value) in options.iter() {
        let name: String = name.extract()?;
        let text = text(&name, &value)?;
        settings.push((name, text));
    }
    Algorithm::configured(named, settings).map_err(refused)
}

/// A Python value as the text that the core reads.
fn text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_string());
    }
    if value.is_none() {
        return Ok("null".into());
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().to_string());
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(value.to_string());
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(format!("{:?}", number.extract::<f64>()?));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| text(name, &item?));
        return Ok(format!("[{}]", items.collect::<PyResult<Vec<_>>>()?.join(", ")));
    }
    // NumPy's scalars and arrays.
    if let Ok(plain) = value.call_method0("tolist")
        && !plain.is(value)
    {
        return text(name, &plain);
    }
    let kind = value.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "option `{name}` is {kind}; an option is a string, a number, True, False, None, or a list"
    )))
}

/// The name of the algorithm that a method and its options stand for.
#[pyfunction]
pub(crate) fn algorithm_name(
    method: Option<&str>,
    options: &Bound<'_, PyDict>,
) -> PyResult<&'static str> {
    Ok(algorithm(method, options)?.name())
}

/// The settings of a method: a dict from the name of each to what it does.
///
/// >>> import racecars
/// >>> list(racecars.settings("cma-es"))
/// ['population', 'sigma', 'restarts']
#[pyfunction]
pub(crate) fn settings<'py>(py: Python<'py>, method: &str) -> PyResult<Bound<'py, PyDict>> {
    let algorithm: Algorithm = method.parse().map_err(refused)?;
    let about = PyDict::new(py);
    for setting in algorithm.settings() {
        about.set_item(setting.name, setting.about)?;
    }
    Ok(about)
}

/// The evaluations that a run under these limits may use; `None` where only time or patience is limited.
#[pyfunction]
#[pyo3(signature = (dimension, maxfev, maxtime, patience))]
pub(crate) fn budget(
    dimension: usize,
    maxfev: Option<u64>,
    maxtime: Option<f64>,
    patience: Option<u64>,
) -> Option<u64> {
    rules(maxfev, maxtime, None, patience, 0.0).limited(dimension).evaluations
}

/// The longest time limit; more would not fit a clock.
const MAX_SECONDS: f64 = 1e9;

pub(crate) fn rules(
    maxfev: Option<u64>,
    maxtime: Option<f64>,
    target: Option<f64>,
    patience: Option<u64>,
    patience_tolerance: f64,
) -> StopRules {
    let mut rules = StopRules::default();
    rules.evaluations = maxfev;
    rules.time = maxtime.map(|seconds| Duration::from_secs_f64(seconds.clamp(0.0, MAX_SECONDS)));
    rules.target = target;
    rules.patience = patience;
    rules.patience_tolerance = patience_tolerance;
    rules
}

/// The names of the failures after which another attempt may succeed.
pub(crate) fn retryable() -> Vec<&'static str> {
    let kinds = FailureKind::ALL.iter().filter(|kind| kind.is_retryable());
    kinds.map(|kind| kind.name()).collect()
}

pub(crate) fn stop_reasons() -> Vec<&'static str> {
    StopReason::ALL.iter().map(|reason| reason.name()).collect()
}
