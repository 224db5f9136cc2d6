//! Golden traces: a seed gives the same run in every version. The objective and the spaces only need sums
//! and products, which are the same on all machines, and so are the runs of the RACOS family. The other
//! algorithms use exponentials and logarithms of the platform's math library.
//!
//! An intended change of runs updates them with
//! `INSTA_UPDATE=always cargo test -p racecars --test golden`.
#![allow(clippy::unwrap_used)]

use racecars::{Algorithm, Domain, Outcome, RaceCars, Space};
use std::fmt::Write;

/// The evaluations in a trace.
const SHOWN_EVALUATIONS: [usize; 12] = [1, 2, 3, 5, 10, 20, 35, 50, 75, 100, 150, 200];

/// A polynomial of the encoded point, with products of neighbouring coordinates.
fn polynomial(point: &[f64]) -> f64 {
    let (mut sum, mut last) = (0.0, 0.0);
    for (i, x) in point.iter().enumerate() {
        let off = x - 0.25 * (i % 5) as f64;
        sum += off * off + 0.5 * off * last;
        last = off;
    }
    sum
}

/// FNV-1a, which is the same on all machines.
fn hash(hash: u64, point: &[f64]) -> u64 {
    let bytes = point.iter().flat_map(|x| x.to_bits().to_le_bytes());
    bytes.fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn trace(algorithm: &Algorithm, space: &Space) -> String {
    let mut optimizer = algorithm.optimizer(space, Some(200), 1).unwrap();
    let (mut text, mut points) = (String::new(), 0xcbf2_9ce4_8422_2325);
    for evaluation in 1..=200 {
        let candidate = optimizer.ask().unwrap();
        points = hash(points, candidate.point());
        let value = polynomial(candidate.point());
        optimizer.tell(candidate, Outcome::from(value)).unwrap();
        if SHOWN_EVALUATIONS.contains(&evaluation) {
            writeln!(text, "{evaluation:>4} {value:?}").unwrap();
        }
    }
    let best = optimizer.best().unwrap().rank.value().unwrap();
    writeln!(text, "best {best:?}").unwrap();
    writeln!(text, "points {points:016x}").unwrap();
    text
}

/// Compares the traces of all algorithms that take a space.
fn check(name: &str, space: &Space) {
    let takes = |algorithm: &Algorithm| algorithm.takes(space).is_ok();
    for algorithm in Algorithm::all().filter(takes) {
        let label = algorithm.name();
        insta::assert_snapshot!(format!("{label}-{name}"), trace(&algorithm, space));
    }
    let surrogate: Algorithm = "cma-es(surrogate=true)".parse().unwrap();
    if space.is_continuous() {
        insta::assert_snapshot!(format!("cma-es-surrogate-{name}"), trace(&surrogate, space));
    }
    let paper = Algorithm::RaceCars(RaceCars::default().gamma(0.95));
    insta::assert_snapshot!(format!("race-cars-paper-{name}"), trace(&paper, space));
}

#[test]
fn runs_in_a_continuous_space_are_unchanged() {
    check("continuous", &Space::cube(12, -2.0, 3.0).unwrap());
}

#[test]
fn runs_in_a_discrete_space_are_unchanged() {
    let space = (Space::builder().integers("i", 4, -3, 6))
        .levels("l", [1, 2, 4, 8])
        .categorical("c", ["a", "b", "c", "d", "e"])
        .array("b", 3, Domain::Boolean);
    check("discrete", &space.build().unwrap());
}

#[test]
fn runs_in_a_mixed_space_are_unchanged() {
    let space = (Space::builder().reals("x", 5, -1.0, 2.0))
        .integers("i", 3, 0, 7)
        .grid("g", -1.0, 1.0, 0.25)
        .categorical("c", ["a", "b", "c"])
        .boolean("b");
    check("mixed", &space.build().unwrap());
}
