//! Ask and tell for Python: one candidate at a time, or arrays of points.

use crate::algorithm::algorithm;
use crate::candidate::Candidate;
use crate::error::{exhausted, in_use, refused};
use crate::session::{Best, Session, best};
use crate::space::{Space, slice};
use crate::work;
use numpy::{
    AllowTypeChange, PyArray1, PyArray2, PyArrayLike1, PyArrayMethods, PyReadonlyArray1,
    PyReadonlyArray2,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyList};
use racecars::Outcome;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

/// Copying this many numbers takes some ten microseconds, so the interpreter is released.
const MANY_NUMBERS: usize = 20_000;
/// The most numbers that an array has room for before it is known how many points there are.
const MAX_CAPACITY: usize = 1 << 24;
/// The answer to these words beside several points.
const OF_ONE_POINT: &str =
    "`violation`, `constraints` and `error` are of one point: tell the points one by one";

/// Whether copying a point takes so long that the interpreter should be released.
pub(crate) fn is_large(space: &racecars::Space) -> bool {
    space.dimension() >= MANY_NUMBERS
}

/// Whether the next ask or tell may take so long.
fn is_long(core: &dyn racecars::Optimizer) -> bool {
    core.is_heavy() || is_large(core.space())
}

/// The state machine of an algorithm on a space.
#[pyclass(frozen, subclass, module = "racecars._core")]
pub(crate) struct Optimizer {
    inner: Mutex<Inner>,
    pub(crate) space: Py<Space>,
    name: &'static str,
}

struct Inner {
    /// `None` while a session has it.
    core: Option<Box<dyn racecars::Optimizer>>,
    /// The session that has it.
    session: Option<Py<Session>>,
    /// The candidates that were given away as rows of an array, by the hash of the row.
    rows: HashMap<u64, Vec<racecars::Candidate>>,
}

#[pymethods]
impl Optimizer {
    /// A new optimizer, or the one that `to_bytes` saved, whose choices `space` gives their objects
    /// back.
    #[new]
    #[pyo3(signature = (space, method, budget, seed, options, saved=None))]
    fn new(
        py: Python<'_>,
        space: Option<Py<Space>>,
        method: Option<&str>,
        budget: Option<u64>,
        seed: u64,
        options: &Bound<'_, PyDict>,
        saved: Option<&[u8]>,
    ) -> PyResult<Self> {
        if let Some(saved) = saved {
            return Optimizer::load(py, saved, space);
        }
        let Some(space) = space else {
            return Err(PyTypeError::new_err("an optimizer needs a space"));
        };
        let core = algorithm(method, options)?;
        let core = core.optimizer(&space.get().core, budget, seed).map_err(refused)?;
        Ok(Optimizer::around(core, space))
    }

