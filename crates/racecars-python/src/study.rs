//! Studies of Python functions: the journal that `racecars-study` writes, the trials that it reads, and its
//! report.

use crate::algorithm::algorithm;
use crate::error::closed;
use crate::session::{Session, outcome};
use crate::space::{Space, object};
use crate::trials::{Timing, TrialData, Trials};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyBlockingIOError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use racecars::{Budget, Direction, Order, Outcome, StopReason, StopRules, Values};
use racecars_study::journal::Tell;
use racecars_study::{
    ErrorKind, Known, KnownPoints, NamedPoint, Plan, Recorded, RecordedTrial, Recorder, Settings,
    Source, report,
};
use std::path::{Path, PathBuf};

/// What a journal or its folder refuses, in the words of this package.
pub(crate) fn refused(error: racecars_study::Error) -> PyErr {
    let text = error.to_string();
    let text = text
        .replace("with --study", "with study=")
        .replace("with --restart", "with resume='never'");
    match error.kind() {
        ErrorKind::Locked => PyBlockingIOError::new_err(text),
        ErrorKind::System => PyOSError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// The journal of a run that a study keeps.
pub(crate) struct Journal(Recorder);

impl Journal {
    pub(crate) fn asked(
        &mut self,
        number: u64,
        point: &[f64],
        told: Option<u64>,
    ) -> racecars_study::Result<()> {
        self.0.asked(number, point, told, Recorder::now())
    }

    pub(crate) fn told(
        &mut self,
        number: u64,
        outcome: &Outcome,
        attempts: u32,
        seconds: f64,
        worker: i32,
        traceback: Option<&str>,
    ) -> racecars_study::Result<()> {
        let outcome = outcome.clone().checked();
        let mut tell = tell(number, outcome, attempts, seconds, worker, Recorder::now());
        tell.stderr = traceback.filter(|text| !text.is_empty()).map(str::to_string);
        self.0.told(&tell)
    }
}

fn tell(trial: u64, outcome: Outcome, attempts: u32, seconds: f64, worker: i32, at: u64) -> Tell {
    let worker = usize::try_from(worker).unwrap_or(0);
    let seconds = if seconds.is_finite() { seconds } else { 0.0 };
    Tell { trial, outcome, attempts, seconds, worker, values: Vec::new(), at, stderr: None }
}

/// A known point: the point, then an outcome as [`Session::tell`] takes it.
type KnownPoint<'py> = (Bound<'py, PyAny>, Option<f64>, Option<f64>, Option<String>, String);

/// What a study's plan has besides its stop rules.
struct Asked<'a, 'py> {
    method: Option<&'a str>,
    options: &'a Bound<'py, PyDict>,
    seed: u64,
    is_maximized: bool,
    jobs: usize,
}

impl Asked<'_, '_> {
    fn settings(&self, rules: &StopRules) -> PyResult<Settings> {
        let mut settings = Settings::default();
        settings.algorithm = Some(algorithm(self.method, self.options)?);
        settings.seed = Some(self.seed);
        settings.jobs = Some(self.jobs.max(1));
        settings.budget = Some(Budget::Evaluations(rules.evaluations.unwrap_or(Plan::NO_LIMIT)));
        match self.is_maximized {
            true => settings.maximize = Some(Source::default()),
            false => settings.minimize = Some(Source::default()),
        }
        Ok(settings)
    }
}

#[pymethods]
impl Session {
    /// Keeps a study in a folder: replays its journal if there is one, and writes it from here on. The session
    /// then has the optimizer of the study instead of its own. Returns whether the study is resumed; then the
    /// start points and known points are those of the journal.
    #[pyo3(signature = (folder, method, options, seed, starts, known, jobs, restart))]
    #[allow(clippy::too_many_arguments, reason = "keywords of a private Python method")]
    fn open_study<'py>(
        &self,
        py: Python<'py>,
        folder: PathBuf,
        method: Option<&str>,
        options: &Bound<'py, PyDict>,
        seed: u64,
        starts: Vec<Bound<'py, PyAny>>,
        known: Vec<KnownPoint<'py>>,
        jobs: usize,
        restart: bool,
    ) -> PyResult<bool> {
        let space = self.space.get();
        let is_maximized = self.is_maximized;
        let asked = Asked { method, options, seed, is_maximized, jobs };
        let mut inner = self.lock(py);
        let (order, rules) = (inner.order, inner.rules);
        let mut settings = asked.settings(&rules)?;
        (settings.target, settings.patience) = (Some(rules.target), Some(rules.patience));
        settings.patience_tolerance = rules.patience.map(|_| rules.patience_tolerance);
        if let Order::InOrder { lookahead } = order {
            (settings.deterministic, settings.lookahead) = (Some(true), Some(lookahead));
        } else {
            settings.deterministic = Some(false);
        }
        let named = |point: &Bound<'py, PyAny>| {
            Ok::<_, PyErr>(NamedPoint::decode(&space.core, &space.encode_start(point)?))
        };
        settings.start = Some(starts.iter().map(named).collect::<PyResult<_>>()?);
        let known = known.iter().map(|(point, value, violation, failure, text)| {
            let point = NamedPoint::decode(&space.core, &space.encode_any(point)?);
            let outcome = outcome(*value, *violation, failure.as_deref(), text, None)?;
            Ok(KnownPoints::Point(Known { point, outcome }))
        });
        settings.known = Some(known.collect::<PyResult<_>>()?);
        let (mut values, mut trials) = (Vec::new(), Trials::new(space.core.dimension()));
        let mut skipped = 0;
        let opened = py.detach(|| {
            if restart {
                Recorder::restart(&folder)?;
            }
            let opened = Recorder::open(&folder, &space.core, &settings)?;
            if opened.is_resumed {
                read(&folder, order, &mut trials, &mut values, &mut skipped)?;
                let began = opened.recorder.plan().started;
                trials.begin_at(Recorder::now().saturating_sub(began) as f64 / 1000.0);
            }
            Ok(opened)
        });
        let Recorded { recorder, mut session, out, is_resumed, .. } = opened.map_err(refused)?;
        if inner.is_watched {
            session.watch();
        }
        session.set_rules(rules).map_err(crate::error::refused)?;
        inner.core()?;
        inner.core = Some(session);
        inner.again = out.into();
        inner.journal = Some(Journal(recorder));
        inner.waive(skipped)?;
        (inner.values, inner.trials, inner.skipped) = (values, trials, skipped);
        Ok(is_resumed)
    }

    /// The descriptors of the study's journal and its lock, which forked processes have as well.
    fn study_files(&self, py: Python<'_>) -> Vec<i32> {
        let inner = self.lock(py);
        inner.journal.as_ref().map_or(Vec::new(), |Journal(recorder)| recorder.descriptors())
    }

    /// Writes in the study's journal why the run stopped.
    fn close_study(&self, py: Python<'_>) -> PyResult<()> {
        let mut inner = self.lock(py);
        let reason = inner.core()?.stop_reason().ok_or_else(closed)?;
        if let Some(Journal(recorder)) = &mut inner.journal {
            py.detach(|| recorder.stopped(reason)).map_err(refused)?;
        }
        Ok(())
    }
}

