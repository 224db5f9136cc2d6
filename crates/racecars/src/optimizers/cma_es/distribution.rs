//! The search distribution N(m, sigma² C) and its update: eqs. (41) to (47) of the tutorial, with the
//! names of its figure 6.

use super::covariance::{Covariance, Workspace};
use super::parameters::{Parameters, expected_norm};
use crate::linalg::cholesky::NotPositiveDefinite;
use crate::linalg::product::squared;
use crate::optimizers::saved::ID_HEADROOM;
use serde::{Deserialize, Serialize};

/// The state of figure 6 of the tutorial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Distribution {
    /// m, where each axis has length 1.
    pub(super) mean: Vec<f64>,
    /// The step size.
    pub(super) sigma: f64,
    /// p_sigma: the evolution path of the step size.
    path_sigma: Vec<f64>,
    /// p_c: the evolution path of the rank-one update.
    path_c: Vec<f64>,
    pub(super) covariance: Covariance,
    /// g: the number of updates.
    pub(super) generation: u64,
}

/// Whether a number of the distribution is finite and so small that no draw overflows.
pub(super) fn is_bounded(x: f64) -> bool {
    x.abs() < 1e100
}

/// The greatest length of a step that is likely in n dimensions (Hansen 2011, eq. (4)).
pub(super) fn longest_step(n: usize) -> f64 {
    let n = n as f64;
    n.sqrt() + 2.0 * n / (n + 2.0)
}

/// A candidate of a generation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'a> {
    /// y = (x - m) / sigma.
    pub(super) y: &'a [f64],
    /// y^T C^-1 y.
    pub(super) length: f64,
    /// Whether it may have a negative weight: false for points from elsewhere.
    pub(super) is_drawn: bool,
}

/// Buffers of the update.
#[derive(Debug, Default)]
pub(super) struct UpdateBuffers {
    pub(super) work: Workspace,
    /// <y>_w of eq. (41).
    pub(super) mean_step: Vec<f64>,
    /// A^-1 <y>_w.
    white: Vec<f64>,
}

impl Distribution {
    pub(super) fn new(mean: Vec<f64>, sigma: f64, separable: bool) -> Self {
        let n = mean.len();
        Distribution {
            mean,
            sigma,
            path_sigma: vec![0.0; n],
            path_c: vec![0.0; n],
            covariance: Covariance::new(n, separable),
            generation: 0,
        }
    }

    /// The deviation of one coordinate.
    #[inline]
    pub(super) fn deviation(&self, index: usize) -> f64 {
        self.sigma * self.covariance.variance(index).sqrt()
    }

    /// Reduces the step size until no coordinate's deviation is above `limit`.
    pub(super) fn limit_deviation(&mut self, limit: f64) {
        let greatest = (0..self.mean.len()).map(|i| self.deviation(i)).fold(0.0, f64::max);
        if greatest > limit {
            self.sigma *= limit / greatest;
        }
    }

    /// Shortens a step to a length that is likely under this distribution (Hansen 2011, eqs. (3) and (4)).
    /// A step that overflowed becomes a zero step. Returns y^T C^-1 y.
    pub(super) fn shorten(&self, y: &mut [f64], work: &mut Workspace) -> f64 {
        let longest = longest_step(y.len());
        let mut length = self.covariance.squared_length(y, work);
        if length > longest * longest {
            let factor = longest / length.sqrt();
            y.iter_mut().for_each(|y| *y *= factor);
            length = longest * longest;
        }
        if !(length.is_finite() && y.iter().all(|y| y.is_finite())) {
            y.fill(0.0);
            length = 0.0;
        }
        length
    }

