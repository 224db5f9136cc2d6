//! The loop that calls a Python function with one point after the other. It continues while the
//! function returns finite floats, and leaves everything else to its caller.

use crate::session::Session;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyTuple};
use racecars::{Next, Trial};
use std::time::{Duration, Instant};

/// A trial that is still to be told: its number, what the function returned or raised, whether it raised, and the
/// seconds that it took.
type Odd<'py> = (u64, Bound<'py, PyAny>, bool, f64);

/// Steps between checks for signals, besides those whenever Python code runs.
const SIGNALS_EVERY: u32 = 1024;

#[pymethods]
impl Session {
    /// Evaluates trials until the session is over, or, where it is watched, `seconds` have passed: then
    /// returns `None`. If `fun` raises, or returns anything but a finite float, returns the number of the
    /// trial, which is still to be told, with the object, whether it was raised, and the seconds that it took.
    ///
    /// `on_told` is called for each outcome that the optimizer is told, where the session is watched.
    #[pyo3(signature = (fun, args, on_told=None, seconds=None))]
    fn drive<'py>(
        &self,
        py: Python<'py>,
        fun: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        on_told: Option<&Bound<'py, PyAny>>,
        seconds: Option<f64>,
    ) -> PyResult<Option<Odd<'py>>> {
        let until = seconds.map(|s| Instant::now() + Duration::from_secs_f64(s.clamp(0.0, 1e9)));
        let mut done: Option<(Trial, f64)> = None;
        let mut until_signals = SIGNALS_EVERY;
        loop {
            let trial = match self.advance(py, done.take())? {
                Next::Evaluate(trial) => trial,
                Next::Told => {
                    if let Some(on_told) = on_told {
                        on_told.call0()?;
                    }
                    if until.is_some_and(|until| Instant::now() >= until) {
                        return Ok(None);
                    }
                    continue;
                }
                Next::Wait | Next::Stop(_) => return Ok(None),
            };
            until_signals -= 1;
            if until_signals == 0 {
                until_signals = SIGNALS_EVERY;
                if let Err(signal) = py.check_signals() {
                    self.keep(py, trial);
                    return Err(signal);
                }
            }
            let point = self.point(py, trial.point())?;
            let returned = if args.is_empty() {
                fun.call1((point,))
            } else {
                let all = std::iter::once(point).chain(args.iter());
                fun.call1(PyTuple::new(py, all.collect::<Vec<_>>())?)
            };
            let (object, is_raised) = match returned {
                Ok(object) => match object.cast::<PyFloat>().map(|x| x.extract()) {
                    Ok(Ok(value)) if f64::is_finite(value) => {
                        done = Some((trial, value));
                        continue;
                    }
                    _ => (object, false),
                },
                Err(error) => (error.into_value(py).into_bound(py).into_any(), true),
            };
            let seconds = self.stop_watch(py);
            return Ok(Some((self.keep(py, trial), object, is_raised, seconds)));
        }
    }
}
