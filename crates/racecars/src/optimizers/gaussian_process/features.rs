//! The coordinates of points as the model sees them: numeric ones scaled to [0, 1], then categories.
//!
//! Integers, grids and levels are numeric, each value at the middle of its share of the axis; a log scale
//! is one here, too. Unordered values and booleans are categories: only whether they are equal counts.
//! Where a condition makes a coordinate inactive, a number is in the middle of its axis, and a category is one
//! of its own, as near to one of the others as to another.

use crate::random::Random;
use crate::space::{Axis, Entry, Space};

/// The category of an inactive coordinate.
const INACTIVE: f64 = -1.0;

/// The order of the features, and the axis of each.
#[derive(Debug, Default)]
pub(super) struct Features {
    /// The coordinate of each feature: first the numeric ones.
    coordinates: Vec<usize>,
    axes: Vec<Axis>,
    numeric: usize,
    /// The space, if it has conditions or arrays that belong together, and the entry of each feature.
    bound: Option<(Space, Vec<usize>)>,
}

impl Features {
    pub(super) fn new(space: &Space) -> Self {
        let is_numeric = |i: &usize| !matches!(space.axis(*i), Axis::Unordered { .. });
        let (mut coordinates, categories): (Vec<usize>, Vec<usize>) =
            (0..space.dimension()).partition(is_numeric);
        let numeric = coordinates.len();
        coordinates.extend(categories);
        let axes = coordinates.iter().map(|&i| space.axis(i)).collect();
        let is_bound = |entry: &Entry| entry.condition().is_some() || entry.structure().is_some();
        let bound = space.entries().iter().any(is_bound).then(|| {
            let entries = space.entries().iter().enumerate();
            let of_coordinates: Vec<usize> =
                entries.flat_map(|(at, entry)| entry.range().map(move |_| at)).collect();
            (space.clone(), coordinates.iter().map(|&i| of_coordinates[i]).collect())
        });
        Features { coordinates, axes, numeric, bound }
    }

    /// The number of features.
    pub(super) fn len(&self) -> usize {
        self.axes.len()
    }

    /// The number of numeric features, which come first.
    pub(super) fn numeric(&self) -> usize {
        self.numeric
    }

    pub(super) fn axis(&self, feature: usize) -> Axis {
        self.axes[feature]
    }

    /// Writes the features of a point.
    pub(super) fn encode(&self, point: &[f64], features: &mut [f64]) {
        for ((feature, &i), &axis) in features.iter_mut().zip(&self.coordinates).zip(&self.axes) {
            *feature = position(axis, point[i]);
        }
        let Some((space, entries)) = &self.bound else { return };
        let active = space.active(point);
        for (j, &entry) in entries.iter().enumerate() {
            if !active[entry] {
                features[j] = if j < self.numeric { 0.5 } else { INACTIVE };
            }
        }
    }

    /// Whether each feature is that of an active coordinate, by the features of a point of the space; empty
    /// if all are.
    pub(super) fn active(&self, features: &[f64]) -> Vec<bool> {
        let Some((space, entries)) = &self.bound else { return Vec::new() };
        let mut point = vec![0.0; self.len()];
        self.decode(features, &mut point);
        let active = space.active(&point);
        entries.iter().map(|&entry| active[entry]).collect()
    }

    /// Makes the features those of a point that satisfies the structures and conditions of the space: see
    /// [`Space::activate`]. `anchor` are the features that they were made from.
    pub(super) fn activate(&self, features: &mut [f64], anchor: &[f64], random: &mut Random) {
        let Some((space, _)) = &self.bound else { return };
        let (mut point, mut other) = (vec![0.0; self.len()], vec![0.0; self.len()]);
        self.decode(features, &mut point);
        self.decode(anchor, &mut other);
        space.activate(&mut point, &other, random);
        self.encode(&point, features);
    }

    /// Writes the point of the features. Numeric features are rounded to the nearest value of their axis.
    pub(super) fn decode(&self, features: &[f64], point: &mut [f64]) {
        for ((&feature, &i), &axis) in features.iter().zip(&self.coordinates).zip(&self.axes) {
            point[i] = match axis {
                Axis::Unordered { last } => feature.clamp(0.0, last),
                // The default of an inactive coordinate, to the bit.
                axis if feature == 0.5 && self.bound.is_some() => axis.middle(),
                axis => axis.at(feature),
            };
        }
    }

    /// Rounds one feature to that of the nearest value.
    pub(super) fn snap(&self, feature: usize, at: f64) -> f64 {
        match self.axes[feature] {
            Axis::Ordered { .. } => position(self.axes[feature], self.axes[feature].at(at)),
            Axis::Continuous { .. } | Axis::Unordered { .. } => at,
        }
    }

    /// The interval from `low` to `high`, widened to the values next to `center` on an ordered axis.
    pub(super) fn within(&self, feature: usize, center: f64, low: f64, high: f64) -> (f64, f64) {
        if !matches!(self.axes[feature], Axis::Ordered { .. }) {
            return (low, high);
        }
        let next = |steps: f64| self.neighbour(feature, center, steps).unwrap_or(center);
        (low.min(next(-1.0)), high.max(next(1.0)))
    }

    /// The feature of the value so many steps from the one at `at`, on an ordered axis; `None` beyond its
    /// end.
    pub(super) fn neighbour(&self, feature: usize, at: f64, steps: f64) -> Option<f64> {
        let axis = self.axes[feature];
        let code = axis.at(at) + steps;
        axis.extent().contains(code).then(|| position(axis, code))
    }
}

