//! Optimizing external programs with racecars: study file, journal, workers, recovery.

pub mod process;
