//! The mapping between the unbounded coordinates of CMA-ES and the points of the space.
//!
//! Every axis has length 1. A coordinate v of the search maps to a coordinate of a point as follows:
//!
//! - *continuous*: by the smooth, periodic transformation that is the default of Hansen's `cma`
//!   (`BoundTransform`): the identity inside, a parabola within a margin of either bound, and mirrored
//!   beyond. So there is no penalty to balance against the unknown scale of the objective, the objective
//!   is smooth at an optimum on a bound, and every evaluated point is in the box.
//! - *ordered, and booleans* (as two ordered levels): the index in `0..=last` of the cell that contains
//!   v. Each cell has length 1 / count; on a log scale, cells of larger integers are shorter.
//!
//! A discrete coordinate would stop changing once its deviation is small compared with a cell. Two
//! changes keep it moving (Marty et al., "LB+IC-CMA-ES: two simple modifications of CMA-ES to handle
//! mixed-integer problems", 2024): its deviation is scaled up, outside of C, to a part of a cell
//! (`margins`), and selected candidates that have left the cell of the mean count as the middle of their
//! cell (`center`), so that the mean follows them.

use crate::space::{Axis, Interval, Space};

/// The width of the parabola on either side of a bound, as a fraction of the range.
const MARGIN: f64 = 1.0 / 32.0;

/// The distance between the two mirrors, at -MARGIN and 1 + MARGIN.
const MIRROR_DISTANCE: f64 = 1.0 + 2.0 * MARGIN;

/// Writes to `point` the point at coordinates `v(index)` of the search.
#[inline]
pub(super) fn decode(space: &Space, v: impl Fn(usize) -> f64, point: &mut [f64]) {
    for (range, axis) in space.axes() {
        let places = range.clone().zip(&mut point[range]);
        match axis {
            Axis::Continuous { low, high } => {
                let length = high - low;
                places.for_each(|(i, x)| *x = (low + length * bend(v(i))).clamp(low, high));
            }
            _ => places.for_each(|(i, x)| *x = axis.at(v(i))),
        }
    }
}

/// Writes to `v` coordinates of the search that map to `point`: of the mirror images the one nearest to
/// `mean`, and the middle of a cell.
pub(super) fn encode(space: &Space, point: &[f64], mean: &[f64], v: &mut [f64]) {
    for (range, axis) in space.axes() {
        let places = point[range.clone()].iter().zip(&mean[range.clone()]);
        for (v, (&x, &mean)) in v[range].iter_mut().zip(places) {
            *v = match axis {
                Axis::Continuous { low, high } => {
                    // The logarithms of a narrow range may round to a single number.
                    let share = if high > low { (x - low) / (high - low) } else { 0.5 };
                    mirrored(unbend(share), mean)
                }
                _ => middle(axis, x),
            };
        }
    }
}

/// The mirror image, on the side of the mean, of a coordinate in the box; and the other way round.
pub(super) fn mirrored(v: f64, mean: f64) -> f64 {
    if mean < -MARGIN {
        -2.0 * MARGIN - v
    } else if mean > 1.0 + MARGIN {
        2.0 * (1.0 + MARGIN) - v
    } else {
        v
    }
}

/// Confines the mean. A continuous coordinate is moved by whole periods to the period around the box, which
/// does not change the point. A discrete coordinate is clamped to `range_of_means`.
///
/// A mean beyond a mirror is left there. Clamping it at the mirror makes the search much slower if the
/// optimum is on a bound, since the path would record steps that the mean did not make.
pub(super) fn confine(space: &Space, mean: &mut [f64]) {
    for (range, axis) in space.axes() {
        match axis {
            Axis::Continuous { .. } => {
                const LOW: f64 = -MARGIN - 0.5 * MIRROR_DISTANCE;
                for v in &mut mean[range] {
                    if !(LOW..=LOW + 2.0 * MIRROR_DISTANCE).contains(v) {
                        *v = LOW + (*v - LOW).rem_euclid(2.0 * MIRROR_DISTANCE);
                    }
                }
            }
            _ => {
                let Interval { low, high } = range_of_means(axis);
                mean[range].iter_mut().for_each(|v| *v = v.clamp(low, high));
            }
        }
    }
}

/// Writes to `scale` the factor of each coordinate's deviation: 1 for continuous coordinates, and if
/// `deviation(index)` is at least `least` times the length of the cell of the mean.
pub(super) fn margins(
    space: &Space,
    mean: &[f64],
    deviation: impl Fn(usize) -> f64,
    least: f64,
    scale: &mut [f64],
) {
    for (range, axis) in space.axes() {
        for i in range {
            scale[i] = match axis.count() {
                None | Some(1) => 1.0,
                Some(_) => {
                    let Interval { low, high } = cell(axis, axis.at(mean[i]));
                    let least = least * (high - low);
                    (least / deviation(i).max(f64::MIN_POSITIVE)).clamp(1.0, f64::MAX)
                }
            };
        }
    }
}