/// Reads the trials of a study into a history and flat arrays.
fn read(
    folder: &Path,
    order: Order,
    trials: &mut Trials,
    values: &mut Vec<f64>,
    skipped: &mut u64,
) -> racecars_study::Result<(Plan, Vec<Known>)> {
    let mut began = 0;
    let begun = |plan: &Plan| {
        began = plan.started;
        *trials = Trials::new(plan.space.dimension());
        Ok(())
    };
    let mut told = Vec::new();
    let read = Recorder::read(folder, begun, |trial| told.push(trial))?;
    if order != Order::AsTheyCome {
        told.sort_by_key(|trial| trial.trial);
    }
    for RecordedTrial { trial, point, outcome, attempts, seconds, worker, at, .. } in told {
        // In order, an earlier trial may be under way.
        let is_in_order = order != Order::AsTheyCome;
        let place = if is_in_order { trial as usize } else { values.len() };
        values.resize(place, f64::NAN);
        let end = at.saturating_sub(began) as f64 / 1000.0;
        if trials.wants(place) {
            trials.push(place, &point, Timing { end, seconds, is_short: false }, worker as i32);
        }
        trials.note(place, &outcome);
        values.push(outcome.value().unwrap_or(f64::NAN));
        *skipped += u64::from(attempts == 0);
    }
    Ok(read)
}

type Studied = (Py<Space>, TrialData, Py<PyArray1<f64>>, bool, Py<PyDict>, Vec<KnownRow>);

/// The numeric form of a known point, and its value or its violation.
type KnownRow = (Vec<f64>, Option<f64>, Option<f64>);

