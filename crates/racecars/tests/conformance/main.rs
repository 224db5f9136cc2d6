//! The conformance suite: the contract of `Optimizer`, for every algorithm on every kind of space. A new
//! algorithm is covered through `Algorithm::NAMES`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod asking;
mod cases;
mod discrete;
mod outcomes;
mod resuming;
mod telling;
