//! The trials of a session as flat arrays, in bounded memory: every trial at first, and every second of those
//! kept each time the room is full.

use crate::space::Space;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use racecars::{FailureKind, Outcome};
use std::collections::BTreeMap;
use std::time::Instant;

/// The most coordinates that are kept (32 MB), and the most trials.
pub(crate) const MAX_COORDINATES: usize = 1 << 22;
pub(crate) const MAX_TRIALS: usize = 1 << 20;
/// The same while evaluations are short: filling fresh memory would take longer than they do.
pub(crate) const MAX_SHORT_COORDINATES: usize = 1 << 17;
pub(crate) const MAX_SHORT_TRIALS: usize = 1 << 15;
/// Evaluations that with the step before them are shorter than this are timed together, this many at a time: looking
/// at the clock would take a good part of a step.
const SHORT: f64 = 20e-6;
const TOGETHER: u32 = 16;

/// When an evaluation ended, in seconds since the session began, and how long it took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timing {
    pub(crate) end: f64,
    pub(crate) seconds: f64,
    /// Whether it was so short that it was timed together with others.
    pub(crate) is_short: bool,
}

/// Times evaluations that are made one after the other.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    started: Instant,
    /// When the evaluation began, where it is timed by itself.
    began: f64,
    last: Timing,
    /// The evaluations until the clock is looked at, and of how many that is the time.
    left: u32,
    together: u32,
}

impl Stopwatch {
    pub(crate) fn new(started: Instant) -> Self {
        let began = started.elapsed().as_secs_f64();
        let last = Timing { end: began, ..Timing::default() };
        Stopwatch { started, began, last, left: 1, together: 1 }
    }

    /// An evaluation begins.
    #[inline(always)]
    pub(crate) fn begin(&mut self) {
        if self.together == 1 {
            self.began = self.started.elapsed().as_secs_f64();
        }
    }

    /// The evaluation has ended.
    #[inline(always)]
    pub(crate) fn end(&mut self) -> Timing {
        self.left -= 1;
        if self.left == 0 {
            let end = self.started.elapsed().as_secs_f64();
            let each = (end - self.last.end) / f64::from(self.together);
            let seconds = if self.together == 1 { end - self.began } else { each };
            let is_short = each < SHORT;
            self.last = Timing { end, seconds, is_short };
            self.together = if is_short { TOGETHER } else { 1 };
            self.left = self.together;
        }
        self.last
    }
}

/// The trials that are kept, in the order in which their outcomes came in.
#[derive(Debug)]
pub(crate) struct Trials {
    dimension: usize,
    /// The most trials that are kept, and the same while evaluations are short.
    room: usize,
    short_room: usize,
    /// Every so manieth place is kept; a power of 2.
    stride: usize,
    rows: Vec<Row>,
    codes: Vec<f64>,
    /// The time before this session, which is added to what the session says.
    before: f64,
    /// What did not give a value, by place: the violation, or the kind of failure.
    odd: BTreeMap<usize, Odd>,
}

/// A trial but for its point.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// Where it is in the history.
    place: usize,
    end: f64,
    seconds: f64,
    worker: i32,
}

#[derive(Debug, Clone, Copy)]
enum Odd {
    /// The violation, and the value if there is one, else NaN.
    Infeasible(f64, f64),
    Failed(FailureKind),
}

impl Trials {
    pub(crate) fn new(dimension: usize) -> Self {
        Trials {
            dimension,
            room: (MAX_COORDINATES / dimension.max(1)).clamp(2, MAX_TRIALS),
            short_room: (MAX_SHORT_COORDINATES / dimension.max(1)).clamp(2, MAX_SHORT_TRIALS),
            stride: 1,
            rows: Vec::new(),
            codes: Vec::new(),
            before: 0.0,
            odd: BTreeMap::new(),
        }
    }

    /// Keeps the first trial only, to measure what keeping all costs.
    pub(crate) fn only_first(dimension: usize) -> Self {
        Trials { stride: 1 << 40, ..Trials::new(dimension) }
    }

    /// The session begins this many seconds after the study did.
    pub(crate) fn begin_at(&mut self, seconds: f64) {
        self.before = seconds;
    }

