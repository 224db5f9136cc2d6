//! ZO-Adam: gradient descent with adaptive moments on gradients estimated from values
//! (X. Chen et al., "ZO-AdaMM: zeroth-order adaptive momentum method for black-box optimization",
//! NeurIPS 2019, Algorithm 1).
//!
//! A step evaluates the iterate x and q points x + mu u, with u uniform on the unit sphere, and takes
//! the mean of (n / mu) (f(x + mu u) - f(x)) u for the gradient g. Then
//!
//! ```text
//! m  = beta1 m + (1 - beta1) g
//! v  = beta2 v + (1 - beta2) g²        v' = max(v', v)
//! x  = projection onto the box of x - alpha m / sqrt(v')
//! ```
//!
//! The projection in the norm of the diagonal matrix sqrt(v') is clipping, since a box constrains each
//! coordinate separately. Coordinates are scaled to axes of length 1.
//!
//! Departures:
//!
//! - A perturbed point outside of the box is clipped, and the clipped mu u is the direction.
//! - Over the budget, alpha falls linearly to 0, and mu geometrically to a thousandth; without a
//!   budget, both fall with the inverse root of the number of steps.
//! - To fit ask and tell, a step ends when the iterate and any q directions are told. Until then, asking
//!   proposes more directions, which replace lost candidates. A failed direction counts as told and is
//!   left out of the mean. If the iterate fails, the next step starts at the best point known.

use super::ledger::Ledger;
use super::saved::ID_HEADROOM;
use super::settings::settings;
use super::shell::{Evaluated, Proposal, Search, Setup, Tools};
use super::unit_box::{scale_down, scale_up};
use crate::error::{Result, ensure};
use crate::random::Random;
use crate::sample::Sample;
use crate::space::Space;
use serde::{Deserialize, Serialize};

settings! {
    /// Settings of ZO-Adam. Settings that are not given are derived.
    #[derive(Copy)]
    pub struct ZoAdam {
        /// alpha: the initial learning rate, as a fraction of each axis. Default: 0.01.
        learning_rate: Option<f64>,
        /// mu: the initial length of the perturbations, where each axis has length 1. Default: 0.06 sqrt(n),
        /// that is 0.06 of each axis, which smooths over ripples.
        smoothing: Option<f64>,
        /// q: the number of directions per gradient estimate. Default: 10.
        directions: Option<usize>,
        /// beta1: the decay of the mean gradient per step. Default: 0.9.
        beta1: Option<f64>,
        /// beta2: the decay of the mean squared gradient per step. Default: 0.99.
        beta2: Option<f64>,
    }
}

/// [`ZoAdam`] with all settings resolved and checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Resolved {
    learning_rate: f64,
    smoothing: f64,
    directions: usize,
    beta1: f64,
    beta2: f64,
    budget: Option<u64>,
}

/// Gradient descent on estimated gradients. Vectors are scaled to axes of length 1.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ZoAdamSearch {
    settings: Resolved,
    /// x: from 0 to 1 in every coordinate.
    iterate: Vec<f64>,
    /// m.
    mean: Vec<f64>,
    /// v.
    square: Vec<f64>,
    /// v'.
    max_square: Vec<f64>,
    /// t: the number of steps that moved the iterate.
    steps: u64,
    estimate: Estimate,
    #[serde(skip)]
    scratch: Scratch,
}

/// The gradient estimate of the current step.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Estimate {
    /// The number of earlier estimates. Not every estimate results in a step.
    number: u64,
    /// mu.
    smoothing: f64,
    /// The number of points asked.
    asked: usize,
    /// The iterate's value.
    value: Option<f64>,
    /// The perturbed points told.
    perturbed: Vec<PerturbedPoint>,
    /// The number of perturbed points that failed.
    failed: usize,
}

/// A perturbed point and its value.
#[derive(Debug, Serialize, Deserialize)]
struct PerturbedPoint {
    point: Box<[f64]>,
    value: f64,
}

