//! Searches against an endpoint in this process that fails, stalls, limits and lies.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fake, Reply, answer, write_task};
use racecars_prompt::{
    ANSWERS, ErrorKind, Limit, PROMPT, Report, Settings, Stop, Task, planned_prompts,
};
use racecars_study::Interrupt;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

fn task(folder: &Path, url: &str, calls: u64, more: &str) -> Task {
    Task::new(Settings::read(&write_task(folder, url, calls, more)).unwrap()).unwrap()
}

fn search(task: &Task, folder: &Path, jobs: usize) -> racecars_prompt::Result<Report> {
    let study = folder.join("study");
    racecars_prompt::search(task, &study, jobs, &Interrupt::new(), |_| {}, &mut |_| {})
}

fn assert_none_twice(fake: &Fake) {
    let answered = fake.answered();
    let distinct: BTreeSet<&String> = answered.iter().collect();
    assert_eq!(distinct.len(), answered.len(), "a request was paid for twice");
}

#[test]
fn the_best_prompt_is_found_tested_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::start(|_, body| Reply::Body(answer(body)));
    let task = task(folder.path(), &fake.url, 700, "");
    let report = search(&task, folder.path(), 4).unwrap();
    let (best, start) = (report.best.as_ref().unwrap(), report.start.as_ref().unwrap());
    assert_eq!(start.trial, 0);
    let (ours, theirs) = (best.test.unwrap(), start.test.unwrap());
    assert!(ours.accuracy.value > theirs.accuracy.value + 0.2, "{ours:?} {theirs:?}");
    assert!(ours.accuracy.low < ours.accuracy.value && ours.accuracy.value < ours.accuracy.high);
    assert!(report.gain.unwrap().low > 0.0, "{:?}", report.gain);
    assert!(report.counts.dropped > 0);
    assert_eq!((ours.texts, best.dev.unwrap().texts), (40, 16));
    assert!(report.counts.spent.calls <= 700);
    assert_eq!(report.counts.spent.calls as usize, fake.requests());
    assert_eq!(report.counts.spent.prompt_tokens, 20 * report.counts.spent.calls);
    assert_none_twice(&fake);
    // The file can be used by others: it is what was sent, with the text left open.
    let file = std::fs::read_to_string(folder.path().join("study").join(PROMPT)).unwrap();
    let file: serde_json::Value = serde_json::from_str(&file).unwrap();
    let content = file["messages"][0]["content"].as_str().unwrap();
    assert!(content.contains("carefully") && content.ends_with("Text: {text}"), "{content}");
    let sent = content.replace("{text}", "word55");
    assert!(fake.answered().iter().any(|body| {
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        body["messages"][0]["content"] == sent.as_str()
            && body["temperature"] == file["settings"]["temperature"]
    }));
    // Run again, everything is there.
    let requests = fake.requests();
    let again = search(&task, folder.path(), 4).unwrap();
    assert_eq!(fake.requests(), requests);
    assert_eq!(again.best.unwrap().choices, best.choices);
}

#[test]
fn the_result_does_not_depend_on_the_number_of_jobs() {
    let fake = Fake::start(|number, body| {
        std::thread::sleep(Duration::from_millis(number as u64 * 7919 % 4));
        Reply::Body(answer(body))
    });
    let results: Vec<_> = [1, 8]
        .into_iter()
        .map(|jobs| {
            let folder = tempfile::tempdir().unwrap();
            let task = task(folder.path(), &fake.url, 500, "");
            let report = search(&task, folder.path(), jobs).unwrap();
            (report.best.unwrap().choices, report.counts.candidates, report.counts.spent.calls)
        })
        .collect();
    assert_eq!(results[0], results[1]);
    assert!(fake.seen.lock().unwrap().most_at_once > 1);
}

