//! A scan along the coordinates: where they do not interact, it finds those that are in the wrong valley.
//!
//! Along each coordinate in turn the objective is evaluated from bound to bound, more densely beside the best point,
//! since it is most often the neighbouring valley that is better. Where the values have a minimum, parabolas narrow
//! it down, fewer minima every time.
//!
//! While a line waits for outcomes, lines along the coordinates that are left begin. A further point
//! combines what the finished ones have found.

use crate::error::Result;
use crate::optimizers::ledger::Ledger;
use crate::optimizers::saved::ID_HEADROOM;
use crate::optimizers::shell::{Evaluated, Proposal, Search, Tools};
use crate::random::Random;
use crate::space::{Interval, Space};
use serde::{Deserialize, Serialize};
use std::mem::take;

/// The number of positions along a coordinate.
const POSITIONS: usize = 40;
/// Their distances from the best point grow with this power.
const DENSITY: f64 = 1.5;
/// How many minima are narrowed down, one time after another.
const MINIMA: [usize; 4] = [3, 3, 2, 1];
/// A vertex of a parabola closer to its middle than this part of the distance to the neighbours is no new point.
const MIN_MOVE: f64 = 1e-3;

/// A member of portfolios, which tell it every new best point. It has nothing to propose while all lines wait for
/// outcomes, and after the last one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScanSearch {
    /// The coordinates left.
    order: Vec<usize>,
    /// The lines that are not finished, by ascending number.
    lines: Vec<Line>,
    /// The better positions that finished lines found, and whether one is new.
    found: Vec<(usize, f64)>,
    has_new: bool,
    /// The number of lines so far.
    number: u64,
}

/// The positions along one coordinate from a base point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    number: u64,
    index: usize,
    base: Box<[f64]>,
    value: f64,
    /// Positions with their values; infinite if there is no value.
    told: Vec<(f64, f64)>,
    /// The positions to evaluate now, and the number of these asked.
    wanted: Vec<f64>,
    asked: usize,
    /// The number of outcomes of these, and how often minima were narrowed down.
    back: usize,
    times: usize,
}

/// The data of a pending candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// From 1 on; 0 for a point that combines several.
    line: u64,
    at: f64,
}

impl ScanSearch {
    pub(crate) const NAME: &'static str = "scan";

    /// The space must be continuous.
    pub(super) fn new(space: &Space, random: &mut Random) -> Self {
        let mut order: Vec<usize> = (0..space.dimension()).collect();
        random.shuffle(&mut order);
        ScanSearch { order, lines: Vec::new(), found: Vec::new(), has_new: false, number: 0 }
    }

    /// The greatest number of evaluations per coordinate.
    pub(super) fn cost() -> u64 {
        (POSITIONS + MINIMA.iter().sum::<usize>()) as u64
    }

    /// Writes a point to evaluate. `best` and `value` are the best point so far.
    fn next(
        &mut self,
        space: &Space,
        best: &[f64],
        value: f64,
        point: &mut [f64],
    ) -> Option<Position> {
        // With one candidate out at a time, the best point has them all.
        if take(&mut self.has_new) && self.found.iter().any(|&(index, at)| best[index] != at) {
            point.copy_from_slice(best);
            self.found.iter().for_each(|&(index, at)| point[index] = at);
            return Some(Position { line: 0, at: 0.0 });
        }
        loop {
            for line in &mut self.lines {
                if let Some(at) = line.next() {
                    point.copy_from_slice(&line.base);
                    point[line.index] = at;
                    return Some(Position { line: line.number, at });
                }
            }
            let index = self.order.pop()?;
            self.number += 1;
            self.lines.push(Line::new(self.number, space, index, best, value));
        }
    }

    /// Learns the value of a point; infinite if it has none.
    fn tell(&mut self, position: Position, value: f64) {
        let Some(place) = self.lines.iter().position(|line| line.number == position.line) else {
            return;
        };
        if !self.lines[place].tell(position.at, value) {
            let line = self.lines.remove(place);
            if let Some(at) = line.found() {
                self.found.push((line.index, at));
                self.has_new = true;
            }
        }
    }
}

