//! One run of an external program, in a process group of its own (on Windows, a job): its output is read as
//! it comes, a time or memory limit ends the whole group, and nothing of the group is left behind.

use crate::platform::{self, Program};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How much of standard output is kept: its end.
const STDOUT_KEPT: usize = 1 << 20;
/// How much of standard error is kept: its end.
const STDERR_KEPT: usize = 1 << 14;
/// How much of a result file is read: its end.
const FILE_KEPT: usize = 1 << 24;
/// The time between asking a group to end and killing it.
const GRACE: Duration = Duration::from_secs(2);
/// How often a run looks at its memory, and at whether it is to stop.
const WATCH: Duration = Duration::from_millis(50);
/// How long a run is left alone at first. A program that ends sooner wakes its watcher once, at its
/// end; one that prints more than a pipe holds waits so long, once.
const GLANCE: Duration = Duration::from_millis(4);
/// A watcher that wakes so much later than it wanted was paused, by Ctrl-Z say.
const PAUSE: Duration = Duration::from_millis(250);

/// A program to run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Invocation {
    /// The program and its arguments.
    pub arguments: Vec<String>,
    /// Variables added to the environment.
    pub environment: Vec<(String, String)>,
    /// What it reads on standard input.
    pub input: Option<String>,
    /// The folder that it runs in; this process's own if not given.
    pub folder: Option<PathBuf>,
}

/// What a run may take.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// The longest time.
    pub time: Option<Duration>,
    /// The most resident memory of the whole group, in bytes.
    pub memory: Option<u64>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// With an exit code; 0 is success.
    Exit(i32),
    /// By a signal.
    Signal(i32),
    /// It took too long.
    Timeout,
    /// It took too much memory.
    Memory,
    /// It could not be started, for this reason.
    NotStarted(String),
    /// It was stopped on request.
    Stopped,
}

/// A run that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// Its standard output.
    pub stdout: Captured,
    /// Its standard error.
    pub stderr: Captured,
    /// The time from start to end.
    pub elapsed: Duration,
    /// Whether it, or this process, was paused meanwhile, so that `elapsed` says little. Pauses of less
    /// than 250 ms may go unnoticed.
    pub is_paused: bool,
}

/// What a program wrote, or its end.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Captured {
    /// The text.
    pub text: String,
    /// Whether there was more before it.
    pub is_cut: bool,
}

/// Runs a program to its end. When `stop` becomes true, the run is ended at once. The error is the host's
/// shortage of descriptors, processes or memory, for which the program is not to blame.
pub fn run(invocation: &Invocation, limits: Limits, stop: &AtomicBool) -> io::Result<Finished> {
    let start = Instant::now();
    let mut running = match Running::start(invocation) {
        Ok(running) => running,
        Err(error) if platform::is_shortage(&error) => return Err(error),
        Err(error) => {
            let program = invocation.arguments.first().map_or("", String::as_str);
            return Ok(Finished {
                ending: Ending::NotStarted(format!("`{program}`: {error}")),
                stdout: Captured::default(),
                stderr: Captured::default(),
                elapsed: start.elapsed(),
                is_paused: false,
            });
        }
    };
    let (ending, elapsed) = running.watch(start, limits, stop);
    let ending = running.reap(ending);
    let Running { stdout, stderr, .. } = running;
    let is_paused = !running.paused.is_zero() || running.is_continued;
    Ok(Finished {
        ending,
        stdout: stdout.captured(),
        stderr: stderr.captured(),
        elapsed,
        is_paused,
    })
}

