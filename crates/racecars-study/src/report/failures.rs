//! Where failures happen: the part of one parameter's range that separates failed evaluations best from
//! the others, if any does so well enough to be worth telling.

use super::digest::{Digest, TrialStatus};
use super::places;
use racecars::{Axis, Space};

/// Fewer failures than this say nothing.
const LEAST: usize = 8;

/// A part of a parameter's range in which evaluations fail.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trap {
    /// The parameter.
    pub(super) parameter: usize,
    /// The part: `above 7.2`, `below 3`, `= c`.
    pub(super) part: String,
    /// The share of failures inside and elsewhere.
    pub(super) inside: f64,
    pub(super) outside: f64,
}

/// The most telling part of any parameter's range, if failures keep to it.
pub(super) fn trap(digest: &Digest) -> Option<Trap> {
    let kept = &digest.kept;
    let status = |row: usize| digest.trials[kept.order(row) as usize].status;
    let failed: Vec<bool> =
        (0..kept.rows()).map(|row| status(row) == TrialStatus::Failed).collect();
    let total = failed.iter().filter(|failed| **failed).count();
    if total < LEAST || total == failed.len() {
        return None;
    }
    let space = &digest.plan.space;
    let mut best: Option<(f64, Trap)> = None;
    let mut column: Vec<(f32, bool)> = Vec::with_capacity(failed.len());
    for parameter in 0..kept.tracked() {
        column.clear();
        column.extend(failed.iter().enumerate().map(|(row, &f)| (kept.row(row)[parameter], f)));
        column.sort_by(|a, b| a.0.total_cmp(&b.0));
        let axis = space.axis(parameter);
        let is_ordered = !matches!(axis, Axis::Unordered { .. });
        for part in parts(&column, is_ordered) {
            let inside = part.failures as f64 / part.count as f64;
            let outside =
                (total - part.failures) as f64 / (failed.len() - part.count).max(1) as f64;
            let is_telling = part.failures >= LEAST
                && inside >= 0.5
                && inside >= 3.0 * outside
                && 2 * part.failures >= total;
            // The more failures are explained, and the fewer successes are swept along, the better.
            let score = part.failures as f64 - 2.0 * (part.count - part.failures) as f64;
            if is_telling && best.as_ref().is_none_or(|(other, _)| score > *other) {
                let part = text(space, parameter, part.side, part.place);
                best = Some((score, Trap { parameter, part, inside, outside }));
            }
        }
    }
    best.map(|(_, trap)| trap)
}

#[derive(Clone, Copy)]
enum Side {
    Below,
    Above,
    Only,
}

struct Part {
    side: Side,
    place: f32,
    count: usize,
    failures: usize,
}

/// The parts to look at: below and above each cut, or each value alone.
fn parts(column: &[(f32, bool)], is_ordered: bool) -> Vec<Part> {
    let all = column.iter().filter(|(_, failed)| *failed).count();
    let mut parts = Vec::new();
    let (mut below, mut failures) = (0, 0);
    for group in column.chunk_by(|a, b| a.0 == b.0) {
        let here = group.iter().filter(|(_, failed)| *failed).count();
        if !is_ordered {
            let (place, count) = (group[0].0, group.len());
            parts.push(Part { side: Side::Only, place, count, failures: here });
            continue;
        }
        below += group.len();
        failures += here;
        if let Some(next) = column.get(below) {
            let last = group[0].0;
            parts.push(Part { side: Side::Below, place: next.0, count: below, failures });
            let (count, failures) = (column.len() - below, all - failures);
            parts.push(Part { side: Side::Above, place: last, count, failures });
        }
    }
    parts
}

fn text(space: &Space, parameter: usize, side: Side, place: f32) -> String {
    let code = places::code(space.axis(parameter), f64::from(place));
    let value = space.decode_coordinate(parameter, code);
    let value = match value.as_real() {
        Some(x) if value.as_integer().is_none() => format!("{}", super::data::digits(x, 3)),
        _ => value.to_string(),
    };
    match side {
        Side::Below => format!("below {value}"),
        Side::Above => format!("above {value}"),
        Side::Only => format!("= {value}"),
    }
}
