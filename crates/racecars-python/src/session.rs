//! The core's session for Python: which trial to evaluate next, what its outcome changes, when to stop.
//!
//! Python code refers to trials by their numbers. It gets the point with the number, and gives the outcome back by
//! the number.

use crate::algorithm::rules;
use crate::candidate::restored;
use crate::error::{Refused, closed, refused};
use crate::optimizer::{Optimizer, is_large};
use crate::predicate::Raised;
use crate::space::Space;
use crate::study::Journal;
use crate::trials::{Stopwatch, Timing, TrialData, Trials};
use crate::{lock, work};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use racecars::{
    Candidate, Counts, Direction, FailureKind, Next, Order, Outcome, StopReason, StopRules, Trial,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A search that Python code evaluates the trials of. It has the optimizer until it is closed.
#[pyclass(frozen, module = "racecars._core")]
pub(crate) struct Session {
    inner: Mutex<Inner>,
    optimizer: Py<Optimizer>,
    /// How points are shown.
    #[pyo3(get)]
    pub(crate) space: Py<Space>,
    started: Instant,
    has_time_limit: bool,
    pub(crate) is_maximized: bool,
    /// Whether points are so large that the interpreter is released even for light steps.
    is_large: bool,
}

pub(crate) struct Inner {
    /// `None` once the session is closed.
    pub(crate) core: Option<racecars::Session>,
    pub(crate) order: Order,
    pub(crate) rules: StopRules,
    pub(crate) is_watched: bool,
    /// The trials that are being evaluated by Python code, and when they were handed out.
    out: BTreeMap<u64, (Trial, f64)>,
    /// The trials that were out when the study was interrupted, which are evaluated first.
    pub(crate) again: VecDeque<Trial>,
    /// The study's journal, where there is one.
    pub(crate) journal: Option<Journal>,
    pub(crate) trials: Trials,
    /// Times evaluations that are made one after the other.
    watch: Stopwatch,
    /// The value of each trial in the order told, NaN where it has none. In order, later ones may be
    /// here before they are told.
    pub(crate) values: Vec<f64>,
    /// The number of trials told whose function was not called, and the places in `values` of those that
    /// may not be told yet.
    pub(crate) skipped: u64,
    skipped_ahead: Vec<usize>,
}

#[pymethods]
impl Session {
    /// A session with an optimizer, which it takes until it is closed. With a lookahead, outcomes are told
    /// in the order asked.
    #[new]
    #[pyo3(signature = (
        optimizer, space, *, maxfev=None, maxtime=None, target=None, patience=None, lookahead=None,
        watch=false, maximize=false, patience_tolerance=0.0, keep=true
    ))]
    #[allow(clippy::too_many_arguments, reason = "keywords of a private Python class")]
    fn new(
        py: Python<'_>,
        optimizer: Py<Optimizer>,
        space: Py<Space>,
        maxfev: Option<u64>,
        maxtime: Option<f64>,
        target: Option<f64>,
        patience: Option<u64>,
        lookahead: Option<u64>,
        watch: bool,
        maximize: bool,
        patience_tolerance: f64,
        keep: bool,
    ) -> PyResult<Py<Self>> {
        let order = lookahead.map_or(Order::AsTheyCome, |lookahead| Order::InOrder { lookahead });
        let direction = if maximize { Direction::Maximize } else { Direction::Minimize };
        let mut core = racecars::Session::new(optimizer.get().lend(py)?, direction);
        let rules = rules(maxfev, maxtime, target, patience, patience_tolerance);
        if let Err(error) = core.set_order(order).and_then(|()| core.set_rules(rules)) {
            optimizer.get().give_back(py, core.into_optimizer());
            return Err(refused(error));
        }
        if watch {
            core.watch();
        }
        let (is_large, dimension) = (is_large(core.space()), core.space().dimension());
        let started = Instant::now();
        let inner = Inner {
            core: Some(core),
            order,
            rules,
            is_watched: watch,
            out: BTreeMap::new(),
            again: VecDeque::new(),
            journal: None,
            trials: if keep { Trials::new(dimension) } else { Trials::only_first(dimension) },
            watch: Stopwatch::new(started),
            values: Vec::new(),
            skipped: 0,
            skipped_ahead: Vec::new(),
        };
        let session = Session {
            inner: Mutex::new(inner),
            optimizer: optimizer.clone_ref(py),
            space,
            started,
            has_time_limit: maxtime.is_some(),
            is_maximized: maximize,
            is_large,
        };
        let session = Py::new(py, session)?;
        optimizer.get().is_lent_to(py, &session);
        Ok(session)
    }

    /// Gives the optimizer back. A closed session cannot be used.
    fn close(&self, py: Python<'_>) {
        let mut inner = self.lock(py);
        // The study may be opened again.
        inner.journal = None;
        let core = inner.core.take();
        drop(inner);
        if let Some(core) = core {
            self.optimizer.get().give_back(py, core.into_optimizer());
        }
    }

    /// Evaluate this point first.
    fn start(&self, py: Python<'_>, point: &Bound<'_, PyAny>) -> PyResult<()> {
        let point = self.space.get().encode_start(point)?;
        self.lock(py).core()?.start(point).map_err(refused)
    }

    /// Tells what is known of a point.
    #[pyo3(signature = (point, value=None, violation=None, failure=None, text=""))]
    fn known(
        &self,
        py: Python<'_>,
        point: &Bound<'_, PyAny>,
        value: Option<f64>,
        violation: Option<f64>,
        failure: Option<&str>,
        text: &str,
    ) -> PyResult<()> {
        let point = self.space.get().encode_any(point)?;
        let outcome = outcome(value, violation, failure, text, None)?;
        self.lock(py).core()?.known(point, outcome).map_err(refused)
    }

    /// The next trial to evaluate, its number and its point. `None` if there is none until an outcome
    /// comes in, or, where nothing is out, ever. `on_told` is called for each outcome that the optimizer
    /// is told, where the session is watched.
    #[pyo3(signature = (on_told=None))]
    fn next<'py>(
        &self,
        py: Python<'py>,
        on_told: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<(u64, Bound<'py, PyAny>)>> {
        loop {
            match self.advance(py, None)? {
                Next::Evaluate(trial) => {
                    let point = self.point(py, trial.point())?;
                    return Ok(Some((self.keep(py, trial), point)));
                }
                Next::Told => {
                    if let Some(on_told) = on_told {
                        on_told.call0()?;
                    }
                }
                Next::Wait | Next::Stop(_) => return Ok(None),
            }
        }
    }

    /// Takes the outcome of a trial. `evaluated` is whether the function was called. Returns the place of the
    /// trial in the history. Without `seconds`, the evaluation took the time since the trial was handed out.
    #[pyo3(signature = (
        number, value=None, violation=None, failure=None, text="", evaluated=true, seconds=None,
        worker=0, traceback=None, constraints=None
    ))]
    #[allow(clippy::too_many_arguments, reason = "keywords of a private Python method")]
    fn tell(
        &self,
        py: Python<'_>,
        number: u64,
        value: Option<f64>,
        violation: Option<f64>,
        failure: Option<&str>,
        text: &str,
        evaluated: bool,
        seconds: Option<f64>,
        worker: i32,
        traceback: Option<&str>,
        constraints: Option<Vec<f64>>,
    ) -> PyResult<usize> {
        let outcome = outcome(value, violation, failure, text, constraints)?;
        let end = self.started.elapsed().as_secs_f64();
        let mut inner = self.lock(py);
        let (trial, since) = inner.out.remove(&number).ok_or_else(|| not_out(number))?;
        let timing = Timing { end, seconds: seconds.unwrap_or(end - since), is_short: false };
        let inner = &mut *inner;
        let is_long = self.is_long(inner)?;
        let place = work(py, is_long, || {
            if let Some(journal) = &mut inner.journal {
                journal.told(
                    number,
                    &outcome,
                    evaluated.into(),
                    timing.seconds,
                    worker,
                    traceback,
                )?;
            }
            Ok::<_, Refused>(inner.enter(trial, outcome, timing, worker)?)
        })?;
        if !evaluated {
            inner.skipped_ahead.push(place);
            inner.core()?.waive();
        }
        Ok(place)
    }

    /// The numbers of the trials that are being evaluated.
    #[getter]
    fn out(&self, py: Python<'_>) -> Vec<u64> {
        self.lock(py).out.keys().copied().collect()
    }

    /// The point of a trial that is being evaluated, as the function takes it.
    fn point_of<'py>(&self, py: Python<'py>, number: u64) -> PyResult<Bound<'py, PyAny>> {
        let inner = self.lock(py);
        self.point(py, inner.trial(number)?.point())
    }

    /// The point of a trial that is being evaluated, as an array.
    fn x_of<'py>(&self, py: Python<'py>, number: u64) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let inner = self.lock(py);
        Ok(self.space.get().array(py, inner.trial(number)?.point()))
    }

    /// Asks for no more trials. The first reason given stays.
    fn stop(&self, py: Python<'_>, reason: &str) -> PyResult<()> {
        let reason: StopReason = reason.parse().map_err(refused)?;
        self.lock(py).core()?.stop(reason);
        Ok(())
    }

    /// Why no more trials are asked, if so.
    #[getter]
    fn reason(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        Ok(self.lock(py).core()?.stop_reason().map(StopReason::name))
    }

    /// The trials told.
    #[getter]
    fn told(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.lock(py).core()?.counts().evaluations)
    }

    /// Of the trials told: those whose function was called, the failed ones, the infeasible ones.
    fn counts(&self, py: Python<'_>) -> PyResult<(u64, u64, u64)> {
        let mut inner = self.lock(py);
        let counts = inner.core()?.counts();
        let evaluated = counts.evaluations - inner.skipped(counts.evaluations);
        Ok((evaluated, counts.failures, counts.infeasible))
    }

    /// The best point as `(x, value or None, violation or None, evaluations behind the value)`.
    fn best<'py>(&self, py: Python<'py>) -> PyResult<Option<Best<'py>>> {
        let mut inner = self.lock(py);
        let found = best(py, inner.core()?.optimizer(), self.space.get());
        let signed = |value: f64| if self.is_maximized { -value } else { value };
        Ok(found.map(|(x, value, violation, n)| (x, value.map(signed), violation, n)))
    }

    /// The trials of a session that has ended. They can be taken once.
    fn take_trials(&self, py: Python<'_>) -> PyResult<TrialData> {
        let mut inner = self.lock(py);
        let told = inner.core()?.counts().evaluations as usize;
        let dimension = self.space.get().core.dimension();
        let trials = std::mem::replace(&mut inner.trials, Trials::new(dimension));
        Ok(TrialData::new(trials, told, self.space.clone_ref(py)))
    }

    /// The value of each trial in the order told, NaN where it has none.
    fn history<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut inner = self.lock(py);
        let told = inner.core()?.counts().evaluations as usize;
        Ok(PyArray1::from_slice(py, &inner.values[..told]))
    }

    /// All that :meth:`resume` needs, but for what the constructor is given.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state = PyDict::new(py);
        state.set_item("values", self.history(py)?)?;
        let mut inner = self.lock(py);
        let core = inner.core()?;
        let Counts { evaluations, failures, infeasible, improved_at, .. } = core.counts();
        let bytes = py.detach(move || core.optimizer().save());
        let Inner { core: Some(core), out, again, .. } = &*inner else { return Err(closed()) };
        let out = out.values().map(|(trial, _)| trial).chain(again);
        let mut asked: Vec<&Trial> = out.chain(core.incoming()).collect();
        asked.sort_by_key(|trial| trial.number());
        let pending = || asked.iter().map(|trial| trial.candidate()).chain(core.queued());
        let codes: Vec<f64> = pending().flat_map(Candidate::point).copied().collect();
        state.set_item("pending", pending().map(Candidate::id).collect::<Vec<_>>())?;
        state.set_item("codes", PyArray1::from_vec(py, codes))?;
        state.set_item("optimizer", PyBytes::new(py, &bytes))?;
        let skipped = inner.skipped(evaluations);
        state.set_item("counts", [evaluations, failures, infeasible, improved_at, skipped])?;
        Ok(state)
    }

    /// Continues the session of which this is the :meth:`state`; the optimizer must be restored already.
    fn resume(&self, py: Python<'_>, state: &Bound<'_, PyDict>) -> PyResult<()> {
        let item = |name: &str| {
            let missing = || PyValueError::new_err(format!("the state has no `{name}`"));
            state.get_item(name)?.ok_or_else(missing)
        };
        let mut counts = Counts::default();
        let skipped: u64;
        [counts.evaluations, counts.failures, counts.infeasible, counts.improved_at, skipped] =
            item("counts")?.extract()?;
        let values = item("values")?.extract::<PyReadonlyArray1<'_, f64>>()?.as_slice()?.to_vec();
        let told = counts.evaluations;
        if values.len() as u64 != told || counts.improved_at > told || skipped > told {
            return Err(PyValueError::new_err("the counts of the state contradict each other"));
        }
        let ids: Vec<Option<u64>> = item("pending")?.extract()?;
        let codes = item("codes")?.extract::<PyReadonlyArray1<'_, f64>>()?;
        let codes = codes.as_slice()?;
        let space = &self.space.get().core;
        if codes.len() != ids.len() * space.dimension() {
            return Err(PyValueError::new_err("the state has not one point per pending trial"));
        }
        let points = codes.chunks_exact(space.dimension());
        let pending = ids.into_iter().zip(points).map(|(id, point)| restored(space, id, point));
        let pending = pending.collect::<racecars::Result<Vec<_>>>().map_err(refused)?;
        let mut inner = self.lock(py);
        inner.core()?.resume(counts, pending).map_err(refused)?;
        inner.waive(skipped)?;
        (inner.values, inner.skipped) = (values, skipped);
        Ok(())
    }
}

