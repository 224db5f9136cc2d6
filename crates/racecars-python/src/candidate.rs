//! A point to evaluate, as Python sees it.

use crate::error::refused;
use crate::space::Space;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use std::sync::{Mutex, MutexGuard};

/// A point to evaluate, and to give back to :meth:`Optimizer.tell` with its outcome.
#[pyclass(frozen, module = "racecars._core")]
pub(crate) struct Candidate {
    id: Option<u64>,
    space: Py<Space>,
    /// Gone once it has been told.
    core: Mutex<Option<racecars::Candidate>>,
    x: PyOnceLock<Py<PyArray1<f64>>>,
}

#[pymethods]
impl Candidate {
    /// The candidate's number, in the order asked; `None` for a point that was not asked.
    #[getter]
    fn id(&self) -> Option<u64> {
        self.id
    }

    /// The point as an array: numbers as they are, other values by their position.
    #[getter]
    fn x<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        if let Some(x) = self.x.get(py) {
            return Ok(x.bind(py).clone());
        }
        let x = match &*self.lock(py) {
            Some(core) => self.space.get().array(py, core.point()),
            None => return Err(self.gone()),
        };
        Ok(self.x.get_or_init(py, || x.unbind()).bind(py).clone())
    }

    /// The point as a dict of parameters.
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let codes = match &*self.lock(py) {
            Some(core) => core.point().to_vec(),
            None => match self.x.get(py) {
                Some(x) => self.space.get().encode(x.bind(py).readonly().as_slice()?)?,
                None => return Err(self.gone()),
            },
        };
        self.space.get().dict(py, &codes)
    }

    /// The encoded point, from which :meth:`Optimizer.restore` restores the candidate.
    #[getter]
    fn code<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        match &*self.lock(py) {
            Some(core) => Ok(PyArray1::from_slice(py, core.point())),
            None => Err(self.gone()),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let id = self.id.map_or("not asked".to_string(), |id| id.to_string());
        match &*self.lock(py) {
            Some(core) => {
                format!("<Candidate {id}: {}>", self.space.get().core.view(core.point()))
            }
            None => format!("<Candidate {id}, told>"),
        }
    }
}

impl Candidate {
    pub(crate) fn new(core: racecars::Candidate, space: Py<Space>) -> Self {
        let x = PyOnceLock::new();
        Candidate { id: core.id(), space, core: Mutex::new(Some(core)), x }
    }

    /// One that was asked before, from its number and its encoded point.
    pub(crate) fn restored(
        id: Option<u64>,
        code: &PyReadonlyArray1<'_, f64>,
        space: Py<Space>,
    ) -> PyResult<Self> {
        let core = restored(&space.get().core, id, code.as_slice()?).map_err(refused)?;
        Ok(Candidate::new(core, space))
    }

    /// The core's candidate, to be told.
    pub(crate) fn take(&self, py: Python<'_>) -> PyResult<racecars::Candidate> {
        self.lock(py).take().ok_or_else(|| self.gone())
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Option<racecars::Candidate>> {
        crate::lock(py, &self.core)
    }

    fn gone(&self) -> PyErr {
        let id = self.id.map_or("this candidate".to_string(), |id| format!("candidate {id}"));
        PyValueError::new_err(format!("{id} has been told before"))
    }
}

/// The core's candidate of a number and an encoded point, or of a point that was not asked.
pub(crate) fn restored(
    space: &racecars::Space,
    id: Option<u64>,
    point: &[f64],
) -> racecars::Result<racecars::Candidate> {
    match id {
        Some(id) => racecars::Candidate::asked(space, id, point),
        None => space.check(point).map(|()| racecars::Candidate::known(point)),
    }
}
