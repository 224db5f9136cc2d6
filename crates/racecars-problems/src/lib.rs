//! Test functions and problems for racecars, with their optima.

pub mod functions;
pub mod rotation;
pub mod trig;