/// The data of a pending candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Query {
    /// The number of its estimate.
    estimate: u64,
    /// Whether it is the iterate, not a perturbed point.
    is_iterate: bool,
}

#[derive(Debug, Default)]
struct Scratch {
    gradient: Vec<f64>,
    /// A perturbed point, scaled to axes of length 1.
    scaled: Vec<f64>,
}

impl ZoAdam {
    /// The defaults are a compromise between Ackley, Levy, Rastrigin and Sphere on [-10, 10]^n with
    /// T = 100 n, by the medians of about 150 settings at n = 50 (5 to 9 runs each) and 70 at n = 500 (3
    /// runs each): alpha 0.003 to 0.2, mu 0.001 to 0.1 sqrt(n), q 1 to 20, beta2 0.3 to 0.999. No
    /// setting was good on all of them: Rastrigin and Levy gain from a larger mu, Sphere and, at
    /// n = 500, Ackley from a smaller one.
    fn resolve(&self, dimension: usize, budget: Option<u64>) -> Result<Resolved> {
        let n = dimension as f64;
        let resolved = Resolved {
            learning_rate: self.learning_rate.unwrap_or(0.01),
            smoothing: self.smoothing.unwrap_or(0.06 * n.sqrt()),
            directions: self.directions.unwrap_or(10),
            beta1: self.beta1.unwrap_or(0.9),
            beta2: self.beta2.unwrap_or(0.99),
            budget,
        };
        resolved.check()?;
        Ok(resolved)
    }
}

impl Resolved {
    fn check(&self) -> Result<()> {
        let Resolved { learning_rate, smoothing, directions, beta1, beta2, .. } = *self;
        for (name, x) in [("learning rate alpha", learning_rate), ("smoothing mu", smoothing)] {
            ensure!((1e-9..=1e6).contains(&x), setting, "{name} = {x} is not from 1e-9 to 1e6");
        }
        let is_possible = (1..=1_000_000).contains(&directions);
        ensure!(is_possible, setting, "directions q = {directions} is not from 1 to 1000000");
        for (name, x) in [("beta1", beta1), ("beta2", beta2)] {
            ensure!((0.0..1.0).contains(&x), setting, "{name} = {x} is not from 0 to below 1");
        }
        Ok(())
    }

    /// The fraction of the budget used.
    fn progress(told: u64, budget: u64) -> f64 {
        (told as f64 / budget.max(1) as f64).min(1.0)
    }

    /// mu_t, which remains well above the rounding of coordinates.
    fn smoothing_at(&self, told: u64, steps: u64) -> f64 {
        let share = match self.budget {
            Some(budget) => 1e-3_f64.powf(Resolved::progress(told, budget)),
            None => 1.0 / (1.0 + steps as f64).sqrt(),
        };
        (self.smoothing * share).max(1e-9)
    }

    /// alpha_t.
    fn learning_rate_at(&self, told: u64, steps: u64) -> f64 {
        let share = match self.budget {
            Some(budget) => 1.0 - Resolved::progress(told, budget),
            None => 1.0 / (1.0 + steps as f64).sqrt(),
        };
        self.learning_rate * share
    }
}

impl ZoAdamSearch {
    pub(crate) fn new(settings: &ZoAdam, setup: Setup<'_>, random: &mut Random) -> Result<Self> {
        let n = setup.space.dimension();
        let settings = settings.resolve(n, setup.budget)?;
        Ok(ZoAdamSearch {
            iterate: (0..n).map(|_| random.unit()).collect(),
            mean: vec![0.0; n],
            square: vec![0.0; n],
            max_square: vec![0.0; n],
            steps: 0,
            estimate: Estimate { smoothing: settings.smoothing_at(0, 0), ..Estimate::default() },
            settings,
            scratch: Scratch::default(),
        })
    }

