//! The driver without input and output: which trial to evaluate next, what its outcome changes, when to
//! stop. It has no clock, threads, files or processes.
//!
//! Threads ([`crate::run`]), programs (the study runner), replays of a journal and the Python package
//! are shells around a [`Session`]: they evaluate trials, and measure the time that they pass in.

mod history;
mod stop;

pub use history::History;
pub use stop::{StopReason, StopRules};

use crate::error::{Error, ErrorKind, Result, ensure};
use crate::optimizers::{Best, Candidate, Optimizer, Portfolio};
use crate::outcome::{Direction, Outcome, Rank};
use crate::space::{Point, Space};
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// A point to be evaluated. It goes back to its session with the outcome, so that a point is never
/// copied; this is also why it cannot be cloned.
#[derive(Debug, PartialEq)]
pub struct Trial {
    number: u64,
    candidate: Candidate,
}

impl Trial {
    /// The trial's number in the order asked: 0, 1, 2, ... Start points are trials, too.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The encoded point; [`Space::view`] gives access by name.
    pub fn point(&self) -> &[f64] {
        self.candidate.point()
    }

    /// The candidate, to be saved as data.
    pub fn candidate(&self) -> &Candidate {
        &self.candidate
    }
}

/// What a shell does next.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// Evaluate this trial, then [tell](Session::tell) its outcome.
    Evaluate(Trial),
    /// An outcome was told to the optimizer, see [`Session::latest`]. Only where the session is
    /// [watched](Session::watch).
    Told,
    /// Wait for the outcome of a trial that is out; there is nothing to evaluate until then.
    Wait,
    /// Every trial has been told, and there will be no other, for this reason.
    Stop(StopReason),
}

/// The order in which outcomes are told to the optimizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// As they come in. With more than one trial out at a time, the session depends on how long
    /// evaluations take. The shell decides how many are out, by when it calls [`Session::next`].
    #[default]
    AsTheyCome,
    /// In the order asked: trial `i + lookahead` is asked when outcome `i` has been told. The session
    /// is then a function of the optimizer, the outcomes and `lookahead` alone, whatever the number of
    /// workers.
    InOrder {
        /// How many trials may be asked and not told; at least 1.
        lookahead: u64,
    },
}

/// Counts of a session. They cover the outcomes that the optimizer has been told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Trials evaluated.
    pub evaluations: u64,
    /// Failed evaluations among them.
    pub failures: u64,
    /// Infeasible points among them.
    pub infeasible: u64,
    /// The evaluations when the best last improved, 0 if it has not.
    pub improved_at: u64,
}

/// An evaluation that the optimizer was told of.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Evaluation<'a> {
    /// The trial's number.
    pub trial: u64,
    /// The point.
    pub point: Point<'a>,
    /// The outcome, in the user's sense.
    pub outcome: &'a Outcome,
    /// Whether the best improved.
    pub improved: bool,
}

/// A search: an optimizer, the trials that are out, stop rules, and what has come of it so far.
///
/// Values are in the user's sense throughout: where the objective is maximized, larger is better.
///
/// ```
/// use racecars::{Algorithm, Direction, Next, Session, Space, StopReason, StopRules};
/// use std::time::Duration;
///
/// let space = Space::cube(3, -5.0, 5.0)?;
/// let optimizer = Algorithm::default().optimizer(&space, Some(200), 1)?;
/// let mut session = Session::new(optimizer, Direction::Maximize);
/// let mut rules = StopRules::default();
/// rules.evaluations = Some(200);
/// session.set_rules(rules)?;
/// let reason = loop {
///     match session.next(Duration::ZERO)? {
///         Next::Evaluate(trial) => {
///             let value = -trial.point().iter().map(|x| x * x).sum::<f64>();
///             session.tell(trial, value)?;
///         }
///         Next::Told | Next::Wait => {}
///         Next::Stop(reason) => break reason,
///     }
/// };
/// assert_eq!((reason, session.counts().evaluations), (StopReason::Evaluations, 200));
/// assert!(session.value().unwrap() > -1.0);
/// # Ok::<(), racecars::Error>(())
/// ```
pub struct Session {
    optimizer: Box<dyn Optimizer>,
    direction: Direction,
    order: Order,
    rules: StopRules,
    /// To be evaluated before the optimizer is asked.
    queue: VecDeque<Candidate>,
    asked: u64,
    /// Trials that do not count against the budget: see [`Session::waive`].
    waived: u64,
    /// Asked, and the outcome has not come in.
    out: u64,
    /// Outcomes that the optimizer has not been told. In order: slot `i` is of trial
    /// `counts.evaluations + i`, where it has come in.
    incoming: VecDeque<Option<(Trial, Outcome)>>,
    counts: Counts,
    /// The best rank, in the optimizers' sense, and the trial that it is of.
    best: Option<Rank>,
    best_trial: Option<u64>,
    /// The best when patience last counted it as improved, and the evaluations then.
    progress: Option<Rank>,
    progress_at: u64,
    first_error: Option<String>,
    history: History,
    stop: Option<StopReason>,
    /// The latest trial told, where the session is watched.
    latest: Option<Latest>,
    /// The latest point told, for an assertion.
    #[cfg(debug_assertions)]
    told_point: Vec<f64>,
}

