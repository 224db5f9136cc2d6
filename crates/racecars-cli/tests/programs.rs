//! `racecars run` and `check` with programs and a system that make trouble.

#![allow(clippy::unwrap_used)]

mod common;

use common::{is_running, signal, states, wait_until};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const RACECARS: &str = env!("CARGO_BIN_EXE_racecars");

fn racecars(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(RACECARS);
    command.args(arguments).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Options, and a script as the program.
fn program<'a>(options: &'a str, script: &'a str) -> Vec<&'a str> {
    options.split(' ').chain(["--", "sh", "-c", script]).collect()
}

/// `racecars` with limits of the shell's `ulimit`.
fn limited(folder: &Path, limits: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit {limits} && exec \"$@\""), "sh", RACECARS])
        .args(arguments);
    command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

/// The outcomes in the journal.
fn tells(folder: &Path) -> Vec<Value> {
    let journal = std::fs::read_to_string(folder.join("racecars-study/journal.jsonl")).unwrap();
    let lines = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|line| line.get("tell").cloned()).collect()
}

fn lines(folder: &Path, name: &str) -> usize {
    std::fs::read_to_string(folder.join(name)).map_or(0, |text| text.lines().count())
}

fn end(process: Child) -> Output {
    process.wait_with_output().unwrap()
}

#[test]
fn terminal_sequences_of_programs_are_shown_and_not_obeyed() {
    let folder = tempfile::tempdir().unwrap();
    let script = "printf '\\033]0;title\\007oops\\033[2J\\n'; printf '\\033[31mred\\n' >&2; : {x}";
    for command in ["check", "run"] {
        let arguments = [command, "-p", "x=0:1", "--", "sh", "-c", script];
        let output = racecars(folder.path(), &arguments).output().unwrap();
        let (stdout, stderr) = texts(&output);
        let all = stdout + &stderr;
        assert!(!output.status.success());
        assert!(!all.contains(|c: char| c.is_control() && c != '\n'), "{all:?}");
        for part in ["\\u001b]0;title\\u0007oops\\u001b[2J", "\\u001b[31mred"] {
            assert!(all.contains(part), "no {part} in {all}");
        }
    }
}

#[test]
fn check_says_that_output_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    let script = "head -c 3000000 /dev/zero | tr '\\0' 'x'; echo; echo {x}";
    let arguments = ["check", "-p", "x=0:1", "--", "sh", "-c", script];
    let (stdout, _) = texts(&racecars(folder.path(), &arguments).output().unwrap());
    assert!(stdout.contains("stdout       ... longer than is kept"), "{stdout}");
}

#[test]
fn a_shortage_of_descriptors_fails_no_evaluation() {
    let folder = tempfile::tempdir().unwrap();
    let script = "sleep 0.05; echo {x} > {dir}/out";
    let arguments =
        program("run -p x=0:1 --jobs 16 --budget 60 --minimize file:{dir}/out --json", script);
    let output = limited(folder.path(), "-n 30", &arguments).output().unwrap();
    let (stdout, stderr) = texts(&output);
    assert!(output.status.success(), "{stderr}");
    let summary: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&summary["evaluations"], &summary["failures"]), (&60.into(), &0.into()));
    assert_eq!(stderr.matches("with fewer at a time").count(), 1, "{stderr}");
}

#[test]
fn a_shortage_that_stays_is_waited_for_until_it_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["run", "-p", "x=0:1", "--jobs", "2", "--budget", "4", "--", "echo", "{x}"];
    // Enough for the study itself, not for a program.
    let process = limited(folder.path(), "-n 10", &arguments).spawn().unwrap();
    let journal = folder.path().join("racecars-study/journal.jsonl");
    wait_until("points are asked", || {
        std::fs::read_to_string(&journal).is_ok_and(|text| text.contains("{\"ask\""))
    });
    signal("TERM", &process.id().to_string());
    let output = end(process);
    let (_, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(tells(folder.path()).is_empty());
    // With room again it goes on.
    let output = racecars(folder.path(), &arguments).output().unwrap();
    assert!(output.status.success());
    assert_eq!(tells(folder.path()).len(), 4);
}

#[test]
fn a_thread_that_cannot_start_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["run", "-p", "x=0:1", "--jobs", "99", "--budget", "400", "--", "echo", "{x}"];
    // Large stacks, so that it is they that find no room, and nothing smaller.
    let mut command = limited(folder.path(), "-v 3000000", &arguments);
    let output = command.env("RUST_MIN_STACK", "200000000").output().unwrap();
    let (_, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("error: cannot start thread"), "{stderr}");
    assert!(stderr.contains("of 99, one for each of --jobs"), "{stderr}");
}

