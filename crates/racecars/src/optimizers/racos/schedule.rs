//! When and how the search region shrinks. The paper's schedule is the only one so far; an adaptive
//! one goes beside it here, fed by `told`.

use crate::random::Random;
use crate::space::Region;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Schedule {
    /// The region is the whole space: RACOS and SRACOS.
    Still,
    /// Algorithm 4: at each step, with probability rho, the region becomes gamma^k of the space
    /// around the best point, and k grows by one.
    Fixed { gamma: f64, rho: f64 },
}

impl Schedule {
    pub(super) fn fixed(gamma: f64, rho: f64) -> Self {
        Schedule::Fixed { gamma, rho }
    }

    /// Before a step: perhaps shrinks the region around `best`. The region is taken anew from the
    /// whole space each time, not from within the last one.
    pub(super) fn step(&mut self, region: &mut Option<Region>, best: &[f64], random: &mut Random) {
        match self {
            Schedule::Still => {}
            Schedule::Fixed { gamma, rho } => {
                if !random.chance(*rho) {
                    return;
                }
                // gamma^k as a product, which is the same number on every machine; powf is not.
                let fraction = *gamma * region.as_ref().map_or(1.0, Region::fraction);
                let key = random.bits();
                match region {
                    Some(region) => region.recenter(best, fraction, key),
                    None => *region = Some(Region::new(best, fraction, key)),
                }
            }
        }
    }

    pub(super) fn is_sound(&self) -> bool {
        match self {
            Schedule::Still => true,
            Schedule::Fixed { gamma, rho } => {
                *gamma > 0.0 && *gamma < 1.0 && (0.0..=1.0).contains(rho)
            }
        }
    }
}
