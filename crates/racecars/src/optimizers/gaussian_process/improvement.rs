//! The logarithm of the expected improvement, exact and smooth however unlikely an improvement is (after
//! Ament et al., "Unexpected improvements to expected improvement", 2023).

/// log h(z) of h(z) = phi(z) + z Phi(z), the expected improvement in units of the deviation, and the ratios
/// Phi/h and phi/h, which its gradient needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Improvement {
    pub(super) log: f64,
    /// Phi(z) / h(z).
    pub(super) by_mean: f64,
    /// phi(z) / h(z).
    pub(super) by_deviation: f64,
}

/// Below this z the series loses digits, and the continued fraction converges fast.
const TAIL: f64 = -3.0;

/// The terms of the continued fraction.
const FRACTION_TERMS: u32 = 40;

impl Improvement {
    /// `z`: the distance from the mean down to the best value, in deviations.
    pub(super) fn new(z: f64) -> Self {
        let log_density = -0.5 * z * z - 0.5 * std::f64::consts::TAU.ln();
        if z < TAIL {
            // Phi(-x) / phi(x) = 1 / (x + c), and so h / phi = 1 - x / (x + c) = c / (x + c).
            let x = -z;
            let c = fraction(x);
            return Improvement {
                log: log_density + (c / (x + c)).ln(),
                by_mean: 1.0 / c,
                by_deviation: (x + c) / c,
            };
        }
        let density = log_density.exp();
        let probability = if z > 8.0 { 1.0 } else { 0.5 + density * series(z) };
        let h = density + z * probability;
        Improvement { log: h.ln(), by_mean: probability / h, by_deviation: density / h }
    }
}

/// log Phi(z), and the ratio phi(z) / Phi(z), which is its derivative.
pub(super) fn log_probability(z: f64) -> (f64, f64) {
    let log_density = -0.5 * z * z - 0.5 * std::f64::consts::TAU.ln();
    if z < TAIL {
        let ratio = -z + fraction(-z);
        return (log_density - ratio.ln(), ratio);
    }
    let density = log_density.exp();
    let probability = if z > 8.0 { 1.0 } else { 0.5 + density * series(z) };
    (probability.ln(), density / probability)
}

/// c of Phi(-x) / phi(x) = 1 / (x + c), c = 1 / (x + 2 / (x + 3 / ...)) (Laplace).
fn fraction(x: f64) -> f64 {
    let rest = (2..FRACTION_TERMS).rev().fold(0.0, |rest, k| f64::from(k) / (x + rest));
    1.0 / (x + rest)
}

/// (Phi(z) - 1/2) / phi(z) = z + z³/3 + z⁵/15 + ... (Abramowitz and Stegun, 26.2.11).
fn series(z: f64) -> f64 {
    let (mut term, mut sum) = (z, z);
    for k in 1..150 {
        term *= z * z / f64::from(2 * k + 1);
        sum += term;
        if term.abs() < 1e-17 * sum.abs() {
            break;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// h(z), by Simpson's rule for the integral of (z - t) phi(t).
    fn integrated(z: f64) -> f64 {
        let (steps, low) = (20_000, z.min(0.0) - 12.0);
        let width = (z - low) / f64::from(steps);
        let term = |i: i32| {
            let t = low + f64::from(i) * width;
            (z - t) * (-0.5 * t * t).exp() / std::f64::consts::TAU.sqrt()
        };
        let inner: f64 = (1..steps).map(|i| term(i) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
        width / 3.0 * (term(0) + inner + term(steps))
    }

    #[test]
    fn it_equals_its_integral() {
        for i in -160..=60 {
            let z = f64::from(i) / 10.0;
            let (log, expected) = (Improvement::new(z).log, integrated(z).ln());
            assert!(
                (log - expected).abs() < 1e-9 * expected.abs().max(1.0),
                "{z}: {log} {expected}"
            );
        }
    }

    #[test]
    fn the_ratios_are_the_derivatives() {
        // d log h / dz = Phi / h, and phi = h - z Phi.
        for z in [-1e6, -1e3, -40.0, -3.1, -2.9, -1.0, 0.0, 2.0, 9.0, 100.0] {
            let Improvement { by_mean, by_deviation, .. } = Improvement::new(z);
            let step = 1e-5 * f64::max(1.0, z.abs());
            let slope =
                (Improvement::new(z + step).log - Improvement::new(z - step).log) / (2.0 * step);
            assert!((slope / by_mean - 1.0).abs() < 1e-4, "{z}: {slope} {by_mean}");
            let total = by_deviation + z * by_mean;
            assert!((total - 1.0).abs() < 1e-12 * by_deviation.max(1.0), "{z}: {total}");
        }
    }

    #[test]
    fn the_logarithm_of_the_probability_has_the_ratio_as_its_slope() {
        for (z, expected) in [(0.0, 0.5f64.ln()), (1.0, -0.172_753_779), (-5.0, -15.064_998_4)] {
            assert!((log_probability(z).0 - expected).abs() < 1e-7, "{z}");
        }
        for z in [-1e3, -40.0, -3.1, -3.0 + 1e-6, -2.9, -1.0, 0.0, 2.0, 7.9] {
            let step = 1e-5 * f64::max(1.0, f64::abs(z));
            let slope = (log_probability(z + step).0 - log_probability(z - step).0) / (2.0 * step);
            let (log, ratio) = log_probability(z);
            assert!((slope - ratio).abs() < 1e-4 * ratio.max(1e-4), "{z}: {slope} {ratio} {log}");
        }
        assert!(log_probability(-1e9).0.is_finite() && log_probability(1e9) == (0.0, 0.0));
    }

    #[test]
    fn extremes_are_finite() {
        for z in [-1e15, -1e9, 1e9, 1e15, 0.0] {
            let Improvement { log, by_mean, by_deviation } = Improvement::new(z);
            assert!(log.is_finite() && by_mean.is_finite() && by_deviation.is_finite(), "{z}");
        }
    }
}
