//! Splitting a text into the words within which byte-level tokens are merged.
//!
//! The patterns are regular expressions elsewhere; they are given with each case.

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// How texts are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordPattern {
    /// GPT-2: `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
    Gpt2,
    /// Every digit by itself, and the texts between them as GPT-2 does.
    DigitsAndGpt2,
    /// Llama 3: `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
    /// ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`; others have another number of digits.
    Llama3 {
        /// The maximum number of digits of a word.
        digits: usize,
    },
    /// The whole text.
    Whole,
}

const CONTRACTIONS: [&str; 7] = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"];

/// A class of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Number,
    Space,
    Other,
}

fn class(char: char) -> Class {
    match char {
        'a'..='z' | 'A'..='Z' => Class::Letter,
        _ if char.is_whitespace() => Class::Space,
        _ if char.is_numeric() => Class::Number,
        _ if char.general_category_group() == GeneralCategoryGroup::Letter => Class::Letter,
        _ => Class::Other,
    }
}

/// The bytes of the characters at the beginning of a text that satisfy a condition.
fn run(text: &str, is_in: impl Fn(char) -> bool) -> usize {
    text.len() - text.trim_start_matches(is_in).len()
}

fn run_of(text: &str, wanted: Class) -> usize {
    run(text, |char| class(char) == wanted)
}

impl WordPattern {
    /// The words of a text, one after the other.
    pub(super) fn split(self, text: &str) -> Vec<&str> {
        let (mut words, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            let length = match self {
                WordPattern::Gpt2 => gpt2(rest),
                WordPattern::DigitsAndGpt2 => match rest.find(char::is_numeric) {
                    Some(0) => rest.chars().next().map_or(1, char::len_utf8),
                    next => gpt2(&rest[..next.unwrap_or(rest.len())]),
                },
                WordPattern::Llama3 { digits } => llama3(rest, digits),
                WordPattern::Whole => rest.len(),
            };
            let (word, after) = rest.split_at(length);
            words.push(word);
            rest = after;
        }
        words
    }
}

fn gpt2(text: &str) -> usize {
    if let Some(found) = CONTRACTIONS.iter().find(|contraction| text.starts_with(**contraction)) {
        return found.len();
    }
    let after_space = text.strip_prefix(' ').unwrap_or(text);
    let space = text.len() - after_space.len();
    match after_space.chars().next().map(class) {
        None | Some(Class::Space) => spaces(text),
        Some(class) => space + run_of(after_space, class),
    }
}

fn llama3(text: &str, digits: usize) -> usize {
    let contraction = |contraction: &&&str| {
        let start = text.as_bytes().get(..contraction.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(contraction.as_bytes()))
    };
    if let Some(found) = CONTRACTIONS.iter().find(contraction) {
        return found.len();
    }
    let first = text.chars().next().unwrap_or(' ');
    let after = &text[first.len_utf8().min(text.len())..];
    let letters = run_of(after, Class::Letter);
    match class(first) {
        Class::Letter => return first.len_utf8() + letters,
        Class::Number => {
            let length = |char: char| char.len_utf8();
            let numbers = text.chars().take(digits).take_while(|char| char.is_numeric());
            return numbers.map(length).sum();
        }
        _ if letters > 0 && !is_newline(first) => return first.len_utf8() + letters,
        _ => {}
    }
    let after_space = text.strip_prefix(' ').unwrap_or(text);
    let others = run_of(after_space, Class::Other);
    if others > 0 {
        let newlines = run(&after_space[others..], is_newline);
        return text.len() - after_space.len() + others + newlines;
    }
    let blank = &text[..run_of(text, Class::Space)];
    match blank.rfind(is_newline) {
        Some(last) => last + 1,
        None => spaces(text),
    }
}

fn is_newline(char: char) -> bool {
    matches!(char, '\r' | '\n')
}

/// White space without its last character, which belongs to the next word, if there is one of each.
fn spaces(text: &str) -> usize {
    let blank = run_of(text, Class::Space);
    let last = text[..blank].char_indices().next_back().map_or(0, |(at, _)| at);
    if blank == text.len() || last == 0 { blank } else { last }
}

/// The printable character that stands for a byte: itself if it is printable, and otherwise one from U+0100 on.
pub(super) fn printable(byte: u8) -> char {
    let shifted = |index: u8| char::from_u32(256 + u32::from(index)).unwrap_or(' ');
    match byte {
        b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
        0..=b' ' => shifted(byte),
        0x7f..=0xa0 => shifted(byte - 0x7f + 33),
        0xad => shifted(67),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words are those of `regex` 2026 in Python for the same patterns.
    #[test]
    fn words_are_those_of_the_patterns() {
        let text = "I'm  12345 years\u{a0}old, they'LL see:\n\n  élan²  x\u{300}!?\r\n ";
        let llama = |digits| WordPattern::Llama3 { digits };
        for (pattern, words) in [
            (
                WordPattern::Gpt2,
                "I|'m| | 12345| years|\u{a0}|old|,| they|'|LL| see|:|\n\n | élan|²| | x|\u{300}!?|\r\n ",
            ),
            (
                WordPattern::DigitsAndGpt2,
                "I|'m|  |1|2|3|4|5| years|\u{a0}|old|,| they|'|LL| see|:|\n\n | élan|²| | x|\u{300}!?|\r\n ",
            ),
            (
                llama(3),
                "I|'m| | |123|45| years|\u{a0}old|,| they|'LL| see|:\n\n| | élan|²| | x|\u{300}!?\r\n| ",
            ),
            (
                llama(1),
                "I|'m| | |1|2|3|4|5| years|\u{a0}old|,| they|'LL| see|:\n\n| | élan|²| | x|\u{300}!?\r\n| ",
            ),
            (WordPattern::Whole, text),
        ] {
            assert_eq!(pattern.split(text).join("|"), words, "{pattern:?}");
        }
    }

    #[test]
    fn printable_characters_are_distinct() {
        let all: std::collections::BTreeSet<char> = (0..=255).map(printable).collect();
        assert_eq!(all.len(), 256);
        // As in GPT-2's vocabulary.
        let known = [b' ', b'\n', 0xad, 0x7f, 0xa0, b'a'].map(printable);
        assert_eq!(known, ['Ġ', 'Ċ', 'Ń', 'ġ', 'ł', 'a']);
    }
}
