//! Finding the value in what a program left: its output, a file, or the time that it took.

mod json;
mod number;

use crate::error::{Error, Result};
use crate::outcome::{FailureKind, Outcome};
use crate::process::{Captured, Finished};
use crate::settings::value::serialized_as_text;
use crate::text::{Names, Text, Unknown};
use regex_lite::Regex;
use serde_json::Value;
use std::fmt;
use std::str::FromStr;

/// Where a value is found. Its text:
///
/// | text | meaning |
/// |---|---|
/// | `last` | the last number on the last line of standard output that is not empty |
/// | `json:a.b[2]` | a number in the last complete JSON object or array on standard output that has this path |
/// | `regex:loss=(\S+)` | the last match on standard output: its first group, or all of it |
/// | `time` | the run time in seconds |
/// | `stderr`, `stderr:json:..`, `stderr:regex:..` | the same on standard error |
/// | `file:out.txt`, `file:out.json:json:..`, `file:out.log:regex:..` | the same in a file |
///
/// Paths take `[-1]`, the last element, and `["a.b"]`, a key with dots. JSON may stand among other output,
/// take several lines, and have NaN and Infinity in it. Of equal keys in one object the last counts.
///
/// In regular expressions `\d`, `\s` and `\w` stand for ASCII characters.
///
/// # What is a number
///
/// | text | read as |
/// |---|---|
/// | `0.25`, `-3`, `.5`, `7.`, `1e-3` | as they are |
/// | `0.15D+04`, `1d-3` | with Fortran's exponents |
/// | a minus of Unicode, `−2` | -2 |
/// | `0.25,` `(0.25)` `"0.25"` `0.25.` `12%` | without what is around it |
/// | `loss=0.25`, `loss: 0.25`, `tensor(0.25)`, `0.1;0.2`, `[0.1, 0.2]` | the last number |
/// | colours and other terminal sequences | nothing |
/// | `nan`, `inf`, `1.#QNAN` | not a finite number: a failure |
/// | `v2`, `x_3`, `model-3.pt` | words |
/// | `1,5`, `1,234.5`, `1 000`, `1_000`, `1'000`, `0x1F`, `1.2.3`, `12ms`, `3/10`, `0.25±0.01`, `- 5`, `loss:3`, `None` | not clearly one number: a failure |
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
    Json(String, json::Path),
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

/// The last number of standard output.
impl Default for Source {
    fn default() -> Self {
        Source(Kind::Text { place: Place::Stdout, how: How::LastNumber })
    }
}

impl FromStr for Source {
    type Err = Error;

