//! Where the negatives differ from x+, one bit per negative and coordinate. From step to step few of these bits change,
//! while reading the points to find the differences again would be most of the cost of a step in a discrete space. And a
//! function that reads two points, for all others.

use crate::random::Random;
use crate::sample::Sample;

/// The differences of each negative from one positive point. Empty until it is [built](DifferenceTable::build).
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DifferenceTable {
    /// Words per negative, and per coordinate. Both are 0 if the table is empty.
    row_words: usize,
    column_words: usize,
    /// For each negative, the coordinates in which it differs.
    rows: Vec<u64>,
    /// The same bits: for each coordinate, the negatives that differ there.
    columns: Vec<u64>,
}

impl DifferenceTable {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.row_words == 0
    }

    /// Empties the table, where keeping it up to date would take longer than building it again.
    fn clear(&mut self) {
        (self.row_words, self.column_words) = (0, 0);
        self.rows.clear();
        self.columns.clear();
    }

    /// Compares all negatives with x+.
    pub(crate) fn build(&mut self, positive: &[f64], negatives: &[Sample]) {
        self.clear();
        (self.row_words, self.column_words) = (words(positive.len()), words(negatives.len()));
        self.rows.resize(self.row_words * negatives.len(), 0);
        self.columns.resize(self.column_words * positive.len(), 0);
        for (place, negative) in negatives.iter().enumerate() {
            self.set_negative(positive, place, &negative.point);
        }
    }

    /// Compares one negative, which is new, with x+.
    pub(crate) fn set_negative(&mut self, positive: &[f64], place: usize, negative: &[f64]) {
        let DifferenceTable { row_words, column_words, rows, columns } = self;
        if *row_words == 0 {
            return;
        }
        let row = &mut rows[place * *row_words..][..*row_words];
        let (column_word, flip) = (place / 64, 1 << (place % 64));
        for (part, word) in row.iter_mut().enumerate() {
            for bit in bits(std::mem::take(word)) {
                columns[(64 * part + bit) * *column_words + column_word] ^= flip;
            }
        }
        all_differences(positive, negative, |index| {
            row[index / 64] |= 1 << (index % 64);
            columns[index * *column_words + column_word] ^= flip;
            true
        });
    }

    /// Replaces x+ by another point.
    pub(crate) fn set_positive(&mut self, old: &[f64], new: &[f64], negatives: &[Sample]) {
        /// A new x+ that differs in more coordinates than this share has the table built again.
        const SHARE_UPDATED: usize = 8;
        let DifferenceTable { row_words, column_words, rows, columns } = self;
        if *row_words == 0 {
            return;
        }
        let mut changes = 0;
        let are_few = all_differences(old, new, |index| {
            let (word, bit) = (index / 64, index % 64);
            let column = &mut columns[index * *column_words..][..*column_words];
            column.fill(0);
            for (place, negative) in negatives.iter().enumerate() {
                let differs = u64::from(negative.point[index] != new[index]);
                let row = &mut rows[place * *row_words + word];
                *row = *row & !(1 << bit) | differs << bit;
                column[place / 64] |= differs << (place % 64);
            }
            changes += 1;
            SHARE_UPDATED * changes <= new.len()
        });
        if !are_few {
            self.clear();
        }
    }

    /// The negatives from `64 * word` on that differ from x+ in a coordinate, as bits.
    #[inline]
    pub(super) fn differing(&self, index: usize, word: usize) -> u64 {
        self.columns[index * self.column_words + word]
    }

    /// Whether a negative differs from x+ in a coordinate.
    #[inline]
    pub(super) fn differs(&self, negative: usize, index: usize) -> bool {
        self.rows[negative * self.row_words + index / 64] >> (index % 64) & 1 != 0
    }

    /// Words per negative.
    #[inline]
    pub(super) fn row_words(&self) -> usize {
        self.row_words
    }

    /// The coordinates in which a negative differs from x+, as bits.
    #[inline]
    pub(super) fn row(&self, negative: usize) -> &[u64] {
        &self.rows[negative * self.row_words..][..self.row_words]
    }

    /// Draws a coordinate in which a negative differs from x+; `None` if there is none.
    #[inline]
    pub(super) fn draw_difference(&self, negative: usize, random: &mut Random) -> Option<usize> {
        let row = self.row(negative);
        if let &[word] = row {
            return (word != 0).then(|| draw_bit(word, random));
        }
        let count: u32 = row.iter().map(|word| word.count_ones()).sum();
        if count == 0 {
            return None;
        }
        let mut place = random.index(count as usize);
        for (part, &word) in row.iter().enumerate() {
            let here = word.count_ones() as usize;
            if place < here {
                return Some(64 * part + nth_bit(word, place));
            }
            place -= here;
        }
        None
    }

    /// Like [`all_differences`] of x+ and a negative.
    #[inline]
    pub(super) fn differences(&self, negative: usize, found: impl FnMut(usize) -> bool) -> bool {
        let row = self.row(negative).iter().enumerate();
        row.flat_map(|(place, &word)| bits(word).map(move |bit| 64 * place + bit)).all(found)
    }
}

