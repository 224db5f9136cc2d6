//! The file format of a space in JSON and TOML: a list of flat tables, one per name.

use super::{Domain, Entry, Scale, Space, SpaceBuilder, Structure, Value};
use crate::error::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpaceSpec {
    coordinates: Vec<CoordinateSpec>,
    /// The constraints.
    #[serde(default, rename = "where", skip_serializing_if = "Vec::is_empty")]
    constraints: Vec<String>,
    /// The names of constraints that are functions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    functions: Vec<String>,
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
    /// The items of a permutation or a subset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    items: Option<Vec<Value>>,
    /// The number of items of a subset, at least and at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    least: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    most: Option<usize>,
    /// The condition.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    condition: Option<String>,
}

impl CoordinateSpec {
    fn add_to(&self, builder: SpaceBuilder) -> Result<SpaceBuilder> {
        let name = &self.name;
        match self.kind.as_str() {
            "permutation" => {
                self.check_keys(&["items"])?;
                Ok(builder.order_of(name, self.present("items", &self.items)?.clone()))
            }
            "subset" => {
                self.check_keys(&["items", "least", "most"])?;
                let items = self.present("items", &self.items)?.clone();
                let (least, most) = (self.least.unwrap_or(0), self.most.unwrap_or(items.len()));
                Ok(builder.subset(name, least..=most, items))
            }
            "simplex" => {
                self.check_keys(&["count"])?;
                Ok(builder.simplex(name, *self.present("count", &self.count)?))
            }
            _ => Ok(match self.count {
                None => builder.coordinate(name, self.domain()?),
                Some(count) => builder.array(name, count, self.domain()?),
            }),
        }
    }

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
                    "type `{other}` is not one of real, integer, grid, levels, categorical, boolean, \
                     permutation, subset, simplex"
                )));
            }
        };
        self.check_no_other_keys(&domain)?;
        Ok(domain)
    }

    /// Refuses keys that this type does not use, since they are mistakes.
    fn check_no_other_keys(&self, domain: &Domain) -> Result<()> {
        let allowed: &[&str] = match domain {
            Domain::Real { .. } | Domain::Integer { .. } => &["count", "low", "high", "scale"],
            Domain::Grid { .. } => &["count", "low", "high", "step"],
            Domain::Levels(_) => &["count", "levels"],
            Domain::Categorical(_) => &["count", "choices"],
            Domain::Boolean => &["count"],
        };
        self.check_keys(allowed)
    }

    fn check_keys(&self, allowed: &[&str]) -> Result<()> {
        let given = [
            ("low", self.low.is_some()),
            ("high", self.high.is_some()),
            ("scale", self.scale.is_some()),
            ("step", self.step.is_some()),
            ("levels", self.levels.is_some()),
            ("choices", self.choices.is_some()),
            ("count", self.count.is_some()),
            ("items", self.items.is_some()),
            ("least", self.least.is_some()),
            ("most", self.most.is_some()),
        ];
        let is_wrong = |(key, is_given): &&(&str, bool)| *is_given && !allowed.contains(key);
        let Some((key, _)) = given.iter().find(is_wrong) else { return Ok(()) };
        Err(self.refuse(format!(
            "`{key}` is not a key of type {}, which takes name, type, {}, if",
            self.kind,
            allowed.join(", ")
        )))
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
            condition: entry.condition().map(str::to_string),
            ..CoordinateSpec::default()
        };
        if let Some(structure) = entry.structure() {
            return spec.with_structure(structure, domain);
        }
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

    fn with_structure(self, structure: &Structure, domain: &Domain) -> CoordinateSpec {
        let (kind, count) = (structure.kind().to_string(), None);
        match (structure, domain) {
            (Structure::Subset { items, least, most }, _) => {
                let (least, most) = (Some(*least), Some(*most));
                CoordinateSpec { kind, count, items: Some(items.clone()), least, most, ..self }
            }
            (Structure::Permutation, Domain::Categorical(items)) => {
                CoordinateSpec { kind, count, items: Some(items.clone()), ..self }
            }
            (Structure::Permutation | Structure::Simplex, _) => CoordinateSpec { kind, ..self },
        }
    }
}

impl Serialize for Space {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let coordinates = self.entries().iter().map(CoordinateSpec::new).collect();
        let constraints = self.constraints().map(str::to_string).collect();
        let functions = self.functions().map(str::to_string).collect();
        SpaceSpec { coordinates, constraints, functions }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Space {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spec = SpaceSpec::deserialize(deserializer)?;
        let build = || {
            let mut builder = SpaceBuilder::default();
            for coordinate in &spec.coordinates {
                builder = coordinate.add_to(builder)?;
                if let Some(condition) = &coordinate.condition {
                    builder = builder.when(condition);
                }
            }
            let builder = spec.constraints.iter().fold(builder, SpaceBuilder::subject_to);
            let names = spec.functions.iter();
            names.fold(builder, |builder, name| builder.subject_to_named(name)).build()
        };
        build().map_err(serde::de::Error::custom)
    }
}
