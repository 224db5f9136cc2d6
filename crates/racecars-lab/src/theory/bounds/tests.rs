//! The bounds against sums written out, simulated runs, and their limits.

use super::*;
use proptest::prelude::*;
use racecars::random::Random;

fn small() -> BoundSetting {
    BoundSetting {
        eta: 0.5,
        p: 1.0,
        lambda: 0.9,
        gamma: 0.8,
        rho: 0.1,
        dimension: 3,
        training_size: 10,
        ln_target: 1e-4f64.ln(),
        delta: 0.05,
    }
}

fn count(queries: Queries) -> u64 {
    match queries {
        Queries::Count(count) => count,
        other => panic!("{other} is not exact"),
    }
}

/// The least T with enough hits, each step's added up one after the other.
fn by_adding(setting: &BoundSetting, hits: impl Fn(i32) -> f64) -> u64 {
    let target = setting.ln_target.exp();
    let mut sum = setting.training_size as f64 * target;
    let mut steps = 0;
    while sum < -setting.delta.ln() {
        steps += 1;
        sum += setting.lambda * hits(steps) + (1.0 - setting.lambda) * target;
    }
    setting.training_size + steps as u64
}

#[test]
fn the_bounds_are_those_of_sums_written_out() {
    for p in [1.0, 0.2] {
        let setting = BoundSetting { p, ..small() };
        let BoundSetting { eta, gamma, rho, .. } = setting;
        let held = eta * setting.ln_target.exp();
        let bounds = Bounds::new(setting).unwrap();
        let q = gamma.powf(-rho);
        let mean = 1.0 / (1.0 - rho + rho * gamma.powi(3));
        assert_eq!(count(bounds.sracos()), by_adding(&setting, |_| held / p));
        assert_eq!(
            count(bounds.race_cars(Version::Sum)),
            by_adding(&setting, |j| held * q.powi(j))
        );
        let by_mean = by_adding(&setting, |j| (held * mean.powi(j).max(1.0 / p)).min(1.0));
        assert_eq!(count(bounds.race_cars(Version::Mean)), by_mean);
    }
}

#[test]
fn the_printed_bound_is_the_least_solution_of_the_printed_inequality() {
    let setting = small();
    let BoundSetting { eta, lambda, gamma, rho, training_size: r, .. } = setting;
    let target = setting.ln_target.exp();
    let enough = |t: u64| {
        let n = (t - r) as f64;
        let mean = 0.5 * (gamma.powf(-rho) + gamma.powf(-n * rho));
        (n * (mean * lambda * eta + 1.0 - lambda) + r as f64) * target >= -setting.delta.ln()
    };
    let bounds = Bounds::new(setting).unwrap();
    let printed = count(bounds.race_cars(Version::Printed));
    assert!(enough(printed) && !enough(printed - 1));
    assert!(printed < count(bounds.race_cars(Version::Sum)), "printed: too small");
    // The formula with T on its right side: T solves it where both agree.
    assert!(bounds.printed_formula(printed) <= Queries::Count(printed));
    assert!(bounds.printed_formula(printed - 1) > Queries::Count(printed - 1));
}

/// How often an ideal RACE-CARS finds nothing: it hits with exactly the probability that the assumption allows up
/// to kappa shrinks, and afterwards only by draws from the whole space.
fn simulated_failure(setting: &BoundSetting, kappa: u64, budget: u64, runs: u32) -> f64 {
    let mut random = Random::new(5);
    let (target, held) = (setting.ln_target.exp(), setting.eta * setting.ln_target.exp());
    let shrink = setting.gamma.powi(setting.dimension as i32);
    let mut failures = 0;
    for _ in 0..runs {
        let (mut measure, mut shrinks) = (1.0f64, 0);
        let missed = (0..budget).all(|t| {
            if t < setting.training_size {
                return !random.chance(target);
            }
            if random.chance(setting.rho) {
                (measure, shrinks) = (measure * shrink, shrinks + 1);
            }
            let hit = match random.chance(setting.lambda) {
                true if shrinks > kappa => 0.0,
                true => held / measure.min(setting.p),
                false => target,
            };
            !random.chance(hit)
        });
        failures += u32::from(missed);
    }
    f64::from(failures) / f64::from(runs)
}

