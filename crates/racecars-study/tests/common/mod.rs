//! What the tests of studies share: folders, programs, journals.

#![allow(dead_code, clippy::unwrap_used)]

use racecars_study::journal::{self, Event, Tell};
use racecars_study::{Interrupt, Result, Settings, Study, Summary};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A folder with programs in it, and a study in `study`.
pub(crate) struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    pub(crate) fn new() -> Lab {
        Lab { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn study(&self) -> PathBuf {
        self.path().join("study")
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Writes a script.
    pub(crate) fn script(&self, name: &str, content: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.write(name, content);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Compiles a C program.
    pub(crate) fn compile(&self, name: &str, source: &str) -> PathBuf {
        let source = self.write(&format!("{name}.c"), source);
        let program = self.path().join(name);
        let status = Command::new("cc").arg("-o").arg(&program).arg(source).arg("-lm").status();
        assert!(status.unwrap().success());
        program
    }

    pub(crate) fn open(&self, settings: &str) -> Result<Study> {
        Study::open(&self.study(), &Settings::parse(settings)?, self.path())
    }

    /// Runs a study to its end.
    pub(crate) fn run(&self, settings: &str) -> Result<Summary> {
        self.open(settings)?.run(&Interrupt::new(), &mut |_| {})
    }

    /// The outcomes in the journal, by trial; each must be there once.
    pub(crate) fn tells(&self) -> BTreeMap<u64, Tell> {
        let mut tells = BTreeMap::new();
        journal::read(&self.study().join(journal::FILE), |line, event| {
            if let Event::Tell(tell) = event {
                let trial = tell.trial;
                assert!(tells.insert(trial, tell).is_none(), "line {line}: {trial} told twice");
            }
            Ok(())
        })
        .unwrap();
        tells
    }

    /// The only outcome in the journal, as JSON.
    pub(crate) fn outcome(&self) -> serde_json::Value {
        let tells = self.tells();
        assert_eq!(tells.len(), 1);
        serde_json::to_value(&tells[&0].outcome).unwrap()
    }
}

/// Whether a process has this text in its command line, and keeps it: a process that was killed is gone
/// after a while.
pub(crate) fn is_running(text: &str) -> bool {
    let is_there = || {
        std::fs::read_dir("/proc").unwrap().flatten().any(|process| {
            // A zombie has ended, though nobody may have asked after it; its command line is empty.
            std::fs::read(process.path().join("cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(text))
        })
    };
    !comes_true(Duration::from_secs(10), || !is_there())
}

/// Waits for a condition, as long as a busy machine may take.
pub(crate) fn wait_until(what: &str, is_so: impl FnMut() -> bool) {
    assert!(comes_true(Duration::from_secs(120), is_so), "waited in vain until {what}");
}

fn comes_true(within: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if is_so() {
            return true;
        }
        if start.elapsed() >= within {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Says that a test cannot run here, past the capture of output, and counts it: `scripts/test` shows the
/// lines of this file.
pub(crate) fn skip(test: &str, why: &str) {
    let line = format!("skipped {test}: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("skipped.txt");
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(line.as_bytes()).unwrap();
}
