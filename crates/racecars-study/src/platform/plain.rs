//! Unix systems other than Linux, such as macOS: the end of a child is looked for every few milliseconds,
//! memory is not limited, and programs that leave their process group, or outlive a killed racecars, are
//! not found.

use crate::process::Mark;
use rustix::process::Pid;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// Whether limits of memory are kept.
pub(crate) const CAN_LIMIT_MEMORY: bool = false;

/// There is no descriptor for the end of a child.
#[derive(Debug)]
pub(super) struct EndOf;

impl EndOf {
    pub(super) fn child(_pid: Pid) -> io::Result<EndOf> {
        Ok(EndOf)
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Not known here.
pub(super) fn memory_of_group(_group: Pid) -> u64 {
    0
}

/// Finds none.
pub(crate) fn kill_left_behind(_folder: &Path) -> usize {
    0
}

/// Finds none.
pub(crate) fn end_orphans(_mark: Option<&Mark>) {}

/// Programs that leave the process group of their evaluation are not found here: this does nothing.
#[derive(Debug)]
pub struct Orphanage(());

impl Orphanage {
    /// Opens it.
    pub fn open() -> Orphanage {
        Orphanage(())
    }
}