/// Three standard errors of a share.
fn three_errors(share: f64, runs: u32) -> f64 {
    3.0 * (share * (1.0 - share) / f64::from(runs)).sqrt()
}

#[test]
fn the_theorem_holds_in_simulated_runs_and_is_attained() {
    let few = BoundSetting { gamma: 0.4, rho: 0.02, eta: 1.0, lambda: 1.0, ..small() };
    let coarse = BoundSetting { gamma: 0.4, rho: 0.2, ln_target: 1e-2f64.ln(), ..small() };
    let once = BoundSetting { gamma: 0.1, ..coarse };
    let narrow = BoundSetting { p: 0.2, ..coarse };
    let runs = 10_000;
    for (setting, kappa, budget) in
        [(few, 3, 300), (coarse, 1, 40), (coarse, 0, 30), (once, 0, 25), (narrow, 1, 40)]
    {
        let theorem = Bounds::new(setting).unwrap().theorem(Some(kappa)).unwrap();
        let (failure, bound) =
            (simulated_failure(&setting, kappa, budget, runs), theorem.failure(budget));
        assert!((failure - bound).abs() <= three_errors(bound, runs), "{failure} {bound}");
        assert!(bound <= theorem.held(budget) + theorem.exhausted() + 1e-12, "the two terms");
        assert!(theorem.held(budget) <= bound && (0.02..0.98).contains(&bound), "{bound}");
        // The closed form: rho / h(kappa).
        assert!(theorem.exhausted() <= setting.rho / setting.hits_after(kappa as f64));
    }
}

#[test]
fn the_mean_in_the_exponent_promises_too_much() {
    // Few and large shrinks: the mean measure says little about a run.
    let setting =
        BoundSetting { gamma: 0.4, rho: 0.02, eta: 1.0, lambda: 1.0, delta: 1e-3, ..small() };
    let bounds = Bounds::new(setting).unwrap();
    let theorem = bounds.theorem(None).unwrap();
    let (by_mean, proved) = (count(bounds.race_cars(Version::Mean)), count(theorem.queries_held()));
    let failure = simulated_failure(&setting, theorem.kappa(), by_mean, 10_000);
    assert!(by_mean < proved && failure > 2e-3, "{by_mean} {proved} {failure}");
}

#[test]
fn the_shrinks_run_out_as_often_as_the_product_says() {
    let added = |setting: BoundSetting, kappa| {
        Bounds::new(setting).unwrap().theorem(kappa).unwrap().exhausted()
    };
    let paper = BoundSetting::default();
    assert!((added(paper, None) - 0.0845).abs() < 1e-4, "docs/theory.md has it");
    assert!((added(paper, Some(33)) - 0.954).abs() < 1e-3, "where geometry ends");
    for (eta, wanted) in [(0.5, 0.0091), (0.01, 0.5125)] {
        let found = added(BoundSetting { eta, ..paper }, Some(34));
        assert!((found - wanted).abs() < 1e-4, "{eta}: {found}");
    }
    let tiny = BoundSetting { eta: 1e-26, ..paper };
    assert!((added(tiny, Some(45)) - 0.0553).abs() < 1e-4);
    // In the long run, F is what was exhausted.
    let coarse = BoundSetting { gamma: 0.4, rho: 0.2, ln_target: 1e-2f64.ln(), ..small() };
    let coarse = BoundSetting { lambda: 1.0, ..coarse };
    let theorem = Bounds::new(coarse).unwrap().theorem(Some(1)).unwrap();
    assert!((theorem.failure(2000) - theorem.exhausted()).abs() < 1e-12);
    // Nothing to run out of.
    for setting in [BoundSetting { rho: 0.0, ..small() }, BoundSetting { eta: 0.0, ..small() }] {
        assert_eq!(added(setting, None), 0.0);
    }
    // More shrinks than can be counted one by one.
    let fine = BoundSetting { gamma: 1.0 - 1e-16, ..small() };
    assert!((0.0..=1e-9).contains(&added(fine, None)));
}

