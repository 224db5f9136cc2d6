//! ZO-Adam: gradient descent with adaptive moments, on gradients estimated from values alone
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
//! The projection in the norm of the diagonal matrix sqrt(v') is plain clipping, since a box
//! constrains each coordinate by itself. Coordinates are measured in lengths of their axes.
//!
//! Departures:
//!
//! - A perturbed point outside of the box is clipped, and what is left of mu u is the direction.
//! - Over the budget, alpha falls linearly to 0, and mu geometrically to a thousandth; without a
//!   budget, both fall with the root of the number of steps.
//! - To fit ask and tell, a step is over when the iterate and any q directions are told: asking goes
//!   on with more directions, which make up for lost ones. A failure counts as told and adds nothing.
//!   An iterate that fails is left for the best point known.

use super::incumbent::Incumbent;
use super::ledger::Ledger;
use super::{Best, Candidate, Optimizer, saved};
use crate::error::{Error, Result};
use crate::outcome::{Outcome, Rank};
use crate::random::Random;
use crate::space::{Interval, Space};
use serde::{Deserialize, Serialize};

/// Settings of ZO-Adam. `None` means: derive it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ZoAdam {
    /// alpha: the scale of the first steps, as a share of each axis. 0.01.
    pub learning_rate: Option<f64>,
    /// mu: the length of the first perturbations, in lengths of an axis. 0.06 sqrt(n), that is 0.06
    /// of each axis: wide enough to smooth over ripples.
    pub smoothing: Option<f64>,
    /// q: the directions of a gradient estimate. 10.
    pub directions: Option<usize>,
    /// beta1: how much of the mean gradient remains in each step. 0.9.
    pub beta1: Option<f64>,
    /// beta2: how much of the mean squared gradient remains in each step. 0.99.
    pub beta2: Option<f64>,
}

/// [`ZoAdam`] with every setting filled in and checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Resolved {
    learning_rate: f64,
    smoothing: f64,
    directions: usize,
    beta1: f64,
    beta2: f64,
    budget: Option<u64>,
}

/// An optimizer by gradient descent on estimated gradients.
pub struct Descent {
    space: Space,
    state: State,
    scratch: Scratch,
}

/// Everything that a resumed run needs. Vectors of coordinates are measured in lengths of the axes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    settings: Resolved,
    random: Random,
    ledger: Ledger,
    best: Incumbent,
    /// x: from 0 to 1 in every coordinate.
    iterate: Vec<f64>,
    /// m.
    mean: Vec<f64>,
    /// v.
    square: Vec<f64>,
    /// v'.
    greatest_square: Vec<f64>,
    /// t.
    steps: u64,
    /// What is known of the step under way.
    step: Step,
}

#[derive(Debug, Serialize, Deserialize)]
struct Step {
    /// mu.
    smoothing: f64,
    /// How many points have been asked for.
    asked: usize,
    /// Those that are out, by ascending id: whether each is the iterate itself.
    out: Vec<(u64, bool)>,
    /// The iterate's value.
    value: Option<f64>,
    /// The perturbed points told, with their values.
    perturbed: Vec<(Box<[f64]>, f64)>,
    /// How many perturbed points failed.
    failed: usize,
}

/// What is rebuilt at will.
#[derive(Default)]
struct Scratch {
    gradient: Vec<f64>,
    /// A perturbed point, in lengths of the axes.
    scaled: Vec<f64>,
    /// Buffers for points to come.
    spare: Vec<Box<[f64]>>,
}

impl ZoAdam {
    /// The defaults are a compromise between Ackley, Levy, Rastrigin and Sphere on [-10, 10]^n with
    /// T = 100 n, by the medians of some 150 settings at n = 50 (5 to 9 runs each) and 70 at n = 500 (3
    /// runs each): alpha 0.003 to 0.2, mu 0.001 to 0.1 sqrt(n), q 1 to 20, beta2 0.3 to 0.999. No
    /// setting was good at all of them: Rastrigin and Levy gain from a greater mu, Sphere and, at
    /// n = 500, Ackley from a smaller one.
    fn resolve(&self, space: &Space, budget: Option<u64>) -> Result<Resolved> {
        let n = space.dimension() as f64;
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
            if !(1e-9..=1e6).contains(&x) {
                return Err(Error::setting(format!("{name} = {x} is not from 1e-9 to 1e6")));
            }
        }
        if !(1..=1_000_000).contains(&directions) {
            return Err(Error::setting(format!(
                "directions q = {directions} is not from 1 to 1000000"
            )));
        }
        for (name, x) in [("beta1", beta1), ("beta2", beta2)] {
            if !(0.0..1.0).contains(&x) {
                return Err(Error::setting(format!("{name} = {x} is not from 0 to below 1")));
            }
        }
        Ok(())
    }

    /// The share of the budget that is used up.
    fn progress(told: u64, budget: u64) -> f64 {
        (told as f64 / budget.max(1) as f64).min(1.0)
    }

    /// mu_t. It stays well above the rounding of coordinates.
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

