//! Local search with moves that fit each kind of coordinate: an order is changed by swaps, insertions and
//! reversals, a selection by exchanges, shares by transfers, numbers by steps of three sizes.
//!
//! A candidate takes the place of the current point if it is not worse than that, or not worse than the current
//! point of L steps ago: late acceptance (E. Burke and Y. Bykov, "The late acceptance hill-climbing heuristic",
//! 2017), which escapes from local optima as annealing does, but only compares values. Sizes of steps are chosen
//! by the improvements that they have led to. A search that is stuck starts again near the best point.

use super::ledger::Ledger;
use super::settings::settings;
use super::shell::{Evaluated, Proposal, Search, Setup, Tools};
use crate::error::Result;
use crate::outcome::Rank;
use crate::sample::Sample;
use crate::space::{Space, StepSize};
use serde::{Deserialize, Serialize};

settings! {
    /// Local search has no settings.
    pub struct LocalSearch {}
}

/// Candidates per coordinate and step of the history: with few evaluations, the search is a climb.
const BUDGET_PER_HISTORY: u64 = 60;
const MAX_HISTORY: u64 = 5000;
/// Candidates per pair of coordinates, and in all, without an improvement, after which the search is stuck.
const PATIENCE_PER_PAIR: u64 = 1;
const MIN_PATIENCE: u64 = 100;
const MAX_PATIENCE: u64 = 1_000_000;
/// Steps away from the best point when the search starts again: a random number in this range.
const KICK: [u64; 2] = [3, 8];
/// One candidate in this many takes a second step.
const DOUBLE_STEP_INTERVAL: u64 = 8;
/// The least weight of a size of steps, where the most successful one has 1.
const MIN_WEIGHT: f64 = 0.1;
/// How much a success counts after each candidate of the same size.
const FADING: f64 = 0.99;
/// Attempts at a point that was not seen before.
const MAX_TRIES: usize = 12;

/// The state of a local search.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LocalSearchState {
    current: Option<Sample>,
    /// The ranks of the current points of the last L steps, and the place of the oldest.
    history: Vec<Rank>,
    oldest: usize,
    /// L.
    length: usize,
    /// The weight of each size of steps.
    weights: [f64; 3],
    /// Candidates told since the current point was last better than all in its run.
    idle: u64,
    /// The best rank since the last start.
    run_best: Option<Rank>,
    /// Whether the next candidate starts again.
    is_stuck: bool,
}

/// What a pending candidate is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Step {
    Start,
    Sized(StepSize),
}

impl LocalSearchState {
    pub(super) fn new(setup: Setup<'_>) -> Self {
        let n = setup.space.dimension() as u64;
        let budget = setup.budget.unwrap_or(0);
        let length = (budget / (BUDGET_PER_HISTORY * n)).clamp(1, MAX_HISTORY) as usize;
        LocalSearchState {
            current: None,
            history: Vec::new(),
            oldest: 0,
            length,
            weights: [1.0; 3],
            idle: 0,
            run_best: None,
            is_stuck: false,
        }
    }

    fn patience(&self, n: u64) -> u64 {
        let pairs = n.saturating_mul(n) / 2;
        (PATIENCE_PER_PAIR * pairs + self.length as u64 * n).clamp(MIN_PATIENCE, MAX_PATIENCE)
    }

    fn draw_size<M>(&self, tools: &mut Tools<'_, M>) -> StepSize {
        let mut rest = tools.random.unit() * self.weights.iter().sum::<f64>();
        for (size, weight) in StepSize::ALL.into_iter().zip(self.weights) {
            rest -= weight;
            if rest < 0.0 {
                return size;
            }
        }
        StepSize::Small
    }

    /// Begins a run at this point.
    fn start(&mut self, sample: Sample) -> Option<Sample> {
        self.history.clear();
        self.history.resize(self.length, sample.rank);
        (self.oldest, self.idle, self.run_best) = (0, 0, Some(sample.rank));
        self.current.replace(sample)
    }
}