pub(crate) type Best<'py> = (Bound<'py, PyArray1<f64>>, Option<f64>, Option<f64>, u64);

/// The best evaluation that an optimizer has been told of.
pub(crate) fn best<'py>(
    py: Python<'py>,
    optimizer: &dyn racecars::Optimizer,
    space: &Space,
) -> Option<Best<'py>> {
    let best = optimizer.best()?;
    let x = space.array(py, best.point);
    Some((x, best.rank.value(), best.rank.violation(), best.evaluations))
}

impl Session {
    pub(crate) fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Inner> {
        lock(py, &self.inner)
    }

    /// Enters an outcome, if there is one, then says what to do next.
    #[inline(always)]
    pub(crate) fn advance(&self, py: Python<'_>, done: Option<(Trial, f64)>) -> PyResult<Next> {
        // Looking at the clock takes a good part of a step.
        let elapsed = if self.has_time_limit { self.started.elapsed() } else { Duration::ZERO };
        let mut inner = self.lock(py);
        let inner = &mut *inner;
        let is_long = self.is_long(inner)?;
        let raised = &*self.space.get().raised;
        let next = work(py, is_long, || {
            if inner.journal.is_some() || !inner.again.is_empty() {
                return inner.step_and_record(done, elapsed, raised);
            }
            Ok(inner.step(done, elapsed)?)
        })?;
        self.space.get().check_functions()?;
        Ok(next)
    }

