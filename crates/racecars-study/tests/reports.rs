//! Reports and exports of studies: made-up ones of known shape, and real ones.

#![allow(clippy::unwrap_used)]

#[path = "../examples/synthetic/journal.rs"]
mod journal;

use journal::{Program, Study};
use racecars::{Direction, Space};
use racecars_study::export::{Format, export};
use racecars_study::report::{self, Digest};
use racecars_study::{Interrupt, Settings};
use serde_json::{Value, json};
use std::path::Path;

fn data(folder: &Path) -> Value {
    let digest = Digest::read(folder).unwrap();
    serde_json::from_str(&report::data(folder, digest.as_ref())).unwrap()
}

fn made_up(study: &Study, program: Program<'_>) -> Value {
    let folder = tempfile::tempdir().unwrap();
    study.write(folder.path(), program).unwrap();
    data(folder.path())
}

fn titles(data: &Value) -> Vec<&str> {
    data["warnings"].as_array().unwrap().iter().map(|w| w["title"].as_str().unwrap()).collect()
}

fn real(folder: &Path, settings: &str) {
    let settings = Settings::parse(settings).unwrap();
    let mut study = racecars_study::Study::open(folder, &settings, folder).unwrap();
    study.run(&Interrupt::new(), &mut |_| {}).unwrap();
}

fn square(_: u64, p: &[f64]) -> (Value, Option<&'static str>) {
    (json!({ "value": p.iter().map(|x| (x - 2.0).powi(2)).sum::<f64>() }), None)
}

#[test]
fn the_region_is_found_by_replay_and_shrinks() {
    let found = made_up(&Study::new(Space::cube(3, -10.0, 10.0).unwrap(), 400), &square);
    assert_eq!(found["region"]["source"], "region");
    let shares: Vec<f64> = serde_json::from_value(found["region"]["share"].clone()).unwrap();
    assert!(shares.len() > 20 && shares[0] > 0.9, "{shares:?}");
    assert!(shares[shares.len() / 2] < 0.5 && shares[shares.len() - 1] < 0.05, "{shares:?}");
    assert_eq!(found["state"]["told"], 400);
    assert!(found["best"]["value"].as_f64().unwrap() < 0.1);
    let mut study = Study::new(Space::cube(3, -10.0, 10.0).unwrap(), 400);
    study.algorithm = "random";
    assert_eq!(made_up(&study, &square)["region"]["source"], "proposals");
}

#[test]
fn the_region_of_a_deterministic_study_is_found_too() {
    let folder = tempfile::tempdir().unwrap();
    real(
        folder.path(),
        r#"command = ["sh", "-c", "sleep 0.0$(({trial} % 3)); echo '{x}'"]
           budget = 150
           jobs = 3
           algorithm = "race-cars"
           deterministic = true
           [parameters]
           x = "0.001:1:log""#,
    );
    let found = data(folder.path());
    assert_eq!(
        (&found["region"]["source"], &found["state"]["told"]),
        (&"region".into(), &150.into())
    );
    assert_eq!(found["state"]["stop"], "evaluations");
    assert!(found["best"]["command"].as_str().unwrap().contains("sh -c"));
    assert!(found["study"]["run"].as_str().unwrap().contains("-p x=0.001:1:log --budget 150"));
}

#[test]
fn warnings_name_the_edge_the_idle_parameter_and_where_failures_are() {
    let space =
        Space::builder().real("x", 0.0, 1.0).real("idle", 0.0, 1.0).integer("n", 1, 9).build();
    let program: Program<'_> = &|_, p| match p[2] {
        n if n >= 6.0 => (json!({"failed": "exit", "detail": "exit code 3"}), Some("</script><b>")),
        n => (json!({"value": p[0] + (n - 2.0).abs() / 9.0}), None),
    };
    let study = Study::new(space.unwrap(), 800);
    let found = made_up(&study, program);
    let titles = titles(&found);
    assert!(titles.contains(&"idle has little effect or none"), "{titles:?}");
    assert!(titles.contains(&"The best point is at the edge of a range"), "{titles:?}");
    assert!(titles.contains(&"Failures where n is above 6"), "{titles:?}");
    let edge = found["warnings"][0]["text"].as_str().unwrap();
    assert!(found["warnings"].to_string().contains("x (low end, 0)"), "{edge}");
    assert_eq!(found["failures"]["kinds"][0]["kind"], "exit");
    let folder = tempfile::tempdir().unwrap();
    study.write(folder.path(), program).unwrap();
    let out = folder.path().join("page.html");
    report::write(folder.path(), &out).unwrap();
    let page = std::fs::read_to_string(out).unwrap();
    assert_eq!(page.matches("</script>").count(), 2, "what programs print is no markup");
}

