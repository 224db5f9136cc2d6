//! The initial points: a Latin hypercube (McKay, Beckman & Conover 1979). Each axis is divided into as
//! many equal parts as there are points, and each part contains one point.

use crate::random::Random;
use crate::space::Space;

/// The axes filled in one pass over the points: one cache line of numbers.
const AXES_PER_PASS: usize = 8;

/// The points of a Latin hypercube, determined by the seed, in reverse order.
pub(super) fn latin_hypercube(space: &Space, count: usize, seed: u64) -> Vec<Box<[f64]>> {
    let dimension = space.dimension();
    let mut random = Random::new(seed);
    let mut points: Vec<Box<[f64]>> = Vec::new();
    points.resize_with(count, || vec![0.0; dimension].into_boxed_slice());
    let mut parts: [Vec<u32>; AXES_PER_PASS] = std::array::from_fn(|_| (0..count as u32).collect());
    for first in (0..dimension).step_by(AXES_PER_PASS) {
        let axes = AXES_PER_PASS.min(dimension - first);
        for parts in &mut parts[..axes] {
            random.shuffle(parts);
        }
        for (i, point) in points.iter_mut().enumerate() {
            for (j, parts) in parts[..axes].iter().enumerate() {
                let share = (f64::from(parts[i]) + random.unit()) / count as f64;
                point[first + j] = space.axis(first + j).at(share);
            }
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_each_axis_contains_one_point() {
        let space = Space::cube(11, 0.0, 7.0).unwrap();
        let points = latin_hypercube(&space, 7, 1);
        for axis in 0..11 {
            let mut parts: Vec<i64> = points.iter().map(|p| p[axis].floor() as i64).collect();
            parts.sort_unstable();
            assert_eq!(parts, [0, 1, 2, 3, 4, 5, 6]);
        }
        assert_eq!(points, latin_hypercube(&space, 7, 1));
        assert_ne!(points, latin_hypercube(&space, 7, 2));
    }

    #[test]
    fn values_of_discrete_axes_are_equally_frequent() {
        let space = Space::builder().categorical("c", ["a", "b"]).integer("i", 0, 3).build();
        let space = space.unwrap();
        let points = latin_hypercube(&space, 8, 1);
        assert_eq!(points.iter().filter(|point| point[0] == 1.0).count(), 4);
        for value in 0..4 {
            assert_eq!(points.iter().filter(|point| point[1] == f64::from(value)).count(), 2);
        }
    }
}
