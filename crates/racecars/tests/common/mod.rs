//! What the test files share: an objective for any space, and random spaces for property tests.
#![allow(dead_code, clippy::unwrap_used)]

pub(crate) mod strategies;

use racecars::{Axis, Space};

/// A bowl over any space: each coordinate measured in its own length, best at a third of it; only
/// index 1 of an unordered axis is right.
pub(crate) fn bowl(space: &Space, point: &[f64]) -> f64 {
    let term = |(index, &x): (usize, &f64)| match space.axis(index) {
        Axis::Unordered { .. } => f64::from(u8::from(x != 1.0)),
        axis => {
            let extent = axis.extent();
            let length = extent.high - extent.low;
            let share = if length > 0.0 { (x - extent.low) / length } else { 0.0 };
            (share - 1.0 / 3.0) * (share - 1.0 / 3.0)
        }
    };
    point.iter().enumerate().map(term).sum()
}

/// A point's exact bits.
pub(crate) fn bits(point: &[f64]) -> Vec<u64> {
    point.iter().map(|x| x.to_bits()).collect()
}