#[test]
fn edges_are_only_named_of_parameters_that_matter() {
    let idle = (0..6).map(|i| format!("idle{i}"));
    let space =
        idle.fold(Space::builder().real("x", 0.0, 1.0), |space, name| space.integer(name, 1, 4));
    let program: Program<'_> = &|_, p| (json!({"value": p[0]}), None);
    let found = made_up(&Study::new(space.build().unwrap(), 200), program);
    let at_edge = |(name, value): (&String, &Value)| name != "x" && (value == 1 || value == 4);
    assert!(found["best"]["point"].as_object().unwrap().iter().any(at_edge));
    let shares: Vec<f64> = (found["parameters"].as_array().unwrap().iter())
        .map(|parameter| parameter["importance"].as_f64().unwrap())
        .collect();
    assert_eq!(found["parameters"][0]["name"], "x");
    assert!(shares[0] > 5.0 * shares[1..].iter().sum::<f64>(), "{shares:?}");
    let edges =
        found["warnings"].as_array().unwrap().iter().find(|w| w["level"] == "warn").unwrap();
    assert_eq!(edges["title"], "The best point is at the edge of a range");
    assert!(edges["text"].as_str().unwrap().starts_with("x (low end, 0). "), "{edges}");
}

#[test]
fn warnings_say_when_nothing_can_be_trusted() {
    let space = || Space::cube(2, 0.0, 1.0).unwrap();
    let failed: Program<'_> = &|_, _| (json!({"failed": "timeout", "detail": "over"}), None);
    let found = made_up(&Study::new(space(), 30), failed);
    assert_eq!(titles(&found), ["Every evaluation failed"]);
    assert_eq!(found["best"], Value::Null);
    let same: Program<'_> = &|_, _| (json!({"value": 1.0}), None);
    let found = made_up(&Study::new(space(), 60), same);
    assert!(titles(&found).contains(&"Every evaluation gave the same value"));
    let broken: Program<'_> = &|_, p| (json!({"infeasible": 1.0 + p[0]}), None);
    let found = made_up(&Study::new(space(), 60), broken);
    assert!(titles(&found).contains(&"No feasible point yet"));
    assert!(found["best"]["violation"].as_f64().unwrap() < 1.1);
}

#[test]
fn a_night_between_two_sessions_does_not_count() {
    let mut study = Study::new(Space::cube(2, 0.0, 1.0).unwrap(), 100);
    (study.interruption, study.direction) = (Some(40), Direction::Maximize);
    let found = made_up(&study, &square);
    let seconds = found["state"]["seconds"].as_f64().unwrap();
    assert!((15.0..40.0).contains(&seconds), "{seconds} s for 100 x 0.8 s on four workers");
    assert_eq!(found["timeline"]["resumed"].as_array().unwrap().len(), 1);
    assert_eq!(found["study"]["direction"], "maximize");
    let values = found["improvements"].as_array().unwrap();
    assert!(values.is_sorted_by(|a, b| a[2].as_f64() < b[2].as_f64()), "it climbs");
}

#[test]
fn exports_have_every_trial_and_its_numbers_to_the_digit() {
    let space = Space::builder()
        .log_real("rate", 1e-5, 1.0)
        .reals("w", 2, 0.0, 1.0)
        .categorical("mode", ["a, b", "c\"d"])
        .build()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut study = Study::new(space, 50);
    study.is_finished = false;
    let program: Program<'_> = &|trial, p| match trial % 5 {
        0 => (json!({"failed": "exit", "detail": "exit code 1, at once"}), None),
        1 => (json!({"infeasible": 0.25, "value": 3.0}), None),
        _ => (json!({"value": p[1] / 3.0}), None),
    };
    study.write(folder.path(), program).unwrap();
    let export_to = |format| {
        let mut out = Vec::new();
        let exported = export(folder.path(), format, &mut out).unwrap();
        assert_eq!((exported.trials, exported.damaged.len()), (53, 0));
        String::from_utf8(out).unwrap()
    };
    let document: Value = serde_json::from_str(&export_to(Format::Json)).unwrap();
    let trials = document["trials"].as_array().unwrap();
    let count = |state| trials.iter().filter(|trial| trial["state"] == state).count();
    assert_eq!(
        [count("value"), count("infeasible"), count("exit"), count("running")],
        [30, 10, 10, 3]
    );
    let table = export_to(Format::Csv);
    let mut lines = table.lines();
    let heading = "trial,state,value,violation,detail,attempts,seconds,worker,asked,ended";
    assert_eq!(lines.next().unwrap(), format!("{heading},rate,w[0],w[1],mode"));
    for (line, trial) in lines.zip(trials) {
        let params = &trial["params"];
        let mode = params["mode"].as_str().unwrap().replace('"', "\"\"");
        let end = format!(",{},{},{},\"{mode}\"", params["rate"], params["w"][0], params["w"][1]);
        assert!(line.ends_with(&end), "{line} has not {end}");
        assert_eq!(line.contains("\"exit code 1, at once\""), trial["state"] == "exit");
    }
    assert_eq!(export_to(Format::Optuna).matches("\"op_code\":4").count(), 53);
}

