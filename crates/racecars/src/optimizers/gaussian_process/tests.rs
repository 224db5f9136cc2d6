//! What a search by Gaussian process promises.

use super::*;
use crate::optimizers::shell::Shell;
use crate::optimizers::{Algorithm, Candidate, Optimizer, load};
use crate::outcome::Outcome;

fn run(space: &Space, budget: u64, seed: u64) -> Shell<GpSearch> {
    let setup = Setup { space, budget: Some(budget), seed };
    let make = |random: &mut Random| GpSearch::new(&GaussianProcess::default(), setup, random);
    Shell::new("gp", setup, make).unwrap()
}

/// Asks and tells so often, one at a time. Returns the best value.
fn drive(run: &mut Shell<GpSearch>, count: usize, mut f: impl FnMut(&[f64]) -> f64) -> f64 {
    for _ in 0..count {
        let candidate = run.ask().unwrap();
        let value = f(candidate.point());
        run.tell(candidate, Outcome::from(value)).unwrap();
    }
    run.best().unwrap().rank.value().unwrap()
}

fn bowl(point: &[f64]) -> f64 {
    point.iter().map(|x| (x - 1.0) * (x - 1.0)).sum()
}

fn mixed() -> Space {
    let space = Space::builder().reals("x", 2, -5.0, 5.0).integer("i", 0, 30);
    space.categorical("c", ["a", "b", "c", "d"]).boolean("b").build().unwrap()
}

#[test]
fn few_evaluations_are_enough_for_a_bowl() {
    let space = Space::cube(5, -5.0, 5.0).unwrap();
    for seed in 0..5 {
        let best = drive(&mut run(&space, 60, seed), 60, bowl);
        assert!(best < 1e-3, "{seed}: {best}");
    }
}

#[test]
fn values_of_many_magnitudes_are_no_obstacle() {
    let space = Space::cube(3, -5.0, 5.0).unwrap();
    let steep = |point: &[f64]| (bowl(point) / 2.0).exp() * 1e-30;
    let best = drive(&mut run(&space, 60, 1), 60, steep);
    assert!(best < 1.01e-30, "{best}");
}

#[test]
fn numbers_integers_and_categories_are_optimized_together() {
    let space = mixed();
    for seed in 0..5 {
        let mut run = run(&space, 80, seed);
        drive(&mut run, 80, |p| {
            let wrong = f64::from(p[3] != 2.0) + f64::from(p[4] != 1.0);
            bowl(&p[..2]) + 0.05 * (p[2] - 7.0).powi(2) + 3.0 * wrong
        });
        let best = run.best().unwrap();
        assert_eq!(best.point[3..], [2.0, 1.0], "{seed}");
        assert!(best.rank.value().unwrap() < 0.1, "{seed}: {best:?}");
    }
}

/// Four branches with a real of their own each. The best one is `d`.
fn branches() -> Space {
    let names = ["a", "b", "c", "d"];
    let space = Space::builder().categorical("branch", names);
    let add = |space: crate::SpaceBuilder, name: &&str| {
        space.real(format!("at_{name}"), 0.0, 1.0).when(format!("branch = {name}"))
    };
    names.iter().fold(space, add).build().unwrap()
}

fn branched(point: &[f64]) -> f64 {
    let branch = point[0] as usize;
    let at = [0.2, 0.9, 0.5, 0.8][branch];
    [0.3, 0.2, 0.1, 0.0][branch] + (point[1 + branch] - at).powi(2)
}

#[test]
fn the_best_branch_of_a_conditional_space_is_found() {
    let space = branches();
    for seed in 0..5 {
        let mut run = run(&space, 50, seed);
        let best = drive(&mut run, 50, branched);
        assert!(best < 0.01, "{seed}: {best}");
    }
}

#[test]
fn the_first_point_is_the_center_unless_something_is_known() {
    let space = Space::cube(3, -4.0, 8.0).unwrap();
    assert_eq!(run(&space, 50, 1).ask().unwrap().point(), [2.0; 3]);
    let mut run = run(&space, 50, 1);
    run.tell(Candidate::known([0.0; 3]), Outcome::from(1.0)).unwrap();
    assert_ne!(run.ask().unwrap().point(), [2.0; 3]);
}

#[test]
fn known_points_replace_the_design() {
    let space = Space::cube(2, -5.0, 5.0).unwrap();
    let (mut run, mut random) = (run(&space, 50, 1), Random::new(1));
    for _ in 0..20 {
        let mut point = [0.0; 2];
        space.draw(&mut random, &mut point);
        run.tell(Candidate::known(point), Outcome::from(bowl(&point))).unwrap();
    }
    let best = drive(&mut run, 8, bowl);
    assert_eq!(run.search().designed, 0);
    assert!(best < 0.05, "{best}");
}

#[test]
fn under_noise_the_model_is_believed_and_not_the_luckiest_value() {
    let space = Space::cube(2, -5.0, 5.0).unwrap();
    let (mut run, mut noise) = (run(&space, 120, 3), Random::new(5));
    drive(&mut run, 119, |p| bowl(p) + 2.0 * noise.normal());
    let point = run.ask().unwrap();
    let search = run.search();
    let (model, fit) = (search.derived.model.as_ref().unwrap(), search.fit.as_ref().unwrap());
    let best = (0..model.told()).min_by(|&a, &b| model.fitted(a).total_cmp(&model.fitted(b)));
    let believed = &search.samples[fit.members[best.unwrap()] as usize].sample.point;
    assert!(bowl(believed) < 2.0, "{believed:?}");
    assert!(bowl(point.point()) < 8.0, "{point:?}");
}

