//! Where points are proposed and outcomes come in: the optimizer, the journal, and what is known of
//! the study so far. It does not care how points are evaluated.
//!
//! Every event is in the journal before it reaches the optimizer, and the optimizer is a function of
//! its seed and the events. So the journal is all there is to save: a session that goes on replays it.
//!
//! **Deterministic studies.** Outcomes are told to the optimizer in the order asked, and point
//! `i + lookahead` is asked when outcome `i` has been told, whenever evaluations end and however often
//! the study is interrupted. An outcome that is early is in the journal, but waits to be told; an
//! `ask` line says how many had been told by then.

use crate::error::{Error, Result};
use crate::journal::{self, Ask, Entry, Event, Journal, Repeat, Resume, Stop, Tell};
use crate::lock::Lock;
use crate::noise::{Favourite, Leader};
use crate::outcome::Verdict;
use crate::plan::{Plan, now};
use crate::record::Record;
use racecars::{Candidate, Optimizer, Point, Portfolio, Space};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The optimizer, and what it is waiting for.
struct State {
    space: Space,
    plan: Plan,
    optimizer: Box<dyn Optimizer>,
    /// Asked, and not told to the optimizer: the candidates, by trial.
    pending: BTreeMap<u64, Candidate>,
    /// Deterministic: outcomes in the journal that the optimizer does not know yet.
    early: BTreeMap<u64, Verdict>,
    record: Record,
    favourite: Favourite,
}

impl State {
    /// The state of a study that has just begun. The algorithm plans with this budget ever after.
    fn new(plan: &Plan) -> Result<State> {
        let space = plan.space.clone();
        let optimizer = plan.algorithm.optimizer(&space, Some(plan.budget), plan.seed)?;
        Ok(State {
            record: Record::new(plan),
            plan: plan.clone(),
            favourite: Favourite::default(),
            pending: BTreeMap::new(),
            early: BTreeMap::new(),
            space,
            optimizer,
        })
    }

    /// Enters a candidate as asked.
    fn issue(&mut self, trial: u64, candidate: Candidate) {
        self.pending.insert(trial, candidate);
        self.record.counts.asked += 1;
    }

    /// The point of a trial whose outcome may be told, or why it may not.
    fn awaited(&self, trial: u64) -> Result<&[f64], String> {
        match self.pending.get(&trial) {
            Some(candidate) if !self.early.contains_key(&trial) => Ok(candidate.point()),
            None if trial >= self.record.counts.asked => Err(format!(
                "trial {trial} was never asked; {} have been",
                self.record.counts.asked
            )),
            _ => Err(format!("trial {trial} has been told before")),
        }
    }

    /// Enters an outcome that is in the journal.
    fn enter(&mut self, tell: &Tell) -> Result<()> {
        let Some(candidate) = self.pending.remove(&tell.trial) else { return Ok(()) };
        self.record.enter(tell, candidate.point());
        if self.plan.deterministic {
            self.pending.insert(tell.trial, candidate);
            self.early.insert(tell.trial, tell.outcome.clone());
        } else {
            self.pass_on(tell.trial, candidate, &tell.outcome)?;
        }
        Ok(())
    }

    /// Deterministic: tells the optimizer the next outcome in the order asked, if it is there.
    fn tell_next(&mut self) -> Result<bool> {
        let next = self.optimizer.told();
        let Some(verdict) = self.early.remove(&next) else { return Ok(false) };
        if let Some(candidate) = self.pending.remove(&next) {
            self.pass_on(next, candidate, &verdict)?;
        }
        Ok(true)
    }

    /// Tells the optimizer.
    fn pass_on(&mut self, trial: u64, candidate: Candidate, verdict: &Verdict) -> Result<()> {
        let point = candidate.point().to_vec();
        self.optimizer.tell(candidate, verdict.outcome(self.plan.direction))?;
        self.favourite.note(trial, &point, &*self.optimizer);
        Ok(())
    }

