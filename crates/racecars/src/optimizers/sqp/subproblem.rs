//! The quadratic program of a step: the least of c'd + d'Bd / 2 + the sum of u_j max(0, a_j'd + b_j).
//!
//! A limit u_j is what a violation of row j costs; an infinite one makes the row a constraint that is kept. The
//! dual is a quadratic program in multipliers from 0 to u_j, and is solved by the dual method of Goldfarb and
//! Idnani ("A numerically stable dual method for solving strictly convex quadratic programs", 1983), with
//! upper ends of the multipliers besides the lower ones, so that there is always a solution.

use crate::linalg::cholesky;
use crate::linalg::product::{add_scaled, dot, squared};
use crate::linalg::triangular::Lower;

/// A row is violated if it is by this much, relative to its length in the metric of B.
const TOLERANCE: f64 = 1e-10;
/// A row depends on the free ones if this share of its length is left beside them.
const DEPENDENT: f64 = 1e-11;
/// A share of the diagonal is added to it, against rounding.
const RIDGE: f64 = 1e-14;

/// A row a'd + b, and the limit of its multiplier.
pub(super) struct Row<'a> {
    pub(super) slopes: RowSlopes<'a>,
    pub(super) offset: f64,
    pub(super) limit: f64,
}

pub(super) enum RowSlopes<'a> {
    Dense(&'a [f64]),
    /// The sign of a coordinate alone: a bound.
    Coordinate(usize, f64),
}

/// A step, and the multipliers of the rows.
pub(super) struct Solution {
    pub(super) step: Vec<f64>,
    pub(super) multipliers: Vec<f64>,
}

/// The state of the dual method.
struct Dual {
    dimension: usize,
    /// w_j = L^-1 a_j of all rows, where B = L L'.
    scaled: Vec<f64>,
    /// L^-1 (c + A' lambda).
    gradient: Vec<f64>,
    offsets: Vec<f64>,
    limits: Vec<f64>,
    multipliers: Vec<f64>,
    /// The rows that are met exactly, whose multipliers are between their ends.
    free: Vec<usize>,
}

/// What ends a move of multipliers.
enum Block {
    /// The row that enters is met.
    Met,
    /// Its multiplier is at an end.
    Own,
    /// The multiplier of the free row at this place is.
    Free(usize),
}

impl Dual {
    fn row(&self, j: usize) -> &[f64] {
        &self.scaled[j * self.dimension..][..self.dimension]
    }

    /// a_j'd + b_j at the current step.
    fn residual(&self, j: usize) -> f64 {
        self.offsets[j] - dot(self.row(j), &self.gradient)
    }

    /// The row that is violated most, or whose multiplier is at its upper end and should not be, and the
    /// direction in which the multiplier moves.
    fn entering(&self) -> Option<(usize, f64)> {
        let mut found = (TOLERANCE, None);
        for j in (0..self.offsets.len()).filter(|j| !self.free.contains(j)) {
            let length = squared(self.row(j)).sqrt();
            if length <= 0.0 {
                continue;
            }
            let relative = self.residual(j) / length;
            let (score, sign) = match self.multipliers[j] < self.limits[j] {
                true => (relative, 1.0),
                false => (-relative, -1.0),
            };
            if score > found.0 {
                found = (score, Some((j, sign)));
            }
        }
        found.1
    }

    /// How the multipliers of the free rows change, so that these stay met, while that of row j grows by one;
    /// and the curvature along that.
    fn response(&self, j: usize) -> Option<(Vec<f64>, f64)> {
        let count = self.free.len();
        let own = squared(self.row(j));
        let mut matrix = Lower::identity(count);
        for (p, &k) in self.free.iter().enumerate() {
            for (q, &l) in self.free[..=p].iter().enumerate() {
                matrix.row_mut(p)[q] = dot(self.row(k), self.row(l));
            }
            matrix.row_mut(p)[p] *= 1.0 + RIDGE;
        }
        let mut factor = Lower::identity(count);
        cholesky::factorize(&matrix, &mut factor).ok()?;
        let products: Vec<f64> = self.free.iter().map(|&k| dot(self.row(k), self.row(j))).collect();
        let mut response = products.clone();
        factor.solve(&mut response);
        factor.solve_transposed(&mut response);
        let curvature = own - dot(&products, &response);
        response.iter_mut().for_each(|x| *x = -*x);
        Some((response, if curvature > DEPENDENT * own { curvature } else { 0.0 }))
    }

