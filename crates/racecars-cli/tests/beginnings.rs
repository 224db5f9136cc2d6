//! What a study can begin with, and small things of its command: known points, other studies, start points,
//! fixed parameters, flags, workers' numbers, patience.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::Folder;
use serde_json::{Value, json};

/// (n - 12)^2, with whatever else is passed.
const SQUARE: &str = "-- sh -c 'echo $((({n} - 12) * ({n} - 12)))'";

#[test]
fn the_folder_is_study_in_every_command() {
    let folder = Folder::new();
    folder.text(&format!("run -p n=1..99 --budget 5 --jobs 1 --study s {SQUARE}"));
    assert_eq!(folder.text("export --study s --to csv"), folder.text("export s --to csv"));
    folder.text("report --study s --out a.html");
    folder.text("report s --out b.html");
    assert!(folder.read("a.html").len() > 10_000 && folder.read("b.html").len() > 10_000);
    assert!(folder.error("export s --study s --to csv").contains("cannot be used with"));
    assert!(folder.error("report --study none").contains("there is no study in none"));
    assert_eq!(folder.json("ask --study s --budget 6")[0]["trial"], 5);
    assert_eq!(folder.json(r#"tell --study s '{"trial":5,"value":1}'"#)["evaluations"], 6);
    assert!(folder.text("check --study s").contains("outcome      "));
    for command in ["run", "check", "ask", "tell", "export", "report", "watch"] {
        let help = folder.text(&format!("{command} --help"));
        assert!(help.contains("--study <DIR>"), "{command}: {help}");
    }
}

#[test]
fn fixed_parameters_reach_the_program_reports_and_exports_and_are_not_searched() {
    let folder = Folder::new();
    let run = "run -p n=1..99 -p y=5 -p mode=fast --budget 6 --jobs 1 --json";
    let program = "-- sh -c 'echo {y} {mode} >> seen; echo {n}'";
    let summary = folder.json(&format!("{run} {program}"));
    assert_eq!(folder.read("seen"), "5 fast\n".repeat(6));
    assert_eq!(summary["best"]["params"]["y"], 5);
    let plan = folder.plan("racecars-study");
    assert_eq!(plan["fixed"], json!({"y": 5, "mode": "fast"}));
    assert_eq!(plan["space"].to_string().matches("\"name\"").count(), 1);
    let csv = folder.text("export --to csv");
    let (header, row) = (csv.lines().next().unwrap(), csv.lines().nth(1).unwrap());
    assert!(header.ends_with(",n,y,mode") && row.ends_with(",5,fast"), "{csv}");
    let trials = folder.json("export --to json");
    assert_eq!(trials["trials"][3]["params"]["mode"], "fast");
    assert!(trials["trials"][3]["params"]["n"].is_i64());
    let optuna = folder.text("export --to optuna");
    assert!(optuna.contains(r#"\"choices\":[\"fast\"]"#), "{optuna}");
    assert!(folder.read("racecars-study/report.html").contains(r#"["mode","fast",null]"#));
    // The same command resumes, another value does not.
    assert_eq!(folder.json(&format!("{run} {program}"))["evaluations"], 6);
    let other = folder.error(&format!("{} {program}", run.replace("y=5", "y=6")));
    assert!(other.contains("the fixed parameters are y=6,mode=fast, but the study in"), "{other}");
    // The same in a study file, and by `ask`.
    folder
        .write("study.toml", "command = ['echo', '{n}', '{y}']\n[parameters]\nn = '1..9'\ny = 2.5");
    assert!(folder.text("check --study other").contains("fixed        y=2.5"));
    assert_eq!(folder.json("ask --study other")[0]["params"]["y"], 2.5);
    assert!(folder.error("run -p y=5 --study third -- echo {y}").contains("nothing to search"));
}

#[test]
fn flags_appear_or_not() {
    let folder = Folder::new();
    folder.write("args.sh", "echo $# $* >> seen; echo 1");
    let run = "run -p fast=bool --budget 2 --jobs 1";
    folder.text(&format!("{run} -- sh args.sh a {{fast?--fast}} b"));
    let mut seen: Vec<String> = folder.read("seen").lines().map(String::from).collect();
    seen.sort();
    assert_eq!(seen, ["2 a b", "3 a --fast b"]);
    folder.write("in.template", "mode = {fast?quick}\n");
    folder.text(&format!("{run} --study t --template in.template --keep all -- sh -c 'echo 1'"));
    let texts = [0, 1].map(|trial| folder.read(&format!("t/trials/{trial}/in")));
    assert!(texts.contains(&"mode = quick\n".into()) && texts.contains(&"mode = \n".into()));
    let error = folder.error("run -p x=0:1 --study u -- echo {x?--fast}");
    assert!(error.contains("a flag that appears or not is one like x=bool"), "{error}");
}

#[test]
fn no_two_evaluations_under_way_have_the_same_worker() {
    let folder = Folder::new();
    // A folder can be made once: a second worker of the same number would fail.
    folder.write(
        "work.sh",
        "[ \"$1\" = \"$RACECARS_WORKER\" ] || exit 3\nmkdir gpu$1 || exit 4\nsleep 0.02\nrmdir gpu$1\necho $1 >> seen\necho $2",
    );
    let run = "run -p n=1..9999 --budget 40 --jobs 4 --json -- sh work.sh {worker} {n}";
    let summary = folder.json(run);
    assert_eq!((&summary["failures"], &summary["evaluations"]), (&json!(0), &json!(40)));
    let seen = folder.read("seen");
    let mut workers: Vec<&str> = seen.lines().collect();
    workers.sort_unstable();
    workers.dedup();
    assert_eq!(workers, ["0", "1", "2", "3"]);
    assert!(
        folder.error("run -p worker=0:1 -- echo {worker}").contains("stands for something else")
    );
}

#[test]
fn known_points_come_from_a_table_such_as_an_export() {
    let folder = Folder::new();
    let run = "run -p n=1..9999 -p m=a,b --jobs 1 --json";
    let program = "-- sh -c ': {m}; echo $((({n} - 12) * ({n} - 12)))'";
    folder.json(&format!("{run} --budget 20 --study old {program}"));
    folder.text("export --study old --to csv --out old.csv");
    folder.json(&format!("{run} --budget 3 --study new --known old.csv {program}"));
    let known = folder.plan("new")["known"].clone();
    assert_eq!(known.as_array().unwrap().len(), 20);
    let trials = folder.json("export --study old --to json");
    for (known, trial) in known.as_array().unwrap().iter().zip(trials["trials"].as_array().unwrap())
    {
        assert_eq!((&known["params"], &known["value"]), (&trial["params"], &trial["value"]));
    }
    folder.write("by-hand.csv", "m,n,note,value\nb,12,\"it, works\",0\na,13,,1\n");
    let flags = "--budget 2 --study hand --known by-hand.csv --start n=40";
    let summary = folder.json(&format!("{run} {flags} {program}"));
    assert_eq!(summary["best_known"]["params"], json!({"n": 12, "m": "b"}));
    // What a start point leaves out is as in the best known point.
    assert_eq!(folder.plan("hand")["start"], json!([{"n": 40, "m": "b"}]));
    folder.write("bad.csv", "m,n,value\nb,20000,0\n");
    let error = folder.error(&format!("{run} --study bad --known bad.csv {program}"));
    assert!(error.contains("parameter `n`: 20000 is not"), "{error}");
    folder.write("bad.csv", "m,value\nb,0\n");
    let error = folder.error(&format!("{run} --study bad --known bad.csv {program}"));
    assert!(error.contains("no column for the parameter `n`, in"), "{error}");
}

#[test]
fn trials_of_another_study_are_taken_over_by_name() {
    let folder = Folder::new();
    let old = "run -p n=1..100 -p k=1..3 --budget 30 --jobs 1 --study old --json";
    let program = "-- sh -c '[ {n} -gt 5 ] || exit 3; echo $((({n} - 12) * ({n} - 12) + {k}))'";
    folder.json(&format!("{old} {program}"));
    let trials = folder.json("export --study old --to json")["trials"].clone();
    let trials = trials.as_array().unwrap();
    let is_inside = |trial: &&Value| {
        (1..=40).contains(&trial["params"]["n"].as_i64().unwrap()) && trial["state"] == "value"
    };
    let inside = trials.iter().filter(is_inside).count();
    let failed = trials.iter().filter(|trial| trial["state"] == "exit").count();
    assert!(inside > 0 && inside + failed < 30, "some are outside");
    // A range changed, a parameter was added and one removed.
    let new = "run -p n=1..40 -p lr=1e-3:1:log --budget 3 --jobs 1 --study new --json --from old";
    let program = "-- sh -c 'echo {n}; : {lr}; echo $((({n} - 12) * ({n} - 12)))'";
    let error = folder.error(&format!("{new} {program}"));
    assert!(
        error.contains("parameter `lr` is new: the study in") && error.contains("--assume lr=")
    );
    let (stdout, stderr) = folder.ok(&format!("{new} --assume lr=0.1 {program}"));
    let outside = 30 - inside - failed;
    let expected = format!(
        "took over {inside} of 30 trials of {}, {outside} not of the ranges here, {failed} failed; \
         without its parameters k",
        folder.path().canonicalize().unwrap().join("old").display()
    );
    assert!(stderr.contains(&expected), "{expected}\n{stderr}");
    let summary: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(summary["evaluations"], 3);
    let known = folder.plan("new")["known"].clone();
    assert_eq!(known.as_array().unwrap().len(), inside);
    assert_eq!(known[0]["params"]["lr"], 0.1);
    // It is in the journal: the other study may go, and the same command resumes.
    std::fs::remove_dir_all(folder.path().join("old")).unwrap();
    let more = new.replace("--budget 3", "--budget 5");
    let (stdout, stderr) = folder.ok(&format!("{more} --assume lr=0.1 {program}"));
    assert!(!stderr.contains("took over") && stderr.contains("going on with 3"), "{stderr}");
    assert_eq!(serde_json::from_str::<Value>(&stdout).unwrap()["evaluations"], 5);
    assert_eq!(folder.plan("new")["known"], known);
    // On to a third, by a study file: what the second took over goes along.
    folder.write(
        "study.toml",
        "command = ['echo', '{z}', '{lr}', '{n}']\nbudget = 2\njobs = 1\nfrom = 'new'\nassume = {z = 2}\n\
         [parameters]\nn = '1..40'\nlr = 0.1\nz = '0:9'",
    );
    let (_, stderr) = folder.ok("run --study third");
    let known = folder.plan("third")["known"].clone();
    let count = known.as_array().unwrap().len();
    // The second's own trials have other rates than the one that is fixed here.
    assert_eq!((count, &known[0]["params"]["z"]), (inside, &json!(2.0)));
    assert!(stderr.contains(&format!("took over {inside} of {} trials", inside + 5)), "{stderr}");
    assert!(folder.error("run --from none --study x").contains("there is no study in"));
    assert!(folder.error("run --assume q=1 --study x").contains("assume: `q` is no parameter"));
}

#[test]
fn a_study_begins_afresh_with_what_it_knows() {
    let folder = Folder::new();
    let run = "run --jobs 1 --budget 10";
    folder.text(&format!("{run} -p n=1..99 {SQUARE}"));
    let again = format!("{run} -p n=1..200 --restart --from racecars-study {SQUARE}");
    let (_, stderr) = folder.ok(&again);
    assert!(stderr.contains("took over 10 of 10 trials of"), "{stderr}");
    assert_eq!(folder.plan("racecars-study")["known"].as_array().unwrap().len(), 10);
}

#[test]
fn points_that_were_never_asked_can_be_told_at_any_time_and_are_in_the_journal() {
    for order in ["", "--deterministic --lookahead 2"] {
        let folder = Folder::new();
        let run = format!("run -p n=1..9999 --jobs 1 --algorithm de {order} --json");
        folder.json(&format!("{run} --budget 20 {SQUARE}"));
        let told = folder.json(r#"tell '{"params": {"n": 12}, "value": 0}'"#);
        assert_eq!((&told["known"], &told["evaluations"]), (&json!(1), &json!(20)));
        assert_eq!(told["told"], 1);
        let journal = folder.read("racecars-study/journal.jsonl");
        assert!(
            journal.contains(r#"{"known":{"params":{"n":12},"outcome":{"value":0.0}"#),
            "{journal}"
        );
        // A copy that is resumed proposes the same, and all read the journal.
        let copy = folder.path().join("copy");
        std::fs::create_dir(&copy).unwrap();
        std::fs::copy(
            folder.path().join("racecars-study/journal.jsonl"),
            copy.join("journal.jsonl"),
        )
        .unwrap();
        let trials = |study: &str| {
            let summary = folder.json(&format!("{run} --budget 60 --study {study} {SQUARE}"));
            assert_eq!(summary["evaluations"], 60);
            if summary["best"]["value"] != 0.0 {
                assert_eq!(summary["best_known"]["params"], json!({"n": 12}));
            }
            let trials =
                folder.json(&format!("export --study {study} --to json"))["trials"].clone();
            let trials = trials.as_array().unwrap().clone();
            trials.iter().map(|trial| trial["params"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(trials("racecars-study"), trials("copy"));
        folder.text("report");
        let error = folder.error(r#"tell '{"params": {"n": 0}, "value": 0}'"#);
        assert!(error.contains("parameter `n`: 0 is not"), "{error}");
        let error = folder.error(r#"tell '{"trial": 3, "params": {"n": 4}, "value": 0}'"#);
        assert!(error.contains("`params` are given, too"), "{error}");
        assert!(folder.error(r#"tell '{"value": 0}'"#).contains("`trial` is missing, or `params`"));
    }
}

#[test]
fn patience_has_a_tolerance() {
    let folder = Folder::new();
    // Better by 0.001 each time.
    folder.write("step.sh", "echo x >> calls; echo $(wc -l < calls) | awk '{print 1 - $1 / 1000}'");
    let run = "run -p n=1..9999 --jobs 1 --budget 50 --json";
    let set = "--algorithm random --patience 7 --patience-tolerance 0.5";
    let summary = folder.json(&format!("{run} {set} -- sh step.sh {{n}}"));
    assert_eq!((&summary["stop"], &summary["evaluations"]), (&json!("no-improvement"), &json!(8)));
    assert_eq!(folder.plan("racecars-study")["patience_tolerance"], 0.5);
    // A resumed study remembers what counted; with another tolerance it counts anew.
    let resumed = folder.json("run --study racecars-study --json --patience 9");
    assert_eq!(resumed["evaluations"], 10);
    let resumed = folder.json("run --study racecars-study --json --patience-tolerance 0");
    assert_eq!((&resumed["stop"], &resumed["evaluations"]), (&json!("evaluations"), &json!(50)));
    let error = folder.error("run -p n=1..9 --study o --patience-tolerance 0.5 -- echo {n}");
    assert!(error.contains("only with patience"), "{error}");
}
