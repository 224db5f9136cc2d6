//! Small random models in the file formats of real ones. Their vocabulary is every byte, and the label words
//! a, b, c and d.
#![allow(dead_code, clippy::unwrap_used)]

pub(crate) mod gguf;

use gguf::{Kind, Meta, Tensor, write_gguf};
use racecars::random::Random;
use racecars_lm::{InputText, Model};
use safetensors::{Dtype, tensor::TensorView};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub(crate) const HIDDEN: usize = 32;

/// The label words.
const WORDS: [&str; 4] = ["a", "b", "c", "d"];

/// The vocabulary: bytes as printable characters, then the words with a space before them.
fn vocabulary() -> (Vec<String>, Vec<String>) {
    let bytes = (0..=255_u32).map(|byte| match byte {
        33..127 | 161..173 | 174.. => byte,
        0..33 => 256 + byte,
        127..161 => 256 + byte - 127 + 33,
        173 => 256 + 67,
    });
    let mut bytes: Vec<String> =
        bytes.map(|code| char::from_u32(code).unwrap().to_string()).collect();
    bytes.sort();
    let words = WORDS.map(|word| format!("Ġ{word}"));
    (bytes.into_iter().chain(words).collect(), WORDS.map(|word| format!("Ġ {word}")).into())
}

fn random_numbers(random: &mut Random, shape: &[usize]) -> Vec<f32> {
    let count = shape.iter().product();
    (0..count).map(|_| (0.3 * random.normal()) as f32).collect()
}

/// Metadata and tensors of a GGUF file.
pub(crate) struct Gguf {
    pub(crate) metadata: Vec<(String, Meta)>,
    pub(crate) tensors: Vec<Tensor>,
}

impl Gguf {
    pub(crate) fn set(&mut self, key: &str, value: Meta) {
        self.metadata.retain(|(name, _)| name != key);
        self.metadata.push((key.to_string(), value));
    }

    pub(crate) fn write(&self, path: &Path) {
        write_gguf(path, &self.metadata, &self.tensors);
    }

    pub(crate) fn open(&self) -> racecars_lm::Result<Model> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("small.gguf");
        self.write(&path);
        Model::open(&path)
    }
}

/// The sizes of a causal model.
struct Sizes {
    architecture: &'static str,
    layers: usize,
    vocabulary: usize,
    /// The width of a head; there are four of queries and two of keys.
    width: usize,
    kind: Kind,
}

const INNER: usize = 64;

/// The metadata and tensors that all causal models have, and `more` tensors of each layer.
fn causal(sizes: &Sizes, more: &[(&str, usize)]) -> Gguf {
    let Sizes { architecture, layers, vocabulary, width, kind } = *sizes;
    let mut random = Random::new(1);
    let mut tensors = Vec::new();
    let mut add = |name: String, shape: &[usize]| {
        let kind = if shape.len() == 1 { Kind::F32 } else { kind };
        let numbers = random_numbers(&mut random, shape);
        tensors.push(Tensor { name, shape: shape.to_vec(), kind, numbers });
    };
    add("token_embd.weight".into(), &[vocabulary, HIDDEN]);
    add("output_norm.weight".into(), &[HIDDEN]);
    for i in 0..layers {
        let shapes: [(&str, &[usize]); 9] = [
            ("attn_norm", &[HIDDEN]),
            ("ffn_norm", &[HIDDEN]),
            ("attn_q", &[4 * width, HIDDEN]),
            ("attn_k", &[2 * width, HIDDEN]),
            ("attn_v", &[2 * width, HIDDEN]),
            ("attn_output", &[HIDDEN, 4 * width]),
            ("ffn_gate", &[INNER, HIDDEN]),
            ("ffn_up", &[INNER, HIDDEN]),
            ("ffn_down", &[HIDDEN, INNER]),
        ];
        for (name, shape) in shapes {
            add(format!("blk.{i}.{name}.weight"), shape);
        }
        for (name, size) in more {
            add(format!("blk.{i}.{name}"), &[*size]);
        }
    }
    let mut model = Gguf { metadata: Vec::new(), tensors };
    model.set("general.architecture", Meta::Text(architecture.into()));
    for (key, count) in [
        ("embedding_length", HIDDEN),
        ("feed_forward_length", INNER),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 2),
        ("attention.key_length", width),
        ("attention.value_length", width),
        ("block_count", layers),
        ("context_length", 64),
    ] {
        model.set(&format!("{architecture}.{key}"), Meta::Count(count as u32));
    }
    for (key, number) in [("attention.layer_norm_rms_epsilon", 1e-5), ("rope.freq_base", 1e4)] {
        model.set(&format!("{architecture}.{key}"), Meta::Number(number));
    }
    model
}

