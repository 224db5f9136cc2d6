//! The corollary of docs/theory.md: if gamma and rho may be chosen for the theorem, the queries are logarithmic
//! in 1 / (eta delta |Omega_eps|), with eta assumed only up to kappa shrinks and no factor 1/delta.
//!
//! theta is the share of the last region, after kappa shrinks, that eta requires to lie in the target: 1 is what
//! volumes allow, and geometry allows at most 1/2 ([`geometry::ln_eta_of_half`]). With rho = 1/2 a factor of
//! [`Theorem::exhausted`] is (1 - h) / (1 + h) <= exp(-2 h). With gamma^n = exp(-1/m) and the greatest kappa with
//! gamma^(n kappa) >= eta |Omega_eps| / theta, h(kappa - i) >= lambda theta exp(-(i + 1) / m), so
//!
//! - the last m factors have h >= lambda theta / e, and X <= exp(-2 m lambda theta / e) <= delta / 2 if
//!   m >= e ln(2/delta) / (2 lambda theta) and kappa >= m: [`Corollary::m`];
//! - all together have a sum of h of at least lambda theta (m - 1/2) (1 - e eta |Omega_eps| / theta), and
//!   X <= delta / 2 if m >= 1/2 + ln(2/delta) / (2 lambda (theta - e eta |Omega_eps|)): [`Corollary::smaller_m`].
//!
//! And Phi(N) <= Pr(K_N <= kappa) <= Q^-N theta / (eta |Omega_eps|), by Markov's inequality for gamma^(n K_N),
//! which is at most delta / 2 for N >= ln(2 theta / (eta delta |Omega_eps|)) / ln Q, where
//! ln Q >= 1 / (2 (m + 1)). So
//!
//! T <= r + 2 (m + 1) ln(2 theta / (eta delta |Omega_eps|)) + 1.

use super::setting::BoundSetting;
use super::{Bounds, Queries, Theorem, TheoryError, geometry};
use std::f64::consts::E;

/// The corollary: the theorem with rho = 1/2 and gamma = exp(-1 / (m n)).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Corollary {
    setting: BoundSetting,
    m: u64,
    theta: f64,
    theorem: Theorem,
}

impl Corollary {
    /// The corollary with this m and theta; gamma and rho of the setting do not matter.
    pub fn new(setting: BoundSetting, m: u64, theta: f64) -> Result<Corollary, TheoryError> {
        setting.check()?;
        if setting.lambda * setting.eta == 0.0 {
            let problem = "eta and lambda must be positive: the corollary counts on hypotheses";
            return Err(TheoryError::Setting(problem.to_string()));
        }
        let gamma = (-1.0 / (m as f64 * setting.dimension as f64)).exp();
        if gamma == 1.0 {
            return Err(TheoryError::Setting(format!(
                "m = {m} is too large: gamma = exp(-1 / (m n)) would be 1"
            )));
        }
        let setting = BoundSetting { gamma, rho: 0.5, ..setting };
        let bounds = Bounds::new(setting)?;
        let kappa = bounds.kappa_of_share(theta);
        if kappa < m {
            return Err(TheoryError::Setting(format!(
                "kappa = {kappa} is below m = {m}: eta times the target's measure is too large for the \
                 corollary"
            )));
        }
        Ok(Corollary { setting, m, theta, theorem: bounds.theorem(Some(kappa))? })
    }

    /// The m for which the last m factors suffice: the least integer that is at least
    /// e ln(2/delta) / (2 lambda theta).
    pub fn m(setting: &BoundSetting, theta: f64) -> u64 {
        (E / (2.0 * setting.lambda * theta) * (2.0 / setting.delta).ln()).ceil() as u64
    }

    /// The m for which all factors together suffice: the least integer that is at least
    /// 1/2 + ln(2/delta) / (2 lambda (theta - e eta |Omega_eps|)).
    pub fn smaller_m(setting: &BoundSetting, theta: f64) -> u64 {
        let room = theta - E * setting.eta * setting.ln_target.exp();
        (0.5 + (2.0 / setting.delta).ln() / (2.0 * setting.lambda * room.max(0.0))).ceil() as u64
    }

    /// The corollary for Sphere's target with theta = 1/2 and the largest eta that geometry does not exclude then;
    /// `None` if the target is too large for it, or eta smaller than any floating-point number.
    pub fn within_geometry(setting: &BoundSetting) -> Option<Corollary> {
        let eta = geometry::ln_eta_of_half(setting.dimension).exp();
        let setting = BoundSetting { eta, ..*setting };
        Corollary::new(setting, Corollary::smaller_m(&setting, 0.5), 0.5).ok()
    }

    /// gamma = exp(-1 / (m n)).
    pub fn gamma(&self) -> f64 {
        self.setting.gamma
    }

    /// The eta that is assumed.
    pub fn eta(&self) -> f64 {
        self.setting.eta
    }

    /// The number of shrinks after which the region has 1/e of its measure.
    pub fn shrinks_per_e(&self) -> u64 {
        self.m
    }

    /// theta: the share of the last region that eta requires to lie in the target.
    pub fn theta(&self) -> f64 {
        self.theta
    }

    /// The theorem with this gamma and rho.
    pub fn theorem(&self) -> &Theorem {
        &self.theorem
    }

