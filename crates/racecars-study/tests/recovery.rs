//! What a study survives: interruptions, torn and damaged journals, a second process, a full disk;
//! and what it refuses.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{Lab, is_running, skip, wait_until};
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
    let aside = Study::restart(&lab.study()).unwrap().unwrap();
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

#[test]
fn damage_is_reported_with_its_line() {
    let lab = lab();
    lab.run(&settings("")).unwrap();
    let path = lab.study().join(journal::FILE);
    let whole = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let with = |number: usize, line: &str| {
        let mut lines = lines.clone();
        lines[number - 1] = line;
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        let error = lab.run(&settings("")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Journal);
        error.to_string()
    };
    assert!(with(9, "garbage").contains("line 9 of "));
    assert!(with(1, "garbage").contains("line 1 of "));
    assert!(with(30, lines[0]).contains("line 30 of "));
    let first_ask = lines.iter().position(|line| line.starts_with("{\"ask\"")).unwrap();
    let other = lines[first_ask].replace("\"n\":", "\"n\":1");
    let error = with(first_ask + 1, &other);
    assert!(error.contains("is not the point that auto proposes there"), "{error}");
    let tell = lines.iter().position(|line| line.starts_with("{\"tell\"")).unwrap();
    let error = with(tell + 2, lines[tell]);
    assert!(error.contains("has been told before"), "{error}");
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
    for deterministic in [false, true] {
        let lab = Lab::new();
        let settings = format!(
            "budget = 12\ndeterministic = {deterministic}\nmaximize = 'last'\n[parameters]\nn = '1..9'"
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
