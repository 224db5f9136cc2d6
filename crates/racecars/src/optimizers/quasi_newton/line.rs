//! The search along a direction, by the values of trials alone: backtracking until the decrease is
//! sufficient (Nocedal and Wright, eq. (3.6a)), with parabolas through the last trial.

use serde::{Deserialize, Serialize};

/// c1 of the sufficient decrease.
const SUFFICIENT_DECREASE: f64 = 1e-4;
/// The longest first trial of a descent, as a fraction of an axis: nothing is known of the curvature.
const FIRST_LENGTH: f64 = 0.1;
/// Trials are shorter or longer than the one before by at most these factors.
const FACTORS: [f64; 2] = [0.1, 10.0];
/// A trial with sufficient decrease is taken unless the parabola's minimum is farther than this factor.
const MISFIT: f64 = 3.0;
/// After this many trials without sufficient decrease the direction leads nowhere.
const MAX_TRIALS: usize = 12;
/// Steps shorter than this along every axis are no steps.
const SHORTEST: f64 = 1e-13;
/// The factors of the current length for trials that are asked while it is out.
const SPECULATIVE: [f64; 6] = [0.3, 3.0, 0.1, 0.6, 0.03, 0.01];

/// A trial that is not told after this many other candidates is lost.
const LOST_AFTER: usize = 64;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LineSearch {
    direction: Vec<f64>,
    /// The slope along the direction, which is negative.
    slope: f64,
    /// The value at the start.
    value: f64,
    /// The length of the trial that is waited for.
    length: f64,
    /// The number of candidates asked since the trial was due, and it among them.
    asked: usize,
    /// The number of trials told.
    told: usize,
    /// The best trial with sufficient decrease, and its value.
    best: Option<(f64, f64)>,
}

/// The result of a trial.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Continue,
    Accepted { length: f64, value: f64 },
    Failed,
}

impl LineSearch {
    /// `None` if the direction does not descend.
    pub(super) fn new(direction: Vec<f64>, slope: f64, value: f64, is_first: bool) -> Option<Self> {
        let longest = direction.iter().fold(0.0, |longest: f64, d| longest.max(d.abs()));
        if !(slope < 0.0 && slope.is_finite() && longest.is_finite() && longest > SHORTEST) {
            return None;
        }
        let length = if is_first { FIRST_LENGTH / longest } else { (1.0 / longest).min(1.0) };
        let (asked, told) = (0, 0);
        Some(LineSearch { direction, slope, value, length, asked, told, best: None })
    }

    /// The length of the next trial; `None` if enough are out. A trial is asked again when it seems lost.
    pub(super) fn next(&mut self) -> Option<f64> {
        let place = self.asked;
        self.asked = (place + 1) % LOST_AFTER;
        match place {
            0 => Some(self.length),
            _ => SPECULATIVE.get(place - 1).map(|factor| factor * self.length),
        }
    }

    /// The length of the trial that is waited for.
    pub(super) fn length(&self) -> f64 {
        self.length
    }

    /// Whether the trial that is waited for was asked.
    pub(super) fn is_trial_out(&self) -> bool {
        self.asked > 0
    }

    /// Writes the point of a trial. It stays in the box.
    pub(super) fn write(&self, start: &[f64], length: f64, point: &mut [f64]) {
        for ((x, start), d) in point.iter_mut().zip(start).zip(&self.direction) {
            *x = (start + length * d).clamp(0.0, 1.0);
        }
    }

    /// Learns the value of a trial; `None` if it has none.
    pub(super) fn tell(&mut self, length: f64, value: Option<f64>, dimension: usize) -> Verdict {
        self.told += 1;
        let is_awaited = length == self.length;
        let value = value.unwrap_or(f64::INFINITY);
        let is_sufficient = value <= self.value + SUFFICIENT_DECREASE * length * self.slope;
        if is_sufficient && self.best.is_none_or(|(_, best)| value < best) {
            self.best = Some((length, value));
        } else if let Some((length, value)) = self.best {
            // A longer trial, or one asked meanwhile, is worse than the best.
            return Verdict::Accepted { length, value };
        }
        if !is_awaited && self.best.is_none() {
            return Verdict::Continue;
        }
        // The minimum of the parabola with this slope through both values, eq. (3.57).
        let bend = value - self.value - length * self.slope;
        let vertex = -0.5 * self.slope * length / bend * length;
        let [least, most] = FACTORS;
        let next = if bend > 0.0 && vertex.is_finite() {
            vertex.clamp(least * length, most * length)
        } else if value.is_finite() {
            most * length
        } else {
            least * length
        };
        if let Some((length, value)) = self.best {
            let longest = self.direction.iter().fold(0.0, |longest: f64, d| longest.max(d.abs()));
            let is_fit = (length / MISFIT..=length * MISFIT).contains(&next);
            // More than one trial in four evaluations is too many where gradients are cheap.
            if is_fit || length * longest >= 1.0 || self.told > 2 + dimension / 4 {
                return Verdict::Accepted { length, value };
            }
            self.length = next.min(1.0 / longest);
        } else {
            self.length = next.min(0.5 * length);
            let is_short = self.direction.iter().all(|d| (self.length * d).abs() < SHORTEST);
            if is_short || self.told >= MAX_TRIALS {
                return Verdict::Failed;
            }
        }
        self.asked = 0;
        Verdict::Continue
    }

    pub(super) fn is_sound(&self, n: usize) -> bool {
        self.direction.len() == n
            && self.direction.iter().all(|d| d.is_finite())
            && self.slope < 0.0
            && self.slope.is_finite()
            && self.value.is_finite()
            && self.length > 0.0
            && self.length.is_finite()
            && self.asked < LOST_AFTER
            && self.told < 1 << 31
            && self.best.is_none_or(|(length, value)| length.is_finite() && value.is_finite())
    }
}
