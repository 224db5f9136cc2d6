//! Quasi-random search: a low-discrepancy sequence, which fills the space more evenly than uniform
//! sampling.
//!
//! The first 50 coordinates follow a Halton sequence (J. H. Halton 1960): coordinate j is the radical
//! inverse of the index in the j-th prime base. Each digit is permuted at random (J. Matousek, "On the
//! L2-discrepancy for anchored boxes", 1998), since otherwise coordinates with large bases are
//! correlated. Every single point is uniformly distributed.
//!
//! All further coordinates are uniform draws. Low discrepancy in that many dimensions would need more
//! points than a budget has: in the base of the 50th prime, 229, it takes 229 points to fill one
//! coordinate.

use super::ledger::Ledger;
use super::settings::settings;
use super::shell::{Proposal, Search, Tools};
use crate::error::Result;
use crate::random::Random;
use crate::space::Space;
use serde::{Deserialize, Serialize};

settings! {
    /// Quasi-random search has no settings.
    pub struct QuasiRandom {}
}

/// The number of coordinates that follow the Halton sequence.
const HALTON_COORDINATES: usize = 50;

/// The minimum resolution of a coordinate, which determines its number of digits.
const MIN_CELLS: f64 = (1u64 << 40) as f64;

/// Points of a scrambled Halton sequence, without repeats in spaces with discrete coordinates.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct QuasiRandomSearch {
    seed: u64,
    /// The index of the next point in the sequence.
    next: u64,
    /// Derived from the seed.
    #[serde(skip)]
    sequence: HaltonSequence,
}

impl QuasiRandomSearch {
    pub(super) fn new(random: &mut Random) -> Self {
        QuasiRandomSearch { seed: random.bits(), next: 0, sequence: HaltonSequence::default() }
    }
}

impl Search for QuasiRandomSearch {
    type Mark = ();

    fn prepare(&mut self, space: &Space, _: usize) -> Result<()> {
        self.sequence = HaltonSequence::new(space.dimension(), self.seed);
        Ok(())
    }

    fn propose(&mut self, tools: &mut Tools<'_, ()>) -> Option<Proposal<()>> {
        let mut point = tools.buffer();
        let key = tools.unseen(1, &mut point, |tools, _, point| {
            self.sequence.write(self.next, tools.space, tools.random, point);
            self.next = self.next.wrapping_add(1);
            tools.space.key(point)
        })?;
        Some(Proposal { point, key, mark: () })
    }

    fn is_sound(&self, _: &Space, _: &Ledger<()>) -> Result<bool> {
        Ok(true)
    }
}

/// One coordinate of the scrambled Halton sequence.
#[derive(Debug)]
struct HaltonCoordinate {
    base: u64,
    /// The permutations of all digits, concatenated.
    permutations: Vec<u8>,
}

/// The scrambled Halton sequence, without the further coordinates.
#[derive(Debug, Default)]
pub(super) struct HaltonSequence(Vec<HaltonCoordinate>);

impl HaltonSequence {
    pub(super) fn new(dimension: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let bases = primes().take(dimension.min(HALTON_COORDINATES));
        HaltonSequence(bases.map(|base| HaltonCoordinate::new(base, &mut random)).collect())
    }

    /// Writes the point at this index. The further coordinates are drawn, and so are orders and selections: most
    /// points of the sequence would be mended into one of the largest size.
    pub(super) fn write(&self, index: u64, space: &Space, random: &mut Random, point: &mut [f64]) {
        for (i, x) in point.iter_mut().enumerate() {
            let axis = space.axis(i);
            *x = match self.0.get(i) {
                Some(coordinate) => axis.at(coordinate.radical_inverse(index)),
                None => axis.draw(random),
            };
        }
        space.draw_orders_and_selections(random, point);
    }
}

