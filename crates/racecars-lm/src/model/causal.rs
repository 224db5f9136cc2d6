//! Causal models from GGUF files: Llama (Touvron et al. 2023: root mean square norms, rotary positions, gated
//! feed-forward layers, shared heads of keys) and its relatives, Qwen 2 and 3 (biases or norms of queries
//! and keys) and Gemma 3 (norms after each part of a layer too, and layers that see only the latest tokens).
//!
//! Weights are converted to single precision once. Sequences are packed: a row per token and no padding; the matrix
//! products are of all rows at once. Tokens that many calls or texts share are run once, and their keys
//! and values cached ([`Causal::fill_cache`]).

use super::gguf::Gguf;
use super::quantized::Table;
use crate::error::{Error, Result};
use racecars_lm_kernels::{
    Activation, AttentionMask, Heads, LayerCache, Linear, PairOrder, RotaryAngles, SequencePiece,
    add, attend, dots, gated, rms_norm, rotate,
};

pub(super) struct Causal {
    heads: Heads,
    hidden: usize,
    inner: usize,
    epsilon: f32,
    activation: Activation,
    /// What products of queries and keys are multiplied with.
    attention_scale: f32,
    /// What embeddings are multiplied with before the first layer.
    embedding_scale: f32,
    table: Table,
    layers: Vec<CausalLayer>,
    norm: Vec<f32>,
    /// The output table, if it is not the embedding table.
    output: Option<Table>,
    /// The rotation of layers that see all tokens before.
    rotation: RotaryAngles,
    /// The rotation of layers that see a window.
    window_rotation: Option<RotaryAngles>,
    pub(super) context: usize,
    pub(super) vocabulary: usize,
}

struct CausalLayer {
    attention_norm: Vec<f32>,
    /// The weights of queries, keys and values, concatenated.
    attention: Linear,
    /// Norms of the heads of queries and of keys.
    head_norms: Option<[Vec<f32>; 2]>,
    attention_out: Linear,
    attention_out_norm: Option<Vec<f32>>,
    feed_norm: Vec<f32>,
    /// The weights of gates and ups, concatenated.
    feed: Linear,
    feed_out: Linear,
    feed_out_norm: Option<Vec<f32>>,
    mask: AttentionMask,
}

/// Cached keys and values, by layer.
#[derive(Default)]
pub(super) struct KvCache {
    /// The width of a row of keys or values.
    width: usize,
    layers: Vec<LayerCache>,
}

/// The longest supported sequence, for which rotary angles are precomputed.
const MAX_CONTEXT: usize = 8192;
/// In Gemma 3, one layer of so many sees all tokens, the others a window.
const GEMMA_PATTERN: usize = 6;
/// The base of Gemma 3's rotations in layers that see a window.
const GEMMA_WINDOW_BASE: f64 = 1e4;

/// The differences between architectures that are not in the weights.
struct Architecture {
    name: String,
    pairs: PairOrder,
    is_gemma: bool,
}

impl Architecture {
    fn read(file: &Gguf) -> Result<Self> {
        let name = file.text("general.architecture")?.to_string();
        let pairs = match &*name {
            "llama" => PairOrder::Neighbours,
            "qwen2" | "qwen3" | "gemma3" => PairOrder::Halves,
            _ => {
                return Err(Error::model(format!(
                    "architecture `{name}` is not supported; `llama`, `qwen2`, `qwen3` and `gemma3` are"
                )));
            }
        };
        let is_gemma = name == "gemma3";
        Ok(Architecture { name, pairs, is_gemma })
    }

    fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.name)
    }

    fn heads(&self, file: &Gguf, hidden: usize) -> Result<Heads> {
        let queries = file.count(&self.key("attention.head_count"))?;
        let keys = file.count_or(&self.key("attention.head_count_kv"), queries)?;
        let width = file.count_or(&self.key("attention.key_length"), hidden / queries)?;
        let values = file.count_or(&self.key("attention.value_length"), width)?;
        if !queries.is_multiple_of(keys) || width == 0 || width != values {
            return Err(Error::model(format!(
                "{queries} heads of width {width}, {keys} of keys, and values of width {values}: these do not \
                 fit together"
            )));
        }
        Ok(Heads { queries, keys, width })
    }

    /// The angles of a step of each pair of coordinates in layers that see all tokens.
    fn frequencies(&self, file: &Gguf, width: usize) -> Result<Vec<f64>> {
        let turned = file.count_or(&self.key("rope.dimension_count"), width)?;
        if turned > width || !turned.is_multiple_of(2) {
            return Err(Error::model(format!("{turned} of {width} coordinates cannot be rotated")));
        }
        let base = file.number_or(&self.key("rope.freq_base"), 1e4)?;
        let mut frequencies = frequencies(turned, base);
        let key = self.key("rope.scaling.type");
        match file.get(&key).map(|_| file.text(&key)).transpose()? {
            None | Some("none") => {}
            Some("linear") => {
                let factor = file.number(&self.key("rope.scaling.factor"))?;
                frequencies.iter_mut().for_each(|frequency| *frequency /= factor);
            }
            Some(other) => {
                return Err(file.wrong(
                    &key,
                    format!("positions scaled by `{other}` are not supported; `linear` is"),
                ));
            }
        }
        // Llama 3.1 and later have a divisor for each pair.
        if let Some(divisors) = file.tensor_if_any("rope_freqs.weight", &[turned / 2])? {
            let pairs = frequencies.iter_mut().zip(divisors);
            pairs.for_each(|(frequency, divisor)| *frequency /= f64::from(divisor));
        }
        Ok(frequencies)
    }
}

fn frequencies(turned: usize, base: f64) -> Vec<f64> {
    (0..turned / 2).map(|i| base.powf(-2.0 * i as f64 / turned as f64)).collect()
}

impl Causal {
    pub(super) fn read(file: &Gguf) -> Result<Self> {
        let architecture = Architecture::read(file)?;
        let key = |key: &str| architecture.key(key);
        if file.get(&key("expert_count")).is_some() {
            return Err(Error::model("mixtures of experts are not supported"));
        }
        let hidden = file.count(&key("embedding_length"))?;
        let inner = file.count(&key("feed_forward_length"))?;
        let depth = file.count(&key("block_count"))?;
        let heads = architecture.heads(file, hidden)?;
        let context = file.count(&key("context_length"))?.min(MAX_CONTEXT);
        let vocabulary = file.shape("token_embd.weight")?.first().copied().unwrap_or(0);
        let window = match architecture.is_gemma {
            true => Some(file.count(&key("attention.sliding_window"))?),
            false => None,
        };
        let mask = |i: usize| match window {
            Some(size) if !(i + 1).is_multiple_of(GEMMA_PATTERN) => AttentionMask::Window(size),
            _ => AttentionMask::Causal,
        };
        let layers = (0..depth)
            .map(|i| CausalLayer::read(file, i, heads, [hidden, inner], mask(i)))
            .collect::<Result<Vec<_>>>()?;
        if let (true, Some(layer)) = (architecture.is_gemma, layers.first())
            && (layer.head_norms.is_none() || layer.feed_out_norm.is_none())
        {
            return Err(Error::model("norms of `gemma3` are missing"));
        }
        let rotation =
            |frequencies: Vec<f64>| RotaryAngles::new(context, architecture.pairs, &frequencies);
        let output = match file.has("output.weight") {
            true => Some(file.table("output.weight", vocabulary, hidden)?),
            false => None,
        };
        // The largest Gemma 3, of 62 layers, scales by the width that its heads would have otherwise.
        let scaled_width = match architecture.is_gemma && depth == 62 {
            true => hidden as f32 / heads.queries as f32,
            false => heads.width as f32,
        };
        Ok(Causal {
            heads,
            hidden,
            inner,
            epsilon: file.number(&key("attention.layer_norm_rms_epsilon"))? as f32,
            activation: match architecture.is_gemma {
                true => Activation::TanhGelu,
                false => Activation::Silu,
            },
            attention_scale: 1.0 / scaled_width.sqrt(),
            embedding_scale: if architecture.is_gemma { (hidden as f32).sqrt() } else { 1.0 },
            table: file.table("token_embd.weight", vocabulary, hidden)?,
            layers,
            norm: file.tensor("output_norm.weight", &[hidden])?,
            output,
            rotation: rotation(architecture.frequencies(file, heads.width)?),
            window_rotation: window.map(|_| rotation(frequencies(heads.width, GEMMA_WINDOW_BASE))),
            context,
            vocabulary,
        })
    }

