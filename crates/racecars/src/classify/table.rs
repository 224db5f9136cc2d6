//! Where the negatives differ from x+, one bit per negative and coordinate. From step to step few of these bits change,
//! while reading the points to find the differences again would be most of the cost of a step in a discrete space.

use crate::sample::Sample;

/// The differences of each negative from one positive point. Empty until it is [built](DifferenceTable::build).
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DifferenceTable {
    /// Words per negative; 0 if the table is empty.
    words: usize,
    /// The bits of the negatives, one after the other.
    rows: Vec<u64>,
    /// The coordinates in which at least one negative differs.
    any: Vec<u64>,
}

impl DifferenceTable {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.words == 0
    }

    /// Empties the table, where keeping it up to date would take longer than building it again.
    pub(crate) fn clear(&mut self) {
        self.words = 0;
    }

    /// Compares all negatives with x+.
    pub(crate) fn build(&mut self, positive: &[f64], negatives: &[Sample]) {
        self.words = positive.len().div_ceil(64);
        self.rows.clear();
        self.rows.resize(self.words * negatives.len(), 0);
        for (row, negative) in self.rows.chunks_exact_mut(self.words).zip(negatives) {
            compare(positive, &negative.point, row);
        }
        self.unite();
    }

    /// Compares one negative, which is new, with x+.
    pub(crate) fn set_negative(&mut self, positive: &[f64], place: usize, negative: &[f64]) {
        if self.is_empty() {
            return;
        }
        compare(positive, negative, &mut self.rows[place * self.words..][..self.words]);
        self.unite();
    }

    /// Replaces x+ by another point.
    pub(crate) fn set_positive(&mut self, old: &[f64], new: &[f64], negatives: &[Sample]) {
        /// A new x+ that differs in more coordinates than this share has the table built again.
        const SHARE_UPDATED: usize = 8;
        if self.is_empty() {
            return;
        }
        let DifferenceTable { words, rows, .. } = self;
        let mut changes = 0;
        let are_few = super::all_differences(old, new, |index| {
            let (word, bit) = (index / 64, index % 64);
            for (row, negative) in rows.chunks_exact_mut(*words).zip(negatives) {
                let differs = u64::from(negative.point[index] != new[index]);
                row[word] = row[word] & !(1 << bit) | differs << bit;
            }
            changes += 1;
            SHARE_UPDATED * changes <= new.len()
        });
        match are_few {
            true => self.unite(),
            false => self.clear(),
        }
    }

    /// Whether any negative differs from x+ in a coordinate.
    #[inline]
    pub(super) fn any_differs(&self, index: usize) -> bool {
        self.any[index / 64] >> (index % 64) & 1 != 0
    }

    /// Whether a negative differs from x+ in a coordinate.
    #[inline]
    pub(super) fn differs(&self, negative: usize, index: usize) -> bool {
        self.rows[negative * self.words + index / 64] >> (index % 64) & 1 != 0
    }

    /// Like [`all_differences`](super::all_differences) of x+ and a negative.
    #[inline]
    pub(super) fn differences(
        &self,
        negative: usize,
        mut found: impl FnMut(usize) -> bool,
    ) -> bool {
        let row = &self.rows[negative * self.words..][..self.words];
        for (place, &word) in row.iter().enumerate() {
            let mut left = word;
            while left != 0 {
                if !found(64 * place + left.trailing_zeros() as usize) {
                    return false;
                }
                left &= left - 1;
            }
        }
        true
    }

    fn unite(&mut self) {
        self.any.clear();
        self.any.resize(self.words, 0);
        for row in self.rows.chunks_exact(self.words) {
            self.any.iter_mut().zip(row).for_each(|(any, bits)| *any |= bits);
        }
    }
}

/// Sets the bits of the coordinates in which two points differ.
fn compare(a: &[f64], b: &[f64], bits: &mut [u64]) {
    for ((word, a), b) in bits.iter_mut().zip(a.chunks(64)).zip(b.chunks(64)) {
        let pairs = a.iter().zip(b).enumerate();
        *word = pairs.fold(0, |word, (bit, (a, b))| word | u64::from(a != b) << bit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use crate::random::Random;

    #[test]
    fn a_table_that_is_kept_up_to_date_equals_one_that_is_built_again() {
        let mut random = Random::new(1);
        for dimension in [1, 7, 64, 65, 200] {
            let mut draw = |from: Option<&[f64]>| -> Box<[f64]> {
                let changed = if from.is_some() { 0.02 } else { 1.0 };
                let mut point: Box<[f64]> = from.map_or(vec![0.0; dimension].into(), Into::into);
                for x in &mut point {
                    if random.chance(changed) {
                        *x = random.index(3) as f64;
                    }
                }
                point
            };
            let mut positive = draw(None);
            let sample = |point| Sample { point, rank: Outcome::from(0.0).rank(), key: 0 };
            let mut negatives: Vec<Sample> = (0..9).map(|_| sample(draw(None))).collect();
            let mut table = DifferenceTable::default();
            for step in 0..60 {
                if table.is_empty() {
                    table.build(&positive, &negatives);
                }
                let point = draw(Some(&positive));
                if step % 3 == 0 {
                    let old = std::mem::replace(&mut positive, point);
                    table.set_positive(&old, &positive, &negatives);
                } else {
                    let place = step % negatives.len();
                    negatives[place].point = point;
                    table.set_negative(&positive, place, &negatives[place].point);
                }
                let mut expected = DifferenceTable::default();
                expected.build(&positive, &negatives);
                assert!(table.is_empty() || table == expected);
            }
            for (i, negative) in negatives.iter().enumerate() {
                table.build(&positive, &negatives);
                let mut found = Vec::new();
                table.differences(i, |index| {
                    found.push(index);
                    true
                });
                let differs = |&index: &usize| negative.point[index] != positive[index];
                assert!(found.iter().copied().eq((0..dimension).filter(differs)));
                assert!(found.iter().all(|&index| table.differs(i, index)));
                assert!(found.iter().all(|&index| table.any_differs(index)));
            }
        }
    }
}
