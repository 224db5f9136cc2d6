//! Drivers: the loop that asks an optimizer for candidates, has them evaluated, and tells it the
//! outcomes; with budgets, stop rules, observers and the result.
//!
//! - [`minimize`] and [`maximize`] start a [`Run`], which is set up by its methods
//! - [`Run::run`] evaluates one point after the other; [`Run::run_on`] on threads, see [`Workers`]
//! - [`Solution`] is what comes out

mod history;
mod parallel;
mod solution;
mod stop;
mod tracker;

pub use history::History;
pub use parallel::Workers;
pub use solution::Solution;
pub use stop::{Cancel, Flow, StopReason};
pub use tracker::Progress;

use crate::error::{Error, Result};
use crate::optimizers::{Algorithm, Candidate, Optimizer};
use crate::outcome::Outcome;
use crate::space::{Point, Space};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use stop::Stops;
use tracker::{Observer, Tracker};

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Smaller values are better.
    Minimize,
    /// Larger values are better.
    Maximize,
}

impl Direction {
    /// An outcome as optimizers see it, who minimize.
    fn inward(self, outcome: Outcome) -> Outcome {
        match self {
            Direction::Minimize => outcome,
            Direction::Maximize => outcome.negated(),
        }
    }

    /// A number between the user's sense and the optimizers'.
    fn turn(self, value: f64) -> f64 {
        match self {
            Direction::Minimize => value,
            Direction::Maximize => -value,
        }
    }
}

/// Starts a run that minimizes over a space.
///
/// ```
/// use racecars::{Space, minimize};
///
/// let space = Space::builder()
///     .log_real("rate", 1e-5, 1e-1)
///     .integer("layers", 1, 8)
///     .categorical("activation", ["relu", "tanh"])
///     .build()?;
///
/// let solution = minimize(&space).budget(400).seed(1).run(|p| -> racecars::Result<f64> {
///     let rate = (p.real("rate")?.log10() + 3.0).powi(2);
///     let layers = (p.integer("layers")? - 3).pow(2) as f64;
///     let activation = if p.text("activation")? == "tanh" { 0.0 } else { 1.0 };
///     Ok(rate + layers + activation)
/// })?;
///
/// let best = solution.point().unwrap();
/// assert_eq!((best.integer("layers")?, best.text("activation")?.as_str()), (3, "tanh"));
/// assert!(solution.value().unwrap() < 0.05);
/// # Ok::<(), racecars::Error>(())
/// ```
pub fn minimize<'o>(space: &Space) -> Run<'o> {
    Run::new(space, Direction::Minimize)
}

/// Starts a run that maximizes over a space; see [`minimize`].
///
/// ```
/// use racecars::{Space, maximize};
///
/// let space = Space::cube(5, -1.0, 2.0)?;
/// let solution = maximize(&space)
///     .budget(1000)
///     .target(-0.01)
///     .run(|p| -p.coordinates().iter().map(|x| x * x).sum::<f64>())?;
/// assert!(solution.value().unwrap() >= -0.01);
/// # Ok::<(), racecars::Error>(())
/// ```
pub fn maximize<'o>(space: &Space) -> Run<'o> {
    Run::new(space, Direction::Maximize)
}

/// A run to be set up and started. Without [`budget`](Run::budget) or another limit it stops after
/// 100 evaluations per dimension, at least 1000.
#[must_use = "a run does nothing until `run` or `run_on` is called"]
pub struct Run<'o> {
    space: Space,
    direction: Direction,
    algorithm: Algorithm,
    seed: u64,
    optimizer: Option<Box<dyn Optimizer>>,
    starts: Vec<Vec<f64>>,
    known: Vec<(Vec<f64>, Outcome)>,
    stops: Stops,
    observers: Vec<Observer<'o>>,
}

impl<'o> Run<'o> {
    fn new(space: &Space, direction: Direction) -> Self {
        Run {
            space: space.clone(),
            direction,
            algorithm: Algorithm::default(),
            seed: 0,
            optimizer: None,
            starts: Vec::new(),
            known: Vec::new(),
            stops: Stops::default(),
            observers: Vec::new(),
        }
    }

    /// The algorithm; RACE-CARS if not given.
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// The seed of the run; 0 if not given.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Goes on with an optimizer that has been used before, such as [`Solution::optimizer`] or one
    /// that [`load`](crate::load) restored, instead of making one.
    pub fn optimizer(mut self, optimizer: Box<dyn Optimizer>) -> Self {
        self.optimizer = Some(optimizer);
        self
    }

    /// Stop after this many evaluations. The algorithm plans with it.
    pub fn budget(mut self, evaluations: u64) -> Self {
        self.stops.evaluations = Some(evaluations);
        self
    }

