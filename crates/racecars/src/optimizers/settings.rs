//! Settings of algorithms. One declaration gives the field, its documentation, its name on the command
//! line, in study files and in Python, and its text form.

use crate::error::Error;
use std::fmt;

/// A setting of an algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setting {
    /// The name.
    pub name: &'static str,
    /// A description, with the default.
    pub about: &'static str,
}

/// A setting that differs from its default.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GivenSetting {
    /// The name.
    pub name: &'static str,
    /// The value in the form that [`Algorithm::set`](super::Algorithm::set) accepts.
    pub text: String,
}

/// Why a setting could not be set.
#[derive(Debug, PartialEq)]
pub(crate) enum Refusal {
    /// There is no setting of this name.
    Unknown,
    /// The text is not of the expected form.
    Expected { what: String, cause: Option<Error> },
}

/// The settings of an algorithm, by name.
pub(crate) trait Settings {
    fn fields(&self) -> Vec<Field>;

    /// Sets one from text.
    fn set(&mut self, name: &str, text: &str) -> Result<(), Refusal>;
}

/// A [`Setting`] with its value.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// The text of the value, if it differs from the default.
    pub(crate) given: Option<String>,
}

/// A parsed setting. The error says why the text is not of the expected form, if there is more to say
/// than that.
pub(crate) type Parsed<T> = Result<T, Option<Error>>;

/// A type of settings, with its text form.
pub(crate) trait SettingValue: Sized + fmt::Debug + PartialEq + Default {
    /// The expected form, for error messages.
    fn expected() -> String;

    fn parse(text: &str) -> Parsed<Self>;

    fn text(&self) -> String {
        format!("{self:?}")
    }
}

impl SettingValue for bool {
    fn expected() -> String {
        "true or false".into()
    }

    fn parse(text: &str) -> Parsed<Self> {
        // Python capitalizes them.
        text.to_ascii_lowercase().parse().map_err(|_| None)
    }
}

impl SettingValue for usize {
    fn expected() -> String {
        "a whole number".into()
    }

    fn parse(text: &str) -> Parsed<Self> {
        text.parse().map_err(|_| None)
    }
}

impl SettingValue for f64 {
    fn expected() -> String {
        "a number".into()
    }

    fn parse(text: &str) -> Parsed<Self> {
        text.parse().ok().filter(|number: &f64| number.is_finite()).ok_or(None)
    }
}

/// A range of numbers, written `[low, high]`.
impl SettingValue for (f64, f64) {
    fn expected() -> String {
        "a range such as [0.5, 1]".into()
    }

    fn parse(text: &str) -> Parsed<Self> {
        let inner = text.trim_start_matches(['[', '(']).trim_end_matches([']', ')']);
        let (low, high) = inner.split_once(',').ok_or(None)?;
        Ok((f64::parse(low.trim())?, f64::parse(high.trim())?))
    }

    fn text(&self) -> String {
        format!("[{:?}, {:?}]", self.0, self.1)
    }
}

impl<T: SettingValue> SettingValue for Box<T> {
    fn expected() -> String {
        T::expected()
    }

    fn parse(text: &str) -> Parsed<Self> {
        T::parse(text).map(Box::new)
    }

    fn text(&self) -> String {
        T::text(self)
    }
}

/// A setting that is derived from the space and the budget if it is not given.
impl<T: SettingValue> SettingValue for Option<T> {
    fn expected() -> String {
        T::expected()
    }

    fn parse(text: &str) -> Parsed<Self> {
        if matches!(text, "null" | "None") { Ok(None) } else { T::parse(text).map(Some) }
    }

    fn text(&self) -> String {
        self.as_ref().map_or_else(|| "null".into(), T::text)
    }
}

