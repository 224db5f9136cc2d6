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
//! - [`Bounds`]: the bounds of Theorem 2 and, in [`Version`]s, of Theorem 3
//! - [`Theorem`]: Theorem 3 with an assumption that can hold, and with a proof
//! - [`Corollary`]: its closed form for gamma and rho that suit it
//! - [`geometry`]: which eta and kappa are possible for Sphere's target
//! - [`lower`]: how many queries any algorithm needs that only ranks values
//! - [`region`]: the region's mean measure, and the sufficient condition on gamma and rho

mod chain;
mod corollary;
pub mod geometry;
mod logs;
pub mod lower;
mod queries;
pub mod region;
mod setting;
#[cfg(test)]
mod tests;
mod theorem;

pub use corollary::{Corollary, one_shrink};
pub use queries::Queries;
pub use setting::{BoundSetting, ln_ball};
pub use theorem::Theorem;

use super::TheoryError;
use queries::MAX_EXACT;

/// The versions of Theorem 3 that are not theorems: as printed, and with mistakes of its proof corrected. All put
/// the mean over the shrinks into the exponent, which gives less than the mean of the exponentials (Jensen's
/// inequality): the runs that fail are those that happen not to shrink for long. [`Theorem`] does not.
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
}

impl Version {
    /// All, from the printed one on.
    pub const ALL: [Version; 3] = [Version::Printed, Version::Sum, Version::Mean];

    /// The name of the version.
    pub fn name(self) -> &'static str {
        match self {
            Version::Printed => "printed",
            Version::Sum => "sum",
            Version::Mean => "mean",
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

    /// Theorem 3 in a version that is not proved: the queries of RACE-CARS that are claimed to suffice.
    pub fn race_cars(&self, version: Version) -> Queries {
        self.queries(|steps, ln_steps| self.ln_hits(version, steps, ln_steps))
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

    /// The probability that RACE-CARS with this budget finds no point of the target, as this version claims.
    pub fn race_cars_failure(&self, version: Version, budget: u64) -> f64 {
        self.failure(budget, |steps, ln_steps| self.ln_hits(version, steps, ln_steps))
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

    /// The logarithm of the expected hits of `steps` steps, by a version of Theorem 3.
    fn ln_hits(&self, version: Version, steps: f64, ln_steps: f64) -> f64 {
        let BoundSetting { eta, p, lambda, gamma, rho, dimension, ln_target, .. } = self.setting;
        let (ln_q, p) = match version {
            // The printed theorem has no p.
            Version::Printed | Version::Sum => (region::ln_decay_printed(gamma, rho), 1.0),
            Version::Mean => (region::ln_decay(gamma, rho, dimension), p),
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
            Version::Mean => {
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
}