    /// Stop when this much time has passed; evaluations under way are waited for.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.stops.time = Some(limit);
        self
    }

    /// Stop when a value is at least as good as this.
    pub fn target(mut self, value: f64) -> Self {
        self.stops.target = Some(self.direction.turn(value));
        self
    }

    /// Stop after this many evaluations without an improvement.
    pub fn patience(mut self, evaluations: u64) -> Self {
        self.stops.patience = Some(evaluations);
        self
    }

    /// Stop when this token is cancelled, from another thread or a signal handler.
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.stops.cancel = Some(cancel.clone());
        self
    }

    /// Evaluate this encoded point (see [`Space::encode`]) before what the algorithm proposes.
    pub fn start(mut self, point: impl Into<Vec<f64>>) -> Self {
        self.starts.push(point.into());
        self
    }

    /// Tell the algorithm what is already known of this encoded point. It is not evaluated, and not
    /// counted as an evaluation, but can come out best.
    pub fn known(mut self, point: impl Into<Vec<f64>>, outcome: impl Into<Outcome>) -> Self {
        self.known.push((point.into(), outcome.into()));
        self
    }

    /// Show every evaluation to `observer`, which may stop the run.
    pub fn observe(mut self, observer: impl FnMut(&Progress<'_>) -> Flow + 'o) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Runs `objective`, one evaluation after the other.
    ///
    /// It may return an `f64`, an `Option<f64>`, a `Result<f64, E>` or an [`Outcome`]. If it panics or
    /// returns NaN, that evaluation has failed and the run goes on.
    pub fn run<O>(self, mut objective: impl FnMut(Point<'_>) -> O) -> Result<Solution>
    where
        O: Into<Outcome>,
    {
        let mut desk = self.open()?;
        while let Some(candidate) = desk.next(0) {
            let space = desk.optimizer.space();
            let outcome = evaluate(&mut objective, space, &candidate);
            desk.settle(candidate, outcome)?;
        }
        Ok(desk.close())
    }

    /// Runs `objective` on threads. See [`Workers`] for what is promised of the order.
    pub fn run_on<O>(
        self,
        workers: Workers,
        objective: impl Fn(Point<'_>) -> O + Sync,
    ) -> Result<Solution>
    where
        O: Into<Outcome>,
    {
        let mut desk = self.open()?;
        parallel::drive(&mut desk, &objective, workers)?;
        Ok(desk.close())
    }

    fn open(mut self) -> Result<Desk<'o>> {
        self.stops.check()?;
        if !self.stops.limits_evaluations() {
            self.stops.evaluations = Some((100 * self.space.dimension() as u64).max(1000));
        }
        let mut optimizer = match self.optimizer {
            Some(optimizer) if *optimizer.space() != self.space => {
                return Err(Error::setting("the optimizer to go on with searches another space"));
            }
            Some(optimizer) => optimizer,
            None => self.algorithm.optimizer(&self.space, self.stops.evaluations, self.seed)?,
        };
        for point in &self.starts {
            self.space.check(point)?;
        }
        for (point, outcome) in self.known {
            optimizer.tell(Candidate::known(point), self.direction.inward(outcome))?;
        }
        let best = optimizer.best().map(|best| best.rank);
        Ok(Desk {
            tracker: Tracker::new(self.direction, self.stops, self.observers, best),
            starts: self.starts.into_iter().map(Candidate::known).collect(),
            optimizer,
            direction: self.direction,
        })
    }
}

/// Where candidates are handed out and outcomes come in: the part of a run that does not care how
/// candidates are evaluated.
struct Desk<'o> {
    optimizer: Box<dyn Optimizer>,
    tracker: Tracker<'o>,
    starts: VecDeque<Candidate>,
    direction: Direction,
}

impl Desk<'_> {
    /// The next candidate to evaluate while `out` others are being evaluated, or `None` if the run
    /// is to stop.
    fn next(&mut self, out: u64) -> Option<Candidate> {
        if !self.tracker.may_ask(out) {
            return None;
        }
        let candidate = self.starts.pop_front().or_else(|| self.optimizer.ask());
        if candidate.is_none() {
            self.tracker.stop(StopReason::Exhausted);
        }
        candidate
    }

    fn settle(&mut self, candidate: Candidate, outcome: Outcome) -> Result<()> {
        let point = self.optimizer.space().view(candidate.point());
        self.tracker.record(point, &outcome);
        self.optimizer.tell(candidate, self.direction.inward(outcome))
    }

    fn close(self) -> Solution {
        Solution::new(self.direction, self.optimizer, self.tracker)
    }
}

/// Evaluates a candidate; a panic is a failed evaluation.
fn evaluate<O: Into<Outcome>>(
    objective: &mut impl FnMut(Point<'_>) -> O,
    space: &Space,
    candidate: &Candidate,
) -> Outcome {
    let point = space.view(candidate.point());
    match catch_unwind(AssertUnwindSafe(|| objective(point).into())) {
        Ok(Outcome::Value(value)) => Outcome::from(value),
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = (panic.downcast_ref::<&str>().copied())
                .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            Outcome::failed(format!("the objective panicked: {}", text.unwrap_or("no message")))
        }
    }
}
