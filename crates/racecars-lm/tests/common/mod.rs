//! Small random models in the file formats of real ones. Their vocabulary is every byte, and the label words
//! a, b, c and d.
#![allow(dead_code, clippy::unwrap_used)]

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use racecars::random::Random;
use racecars_lm::{InputText, Model};
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, Tokenizer};

pub(crate) const HIDDEN: usize = 32;

/// The vocabulary: bytes, then the words with a space before them.
fn vocabulary() -> (Vec<String>, Vec<(String, String)>) {
    let mut bytes: Vec<String> = ByteLevel::alphabet().iter().map(ToString::to_string).collect();
    bytes.sort();
    let merges: Vec<_> =
        ["a", "b", "c", "d"].map(|word| ("Ġ".to_string(), word.to_string())).into();
    let words = merges.iter().map(|(space, word)| format!("{space}{word}"));
    (bytes.into_iter().chain(words).collect(), merges)
}

fn random_tensor(random: &mut Random, shape: &[usize]) -> Tensor {
    let count = shape.iter().product();
    let numbers: Vec<f32> = (0..count).map(|_| (0.3 * random.normal()) as f32).collect();
    Tensor::from_vec(numbers, shape, &Device::Cpu).unwrap()
}

/// A Llama of two layers, quantized.
pub(crate) fn write_llama(folder: &Path) -> PathBuf {
    let (tokens, merges) = vocabulary();
    let (inner, count) = (64, tokens.len());
    let mut random = Random::new(1);
    let mut tensors = Vec::new();
    let mut add = |name: String, shape: &[usize]| {
        let kind = if shape.len() == 1 { GgmlDType::F32 } else { GgmlDType::Q8_0 };
        let tensor = random_tensor(&mut random, shape);
        tensors.push((name, QTensor::quantize(&tensor, kind).unwrap()));
    };
    add("token_embd.weight".into(), &[count, HIDDEN]);
    add("output_norm.weight".into(), &[HIDDEN]);
    for i in 0..2 {
        let shapes: [(&str, &[usize]); 9] = [
            ("attn_norm", &[HIDDEN]),
            ("ffn_norm", &[HIDDEN]),
            ("attn_q", &[HIDDEN, HIDDEN]),
            ("attn_k", &[HIDDEN / 2, HIDDEN]),
            ("attn_v", &[HIDDEN / 2, HIDDEN]),
            ("attn_output", &[HIDDEN, HIDDEN]),
            ("ffn_gate", &[inner, HIDDEN]),
            ("ffn_up", &[inner, HIDDEN]),
            ("ffn_down", &[HIDDEN, inner]),
        ];
        for (name, shape) in shapes {
            add(format!("blk.{i}.{name}.weight"), shape);
        }
    }
    let texts = |texts: Vec<String>| Value::Array(texts.into_iter().map(Value::String).collect());
    let merges = merges.into_iter().map(|(left, right)| format!("{left} {right}")).collect();
    let metadata = [
        ("general.architecture", Value::String("llama".into())),
        ("llama.embedding_length", Value::U32(HIDDEN as u32)),
        ("llama.feed_forward_length", Value::U32(inner as u32)),
        ("llama.attention.head_count", Value::U32(4)),
        ("llama.attention.head_count_kv", Value::U32(2)),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
        ("llama.block_count", Value::U32(2)),
        ("llama.context_length", Value::U32(64)),
        ("llama.rope.freq_base", Value::F32(1e4)),
        ("llama.vocab_size", Value::U32(count as u32)),
        ("tokenizer.ggml.model", Value::String("gpt2".into())),
        ("tokenizer.ggml.pre", Value::String("smollm".into())),
        ("tokenizer.ggml.tokens", texts(tokens)),
        ("tokenizer.ggml.merges", texts(merges)),
    ];
    let metadata: Vec<_> = metadata.iter().map(|(name, value)| (*name, value)).collect();
    let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (&**name, tensor)).collect();
    let path = folder.join("small.gguf");
    gguf_file::write(&mut File::create(&path).unwrap(), &metadata, &tensors).unwrap();
    path
}

/// A RoBERTa of two layers.
pub(crate) fn write_roberta(folder: &Path) -> PathBuf {
    let path = folder.join("roberta");
    std::fs::create_dir_all(&path).unwrap();
    let (tokens, merges) = vocabulary();
    let (inner, special) = (64, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]);
    let count = tokens.len() + special.len();
    let vocabulary = (special.iter().map(ToString::to_string).chain(tokens)).zip(0..);
    let bpe = BPE::builder().vocab_and_merges(vocabulary.collect::<Vocab>(), merges);
    let mut tokenizer = Tokenizer::new(bpe.build().unwrap());
    tokenizer.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
    tokenizer.add_special_tokens(&special.map(|token| AddedToken::from(token, true)));
    tokenizer.save(path.join("tokenizer.json"), false).unwrap();
    let config = serde_json::json!({
        "model_type": "roberta", "hidden_size": HIDDEN, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": inner, "layer_norm_eps": 1e-5,
        "max_position_embeddings": 66, "pad_token_id": 1, "vocab_size": count,
    });
    std::fs::write(path.join("config.json"), config.to_string()).unwrap();
    let mut random = Random::new(2);
    let mut tensors = HashMap::new();
    let mut add = |name: String, shape: &[usize]| {
        tensors.insert(name, random_tensor(&mut random, shape));
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
    candle_core::safetensors::save(&tensors, path.join("model.safetensors")).unwrap();
    path
}

pub(crate) fn llama() -> Model {
    let folder = tempfile::tempdir().unwrap();
    Model::open(&write_llama(folder.path())).unwrap()
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
