//! Language models: texts with a continuous prompt go in, logits of label words come out.
//!
//! A [`Model`] is opened from a GGUF file (causal models: Llama, Qwen, Gemma 3) or from a folder with a
//! RoBERTa (`config.json`, `model.safetensors`, `tokenizer.json`). Texts are tokenized once, into a
//! [`Batch`], on which any number of prompts can then be evaluated.

mod causal;
mod gguf;
mod quantized;
mod roberta;
mod tokenizer;
mod weights;

use crate::error::{Error, Result};
use causal::{Causal, KvCache};
use gguf::Gguf;
use racecars_lm_kernels::SequencePiece;
use roberta::Roberta;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::Path;
use tokenizer::Tokens;

pub(crate) use gguf::split_files;
pub(crate) use weights::{INDEX, indexed_files};

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
    Causal(Box<Causal>),
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
    /// `rows` gives all numbers, and is called twice.
    fn of<R: AsRef<[f32]>, I: Iterator<Item = R>>(rows: impl Fn() -> I) -> Self {
        let (mut count, mut sum) = (0, 0.0);
        for row in rows() {
            count += row.as_ref().len();
            row.as_ref().iter().for_each(|x| sum += f64::from(*x));
        }
        let count = count.max(1) as f64;
        let (mean, mut squares) = (sum / count, 0.0);
        for row in rows() {
            row.as_ref().iter().for_each(|x| squares += (f64::from(*x) - mean).powi(2));
        }
        EmbeddingStatistics { mean, std: (squares / count).sqrt() }
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
        files.sort();
        // The files of a split model count as one.
        files.dedup_by(|file, kept| gguf::split_files(kept).contains(file));
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
        let file = Gguf::open(path)?;
        let tokens = Tokens::from_gguf(&file)?;
        let causal = Causal::read(&file)?;
        tokens.check(causal.vocabulary).map_err(|error| error.within(path.display()))?;
        let info = ModelInfo {
            name: name(path),
            kind: ModelKind::Causal,
            hidden: causal.hidden(),
            layers: causal.depth(),
            vocabulary: causal.vocabulary,
            context: causal.context,
            embedding: EmbeddingStatistics::of(|| causal.embeddings()),
        };
        Ok(Model { info, tokens, network: Network::Causal(Box::new(causal)) })
    }

    fn open_roberta(folder: &Path) -> Result<Self> {
        let (roberta, tokens) = Roberta::read(folder)?;
        tokens.check(roberta.vocabulary()).map_err(|error| error.within(folder.display()))?;
        let info = ModelInfo {
            name: name(folder),
            kind: ModelKind::Masked,
            hidden: roberta.hidden(),
            layers: roberta.depth(),
            vocabulary: roberta.vocabulary(),
            context: roberta.context(),
            embedding: EmbeddingStatistics::of(|| std::iter::once(roberta.table())),
        };
        Ok(Model { info, tokens, network: Network::Roberta(Box::new(roberta)) })
    }

    /// The description of the model.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// The tokens of a text, without those at the beginning and end of every sequence.
    pub fn tokenize(&self, text: &str) -> Vec<u32> {
        self.tokens.of(text, false)
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
            base: self.tokenize(base),
            cache: None,
            tokens,
            bytes: tokens * size_of::<u32>(),
        };
        if let Network::Causal(causal) = &self.network {
            let before: usize = batch.rows.iter().map(|row| row.before.len()).sum();
            batch.bytes += before * causal.bytes_per_token();
            batch.cache = fill_cache(causal, &batch.rows);
        }
        Ok(batch)
    }

    fn row(&self, text: &InputText) -> Result<Row> {
        let mut before = self.tokens.begin().to_vec();
        before.extend(self.tokens.of(&text.before, true));
        let mut after = self.tokens.of(&text.after, text.before.is_empty());
        let mask = after.len();
        if let Some(token) = self.tokens.mask() {
            after.push(token);
            after.extend(self.tokenize(&text.tail));
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
            Network::Causal(causal) => causal_logits(causal, batch, &prompts),
            Network::Roberta(roberta) => masked_logits(roberta, batch, &prompts),
        };
        let per_prompt = batch.len() * batch.words();
        Ok(logits.chunks(per_prompt).map(<[f32]>::to_vec).collect())
    }

    fn embed(&self, tokens: &[u32], rows: &mut Vec<f32>) {
        match &self.network {
            Network::Causal(causal) => causal.embed(tokens, rows),
            Network::Roberta(roberta) => roberta.embed(tokens, rows),
        }
    }

    /// The embeddings of a text's tokens before and after the prompt, for who runs the network elsewhere.
    pub(crate) fn embedded(&self, text: &InputText) -> Result<[Vec<f32>; 2]> {
        let Row { before, after, .. } = self.row(text)?;
        Ok([before, after].map(|tokens| {
            let mut rows = Vec::new();
            self.embed(&tokens, &mut rows);
            rows
        }))
    }

    /// The token of a label word.
    pub(crate) fn word(&self, word: &str) -> Result<u32> {
        self.tokens.word(word)
    }
}

