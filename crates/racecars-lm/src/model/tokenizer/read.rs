//! Reading tokenizers: from the metadata of GGUF files, and from a `tokenizer.json`.

use super::words::WordPattern;
use super::{AddedToken, AddedTokens, Encoding, Tokens};
use crate::error::{Error, Result};
use crate::model::gguf::{Gguf, Value};
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;

/// The kinds of tokens in GGUF files that are found in a text as a whole: control and user-defined ones.
const WHOLE_KINDS: [i128; 2] = [3, 4];

impl Tokens {
    /// The tokenizer in a GGUF file.
    pub(in crate::model) fn from_gguf(file: &Gguf) -> Result<Self> {
        let key = "tokenizer.ggml.model";
        let texts = file.texts("tokenizer.ggml.tokens")?;
        let vocabulary: HashMap<String, u32> =
            texts.iter().map(ToString::to_string).zip(0..).collect();
        let (encoding, has_space_first) = match file.text(key)? {
            "gpt2" => (byte_level(file, &vocabulary)?, false),
            "llama" => (sentence_piece(file, &texts, &vocabulary)?, true),
            other => {
                let known = "byte-level BPE (`gpt2`) and SentencePiece (`llama`) are";
                return Err(file.wrong(key, format!("`{other}` is not supported; {known}")));
            }
        };
        let kinds = file.list("tokenizer.ggml.token_type").unwrap_or_default();
        let is_whole =
            |kind: &Value| matches!(kind, Value::Integer(kind) if WHOLE_KINDS.contains(kind));
        let whole = texts.iter().zip(0..).zip(kinds).filter(|(_, kind)| is_whole(kind));
        let added = whole.map(|((text, token), _)| AddedToken {
            text: text.to_string(),
            token,
            takes_left: false,
            takes_right: false,
        });
        // Files with SentencePiece begin every text with a token unless they say otherwise.
        let has_begin = file.flag("tokenizer.ggml.add_bos_token").unwrap_or(has_space_first);
        let begin = match has_begin {
            true => vec![file.token("tokenizer.ggml.bos_token_id", texts.len())?],
            false => Vec::new(),
        };
        let has_space_first =
            file.flag("tokenizer.ggml.add_space_prefix").unwrap_or(has_space_first);
        Ok(Tokens {
            added: AddedTokens::new(added),
            vocabulary,
            encoding,
            has_space_first,
            begin,
            end: Vec::new(),
            mask: None,
        })
    }

    /// The tokenizer of a RoBERTa, whose special tokens are found by name.
    pub(in crate::model) fn from_json(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).map_err(|error| Error::system("read", path, error))?;
        let file: TokenizerFile = serde_json::from_str(&text)
            .map_err(|error| Error::model(format!("{}: {error}", path.display())))?;
        file.tokens().map_err(|error| error.within(path.display()))
    }
}

fn byte_level(file: &Gguf, vocabulary: &HashMap<String, u32>) -> Result<Encoding> {
    let key = "tokenizer.ggml.merges";
    let pairs = (file.texts(key)?.into_iter())
        .map(|merge| {
            merge.split_once(' ').ok_or_else(|| file.wrong(key, format!("`{merge}` is not a pair")))
        })
        .collect::<Result<Vec<_>>>()?;
    let ranks = ranks(&pairs, vocabulary).map_err(|error| file.wrong(key, error))?;
    let key = "tokenizer.ggml.pre";
    let (pattern, keeps_words) = match file.text(key)? {
        "smollm" | "starcoder" | "refact" | "command-r" => (WordPattern::DigitsAndGpt2, false),
        "gpt-2" | "gpt2" | "default" => (WordPattern::Gpt2, false),
        "llama3" | "llama-v3" | "llama-bpe" | "smaug-bpe" => {
            (WordPattern::Llama3 { digits: 3 }, true)
        }
        "qwen2" | "deepseek-r1-qwen" => (WordPattern::Llama3 { digits: 1 }, false),
        other => {
            let known = "smollm, starcoder, gpt-2, llama-bpe, qwen2";
            return Err(file.wrong(key, format!("`{other}` is none of {known}")));
        }
    };
    Ok(Encoding::ByteLevel { pattern, ranks, keeps_words })
}

