//! The journal: what happened to a study, one JSON object per line, only ever appended to.
//!
//! The first line is the [`Plan`]; then come the events, in the order in which they happened. A line
//! is written in one go before what it says counts, and forced to disk at least every 100 ms. So
//! a process that is killed loses nothing, and a machine that goes down at most the last 100 ms.
//! A last line without its end is what a full disk or a power cut leaves; it never counted, and is
//! cut off. Every line ends with a checksum of the journal so far; lines of format 1 have none.

mod lines;

pub(crate) use lines::{End, Flaw, Lines};

use crate::error::{Error, ErrorKind, Result};
use crate::outcome::Outcome;
use crate::plan::{Plan, Sync};
use crate::platform::{self, descriptor, identity};
use crate::point::NamedPoint;
use racecars::{Point, StopReason};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The journal's name within the study's folder.
pub const FILE: &str = "journal.jsonl";
/// Half the time within which lines are on disk, since syncing takes time as well.
const SYNC_EVERY: Duration = Duration::from_millis(50);

/// Refuses to write what was made of a study over a journal or its lock.
pub fn check_output(path: &Path) -> Result<()> {
    let is_lock = path.ends_with("lock") && path.with_file_name(FILE).exists();
    // An export as JSON begins like a journal, but its first line is not one.
    let is_journal =
        path.is_file() && (path.ends_with(FILE) || matches!(Lines::open(path), Ok(Some(_))));
    if is_lock || is_journal {
        let what = if is_lock { "a study's lock" } else { "a study's journal" };
        return Err(Error::setting(format!("{} is {what}; write to another file", path.display())));
    }
    Ok(())
}

/// A line of the journal after the first, as it is read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Event<'a> {
    /// A point was proposed.
    #[serde(borrow)]
    Ask(Ask<&'a RawValue>),
    /// A repetition of a trial ended, and others are to come.
    Part(Part),
    /// Its outcome was told.
    Tell(Tell),
    /// A leading point was evaluated again.
    Repeat(Repeat),
    /// The outcome of a point was told that was not proposed.
    Known(KnownTold),
    /// A process resumed the study.
    Resume(Resume),
    /// A run ended.
    Stop(Stop),
}

/// A point was proposed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask<Params> {
    /// Its number: 0, 1, 2, ...
    pub trial: u64,
    /// The values by name.
    pub params: Params,
    /// In deterministic mode: how many outcomes the optimizer knew by then. Lines are written as
    /// evaluations end, but told in the order asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<u64>,
    /// When, in milliseconds since 1970.
    #[serde(default)]
    pub at: u64,
}

/// A repetition of a trial ended, and others are to come: it is not run again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The trial.
    pub trial: u64,
    /// Which repetition, from 0.
    pub number: u64,
    /// A value or a violation; a failure ends the trial.
    pub outcome: Outcome,
    /// How often the program was started.
    pub attempts: u32,
    /// How long it ran.
    pub seconds: f64,
    /// Which worker ran it.
    pub worker: usize,
    /// When, in milliseconds since 1970.
    pub at: u64,
}

/// The outcome of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
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

/// The outcome of a point was told that was not proposed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownTold {
    /// The values by name.
    pub params: NamedPoint,
    /// Its outcome, in the user's sense.
    pub outcome: Outcome,
    /// In deterministic mode: how many outcomes the optimizer knew by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<u64>,
    /// When, in milliseconds since 1970.
    #[serde(default)]
    pub at: u64,
}