impl Descent {
    /// A run that is a function of its arguments. Only for continuous spaces.
    pub fn new(space: &Space, settings: &ZoAdam, budget: Option<u64>, seed: u64) -> Result<Self> {
        require_continuous(space)?;
        let settings = settings.resolve(space, budget)?;
        let mut random = Random::new(seed);
        let n = space.dimension();
        Ok(Descent {
            space: space.clone(),
            state: State {
                iterate: (0..n).map(|_| random.unit()).collect(),
                random,
                ledger: Ledger::default(),
                best: Incumbent::default(),
                mean: vec![0.0; n],
                square: vec![0.0; n],
                greatest_square: vec![0.0; n],
                steps: 0,
                step: Step {
                    smoothing: settings.smoothing_at(0, 0),
                    asked: 0,
                    out: Vec::new(),
                    value: None,
                    perturbed: Vec::new(),
                    failed: 0,
                },
                settings,
            },
            scratch: Scratch::default(),
        })
    }

    /// Takes a saved state back, if it is one that this code could have written.
    pub(super) fn restore(space: Space, state: State) -> Result<Self> {
        require_continuous(&space)?;
        state.settings.check()?;
        let State { best, iterate, mean, square, greatest_square, step, .. } = &state;
        for (point, _) in &step.perturbed {
            space.check(point)?;
        }
        /// Counters with room to go on.
        const ROOM: u64 = 1 << 62;
        let n = space.dimension();
        let is_square = |x: &f64| x.is_finite() && *x >= 0.0;
        let is_sound = [iterate, mean, square, greatest_square].iter().all(|v| v.len() == n)
            && iterate.iter().all(|x| (0.0..=1.0).contains(x))
            && mean.iter().all(|x| x.is_finite())
            && square.iter().chain(greatest_square).all(is_square)
            && state.random.is_alive()
            && state.ledger.is_sound(&space)
            && best.is_sound(&space)
            && state.steps < ROOM
            && (step.asked.max(step.failed) as u64) < ROOM
            && step.smoothing > 0.0
            && step.smoothing.is_finite()
            && step.value.is_none_or(f64::is_finite)
            && step.perturbed.iter().all(|(_, value)| value.is_finite())
            && step.out.is_sorted_by(|a, b| a.0 < b.0);
        if !is_sound {
            return Err(saved::unsound());
        }
        Ok(Descent { space, state, scratch: Scratch::default() })
    }

    /// Writes a perturbed iterate.
    fn perturb(&mut self, point: &mut [f64]) {
        let State { random, iterate, step, .. } = &mut self.state;
        random.fill_normal(point);
        let length = point.iter().map(|x| x * x).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
        let scale = step.smoothing / length;
        for (x, center) in point.iter_mut().zip(iterate.iter()) {
            *x = (center + scale * *x).clamp(0.0, 1.0);
        }
    }

    /// What is told of the step under way. It ends when enough is known.
    fn learn(&mut self, point: Box<[f64]>, rank: Rank, is_iterate: bool) {
        let step = &mut self.state.step;
        match rank.value() {
            Some(value) if is_iterate => {
                step.value = Some(value);
                self.keep_buffer(point);
            }
            Some(value) => step.perturbed.push((point, value)),
            None if is_iterate => {
                self.keep_buffer(point);
                if self.state.step.value.is_none() {
                    self.leave_iterate();
                }
                return;
            }
            None => {
                step.failed += 1;
                self.keep_buffer(point);
            }
        }
        let step = &self.state.step;
        let answered = step.perturbed.len() + step.failed;
        if let Some(value) = step.value.filter(|_| answered >= self.state.settings.directions) {
            self.end_step(value);
        }
    }