/// Moves discrete coordinates of selected candidates that have left the cell of the mean to the middle of
/// their cell. What this adds to the sum over the candidates is taken back, as far as possible, by moving
/// those that are in the cell of the mean towards its middle, so that the mean does not drift. The points of
/// the candidates stay as they are. `unit(index)` is the length of a step of 1; `steps` has n numbers per
/// candidate.
pub(super) fn center(
    space: &Space,
    mean: &[f64],
    unit: impl Fn(usize) -> f64,
    selected: &[usize],
    steps: &mut [f64],
) {
    let n = mean.len();
    for (range, axis) in space.axes() {
        if axis.count().is_none_or(|count| count == 1) {
            continue;
        }
        let Interval { low, high } = range_of_means(axis);
        for i in range {
            let (mean, unit) = (mean[i], unit(i));
            let home = axis.at(mean);
            let home_middle = middle(axis, home);
            let mut added = 0.0;
            // The sums of the ways to the middle, downwards and upwards.
            let mut ways = [0.0; 2];
            for &column in selected {
                let y = &mut steps[column * n + i];
                let v = (mean + unit * *y).clamp(low, high);
                let index = axis.at(v);
                let moved = if index == home { v } else { middle(axis, index) };
                added += moved - v;
                if index == home {
                    let way = home_middle - v;
                    ways[usize::from(way > 0.0)] += way;
                }
                *y = (moved - mean) / unit;
            }
            let way = ways[usize::from(added < 0.0)];
            if added == 0.0 || way == 0.0 {
                continue;
            }
            let share = (-added / way).min(1.0);
            for &column in selected {
                let y = &mut steps[column * n + i];
                let v = mean + unit * *y;
                let way = home_middle - v;
                if axis.at(v) == home && way * added < 0.0 {
                    *y = (v + share * way - mean) / unit;
                }
            }
        }
    }
}

/// Maps an unbounded coordinate into [0, 1].
#[inline]
pub(super) fn bend(v: f64) -> f64 {
    if (MARGIN..=1.0 - MARGIN).contains(&v) {
        return v;
    }
    // Mirrored at the vertices of the parabolas.
    let t = (v + MARGIN).rem_euclid(2.0 * MIRROR_DISTANCE);
    let t = if t > MIRROR_DISTANCE { 2.0 * MIRROR_DISTANCE - t } else { t };
    if t < 2.0 * MARGIN {
        t * t / (4.0 * MARGIN)
    } else if t > MIRROR_DISTANCE - 2.0 * MARGIN {
        1.0 - (MIRROR_DISTANCE - t).powi(2) / (4.0 * MARGIN)
    } else {
        t - MARGIN
    }
}

/// The value of [`bend`] at the mean, and its slope around it for draws with this deviation: between the bounds 1, beyond a
/// mirror -1. At a mirror it is that of a secant, as the derivative is 0 there.
pub(super) fn tangent(mean: f64, deviation: f64) -> (f64, f64) {
    let t = (mean + MARGIN).rem_euclid(2.0 * MIRROR_DISTANCE);
    let (t, sign) = if t > MIRROR_DISTANCE { (2.0 * MIRROR_DISTANCE - t, -1.0) } else { (t, 1.0) };
    let to_mirror = t.min(MIRROR_DISTANCE - t);
    let slope = (to_mirror + 0.5 * deviation) / (2.0 * MARGIN);
    (bend(mean), sign * slope.clamp(1e-6, 1.0))
}

/// The inverse of [`bend`], within [-MARGIN, 1 + MARGIN].
#[inline]
pub(super) fn unbend(x: f64) -> f64 {
    if x < MARGIN {
        2.0 * (MARGIN * x.max(0.0)).sqrt() - MARGIN
    } else if x > 1.0 - MARGIN {
        1.0 + MARGIN - 2.0 * (MARGIN * (1.0 - x).max(0.0)).sqrt()
    } else {
        x
    }
}

/// The range of the mean on a discrete axis: it ends halfway between the middles of the first and last cells and the
/// ends of the axis. Selected candidates beyond it count as its ends, so that the path of the step size has no
/// steps that the mean does not make; with the middles as ends, such steps would be so short that the step size
/// falls too early.
fn range_of_means(axis: Axis) -> Interval {
    let [first, last] = [0.0, axis.extent().high].map(|index| middle(axis, index));
    Interval { low: 0.5 * first, high: 0.5 * (1.0 + last) }
}

/// The cell of an index: the positions [`Axis::at`] which it is.
fn cell(axis: Axis, index: f64) -> Interval {
    let last = axis.extent().high;
    match axis {
        Axis::Ordered { log_from: Some(from), .. } => {
            // Each integer covers half a step on either side.
            let (a, b) = ((from - 0.5).ln(), (from + last + 0.5).ln());
            let at = |x: f64| ((from + x).ln() - a) / (b - a);
            Interval { low: at(index - 0.5), high: at(index + 0.5) }
        }
        _ => Interval { low: index / (last + 1.0), high: (index + 1.0) / (last + 1.0) },
    }
}