/// The trials of the study in a folder: the space, the data, the value of each trial, whether they are
/// maximized, the parameters that are fixed, and the points that are known and did not fail.
#[pyfunction]
pub(crate) fn read_study(py: Python<'_>, folder: PathBuf) -> PyResult<Studied> {
    let (mut trials, mut values) = (Trials::new(1), Vec::new());
    let (plan, known) = py
        .detach(|| read(&folder, Order::AsTheyCome, &mut trials, &mut values, &mut 0))
        .map_err(refused)?;
    let space = Py::new(py, Space::bare(py, plan.space.clone())?)?;
    let data = TrialData::new(trials, values.len(), space.clone_ref(py));
    let is_maximized = plan.direction == Direction::Maximize;
    let mut rows = Vec::new();
    for Known { point, outcome } in known.iter().filter(|known| !known.outcome.is_failure()) {
        let codes = point.encode(&plan.space).map_err(refused)?;
        let (value, violation) = (outcome.objective(), outcome.violation());
        rows.push((space.get().numbers(&codes), value, violation));
    }
    let fixed = PyDict::new(py);
    for (name, values) in plan.fixed.values() {
        if let Values::One(value) = values {
            fixed.set_item(name, object(py, value)?)?;
        }
    }
    let values = PyArray1::from_vec(py, values).unbind();
    Ok((space, data, values, is_maximized, fixed.unbind(), rows))
}

/// Writes the journal of a run that kept none, from its trials.
#[pyfunction]
#[pyo3(signature = (
    folder, space, method, options, seed, maxfev, maximize, starts, x, value, odd, time, seconds, worker,
    reason
))]
#[allow(clippy::too_many_arguments, reason = "columns of a private Python function")]
pub(crate) fn write_journal<'py>(
    folder: PathBuf,
    space: &Space,
    method: Option<&str>,
    options: &Bound<'py, PyDict>,
    seed: u64,
    maxfev: Option<u64>,
    maximize: bool,
    starts: Vec<Bound<'py, PyAny>>,
    x: PyReadonlyArray2<'py, f64>,
    value: PyReadonlyArray1<'py, f64>,
    odd: Vec<(usize, String, f64)>,
    time: PyReadonlyArray1<'py, f64>,
    seconds: PyReadonlyArray1<'py, f64>,
    worker: PyReadonlyArray1<'py, i32>,
    reason: &str,
) -> PyResult<()> {
    let asked = Asked { method, options, seed, is_maximized: maximize, jobs: 1 };
    let mut rules = StopRules::default();
    rules.evaluations = maxfev;
    let mut settings = asked.settings(&rules)?;
    let named = |point: &Bound<'py, PyAny>| {
        Ok::<_, PyErr>(NamedPoint::decode(&space.core, &space.encode_start(point)?))
    };
    settings.start = Some(starts.iter().map(named).collect::<PyResult<_>>()?);
    let reason: StopReason = reason.parse().map_err(crate::error::refused)?;
    let opened = Recorder::open(&folder, &space.core, &settings).map_err(refused)?;
    let (mut recorder, mut odd) = (opened.recorder, odd.into_iter().peekable());
    let began = recorder.plan().started;
    let ms = |seconds: f64| began + (seconds.max(0.0) * 1000.0) as u64;
    let (value, time, seconds, worker) =
        (value.as_slice()?, time.as_slice()?, seconds.as_slice()?, worker.as_slice()?);
    for (i, row) in x.as_array().rows().into_iter().enumerate() {
        let point = space.encode(&row.to_vec())?;
        let outcome = match odd.next_if(|(place, ..)| *place == i) {
            None => Outcome::from(value[i]),
            Some((_, kind, violation)) if kind == "infeasible" => {
                let value = Some(value[i]);
                Outcome::Infeasible { violation, value }.checked()
            }
            Some((_, kind, _)) => outcome(None, None, Some(&kind), "", None)?,
        };
        let number = i as u64;
        let told = recorder.asked(number, &point, None, ms(time[i] - seconds[i]));
        let tell = tell(number, outcome, 1, seconds[i], worker[i], ms(time[i]));
        told.and_then(|()| recorder.told(&tell)).map_err(refused)?;
    }
    recorder.stopped(reason).map_err(refused)
}

/// Writes the report of the study in a folder.
#[pyfunction]
pub(crate) fn write_report(py: Python<'_>, folder: PathBuf, out: PathBuf) -> PyResult<()> {
    py.detach(|| report::write(&folder, &out)).map_err(PyErr::from)
}

/// The numbers of the report of the study in a folder, as JSON.
#[pyfunction]
pub(crate) fn report_data(py: Python<'_>, folder: PathBuf) -> PyResult<String> {
    py.detach(|| {
        let digest = report::Digest::read(&folder)?;
        Ok(report::data(&folder, digest.as_ref()))
    })
}