/// A process resumed the study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
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
    Ask(Ask<Point<'a>>),
    Part(&'a Part),
    Tell(&'a Tell),
    Repeat(&'a Repeat),
    Known(&'a KnownTold),
    Resume(&'a Resume),
    Stop(&'a Stop),
}

/// Reads the events of the journal at `path`, in order, with their line numbers; a torn last line is left
/// out, and any other damage is an error.
pub fn read(path: &Path, mut each: impl FnMut(u64, Event<'_>) -> Result<()>) -> Result<()> {
    match Lines::open(path)? {
        Some(mut lines) => lines.read(|number, event| each(number, event?)),
        None => Ok(()),
    }
}

/// A journal open for writing.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    identity: (u64, u64),
    end: End,
    buffer: Vec<u8>,
    sync: Sync,
    syncer: Option<Syncer>,
}

impl Journal {
    /// The journal at `path`, open as `file`, whose whole lines end at `end`; the rest is cut off.
    pub(crate) fn open(path: &Path, file: File, end: End, sync: Sync) -> Result<Journal> {
        let refuse = |error: io::Error| Error::system("write", path, error);
        let metadata = file.metadata().map_err(refuse)?;
        if metadata.len() != end.length {
            platform::cut(&file, path, end.length)
                .and_then(|()| file.sync_data())
                .map_err(refuse)?;
        }
        if end.length == 0 {
            // A new file survives a power cut once its folder is on disk.
            let folder = path.parent().unwrap_or(Path::new("."));
            platform::sync_folder(folder).map_err(refuse)?;
        }
        let syncer = match sync {
            Sync::Always => None,
            Sync::Periodic => {
                let file = file.try_clone().map_err(refuse)?;
                Some(Syncer::start(file).map_err(refuse)?)
            }
        };
        let (path, identity) = (path.to_path_buf(), identity(&metadata));
        Ok(Journal { path, file, identity, end, buffer: Vec::new(), sync, syncer })
    }

    /// Appends a line. What it says counts once this returns.
    pub(crate) fn append(&mut self, entry: &Entry<'_>) -> Result<()> {
        self.check_in_place()?;
        self.buffer.clear();
        let mut end = self.end;
        let failure = self.syncer.as_ref().and_then(Syncer::failure);
        let written = failure.map_or(Ok(()), Err).and_then(|()| {
            serde_json::to_writer(&mut self.buffer, entry)?;
            end.seal(&mut self.buffer);
            self.file.write_all(&self.buffer)?;
            if self.sync == Sync::Always { self.file.sync_data() } else { Ok(()) }
        });
        match written {
            Ok(()) => {
                self.end = end;
                if let Some(syncer) = &self.syncer {
                    syncer.wake();
                }
                Ok(())
            }
            Err(error) => {
                // Half a line would be repaired by the next process; better not to leave it.
                let _ = platform::cut(&self.file, &self.path, self.end.length);
                Err(self.refused(error))
            }
        }
    }

    /// Refuses to write on where nobody would find it, or after what somebody else wrote.
    fn check_in_place(&self) -> Result<()> {
        let is_elsewhere = match std::fs::metadata(&self.path) {
            Ok(found) if identity(&found) == self.identity => {
                if found.len() == self.end.length {
                    return Ok(());
                }
                return Err(Error::journal(format!(
                    "the journal {} was changed by somebody else: it has {} bytes, and this run wrote {}",
                    self.path.display(),
                    found.len(),
                    self.end.length
                )));
            }
            Ok(_) => "replaced by another file",
            Err(error) if error.kind() == io::ErrorKind::NotFound => "deleted or moved",
            Err(error) => return Err(self.refused(error)),
        };
        let copy = match self.rescue() {
            Ok(copy) => {
                format!("A copy of it is {}; put it back as {FILE} to resume", copy.display())
            }
            Err(error) => format!("A copy of it could not be written: {error}"),
        };
        let path = self.path.display();
        Err(Error::journal(format!("the journal {path} was {is_elsewhere} during the run. {copy}")))
    }

    /// Copies what was written, which is still open here, to a file of its own.
    fn rescue(&self) -> io::Result<PathBuf> {
        let path = free_name(self.path.parent().unwrap_or(Path::new(".")));
        let mut file = &self.file;
        file.rewind()?;
        let mut copy = File::create_new(&path)?;
        io::copy(&mut file, &mut copy)?;
        copy.sync_data()?;
        Ok(path)
    }

    /// The open files.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = i32> {
        let syncer = self.syncer.as_ref().and_then(|syncer| syncer.descriptor);
        descriptor(&self.file).into_iter().chain(syncer)
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

/// The path of a journal that is put aside in `folder`: the first free one.
pub(crate) fn free_name(folder: &Path) -> PathBuf {
    let mut number = 1;
    loop {
        let path = folder.join(format!("journal-{number}.jsonl"));
        if !path.exists() {
            return path;
        }
        number += 1;
    }
}

/// A thread that forces the journal to disk soon after it is written to.
#[derive(Debug)]
struct Syncer {
    shared: Arc<Shared>,
    /// Of the file, which the thread has.
    descriptor: Option<i32>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    is_dirty: AtomicBool,
    is_closed: AtomicBool,
    failure: Mutex<Option<io::Error>>,
}

impl Syncer {
    fn start(file: File) -> io::Result<Syncer> {
        let shared = Arc::new(Shared::default());
        let (theirs, descriptor) = (Arc::clone(&shared), descriptor(&file));
        let thread = std::thread::Builder::new().spawn(move || {
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
        })?;
        Ok(Syncer { shared, descriptor, thread: Some(thread) })
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

    fn open(path: &Path, end: End, sync: Sync) -> Journal {
        let file = File::options().read(true).append(true).create(true).open(path).unwrap();
        Journal::open(path, file, end, sync).unwrap()
    }

    fn trials(path: &Path) -> Result<(Vec<u64>, End)> {
        let mut trials = Vec::new();
        let mut lines = Lines::open(path)?.unwrap();
        lines.read(|_, event| -> Result<()> {
            if let Event::Tell(tell) = event? {
                trials.push(tell.trial);
            }
            Ok(())
        })?;
        Ok((trials, lines.end()))
    }

    fn journal(folder: &Path, sync: Sync) -> PathBuf {
        let path = folder.join(FILE);
        let mut journal = open(&path, End::default(), sync);
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
            let _ = std::fs::remove_file(folder.path().join(FILE));
            let path = journal(folder.path(), sync);
            assert_eq!(trials(&path).unwrap().0, [0, 1, 2]);
            assert_eq!(Lines::open(&path).unwrap().unwrap().plan(), &plan_of_one());
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
            let (seen, end) = trials(&path).unwrap();
            assert_eq!((seen.len(), end.length), (2, last as u64));
            open(&path, end, Sync::Always).append(&Entry::Tell(&tell(2))).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), whole);
        }
        for cut in 0..30 {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert!(Lines::open(&path).unwrap().is_none());
        }
    }

    #[test]
    fn every_flipped_bit_of_every_line_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = journal(folder.path(), Sync::Always);
        let whole = std::fs::read(&path).unwrap();
        let line_of = |at: usize| 1 + whole[..at].iter().filter(|&&byte| byte == b'\n').count();
        for bit in 0..8 * (whole.len() - 1) {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &damaged).unwrap();
            let error = trials(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Journal);
            let (message, line) = (error.to_string(), line_of(bit / 8));
            let is_named = message.starts_with(&format!("line {line} of "));
            assert!(is_named || message.contains("is not the journal of a study"), "{message}");
        }
    }

    #[test]
    fn a_line_that_is_lost_repeated_or_moved_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = journal(folder.path(), Sync::Always);
        let whole = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        for (order, line) in [
            (&[0, 2, 3][..], 2),
            (&[0, 1, 3], 3),
            (&[0, 1, 1, 2, 3], 3),
            (&[0, 2, 1, 3], 2),
            (&[0, 1, 2, 3, 0], 5),
        ] {
            let text: String = order.iter().map(|&i| format!("{}\n", lines[i])).collect();
            std::fs::write(&path, text).unwrap();
            let error = trials(&path).unwrap_err().to_string();
            assert!(error.starts_with(&format!("line {line} of ")), "{error}");
            assert!(error.contains(&format!("head -n {}", line - 1)), "{error}");
        }
    }

    #[test]
    fn lines_without_a_checksum_are_read_where_the_first_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = journal(folder.path(), Sync::Always);
        let whole = std::fs::read_to_string(&path).unwrap();
        let bare = |line: &str| format!("{}}}\n", &line[..line.rfind(",\"crc\"").unwrap()]);
        let old: String = whole.lines().map(bare).collect::<String>().replacen(":2,", ":1,", 1);
        std::fs::write(&path, &old).unwrap();
        let (seen, end) = trials(&path).unwrap();
        assert_eq!(seen, [0, 1, 2]);
        // What is added has one.
        open(&path, end, Sync::Always).append(&Entry::Tell(&tell(3))).unwrap();
        assert_eq!(trials(&path).unwrap().0, [0, 1, 2, 3]);
        let mixed = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, mixed.replacen("\"trial\":3", "\"trial\":4", 1)).unwrap();
        assert!(trials(&path).unwrap_err().to_string().contains("line 5 of"));
        let second = whole.lines().nth(1).unwrap();
        for wrong in [
            whole.replacen(second, bare(second).trim_end(), 1),
            whole.lines().map(bare).collect::<String>(),
        ] {
            std::fs::write(&path, wrong).unwrap();
            assert!(trials(&path).unwrap_err().to_string().contains("it has no checksum"));
        }
    }

    #[test]
    fn what_this_version_does_not_understand_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let first = "{\"study\":{\"version\":1,\"space\":{\"coordinates\":[{\"name\":\"x\",\"type\":\"real\",\
                     \"low\":0,\"high\":1}]}}}";
        let error = |text: String| {
            std::fs::write(&path, &text).unwrap();
            let error = trials(&path).unwrap_err().to_string();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            error
        };
        let add = |key: &str| first.replace("\"version\":1", key);
        assert!(error(add("\"version\":9") + "\n").contains("is of format 9, of a later version"));
        let unknown = error(add("\"version\":1,\"magic\":2") + "\n");
        assert!(unknown.contains("line 1 of") && unknown.contains("unknown field `magic`"));
        for time in ["-1", "1e300", "\"soon\""] {
            for key in ["timeout", "time_limit"] {
                let message = error(add(&format!("\"version\":1,\"{key}\":{time}")) + "\n");
                assert!(message.contains("is not a positive time"), "{message}");
            }
        }
        for line in [
            "{\"party\":{\"at\":3}}",
            "{\"stop\":{\"reason\":\"evaluations\",\"mood\":1}}",
            "{\"tell\":{\"trial\":0,\"outcome\":{\"value\":1,\"weight\":2}}}",
            first,
        ] {
            let message = error(format!("{first}\n{line}\n"));
            assert!(
                message.starts_with("line 2 of ") && message.contains("understands"),
                "{message}"
            );
        }
        for foreign in ["my notes", "my notes\n", "[1]\n", "{\"studies\":1}", "\n"] {
            let message = error(foreign.to_string());
            assert!(message.contains("is not the journal of a study, and is left as it is"));
        }
    }

    #[test]
    fn a_journal_that_is_deleted_replaced_or_changed_is_not_written_on() {
        for (change, what) in [
            ("deleted", "was deleted or moved during the run"),
            ("replaced", "was replaced by another file during the run"),
            ("changed", "was changed by somebody else"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = journal(folder.path(), Sync::Always);
            let whole = std::fs::read(&path).unwrap();
            let mut writer = open(&path, trials(&path).unwrap().1, Sync::Always);
            match change {
                "deleted" => std::fs::remove_file(&path).unwrap(),
                "replaced" => {
                    std::fs::write(folder.path().join("other"), &whole).unwrap();
                    std::fs::rename(folder.path().join("other"), &path).unwrap();
                }
                _ => File::options().append(true).open(&path).unwrap().write_all(b"!").unwrap(),
            }
            let error = writer.append(&Entry::Tell(&tell(3))).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Journal);
            assert!(error.to_string().contains(what), "{error}");
            if change != "changed" {
                let copy = std::fs::read(folder.path().join("journal-1.jsonl")).unwrap();
                assert_eq!(copy, whole);
            }
        }
    }

    /// `cargo test --release -p racecars-study journal::tests::what_a_line_costs -- --ignored --nocapture`
    #[test]
    #[ignore = "a measurement"]
    fn what_a_line_costs() {
        const LINES: u32 = 100_000;
        let folder = tempfile::tempdir().unwrap();
        let mut journal = open(
            &journal(folder.path(), Sync::Periodic).with_file_name("other"),
            End::default(),
            Sync::Periodic,
        );
        let (tell, start) = (tell(1), std::time::Instant::now());
        for _ in 0..LINES {
            journal.append(&Entry::Tell(&tell)).unwrap();
        }
        let whole = start.elapsed() / LINES;
        let timed = |each: &mut dyn FnMut()| {
            let start = std::time::Instant::now();
            (0..LINES).for_each(|_| each());
            start.elapsed() / LINES
        };
        let (line, mut end, mut buffer) =
            (serde_json::to_vec(&tell).unwrap(), End::default(), Vec::new());
        let checksum = timed(&mut || {
            buffer.clear();
            buffer.extend_from_slice(&line);
            end.seal(&mut buffer);
        });
        let in_place = timed(&mut || journal.check_in_place().unwrap());
        let bytes = buffer.len();
        println!(
            "a line of {bytes} bytes: {whole:?}, of which checksum {checksum:?}, place {in_place:?}"
        );
    }
}
