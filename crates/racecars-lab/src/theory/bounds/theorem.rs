//! The theorem of docs/theory.md: Theorem 3 with an assumption that can hold.
//!
//! The assumption (A5): while the region has been shrunk K <= kappa times, a hypothesis holds, in the mean over
//! its training, at least the share eta of the target. Then a step hits with probability at least
//!
//! h(K) = lambda eta |Omega_eps| / min(p, gamma^(n K)) + (1 - lambda) |Omega_eps|,   K <= kappa.
//!
//! Nothing is assumed about hypotheses after more shrinks. With K_j the number of shrinks after j steps, r + N
//! queries all miss with probability at most
//!
//! F(N) = (1 - |Omega_eps|)^r E prod_{j<=N} (1 - h(K_j)),   h(K) = (1 - lambda) |Omega_eps| for K > kappa,
//!
//! and F(N) <= Phi(N) + X: Phi is the part with K_N <= kappa, and X, the probability of using up kappa shrinks
//! without a hit, does not depend on N ([`Theorem::exhausted`]). F is attained, so that no T below
//! [`Theorem::queries`] follows from the assumptions (Proposition 1 there).

use super::chain::{Chain, Walk};
use super::queries::{MAX_EXACT, Queries};
use super::setting::BoundSetting;
use super::{Bounds, TheoryError, logs, region};

/// The maximum number of factors in the product of [`Theorem::exhausted`].
const MAX_FACTORS: u64 = 1_000_000;
/// The share of delta that is left to Phi where the shrinks run out more often than delta.
const HELD_PART: f64 = 1e-3;

/// The theorem in one setting, with a number of shrinks kappa up to which eta is assumed to hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Theorem {
    bounds: Bounds,
    kappa: u64,
}

impl Bounds {
    /// The theorem with this kappa, or with the greatest that volumes allow ([`Bounds::kappa`]). An error if
    /// kappa is above that, since the assumption then contradicts itself.
    pub fn theorem(&self, kappa: Option<u64>) -> Result<Theorem, TheoryError> {
        let most = self.kappa();
        match kappa {
            Some(kappa) if kappa > most => Err(TheoryError::Setting(format!(
                "kappa = {kappa} is above {most}: after more shrinks the region is smaller than the share \
                 eta of the target that it would have to hold"
            ))),
            _ => Ok(Theorem { bounds: *self, kappa: kappa.unwrap_or(most) }),
        }
    }

    /// The greatest kappa that volumes allow: a region that holds the share eta of the target is at least that
    /// large, gamma^(n kappa) >= eta |Omega_eps|. (Geometry allows less, see [`super::geometry`].)
    pub fn kappa(&self) -> u64 {
        self.kappa_of_share(1.0)
    }

    /// The greatest kappa with which eta |Omega_eps| is at most the share `theta` of the region's measure,
    /// gamma^(n kappa) theta >= eta |Omega_eps|.
    pub(super) fn kappa_of_share(&self, theta: f64) -> u64 {
        let BoundSetting { eta, gamma, dimension, ln_target, .. } = *self.setting();
        let shrinks = (eta.ln() + ln_target - theta.ln()) / (dimension as f64 * gamma.ln());
        // A quotient that is whole but for rounding counts as whole; infinity becomes the largest integer.
        (shrinks + 1e-9).floor() as u64
    }
}

impl Theorem {
    /// kappa: the number of shrinks up to which the assumption holds.
    pub fn kappa(&self) -> u64 {
        self.kappa
    }

    /// Phi: a bound on the probability that no query of this budget hits and the region has been shrunk at
    /// most kappa times.
    pub fn held(&self, budget: u64) -> f64 {
        match self.chain(budget) {
            Some((chain, steps)) => self.initial() * chain.walk(steps).held(),
            // Not shrinking at all is worse, and its failure is known.
            None => self.bounds.sracos_failure(budget),
        }
    }

    /// F: the bound on the probability that no query of this budget hits. If an exact walk is not feasible,
    /// Phi + X.
    pub fn failure(&self, budget: u64) -> f64 {
        let failure = match self.chain(budget) {
            Some((chain, steps)) => self.failure_of(&chain)(&chain.walk(steps)),
            None if budget <= self.bounds.setting().training_size => {
                self.bounds.sracos_failure(budget)
            }
            None => self.bounds.sracos_failure(budget) + self.exhausted(),
        };
        failure.min(1.0)
    }

    /// X: a bound on the probability that a run uses up kappa shrinks without a hit, however long it is.
    ///
    /// A run that has shrunk k times leaves k without a hit with probability rho / (1 - (1 - rho) (1 - h(k))),
    /// times 1 - h(k) for the draw of the step that reached k, if k > 0.
    pub fn exhausted(&self) -> f64 {
        let BoundSetting { rho, eta, lambda, .. } = *self.bounds.setting();
        // Without shrinks or hypotheses there is nothing to run out of: every step counts the same.
        if rho == 0.0 || lambda * eta == 0.0 {
            return 0.0;
        }
        let ln_factor = |before_last: u64| {
            let k = self.kappa - before_last;
            let hits = self.bounds.setting().hits_after(k as f64);
            let arriving = if k > 0 { 1.0 - hits } else { 1.0 };
            // 1 - (1 - rho) (1 - h), without cancellation for small h.
            (rho * arriving / (rho + (1.0 - rho) * hits)).ln()
        };
        // If there are too many factors, the first are left out, which makes the product larger.
        let ln_failure: f64 = (0..=self.kappa.min(MAX_FACTORS)).map(ln_factor).sum();
        self.initial() * ln_failure.exp()
    }

