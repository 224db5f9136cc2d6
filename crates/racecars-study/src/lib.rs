//! Optimizing external programs with racecars: study file, journal, workers, recovery; and seeing what
//! came of it: reports, a live page, exports.

pub mod export;
pub mod process;
pub mod report;
pub mod trace;
pub mod watch;
