//! Tokenizing texts.

use crate::error::{Error, Result};
use tokenizers::Tokenizer;

/// A tokenizer, and the tokens around every text.
pub(crate) struct Tokens {
    tokenizer: Tokenizer,
    /// The tokens at the beginning of every sequence.
    begin: Vec<u32>,
    /// The tokens at the end of every sequence.
    end: Vec<u32>,
    /// The token whose position is predicted, in masked models.
    mask: Option<u32>,
}

impl Tokens {
    pub(super) fn new(
        tokenizer: Tokenizer,
        begin: Vec<u32>,
        end: Vec<u32>,
        mask: Option<u32>,
    ) -> Self {
        Tokens { tokenizer, begin, end, mask }
    }

    pub(super) fn begin(&self) -> &[u32] {
        &self.begin
    }

    pub(super) fn end(&self) -> &[u32] {
        &self.end
    }

    pub(super) fn mask(&self) -> Option<u32> {
        self.mask
    }

    /// The tokens of a text, without those around it.
    pub(super) fn of(&self, text: &str) -> Result<Vec<u32>> {
        let encoding = (self.tokenizer.encode_fast(text, false))
            .map_err(|error| Error::input(format!("cannot tokenize {text:?}: {error}")))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The token of a label word after a space.
    pub(super) fn word(&self, word: &str) -> Result<u32> {
        if word.trim() != word || word.is_empty() {
            return Err(Error::input(format!(
                "label word {word:?} is empty or has spaces around it"
            )));
        }
        match self.of(&format!(" {word}"))?[..] {
            [token] => Ok(token),
            ref tokens => Err(Error::input(format!(
                "label word {word:?} is {} tokens in this model's vocabulary; it must be one",
                tokens.len()
            ))),
        }
    }
}