    /// Writes a perturbed iterate.
    fn perturb(&self, random: &mut Random, point: &mut [f64]) {
        random.fill_normal(point);
        let length = point.iter().map(|x| x * x).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
        let scale = self.estimate.smoothing / length;
        for (x, center) in point.iter_mut().zip(&self.iterate) {
            *x = (center + scale * *x).clamp(0.0, 1.0);
        }
    }

    /// Learns a point of the current estimate. Ends the step when enough points are told. Returns the
    /// point's buffer if it is no longer needed.
    fn learn_query(
        &mut self,
        sample: Sample,
        is_iterate: bool,
        tools: &mut Tools<'_, Query>,
    ) -> Option<Box<[f64]>> {
        let Sample { point, rank, .. } = sample;
        let estimate = &mut self.estimate;
        let unused = match rank.value() {
            Some(value) if is_iterate => {
                estimate.value = Some(value);
                Some(point)
            }
            Some(value) => {
                estimate.perturbed.push(PerturbedPoint { point, value });
                None
            }
            None if is_iterate => {
                if estimate.value.is_none() {
                    self.leave_iterate(tools);
                }
                return Some(point);
            }
            None => {
                estimate.failed += 1;
                Some(point)
            }
        };
        let answered = estimate.perturbed.len() + estimate.failed;
        if let Some(value) = estimate.value
            && answered >= self.settings.directions
        {
            self.end_step(value, tools);
        }
        unused
    }

    /// Continues from the best point, or from a random point, because the iterate failed.
    fn leave_iterate(&mut self, tools: &mut Tools<'_, Query>) {
        match tools.best.sample().filter(|best| best.rank.value().is_some()) {
            Some(best) => scale_down(tools.space, &best.point, &mut self.iterate),
            None => self.iterate.iter_mut().for_each(|x| *x = tools.random.unit()),
        }
        self.begin_estimate(None, tools);
    }

