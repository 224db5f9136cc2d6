//! The drivers' promises: order, stops, failures, directions, starts, resumption.

#![allow(clippy::unwrap_used, clippy::panic)]

use racecars::{
    Algorithm, Cancel, Flow, Outcome, Point, Run, Solution, Space, StopReason, Workers, load,
    maximize, minimize,
};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

fn cube() -> Space {
    Space::cube(8, -5.0, 5.0).unwrap()
}

fn sphere(point: Point<'_>) -> f64 {
    point.coordinates().iter().map(|x| (x - 1.0) * (x - 1.0)).sum()
}

/// What a run proposed and got, to the bit.
fn trace(run: impl FnOnce(Run<'_>) -> Solution, space: &Space) -> (Vec<u64>, Solution) {
    let mut values = Vec::new();
    let solution = run(minimize(space).budget(600).seed(11).observe(|seen| {
        values.push(seen.outcome.value().unwrap().to_bits());
        Flow::Continue
    }));
    (values, solution)
}

#[test]
fn deterministic_runs_are_the_same_on_every_number_of_threads() {
    let space = cube();
    for algorithm in Algorithm::NAMES {
        let Ok(algorithm) = algorithm.parse::<Algorithm>() else { panic!("{algorithm}") };
        let on = |threads, lookahead| {
            let workers = Workers::Deterministic { threads, lookahead };
            let algorithm = algorithm.clone();
            // Unequal times shuffle the order in which evaluations end.
            let slow = |point: Point<'_>| {
                let value = sphere(point);
                std::thread::sleep(Duration::from_micros((value * 7.0) as u64 % 40));
                value
            };
            trace(|run| run.algorithm(algorithm).run_on(workers, slow).unwrap(), &space).0
        };
        let one = on(1, 8);
        assert_eq!(one.len(), 600);
        for threads in [2, 3, 8, 20] {
            assert!(on(threads, 8) == one, "{algorithm} on {threads} threads");
        }
        let sequential =
            trace(|run| run.algorithm(algorithm.clone()).run(sphere).unwrap(), &space).0;
        assert!(on(4, 1) == sequential, "{algorithm}: a lookahead of 1 is the sequential run");
    }
}

#[test]
fn asynchronous_workers_are_all_busy_and_the_budget_is_kept() {
    let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let solution = minimize(&cube())
        .budget(103)
        .run_on(Workers::Asynchronous(4), |point| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(2));
            now.fetch_sub(1, Ordering::SeqCst);
            sphere(point)
        })
        .unwrap();
    assert_eq!((solution.evaluations(), solution.stop()), (103, StopReason::Evaluations));
    assert_eq!(most.load(Ordering::SeqCst), 4);
    assert_eq!(solution.optimizer().pending(), 0);
}

#[test]
fn every_stop_rule_stops_and_is_named() {
    let space = cube();
    let stop = |solution: Solution| (solution.stop(), solution.evaluations());
    assert_eq!(stop(minimize(&space).budget(7).run(sphere).unwrap()), (StopReason::Evaluations, 7));

    let slow = |point: Point<'_>| {
        std::thread::sleep(Duration::from_millis(5));
        sphere(point)
    };
    let timed = minimize(&space).time_limit(Duration::from_millis(60)).run(slow).unwrap();
    assert_eq!(timed.stop(), StopReason::Time);
    assert!((1..=20).contains(&timed.evaluations()));

    let reached = minimize(&space).budget(100_000).target(5.0).run(sphere).unwrap();
    assert!(reached.value().unwrap() <= 5.0);
    assert_eq!(reached.stop(), StopReason::Target);

    let flat = minimize(&space).patience(50).run(|_| 1.0).unwrap();
    assert_eq!(stop(flat), (StopReason::NoImprovement, 51));
    let mut value = 1.0;
    let nearly_flat = minimize(&space).patience(50).patience_tolerance(0.5).run(|_| {
        value -= 1e-3;
        value
    });
    assert_eq!(stop(nearly_flat.unwrap()), (StopReason::NoImprovement, 51));

    let observed = minimize(&space)
        .budget(1000)
        .observe(|seen| if seen.evaluations == 30 { Flow::Stop } else { Flow::Continue })
        .run(sphere)
        .unwrap();
    assert_eq!(stop(observed), (StopReason::Observer, 30));

    let cancel = Cancel::new();
    cancel.cancel();
    assert_eq!(
        stop(minimize(&space).cancel(&cancel).run(sphere).unwrap()),
        (StopReason::Interrupted, 0)
    );

    let tiny = Space::builder().boolean("a").categorical("b", ["x", "y", "z"]).build().unwrap();
    for workers in [Workers::Asynchronous(3), Workers::deterministic(2)] {
        let used_up = minimize(&tiny).budget(100).run_on(workers, |_| 1.0).unwrap();
        // Six points, and the first one again, to detect noise.
        assert_eq!(stop(used_up), (StopReason::Exhausted, 7));
    }
}