    /// Whether the next step may take so long that the interpreter is released.
    #[inline(always)]
    fn is_long(&self, inner: &Inner) -> PyResult<bool> {
        Ok(self.is_large || inner.journal.is_some() || inner.optimizer()?.is_heavy())
    }

    /// Keeps a trial whose outcome Python code finds out; returns its number.
    pub(crate) fn keep(&self, py: Python<'_>, trial: Trial) -> u64 {
        let (number, since) = (trial.number(), self.started.elapsed().as_secs_f64());
        self.lock(py).out.insert(number, (trial, since));
        number
    }

    /// The seconds that an evaluation took which has just ended.
    pub(crate) fn stop_watch(&self, py: Python<'_>) -> f64 {
        self.lock(py).watch.end().seconds
    }

    /// An encoded point as the function takes it.
    pub(crate) fn point<'py>(&self, py: Python<'py>, codes: &[f64]) -> PyResult<Bound<'py, PyAny>> {
        self.space.get().point(py, codes)
    }
}

impl Inner {
    pub(crate) fn core(&mut self) -> PyResult<&mut racecars::Session> {
        self.core.as_mut().ok_or_else(closed)
    }

    fn trial(&self, number: u64) -> PyResult<&Trial> {
        self.out.get(&number).map(|(trial, _)| trial).ok_or_else(|| not_out(number))
    }

