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

/// How often an ideal RACE-CARS, which hits with exactly the probability that the theorem assumes,
/// finds nothing.
fn simulated_failure(setting: &BoundSetting, budget: u64, runs: u32) -> f64 {
    let mut random = Random::new(5);
    let (target, held) = (setting.ln_target.exp(), setting.eta * setting.ln_target.exp());
    let shrink = setting.gamma.powi(setting.dimension as i32);
    let mut failures = 0;
    for _ in 0..runs {
        let mut measure = 1.0f64;
        let missed = (0..budget).all(|t| {
            if t < setting.training_size {
                return !random.chance(target);
            }
            if random.chance(setting.rho) {
                measure *= shrink;
            }
            let hit = match random.chance(setting.lambda) {
                true => held / measure.min(setting.p),
                false => target,
            };
            !random.chance(hit)
        });
        failures += u32::from(missed);
    }
    f64::from(failures) / f64::from(runs)
}

#[test]
fn the_proved_bound_holds_in_simulated_runs_and_the_others_need_not() {
    // Few and large shrinks: the mean measure says little about a run.
    let setting =
        BoundSetting { gamma: 0.4, rho: 0.02, eta: 1.0, lambda: 1.0, delta: 1e-3, ..small() };
    let bounds = Bounds::new(setting).unwrap();
    let proved = count(bounds.race_cars(Version::Proved));
    let failure = simulated_failure(&setting, proved, 100_000);
    assert!(failure <= 1.3e-3, "{failure}");
    let by_mean = count(bounds.race_cars(Version::Mean));
    let failure = simulated_failure(&setting, by_mean, 20_000);
    assert!(by_mean < proved && failure > 2e-3, "{by_mean} {proved} {failure}");
}

#[test]
fn without_the_sure_hits_at_the_end_a_run_fails_as_often_as_the_shrinks_run_out() {
    // Runs that hit as assumed while the region can hold the share eta, and not at all afterwards.
    let simulated = |setting: &BoundSetting, allowed: f64| {
        let mut random = Random::new(7);
        let target = setting.ln_target.exp();
        let runs = 40_000;
        let failures = (0..runs).filter(|_| {
            let mut shrinks = 0.0;
            let missed = (0..setting.training_size).all(|_| !random.chance(target));
            missed
                && loop {
                    shrinks += f64::from(u8::from(random.chance(setting.rho)));
                    if shrinks > allowed {
                        break true;
                    }
                    let measure = setting.gamma.powf(setting.dimension as f64 * shrinks);
                    let drawn = random.chance(setting.lambda);
                    let held = setting.eta * target / measure.min(setting.p);
                    if random.chance(if drawn { held } else { target }) {
                        break false;
                    }
                }
        });
        failures.count() as f64 / f64::from(runs)
    };
    let coarse = BoundSetting { gamma: 0.4, rho: 0.2, ln_target: 1e-2f64.ln(), ..small() };
    let once = BoundSetting { gamma: 0.1, ..coarse };
    let narrow = BoundSetting { p: 0.2, ..coarse };
    for (setting, shrinks) in [(coarse, 1.9), (once, 0.8), (narrow, 1.9), (small(), 14.8)] {
        let bounds = Bounds::new(setting).unwrap();
        let allowed = bounds.shrinks_allowed();
        assert!((allowed - shrinks).abs() < 0.1, "{allowed}");
        let (failure, bound) = (simulated(&setting, allowed), bounds.exhausted_failure());
        assert!((failure - bound).abs() < 0.01, "{failure} {bound}");
        // The closed form: rho / h(kappa), and h(kappa) is above lambda gamma^n.
        let least = setting.lambda * setting.gamma.powi(3);
        assert!(bound <= setting.rho / least);
    }
    let bounds = Bounds::new(BoundSetting::default()).unwrap();
    assert!((bounds.exhausted_failure() - 0.0845).abs() < 1e-4, "docs/theory.md has it");
    // Nothing to run out of.
    for setting in [BoundSetting { rho: 0.0, ..small() }, BoundSetting { eta: 0.0, ..small() }] {
        assert_eq!(Bounds::new(setting).unwrap().exhausted_failure(), 0.0);
    }
    // More shrinks than can be counted one by one.
    let fine = BoundSetting { gamma: 1.0 - 1e-16, ..small() };
    let failure = Bounds::new(fine).unwrap().exhausted_failure();
    assert!((0.0..=1e-9).contains(&failure), "{failure}");
}

#[test]
fn without_shrinking_all_are_the_bound_of_sracos() {
    let bounds = Bounds::new(BoundSetting { rho: 0.0, ..small() }).unwrap();
    for version in Version::ALL {
        assert_eq!(bounds.race_cars(version), bounds.sracos(), "{version:?}");
    }
    let narrow = Bounds::new(BoundSetting { rho: 0.0, p: 0.3, ..small() }).unwrap();
    for version in [Version::Mean, Version::Proved] {
        assert_eq!(narrow.race_cars(version), narrow.sracos(), "{version:?}");
    }
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
    assert_eq!(never.race_cars(Version::Proved), Queries::Never);
}

#[test]
fn initial_draws_can_be_enough() {
    let setting = BoundSetting { training_size: 1000, ln_target: 0.1f64.ln(), ..small() };
    let bounds = Bounds::new(setting).unwrap();
    assert_eq!(bounds.sracos(), Queries::Count(30), "ln 20 / 0.1 is 29.96");
    assert_eq!(bounds.race_cars(Version::Proved), Queries::Count(30));
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
        (0.01..=1.0f64, 1usize..60, 0u64..40, -20.0..-5.0f64, 1e-6..0.9f64),
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
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_bounds_are_in_order_and_fall_where_they_should(setting in settings()) {
        let of = |setting: BoundSetting| Bounds::new(setting).unwrap();
        let bounds = of(setting);
        let proved = bounds.race_cars(Version::Proved);
        prop_assert!(proved <= bounds.sracos());
        prop_assert!(bounds.race_cars(Version::Printed) <= bounds.race_cars(Version::Sum));
        prop_assert!(bounds.race_cars(Version::Mean) <= bounds.sracos());
        if bounds.left() > 0.0 {
            prop_assert!(proved <= bounds.markov());
        }
        // A larger share of the target, fewer queries; a smaller delta, more.
        let better = of(BoundSetting { eta: 0.5 * (1.0 + setting.eta), p: 1.0, ..setting });
        let base = of(BoundSetting { p: 1.0, ..setting });
        let stricter = of(BoundSetting { p: 1.0, delta: 0.5 * setting.delta, ..setting });
        for version in Version::ALL {
            // The proved one may be off by a block, see `chain`.
            let slack = if version == Version::Proved { 0.01 } else { 0.0 };
            let ln = |bounds: &Bounds| bounds.race_cars(version).ln();
            prop_assert!(ln(&better) <= ln(&base) + slack, "{:?}", version);
            prop_assert!(ln(&stricter) >= ln(&base) - slack, "{:?}", version);
        }
    }
}
