//! A problem: a function on a space, with a known optimum.

use crate::functions;
use crate::jumps::Jumps;
use crate::rotation::Rotation;
use racecars::random::Random;
use racecars::{Point, Space};
use std::cell::RefCell;

/// The domain of the continuous functions in every coordinate.
const DOMAIN: (f64, f64) = (-10.0, 10.0);
/// The largest distance of a shifted optimum from the centre of the domain, per coordinate.
const SHIFT: f64 = 5.0;

/// The largest dimension of problems with a matrix, which has up to 5 n² numbers.
const MAX_DENSE: usize = 5_000;

/// A test problem to be minimized, with a known optimum.
#[derive(Debug)]
pub struct Problem {
    name: String,
    space: Space,
    optimum: f64,
    landscape: Landscape,
}

/// Why a problem cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProblemError(String);

/// How a problem on reals is made from a function g with the same number of coordinates: the value at x is
/// g(center + R (x - minimizer)), plus the jumps, if any.
///
/// Schwefel is not defined outside of [-10, 10]: arguments of g are clamped, and the squared distances
/// beyond the bounds are added to the value.
#[derive(Debug, Clone, Copy)]
pub struct Transformation<'a> {
    /// The name of g.
    pub function: &'static str,
    /// The minimizer of g, the same in every coordinate.
    pub center: f64,
    /// R; `None` for the identity.
    pub rotation: Option<&'a Rotation>,
    /// Whether jumps are added: see [`Problem::perturbation_at`].
    pub has_jumps: bool,
}

#[derive(Debug)]
enum Landscape {
    /// A function of reals, optionally shifted, rotated and perturbed.
    Continuous(Box<Continuous>),
    /// `mixed-ackley`: Ackley(x) + L'|y|, optionally shifted.
    MixedAckley(MixedAckley),
    /// `integer-sphere`: the sum of (y_i - 3)².
    IntegerSphere,
    /// `mixed-categorical`: Sphere(x) + the number of wrong categories.
    MixedCategorical,
}

#[derive(Debug)]
struct MixedAckley {
    /// L.
    weights: Vec<f64>,
    /// The minimizer, encoded; `None` for 0.2 in the reals and 0 in the integers.
    moved_to: Option<Vec<f64>>,
}

#[derive(Debug)]
struct Continuous {
    function: &'static BaseFunction,
    /// The minimizer of the problem; `None` for that of the function.
    moved_to: Option<Vec<f64>>,
    rotation: Option<Rotation>,
    jumps: Option<Jumps>,
}

/// A function of reals with minimum 0.
#[derive(Debug)]
struct BaseFunction {
    name: &'static str,
    evaluate: fn(&[f64]) -> f64,
    /// Its minimizer, the same in every coordinate.
    center: f64,
    /// Whether it is only defined on its domain.
    is_confined: bool,
}

const fn function(name: &'static str, evaluate: fn(&[f64]) -> f64, center: f64) -> BaseFunction {
    BaseFunction { name, evaluate, center, is_confined: false }
}

const FUNCTIONS: [BaseFunction; 8] = [
    function("ackley", functions::ackley, 0.2),
    function("levy", functions::levy, 1.0),
    function("rastrigin", functions::rastrigin, 0.0),
    function("sphere", functions::sphere, 0.2),
    function("rosenbrock", functions::rosenbrock, 1.0),
    function("griewank", functions::griewank, 0.0),
    BaseFunction {
        is_confined: true,
        ..function("schwefel", functions::schwefel, functions::SCHWEFEL_OPTIMUM)
    },
    function("ellipsoid", functions::ellipsoid, 0.0),
];
const DISCRETE: [&str; 4] =
    ["mixed-ackley", "shifted-mixed-ackley", "integer-sphere", "mixed-categorical"];

