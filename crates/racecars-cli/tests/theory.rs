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
    for part in [
        "n = 50, gamma = 0.9, rho = 0.01",
        "SRACOS, Theorem 2",
        "as printed",
        "proved, kappa = 34",
        "For delta alone: T = 3.4e79, by draws from the whole space",
        "volumes allow 34, geometry 33",
    ] {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
    // The table lines up: every row is as wide as the rule.
    let mut lines = text.lines().skip_while(|line| !line.starts_with('─'));
    let width = lines.next().unwrap().chars().count();
    assert!(lines.take(7).all(|line| line.chars().count() == width), "{text}");
}

#[test]
fn the_json_has_every_version_and_large_numbers_as_logarithms() {
    let report = json("--dim 500 --gamma 0.95 --rho 0.001 --budget 50000");
    assert_eq!(report["sracos"]["count"], Value::Null);
    assert!(report["sracos"]["log10"].as_f64().unwrap() > 1000.0);
    let rows = report["race_cars"].as_array().unwrap();
    let versions: Vec<&str> = rows.iter().map(|row| row["version"].as_str().unwrap()).collect();
    assert_eq!(versions, ["printed", "sum", "mean"]);
    let count = |row: usize| rows[row]["count"].as_u64().unwrap();
    assert!(count(0) < count(1), "the printed sum is too large, its bound too small");
    assert_eq!(report["theorem"]["count"], 108_338, "exact");
    assert_eq!((&report["kappa"], &report["kappa_by_geometry"]), (&91.into(), &85.into()));
    assert_eq!(report["lower_bound"]["count"], 629);
    assert_eq!(report["budget"], 50_000);
}

#[test]
fn in_one_dimension_the_printed_bound_is_too_small() {
    let arguments = "--dim 1 --epsilon-measure 1e-6";
    let report = json(arguments);
    assert_eq!(report["printed_mean_holds"], false);
    let count = |row: usize| report["race_cars"][row]["count"].as_u64().unwrap();
    let proved = report["theorem"]["count"].as_u64().unwrap();
    assert!(count(0) < count(1) && count(1) < count(2) && count(2) < proved);
    assert_eq!(report["kappa"], 152);
    assert_eq!(report["theorem"]["in_all"]["count"], proved);
    assert_eq!(report["kappa_by_geometry"], Value::Null, "not a ball");
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
fn kappa_is_free_up_to_what_volumes_allow() {
    let tiny = json("--eta 1e-26 --kappa 45");
    assert_eq!(tiny["theorem"]["count"], 5671);
    assert!((tiny["theorem"]["added_failure"].as_f64().unwrap() - 0.0553).abs() < 1e-4);
    let fewer = json("--kappa 33");
    assert!((fewer["theorem"]["added_failure"].as_f64().unwrap() - 0.954).abs() < 1e-3);
    assert!(text("--lambda 1 --kappa 33").contains("For delta alone: no T."));
}

#[test]
fn the_corollary_has_its_closed_and_exact_numbers() {
    let report = json("--corollary");
    let row = &report["rows"][0];
    assert_eq!((&row["m"], &row["kappa"]), (&6.into(), &1088.into()));
    assert_eq!((&row["weaker_form"], &row["by_halves"]), (&"2630".into(), &"2259".into()));
    assert!(report["rows"][1]["m"].as_u64() < row["m"].as_u64());
    assert!(report["rows"][2]["theta"].as_f64().unwrap() <= 0.5, "geometry");
    // Not a ball: nothing is known of its geometry.
    assert_eq!(json("--corollary --epsilon-measure 1e-78")["rows"].as_array().unwrap().len(), 2);
}

#[test]
fn geometry_allows_less_than_volume() {
    let directory = std::env::temp_dir().join(format!("racecars-shape-{}", std::process::id()));
    let report = json(&format!("--geometry --out {}", directory.to_str().unwrap()));
    let svg = std::fs::read_to_string(directory.join("theory-added-failure.svg")).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(svg.contains("kappa by geometry") && !svg.contains("NaN"));
    let rows = report.as_array().unwrap();
    let dims: Vec<u64> = rows.iter().map(|row| row["dim"].as_u64().unwrap()).collect();
    assert_eq!(dims, [5, 10, 20, 50, 500]);
    for row in rows {
        let kappa = |by: &str| row[by]["kappa"].as_u64().unwrap();
        assert!(kappa("by_geometry") <= kappa("by_volume"), "{row}");
        assert!(row["chosen"]["exhausted"].as_f64().unwrap() <= 0.025);
    }
}

#[test]
fn simulated_runs_break_the_printed_theorem_and_are_repeatable() {
    let arguments = "--simulate --trials 60 --seed 4";
    let rows = json(arguments);
    assert_eq!(rows, json(arguments));
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 9);
    assert_eq!((&rows[0]["queries"], &rows[2]["queries"]), (&6512.into(), &8201.into()));
    assert!(rows[0]["failure"].as_f64().unwrap() > 0.2, "delta is 0.05");
    assert!(text("--simulate --trials 20").contains("tau first"));
}

#[test]
fn failures_of_the_assumption_are_counted() {
    let arguments = "--tau sphere --dim 4 --budget 200 --rho 0.1 --trials 3";
    let report = json(arguments);
    assert_eq!(report["runs"].as_array().unwrap().len(), 3);
    assert_eq!(report, json(arguments));
    let shown = text(&format!("{arguments} --uncertain 4"));
    for part in ["tau before the first hit", "u = 4", "shrinks      before it: "] {
        assert!(shown.contains(part), "no `{part}` in:\n{shown}");
    }
}

#[test]
fn a_run_is_measured_and_written() {
    let directory = std::env::temp_dir().join(format!("racecars-theory-{}", std::process::id()));
    let out = directory.to_str().unwrap();
    let arguments = "--measure shifted-sphere --dim 3 --budget 300 --samples 200 --seed 2";
    let shown = text(&format!("{arguments} --out {out}"));
    for part in
        ["eta range", "condition    holds", "first hit    evaluation", "theorem      with eta"]
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
        ("--kappa 35", "kappa = 35 is above 34"),
        ("--simulate --gamma 0.5", "cannot be used with"),
        ("--simulate --corollary", "cannot be used with"),
        ("--geometry --trials 5", "cannot be used with"),
        ("--corollary --eta 0.9 --epsilon-measure 0.9", "is below m"),
        ("--corollary --delta nan", "delta = NaN is not between 0 and 1"),
        ("--corollary --lambda 0", "eta and lambda must be positive"),
        ("--corollary --lambda 1e-300", "is too large: gamma = exp(-1 / (m n)) would be 1"),
        ("--tau integer-sphere", "only continuous problems"),
        ("--uncertain 2", "--tau"),
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