#[test]
fn a_table_has_no_formulas_and_its_texts_can_be_had_back() {
    let texts = ["=HYPERLINK(1)", "+1+1", "-2", "-x", "@sum", "'", "\t=1", "\r=1", "a=b"];
    let space = Space::builder().categorical("mode", texts).real("x", -2.0, -1.0).build();
    let folder = tempfile::tempdir().unwrap();
    let program: Program<'_> = &|trial, p| match trial % 3 {
        0 => (json!({"failed": "exit", "detail": "=cmd|' /C calc'!A0"}), None),
        _ => (json!({"value": p[1]}), None),
    };
    let mut study = Study::new(space.unwrap(), 200);
    study.algorithm = "random";
    study.write(folder.path(), program).unwrap();
    let export_to = |format| {
        let mut out = Vec::new();
        export(folder.path(), format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let document: Value = serde_json::from_str(&export_to(Format::Json)).unwrap();
    let trials = document["trials"].as_array().unwrap();
    let table = export_to(Format::Csv);
    let mut seen = std::collections::BTreeSet::new();
    for (line, trial) in table.lines().skip(1).zip(trials) {
        let cells: Vec<&str> = line.split(',').collect();
        let unquoted = |cell: &str| cell.trim_matches('"').to_string();
        let [detail, mode, x] = [4, 10, 11].map(|i| unquoted(cells[i]));
        let text = |cell: &str| cell.strip_prefix('\'').unwrap_or(cell).to_string();
        let wanted = trial["params"]["mode"].as_str().unwrap();
        assert_eq!(text(&mode), wanted);
        assert_eq!(x, trial["params"]["x"].to_string(), "a number stays one");
        assert_eq!(text(&detail), trial["detail"].as_str().unwrap_or(""));
        assert!(!detail.starts_with('='), "{line}");
        assert!(wanted == "-2" || !mode.starts_with(['=', '+', '-', '@', '\t', '\r']), "{line}");
        seen.insert(wanted.to_string());
    }
    assert_eq!(seen.len(), texts.len(), "{seen:?}");
}

#[test]
fn a_damaged_line_is_left_out_and_said() {
    let folder = tempfile::tempdir().unwrap();
    Study::new(Space::cube(2, 0.0, 1.0).unwrap(), 50).write(folder.path(), &square).unwrap();
    let path = folder.path().join("journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("{\"tell\":{\"trial\":3,", "{\"tell\":{\"tri", 1)).unwrap();
    let found = data(folder.path());
    assert_eq!((&found["state"]["told"], &found["state"]["pending"]), (&49.into(), &1.into()));
    assert_eq!(titles(&found)[0], "The journal is damaged");
}

#[test]
fn fresh_values_of_leading_points_give_a_recommendation() {
    let folder = tempfile::tempdir().unwrap();
    real(
        folder.path(),
        r#"command = ["sh", "-c", "echo $(( {n} + {seed} % 7 ))"]
           budget = 30
           jobs = 2
           confirm = 3
           [parameters]
           n = "1..40""#,
    );
    let found = data(folder.path());
    assert_eq!(found["recommended"]["evaluations"], 3);
    assert!(found["recommended"]["command"].as_str().unwrap().contains("echo"));
}

/// 32-bit numbers from base64, least byte first.
fn numbers(text: &Value) -> Vec<u32> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<u32> = (text.as_str().unwrap().trim_end_matches('=').chars())
        .map(|digit| DIGITS.find(digit).unwrap() as u32)
        .collect();
    let bits: Vec<u32> =
        digits.iter().flat_map(|digit| (0..6).rev().map(move |i| digit >> i & 1)).collect();
    let bytes: Vec<u8> = bits
        .chunks_exact(8)
        .map(|byte| byte.iter().fold(0, |sum, bit| 2 * sum + *bit as u8))
        .collect();
    bytes.chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().unwrap())).collect()
}

