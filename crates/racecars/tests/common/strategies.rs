//! Random spaces for proptest.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use racecars::{Domain, Scale, Space, Value};

const MAX_INTEGER: i64 = 1 << 53;

/// The same cases in every run, unless `PROPTEST_CASES` or `PROPTEST_RNG_SEED` is set.
pub(crate) fn config(cases: u32) -> Config {
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(1);
    }
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    config
}

/// A space of one to six names, with all kinds of domains.
pub(crate) fn space() -> impl Strategy<Value = Space> {
    let coordinate = ("\\PC{0,6}", prop::option::weighted(0.3, 1usize..6), domain());
    prop::collection::vec(coordinate, 1..7).prop_map(|coordinates| {
        let mut builder = Space::builder();
        for (i, (name, count, domain)) in coordinates.into_iter().enumerate() {
            // The index makes names unique.
            let name = format!("{name}{i}");
            builder = match count {
                None => builder.coordinate(name, domain),
                Some(count) => builder.array(name, count, domain),
            };
        }
        builder.build().unwrap()
    })
}

/// A valid domain.
pub(crate) fn domain() -> impl Strategy<Value = Domain> {
    prop_oneof![
        range(finite()).prop_map(|(low, high)| Domain::real(low, high)),
        range(positive()).prop_map(|(low, high)| Domain::log_real(low, high)),
        integers(),
        grid(),
        values().prop_map(Domain::Levels),
        values().prop_map(Domain::Categorical),
        Just(Domain::Boolean),
    ]
}

fn finite() -> impl Strategy<Value = f64> {
    prop_oneof![
        -10.0..10.0f64,
        (-1000i32..1000).prop_map(f64::from),
        prop::num::f64::NORMAL.prop_map(|x| x / 4.0),
        prop::num::f64::SUBNORMAL,
    ]
}

fn positive() -> impl Strategy<Value = f64> {
    finite().prop_map(f64::abs).prop_filter("positive", |x| *x > 0.0)
}

fn range(number: impl Strategy<Value = f64>) -> impl Strategy<Value = (f64, f64)> {
    let numbers = prop::collection::vec(number, 2);
    numbers.prop_filter_map("two different numbers", |pair| {
        let (low, high) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
        (low < high).then_some((low, high))
    })
}

fn integers() -> impl Strategy<Value = Domain> {
    let linear = prop_oneof![
        (-100i64..100, 0i64..100),
        (Just(-MAX_INTEGER), 0..=MAX_INTEGER),
        (-MAX_INTEGER / 2..=MAX_INTEGER / 2, 0..=MAX_INTEGER / 2),
    ];
    let log = prop_oneof![(1i64..100, 0i64..10_000), (Just(1), 0..MAX_INTEGER)];
    prop_oneof![
        linear.prop_map(|(low, length)| Domain::integer(low, low + length)),
        log.prop_map(|(low, length)| {
            Domain::Integer { low, high: low + length, scale: Scale::Log }
        }),
    ]
}

fn grid() -> impl Strategy<Value = Domain> {
    let step = prop_oneof![
        prop::sample::select(vec![0.1, 0.25, 0.01, 0.3, 1.0, 2.0, 5.0]),
        1e-3..10.0f64,
    ];
    let low = prop_oneof![-100.0..100.0f64, (-50i32..50).prop_map(f64::from)];
    (low, step, 1u32..1000)
        .prop_map(|(low, step, steps)| Domain::grid(low, low + f64::from(steps) * step, step))
}

fn values() -> impl Strategy<Value = Vec<Value>> {
    let value = prop_oneof![
        (-1000i64..1000).prop_map(Value::Integer),
        (-10.0..10.0f64).prop_map(Value::Real),
        "\\PC{0,5}".prop_map(Value::Text),
        any::<bool>().prop_map(Value::Boolean),
    ];
    prop::collection::vec(value, 1..8).prop_map(|values| {
        let mut distinct: Vec<Value> = Vec::new();
        for value in values {
            let is_same = |v: &Value| {
                *v == value || (v.as_real().is_some() && v.as_real() == value.as_real())
            };
            if !distinct.iter().any(is_same) {
                distinct.push(value);
            }
        }
        distinct
    })
}
