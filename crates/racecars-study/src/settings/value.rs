//! The types that settings have, and their texts: a flag, a key of the study file, a key of the journal and
//! the command that repeats a study all read and write the same ones.

use crate::command::{TemplateFile, Variable};
use crate::extract::Source;
use crate::known::KnownPoints;
use crate::parameter::Parameter;
use crate::point::NamedPoint;
use crate::units::{Memory, Time};
use racecars::{Algorithm, Budget, Noise};
use serde::de::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};

/// What a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Takes {
    /// Nothing: it is given or not.
    Nothing,
    /// One value.
    One,
    /// A value each time that it is given.
    Many,
}

/// A type with a text.
pub(crate) trait TextValue: Sized {
    /// The texts that there are, where they can be listed.
    const CHOICES: &'static [&'static str] = &[];

    /// Reads its text; the error quotes it and says what is allowed.
    fn parse(text: &str) -> Result<Self, String>;

    fn text(&self) -> String;

    /// Makes a path that is relative one within this folder.
    fn relative_to(&mut self, _folder: &Path) {}
}

/// The type of a setting: its texts are the values of its flag.
pub(crate) trait SettingValue: Sized {
    const TAKES: Takes = Takes::One;
    const CHOICES: &'static [&'static str] = &[];

    fn read(texts: &[String]) -> Result<Self, String>;

    fn texts(&self) -> Vec<String>;

    fn relative_to(&mut self, _folder: &Path) {}
}

impl<T: TextValue> SettingValue for T {
    const CHOICES: &'static [&'static str] = T::CHOICES;

    fn read(texts: &[String]) -> Result<Self, String> {
        match texts {
            [text] => T::parse(text),
            texts => Err(format!("it takes one value, not {}", texts.len())),
        }
    }

    fn texts(&self) -> Vec<String> {
        vec![self.text()]
    }

    fn relative_to(&mut self, folder: &Path) {
        TextValue::relative_to(self, folder);
    }
}

/// `none`, or a value.
impl<T: TextValue> SettingValue for Option<T> {
    fn read(texts: &[String]) -> Result<Self, String> {
        match texts {
            [text] if text == "none" => Ok(None),
            texts => T::read(texts).map(Some),
        }
    }

    fn texts(&self) -> Vec<String> {
        vec![self.as_ref().map_or_else(|| "none".to_string(), T::text)]
    }
}

impl<T: TextValue> SettingValue for Vec<T> {
    const TAKES: Takes = Takes::Many;

    fn read(texts: &[String]) -> Result<Self, String> {
        texts.iter().map(|text| T::parse(text)).collect()
    }

    fn texts(&self) -> Vec<String> {
        self.iter().map(T::text).collect()
    }

    fn relative_to(&mut self, folder: &Path) {
        self.iter_mut().for_each(|value| TextValue::relative_to(value, folder));
    }
}

impl SettingValue for bool {
    const TAKES: Takes = Takes::Nothing;

    fn read(texts: &[String]) -> Result<Self, String> {
        match texts {
            [text] => text.parse().map_err(|_| format!("`{text}` is not true or false")),
            _ => Err("it is true or false".to_string()),
        }
    }

    fn texts(&self) -> Vec<String> {
        vec![self.to_string()]
    }
}

/// Types whose errors do not say what is allowed.
macro_rules! plain_values {
    ($($type:ty: $expected:literal $(if $check:expr)?;)*) => {$(
        impl TextValue for $type {
            fn parse(text: &str) -> Result<Self, String> {
                let value = text.trim().parse().ok()$(.filter($check))?;
                value.ok_or_else(|| format!(concat!("`{}` is not ", $expected), text))
            }

            fn text(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

plain_values! {
    u32: "a whole number";
    u64: "a whole number";
    usize: "a whole number";
    f64: "a finite number" if |x: &f64| x.is_finite();
    Budget: "a positive number of evaluations such as 5000, 1e5 or 30n";
}

/// Types whose errors quote the text and say what is allowed.
macro_rules! parsed_values {
    ($($type:ty $(: $choices:expr)?),* $(,)?) => {$(
        impl $crate::settings::value::TextValue for $type {
            $( const CHOICES: &'static [&'static str] = $choices; )?

            fn parse(text: &str) -> Result<Self, String> {
                text.parse().map_err(|error| format!("{error}"))
            }

            fn text(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

parsed_values!(
    Algorithm,
    AlgorithmSetting,
    Memory,
    NamedPoint,
    Noise: Noise::NAMES,
    Parameter,
    Source,
    String,
    TemplateFile,
    Time,
    Variable,
);

impl TextValue for PathBuf {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("the path is empty".to_string()) } else { Ok(text.into()) }
    }

    fn text(&self) -> String {
        self.display().to_string()
    }

    fn relative_to(&mut self, folder: &Path) {
        *self = folder.join(&*self);
    }
}

impl TextValue for KnownPoints {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error| format!("{error}"))
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn relative_to(&mut self, folder: &Path) {
        if let KnownPoints::File(path) = self {
            TextValue::relative_to(path, folder);
        }
    }
}

/// A setting of an algorithm by its name, written `name=text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlgorithmSetting {
    /// Its name.
    pub name: String,
    /// The text of its value.
    pub text: String,
}

impl std::str::FromStr for AlgorithmSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("`{text}` is not NAME=VALUE"))?;
        Ok(AlgorithmSetting { name: name.trim().to_string(), text: value.trim().to_string() })
    }
}

impl std::fmt::Display for AlgorithmSetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.name, self.text)
    }
}

