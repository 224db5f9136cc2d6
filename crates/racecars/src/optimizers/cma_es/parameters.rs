//! The strategy parameters: weights and learning rates, eqs. (49) to (58) of the tutorial (Hansen,
//! "The CMA Evolution Strategy: A Tutorial", arXiv 1604.00772), and the larger learning rates of the
//! separable variant (Ros and Hansen, "A simple modification in CMA-ES", 2008).

/// From this dimension on, the path of the step size is shorter.
const HIGH_DIMENSION: usize = 300;

/// The parameters, derived from the dimension n, the population lambda and the variant.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Parameters {
    pub(super) lambda: usize,
    /// mu: the number of positive weights.
    pub(super) mu: usize,
    /// By rank, best first: mu positive weights that sum to 1, then negative weights.
    pub(super) weights: Vec<f64>,
    /// mu_eff: the variance effective selection mass of the positive weights.
    pub(super) mu_eff: f64,
    /// c_sigma: learning rate of the step-size path.
    pub(super) c_sigma: f64,
    /// d_sigma: damping of the step size.
    pub(super) d_sigma: f64,
    /// c_c: learning rate of the covariance path.
    pub(super) c_c: f64,
    /// c_1: learning rate of the rank-one update.
    pub(super) c_1: f64,
    /// c_mu: learning rate of the rank-mu update.
    pub(super) c_mu: f64,
    /// E ||N(0, I)||.
    pub(super) expected_norm: f64,
    /// The number of generations between factorizations of C.
    pub(super) gap: u64,
}

impl Parameters {
    pub(super) fn new(dimension: usize, lambda: usize, separable: bool) -> Self {
        /// Factorizations of C per dimension, within the 1 / (c_1 + c_mu) generations in which C is
        /// learned. The tutorial (section B.2) has 10 decompositions; from 1 on there is no difference in
        /// the number of evaluations needed, and the factorization is a large part of the cost in hundreds
        /// of dimensions.
        const FACTORIZATIONS_PER_DIMENSION: f64 = 1.0;
        const ALPHA_COV: f64 = 2.0;
        let n = dimension as f64;
        // Eq. (49).
        let raw: Vec<f64> =
            (1..=lambda).map(|i| (0.5 * (lambda as f64 + 1.0)).ln() - (i as f64).ln()).collect();
        let mu = raw.iter().filter(|w| **w > 0.0).count();
        let (positive, negative) = raw.split_at(mu);
        let effective = |weights: &[f64]| {
            let (sum, squares) = (total(weights), weights.iter().map(|w| w * w).sum::<f64>());
            if squares > 0.0 { sum * sum / squares } else { 0.0 }
        };
        let (mu_eff, mu_eff_negative) = (effective(positive), effective(negative));

        // Eq. (55), with a departure in high dimensions: its path sums over n generations, which is too
        // slow for a step size that has to shrink within n generations. On a sphere with 500 coordinates
        // the step size is then about 1.6 times too large. (pycma switches to two-point adaptation there,
        // which would treat candidates differently by the order in which they are asked.)
        let (c_sigma, d_base) = if dimension < HIGH_DIMENSION {
            ((mu_eff + 2.0) / (n + mu_eff + 5.0), 1.0)
        } else {
            (mu_eff.sqrt() / (n.sqrt() + mu_eff.sqrt()), 0.5)
        };
        let excess = (((mu_eff - 1.0) / (n + 1.0)).sqrt() - 1.0).max(0.0);
        let d_sigma = d_base + 2.0 * excess + c_sigma;
        // Eq. (56).
        let c_c = (4.0 + mu_eff / n) / (n + 4.0 + 2.0 * mu_eff / n);
        // Eqs. (57) and (58). The separable variant learns (n + 2) / 3 times as fast.
        let speed = if separable { (n + 2.0) / 3.0 } else { 1.0 };
        let c_1 = (speed * ALPHA_COV / ((n + 1.3).powi(2) + mu_eff)).min(0.5);
        let c_mu = speed * ALPHA_COV * (0.25 + mu_eff + 1.0 / mu_eff - 2.0)
            / ((n + 2.0).powi(2) + 0.5 * ALPHA_COV * mu_eff);
        let c_mu = c_mu.min(1.0 - c_1);

        // Eqs. (50) to (52): the sum of the negative weights.
        let alpha_mu = 1.0 + c_1 / c_mu;
        let alpha_mu_eff = 1.0 + 2.0 * mu_eff_negative / (mu_eff + 2.0);
        let alpha_positive_definite = (1.0 - c_1 - c_mu) / (n * c_mu);
        let alpha = alpha_mu.min(alpha_mu_eff).min(alpha_positive_definite).max(0.0);
        // Eq. (53). The weight of the middle rank is 0 where lambda is odd.
        let (sum, sum_negative) = (total(positive), -total(negative));
        let weigh = |w: &f64| match *w {
            w if w > 0.0 => w / sum,
            w if w < 0.0 => alpha * w / sum_negative,
            _ => 0.0,
        };
        let gap = 1.0 / (FACTORIZATIONS_PER_DIMENSION * n * (c_1 + c_mu));
        Parameters {
            lambda,
            mu,
            weights: raw.iter().map(weigh).collect(),
            mu_eff,
            c_sigma,
            d_sigma,
            c_c,
            c_1,
            c_mu,
            expected_norm: expected_norm(dimension),
            gap: (gap as u64).max(1),
        }
    }
}

