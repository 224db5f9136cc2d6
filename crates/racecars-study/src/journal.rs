//! The journal: what happened to a study, one JSON object per line, only ever appended to.
//!
//! The first line is the [`Plan`]; then come the events, in the order in which they happened. A line
//! is written in one go before what it says counts, and forced to disk at least every 100 ms. So
//! a process that is killed loses nothing, and a machine that goes down at most the last 100 ms.
//! A last line without its end is what a full disk or a power cut leaves; it never counted, and is
//! cut off.

use crate::error::{Error, ErrorKind, Result};
use crate::outcome::Outcome;
use crate::plan::{Plan, Sync};
use racecars::{Point, StopReason};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The journal's name within the study's folder.
pub const FILE: &str = "journal.jsonl";
/// Half the time within which lines are on disk, since syncing takes time as well.
const SYNC_EVERY: Duration = Duration::from_millis(50);

/// A line of the journal, as it is read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Event {
    /// The first line.
    Study(Box<Plan>),
    /// A point was proposed.
    Ask(Ask),
    /// Its outcome was told.
    Tell(Tell),
    /// A leading point was evaluated again.
    Repeat(Repeat),
    /// A process resumed the study.
    Resume(Resume),
    /// A run ended.
    Stop(Stop),
}

/// A point was proposed.
#[derive(Debug, Deserialize)]
pub struct Ask {
    /// Its number: 0, 1, 2, ...
    pub trial: u64,
    /// The values by name.
    pub params: Box<RawValue>,
    /// In deterministic mode: how many outcomes the optimizer knew by then. Lines are written as
    /// evaluations end, but told in the order asked.
    #[serde(default)]
    pub told: Option<u64>,
    /// When, in milliseconds since 1970.
    #[serde(default)]
    pub at: u64,
}

/// The outcome of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tell {
    /// The trial.
    pub trial: u64,
    /// Its outcome, in the user's sense.
    pub outcome: Outcome,
    /// How often the program was started.
    #[serde(default)]
    pub attempts: u32,
    /// How long it ran.
    #[serde(default)]
    pub seconds: f64,
    /// Which worker ran it.
    #[serde(default)]
    pub worker: usize,
    /// The repeated values that the outcome was made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
    /// When, in milliseconds since 1970.
    #[serde(default)]
    pub at: u64,
    /// Of a failure: the end of standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
}

/// A leading point was evaluated again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    /// The trial.
    pub trial: u64,
    /// Index of this re-evaluation, from 0.
    #[serde(default)]
    pub number: u64,
    /// The fresh value; none if the evaluation failed.
    pub value: Option<f64>,
    /// Its outcome.
    pub outcome: Outcome,
    /// How long it ran.
    #[serde(default)]
    pub seconds: f64,
    /// Which worker ran it.
    #[serde(default)]
    pub worker: usize,
    /// When, in milliseconds since 1970.
    #[serde(default)]
    pub at: u64,
}

/// A process resumed the study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resume {
    /// When, in milliseconds since 1970.
    #[serde(default)]
    pub at: u64,
    /// The budget from here on.
    #[serde(default)]
    pub budget: Option<u64>,
    /// How many evaluations run at once from here on.
    #[serde(default)]
    pub jobs: Option<usize>,
}

/// A run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    /// Why.
    pub reason: StopReason,
    /// When, in milliseconds since 1970.
    #[serde(default)]
    pub at: u64,
}

