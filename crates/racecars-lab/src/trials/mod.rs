//! Trials of cells, side by side on all cores, and kept on disk as soon as they are done: an experiment
//! that was interrupted goes on where it was.
//!
//! - `cell`: what is tried, and a trial of it
//! - `store` and `files`: what is kept
//! - `work`: running what is missing

mod cell;
pub(crate) mod files;
mod store;
mod work;

pub use cell::Cell;
pub(crate) use cell::Trial;
pub(crate) use store::{Store, fingerprint};
pub use work::Step;
pub(crate) use work::{Results, Work, run as run_trials};

use racecars_problems::ProblemError;
use std::path::PathBuf;

/// Why the experiments cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum TrialsError {
    /// A problem that is not known.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// A setting, or a space that an algorithm does not take.
    #[error(transparent)]
    Optimizer(#[from] racecars::Error),
    /// A file that cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
