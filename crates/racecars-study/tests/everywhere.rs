//! What a study promises on every system: these tests need no shell, and run on Windows and macOS as well.

#![allow(clippy::unwrap_used, clippy::panic)]

use racecars_study::{ErrorKind, Interrupt, Result, Settings, Study, Summary, journal};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The example `program`, which Cargo builds with the tests, after what starts it if the system cannot.
fn program() -> Vec<String> {
    let own = std::env::current_exe().unwrap();
    let folder = own.parent().unwrap().parent().unwrap().join("examples");
    let program = folder.join(format!("program{}", std::env::consts::EXE_SUFFIX));
    let runner = std::env::var("RACECARS_TEST_RUNNER").ok();
    runner.into_iter().chain([program.display().to_string()]).collect()
}

/// A study of the program with these arguments, a real `x`, and more settings.
fn settings(arguments: &[&str], more: &str) -> Settings {
    let mut command = program();
    command.extend(arguments.iter().map(ToString::to_string));
    of_command(&command, more)
}

fn of_command(command: &[String], more: &str) -> Settings {
    let text = format!("command = {command:?}\nenv = ['*']\n{more}\n[parameters]\nx = '0:1'");
    Settings::parse(&text).unwrap()
}

fn run(folder: &Path, settings: &Settings) -> Result<Summary> {
    Study::open(&folder.join("study"), settings, folder)?.run(&Interrupt::new(), &mut |_| {})
}

/// The outcomes in the journal, as JSON.
fn outcomes(folder: &Path) -> Vec<serde_json::Value> {
    let mut outcomes = Vec::new();
    journal::read(&folder.join("study").join(journal::FILE), |_, event| {
        if let journal::Event::Tell(tell) = event {
            outcomes.push(serde_json::to_value(&tell.outcome).unwrap());
        }
        Ok(())
    })
    .unwrap();
    outcomes
}

fn length(file: &Path) -> u64 {
    file.metadata().map_or(0, |file| file.len())
}

#[test]
fn a_study_runs_and_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let first = settings(&["value", "{x}"], "budget = 20\njobs = 2");
    let summary = run(folder.path(), &first).unwrap();
    assert_eq!((summary.evaluations, summary.failures), (20, 0));
    let longer = settings(&["value", "{x}"], "budget = 30\njobs = 2");
    let summary = run(folder.path(), &longer).unwrap();
    assert_eq!((summary.evaluations, summary.failures), (30, 0));
    assert!(summary.best.unwrap().value.unwrap() < 1e-3);
    assert_eq!(outcomes(folder.path()).len(), 30);
}

#[test]
fn input_and_a_flood_of_output() {
    for arguments in [&["stdin"][..], &["flood", "{x}"]] {
        let folder = tempfile::tempdir().unwrap();
        let stdin = format!("budget = 3\nnoise = 'no'\nstdin = {}", arguments[0] == "stdin");
        let summary = run(folder.path(), &settings(arguments, &stdin)).unwrap();
        assert_eq!((summary.evaluations, summary.failures), (3, 0), "{arguments:?}");
    }
}

#[test]
fn failures_have_reasons() {
    let ours = |words: [&str; 2]| [program(), words.map(str::to_string).to_vec()].concat();
    for (command, more, reason) in [
        (ours(["exit", "3"]), "", "exit code 3"),
        (ours(["sleep", "100"]), "timeout = 0.3", "over the time limit"),
        (vec!["no-such-program".to_string()], "", "`no-such-program`"),
    ] {
        // qemu starts what does not exist, and ends with exit code 127.
        if command.len() == 1 && std::env::var("RACECARS_TEST_RUNNER").is_ok() {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let settings = of_command(&command, &format!("budget = 1\n{more}"));
        // A study whose first evaluations all fail ends with what is wrong with them.
        let error = run(folder.path(), &settings).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FirstFailures);
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn what_a_program_leaves_behind_is_killed_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let file: PathBuf = folder.path().join("alive");
    let name = file.display().to_string();
    let summary = run(folder.path(), &settings(&["leave", &name], "budget = 1")).unwrap();
    assert_eq!(summary.failures, 0, "{:?}", outcomes(folder.path()));
    let before = length(&file);
    assert!(before > 0);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(length(&file), before, "the child is still alive");
}

#[test]
fn two_processes_cannot_have_one_study() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(&["value", "{x}"], "budget = 5");
    let study = folder.path().join("study");
    let first = Study::open(&study, &settings, folder.path()).unwrap();
    let second = Study::open(&study, &settings, folder.path());
    assert_eq!(second.err().map(|error| error.kind()), Some(ErrorKind::Locked));
    drop(first);
    assert!(Study::open(&study, &settings, folder.path()).is_ok());
}

#[test]
fn a_limit_of_memory_is_kept_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let limited = settings(&["value", "{x}"], "budget = 1\nmemory = '1G'");
    match run(folder.path(), &limited) {
        Ok(summary) => assert!(cfg!(target_os = "linux") && summary.failures == 0),
        Err(error) => assert!(error.to_string().contains("only kept on Linux"), "{error}"),
    }
}
