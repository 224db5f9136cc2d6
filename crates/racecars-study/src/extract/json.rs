//! JSON among other output, as programs write it: after log lines, over several lines, followed by text,
//! and with NaN and infinities in it.

use super::number;
use crate::error::{Error, Result};
use serde_json::Value;

/// The deepest nesting that is read.
const MAX_DEPTH: usize = 100;

/// A path such as `a.b[2]`, `runs[-1].loss` or `["a.b"]`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Path(Vec<Step>);

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Key(String),
    /// From the end if negative.
    Index(i64),
}

impl Path {
    /// Reads a path; a `$` in front is allowed.
    pub(super) fn parse(text: &str) -> Result<Path> {
        let wrong = || {
            Error::setting(format!(
                "`{text}` is not a JSON path such as loss, results.loss, runs[0].loss, runs[-1].loss \
                 or [\"key.with.dots\"]"
            ))
        };
        let mut steps = Vec::new();
        let mut rest = text.strip_prefix('$').unwrap_or(text);
        rest = rest.strip_prefix('.').unwrap_or(rest);
        while !rest.is_empty() {
            if let Some(inner) = rest.strip_prefix('[') {
                let quote = inner.chars().next().filter(|c| matches!(c, '"' | '\''));
                let (step, after) = match quote {
                    Some(quote) => {
                        let end = format!("{quote}]");
                        let (key, after) = inner[1..].split_once(&end).ok_or_else(wrong)?;
                        (Step::Key(key.to_string()), after)
                    }
                    None => {
                        let (index, after) = inner.split_once(']').ok_or_else(wrong)?;
                        (Step::Index(index.parse().map_err(|_| wrong())?), after)
                    }
                };
                steps.push(step);
                rest = after;
            } else {
                let (key, after) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
                if key.is_empty() {
                    return Err(wrong());
                }
                steps.push(Step::Key(key.to_string()));
                rest = after;
            }
            match rest.strip_prefix('.') {
                Some("") => return Err(wrong()),
                Some(after) => rest = after,
                None if rest.is_empty() || rest.starts_with('[') => {}
                None => return Err(wrong()),
            }
        }
        Ok(Path(steps))
    }

    fn find<'a>(&self, json: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(json, |json, step| match step {
            Step::Key(key) => json.get(key),
            Step::Index(index) => {
                let count = i64::try_from(json.as_array()?.len()).ok()?;
                let index = if *index < 0 { index.checked_add(count)? } else { *index };
                json.get(usize::try_from(index).ok()?)
            }
        })
    }

    /// What is at this path in the last complete object or array of `text` that has it; numbers are
    /// texts. An object behind it that is not complete may have been meant, so it is an error.
    pub(super) fn last_in(&self, text: &str) -> Result<Option<Value>, String> {
        if self.0.is_empty() {
            let line = text.lines().rev().find(|line| !line.trim().is_empty());
            return Ok(line.map(|line| Value::String(line.trim().to_string())));
        }
        let bytes = text.as_bytes();
        let next = |from: usize| {
            let place = bytes[from..].iter().position(|byte| matches!(byte, b'{' | b'['));
            place.map(|place| from + place)
        };
        let line_after = |from: usize, skips_indented: bool| {
            let mut at = from;
            loop {
                at += bytes[at..].iter().position(|&byte| byte == b'\n')? + 1;
                if !skips_indented || matches!(bytes.get(at), Some(b'{' | b'[')) {
                    return Some(at);
                }
            }
        };
        let (mut found, mut broken) = (None, None);
        let mut from = Some(0);
        while let Some(open) = from.and_then(next) {
            let inner = text[open + 1..].trim_start();
            let is_object = bytes[open] == b'{' && inner.starts_with(['"', '}']);
            let extent = extent(&bytes[open..]);
            if is_object && !matches!(extent, Extent::Closed(_)) {
                broken = Some(open);
            }
            from = match extent {
                Extent::Closed(length) => {
                    let end = open + length;
                    // What stands in a larger one, of which the beginning was lost, is not it.
                    let is_part = text[end..].trim_start().starts_with([',', ']', '}']);
                    match serde_json::from_str(&with_numbers_quoted(&text[open..end])) {
                        Ok(json) if !is_part => {
                            if let Some(value) = self.find(&json) {
                                (found, broken) = (Some(value.clone()), None);
                            }
                        }
                        Ok(_) => {}
                        Err(_) if is_object => broken = Some(open),
                        Err(_) => {}
                    }
                    Some(end)
                }
                Extent::Open if is_object => None,
                Extent::Open => line_after(open, false),
                // Lines within an object are indented, as a rule.
                Extent::Broken(at) => line_after(open + at, is_object),
            };
        }
        match broken {
            None => Ok(found),
            Some(at) => {
                let line = 1 + bytes[..at].iter().filter(|&&byte| byte == b'\n').count();
                Err(format!("the JSON that begins on line {line} is broken or not complete"))
            }
        }
    }
}

/// How far an object or array reaches.
enum Extent {
    Closed(usize),
    /// It is not JSON from here on.
    Broken(usize),
    /// The text ends before it.
    Open,
}

fn extent(bytes: &[u8]) -> Extent {
    let mut closing = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let mut length = 1;
        match byte {
            b'{' => closing.push(b'}'),
            b'[' => closing.push(b']'),
            b'}' | b']' if closing.pop() != Some(byte) => return Extent::Broken(at),
            b'}' | b']' if closing.is_empty() => return Extent::Closed(at + 1),
            b'\\' => return Extent::Broken(at),
            b'"' => match string(&bytes[at..]) {
                Some(characters) => length = characters,
                None => return Extent::Broken(at),
            },
            _ => {}
        }
        if closing.len() > MAX_DEPTH {
            return Extent::Broken(at);
        }
        at += length;
    }
    Extent::Open
}

