//! Shared by the tests: an objective for any space, and random spaces for property tests.
#![allow(dead_code, clippy::unwrap_used)]

pub(crate) mod strategies;

use racecars::{Axis, Space};

/// A quadratic bowl over any space. Each axis has length 1 and its optimum at 1/3; on an unordered axis,
/// index 1 is optimal.
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

/// The bits of a point, for exact comparisons.
pub(crate) fn bits(point: &[f64]) -> Vec<u64> {
    point.iter().map(|x| x.to_bits()).collect()
}