fn sentence_piece(
    file: &Gguf,
    texts: &[&str],
    vocabulary: &HashMap<String, u32>,
) -> Result<Encoding> {
    let key = "tokenizer.ggml.scores";
    let scores = file.list(key)?;
    if scores.len() != texts.len() {
        let (scores, tokens) = (scores.len(), texts.len());
        return Err(file.wrong(key, format!("{scores} scores for {tokens} tokens")));
    }
    // Higher scores first.
    let mut order: Vec<f64> = Vec::with_capacity(scores.len());
    for score in scores {
        match score {
            Value::Number(score) => order.push(*score),
            other => return Err(file.wrong(key, format!("{other:?} is not a number"))),
        }
    }
    let mut sorted = order.clone();
    sorted.sort_by(|a, b| b.total_cmp(a));
    sorted.dedup();
    let rank = |score: &f64| sorted.partition_point(|other| other.total_cmp(score).is_gt()) as i64;
    let ranks = order.iter().map(rank).collect();
    let bytes = (0..=255_u8).map(|byte| vocabulary.get(&format!("<0x{byte:02X}>")).copied());
    let unknown = file.token("tokenizer.ggml.unknown_token_id", texts.len()).ok();
    Ok(Encoding::SentencePiece { ranks, bytes: bytes.collect(), unknown })
}

/// The ranks of pairs, which are in the order of merging.
fn ranks(
    pairs: &[(&str, &str)],
    vocabulary: &HashMap<String, u32>,
) -> Result<HashMap<(u32, u32), i64>> {
    let token = |text: &str| {
        vocabulary
            .get(text)
            .copied()
            .ok_or_else(|| Error::model(format!("`{text}` of a merge is not a token")))
    };
    let mut ranks = HashMap::with_capacity(pairs.len());
    for ((left, right), rank) in pairs.iter().zip(0..) {
        token(&format!("{left}{right}"))?;
        ranks.entry((token(left)?, token(right)?)).or_insert(rank);
    }
    Ok(ranks)
}

/// The part of a `tokenizer.json` that is used here.
#[derive(Deserialize)]
struct TokenizerFile {
    #[serde(default)]
    added_tokens: Vec<JsonAddedToken>,
    normalizer: Option<serde_json::Value>,
    pre_tokenizer: JsonPreTokenizer,
    model: JsonModel,
}

#[derive(Deserialize)]
struct JsonAddedToken {
    id: u32,
    content: String,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
}

#[derive(Deserialize)]
struct JsonPreTokenizer {
    r#type: String,
    #[serde(default)]
    add_prefix_space: bool,
    #[serde(default = "yes")]
    use_regex: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
struct JsonModel {
    r#type: Option<String>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    ignore_merges: bool,
    vocab: HashMap<String, u32>,
    merges: Vec<JsonMerge>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum JsonMerge {
    Pair(String, String),
    Text(String),
}

impl TokenizerFile {
    fn tokens(self) -> Result<Tokens> {
        let model = self.model;
        let has_text = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        let unsupported = [
            ("a normalizer", self.normalizer.is_some()),
            ("a pre_tokenizer other than ByteLevel", self.pre_tokenizer.r#type != "ByteLevel"),
            ("a model other than BPE", model.r#type.is_some_and(|kind| kind != "BPE")),
            ("continuing_subword_prefix", has_text(&model.continuing_subword_prefix)),
            ("end_of_word_suffix", has_text(&model.end_of_word_suffix)),
        ];
        if let Some((what, _)) = unsupported.iter().find(|(_, is_there)| *is_there) {
            return Err(Error::model(format!(
                "{what} is not supported; byte-level BPE as RoBERTa has it is"
            )));
        }
        let pairs = (model.merges.iter())
            .map(|merge| match merge {
                JsonMerge::Pair(left, right) => Ok((&**left, &**right)),
                JsonMerge::Text(text) => text
                    .split_once(' ')
                    .ok_or_else(|| Error::model(format!("merge `{text}` is not a pair"))),
            })
            .collect::<Result<Vec<_>>>()?;
        let ranks = ranks(&pairs, &model.vocab)?;
        let mut vocabulary = model.vocab;
        vocabulary.extend(self.added_tokens.iter().map(|added| (added.content.clone(), added.id)));
        let named = |name: &str| {
            let token = vocabulary.get(name).copied();
            token.ok_or_else(|| Error::model(format!("there is no token {name}")))
        };
        let (begin, end, mask) = (named("<s>")?, named("</s>")?, named("<mask>")?);
        let added = self.added_tokens.into_iter().map(|added| AddedToken {
            text: added.content,
            token: added.id,
            takes_left: added.lstrip,
            takes_right: added.rstrip,
        });
        let pattern = match self.pre_tokenizer.use_regex {
            true => WordPattern::Gpt2,
            false => WordPattern::Whole,
        };
        Ok(Tokens {
            added: AddedTokens::new(added),
            encoding: Encoding::ByteLevel { pattern, ranks, keeps_words: model.ignore_merges },
            vocabulary,
            has_space_first: self.pre_tokenizer.add_prefix_space,
            begin: vec![begin],
            end: vec![end],
            mask: Some(mask),
        })
    }
}
