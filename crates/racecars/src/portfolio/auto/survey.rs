//! The survey at the start of `auto`: do coordinates interact, is the objective multimodal, is it noisy?
//!
//! For a few coordinates, the objective is evaluated at five positions along the axis, around two random
//! base points. If coordinates do not interact, the values at the five positions have the same order
//! around both base points. After a rotation, two pairs in five have a different order. Along an axis of a
//! unimodal function, no position is worse than both its neighbours. Every other coordinate is only
//! surveyed within a fifth of its axis, to detect short waves. The first point is evaluated twice, before
//! all others: a different value is noise. If the budget is small, this is the only check.

use crate::optimizers::saved::ID_HEADROOM;
use crate::random::Random;
use crate::space::Space;
use serde::{Deserialize, Serialize};

/// Positions along an axis.
const POSITIONS: usize = 5;
/// Random points around which the same positions are evaluated.
const BASE_POINTS: usize = 2;
/// Relative differences up to this are not noise: sums on several threads round differently each time.
const ROUNDING_TOLERANCE: f64 = 1e-12;
/// The fraction of the axis surveyed for short waves.
const CLOSE_UP_SHARE: f64 = 0.2;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Survey {
    seed: u64,
    coordinates: usize,
    asked: usize,
    told: usize,
    /// The value of each probe, indexed by coordinate, base point and position; then the second value of
    /// the first probe. `None` until it is told, and if it has no value.
    values: Vec<Option<f64>>,
}

/// The shape of the objective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    /// The share of pairs of positions whose order depends on the base point.
    pub(super) interaction: f64,
    /// The share of profiles with a local maximum.
    pub(super) waves: f64,
}

impl Survey {
    /// The number of evaluations for this many coordinates.
    pub(super) fn cost(coordinates: usize) -> usize {
        (coordinates * BASE_POINTS * POSITIONS).max(1) + 1
    }

    pub(super) fn new(coordinates: usize, seed: u64) -> Self {
        let values = vec![None; Survey::cost(coordinates)];
        Survey { seed, coordinates, asked: 0, told: 0, values }
    }

    /// Whether it only looks for noise, at the centre.
    pub(super) fn is_noise_check(&self) -> bool {
        self.coordinates == 0
    }

    /// Leaves only the look for noise, as far as that is possible with what was asked.
    pub(super) fn shorten(&mut self) {
        if self.coordinates > 0 && self.asked == 0 {
            *self = Survey::new(0, self.seed);
        } else if self.coordinates > 0 && self.told >= 2 {
            let values = [self.values.first(), self.values.last()];
            let values = values.into_iter().map(|value| value.copied().flatten()).collect();
            *self = Survey { seed: self.seed, coordinates: 0, asked: 2, told: 2, values };
        }
    }

    /// The number of evaluations.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Writes the next point and returns its index in the survey; `None` if all were asked.
    pub(super) fn next(&mut self, space: &Space, point: &mut [f64]) -> Option<usize> {
        let last = self.values.len() - 1;
        // The point of the last slot equals that of the first, and comes second.
        let slot = match self.asked {
            0 => 0,
            1 => last,
            asked => asked - 1,
        };
        if self.asked > last {
            return None;
        }
        self.asked += 1;
        self.write(space, slot % last, point);
        Some(slot)
    }

    /// Writes the point at this index, which is determined by the seed.
    fn write(&self, space: &Space, slot: usize, point: &mut [f64]) {
        if self.coordinates == 0 {
            // Only noise is looked for: at the centre, where the search begins.
            let random = &mut Random::new(self.seed);
            space.write_center(random, point);
            space.settle(point, None, random);
            return;
        }
        let (coordinate, base, position) =
            (slot / (BASE_POINTS * POSITIONS), slot / POSITIONS % BASE_POINTS, slot % POSITIONS);
        let mut axis = Random::new(self.seed.wrapping_add((1 + coordinate as u64) << 8));
        let index = axis.index(space.dimension());
        let (begin, length) = if coordinate % 2 == 0 {
            (0.0, 1.0)
        } else {
            (axis.unit() * (1.0 - CLOSE_UP_SHARE), CLOSE_UP_SHARE)
        };
        // Positions are jittered: a regular grid would miss waves of its own length.
        let mut share = 0.0;
        for step in 0..=position {
            share = begin + length * (step as f64 + axis.unit()) / POSITIONS as f64;
        }
        let seed = self.seed.wrapping_add(1 + (coordinate * BASE_POINTS + base) as u64);
        space.draw(&mut Random::new(seed), point);
        point[index] = space.axis(index).at(share);
    }

    pub(super) fn tell(&mut self, slot: usize, value: Option<f64>) {
        if let Some(slot) = self.values.get_mut(slot) {
            *slot = value;
            self.told += 1;
        }
    }

    /// Whether all probes were asked.
    pub(super) fn is_asked(&self) -> bool {
        self.asked >= self.values.len()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.told >= self.values.len()
    }

    /// The two values of the same point, once both are told and if it has values.
    pub(super) fn repeated(&self) -> Option<(f64, f64)> {
        self.values.first().copied().flatten().zip(self.values.last().copied().flatten())
    }

    /// The two values of the same point, if they differ.
    pub(super) fn noise(&self) -> Option<(f64, f64)> {
        self.repeated().filter(|(first, again)| {
            (first - again).abs() > ROUNDING_TOLERANCE * first.abs().max(again.abs())
        })
    }

