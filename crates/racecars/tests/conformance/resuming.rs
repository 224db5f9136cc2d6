//! A resumed run equals an uninterrupted one bit for bit.

use crate::cases::{Session, cases};
use racecars::load;
use racecars::random::Random;

#[test]
fn a_run_resumed_at_random_steps_equals_the_uninterrupted_one() {
    for case in cases() {
        let steps = 2 * case.steps();
        let mut whole = case.session(11);
        whole.steps(steps);

        let mut cuts = Random::new(12);
        let mut resumed: Session = case.session(11);
        for _ in 0..steps {
            if cuts.chance(0.05) {
                resumed.optimizer = load(&resumed.optimizer.save()).unwrap();
            }
            resumed.step();
        }
        assert!(whole.asked == resumed.asked, "the points asked differ");
        assert!(whole.optimizer.save() == resumed.optimizer.save(), "the states differ");
    }
}

#[test]
fn a_loaded_optimizer_equals_the_saved_one() {
    for case in cases() {
        for steps in [0, 1, 7, case.steps()] {
            let mut session = case.session(13);
            session.steps(steps);
            let saved = session.optimizer.save();
            let loaded = load(&saved).unwrap();
            assert!(loaded.save() == saved, "the states differ");
            assert_eq!(loaded.name(), case.algorithm.name());
            assert!(*loaded.space() == case.space);
            assert_eq!(loaded.told(), session.optimizer.told());
            assert_eq!(loaded.pending(), session.out.len());
            assert_eq!(loaded.best(), session.optimizer.best());
            assert_eq!(loaded.region(), session.optimizer.region());
        }
    }
}

#[test]
fn saving_does_not_change_the_state() {
    for case in cases() {
        let (mut watched, mut left_alone) = (case.session(14), case.session(14));
        for _ in 0..40 {
            watched.optimizer.save();
            watched.step();
            left_alone.step();
        }
        assert!(watched.optimizer.save() == left_alone.optimizer.save(), "the states differ");
    }
}

#[test]
fn bounds_are_saved_exactly() {
    // If decimal forms of bounds were not read exactly, a resumed run would drift.
    let mut random = Random::new(15);
    for _ in 0..500 {
        let (a, b) = (random.normal() * 1e3, random.normal() * 1e-3);
        let space = racecars::Space::cube(2, a.min(b), a.max(b)).unwrap();
        let optimizer = racecars::Algorithm::random().optimizer(&space, None, 1).unwrap();
        let loaded = load(&optimizer.save()).unwrap();
        assert!(*loaded.space() == space, "{space:?} became {:?}", loaded.space());
    }
}
