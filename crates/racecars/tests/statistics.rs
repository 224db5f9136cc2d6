//! Quality of the algorithms: seeded comparisons of medians, with wide margins.
#![allow(clippy::unwrap_used)]

use racecars::{Algorithm, Classification, Outcome, Replacing, Space};

/// The median over seeds of the best value after `budget` evaluations.
fn median(
    algorithm: &Algorithm,
    space: &Space,
    budget: u64,
    seeds: u64,
    objective: fn(&[f64]) -> f64,
) -> f64 {
    let best = |seed| {
        let mut optimizer = algorithm.optimizer(space, Some(budget), seed).unwrap();
        for _ in 0..budget {
            let candidate = optimizer.ask().unwrap();
            let value = objective(candidate.point());
            optimizer.tell(candidate, Outcome::from(value)).unwrap();
        }
        optimizer.best().unwrap().rank.value().unwrap()
    };
    let mut values: Vec<f64> = (0..seeds).map(best).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn sphere(point: &[f64]) -> f64 {
    point.iter().map(|x| (x - 0.2) * (x - 0.2)).sum()
}

/// Ackley's function, with its centre at 0.2: many local minima in a funnel.
fn ackley(point: &[f64]) -> f64 {
    use std::f64::consts::{E, TAU};
    let n = point.len() as f64;
    let squares = point.iter().map(|x| (x - 0.2) * (x - 0.2)).sum::<f64>() / n;
    let waves = point.iter().map(|x| (TAU * (x - 0.2)).cos()).sum::<f64>() / n;
    -20.0 * (-0.2 * squares.sqrt()).exp() - waves.exp() + 20.0 + E
}

/// Indices at a third of 0..=30.
fn integer_sphere(point: &[f64]) -> f64 {
    point.iter().map(|i| (i - 10.0) * (i - 10.0)).sum()
}

/// The number of choices that differ from a hidden string.
fn mismatches(point: &[f64]) -> f64 {
    let differs = |&(i, choice): &(usize, &f64)| *choice != ((7 * i + 3) % 5) as f64;
    point.iter().enumerate().filter(differs).count() as f64
}

/// Pairs of coordinates: each alone is best at 0, but both at 5 are better.
fn trap(point: &[f64]) -> f64 {
    let worth = |pair: &[f64]| match (pair[0], pair[1]) {
        (5.0, 5.0) => -20.0,
        (i, j) => i + j,
    };
    point.chunks_exact(2).map(worth).sum()
}

#[test]
fn race_cars_is_good_with_default_settings() {
    // Better than the best published value at this budget, with a tuned rho: 1.3 (Table 1).
    let space = Space::cube(50, -10.0, 10.0).unwrap();
    let race_cars = Algorithm::race_cars();
    let result = |budget, objective| median(&race_cars, &space, budget, 9, objective);
    let (short, long) = (result(1500, ackley), result(5000, ackley));
    assert!(short < 1.0 && long < 0.02, "{short} {long}");
    let (short, long) = (result(1500, sphere), result(5000, sphere));
    assert!(short < 0.5 && long < 0.001, "{short} {long}");
}

#[test]
fn race_cars_escapes_points_that_are_optimal_in_each_coordinate() {
    let space = Space::builder().integers("i", 4, 0, 5).build().unwrap();
    let found = median(&Algorithm::race_cars(), &space, 1000, 25, trap);
    assert_eq!(found, -40.0);
}

#[test]
fn race_cars_restarts_from_a_wide_region_if_there_is_no_budget() {
    let space = Space::cube(5, -10.0, 10.0).unwrap();
    let mut optimizer = Algorithm::race_cars().optimizer(&space, None, 1).unwrap();
    let mut widenings = 0;
    let mut last = 1.0;
    for _ in 0..5000 {
        let candidate = optimizer.ask().unwrap();
        let value = sphere(candidate.point());
        optimizer.tell(candidate, Outcome::from(value)).unwrap();
        let width = optimizer.region().map_or(1.0, |region| region.share);
        widenings += u32::from(last < 1e-6 && width > 0.5);
        last = width;
    }
    assert!(widenings >= 1, "{widenings}");
    assert!(optimizer.best().unwrap().rank.value().unwrap() < 1e-12);
}

#[test]
fn sracos_and_racos_beat_random_search_on_a_sphere() {
    let space = Space::cube(20, -1.0, 1.0).unwrap();
    let result = |algorithm: Algorithm| median(&algorithm, &space, 1000, 7, sphere);
    let random = result(Algorithm::random());
    let (sracos, racos) = (result(Algorithm::sracos()), result(Algorithm::racos()));
    assert!(sracos < random / 20.0, "{sracos} {random}");
    assert!(racos < random / 3.0, "{racos} {random}");
}

#[test]
fn race_cars_beats_sracos_on_a_sphere() {
    let space = Space::cube(50, -1.0, 1.0).unwrap();
    let result = |algorithm: Algorithm| median(&algorithm, &space, 5000, 10, sphere);
    let (race_cars, sracos) = (result(Algorithm::race_cars()), result(Algorithm::sracos()));
    assert!(race_cars < sracos / 2.0, "{race_cars} {sracos}");
}

#[test]
fn race_cars_minimizes_ackley() {
    let space = Space::cube(50, -1.0, 1.0).unwrap();
    let result = |algorithm: Algorithm| median(&algorithm, &space, 5000, 7, ackley);
    let (race_cars, random) = (result(Algorithm::race_cars()), result(Algorithm::random()));
    assert!(race_cars < 0.3 && random > 2.0, "{race_cars} {random}");
}

#[test]
fn sracos_and_race_cars_beat_random_search_on_integers() {
    let space = Space::builder().integers("i", 20, 0, 30).build().unwrap();
    let result = |algorithm: Algorithm| median(&algorithm, &space, 1000, 7, integer_sphere);
    let random = result(Algorithm::random());
    for algorithm in [Algorithm::sracos(), Algorithm::race_cars()] {
        let learned = result(algorithm);
        assert!(learned < random / 5.0, "{learned} {random}");
    }
}

#[test]
fn sracos_and_race_cars_beat_random_search_on_categories() {
    let choices = racecars::Domain::categorical(["a", "b", "c", "d", "e"]);
    let space = Space::builder().array("c", 30, choices).build().unwrap();
    let result = |algorithm: Algorithm| median(&algorithm, &space, 1000, 7, mismatches);
    let random = result(Algorithm::random());
    for algorithm in [Algorithm::sracos(), Algorithm::race_cars()] {
        let learned = result(algorithm);
        assert!(learned < random / 2.0, "{learned} {random}");
    }
}

#[test]
fn every_replacing_rule_learns() {
    let space = Space::cube(20, -1.0, 1.0).unwrap();
    let random = median(&Algorithm::random(), &space, 1000, 7, sphere);
    for replacing in [Replacing::Worst, Replacing::Random, Replacing::Farthest] {
        let algorithm = Algorithm::Sracos(Classification::default().replacing(replacing));
        let learned = median(&algorithm, &space, 1000, 7, sphere);
        assert!(learned < random / 10.0, "{replacing:?}: {learned} {random}");
    }
}

#[test]
fn failures_and_many_pending_candidates_do_little_harm() {
    let space = Space::cube(20, -1.0, 1.0).unwrap();
    for algorithm in [Algorithm::sracos(), Algorithm::race_cars()] {
        let mut results: Vec<f64> =
            (0..7).map(|seed| run_with_failures(&algorithm, &space, seed)).collect();
        results.sort_by(f64::total_cmp);
        let random = median(&Algorithm::random(), &space, 1000, 7, sphere);
        assert!(results[3] < random / 5.0, "{algorithm}: {} {random}", results[3]);
    }
}

/// A thousand evaluations, eight at a time. Every fifth fails.
fn run_with_failures(algorithm: &Algorithm, space: &Space, seed: u64) -> f64 {
    let mut optimizer = algorithm.optimizer(space, Some(1000), seed).unwrap();
    for _ in 0..125 {
        let batch: Vec<_> = (0..8).map(|_| optimizer.ask().unwrap()).collect();
        for candidate in batch {
            let value = sphere(candidate.point());
            let fails = candidate.id().unwrap() % 5 == 0;
            let outcome = if fails { Outcome::failed("late") } else { Outcome::from(value) };
            optimizer.tell(candidate, outcome).unwrap();
        }
    }
    optimizer.best().unwrap().rank.value().unwrap()
}
