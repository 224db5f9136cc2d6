//! The budget of a study, which is the core's.

pub use racecars::Budget;