    /// Whether the trial at this place of the history is to be kept.
    #[inline(always)]
    pub(crate) fn wants(&self, place: usize) -> bool {
        place & (self.stride - 1) == 0
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, place: usize, codes: &[f64], timing: Timing, worker: i32) {
        let kept = self.rows.len();
        if kept >= self.short_room && (timing.is_short || kept >= self.room) {
            self.thin();
            if !self.wants(place) {
                return;
            }
        }
        let (end, seconds) = (self.before + timing.end, timing.seconds);
        self.rows.push(Row { place, end, seconds, worker });
        self.codes.extend_from_slice(codes);
    }

    /// Notes an outcome that is not a value.
    pub(crate) fn note(&mut self, place: usize, outcome: &Outcome) {
        if !self.wants(place) {
            return;
        }
        let odd = match outcome {
            Outcome::Failed(failure) => Odd::Failed(failure.kind),
            other => match other.violation() {
                Some(by) => Odd::Infeasible(by, other.objective().unwrap_or(f64::NAN)),
                None => return,
            },
        };
        self.odd.insert(place, odd);
    }

    /// Drops every second trial.
    #[cold]
    fn thin(&mut self) {
        self.stride *= 2;
        let stride = self.stride;
        self.retain(|row| row.place.is_multiple_of(stride));
        self.odd.retain(|place, _| place.is_multiple_of(stride));
    }

    fn retain(&mut self, wants: impl Fn(&Row) -> bool) {
        let (n, mut kept) = (self.dimension, 0);
        for i in 0..self.rows.len() {
            if wants(&self.rows[i]) {
                self.rows[kept] = self.rows[i];
                self.codes.copy_within(i * n..(i + 1) * n, kept * n);
                kept += 1;
            }
        }
        self.rows.truncate(kept);
        self.codes.truncate(kept * n);
    }

    /// In the order of the history, up to this many of it.
    fn sort(&mut self, told: usize) {
        if !self.rows.is_sorted_by_key(|row| row.place) {
            let (n, mut order) = (self.dimension, (0..self.rows.len()).collect::<Vec<_>>());
            order.sort_by_key(|&i| self.rows[i].place);
            let codes = order.iter().flat_map(|&i| &self.codes[i * n..(i + 1) * n]);
            self.codes = codes.copied().collect();
            self.rows = order.iter().map(|&i| self.rows[i]).collect();
        }
        if self.rows.last().is_some_and(|last| last.place >= told) {
            self.retain(|row| row.place < told);
        }
    }
}

/// The trials of a session that has ended, for Python. Arrays are made when they are asked for.
#[pyclass(frozen, module = "racecars._core")]
pub(crate) struct TrialData {
    trials: Trials,
    space: Py<Space>,
}

impl TrialData {
    /// The data of the trials of a session that has told this many.
    pub(crate) fn new(mut trials: Trials, told: usize, space: Py<Space>) -> Self {
        trials.sort(told);
        TrialData { trials, space }
    }
}

#[pymethods]
impl TrialData {
    fn __len__(&self) -> usize {
        self.trials.rows.len()
    }

    /// Every so manieth trial is kept.
    #[getter]
    fn stride(&self) -> usize {
        self.trials.stride
    }

    /// The index of each trial in the history.
    fn number<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_iter(py, self.trials.rows.iter().map(|row| row.place as i64))
    }

    /// The points, one per row.
    fn x<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (space, n) = (self.space.get(), self.trials.dimension);
        let mut numbers = vec![0.0; self.trials.codes.len()];
        for (codes, row) in self.trials.codes.chunks_exact(n).zip(numbers.chunks_exact_mut(n)) {
            space.core.to_numbers(codes, row);
        }
        PyArray1::from_vec(py, numbers).reshape([self.trials.rows.len(), n])
    }

    /// When each ended, in seconds since the run began.
    fn time<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_iter(py, self.trials.rows.iter().map(|row| row.end))
    }

    /// How long each took.
    fn seconds<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_iter(py, self.trials.rows.iter().map(|row| row.seconds))
    }

    /// Which worker made it, -1 where that is not known.
    fn worker<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i32>> {
        PyArray1::from_iter(py, self.trials.rows.iter().map(|row| row.worker))
    }

    /// By number, what is not feasible with a value: `"infeasible"` or the kind of failure, the violation, and the
    /// value or NaN.
    fn odd(&self) -> Vec<(usize, &'static str, f64, f64)> {
        let named = |(&place, odd): (&usize, &Odd)| match odd {
            Odd::Infeasible(violation, value) => (place, "infeasible", *violation, *value),
            Odd::Failed(kind) => (place, kind.name(), 0.0, f64::NAN),
        };
        self.trials.odd.iter().map(named).collect()
    }
}
