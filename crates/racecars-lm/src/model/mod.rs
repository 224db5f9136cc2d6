//! Language models: texts with a continuous prompt go in, logits of label words come out.
//!
//! A [`Model`] is opened from a GGUF file (causal models of the Llama family) or from a folder with a
//! RoBERTa (`config.json`, `model.safetensors`, `tokenizer.json`). Texts are tokenized once, into a
//! [`Batch`], on which any number of prompts can then be evaluated.

mod gguf;
mod kernels;
mod linear;
mod llama;
mod roberta;
mod tokenizer;

use crate::error::{Error, Result};
use gguf::Gguf;
use kernels::SequencePiece;
use llama::{KvCache, Llama};
use roberta::Roberta;
use serde::{Deserialize, Serialize};
use std::path::Path;
use tokenizer::Tokens;

/// The number of tokens run at once: enough for fast matrix products, with little memory.
const TOKENS_AT_ONCE: usize = 2048;

/// A language model.
pub struct Model {
    info: ModelInfo,
    tokens: Tokens,
    network: Network,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("info", &self.info).finish_non_exhaustive()
    }
}

enum Network {
    Llama(Box<Llama>),
    Roberta(Box<Roberta>),
}

/// The public description of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Its name, from the file name.
    pub name: String,
    /// Which token it predicts.
    pub kind: ModelKind,
    /// The length of a token's embedding.
    pub hidden: usize,
    /// The number of layers.
    pub layers: usize,
    /// The size of the vocabulary.
    pub vocabulary: usize,
    /// The longest sequence, prompt included.
    pub context: usize,
    /// Statistics of the embedding table, which scale the random projection.
    pub embedding: EmbeddingStatistics,
}

/// Which token a model predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelKind {
    /// The next token.
    Causal,
    /// A masked token.
    Masked,
}

/// Mean and standard deviation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EmbeddingStatistics {
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub std: f64,
}

impl EmbeddingStatistics {
    fn of(numbers: &[f32]) -> Self {
        let count = numbers.len().max(1) as f64;
        let mean = numbers.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
        let square = numbers.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / count;
        EmbeddingStatistics { mean, std: square.sqrt() }
    }
}

/// A text around the position of the prompt: `before`, prompt, `after`, label word, `tail`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputText {
    /// The text before the prompt.
    #[serde(default)]
    pub before: String,
    /// The text between the prompt and the label word.
    #[serde(default)]
    pub after: String,
    /// The text after the label word; causal models ignore it.
    #[serde(default)]
    pub tail: String,
}

/// A text's tokens around the prompt.
struct Row {
    before: Vec<u32>,
    after: Vec<u32>,
    /// The index in `after` of the masked token, in masked models.
    mask: usize,
}

/// Texts and label words, ready for any number of prompts.
pub struct Batch {
    rows: Vec<Row>,
    words: Vec<u32>,
    /// The tokens whose embeddings, repeated, are added to every prompt.
    base: Vec<u32>,
    cache: Option<KvCache>,
    tokens: usize,
    bytes: usize,
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("tokens", &self.tokens)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Batch {
    /// The number of texts.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no text, which never happens.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The number of label words.
    pub fn words(&self) -> usize {
        self.words.len()
    }

    /// The number of tokens of all texts, without prompts.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Its approximate size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of tokens of the longest text, without prompt.
    pub fn longest(&self) -> usize {
        self.rows.iter().map(|row| row.before.len() + row.after.len()).max().unwrap_or(0)
    }
}

/// Checks that a `config.json` is that of a supported model.
pub(crate) fn check_config(path: &Path) -> Result<()> {
    roberta::RobertaConfig::read(path).map(|_| ())
}

impl Model {
    /// Opens a GGUF file, a folder with one, or a folder with a RoBERTa.
    pub fn open(path: &Path) -> Result<Self> {
        if !path.is_dir() {
            return Model::open_gguf(path);
        }
        if path.join("config.json").is_file() {
            return Model::open_roberta(path);
        }
        let files = std::fs::read_dir(path).map_err(|error| Error::system("read", path, error))?;
        let mut files: Vec<_> = (files.filter_map(|file| Some(file.ok()?.path())))
            .filter(|file| file.extension().is_some_and(|extension| extension == "gguf"))
            .collect();
        match (files.pop(), files.is_empty()) {
            (Some(file), true) => Model::open_gguf(&file),
            (Some(_), false) => Err(Error::model(format!(
                "{} has several GGUF files: name one of them",
                path.display()
            ))),
            (None, _) => Err(Error::model(format!(
                "{} has neither a GGUF file nor a config.json",
                path.display()
            ))),
        }
    }

    fn open_gguf(path: &Path) -> Result<Self> {
        let mut file = Gguf::open(path)?;
        let tokens = file.tokenizer()?;
        let llama = Llama::read(&mut file)?;
        let info = ModelInfo {
            name: name(path),
            kind: ModelKind::Causal,
            hidden: llama.hidden(),
            layers: llama.depth(),
            vocabulary: llama.vocabulary,
            context: llama.context,
            embedding: EmbeddingStatistics::of(llama.table()),
        };
        Ok(Model { info, tokens, network: Network::Llama(Box::new(llama)) })
    }

