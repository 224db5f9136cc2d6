//! What a report needs to know of a study, gathered event by event: little of every trial, all of the
//! best, and a sample of the points. It is kept up to date while a study runs.

use super::kept::Kept;
use super::places;
use super::regions::Replay;
use crate::journal::{Event, Tell};
use crate::known::Known;
use crate::outcome::{FailureKind, Outcome, value_and_violation};
use crate::plan::Plan;
use crate::record::Record;
use crate::trace::{self, Reader};
use racecars::{Rank, StopReason};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};

/// How many failures of a kind are shown in full.
const EXAMPLES: usize = 3;

/// How a trial came out, in short; the page has the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrialStatus {
    Value = 0,
    Infeasible = 1,
    Failed = 2,
}

/// What is kept of every trial.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrialSummary {
    pub(super) trial: u64,
    pub(super) status: TrialStatus,
    pub(super) rank: Rank,
    /// The value in the user's sense; NaN if there is none.
    pub(super) value: f64,
    /// In milliseconds since 1970.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) worker: u32,
}

/// Failures of one kind.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Failures {
    pub(super) count: u64,
    /// The first of each detail.
    pub(super) examples: Vec<Example>,
}

/// A failure in full.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Example {
    pub(super) trial: u64,
    pub(super) detail: String,
    pub(super) stderr: String,
}

/// A stretch of time in which the study ran.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// A point that is being evaluated.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) at: u64,
    point: Vec<f64>,
}

/// A study, as far as a report is concerned.
#[derive(Debug)]
pub struct Digest {
    pub(super) name: String,
    pub(super) folder: PathBuf,
    pub(super) plan: Plan,
    /// In the order told.
    pub(super) trials: Vec<TrialSummary>,
    pub(super) pending: BTreeMap<u64, Pending>,
    pub(super) kept: Kept,
    /// The best trial, and the leading ones.
    pub(crate) record: Record,
    /// Where the best trial stands in the order told.
    pub(super) best_order: u64,
    /// The order told and the value of each new best value.
    pub(super) improvements: Vec<(u64, f64)>,
    pub(super) failures: BTreeMap<&'static str, Failures>,
    pub(super) retried: u64,
    pub(super) replay: Replay,
    /// Values of trials that were evaluated again.
    pub(super) repeats: HashMap<u64, Vec<f64>>,
    pub(super) stretches: Vec<Stretch>,
    pub(super) stop: Option<StopReason>,
    pub(super) damaged: Vec<u64>,
    /// How many proposals are not of the space.
    pub(super) foreign: u64,
    /// Points whose outcomes were told without being asked for.
    pub(super) known: Vec<Known>,
}

impl Digest {
    /// Reads the study in a folder; `None` if it has not begun.
    pub fn read(folder: &Path) -> io::Result<Option<Digest>> {
        Ok(Digest::open(folder)?.map(|(_, digest)| digest))
    }

    /// The same, with the reader that it can [follow](Digest::follow) on.
    pub(crate) fn open(folder: &Path) -> io::Result<Option<(Reader, Digest)>> {
        let Some(mut reader) = Reader::open(folder)? else { return Ok(None) };
        let mut digest = Digest::new(folder, &reader);
        digest.follow(&mut reader)?;
        Ok(Some((reader, digest)))
    }

    /// A study that nothing has happened in yet.
    fn new(folder: &Path, reader: &Reader) -> Self {
        let plan = reader.plan().clone();
        let start = plan.started;
        Digest {
            name: name(folder),
            folder: folder.to_path_buf(),
            trials: Vec::new(),
            pending: BTreeMap::new(),
            kept: Kept::new(plan.space.dimension()),
            record: Record::new(&plan),
            best_order: 0,
            improvements: Vec::new(),
            failures: BTreeMap::new(),
            retried: 0,
            replay: Replay::new(&plan),
            repeats: HashMap::new(),
            stretches: vec![Stretch { start, end: start }],
            stop: None,
            damaged: Vec::new(),
            foreign: 0,
            known: plan.known.clone(),
            plan,
        }
    }

