//! Finding the value in what a program left: its output, a file, or the time that it took.

use crate::error::{Error, Result};
use crate::outcome::{FailureKind, Outcome};
use crate::process::Finished;
use crate::settings::value::serialized_as_text;
use crate::text::{Text, Unknown};
use racecars::Space;
use regex_lite::Regex;
use std::fmt;
use std::str::FromStr;

/// Where a value is found. Its text:
///
/// | text | meaning |
/// |---|---|
/// | `last` | the last number on the last line of standard output that is not empty |
/// | `json:a.b[2]` | a number in JSON on standard output (all of it, or its last line) |
/// | `regex:loss=(\S+)` | the last match on standard output: its first group, or all of it |
/// | `time` | the run time in seconds |
/// | `stderr`, `stderr:json:..`, `stderr:regex:..` | the same on standard error |
/// | `file:out.txt`, `file:out.json:json:..`, `file:out.log:regex:..` | the same in a file |
///
/// In regular expressions `\d`, `\s` and `\w` stand for ASCII characters.
///
/// ```
/// use racecars_study::Source;
///
/// let source: Source = "file:{dir}/out.json:json:loss".parse()?;
/// assert_eq!(source.to_string(), "file:{dir}/out.json:json:loss");
/// # Ok::<(), racecars_study::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Source(Kind);

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Time,
    Text { place: Place, how: How },
}

/// Which text is searched.
#[derive(Debug, Clone, PartialEq)]
enum Place {
    Stdout,
    Stderr,
    /// A path, in which parameters may be named.
    File(String),
}

/// How the value is found in it.
#[derive(Debug, Clone)]
enum How {
    LastNumber,
    Json(String, Vec<Step>),
    Regex(Regex),
}

impl PartialEq for How {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (How::LastNumber, How::LastNumber) => true,
            (How::Json(_, a), How::Json(_, b)) => a == b,
            (How::Regex(a), How::Regex(b)) => a.as_str() == b.as_str(),
            _ => false,
        }
    }
}

/// A step of a JSON path.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Key(String),
    Index(usize),
}

/// The last number of standard output.
impl Default for Source {
    fn default() -> Self {
        Source(Kind::Text { place: Place::Stdout, how: How::LastNumber })
    }
}

impl FromStr for Source {
    type Err = Error;

    fn from_str(text: &str) -> Result<Source> {
        let (place, how) = match text {
            "time" => return Ok(Source(Kind::Time)),
            "last" | "stdout" => (Place::Stdout, ""),
            "stderr" => (Place::Stderr, ""),
            _ => {
                if let Some(rest) = text.strip_prefix("stdout:") {
                    (Place::Stdout, rest)
                } else if let Some(rest) = text.strip_prefix("stderr:") {
                    (Place::Stderr, rest)
                } else if let Some(rest) = text.strip_prefix("file:") {
                    let cut = [":json:", ":regex:"].iter().filter_map(|how| rest.find(how)).min();
                    let (path, how) = cut.map_or((rest, ""), |at| (&rest[..at], &rest[at + 1..]));
                    if path.is_empty() {
                        return Err(Error::setting(format!("`{text}` names no file")));
                    }
                    (Place::File(path.to_string()), how)
                } else {
                    (Place::Stdout, text)
                }
            }
        };
        let how = match how.split_once(':') {
            None if how.is_empty() => How::LastNumber,
            Some(("json", path)) => How::Json(path.to_string(), json_path(path)?),
            Some(("regex", regex)) => How::Regex(Regex::new(regex).map_err(|error| {
                Error::setting(format!("`{regex}` is not a regular expression: {error}"))
            })?),
            _ => {
                return Err(Error::setting(format!(
                    "`{text}` is not a place to find a value; there are last, time, json:PATH, \
                     regex:RE, stderr, file:PATH, and stderr or file:PATH followed by :json:PATH or \
                     :regex:RE"
                )));
            }
        };
        Ok(Source(Kind::Text { place, how }))
    }
}