    /// The whole state as bytes, random generator included.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut inner = self.lock(py);
        let bytes = match &mut inner.core {
            Some(core) => py.detach(move || core.save()),
            None => {
                drop(inner);
                self.look(py, |core| core.save())?
            }
        };
        Ok(PyBytes::new(py, &bytes))
    }

    /// A point to evaluate, or, with `n`, that many as the rows of an array.
    #[pyo3(signature = (n=None))]
    fn ask(slf: &Bound<'_, Self>, n: Option<usize>) -> PyResult<Py<PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        match n {
            None => {
                let candidate = this.next(py)?.ok_or_else(|| this.exhausted())?;
                let candidate = Candidate::new(candidate, this.space.clone_ref(py));
                Ok(Py::new(py, candidate)?.into_any())
            }
            Some(n) => Ok(this.ask_rows(py, n)?.into_any().unbind()),
        }
    }

    /// Learns the outcome of a candidate, a point, or the rows of an array.
    #[pyo3(signature = (candidate, value=None, *, violation=None, constraints=None, error=None))]
    fn tell(
        &self,
        py: Python<'_>,
        candidate: &Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
        violation: Option<f64>,
        constraints: Option<Vec<f64>>,
        error: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let outcome =
            |value, violation, error| outcome(value, violation, constraints.as_deref(), error);
        if let Ok(candidate) = candidate.cast::<Candidate>() {
            let outcome = outcome(value, violation, error)?;
            return self.learn(py, || candidate.get().take(py), outcome);
        }
        if let Ok(params) = candidate.cast::<PyDict>() {
            let point = self.space.get().encode_dict(params)?;
            let outcome = outcome(value, violation, error)?;
            let numbers = self.space.get().numbers(&point);
            let row = self.lock(py).row(&numbers);
            let core = row.unwrap_or_else(|| racecars::Candidate::known(point));
            return self.learn(py, || Ok(core), outcome);
        }
        if let Ok(points) = candidate.cast::<PyList>()
            && points.iter().any(|point| !point.is_instance_of::<PyFloat>())
        {
            if violation.is_some() || constraints.is_some() || error.is_some() {
                return Err(PyTypeError::new_err(OF_ONE_POINT));
            }
            return self.tell_each(py, points, value);
        }
        if let Ok(x) = candidate.extract::<PyReadonlyArray1<'_, f64>>() {
            let outcome = outcome(value, violation, error)?;
            let numbers = slice(&x)?;
            let row = self.lock(py).row(&numbers);
            let core = match row {
                Some(candidate) => candidate,
                None => racecars::Candidate::known(self.space.get().encode(&numbers)?),
            };
            return self.learn(py, || Ok(core), outcome);
        }
        if let Ok(rows) = candidate.extract::<PyReadonlyArray2<'_, f64>>() {
            if violation.is_some() || constraints.is_some() || error.is_some() {
                return Err(PyTypeError::new_err(OF_ONE_POINT));
            }
            let values = value
                .and_then(|values| values.extract::<PyArrayLike1<'_, f64, AllowTypeChange>>().ok())
                .ok_or_else(|| {
                    PyTypeError::new_err("an array of points takes a list or a 1-D array of values")
                })?;
            return self.tell_rows(py, &rows, &slice(&values)?);
        }
        let kind = candidate.get_type().name()?;
        Err(PyTypeError::new_err(format!(
            "tell takes a candidate, a point as an array of floats or a dict, a list of these, or a \
             2-D array of points, not {kind}"
        )))
    }

    /// A candidate for a point of the caller's own, which was not asked.
    fn known(&self, py: Python<'_>, point: &Bound<'_, PyAny>) -> PyResult<Candidate> {
        let space = self.space.get();
        let codes = space.encode_any(point)?;
        Ok(Candidate::new(racecars::Candidate::known(codes), self.space.clone_ref(py)))
    }

    /// A candidate restored from its `id` and `code`, as after a restart.
    fn restore(
        &self,
        py: Python<'_>,
        id: Option<u64>,
        code: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Candidate> {
        Candidate::restored(id, &code, self.space.clone_ref(py))
    }

    /// The best point as `(x, value or None, violation or None, evaluations behind the value)`, `None`
    /// while there is none.
    fn _best<'py>(&self, py: Python<'py>) -> PyResult<Option<Best<'py>>> {
        self.look(py, |core| best(py, core, self.space.get()))
    }

    /// The search space.
    #[getter]
    fn space(&self, py: Python<'_>) -> Py<Space> {
        self.space.clone_ref(py)
    }

    /// The algorithm's name.
    #[getter]
    fn method(&self) -> &'static str {
        self.name
    }

    /// The number of outcomes told.
    #[getter]
    fn told(&self, py: Python<'_>) -> PyResult<u64> {
        self.look(py, |core| core.told())
    }

    /// The number of candidates out.
    #[getter]
    fn pending(&self, py: Python<'_>) -> PyResult<usize> {
        self.look(py, |core| core.pending())
    }

    /// What a portfolio did, as JSON; None for a single algorithm.
    fn _portfolio(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let Some(portfolio) = self.look(py, |core| core.portfolio())? else { return Ok(None) };
        let text = serde_json::to_string(&portfolio);
        text.map(Some).map_err(|error| PyValueError::new_err(error.to_string()))
    }
}

impl Optimizer {
    fn around(core: Box<dyn racecars::Optimizer>, space: Py<Space>) -> Self {
        let name = core.name();
        let inner = Inner { core: Some(core), session: None, rows: HashMap::new() };
        Optimizer { inner: Mutex::new(inner), space, name }
    }

