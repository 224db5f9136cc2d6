//! Following the journal of a study, for reports, exports and the live page.
//!
//! A [`Reader`] goes through the journal once, line by line, and holds one line at a time. It may be
//! asked again for what has been written since, so that a page can follow a study that runs. It never
//! writes: a torn last line is left for the next time, since it may be one that is just being written,
//! and a damaged line is left out and its number kept, since a report of the rest is better than none.

mod params;

use crate::journal::{FILE, Repeat, Resume, Stop, Tell};
use crate::plan::Plan;
use racecars::Space;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A line of the journal.
#[derive(Debug)]
pub enum Event<'a> {
    /// A point was proposed.
    Ask(Ask<'a>),
    /// A trial ended.
    Tell(Tell),
    /// A leading point was evaluated again.
    Repeat(Repeat),
    /// A run ended.
    Stop(Stop),
    /// A process resumed the study.
    Resume(Resume),
}

/// A point was proposed.
#[derive(Debug, Deserialize)]
pub struct Ask<'a> {
    /// The trial's number.
    pub trial: u64,
    /// The point by name, as written.
    #[serde(borrow)]
    pub params: &'a RawValue,
    /// In deterministic mode, how many outcomes the optimizer knew by then: lines are written as
    /// trials end, but told in the order asked.
    pub told: Option<u64>,
    /// When, in milliseconds since 1970.
    #[serde(default)]
    pub at: u64,
}

/// Reads a journal, now and again.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    file: BufReader<File>,
    /// Where the first line not yet read begins.
    offset: u64,
    number: u64,
    line: Vec<u8>,
    plan: Plan,
    space: Space,
    header: Box<RawValue>,
    damaged: Vec<u64>,
}

impl Reader {
    /// Opens the journal in a study's folder; `None` if the study has not begun.
    pub fn open(folder: &Path) -> io::Result<Option<Reader>> {
        let path = folder.join(FILE);
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
        let refuse = |error: &dyn std::fmt::Display| {
            let what = format!("{}, line 1: not the journal of a study: {error}", path.display());
            io::Error::new(io::ErrorKind::InvalidData, what)
        };
        let first: First<'_> = serde_json::from_slice(&line).map_err(|error| refuse(&error))?;
        let plan: Plan = serde_json::from_str(first.study.get()).map_err(|error| refuse(&error))?;
        let space = plan.space.clone();
        let (offset, header) = (line.len() as u64, first.study.to_owned());
        let damaged = Vec::new();
        Ok(Some(Reader { path, file, offset, number: 1, line, plan, space, header, damaged }))
    }

    /// What the first line says.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What is searched.
    pub fn space(&self) -> &Space {
        &self.space
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

/// Encodes the parameters of an [`Ask`], or says why they are not a point of the space.
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

impl<'a> Line<'a> {
    fn event(self) -> Option<Event<'a>> {
        (self.ask.map(Event::Ask))
            .or(self.tell.map(Event::Tell))
            .or(self.repeat.map(Event::Repeat))
            .or(self.stop.map(Event::Stop))
            .or(self.resume.map(Event::Resume))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Direction;
    use std::io::Write;

    const FIRST: &str = r#"{"study":{"version":1,"space":{"coordinates":[{"name":"x","type":"real","low":0.0,"high":1.0}]},"algorithm":"race-cars","seed":3,"budget":10,"direction":"maximize","novelty":[1]}}"#;

    fn names(reader: &mut Reader) -> Vec<String> {
        let mut seen = Vec::new();
        let note = |event: Event<'_>| {
            seen.push(match event {
                Event::Ask(ask) => format!("ask {}", ask.trial),
                Event::Tell(tell) => format!("tell {} {}", tell.trial, tell.outcome),
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
        let mut file = File::create(folder.path().join(FILE)).unwrap();
        write!(file, "{}", &FIRST[..20]).unwrap();
        assert!(Reader::open(folder.path()).unwrap().is_none(), "its first line is being written");
        writeln!(file, "{}", &FIRST[20..]).unwrap();
        let mut reader = Reader::open(folder.path()).unwrap().unwrap();
        assert_eq!(reader.plan().direction, Direction::Maximize);
        assert!(names(&mut reader).is_empty());
        write!(file, "{{\"ask\":{{\"trial\":0,\"params\":{{\"x\":0.5}}}}}}\n{{\"tell\":").unwrap();
        assert_eq!(names(&mut reader), ["ask 0"]);
        assert!(names(&mut reader).is_empty());
        writeln!(file, "{{\"trial\":0,\"outcome\":{{\"value\":2}}}}}}").unwrap();
        assert_eq!(names(&mut reader), ["tell 0 2"]);
        assert!(reader.damaged().is_empty() && !reader.is_replaced());
        File::create(folder.path().join(FILE)).unwrap();
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
        std::fs::write(folder.path().join(FILE), lines.join("\n") + "\n").unwrap();
        let mut reader = Reader::open(folder.path()).unwrap().unwrap();
        assert_eq!(
            names(&mut reader),
            ["ask 0", "tell 0 failed: exit code 3", "tell 1 infeasible by 0.5"]
        );
        assert_eq!(reader.damaged(), [3]);
    }

    #[test]
    fn what_is_no_journal_is_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), "{\"a\":1}\n").unwrap();
        let message = Reader::open(folder.path()).err().unwrap().to_string();
        assert!(message.contains("journal.jsonl, line 1: not the journal of a study"), "{message}");
    }
}