    /// The least T with Phi <= delta: the failure of T queries is at most delta, plus [`Theorem::exhausted`].
    pub fn queries_held(&self) -> Queries {
        self.least(self.held_at_most(self.bounds.setting().delta), |_, walk| {
            self.initial() * walk.held()
        })
    }

    /// The least T with F <= delta: the theorem's bound on the queries. If the shrinks run out more often than
    /// delta, only draws from the whole space can make up for it, at the pace of random search.
    pub fn queries(&self) -> Queries {
        let (delta, exhausted) = (self.bounds.setting().delta, self.exhausted());
        // Where Phi is at most delta - X, F is at most delta.
        let known = match delta - exhausted {
            left if left > 0.0 => self.held_at_most(left),
            _ => self.explored(exhausted),
        };
        self.least(known, |chain, walk| self.failure_of(chain)(walk))
    }

    /// A T with F <= delta < X: s steps with Phi <= `HELD_PART` delta, and N - s more, after which F is at most
    /// that and X (1 - (1 - lambda) |Omega_eps|)^(N - s).
    fn explored(&self, exhausted: f64) -> Queries {
        let BoundSetting { lambda, ln_target, delta, .. } = *self.bounds.setting();
        if lambda == 1.0 {
            return Queries::Never;
        }
        let need = (exhausted / ((1.0 - HELD_PART) * delta)).ln();
        let ln_exploring = need.ln() - (1.0 - lambda).ln() - ln_target;
        let ln = logs::add(self.held_at_most(HELD_PART * delta).ln(), ln_exploring);
        match ln.exp().ceil() {
            queries if queries < MAX_EXACT as f64 => Queries::Count(queries as u64 + 1),
            _ => Queries::Log(ln),
        }
    }

    /// F of a walk.
    fn failure_of<'a>(&'a self, chain: &'a Chain) -> impl Fn(&Walk<'_>) -> f64 + 'a {
        let exhausted = self.exhausted();
        move |walk| match chain.is_exact() {
            true => self.initial() * (walk.held() + walk.exhausted()),
            false => self.initial() * walk.held() + exhausted,
        }
    }

    /// (1 - |Omega_eps|)^r: the probability that the initial draws all miss.
    fn initial(&self) -> f64 {
        let BoundSetting { ln_target, training_size, .. } = *self.bounds.setting();
        (training_size as f64 * (-ln_target.exp()).ln_1p()).exp()
    }

    fn chain(&self, budget: u64) -> Option<(Chain, u64)> {
        let setting = self.bounds.setting();
        let steps = budget.checked_sub(setting.training_size).filter(|steps| *steps > 0)?;
        Some((Chain::new(setting, self.kappa, steps as f64)?, steps))
    }

    /// A T at which Phi is at most this, by the better of two closed forms.
    fn held_at_most(&self, delta: f64) -> Queries {
        let bounds = Bounds { setting: BoundSetting { delta, ..*self.bounds.setting() } };
        match (Theorem { bounds, ..*self }.closed_form(), bounds.sracos()) {
            (closed, steady) if closed < steady => closed,
            (_, steady) => steady,
        }
    }

    /// The least T at which `failure` of the walk is at most delta, given one at which it is.
    fn least(&self, mut known: Queries, failure: impl Fn(&Chain, &Walk<'_>) -> f64) -> Queries {
        let setting = self.bounds.setting();
        let (r, delta) = (setting.training_size, setting.delta);
        if self.initial() <= delta {
            return self.bounds.uniform();
        }
        // If there are many steps, first in blocks, which gives a better number to start from.
        while let Some(chain) = Chain::new(setting, self.kappa, steps_of(known, r)) {
            let Some(found) = chain.least_steps(delta, |walk| failure(&chain, walk)) else { break };
            let is_better = found.plus(r) < known;
            known = found.plus(r);
            if chain.is_exact() || !is_better {
                break;
            }
        }
        known
    }

    /// A closed form above [`Theorem::queries_held`]. By Markov's inequality gamma^(n K) is still larger than x
    /// after s steps with probability at most Q^-s / x; if it is not, N - s steps more with K <= kappa miss
    /// with probability at most exp(-(N - s) lambda eta |Omega_eps| / x), x >= eta |Omega_eps|. Let each be
    /// delta / 2, and choose the x for which N is least:
    ///
    /// T <= r + (ln(2 / (delta x)) + 1) / ln Q + 2, x = lambda eta |Omega_eps| / (ln Q ln(2/delta)),
    ///
    /// unless that x is below eta |Omega_eps|, which then takes its place.
    pub fn closed_form(&self) -> Queries {
        let setting = self.bounds.setting();
        let BoundSetting { eta, lambda, gamma, rho, dimension, ln_target, delta, .. } = *setting;
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
            Queries::Count(setting.training_size + steps as u64)
        } else {
            Queries::Log(logs::add(shrinking.ln(), ln_hitting))
        }
    }
}

fn steps_of(queries: Queries, r: u64) -> f64 {
    match queries {
        Queries::Count(count) => count.saturating_sub(r) as f64,
        large => large.ln().exp(),
    }
}
