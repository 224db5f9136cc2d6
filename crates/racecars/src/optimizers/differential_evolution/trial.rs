//! Differential mutation and binomial crossover (Storn & Price 1997), in one pass over the coordinates.
//!
//! All strategies are cases of one formula,
//!
//! ```text
//! mutant = base + F ((toward - base) + (plus - minus))
//! ```
//!
//! with `toward` = `base` = the best or a random member for best/1 and rand/1, and `base` = the
//! target, `toward` = one of the best for current-to-pbest/1 (equation 3 of the L-SHADE paper). Each
//! coordinate of the trial is the mutant's with probability CR, else the target's; one random
//! coordinate is always the mutant's.
//!
//! Discrete axes:
//!
//! - ordered: the mutant is rounded to the nearest index; on a log scale the formula works with the
//!   logarithms of the integers.
//! - unordered: where `plus` and `minus` agree there is no difference to add, and the mutant has the
//!   value of `toward`; where they differ, it has that of one of the three at random.

use crate::random::Random;
use crate::space::{Axis, Interval, Space};

/// The members and rates that a trial is computed from.
pub(super) struct Mutation<'a> {
    pub(super) target: &'a [f64],
    pub(super) base: &'a [f64],
    pub(super) toward: &'a [f64],
    pub(super) plus: &'a [f64],
    pub(super) minus: &'a [f64],
    /// F.
    pub(super) weight: f64,
    /// CR.
    pub(super) crossover: f64,
    pub(super) repair: Repair,
}

/// How to repair a coordinate of the mutant outside of its axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Repair {
    /// Redraw it from the whole axis, as scipy does.
    Redraw,
    /// Set it half way between the target and the violated bound, as JADE and L-SHADE do (equation 4).
    Halfway,
}

/// The coordinates computed in one block: one per bit of a random mask.
const BLOCK_COORDINATES: usize = 64;

impl Mutation<'_> {
    /// Writes the trial.
    pub(super) fn write_trial(&self, space: &Space, random: &mut Random, trial: &mut [f64]) {
        for (range, axis) in space.axes() {
            for first in range.clone().step_by(BLOCK_COORDINATES) {
                let block = first..range.end.min(first + BLOCK_COORDINATES);
                let taken = chances(self.crossover, random);
                if let Axis::Continuous { low, high } = axis {
                    let mut outside = self.write_continuous(&block, low, high, taken, trial);
                    while outside != 0 {
                        let i = first + outside.trailing_zeros() as usize;
                        trial[i] = self.repaired(axis, i, trial[i], random);
                        outside &= outside - 1;
                    }
                } else {
                    for i in block {
                        let is_taken = taken >> (i - first) & 1 == 1;
                        trial[i] =
                            if is_taken { self.mutant(axis, i, random) } else { self.target[i] };
                    }
                }
            }
        }
        let always = random.index(trial.len());
        trial[always] = self.mutant(space.axis(always), always, random);
    }

    /// Writes a block of continuous coordinates with the same bounds. Returns a mask of those outside. All
    /// coordinates of the mutant are computed, since that vectorizes; then those of the target are
    /// restored.
    #[inline]
    fn write_continuous(
        &self,
        block: &std::ops::Range<usize>,
        low: f64,
        high: f64,
        taken: u64,
        trial: &mut [f64],
    ) -> u64 {
        let trial = &mut trial[block.clone()];
        let count = trial.len();
        let target = &self.target[block.clone()][..count];
        let base = &self.base[block.clone()][..count];
        let toward = &self.toward[block.clone()][..count];
        let plus = &self.plus[block.clone()][..count];
        let minus = &self.minus[block.clone()][..count];
        for lane in 0..count {
            let difference = (toward[lane] - base[lane]) + (plus[lane] - minus[lane]);
            trial[lane] = base[lane] + self.weight * difference;
        }
        let mut outside = 0;
        for (lane, &x) in trial.iter().enumerate() {
            let is_inside = x >= low && x <= high;
            outside |= u64::from(!is_inside) << lane;
        }
        let mut kept = !taken & (u64::MAX >> (64 - count));
        while kept != 0 {
            let lane = kept.trailing_zeros() as usize;
            trial[lane] = target[lane];
            kept &= kept - 1;
        }
        outside & taken
    }

    /// One coordinate of the mutant, on any axis.
    fn mutant(&self, axis: Axis, i: usize, random: &mut Random) -> f64 {
        let (base, toward) = (self.base[i], self.toward[i]);
        let (plus, minus) = (self.plus[i], self.minus[i]);
        let x = match axis {
            Axis::Continuous { .. } => base + self.weight * ((toward - base) + (plus - minus)),
            Axis::Ordered { log_from: None, .. } => {
                // Adding 0 turns -0 into 0.
                (base + self.weight * ((toward - base) + (plus - minus))).round() + 0.0
            }
            Axis::Ordered { log_from: Some(from), .. } => {
                let ratio = (from + toward) / (from + base) * ((from + plus) / (from + minus));
                ((from + base) * ratio.powf(self.weight) - from).round() + 0.0
            }
            Axis::Unordered { .. } if plus == minus => toward,
            Axis::Unordered { .. } => [toward, plus, minus][random.index(3)],
        };
        self.repaired(axis, i, x, random)
    }

    /// Repairs `x` if it is outside of its axis. Differences on the widest axes overflow, so it may be NaN.
    fn repaired(&self, axis: Axis, i: usize, x: f64, random: &mut Random) -> f64 {
        let Interval { low, high } = axis.extent();
        if x >= low && x <= high {
            return x;
        }
        let bound = match self.repair {
            Repair::Halfway if x < low => low,
            Repair::Halfway if x > high => high,
            _ => return axis.draw(random),
        };
        let middle = 0.5 * bound + 0.5 * self.target[i];
        match axis {
            Axis::Continuous { .. } => middle,
            _ => middle.round() + 0.0,
        }
    }
}

