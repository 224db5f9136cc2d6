//! The test functions, each a plain `fn(&[f64]) -> f64` of any number of coordinates, with minimum 0.
//!
//! Ackley, Levy, Rastrigin and Sphere are those of the appendix of the RACE-CARS paper ("Synthetic
//! functions"); the others are the usual ones. Every function is meant for the box [-10, 10]^n.
//!
//! A sum is computed as `LANES` partial sums, coordinate `i` in number `i % LANES`, so that the compiler
//! vectorises it without reordering: the same point always gives the same bits. Cosines are computed as
//! 1 - 2 sin², which keeps the digits near an optimum and makes its value 0.

use crate::trig::{cos, sin, sin_squared_pi};
use std::f64::consts::{E, FRAC_1_PI};

const LANES: usize = 8;

/// The minimizer of [`schwefel`], the same in every coordinate.
pub const SCHWEFEL_OPTIMUM: f64 = 8.419_374_927_199_64;

/// Ackley: 20 - 20 exp(-0.2 sqrt(mean (x_i - 0.2)²)) + e - exp(mean cos(2 pi (x_i - 0.2))).
/// The optimum is at 0.2.
///
/// The paper prints the cosine unshifted, which would put the minimum near 0.78; its text says 0.
pub fn ackley(x: &[f64]) -> f64 {
    let n = x.len() as f64;
    let square = sum(x, |x| (x - 0.2) * (x - 0.2)) / n;
    let ripple = sum(x, |x| sin_squared_pi(x - 0.2)) / n;
    -20.0 * (-0.2 * square.sqrt()).exp_m1() - E * (-2.0 * ripple).exp_m1()
}

/// Levy: with w_i = 1 + (x_i - 1) / 4, the value is sin²(pi w_1) plus (w_n - 1)² (1 + sin²(2 pi w_n))
/// plus the sum over i < n of (w_i - 1)² (1 + 10 sin²(pi w_i + 1)). The optimum is at 1.
pub fn levy(x: &[f64]) -> f64 {
    let (Some(first), Some((last, others))) = (x.first(), x.split_last()) else {
        return 0.0;
    };
    // w_i - 1: leaving out whole periods does not change the squared sines.
    let shift = |x: f64| 0.25 * (x - 1.0);
    let middle = sum(others, |x| {
        let v = shift(x);
        v * v * (1.0 + 10.0 * sin_squared_pi(v + FRAC_1_PI))
    });
    let v = shift(*last);
    sin_squared_pi(shift(*first)) + middle + v * v * (1.0 + sin_squared_pi(2.0 * v))
}

/// Rastrigin: the sum of x_i² + 10 - 10 cos(2 pi x_i). The optimum is at 0.
pub fn rastrigin(x: &[f64]) -> f64 {
    sum(x, |x| x * x + 20.0 * sin_squared_pi(x))
}

/// Sphere: the sum of (x_i - 0.2)². The optimum is at 0.2.
pub fn sphere(x: &[f64]) -> f64 {
    sum(x, |x| (x - 0.2) * (x - 0.2))
}

/// Rosenbrock: the sum over i < n of 100 (x_{i+1} - x_i²)² + (1 - x_i)². The optimum is at 1.
///
/// For one coordinate that sum is empty; the function is then (1 - x_1)².
pub fn rosenbrock(x: &[f64]) -> f64 {
    if let [x] = x {
        return (1.0 - x) * (1.0 - x);
    }
    sum_of_pairs(x, x.get(1..).unwrap_or_default(), |x, next| {
        let (off_valley, along) = (next - x * x, 1.0 - x);
        100.0 * off_valley * off_valley + along * along
    })
}

/// Griewank: 1 + sum x_i² / 4000 - product cos(x_i / sqrt(i)), counting from 1. The optimum is at 0.
pub fn griewank(x: &[f64]) -> f64 {
    let mut products = [1.0; LANES];
    let mut counts: [f64; LANES] = std::array::from_fn(|lane| 1.0 + lane as f64);
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            products[lane] *= cos(chunk[lane] / counts[lane].sqrt());
            counts[lane] += LANES as f64;
        }
    }
    for (product, (count, x)) in products.iter_mut().zip(counts.iter().zip(rest)) {
        *product *= cos(x / count.sqrt());
    }
    1.0 + sum(x, |x| x * x) / 4000.0 - products.iter().product::<f64>()
}

/// Schwefel on a smaller box: the sum of 418.98... - z_i sin(sqrt|z_i|) with z = 50 x, which maps
/// [-10, 10] onto the usual [-500, 500]. The optimum is at [`SCHWEFEL_OPTIMUM`], far from the
/// centre and from the second best minimum. Outside of the box the function falls below 0.
pub fn schwefel(x: &[f64]) -> f64 {
    const HIGHEST: f64 = 418.982_887_272_433_7;
    sum(x, |x| {
        let z = 50.0 * x;
        HIGHEST - z * sin(z.abs().sqrt())
    })
}