/// The number of words that have this many bits.
#[inline]
pub(super) fn words(count: usize) -> usize {
    count.div_ceil(64)
}

/// The positions of the bits that are set, ascending.
#[inline]
pub(super) fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(bit)
    })
}

/// Draws the position of a set bit, of which there must be one. A single one takes no random number.
#[inline]
pub(super) fn draw_bit(word: u64, random: &mut Random) -> usize {
    let others = word & (word - 1);
    if others == 0 {
        return word.trailing_zeros() as usize;
    }
    if others & (others - 1) == 0 {
        return if random.coin() { word } else { others }.trailing_zeros() as usize;
    }
    nth_bit(word, random.index(word.count_ones() as usize))
}

/// The position of the set bit that has `place` set bits below it.
#[inline]
fn nth_bit(mut word: u64, place: usize) -> usize {
    (0..place).for_each(|_| word &= word - 1);
    word.trailing_zeros() as usize
}

/// Calls `found` with each coordinate in which two points differ, in ascending order, until it returns
/// false. Returns whether it never did. Equal blocks are skipped at the speed of reading them.
#[inline]
pub(crate) fn all_differences(a: &[f64], b: &[f64], mut found: impl FnMut(usize) -> bool) -> bool {
    const BLOCK: usize = 8;
    let (a_blocks, a_rest) = a.as_chunks::<BLOCK>();
    let (b_blocks, b_rest) = b.as_chunks::<BLOCK>();
    for (block, (a, b)) in a_blocks.iter().zip(b_blocks).enumerate() {
        let differ = (0..BLOCK).fold(false, |differ, i| differ | (a[i] != b[i]));
        if differ && !(0..BLOCK).all(|i| a[i] == b[i] || found(block * BLOCK + i)) {
            return false;
        }
    }
    let rest = a.len() - a_rest.len();
    (0..a_rest.len()).all(|i| a_rest[i] == b_rest[i] || found(rest + i))
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
                assert!(found.iter().all(|&index| table.differing(index, 0) >> i & 1 == 1));
            }
        }
    }

    #[test]
    fn differences_are_found_in_order() {
        let mut random = Random::new(9);
        for len in 0..40 {
            let a: Vec<f64> = (0..len).map(|_| random.index(3) as f64).collect();
            let b: Vec<f64> =
                a.iter().map(|x| if random.chance(0.2) { x + 1.0 } else { *x }).collect();
            let expected: Vec<usize> = (0..len).filter(|&i| a[i] != b[i]).collect();
            let mut found = Vec::new();
            let wanted = random.index(6);
            let are_all = all_differences(&a, &b, |index| {
                found.push(index);
                found.len() < wanted
            });
            assert_eq!(are_all, expected.is_empty() || expected.len() < wanted);
            assert_eq!(found, expected[..expected.len().min(wanted.max(1))]);
        }
    }
}