fn byte_level(model: &mut Gguf, pre: &str) {
    let (tokens, merges) = vocabulary();
    model.set("tokenizer.ggml.model", Meta::Text("gpt2".into()));
    model.set("tokenizer.ggml.pre", Meta::Text(pre.into()));
    model.set("tokenizer.ggml.tokens", Meta::Texts(tokens));
    model.set("tokenizer.ggml.merges", Meta::Texts(merges));
}

/// A Llama of two layers, quantized.
pub(crate) fn llama_file() -> Gguf {
    let vocabulary = vocabulary().0.len();
    let sizes = Sizes { architecture: "llama", layers: 2, vocabulary, width: 8, kind: Kind::Q8_0 };
    let mut model = causal(&sizes, &[]);
    byte_level(&mut model, "smollm");
    model
}

/// A Qwen 2 of two layers in half precision, with biases and an output table of its own.
pub(crate) fn qwen_file() -> Gguf {
    let vocabulary = vocabulary().0.len();
    let sizes = Sizes { architecture: "qwen2", layers: 2, vocabulary, width: 8, kind: Kind::F16 };
    let biases = [("attn_q.bias", 32), ("attn_k.bias", 16), ("attn_v.bias", 16)];
    let mut model = causal(&sizes, &biases);
    byte_level(&mut model, "qwen2");
    let shape = vec![vocabulary, HIDDEN];
    let numbers = random_numbers(&mut Random::new(9), &shape);
    model.tensors.push(Tensor { name: "output.weight".into(), shape, kind: Kind::F16, numbers });
    model
}

/// A Gemma 3 of seven layers, of which the sixth sees all tokens and the others eight.
pub(crate) fn gemma_file() -> Gguf {
    let mut tokens: Vec<(String, f32, i32)> =
        ["<pad>", "<eos>", "<bos>", "<unk>"].map(|name| (name.to_string(), -1000.0, 3)).to_vec();
    tokens.push(("\n\n".into(), -1000.0, 4));
    tokens.extend((0..=255_u8).map(|byte| (format!("<0x{byte:02X}>"), -1000.0, 6)));
    let chars = ('!'..='~').chain(['▁', 'é']);
    tokens.extend(chars.map(|char| (char.to_string(), -1000.0, 1)));
    tokens.extend(WORDS.map(|word| (format!("▁{word}"), -1.0, 1)));
    let sizes = Sizes {
        architecture: "gemma3",
        layers: 7,
        vocabulary: tokens.len(),
        width: 16,
        kind: Kind::F32,
    };
    let norms = [
        ("attn_q_norm.weight", 16),
        ("attn_k_norm.weight", 16),
        ("post_attention_norm.weight", HIDDEN),
        ("post_ffw_norm.weight", HIDDEN),
    ];
    let mut model = causal(&sizes, &norms);
    model.set("gemma3.attention.sliding_window", Meta::Count(8));
    model.set("tokenizer.ggml.model", Meta::Text("llama".into()));
    let texts = tokens.iter().map(|(text, ..)| text.clone()).collect();
    model.set("tokenizer.ggml.tokens", Meta::Texts(texts));
    let scores = tokens.iter().map(|(_, score, _)| *score).collect();
    model.set("tokenizer.ggml.scores", Meta::Numbers(scores));
    let kinds = tokens.iter().map(|(.., kind)| *kind).collect();
    model.set("tokenizer.ggml.token_type", Meta::Integers(kinds));
    model.set("tokenizer.ggml.bos_token_id", Meta::Count(2));
    model.set("tokenizer.ggml.unknown_token_id", Meta::Count(3));
    model.set("tokenizer.ggml.add_bos_token", Meta::Flag(true));
    model.set("tokenizer.ggml.add_space_prefix", Meta::Flag(false));
    model
}

