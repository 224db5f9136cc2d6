//! The test that drops a prompt, and the intervals of the report.

use racecars::random::Random;
use serde::{Deserialize, Serialize};

/// The number of random sign changes of the test.
const FLIPS: usize = 2000;
/// The number of resamples of the bootstrap.
const RESAMPLES: usize = 10_000;
/// The standard normal's 97.5 % point.
const Z95: f64 = 1.959_963_984_540_054;

/// The one-sided p-value that the mean of `differences` is below 0 by chance: a paired permutation test. If both
/// prompts are equally good, a difference is as likely as the same one with the other sign. With scores of 0
/// and 1 it is McNemar's exact test, but for the 2000 random draws.
pub fn sign_flip_test(differences: &[f64], random: &mut Random) -> f64 {
    let moved: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let observed: f64 = moved.iter().sum();
    let slack = 1e-12 * moved.iter().map(|d| d.abs()).sum::<f64>();
    let mut extreme = 0;
    for _ in 0..FLIPS {
        let sum: f64 = moved.iter().map(|d| if random.chance(0.5) { *d } else { -d }).sum();
        extreme += usize::from(sum <= observed + slack);
    }
    (1 + extreme) as f64 / (1 + FLIPS) as f64
}

/// A number with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The number.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The share of `right` in `count`, with Wilson's interval.
pub fn wilson(right: f64, count: usize) -> Interval {
    let n = count as f64;
    let p = right / n;
    let (z2, spread) = (Z95 * Z95, p * (1.0 - p) / n);
    let middle = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z95 / (1.0 + z2 / n) * (spread + z2 / (4.0 * n * n)).sqrt();
    Interval { value: p, low: (middle - half).max(0.0), high: (middle + half).min(1.0) }
}

/// The mean, with the percentiles of the bootstrap.
pub fn bootstrap(values: &[f64], random: &mut Random) -> Interval {
    let mean = |sum: f64| sum / values.len() as f64;
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| mean((0..values.len()).map(|_| values[random.index(values.len())]).sum()))
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| means[((RESAMPLES - 1) as f64 * share).round() as usize];
    Interval { value: mean(values.iter().sum()), low: at(0.025), high: at(0.975) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_agrees_with_mcnemars_exact_one() {
        // 2 better, 8 worse, 20 the same: P(Bin(10, 1/2) <= 2) = 56 / 1024.
        let mut differences = vec![0.0; 20];
        differences.extend([1.0; 2].iter().chain(&[-1.0; 8]));
        let p = sign_flip_test(&differences, &mut Random::new(1));
        assert!((p - 56.0 / 1024.0).abs() < 0.02, "{p}");
        assert_eq!(sign_flip_test(&[0.0; 5], &mut Random::new(1)), 1.0);
        assert!(sign_flip_test(&[1.0; 5], &mut Random::new(1)) > 0.99);
    }

    /// A prompt that is as good as the incumbent is dropped at a level as often as the level says.
    #[test]
    fn the_level_is_kept() {
        let mut random = Random::new(3);
        let rejected = (0..400)
            .filter(|_| {
                let differences: Vec<f64> = (0..16).map(|_| random.normal()).collect();
                sign_flip_test(&differences, &mut random) < 0.1
            })
            .count();
        assert!((20..=62).contains(&rejected), "{rejected} of 400");
    }

    #[test]
    fn intervals_are_the_textbooks() {
        let Interval { value, low, high } = wilson(8.0, 10);
        assert!((value - 0.8).abs() < 1e-12);
        assert!((low - 0.4902).abs() < 1e-4 && (high - 0.9433).abs() < 1e-4, "{low} {high}");
        assert_eq!((wilson(0.0, 5).low, wilson(5.0, 5).high), (0.0, 1.0));
        let values: Vec<f64> = (0..400).map(|i| f64::from(i % 2)).collect();
        let Interval { value, low, high } = bootstrap(&values, &mut Random::new(1));
        assert!((value - 0.5).abs() < 1e-12);
        assert!((low - 0.451).abs() < 0.01 && (high - 0.549).abs() < 0.01, "{low} {high}");
    }
}