impl Problem {
    /// The problem of this name. `seed` determines its random parts.
    ///
    /// Functions on [-10, 10]^n, with minimum 0: `ackley`, `levy`, `rastrigin`, `sphere` (those of the
    /// paper), `rosenbrock`, `griewank`, `schwefel`, `ellipsoid`. Prefixes, in this order:
    /// - `discontinuous-`: the paper's 5n random balls of radius 0.5 with heights in [0, 1], or
    ///   `stepped-`: the same number of jumps, which runs actually cross
    /// - `shifted-`: the optimum at a random point of [-5, 5]^n
    /// - `rotated-`: rotated about the optimum by a random orthogonal matrix, or `turned-`: by n log2 n
    ///   rotations of random pairs of coordinates, which costs less in high dimensions
    ///
    /// Others:
    /// - `mixed-ackley` (the paper's): Ackley on n/2 reals in [-1, 1] plus L'|y| on n/2 integers in
    ///   -10..10, L random in [1, 2]; `shifted-mixed-ackley`: its optimum at a random point of
    ///   [-0.5, 0.5]^(n/2) and -5..5
    /// - `integer-sphere`: the sum of (y_i - 3)² on n integers in -10..10
    /// - `mixed-categorical`: Sphere on n/2 reals in [-1, 1] plus the number of n/2 coordinates of 5
    ///   categories that are not the optimal one
    pub fn named(name: &str, dimension: usize, seed: u64) -> Result<Problem, ProblemError> {
        if dimension == 0 || dimension > racecars::space::MAX_DIMENSION {
            return Err(ProblemError(format!(
                "dimension {dimension} is not from 1 to {}",
                racecars::space::MAX_DIMENSION
            )));
        }
        let mut random = Random::stream(seed, 0x70726f62);
        let half = dimension / 2;
        let (space, landscape) = match name {
            "mixed-ackley" | "shifted-mixed-ackley" | "mixed-categorical" if dimension < 2 => {
                return Err(ProblemError(format!("{name} needs a dimension of at least 2")));
            }
            "mixed-ackley" | "shifted-mixed-ackley" => (
                Space::builder()
                    .reals("x", dimension - half, -1.0, 1.0)
                    .integers("y", half, -10, 10),
                Landscape::MixedAckley(MixedAckley::new(
                    dimension,
                    name.starts_with("shifted-"),
                    &mut random,
                )),
            ),
            "integer-sphere" => {
                (Space::builder().integers("y", dimension, -10, 10), Landscape::IntegerSphere)
            }
            "mixed-categorical" => (
                Space::builder().reals("x", dimension - half, -1.0, 1.0).array(
                    "c",
                    half,
                    racecars::Domain::categorical(["a", "b", "c", "d", "e"]),
                ),
                Landscape::MixedCategorical,
            ),
            _ => (
                Space::builder().reals("x", dimension, DOMAIN.0, DOMAIN.1),
                Landscape::Continuous(Box::new(Continuous::named(name, dimension, &mut random)?)),
            ),
        };
        let space = space.build().map_err(|error| ProblemError(error.to_string()))?;
        Ok(Problem { name: name.to_string(), space, optimum: 0.0, landscape })
    }

    /// The function of this name, without prefixes, on [-radius, radius]^n instead of [-10, 10]^n. The
    /// domain must hold the optimum.
    pub fn with_radius(name: &str, dimension: usize, radius: f64) -> Result<Problem, ProblemError> {
        let mut problem = Problem::named(name, dimension, 0)?;
        let function = FUNCTIONS.iter().find(|function| function.name == name);
        let Some(BaseFunction { center, is_confined: false, .. }) = function else {
            return Err(ProblemError(format!(
                "problem `{name}` has one domain only; a radius is for the continuous functions \
                 without prefixes, except schwefel"
            )));
        };
        if !(radius.is_finite() && radius > center.abs()) {
            return Err(ProblemError(format!(
                "problem `{name}`: radius {radius} is not above {}, where the optimum is",
                center.abs()
            )));
        }
        problem.space = Space::cube(dimension, -radius, radius)
            .map_err(|error| ProblemError(error.to_string()))?;
        Ok(problem)
    }

    /// The names without their prefixes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FUNCTIONS.iter().map(|function| function.name).chain(DISCRETE)
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its search space.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The minimum value.
    pub fn optimum(&self) -> f64 {
        self.optimum
    }

    /// The minimizer, encoded.
    pub fn minimizer(&self) -> Vec<f64> {
        let n = self.space.dimension();
        match &self.landscape {
            Landscape::Continuous(continuous) => {
                continuous.moved_to.clone().unwrap_or_else(|| vec![continuous.function.center; n])
            }
            Landscape::MixedAckley(mixed) => mixed.moved_to.clone().unwrap_or_else(|| {
                let mut point = vec![0.2; n - mixed.weights.len()];
                point.resize(n, 10.0);
                point
            }),
            Landscape::IntegerSphere => vec![13.0; n],
            Landscape::MixedCategorical => {
                let mut point = vec![0.2; n - n / 2];
                point.extend((0..n / 2).map(right_category));
                point
            }
        }
    }

