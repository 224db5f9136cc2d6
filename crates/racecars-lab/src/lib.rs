//! Experiments with racecars: comparisons of algorithms on problems, and measurements of what the
//! optimizers themselves cost.
//!
//! - [`mod@bench`]: trials of algorithms on problems, side by side on all cores
//! - [`overhead`]: the cost of a step beside its floor
//! - [`program`]: what a study adds to running a program, beside a bare loop
//! - [`statistics`]: what is said about a list of numbers

pub mod bench;
pub mod overhead;
pub mod program;
pub mod statistics;
