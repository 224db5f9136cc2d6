//! The quantities that the bounds are stated in.

use crate::theory::TheoryError;

/// The quantities that Theorems 2 and 3 are stated in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundSetting {
    /// eta: the share of the target that every hypothesis holds at least, 0 to 1.
    pub eta: f64,
    /// p: the greatest measure of a hypothesis, relative to the space. Theorem 3 does not use it, which
    /// means 1.
    pub p: f64,
    /// lambda: the probability of a draw from the hypothesis rather than from the whole space.
    pub lambda: f64,
    /// gamma: each shrink multiplies the region's width, in every coordinate, by this.
    pub gamma: f64,
    /// rho: the probability of a shrink at each step.
    pub rho: f64,
    /// n: the number of coordinates.
    pub dimension: usize,
    /// r: the number of initial uniform draws.
    pub training_size: u64,
    /// ln |Omega_eps|: the logarithm of the target's measure, relative to the space.
    pub ln_target: f64,
    /// delta: the allowed probability of failure.
    pub delta: f64,
}

impl Default for BoundSetting {
    /// The paper's experiment at n = 50 (gamma = 0.9, rho = 0.01, lambda = 0.99, r = 22), for finding a
    /// value of 1 of Sphere on [-10, 10]^50 in 19 of 20 runs, with hypotheses that hold a tenth of the
    /// target.
    fn default() -> Self {
        BoundSetting {
            eta: 0.1,
            p: 1.0,
            lambda: 0.99,
            gamma: 0.9,
            rho: 0.01,
            dimension: 50,
            training_size: 22,
            ln_target: ln_ball(50, 1.0 / 20.0),
            delta: 0.05,
        }
    }
}

impl BoundSetting {
    /// Checks that every quantity is within its range.
    pub fn check(&self) -> Result<(), TheoryError> {
        let share = 0.0..=1.0;
        let unit = [("eta", self.eta), ("lambda", self.lambda), ("rho", self.rho)];
        if let Some((name, value)) = unit.into_iter().find(|(_, value)| !share.contains(value)) {
            return Err(TheoryError::Setting(format!("{name} = {value} is not from 0 to 1")));
        }
        let open = [("gamma", self.gamma), ("delta", self.delta)];
        if let Some((name, value)) = open.into_iter().find(|&(_, x)| !(x > 0.0 && x < 1.0)) {
            return Err(TheoryError::Setting(format!("{name} = {value} is not between 0 and 1")));
        }
        if !(self.p > 0.0 && self.p <= 1.0) {
            let p = self.p;
            return Err(TheoryError::Setting(format!("p = {p} is not above 0 and at most 1")));
        }
        if self.dimension == 0 {
            return Err(TheoryError::Setting("the dimension is 0, not at least 1".to_string()));
        }
        if !(self.ln_target <= 0.0 && self.ln_target.is_finite()) {
            return Err(TheoryError::Setting(format!(
                "the target's measure, {:e}, is not above 0 and at most 1",
                self.ln_target.exp()
            )));
        }
        if self.eta.ln() + self.ln_target > self.p.ln() {
            return Err(TheoryError::Setting(format!(
                "p = {} is below eta times the target's measure, {:e}: a hypothesis that holds so \
                 much of the target is larger",
                self.p,
                self.eta * self.ln_target.exp()
            )));
        }
        Ok(())
    }

    /// h(K): a lower bound on the probability that a step hits the target after K shrinks of the region,
    /// lambda min(1, eta |Omega_eps| / min(p, gamma^(n K))) + (1 - lambda) |Omega_eps|.
    pub(super) fn hits_after(&self, shrinks: f64) -> f64 {
        let BoundSetting { eta, p, lambda, gamma, dimension, ln_target, .. } = *self;
        let ln_measure = p.ln().min(shrinks * dimension as f64 * gamma.ln());
        let drawn = (eta.ln() + ln_target - ln_measure).min(0.0).exp();
        lambda * drawn + (1.0 - lambda) * ln_target.exp()
    }
}

/// The logarithm of the volume of an n-dimensional ball of this radius; in units of the domain's
/// width, that of the measure of Sphere's target of radius sqrt(eps).
pub fn ln_ball(dimension: usize, radius: f64) -> f64 {
    // V_n = V_(n-2) 2 pi / n, from V_0 = 1 and V_1 = 2.
    let start = if dimension.is_multiple_of(2) { 0.0 } else { 2f64.ln() };
    let first = if dimension.is_multiple_of(2) { 2 } else { 3 };
    let factors = (first..=dimension).step_by(2).map(|n| (std::f64::consts::TAU / n as f64).ln());
    start + factors.sum::<f64>() + dimension as f64 * radius.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    #[test]
    fn balls_have_their_volume() {
        let volumes = [2.0, PI, 4.0 * PI / 3.0, PI * PI / 2.0, 8.0 * PI * PI / 15.0];
        for (n, volume) in volumes.into_iter().enumerate() {
            let n = n + 1;
            assert!((ln_ball(n, 1.0) - volume.ln()).abs() < 1e-12, "n={n}");
            assert!((ln_ball(n, 0.5) - (volume * 0.5f64.powi(n as i32)).ln()).abs() < 1e-12);
        }
    }

    #[test]
    fn errors_name_the_quantity_out_of_range() {
        type Change = fn(&mut BoundSetting);
        let cases: [(Change, &str); 9] = [
            (|s| s.eta = 1.5, "eta = 1.5 is not from 0 to 1"),
            (|s| s.lambda = f64::NAN, "lambda = NaN"),
            (|s| s.rho = -0.1, "rho = -0.1"),
            (|s| s.gamma = 1.0, "gamma = 1 is not between"),
            (|s| s.delta = 0.0, "delta = 0 is not between"),
            (|s| s.p = 0.0, "p = 0 is not above 0"),
            (|s| s.dimension = 0, "dimension"),
            (|s| s.ln_target = 0.5, "measure"),
            (|s| (s.ln_target, s.p, s.eta) = (0.0, 0.1, 0.5), "below eta"),
        ];
        BoundSetting::default().check().unwrap();
        for (change, part) in cases {
            let mut setting = BoundSetting::default();
            change(&mut setting);
            let error = setting.check().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
