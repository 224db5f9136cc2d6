//! temporary
mod classify;
pub mod error;
pub mod optimizers;
pub mod outcome;
pub mod random;
pub mod space;
pub use error::{Error, ErrorKind, Result};
pub use optimizers::cma_es::{CmaEs, Restarts};
pub use optimizers::racos::{Classification, Replacing, Shrinking};
pub use optimizers::{Algorithm, Best, Candidate, Optimizer, load};
pub use outcome::{Outcome, Rank};
pub use space::{Axis, Domain, Point, Scale, Space, SpaceBuilder, Value, Values};
