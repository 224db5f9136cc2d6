//! `auto` on noisy objectives.

#![allow(clippy::unwrap_used)]

use racecars::random::Random;
use racecars::{
    Algorithm, Auto, Candidate, Direction, Next, Noise, Optimizer, Outcome, Session, Space,
    StopReason, StopRules, Trial, load, minimize,
};
use std::collections::BTreeSet;
use std::time::Duration;

fn sphere(point: &[f64]) -> f64 {
    point.iter().map(|x| (x - 1.0).powi(2)).sum()
}

fn auto(space: &Space, noise: Noise, budget: u64) -> Box<dyn Optimizer> {
    Algorithm::Auto(Auto::default().noise(noise)).optimizer(space, Some(budget), 3).unwrap()
}

/// The true value at the best point and the reported value, averaged over seeds.
fn true_and_reported(algorithm: &Algorithm) -> (f64, f64) {
    const SEEDS: u64 = 12;
    let space = Space::cube(10, -5.0, 5.0).unwrap();
    let (mut truth, mut reported) = (0.0, 0.0);
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
        reported += solution.value().unwrap() / SEEDS as f64;
    }
    (truth, reported)
}

#[test]
fn the_best_value_is_less_biased_than_without_re_evaluations() {
    let (truth, reported) = true_and_reported(&Algorithm::default());
    let (plain_truth, plain_reported) = true_and_reported(&Algorithm::race_cars());
    assert!(truth < plain_truth, "{truth} {plain_truth}");
    let (bias, plain_bias) = ((reported - truth).abs(), (plain_reported - plain_truth).abs());
    assert!(bias < 0.2 * plain_bias, "{bias} {plain_bias}");
}

/// The mean over seeds of the reported value less the true value at the best point, whose value is a mean of
/// this many evaluations.
fn bias(algorithm: &Algorithm, budget: u64, evaluations: u64) -> f64 {
    const SEEDS: u64 = 200;
    let space = Space::cube(2, -5.0, 5.0).unwrap();
    let run = |seed| {
        let mut noise = Random::new(1000 + seed);
        let solution = minimize(&space)
            .algorithm(algorithm.clone())
            .budget(budget)
            .seed(seed)
            .run(|x| sphere(x.coordinates()) + noise.normal())
            .unwrap();
        assert_eq!(solution.best_evaluations(), evaluations, "budget {budget}, seed {seed}");
        solution.value().unwrap() - sphere(solution.point().unwrap().coordinates())
    };
    (0..SEEDS).map(run).sum::<f64>() / SEEDS as f64
}

#[test]
fn small_budgets_keep_a_share_for_an_unbiased_value() {
    let auto = Algorithm::Auto(Auto::default().noise(Noise::Yes));
    for (budget, evaluations) in [(10, 2), (30, 2), (60, 3)] {
        // Five standard errors of a mean over the seeds.
        let tolerance = 5.0 / (200.0 * evaluations as f64).sqrt();
        let found = bias(&auto, budget, evaluations);
        assert!(found.abs() < tolerance, "budget {budget}: {found}");
    }
    assert!(bias(&Algorithm::race_cars(), 30, 1) < -0.5, "without re-evaluations there is bias");
}

#[test]
fn an_embedding_keeps_the_means_of_its_optimizer() {
    let space = Space::cube(30, -5.0, 5.0).unwrap();
    let algorithm =
        "embedding(dimension=3, algorithm=auto(noise=yes))".parse::<Algorithm>().unwrap();
    let mut noise = Random::new(5);
    let solution = minimize(&space)
        .algorithm(algorithm)
        .budget(500)
        .run(|x| sphere(x.coordinates()) + noise.normal())
        .unwrap();
    // Each of five subspaces has 100 evaluations: a model keeps 8 for the end, of which 4 are the value.
    assert_eq!(solution.best_evaluations(), 4);
}

#[test]
fn a_lucky_value_reaches_no_target_before_noise_is_detected() {
    let space = Space::cube(2, -5.0, 5.0).unwrap();
    let stop = |lucky: f64| {
        let mut calls = 0;
        let run = minimize(&space).budget(100).target(-50.0).run(|x| {
            calls += 1;
            if calls == 1 { lucky } else { sphere(x.coordinates()) + f64::from(calls) / 100.0 }
        });
        let solution = run.unwrap();
        (solution.stop(), solution.evaluations())
    };
    assert_eq!(stop(-100.0), (StopReason::Evaluations, 100));
    // Without noise, the second evaluation of the first point confirms it.
    let solution = minimize(&space).budget(100).target(1e3).run(|x| sphere(x.coordinates()));
    let solution = solution.unwrap();
    assert_eq!((solution.stop(), solution.evaluations()), (StopReason::Target, 2));
}

#[test]
fn an_outcome_after_the_target_replaces_no_mean_by_a_single_value() {
    let space = Space::cube(2, -5.0, 5.0).unwrap();
    let algorithm = Algorithm::Auto(Auto::default().noise(Noise::Yes));
    let optimizer = algorithm.optimizer(&space, Some(2000), 1).unwrap();
    let mut session = Session::new(optimizer, Direction::Minimize);
    let mut rules = StopRules::default();
    (rules.evaluations, rules.target) = (Some(2000), Some(0.5));
    session.set_rules(rules).unwrap();
    let mut random = Random::new(2);
    let mut out: Vec<Trial> = Vec::new();
    let value = |trial: &Trial, random: &mut Random| sphere(trial.point()) + 0.3 * random.normal();
    loop {
        match session.next(Duration::ZERO).unwrap() {
            Next::Evaluate(trial) if out.len() < 7 => out.push(trial),
            Next::Evaluate(trial) => {
                let outcome = value(&trial, &mut random);
                session.tell(trial, outcome).unwrap();
            }
            _ => match out.pop() {
                // The last ones come in lucky, but not clearly better.
                Some(trial) => {
                    let best = session.value().unwrap();
                    session.tell(trial, best - 0.1).unwrap();
                }
                None => break,
            },
        }
    }
    assert_eq!(session.stop_reason(), Some(StopReason::Target));
    assert!(session.best_evaluations() >= StopRules::NOISY_TARGET_EVALUATIONS);
}

