//! The journal of a tuning: one JSON object per line, only ever appended to. The first line has the
//! settings, then comes a line per request and one per look at the development texts.
//!
//! Points are not in it: the search is a function of its seed and of what it was told, so going on
//! means asking and telling again. A check of each request's points says whether they are the same.

use super::PromptScores;
use super::settings::TuneSettings;
use crate::error::{Error, Result};
use crate::loss::Score;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum TuneLine {
    /// The first.
    Tune(Box<TuneHeader>),
    /// A request was answered.
    Calls(Calls),
    /// The best prompt was looked at.
    Look(PromptScores),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TuneHeader {
    pub(super) settings: TuneSettings,
    pub(super) model: String,
    pub(super) data: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Calls {
    /// A hash of the points, in hexadecimal.
    pub(super) check: String,
    /// What came of each: a score, or why there is none.
    pub(super) results: Vec<CallResult>,
    /// How long the request took.
    pub(super) seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CallResult {
    Score(Score),
    Failed(String),
}

/// An open journal, locked against other processes.
pub(super) struct TuneJournal {
    path: PathBuf,
    file: File,
}

impl TuneJournal {
    /// Opens the journal at `path`, makes it if need be, and returns the lines that are there. A last
    /// line without its end is cut off.
    pub(super) fn open(path: &Path) -> Result<(Self, Vec<TuneLine>)> {
        let refuse = |what: &'static str| move |error| Error::system(what, path, error);
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .open(path)
            .map_err(refuse("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let path = path.display();
                return Err(Error::journal(format!("another process is at work on {path}")));
            }
            Err(TryLockError::Error(error)) => return Err(Error::system("lock", path, error)),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(refuse("read"))?;
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64).map_err(refuse("write"))?;
        file.seek(SeekFrom::End(0)).map_err(refuse("write"))?;
        let lines = (1..)
            .zip(bytes[..whole].split_inclusive(|&byte| byte == b'\n'))
            .map(|(number, line)| {
                serde_json::from_slice(line).map_err(|error| {
                    Error::journal(format!("line {number} of {}: {error}", path.display()))
                })
            })
            .collect::<Result<_>>()?;
        Ok((TuneJournal { path: path.to_path_buf(), file }, lines))
    }

    /// Appends a line, in one write, and sees it to the disk: a request takes much longer.
    pub(super) fn append(&mut self, line: &TuneLine) -> Result<()> {
        let mut text = serde_json::to_vec(line).map_err(Error::journal)?;
        text.push(b'\n');
        (self.file.write_all(&text).and_then(|()| self.file.sync_data()))
            .map_err(|error| Error::system("write", &self.path, error))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
