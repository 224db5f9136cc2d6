//! `racecars problem` as a program: the list, a description that suffices to evaluate, values.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Runs the command with this standard input.
fn run(arguments: &str, input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_racecars"))
        .arg("problem")
        .args(arguments.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read may be gone before this is written.
    child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
    child.wait_with_output().unwrap()
}

fn text(arguments: &str, input: &str) -> String {
    let output = run(arguments, input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &str, input: &str) -> Value {
    serde_json::from_str(&text(&format!("{arguments} --json"), input)).unwrap()
}

fn error(arguments: &str, input: &str) -> String {
    let output = run(arguments, input);
    assert!(!output.status.success() && output.stdout.is_empty(), "`{arguments}` was accepted");
    String::from_utf8(output.stderr).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

#[test]
fn without_a_name_all_problems_are_listed() {
    let list = text("", "");
    let catalogue = json("", "");
    for part in ["problems", "prefixes"] {
        for name in catalogue[part].as_array().unwrap() {
            assert!(list.contains(name.as_str().unwrap()), "{name} is missing in:\n{list}");
        }
    }
    for name in catalogue["problems"].as_array().unwrap() {
        text(&format!("{} --dim 4", name.as_str().unwrap()), "");
    }
}

#[test]
fn a_description_suffices_to_evaluate_elsewhere() {
    let problem = json("shifted-rotated-sphere --dim 3 --seed 5", "");
    let made = &problem["transformation"];
    assert_eq!((&made["function"], &made["jumps"]), (&json!("sphere"), &json!(false)));
    assert_eq!(problem["space"]["coordinates"][0]["count"], 3);
    let x = [1.0, -2.0, 3.0];
    let offset: Vec<f64> =
        numbers(&problem["minimizer"]).iter().zip(x).map(|(o, x)| x - o).collect();
    let center = made["center"].as_f64().unwrap();
    let mut expected = 0.0;
    for row in made["rotation"].as_array().unwrap() {
        let turned: f64 = numbers(row).iter().zip(&offset).map(|(r, o)| r * o).sum();
        expected += (center + turned - 0.2).powi(2);
    }
    let values = json("shifted-rotated-sphere --dim 3 --seed 5 --at -", "[1, -2, 3]\n");
    assert!((numbers(&values["values"])[0] - expected).abs() < 1e-9);
}

#[test]
fn the_value_at_the_minimizer_is_the_optimum() {
    for name in ["stepped-shifted-levy", "mixed-ackley", "integer-sphere", "mixed-categorical"] {
        let arguments = format!("{name} --dim 6 --seed 2");
        let problem = json(&arguments, "");
        let point = problem["minimizer"].to_string();
        let value: f64 = text(&format!("{arguments} --at -"), &point).trim().parse().unwrap();
        assert!((value - problem["optimum"].as_f64().unwrap()).abs() < 1e-9, "{name}: {value}");
    }
}

#[test]
fn points_may_be_given_by_name_and_in_a_file() {
    let named = r#"{"x": [0.2, 0.2], "c": ["a", "c"]}"#;
    let values = text("mixed-categorical --dim 4 --at -", &format!("{named}\n\n[0.2,1,0,1]\n"));
    assert_eq!(values.lines().collect::<Vec<_>>(), ["1", "0.6400000000000001"]);
    let path = std::env::temp_dir().join(format!("racecars-points-{}", std::process::id()));
    std::fs::write(&path, named).unwrap();
    let value = text(&format!("mixed-categorical --dim 4 --at {}", path.display()), "");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(value.trim(), "1");
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let cases = [
        ("nothing", "", "problem `nothing` is not known; there are ackley"),
        ("--at -", "", "<NAME>"),
        ("ackley --dim 2 --at -", "[1,2]\n[1,2,3]", "line 2: the point has 3 coordinates"),
        ("ackley --dim 2 --at -", "[1,11]", "line 1: coordinate `x[1]` is 11, not a number from"),
        ("ackley --dim 2 --at -", "1 2", "line 1: not a JSON array of numbers"),
        ("ackley --dim 2 --at -", r#"{"y": [1,2]}"#, "line 1: no coordinate is named `y`"),
        ("ackley --dim 2 --at -", "\n", "- holds no points"),
        ("ackley --dim 2 --at /nowhere/file", "", "cannot read /nowhere/file"),
    ];
    for (arguments, input, part) in cases {
        let error = error(arguments, input);
        assert!(error.contains(part), "`{arguments}` says:\n{error}");
    }
}