    /// Whether f(x) >= f(x*_1, .., x_i, .., x*_n) for every x and i, x* being the minimizer. Then a
    /// set where f is at most some level lies in the box of its slices along the axes through x*.
    ///
    /// True for sums of functions of one coordinate, each with its minimum at x*, and for Ackley, whose terms
    /// are such; also when shifted or stepped. Not claimed for the others.
    pub fn is_above_its_slices(&self) -> bool {
        match &self.landscape {
            Landscape::Continuous(continuous) => {
                let has_balls = matches!(continuous.jumps, Some(Jumps::Balls { .. }));
                let is_mixing = matches!(continuous.function.name, "rosenbrock" | "griewank");
                !has_balls && !is_mixing && continuous.rotation.is_none()
            }
            _ => false,
        }
    }

    /// How the problem is made from its function; `None` if it has discrete coordinates.
    pub fn transformation(&self) -> Option<Transformation<'_>> {
        match &self.landscape {
            Landscape::Continuous(continuous) => Some(Transformation {
                function: continuous.function.name,
                center: continuous.function.center,
                rotation: continuous.rotation.as_ref(),
                has_jumps: continuous.jumps.is_some(),
            }),
            _ => None,
        }
    }

    /// The value at a point of the problem's space.
    pub fn evaluate(&self, point: Point<'_>) -> f64 {
        self.value_at(point.coordinates())
    }

    /// The value at an encoded point.
    pub fn value_at(&self, point: &[f64]) -> f64 {
        match &self.landscape {
            Landscape::Continuous(continuous) => continuous.value_at(point),
            Landscape::MixedAckley(mixed) => mixed.value_at(point),
            Landscape::IntegerSphere => point.iter().map(|y| (y - 13.0) * (y - 13.0)).sum(),
            Landscape::MixedCategorical => {
                let (x, c) = point.split_at(point.len() - point.len() / 2);
                let wrong = c.iter().enumerate().filter(|&(i, &c)| c != right_category(i));
                functions::sphere(x) + wrong.count() as f64
            }
        }
    }

    /// The amount that the jumps of a discontinuous or stepped problem add at an encoded point.
    pub fn perturbation_at(&self, point: &[f64]) -> f64 {
        match &self.landscape {
            Landscape::Continuous(continuous) => {
                continuous.jumps.as_ref().map_or(0.0, |jumps| jumps.at(point))
            }
            _ => 0.0,
        }
    }
}

fn right_category(index: usize) -> f64 {
    (index % 5) as f64
}

impl MixedAckley {
    fn new(dimension: usize, is_shifted: bool, random: &mut Random) -> MixedAckley {
        let half = dimension / 2;
        let weights = (0..half).map(|_| random.between(1.0, 2.0)).collect();
        let moved_to = is_shifted.then(|| {
            let mut reals: Vec<f64> =
                (half..dimension).map(|_| random.between(-0.5, 0.5)).collect();
            // Indices 5 to 15 of -10..10 stand for -5 to 5.
            reals.extend((0..half).map(|_| 5.0 + random.index(11) as f64));
            reals
        });
        MixedAckley { weights, moved_to }
    }

    fn value_at(&self, point: &[f64]) -> f64 {
        let reals = point.len() - self.weights.len();
        let (x, y) = point.split_at(reals);
        match &self.moved_to {
            // Index 10 of -10..10 stands for 0.
            None => functions::ackley(x) + self.cost(y.iter().map(|y| y - 10.0)),
            Some(optimum) => {
                let (to_x, to_y) = optimum.split_at(reals);
                let x: Vec<f64> = x.iter().zip(to_x).map(|(x, o)| x - o + 0.2).collect();
                functions::ackley(&x) + self.cost(y.iter().zip(to_y).map(|(y, o)| y - o))
            }
        }
    }

    fn cost(&self, away: impl Iterator<Item = f64>) -> f64 {
        away.zip(&self.weights).map(|(away, weight)| weight * away.abs()).sum()
    }
}

