//! Texts with `{name}` in them: arguments, variables, paths and template files.
//!
//! `{x}` stands for the parameter's value, `{w}` of an array for its values with commas between,
//! `{w[2]}` for one of them. `{flag?--fast}` is `--fast` where the parameter `flag` is true, and nothing where it
//! is false. `{{x}}` is the text `{x}` itself. Anything else between braces is left alone, so that JSON and
//! program text pass through.

use crate::error::{Error, Result};
use crate::parameter::{BUILT_IN, is_name};
use crate::point::NamedPoint;
use racecars::{Domain, Space, Value, Values};

/// The parameters that a placeholder can name: those of the space, then those that are fixed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a> {
    pub(crate) space: &'a Space,
    pub(crate) fixed: &'a NamedPoint,
}

impl<'a> Names<'a> {
    /// All names, in order: the places are those of [`Slot`].
    pub(crate) fn all(self) -> impl Iterator<Item = &'a str> {
        let searched = self.space.entries().iter().map(|entry| entry.name());
        searched.chain(self.fixed.values().iter().map(|(name, _)| name.as_str()))
    }

    /// The length of the array at this place, if it is one.
    fn array_len(self, place: usize) -> Option<usize> {
        self.space.entries().get(place).and_then(|entry| entry.array_len())
    }

    /// The value at this place, if it is fixed.
    pub(crate) fn fixed(self, place: usize) -> Option<&'a Values> {
        let place = place.checked_sub(self.space.entries().len())?;
        self.fixed.values().get(place).map(|(_, values)| values)
    }

    fn is_boolean(self, place: usize) -> bool {
        match self.space.entries().get(place) {
            Some(entry) => *entry.domain() == Domain::Boolean && entry.array_len().is_none(),
            None => matches!(self.fixed(place), Some(Values::One(Value::Boolean(_)))),
        }
    }
}

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
    /// The parameter with this place in [`Names`].
    Parameter(usize),
    /// One element of the array with this place.
    Element(usize, usize),
    /// All elements, each as an argument of its own.
    Spread(usize),
    /// This text if the parameter with this place is true, nothing if it is false.
    Flag(usize, String),
    /// The trial's number.
    Trial,
    /// The evaluation's seed.
    Seed,
    /// The evaluation's own folder.
    Dir,
    /// The folder of the study file, or the one that racecars was started in.
    Base,
    /// The number of the worker that evaluates.
    Worker,
}

impl Slot {
    /// The place of the parameter that it stands for.
    pub(crate) fn parameter(&self) -> Option<usize> {
        match self {
            Slot::Parameter(place) | Slot::Element(place, _) | Slot::Spread(place) => Some(*place),
            Slot::Flag(place, _) => Some(*place),
            _ => None,
        }
    }
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
    pub(crate) fn parse(
        text: &str,
        names: Names<'_>,
        unknown: Unknown,
        place: &str,
    ) -> Result<Text> {
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
            if let (None, Unknown::Refuse, Some((flag, _))) =
                (name, unknown, rest[1..].split_once('?'))
                && names.all().any(|name| name == flag)
            {
                return Err(Error::setting(format!(
                    "`{rest}` in {place} has no `}}`: a flag is one argument, without blanks; write \
                     {{{flag}?..}} for each"
                )));
            }
            let name = name.filter(|name| is_placeholder(name));
            let slot = name.map(|name| slot(name, names, place)).transpose()?.flatten();
            match (name, slot) {
                (Some(name), Some(slot)) => {
                    if !plain.is_empty() {
                        pieces.push(Piece::Plain(std::mem::take(&mut plain)));
                    }
                    pieces.push(Piece::Slot(slot));
                    rest = &rest[name.len() + 2..];
                }
                (Some(name), None) if unknown == Unknown::Refuse => {
                    return Err(stranger(name, names, place));
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

    /// Whether this text is `{flag?text}` and no more, and the flag is false: it is no argument then.
    pub(crate) fn is_left_out(&self, context: &Context) -> bool {
        match &self.pieces[..] {
            [Piece::Slot(Slot::Flag(place, _))] => !context.is_true(*place),
            _ => false,
        }
    }

    /// The text with values in place; `quote` is applied to each value.
    pub(crate) fn fill(&self, context: &Context, quote: fn(String) -> String) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Plain(plain) => text.push_str(plain),
                // What is written in the command is part of it, not a value.
                Piece::Slot(slot @ Slot::Flag(..)) => text.push_str(&context.value(slot)),
                Piece::Slot(slot) => text.push_str(&quote(context.value(slot))),
            }
        }
        text
    }
}