/// As it is read.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kind::Text { place, how } = &self.0 else { return f.write_str("time") };
        match (place, how) {
            (Place::Stdout, How::LastNumber) => return f.write_str("last"),
            (Place::Stdout, _) => {}
            (Place::Stderr, How::LastNumber) => return f.write_str("stderr"),
            (Place::Stderr, _) => f.write_str("stderr:")?,
            (Place::File(path), How::LastNumber) => return write!(f, "file:{path}"),
            (Place::File(path), _) => write!(f, "file:{path}:")?,
        }
        match how {
            How::LastNumber => Ok(()),
            How::Json(path, _) => write!(f, "json:{path}"),
            How::Regex(regex) => write!(f, "regex:{regex}"),
        }
    }
}

serialized_as_text!(Source);

/// A source whose file is named for each evaluation.
#[derive(Debug, Clone)]
pub(crate) struct Finder {
    source: Source,
    file: Option<Text>,
}

impl Finder {
    pub(crate) fn new(source: &Source, space: &Space) -> Result<Finder> {
        let file = match &source.0 {
            Kind::Text { place: Place::File(path), .. } => {
                Some(Text::parse(path, space, Unknown::Refuse, &format!("the path `{path}`"))?)
            }
            _ => None,
        };
        Ok(Finder { source: source.clone(), file })
    }

    /// The file that is read, if it is one.
    pub(crate) fn file(&self) -> Option<&Text> {
        self.file.as_ref()
    }

    /// The value that a run left, or the failure that it is. `read` gives a file's content.
    pub(crate) fn value(
        &self,
        finished: &Finished,
        read: impl Fn(&Text) -> Result<String, String>,
    ) -> Result<f64, Outcome> {
        let unparseable = |what: String| Outcome::failure(FailureKind::Unparseable, what);
        let value = match &self.source.0 {
            Kind::Time => finished.elapsed.as_secs_f64(),
            Kind::Text { place, how } => {
                let (name, content) = match (place, &self.file) {
                    (Place::Stderr, _) => ("standard error", finished.stderr.as_str().into()),
                    (Place::File(_), Some(file)) => {
                        let content = read(file).map_err(unparseable)?;
                        ("the result file", std::borrow::Cow::Owned(content))
                    }
                    _ => ("standard output", finished.stdout.as_str().into()),
                };
                how.find(&content).map_err(|what| unparseable(format!("{what} in {name}")))?
            }
        };
        if value.is_finite() {
            return Ok(value);
        }
        Err(Outcome::failure(
            FailureKind::Nan,
            format!("the value is {value}, not a finite number"),
        ))
    }
}

impl How {
    fn find(&self, content: &str) -> Result<f64, String> {
        match self {
            How::LastNumber => {
                let line = content.lines().rev().find(|line| !line.trim().is_empty());
                let line = line.ok_or("nothing")?;
                let wrong = || format!("no number on the last line `{}`", shortened(line));
                last_number(line).ok_or_else(wrong)
            }
            How::Json(path, steps) => {
                let parsed = serde_json::from_str(content).or_else(|error| {
                    let last = content.lines().rev().find(|line| !line.trim().is_empty());
                    last.map_or(Err(error), serde_json::from_str)
                });
                let json: serde_json::Value =
                    parsed.map_err(|error| format!("no JSON ({error})"))?;
                let found = steps.iter().try_fold(&json, |json, step| match step {
                    Step::Key(key) => json.get(key),
                    Step::Index(index) => json.get(index),
                });
                match found {
                    None => Err(format!("no `{path}`")),
                    Some(serde_json::Value::Number(number)) => {
                        number.as_f64().ok_or_else(|| format!("no number at `{path}`"))
                    }
                    // JSON has no NaN, so programs write it as a string.
                    Some(serde_json::Value::String(text)) => {
                        let wrong = |_| format!("`{}`, not a number, at `{path}`", shortened(text));
                        text.trim().parse().map_err(wrong)
                    }
                    Some(other) => {
                        let other = other.to_string();
                        Err(format!("`{}`, not a number, at `{path}`", shortened(&other)))
                    }
                }
            }
            How::Regex(regex) => {
                let wrong = || format!("no match of `{regex}`");
                let found = regex.captures_iter(content).last().ok_or_else(wrong)?;
                let text = found.get(1).or(found.get(0)).map_or("", |group| group.as_str());
                let wrong =
                    |_| format!("`{}`, not a number, as a match of `{regex}`", shortened(text));
                text.trim().parse().map_err(wrong)
            }
        }
    }
}