#[test]
fn retries_end_with_the_first_interrupt() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo >> runs; while ! [ -e go ]; do sleep 0.02; done; exit {n}";
    let arguments = program("run -p n=1..9 --retries 100000 --jobs 1 --budget 3", script);
    let process = racecars(folder.path(), &arguments).spawn().unwrap();
    wait_until("it runs", || lines(folder.path(), "runs") == 1);
    signal("TERM", &process.id().to_string());
    wait_until("the signal is taken", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
        status
            .lines()
            .filter(|line| line.starts_with("SigPnd") || line.starts_with("ShdPnd"))
            .all(|line| line.ends_with("0000000000000000"))
    });
    std::fs::write(folder.path().join("go"), "").unwrap();
    let output = end(process);
    assert_eq!(output.status.code(), Some(130));
    assert!(tells(folder.path()).is_empty());
}

#[test]
fn children_that_leave_the_process_group_are_ended() {
    let folder = tempfile::tempdir().unwrap();
    // Of this process only: other checkouts may be tested at the same time.
    let marks = ["1", "2", "3", "4"].map(|mark| format!("97.{}{mark}", std::process::id()));
    let [one, two, three, four] = &marks;
    let script = format!(
        "setsid sh -c 'sleep {one} & setsid sleep {two} & wait' &\n\
         (env -i setsid sleep {three} &)\n\
         if [ {{n}} = 1 ]; then setsid sleep {four} & sleep 97.3255; fi\n\
         while ! pgrep -f 'sleep {two}' > seen; do :; done; echo {{n}}"
    );
    let arguments = program("run -p n=1..3 --jobs 2 --budget 3 --timeout 1s --json", &script);
    let output = racecars(folder.path(), &arguments).output().unwrap();
    let (stdout, stderr) = texts(&output);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(serde_json::from_str::<Value>(&stdout).unwrap()["failures"], 1);
    for mark in marks {
        // What was killed is gone when the run is.
        assert!(!is_running(&format!("sleep\0{mark}")), "{mark} runs on");
    }
}

/// A study of a program's run time, and the process that the program wrote into `pid`.
fn timed(folder: &Path, script: &str) -> (Child, u32) {
    let arguments = program("run -p n=1..9 --minimize time --jobs 1 --budget 1", script);
    let process = racecars(folder, &arguments).spawn().unwrap();
    wait_until("it runs", || lines(folder, "pid") == 1);
    let program = std::fs::read_to_string(folder.join("pid")).unwrap();
    (process, program.trim().parse().unwrap())
}

#[test]
fn a_pause_is_not_run_time() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo >> runs; echo $$ > pid; while ! [ -e go ]; do sleep 0.02; done; : {n}";
    let (process, program) = timed(folder.path(), script);
    signal("STOP", &process.id().to_string());
    wait_until("it is stopped", || states(process.id()).chars().all(|state| state == 'T'));
    std::fs::write(folder.path().join("go"), "").unwrap();
    wait_until("the program has ended", || matches!(&*states(program), "" | "Z"));
    // A pause as a person makes it.
    let pause = Instant::now();
    wait_until("some time has passed", || pause.elapsed() > Duration::from_secs(1));
    signal("CONT", &process.id().to_string());
    let output = end(process);
    let (_, stderr) = texts(&output);
    assert!(output.status.success(), "{stderr}");
    let tells = tells(folder.path());
    assert!(stderr.contains("trial 0 was paused"), "{stderr} {tells:?}");
    assert_eq!(lines(folder.path(), "runs"), 2);
    assert_eq!((tells.len(), &tells[0]["attempts"]), (1, &Value::from(1)), "{tells:?}");
}

#[test]
fn a_program_that_is_paused_itself_is_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo >> runs; if ! [ -e seen ]; then touch seen; echo $$ > pid; kill -STOP $$; sleep 1; fi; : {n}";
    let (process, program) = timed(folder.path(), script);
    wait_until("it is stopped", || states(program) == "T");
    signal("CONT", &program.to_string());
    let (_, stderr) = texts(&end(process));
    assert!(stderr.contains("trial 0 was paused"), "{stderr}");
    assert_eq!(lines(folder.path(), "runs"), 2);
}
