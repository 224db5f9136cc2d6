//! Telling: late, in any order, never, twice, and of points that were not asked.

use crate::cases::{Case, cases};
use crate::common::{bits, bowl};
use racecars::random::Random;
use racecars::{Algorithm, Candidate, ErrorKind, Optimizer, Outcome, Space};

/// Asserts that a tell is refused with an error of this kind, and does not change the state.
fn assert_refused(optimizer: &mut dyn Optimizer, candidate: Candidate, kind: ErrorKind) {
    let before = optimizer.save();
    let what = format!("{candidate:.3?}");
    let error = optimizer.tell(candidate, Outcome::from(-1.0)).expect_err(&what);
    assert_eq!(error.kind(), kind, "{error}");
    assert!(optimizer.save() == before, "a refused tell changed the state: {error}");
}

/// An optimizer after some steps, and its pending candidates.
fn after_some_steps(case: &Case, seed: u64) -> (Box<dyn Optimizer>, Vec<Candidate>) {
    let mut session = case.session(seed);
    session.steps(60);
    (session.optimizer, session.out)
}

fn draw(space: &Space, random: &mut Random) -> Vec<f64> {
    let mut point = vec![0.0; space.dimension()];
    space.draw(random, &mut point);
    point
}

#[test]
fn tells_may_come_late_and_in_any_order() {
    for case in cases() {
        let mut random = Random::new(31);
        let mut optimizer = case.optimizer(Some(100), 31);
        let mut best = f64::INFINITY;
        let mut told = 0;
        for _ in 0..5 {
            let mut out: Vec<Candidate> = (0..20).map_while(|_| optimizer.ask()).collect();
            while !out.is_empty() {
                let candidate = out.swap_remove(random.index(out.len()));
                let value = bowl(&case.space, candidate.point());
                best = best.min(value);
                optimizer.tell(candidate, Outcome::from(value)).unwrap();
                told += 1;
                assert_eq!((optimizer.told(), optimizer.pending()), (told, out.len()));
                assert_eq!(optimizer.best().unwrap().rank.value(), Some(best));
            }
        }
    }
}

#[test]
fn lost_candidates_do_no_harm() {
    for case in cases() {
        let mut optimizer = case.optimizer(Some(200), 32);
        let (mut best, mut told, mut lost) = (f64::INFINITY, 0, 0);
        for step in 0..case.steps() {
            let Some(candidate) = optimizer.ask() else { break };
            case.space.check(candidate.point()).unwrap();
            if step % 3 == 0 {
                lost += 1;
                continue;
            }
            let value = bowl(&case.space, candidate.point());
            best = best.min(value);
            told += 1;
            optimizer.tell(candidate, Outcome::from(value)).unwrap();
        }
        assert_eq!((optimizer.told(), optimizer.pending()), (told, lost));
        assert_eq!(optimizer.best().and_then(|b| b.rank.value()), (told > 0).then_some(best));
    }
}

#[test]
fn a_candidate_told_twice_is_refused() {
    for case in cases() {
        let (mut optimizer, out) = after_some_steps(&case, 33);
        for candidate in out {
            let again = candidate.clone();
            optimizer.tell(candidate, Outcome::from(1.0)).unwrap();
            assert_refused(&mut *optimizer, again.clone(), ErrorKind::Repeated);
            assert_refused(&mut *optimizer, again, ErrorKind::Repeated);
        }
        // Also by a restored optimizer.
        if let Some(candidate) = optimizer.ask() {
            optimizer.tell(candidate.clone(), Outcome::from(1.0)).unwrap();
            let mut restored = racecars::load(&optimizer.save()).unwrap();
            assert_refused(&mut *restored, candidate, ErrorKind::Repeated);
        }
    }
}

#[test]
fn a_candidate_that_was_never_asked_is_refused() {
    for case in cases() {
        let mut other = case.session(1);
        other.steps(100);
        let Some(foreign) = other.out.pop() else { continue };
        let mut optimizer = case.optimizer(Some(100), 34);
        assert_refused(&mut *optimizer, foreign, ErrorKind::Unasked);
    }
}

