//! Templates: text with `{name}` for what is filled in, and `{{` and `}}` for braces.

use crate::error::{Error, Result};

/// A template.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Name(String),
}

impl Template {
    /// Reads the template of the setting `place`.
    pub(crate) fn parse(place: &str, text: &str) -> Result<Template> {
        let refuse = |what: String| {
            Err(Error::setting(format!("{place}: {what}; a brace itself is written {{{{ or }}}}")))
        };
        let (mut parts, mut plain) = (Vec::new(), String::new());
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain += &rest[..at];
            let tail = &rest[at..];
            if tail.starts_with("{{") || tail.starts_with("}}") {
                plain += &tail[..1];
                rest = &tail[2..];
            } else if tail.starts_with('}') {
                return refuse("`}` closes nothing".to_string());
            } else {
                let Some(end) = tail.find('}') else {
                    let shown: String = tail.chars().take(20).collect();
                    return refuse(format!("`{shown}` is not closed"));
                };
                let name = tail[1..end].trim();
                let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
                if name.is_empty() || !name.chars().all(is_name) {
                    return refuse(format!("`{}` is not a name in braces", &tail[..=end]));
                }
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                }
                parts.push(Part::Name(name.to_string()));
                rest = &tail[end + 1..];
            }
        }
        plain += rest;
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Template { parts })
    }

    /// The names in braces.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Name(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// Whether it has this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names().any(|other| other == name)
    }

    /// Fills in what `value` has. Values are not read as templates. A name without a value stays as it is.
    pub(crate) fn fill<'a>(&self, value: impl Fn(&str) -> Option<&'a str>) -> String {
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => filled += text,
                Part::Name(name) => match value(name) {
                    Some(value) => filled += value,
                    None => {
                        filled.push('{');
                        filled += name;
                        filled.push('}');
                    }
                },
            }
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in_and_values_are_left_alone() {
        let template = Template::parse("t", "{{\"a\": {x}}} { y }!").unwrap();
        assert_eq!(template.names().collect::<Vec<_>>(), ["x", "y"]);
        let filled = template.fill(|name| (name == "x").then_some("{y}"));
        assert_eq!(filled, "{\"a\": {y}} {y}!");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, what) in [
            ("a } b", "closes nothing"),
            ("a {b", "`{b` is not closed"),
            ("{a b}", "is not a name"),
        ] {
            let error = Template::parse("prompt.template", text).unwrap_err().to_string();
            assert!(error.starts_with("prompt.template: ") && error.contains(what), "{error}");
        }
    }
}
