//! What the crates read from outside: tables of several formats, and (feature `http`) HTTP.

#[cfg(feature = "http")]
pub mod http;
pub mod table;
