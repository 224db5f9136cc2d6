//! Conditions, constraints and structures, on random spaces: every candidate of every algorithm satisfies them,
//! inactive coordinates never matter, and a saved run continues to the bit.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use proptest::prelude::*;
use racecars::{Algorithm, Candidate, Outcome, Space, SpaceBuilder, load, load_in};

/// A random space with three levels of conditions, constraints that may forbid most of the box, and structures.
fn spaces() -> impl Strategy<Value = Space> {
    let constraint = prop_oneof![
        Just("a < b"),
        Just("a + b <= 0.2"),
        Just("n != 3 and n < 9"),
        Just("mode = slow or a > 0.3"),
        Just("not (mode = fast and n > 2)"),
        Just("size <= middle or b >= 0.5"),
        Just("sum(w) < 1 + a"),
    ];
    let chosen = proptest::collection::vec(constraint, 0..3);
    (chosen, any::<[bool; 5]>()).prop_filter_map("an empty space", |(constraints, kinds)| {
        let mut builder: SpaceBuilder = Space::builder()
            .real("a", 0.0, 1.0)
            .categorical("mode", ["fast", "slow", "exact"])
            .real("b", 0.0, 1.0)
            .integer("n", 0, 12);
        if kinds[0] {
            builder = (builder.levels("size", ["small", "middle", "large"]).when("mode != fast"))
                .boolean("deep")
                .when("size in (middle, large)")
                .log_real("rate", 1e-4, 1.0)
                .when("deep and n > 1");
        } else {
            builder = builder.levels("size", ["small", "middle", "large"]);
        }
        builder = builder.reals("w", 3, 0.0, 1.0);
        if kinds[1] {
            builder = builder.when("n >= 4 or a > 0.5");
        }
        if kinds[2] {
            builder = builder.permutation("order", 5).subset("pick", 1..=2, ["u", "v", "w", "x"]);
        }
        if kinds[3] {
            builder = builder.simplex("mix", 3).when("mode = exact");
        }
        if kinds[4] {
            builder = builder.subject_to_function("few layers", |p| {
                p.integer("n").is_ok_and(|n| n % 3 != 1) && p.coordinates()[0] > 0.2
            });
        }
        constraints.iter().fold(builder, |builder, text| builder.subject_to(*text)).build().ok()
    })
}

/// An objective of the active values alone.
fn objective(space: &Space, point: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (place, (name, values)) in space.view(point).assignments().enumerate() {
        let text = format!("{name}={values}");
        let mixed =
            text.bytes().fold(place as u64, |h, b| h.wrapping_mul(31).wrapping_add(b.into()));
        sum += (mixed % 1000) as f64 / 1000.0;
    }
    sum
}

/// Whether two points are the same but for the rounding of logarithms: `ln(exp(x))` may differ from `x` in the last bit.
fn is_same(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-14 * (1.0 + a.abs()))
}