/// The values of one evaluation.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// By the places of [`Names`].
    pub(crate) values: Vec<Values>,
    pub(crate) trial: u64,
    pub(crate) seed: u64,
    pub(crate) dir: String,
    pub(crate) base: String,
    pub(crate) worker: usize,
}

impl Context {
    fn is_true(&self, place: usize) -> bool {
        self.values[place] == Values::One(Value::Boolean(true))
    }

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
            Slot::Worker => self.worker.to_string(),
            Slot::Flag(place, text) if self.is_true(*place) => text.clone(),
            Slot::Flag(..) => String::new(),
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

/// Whether this could be a placeholder: a name, with `[2]`, `...` or `?text` perhaps.
fn is_placeholder(text: &str) -> bool {
    if let Some((name, text)) = text.split_once('?') {
        return is_name(name) && !text.is_empty();
    }
    let name = text.strip_suffix("...").unwrap_or(text);
    let name = match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
        Some((name, index)) if index.bytes().all(|b| b.is_ascii_digit()) => name,
        Some(_) => return false,
        None => name,
    };
    is_name(name)
}

/// What a name stands for; `None` if nothing.
fn slot(text: &str, names: Names<'_>, place: &str) -> Result<Option<Slot>> {
    let find = |name: &str| names.all().position(|other| other == name);
    match text {
        "trial" => return Ok(Some(Slot::Trial)),
        "seed" => return Ok(Some(Slot::Seed)),
        "dir" => return Ok(Some(Slot::Dir)),
        "base" => return Ok(Some(Slot::Base)),
        // Studies from before it was built in may have a parameter of this name.
        "worker" if find(text).is_none() => return Ok(Some(Slot::Worker)),
        _ => {}
    }
    let refuse = |what: String| Err(Error::setting(format!("`{{{text}}}` in {place}: {what}")));
    if let Some((name, text)) = text.split_once('?') {
        let Some(entry) = find(name) else { return Ok(None) };
        return match names.is_boolean(entry) {
            true => Ok(Some(Slot::Flag(entry, text.to_string()))),
            false => refuse(format!(
                "the parameter is not true or false; a flag that appears or not is one like {name}=bool"
            )),
        };
    }
    if let Some(entry) = find(text) {
        return Ok(Some(Slot::Parameter(entry)));
    }
    if let Some(entry) = text.strip_suffix("...").and_then(find) {
        return match names.array_len(entry) {
            Some(_) => Ok(Some(Slot::Spread(entry))),
            None => refuse("the parameter is not an array".to_string()),
        };
    }
    let element = text.strip_suffix(']').and_then(|text| text.split_once('['));
    if let Some((name, index)) = element
        && let (Some(entry), Ok(index)) = (find(name), index.parse::<usize>())
    {
        return match names.array_len(entry) {
            Some(count) if index < count => Ok(Some(Slot::Element(entry, index))),
            Some(count) => refuse(format!("the array has elements 0 to {}", count - 1)),
            None => refuse("the parameter is not an array".to_string()),
        };
    }
    Ok(None)
}

