//! Tables of texts: `.tsv` and `.csv` with a header, `.jsonl` with an object per line.

use crate::error::{Error, Result};
use racecars::random::Random;
use racecars_io::table::{self, Format, NamedRow};
use std::collections::BTreeMap;
use std::path::Path;

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    columns: BTreeMap<String, String>,
}

impl Row {
    /// The value of a column.
    pub fn get(&self, column: &str) -> Option<&str> {
        self.columns.get(column).map(String::as_str)
    }

    /// All columns.
    pub fn columns(&self) -> &BTreeMap<String, String> {
        &self.columns
    }
}

/// Reads a table. All rows have the columns of the first, and at least `needed`.
pub fn read(path: &Path, needed: &[&str]) -> Result<Vec<Row>> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::system("read", path, error))?;
    let shown = path.display();
    let Some(format) = Format::of(path) else {
        return Err(Error::setting(format!(
            "{shown} ends with none of .tsv, .csv and .jsonl: its format is not known"
        )));
    };
    let refuse = |what: String| Error::setting(format!("{shown}, {what}"));
    let mut rows: Vec<Row> = Vec::new();
    for NamedRow { line, cells } in table::read(&text, format).map_err(refuse)? {
        let columns: BTreeMap<String, String> = cells.into_iter().collect();
        let mut expected = rows.first().into_iter().flat_map(|first| first.columns.keys());
        if let Some(name) = expected.find(|name| !columns.contains_key(*name)) {
            return Err(refuse(format!("line {line}: `{name}` is missing")));
        }
        rows.push(Row { columns });
    }
    let Some(first) = rows.first() else {
        return Err(Error::setting(format!("{shown} has no rows")));
    };
    for column in needed {
        if first.get(column).is_none() {
            let names: Vec<&str> = first.columns.keys().map(String::as_str).collect();
            return Err(Error::setting(format!(
                "{shown} has no column `{column}`; there are {}",
                names.join(", ")
            )));
        }
    }
    Ok(rows)
}

/// The rows in a random order in which labels take turns, so that each minibatch has all of them.
pub fn shuffled(rows: Vec<Row>, label: &str, random: &mut Random) -> Vec<Row> {
    let mut by_label: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in rows {
        by_label.entry(row.get(label).unwrap_or("").to_string()).or_default().push(row);
    }
    let mut groups: Vec<Vec<Row>> = by_label.into_values().collect();
    groups.iter_mut().for_each(|group| random.shuffle(group));
    let mut mixed = Vec::new();
    while !groups.is_empty() {
        random.shuffle(&mut groups);
        mixed.extend(groups.iter_mut().filter_map(Vec::pop));
        groups.retain(|group| !group.is_empty());
    }
    mixed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(name: &str, text: &str) -> Result<Vec<Row>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        read(&path, &["label"])
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (name, text, what) in [
            ("a.tsv", "text\tlabel\na\n", "line 2 has 1 cells, and the header has 2"),
            ("a.tsv", "text\tmark\na\t1\n", "no column `label`; there are mark, text"),
            ("a.csv", "text,label\n\"a,1\n", "the quote of line 2 is never closed"),
            ("a.jsonl", "{\"label\":1}\n[3]\n", "line 2: "),
            ("a.jsonl", "{\"label\":1}\n{\"x\":1}\n", "line 2: `label` is missing"),
            ("a.txt", "", "none of .tsv, .csv and .jsonl"),
            ("a.tsv", "text\tlabel\n", "has no rows"),
        ] {
            let error = read_text(name, text).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn labels_take_turns() {
        let text: String = (0..20).map(|i| format!("t{i}\t{}\n", i / 10)).collect();
        let rows = read_text("a.tsv", &format!("text\tlabel\n{text}")).unwrap();
        let mixed = shuffled(rows.clone(), "label", &mut Random::new(1));
        for pair in mixed.chunks(2) {
            assert_ne!(pair[0].get("label"), pair[1].get("label"));
        }
        let (mut a, mut b) = (rows, mixed);
        a.sort();
        b.sort();
        assert_eq!(a, b);
    }
}