impl Line {
    fn new(number: u64, space: &Space, index: usize, base: &[f64], value: f64) -> Self {
        let (at, Interval { low, high }) = (base[index], space.axis(index).extent());
        let (down, up) = (at - low, high - at);
        let below = (POSITIONS as f64 * (down / (down + up))).round() as usize;
        let side = |count: usize, length: f64| {
            (1..=count).map(move |k| length * (k as f64 / count as f64).powf(DENSITY))
        };
        let wanted = side(below, down).map(|by| at - by);
        let wanted = wanted.chain(side(POSITIONS - below, up).map(|by| at + by));
        Line {
            number,
            index,
            base: base.into(),
            value,
            told: vec![(at, value)],
            wanted: wanted.map(|at| at.clamp(low, high)).collect(),
            asked: 0,
            back: 0,
            times: 0,
        }
    }

    fn next(&mut self) -> Option<f64> {
        let at = self.wanted.get(self.asked).copied()?;
        self.asked += 1;
        Some(at)
    }

    /// Learns a value. Returns whether there is more to do.
    fn tell(&mut self, at: f64, value: f64) -> bool {
        self.told.push((at, value));
        self.back += 1;
        if self.back < self.wanted.len() {
            return true;
        }
        self.wanted = match MINIMA.get(self.times) {
            Some(&most) => self.vertices(most),
            None => Vec::new(),
        };
        (self.asked, self.back) = (0, 0);
        self.times += 1;
        !self.wanted.is_empty()
    }

    /// The lowest position, if it is better than the base.
    fn found(&self) -> Option<f64> {
        let lowest = self.told.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        (lowest.1 < self.value).then_some(lowest.0)
    }

    /// The vertices of the parabolas through the lowest minima and their neighbours, without the valley of the base.
    fn vertices(&mut self, most: usize) -> Vec<f64> {
        self.told.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.told.dedup_by(|a, b| a.0 == b.0);
        let is_minimum = |three: &&[(f64, f64)]| {
            let [left, middle, right] = [three[0], three[1], three[2]];
            middle.1 < left.1 && middle.1 < right.1 && middle.0 != self.base[self.index]
        };
        let mut minima: Vec<&[(f64, f64)]> = self.told.windows(3).filter(is_minimum).collect();
        minima.sort_by(|a, b| a[1].1.total_cmp(&b[1].1));
        minima.truncate(most);
        minima.into_iter().map(|three| vertex([three[0], three[1], three[2]])).collect()
    }
}

/// The vertex of the parabola through three points of which the middle one is the lowest. If that is where the middle one
/// is, a point in the wider of the two gaps.
fn vertex([left, middle, right]: [(f64, f64); 3]) -> f64 {
    let (down, up) = (middle.0 - left.0, right.0 - middle.0);
    let (falling, rising) = ((middle.1 - left.1) / down, (right.1 - middle.1) / up);
    let curvature = (rising - falling) / (down + up);
    let by = -(falling + curvature * down) / (2.0 * curvature);
    let is_new = by.is_finite() && by.abs() > MIN_MOVE * down.min(up);
    match is_new {
        true => middle.0 + by.clamp(-0.9 * down, 0.9 * up),
        false if down > up => middle.0 - 0.5 * down,
        false => middle.0 + 0.5 * up,
    }
}

impl Search for ScanSearch {
    type Mark = Position;

    fn propose(&mut self, tools: &mut Tools<'_, Position>) -> Option<Proposal<Position>> {
        let space = tools.space;
        tools.beside_best(|best, value, _, point| self.next(space, best, value, point))
    }

    fn learn(
        &mut self,
        evaluated: Evaluated<Position>,
        _: &mut Tools<'_, Position>,
    ) -> Result<Option<Box<[f64]>>> {
        if let Some(position) = evaluated.asked.map(|asked| asked.mark) {
            self.tell(position, evaluated.sample.rank.value().unwrap_or(f64::INFINITY));
        }
        Ok(Some(evaluated.sample.point))
    }

