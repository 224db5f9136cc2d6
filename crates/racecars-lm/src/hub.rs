//! Downloading models from the Hugging Face hub by the name of a repository: the folder of a RoBERTa, or a
//! GGUF file. Weights may be in several files.
//!
//! A file is at `ENDPOINT/OWNER/NAME/resolve/REVISION/FILE`. The hub answers with the file or, if it is
//! large, with the address of a store and the file's SHA-256 (`x-linked-etag`). A file is written as
//! `.part`, and renamed when its length and, if the hub gives one, its SHA-256 are correct. An interrupted
//! download is resumed if the hub still has the same file.

use crate::error::{Error, ErrorKind, Result};
use crate::fetch::hash;
use crate::model::{INDEX, check_config, indexed_files, split_files};
use racecars_io::http::{Patience, bearer, client};
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use ureq::http::{Response, StatusCode, Uri};
use ureq::{Agent, Body};

/// The default address of the hub; `HF_ENDPOINT` overrides it.
const ENDPOINT: &str = "https://huggingface.co";
/// The files of a RoBERTa's folder. The first one tells whether the model is supported.
const FILES: [&str; 3] = ["config.json", "tokenizer.json", WEIGHTS];
/// The file of weights; if there is none, [`INDEX`] has the names of several.
const WEIGHTS: &str = "model.safetensors";
/// The maximum number of redirects.
const MAX_REDIRECTS: usize = 10;
/// The maximum number of attempts without progress.
const MAX_ATTEMPTS: u32 = 4;

/// A model of the hub: `OWNER/NAME`, `OWNER/NAME@REVISION`, or one of its files, `OWNER/NAME/FILE.gguf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubModel {
    owner: String,
    name: String,
    revision: Option<String>,
    file: Option<String>,
}

impl FromStr for HubModel {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (owner, rest) = text.split_once('/').unwrap_or((text, ""));
        let (repository, file) = split_at_first(rest, '/');
        let (name, revision) = split_at_first(repository, '@');
        let file_is_good =
            file.is_none_or(|file| file.ends_with(".gguf") && file.split('/').all(is_name));
        let is_good = file_is_good && [owner, name].into_iter().chain(revision).all(is_name);
        if !is_good {
            return Err(Error::input(format!(
                "model `{text}` is not OWNER/NAME, OWNER/NAME@REVISION, or one of these with /FILE.gguf, of \
                 letters, digits and `-`, `_`, `.`"
            )));
        }
        let [owner, name] = [owner, name].map(String::from);
        let [revision, file] = [revision, file].map(|text| text.map(String::from));
        Ok(HubModel { owner, name, revision, file })
    }
}

/// The parts before and after the first such character.
fn split_at_first(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

/// Whether this is safe as part of a URL and as a file name.
fn is_name(part: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let length_is_good = (1..=200).contains(&part.len());
    length_is_good
        && !part.starts_with(['.', '-'])
        && !part.contains("..")
        && part.bytes().all(is_good)
}

impl fmt::Display for HubModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.repository())?;
        self.file.as_ref().map_or(Ok(()), |file| write!(f, "/{file}"))
    }
}

impl HubModel {
    fn repository(&self) -> String {
        let name = &self.name;
        self.revision.as_ref().map_or(name.clone(), |revision| format!("{name}@{revision}"))
    }

    /// Its path within a folder of models, whether or not it exists.
    pub fn path(&self, folder: &Path) -> PathBuf {
        let folder = folder.join(&self.owner).join(self.repository());
        self.file.as_ref().map_or(folder.clone(), |file| folder.join(file))
    }

    /// Whether it is completely downloaded.
    pub fn is_in(&self, folder: &Path) -> bool {
        let path = self.path(folder);
        let has = |name: &str| path.join(name).is_file();
        match self.file {
            Some(_) => split_files(&path).iter().all(|file| file.is_file()),
            None if !has(FILES[0]) => path.is_dir(),
            None => {
                let parts = || indexed_files(&path.join(INDEX)).unwrap_or_default();
                let has_parts = || !parts().is_empty() && parts().iter().all(|name| has(name));
                has(FILES[1]) && (has(WEIGHTS) || has_parts())
            }
        }
    }

    /// The files to download, without those that an index names.
    fn files(&self) -> Vec<String> {
        let Some(file) = &self.file else { return FILES.map(String::from).to_vec() };
        let files = split_files(Path::new(file));
        files.iter().map(|file| file.to_string_lossy().into_owned()).collect()
    }
}

