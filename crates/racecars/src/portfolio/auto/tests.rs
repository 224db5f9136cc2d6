//! Tests of the decisions of `auto`.

use super::*;
use crate::optimizers::{Algorithm, load};
use crate::outcome::Outcome;

fn rosenbrock(x: &[f64]) -> f64 {
    x.windows(2).map(|x| 100.0 * (x[1] - x[0] * x[0]).powi(2) + (1.0 - x[0]).powi(2)).sum()
}

/// Runs `auto` without a budget, with this many candidates out, and returns its decisions. A run that is saved
/// and loaded all the time is the same.
fn decisions(n: usize, evaluations: usize, out: usize, noise: f64) -> Vec<(u64, String)> {
    decisions_of(rosenbrock, None, n, evaluations, out, noise)
}

fn decisions_of(
    objective: fn(&[f64]) -> f64,
    budget: Option<u64>,
    n: usize,
    evaluations: usize,
    out: usize,
    noise: f64,
) -> Vec<(u64, String)> {
    let space = Space::cube(n, -5.0, 5.0).unwrap();
    let new = || Algorithm::auto().optimizer(&space, budget, 3).unwrap();
    let (mut straight, mut broken) = (new(), new());
    let (mut random, mut pending) = (Random::new(1), Vec::new());
    for i in 0..evaluations {
        if i % 7 == 0 {
            broken = load(&broken.save()).unwrap();
        }
        let (a, b) = (straight.ask().unwrap(), broken.ask().unwrap());
        assert_eq!(a, b);
        pending.push((a, b));
        if pending.len() >= out {
            let (a, b) = pending.swap_remove(random.index(out));
            let outcome = Outcome::from(objective(a.point()) + noise * random.normal());
            straight.tell(a, outcome.clone()).unwrap();
            broken.tell(b, outcome).unwrap();
        }
    }
    assert_eq!(straight.save(), broken.save());
    let portfolio = straight.portfolio().unwrap();
    assert_eq!(portfolio.noisy, noise > 0.0);
    portfolio.decisions.into_iter().map(|decision| (decision.at, decision.what)).collect()
}

#[test]
fn without_a_budget_a_descent_comes_before_the_survey_and_horizons_are_doubled() {
    let with_model =
        ["72: quadratic", "500: cma-es", "561: survey", "planned for 1000", "2000: cma-es"];
    // More candidates are out than CMA-ES takes early.
    let without =
        ["100: quadratic", "161: survey", "planned for 1000", "1000: quasi", "2000: cma-es"];
    for (out, places) in [(1, with_model), (3, with_model), (5, without)] {
        let found = decisions(10, 2500, out, 0.0);
        let position = |what: &str| found.iter().rposition(|(_, text)| text.contains(what));
        let places: Vec<Option<usize>> = places.into_iter().map(position).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{out} {found:?}");
    }
}

#[test]
fn a_descent_that_was_cut_off_takes_turns_with_a_cma_es_that_is_behind_it() {
    // A narrow valley with many bends.
    let valley: fn(&[f64]) -> f64 = |x| {
        let bends = x.windows(2).map(|x| 3e3 * (x[1] - x[0] * x[0]).powi(2));
        bends.sum::<f64>() + x.iter().map(|x| (1.0 - x).powi(2)).sum::<f64>()
    };
    for (budget, out) in [(Some(3000), 1), (None, 1), (None, 40)] {
        let found = decisions_of(valley, budget, 10, 3000, out, 0.0);
        let turns = |what: &str| found.iter().filter(|(_, text)| text.contains(what)).count();
        let behind = turns("cma-es is still behind the descent");
        assert!(behind < 50, "{budget:?} {out} {found:?}");
        assert!(budget.is_none() || behind > 0, "{budget:?} {out} {found:?}");
    }
}

#[test]
fn without_a_survey_cma_es_begins_with_a_model_of_the_descent() {
    // The square of the distance, in coordinates of very different scale that are not those of the box.
    let ellipsoid: fn(&[f64]) -> f64 = |x| {
        let sum: f64 = x.iter().sum();
        1e4 * (sum - 1.0).powi(2) + x.iter().map(|x| (x - 0.7).powi(2)).sum::<f64>()
    };
    let reason = "too few evaluations for a survey: a short descent";
    for (budget, n, out, models) in [
        (150, 5, 1, true),
        (150, 5, 3, true),
        (94, 5, 1, false),
        (150, 5, 9, false),
        (300, 10, 1, true),
        (200, 10, 1, false),
        (600, 10, 1, false),
        (160, 2, 1, true),
        (200, 2, 1, false),
        (60, 1, 1, false),
    ] {
        let found = decisions_of(ellipsoid, Some(budget), n, budget as usize, out, 0.0);
        let is_model = found.iter().any(|(_, text)| text.starts_with(reason));
        assert_eq!(is_model, models, "{budget} {n} {out} {found:?}");
    }
    let space = Space::cube(5, -5.0, 5.0).unwrap();
    let solved = crate::minimize(&space).budget(200).seed(1).run(|x| ellipsoid(x.coordinates()));
    let value = solved.unwrap().value().unwrap();
    // The minimum is 1.24998.
    assert!(value < 1.2501, "{value}");
}

