//! Experiments with racecars: comparisons of algorithms on problems, and measurements of what the
//! optimizers themselves cost.
//!
//! - [`mod@bench`]: trials of algorithms on problems, side by side on all cores
//! - [`overhead`]: the cost of a step beside its floor
//! - [`statistics`]: what is said about a list of numbers
//! - [`theory`]: what the theorems assume, measured in a run

pub mod bench;
pub mod overhead;
pub mod statistics;
pub mod theory;