/// The hub, or a server with the same layout.
pub struct Hub {
    agent: Agent,
    endpoint: String,
    token: Option<String>,
}

/// Without the token.
impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// A file of a fetched model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its name.
    pub file: String,
    /// Its length.
    pub bytes: u64,
    /// Whether it was there already.
    pub was_there: bool,
    /// Whether its SHA-256 was checked against that of the hub.
    pub is_hashed: bool,
}

/// A file on the hub.
struct Remote {
    name: String,
    url: String,
    /// The entity tag: the version of the file.
    tag: Option<String>,
    size: Option<u64>,
}

impl Remote {
    fn sha256(&self) -> Option<&str> {
        self.tag.as_deref().filter(|tag| is_hex(tag, 64))
    }
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The headers about a file in the hub's answers, redirects included.
#[derive(Default)]
struct FileHeaders {
    linked_tag: Option<String>,
    linked_size: Option<u64>,
    tag: Option<String>,
    size: Option<u64>,
    commit: Option<String>,
}

impl FileHeaders {
    fn read(&mut self, response: &Response<Body>) {
        let tag = |name| {
            header(response, name)
                .map(|tag| tag.trim_start_matches("W/").trim_matches('"').to_ascii_lowercase())
        };
        let size = |name| header(response, name)?.parse().ok();
        self.linked_tag = self.linked_tag.take().or_else(|| tag("x-linked-etag"));
        self.linked_size = self.linked_size.or_else(|| size("x-linked-size"));
        let commit = header(response, "x-repo-commit").filter(|commit| is_hex(commit, 40));
        self.commit = self.commit.take().or_else(|| commit.map(String::from));
        if response.status().is_success() {
            (self.tag, self.size) = (tag("etag"), size("content-length"));
        }
    }
}

fn header<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

impl Hub {
    /// The hub at `HF_ENDPOINT`, or the official one, with `HF_TOKEN` if it is set.
    pub fn from_environment() -> Result<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let endpoint = variable("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.to_string());
        Hub::new(&endpoint, variable("HF_TOKEN"))
    }

    /// The hub at an address. The token is sent to no other host.
    pub fn new(endpoint: &str, token: Option<String>) -> Result<Self> {
        let endpoint = endpoint.trim_end_matches('/').to_string();
        if origin(&endpoint).is_none() {
            return Err(Error::input(format!(
                "the hub's address `{endpoint}` is not http(s)://..."
            )));
        }
        let agent = client(Duration::from_secs(20), Patience::Piece(Duration::from_secs(60)));
        Ok(Hub { agent, endpoint, token: token.map(|token| token.trim().to_string()) })
    }

    /// Downloads a model into a folder of models. `seen` is called with the bytes done, the total, and the
    /// current file.
    pub fn fetch(
        &self,
        model: &HubModel,
        folder: &Path,
        mut seen: impl FnMut(u64, u64, &str),
    ) -> Result<Vec<Fetched>> {
        let folder = HubModel { file: None, ..model.clone() }.path(folder);
        let (mut remotes, revision) = self.look_up(model)?;
        let (mut done, mut all) = (0, Vec::new());
        while let Some(remote) = remotes.get(all.len()) {
            let total = remotes.iter().filter_map(|remote| remote.size).sum();
            let path = folder.join(&remote.name);
            let was_there =
                remote.sha256().is_some_and(|sha256| hash(&path).is_ok_and(|is| is == sha256));
            if !was_there {
                self.download(remote, &path, |bytes| seen(done + bytes, total, &remote.name))?;
            }
            if remote.name == FILES[0] {
                check_config(&path)?;
            }
            let bytes = path.metadata().map_err(|error| Error::system("read", &path, error))?.len();
            done += bytes;
            let (file, is_hashed) = (remote.name.clone(), remote.sha256().is_some());
            all.push(Fetched { file, bytes, was_there, is_hashed });
            if remote.name == INDEX {
                for file in indexed_files(&path)? {
                    remotes.push(self.look_up_file(model, &file, &revision)?.0);
                }
            }
        }
        Ok(all)
    }