    /// Takes in a line of the journal; `Err` says what is wrong with it.
    fn replay(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Ask(ask) => self.replay_ask(&ask),
            Event::Tell(tell) => {
                self.awaited(tell.trial)?;
                self.enter(&tell).map_err(|error| error.to_string())
            }
            Event::Repeat(repeat) => {
                self.record.enter_repeat(&repeat);
                Ok(())
            }
            // The plan so far: what a session changed stays so.
            Event::Resume(Resume { budget, jobs, .. }) => {
                self.plan.budget = self.plan.budget.max(budget.unwrap_or(0));
                self.plan.jobs = jobs.unwrap_or(self.plan.jobs);
                Ok(())
            }
            Event::Study(_) | Event::Stop(_) => Ok(()),
        }
    }

    fn replay_ask(&mut self, ask: &Ask) -> Result<(), String> {
        let told = ask.told.unwrap_or(0);
        while self.plan.deterministic && self.optimizer.told() < told {
            if !self.tell_next().map_err(|error| error.to_string())? {
                let missing = self.optimizer.told();
                return Err(format!(
                    "it follows on the outcome of trial {missing}, which is missing"
                ));
            }
        }
        let candidate = self.optimizer.ask().ok_or("the space was used up before it")?;
        let trial = candidate.id().unwrap_or(u64::MAX);
        if trial != ask.trial {
            return Err(format!("it asks trial {} where {trial} is next", ask.trial));
        }
        let ours = serde_json::to_string(&self.space.view(candidate.point()))
            .map_err(|error| error.to_string())?;
        if ours != ask.params.get() && !is_same_json(&ours, ask.params.get()) {
            return Err(format!(
                "trial {trial} is not the point that {} proposes there: another version of racecars may \
                 have written it",
                self.plan.algorithm
            ));
        }
        self.issue(trial, candidate);
        Ok(())
    }
}

/// Whether two texts are the same JSON, written differently.
fn is_same_json(a: &str, b: &str) -> bool {
    let parsed = |text| serde_json::from_str::<serde_json::Value>(text).ok();
    parsed(a).is_some_and(|a| Some(a) == parsed(b))
}

/// A study open for asking and telling.
pub(crate) struct Desk {
    folder: PathBuf,
    journal: Journal,
    state: State,
    is_exhausted: bool,
    is_resumed: bool,
    _lock: Lock,
}

