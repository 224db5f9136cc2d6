//! The command line as a program: what it prints, what it refuses, how it stops.

#![allow(clippy::unwrap_used)]

mod common;

use common::{interrupt, wait_until_it_computes};
use serde_json::Value;
use std::io::Read;
use std::process::{Command, Output, Stdio};

fn racecars(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_racecars"));
    command.args(arguments.split_whitespace());
    command
}

fn run(arguments: &str) -> Output {
    racecars(arguments).output().unwrap()
}

fn json(arguments: &str) -> Value {
    let output = run(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn error(arguments: &str) -> String {
    let output = run(arguments);
    assert!(!output.status.success(), "`{arguments}` was accepted");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn solve_prints_the_best_value_what_it_cost_why_it_stopped_and_a_plot() {
    let output = run("solve rastrigin --dim 20 --budget 2000 --seed 3");
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["best value   ", "at           x=[", "evaluations  2000", "per second", "budget"] {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
    assert!(text.contains("log scale") && text.contains('┤'));
}

#[test]
fn solve_in_json_has_the_history_and_the_point() {
    let report = json("solve mixed-categorical --dim 10 --budget 500 --json");
    assert_eq!(report["evaluations"], 500);
    assert_eq!(report["stop"], "evaluations");
    assert_eq!(report["point"]["x"].as_array().unwrap().len(), 5);
    assert!(report["point"]["c"][0].is_string());
    let history = report["history"].as_array().unwrap();
    assert_eq!(history.last().unwrap()[1], report["best"]);
}

#[test]
fn a_target_stops_the_run() {
    let report = json("solve sphere --dim 5 --budget 100000 --target 0.5 --json");
    assert_eq!(report["stop"], "target");
    assert!(report["best"].as_f64().unwrap() <= 0.5);
    assert!(report["evaluations"].as_u64().unwrap() < 10_000);
}

#[test]
fn the_same_seed_gives_the_same_run_and_in_deterministic_mode_on_any_number_of_jobs() {
    let best = |more: &str| {
        let report = json(&format!("solve levy --dim 30 --budget 50n --json {more}"));
        report["best"].as_f64().unwrap()
    };
    assert_eq!(best("--seed 1"), best("--seed 1"));
    assert_ne!(best("--seed 1"), best("--seed 2"));
    let one = best("--deterministic --jobs 1");
    assert_eq!(one, best("--deterministic --jobs 2"));
    assert_eq!(one, best("--deterministic --jobs 5"));
    assert!(best("--jobs 3") < 100.0);
}

#[test]
fn bench_compares_every_combination() {
    let arguments = "bench --problem sphere,levy --dim 4,8 --budget 30n --trials 3 --seed 7 \
                     --algorithm race-cars,sracos,racos,random --gamma 0.9 --rho 0.1 --json";
    let report = json(arguments);
    let results = report["results"].as_array().unwrap();
    assert_eq!(results.len(), 2 * 2 * 4);
    for result in results {
        let keys = [
            "problem",
            "dim",
            "budget",
            "algorithm",
            "trials",
            "mean",
            "std",
            "median",
            "min",
            "max",
            "evaluations",
            "seconds",
            "overhead_us",
        ];
        for key in keys {
            assert!(!result[key].is_null(), "{key} is missing");
        }
        assert_eq!(result["budget"], 30 * result["dim"].as_u64().unwrap());
        assert_eq!(result["trials"], 3);
    }
    let finals = |report: &Value| report["results"][0]["finals"].clone();
    assert_eq!(finals(&report), finals(&json(&format!("{arguments} --jobs 1"))));

    let table = String::from_utf8(run("bench --problem sphere --dim 4 --trials 2").stdout).unwrap();
    assert!(table.contains("overhead us") && table.contains("auto"));
}

#[test]
fn a_trial_is_the_run_of_its_seed() {
    let bench = json("bench --problem rastrigin --dim 6 --budget 200 --trials 3 --seed 5 --json");
    let solve = json("solve rastrigin --dim 6 --budget 200 --seed 7 --json");
    assert_eq!(bench["results"][0]["finals"][2], solve["best"]);
}

#[test]
fn with_noise_what_counts_is_the_value_without_it() {
    let arguments = "bench --problem sphere --dim 5 --budget 100n --trials 3 --json";
    let finals = |arguments: &str| json(arguments)["results"][0]["finals"].clone();
    let noisy = finals(&format!("{arguments} --noise 100"));
    assert!(noisy.as_array().unwrap().iter().all(|value| value.as_f64().unwrap() > 0.0), "{noisy}");
    assert_eq!(noisy, finals(&format!("{arguments} --noise 100 --jobs 1")));
    assert_ne!(noisy, finals(arguments));
}

#[test]
fn a_suite_compares_a_candidate_with_the_best_single_and_keeps_the_trials() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let small = format!(
        "bench --suite default --problem sphere,stepped-ackley --dims 4 --budgets 5n,30n --seeds 2 \
         --algorithms sracos,random --candidate race-cars --out {out}"
    );
    let report = json(&format!("{small} --json --jobs 1"));
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    let number = |value: &Value| value.as_f64().unwrap();
    for cell in cells {
        let ratio = number(&cell["candidate"]) / number(&cell["best"]);
        assert!((number(&cell["ratio"]) - ratio).abs() < 1e-12);
        assert_eq!(cell["singles"].as_array().unwrap().len(), 2);
    }
    assert!(number(&report["summary"]["geometric_mean"]) > 0.0);

    let text = String::from_utf8(run(&small).stdout).unwrap();
    for part in ["best single", "within 1.5x", "T = 30n", "n = 4", "sracos alone", "cells.csv"] {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
    assert_eq!(report, json(&format!("{small} --json")));
    let table = std::fs::read_to_string(directory.path().join("cells.csv")).unwrap();
    assert_eq!(table.lines().count(), 1 + 4);
}

#[test]
fn overhead_gives_steps_beside_their_floor() {
    let report =
        json("overhead --dim 20000 --algorithm race-cars,random --space reals,bits --json");
    let results = report["results"].as_array().unwrap();
    let spaces: Vec<&str> =
        results.iter().map(|result| result["space"].as_str().unwrap()).collect();
    assert_eq!(spaces, ["reals", "bits", "reals", "bits"]);
    for result in results {
        let number = |key: &str| result[key].as_f64().unwrap();
        assert!((number("ns_per_step") / number("floor_ns") - number("ratio")).abs() < 1e-9);
    }
}

#[test]
fn what_is_wrong_is_said_with_what_is_allowed() {
    let cases = [
        ("solve nothing", "problem `nothing` is not known; there are ackley"),
        ("solve ackley --algorithm magic", "is not one of auto, race-cars, sracos, racos"),
        ("solve ackley --dim 0", "not a whole number of at least 1"),
        ("solve ackley --budget -3", "unexpected argument"),
        ("solve ackley --budget zero", "such as 5000, 1e5 or 30n"),
        ("solve ackley --gamma 1.5", "gamma = 1.5 is not between 0 and 1"),
        ("solve ackley --rho 2", "rho = 2 is not from 0 to 1"),
        ("solve ackley --lambda nan", "setting `exploitation` of race-cars is `NaN`, not a number"),
        ("solve ackley --algorithm random --rho 0.1", "random has no setting `rho`; it has none"),
        ("solve ackley --dim 1000000000", "not from 1 to"),
        ("solve rotated-ackley --dim 100000", "too large for a dense rotation"),
        ("paper figure", "[possible values: fig-n50, fig-n500, shifted, discontinuous"),
        ("paper mixed --trials 0", "at least 1"),
        ("bench --problem ackley", "--dim"),
        ("bench --problem ackley --dim 5 --trials 0", "at least 1"),
        ("bench --problem ackley --dim 5 --quick", "--suite"),
        ("bench --suite nothing", "[possible values: default]"),
        (
            "bench --suite default --half choose --problem levy",
            "is not one of ackley, rotated-levy",
        ),
        ("bench --suite default --gamma 0.5", "cannot be used with"),
        ("bench --problem ackley --dim 5 --noise -1", "not a finite number of at least 0"),
        ("bench --suite default --noise 1", "cannot be used with"),
    ];
    for (arguments, part) in cases {
        let error = error(arguments);
        assert!(error.contains(part), "`{arguments}` says:\n{error}");
    }
}

#[test]
fn one_dimension_and_one_evaluation_work() {
    assert_eq!(json("solve ackley --dim 1 --budget 1 --json")["evaluations"], 1);
    for name in ["levy", "rosenbrock", "griewank", "schwefel", "ellipsoid", "stepped-sphere"] {
        json(&format!("solve {name} --dim 1 --budget 50 --json"));
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_run_and_keeps_what_is_done() {
    let mut child = racecars("solve ackley --dim 1000 --budget 1e12 --json")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until_it_computes(child.id());
    interrupt(child.id());
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["stop"], "interrupted");
    assert!(report["best"].as_f64().unwrap() > 0.0 && report["evaluations"].as_u64().unwrap() > 0);
}

#[test]
fn paper_writes_its_files_and_finds_finished_trials_again() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let report = json(&format!("paper mixed --quick --trials 1 --jobs 2 --out {out} --json"));
    assert_eq!(report["mixed"]["trials"], 1);
    assert_eq!(report["mixed"]["panels"].as_array().unwrap().len(), 2);
    for file in [
        "report.html",
        "summary.md",
        "results.json",
        "figures/mixed.svg",
        "data/mixed-cells.csv",
        "data/mixed-curves.csv",
        "data/mixed-trials.csv",
    ] {
        assert!(directory.path().join(file).is_file(), "{file} is missing");
    }
    let page = std::fs::read_to_string(directory.path().join("report.html")).unwrap();
    assert!(
        page.contains("quick tour") && page.contains("racecars paper mixed --quick --trials 1")
    );
    let text =
        String::from_utf8(run(&format!("paper mixed --quick --trials 1 --out {out}")).stdout);
    let text = text.unwrap();
    assert!(text.contains("RACE-CARS accelerates SRACOS: holds") && text.contains("report.html"));
}

#[cfg(unix)]
#[test]
fn an_interrupted_paper_says_how_to_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let child = racecars(&format!("paper fig-n500 --out {out}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until_it_computes(child.id());
    interrupt(child.id());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("run the same command again to resume"), "{stderr}");
    assert!(output.stdout.is_empty() && !directory.path().join("report.html").exists());
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let mut child = racecars("solve sphere --dim 100000 --budget 30 --json")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let status = child.wait().unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(status.success(), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}

#[test]
fn help_has_examples() {
    let help = String::from_utf8(run("--help").stdout).unwrap();
    assert!(help.contains("racecars solve ackley --dim 500"));
    for command in ["solve", "bench", "overhead", "paper"] {
        let help = String::from_utf8(run(&format!("{command} --help")).stdout).unwrap();
        assert!(help.contains("--json"));
    }
}

#[cfg(not(feature = "lm"))]
#[test]
fn a_build_without_language_models_says_so_in_help_and_in_errors() {
    let help = run("lm --help");
    assert!(help.status.success());
    assert!(String::from_utf8(help.stdout).unwrap().contains("--features lm -- lm --help"));
    assert!(error("lm").contains("--features lm"));
    assert!(error("lm serve --model x").contains("--features lm"));
}

#[cfg(feature = "lm")]
#[test]
fn settings_of_a_tuning_are_checked_before_its_model_is_loaded() {
    for (arguments, part) in [
        ("--bound=-1", "bound -1 is not a positive number"),
        ("--look-every 0", "look-every 0 is not between 1 and"),
        ("--alpha 0", "alpha 0 is not a positive number"),
        ("--dim 2000000", "dim 2000000 is not between 1 and"),
    ] {
        for command in ["lm tune", "paper lm"] {
            let line = format!("{command} --task sst2 --data none --model none {arguments}");
            let error = error(&line);
            assert!(error.contains(part), "`{line}` says:\n{error}");
        }
    }
}
