//! Points that were evaluated before a study began: `{"params": {..}, "value": 1.5}`, or a row of a table.

mod table;

use crate::error::{Error, Result};
use crate::outcome::value_and_violation;
use crate::point::NamedPoint;
use crate::text::Names;
use racecars::{FailureKind, Outcome};
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A point whose outcome is known. As JSON it is `{"params": {..}, "value": 1.5}`, or instead of the value
/// (or beside it) `"infeasible": 0.5` with the violation, or `"failed": "why"`.
///
/// ```
/// use racecars_study::{Known, Outcome};
///
/// let known: Known = serde_json::from_str(r#"{"params": {"x": 1}, "value": 2.5}"#).unwrap();
/// assert_eq!(known.outcome, Outcome::from(2.5));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// The point.
    pub point: NamedPoint,
    /// Its outcome.
    pub outcome: Outcome,
}

/// The outcome that somebody tells: a value, a violation with or without a value, or a failure.
pub(crate) fn outcome(
    value: Option<f64>,
    infeasible: Option<f64>,
    failed: Option<&str>,
) -> Result<Outcome, &'static str> {
    match (value, infeasible, failed) {
        (None, None, Some(why)) => Ok(Outcome::failure(FailureKind::Reported, why)),
        (value, Some(infeasible), None) if infeasible > 0.0 && infeasible.is_finite() => {
            Ok(Outcome::Infeasible { violation: infeasible, value })
        }
        (Some(value), Some(0.0) | None, None) if value.is_finite() => Ok(Outcome::from(value)),
        _ => {
            Err("tell one of value (a finite number), infeasible (the violation, above 0, with or \
                  without a value) and failed (the reason, without a value)")
        }
    }
}

/// A violation that is given is a number: `null` may be an infinity that JSON could not hold.
pub(crate) fn violation<'de, D: Deserializer<'de>>(json: D) -> Result<Option<f64>, D::Error> {
    f64::deserialize(json).map(Some)
}

/// The JSON.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    params: NamedPoint,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "violation")]
    infeasible: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

impl Serialize for Known {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (value, infeasible) = value_and_violation(&self.outcome);
        let failed = self.outcome.as_failure().map(|failure| failure.reason.clone());
        Line { params: self.point.clone(), value, infeasible, failed }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Known {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Line { params, value, infeasible, failed } = Line::deserialize(deserializer)?;
        let outcome = outcome(value, infeasible, failed.as_deref());
        Ok(Known { point: params, outcome: outcome.map_err(serde::de::Error::custom)? })
    }
}

/// Known points as they are given: a file, which is a table or has a line of JSON for each, or the JSON of one.
#[derive(Debug, Clone, PartialEq)]
pub enum KnownPoints {
    /// The path of the file.
    File(PathBuf),
    /// The point.
    Point(Known),
}

impl KnownPoints {
    /// Reads them; a table has columns of these names.
    pub(crate) fn read(self, names: Names<'_>) -> Result<Vec<Known>> {
        let path = match self {
            KnownPoints::File(path) => path,
            KnownPoints::Point(known) => return Ok(vec![known]),
        };
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Error::system("read the known points", &path, error))?;
        if !text.trim_start().starts_with('{') {
            return table::read(&text, names)
                .map_err(|what| Error::setting(format!("known: {what}, in {}", path.display())));
        }
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let read = |(i, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| {
                let (number, path) = (i + 1, path.display());
                Error::setting(format!("known: line {number} of {path} is not a point: {error}"))
            })
        };
        lines.map(read).collect()
    }
}

impl FromStr for KnownPoints {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if !text.trim_start().starts_with('{') {
            return Ok(KnownPoints::File(text.into()));
        }
        serde_json::from_str(text)
            .map(KnownPoints::Point)
            .map_err(|error| Error::setting(format!("`{text}` is not a known point: {error}")))
    }
}

/// As it is read.
impl fmt::Display for KnownPoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KnownPoints::File(path) => write!(f, "{}", path.display()),
            KnownPoints::Point(known) => {
                f.write_str(&serde_json::to_string(known).map_err(|_| fmt::Error)?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_points_are_written_as_they_are_read() {
        for text in [
            r#"{"params":{"x":1,"m":"a"},"value":2.5}"#,
            r#"{"params":{"x":1},"infeasible":0.5}"#,
            r#"{"params":{"x":1},"value":1.0,"infeasible":0.5}"#,
            r#"{"params":{"x":1},"failed":"fell over"}"#,
            "points.jsonl",
        ] {
            assert_eq!(text.parse::<KnownPoints>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| text.parse::<KnownPoints>().unwrap_err().to_string();
        assert!(error("{").contains("is not a known point"));
        assert!(error(r#"{"value":1}"#).contains("missing field `params`"));
        assert!(error(r#"{"params":{"x":1}}"#).contains("tell one of value"));
        let null = r#"{"params":{"x":1},"value":1,"infeasible":null}"#;
        assert!(error(null).contains("invalid type: null, expected f64"));
        let misspelt = r#"{"params":{"x":1},"value":1,"infeasable":2}"#;
        assert!(error(misspelt).contains("unknown field `infeasable`"));
        assert!(
            error(r#"{"params":{"x":1},"value":1,"failed":"x"}"#).contains("tell one of value")
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points");
        let space = racecars::Space::builder().real("x", 0.0, 9.0).build().unwrap();
        let names = Names { space: &space, fixed: &NamedPoint::default() };
        let read = || KnownPoints::File(path.clone()).read(names);
        assert!(read().unwrap_err().to_string().contains("cannot read the known points"));
        std::fs::write(&path, "{\"params\":{\"x\":1},\"value\":1}\n\n{}\n").unwrap();
        assert!(read().unwrap_err().to_string().contains("line 3 of"));
    }
}
