//! How a trial is made: differential mutation and binomial crossover (Storn & Price 1997), in one
//! pass over the coordinates, straight into the candidate's buffer.
//!
//! Every strategy is a case of one formula,
//!
//! ```text
//! mutant = base + F ((toward - base) + (plus - minus))
//! ```
//!
//! with `toward` = `base` = the best or a random member for best/1 and rand/1, and `base` = the
//! target, `toward` = one of the best for current-to-pbest/1. Each coordinate of the trial is the
//! mutant's with probability CR, else the target's; one random coordinate is always the mutant's.
//!
//! Discrete axes:
//!
//! - ordered: the mutant is rounded to the nearest index; on a log scale the formula works with the
//!   logarithms of the integers.
//! - unordered: where `plus` and `minus` agree there is no difference to add, and the mutant has the
//!   value of `toward`; where they differ, it has that of one of the three at random.

use crate::random::Random;
use crate::space::{Axis, Interval, Space};

/// What a trial is made of.
pub(super) struct Recipe<'a> {
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

/// What becomes of a mutant's coordinate outside of its axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Repair {
    /// It is drawn anew from the whole axis, as scipy does.
    Redraw,
    /// It goes half way from the target to the bound it broke, as JADE and L-SHADE do.
    Halfway,
}

/// The coordinates that are made together.
const LANES: usize = 16;

/// The whole blocks of a slice.
fn blocks_of(slice: &[f64]) -> &[[f64; LANES]] {
    slice.as_chunks().0
}

