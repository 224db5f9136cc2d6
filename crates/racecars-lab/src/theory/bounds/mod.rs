//! The bounds of Theorems 2 and 3, printed and corrected.
//!
//! Both proofs have the same structure. If step t, given all steps before, hits the target with probability
//! at least h_t, then T queries, the first r of them uniform, all miss with probability at most
//! exp(-(r |Omega_eps| + sum of h_t)), since 1 - h <= exp(-h). So the bound is the least T with
//!
//! r |Omega_eps| + sum_{t=r+1..T} h_t >= ln(1/delta).
//!
//! That is computed here. The theorems print it as O(max{B(T), T}) with T on both sides, which says
//! nothing until it is solved for T.
//!
//! - [`BoundSetting`]: the quantities that the bounds are stated in
//! - [`Bounds`]: the bounds, in [`Version`]s
//! - [`region`]: the region's mean measure, and the sufficient condition on gamma and rho

mod chain;
mod logs;
mod queries;
pub mod region;
mod setting;
#[cfg(test)]
mod tests;

pub use queries::Queries;
pub use setting::{BoundSetting, ln_ball};

use super::TheoryError;
use chain::Chain;
use queries::MAX_EXACT;

/// The maximum number of factors in the product of [`Bounds::exhausted_failure`].
const MAX_FACTORS: f64 = 1e6;

/// The versions of Theorem 3, each with one more mistake of its proof corrected.
///
/// With j = t - r, the proof claims that step t draws from a hypothesis of mean measure at most q^-j,
/// q = gamma^-rho, and so hits with probability at least lambda eta q^j |Omega_eps| +
/// (1 - lambda) |Omega_eps|. Then it adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// As printed: the sum of q^j over j = 1..N is taken to be N (q + q^N) / 2, as if it were arithmetic.
    /// The terms are convex in j, so that this is too large, and the bound too small.
    Printed,
    /// With the geometric sum, q (q^N - 1) / (q - 1).
    Sum,
    /// In addition, with the mean measure of the region, which is Q^-j, Q = 1 / (1 - rho + rho gamma^n): see
    /// [`region`]. The measure is also at most p, and no probability is above 1, so a step
    /// counts lambda min(1, eta |Omega_eps| max(1/p, Q^j)).
    Mean,
    /// In addition, with the mean taken outside of the exponential. The numbers of shrinks K_j are random.
    /// Given all of them, a run misses with probability at most exp(-sum of h(K_j)), where
    /// h(K) = lambda min(1, eta |Omega_eps| / min(p, gamma^(n K))) + (1 - lambda) |Omega_eps|. So runs miss
    /// with probability at most the mean of that. The proof puts the mean into the exponent, which gives
    /// less (Jensen's inequality): the runs that fail are those that happen not to shrink for long.
    ///
    /// This version is a theorem, and it is computed exactly wherever that is feasible. It assumes that a
    /// hypothesis holds the share eta of the target or, once the region is too small for that, lies in the
    /// target. [`Bounds::exhausted_failure`] is the price of assuming nothing from there on.
    Proved,
}

impl Version {
    /// All, from the printed one to the proved one.
    pub const ALL: [Version; 4] = [Version::Printed, Version::Sum, Version::Mean, Version::Proved];

    /// The name of the version.
    pub fn name(self) -> &'static str {
        match self {
            Version::Printed => "printed",
            Version::Sum => "sum",
            Version::Mean => "mean",
            Version::Proved => "proved",
        }
    }
}

/// The bounds in one setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    setting: BoundSetting,
}

impl Bounds {
    /// The bounds in this setting, if it is valid.
    pub fn new(setting: BoundSetting) -> Result<Bounds, TheoryError> {
        setting.check()?;
        Ok(Bounds { setting })
    }

    /// The setting.
    pub fn setting(&self) -> &BoundSetting {
        &self.setting
    }

    /// Theorem 2: an upper bound on the queries of SRACOS. Its proof is sound; solved for T it is
    /// r + (ln(1/delta) / |Omega_eps| - r) / (lambda eta / p + 1 - lambda).
    pub fn sracos(&self) -> Queries {
        self.queries(|_, ln_steps| self.ln_steady(self.setting.p, ln_steps))
    }

    /// An upper bound on the queries of uniform random search: ln(1/delta) / |Omega_eps|.
    pub fn uniform(&self) -> Queries {
        let BoundSetting { ln_target, .. } = self.setting;
        Queries::least(|_, ln_queries| ln_queries + ln_target >= self.need().ln())
    }

    /// Theorem 3: an upper bound on the queries of RACE-CARS.
    pub fn race_cars(&self, version: Version) -> Queries {
        match version {
            Version::Proved => self.proved(),
            _ => self.queries(|steps, ln_steps| self.ln_hits(version, steps, ln_steps)),
        }
    }

