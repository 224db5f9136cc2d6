//! Which eta and kappa are possible for Sphere's target, a ball in a cube.
//!
//! After K shrinks the region is a cube of side gamma^K (in units of the domain's width), less where it is
//! clipped. Whatever its centre, it holds at most the share of the ball that the centred cube holds (both are
//! convex and symmetric: Anderson's inequality), so eta cannot be above that share at K = kappa. Before the
//! first hit its centre is not in the ball, and then at most half of it lies in the ball, since a plane
//! separates them: eta |Omega_eps| <= gamma^(n kappa) / 2.
//!
//! The share of the cube [-a, a]^n that lies in the ball of radius R is Pr(U_1² + .. + U_n² <= b), b = (R/a)²,
//! with U_i uniform on [0, 1]. That is computed from M(t) = E exp(-t U²) by the inversion
//! Pr = (1 / 2 pi i) ∫ exp(t b) M(t)^n / t dt, along the vertical line through the saddle point of the
//! integrand, where it falls off fast and all digits are kept even where Pr is far below any floating-point
//! number.

use super::setting::{BoundSetting, ln_ball};
use super::{Bounds, Theorem, TheoryError};
use std::f64::consts::PI;

/// The largest |t| for which M(t) is computed by quadrature; above, by its asymptotic series.
const QUADRATURE: f64 = 30.0;
/// Panels of the quadrature on [0, 1], of five nodes each.
const PANELS: usize = 12;
/// Where the search for a kappa ends.
const MAX_KAPPA: u64 = 10_000;
/// Relative size of the integrand at which the integral ends.
const NEGLIGIBLE: f64 = 1e-9;
/// The maximum number of steps of the integral, which small dimensions come near.
const MAX_STEPS: usize = 200_000;

/// The logarithm of the share of the ball around the centre of a cube that the cube holds; `half_side` is in
/// units of the ball's radius.
pub fn ln_share_of_ball(dimension: usize, half_side: f64) -> f64 {
    if half_side >= 1.0 {
        return 0.0;
    }
    let ln_cube = dimension as f64 * (2.0 * half_side).ln();
    (ln_share_of_cube(dimension, half_side.powi(-2)) + ln_cube - ln_ball(dimension, 1.0)).min(0.0)
}

/// The logarithm of the largest eta that geometry does not exclude at kappa shrinks, for a ball of this radius in
/// units of the domain's width.
pub fn ln_eta(setting: &BoundSetting, radius: f64, kappa: u64) -> f64 {
    let BoundSetting { gamma, dimension, ln_target, .. } = *setting;
    let ln_side = kappa as f64 * gamma.ln();
    let ln_share = ln_share_of_ball(dimension, 0.5 * ln_side.exp() / radius);
    match kappa {
        // The whole space is not around a point.
        0 => ln_share,
        _ => ln_share.min(dimension as f64 * ln_side - 2f64.ln() - ln_target),
    }
}

/// The logarithm of the largest eta that geometry does not exclude for a region of twice the measure
/// eta |Omega_eps|, the least that a plane allows: that of the centred cube of which half lies in the ball.
pub fn ln_eta_of_half(dimension: usize) -> f64 {
    let n = dimension as f64;
    let is_at_most_half = |ln_a: f64| {
        let ln_share = ln_share_of_ball(dimension, ln_a.exp());
        ln_share + ln_ball(dimension, 1.0) - n * (2f64.ln() + ln_a) <= -(2f64.ln())
    };
    // The half side in units of the radius: between that of a cube within the ball and twice that of one around it.
    let (mut low, mut high) = (-0.5 * n.ln(), 2f64.ln());
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if is_at_most_half(middle) { high = middle } else { low = middle }
    }
    ln_share_of_ball(dimension, high.exp())
}

/// The greatest kappa at which geometry does not exclude the setting's eta; `None` if it does so at once, or never.
pub fn kappa(setting: &BoundSetting, radius: f64) -> Option<u64> {
    let allows = |kappa: u64| ln_eta(setting, radius, kappa) >= setting.eta.ln();
    let ln_shrink = setting.dimension as f64 * setting.gamma.ln();
    let most = ((setting.eta.ln() + setting.ln_target) / ln_shrink).floor();
    // eta = 0 is held by anything, so that no kappa is the greatest.
    if !most.is_finite() || !allows(0) {
        return None;
    }
    let (mut low, mut high) = (0, (most as u64).saturating_add(1));
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if allows(middle) { low = middle } else { high = middle }
    }
    Some(low)
}