/// See [`Evaluation`]. The point is a copy.
struct Latest {
    trial: Option<u64>,
    point: Vec<f64>,
    outcome: Outcome,
    improved: bool,
}

impl Session {
    /// Trials that may be [waived](Session::waive) for each that counts.
    pub const MAX_WAIVED: u64 = 100;

    /// A session with an optimizer, which may have been used before, and whose outcomes are told as they
    /// come in. It has no stop rules.
    pub fn new(optimizer: Box<dyn Optimizer>, direction: Direction) -> Self {
        let mut session = Session {
            optimizer,
            direction,
            order: Order::default(),
            rules: StopRules::default(),
            queue: VecDeque::new(),
            asked: 0,
            waived: 0,
            out: 0,
            incoming: VecDeque::new(),
            counts: Counts::default(),
            best: None,
            best_trial: None,
            progress: None,
            progress_at: 0,
            first_error: None,
            history: History::default(),
            stop: None,
            latest: None,
            #[cfg(debug_assertions)]
            told_point: Vec::new(),
        };
        session.note_best();
        session
    }

    /// Sets the order of tells. Only before the first trial.
    pub fn set_order(&mut self, order: Order) -> Result<()> {
        let has_lookahead = order != Order::InOrder { lookahead: 0 };
        ensure!(has_lookahead, setting, "the lookahead is 0; it must be at least 1");
        self.check_unstarted("the order of tells is set")?;
        self.order = order;
        Ok(())
    }

    /// Sets the stop rules. A session that has stopped goes on if the new rules allow it.
    pub fn set_rules(&mut self, rules: StopRules) -> Result<()> {
        rules.check()?;
        let has_tolerance = rules.patience_tolerance == self.rules.patience_tolerance;
        self.rules = rules;
        if !has_tolerance {
            self.recount_progress();
        }
        self.stop = None;
        self.apply_rules();
        Ok(())
    }

    /// Evaluate this encoded point (see [`Space::encode`]) before what the optimizer proposes.
    pub fn start(&mut self, point: impl Into<Box<[f64]>>) -> Result<()> {
        let point = point.into();
        self.space().check(&point)?;
        self.queue.push_back(Candidate::known(point));
        Ok(())
    }

    /// Tell the optimizer what is already known of this encoded point. It is not evaluated, and is no
    /// evaluation in the counts, but can be the best. Before the first trial or later: the optimizer learns
    /// it at once, also where outcomes are told in order.
    pub fn known(
        &mut self,
        point: impl Into<Box<[f64]>>,
        outcome: impl Into<Outcome>,
    ) -> Result<()> {
        let outcome = outcome.into().checked();
        self.tell_optimizer(Candidate::known(point), &outcome)?;
        if self.note_best() != Change::None {
            self.best_trial = None;
        }
        self.apply_rules();
        Ok(())
    }