    /// The formula of Theorem 3 as it stands, at a budget T: the first part of its maximum with T,
    /// ((gamma^-rho + gamma^-(T-r) rho) / 2 lambda eta + 1 - lambda)^-1 (ln(1/delta) / |Omega_eps| - r) + r.
    pub fn printed_formula(&self, budget: u64) -> Queries {
        let BoundSetting { ln_target, training_size: r, .. } = self.setting;
        let steps = budget.saturating_sub(r).max(1) as f64;
        // The mean number of hits of a step, relative to that of a uniform draw.
        let ln_gain = self.ln_hits(Version::Printed, steps, steps.ln()) - steps.ln() - ln_target;
        let left = self.left();
        if left <= 0.0 {
            return self.uniform();
        }
        let ln = left.ln() - ln_target - ln_gain;
        match ln.exp() {
            steps if steps < MAX_EXACT as f64 => Queries::Count(r + steps.ceil() as u64),
            _ => Queries::Log(ln),
        }
    }

    /// A bound on the probability that SRACOS with this budget finds no point of the target.
    pub fn sracos_failure(&self, budget: u64) -> f64 {
        self.failure(budget, |_, ln_steps| self.ln_steady(self.setting.p, ln_steps))
    }

    /// A bound on the probability that RACE-CARS with this budget finds no point of the target. Only
    /// [`Version::Proved`] is certain to be a bound.
    pub fn race_cars_failure(&self, version: Version, budget: u64) -> f64 {
        if version != Version::Proved {
            return self.failure(budget, |n, ln_n| self.ln_hits(version, n, ln_n));
        }
        let steps = budget.saturating_sub(self.setting.training_size);
        match Chain::new(&self.setting, steps as f64) {
            Some(chain) if steps > 0 => {
                let start = -(self.setting.training_size as f64) * self.setting.ln_target.exp();
                start.exp() * chain.failure(steps)
            }
            // Not shrinking at all is worse, and its failure is known.
            _ => self.sracos_failure(budget),
        }
    }

    /// The number of shrinks K that the assumption of Theorem 3 allows: a region that holds the share eta
    /// of the target is at least that large, gamma^(n K) >= eta |Omega_eps|.
    pub fn shrinks_allowed(&self) -> f64 {
        let BoundSetting { eta, gamma, dimension, ln_target, .. } = self.setting;
        (eta.ln() + ln_target) / (dimension as f64 * gamma.ln())
    }

    /// A bound on the probability that a run has used up the [`Bounds::shrinks_allowed`] without finding a
    /// point of the target. If nothing is assumed about hypotheses from there on, add this to the failure
    /// of [`Version::Proved`].
    ///
    /// In each step, a run that has shrunk k times first shrinks with probability rho, and then hits with
    /// probability h(k). So it leaves k without a hit with probability rho / (1 - (1 - rho) (1 - h(k))),
    /// times 1 - h(k) for the draw of the step that reached k, if k > 0.
    pub fn exhausted_failure(&self) -> f64 {
        let BoundSetting { rho, ln_target, training_size, .. } = self.setting;
        let allowed = self.shrinks_allowed();
        if rho == 0.0 || !allowed.is_finite() {
            return 0.0;
        }
        let last = allowed.floor();
        let ln_factor = |before_last: u64| {
            let k = last - before_last as f64;
            let hits = self.setting.hits_after(k);
            let arriving = if k > 0.0 { 1.0 - hits } else { 1.0 };
            // 1 - (1 - rho) (1 - h), without cancellation for small h.
            (rho * arriving / (rho + (1.0 - rho) * hits)).ln()
        };
        // If there are too many factors, the first are left out, which makes the product larger.
        let ln_failure: f64 = (0..=last.min(MAX_FACTORS) as u64).map(ln_factor).sum();
        (ln_failure - training_size as f64 * ln_target.exp()).exp()
    }

    /// The least T such that the initial draws and the expected hits of T - r steps, `ln_hits`, suffice.
    fn queries(&self, ln_hits: impl Fn(f64, f64) -> f64) -> Queries {
        let left = self.left();
        if left <= 0.0 {
            return self.uniform();
        }
        let enough = |steps, ln_steps| ln_hits(steps, ln_steps) >= left.ln();
        Queries::least(enough).plus(self.setting.training_size)
    }

    fn failure(&self, budget: u64, ln_hits: impl Fn(f64, f64) -> f64) -> f64 {
        let BoundSetting { ln_target, training_size, .. } = self.setting;
        let initial = budget.min(training_size) as f64 * ln_target.exp();
        let steps = budget.saturating_sub(training_size) as f64;
        let hits = if steps > 0.0 { ln_hits(steps, steps.ln()).exp() } else { 0.0 };
        (-(initial + hits)).exp()
    }

