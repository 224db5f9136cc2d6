//! The search against known optima, under failures, parallel asks, saves and known points; the subproblem
//! against random steps, and the model against the definitions.

use super::model::Model;
use super::{Quadratic, QuadraticSearch};
use crate::linalg::triangular::Lower;
use crate::optimizers::shell::{Setup, Shell};
use crate::optimizers::trust_region::{Region, Solver};
use crate::optimizers::{Algorithm, Candidate, Optimizer, load};
use crate::outcome::Outcome;
use crate::random::Random;
use crate::space::Space;

fn search(space: &Space, settings: Quadratic) -> Shell<QuadraticSearch> {
    let setup = Setup { space, budget: None, seed: 1 };
    let make = |random: &mut Random| QuadraticSearch::new(&settings, setup, random);
    Shell::new("quadratic", setup, make).unwrap()
}

/// The best value after some evaluations, one at a time.
fn minimize(
    space: &Space,
    settings: Quadratic,
    evaluations: usize,
    value: impl Fn(&[f64]) -> f64,
) -> f64 {
    let mut search = search(space, settings);
    for _ in 0..evaluations {
        let candidate = search.ask().unwrap();
        let outcome = Outcome::from(value(candidate.point()));
        search.tell(candidate, outcome).unwrap();
    }
    search.best().unwrap().rank.value().unwrap()
}

fn sphere(point: &[f64]) -> f64 {
    point.iter().map(|x| (x - 1.0) * (x - 1.0)).sum()
}

fn rosenbrock(point: &[f64]) -> f64 {
    let pairs = point.iter().zip(&point[1..]);
    pairs.map(|(x, y)| 100.0 * (y - x * x).powi(2) + (1.0 - x).powi(2)).sum()
}

/// A quadratic with condition 1e6, in a basis of random reflections, with its minimum 0 at (0.7, 0.7, ...).
fn ellipsoid(n: usize) -> impl Fn(&[f64]) -> f64 {
    let mut normals = vec![0.0; n * n];
    Random::new(5).fill_normal(&mut normals);
    move |point: &[f64]| {
        let mut z: Vec<f64> = point.iter().map(|x| x - 0.7).collect();
        for u in normals.chunks_exact(n) {
            let share = 2.0 * z.iter().zip(u).map(|(z, u)| z * u).sum::<f64>()
                / u.iter().map(|u| u * u).sum::<f64>();
            z.iter_mut().zip(u).for_each(|(z, u)| *z -= share * u);
        }
        let weight = |i: usize| 1e6f64.powf(i as f64 / (n - 1) as f64);
        z.iter().enumerate().map(|(i, z)| weight(i) * z * z).sum()
    }
}

#[test]
fn an_ill_conditioned_quadratic_is_solved_in_a_multiple_of_n_squared_evaluations() {
    let n = 10;
    let space = Space::cube(n, -5.0, 5.0).unwrap();
    let points = (n + 1) * (n + 2) / 2;
    let full = minimize(&space, Quadratic::default().points(points), 2 * n * n, ellipsoid(n));
    assert!(full < 1e-10, "{full}");
    let few = minimize(&space, Quadratic::default(), 60 * n * n, ellipsoid(n));
    assert!(few < 1e-10, "{few}");
}

#[test]
fn rosenbrock_is_solved() {
    for (n, evaluations) in [(2, 200), (5, 500), (10, 1000)] {
        let space = Space::cube(n, -5.0, 5.0).unwrap();
        let best = minimize(&space, Quadratic::default(), evaluations, rosenbrock);
        assert!(best < 1e-10, "{n}: {best}");
    }
}

#[test]
fn optima_on_bounds_and_in_corners_are_found() {
    for n in [1, 2, 7] {
        let space = Space::cube(n, -3.0, 2.0).unwrap();
        // Even coordinates have their optimum outside of the box, odd ones inside.
        let value = |point: &[f64]| {
            let parts = point.iter().enumerate();
            let parts = parts.map(|(i, x)| (x - if i % 2 == 0 { 4.0 } else { -0.5 }).powi(2));
            parts.sum::<f64>() - 4.0 * n.div_ceil(2) as f64
        };
        let best = minimize(&space, Quadratic::default(), 30 * n, value);
        assert!(best.abs() < 1e-10, "{n}: {best}");
        let corner = minimize(&space, Quadratic::default(), 30 * n, |x| x.iter().sum());
        assert_eq!(corner, -3.0 * n as f64);
    }
}