    /// Continues another session of the same optimizer: takes over its counts, and evaluates these
    /// candidates before any other: those that were out, in the order asked, then those that were
    /// [queued](Session::queued). The history begins with the best so far. Only before the first trial.
    pub fn resume(
        &mut self,
        counts: Counts,
        pending: impl IntoIterator<Item = Candidate>,
    ) -> Result<()> {
        self.check_unstarted("a session is resumed")?;
        self.counts = counts;
        (self.progress, self.progress_at) = (self.best, counts.improved_at);
        self.asked = counts.evaluations;
        self.history = History::default();
        if let Some(value) = self.value() {
            self.history.push(counts.evaluations, value);
        }
        self.queue.extend(pending);
        // Rules that were set before did not know the counts.
        self.stop = None;
        self.apply_rules();
        Ok(())
    }

    fn check_unstarted(&self, what: &str) -> Result<()> {
        let asked = self.asked;
        ensure!(asked == 0, setting, "{what} before the first trial; {asked} have been asked");
        Ok(())
    }

    /// Announce each outcome that is told to the optimizer by [`Next::Told`], at the cost of a copy of
    /// its point.
    pub fn watch(&mut self) {
        let (point, outcome) = (vec![0.0; self.space().dimension()], Outcome::Value(0.0));
        self.latest = Some(Latest { trial: None, point, outcome, improved: false });
    }

    /// What to do next, when this much time has passed since the session began. Unless there is a time
    /// limit, the time does not matter.
    ///
    /// In order, telling and asking take turns, so the optimizer is told here and not in
    /// [`Session::tell`]; likewise where the session is [watched](Session::watch).
    #[inline]
    pub fn next(&mut self, elapsed: Duration) -> Result<Next> {
        loop {
            // As they come, outcomes are told before anything else is asked.
            if self.order != Order::AsTheyCome || self.incoming.is_empty() {
                if self.rules.time.is_some_and(|limit| elapsed >= limit) {
                    self.stop(StopReason::Time);
                }
                if self.may_ask() {
                    match self.ask() {
                        Some(trial) => return Ok(Next::Evaluate(trial)),
                        None => self.stop(StopReason::Exhausted),
                    }
                }
            }
            if !self.learn_next()? {
                break;
            }
            if self.latest.is_some() {
                return Ok(Next::Told);
            }
        }
        if self.out > 0 {
            return Ok(Next::Wait);
        }
        debug_assert!(self.incoming.is_empty(), "an outcome was never told");
        Ok(Next::Stop(*self.stop.get_or_insert(StopReason::Evaluations)))
    }

    /// Takes the outcome of a trial, in the user's sense. The optimizer is told now or by the next
    /// [`Session::next`].
    #[inline]
    pub fn tell(&mut self, trial: Trial, outcome: impl Into<Outcome>) -> Result<()> {
        let outcome = outcome.into().checked();
        if trial.number >= self.asked {
            return Err(Error::never_asked("trial", trial.number));
        }
        if self.out == 0 {
            return Err(Error::told_before("trial", trial.number));
        }
        if self.order == Order::AsTheyCome && self.latest.is_none() {
            self.out -= 1;
            return self.learn(trial, &outcome);
        }
        self.store(trial, outcome)
    }

    /// Stores an outcome until its turn comes.
    fn store(&mut self, trial: Trial, outcome: Outcome) -> Result<()> {
        if self.order == Order::AsTheyCome {
            self.incoming.push_back(Some((trial, outcome)));
        } else {
            let slot = trial.number.checked_sub(self.counts.evaluations);
            let slot = slot.ok_or_else(|| Error::told_before("trial", trial.number))? as usize;
            if self.incoming.len() <= slot {
                self.incoming.resize_with(slot + 1, || None);
            }
            if self.incoming[slot].is_some() {
                return Err(Error::told_before("trial", trial.number));
            }
            self.incoming[slot] = Some((trial, outcome));
        }
        self.out -= 1;
        Ok(())
    }

    /// Tells the optimizer all outcomes whose turn has come, without asking for trials. Sessions do so by
    /// themselves when they stop; a replay needs it after its last ask.
    pub fn settle(&mut self) -> Result<()> {
        while self.learn_next()? {}
        Ok(())
    }

