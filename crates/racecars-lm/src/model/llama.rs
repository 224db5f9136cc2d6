//! Causal models of the Llama family (Touvron et al. 2023: root mean square norms, rotary positions,
//! gated feed-forward layers, shared heads of keys), from GGUF files.
//!
//! Weights are dequantized once. Sequences are packed: a row per token and no padding; the matrix
//! products are of all rows at once. Tokens before the prompt are run once, and their keys and values
//! cached ([`Llama::fill_cache`]).

use super::gguf::Gguf;
use super::kernels::{
    AttentionMask, Heads, LayerCache, RotaryAngles, SequencePiece, add, attend, dots, gated,
    rms_norm, rotate,
};
use super::linear::Linear;
use crate::error::{Error, Result};

pub(super) struct Llama {
    heads: Heads,
    hidden: usize,
    inner: usize,
    epsilon: f32,
    /// The embedding table, a row per token.
    table: Vec<f32>,
    layers: Vec<LlamaLayer>,
    norm: Vec<f32>,
    /// The output table, if it is not the embedding table.
    output: Option<Vec<f32>>,
    rotation: RotaryAngles,
    pub(super) context: usize,
    pub(super) vocabulary: usize,
}

struct LlamaLayer {
    attention_norm: Vec<f32>,
    /// The weights of queries, keys and values, concatenated.
    attention: Linear,
    attention_out: Linear,
    feed_norm: Vec<f32>,
    /// The weights of gates and ups, concatenated.
    feed: Linear,
    feed_out: Linear,
}

/// Cached keys and values, by layer.
pub(super) struct KvCache {
    layers: Vec<LayerCache>,
}

/// The longest supported sequence, for which rotary angles are precomputed.
const MAX_CONTEXT: usize = 8192;

impl Llama {
    pub(super) fn read(file: &mut Gguf) -> Result<Self> {
        let architecture = file.text("general.architecture")?.to_string();
        if architecture != "llama" {
            return Err(Error::model(format!(
                "architecture `{architecture}` is not supported; `llama` is"
            )));
        }
        let hidden = file.count("llama.embedding_length")?;
        let inner = file.count("llama.feed_forward_length")?;
        let queries = file.count("llama.attention.head_count")?;
        let keys = file.count_or("llama.attention.head_count_kv", queries)?;
        let width = file.count_or("llama.attention.key_length", hidden / queries)?;
        let turned = file.count_or("llama.rope.dimension_count", width)?;
        if !queries.is_multiple_of(keys) || turned > width || !turned.is_multiple_of(2) {
            return Err(Error::model(format!(
                "{queries} heads of width {width}, {keys} of keys, {turned} of it rotated: these do \
                 not fit together"
            )));
        }
        if file.has("rope_freqs.weight") {
            return Err(Error::model("scaled rotary positions (`rope_freqs`) are not supported"));
        }
        let heads = Heads { queries, keys, width };
        let table = file.count("llama.vocab_size")?;
        let context = file.count("llama.context_length")?.min(MAX_CONTEXT);
        let embedding = file.tensor("token_embd.weight", &[table, hidden])?;
        let layers = (0..file.count("llama.block_count")?)
            .map(|i| LlamaLayer::read(file, i, heads, hidden, inner))
            .collect::<Result<_>>()?;
        let output = match file.has("output.weight") {
            true => Some(file.tensor("output.weight", &[table, hidden])?),
            false => None,
        };
        Ok(Llama {
            heads,
            hidden,
            inner,
            epsilon: file.number("llama.attention.layer_norm_rms_epsilon")? as f32,
            table: embedding,
            layers,
            norm: file.tensor("output_norm.weight", &[hidden])?,
            output,
            rotation: RotaryAngles::new(
                context,
                turned,
                file.number_or("llama.rope.freq_base", 1e4)?,
            ),
            context,
            vocabulary: table,
        })
    }

    pub(super) fn hidden(&self) -> usize {
        self.hidden
    }

    pub(super) fn depth(&self) -> usize {
        self.layers.len()
    }

    pub(super) fn table(&self) -> &[f32] {
        &self.table
    }

    /// Appends the embeddings of tokens, which must be in the vocabulary.
    pub(super) fn embed(&self, tokens: &[u32], rows: &mut Vec<f32>) {
        for &token in tokens {
            let start = token as usize * self.hidden;
            rows.extend_from_slice(&self.table[start..start + self.hidden]);
        }
    }

    /// The bytes of a cached token.
    pub(super) fn bytes_per_token(&self) -> usize {
        self.layers.len() * 2 * self.heads.key_row() * size_of::<f32>()
    }

