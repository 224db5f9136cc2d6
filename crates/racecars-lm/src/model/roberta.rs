//! RoBERTa with its masked-LM head (Liu et al. 2019), with embeddings as its input.
//!
//! Sequences of a batch are padded to the longest; a mask keeps tokens from seeing the padding. The
//! head, with its vocabulary bias, is computed only for the masked token and the words asked for.

use super::tokenizer::Tokens;
use crate::error::{Error, Result};
use candle_core::{D, DType, Device, IndexOp, Tensor};
use candle_nn::{LayerNorm, Linear, Module, VarBuilder, ops};
use serde::Deserialize;
use std::path::Path;
use tokenizers::Tokenizer;

/// The part of `config.json` that matters here.
#[derive(Debug, Deserialize)]
struct Config {
    model_type: String,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    layer_norm_eps: f64,
    max_position_embeddings: usize,
    pad_token_id: usize,
    vocab_size: usize,
    #[serde(default = "gelu")]
    hidden_act: String,
}

fn gelu() -> String {
    "gelu".to_string()
}

pub(super) struct Roberta {
    config: Config,
    words: Tensor,
    positions: Tensor,
    /// The embedding of the only token type.
    kind: Tensor,
    norm: LayerNorm,
    layers: Vec<Layer>,
    head: Linear,
    head_norm: LayerNorm,
    /// The head's table, which usually is that of the words, and its bias.
    decoder: Tensor,
    bias: Tensor,
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    out: Linear,
    norm: LayerNorm,
    feed: Linear,
    feed_out: Linear,
    feed_norm: LayerNorm,
}

