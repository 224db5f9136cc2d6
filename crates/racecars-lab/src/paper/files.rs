//! Writing files whole or not at all.

use super::PaperError;
use std::path::Path;

pub(super) fn create_directory(path: &Path) -> Result<(), PaperError> {
    std::fs::create_dir_all(path)
        .map_err(|source| PaperError::File { path: path.to_path_buf(), source })
}

/// Writes beside the file and renames, so that nobody ever sees half of it.
pub(super) fn write(path: &Path, text: &str) -> Result<(), PaperError> {
    let draft = path.with_extension(format!("{}.draft", std::process::id()));
    std::fs::write(&draft, text)
        .and_then(|()| std::fs::rename(&draft, path))
        .map_err(|source| PaperError::File { path: path.to_path_buf(), source })
}
