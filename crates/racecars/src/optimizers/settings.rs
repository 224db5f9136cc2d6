//! What can be set of an algorithm: one declaration gives the field, its documentation, its name on the
//! command line, in study files and in Python, and how it is read and written.

/// A setting of an algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// What it does, and its default.
    pub about: &'static str,
}

/// Why a setting could not be set.
#[derive(Debug, PartialEq)]
pub(crate) enum Refusal {
    /// There is no setting of this name.
    Unknown,
    /// The text is not what is expected.
    Expected(String),
}

/// The settings of an algorithm, by name.
pub(crate) trait Settings {
    fn list(&self) -> Vec<Setting>;

    /// Sets one from text.
    fn set(&mut self, name: &str, text: &str) -> Result<(), Refusal>;

    /// Names and texts of those that are not the default.
    fn given(&self) -> Vec<(&'static str, String)>;
}

/// A type that a setting can have, in a form that people write.
pub(crate) trait SettingValue: Sized + PartialEq + Default {
    /// What is expected, for an error.
    fn expected() -> String;

    fn parse(text: &str) -> Option<Self>;

    fn text(&self) -> String;
}

impl SettingValue for bool {
    fn expected() -> String {
        "true or false".into()
    }

    fn parse(text: &str) -> Option<Self> {
        // Python spells them with a capital.
        text.to_ascii_lowercase().parse().ok()
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for usize {
    fn expected() -> String {
        "a whole number".into()
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for f64 {
    fn expected() -> String {
        "a number".into()
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|number: &f64| number.is_finite())
    }

    fn text(&self) -> String {
        format!("{self:?}")
    }
}

/// A range of numbers, written `[low, high]`.
impl SettingValue for (f64, f64) {
    fn expected() -> String {
        "a range such as [0.5, 1]".into()
    }

    fn parse(text: &str) -> Option<Self> {
        let inner = text.trim_start_matches(['[', '(']).trim_end_matches([']', ')']);
        let (low, high) = inner.split_once(',')?;
        Some((f64::parse(low.trim())?, f64::parse(high.trim())?))
    }

    fn text(&self) -> String {
        format!("[{:?}, {:?}]", self.0, self.1)
    }
}

impl<T: SettingValue> SettingValue for Box<T> {
    fn expected() -> String {
        T::expected()
    }

    fn parse(text: &str) -> Option<Self> {
        T::parse(text).map(Box::new)
    }

    fn text(&self) -> String {
        T::text(self)
    }
}

/// What is not given is derived from the space and the budget.
impl<T: SettingValue> SettingValue for Option<T> {
    fn expected() -> String {
        T::expected()
    }

    fn parse(text: &str) -> Option<Self> {
        if matches!(text, "null" | "None") { Some(None) } else { T::parse(text).map(Some) }
    }

    fn text(&self) -> String {
        self.as_ref().map_or_else(|| "null".into(), T::text)
    }
}

/// Declares settings: a struct with public fields, a method for each that sets it, and their names.
/// `..part: Type` takes in the settings of another struct.
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
            #[allow(unused_mut, clippy::vec_init_then_push, reason = "some have none")]
            fn list(&self) -> Vec<$crate::optimizers::settings::Setting> {
                let mut all = Vec::new();
                $( all.extend($crate::optimizers::settings::Settings::list(&self.$part)); )?
                $(
                    all.push($crate::optimizers::settings::Setting {
                        name: stringify!($field),
                        about: concat!($($about),*).trim_ascii_start(),
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
                        let value = <$type as SettingValue>::parse(text);
                        let refuse = || Refusal::Expected(<$type as SettingValue>::expected());
                        self.$field = value.ok_or_else(refuse)?;
                        return Ok(());
                    }
                )*
                $( return $crate::optimizers::settings::Settings::set(&mut self.$part, name, text); )?
                #[allow(unreachable_code, reason = "where another struct is taken in")]
                Err(Refusal::Unknown)
            }

            #[allow(unused_mut, unused_variables, unused_imports, reason = "some have none")]
            fn given(&self) -> Vec<(&'static str, String)> {
                use $crate::optimizers::settings::SettingValue;
                let mut all = Vec::new();
                let default = <$name>::default();
                $( all.extend($crate::optimizers::settings::Settings::given(&self.$part)); )?
                $(
                    if self.$field != default.$field {
                        all.push((stringify!($field), SettingValue::text(&self.$field)));
                    }
                )*
                all
            }
        }
    };
}

/// Gives the variants of an enum the names that users write.
macro_rules! choices {
    ($type:ident { $($variant:ident => $name:literal),* $(,)? }) => {
        impl $type {
            /// The names, as users write them.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// Its name.
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

            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
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
    fn settings_are_set_listed_and_given_by_name() {
        let mut whole = WholeSettings::default();
        let listed: Vec<_> = whole.list().into_iter().map(|s| (s.name, s.about)).collect();
        let expected =
            [("count", "How many."), ("range", "How wide, at first."), ("is", "Whether.")];
        assert_eq!(listed, expected);
        assert_eq!(whole.given(), []);
        for (name, text) in [("count", "4"), ("range", "[0.5,1]"), ("is", "True")] {
            assert_eq!(whole.set(name, text), Ok(()));
        }
        let built = WholeSettings::default()
            .part(PartSettings::default().count(4))
            .range((0.5, 1.0))
            .is(true);
        assert_eq!(whole, built);
        for (name, text) in whole.given() {
            assert_eq!(WholeSettings::default().set(name, &text), Ok(()));
        }
        assert_eq!(whole.set("count", "null"), Ok(()));
        assert_eq!(whole.part.count, None);
    }

    #[test]
    fn refusals_say_what_is_expected() {
        let mut whole = WholeSettings::default();
        assert_eq!(whole.set("size", "1"), Err(Refusal::Unknown));
        let expected = |text: &str| Err(Refusal::Expected(text.into()));
        assert_eq!(whole.set("count", "4.5"), expected("a whole number"));
        assert_eq!(whole.set("range", "[0.5,nan]"), expected("a range such as [0.5, 1]"));
        assert_eq!(whole.set("is", "perhaps"), expected("true or false"));
    }
}