/// The length of the string that begins here; it ends on its line.
fn string(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            0..=0x1f => return None,
            _ => at += 1,
        }
    }
}

/// JSON with its numbers as texts, so that there is one way to read a number, and that NaN and the like,
/// which JSON has not, do no harm.
fn with_numbers_quoted(json: &str) -> String {
    let mut quoted = String::with_capacity(json.len() + json.len() / 2);
    let mut rest = json;
    while let Some(c) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || "+-._#\u{2212}".contains(c);
        let (piece, after) = match c {
            '"' => rest.split_at(string(rest.as_bytes()).unwrap_or(rest.len())),
            c if is_word(c) => rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len())),
            c => rest.split_at(c.len_utf8()),
        };
        let is_number = is_word(c)
            && (number::one(piece).is_some()
                || piece.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit()));
        if is_number {
            quoted.extend(["\"", piece, "\""]);
        } else {
            quoted.push_str(piece);
        }
        rest = after;
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn find(path: &str, text: &str) -> Result<Option<String>, String> {
        let value = Path::parse(path).unwrap().last_in(text)?;
        Ok(value.map(|value| value.as_str().map_or(value.to_string(), str::to_string)))
    }

    #[test]
    fn json_is_found_wherever_it_stands() {
        let cases = [
            ("loss", "{\"loss\": 0.5}"),
            ("loss", "log\nmore [1, 2\n{\"loss\": 0.5}\n"),
            ("loss", "{\n  \"a\": {\"loss\": 7},\n  \"loss\": 0.5\n}\n"),
            ("loss", "[INFO] [12:03] it's {x} {\"loss\": 0.5} done in 3 s"),
            ("loss", "{\"loss\": 1}\n{\"loss\": 0.5}\n{\"other\": 2}"),
            ("loss", "{\"loss\": 0.5, \"bad\": NaN, \"worse\": [-Infinity, nan, 1e999]}"),
            ("loss", "{\"text\": \"NaN } ] \\\" {\", \"loss\": 0.5}"),
            ("loss", "{\"a\": oops}\n{\"loss\": 0.5}"),
            ("loss", "progress [====>  \"x\n  {\"loss\": 0.5}"),
            ("loss", "{'loss': 1}\n{\"loss\": 0.5}"),
            ("[1]", "[1,\n 0.5]"),
            ("[-1]", "[1, 0.5]"),
            ("runs[-2].loss", "{\"runs\": [{\"loss\": 0.5}, {\"loss\": 1}]}"),
            ("[\"a.b\"].c", "{\"a.b\": {\"c\": 0.5}}"),
            ("x['a]\"b'][0]", "{\"x\": {\"a]\\\"b\": [0.5]}}"),
            ("$.a.b", "{\"a\": {\"b\": 0.5}}"),
            ("", "log\n0.5\n"),
            ("loss", "{\"loss\": 1, \"loss\": 0.5}"),
        ];
        for (path, text) in cases {
            assert_eq!(find(path, text), Ok(Some("0.5".to_string())), "{text}");
        }
    }

    #[test]
    fn parts_and_broken_ones_are_not_taken_for_it() {
        for text in [
            "",
            "no JSON",
            "{\"a\": {\"loss\": 1}}",
            "{\"other\": 1}",
            "  {\"loss\": 1},\n  {\"loss\": 2}\n], \"a\": 3}",
            "[{\"loss\": 1}, {\"loss\": 2}]",
            "\"loss\": 1}",
        ] {
            assert_eq!(find("loss", text), Ok(None), "{text}");
        }
        for text in [
            "{\"best\": {\"loss\": 1}, \"loss\": 0.5",
            "x\n{\"a\": [1,\n{\"loss\": 0.5}",
            "{\"loss\": 1}\n{\"best\": {\"loss\": 1}, \"lo",
            "log\n{\"best\": {\"loss\": 1}, \"b\": oops}",
            "{\"best\": {\"loss\": 1}], \"loss\": 2}",
        ] {
            let line = 1 + usize::from(text.contains('\n'));
            let error = find("loss", text).unwrap_err();
            assert!(error.contains(&format!("line {line} is broken")), "{text}: {error}");
        }
        for path in ["a..b", "a[x]", "a[", "[\"a\"", "a.", "a[0]b"] {
            assert!(Path::parse(path).is_err(), "{path}");
        }
    }

    /// None of these takes time that grows with the square of its length, or much of the stack.
    #[test]
    fn hostile_output_is_read_in_time() {
        for unit in [
            "{",
            "[",
            "[\n",
            "{\"a\":",
            "{\"a\":\n",
            "[\"",
            "\" [ \\\" \"\n",
            "}",
            "[1,\n",
            "{\"a\"\n",
        ] {
            let text = unit.repeat((1 << 20) / unit.len());
            assert!(!matches!(find("a", &text), Ok(Some(_))), "{unit:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_not(text in "[\\[\\]{}\",:\\\\a1 \n]{0,60}") {
            let _ = find("a", &text);
        }

        #[test]
        fn numbers_are_read_as_they_were_written(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let json = serde_json::json!({"a": [value, "x"]}).to_string();
            let text = find("a[0]", &format!("log {json} end")).unwrap().unwrap();
            prop_assert_eq!(number::one(&text).map(f64::to_bits), Some(bits));
        }
    }
}