/// Ellipsoid of condition 10^6: the sum of 10^(6 (i - 1) / (n - 1)) x_i². The optimum is at 0.
pub fn ellipsoid(x: &[f64]) -> f64 {
    let gaps = x.len().saturating_sub(1).max(1) as f64;
    // The weights are powers of one ratio, so the sum is a polynomial in it: Horner's rule, from
    // the last coordinate back, every lane in steps of LANES and then across the lanes.
    let ratio = 10f64.powf(6.0 / gaps);
    let ratio_of_chunks = 10f64.powf(6.0 * LANES as f64 / gaps);
    let (chunks, rest) = x.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (sum, x) in sums.iter_mut().zip(rest) {
        *sum = x * x;
    }
    for chunk in chunks.iter().rev() {
        for lane in 0..LANES {
            sums[lane] = sums[lane] * ratio_of_chunks + chunk[lane] * chunk[lane];
        }
    }
    sums.iter().rev().fold(0.0, |sum, lane| sum * ratio + lane)
}

/// The sum of `term` over `x`, in partial sums.
#[inline]
fn sum(x: &[f64], term: impl Fn(f64) -> f64) -> f64 {
    sum_of_pairs(x, x, |x, _| term(x))
}

/// The sum of `term` over the pairs of `x` and `y`, as many as the shorter has, in partial sums.
#[inline]
pub(crate) fn sum_of_pairs(x: &[f64], y: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
    let count = x.len().min(y.len());
    let (x_chunks, x_rest) = x[..count].as_chunks::<LANES>();
    let (y_chunks, y_rest) = y[..count].as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (x, y) in x_chunks.iter().zip(y_chunks) {
        for lane in 0..LANES {
            sums[lane] += term(x[lane], y[lane]);
        }
    }
    for (sum, (x, y)) in sums.iter_mut().zip(x_rest.iter().zip(y_rest)) {
        *sum += term(*x, *y);
    }
    sums.iter().sum()
}

#[cfg(test)]
#[path = "../examples/naive/mod.rs"]
mod naive;

#[cfg(test)]
mod tests {
    use super::*;
    use racecars::random::Random;

    type Function = fn(&[f64]) -> f64;

    /// Every function as (name, function, naive implementation, optimum).
    const ALL: [(&str, Function, Function, f64); 8] = [
        ("ackley", ackley, naive::ackley, 0.2),
        ("levy", levy, naive::levy, 1.0),
        ("rastrigin", rastrigin, naive::rastrigin, 0.0),
        ("sphere", sphere, naive::sphere, 0.2),
        ("rosenbrock", rosenbrock, naive::rosenbrock, 1.0),
        ("griewank", griewank, naive::griewank, 0.0),
        ("schwefel", schwefel, naive::schwefel, SCHWEFEL_OPTIMUM),
        ("ellipsoid", ellipsoid, naive::ellipsoid, 0.0),
    ];

    const SIZES: [usize; 8] = [1, 2, 7, 8, 9, 50, 500, 1003];

    #[test]
    fn the_plain_forms_give_the_same_values() {
        let mut random = Random::new(1);
        for (name, function, plain, optimum) in ALL {
            for n in SIZES {
                for spread in [1e-3, 1.0, 10.0] {
                    let low = (optimum - spread).max(-10.0);
                    let high = (optimum + spread).min(10.0);
                    let x: Vec<f64> = (0..n).map(|_| random.between(low, high)).collect();
                    let (value, expected) = (function(&x), plain(&x));
                    // The naive forms cancel: their rounding error grows with n even where the value is small.
                    let tolerance = 1e-12 * (n as f64 + expected.abs());
                    assert!(
                        (value - expected).abs() < tolerance,
                        "{name}, n = {n}: {value} instead of {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn optima_have_value_zero() {
        for (name, function, _, optimum) in ALL {
            for n in SIZES {
                let value = function(&vec![optimum; n]);
                let allowed = if name == "schwefel" { 1e-12 * n as f64 } else { 0.0 };
                assert!(value.abs() <= allowed, "{name}, n = {n}: {value:e}");
            }
        }
    }

    #[test]
    fn no_value_in_the_box_is_below_the_optimum() {
        let mut random = Random::new(2);
        for (name, function, _, optimum) in ALL {
            for _ in 0..10_000 {
                let spread = 10f64.powf(random.between(-6.0, 1.3));
                let x: Vec<f64> = (0..3)
                    .map(|_| (optimum + random.between(-spread, spread)).clamp(-10.0, 10.0))
                    .collect();
                let value = function(&x);
                assert!(value > -1e-12, "{name} at {x:?}: {value:e}");
            }
        }
    }

    #[test]
    fn a_nan_coordinate_gives_nan() {
        for (name, function, _, _) in ALL {
            for n in SIZES {
                let mut x = vec![0.5; n];
                x[n / 2] = f64::NAN;
                assert!(function(&x).is_nan(), "{name}, n = {n}");
            }
        }
    }
}