    fn load(py: Python<'_>, saved: &[u8], space: Option<Py<Space>>) -> PyResult<Self> {
        let core = match &space {
            Some(space) => racecars::load_in(&space.get().core, saved),
            None => racecars::load(saved),
        };
        let core = core.map_err(refused)?;
        let space = match space {
            Some(space) => space,
            None => Py::new(py, Space::bare(py, core.space().clone())?)?,
        };
        Ok(Optimizer::around(core, space))
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Inner> {
        crate::lock(py, &self.inner)
    }

    /// Looks at the core's optimizer, whoever has it.
    fn look<T>(
        &self,
        py: Python<'_>,
        what: impl FnOnce(&dyn racecars::Optimizer) -> T,
    ) -> PyResult<T> {
        let inner = self.lock(py);
        let session = match (&inner.core, &inner.session) {
            (Some(core), _) => return Ok(what(&**core)),
            (None, Some(session)) => session.clone_ref(py),
            (None, None) => return Err(in_use()),
        };
        drop(inner);
        let session = session.get().lock(py);
        Ok(what(session.optimizer()?))
    }

    /// Gives the core's optimizer to a session.
    pub(crate) fn lend(&self, py: Python<'_>) -> PyResult<Box<dyn racecars::Optimizer>> {
        self.lock(py).core.take().ok_or_else(in_use)
    }

    /// Remembers which session has it.
    pub(crate) fn is_lent_to(&self, py: Python<'_>, session: &Py<Session>) {
        self.lock(py).session = Some(session.clone_ref(py));
    }

    /// Takes the core's optimizer back.
    pub(crate) fn give_back(&self, py: Python<'_>, core: Box<dyn racecars::Optimizer>) {
        let mut inner = self.lock(py);
        inner.core = Some(core);
        let session = inner.session.take();
        // Dropping it may run Python code.
        drop(inner);
        drop(session);
    }

    fn exhausted(&self) -> PyErr {
        exhausted(&self.space.get().core)
    }

    /// The next candidate of the core.
    fn next(&self, py: Python<'_>) -> PyResult<Option<racecars::Candidate>> {
        let mut inner = self.lock(py);
        let core = inner.core()?;
        let candidate = work(py, is_long(core), || core.ask());
        self.space.get().check_functions()?;
        Ok(candidate)
    }

    /// Tells the core. The candidate is taken when it is known that nobody else has the optimizer.
    fn learn(
        &self,
        py: Python<'_>,
        candidate: impl FnOnce() -> PyResult<racecars::Candidate>,
        outcome: Outcome,
    ) -> PyResult<()> {
        let mut inner = self.lock(py);
        let core = inner.core()?;
        let candidate = candidate()?;
        work(py, is_long(core), || core.tell(candidate, outcome)).map_err(refused)
    }

    fn ask_rows<'py>(&self, py: Python<'py>, n: usize) -> PyResult<Bound<'py, PyArray2<f64>>> {
        if n == 0 {
            return Err(PyValueError::new_err("ask(0): at least one point must be asked for"));
        }
        let space = self.space.get();
        let dimension = space.core.dimension();
        let mut numbers = Vec::with_capacity(n.saturating_mul(dimension).min(MAX_CAPACITY));
        let mut guard = self.lock(py);
        let is_long = is_long(guard.core()?) || n.saturating_mul(dimension) >= MANY_NUMBERS;
        let Inner { core: Some(core), rows, .. } = &mut *guard else { return Err(in_use()) };
        work(py, is_long, || {
            for _ in 0..n {
                let Some(candidate) = core.ask() else { break };
                let start = numbers.len();
                if space.is_plain {
                    numbers.extend_from_slice(candidate.point());
                } else {
                    numbers.resize(start + dimension, 0.0);
                    space.core.to_numbers(candidate.point(), &mut numbers[start..]);
                }
                let key = hash(&numbers[start..]);
                rows.entry(key).or_default().push(candidate);
            }
        });
        drop(guard);
        space.check_functions()?;
        if numbers.is_empty() {
            return Err(self.exhausted());
        }
        let rows = numbers.len() / dimension;
        PyArray1::from_vec(py, numbers).reshape([rows, dimension])
    }

    /// Learns the values of candidates, arrays and dicts, one after the other.
    fn tell_each(
        &self,
        py: Python<'_>,
        points: &Bound<'_, PyList>,
        values: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let values: Vec<_> = values
            .and_then(|values| values.try_iter().ok())
            .ok_or_else(|| PyTypeError::new_err("a list of points takes a list of values"))?
            .collect::<PyResult<_>>()?;
        same_number(points.len(), values.len())?;
        for (point, value) in points.iter().zip(&values) {
            self.tell(py, &point, Some(value), None, None, None)?;
        }
        Ok(())
    }

    fn tell_rows(
        &self,
        py: Python<'_>,
        rows: &PyReadonlyArray2<'_, f64>,
        values: &[f64],
    ) -> PyResult<()> {
        let rows = rows.as_array();
        same_number(rows.nrows(), values.len())?;
        let space = &self.space.get().core;
        let mut guard = self.lock(py);
        let inner = &mut *guard;
        let is_long = is_long(inner.core()?) || rows.len() >= MANY_NUMBERS;
        let told = || {
            for (row, &value) in rows.rows().into_iter().zip(values) {
                let row = row.as_slice().map_or_else(|| row.to_vec().into(), Cow::from);
                let candidate = match inner.row(&row) {
                    Some(candidate) => candidate,
                    None => racecars::Candidate::known(space.from_numbers(&row)?),
                };
                if let Some(core) = &mut inner.core {
                    core.tell(candidate, Outcome::from(value))?;
                }
            }
            Ok(())
        };
        work(py, is_long, told).map_err(refused)
    }
}

