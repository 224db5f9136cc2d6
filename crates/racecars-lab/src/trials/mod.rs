//! Trials of cells, in parallel on all cores, and saved on disk as soon as they are done: an interrupted
//! experiment resumes where it was.
//!
//! - `cell`: an algorithm on a problem, and a trial of it
//! - `store`: the saved trials
//! - `work`: running the missing trials

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

/// Why an experiment cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum TrialsError {
    /// An unknown problem.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// An invalid setting, or a space that an algorithm does not support.
    #[error(transparent)]
    Optimizer(#[from] racecars::Error),
    /// A file that cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}