#[test]
fn a_kappa_that_contradicts_itself_is_refused() {
    let bounds = Bounds::new(BoundSetting::default()).unwrap();
    assert_eq!((bounds.kappa(), bounds.theorem(None).unwrap().kappa()), (34, 34));
    assert_eq!(bounds.theorem(Some(20)).unwrap().kappa(), 20);
    let error = bounds.theorem(Some(35)).unwrap_err().to_string();
    assert!(error.contains("kappa = 35 is above 34"), "{error}");
    // A quotient that is whole.
    let whole = BoundSetting { gamma: 0.5, eta: 1.0, dimension: 1, ..small() };
    let whole = BoundSetting { ln_target: -20.0 * 2f64.ln(), ..whole };
    assert_eq!(Bounds::new(whole).unwrap().kappa(), 20);
}

#[test]
fn the_queries_of_the_theorem() {
    let held = |setting: BoundSetting, kappa| {
        count(Bounds::new(setting).unwrap().theorem(kappa).unwrap().queries_held())
    };
    let paper = BoundSetting::default();
    assert_eq!(held(paper, None), 4432);
    assert_eq!(held(BoundSetting { eta: 1e-26, ..paper }, Some(45)), 5671);
    // Exact, where blocks alone would give 108490.
    let large = BoundSetting { gamma: 0.95, rho: 0.001, dimension: 500, ..paper };
    let large = BoundSetting { ln_target: ln_ball(500, 1.0 / 20.0), ..large };
    assert_eq!(held(large, None), 108_338);
    // If the shrinks run out more often than delta, F <= delta takes draws from the whole space.
    let of = |setting: BoundSetting, kappa| Bounds::new(setting).unwrap().theorem(kappa).unwrap();
    let explored = (of(paper, None).exhausted() / 0.05).ln() / 0.01 / paper.ln_target.exp();
    assert!((of(paper, None).queries().ln() - explored.ln()).abs() < 0.01);
    assert_eq!(of(BoundSetting { lambda: 1.0, ..paper }, Some(33)).queries(), Queries::Never);
    let theorem = of(BoundSetting { gamma: 0.1, ..small() }, Some(0));
    let at = count(theorem.queries());
    assert!(theorem.exhausted() > 0.05 && at > 10_000, "{at}");
    assert!(theorem.failure(at) <= 0.05 && theorem.failure(at - 1) > 0.05);
    let rare = BoundSetting { rho: 0.001, ..paper };
    let theorem = Bounds::new(rare).unwrap().theorem(None).unwrap();
    let at = count(theorem.queries());
    assert!(theorem.failure(at) <= 0.05 && theorem.failure(at - 1) > 0.05);
    assert!(theorem.queries() > theorem.queries_held());
}

#[test]
fn without_shrinking_all_are_the_bound_of_sracos() {
    let bounds = Bounds::new(BoundSetting { rho: 0.0, ..small() }).unwrap();
    for version in Version::ALL {
        assert_eq!(bounds.race_cars(version), bounds.sracos(), "{version:?}");
    }
    assert_eq!(bounds.theorem(None).unwrap().queries(), bounds.sracos());
    let narrow = Bounds::new(BoundSetting { rho: 0.0, p: 0.3, ..small() }).unwrap();
    assert_eq!(narrow.race_cars(Version::Mean), narrow.sracos());
    assert_eq!(narrow.theorem(None).unwrap().queries(), narrow.sracos());
    // And nearly so when shrinks are rarer than steps.
    let bounds = Bounds::new(BoundSetting { rho: 1e-12, ..small() }).unwrap();
    for version in Version::ALL {
        let ratio = (bounds.race_cars(version).ln() - bounds.sracos().ln()).exp();
        assert!((ratio - 1.0).abs() < 1e-4, "{version:?}: {ratio}");
    }
}

#[test]
fn without_learning_all_are_the_bound_of_random_search() {
    let uniform = Bounds::new(BoundSetting { lambda: 0.0, ..small() }).unwrap();
    assert_eq!(count(uniform.uniform()), (20f64.ln() / 1e-4).ceil() as u64);
    for version in Version::ALL {
        assert_eq!(uniform.race_cars(version), uniform.uniform(), "{version:?}");
    }
    // eta = 0: only the share 1 - lambda of the draws is good for anything.
    let blind = Bounds::new(BoundSetting { eta: 0.0, training_size: 0, ..small() }).unwrap();
    for version in Version::ALL {
        let wanted = 20f64.ln() / 1e-4 / (1.0 - 0.9);
        assert!((count(blind.race_cars(version)) as f64 / wanted - 1.0).abs() < 1e-4);
    }
    let never = Bounds::new(BoundSetting { eta: 0.0, lambda: 1.0, ..small() }).unwrap();
    assert_eq!(never.sracos(), Queries::Never);
    assert_eq!(never.theorem(None).unwrap().queries(), Queries::Never);
}

