//! What a report needs to know of a study, gathered event by event: little of every trial, all of the
//! best, and a sample of the points. It is kept up to date while a study runs.

use super::kept::Kept;
use super::places;
use super::regions::Replay;
use crate::trace::{self, Event, Reader, Settings, Told};
use racecars::Rank;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;

/// How many failures of a kind are shown in full.
const EXAMPLES: usize = 3;
/// How much of standard error is kept of each.
const STDERR: usize = 2000;

/// How a trial came out, in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Value,
    Infeasible,
    Failed,
}

/// What is kept of every trial.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trial {
    pub(super) trial: u64,
    pub(super) status: Status,
    pub(super) rank: Rank,
    /// The value in the user's sense; NaN if there is none.
    pub(super) value: f64,
    /// In milliseconds since 1970.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) worker: u32,
}

/// The best trial.
#[derive(Debug, Clone)]
pub(super) struct Best {
    pub(super) trial: u64,
    pub(super) told: Told,
    pub(super) rank: Rank,
    pub(super) point: Vec<f64>,
    /// Its place in the order told.
    pub(super) order: u64,
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
pub(super) struct Session {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// A point that is being evaluated.
pub(super) struct Pending {
    pub(super) at: u64,
    point: Vec<f64>,
}

/// A study, as far as a report is concerned.
pub struct Digest {
    pub(super) name: String,
    pub(super) settings: Settings,
    /// In the order told.
    pub(super) trials: Vec<Trial>,
    pub(super) pending: BTreeMap<u64, Pending>,
    pub(super) kept: Kept,
    pub(super) best: Option<Best>,
    /// The order told and the value of each new best value.
    pub(super) improvements: Vec<(u64, f64)>,
    pub(super) failures: BTreeMap<String, Failures>,
    pub(super) retried: u64,
    pub(super) replay: Replay,
    /// Values of trials that were evaluated again.
    pub(super) repeats: HashMap<u64, Vec<f64>>,
    pub(super) sessions: Vec<Session>,
    pub(super) stop: Option<String>,
    pub(super) damaged: Vec<u64>,
    /// How many proposals are not of the space.
    pub(super) foreign: u64,
}

impl Digest {
    /// Reads the study in a folder; `None` if it has not begun.
    pub fn read(folder: &Path) -> io::Result<Option<Digest>> {
        let Some(mut reader) = Reader::open(folder)? else { return Ok(None) };
        let mut digest = Digest::new(folder, reader.settings().clone());
        digest.follow(&mut reader)?;
        Ok(Some(digest))
    }

    /// A study that nothing has happened in yet.
    pub fn new(folder: &Path, settings: Settings) -> Self {
        let start = settings.started;
        Digest {
            name: name(folder),
            trials: Vec::new(),
            pending: BTreeMap::new(),
            kept: Kept::new(settings.space.dimension()),
            best: None,
            improvements: Vec::new(),
            failures: BTreeMap::new(),
            retried: 0,
            replay: Replay::new(&settings),
            repeats: HashMap::new(),
            sessions: vec![Session { start, end: start }],
            stop: None,
            damaged: Vec::new(),
            foreign: 0,
            settings,
        }
    }

    /// Takes in what the journal has gained; returns whether that was anything.
    pub fn follow(&mut self, reader: &mut Reader) -> io::Result<bool> {
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
            Event::Ask { trial, params, told, at } => {
                self.stop = None;
                self.note_time(at);
                // A trial that was in flight when the study was interrupted may be written again.
                if self.pending.contains_key(&trial) {
                    return;
                }
                let Ok(point) = trace::encode(&self.settings.space, params) else {
                    self.foreign += 1;
                    return;
                };
                self.replay.ask(trial, &point, told, self.kept.tracked());
                self.pending.insert(trial, Pending { at, point });
            }
            Event::Tell { trial, told, attempts, seconds, worker, at, stderr } => {
                self.note_time(at);
                let Some(Pending { at: asked, point }) = self.pending.remove(&trial) else {
                    return;
                };
                self.retried += u64::from(attempts > 1);
                self.replay.tell(trial, &told);
                let took = (seconds.max(0.0) * 1000.0) as u64;
                let start = at.saturating_sub(took).max(asked).min(at);
                self.tell(trial, told, point, start, at, worker, stderr);
            }
            Event::Repeat { trial, value } => self.repeats.entry(trial).or_default().push(value),
            Event::Stop { reason, at } => {
                self.note_time(at);
                self.stop = Some(reason);
            }
            Event::Resume { at } => {
                self.stop = None;
                self.sessions.push(Session { start: at, end: at });
                // What was in flight begins anew.
                self.pending.values_mut().for_each(|pending| pending.at = at);
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn tell(
        &mut self,
        trial: u64,
        told: Told,
        point: Vec<f64>,
        start: u64,
        end: u64,
        worker: u32,
        stderr: String,
    ) {
        let order = self.trials.len() as u64;
        let outcome = told.outcome(self.settings.direction);
        let rank = outcome.rank();
        let (status, value) = match &told {
            _ if rank.is_failure() => (Status::Failed, f64::NAN),
            Told::Value(value) => (Status::Value, *value),
            Told::Infeasible { value, .. } => (Status::Infeasible, value.unwrap_or(f64::NAN)),
            Told::Failed { .. } => (Status::Failed, f64::NAN),
        };
        if status == Status::Failed {
            self.note_failure(trial, &told, stderr);
        }
        self.trials.push(Trial { trial, status, rank, value, start, end, worker });
        if self.kept.wants(order) {
            let space = &self.settings.space;
            let codes = point.iter().enumerate();
            let places = codes.map(|(i, &code)| places::place(space.axis(i), code) as f32);
            self.kept.push(order, places);
        }
        let is_best = self.best.as_ref().is_none_or(|best| rank.beats(best.rank));
        if is_best && !rank.is_failure() {
            if status == Status::Value {
                self.improvements.push((order, value));
            }
            self.best = Some(Best { trial, told, rank, point, order });
        }
    }

    fn note_failure(&mut self, trial: u64, told: &Told, stderr: String) {
        let (kind, detail) = match told {
            Told::Failed { kind, detail } => (kind.as_str(), detail.clone()),
            other => ("nan", format!("{other:?}")),
        };
        let failures = self.failures.entry(kind.to_string()).or_default();
        failures.count += 1;
        let is_new = failures.examples.iter().all(|example| example.detail != detail);
        if is_new && failures.examples.len() < EXAMPLES {
            let cut = stderr.char_indices().rev().nth(STDERR).map_or(0, |(i, _)| i);
            failures.examples.push(Example { trial, detail, stderr: stderr[cut..].to_string() });
        }
    }

    fn note_time(&mut self, at: u64) {
        if let Some(session) = self.sessions.last_mut() {
            if session.start == 0 {
                session.start = at;
            }
            session.end = session.end.max(at);
        }
    }

    /// The running time of the study until `at`, in seconds: interruptions do not count.
    pub(super) fn clock(&self, at: u64) -> f64 {
        let part = |session: &Session| at.clamp(session.start, session.end) - session.start;
        self.sessions.iter().map(part).sum::<u64>() as f64 / 1000.0
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
