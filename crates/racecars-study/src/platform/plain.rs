//! Unix systems other than Linux, such as macOS: the end of a child is looked for every few milliseconds,
//! memory is not limited, and programs that leave their process group, or outlive a killed racecars, are
//! not found.

use rustix::process::Pid;
use std::io;
use std::os::fd::BorrowedFd;

pub use super::no_orphans::Orphanage;
pub(crate) use super::no_orphans::{end_orphans, kill_left_behind};

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