    /// These trials were not evaluated.
    pub(crate) fn waive(&mut self, skipped: u64) -> PyResult<()> {
        let core = self.core()?;
        (0..skipped).for_each(|_| core.waive());
        Ok(())
    }

    /// How many of the trials told were not evaluated.
    fn skipped(&mut self, told: u64) -> u64 {
        let before = self.skipped_ahead.len();
        self.skipped_ahead.retain(|&place| place as u64 >= told);
        self.skipped += (before - self.skipped_ahead.len()) as u64;
        self.skipped
    }

    /// The optimizer, to be looked at.
    pub(crate) fn optimizer(&self) -> PyResult<&dyn racecars::Optimizer> {
        Ok(self.core.as_ref().ok_or_else(closed)?.optimizer())
    }
}

impl Inner {
    /// Enters a value, if there is one, then says what to do next. Inlined, since moving trials takes a good
    /// part of a step.
    #[inline(always)]
    fn step(&mut self, done: Option<(Trial, f64)>, elapsed: Duration) -> racecars::Result<Next> {
        if let Some((trial, value)) = done {
            let timing = self.watch.end();
            self.enter(trial, Outcome::Value(value), timing, 0)?;
        }
        let Some(core) = &mut self.core else { return Ok(Next::Wait) };
        let next = core.next(elapsed);
        self.watch.begin();
        next
    }