/// The inverse of [`Axis::at`]; a category is itself.
fn position(axis: Axis, code: f64) -> f64 {
    let position = match axis {
        // Halving first keeps the widest ranges from overflowing.
        Axis::Continuous { low, high } if low < high => {
            (0.5 * code - 0.5 * low) / (0.5 * high - 0.5 * low)
        }
        Axis::Continuous { .. } => 0.5,
        Axis::Ordered { last, log_from: Some(from) } => {
            ((from + code) / (from - 0.5)).ln() / ((from + last + 0.5) / (from - 0.5)).ln()
        }
        Axis::Ordered { last, .. } => (code + 0.5) / (last + 1.0),
        Axis::Unordered { .. } => return code,
    };
    // The narrowest ranges round to nothing when halved.
    if position.is_nan() { 0.5 } else { position.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn points_survive_the_round_trip() {
        let space = Space::builder()
            .categorical("c", ["a", "b", "c"])
            .reals("x", 3, -3.0, 7.0)
            .log_real("r", 1e-6, 1e3)
            .integers("i", 2, -4, 90)
            .log_integer("l", 1, 4000)
            .boolean("b")
            .levels("one", [5])
            .build()
            .unwrap();
        let features = Features::new(&space);
        assert_eq!((features.len(), features.numeric()), (10, 8));
        let mut random = Random::new(1);
        let (mut point, mut again, mut encoded) = ([0.0; 10], [0.0; 10], [0.0; 10]);
        for _ in 0..2000 {
            space.draw(&mut random, &mut point);
            features.encode(&point, &mut encoded);
            assert!(encoded[..8].iter().all(|x| (0.0..=1.0).contains(x)));
            features.decode(&encoded, &mut again);
            space.check(&again).unwrap();
            for (i, (a, b)) in point.iter().zip(&again).enumerate() {
                let is_equal = if (1..5).contains(&i) { (a - b).abs() < 1e-12 } else { a == b };
                assert!(is_equal, "{i}: {a} {b}");
            }
        }
    }

    #[test]
    fn inactive_coordinates_have_features_of_their_own() {
        let space = Space::builder().categorical("a", ["x", "y"]);
        let space = space.real("r", 0.0, 3.0).when("a = x").integer("i", 0, 3).when("a = y");
        let space = space.categorical("c", ["p", "q"]).when("a = x").build().unwrap();
        let features = Features::new(&space);
        let mut encoded = [0.0; 4];
        let (left, right) = ([0.0, 2.25, 1.0, 1.0], [1.0, 1.5, 2.0, 0.0]);
        features.encode(&left, &mut encoded);
        assert_eq!(encoded, [0.75, 0.5, 0.0, 1.0]);
        assert_eq!(features.active(&encoded), [true, false, true, true]);
        let anchor = encoded;
        features.encode(&right, &mut encoded);
        assert_eq!(encoded, [0.5, 0.625, 1.0, INACTIVE]);
        let mut point = [9.0; 4];
        features.decode(&encoded, &mut point);
        assert_eq!(point, right);
        // Another branch: what becomes active is drawn, what becomes inactive is as above.
        let (mut random, mut drawn) = (Random::new(1), Vec::new());
        for _ in 0..20 {
            encoded = anchor;
            encoded[2] = 1.0;
            features.activate(&mut encoded, &anchor, &mut random);
            assert_eq!((encoded[0], encoded[2], encoded[3]), (0.5, 1.0, INACTIVE));
            drawn.push(encoded[1]);
        }
        assert!(drawn.iter().any(|x| *x != drawn[0]), "{drawn:?}");
    }

    #[test]
    fn features_of_orders_and_selections_are_mended() {
        let space = Space::builder().real("x", 0.0, 1.0).permutation("o", 3);
        let space = space.subset("s", 1..=2, ["p", "q", "r", "s"]).build().unwrap();
        let features = Features::new(&space);
        let (mut random, mut point) = (Random::new(1), vec![0.0; space.dimension()]);
        let (mut anchor, mut encoded) = (point.clone(), point.clone());
        for _ in 0..50 {
            space.draw(&mut random, &mut point);
            features.encode(&point, &mut anchor);
            for changed in 1..point.len() {
                encoded.copy_from_slice(&anchor);
                encoded[changed] = if encoded[changed] == 0.0 { 1.0 } else { 0.0 };
                features.activate(&mut encoded, &anchor, &mut random);
                features.decode(&encoded, &mut point);
                assert!(space.admits(&point), "{point:?}");
                assert_eq!(encoded[0], anchor[0]);
            }
        }
    }

    #[test]
    fn the_narrowest_and_widest_axes_have_finite_features() {
        let space = Space::builder()
            .real("wide", -8e307, 8e307)
            .real("least", 0.0, 5e-324)
            .log_real("same", 1e300, 1e300 + 1e285)
            .log_integer("log", 1, 1 << 53)
            .build()
            .unwrap();
        let features = Features::new(&space);
        let (mut random, mut point, mut encoded) = (Random::new(1), [0.0; 4], [0.0; 4]);
        for _ in 0..500 {
            space.draw(&mut random, &mut point);
            features.encode(&point, &mut encoded);
            assert!(encoded.iter().all(|x| (0.0..=1.0).contains(x)), "{encoded:?}");
        }
    }
}