    /// The closed form, r + 2 (m + 1) ln(2 theta / (eta delta |Omega_eps|)), rounded up.
    pub fn closed_form(&self) -> Queries {
        let BoundSetting { training_size, .. } = self.setting;
        Queries::Count(
            training_size + (2.0 * (self.m as f64 + 1.0) * self.ln_need(2.0)).ceil() as u64,
        )
    }

    /// A weaker closed form, r + 2 (m + 1) ln(4 theta / (eta delta |Omega_eps|)) + ln(4/delta) / lambda + 2,
    /// rounded down.
    pub fn weaker_form(&self) -> Queries {
        let BoundSetting { training_size, lambda, delta, .. } = self.setting;
        let shrinking = 2.0 * (self.m as f64 + 1.0) * self.ln_need(4.0);
        Queries::Count(training_size + (shrinking + (4.0 / delta).ln() / lambda + 2.0) as u64)
    }

    /// The least T with Phi <= delta / 2, which with X <= delta / 2 suffices.
    pub fn queries_by_halves(&self) -> Result<Queries, TheoryError> {
        let half = BoundSetting { delta: 0.5 * self.setting.delta, ..self.setting };
        Ok(Bounds::new(half)?.theorem(Some(self.theorem.kappa()))?.queries_held())
    }

    /// ln(factor theta / (eta delta |Omega_eps|)).
    fn ln_need(&self, factor: f64) -> f64 {
        let BoundSetting { eta, delta, ln_target, .. } = self.setting;
        (factor * self.theta).ln() - eta.ln() - delta.ln() - ln_target
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
    use crate::theory::bounds::chain::MAX_EXACT_WORK;
    use crate::theory::bounds::ln_ball;
    use proptest::prelude::*;

    #[test]
    fn the_papers_example_at_fifty_dimensions() {
        let setting = BoundSetting::default();
        let corollary = Corollary::new(setting, Corollary::m(&setting, 1.0), 1.0).unwrap();
        assert_eq!((corollary.shrinks_per_e(), corollary.theorem().kappa()), (6, 1088));
        assert_eq!(corollary.weaker_form(), Queries::Count(2630));
        assert_eq!(corollary.queries_by_halves().unwrap(), Queries::Count(2259));
        assert!(corollary.theorem().queries() < Queries::Count(2259));
        assert!(corollary.closed_form() < Queries::Count(2630));
    }

    #[test]
    fn geometry_does_not_exclude_what_it_chooses() {
        let setting = BoundSetting::default();
        let corollary = Corollary::within_geometry(&setting).unwrap();
        let (eta, kappa) = (corollary.eta(), corollary.theorem().kappa());
        let chosen = BoundSetting { gamma: corollary.gamma(), eta, ..setting };
        assert!(geometry::ln_eta(&chosen, 1.0 / 20.0, kappa) >= eta.ln() - 1e-6, "{corollary:?}");
        assert!(corollary.theorem().exhausted() <= 0.025);
        assert_eq!(corollary.theorem().queries(), Queries::Count(1930), "docs/theory.md has it");
        // The kappa of theta = 1 is excluded.
        let whole = Corollary::new(setting, 6, 1.0).unwrap();
        let setting = BoundSetting { gamma: whole.gamma(), ..setting };
        assert!(geometry::kappa(&setting, 1.0 / 20.0) < Some(whole.theorem().kappa()));
        // eta would be about 1e-370.
        let large = BoundSetting { dimension: 5000, ln_target: ln_ball(5000, 0.05), ..setting };
        assert_eq!(Corollary::within_geometry(&large), None);
    }

    #[test]
    fn what_it_needs_is_said() {
        let setting = BoundSetting { eta: 0.9, ln_target: 0.9f64.ln(), ..BoundSetting::default() };
        let error = Corollary::new(setting, 6, 1.0).unwrap_err().to_string();
        assert!(error.contains("is below m = 6"), "{error}");
        let blind = BoundSetting { eta: 0.0, ..BoundSetting::default() };
        assert!(Corollary::new(blind, 6, 1.0).unwrap_err().to_string().contains("eta and lambda"));
        let wrong = BoundSetting { delta: f64::NAN, ..BoundSetting::default() };
        let error = Corollary::new(wrong, Corollary::m(&wrong, 1.0), 1.0).unwrap_err();
        assert!(error.to_string().contains("delta = NaN"), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn its_closed_form_holds(
            (eta, lambda) in (1e-6..1.0f64, 0.3..=1.0f64), n in 1usize..80, r in 0u64..40,
            ln_target in -60.0..-12.0f64, delta in 1e-3..0.5f64, theta in 0.1..=1.0f64,
        ) {
            let base = BoundSetting::default();
            let setting = BoundSetting {
                eta, lambda, dimension: n, training_size: r, ln_target, delta, ..base
            };
            for m in [Corollary::m(&setting, theta), Corollary::smaller_m(&setting, theta)] {
                let Ok(corollary) = Corollary::new(setting, m, theta) else { continue };
                let theorem = corollary.theorem();
                prop_assert!(theorem.exhausted() <= 0.5 * delta);
                prop_assert!(theorem.queries() <= corollary.closed_form());
                // Longer walks are taken in blocks, and give an upper bound on the least number.
                let halves = corollary.queries_by_halves().unwrap();
                let work = 2.0 * halves.ln().exp() * (theorem.kappa() as f64 + 2.0);
                prop_assert!(halves <= corollary.closed_form() || work > MAX_EXACT_WORK);
            }
        }
    }
}