/// A line of the journal, as it is written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Entry<'a> {
    Study(&'a Plan),
    Ask {
        trial: u64,
        params: Point<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        told: Option<u64>,
        at: u64,
    },
    Tell(&'a Tell),
    Repeat(&'a Repeat),
    Resume(&'a Resume),
    Stop(&'a Stop),
}

/// Reads the events of the journal at `path`, in order, with their line numbers, and returns the
/// length of what is whole; a torn last line is left out.
pub fn read(path: &Path, mut each: impl FnMut(u64, Event) -> Result<()>) -> Result<u64> {
    let refuse = |error: io::Error| Error::system("read", path, error);
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path).map_err(refuse)?);
    let (mut line, mut number, mut length) = (Vec::new(), 0, 0);
    loop {
        line.clear();
        let count = reader.read_until(b'\n', &mut line).map_err(refuse)?;
        if line.last() != Some(&b'\n') {
            return Ok(length);
        }
        number += 1;
        let event = serde_json::from_slice(&line).map_err(|error| damaged(path, number, error))?;
        if (number == 1) != matches!(event, Event::Study(_)) {
            let what = "the study's settings are in the first line, and only there";
            return Err(damaged(path, number, what));
        }
        each(number, event)?;
        length += count as u64;
    }
}

/// The error of a line that cannot be right.
pub(crate) fn damaged(path: &Path, line: u64, what: impl std::fmt::Display) -> Error {
    Error::journal(format!("line {line} of {} is damaged: {what}", path.display()))
}

/// The plan in the first line of the journal at `path`; `None` if there is no journal, or nothing
/// whole in it.
pub(crate) fn plan(path: &Path) -> Result<Option<Plan>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::system("read", path, error)),
    };
    let mut line = Vec::new();
    BufReader::new(file)
        .read_until(b'\n', &mut line)
        .map_err(|error| Error::system("read", path, error))?;
    if line.last() != Some(&b'\n') {
        return Ok(None);
    }
    match serde_json::from_slice(&line) {
        Ok(Event::Study(plan)) => Ok(Some(*plan)),
        Ok(_) => Err(damaged(path, 1, "it does not hold the study's settings")),
        Err(error) => Err(damaged(path, 1, error)),
    }
}

/// A journal open for writing.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    /// The length of what is whole.
    length: u64,
    buffer: Vec<u8>,
    sync: Sync,
    syncer: Option<Syncer>,
}

impl Journal {
    /// Opens the journal at `path`, of which `length` bytes are whole; the rest is cut off.
    pub(crate) fn open(path: &Path, length: u64, sync: Sync) -> Result<Journal> {
        let refuse = |error: io::Error| Error::system("write", path, error);
        let file = OpenOptions::new().append(true).create(true).open(path).map_err(refuse)?;
        if file.metadata().map_err(refuse)?.len() != length {
            file.set_len(length).and_then(|()| file.sync_data()).map_err(refuse)?;
        }
        if length == 0 {
            // A new file survives a power cut once its folder is on disk.
            let folder = path.parent().unwrap_or(Path::new("."));
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(refuse)?;
        }
        let syncer = match sync {
            Sync::Always => None,
            Sync::Periodic => Some(Syncer::start(file.try_clone().map_err(refuse)?)),
        };
        let (path, buffer) = (path.to_path_buf(), Vec::new());
        Ok(Journal { path, file, length, buffer, sync, syncer })
    }

    /// Appends a line. What it says counts once this returns.
    pub(crate) fn append(&mut self, entry: &Entry<'_>) -> Result<()> {
        self.buffer.clear();
        let failure = self.syncer.as_ref().and_then(Syncer::failure);
        let written = failure.map_or(Ok(()), Err).and_then(|()| {
            serde_json::to_writer(&mut self.buffer, entry)?;
            self.buffer.push(b'\n');
            self.file.write_all(&self.buffer)?;
            if self.sync == Sync::Always { self.file.sync_data() } else { Ok(()) }
        });
        match written {
            Ok(()) => {
                self.length += self.buffer.len() as u64;
                if let Some(syncer) = &self.syncer {
                    syncer.wake();
                }
                Ok(())
            }
            Err(error) => {
                // Half a line would be repaired by the next process; better not to leave it.
                let _ = self.file.set_len(self.length);
                Err(self.refused(error))
            }
        }
    }

    /// Forces all lines to disk.
    pub(crate) fn flush(&self) -> Result<()> {
        self.file.sync_data().map_err(|error| self.refused(error))
    }

    fn refused(&self, error: io::Error) -> Error {
        let message = format!(
            "cannot write the journal {}: {error}. What was done before is in it; once there is room, \
             run the same command again to resume",
            self.path.display()
        );
        Error::new(ErrorKind::System, message)
    }
}