    /// The same, where there is a journal, or where trials of an interrupted study are left.
    #[cold]
    fn step_and_record(
        &mut self,
        done: Option<(Trial, f64)>,
        elapsed: Duration,
        raised: &Raised,
    ) -> Result<Next, Refused> {
        if let Some((trial, value)) = done {
            let (timing, outcome) = (self.watch.end(), Outcome::Value(value));
            if let Some(journal) = &mut self.journal {
                journal.told(trial.number(), &outcome, 1, timing.seconds, 0, None)?;
            }
            self.enter(trial, outcome, timing, 0)?;
        }
        if let Some(trial) = self.again.pop_front() {
            self.watch.begin();
            return Ok(Next::Evaluate(trial));
        }
        let next = self.step(None, elapsed)?;
        if raised.is_some() {
            // The point may not be allowed, so the journal must not have it.
            return Ok(Next::Wait);
        }
        if let (Next::Evaluate(trial), Some(journal), Some(core)) =
            (&next, &mut self.journal, &self.core)
        {
            let is_in_order = self.order != Order::AsTheyCome;
            let told = is_in_order.then(|| core.counts().evaluations);
            journal.asked(trial.number(), trial.point(), told)?;
            self.watch.begin();
        }
        Ok(next)
    }

    /// Gives an outcome to the session, and its value to the history; returns the place there.
    #[inline(always)]
    fn enter(
        &mut self,
        trial: Trial,
        outcome: Outcome,
        timing: Timing,
        worker: i32,
    ) -> racecars::Result<usize> {
        let Inner { core: Some(core), values, trials, order, .. } = self else { return Ok(0) };
        let value = outcome.value().unwrap_or(f64::NAN);
        let place =
            if *order == Order::AsTheyCome { values.len() } else { trial.number() as usize };
        if trials.wants(place) {
            trials.push(place, trial.point(), timing, worker);
        }
        if !matches!(outcome, Outcome::Value(_)) {
            trials.note(place, &outcome);
        }
        core.tell(trial, outcome)?;
        if place == values.len() {
            values.push(value);
            return Ok(place);
        }
        if place > values.len() {
            values.resize(place + 1, f64::NAN);
        }
        values[place] = value;
        Ok(place)
    }
}

fn not_out(number: u64) -> PyErr {
    PyValueError::new_err(format!("trial {number} is not being evaluated"))
}

/// The core's outcome: a value, a violation with or without one, constraints with or without one, or a failure.
pub(crate) fn outcome(
    value: Option<f64>,
    violation: Option<f64>,
    failure: Option<&str>,
    text: &str,
    constraints: Option<Vec<f64>>,
) -> PyResult<Outcome> {
    if let (None, None, Some(constraints)) = (violation, failure, &constraints) {
        return Ok(Outcome::measured(value, constraints.iter().copied()));
    }
    match (value, violation, failure) {
        (Some(value), None, None) => Ok(Outcome::from(value)),
        (value, Some(violation), None) => Ok(Outcome::Infeasible { violation, value }.checked()),
        (None, None, Some(name)) => {
            let kind = FailureKind::ALL.iter().find(|kind| kind.name() == name);
            let unknown = || PyValueError::new_err(format!("`{name}` is not a kind of failure"));
            Ok(Outcome::failure(*kind.ok_or_else(unknown)?, text))
        }
        _ => Err(PyTypeError::new_err("an outcome is a value, a violation or a failure")),
    }
}