/// A run with this many pending candidates, which are told in random order. Some fail. With `is_saved`,
/// the optimizer is saved and loaded before every step. Returns the points asked.
fn trace(max_pending: usize, is_saved: bool) -> Vec<Vec<f64>> {
    let space = Space::cube(5, -5.0, 5.0).unwrap();
    let mut optimizer = auto(&space, Noise::Detect, 900);
    let mut random = Random::new(7);
    let mut pending: Vec<Candidate> = Vec::new();
    let mut asked = Vec::new();
    while optimizer.told() < 900 {
        if is_saved {
            optimizer = load(&optimizer.save()).unwrap();
        }
        if pending.len() < max_pending {
            let candidate = optimizer.ask().unwrap();
            asked.push(candidate.point().to_vec());
            pending.push(candidate);
            continue;
        }
        let candidate = pending.swap_remove(random.index(pending.len()));
        let value = sphere(candidate.point()) + random.normal();
        let outcome = if random.chance(0.02) {
            Outcome::failed("a random failure")
        } else {
            Outcome::from(value)
        };
        optimizer.tell(candidate, outcome).unwrap();
    }
    let portfolio = optimizer.portfolio().unwrap();
    let referee = portfolio.members.iter().find(|member| member.name == "referee").unwrap();
    assert!(portfolio.noisy && referee.evaluations > 20, "{portfolio:?}");
    assert!(sphere(optimizer.best().unwrap().point) < 10.0);
    asked
}

#[test]
fn a_saved_run_continues_exactly_even_during_a_challenge() {
    assert_eq!(trace(1, false), trace(1, true));
    assert_eq!(trace(7, false), trace(7, true));
}

/// Spaces with discrete coordinates.
fn discrete_spaces() -> [Space; 2] {
    let integers = Space::builder().integers("i", 4, 0, 9).build().unwrap();
    let mixed = Space::builder().real("x", -3.0, 3.0).boolean("b").integers("i", 2, 0, 9);
    [integers, mixed.build().unwrap()]
}

/// The number of repeated points in a run with noise of this deviation.
fn repeats(space: &Space, noise: Noise, budget: u64, deviation: f64) -> usize {
    let mut optimizer = auto(space, noise, budget);
    let mut random = Random::new(1);
    let mut seen = BTreeSet::new();
    while optimizer.told() < budget {
        let candidate = optimizer.ask().unwrap();
        seen.insert(candidate.point().iter().map(|x| x.to_bits()).collect::<Vec<u64>>());
        let value = sphere(candidate.point()) + deviation * random.normal();
        optimizer.tell(candidate, Outcome::from(value)).unwrap();
    }
    let is_noisy = optimizer.portfolio().unwrap().noisy;
    assert_eq!(is_noisy, noise == Noise::Yes || noise == Noise::Detect && deviation > 0.0);
    assert_eq!(is_noisy, optimizer.best().unwrap().evaluations > 1);
    budget as usize - seen.len()
}

#[test]
fn noise_is_detected_in_spaces_with_discrete_coordinates() {
    for space in discrete_spaces() {
        for budget in [20, 50, 400] {
            assert_eq!(repeats(&space, Noise::No, budget, 1.0), 0);
            assert_eq!(repeats(&space, Noise::Detect, budget, 0.0), 1, "the check");
            let found = repeats(&space, Noise::Detect, budget, 1.0);
            assert!(found >= 4, "budget {budget}: {found} repeats");
        }
    }
}

#[test]
fn a_small_space_is_searched_completely_and_the_rest_of_the_budget_goes_to_noise() {
    let space = Space::builder().integers("i", 2, 0, 4).build().unwrap();
    let run = |budget: u64, deviation: f64, seed: u64| {
        let mut noise = Random::new(seed);
        let solution = minimize(&space)
            .budget(budget)
            .seed(seed)
            .run(|x| sphere(x.coordinates()) + deviation * noise.normal())
            .unwrap();
        let truth = sphere(solution.point().unwrap().coordinates());
        (solution.evaluations(), truth, solution.best_evaluations())
    };
    for seed in 0..10 {
        // 25 points: with a budget for just these there is no check.
        assert_eq!(run(25, 0.0, seed), (25, 0.0, 1));
        assert_eq!(run(100, 0.0, seed), (26, 0.0, 1));
    }
    let noisy: Vec<_> = (0..20).map(|seed| run(100, 0.5, seed)).collect();
    assert!(noisy.iter().all(|(used, _, averaged)| (30..=100).contains(used) && *averaged >= 5));
    let right = noisy.iter().filter(|(_, truth, _)| *truth == 0.0).count();
    assert!(right >= 15, "{right} of 20 found the best point");
}

#[test]
fn without_noise_no_point_is_re_evaluated() {
    let space = Space::cube(5, -5.0, 5.0).unwrap();
    let solution = minimize(&space).budget(900).run(|x| sphere(x.coordinates())).unwrap();
    let portfolio = solution.portfolio().unwrap();
    assert!(!portfolio.noisy);
    assert!(portfolio.members.iter().all(|member| member.name != "referee"));
}
