//! Polishing: a local search by parabolas along the coordinates.
//!
//! A round evaluates the objective one step to either side of the best point along some coordinates. The
//! vertex of the parabola through the three values is the estimated optimum of that coordinate. One more
//! point combines the vertices of all these coordinates. If it is better than all single steps, the next
//! round has twice as many coordinates, otherwise half as many. If coordinates are nearly independent,
//! two evaluations per coordinate are enough.
//!
//! While a round waits for outcomes, others begin with the coordinates that are left. The combined point of a
//! round moves its coordinates from the best point known by then.

use crate::error::Result;
use crate::optimizers::ledger::Ledger;
use crate::optimizers::saved::ID_HEADROOM;
use crate::optimizers::shell::{Evaluated, Proposal, Search, Tools};
use crate::random::Random;
use crate::space::{Interval, Space};
use serde::{Deserialize, Serialize};

/// A member of portfolios, which tell it every new best point. Unlike other algorithms it may have nothing
/// to propose: while all coordinates wait for outcomes, and after convergence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PolishSearch {
    /// The step of each coordinate.
    steps: Vec<f64>,
    /// The number of coordinates in the next round.
    block: usize,
    /// The coordinates left in the current permutation.
    order: Vec<usize>,
    /// The rounds that wait for outcomes, by ascending number. There is one if one candidate is out at a
    /// time.
    rounds: Vec<Round>,
    /// The number of rounds so far.
    number: u64,
    /// The best value at the start of the last round.
    best: f64,
    /// The number of coordinate turns since it improved.
    idle: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Round {
    number: u64,
    base: Box<[f64]>,
    value: f64,
    stencils: Vec<Stencil>,
    /// The number of side points asked, two for each stencil.
    asked: usize,
    told: usize,
    /// Whether the combined point was asked.
    is_combined_asked: bool,
    /// The best value of the side points, and of the best point when the combined point was asked.
    best_side: f64,
}

/// The side points of one coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Stencil {
    index: usize,
    /// The coordinate on either side.
    at: [f64; 2],
    /// The values there, if told; infinite if there is no value.
    values: [Option<f64>; 2],
}

/// The data of a pending candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Probe {
    round: u64,
    /// The index of a side point; `None` for the combined point.
    slot: Option<usize>,
}

impl PolishSearch {
    pub(crate) const NAME: &'static str = "polish";

    /// The initial steps are this fraction of each axis. The space must be continuous.
    pub(super) fn new(space: &Space, share: f64) -> Self {
        let step = |index| {
            let extent = space.axis(index).extent();
            share * extent.high - share * extent.low
        };
        PolishSearch {
            steps: (0..space.dimension()).map(step).collect(),
            block: 1,
            order: Vec::new(),
            rounds: Vec::new(),
            number: 0,
            best: f64::INFINITY,
            idle: 0,
        }
    }

    /// Writes a point to evaluate. `best` and `value` are the best point so far. `None` while all coordinates
    /// wait for outcomes, and after two turns of every coordinate without an improvement.
    fn next(
        &mut self,
        space: &Space,
        best: &[f64],
        value: f64,
        random: &mut Random,
        point: &mut [f64],
    ) -> Option<Probe> {
        loop {
            let mut place = 0;
            while place < self.rounds.len() {
                let (round, steps) = (&mut self.rounds[place], &mut self.steps);
                if let Some(slot) = round.next_side(point) {
                    return Some(Probe { round: round.number, slot: Some(slot) });
                }
                if round.told < round.asked || round.is_combined_asked {
                    place += 1;
                } else if round.combine(space, best, steps, point) {
                    round.is_combined_asked = true;
                    round.best_side = round.best_side.min(value);
                    return Some(Probe { round: round.number, slot: None });
                } else {
                    self.rounds.remove(place);
                }
            }
            if !self.begin(space, best, value, random) {
                return None;
            }
        }
    }