impl Continuous {
    fn named(
        name: &str,
        dimension: usize,
        random: &mut Random,
    ) -> Result<Continuous, ProblemError> {
        let mut rest = name;
        let mut has = |prefix: &str| {
            let stripped = rest.strip_prefix(prefix);
            rest = stripped.unwrap_or(rest);
            stripped.is_some()
        };
        let (has_balls, has_slabs) = (has("discontinuous-"), has("stepped-"));
        let is_shifted = has("shifted-");
        let (is_rotated, is_turned) = (has("rotated-"), has("turned-"));
        let Some(function) = FUNCTIONS.iter().find(|function| function.name == rest) else {
            let names: Vec<&str> = Problem::names().collect();
            return Err(ProblemError(format!(
                "problem `{name}` is not known; there are {}; and the continuous ones with \
                 discontinuous- or stepped-, then shifted-, then rotated- or turned- before the name",
                names.join(", ")
            )));
        };
        let moved_to: Option<Vec<f64>> =
            is_shifted.then(|| (0..dimension).map(|_| random.between(-SHIFT, SHIFT)).collect());
        if is_rotated && dimension > MAX_DENSE {
            return Err(ProblemError(format!(
                "problem `{name}`: dimension {dimension} is too large for a dense rotation; at most \
                 {MAX_DENSE} is allowed"
            )));
        }
        let rotation = if is_turned {
            Some(Rotation::of_turns(dimension, random.bits()))
        } else {
            is_rotated.then(|| Rotation::random(dimension, random.bits()))
        };
        let optimum = || moved_to.clone().unwrap_or_else(|| vec![function.center; dimension]);
        let (low, high) = DOMAIN;
        if has_balls && dimension > MAX_DENSE {
            return Err(ProblemError(format!(
                "problem `{name}`: dimension {dimension} is too large for 5n balls; at most \
                 {MAX_DENSE} is allowed"
            )));
        }
        let jumps = if has_balls {
            Some(Jumps::balls(&optimum(), low, high, random))
        } else {
            has_slabs.then(|| Jumps::slabs(&optimum(), low, high, random))
        };
        Ok(Continuous { function, moved_to, rotation, jumps })
    }

    fn value_at(&self, x: &[f64]) -> f64 {
        let smooth = if self.moved_to.is_none() && self.rotation.is_none() {
            (self.function.evaluate)(x)
        } else {
            self.transformed(x)
        };
        match &self.jumps {
            None => smooth,
            Some(jumps) => smooth + jumps.at(x),
        }
    }

