//! The set of points already proposed or told, in spaces with discrete coordinates, so that no point
//! is proposed twice.

use super::Space;
use crate::random::Random;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// The keys of the points seen. Always empty in continuous spaces, where points do not repeat.
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

    /// Checks the invariants of a deserialized set: all keys belong to points of the space, so that their
    /// number tells when the space is exhausted.
    pub(crate) fn is_sound(&self, space: &Space) -> bool {
        match space.box_cardinality() {
            Some(points) => self.keys.iter().all(|&key| key < points),
            None => space.can_repeat() || self.keys.is_empty(),
        }
    }

    /// Draws an unseen point and returns its key; `None` if the space is exhausted.
    ///
    /// After a few uniform draws, it steps through the keys from a random one on. That takes at most as
    /// many steps as there are seen points.
    pub(crate) fn draw_unseen(
        &self,
        space: &Space,
        random: &mut Random,
        point: &mut [f64],
    ) -> Option<u64> {
        /// Uniform draws before stepping through the keys. Each fails with a probability equal to the
        /// share of points seen.
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
            // The continuous ranges are so narrow that draws repeat: a repeated point is accepted.
            return Some(space.key(point));
        }
        if space.has_rules() {
            return self.draw_admitted(space, random, point);
        }
        let Some(points) = space.cardinality() else {
            // More than 2^64 points. Log scales favour some of them, so indices are drawn uniformly.
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
        debug_assert_eq!(space.key(point), key, "a key and its point correspond");
        Some(key)
    }

    /// [`Seen::draw_unseen`] in a discrete space with rules.
    fn draw_admitted(&self, space: &Space, random: &mut Random, point: &mut [f64]) -> Option<u64> {
        /// Draws until a space that was not counted is taken to be exhausted.
        const MAX_DRAWS: usize = 10_000;
        /// The same, where constraints are functions, which may be slow.
        const MAX_DRAWS_BY_FUNCTIONS: usize = 200;
        let has_functions = space.functions().next().is_some();
        let draws = if has_functions { MAX_DRAWS_BY_FUNCTIONS } else { MAX_DRAWS };
        let Some(keys) = space.admitted_keys() else {
            return (0..draws).find_map(|_| {
                space.draw(random, point);
                let key = space.key(point);
                (!self.contains(key)).then_some(key)
            });
        };
        let first = random.below(keys.len() as u64) as usize;
        let (before, after) = keys.split_at(first);
        let key = *after.iter().chain(before).find(|&&key| !self.contains(key))?;
        space.point_of_key(key, point);
        Some(key)
    }
}

/// Saved in ascending order, so that equal sets have equal bytes.
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

/// A hasher for keys, which are hashes or small numbers already.
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
    fn every_point_of_a_small_space_is_drawn_once() {
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
