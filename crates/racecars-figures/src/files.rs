//! Writing files atomically, with errors that name the file.

use std::io;
use std::path::{Path, PathBuf};

/// A file that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct FileError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl FileError {
    /// Reading `path` failed.
    pub fn reading(path: &Path, source: io::Error) -> Self {
        FileError { action: "read", path: path.to_path_buf(), source }
    }

    /// Writing `path` failed.
    pub fn writing(path: &Path, source: io::Error) -> Self {
        FileError { action: "write", path: path.to_path_buf(), source }
    }
}

/// Creates a directory and its parents.
pub fn create_directory(path: &Path) -> Result<(), FileError> {
    std::fs::create_dir_all(path).map_err(|source| FileError::writing(path, source))
}

/// Writes a temporary file next to `path` and renames it, so that readers never see a partial file.
pub fn write(path: &Path, text: &str) -> Result<(), FileError> {
    let draft = path.with_extension(format!("{}.draft", std::process::id()));
    std::fs::write(&draft, text)
        .and_then(|()| std::fs::rename(&draft, path))
        .map_err(|source| FileError::writing(path, source))
}