fn middle(axis: Axis, index: f64) -> f64 {
    let Interval { low, high } = cell(axis, index);
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn mixed() -> Space {
        Space::builder()
            .real("x", -3.0, 8.0)
            .log_real("r", 1e-5, 1e-1)
            .integer("i", -2, 6)
            .log_integer("k", 1, 1000)
            .boolean("b")
            .levels("one", ["only"])
            .build()
            .unwrap()
    }

    #[test]
    fn the_bound_transformation_is_smooth_periodic_and_inverted() {
        for step in -4000..4000 {
            let v = f64::from(step) / 1000.0;
            let x = bend(v);
            assert!((0.0..=1.0).contains(&x), "{v}: {x}");
            assert!((bend(v + 1e-6) - x).abs() < 1.1e-6, "{v}");
            assert!((bend(unbend(x)) - x).abs() < 1e-14, "{v}: {x}");
            if (-MARGIN..=1.0 + MARGIN).contains(&v) {
                assert!((unbend(x) - v).abs() < 1e-7, "{v}: {x}");
            }
        }
        assert_eq!((bend(-MARGIN), bend(1.0 + MARGIN)), (0.0, 1.0));
    }

    #[test]
    fn encoding_and_decoding_returns_the_same_point() {
        let space = mixed();
        let mut random = Random::new(1);
        let n = space.dimension();
        let (mut point, mut v, mut back) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        for _ in 0..2000 {
            space.draw(&mut random, &mut point);
            let mean: Vec<f64> = point.iter().map(|_| random.between(-0.5, 1.5)).collect();
            encode(&space, &point, &mean, &mut v);
            let is_near = |i: usize| (v[i] - mean[i]).abs() < 1.1;
            assert!(is_near(0) && is_near(1), "{v:?} {mean:?}");
            decode(&space, |i| v[i], &mut back);
            space.check(&back).unwrap();
            assert!(point.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-12), "{point:?}");
        }
    }

    #[test]
    fn confining_a_mean_does_not_change_its_point() {
        let space = Space::cube(1, 0.0, 1.0).unwrap();
        for step in -5000..5000 {
            let mut mean = [f64::from(step) / 1000.0];
            let before = bend(mean[0]);
            confine(&space, &mut mean);
            assert!((-0.6..=1.6).contains(&mean[0]), "{mean:?}");
            assert!((bend(mean[0]) - before).abs() < 1e-14);
        }
    }

    #[test]
    fn decoded_points_are_in_the_space() {
        let space = mixed();
        let mut random = Random::new(2);
        let mut point = vec![0.0; space.dimension()];
        for spread in [1.0, 10.0, 1e10, 1e300] {
            for _ in 0..1000 {
                let v: Vec<f64> = point.iter().map(|_| random.between(-spread, spread)).collect();
                decode(&space, |i| v[i], &mut point);
                space.check(&point).unwrap();
            }
        }
    }

    #[test]
    fn the_deviation_of_a_discrete_coordinate_is_at_least_a_part_of_its_cell() {
        let space = Space::builder().integer("i", 0, 9).boolean("b").build().unwrap();
        let (mean, mut scale) = ([0.45, 0.25], [0.0; 2]);
        margins(&space, &mean, |_| 1e-6, 0.2, &mut scale);
        assert!((scale[0] * 1e-6 - 0.02).abs() < 1e-9 && (scale[1] * 1e-6 - 0.1).abs() < 1e-9);
        margins(&space, &mean, |_| 0.5, 0.2, &mut scale);
        assert_eq!(scale, [1.0, 1.0]);
    }

    #[test]
    fn candidates_that_left_the_cell_of_the_mean_count_as_the_middle_of_theirs() {
        let space = Space::builder().integer("i", 0, 9).real("x", 0.0, 1.0).build().unwrap();
        let mean = [0.45, 0.5];
        // The cells are of length 0.1: one candidate is just above 0.5, one is not selected.
        let mut steps = [0.51, 0.9, 0.41, 0.9, 0.48, 0.9, 0.99, 0.9].map(|v: f64| v - 0.45);
        let before = steps;
        center(&space, &mean, |_| 1.0, &[0, 1, 2], &mut steps);
        let position = |column: usize| 0.45 + steps[2 * column];
        assert!((position(0) - 0.55).abs() < 1e-12);
        // It has gained 0.04, and the one above the middle has only 0.03 to give.
        assert!((position(2) - 0.45).abs() < 1e-12 && (position(1) - 0.41).abs() < 1e-12);
        assert!((0..4).all(|column| steps[2 * column + 1] == before[2 * column + 1]));
        assert_eq!(steps[6], before[6]);
        // Enough room: the sum stays as it was.
        let mut steps = [0.53, 0.0, 0.49, 0.0].map(|v: f64| v - 0.45);
        center(&space, &mean, |_| 1.0, &[0, 1], &mut steps);
        assert!((steps[0] + steps[2] - (0.08 + 0.04)).abs() < 1e-12, "{steps:?}");
    }
}
