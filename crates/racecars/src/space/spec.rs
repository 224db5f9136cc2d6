//! The file format of a space in JSON and TOML: a list of flat tables, one per name.

use super::{Domain, Entry, Scale, Space, SpaceBuilder, Value};
use crate::error::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpaceSpec {
    coordinates: Vec<CoordinateSpec>,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct CoordinateSpec {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    low: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    high: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scale: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    levels: Option<Vec<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    choices: Option<Vec<Value>>,
    /// The length of an array; absent for a single coordinate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
}

impl CoordinateSpec {
    fn domain(&self) -> Result<Domain> {
        let domain = match self.kind.as_str() {
            "real" => Domain::Real {
                low: self.real("low", &self.low)?,
                high: self.real("high", &self.high)?,
                scale: self.scale()?,
            },
            "integer" => Domain::Integer {
                low: self.integer("low", &self.low)?,
                high: self.integer("high", &self.high)?,
                scale: self.scale()?,
            },
            "grid" => Domain::Grid {
                low: self.real("low", &self.low)?,
                high: self.real("high", &self.high)?,
                step: self.real("step", &self.step)?,
            },
            "levels" => Domain::Levels(self.present("levels", &self.levels)?.clone()),
            "categorical" => Domain::Categorical(self.present("choices", &self.choices)?.clone()),
            "boolean" => Domain::Boolean,
            other => {
                return Err(self.refuse(format!(
                    "type `{other}` is not one of real, integer, grid, levels, categorical, boolean"
                )));
            }
        };
        self.check_no_other_keys(&domain)?;
        Ok(domain)
    }

    /// Refuses keys that this type does not use, since they are mistakes.
    fn check_no_other_keys(&self, domain: &Domain) -> Result<()> {
        let allowed: &[&str] = match domain {
            Domain::Real { .. } | Domain::Integer { .. } => &["low", "high", "scale"],
            Domain::Grid { .. } => &["low", "high", "step"],
            Domain::Levels(_) => &["levels"],
            Domain::Categorical(_) => &["choices"],
            Domain::Boolean => &[],
        };
        let given = [
            ("low", self.low.is_some()),
            ("high", self.high.is_some()),
            ("scale", self.scale.is_some()),
            ("step", self.step.is_some()),
            ("levels", self.levels.is_some()),
            ("choices", self.choices.is_some()),
        ];
        for (key, is_given) in given {
            if is_given && !allowed.contains(&key) {
                let mut known = vec!["name", "type", "count"];
                known.extend(allowed);
                return Err(self.refuse(format!(
                    "`{key}` is not a key of type {}, which takes {}",
                    self.kind,
                    known.join(", ")
                )));
            }
        }
        Ok(())
    }

    fn refuse(&self, what: String) -> Error {
        Error::space(format!("coordinate `{}`: {what}", self.name))
    }

    fn present<'a, T>(&self, key: &str, field: &'a Option<T>) -> Result<&'a T> {
        let missing = || self.refuse(format!("`{key}` is missing; type {} requires it", self.kind));
        field.as_ref().ok_or_else(missing)
    }

    fn real(&self, key: &str, field: &Option<Value>) -> Result<f64> {
        let value = self.present(key, field)?;
        let wrong = || self.refuse(format!("`{key}` is {value}, not a number"));
        value.as_real().ok_or_else(wrong)
    }

    fn integer(&self, key: &str, field: &Option<Value>) -> Result<i64> {
        let value = self.present(key, field)?;
        let wrong = || self.refuse(format!("`{key}` is {value}, not an integer"));
        value.as_integer().ok_or_else(wrong)
    }

    fn scale(&self) -> Result<Scale> {
        match self.scale.as_deref() {
            None | Some("linear") => Ok(Scale::Linear),
            Some("log") => Ok(Scale::Log),
            Some(other) => Err(self.refuse(format!("scale `{other}` is not one of linear, log"))),
        }
    }

    fn new(entry: &Entry) -> CoordinateSpec {
        let domain = entry.domain();
        let mut spec = CoordinateSpec {
            name: entry.name().to_string(),
            kind: domain.kind().to_string(),
            count: entry.array_len(),
            ..CoordinateSpec::default()
        };
        let spelled = |scale: &Scale| (*scale == Scale::Log).then(|| "log".to_string());
        match domain {
            Domain::Real { low, high, scale } => {
                (spec.low, spec.high) = (Some((*low).into()), Some((*high).into()));
                spec.scale = spelled(scale);
            }
            Domain::Integer { low, high, scale } => {
                (spec.low, spec.high) = (Some((*low).into()), Some((*high).into()));
                spec.scale = spelled(scale);
            }
            Domain::Grid { low, high, step } => {
                (spec.low, spec.high) = (Some((*low).into()), Some((*high).into()));
                spec.step = Some((*step).into());
            }
            Domain::Levels(values) => spec.levels = Some(values.clone()),
            Domain::Categorical(values) => spec.choices = Some(values.clone()),
            Domain::Boolean => {}
        }
        spec
    }
}

impl Serialize for Space {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let coordinates = self.entries().iter().map(CoordinateSpec::new).collect();
        SpaceSpec { coordinates }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Space {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spec = SpaceSpec::deserialize(deserializer)?;
        let build = || {
            let mut builder = SpaceBuilder::default();
            for coordinate in &spec.coordinates {
                let (name, domain) = (coordinate.name.clone(), coordinate.domain()?);
                builder = match coordinate.count {
                    None => builder.coordinate(name, domain),
                    Some(count) => builder.array(name, count, domain),
                };
            }
            builder.build()
        };
        build().map_err(serde::de::Error::custom)
    }
}
