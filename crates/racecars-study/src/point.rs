//! Points as people write them: `x=1,mode=a,w=[1,2,3]`.

use crate::error::{Error, Result};
use crate::parameter::{of_parameters, read_value};
use crate::text::plain;
use racecars::{Domain, Space, Value, Values};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The values of a point by the names of its parameters, written `x=1,mode=a,w=[1,2,3]` or as a JSON object.
/// The journal has the JSON.
///
/// ```
/// use racecars_study::NamedPoint;
///
/// let point: NamedPoint = "x=1, mode=a, w=[1, 2]".parse()?;
/// assert_eq!(point.to_string(), "x=1,mode=a,w=[1,2]");
/// assert_eq!(r#"{"x": 1, "mode": "a", "w": [1, 2]}"#.parse(), Ok(point));
/// # Ok::<(), racecars_study::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NamedPoint {
    values: Vec<(String, Values)>,
}

impl NamedPoint {
    pub(crate) fn new(values: Vec<(String, Values)>) -> NamedPoint {
        NamedPoint { values }
    }

    /// Whether it has no values at all.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values under this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Values> {
        self.values.iter().find(|(other, _)| other == name).map(|(_, values)| values)
    }

    /// This point, and what it lacks as `other` has it.
    pub(crate) fn completed(mut self, other: &NamedPoint) -> NamedPoint {
        let missing = other.values.iter().filter(|(name, _)| self.get(name).is_none());
        let missing: Vec<_> = missing.cloned().collect();
        self.values.extend(missing);
        self
    }

    /// This point without the parameters that are fixed; an error if one of them has another value.
    pub(crate) fn without_fixed(&self, fixed: &NamedPoint) -> Result<NamedPoint> {
        let mut values = Vec::with_capacity(self.values.len());
        for (name, value) in &self.values {
            match fixed.get(name) {
                None => values.push((name.clone(), value.clone())),
                Some(ours) if plain(ours) == plain(value) || is_same_number(ours, value) => {}
                Some(ours) => {
                    return Err(Error::setting(format!(
                        "`{self}`: parameter `{name}` is fixed at {ours}"
                    )));
                }
            }
        }
        Ok(NamedPoint { values })
    }

    /// Names and values, in the order of the space once it is [of one](NamedPoint::of_space).
    pub fn values(&self) -> &[(String, Values)] {
        &self.values
    }

    /// The point of an encoded one.
    pub fn decode(space: &Space, point: &[f64]) -> NamedPoint {
        let values = space.view(point).assignments();
        NamedPoint { values: values.map(|(name, values)| (name.to_string(), values)).collect() }
    }

    /// The encoded point.
    pub fn encode(&self, space: &Space) -> Result<Vec<f64>> {
        let values = self.of_space(space)?.values;
        space.encode(values).map_err(of_parameters)
    }

    /// The same point with the parameters in the order of the space and values of their types: text that
    /// stands for a number or a boolean becomes one. Every parameter must be there once.
    pub fn of_space(&self, space: &Space) -> Result<NamedPoint> {
        let refuse = |what: String| Err(Error::setting(format!("`{self}`: {what}")));
        let is_named = |name: &str| space.entries().iter().any(|entry| entry.name() == name);
        if let Some((stranger, _)) = self.values.iter().find(|(name, _)| !is_named(name)) {
            let names: Vec<&str> =
                space.entries().iter().take(20).map(|entry| entry.name()).collect();
            let names = names.join(", ");
            return refuse(format!("`{stranger}` is no parameter; there are {names}"));
        }
        let mut values = Vec::with_capacity(space.entries().len());
        for entry in space.entries() {
            let (name, first) = (entry.name(), entry.range().start);
            let mut given = self.values.iter().filter(|(other, _)| other == name);
            let first_given = given.next();
            if let (Some((_, Values::Many(items))), true, None) =
                (first_given, entry.is_subset(), given.clone().next())
            {
                values.push((name.to_string(), Values::Many(items.clone())));
                continue;
            }
            let of_entry = match (first_given, given.next(), entry.array_len()) {
                // Missing where it is inactive: the space says if it is not.
                (None, ..) if entry.condition().is_some() => continue,
                (Some((_, Values::One(value))), None, None) => {
                    Values::One(typed(space, entry.domain(), first, value)?)
                }
                (Some((_, Values::Many(many))), None, Some(count)) if many.len() == count => {
                    let values = many.iter().enumerate();
                    let values =
                        values.map(|(i, value)| typed(space, entry.domain(), first + i, value));
                    Values::Many(values.collect::<Result<_>>()?)
                }
                (None, ..) => return refuse(format!("parameter `{name}` is missing")),
                (_, Some(_), _) => return refuse(format!("parameter `{name}` is given twice")),
                (_, _, None) => return refuse(format!("parameter `{name}` takes one value")),
                (_, _, Some(count)) => {
                    return refuse(format!("parameter `{name}` is an array of {count}"));
                }
            };
            values.push((name.to_string(), of_entry));
        }
        if !space.has_rules() {
            return Ok(NamedPoint { values });
        }
        // Without what is inactive, and checked.
        let point = space.encode(values.clone());
        let point = match point.map_err(of_parameters) {
            Ok(point) => point,
            Err(error) => return refuse(error.to_string()),
        };
        let active = space.active(&point);
        let is_active = |name: &str| {
            let mut entries = space.entries().iter().zip(&active);
            entries.any(|(entry, is_active)| *is_active && entry.name() == name)
        };
        values.retain(|(name, _)| is_active(name));
        Ok(NamedPoint { values })
    }
}

