//! What a study survives: interruptions, torn and damaged journals, a second process, a full disk;
//! and what it refuses.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{Lab, is_running, skip, wait_until};
use racecars_study::export::{Format, export};
use racecars_study::report::{self, Digest};
use racecars_study::{ErrorKind, Interrupt, Settings, Study, Told, journal};
use std::path::Path;
use std::process::Command;

/// A study of a small program that takes a varying time.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.compile(
        "sim",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
         int main(int n, char **a) { double x = atof(a[1]), y = atof(a[2]);\n\
         usleep((atoi(a[3]) * 7919) % 4000); printf(\"%.17g\\n\", (x - 3) * (x - 3) + y); }",
    );
    lab
}

fn settings(more: &str) -> String {
    format!(
        "command = './sim {{x}} {{n}} {{trial}}'\nbudget = 60\n{more}\n\
         [parameters]\nx = '0:10'\nn = '0..9'"
    )
}

/// Runs a study that is interrupted several times, each time after some evaluations.
fn run_interrupted(lab: &Lab, settings: &str, after: u64, times: u32) -> String {
    let interrupt = Interrupt::new();
    let summary = lab.open(settings).unwrap().run(&interrupt, &mut |status| {
        if status.this_run >= after {
            for _ in 0..times {
                interrupt.request();
            }
        }
    });
    summary.unwrap().stop.name().to_string()
}

#[test]
fn the_deterministic_result_is_the_same_on_any_number_of_jobs_and_after_any_interruption() {
    let results = |lab: &Lab| -> Vec<String> {
        let mut lines = Vec::new();
        journal::read(&lab.study().join(journal::FILE), |_, event| {
            if let journal::Event::Ask(ask) = event {
                lines.push(ask.params.get().to_string());
            }
            Ok(())
        })
        .unwrap();
        for (trial, tell) in lab.tells() {
            lines.push(format!("{trial} {}", tell.outcome));
        }
        lines
    };
    let whole = lab();
    whole.run(&settings("deterministic = true\njobs = 1")).unwrap();
    let whole = results(&whole);
    assert_eq!(whole.len(), 120);
    for jobs in [2, 5] {
        for times in [1, 2] {
            let lab = lab();
            let settings = settings(&format!("deterministic = true\njobs = {jobs}"));
            let mut sessions = 1;
            while run_interrupted(&lab, &settings, 7, times) == "interrupted" {
                sessions += 1;
            }
            assert!(sessions > 4);
            assert!(results(&lab) == whole, "{jobs} jobs, interrupted {times} times");
        }
    }
}

#[test]
fn an_interrupted_study_goes_on_and_each_trial_is_told_once() {
    for times in [1, 2] {
        let lab = lab();
        while run_interrupted(&lab, &settings("jobs = 4"), 11, times) == "interrupted" {}
        assert_eq!(lab.tells().keys().copied().collect::<Vec<_>>(), (0..60).collect::<Vec<_>>());
    }
}

#[test]
fn stopping_now_ends_what_runs_and_stopping_does_not() {
    for (times, is_told) in [(1, true), (2, false)] {
        let lab = Lab::new();
        lab.script(
            "slow.sh",
            "#!/bin/sh\n: > started-$1\nwhile ! [ -e go ]; do sleep 0.02; done\necho 1\n",
        );
        let settings =
            "command = './slow.sh {trial} {x}'\nbudget = 4\njobs = 2\n[parameters]\nx = '0:1'";
        let interrupt = Interrupt::new();
        let mut study = lab.open(settings).unwrap();
        let file = |name: &str| lab.path().join(name);
        let summary = study.run(&interrupt, &mut |status| {
            if status.busy == 2 && !interrupt.is_requested() {
                // Busy workers have been given a trial; let them start it, or there is nothing to end.
                wait_until("both run", || file("started-0").exists() && file("started-1").exists());
                for _ in 0..times {
                    interrupt.request();
                }
                if is_told {
                    lab.write("go", "");
                }
            }
        });
        assert_eq!(summary.unwrap().stop.name(), "interrupted");
        assert_eq!(lab.tells().len(), if is_told { 2 } else { 0 });
        assert!(!is_running(lab.path().join("slow.sh").to_str().unwrap()));
        assert_eq!(study.totals().asked, 2);
    }
}