    /// Looks up all files first, so that a missing one is known before anything is downloaded. All are of
    /// the same commit as the first, which is returned too.
    fn look_up(&self, model: &HubModel) -> Result<(Vec<Remote>, String)> {
        let mut revision = model.revision.clone().unwrap_or_else(|| "main".to_string());
        let mut remotes = Vec::new();
        for file in model.files() {
            let (remote, commit) = match self.look_up_file(model, &file, &revision) {
                // Then the weights may be in several files.
                Err(error) if file == WEIGHTS && error.kind() == ErrorKind::Input => {
                    self.look_up_file(model, INDEX, &revision).map_err(|_| error)?
                }
                other => other?,
            };
            revision = commit.unwrap_or(revision);
            remotes.push(remote);
        }
        Ok((remotes, revision))
    }

    /// A file of a revision, and its commit.
    fn look_up_file(
        &self,
        model: &HubModel,
        file: &str,
        revision: &str,
    ) -> Result<(Remote, Option<String>)> {
        let HubModel { owner, name, .. } = model;
        let url =
            |revision: &str| format!("{}/{owner}/{name}/resolve/{revision}/{file}", self.endpoint);
        let headers = self.head(&url(revision))?;
        let remote = Remote {
            name: file.to_string(),
            url: url(headers.commit.as_deref().unwrap_or(revision)),
            tag: headers.linked_tag.or(headers.tag),
            size: headers.linked_size.or(headers.size),
        };
        Ok((remote, headers.commit))
    }

    fn head(&self, url: &str) -> Result<FileHeaders> {
        let mut failures = 0;
        loop {
            match self.ask(url, None) {
                Ok((headers, _)) => return Ok(headers),
                Err(error) if error.kind() == ErrorKind::Busy && failures + 1 < MAX_ATTEMPTS => {}
                Err(error) => return Err(error),
            }
            pause(failures);
            failures += 1;
        }
    }

    /// Requests a file from byte `from` on, or only its headers if `None`, and follows redirects; for
    /// headers, only within the hub.
    fn ask(&self, url: &str, from: Option<u64>) -> Result<(FileHeaders, Response<Body>)> {
        let (mut headers, mut place) = (FileHeaders::default(), url.to_string());
        for _ in 0..=MAX_REDIRECTS {
            let is_hub = origin(&place) == origin(&self.endpoint);
            let mut request = match from {
                Some(_) => self.agent.get(&place),
                None => self.agent.head(&place),
            };
            request = request.header("Accept-Encoding", "identity");
            if let Some(from @ 1..) = from {
                request = request.header("Range", format!("bytes={from}-"));
            }
            if let (Some(token), true) = (&self.token, is_hub) {
                request = request.header("Authorization", bearer(token));
            }
            let response = request.call().map_err(|error| unreachable(&place, &error))?;
            if is_hub {
                headers.read(&response);
            }
            let status = response.status();
            if !status.is_redirection() {
                let is_answer = status.is_success() || status == StatusCode::RANGE_NOT_SATISFIABLE;
                return match is_answer {
                    true => Ok((headers, response)),
                    false => Err(refusal(url, &response)),
                };
            }
            let next = header(&response, "location").and_then(|next| follow(&place, next));
            let Some(next) = next else {
                return Err(Error::network(format!("{place} answered {status} to nowhere")));
            };
            if from.is_none() && origin(&next) != origin(&self.endpoint) {
                return Ok((headers, response));
            }
            place = next;
        }
        Err(Error::network(format!("{url}: more than {MAX_REDIRECTS} redirects")))
    }

