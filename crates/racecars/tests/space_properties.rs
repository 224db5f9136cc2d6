//! Properties of all spaces: drawn points are valid, and encoding, viewing, writing and reading are
//! lossless. Invalid spaces and points are refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::strategies::{config, space};
use proptest::prelude::*;
use racecars::random::Random;
use racecars::{Domain, ErrorKind, Scale, Space, SpaceBuilder, Value, Values};
use std::collections::BTreeMap;

fn draw(space: &Space, seed: u64) -> Vec<f64> {
    let mut point = vec![f64::NAN; space.dimension()];
    space.draw(&mut Random::new(seed), &mut point);
    point
}

/// Asserts equal coordinates, on a log scale up to the rounding of a logarithm.
fn assert_same_point(space: &Space, a: &[f64], b: &[f64]) {
    for entry in space.entries() {
        let is_log = matches!(entry.domain(), Domain::Real { scale: Scale::Log, .. });
        for index in entry.range() {
            let allowed = if is_log { 1e-12 * a[index].abs().max(1.0) } else { 0.0 };
            // Subnormal numbers have few digits.
            let is_subnormal = is_log && a[index] < f64::MIN_POSITIVE.ln();
            let difference = (a[index] - b[index]).abs();
            assert!(difference <= allowed || is_subnormal, "{entry:?}: {} {}", a[index], b[index]);
        }
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn a_draw_is_in_the_space(space in space(), seed: u64) {
        let point = draw(&space, seed);
        prop_assert!(space.check(&point).is_ok(), "{:?}", space.check(&point));
    }

    #[test]
    fn a_point_read_by_name_encodes_to_itself(space in space(), seed: u64) {
        let point = draw(&space, seed);
        let encoded = space.encode(space.view(&point).assignments()).unwrap();
        space.check(&encoded).unwrap();
        assert_same_point(&space, &point, &encoded);
    }

    #[test]
    fn a_point_written_as_json_encodes_to_itself(space in space(), seed: u64) {
        let point = draw(&space, seed);
        let written = serde_json::to_string(&space.view(&point)).unwrap();
        let read: BTreeMap<String, Values> = serde_json::from_str(&written).unwrap();
        let encoded = space.encode(read).unwrap();
        assert_same_point(&space, &point, &encoded);
    }

    #[test]
    fn the_ends_of_every_axis_encode_to_themselves(space in space()) {
        let ends = |high: bool| -> Vec<f64> {
            let extent = |index| space.axis(index).extent();
            let end = |index| if high { extent(index).high } else { extent(index).low };
            (0..space.dimension()).map(end).collect()
        };
        for point in [ends(false), ends(true)] {
            space.check(&point).unwrap();
            let encoded = space.encode(space.view(&point).assignments()).unwrap();
            assert_same_point(&space, &point, &encoded);
        }
    }

    #[test]
    fn the_ends_of_a_range_decode_to_themselves(space in space()) {
        for entry in space.entries() {
            let extent = space.axis(entry.range().start).extent();
            let mut point = draw(&space, 1);
            let ends = [extent.low, extent.high].map(|end| {
                point[entry.range().start] = end;
                let mut assignments = space.view(&point).assignments();
                match assignments.find(|(name, _)| *name == entry.name()).unwrap().1 {
                    Values::One(value) => value,
                    Values::Many(values) => values[0].clone(),
                }
            });
            match entry.domain() {
                Domain::Real { low, high, scale: Scale::Linear } => {
                    prop_assert_eq!(ends, [Value::Real(*low), Value::Real(*high)]);
                }
                Domain::Integer { low, high, .. } => {
                    prop_assert_eq!(ends, [Value::Integer(*low), Value::Integer(*high)]);
                }
                Domain::Grid { low, high, step } => {
                    prop_assert_eq!(&ends[0], &Value::Real(*low));
                    let off = high - ends[1].as_real().unwrap();
                    prop_assert!((0.0..=1e-6 * step).contains(&off), "{off}");
                }
                _ => {}
            }
        }
    }

    #[test]
    fn json_and_toml_are_lossless(space in space()) {
        let json = serde_json::to_string(&space).unwrap();
        prop_assert!(serde_json::from_str::<Space>(&json).unwrap() == space, "{json}");
        let toml = toml::to_string(&space).unwrap();
        prop_assert!(toml::from_str::<Space>(&toml).unwrap() == space, "{toml}");
    }

    #[test]
    fn a_displayed_point_has_every_name(space in space(), seed: u64) {
        let point = draw(&space, seed);
        let shown = space.view(&point).to_string();
        for (index, entry) in space.entries().iter().enumerate() {
            prop_assert!(shown.contains(entry.name()));
            prop_assert!(space.coordinate_name(entry.range().start).starts_with(entry.name()));
            prop_assert_eq!(space.entry(entry.name()).unwrap(), &space.entries()[index]);
        }
    }

    #[test]
    fn the_cardinality_is_the_product_of_the_counts(space in space()) {
        let counts = (0..space.dimension()).map(|index| space.axis(index).count().map(u128::from));
        let product = counts.collect::<Option<Vec<u128>>>().map(|counts| {
            counts.into_iter().fold(1u128, u128::saturating_mul)
        });
        prop_assert_eq!(space.is_discrete(), product.is_some());
        let expected = product.and_then(|product| u64::try_from(product).ok());
        prop_assert_eq!(space.cardinality(), expected);
    }

    #[test]
    fn every_integer_of_a_range_encodes_to_itself(
        low in -(1i64 << 53)..=(1 << 53),
        length in 0i64..=(1 << 53),
        share in 0.0..=1.0f64,
    ) {
        let high = (low + length).min(1 << 53);
        let value = low + ((high - low) as f64 * share) as i64;
        let space = Space::builder().integer("i", low, high).build().unwrap();
        let point = space.encode([("i", value.into())]).unwrap();
        prop_assert_eq!(space.view(&point).integer("i").unwrap(), value);
    }

    #[test]
    fn the_error_of_a_value_outside_names_the_coordinate_and_the_value(
        low in -1000i64..1000,
        length in 1i64..1000,
        beyond in 1i64..1000,
    ) {
        let high = low + length;
        let space = (Space::builder().integers("whole", 2, low, high))
            .real("real", low as f64, high as f64)
            .build()
            .unwrap();
        for outside in [low - beyond, high + beyond] {
            let good = Values::from(vec![low, high]);
            let assignments = [("whole", good), ("real", (outside as f64).into())];
            let error = space.encode(assignments).unwrap_err();
            prop_assert_eq!(error.kind(), ErrorKind::Point);
            let expected = format!("coordinate `real`: {outside}");
            prop_assert!(error.to_string().starts_with(&expected), "{error}");

            let bad = Values::from(vec![low, outside]);
            let error = space.encode([("whole", bad), ("real", low.into())]).unwrap_err();
            let expected = format!("coordinate `whole[1]`: {outside}");
            prop_assert!(error.to_string().starts_with(&expected), "{error}");
        }
    }
}

/// Asserts that the space is refused with a message that contains all of `parts`.
#[track_caller]
fn assert_refused(builder: SpaceBuilder, parts: &[&str]) {
    let error = builder.build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Space);
    for part in parts {
        assert!(error.to_string().contains(part), "`{error}` does not contain `{part}`");
    }
}

