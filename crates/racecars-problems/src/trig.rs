//! Sines and cosines without branches or calls, so that a loop over a slice becomes SIMD code even on
//! baseline x86-64, where those of the standard library are a call per number.
//!
//! Every function subtracts the nearest integer number of half turns and evaluates one polynomial at the
//! rest. The absolute error is about 1e-15 up to 2^20 half turns in radians, 2^51 in turns. Far beyond
//! that, results are meaningless. NaN and infinities give NaN.

use std::f64::consts::{FRAC_1_PI, PI};

/// 1.5 * 2^52: adding it pushes the fraction out of the mantissa, rounding to nearest, and leaves
/// the integer in the lowest bits.
const ROUNDER: f64 = 1.5 * (1u64 << 52) as f64;

/// Pi truncated to 33 bits, so that its product with an integer below 2^20 is exact.
const PI_HIGH: f64 = f64::from_bits(PI.to_bits() & !0xf_ffff);
/// Pi minus `PI_HIGH`.
const PI_LOW: f64 = 1.215_420_101_301_238_4e-10;

/// cos(2 pi x).
#[inline]
pub fn cos_two_pi(x: f64) -> f64 {
    1.0 - 2.0 * sin_squared_pi(x)
}

/// sin²(pi x). The period is 1, hence no sign to restore.
#[inline]
pub fn sin_squared_pi(x: f64) -> f64 {
    let sine = sin_quarter(PI * (x - round(x)));
    sine * sine
}

/// sin(x), `x` in radians.
#[inline]
pub fn sin(x: f64) -> f64 {
    let half_turns = x * FRAC_1_PI + ROUNDER;
    // An odd number of half turns flips the sign: its lowest bit becomes the sign bit.
    let flip = half_turns.to_bits() << 63;
    let sine = sin_quarter(without_half_turns(x, half_turns - ROUNDER));
    f64::from_bits(sine.to_bits() ^ flip)
}

/// cos(x), `x` in radians: 1 - 2 sin²(x/2), exactly 1 at 0.
#[inline]
pub fn cos(x: f64) -> f64 {
    let half = 0.5 * x;
    let sine = sin_quarter(without_half_turns(half, round(half * FRAC_1_PI)));
    1.0 - 2.0 * sine * sine
}

/// The nearest integer; ties go to the even one. `f64::round` has no SSE2 instruction.
#[inline]
fn round(x: f64) -> f64 {
    (x + ROUNDER) - ROUNDER
}

/// `x` minus `count` times pi, in two steps that keep the significant bits.
#[inline]
fn without_half_turns(x: f64, count: f64) -> f64 {
    (x - count * PI_HIGH) - count * PI_LOW
}

/// sin(r) for |r| <= pi/2: the odd minimax polynomial r + c0 r³ + ... + c6 r¹⁵ (absolute error 1.1e-16),
/// fitted with the Remez exchange in 50 digits.
#[inline]
fn sin_quarter(r: f64) -> f64 {
    let s = r * r;
    let p = -7.364_646_474_891_763e-13;
    let p = p * s + 1.604_730_119_889_608_8e-10;
    let p = p * s - 2.505_185_149_709_066_2e-8;
    let p = p * s + 2.755_731_607_700_909_7e-6;
    let p = p * s - 1.984_126_982_009_422e-4;
    let p = p * s + 8.333_333_333_262_88e-3;
    let p = p * s - 1.666_666_666_666_581e-1;
    r + r * s * p
}

#[cfg(test)]
mod tests {
    use super::*;
    use racecars::random::Random;

    /// Integers, half-integers and random numbers in [-1000, 1000].
    fn arguments() -> impl Iterator<Item = f64> {
        let mut random = Random::new(1);
        let halves = (-2000..=2000).map(|i| 0.5 * f64::from(i));
        halves.chain((0..200_000).map(move |_| random.between(-1e3, 1e3)))
    }

    #[track_caller]
    fn assert_agree(ours: fn(f64) -> f64, reference: fn(f64) -> f64, tolerance: f64) {
        for x in arguments() {
            let error = (ours(x) - reference(x)).abs();
            assert!(error < tolerance, "x = {x}: error {error:e}");
        }
    }

    #[test]
    fn radians_agree_with_the_standard_library() {
        assert_agree(sin, f64::sin, 2e-15);
        assert_agree(cos, f64::cos, 2e-15);
    }

    /// The reference subtracts whole turns first, which is exact; 2 pi x is not.
    #[test]
    fn turns_agree_with_the_standard_library() {
        assert_agree(cos_two_pi, |x| (2.0 * PI * (x - x.round())).cos(), 2e-15);
        assert_agree(sin_squared_pi, |x| (PI * (x - x.round())).sin().powi(2), 2e-15);
    }

    #[test]
    fn extremes_are_exact() {
        assert_eq!((sin(0.0), cos(0.0)), (0.0, 1.0));
        for whole in [-1e9, -3.0, 0.0, 1.0, 2.0, 1e9] {
            assert_eq!((cos_two_pi(whole), sin_squared_pi(whole)), (1.0, 0.0));
        }
    }

    #[test]
    fn what_is_not_finite_gives_nan() {
        for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for f in [sin, cos, cos_two_pi, sin_squared_pi] {
                assert!(f(x).is_nan());
            }
        }
    }
}
