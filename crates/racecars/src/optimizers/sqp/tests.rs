use crate::optimizers::{Algorithm, Optimizer, load};
use crate::outcome::Outcome;
use crate::space::Space;
use std::collections::VecDeque;

/// The best feasible value after this many evaluations with `out` candidates out at a time. A run that is saved and
/// loaded all the time is the same.
fn minimized(
    algorithm: &Algorithm,
    n: usize,
    budget: u64,
    out: usize,
    outcome: impl Fn(&[f64]) -> Outcome,
) -> f64 {
    let space = Space::cube(n, -5.0, 5.0).unwrap();
    let new = || algorithm.optimizer(&space, Some(budget), 1).unwrap();
    let (mut straight, mut broken): (Box<dyn Optimizer>, _) = (new(), new());
    let mut pending = VecDeque::new();
    while straight.told() < budget {
        if straight.told() % 7 == 0 {
            broken = load(&broken.save()).unwrap();
        }
        while pending.len() < out {
            let (a, b) = (straight.ask().unwrap(), broken.ask().unwrap());
            assert_eq!(a, b);
            pending.push_back((a, b));
        }
        let (a, b) = pending.pop_front().unwrap();
        let found = outcome(a.point());
        straight.tell(a, found.clone()).unwrap();
        broken.tell(b, found).unwrap();
    }
    assert_eq!(straight.save(), broken.save());
    straight.best().unwrap().rank.value().unwrap_or(f64::INFINITY)
}

/// The nearest point to (3, ..., 3) in a sphere cut by a plane; constraints of very different scales.
fn cut_sphere(x: &[f64]) -> Outcome {
    let value = x.iter().map(|x| (x - 3.0).powi(2)).sum::<f64>();
    let sphere = 1e-3 * (x.iter().map(|x| x * x).sum::<f64>() - x.len() as f64);
    Outcome::measured(value, [sphere, 1e4 * (x[0] - 0.5)])
}

/// The optimum of [`cut_sphere`].
fn optimum(n: usize) -> f64 {
    let rest = ((n as f64 - 0.25) / (n as f64 - 1.0)).sqrt();
    6.25 + (n as f64 - 1.0) * (3.0 - rest).powi(2)
}

#[test]
fn constraints_of_any_scale_are_met_and_used() {
    for algorithm in [Algorithm::sqp(), Algorithm::auto()] {
        for n in [2, 6] {
            let found = minimized(&algorithm, n, 60 * n as u64, 1, cut_sphere);
            assert!((0.0..1e-6).contains(&(found - optimum(n))), "{algorithm} {n}: {found}");
        }
    }
}

#[test]
fn several_candidates_may_be_out() {
    for out in [3, 16] {
        let found = minimized(&Algorithm::sqp(), 4, 1200, out, cut_sphere);
        assert!((0.0..1e-6).contains(&(found - optimum(4))), "{out}: {found}");
    }
}

#[test]
fn values_without_single_constraints_lead_to_the_boundary() {
    let sum = |x: &[f64]| {
        let (value, violation) = (x[0] + x[1], (4.0 - x[0] * x[0] - x[1]).max(0.0));
        match violation > 0.0 {
            true => Outcome::Infeasible { violation, value: Some(value) },
            false => Outcome::from(value),
        }
    };
    let found = minimized(&Algorithm::auto(), 2, 400, 1, sum);
    assert!(found < -5.9, "{found}");
}

#[test]
fn points_without_a_value_and_without_constraints_are_survived() {
    // The objective is not evaluated outside.
    let inside = |x: &[f64]| match cut_sphere(x) {
        outcome if outcome.violation().is_some() => {
            Outcome::measured(None, outcome.constraints().unwrap().to_vec())
        }
        outcome => outcome,
    };
    let found = minimized(&Algorithm::sqp(), 3, 600, 1, inside);
    assert!(found - optimum(3) < 0.5, "{found}");
    let plain = |x: &[f64]| Outcome::from(x.iter().map(|x| (x - 1.0).powi(2)).sum::<f64>());
    assert!(minimized(&Algorithm::sqp(), 5, 200, 1, plain) < 1e-9);
}