#[test]
fn empty_spaces_arrays_and_names_are_refused() {
    assert_refused(Space::builder(), &["no coordinates"]);
    assert_refused(Space::builder().real("a", 0.0, 1.0).real("", 0.0, 1.0), &["1", "empty name"]);
    assert_refused(Space::builder().reals("w", 0, 0.0, 1.0), &["`w`", "0 coordinates"]);
    assert_refused(Space::builder().levels("l", Vec::<i64>::new()), &["`l`", "no levels"]);
    assert_refused(Space::builder().categorical("c", Vec::<i64>::new()), &["`c`", "no choices"]);
}

#[test]
fn ranges_that_are_empty_inverted_or_not_finite_are_refused() {
    for (low, high, part) in [
        (1.0, 1.0, "not below"),
        (2.0, 1.0, "low 2 is not below high 1"),
        (f64::NAN, 1.0, "low is NaN"),
        (0.0, f64::NAN, "high is NaN"),
        (f64::NEG_INFINITY, 1.0, "low is -inf"),
        (0.0, f64::INFINITY, "high is inf"),
        (f64::MIN, f64::MAX, "wider than the largest number"),
    ] {
        assert_refused(Space::builder().real("rate", low, high), &["`rate`", part]);
        assert_refused(Space::builder().log_real("rate", low, high), &["`rate`", part]);
        assert_refused(Space::builder().grid("rate", low, high, 1.0), &["`rate`", part]);
    }
    assert_refused(Space::builder().integer("i", 4, 3), &["`i`", "low 4 is above high 3"]);
}