impl Desk {
    /// Opens the study in `folder`. `make` completes the plan, given the study's plan so far.
    pub(crate) fn open(
        folder: &Path,
        lock: Lock,
        mut make: impl FnMut(Option<&Plan>) -> Result<Plan>,
    ) -> Result<Desk> {
        let path = folder.join(journal::FILE);
        let (state, length, is_resumed) = match journal::plan(&path)? {
            Some(first) => {
                // Before the replay, which takes its time.
                make(Some(&first))?.check_continues(&first, folder)?;
                let mut state = State::new(&first)?;
                let length = journal::read(&path, |line, event| {
                    state.replay(event).map_err(|what| journal::damaged(&path, line, what))
                })?;
                state.plan = make(Some(&state.plan))?;
                (state, length, true)
            }
            None => (State::new(&make(None)?)?, 0, false),
        };
        let mut journal = Journal::open(&path, length, state.plan.sync)?;
        if !is_resumed {
            journal.append(&Entry::Study(&state.plan))?;
            journal.flush()?;
        }
        let folder = folder.to_path_buf();
        Ok(Desk { folder, journal, state, is_exhausted: false, is_resumed, _lock: lock })
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.state.plan
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn record(&self) -> &Record {
        &self.state.record
    }

    /// Whether the study was begun by an earlier session.
    pub(crate) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Whether the whole space has been proposed.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// Whether the target has been reached, by what the optimizer knows: in deterministic mode that
    /// does not depend on which evaluation ends first.
    pub(crate) fn is_at_target(&self) -> bool {
        let plan = self.plan();
        let target = plan.target.map(|target| plan.direction.turn(target));
        let value = self.state.optimizer.best().and_then(|best| best.rank.value());
        matches!((value, target), (Some(value), Some(target)) if value <= target)
    }

    /// The point that is best by fresh values: of those that were evaluated again at the end, or by an
    /// algorithm that saw noise.
    pub(crate) fn recommended(&self) -> Option<(Leader, f64)> {
        let State { record, favourite, optimizer, plan, .. } = &self.state;
        record.recommended().or_else(|| favourite.recommended(plan.direction, &**optimizer))
    }

    /// What a portfolio of algorithms did, in the user's sense.
    pub(crate) fn portfolio(&self) -> Option<Portfolio> {
        let direction = self.plan().direction;
        Some(self.state.optimizer.portfolio()?.map_values(|best| direction.turn(best)))
    }

    /// A view of an encoded point.
    pub(crate) fn view<'a>(&'a self, point: &'a [f64]) -> Point<'a> {
        self.state.space.view(point)
    }

    /// The trials that are asked and whose outcome is not known, oldest first.
    pub(crate) fn pending(&self) -> Vec<u64> {
        let State { pending, early, .. } = &self.state;
        pending.keys().copied().filter(|trial| !early.contains_key(trial)).collect()
    }

    /// The encoded point of a pending trial.
    pub(crate) fn point(&self, trial: u64) -> Option<&[f64]> {
        self.state.pending.get(&trial).map(Candidate::point)
    }

    /// Writes that a session goes on with the study.
    pub(crate) fn resume(&mut self) -> Result<()> {
        let (budget, jobs) = (Some(self.plan().budget), Some(self.plan().jobs));
        self.journal.append(&Entry::Resume(&Resume { at: now(), budget, jobs }))
    }

    /// Writes that a session ends, and forces everything to disk.
    pub(crate) fn stop(&mut self, reason: &str) -> Result<()> {
        self.journal.append(&Entry::Stop(&Stop { reason: reason.to_string(), at: now() }))?;
        self.journal.flush()
    }

    /// Whether the rules allow another point to be proposed: the budget, the target, and in
    /// deterministic mode the lookahead.
    pub(crate) fn may_ask(&self) -> bool {
        let (plan, asked) = (self.plan(), self.record().counts.asked);
        let is_in_window =
            !plan.deterministic || asked - self.state.optimizer.told() < plan.lookahead;
        asked < plan.budget && is_in_window && !self.is_exhausted && !self.is_at_target()
    }

    /// Proposes a point; `None` if the space is used up.
    pub(crate) fn ask(&mut self) -> Result<Option<u64>> {
        let state = &mut self.state;
        let Some(candidate) = state.optimizer.ask() else {
            self.is_exhausted = true;
            return Ok(None);
        };
        let trial = candidate.id().unwrap_or(state.record.counts.asked);
        self.journal.append(&Entry::Ask {
            trial,
            params: state.space.view(candidate.point()),
            told: state.plan.deterministic.then(|| state.optimizer.told()),
            at: now(),
        })?;
        state.issue(trial, candidate);
        Ok(Some(trial))
    }

    /// Takes an outcome in. In deterministic mode the optimizer learns it by [`Desk::tell_next`].
    pub(crate) fn tell(&mut self, tell: &Tell) -> Result<()> {
        self.state.awaited(tell.trial).map_err(Error::setting)?;
        self.journal.append(&Entry::Tell(tell))?;
        self.state.enter(tell)
    }

    /// Deterministic: tells the optimizer the next outcome in the order asked, if it is there.
    pub(crate) fn tell_next(&mut self) -> Result<bool> {
        self.state.tell_next()
    }

    /// Enters a fresh value of a leading point.
    pub(crate) fn repeat(&mut self, repeat: &Repeat) -> Result<()> {
        self.journal.append(&Entry::Repeat(repeat))?;
        self.state.record.enter_repeat(repeat);
        Ok(())
    }
}
