//! Windows: a program and its children are one job object, which ends with its last handle, also when
//! racecars is killed. Pipes block, so threads read and write them. A lock is a file that is not shared.

use crate::process::{Ending, Tail};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;
use std::os::windows::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use win32job::{ExtendedLimitInfo, Job};

pub use super::no_orphans::Orphanage;
pub(crate) use super::no_orphans::{end_orphans, kill_left_behind};

/// Whether limits of memory are kept.
pub(crate) const CAN_LIMIT_MEMORY: bool = false;

/// A console of its own that nobody sees: Ctrl-C in ours is not for the program.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;
const FILE_SHARE_READ: u32 = 1;
const FILE_SHARE_WRITE: u32 = 2;
const ERROR_SHARING_VIOLATION: i32 = 32;
/// Not enough memory (twice), no system resources, and the paging file is too small.
const SHORTAGES: [i32; 4] = [8, 14, 1450, 1455];
/// How often the end of a child is looked for.
const LOOK: Duration = Duration::from_millis(2);
/// Chunks of output that wait to be taken; a flood waits for its reader.
const CHUNKS: usize = 64;
/// How long output is waited for after all that could write it was killed.
const LAST_WORDS: Duration = Duration::from_secs(1);

#[derive(Clone, Copy)]
enum Stream {
    Output,
    Error,
}

/// A program that runs in a job of its own, and its pipes.
pub(crate) struct Program {
    child: Child,
    /// Closed, it kills the program and its children.
    job: Option<Job>,
    chunks: Receiver<(Stream, Vec<u8>)>,
    /// What was received while waiting.
    received: Vec<(Stream, Vec<u8>)>,
    /// Whether both pipes are at their end.
    is_silent: bool,
}

impl Program {
    /// Starts a command whose standard output and error are pipes; its standard input is one if there is
    /// `input`. What it starts within the first moment, before it is in its job, is not in the job.
    pub(crate) fn start(mut command: Command, input: Vec<u8>) -> io::Result<Program> {
        let job = job()?;
        let mut child = command.creation_flags(CREATE_NO_WINDOW).spawn()?;
        if let Err(error) = job.assign_process(child.as_raw_handle() as isize) {
            // It may have ended already.
            if matches!(child.try_wait(), Ok(None)) {
                let _ = child.kill();
                return Err(io::Error::other(error));
            }
        }
        let (sender, chunks) = sync_channel(CHUNKS);
        if let Some(pipe) = child.stdout.take() {
            read_on(pipe, Stream::Output, sender.clone())?;
        }
        if let Some(pipe) = child.stderr.take() {
            read_on(pipe, Stream::Error, sender)?;
        }
        if let Some(mut pipe) = child.stdin.take() {
            // A program that does not want to read it closes the pipe.
            std::thread::Builder::new().spawn(move || drop(pipe.write_all(&input)))?;
        }
        Ok(Program { child, job: Some(job), chunks, received: Vec::new(), is_silent: false })
    }

    /// Waits until something can be read, the program ends, or `longest` has passed. Whether the program is
    /// known to have ended.
    pub(crate) fn wait(&mut self, longest: Duration) -> bool {
        if self.is_silent {
            return self.wait_for_end(longest);
        }
        match self.chunks.recv_timeout(longest.min(LOOK)) {
            Ok(chunk) => self.received.push(chunk),
            Err(RecvTimeoutError::Disconnected) => self.is_silent = true,
            Err(RecvTimeoutError::Timeout) => {}
        }
        self.has_ended()
    }

    /// As `wait`, but for the end alone.
    pub(crate) fn wait_for_end(&mut self, longest: Duration) -> bool {
        let start = Instant::now();
        while !self.has_ended() {
            let left = longest.saturating_sub(start.elapsed());
            if left.is_zero() {
                return false;
            }
            std::thread::sleep(left.min(LOOK));
        }
        true
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Programs cannot be paused by a signal here.
    pub(crate) fn has_gone_on(&self) -> bool {
        false
    }

    /// A thread feeds it.
    pub(crate) fn feed(&mut self) {}

    /// Reads what it has written.
    pub(crate) fn read(&mut self, stdout: &mut Tail, stderr: &mut Tail) {
        for (stream, bytes) in self.received.drain(..).chain(self.chunks.try_iter().take(CHUNKS)) {
            match stream {
                Stream::Output => stdout.push(&bytes),
                Stream::Error => stderr.push(&bytes),
            }
        }
    }

    /// Not known here.
    pub(crate) fn memory(&self) -> u64 {
        0
    }

    /// Programs without windows cannot be asked to end: as `kill`.
    pub(crate) fn terminate(&mut self) {
        self.kill();
    }

    /// Kills the program and its children.
    pub(crate) fn kill(&mut self) {
        self.job = None;
        // It may not have been put into the job.
        let _ = self.child.kill();
    }

    /// Kills what is left, and reads the rest of what it wrote.
    pub(crate) fn reap(&mut self, stdout: &mut Tail, stderr: &mut Tail) -> io::Result<Ending> {
        let status = self.child.try_wait()?;
        self.kill();
        let status = status.map_or_else(|| self.child.wait(), Ok)?;
        let start = Instant::now();
        while !self.is_silent && start.elapsed() < LAST_WORDS {
            self.wait(LOOK);
            self.read(stdout, stderr);
        }
        Ok(Ending::Exit(status.code().unwrap_or(1)))
    }
}

/// A job whose processes end with its last handle.
fn job() -> io::Result<Job> {
    let mut limits = ExtendedLimitInfo::new();
    Job::create_with_limit_info(limits.limit_kill_on_job_close()).map_err(io::Error::other)
}

fn read_on(
    mut pipe: impl Read + Send + 'static,
    stream: Stream,
    chunks: SyncSender<(Stream, Vec<u8>)>,
) -> io::Result<()> {
    std::thread::Builder::new().spawn(move || {
        let mut buffer = vec![0; 16384];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            if chunks.send((stream, buffer[..count].to_vec())).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

/// Whether the host is short of processes or memory.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| SHORTAGES.contains(&code))
}

/// Opens a file for reading.
pub(crate) fn open_without_waiting(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Files have no number that can be read here. The journal of a run cannot be replaced while it is open, and
/// whoever follows it notices a shorter one.
pub(crate) fn identity(_file: &Metadata) -> (u64, u64) {
    (0, 0)
}

/// Processes are not forked.
pub(crate) fn descriptor(_file: &File) -> Option<i32> {
    None
}

/// Opens a file to write, made if it is missing, that no other process can write to meanwhile; `None` if
/// another has it.
pub(crate) fn open_alone(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    match options.share_mode(FILE_SHARE_READ).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.raw_os_error() == Some(ERROR_SHARING_VIOLATION) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a journal to read and append, made if it is missing, that cannot be moved or deleted meanwhile.
/// (Whoever writes to it has the lock.)
pub(crate) fn open_journal(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    let options = options.read(true).append(true).create(true);
    options.share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE).open(path).map(Some)
}

/// Cuts a journal off at this length. A file that is open for appending cannot be, so it is opened again.
pub(crate) fn cut(_journal: &File, path: &Path, length: u64) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.set_len(length)
}

/// Closing the file is enough.
pub(crate) fn unlock(_file: &File) {}

/// New files are the file system's matter here.
pub(crate) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// The whole path of a folder, as programs take it: without the prefix for long paths.
pub(crate) fn whole_path(folder: &Path) -> io::Result<PathBuf> {
    folder.metadata()?;
    std::path::absolute(folder)
}