    fn open_roberta(folder: &Path) -> Result<Self> {
        let (roberta, tokens) = Roberta::read(folder)?;
        let info = ModelInfo {
            name: name(folder),
            kind: ModelKind::Masked,
            hidden: roberta.hidden(),
            layers: roberta.depth(),
            vocabulary: roberta.vocabulary(),
            context: roberta.context(),
            embedding: EmbeddingStatistics::of(roberta.table()),
        };
        Ok(Model { info, tokens, network: Network::Roberta(Box::new(roberta)) })
    }

    /// The description of the model.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// The tokens of a text, without those at the beginning and end of every sequence.
    pub fn tokenize(&self, text: &str) -> Result<Vec<u32>> {
        let tokens = self.tokens.of(text)?;
        match tokens.iter().find(|&&token| token as usize >= self.info.vocabulary) {
            Some(token) => Err(Error::model(format!(
                "token {token} of the tokenizer is beyond the vocabulary of {}",
                self.info.vocabulary
            ))),
            None => Ok(tokens),
        }
    }

    /// Tokenizes texts. `words` are the label words. `base`, if not empty, is a text whose embedding is added
    /// to every prompt, repeated if it is shorter. The texts may have at most `most_tokens` tokens in total.
    pub fn prepare(
        &self,
        texts: &[InputText],
        words: &[String],
        base: &str,
        most_tokens: usize,
    ) -> Result<Batch> {
        if texts.is_empty() {
            return Err(Error::input("there are no texts"));
        }
        if words.len() < 2 {
            return Err(Error::input(format!(
                "{} label words; at least 2 are needed",
                words.len()
            )));
        }
        let rows = (texts.iter().enumerate())
            .map(|(i, text)| self.row(text).map_err(|error| error.within(format!("text {i}"))))
            .collect::<Result<Vec<_>>>()?;
        let word_tokens =
            words.iter().map(|word| self.tokens.word(word)).collect::<Result<Vec<_>>>()?;
        for (i, token) in word_tokens.iter().enumerate() {
            if word_tokens[..i].contains(token) {
                return Err(Error::input(format!("label word {:?} is there twice", words[i])));
            }
        }
        let tokens = rows.iter().map(|row| row.before.len() + row.after.len()).sum();
        if tokens > most_tokens {
            return Err(Error::input(format!(
                "{tokens} tokens of text; at most {most_tokens} are allowed"
            )));
        }
        let mut batch = Batch {
            rows,
            words: word_tokens,
            base: self.tokenize(base)?,
            cache: None,
            tokens,
            bytes: tokens * size_of::<u32>(),
        };
        if let Network::Llama(llama) = &self.network {
            let before: usize = batch.rows.iter().map(|row| row.before.len()).sum();
            batch.bytes += before * llama.bytes_per_token();
            batch.cache = fill_cache(llama, &batch.rows);
        }
        Ok(batch)
    }

    fn row(&self, text: &InputText) -> Result<Row> {
        let mut before = self.tokens.begin().to_vec();
        before.extend(self.tokenize(&text.before)?);
        let mut after = self.tokenize(&text.after)?;
        let mask = after.len();
        if let Some(token) = self.tokens.mask() {
            after.push(token);
            after.extend(self.tokenize(&text.tail)?);
            after.extend(self.tokens.end());
        }
        let length = before.len() + after.len();
        if length == 0 {
            return Err(Error::input("it has no tokens"));
        }
        self.check_length(length)?;
        Ok(Row { before, after, mask })
    }

    fn check_length(&self, length: usize) -> Result<()> {
        let context = self.info.context;
        match length <= context {
            true => Ok(()),
            false => {
                Err(Error::input(format!("{length} tokens are more than the model's {context}")))
            }
        }
    }

