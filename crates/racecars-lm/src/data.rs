//! Labelled texts from files: tables with a header (`.tsv`, `.csv`), JSON lines (`.jsonl`), and lines of a
//! label and a text (anything else).

use crate::error::{Error, Result};
use crate::task::Task;
use racecars::random::Random;
use racecars_io::table::{self, Format, NamedRow};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// A text, or several texts by column name, with the index of its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    columns: Vec<(String, String)>,
    /// The index of its label.
    pub label: usize,
}

impl Example {
    /// An example with these columns.
    pub fn new(columns: Vec<(String, String)>, label: usize) -> Self {
        Example { columns, label }
    }

    /// An example of one text, which matches any column name.
    pub fn of_text(text: &str) -> Self {
        Example::new(vec![(ANY.to_string(), text.to_string())], 0)
    }

    pub(crate) fn column(&self, name: &str) -> Option<&str> {
        let named = |name: &str| self.columns.iter().find(|(column, _)| column == name);
        let found = named(name).or_else(|| named(ANY));
        found.or_else(|| named(other_name(name)?)).map(|(_, text)| &**text)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| &**name)
    }
}

/// The column name of files with a single unnamed column.
const ANY: &str = "*";

/// Files with one text call it `text` or `sentence`, and even files of the same task differ.
fn other_name(name: &str) -> Option<&'static str> {
    match name {
        "text" => Some("sentence"),
        "sentence" => Some("text"),
        _ => None,
    }
}

/// Reads a data file.
pub fn read(path: &Path, task: &Task) -> Result<Vec<Example>> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::system("read", path, error))?;
    let examples = match Format::of(path) {
        Some(format) => named_rows(&text, format, task),
        None => plain_lines(&text, task),
    };
    let examples = examples.map_err(|error| error.within(path.display()))?;
    match examples.is_empty() {
        true => Err(Error::data(format!("{} has no examples", path.display()))),
        false => Ok(examples),
    }
}

fn named_rows(text: &str, format: Format, task: &Task) -> Result<Vec<Example>> {
    let rows = table::read(text, format).map_err(Error::data)?;
    let example = |row: NamedRow| {
        let label = row.get("label").ok_or_else(|| {
            let names: Vec<&str> = row.cells.iter().map(|(name, _)| &**name).collect();
            Error::data(format!("there is no `label` among {}", names.join(", ")))
        })?;
        let label = task.label(label)?;
        let columns = row.cells.into_iter().filter(|(name, _)| name != "label");
        let columns = columns.map(|(name, cell)| match (format, &*name) {
            // SuperGLUE's names for what GLUE calls sentence1 and sentence2.
            (Format::JsonLines, "premise") => ("sentence1".to_string(), cell),
            (Format::JsonLines, "hypothesis") => ("sentence2".to_string(), cell),
            (Format::Tsv, _) => (name, unescaped(&cell)),
            _ => (name, cell),
        });
        Ok(Example::new(columns.collect(), label))
    };
    rows.into_iter().map(|row| at_line(row.line, example(row))).collect()
}

fn plain_lines(text: &str, task: &Task) -> Result<Vec<Example>> {
    table::lines(text)
        .map(|(number, line)| {
            let (label, text) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let label = at_line(number, task.label(label))?;
            Ok(Example { label, ..Example::of_text(&unescaped(text)) })
        })
        .collect()
}

fn at_line<T>(number: usize, result: Result<T>) -> Result<T> {
    result.map_err(|error| error.within(format!("line {number}")))
}

/// In files with a line per example, line breaks within a text are written as `\n`.
fn unescaped(cell: &str) -> String {
    cell.replace("\\n", "\n")
}

/// A few-shot split: the same number of examples of each label for training and for development.
#[derive(Debug, Clone)]
pub struct Split {
    /// The folder or file it comes from.
    pub source: String,
    /// The examples on which the loss is minimized.
    pub train: Vec<Example>,
    /// The examples on which prompts are compared, to detect overfitting.
    pub dev: Vec<Example>,
}

