//! Writing files whole or not at all.

use super::TrialsError;
use std::path::Path;

pub(crate) fn create_directory(path: &Path) -> Result<(), TrialsError> {
    std::fs::create_dir_all(path)
        .map_err(|source| TrialsError::File { path: path.to_path_buf(), source })
}

/// Writes beside the file and renames, so that nobody ever sees half of it.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), TrialsError> {
    let draft = path.with_extension(format!("{}.draft", std::process::id()));
    std::fs::write(&draft, text)
        .and_then(|()| std::fs::rename(&draft, path))
        .map_err(|source| TrialsError::File { path: path.to_path_buf(), source })
}