fn stranger(name: &str, names: Names<'_>, place: &str) -> Error {
    let mut known: Vec<&str> = names.all().take(20).collect();
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

    fn fill(text: &str) -> Result<String> {
        let space = Space::builder()
            .real("x", 0.0, 1.0)
            .reals("w", 3, 0.0, 1.0)
            .boolean("on")
            .boolean("off")
            .build()?;
        let fixed: NamedPoint = r#"{"y": 5, "set": true}"#.parse()?;
        let mut values = vec![0.25.into(), Values::from(vec![1.0, 0.5, 1e-7])];
        values.extend([true.into(), false.into(), 5.into(), true.into()]);
        let (dir, base) = ("/d".to_string(), "/b".to_string());
        let context = Context { values, trial: 7, seed: 42, dir, base, worker: 3 };
        let names = Names { space: &space, fixed: &fixed };
        let text = Text::parse(text, names, Unknown::Refuse, "the command")?;
        assert_eq!(text.is_left_out(&context), text.pieces() == [flag("--fast")]);
        Ok(text.fill(&context, |value| value))
    }

    fn flag(text: &str) -> Piece {
        Piece::Slot(Slot::Flag(3, text.to_string()))
    }

    #[test]
    fn names_are_replaced_and_other_braces_are_not() {
        let filled = |text| fill(text).unwrap();
        assert_eq!(filled("--x={x}"), "--x=0.25");
        assert_eq!(filled("{x}{x}-{trial}.{seed}"), "0.250.25-7.42");
        assert_eq!(filled("{w} {w[0]} {w[2]} {w...}"), "1,0.5,1e-7 1 1e-7 1,0.5,1e-7");
        assert_eq!(filled("{dir}/{base} {worker}"), "/d//b 3");
        assert_eq!(filled("{y} {set}"), "5 true");
        assert_eq!(filled("{on?--fast} {off?--slow}{set?a b}{off?x}"), "--fast a b");
        assert_eq!(filled("{off?--fast}"), "");
        assert_eq!(filled(r#"{"x": {x}, "a": {}}"#), r#"{"x": 0.25, "a": {}}"#);
        assert_eq!(filled("{{x}} {{other}} {{on?--fast}} {{x"), "{x} {other} {on?--fast} {{x");
        assert_eq!(filled("awk '{print $1}'; {"), "awk '{print $1}'; {");
        assert_eq!(filled(""), "");
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text| fill(text).unwrap_err().to_string();
        let names = "`{z}` in the command is no parameter; there are x, w, on, off, y, set, trial,";
        assert!(error("{z}").starts_with(names), "{}", error("{z}"));
        assert!(error("{w[3]}").contains("elements 0 to 2"));
        assert!(error("{x[0]}").contains("not an array"));
        assert!(error("{y...}").contains("not an array"));
        assert!(error("{x?--fast}").contains("a flag that appears or not is one like x=bool"));
        assert!(error("{y?--fast}").contains("not true or false"));
        assert!(error("{on?--fast").contains("`{on?--fast` in the command has no `}`"));
        assert!(error("{z?--fast}").contains("`{z?--fast}` in the command is no parameter"));
    }

    #[test]
    fn a_study_from_before_workers_had_numbers_keeps_its_parameter() {
        let space = Space::builder().real("worker", 0.0, 1.0).build().unwrap();
        let names = Names { space: &space, fixed: &NamedPoint::default() };
        let text = Text::parse("{worker}", names, Unknown::Refuse, "the command").unwrap();
        assert_eq!(text, Text::of(Slot::Parameter(0)));
    }

    #[test]
    fn unknown_names_can_be_kept() {
        let space = Space::cube(1, 0.0, 1.0).unwrap();
        let names = Names { space: &space, fixed: &NamedPoint::default() };
        let text = Text::parse("{a} {a?b} {x[0]}", names, Unknown::Keep, "a template").unwrap();
        let values = vec![Values::Many(vec![Value::Real(0.5)])];
        let (dir, base) = (String::new(), String::new());
        let context = Context { values, trial: 0, seed: 0, dir, base, worker: 0 };
        assert_eq!(text.fill(&context, |value| value), "{a} {a?b} 0.5");
    }
}