    pub(super) fn hidden(&self) -> usize {
        self.hidden
    }

    pub(super) fn depth(&self) -> usize {
        self.layers.len()
    }

    /// The embeddings of all tokens.
    pub(super) fn embeddings(&self) -> impl Iterator<Item = Vec<f32>> {
        self.table.rows().map(|mut row| {
            self.scale(&mut row);
            row
        })
    }

    fn scale(&self, embeddings: &mut [f32]) {
        embeddings.iter_mut().for_each(|x| *x *= self.embedding_scale);
    }

    /// Appends the embeddings of tokens, which must be in the vocabulary.
    pub(super) fn embed(&self, tokens: &[u32], rows: &mut Vec<f32>) {
        let start = rows.len();
        tokens.iter().for_each(|&token| self.table.row(token as usize, rows));
        self.scale(&mut rows[start..]);
    }

    /// The bytes of a cached token.
    pub(super) fn bytes_per_token(&self) -> usize {
        self.layers.len() * 2 * self.heads.key_row() * size_of::<f32>()
    }

    /// Runs pieces of sequences whose beginning is in `past`, if given, and returns the keys and values of the
    /// pieces.
    pub(super) fn fill_cache(
        &self,
        mut x: Vec<f32>,
        pieces: &[SequencePiece],
        past: Option<&KvCache>,
    ) -> KvCache {
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
                let past = past.map_or(&nothing, |past| &past.layers[i]);
                let seen = attend(&rows, pieces, heads, past, layer.mask, self.attention_scale);
                self.finish(layer, &mut x, &seen);
            }
        }
        KvCache { width: heads.key_row(), layers }
    }

    /// Runs pieces of sequences whose beginning is in `past`, if given, and returns the final state of the
    /// last token of each.
    pub(super) fn last_states(
        &self,
        mut x: Vec<f32>,
        pieces: &[SequencePiece],
        past: Option<&KvCache>,
    ) -> Vec<f32> {
        let nothing = LayerCache::default();
        for (i, layer) in self.layers.iter().enumerate() {
            let past = past.map_or(&nothing, |past| &past.layers[i]);
            let rows = self.attention_rows(layer, &x, pieces);
            let scale = self.attention_scale;
            let mut seen = attend(&rows, pieces, self.heads, past, layer.mask, scale);
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
        let mut rows = Vec::new();
        let table = self.output.as_ref().unwrap_or(&self.table);
        words.iter().for_each(|&word| table.row(word as usize, &mut rows));
        (states.chunks_exact(self.hidden))
            .flat_map(|state| dots(state, rows.chunks_exact(self.hidden)))
            .collect()
    }

    /// Queries, keys and values, rotated to their positions.
    fn attention_rows(&self, layer: &CausalLayer, x: &[f32], pieces: &[SequencePiece]) -> Vec<f32> {
        let normed = rms_norm(x, &layer.attention_norm, self.epsilon);
        let mut rows = layer.attention.apply(&normed);
        if let Some([queries, keys]) = &layer.head_norms {
            for row in rows.chunks_exact_mut(self.heads.row()) {
                let (query_row, rest) = row.split_at_mut(self.heads.query_row());
                let key_row = &mut rest[..self.heads.key_row()];
                for (row, norm) in [(query_row, queries), (key_row, keys)] {
                    row.copy_from_slice(&rms_norm(row, norm, self.epsilon));
                }
            }
        }
        let rotation = match (layer.mask, &self.window_rotation) {
            (AttentionMask::Window(_), Some(rotation)) => rotation,
            _ => &self.rotation,
        };
        rotate(&mut rows, pieces, self.heads, rotation);
        rows
    }

    /// The part of a layer after attention.
    fn finish(&self, layer: &CausalLayer, x: &mut [f32], seen: &[f32]) {
        let normed = |out: Vec<f32>, norm: &Option<Vec<f32>>| match norm {
            Some(norm) => rms_norm(&out, norm, self.epsilon),
            None => out,
        };
        add(x, &normed(layer.attention_out.apply(seen), &layer.attention_out_norm));
        let fed = layer.feed.apply(&rms_norm(x, &layer.feed_norm, self.epsilon));
        let fed = layer.feed_out.apply(&gated(&fed, self.inner, self.activation));
        add(x, &normed(fed, &layer.feed_out_norm));
    }
}

