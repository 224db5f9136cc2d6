//! Tables of texts: `.tsv` and `.csv` with a header, `.jsonl` with an object per line.

use crate::error::{Error, Result};
use racecars::random::Random;
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
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let shown = path.display();
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
    let rows = match ending {
        "jsonl" => read_jsonl(text),
        "tsv" => read_separated(split_lines(text)),
        "csv" => split_csv(text).and_then(read_separated),
        _ => {
            return Err(Error::setting(format!(
                "{shown} ends with none of .tsv, .csv and .jsonl: its format is not known"
            )));
        }
    };
    let rows = rows.map_err(|what| Error::setting(format!("{shown}, {what}")))?;
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

/// Numbered lines of fields.
type Fields = Vec<(usize, Vec<String>)>;

fn split_lines(text: &str) -> Fields {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(i, line)| (i + 1, line.split('\t').map(str::to_string).collect())).collect()
}

/// Comma-separated fields, which may be in quotes (RFC 4180).
fn split_csv(text: &str) -> Result<Fields, String> {
    let (mut rows, mut fields, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut line, mut start, mut is_quoted) = (1, 1, false);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        line += usize::from(c == '\n');
        match c {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                field.push('"');
                characters.next();
            }
            '"' if is_quoted || field.is_empty() => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(std::mem::take(&mut field)),
            '\r' if !is_quoted && characters.peek() == Some(&'\n') => {}
            '\n' if !is_quoted => {
                fields.push(std::mem::take(&mut field));
                rows.push((start, std::mem::take(&mut fields)));
                start = line;
            }
            c => field.push(c),
        }
    }
    if is_quoted {
        return Err(format!("line {start}: a quote is not closed"));
    }
    if !field.is_empty() || !fields.is_empty() {
        fields.push(field);
        rows.push((start, fields));
    }
    rows.retain(|(_, fields)| fields.iter().any(|field| !field.trim().is_empty()));
    Ok(rows)
}

fn read_separated(lines: Fields) -> Result<Vec<Row>, String> {
    let mut lines = lines.into_iter();
    let Some((_, names)) = lines.next() else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for (number, fields) in lines {
        if fields.len() != names.len() {
            return Err(format!(
                "line {number}: {} fields, and the header has {}",
                fields.len(),
                names.len()
            ));
        }
        let names = names.iter().map(|name| name.trim().to_string());
        rows.push(Row { columns: names.zip(fields).collect() });
    }
    Ok(rows)
}

fn read_jsonl(text: &str) -> Result<Vec<Row>, String> {
    let mut rows: Vec<Row> = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let refuse = |what: String| format!("line {}: {what}", number + 1);
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(line).map_err(|error| refuse(error.to_string()))?;
        let mut columns = BTreeMap::new();
        for (name, value) in object {
            let text = match value {
                serde_json::Value::String(text) => text,
                serde_json::Value::Null => String::new(),
                other => other.to_string(),
            };
            columns.insert(name, text);
        }
        let mut expected = rows.first().into_iter().flat_map(|first: &Row| first.columns.keys());
        if let Some(name) = expected.find(|name| !columns.contains_key(*name)) {
            return Err(refuse(format!("`{name}` is missing")));
        }
        rows.push(Row { columns });
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
    fn the_formats_have_the_same_rows() {
        let tsv = read_text("a.tsv", "text\tlabel\na, \"b\"\t1\n\nc\t0\n").unwrap();
        let csv = read_text("a.csv", "text,label\r\n\"a, \"\"b\"\"\",1\r\nc,0\r\n").unwrap();
        let json = "{\"text\":\"a, \\\"b\\\"\",\"label\":1}\n{\"label\":\"0\",\"text\":\"c\"}\n";
        assert_eq!(tsv, csv);
        assert_eq!(tsv, read_text("a.jsonl", json).unwrap());
        assert_eq!(tsv[0].get("text"), Some("a, \"b\""));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (name, text, what) in [
            ("a.tsv", "text\tlabel\na\n", "line 2: 1 fields, and the header has 2"),
            ("a.tsv", "text\tmark\na\t1\n", "no column `label`; there are mark, text"),
            ("a.csv", "text,label\n\"a,1\n", "line 2: a quote is not closed"),
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
