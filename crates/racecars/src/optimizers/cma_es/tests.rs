//! CMA-ES as a whole: quality on small problems, and manners that are its own.

use super::*;
use crate::error::ErrorKind;
use crate::optimizers::load;

fn sphere(x: &[f64]) -> f64 {
    x.iter().map(|x| (x - 0.2) * (x - 0.2)).sum()
}

fn cma(space: &Space, settings: CmaEs, seed: u64) -> Cma {
    Cma::new(space, &settings, seed).unwrap()
}

fn separable() -> CmaEs {
    CmaEs { separable: true, ..Default::default() }
}

/// Evaluates so many candidates, one after the other.
fn run(optimizer: &mut dyn Optimizer, evaluations: usize, f: impl Fn(&[f64]) -> f64) -> f64 {
    for _ in 0..evaluations {
        let Some(candidate) = optimizer.ask() else { break };
        optimizer.space().check(candidate.point()).unwrap();
        let outcome = Outcome::from(f(candidate.point()));
        optimizer.tell(candidate, outcome).unwrap();
    }
    optimizer.best().and_then(|best| best.rank.value()).unwrap_or(f64::INFINITY)
}

#[test]
fn a_sphere_is_solved_to_the_last_digits() {
    let space = Space::cube(10, -10.0, 10.0).unwrap();
    for settings in [CmaEs::default(), separable()] {
        let best = run(&mut cma(&space, settings, 1), 5000, sphere);
        assert!(best < 1e-18, "{best}");
    }
}

#[test]
fn an_optimum_on_the_bounds_is_found() {
    let space = Space::cube(10, -10.0, 10.0).unwrap();
    let slope = |x: &[f64]| -> f64 { x.iter().map(|x| x + 10.0).sum() };
    let best = run(&mut cma(&space, CmaEs::default(), 1), 5000, slope);
    assert!(best < 1e-9, "{best}");
}

#[test]
fn a_flat_objective_leads_to_restarts_with_more_candidates() {
    let space = Space::cube(2, -10.0, 10.0).unwrap();
    for (restarts, population) in [(Restarts::None, 6), (Restarts::Ipop, 192)] {
        let mut cma = cma(&space, CmaEs { restarts, ..Default::default() }, 1);
        run(&mut cma, 3000, |_| 1.0);
        assert_eq!(cma.last_stop(), Some(Stop::Values));
        assert_eq!(cma.population(), population);
    }
}

#[test]
fn integers_booleans_and_reals_are_searched_together() {
    let space = Space::builder()
        .reals("x", 3, -5.0, 5.0)
        .integers("i", 3, -20, 20)
        .log_integer("k", 1, 1000)
        .boolean("b")
        .build()
        .unwrap();
    let k = space.encode([
        ("x", vec![0.0; 3].into()),
        ("i", vec![7i64; 3].into()),
        ("k", 30.into()),
        ("b", true.into()),
    ]);
    let optimum = k.unwrap();
    let f = |x: &[f64]| -> f64 { x.iter().zip(&optimum).map(|(x, o)| (x - o) * (x - o)).sum() };
    for settings in [CmaEs::default(), separable()] {
        let solved = (0..10).filter(|&seed| run(&mut cma(&space, settings, seed), 4000, f) < 1e-6);
        assert!(solved.count() >= 9);
    }
}

#[test]
fn a_discrete_space_is_exhausted_without_repeats() {
    let space = Space::builder().integers("i", 2, 0, 9).boolean("b").build().unwrap();
    let mut cma = cma(&space, CmaEs::default(), 3);
    let mut seen = std::collections::HashSet::new();
    while let Some(candidate) = cma.ask() {
        assert!(seen.insert(space.key(candidate.point())));
        let value = sphere(candidate.point());
        cma.tell(candidate, Outcome::from(value)).unwrap();
    }
    assert_eq!(seen.len(), 200);
    assert!(cma.restarts() > 0);
}

#[test]
fn unordered_coordinates_are_refused() {
    let space = Space::builder().categorical("c", ["a", "b", "c"]).build().unwrap();
    for settings in [CmaEs::default(), separable()] {
        let error = Cma::new(&space, &settings, 1).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Setting);
        assert!(error.to_string().contains("`c`"), "{error}");
    }
}

