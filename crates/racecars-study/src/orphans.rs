//! Programs that a killed session left running. They carry the study's folder in their environment,
//! and since the study's lock is ours, whoever started them is gone.

use rustix::process::{Pid, Signal, getpgrp, kill_process_group};
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Kills the process groups that earlier sessions of the study in `folder` left behind, and returns
/// how many there were.
pub(crate) fn kill(folder: &Path) -> usize {
    let mut mark = b"RACECARS_STUDY=".to_vec();
    mark.extend_from_slice(folder.as_os_str().as_bytes());
    let Ok(processes) = std::fs::read_dir("/proc") else { return 0 };
    let groups: BTreeSet<i32> = (processes.flatten())
        .filter(|process| process.file_name().as_bytes().iter().all(u8::is_ascii_digit))
        .filter(|process| {
            // Others' processes cannot be read, and are not ours to kill.
            std::fs::read(process.path().join("environ"))
                .is_ok_and(|all| all.split(|&byte| byte == 0).any(|variable| variable == mark))
        })
        .filter_map(|process| group_of(&process.path()))
        .collect();
    let own = getpgrp().as_raw_nonzero().get();
    let others = groups.into_iter().filter(|&group| group != own).filter_map(Pid::from_raw);
    others.filter(|&group| kill_process_group(group, Signal::KILL).is_ok()).count()
}

fn group_of(process: &Path) -> Option<i32> {
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    // After the name, which is in parentheses and may hold anything: state, parent, group, ...
    stat.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse().ok()
}
