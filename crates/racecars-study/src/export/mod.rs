//! Exports of a study: as a table, as JSON, and as a journal that Optuna opens. The study's journal is
//! read once and written on as it is read, so size does not matter.

mod optuna;
mod table;

pub(crate) use table::ITEMS;

use crate::journal::{Event, Tell};
use crate::outcome::Outcome;
use crate::settings::value::choices;
use crate::trace::{Reader, not_begun};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

/// What a study is exported to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table, one row per trial, one column per parameter.
    Csv,
    /// One JSON document.
    Json,
    /// A file for Optuna's `JournalStorage`.
    Optuna,
}

choices!(Format { Csv => "csv", Json => "json", Optuna => "optuna" });

/// What was exported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exported {
    /// How many trials.
    pub trials: u64,
    /// The numbers of the journal's lines that could not be read.
    pub damaged: Vec<u64>,
}

/// Exports the study in a folder.
pub fn export(folder: &Path, format: Format, out: &mut dyn Write) -> io::Result<Exported> {
    let mut reader = Reader::open(folder)?.ok_or_else(|| not_begun(folder))?;
    let trials = match format {
        Format::Csv => table::write(&mut reader, out)?,
        Format::Json => write_json(&mut reader, out)?,
        Format::Optuna => optuna::write(&mut reader, &crate::report::name(folder), out)?,
    };
    out.flush()?;
    Ok(Exported { trials, damaged: reader.damaged().to_vec() })
}

/// A trial with everything that the journal says of it.
struct TrialRow {
    trial: u64,
    params: Box<RawValue>,
    asked: u64,
    /// `None` while it runs.
    end: Option<Tell>,
}

impl TrialRow {
    /// How it came out, in a word.
    fn state(&self) -> &'static str {
        match self.end.as_ref().map(|end| &end.outcome) {
            None => "running",
            Some(Outcome::Failed(failure)) => failure.kind.name(),
            Some(outcome) if outcome.violation().is_some() => "infeasible",
            Some(_) => "value",
        }
    }
}

/// Hands over every trial once: as it ends, and at last those that have not ended.
fn each_trial(
    reader: &mut Reader,
    mut take: impl FnMut(&TrialRow) -> io::Result<()>,
) -> io::Result<u64> {
    let mut running: HashMap<u64, TrialRow> = HashMap::new();
    let mut count = 0;
    reader.read(|event| {
        match event {
            Event::Ask(ask) => {
                let (trial, params) = (ask.trial, ask.params.to_owned());
                running.insert(trial, TrialRow { trial, params, asked: ask.at, end: None });
            }
            Event::Tell(tell) => {
                if let Some(mut found) = running.remove(&tell.trial) {
                    found.end = Some(tell);
                    take(&found)?;
                    count += 1;
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    let mut rest: Vec<TrialRow> = running.into_values().collect();
    rest.sort_by_key(|trial| trial.trial);
    for trial in &rest {
        take(trial)?;
        count += 1;
    }
    Ok(count)
}

/// One document: what the study is, and its trials in the order in which they ended.
fn write_json(reader: &mut Reader, out: &mut dyn Write) -> io::Result<u64> {
    write!(out, "{{\"study\":{},\n\"trials\":[", reader.header())?;
    let fixed = serde_json::to_string(&reader.plan().fixed)?;
    let mut gap = "\n";
    let count = each_trial(reader, |trial| {
        let mut row = json!({ "trial": trial.trial, "state": trial.state(), "asked": trial.asked });
        if let Some(end) = &trial.end {
            row["ended"] = json!(end.at);
            row["seconds"] = json!(end.seconds);
            row["worker"] = json!(end.worker);
            row["attempts"] = json!(end.attempts);
            match &end.outcome {
                Outcome::Value(value) => row["value"] = json!(value),
                Outcome::Infeasible { violation, value } => {
                    row["violation"] = json!(violation);
                    row["value"] = json!(value);
                }
                Outcome::Measured(measured) => {
                    if let Some(violation) = end.outcome.violation() {
                        row["violation"] = json!(violation);
                    }
                    row["value"] = json!(measured.value);
                    row["constraints"] = json!(measured.constraints);
                }
                Outcome::Failed(failure) => row["detail"] = json!(failure.reason),
            }
            if let Some(stderr) = &end.stderr {
                row["stderr"] = Value::from(stderr.as_str());
            }
        }
        let row = row.to_string();
        // The parameters as the journal has them, to the digit, and those that are fixed.
        let open = row.strip_suffix('}').unwrap_or(&row);
        let params = match (trial.params.get().strip_suffix('}'), fixed.as_str()) {
            (Some(params), fixed) if fixed != "{}" => format!("{params},{}", &fixed[1..]),
            _ => trial.params.get().to_string(),
        };
        write!(out, "{gap}{open},\"params\":{params}}}")?;
        gap = ",\n";
        Ok(())
    })?;
    writeln!(out, "\n]}}")?;
    Ok(count)
}

/// A moment in UTC, as ISO 8601 writes it: `2026-11-15T22:30:00.123000+00:00`.
fn moment(milliseconds: u64) -> String {
    let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000);
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March have their leap day at the end; 719,468 days before 1970 one era of
    // 400 years began. (Hinnant, chrono-compatible low-level date algorithms.)
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day + 2) / 153;
    let day = day - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{rest:03}000+00:00")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01T00:00:00.000000+00:00"),
            (951_782_399_999, "2000-02-28T23:59:59.999000+00:00"),
            (951_782_400_000, "2000-02-29T00:00:00.000000+00:00"),
            (1_790_000_000_000, "2026-09-21T14:13:20.000000+00:00"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000000+00:00"),
        ];
        for (milliseconds, text) in cases {
            assert_eq!(moment(milliseconds), text);
        }
    }
}
