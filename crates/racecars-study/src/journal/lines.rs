//! Reading a journal: line by line, each with its checksum, from the first line's plan on.

use super::Event;
use crate::error::{Error, Result};
use crate::plan::{Plan, VERSION};
use crate::platform::identity;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// How the first line of every journal begins.
const BEGINNING: &[u8] = b"{\"study\":{";
/// The first format whose lines all have a checksum.
const CHECKSUMS_SINCE: u32 = 2;
/// The last key of a line is its checksum in hexadecimal, `,"crc":"0123abcd"}`. It covers the lines so far:
/// what is before it in this line, and in all lines with a checksum before this one. So a line that was
/// changed, lost, repeated or moved does not fit.
const KEY: &[u8] = b",\"crc\":\"";
const CLOSE: &[u8] = b"\"}\n";
const DIGITS: usize = 8;

/// Where the whole lines of a journal end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct End {
    /// Their length in bytes.
    pub(crate) length: u64,
    /// The last checksum.
    pub(crate) checksum: u32,
}

impl End {
    /// Completes a line, which is a JSON object, and counts it.
    pub(crate) fn seal(&mut self, line: &mut Vec<u8>) {
        line.pop();
        self.checksum = checksum(self.checksum, line);
        line.extend_from_slice(KEY);
        line.extend_from_slice(format!("{:08x}", self.checksum).as_bytes());
        line.extend_from_slice(CLOSE);
        self.length += line.len() as u64;
    }

    /// Counts a line, and takes its checksum off; a line without one stays as it is. `Err` says what is wrong.
    fn unseal(&mut self, line: &mut Vec<u8>, must_have: bool) -> Result<(), &'static str> {
        self.length += line.len() as u64;
        let Some((body, digits)) = split(line) else {
            return if must_have { Err("it has no checksum") } else { Ok(()) };
        };
        let (actual, length) = (checksum(self.checksum, body), body.len());
        let is_sound = format!("{actual:08x}").as_bytes() == digits;
        // The lines after a damaged one are judged by what it says, not by what it should say.
        self.checksum = std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .unwrap_or(actual);
        line.truncate(length);
        line.push(b'}');
        if is_sound { Ok(()) } else { Err("its checksum does not match") }
    }
}

fn checksum(before: u32, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(before);
    hasher.update(body);
    hasher.finalize()
}

/// A line without its checksum, and the checksum's digits.
fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_suffix(CLOSE)?;
    let (rest, digits) = rest.split_at_checked(rest.len().checked_sub(DIGITS)?)?;
    Some((rest.strip_suffix(KEY)?, digits))
}

/// What is wrong with a line.
#[derive(Debug)]
pub(crate) enum Flaw {
    /// It is not as it was written.
    Damaged(Error),
    /// It is, but this version does not understand it.
    Unknown(Error),
}

impl From<Flaw> for Error {
    fn from(flaw: Flaw) -> Self {
        match flaw {
            Flaw::Damaged(error) | Flaw::Unknown(error) => error,
        }
    }
}

/// The lines of a journal, in order. May be asked again for what has been written since.
#[derive(Debug)]
pub(crate) struct Lines {
    path: PathBuf,
    file: BufReader<File>,
    line: Vec<u8>,
    number: u64,
    end: End,
    has_checksums: bool,
    header: Box<RawValue>,
    plan: Plan,
}