/// E ||N(0, I)|| in this dimension, approximately.
pub(super) fn expected_norm(dimension: usize) -> f64 {
    let n = dimension as f64;
    n.sqrt() * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n))
}

fn total(weights: &[f64]) -> f64 {
    weights.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_equal_those_of_pycma() {
        // cma 4.5.0: mueff, c1, cmu, cc of CMAEvolutionStrategy(n * [0], 1).sp. Its c_sigma has a 3
        // instead of the tutorial's 5.
        let pycma = [
            (10, 10, [3.167_299, 0.015_283_82, 0.023_551_78, 0.294_990_4]),
            (40, 15, [4.540_915, 0.001_169_433, 0.003_405_22, 0.093_009_2]),
        ];
        for (n, lambda, expected) in pycma {
            let p = Parameters::new(n, lambda, false);
            let ours = [p.mu_eff, p.c_1, p.c_mu, p.c_c];
            for (ours, expected) in ours.iter().zip(expected) {
                assert!((ours / expected - 1.0).abs() < 1e-6, "n = {n}: {ours}, not {expected}");
            }
        }
        let p = Parameters::new(10, 10, false);
        assert!((p.weights[9] + 0.549_749_917_7).abs() < 1e-6, "{:?}", p.weights);
    }

    #[test]
    fn rates_and_weights_are_valid_in_every_size() {
        for n in [1, 2, 3, 10, 100, 1000, 100_000] {
            for lambda in [2, 3, 4, 5, 10, 40, 1000] {
                for separable in [false, true] {
                    let p = Parameters::new(n, lambda, separable);
                    let what = format!("n = {n}, lambda = {lambda}: {p:?}");
                    assert!((total(&p.weights[..p.mu]) - 1.0).abs() < 1e-12, "{what}");
                    assert!(p.weights.is_sorted_by(|a, b| a >= b), "{what}");
                    assert!(p.c_1 > 0.0 && p.c_mu >= 0.0 && p.c_1 + p.c_mu <= 1.0, "{what}");
                    assert!(p.c_sigma > 0.0 && p.c_sigma < 1.0 && p.d_sigma >= 0.5, "{what}");
                    assert!(p.c_c > 0.0 && p.c_c <= 1.0 && p.mu_eff >= 1.0, "{what}");
                    assert!(p.weights.iter().all(|w| w.is_finite()), "{what}");
                }
            }
        }
    }
}
