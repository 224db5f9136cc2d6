//! Outcomes of every kind: the search continues, and the best is the best told.

use crate::cases::cases;
use crate::common::{bits, bowl};
use racecars::random::Random;
use racecars::{Outcome, Rank};

/// An outcome without a value.
fn random_failure(random: &mut Random) -> Outcome {
    match random.below(8) {
        0 => Outcome::Value(f64::NAN),
        1 => Outcome::Value(f64::INFINITY),
        2 => Outcome::Value(f64::NEG_INFINITY),
        3 => Outcome::from(f64::NAN),
        4 => Outcome::infeasible(random.unit()),
        5 => Outcome::Infeasible { violation: f64::NAN, value: None },
        6 => Outcome::failed("crashed"),
        _ => Outcome::failed("late"),
    }
}

#[test]
fn the_best_is_the_best_told_at_any_failure_rate() {
    for case in cases() {
        for failure_rate in [0.0, 0.3, 0.9, 1.0] {
            let mut random = Random::new(1);
            let mut optimizer = case.optimizer(Some(200), 21);
            let mut told: Vec<(Rank, Vec<u64>)> = Vec::new();
            let steps = case.space.cardinality().map_or(100, |points| points.min(100));
            for _ in 0..steps {
                let candidate = optimizer.ask().unwrap();
                case.space.check(candidate.point()).unwrap();
                let outcome = if random.chance(failure_rate) {
                    random_failure(&mut random)
                } else {
                    Outcome::from(bowl(&case.space, candidate.point()))
                };
                told.push((outcome.rank(), bits(candidate.point())));
                optimizer.tell(candidate, outcome).unwrap();

                let least = told.iter().map(|(rank, _)| *rank).min().unwrap();
                match optimizer.best() {
                    None => assert!(least.is_failure()),
                    Some(best) => {
                        assert!(!best.rank.is_failure());
                        assert_eq!(best.rank, least);
                        assert!(told.contains(&(best.rank, bits(best.point))));
                    }
                }
            }
        }
    }
}

#[test]
fn if_all_evaluations_fail_there_is_no_best_and_the_search_continues() {
    for case in cases() {
        let mut optimizer = case.optimizer(Some(50), 22);
        let steps = case.space.cardinality().map_or(80, |points| points.min(80));
        for step in 0..steps {
            let candidate = optimizer.ask().unwrap();
            let outcome =
                [Outcome::Value(f64::NAN), Outcome::failed("no"), Outcome::failed("late")]
                    [step as usize % 3]
                    .clone();
            optimizer.tell(candidate, outcome).unwrap();
            assert!(optimizer.best().is_none() && optimizer.best_point().is_none());
        }
        assert_eq!(optimizer.told(), steps);
    }
}

#[test]
fn a_feasible_point_is_better_than_any_infeasible_one() {
    for case in cases() {
        let mut optimizer = case.optimizer(None, 23);
        let mut point = vec![0.0; case.space.dimension()];
        case.space.draw(&mut Random::new(1), &mut point);
        let known = || racecars::Candidate::known(point.clone());
        optimizer.tell(known(), Outcome::infeasible(2.0)).unwrap();
        optimizer.tell(known(), Outcome::infeasible(0.5)).unwrap();
        assert_eq!(optimizer.best().unwrap().rank, Outcome::infeasible(0.5).rank());
        optimizer.tell(known(), Outcome::from(f64::MAX)).unwrap();
        optimizer.tell(known(), Outcome::infeasible(0.0)).unwrap();
        assert_eq!(optimizer.best().unwrap().rank.value(), Some(f64::MAX));
    }
}

#[test]
fn values_of_any_magnitude_are_ordered() {
    let values = [f64::MAX, 1e300, 1.0, f64::MIN_POSITIVE, 5e-324, 0.0, -5e-324, -1.0, f64::MIN];
    for case in cases() {
        let mut optimizer = case.optimizer(Some(100), 24);
        let mut last: Option<(Vec<f64>, f64)> = None;
        // Repeated, so that training sets fill with them.
        for value in values.iter().cycle().take(3 * values.len()) {
            let Some(candidate) = optimizer.ask() else { break };
            // A point that is asked again to detect noise has the same value.
            let again = last.filter(|(point, _)| point == candidate.point());
            let value = &again.map_or(*value, |(_, value)| value);
            last = Some((candidate.point().to_vec(), *value));
            let before = optimizer.best().map(|best| best.rank);
            optimizer.tell(candidate, Outcome::from(*value)).unwrap();
            let now = Outcome::from(*value).rank();
            assert_eq!(optimizer.best().unwrap().rank, before.map_or(now, |rank| rank.min(now)));
        }
    }
}
