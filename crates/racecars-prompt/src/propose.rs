//! New texts for a choice, written by the model itself from the best so far (after Yang et al. 2023, "Large
//! Language Models as Optimizers", OPRO).
//!
//! The space has a fixed number of places for them. A place is filled when the search first picks it, and its
//! text is kept in a file: so the search is a function of its journal and of that file.

use crate::caller::{Caller, NoAnswer, Request};
use crate::error::{Error, Result};
use crate::race::mean;
use crate::search::Standing;
use crate::settings::ProposeSettings;
use crate::task::{Candidate, Task};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The name of the file.
const FILE: &str = "written.jsonl";
/// How many texts with their scores, and how many examples, the model is shown.
const SHOWN_TEXTS: usize = 8;
const SHOWN_EXAMPLES: usize = 4;
/// The most tokens of a new text.
const MAX_TOKENS: u64 = 160;

/// The texts written so far.
#[derive(Debug)]
pub(crate) struct Proposals {
    path: PathBuf,
    written: BTreeMap<(String, usize), String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    choice: String,
    place: usize,
    text: String,
}

impl Proposals {
    /// The file in `folder`, if there is one.
    pub(crate) fn file(folder: &Path) -> Option<PathBuf> {
        Some(folder.join(FILE)).filter(|path| path.exists())
    }

    pub(crate) fn open(folder: &Path) -> Result<Proposals> {
        let path = folder.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Error::system("read", &path, error)),
        };
        let mut written = BTreeMap::new();
        // A torn last line is written again, from the answer that is kept.
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let Written { choice, place, text } =
                serde_json::from_str(line).map_err(|error| Error::system("use", &path, error))?;
            written.insert((choice, place), text);
        }
        if !text.is_empty() && !text.ends_with('\n') {
            let whole = text.rfind('\n').map_or(0, |at| at + 1);
            let file = std::fs::File::options().write(true).open(&path);
            file.and_then(|file| file.set_len(whole as u64))
                .map_err(|error| Error::system("write", &path, error))?;
        }
        Ok(Proposals { path, written })
    }

    /// The number of texts written.
    pub(crate) fn len(&self) -> usize {
        self.written.len()
    }

    /// Fills in the texts that are written.
    pub(crate) fn fill_known(&self, candidate: &mut Candidate) {
        for place in candidate.open().to_vec() {
            if let Some(text) = self.written.get(&place) {
                candidate.write(&place.0, text.clone());
            }
        }
    }

    /// Fills in all texts; those that are not written yet are, by the model, from the best so far.
    pub(crate) fn fill(
        &mut self,
        candidate: &mut Candidate,
        task: &Task,
        caller: &Caller,
        ranked: &[Standing],
    ) -> Result<(), NoAnswer> {
        self.fill_known(candidate);
        let Some(settings) = &task.settings.propose else { return Ok(()) };
        for (choice, place) in candidate.open().to_vec() {
            let body = request(task, settings, ranked, place);
            let request = Request { body, answer_tokens: MAX_TOKENS, with_tokens: false };
            let answer = caller.answers(std::slice::from_ref(&request))?.pop().unwrap_or_default();
            let text = extract(&answer.text);
            // Where the model wrote nothing, it is the first text again, whose answers are kept.
            let text = if text.is_empty() { task.texts(&choice)[0].clone() } else { text };
            self.keep(Written { choice: choice.clone(), place, text: text.clone() })?;
            candidate.write(&choice, text);
        }
        Ok(())
    }

    fn keep(&mut self, written: Written) -> Result<()> {
        let mut line = serde_json::to_vec(&written).map_err(Error::setting)?;
        line.push(b'\n');
        let file = std::fs::File::options().append(true).create(true).open(&self.path);
        file.and_then(|mut file| file.write_all(&line))
            .map_err(|error| Error::system("write", &self.path, error))?;
        self.written.insert((written.choice, written.place), written.text);
        Ok(())
    }
}

/// The request for a new text: the best so far with their scores, worst first, and some examples of the task.
fn request(task: &Task, settings: &ProposeSettings, ranked: &[Standing], place: usize) -> String {
    let mut text = String::from("A language model gets an instruction and then a text.");
    if let Some(what) = &settings.task {
        text += &format!(" Its task: {what}");
    }
    text += "\n\nExamples of texts and right answers:\n";
    for row in task.train.iter().take(SHOWN_EXAMPLES) {
        let label = task.settings.data.label.as_str();
        let columns = row.columns().iter().filter(|(name, _)| *name != label);
        let columns: Vec<&str> = columns.map(|(_, value)| value.as_str()).collect();
        let word = ranked.first().map(|best| task.word(&best.candidate, row));
        let word = word.unwrap_or_else(|| row.get(label).unwrap_or("").to_string());
        text += &format!("- {} => {word}\n", columns.join(" / "));
    }
    // The best score of each text.
    let mut shown: Vec<(f64, &str)> = Vec::new();
    for standing in ranked {
        if let Some(used) = standing.candidate.text(&settings.choice)
            && shown.iter().all(|(_, other)| *other != used)
        {
            shown.push((mean(&standing.scores), used));
        }
    }
    shown.truncate(SHOWN_TEXTS);
    text += "\nInstructions so far, from the worst to the best, with their scores (higher is better):\n";
    for (score, used) in shown.iter().rev() {
        text += &format!("- score {score:.3}: {used}\n");
    }
    text += "\nWrite one new instruction that is different from all of these and gets a higher score. \
             Answer with the instruction alone, between <INS> and </INS>.\n";
    let mut sampling = Map::new();
    sampling.insert("temperature".to_string(), json!(settings.temperature));
    sampling.insert("max_tokens".to_string(), json!(MAX_TOKENS));
    // Places that are filled at the same stage of a search get different texts.
    sampling.insert("seed".to_string(), json!(place + 1));
    task.body_of(vec![("user", text)], &sampling, None)
}

/// The new text in an answer: between the marks, or else its first line.
fn extract(answer: &str) -> String {
    let after = answer.split_once("<INS>").map_or(answer, |(_, after)| after);
    let inside = after.split("</INS>").next().unwrap_or("").trim();
    match answer.contains("<INS>") {
        true => inside.to_string(),
        false => inside.lines().next().unwrap_or("").trim().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_text_is_found() {
        assert_eq!(extract("Sure! <INS>Say it.\nNow.</INS> bye"), "Say it.\nNow.");
        assert_eq!(extract("<INS>Say it."), "Say it.");
        assert_eq!(extract(" Say it.</INS>\nMore"), "Say it.");
        assert_eq!(extract("Say it.\nMore"), "Say it.");
        assert_eq!(extract(" \n"), "");
    }
}
