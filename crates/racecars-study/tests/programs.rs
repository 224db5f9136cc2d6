//! Studies of real programs: that work, and that hang, crash, fork, flood and refuse to die.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{Lab, is_running};
use racecars_study::{ErrorKind, StopReason};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn a_shell_script() {
    let lab = Lab::new();
    lab.script(
        "sim.sh",
        "#!/bin/sh\necho computing\necho \"result: $(( ($1 - 12) * ($1 - 12) ))\"\n",
    );
    let summary = lab
        .run("command = './sim.sh {n}'\nbudget = 64\njobs = 2\n[parameters]\nn = '1..64'")
        .unwrap();
    // Every point of a space of 64 is tried once.
    assert_eq!(summary.best.as_ref().unwrap().params, json!({"n": 12}));
    let command = format!("cd {} && ./sim.sh 12", lab.path().display());
    assert_eq!(summary.best.unwrap().command.unwrap(), command);
    assert_eq!((summary.evaluations, summary.failures), (64, 0));
    assert!(lab.study().join("best.json").exists());
    // A point is asked when a job is free: no more are out than there are jobs.
    let journal = std::fs::read_to_string(lab.study().join("journal.jsonl")).unwrap();
    let (mut out, mut most) = (0, 0);
    for line in journal.lines() {
        out += i32::from(line.starts_with("{\"ask\"")) - i32::from(line.starts_with("{\"tell\""));
        most = most.max(out);
    }
    assert_eq!((out, most), (0, 2));
}

#[test]
fn a_python_script_with_json_in_and_out() {
    let lab = Lab::new();
    let script = "import json, sys\np = json.load(sys.stdin)\n\
                  print('noise')\nprint(json.dumps({'out': [0, sum(p['w']) + (p['m'] == 'b')]}))\n";
    lab.write("sim.py", script);
    let settings = "command = ['python3', 'sim.py']\nstdin = true\nmaximize = 'json:out[1]'\n\
                    budget = 20\njobs = 2\n[parameters]\n'w[3]' = '0:1'\nm = 'a,b'";
    let summary = lab.run(settings).unwrap();
    let best = summary.best.unwrap();
    assert_eq!(summary.failures, 0);
    assert!(best.value.unwrap() > 1.5, "{best:?}");
    let tells = lab.tells();
    let most = tells.values().map(|tell| tell.outcome.value().unwrap());
    assert_eq!(most.fold(f64::MIN, f64::max), best.value.unwrap());
}

