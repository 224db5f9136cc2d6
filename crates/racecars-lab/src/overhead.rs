//! The cost of a step of an optimizer, next to its floor: copying a point, drawing as many random numbers as the
//! step does, and, where coordinates are discrete, looking a key up among those of the run and adding it.
//!
//! The random numbers of RACE-CARS are counted in the steps that are timed: a step among few discrete coordinates draws
//! several points until one was not proposed before, most of all when the search is at an optimum. Without them the ratio
//! would tell how many points a step draws instead of what its bookkeeping costs. Those of the other
//! algorithms are constants, and the further look-ups are not in the floor.
//!
//! The steps are those of a real run. A first run records the values of a simple objective; a second one
//! with the same seed is told the recorded values, without evaluating anything, and timed. The floor is
//! measured in the same process, alternating with the steps.

use racecars::random::Random;
use racecars::{
    Algorithm, Auto, Axis, Domain, Error, Optimizer, Outcome, Portfolio, RaceCars, Space,
};
use serde::Serialize;
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;
use std::str::FromStr;
use std::time::Instant;

/// The cost of one step.
#[derive(Debug, Clone, Serialize)]
pub struct Overhead {
    /// The algorithm's name.
    pub algorithm: String,
    /// The space.
    pub space: SpaceKind,
    /// The dimension.
    pub dim: usize,
    /// Nanoseconds per ask and tell, in steady state.
    pub ns_per_step: f64,
    /// Random numbers of a step.
    pub draws: f64,
    /// Nanoseconds to copy a point and to draw as many random numbers; in a space with discrete coordinates also to
    /// look up and to add its key.
    pub floor_ns: f64,
    /// `ns_per_step` divided by `floor_ns`.
    pub ratio: f64,
    /// For a portfolio: its time divided by the time of its members alone for the same evaluations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members_ratio: Option<f64>,
}

/// A kind of space to measure in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SpaceKind {
    /// Reals from -10 to 10.
    Reals,
    /// Integers from -10 to 10.
    Integers,
    /// Booleans.
    Bits,
    /// Choices of five values.
    Categories,
    /// A quarter of each of the others.
    Mixed,
}

impl SpaceKind {
    /// All kinds.
    pub const ALL: [SpaceKind; 5] = [
        SpaceKind::Reals,
        SpaceKind::Integers,
        SpaceKind::Bits,
        SpaceKind::Categories,
        SpaceKind::Mixed,
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            SpaceKind::Reals => "reals",
            SpaceKind::Integers => "integers",
            SpaceKind::Bits => "bits",
            SpaceKind::Categories => "categories",
            SpaceKind::Mixed => "mixed",
        }
    }

    fn domain(self) -> Domain {
        match self {
            SpaceKind::Integers => Domain::integer(-10, 10),
            SpaceKind::Bits => Domain::Boolean,
            SpaceKind::Categories => Domain::categorical(["a", "b", "c", "d", "e"]),
            SpaceKind::Reals | SpaceKind::Mixed => Domain::real(-10.0, 10.0),
        }
    }

    fn space(self, dim: usize) -> Result<Space, Error> {
        if self != SpaceKind::Mixed {
            return Space::builder().array("x", dim, self.domain()).build();
        }
        let mut builder = Space::builder();
        for (place, kind) in SpaceKind::ALL[..4].iter().enumerate() {
            let count = (dim + place) / 4;
            if count > 0 {
                builder = builder.array(kind.name(), count, kind.domain());
            }
        }
        builder.build()
    }
}

impl fmt::Display for SpaceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SpaceKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = SpaceKind::ALL.map(SpaceKind::name).join(", ");
        let kind = SpaceKind::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| format!("`{name}` is not one of {names}"))
    }
}

/// The squared distance from the centre of each axis; from the first value of unordered axes, whose values
/// have distance 1. Sphere, if all coordinates are reals.
fn objective(space: &Space, point: &[f64]) -> f64 {
    let terms = point.iter().enumerate().map(|(index, x)| match space.axis(index) {
        Axis::Unordered { .. } => f64::from(u8::from(*x != 0.0)),
        axis => {
            let extent = axis.extent();
            (x - 0.5 * (extent.low + extent.high)).powi(2)
        }
    });
    terms.sum()
}

