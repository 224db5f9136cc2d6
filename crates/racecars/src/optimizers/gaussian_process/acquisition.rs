//! Where to evaluate next: the point of the greatest expected improvement in a box, times the probability of being
//! feasible where that is modelled.
//!
//! Candidates are drawn in the box, most of them with some features changed of the box's center (as in
//! TuRBO, Eriksson et al. 2019). From the best of them, numeric features follow the gradient, and discrete
//! ones are exchanged one at a time, in turns (as in CASMOPOLITAN, Wan et al. 2021).

use super::descent;
use super::features::Features;
use super::improvement::{Improvement, log_probability};
use super::model::{Buffers, Model};
use crate::random::Random;
use crate::space::Axis;

/// From this many values on, the gradient is followed on an ordered axis, and the result rounded.
const MIN_RELAXED_VALUES: u64 = 8;

/// The expected number of features that a candidate changes, where there are more.
const CHANGED_FEATURES: f64 = 20.0;

/// Following the gradient ends when the logarithm of the improvement gains less than this share.
const TOLERANCE: f64 = 1e-4;

/// A box of numeric features around a center, and what may change of the categories.
#[derive(Debug)]
pub(super) struct SearchBox {
    pub(super) center: Vec<f64>,
    pub(super) low: Vec<f64>,
    pub(super) high: Vec<f64>,
    /// The probability that a category of a changed feature is redrawn.
    pub(super) redraw: f64,
}

/// How thoroughly to search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// Candidates drawn.
    pub(super) candidates: usize,
    /// How many of them are improved.
    pub(super) starts: usize,
    /// Evaluations of the gradient for each.
    pub(super) gradients: usize,
    /// Exchanges of discrete features tried for each.
    pub(super) exchanges: usize,
}

/// A point, its score and whether it may be proposed.
struct Scored {
    x: Vec<f64>,
    score: f64,
}

pub(super) struct Acquisition<'a, F> {
    pub(super) model: &'a Model,
    /// The model of the margins of feasibility, negative where points are feasible.
    pub(super) feasibility: Option<&'a Model>,
    pub(super) features: &'a Features,
    /// The value to improve on.
    pub(super) best: f64,
    /// Whether a point may be proposed.
    pub(super) is_new: F,
    pub(super) buffers: Buffers,
}

