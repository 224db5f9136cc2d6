//! Drivers in this process: a [`Session`] whose trials are evaluated one after the other, or on threads.
//!
//! - [`minimize`] and [`maximize`] start a [`Run`], which is set up by its methods
//! - [`Run::run`] evaluates one point after the other; [`Run::run_on`] on threads, see [`Workers`]
//! - [`Solution`] is the result

mod observe;
mod parallel;
mod solution;

pub use observe::{Cancel, Flow, Progress};
pub use parallel::Workers;
pub use solution::Solution;

use crate::error::{Result, ensure};
use crate::optimizers::{Algorithm, Optimizer};
use crate::outcome::{Direction, Outcome};
use crate::session::{Next, Order, Session, StopReason, StopRules};
use crate::space::{Point, Space};
use observe::Observer;
use solution::KeptTrial;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

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
    rules: StopRules,
    retries: u32,
    cancel: Option<Cancel>,
    observers: Vec<Observer<'o>>,
    keeps_trials: bool,
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
            rules: StopRules::default(),
            retries: 0,
            cancel: None,
            observers: Vec::new(),
            keeps_trials: false,
        }
    }

    /// The algorithm; [`auto`](crate::portfolio::auto) if not given.
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// The seed of the run; 0 if not given.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Continues with an optimizer that has been used before, such as [`Solution::optimizer`] or one
    /// that [`load`](crate::load) restored, instead of making one.
    pub fn optimizer(mut self, optimizer: Box<dyn Optimizer>) -> Self {
        self.optimizer = Some(optimizer);
        self
    }

    /// Stop after this many evaluations. The algorithm plans with it.
    pub fn budget(mut self, evaluations: u64) -> Self {
        self.rules.evaluations = Some(evaluations);
        self
    }

    /// Stop when this much time has passed; evaluations under way are waited for.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.rules.time = Some(limit);
        self
    }

    /// Stop when the best value is at least as good as this. Where the objective is known to be noisy, a
    /// lucky value does not count: see [`StopRules::target`].
    pub fn target(mut self, value: f64) -> Self {
        self.rules.target = Some(value);
        self
    }

    /// Stop after this many evaluations without an improvement.
    pub fn patience(mut self, evaluations: u64) -> Self {
        self.rules.patience = Some(evaluations);
        self
    }

    /// With [`patience`](Run::patience): improvements smaller than this do not count, see
    /// [`StopRules::patience_tolerance`].
    pub fn patience_tolerance(mut self, tolerance: f64) -> Self {
        self.rules.patience_tolerance = tolerance;
        self
    }

    /// Stop when this token is cancelled, from another thread or a signal handler.
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Evaluate a point again, up to this many times, if its evaluation fails; the last attempt counts.
    /// A panic and an error are tried again, NaN and infinities are not: see
    /// [`FailureKind::is_retryable`](crate::FailureKind::is_retryable). However many attempts it takes, it
    /// is one evaluation.
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
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

    /// Keep every evaluation for [`Solution::trials`], at the cost of a copy of each point.
    ///
    /// ```
    /// use racecars::{Space, minimize};
    ///
    /// let space = Space::cube(2, -1.0, 1.0)?;
    /// let solution = minimize(&space).budget(30).keep_trials().run(|p| p[0] + p[1])?;
    /// let values: Vec<f64> = solution.trials().filter_map(|trial| trial.outcome.value()).collect();
    /// assert_eq!((values.len(), values.into_iter().reduce(f64::min)), (30, solution.value()));
    /// # Ok::<(), racecars::Error>(())
    /// ```
    pub fn keep_trials(mut self) -> Self {
        self.keeps_trials = true;
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
        let retries = self.retries;
        let mut driver = self.open(Order::AsTheyCome)?;
        while let Next::Evaluate(trial) = driver.next()? {
            let space = driver.session.space();
            let outcome = evaluate(&mut objective, space.view(trial.point()), retries);
            driver.session.tell(trial, outcome)?;
        }
        Ok(driver.close())
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
        let (order, threads) = workers.checked()?;
        let retries = self.retries;
        let mut driver = self.open(order)?;
        parallel::drive(&mut driver, &objective, threads, order, retries)?;
        Ok(driver.close())
    }

    fn open(self, order: Order) -> Result<Driver<'o>> {
        let rules = self.rules.limited(self.space.dimension());
        let optimizer = match self.optimizer {
            Some(optimizer) => {
                let fits = *optimizer.space() == self.space;
                ensure!(fits, setting, "the optimizer to continue with searches another space");
                optimizer
            }
            None => {
                let budget = rules.planned(self.starts.len());
                self.algorithm.optimizer(&self.space, budget, self.seed)?
            }
        };
        let mut session = Session::new(optimizer, self.direction);
        session.set_order(order)?;
        for point in self.starts {
            session.start(point)?;
        }
        for (point, outcome) in self.known {
            session.known(point, outcome)?;
        }
        session.set_rules(rules)?;
        if self.keeps_trials || !self.observers.is_empty() {
            session.watch();
        }
        let (cancel, observers, started) = (self.cancel, self.observers, Instant::now());
        let trials = self.keeps_trials.then(Vec::new);
        Ok(Driver { session, cancel, observers, trials, started })
    }
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("direction", &self.direction)
            .field("algorithm", &self.algorithm)
            .field("seed", &self.seed)
            .field("rules", &self.rules)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

