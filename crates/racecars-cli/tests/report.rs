//! `racecars report`, `watch` and `export` as a user runs them.

#![allow(clippy::unwrap_used)]

mod common;

use common::wait_until;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn racecars(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_racecars"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap()
}

fn text(folder: &Path, arguments: &str) -> String {
    let output = racecars(folder, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn error(folder: &Path, arguments: &str) -> String {
    let output = racecars(folder, arguments);
    assert!(!output.status.success(), "`{arguments}` was accepted");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_study_is_reported_at_its_end_and_on_request_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let shown = text(here, "run -p x=0:10 --budget 30 --jobs 2 -- echo {x}");
    assert!(shown.contains("report       ") && shown.contains("report.html"), "{shown}");
    let page = std::fs::read_to_string(here.join("racecars-study/report.html")).unwrap();
    assert!(page.contains("<title>racecars-study · racecars</title>"));
    assert_eq!(text(here, "report --out page.html"), "wrote page.html\n");
    assert!(here.join("page.html").exists());
    // The folder, its parent, and from inside the folder.
    for study in ["racecars-study", "."] {
        assert_eq!(text(here, &format!("export {study} --to csv")).lines().count(), 31);
    }
    assert_eq!(text(&here.join("racecars-study"), "export --to csv").lines().count(), 31);
    let document: serde_json::Value =
        serde_json::from_str(&text(here, "export --to json")).unwrap();
    assert_eq!(document["trials"].as_array().unwrap().len(), 30);
    assert_eq!(text(here, "export --to optuna --out log"), "wrote log (30 trials)\n");
}

#[test]
fn what_cannot_be_shown_is_said_clearly() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let missing = "there is no study in racecars-study; `racecars run` begins one";
    assert!(error(here, "report").contains(missing));
    assert!(error(here, "export --to csv").contains(missing));
    assert!(error(here, "export --to excel").contains("`excel` is not one of csv, json, optuna"));
    let refused = error(here, "watch --addr 0.0.0.0:0");
    assert!(refused.contains("--allow-remote") && refused.contains("127.0.0.1"), "{refused}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let refused = error(here, &format!("watch --addr {address}"));
    assert!(refused.contains(&format!("cannot listen at {address}")), "{refused}");
    text(here, "run -p x=0:10 --budget 5 -- echo {x}");
    for command in ["export --to csv", "report"] {
        let refused = error(here, &format!("{command} --out nowhere/page"));
        assert!(refused.contains("cannot write") && refused.contains("nowhere/page"), "{refused}");
    }
    std::fs::remove_dir_all(here.join("racecars-study")).unwrap();
    std::fs::write(here.join("journal.jsonl"), "nonsense\n").unwrap();
    assert!(error(here, "report .").contains("is not the journal of a study"));
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_page_without_descriptors_left_waits_for_some_instead_of_spinning() {
    let folder = tempfile::tempdir().unwrap();
    let mut watch = Running(
        Command::new(env!("CARGO_BIN_EXE_racecars"))
            .args(["watch", "--addr", "127.0.0.1:0"])
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut line = String::new();
    BufReader::new(watch.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split("http://").nth(1).unwrap().split(' ').next().unwrap();
    let limit_descriptors = |count: usize| {
        let process = watch.0.id().to_string();
        let limit = format!("--nofile={count}:1024");
        let status = Command::new("prlimit").args(["--pid", &process, &limit]).status();
        assert!(status.unwrap().success());
    };
    let proc = format!("/proc/{}", watch.0.id());
    let is_free = |n: &usize| !Path::new(&format!("{proc}/fd/{n}")).exists();
    limit_descriptors((0..).find(is_free).unwrap());
    // The kernel has reserved a descriptor for the first.
    let mut clients = [0, 1].map(|_| TcpStream::connect(address).unwrap());
    for client in &mut clients {
        client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    }
    // The thread that takes connections is the first; one that spins never sleeps.
    let sleeps = || {
        let status = std::fs::read_to_string(format!("{proc}/status")).unwrap();
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.unwrap().trim().parse::<u64>().unwrap()
    };
    let before = sleeps();
    wait_until("it sleeps between its attempts", || sleeps() >= before + 5);
    limit_descriptors(100);
    for client in &mut clients {
        let mut page = String::new();
        client.read_to_string(&mut page).unwrap();
        assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
    }
}