/// The end of a file that a program wrote. Only a regular file is read: others may have no end, or keep
/// their reader waiting.
pub(crate) fn read_file(path: &Path) -> io::Result<Captured> {
    let mut file = platform::open_without_waiting(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut tail = Tail::new(FILE_KEPT);
    let from = metadata.len().saturating_sub(FILE_KEPT as u64);
    tail.is_cut = from > 0;
    file.seek(SeekFrom::Start(from))?;
    file.take(FILE_KEPT as u64).read_to_end(&mut tail.bytes)?;
    Ok(tail.captured())
}

/// A variable by which the processes of one run are known.
#[derive(Debug)]
pub(crate) struct Mark(u64);

impl Mark {
    pub(crate) const NAME: &str = "_RACECARS_RUN";

    pub(crate) fn new() -> Mark {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Mark(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn value(&self) -> String {
        format!("{}-{}", std::process::id(), self.0)
    }
}

struct Running {
    program: Program,
    stdout: Tail,
    stderr: Tail,
    mark: Mark,
    /// For how long this thread was kept from watching.
    paused: Duration,
    /// Whether the program was stopped by a signal, and went on.
    is_continued: bool,
}

impl Running {
    fn start(invocation: &Invocation) -> io::Result<Running> {
        let Some((program, arguments)) = invocation.arguments.split_first() else {
            return Err(io::Error::new(ErrorKind::InvalidInput, "no program is given"));
        };
        let mut command = Command::new(program);
        let mark = Mark::new();
        command
            .args(arguments)
            .env(Mark::NAME, mark.value())
            .envs(invocation.environment.iter().map(|(name, value)| (name, value)))
            .stdin(if invocation.input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(folder) = &invocation.folder {
            command.current_dir(folder);
        }
        let input = invocation.input.clone().unwrap_or_default().into_bytes();
        Ok(Running {
            program: Program::start(command, input)?,
            stdout: Tail::new(STDOUT_KEPT),
            stderr: Tail::new(STDERR_KEPT),
            mark,
            paused: Duration::ZERO,
            is_continued: false,
        })
    }

    /// Feeds and reads the program until it ends; `Some` is why it was made to. Also the time that it took.
    fn watch(
        &mut self,
        start: Instant,
        limits: Limits,
        stop: &AtomicBool,
    ) -> (Option<Ending>, Duration) {
        let mut why: Option<(Ending, Instant)> = None;
        let mut is_killed = false;
        let mut looked = start;
        self.program.feed();
        let glance = limits.time.map_or(GLANCE, |limit| limit.min(GLANCE));
        // Reckoned from the start: it may run before this thread does again.
        let mut due = start + glance;
        let mut has_ended = self.program.wait_for_end(glance);
        loop {
            // One look at the clock for all, so that no pause falls between two of them.
            let now = Instant::now();
            let late = now.saturating_duration_since(due);
            if late >= PAUSE {
                self.paused += late;
            }
            if has_ended {
                return (why.map(|(ending, _)| ending), now - start);
            }
            if let Some((_, since)) = &why {
                let is_impatient = stop.load(Ordering::Relaxed) || since.elapsed() >= GRACE;
                if !is_killed && is_impatient {
                    self.program.kill();
                    is_killed = true;
                }
            } else {
                // A flood of output wakes this loop often; looking at memory takes time.
                let is_due = looked.elapsed() >= WATCH / 2;
                if is_due {
                    looked = Instant::now();
                    self.is_continued |= self.program.has_gone_on();
                }
                why = (self.overstep(start, limits, is_due, stop))
                    .map(|ending| (ending, Instant::now()));
                match &why {
                    Some((Ending::Stopped | Ending::Memory, _)) => {
                        self.program.kill();
                        is_killed = true;
                    }
                    Some(_) => self.program.terminate(),
                    None => {}
                }
            }
            let left = match (&why, limits.time) {
                (None, Some(limit)) => limit.saturating_sub(self.watched(start)),
                _ => WATCH,
            };
            let left = left.clamp(Duration::from_millis(1), WATCH);
            due = now + left;
            has_ended = self.program.wait(left);
            self.program.feed();
            self.program.read(&mut self.stdout, &mut self.stderr);
        }
    }

    /// The time since `start` without that in which this thread was paused. A program may have been
    /// paused with it, so that only this counts against its limit.
    fn watched(&self, start: Instant) -> Duration {
        start.elapsed().saturating_sub(self.paused)
    }

    /// Whether a limit is overstepped, or the run is to stop.
    fn overstep(
        &self,
        start: Instant,
        limits: Limits,
        looks_at_memory: bool,
        stop: &AtomicBool,
    ) -> Option<Ending> {
        if stop.load(Ordering::Relaxed) {
            return Some(Ending::Stopped);
        }
        if limits.time.is_some_and(|limit| self.watched(start) >= limit) {
            return Some(Ending::Timeout);
        }
        let limit = limits.memory.filter(|_| looks_at_memory)?;
        (self.program.memory() > limit).then_some(Ending::Memory)
    }

    /// Ends what is left of the program, its group and its orphans.
    fn reap(&mut self, why: Option<Ending>) -> Ending {
        let status = self.program.reap(&mut self.stdout, &mut self.stderr);
        platform::end_orphans(Some(&self.mark));
        match (why, status) {
            (Some(ending), _) | (None, Ok(ending)) => ending,
            (None, Err(error)) => Ending::NotStarted(error.to_string()),
        }
    }
}

/// The end of a stream of bytes.
pub(crate) struct Tail {
    bytes: Vec<u8>,
    kept: usize,
    is_cut: bool,
}

impl Tail {
    fn new(kept: usize) -> Self {
        Tail { bytes: Vec::new(), kept, is_cut: false }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > 2 * self.kept {
            self.bytes.drain(..self.bytes.len() - self.kept);
            self.is_cut = true;
        }
    }

    /// Reads what there is, or a good part of a flood; false at the end of the stream.
    #[cfg(unix)]
    pub(crate) fn fill(&mut self, stream: &mut impl Read) -> bool {
        let mut buffer = [0; 16384];
        for _ in 0..64 {
            match stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(count) => self.push(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        true
    }

    fn captured(self) -> Captured {
        let from = self.bytes.len().saturating_sub(self.kept);
        let is_cut = self.is_cut || from > 0;
        let mut kept = &self.bytes[from..];
        if is_cut {
            // What is left of the first word may look like a whole one.
            let blank = kept.iter().position(u8::is_ascii_whitespace);
            kept = &kept[blank.unwrap_or(kept.len())..];
        }
        Captured { text: String::from_utf8_lossy(kept).into_owned(), is_cut }
    }
}