#[test]
fn the_budget_can_be_made_larger_and_the_study_alone_says_what_it_is() {
    let lab = lab();
    lab.run(&settings("seed = 3\njobs = 3")).unwrap();
    let only = |text: &str| Settings::parse(text).unwrap();
    let mut study = Study::open(&lab.study(), &only("budget = 90"), Path::new("/")).unwrap();
    assert_eq!((study.plan().seed, study.is_resumed()), (3, true));
    assert_eq!(study.run(&Interrupt::new(), &mut |_| {}).unwrap().evaluations, 90);
    drop(study);
    // From then on that is the budget, unless another is given.
    let study = Study::open(&lab.study(), &only(""), Path::new("/")).unwrap();
    assert_eq!(study.plan().budget, 90);
}

#[test]
fn another_study_in_the_same_folder_is_refused() {
    let lab = lab();
    lab.run(&settings("")).unwrap();
    let error = lab.run(&settings("seed = 1")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Setting);
    assert!(error.to_string().starts_with("seed is 1, but the study in "), "{error}");
    let other = Settings::parse(&settings("seed = 1")).unwrap();
    let aside = Study::restart(&lab.study(), &other, lab.path()).unwrap().unwrap();
    assert!(aside.ends_with("journal-1.jsonl") && aside.exists());
    assert_eq!(lab.run(&settings("seed = 1")).unwrap().evaluations, 60);
}

#[test]
fn a_second_process_is_refused() {
    let lab = lab();
    let _first = lab.open(&settings("")).unwrap();
    let error = lab.open(&settings("")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains(&std::process::id().to_string()));
}

#[test]
fn a_journal_cut_anywhere_goes_on_to_the_same_deterministic_end() {
    let whole = lab();
    let settings =
        settings("deterministic = true\njobs = 2\nbudget = 25").replace("budget = 60\n", "");
    let best = whole.run(&settings).unwrap().best;
    let bytes = std::fs::read(whole.study().join(journal::FILE)).unwrap();
    for share in 0..20 {
        let lab = lab();
        std::fs::create_dir_all(lab.study()).unwrap();
        let cut = bytes.len() * share / 20;
        std::fs::write(lab.study().join(journal::FILE), &bytes[..cut]).unwrap();
        // The folder that commands are relative to is free to change.
        let summary = lab.run(&settings).unwrap();
        let values = |best: &racecars_study::Chosen| (best.trial, best.value, best.params.clone());
        let both = (summary.best.as_ref().map(values), best.as_ref().map(values));
        assert_eq!(both.0, both.1, "cut at {cut}");
        assert_eq!(lab.tells().len(), 25);
    }
}

/// A journal in the format of before there were checksums.
fn without_checksums(journal: &str) -> String {
    let bare = |line: &str| format!("{}}}\n", &line[..line.rfind(",\"crc\"").unwrap()]);
    journal.lines().map(bare).collect::<String>().replacen("\"version\":2", "\"version\":1", 1)
}

#[test]
fn damage_is_reported_with_its_line() {
    let lab = lab();
    lab.run(&settings("")).unwrap();
    let path = lab.study().join(journal::FILE);
    let sealed = std::fs::read_to_string(&path).unwrap();
    let bare = without_checksums(&sealed);
    let with = |whole: &str, number: usize, line: &str| {
        let mut lines: Vec<&str> = whole.lines().collect();
        lines[number - 1] = line;
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        let error = lab.run(&settings("")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Journal);
        error.to_string()
    };
    for whole in [&sealed, &bare] {
        assert!(with(whole, 9, "garbage").contains("line 9 of "));
        assert!(with(whole, 1, "{\"study\":{garbage").contains("line 1 of "));
        assert!(with(whole, 30, whole.lines().next().unwrap()).contains("line 30 of "));
    }
    let lines: Vec<&str> = bare.lines().collect();
    let first_ask = lines.iter().position(|line| line.starts_with("{\"ask\"")).unwrap();
    let other = lines[first_ask].replace("\"n\":", "\"n\":1");
    let error = with(&bare, first_ask + 1, &other);
    assert!(error.contains("is not the point that auto proposes there"), "{error}");
    let tell = lines.iter().position(|line| line.starts_with("{\"tell\"")).unwrap();
    let error = with(&bare, tell + 2, lines[tell]);
    assert!(error.contains("has been told before"), "{error}");
}