/// A session with a clock, observers and a token to stop it.
struct Driver<'o> {
    session: Session,
    cancel: Option<Cancel>,
    observers: Vec<Observer<'o>>,
    /// What has been evaluated, where it is kept.
    trials: Option<Vec<KeptTrial>>,
    started: Instant,
}

impl Driver<'_> {
    /// What to do next; never [`Next::Told`], which is between the session and the observers.
    #[inline(always)]
    fn next(&mut self) -> Result<Next> {
        loop {
            if self.cancel.as_ref().is_some_and(Cancel::is_cancelled) {
                self.session.stop(StopReason::Interrupted);
            }
            // Looking at the clock takes a good part of a step.
            let elapsed = match self.session.rules().time {
                Some(_) => self.started.elapsed(),
                None => Duration::ZERO,
            };
            match self.session.next(elapsed)? {
                Next::Told => self.show(),
                next => return Ok(next),
            }
        }
    }

    fn show(&mut self) {
        if let (Some(trials), Some(latest)) = (&mut self.trials, self.session.latest()) {
            trials.push(KeptTrial::of(&latest));
        }
        let Some(progress) = Progress::of(&self.session, self.started) else { return };
        let mut wants_stop = false;
        for observer in &mut self.observers {
            wants_stop |= observer(&progress) == Flow::Stop;
        }
        if wants_stop {
            self.session.stop(StopReason::Observer);
        }
    }

    fn close(self) -> Solution {
        // A run ends with the session, which then has its reason.
        let stop = self.session.stop_reason().unwrap_or(StopReason::WorkersLost);
        let (elapsed, trials) = (self.started.elapsed(), self.trials.unwrap_or_default());
        Solution { stop, elapsed, session: self.session, trials }
    }
}

/// Evaluates a point, again if it fails and that is allowed; a panic is a failed evaluation.
fn evaluate<O: Into<Outcome>>(
    objective: &mut impl FnMut(Point<'_>) -> O,
    point: Point<'_>,
    retries: u32,
) -> Outcome {
    let mut attempts = 0;
    loop {
        let outcome = match catch_unwind(AssertUnwindSafe(|| objective(point).into())) {
            Ok(outcome) => outcome,
            Err(panic) => {
                let text = (panic.downcast_ref::<&str>().copied())
                    .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
                let text = text.unwrap_or("no message");
                Outcome::failed(format!("the objective panicked: {text}"))
            }
        };
        if attempts == retries || !outcome.is_retryable() {
            return outcome;
        }
        attempts += 1;
    }
}
