//! `auto` on objectives that have another value each time.

#![allow(clippy::unwrap_used)]

use racecars::random::Random;
use racecars::{Algorithm, Auto, Candidate, Noise, Optimizer, Outcome, Space, load, minimize};
use std::collections::BTreeSet;

fn sphere(point: &[f64]) -> f64 {
    point.iter().map(|x| (x - 1.0).powi(2)).sum()
}

fn auto(space: &Space, noise: Noise, budget: u64) -> Box<dyn Optimizer> {
    Algorithm::Auto(Auto::default().noise(noise)).optimizer(space, Some(budget), 3).unwrap()
}

/// The value at a point and the value that is claimed, averaged over seeds.
fn found(algorithm: &Algorithm) -> (f64, f64) {
    const SEEDS: u64 = 12;
    let space = Space::cube(10, -5.0, 5.0).unwrap();
    let (mut truth, mut claim) = (0.0, 0.0);
    for seed in 0..SEEDS {
        let mut noise = Random::new(100 + seed);
        let solution = minimize(&space)
            .algorithm(algorithm.clone())
            .budget(1500)
            .seed(seed)
            .run(|x| sphere(x.coordinates()) + noise.normal())
            .unwrap();
        let is_auto = *algorithm == Algorithm::default();
        assert_eq!(solution.portfolio().is_some_and(|portfolio| portfolio.noisy), is_auto);
        truth += sphere(solution.point().unwrap().coordinates()) / SEEDS as f64;
        claim += solution.value().unwrap() / SEEDS as f64;
    }
    (truth, claim)
}

#[test]
fn the_luckiest_value_is_not_taken_for_the_best() {
    let (truth, claim) = found(&Algorithm::default());
    let (lucky_truth, lucky_claim) = found(&Algorithm::race_cars());
    assert!(truth < lucky_truth, "{truth} {lucky_truth}");
    assert!((claim - truth).abs() < 0.2 * (lucky_claim - lucky_truth).abs(), "{truth} {claim}");
}

/// A run in which `out` candidates are out at a time and outcomes come in a random order, some of them
/// failures; where `is_saved`, it is saved and loaded before every step.
fn trace(out: usize, is_saved: bool) -> Vec<Vec<f64>> {
    let space = Space::cube(5, -5.0, 5.0).unwrap();
    let mut optimizer = auto(&space, Noise::Detect, 900);
    let mut random = Random::new(7);
    let mut waiting: Vec<Candidate> = Vec::new();
    let mut asked = Vec::new();
    while optimizer.told() < 900 {
        if is_saved {
            optimizer = load(&optimizer.save()).unwrap();
        }
        if waiting.len() < out {
            let candidate = optimizer.ask().unwrap();
            asked.push(candidate.point().to_vec());
            waiting.push(candidate);
            continue;
        }
        let candidate = waiting.swap_remove(random.index(waiting.len()));
        let value = sphere(candidate.point()) + random.normal();
        let outcome =
            if random.chance(0.02) { Outcome::failed("unlucky") } else { Outcome::from(value) };
        optimizer.tell(candidate, outcome).unwrap();
    }
    let portfolio = optimizer.portfolio().unwrap();
    let referee = portfolio.members.iter().find(|member| member.name == "referee").unwrap();
    assert!(portfolio.noisy && referee.evaluations > 20, "{portfolio:?}");
    assert!(sphere(optimizer.best().unwrap().point) < 10.0);
    asked
}

#[test]
fn a_saved_run_goes_on_alike_also_within_a_challenge() {
    assert_eq!(trace(1, false), trace(1, true));
    assert_eq!(trace(7, false), trace(7, true));
}

#[test]
fn discrete_points_are_asked_again_only_if_noise_is_known_of() {
    let space = Space::builder().integers("i", 4, 0, 9).build().unwrap();
    let repeats = |noise: Noise| {
        let mut optimizer = auto(&space, noise, 300);
        let mut random = Random::new(1);
        let (mut seen, mut repeats) = (BTreeSet::new(), 0);
        while optimizer.told() < 300 {
            let candidate = optimizer.ask().unwrap();
            let key: Vec<i64> = candidate.point().iter().map(|x| *x as i64).collect();
            repeats += u64::from(!seen.insert(key));
            let value = sphere(candidate.point()) + random.normal();
            optimizer.tell(candidate, Outcome::from(value)).unwrap();
        }
        repeats
    };
    assert_eq!((repeats(Noise::Detect), repeats(Noise::No)), (0, 0));
    assert!(repeats(Noise::Yes) > 5);
}

#[test]
fn without_noise_nothing_is_evaluated_again() {
    let space = Space::cube(5, -5.0, 5.0).unwrap();
    let solution = minimize(&space).budget(900).run(|x| sphere(x.coordinates())).unwrap();
    let portfolio = solution.portfolio().unwrap();
    assert!(!portfolio.noisy);
    assert!(portfolio.members.iter().all(|member| member.name != "referee"));
}