/// The first prompts race side by side. The very first is dropped like any other, and is still what the best is compared
/// with.
#[test]
fn the_first_prompts_are_halved() {
    let fake = Fake::start(|_, body| Reply::Body(answer(body)));
    let folder = tempfile::tempdir().unwrap();
    // 72 calls for the search, three prompts on all 24 texts.
    let small = task(folder.path(), &fake.url, 200, "");
    let report = search(&small, folder.path(), 4).unwrap();
    assert!(report.counts.candidates >= 6, "{:?}", report.counts);
    assert!(report.counts.dropped >= 4, "{:?}", report.counts);
    let (best, start) = (report.best.unwrap(), report.start.unwrap());
    assert_eq!((best.train.texts, start.trial, start.train.texts), (24, 0, 4));
    assert!(start.test.is_some() && report.gain.is_some());
    // With the race off, all prompts are tried on all texts.
    let folder = tempfile::tempdir().unwrap();
    let path = write_task(folder.path(), &fake.url, 200, "");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("[search]", "[search]\ndrop_level = 0")).unwrap();
    let all = Task::new(Settings::read(&path).unwrap()).unwrap();
    let report = search(&all, folder.path(), 4).unwrap();
    assert_eq!((report.counts.candidates, report.counts.dropped), (3, 0));
}

/// A study resumed from any part of its journal ends as if it had not been interrupted, without a request.
#[test]
fn a_journal_that_ends_anywhere_is_resumed_to_the_same_result() {
    let fake = Fake::start(|_, body| Reply::Body(answer(body)));
    let folder = tempfile::tempdir().unwrap();
    let path = write_task(folder.path(), &fake.url, 5000, "");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("[search]", "[search]\ncandidates = 20")).unwrap();
    let task = Task::new(Settings::read(&path).unwrap()).unwrap();
    let result = |report: Report| {
        let best = report.best.unwrap();
        let start = report.start.unwrap();
        let counts = (report.counts.candidates, report.counts.dropped, report.counts.spent.calls);
        (best.trial, best.choices, start.train.texts, counts)
    };
    let whole = result(search(&task, folder.path(), 4).unwrap());
    let requests = fake.requests();
    let journal = folder.path().join("study").join(racecars_study::journal::FILE);
    let text = std::fs::read_to_string(&journal).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    // One for the study, 12 that ask for the first prompts, 12 that tell of them.
    assert!(lines[12].contains("\"ask\"") && lines[13].contains("\"tell\""));
    for end in [1, 2, 7, 13, 14, 19, 24, 25, 26, 27, lines.len()] {
        std::fs::write(&journal, lines[..end].concat()).unwrap();
        assert_eq!(result(search(&task, folder.path(), 4).unwrap()), whole, "{end} lines");
    }
    assert_eq!(fake.requests(), requests);
}

#[test]
fn what_passes_is_tried_again_and_lies_are_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::start(|number, body| {
        let lie = |text: &str| Reply::Body(text.to_string());
        match number {
            1 => Reply::Status(
                429,
                "Retry-After: 0\r\n",
                "{\"error\":{\"message\":\"slow down\"}}".into(),
            ),
            3 => Reply::Status(503, "", "<html>".into()),
            5 => Reply::Close,
            7 => Reply::Cut(answer(body)),
            9 => lie("not json"),
            11 => lie("{\"choices\":[]}"),
            13 => lie("{\"choices\":[{\"message\":{\"content\":7}}]}"),
            15 => lie(
                "{\"choices\":[{\"message\":{\"content\":\"yes\"}}],\"usage\":{\"prompt_tokens\":NaN}}",
            ),
            17 => lie(
                "{\"choices\":[{\"message\":{\"content\":\"yes\"}}],\"usage\":{\"prompt_tokens\":-1}}",
            ),
            19 => Reply::Status(500, "Retry-After: soon\r\n", String::new()),
            _ => Reply::Body(answer(body)),
        }
    });
    let more = "retries = 12";
    let task = task(folder.path(), &fake.url, 500, more);
    let report = search(&task, folder.path(), 4).unwrap();
    assert!(report.best.is_some());
    assert_eq!(report.counts.retries, 10);
    // Those that were delivered may have been paid for: they count, and are kept as lost.
    assert_eq!(report.counts.spent.lost, 7);
    assert_eq!(report.counts.spent.calls as usize, fake.requests() - 3);
    let again = search(&task, folder.path(), 4).unwrap();
    assert_eq!((again.counts.spent, again.counts.retries), (report.counts.spent, 0));
}