    /// Begins a round. Returns false after convergence, and if all coordinates are in rounds.
    fn begin(&mut self, space: &Space, best: &[f64], value: f64, random: &mut Random) -> bool {
        let n = space.dimension();
        if value < self.best {
            (self.best, self.idle) = (value, 0);
        }
        if self.idle >= 2 * n {
            return false;
        }
        let mut stencils = Vec::new();
        while stencils.len() < self.block.min(n) {
            if self.order.is_empty() {
                if !stencils.is_empty() {
                    break;
                }
                let is_open = |index: &usize| {
                    let mut open = self.rounds.iter().flat_map(|round| &round.stencils);
                    open.any(|stencil| stencil.index == *index)
                };
                self.order = (0..n).filter(|index| !is_open(index)).collect();
                random.shuffle(&mut self.order);
            }
            let Some(index) = self.order.pop() else { break };
            let (base, step) = (best[index], self.steps[index]);
            let Interval { low, high } = space.axis(index).extent();
            let at = [(base - step).max(low), (base + step).min(high)];
            stencils.push(Stencil { index, at, values: [None; 2] });
        }
        if stencils.is_empty() {
            return false;
        }
        self.idle += stencils.len();
        self.number += 1;
        self.rounds.push(Round {
            number: self.number,
            base: best.into(),
            value,
            stencils,
            asked: 0,
            told: 0,
            is_combined_asked: false,
            best_side: f64::INFINITY,
        });
        true
    }

    /// Learns the value of a point; infinite if it has none.
    fn tell(&mut self, probe: Probe, value: f64) {
        let Some(place) = self.rounds.iter().position(|round| round.number == probe.round) else {
            return;
        };
        let round = &mut self.rounds[place];
        match probe.slot {
            Some(slot) => round.tell(slot, value),
            None => {
                let is_better = value < round.value.min(round.best_side);
                self.block = match is_better {
                    true => (2 * self.block).min(self.steps.len()),
                    false => (self.block / 2).max(1),
                };
                self.rounds.remove(place);
            }
        }
    }
}

impl Search for PolishSearch {
    type Mark = Probe;

    fn propose(&mut self, tools: &mut Tools<'_, Probe>) -> Option<Proposal<Probe>> {
        let space = tools.space;
        tools.beside_best(|best, value, random, point| self.next(space, best, value, random, point))
    }

    fn learn(
        &mut self,
        evaluated: Evaluated<Probe>,
        _: &mut Tools<'_, Probe>,
    ) -> Result<Option<Box<[f64]>>> {
        if let Some(probe) = evaluated.asked.map(|asked| asked.mark) {
            self.tell(probe, evaluated.sample.rank.value().unwrap_or(f64::INFINITY));
        }
        Ok(Some(evaluated.sample.point))
    }

    fn is_sound(&self, space: &Space, _: &Ledger<Probe>) -> Result<bool> {
        let n = space.dimension();
        let is_stencil = |stencil: &Stencil| {
            stencil.index < n
                && stencil.at.iter().all(|&at| space.axis(stencil.index).contains(at))
                && stencil.values.iter().flatten().all(|value| !value.is_nan())
        };
        let is_round = |round: &Round| {
            round.number <= self.number
                && space.check(&round.base).is_ok()
                && round.value.is_finite()
                && !round.best_side.is_nan()
                && (1..=n).contains(&round.stencils.len())
                && round.stencils.iter().all(is_stencil)
                && round.told <= round.asked
                && round.asked <= 2 * round.stencils.len()
        };
        Ok(self.steps.len() == n
            && self.steps.iter().all(|step| *step >= 0.0 && step.is_finite())
            && (1..=n).contains(&self.block)
            && self.order.len() <= n
            && self.order.iter().all(|&index| index < n)
            && self.idle <= 3 * n
            && !self.best.is_nan()
            && self.number < ID_HEADROOM
            && self.rounds.len() <= n
            && self.rounds.iter().all(is_round))
    }
}

impl Round {
    /// Writes the next side point, and returns its slot; `None` if all were asked.
    fn next_side(&mut self, point: &mut [f64]) -> Option<usize> {
        while self.asked < 2 * self.stencils.len() {
            let slot = self.asked;
            self.asked += 1;
            let Stencil { index, at, .. } = self.stencils[slot / 2];
            if at[slot % 2] == self.base[index] {
                // The best point is at a bound of this axis.
                self.tell(slot, f64::INFINITY);
                continue;
            }
            point.copy_from_slice(&self.base);
            point[index] = at[slot % 2];
            return Some(slot);
        }
        None
    }