    /// The expected number of hits that is needed, ln(1/delta).
    fn need(&self) -> f64 {
        -self.setting.delta.ln()
    }

    /// The part of [`Bounds::need`] that remains after the initial draws.
    fn left(&self) -> f64 {
        let BoundSetting { ln_target, training_size, .. } = self.setting;
        self.need() - training_size as f64 * ln_target.exp()
    }

    /// The logarithm of the expected hits of steps whose hypotheses have measure `p`.
    fn ln_steady(&self, p: f64, ln_steps: f64) -> f64 {
        let BoundSetting { eta, lambda, ln_target, .. } = self.setting;
        ln_steps + ln_target + (lambda * eta / p + 1.0 - lambda).ln()
    }

    /// The logarithm of the expected hits of `steps` steps, by a version of Theorem 3 before the proved one.
    fn ln_hits(&self, version: Version, steps: f64, ln_steps: f64) -> f64 {
        let BoundSetting { eta, p, lambda, gamma, rho, dimension, ln_target, .. } = self.setting;
        let (ln_q, p) = match version {
            // The printed theorem has no p.
            Version::Printed | Version::Sum => (region::ln_decay_printed(gamma, rho), 1.0),
            Version::Mean | Version::Proved => (region::ln_decay(gamma, rho, dimension), p),
        };
        if ln_q == 0.0 || lambda * eta == 0.0 {
            return self.ln_steady(p, ln_steps);
        }
        let explored = (1.0 - lambda).ln() + ln_target + ln_steps;
        let ln_held = eta.ln() + ln_target;
        let drawn = match version {
            Version::Printed => {
                let mean = logs::add(ln_q, steps * ln_q) - 2f64.ln();
                ln_held + ln_steps + mean
            }
            Version::Sum => ln_held + logs::geometric(ln_q, 0.0, steps),
            // While Q^j <= 1/p; then while Q^j <= 1 / (eta |Omega_eps|); then every draw hits.
            Version::Mean | Version::Proved => {
                let first = (-p.ln() / ln_q).floor();
                let second = (-ln_held / ln_q).floor();
                let steady = ln_held - p.ln() + steps.min(first).ln();
                let rising = logs::geometric(ln_q, first, steps.min(second) - first) + ln_held;
                let sure = (steps - second).max(0.0).ln();
                logs::add(steady, logs::add(rising, sure))
            }
        };
        logs::add(lambda.ln() + drawn, explored)
    }

    /// The least T for which the mean over the shrinks is at most delta.
    fn proved(&self) -> Queries {
        let left = self.left();
        if left <= 0.0 {
            return self.uniform();
        }
        let r = self.setting.training_size;
        let steady = self.queries(|_, ln_steps| self.ln_steady(self.setting.p, ln_steps));
        let known = match self.markov() {
            shorter if shorter < steady => shorter,
            _ => steady,
        };
        let steps = match known {
            Queries::Count(count) => count.saturating_sub(r) as f64,
            large => large.ln().exp(),
        };
        let exact = Chain::new(&self.setting, steps)
            .and_then(|chain| chain.least_steps((-left).exp()))
            .map(|steps| steps.plus(r));
        match exact {
            Some(exact) if exact < known => exact,
            _ => known,
        }
    }

    /// A closed form above the proved bound. By Markov's inequality the region is still
    /// larger than x after s steps with probability at most Q^-s / x; if it is not, N - s steps more
    /// miss with probability at most exp(-(N - s) lambda eta |Omega_eps| / x), x >= eta |Omega_eps|. Let
    /// each be delta / 2, and choose the x for which N is least:
    ///
    /// T <= r + (ln(2 / (delta x)) + 1) / ln Q + 2, x = lambda eta |Omega_eps| / (ln Q ln(2/delta)),
    ///
    /// unless that x is below eta |Omega_eps|, which then takes its place.
    pub fn markov(&self) -> Queries {
        let BoundSetting { eta, lambda, gamma, rho, dimension, ln_target, delta, .. } =
            self.setting;
        let ln_q = region::ln_decay(gamma, rho, dimension);
        if ln_q == 0.0 || lambda * eta == 0.0 {
            return Queries::Never;
        }
        let ln_held = eta.ln() + ln_target;
        let need = (2.0 / delta).ln();
        let ln_x = (lambda.ln() + ln_held - ln_q.ln() - need.ln()).clamp(ln_held, 0.0);
        let shrinking = ((need - ln_x) / ln_q).ceil();
        let ln_hitting = need.ln() + ln_x - lambda.ln() - ln_held;
        let steps = shrinking + ln_hitting.exp().ceil();
        if steps < MAX_EXACT as f64 {
            Queries::Count(self.setting.training_size + steps as u64)
        } else {
            Queries::Log(logs::add(shrinking.ln(), ln_hitting))
        }
    }
}
