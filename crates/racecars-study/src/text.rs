//! Texts with `{name}` in them: arguments, variables, paths and template files.
//!
//! `{x}` stands for the parameter's value, `{w}` of an array for its values with commas between,
//! `{w[2]}` for one of them. `{{x}}` is the text `{x}` itself. Anything else between braces is left
//! alone, so that JSON and program text pass through.

use crate::error::{Error, Result};
use crate::parameter::{BUILT_IN, is_name};
use racecars::{Space, Values};

/// A text, cut at its placeholders.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Text {
    pieces: Vec<Piece>,
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    /// Text to be taken as it is.
    Plain(String),
    /// A placeholder.
    Slot(Slot),
}

/// What a placeholder stands for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Slot {
    /// The entry of the space with this index.
    Parameter(usize),
    /// One element of the array with this index.
    Element(usize, usize),
    /// All elements, each as an argument of its own.
    Spread(usize),
    /// The trial's number.
    Trial,
    /// The evaluation's seed.
    Seed,
    /// The evaluation's own folder.
    Dir,
    /// The folder of the study file, or the one that racecars was started in.
    Base,
}

/// How unknown names between braces are taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Unknown {
    /// As a mistake.
    Refuse,
    /// As text.
    Keep,
}

impl Text {
    /// Cuts `text`; `place` says where it stands, for messages.
    pub(crate) fn parse(text: &str, space: &Space, unknown: Unknown, place: &str) -> Result<Text> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            plain.push_str(&rest[..open]);
            rest = &rest[open..];
            if let Some(inner) = rest.strip_prefix("{{").and_then(|rest| rest.split_once("}}"))
                && is_placeholder(inner.0)
            {
                plain.push_str(&rest[1..inner.0.len() + 3]);
                rest = inner.1;
                continue;
            }
            let name = rest[1..].split_once('}').map(|(name, _)| name);
            let name = name.filter(|name| is_placeholder(name));
            let slot = name.map(|name| slot(name, space, place)).transpose()?.flatten();
            match (name, slot) {
                (Some(name), Some(slot)) => {
                    if !plain.is_empty() {
                        pieces.push(Piece::Plain(std::mem::take(&mut plain)));
                    }
                    pieces.push(Piece::Slot(slot));
                    rest = &rest[name.len() + 2..];
                }
                (Some(name), None) if unknown == Unknown::Refuse => {
                    return Err(stranger(name, space, place));
                }
                _ => {
                    plain.push('{');
                    rest = &rest[1..];
                }
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() || pieces.is_empty() {
            pieces.push(Piece::Plain(plain));
        }
        Ok(Text { pieces })
    }

    /// A placeholder and no more.
    pub(crate) fn of(slot: Slot) -> Text {
        Text { pieces: vec![Piece::Slot(slot)] }
    }

    /// The parts.
    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The placeholders.
    pub(crate) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Slot(slot) => Some(slot),
            Piece::Plain(_) => None,
        })
    }

    /// The array to spread over several arguments, if this text is `{name...}` and no more.
    pub(crate) fn spread(&self) -> Option<usize> {
        match self.pieces[..] {
            [Piece::Slot(Slot::Spread(entry))] => Some(entry),
            _ => None,
        }
    }

    /// The text with values in place; `quote` is applied to each value.
    pub(crate) fn fill(&self, context: &Context, quote: fn(String) -> String) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Plain(plain) => text.push_str(plain),
                Piece::Slot(slot) => text.push_str(&quote(context.value(slot))),
            }
        }
        text
    }
}

/// The values of one evaluation.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) values: Vec<Values>,
    pub(crate) trial: u64,
    pub(crate) seed: u64,
    pub(crate) dir: String,
    pub(crate) base: String,
}

impl Context {
    fn value(&self, slot: &Slot) -> String {
        match slot {
            Slot::Parameter(entry) | Slot::Spread(entry) => plain(&self.values[*entry]),
            Slot::Element(entry, index) => match &self.values[*entry] {
                Values::One(value) => value.to_string(),
                Values::Many(values) => values[*index].to_string(),
            },
            Slot::Trial => self.trial.to_string(),
            Slot::Seed => self.seed.to_string(),
            Slot::Dir => self.dir.clone(),
            Slot::Base => self.base.clone(),
        }
    }
}

/// A value as a program reads it; an array with commas between.
pub(crate) fn plain(values: &Values) -> String {
    match values {
        Values::One(value) => value.to_string(),
        Values::Many(values) => {
            let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
            texts.join(",")
        }
    }
}

