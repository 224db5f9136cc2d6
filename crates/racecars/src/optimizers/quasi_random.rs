//! Quasi-random search: points that fill the space more evenly than uniform draws do.
//!
//! The first 50 coordinates follow a Halton sequence (J. H. Halton 1960; coordinate j counts in the
//! j-th prime base, and mirrors the digits behind the point) with a random permutation for each digit
//! (J. Matousek, "On the L2-discrepancy for anchored boxes", 1998), without which the coordinates of
//! large bases rise and fall together. Every single point is then uniform, and the points together
//! are even.
//!
//! The other coordinates are uniform draws. Evenness in that many needs more points than anyone can
//! pay for: in the base of the 50th prime, 229, some 200 points only just fill one coordinate.

use super::incumbent::Incumbent;
use super::ledger::Ledger;
use super::{Best, Candidate, Optimizer, saved};
use crate::classify::Sample;
use crate::error::Result;
use crate::outcome::Outcome;
use crate::random::Random;
use crate::space::Space;
use serde::{Deserialize, Serialize};

/// The coordinates that follow the Halton sequence.
const HALTON: usize = 50;

/// The digits of a coordinate resolve at least this many cells.
const CELLS: f64 = (1u64 << 40) as f64;

/// Points of a scrambled Halton sequence; in a discrete space without repeats.
pub struct QuasiRandom {
    space: Space,
    state: State,
    /// A function of the state's seed.
    sequence: Sequence,
    /// The buffer of the last point told, for the next one asked.
    spare: Option<Box<[f64]>>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct State {
    seed: u64,
    /// The place in the sequence.
    next: u64,
    random: Random,
    ledger: Ledger,
    best: Incumbent,
}

impl QuasiRandom {
    /// A search that is a function of the seed.
    pub fn new(space: &Space, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let seed = random.bits();
        QuasiRandom {
            space: space.clone(),
            state: State {
                seed,
                next: 0,
                random,
                ledger: Ledger::default(),
                best: Incumbent::default(),
            },
            sequence: Sequence::new(space.dimension(), seed),
            spare: None,
        }
    }

    pub(super) fn restore(space: Space, state: State) -> Result<Self> {
        let is_sound =
            state.random.is_alive() && state.ledger.is_sound(&space) && state.best.is_sound(&space);
        if !is_sound {
            return Err(saved::unsound());
        }
        let sequence = Sequence::new(space.dimension(), state.seed);
        Ok(QuasiRandom { space, state, sequence, spare: None })
    }
}

impl Optimizer for QuasiRandom {
    fn space(&self) -> &Space {
        &self.space
    }

    fn name(&self) -> &'static str {
        "quasi-random"
    }

    fn ask(&mut self) -> Option<Candidate> {
        let State { next, random, ledger, .. } = &mut self.state;
        if ledger.is_exhausted(&self.space) {
            return None;
        }
        let mut point = (self.spare.take())
            .unwrap_or_else(|| vec![0.0; self.space.dimension()].into_boxed_slice());
        for (i, x) in point.iter_mut().enumerate() {
            let axis = self.space.axis(i);
            *x = match self.sequence.coordinates.get(i) {
                Some(coordinate) => axis.at(coordinate.share(*next)),
                None => axis.draw(random),
            };
        }
        *next = next.wrapping_add(1);
        let mut key = self.space.key(&point);
        if ledger.has_seen(key) {
            key = ledger.draw(&self.space, random, &mut point)?;
        }
        Some(ledger.issue(&self.space, point, key))
    }

