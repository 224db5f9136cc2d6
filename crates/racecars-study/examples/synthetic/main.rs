//! Writes the journal of a study that never ran, for looking at reports: `cargo run --example
//! synthetic -- KIND FOLDER`. Kinds: small, large (a gigabyte), wide, long, names, failing, maximize, halfway,
//! begun.

mod journal;

use journal::{Program, Study};
use racecars::{Direction, Space};
use serde_json::json;
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(kind), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: synthetic KIND FOLDER".into());
    };
    let folder = Path::new(&folder);
    let mixed = || {
        Space::builder()
            .real("x", -5.0, 5.0)
            .log_real("rate", 1e-5, 1e-1)
            .integer("layers", 1, 12)
            .categorical("mode", ["fast", "careful", "wild"])
            .boolean("cache")
            .levels("batch", [16, 32, 64, 128])
            .build()
    };
    let tuned: Program<'_> = &|_, p| {
        let mode = [0.4, 0.0, 1.1][p[3] as usize % 3];
        let value = (p[0] - 1.7).powi(2) + (p[1] - (-7.0)).abs() + 0.2 * (p[2] - 5.0).abs() + mode;
        (json!({ "value": value }), None)
    };
    let mut study;
    match kind.as_str() {
        "small" => {
            let space = Space::builder().real("x", -5.0, 5.0).real("y", 0.0, 3.0).build()?;
            study = Study::new(space, 120);
            let banana =
                |_, p: &[f64]| (p[0] - 1.0).powi(2) + 10.0 * (p[1] - 0.2 * p[0].powi(2)).powi(2);
            study.write(folder, &|t, p| (json!({"value": banana(t, p)}), None))?;
        }
        "large" | "wide" => {
            let evaluations = if kind == "large" { 100_000 } else { 3000 };
            study = Study::new(Space::cube(500, -10.0, 10.0)?, evaluations);
            (study.jobs, study.milliseconds) = (16, 90);
            let weighed = |p: &[f64]| -> f64 {
                p.iter().enumerate().map(|(i, x)| (x - 3.0).powi(2) / (1.0 + i as f64 / 10.0)).sum()
            };
            study.write(folder, &|_, p| (json!({"value": weighed(p)}), None))?;
        }
        "long" => {
            study = Study::new(mixed()?, 100_000);
            (study.jobs, study.milliseconds, study.algorithm) = (8, 40, "random");
            study.write(folder, tuned)?;
        }
        "names" => {
            let city =
                |i: usize| format!("{}-{i}", ["Ulm", "Aachen", "Wolfenbuettel", "Kiel"][i % 4]);
            let space = Space::builder()
                .categorical("city", (0..30).map(city))
                .categorical("solver", ["lbfgs", "newton-cholesky", "saga", "liblinear", "sag"])
                .real("x", 0.0, 1.0)
                .build()?;
            study = Study::new(space, 400);
            study.write(folder, &|_, p| match p[1] == 2.0 && p[2] > 0.3 {
                true => (json!({"failed": "exit", "detail": "exit code 1"}), None),
                false => (json!({"value": 7.0 + (p[0] - 11.0).abs() / 9.0 + p[2].powi(4)}), None),
            })?;
        }
        "failing" => {
            study = Study::new(mixed()?, 600);
            (study.interruption, study.jobs) = (Some(250), 6);
            study.write(folder, &|trial, p| match () {
                () if p[0] > 2.8 || p[3] == 2.0 && trial % 3 > 0 => (
                    json!({"failed": "exit", "detail": "exit code 139"}),
                    Some("loading model\nTraceback (most recent call last):\n  File \"sim.py\", line 12\nValueError: x <out> of range & broken"),
                ),
                () if trial % 17 == 3 => (json!({"failed": "timeout", "detail": "60 s"}), None),
                () if p[2] > 9.0 => (json!({"infeasible": p[2] - 9.0, "value": 3.0}), None),
                () => tuned(trial, p),
            })?;
        }
        "maximize" => {
            study = Study::new(mixed()?, 2000);
            study.direction = Direction::Maximize;
            study.write(folder, &|t, p| {
                (json!({"value": -tuned(t, p).0["value"].as_f64().unwrap_or(0.0)}), None)
            })?;
        }
        "halfway" => {
            study = Study::new(mixed()?, 300);
            (study.budget, study.is_finished) = (1000, false);
            study.write(folder, tuned)?;
        }
        "begun" => {
            study = Study::new(mixed()?, 0);
            (study.budget, study.is_finished) = (100, false);
            study.write(folder, tuned)?;
        }
        other => return Err(format!("`{other}` is not a kind").into()),
    }
    Ok(())
}