#[test]
fn initial_draws_can_be_enough() {
    let setting = BoundSetting { training_size: 1000, ln_target: 0.1f64.ln(), ..small() };
    let bounds = Bounds::new(setting).unwrap();
    assert_eq!(bounds.sracos(), Queries::Count(30), "ln 20 / 0.1 is 29.96");
    assert_eq!(bounds.theorem(None).unwrap().queries_held(), Queries::Count(30));
}

#[test]
fn five_hundred_dimensions_neither_overflow_nor_take_long() {
    let setting = BoundSetting {
        gamma: 0.95,
        rho: 0.001,
        dimension: 500,
        ln_target: ln_ball(500, 1.0 / 20.0),
        ..BoundSetting::default()
    };
    let bounds = Bounds::new(setting).unwrap();
    assert!(setting.ln_target < -2000.0);
    assert!(bounds.sracos().log10() > 900.0);
    for version in Version::ALL {
        let queries = count(bounds.race_cars(version));
        assert!((10_000..100_000_000).contains(&queries), "{version:?}: {queries}");
        assert!((0.0..=1.0).contains(&bounds.race_cars_failure(version, 50_000)));
    }
    assert!((0.0..=1.0).contains(&bounds.theorem(None).unwrap().failure(50_000)));
}

#[test]
fn the_failure_at_the_bound_is_delta() {
    let bounds = Bounds::new(small()).unwrap();
    let at = count(bounds.sracos());
    assert!(bounds.sracos_failure(at) <= 0.05 && bounds.sracos_failure(at - 1) > 0.05);
    for version in Version::ALL {
        let at = count(bounds.race_cars(version));
        let failure = |budget| bounds.race_cars_failure(version, budget);
        assert!(failure(at) <= 0.05 && failure(at - 1) > 0.05, "{version:?}");
    }
    assert!((bounds.sracos_failure(10) - (-10.0 * 1e-4f64).exp()).abs() < 1e-12);
}

fn settings() -> impl Strategy<Value = BoundSetting> {
    (
        (0.0..=1.0f64, 0.01..=1.0f64, 0.0..=1.0f64, 0.05..0.95f64),
        (0.01..=1.0f64, 1usize..60, 0u64..40, -14.0..-5.0f64, 1e-6..0.9f64),
    )
        .prop_map(|((eta, p, lambda, gamma), (rho, n, r, ln_target, delta))| BoundSetting {
            eta,
            p,
            lambda,
            gamma,
            rho,
            dimension: n,
            training_size: r,
            ln_target,
            delta,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn the_bounds_are_in_order_and_fall_where_they_should(setting in settings()) {
        let of = |setting: BoundSetting| Bounds::new(setting).unwrap();
        let bounds = of(setting);
        let theorem = bounds.theorem(None).unwrap();
        prop_assert!(theorem.queries_held() <= bounds.sracos());
        prop_assert!(bounds.race_cars(Version::Printed) <= bounds.race_cars(Version::Sum));
        prop_assert!(bounds.race_cars(Version::Mean) <= bounds.sracos());
        if bounds.left() > 0.0 {
            prop_assert!(theorem.queries_held() <= theorem.closed_form());
        }
        // A larger share of the target, fewer queries; a smaller delta, more.
        let better = of(BoundSetting { eta: 0.5 * (1.0 + setting.eta), p: 1.0, ..setting });
        let base = of(BoundSetting { p: 1.0, ..setting });
        let stricter = of(BoundSetting { p: 1.0, delta: 0.5 * setting.delta, ..setting });
        for version in Version::ALL {
            let ln = |bounds: &Bounds| bounds.race_cars(version).ln();
            prop_assert!(ln(&better) <= ln(&base), "{:?}", version);
            prop_assert!(ln(&stricter) >= ln(&base), "{:?}", version);
        }
        let held = |bounds: &Bounds| bounds.theorem(None).unwrap().queries_held().ln();
        // It may be off by a block, see `chain`.
        prop_assert!(held(&stricter) >= held(&base) - 0.01);
    }
}