    /// Updates the distribution by one generation. `steps` are lambda candidates, best first. `scale` has the
    /// factor of each coordinate's deviation in the draws; empty if all are 1. `is_mixed`: see `path_norm`.
    pub(super) fn update<'a>(
        &mut self,
        parameters: &Parameters,
        steps: impl Iterator<Item = Step<'a>> + Clone,
        scale: &[f64],
        is_mixed: bool,
        buffers: &mut UpdateBuffers,
    ) -> Result<(), NotPositiveDefinite> {
        let Parameters { mu, mu_eff, c_sigma, d_sigma, c_c, c_1, c_mu, .. } = *parameters;
        let n = self.mean.len() as f64;
        let UpdateBuffers { work, mean_step, white } = buffers;
        let ranked = parameters.weights.iter().copied().zip(steps);

        // Eq. (41).
        mean_step.clear();
        mean_step.resize(self.mean.len(), 0.0);
        for (weight, step) in ranked.clone().take(mu) {
            mean_step.iter_mut().zip(step.y).for_each(|(sum, y)| *sum += weight * y);
        }

        // Eq. (43), with A^-1 instead of C^(-1/2): see `covariance`.
        white.resize(self.mean.len(), 0.0);
        self.covariance.whiten(mean_step, white);
        let gain = (c_sigma * (2.0 - c_sigma) * mu_eff).sqrt();
        for (path, white) in self.path_sigma.iter_mut().zip(&*white) {
            *path = (1.0 - c_sigma) * *path + gain * white;
        }
        let (norm, expected_norm) = if is_mixed {
            self.path_norm(scale)
        } else {
            (squared(&self.path_sigma).sqrt(), parameters.expected_norm)
        };

        // Eq. (45). h_sigma stalls p_c while the step size is still far too small.
        let updates = (self.generation + 1).min(1 << 30) as i32;
        let bias = 1.0 - (1.0 - c_sigma).powi(updates.saturating_mul(2));
        let h_sigma = norm / bias.sqrt() < (1.4 + 2.0 / (n + 1.0)) * expected_norm;
        let gain = if h_sigma { (c_c * (2.0 - c_c) * mu_eff).sqrt() } else { 0.0 };
        for (path, y) in self.path_c.iter_mut().zip(&*mean_step) {
            *path = (1.0 - c_c) * *path + gain * y;
        }

        // Eqs. (46) and (47): steps with negative weights are scaled to the expected length. Points from
        // elsewhere get no negative weight, since a bad value says nothing about their direction.
        let is_used = |weight: f64, step: &Step<'_>| {
            weight > 0.0 || (weight < 0.0 && step.is_drawn && step.length > 1e-12 * n)
        };
        let used = ranked.filter(|(weight, step)| is_used(*weight, step));
        let sum: f64 = used.clone().map(|(weight, _)| weight).sum();
        let stalled = if h_sigma { 0.0 } else { c_c * (2.0 - c_c) };
        let keep = 1.0 + c_1 * stalled - c_1 - c_mu * sum;
        let weighted = used.map(|(weight, step)| {
            let factor = if weight < 0.0 { n / step.length } else { 1.0 };
            (c_mu * weight * factor, step.y)
        });
        let rank_one = std::iter::once((c_1, &self.path_c[..]));
        self.covariance.update(keep, rank_one.chain(weighted), work);

        // Eq. (42), with c_m = 1.
        for (i, (mean, y)) in self.mean.iter_mut().zip(&*mean_step).enumerate() {
            *mean += self.sigma * scale.get(i).unwrap_or(&1.0) * y;
        }
        // Eq. (44), with at most a factor of e per generation, as with injected points (Hansen 2011,
        // "Injecting external solutions into CMA-ES", eq. (9)).
        self.sigma *= (c_sigma / d_sigma * (norm / expected_norm - 1.0)).min(1.0).exp();
        self.generation += 1;

        self.covariance.refresh(parameters.gap, work)?;
        let is_sound = self.sigma > 0.0
            && is_bounded(self.sigma)
            && is_bounded(norm)
            && self.mean.iter().chain(&self.path_c).all(|&x| is_bounded(x))
            && (0..self.mean.len()).all(|i| is_bounded(self.covariance.variance(i)));
        if is_sound { Ok(()) } else { Err(NotPositiveDefinite) }
    }

    /// The norm of p_sigma and its expectation in a space with real and discrete coordinates: over those whose
    /// deviation is not scaled up, which include the reals. A coordinate with its least deviation makes random
    /// steps whatever the step size is, so that its part of the path would only delay the others (compare
    /// Hansen, "A CMA-ES for mixed-integer nonlinear optimization", 2011).
    fn path_norm(&self, scale: &[f64]) -> (f64, f64) {
        let (mut sum, mut count) = (0.0, 0);
        for (path, _) in self.path_sigma.iter().zip(scale).filter(|(_, scale)| **scale == 1.0) {
            sum += path * path;
            count += 1;
        }
        (sum.sqrt(), expected_norm(count))
    }

    /// Whether the deviation and the path are below `tolerance` in every coordinate.
    pub(super) fn is_narrow(&self, tolerance: f64) -> bool {
        let is_still = |path: &f64| self.sigma * path.abs() < tolerance;
        self.path_c.iter().all(is_still)
            && (0..self.mean.len()).all(|i| self.deviation(i) < tolerance)
    }

    /// Checks the invariants of a deserialized distribution.
    pub(super) fn is_sound(&self, dimension: usize, separable: bool) -> bool {
        let vectors = [&self.mean, &self.path_sigma, &self.path_c];
        vectors.iter().all(|v| v.len() == dimension && v.iter().all(|&x| is_bounded(x)))
            && self.sigma > 0.0
            && is_bounded(self.sigma)
            && self.generation < ID_HEADROOM
            && self.covariance.is_sound(dimension, separable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The number of generations until the value at the mean is below `target`.
    fn generations(f: impl Fn(&[f64]) -> f64, n: usize, separable: bool, target: f64) -> u64 {
        let lambda = 4 + (3.0 * (n as f64).ln()) as usize;
        let parameters = Parameters::new(n, lambda, separable);
        let mut distribution = Distribution::new(vec![1.0; n], 0.3, separable);
        let (mut random, mut buffers) = (Random::new(1), UpdateBuffers::default());
        let mut y = vec![0.0; n * lambda];
        while f(&distribution.mean) > target && distribution.generation < 20_000 {
            let mut lengths = Vec::new();
            let UpdateBuffers { work, .. } = &mut buffers;
            distribution.covariance.sample(&mut random, &mut y, work, |l| lengths.push(l));
            let value = |y: &[f64]| {
                let (mean, sigma) = (&distribution.mean, distribution.sigma);
                f(&mean.iter().zip(y).map(|(m, y)| m + sigma * y).collect::<Vec<_>>())
            };
            let mut order: Vec<usize> = (0..lambda).collect();
            order.sort_by(|&a, &b| {
                value(&y[a * n..(a + 1) * n]).total_cmp(&value(&y[b * n..(b + 1) * n]))
            });
            let steps = order.iter().map(|&i| Step {
                y: &y[i * n..(i + 1) * n],
                length: lengths[i],
                is_drawn: true,
            });
            distribution.update(&parameters, steps, &[], false, &mut buffers).unwrap();
            assert!(distribution.is_sound(n, separable));
        }
        distribution.generation
    }

    #[test]
    fn a_sphere_takes_as_many_generations_as_in_the_literature() {
        // Log-linear: some 100 to 200 generations for twelve digits in 10 dimensions.
        let sphere = |x: &[f64]| squared(x);
        let taken = generations(sphere, 10, false, 1e-10);
        assert!((100..260).contains(&taken), "{taken}");
        let taken = generations(sphere, 10, true, 1e-10);
        assert!((100..260).contains(&taken), "{taken}");
    }

    #[test]
    fn coordinates_with_their_least_deviation_do_not_count_in_the_norm_of_the_path() {
        let mut distribution = Distribution::new(vec![0.5; 3], 0.2, false);
        distribution.path_sigma = vec![3.0, 7.0, 4.0];
        let (norm, expected) = distribution.path_norm(&[1.0, 50.0, 1.0]);
        assert_eq!((norm, expected), (5.0, expected_norm(2)));
        let all = distribution.path_norm(&[1.0; 3]);
        assert_eq!(all, (74f64.sqrt(), Parameters::new(3, 7, false).expected_norm));
    }

    #[test]
    fn the_separable_variant_adapts_faster_to_an_ellipsoid() {
        let ellipsoid = |x: &[f64]| -> f64 {
            x.iter().enumerate().map(|(i, x)| 10f64.powf(6.0 * i as f64 / 9.0) * x * x).sum()
        };
        let full = generations(ellipsoid, 10, false, 1e-8);
        let separable = generations(ellipsoid, 10, true, 1e-8);
        assert!(full < 700 && separable < full, "{full} {separable}");
    }
}
