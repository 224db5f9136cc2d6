//! `racecars._core`: the core for Python, thin. What users see is in `python/racecars`.
//!
//! - `space`: spaces, and points as arrays and dicts
//! - `candidate`, `optimizer`: ask and tell
//! - `settings`: an algorithm from its name and keyword options
//! - `embedding`: many coordinates as few
//! - `drive`, `record`: the loop that calls a Python function one point after the other
//!
//! Locks are held only while the core works, never while Python code runs, and waiting for one
//! releases the interpreter. Work of more than some microseconds releases it too.

mod candidate;
mod drive;
mod embedding;
mod error;
mod optimizer;
mod record;
mod settings;
mod space;

use pyo3::prelude::*;
use racecars::Algorithm;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<space::Space>()?;
    module.add_class::<candidate::Candidate>()?;
    module.add_class::<optimizer::Optimizer>()?;
    module.add_class::<record::Record>()?;
    module.add_class::<embedding::Embedding>()?;
    module.add("SpaceExhausted", module.py().get_type::<error::SpaceExhausted>())?;
    module.add("METHODS", Algorithm::NAMES.to_vec())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
