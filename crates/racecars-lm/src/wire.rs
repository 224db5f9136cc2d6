//! The protocol: bodies of requests and answers. `docs/lm.md` documents it.

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
    /// Its limits.
    pub limits: ServiceLimits,
}

/// The limits of a service.
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
    /// Seconds without use after which a batch is dropped.
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
            keep_seconds: 900,
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
    /// The index of the correct word of each text; empty if only logits are needed.
    #[serde(default)]
    pub labels: Vec<usize>,
    /// A text whose embedding is added to every prompt: p0. It never leaves the service.
    #[serde(default)]
    pub base: String,
}

/// The answer to an [`Upload`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uploaded {
    /// The handle.
    pub batch: String,
    /// The number of texts.
    pub texts: usize,
    /// The number of their tokens.
    pub tokens: usize,
}

/// The options of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluateOptions {
    /// The loss.
    #[serde(default)]
    pub loss: Loss,
    /// Whether to return logits in addition; without labels they are always returned.
    #[serde(default)]
    pub logits: bool,
}

/// `POST /v1/batches/{batch}/evaluate` as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluateRequest {
    /// The prompts: the concatenated embeddings of their tokens.
    pub prompts: Vec<Vec<f32>>,
    /// The loss.
    #[serde(default)]
    pub loss: Loss,
    /// Whether to return logits in addition.
    #[serde(default)]
    pub logits: bool,
}

/// The query of the binary format, whose body is the prompts as little-endian `f32`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BinaryQuery {
    /// The number of prompts in the body.
    pub prompts: usize,
    /// The loss.
    #[serde(default)]
    pub loss: Loss,
    /// Whether to return logits in addition.
    #[serde(default)]
    pub logits: bool,
}

/// The answer to an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluateResponse {
    /// An answer per prompt.
    pub results: Vec<Answer>,
}

/// The result of a prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// The share of texts whose correct word has the greatest logit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// The label words' logits: a row per text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logits: Option<Vec<Vec<f32>>>,
    /// Why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The body of an answer that is not a success.
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

    /// The error kind of a name on the wire.
    pub(crate) fn error_kind(&self) -> ErrorKind {
        match &*self.kind {
            "input" => ErrorKind::Input,
            "unknown" => ErrorKind::Unknown,
            "busy" => ErrorKind::Busy,
            "unauthorized" => ErrorKind::Unauthorized,
            _ => ErrorKind::Network,
        }
    }
}