#[test]
fn integers_that_are_not_exact_in_f64_are_refused() {
    let max = 1i64 << 53;
    for (low, high) in [
        (0, max + 1),
        (-max - 1, 0),
        (i64::MIN, i64::MAX),
        (i64::MAX, i64::MAX),
        // Both ends are exact, but the distance between them is not.
        (-1, max),
        (-max, max),
    ] {
        assert_refused(Space::builder().integer("i", low, high), &["`i`", "2^53"]);
    }
    Space::builder().integer("i", 0, max).integer("j", -max, 0).build().unwrap();
}

#[test]
fn log_scales_require_positive_ranges() {
    for low in [0.0, -0.0, -1.0] {
        assert_refused(Space::builder().log_real("x", low, 1.0), &["`x`", "not positive"]);
    }
    assert_refused(Space::builder().log_integer("i", 0, 9), &["`i`", "low 0 is not positive"]);
    assert_refused(Space::builder().log_integer("i", -5, 9), &["`i`", "low -5 is not positive"]);
}

#[test]
fn steps_must_fit_their_range() {
    for (low, high, step) in [
        (0.0, 1.0, 0.3),
        (0.0, 1.0, 2.0),
        (0.0, 1.0, 0.0),
        (0.0, 1.0, -0.5),
        (0.0, 1.0, f64::NAN),
        (0.0, 1.0, f64::INFINITY),
        (0.0, 1e10, 1e-10),
        (0.0, 1e300, 5e-324),
        // Numbers near 1e15 are 0.125 apart, so these steps are below rounding.
        (1e15, 1e15 + 1.0, 0.01),
        (-1e15 - 1.0, -1e15, 0.1),
    ] {
        assert_refused(Space::builder().grid("g", low, high, step), &["`g`", "step"]);
    }
}

#[test]
fn repeated_names_and_values_are_refused() {
    assert_refused(
        Space::builder().real("x", 0.0, 1.0).boolean("b").integer("x", 0, 1),
        &["`x`", "repeated"],
    );
    let two = [Value::from(2), Value::from(1), Value::from(2.0)];
    assert_refused(Space::builder().levels("l", two.clone()), &["`l`", "2 is repeated"]);
    assert_refused(Space::builder().categorical("c", two), &["`c`", "2 is repeated"]);
    assert_refused(Space::builder().levels("l", [0.0, -0.0]), &["`l`", "0 is repeated"]);
    assert_refused(Space::builder().levels("l", ["a", "b", "a"]), &["`l`", "a is repeated"]);
    for bad in [f64::NAN, f64::INFINITY] {
        assert_refused(Space::builder().levels("l", [1.0, bad]), &["`l`", "not a finite number"]);
    }
    // A string is neither a number nor a boolean.
    let alike = [Value::from(2), Value::from("2"), Value::from(true), Value::from("true")];
    Space::builder().levels("l", alike).build().unwrap();
}

#[test]
fn spaces_too_large_for_memory_are_refused() {
    for count in [1_000_000_000_000, usize::MAX, racecars::space::MAX_DIMENSION + 1] {
        assert_refused(Space::builder().reals("w", count, 0.0, 1.0), &["`w`", "at most"]);
    }
    let halves = Space::builder().reals("v", usize::MAX, 0.0, 1.0).reals("w", 2, 0.0, 1.0);
    assert_refused(halves, &["`v`", "at most"]);
    let line = |count: usize| {
        format!(
            r#"{{"coordinates":[{{"name":"w","type":"real","low":0,"high":1,"count":{count}}}]}}"#
        )
    };
    let error = serde_json::from_str::<Space>(&line(134_217_728)).unwrap_err().to_string();
    assert!(
        error.contains("134217728 coordinates") && error.contains("at most 16777216"),
        "{error}"
    );
    assert_eq!(serde_json::from_str::<Space>(&line(1_000_000)).unwrap().dimension(), 1_000_000);
}