/// Mean number of random numbers in a step that draws from a learned box, in an adaptive region and in
/// a fixed one. A test of the library counts them.
const DRAWS_PER_STEP: [f64; 2] = [5.0, 8.0];
/// The default exploitation rate in a region that does not adapt. The other steps draw a number for
/// each coordinate.
const EXPLOITATION: f64 = 0.99;
/// Rounds in which steps and floor are timed alternately.
const ROUNDS: usize = 15;
/// The evaluations per coordinate of a run in a space with discrete coordinates. There the objective is
/// solved after some 10 per coordinate, and what follows is the search of a stalled optimizer.
const DISCRETE_RUN: usize = 100;
/// Short runs are repeated until this many steps are timed, or `ROUNDS` times.
const MIN_STEPS: usize = 300_000;
const SEED: u64 = 1;

/// Measures an algorithm in a space of dimension `dim`.
pub fn measure(algorithm: &Algorithm, kind: SpaceKind, dim: usize) -> Result<Overhead, Error> {
    let space = kind.space(dim)?;
    // Long enough to be timed well, short enough for a million dimensions.
    let steps = (5_000_000 / dim).clamp(60, 20_000);
    let longest = steps.max(500) + ROUNDS * steps;
    let total = match kind {
        SpaceKind::Reals => longest,
        _ => longest.min(DISCRETE_RUN * dim),
    };
    let Recorded { values, explored } = record(algorithm, &space, total)?;
    let steps = steps.min(values.len() * 9 / 10 / ROUNDS).max(1);
    let (first, rest) = values.split_at(values.len().saturating_sub(ROUNDS * steps));
    let share = match explored[first.len()..] {
        [] => 0.0,
        ref timed => timed.iter().filter(|&&explored| explored).count() as f64 / timed.len() as f64,
    };
    let mut floor = FloorSteps::new(algorithm, &space, share);
    if let Algorithm::RaceCars(settings) = algorithm {
        floor =
            FloorSteps { exploration: 0.0, draws: draws(settings, &space, &values, rest.len())? };
    }
    let mut rounds = Rounds::new(steps);
    let mut portfolios = None;
    for _ in 0..(MIN_STEPS / values.len().max(1)).clamp(1, ROUNDS) {
        let mut player = algorithm.optimizer(&space, Some(total as u64), SEED)?;
        play(&mut *player, first)?;
        let mut floor = Floor::new(&space, floor, first.len());
        let before = player.portfolio();
        for (round, values) in rest.chunks_exact(steps).enumerate() {
            let start = Instant::now();
            play(&mut *player, values)?;
            let step_seconds = start.elapsed().as_secs_f64();
            let start = Instant::now();
            (0..steps).for_each(|_| floor.step());
            rounds.add(round, step_seconds, start.elapsed().as_secs_f64());
        }
        portfolios = before.zip(player.portfolio());
    }
    let members_ns = match portfolios {
        Some((before, after)) => Some(members(&before, &after, kind, dim, rounds.floor_ns())?),
        None => None,
    };
    let draws = floor.mean_draws(dim);
    Ok(Overhead { draws, ..rounds.overhead(algorithm.name(), kind, dim, members_ns) })
}

/// What a run is played from.
struct Recorded {
    values: Vec<f64>,
    /// Whether each point was drawn from the whole space.
    explored: Vec<bool>,
}

fn record(algorithm: &Algorithm, space: &Space, total: usize) -> Result<Recorded, Error> {
    let mut recorder = algorithm.optimizer(space, Some(total as u64), SEED)?;
    let (mut values, mut explored) = (Vec::with_capacity(total), Vec::with_capacity(total));
    for _ in 0..total {
        let Some(candidate) = recorder.ask() else { break };
        let is_explored = recorder.best().is_some_and(|best| {
            let pairs = candidate.point().iter().zip(best.point);
            pairs.filter(|(a, b)| a != b).count() > candidate.point().len() / 4 + 3
        });
        explored.push(is_explored);
        let value = objective(space, candidate.point());
        values.push(value);
        recorder.tell(candidate, Outcome::from(value))?;
    }
    Ok(Recorded { values, explored })
}

/// The times of all rounds, the shortest of all repetitions.
struct Rounds {
    /// Steps of a round.
    steps: usize,
    step_seconds: Vec<f64>,
    floor_seconds: Vec<f64>,
}

impl Rounds {
    fn new(steps: usize) -> Self {
        Rounds { steps, step_seconds: Vec::new(), floor_seconds: Vec::new() }
    }

