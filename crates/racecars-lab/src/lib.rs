//! Experiments with racecars: the paper's, comparisons of algorithms on problems, and measurements of
//! the optimizers' own cost.
//!
//! - [`mod@bench`]: trials of algorithms on problems, in parallel on all cores
//! - [`overhead`]: the cost of a step next to its floor
//! - [`paper`]: the paper's experiments as data, figures and one page
//! - [`program`]: the overhead of a study next to a bare loop
//! - [`suite`]: a candidate for the default next to the best single algorithm of every cell
//! - [`theory`]: the paper's query bounds, and measurements of what they assume
//! - [`trials`]: trials in parallel, saved on disk

pub mod bench;
pub mod overhead;
pub mod paper;
pub mod program;
pub mod suite;
pub mod theory;
pub mod trials;
