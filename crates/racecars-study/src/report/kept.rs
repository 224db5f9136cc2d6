//! An even sample of the points of a study, in bounded memory: every trial at first, and half of them
//! each time the room is full. It goes by blocks of trials that came one after the other, since these
//! are relatives and tell most when compared.

/// How many places are kept in all.
const ROOM: usize = 16 << 20;
/// How many trials in a row are kept or dropped together.
const BLOCK: u64 = 32;
/// How many parameters are followed; no page shows more.
pub(super) const TRACKED: usize = 4096;

/// The sample: rows of places, in the order told.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    tracked: usize,
    /// Every so manieth block is kept.
    stride: u64,
    /// The place in the order told of each row.
    orders: Vec<u64>,
    places: Vec<f32>,
}

impl Kept {
    pub(super) fn new(dimension: usize) -> Self {
        let tracked = dimension.min(TRACKED);
        Kept { tracked, stride: 1, orders: Vec::new(), places: Vec::new() }
    }

    /// How many parameters are followed.
    pub(super) fn tracked(&self) -> usize {
        self.tracked
    }

    pub(super) fn rows(&self) -> usize {
        self.orders.len()
    }

    /// The order of a row.
    pub(super) fn order(&self, row: usize) -> u64 {
        self.orders[row]
    }

    pub(super) fn row(&self, row: usize) -> &[f32] {
        &self.places[row * self.tracked..(row + 1) * self.tracked]
    }

    /// Whether the trial told at this place in the order is to be kept.
    pub(super) fn wants(&self, order: u64) -> bool {
        (order / BLOCK).is_multiple_of(self.stride)
    }

    pub(super) fn push(&mut self, order: u64, places: impl Iterator<Item = f32>) {
        self.orders.push(order);
        self.places.extend(places.take(self.tracked));
        // A row that came short would shift all after it.
        self.places.resize(self.orders.len() * self.tracked, 0.5);
        if self.places.len() > ROOM {
            self.thin();
        }
    }

    fn thin(&mut self) {
        self.stride *= 2;
        let mut rows = 0;
        for row in 0..self.orders.len() {
            if self.wants(self.orders[row]) {
                self.orders[rows] = self.orders[row];
                let from = row * self.tracked;
                self.places.copy_within(from..from + self.tracked, rows * self.tracked);
                rows += 1;
            }
        }
        self.orders.truncate(rows);
        self.places.truncate(rows * self.tracked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_stays_even_and_within_its_room() {
        let mut kept = Kept::new(4000);
        for order in 0..30_000u64 {
            if kept.wants(order) {
                kept.push(order, (0..4000).map(|i| (order + i) as f32));
            }
        }
        assert!(kept.places.len() <= ROOM && kept.rows() > 2000);
        for row in 0..kept.rows() {
            let (block, within) = (row as u64 / BLOCK, row as u64 % BLOCK);
            assert_eq!(kept.order(row), block * kept.stride * BLOCK + within);
            assert_eq!(kept.row(row)[7], (kept.order(row) + 7) as f32);
        }
    }
}