#[test]
fn a_candidate_of_another_space_is_refused() {
    for case in cases() {
        let dimension = case.space.dimension();
        for (there, offset) in [(dimension, 1e306), (dimension, -3.5), (dimension + 1, 0.0)] {
            let elsewhere = Space::cube(there, offset - 0.25, offset + f64::MAX / 16.0).unwrap();
            let mut other = Algorithm::random().optimizer(&elsewhere, None, 1).unwrap();
            let mut optimizer = case.optimizer(Some(100), 35);
            // A candidate with the same id is pending here.
            let (Some(foreign), Some(own)) = (other.ask(), optimizer.ask()) else { continue };
            assert_eq!(foreign.id(), own.id());
            assert_refused(&mut *optimizer, foreign, ErrorKind::Point);
            optimizer.tell(own, Outcome::from(1.0)).unwrap();
        }
    }
}

#[test]
fn a_candidate_of_another_discrete_space_is_refused_even_if_its_point_fits() {
    let space = Space::builder().integer("a", 0, 9).integer("b", 0, 9).build().unwrap();
    let smaller = Space::builder().integer("a", 0, 4).integer("b", 1, 9).build().unwrap();
    for name in Algorithm::NAMES {
        let algorithm: Algorithm = name.parse().unwrap();
        for seed in 0..20 {
            let Ok(mut optimizer) = algorithm.optimizer(&space, None, seed) else { continue };
            let mut other = algorithm.optimizer(&smaller, None, seed).unwrap();
            let (own, foreign) = (optimizer.ask().unwrap(), other.ask().unwrap());
            space.check(foreign.point()).unwrap();
            assert_refused(&mut *optimizer, foreign, ErrorKind::Point);
            optimizer.tell(own, Outcome::from(1.0)).unwrap();
        }
    }
}

#[test]
fn a_known_point_is_told_like_a_candidate() {
    for case in cases() {
        let (mut optimizer, out) = after_some_steps(&case, 36);
        let mut random = Random::new(36);
        let told = optimizer.told();
        let before = optimizer.best().map(|best| best.rank);

        let worse = draw(&case.space, &mut random);
        optimizer.tell(Candidate::known(worse), Outcome::from(1e9)).unwrap();
        if before.is_some_and(|rank| rank.value().is_some()) {
            assert_eq!(optimizer.best().map(|best| best.rank), before);
        }
        let better = draw(&case.space, &mut random);
        optimizer.tell(Candidate::known(better.clone()), Outcome::from(-1e9)).unwrap();
        let best = optimizer.best().unwrap();
        assert_eq!(best.rank.value(), Some(-1e9));
        assert_eq!(bits(best.point), bits(&better));

        assert_eq!(optimizer.told(), told + 2);
        assert_eq!(optimizer.pending(), out.len());
        for candidate in out {
            optimizer.tell(candidate, Outcome::from(1.0)).unwrap();
        }
        assert_eq!(optimizer.best().unwrap().rank.value(), Some(-1e9));
    }
}

#[test]
fn an_optimizer_can_start_from_known_points_alone() {
    for case in cases() {
        let mut random = Random::new(37);
        let mut optimizer = case.optimizer(Some(100), 37);
        for _ in 0..40 {
            // Some points are told twice.
            let point = draw(&case.space, &mut random);
            for _ in 0..=random.below(2) {
                let value = bowl(&case.space, &point);
                optimizer.tell(Candidate::known(point.clone()), Outcome::from(value)).unwrap();
            }
        }
        for _ in 0..40 {
            let Some(candidate) = optimizer.ask() else { break };
            case.space.check(candidate.point()).unwrap();
            optimizer.tell(candidate, Outcome::from(0.0)).unwrap();
        }
    }
}

#[test]
fn a_known_point_outside_of_the_space_is_refused() {
    for case in cases() {
        let (mut optimizer, _) = after_some_steps(&case, 38);
        let good = draw(&case.space, &mut Random::new(38));
        let dimension = good.len();

        let longer = [&good[..], &[0.0]].concat();
        for wrong in [vec![], longer, good[1..].to_vec()] {
            assert_refused(&mut *optimizer, Candidate::known(wrong), ErrorKind::Point);
        }
        for index in [0, dimension / 2, dimension - 1] {
            let axis = case.space.axis(index);
            let extent = axis.extent();
            let mut wrong = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
            wrong.extend([extent.low.next_down(), extent.high.next_up()]);
            wrong.extend([f64::MIN, f64::MAX]);
            if axis.count().is_some() {
                wrong.extend([0.5, -1.0, extent.high - 0.25]);
            }
            for wrong in wrong.into_iter().filter(|&x| !(axis.contains(x) && x.fract() == 0.0)) {
                let mut point = good.clone();
                point[index] = wrong;
                assert_refused(&mut *optimizer, Candidate::known(point), ErrorKind::Point);
            }
        }
    }
}
