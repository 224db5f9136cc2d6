//! Tests of the classifier: learned boxes, and the distribution of samples.

use super::*;
use crate::outcome::Outcome;
use crate::sample::Sample;
use crate::space::Space;

fn any(count: usize) -> Uncertain {
    Uncertain { count, first: None, must_change: false, is_far: false, frees_categories: false }
}

fn samples(space: &Space, count: usize, random: &mut Random) -> Vec<Sample> {
    let draw = |_| {
        let mut point = vec![0.0; space.dimension()].into_boxed_slice();
        space.draw(random, &mut point);
        Sample { key: space.key(&point), point, rank: Outcome::from(0.0).rank() }
    };
    (0..count).map(draw).collect()
}

fn mixed() -> Space {
    Space::builder()
        .reals("x", 3, -1.0, 1.0)
        .integers("i", 3, -5, 5)
        .categorical("c", ["a", "b", "c", "d"])
        .log_integer("l", 1, 1000)
        .build()
        .unwrap()
}

fn discrete() -> Space {
    let builder = Space::builder().integers("i", 4, 0, 3).categorical("c", ["a", "b", "c"]);
    builder.boolean("b").build().unwrap()
}

/// The first sample is positive.
fn examples<'a>(space: &'a Space, samples: &'a [Sample]) -> Examples<'a> {
    Examples { space, positive: &samples[0], negatives: &samples[1..], differences: None }
}

/// Whether the learned box contains this point (the interior, on a continuous axis).
fn holds(classifier: &Classifier, space: &Space, positive: &[f64], point: &[f64]) -> bool {
    classifier.cuts.iter().all(|cut| {
        let x = point[cut.index];
        let Interval { low, high } = cut.interval;
        match space.axis(cut.index) {
            Axis::Continuous { .. } => low < x && x < high,
            Axis::Ordered { .. } => low <= x && x <= high,
            Axis::Unordered { .. } => x == positive[cut.index],
        }
    })
}

#[test]
fn the_learned_box_contains_the_positive_and_no_negative() {
    let mut random = Random::new(1);
    for space in [Space::cube(1, 0.0, 1.0).unwrap(), Space::cube(30, 0.0, 1.0).unwrap(), mixed()] {
        let mut classifier = Classifier::default();
        for _ in 0..300 {
            let all = samples(&space, 21, &mut random);
            let (positive, negatives) = (&all[0].point, &all[1..]);
            classifier.forget();
            classifier.train_all(examples(&space, &all), CutOrder::Uniform, &mut random);
            for cut in classifier.cuts.iter().filter(|cut| !cut.is_fixed) {
                let Interval { low, high } = cut.interval;
                assert!(low <= positive[cut.index] && positive[cut.index] <= high);
            }
            assert!(!negatives.iter().any(|n| holds(&classifier, &space, positive, &n.point)));
        }
    }
}

#[test]
fn a_complete_box_is_inside_the_region_and_excludes_all_negatives() {
    let (space, mut random) = (Space::cube(6, 0.0, 1.0).unwrap(), Random::new(7));
    let mut classifier = Classifier::default();
    for _ in 0..200 {
        let all = samples(&space, 22, &mut random);
        let region = SearchRegion::new(&all[0].point, 0.4, 0);
        let learned = classifier.learn(examples(&space, &all), Some(region), &mut random);
        for (index, part) in learned.iter().enumerate() {
            let allowed = region.interval(index, space.axis(index));
            assert_eq!(part.intersection(allowed), Some(*part));
            assert!(part.low <= all[0].point[index] && all[0].point[index] <= part.high);
        }
        let outside = |n: &Sample| {
            let mut parts = n.point.iter().zip(&learned);
            parts.any(|(x, part)| *x <= part.low || *x >= part.high)
        };
        assert!(all[1..].iter().all(outside));
    }
}

#[test]
fn in_a_discrete_space_every_different_negative_is_excluded() {
    let (space, mut random) = (discrete(), Random::new(2));
    let mut classifier = Classifier::default();
    for _ in 0..500 {
        let all = samples(&space, 40, &mut random);
        let (positive, negatives) = (&all[0], &all[1..]);
        classifier.forget();
        classifier.train_all(examples(&space, &all), CutOrder::Uniform, &mut random);
        for negative in negatives.iter().filter(|n| n.key != positive.key) {
            assert!(!holds(&classifier, &space, &positive.point, &negative.point));
        }
    }
}

#[test]
fn training_ends_if_all_points_are_equal() {
    let mut random = Random::new(3);
    for space in [Space::cube(5, 0.0, 1.0).unwrap(), mixed(), discrete()] {
        let equal = vec![samples(&space, 1, &mut random)[0].clone(); 21];
        let mut classifier = Classifier::default();
        classifier.forget();
        classifier.train_all(examples(&space, &equal), CutOrder::Uniform, &mut random);
        assert!(classifier.cuts.iter().len() == 0 || !space.is_discrete());
    }
}