#[test]
fn a_c_program_and_its_run_time() {
    let lab = Lab::new();
    lab.compile(
        "sim",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
         int main(int n, char **a) { usleep(atoi(a[1]) * 1000); printf(\"%g\\n\", atof(a[1])); }",
    );
    let settings = "command = './sim {ms}'\nminimize = 'time'\nbudget = 12\njobs = 3\n\
                    noise = 'no'\n\
                    [parameters]\nms = '5,1500,3000'";
    let summary = lab.run(settings).unwrap();
    assert_eq!((summary.stop, summary.evaluations), (StopReason::Exhausted, 3));
    let best = summary.best.unwrap();
    assert_eq!(best.params, json!({"ms": 5}));
    assert!((0.005..1.5).contains(&best.value.unwrap()));
}

const ONE: &str = "budget = 1\njobs = 1\n[parameters]\nx = '0:1'";

/// Programs that are to be ended would run longer than this; others not, on the busiest machine.
const LONG: Duration = Duration::from_secs(90);

/// The outcome of a program that is run once by a shell, with more settings.
fn outcome_of(script: &str, more: &str) -> (serde_json::Value, Duration, String) {
    let lab = Lab::new();
    lab.script("program.sh", &format!("#!/bin/bash\n{script}\n"));
    let start = Instant::now();
    let result = lab.run(&format!("command = './program.sh {{x}}'\n{more}\n{ONE}"));
    let message = result.map_or_else(|error| error.to_string(), |_| String::new());
    (lab.outcome(), start.elapsed(), message)
}

#[test]
fn a_hanging_program_is_ended() {
    let (outcome, elapsed, message) = outcome_of("sleep 98.7651", "timeout = '300ms'");
    assert_eq!(outcome["failed"], "timeout");
    assert!((Duration::from_millis(300)..LONG).contains(&elapsed));
    assert!(!is_running("98.7651"));
    assert!(message.contains("over the time limit"), "{message}");
}

#[test]
fn one_that_ignores_sigterm_is_killed_with_all_its_children() {
    let script = "trap '' TERM\nsleep 98.7652 &\nwhile true; do sleep 98.7653; done";
    let (outcome, elapsed, _) = outcome_of(script, "timeout = '200ms'");
    assert_eq!(outcome["failed"], "timeout");
    assert!(elapsed < LONG);
    assert!(!is_running("98.7652") && !is_running("98.7653"));
}

#[test]
fn sigterm_comes_first_so_that_a_program_can_tidy_up() {
    let lab = Lab::new();
    lab.script(
        "program.sh",
        "#!/bin/bash\ntrap 'touch tidy; exit 0' TERM\nsleep 98.7654 &\nwait\n",
    );
    let _ = lab.run(&format!("command = './program.sh {{x}}'\ntimeout = '300ms'\n{ONE}"));
    assert_eq!(lab.outcome()["failed"], "timeout");
    assert!(lab.path().join("tidy").exists());
}

#[test]
fn a_grandchild_does_not_survive() {
    let (outcome, elapsed, _) = outcome_of("(sleep 98.7655 &) \necho 5", "");
    assert_eq!(outcome, json!({"value": 5.0}));
    assert!(elapsed < LONG);
    assert!(!is_running("98.7655"));
}

#[test]
fn a_flood_of_output_is_no_burden() {
    let flood = "head -c 100000000 /dev/zero | tr '\\0' 'x'\necho\necho 1 2 3";
    assert_eq!(outcome_of(flood, "").0, json!({"value": 3.0}));
    let flood = "head -c 20000000 /dev/zero | tr '\\0' 'x' >&2\necho 4";
    assert_eq!(outcome_of(flood, "memory = '1G'").0, json!({"value": 4.0}));
}

#[test]
fn every_failure_has_its_name() {
    let failed = |script: &str| {
        let (outcome, _, message) = outcome_of(script, "");
        let text = |key: &str| outcome[key].as_str().unwrap_or_default().to_string();
        (text("failed"), text("detail"), message)
    };
    let (kind, detail, message) = failed("echo 'no such mesh' >&2\nexit 3");
    assert_eq!((kind.as_str(), detail.as_str()), ("exit", "exit code 3"));
    assert!(message.contains("./program.sh 0.") && message.contains("no such mesh"), "{message}");
    assert!(message.contains("nothing to standard output"), "{message}");
    let (kind, detail, _) = failed("kill -SEGV $$");
    assert_eq!((kind.as_str(), detail.as_str()), ("signal", "signal 11 (SIGSEGV)"));
    assert_eq!(failed("echo done").0, "unparseable");
    assert_eq!(failed("").1, "nothing in standard output");
    assert_eq!(failed("echo nan").0, "nan");
    assert_eq!(failed("echo 1e999").0, "nan");
    let lab = Lab::new();
    let error = lab.run(&format!("command = './nothing {{x}}'\n{ONE}")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FirstFailures);
    assert_eq!(lab.outcome()["failed"], "not-started");
}

#[test]
fn a_program_over_its_memory_is_killed() {
    let lab = Lab::new();
    lab.compile(
        "eater",
        "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
         int main() { for (;;) { memset(malloc(10 << 20), 1, 10 << 20); usleep(2000); } }",
    );
    let settings = format!("command = './eater {{x}}'\nmemory = '60M'\ntimeout = '20s'\n{ONE}");
    let _ = lab.run(&settings);
    assert_eq!(lab.outcome()["failed"], "memory");
}

#[test]
fn standard_input_may_be_read_late_in_part_or_never() {
    let big = "stdin = true\nbudget = 1\njobs = 1\n[parameters]\n'w[20000]' = '0:1'";
    for script in ["cat > /dev/null\necho 1", "head -c 10 > /dev/null\necho 1", "echo 1"] {
        let lab = Lab::new();
        lab.script("program.sh", &format!("#!/bin/sh\n{script}\n"));
        let summary = lab.run(&format!("command = './program.sh'\n{big}")).unwrap();
        assert_eq!(summary.best.unwrap().value, Some(1.0), "{script}");
    }
}

#[test]
fn templates_variables_and_files_in_a_folder_of_ones_own() {
    let lab = Lab::new();
    lab.write("input.cfg.in", "# {unknown} stays\nx = {x}\nfirst = {w[0]}\n");
    lab.script(
        "sim.sh",
        "#!/bin/sh\ngrep -q '{unknown} stays' input.cfg || exit 7\n\
         [ \"$PWD\" = \"$RACECARS_DIR\" ] || exit 8\n\
         [ \"$RACECARS_w\" = \"$W\" ] || exit 9\n\
         x=$(sed -n 's/^x = //p' input.cfg)\nmkdir out\necho \"loss=$x end 99\" > out/log\n",
    );
    let settings = r#"
        command = ["./sim.sh"]
        templates = ["input.cfg.in"]
        env = ["*", "W={w}"]
        minimize = "file:out/log:regex:loss=(\\S+)"
        budget = 6
        jobs = 2
        keep = "all"
        [parameters]
        x = "1:2"
        "w[2]" = "0:1"
    "#;
    let summary = lab.run(settings).unwrap();
    let best = summary.best.unwrap();
    assert_eq!(summary.failures, 0);
    assert_eq!(best.params["x"].as_f64(), best.value);
    assert!(lab.study().join("trials/3/out/log").exists());
    // The line to paste works.
    std::fs::create_dir_all(lab.study().join("best")).unwrap();
    let command = best.command.unwrap().replace("&& ", "&& RACECARS_DIR=$PWD ");
    let status = std::process::Command::new("sh").arg("-c").arg(&command).status().unwrap();
    assert!(status.success(), "{command}");
}

#[test]
fn folders_are_removed_unless_the_evaluation_failed() {
    let lab = Lab::new();
    let script = "#!/bin/sh\necho 1 > $1/result\n[ $2 -le 3 ]\n";
    lab.script("sim.sh", script);
    let settings = "command = './sim.sh {dir} {n}'\nminimize = 'file:{dir}/result'\nbudget = 6\n\
                    [parameters]\nn = '1..6'";
    let summary = lab.run(settings).unwrap();
    assert_eq!(summary.failures, 3);
    let kept = std::fs::read_dir(lab.study().join("trials")).unwrap().count();
    assert_eq!(kept, 3);
}

/// The value, or the failure's reason, of a program that prints this by `printf`.
fn printed(text: &str, more: &str) -> Result<f64, String> {
    let lab = Lab::new();
    lab.write("text", text);
    let _ = lab.run(&format!("command = ['sh', '-c', 'cat text; : {{x}}']\n{more}\n{ONE}"));
    let outcome = lab.outcome();
    outcome["value"].as_f64().ok_or_else(|| outcome["detail"].as_str().unwrap().to_string())
}

#[test]
fn a_number_is_certain_or_refused() {
    assert_eq!(printed("\u{1b}[32m0.25\u{1b}[0m\n", ""), Ok(0.25));
    assert_eq!(printed("  0.15D+04\n", ""), Ok(1500.0));
    assert_eq!(printed("loss \u{2212}2\n", ""), Ok(-2.0));
    assert_eq!(printed("loss=3, acc=1\n", r"minimize = 'regex:loss=(\S+)'"), Ok(3.0));
    for text in ["1,234.5", "1,5", "1 000", "1_000", "0x1F", "1.2.3"] {
        let reason = printed(text, "").unwrap_err();
        assert!(reason.contains(&format!("`{text}` is not clearly one number")), "{reason}");
        assert!(reason.contains("json:PATH or regex:RE"), "{reason}");
    }
    assert!(printed("1.#QNAN", "").unwrap_err().contains("not a finite number"));
}

#[test]
fn numbers_of_c_and_python_are_read_to_the_bit() {
    let lab = Lab::new();
    lab.compile(
        "sim",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
         int main(int n, char **a) {\n\
           const char *f[] = {\"%.17g\\n\", \"%.17e\\n\", \"%.400f\\n\", \"%.17G\\n\"};\n\
           double d = atof(a[1]) * 1e-300 * 3.3;\n\
           FILE *bits = fopen(a[3], \"wb\"); fwrite(&d, 8, 1, bits); fclose(bits);\n\
           printf(f[atoi(a[2])], d); }",
    );
    lab.write(
        "sim.py",
        "import sys, struct\nd = float(sys.argv[1]) ** 7 / 3\n\
         open(sys.argv[2], 'wb').write(struct.pack('<d', d))\nprint(repr(d))\n",
    );
    for (command, name) in [
        ("'./sim {x} {n} bits-{trial}'", "c"),
        ("['python3', 'sim.py', '{x}', 'bits-{trial}', '{n}']", "python"),
    ] {
        let settings = format!(
            "command = {command}\nbudget = 24\nalgorithm = 'random'\n[parameters]\n\
             x = '-1000:1000'\nn = '0..3'"
        );
        let study = lab.path().join(name);
        let settings = racecars_study::Settings::parse(&settings).unwrap();
        let mut study = racecars_study::Study::open(&study, &settings, lab.path()).unwrap();
        study.run(&racecars_study::Interrupt::new(), &mut |_| {}).unwrap();
        let journal = study.folder().join(racecars_study::journal::FILE);
        let mut count = 0;
        racecars_study::journal::read(&journal, |_, event| {
            if let racecars_study::journal::Event::Tell(tell) = event {
                let bits = lab.path().join(format!("bits-{}", tell.trial));
                let bits: [u8; 8] = std::fs::read(bits).unwrap().try_into().unwrap();
                let value = tell.outcome.value().unwrap();
                assert_eq!(value.to_bits(), u64::from_le_bytes(bits), "{name} {value}");
                count += 1;
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(count, 24);
    }
}

#[test]
fn json_of_python_is_read_with_all_that_is_around_it() {
    let script = "import json, sys\nprint('[INFO] begin {1}')\n\
                  print(json.dumps({'a.b': [1, 2.5], 'bad': [float('nan'), float('inf')]}, indent=2))\n\
                  print('done')\n";
    let run = |path: &str| {
        let lab = Lab::new();
        lab.write("sim.py", script);
        let settings = format!("command = 'python3 sim.py {{x}}'\nminimize = '{path}'\n{ONE}");
        let message = lab.run(&settings).map_or_else(|error| error.to_string(), |_| String::new());
        (lab.outcome(), message)
    };
    assert_eq!(run("json:[\"a.b\"][-1]").0, json!({"value": 2.5}));
    assert_eq!(run("json:bad[0]").0["failed"], "nan");
    let (outcome, message) = run("json:loss");
    assert_eq!(outcome["failed"], "unparseable");
    for part in ["no JSON with `loss`", "its standard output ends with:", "\"a.b\": [", "done"] {
        assert!(message.contains(part), "no `{part}` in {message}");
    }
}

#[test]
fn an_output_that_was_cut_says_so() {
    let flood =
        "import sys\nprint('{\"loss\": 1, \"all\": [')\nprint('2, ' * 1000000)\nprint('3]}')\n";
    let lab = Lab::new();
    lab.write("sim.py", flood);
    let settings = format!("command = 'python3 sim.py {{x}}'\nminimize = 'json:loss'\n{ONE}");
    let error = lab.run(&settings).unwrap_err().to_string();
    assert!(error.contains("of which only the end is kept"), "{error}");
    // A number of which the beginning was cut off is none.
    let (outcome, _, _) = outcome_of("head -c 3000000 /dev/zero | tr '\\0' 7", "");
    assert_eq!(outcome["failed"], "unparseable");
    let detail = outcome["detail"].as_str().unwrap();
    assert!(detail.contains("no whole word in the end of standard output"), "{detail}");
}

#[test]
fn a_result_file_that_has_no_end_fails() {
    let file = "minimize = 'file:out'\ntimeout = '60s'";
    let (outcome, elapsed, message) = outcome_of("mkfifo out", file);
    assert_eq!(outcome["failed"], "unparseable", "{message}");
    assert!(message.contains("it is not a regular file"), "{message}");
    assert!(elapsed < Duration::from_secs(60));
    let (outcome, _, message) = outcome_of("ln -s /dev/zero out", file);
    assert_eq!(outcome["failed"], "unparseable");
    assert!(message.contains("it is not a regular file"), "{message}");
    // Of a file that is too large the end counts.
    let large = "truncate -s 1T out && echo ' 7' >> out";
    assert_eq!(outcome_of(large, file).0, json!({"value": 7.0}));
}

#[test]
fn retries_end_with_the_time_limit() {
    let lab = Lab::new();
    lab.script("sim.sh", "#!/bin/sh\nexit 1\n");
    let settings = "command = './sim.sh {x}'\nretries = 4000000000\ntime-limit = '300ms'\n\
                    budget = 2\njobs = 1\n[parameters]\nx = '0:1'";
    let summary = lab.run(settings).unwrap();
    assert_eq!((summary.stop, summary.evaluations), (StopReason::Time, 0));
}

#[test]
fn values_reach_a_shell_unchanged_and_are_not_run() {
    let lab = Lab::new();
    let hostile = [
        "a b",
        "$(touch pwned)",
        "`touch pwned`",
        "it's",
        "\"; touch pwned; \"",
        "x\ny",
        "-n",
        "grün ✓",
        "A=b",
        "*",
        "\\",
        "$HOME",
        "#",
    ];
    let choices = serde_json::to_string(&hostile.join(",")).unwrap();
    let settings = |command: &str| {
        format!(
            "command = '{command}'\nshell = true\nbudget = {}\n[parameters]\nm = {choices}",
            hostile.len()
        )
    };
    let command = "printf %s {m} > out-{trial}; printf %s x{m}y > glued-{trial}; echo 1";
    let summary = lab.run(&settings(command)).unwrap();
    assert_eq!((summary.failures, summary.evaluations), (0, hostile.len() as u64));
    let mut seen: Vec<String> = (0..hostile.len())
        .map(|trial| {
            let read = |name: &str| {
                std::fs::read_to_string(lab.path().join(format!("{name}-{trial}"))).unwrap()
            };
            let value = read("out");
            assert_eq!(read("glued"), format!("x{value}y"));
            value
        })
        .collect();
    seen.sort();
    let mut all = hostile.to_vec();
    all.sort_unstable();
    assert_eq!(seen, all);
    for command in ["echo \"{m}\"", "echo $(echo {m})", "eval echo {m}", "sh -c {m}"] {
        let error = Lab::new().open(&settings(command)).err().unwrap().to_string();
        assert!(error.contains("RACECARS_name"), "{error}");
    }
    assert!(!lab.path().join("pwned").exists());
}

#[test]
fn a_shell_quotes_values() {
    let lab = Lab::new();
    let settings = "command = 'echo {m} | wc -c'\nshell = true\nbudget = 2\njobs = 1\n[parameters]\n\
                    m = '$HOME;ls,ab'";
    let summary = lab.run(settings).unwrap();
    assert_eq!(summary.best.unwrap().value, Some(3.0));
    let values: Vec<_> = lab.tells().values().map(|t| t.outcome.value().unwrap()).collect();
    assert!(values.contains(&9.0), "{values:?}");
}

#[test]
fn infeasible_points_rank_behind_feasible_ones() {
    let lab = Lab::new();
    lab.script("sim.sh", "#!/bin/sh\necho \"{\\\"f\\\": $1, \\\"g\\\": $((4 - $1))}\"\n");
    let settings = "command = './sim.sh {n}'\nminimize = 'json:f'\nconstraints = ['json:g']\n\
                    budget = 9\njobs = 2\n[parameters]\nn = '1..9'";
    let summary = lab.run(settings).unwrap();
    assert_eq!(summary.best.unwrap().params, json!({"n": 4}));
    assert_eq!((summary.infeasible, summary.failures), (3, 0));
}

#[test]
fn failures_are_tried_again() {
    let lab = Lab::new();
    lab.script(
        "flaky.sh",
        "#!/bin/sh\nif [ -e seen-$1 ]; then echo ${1#*-}; else touch seen-$1; exit 1; fi\n",
    );
    let settings = "command = './flaky.sh {trial}-{n}'\nretries = 2\nbudget = 5\njobs = 2\n\
                    [parameters]\nn = '1..9'";
    let summary = lab.run(settings).unwrap();
    assert_eq!((summary.failures, summary.retries), (0, 5));
    assert!(lab.tells().values().all(|tell| tell.attempts == 2));
}

#[test]
fn a_lucky_draw_does_not_win() {
    let lab = Lab::new();
    // Trial 0 and its like are lucky once: the first seed of a trial is what {seed} gives first.
    lab.script(
        "noisy.sh",
        "#!/bin/sh\nif [ $2 = 9 ] && [ ! -e lucky ]; then touch lucky; echo 0; else echo $2; fi\n",
    );
    let settings = "command = './noisy.sh {seed} {n}'\nconfirm = 3\nleaders = 3\nbudget = 9\njobs = 2\n\
                    [parameters]\nn = '1..9'";
    let summary = lab.run(settings).unwrap();
    assert_eq!(summary.best.unwrap().params, json!({"n": 9}));
    let recommended = summary.recommended.unwrap();
    assert_eq!((recommended.params, recommended.value), (json!({"n": 1}), Some(1.0)));
    assert_eq!(summary.repeats, 9);
}

#[test]
fn an_algorithm_that_knows_of_noise_does_not_recommend_the_luckiest() {
    let lab = Lab::new();
    lab.script(
        "noisy.sh",
        "#!/bin/sh\nif [ -e lucky ]; then echo $1; else touch lucky; echo -5; fi\n",
    );
    let settings = "command = './noisy.sh {n}'\nnoise = 'yes'\nbudget = 120\njobs = 1\n\
                    [parameters]\nn = '1..999'";
    let summary = lab.run(settings).unwrap();
    let (best, recommended) = (summary.best.unwrap(), summary.recommended.unwrap());
    assert_eq!((best.trial, best.value), (0, Some(-5.0)));
    let value = recommended.value.unwrap();
    assert_eq!(recommended.params, json!({ "n": value as i64 }));
    assert!(value < 100.0, "{value}");
    assert!(summary.portfolio.unwrap().noisy);
    // The same from the journal.
    let again = lab.run(settings).unwrap().recommended.unwrap();
    assert_eq!((again.trial, again.value), (recommended.trial, recommended.value));

    let error = lab.open(&settings.replace("noise", "algorithm = 'random'\nnoise")).err().unwrap();
    assert!(error.to_string().contains("random has no setting `noise`"), "{error}");
}

#[test]
fn repetitions_are_averaged_and_each_has_its_seed() {
    let lab = Lab::new();
    lab.script("sim.sh", "#!/bin/sh\necho $1 >> seeds\nwc -l < seeds\n");
    let settings = "command = './sim.sh {seed} {x}'\nrepeat = 3\naggregate = 'median'\nconfirm = 0\n\
                    budget = 2\njobs = 1\n[parameters]\nx = '0:1'";
    lab.run(settings).unwrap();
    let tells = lab.tells();
    assert_eq!(tells[&0].values, [1.0, 2.0, 3.0]);
    assert_eq!(tells[&1].outcome.value(), Some(5.0));
    let seeds = std::fs::read_to_string(lab.path().join("seeds")).unwrap();
    let different: std::collections::BTreeSet<&str> = seeds.lines().collect();
    assert_eq!(different.len(), 6);
}