    /// Runs the tokens at the beginning of sequences, one piece per sequence, and returns their keys and
    /// values.
    pub(super) fn fill_cache(&self, mut x: Vec<f32>, pieces: &[SequencePiece]) -> KvCache {
        let (nothing, heads) = (LayerCache::default(), self.heads);
        let mut layers = Vec::with_capacity(self.layers.len());
        for (i, layer) in self.layers.iter().enumerate() {
            let rows = self.attention_rows(layer, &x, pieces);
            let keys = heads.query_row()..heads.query_row() + heads.key_row();
            let values = keys.end..heads.row();
            let column = |range: std::ops::Range<usize>| {
                rows.chunks_exact(heads.row())
                    .flat_map(|row| &row[range.clone()])
                    .copied()
                    .collect()
            };
            layers.push(LayerCache { keys: column(keys), values: column(values) });
            if i + 1 < self.layers.len() {
                let seen = attend(&rows, pieces, heads, &nothing, AttentionMask::Causal);
                self.finish(layer, &mut x, &seen);
            }
        }
        KvCache { layers }
    }

    /// Runs pieces of sequences whose beginning is in `cache`, if given, and returns the final state of the
    /// last token of each.
    pub(super) fn last_states(
        &self,
        mut x: Vec<f32>,
        pieces: &[SequencePiece],
        cache: Option<&KvCache>,
    ) -> Vec<f32> {
        let nothing = LayerCache::default();
        for (i, layer) in self.layers.iter().enumerate() {
            let past = cache.map_or(&nothing, |cache| &cache.layers[i]);
            let rows = self.attention_rows(layer, &x, pieces);
            let mut seen = attend(&rows, pieces, self.heads, past, AttentionMask::Causal);
            if i + 1 == self.layers.len() {
                // The other tokens are not needed any more.
                x = lasts(&x, pieces, self.hidden);
                seen = lasts(&seen, pieces, self.heads.query_row());
            }
            self.finish(layer, &mut x, &seen);
        }
        rms_norm(&x, &self.norm, self.epsilon)
    }

    /// The logits of words at each final state.
    pub(super) fn logits(&self, states: &[f32], words: &[u32]) -> Vec<f32> {
        let table = self.output.as_ref().unwrap_or(&self.table);
        let row = |word: u32| &table[word as usize * self.hidden..][..self.hidden];
        (states.chunks_exact(self.hidden))
            .flat_map(|state| dots(state, words.iter().map(|&word| row(word))))
            .collect()
    }

    /// Queries, keys and values, rotated to their positions.
    fn attention_rows(&self, layer: &LlamaLayer, x: &[f32], pieces: &[SequencePiece]) -> Vec<f32> {
        let normed = rms_norm(x, &layer.attention_norm, self.epsilon);
        let mut rows = layer.attention.apply(&normed);
        rotate(&mut rows, pieces, self.heads, &self.rotation);
        rows
    }

    /// The part of a layer after attention.
    fn finish(&self, layer: &LlamaLayer, x: &mut [f32], seen: &[f32]) {
        add(x, &layer.attention_out.apply(seen));
        let normed = rms_norm(x, &layer.feed_norm, self.epsilon);
        let fed = gated(&layer.feed.apply(&normed), self.inner);
        add(x, &layer.feed_out.apply(&fed));
    }
}

impl LlamaLayer {
    fn read(file: &mut Gguf, i: usize, heads: Heads, hidden: usize, inner: usize) -> Result<Self> {
        let mut weight = |name: &str, outputs: usize, inputs: usize| {
            file.tensor(&format!("blk.{i}.{name}.weight"), &[outputs, inputs])
        };
        let (queries, keys) = (heads.query_row(), heads.key_row());
        let attention = [
            weight("attn_q", queries, hidden)?,
            weight("attn_k", keys, hidden)?,
            weight("attn_v", keys, hidden)?,
        ];
        let attention_out = weight("attn_output", hidden, queries)?;
        let feed = [weight("ffn_gate", inner, hidden)?, weight("ffn_up", inner, hidden)?];
        let feed_out = weight("ffn_down", hidden, inner)?;
        let mut norm = |name: &str| file.tensor(&format!("blk.{i}.{name}.weight"), &[hidden]);
        Ok(LlamaLayer {
            attention_norm: norm("attn_norm")?,
            attention: Linear::new(&attention.concat(), hidden, vec![]),
            attention_out: Linear::new(&attention_out, queries, vec![]),
            feed_norm: norm("ffn_norm")?,
            feed: Linear::new(&feed.concat(), hidden, vec![]),
            feed_out: Linear::new(&feed_out, inner, vec![]),
        })
    }
}

/// The rows of the last token of each piece.
fn lasts(rows: &[f32], pieces: &[SequencePiece], width: usize) -> Vec<f32> {
    let ends = pieces.iter().scan(0, |end, piece| {
        *end += piece.length;
        Some(*end)
    });
    ends.flat_map(|end| &rows[(end - 1) * width..end * width]).copied().collect()
}

impl KvCache {
    /// Appends the tokens of `more`.
    pub(super) fn append(&mut self, more: KvCache) {
        for (layer, more) in self.layers.iter_mut().zip(more.layers) {
            layer.keys.extend(more.keys);
            layer.values.extend(more.values);
        }
    }
}
