//! RoBERTa with its masked-LM head (Liu et al. 2019), with embeddings as its input.
//!
//! Sequences are packed: a row per token and no padding. The head, with its vocabulary bias, is
//! computed only for the masked token and the words asked for.

use super::tokenizer::Tokens;
use super::weights::Weights;
use crate::error::{Error, Result};
use racecars_lm_kernels::{
    AttentionMask, Heads, LayerCache, Linear, SequencePiece, add, attend, dots, gelu, layer_norm,
};
use serde::Deserialize;
use std::path::Path;

/// The part of `config.json` that is used here.
#[derive(Debug, Deserialize)]
pub(super) struct RobertaConfig {
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    layer_norm_eps: f64,
    max_position_embeddings: usize,
    pad_token_id: usize,
    vocab_size: usize,
    #[serde(default = "default_activation")]
    hidden_act: String,
}

fn default_activation() -> String {
    "gelu".to_string()
}

pub(super) struct Roberta {
    config: RobertaConfig,
    /// The embedding table, a row per token.
    table: Vec<f32>,
    /// A row per position, to which the embedding of the only token type is added.
    positions: Vec<f32>,
    norm: LayerNorm,
    layers: Vec<RobertaLayer>,
    head: Linear,
    head_norm: LayerNorm,
    /// The head's table, if it is not the embedding table.
    decoder: Option<Vec<f32>>,
    bias: Vec<f32>,
}

struct RobertaLayer {
    /// The weights of queries, keys and values, concatenated.
    attention: Linear,
    attention_out: Linear,
    norm: LayerNorm,
    feed: Linear,
    feed_out: Linear,
    feed_norm: LayerNorm,
}

struct LayerNorm {
    weight: Vec<f32>,
    bias: Vec<f32>,
    epsilon: f32,
}

impl LayerNorm {
    fn apply(&self, x: &[f32]) -> Vec<f32> {
        layer_norm(x, &self.weight, &self.bias, self.epsilon)
    }
}

impl Roberta {
    pub(super) fn read(folder: &Path) -> Result<(Self, Tokens)> {
        let place = |name: &str| folder.join(name);
        let config = RobertaConfig::read(&place("config.json"))?;
        let tokens = Tokens::from_json(&place("tokenizer.json"))?;
        let roberta = Roberta::new(config, &mut Weights::read(folder)?)
            .map_err(|error| error.within(folder.display()))?;
        Ok((roberta, tokens))
    }

    fn new(config: RobertaConfig, weights: &mut Weights) -> Result<Self> {
        let (hidden, vocabulary) = (config.hidden_size, config.vocab_size);
        let table =
            weights.take("roberta.embeddings.word_embeddings.weight", &[vocabulary, hidden])?;
        let mut positions = weights.take(
            "roberta.embeddings.position_embeddings.weight",
            &[config.max_position_embeddings, hidden],
        )?;
        // RoBERTa has one token type; models fine-tuned from others may carry two.
        let kinds = weights.take_any("roberta.embeddings.token_type_embeddings.weight")?;
        match kinds.get(..hidden) {
            Some(kind) => positions.chunks_exact_mut(hidden).for_each(|row| add(row, kind)),
            None => return Err(Error::model("the embedding of the token type is too short")),
        }
        let layers = (0..config.num_hidden_layers)
            .map(|i| RobertaLayer::read(&config, weights, &format!("roberta.encoder.layer.{i}")))
            .collect::<Result<_>>()?;
        let decoder = match weights.has("lm_head.decoder.weight") {
            true => Some(weights.take("lm_head.decoder.weight", &[vocabulary, hidden])?),
            false => None,
        };
        Ok(Roberta {
            table,
            positions,
            norm: weights.norm("roberta.embeddings.LayerNorm", &config)?,
            layers,
            head: weights.linear(&["lm_head.dense"], hidden, hidden)?,
            head_norm: weights.norm("lm_head.layer_norm", &config)?,
            decoder,
            bias: weights.take("lm_head.bias", &[vocabulary])?,
            config,
        })
    }

    pub(super) fn hidden(&self) -> usize {
        self.config.hidden_size
    }

    pub(super) fn depth(&self) -> usize {
        self.layers.len()
    }

    pub(super) fn vocabulary(&self) -> usize {
        self.config.vocab_size
    }

    /// Positions start after the index of the padding token.
    pub(super) fn context(&self) -> usize {
        self.config.max_position_embeddings - self.config.pad_token_id - 1
    }

    pub(super) fn table(&self) -> &[f32] {
        &self.table
    }

    /// Appends the embeddings of tokens, which must be in the vocabulary, without their positions.
    pub(super) fn embed(&self, tokens: &[u32], rows: &mut Vec<f32>) {
        for &token in tokens {
            let start = token as usize * self.hidden();
            rows.extend_from_slice(&self.table[start..start + self.hidden()]);
        }
    }