#[test]
fn after_a_damaged_line_the_lines_before_it_go_on_as_the_error_says() {
    let lab = lab();
    let settings = settings("deterministic = true");
    let whole = lab.run(&settings).unwrap().best.unwrap();
    let path = lab.study().join(journal::FILE);
    let text = std::fs::read_to_string(&path).unwrap();
    let line = text.lines().position(|line| line.starts_with("{\"tell\":{\"trial\":9,")).unwrap();
    let changed = text.replacen("\"value\":", "\"value\":1", line);
    assert_ne!(changed, text);
    std::fs::write(&path, changed).unwrap();
    let error = lab.run(&settings).unwrap_err().to_string();
    assert!(error.contains("its checksum does not match"), "{error}");
    let advised = error.split('`').nth(1).unwrap();
    let lines = Command::new("sh").args(["-c", advised]).output().unwrap().stdout;
    assert!(lines.len() > 100);
    std::fs::write(&path, lines).unwrap();
    let again = lab.run(&settings).unwrap().best.unwrap();
    assert_eq!((again.trial, again.value, again.params), (whole.trial, whole.value, whole.params));
}

#[test]
fn a_journal_of_before_goes_on_and_a_violation_that_was_lost_is_the_worst() {
    let lab = Lab::new();
    std::fs::create_dir_all(lab.study()).unwrap();
    let path = lab.study().join(journal::FILE);
    std::fs::write(&path, include_str!("journals/version-1.jsonl")).unwrap();
    let best = |folder: &Path| {
        let digest = Digest::read(folder).unwrap();
        let data: serde_json::Value =
            serde_json::from_str(&report::data(folder, digest.as_ref())).unwrap();
        data["best"]["trial"].clone()
    };
    assert_eq!(best(&lab.study()), 2);
    let mut study = Study::open(&lab.study(), &Settings::default(), lab.path()).unwrap();
    assert_eq!(study.best().unwrap().trial, 2);
    assert_eq!(study.totals().infeasible, 2);
    let summary = study.run(&Interrupt::new(), &mut |_| {}).unwrap();
    assert_eq!((summary.evaluations, summary.infeasible, summary.failures), (12, 2, 1));
    let mut csv = Vec::new();
    export(&lab.study(), Format::Csv, &mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    assert!(csv.contains(&format!("\n1,infeasible,0.01,{},", f64::MAX)), "{csv}");
    // What was added has checksums.
    drop(study);
    let text = std::fs::read_to_string(&path).unwrap();
    let flipped = text.replacen("{\"resume\":{\"at\":1", "{\"resume\":{\"at\":2", 1);
    assert_ne!(flipped, text);
    std::fs::write(&path, flipped).unwrap();
    let error = Study::open(&lab.study(), &Settings::default(), lab.path()).unwrap_err();
    assert!(error.to_string().contains("its checksum does not match"), "{error}");
}

#[test]
fn violations_whose_sum_or_mean_overflows_are_infeasible() {
    for more in ["constraints = ['json:a', 'json:b']", "constraints = ['json:a']\nrepeat = 2"] {
        let lab = Lab::new();
        lab.script(
            "sim.sh",
            "#!/bin/sh\n[ $2 = 3 ] && limit=-1 || limit=1.7e308\n\
             echo \"{\\\"v\\\": $1, \\\"a\\\": $limit, \\\"b\\\": $limit}\"\n",
        );
        let settings = format!(
            "command = './sim.sh {{x}} {{trial}}'\nbudget = 8\nminimize = 'json:v'\nconfirm = 0\n{more}\n\
             [parameters]\nx = '0:1'"
        );
        let summary = lab.run(&settings).unwrap();
        assert_eq!((summary.infeasible, summary.failures), (7, 0), "{more}");
        assert_eq!(summary.best.unwrap().trial, 3);
        assert_eq!(lab.open(&settings).unwrap().best().unwrap().trial, 3);
        for tell in lab.tells().into_values().filter(|tell| tell.trial != 3) {
            assert!(tell.outcome.violation().unwrap() >= 1.7e308, "{tell:?}");
        }
    }
}

#[test]
fn a_file_that_is_not_a_journal_is_left_as_it_is() {
    for content in ["my notes of last year", "my notes\n", "[1, 2]\n", "{\"study\": 1}\n"] {
        let lab = lab();
        std::fs::create_dir_all(lab.study()).unwrap();
        let path = lab.study().join(journal::FILE);
        std::fs::write(&path, content).unwrap();
        let error = lab.run(&settings("")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Journal);
        assert!(error.to_string().contains("is not the journal of a study"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
    }
}

#[test]
fn a_folder_whose_name_is_not_utf8_is_refused_before_anything_is_written() {
    use std::os::unix::ffi::OsStrExt;
    let lab = lab();
    let odd = lab.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    let link = lab.path().join("link");
    std::fs::create_dir(&odd).unwrap();
    std::os::unix::fs::symlink(&odd, &link).unwrap();
    let settings = Settings::parse(&settings("")).unwrap();
    for (study, base) in
        [(odd.join("study"), lab.path()), (link.join("study"), lab.path()), (lab.study(), &*odd)]
    {
        let error = Study::open(&study, &settings, base).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Setting);
        assert!(error.to_string().contains("caf\\xE9"), "{error}");
        assert!(error.to_string().contains("is not UTF-8"), "{error}");
        assert!(!study.join(journal::FILE).exists());
    }
}

#[test]
fn a_journal_that_is_taken_away_ends_the_run_which_says_what_it_has() {
    for replaced in [false, true] {
        let lab = lab();
        let path = lab.study().join(journal::FILE);
        let mut study = lab.open(&settings("deterministic = true")).unwrap();
        let mut told = 0;
        let result = study.run(&Interrupt::new(), &mut |status| {
            if status.evaluations >= 10 && told == 0 {
                told = status.evaluations;
                std::fs::remove_file(&path).unwrap();
                if replaced {
                    std::fs::write(&path, "").unwrap();
                }
            }
        });
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Journal);
        let (message, best) = (error.to_string(), study.best().unwrap());
        assert!(
            message.contains(if replaced { "was replaced" } else { "was deleted" }),
            "{message}"
        );
        assert!(
            message.contains(&format!(
                "Of {} evaluations the best is {} in trial {}, at x=",
                study.totals().told,
                best.outcome,
                best.trial
            )),
            "{message}"
        );
        drop(study);
        let copy = lab.study().join("journal-1.jsonl");
        assert!(message.contains("journal-1.jsonl; put it back as journal.jsonl"), "{message}");
        std::fs::rename(copy, &path).unwrap();
        assert!(lab.tells().len() as u64 >= told);
        assert_eq!(lab.run(&settings("deterministic = true")).unwrap().evaluations, 60);
    }
}

#[test]
fn repetitions_that_have_ended_are_not_run_again() {
    let lab = Lab::new();
    // The second run of trial 1 waits to be stopped, once.
    lab.script(
        "sim.sh",
        "#!/bin/sh\necho \"$1 $2\" >> runs\n\
         if [ $1 = 1 ] && [ $(grep -c '^1 ' runs) = 2 ] && ! [ -e waited ]; then\n\
         : > waited\nwhile :; do sleep 0.02; done\nfi\necho $2\n",
    );
    let settings = "command = './sim.sh {trial} {seed} {x}'\nbudget = 4\njobs = 1\nrepeat = 3\nconfirm = 2\n\
                    leaders = 2\n[parameters]\nx = '0:1'";
    let interrupt = Interrupt::new();
    let waited = lab.path().join("waited");
    let summary = lab.open(settings).unwrap().run(&interrupt, &mut |_| {
        if waited.exists() {
            interrupt.request();
            interrupt.request();
        }
    });
    assert_eq!(summary.unwrap().stop.name(), "interrupted");
    // The confirming ones are interrupted as well, after the first.
    let interrupt = Interrupt::new();
    let summary = lab.open(settings).unwrap().run(&interrupt, &mut |status| {
        if status.confirming.is_some_and(|(done, _)| done == 1) {
            interrupt.request();
        }
    });
    assert_eq!(summary.unwrap().stop.name(), "interrupted");
    assert_eq!(lab.run(settings).unwrap().repeats, 4);
    let runs = std::fs::read_to_string(lab.path().join("runs")).unwrap();
    let mut runs: Vec<&str> = runs.lines().collect();
    let all = runs.len();
    runs.sort_unstable();
    runs.dedup();
    // Every repetition has a seed of its own; only the one that was stopped ran twice.
    assert_eq!((all, runs.len()), (4 * 3 + 2 * 2 + 1, 4 * 3 + 2 * 2));
    let tells = lab.tells();
    assert!(tells.values().all(|tell| tell.values.len() == 3 && tell.attempts == 3));
}

#[test]
fn programs_that_a_killed_session_left_are_ended_by_the_next() {
    let lab = lab();
    std::fs::create_dir_all(lab.study()).unwrap();
    let mut orphan = Command::new("sleep")
        .arg("87.6543")
        .env("RACECARS_STUDY", lab.study().canonicalize().unwrap())
        .process_group_of_its_own()
        .spawn()
        .unwrap();
    // A process has no environment to look at until it is quite there.
    let environment = format!("/proc/{}/environ", orphan.id());
    wait_until("the orphan runs", || {
        let environment = std::fs::read(&environment).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains("RACECARS_STUDY=")
    });
    let _study = lab.open(&settings("")).unwrap();
    let status = orphan.wait().unwrap();
    assert!(!status.success());
}

trait OwnGroup {
    fn process_group_of_its_own(&mut self) -> &mut Self;
}

impl OwnGroup for Command {
    fn process_group_of_its_own(&mut self) -> &mut Self {
        std::os::unix::process::CommandExt::process_group(self, 0)
    }
}

#[test]
fn asking_and_telling_by_hand() {
    for order in ["deterministic = false", "deterministic = true\nlookahead = 8"] {
        let lab = Lab::new();
        let settings = format!(
            "budget = 12\n{order}\nmaximize = 'last'\nnoise = 'no'\n\
             [parameters]\nn = '1..9'"
        );
        let settings = Settings::parse(&settings).unwrap();
        let open = || Study::open_to_ask(&lab.study(), &settings, lab.path()).unwrap();
        let first = open().ask(3).unwrap();
        assert_eq!(first.iter().map(|asked| asked.trial).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(open().pending(), first);
        let told =
            |trial, value| Told { trial: Some(trial), value: Some(value), ..Told::default() };
        open().tell(&told(1, 5.0)).unwrap();
        let error = open().tell(&told(1, 5.0)).unwrap_err().to_string();
        assert_eq!(error, "trial 1 has been told before");
        let error = open().tell(&told(7, 5.0)).unwrap_err().to_string();
        assert_eq!(error, "trial 7 was never asked; 3 have been");
        assert!(open().tell(&Told { trial: Some(0), ..Told::default() }).is_err());
        let failed = Told { trial: Some(0), failed: Some("fell".into()), ..Told::default() };
        open().tell(&failed).unwrap();
        open().tell(&Told { infeasible: Some(0.5), ..told(2, 9.0) }).unwrap();
        assert_eq!(open().best().unwrap().trial, 1);
        // A space of nine points.
        assert_eq!(open().ask(20).unwrap().len(), 6);
        assert_eq!(open().ask(20).unwrap().len(), 0);
        let counts = open().totals();
        assert_eq!((counts.told, counts.failures, counts.infeasible), (3, 1, 1));
    }
}

#[test]
fn a_full_disk_stops_the_run_and_the_same_command_goes_on_when_there_is_room() {
    let lab = lab();
    let disk = lab.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount = |options: &str| {
        let arguments = ["-t", "tmpfs", "-o", options, "tmpfs"];
        Command::new("mount").args(arguments).arg(&disk).output().is_ok_and(|o| o.status.success())
    };
    if !mount("size=24k") {
        return skip("a full disk", "not allowed to mount a small one");
    }
    let study = disk.join("study");
    let settings =
        Settings::parse(&settings("jobs = 3").replace("budget = 60", "budget = 300")).unwrap();
    let result = Study::open(&study, &settings, lab.path())
        .and_then(|mut study| study.run(&Interrupt::new(), &mut |_| {}));
    let full = result.unwrap_err();
    let told = || {
        let mut trials = Vec::new();
        journal::read(&study.join(journal::FILE), |_, event| {
            if let journal::Event::Tell(tell) = event {
                trials.push(tell.trial);
            }
            Ok(())
        })
        .unwrap();
        trials
    };
    let before = told();
    assert!(mount("remount,size=4m"));
    let summary = Study::open(&study, &settings, lab.path())
        .and_then(|mut study| study.run(&Interrupt::new(), &mut |_| {}));
    let mut after = told();
    assert!(Command::new("umount").arg(&disk).status().unwrap().success());
    assert_eq!(full.kind(), ErrorKind::System);
    assert!(full.to_string().contains("What was done before is in it"), "{full}");
    assert!(before.len() > 20);
    assert_eq!(after[..before.len()], before);
    assert_eq!(summary.unwrap().evaluations, 300);
    after.sort_unstable();
    assert_eq!(after, (0..300).collect::<Vec<_>>());
}