    /// A trial that was asked turned out not to need an evaluation, such as one that violates a constraint which is
    /// a known function of the point. It does not count against [`StopRules::evaluations`], unless
    /// [`Session::MAX_WAIVED`] trials have been waived for each that counts.
    pub fn waive(&mut self) {
        let counted = self.asked.saturating_sub(self.waived).max(1);
        if self.waived < counted.saturating_mul(Session::MAX_WAIVED) {
            self.waived += 1;
        }
    }

    /// Asks for no more trials. The first reason given stays.
    pub fn stop(&mut self, reason: StopReason) {
        self.stop.get_or_insert(reason);
    }

    /// Asks for the next trial as a record of the session has it, whatever the stop rules say now:
    /// `None` if the space is exhausted.
    ///
    /// In order, it was asked when `told` outcomes had been told (by the rule, if that is `None`), which
    /// must have come in.
    pub fn replay_ask(&mut self, told: Option<u64>) -> Result<Option<Trial>> {
        let told = match self.order {
            Order::AsTheyCome => told,
            Order::InOrder { lookahead } => {
                Some(told.unwrap_or((self.asked + 1).saturating_sub(lookahead)))
            }
        };
        self.replay_tells(told)?;
        Ok(self.ask())
    }

    /// Tells the optimizer the outcomes that it knew when this many had been told, as a record of the session
    /// has it: in order up to that number, otherwise all that have come in.
    pub fn replay_tells(&mut self, told: Option<u64>) -> Result<()> {
        let told = match self.order {
            Order::AsTheyCome => u64::MAX,
            Order::InOrder { .. } => told.unwrap_or(0),
        };
        while self.counts.evaluations < told && self.learn_next()? {}
        if self.order != Order::AsTheyCome && self.counts.evaluations < told {
            let missing = self.counts.evaluations;
            let what = format!("it follows on the outcome of trial {missing}, which is missing");
            return Err(Error::new(ErrorKind::Unasked, what));
        }
        Ok(())
    }

    /// Whether the rules allow another trial to be asked.
    #[inline]
    fn may_ask(&self) -> bool {
        let has_room = match self.order {
            Order::AsTheyCome => true,
            Order::InOrder { lookahead } => self.asked - self.counts.evaluations < lookahead,
        };
        self.stop.is_none()
            && has_room
            && self
                .rules
                .evaluations
                .is_none_or(|budget| self.asked < budget.saturating_add(self.waived))
    }

    #[inline]
    fn ask(&mut self) -> Option<Trial> {
        let candidate = self.queue.pop_front().or_else(|| self.optimizer.ask())?;
        debug_assert!(
            self.space().check(candidate.point()).is_ok(),
            "{} left its space",
            self.optimizer.name()
        );
        let number = self.asked;
        self.asked += 1;
        self.out += 1;
        // A model may choose another best point, and proposes to re-evaluate it.
        if self.is_noisy() && self.note_best() != Change::None {
            #[cfg(debug_assertions)]
            self.assert_is_best(candidate.point());
            self.best_trial = Some(number);
        }
        Some(Trial { number, candidate })
    }

    /// An ask or an outcome changes the standing of its own point only.
    #[cfg(debug_assertions)]
    fn assert_is_best(&self, point: &[f64]) {
        let best = self.optimizer.best();
        assert!(best.is_some_and(|best| best.point == point), "another point became the best");
    }

    /// Tells the optimizer the outcome that is next, if it has come in.
    fn learn_next(&mut self) -> Result<bool> {
        let Some(next) = self.incoming.front_mut() else { return Ok(false) };
        let Some((trial, outcome)) = next.take() else { return Ok(false) };
        self.incoming.pop_front();
        self.learn(trial, &outcome)?;
        Ok(true)
    }