impl HaltonCoordinate {
    fn new(base: u8, random: &mut Random) -> Self {
        let digits = (MIN_CELLS.ln() / f64::from(base).ln()).ceil() as usize;
        let mut permutations = Vec::with_capacity(digits * usize::from(base));
        for _ in 0..digits {
            let first = permutations.len();
            permutations.extend(0..base);
            random.shuffle(&mut permutations[first..]);
        }
        HaltonCoordinate { base: u64::from(base), permutations }
    }

    /// The coordinate of the point at this index, in [0, 1): the radical inverse with permuted digits.
    /// Leading zeros of the index are permuted as well.
    fn radical_inverse(&self, mut index: u64) -> f64 {
        let scale = 1.0 / self.base as f64;
        let (mut inverse, mut unit) = (0.0, scale);
        for permutation in self.permutations.chunks_exact(self.base as usize) {
            inverse += f64::from(permutation[(index % self.base) as usize]) * unit;
            unit *= scale;
            index /= self.base;
        }
        inverse
    }
}

/// The 54 primes that fit in a byte.
fn primes() -> impl Iterator<Item = u8> {
    (2..=u8::MAX).filter(|&n| (2..n.min(16)).all(|d| n % d != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizers::{Algorithm, Candidate, Optimizer, load};
    use crate::outcome::Outcome;

    fn search(space: &Space, seed: u64) -> Box<dyn Optimizer> {
        Algorithm::quasi_random().optimizer(space, None, seed).unwrap()
    }

    fn points(space: &Space, count: usize, seed: u64) -> Vec<Candidate> {
        let mut search = search(space, seed);
        (0..count).map_while(|_| search.ask()).collect()
    }

    #[test]
    fn there_are_enough_primes() {
        let primes: Vec<u8> = primes().collect();
        assert_eq!(primes.len(), 54);
        assert_eq!((primes[3], primes[HALTON_COORDINATES - 1]), (7, 229));
    }

    #[test]
    fn the_first_points_are_stratified_in_every_base() {
        let space = Space::cube(HALTON_COORDINATES, 0.0, 1.0).unwrap();
        let points = points(&space, 229, 1);
        for (i, base) in primes().take(HALTON_COORDINATES).enumerate() {
            let firsts = points[..usize::from(base)].iter();
            let mut cells: Vec<u8> =
                firsts.map(|p| (p.point()[i] * f64::from(base)) as u8).collect();
            cells.sort_unstable();
            assert_eq!(cells, (0..base).collect::<Vec<_>>());
        }
    }

    #[test]
    fn integration_errors_are_smaller_than_those_of_random_draws() {
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
            let mut search = search(&space, seed);
            quasi += error_of(&mut |p| p.copy_from_slice(search.ask().unwrap().point()));
            let mut random = Random::new(seed);
            uniform += error_of(&mut |p| space.draw(&mut random, p));
        }
        assert!(quasi < 0.2 * uniform, "{quasi} {uniform}");
    }

    /// Without permutations, neighbouring coordinates with large bases are correlated.
    #[test]
    fn coordinates_are_uncorrelated() {
        let space = Space::cube(HALTON_COORDINATES, 0.0, 1.0).unwrap();
        let points = points(&space, 1000, 1);
        for i in 1..HALTON_COORDINATES {
            let products = points.iter().map(|p| (p.point()[i - 1] - 0.5) * (p.point()[i] - 0.5));
            let correlation = 12.0 * products.sum::<f64>() / 1000.0;
            assert!(correlation.abs() < 0.12, "{i}: {correlation}");
        }
    }

    #[test]
    fn every_point_of_a_small_space_is_proposed_once() {
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
    fn selections_have_all_sizes() {
        let items = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let space = Space::builder().subset("s", 0..=2, items).build().unwrap();
        let mut sizes = [0; 3];
        for seed in 0..100 {
            let first = &points(&space, 1, seed)[0];
            sizes[first.point().iter().sum::<f64>() as usize] += 1;
        }
        assert!(sizes.iter().all(|count| *count > 15), "{sizes:?}");
    }

    #[test]
    fn a_restored_search_continues_in_many_dimensions() {
        let space = Space::cube(1000, -1.0, 1.0).unwrap();
        let mut search = search(&space, 1);
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
