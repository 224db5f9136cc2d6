//! Random numbers. The generator is xoshiro256++. Its conversion to uniform numbers, bounded integers and
//! normal numbers is our own, so that a seed gives the same run in every version of this library.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// A seeded, serializable random generator.
///
/// ```
/// use racecars::random::Random;
///
/// let mut random = Random::new(7);
/// let die = 1 + random.below(6);
/// assert!((1..=6).contains(&die));
/// assert_eq!(Random::new(7).below(6), Random::new(7).below(6));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Random {
    generator: Xoshiro256PlusPlus,
}

impl Random {
    /// A generator seeded with `seed`.
    pub fn new(seed: u64) -> Self {
        Random { generator: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// One of several independent generators of the same seed, selected by `stream`.
    pub fn stream(seed: u64, stream: u64) -> Self {
        Random::new(mix(seed ^ mix(stream.wrapping_add(1))))
    }

    /// Whether the state is not all zeros, as in a damaged save: such a generator only returns zeros.
    pub(crate) fn is_alive(&self) -> bool {
        let mut next = self.clone();
        (0..8).any(|_| next.bits() != 0)
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A number in `[0, 1)`, a multiple of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A number between `low` and `high`, both possible by rounding.
    #[inline]
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        // Halving first keeps the widest finite ranges from overflowing.
        let u = self.unit();
        let x = low + 2.0 * u * (0.5 * high - 0.5 * low);
        x.clamp(low, high)
    }

    /// An integer in `0..count`; `count` must not be zero.
    ///
    /// Multiply-shift without the rejection step: the bias is below `count / 2^64`.
    #[inline]
    pub fn below(&mut self, count: u64) -> u64 {
        debug_assert!(count > 0);
        ((u128::from(self.bits()) * u128::from(count)) >> 64) as u64
    }

    /// An index in `0..count`; `count` must not be zero.
    #[inline]
    pub fn index(&mut self, count: usize) -> usize {
        self.below(count as u64) as usize
    }

    /// True with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// True with a probability of one half: the same as `chance(0.5)`.
    #[inline]
    pub(crate) fn coin(&mut self) -> bool {
        self.bits() >> 63 == 0
    }

    /// Puts the items into a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }

    /// A standard normal number.
    #[inline]
    pub fn normal(&mut self) -> f64 {
        self.normal_by(&ZIGGURAT)
    }

    /// Fills `out` with independent standard normal numbers.
    pub fn fill_normal(&mut self, out: &mut [f64]) {
        let ziggurat = &*ZIGGURAT;
        out.iter_mut().for_each(|x| *x = self.normal_by(ziggurat));
    }

    /// About 1 % of the draws fall outside of their layer's core and take more than a product.
    #[inline]
    fn normal_by(&mut self, Ziggurat { edges, heights }: &Ziggurat) -> f64 {
        loop {
            let bits = self.bits();
            // The 8 bits of the layer and the 53 bits of the position do not overlap.
            let layer = (bits & 0xff) as usize;
            let position = (bits >> 11) as f64 * (2.0 / (1u64 << 53) as f64) - 1.0;
            let x = position * edges[layer];
            if x.abs() < edges[layer + 1] {
                return x;
            }
            if layer == 0 {
                return self.normal_tail().copysign(x);
            }
            let height = heights[layer] + self.unit() * (heights[layer + 1] - heights[layer]);
            if height < (-0.5 * x * x).exp() {
                return x;
            }
        }
    }

    /// A normal number beyond [`Ziggurat::TAIL`] (Marsaglia 1964).
    #[cold]
    fn normal_tail(&mut self) -> f64 {
        loop {
            // 1 - u is never 0.
            let x = -(1.0 - self.unit()).ln() / Ziggurat::TAIL;
            let y = -(1.0 - self.unit()).ln();
            if 2.0 * y >= x * x {
                return Ziggurat::TAIL + x;
            }
        }
    }
}

/// The normal density cut into 256 layers of equal area (Marsaglia and Tsang, "The ziggurat method
/// for generating random variables", 2000), one side of it, unscaled: exp(-x²/2).
struct Ziggurat {
    /// The width of each layer, from the lowest up. The lowest includes the area of the tail, so it is
    /// wider than [`Ziggurat::TAIL`].
    edges: [f64; Ziggurat::LAYERS + 1],
    /// The density at the edges.
    heights: [f64; Ziggurat::LAYERS + 1],
}

static ZIGGURAT: LazyLock<Ziggurat> = LazyLock::new(Ziggurat::new);

impl Ziggurat {
    const LAYERS: usize = 256;
    /// Where the tail begins, and the area of a layer: the pair for which the top layer ends at 0.
    const TAIL: f64 = 3.654_152_885_361_009;
    const AREA: f64 = 0.004_928_673_233_974_655;

    fn new() -> Self {
        let density = |x: f64| (-0.5 * x * x).exp();
        let mut edges = [0.0; Ziggurat::LAYERS + 1];
        edges[0] = Ziggurat::AREA / density(Ziggurat::TAIL);
        edges[1] = Ziggurat::TAIL;
        for i in 1..Ziggurat::LAYERS - 1 {
            let height = density(edges[i]) + Ziggurat::AREA / edges[i];
            edges[i + 1] = (-2.0 * height.ln()).sqrt();
        }
        Ziggurat { edges, heights: edges.map(density) }
    }
}

/// SplitMix64's finalizer: a bijection of 64 bits with good avalanche.
#[inline]
pub(crate) fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A keyed permutation of `0..count`, evaluated at one index in constant time and memory: a Feistel
/// network on the next even number of bits, iterated until the result is in range (cycle walking).
pub(crate) fn permuted(index: u64, count: u64, key: u64) -> u64 {
    debug_assert!(index < count);
    if count <= 1 {
        return index;
    }
    let half_bits = (64 - (count - 1).leading_zeros()).div_ceil(2);
    let mask = (1u64 << half_bits) - 1;
    let mut x = index;
    loop {
        let (mut left, mut right) = (x >> half_bits, x & mask);
        for round in 0..4 {
            let scattered = mix(key ^ mix(right | round << 60)) & mask;
            (left, right) = (right, left ^ scattered);
        }
        x = left << half_bits | right;
        if x < count {
            return x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_numbers_are_in_the_unit_interval_with_mean_one_half() {
        let mut random = Random::new(1);
        let numbers: Vec<f64> = (0..100_000).map(|_| random.unit()).collect();
        assert!(numbers.iter().all(|x| (0.0..1.0).contains(x)));
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
    }

    /// The standard normal distribution function, by Simpson's rule.
    fn normal_distribution(x: f64) -> f64 {
        let (steps, low) = (4000, -9.0);
        let width = (x - low) / f64::from(steps);
        let density = |i: i32| {
            let at = low + f64::from(i) * width;
            (-0.5 * at * at).exp() / std::f64::consts::TAU.sqrt()
        };
        let inner: f64 = (1..steps).map(|i| density(i) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
        width / 3.0 * (density(0) + inner + density(steps))
    }

    #[test]
    fn normal_numbers_follow_the_normal_distribution() {
        let mut numbers = vec![0.0; 4_000_000];
        Random::new(2).fill_normal(&mut numbers);
        let count = numbers.len() as f64;
        for edge in
            [-4.5, -3.9, -3.654, -3.6, -3.0, -2.0, -1.0, -0.3, -0.05, 0.0, 0.2, 1.5, 3.7, 4.2]
        {
            let expected = normal_distribution(edge);
            let below = numbers.iter().filter(|x| **x < edge).count() as f64 / count;
            let deviation = (expected * (1.0 - expected) / count).sqrt();
            assert!((below - expected).abs() < 4.0 * deviation, "{edge}: {below} {expected}");
        }
        let variance = numbers.iter().map(|x| x * x).sum::<f64>() / count;
        assert!((variance - 1.0).abs() < 0.004, "{variance}");
    }

    #[test]
    fn the_ziggurat_ends_at_the_top_of_the_density() {
        let Ziggurat { edges, heights } = &*ZIGGURAT;
        assert!(edges.is_sorted_by(|a, b| a > b) && heights.is_sorted());
        let last = Ziggurat::LAYERS - 1;
        let area = edges[last] * (heights[last + 1] - heights[last]);
        assert!((area / Ziggurat::AREA - 1.0).abs() < 1e-9, "{area}");
    }

    #[test]
    fn single_draws_equal_filled_ones() {
        let (mut one, mut many, mut out) = (Random::new(5), Random::new(5), [0.0; 1000]);
        many.fill_normal(&mut out);
        assert!(out.iter().all(|x| *x == one.normal()));
    }

    #[test]
    fn bounded_integers_cover_their_range_evenly() {
        let mut random = Random::new(3);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[random.index(7)] += 1;
        }
        assert!(counts.iter().all(|&c| (9_500..10_500).contains(&c)), "{counts:?}");
    }

    #[test]
    fn the_widest_range_does_not_overflow() {
        let mut random = Random::new(4);
        for _ in 0..1000 {
            assert!(random.between(f64::MIN, f64::MAX).is_finite());
        }
    }

    #[test]
    fn permuted_is_a_permutation_for_every_count() {
        for count in 1..=70 {
            for key in 0..5 {
                let mut seen: Vec<u64> = (0..count).map(|i| permuted(i, count, key)).collect();
                seen.sort_unstable();
                assert_eq!(seen, (0..count).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn streams_of_a_seed_differ() {
        let mut firsts: Vec<u64> = (0..1000).map(|s| Random::stream(9, s).bits()).collect();
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts.len(), 1000);
    }
}
