//! One encoded coordinate: a [`Domain`](super::Domain) as optimizers see it.

use crate::random::{Random, mix};

/// The kind and extent of an encoded coordinate.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Axis {
    /// Every number from `low` to `high`.
    Continuous {
        /// The least number.
        low: f64,
        /// The greatest number.
        high: f64,
    },
    /// The indices `0..=last`, in an order.
    Ordered {
        /// The greatest index.
        last: f64,
        /// On a log scale, the integer at index 0.
        log_from: Option<f64>,
    },
    /// The indices `0..=last`, without an order.
    Unordered {
        /// The greatest index.
        last: f64,
    },
}

/// A closed interval of encoded coordinates; of indices where the axis is ordered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The least coordinate.
    pub low: f64,
    /// The greatest coordinate.
    pub high: f64,
}

impl Interval {
    /// Whether `x` is inside, bounds included.
    #[inline]
    pub fn contains(self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }

    /// The intersection of two intervals; `None` if it is empty.
    #[inline]
    pub fn intersection(self, other: Interval) -> Option<Interval> {
        let shared =
            Interval { low: greater(self.low, other.low), high: lesser(self.high, other.high) };
        (shared.low <= shared.high).then_some(shared)
    }
}

impl Axis {
    pub(super) fn ordered(count: u64) -> Self {
        Axis::Ordered { last: (count - 1) as f64, log_from: None }
    }

    pub(super) fn log_ordered(count: u64, from: f64) -> Self {
        Axis::Ordered { last: (count - 1) as f64, log_from: Some(from) }
    }

    pub(super) fn unordered(count: u64) -> Self {
        Axis::Unordered { last: (count - 1) as f64 }
    }

    /// The whole extent of this axis.
    #[inline]
    pub fn extent(self) -> Interval {
        match self {
            Axis::Continuous { low, high } => Interval { low, high },
            Axis::Ordered { last, .. } | Axis::Unordered { last } => {
                Interval { low: 0.0, high: last }
            }
        }
    }

    /// The number of values; `None` for a continuous axis.
    #[inline]
    pub fn count(self) -> Option<u64> {
        match self {
            Axis::Continuous { .. } => None,
            Axis::Ordered { last, .. } | Axis::Unordered { last } => Some(last as u64 + 1),
        }
    }

    /// The value that stands for a coordinate of which nothing is said: the middle of a range, which on a log scale is
    /// that of the logarithms; of ordered values the middle one, the lower of two; of unordered ones the first.
    ///
    /// ```
    /// use racecars::Space;
    ///
    /// let space = Space::builder()
    ///     .real("x", 0.0, 1.0)
    ///     .integer("n", 1, 8)
    ///     .categorical("mode", ["a", "b", "c"])
    ///     .build()?;
    /// let middle: Vec<f64> = (0..3).map(|i| space.axis(i).middle()).collect();
    /// assert_eq!(space.view(&middle).to_string(), "x=0.5 n=4 mode=a");
    /// # Ok::<(), racecars::Error>(())
    /// ```
    pub fn middle(self) -> f64 {
        match self {
            // Halving first keeps the widest finite ranges from overflowing.
            Axis::Continuous { low, high } => 0.5 * low + 0.5 * high,
            Axis::Ordered { last, log_from: Some(from) } => {
                ((from * (from + last)).sqrt().round() - from).clamp(0.0, last)
            }
            Axis::Ordered { last, log_from: None } => (0.5 * last).floor(),
            Axis::Unordered { .. } => 0.0,
        }
    }

    /// Whether `code` is an encoded value of this axis.
    #[inline]
    pub fn contains(self, code: f64) -> bool {
        let is_whole = matches!(self, Axis::Continuous { .. }) || code.fract() == 0.0;
        self.extent().contains(code) && is_whole
    }

    /// Draws a value uniformly; on a log scale, uniformly in the logarithm.
    #[inline]
    pub fn draw(self, random: &mut Random) -> f64 {
        self.draw_within(self.extent(), random)
    }

    /// Fills `codes` with uniform draws.
    pub(super) fn fill(self, random: &mut Random, codes: &mut [f64]) {
        if !self.is_bit() {
            codes.iter_mut().for_each(|code| *code = self.draw(random));
            return;
        }
        // One random number has the bits of 64 coordinates.
        for chunk in codes.chunks_mut(64) {
            let bits = random.bits();
            for (i, code) in chunk.iter_mut().enumerate() {
                *code = (bits >> i & 1) as u32 as f64;
            }
        }
    }

    /// Whether this is an unordered axis with two values.
    #[inline]
    fn is_bit(self) -> bool {
        matches!(self, Axis::Unordered { last } if last == 1.0)
    }