#[test]
fn a_stall_ends_with_the_timeout_and_what_was_answered_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::start(|number, body| match number >= 30 {
        true => Reply::Stall(Duration::from_secs(20)),
        false => Reply::Body(answer(body)),
    });
    let path = write_task(folder.path(), &fake.url, 500, "retries = 0");
    let text = std::fs::read_to_string(&path).unwrap().replace("\"5s\"", "\"300ms\"");
    std::fs::write(&path, text).unwrap();
    let task = Task::new(Settings::read(&path).unwrap()).unwrap();
    let error = search(&task, folder.path(), 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Endpoint);
    assert!(
        error.to_string().contains("timeout") && error.to_string().contains("resume"),
        "{error}"
    );
    let answers = std::fs::read_to_string(folder.path().join("study").join(ANSWERS)).unwrap();
    assert_eq!(answers.lines().filter(|line| line.contains("\"answer\"")).count(), 30);
    assert_eq!(answers.lines().filter(|line| line.contains("\"lost\"")).count(), 1);
}

#[test]
fn refusals_end_the_run_with_a_reason_and_without_the_key() {
    // A variable that is always set: to set one would be unsafe.
    let variable = "PATH";
    let key = std::env::var(variable).unwrap();
    for (status, what) in
        [(401, "PATH was sent"), (403, "PATH was sent"), (404, "endpoint.model"), (302, "302")]
    {
        let folder = tempfile::tempdir().unwrap();
        let echo = key.clone();
        let fake = Fake::start(move |_, _| {
            Reply::Status(
                status,
                "Location: /v1/x\r\n",
                format!("{{\"error\":\"bad key {echo}\"}}"),
            )
        });
        let more = format!("key_variable = \"{variable}\"");
        let task = task(folder.path(), &fake.url, 500, &more);
        let error = search(&task, folder.path(), 1).unwrap_err().to_string();
        assert!(error.contains(what) && !error.contains(&key), "{error}");
        assert!(error.contains("bad key ***"), "{error}");
        assert_eq!(fake.requests(), 1);
        assert_eq!(fake.seen.lock().unwrap().keys, [format!("Bearer {key}")]);
        for file in std::fs::read_dir(folder.path().join("study")).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            assert!(!text.contains(&key));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let task = task(folder.path(), "http://127.0.0.1:9/v1", 500, "key_variable = \"NO_SUCH_KEY\"");
    let error = search(&task, folder.path(), 1).unwrap_err().to_string();
    assert!(error.contains("NO_SUCH_KEY") && error.contains("is not set"), "{error}");
}

#[test]
fn a_long_pause_ends_the_run_and_an_absent_endpoint_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::start(|_, _| Reply::Status(429, "Retry-After: 86400\r\n", String::new()));
    let limited = task(folder.path(), &fake.url, 500, "");
    let error = search(&limited, folder.path(), 1).unwrap_err().to_string();
    assert!(error.contains("a pause of 86400 s"), "{error}");
    assert_eq!(fake.requests(), 1);
    let folder = tempfile::tempdir().unwrap();
    let absent = task(folder.path(), "http://127.0.0.1:9/v1", 500, "retries = 0");
    let error = search(&absent, folder.path(), 1).unwrap_err().to_string();
    assert!(error.contains("127.0.0.1:9") && error.contains("not reached"), "{error}");
    // A name that is not found costs nothing.
    let folder = tempfile::tempdir().unwrap();
    let unknown = task(folder.path(), "http://nowhere.invalid/v1", 500, "retries = 0");
    let error = search(&unknown, folder.path(), 1).unwrap_err().to_string();
    assert!(error.contains("nowhere.invalid") && error.contains("not reached"), "{error}");
    let answers = std::fs::read_to_string(folder.path().join("study").join(ANSWERS)).unwrap();
    assert!(!answers.contains("lost"), "{answers}");
}

#[test]
fn a_prompt_that_is_refused_fails_and_others_go_on() {
    let refuse = |body: &serde_json::Value| common::prompt_of(body).matches("Label:").count() > 1;
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::start(move |_, body| match refuse(body) {
        true => Reply::Status(400, "", "{\"error\":{\"message\":\"context too long\"}}".into()),
        false => Reply::Body(answer(body)),
    });
    let some = task(folder.path(), &fake.url, 600, "");
    let report = search(&some, folder.path(), 4).unwrap();
    assert!(report.counts.refused > 0 && report.best.is_some());
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::start(|_, _| Reply::Status(422, "", "no such field".into()));
    let none = task(folder.path(), &fake.url, 500, "");
    let error = search(&none, folder.path(), 1).unwrap_err().to_string();
    assert!(
        error.contains("first 3 prompts were all refused") && error.contains("no such field"),
        "{error}"
    );
}