impl CausalLayer {
    fn read(
        file: &Gguf,
        i: usize,
        heads: Heads,
        [hidden, inner]: [usize; 2],
        mask: AttentionMask,
    ) -> Result<Self> {
        let named = |name: &str| format!("blk.{i}.{name}.weight");
        // Linear maps of the same inputs, side by side, each with a bias if the file has one.
        let linear = |parts: &[(&str, usize)], inputs: usize| {
            let (mut weight, mut bias) = (Vec::new(), Vec::new());
            for (name, outputs) in parts {
                weight.extend(file.tensor(&named(name), &[*outputs, inputs])?);
                match file.tensor_if_any(&format!("blk.{i}.{name}.bias"), &[*outputs])? {
                    Some(numbers) => bias.extend(numbers),
                    None => bias.extend(std::iter::repeat_n(0.0, *outputs)),
                }
            }
            let has_bias = bias.iter().any(|x| *x != 0.0);
            Ok::<_, Error>(Linear::new(&weight, inputs, if has_bias { bias } else { vec![] }))
        };
        let norm = |name: &str| file.tensor(&named(name), &[hidden]);
        let norm_if_any = |name: &str| file.tensor_if_any(&named(name), &[hidden]);
        let head_norms = match file.has(&named("attn_q_norm")) {
            true => Some([
                file.tensor(&named("attn_q_norm"), &[heads.width])?,
                file.tensor(&named("attn_k_norm"), &[heads.width])?,
            ]),
            false => None,
        };
        let (queries, keys) = (heads.query_row(), heads.key_row());
        Ok(CausalLayer {
            attention_norm: norm("attn_norm")?,
            attention: linear(&[("attn_q", queries), ("attn_k", keys), ("attn_v", keys)], hidden)?,
            head_norms,
            attention_out: linear(&[("attn_output", hidden)], queries)?,
            attention_out_norm: norm_if_any("post_attention_norm")?,
            feed_norm: norm("ffn_norm")?,
            feed: linear(&[("ffn_gate", inner), ("ffn_up", inner)], hidden)?,
            feed_out: linear(&[("ffn_down", hidden)], inner)?,
            feed_out_norm: norm_if_any("post_ffw_norm")?,
            mask,
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
    pub(super) fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// Appends the tokens of `more`.
    pub(super) fn append(&mut self, more: KvCache) {
        if self.is_empty() {
            *self = more;
            return;
        }
        for (layer, more) in self.layers.iter_mut().zip(more.layers) {
            layer.keys.extend(more.keys);
            layer.values.extend(more.values);
        }
    }

    /// A copy of some tokens.
    pub(super) fn slice(&self, tokens: std::ops::Range<usize>) -> KvCache {
        let numbers = tokens.start * self.width..tokens.end * self.width;
        let part = |layer: &LayerCache| LayerCache {
            keys: layer.keys[numbers.clone()].to_vec(),
            values: layer.values[numbers.clone()].to_vec(),
        };
        KvCache { width: self.width, layers: self.layers.iter().map(part).collect() }
    }
}
