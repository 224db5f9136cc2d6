//! Journals of studies that never ran: the library's optimizers on a made-up program, written the way
//! a study writes them. For tests of what reads journals, at sizes that no test could run.

use racecars::{Algorithm, Candidate, Direction, Outcome, Space};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// When all made-up studies began, in milliseconds since 1970.
const BEGAN: u64 = 1_790_000_000_000;

/// What a made-up study is like.
#[derive(Clone)]
pub(crate) struct Study {
    pub(crate) space: Space,
    pub(crate) algorithm: &'static str,
    pub(crate) budget: u64,
    pub(crate) evaluations: u64,
    pub(crate) jobs: usize,
    pub(crate) direction: Direction,
    /// How long an evaluation takes, in milliseconds.
    pub(crate) milliseconds: u64,
    /// After how many evaluations the study was interrupted for a night.
    pub(crate) interruption: Option<u64>,
    pub(crate) is_finished: bool,
}

/// What the made-up program does with a point: the outcome as a journal has it, and standard error.
pub(crate) type Program<'a> = &'a dyn Fn(u64, &[f64]) -> (Value, Option<&'static str>);

impl Study {
    pub(crate) fn new(space: Space, evaluations: u64) -> Self {
        Study {
            space,
            algorithm: "race-cars",
            budget: evaluations,
            evaluations,
            jobs: 4,
            direction: Direction::Minimize,
            milliseconds: 800,
            interruption: None,
            is_finished: true,
        }
    }

    /// Writes the journal into a folder.
    pub(crate) fn write(&self, folder: &Path, program: Program<'_>) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let mut out = BufWriter::new(std::fs::File::create(folder.join("journal.jsonl"))?);
        let algorithm: Algorithm = self.algorithm.parse().map_err(io::Error::other)?;
        let mut optimizer =
            algorithm.optimizer(&self.space, Some(self.budget), 7).map_err(io::Error::other)?;
        let mut words = vec!["./simulate".to_string()];
        for entry in self.space.entries().iter().take(8) {
            words.extend([format!("--{}", entry.name()), format!("{{{}}}", entry.name())]);
        }
        let maximize = self.direction == Direction::Maximize;
        let first = json!({"study": {
            "version": 1, "space": self.space, "algorithm": self.algorithm, "seed": 7,
            "budget": self.budget, "direction": if maximize { "maximize" } else { "minimize" },
            "deterministic": false, "jobs": self.jobs, "command": words, "base": "/work", "started": BEGAN,
        }});
        writeln!(out, "{first}")?;
        // One worker after the other ends, each a little later than the one before.
        let mut out_now: VecDeque<(u64, Candidate, u64, u32)> = VecDeque::new();
        let (mut now, mut asked, mut told) = (BEGAN, 0, 0);
        let last = self.evaluations + if self.is_finished { 0 } else { self.jobs as u64 };
        while told < self.evaluations {
            while out_now.len() < self.jobs && asked < last {
                let Some(candidate) = optimizer.ask() else { break };
                let params = self.space.view(candidate.point());
                writeln!(out, "{}", json!({"ask": {"trial": asked, "params": params, "at": now}}))?;
                let worker = (asked % self.jobs as u64) as u32;
                out_now.push_back((asked, candidate, now, worker));
                asked += 1;
            }
            let Some((trial, candidate, start, worker)) = out_now.pop_front() else { break };
            let wobble = 60 + (trial * 7919) % 80;
            let end = (start + self.milliseconds * wobble / 100).max(now);
            now = end;
            let (outcome, stderr) = program(trial, candidate.point());
            let seconds = (end - start) as f64 / 1000.0;
            let tell = json!({"tell": {
                "trial": trial, "outcome": outcome, "attempts": 1, "seconds": seconds,
                "worker": worker, "at": end, "stderr": stderr,
            }});
            writeln!(out, "{tell}")?;
            let inward = self.inward(&outcome);
            optimizer.tell(candidate, inward).map_err(io::Error::other)?;
            told += 1;
            if self.interruption == Some(told) {
                now += 9 * 3_600_000;
                out_now.iter_mut().for_each(|flight| flight.2 = now);
                writeln!(out, "{}", json!({"resume": {"at": now}}))?;
            }
        }
        if self.is_finished {
            writeln!(out, "{}", json!({"stop": {"reason": "evaluations", "at": now}}))?;
        }
        out.flush()
    }

    /// An outcome as optimizers see it.
    fn inward(&self, outcome: &Value) -> Outcome {
        let outcome: Outcome =
            serde_json::from_value(outcome.clone()).unwrap_or_else(Outcome::failed);
        outcome.signed(self.direction)
    }
}