    /// Moves the multiplier of row j until the row is met, or the multiplier is at an end. `false` if that is
    /// not possible.
    fn enter(&mut self, j: usize, sign: f64) -> bool {
        for _ in 0..2 * self.dimension + 5 {
            let Some((response, curvature)) = self.response(j) else { return false };
            let own =
                if sign > 0.0 { self.limits[j] - self.multipliers[j] } else { self.multipliers[j] };
            let (mut length, mut block) = (own, Block::Own);
            let full = self.residual(j).abs() / curvature;
            if full < length {
                (length, block) = (full, Block::Met);
            }
            for (place, &k) in self.free.iter().enumerate() {
                let change = sign * response[place];
                let room = match change {
                    change if change < 0.0 => self.multipliers[k] / -change,
                    change if change > 0.0 => (self.limits[k] - self.multipliers[k]) / change,
                    _ => continue,
                };
                if room < length {
                    (length, block) = (room, Block::Free(place));
                }
            }
            if !length.is_finite() {
                return false;
            }
            let Dual { dimension: n, scaled, gradient, multipliers, free, limits, .. } = self;
            let rows = free.iter().copied().zip(response.iter().copied()).chain([(j, 1.0)]);
            for (k, change) in rows {
                let by = sign * length * change;
                multipliers[k] = (multipliers[k] + by).clamp(0.0, limits[k]);
                add_scaled(gradient, by, &scaled[k * *n..][..*n]);
            }
            match block {
                Block::Met => {
                    free.push(j);
                    return true;
                }
                Block::Own => {
                    multipliers[j] = if sign > 0.0 { limits[j] } else { 0.0 };
                    return true;
                }
                Block::Free(place) => {
                    let k = free.remove(place);
                    let is_lower = sign * response[place] < 0.0;
                    multipliers[k] = if is_lower { 0.0 } else { limits[k] };
                }
            }
        }
        false
    }
}

/// Solves the program, given the Cholesky factor of B and the gradient c.
pub(super) fn solve(factor: &Lower, gradient: &[f64], rows: &[Row<'_>]) -> Solution {
    let n = gradient.len();
    let mut scaled = vec![0.0; n * rows.len()];
    for (row, scaled) in rows.iter().zip(scaled.chunks_exact_mut(n)) {
        match row.slopes {
            RowSlopes::Dense(slopes) => scaled.copy_from_slice(slopes),
            RowSlopes::Coordinate(i, sign) => scaled[i] = sign,
        }
        factor.solve(scaled);
    }
    let mut start = gradient.to_vec();
    factor.solve(&mut start);
    let mut dual = Dual {
        dimension: n,
        scaled,
        gradient: start,
        offsets: rows.iter().map(|row| row.offset).collect(),
        limits: rows.iter().map(|row| row.limit).collect(),
        multipliers: vec![0.0; rows.len()],
        free: Vec::new(),
    };
    for _ in 0..50 * (n + 5) {
        let Some((j, sign)) = dual.entering() else { break };
        if !dual.enter(j, sign) {
            break;
        }
    }
    let mut step = dual.gradient;
    factor.solve_transposed(&mut step);
    step.iter_mut().for_each(|d| *d = -*d);
    Solution { step, multipliers: dual.multipliers }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn value(matrix: &Lower, gradient: &[f64], rows: &[Row<'_>], step: &[f64]) -> f64 {
        let row_value = |row: &Row<'_>| match row.slopes {
            RowSlopes::Dense(slopes) => dot(slopes, step) + row.offset,
            RowSlopes::Coordinate(i, sign) => sign * step[i] + row.offset,
        };
        let cost = |row: &Row<'_>| match row_value(row) {
            by if by <= 1e-9 => 0.0,
            by => row.limit * by,
        };
        dot(gradient, step) + 0.5 * matrix.quadratic_form(step) + rows.iter().map(cost).sum::<f64>()
    }

    #[test]
    fn no_point_nearby_is_better() {
        let mut random = Random::new(7);
        for trial in 0..200 {
            let n = 1 + trial % 5;
            let mut factor = Lower::identity(n);
            for i in 0..n {
                factor.row_mut(i).iter_mut().for_each(|x| *x = random.normal());
                factor.row_mut(i)[i] = 0.1 + random.unit();
            }
            let mut matrix = Lower::identity(n);
            for i in 0..n {
                for j in 0..=i {
                    matrix.row_mut(i)[j] = dot(&factor.row(i)[..=j], factor.row(j));
                }
            }
            let gradient: Vec<f64> = (0..n).map(|_| random.normal()).collect();
            let slopes: Vec<Vec<f64>> =
                (0..2 * n).map(|_| (0..n).map(|_| random.normal()).collect()).collect();
            let mut rows: Vec<Row<'_>> = (slopes.iter())
                .map(|slopes| Row {
                    slopes: RowSlopes::Dense(slopes),
                    offset: random.normal(),
                    limit: 3.0 * random.unit(),
                })
                .collect();
            for i in 0..n {
                for sign in [1.0, -1.0] {
                    let slopes = RowSlopes::Coordinate(i, sign);
                    rows.push(Row { slopes, offset: -0.5, limit: f64::INFINITY });
                }
            }
            let Solution { mut step, .. } = solve(&factor, &gradient, &rows);
            assert!(step.iter().all(|d| d.abs() < 0.5 + 1e-7), "bounds are kept: {step:?}");
            step.iter_mut().for_each(|d| *d = d.clamp(-0.5, 0.5));
            let best = value(&matrix, &gradient, &rows, &step);
            for _ in 0..100 {
                let other: Vec<f64> =
                    step.iter().map(|x| (x + 1e-3 * random.normal()).clamp(-0.5, 0.5)).collect();
                let there = value(&matrix, &gradient, &rows, &other);
                assert!(there > best - 1e-6, "{there} {best}");
            }
        }
    }
}