/// Gives the variants of an enum their texts: `NAMES`, `Display`, `FromStr` and serde.
macro_rules! choices {
    ($type:ident { $($variant:ident => $name:literal),* $(,)? }) => {
        impl $type {
            /// The names, as users write them.
            pub const NAMES: &'static [&'static str] = &[$($name),*];
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $( $type::$variant => $name, )* })
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::error::Error;

            fn from_str(text: &str) -> $crate::error::Result<Self> {
                match text {
                    $( $name => Ok($type::$variant), )*
                    _ => Err($crate::error::Error::setting(format!(
                        "`{text}` is not one of {}",
                        $type::NAMES.join(", ")
                    ))),
                }
            }
        }

        $crate::settings::value::parsed_values!($type: $type::NAMES);
        $crate::settings::value::serialized_as_text!($type);
    };
}

/// Writes a type as the text of its `Display`.
macro_rules! serialized_as_text {
    ($($type:ty),* $(,)?) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}

pub(crate) use {choices, parsed_values, serialized_as_text};

/// The texts of a value of the study file or of the journal.
#[derive(Debug, PartialEq)]
pub(super) struct Texts(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde_json::Value as Json;
        Ok(Texts(match Json::deserialize(deserializer)? {
            Json::Array(values) => values.iter().map(text).collect(),
            Json::Object(entries) => {
                entries.iter().map(|(name, value)| format!("{name}={}", text(value))).collect()
            }
            value => vec![text(&value)],
        }))
    }
}

/// A value within a list or table.
fn text(value: &serde_json::Value) -> String {
    use serde_json::Value as Json;
    match value {
        Json::Null => "none".to_string(),
        Json::String(text) => text.clone(),
        Json::Array(values) => {
            format!("[{}]", values.iter().map(text).collect::<Vec<_>>().join(", "))
        }
        Json::Bool(_) | Json::Number(_) | Json::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_files_have_the_texts_of_flags() {
        let texts = |toml: &str| {
            let table: toml::Table = toml.parse().unwrap();
            let Texts(texts) = table["a"].clone().try_into().unwrap();
            texts
        };
        assert_eq!(texts("a = 5"), ["5"]);
        assert_eq!(texts("a = 2.5"), ["2.5"]);
        assert_eq!(texts("a = true"), ["true"]);
        assert_eq!(texts("a = []"), [""; 0]);
        assert_eq!(texts("a = ['x', 'y z']"), ["x", "y z"]);
        assert_eq!(texts("[a]\nx = '0:1'\nw = [0.5, 1]"), ["x=0:1", "w=[0.5, 1]"]);
        assert_eq!(texts("[[a]]\nx = 1\nm = 'b'"), [r#"{"x":1,"m":"b"}"#]);
    }

    #[test]
    fn mistakes_are_named() {
        let read =
            |texts: &[&str]| u32::read(&texts.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(read(&["4"]), Ok(4));
        assert_eq!(read(&["-4"]), Err("`-4` is not a whole number".to_string()));
        assert_eq!(read(&["4", "5"]), Err("it takes one value, not 2".to_string()));
        assert_eq!(f64::parse("nan"), Err("`nan` is not a finite number".to_string()));
        assert_eq!("x".parse::<AlgorithmSetting>(), Err("`x` is not NAME=VALUE".to_string()));
    }
}