#[test]
fn the_design_is_a_descent_and_solves_a_separable_quadratic() {
    let n = 10;
    let space = Space::cube(n, -5.0, 5.0).unwrap();
    // Two and a half from the centre, to either side; a step of the design is two.
    let target = |i: usize| if i.is_multiple_of(2) { 2.5 } else { -2.5 };
    let value = |x: &[f64]| {
        let parts = x.iter().enumerate();
        parts.map(|(i, x)| (i + 1) as f64 * (x - target(i)).powi(2)).sum::<f64>()
    };
    let best = |evaluations: usize| minimize(&space, Quadratic::default(), evaluations, value);
    let (first, designed, solved) = (best(1), best(2 * n + 1), best(2 * n + 4));
    assert!(designed < 0.1 * first, "{first} {designed}");
    assert!(solved < 1e-8, "{solved}");
}

#[test]
fn a_design_repeats_no_point_when_others_find_better_ones() {
    let space = Space::cube(3, -1.0, 3.0).unwrap();
    let value = |x: &[f64]| x.iter().map(|x| (x - 0.3) * (x - 0.3)).sum::<f64>();
    let mut search = search(&space, Quadratic::default());
    let mut points: Vec<Vec<f64>> = Vec::new();
    for i in 0..7 {
        if i == 3 {
            // Both steps along the second axis are worse than this one.
            let known = [0.2, 0.3, 1.0];
            search.tell(Candidate::known(known), Outcome::from(value(&known))).unwrap();
        }
        let candidate = search.ask().unwrap();
        assert!(points.iter().all(|point| point != candidate.point()), "{candidate:?} {points:?}");
        points.push(candidate.point().to_vec());
        let outcome = Outcome::from(value(candidate.point()));
        search.tell(candidate, outcome).unwrap();
    }
}

#[test]
fn a_small_budget_has_a_linear_model_before_its_end() {
    let n = 20;
    let space = Space::cube(n, -5.0, 5.0).unwrap();
    for budget in [10, n as u64, 2 * n as u64] {
        let mut search = Algorithm::quadratic().optimizer(&space, Some(budget), 1).unwrap();
        let mut values = Vec::new();
        for _ in 0..budget {
            let candidate = search.ask().unwrap();
            values.push(candidate.point().iter().sum::<f64>());
            search.tell(candidate, Outcome::from(*values.last().unwrap())).unwrap();
        }
        // A step of the design changes the sum by 2.2 at most; one of the model by about 4 in n dimensions.
        let steps = values.windows(2).map(|pair| pair[0] - pair[1]);
        let greatest = steps.fold(0.0, f64::max);
        assert!(greatest > 3.0, "{budget}: {values:?}");
    }
}

#[test]
fn many_dimensions_stay_accurate() {
    let space = Space::cube(100, -5.0, 5.0).unwrap();
    let best = minimize(&space, Quadratic::default(), 400, sphere);
    assert!(best < 1e-6, "{best}");
}

#[test]
fn many_pending_candidates_are_told_in_any_order() {
    for workers in [2, 8, 64] {
        let space = Space::cube(5, -5.0, 5.0).unwrap();
        let mut search = search(&space, Quadratic::default());
        let (mut random, mut out) = (Random::new(1), Vec::new());
        for _ in 0..1500 {
            out.extend(search.ask());
            if out.len() == workers {
                let candidate: Candidate = out.swap_remove(random.index(workers));
                let outcome = Outcome::from(rosenbrock(candidate.point()));
                search.tell(candidate, outcome).unwrap();
            }
        }
        let best = search.best().unwrap().rank.value().unwrap();
        assert!(best < 1e-6, "{workers}: {best}");
    }
}

#[test]
fn lost_and_failed_candidates_do_not_stall_the_search() {
    let space = Space::cube(5, -5.0, 5.0).unwrap();
    let mut search = search(&space, Quadratic::default());
    let mut random = Random::new(1);
    for _ in 0..1000 {
        let candidate = search.ask().unwrap();
        let outcome = match random.index(8) {
            0 | 1 => continue,
            2 => Outcome::failed("late"),
            _ => Outcome::from(sphere(candidate.point())),
        };
        search.tell(candidate, outcome).unwrap();
    }
    let best = search.best().unwrap().rank.value().unwrap();
    assert!(best < 1e-6, "{best}");
}

