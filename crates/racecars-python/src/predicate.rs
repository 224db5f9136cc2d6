//! Python functions that say whether a point is allowed.
//!
//! The core calls them while it proposes, where there is nobody to give an exception to. It is kept, every point is
//! allowed from then on, and who called the core raises it.

use crate::space::Space;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use std::sync::{Arc, Mutex, PoisonError};

/// The exception that a function of a space raised, until it is raised again.
#[derive(Default)]
pub(crate) struct Raised(Mutex<Option<PyErr>>);

impl Raised {
    pub(crate) fn take(&self) -> PyResult<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    pub(crate) fn is_some(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn set(&self, error: PyErr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

/// A function for the core. `space` makes the point that it is called with.
pub(crate) fn predicate(
    name: String,
    function: Py<PyAny>,
    space: Arc<Space>,
    raised: Arc<Raised>,
) -> impl Fn(&racecars::Point<'_>) -> bool + Send + Sync + 'static {
    move |point| {
        if raised.is_some() {
            return true;
        }
        let called = Python::attach(|py| {
            let given = space.point(py, point.coordinates())?;
            truth(&name, &function.bind(py).call1((given,))?)
        });
        called.unwrap_or_else(|error| {
            raised.set(error);
            true
        })
    }
}

/// `True` or `False`, Python's or NumPy's. A number is refused: it would be true where it says by how much a point
/// is wrong.
fn truth(name: &str, returned: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_boolean = returned.is_instance_of::<PyBool>()
        || returned.getattr("dtype").is_ok_and(|dtype| {
            let size = returned.getattr("size").and_then(|size| size.extract::<usize>());
            dtype.str().is_ok_and(|kind| kind == "bool") && size.is_ok_and(|size| size == 1)
        });
    if is_boolean {
        return returned.is_truthy();
    }
    Err(PyTypeError::new_err(format!(
        "where: the function `{name}` returned {}; it must return True if the point is allowed, or False",
        returned.repr()?
    )))
}