impl Roberta {
    pub(super) fn read(folder: &Path) -> Result<(Self, Tokens)> {
        let place = |name: &str| folder.join(name);
        let path = place("config.json");
        let text =
            std::fs::read_to_string(&path).map_err(|error| Error::system("read", &path, error))?;
        let config: Config = serde_json::from_str(&text)
            .map_err(|error| Error::model(format!("{}: {error}", path.display())))?;
        config.check().map_err(|error| error.within(path.display()))?;
        let path = place("model.safetensors");
        let tensors = candle_core::safetensors::load(&path, &Device::Cpu)
            .map_err(|error| Error::model(format!("{}: {error}", path.display())))?;
        let weights = VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu);
        let tokens = tokens(&place("tokenizer.json"))?;
        let roberta = Roberta::new(config, &weights)
            .map_err(|error| Error::model(format!("{}: {error}", path.display())))?;
        Ok((roberta, tokens))
    }

    fn new(config: Config, weights: &VarBuilder<'_>) -> candle_core::Result<Self> {
        let (hidden, vocabulary) = (config.hidden_size, config.vocab_size);
        let epsilon = config.layer_norm_eps;
        let embeddings = weights.pp("roberta.embeddings");
        let words = embeddings.get((vocabulary, hidden), "word_embeddings.weight")?;
        let positions = (config.max_position_embeddings, hidden);
        let layers = (0..config.num_hidden_layers)
            .map(|i| Layer::new(&config, &weights.pp(format!("roberta.encoder.layer.{i}"))))
            .collect::<candle_core::Result<_>>()?;
        let head = weights.pp("lm_head");
        let decoder = match head.contains_tensor("decoder.weight") {
            true => head.get((vocabulary, hidden), "decoder.weight")?,
            false => words.clone(),
        };
        Ok(Roberta {
            words,
            positions: embeddings.get(positions, "position_embeddings.weight")?,
            // RoBERTa has one token type; models fine-tuned from others may carry two.
            kind: embeddings.get_unchecked("token_type_embeddings.weight")?.i(0)?,
            norm: candle_nn::layer_norm(hidden, epsilon, embeddings.pp("LayerNorm"))?,
            layers,
            head: candle_nn::linear(hidden, hidden, head.pp("dense"))?,
            head_norm: candle_nn::layer_norm(hidden, epsilon, head.pp("layer_norm"))?,
            decoder,
            bias: head.get(vocabulary, "bias")?,
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

    /// Positions are counted from one after the padding token's number.
    pub(super) fn context(&self) -> usize {
        self.config.max_position_embeddings - self.config.pad_token_id - 1
    }

    pub(super) fn table(&self) -> Result<Vec<f32>> {
        Ok(self.words.flatten_all()?.to_vec1()?)
    }

    /// Appends the embeddings of tokens, without their positions.
    pub(super) fn embed(&self, tokens: &[u32], rows: &mut Vec<f32>) -> Result<()> {
        if !tokens.is_empty() {
            let tokens = Tensor::new(tokens, &Device::Cpu)?;
            rows.extend(self.words.index_select(&tokens, 0)?.flatten_all()?.to_vec1::<f32>()?);
        }
        Ok(())
    }

    /// The logits of some words at one place of each sequence of embeddings.
    pub(super) fn logits(
        &self,
        sequences: &[(Vec<f32>, usize)],
        words: &[u32],
    ) -> Result<Vec<f32>> {
        let hidden = self.hidden();
        let lengths: Vec<usize> = sequences.iter().map(|(x, _)| x.len() / hidden).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let mut padded = Vec::with_capacity(sequences.len() * longest * hidden);
        let mut mask = Vec::with_capacity(sequences.len() * longest);
        for ((x, _), length) in sequences.iter().zip(&lengths) {
            padded.extend_from_slice(x);
            padded.resize(padded.len() + (longest - length) * hidden, 0.0);
            mask.extend((0..longest).map(|i| if i < *length { 0.0 } else { f32::MIN }));
        }
        let x = Tensor::from_vec(padded, (sequences.len(), longest, hidden), &Device::Cpu)?;
        let mask = Tensor::from_vec(mask, (sequences.len(), 1, 1, longest), &Device::Cpu)?;
        let states = self.states(&x, &mask)?;
        let reads = (sequences.iter().enumerate())
            .map(|(i, (_, place))| states.i((i, *place)))
            .collect::<candle_core::Result<Vec<_>>>()?;
        let read = Tensor::stack(&reads, 0)?;
        let read = self.head_norm.forward(&self.head.forward(&read)?.gelu_erf()?)?;
        let words = Tensor::new(words, &Device::Cpu)?;
        let table = self.decoder.index_select(&words, 0)?;
        let logits =
            read.matmul(&table.t()?)?.broadcast_add(&self.bias.index_select(&words, 0)?)?;
        Ok(logits.flatten_all()?.to_vec1()?)
    }

    fn states(&self, x: &Tensor, mask: &Tensor) -> candle_core::Result<Tensor> {
        let length = x.dim(1)?;
        let positions = self.positions.narrow(0, self.config.pad_token_id + 1, length)?;
        let x = x.broadcast_add(&positions)?.broadcast_add(&self.kind)?;
        let mut x = self.norm.forward(&x)?;
        for layer in &self.layers {
            x = layer.forward(&x, mask, self.config.num_attention_heads)?;
        }
        Ok(x)
    }
}

impl Config {
    fn check(&self) -> Result<()> {
        if self.model_type != "roberta" {
            let found = &self.model_type;
            return Err(Error::model(format!(
                "model_type `{found}` is not supported; `roberta` is"
            )));
        }
        if self.hidden_act != "gelu" {
            let found = &self.hidden_act;
            return Err(Error::model(format!("hidden_act `{found}` is not supported; `gelu` is")));
        }
        if self.num_attention_heads == 0
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

impl Layer {
    fn new(config: &Config, weights: &VarBuilder<'_>) -> candle_core::Result<Self> {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let square = |name: &str| candle_nn::linear(hidden, hidden, weights.pp(name));
        let norm =
            |name: &str| candle_nn::layer_norm(hidden, config.layer_norm_eps, weights.pp(name));
        Ok(Layer {
            query: square("attention.self.query")?,
            key: square("attention.self.key")?,
            value: square("attention.self.value")?,
            out: square("attention.output.dense")?,
            norm: norm("attention.output.LayerNorm")?,
            feed: candle_nn::linear(hidden, inner, weights.pp("intermediate.dense"))?,
            feed_out: candle_nn::linear(inner, hidden, weights.pp("output.dense"))?,
            feed_norm: norm("output.LayerNorm")?,
        })
    }

    fn forward(&self, x: &Tensor, mask: &Tensor, heads: usize) -> candle_core::Result<Tensor> {
        let (batch, length, hidden) = x.dims3()?;
        let width = hidden / heads;
        let split = |linear: &Linear| {
            linear.forward(x)?.reshape((batch, length, heads, width))?.transpose(1, 2)?.contiguous()
        };
        let (query, key, value) = (split(&self.query)?, split(&self.key)?, split(&self.value)?);
        let scores = (query.matmul(&key.t()?)? / (width as f64).sqrt())?.broadcast_add(mask)?;
        let seen = ops::softmax_last_dim(&scores)?.matmul(&value)?;
        let seen = seen.transpose(1, 2)?.flatten_from(D::Minus2)?;
        let x = self.norm.forward(&(x + self.out.forward(&seen)?)?)?;
        let fed = self.feed_out.forward(&self.feed.forward(&x)?.gelu_erf()?)?;
        self.feed_norm.forward(&(x + fed)?)
    }
}

/// The tokenizer of a folder; RoBERTa's special tokens are found by name.
fn tokens(path: &Path) -> Result<Tokens> {
    let wrong = |error: String| Error::model(format!("{}: {error}", path.display()));
    let tokenizer = Tokenizer::from_file(path).map_err(|error| wrong(error.to_string()))?;
    let token = |name: &str| {
        tokenizer.token_to_id(name).ok_or_else(|| wrong(format!("there is no token {name}")))
    };
    let (begin, end, mask) = (token("<s>")?, token("</s>")?, token("<mask>")?);
    Ok(Tokens::new(tokenizer, vec![begin], vec![end], Some(mask)))
}