/// The least kappa, with the largest eta that geometry does not exclude there, for which the shrinks run out before
/// a hit with probability at most `limit` ([`Theorem::exhausted`]); `None` if there is none.
pub fn least_kappa(
    setting: &BoundSetting,
    radius: f64,
    limit: f64,
) -> Result<Option<(f64, Theorem)>, TheoryError> {
    for kappa in 0..MAX_KAPPA {
        let eta = ln_eta(setting, radius, kappa).exp();
        if eta < f64::MIN_POSITIVE {
            break;
        }
        let theorem = Bounds::new(BoundSetting { eta, ..*setting })?.theorem(Some(kappa))?;
        if theorem.exhausted() <= limit {
            return Ok(Some((eta, theorem)));
        }
    }
    Ok(None)
}

/// ln Pr(U_1² + .. + U_n² <= b).
fn ln_share_of_cube(dimension: usize, b: f64) -> f64 {
    let n = dimension as f64;
    if b >= n {
        return 0.0;
    }
    // The exponent along the real line, t b + n ln M(t) - ln t, is least at the saddle point; golden section
    // in ln t.
    let exponent = |ln_t: f64| {
        let t = ln_t.exp();
        t * b + n * mean(Complex { re: t, im: 0.0 }).re.ln() - ln_t
    };
    let (mut low, mut high) = (-10.0, 16.0);
    for _ in 0..100 {
        let (left, right) = (low + 0.382 * (high - low), low + 0.618 * (high - low));
        if exponent(left) < exponent(right) { high = right } else { low = left }
    }
    let ln_saddle = 0.5 * (low + high);
    let saddle = ln_saddle.exp();
    let ln_scale = exponent(ln_saddle) + ln_saddle;
    let at_saddle = mean(Complex { re: saddle, im: 0.0 }).re;
    // The trapezoidal rule makes the distribution periodic; the next copy is damped by exp(-t period).
    let period = n.max((30.0 - ln_scale.min(0.0)) / saddle);
    let step = 2.0 * PI / (b + period);
    let mut sum = 0.5 / saddle;
    for i in 1..MAX_STEPS {
        let y = i as f64 * step;
        let t = Complex { re: saddle, im: y };
        let value = mean(t).scaled(1.0 / at_saddle).power(n).times(t.inverse());
        sum += value.times(Complex { re: (y * b).cos(), im: (y * b).sin() }).re;
        if i > 20 && value.size() * b < NEGLIGIBLE * sum {
            break;
        }
    }
    (ln_scale + (sum * step / PI).ln()).min(0.0)
}

/// M(t) = ∫ exp(-t u²) du over [0, 1], for Re t > 0.
fn mean(t: Complex) -> Complex {
    // The positive nodes of the five-point rule on [-1, 1], and their weights.
    const NODES: [(f64, f64); 3] = [
        (0.0, 0.568_888_888_888_888_9),
        (0.538_469_310_105_683_1, 0.478_628_670_499_366_47),
        (0.906_179_845_938_664, 0.236_926_885_056_189_1),
    ];
    if t.size() > QUADRATURE {
        // sqrt(pi / t) / 2 - exp(-t) / (2 t) (1 - 1 / (2 t) + 1 * 3 / (2 t)² - ..).
        let half = t.scaled(2.0).inverse();
        let (mut term, mut series) = (Complex::ONE, Complex::ONE);
        for k in 1..20 {
            term = term.times(half).scaled(-f64::from(2 * k - 1));
            series = series.plus(term);
        }
        let tail = t.scaled(-1.0).exp().times(half).times(series).scaled(-1.0);
        return t.inverse().scaled(PI).sqrt().scaled(0.5).plus(tail);
    }
    let mut sum = Complex { re: 0.0, im: 0.0 };
    let mut add = |u: f64, weight: f64| {
        sum = sum.plus(t.scaled(-u * u).exp().scaled(weight / (2 * PANELS) as f64));
    };
    for panel in 0..PANELS {
        let at = |x: f64| (panel as f64 + 0.5 + 0.5 * x) / PANELS as f64;
        for (node, weight) in NODES {
            add(at(node), weight);
            if node > 0.0 {
                add(at(-node), weight);
            }
        }
    }
    sum
}

/// The few operations on complex numbers that the inversion needs.
#[derive(Debug, Clone, Copy)]
struct Complex {
    re: f64,
    im: f64,
}

impl Complex {
    const ONE: Complex = Complex { re: 1.0, im: 0.0 };

    fn plus(self, other: Complex) -> Complex {
        Complex { re: self.re + other.re, im: self.im + other.im }
    }

    fn times(self, other: Complex) -> Complex {
        let re = self.re * other.re - self.im * other.im;
        Complex { re, im: self.re * other.im + self.im * other.re }
    }

    fn scaled(self, factor: f64) -> Complex {
        Complex { re: self.re * factor, im: self.im * factor }
    }

