//! Tables: tab-separated and comma-separated values with a header, and JSON lines.
//!
//! Messages name the line, and not the file, which the caller knows.

use std::path::Path;

/// A format of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Tab-separated values, without quotes (`.tsv`).
    Tsv,
    /// Comma-separated values, which may be in quotes (`.csv`).
    Csv,
    /// A JSON object per line (`.jsonl`).
    JsonLines,
}

impl Format {
    /// The format that a file's name says.
    pub fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()? {
            "tsv" => Some(Format::Tsv),
            "csv" => Some(Format::Csv),
            "jsonl" => Some(Format::JsonLines),
            _ => None,
        }
    }
}

/// A row of a table with a header, or an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedRow {
    /// The line it begins in, from 1.
    pub line: usize,
    /// Its cells with the names of their columns, in order. Of JSON, texts are as they are, `null` is empty, and
    /// other values are JSON.
    pub cells: Vec<(String, String)>,
}

impl NamedRow {
    /// The cell of a column.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.cells.iter().find(|(column, _)| column == name).map(|(_, cell)| &**cell)
    }
}

/// Reads a table. Blank lines are no rows.
pub fn read(text: &str, format: Format) -> Result<Vec<NamedRow>, String> {
    match format {
        Format::Tsv => with_names(tsv_cells(text)),
        Format::Csv => with_names(csv_cells(text)?),
        Format::JsonLines => json_lines(text),
    }
}

/// The cells of a row, after the line that it begins in.
pub type Cells = (usize, Vec<String>);

/// The header, and the rows, which have as many cells.
pub fn split_header(rows: Vec<Cells>) -> Result<(Vec<String>, Vec<Cells>), String> {
    let mut rows = rows.into_iter();
    let header = rows.next().map(|(_, cells)| cells).unwrap_or_default();
    let rows: Vec<Cells> = rows.collect();
    match rows.iter().find(|(_, cells)| cells.len() != header.len()) {
        None => Ok((header, rows)),
        Some((line, cells)) => Err(format!(
            "line {line} has {} cells, and the header has {}",
            cells.len(),
            header.len()
        )),
    }
}

fn with_names(rows: Vec<Cells>) -> Result<Vec<NamedRow>, String> {
    let (header, rows) = split_header(rows)?;
    let is_earlier = |i: usize| header[..i].iter().any(|name| name.trim() == header[i].trim());
    if let Some(i) = (0..header.len()).find(|i| is_earlier(*i)) {
        return Err(format!("the header has the column `{}` twice", header[i].trim()));
    }
    let named = rows.into_iter().map(|(line, cells)| {
        let names = header.iter().map(|name| name.trim().to_string());
        NamedRow { line, cells: names.zip(cells).collect() }
    });
    Ok(named.collect())
}

/// The lines of a text that are not blank, with their numbers, without the mark at its beginning that some
/// programs write.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(unmarked(text).lines()).filter(|(_, line)| !line.trim().is_empty())
}

fn unmarked(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn tsv_cells(text: &str) -> Vec<Cells> {
    lines(text)
        .map(|(number, line)| (number, line.split('\t').map(str::to_string).collect()))
        .collect()
}

/// The rows of comma-separated values, quoted as RFC 4180 says, the header first. Rows of
/// blank cells, as spreadsheets leave them at the end, are none.
pub fn csv_cells(text: &str) -> Result<Vec<Cells>, String> {
    let (mut rows, mut cells, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut line, mut began, mut is_quoted, mut was_quoted) = (1, 1, false, false);
    let mut letters = unmarked(text).chars().peekable();
    loop {
        let letter = letters.next();
        if letter == Some('\n') {
            line += 1;
        }
        match letter {
            Some('"') if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            Some('"') if is_quoted => is_quoted = false,
            Some('"') if cell.is_empty() && !was_quoted => (is_quoted, was_quoted) = (true, true),
            Some(letter) if is_quoted => cell.push(letter),
            None if is_quoted => return Err(format!("the quote of line {began} is never closed")),
            Some('\r') if letters.peek() == Some(&'\n') => {}
            Some(',') => {
                cells.push(std::mem::take(&mut cell));
                was_quoted = false;
            }
            Some('\n') | None => {
                cells.push(std::mem::take(&mut cell));
                let row: Vec<String> = std::mem::take(&mut cells);
                if row.iter().any(|cell| !cell.trim().is_empty()) {
                    rows.push((began, row));
                }
                (began, was_quoted) = (line, false);
                if letter.is_none() {
                    return Ok(rows);
                }
            }
            Some(letter) => cell.push(letter),
        }
    }
}

fn json_lines(text: &str) -> Result<Vec<NamedRow>, String> {
    let object = |line: usize, text: &str| {
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text)
            .map_err(|error| format!("line {line}: not a JSON object: {error}"))?;
        let cells = object.into_iter().map(|(name, value)| match value {
            serde_json::Value::String(text) => (name, text),
            serde_json::Value::Null => (name, String::new()),
            other => (name, other.to_string()),
        });
        Ok(NamedRow { line, cells: cells.collect() })
    };
    lines(text).map(|(line, text)| object(line, text)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_formats_have_the_same_cells() {
        let tsv = "\u{feff}text\tlabel\na, \"b\"\t1\n\nc\t0\n";
        let csv = "\u{feff}text,label\r\n\"a, \"\"b\"\"\",1\r\n\r\nc,0\r\n";
        let json = "{\"text\":\"a, \\\"b\\\"\",\"label\":1}\n\n{\"text\":\"c\",\"label\":\"0\"}";
        let tsv = read(tsv, Format::Tsv).unwrap();
        assert_eq!((tsv.len(), tsv[0].get("text"), tsv[1].line), (2, Some("a, \"b\""), 4));
        let csv = read(csv, Format::Csv).unwrap();
        let json = read(json, Format::JsonLines).unwrap();
        for (tsv, (csv, json)) in tsv.iter().zip(csv.iter().zip(&json)) {
            for name in ["text", "label", "other"] {
                assert_eq!(tsv.get(name), csv.get(name));
                assert_eq!(tsv.get(name), json.get(name));
            }
        }
        let odd = read("a,b\n\"x\ny\",\"\"\n", Format::Csv).unwrap();
        assert_eq!((odd[0].get("a"), odd[0].get("b")), (Some("x\ny"), Some("")));
        let odd = read("{\"a\":null,\"b\":[1]}", Format::JsonLines).unwrap();
        assert_eq!((odd[0].get("a"), odd[0].get("b")), (Some(""), Some("[1]")));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, format, what) in [
            ("a\tb\nx\n", Format::Tsv, "line 2 has 1 cells, and the header has 2"),
            ("a,b\n\nx,y,z\n", Format::Csv, "line 3 has 3 cells, and the header has 2"),
            ("a\tb\ta \nx\ty\tz\n", Format::Tsv, "the header has the column `a` twice"),
            ("a\n\"x\ny", Format::Csv, "the quote of line 2 is never closed"),
            ("{}\n[3]\n", Format::JsonLines, "line 2: not a JSON object: "),
        ] {
            let error = read(text, format).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }
}
