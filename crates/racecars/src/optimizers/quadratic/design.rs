//! The initial interpolation points of a run: a centre, and then one or two points along each axis.
//!
//! In one and two dimensions they are those of BOBYQA (Powell 2009, section 2): one radius to either side of
//! the centre, or one and two radii to the same side where the other one is out of bounds.
//!
//! Above, a departure: each point is a step from the best one known, as in COBYLA's initial simplex (Powell, "A
//! direct search optimization method that models the objective and constraint functions by linear interpolation",
//! 1994), so that the design is a descent by coordinates itself. If the first step along an axis is an improvement,
//! the second one goes on from there, else it goes to the other side. The three points of an axis are on a line
//! all the same, so that a separable quadratic is interpolated exactly. A budget that is too small for
//! that has one point per axis, for a linear model.
//!
//! All points can be pending at once. Random points of the same cube stand in for those that are late or lost.

use super::STAR_MAX_DIMENSION;
use crate::random::Random;
use serde::{Deserialize, Serialize};

/// The initial points of a run, in coordinates scaled to axes of length 1.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Design {
    center: Vec<f64>,
    pub(super) radius: f64,
    /// The first and the second point along each axis, relative to the centre.
    steps: Vec<(f64, f64)>,
    /// The number of points in a complete design.
    size: usize,
    /// The number of points asked.
    asked: usize,
    /// Where the latest first step along an axis began.
    begin: f64,
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
        size: usize,
        random: &mut Random,
    ) -> Self {
        let steps = center.iter().map(|&x| steps(x, radius, random)).collect();
        let (points, values) = (Vec::new(), Vec::new());
        let mut design =
            Design { center, radius, steps, size, asked: 0, begin: 0.0, points, values };
        if value.is_some() {
            design.asked = 1;
            design.points.extend_from_slice(&design.center);
            design.values.push(value);
        }
        design
    }

    pub(super) fn center(&self) -> &[f64] {
        &self.center
    }

    /// Whether nothing but the centre's value is known, and nothing was asked.
    pub(super) fn is_fresh(&self) -> bool {
        self.asked == self.values.len() && self.asked <= 1
    }

    /// The best point told, or the centre.
    fn base(&self) -> &[f64] {
        let values = self.values.iter().zip(self.points.chunks_exact(self.center.len()));
        let told = values.filter_map(|(value, point)| value.map(|value| (value, point)));
        told.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(&self.center, |(_, point)| point)
    }

    /// Writes the next point.
    pub(super) fn next(&mut self, random: &mut Random, point: &mut [f64]) {
        let n = self.center.len();
        let (index, radius) = (self.asked, self.radius);
        self.asked += 1;
        let is_star = n <= STAR_MAX_DIMENSION;
        point.copy_from_slice(if is_star { &self.center } else { self.base() });
        if index == 0 {
            point.copy_from_slice(&self.center);
            return;
        }
        if index >= self.size {
            for x in point {
                *x = (*x + random.between(-radius, radius)).clamp(0.0, 1.0);
            }
            return;
        }
        // One step along each axis, or two.
        let (i, is_second) = match self.size <= n + 1 {
            true => (index - 1, false),
            false => ((index - 1) / 2, index % 2 == 0),
        };
        let (first, second) = self.steps[i];
        let x = point[i];
        if !is_second {
            self.begin = x;
        }
        point[i] = match is_second {
            false => x + first,
            // The first step is no improvement, or is not known yet.
            true if x == self.begin => x + second,
            true if (0.0..=1.0).contains(&(x + first)) => x + first,
            true => x - 0.5 * first,
        };
        point[i] = point[i].clamp(0.0, 1.0);
    }

    /// Adds a told point. Whether the design is complete.
    pub(super) fn add(&mut self, point: &[f64], value: Option<f64>) -> bool {
        self.points.extend_from_slice(point);
        self.values.push(value);
        self.values.len() >= self.size
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
        let Design { center, radius, steps, size, asked, begin, points, values } = self;
        let is_inside = |x: &f64| (0.0..=1.0).contains(x);
        center.len() == dimension
            && center.iter().all(is_inside)
            && (super::FINAL_RESOLUTION..=super::MAX_RADIUS).contains(radius)
            && steps.len() == dimension
            && steps.iter().all(|(first, second)| first.is_finite() && second.is_finite())
            && *asked < usize::MAX / 2
            && is_inside(begin)
            && (1..=2 * dimension + 1).contains(size)
            && values.len() < *size
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