    fn add(&mut self, round: usize, step_seconds: f64, floor_seconds: f64) {
        let times =
            [(&mut self.step_seconds, step_seconds), (&mut self.floor_seconds, floor_seconds)];
        for (times, seconds) in times {
            match times.get_mut(round) {
                Some(time) => *time = time.min(seconds),
                None => times.push(seconds),
            }
        }
    }

    fn floor_ns(&self) -> f64 {
        self.ns(median(&self.floor_seconds))
    }

    fn ns(&self, round_seconds: f64) -> f64 {
        1e9 * round_seconds / self.steps as f64
    }

    /// `members_ns`: for a portfolio, the mean time of a step of its members alone.
    fn overhead(
        &self,
        algorithm: &str,
        space: SpaceKind,
        dim: usize,
        members_ns: Option<f64>,
    ) -> Overhead {
        let floor_ns = self.floor_ns();
        let ns_per_step = match (space, members_ns) {
            (SpaceKind::Reals, None) => self.ns(median(&self.step_seconds)),
            // Members of a portfolio and phases of a discrete search cost differently, and the median would
            // be the time of one of them.
            _ => self.ns(mean(&self.step_seconds)),
        };
        Overhead {
            algorithm: algorithm.to_string(),
            space,
            dim,
            ns_per_step,
            draws: 0.0,
            floor_ns,
            ratio: ns_per_step / floor_ns,
            members_ratio: members_ns.map(|members_ns| ns_per_step / members_ns),
        }
    }
}

