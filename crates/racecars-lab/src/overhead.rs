//! What a step of an optimizer costs, beside its floor: copying a point, and drawing the random
//! numbers that a step needs.
//!
//! The steps are real ones. A first run with Sphere records the values told; then the same run, which
//! the seed makes the same, is played again with the recorded values, without evaluating anything,
//! and timed. The floor is measured in the same process, in turn with the steps.

use racecars::random::Random;
use racecars::{Algorithm, Error, Optimizer, Outcome, Portfolio, Shrinking, Space};
use racecars_problems::functions::sphere;
use serde::Serialize;
use std::hint::black_box;
use std::time::Instant;

/// The cost of one step.
#[derive(Debug, Clone, Serialize)]
pub struct Overhead {
    /// The algorithm's name.
    pub algorithm: String,
    /// The dimension.
    pub dim: usize,
    /// Nanoseconds per ask and tell, in steady state.
    pub ns_per_step: f64,
    /// Nanoseconds to copy a point and draw as many random numbers as a step needs.
    pub floor_ns: f64,
    /// The first by the second.
    pub ratio: f64,
    /// Of a portfolio: its time by what its members would have taken for the same evaluations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members_ratio: Option<f64>,
}

/// Random numbers in a step that draws from a learned box, on average, in a region that adapts
/// itself and in one that does not; a test of the library counts them.
const DRAWS_PER_STEP: [u64; 2] = [5, 8];
/// The default exploitation rate where the region does not adapt: other steps draw a number for each
/// coordinate.
const EXPLOITATION: f64 = 0.99;
/// How often steps and floor are timed in turn; the medians are given.
const ROUNDS: usize = 15;
const SEED: u64 = 1;

/// Measures an algorithm at a dimension, on Sphere over [-10, 10]^n.
pub fn measure(algorithm: &Algorithm, dim: usize) -> Result<Overhead, Error> {
    let space = Space::cube(dim, -10.0, 10.0)?;
    // Long enough to be timed well, short enough for a million dimensions.
    let steps = (5_000_000 / dim).clamp(60, 20_000);
    let warm_up = steps.max(500);
    let total = warm_up + ROUNDS * steps;

    let mut recorder = algorithm.optimizer(&space, Some(total as u64), SEED)?;
    let mut values = Vec::with_capacity(total);
    for _ in 0..total {
        let Some(candidate) = recorder.ask() else { break };
        let value = sphere(candidate.point());
        values.push(value);
        recorder.tell(candidate, Outcome::from(value))?;
    }
    drop(recorder);

    let mut player = algorithm.optimizer(&space, Some(total as u64), SEED)?;
    let (first, rest) = values.split_at(warm_up.min(values.len()));
    play(&mut *player, first)?;
    let before = player.portfolio();
    let mut floor = Floor::new(dim, algorithm);
    let (mut step_times, mut floor_times) = (Vec::new(), Vec::new());
    for values in rest.chunks_exact(steps) {
        let start = Instant::now();
        play(&mut *player, values)?;
        step_times.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        (0..steps).for_each(|_| floor.step());
        floor_times.push(start.elapsed().as_secs_f64());
    }
    let per_step = |seconds: f64| 1e9 * seconds / steps as f64;
    // Members of a portfolio cost differently, and the middle one of the times is that of one of them.
    let mean = per_step(step_times.iter().sum::<f64>() / step_times.len().max(1) as f64);
    let (typical, floor_ns) = (per_step(median(step_times)), per_step(median(floor_times)));
    let members_ns = match (before, player.portfolio()) {
        (Some(before), Some(after)) => Some(members(&before, &after, dim, floor_ns)?),
        _ => None,
    };
    let ns_per_step = if members_ns.is_some() { mean } else { typical };
    Ok(Overhead {
        algorithm: algorithm.name().to_string(),
        dim,
        ns_per_step,
        floor_ns,
        ratio: ns_per_step / floor_ns,
        members_ratio: members_ns.map(|members_ns| ns_per_step / members_ns),
    })
}

/// What the members of a portfolio take on average, each measured alone, for the evaluations that they
/// had from `before` to `after`. Those that are no algorithms by themselves count as the floor.
fn members(before: &Portfolio, after: &Portfolio, dim: usize, floor_ns: f64) -> Result<f64, Error> {
    let (mut evaluations, mut time) = (0.0, 0.0);
    for member in &after.members {
        let earlier = before.members.iter().find(|earlier| earlier.name == member.name);
        let count = (member.evaluations - earlier.map_or(0, |earlier| earlier.evaluations)) as f64;
        let alone = match member.name.parse::<Algorithm>() {
            Ok(algorithm) if count > 0.0 => measure(&algorithm, dim)?.ns_per_step,
            _ => floor_ns,
        };
        evaluations += count;
        time += count * alone;
    }
    Ok(time / evaluations)
}

fn play(optimizer: &mut dyn Optimizer, values: &[f64]) -> Result<(), Error> {
    for &value in values {
        let Some(candidate) = optimizer.ask() else { break };
        optimizer.tell(black_box(candidate), Outcome::Value(value))?;
    }
    Ok(())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The least that a step must do.
struct Floor {
    random: Random,
    from: Vec<f64>,
    to: Vec<f64>,
    /// The chance of a step that draws every coordinate.
    exploration: f64,
    /// How many random numbers the others need.
    draws: u64,
}

impl Floor {
    fn new(dim: usize, algorithm: &Algorithm) -> Self {
        let [adaptive, fixed] = DRAWS_PER_STEP;
        let (exploration, draws) = match algorithm {
            Algorithm::Random => (1.0, 0),
            Algorithm::Auto(_) => (0.0, adaptive),
            Algorithm::RaceCars(_, shrinking) if *shrinking == Shrinking::default() => {
                (0.0, adaptive)
            }
            _ => (1.0 - EXPLOITATION, fixed),
        };
        let (random, from, to) = (Random::new(SEED), vec![0.5; dim], vec![0.0; dim]);
        Floor { random, from, to, exploration, draws }
    }

    fn step(&mut self) {
        if self.random.chance(self.exploration) {
            for x in &mut self.to {
                *x = self.random.between(-10.0, 10.0);
            }
        } else {
            self.to.copy_from_slice(black_box(&self.from));
            for _ in 0..self.draws {
                black_box(self.random.unit());
            }
        }
        black_box(&mut self.to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_gives_positive_figures() {
        let overhead = measure(&Algorithm::race_cars(), 20_000).unwrap();
        assert!(overhead.ns_per_step > 0.0 && overhead.floor_ns > 0.0);
        assert_eq!(overhead.ratio, overhead.ns_per_step / overhead.floor_ns);
    }
}