#[test]
fn lost_and_late_candidates_do_not_stall_it() {
    let space = Space::cube(5, -10.0, 10.0).unwrap();
    let mut cma = cma(&space, CmaEs::default(), 1);
    let mut random = Random::new(1);
    let mut out = Vec::new();
    for step in 0..6000 {
        // Some thirty are out, four times the population; every fifth is lost.
        let candidate = cma.ask().unwrap();
        if step % 5 != 0 {
            out.push(candidate);
        }
        if out.len() > 30 {
            let candidate = out.swap_remove(random.index(out.len()));
            let value = sphere(candidate.point());
            cma.tell(candidate, Outcome::from(value)).unwrap();
        }
    }
    assert!(cma.best().unwrap().rank.value().unwrap() < 1e-12, "{:?}", cma.best());
    assert!(cma.state.generation.len() <= 4 * cma.population() + 30);
}

#[test]
fn failures_alone_lead_to_restarts_and_some_are_no_trouble() {
    let space = Space::cube(5, -10.0, 10.0).unwrap();
    let mut failing = cma(&space, CmaEs::default(), 1);
    run(&mut failing, 1000, |_| f64::NAN);
    assert_eq!(failing.last_stop(), Some(Stop::Failures));
    assert!(failing.best().is_none());
    let half = |x: &[f64]| if x[0] > 0.5 { f64::NAN } else { sphere(x) };
    let best = run(&mut cma(&space, CmaEs::default(), 1), 3000, half);
    assert!(best < 1e-10, "{best}");
}

#[test]
fn a_point_known_before_the_first_ask_is_the_start() {
    let space = Space::cube(20, -10.0, 10.0).unwrap();
    let settings = CmaEs { sigma: Some(1e-3), ..Default::default() };
    let mut cma = cma(&space, settings, 1);
    for x in [5.0, 0.3, -7.0] {
        let point = vec![x; 20];
        let value = sphere(&point);
        cma.tell(Candidate::known(point), Outcome::from(value)).unwrap();
    }
    let first = cma.ask().unwrap();
    assert!(first.point().iter().all(|x| (x - 0.3).abs() < 0.2), "{first:?}");
}

#[test]
fn known_points_pull_the_search_along() {
    let space = Space::cube(10, -10.0, 10.0).unwrap();
    let after = |injected: bool| {
        let mut cma = cma(&space, CmaEs::default(), 2);
        for _ in 0..30 {
            run(&mut cma, 10, sphere);
            if injected {
                cma.tell(Candidate::known(vec![0.2; 10]), Outcome::from(0.0)).unwrap();
            }
        }
        sphere(&cma.state.distribution.mean.iter().map(|m| 20.0 * m - 10.0).collect::<Vec<_>>())
    };
    assert!(after(true) < 0.1 * after(false));
}

#[test]
fn a_restored_run_goes_on_to_the_bit() {
    let mixed = Space::builder().reals("x", 4, -5.0, 5.0).integers("i", 3, 0, 9).build().unwrap();
    for (space, settings) in [
        (Space::cube(6, -10.0, 10.0).unwrap(), CmaEs::default()),
        (Space::cube(6, -10.0, 10.0).unwrap(), separable()),
        (mixed, CmaEs::default()),
    ] {
        for evaluations in [0, 1, 7, 100, 1234] {
            let mut first = cma(&space, settings, 5);
            run(&mut first, evaluations, sphere);
            // One candidate is out across the save.
            let out = first.ask().unwrap();
            let mut second = load(&first.save()).unwrap();
            assert_eq!(second.name(), settings.resolve(&space).unwrap().name());
            for optimizer in [&mut first as &mut dyn Optimizer, &mut *second] {
                optimizer.tell(out.clone(), Outcome::from(sphere(out.point()))).unwrap();
                run(optimizer, 500, sphere);
            }
            assert_eq!(first.save(), second.save());
            assert_eq!(first.ask(), second.ask());
        }
    }
}

#[test]
fn states_that_contradict_themselves_are_refused() {
    let space = Space::cube(3, -1.0, 1.0).unwrap();
    let broken: [fn(&mut State); 5] = [
        |state| state.distribution.sigma = 0.0,
        |state| state.distribution.mean[1] = f64::NAN,
        |state| state.distribution.mean.push(0.0),
        |state| state.schedule.population = 1 << 40,
        |state| state.settings.separable = true,
    ];
    for breaks in broken {
        let mut cma = cma(&space, CmaEs::default(), 1);
        run(&mut cma, 50, sphere);
        assert!(load(&cma.save()).is_ok());
        breaks(&mut cma.state);
        assert_eq!(load(&cma.save()).err().unwrap().kind(), ErrorKind::Saved);
    }
}

#[test]
fn a_hundred_thousand_coordinates_are_no_trouble() {
    let space = Space::cube(100_000, -10.0, 10.0).unwrap();
    let mut cma = cma(&space, separable(), 1);
    let first = run(&mut cma, 1, sphere);
    let later = run(&mut cma, 150, sphere);
    assert!(later < first);
}
