//! One run of an external program, in a process group of its own: its output is read as it comes, a
//! time or memory limit ends the whole group, and nothing of the group is left behind.

use crate::orphans::{self, Mark};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
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
/// [shortage](is_shortage), for which the program is not to blame.
pub fn run(invocation: &Invocation, limits: Limits, stop: &AtomicBool) -> io::Result<Finished> {
    let start = Instant::now();
    let mut running = match Running::start(invocation) {
        Ok(running) => running,
        Err(error) if is_shortage(&error) => return Err(error),
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

/// Whether the host is short of descriptors, processes or memory.
pub fn is_shortage(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| {
        [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM].contains(&errno)
    })
}

/// The end of a file that a program wrote. Only a regular file is read: others may have no end, or keep
/// their reader waiting.
pub(crate) fn read_file(path: &Path) -> io::Result<Captured> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
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

struct Running {
    child: Child,
    group: Option<Pid>,
    /// Becomes readable when the child has ended.
    ended: Option<rustix::fd::OwnedFd>,
    input: Vec<u8>,
    written: usize,
    stdout: Tail,
    stderr: Tail,
    mark: Mark,
    /// For how long this thread was kept from watching.
    paused: Duration,
    /// Whether the child was stopped by a signal, and went on.
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
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(folder) = &invocation.folder {
            command.current_dir(folder);
        }
        let mut child = spawn(&mut command)?;
        for (pipe, _) in pipes(&child) {
            // A pipe of our own has no other flags to keep.
            fcntl_setfl(pipe, OFlags::NONBLOCK)?;
        }
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let ended = match group.map(|pid| (pid, pidfd_open(pid, PidfdFlags::empty()))) {
            Some((_, Ok(ended))) => Some(ended),
            Some((pid, Err(error))) if is_shortage(&error.into()) => {
                let _ = kill_process_group(pid, Signal::KILL);
                child.wait()?;
                return Err(error.into());
            }
            _ => None,
        };
        let input = invocation.input.clone().unwrap_or_default().into_bytes();
        let (stdout, stderr) = (Tail::new(STDOUT_KEPT), Tail::new(STDERR_KEPT));
        Ok(Running {
            child,
            group,
            ended,
            input,
            written: 0,
            stdout,
            stderr,
            mark,
            paused: Duration::ZERO,
            is_continued: false,
        })
    }

    /// Feeds and reads the child until it ends; `Some` is why it was made to. Also the time that it took.
    fn watch(
        &mut self,
        start: Instant,
        limits: Limits,
        stop: &AtomicBool,
    ) -> (Option<Ending>, Duration) {
        let mut why: Option<(Ending, Instant)> = None;
        let mut is_killed = false;
        let mut looked = start;
        self.feed();
        let glance = limits.time.map_or(GLANCE, |limit| limit.min(GLANCE));
        // Reckoned from the start: it may run before this thread does again.
        let mut due = start + glance;
        let mut has_ended = self.has_ended(glance);
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
                    self.signal(Signal::KILL);
                    is_killed = true;
                }
            } else {
                // A flood of output wakes this loop often; looking at memory takes time.
                let is_due = looked.elapsed() >= WATCH / 2;
                if is_due {
                    looked = Instant::now();
                    self.is_continued |= self.has_gone_on();
                }
                why = (self.overstep(start, limits, is_due, stop))
                    .map(|ending| (ending, Instant::now()));
                match &why {
                    Some((Ending::Stopped | Ending::Memory, _)) => {
                        self.signal(Signal::KILL);
                        is_killed = true;
                    }
                    Some(_) => self.signal(Signal::TERM),
                    None => {}
                }
            }
            let left = match (&why, limits.time) {
                (None, Some(limit)) => limit.saturating_sub(self.watched(start)),
                _ => WATCH,
            };
            let left = left.clamp(Duration::from_millis(1), WATCH);
            due = now + left;
            has_ended = self.wait(left);
        }
    }

    /// The time since `start` without that in which this thread was paused. A program may have been
    /// paused with it, so that only this counts against its limit.
    fn watched(&self, start: Instant) -> Duration {
        start.elapsed().saturating_sub(self.paused)
    }

    /// Whether the child was stopped and goes on since the last look.
    fn has_gone_on(&self) -> bool {
        let options = WaitIdOptions::CONTINUED | WaitIdOptions::NOHANG;
        (self.group).is_some_and(|child| matches!(waitid(WaitId::Pid(child), options), Ok(Some(_))))
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
        let (limit, group) = (limits.memory.filter(|_| looks_at_memory)?, self.group?);
        (memory_of_group(group) > limit).then_some(Ending::Memory)
    }

    /// Waits until something can be read or written, the child ends, or `longest` has passed. Whether
    /// the child is known to have ended.
    fn wait(&mut self, longest: Duration) -> bool {
        let timeout = Timespec { tv_sec: 0, tv_nsec: longest.subsec_nanos().into() };
        let has_ended = {
            let ended = self.ended.iter().map(|ended| (ended.as_fd(), PollFlags::IN));
            let mut descriptors: Vec<PollFd<'_>> = (ended.chain(pipes(&self.child)))
                .map(|(descriptor, wanted)| PollFd::from_borrowed_fd(descriptor, wanted))
                .collect();
            // An interrupted wait is a short one.
            let _ = poll(&mut descriptors, Some(&timeout));
            self.ended.is_some()
                && descriptors.first().is_some_and(|ended| !ended.revents().is_empty())
        };
        self.feed();
        self.read();
        has_ended || (self.ended.is_none() && self.has_ended(Duration::ZERO))
    }

    /// Writes what standard input takes, and closes it at the end.
    fn feed(&mut self) {
        let Some(pipe) = &mut self.child.stdin else { return };
        while self.written < self.input.len() {
            match pipe.write(&self.input[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The program does not want to read it.
                Err(_) => break,
            }
        }
        self.child.stdin = None;
    }

    fn read(&mut self) {
        if let Some(pipe) = &mut self.child.stdout
            && !self.stdout.fill(pipe)
        {
            self.child.stdout = None;
        }
        if let Some(pipe) = &mut self.child.stderr
            && !self.stderr.fill(pipe)
        {
            self.child.stderr = None;
        }
    }

    /// Whether the child has ended, or does within `patience`; it is not reaped yet, so that its
    /// group's number stays its own.
    fn has_ended(&mut self, patience: Duration) -> bool {
        match &self.ended {
            Some(ended) => {
                let mut descriptor = [PollFd::new(ended, PollFlags::IN)];
                let timeout = Timespec { tv_sec: 0, tv_nsec: patience.subsec_nanos().into() };
                poll(&mut descriptor, Some(&timeout)).is_ok_and(|ready| ready > 0)
            }
            None => !matches!(self.child.try_wait(), Ok(None)),
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // A group that is gone needs no signal.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Reads what is left, kills what is left of the group, and reaps the child and its orphans.
    fn reap(&mut self, why: Option<Ending>) -> Ending {
        self.read();
        self.signal(Signal::KILL);
        let status = self.child.wait();
        orphans::end(Some(&self.mark));
        match (why, status) {
            (Some(ending), _) => ending,
            (None, Err(error)) => Ending::NotStarted(error.to_string()),
            (None, Ok(status)) => match (status.code(), status.signal()) {
                (Some(code), _) => Ending::Exit(code),
                (None, signal) => Ending::Signal(signal.unwrap_or_default()),
            },
        }
    }
}

/// Starts a command. A program that was written a moment ago may still count as being written, if
/// another thread was just then starting one of its own; that passes.
fn spawn(command: &mut Command) -> io::Result<Child> {
    for _ in 0..20 {
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
    command.spawn()
}

/// The open pipes to a child, and what is awaited of each.
fn pipes(child: &Child) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
    let stdout = child.stdout.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN));
    let stderr = child.stderr.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN));
    let stdin = child.stdin.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::OUT));
    [stdout, stderr, stdin].into_iter().flatten()
}

/// The resident memory of all processes of a group, in bytes.
fn memory_of_group(group: Pid) -> u64 {
    let Ok(processes) = std::fs::read_dir("/proc") else { return 0 };
    let pages = (processes.flatten())
        .filter_map(|process| orphans::group_and_pages(&process.path()))
        .filter(|(its_group, _)| *its_group == group.as_raw_nonzero().get())
        .map(|(_, pages)| pages);
    pages.sum::<u64>() * rustix::param::page_size() as u64
}

/// The end of a stream of bytes.
struct Tail {
    bytes: Vec<u8>,
    kept: usize,
    is_cut: bool,
}

impl Tail {
    fn new(kept: usize) -> Self {
        Tail { bytes: Vec::new(), kept, is_cut: false }
    }

    /// Reads what there is, or a good part of a flood; false at the end of the stream.
    fn fill(&mut self, stream: &mut impl Read) -> bool {
        let mut buffer = [0; 16384];
        for _ in 0..64 {
            match stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(count) => {
                    self.bytes.extend_from_slice(&buffer[..count]);
                    if self.bytes.len() > 2 * self.kept {
                        self.bytes.drain(..self.bytes.len() - self.kept);
                        self.is_cut = true;
                    }
                }
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