    /// The term of a coordinate with this weight in a point's key.
    #[inline]
    pub(super) fn key_term(self, weight: u64, code: f64) -> u64 {
        match self {
            // Adding 0 turns -0 into 0.
            Axis::Continuous { .. } => weight.wrapping_mul(mix((code + 0.0).to_bits())),
            _ => weight.wrapping_mul(code as i64 as u64),
        }
    }

    /// By how much the term of a coordinate changes.
    #[inline]
    pub(super) fn key_change(self, weight: u64, old: f64, new: f64) -> u64 {
        match self {
            Axis::Continuous { .. } => {
                self.key_term(weight, new).wrapping_sub(self.key_term(weight, old))
            }
            _ => weight.wrapping_mul((new - old) as i64 as u64),
        }
    }

    /// The sum of the key terms of an array.
    pub(super) fn key_sum(self, weights: &[u64], codes: &[f64]) -> u64 {
        let pairs = weights.iter().zip(codes);
        if self.is_bit() {
            // The same as below, without multiplications.
            let terms = pairs.map(|(&weight, &code)| if code != 0.0 { weight } else { 0 });
            return terms.fold(0, u64::wrapping_add);
        }
        let terms = pairs.map(|(&weight, &code)| self.key_term(weight, code));
        terms.fold(0, u64::wrapping_add)
    }

    /// The value at a relative position from 0 to 1 along this axis. Uniform positions give uniform
    /// draws. Positions outside have the value of the nearer end.
    #[inline]
    pub(crate) fn at(self, position: f64) -> f64 {
        match self {
            Axis::Continuous { low, high } => {
                // Halving first keeps the widest finite ranges from overflowing.
                (low + 2.0 * position * (0.5 * high - 0.5 * low)).clamp(low, high)
            }
            Axis::Ordered { last, log_from: Some(from) } => {
                let (low, high) = ((from - 0.5).ln(), (from + last + 0.5).ln());
                ((low + position * (high - low)).exp().round() - from).clamp(0.0, last)
            }
            Axis::Ordered { last, .. } | Axis::Unordered { last } => {
                (position * (last + 1.0)).floor().clamp(0.0, last)
            }
        }
    }

    /// Draws a value uniformly from an interval inside this axis.
    #[inline]
    pub fn draw_within(self, interval: Interval, random: &mut Random) -> f64 {
        let Interval { low, high } = interval;
        match self {
            Axis::Continuous { .. } => random.between(low, high),
            Axis::Ordered { log_from: Some(from), .. } => {
                // Each integer covers half a step on either side, like a rounded continuous draw.
                let t = random.between((from + low - 0.5).ln(), (from + high + 0.5).ln());
                (t.exp().round() - from).clamp(low, high)
            }
            Axis::Ordered { .. } | Axis::Unordered { .. } => {
                low + whole(random.below((high - low) as i64 as u64 + 1))
            }
        }
    }

    /// Like [`Axis::draw_within`], but never `old`, if the interval has another value. On a continuous axis
    /// or a log scale, any value.
    #[inline]
    pub(crate) fn draw_other_within(
        self,
        interval: Interval,
        old: f64,
        random: &mut Random,
    ) -> f64 {
        if let Axis::Unordered { last } = self
            && interval == self.extent()
        {
            return draw_other_value(last, old, random);
        }
        let is_listed =
            !matches!(self, Axis::Continuous { .. } | Axis::Ordered { log_from: Some(_), .. });
        let others = (interval.high - interval.low) as i64 as u64;
        if !is_listed || others == 0 || !interval.contains(old) {
            return self.draw_within(interval, random);
        }
        let other = interval.low + whole(random.below(others));
        if other >= old { other + 1.0 } else { other }
    }

    /// The interval of `fraction` times the length of this axis around `center`:
    /// `[center - fraction |axis| / 2, center + fraction |axis| / 2]`, cut off at the ends of the axis.
    /// The length of an ordered axis is its number of values. The interval contains the centre.
    #[inline]
    pub fn around(self, center: f64, fraction: f64) -> Interval {
        let extent = self.extent();
        let (low, high) = match self {
            Axis::Continuous { low, high } => {
                let half = 0.5 * fraction * (high - low);
                (center - half, center + half)
            }
            Axis::Ordered { last, log_from: Some(from) } => {
                let half = 0.5 * fraction * ((from + last + 0.5) / (from - 0.5)).ln();
                let ratio = half.exp();
                let whole = from + center;
                ((whole / ratio - from).ceil(), (whole * ratio - from).floor())
            }
            Axis::Ordered { last, .. } | Axis::Unordered { last } => {
                let half = 0.5 * fraction * (last + 1.0);
                (ceil(center - half), floor_positive(center + half))
            }
        };
        let around = Interval {
            low: greater(lesser(low, center), extent.low),
            high: lesser(greater(high, center), extent.high),
        };
        debug_assert!(
            around.contains(center) || !extent.contains(center),
            "an interval contains its centre: {center} {around:?}"
        );
        around
    }
}

