//! A lower bound: how many queries every algorithm needs that only ranks values among r stored ones.
//!
//! Let Z functions have targets that do not meet, and let an algorithm learn of f only how a new value ranks
//! among at most r stored ones. Given its random numbers, the first r queries are fixed, the next depends on
//! one of r! orders, and every further one on one of r + 1 more ranks. So in r + N queries at most
//!
//! D = r + r! ((r + 1)^N - 1) / r
//!
//! different points can be asked, and each lies in at most one target. An algorithm that finds every one of the
//! Z targets with probability at least 1 - delta therefore has D >= (1 - delta) Z. RACOS, SRACOS and RACE-CARS
//! are such algorithms, if they store r points.

use super::{Queries, ln_ball, logs};

/// The logarithm of a number of balls of this radius, in units of the width of the cube, that fit into the cube
/// without meeting: centres that are kept apart until no more fit are so many that balls of twice the radius
/// around them cover the inner cube.
pub fn ln_disjoint_balls(dimension: usize, radius: f64) -> f64 {
    let n = dimension as f64;
    let inner = (1.0 - 2.0 * radius).max(0.0);
    (n * inner.ln() - ln_ball(dimension, 2.0 * radius)).max(0.0)
}

/// The least number of queries with which an algorithm that stores `r` values and ranks can find each of a number
/// of disjoint targets, given by its logarithm, with probability at least 1 - delta.
pub fn least_queries(r: u64, ln_targets: f64, delta: f64) -> Queries {
    let ln_need = ln_targets + (-delta).ln_1p();
    let ln_r = (r as f64).ln();
    if ln_r >= ln_need {
        return Queries::Count(ln_need.exp().ceil().max(1.0) as u64);
    }
    let ln_orders: f64 = (2..=r).map(|i| (i as f64).ln()).sum();
    let ln_ranks = ((r + 1) as f64).ln();
    // r + r! ((r + 1)^N - 1) / r; for r = 0 there is nothing to rank with, and N queries are N points.
    let ln_asked = |steps: f64, ln_steps: f64| match r {
        0 => ln_steps,
        _ => {
            let power = steps * ln_ranks;
            logs::add(ln_r, ln_orders + power + (-(-power).exp()).ln_1p() - ln_r)
        }
    };
    Queries::least(|steps, ln_steps| ln_asked(steps, ln_steps) >= ln_need).plus(r)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_points_that_can_be_asked_are_counted() {
        // r = 2: 2 points, then 2 orders, then 2 * 3, 2 * 9, ...: 2, 4, 10, 28 points in 2, 3, 4, 5 queries.
        for (targets, queries) in
            [(1, 1), (2, 2), (3, 3), (4, 3), (5, 4), (10, 4), (11, 5), (28, 5)]
        {
            let ln_targets = f64::from(targets).ln() - 1e-12;
            assert_eq!(least_queries(2, ln_targets, 1e-15), Queries::Count(queries), "{targets}");
        }
        assert!(least_queries(22, 140.0, 0.05) < least_queries(22, 2000.0, 0.05));
        assert!(least_queries(22, 140.0, 0.05) < least_queries(2, 140.0, 0.05));
        // Without stored values there is nothing to learn from.
        assert!((least_queries(0, 140.0, 0.05).ln() - 140.0).abs() < 0.1);
    }

    #[test]
    fn balls_that_do_not_meet_fit() {
        // In one dimension, intervals of length 0.02: 50 would fit, and the count says at least 24.
        let count = ln_disjoint_balls(1, 0.01).exp();
        assert!((20.0..=50.0).contains(&count), "{count}");
        assert_eq!(ln_disjoint_balls(3, 0.6), 0.0, "none fits");
    }
}
