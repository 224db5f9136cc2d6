//! The macro behind the table of settings: a row gives the field of [`Settings`](super::Settings) and of
//! [`Plan`](crate::Plan), the flag with its help, the key of the study file and of the journal, the merge,
//! the default, the check, the command that repeats a study, and whether a resumed study may change it.

use super::Settings;
use super::value::{SettingValue, Takes};
use crate::error::{Error, Result};

/// A setting, as a front end sees it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Row {
    /// The name of the field.
    pub name: &'static str,
    /// The name of the flag, without dashes.
    pub flag: &'static str,
    /// The flag's short form.
    pub short: Option<char>,
    /// What it is for.
    pub about: &'static str,
    /// What stands for the value in help texts.
    pub value_name: &'static str,
    /// What the flag takes.
    pub takes: Takes,
    /// The value if the flag is given without one; `None` if it needs one.
    pub bare: Option<&'static str>,
    /// The values that there are, where they can be listed.
    pub choices: &'static [&'static str],
    /// Values that the help lists, though they are not all.
    pub examples: &'static [&'static str],
    /// The default in words, if there is one worth telling.
    pub default: Option<String>,
    /// The flag that cannot be given together with this one.
    pub excludes: Option<&'static str>,
    /// Whether it has no flag, but is what follows after `--`.
    pub is_command: bool,
    /// Whether it may change when a study is resumed.
    pub changes: bool,
    /// Whether the command that repeats a study has it even at its default.
    pub(crate) is_always_written: bool,
    pub(super) read: fn(&mut Settings, &[String]) -> Result<(), String>,
    pub(super) texts: fn(&Settings) -> Option<Vec<String>>,
}

/// A row to be completed by the macro.
pub(super) fn row(value_name: &'static str) -> Row {
    Row {
        name: "",
        flag: "",
        short: None,
        about: "",
        value_name,
        takes: Takes::One,
        bare: None,
        choices: &[],
        examples: &[],
        default: None,
        excludes: None,
        is_command: false,
        changes: false,
        is_always_written: false,
        read: |_, _| Ok(()),
        texts: |_| None,
    }
}

impl Row {
    pub(super) fn flag(self, flag: &'static str) -> Row {
        Row { flag, ..self }
    }

    pub(super) fn short(self, short: char) -> Row {
        Row { short: Some(short), ..self }
    }

    pub(super) fn bare(self, bare: &'static str) -> Row {
        Row { bare: Some(bare), ..self }
    }

    pub(super) fn default(self, default: &str) -> Row {
        Row { default: Some(default.to_string()), ..self }
    }

    pub(super) fn examples(self, examples: &'static [&'static str]) -> Row {
        Row { examples, ..self }
    }

    pub(super) fn excludes(self, other: &'static str) -> Row {
        Row { excludes: Some(other), ..self }
    }

    pub(super) fn command(self) -> Row {
        Row { is_command: true, ..self }
    }

    pub(super) fn changes(self) -> Row {
        Row { changes: true, ..self }
    }

    pub(super) fn always_written(self) -> Row {
        Row { is_always_written: true, ..self }
    }

    /// Says the default, unless it is in words already or goes without saying.
    pub(super) fn with_default<T: SettingValue>(mut self, default: &T) -> Row {
        let text = default.texts().join(" ");
        if self.default.is_none() && !matches!(text.as_str(), "" | "none" | "false") {
            self.default = Some(text);
        }
        self
    }

    /// The key in a study file.
    pub fn key(&self) -> String {
        self.name.replace('_', "-")
    }

    /// The help of its flag: what it is for, and the default.
    pub fn help(&self) -> String {
        let about = self.about.trim();
        let mut help = about.strip_suffix('.').unwrap_or(about).to_string();
        if !self.examples.is_empty() {
            help += &format!(": {}", self.examples.join(", "));
        }
        if let Some(default) = &self.default {
            help += &format!(" [default: {default}]");
        }
        help
    }

    /// Reads texts, those of a flag or of a key in a file.
    pub fn read(&self, settings: &mut Settings, texts: &[String]) -> Result<()> {
        (self.read)(settings, texts)
            .map_err(|what| Error::setting(format!("{}: {what}", self.key())))
    }

    /// The texts of what is given; `None` if it is not.
    pub fn texts(&self, settings: &Settings) -> Option<Vec<String>> {
        (self.texts)(settings)
    }

    /// Whether this could be its value, or one of its values; the error says what is allowed.
    pub fn check(&self, text: &str) -> Result<(), String> {
        (self.read)(&mut Settings::default(), &[text.to_string()])
    }
}