#[test]
fn limits_are_kept_and_can_be_raised() {
    let fake = Fake::start(|_, body| Reply::Body(answer(body)));
    let folder = tempfile::tempdir().unwrap();
    let small = task(folder.path(), &fake.url, 200, "");
    let report = search(&small, folder.path(), 8).unwrap();
    assert_eq!(report.stop, Stop::Limit(Limit::Calls));
    assert!(report.counts.spent.calls <= 200 && report.best.as_ref().unwrap().test.is_some());
    assert_eq!(report.counts.spent.calls as usize, fake.requests());
    let large = task(folder.path(), &fake.url, 400, "");
    let more = search(&large, folder.path(), 8).unwrap();
    assert!(more.counts.candidates > report.counts.candidates);
    assert!(more.counts.spent.calls > 200 && more.counts.spent.calls <= 400);
    // With a lower limit again, 20 are planned, and all that were tried count as planned.
    search(&task(folder.path(), &fake.url, 1200, ""), folder.path(), 8).unwrap();
    let tried = search(&small, folder.path(), 8).unwrap().counts;
    assert!(tried.candidates > 20 && tried.planned == tried.candidates, "{tried:?}");

    for (limit, setting, prices) in [
        (Limit::Tokens, "tokens = 6000", ""),
        (Limit::Money, "money = 0.006", "input_price = 1\noutput_price = 1"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = write_task(folder.path(), &fake.url, 9000, prices);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}\n{setting}\n")).unwrap();
        let task = Task::new(Settings::read(&path).unwrap()).unwrap();
        let report = search(&task, folder.path(), 4).unwrap();
        assert_eq!(report.stop, Stop::Limit(limit));
        let spent = report.counts.spent;
        assert!(spent.prompt_tokens + spent.answer_tokens <= 6000, "{spent:?}");
        assert!(report.counts.money <= 0.006);
    }

    let folder = tempfile::tempdir().unwrap();
    let silent = Fake::start(|_, _| Reply::Body("{\"choices\":[{\"text\":\"yes\"}]}".into()));
    let path = write_task(folder.path(), &silent.url, 500, "");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}\ntokens = 6000\n")).unwrap();
    let task = Task::new(Settings::read(&path).unwrap()).unwrap();
    let error = search(&task, folder.path(), 1).unwrap_err().to_string();
    assert!(error.contains("usage.prompt_tokens"), "{error}");
    // It has been paid for, so it is kept.
    let answers = std::fs::read_to_string(folder.path().join("study").join(ANSWERS)).unwrap();
    assert_eq!((silent.requests(), answers.lines().count()), (1, 1));
}