impl<F: FnMut(&[f64]) -> bool> Acquisition<'_, F> {
    /// The features of the best point found; `None` if all points looked at were proposed before.
    pub(super) fn search(
        &mut self,
        area: &SearchBox,
        effort: Effort,
        random: &mut Random,
    ) -> Option<Vec<f64>> {
        let mut best: Vec<Scored> = Vec::new();
        let active = self.features.active(&area.center);
        for index in 0..effort.candidates {
            let x = self.draw(area, &active, index, random);
            let Some(score) = self.score(&x) else { continue };
            let place = best.partition_point(|other| other.score >= score);
            if place < effort.starts {
                best.truncate(effort.starts - 1);
                best.insert(place, Scored { x, score });
            }
        }
        for scored in &mut best {
            for _ in 0..2 {
                let before = scored.score;
                self.follow_gradient(area, effort.gradients, random, scored);
                let has_exchanged = self.exchange(area, effort.exchanges, random, scored);
                if !has_exchanged || scored.score <= before {
                    break;
                }
            }
        }
        let found = best.into_iter().reduce(|a, b| if b.score > a.score { b } else { a })?;
        Some(found.x)
    }

    /// The score of a point; `None` if it must not be proposed.
    fn score(&mut self, x: &[f64]) -> Option<f64> {
        if !(self.is_new)(x) {
            return None;
        }
        let (mean, deviation) = self.model.predict(x, &mut self.buffers);
        let mut score = Improvement::new((self.best - mean) / deviation).log + deviation.ln();
        if let Some(feasibility) = self.feasibility {
            let (mean, deviation) = feasibility.predict(x, &mut self.buffers);
            score += log_probability(-mean / deviation).0;
        }
        score.is_finite().then_some(score)
    }

    fn is_relaxed(&self, feature: usize) -> bool {
        match self.features.axis(feature) {
            Axis::Continuous { .. } => true,
            Axis::Ordered { .. } => {
                self.features.axis(feature).count().is_some_and(|count| count >= MIN_RELAXED_VALUES)
            }
            Axis::Unordered { .. } => false,
        }
    }

    /// A random point of the box. Features that are inactive at its center are drawn if they become active.
    fn draw(
        &self,
        area: &SearchBox,
        active: &[bool],
        index: usize,
        random: &mut Random,
    ) -> Vec<f64> {
        let n = self.features.len();
        let mut x = area.center.clone();
        let rate = match index % 4 {
            // A few features.
            0 => 2.0 / n as f64,
            _ => CHANGED_FEATURES / n as f64,
        };
        // Half of the candidates are near the center.
        let nearness = if index.is_multiple_of(2) { 1.0 } else { 0.1f64.powf(2.0 * random.unit()) };
        let forced = random.index(n);
        for (j, x) in x.iter_mut().enumerate() {
            let is_active = active.get(j).is_none_or(|is_active| *is_active);
            if (j != forced && !random.chance(rate)) || !is_active {
                continue;
            }
            *x = match self.features.axis(j) {
                Axis::Unordered { last } if last > 0.0 => {
                    if j != forced && !random.chance(area.redraw) {
                        continue;
                    }
                    // Another category, uniformly.
                    let other = random.below(last as u64) as f64;
                    if other < *x { other } else { other + 1.0 }
                }
                Axis::Unordered { .. } => *x,
                _ => {
                    let at = random.between(area.low[j], area.high[j]);
                    self.features.snap(j, *x + nearness * (at - *x))
                }
            };
        }
        self.features.activate(&mut x, &area.center, random);
        x
    }

    /// Moves numeric features up the gradient.
    fn follow_gradient(
        &mut self,
        area: &SearchBox,
        evaluations: usize,
        random: &mut Random,
        scored: &mut Scored,
    ) {
        let active = self.features.active(&scored.x);
        let relaxed: Vec<usize> = (0..self.features.numeric())
            .filter(|&j| self.is_relaxed(j) && active.get(j).is_none_or(|is_active| *is_active))
            .collect();
        if relaxed.is_empty() || evaluations == 0 {
            return;
        }
        let mut x = scored.x.clone();
        let n = x.len();
        let (mut by_mean, mut by_deviation) = (vec![0.0; n], vec![0.0; n]);
        let pick = |from: &[f64]| -> Vec<f64> { relaxed.iter().map(|&j| from[j]).collect() };
        let (low, high, mut part) = (pick(&area.low), pick(&area.high), pick(&x));
        let (model, feasibility, buffers) = (self.model, self.feasibility, &mut self.buffers);
        let best = self.best;
        descent::minimize(&mut part, &low, &high, (evaluations, TOLERANCE), |part, gradient| {
            relaxed.iter().zip(part).for_each(|(&j, value)| x[j] = *value);
            let (mean, deviation) =
                model.predict_with_gradients(&x, buffers, &mut by_mean, &mut by_deviation);
            let improvement = Improvement::new((best - mean) / deviation);
            // d log EI = (phi ds - Phi dm) / (s h).
            for (&j, slope) in relaxed.iter().zip(gradient.iter_mut()) {
                *slope = (improvement.by_mean * by_mean[j]
                    - improvement.by_deviation * by_deviation[j])
                    / deviation;
            }
            let mut score = improvement.log + deviation.ln();
            if let Some(feasibility) = feasibility {
                let (mean, deviation) = feasibility.predict_with_gradients(
                    &x,
                    buffers,
                    &mut by_mean,
                    &mut by_deviation,
                );
                let (log, ratio) = log_probability(-mean / deviation);
                score += log;
                // d (-m / s) = -(dm - (m / s) ds) / s.
                for (&j, slope) in relaxed.iter().zip(gradient) {
                    *slope += ratio * (by_mean[j] - mean / deviation * by_deviation[j]) / deviation;
                }
            }
            -score
        });
        relaxed.iter().zip(&part).for_each(|(&j, value)| x[j] = self.features.snap(j, *value));
        self.features.activate(&mut x, &scored.x, random);
        if let Some(score) = self.score(&x)
            && score > scored.score
        {
            *scored = Scored { x, score };
        }
    }

    /// Tries other values of discrete features, one at a time, and keeps what is better. Returns whether
    /// anything was.
    fn exchange(
        &mut self,
        area: &SearchBox,
        tries: usize,
        random: &mut Random,
        scored: &mut Scored,
    ) -> bool {
        let active = self.features.active(&scored.x);
        let is_discrete = |j: &usize| {
            self.features.axis(*j).count().is_some_and(|count| count > 1)
                && active.get(*j).is_none_or(|is_active| *is_active)
        };
        let mut discrete: Vec<usize> = (0..self.features.len()).filter(is_discrete).collect();
        random.shuffle(&mut discrete);
        let (mut left, mut has_exchanged) = (tries, false);
        for j in discrete {
            let others = match self.features.axis(j) {
                Axis::Unordered { last } => {
                    let shift = random.below(last as u64 + 1) as f64;
                    let at = |step: u32| (scored.x[j] + shift + f64::from(step)) % (last + 1.0);
                    let tried = (last + 1.0).min(8.0) as u32;
                    (0..tried).map(at).filter(|other| *other != scored.x[j]).collect::<Vec<f64>>()
                }
                _ => {
                    let steps = [-1.0, 1.0].into_iter();
                    let near = steps.filter_map(|by| self.features.neighbour(j, scored.x[j], by));
                    near.filter(|at| area.low[j] <= *at && *at <= area.high[j]).collect()
                }
            };
            for other in others {
                if left == 0 {
                    return has_exchanged;
                }
                left -= 1;
                let mut x = scored.x.clone();
                x[j] = other;
                self.features.activate(&mut x, &scored.x, random);
                if let Some(score) = self.score(&x)
                    && score > scored.score
                {
                    *scored = Scored { x, score };
                    has_exchanged = true;
                }
            }
        }
        has_exchanged
    }
}