    /// Goes on from the best point, or from a random one, since there is no value here.
    fn leave_iterate(&mut self) {
        let State { best, iterate, random, .. } = &mut self.state;
        match best.sample().filter(|best| best.rank.value().is_some()) {
            Some(best) => scale_down(&self.space, &best.point, iterate),
            None => iterate.iter_mut().for_each(|x| *x = random.unit()),
        }
        self.begin_step(None);
    }

    /// Moves the iterate by what the step has shown.
    fn end_step(&mut self, value: f64) {
        if self.state.step.perturbed.is_empty() {
            // All failed: the same again, from a value that is known.
            return self.begin_step(Some(value));
        }
        let n = self.space.dimension();
        let State { settings, ledger, iterate, mean, square, greatest_square, steps, step, .. } =
            &mut self.state;
        let Scratch { gradient, scaled, .. } = &mut self.scratch;
        gradient.clear();
        gradient.resize(n, 0.0);
        scaled.resize(n, 0.0);
        let count = step.perturbed.len() as f64;
        for (point, perturbed_value) in &step.perturbed {
            scale_down(&self.space, point, scaled);
            // (x + mu u) - x is mu u, clipped: one more division by mu.
            let mu = step.smoothing;
            let slope = (*perturbed_value - value) / mu * (n as f64 / mu) / count;
            for ((g, x), center) in gradient.iter_mut().zip(scaled.iter()).zip(iterate.iter()) {
                *g += slope * (x - center);
            }
        }
        let alpha = settings.learning_rate_at(ledger.told(), *steps);
        let Resolved { beta1, beta2, .. } = *settings;
        let moments = mean.iter_mut().zip(square).zip(greatest_square);
        for ((x, g), ((m, v), greatest)) in iterate.iter_mut().zip(gradient.iter()).zip(moments) {
            // The squares of greater slopes overflow. What is not a number says nothing.
            let g = if g.is_nan() { 0.0 } else { g.clamp(-1e150, 1e150) };
            *m = beta1 * *m + (1.0 - beta1) * g;
            *v = beta2 * *v + (1.0 - beta2) * g * g;
            *greatest = greatest.max(*v);
            *x = (*x - alpha * *m / (greatest.sqrt() + f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        }
        *steps += 1;
        self.begin_step(None);
    }

    fn begin_step(&mut self, value: Option<f64>) {
        let State { settings, ledger, steps, step, .. } = &mut self.state;
        step.smoothing = settings.smoothing_at(ledger.told(), *steps);
        step.asked = 0;
        step.out.clear();
        step.value = value;
        step.failed = 0;
        let mut perturbed = std::mem::take(&mut step.perturbed);
        perturbed.drain(..).for_each(|(point, _)| self.keep_buffer(point));
        self.state.step.perturbed = perturbed;
    }

    /// Keeps a buffer for a point to come; points told from elsewhere could otherwise pile up.
    fn keep_buffer(&mut self, buffer: Box<[f64]>) {
        if self.scratch.spare.len() <= self.state.ledger.pending() + self.state.settings.directions
        {
            self.scratch.spare.push(buffer);
        }
    }
}

/// Refuses a space with a discrete coordinate.
fn require_continuous(space: &Space) -> Result<()> {
    let is_discrete = |i: &usize| space.axis(*i).count().is_some();
    let firsts = space.entries().iter().map(|entry| entry.range().start);
    match firsts.into_iter().find(is_discrete) {
        None => Ok(()),
        Some(i) => Err(Error::setting(format!(
            "zo-adam follows gradients, and coordinate `{}` is discrete; race-cars, sracos, racos, \
             de, de-rand, l-shade, quasi-random and random take such coordinates",
            space.coordinate_name(i)
        ))),
    }
}

/// Measures a point in lengths of the axes.
fn scale_down(space: &Space, point: &[f64], scaled: &mut [f64]) {
    for entry in space.entries() {
        let range = entry.range();
        let Interval { low, high } = space.axis(range.start).extent();
        // The range of a log scale may be a single number.
        let length = if high > low { high - low } else { 1.0 };
        for (x, scaled) in point[range.clone()].iter().zip(&mut scaled[range]) {
            *scaled = ((x - low) / length).clamp(0.0, 1.0);
        }
    }
}

/// The reverse of [`scale_down`], in place.
fn scale_up(space: &Space, point: &mut [f64]) {
    for entry in space.entries() {
        let range = entry.range();
        let axis = space.axis(range.start);
        point[range].iter_mut().for_each(|x| *x = axis.at(*x));
    }
}

impl Optimizer for Descent {
    fn space(&self) -> &Space {
        &self.space
    }

    fn name(&self) -> &'static str {
        "zo-adam"
    }

    fn ask(&mut self) -> Option<Candidate> {
        let mut point = (self.scratch.spare.pop())
            .unwrap_or_else(|| vec![0.0; self.space.dimension()].into_boxed_slice());
        // The iterate first, and again each time that q more were asked and it is still not known.
        let State { settings, step, iterate, .. } = &mut self.state;
        let is_iterate = step.value.is_none() && step.asked % (settings.directions + 1) == 0;
        step.asked += 1;
        if is_iterate {
            point.copy_from_slice(iterate);
        } else {
            self.perturb(&mut point);
        }
        scale_up(&self.space, &mut point);
        let candidate = self.state.ledger.issue(&self.space, point, 0);
        self.state.step.out.push((candidate.id, is_iterate));
        Some(candidate)
    }

    fn tell(&mut self, candidate: Candidate, outcome: Outcome) -> Result<()> {
        let id = candidate.id;
        let (point, key) = self.state.ledger.settle(&self.space, candidate)?;
        let rank = outcome.rank();
        let State { best, step, steps, iterate, .. } = &mut self.state;
        if best.is_beaten_by(rank) {
            best.replace(&point, rank, key);
            // A known point is where to start, if nothing has been asked yet.
            if id == Candidate::KNOWN && *steps == 0 && step.asked == 0 && rank.value().is_some() {
                scale_down(&self.space, &point, iterate);
            }
        }
        match step.out.binary_search_by_key(&id, |out| out.0) {
            Ok(place) => {
                let (_, is_iterate) = step.out.remove(place);
                self.learn(point, rank, is_iterate);
            }
            // Of a step that is over, or a known point.
            Err(_) => self.keep_buffer(point),
        }
        Ok(())
    }

    fn told(&self) -> u64 {
        self.state.ledger.told()
    }

    fn pending(&self) -> usize {
        self.state.ledger.pending()
    }

    fn best(&self) -> Option<Best<'_>> {
        self.state.best.best()
    }

