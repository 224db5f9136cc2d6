//! Random search: uniform draws from the space, the yardstick that everything must beat.

use super::incumbent::Incumbent;
use super::ledger::Ledger;
use super::{Best, Candidate, Optimizer, saved};
use crate::classify::Sample;
use crate::error::Result;
use crate::outcome::Outcome;
use crate::random::Random;
use crate::space::Space;
use serde::{Deserialize, Serialize};

/// Uniform draws from the space; in a discrete one without repeats.
pub struct RandomSearch {
    space: Space,
    state: State,
    /// The buffer of the last point told, for the next one asked.
    spare: Option<Box<[f64]>>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct State {
    random: Random,
    ledger: Ledger,
    best: Incumbent,
}

impl RandomSearch {
    /// A search that is a function of the seed.
    pub fn new(space: &Space, seed: u64) -> Self {
        RandomSearch {
            space: space.clone(),
            state: State {
                random: Random::new(seed),
                ledger: Ledger::default(),
                best: Incumbent::default(),
            },
            spare: None,
        }
    }

    pub(super) fn restore(space: Space, state: State) -> Result<Self> {
        let is_sound =
            state.random.is_alive() && state.ledger.is_sound(&space) && state.best.is_sound(&space);
        if !is_sound {
            return Err(saved::unsound());
        }
        Ok(RandomSearch { space, state, spare: None })
    }
}

impl Optimizer for RandomSearch {
    fn space(&self) -> &Space {
        &self.space
    }

    fn name(&self) -> &'static str {
        "random"
    }

    fn ask(&mut self) -> Option<Candidate> {
        let State { random, ledger, .. } = &mut self.state;
        let mut point = (self.spare.take())
            .unwrap_or_else(|| vec![0.0; self.space.dimension()].into_boxed_slice());
        let key = ledger.draw(&self.space, random, &mut point)?;
        Some(ledger.issue(&self.space, point, key))
    }

    fn tell(&mut self, candidate: Candidate, outcome: Outcome) -> Result<()> {
        let (point, key) = self.state.ledger.settle(&self.space, candidate)?;
        let rank = outcome.rank();
        self.spare = self.state.best.offer(Sample { point, rank, key });
        Ok(())
    }

    fn told(&self) -> u64 {
        self.state.ledger.told()
    }

    fn pending(&self) -> usize {
        self.state.ledger.pending()
    }

    fn best(&self) -> Option<Best<'_>> {
        self.state.best.best()
    }

    fn save(&self) -> Vec<u8> {
        saved::save(self.name(), &self.space, &self.state)
    }
}
