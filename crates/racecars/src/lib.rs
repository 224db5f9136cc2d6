//! # racecars
//!
//! Black-box optimization of functions without gradients, in many dimensions, with discontinuities and
//! expensive evaluations. Coordinates are continuous, integer, categorical, or any mix.
//!
//! The default algorithm is [`auto`](Auto), a portfolio: a few dozen evaluations tell whether coordinates
//! interact and whether the objective is multimodal, and it then runs RACE-CARS, CMA-ES, or one after the
//! other. [RACE-CARS](RaceCars) keeps a few good and some bad points, learns a random box that contains a
//! good point and no bad one, samples the next point from it, and shrinks the search region around the
//! best point. From hundreds of dimensions on, a step costs no more than three copies of a point, so it
//! works in hundreds to millions of dimensions. [`Algorithm`] lists all algorithms.
//!
//! ## Quick start
//!
//! ```
//! use racecars::{Space, minimize};
//!
//! let space = Space::cube(50, -10.0, 10.0)?;
//! let solution = minimize(&space)
//!     .budget(5000)
//!     .seed(1)
//!     .run(|p| p.coordinates().iter().map(|x| x * x).sum::<f64>())?;
//! assert!(solution.value().unwrap() < 1.0);
//! println!("{solution}");
//! # Ok::<(), racecars::Error>(())
//! ```
//!
//! ## Mixed spaces
//!
//! A [`Space`] has named coordinates and arrays of them; [`Domain`] lists the kinds. The objective gets
//! a [`Point`] and reads it by name. Spaces are built in code or read from JSON or TOML.
//!
//! ```
//! use racecars::{Domain, Space, minimize};
//!
//! let space = Space::builder()
//!     .log_real("rate", 1e-5, 1e-1)
//!     .levels("batch", [16, 32, 64, 128])
//!     .categorical("activation", ["relu", "tanh", "gelu"])
//!     .array("width", 3, Domain::log_integer(8, 512))
//!     .build()?;
//! let solution = minimize(&space).budget(1000).run(|p| -> racecars::Result<f64> {
//!     let misfit: f64 = p.reals("width")?.iter().map(|w| (w.log2() - 6.0).abs()).sum();
//!     let activation = if p.text("activation")? == "gelu" { 0.0 } else { 0.5 };
//!     Ok((p.real("rate")?.log10() + 3.0).abs() + misfit + activation)
//! })?;
//! assert_eq!(solution.point().unwrap().text("activation")?, "gelu");
//! # Ok::<(), racecars::Error>(())
//! ```
//!
//! ## Parallel evaluation
//!
//! [`Run::run_on`] evaluates in parallel: asynchronously, or deterministically with the same result on
//! any number of threads. See [`Workers`].
//!
//! ```
//! use racecars::{Space, Workers, minimize};
//! use std::time::Duration;
//!
//! let space = Space::cube(20, -5.0, 5.0)?;
//! let solution = minimize(&space)
//!     .budget(2000)
//!     .time_limit(Duration::from_secs(600))
//!     .run_on(Workers::Asynchronous(4), |p| p.coordinates().iter().map(|x| x.abs()).sum::<f64>())?;
//! assert_eq!(solution.evaluations(), 2000);
//! # Ok::<(), racecars::Error>(())
//! ```
//!
//! ## Ask and tell
//!
//! An [`Optimizer`] is a state machine: [`ask`](Optimizer::ask) for a candidate, evaluate it anywhere,
//! [`tell`](Optimizer::tell) its [`Outcome`]. Any number of candidates may be pending. They may be told
//! in any order, or never. The state is [saved](Optimizer::save) as bytes and [loaded](load); a restored
//! run continues bit for bit. A [`Session`] adds stop rules, history and deterministic order.
//!
//! ```
//! use racecars::{Algorithm, Candidate, Optimizer, Outcome, Space, load};
//!
//! let space = Space::builder().real("x", 0.0, 1.0).integer("n", 1, 10).build()?;
//! let mut optimizer = Algorithm::race_cars().optimizer(&space, Some(100), 1)?;
//!
//! // A point that was evaluated before:
//! let known = space.encode([("x", 0.5.into()), ("n", 3.into())])?;
//! optimizer.tell(Candidate::known(known), Outcome::from(0.25))?;
//!
//! for step in 0..100 {
//!     let Some(candidate) = optimizer.ask() else { break };
//!     let point = space.view(candidate.point());
//!     let outcome = match point.integer("n")? {
//!         7 => Outcome::failed("the simulator crashed"),
//!         n => Outcome::from(point.real("x")? + n as f64),
//!     };
//!     optimizer.tell(candidate, outcome)?;
//!     if step == 50 {
//!         optimizer = load(&optimizer.save())?;
//!     }
//! }
//! println!("{}", optimizer.best_point().unwrap());
//! # Ok::<(), racecars::Error>(())
//! ```
//!
//! ## Guarantees
//!
//! - The same seed gives the same run, on one thread and in deterministic mode on any number of threads.
//! - NaN, infinities, panics and errors are failed evaluations: counted, reported, never the best.
//! - In spaces with discrete coordinates no point is proposed twice, unless the objective is known to be
//!   noisy. An exhausted space is reported.
//! - Invalid input gets an [`Error`] that names the field, the value and what is allowed.

mod budget;
mod classify;
mod error;
mod linalg;
pub mod optimizers;
mod outcome;
pub mod portfolio;
pub mod random;
pub mod run;
mod sample;
pub mod session;
pub mod space;

pub use budget::Budget;
pub use error::{Error, ErrorKind, Result};
pub use optimizers::cma_es::{CmaEs, Restarts};
pub use optimizers::differential_evolution::{DifferentialEvolution, LShade};
pub use optimizers::embedding::{Embedding, SequentialEmbedding};
pub use optimizers::evolution::Evolution;
pub use optimizers::gaussian_process::GaussianProcess;
pub use optimizers::local_search::LocalSearch;
pub use optimizers::quadratic::Quadratic;
pub use optimizers::quasi_newton::QuasiNewton;
pub use optimizers::quasi_random::QuasiRandom;
pub use optimizers::racos::{Classification, RaceCars, Replacing, Shrinking};
pub use optimizers::random_search::RandomSearch;
pub use optimizers::sqp::Sqp;
pub use optimizers::zo_adam::ZoAdam;
pub use optimizers::{
    Algorithm, Best, Candidate, Decision, GivenSetting, MemberAccount, Optimizer, Portfolio,
    Setting, ShrunkRegion, load, load_in,
};
pub use outcome::{Direction, Failure, FailureKind, Measured, Outcome, Rank};
pub use portfolio::auto::{Auto, Noise};
pub use portfolio::relay::{Legs, Relay};
pub use run::{Cancel, Flow, Progress, Run, Solution, Workers, maximize, minimize};
pub use session::{
    Counts, Evaluation, History, Next, Order, Session, StopReason, StopRules, Trial,
};
pub use space::{
    Axis, Domain, Interval, Point, Scale, Space, SpaceBuilder, Structure, Value, Values,
};

/// The Rust examples of docs/spaces.md.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/spaces.md")]
struct SpacesPage;

/// The Rust examples of docs/rust.md.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct RustPage;

/// The Rust example of docs/index.md.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/index.md")]
struct IndexPage;
