//! Following the journal of a study, for reports, exports and the live page.
//!
//! A [`Reader`] goes through the journal once, line by line, and holds one line at a time. It may be
//! asked again for what has been written since, so that a page can follow a study that runs. It never
//! writes: a torn last line is left for the next time, since it may be one that is just being written,
//! and a damaged line is left out and its number kept, since a report of the rest is better than none.

mod params;

use racecars::{Algorithm, Optimizer, Outcome, Space};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The name of the journal in the folder of a study.
pub const JOURNAL: &str = "journal.jsonl";

/// Which way is better, as a journal spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Smaller values are better.
    #[default]
    Minimize,
    /// Larger values are better.
    Maximize,
}

impl Direction {
    /// A value turned so that smaller is better.
    pub fn cost(self, value: f64) -> f64 {
        match self {
            Direction::Minimize => value,
            Direction::Maximize => -value,
        }
    }
}

/// What the journal's first line says about the study.
#[derive(Debug, Clone, Deserialize)]
pub struct Settings {
    /// What is searched.
    pub space: Space,
    /// The algorithm's name.
    #[serde(default = "race_cars")]
    pub algorithm: String,
    /// The seed.
    #[serde(default)]
    pub seed: u64,
    /// The number of evaluations planned.
    #[serde(default)]
    pub budget: Option<u64>,
    /// Which way is better.
    #[serde(default)]
    pub direction: Direction,
    /// Whether outcomes are told in the order asked.
    #[serde(default)]
    pub deterministic: bool,
    /// How many evaluations run at once.
    #[serde(default = "one")]
    pub jobs: usize,
    /// The program and its arguments, with `{name}` where a parameter goes.
    #[serde(default)]
    pub command: Vec<String>,
    /// When the study began, in milliseconds since 1970.
    #[serde(default)]
    pub started: u64,
}

fn race_cars() -> String {
    Algorithm::race_cars().name().to_string()
}

fn one() -> usize {
    1
}

impl Settings {
    /// An optimizer as the study began with, for replaying it.
    pub fn optimizer(&self) -> racecars::Result<Box<dyn Optimizer>> {
        self.algorithm.parse::<Algorithm>()?.optimizer(&self.space, self.budget, self.seed)
    }
}

/// What came of a trial.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// A value, in the user's sense.
    Value(f64),
    /// A constraint was broken.
    Infeasible {
        /// By how much.
        violation: f64,
        /// The value, where there is one.
        value: Option<f64>,
    },
    /// There is no value.
    Failed {
        /// The kind of failure: `exit`, `signal`, `timeout` and so on.
        kind: String,
        /// What happened exactly.
        detail: String,
    },
}

impl Told {
    /// This outcome as an optimizer sees it, who minimizes.
    pub fn outcome(&self, direction: Direction) -> Outcome {
        match self {
            Told::Value(value) => Outcome::from(direction.cost(*value)),
            Told::Infeasible { violation, .. } => Outcome::infeasible(*violation),
            Told::Failed { kind, .. } => Outcome::failed(kind),
        }
    }
}

/// A line of the journal.
#[derive(Debug)]
pub enum Event<'a> {
    /// The optimizer proposed a point.
    Ask {
        /// The trial's number.
        trial: u64,
        /// The point by name, as written.
        params: &'a RawValue,
        /// In deterministic mode, how many outcomes the optimizer knew by then: lines are written as
        /// trials end, but told in the order asked.
        told: Option<u64>,
        /// When, in milliseconds since 1970.
        at: u64,
    },
    /// A trial ended.
    Tell {
        /// The trial's number.
        trial: u64,
        /// What came of it.
        told: Told,
        /// How often it was tried.
        attempts: u32,
        /// How long it took.
        seconds: f64,
        /// Who evaluated it.
        worker: u32,
        /// When it ended, in milliseconds since 1970.
        at: u64,
        /// The end of its standard error.
        stderr: String,
    },
    /// A trial was evaluated once more.
    Repeat {
        /// The trial's number.
        trial: u64,
        /// The new value.
        value: f64,
    },
    /// The study stopped.
    Stop {
        /// Why.
        reason: String,
        /// When, in milliseconds since 1970.
        at: u64,
    },
    /// The study goes on.
    Resume {
        /// When, in milliseconds since 1970.
        at: u64,
    },
}

/// Reads a journal, now and again.
pub struct Reader {
    path: PathBuf,
    file: BufReader<File>,
    /// Where the first line not yet read begins.
    offset: u64,
    number: u64,
    line: Vec<u8>,
    settings: Settings,
    header: Box<RawValue>,
    damaged: Vec<u64>,
}

