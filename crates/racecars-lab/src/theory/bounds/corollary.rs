//! The corollary of docs/theory.md: if gamma and rho may be chosen for the theorem, the queries are logarithmic
//! in 1 / (eta delta |Omega_eps|), with eta assumed only up to kappa shrinks and no factor 1/delta.
//!
//! With rho = 1/2 a factor of [`Theorem::exhausted`] is (1 - h) / (1 + h) <= exp(-2 h). With
//! gamma^n = exp(-1/m) and the greatest kappa, h(kappa - i) >= lambda exp(-(i + 1) / m), so
//!
//! - the last m factors have h >= lambda / e, and X <= exp(-2 m lambda / e) <= delta / 2 if
//!   m >= e ln(2/delta) / (2 lambda) and kappa >= m: [`Corollary::m`];
//! - all together have a sum of h of at least lambda (m - 1/2) (1 - e eta |Omega_eps|), and X <= delta / 2 if
//!   m >= 1/2 + ln(2/delta) / (2 lambda (1 - e eta |Omega_eps|)): [`Corollary::smaller_m`].
//!
//! And Phi(N) <= Pr(K_N <= kappa) <= Q^-N / (eta |Omega_eps|), by Markov's inequality for gamma^(n K_N), which is
//! at most delta / 2 for N >= ln(2 / (eta delta |Omega_eps|)) / ln Q, where ln Q >= 1 / (2 (m + 1)). So
//!
//! T <= r + 2 (m + 1) ln(2 / (eta delta |Omega_eps|)) + 1.

use super::setting::BoundSetting;
use super::{Bounds, Queries, Theorem, TheoryError};
use std::f64::consts::E;

/// The corollary: the theorem with rho = 1/2 and gamma = exp(-1 / (m n)).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Corollary {
    setting: BoundSetting,
    m: u64,
    theorem: Theorem,
}

impl Corollary {
    /// The corollary with this m; gamma and rho of the setting do not matter.
    pub fn new(setting: BoundSetting, m: u64) -> Result<Corollary, TheoryError> {
        let gamma = (-1.0 / (m as f64 * setting.dimension as f64)).exp();
        let setting = BoundSetting { gamma, rho: 0.5, ..setting };
        let theorem = Bounds::new(setting)?.theorem(None)?;
        if setting.lambda * setting.eta == 0.0 {
            let problem = "eta and lambda must be positive: the corollary counts on hypotheses";
            return Err(TheoryError::Setting(problem.to_string()));
        }
        if theorem.kappa() < m {
            return Err(TheoryError::Setting(format!(
                "kappa = {} is below m = {m}: eta times the target's measure is too large for the \
                 corollary",
                theorem.kappa()
            )));
        }
        Ok(Corollary { setting, m, theorem })
    }

    /// The m for which the last m factors suffice: the least integer that is at least
    /// e ln(2/delta) / (2 lambda).
    pub fn m(setting: &BoundSetting) -> u64 {
        (E / (2.0 * setting.lambda) * (2.0 / setting.delta).ln()).ceil() as u64
    }

    /// The m for which all factors together suffice: the least integer that is at least
    /// 1/2 + ln(2/delta) / (2 lambda (1 - e eta |Omega_eps|)).
    pub fn smaller_m(setting: &BoundSetting) -> u64 {
        let room = 1.0 - E * setting.eta * setting.ln_target.exp();
        (0.5 + (2.0 / setting.delta).ln() / (2.0 * setting.lambda * room.max(0.0))).ceil() as u64
    }

    /// gamma = exp(-1 / (m n)).
    pub fn gamma(&self) -> f64 {
        self.setting.gamma
    }

    /// The theorem with this gamma and rho.
    pub fn theorem(&self) -> &Theorem {
        &self.theorem
    }

