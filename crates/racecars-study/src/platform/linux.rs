//! Linux: the end of a process by its descriptor, the memory of a group by `/proc`, and programs that are
//! left running. Those of a killed session carry the study's folder in their environment, and since the
//! study's lock is ours, whoever started them is gone. Those that leave the process group of their
//! evaluation become this process's children, where it asks for that.

use crate::process::Mark;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpgrp, getpid, kill_process, kill_process_group,
    pidfd_open, set_child_subreaper, waitpid,
};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Whether limits of memory are kept.
pub(crate) const CAN_LIMIT_MEMORY: bool = true;

/// A descriptor that becomes readable when a child has ended; `None` where the kernel has none (before 5.3).
#[derive(Debug)]
pub(super) struct EndOf(Option<OwnedFd>);

impl EndOf {
    /// The error is a shortage.
    pub(super) fn child(pid: Pid) -> io::Result<EndOf> {
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => Ok(EndOf(Some(descriptor))),
            Err(error) if super::is_shortage(&error.into()) => Err(error.into()),
            Err(_) => Ok(EndOf(None)),
        }
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.0.as_ref().map(AsFd::as_fd)
    }
}

/// The resident memory of all processes of a group, in bytes.
pub(super) fn memory_of_group(group: Pid) -> u64 {
    let Ok(processes) = std::fs::read_dir("/proc") else { return 0 };
    let pages = (processes.flatten())
        .filter_map(|process| group_and_pages(&process.path()))
        .filter(|(its_group, _)| *its_group == group.as_raw_nonzero().get())
        .map(|(_, pages)| pages);
    pages.sum::<u64>() * rustix::param::page_size() as u64
}

/// Kills the process groups that earlier sessions of the study in `folder` left behind, and returns
/// how many there were.
pub(crate) fn kill_left_behind(folder: &Path) -> usize {
    let mut mark = b"RACECARS_STUDY=".to_vec();
    mark.extend_from_slice(folder.as_os_str().as_bytes());
    let Ok(processes) = std::fs::read_dir("/proc") else { return 0 };
    let groups: BTreeSet<i32> = (processes.flatten())
        .filter(|process| process.file_name().as_bytes().iter().all(u8::is_ascii_digit))
        .filter(|process| has_variable(&process.path(), &mark))
        .filter_map(|process| Some(group_and_pages(&process.path())?.0))
        .collect();
    let own = getpgrp().as_raw_nonzero().get();
    let others = groups.into_iter().filter(|&group| group != own).filter_map(Pid::from_raw);
    others.filter(|&group| kill_process_group(group, Signal::KILL).is_ok()).count()
}

/// Whether a process was started with this variable. Others' processes cannot be read, and are not ours
/// to kill.
fn has_variable(process: &Path, variable: &[u8]) -> bool {
    std::fs::read(process.join("environ"))
        .is_ok_and(|all| all.split(|&byte| byte == 0).any(|other| other == variable))
}

/// The process group and the pages of resident memory of a process, by its folder in `/proc`.
fn group_and_pages(process: &Path) -> Option<(i32, u64)> {
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    // After the name, which is in parentheses and may hold anything: state, parent, group, ...
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.nth(2)?.parse().ok()?, fields.nth(18)?.parse().ok()?))
}

static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// While this exists, processes that outlive an evaluation of this process become its children, also those
/// that called `setsid`, and are killed when the evaluation has ended; what has lost its environment, when
/// this is dropped. For programs whose main thread starts no processes of its own. Needs
/// `/proc/PID/task/TID/children`; without it this does nothing.
#[derive(Debug)]
pub struct Orphanage(());

impl Orphanage {
    /// Opens it.
    pub fn open() -> Orphanage {
        IS_OPEN.store(set_child_subreaper(Some(getpid())).is_ok(), Ordering::Release);
        Orphanage(())
    }
}

impl Drop for Orphanage {
    fn drop(&mut self) {
        end_orphans(None);
        IS_OPEN.store(false, Ordering::Release);
        let _ = set_child_subreaper(None);
    }
}

/// Kills and reaps the orphans of a run, or all, and reaps others that have ended.
pub(crate) fn end_orphans(mark: Option<&Mark>) {
    /// Processes that fork on are killed again and again, for so long.
    const ROUNDS: u32 = 1000;
    /// So that no number is another process's by the time that it is used.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    if !IS_OPEN.load(Ordering::Acquire) {
        return;
    }
    let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let variable = mark.map(|mark| format!("{}={}", Mark::NAME, mark.value()));
    for _ in 0..ROUNDS {
        let mut is_over = true;
        for orphan in orphans() {
            let path = format!("/proc/{}", orphan.as_raw_nonzero());
            let is_meant = (variable.as_ref())
                .is_none_or(|variable| has_variable(Path::new(&path), variable.as_bytes()));
            if is_meant {
                let _ = kill_process(orphan, Signal::KILL);
            }
            let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
            // Its own children are orphans once it has ended.
            is_over &= !is_meant;
        }
        if is_over {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The children of the main thread: programs are started by others, or have been reaped.
fn orphans() -> Vec<Pid> {
    let process = std::process::id();
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.unwrap_or_default();
    children.split_whitespace().filter_map(|child| Pid::from_raw(child.parse().ok()?)).collect()
}
