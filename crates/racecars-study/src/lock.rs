//! One process at a time on a study: an advisory lock on a file in its folder. The system drops it
//! with the process, however that ends.

use crate::error::{Error, ErrorKind, Result};
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// A study that is ours until this is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock, waiting at most `patience` for another process to give it back.
    pub(crate) fn take(folder: &Path, patience: Duration) -> Result<Lock> {
        let path = folder.join("lock");
        let refuse = |error: std::io::Error| Error::system("lock", &path, error);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(refuse)?;
        let start = Instant::now();
        while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if error != rustix::io::Errno::WOULDBLOCK && error != rustix::io::Errno::INTR {
                return Err(refuse(error.into()));
            }
            if start.elapsed() >= patience {
                return Err(Lock::taken(folder, &mut file));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // The number is for the message above, so it is no loss if the disk is full.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Lock { file })
    }

    fn taken(folder: &Path, file: &mut File) -> Error {
        let mut holder = String::new();
        let _ = file.rewind().and_then(|()| file.read_to_string(&mut holder));
        let holder = match holder.trim() {
            "" => "another process".to_string(),
            process => format!("process {process}"),
        };
        let message = format!(
            "{holder} is running the study in {}; wait for it, stop it, or choose another folder with \
             --study",
            folder.display()
        );
        Error::new(ErrorKind::Locked, message)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a program that another thread is just starting has it open
        // as well, for a moment.
        let _ = flock(&self.file, FlockOperation::Unlock);
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
    }
}
