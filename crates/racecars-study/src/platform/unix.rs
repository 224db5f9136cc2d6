//! Unix: a program has a process group of its own, pipes do not block, and locks are advisory.

#[cfg(target_os = "linux")]
use super::linux as processes;
#[cfg(not(target_os = "linux"))]
use super::plain as processes;
use crate::process::{Ending, Tail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, Mode, OFlags, fcntl_setfl, flock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

pub use processes::Orphanage;
pub(crate) use processes::{CAN_LIMIT_MEMORY, end_orphans, kill_left_behind};
use processes::{EndOf, memory_of_group};

/// How often the end of a child is looked for where no descriptor tells it.
const LOOK: Duration = Duration::from_millis(2);

/// A program that runs in a process group of its own, and its pipes.
pub(crate) struct Program {
    child: Child,
    group: Pid,
    end: EndOf,
    input: Vec<u8>,
    written: usize,
}

impl Program {
    /// Starts a command whose standard output and error are pipes; its standard input is one if there is
    /// `input`.
    pub(crate) fn start(mut command: Command, input: Vec<u8>) -> io::Result<Program> {
        let mut child = spawn(command.process_group(0))?;
        for (pipe, _) in pipes(&child) {
            // A pipe of our own has no other flags to keep.
            fcntl_setfl(pipe, OFlags::NONBLOCK)?;
        }
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let group = pid.ok_or_else(|| io::Error::other("the process number is out of range"))?;
        match EndOf::child(group) {
            Ok(end) => Ok(Program { child, group, end, input, written: 0 }),
            Err(error) => {
                let _ = kill_process_group(group, Signal::KILL);
                child.wait()?;
                Err(error)
            }
        }
    }

    /// Waits until something can be read or written, the program ends, or `longest` has passed. Whether
    /// the program is known to have ended; it is not reaped yet, so that its group's number stays its own.
    pub(crate) fn wait(&mut self, longest: Duration) -> bool {
        self.wait_for(longest, pipes(&self.child))
    }

    /// As `wait`, but for the end alone.
    pub(crate) fn wait_for_end(&mut self, longest: Duration) -> bool {
        self.wait_for(longest, std::iter::empty())
    }

    fn wait_for<'a>(
        &'a self,
        longest: Duration,
        pipes: impl Iterator<Item = (BorrowedFd<'a>, PollFlags)>,
    ) -> bool {
        let end = self.end.descriptor();
        let longest = if end.is_some() { longest } else { longest.min(LOOK) };
        let timeout = Timespec { tv_sec: 0, tv_nsec: longest.subsec_nanos().into() };
        let mut descriptors: Vec<PollFd<'_>> = end
            .map(|end| (end, PollFlags::IN))
            .into_iter()
            .chain(pipes)
            .map(|(descriptor, wanted)| PollFd::from_borrowed_fd(descriptor, wanted))
            .collect();
        // An interrupted wait is a short one.
        let _ = poll(&mut descriptors, Some(&timeout));
        match end {
            Some(_) => descriptors.first().is_some_and(|end| !end.revents().is_empty()),
            None => {
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
                !matches!(waitid(WaitId::Pid(self.group), options), Ok(None))
            }
        }
    }

    /// Whether the program was stopped by a signal, and goes on since the last look.
    pub(crate) fn has_gone_on(&self) -> bool {
        let options = WaitIdOptions::CONTINUED | WaitIdOptions::NOHANG;
        matches!(waitid(WaitId::Pid(self.group), options), Ok(Some(_)))
    }

    /// Writes what standard input takes, and closes it at the end.
    pub(crate) fn feed(&mut self) {
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

    /// Reads what it has written.
    pub(crate) fn read(&mut self, stdout: &mut Tail, stderr: &mut Tail) {
        if let Some(pipe) = &mut self.child.stdout
            && !stdout.fill(pipe)
        {
            self.child.stdout = None;
        }
        if let Some(pipe) = &mut self.child.stderr
            && !stderr.fill(pipe)
        {
            self.child.stderr = None;
        }
    }

    /// The resident memory of the group, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        memory_of_group(self.group)
    }

    /// Asks the group to end.
    pub(crate) fn terminate(&mut self) {
        self.signal(Signal::TERM);
    }

    /// Kills the group.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        // A group that is gone needs no signal.
        let _ = kill_process_group(self.group, signal);
    }

    /// Reads what is left, kills what is left of the group, and reaps the program.
    pub(crate) fn reap(&mut self, stdout: &mut Tail, stderr: &mut Tail) -> io::Result<Ending> {
        self.read(stdout, stderr);
        self.kill();
        let status = self.child.wait()?;
        Ok(match (status.code(), status.signal()) {
            (Some(code), _) => Ending::Exit(code),
            (None, signal) => Ending::Signal(signal.unwrap_or_default()),
        })
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

/// Whether the host is short of descriptors, processes or memory.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| {
        [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM].contains(&errno)
    })
}

/// Opens a file for reading; a pipe keeps nobody waiting.
pub(crate) fn open_without_waiting(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Which file it is: device and inode.
pub(crate) fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// The number by which a process that is forked from this one has the file open, too.
pub(crate) fn descriptor(file: &File) -> Option<i32> {
    Some(file.as_raw_fd())
}

/// Opens a file to write, made if it is missing, and locks it; `None` if another process has it.
pub(crate) fn open_alone(path: &Path) -> io::Result<Option<File>> {
    locked(OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?)
}

/// Opens a journal to read and append, made if it is missing, and locks it; `None` if another process has it.
pub(crate) fn open_journal(path: &Path) -> io::Result<Option<File>> {
    locked(OpenOptions::new().read(true).append(true).create(true).open(path)?)
}

fn locked(file: File) -> io::Result<Option<File>> {
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Gives the lock back. Closing the file is not enough: a program that another thread is just starting has
/// it open as well, for a moment.
pub(crate) fn unlock(file: &File) {
    let _ = flock(file, FlockOperation::Unlock);
}

/// Cuts a journal off at this length.
pub(crate) fn cut(journal: &File, _path: &Path, length: u64) -> io::Result<()> {
    journal.set_len(length)
}

/// Forces a folder to disk, so that a new file in it survives a power failure.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The whole path of a folder, without links.
pub(crate) fn whole_path(folder: &Path) -> io::Result<PathBuf> {
    folder.canonicalize()
}
