//! Arithmetic with logarithms: measures of targets in hundreds of dimensions are far below the least
//! floating-point number.

/// The logarithm of the sum of two numbers given by theirs.
pub(super) fn add(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY || high == f64::INFINITY {
        return high;
    }
    high + (low - high).exp().ln_1p()
}

/// ln(e^x - 1) for x > 0.
fn expm1(x: f64) -> f64 {
    x + (-(-x).exp_m1()).ln()
}

/// The logarithm of q^(from+1) + ... + q^(from+terms), given ln q >= 0: a geometric sum.
pub(super) fn geometric(ln_q: f64, from: f64, terms: f64) -> f64 {
    if terms <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if ln_q == 0.0 {
        return terms.ln();
    }
    (from + 1.0) * ln_q + expm1(terms * ln_q) - expm1(ln_q)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_geometric_sum_is_the_sum_of_its_terms() {
        for q in [1.0, 1.0 + 1e-12, 1.001, 1.5, 20.0f64] {
            for (from, terms) in [(0, 1), (0, 30), (7, 12), (3, 0)] {
                let sum: f64 = (from + 1..=from + terms).map(|j| q.powi(j)).sum();
                let ln = geometric(q.ln(), f64::from(from), f64::from(terms));
                assert!((ln.exp() / sum.max(1e-300) - 1.0).abs() < 1e-9 || terms == 0, "{q}");
            }
        }
        assert_eq!(geometric(0.5, 0.0, 0.0), f64::NEG_INFINITY);
        assert!((geometric(1.0, 0.0, 5000.0) - 5000.0 - (1.0 - (-1.0f64).exp()).ln().abs()) < 1e-9);
    }

    #[test]
    fn sums_of_logarithms_neither_overflow_nor_lose_the_greater() {
        assert!((add(1000.0, 1000.0) - 1000.0 - 2f64.ln()).abs() < 1e-12);
        assert_eq!(add(f64::NEG_INFINITY, -3.0), -3.0);
        assert_eq!(add(f64::NEG_INFINITY, f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert_eq!(add(f64::INFINITY, 2.0), f64::INFINITY);
    }
}