    /// Downloads a file to a path, through a `.part` file of the same version.
    fn download(&self, remote: &Remote, path: &Path, mut seen: impl FnMut(u64)) -> Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|error| Error::system("make", folder, error))?;
        }
        let part = part(path, remote.tag.as_deref());
        let mut file = open(&part)?;
        let mut furthest = length(&file, &part)?;
        // Discarded if its version is unknown, or if it is too long.
        if furthest > 0 && (remote.tag.is_none() || remote.size.is_none_or(|size| furthest > size))
        {
            truncate(&file, &part)?;
            furthest = 0;
        }
        let mut failures = 0;
        // A part may be complete but not yet renamed.
        while remote.size != Some(furthest) {
            let error = match self.stream(remote, &mut file, &part, &mut seen) {
                Ok(()) => break,
                Err(error) => error,
            };
            let now = length(&file, &part)?;
            failures = if now > furthest { 0 } else { failures + 1 };
            furthest = furthest.max(now);
            if !matches!(error.kind(), ErrorKind::Busy | ErrorKind::Network)
                || failures == MAX_ATTEMPTS
            {
                return Err(error);
            }
            pause(failures);
        }
        file.sync_all().map_err(|error| Error::system("write", &part, error))?;
        if let Some(sha256) = remote.sha256() {
            let hash = hash(&part)?;
            if hash != sha256 {
                let _ = std::fs::remove_file(&part);
                return Err(Error::model(format!(
                    "{} has SHA-256 {hash}, not {sha256}: it is not used",
                    remote.url
                )));
            }
        }
        std::fs::rename(&part, path).map_err(|error| Error::system("write", path, error))
    }

    /// Appends the missing bytes. It is an error if the file has another length than announced.
    fn stream(
        &self,
        remote: &Remote,
        file: &mut File,
        part: &Path,
        mut seen: impl FnMut(u64),
    ) -> Result<()> {
        let url = &remote.url;
        let mut done = length(file, part)?;
        let (_, mut response) = self.ask(url, Some(done))?;
        if response.status() == StatusCode::OK {
            if done > 0 {
                truncate(file, part)?;
                done = 0;
            }
        } else if !continues(&response, done) {
            truncate(file, part)?;
            return Err(Error::network(format!("{url}: not the requested part")));
        }
        let promised = response.body().content_length().map(|length| done + length);
        if let (Some(promised), Some(size)) = (promised, remote.size)
            && promised != size
        {
            return Err(Error::model(format!(
                "{url} has {promised} bytes, not {size} as announced by the hub"
            )));
        }
        let mut body = response.body_mut().with_config().limit(u64::MAX).reader();
        let mut buffer = vec![0; 1 << 18];
        let problem = loop {
            match body.read(&mut buffer) {
                Ok(0) => break None,
                Ok(count) => {
                    file.write_all(&buffer[..count])
                        .map_err(|error| unwritten(part, remote.size, done, error))?;
                    done += count as u64;
                    seen(done);
                }
                Err(error) => break Some(error.to_string()),
            }
        };
        let is_whole = promised.or(remote.size).map_or(problem.is_none(), |size| size == done);
        if is_whole {
            return Ok(());
        }
        let of = promised.or(remote.size).map_or(String::new(), |size| format!(" of {size}"));
        let problem = problem.unwrap_or_else(|| "the connection ended".to_string());
        Err(Error::network(format!(
            "{url}: {problem} after {done}{of} bytes; run the same command again to resume"
        )))
    }
}

/// Whether a response is the rest of a file from byte `from` on.
fn continues(response: &Response<Body>, from: u64) -> bool {
    response.status() == StatusCode::PARTIAL_CONTENT
        && header(response, "content-range")
            .is_some_and(|range| range.starts_with(&format!("bytes {from}-")))
}

/// Scheme, host and port of a URL.
fn origin(url: &str) -> Option<(String, String)> {
    let uri: Uri = url.parse().ok()?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    matches!(scheme, "http" | "https").then(|| (scheme.to_string(), authority.to_string()))
}

/// The target of a redirect; `None` if it leads from TLS to plain HTTP.
fn follow(from: &str, to: &str) -> Option<String> {
    let (scheme, authority) = origin(from)?;
    if to.starts_with('/') && !to.starts_with("//") {
        return Some(format!("{scheme}://{authority}{to}"));
    }
    let (next, _) = origin(to)?;
    (next == "https" || scheme == "http").then(|| to.to_string())
}

/// The path of an incomplete file.
fn part(path: &Path, tag: Option<&str>) -> PathBuf {
    let tag: String =
        (tag.unwrap_or("new").chars()).filter(char::is_ascii_alphanumeric).take(16).collect();
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{tag}.part"));
    path.with_file_name(name)
}

/// Opens and locks a file for appending.
fn open(part: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(part);
    let file = file.map_err(|error| Error::system("write", part, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::new(
            ErrorKind::System,
            format!("{} is being written by another process", part.display()),
        )),
        Err(TryLockError::Error(error)) => Err(Error::system("lock", part, error)),
    }
}

fn length(file: &File, part: &Path) -> Result<u64> {
    file.metadata().map(|data| data.len()).map_err(|error| Error::system("read", part, error))
}

