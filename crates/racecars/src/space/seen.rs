//! Which points have been proposed or told, in a space with discrete coordinates, so that none is
//! proposed twice.

use super::Space;
use crate::random::Random;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// The keys of the points that have been seen. Stays empty in a space of continuous coordinates, where
/// points do not repeat.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<u64>", into = "Vec<u64>")]
pub(crate) struct Seen {
    keys: HashSet<u64, BuildHasherDefault<KeyHasher>>,
}

impl Seen {
    pub(crate) fn contains(&self, key: u64) -> bool {
        self.keys.contains(&key)
    }

    pub(crate) fn insert(&mut self, key: u64) {
        self.keys.insert(key);
    }

    /// Whether every point of the space has been seen.
    pub(crate) fn exhausts(&self, space: &Space) -> bool {
        space.cardinality() == Some(self.keys.len() as u64)
    }

    /// Whether all keys are of points of the space, so that counting them tells when none is left.
    pub(crate) fn is_sound(&self, space: &Space) -> bool {
        match space.cardinality() {
            Some(points) => self.keys.iter().all(|&key| key < points),
            None => space.can_repeat() || self.keys.is_empty(),
        }
    }

    /// Finds an unseen point: by uniform draws, then, where points are counted and most are seen, by
    /// walking on from a random one, which takes at most as many steps as there are seen points.
    pub(crate) fn draw_unseen(
        &self,
        space: &Space,
        random: &mut Random,
        point: &mut [f64],
    ) -> Option<u64> {
        /// Uniform draws before the walk; each fails with the share of points seen.
        const MAX_DRAWS: usize = 8;
        if self.exhausts(space) {
            return None;
        }
        for _ in 0..MAX_DRAWS {
            space.draw(random, point);
            let key = space.key(point);
            if !self.contains(key) {
                return Some(key);
            }
        }
        if !space.is_discrete() {
            // So narrow a range that its draws are ever the same number: better a repeat than none.
            return Some(space.key(point));
        }
        let Some(points) = space.cardinality() else {
            // Over 2^64 points, of which log scales favour some: draw all evenly instead.
            loop {
                space.draw_indices(random, point);
                let key = space.key(point);
                if !self.contains(key) {
                    return Some(key);
                }
            }
        };
        let mut key = random.below(points);
        while self.contains(key) {
            key = (key + 1) % points;
        }
        space.point_of_key(key, point);
        Some(key)
    }
}

/// Saved in order, so that equal sets are equal bytes.
impl From<Seen> for Vec<u64> {
    fn from(seen: Seen) -> Self {
        let mut keys: Vec<u64> = seen.keys.into_iter().collect();
        keys.sort_unstable();
        keys
    }
}

impl From<Vec<u64>> for Seen {
    fn from(keys: Vec<u64>) -> Self {
        Seen { keys: keys.into_iter().collect() }
    }
}

/// Scatters keys by one multiplication; they are hashes or small numbers already.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte) ^ self.0);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = crate::random::mix(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_of_a_small_space_is_found_once() {
        let space = Space::builder()
            .integers("i", 3, 0, 3)
            .categorical("c", ["a", "b", "c"])
            .boolean("b")
            .build()
            .unwrap();
        let points = space.cardinality().unwrap();
        assert_eq!(points, 4 * 4 * 4 * 3 * 2);
        let (mut seen, mut random) = (Seen::default(), Random::new(1));
        let mut point = vec![0.0; space.dimension()];
        for _ in 0..points {
            let key = seen.draw_unseen(&space, &mut random, &mut point).unwrap();
            assert_eq!(key, space.key(&point));
            space.check(&point).unwrap();
            assert!(!seen.contains(key));
            seen.insert(key);
        }
        assert!(seen.exhausts(&space));
        assert_eq!(seen.draw_unseen(&space, &mut random, &mut point), None);
    }
}
