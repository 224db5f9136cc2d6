//! Settings at the ends of what is allowed, and just beyond.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::bowl;
use racecars::{Algorithm, Classification, ErrorKind, Outcome, Replacing, Shrinking, Space};

fn spaces() -> Vec<Space> {
    let builders = [
        Space::builder().real("x", -1.0, 1.0),
        Space::builder().reals("x", 7, -1.0, 1.0),
        Space::builder().integers("i", 4, 0, 9),
        Space::builder().categorical("c", ["a", "b", "c"]).array("b", 9, racecars::Domain::Boolean),
        (Space::builder().reals("x", 2, 0.0, 1.0).integer("three", 3, 3))
            .log_integer("l", 1, 1 << 53)
            .categorical("c", ["a", "b", "c"]),
        Space::builder().real("wide", -8e307, 8e307).real("tiny", 0.0, 5e-324),
    ];
    builders.into_iter().map(|builder| builder.build().unwrap()).collect()
}

/// Runs `steps` evaluations and checks every point asked.
fn run(algorithm: &Algorithm, space: &Space, steps: u64) -> f64 {
    let mut optimizer = algorithm.optimizer(space, Some(steps), 1).unwrap();
    for _ in 0..steps {
        let Some(candidate) = optimizer.ask() else { break };
        space.check(candidate.point()).unwrap();
        let value = bowl(space, candidate.point());
        optimizer.tell(candidate, Outcome::from(value)).unwrap();
    }
    optimizer.best().unwrap().rank.value().unwrap()
}

/// The three algorithms that learn, with these settings.
fn family(settings: Classification, shrinking: Shrinking) -> [Algorithm; 3] {
    [
        Algorithm::RaceCars(settings, shrinking),
        Algorithm::Sracos(settings),
        Algorithm::Racos(settings),
    ]
}

