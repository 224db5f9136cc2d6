//! The parameters of a trial, from JSON to an encoded point in one go. A journal of 100,000 trials of
//! 500 parameters has fifty million numbers, so nothing is stored in between.

use racecars::{Space, Value};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Encodes the parameters of an [`Ask`](crate::journal::Ask), or says why they are not a point of the space.
pub fn encode(space: &Space, params: &RawValue) -> serde_json::Result<Vec<f64>> {
    let mut json = serde_json::Deserializer::from_str(params.get());
    json.deserialize_map(Params(space))
}

struct Params<'a>(&'a Space);

impl<'de> Visitor<'de> for Params<'_> {
    type Value = Vec<f64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map from names to values")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Vec<f64>, M::Error> {
        let mut point = vec![f64::NAN; self.0.dimension()];
        while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            let entry = self.0.entry(&name).map_err(M::Error::custom)?;
            let (space, first) = (self.0, entry.range().start);
            let slots = &mut point[entry.range()];
            if entry.is_subset() {
                let items = map.next_value()?;
                entry.encode(&items, slots).map_err(M::Error::custom)?;
                continue;
            }
            match entry.array_len() {
                None => slots[0] = map.next_value_seed(Code { space, index: first })?,
                Some(_) => map.next_value_seed(Codes { space, first, slots })?,
            }
        }
        self.0.complete(point).map_err(M::Error::custom)
    }
}

/// The values of an array.
struct Codes<'a> {
    space: &'a Space,
    /// The index of the first.
    first: usize,
    slots: &'a mut [f64],
}

impl<'de> DeserializeSeed<'de> for Codes<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Codes<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an array of {} values", self.slots.len())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<(), S::Error> {
        let Codes { space, first, slots } = self;
        let count = slots.len();
        for (i, slot) in slots.iter_mut().enumerate() {
            *slot = (seq.next_element_seed(Code { space, index: first + i })?)
                .ok_or_else(|| S::Error::custom(format!("{i} values, not {count}")))?;
        }
        match seq.next_element::<serde::de::IgnoredAny>()? {
            Some(_) => Err(S::Error::custom(format!("more than {count} values"))),
            None => Ok(()),
        }
    }
}

/// One value, encoded.
struct Code<'a> {
    space: &'a Space,
    index: usize,
}

impl Code<'_> {
    fn of<E: Error>(&self, value: impl Into<Value>) -> Result<f64, E> {
        self.space.encode_coordinate(self.index, &value.into()).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Code<'_> {
    type Value = f64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<f64, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Code<'_> {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, true, false or a word")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<f64, E> {
        self.of(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<f64, E> {
        self.of(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<f64, E> {
        match i64::try_from(value) {
            Ok(value) => self.of(value),
            Err(_) => self.of(value as f64),
        }
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<f64, E> {
        self.of(value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<f64, E> {
        self.of(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_encoded_as_the_space_does_it() {
        let space = Space::builder()
            .log_real("rate", 1e-4, 1.0)
            .integers("n", 2, -3, 9)
            .categorical("mode", ["a", "b"])
            .boolean("fast")
            .build()
            .unwrap();
        let json = r#"{"fast":true,"rate":0.01,"n":[-3,9],"mode":"b"}"#;
        let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
        let assignments = [
            ("rate", 0.01.into()),
            ("n", vec![-3, 9].into()),
            ("mode", "b".into()),
            ("fast", true.into()),
        ];
        assert_eq!(encode(&space, &raw).unwrap(), space.encode(assignments).unwrap());
        for (wrong, why) in [
            (r#"{"rate":0.01}"#, "coordinate `n` is missing"),
            (r#"{"rate":2}"#, "2 is not a number from 0.0001 to 1"),
            (r#"{"n":[1]}"#, "1 values, not 2"),
            (r#"{"n":[1,2,3]}"#, "more than 2 values"),
            (r#"{"speed":1}"#, "no coordinate is named `speed`"),
        ] {
            let raw: Box<RawValue> = serde_json::from_str(wrong).unwrap();
            let message = encode(&space, &raw).unwrap_err().to_string();
            assert!(message.contains(why), "{message}");
        }
    }
}