impl Lines {
    /// Opens the journal at `path`; `None` if there is none, or not even a first line in it. Refuses a file
    /// that is not a journal, or whose format this version does not know.
    pub(crate) fn open(path: &Path) -> Result<Option<Lines>> {
        let refuse = |error: io::Error| Error::system("read", path, error);
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refuse(error)),
        };
        let mut file = BufReader::with_capacity(1 << 18, file);
        let mut line = Vec::new();
        file.read_until(b'\n', &mut line).map_err(refuse)?;
        if !line.starts_with(&BEGINNING[..line.len().min(BEGINNING.len())]) {
            return Err(Error::journal(format!(
                "{} is not the journal of a study, and is left as it is: it does not begin with a study's \
                 settings. Choose another folder with --study",
                path.display()
            )));
        }
        if !line.ends_with(b"\n") {
            return Ok(None);
        }
        let mut end = End::default();
        let damaged = |what: &dyn Display| damaged(path, 1, what);
        let is_sealed = split(&line).is_some();
        end.unseal(&mut line, false).map_err(|what| damaged(&what))?;
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct First<'a> {
            #[serde(borrow)]
            study: &'a RawValue,
        }
        #[derive(Deserialize)]
        struct Version {
            #[serde(default)]
            version: u32,
        }
        let First { study } = serde_json::from_slice(&line).map_err(|error| damaged(&error))?;
        let Version { version } =
            serde_json::from_str(study.get()).map_err(|error| damaged(&error))?;
        if version > VERSION {
            return Err(Error::journal(format!(
                "the journal {} is of format {version}, of a later version of racecars; this one reads \
                 formats up to {VERSION}",
                path.display()
            )));
        }
        let has_checksums = version >= CHECKSUMS_SINCE;
        if has_checksums && !is_sealed {
            return Err(damaged(&"it has no checksum"));
        }
        let plan = serde_json::from_str(study.get()).map_err(|error| {
            Error::journal(format!("line 1 of {} cannot be used: {error}", path.display()))
        })?;
        let (path, header) = (path.to_path_buf(), study.to_owned());
        Ok(Some(Lines { path, file, line, number: 1, end, has_checksums, header, plan }))
    }

    /// What the first line says.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The same as it is written.
    pub(crate) fn header(&self) -> &RawValue {
        &self.header
    }

    /// The end of the last line read.
    pub(crate) fn end(&self) -> End {
        self.end
    }

    /// Whether the journal has been replaced by another, or cut, so that it must be opened anew.
    pub(crate) fn is_replaced(&self) -> bool {
        let Ok(here) = self.file.get_ref().metadata() else { return true };
        std::fs::metadata(&self.path).map_or(true, |there| {
            identity(&here) != identity(&there) || there.len() < self.end.length
        })
    }

    /// Hands over the lines that have not been read yet, or what is wrong with them, with their numbers.
    pub(crate) fn read<E: From<Error>>(
        &mut self,
        mut each: impl FnMut(u64, Result<Event<'_>, Flaw>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut number = self.number;
        while let Some(event) = self.next()? {
            number += 1;
            each(number, event)?;
        }
        Ok(())
    }

    /// The next line, or what is wrong with it; `None` if there is no whole one. A last line without its end
    /// is left for the next time, since it may be one that is just being written.
    fn next(&mut self) -> Result<Option<Result<Event<'_>, Flaw>>> {
        let refuse = |error: io::Error| Error::system("read", &self.path, error);
        self.line.clear();
        self.file.read_until(b'\n', &mut self.line).map_err(refuse)?;
        if !self.line.ends_with(b"\n") {
            // The writer may finish the line, or cut it off and write another.
            self.file.seek(SeekFrom::Start(self.end.length)).map_err(refuse)?;
            return Ok(None);
        }
        self.number += 1;
        let (path, number) = (&self.path, self.number);
        if let Err(what) = self.end.unseal(&mut self.line, self.has_checksums) {
            return Ok(Some(Err(Flaw::Damaged(damaged(path, number, &what)))));
        }
        let line = &self.line;
        let is_json = || serde_json::from_slice::<IgnoredAny>(line).is_ok();
        Ok(Some(serde_json::from_slice(line).map_err(|error| match is_json() {
            true => Flaw::Unknown(Error::journal(format!(
                "line {number} of {} is not one that this version of racecars understands: {error}",
                path.display()
            ))),
            false => Flaw::Damaged(damaged(path, number, &error)),
        })))
    }
}

/// The error of a line that is not as it was written.
fn damaged(path: &Path, number: u64, what: &dyn Display) -> Error {
    let path = path.display();
    let advice = match number - 1 {
        0 => "Begin afresh with --restart, which keeps the file".to_string(),
        before => format!(
            "The lines before it can be used: `head -n {before} {path}` prints them; put them in its place to \
             resume from there"
        ),
    };
    Error::journal(format!("line {number} of {path} is damaged: {what}. {advice}"))
}