#[test]
fn every_extreme_of_the_classification_works() {
    for space in spaces() {
        for (training_size, positive_size) in [(2, 1), (3, 2), (40, 39), (40, 1)] {
            for uncertain in [1, space.dimension()] {
                for exploitation in [0.0, 0.5, 1.0] {
                    for replacing in [Replacing::Worst, Replacing::Random, Replacing::Farthest] {
                        for repeats in [false, true] {
                            let settings = Classification {
                                training_size: Some(training_size),
                                positive_size: Some(positive_size),
                                exploitation: Some(exploitation),
                                uncertain: Some(uncertain),
                                replacing,
                                repeats,
                            };
                            for algorithm in family(settings, Shrinking::default()) {
                                run(&algorithm, &space, 60);
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn thousands_of_shrinks_at_any_rate_leave_points_of_the_space() {
    for space in spaces() {
        for gamma in [f64::MIN_POSITIVE, 1e-9, 0.5, 0.999, 1.0 - f64::EPSILON / 2.0] {
            let shrinking = Shrinking { gamma: Some(gamma), rho: Some(1.0) };
            for exploitation in [0.99, 1.0] {
                let settings =
                    Classification { exploitation: Some(exploitation), ..Default::default() };
                run(&Algorithm::RaceCars(settings, shrinking), &space, 3000);
            }
        }
    }
}

#[test]
fn the_region_after_k_shrinks_is_gamma_to_the_k_of_the_space() {
    let space = Space::cube(3, 0.0, 1.0).unwrap();
    let shrinking = Shrinking { gamma: Some(0.9), rho: Some(1.0) };
    let settings = Classification { training_size: Some(4), ..Default::default() };
    let mut optimizer =
        Algorithm::RaceCars(settings, shrinking).optimizer(&space, None, 1).unwrap();
    for step in 0..60 {
        let candidate = optimizer.ask().unwrap();
        let shrinks = (step - 3).max(0);
        match optimizer.region() {
            None => assert_eq!(shrinks, 0),
            Some((center, share)) => {
                assert!((share - 0.9f64.powi(shrinks)).abs() < 1e-12, "{share} at {shrinks}");
                assert_eq!(center, optimizer.best().unwrap().point);
            }
        }
        let value = bowl(&space, candidate.point());
        optimizer.tell(candidate, Outcome::from(value)).unwrap();
    }
}

#[test]
fn settings_beyond_the_extremes_are_refused_by_name() {
    let space = Space::cube(3, 0.0, 1.0).unwrap();
    let refused = |settings: Classification, shrinking: Shrinking, what: &str| {
        let algorithm = Algorithm::RaceCars(settings, shrinking);
        let Err(error) = algorithm.optimizer(&space, None, 1) else {
            panic!("accepted {algorithm:?}");
        };
        assert_eq!(error.kind(), ErrorKind::Setting);
        assert!(error.to_string().contains(what), "{error}");
    };
    let (plain, still) = (Classification::default(), Shrinking::default());
    for r in [0, 1, usize::MAX] {
        refused(Classification { training_size: Some(r), ..plain }, still, "r = ");
    }
    for m in [0, usize::MAX] {
        refused(Classification { positive_size: Some(m), ..plain }, still, "m = ");
    }
    let m_is_r = Classification { training_size: Some(5), positive_size: Some(5), ..plain };
    refused(m_is_r, still, "m = 5");
    for lambda in [-0.01, 1.01, f64::NAN, f64::INFINITY] {
        refused(Classification { exploitation: Some(lambda), ..plain }, still, "lambda = ");
    }
    for u in [0, 4, usize::MAX] {
        refused(Classification { uncertain: Some(u), ..plain }, still, "u = ");
    }
    for gamma in [0.0, 1.0, -0.5, f64::NAN] {
        refused(plain, Shrinking { gamma: Some(gamma), ..still }, "gamma = ");
    }
    for rho in [-0.01, 1.01, f64::NAN] {
        refused(plain, Shrinking { rho: Some(rho), ..still }, "rho = ");
    }
}

/// All numbers of a run scale with the space, if by a power of two: no size of range is special.
#[test]
fn a_run_does_not_depend_on_the_unit_of_measure() {
    for replacing in [Replacing::Worst, Replacing::Random, Replacing::Farthest] {
        let settings = Classification { replacing, ..Default::default() };
        for algorithm in family(settings, Shrinking::default()) {
            let run = |unit: f64| {
                let space = Space::cube(5, -3.0 * unit, 5.0 * unit).unwrap();
                let mut optimizer = algorithm.optimizer(&space, Some(300), 1).unwrap();
                let mut asked = Vec::new();
                for _ in 0..300 {
                    let candidate = optimizer.ask().unwrap();
                    asked.extend(candidate.point().iter().map(|x| x / unit));
                    let value = candidate.point().iter().map(|x| (x / unit).powi(2)).sum::<f64>();
                    optimizer.tell(candidate, Outcome::from(value)).unwrap();
                }
                asked
            };
            let expected = run(1.0);
            for unit in [2f64.powi(-900), 2f64.powi(-300), 2f64.powi(600), 2f64.powi(1020)] {
                assert!(run(unit) == expected, "{algorithm:?} in units of {unit:e}");
            }
        }
    }
}

#[test]
fn extreme_settings_still_find_the_bottom_of_a_bowl() {
    // Learning from two points is enough in one dimension.
    let space = Space::cube(1, -1.0, 1.0).unwrap();
    let settings = Classification { training_size: Some(2), ..Default::default() };
    for algorithm in family(settings, Shrinking::default()) {
        let best = run(&algorithm, &space, 500);
        assert!(best < 1e-4, "{algorithm}: {best}");
    }
}

/// Reals of which draws give one number only, beside two discrete values: soon all have been asked.
#[test]
fn a_real_of_a_single_number_neither_hangs_nor_leaves_the_space() {
    let spaces = [
        Space::builder().real("low", 0.0, 5e-324).boolean("b"),
        Space::builder().log_real("same", 1e300, 1e300 + 1e285).boolean("b"),
        Space::builder().real("narrow", 1.0, 1.0 + f64::EPSILON).integer("three", 3, 3),
    ];
    for space in spaces.map(|builder| builder.build().unwrap()) {
        for name in Algorithm::NAMES {
            let algorithm: Algorithm = name.parse().unwrap();
            if algorithm.optimizer(&space, None, 1).is_ok() {
                run(&algorithm, &space, 40);
            }
        }
    }
}