    /// Tells the optimizer, and enters the outcome.
    #[inline]
    fn learn(&mut self, trial: Trial, outcome: &Outcome) -> Result<()> {
        let Trial { number, candidate } = trial;
        let rank = outcome.rank_in(self.direction);
        if rank.is_failure() && self.first_error.is_none() {
            self.note_first_error(number, &candidate, outcome);
        }
        if let Some(latest) = &mut self.latest {
            latest.trial = Some(number);
            latest.point.copy_from_slice(candidate.point());
            latest.outcome.clone_from(outcome);
        }
        #[cfg(debug_assertions)]
        {
            self.told_point.clear();
            self.told_point.extend_from_slice(candidate.point());
        }
        self.tell_optimizer(candidate, outcome)?;
        self.counts.evaluations += 1;
        self.counts.failures += u64::from(rank.is_failure());
        self.counts.infeasible += u64::from(rank.violation().is_some());
        debug_assert!(self.counts.evaluations <= self.asked);
        // Without noise, only a better outcome changes the best.
        let may_change = self.best.is_none_or(|best| rank.beats(best)) || self.is_noisy();
        let change = if may_change { self.note_best() } else { Change::None };
        if change != Change::None {
            #[cfg(debug_assertions)]
            self.assert_is_best(&self.told_point);
            self.best_trial = Some(number);
        }
        if let Some(latest) = &mut self.latest {
            latest.improved = change == Change::Better;
        }
        self.apply_rules();
        Ok(())
    }

    /// Tells the optimizer, in its own direction.
    #[inline]
    fn tell_optimizer(&mut self, candidate: Candidate, outcome: &Outcome) -> Result<()> {
        let rank = outcome.rank_in(self.direction);
        match outcome.to_measured(self.direction) {
            None => self.optimizer.tell_rank(candidate, rank),
            Some(measured) => self.optimizer.tell_measured(candidate, rank, &measured),
        }
    }

    #[cold]
    fn note_first_error(&mut self, number: u64, candidate: &Candidate, outcome: &Outcome) {
        let point = self.optimizer.space().view(candidate.point());
        self.first_error = Some(format!("evaluation {} at {point}: {outcome}", number + 1));
    }

    /// Enters the optimizer's best into the history, if it has changed.
    #[inline]
    fn note_best(&mut self) -> Change {
        let Some(Best { rank, .. }) = self.optimizer.best() else { return Change::None };
        let change = match self.best {
            Some(best) if rank == best => return Change::None,
            Some(best) if best.beats(rank) => Change::Worse,
            _ => Change::Better,
        };
        debug_assert!(change == Change::Better || self.is_noisy(), "the best got worse");
        self.best = Some(rank);
        if change == Change::Better {
            self.counts.improved_at = self.counts.evaluations;
        }
        self.note_progress(rank, change, self.counts.evaluations);
        if let Some(value) = rank.value() {
            self.history.push(self.counts.evaluations, self.direction.signed(value));
        }
        change
    }

    /// Counts an improvement for patience, if it is one by the tolerance.
    #[inline]
    fn note_progress(&mut self, rank: Rank, change: Change, evaluations: u64) {
        let is_large = match (self.progress.and_then(Rank::value), rank.value()) {
            (Some(old), Some(new)) => old - new >= self.rules.patience_tolerance,
            _ => true,
        };
        if change == Change::Better && is_large {
            self.progress_at = evaluations;
        }
        // What a re-evaluated point lost can be improved on again.
        if change == Change::Worse || is_large {
            self.progress = Some(rank);
        }
    }

    /// Counts improvements anew, for another tolerance, as far as the history goes.
    fn recount_progress(&mut self) {
        if self.history.improvements().is_empty() {
            (self.progress, self.progress_at) = (self.best, self.counts.improved_at);
            return;
        }
        (self.progress, self.progress_at) = (None, 0);
        let mut before: Option<Rank> = None;
        for i in 0..self.history.improvements().len() {
            let (evaluations, value) = self.history.improvements()[i];
            let rank = Outcome::Value(value).rank_in(self.direction);
            let is_worse = before.is_some_and(|before| before.beats(rank));
            let change = if is_worse { Change::Worse } else { Change::Better };
            self.note_progress(rank, change, evaluations);
            before = Some(rank);
        }
        // The history of a resumed session begins with the best so far, as of then.
        self.progress_at = self.progress_at.min(self.counts.improved_at);
    }

    /// Stops the session if a rule on its outcomes says so.
    #[inline]
    fn apply_rules(&mut self) {
        if self.rules.target.is_some() && self.is_at_target() {
            self.stop(StopReason::Target);
        }
        let waited = self.counts.evaluations - self.progress_at;
        if self.rules.patience.is_some_and(|patience| waited >= patience) {
            self.stop(StopReason::NoImprovement);
        }
    }