#[test]
fn panics_and_nan_are_failed_evaluations() {
    let count = AtomicU64::new(0);
    let moody = |point: Point<'_>| match count.fetch_add(1, Ordering::Relaxed) % 4 {
        0 => panic!("the simulator fell over"),
        1 => f64::NAN,
        2 => f64::NEG_INFINITY,
        _ => sphere(point),
    };
    std::panic::set_hook(Box::new(|_| {}));
    let sequential = minimize(&cube()).budget(400).run(moody).unwrap();
    let parallel = minimize(&cube()).budget(400).run_on(Workers::Asynchronous(3), moody).unwrap();
    let _ = std::panic::take_hook();
    for solution in [sequential, parallel] {
        assert_eq!((solution.evaluations(), solution.failures()), (400, 300));
        let value = solution.value().unwrap();
        assert!(value.is_finite() && value >= 0.0);
        assert!(!solution.is_all_failed());
    }
}

#[test]
fn failures_are_retried_but_not_what_came_back_as_nan() {
    let calls = AtomicU64::new(0);
    // Fails twice at each point.
    let flaky = |point: Point<'_>| match calls.fetch_add(1, Ordering::Relaxed) % 3 {
        2 => Ok(sphere(point)),
        _ => Err("no licence"),
    };
    let solution = minimize(&cube()).budget(50).retries(2).run(flaky).unwrap();
    assert_eq!((solution.evaluations(), solution.failures()), (50, 0));
    assert_eq!(calls.swap(0, Ordering::Relaxed), 150);
    let workers = Workers::deterministic(1);
    let too_few = minimize(&cube()).budget(60).retries(1).run_on(workers, flaky).unwrap();
    assert!(too_few.failures() > 0 && too_few.evaluations() == 60);
    calls.store(0, Ordering::Relaxed);
    let nan = |_: Point<'_>| {
        calls.fetch_add(1, Ordering::Relaxed);
        f64::NAN
    };
    let solution = minimize(&cube()).budget(20).retries(5).run(nan).unwrap();
    assert_eq!((solution.failures(), calls.load(Ordering::Relaxed)), (20, 20));
}

#[test]
fn if_everything_fails_the_result_says_so_with_the_first_error() {
    let solution = minimize(&cube()).budget(20).run(|_| Err::<f64, _>("no licence")).unwrap();
    assert!(solution.is_all_failed() && solution.value().is_none() && solution.point().is_none());
    let error = solution.first_error().unwrap();
    assert!(error.starts_with("evaluation 1 at x=[") && error.ends_with("failed: no licence"));
    assert!(solution.to_string().starts_with("every evaluation failed"));
}

#[test]
fn the_least_infeasible_point_is_best_while_no_other_is() {
    let space = cube();
    let violation = |point: Point<'_>| Outcome::infeasible(10.0 + point.coordinates()[0]);
    let solution = minimize(&space).budget(200).run(violation).unwrap();
    assert_eq!((solution.value(), solution.infeasible()), (None, 200));
    assert!(solution.point().unwrap().coordinates()[0] < -4.0);
    assert!(solution.to_string().starts_with("no feasible point"));
}

#[test]
fn maximizing_mirrors_minimizing() {
    let space = cube();
    let low = minimize(&space).budget(500).seed(4).run(sphere).unwrap();
    let high = maximize(&space).budget(500).seed(4).run(|point| -sphere(point)).unwrap();
    assert_eq!(low.value().unwrap(), -high.value().unwrap());
    let flip = |history: &[(u64, f64)]| -> Vec<(u64, f64)> {
        history.iter().map(|&(evaluation, value)| (evaluation, -value)).collect()
    };
    assert_eq!(low.history().improvements(), flip(high.history().improvements()));
    let reached = maximize(&space).target(-4.0).run(|point| -sphere(point)).unwrap();
    assert_eq!(reached.stop(), StopReason::Target);
    assert!(reached.value().unwrap() >= -4.0);
}