/// Whether both are one number, written differently: 5 and 5.0.
fn is_same_number(a: &Values, b: &Values) -> bool {
    let number = |values: &Values| match values {
        Values::One(value) => value.as_real().or_else(|| plain(values).parse().ok()),
        Values::Many(_) => None,
    };
    number(a).is_some_and(|a| number(b) == Some(a))
}

/// A value as the coordinate with this index has it.
fn typed(space: &Space, domain: &Domain, index: usize, value: &Value) -> Result<Value> {
    let mut readings = vec![value.clone()];
    if let Value::Text(text) = value {
        readings.insert(0, read_value(text));
        readings.extend(text.parse::<bool>().map(Value::Boolean));
        readings.extend(text.parse::<f64>().map(Value::Real));
    }
    let read = |reading: &Value| {
        let code = space.encode_coordinate(index, reading)?;
        Ok(match (domain, reading.as_real()) {
            // Not by its code, which on a log scale would round it.
            (Domain::Real { .. }, Some(number)) => Value::Real(number),
            _ => space.decode_coordinate(index, code),
        })
    };
    let refused = match read(&readings[0]) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let other = readings[1..].iter().find_map(|reading| read(reading).ok());
    other.ok_or_else(|| of_parameters(refused))
}

impl FromStr for NamedPoint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.trim_start().starts_with('{') {
            return serde_json::from_str(text)
                .map_err(|error| Error::setting(format!("`{text}` is not a point: {error}")));
        }
        let mut values = Vec::new();
        for part in split_outside_brackets(text) {
            let (name, value) = part.split_once('=').ok_or_else(|| {
                Error::setting(format!(
                    "`{part}` in the point `{text}` is not NAME=VALUE; a point is written like \
                     x=1,mode=a,w=[1,2,3]"
                ))
            })?;
            let value = value.trim();
            let values_of = |inner: &str| inner.split(',').map(read_value).collect();
            let value = match value.strip_prefix('[').and_then(|value| value.strip_suffix(']')) {
                Some(inner) if inner.trim().is_empty() => Values::Many(Vec::new()),
                Some(inner) => Values::Many(values_of(inner)),
                None => Values::One(read_value(value)),
            };
            values.push((name.trim().to_string(), value));
        }
        Ok(NamedPoint { values })
    }
}

