//! The loop that asks, calls a Python function and tells, one point after the other. It goes on while
//! the function returns finite floats, and leaves everything else to its caller.

use crate::candidate::Candidate;
use crate::optimizer::Optimizer;
use crate::record::Record;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use racecars::Outcome;
use std::time::{Duration, Instant};

/// How often signals are looked for, besides whenever Python code runs.
const SIGNALS_EVERY: u32 = 1024;

/// Why the loop came back, and with an odd return value or an exception, of which candidate.
type Stop<'py> = (&'static str, Option<Py<Candidate>>, Option<Bound<'py, PyAny>>);

#[pymethods]
impl Optimizer {
    /// Evaluates until `record` counts `limit` points or `seconds` have passed, and says why it
    /// stopped: "limit", "time", "target", "exhausted", "value" (the function returned something
    /// that is no finite float) or "error" (it raised). The last two come with the candidate, which
    /// is still to be told, and the object.
    #[pyo3(signature = (fun, args, record, limit, seconds=None, target=None, as_dict=false))]
    #[allow(clippy::too_many_arguments, reason = "keywords of a private Python method")]
    fn _drive<'py>(
        &self,
        py: Python<'py>,
        fun: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        record: &Record,
        limit: usize,
        seconds: Option<f64>,
        target: Option<f64>,
        as_dict: bool,
    ) -> PyResult<Stop<'py>> {
        let deadline = seconds.map(|s| Instant::now() + Duration::from_secs_f64(s.clamp(0.0, 1e9)));
        let space = self.space.get();
        let mut values = Values::of(py, record);
        let mut until_signals = SIGNALS_EVERY;
        while values.count() < limit {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(("time", None, None));
            }
            until_signals -= 1;
            if until_signals == 0 {
                until_signals = SIGNALS_EVERY;
                py.check_signals()?;
            }
            let Some(candidate) = self.next(py) else { return Ok(("exhausted", None, None)) };
            let point = if as_dict {
                space.dict(py, candidate.point())?.into_any()
            } else {
                space.array(py, candidate.point()).into_any()
            };
            let returned = if args.is_empty() {
                fun.call1((point,))
            } else {
                let all = std::iter::once(point).chain(args.iter());
                fun.call1(PyTuple::new(py, all.collect::<Vec<_>>())?)
            };
            let (what, object) = match returned {
                Ok(object) => match object.cast::<pyo3::types::PyFloat>().map(|x| x.extract()) {
                    Ok(Ok(value)) if f64::is_finite(value) => {
                        self.learn(py, candidate, Outcome::Value(value))?;
                        values.new.push(value);
                        if target.is_some_and(|target| value <= target) {
                            return Ok(("target", None, None));
                        }
                        continue;
                    }
                    _ => ("value", object),
                },
                Err(error) => ("error", error.into_value(py).into_bound(py).into_any()),
            };
            let candidate = Py::new(py, Candidate::new(candidate, self.space.clone_ref(py)))?;
            return Ok((what, Some(candidate), Some(object)));
        }
        Ok(("limit", None, None))
    }
}

/// The values since the loop began, which go into the record when it ends.
struct Values<'a, 'py> {
    py: Python<'py>,
    record: &'a Record,
    before: usize,
    new: Vec<f64>,
}

impl<'a, 'py> Values<'a, 'py> {
    fn of(py: Python<'py>, record: &'a Record) -> Self {
        let before = record.lock(py).values.len();
        Values { py, record, before, new: Vec::new() }
    }

    fn count(&self) -> usize {
        self.before + self.new.len()
    }
}

impl Drop for Values<'_, '_> {
    fn drop(&mut self) {
        self.record.lock(self.py).extend(&self.new);
    }
}