#[test]
fn an_infeasible_half_of_the_space_is_left() {
    let space = Space::cube(4, -5.0, 5.0).unwrap();
    let mut search = search(&space, Quadratic::default());
    for _ in 0..500 {
        let candidate = search.ask().unwrap();
        let point = candidate.point();
        let violation = point[0] - 0.5;
        let outcome = match violation > 0.0 {
            true => Outcome::infeasible(violation),
            false => Outcome::from(sphere(point)),
        };
        search.tell(candidate, outcome).unwrap();
    }
    let best = search.best().unwrap().rank.value().unwrap();
    assert!((0.25..0.5).contains(&best), "{best}");
}

#[test]
fn huge_and_tiny_values_are_minimized_like_others() {
    let space = Space::cube(5, -5.0, 5.0).unwrap();
    for factor in [1e-250, 1e-100, 1e100, 1e300] {
        let value = |x: &[f64]| factor * rosenbrock(x) / 1e5;
        let best = minimize(&space, Quadratic::default(), 600, value);
        assert!(best / factor < 1e-10, "{factor}: {best}");
    }
}

#[test]
fn a_plateau_and_convergence_lead_to_restarts_and_soon() {
    let space = Space::cube(6, -5.0, 5.0).unwrap();
    let restarts = |evaluations: usize, value: &dyn Fn(&[f64]) -> f64| {
        let mut search = search(&space, Quadratic::default());
        for _ in 0..evaluations {
            let candidate = search.ask().unwrap();
            let outcome = Outcome::from(value(candidate.point()));
            search.tell(candidate, outcome).unwrap();
        }
        search.restarts()
    };
    assert!(restarts(200, &|_| 3.0) >= 5);
    assert_eq!(restarts(20, &|x| 1000.0 + sphere(x)), 0);
    assert!(restarts(100, &|x| 1000.0 + sphere(x)) >= 1);
    assert!(restarts(150, &sphere) >= 1);
    let all_fail = restarts(200, &|_| f64::NAN);
    assert!(all_fail >= 5, "{all_fail}");
}

#[test]
fn the_search_starts_at_the_best_known_point_and_moves_to_better_ones() {
    let space = Space::cube(3, -4.0, 4.0).unwrap();
    let mut search = search(&space, Quadratic::default().radius(0.01));
    search.tell(Candidate::known([1.0; 3]), Outcome::from(1.0)).unwrap();
    search.tell(Candidate::known([2.0; 3]), Outcome::from(3.0)).unwrap();
    let candidate = search.ask().unwrap();
    let changed: Vec<f64> = candidate.point().iter().map(|x| (x - 1.0).abs()).collect();
    assert!(changed.iter().sum::<f64>() < 0.1 && changed.iter().any(|x| *x > 0.05), "{changed:?}");
    search.tell(candidate, Outcome::from(2.0)).unwrap();
    search.tell(Candidate::known([-3.0; 3]), Outcome::from(0.5)).unwrap();
    for _ in 0..20 {
        let candidate = search.ask().unwrap();
        assert!(candidate.point().iter().all(|x| (x + 3.0).abs() < 1.0), "{candidate:?}");
        let outcome = Outcome::from(0.5 + (candidate.point()[0] + 3.0).abs());
        search.tell(candidate, outcome).unwrap();
    }
}

#[test]
fn a_restored_run_continues_bit_for_bit() {
    let space = Space::cube(4, -5.0, 5.0).unwrap();
    let new = || Algorithm::quadratic().optimizer(&space, Some(500), 3).unwrap();
    let (mut straight, mut broken) = (new(), new());
    let (mut random, mut out) = (Random::new(1), Vec::new());
    for i in 0..600 {
        broken = load(&broken.save()).unwrap();
        let (a, b) = (straight.ask().unwrap(), broken.ask().unwrap());
        assert_eq!(a, b);
        out.push((a, b));
        if out.len() >= 3 {
            let (a, b) = out.swap_remove(random.index(3));
            let outcome =
                if i % 17 == 0 { Outcome::failed("late") } else { rosenbrock(a.point()).into() };
            straight.tell(a, outcome.clone()).unwrap();
            broken.tell(b, outcome).unwrap();
        }
    }
    assert_eq!(straight.save(), broken.save());
}

/// A symmetric matrix of normal numbers.
fn symmetric(n: usize, random: &mut Random) -> Lower {
    let mut matrix = Lower::identity(n);
    (0..n).for_each(|i| random.fill_normal(matrix.row_mut(i)));
    matrix
}

