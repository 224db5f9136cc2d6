//! Following the journal of a study, for reports, exports and the live page.
//!
//! A [`Reader`] goes through the journal once, line by line, and holds one line at a time. It may be
//! asked again for what has been written since, so that a page can follow a study that runs. It never
//! writes: a torn last line is left for the next time, since it may be one that is just being written,
//! and a damaged line is left out and its number kept, since a report of the rest is better than none.
//! What another version wrote, and this one does not understand, is refused.

mod params;

pub use params::encode;

use crate::journal::{Event, FILE, Flaw, Lines};
use crate::plan::Plan;
use racecars::Space;
use serde_json::value::RawValue;
use std::io;
use std::path::Path;

/// Reads a journal, now and again.
#[derive(Debug)]
pub struct Reader {
    lines: Lines,
    damaged: Vec<u64>,
}

impl Reader {
    /// Opens the journal in a study's folder; `None` if the study has not begun.
    pub fn open(folder: &Path) -> io::Result<Option<Reader>> {
        let lines = Lines::open(&folder.join(FILE))?;
        Ok(lines.map(|lines| Reader { lines, damaged: Vec::new() }))
    }

    /// What the first line says.
    pub fn plan(&self) -> &Plan {
        self.lines.plan()
    }

    /// What is searched.
    pub fn space(&self) -> &Space {
        &self.plan().space
    }

    /// The first line's description of the study, as written.
    pub fn header(&self) -> &RawValue {
        self.lines.header()
    }

    /// The numbers of the lines that are damaged.
    pub fn damaged(&self) -> &[u64] {
        &self.damaged
    }

    /// Whether the journal has been replaced by another, so that it must be opened anew.
    pub fn is_replaced(&self) -> bool {
        self.lines.is_replaced()
    }

    /// Hands over the lines that have not been read yet, in order, up to a torn last line.
    pub fn read(&mut self, mut take: impl FnMut(Event<'_>) -> io::Result<()>) -> io::Result<()> {
        self.lines.read(|number, event| match event {
            Ok(event) => take(event),
            Err(Flaw::Damaged(_)) => {
                self.damaged.push(number);
                Ok(())
            }
            Err(Flaw::Unknown(error)) => Err(error.into()),
        })
    }
}

/// The error of a folder in which no study has begun.
pub(crate) fn not_begun(folder: &Path) -> io::Error {
    let what = format!("{} holds no study that has begun", folder.display());
    io::Error::new(io::ErrorKind::NotFound, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Direction;
    use std::fs::File;
    use std::io::Write;

    const FIRST: &str = r#"{"study":{"version":1,"space":{"coordinates":[{"name":"x","type":"real","low":0.0,"high":1.0}]},"algorithm":"race-cars","seed":3,"budget":10,"direction":"maximize"}}"#;

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
    fn damaged_lines_are_left_out_with_their_numbers_and_unknown_ones_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let mut lines = vec![
            FIRST,
            r#"{"ask":{"trial":0,"params":{"x":0.5},"at":1}}"#,
            r#"{"tell":{"trial":0,"outc"#,
            r#"{"tell":{"trial":0,"outcome":{"failed":"exit","detail":"exit code 3"}}}"#,
            r#"{"tell":{"trial":1,"outcome":{"infeasible":0.5,"value":1}}}"#,
            r#"{"tell":{"trial":2,"outcome":{"infeasible":null,"value":1}}}"#,
        ];
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        let mut reader = Reader::open(folder.path()).unwrap().unwrap();
        assert_eq!(
            names(&mut reader),
            [
                "ask 0",
                "tell 0 failed: exit code 3",
                "tell 1 infeasible by 0.5",
                &format!("tell 2 infeasible by {}", f64::MAX)
            ]
        );
        assert_eq!(reader.damaged(), [3]);
        lines.push(r#"{"party":{"at":3}}"#);
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        let mut reader = Reader::open(folder.path()).unwrap().unwrap();
        let message = reader.read(|_| Ok(())).unwrap_err().to_string();
        assert!(message.starts_with("line 7 of ") && message.contains("`party`"), "{message}");
    }

    #[test]
    fn what_is_no_journal_is_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), "{\"a\":1}\n").unwrap();
        let message = Reader::open(folder.path()).err().unwrap().to_string();
        assert!(message.contains("journal.jsonl is not the journal of a study"), "{message}");
    }
}