#[test]
fn the_table_has_every_trial_or_the_best_and_an_even_choice() {
    let space =
        || Space::builder().real("x", -4.0, 4.0).categorical("m", ["a", "b"]).build().unwrap();
    let program: Program<'_> = &|trial, p| match trial % 10 {
        3 => (json!({"failed": "exit", "detail": "exit code 3"}), None),
        4 => (json!({"infeasible": 0.5}), None),
        _ => (json!({"value": (p[0] - 1.0).powi(2) + 3.0}), None),
    };
    let found = made_up(&Study::new(space(), 300), program);
    let table = &found["table"];
    assert_eq!((&table["rows"], &table["parameters"]), (&300.into(), &2.into()));
    let (trials, places) = (numbers(&table["trial"]), numbers(&table["places"]));
    let floats = |name: &str| -> Vec<f32> {
        numbers(&table[name]).into_iter().map(f32::from_bits).collect()
    };
    let (values, violations) = (floats("value"), floats("violation"));
    assert_eq!((trials.len(), places.len()), (300, 600));
    let index =
        found["parameters"].as_array().unwrap().iter().position(|p| p["name"] == "x").unwrap();
    for (row, trial) in trials.iter().enumerate() {
        let x = f64::from(f32::from_bits(places[index * 300 + row])) * 8.0 - 4.0;
        match trial % 10 {
            3 => assert!(values[row].is_nan()),
            4 => assert!(values[row].is_nan() && violations[row] == 0.5),
            _ => assert!((f64::from(values[row]) - (x - 1.0).powi(2) - 3.0).abs() < 1e-4),
        }
    }
    // The best is no distance away, and the other distances are exact where values are nearly equal.
    let sample = &found["sample"];
    let gaps = sample["gap"].as_array().unwrap();
    assert!(gaps.iter().flatten_numbers().all(|gap| gap >= 0.0));
    assert_eq!(gaps.iter().flatten_numbers().reduce(f64::min), Some(0.0));
    assert_eq!(found["improvements"].as_array().unwrap().last().unwrap()[3], 0.0);
    assert_eq!(
        (&found["study"]["objective"], &found["study"]["repeat"]),
        (&"last".into(), &1.into())
    );

    let mut long = Study::new(space(), 60_000);
    long.algorithm = "random";
    let found = made_up(&long, program);
    let rows = found["table"]["rows"].as_u64().unwrap();
    assert!((20_000..60_000).contains(&rows), "{rows}");
    let trials = numbers(&found["table"]["trial"]);
    assert!(trials.contains(&(found["best"]["trial"].as_u64().unwrap() as u32)));
    assert!(found.to_string().len() < 1_700_000, "{}", found.to_string().len());
}

trait Numbers {
    fn flatten_numbers(self) -> impl Iterator<Item = f64>;
}

impl<'a, I: Iterator<Item = &'a Value>> Numbers for I {
    fn flatten_numbers(self) -> impl Iterator<Item = f64> {
        self.filter_map(Value::as_f64)
    }
}

#[test]
fn failures_are_listed_with_what_they_go_with_and_chance_is_not() {
    let space = || {
        let space = Space::builder().real("x", 0.0, 1.0).categorical("m", ["a", "b", "c"]);
        space.integer("idle", 1, 9).build().unwrap()
    };
    let mut study = Study::new(space(), 500);
    study.algorithm = "random";
    let exit = || (json!({"failed": "exit", "detail": "exit code 3"}), None);
    let found = made_up(&study, &|_, p| match p {
        [x, m, _] if *m == 2.0 || *x > 0.8 => exit(),
        _ => (json!({"value": p[0]}), None),
    });
    let listed = found["failures"]["associations"].as_array().unwrap();
    let names: Vec<&str> = listed.iter().map(|part| part["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["m", "x"]);
    assert_eq!(listed[0]["part"], "= c");
    assert_eq!(listed[0]["failed"], listed[0]["count"]);
    let part = listed[1]["part"].as_str().unwrap();
    assert!(part.starts_with("above 0.79") || part.starts_with("above 0.8"), "{part}");
    let counts = ["count", "count_elsewhere"].map(|key| listed[1][key].as_u64().unwrap());
    assert_eq!(counts.iter().sum::<u64>(), 500);
    let chance = made_up(&study, &|trial, p| match trial % 7 {
        0 => exit(),
        _ => (json!({"value": p[0]}), None),
    });
    assert_eq!(chance["failures"]["associations"], json!([]));
}

#[test]
fn known_points_are_counted_and_named_if_they_are_better() {
    let folder = tempfile::tempdir().unwrap();
    let settings = |value: &str| {
        format!(
            "command = ['echo', '{{x}}', '{{y}}', '{{x}}']\nbudget = 5\njobs = 1\nknown = [{{params = {{x = 1, y = \
             7}}, value = {value}}}]\n[parameters]\nx = '1:2'\ny = 7"
        )
    };
    real(&folder.path().join("a"), &settings("-3"));
    real(&folder.path().join("b"), &settings("30"));
    let known = |name: &str| data(&folder.path().join(name))["known"].clone();
    let better = json!({"value": -3.0, "point": "x=1"});
    assert_eq!(known("a"), json!({"count": 1, "better": better}));
    assert_eq!(known("b"), json!({"count": 1, "better": null}));
    let best = data(&folder.path().join("a"))["best"].clone();
    assert_eq!(best["assignments"][1], json!(["y", "7", null]));
    assert_eq!(best["point"]["y"], 7);
}