#[test]
fn no_random_step_is_better_than_the_solution_of_the_subproblem() {
    let mut random = Random::new(3);
    let mut solver = Solver::default();
    for case in 0..300 {
        let n = 1 + case % 6;
        let mut curvature = symmetric(n, &mut random);
        let is_convex = case % 2 == 0;
        if is_convex {
            (0..n).for_each(|i| curvature.row_mut(i)[i] += 3.0 * n as f64);
        }
        let mut gradient = vec![0.0; n];
        random.fill_normal(&mut gradient);
        if case % 5 == 0 {
            gradient.fill(0.0);
        }
        let bounds = |random: &mut Random| (0..n).map(|_| random.between(0.0, 2.0)).collect();
        let mut high: Vec<f64> = bounds(&mut random);
        let mut low: Vec<f64> = bounds(&mut random).iter().map(|x: &f64| -x).collect();
        if case % 5 == 0 {
            // Without a gradient either direction along an eigenvector is as good, but not in a box.
            (high, low) = (vec![9.0; n], vec![-9.0; n]);
        }
        let radius = [0.1, 1.0, 3.0][case % 3];
        let change = |d: &[f64]| {
            let slope: f64 = gradient.iter().zip(d).map(|(g, d)| g * d).sum();
            slope + 0.5 * curvature.quadratic_form(d)
        };
        let mut step = vec![0.0; n];
        let region = Region { radius, low: &low, high: &high };
        let decrease = solver.minimize(1.0, &gradient, &curvature, region, &mut step);
        assert!(step.iter().map(|d| d * d).sum::<f64>().sqrt() <= radius * (1.0 + 1e-9));
        assert!((0..n).all(|i| (low[i]..=high[i]).contains(&step[i])));
        assert!((change(&step) + decrease).abs() <= 1e-9 * (1.0 + decrease), "{case}");
        let mut best = 0.0f64;
        for _ in 0..3000 {
            let mut d = vec![0.0; n];
            random.fill_normal(&mut d);
            let length = d.iter().map(|d| d * d).sum::<f64>().sqrt();
            let share = radius * random.unit().sqrt() / length;
            for (i, d) in d.iter_mut().enumerate() {
                *d = (*d * share).clamp(low[i], high[i]);
            }
            best = best.min(change(&d));
        }
        // Indefinite quadratics in a box have local minima, of which any will do.
        let share = if is_convex { 0.9 } else { 0.25 };
        assert!(decrease >= -share * best, "{case}: {decrease} {best}");
    }
}

#[test]
fn the_model_through_enough_points_is_the_quadratic_itself() {
    let mut random = Random::new(4);
    for n in [1, 2, 5] {
        let (curvature, count) = (symmetric(n, &mut random), (n + 1) * (n + 2) / 2);
        let value = |x: &[f64]| 3.0 + x.iter().sum::<f64>() + curvature.quadratic_form(x);
        let points: Vec<f64> = (0..n * count).map(|_| random.unit()).collect();
        let values = points.chunks_exact(n).map(value).collect();
        let mut model = Model::new(points.clone(), values, 0.5);
        for point in points.chunks_exact(n) {
            let step: Vec<f64> = point.iter().zip(model.best_point()).map(|(x, b)| x - b).collect();
            let predicted = model.best_value() + model.change(&step);
            assert!((predicted - value(point)).abs() < 1e-8);
        }
        let fresh: Vec<f64> = (0..n).map(|_| random.unit()).collect();
        let step: Vec<f64> = fresh.iter().zip(model.best_point()).map(|(x, b)| x - b).collect();
        assert!((model.best_value() + model.change(&step) - value(&fresh)).abs() < 1e-5);
        // Lagrange functions are 1 at their point and 0 at the others.
        let (mut gradient, mut bend) = (vec![0.0; n], Lower::identity(n));
        let best = model.best_index();
        for t in (0..count).filter(|&t| t != best) {
            model.lagrange(t, &mut gradient, &mut bend);
            for j in 0..count {
                let step = model.point(j).iter().zip(model.best_point());
                let step: Vec<f64> = step.map(|(x, b)| x - b).collect();
                let slope: f64 = gradient.iter().zip(&step).map(|(g, d)| g * d).sum();
                let value = slope + 0.5 * bend.quadratic_form(&step);
                assert!((value - f64::from(u8::from(j == t))).abs() < 1e-5, "{t} {j} {value}");
            }
        }
    }
}