    /// Whether the objective may be noisy.
    #[inline]
    fn is_noisy(&self) -> bool {
        self.optimizer.is_noisy() != Some(false)
    }

    fn is_at_target(&self) -> bool {
        let target = self.rules.target.map(|target| self.direction.signed(target));
        let value = self.best.and_then(Rank::value);
        let needed = match self.optimizer.is_noisy() {
            Some(false) => 1,
            // A value that was known before is not doubted while nothing is known of noise.
            None if self.counts.improved_at == 0 => 1,
            _ => StopRules::NOISY_TARGET_EVALUATIONS,
        };
        matches!((value, target), (Some(value), Some(target)) if value <= target)
            && self.best_evaluations() >= needed
    }

    /// What is searched.
    #[inline]
    pub fn space(&self) -> &Space {
        self.optimizer.space()
    }

    /// Which way is better.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// The order in which outcomes are told.
    pub fn order(&self) -> Order {
        self.order
    }

    /// The stop rules.
    pub fn rules(&self) -> &StopRules {
        &self.rules
    }

    /// The number of trials asked.
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// The number of trials that are being evaluated: asked, and the outcome has not come in.
    pub fn out(&self) -> u64 {
        self.out
    }

    /// What has been counted so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The best value, `None` if there is none. Where the objective is known to be noisy, a mean: see
    /// [`Session::best_evaluations`].
    pub fn value(&self) -> Option<f64> {
        self.best.and_then(Rank::value).map(|value| self.direction.signed(value))
    }

    /// The best point; the least infeasible one if none is feasible, and `None` if all evaluations
    /// failed.
    pub fn point(&self) -> Option<Point<'_>> {
        self.optimizer.best_point()
    }

    /// The number of evaluations that the best value is the mean of: 1, unless the objective is known
    /// to be noisy and the point was evaluated again; 0 if there is no best.
    pub fn best_evaluations(&self) -> u64 {
        self.optimizer.best().map_or(0, |best| best.evaluations)
    }

    /// The trial that the best is of, the latest one if its point was evaluated several times; `None`
    /// if there is no best, or it was known before.
    pub fn best_trial(&self) -> Option<u64> {
        self.best_trial
    }

    /// How the best value changed.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The first failure: which evaluation, where, and why.
    pub fn first_error(&self) -> Option<&str> {
        self.first_error.as_deref()
    }

    /// Why no more trials are asked, if so. Some may still be out.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.stop
    }

    /// The outcome told last, where the session is [watched](Session::watch).
    pub fn latest(&self) -> Option<Evaluation<'_>> {
        let Latest { trial, point, outcome, improved } = self.latest.as_ref()?;
        let point = self.space().view(point);
        Some(Evaluation { trial: (*trial)?, point, outcome, improved: *improved })
    }

    /// What a portfolio of algorithms did, and why; `None` for a single algorithm.
    pub fn portfolio(&self) -> Option<Portfolio> {
        Some(self.optimizer.portfolio()?.signed(self.direction))
    }

    /// The trials whose outcomes have come in, and that the optimizer has not been told of.
    pub fn incoming(&self) -> impl Iterator<Item = &Trial> {
        self.incoming.iter().flatten().map(|(trial, _)| trial)
    }

    /// The candidates to be evaluated before the optimizer is asked: start points, and what a
    /// [resumed](Session::resume) session had out.
    pub fn queued(&self) -> impl Iterator<Item = &Candidate> {
        self.queue.iter()
    }

    /// The optimizer, whose values are in its own sense: smaller is better.
    pub fn optimizer(&self) -> &dyn Optimizer {
        &*self.optimizer
    }

    /// The optimizer, owned.
    pub fn into_optimizer(self) -> Box<dyn Optimizer> {
        self.optimizer
    }
}

/// What an outcome did to the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    Better,
    /// Only where the objective is noisy: the best was evaluated again.
    Worse,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("algorithm", &self.optimizer.name())
            .field("direction", &self.direction)
            .field("order", &self.order)
            .field("rules", &self.rules)
            .field("asked", &self.asked)
            .field("out", &self.out)
            .field("counts", &self.counts)
            .field("value", &self.value())
            .field("stop", &self.stop)
            .finish_non_exhaustive()
    }
}
