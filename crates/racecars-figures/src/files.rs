//! Writing files atomically, with errors that name the file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
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

/// Writes a text to `path`, as [`write_with`] does.
pub fn write(path: &Path, text: &str) -> Result<(), FileError> {
    write_with(path, |out| out.write_all(text.as_bytes()))
        .map_err(|source| FileError::writing(path, source))
}

/// Writes a temporary file next to `path` and renames it, so that readers never see a partial file and what
/// was there stays if this fails. A symbolic link is followed; what is no regular file, such as
/// `/dev/stdout`, is written to as it is.
pub fn write_with<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<T, E> {
    let flushed = |file: File| {
        let mut out = BufWriter::new(file);
        let written = write(&mut out)?;
        out.flush()?;
        Ok(written)
    };
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return flushed(File::options().write(true).open(&path)?);
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.draft", std::process::id()));
    let draft = path.with_file_name(name);
    let written = File::create(&draft).map_err(E::from).and_then(flushed);
    let written = written.and_then(|written| {
        std::fs::rename(&draft, &path)?;
        Ok(written)
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write(&path, "old").unwrap();
        let failed: io::Result<()> = write_with(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "full");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
        assert!(
            write(&folder.path().join("no/such"), "x").unwrap_err().to_string().contains("no/such")
        );
        assert!(write(folder.path(), "x").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_devices_are_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("b"));
        write(&path, "old").unwrap();
        std::os::unix::fs::symlink("a", &link).unwrap();
        write(&link, "new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        write(Path::new("/dev/null"), "gone").unwrap();
    }
}
