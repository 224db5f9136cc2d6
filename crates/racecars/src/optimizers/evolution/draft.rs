//! A candidate in the making: changes of single coordinates, exchanges, and windows.

use super::MAX_TRIES;
use crate::random::Random;
use crate::space::{Axis, Space};

/// A window has from 2 to this many coordinates; this share of the windows changes all of them.
pub(super) const MAX_WINDOW: usize = 8;
const WHOLE_WINDOW_SHARE: f64 = 0.3;
/// The smallest step on a continuous axis, as a fraction of its length.
const MIN_STEP: f64 = 1e-7;

/// A point that is being changed, with its key and the coordinates that were changed.
pub(super) struct Draft<'a> {
    pub(super) space: &'a Space,
    pub(super) random: &'a mut Random,
    pub(super) point: &'a mut [f64],
    pub(super) key: u64,
    pub(super) touched: Vec<u32>,
}

impl Draft<'_> {
    /// Changes this many coordinates, some perhaps twice.
    pub(super) fn change_any(&mut self, count: usize) {
        for _ in 0..count {
            let coordinate = self.random.index(self.point.len());
            self.change(coordinate);
        }
    }

    /// Changes coordinates that stand side by side: all of them, or each with probability one half.
    pub(super) fn change_window(&mut self) {
        let length = 1 + heavy_tailed(1.0, MAX_WINDOW - 1, self.random);
        let first = self.random.index(self.point.len() - length + 1);
        let share = if self.random.chance(WHOLE_WINDOW_SHARE) { 1.0 } else { 0.5 };
        for i in first..first + length {
            if self.random.chance(share) {
                self.change(i);
            }
        }
        if self.touched.is_empty() {
            self.change(first);
        }
    }

    /// Changes a coordinate to another value.
    #[inline]
    pub(super) fn change(&mut self, i: usize) {
        let (axis, old) = (self.space.axis(i), self.point[i]);
        let random = &mut *self.random;
        let new = match axis {
            Axis::Unordered { last: 1.0 } => 1.0 - old,
            Axis::Unordered { .. } => axis.draw_other_within(axis.extent(), old, random),
            Axis::Ordered { last: 1.0, .. } => 1.0 - old,
            Axis::Ordered { last, .. } => {
                let step = heavy_tailed(1.0, (last as usize).max(1), random) as f64;
                let step = if random.chance(0.5) { step } else { -step };
                let (there, back) = (old + step, old - step);
                let is_inside = |x: &f64| (0.0..=last).contains(x);
                [there, back].into_iter().find(is_inside).unwrap_or_else(|| axis.draw(random))
            }
            Axis::Continuous { low, high } => {
                let length = MIN_STEP.powf(random.unit()) * (high - low);
                let step = if random.chance(0.5) { length } else { -length };
                (old + step).clamp(low, high)
            }
        };
        self.set(i, old, new);
    }

    /// Exchanges the values of two coordinates of the same group. If none has another value, one is changed.
    pub(super) fn swap(&mut self, groups: &[Vec<u32>], group_of: &[u32]) {
        let i = self.random.index(self.point.len());
        let group = &groups[group_of[i] as usize];
        for _ in 0..MAX_TRIES {
            let j = group[self.random.index(group.len())] as usize;
            let (old, new) = (self.point[i], self.point[j]);
            if old != new {
                self.set(i, old, new);
                self.set(j, new, old);
                return;
            }
        }
        self.change(i);
    }

    #[inline]
    pub(super) fn set(&mut self, i: usize, old: f64, new: f64) {
        self.point[i] = new;
        self.key = self.space.changed_key(self.key, i, self.space.axis(i), old, new);
        self.touched.push(i as u32);
    }
}

/// A number from 1 to `most` with probability about proportional to its power `-exponent`.
pub(super) fn heavy_tailed(exponent: f64, most: usize, random: &mut Random) -> usize {
    let (u, top) = (random.unit(), most as f64 + 1.0);
    let drawn = if exponent == 1.0 {
        top.powf(u)
    } else {
        let power = 1.0 - exponent;
        (1.0 + u * (top.powf(power) - 1.0)).powf(1.0 / power)
    };
    (drawn as usize).clamp(1, most)
}
