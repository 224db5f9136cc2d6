//! What differs between operating systems: how a program is started, watched and ended with all its
//! children, what is left of those of a killed process, how a journal is locked, and which file a path
//! leads to. One file per system; PLATFORM.md says what each promises.
//!
//! - `unix`: process groups, pipes that do not block, advisory locks. Linux and macOS.
//! - `linux`: process descriptors, memory and orphans by `/proc`.
//! - `plain`: other Unix systems, with plain waits in place of that.
//! - `windows`: job objects, threads that read pipes, files that are not shared.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod no_orphans;
#[cfg(all(unix, not(target_os = "linux")))]
mod plain;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub use system::Orphanage;
pub(crate) use system::{
    CAN_LIMIT_MEMORY, Program, cut, descriptor, end_orphans, identity, is_shortage,
    kill_left_behind, open_alone, open_journal, open_without_waiting, sync_folder, unlock,
    whole_path,
};
