//! The initial interpolation points of a run: a centre and two points along each axis.
//!
//! As in BOBYQA (Powell 2009, section 2) the points are one radius to either side of the centre, or one and
//! two radii to the same side where the other one is out of bounds. They can all be pending at once. Random
//! points of the same cube stand in for those that are late or lost.

use crate::random::Random;
use serde::{Deserialize, Serialize};

/// The initial points of a run, in coordinates scaled to axes of length 1.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Design {
    center: Vec<f64>,
    pub(super) radius: f64,
    /// The first and the second point along each axis, relative to the centre.
    steps: Vec<(f64, f64)>,
    /// The number of points asked.
    asked: usize,
    /// The points told, one after the other.
    points: Vec<f64>,
    /// Their values; `None` if they are infeasible or failed.
    values: Vec<Option<f64>>,
}

impl Design {
    /// A design around a centre, whose value may be known.
    pub(super) fn new(
        center: Vec<f64>,
        value: Option<f64>,
        radius: f64,
        random: &mut Random,
    ) -> Self {
        let steps = center.iter().map(|&x| steps(x, radius, random)).collect();
        let (points, values) = (Vec::new(), Vec::new());
        let mut design = Design { center, radius, steps, asked: 0, points, values };
        if value.is_some() {
            design.asked = 1;
            design.points.extend_from_slice(&design.center);
            design.values.push(value);
        }
        design
    }

    /// The number of points in a complete design.
    pub(super) fn size(dimension: usize) -> usize {
        2 * dimension + 1
    }

    pub(super) fn center(&self) -> &[f64] {
        &self.center
    }

    /// Whether nothing but the centre's value is known, and nothing was asked.
    pub(super) fn is_fresh(&self) -> bool {
        self.asked == self.values.len() && self.asked <= 1
    }

    /// Writes the next point.
    pub(super) fn next(&mut self, random: &mut Random, point: &mut [f64]) {
        let n = self.center.len();
        point.copy_from_slice(&self.center);
        let (index, radius) = (self.asked, self.radius);
        self.asked += 1;
        if index == 0 {
            return;
        }
        if index >= Design::size(n) {
            for x in point {
                *x = (*x + random.between(-radius, radius)).clamp(0.0, 1.0);
            }
            return;
        }
        let i = (index - 1) % n;
        let (first, second) = self.steps[i];
        point[i] = (point[i] + if index <= n { first } else { second }).clamp(0.0, 1.0);
    }

    /// Adds a told point. Whether the design is complete.
    pub(super) fn add(&mut self, point: &[f64], value: Option<f64>) -> bool {
        self.points.extend_from_slice(point);
        self.values.push(value);
        self.values.len() >= Design::size(self.center.len())
    }

    /// The points and values told. Points without a value have the worst one of the others. `None` if none
    /// has a value.
    pub(super) fn finish(&mut self) -> Option<(Vec<f64>, Vec<f64>)> {
        let worst = self.values.iter().flatten().copied().reduce(f64::max)?;
        let values = self.values.iter().map(|value| value.unwrap_or(worst)).collect();
        Some((std::mem::take(&mut self.points), values))
    }

    /// Checks the invariants of a deserialized design.
    pub(super) fn is_sound(&self, dimension: usize) -> bool {
        let Design { center, radius, steps, asked, points, values } = self;
        let is_inside = |x: &f64| (0.0..=1.0).contains(x);
        center.len() == dimension
            && center.iter().all(is_inside)
            && (super::FINAL_RESOLUTION..=super::MAX_RADIUS).contains(radius)
            && steps.len() == dimension
            && steps.iter().all(|(first, second)| first.is_finite() && second.is_finite())
            && *asked < usize::MAX / 2
            && values.len() < Design::size(dimension)
            && points.len() == dimension * values.len()
            && points.iter().all(is_inside)
            && values.iter().flatten().all(|value| value.is_finite())
    }
}

/// Two steps from x along an axis from 0 to 1. They differ in direction and a little in length from one seed
/// to the next, so that a search can be repeated with another seed.
fn steps(x: f64, radius: f64, random: &mut Random) -> (f64, f64) {
    let radius = radius * random.between(0.9, 1.1);
    let step = if random.chance(0.5) { radius } else { -radius };
    let is_inside = |step: f64| (0.0..=1.0).contains(&(x + step));
    match (is_inside(step), is_inside(-step)) {
        (true, true) => (step, -step),
        (true, false) => (step, 2.0 * step),
        (false, _) => (-step, -2.0 * step),
    }
}
