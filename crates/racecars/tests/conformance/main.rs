//! The manners that every algorithm keeps in every kind of space. A new algorithm is covered by
//! being in `Algorithm::NAMES`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod asking;
mod cases;
mod discrete;
mod outcomes;
mod resuming;
mod telling;