/// What a user may write into the file, and what the answer must name.
#[test]
fn mistakes_are_named_before_anything_is_sent() {
    let fake = Fake::start(|_, body| Reply::Body(answer(body)));
    let other = "sentence\tlabel\nword1\tno\n";
    for (table, text, from, to, what) in [
        (
            "",
            "",
            "calls = 500",
            "calls = 500\ntokens = 20",
            "limits.tokens is 20, and a single request may take",
        ),
        (
            "dev.tsv",
            other,
            "",
            "",
            "data.dev has no column `text`, which a template has; there are label, sentence",
        ),
        ("test.tsv", other, "", "", "data.test has no column `text`"),
        ("pool.tsv", other, "\"0..3\"", "1", "the pool of examples has no column `text`"),
        ("dev.tsv", "text\tlabel\nx\t\n", "", "", "an empty label (column `label`"),
        (
            "dev.tsv",
            "text\ttext\tlabel\nx\ty\tno\n",
            "",
            "",
            "the header has the column `text` twice",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = write_task(folder.path(), &fake.url, 500, "");
        let file = std::fs::read_to_string(&path).unwrap();
        assert!(file.contains(from), "{file}");
        std::fs::write(&path, file.replacen(from, to, 1)).unwrap();
        if !table.is_empty() {
            std::fs::write(folder.path().join(table), text).unwrap();
        }
        let checked = Settings::read(&path).and_then(Task::new);
        let error = checked.and_then(|task| planned_prompts(&task)).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    assert_eq!(fake.requests(), 0);
}

#[test]
fn too_few_calls_and_another_file_are_refused() {
    let fake = Fake::start(|_, body| Reply::Body(answer(body)));
    let folder = tempfile::tempdir().unwrap();
    let few = task(folder.path(), &fake.url, 100, "");
    let error = search(&few, folder.path(), 1).unwrap_err().to_string();
    assert!(error.contains("limits.calls is 100") && error.contains("128 are kept"), "{error}");
    let first = task(folder.path(), &fake.url, 200, "");
    search(&first, folder.path(), 4).unwrap();
    let path = write_task(folder.path(), &fake.url, 200, "");
    let text = std::fs::read_to_string(&path).unwrap().replace("Guess.", "Try.");
    std::fs::write(&path, text).unwrap();
    let other = Task::new(Settings::read(&path).unwrap()).unwrap();
    let error = search(&other, folder.path(), 1).unwrap_err().to_string();
    assert!(error.contains("what has changed is [choices]"), "{error}");
    let path = write_task(folder.path(), &fake.url, 200, "");
    let text = std::fs::read_to_string(&path).unwrap().replace("0..3", "0..1");
    std::fs::write(&path, text).unwrap();
    let fewer = Task::new(Settings::read(&path).unwrap()).unwrap();
    let error = search(&fewer, folder.path(), 1).unwrap_err().to_string();
    assert!(error.contains("what has changed is examples.count"), "{error}");
    // Afresh, with the answers that are there.
    let study = folder.path().join("study");
    assert!(racecars_prompt::restart(&study).unwrap().is_some());
    let (before, wider) = (fake.requests(), task(folder.path(), &fake.url, 2000, ""));
    let report = search(&wider, folder.path(), 4).unwrap();
    assert!(report.counts.spent.calls > before as u64);
    assert_none_twice(&fake);
}

#[test]
fn the_model_writes_instructions_that_are_tried() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::start(|_, body| {
        let prompt = common::prompt_of(body);
        if prompt.contains("<INS>") {
            assert!(prompt.contains("score 0.") && prompt.contains("Say yes or no."), "{prompt}");
            let text = format!("Very carefully {}.", body["seed"]);
            let body = serde_json::json!({"choices": [{"message": {"content": format!("<INS>{text}</INS>")}}]});
            return Reply::Body(body.to_string());
        }
        Reply::Body(answer(body))
    });
    let path = write_task(folder.path(), &fake.url, 900, "");
    let text = std::fs::read_to_string(&path).unwrap().replace(", \"Think carefully.\"", "");
    let text = format!(
        "{text}\n[propose]\nchoice = \"instruction\"\ncount = 3\ntask = \"Say yes or no.\"\n"
    );
    std::fs::write(&path, text).unwrap();
    let task = Task::new(Settings::read(&path).unwrap()).unwrap();
    let report = search(&task, folder.path(), 4).unwrap();
    assert!(report.counts.written > 0);
    let file = std::fs::read_to_string(folder.path().join("study").join(PROMPT)).unwrap();
    assert!(file.contains("Very carefully"), "{file}");
    let requests = fake.requests();
    let again = search(&task, folder.path(), 4).unwrap();
    assert_eq!(
        (fake.requests(), again.best.unwrap().trial),
        (requests, report.best.unwrap().trial)
    );
}

#[test]
fn texts_that_are_in_two_tables_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let whole = task(folder.path(), "http://127.0.0.1:9/v1", 500, "");
    assert_eq!(whole.shared_texts(), []);
    let mut settings = whole.settings;
    settings.data.test.clone_from(&settings.data.dev);
    settings.data.dev = Some(settings.data.train.clone());
    settings.data.dev_texts = Some(5);
    let shared = Task::new(settings).unwrap().shared_texts();
    assert_eq!(shared, [("development", "training", 5)]);
}