    fn is_sound(&self, space: &Space, _: &Ledger<Position>) -> Result<bool> {
        let n = space.dimension();
        let is_line = |line: &Line| {
            let is_position = |at: &f64| space.axis(line.index).contains(*at);
            line.index < n
                && line.number <= self.number
                && space.check(&line.base).is_ok()
                && line.value.is_finite()
                && line.told.iter().all(|(at, value)| is_position(at) && !value.is_nan())
                && line.told.len() as u64 <= Self::cost() + 1
                && line.wanted.len() <= POSITIONS
                && line.wanted.iter().all(is_position)
                && line.asked <= line.wanted.len()
                && line.back <= line.asked
                && line.times <= MINIMA.len()
        };
        Ok(self.order.len() <= n
            && self.order.iter().all(|&index| index < n)
            && self.found.len() <= n
            && self.found.iter().all(|&(index, at)| index < n && space.axis(index).contains(at))
            && self.number < ID_HEADROOM
            && self.lines.len() <= n
            && self.lines.iter().all(is_line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// The best point of a scan with this many candidates out at a time, and the number of evaluations.
    fn scanned_by(out: usize, start: &[f64], objective: impl Fn(&[f64]) -> f64) -> (Vec<f64>, u64) {
        let space = Space::cube(start.len(), -5.0, 5.0).unwrap();
        let mut scan = ScanSearch::new(&space, &mut Random::new(1));
        let (mut best, mut value, mut used) = (start.to_vec(), objective(start), 0);
        let (mut point, mut pending) = (vec![0.0; start.len()], VecDeque::new());
        loop {
            let next = scan.next(&space, &best, value, &mut point);
            pending.extend(next.map(|position| (position, point.clone())));
            if next.is_some() && pending.len() < out {
                continue;
            }
            let Some((position, point)) = pending.pop_front() else { return (best, used) };
            space.check(&point).unwrap();
            used += 1;
            let new = objective(&point);
            scan.tell(position, new);
            assert_eq!(scan.is_sound(&space, &Ledger::default()), Ok(true));
            if new < value {
                (value, best) = (new, point);
            }
        }
    }

    fn scanned(start: &[f64], objective: impl Fn(&[f64]) -> f64) -> (Vec<f64>, u64) {
        scanned_by(1, start, objective)
    }

    #[test]
    fn coordinates_in_the_wrong_valley_are_found() {
        let wave = |x: &f64| x * x - 10.0 * (2.0 * std::f64::consts::PI * x).cos();
        let start = [0.0, 0.995, -1.99, 2.985, 0.0];
        for out in [1, 2, 7, 300] {
            let (best, used) =
                scanned_by(out, &start, |x| x.iter().map(|x| wave(&(x - 0.3))).sum());
            assert!(best.iter().all(|x| (x - 0.3).abs() < 0.1), "{out} {best:?}");
            let found = if out == 1 { 0 } else { 5 };
            assert!(used <= 5 * ScanSearch::cost() + found, "{out} {used}");
        }
    }

    #[test]
    fn the_widest_bounds_are_kept() {
        const WIDEST: f64 = f64::MAX / 2.0;
        let space = Space::cube(2, -WIDEST, WIDEST).unwrap();
        let mut point = vec![0.0; 2];
        for at in [-WIDEST, -1.0, WIDEST] {
            let mut scan = ScanSearch::new(&space, &mut Random::new(1));
            while let Some(position) = scan.next(&space, &[at; 2], 1.0, &mut point) {
                space.check(&point).unwrap();
                scan.tell(position, (point[0] * 1e-300).sin() + (point[1] * 1e-307).cos());
                assert_eq!(scan.is_sound(&space, &Ledger::default()), Ok(true));
            }
        }
    }

    #[test]
    fn it_ends_at_bounds_on_plateaus_and_without_values() {
        assert_eq!(scanned(&[-5.0, 5.0], |x| x.iter().sum()).0, [-5.0; 2]);
        assert_eq!(scanned(&[1.0; 3], |_| 2.0).1, 3 * POSITIONS as u64);
        let only = |x: &[f64]| if x == [1.0; 2] { 0.0 } else { f64::INFINITY };
        assert_eq!(scanned(&[1.0; 2], only).1, 2 * POSITIONS as u64);
    }
}
