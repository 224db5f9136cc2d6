//! Experiments with racecars: the paper's, comparisons of algorithms on problems, and measurements of
//! what the optimizers themselves cost.
//!
//! - [`mod@bench`]: trials of algorithms on problems, side by side on all cores
//! - [`overhead`]: the cost of a step beside its floor
//! - [`paper`]: the paper's experiments as data, figures and one page
//! - [`program`]: what a study adds to running a program, beside a bare loop
//! - [`suite`]: a candidate for the default beside the best single algorithm of every cell
//! - [`theory`]: what the theorems assume, measured in a run
//! - [`trials`]: trials side by side, kept on disk

pub mod bench;
pub mod overhead;
pub mod paper;
pub mod program;
pub mod suite;
pub mod theory;
pub mod trials;
