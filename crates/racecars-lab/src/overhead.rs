//! The cost of a step of an optimizer, next to its floor: copying a point and drawing the random
//! numbers that a step needs.
//!
//! The steps are those of a real run. A first run on Sphere records the values; a second one with the
//! same seed is told the recorded values, without evaluating anything, and timed. The floor is
//! measured in the same process, alternating with the steps.

use racecars::random::Random;
use racecars::{Algorithm, Error, Optimizer, Outcome, Portfolio, Space};
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
    /// `ns_per_step` divided by `floor_ns`.
    pub ratio: f64,
    /// For a portfolio: its time divided by the time of its members alone for the same evaluations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members_ratio: Option<f64>,
}

/// Mean number of random numbers in a step that draws from a learned box, in an adaptive region and in
/// a fixed one. A test of the library counts them.
const DRAWS_PER_STEP: [u64; 2] = [5, 8];
/// The default exploitation rate in a region that does not adapt. The other steps draw a number for
/// each coordinate.
const EXPLOITATION: f64 = 0.99;
/// Rounds in which steps and floor are timed alternately. The medians are reported.
const ROUNDS: usize = 15;
const SEED: u64 = 1;

/// Measures an algorithm on Sphere over [-10, 10]^n, n = `dim`.
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
    let mut rounds = Rounds { steps, step_seconds: Vec::new(), floor_seconds: Vec::new() };
    for values in rest.chunks_exact(steps) {
        let start = Instant::now();
        play(&mut *player, values)?;
        rounds.step_seconds.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        (0..steps).for_each(|_| floor.step());
        rounds.floor_seconds.push(start.elapsed().as_secs_f64());
    }
    let members_ns = match (before, player.portfolio()) {
        (Some(before), Some(after)) => Some(members(&before, &after, dim, rounds.floor_ns())?),
        _ => None,
    };
    Ok(rounds.overhead(algorithm.name(), dim, members_ns))
}

/// The times of all rounds.
struct Rounds {
    /// Steps of a round.
    steps: usize,
    step_seconds: Vec<f64>,
    floor_seconds: Vec<f64>,
}

impl Rounds {
    fn floor_ns(&self) -> f64 {
        self.ns(median(&self.floor_seconds))
    }

    fn ns(&self, round_seconds: f64) -> f64 {
        1e9 * round_seconds / self.steps as f64
    }

    /// `members_ns`: for a portfolio, the mean time of a step of its members alone.
    fn overhead(&self, algorithm: &str, dim: usize, members_ns: Option<f64>) -> Overhead {
        let floor_ns = self.floor_ns();
        let ns_per_step = match members_ns {
            // Members cost differently, and the median would be the time of one of them.
            Some(_) => self.ns(mean(&self.step_seconds)),
            None => self.ns(median(&self.step_seconds)),
        };
        Overhead {
            algorithm: algorithm.to_string(),
            dim,
            ns_per_step,
            floor_ns,
            ratio: ns_per_step / floor_ns,
            members_ratio: members_ns.map(|members_ns| ns_per_step / members_ns),
        }
    }
}

/// The mean time in ns that the members of a portfolio, each measured alone, take for the evaluations
/// they had between `before` and `after`. Members that are not algorithms themselves count as the floor.
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

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The least work of a step.
struct Floor {
    random: Random,
    from: Vec<f64>,
    to: Vec<f64>,
    /// The probability of a step that draws every coordinate.
    exploration: f64,
    /// How many random numbers the other steps draw.
    draws: u64,
}

impl Floor {
    fn new(dim: usize, algorithm: &Algorithm) -> Self {
        let [adaptive, fixed] = DRAWS_PER_STEP;
        let (exploration, draws) = match algorithm {
            Algorithm::Random(_) => (1.0, 0),
            Algorithm::Auto(_) => (0.0, adaptive),
            Algorithm::RaceCars(settings) if settings.is_adaptive() => (0.0, adaptive),
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

    fn rounds() -> Rounds {
        let step_seconds = vec![5e-6, 2e-6, 2e-6];
        Rounds { steps: 10, step_seconds, floor_seconds: vec![4e-6, 1e-6, 0.5e-6] }
    }

    fn is_close(x: f64, expected: f64) -> bool {
        (x / expected - 1.0).abs() < 1e-12
    }

    #[test]
    fn an_algorithm_is_given_its_median_step_and_floor() {
        let overhead = rounds().overhead("race-cars", 7, None);
        assert!(is_close(overhead.ns_per_step, 200.0) && is_close(overhead.floor_ns, 100.0));
        assert!(is_close(overhead.ratio, 2.0) && overhead.members_ratio.is_none());
    }

    #[test]
    fn a_portfolio_is_given_its_mean_step_and_its_ratio_to_its_members() {
        let overhead = rounds().overhead("auto", 7, Some(150.0));
        assert!(is_close(overhead.ns_per_step, 300.0) && is_close(overhead.ratio, 3.0));
        assert!(is_close(overhead.members_ratio.unwrap(), 2.0));
    }

    #[test]
    fn the_played_run_is_the_recorded_one() {
        let space = Space::cube(30, -10.0, 10.0).unwrap();
        let optimizer = || Algorithm::race_cars().optimizer(&space, Some(400), SEED).unwrap();
        let mut recorder = optimizer();
        let values: Vec<f64> = (0..400)
            .map(|_| {
                let candidate = recorder.ask().unwrap();
                let value = sphere(candidate.point());
                recorder.tell(candidate, Outcome::from(value)).unwrap();
                value
            })
            .collect();
        let mut player = optimizer();
        play(&mut *player, &values).unwrap();
        let [recorded, played] = [&recorder, &player].map(|optimizer| optimizer.best().unwrap());
        assert_eq!(recorded.point, played.point);
        assert_eq!(sphere(played.point), played.rank.value().unwrap());
    }

    #[test]
    fn a_measurement_is_of_the_algorithm_and_dimension_asked_for() {
        let overhead = measure(&Algorithm::race_cars(), 20_000).unwrap();
        assert_eq!((overhead.algorithm.as_str(), overhead.dim), ("race-cars", 20_000));
        assert!(overhead.ns_per_step > 0.0 && overhead.floor_ns > 0.0);
    }
}