    fn from_str(text: &str) -> Result<Source> {
        let (place, how) = match text.split_once(':') {
            None if text == "time" => return Ok(Source(Kind::Time)),
            None if text == "last" || text == "stdout" => (Place::Stdout, ""),
            None if text == "stderr" => (Place::Stderr, ""),
            Some(("stdout", how)) => (Place::Stdout, how),
            Some(("stderr", how)) => (Place::Stderr, how),
            Some(("file", rest)) => {
                let cut = [":json:", ":regex:"].iter().filter_map(|how| rest.find(how)).min();
                let (path, how) = cut.map_or((rest, ""), |at| (&rest[..at], &rest[at + 1..]));
                if path.is_empty() {
                    return Err(Error::setting(format!("`{text}` names no file")));
                }
                (Place::File(path.to_string()), how)
            }
            _ => (Place::Stdout, text),
        };
        let how = match how.split_once(':') {
            None if how.is_empty() => How::LastNumber,
            Some(("json", path)) => How::Json(path.to_string(), json::Path::parse(path)?),
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
    pub(crate) fn new(source: &Source, names: Names<'_>) -> Result<Finder> {
        let file = match &source.0 {
            Kind::Text { place: Place::File(path), .. } => {
                Some(Text::parse(path, names, Unknown::Refuse, &format!("the path `{path}`"))?)
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
        read: impl Fn(&Text) -> Result<Captured, String>,
    ) -> Result<f64, Outcome> {
        let unparseable = |what: String| Outcome::failure(FailureKind::Unparseable, what);
        let value = match &self.source.0 {
            Kind::Time => finished.elapsed.as_secs_f64(),
            Kind::Text { place, how } => {
                let content;
                let (name, content) = match (place, &self.file) {
                    (Place::Stderr, _) => ("standard error", &finished.stderr),
                    (Place::File(_), Some(file)) => {
                        content = read(file).map_err(unparseable)?;
                        ("the result file", &content)
                    }
                    _ => ("standard output", &finished.stdout),
                };
                how.find(&number::without_escapes(&content.text), name).map_err(|what| {
                    unparseable(match content.is_cut {
                        true if content.text.trim().is_empty() => {
                            format!("no whole word in the end of {name}, which alone is kept")
                        }
                        true => format!("{what}, of which only the end is kept"),
                        false => what,
                    })
                })?
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

    /// Whether this is the run time.
    pub(crate) fn is_time(&self) -> bool {
        self.source.0 == Kind::Time
    }
}

impl How {
    /// The value in a text that errors call `name`, without terminal sequences.
    fn find(&self, text: &str, name: &str) -> Result<f64, String> {
        let line = text.lines().rev().find(|line| !line.trim().is_empty());
        let line = line.ok_or_else(|| format!("nothing in {name}"))?;
        let last_line = || format!("the last line `{}` of {name}", end_of(line));
        match self {
            How::LastNumber => {
                let unclear = |what| {
                    let where_ = last_line();
                    format!(
                        "`{}` is not clearly one number; print the value like 1234.5 or 1.2e-3, or \
                         name it with json:PATH or regex:RE. It is on {where_}",
                        end_of(what)
                    )
                };
                let none = || format!("no number on {}", last_line());
                number::last(line).map_err(unclear)?.ok_or_else(none)
            }
            How::Json(path, steps) => {
                let none = || format!("no JSON with `{path}` before {}", last_line());
                let wrong = |what| format!("{what}, before {}", last_line());
                match steps.last_in(text).map_err(wrong)?.ok_or_else(none)? {
                    Value::String(text) => number::one(&text).ok_or(Value::String(text)),
                    other => Err(other),
                }
                .map_err(|other| {
                    let other = other.as_str().map_or_else(|| other.to_string(), str::to_string);
                    format!("`{}`, not clearly one number, at `{path}` in {name}", end_of(&other))
                })
            }
            How::Regex(regex) => {
                let none = || format!("no match of `{regex}` before {}", last_line());
                let found = regex.captures_iter(text).last().ok_or_else(none)?;
                let text = found.get(1).or(found.get(0)).map_or("", |group| group.as_str());
                let wrong = || {
                    let text = end_of(text);
                    format!("`{text}`, not clearly one number, as a match of `{regex}` in {name}")
                };
                number::one(text).ok_or_else(wrong)
            }
        }
    }
}

/// The end of a text that may be long.
fn end_of(text: &str) -> String {
    const SHOWN: usize = 80;
    match text.char_indices().rev().nth(SHOWN) {
        Some((at, c)) => format!("...{}", &text[at + c.len_utf8()..]),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::NamedPoint;
    use crate::process::Ending;
    use racecars::Space;
    use std::time::Duration;

    fn captured(text: &str) -> Captured {
        Captured { text: text.to_string(), is_cut: false }
    }

    fn find(source: &str, stdout: &str) -> Result<f64, Outcome> {
        let space = Space::cube(1, 0.0, 1.0).unwrap();
        let finished = Finished {
            ending: Ending::Exit(0),
            stdout: captured(stdout),
            stderr: captured("on stderr 7\n"),
            elapsed: Duration::from_millis(1500),
            is_paused: false,
        };
        let file = |_: &Text| Ok(captured(r#"{"loss": 0.125}"#));
        let names = Names { space: &space, fixed: &NamedPoint::default() };
        Finder::new(&source.parse().unwrap(), names).unwrap().value(&finished, file)
    }

    #[test]
    fn the_last_number_of_the_last_line() {
        assert_eq!(find("last", "1\nloss: 0.25 (epoch 7) 0.5\n\n  \n\u{1b}[0m\n"), Ok(0.5));
        for (text, kind, words) in [
            ("", FailureKind::Unparseable, "nothing in standard output"),
            ("1\ndone.", FailureKind::Unparseable, "no number on the last line `done.` of"),
            ("a 1,5", FailureKind::Unparseable, "`1,5` is not clearly one number; print"),
            (
                "a 1,5",
                FailureKind::Unparseable,
                "json:PATH or regex:RE. It is on the last line `a 1,5`",
            ),
            ("loss nan", FailureKind::Nan, "the value is NaN"),
            ("loss -inf", FailureKind::Nan, "the value is -inf"),
            ("1e999", FailureKind::Nan, "the value is inf"),
        ] {
            let Err(Outcome::Failed(failure)) = find("last", text) else {
                panic!("`{text}` gave a value")
            };
            assert_eq!(failure.kind, kind, "{text}");
            assert!(failure.reason.contains(words), "{}", failure.reason);
        }
    }

    #[test]
    fn json_regex_files_and_time() {
        let json = "log\n{\"a\": {\"b\": [1, 2.5]}, \"s\": \"nan\", \"t\": NaN, \"u\": \"1,5\", \"v\": null}";
        assert_eq!(find("json:a.b[1]", json), Ok(2.5));
        assert_eq!(find("json:$.a.b[-2]", json), Ok(1.0));
        assert_eq!(find("json:", "log\n2.5"), Ok(2.5));
        let error = |source, text| find(source, text).unwrap_err().to_string();
        assert!(error("json:s", json).contains("the value is NaN"));
        assert!(error("json:t", json).contains("the value is NaN"));
        assert!(error("json:u", json).contains("`1,5`, not clearly one number, at `u`"));
        assert!(error("json:v", json).contains("`null`, not clearly one number, at `v`"));
        let missing = error("json:loss", "{\"los\": 1}\nsaved\n");
        assert!(
            missing.contains("no JSON with `loss` before the last line `saved` of standard"),
            "{missing}"
        );
        assert_eq!(find(r"regex:loss=(\S+)", "loss=1 loss=2\nend"), Ok(2.0));
        assert_eq!(find(r"regex:loss=(\S+)", "loss=3, acc=1"), Ok(3.0));
        assert_eq!(find(r"regex:loss=(\S+)", "loss=\u{1b}[1m3\u{1b}[0m;"), Ok(3.0));
        assert_eq!(find(r"regex:\d+", "a1 b22"), Ok(22.0));
        assert!(error(r"regex:loss=(\S+)", "loss=1,5").contains("`1,5`, not clearly one number"));
        assert!(error(r"regex:loss=(\S+)", "none").contains("no match of `loss="));
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
            "json:runs[-1][\"a.b\"]",
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
        let fixed = NamedPoint::default();
        let names = Names { space: &space, fixed: &fixed };
        let finder = |text: &str| Finder::new(&text.parse()?, names);
        let error = |text| finder(text).unwrap_err().to_string();
        assert!(error("study.toml").contains("there are last, time, json:PATH"));
        assert!(error("json:a..b").contains("not a JSON path"));
        assert!(error("json:a[x]").contains("not a JSON path"));
        assert!(error("regex:(").contains("not a regular expression"));
        assert!(error("file:").contains("names no file"));
        assert!(error("file:{y}").contains("`{y}` in the path"));
    }
}