/// Whether this could be a placeholder: a name, with `[2]` or `...` perhaps.
fn is_placeholder(text: &str) -> bool {
    let name = text.strip_suffix("...").unwrap_or(text);
    let name = match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
        Some((name, index)) if index.bytes().all(|b| b.is_ascii_digit()) => name,
        Some(_) => return false,
        None => name,
    };
    is_name(name)
}

/// What a name stands for; `None` if nothing.
fn slot(text: &str, space: &Space, place: &str) -> Result<Option<Slot>> {
    match text {
        "trial" => return Ok(Some(Slot::Trial)),
        "seed" => return Ok(Some(Slot::Seed)),
        "dir" => return Ok(Some(Slot::Dir)),
        "base" => return Ok(Some(Slot::Base)),
        _ => {}
    }
    let refuse = |what: String| Err(Error::setting(format!("`{{{text}}}` in {place}: {what}")));
    let find = |name: &str| space.entries().iter().position(|entry| entry.name() == name);
    if let Some(entry) = find(text) {
        return Ok(Some(Slot::Parameter(entry)));
    }
    if let Some(entry) = text.strip_suffix("...").and_then(find) {
        return match space.entries()[entry].array_len() {
            Some(_) => Ok(Some(Slot::Spread(entry))),
            None => refuse("the parameter is not an array".to_string()),
        };
    }
    let element = text.strip_suffix(']').and_then(|text| text.split_once('['));
    if let Some((name, index)) = element
        && let (Some(entry), Ok(index)) = (find(name), index.parse::<usize>())
    {
        return match space.entries()[entry].array_len() {
            Some(count) if index < count => Ok(Some(Slot::Element(entry, index))),
            Some(count) => refuse(format!("the array has elements 0 to {}", count - 1)),
            None => refuse("the parameter is not an array".to_string()),
        };
    }
    Ok(None)
}

fn stranger(name: &str, space: &Space, place: &str) -> Error {
    let mut known: Vec<&str> = space.entries().iter().take(20).map(|entry| entry.name()).collect();
    known.extend(BUILT_IN);
    Error::setting(format!(
        "`{{{name}}}` in {place} is no parameter; there are {}. Write {{{{{name}}}}} for the text \
         {{{name}}} itself",
        known.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use racecars::Value;

    fn fill(text: &str) -> Result<String> {
        let space = Space::builder().real("x", 0.0, 1.0).reals("w", 3, 0.0, 1.0).build()?;
        let values = vec![0.25.into(), Values::from(vec![1.0, 0.5, 1e-7])];
        let context =
            Context { values, trial: 7, seed: 42, dir: "/d".to_string(), base: "/b".to_string() };
        let text = Text::parse(text, &space, Unknown::Refuse, "the command")?;
        Ok(text.fill(&context, |value| value))
    }

    #[test]
    fn names_are_replaced_and_other_braces_are_not() {
        let filled = |text| fill(text).unwrap();
        assert_eq!(filled("--x={x}"), "--x=0.25");
        assert_eq!(filled("{x}{x}-{trial}.{seed}"), "0.250.25-7.42");
        assert_eq!(filled("{w} {w[0]} {w[2]} {w...}"), "1,0.5,1e-7 1 1e-7 1,0.5,1e-7");
        assert_eq!(filled("{dir}/{base}"), "/d//b");
        assert_eq!(filled(r#"{"x": {x}, "a": {}}"#), r#"{"x": 0.25, "a": {}}"#);
        assert_eq!(filled("{{x}} {{other}} {{x"), "{x} {other} {{x");
        assert_eq!(filled("awk '{print $1}'; {"), "awk '{print $1}'; {");
        assert_eq!(filled(""), "");
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text| fill(text).unwrap_err().to_string();
        assert!(error("{y}").starts_with("`{y}` in the command is no parameter; there are x, w,"));
        assert!(error("{w[3]}").contains("elements 0 to 2"));
        assert!(error("{x[0]}").contains("not an array"));
        assert!(error("{x...}").contains("not an array"));
    }

    #[test]
    fn unknown_names_can_be_kept() {
        let space = Space::cube(1, 0.0, 1.0).unwrap();
        let text = Text::parse("{a} {x[0]}", &space, Unknown::Keep, "a template").unwrap();
        let values = vec![Values::Many(vec![Value::Real(0.5)])];
        let context =
            Context { values, trial: 0, seed: 0, dir: String::new(), base: String::new() };
        assert_eq!(text.fill(&context, |value| value), "{a} 0.5");
    }
}
