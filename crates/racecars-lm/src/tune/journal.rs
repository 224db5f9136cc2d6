//! The journal of a tuning: one JSON object per line, append-only. The first line has the settings, the second
//! the scores without tuning, then there is a line per request and one per evaluation of the best prompt on the
//! development texts.
//!
//! Points are not in it: the search is a function of its seed and of the outcomes, so it is resumed by
//! replaying asks and tells. A hash of each request's points verifies that they are the same.

use super::settings::TuneSettings;
use super::{Baselines, PromptScores};
use crate::error::{Error, Result};
use crate::loss::Score;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum TuneLine {
    /// The first line.
    Tune(Box<TuneHeader>),
    /// What there is without tuning was evaluated.
    Baselines(Baselines),
    /// A request was answered.
    Calls(Calls),
    /// The best prompt, or the mean of the best, was evaluated on the development texts.
    Look(Look),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TuneHeader {
    pub(super) settings: TuneSettings,
    pub(super) model: String,
    pub(super) data: String,
    /// A hash of the texts and labels of the split; journals of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) texts: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Calls {
    /// A hash of the points, in hexadecimal.
    pub(super) check: String,
    /// The result of each point.
    pub(super) results: Vec<CallResult>,
    /// The shifts that were fitted for each point, if the loss is calibrated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) shifts: Vec<Vec<f64>>,
    /// The time of the request in seconds.
    pub(super) seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Look {
    #[serde(flatten)]
    pub(super) scores: PromptScores,
    /// The label shifts, if the loss is calibrated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) shifts: Vec<f64>,
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
    /// Opens the journal at `path`, or creates it, and returns its lines. An incomplete last line is
    /// removed.
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
                return Err(Error::journal(format!("another process is using {path}")));
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

    /// Appends a line in one write and syncs it to disk, which is fast compared with a request.
    pub(super) fn append(&mut self, line: &TuneLine) -> Result<()> {
        let mut text = serde_json::to_vec(line).map_err(Error::journal)?;
        text.push(b'\n');
        (self.file.write_all(&text).and_then(|()| self.file.sync_data()))
            .map_err(|error| Error::system("write", &self.path, error))
    }

    /// Removes all lines.
    pub(super) fn clear(&mut self) -> Result<()> {
        (self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0))))
            .map_err(|error| Error::system("write", &self.path, error))?;
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