    /// The closed form, r + 2 (m + 1) ln(2 / (eta delta |Omega_eps|)), rounded up.
    pub fn closed_form(&self) -> Queries {
        let BoundSetting { training_size, .. } = self.setting;
        Queries::Count(
            training_size + (2.0 * (self.m as f64 + 1.0) * self.ln_need(2.0)).ceil() as u64,
        )
    }

    /// A weaker closed form, which waits for the last hit after the region is small:
    /// r + 2 (m + 1) ln(4 / (eta delta |Omega_eps|)) + ln(4/delta) / lambda + 2, rounded down.
    pub fn waiting_form(&self) -> Queries {
        let BoundSetting { training_size, lambda, delta, .. } = self.setting;
        let shrinking = 2.0 * (self.m as f64 + 1.0) * self.ln_need(4.0);
        Queries::Count(training_size + (shrinking + (4.0 / delta).ln() / lambda + 2.0) as u64)
    }

    /// The least T with Phi <= delta / 2, which with X <= delta / 2 suffices.
    pub fn queries_by_halves(&self) -> Result<Queries, TheoryError> {
        let half = BoundSetting { delta: 0.5 * self.setting.delta, ..self.setting };
        Ok(Bounds::new(half)?.theorem(None)?.queries_held())
    }

    /// ln(factor / (eta delta |Omega_eps|)).
    fn ln_need(&self, factor: f64) -> f64 {
        let BoundSetting { eta, delta, ln_target, .. } = self.setting;
        factor.ln() - eta.ln() - delta.ln() - ln_target
    }
}

/// What the theorem gives if one shrink takes the region to the measure eta |Omega_eps|: gamma^n = that measure
/// and rho = 1/2. The number of queries is absurdly small, because eta is held fixed while gamma varies: no
/// region around the best of r uniform points holds that share.
pub fn one_shrink(setting: &BoundSetting) -> Result<Theorem, TheoryError> {
    let ln_gamma = (setting.eta.ln() + setting.ln_target) / setting.dimension as f64;
    Bounds::new(BoundSetting { gamma: ln_gamma.exp(), rho: 0.5, ..*setting })?.theorem(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_papers_example_at_fifty_dimensions() {
        let setting = BoundSetting::default();
        let corollary = Corollary::new(setting, Corollary::m(&setting)).unwrap();
        assert_eq!((Corollary::m(&setting), corollary.theorem().kappa()), (6, 1088));
        assert_eq!(corollary.waiting_form(), Queries::Count(2630));
        assert_eq!(corollary.queries_by_halves().unwrap(), Queries::Count(2259));
        assert!(corollary.theorem().queries() < Queries::Count(2259));
        assert!(corollary.closed_form() < Queries::Count(2630));
    }

    #[test]
    fn what_it_needs_is_said() {
        let setting = BoundSetting { eta: 0.9, ln_target: 0.9f64.ln(), ..BoundSetting::default() };
        let error = Corollary::new(setting, 6).unwrap_err().to_string();
        assert!(error.contains("is below m = 6"), "{error}");
        let blind = BoundSetting { eta: 0.0, ..BoundSetting::default() };
        assert!(Corollary::new(blind, 6).unwrap_err().to_string().contains("eta and lambda"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn its_closed_form_holds(
            (eta, lambda) in (1e-6..1.0f64, 0.3..=1.0f64), n in 1usize..80, r in 0u64..40,
            ln_target in -60.0..-12.0f64, delta in 1e-3..0.5f64,
        ) {
            let base = BoundSetting::default();
            let setting = BoundSetting {
                eta, lambda, dimension: n, training_size: r, ln_target, delta, ..base
            };
            for m in [Corollary::m(&setting), Corollary::smaller_m(&setting)] {
                let Ok(corollary) = Corollary::new(setting, m) else { continue };
                let theorem = corollary.theorem();
                prop_assert!(theorem.exhausted() <= 0.5 * delta);
                prop_assert!(theorem.queries() <= corollary.closed_form());
                prop_assert!(corollary.queries_by_halves().unwrap() <= corollary.closed_form());
            }
        }
    }
}