/// Declares settings. A row with a default has its place in the plan; what a row without one gives to the
/// plan is up to `Plan::resolve`. Defaults and checks may use the rows before them by name.
macro_rules! settings {
    (@first $first:ty, $second:expr) => { $first };
    (@name $first:ident, $second:expr) => { $first };
    (
        $(#[$settings_attribute:meta])*
        pub struct Settings;

        $(#[$plan_attribute:meta])*
        pub struct Plan: $basis:ident {
            $( $(#[$own_attribute:meta])* $own:ident: $own_type:ty, )*
        }

        $(
            $(#[doc = $about:literal])*
            $name:ident: $type:ty $(= $default:expr $(, $check:expr => $needs:literal)?)?; $row:expr;
        )*
    ) => {
        $(#[$settings_attribute])*
        #[derive(Debug, Clone, PartialEq, Default)]
        #[non_exhaustive]
        pub struct Settings {
            $( $(#[doc = $about])* pub $name: Option<$type>, )*
        }

        /// What a plan has besides the rows of the table.
        pub(crate) struct $basis {
            $( pub(crate) $own: $own_type, )*
        }

        $(#[$plan_attribute])*
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[non_exhaustive]
        pub struct Plan {
            $( $(#[$own_attribute])* pub $own: $own_type, )*
            $( $(
                #[doc = concat!("See [`Settings::", stringify!($name), "`].")]
                pub $name: settings!(@first $type, $default),
            )? )*
        }

        impl Settings {
            /// The table of settings.
            #[allow(unused_variables, reason = "some defaults are of use to others")]
            pub fn rows() -> Vec<Row> {
                let mut rows = Vec::new();
                $(
                    let row: Row = $row;
                    let row = Row {
                        name: stringify!($name),
                        flag: if row.flag.is_empty() { stringify!($name) } else { row.flag },
                        about: concat!($($about),*),
                        takes: <$type as SettingValue>::TAKES,
                        choices: <$type as SettingValue>::CHOICES,
                        read: |settings, texts| {
                            settings.$name = Some(SettingValue::read(texts)?);
                            Ok(())
                        },
                        texts: |settings| settings.$name.as_ref().map(SettingValue::texts),
                        ..row
                    };
                    $(
                        let $name: $type = $default;
                        let row = row.with_default(&$name);
                    )?
                    rows.push(row);
                )*
                rows
            }

            /// Each row of these, or where it is not given of `below`.
            fn or(self, below: Settings) -> Settings {
                Settings { $( $name: self.$name.or(below.$name), )* }
            }

            /// Makes paths that are relative ones within this folder.
            pub fn relative_to(mut self, folder: &Path) -> Settings {
                $( self.$name.iter_mut().for_each(|value| value.relative_to(folder)); )*
                self
            }
        }

        impl Plan {
            /// A plan of its basis and the rows of the table, which are checked.
            pub(crate) fn complete(basis: $basis, settings: Settings) -> Result<Plan> {
                $( $(
                    let $name: $type = match settings.$name {
                        Some(given) => given,
                        None => $default,
                    };
                    $(
                        if !$check {
                            let name = stringify!($name).replace('_', "-");
                            let texts = $name.texts().join(" ");
                            return Err(Error::setting(format!(
                                concat!("{} is {}; ", $needs, " is needed"), name, texts
                            )));
                        }
                    )?
                )? )*
                Ok(Plan {
                    $( $own: basis.$own, )*
                    $( $( $name: settings!(@name $name, $default), )? )*
                })
            }

            /// The settings in the table that give the plan's rows: all, or those that are not the default.
            #[allow(unused_variables, reason = "some defaults are of use to others")]
            pub(crate) fn rows(&self, all: bool) -> Settings {
                let mut settings = Settings::default();
                $( $(
                    let $name: $type = self.$name.clone();
                    let default: $type = $default;
                    let row: Row = $row;
                    if all || row.is_always_written || $name != default {
                        settings.$name = Some(self.$name.clone());
                    }
                )? )*
                settings
            }

            /// The first row that differs from those of `old` and may not: its name, and both texts.
            pub(crate) fn changed_row(&self, old: &Plan) -> Option<(&'static str, String, String)> {
                $( $(
                    let row: Row = $row;
                    if !row.changes && self.$name != old.$name {
                        let texts =
                            |value: &settings!(@first $type, $default)| value.texts().join(" ");
                        return Some((stringify!($name), texts(&self.$name), texts(&old.$name)));
                    }
                )? )*
                None
            }
        }
    };
}

pub(super) use settings;