pub(crate) fn write_llama(folder: &Path) -> PathBuf {
    let path = folder.join("small.gguf");
    llama_file().write(&path);
    path
}

/// A RoBERTa of two layers.
pub(crate) fn write_roberta(folder: &Path) -> PathBuf {
    let path = folder.join("roberta");
    std::fs::create_dir_all(&path).unwrap();
    let (tokens, merges) = vocabulary();
    let (inner, special) = (64, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]);
    let count = tokens.len() + special.len();
    let vocabulary: HashMap<String, usize> =
        (special.iter().map(ToString::to_string).chain(tokens)).zip(0..).collect();
    let added: Vec<_> = (special.iter().enumerate())
        .map(|(id, content)| serde_json::json!({"id": id, "content": content, "special": true}))
        .collect();
    let tokenizer = serde_json::json!({
        "added_tokens": added, "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": merges},
    });
    std::fs::write(path.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let config = serde_json::json!({
        "model_type": "roberta", "hidden_size": HIDDEN, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": inner, "layer_norm_eps": 1e-5,
        "max_position_embeddings": 66, "pad_token_id": 1, "vocab_size": count,
    });
    std::fs::write(path.join("config.json"), config.to_string()).unwrap();
    let mut random = Random::new(2);
    let mut tensors = Vec::new();
    let mut add = |name: String, shape: &[usize]| {
        let numbers = random_numbers(&mut random, shape);
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        tensors.push((name, shape.to_vec(), bytes));
    };
    let embeddings = "roberta.embeddings";
    add(format!("{embeddings}.word_embeddings.weight"), &[count, HIDDEN]);
    add(format!("{embeddings}.position_embeddings.weight"), &[66, HIDDEN]);
    add(format!("{embeddings}.token_type_embeddings.weight"), &[1, HIDDEN]);
    let mut both = |name: String, outputs: usize, inputs: Option<usize>| {
        let shape: Vec<usize> = [outputs].into_iter().chain(inputs).collect();
        add(format!("{name}.weight"), &shape);
        add(format!("{name}.bias"), &[outputs]);
    };
    both(format!("{embeddings}.LayerNorm"), HIDDEN, None);
    for i in 0..2 {
        let layer = format!("roberta.encoder.layer.{i}");
        for name in ["self.query", "self.key", "self.value", "output.dense"] {
            both(format!("{layer}.attention.{name}"), HIDDEN, Some(HIDDEN));
        }
        both(format!("{layer}.attention.output.LayerNorm"), HIDDEN, None);
        both(format!("{layer}.intermediate.dense"), inner, Some(HIDDEN));
        both(format!("{layer}.output.dense"), HIDDEN, Some(inner));
        both(format!("{layer}.output.LayerNorm"), HIDDEN, None);
    }
    both("lm_head.dense".into(), HIDDEN, Some(HIDDEN));
    both("lm_head.layer_norm".into(), HIDDEN, None);
    add("lm_head.bias".into(), &[count]);
    write_safetensors(&path.join("model.safetensors"), &tensors);
    path
}

pub(crate) fn write_safetensors(path: &Path, tensors: &[(String, Vec<usize>, Vec<u8>)]) {
    let views = (tensors.iter()).map(|(name, shape, bytes)| {
        (name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap())
    });
    safetensors::serialize_to_file(views, None, path).unwrap();
}

pub(crate) fn llama() -> Model {
    llama_file().open().unwrap()
}

/// A small model of every kind.
pub(crate) fn every_model() -> [Model; 4] {
    let [llama, qwen, gemma] =
        [llama_file(), qwen_file(), gemma_file()].map(|file| file.open().unwrap());
    [llama, qwen, gemma, roberta()]
}

pub(crate) fn roberta() -> Model {
    let folder = tempfile::tempdir().unwrap();
    Model::open(&write_roberta(folder.path())).unwrap()
}

pub(crate) fn text(before: &str, after: &str) -> InputText {
    InputText { before: before.into(), after: after.into(), tail: String::new() }
}

pub(crate) fn words() -> Vec<String> {
    ["a", "b", "c"].map(String::from).to_vec()
}

/// A random prompt with this many tokens.
pub(crate) fn prompt(tokens: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..tokens * HIDDEN).map(|_| (0.3 * random.normal()) as f32).collect()
}
