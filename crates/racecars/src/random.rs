//! Random numbers. The generator is xoshiro256++; the few lines that turn its bits into uniform
//! numbers, bounded integers and normals are our own, so that a seed means the same run in every
//! version of this library.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

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
    /// A generator that is a function of `seed` alone.
    pub fn new(seed: u64) -> Self {
        Random { generator: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// A generator for the `stream`-th of several independent uses of one seed.
    pub fn stream(seed: u64, stream: u64) -> Self {
        Random::new(mix(seed ^ mix(stream.wrapping_add(1))))
    }

    /// Whether the generator moves: not so if a damaged save left its state all zeros.
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

    /// A standard normal number (Marsaglia's polar method; the second of each pair is dropped, so
    /// that the state is the generator's alone).
    pub fn normal(&mut self) -> f64 {
        loop {
            let (u, v) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let s = u * u + v * v;
            if s > 0.0 && s < 1.0 {
                return u * (-2.0 * s.ln() / s).sqrt();
            }
        }
    }
}

/// SplitMix64's finalizer: a bijection of 64 bits that scatters them well.
#[inline]
pub(crate) fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A keyed bijection of `0..count`, evaluated at one place in constant time and memory: a Feistel
/// network on the next even number of bits, walked until it falls inside.
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

    #[test]
    fn normals_have_mean_zero_and_variance_one() {
        let mut random = Random::new(2);
        let numbers: Vec<f64> = (0..200_000).map(|_| random.normal()).collect();
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        let variance = numbers.iter().map(|x| x * x).sum::<f64>() / numbers.len() as f64;
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
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
    fn permuted_is_a_bijection_for_every_count() {
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
