//! One process at a time on a study: a lock on its journal (on Windows, on the file beside it). The system
//! drops it with the process, however that ends.

use crate::error::{Error, ErrorKind, Result};
use crate::journal;
use crate::platform::{descriptor, identity, open_alone, open_journal, unlock};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A study that is ours until this is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    /// The journal; closed last of all.
    file: Option<File>,
    /// The file `lock`, which earlier versions lock instead. It has our process number, for others' messages.
    note: File,
}

impl Lock {
    /// Takes the lock of the study in `folder`, waiting at most `patience` for another process to give it
    /// back. A study that has not begun gets an empty journal.
    pub(crate) fn take(folder: &Path, patience: Duration) -> Result<Lock> {
        let (path, note) = (folder.join(journal::FILE), folder.join("lock"));
        let start = Instant::now();
        loop {
            let file = open_journal(&path).map_err(|error| Error::system("open", &path, error))?;
            let writer = open_alone(&note).map_err(|error| Error::system("open", &note, error))?;
            match (file, writer) {
                // Whoever had the lock may have moved the journal aside.
                (Some(file), Some(mut writer)) if is_at(&file, &path) => {
                    // No loss if the disk is full.
                    let _ =
                        writer.set_len(0).and_then(|()| writeln!(writer, "{}", std::process::id()));
                    return Ok(Lock { path, file: Some(file), note: writer });
                }
                (Some(_), Some(_)) => {}
                _ if start.elapsed() >= patience => return Err(taken(folder, &note)),
                _ => {}
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The files that hold the lock.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = i32> {
        self.file.iter().chain([&self.note]).filter_map(descriptor)
    }

    /// The journal, open for reading and appending.
    pub(crate) fn journal(&self) -> io::Result<File> {
        match &self.file {
            Some(file) => file.try_clone(),
            None => Err(io::Error::from(io::ErrorKind::NotFound)),
        }
    }

    /// Moves the journal to `aside`. The study stays locked.
    pub(crate) fn move_journal(&mut self, aside: &Path) -> io::Result<()> {
        // What is open cannot be moved on Windows.
        self.file = None;
        std::fs::rename(&self.path, aside)
    }
}

/// Whether `path` leads to this file.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(ours), Ok(found)) => identity(&ours) == identity(&found),
        _ => false,
    }
}

fn taken(folder: &Path, note: &Path) -> Error {
    let holder = match std::fs::read_to_string(note).unwrap_or_default().trim() {
        "" => "another process".to_string(),
        process => format!("process {process}"),
    };
    let message = format!(
        "{holder} is running the study in {}; wait for it, stop it, or choose another folder with --study",
        folder.display()
    );
    Error::new(ErrorKind::Locked, message)
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // A study that did not begin leaves no journal. What is open cannot be removed on Windows.
            let is_unused =
                file.metadata().is_ok_and(|ours| ours.len() == 0) && is_at(&file, &self.path);
            unlock(&file);
            drop(file);
            if is_unused {
                let _ = std::fs::remove_file(&self.path);
            }
        }
        unlock(&self.note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_refused_until_the_first_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let first = Lock::take(folder.path(), Duration::ZERO).unwrap();
        let error = Lock::take(folder.path(), Duration::from_millis(30)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.to_string().starts_with(&format!("process {} is", std::process::id())));
        drop(first);
        assert!(Lock::take(folder.path(), Duration::ZERO).is_ok());
        assert!(!folder.path().join(journal::FILE).exists(), "nothing was begun");
    }

    #[cfg(unix)]
    #[test]
    fn the_lock_is_on_the_journal_and_that_of_earlier_versions_is_respected() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("lock");
        let first = Lock::take(folder.path(), Duration::ZERO).unwrap();
        std::fs::remove_file(&note).unwrap();
        let error = Lock::take(folder.path(), Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        drop(first);
        let theirs = open_alone(&note).unwrap().unwrap();
        assert_eq!(
            Lock::take(folder.path(), Duration::ZERO).unwrap_err().kind(),
            ErrorKind::Locked
        );
        drop(theirs);
        assert!(Lock::take(folder.path(), Duration::ZERO).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn whoever_waits_gets_the_journal_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(journal::FILE);
        let first = Lock::take(folder.path(), Duration::ZERO).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| Lock::take(folder.path(), Duration::from_secs(60)));
            std::fs::rename(&path, folder.path().join("aside")).unwrap();
            drop(first);
            let second = waiting.join().unwrap().unwrap();
            assert!(is_at(&second.journal().unwrap(), &path));
        });
    }
}