    /// Moves the iterate along the estimated gradient.
    fn end_step(&mut self, value: f64, tools: &mut Tools<'_, Query>) {
        if self.estimate.perturbed.is_empty() {
            // All directions failed: try new ones at the same iterate, whose value is known.
            return self.begin_estimate(Some(value), tools);
        }
        let n = tools.space.dimension();
        let ZoAdamSearch { settings, iterate, mean, square, max_square, estimate, scratch, .. } =
            self;
        let Scratch { gradient, scaled } = scratch;
        gradient.clear();
        gradient.resize(n, 0.0);
        scaled.resize(n, 0.0);
        let count = estimate.perturbed.len() as f64;
        for PerturbedPoint { point, value: perturbed_value } in &estimate.perturbed {
            scale_down(tools.space, point, scaled);
            // The difference of the points is the clipped mu u, not u, so it is divided by mu twice.
            let mu = estimate.smoothing;
            let slope = (*perturbed_value - value) / mu * (n as f64 / mu) / count;
            for ((g, x), center) in gradient.iter_mut().zip(scaled.iter()).zip(iterate.iter()) {
                *g += slope * (x - center);
            }
        }
        let alpha = settings.learning_rate_at(tools.ledger.told(), self.steps);
        let Resolved { beta1, beta2, .. } = *settings;
        let moments = mean.iter_mut().zip(square).zip(max_square);
        for ((x, g), ((m, v), max)) in iterate.iter_mut().zip(gradient.iter()).zip(moments) {
            // Squares of larger slopes overflow. NaN counts as a slope of 0.
            let g = if g.is_nan() { 0.0 } else { g.clamp(-1e150, 1e150) };
            *m = beta1 * *m + (1.0 - beta1) * g;
            *v = beta2 * *v + (1.0 - beta2) * g * g;
            *max = max.max(*v);
            *x = (*x - alpha * *m / (max.sqrt() + f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        }
        self.steps += 1;
        debug_assert!(
            self.iterate.iter().all(|x| (0.0..=1.0).contains(x)),
            "the iterate is inside the box"
        );
        self.begin_estimate(None, tools);
    }

    /// Begins a gradient estimate at the iterate, whose value may be known. Pending candidates now belong
    /// to an earlier estimate.
    fn begin_estimate(&mut self, value: Option<f64>, tools: &mut Tools<'_, Query>) {
        let estimate = &mut self.estimate;
        estimate.perturbed.drain(..).for_each(|perturbed| tools.keep(perturbed.point));
        estimate.number += 1;
        estimate.smoothing = self.settings.smoothing_at(tools.ledger.told(), self.steps);
        estimate.asked = 0;
        estimate.value = value;
        estimate.failed = 0;
    }
}

impl Search for ZoAdamSearch {
    type Mark = Query;

    fn propose(&mut self, tools: &mut Tools<'_, Query>) -> Option<Proposal<Query>> {
        let mut point = tools.buffer();
        // The iterate comes first, and again after every q directions until its value is known.
        let Estimate { number, value, asked, .. } = &mut self.estimate;
        let is_iterate = value.is_none() && asked.is_multiple_of(self.settings.directions + 1);
        let mark = Query { estimate: *number, is_iterate };
        *asked += 1;
        if is_iterate {
            point.copy_from_slice(&self.iterate);
        } else {
            self.perturb(tools.random, &mut point);
        }
        scale_up(tools.space, &mut point);
        Some(Proposal { point, key: 0, mark })
    }

    fn learn(
        &mut self,
        evaluated: Evaluated<Query>,
        tools: &mut Tools<'_, Query>,
    ) -> Result<Option<Box<[f64]>>> {
        let Evaluated { sample, asked, is_best } = evaluated;
        match asked.map(|asked| asked.mark) {
            Some(query) if query.estimate == self.estimate.number => {
                Ok(self.learn_query(sample, query.is_iterate, tools))
            }
            // It belongs to an earlier estimate.
            Some(_) => Ok(Some(sample.point)),
            None => {
                // Before the first ask, the search starts at the best known point.
                let has_begun = self.steps > 0 || self.estimate.asked > 0;
                if is_best && !has_begun && sample.rank.value().is_some() {
                    scale_down(tools.space, &sample.point, &mut self.iterate);
                }
                Ok(Some(sample.point))
            }
        }
    }

    fn is_sound(&self, space: &Space, ledger: &Ledger<Query>) -> Result<bool> {
        self.settings.check()?;
        let ZoAdamSearch { iterate, mean, square, max_square, steps, estimate, .. } = self;
        for perturbed in &estimate.perturbed {
            space.check(&perturbed.point)?;
        }
        let n = space.dimension();
        let is_square = |x: &f64| x.is_finite() && *x >= 0.0;
        Ok([iterate, mean, square, max_square].iter().all(|v| v.len() == n)
            && iterate.iter().all(|x| (0.0..=1.0).contains(x))
            && mean.iter().all(|x| x.is_finite())
            && square.iter().chain(max_square).all(is_square)
            && *steps <= estimate.number
            && estimate.number < ID_HEADROOM
            && (estimate.asked.max(estimate.failed) as u64) < ID_HEADROOM
            && estimate.smoothing > 0.0
            && estimate.smoothing.is_finite()
            && estimate.value.is_none_or(f64::is_finite)
            && estimate.perturbed.iter().all(|perturbed| perturbed.value.is_finite())
            && ledger.marks().all(|query| query.estimate <= estimate.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizers::shell::Shell;
    use crate::optimizers::{Algorithm, Candidate, Optimizer, load};
    use crate::outcome::Outcome;

    fn bowl(point: &[f64]) -> Outcome {
        Outcome::from(point.iter().map(|x| (x - 1.0) * (x - 1.0)).sum::<f64>())
    }

    fn run(space: &Space, budget: u64, seed: u64) -> Shell<ZoAdamSearch> {
        let setup = Setup { space, budget: Some(budget), seed };
        let make = |random: &mut Random| ZoAdamSearch::new(&ZoAdam::default(), setup, random);
        Shell::new("zo-adam", setup, make).unwrap()
    }

    #[test]
    fn a_quadratic_bowl_is_minimized() {
        let space = Space::builder().reals("x", 10, -10.0, 10.0).reals("y", 10, 0.0, 1000.0);
        let space = space.build().unwrap();
        let mut run = run(&space, 4000, 1);
        let mut first = None;
        for _ in 0..4000 {
            let candidate = run.ask().unwrap();
            space.check(candidate.point()).unwrap();
            let outcome = bowl(candidate.point());
            first = first.or(outcome.value());
            run.tell(candidate, outcome).unwrap();
        }
        let best = run.best().unwrap().rank.value().unwrap();
        assert!(best < 1e-3 * first.unwrap(), "{best} {first:?}");
    }

    #[test]
    fn lost_and_failed_candidates_do_not_stall_the_search() {
        let space = Space::cube(5, -5.0, 5.0).unwrap();
        let mut run = run(&space, 20_000, 1);
        let mut random = Random::new(1);
        for _ in 0..20_000 {
            let candidate = run.ask().unwrap();
            let outcome = match random.index(4) {
                0 => continue,
                1 => Outcome::failed("late"),
                _ => bowl(candidate.point()),
            };
            run.tell(candidate, outcome).unwrap();
        }
        let steps = run.search().steps;
        assert!(steps > 300, "{steps}");
        assert!(run.best().unwrap().rank.value().unwrap() < 1e-2);
    }

    #[test]
    fn many_pending_candidates_are_told_in_any_order() {
        let space = Space::cube(5, -5.0, 5.0).unwrap();
        let mut run = run(&space, 20_000, 1);
        let (mut random, mut out) = (Random::new(1), Vec::new());
        for _ in 0..20_000 {
            out.extend(run.ask());
            if out.len() == 64 {
                let candidate: Candidate = out.swap_remove(random.index(64));
                let outcome = bowl(candidate.point());
                run.tell(candidate, outcome).unwrap();
            }
        }
        assert_eq!(run.pending(), 63);
        assert!(run.best().unwrap().rank.value().unwrap() < 1e-2);
    }

    #[test]
    fn a_restored_run_continues_bit_for_bit() {
        let space = Space::cube(7, -5.0, 5.0).unwrap();
        let new = || Algorithm::zo_adam().optimizer(&space, Some(500), 3).unwrap();
        let (mut straight, mut broken) = (new(), new());
        for i in 0..500 {
            broken = load(&broken.save()).unwrap();
            let (a, b) = (straight.ask().unwrap(), broken.ask().unwrap());
            assert_eq!(a, b);
            let outcome = if i % 7 == 0 { Outcome::failed("late") } else { bowl(a.point()) };
            straight.tell(a, outcome.clone()).unwrap();
            broken.tell(b, outcome).unwrap();
        }
        assert_eq!(straight.save(), broken.save());
    }

    #[test]
    fn the_search_starts_at_the_best_known_point() {
        let space = Space::cube(3, -4.0, 4.0).unwrap();
        let mut run = run(&space, 100, 1);
        run.tell(Candidate::known([1.0; 3]), Outcome::from(1.0)).unwrap();
        run.tell(Candidate::known([2.0; 3]), Outcome::from(3.0)).unwrap();
        assert_eq!(run.ask().unwrap().point(), [1.0; 3]);
        run.tell(Candidate::known([3.0; 3]), Outcome::from(0.5)).unwrap();
        assert_eq!(run.best().unwrap().point, [3.0; 3]);
        assert_ne!(run.search().iterate[0], 7.0 / 8.0, "the search has begun");
    }

    #[test]
    fn extreme_values_leave_a_valid_state() {
        let space = Space::cube(3, -4.0, 4.0).unwrap();
        let mut run = run(&space, 1000, 1);
        let mut random = Random::new(1);
        for _ in 0..1000 {
            let candidate = run.ask().unwrap();
            let value = random.between(-1.0, 1.0) * f64::MAX;
            run.tell(candidate, Outcome::from(value)).unwrap();
        }
        assert!(load(&run.save()).is_ok());
    }
}