#[test]
fn a_converged_region_is_left_for_another() {
    let space = Space::cube(2, -5.0, 5.0).unwrap();
    let mut run = run(&space, 400, 1);
    let best = drive(&mut run, 400, bowl);
    assert!(run.restarts() > 0 && best < 1e-6, "{best}");
    let later = run.search().samples.iter().filter(|told| told.region == 1);
    let first = later.map(|told| bowl(&told.sample.point)).next().unwrap();
    assert!(first > 4.0, "the next region begins elsewhere: {first}");
}

#[test]
fn many_pending_candidates_differ_and_may_be_lost_or_fail() {
    let space = mixed();
    let mut run = run(&space, 200, 1);
    let (mut random, mut out) = (Random::new(1), Vec::new());
    for _ in 0..150 {
        out.extend(run.ask());
        if out.len() == 16 {
            let candidate: Candidate = out.swap_remove(random.index(16));
            let outcome = match random.index(6) {
                0 => continue,
                1 => Outcome::failed("late"),
                2 => Outcome::infeasible(random.unit()),
                _ => Outcome::from(bowl(candidate.point())),
            };
            run.tell(candidate, outcome).unwrap();
        }
    }
    for (i, a) in out.iter().enumerate() {
        assert!(out[..i].iter().all(|b| a.point() != b.point()));
    }
    let restored = load(&run.save()).unwrap();
    assert_eq!(restored.best(), run.best());
}

#[test]
fn a_restored_run_continues_bit_for_bit() {
    for space in [mixed(), branches(), Space::cube(4, -5.0, 5.0).unwrap()] {
        let new = || Algorithm::gp().optimizer(&space, Some(90), 3).unwrap();
        let (mut straight, mut broken) = (new(), new());
        for i in 0..90 {
            broken = load(&broken.save()).unwrap();
            let (a, b) = (straight.ask().unwrap(), broken.ask().unwrap());
            assert_eq!(a, b, "{i}");
            let failed = i % 7 == 0;
            let outcome =
                if failed { Outcome::failed("late") } else { Outcome::from(bowl(a.point())) };
            straight.tell(a, outcome.clone()).unwrap();
            broken.tell(b, outcome).unwrap();
        }
        assert_eq!(straight.save(), broken.save());
    }
}

#[test]
fn points_without_end_are_pruned() {
    let space = Space::cube(2, -5.0, 5.0).unwrap();
    let (mut run, mut random) = (run(&space, 50, 1), Random::new(1));
    for _ in 0..2 * MAX_SAMPLES + 500 {
        let mut point = [0.0; 2];
        space.draw(&mut random, &mut point);
        run.tell(Candidate::known(point), Outcome::from(bowl(&point))).unwrap();
    }
    assert!(run.search().samples.len() < 2 * MAX_SAMPLES);
    assert!(drive(&mut run, 10, bowl) < 0.01);
    assert!(load(&run.save()).is_ok());
}

#[test]
fn extreme_values_leave_a_valid_state() {
    let space = Space::cube(3, -4.0, 4.0).unwrap();
    let mut run = run(&space, 100, 1);
    let mut random = Random::new(1);
    for _ in 0..100 {
        let candidate = run.ask().unwrap();
        space.check(candidate.point()).unwrap();
        let value = random.between(-1.0, 1.0) * f64::MAX;
        run.tell(candidate, Outcome::from(value)).unwrap();
    }
    assert!(load(&run.save()).is_ok());
}

/// The mean over some seeds of the best feasible value in a small discrete space with a constraint, by the Gaussian
/// process and by random search.
fn constrained(outcome: fn(f64, f64) -> Outcome) -> [f64; 2] {
    let space = Space::builder().integers("i", 5, 0, 9).categorical("c", ["a", "b", "c"]);
    let space = space.build().unwrap();
    [Algorithm::gp(), Algorithm::random()].map(|algorithm| {
        let bests = (0..8).map(|seed| {
            let mut run = algorithm.optimizer(&space, Some(50), seed).unwrap();
            for step in 0..50 {
                let candidate = run.ask().unwrap();
                let p = candidate.point();
                // More of everything is better, up to a limit of what it costs.
                let gain: f64 = (0..5).map(|i| (3 + i) as f64 * p[i]).sum::<f64>() + p[5];
                let cost: f64 = (0..5).map(|i| ((7 * i) % 5 + 1) as f64 * p[i] * p[i]).sum();
                run.tell(candidate, outcome(-gain, cost - 300.0)).unwrap();
                if step % 20 == 19 {
                    run = load(&run.save()).unwrap();
                }
            }
            run.best().and_then(|best| best.rank.value()).unwrap_or(0.0)
        });
        bests.sum::<f64>() / 8.0
    })
}

#[test]
fn infeasible_points_are_learned_from() {
    let [measured, random] = constrained(|value, over| Outcome::measured(value, [over]));
    assert!(measured < 1.1 * random, "{measured} {random}");
}