impl Reader {
    /// Opens the journal in a study's folder; `None` if the study has not begun.
    pub fn open(folder: &Path) -> io::Result<Option<Reader>> {
        let path = folder.join(JOURNAL);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(explain(&path, &error)),
        };
        let mut file = BufReader::with_capacity(1 << 18, file);
        let mut line = Vec::new();
        file.read_until(b'\n', &mut line).map_err(|error| explain(&path, &error))?;
        if !line.ends_with(b"\n") {
            return Ok(None);
        }
        #[derive(Deserialize)]
        struct First<'a> {
            #[serde(borrow)]
            study: &'a RawValue,
        }
        let refuse = |error: serde_json::Error| {
            let what = format!("{}, line 1: not the journal of a study: {error}", path.display());
            io::Error::new(io::ErrorKind::InvalidData, what)
        };
        let first: First<'_> = serde_json::from_slice(&line).map_err(refuse)?;
        let settings = serde_json::from_str(first.study.get()).map_err(refuse)?;
        let (offset, header) = (line.len() as u64, first.study.to_owned());
        let damaged = Vec::new();
        Ok(Some(Reader { path, file, offset, number: 1, line, settings, header, damaged }))
    }

    /// What the first line says.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The first line's description of the study, as written.
    pub fn header(&self) -> &RawValue {
        &self.header
    }

    /// The numbers of the lines that could not be read.
    pub fn damaged(&self) -> &[u64] {
        &self.damaged
    }

    /// Whether the journal has been replaced by another, so that it must be opened anew.
    pub fn is_replaced(&self) -> bool {
        let Ok(here) = self.file.get_ref().metadata() else { return true };
        match std::fs::metadata(&self.path) {
            Ok(there) => {
                (here.dev(), here.ino()) != (there.dev(), there.ino()) || there.len() < self.offset
            }
            Err(_) => true,
        }
    }

    /// Hands over the lines that have not been read yet, in order, up to a torn last line.
    pub fn read(&mut self, mut take: impl FnMut(Event<'_>) -> io::Result<()>) -> io::Result<()> {
        loop {
            self.line.clear();
            let read = self.file.read_until(b'\n', &mut self.line);
            read.map_err(|error| explain(&self.path, &error))?;
            if !self.line.ends_with(b"\n") {
                // The writer may finish the line, or cut it off and write another.
                self.file.seek(SeekFrom::Start(self.offset))?;
                return Ok(());
            }
            self.offset += self.line.len() as u64;
            self.number += 1;
            match serde_json::from_slice::<Line<'_>>(&self.line).map(Line::event) {
                Ok(Some(event)) => take(event)?,
                Ok(None) => {}
                Err(_) => self.damaged.push(self.number),
            }
        }
    }
}

/// Encodes the parameters of an [`Event::Ask`], or says why they are not a point of the space.
pub fn encode(space: &Space, params: &RawValue) -> Result<Vec<f64>, String> {
    params::encode(space, params).map_err(|error| error.to_string())
}

fn explain(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// A line as it is written: an object with one of these, or with something newer than this code.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    ask: Option<Ask<'a>>,
    tell: Option<Tell>,
    repeat: Option<Repeat>,
    stop: Option<Stop>,
    resume: Option<Resume>,
}

#[derive(Deserialize)]
struct Ask<'a> {
    trial: u64,
    #[serde(borrow)]
    params: &'a RawValue,
    told: Option<u64>,
    #[serde(default)]
    at: u64,
}

#[derive(Deserialize)]
struct Tell {
    trial: u64,
    outcome: Written,
    #[serde(default)]
    attempts: u32,
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    worker: u32,
    #[serde(default)]
    at: u64,
    stderr: Option<String>,
}

#[derive(Deserialize)]
struct Written {
    value: Option<f64>,
    infeasible: Option<f64>,
    failed: Option<String>,
    #[serde(default)]
    detail: String,
}

#[derive(Deserialize)]
struct Repeat {
    trial: u64,
    value: Option<f64>,
}

#[derive(Deserialize)]
struct Stop {
    #[serde(default)]
    reason: String,
    #[serde(default)]
    at: u64,
}

#[derive(Deserialize)]
struct Resume {
    #[serde(default)]
    at: u64,
}

