//! The measure of RACE-CARS's region, and the sufficient condition on gamma and rho.
//!
//! After j steps the region has been shrunk K times, where K is binomial with j and rho. It has at most
//! gamma^K of the width in each of n coordinates (less where it is clipped at the border), so its
//! measure is at most gamma^(n K). The mean of that is
//!
//! E gamma^(n K) = (1 - rho + rho gamma^n)^j = Q^-j.
//!
//! The proof of Theorem 3 puts gamma^(j rho) in its place, which is an upper bound if and only if
//! 1 - rho + rho gamma^n <= gamma^rho. The right side is convex in rho and the left linear, equal at
//! rho = 0, so:
//!
//! - for n = 1 it fails for every rho between 0 and 1 (the means of 1 and gamma: arithmetic on the
//!   left, geometric on the right);
//! - for n >= 2 it holds for every rho if 1 - gamma^n >= ln(1/gamma), and otherwise only from some
//!   rho on ([`least_rho`]). It fails only for small gamma: below 0.451 for n = 2, below 1/e for all n.

/// ln Q = -ln(1 - rho + rho gamma^n): the rate per step at which the region's mean measure decays.
pub fn ln_decay(gamma: f64, rho: f64, dimension: usize) -> f64 {
    let ln_shrink = dimension as f64 * gamma.ln();
    // For rho = 1 the formula below would be the logarithm of 0 where gamma^n underflows.
    if rho == 1.0 { -ln_shrink } else { -(rho * ln_shrink.exp_m1()).ln_1p() }
}

/// ln q = -rho ln gamma: the same rate in the proof of Theorem 3.
pub fn ln_decay_printed(gamma: f64, rho: f64) -> f64 {
    -rho * gamma.ln()
}

/// Whether the proof's bound on the mean measure, gamma^(j rho), is a bound.
pub fn printed_mean_holds(gamma: f64, rho: f64, dimension: usize) -> bool {
    match dimension {
        1 => rho == 0.0 || rho == 1.0,
        _ => ln_decay(gamma, rho, dimension) >= ln_decay_printed(gamma, rho),
    }
}

/// The least positive rho at which the proof's bound on the mean measure holds (it also holds at 0).
pub fn least_rho(gamma: f64, dimension: usize) -> f64 {
    if dimension == 1 {
        return 1.0;
    }
    let gain = -(dimension as f64 * gamma.ln()).exp_m1();
    if gain >= -gamma.ln() {
        return 0.0;
    }
    // gamma^rho - 1 + rho gain is convex, 0 at rho = 0 and falling there, and positive at 1.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        let surplus = (middle * gamma.ln()).exp_m1() + middle * gain;
        if surplus >= 0.0 { high = middle } else { low = middle }
    }
    high
}

/// How far from the optimum the target can reach in a coordinate where
/// L |x - x*|^beta <= f - f* (the lower half of Definition 5): L |x - x*|^beta <= eps gives
/// |x - x*| <= (eps / L)^(1/beta).
///
/// The paper prints the exponent -beta, see [`reach_printed`]. Both are per coordinate, along the axis
/// through the optimum. That the target lies in the product of these intervals, which the paper calls
/// obvious, also requires f(x) >= f(x*_1, .., x_i, .., x*_n) for every i. A sum of functions of one
/// coordinate each satisfies that; (x + y)² * 100 + (x - y)² does not.
pub fn reach(epsilon: f64, l: f64, beta: f64) -> f64 {
    (epsilon / l).powf(1.0 / beta)
}

/// [`reach`] with the exponent that the paper prints, -beta: it grows as epsilon decreases.
pub fn reach_printed(epsilon: f64, l: f64, beta: f64) -> f64 {
    (epsilon / l).powf(-beta)
}

/// The sufficient condition of the paper's proposition in one coordinate: half the width that gamma and
/// rho leave after a number of steps, gamma^(steps rho) |Omega_i| / 2, is at least the distance of the best
/// point from the optimum plus the target's reach. It assumes rho * steps shrinks; a run has a random
/// number of them.
pub fn is_sufficient(half_width: f64, best_to_optimum: f64, reach: f64) -> bool {
    // The paper omits the absolute value, without which the best point could be anywhere below.
    half_width >= best_to_optimum.abs() + reach
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use racecars::random::Random;

    #[test]
    fn the_mean_measure_is_that_of_simulated_regions() {
        let mut random = Random::new(1);
        for (gamma, rho, n, steps) in [(0.9f64, 0.2, 1, 20), (0.8, 0.05, 3, 40), (0.95, 1.0, 4, 9)]
        {
            let trials = 100_000;
            let mut sum = 0.0;
            for _ in 0..trials {
                let shrinks = (0..steps).filter(|_| random.chance(rho)).count();
                sum += gamma.powi((n * shrinks) as i32);
            }
            let mean = (-f64::from(steps) * ln_decay(gamma, rho, n)).exp();
            assert!((sum / f64::from(trials) / mean - 1.0).abs() < 0.02, "{n}: {mean}");
        }
    }

    #[test]
    fn the_printed_mean_fails_in_one_dimension_and_for_small_gamma() {
        for rho in [0.001, 0.1, 0.5, 0.99] {
            assert!(!printed_mean_holds(0.95, rho, 1));
            assert!(printed_mean_holds(0.95, rho, 2));
            assert!(printed_mean_holds(0.46, rho, 2));
        }
        assert!(!printed_mean_holds(0.44, 0.001, 2) && printed_mean_holds(0.44, 0.9, 2));
        assert!(!printed_mean_holds(0.3, 0.1, 1000) && printed_mean_holds(0.37, 0.1, 1000));
        // docs/theory.md has where it begins to hold for every rho.
        for (n, gamma) in [(2, 0.4508), (3, 0.3905), (1000, 0.3679)] {
            assert_eq!(least_rho(gamma, n), 0.0, "{n}");
            assert!(least_rho(gamma - 1e-3, n) > 0.0, "{n}");
        }
        assert_eq!(least_rho(0.5, 1), 1.0);
    }

    #[test]
    fn the_exponent_is_one_by_beta() {
        // Sphere: (x - x*)² <= eps where |x - x*| <= sqrt(eps).
        assert_eq!(reach(0.25, 1.0, 2.0), 0.5);
        assert_eq!(reach(8.0, 2.0, 1.0), 4.0);
        assert_eq!(
            reach_printed(0.25, 1.0, 2.0),
            16.0,
            "more than the domain, for a smaller target"
        );
        assert!(is_sufficient(1.0, -0.5, 0.5) && !is_sufficient(1.0, -0.6, 0.5));
    }

    proptest! {
        #[test]
        fn the_printed_mean_holds_from_the_least_rho_on(
            gamma in 0.01..0.99f64, rho in 0.001..0.999f64, n in 1usize..50,
        ) {
            let least = least_rho(gamma, n);
            if (rho - least).abs() > 1e-6 {
                prop_assert_eq!(printed_mean_holds(gamma, rho, n), rho > least);
            }
        }
    }
}