fn algorithms(space: &Space) -> impl Iterator<Item = Algorithm> {
    Algorithm::all().filter(|algorithm| algorithm.takes(space).is_ok() && algorithm.name() != "gp")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn every_candidate_is_a_point_of_the_space_and_resumes_to_the_bit(space in spaces(), seed in 0..100u64) {
        for algorithm in algorithms(&space) {
            let mut optimizer = algorithm.optimizer(&space, Some(60), seed).unwrap();
            let mut copy = None;
            for step in 0..40 {
                if step == 20 {
                    copy = Some(load_in(&space, &optimizer.save()).unwrap());
                }
                let Some(candidate) = optimizer.ask() else { break };
                prop_assert_eq!(space.check(candidate.point()), Ok(()), "{}", algorithm);
                let value = objective(&space, candidate.point());
                if let Some(copy) = &mut copy {
                    let other = copy.ask().unwrap();
                    prop_assert_eq!(other.point(), candidate.point(), "{}", algorithm);
                    copy.tell(other, Outcome::from(value)).unwrap();
                }
                optimizer.tell(candidate, Outcome::from(value)).unwrap();
            }
        }
    }

    #[test]
    fn inactive_values_never_matter(space in spaces(), seed in 0..1000u64) {
        let mut optimizer = Algorithm::random().optimizer(&space, None, seed).unwrap();
        let candidate = optimizer.ask().unwrap();
        let point = candidate.point();
        // Names and values give the same point back, and so do the values of other points for what is inactive.
        let named: Vec<_> = space.view(point).assignments().map(|(n, v)| (n.to_string(), v)).collect();
        let encoded = space.encode(named.clone()).unwrap();
        prop_assert!(is_same(&encoded, point), "{encoded:?} {point:?}");
        let other = optimizer.ask().unwrap();
        let mut more = named.clone();
        for (name, values) in space.view(other.point()).assignments() {
            if named.iter().all(|(known, _)| known != name) {
                more.push((name.to_string(), values));
            }
        }
        prop_assert_eq!(space.encode(more).unwrap(), encoded);
        let mut numbers = vec![0.0; space.dimension()];
        space.to_numbers(point, &mut numbers);
        let read = space.from_numbers(&numbers).unwrap();
        prop_assert!(is_same(&read, point), "{read:?} {point:?}");
        let json = serde_json::to_string(&space).unwrap();
        prop_assert_eq!(serde_json::from_str::<Space>(&json).unwrap(), space);
    }
}

#[test]
fn a_box_that_is_nearly_all_forbidden_is_searched() {
    // One point in 100,000 satisfies both, and the optimum is on the boundary.
    let space = Space::builder()
        .reals("x", 10, 0.0, 1.0)
        .subject_to("sum(x) <= 1.2")
        .subject_to("x[0] >= 0.4")
        .build()
        .unwrap();
    assert!(space.admitted_shares().last().is_some_and(|share| *share < 0.01));
    let run = |algorithm: Algorithm| {
        let run = racecars::minimize(&space).algorithm(algorithm).budget(1500).seed(3);
        run.run(|p| {
            Ok::<f64, racecars::Error>(p.coordinates().iter().map(|x| (x - 0.5).powi(2)).sum())
        })
        .unwrap()
        .value()
        .unwrap()
    };
    let (auto, random) = (run(Algorithm::auto()), run(Algorithm::random()));
    // The optimum has all but x[0] at 0.8 / 9.
    assert!(auto < 1.54, "{auto}");
    assert!(auto < random, "{auto} {random}");
}

#[test]
fn random_search_draws_conditional_values_evenly() {
    let space = Space::builder()
        .categorical("mode", ["plain", "tuned"])
        .boolean("deep")
        .when("mode = tuned")
        .real("x", 0.0, 1.0)
        .build()
        .unwrap();
    let mut optimizer = Algorithm::random().optimizer(&space, None, 1).unwrap();
    let mut counts = [0, 0];
    for _ in 0..800 {
        let candidate = optimizer.ask().unwrap();
        let point = space.view(candidate.point());
        let is_tuned = point.is_active("deep").unwrap();
        if is_tuned {
            counts[usize::from(point.boolean("deep").unwrap())] += 1;
        }
        // The best point is always one without it.
        let value = f64::from(u8::from(is_tuned));
        optimizer.tell(candidate, Outcome::from(value)).unwrap();
    }
    assert!(counts.iter().all(|count| (150..250).contains(count)), "{counts:?}");
}