    /// Writes the best point with the vertices of all coordinates of the round. Returns whether they move.
    fn combine(&self, space: &Space, best: &[f64], steps: &mut [f64], point: &mut [f64]) -> bool {
        point.copy_from_slice(best);
        let mut moves = false;
        for stencil in &self.stencils {
            let (index, extent) = (stencil.index, space.axis(stencil.index).extent());
            let base = self.base[index];
            let by = stencil.vertex(base, self.value, &mut steps[index]);
            let longest = 0.25 * extent.high - 0.25 * extent.low;
            steps[index] = steps[index].min(longest);
            let to = (base + by).clamp(extent.low, extent.high);
            moves |= to != base;
            point[index] = to;
        }
        moves
    }

    fn tell(&mut self, slot: usize, value: f64) {
        let Some(stencil) = self.stencils.get_mut(slot / 2) else { return };
        if stencil.values[slot % 2].replace(value).is_none() {
            self.told += 1;
            self.best_side = self.best_side.min(value);
        }
    }
}

impl Stencil {
    /// The distance from `base`, whose value is `middle`, to the vertex of the parabola. Sets the step of
    /// the coordinate's next turn.
    fn vertex(&self, base: f64, middle: f64, step: &mut f64) -> f64 {
        let [low, high] = self.values.map(|value| value.unwrap_or(f64::INFINITY));
        let (left, right) = (base - self.at[0], self.at[1] - base);
        let best_side = if low < high { -left } else { right };
        if low.is_infinite() || high.is_infinite() {
            *step *= 0.5;
            return if low.min(high) < middle { best_side } else { 0.0 };
        }
        let (falling, rising) = ((middle - low) / left, (high - middle) / right);
        let curvature = (rising - falling) / (left + right);
        let vertex = match curvature > 0.0 {
            true => -(falling + curvature * left) / (2.0 * curvature),
            false => 2.0 * best_side,
        };
        let vertex = if vertex.is_finite() { vertex.clamp(-2.0 * *step, 2.0 * *step) } else { 0.0 };
        *step = match low.min(high) < middle {
            true => 2.0 * *step,
            // The minimum is between the two side points: a smaller step next time.
            false => vertex.abs().clamp(0.05 * *step, 0.5 * *step),
        };
        vertex
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polishes with this many evaluations. Returns the best value, and the number of evaluations used.
    fn polished(n: usize, evaluations: usize, objective: impl Fn(&[f64]) -> f64) -> (f64, usize) {
        let space = Space::cube(n, -10.0, 10.0).unwrap();
        let mut random = Random::new(1);
        let mut best = vec![1.0; n];
        let mut value = objective(&best);
        let mut polish = PolishSearch::new(&space, 0.03);
        let mut point = vec![0.0; n];
        for used in 0..evaluations {
            let Some(probe) = polish.next(&space, &best, value, &mut random, &mut point) else {
                return (value, used);
            };
            space.check(&point).unwrap();
            let new = objective(&point);
            polish.tell(probe, new);
            assert_eq!(polish.is_sound(&space, &Ledger::default()), Ok(true));
            if new < value {
                value = new;
                best.copy_from_slice(&point);
            }
        }
        (value, evaluations)
    }

    #[test]
    fn a_separable_quadratic_takes_two_evaluations_per_coordinate() {
        let ellipsoid = |x: &[f64]| {
            x.iter().enumerate().map(|(i, x)| 10f64.powi(i as i32 % 7) * (x - 0.7).powi(2)).sum()
        };
        let (value, _) = polished(40, 40 * 5 / 2, ellipsoid);
        assert!(value < 1e-20, "{value}");
    }

    #[test]
    fn it_converges_and_then_stops() {
        let kinked = |x: &[f64]| x.iter().map(|x| (x - 3.0).abs()).sum();
        assert!(polished(5, 400, kinked).0 < 1e-3);
        let (value, used) = polished(5, 100_000, |x| x.iter().map(|x| x * x).sum());
        assert!(value < 1e-12 && used < 1000, "{value} {used}");
    }

    #[test]
    fn points_are_within_the_bounds() {
        let (value, _) = polished(4, 300, |x| x.iter().sum());
        assert_eq!(value, -40.0);
    }

    #[test]
    fn it_stops_if_the_objective_has_no_values() {
        let (_, used) = polished(3, 1000, |x| if x == [1.0; 3] { 0.0 } else { f64::INFINITY });
        assert!(used < 50, "{used}");
    }
}