/// The mean time in ns that the members of a portfolio, each measured alone, take for the evaluations
/// they had between `before` and `after`. Members that are not algorithms themselves count as the floor.
fn members(
    before: &Portfolio,
    after: &Portfolio,
    kind: SpaceKind,
    dim: usize,
    floor_ns: f64,
) -> Result<f64, Error> {
    let (mut evaluations, mut time) = (0.0, 0.0);
    for member in &after.members {
        let earlier = before.members.iter().find(|earlier| earlier.name == member.name);
        let count = (member.evaluations - earlier.map_or(0, |earlier| earlier.evaluations)) as f64;
        let alone = match member.name.parse::<Algorithm>() {
            _ if count == 0.0 => floor_ns,
            Ok(algorithm) => measure(&algorithm, kind, dim)?.ns_per_step,
            // `auto` on the real coordinates of a mixture.
            Err(_) if member.name == "reals" => {
                let auto = Algorithm::Auto(Auto::default());
                measure(&auto, SpaceKind::Reals, dim / 4)?.ns_per_step
            }
            Err(_) => floor_ns,
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

/// The mean number of random numbers in the last steps of a run.
fn draws(settings: &RaceCars, space: &Space, values: &[f64], steps: usize) -> Result<f64, Error> {
    /// No step draws more, unless it draws every coordinate.
    const MAX_DRAWS: usize = 10_000;
    let mut optimizer = settings.optimizer(space, Some(values.len() as u64), SEED)?;
    let mut draws = 0;
    for (step, &value) in values.iter().enumerate() {
        let mut counter = optimizer.random().clone();
        let Some(candidate) = optimizer.ask() else { break };
        optimizer.tell(candidate, Outcome::Value(value))?;
        let is_timed = step >= values.len() - steps;
        let most = if is_timed { MAX_DRAWS.max(4 * space.dimension()) } else { 0 };
        let count = (0..most).take_while(|_| {
            let is_behind = counter != *optimizer.random();
            counter.bits();
            is_behind
        });
        draws += count.count();
    }
    Ok(draws as f64 / steps as f64)
}

/// What the steps of a floor draw.
#[derive(Debug, Clone, Copy)]
struct FloorSteps {
    /// The probability of a step that draws every coordinate.
    exploration: f64,
    /// How many random numbers the other steps draw.
    draws: f64,
}

impl FloorSteps {
    /// `explored` is the share of steps in discrete spaces that draw every coordinate.
    fn new(algorithm: &Algorithm, space: &Space, explored: f64) -> Self {
        let [adaptive, fixed] = DRAWS_PER_STEP;
        let (exploration, draws) = match algorithm {
            Algorithm::Random(_) => (1.0, 0.0),
            Algorithm::Auto(_) => (0.0, adaptive),
            Algorithm::RaceCars(settings) if settings.is_adaptive() => (0.0, adaptive),
            _ => (1.0 - EXPLOITATION, fixed),
        };
        FloorSteps { exploration: if space.is_discrete() { explored } else { exploration }, draws }
    }

    fn mean_draws(self, dim: usize) -> f64 {
        self.exploration * dim as f64 + (1.0 - self.exploration) * self.draws
    }
}

/// The least work of a step.
struct Floor<'a> {
    space: &'a Space,
    random: Random,
    from: Vec<f64>,
    to: Vec<f64>,
    steps: FloorSteps,
    /// The part of a random number that is still to be drawn.
    owed: f64,
    /// In a space with discrete coordinates, the keys of the points proposed.
    seen: Option<HashSet<u64, BuildHasherDefault<KeyHasher>>>,
}

/// Keys are random numbers already.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0 << 8 ^ u64::from(byte));
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

impl<'a> Floor<'a> {
    /// `asked` is the number of points before the first step.
    fn new(space: &'a Space, steps: FloorSteps, asked: usize) -> Self {
        let dim = space.dimension();
        let (mut random, from, to) = (Random::new(SEED), vec![0.5; dim], vec![0.0; dim]);
        let seen = (!space.is_continuous()).then(|| (0..asked).map(|_| random.bits()).collect());
        Floor { space, random, from, to, steps, owed: 0.0, seen }
    }

    fn step(&mut self) {
        let FloorSteps { exploration, draws } = self.steps;
        if exploration > 0.0 && self.random.chance(exploration) {
            self.space.draw(&mut self.random, &mut self.to);
        } else {
            self.to.copy_from_slice(black_box(&self.from));
            self.owed += draws;
            let whole = self.owed as u64;
            self.owed -= whole as f64;
            for _ in 0..whole {
                black_box(self.random.unit());
            }
        }
        if let Some(seen) = &mut self.seen {
            let key = black_box(self.random.bits());
            if !seen.contains(&key) {
                seen.insert(key);
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
        let overhead = rounds().overhead("race-cars", SpaceKind::Reals, 7, None);
        assert!(is_close(overhead.ns_per_step, 200.0) && is_close(overhead.floor_ns, 100.0));
        assert!(is_close(overhead.ratio, 2.0) && overhead.members_ratio.is_none());
    }

    #[test]
    fn a_portfolio_is_given_its_mean_step_and_its_ratio_to_its_members() {
        let overhead = rounds().overhead("auto", SpaceKind::Reals, 7, Some(150.0));
        assert!(is_close(overhead.ns_per_step, 300.0) && is_close(overhead.ratio, 3.0));
        assert!(is_close(overhead.members_ratio.unwrap(), 2.0));
    }

    #[test]
    fn in_a_discrete_space_the_mean_counts_of_the_shortest_repetitions() {
        let mut rounds = rounds();
        rounds.add(0, 2e-6, 9e-6);
        rounds.add(1, 9e-6, 9e-6);
        let overhead = rounds.overhead("race-cars", SpaceKind::Bits, 7, None);
        assert!(is_close(overhead.ns_per_step, 200.0) && is_close(overhead.floor_ns, 100.0));
    }

    #[test]
    fn the_played_run_is_the_recorded_one() {
        for kind in SpaceKind::ALL {
            let space = kind.space(30).unwrap();
            assert_eq!(space.dimension(), 30);
            let values = record(&Algorithm::race_cars(), &space, 400).unwrap().values;
            let mut player = Algorithm::race_cars().optimizer(&space, Some(400), SEED).unwrap();
            play(&mut *player, &values).unwrap();
            let played = player.best().unwrap();
            assert_eq!(
                values.iter().copied().fold(f64::INFINITY, f64::min),
                played.rank.value().unwrap()
            );
            assert_eq!(objective(&space, played.point), played.rank.value().unwrap());
        }
    }

    #[test]
    fn uniform_draws_are_told_from_steps() {
        let space = SpaceKind::Bits.space(100).unwrap();
        let share = |algorithm: Algorithm| {
            let explored = record(&algorithm, &space, 500).unwrap().explored;
            explored[50..].iter().filter(|&&explored| explored).count() as f64 / 450.0
        };
        assert_eq!(share(Algorithm::random()), 1.0);
        assert!(share(Algorithm::sracos()) < 0.1);
    }

    #[test]
    fn a_measurement_is_of_the_algorithm_space_and_dimension_asked_for() {
        let overhead = measure(&Algorithm::race_cars(), SpaceKind::Mixed, 20_000).unwrap();
        assert_eq!((overhead.algorithm.as_str(), overhead.dim), ("race-cars", 20_000));
        assert_eq!(overhead.space, SpaceKind::Mixed);
        assert!(overhead.ns_per_step > 0.0 && overhead.floor_ns > 0.0);
    }
}
