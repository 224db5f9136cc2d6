//! Test functions and problems for racecars, each with its space, its optimum and its name.
//!
//! ```
//! use racecars::minimize;
//! use racecars_problems::Problem;
//!
//! let problem = Problem::named("shifted-rastrigin", 50, 1)?;
//! let solution = minimize(problem.space()).budget(5000).run(|p| problem.evaluate(p))?;
//! assert!(solution.value().unwrap() >= problem.optimum());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A name is that of a function, with any of the prefixes of [`Problem::named`]; [`catalogue`] lists them.

pub mod catalogue;
pub mod functions;
mod jumps;
mod problem;
pub mod rotation;
pub mod trig;

pub use problem::{Problem, ProblemError, Transformation};
