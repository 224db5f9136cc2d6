//! Where failures happen: the parts of parameters' ranges that separate failed evaluations from the others. One
//! is worth a warning if it does so well enough; the page lists the most telling part of each parameter.

use super::digest::{Digest, TrialStatus};
use super::places;
use racecars::{Axis, Space};
use serde::Serialize;

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

/// How many places are looked at for associations: a live page does so again and again.
const MOST_PLACES: usize = 2_000_000;
/// How many associations are listed.
const LISTED: usize = 8;
/// Twice the log-likelihood ratio that is more than the best of many cuts reaches by chance.
const TELLING: f64 = 20.0;

/// A part of a parameter's range that failures go with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Association {
    name: String,
    /// The part: `above 7.2`, `below 3`, `= c`.
    part: String,
    /// Failures and evaluations there.
    failed: usize,
    count: usize,
    /// Failures and evaluations elsewhere.
    failed_elsewhere: usize,
    count_elsewhere: usize,
    #[serde(skip)]
    score: f64,
}

/// Of each parameter the part of its range that goes with failures most, where that is no accident: the most
/// telling first. By the G-test of independence (Sokal and Rohlf, Biometry, 17.2).
pub(super) fn associations(digest: &Digest) -> Vec<Association> {
    let most = (MOST_PLACES / digest.kept.tracked().max(1)).max(LEAST);
    let Some(columns) = Columns::of(digest, most) else { return Vec::new() };
    let (space, rows) = (&digest.plan.space, columns.failed.len());
    let mut found: Vec<Association> = Vec::new();
    let share = columns.total as f64 / rows as f64;
    let score = |part: &Part| {
        let (inside, outside) = (part.failures as f64, (columns.total - part.failures) as f64);
        let (count, rest) = (part.count as f64, (rows - part.count) as f64);
        if rest == 0.0 || inside / count <= share {
            return 0.0;
        }
        let term = |seen: f64, expected: f64| {
            if seen > 0.0 { seen * (seen / expected).ln() } else { 0.0 }
        };
        2.0 * (term(inside, count * share)
            + term(count - inside, count * (1.0 - share))
            + term(outside, rest * share)
            + term(rest - outside, rest * (1.0 - share)))
    };
    columns.each(digest, |parameter, parts| {
        let scored = parts.into_iter().map(|part| (score(&part), part));
        let best = scored.max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((score, part)) = best.filter(|(score, _)| *score >= TELLING) else { return };
        found.push(Association {
            name: space.coordinate_name(parameter),
            part: text(space, parameter, part.side, part.place),
            failed: part.failures,
            count: part.count,
            failed_elsewhere: columns.total - part.failures,
            count_elsewhere: rows - part.count,
            score,
        });
    });
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    found.truncate(LISTED);
    found
}

/// Which of the kept trials failed.
struct Columns {
    rows: Vec<usize>,
    failed: Vec<bool>,
    total: usize,
}

impl Columns {
    /// Of at most so many trials, evenly chosen. `None` if there are too few failures to say anything, or
    /// nothing else.
    fn of(digest: &Digest, most: usize) -> Option<Columns> {
        let kept = &digest.kept;
        let status = |row: usize| digest.trials[kept.order(row) as usize].status;
        let rows: Vec<usize> =
            (0..kept.rows()).step_by(kept.rows().div_ceil(most).max(1)).collect();
        let failed: Vec<bool> =
            rows.iter().map(|&row| status(row) == TrialStatus::Failed).collect();
        let total = failed.iter().filter(|failed| **failed).count();
        (total >= LEAST && total < failed.len()).then_some(Columns { rows, failed, total })
    }

    /// Hands over the parts of each parameter's range.
    fn each(&self, digest: &Digest, mut take: impl FnMut(usize, Vec<Part>)) {
        let kept = &digest.kept;
        let mut column: Vec<(f32, bool)> = Vec::with_capacity(self.failed.len());
        for parameter in 0..kept.tracked() {
            column.clear();
            let failed = self.rows.iter().zip(&self.failed);
            column.extend(failed.map(|(&row, &failed)| (kept.row(row)[parameter], failed)));
            column.sort_by(|a, b| a.0.total_cmp(&b.0));
            let axis = digest.plan.space.axis(parameter);
            take(parameter, parts(&column, !matches!(axis, Axis::Unordered { .. })));
        }
    }
}

/// The most telling part of any parameter's range, if failures keep to it.
pub(super) fn trap(digest: &Digest) -> Option<Trap> {
    let columns = Columns::of(digest, usize::MAX)?;
    let Columns { failed, total, .. } = &columns;
    let (total, space) = (*total, &digest.plan.space);
    let mut best: Option<(f64, Trap)> = None;
    columns.each(digest, |parameter, parts| {
        for part in parts {
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
    });
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