/// Declares settings: a struct with public fields, a setter for each field, and access by name.
/// `..part: Type` includes the settings of another struct.
macro_rules! settings {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident {
            $( ..$(#[doc = $part_about:literal])* $part:ident: $part_type:ty, )?
            $( $(#[doc = $about:literal])* $field:ident: $type:ty, )*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, Default)]
        #[non_exhaustive]
        pub struct $name {
            $( $(#[doc = $part_about])* pub $part: $part_type, )?
            $( $(#[doc = $about])* pub $field: $type, )*
        }

        impl $name {
            $(
                $(#[doc = $part_about])*
                pub fn $part(mut self, value: $part_type) -> Self {
                    self.$part = value;
                    self
                }
            )?
            $(
                $(#[doc = $about])*
                pub fn $field(mut self, value: impl Into<$type>) -> Self {
                    self.$field = value.into();
                    self
                }
            )*
        }

        impl $crate::optimizers::settings::Settings for $name {
            #[allow(unused_mut, unused_variables, unused_imports, reason = "some have none")]
            #[allow(clippy::vec_init_then_push, reason = "others have several")]
            fn fields(&self) -> Vec<$crate::optimizers::settings::Field> {
                use $crate::optimizers::settings::{Field, SettingValue};
                let mut all = Vec::new();
                let default = <$name>::default();
                $( all.extend($crate::optimizers::settings::Settings::fields(&self.$part)); )?
                $(
                    let is_given = self.$field != default.$field;
                    all.push(Field {
                        name: stringify!($field),
                        about: concat!($($about),*).trim_ascii_start(),
                        given: is_given.then(|| SettingValue::text(&self.$field)),
                    });
                )*
                all
            }

            #[allow(unused_variables, unused_imports, reason = "some have none")]
            fn set(
                &mut self,
                name: &str,
                text: &str,
            ) -> Result<(), $crate::optimizers::settings::Refusal> {
                use $crate::optimizers::settings::{Refusal, SettingValue};
                $(
                    if name == stringify!($field) {
                        let refuse = |cause| Refusal::Expected {
                            what: <$type as SettingValue>::expected(),
                            cause,
                        };
                        self.$field = <$type as SettingValue>::parse(text).map_err(refuse)?;
                        return Ok(());
                    }
                )*
                $( return $crate::optimizers::settings::Settings::set(&mut self.$part, name, text); )?
                #[allow(unreachable_code, reason = "if another struct is included")]
                Err(Refusal::Unknown)
            }
        }
    };
}

/// Gives names to the variants of an enum.
macro_rules! choices {
    ($type:ident { $($variant:ident => $name:literal),* $(,)? }) => {
        impl $type {
            /// The names of all variants.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The name.
            pub fn name(self) -> &'static str {
                match self {
                    $( $type::$variant => $name, )*
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::error::Error;

            fn from_str(name: &str) -> $crate::error::Result<Self> {
                match name {
                    $( $name => Ok($type::$variant), )*
                    other => Err($crate::error::Error::setting(format!(
                        "`{other}` is not {}",
                        <$type as $crate::optimizers::settings::SettingValue>::expected()
                    ))),
                }
            }
        }

        impl $crate::optimizers::settings::SettingValue for $type {
            fn expected() -> String {
                $crate::optimizers::settings::one_of($type::NAMES)
            }

            fn parse(text: &str) -> $crate::optimizers::settings::Parsed<Self> {
                text.parse().map_err(|_| None)
            }

            fn text(&self) -> String {
                self.name().to_string()
            }
        }
    };
}

pub(crate) use {choices, settings};

/// `a`, `b` or `c`.
pub(crate) fn one_of(names: &[&str]) -> String {
    match names {
        [] => "nothing".into(),
        [one] => (*one).into(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(unreachable_pub, reason = "the macro declares public types")]

    use super::*;

    settings! {
        /// A part.
        pub struct PartSettings {
            /// How many.
            count: Option<usize>,
        }
    }

    settings! {
        /// A whole.
        pub struct WholeSettings {
            ../// What it shares.
            part: PartSettings,
            /// How wide,
            /// at first.
            range: Option<(f64, f64)>,
            /// Whether.
            is: bool,
        }
    }

    #[test]
    fn settings_are_set_and_listed_by_name() {
        let mut whole = WholeSettings::default();
        let listed: Vec<_> = whole
            .fields()
            .into_iter()
            .map(|field| (field.name, field.about, field.given))
            .collect();
        let expected = [
            ("count", "How many.", None),
            ("range", "How wide, at first.", None),
            ("is", "Whether.", None),
        ];
        assert_eq!(listed, expected);
        for (name, text) in [("count", "4"), ("range", "[0.5,1]"), ("is", "True")] {
            assert_eq!(whole.set(name, text), Ok(()));
        }
        let built = WholeSettings::default()
            .part(PartSettings::default().count(4))
            .range((0.5, 1.0))
            .is(true);
        assert_eq!(whole, built);
        for Field { name, given, .. } in whole.fields() {
            assert_eq!(WholeSettings::default().set(name, &given.unwrap()), Ok(()));
        }
        assert_eq!(whole.set("count", "null"), Ok(()));
        assert_eq!(whole.part.count, None);
    }

    #[test]
    fn errors_say_what_is_expected() {
        let mut whole = WholeSettings::default();
        assert_eq!(whole.set("size", "1"), Err(Refusal::Unknown));
        let expected = |what: &str| Err(Refusal::Expected { what: what.into(), cause: None });
        assert_eq!(whole.set("count", "4.5"), expected("a whole number"));
        assert_eq!(whole.set("range", "[0.5,nan]"), expected("a range such as [0.5, 1]"));
        assert_eq!(whole.set("is", "perhaps"), expected("true or false"));
    }
}
