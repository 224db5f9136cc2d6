//! What descents on difference quotients share (quasi-Newton steps, sequential quadratic programming): points
//! beside the iterate, slopes, and candidates while all others are out. Axes have length 1.

use crate::random::Random;

/// Values closer than this share of them are equal.
pub(super) const ROUNDING: f64 = 1e-13;
/// The deviation of candidates that are asked while all others are out, as a fraction of each axis.
const SPARE_DEVIATION: f64 = 0.01;

/// The coordinate at a side of the difference quotient at x. The first side is towards the middle.
pub(super) fn beside(x: f64, length: f64, is_first: bool) -> f64 {
    let is_upward = (x <= 0.5) == is_first;
    (if is_upward { x + length } else { x - length }).clamp(0.0, 1.0)
}

/// The slope by the changes of the value and the steps to both sides, or to one of them; 0 if no value is known.
pub(super) fn slope(one: Option<(f64, f64)>, other: Option<(f64, f64)>) -> f64 {
    let slope = match (one, other) {
        // The slope of the parabola through three points, eq. (8.7) of Nocedal and Wright where the
        // steps are equal.
        (Some((f, a)), Some((g, b))) => (f / a * b - g / b * a) / (b - a),
        (Some((f, a)), None) | (None, Some((f, a))) => f / a,
        (None, None) => 0.0,
    };
    if slope.is_finite() { slope } else { 0.0 }
}

/// Moves a point a little: a candidate while all others are out.
pub(super) fn make_spare(point: &mut [f64], random: &mut Random) {
    for x in point {
        *x = (*x + SPARE_DEVIATION * random.normal()).clamp(0.0, 1.0);
    }
}