    fn tell(&mut self, candidate: Candidate, outcome: Outcome) -> Result<()> {
        let (point, key) = self.state.ledger.settle(&self.space, candidate)?;
        let rank = outcome.rank();
        self.spare = self.state.best.offer(Sample { point, rank, key });
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

/// The scrambled Halton sequence.
struct Sequence {
    coordinates: Vec<Coordinate>,
}

struct Coordinate {
    base: u64,
    /// The permutations of the first, second, ... digit, one after the other.
    permutations: Vec<u8>,
}

impl Sequence {
    fn new(dimension: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let bases = primes().take(dimension.min(HALTON));
        Sequence { coordinates: bases.map(|base| Coordinate::new(base, &mut random)).collect() }
    }
}

impl Coordinate {
    fn new(base: u8, random: &mut Random) -> Self {
        let digits = (CELLS.ln() / f64::from(base).ln()).ceil() as usize;
        let mut permutations = Vec::with_capacity(digits * usize::from(base));
        for _ in 0..digits {
            let first = permutations.len();
            permutations.extend(0..base);
            for last in (1..usize::from(base)).rev() {
                permutations.swap(first + last, first + random.index(last + 1));
            }
        }
        Coordinate { base: u64::from(base), permutations }
    }

    /// The coordinate of the point at `place`, in [0, 1): its permuted digits mirrored at the point.
    /// The leading zeros of `place` are permuted as well.
    fn share(&self, mut place: u64) -> f64 {
        let scale = 1.0 / self.base as f64;
        let (mut share, mut unit) = (0.0, scale);
        for permutation in self.permutations.chunks_exact(self.base as usize) {
            share += f64::from(permutation[(place % self.base) as usize]) * unit;
            unit *= scale;
            place /= self.base;
        }
        share
    }
}

/// The primes that fit a byte, of which there are 54.
fn primes() -> impl Iterator<Item = u8> {
    (2..=u8::MAX).filter(|&n| (2..n.min(16)).all(|d| n % d != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizers::load;

    fn points(space: &Space, count: usize, seed: u64) -> Vec<Candidate> {
        let mut search = QuasiRandom::new(space, seed);
        (0..count).map_while(|_| search.ask()).collect()
    }

    #[test]
    fn there_are_enough_primes() {
        let primes: Vec<u8> = primes().collect();
        assert_eq!(primes.len(), 54);
        assert_eq!((primes[3], primes[HALTON - 1]), (7, 229));
    }

    #[test]
    fn as_many_points_as_the_base_fill_a_coordinate_evenly() {
        let space = Space::cube(HALTON, 0.0, 1.0).unwrap();
        let points = points(&space, 229, 1);
        for (i, base) in primes().take(HALTON).enumerate() {
            let firsts = points[..usize::from(base)].iter();
            let mut cells: Vec<u8> =
                firsts.map(|p| (p.point()[i] * f64::from(base)) as u8).collect();
            cells.sort_unstable();
            assert_eq!(cells, (0..base).collect::<Vec<_>>());
        }
    }

    /// The mean of a smooth function is far closer to its integral than that of uniform draws.
    #[test]
    fn means_are_closer_than_those_of_random_draws() {
        let space = Space::cube(5, 0.0, 1.0).unwrap();
        let error_of = |points: &mut dyn FnMut(&mut [f64])| {
            let mut point = [0.0; 5];
            let mut sum = 0.0;
            for _ in 0..2000 {
                points(&mut point);
                sum += point.iter().map(|x| 2.0 * x).product::<f64>();
            }
            (sum / 2000.0 - 1.0).abs()
        };
        let (mut quasi, mut uniform) = (0.0, 0.0);
        for seed in 0..20 {
            let mut search = QuasiRandom::new(&space, seed);
            quasi += error_of(&mut |p| p.copy_from_slice(search.ask().unwrap().point()));
            let mut random = Random::new(seed);
            uniform += error_of(&mut |p| space.draw(&mut random, p));
        }
        assert!(quasi < 0.2 * uniform, "{quasi} {uniform}");
    }

    /// Neighbouring coordinates of large bases, which without permutations rise together.
    #[test]
    fn coordinates_are_uncorrelated() {
        let space = Space::cube(HALTON, 0.0, 1.0).unwrap();
        let points = points(&space, 1000, 1);
        for i in 1..HALTON {
            let products = points.iter().map(|p| (p.point()[i - 1] - 0.5) * (p.point()[i] - 0.5));
            let correlation = 12.0 * products.sum::<f64>() / 1000.0;
            assert!(correlation.abs() < 0.12, "{i}: {correlation}");
        }
    }

    #[test]
    fn a_small_space_is_seen_once_and_to_the_end() {
        let space = Space::builder()
            .log_integer("l", 1, 20)
            .categorical("c", ["a", "b", "c"])
            .build()
            .unwrap();
        let mut keys: Vec<u64> =
            points(&space, 100, 1).iter().map(|p| space.key(p.point())).collect();
        keys.sort_unstable();
        assert_eq!(keys, (0..60).collect::<Vec<_>>());
    }

    #[test]
    fn a_restored_search_goes_on_in_many_dimensions() {
        let space = Space::cube(1000, -1.0, 1.0).unwrap();
        let mut search = QuasiRandom::new(&space, 1);
        for i in 0..10 {
            let candidate = search.ask().unwrap();
            search.tell(candidate, Outcome::from(f64::from(i))).unwrap();
        }
        let mut twin = load(&search.save()).unwrap();
        assert_eq!(twin.best(), search.best());
        for _ in 0..10 {
            let candidate = search.ask();
            space.check(candidate.as_ref().unwrap().point()).unwrap();
            assert_eq!(candidate, twin.ask());
        }
    }
}
