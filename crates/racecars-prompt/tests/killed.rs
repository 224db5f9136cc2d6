//! A search whose process is killed at random moments, and resumed: nothing that was answered is paid for again, and
//! the result is that of an undisturbed search.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fake, Reply, answer, write_task};
use racecars_prompt::{Settings, Task};
use racecars_study::Interrupt;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const FOLDER: &str = "RACECARS_TEST_FOLDER";

/// Searches in the folder that the environment names. It is this test program that the test below starts and kills.
#[test]
#[ignore = "a part of the other test"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let task = Task::new(Settings::read(&folder.join("task.toml")).unwrap()).unwrap();
    let study = folder.join("study");
    let report =
        racecars_prompt::search(&task, &study, 4, &Interrupt::new(), |_| {}, &mut |_| {}).unwrap();
    std::fs::write(folder.join("done.json"), report.to_json().unwrap()).unwrap();
}

fn run(folder: &Path, kill_after: Option<Duration>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    if let Some(time) = kill_after {
        std::thread::sleep(time);
        // SIGKILL on Unix.
        child.kill().unwrap();
    }
    child.wait().unwrap();
}

fn result(folder: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(folder.join("done.json")).unwrap();
    let mut result: serde_json::Value = serde_json::from_str(&text).unwrap();
    for changing in ["seconds", "retries", "calls", "prompt_tokens", "answer_tokens", "lost"] {
        result.as_object_mut().unwrap().remove(changing);
    }
    result
}

#[test]
fn nothing_is_paid_for_twice_and_the_result_is_the_same() {
    let fake = Fake::start(|_, body| {
        std::thread::sleep(Duration::from_millis(3));
        Reply::Body(answer(body))
    });
    let (whole, torn) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // Ended by the number of prompts, since calls that were lost count as calls.
    for folder in [whole.path(), torn.path()] {
        let path = write_task(folder, &fake.url, 5000, "");
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.replace("finalists = 3", "finalists = 3\ncandidates = 25");
        std::fs::write(path, text).unwrap();
    }
    run(whole.path(), None);
    let first = fake.answered().len();
    let mut kills = 0;
    while !torn.path().join("done.json").exists() && kills < 40 {
        run(torn.path(), Some(Duration::from_millis(60 + 37 * kills % 200)));
        kills += 1;
    }
    run(torn.path(), None);
    assert!(kills > 1, "it was never killed");
    assert_eq!(result(torn.path()), result(whole.path()));
    // A request is sent again only if its answer was on its way when the process was killed: at most one per job.
    let mut times: BTreeMap<&String, usize> = BTreeMap::new();
    let answered = fake.answered();
    answered[first..].iter().for_each(|body| *times.entry(body).or_default() += 1);
    let again = times.values().map(|times| times - 1).sum::<usize>();
    assert_eq!(times.len(), first);
    assert!(
        again <= 4 * kills as usize,
        "{again} of {first} requests were sent again after {kills} kills"
    );
    // What is on disk is each answer once.
    let answers = std::fs::read_to_string(torn.path().join("study").join("answers.jsonl")).unwrap();
    assert_eq!(answers.lines().count(), first);
}
