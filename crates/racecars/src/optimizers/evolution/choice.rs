//! Which move comes next: by the share of the budget that is left, and by the improvements that each kind of move has
//! led to.

use super::draft::MAX_WINDOW;
use super::{EvolutionSearch, Move, Start};
use crate::random::Random;
use serde::{Deserialize, Serialize};

/// Candidates per coordinate after a sweep without an improvement, after which a solution is left.
const PATIENCE_PER_COORDINATE: u64 = 5;
/// If there is a budget, this share of the moves has a number of changes that falls with time, from this part
/// of the coordinates and with this power of the budget that is left.
const FALLING_SHARE: f64 = 0.7;
const FALLING_FROM: f64 = 0.2;
const FALLING_POWER: f64 = 4.0;
/// The first solution is kept for this many evaluations per coordinate, at most half of the budget: the number of
/// changes is still falling.
const FIRST_SOLUTION_PER_COORDINATE: u64 = 20;
/// The least weight of a kind of move, where the most successful one has 1.
const MIN_SHARE: f64 = 0.04;
/// The memory of credits, in evaluations per coordinate: of moves, and of starts.
pub(super) const MOVE_MEMORY_PER_COORDINATE: f64 = 0.5;
pub(super) const START_MEMORY_PER_COORDINATE: f64 = 20.0;
/// The least memory of credits, in evaluations.
pub(super) const MIN_MEMORY: f64 = 20.0;
/// The evaluations in which one improvement of each kind of move is assumed to begin with.
pub(super) const ASSUMED_EVALUATIONS: f64 = 4.0;
/// The same per coordinate for starts at random points and near the best one.
pub(super) const ASSUMED_PER_COORDINATE: [f64; 2] = [20.0, 1.0];
/// The weight of this assumption, in improvements.
const ASSUMED_IMPROVEMENTS: f64 = 0.3;
/// The least share of harmless coordinates for drifts, and the greatest share of drifts.
const MIN_HARMLESS_SHARE: f64 = 0.125;
const MAX_DRIFT_SHARE: f64 = 0.5;
/// The least and greatest shares of windows, the evaluations in which one improvement by them is assumed to begin
/// with, and the weight of their squared rate: they wait until other changes have become rare.
const MIN_WINDOW_SHARE: f64 = 0.01;
const MAX_WINDOW_SHARE: f64 = 0.5;
pub(super) const WINDOW_ASSUMED_EVALUATIONS: f64 = 100.0;
const WINDOW_WEIGHT: f64 = 0.1;

/// Improvements and evaluations, both forgotten with time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Credit {
    improvements: f64,
    evaluations: f64,
}

impl Credit {
    /// One improvement is assumed in this many evaluations, with little weight.
    pub(super) fn new(evaluations: f64) -> Self {
        Credit {
            improvements: ASSUMED_IMPROVEMENTS,
            evaluations: ASSUMED_IMPROVEMENTS * evaluations,
        }
    }

    pub(super) fn count(&mut self, improves: bool, memory: f64) {
        let keep = 1.0 - 1.0 / memory;
        self.improvements = keep * self.improvements + f64::from(u8::from(improves));
        self.evaluations = keep * self.evaluations + 1.0;
    }

    pub(super) fn rate(&self) -> f64 {
        self.improvements / self.evaluations
    }

    pub(super) fn is_sound(&self) -> bool {
        self.improvements.is_finite() && self.improvements >= 0.0 && self.evaluations > 0.0
    }
}

impl EvolutionSearch {
    /// Chooses the next move.
    pub(super) fn choose(&self, asked: u64, random: &mut Random) -> Move {
        if self.solution.is_none() {
            return Move::Start(Start::Random);
        }
        let n = self.order.len() as u64;
        if let Some(budget) = self.budget
            && random.chance(FALLING_SHARE)
        {
            let left = 1.0 - (asked as f64 / budget as f64).min(1.0);
            let mean = FALLING_FROM * n as f64 * left.powf(FALLING_POWER);
            let size = mean.max(1.0).log2().round() as usize;
            return self.of_size(size.min(self.changes.len() - 1), random);
        }
        if self.swept < n {
            return self.choose_by_credit(false, random);
        }
        let is_first = asked < FIRST_SOLUTION_PER_COORDINATE * n;
        let is_early = is_first && self.budget.is_some_and(|budget| asked < budget / 2);
        if is_early || self.idle < PATIENCE_PER_COORDINATE * n {
            return self.choose_by_credit(self.optima.len() >= 2, random);
        }
        let [anew, near] = self.starts.map(|credit| credit.rate());
        let share = anew / (anew + near).max(f64::MIN_POSITIVE);
        Move::Start(if random.chance(share) { Start::Random } else { Start::NearBest })
    }

    /// A move with two to the power of `size` changes, or one of the other moves that change as many or more, by what
    /// has led to improvements.
    fn of_size(&self, size: usize, random: &mut Random) -> Move {
        let change = self.changes[size].rate().powi(2);
        let mut takes = |credit: &Credit, weight: f64, least: f64, most: f64| {
            let other = weight * credit.rate().powi(2);
            let share = other / (other + change).max(f64::MIN_POSITIVE);
            random.chance(share.clamp(least, most))
        };
        if !self.groups.is_empty() && takes(&self.swaps, 1.0, MIN_SHARE, 1.0 - MIN_SHARE) {
            return Move::Swap(size as u8);
        }
        let n = self.order.len();
        if self.harmless as f64 >= MIN_HARMLESS_SHARE * n as f64
            && takes(&self.drifts, 1.0, MIN_SHARE, MAX_DRIFT_SHARE)
        {
            return Move::Drift;
        }
        if n > MAX_WINDOW && takes(&self.windows, WINDOW_WEIGHT, MIN_WINDOW_SHARE, MAX_WINDOW_SHARE)
        {
            return Move::Window;
        }
        if size == 0 { Move::Sweep } else { Move::Leap(size as u8) }
    }

    /// Chooses a move by the improvements that each kind has led to.
    fn choose_by_credit(&self, mixes: bool, random: &mut Random) -> Move {
        let mixes = mixes.then_some(&self.mixes);
        let kinds = || self.changes.iter().chain(mixes);
        let highest = kinds().map(Credit::rate).fold(f64::MIN_POSITIVE, f64::max);
        let share = |credit: &Credit| (credit.rate() / highest).powi(2).max(MIN_SHARE);
        let mut left = random.unit() * kinds().map(share).sum::<f64>();
        for (size, credit) in self.changes.iter().enumerate() {
            left -= share(credit);
            if left < 0.0 {
                return self.of_size(size, random);
            }
        }
        if mixes.is_some() { Move::Mix } else { Move::Sweep }
    }
}

/// The number of sizes of changes: 1, 2 to 3, and so on to about a quarter of the coordinates.
pub(super) fn sizes(n: usize) -> usize {
    1 + (n / 4).max(2).ilog2() as usize
}
