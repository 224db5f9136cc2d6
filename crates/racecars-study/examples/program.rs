//! A program for tests on any system: it computes, waits, floods its output, fails, or leaves a child behind.
//!
//!     program value X | stdin | flood X | exit CODE | sleep SECONDS | leave FILE | beat FILE

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{Read, Write};
use std::time::Duration;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["value", x] => println!("f = {}", square(x)),
        ["stdin"] => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).unwrap();
            let point: serde_json::Value = serde_json::from_str(&text).unwrap();
            println!("{}", square(&point["x"].to_string()));
        }
        ["flood", x] => {
            let line = [b'.'; 1023];
            let mut out = std::io::stdout().lock();
            for _ in 0..3000 {
                out.write_all(&line).unwrap();
                out.write_all(b"\n").unwrap();
            }
            writeln!(out, "{}", square(x)).unwrap();
        }
        ["exit", code] => std::process::exit(code.parse().unwrap()),
        ["sleep", seconds] => std::thread::sleep(Duration::from_secs(seconds.parse().unwrap())),
        // Its child has the pipes, and does not end by itself.
        ["leave", file] => {
            let own = std::env::current_exe().unwrap();
            let mut command = match std::env::var("RACECARS_TEST_RUNNER") {
                Ok(runner) => {
                    let mut command = std::process::Command::new(runner);
                    command.arg(own);
                    command
                }
                Err(_) => std::process::Command::new(own),
            };
            #[expect(clippy::zombie_processes, reason = "nobody waits for it: that is the test")]
            let _child = command.args(["beat", file]).spawn().unwrap();
            while std::fs::read(file).unwrap_or_default().is_empty() {
                std::thread::sleep(Duration::from_millis(5));
            }
            println!("1");
        }
        // A file that grows tells that somebody is alive.
        ["beat", file] => {
            for _ in 0..6000 {
                let mut file =
                    std::fs::OpenOptions::new().append(true).create(true).open(file).unwrap();
                file.write_all(b".").unwrap();
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        _ => panic!("{arguments:?} is none of those"),
    }
}

fn square(x: &str) -> f64 {
    let x: f64 = x.parse().unwrap();
    (x - 0.25) * (x - 0.25)
}
