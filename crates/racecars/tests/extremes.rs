//! Settings at the bounds of their ranges, and just outside.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::bowl;
use racecars::{Algorithm, Classification, ErrorKind, Outcome, RaceCars, Replacing, Space};

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

/// Runs `steps` evaluations and checks every point. Returns the best value.
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

/// RACE-CARS, SRACOS and RACOS with these settings.
fn family(settings: Classification) -> [Algorithm; 3] {
    [
        Algorithm::RaceCars(RaceCars::default().classification(settings)),
        Algorithm::Sracos(settings),
        Algorithm::Racos(settings),
    ]
}

#[test]
fn all_extreme_settings_of_the_classification_work() {
    for space in spaces() {
        for (training_size, positive_size) in [(2, 1), (3, 2), (40, 39), (40, 1)] {
            for uncertain in [1, space.dimension()] {
                for exploitation in [0.0, 0.5, 1.0] {
                    for replacing in [Replacing::Worst, Replacing::Random, Replacing::Farthest] {
                        for repeats in [false, true] {
                            let settings = Classification::default()
                                .training_size(training_size)
                                .positive_size(positive_size)
                                .exploitation(exploitation)
                                .uncertain(uncertain)
                                .replacing(replacing)
                                .repeats(repeats);
                            for algorithm in family(settings) {
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
fn points_are_in_the_space_after_thousands_of_shrinks() {
    for space in spaces() {
        for gamma in [f64::MIN_POSITIVE, 1e-9, 0.5, 0.999, 1.0 - f64::EPSILON / 2.0] {
            for exploitation in [0.99, 1.0] {
                let classification = Classification::default().exploitation(exploitation);
                let settings = RaceCars::default().classification(classification);
                run(&Algorithm::RaceCars(settings.gamma(gamma).rho(1.0)), &space, 3000);
            }
        }
    }
}

#[test]
fn the_region_after_k_shrinks_is_gamma_to_the_k_of_the_space() {
    let space = Space::cube(3, 0.0, 1.0).unwrap();
    let classification = Classification::default().training_size(4);
    let settings = RaceCars::default().classification(classification).gamma(0.9).rho(1.0);
    let mut optimizer = Algorithm::RaceCars(settings).optimizer(&space, None, 1).unwrap();
    for step in 0..60 {
        let candidate = optimizer.ask().unwrap();
        let shrinks = (step - 3).max(0);
        match optimizer.region() {
            None => assert_eq!(shrinks, 0),
            Some(region) => {
                let expected = 0.9f64.powi(shrinks);
                assert!((region.share - expected).abs() < 1e-12, "{region:?} at {shrinks}");
                assert_eq!(region.center, optimizer.best().unwrap().point);
            }
        }
        let value = bowl(&space, candidate.point());
        optimizer.tell(candidate, Outcome::from(value)).unwrap();
    }
}

#[test]
fn errors_name_the_setting_out_of_range() {
    let space = Space::cube(3, 0.0, 1.0).unwrap();
    let refused = |algorithm: Algorithm, what: &str| {
        let Err(error) = algorithm.optimizer(&space, None, 1) else {
            panic!("accepted {algorithm:?}");
        };
        assert_eq!(error.kind(), ErrorKind::Setting);
        assert!(error.to_string().contains(what), "{error}");
    };
    let classification = |settings: Classification, what: &str| {
        for algorithm in family(settings) {
            refused(algorithm, what);
        }
    };
    let plain = Classification::default;
    for r in [0, 1, usize::MAX] {
        classification(plain().training_size(r), "r = ");
    }
    for m in [0, usize::MAX] {
        classification(plain().positive_size(m), "m = ");
    }
    classification(plain().training_size(5).positive_size(5), "m = 5");
    for lambda in [-0.01, 1.01, f64::NAN, f64::INFINITY] {
        classification(plain().exploitation(lambda), "lambda = ");
    }
    for u in [0, 4, usize::MAX] {
        classification(plain().uncertain(u), "u = ");
    }
    for gamma in [0.0, 1.0, -0.5, f64::NAN] {
        refused(Algorithm::RaceCars(RaceCars::default().gamma(gamma)), "gamma = ");
    }
    for rho in [-0.01, 1.01, f64::NAN] {
        refused(Algorithm::RaceCars(RaceCars::default().rho(rho)), "rho = ");
    }
}

/// All coordinates of a run scale with the space, exactly if by a power of two.
#[test]
fn a_run_does_not_depend_on_the_unit_of_measure() {
    for replacing in [Replacing::Worst, Replacing::Random, Replacing::Farthest] {
        let settings = Classification::default().replacing(replacing);
        for algorithm in family(settings) {
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
fn extreme_settings_still_minimize_a_bowl() {
    // A training set of two points is enough in one dimension.
    let space = Space::cube(1, -1.0, 1.0).unwrap();
    let settings = Classification::default().training_size(2);
    for algorithm in family(settings) {
        let best = run(&algorithm, &space, 500);
        assert!(best < 1e-4, "{algorithm}: {best}");
    }
}

/// The reals are so narrow that draws give one or two numbers, so all points are soon asked.
#[test]
fn extremely_narrow_reals_neither_hang_nor_leave_the_space() {
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
