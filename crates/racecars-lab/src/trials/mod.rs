//! Trials of cells, side by side on all cores, and kept on disk as soon as they are done: an experiment
//! that was interrupted goes on where it was.
//!
//! - `cell`: what is tried, and a trial of it
//! - `store`: what is kept
//! - `work`: running what is missing

mod cell;
mod store;
mod work;

pub use cell::Cell;
pub(crate) use cell::CellTrial;
pub(crate) use store::{Store, fingerprint};
pub use work::{Completion, TrialProgress};
pub(crate) use work::{TrialResults, run as run_trials};

use racecars_figures::files::FileError;
use racecars_problems::ProblemError;

/// Why the experiments cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum TrialsError {
    /// A problem that is not known.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// A setting, or a space that an algorithm does not take.
    #[error(transparent)]
    Optimizer(#[from] racecars::Error),
    /// A file that cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}
