//! The curvature of the objective, as far as the last steps show it: the pairs of L-BFGS.

use crate::linalg::product::{add_scaled, dot, squared};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A pair counts if the curvature along its step is above this share of its lengths.
const MIN_CURVATURE: f64 = 1e-10;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Curvature {
    /// The latest last.
    pairs: VecDeque<Pair>,
}

/// s, y and 1 / (s^T y).
#[derive(Debug, Serialize, Deserialize)]
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    inverse: f64,
}

impl Curvature {
    pub(super) fn clear(&mut self) {
        self.pairs.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Learns the change of the gradient over a step, unless the curvature along it is negative or lost in
    /// rounding.
    pub(super) fn learn(&mut self, step: Vec<f64>, change: Vec<f64>, memory: usize) {
        let product = dot(&step, &change);
        let inverse = 1.0 / product;
        let lengths = (squared(&step) * squared(&change)).sqrt();
        let is_curved = product > MIN_CURVATURE * lengths && inverse.is_finite() && inverse > 0.0;
        if is_curved && change.iter().all(|y| y.is_finite()) {
            if self.pairs.len() >= memory {
                self.pairs.pop_front();
            }
            self.pairs.push_back(Pair { step, change, inverse });
        }
    }

    /// -H g: the two-loop recursion, algorithm 7.4 of Nocedal and Wright.
    pub(super) fn direction(&self, gradient: &[f64]) -> Vec<f64> {
        let mut q: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut weights = Vec::with_capacity(self.pairs.len());
        for Pair { step, change, inverse } in self.pairs.iter().rev() {
            let weight = inverse * dot(step, &q);
            add_scaled(&mut q, -weight, change);
            weights.push(weight);
        }
        if let Some(Pair { change, inverse, .. }) = self.pairs.back() {
            // Eq. (7.20).
            let scale = 1.0 / (inverse * squared(change));
            if scale.is_finite() {
                q.iter_mut().for_each(|x| *x *= scale);
            }
        }
        for (Pair { step, change, inverse }, weight) in self.pairs.iter().zip(weights.iter().rev())
        {
            let back = inverse * dot(change, &q);
            add_scaled(&mut q, weight - back, step);
        }
        let is_descent = dot(&q, gradient) < 0.0 && q.iter().all(|x| x.is_finite());
        if !is_descent {
            q.iter_mut().zip(gradient).for_each(|(q, g)| *q = -g);
        }
        q
    }

    pub(super) fn is_sound(&self, n: usize, memory: usize) -> bool {
        let is_vector = |x: &[f64]| x.len() == n && x.iter().all(|x| x.is_finite());
        self.pairs.len() <= memory
            && self.pairs.iter().all(|pair| {
                is_vector(&pair.step)
                    && is_vector(&pair.change)
                    && pair.inverse.is_finite()
                    && pair.inverse > 0.0
            })
    }
}
