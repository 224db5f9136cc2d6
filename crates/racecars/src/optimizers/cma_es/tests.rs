//! CMA-ES as a whole: quality on small problems, restarts, injection, late and lost candidates.

use super::*;
use crate::optimizers::shell::Shell;
use crate::optimizers::{Candidate, Optimizer, load};
use crate::outcome::Outcome;

/// The names of the two variants, and whether each is the separable one.
const VARIANTS: [(&str, bool); 2] = [("cma-es", false), ("sep-cma-es", true)];

fn sphere(x: &[f64]) -> f64 {
    x.iter().map(|x| (x - 0.2) * (x - 0.2)).sum()
}

fn variant(
    (name, separable): (&'static str, bool),
    space: &Space,
    settings: CmaEs,
    seed: u64,
) -> Shell<CmaEsSearch> {
    let setup = Setup { space, budget: None, seed };
    let make = |random: &mut Random| CmaEsSearch::new(&settings, separable, setup, random);
    Shell::new(name, setup, make).unwrap()
}

/// CMA-ES with the full covariance matrix.
fn cma(space: &Space, settings: CmaEs, seed: u64) -> Shell<CmaEsSearch> {
    variant(VARIANTS[0], space, settings, seed)
}

/// Evaluates this many candidates, one after the other, and returns the best value.
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
fn a_sphere_is_minimized_to_the_last_digits() {
    let space = Space::cube(10, -10.0, 10.0).unwrap();
    for names in VARIANTS {
        let best = run(&mut variant(names, &space, CmaEs::default(), 1), 5000, sphere);
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
fn a_flat_objective_causes_restarts_with_larger_populations() {
    let space = Space::cube(2, -10.0, 10.0).unwrap();
    for (restarts, population) in [(Restarts::None, 6), (Restarts::Ipop, 192)] {
        let mut cma = cma(&space, CmaEs::default().restarts(restarts), 1);
        run(&mut cma, 3000, |_| 1.0);
        assert_eq!(cma.search().last_stop, Some(Stop::TolFun));
        assert_eq!(cma.search().schedule.population, population);
    }
}

#[test]
fn integers_booleans_and_reals_are_optimized_together() {
    let space = Space::builder()
        .reals("x", 3, -5.0, 5.0)
        .integers("i", 3, -20, 20)
        .log_integer("k", 1, 1000)
        .boolean("b")
        .build()
        .unwrap();
    let optimum = space.encode([
        ("x", vec![0.0; 3].into()),
        ("i", vec![7i64; 3].into()),
        ("k", 30.into()),
        ("b", true.into()),
    ]);
    let optimum = optimum.unwrap();
    let f = |x: &[f64]| -> f64 { x.iter().zip(&optimum).map(|(x, o)| (x - o) * (x - o)).sum() };
    for names in VARIANTS {
        let value = |seed: u64| run(&mut variant(names, &space, CmaEs::default(), seed), 4000, f);
        assert!((0..10).filter(|&seed| value(seed) < 1e-6).count() >= 9);
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
    assert!(cma.search().schedule.restarts > 0);
}

#[test]
fn lost_and_late_candidates_do_not_stall_the_search() {
    let space = Space::cube(5, -10.0, 10.0).unwrap();
    let mut cma = cma(&space, CmaEs::default(), 1);
    let mut random = Random::new(1);
    let mut out = Vec::new();
    for step in 0..6000 {
        // About thirty candidates are pending, four times the population. Every fifth is lost.
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
    let CmaEsSearch { generation, schedule, .. } = cma.search();
    assert!(generation.len() <= 4 * schedule.population + 30);
}

#[test]
fn runs_of_failures_cause_restarts_and_some_failures_do_no_harm() {
    let space = Space::cube(5, -10.0, 10.0).unwrap();
    let mut failing = cma(&space, CmaEs::default(), 1);
    run(&mut failing, 1000, |_| f64::NAN);
    assert_eq!(failing.search().last_stop, Some(Stop::Failures));
    assert!(failing.best().is_none());
    let half = |x: &[f64]| if x[0] > 0.5 { f64::NAN } else { sphere(x) };
    let best = run(&mut cma(&space, CmaEs::default(), 1), 3000, half);
    assert!(best < 1e-10, "{best}");
}

#[test]
fn the_search_starts_at_the_best_point_known_before_the_first_ask() {
    let space = Space::cube(20, -10.0, 10.0).unwrap();
    let mut cma = cma(&space, CmaEs::default().sigma(1e-3), 1);
    for x in [5.0, 0.3, -7.0] {
        let point = vec![x; 20];
        let value = sphere(&point);
        cma.tell(Candidate::known(point), Outcome::from(value)).unwrap();
    }
    let first = cma.ask().unwrap();
    assert!(first.point().iter().all(|x| (x - 0.3).abs() < 0.2), "{first:?}");
}

#[test]
fn known_points_move_the_mean() {
    let space = Space::cube(10, -10.0, 10.0).unwrap();
    let after = |injected: bool| {
        let mut cma = cma(&space, CmaEs::default(), 2);
        for _ in 0..30 {
            run(&mut cma, 10, sphere);
            if injected {
                cma.tell(Candidate::known(vec![0.2; 10]), Outcome::from(0.0)).unwrap();
            }
        }
        let mean = &cma.search().distribution.mean;
        sphere(&mean.iter().map(|m| 20.0 * m - 10.0).collect::<Vec<_>>())
    };
    assert!(after(true) < 0.1 * after(false));
}

#[test]
fn a_restored_run_continues_bit_for_bit() {
    let mixed = Space::builder().reals("x", 4, -5.0, 5.0).integers("i", 3, 0, 9).build().unwrap();
    let cube = Space::cube(6, -10.0, 10.0).unwrap();
    for (names, space) in [(VARIANTS[0], &cube), (VARIANTS[1], &cube), (VARIANTS[0], &mixed)] {
        for evaluations in [0, 1, 7, 100, 1234] {
            let mut first = variant(names, space, CmaEs::default(), 5);
            run(&mut first, evaluations, sphere);
            // One candidate is pending while the optimizer is saved.
            let out = first.ask().unwrap();
            let mut second = load(&first.save()).unwrap();
            assert_eq!(second.name(), names.0);
            for optimizer in [&mut first as &mut dyn Optimizer, &mut *second] {
                optimizer.tell(out.clone(), Outcome::from(sphere(out.point()))).unwrap();
                run(optimizer, 500, sphere);
            }
            assert_eq!(first.save(), second.save());
            assert_eq!(first.ask(), second.ask());
        }
    }
}

/// A rotated ellipsoid with a condition number of 100.
fn ellipsoid(x: &[f64]) -> f64 {
    let pairs = x.iter().zip(x.iter().cycle().skip(1));
    1.0 + pairs.map(|(a, b)| (a + b - 0.4).powi(2) + 0.01 * (a - b).powi(2)).sum::<f64>()
}

#[test]
fn a_surrogate_replaces_most_evaluations_on_a_quadratic_function() {
    let space = Space::cube(5, -10.0, 10.0).unwrap();
    let evaluations = |surrogate: bool| {
        let mut cma = cma(&space, CmaEs::default().surrogate(surrogate), 1);
        let mut count = 0;
        while run(&mut cma, 1, ellipsoid) > 1.0 + 1e-8 {
            count += 1;
        }
        count
    };
    let (with, without) = (evaluations(true), evaluations(false));
    assert!(3 * with < without, "{with} {without}");
}

#[test]
fn a_surrogate_is_saved_to_the_bit_with_many_candidates_pending() {
    let space = Space::cube(4, -10.0, 10.0).unwrap();
    let straight = cma(&space, CmaEs::default().surrogate(true), 3);
    let broken = cma(&space, CmaEs::default().surrogate(true), 3);
    let mut runs: [Box<dyn Optimizer>; 2] = [Box::new(straight), Box::new(broken)];
    let (mut out, mut random) = (Vec::new(), Random::new(5));
    for step in 0..1500 {
        if step % 7 == 0 {
            runs[1] = load(&runs[1].save()).unwrap();
        }
        let [candidate, other] = runs.each_mut().map(|run| run.ask().unwrap());
        assert_eq!(candidate, other);
        out.push(candidate);
        while out.len() > 12 {
            let candidate = out.swap_remove(random.index(out.len()));
            let outcome = match random.index(20) {
                0 => Outcome::failed("late"),
                1 => Outcome::infeasible(1.0),
                _ => Outcome::from(ellipsoid(candidate.point())),
            };
            runs.iter_mut().for_each(|run| run.tell(candidate.clone(), outcome.clone()).unwrap());
        }
    }
    assert_eq!(runs[0].save(), runs[1].save());
    assert!(runs[0].best().unwrap().rank.value().unwrap() < 1.0 + 1e-6);
}

#[test]
fn the_deviation_is_limited_on_a_function_without_structure() {
    let space = Space::cube(5, -10.0, 10.0).unwrap();
    let rugged = |x: &[f64]| x.iter().map(|x| (1000.0 * x).sin()).sum::<f64>();
    for (settings, limit) in [(CmaEs::default(), MAX_DEVIATION), (CmaEs::default().sigma(0.5), 0.5)]
    {
        let mut cma = cma(&space, settings, 1);
        for _ in 0..200 {
            run(&mut cma, 8, rugged);
            let distribution = &cma.search().distribution;
            assert!((0..5).all(|i| distribution.deviation(i) < 1.000_001 * limit));
        }
    }
}

#[test]
fn invalid_states_are_refused() {
    let space = Space::cube(3, -1.0, 1.0).unwrap();
    let setup = Setup { space: &space, budget: None, seed: 1 };
    let broken: [fn(&mut CmaEsSearch); 6] = [
        |search| search.distribution.sigma = 0.0,
        |search| search.distribution.mean[1] = f64::NAN,
        |search| search.distribution.mean.push(0.0),
        |search| search.schedule.population = 1 << 40,
        |search| search.settings.separable = true,
        |search| search.first_ids[1] = 1,
    ];
    for breaks in broken {
        let mut search =
            CmaEsSearch::new(&CmaEs::default(), false, setup, &mut Random::new(1)).unwrap();
        let ledger = Ledger::default();
        assert_eq!(search.is_sound(&space, &ledger), Ok(true));
        breaks(&mut search);
        assert_eq!(search.is_sound(&space, &ledger), Ok(false));
    }
}

#[test]
fn the_separable_variant_works_in_a_hundred_thousand_dimensions() {
    let space = Space::cube(100_000, -10.0, 10.0).unwrap();
    let mut cma = variant(VARIANTS[1], &space, CmaEs::default(), 1);
    let first = run(&mut cma, 1, sphere);
    let later = run(&mut cma, 150, sphere);
    assert!(later < first);
}

#[test]
fn many_candidates_out_converge_in_larger_generations() {
    let space = Space::cube(2, -5.0, 5.0).unwrap();
    // A slope within a ring: small generations of late candidates collapse at its edge.
    let slope = |x: &[f64]| {
        let squared = x.iter().map(|x| x * x).sum::<f64>();
        let excess = (squared - 4.0).max(1.0 - squared);
        if excess > 0.0 { Outcome::infeasible(excess) } else { Outcome::from(x[0] + x[1]) }
    };
    for seed in 0..10 {
        let mut optimizer = cma(&space, CmaEs::default(), seed);
        for _ in 0..90 {
            let candidates: Vec<_> = (0..29).map(|_| optimizer.ask().unwrap()).collect();
            for candidate in candidates {
                let outcome = slope(candidate.point());
                optimizer.tell(candidate, outcome).unwrap();
            }
            // Few are out now, and more outcomes are told than a generation of lambda has.
            let last = optimizer.ask().unwrap();
            assert_eq!(load(&optimizer.save()).unwrap().save(), optimizer.save());
            let outcome = slope(last.point());
            optimizer.tell(last, outcome).unwrap();
        }
        let best = optimizer.best().and_then(|best| best.rank.value()).unwrap();
        assert!(best < 1e-6 - 8f64.sqrt(), "{seed}: {best}");
    }
}

/// BBOB's rotated ellipsoid (f10), with another rotation.
fn rotated_ellipsoid(n: usize, seed: u64) -> impl Fn(&[f64]) -> f64 {
    let mut random = Random::new(seed);
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for _ in 0..n {
        let mut row: Vec<f64> = (0..n).map(|_| random.normal()).collect();
        for other in &rows {
            let along: f64 = row.iter().zip(other).map(|(a, b)| a * b).sum();
            row.iter_mut().zip(other).for_each(|(a, b)| *a -= along * b);
        }
        let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
        row.iter_mut().for_each(|x| *x /= norm);
        rows.push(row);
    }
    let optimum: Vec<f64> = (0..n).map(|_| 8.0 * random.unit() - 4.0).collect();
    let bumpy = |x: f64| {
        if x == 0.0 {
            return 0.0;
        }
        let (c1, c2) = if x > 0.0 { (10.0, 7.9) } else { (5.5, 3.1) };
        let l = x.abs().ln();
        x.signum() * (l + 0.049 * ((c1 * l).sin() + (c2 * l).sin())).exp()
    };
    move |x| {
        let term = |(i, row): (usize, &Vec<f64>)| {
            let z: f64 = row.iter().zip(x).zip(&optimum).map(|((r, x), o)| r * (x - o)).sum();
            10f64.powf(6.0 * i as f64 / (n - 1) as f64) * bumpy(z).powi(2)
        };
        rows.iter().enumerate().map(term).sum()
    }
}

#[test]
fn a_surrogate_solves_an_ill_conditioned_valley_between_bounds() {
    let space = Space::cube(10, -5.0, 5.0).unwrap();
    let solved = |seed: &u64| {
        let mut cma = cma(&space, CmaEs::default().surrogate(true), *seed);
        run(&mut cma, 1500, rotated_ellipsoid(10, *seed)) < 1e-8
    };
    // Without a surrogate it takes about 6000 evaluations.
    assert!((1..=6).filter(solved).count() >= 5);
}
