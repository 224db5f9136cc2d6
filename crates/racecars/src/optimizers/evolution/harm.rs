//! Which coordinates do harm when they are changed, and drifts, which change many that do none.

use super::draft::Draft;
use super::{EvolutionSearch, Scratch};

/// The probability that a change does harm: before anything is known, its least and greatest estimates, and that up
/// to which a coordinate counts as harmless.
pub(super) const ASSUMED_HARM: f64 = 0.5;
pub(super) const MIN_HARM: f64 = 0.002;
pub(super) const MAX_HARM: f64 = 0.99;
pub(super) const HARMLESS: f64 = 0.1;
/// The coordinates that an improvement is assumed to make harmful.
const NEWLY_HARMFUL: f64 = 4.0;
/// A drift changes coordinates until the probability that none does harm is about this.
const DRIFT_CHANCE: f64 = 0.6;

impl EvolutionSearch {
    /// Changes coordinates until the probability that none of them does harm is about [`DRIFT_CHANCE`].
    pub(super) fn drift(&self, draft: &mut Draft<'_>) {
        /// The chance that is left is near enough below this multiple.
        const NEAR: f64 = 1.05;
        let Some(solution) = &self.solution else { return };
        let mut chance = 1.0;
        for _ in 0..2 * self.harm.len() {
            let i = draft.random.index(self.harm.len());
            let next = chance * (1.0 - self.harm[i]);
            if next < DRIFT_CHANCE || draft.point[i] != solution.point[i] {
                continue;
            }
            chance = next;
            draft.change(i);
            if chance < NEAR * DRIFT_CHANCE {
                break;
            }
        }
        if draft.touched.is_empty() {
            draft.change_any(1);
        }
    }

    /// Learns from a candidate which coordinates do harm when they are changed, as in group testing: a candidate is
    /// worse if any of its changes does harm.
    pub(super) fn blame(&mut self, improves: bool, is_no_worse: bool) {
        let EvolutionSearch { harm, harmless, scratch: Scratch { changed, .. }, .. } = self;
        let mut set = |harm: &mut f64, new: f64| {
            *harmless -= usize::from(*harm <= HARMLESS);
            *harm = new.clamp(MIN_HARM, MAX_HARM);
            *harmless += usize::from(*harm <= HARMLESS);
        };
        if improves {
            let newly = NEWLY_HARMFUL / harm.len() as f64;
            harm.iter_mut().for_each(|harm| set(harm, *harm + newly * (1.0 - *harm)));
        }
        let are_safe: f64 = changed.iter().map(|&i| 1.0 - harm[i as usize]).product();
        let share = 1.0 / changed.len() as f64;
        for &i in &*changed {
            let harm = &mut harm[i as usize];
            let after = match (improves, is_no_worse) {
                // Some of the changes are what made it better, and must stay.
                (true, _) => harm.max(share),
                (_, true) => MIN_HARM,
                _ => *harm / (1.0 - are_safe),
            };
            set(harm, after);
        }
    }
}