/// A thread that forces the journal to disk soon after it is written to.
#[derive(Debug)]
struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    is_dirty: AtomicBool,
    is_closed: AtomicBool,
    failure: Mutex<Option<io::Error>>,
}

impl Syncer {
    fn start(file: File) -> Syncer {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            loop {
                let is_last = theirs.is_closed.load(Ordering::Acquire);
                if theirs.is_dirty.swap(false, Ordering::AcqRel)
                    && let Err(error) = file.sync_data()
                    && let Ok(mut failure) = theirs.failure.lock()
                {
                    *failure = Some(error);
                }
                if is_last {
                    return;
                }
                std::thread::park_timeout(SYNC_EVERY);
            }
        });
        Syncer { shared, thread: Some(thread) }
    }

    /// Says that there is something to sync.
    fn wake(&self) {
        self.shared.is_dirty.store(true, Ordering::Release);
    }

    fn failure(&self) -> Option<io::Error> {
        self.shared.failure.lock().ok()?.take()
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::FailureKind;

    fn tell(trial: u64) -> Tell {
        Tell {
            trial,
            outcome: Outcome::failure(FailureKind::Exit, "exit code 3"),
            attempts: 1,
            seconds: 0.5,
            worker: 0,
            values: Vec::new(),
            at: 7,
            stderr: Some("oh".to_string()),
        }
    }

    fn trials(path: &Path) -> Result<(Vec<u64>, u64)> {
        let mut trials = Vec::new();
        let length = read(path, |_, event| {
            if let Event::Tell(tell) = event {
                trials.push(tell.trial);
            }
            Ok(())
        })?;
        Ok((trials, length))
    }

    fn journal(folder: &Path, sync: Sync) -> PathBuf {
        let path = folder.join(FILE);
        let mut journal = Journal::open(&path, 0, sync).unwrap();
        journal.append(&Entry::Study(&plan_of_one())).unwrap();
        for trial in 0..3 {
            journal.append(&Entry::Tell(&tell(trial))).unwrap();
        }
        path
    }

    fn plan_of_one() -> Plan {
        let settings = crate::Settings::parse("parameters = ['x=0:1']").unwrap();
        Plan { started: 7, ..Plan::new(&settings, Path::new("/base"), None).unwrap() }
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        for sync in [Sync::Always, Sync::Periodic] {
            let path = folder.path().join(FILE);
            let _ = std::fs::remove_file(&path);
            let path = journal(path.parent().unwrap(), sync);
            assert_eq!(trials(&path).unwrap().0, [0, 1, 2]);
            assert_eq!(plan(&path).unwrap(), Some(plan_of_one()));
        }
    }

    #[test]
    fn a_torn_last_line_is_cut_off_wherever_it_is_torn() {
        let folder = tempfile::tempdir().unwrap();
        let path = journal(folder.path(), Sync::Always);
        let whole = std::fs::read(&path).unwrap();
        let last = whole[..whole.len() - 1].iter().rposition(|&b| b == b'\n').unwrap() + 1;
        for cut in last..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let (seen, length) = trials(&path).unwrap();
            assert_eq!((seen.len(), length), (2, last as u64));
            let mut journal = Journal::open(&path, length, Sync::Always).unwrap();
            journal.append(&Entry::Tell(&tell(2))).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), whole);
        }
        std::fs::write(&path, &whole[..20]).unwrap();
        assert_eq!(plan(&path).unwrap(), None);
    }

    #[test]
    fn a_damaged_line_is_reported_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = journal(folder.path(), Sync::Always);
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, whole.replacen("\"trial\":1", "\"trial\":x", 1)).unwrap();
        let error = trials(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Journal);
        assert!(error.to_string().starts_with("line 3 of "), "{error}");
        std::fs::write(&path, format!("{whole}{whole}")).unwrap();
        assert!(trials(&path).unwrap_err().to_string().starts_with("line 5 of "));
        std::fs::write(&path, "{\"stop\":{\"reason\":\"x\"}}\n").unwrap();
        assert!(plan(&path).is_err() && trials(&path).is_err());
    }
}
