//! How far points are from the border of the feasible ones: a margin, negative where a point is feasible, for a model
//! that tells how probable it is that other points are.
//!
//! A point with measured constraints has the greatest of them as its margin, each in units of its typical size. Others
//! only say whether they are feasible, and perhaps by how much they are not. Margins are compressed, since far from the
//! border their size does not matter.

use super::Told;

/// The margins of all samples.
pub(super) fn margins(samples: &[Told]) -> Vec<f64> {
    let count = samples.iter().map(|told| constraints(told).len()).max().unwrap_or(0);
    let units: Vec<f64> = (0..count)
        .map(|k| {
            let of = samples.iter().filter_map(|told| constraints(told).get(k).copied());
            typical(of)
        })
        .collect();
    let violation = typical(samples.iter().filter_map(|told| told.sample.rank.violation()));
    let margin = |told: &Told| {
        let rank = told.sample.rank;
        let scaled = constraints(told).iter().zip(&units).map(|(by, unit)| by / unit);
        match (scaled.reduce(f64::max), rank.violation()) {
            // Constraints that are met do not explain a failure.
            (Some(_), None) if rank.is_failure() => 1.0,
            (Some(margin), _) => margin,
            (None, Some(by)) => by / violation,
            (None, None) if rank.is_failure() => 1.0,
            (None, None) => -1.0,
        }
    };
    samples.iter().map(|told| compressed(margin(told))).collect()
}

/// The measured constraints of a sample, if there are any.
fn constraints(told: &Told) -> &[f64] {
    told.measured.as_ref().map_or(&[], |measured| &measured.constraints)
}

/// The median of the sizes of these numbers that are not 0; 1 if there is none.
fn typical(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut sizes: Vec<f64> = numbers.map(f64::abs).filter(|size| *size > 0.0).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    sizes.get(sizes.len() / 2).copied().unwrap_or(1.0)
}

/// Logarithmic far from 0 on both sides.
fn compressed(margin: f64) -> f64 {
    margin.signum() * margin.abs().min(f64::MAX).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Direction, Outcome};
    use crate::sample::Sample;

    fn told(outcome: &Outcome) -> Told {
        let sample = Sample { point: Box::new([0.0]), rank: outcome.rank(), key: 0 };
        Told { sample, region: 0, measured: outcome.to_measured(Direction::Minimize) }
    }

    #[test]
    fn margins_are_negative_where_points_are_feasible() {
        let outcomes = [
            Outcome::measured(1.0, [-2.0, -1e9]),
            Outcome::measured(1.0, [2.0, -1e9]),
            Outcome::measured(None, [-2.0, 1e9]),
            Outcome::measured(None, [-2.0, -1e9]),
            Outcome::from(3.0),
            Outcome::infeasible(0.5),
            Outcome::failed("no"),
            Outcome::measured(1.0, [f64::MAX, f64::MAX]),
        ];
        let samples: Vec<Told> = outcomes.iter().map(told).collect();
        let margins = margins(&samples);
        assert!(margins.iter().all(|margin| margin.is_finite()), "{margins:?}");
        for (outcome, margin) in outcomes.iter().zip(&margins) {
            assert_eq!(outcome.value().is_some(), *margin < 0.0, "{outcome:?} {margin}");
        }
        // Constraints of different sizes count the same.
        assert_eq!(margins[0], -std::f64::consts::LN_2);
        assert_eq!(margins[1], margins[2]);
    }
}