    /// The logits of words at one position of each sequence. `x` has the concatenated embeddings of the
    /// sequences, `sequences` the length and the position of each.
    pub(super) fn logits(
        &self,
        mut x: Vec<f32>,
        sequences: &[(usize, usize)],
        words: &[u32],
    ) -> Vec<f32> {
        let hidden = self.hidden();
        let first = (self.config.pad_token_id + 1) * hidden;
        let mut rest = &mut x[..];
        for (length, _) in sequences {
            let (sequence, others) = rest.split_at_mut(length * hidden);
            add(sequence, &self.positions[first..]);
            rest = others;
        }
        let pieces: Vec<SequencePiece> = (sequences.iter())
            .map(|&(length, _)| SequencePiece { position: 0, length, past: 0..0 })
            .collect();
        let mut x = self.norm.apply(&x);
        for layer in &self.layers {
            x = layer.apply(&x, &pieces, self.heads());
        }
        let mut read = Vec::with_capacity(sequences.len() * hidden);
        let mut start = 0;
        for (length, place) in sequences {
            read.extend_from_slice(&x[(start + place) * hidden..][..hidden]);
            start += length;
        }
        let read = self.head_norm.apply(&gelu(&self.head.apply(&read)));
        let table = self.decoder.as_ref().unwrap_or(&self.table);
        let row = |word: u32| &table[word as usize * hidden..][..hidden];
        (read.chunks_exact(hidden))
            .flat_map(|state| {
                let products = dots(state, words.iter().map(|&word| row(word)));
                products.into_iter().zip(words).map(|(x, &word)| x + self.bias[word as usize])
            })
            .collect()
    }

    fn heads(&self) -> Heads {
        let count = self.config.num_attention_heads;
        Heads { queries: count, keys: count, width: self.hidden() / count }
    }
}

impl RobertaConfig {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).map_err(|error| Error::system("read", path, error))?;
        let wrong = |error| Error::model(format!("{}: {error}", path.display()));
        let value: serde_json::Value = serde_json::from_str(&text).map_err(wrong)?;
        let kind = value.get("model_type").and_then(serde_json::Value::as_str).unwrap_or("none");
        // Checked before the fields, since other models have other fields.
        if kind != "roberta" {
            return Err(Error::model(format!(
                "{}: model_type `{kind}` is not supported; `roberta` is, and GGUF files of causal models",
                path.display()
            )));
        }
        let config: RobertaConfig = serde_json::from_value(value).map_err(wrong)?;
        config.check().map_err(|error| error.within(path.display()))?;
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        if self.hidden_act != "gelu" {
            let found = &self.hidden_act;
            return Err(Error::model(format!("hidden_act `{found}` is not supported; `gelu` is")));
        }
        if self.num_attention_heads == 0
            || self.hidden_size == 0
            || !self.hidden_size.is_multiple_of(self.num_attention_heads)
        {
            return Err(Error::model(format!(
                "hidden_size {} is not a multiple of num_attention_heads {}",
                self.hidden_size, self.num_attention_heads
            )));
        }
        if self.max_position_embeddings <= self.pad_token_id + 1 {
            return Err(Error::model(format!(
                "max_position_embeddings {} leaves no position after pad_token_id {}",
                self.max_position_embeddings, self.pad_token_id
            )));
        }
        Ok(())
    }
}

impl RobertaLayer {
    fn read(config: &RobertaConfig, weights: &mut Weights, name: &str) -> Result<Self> {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let named = |part: &str| format!("{name}.{part}");
        let attention =
            ["query", "key", "value"].map(|part| named(&format!("attention.self.{part}")));
        Ok(RobertaLayer {
            attention: weights.linear(&attention.each_ref().map(|n| &**n), hidden, hidden)?,
            attention_out: weights.linear(&[&named("attention.output.dense")], hidden, hidden)?,
            norm: weights.norm(&named("attention.output.LayerNorm"), config)?,
            feed: weights.linear(&[&named("intermediate.dense")], inner, hidden)?,
            feed_out: weights.linear(&[&named("output.dense")], hidden, inner)?,
            feed_norm: weights.norm(&named("output.LayerNorm"), config)?,
        })
    }

    fn apply(&self, x: &[f32], pieces: &[SequencePiece], heads: Heads) -> Vec<f32> {
        let rows = self.attention.apply(x);
        let (nothing, scale) = (LayerCache::default(), 1.0 / (heads.width as f32).sqrt());
        let seen = attend(&rows, pieces, heads, &nothing, AttentionMask::Full, scale);
        let mut out = self.attention_out.apply(&seen);
        add(&mut out, x);
        let x = self.norm.apply(&out);
        let mut fed = self.feed_out.apply(&gelu(&self.feed.apply(&x)));
        add(&mut fed, &x);
        self.feed_norm.apply(&fed)
    }
}

impl Weights {
    /// Linear maps of the same shape, side by side.
    fn linear(&mut self, names: &[&str], outputs: usize, inputs: usize) -> Result<Linear> {
        let (mut weight, mut bias) = (Vec::new(), Vec::new());
        for name in names {
            weight.extend(self.take(&format!("{name}.weight"), &[outputs, inputs])?);
            bias.extend(self.take(&format!("{name}.bias"), &[outputs])?);
        }
        Ok(Linear::new(&weight, inputs, bias))
    }

    fn norm(&mut self, name: &str, config: &RobertaConfig) -> Result<LayerNorm> {
        let mut of = |part: &str| self.take(&format!("{name}.{part}"), &[config.hidden_size]);
        let epsilon = config.layer_norm_eps as f32;
        Ok(LayerNorm { weight: of("weight")?, bias: of("bias")?, epsilon })
    }
}