fn truncate(file: &File, part: &Path) -> Result<()> {
    file.set_len(0).map_err(|error| Error::system("write", part, error))
}

fn unwritten(part: &Path, size: Option<u64>, done: u64, error: std::io::Error) -> Error {
    if error.kind() != std::io::ErrorKind::StorageFull {
        return Error::system("write", part, error);
    }
    let missing = size.map_or(String::new(), |size| {
        format!(", {:.0} MB are missing", size.saturating_sub(done) as f64 / 1e6)
    });
    let what = format!(
        "the disk is full{missing}; free some space and run the same command again to resume"
    );
    Error::system("write", part, what)
}

/// Waits, longer with every failure.
fn pause(failures: u32) {
    std::thread::sleep(Duration::from_millis(300 * 3_u64.pow(failures)));
}

fn unreachable(url: &str, error: &ureq::Error) -> Error {
    let host = origin(url).map_or(url.to_string(), |(_, host)| host);
    Error::network(format!(
        "cannot reach {host}: {error}; without a network, --model takes a folder or a GGUF file"
    ))
}

/// The error of an answer that is not a success.
fn refusal(url: &str, response: &Response<Body>) -> Error {
    let said =
        header(response, "x-error-message").map_or(String::new(), |said| format!(": {said}"));
    let status = response.status();
    let (kind, why) = match status {
        StatusCode::UNAUTHORIZED => (
            ErrorKind::Unauthorized,
            "there is no such model, or it is private: HF_TOKEN has to be a token that may read it",
        ),
        StatusCode::FORBIDDEN => (
            ErrorKind::Unauthorized,
            "the owner of HF_TOKEN may not read it; some models require to agree to terms on their page",
        ),
        StatusCode::NOT_FOUND => (
            ErrorKind::Input,
            "there is no such model, revision or file; only weights as model.safetensors or .gguf are read",
        ),
        StatusCode::TOO_MANY_REQUESTS => (ErrorKind::Busy, "too many requests"),
        status if status.is_server_error() => (ErrorKind::Busy, "an error of the hub"),
        _ => (ErrorKind::Network, "an unexpected answer of the hub"),
    };
    Error::new(kind, format!("{url}: {why} ({status}{said})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_an_owner_and_lead_nowhere_else() {
        let folder = Path::new("/models");
        for (name, path) in [
            ("FacebookAI/roberta-base", "FacebookAI/roberta-base"),
            ("a/b@v1.0", "a/b@v1.0"),
            ("a/b/c_1.Q4.gguf", "a/b/c_1.Q4.gguf"),
            ("a/b@main/deep/c.gguf", "a/b@main/deep/c.gguf"),
        ] {
            let model: HubModel = name.parse().unwrap();
            assert_eq!(model.path(folder), folder.join(path));
            assert_eq!(model.to_string(), name);
        }
        for name in [
            "",
            "a",
            "a/",
            "/b",
            "a//c.gguf",
            "/etc/passwd",
            "../b",
            "a/..",
            "a/b/../c.gguf",
            "a/b/..gguf",
            "a/b/c.bin",
            "a/b/.gguf",
            "a/b/",
            "a/b@",
            "a@x/b",
            "a/b@../c",
            "a/b@x@y",
            "a/b?x",
            "a/b#x",
            "a/b c",
            "a/b%2e",
            "a\\b/c",
            "a/b/C:\\x.gguf",
            "-a/b",
            "./model",
            "a/b\0",
            "é/b",
            "a/b:c",
        ] {
            let error = name.parse::<HubModel>().unwrap_err();
            assert!(error.to_string().contains("is not OWNER/NAME"), "{name}: {error}");
        }
    }

    #[test]
    fn redirects_stay_with_tls() {
        let hub = "https://hub.test/a/b";
        assert_eq!(follow(hub, "/c?d").as_deref(), Some("https://hub.test/c?d"));
        assert_eq!(follow(hub, "https://store.test/x").as_deref(), Some("https://store.test/x"));
        for to in ["http://hub.test/c", "//store.test/x", "c", "", "ftp://store.test/x"] {
            assert_eq!(follow(hub, to), None, "{to}");
        }
        assert!(follow("http://localhost:1/a", "http://localhost:2/b").is_some());
        assert!(Hub::new("hub.test", None).is_err() && Hub::new("file:///x", None).is_err());
        assert!(Hub::new("https://hub.test/", None).is_ok());
    }
}
