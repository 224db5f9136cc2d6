//! The table: comma-separated values, one row per trial, quoted as RFC 4180 says.
//!
//! Spreadsheets take a cell that begins with `=`, `+`, `-` or `@` for a formula, though what programs and
//! study files write is none. An apostrophe before such a text makes it one for them.

use super::{TrialRow, each_trial, moment};
use crate::outcome::value_and_violation;
use crate::trace::Reader;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::io::{self, Write};

/// Stands between the items of a subset.
pub(crate) const ITEMS: &str = ";";

const COLUMNS: &str = "trial,state,value,violation,detail,attempts,seconds,worker,asked,ended";

/// Writes the table; the parameters come last.
pub(super) fn write(reader: &mut Reader, out: &mut dyn Write) -> io::Result<u64> {
    let space = reader.space().clone();
    write!(out, "{COLUMNS}")?;
    for entry in space.entries() {
        if entry.is_subset() {
            // The items in one column.
            write!(out, ",{}", quoted(entry.name()))?;
        } else {
            let mut names = entry.range().map(|i| space.coordinate_name(i));
            names.try_for_each(|name| write!(out, ",{}", quoted(&name)))?;
        }
    }
    let fixed = reader.plan().fixed.clone();
    for (name, _) in fixed.values() {
        write!(out, ",{}", quoted(name))?;
    }
    writeln!(out)?;
    each_trial(reader, |trial| {
        write_outcome(trial, out)?;
        let params: Map<String, Value> = serde_json::from_str(trial.params.get())?;
        for entry in space.entries() {
            match params.get(entry.name()) {
                Some(Value::Array(items)) if entry.is_subset() => {
                    let items: Vec<String> = items.iter().map(plain).collect();
                    write!(out, ",{}", quoted(&items.join(ITEMS)))?;
                }
                None if entry.is_subset() => write!(out, ",")?,
                Some(Value::Array(values)) => {
                    values.iter().try_for_each(|value| write!(out, ",{}", cell(value)))?;
                }
                Some(value) => write!(out, ",{}", cell(value))?,
                None => entry.range().try_for_each(|_| write!(out, ","))?,
            }
        }
        for (_, values) in fixed.values() {
            write!(out, ",{}", cell(&serde_json::to_value(values)?))?;
        }
        writeln!(out)
    })
}

fn write_outcome(trial: &TrialRow, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{},{},", trial.trial, quoted(trial.state()))?;
    let asked = moment(trial.asked);
    let Some(end) = &trial.end else {
        return write!(out, ",,,,,,{asked},");
    };
    let (value, violation) = value_and_violation(&end.outcome);
    for number in [value, violation] {
        write!(out, "{},", number.map_or(String::new(), |number| number.to_string()))?;
    }
    let detail = end.outcome.as_failure().map_or("", |failure| &failure.reason);
    let ended = moment(end.at);
    let (attempts, seconds, worker) = (end.attempts, end.seconds, end.worker);
    write!(out, "{},{attempts},{seconds},{worker},{asked},{ended}", quoted(detail))
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text).into_owned(),
        other => other.to_string(),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A text as a cell. Texts that begin with an apostrophe get another one, so that a program has every text
/// back by taking one off.
fn quoted(text: &str) -> Cow<'_, str> {
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
    let text = match text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '\'']) && !is_number {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    };
    match text.contains([',', '"', '\n', '\r']) {
        true => Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))),
        false => text,
    }
}