impl Inner {
    fn core(&mut self) -> PyResult<&mut dyn racecars::Optimizer> {
        match &mut self.core {
            Some(core) => Ok(&mut **core),
            None => Err(in_use()),
        }
    }

    /// The candidate that was given away as this row, if any.
    fn row(&mut self, numbers: &[f64]) -> Option<racecars::Candidate> {
        if self.rows.is_empty() {
            return None;
        }
        let key = hash(numbers);
        let same = self.rows.get_mut(&key)?;
        let candidate = same.pop();
        if same.is_empty() {
            self.rows.remove(&key);
        }
        candidate
    }
}

/// Refuses another number of values than of points.
fn same_number(points: usize, values: usize) -> PyResult<()> {
    if points == values {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{points} points take {points} values, not {values}")))
}

/// The hash of a row's bits: rows come back as they went.
///
/// Nobody gains from making rows collide, so it need not be hard to: four lanes of what rustc's own
/// maps do, mixed in the end.
fn hash(numbers: &[f64]) -> u64 {
    const FACTOR: u64 = 0x517c_c1b7_2722_0a95;
    let step =
        |lane: u64, number: f64| (lane.rotate_left(5) ^ number.to_bits()).wrapping_mul(FACTOR);
    let mut lanes = [1u64, 2, 3, 4];
    let (quads, rest) = numbers.as_chunks::<4>();
    for quad in quads {
        for (lane, &number) in lanes.iter_mut().zip(quad) {
            *lane = step(*lane, number);
        }
    }
    for (lane, &number) in lanes.iter_mut().zip(rest) {
        *lane = step(*lane, number);
    }
    lanes.iter().fold(0, |all, &lane| {
        let mixed = (all ^ lane ^ lane >> 32).wrapping_mul(FACTOR);
        mixed ^ mixed >> 29
    })
}

fn outcome(
    value: Option<&Bound<'_, PyAny>>,
    violation: Option<f64>,
    constraints: Option<&[f64]>,
    error: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome> {
    let number =
        |value: Option<&Bound<'_, PyAny>>| value.map(|value| value.extract::<f64>()).transpose();
    if let (Some(constraints), None, None) = (constraints, violation, error) {
        return Ok(Outcome::measured(number(value)?, constraints.iter().copied()));
    }
    match (value, violation, error) {
        _ if constraints.is_some() => Err(PyTypeError::new_err(
            "tell takes constraints= with a value or without, and neither violation= nor error=",
        )),
        (Some(value), None, None) => Ok(Outcome::from(value.extract::<f64>()?)),
        // A value with violation 0 is feasible.
        (Some(value), Some(0.0), None) => Ok(Outcome::from(value.extract::<f64>()?)),
        (value, Some(violation), None) => {
            let value = number(value)?;
            Ok(Outcome::Infeasible { violation, value }.checked())
        }
        (None, None, Some(error)) => Ok(Outcome::failed(error)),
        _ => Err(PyTypeError::new_err(
            "tell takes a value, or violation= (with a value or without), or error=",
        )),
    }
}