/// Reads a path like `a.b[2].c`; a `$.` in front is allowed.
fn json_path(text: &str) -> Result<Vec<Step>> {
    let wrong = || {
        Error::setting(format!(
            "`{text}` is not a JSON path such as loss, results.loss or runs[0].loss"
        ))
    };
    let mut steps = Vec::new();
    let text = text.strip_prefix('$').unwrap_or(text);
    let text = text.strip_prefix('.').unwrap_or(text);
    for part in text.split('.').filter(|_| !text.is_empty()) {
        let (key, indices) = part.split_at(part.find('[').unwrap_or(part.len()));
        if !key.is_empty() {
            steps.push(Step::Key(key.to_string()));
        } else if indices.is_empty() {
            return Err(wrong());
        }
        let mut rest = indices;
        while let Some(inner) = rest.strip_prefix('[') {
            let (index, after) = inner.split_once(']').ok_or_else(wrong)?;
            steps.push(Step::Index(index.parse().map_err(|_| wrong())?));
            rest = after;
        }
        if !rest.is_empty() {
            return Err(wrong());
        }
    }
    Ok(steps)
}

/// The last number on a line. A number does not begin within a word, so that `v2` is none; `nan` and
/// `inf` are numbers, so that they are noticed.
pub(crate) fn last_number(line: &str) -> Option<f64> {
    let bytes = line.as_bytes();
    let mut last = None;
    let mut at = 0;
    while at < bytes.len() {
        let before = at.checked_sub(1).map(|before| bytes[before]);
        let is_fresh =
            before.is_none_or(|b| !(b.is_ascii_alphanumeric() || b == b'_' || b == b'.'));
        match is_fresh.then(|| number_at(&line.as_bytes()[at..])).flatten() {
            Some((number, length)) => {
                last = Some(number);
                at += length;
            }
            None => at += 1,
        }
    }
    last
}