impl<'a> Line<'a> {
    fn event(self) -> Option<Event<'a>> {
        if let Some(Ask { trial, params, told, at }) = self.ask {
            return Some(Event::Ask { trial, params, told, at });
        }
        if let Some(Tell { trial, outcome, attempts, seconds, worker, at, stderr }) = self.tell {
            let (told, stderr) = (outcome.told(), stderr.unwrap_or_default());
            return Some(Event::Tell { trial, told, attempts, seconds, worker, at, stderr });
        }
        if let Some(Repeat { trial, value: Some(value) }) = self.repeat {
            return Some(Event::Repeat { trial, value });
        }
        if let Some(Stop { reason, at }) = self.stop {
            return Some(Event::Stop { reason, at });
        }
        self.resume.map(|Resume { at }| Event::Resume { at })
    }
}

impl Written {
    fn told(self) -> Told {
        let Written { value, infeasible, failed, detail } = self;
        match (failed, infeasible, value) {
            (Some(kind), _, _) => Told::Failed { kind, detail },
            (None, Some(violation), value) => Told::Infeasible { violation, value },
            (None, None, Some(value)) => Told::Value(value),
            (None, None, None) => Told::Failed { kind: "unknown".into(), detail },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const FIRST: &str = r#"{"study":{"version":1,"space":{"coordinates":[{"name":"x","type":"real","low":0.0,"high":1.0}]},"algorithm":"race-cars","seed":3,"budget":10,"direction":"maximize","novelty":[1]}}"#;

    fn names(reader: &mut Reader) -> Vec<String> {
        let mut seen = Vec::new();
        let note = |event: Event<'_>| {
            seen.push(match event {
                Event::Ask { trial, .. } => format!("ask {trial}"),
                Event::Tell { trial, told, .. } => format!("tell {trial} {told:?}"),
                other => format!("{other:?}"),
            });
            Ok(())
        };
        reader.read(note).unwrap();
        seen
    }

    #[test]
    fn a_journal_is_read_as_it_grows_and_a_torn_line_waits() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Reader::open(folder.path()).unwrap().is_none(), "not begun");
        let mut file = File::create(folder.path().join(JOURNAL)).unwrap();
        write!(file, "{}", &FIRST[..20]).unwrap();
        assert!(Reader::open(folder.path()).unwrap().is_none(), "its first line is being written");
        writeln!(file, "{}", &FIRST[20..]).unwrap();
        let mut reader = Reader::open(folder.path()).unwrap().unwrap();
        assert_eq!(reader.settings().direction, Direction::Maximize);
        assert!(names(&mut reader).is_empty());
        write!(file, "{{\"ask\":{{\"trial\":0,\"params\":{{\"x\":0.5}}}}}}\n{{\"tell\":").unwrap();
        assert_eq!(names(&mut reader), ["ask 0"]);
        assert!(names(&mut reader).is_empty());
        writeln!(file, "{{\"trial\":0,\"outcome\":{{\"value\":2}}}}}}").unwrap();
        assert_eq!(names(&mut reader), ["tell 0 Value(2.0)"]);
        assert!(reader.damaged().is_empty() && !reader.is_replaced());
        File::create(folder.path().join(JOURNAL)).unwrap();
        assert!(reader.is_replaced());
    }

    #[test]
    fn damaged_lines_are_left_out_with_their_numbers_and_unknown_ones_silently() {
        let folder = tempfile::tempdir().unwrap();
        let lines = [
            FIRST,
            r#"{"ask":{"trial":0,"params":{"x":0.5},"at":1}}"#,
            r#"{"tell":{"trial":0,"outc"#,
            r#"{"party":{"at":3}}"#,
            r#"{"tell":{"trial":0,"outcome":{"failed":"exit","detail":"exit code 3"}}}"#,
            r#"{"tell":{"trial":1,"outcome":{"infeasible":0.5,"value":1}}}"#,
        ];
        std::fs::write(folder.path().join(JOURNAL), lines.join("\n") + "\n").unwrap();
        let mut reader = Reader::open(folder.path()).unwrap().unwrap();
        assert_eq!(
            names(&mut reader),
            [
                "ask 0",
                r#"tell 0 Failed { kind: "exit", detail: "exit code 3" }"#,
                "tell 1 Infeasible { violation: 0.5, value: Some(1.0) }"
            ]
        );
        assert_eq!(reader.damaged(), [3]);
    }

    #[test]
    fn what_is_no_journal_is_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(JOURNAL), "{\"a\":1}\n").unwrap();
        let message = Reader::open(folder.path()).err().unwrap().to_string();
        assert!(message.contains("journal.jsonl, line 1: not the journal of a study"), "{message}");
    }
}