impl Recipe<'_> {
    /// Writes the trial.
    pub(super) fn make(&self, space: &Space, random: &mut Random, trial: &mut [f64]) {
        // Sixteen bits decide on each coordinate, so that one draw serves four: CR is met to within
        // 2^-17.
        let taken_below = (self.crossover * 65536.0).round() as u32;
        for entry in space.entries() {
            let range = entry.range();
            match space.axis(range.start) {
                Axis::Continuous { low, high } => {
                    let part = self.part(range.clone());
                    part.make_continuous(low, high, taken_below, random, &mut trial[range]);
                }
                axis => {
                    for i in range {
                        let is_taken = (random.bits() >> 48) < u64::from(taken_below);
                        trial[i] =
                            if is_taken { self.mutant(axis, i, random) } else { self.target[i] };
                    }
                }
            }
        }
        let always = random.index(trial.len());
        trial[always] = self.mutant(space.axis(always), always, random);
    }

    fn part(&self, range: std::ops::Range<usize>) -> Recipe<'_> {
        Recipe {
            target: &self.target[range.clone()],
            base: &self.base[range.clone()],
            toward: &self.toward[range.clone()],
            plus: &self.plus[range.clone()],
            minus: &self.minus[range],
            ..*self
        }
    }

    /// Continuous coordinates of one extent, in blocks that the compiler vectorises: repairs, which
    /// are rare once the members have gathered, are looked for once in a block.
    fn make_continuous(
        &self,
        low: f64,
        high: f64,
        taken_below: u32,
        random: &mut Random,
        trial: &mut [f64],
    ) {
        let (blocks, rest) = trial.as_chunks_mut::<LANES>();
        let whole = blocks.len() * LANES;
        let sources = (blocks_of(self.target).iter().zip(blocks_of(self.base))).zip(
            blocks_of(self.toward).iter().zip(blocks_of(self.plus)).zip(blocks_of(self.minus)),
        );
        for (block, (trial, ((target, base), ((toward, plus), minus)))) in
            blocks.iter_mut().zip(sources).enumerate()
        {
            let mut lots = [0u32; LANES];
            for four in lots.as_chunks_mut::<4>().0 {
                let bits = random.bits();
                *four = std::array::from_fn(|lane| (bits >> (16 * lane)) as u32 & 0xffff);
            }
            let mut is_sound = true;
            for lane in 0..LANES {
                let difference = (toward[lane] - base[lane]) + (plus[lane] - minus[lane]);
                let mutant = base[lane] + self.weight * difference;
                let x = if lots[lane] < taken_below { mutant } else { target[lane] };
                is_sound &= x >= low && x <= high;
                trial[lane] = x;
            }
            if !is_sound {
                let axis = Axis::Continuous { low, high };
                for (lane, x) in trial.iter_mut().enumerate() {
                    *x = self.repaired(axis, block * LANES + lane, *x, random);
                }
            }
        }
        for (i, x) in rest.iter_mut().enumerate() {
            let i = whole + i;
            let is_taken = (random.bits() >> 48) < u64::from(taken_below);
            let axis = Axis::Continuous { low, high };
            *x = if is_taken { self.mutant(axis, i, random) } else { self.target[i] };
        }
    }

    /// One coordinate of the mutant, of any kind.
    fn mutant(&self, axis: Axis, i: usize, random: &mut Random) -> f64 {
        let (base, toward) = (self.base[i], self.toward[i]);
        let (plus, minus) = (self.plus[i], self.minus[i]);
        let x = match axis {
            Axis::Continuous { .. } => base + self.weight * ((toward - base) + (plus - minus)),
            Axis::Ordered { log_from: None, .. } => {
                // Adding zero makes -0 an index.
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

    /// `x`, if it is inside its axis. Differences of the widest axes overflow, so NaN may come here.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe<'a>(points: &'a [Vec<f64>; 5], crossover: f64, repair: Repair) -> Recipe<'a> {
        let [target, base, toward, plus, minus] = points;
        Recipe { target, base, toward, plus, minus, weight: 0.8, crossover, repair }
    }

    fn drawn(space: &Space, random: &mut Random) -> [Vec<f64>; 5] {
        std::array::from_fn(|_| {
            let mut point = vec![0.0; space.dimension()];
            space.draw(random, &mut point);
            point
        })
    }

    #[test]
    fn crossover_takes_its_share_of_the_mutant() {
        let space = Space::cube(1003, -100.0, 100.0).unwrap();
        let points = [5.0, 1.0, 2.0, 4.0, 3.0].map(|x| vec![x; 1003]);
        let mut trial = vec![0.0; 1003];
        for (crossover, expected) in
            [(0.0, 1..2), (0.3, 250..350), (0.7, 650..750), (1.0, 1003..1004)]
        {
            let recipe = recipe(&points, crossover, Repair::Redraw);
            recipe.make(&space, &mut Random::new(1), &mut trial);
            let taken = trial.iter().filter(|&&x| x != 5.0).count();
            assert!(expected.contains(&taken), "CR = {crossover}: {taken}");
            // 1 + 0.8 ((2 - 1) + (4 - 3))
            assert!(trial.iter().all(|&x| x == 5.0 || (x - 2.6).abs() < 1e-12));
        }
    }

    #[test]
    fn trials_are_points_of_their_space() {
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
                recipe(&points, 0.9, repair).make(&space, &mut random, &mut trial);
                space.check(&trial).unwrap();
            }
        }
    }

    #[test]
    fn log_integers_move_by_ratios() {
        let space = Space::builder().log_integer("l", 1, 1_000_000).build().unwrap();
        let points = [10.0, 100.0, 100.0, 1000.0, 10.0].map(|x| vec![x - 1.0]);
        let recipe = Recipe { weight: 0.5, ..recipe(&points, 1.0, Repair::Redraw) };
        let mut trial = [0.0];
        recipe.make(&space, &mut Random::new(1), &mut trial);
        assert_eq!(trial[0] + 1.0, 1000.0, "100 sqrt(1000 / 10)");
    }

    #[test]
    fn categories_are_inherited() {
        let choices: Vec<String> = (0..9).map(|i| i.to_string()).collect();
        let space = Space::builder().categorical("c", choices).build().unwrap();
        let mut trial = [0.0];
        let mut made = |plus: f64, minus: f64| -> Vec<i64> {
            let points = [8.0, 1.0, 2.0, plus, minus].map(|x| vec![x]);
            let mut values: Vec<i64> = (0..200)
                .map(|seed| {
                    let recipe = recipe(&points, 1.0, Repair::Redraw);
                    recipe.make(&space, &mut Random::new(seed), &mut trial);
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
