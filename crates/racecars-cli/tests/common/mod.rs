//! Running racecars in a folder of its own, and waiting for what other processes do.

#![allow(dead_code, clippy::unwrap_used)]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// The arguments of a command: a list, or a line in which `'...'` is one word.
pub(crate) trait Words {
    fn words(&self) -> Vec<&str>;
}

impl Words for str {
    fn words(&self) -> Vec<&str> {
        let mut words = Vec::new();
        for (i, part) in self.split('\'').enumerate() {
            match i % 2 {
                0 => words.extend(part.split_whitespace()),
                _ => words.push(part),
            }
        }
        words
    }
}

impl Words for String {
    fn words(&self) -> Vec<&str> {
        self.as_str().words()
    }
}

impl Words for Vec<&str> {
    fn words(&self) -> Vec<&str> {
        self.clone()
    }
}

impl<const N: usize> Words for [&str; N] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl Words for [&str] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

/// A temporary folder, in which racecars is run.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn command(&self, arguments: &(impl Words + ?Sized)) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_racecars"));
        command.args(arguments.words()).current_dir(self.path());
        command
    }

    pub(crate) fn run(&self, arguments: &(impl Words + ?Sized)) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What it prints, on both streams.
    pub(crate) fn ok(&self, arguments: &(impl Words + ?Sized)) -> (String, String) {
        let output = self.run(arguments);
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|s| String::from_utf8(s).unwrap());
        assert!(output.status.success(), "{:?} failed: {stderr}", arguments.words());
        (stdout, stderr)
    }

    pub(crate) fn text(&self, arguments: &(impl Words + ?Sized)) -> String {
        self.ok(arguments).0
    }

    pub(crate) fn json(&self, arguments: &(impl Words + ?Sized)) -> Value {
        serde_json::from_str(&self.text(arguments)).unwrap()
    }

    pub(crate) fn error(&self, arguments: &(impl Words + ?Sized)) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{:?} was accepted", arguments.words());
        String::from_utf8(output.stderr).unwrap()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// The first line of a study's journal.
    pub(crate) fn plan(&self, study: &str) -> Value {
        let journal = self.read(&format!("{study}/journal.jsonl"));
        let first: Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
        first["study"].clone()
    }
}

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