impl Split {
    /// A hash of all texts and labels, in hexadecimal: files may change under the same name.
    pub(crate) fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        for examples in [&self.train, &self.dev] {
            hash.update((examples.len() as u64).to_le_bytes());
            for Example { columns, label } in examples {
                hash.update([*label as u64, columns.len() as u64].map(u64::to_le_bytes).concat());
                for text in columns.iter().flat_map(|(name, text)| [name, text]) {
                    hash.update((text.len() as u64).to_le_bytes());
                    hash.update(text);
                }
            }
        }
        hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The folder of a task's data: the subfolder with the task's name, or `folder` itself.
fn folder_of(folder: &Path, task: &Task) -> PathBuf {
    let within = folder.join(&task.name);
    if within.is_dir() { within } else { folder.to_path_buf() }
}

/// The split with `shots` examples of each label. If there are folders `SHOTS-*` with `train.tsv` and
/// `dev.tsv`, it is the one in `SHOTS-SEED`, or else the one at place `seed` in their order, from 0 and around;
/// without such folders it is drawn from a file `train.*`.
pub fn split(folder: &Path, task: &Task, shots: usize, seed: u64) -> Result<Split> {
    let folder = folder_of(folder, task);
    let names = names(&folder)?;
    let start = format!("{shots}-");
    let mut made: Vec<(u64, &String)> = (names.iter())
        .filter_map(|name| Some((name.strip_prefix(&start)?.parse().ok()?, name)))
        .collect();
    made.sort_unstable();
    if !made.is_empty() {
        let named = made.iter().find(|(number, _)| *number == seed);
        let (_, name) = named.unwrap_or(&made[(seed % made.len() as u64) as usize]);
        let source = folder.join(name);
        let [train, dev] = ["train.tsv", "dev.tsv"].map(|name| read(&source.join(name), task));
        return Ok(Split { source: source.display().to_string(), train: train?, dev: dev? });
    }
    let Some(name) = names.iter().find(|name| name.starts_with("train.")) else {
        return Err(Error::data(format!(
            "{} has neither folders {shots}-* with train.tsv and dev.tsv, nor a file train.*",
            folder.display()
        )));
    };
    let source = folder.join(name);
    let (train, dev) = draw(read(&source, task)?, task, shots, seed)
        .map_err(|error| error.within(source.display()))?;
    Ok(Split { source: source.display().to_string(), train, dev })
}

/// Draws `shots` examples of each label for training, and as many others for development.
fn draw(
    examples: Vec<Example>,
    task: &Task,
    shots: usize,
    seed: u64,
) -> Result<(Vec<Example>, Vec<Example>)> {
    let mut random = Random::stream(seed, 0x73_70_6c_69);
    let mut examples = examples;
    for i in (1..examples.len()).rev() {
        examples.swap(i, random.index(i + 1));
    }
    let mut counts = vec![0; task.labels.len()];
    let (mut train, mut dev) = (Vec::new(), Vec::new());
    for example in examples {
        let count = &mut counts[example.label];
        *count += 1;
        match *count {
            n if n <= shots => train.push(example),
            n if n <= 2 * shots => dev.push(example),
            _ => {}
        }
    }
    match counts.iter().position(|&count| count < 2 * shots) {
        Some(label) => Err(Error::data(format!(
            "label `{}` has {} examples; {shots} shots for training and as many for development need {}",
            task.labels[label],
            counts[label],
            2 * shots
        ))),
        None => Ok((train, dev)),
    }
}

/// Finds the test file of a task's folder: `test.*`.
pub fn test_file(folder: &Path, task: &Task) -> Result<PathBuf> {
    let folder = folder_of(folder, task);
    let names = names(&folder)?;
    match names.iter().find(|name| name.starts_with("test.")) {
        Some(name) => Ok(folder.join(name)),
        None => Err(Error::data(format!("{} has no file test.*", folder.display()))),
    }
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| Error::system("read", folder, error))?;
    let mut names: Vec<_> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, text: &str) {
        std::fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        std::fs::write(folder.join(name), text).unwrap();
    }

    #[test]
    fn all_kinds_of_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, sst2) = (folder.path(), Task::named("sst2").unwrap());
        write(folder, "a.tsv", "sentence\tlabel\nbad\\nfilm\t0\n\ngood \"film\t1\n");
        write(folder, "b.txt", "0 bad\n1 good\\nfilm\n");
        write(folder, "c.jsonl", "{\"sentence\": \"bad\", \"label\": 0, \"idx\": 3}\n");
        let a = read(&folder.join("a.tsv"), &sst2).unwrap();
        assert_eq!(a[0].column("sentence"), Some("bad\nfilm"));
        assert_eq!((a[1].column("sentence"), a[1].label), (Some("good \"film"), 1));
        let b = read(&folder.join("b.txt"), &sst2).unwrap();
        assert_eq!((b[1].column("sentence"), b[1].label), (Some("good\nfilm"), 1));
        let c = read(&folder.join("c.jsonl"), &sst2).unwrap();
        assert_eq!((c[0].column("sentence"), c[0].label), (Some("bad"), 0));
        write(folder, "d.csv", "label,sentence\n1,\"good, \"\"film\"\"\"\n");
        let d = read(&folder.join("d.csv"), &sst2).unwrap();
        assert_eq!((d[0].column("sentence"), d[0].label), (Some("good, \"film\""), 1));
    }

    #[test]
    fn one_text_may_be_called_text_or_sentence() {
        let of = |columns: &[(&str, &str)]| {
            let columns = columns.iter().map(|(name, text)| (name.to_string(), text.to_string()));
            Example::new(columns.collect(), 0)
        };
        // AG's News has `text` in its splits and `sentence` in its test file.
        assert_eq!(of(&[("sentence", "a")]).column("text"), Some("a"));
        assert_eq!(of(&[("text", "a")]).column("sentence"), Some("a"));
        let both = of(&[("sentence", "a"), ("text", "b")]);
        assert_eq!((both.column("sentence"), both.column("text")), (Some("a"), Some("b")));
        // But the two texts of RTE are not one.
        assert_eq!(of(&[("sentence", "a")]).column("sentence1"), None);
        assert_eq!(of(&[("sentence1", "a"), ("sentence2", "b")]).column("text"), None);
    }

    #[test]
    fn mistakes_are_named_with_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, sst2) = (folder.path(), Task::named("sst2").unwrap());
        for (name, text, message) in [
            ("a.tsv", "sentence\tlabel\nbad\t0\ngood\t7\n", "line 3: label `7` is none of 0, 1"),
            ("a.tsv", "sentence\tlabel\nbad\n", "line 2 has 1 cells, and the header has 2"),
            ("a.tsv", "sentence\nbad\n", "line 2: there is no `label` among sentence"),
            ("a.tsv", "sentence\tlabel\n", "has no examples"),
            ("b.jsonl", "{\"label\": 0}\n[1]\n", "line 2: not a JSON object"),
            ("c.txt", "\n2 x\n", "line 2: label `2`"),
        ] {
            write(folder, name, text);
            let error = read(&folder.join(name), &sst2).unwrap_err().to_string();
            assert!(error.contains(message) && error.contains(name), "{error}");
        }
    }

    #[test]
    fn splits_are_found_or_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, sst2) = (folder.path(), Task::named("sst2").unwrap());
        let table: String = (0..40).map(|i| format!("text {i}\t{}\n", i % 2)).collect();
        write(folder, "sst2/train.tsv", &format!("sentence\tlabel\n{table}"));
        let [one, again, other] = [1, 1, 2].map(|seed| split(folder, &sst2, 4, seed).unwrap());
        assert_eq!((one.train.len(), one.dev.len()), (8, 8));
        assert_eq!(one.train.iter().filter(|example| example.label == 1).count(), 4);
        assert!(one.train.iter().all(|example| !one.dev.contains(example)));
        assert_eq!(one.train, again.train);
        assert_ne!(one.train, other.train);
        assert!(split(folder, &sst2, 11, 1).is_err());

        for seed in [13, 100] {
            write(folder, &format!("sst2/4-{seed}/train.tsv"), "sentence\tlabel\na\t0\n");
            write(folder, &format!("sst2/4-{seed}/dev.tsv"), "sentence\tlabel\nb\t1\n");
        }
        assert!(split(folder, &sst2, 4, 0).unwrap().source.ends_with("4-13"));
        assert!(split(folder, &sst2, 4, 3).unwrap().source.ends_with("4-100"));
        // A split of LM-BFF by its own number: 100 is even, but not the first.
        assert!(split(folder, &sst2, 4, 100).unwrap().source.ends_with("4-100"));
        assert!(split(folder, &sst2, 4, 13).unwrap().source.ends_with("4-13"));
    }
}
