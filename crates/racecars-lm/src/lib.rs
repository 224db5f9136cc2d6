//! Language models as a service, and the tuning of their prompts with racecars.
//!
//! The paper's second experiment, after Sun et al. 2022, "Black-Box Tuning for
//! Language-Model-as-a-Service": a service has a pretrained model and returns logits. Its user sends texts
//! and a continuous prompt, A z + p0 with a fixed random matrix A, and minimizes the loss over z.

pub mod calibration;
mod client;
mod comparison;
pub mod data;
mod error;
pub mod fetch;
pub mod hub;
pub mod loss;
mod metrics;
pub mod model;
pub mod projection;
mod server;
pub mod service;
mod shared;
pub mod task;
mod tensor_file;
mod tune;
mod uploaded;
mod vllm;
pub mod wire;

pub use client::{Client, OnRetry};
pub use comparison::{AlgorithmTunings, TestedBaselines, TuneComparison};
pub use error::{Error, ErrorKind, Result};
pub use loss::{Loss, Score};
pub use model::{Batch, EmbeddingStatistics, InputText, Model, ModelInfo, ModelKind};
pub use projection::{Draw, Projection, ProjectionSettings};
pub use server::{Server, ServerSettings};
pub use service::{BlackBox, Service};
pub use shared::SharedUploads;
pub use task::{Position, Task};
pub use tune::{
    Baselines, JOURNAL, PROMPT, Prompt, PromptOrigin, PromptScores, TuneSettings, TuneStatus,
    Tuned, tune,
};
pub use uploaded::UploadedExamples;
pub use vllm::VllmClient;
