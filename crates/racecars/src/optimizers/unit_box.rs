//! Encoded points scaled to axes of length 1, for algorithms whose lengths are shares of each axis.

use crate::space::{Interval, Space};

/// Scales a point to axes of length 1.
pub(super) fn scale_down(space: &Space, point: &[f64], scaled: &mut [f64]) {
    for (range, axis) in space.axes() {
        let Interval { low, high } = axis.extent();
        for (x, scaled) in point[range.clone()].iter().zip(&mut scaled[range]) {
            let share = match high - low {
                // The logarithms of a narrow range may round to a single number.
                length if length <= 0.0 => 0.0,
                length if length.is_finite() => (x - low) / length,
                // The widest ranges overflow.
                _ => (0.5 * x - 0.5 * low) / (0.5 * high - 0.5 * low),
            };
            *scaled = share.clamp(0.0, 1.0);
        }
    }
}

/// The inverse of [`scale_down`], in place.
pub(super) fn scale_up(space: &Space, point: &mut [f64]) {
    for (range, axis) in space.axes() {
        point[range].iter_mut().for_each(|x| *x = axis.at(*x));
    }
}
