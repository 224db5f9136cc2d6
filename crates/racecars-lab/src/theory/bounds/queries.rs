//! A number of queries, which may be too large for any integer.

use std::cmp::Ordering;
use std::fmt;

/// A number of queries.
///
/// ```
/// use racecars_lab::theory::Queries;
///
/// assert_eq!(Queries::Count(5000).to_string(), "5000");
/// assert_eq!(Queries::Log(230.26).to_string(), "1.0e100");
/// assert!(Queries::Count(5000) < Queries::Log(230.26) && Queries::Log(230.26) < Queries::Never);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Queries {
    /// An exact number.
    Count(u64),
    /// The natural logarithm of a number that is too large to be exact.
    Log(f64),
    /// No number of queries suffices.
    Never,
}

/// Up to here, integers are exact as `f64`.
pub(super) const MAX_EXACT: u64 = 1 << 53;

impl Queries {
    /// The natural logarithm.
    pub fn ln(self) -> f64 {
        match self {
            Queries::Count(count) => (count as f64).ln(),
            Queries::Log(ln) => ln,
            Queries::Never => f64::INFINITY,
        }
    }

    /// The decimal logarithm.
    pub fn log10(self) -> f64 {
        self.ln() / std::f64::consts::LN_10
    }

    /// A number given by its decimal logarithm, however large or small, in two digits: `1.5e-79`.
    pub fn power_of_ten(log10: f64) -> String {
        if !log10.is_finite() {
            return log10.exp().to_string();
        }
        let power = log10.floor();
        // Rounding may carry: 9.96 is 10, that is 1.0 of the next power.
        match (10f64.powf(log10 - power) * 10.0).round() as u64 {
            100.. => format!("1.0e{}", power + 1.0),
            digits => format!("{}.{}e{power}", digits / 10, digits % 10),
        }
    }

    /// The sum with a number.
    pub(super) fn plus(self, more: u64) -> Queries {
        match self {
            Queries::Count(count) => Queries::Count(count.saturating_add(more)),
            large => large,
        }
    }

    /// The least N >= 1 that is `enough`, which must be monotone in N. Its arguments are N and ln N; N is
    /// infinite if it is too large for an `f64`.
    pub(super) fn least(enough: impl Fn(f64, f64) -> bool) -> Queries {
        let is_enough = |count: u64| enough(count as f64, (count as f64).ln());
        if is_enough(MAX_EXACT) {
            let (mut low, mut high) = (0, MAX_EXACT);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if is_enough(middle) { high = middle } else { low = middle }
            }
            return Queries::Count(high);
        }
        let is_enough = |ln: f64| enough(ln.exp(), ln);
        let (mut low, mut high) = ((MAX_EXACT as f64).ln(), 1e18);
        if !is_enough(high) {
            return Queries::Never;
        }
        // Doubling first, since bisection alone would need many steps for the usual small results.
        while low * 2.0 < high && !is_enough(low * 2.0) {
            low *= 2.0;
        }
        high = high.min(low * 2.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if is_enough(middle) { high = middle } else { low = middle }
        }
        Queries::Log(high)
    }
}

impl PartialOrd for Queries {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Queries::Count(a), Queries::Count(b)) => a.partial_cmp(b),
            _ => self.ln().partial_cmp(&other.ln()),
        }
    }
}

impl fmt::Display for Queries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Queries::Count(count) if *count < 10_000_000 => write!(f, "{count}"),
            Queries::Never => f.write_str("never"),
            large => f.write_str(&Queries::power_of_ten(large.log10())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_number_that_is_enough_is_found_at_every_size() {
        assert_eq!(Queries::least(|_, _| true), Queries::Count(1));
        for wanted in [1u64, 2, 3, 1000, 123_456_789, 1 << 52] {
            assert_eq!(Queries::least(|n, _| n >= wanted as f64), Queries::Count(wanted));
        }
        for wanted in [40.0, 1000.0, 1e6, 1e15] {
            let found = Queries::least(|_, ln| ln >= wanted).ln();
            assert!((found / wanted - 1.0).abs() < 1e-12, "{found}");
        }
        assert_eq!(Queries::least(|_, _| false), Queries::Never);
    }

    #[test]
    fn large_numbers_have_two_digits_and_a_power() {
        let shown = |power: f64| Queries::Log(power * std::f64::consts::LN_10).to_string();
        assert_eq!(shown(100.0 + 1e-9), "1.0e100");
        assert_eq!(shown(79.9999), "1.0e80");
        assert_eq!(shown(78.3), "2.0e78");
        assert_eq!(Queries::Count(123_456_789_000).to_string(), "1.2e11");
        assert_eq!(Queries::Never.to_string(), "never");
        assert_eq!(Queries::power_of_ten(-78.8), "1.6e-79");
        assert_eq!(Queries::power_of_ten(0.0), "1.0e0");
    }
}
