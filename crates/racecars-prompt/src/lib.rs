//! Searching prompts of language models behind OpenAI-compatible endpoints with racecars.
//!
//! A [`Task`] is what a TOML file says: templates, texts to choose from, a pool of examples, label words or a
//! metric, an endpoint, limits. [`search()`] runs it in a study's folder: a candidate prompt is a point of a
//! racecars space, races on minibatches of training texts against the best so far, and every answer is kept on
//! disk by its request, so that nothing is paid for twice. The result is a [`Report`] and a file with the prompt.

mod answer;
mod caller;
pub mod data;
mod endpoint;
mod error;
mod halving;
mod metric;
mod propose;
mod race;
mod report;
mod search;
pub mod settings;
pub mod statistics;
mod store;
mod task;
mod template;

pub use answer::Answer;
pub use caller::{Limit, OnRetry};
pub use endpoint::Endpoint;
pub use error::{Error, ErrorKind, Result};
pub use metric::{Metric, Question, Score};
pub use report::{Counts, PROMPT, Report, Reported, Stop, TableScore};
pub use search::{Progress, planned_prompts, restart, search};
pub use settings::Settings;
pub use store::{FILE as ANSWERS, Spent};
pub use task::{Candidate, Task};
