//! Tokenizing texts: byte-level byte-pair encoding (Radford et al. 2019) and SentencePiece's variant of it, whose
//! merges are ordered by the scores of their results (Kudo and Richardson 2018).

mod merge;
mod read;
mod words;

use crate::error::{Error, Result};
use std::collections::HashMap;
use words::WordPattern;

/// A tokenizer, and the tokens around every text.
pub(crate) struct Tokens {
    vocabulary: HashMap<String, u32>,
    encoding: Encoding,
    added: AddedTokens,
    /// Whether a space precedes the text at the beginning of a sequence.
    has_space_first: bool,
    /// The tokens at the beginning of every sequence.
    begin: Vec<u32>,
    /// The tokens at the end of every sequence.
    end: Vec<u32>,
    /// The token whose position is predicted, in masked models.
    mask: Option<u32>,
}

enum Encoding {
    /// Words, as bytes that are written as printable characters.
    ByteLevel {
        pattern: WordPattern,
        /// The order in which pairs of tokens are merged.
        ranks: HashMap<(u32, u32), i64>,
        /// Whether a word that is a token is never split.
        keeps_words: bool,
    },
    /// Whole texts, with `▁` for spaces.
    SentencePiece {
        /// The order in which tokens are made, by token.
        ranks: Vec<i64>,
        /// The tokens of single bytes, for characters that have none.
        bytes: Vec<Option<u32>>,
        unknown: Option<u32>,
    },
}

/// Tokens that are found in a text before anything else.
#[derive(Default)]
struct AddedTokens {
    /// By first byte, longest first.
    tokens: HashMap<u8, Vec<AddedToken>>,
}

#[derive(Debug, Clone)]
struct AddedToken {
    text: String,
    token: u32,
    /// Whether it includes the white space before it.
    takes_left: bool,
    /// Whether it includes the white space after it.
    takes_right: bool,
}

impl AddedTokens {
    fn new(tokens: impl IntoIterator<Item = AddedToken>) -> Self {
        let mut added = AddedTokens::default();
        for token in tokens {
            if let Some(first) = token.text.bytes().next() {
                added.tokens.entry(first).or_default().push(token);
            }
        }
        for tokens in added.tokens.values_mut() {
            tokens.sort_by_key(|token| std::cmp::Reverse(token.text.len()));
        }
        added
    }

    /// The first added token of a text, and where it begins and ends.
    fn find(&self, text: &str) -> Option<(&AddedToken, usize, usize)> {
        let (at, token) = text.bytes().enumerate().find_map(|(at, first)| {
            let tokens = self.tokens.get(&first)?;
            let rest = &text.as_bytes()[at..];
            Some((at, tokens.iter().find(|token| rest.starts_with(token.text.as_bytes()))?))
        })?;
        let (before, after) = (&text[..at], &text[at + token.text.len()..]);
        let start = if token.takes_left { before.trim_end().len() } else { at };
        let taken = if token.takes_right { after.len() - after.trim_start().len() } else { 0 };
        Some((token, start, at + token.text.len() + taken))
    }
}

impl Tokens {
    pub(super) fn begin(&self) -> &[u32] {
        &self.begin
    }

    pub(super) fn end(&self) -> &[u32] {
        &self.end
    }

    pub(super) fn mask(&self) -> Option<u32> {
        self.mask
    }

    /// Checks that all tokens are among those of a model.
    pub(super) fn check(&self, vocabulary: usize) -> Result<()> {
        let largest = self.vocabulary.values().max().map_or(0, |token| *token as usize);
        match largest < vocabulary {
            true => Ok(()),
            false => Err(Error::model(format!(
                "token {largest} of the tokenizer is beyond the vocabulary of {vocabulary}"
            ))),
        }
    }

    /// The tokens of a text, without those around it. `is_first` is whether it is at the beginning of a
    /// sequence.
    pub(super) fn of(&self, text: &str, is_first: bool) -> Vec<u32> {
        let mut tokens = Vec::new();
        let has_space = matches!(self.encoding, Encoding::ByteLevel { .. })
            && text.starts_with(char::is_whitespace);
        let needs_space = is_first && self.has_space_first && !text.is_empty() && !has_space;
        let spaced = needs_space.then(|| format!(" {text}"));
        let mut rest = spaced.as_deref().unwrap_or(text);
        while let Some((added, start, end)) = self.added.find(rest) {
            self.encode(&rest[..start], &mut tokens);
            tokens.push(added.token);
            rest = &rest[end..];
        }
        self.encode(rest, &mut tokens);
        tokens
    }

    /// Appends the tokens of a text without added ones.
    fn encode(&self, text: &str, tokens: &mut Vec<u32>) {
        match &self.encoding {
            Encoding::ByteLevel { pattern, ranks, keeps_words } => {
                for word in pattern.split(text) {
                    let word: String = word.bytes().map(words::printable).collect();
                    if let (true, Some(token)) = (*keeps_words, self.vocabulary.get(&word)) {
                        tokens.push(*token);
                        continue;
                    }
                    let rank = |left: &str, right: &str| {
                        let pair = (*self.vocabulary.get(left)?, *self.vocabulary.get(right)?);
                        ranks.get(&pair).copied()
                    };
                    // Bytes without a token are left out, as elsewhere.
                    let symbols = merge::merge(&word, |at, middle, end| {
                        rank(&word[at..middle], &word[middle..end])
                    });
                    tokens.extend(symbols.filter_map(|part| self.vocabulary.get(part)));
                }
            }
            Encoding::SentencePiece { ranks, bytes, unknown } => {
                let text = text.replace(' ', "▁");
                let symbols = merge::merge(&text, |at, _, end| {
                    self.vocabulary.get(&text[at..end]).map(|token| ranks[*token as usize])
                });
                for part in symbols {
                    match self.vocabulary.get(part) {
                        Some(token) => tokens.push(*token),
                        None => tokens.extend(
                            part.bytes().filter_map(|byte| bytes[usize::from(byte)].or(*unknown)),
                        ),
                    }
                }
            }
        }
    }

    /// The token of a label word after a space.
    pub(super) fn word(&self, word: &str) -> Result<u32> {
        if word.trim() != word || word.is_empty() {
            return Err(Error::input(format!(
                "label word {word:?} is empty or has spaces around it"
            )));
        }
        match self.of(&format!(" {word}"), false)[..] {
            [token] => Ok(token),
            ref tokens => Err(Error::input(format!(
                "label word {word:?} is {} tokens in this model's vocabulary; it must be one",
                tokens.len()
            ))),
        }
    }
}
