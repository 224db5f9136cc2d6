//! Asking: points are in the space and reproducible, and a continuous space is never exhausted.

use crate::cases::{cases, deterministic_cases, every_case};
use crate::common::bowl;
use racecars::{Algorithm, Outcome};

#[test]
fn every_name_is_the_name_of_its_algorithm() {
    for name in Algorithm::NAMES {
        assert_eq!(name.parse::<Algorithm>().unwrap().name(), *name);
    }
    for case in cases() {
        let optimizer = case.optimizer(None, 1);
        assert_eq!(optimizer.name(), case.algorithm.name());
        assert!(*optimizer.space() == case.space);
    }
}

#[test]
fn every_point_asked_is_in_the_space() {
    for case in every_case() {
        for seed in 0..case.seeds {
            let mut session = case.session(seed);
            session.steps(2 * case.steps());
            for point in &session.asked {
                let point: Vec<f64> = point.iter().map(|&x| f64::from_bits(x)).collect();
                case.space.check(&point).unwrap();
            }
        }
    }
}

#[test]
fn equal_seeds_give_equal_runs() {
    for case in cases() {
        let (mut one, mut other) = (case.session(7), case.session(7));
        one.steps(case.steps());
        other.steps(case.steps());
        assert!(one.asked == other.asked, "the points asked differ");
        assert!(one.optimizer.save() == other.optimizer.save(), "the states differ");
    }
}

#[test]
fn different_seeds_give_different_runs() {
    for case in cases().filter(|case| case.has_many_points()) {
        let (mut one, mut other) = (case.session(7), case.session(8));
        // The same order of asks and tells, so that only the optimizer's seed differs.
        other.random = one.random.clone();
        one.steps(case.steps());
        other.steps(case.steps());
        assert!(one.asked != other.asked, "the points asked are the same");
    }
}

#[test]
fn candidates_are_numbered_in_the_order_asked() {
    for case in cases() {
        let mut optimizer = case.optimizer(Some(100), 1);
        for number in 0..20 {
            let Some(candidate) = optimizer.ask() else { break };
            assert_eq!(candidate.id(), Some(number));
        }
    }
}

#[test]
fn asking_never_waits_for_tells() {
    for case in deterministic_cases() {
        let asks = if case.space.dimension() > 1000 { 200 } else { 1000 };
        let mut optimizer = case.optimizer(Some(100), 3);
        let expected = case.space.cardinality().map_or(asks, |points| asks.min(points as usize));
        let asked: Vec<_> = (0..asks).map_while(|_| optimizer.ask()).collect();
        assert_eq!(asked.len(), expected);
        assert_eq!((optimizer.pending(), optimizer.told()), (expected, 0));
        assert!(optimizer.best().is_none());
        // All of them may still be told.
        for candidate in asked {
            let value = bowl(&case.space, candidate.point());
            optimizer.tell(candidate, Outcome::from(value)).unwrap();
        }
        assert_eq!((optimizer.pending(), optimizer.told()), (0, expected as u64));
    }
}

#[test]
fn any_budget_is_accepted_and_may_be_exceeded() {
    for case in cases() {
        let is_large = case.space.dimension() > 1000;
        for budget in [Some(0), Some(1), Some(4), Some(1000), Some(u64::MAX), None] {
            // Large populations are slow in debug builds.
            if is_large && budget.is_none_or(|budget| budget > 1000) {
                continue;
            }
            let mut optimizer = case.optimizer(budget, 5);
            let steps = case.space.cardinality().map_or(60, |points| points.min(60));
            for step in 0..steps {
                let candidate = optimizer.ask().unwrap();
                case.space.check(candidate.point()).unwrap();
                let value = bowl(&case.space, candidate.point());
                optimizer.tell(candidate, Outcome::from(value)).unwrap();
                assert_eq!(optimizer.told(), step + 1);
            }
        }
    }
}

#[test]
fn a_region_is_inside_the_space() {
    for case in cases() {
        let mut session = case.session(2);
        session.steps(2 * case.steps());
        if let Some(region) = session.optimizer.region() {
            case.space.check(region.center).unwrap();
            assert!((0.0..=1.0).contains(&region.share), "{region:?}");
        }
    }
}
