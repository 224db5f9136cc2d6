//! Random embeddings of many coordinates in few.

use crate::error::refused;
use crate::space::Space;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

#[pyclass(frozen, subclass, module = "racecars._core")]
pub(crate) struct Embedding {
    core: racecars::Embedding,
    /// The space of many coordinates.
    #[pyo3(get)]
    space: Py<Space>,
}

#[pymethods]
impl Embedding {
    #[new]
    #[pyo3(signature = (space, dim, seed, through=None))]
    fn new(
        space: Py<Space>,
        dim: usize,
        seed: u64,
        through: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Self> {
        let whole = &space.get().core;
        let core = match through {
            None => racecars::Embedding::new(whole, dim, seed),
            Some(last) => {
                let last = space.get().encode(last.as_slice()?)?;
                racecars::Embedding::through(whole, dim, seed, &last)
            }
        };
        Ok(Embedding { core: core.map_err(refused)?, space })
    }

    /// The number of coordinates that are searched.
    #[getter]
    fn dimension(&self) -> usize {
        self.core.space().dimension()
    }

    /// The point of the whole space that coordinates stand for.
    fn lift<'py>(
        &self,
        py: Python<'py>,
        y: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let y = y.as_slice()?;
        if y.len() != self.dimension() {
            let (given, wanted) = (y.len(), self.dimension());
            return Err(PyValueError::new_err(format!("{given} coordinates; it takes {wanted}")));
        }
        if let Some(i) = y.iter().position(|y| !y.is_finite()) {
            return Err(PyValueError::new_err(format!("coordinate {i} is {}", y[i])));
        }
        let lifted = py.detach(|| self.core.lift(y));
        Ok(self.space.get().array(py, &lifted))
    }
}
