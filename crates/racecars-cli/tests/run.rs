//! `racecars run`, `init`, `check`, `ask` and `tell` as a user runs them.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Folder, interrupt, wait_until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

const SQUARE: [&str; 4] = ["--", "sh", "-c", "echo $((({n} - 12) * ({n} - 12)))"];

fn with<'a>(arguments: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    [arguments, command].concat()
}

#[test]
fn a_run_ends_with_a_command_to_paste_and_goes_on_when_asked_for_more() {
    let folder = Folder::new();
    let text =
        folder.text(&with(&["run", "-p", "n=1..99", "--budget", "60", "--jobs", "2"], &SQUARE));
    assert!(text.contains("evaluations  60 of 60"), "{text}");
    let command = text.lines().find_map(|line| line.strip_prefix("command      ")).unwrap();
    let pasted = Command::new("sh").arg("-c").arg(command).output().unwrap();
    let value = String::from_utf8(pasted.stdout).unwrap();
    assert!(text.starts_with(&format!("best         {} in trial", value.trim())), "{text}");

    let output = folder.run(&["run", "--study", "racecars-study", "--budget", "99", "--json"]);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["best"]["params"], json!({"n": 12}));
    assert_eq!((&summary["evaluations"], &summary["best"]["value"]), (&json!(99), &json!(0.0)));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("going on with 60 evaluations done of 99"), "{stderr}");
    let best = std::fs::read_to_string(folder.path().join("racecars-study/best.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&best).unwrap(), summary);
}

#[test]
fn one_job_waits_for_each_value_before_it_asks_for_the_next_point() {
    let folder = Folder::new();
    folder.text(&with(&["run", "-p", "n=1..9999", "--budget", "40", "--jobs", "1"], &SQUARE));
    let journal =
        std::fs::read_to_string(folder.path().join("racecars-study/journal.jsonl")).unwrap();
    let is_event = |line: &&str| line.starts_with("{\"ask\"") || line.starts_with("{\"tell\"");
    let events: Vec<&str> = journal.lines().filter(is_event).map(|line| &line[2..5]).collect();
    assert_eq!(events.len(), 80);
    assert!(events.chunks(2).all(|pair| pair == ["ask", "tel"]), "{events:?}");
}

#[test]
fn a_recommended_value_says_how_many_evaluations_it_is_the_mean_of() {
    let folder = Folder::new();
    // The seed of an evaluation is its noise.
    let program = ["--", "sh", "-c", "echo $((({n} - 12) * ({n} - 12) + {seed} % 100))"];
    let study = |budget| ["run", "-p", "n=1..99", "--noise", "yes", "--budget", budget];
    let text = folder.text(&with(&study("30"), &program));
    assert!(text.contains("(the mean of 2 evaluations)"), "{text}");
    let other = Folder::new();
    let arguments = [&study("4")[..], &["--json"]].concat();
    let few = other.json(&with(&arguments, &program));
    assert_eq!(few["recommended"]["evaluations"], 1);
    assert!(other.text(&["run", "--study", "racecars-study"]).contains("(a single evaluation"));
}

#[test]
fn what_is_made_of_a_study_does_not_take_the_place_of_its_journal() {
    let folder = Folder::new();
    folder.text(&with(&["run", "-p", "n=1..99", "--budget", "4"], &SQUARE));
    let journal = folder.path().join("racecars-study/journal.jsonl");
    let before = std::fs::read(&journal).unwrap();
    let out = "racecars-study/journal.jsonl";
    let error = folder.error(&["report", "--out", out]);
    assert!(error.contains("is a study's journal"), "{error}");
    assert!(folder.error(&["export", "--to", "csv", "--out", out]).contains("another file"));
    let lock = folder.error(&["export", "--to", "csv", "--out", "racecars-study/lock"]);
    assert!(lock.contains("is a study's lock"), "{lock}");
    std::fs::copy(&journal, folder.path().join("copy")).unwrap();
    assert!(folder.error(&["report", "--out", "copy"]).contains("is a study's journal"));
    for _ in 0..2 {
        folder.text(&["export", "--to", "json", "--out", "trials.json"]);
    }
    let printed = folder.text(&["export", "--to", "csv", "--out", "-"]);
    assert_eq!(printed, folder.text(&["export", "--to", "csv"]));
    assert!(printed.lines().count() > 1 && !folder.path().join("-").exists(), "{printed}");
    // Settings that cannot begin do not move it aside.
    folder.error(&["run", "--study", "racecars-study", "--restart", "--budget", "2"]);
    assert_eq!(std::fs::read(&journal).unwrap(), before);
}

#[test]
fn the_time_limit_holds_between_repetitions() {
    let folder = Folder::new();
    let program = ["--", "sh", "-c", "echo {n} >> runs; sleep 0.02; echo {n}"];
    let arguments =
        ["run", "-p", "n=1..9", "--budget", "1", "--repeat", "1000000", "--time-limit", "300ms"];
    let text = folder.text(&with(&arguments, &program));
    assert!(text.contains("time limit reached"), "{text}");
    let runs = || std::fs::read_to_string(folder.path().join("runs")).unwrap().lines().count();
    let journal = folder.path().join("racecars-study/journal.jsonl");
    let kept = std::fs::read_to_string(journal).unwrap().matches("{\"part\":").count();
    assert_eq!(runs(), kept, "every repetition that ended is kept");
}

#[test]
fn init_check_run() {
    let folder = Folder::new();
    assert!(folder.text(&["init"]).contains("wrote study.toml"));
    assert!(folder.error(&["init"]).contains("--force replaces it"));
    let text = folder.text(&["check"]);
    for part in
        ["3 parameters", "command      python3 -c", "ended        exit code 0", "outcome      "]
    {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
    assert!(!folder.path().join("racecars-study/journal.jsonl").exists());
    // From elsewhere, with flags over the file.
    let file = folder.path().join("study.toml");
    let elsewhere = Folder::new();
    let summary = elsewhere.json(&["run", file.to_str().unwrap(), "--budget", "6", "--json"]);
    assert_eq!(summary["evaluations"], 6);
    assert!(folder.path().join("racecars-study/journal.jsonl").exists());
    // A second study of the same file: started from it, then resumed.
    for (budget, total) in [("4", 4), ("7", 7)] {
        let arguments = ["run", "--study", "second", "--seed", "3", "--budget", budget, "--json"];
        assert_eq!(folder.json(&arguments)["evaluations"], total);
    }
}

#[test]
fn check_shows_a_failure() {
    let folder = Folder::new();
    let output =
        folder.run(&["check", "-p", "x=0:1", "--", "sh", "-c", "echo {x}; echo oh >&2; exit 4"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("stderr       oh") && text.contains("outcome      failed: exit code 4"));
}

#[test]
fn ask_and_tell() {
    let folder = Folder::new();
    let ask = ["ask", "-p", "n=1..9", "-p", "m=a,b", "--maximize", "-n", "2"];
    let asked = folder.json(&ask);
    assert_eq!((&asked[0]["trial"], &asked[1]["trial"]), (&json!(0), &json!(1)));
    assert!(asked[1]["params"]["m"].is_string() && asked[1].get("command").is_none());
    let mut tell = folder.command(&["tell"]);
    let mut tell = tell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let outcomes = "{\"trial\": 1, \"value\": 2.5}\n[{\"trial\": 0, \"failed\": \"fell over\"}]";
    tell.stdin.take().unwrap().write_all(outcomes.as_bytes()).unwrap();
    let told: Value = serde_json::from_slice(&tell.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!((&told["evaluations"], &told["failures"]), (&json!(2), &json!(1)));
    assert_eq!(told["best"], json!({"trial": 1, "outcome": {"value": 2.5}}));
    // The study is known from here on.
    assert_eq!(folder.json(&["ask", "--study", "racecars-study"])[0]["trial"], 2);
    assert_eq!(folder.json(&["ask", "--study", "racecars-study", "--pending"])[0]["trial"], 2);
    assert!(folder.error(&["tell", r#"{"trial": 9, "value": 1}"#]).contains("was never asked"));
    assert!(
        folder.error(&["tell", r#"{"trial": 2, "valeu": 1}"#]).contains("unknown field `valeu`")
    );
    assert!(folder.error(&["tell", "--study", "none", r#"{"trial": 2}"#]).contains("no study in"));
}

/// The first line of the journal.
fn plan(folder: &Path) -> Value {
    let journal = std::fs::read_to_string(folder.join("racecars-study/journal.jsonl")).unwrap();
    let first: Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    first["study"].clone()
}

#[test]
fn points_to_start_from_known_points_patience_and_settings_of_the_algorithm() {
    let folder = Folder::new();
    let known =
        "{\"params\": {\"n\": 5}, \"value\": 49}\n{\"params\": {\"n\": 6}, \"failed\": \"oh\"}\n";
    std::fs::write(folder.path().join("known.jsonl"), known).unwrap();
    let flags = ["run", "-p", "n=1..9999", "--budget", "90", "--jobs", "1", "--json"];
    let more = ["--start", "n=12", "--start", "n=13", "--known", "known.jsonl", "--patience", "7"];
    // One at a time, so that none is under way when patience ends.
    let set = [
        "--deterministic",
        "--lookahead",
        "1",
        "--algorithm",
        "de",
        "--set",
        "population=8",
        "--set",
        "weight=[0.5, 0.75]",
    ];
    let command = [&flags[..], &more, &set, &SQUARE].concat();
    let summary = folder.json(&command);
    assert_eq!((&summary["stop"], &summary["evaluations"]), (&json!("no-improvement"), &json!(8)));
    assert_eq!(summary["best"]["trial"], 0);
    assert_eq!(summary["algorithm"], "de(population=8, weight=[0.5, 0.75])");
    let plan = plan(folder.path());
    assert_eq!(plan["start"], json!([{"n": 12}, {"n": 13}]));
    assert_eq!(plan["known"][0], json!({"params": {"n": 5}, "value": 49.0}));
    // Known points are read when the study begins; the same command resumes it, another does not.
    std::fs::remove_file(folder.path().join("known.jsonl")).unwrap();
    assert_eq!(folder.json(&command)["evaluations"], 8);
    let other = folder.error(&[&flags[..], &more[..2], &set, &SQUARE].concat());
    assert!(other.contains("start is n=12, but the study in"), "{other}");

    // The same from a file, from elsewhere.
    let elsewhere = Folder::new();
    let file = "command = ['sh', '-c', 'echo {n}']\nbudget = 4\njobs = 1\nalgorithm = 'de'\n\
                known = 'known.jsonl'\nstart = ['n=12', {n = 13}]\n\
                [set]\npopulation = 8\nweight = [0.5, 0.75]\n[parameters]\nn = '1..9999'";
    std::fs::write(elsewhere.path().join("study.toml"), file).unwrap();
    std::fs::write(elsewhere.path().join("known.jsonl"), known).unwrap();
    let file = elsewhere.path().join("study.toml");
    let arguments = ["run", file.to_str().unwrap(), "--set", "population=9", "--json"];
    let summary = folder.json(&arguments);
    assert_eq!(summary["algorithm"], "de(population=9, weight=[0.5, 0.75])");
    assert_eq!(self::plan(elsewhere.path())["start"], plan["start"]);
    assert_eq!(self::plan(elsewhere.path())["known"], plan["known"]);
}

#[test]
fn mistakes_are_named() {
    let folder = Folder::new();
    let run = |more: &[&str]| folder.error(&with(&["run"], more));
    assert!(run(&[]).contains("nothing to run"));
    assert!(run(&["-p", "x=1:0", "--", "true", "{x}"]).contains("low 1 is not below high 0"));
    assert!(run(&["-p", "x", "--", "true"]).contains("parameter `x` has no range"));
    assert!(run(&["-p", "x=0:1", "--", "true"]).contains("parameter `x` does not reach"));
    assert!(run(&["-p", "x=0:1", "--", "true", "{y}"]).contains("`{y}` in the command"));
    assert!(run(&["-p", "x=0:1"]).contains("no command"));
    assert!(run(&["none.toml"]).contains("cannot read the study file none.toml"));
    assert!(run(&["-p", "x=0:1", "--timeout", "soon", "--", "true"]).contains("60s, 500ms, 5m"));
    std::fs::write(folder.path().join("study.toml"), "buget = 3").unwrap();
    let error = run(&[]);
    assert!(error.contains("study.toml") && error.contains("unknown field `buget`"), "{error}");
}

#[test]
fn first_failures_end_the_run_with_command_exit_code_and_standard_error() {
    let folder = Folder::new();
    let script = "echo {x}; echo missing library >&2; exit 9";
    let error = folder.error(&["run", "-p", "x=0:1", "--", "sh", "-c", script]);
    for part in ["first evaluations all failed", "exit code 9", "sh -c", "missing library"] {
        assert!(error.contains(part), "no `{part}` in:\n{error}");
    }
    let journal =
        std::fs::read_to_string(folder.path().join("racecars-study/journal.jsonl")).unwrap();
    assert!(journal.lines().count() < 40);
    // Once it is corrected, it can be restarted.
    let mended = ["run", "-p", "x=0:1", "--budget", "3", "--", "echo", "{x}"];
    assert!(folder.error(&mended).contains("--restart"));
    folder.text(&with(&["run", "--restart"], &mended[1..]));
}

#[test]
fn ctrl_c_once_finishes_what_runs_and_twice_stops_now() {
    for (times, told) in [(1, 2), (2, 0)] {
        let folder = Folder::new();
        let script = "touch {trial}; while ! [ -e go ]; do sleep 0.02; done; echo {x}";
        let arguments =
            ["run", "-p", "x=0:1", "--jobs", "2", "--budget", "4", "--", "sh", "-c", script];
        let mut command = folder.command(&arguments);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("two evaluations run", || {
            ["0", "1"].iter().all(|trial| folder.path().join(trial).exists())
        });
        interrupt(process.id());
        // Signals that are sent too soon after another are merged with it.
        let mut stderr = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("finishing what runs") {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "the interrupt was not heard");
        }
        if times == 1 {
            // A second run is refused meanwhile.
            let refused = folder.error(&arguments);
            assert!(refused.contains(&format!("process {} is", process.id())), "{refused}");
            std::fs::write(folder.path().join("go"), "").unwrap();
        } else {
            interrupt(process.id());
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
    let report = Folder::new().json(&["overhead", "--program", "true", "--runs", "40", "--json"]);
    assert_eq!(report["runs"], 40);
    assert!(report["share"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_run_says_how_often_the_program_runs_if_that_is_not_the_budget() {
    let folder = Folder::new();
    let script = "echo >> runs; echo {n}";
    let run = |more: &[&str]| {
        let fixed = ["run", "-p", "n=1..99", "--budget", "20", "--jobs", "1", "--restart"];
        let output = folder.run(&[&fixed, more, &["--", "sh", "-c", script]].concat());
        assert!(output.status.success());
        let runs = std::fs::read_to_string(folder.path().join("runs")).unwrap().lines().count();
        std::fs::remove_file(folder.path().join("runs")).unwrap();
        (runs, String::from_utf8(output.stderr).unwrap())
    };
    for (more, runs, said) in [
        (&["--repeat", "5"][..], 125, "20 points x 5, and 5 leading points x 5 at the end"),
        (&["--repeat", "2", "--confirm", "0"], 40, "20 points x 2\n"),
        (&["--confirm", "3", "--leaders", "2"], 26, "20 points x 1, and 2 leading points x 3"),
    ] {
        let (ran, text) = run(more);
        assert_eq!(ran, runs);
        assert!(text.contains(&format!("up to {runs} program runs: {said}")), "{text}");
    }
    let (ran, text) = run(&[]);
    assert!(ran == 20 && !text.contains("program runs"), "{text}");
}