    fn size(self) -> f64 {
        self.re.hypot(self.im)
    }

    fn inverse(self) -> Complex {
        let square = self.re * self.re + self.im * self.im;
        Complex { re: self.re / square, im: -self.im / square }
    }

    fn polar(size: f64, angle: f64) -> Complex {
        Complex { re: size * angle.cos(), im: size * angle.sin() }
    }

    fn exp(self) -> Complex {
        Complex::polar(self.re.exp(), self.im)
    }

    fn power(self, n: f64) -> Complex {
        Complex::polar(self.size().powf(n), n * self.im.atan2(self.re))
    }

    fn sqrt(self) -> Complex {
        self.power(0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use racecars::random::Random;

    #[test]
    fn in_two_dimensions_the_share_is_a_circle_without_its_caps() {
        for a in [0.75f64, 0.8, 0.95] {
            let caps = 4.0 * (a.acos() - a * (1.0 - a * a).sqrt());
            let share = ln_share_of_ball(2, a).exp();
            assert!((share - (PI - caps) / PI).abs() < 1e-5, "{a}: {share}");
        }
        // The cube inside the ball: the quotient of the volumes.
        let inside = (50.0 * 0.2f64.ln() - ln_ball(50, 1.0)).exp();
        assert!((ln_share_of_ball(50, 0.1).exp() / inside - 1.0).abs() < 1e-9);
    }

    #[test]
    fn shares_are_those_of_points_drawn_from_the_ball() {
        let mut random = Random::new(3);
        for (n, a) in [(3, 0.7), (5, 0.5), (20, 0.4), (50, 0.278)] {
            let draws = 20_000;
            let inside = (0..draws).filter(|_| {
                let mut x = vec![0.0f64; n];
                random.fill_normal(&mut x);
                let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt();
                let radius = random.unit().powf(1.0 / n as f64);
                x.iter().all(|x| (x / norm * radius).abs() <= a)
            });
            let found = inside.count() as f64 / f64::from(draws);
            let share = ln_share_of_ball(n, a).exp();
            let error = (share * (1.0 - share) / f64::from(draws)).sqrt();
            assert!((found - share).abs() < 4.0 * error, "{n}: {found} {share}");
        }
    }

    #[test]
    fn geometry_allows_less_than_volume() {
        let setting = BoundSetting::default();
        let share = ln_share_of_ball(50, 10.0 * 0.9f64.powi(34)).exp();
        assert!((share - 0.0374).abs() < 1e-4, "{share}: not a tenth");
        assert_eq!(kappa(&setting, 1.0 / 20.0), Some(33));
        // Far inside the ball, half the cube is what a centre outside leaves.
        let half = 50.0 * 45.0 * 0.9f64.ln() - 2f64.ln() - setting.ln_target;
        assert!((ln_eta(&setting, 1.0 / 20.0, 45) - half).abs() < 1e-9);
        let (eta, theorem) = least_kappa(&setting, 1.0 / 20.0, 0.025).unwrap().unwrap();
        assert!(theorem.exhausted() <= 0.025 && (eta - 0.002).abs() < 1e-4, "{eta}");
        assert_eq!(theorem.kappa(), 35);
        assert_eq!(theorem.queries(), super::super::Queries::Count(4628), "docs/theory.md has it");
        let whole = BoundSetting { eta: 1.0, gamma: 0.95, dimension: 500, ..setting };
        let whole = BoundSetting { ln_target: ln_ball(500, 1.0 / 20.0), ..whole };
        let kappa = kappa(&whole, 1.0 / 20.0).unwrap();
        assert!((44..=70).contains(&kappa), "{kappa}: at least while the cube holds the ball");
        // A region that is still the whole space holds a target of more than half of it.
        let wide = BoundSetting { dimension: 1, ln_target: 0.9f64.ln(), ..setting };
        assert_eq!(ln_eta(&wide, 0.45, 0), 0.0);
    }

    #[test]
    fn of_the_region_with_the_least_measure_half_is_in_the_ball() {
        // Twice the ball as an interval, and a square around a circle.
        assert_eq!((ln_eta_of_half(1), ln_eta_of_half(2)), (0.0, 0.0));
        let ln_eta = ln_eta_of_half(50);
        let half_side = (ln_eta + 2f64.ln() + ln_ball(50, 1.0)) / 50.0 - 2f64.ln();
        assert!((ln_share_of_ball(50, half_side.exp()) - ln_eta).abs() < 1e-6, "{ln_eta}");
        // sum of U_i² is about n / 3: a cube of half side sqrt(3 / n) is half inside.
        assert!((half_side.exp() - (3.0 / 50f64).sqrt()).abs() < 0.01);
    }
}
