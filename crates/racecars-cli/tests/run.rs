//! `racecars run`, `init`, `check`, `ask` and `tell` as a user runs them.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_racecars"));
        command.args(arguments).current_dir(self.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.text(arguments)).unwrap()
    }

    fn error(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{arguments:?} was accepted");
        String::from_utf8(output.stderr).unwrap()
    }
}

const SQUARE: [&str; 4] = ["--", "sh", "-c", "echo $((({n} - 12) * ({n} - 12)))"];

fn with<'a>(arguments: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    [arguments, command].concat()
}

#[test]
fn a_run_ends_with_a_command_to_paste_and_goes_on_when_asked_for_more() {
    let desk = Desk::new();
    let text =
        desk.text(&with(&["run", "-p", "n=1..99", "--budget", "60", "--jobs", "2"], &SQUARE));
    assert!(text.contains("evaluations  60 of 60"), "{text}");
    let command = text.lines().find_map(|line| line.strip_prefix("command      ")).unwrap();
    let pasted = Command::new("sh").arg("-c").arg(command).output().unwrap();
    let value = String::from_utf8(pasted.stdout).unwrap();
    assert!(text.starts_with(&format!("best         {} in trial", value.trim())), "{text}");

    let output = desk.run(&["run", "--study", "racecars-study", "--budget", "99", "--json"]);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["best"]["params"], json!({"n": 12}));
    assert_eq!((&summary["evaluations"], &summary["best"]["value"]), (&json!(99), &json!(0.0)));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("going on with 60 evaluations done of 99"), "{stderr}");
    let best = std::fs::read_to_string(desk.path().join("racecars-study/best.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&best).unwrap(), summary);
}

#[test]
fn init_check_run() {
    let desk = Desk::new();
    assert!(desk.text(&["init"]).contains("wrote study.toml"));
    assert!(desk.error(&["init"]).contains("--force replaces it"));
    let text = desk.text(&["check"]);
    for part in
        ["3 parameters", "command      python3 -c", "ended        exit code 0", "outcome      "]
    {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
    assert!(!desk.path().join("racecars-study/journal.jsonl").exists());
    // From elsewhere, with flags over the file.
    let file = desk.path().join("study.toml");
    let elsewhere = Desk::new();
    let summary = elsewhere.json(&["run", file.to_str().unwrap(), "--budget", "6", "--json"]);
    assert_eq!(summary["evaluations"], 6);
    assert!(desk.path().join("racecars-study/journal.jsonl").exists());
    // A second study of the same file: started from it, then resumed.
    for (budget, total) in [("4", 4), ("7", 7)] {
        let arguments = ["run", "--study", "second", "--seed", "3", "--budget", budget, "--json"];
        assert_eq!(desk.json(&arguments)["evaluations"], total);
    }
}

#[test]
fn check_shows_a_failure() {
    let desk = Desk::new();
    let output =
        desk.run(&["check", "-p", "x=0:1", "--", "sh", "-c", "echo {x}; echo oh >&2; exit 4"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("stderr       oh") && text.contains("outcome      failed: exit code 4"));
}

#[test]
fn ask_and_tell() {
    let desk = Desk::new();
    let ask = ["ask", "-p", "n=1..9", "-p", "m=a,b", "--maximize", "-n", "2"];
    let asked = desk.json(&ask);
    assert_eq!((&asked[0]["trial"], &asked[1]["trial"]), (&json!(0), &json!(1)));
    assert!(asked[1]["params"]["m"].is_string() && asked[1].get("command").is_none());
    let mut tell = desk.command(&["tell"]);
    let mut tell = tell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let outcomes = "{\"trial\": 1, \"value\": 2.5}\n[{\"trial\": 0, \"failed\": \"fell over\"}]";
    tell.stdin.take().unwrap().write_all(outcomes.as_bytes()).unwrap();
    let told: Value = serde_json::from_slice(&tell.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!((&told["evaluations"], &told["failures"]), (&json!(2), &json!(1)));
    assert_eq!(told["best"], json!({"trial": 1, "outcome": {"value": 2.5}}));
    // The study is known from here on.
    assert_eq!(desk.json(&["ask", "--study", "racecars-study"])[0]["trial"], 2);
    assert_eq!(desk.json(&["ask", "--study", "racecars-study", "--pending"])[0]["trial"], 2);
    assert!(desk.error(&["tell", r#"{"trial": 9, "value": 1}"#]).contains("was never asked"));
    assert!(desk.error(&["tell", r#"{"trial": 2, "valeu": 1}"#]).contains("unknown field `valeu`"));
    assert!(desk.error(&["tell", "--study", "none", r#"{"trial": 2}"#]).contains("no study in"));
}

#[test]
fn mistakes_are_named() {
    let desk = Desk::new();
    let run = |more: &[&str]| desk.error(&with(&["run"], more));
    assert!(run(&[]).contains("nothing to run"));
    assert!(run(&["-p", "x=1:0", "--", "true", "{x}"]).contains("low 1 is not below high 0"));
    assert!(run(&["-p", "x", "--", "true"]).contains("parameter `x` has no range"));
    assert!(run(&["-p", "x=0:1", "--", "true"]).contains("parameter `x` does not reach"));
    assert!(run(&["-p", "x=0:1", "--", "true", "{y}"]).contains("`{y}` in the command"));
    assert!(run(&["-p", "x=0:1"]).contains("no command"));
    assert!(run(&["none.toml"]).contains("cannot read the study file none.toml"));
    assert!(run(&["-p", "x=0:1", "--timeout", "soon", "--", "true"]).contains("60s, 500ms, 5m"));
    std::fs::write(desk.path().join("study.toml"), "buget = 3").unwrap();
    let error = run(&[]);
    assert!(error.contains("study.toml") && error.contains("unknown field `buget`"), "{error}");
}

#[test]
fn first_failures_end_the_run_with_command_exit_code_and_standard_error() {
    let desk = Desk::new();
    let script = "echo {x}; echo missing library >&2; exit 9";
    let error = desk.error(&["run", "-p", "x=0:1", "--", "sh", "-c", script]);
    for part in ["first evaluations all failed", "exit code 9", "sh -c", "missing library"] {
        assert!(error.contains(part), "no `{part}` in:\n{error}");
    }
    let journal =
        std::fs::read_to_string(desk.path().join("racecars-study/journal.jsonl")).unwrap();
    assert!(journal.lines().count() < 40);
    // Once it is corrected, it can be restarted.
    let mended = ["run", "-p", "x=0:1", "--budget", "3", "--", "echo", "{x}"];
    assert!(desk.error(&mended).contains("--restart"));
    desk.text(&with(&["run", "--restart"], &mended[1..]));
}

fn interrupt(process: u32) {
    let status = Command::new("kill").arg("-INT").arg(process.to_string()).status();
    assert!(status.unwrap().success());
}

#[test]
fn ctrl_c_once_finishes_what_runs_and_twice_stops_now() {
    for (times, told) in [(1, 2), (2, 0)] {
        let desk = Desk::new();
        let script = "touch {trial}; sleep 2; echo {x}";
        let arguments =
            ["run", "-p", "x=0:1", "--jobs", "2", "--budget", "4", "--", "sh", "-c", script];
        let start = Instant::now();
        let mut command = desk.command(&arguments);
        let process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while !(desk.path().join("0").exists() && desk.path().join("1").exists()) {
            assert!(start.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(10));
        }
        for _ in 0..times {
            interrupt(process.id());
            std::thread::sleep(Duration::from_millis(300));
        }
        // A second run is refused meanwhile.
        if times == 1 {
            assert!(desk.error(&arguments).contains(&format!("process {} is", process.id())));
        }
        let output = process.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("interrupted; run the same command again to resume"), "{text}");
        assert!(text.contains(&format!("evaluations  {told} of 4")), "{text}");
    }
}

#[test]
fn overhead_of_a_program_is_measured() {
    let report = Desk::new().json(&["overhead", "--program", "true", "--runs", "40", "--json"]);
    assert_eq!(report["runs"], 40);
    assert!(report["share"].as_f64().unwrap() > 0.0);
}