    /// The label words' logits for each prompt: a row per text, a column per word. A prompt is the
    /// concatenation of its tokens' embeddings; all must have the same length, and may be empty.
    pub fn logits(&self, batch: &Batch, prompts: &[Vec<f32>]) -> Result<Vec<Vec<f32>>> {
        let hidden = self.info.hidden;
        let length = prompts.first().map_or(0, Vec::len);
        for (i, prompt) in prompts.iter().enumerate() {
            if prompt.len() != length || !length.is_multiple_of(hidden) {
                return Err(Error::input(format!(
                    "prompt {i} has {} numbers; all must have as many, a multiple of {hidden}",
                    prompt.len()
                )));
            }
            if let Some(place) = prompt.iter().position(|x| !x.is_finite()) {
                return Err(Error::input(format!(
                    "number {place} of prompt {i} is {}, which is not finite",
                    prompt[place]
                )));
            }
        }
        let count = length / hidden;
        self.check_length(batch.longest() + count).map_err(|error| error.within("with prompt"))?;
        if batch.rows.iter().any(|row| row.after.len() + count == 0) {
            return Err(Error::input(
                "an empty prompt needs texts in which something follows the prompt",
            ));
        }
        let mut base = Vec::with_capacity(length);
        let cycle: Vec<u32> = batch.base.iter().copied().cycle().take(count).collect();
        self.embed(&cycle, &mut base);
        let prompts: Vec<Vec<f32>> = (prompts.iter())
            .map(|prompt| match base.is_empty() {
                true => prompt.clone(),
                false => prompt.iter().zip(&base).map(|(p, b)| p + b).collect(),
            })
            .collect();
        let logits = match &self.network {
            Network::Llama(llama) => causal_logits(llama, batch, &prompts),
            Network::Roberta(roberta) => masked_logits(roberta, batch, &prompts),
        };
        let per_prompt = batch.len() * batch.words();
        Ok(logits.chunks(per_prompt).map(<[f32]>::to_vec).collect())
    }

    fn embed(&self, tokens: &[u32], rows: &mut Vec<f32>) {
        match &self.network {
            Network::Llama(llama) => llama.embed(tokens, rows),
            Network::Roberta(roberta) => roberta.embed(tokens, rows),
        }
    }
}

fn name(path: &Path) -> String {
    let stem = if path.is_dir() { path.file_name() } else { path.file_stem() };
    stem.map_or("model".to_string(), |stem| stem.to_string_lossy().into_owned())
}

/// Runs the tokens before the prompts and caches their keys and values.
fn fill_cache(llama: &Llama, rows: &[Row]) -> Option<KvCache> {
    let mut cache: Option<KvCache> = None;
    let mut from = 0;
    while from < rows.len() {
        let (mut x, mut pieces, mut count) = (Vec::new(), Vec::new(), 0);
        while from < rows.len()
            && (pieces.is_empty() || count + rows[from].before.len() <= TOKENS_AT_ONCE)
        {
            let before = &rows[from].before;
            llama.embed(before, &mut x);
            pieces.push(SequencePiece { position: 0, length: before.len(), past: 0..0 });
            count += before.len();
            from += 1;
        }
        if count > 0 {
            let more = llama.fill_cache(x, &pieces);
            match &mut cache {
                Some(cache) => cache.append(more),
                None => cache = Some(more),
            }
        }
    }
    cache
}

fn causal_logits(llama: &Llama, batch: &Batch, prompts: &[Vec<f32>]) -> Vec<f32> {
    let mut logits = Vec::new();
    let pasts: Vec<_> = (batch.rows.iter())
        .scan(0, |end, row| {
            let start = *end;
            *end += row.before.len();
            Some(start..*end)
        })
        .collect();
    let (mut x, mut pieces, mut count) = (Vec::new(), Vec::new(), 0);
    let mut run = |x: &mut Vec<f32>, pieces: &mut Vec<SequencePiece>| {
        let states =
            llama.last_states(std::mem::take(x), &std::mem::take(pieces), batch.cache.as_ref());
        logits.extend(llama.logits(&states, &batch.words));
    };
    for prompt in prompts {
        for (row, past) in batch.rows.iter().zip(&pasts) {
            let length = prompt.len() / llama.hidden() + row.after.len();
            if !pieces.is_empty() && count + length > TOKENS_AT_ONCE {
                run(&mut x, &mut pieces);
                count = 0;
            }
            x.extend_from_slice(prompt);
            llama.embed(&row.after, &mut x);
            pieces.push(SequencePiece { position: row.before.len(), length, past: past.clone() });
            count += length;
        }
    }
    if !pieces.is_empty() {
        run(&mut x, &mut pieces);
    }
    logits
}

/// In masked models every token attends to every other, so nothing can be cached.
fn masked_logits(roberta: &Roberta, batch: &Batch, prompts: &[Vec<f32>]) -> Vec<f32> {
    let (mut x, mut sequences, mut count) = (Vec::new(), Vec::new(), 0);
    let mut logits = Vec::new();
    let mut run = |x: &mut Vec<f32>, sequences: &mut Vec<(usize, usize)>| {
        let (x, sequences) = (std::mem::take(x), std::mem::take(sequences));
        logits.extend(roberta.logits(x, &sequences, &batch.words));
    };
    for prompt in prompts {
        for row in &batch.rows {
            let place = row.before.len() + prompt.len() / roberta.hidden();
            let length = place + row.after.len();
            if !sequences.is_empty() && count + length > TOKENS_AT_ONCE {
                run(&mut x, &mut sequences);
                count = 0;
            }
            roberta.embed(&row.before, &mut x);
            x.extend_from_slice(prompt);
            roberta.embed(&row.after, &mut x);
            sequences.push((length, place + row.mask));
            count += length;
        }
    }
    if !sequences.is_empty() {
        run(&mut x, &mut sequences);
    }
    logits
}
