//! The answers that a study has paid for, on disk: a line each, found by the hash of the request.
//!
//! A line is written by one write before the answer is used, so a process that is killed loses none that it has
//! received. Each line has a checksum. A last line without its end is cut off; a damaged one is left out, and counted.

use crate::answer::Answer;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The name of the file in a study's folder.
pub const FILE: &str = "answers.jsonl";

/// What has been spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// Requests that were answered, or may have been: those that count as calls.
    pub calls: u64,
    /// Those among them whose answer did not arrive, or was none.
    pub lost: u64,
    /// Tokens of prompts.
    pub prompt_tokens: u64,
    /// Tokens of answers.
    pub answer_tokens: u64,
}

/// The answers of a study.
#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
    file: File,
    answers: HashMap<String, Answer>,
    spent: Spent,
    damaged: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<Answer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lost: Option<Lost>,
}

/// A call that may have been paid for, without an answer. The tokens are the most that it can have taken.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lost {
    pub(crate) why: String,
    pub(crate) prompt_tokens: u64,
    pub(crate) answer_tokens: u64,
}

/// The key of a request: a hash of its address and body. The key of the endpoint is in neither.
pub(crate) fn request_key(url: &str, body: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(url.as_bytes());
    hash.update(b"\n");
    hash.update(body.as_bytes());
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Store {
    /// Opens the answers in `folder`, which is locked by whoever opened the study there.
    pub(crate) fn open(folder: &Path) -> Result<Store> {
        let path = folder.join(FILE);
        let refuse = |error| Error::system("read", &path, error);
        let mut file = File::options()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .map_err(|error| Error::system("open", &path, error))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(refuse)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64).map_err(|error| Error::system("write", &path, error))?;
            file.seek(SeekFrom::End(0)).map_err(refuse)?;
        }
        let (answers, spent) = (HashMap::new(), Spent::default());
        let mut store = Store { path, file, answers, spent, damaged: 0 };
        for line in bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match unseal(line) {
                Some(line) => store.enter(line),
                // It was paid for.
                None => {
                    store.damaged += 1;
                    store.spent.calls += 1;
                    store.spent.lost += 1;
                }
            }
        }
        Ok(store)
    }

    fn enter(&mut self, line: Line) {
        let spent = &mut self.spent;
        spent.calls += 1;
        if let Some(lost) = line.lost {
            spent.lost += 1;
            spent.prompt_tokens += lost.prompt_tokens;
            spent.answer_tokens += lost.answer_tokens;
        }
        if let (Some(key), Some(answer)) = (line.key, line.answer) {
            spent.prompt_tokens += answer.prompt_tokens.unwrap_or(0);
            spent.answer_tokens += answer.answer_tokens.unwrap_or(0);
            self.answers.insert(key, answer);
        }
    }

    fn append(&mut self, line: Line) -> Result<()> {
        let mut text = serde_json::to_vec(&line).map_err(Error::setting)?;
        text.pop();
        let crc = crc32fast::hash(&text);
        text.extend_from_slice(format!(",\"crc\":\"{crc:08x}\"}}\n").as_bytes());
        self.file
            .write_all(&text)
            .map_err(|error| Error::system("write the answer to", &self.path, error))?;
        self.enter(line);
        Ok(())
    }

    /// The answer to a request, if it has been paid for.
    pub(crate) fn get(&self, key: &str) -> Option<&Answer> {
        self.answers.get(key)
    }

    /// Keeps an answer.
    pub(crate) fn add(&mut self, key: String, answer: Answer) -> Result<()> {
        self.append(Line { key: Some(key), answer: Some(answer), lost: None })
    }

    /// Keeps that a call may have been paid for without an answer.
    pub(crate) fn add_lost(&mut self, lost: Lost) -> Result<()> {
        self.append(Line { key: None, answer: None, lost: Some(lost) })
    }

    /// Forces everything to disk.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|error| Error::system("write", &self.path, error))
    }

    /// What has been spent, over all runs of the study.
    pub(crate) fn spent(&self) -> Spent {
        self.spent
    }

    /// The number of damaged lines, whose answers are lost.
    pub(crate) fn damaged(&self) -> u64 {
        self.damaged
    }
}

/// A line without its checksum, if that is right.
fn unseal(line: &[u8]) -> Option<Line> {
    let text = std::str::from_utf8(line).ok()?;
    let (body, crc) = text.strip_suffix("\"}")?.rsplit_once(",\"crc\":\"")?;
    let is_sound = format!("{:08x}", crc32fast::hash(body.as_bytes())) == crc;
    is_sound.then(|| serde_json::from_str(&format!("{body}}}")).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Answer {
        let first_tokens = vec![("\"crc\":\"".to_string(), -0.1)];
        Answer {
            text: text.to_string(),
            first_tokens,
            prompt_tokens: Some(5),
            answer_tokens: Some(2),
        }
    }

    #[test]
    fn answers_survive_torn_and_damaged_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let mut store = Store::open(folder.path()).unwrap();
        for text in ["a", "b\n\"}", "c"] {
            store.add(request_key("u", text), answer(text)).unwrap();
        }
        let lost = Lost { why: "timeout".to_string(), prompt_tokens: 9, answer_tokens: 1 };
        store.add_lost(lost).unwrap();
        let spent = Spent { calls: 4, lost: 1, prompt_tokens: 24, answer_tokens: 7 };
        assert_eq!(store.spent(), spent);
        drop(store);
        assert_eq!(Store::open(folder.path()).unwrap().spent(), spent);
        let whole = std::fs::read(&path).unwrap();
        let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
        for cut in last..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let store = Store::open(folder.path()).unwrap();
            assert_eq!((store.spent().calls, store.damaged()), (3, 0));
            assert_eq!(store.get(&request_key("u", "c")), Some(&answer("c")));
            assert_eq!(std::fs::read(&path).unwrap(), whole[..last]);
        }
        let mut damaged = whole.clone();
        damaged[40] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        let store = Store::open(folder.path()).unwrap();
        assert_eq!((store.damaged(), store.spent().calls), (1, 4));
        assert!(store.get(&request_key("u", "a")).is_none());
        assert!(store.get(&request_key("u", "c")).is_some());
    }

    #[test]
    fn keys_depend_on_address_and_body() {
        let key = request_key("http://a", "{}");
        assert_eq!((key.len(), key == request_key("http://a", "{}")), (64, true));
        assert!(key != request_key("http://b", "{}") && key != request_key("http://a", "{ }"));
    }
}