    fn save(&self) -> Vec<u8> {
        saved::save(self.name(), &self.space, &self.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::optimizers::load;

    fn bowl(point: &[f64]) -> Outcome {
        Outcome::from(point.iter().map(|x| (x - 1.0) * (x - 1.0)).sum::<f64>())
    }

    fn run(space: &Space, budget: u64, seed: u64) -> Descent {
        Descent::new(space, &ZoAdam::default(), Some(budget), seed).unwrap()
    }

    #[test]
    fn the_bowl_is_descended() {
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
    fn discrete_coordinates_are_refused_by_name() {
        let space =
            Space::builder().real("x", 0.0, 1.0).integers("layer", 2, 0, 3).build().unwrap();
        let error = Descent::new(&space, &ZoAdam::default(), None, 1).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Setting);
        assert!(error.to_string().contains("coordinate `layer[0]` is discrete; race-cars, "));
    }

    #[test]
    fn lost_and_failed_candidates_hold_up_nothing() {
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
        assert!(run.state.steps > 300, "{}", run.state.steps);
        assert!(run.best().unwrap().rank.value().unwrap() < 1e-2);
    }

    #[test]
    fn many_out_at_a_time_are_told_in_any_order() {
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
    fn a_restored_run_goes_on_to_the_bit() {
        let space = Space::cube(7, -5.0, 5.0).unwrap();
        let mut straight: Box<dyn Optimizer> = Box::new(run(&space, 500, 3));
        let mut broken: Box<dyn Optimizer> = Box::new(run(&space, 500, 3));
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
    fn the_best_known_point_is_the_start() {
        let space = Space::cube(3, -4.0, 4.0).unwrap();
        let mut run = run(&space, 100, 1);
        run.tell(Candidate::known([1.0; 3]), Outcome::from(1.0)).unwrap();
        run.tell(Candidate::known([2.0; 3]), Outcome::from(3.0)).unwrap();
        assert_eq!(run.ask().unwrap().point(), [1.0; 3]);
        run.tell(Candidate::known([3.0; 3]), Outcome::from(0.5)).unwrap();
        assert_eq!(run.best().unwrap().point, [3.0; 3]);
        assert_ne!(run.state.iterate[0], 7.0 / 8.0, "under way already");
    }

    #[test]
    fn the_greatest_values_leave_a_sound_state() {
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