#[test]
fn trials_are_kept_when_asked_for_as_observers_see_them() {
    let space = Space::cube(3, -1.0, 1.0).unwrap();
    let mut seen = Vec::new();
    let run = || minimize(&space).budget(40).seed(3);
    let solution = run()
        .keep_trials()
        .observe(|progress| {
            seen.push((
                progress.point.coordinates().to_vec(),
                progress.outcome.clone(),
                progress.improved,
            ));
            Flow::Continue
        })
        .run(sphere)
        .unwrap();
    let kept = |solution: &Solution| -> Vec<(Vec<f64>, Outcome, bool)> {
        let trials = solution.trials();
        assert_eq!(trials.len(), 40);
        let trials = trials.map(|trial| {
            assert_eq!(trial.point[1], trial.point.coordinates()[1]);
            (trial.point.coordinates().to_vec(), trial.outcome.clone(), trial.improved)
        });
        trials.collect()
    };
    assert_eq!(kept(&solution), seen);
    let numbers: Vec<u64> = solution.trials().map(|trial| trial.trial).collect();
    assert_eq!(numbers, (0..40).collect::<Vec<u64>>());
    let threads = Workers::Deterministic { threads: 2, lookahead: 1 };
    assert_eq!(kept(&run().keep_trials().run_on(threads, sphere).unwrap()), seen);
    assert_eq!(run().run(sphere).unwrap().trials().len(), 0);
}

#[test]
fn starts_are_evaluated_first_and_known_points_are_not() {
    let space = cube();
    let mut evaluated = Vec::new();
    let solution = minimize(&space)
        .start(vec![2.0; 8])
        .start(vec![3.0; 8])
        .known(vec![1.0; 8], -1.0)
        .budget(30)
        .run(|point| {
            evaluated.push(point.coordinates().to_vec());
            sphere(point)
        })
        .unwrap();
    assert_eq!(evaluated[..2], [vec![2.0; 8], vec![3.0; 8]]);
    assert!(!evaluated.contains(&vec![1.0; 8]));
    assert_eq!((solution.evaluations(), solution.value()), (30, Some(-1.0)));
    assert_eq!(solution.history().improvements()[0], (0, -1.0));
    assert!(minimize(&space).start(vec![9.0; 8]).run(sphere).is_err());
    assert!(minimize(&space).known(vec![1.0; 7], 1.0).run(sphere).is_err());
}

#[test]
fn a_run_goes_on_where_another_stopped() {
    let space = cube();
    let algorithm = Algorithm::race_cars;
    let whole = algorithm().optimizer(&space, Some(900), 5).unwrap();
    let whole = minimize(&space).optimizer(whole).budget(900).run(sphere).unwrap();
    let half = algorithm().optimizer(&space, Some(900), 5).unwrap();
    let half = minimize(&space).optimizer(half).budget(400).run(sphere).unwrap();
    let half = load(&half.optimizer().save()).unwrap();
    let rest = minimize(&space).optimizer(half).budget(500).run(sphere).unwrap();
    assert_eq!(whole.optimizer().save(), rest.optimizer().save());
    let other = Space::cube(3, 0.0, 1.0).unwrap();
    assert!(minimize(&other).optimizer(rest.into_optimizer()).run(sphere).is_err());
}

#[test]
fn nonsense_is_refused() {
    let space = cube();
    assert!(minimize(&space).budget(0).run(sphere).is_err());
    assert!(minimize(&space).patience(0).run(sphere).is_err());
    assert!(minimize(&space).target(f64::NAN).run(sphere).is_err());
    assert!(minimize(&space).run_on(Workers::Asynchronous(0), sphere).is_err());
    assert!(
        minimize(&space)
            .run_on(Workers::Deterministic { threads: 2, lookahead: 0 }, sphere)
            .is_err()
    );
}

#[test]
fn without_a_limit_a_run_stops_after_100_evaluations_per_dimension() {
    let solution = minimize(&Space::cube(20, 0.0, 1.0).unwrap()).run(sphere).unwrap();
    assert_eq!(solution.evaluations(), 2000);
}