#[test]
fn errors_of_files_name_the_mistake() {
    let refused = |coordinate: &str, parts: &[&str]| {
        let json = format!(r#"{{"coordinates": [{{"name": "rate", {coordinate}}}]}}"#);
        let error = serde_json::from_str::<Space>(&json).expect_err(&json).to_string();
        for part in parts {
            assert!(error.contains(part), "{json}: `{error}` does not contain `{part}`");
        }
    };
    refused(r#""type": "float""#, &["`rate`", "`float`", "real, integer"]);
    refused(r#""type": "real", "low": 0"#, &["`rate`", "`high` is missing"]);
    refused(r#""type": "real", "low": 0, "high": "one""#, &["`rate`", "`high` is one"]);
    refused(r#""type": "real", "low": 3, "high": 1"#, &["`rate`", "low 3 is not below high 1"]);
    refused(r#""type": "real", "low": 1, "high": 2, "step": 1"#, &["`rate`", "`step`"]);
    refused(r#""type": "real", "low": 1, "high": 2, "scale": "ln""#, &["`rate`", "`ln`"]);
    refused(r#""type": "integer", "low": 0.5, "high": 2"#, &["`rate`", "`low` is 0.5"]);
    refused(r#""type": "integer", "low": 0, "high": 1e300"#, &["`rate`", "`high` is 1e300"]);
    refused(r#""type": "grid", "low": 0, "high": 1"#, &["`rate`", "`step` is missing"]);
    refused(r#""type": "levels", "choices": [1, 2]"#, &["`rate`", "`levels` is missing"]);
    refused(r#""type": "categorical", "choices": []"#, &["`rate`", "no choices"]);
    refused(r#""type": "categorical", "choices": [2, 2.0]"#, &["`rate`", "2 is repeated"]);
    refused(r#""type": "boolean", "low": 0"#, &["`rate`", "`low` is not a key"]);
    refused(r#""type": "boolean", "count": 0"#, &["`rate`", "0 coordinates"]);
    refused(r#""type": "boolean", "count": 1000000000000"#, &["`rate`", "at most"]);
    // Refused by the file format, whose error names the key but not the coordinate.
    refused(r#""type": "boolean", "colour": 1"#, &["`colour`"]);
    refused(r#""type": "boolean", "count": -1"#, &["-1"]);
    refused(r#""low": 1"#, &["`type`"]);

    let toml = "[[coordinates]]\nname = \"rate\"\ntype = \"real\"\nlow = nan\nhigh = inf\n";
    let error = toml::from_str::<Space>(toml).unwrap_err().to_string();
    assert!(error.contains("`rate`") && error.contains("low is NaN"), "{error}");
    for empty in ["{}", r#"{"coordinates": []}"#, "[]", "null", ""] {
        assert!(serde_json::from_str::<Space>(empty).is_err(), "{empty}");
    }
}

#[test]
fn points_given_by_name_have_every_name_once() {
    let space = Space::builder().integer("n", 1, 9).reals("w", 2, 0.0, 1.0).build().unwrap();
    let (n, w) = (|| ("n", Values::from(3)), || ("w", Values::from(vec![0.5, 1.0])));
    let refused = |assignments: Vec<(&str, Values)>, part: &str| {
        let error = space.encode(assignments).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Point);
        assert!(error.to_string().contains(part), "`{error}` does not contain `{part}`");
    };
    assert_eq!(space.encode([w(), n()]).unwrap(), [2.0, 0.5, 1.0]);
    refused(vec![n()], "`w` is missing");
    refused(vec![n(), w(), n()], "`n` is given twice");
    refused(vec![n(), w(), ("m", 1.into())], "`m`");
    refused(vec![n(), ("w", 0.5.into())], "an array of 2");
    refused(vec![n(), ("w", vec![0.5].into())], "1 values");
    refused(vec![w(), ("n", vec![3, 4].into())], "one value");
    refused(vec![w(), ("n", 2.5.into())], "2.5 is not an integer");
    refused(vec![w(), ("n", "three".into())], "three is not an integer");
    refused(vec![n(), ("w", vec![0.5, f64::NAN].into())], "`w[1]`: NaN");
}
