//! The crash tests: studies whose process is killed at random moments, 200 times or until they are done, and
//! which resume each time. In the end every evaluation is there once, none that was finished ran again, and
//! the deterministic result is that of an undisturbed run.

#![allow(clippy::unwrap_used)]

use racecars::random::Random;
use racecars_study::journal::{self, Event};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const KILLS: usize = 200;
const BUDGET: u64 = 4000;

/// Takes 1 to 4 ms, notes that it has run, and prints a value, or with a fourth argument the third.
const PROGRAM: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int n, char **a) {
    double x = atof(a[1]), y = atof(a[2]);
    char line[32];
    usleep(1000 + (atoi(a[3]) * 7919u) % 3000);
    int log = open("runs.log", O_WRONLY | O_APPEND | O_CREAT, 0644);
    snprintf(line, sizeof line, "%s\n", a[3]);
    if (write(log, line, strlen(line)) < 0) return 1;
    if (n > 4) printf("%s\n", a[3]);
    else printf("%.17g\n", (x - 3) * (x - 3) + 0.1 * y);
}
"#;

fn start(folder: &Path, jobs: usize) -> Child {
    Command::new(env!("CARGO_BIN_EXE_racecars"))
        .args(["run", "-p", "x=0:10", "-p", "n=0..20", "--deterministic", "--json"])
        .args(["--budget", &BUDGET.to_string(), "--jobs", &jobs.to_string()])
        .args(["--", "./sim", "{x}", "{n}", "{trial}"])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The trials told so far, each once.
fn told(folder: &Path) -> BTreeSet<u64> {
    let mut told = BTreeSet::new();
    let path = folder.join("racecars-study").join(journal::FILE);
    if path.exists() {
        journal::read(&path, |line, event| {
            if let Event::Tell(tell) = event {
                assert!(told.insert(tell.trial), "line {line}: trial {} told twice", tell.trial);
            }
            Ok(())
        })
        .unwrap();
    }
    told
}

fn runs(folder: &Path) -> Vec<u64> {
    let log = std::fs::read_to_string(folder.join("runs.log")).unwrap_or_default();
    log.lines().map(|line| line.parse().unwrap()).collect()
}

/// Runs to the end, and returns the best point and value.
fn finish(folder: &Path, jobs: usize) -> serde_json::Value {
    let output = start(folder, jobs).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["evaluations"], BUDGET);
    summary["best"].clone()
}

fn lab() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sim.c"), PROGRAM).unwrap();
    let status =
        Command::new("cc").args(["-o", "sim", "sim.c"]).current_dir(folder.path()).status();
    assert!(status.unwrap().success());
    folder
}

#[test]
fn two_hundred_kills_change_nothing() {
    let folder = lab();
    let folder = folder.path();
    let mut random = Random::new(7);
    for kill in 0..KILLS {
        let (before, first_new) = (told(folder), runs(folder).len());
        assert!(
            before.len() < BUDGET as usize,
            "all done before kill {kill}: take a larger budget"
        );
        let mut process = start(folder, 1 + kill % 5);
        std::thread::sleep(Duration::from_micros(random.below(90_000)));
        process.kill().unwrap();
        let output = process.wait_with_output().unwrap();
        assert_eq!(output.status.code(), None, "{}", String::from_utf8_lossy(&output.stderr));
        // A run that the killed session had started may end a little later.
        std::thread::sleep(Duration::from_millis(5));
        let again: Vec<u64> = runs(folder)[first_new..]
            .iter()
            .copied()
            .filter(|trial| before.contains(trial))
            .collect();
        assert!(again.is_empty(), "finished and run again after kill {kill}: {again:?}");
        assert!(told(folder).is_superset(&before));
    }
    println!("after {KILLS} kills: {} of {BUDGET} evaluations", told(folder).len());
    let best = finish(folder, 4);
    assert!(told(folder).into_iter().eq(0..BUDGET));
    let undisturbed = lab();
    assert_eq!(finish(undisturbed.path(), 4), best);
}

const REPEAT: usize = 4;
const LEADERS: usize = 5;
const CONFIRM: usize = 20;
/// So few that some kills are among the confirming evaluations.
const REPEATED_BUDGET: usize = 60;

/// Every run has a seed of its own, which is its value, so that the journal says which have ended.
fn start_repeated(folder: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_racecars"))
        .args(["run", "-p", "x=0:10", "-p", "n=0..20", "--jobs", "3"])
        .args(["--budget", &REPEATED_BUDGET.to_string(), "--repeat", &REPEAT.to_string()])
        .args(["--leaders", &LEADERS.to_string(), "--confirm", &CONFIRM.to_string()])
        // Seeds as values look like noise, under which leaders are not confirmed.
        .args(["--noise", "no"])
        .args(["--", "./sim", "{x}", "{n}", "{seed}", "print it"])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The seeds of the runs that the journal knows to have ended, and how many of them confirmed leaders.
fn ended(folder: &Path) -> (BTreeSet<u64>, usize) {
    let (mut seeds, mut confirming) = (BTreeSet::new(), 0);
    let path = folder.join("racecars-study").join(journal::FILE);
    journal::read(&path, |_, event| {
        match event {
            Event::Part(part) => seeds.extend(part.outcome.value().map(|seed| seed as u64)),
            Event::Tell(tell) => seeds.extend(tell.values.iter().map(|&seed| seed as u64)),
            Event::Repeat(repeat) => {
                confirming += 1;
                seeds.extend(repeat.value.map(|seed| seed as u64));
            }
            _ => {}
        }
        Ok(())
    })
    .unwrap();
    (seeds, confirming)
}

#[test]
fn repetitions_and_confirming_evaluations_that_have_ended_are_not_run_again() {
    let folder = lab();
    let folder = folder.path();
    let mut random = Random::new(8);
    let (mut kills, mut while_confirming) = (0, 0);
    loop {
        let ((before, confirming), first_new) = (ended(folder), runs(folder).len());
        if before.len() == REPEAT * REPEATED_BUDGET + CONFIRM * LEADERS {
            break;
        }
        let mut process = start_repeated(folder);
        std::thread::sleep(Duration::from_micros(random.below(120_000)));
        process.kill().unwrap();
        process.wait_with_output().unwrap();
        // A run that the killed session had started may end a little later.
        std::thread::sleep(Duration::from_millis(5));
        let again: Vec<u64> = runs(folder)[first_new..]
            .iter()
            .copied()
            .filter(|seed| before.contains(seed))
            .collect();
        assert!(again.is_empty(), "finished and run again after kill {kills}: {again:?}");
        kills += 1;
        while_confirming += u64::from(confirming > 0);
    }
    println!("{kills} kills, {while_confirming} of them while leaders were confirmed");
    assert!(kills > 10 && while_confirming > 0);
}