    /// `None` if no coordinate was surveyed, or if too many values are missing.
    pub(super) fn shape(&self) -> Option<Shape> {
        let (mut pairs, mut crossed, mut profiles, mut crests) = (0, 0, 0, 0);
        let by_coordinate =
            self.values[..self.values.len() - 1].chunks_exact(BASE_POINTS * POSITIONS);
        for both in by_coordinate {
            let (one, other) = both.split_at(POSITIONS);
            for i in 0..POSITIONS {
                for j in 0..i {
                    if let (Some(a), Some(b), Some(c), Some(d)) =
                        (one[i], one[j], other[i], other[j])
                    {
                        pairs += 1;
                        crossed += usize::from((a < b) != (c < d));
                    }
                }
            }
            for profile in [one, other] {
                if let Some(values) = profile.iter().copied().collect::<Option<Vec<f64>>>() {
                    let is_local_maximum = |at: &[f64]| at[1] > at[0] && at[1] > at[2];
                    profiles += 1;
                    crests += usize::from(values.windows(3).any(is_local_maximum));
                }
            }
        }
        let share = |count: usize, of: usize| count as f64 / of.max(1) as f64;
        let is_enough = profiles > 0 && profiles >= self.coordinates;
        is_enough
            .then(|| Shape { interaction: share(crossed, pairs), waves: share(crests, profiles) })
    }

    /// Checks the invariants of a deserialized state.
    pub(super) fn is_sound(&self) -> bool {
        self.coordinates < 1000
            && self.values.len() == Survey::cost(self.coordinates)
            && self.asked <= self.values.len()
            && (self.told as u64) < ID_HEADROOM
            && self.values.iter().flatten().all(|value| value.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(seed: u64, objective: impl FnMut(&[f64]) -> Option<f64>) -> Survey {
        survey_of(6, seed, objective)
    }

    fn survey_of(
        coordinates: usize,
        seed: u64,
        mut objective: impl FnMut(&[f64]) -> Option<f64>,
    ) -> Survey {
        let space = Space::cube(30, -5.0, 5.0).unwrap();
        let mut survey = Survey::new(coordinates, seed);
        let mut point = vec![0.0; 30];
        while let Some(slot) = survey.next(&space, &mut point) {
            assert!(!survey.is_complete());
            survey.tell(slot, objective(&point));
        }
        assert!(survey.is_complete() && survey.is_sound());
        survey
    }

    fn mean(measure: impl Fn(Shape) -> f64, objective: fn(&[f64]) -> f64) -> f64 {
        let found = |seed| measure(survey(seed, |x| Some(objective(x))).shape().unwrap());
        (0..40).map(found).sum::<f64>() / 40.0
    }

    #[test]
    fn separable_functions_have_no_interaction_and_unimodal_functions_no_waves() {
        let sphere: fn(&[f64]) -> f64 = |x| x.iter().map(|x| (x - 1.0).powi(2)).sum();
        let waves: fn(&[f64]) -> f64 = |x| x.iter().map(|x| x * x - 10.0 * (6.0 * x).cos()).sum();
        let bilinear: fn(&[f64]) -> f64 = |x| x.windows(2).map(|x| x[0] * x[1]).sum();
        assert_eq!(mean(|f| f.interaction, sphere), 0.0);
        assert_eq!(mean(|f| f.waves, sphere), 0.0);
        assert_eq!(mean(|f| f.interaction, waves), 0.0);
        assert!(mean(|f| f.waves, waves) > 0.4);
        assert!(mean(|f| f.interaction, bilinear) > 0.3);
        assert_eq!(mean(|f| f.waves, bilinear), 0.0);
    }

    #[test]
    fn noise_is_detected_and_missing_values_are_ignored() {
        let mut noise = Random::new(1);
        let mut noisy = |x: &[f64]| Some(x.iter().sum::<f64>() + 1e-9 * noise.normal());
        assert!(survey(1, &mut noisy).noise().is_some());
        let found = survey_of(0, 1, &mut noisy);
        assert!(found.noise().is_some() && found.shape().is_none());
        assert!(survey(1, |x| Some(x.iter().sum())).noise().is_none());
        let mut calls = 0;
        let rounding = |x: &[f64]| {
            calls += 1;
            Some(x.iter().sum::<f64>() * (1.0 + f64::EPSILON * f64::from(calls % 7)))
        };
        assert!(survey(1, rounding).noise().is_none());
        let nothing = survey(1, |_| None);
        assert_eq!((nothing.shape(), nothing.noise()), (None, None));
        let half = survey(1, |x| (x[3] > 0.0).then(|| x.iter().sum()));
        assert!(half.shape().is_none_or(|found| found.interaction == 0.0));
    }

    /// All flags set is an extreme point, and the optimum of many test functions.
    #[test]
    fn noise_is_looked_for_in_the_middle_of_ranges_and_at_random_choices() {
        let builder = Space::builder().real("x", 0.0, 2.0).integers("i", 3, 0, 10);
        let space = builder.array("b", 60, crate::Domain::Boolean).integers("k", 60, 0, 1);
        let space = space.build().unwrap();
        let mut point = vec![0.0; space.dimension()];
        for seed in 0..10 {
            let mut survey = Survey::new(0, seed);
            survey.next(&space, &mut point).unwrap();
            assert_eq!(point[..4], [1.0, 5.0, 5.0, 5.0]);
            for part in [&point[4..64], &point[64..]] {
                assert!((15.0..45.0).contains(&part.iter().sum::<f64>()));
            }
            let first = point.clone();
            survey.next(&space, &mut point).unwrap();
            assert_eq!(point, first, "it is evaluated twice");
        }
    }
}
