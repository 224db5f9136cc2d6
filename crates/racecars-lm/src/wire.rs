//! What goes over the wire: the bodies of requests and answers. README of the protocol: `docs/lm.md`.

use crate::error::ErrorKind;
use crate::loss::Loss;
use crate::model::{InputText, ModelInfo};
use serde::{Deserialize, Serialize};

/// `GET /v1/model`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The model.
    #[serde(flatten)]
    pub info: ModelInfo,
    /// What the service allows.
    pub limits: ServiceLimits,
}

/// What the service allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceLimits {
    /// Prompts in a request.
    pub prompts: usize,
    /// Tokens of a prompt.
    pub prompt_tokens: usize,
    /// Texts in a batch.
    pub texts: usize,
    /// Tokens of all texts of a batch.
    pub tokens: usize,
    /// Label words.
    pub words: usize,
    /// Batches held at a time.
    pub batches: usize,
    /// Bytes that all batches held may take.
    pub held_bytes: usize,
    /// Bytes of a request's body.
    pub request_bytes: usize,
    /// After so many seconds without use a batch may be dropped for another.
    pub keep_seconds: u64,
}

impl Default for ServiceLimits {
    fn default() -> Self {
        ServiceLimits {
            prompts: 64,
            prompt_tokens: 512,
            texts: 1024,
            tokens: 65_536,
            words: 64,
            batches: 64,
            held_bytes: 4 << 30,
            request_bytes: 64 << 20,
            keep_seconds: 3600,
        }
    }
}

/// `POST /v1/batches`: texts to evaluate prompts on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upload {
    /// The texts.
    pub texts: Vec<InputText>,
    /// The label words.
    pub words: Vec<String>,
    /// The number of the right word of each text; none if only logits are wanted.
    #[serde(default)]
    pub labels: Vec<usize>,
    /// A text whose embedding is added to every prompt: p0. It never leaves the service.
    #[serde(default)]
    pub base: String,
}

/// Its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uploaded {
    /// The handle.
    pub batch: String,
    /// How many texts there are.
    pub texts: usize,
    /// How many tokens they have.
    pub tokens: usize,
}

/// What is wanted of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluateOptions {
    /// Which loss.
    #[serde(default)]
    pub loss: Loss,
    /// Whether logits are answered as well; where there are no labels they always are.
    #[serde(default)]
    pub logits: bool,
}

/// `POST /v1/batches/{batch}/evaluate` as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluateRequest {
    /// Prompts: the embeddings of their tokens one after the other.
    pub prompts: Vec<Vec<f32>>,
    /// Which loss.
    #[serde(default)]
    pub loss: Loss,
    /// Whether logits are answered as well.
    #[serde(default)]
    pub logits: bool,
}

/// The query of the binary form, whose body is the prompts as little-endian `f32`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BinaryQuery {
    /// How many prompts the body has.
    pub prompts: usize,
    /// Which loss.
    #[serde(default)]
    pub loss: Loss,
    /// Whether logits are answered as well.
    #[serde(default)]
    pub logits: bool,
}

/// The answer to an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluateResponse {
    /// One per prompt.
    pub results: Vec<Answer>,
}

/// What came of a prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// The share of texts whose right word is first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// The label words' logits: a row per text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logits: Option<Vec<Vec<f32>>>,
    /// Why there is nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Any answer that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Why.
    pub error: Reason,
}

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// For programs: `input`, `unknown`, `busy`, `unauthorized`, `internal`.
    pub kind: String,
    /// For people.
    pub message: String,
}

impl Reason {
    /// The kind's name on the wire.
    pub(crate) fn name(kind: ErrorKind) -> &'static str {
        match kind {
            ErrorKind::Input | ErrorKind::Data => "input",
            ErrorKind::Unknown => "unknown",
            ErrorKind::Busy => "busy",
            ErrorKind::Unauthorized => "unauthorized",
            _ => "internal",
        }
    }

    /// The kind that the other side meant.
    pub(crate) fn meant(&self) -> ErrorKind {
        match &*self.kind {
            "input" => ErrorKind::Input,
            "unknown" => ErrorKind::Unknown,
            "busy" => ErrorKind::Busy,
            "unauthorized" => ErrorKind::Unauthorized,
            _ => ErrorKind::Network,
        }
    }
}
