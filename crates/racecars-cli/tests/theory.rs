//! `racecars theory` as a program: the bounds, and a measured run.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::process::{Command, Output};

fn run(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_racecars"));
    command.arg("theory").args(arguments.split_whitespace()).output().unwrap()
}

fn text(arguments: &str) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &str) -> Value {
    serde_json::from_str(&text(&format!("{arguments} --json"))).unwrap()
}

#[test]
fn without_arguments_it_shows_the_bounds_of_the_papers_experiment() {
    let text = text("");
    let added = "0.084 is to be added to the failure";
    for part in
        ["n = 50, gamma = 0.9, rho = 0.01", "SRACOS, Theorem 2", "as printed", "proved", added]
    {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
    // The table lines up: every row is as wide as the rule.
    let mut lines = text.lines().skip_while(|line| !line.starts_with('─'));
    let width = lines.next().unwrap().chars().count();
    assert!(lines.take(6).all(|line| line.chars().count() == width), "{text}");
}

#[test]
fn the_json_has_every_version_and_large_numbers_as_logarithms() {
    let report = json("--dim 500 --gamma 0.95 --rho 0.001 --budget 50000");
    assert_eq!(report["sracos"]["count"], Value::Null);
    assert!(report["sracos"]["log10"].as_f64().unwrap() > 1000.0);
    let rows = report["race_cars"].as_array().unwrap();
    let versions: Vec<&str> = rows.iter().map(|row| row["version"].as_str().unwrap()).collect();
    assert_eq!(versions, ["printed", "sum", "mean", "proved"]);
    let count = |row: usize| rows[row]["count"].as_u64().unwrap();
    assert!(count(0) < count(1), "the printed sum is too large, its bound too small");
    assert!(count(3) < count(0));
    assert_eq!(report["budget"], 50_000);
}

#[test]
fn in_one_dimension_the_printed_bound_is_too_small() {
    let arguments = "--dim 1 --epsilon-measure 1e-6";
    let report = json(arguments);
    assert_eq!(report["printed_mean_holds"], false);
    let count = |row: usize| report["race_cars"][row]["count"].as_u64().unwrap();
    assert!(count(0) < count(1) && count(1) < count(2) && count(2) < count(3));
    assert!(text(arguments).contains("does not hold: 1 - rho + rho gamma^n > gamma^rho"));
}

#[test]
fn limits_are_the_bounds_of_simpler_algorithms() {
    let still = json("--rho 0 --epsilon-measure 1e-5");
    for row in still["race_cars"].as_array().unwrap() {
        assert_eq!(row["count"], still["sracos"]["count"]);
    }
    let uniform = json("--lambda 0 --epsilon-measure 1e-5");
    assert_eq!(uniform["sracos"]["count"], uniform["uniform"]["count"]);
    assert_eq!(uniform["uniform"]["count"], (20f64.ln() * 1e5).ceil() as u64);
    assert!(text("--lambda 1 --eta 0").contains("never"));
}

#[test]
fn a_run_is_measured_and_written() {
    let directory = std::env::temp_dir().join(format!("racecars-theory-{}", std::process::id()));
    let out = directory.to_str().unwrap();
    let arguments = "--measure shifted-sphere --dim 3 --budget 300 --samples 200 --seed 2";
    let shown = text(&format!("{arguments} --out {out}"));
    for part in
        ["eta range", "condition    holds", "first hit    evaluation", "theorem 3    with eta"]
    {
        assert!(shown.contains(part), "no `{part}` in:\n{shown}");
    }
    let csv = std::fs::read_to_string(directory.join("theory-shifted-sphere-n3.csv")).unwrap();
    let svg = std::fs::read_to_string(directory.join("theory-shifted-sphere-n3.svg")).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(csv.starts_with("evaluations,gap,shrinks,region_log10") && csv.lines().count() > 90);
    assert!(svg.starts_with("<svg"));

    let report = json(arguments);
    assert_eq!(report["target_points"], 200);
    assert_eq!(report["checkpoints"].as_array().unwrap().len(), csv.lines().count() - 1);
    assert_eq!(report, json(arguments), "the same seed, the same measurement");
}

#[test]
fn what_no_sample_hits_is_said() {
    let text = text("--measure rosenbrock --dim 4 --budget 50 --epsilon 1e-9");
    assert!(text.contains("no sample hit it") && text.contains("eta is not known"), "{text}");
    assert!(!text.contains("covers the target"));
}

#[test]
fn bad_values_are_refused_with_what_is_allowed() {
    let cases = [
        ("--eta 1.5", "eta = 1.5 is not from 0 to 1"),
        ("--gamma 1", "gamma = 1 is not between 0 and 1"),
        ("--rho nan", "rho = NaN is not from 0 to 1"),
        ("--delta 0", "delta = 0 is not between 0 and 1"),
        ("--dim 0", "not a whole number of at least 1"),
        ("--p 1e-9 --eta 1 --epsilon-measure 0.5", "a hypothesis that holds so much"),
        ("--epsilon 0", "epsilon = 0 is not above 0"),
        ("--epsilon-measure 2", "not a number above 0 and at most 1"),
        ("--epsilon 1 --epsilon-measure 0.5", "cannot be used with"),
        ("--measure ackley --eta 0.5", "cannot be used with"),
        ("--seed 3", "--measure"),
        ("--measure nothing", "problem `nothing` is not known"),
        ("--measure integer-sphere", "only continuous problems can be measured"),
        ("--measure ackley --epsilon -1", "unexpected argument"),
        ("--measure ackley --epsilon 0", "epsilon = 0 is not a positive number"),
        ("--measure ackley --rho 2", "rho = 2 is not from 0 to 1"),
    ];
    for (arguments, part) in cases {
        let output = run(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "`{arguments}` was accepted");
        assert!(error.contains(part), "`{arguments}` says:\n{error}");
    }
}
