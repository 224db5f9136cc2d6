//! Waiting for what other processes do.

#![allow(dead_code, clippy::unwrap_used)]

use std::process::Command;
use std::time::{Duration, Instant};

/// Waits for a condition, as long as a busy machine may take.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(120), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a process has a handler for SIGINT and has computed for a while.
pub(crate) fn wait_until_it_computes(process: u32) {
    const SIGINT: u64 = 2;
    /// Hundredths of a second.
    const CPU_TIME: u64 = 30;
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap();
    wait_until("it handles interrupts", || {
        let status = read("status");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << (SIGINT - 1)) != 0
    });
    let cpu_time = || {
        let stat = read("stat");
        // After the name in parentheses, which may have spaces in it.
        let fields = stat[stat.rfind(')').unwrap() + 2..].split(' ');
        fields.skip(11).take(1).map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>()
    };
    let handled_at = cpu_time();
    wait_until("it computes", || cpu_time() >= handled_at + CPU_TIME);
}

/// Sends SIGINT, as Ctrl-C does.
pub(crate) fn interrupt(process: u32) {
    let status = Command::new("kill").arg("-INT").arg(process.to_string()).status();
    assert!(status.unwrap().success());
}

/// Sends a signal by its name.
pub(crate) fn signal(name: &str, process: &str) {
    let status = Command::new("kill").args(["-s", name, "--", process]).status();
    assert!(status.unwrap().success());
}

/// Whether a process has this text in its command line.
pub(crate) fn is_running(text: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|process| {
        std::fs::read(process.path().join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(text))
    })
}

/// The states of a process's threads, such as `T` if one is stopped.
pub(crate) fn states(process: u32) -> String {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else {
        return String::new();
    };
    let stats = threads.flatten().filter_map(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    });
    stats.collect()
}