#[test]
fn functions_are_constraints_whose_names_are_saved() {
    let space = || Space::builder().reals("x", 3, 0.0, 1.0).subject_to("x[2] > 0.5");
    let sorted = |p: &racecars::Point<'_>| {
        // Only where the texts hold.
        assert!(p[2] > 0.5);
        p.coordinates().is_sorted()
    };
    let whole = space().subject_to_function("sorted", sorted).build().unwrap();
    let mut optimizer = Algorithm::auto().optimizer(&whole, Some(100), 1).unwrap();
    for _ in 0..30 {
        let candidate = optimizer.ask().unwrap();
        assert!(candidate.point().is_sorted());
        let value = candidate.point()[0];
        optimizer.tell(candidate, Outcome::from(value)).unwrap();
    }
    let saved = optimizer.save();
    let error = load(&saved).map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("constraint function `sorted`: only its name is known"), "{error}");
    assert!(load_in(&space().build().unwrap(), &saved).is_err());
    assert_eq!(load_in(&whole, &saved).unwrap().ask(), optimizer.ask());

    let read: Space = serde_json::from_str(&serde_json::to_string(&whole).unwrap()).unwrap();
    assert_eq!(read, whole);
    assert_ne!(read, space().build().unwrap());
    assert!(Algorithm::random().optimizer(&read, None, 1).is_err());
    assert_eq!(read.check(&[0.9, 0.1, 0.6]), Ok(()));
    let again = read.with_function("sorted", sorted).unwrap();
    let error = again.check(&[0.9, 0.1, 0.6]).unwrap_err().to_string();
    assert_eq!(error, "the point breaks a rule: it does not satisfy the function `sorted`");
    let nothing = again.with_function("nothing", |_| false).unwrap_err().to_string();
    assert!(nothing.starts_with("constraint function `nothing`: no point was found"), "{nothing}");
}

#[test]
fn an_empty_space_is_refused_with_the_constraint_that_empties_it() {
    let error = |constraints: &[&str]| {
        let builder =
            Space::builder().real("a", 0.0, 1.0).integer("n", 1, 9).categorical("m", ["x", "y"]);
        let builder = constraints.iter().fold(builder, |builder, text| builder.subject_to(*text));
        builder.build().unwrap_err().to_string()
    };
    assert_eq!(error(&["a > 2"]), "constraint `a > 2`: no point was found that satisfies it");
    assert_eq!(
        error(&["a < 0.5", "n > 3", "a > 0.6"]),
        "constraint `a > 0.6`: no point was found that satisfies it and those before it"
    );
    assert!(error(&["a <"]).contains("the end stands where a value is expected"));
    assert!(error(&["a < b"]).contains("`b` is neither a name nor a value"));
    assert!(error(&["m = z"]).contains("`m`: z is not one of x, y"));
    assert!(error(&["m < x"]).contains("have no order"));
    assert!(error(&["a = 0.5"]).contains("`a` is real"));
    assert!(error(&["a"]).contains("a comparison, `in` or a boolean is expected"));
    assert!(error(&["cos(a) > 1"]).contains("`cos` is not a function; there are abs, sqrt"));
    assert!(error(&["(a > 1"]).contains("`)` is missing before the end"));
    assert!(error(&["a > 1 2"]).contains("`2` is not expected after the end"));
    let deep = format!("{}a > 1{}", "(".repeat(100), ")".repeat(100));
    assert!(error(&[&deep]).contains("nested deeper than 64"));
    let circle = Space::builder().boolean("p").when("q").boolean("q").when("p").build();
    assert!(circle.unwrap_err().to_string().contains("depends on the coordinate itself"));
}

#[test]
fn a_thin_space_is_found_though_no_draw_hits_it() {
    let space = Space::builder()
        .reals("x", 6, -100.0, 100.0)
        .integers("i", 4, 0, 1000)
        .subject_to("abs(sum(x) - 17) < 0.001")
        .subject_to("sum(i) = 1234")
        .build()
        .unwrap();
    let mut optimizer = Algorithm::race_cars().optimizer(&space, Some(100), 1).unwrap();
    for _ in 0..50 {
        let candidate = optimizer.ask().unwrap();
        assert_eq!(space.check(candidate.point()), Ok(()));
        let value = candidate.point()[0];
        optimizer.tell(candidate, Outcome::from(value)).unwrap();
    }
}

#[test]
fn told_points_that_break_rules_are_refused() {
    let space = Space::builder().reals("x", 2, 0.0, 1.0).subject_to("x[0] < x[1]").build().unwrap();
    let error = Candidate::asked(&space, 0, vec![0.9, 0.1]).unwrap_err();
    assert_eq!(error.to_string(), "the point breaks a rule: it does not satisfy `x[0] < x[1]`");
}
