//! The (epsilon, delta)-query bounds of the paper, as printed and corrected: Theorem 2 for SRACOS and
//! Theorem 3 for RACE-CARS, and the conditions that come with them. `docs/theory.md` has the
//! derivations at length, and figures.
//!
//! The question is how many queries find, with probability at least 1 - delta, a point of the target
//! Omega_eps = { x : f(x) - f* <= eps }. With |.| the measure relative to the whole space, what is
//! assumed is that each hypothesis h_t, the box that is drawn from, holds at least the share eta of
//! the target ("Omega_eps is eta-shattered by h_t", Definition 4).
//!
//! ```
//! use racecars::theory::{Bounds, Setting, Version};
//!
//! let bounds = Bounds::new(Setting::default())?;
//! assert!(bounds.race_cars(Version::Proved) < bounds.sracos());
//! // The printed bound on the mean measure of the region leaves the dimension out, and is loose.
//! assert!(bounds.race_cars(Version::Mean) < bounds.race_cars(Version::Printed));
//! # Ok::<(), racecars::Error>(())
//! ```
//!
//! - [`Setting`]: what the bounds are stated in
//! - [`Bounds`]: the bounds, in [`Version`]s
//! - [`region`]: the region's mean measure, and the sufficient condition on gamma and rho
//!
//! The theorems are about drawing uniformly from the hypothesis. The optimizers here, as those of the
//! published runs, redraw a few coordinates of a good point instead, which no bound covers.

mod bounds;
mod chain;
mod logs;
mod queries;
pub mod region;
mod setting;

pub use bounds::{Bounds, Version};
pub use queries::Queries;
pub use setting::{Setting, ln_ball};
