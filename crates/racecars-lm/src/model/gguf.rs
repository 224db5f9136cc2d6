//! GGUF files: the metadata, weights and tokenizer of models of the Llama family.

use super::tokenizer::Tokens;
use crate::error::{Error, Result};
use candle_core::Device;
use candle_core::quantized::gguf_file::{Content, Value};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use tokenizers::models::bpe::BPE;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;
use tokenizers::{AddedToken, Tokenizer};

/// The pattern by which llama3's tokenizer splits a text before merging.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// An open GGUF file.
pub(super) struct Gguf {
    path: PathBuf,
    content: Content,
    reader: BufReader<File>,
}

impl Gguf {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| Error::system("open", path, error))?;
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let content = Content::read(&mut reader).map_err(|error| {
            Error::model(format!("{} is not a whole GGUF file: {error}", path.display()))
        })?;
        Ok(Gguf { path: path.to_path_buf(), content, reader })
    }

    fn value(&self, key: &str) -> Result<&Value> {
        self.content.metadata.get(key).ok_or_else(|| {
            Error::model(format!("{} has no `{key}` in its metadata", self.path.display()))
        })
    }

    /// An error about the value of `key`.
    fn wrong(&self, key: &str, error: impl std::fmt::Display) -> Error {
        Error::model(format!("`{key}` of {}: {error}", self.path.display()))
    }

    pub(super) fn text(&self, key: &str) -> Result<&str> {
        self.value(key)?.to_string().map(|text| &**text).map_err(|error| self.wrong(key, error))
    }

    pub(super) fn count(&self, key: &str) -> Result<usize> {
        let count = match self.value(key)? {
            Value::U32(x) => u64::from(*x),
            Value::U64(x) => *x,
            Value::I32(x) if *x >= 0 => u64::from(x.unsigned_abs()),
            Value::I64(x) if *x >= 0 => x.unsigned_abs(),
            other => return Err(self.wrong(key, format!("{other:?} is not a count"))),
        };
        // No count of a real model is this large; a damaged file must not exhaust memory.
        if count == 0 || count > 1 << 28 {
            return Err(self.wrong(key, format!("{count} is not between 1 and {}", 1 << 28)));
        }
        Ok(count as usize)
    }

    fn token(&self, key: &str, vocabulary: usize) -> Result<u32> {
        match self.value(key)?.to_u32() {
            Ok(token) if (token as usize) < vocabulary => Ok(token),
            _ => Err(self.wrong(key, format!("not a token, of which there are {vocabulary}"))),
        }
    }

    /// As [`Gguf::count`], for a key that may be missing.
    pub(super) fn count_or(&self, key: &str, default: usize) -> Result<usize> {
        match self.content.metadata.contains_key(key) {
            true => self.count(key),
            false => Ok(default),
        }
    }

    pub(super) fn number(&self, key: &str) -> Result<f64> {
        let value = self.value(key)?;
        (value.to_f32().map(f64::from).or_else(|_| value.to_f64()))
            .map_err(|error| self.wrong(key, error))
    }

    /// As [`Gguf::number`], for a key that may be missing.
    pub(super) fn number_or(&self, key: &str, default: f64) -> Result<f64> {
        match self.content.metadata.contains_key(key) {
            true => self.number(key),
            false => Ok(default),
        }
    }

    fn flag(&self, key: &str) -> bool {
        self.content.metadata.get(key).is_some_and(|value| value.to_bool().unwrap_or(false))
    }

    fn texts(&self, key: &str) -> Result<Vec<String>> {
        let values = self.value(key)?.to_vec().map_err(|error| self.wrong(key, error))?;
        (values.iter())
            .map(|value| value.to_string().cloned().map_err(|error| self.wrong(key, error)))
            .collect()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    /// A weight, dequantized, which must be of this shape.
    pub(super) fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let place = format!("`{name}` of {}", self.path.display());
        let refuse = |error: candle_core::Error| Error::model(error).within(&place);
        // Checked before reading, so that a damaged file cannot request any amount of memory.
        match self.content.tensor_infos.get(name) {
            None => return Err(Error::model(format!("{place} is missing"))),
            Some(info) if info.shape.dims() != shape => {
                let found = info.shape.dims();
                return Err(Error::model(format!("{place} is {found:?}, not {shape:?}")));
            }
            Some(_) => {}
        }
        let quantized =
            self.content.tensor(&mut self.reader, name, &Device::Cpu).map_err(refuse)?;
        let tensor = quantized.dequantize(&Device::Cpu).map_err(refuse)?;
        tensor.flatten_all().and_then(|tensor| tensor.to_vec1()).map_err(refuse)
    }

    /// The tokenizer inside the file: byte-level BPE, as SmolLM, GPT-2 and Llama 3 have it.
    pub(super) fn tokenizer(&self) -> Result<Tokens> {
        let model = self.text("tokenizer.ggml.model")?;
        if model != "gpt2" {
            return Err(self.wrong(
                "tokenizer.ggml.model",
                format!("`{model}` is not supported; byte-level BPE (`gpt2`) is"),
            ));
        }
        let texts = self.texts("tokenizer.ggml.tokens")?;
        let merges = (self.texts("tokenizer.ggml.merges")?.into_iter())
            .map(|merge| match merge.split_once(' ') {
                Some((left, right)) => Ok((left.to_string(), right.to_string())),
                None => {
                    Err(self.wrong("tokenizer.ggml.merges", format!("`{merge}` is not a pair")))
                }
            })
            .collect::<Result<Vec<_>>>()?;
        let vocabulary = texts.iter().cloned().zip(0..).collect::<tokenizers::models::bpe::Vocab>();
        let bpe = BPE::builder()
            .vocab_and_merges(vocabulary, merges)
            .build()
            .map_err(|error| self.wrong("tokenizer.ggml.merges", error))?;
        let mut tokenizer = Tokenizer::new(bpe);
        tokenizer.with_pre_tokenizer(Some(self.pre_tokenizer()?));
        // Types 3 (control) and 4 (user-defined) are matched in a text before it is split.
        if let Ok(Value::Array(types)) = self.value("tokenizer.ggml.token_type") {
            let whole = texts
                .iter()
                .zip(types)
                .filter(|(_, kind)| matches!(kind, Value::I32(3 | 4) | Value::U32(3 | 4)));
            let whole: Vec<_> =
                whole.map(|(text, _)| AddedToken::from(text.clone(), true)).collect();
            tokenizer.add_special_tokens(&whole);
        }
        let begin = match self.flag("tokenizer.ggml.add_bos_token") {
            true => vec![self.token("tokenizer.ggml.bos_token_id", texts.len())?],
            false => Vec::new(),
        };
        Ok(Tokens::new(tokenizer, begin, Vec::new(), None))
    }

    fn pre_tokenizer(&self) -> Result<PreTokenizerWrapper> {
        let bytes = |by_regex| ByteLevel::new(false, false, by_regex);
        let sequence = |first: PreTokenizerWrapper, then: ByteLevel| {
            PreTokenizerWrapper::Sequence(Sequence::new(vec![first, then.into()]))
        };
        let key = "tokenizer.ggml.pre";
        Ok(match self.text(key)? {
            "smollm" | "starcoder" | "refact" | "command-r" => {
                sequence(Digits::new(true).into(), bytes(true))
            }
            "gpt-2" | "gpt2" | "default" => bytes(true).into(),
            "llama3" | "llama-v3" | "llama-bpe" | "smaug-bpe" => {
                let pattern = SplitPattern::Regex(LLAMA3.to_string());
                let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false)
                    .map_err(|error| self.wrong(key, error))?;
                sequence(split.into(), bytes(false))
            }
            other => {
                let known = "smollm, starcoder, gpt-2, llama-bpe";
                return Err(self.wrong(key, format!("`{other}` is none of {known}")));
            }
        })
    }
}
