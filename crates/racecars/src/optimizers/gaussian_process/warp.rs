//! The values that the model is fitted to: the objective's, linear near the best one and logarithmic
//! far above it, scaled to deviation 1.
//!
//! Objectives often span many orders of magnitude, of which a stationary model can describe only the
//! largest. How much to compress is chosen by the likelihood of the values themselves, that is with the
//! derivative of the transformation (Snelson et al., "Warped Gaussian processes", 2003).

use serde::{Deserialize, Serialize};

/// The knees to choose from. Infinity leaves values as they are.
pub(super) const KNEES: [f64; 5] = [f64::INFINITY, 3.0, 0.3, 0.03, 0.003];

/// Distances from the best value, in units of the median, are cut off here.
const MAX_DISTANCE: f64 = 1e12;

/// A monotone transformation of values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Warp {
    /// The best value.
    low: f64,
    /// Half of the distance from the best value to the median.
    half_scale: f64,
    /// The index in [`KNEES`] of the distance where the logarithm takes over.
    knee: u8,
    /// The deviation of the transformed values before they are scaled.
    unit: f64,
}

impl Warp {
    /// The transformation for these values, which are finite. Sorts them. `best` is the best value of a feasible
    /// point, if not the least of all.
    pub(super) fn new(values: &mut [f64], best: Option<f64>, knee: u8) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let low = best.or(values.first().copied()).unwrap_or(0.0);
        // Halving first keeps differences of the largest numbers from overflowing.
        let half_to = |x: Option<&f64>| x.map_or(0.0, |x| 0.5 * x - 0.5 * low);
        let median = half_to(values.get(values.len() / 2));
        let most = half_to(values.last());
        let half_scale = [median, most].into_iter().find(|x| *x > 0.0).unwrap_or(0.5);
        let mut warp = Warp { low, half_scale, knee, unit: 1.0 };
        warp.set_knee(knee, values);
        warp
    }

    pub(super) fn knee(&self) -> u8 {
        self.knee
    }

    /// Replaces the knee, and scales to deviation 1 again.
    pub(super) fn set_knee(&mut self, knee: u8, values: &[f64]) {
        (self.knee, self.unit) = (knee, 1.0);
        let count = values.len().max(1) as f64;
        let mean = values.iter().map(|x| self.apply(*x)).sum::<f64>() / count;
        let squares = values.iter().map(|x| (self.apply(*x) - mean).powi(2)).sum::<f64>();
        let deviation = (squares / count).sqrt();
        self.unit = if deviation > 1e-9 && deviation.is_finite() { deviation } else { 1.0 };
    }

    fn distance(&self, value: f64) -> f64 {
        let distance = (0.5 * value - 0.5 * self.low) / self.half_scale;
        distance.clamp(-MAX_DISTANCE, MAX_DISTANCE)
    }

    fn knee_at(&self) -> f64 {
        KNEES[usize::from(self.knee).min(KNEES.len() - 1)]
    }

    /// The transformed value.
    pub(super) fn apply(&self, value: f64) -> f64 {
        let (distance, knee) = (self.distance(value), self.knee_at());
        let warped = if distance <= 0.0 || knee.is_infinite() {
            distance
        } else {
            knee * (distance / knee).ln_1p()
        };
        warped / self.unit
    }

    /// The value that is transformed to this one.
    pub(super) fn invert(&self, warped: f64) -> f64 {
        let (warped, knee) = (warped * self.unit, self.knee_at());
        let distance = if warped <= 0.0 || knee.is_infinite() {
            warped
        } else {
            knee * (warped / knee).exp_m1()
        };
        let distance = distance.clamp(-MAX_DISTANCE, MAX_DISTANCE);
        (2.0 * (0.5 * self.low + self.half_scale * distance)).clamp(f64::MIN, f64::MAX)
    }

    /// The logarithm of the derivative of the transformation at a value, but for a constant that all
    /// knees share.
    pub(super) fn log_slope(&self, value: f64) -> f64 {
        let (distance, knee) = (self.distance(value), self.knee_at());
        let slope = if distance <= 0.0 { 0.0 } else { (distance / knee).ln_1p() };
        -slope - self.unit.ln()
    }

    /// Checks the invariants of a deserialized state.
    pub(super) fn is_sound(&self) -> bool {
        self.low.is_finite()
            && self.half_scale > 0.0
            && self.half_scale.is_finite()
            && usize::from(self.knee) < KNEES.len()
            && (1e-9..=MAX_DISTANCE).contains(&self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_transformed_in_order_and_to_deviation_1() {
        for knee in 0..KNEES.len() as u8 {
            let mut values: Vec<f64> = (0..50).map(|i| (0.4 * f64::from(i)).exp() - 7.0).collect();
            let warp = Warp::new(&mut values, None, knee);
            assert!(warp.is_sound());
            let warped: Vec<f64> = values.iter().map(|x| warp.apply(*x)).collect();
            assert!(warped.is_sorted_by(|a, b| a < b));
            for (value, warped) in values.iter().zip(&warped) {
                let back = warp.invert(*warped);
                assert!((back - value).abs() < 1e-9 * value.abs().max(1.0), "{value} {back}");
            }
            assert!(warp.apply(-8.0) < warped[0], "better values are still better");
            let mean = warped.iter().sum::<f64>() / 50.0;
            let variance = warped.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 50.0;
            assert!((variance - 1.0).abs() < 1e-9, "{variance}");
            let slope = (warp.apply(3.0 + 1e-6) - warp.apply(3.0)) / 1e-6;
            let expected = (warp.log_slope(3.0)).exp() / (2.0 * warp.half_scale);
            assert!((slope / expected - 1.0).abs() < 1e-3, "{slope} {expected}");
        }
    }

    #[test]
    fn extreme_values_stay_finite() {
        for values in [
            vec![],
            vec![3.0],
            vec![1.0, 1.0, 1.0],
            vec![f64::MIN, 0.0, f64::MAX],
            vec![0.0, 5e-324, 1e308],
            vec![-1e308, -1e308, -1e308, 5.0],
        ] {
            for knee in 0..KNEES.len() as u8 {
                let warp = Warp::new(&mut values.clone(), None, knee);
                assert!(warp.is_sound(), "{warp:?}");
                for value in [f64::MIN, -1.0, 0.0, 5e-324, f64::MAX] {
                    assert!(warp.apply(value).is_finite() && warp.log_slope(value).is_finite());
                }
            }
        }
    }
}