impl Search for LocalSearchState {
    type Mark = Step;

    fn propose(&mut self, tools: &mut Tools<'_, Step>) -> Option<Proposal<Step>> {
        let mut point = tools.buffer();
        let start = match (&self.current, tools.best.sample()) {
            (Some(current), _) if !self.is_stuck => current.point.clone(),
            (_, Some(best)) => best.point.clone(),
            _ => {
                let key = tools.draw(&mut point)?;
                return Some(Proposal { point, key, mark: Step::Start });
            }
        };
        let size = self.draw_size(tools);
        let (steps, mark) = if self.is_stuck || self.current.is_none() {
            let [least, most] = KICK;
            (least + tools.random.below(most - least + 1), Step::Start)
        } else {
            let is_double = tools.random.below(DOUBLE_STEP_INTERVAL) == 0;
            (1 + u64::from(is_double), Step::Sized(size))
        };
        self.is_stuck = false;
        let key = tools.unseen(MAX_TRIES, &mut point, |tools, _, point| {
            point.copy_from_slice(&start);
            (0..steps).for_each(|_| tools.space.step(size, point, tools.random));
            tools.space.key(point)
        })?;
        Some(Proposal { point, key, mark })
    }

    fn learn(
        &mut self,
        evaluated: Evaluated<Step>,
        tools: &mut Tools<'_, Step>,
    ) -> Result<Option<Box<[f64]>>> {
        let Evaluated { sample, asked, is_best } = evaluated;
        let mark = asked.map(|asked| asked.mark);
        if let Some(Step::Sized(size)) = mark
            && let Some(current) = &self.current
        {
            let weight = &mut self.weights[size as usize];
            let gain = if sample.rank.beats(current.rank) { 1.0 } else { 0.0 };
            *weight = (FADING * *weight + (1.0 - FADING) * gain).max(0.0);
            let most = self.weights.iter().fold(f64::MIN_POSITIVE, |a, b| a.max(*b));
            self.weights.iter_mut().for_each(|weight| *weight = weight.max(MIN_WEIGHT * most));
        }
        let Some(current) = &self.current else {
            let old = (!sample.rank.is_failure()).then(|| self.start(sample));
            return Ok(old.flatten().map(|old| old.point));
        };
        if is_best || (mark == Some(Step::Start) && !sample.rank.is_failure()) {
            // A start that others have overtaken while it was out is not worse than where they are.
            return Ok(self.start(sample).map(|old| old.point));
        }
        let is_accepted =
            !current.rank.beats(sample.rank) || !self.history[self.oldest].beats(sample.rank);
        self.history[self.oldest] = if is_accepted { sample.rank } else { current.rank };
        self.oldest = (self.oldest + 1) % self.history.len();
        self.idle += 1;
        if self.run_best.is_none_or(|best| sample.rank.beats(best)) {
            (self.run_best, self.idle) = (Some(sample.rank), 0);
        }
        if self.idle > self.patience(tools.space.dimension() as u64) {
            (self.is_stuck, self.idle) = (true, 0);
        }
        match is_accepted {
            true => Ok(self.current.replace(sample).map(|old| old.point)),
            false => Ok(Some(sample.point)),
        }
    }

    fn is_sound(&self, space: &Space, _: &Ledger<Step>) -> Result<bool> {
        let has_current = self.current.as_ref().is_none_or(|current| {
            current.is_sound(space)
                && self.history.len() == self.length
                && self.oldest < self.length
                && self.history.iter().all(|rank| rank.is_sound())
        });
        let is_weight = |weight: &f64| weight.is_finite() && *weight >= 0.0;
        Ok(has_current
            && (1..=MAX_HISTORY as usize).contains(&self.length)
            && self.weights.iter().all(is_weight)
            && self.weights.iter().sum::<f64>() > 0.0
            && self.idle <= MAX_PATIENCE + 1
            && self.run_best.is_none_or(|rank| rank.is_sound()))
    }
}