    /// The function at center + R (x - optimum).
    fn transformed(&self, x: &[f64]) -> f64 {
        thread_local! {
            static BUFFERS: RefCell<(Vec<f64>, Vec<f64>)> = const { RefCell::new((vec![], vec![])) };
        }
        BUFFERS.with_borrow_mut(|(offset, z)| {
            offset.clear();
            match &self.moved_to {
                Some(optimum) => offset.extend(x.iter().zip(optimum).map(|(x, o)| x - o)),
                None => offset.extend(x.iter().map(|x| x - self.function.center)),
            }
            let turned = match &self.rotation {
                Some(rotation) => {
                    z.resize(x.len(), 0.0);
                    rotation.apply(offset, z);
                    z
                }
                None => offset,
            };
            let mut penalty = 0.0;
            for t in turned.iter_mut() {
                *t += self.function.center;
                // Outside of its domain, such a function has the value at the edge plus a penalty.
                if self.function.is_confined {
                    let inside = t.clamp(DOMAIN.0, DOMAIN.1);
                    penalty += (*t - inside) * (*t - inside);
                    *t = inside;
                }
            }
            (self.function.evaluate)(turned) + penalty
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use racecars::{Algorithm, minimize};

    fn all() -> Vec<String> {
        let prefixes = ["", "discontinuous-", "stepped-", "shifted-", "rotated-"];
        let more = ["shifted-rotated-", "shifted-turned-", "stepped-shifted-rotated-"];
        let functions = FUNCTIONS.iter().map(|function| function.name);
        functions
            .flat_map(|name| {
                prefixes.iter().chain(&more).map(move |prefix| format!("{prefix}{name}"))
            })
            .chain(DISCRETE.map(String::from))
            .collect()
    }

    #[test]
    fn the_value_at_the_minimizer_is_the_optimum_and_no_other_is_less() {
        for name in all() {
            for dimension in [2, 7, 40] {
                let problem = Problem::named(&name, dimension, 3).unwrap();
                let minimizer = problem.minimizer();
                problem.space().check(&minimizer).unwrap();
                let least = problem.value_at(&minimizer);
                assert!((least - problem.optimum()).abs() < 1e-8, "{name}: {least}");
                let mut random = Random::new(1);
                let mut point = vec![0.0; dimension];
                for _ in 0..200 {
                    problem.space().draw(&mut random, &mut point);
                    assert!(problem.value_at(&point) >= least - 1e-8, "{name} at {point:?}");
                }
            }
        }
    }

    #[test]
    fn names_that_are_not_known_are_refused_with_those_that_are() {
        for name in ["nonsense", "rotated-shifted-ackley", "rotated-mixed-ackley", ""] {
            let error = Problem::named(name, 5, 0).err().unwrap().to_string();
            assert!(error.contains("ackley, levy"), "{error}");
        }
        assert!(Problem::named("ackley", 0, 0).is_err());
        assert!(Problem::named("mixed-ackley", 1, 0).is_err());
        assert!(Problem::named("ackley", 1, 0).is_ok());
    }

    #[test]
    fn the_same_seed_gives_the_same_problem() {
        let at =
            |seed| Problem::named("shifted-rotated-levy", 9, seed).unwrap().value_at(&[1.0; 9]);
        assert_eq!(at(4), at(4));
        assert_ne!(at(4), at(5));
    }

    #[test]
    fn a_radius_changes_the_domain_and_nothing_else() {
        let problem = Problem::with_radius("ackley", 3, 25.0).unwrap();
        problem.space().check(&[25.0, -25.0, 0.0]).unwrap();
        assert!(problem.space().check(&[25.1, 0.0, 0.0]).is_err());
        let same = Problem::named("ackley", 3, 0).unwrap();
        assert_eq!(problem.value_at(&[1.0, 2.0, 3.0]), same.value_at(&[1.0, 2.0, 3.0]));
        for (name, radius) in
            [("levy", 1.0), ("sphere", f64::NAN), ("shifted-ackley", 5.0), ("mixed-ackley", 5.0)]
        {
            assert!(Problem::with_radius(name, 4, radius).is_err(), "{name} {radius}");
        }
    }

    #[test]
    fn problems_said_to_lie_above_their_slices_do() {
        let mut random = Random::new(2);
        let named = |name: &String| Problem::named(name, 5, 3).unwrap();
        let (above, others): (Vec<_>, Vec<_>) =
            all().iter().map(named).partition(|problem| problem.is_above_its_slices());
        assert!(above.len() == 6 * 3 && others.iter().all(|problem| problem.name() != "ackley"));
        for problem in above {
            let mut point = vec![0.0; 5];
            for _ in 0..500 {
                problem.space().draw(&mut random, &mut point);
                let value = problem.value_at(&point);
                for i in 0..5 {
                    let mut slice = problem.minimizer();
                    slice[i] = point[i];
                    assert!(value >= problem.value_at(&slice) - 1e-9, "{}", problem.name());
                }
            }
        }
    }

    #[test]
    fn the_transformation_says_how_to_evaluate_the_problem() {
        let problem = Problem::named("stepped-shifted-rotated-levy", 6, 2).unwrap();
        let transformation = problem.transformation().unwrap();
        assert_eq!((transformation.function, transformation.has_jumps), ("levy", true));
        let x = [1.0, -2.0, 3.0, -4.0, 5.0, -6.0];
        let offset: Vec<f64> = x.iter().zip(problem.minimizer()).map(|(x, o)| x - o).collect();
        let rows = transformation.rotation.unwrap().rows();
        let turned =
            rows.iter().map(|row| row.iter().zip(&offset).map(|(r, o)| r * o).sum::<f64>());
        let z: Vec<f64> = turned.map(|t| transformation.center + t).collect();
        let expected = functions::levy(&z) + problem.perturbation_at(&x);
        assert!((problem.value_at(&x) - expected).abs() < 1e-9);
        assert!(Problem::named("integer-sphere", 6, 2).unwrap().transformation().is_none());
    }

    /// The share of a run's evaluations that are changed by jumps.
    fn share_perturbed(name: &str) -> f64 {
        let problem = Problem::named(name, 50, 1).unwrap();
        let mut touched = 0;
        let solution = minimize(problem.space())
            .algorithm(Algorithm::sracos())
            .budget(3000)
            .run(|p| {
                touched += u32::from(problem.perturbation_at(p.coordinates()) > 0.0);
                problem.evaluate(p)
            })
            .unwrap();
        f64::from(touched) / solution.evaluations() as f64
    }

    #[test]
    fn the_papers_balls_are_never_met_and_the_steps_always() {
        assert_eq!(share_perturbed("discontinuous-sphere"), 0.0);
        assert!(share_perturbed("stepped-sphere") > 0.9);
    }
}
