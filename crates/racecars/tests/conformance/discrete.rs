//! Discrete spaces: no point is asked twice, and the space is exhausted.

use crate::cases::{Case, deterministic_cases};
use crate::common::{bits, bowl};
use racecars::random::Random;
use racecars::{Candidate, Outcome};
use std::collections::HashSet;

fn discrete_cases() -> impl Iterator<Item = Case> {
    deterministic_cases().filter(|case| case.space.is_discrete())
}

/// Cases with few enough points to ask all of them, and the number of points.
fn small_cases() -> impl Iterator<Item = (Case, usize)> {
    discrete_cases().filter_map(|case| {
        let points = case.space.cardinality().filter(|&points| points <= 600)?;
        Some((case, points as usize))
    })
}

#[test]
fn the_suite_has_small_discrete_spaces() {
    let sizes: HashSet<usize> = small_cases().map(|(_, points)| points).collect();
    assert_eq!(sizes, HashSet::from([1, 6, 13, 60, 501]));
}

#[test]
fn no_point_is_asked_twice() {
    for case in discrete_cases() {
        let mut session = case.session(41);
        session.steps(600);
        let distinct: HashSet<_> = session.asked.iter().collect();
        assert_eq!(distinct.len(), session.asked.len());
    }
}

#[test]
fn every_point_is_asked_once_and_then_the_space_is_exhausted() {
    for (case, points) in small_cases() {
        let mut session = case.session(42);
        session.steps(3 * points + 10);
        assert_eq!(session.asked.len(), points);
        assert_eq!(session.asked.iter().collect::<HashSet<_>>().len(), points);
        assert_eq!(session.optimizer.told(), points as u64);
        let exhausted = session.optimizer.save();
        for _ in 0..5 {
            assert!(session.optimizer.ask().is_none());
        }
        assert_eq!(session.optimizer.pending(), 0);
        assert!(session.optimizer.save() == exhausted, "asking changed the state");
        assert!(racecars::load(&exhausted).unwrap().ask().is_none());
    }
}

#[test]
fn an_exhausted_optimizer_still_takes_tells() {
    for (case, points) in small_cases() {
        let mut optimizer = case.optimizer(None, 43);
        let out: Vec<Candidate> = std::iter::from_fn(|| optimizer.ask()).collect();
        assert_eq!(out.len(), points);
        for candidate in out {
            let value = bowl(&case.space, candidate.point());
            optimizer.tell(candidate, Outcome::from(value)).unwrap();
            assert!(optimizer.ask().is_none());
        }
        let known = optimizer.best().unwrap().point.to_vec();
        optimizer.tell(Candidate::known(known), Outcome::from(-1.0)).unwrap();
        assert_eq!(optimizer.best().unwrap().rank.value(), Some(-1.0));
        assert_eq!(optimizer.told(), points as u64 + 1);
    }
}

#[test]
fn a_known_point_is_not_asked() {
    for (case, points) in small_cases() {
        let mut random = Random::new(44);
        let mut optimizer = case.optimizer(Some(100), 44);
        let mut seen = HashSet::new();
        let mut point = vec![0.0; case.space.dimension()];
        loop {
            if random.chance(0.3) {
                case.space.draw(&mut random, &mut point);
                seen.insert(bits(&point));
                let value = bowl(&case.space, &point);
                optimizer.tell(Candidate::known(point.clone()), Outcome::from(value)).unwrap();
            }
            let Some(candidate) = optimizer.ask() else { break };
            assert!(seen.insert(bits(candidate.point())), "asked or told before");
            let value = bowl(&case.space, candidate.point());
            optimizer.tell(candidate, Outcome::from(value)).unwrap();
        }
        assert_eq!(seen.len(), points, "every point was asked or known");
    }
}

#[test]
fn if_all_points_are_known_none_is_asked() {
    for (case, points) in small_cases() {
        let mut other = case.optimizer(None, 45);
        let mut optimizer = case.optimizer(None, 46);
        for _ in 0..points {
            let point = other.ask().unwrap().point().to_vec();
            optimizer.tell(Candidate::known(point), Outcome::from(1.0)).unwrap();
        }
        assert!(optimizer.ask().is_none());
        assert_eq!(optimizer.told(), points as u64);
    }
}

/// RACE-CARS redraws one coordinate at a time, and a redrawn discrete coordinate often has the same value.
#[test]
fn no_point_is_asked_twice_in_mixed_spaces() {
    let is_mixed = |case: &Case| !case.space.is_discrete() && !case.space.is_continuous();
    for case in deterministic_cases().filter(is_mixed) {
        let mut session = case.session(47);
        session.steps(300);
        let distinct: HashSet<_> = session.asked.iter().collect();
        assert_eq!(distinct.len(), session.asked.len());
    }
}