/// Draws a value from 0 to `last` other than `old`, if there is one.
#[inline]
pub(crate) fn draw_other_value(last: f64, old: f64, random: &mut Random) -> f64 {
    if last == 0.0 {
        random.bits();
        return old;
    }
    let other = whole(random.below(last as i64 as u64));
    other + f64::from(u8::from(other >= old))
}

/// The lesser of two numbers. Unlike `f64::min`, it takes one instruction, as neither is NaN.
#[inline]
pub(super) fn lesser(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// The greater of two numbers.
#[inline]
pub(super) fn greater(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// The number of an index. Indices are at most 2^53, and signed integers are converted in one instruction.
#[inline]
fn whole(index: u64) -> f64 {
    index as i64 as f64
}

/// `f64::floor` of a number from 0 to 2^54. That function is a call on most machines.
#[inline]
fn floor_positive(x: f64) -> f64 {
    x as i64 as f64
}

/// `f64::ceil` of a number of at most 2^54 in magnitude.
#[inline]
fn ceil(x: f64) -> f64 {
    let towards_zero = x as i64 as f64;
    if towards_zero < x { towards_zero + 1.0 } else { towards_zero }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_integers_are_drawn_uniformly_in_the_logarithm() {
        let axis = Axis::log_ordered(1024, 1.0);
        let mut random = Random::new(1);
        let draws: Vec<f64> = (0..20_000).map(|_| axis.draw(&mut random) + 1.0).collect();
        let below_32 = draws.iter().filter(|&&x| x <= 32.0).count();
        // ln(32.5 / 0.5) / ln(1024.5 / 0.5) = 0.547
        assert!((10_500..11_400).contains(&below_32), "{below_32}");
        assert!(draws.iter().all(|x| (1.0..=1024.0).contains(x)));
    }

    #[test]
    fn uniform_positions_reach_every_value_equally_often() {
        let mut counts = [0u32; 5];
        for i in 0..1000 {
            counts[Axis::ordered(5).at((f64::from(i) + 0.5) / 1000.0) as usize] += 1;
        }
        assert_eq!(counts, [200; 5]);
        assert_eq!(Axis::log_ordered(1024, 1.0).at(0.5), 22.0, "the 23rd: sqrt(0.5 * 1024.5)");
        let widest = Axis::Continuous { low: f64::MIN, high: f64::MAX };
        assert_eq!((widest.at(0.0), widest.at(0.5)), (f64::MIN, 0.0));
    }

    #[test]
    fn rounding_is_that_of_the_standard_library() {
        for x in [0.0, 0.3, 1.0, 7.5, 9_007_199_254_740_991.0, 1e15 + 0.5] {
            assert_eq!((floor_positive(x), ceil(x), ceil(-x)), (x.floor(), x.ceil(), (-x).ceil()));
        }
    }

    #[test]
    fn the_other_value_of_a_bit_takes_one_random_number() {
        let (mut random, mut expected) = (Random::new(4), Random::new(4));
        for old in [0.0, 1.0] {
            let axis = Axis::unordered(2);
            assert_eq!(axis.draw_other_within(axis.extent(), old, &mut random), 1.0 - old);
            expected.below(1);
            assert_eq!(random, expected);
        }
    }

    #[test]
    fn another_value_is_any_but_the_old_one() {
        let mut random = Random::new(3);
        let interval = Interval { low: 2.0, high: 5.0 };
        for (old, expected) in [(2.0, 3), (4.0, 3), (5.0, 3), (6.0, 4)] {
            let mut draw = || Axis::ordered(9).draw_other_within(interval, old, &mut random);
            let drawn: std::collections::BTreeSet<u64> = (0..200).map(|_| draw() as u64).collect();
            assert!(drawn.len() == expected && !drawn.contains(&(old as u64)), "{old}: {drawn:?}");
        }
        let single = Interval { low: 2.0, high: 2.0 };
        assert_eq!(Axis::ordered(9).draw_other_within(single, 2.0, &mut random), 2.0);
    }

    #[test]
    fn an_interval_around_a_centre_contains_it_and_stays_inside_the_axis() {
        let mut random = Random::new(2);
        let continuous = Axis::Continuous { low: -3.0, high: 8.0 };
        for axis in [continuous, Axis::ordered(7), Axis::log_ordered(100, 3.0)] {
            for _ in 0..1000 {
                let center = axis.draw(&mut random);
                let part = axis.around(center, random.unit());
                assert!(part.low <= center && center <= part.high);
                assert_eq!(part.intersection(axis.extent()), Some(part));
                assert!(axis.contains(axis.draw_within(part, &mut random)));
            }
        }
    }
}