/// Splits at the commas that are not within brackets.
fn split_outside_brackets(text: &str) -> Vec<&str> {
    let mut depth = 0i32;
    text.split(|letter: char| {
        depth += i32::from(letter == '[') - i32::from(letter == ']');
        letter == ',' && depth == 0
    })
    .collect()
}

/// As it is read; as JSON where a value has a comma or a bracket.
impl fmt::Display for NamedPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |value: &Value| match value {
            Value::Text(text) => {
                !text.is_empty() && text.trim() == text && !text.contains([',', '[', ']', '{'])
            }
            _ => true,
        };
        let all = |values: &Values| match values {
            Values::One(value) => is_plain(value),
            Values::Many(values) => values.iter().all(is_plain),
        };
        if self.values.is_empty() || !self.values.iter().all(|(_, values)| all(values)) {
            return f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?);
        }
        for (i, (name, values)) in self.values.iter().enumerate() {
            write!(f, "{}{name}=", if i > 0 { "," } else { "" })?;
            match values {
                Values::One(_) => f.write_str(&plain(values))?,
                Values::Many(_) => write!(f, "[{}]", plain(values))?,
            }
        }
        Ok(())
    }
}

impl Serialize for NamedPoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.values.iter().map(|(name, values)| (name, values)))
    }
}

impl<'de> Deserialize<'de> for NamedPoint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = NamedPoint;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map from the names of parameters to values")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<NamedPoint, M::Error> {
                let mut values = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    values.push(entry);
                }
                Ok(NamedPoint { values })
            }
        }
        deserializer.deserialize_map(Names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> Space {
        Space::builder()
            .log_real("rate", 1e-4, 1.0)
            .integers("n", 2, -3, 9)
            .levels("size", ["a,b", "c"])
            .categorical("k", [Value::Integer(1), "007".into()])
            .boolean("fast")
            .build()
            .unwrap()
    }

    #[test]
    fn points_take_the_types_of_their_space_and_are_written_as_they_are_read() {
        let point: NamedPoint = "rate=1e-02, fast=true, n=[-3,7], k=007, size=c".parse().unwrap();
        let typed = point.of_space(&space()).unwrap();
        assert_eq!(typed.to_string(), "rate=0.01,n=[-3,7],size=c,k=007,fast=true");
        let json = r#"{"rate":0.01,"n":[-3,7],"size":"c","k":"007","fast":true}"#;
        assert_eq!(serde_json::to_string(&typed).unwrap(), json);
        let read = |text: &str| text.parse::<NamedPoint>().unwrap().of_space(&space()).unwrap();
        assert_eq!((read(&typed.to_string()), read(json)), (typed.clone(), typed.clone()));
        let encoded = typed.encode(&space()).unwrap();
        assert_eq!(encoded[1..], [0.0, 10.0, 1.0, 1.0, 1.0]);
        let comma = read(r#"{"rate":1,"n":[0,0],"size":"a,b","k":1,"fast":false}"#);
        assert!(comma.to_string().starts_with(r#"{"rate":1.0,"#));
        assert_eq!(read(&comma.to_string()), comma);
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| {
            let point = text.parse::<NamedPoint>();
            point.and_then(|point| point.encode(&space())).unwrap_err().to_string()
        };
        assert!(error("rate").contains("`rate` in the point `rate` is not NAME=VALUE"));
        assert!(error("{").contains("is not a point: "));
        assert!(error("speed=1").contains("`speed` is no parameter; there are rate, n, size"));
        assert!(error("rate=1").ends_with("parameter `n` is missing"));
        assert!(error("rate=1,rate=1").ends_with("parameter `rate` is given twice"));
        assert!(error("rate=1,n=3").ends_with("parameter `n` is an array of 2"));
        assert!(error("rate=[1]").ends_with("parameter `rate` takes one value"));
        assert_eq!(error("rate=2"), "parameter `rate`: 2 is not a number from 0.0001 to 1");
        assert!(error("rate=fast").contains("fast is not a number from"));
    }
}
