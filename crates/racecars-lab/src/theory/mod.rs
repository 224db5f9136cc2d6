//! The paper's query bounds, and measurements of what they assume. `docs/theory.md` has the derivations
//! at length, and figures.
//!
//! The question is how many queries find, with probability at least 1 - delta, a point of the target
//! Omega_eps = { x : f(x) - f* <= eps }. |.| is the measure relative to the whole space. The assumption is
//! that each hypothesis, the box that points are drawn from, holds at least the share eta of the target
//! (which is then "eta-shattered", Definition 4). A region that has been shrunk too often cannot, so that
//! [`Theorem`] assumes it only up to kappa shrinks.
//!
//! - [`mod@bounds`]: the bounds of Theorems 2 and 3 as formulas, printed and corrected
//! - [`measured`]: a run of RACE-CARS in which eta, the region and the paper's sufficient condition are
//!   measured; many runs, in which it is measured how often the assumption fails before the first hit
//! - [`simulated`]: an example in which RACE-CARS itself fails more often than the printed theorem allows
//!
//! ```
//! use racecars_lab::theory::{Bounds, BoundSetting, Version};
//!
//! let bounds = Bounds::new(BoundSetting::default())?;
//! let theorem = bounds.theorem(None)?;
//! assert!(theorem.queries_held() < bounds.sracos());
//! // The printed bound on the mean measure of the region leaves the dimension out, and is loose.
//! assert!(bounds.race_cars(Version::Mean) < bounds.race_cars(Version::Printed));
//! # Ok::<(), racecars_lab::theory::TheoryError>(())
//! ```
//!
//! The theorems assume uniform draws from the hypothesis. The optimizers here, like those of the published
//! runs, redraw a few coordinates of a good point instead, which no bound covers.

pub mod bounds;
pub mod measured;
pub mod simulated;

pub use bounds::{BoundSetting, Bounds, Corollary, Queries, Theorem, Version};
pub use measured::{Checkpoint, MeasuredRun, Measurement};

use racecars_problems::ProblemError;

/// Why bounds cannot be computed or a run cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum TheoryError {
    /// An unknown problem.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// A setting of the optimizer outside its range.
    #[error(transparent)]
    Optimizer(#[from] racecars::Error),
    /// A quantity of the theorems outside its range.
    #[error("{0}")]
    Setting(String),
    /// A problem with discrete coordinates: measures are only defined on boxes of reals.
    #[error("problem `{0}` has discrete coordinates; only continuous problems can be measured")]
    NotContinuous(String),
    /// An epsilon for which the target would be empty.
    #[error("epsilon = {0} is not a positive number")]
    Epsilon(f64),
}