/// The number that begins here, and its length.
fn number_at(bytes: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    for word in ["infinity", "inf", "nan"] {
        let end = sign + word.len();
        let is_whole = bytes.get(end).is_none_or(|b| !(b.is_ascii_alphanumeric() || *b == b'_'));
        if is_whole && bytes.get(sign..end).is_some_and(|b| b.eq_ignore_ascii_case(word.as_bytes()))
        {
            return Some((parse(&bytes[..end])?, end));
        }
    }
    let whole = digits(sign);
    let mut end = sign + whole;
    let mut fraction = 0;
    if bytes.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        if whole + fraction > 0 {
            end += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        let exponent = bytes.get(end + 1 + sign..).map_or(0, |_| digits(end + 1 + sign));
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    Some((parse(&bytes[..end])?, end))
}

fn parse(bytes: &[u8]) -> Option<f64> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

/// The beginning of a text that may be long.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 80;
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Ending;
    use std::time::Duration;

    fn find(source: &str, stdout: &str) -> Result<f64, Outcome> {
        let space = Space::cube(1, 0.0, 1.0).unwrap();
        let finished = Finished {
            ending: Ending::Exit(0),
            stdout: stdout.to_string(),
            stderr: "on stderr 7\n".to_string(),
            elapsed: Duration::from_millis(1500),
        };
        let file = |_: &Text| Ok(r#"{"loss": 0.125}"#.to_string());
        Finder::new(&source.parse().unwrap(), &space).unwrap().value(&finished, file)
    }

    #[test]
    fn the_last_number_of_the_last_line() {
        let cases = [
            ("3\n", 3.0),
            ("1\nloss: 0.25 (epoch 7) 0.5\n\n  \n", 0.5),
            ("loss=-1.5e-3", -1.5e-3),
            ("result: 12ms v2 x_3", 12.0),
            ("a,b,.5", 0.5),
            ("3-4", 4.0),
            ("7.", 7.0),
            ("1e5e", 1e5),
            ("value 2e", 2.0),
            ("größe 5 größer", 5.0),
        ];
        for (text, value) in cases {
            assert_eq!(find("last", text), Ok(value), "{text}");
        }
        for (text, kind) in [
            ("", FailureKind::Unparseable),
            ("done.", FailureKind::Unparseable),
            ("version v1.2.3", FailureKind::Unparseable),
            ("loss nan", FailureKind::Nan),
            ("loss -inf", FailureKind::Nan),
            ("3 NaN", FailureKind::Nan),
            ("nano info", FailureKind::Unparseable),
        ] {
            let Err(Outcome::Failed(failure)) = find("last", text) else {
                panic!("`{text}` gave a value")
            };
            assert_eq!(failure.kind, kind, "{text}");
        }
    }

    #[test]
    fn json_regex_files_and_time() {
        let json = "log\n{\"a\": {\"b\": [1, 2.5]}, \"s\": \"nan\"}";
        assert_eq!(find("json:a.b[1]", json), Ok(2.5));
        assert_eq!(find("json:$.a.b[0]", json), Ok(1.0));
        assert_eq!(find("json:[1]", "[1,\n 2]"), Ok(2.0));
        assert!(find("json:s", json).unwrap_err().to_string().contains("NaN"));
        let missing = find("json:a.c", json).unwrap_err().to_string();
        assert_eq!(missing, "failed: no `a.c` in standard output");
        assert_eq!(find(r"regex:loss=(\S+)", "loss=1 loss=2\nend"), Ok(2.0));
        assert_eq!(find(r"regex:\d+", "a1 b22"), Ok(22.0));
        assert!(find(r"regex:loss=(\S+)", "none").is_err());
        assert_eq!(find("stderr", ""), Ok(7.0));
        assert_eq!(find("file:a.json:json:loss", ""), Ok(0.125));
        assert_eq!(find("file:a.json", ""), Ok(0.125));
        assert_eq!(find("time", ""), Ok(1.5));
    }

    #[test]
    fn sources_are_written_as_they_are_read() {
        for text in [
            "last",
            "time",
            "json:a.b[2]",
            "json:",
            r"regex:loss=(\S+)",
            "stderr",
            "stderr:json:a",
            "stderr:regex:a:b",
            "file:{dir}/out.txt",
            "file:a:b.json:json:loss",
            "file:a:regex:x:json:",
        ] {
            let source: Source = text.parse().unwrap();
            assert_eq!(source.to_string(), text);
        }
        assert_eq!("stdout:json:a".parse::<Source>(), "json:a".parse());
        assert_eq!("last".parse(), Ok(Source::default()));
    }

    #[test]
    fn mistakes_are_named() {
        let space = Space::cube(1, 0.0, 1.0).unwrap();
        let finder = |text: &str| Finder::new(&text.parse()?, &space);
        let error = |text| finder(text).unwrap_err().to_string();
        assert!(error("study.toml").contains("there are last, time, json:PATH"));
        assert!(error("json:a..b").contains("not a JSON path"));
        assert!(error("json:a[x]").contains("not a JSON path"));
        assert!(error("regex:(").contains("not a regular expression"));
        assert!(error("file:").contains("names no file"));
        assert!(error("file:{y}").contains("`{y}` in the path"));
    }
}