/// 64 bits, each set with probability `p` up to 2^-17: 64 random numbers of sixteen binary digits are
/// compared with `p` in parallel, digit by digit.
#[inline]
fn chances(p: f64, random: &mut Random) -> u64 {
    const DIGITS: u32 = 16;
    let digits = (p * f64::from(1 << DIGITS)).round() as u32;
    if digits >= 1 << DIGITS {
        return u64::MAX;
    }
    // From the last digit up: whether the lower digits of the random number are below those of p.
    (digits.trailing_zeros()..DIGITS).fold(0, |below, digit| {
        let bits = random.bits();
        if digits >> digit & 1 == 1 { below | bits } else { below & bits }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutation<'a>(points: &'a [Vec<f64>; 5], crossover: f64, repair: Repair) -> Mutation<'a> {
        let [target, base, toward, plus, minus] = points;
        Mutation { target, base, toward, plus, minus, weight: 0.8, crossover, repair }
    }

    fn drawn(space: &Space, random: &mut Random) -> [Vec<f64>; 5] {
        std::array::from_fn(|_| {
            let mut point = vec![0.0; space.dimension()];
            space.draw(random, &mut point);
            point
        })
    }

    #[test]
    fn crossover_is_the_share_of_the_mutant() {
        let space = Space::cube(1003, -100.0, 100.0).unwrap();
        let points = [5.0, 1.0, 2.0, 4.0, 3.0].map(|x| vec![x; 1003]);
        let mut trial = vec![0.0; 1003];
        for (crossover, expected) in
            [(0.0, 1..2), (0.3, 250..350), (0.7, 650..750), (1.0, 1003..1004)]
        {
            let mutation = mutation(&points, crossover, Repair::Redraw);
            mutation.write_trial(&space, &mut Random::new(1), &mut trial);
            let taken = trial.iter().filter(|&&x| x != 5.0).count();
            assert!(expected.contains(&taken), "CR = {crossover}: {taken}");
            // 1 + 0.8 ((2 - 1) + (4 - 3))
            assert!(trial.iter().all(|&x| x == 5.0 || (x - 2.6).abs() < 1e-12));
        }
    }

    #[test]
    fn trials_are_in_the_space() {
        let space = Space::builder()
            .reals("wide", 40, -8e307, 8e307)
            .reals("x", 40, -1.0, 1.0)
            .integers("i", 5, -3, 3)
            .log_integer("l", 1, 1000)
            .categorical("c", ["a", "b", "c", "d"])
            .boolean("b")
            .build()
            .unwrap();
        let mut random = Random::new(1);
        let mut trial = vec![0.0; space.dimension()];
        for _ in 0..2000 {
            let points = drawn(&space, &mut random);
            for repair in [Repair::Redraw, Repair::Halfway] {
                mutation(&points, 0.9, repair).write_trial(&space, &mut random, &mut trial);
                space.check(&trial).unwrap();
            }
        }
    }

    #[test]
    fn log_integers_are_mutated_by_ratios() {
        let space = Space::builder().log_integer("l", 1, 1_000_000).build().unwrap();
        let points = [10.0, 100.0, 100.0, 1000.0, 10.0].map(|x| vec![x - 1.0]);
        let mutation = Mutation { weight: 0.5, ..mutation(&points, 1.0, Repair::Redraw) };
        let mut trial = [0.0];
        mutation.write_trial(&space, &mut Random::new(1), &mut trial);
        assert_eq!(trial[0] + 1.0, 1000.0, "100 sqrt(1000 / 10)");
    }

    #[test]
    fn categories_are_taken_from_members() {
        let choices: Vec<String> = (0..9).map(|i| i.to_string()).collect();
        let space = Space::builder().categorical("c", choices).build().unwrap();
        let mut trial = [0.0];
        let mut made = |plus: f64, minus: f64| -> Vec<i64> {
            let points = [8.0, 1.0, 2.0, plus, minus].map(|x| vec![x]);
            let mut values: Vec<i64> = (0..200)
                .map(|seed| {
                    let mutation = mutation(&points, 1.0, Repair::Redraw);
                    mutation.write_trial(&space, &mut Random::new(seed), &mut trial);
                    trial[0] as i64
                })
                .collect();
            values.sort_unstable();
            values.dedup();
            values
        };
        assert_eq!(made(5.0, 5.0), [2]);
        assert_eq!(made(5.0, 6.0), [2, 5, 6]);
    }
}
