//! What a run has come to: counts, and the value of every evaluation.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The counts of a run and the value of each evaluation, in the order told.
#[pyclass(frozen, module = "racecars._core")]
pub(crate) struct Record {
    counts: Mutex<Counts>,
}

#[derive(Default)]
pub(crate) struct Counts {
    /// NaN where an evaluation failed or the point was infeasible.
    pub(crate) values: Vec<f64>,
    failed: u64,
    infeasible: u64,
    /// Evaluations that were carried out, infeasible points not included.
    evaluations: u64,
}

#[pymethods]
impl Record {
    #[new]
    #[pyo3(signature = (values=None, evaluations=0, failed=0, infeasible=0))]
    fn new(
        values: Option<PyReadonlyArray1<'_, f64>>,
        evaluations: u64,
        failed: u64,
        infeasible: u64,
    ) -> PyResult<Self> {
        let values =
            values.map_or(Ok(Vec::new()), |values| values.as_slice().map(<[f64]>::to_vec))?;
        Ok(Record { counts: Mutex::new(Counts { values, failed, infeasible, evaluations }) })
    }

    /// Enters an evaluation that gave a value.
    fn add_value(&self, py: Python<'_>, value: f64) {
        self.lock(py).add(value);
    }

    /// Enters an evaluation that failed.
    fn add_failed(&self, py: Python<'_>) {
        let mut counts = self.lock(py);
        counts.add(f64::NAN);
        counts.failed += 1;
    }

    /// Enters a point that breaks a constraint; whether it was evaluated nevertheless.
    fn add_infeasible(&self, py: Python<'_>, evaluated: bool) {
        let mut counts = self.lock(py);
        counts.add(f64::NAN);
        counts.infeasible += 1;
        counts.evaluations -= u64::from(!evaluated);
    }

    /// The points told.
    #[getter]
    fn told(&self, py: Python<'_>) -> usize {
        self.lock(py).values.len()
    }

    /// The evaluations that were carried out.
    #[getter]
    fn evaluations(&self, py: Python<'_>) -> u64 {
        self.lock(py).evaluations
    }

    /// The evaluations that failed.
    #[getter]
    fn failed(&self, py: Python<'_>) -> u64 {
        self.lock(py).failed
    }

    /// The points that broke a constraint.
    #[getter]
    fn infeasible(&self, py: Python<'_>) -> u64 {
        self.lock(py).infeasible
    }

    /// The value of each evaluation, NaN where there is none.
    fn values<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.lock(py).values)
    }
}

impl Record {
    pub(crate) fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Counts> {
        self.counts.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    pub(crate) fn extend(&mut self, values: &[f64]) {
        self.values.extend_from_slice(values);
        self.evaluations += values.len() as u64;
    }

    fn add(&mut self, value: f64) {
        self.values.push(value);
        self.evaluations += 1;
    }
}
