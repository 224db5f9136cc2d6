//! Random search: uniform sampling, the baseline of all comparisons.

use super::ledger::Ledger;
use super::settings::settings;
use super::shell::{Proposal, Search, Tools};
use crate::error::Result;
use crate::space::Space;
use serde::{Deserialize, Serialize};

settings! {
    /// Random search has no settings.
    pub struct RandomSearch {}
}

/// Uniform sampling, without repeats in spaces with discrete coordinates.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct UniformSearch;

impl Search for UniformSearch {
    type Mark = ();

    // Settling would draw defaults of conditional coordinates again, and so make them rare.
    const SETTLES: bool = true;

    fn propose(&mut self, tools: &mut Tools<'_, ()>) -> Option<Proposal<()>> {
        let mut point = tools.buffer();
        let key = tools.draw(&mut point)?;
        Some(Proposal { point, key, mark: () })
    }

    fn is_sound(&self, _: &Space, _: &Ledger<()>) -> Result<bool> {
        Ok(true)
    }
}