/// The name of a folder, or of a file without its ending or its number among others.
fn name(path: &Path) -> String {
    let name = path.file_name().map_or("model".into(), |name| name.to_string_lossy());
    match gguf::split_name(&name) {
        Some((stem, _)) => stem.to_string(),
        None if path.is_dir() => name.into_owned(),
        None => Path::new(&*name).with_extension("").to_string_lossy().into_owned(),
    }
}

/// Runs the tokens before the prompts and caches their keys and values.
fn fill_cache(causal: &Causal, rows: &[Row]) -> Option<KvCache> {
    let mut cache = KvCache::default();
    let mut from = 0;
    while from < rows.len() {
        let (mut x, mut pieces, mut count) = (Vec::new(), Vec::new(), 0);
        while from < rows.len()
            && (pieces.is_empty() || count + rows[from].before.len() <= TOKENS_AT_ONCE)
        {
            let before = &rows[from].before;
            causal.embed(before, &mut x);
            pieces.push(SequencePiece { position: 0, length: before.len(), past: 0..0 });
            count += before.len();
            from += 1;
        }
        if count > 0 {
            cache.append(causal.fill_cache(x, &pieces, None));
        }
    }
    (!cache.is_empty()).then_some(cache)
}

fn causal_logits(causal: &Causal, batch: &Batch, prompts: &[Vec<f32>]) -> Vec<f32> {
    let count = prompts.first().map_or(0, |prompt| prompt.len() / causal.hidden());
    let first = &batch.rows[0].before;
    let is_shared = count > 0
        && batch.rows.len() > 1
        && batch.rows.iter().all(|row| row.before == *first && !row.after.is_empty());
    if !is_shared {
        return each_logits(causal, batch, prompts);
    }
    let at_once = (TOKENS_AT_ONCE / count).max(1);
    prompts.chunks(at_once).flat_map(|prompts| shared_logits(causal, batch, prompts)).collect()
}

/// With texts that all begin with the prompt, or with the same tokens before it: the prompt's keys and values
/// are computed once for all of them.
fn shared_logits(causal: &Causal, batch: &Batch, prompts: &[Vec<f32>]) -> Vec<f32> {
    let (before, count) = (batch.rows[0].before.len(), prompts[0].len() / causal.hidden());
    let piece = SequencePiece { position: before, length: count, past: 0..before };
    let pieces = vec![piece; prompts.len()];
    let filled = causal.fill_cache(prompts.concat(), &pieces, batch.cache.as_ref());
    let mut cache = KvCache::default();
    for i in 0..prompts.len() {
        if let Some(texts) = &batch.cache {
            cache.append(texts.slice(0..before));
        }
        cache.append(filled.slice(i * count..(i + 1) * count));
    }
    let length = before + count;
    let mut run = Run::new(causal, batch, Some(&cache));
    for i in 0..prompts.len() {
        for row in &batch.rows {
            run.add(&[], &row.after, length, i * length..(i + 1) * length);
        }
    }
    run.finish()
}

/// With texts that differ before the prompt: it is run for each of them.
fn each_logits(causal: &Causal, batch: &Batch, prompts: &[Vec<f32>]) -> Vec<f32> {
    let mut run = Run::new(causal, batch, batch.cache.as_ref());
    for prompt in prompts {
        let mut end = 0;
        for row in &batch.rows {
            let start = end;
            end += row.before.len();
            match row.before.split_last() {
                // Without a token of its own, a text is read off at its last one.
                Some((last, before)) if prompt.is_empty() && row.after.is_empty() => {
                    run.add(&[], &[*last], before.len(), start..end - 1);
                }
                _ => run.add(prompt, &row.after, row.before.len(), start..end),
            }
        }
    }
    run.finish()
}

/// Collects pieces of sequences, runs as many at once as there is room for, and keeps the words' logits.
struct Run<'a> {
    causal: &'a Causal,
    batch: &'a Batch,
    past: Option<&'a KvCache>,
    x: Vec<f32>,
    pieces: Vec<SequencePiece>,
    logits: Vec<f32>,
}

impl<'a> Run<'a> {
    fn new(causal: &'a Causal, batch: &'a Batch, past: Option<&'a KvCache>) -> Self {
        Run { causal, batch, past, x: Vec::new(), pieces: Vec::new(), logits: Vec::new() }
    }

    /// A piece that consists of embeddings and tokens.
    fn add(&mut self, prompt: &[f32], tokens: &[u32], position: usize, past: Range<usize>) {
        let hidden = self.causal.hidden();
        let length = prompt.len() / hidden + tokens.len();
        if !self.pieces.is_empty() && self.x.len() / hidden + length > TOKENS_AT_ONCE {
            self.flush();
        }
        self.x.extend_from_slice(prompt);
        self.causal.embed(tokens, &mut self.x);
        self.pieces.push(SequencePiece { position, length, past });
    }

    fn flush(&mut self) {
        let (x, pieces) = (std::mem::take(&mut self.x), std::mem::take(&mut self.pieces));
        let states = self.causal.last_states(x, &pieces, self.past);
        self.logits.extend(self.causal.logits(&states, &self.batch.words));
    }

    fn finish(mut self) -> Vec<f32> {
        if !self.pieces.is_empty() {
            self.flush();
        }
        self.logits
    }
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