    /// Takes in what the journal has gained; returns whether that was anything.
    pub(crate) fn follow(&mut self, reader: &mut Reader) -> io::Result<bool> {
        let mut grown = false;
        reader.read(|event| {
            self.take(event);
            grown = true;
            Ok(())
        })?;
        grown |= self.damaged.len() < reader.damaged().len();
        self.damaged = reader.damaged().to_vec();
        Ok(grown)
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Ask(ask) => {
                self.stop = None;
                self.note_time(ask.at);
                // A trial that was in flight when the study was interrupted may be written again.
                if self.pending.contains_key(&ask.trial) {
                    return;
                }
                let Ok(point) = trace::encode(&self.plan.space, ask.params) else {
                    self.foreign += 1;
                    return;
                };
                self.replay.ask(ask.trial, &point, ask.told, self.kept.tracked());
                self.pending.insert(ask.trial, Pending { at: ask.at, point });
            }
            Event::Part(part) => self.note_time(part.at),
            Event::Known(known) => {
                self.replay.known(&known);
                self.known.push(Known { point: known.params, outcome: known.outcome.checked() });
            }
            Event::Tell(tell) => {
                self.note_time(tell.at);
                if let Some(pending) = self.pending.remove(&tell.trial) {
                    self.retried += u64::from(tell.attempts > self.plan.repeat);
                    self.replay.tell(tell.trial, &tell.outcome);
                    self.tell(&tell, &pending);
                }
            }
            Event::Repeat(repeat) => {
                self.note_time(repeat.at);
                self.record.enter_repeat(&repeat);
                if let Some(value) = repeat.value {
                    self.repeats.entry(repeat.trial).or_default().push(value);
                }
            }
            Event::Stop(stop) => {
                self.note_time(stop.at);
                self.stop = Some(stop.reason);
                if stop.reason.is_complete() {
                    self.replay.finish();
                }
            }
            Event::Resume(resume) => {
                self.stop = None;
                let at = resume.at;
                self.stretches.push(Stretch { start: at, end: at });
                self.plan.budget = resume.budget.unwrap_or(self.plan.budget);
                self.plan.jobs = resume.jobs.unwrap_or(self.plan.jobs);
                // What was in flight begins anew.
                self.pending.values_mut().for_each(|pending| pending.at = at);
            }
        }
    }

    fn tell(&mut self, tell: &Tell, Pending { at: asked, point }: &Pending) {
        let order = self.trials.len() as u64;
        let rank = tell.outcome.rank_in(self.plan.direction);
        let (value, violation) = value_and_violation(&tell.outcome);
        let (status, value) = match violation {
            _ if rank.is_failure() => (TrialStatus::Failed, None),
            None => (TrialStatus::Value, value),
            Some(_) => (TrialStatus::Infeasible, value),
        };
        let value = value.unwrap_or(f64::NAN);
        if status == TrialStatus::Failed {
            self.note_failure(tell);
        }
        let took = (tell.seconds.max(0.0) * 1000.0) as u64;
        self.trials.push(TrialSummary {
            trial: tell.trial,
            status,
            rank,
            value,
            start: tell.at.saturating_sub(took).max(*asked).min(tell.at),
            end: tell.at,
            worker: tell.worker as u32,
        });
        if self.kept.wants(order) {
            let codes = point.iter().enumerate();
            let places =
                codes.map(|(i, &code)| places::place(self.plan.space.axis(i), code) as f32);
            self.kept.push(order, places);
        }
        let bar = self.improvements.last().map(|best| self.plan.direction.signed(best.1));
        if status == TrialStatus::Value
            && bar.is_none_or(|bar| self.plan.direction.signed(value) < bar)
        {
            self.improvements.push((order, value));
        }
        self.record.enter(tell, point);
        if self.record.best.as_ref().is_some_and(|best| best.trial == tell.trial) {
            self.best_order = order;
        }
    }

    fn note_failure(&mut self, tell: &Tell) {
        let (kind, detail) = match &tell.outcome {
            Outcome::Failed(failure) => (failure.kind.name(), failure.reason.clone()),
            other => (FailureKind::Nan.name(), other.to_string()),
        };
        let failures = self.failures.entry(kind).or_default();
        failures.count += 1;
        let is_new = failures.examples.iter().all(|example| example.detail != detail);
        if is_new && failures.examples.len() < EXAMPLES {
            let stderr = tell.stderr.clone().unwrap_or_default();
            failures.examples.push(Example { trial: tell.trial, detail, stderr });
        }
    }

    fn note_time(&mut self, at: u64) {
        if let Some(stretch) = self.stretches.last_mut() {
            if stretch.start == 0 {
                stretch.start = at;
            }
            stretch.end = stretch.end.max(at);
        }
    }

    /// The running time of the study until `at`, in seconds: interruptions do not count.
    pub(super) fn clock(&self, at: u64) -> f64 {
        let part = |stretch: &Stretch| at.clamp(stretch.start, stretch.end) - stretch.start;
        self.stretches.iter().map(part).sum::<u64>() as f64 / 1000.0
    }

    /// How many trials came out so.
    pub(super) fn count(&self, status: TrialStatus) -> usize {
        self.trials.iter().filter(|trial| trial.status == status).count()
    }

    /// The running time until now.
    pub(super) fn elapsed(&self) -> f64 {
        self.clock(u64::MAX)
    }
}

/// What to call a study: its folder.
pub(crate) fn name(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    whole.file_name().map_or("study".into(), |name| name.to_string_lossy().into_owned())
}