#[test]
fn plateaus_after_the_descent_are_left() {
    // Steps in directions that are not those of the coordinates, and of different importance.
    let steps: fn(&[f64]) -> f64 = |x| {
        let sum: f64 = x.iter().map(|x| x - 1.3).sum();
        let step = |(i, x): (i32, &f64)| 3f64.powi(i) * (x - 1.3 - 0.5 * sum).round().powi(2);
        (0..).zip(x).map(step).sum()
    };
    let space = Space::cube(5, -5.0, 5.0).unwrap();
    let solved = |seed: u64| {
        let run = crate::minimize(&space).budget(400).seed(seed);
        run.run(|x| steps(x.coordinates())).unwrap().value().unwrap()
    };
    let values: Vec<f64> = (0..8).map(solved).collect();
    assert!(values.iter().all(|value| *value == 0.0), "{values:?}");
}

#[test]
fn a_scan_follows_race_cars_where_coordinates_do_not_interact() {
    let waves: fn(&[f64]) -> f64 = |x| {
        let wave = |x: &f64| x * x - 10.0 * (6.3 * x).cos();
        x.iter().map(wave).sum()
    };
    for out in [1, 7] {
        let found = decisions_of(waves, Some(3000), 5, 3000, out, 0.0);
        assert!(found.iter().any(|(_, text)| text.ends_with(": scan")), "{out} {found:?}");
        // With fewer evaluations it would take too large a part.
        let found = decisions_of(waves, Some(1000), 5, 1000, out, 0.0);
        assert!(!found.iter().any(|(_, text)| text.ends_with(": scan")), "{out} {found:?}");
    }
}

#[test]
fn waves_that_the_survey_missed_are_scanned_when_cma_es_has_converged() {
    // Waves near the minimum only.
    let waves: fn(&[f64]) -> f64 = |x| {
        let wave = |x: &f64| {
            let x = x - 0.7;
            x * x + 0.3 * (1.0 - (20.0 * x).cos()) * (-2.0 * x * x).exp()
        };
        x.iter().map(wave).sum()
    };
    for (budget, out) in [(Some(5000), 1), (None, 1), (Some(5000), 7)] {
        let found = decisions_of(waves, budget, 5, 5000, out, 0.0);
        let position = |what: &str| found.iter().position(|(_, text)| text.ends_with(what));
        let places = [
            found.iter().position(|(_, text)| text.contains("is not wavy")),
            position("cma-es has converged"),
            position(": scan"),
        ];
        assert!(places.iter().all(Option::is_some), "{budget:?} {out} {found:?}");
        assert!(places.is_sorted(), "{budget:?} {out} {found:?}");
    }
}

#[test]
fn when_cma_es_has_converged_descents_look_for_other_valleys() {
    // Two valleys, neither along the coordinates.
    let valleys: fn(&[f64]) -> f64 = |x| {
        let to = |at: f64, high: f64| {
            let sum: f64 = x.iter().sum();
            let far: f64 = x.iter().map(|x| (x - at).powi(2)).sum();
            high + far + 30.0 * (sum - x.len() as f64 * at).powi(2)
        };
        to(1.0, 0.5).min(to(-3.0, 0.0))
    };
    for (budget, out) in [(Some(5000), 1), (None, 1), (None, 5)] {
        let found = decisions_of(valleys, budget, 5, 5000, out, 0.0);
        let converged = found.iter().position(|(_, text)| text == "cma-es has converged");
        let next = converged.and_then(|place| found.get(place + 1));
        assert!(
            next.is_some_and(|(_, text)| text.ends_with("quadratic")),
            "{budget:?} {out} {found:?}"
        );
    }
}

#[test]
fn without_a_budget_a_noisy_objective_is_surveyed_at_once() {
    let found = decisions(4, 400, 1, 1.0);
    assert!(found[0].0 == 2 && found[0].1.ends_with("survey"), "{found:?}");
    assert!(found[1].1.contains("noisy (planned for 2400"), "{found:?}");
}