#[test]
fn a_sample_differs_from_its_positive_in_uncertain_coordinates_only_and_has_the_right_key() {
    let mut random = Random::new(4);
    for space in [mixed(), discrete()] {
        let mut classifier = Classifier::default();
        for uncertain in 1..=space.dimension() {
            for _ in 0..100 {
                let mut all = samples(&space, 22, &mut random);
                let center = all.remove(1);
                let region = SearchRegion::new(&center.point, random.unit(), random.bits());
                let region = random.chance(0.5).then_some(region);
                let first = random.chance(0.5).then(|| random.index(space.dimension()));
                let mut point = vec![0.0; space.dimension()];
                let key = classifier.draw(
                    examples(&space, &all),
                    region,
                    Uncertain {
                        count: uncertain,
                        first,
                        must_change: random.chance(0.5),
                        is_far: random.chance(0.5),
                        frees_categories: random.chance(0.5),
                    },
                    &mut random,
                    |_| false,
                );
                classifier.write(&all[0].point, &mut point);
                space.check(&point).unwrap();
                assert_eq!(key, Some(space.key(&point)));
                let changed = point.iter().zip(&all[0].point).filter(|(a, b)| a != b).count();
                assert!(changed <= uncertain);
            }
        }
    }
}

/// Two-sample Kolmogorov-Smirnov test, at a level of about 0.001.
fn have_same_distribution(mut a: Vec<f64>, mut b: Vec<f64>) -> bool {
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let share = |list: &[f64], x: f64| list.partition_point(|&y| y <= x) as f64 / list.len() as f64;
    let gap = a.iter().map(|&x| (share(&a, x) - share(&b, x)).abs()).fold(0.0, f64::max);
    gap < 1.95 * (1.0 / a.len() as f64 + 1.0 / b.len() as f64).sqrt()
}

/// A sample from a completely learned box.
fn draw_completely(
    classifier: &mut Classifier,
    examples: Examples<'_>,
    uncertain: Uncertain,
    random: &mut Random,
) {
    classifier.forget();
    classifier.train_all(examples, CutOrder::Uniform, random);
    classifier.choose_uncertain(examples.space.dimension(), uncertain, random);
    classifier.replace_fixed(examples, random);
    classifier.redraw(examples, None, uncertain, random);
}

/// The change of the first changed coordinate, which differs between coordinates.
fn change(positive: &[f64], point: &[f64]) -> f64 {
    let mut pairs = point.iter().zip(positive).enumerate();
    let changed = pairs.find(|(_, (a, b))| a != b);
    changed.map_or(0.0, |(index, (a, b))| 100.0 * index as f64 + a - b)
}

/// Checks that samples have the distribution that they would have if boxes were learned completely.
fn assert_same_samples(
    examples: Examples<'_>,
    uncertain: Uncertain,
    draws: usize,
    random: &mut Random,
) {
    let mut classifier = Classifier::default();
    let (mut lazy, mut full) = (Vec::new(), Vec::new());
    let positive = &examples.positive.point;
    let mut point = vec![0.0; positive.len()];
    for _ in 0..draws {
        classifier.draw(examples, None, uncertain, random, |_| false);
        classifier.write(positive, &mut point);
        lazy.push(change(positive, &point));
        draw_completely(&mut classifier, examples, uncertain, random);
        classifier.write(positive, &mut point);
        full.push(change(positive, &point));
    }
    assert!(have_same_distribution(lazy, full), "n={} {uncertain:?}", positive.len());
}

#[test]
fn skipping_irrelevant_cuts_does_not_change_the_distribution() {
    let mut random = Random::new(6);
    for (dimension, uncertain, negatives) in [(1, 1, 5), (3, 1, 6), (4, 2, 20), (30, 2, 20)] {
        let space = Space::cube(dimension, 0.0, 1.0).unwrap();
        let all = samples(&space, negatives + 1, &mut random);
        assert_same_samples(examples(&space, &all), any(uncertain), 20_000, &mut random);
    }
}

#[test]
fn learning_related_negatives_only_does_not_change_the_distribution() {
    let mut random = Random::new(8);
    let bits = Space::builder().array("b", 12, crate::Domain::Boolean).build().unwrap();
    let integers = Space::builder().integers("i", 12, 0, 9).build().unwrap();
    for space in [bits, integers, mixed()] {
        for distance in [1, 2, 4] {
            // Negatives that differ from x+ in a few coordinates, as late in a run.
            let mut all = vec![samples(&space, 1, &mut random)[0].clone(); 9];
            for negative in &mut all[1..] {
                for _ in 0..distance {
                    let index = random.index(space.dimension());
                    negative.point[index] = space.axis(index).draw(&mut random);
                }
                negative.key = space.key(&negative.point);
            }
            for first in [None, Some(0)] {
                for count in [1, 2] {
                    let uncertain = Uncertain { first, ..any(count) };
                    assert_same_samples(examples(&space, &all), uncertain, 4000, &mut random);
                }
            }
        }
    }
}

#[test]
fn all_subsets_of_uncertain_coordinates_are_equally_likely() {
    let mut random = Random::new(5);
    let mut classifier = Classifier::default();
    for wanted in [1, 2, 4] {
        let mut counts = [0u32; 5];
        for _ in 0..10_000 {
            classifier.choose_uncertain(5, any(wanted), &mut random);
            assert_eq!(classifier.uncertain.len(), wanted);
            classifier.uncertain.iter().for_each(|&index| counts[index] += 1);
        }
        let expected = 2000 * wanted as u32;
        assert!(counts.iter().all(|&c| c.abs_diff(expected) < 250), "{counts:?}");
    }
}
