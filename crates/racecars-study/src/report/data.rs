//! What the page is given: everything that it draws, thinned so that it stays small whatever the size
//! of the study.

use super::digest::{Digest, Failures, TrialStatus};
use super::failures::{self, Association};
use super::importance::{Importance, Values, importance};
use super::places::{self, Range};
use super::regions::{self, Region};
use super::reproduce;
use super::timeline::{Timeline, timeline};
use super::warnings::{self, Warning, warnings};
use crate::known::Known;
use crate::noise::Recommended;
use crate::outcome::value_and_violation;
use racecars::space::{Entry, Structure};
use racecars::{Portfolio, Rank};
use serde::Serialize;
use serde_json::{Value, json};

/// How many parameters the page has, by importance.
const PARAMETERS: usize = 500;
/// How many evaluations the page has, and how many places of theirs.
const ROWS: usize = 3000;
const PLACES: usize = 400_000;
/// How many of the best tenth are drawn.
const BEST: usize = 250;
/// How many bytes the table of trials has before they are encoded, and how many it has together with the places;
/// how many parameters it has by importance, and how many of the best are in it in any case.
const TABLE: usize = 800_000;
const TABLE_AND_PLACES: usize = 1_200_000;
const TABLE_PARAMETERS: usize = 20;
const TABLE_BEST: usize = 1000;
/// How many improvements, and how many pieces of time for failures.
const IMPROVEMENTS: usize = 1000;
const PIECES: usize = 60;

/// The data of a page.
#[derive(Debug, Default, Serialize)]
pub(super) struct Data {
    generated: u64,
    study: Value,
    state: Value,
    best: Option<Value>,
    recommended: Option<Value>,
    warnings: Vec<Warning>,
    parameters: Vec<Parameter>,
    importance: Value,
    sample: Sample,
    table: Table,
    improvements: Vec<(u64, f64, f64, Option<f64>)>,
    known: Option<Value>,
    region: Value,
    portfolio: Option<Portfolio>,
    failures: Value,
    timeline: Timeline,
}

#[derive(Debug, Serialize)]
struct Parameter {
    name: String,
    #[serde(flatten)]
    range: Range,
    importance: Option<f64>,
    /// Whether it can be said to have little effect or none.
    idle: bool,
    /// Where the best point stands.
    best: Option<f32>,
}

/// Evaluations with their points: those of the best tenth, and an even choice of all.
#[derive(Debug, Default, Serialize)]
struct Sample {
    trial: Vec<u64>,
    order: Vec<u64>,
    time: Vec<f64>,
    value: Vec<Option<f64>>,
    /// 0 for a value, 1 for an infeasible point, 2 for a failure.
    status: Vec<u8>,
    /// The distance of the value to the best.
    gap: Vec<Option<f64>>,
    /// Whether it is drawn among the best tenth.
    tenth: Vec<u8>,
    /// The places, parameter by parameter.
    places: String,
}

/// The trials as a table, in the order told: columns in base64, of 32-bit numbers unless said otherwise. Places
/// are finer than in the sample, since the table shows the digits.
#[derive(Debug, Default, Serialize)]
struct Table {
    rows: usize,
    /// How many parameters, of the first on the page.
    parameters: usize,
    trial: String,
    value: String,
    /// None where nothing is infeasible.
    violation: String,
    seconds: String,
    /// Bytes.
    status: String,
    /// The places, parameter by parameter.
    places: String,
}

impl Data {
    /// The page's data of a study, or of one that has not begun.
    pub(super) fn new(digest: Option<&Digest>, name: &str, now: u64) -> Data {
        let Some(digest) = digest else {
            return Data {
                generated: now,
                study: json!({ "name": name, "begun": false }),
                state: json!({ "state": "waiting", "told": 0 }),
                ..Data::default()
            };
        };
        let importance = measure(digest);
        let shown = shown(digest, &importance);
        let timeline = timeline(digest);
        Data {
            generated: now,
            study: study(digest),
            state: state(digest),
            best: best(digest),
            recommended: recommended(digest),
            warnings: warnings(digest, &importance, timeline.busy),
            parameters: parameters(digest, &importance, &shown),
            importance: json!({
                "possible": !importance.shares.is_empty(),
                "explained": importance.explained(),
                "used": importance.used,
                "parameters": digest.plan.space.dimension(),
            }),
            sample: sample(digest, &shown),
            table: table(digest, &shown),
            improvements: improvements(digest),
            known: known(digest),
            region: region(digest, &shown),
            portfolio: digest.replay.portfolio(),
            failures: failures(digest),
            timeline,
        }
    }
}

/// A number with this many significant digits.
pub(super) fn digits(x: f64, count: usize) -> f64 {
    format!("{x:.*e}", count.saturating_sub(1)).parse().unwrap_or(x)
}

fn study(digest: &Digest) -> Value {
    let plan = &digest.plan;
    json!({
        "name": digest.name,
        "begun": true,
        "algorithm": plan.algorithm,
        "seed": plan.seed,
        "budget": plan.limit(),
        "direction": plan.direction,
        // Without a program the values are told, and no source of them can be named.
        "objective": (!plan.command.is_empty()).then_some(&plan.objective),
        "constraints": plan.constraints,
        "repeat": plan.repeat,
        "deterministic": plan.deterministic,
        "jobs": plan.jobs,
        "started": plan.started,
        "dimension": digest.plan.space.dimension(),
        "version": env!("CARGO_PKG_VERSION"),
        "base": plan.base,
        "run": reproduce::run(plan, &digest.name),
        "continue": reproduce::go_on(plan, &digest.folder),
    })
}

fn state(digest: &Digest) -> Value {
    let told = digest.trials.len();
    json!({
        "state": if digest.stop.is_some() { "stopped" } else { "running" },
        "stop": digest.stop,
        "told": told,
        "pending": digest.pending.len(),
        "values": digest.count(TrialStatus::Value),
        "infeasible": digest.count(TrialStatus::Infeasible),
        "failed": digest.count(TrialStatus::Failed),
        "retried": digest.retried,
        "seconds": digest.elapsed(),
        "sessions": digest.stretches.len(),
        "last": digest.stretches.last().map(|stretch| stretch.end),
        "since": digest.record.best.as_ref().map(|_| told as u64 - 1 - digest.best_order),
    })
}

/// A place, or that of the default for what is inactive.
fn known_place(place: f32) -> f32 {
    if place.is_nan() { 0.5 } else { place }
}

/// The values of a point: names, values, and where they stand in their ranges; of orders and selections, what they
/// are, and null if they are fixed.
fn assignments(digest: &Digest, point: &[f64]) -> Vec<(String, String, Value)> {
    let space = &digest.plan.space;
    let value = |i: usize| space.decode_coordinate(i, point[i]).to_string();
    let place = |i: usize| json!(places::place(space.axis(i), point[i]) as f32);
    let view = space.view(point);
    let mut searched = Vec::new();
    for (entry, _) in space.entries().iter().zip(space.active(point)).filter(|(_, is)| *is) {
        let room = PARAMETERS - searched.len();
        if let (Some(what), Ok(values)) = (kind_of_whole(entry), view.values(entry.name())) {
            let whole = (entry.name().to_string(), values.to_string(), json!(what));
            searched.extend((room > 0).then_some(whole));
            continue;
        }
        let coordinates = entry.range().take(room);
        searched.extend(coordinates.map(|i| (space.coordinate_name(i), value(i), place(i))));
    }
    let fixed = digest.plan.fixed.values().iter();
    searched.extend(fixed.map(|(name, values)| (name.clone(), values.to_string(), Value::Null)));
    searched
}

/// Orders and selections are shown in one line each: what it is of such an entry, `None` of others.
fn kind_of_whole(entry: &Entry) -> Option<String> {
    match entry.structure()? {
        Structure::Permutation => Some(format!("an order of {}", entry.range().len())),
        Structure::Subset { .. } => Some(format!("some of {}", entry.range().len())),
        _ => None,
    }
}

/// The number of active parameters that [`assignments`] has no room for.
fn left_out(digest: &Digest, point: &[f64]) -> usize {
    let space = &digest.plan.space;
    let active = space.entries().iter().zip(space.active(point)).filter(|(_, is)| *is);
    let lines = |entry: &Entry| kind_of_whole(entry).map_or(entry.range().len(), |_| 1);
    active.map(|(entry, _)| lines(entry)).sum::<usize>().saturating_sub(PARAMETERS)
}

fn best(digest: &Digest) -> Option<Value> {
    let best = digest.record.best.as_ref()?;
    let (value, violation) = value_and_violation(&best.outcome);
    Some(json!({
        "trial": best.trial,
        "order": digest.best_order,
        "value": value,
        "violation": violation,
        "assignments": assignments(digest, &best.point),
        "left": left_out(digest, &best.point),
        "point": digest.plan.named(&best.point),
        "command": reproduce::command(digest, best.trial, &best.point),
    }))
}

/// The trial that is best by fresh values, where leading points were evaluated again: at the end, or by an
/// algorithm that saw noise.
fn recommended(digest: &Digest) -> Option<Value> {
    let Recommended { trial, point, value, evaluations } =
        digest.record.recommended().or_else(|| digest.replay.recommended())?;
    Some(json!({
        "trial": trial,
        "value": value,
        "evaluations": evaluations,
        "assignments": assignments(digest, &point),
        "left": left_out(digest, &point),
        "point": digest.plan.named(&point),
        "command": reproduce::command(digest, trial, &point),
    }))
}

/// How many points were known without being asked for, and the best of them if no trial is as good.
fn known(digest: &Digest) -> Option<Value> {
    let rank = |known: &Known| known.outcome.rank_in(digest.plan.direction);
    let best = digest.known.iter().min_by_key(|known| rank(known))?;
    let ours = digest.record.best.as_ref();
    let ours = ours.map(|best| best.outcome.rank_in(digest.plan.direction));
    let is_better = !best.outcome.is_failure() && ours.is_none_or(|ours| rank(best).beats(ours));
    let better = best.outcome.value().filter(|_| is_better);
    Some(json!({
        "count": digest.known.len(),
        "better": better.map(|value| json!({ "value": value, "point": best.point.to_string() })),
    }))
}

/// How far a value is from the best one, which is 0 away.
fn gap(digest: &Digest, value: f64) -> Option<f64> {
    let best = digest.record.best.as_ref()?.outcome.value()?;
    let gap = digest.plan.direction.signed(value) - digest.plan.direction.signed(best);
    gap.is_finite().then(|| digits(gap, 4))
}

/// The importance of the parameters, from the sample's outcomes; infeasible points count as worse than
/// feasible ones.
fn measure(digest: &Digest) -> Importance {
    let kept = &digest.kept;
    let space = &digest.plan.space;
    let rows: Vec<usize> = (0..kept.rows())
        .filter(|&row| digest.trials[kept.order(row) as usize].status != TrialStatus::Failed)
        .collect();
    let ranks: Vec<Rank> =
        rows.iter().map(|&row| digest.trials[kept.order(row) as usize].rank).collect();
    let values = |j: usize| Values::of(space.axis(j));
    importance(&ranks, kept.tracked(), |i, j| known_place(kept.row(rows[i])[j]), values)
}

/// The parameters on the page: the most important first, then in their own order.
fn shown(digest: &Digest, importance: &Importance) -> Vec<usize> {
    let share = |i: usize| importance.shares.get(i).copied().unwrap_or(0.0);
    let mut shown: Vec<usize> = (0..digest.kept.tracked()).collect();
    shown.sort_by(|&a, &b| share(b).total_cmp(&share(a)).then(a.cmp(&b)));
    shown.truncate(PARAMETERS);
    shown
}

fn parameters(digest: &Digest, importance: &Importance, shown: &[usize]) -> Vec<Parameter> {
    let space = &digest.plan.space;
    let entries: Vec<_> = places::entries(space).take(digest.kept.tracked()).collect();
    let best = |i: usize| {
        let best = digest.record.best.as_ref()?;
        let is_active = entries[i].condition().is_none()
            || space.view(&best.point).is_active(entries[i].name()) == Ok(true);
        is_active.then(|| places::place(space.axis(i), best.point[i]) as f32)
    };
    (shown.iter())
        .map(|&i| Parameter {
            name: space.coordinate_name(i),
            range: Range::of(entries[i].domain(), space.axis(i)),
            importance: importance.shares.get(i).map(|&share| digits(share, 3)),
            idle: importance.is_idle.get(i) == Some(&true),
            best: best(i),
        })
        .collect()
}

fn sample(digest: &Digest, shown: &[usize]) -> Sample {
    let (kept, trials) = (&digest.kept, &digest.trials);
    let trial = |row: usize| &trials[kept.order(row) as usize];
    // The best tenth of all evaluations that gave a value, as far as their points are kept.
    let mut ranks: Vec<Rank> = (trials.iter())
        .filter(|trial| trial.status == TrialStatus::Value)
        .map(|trial| trial.rank)
        .collect();
    ranks.sort();
    let bar = ranks.len().div_ceil(10).checked_sub(1).and_then(|last| ranks.get(last));
    let mut tenth: Vec<usize> = (0..kept.rows())
        .filter(|&row| {
            trial(row).status == TrialStatus::Value && bar.is_some_and(|b| trial(row).rank <= *b)
        })
        .collect();
    // Ties with the last of the tenth would make it more than a tenth.
    tenth.sort_by_key(|&row| trial(row).rank);
    tenth.truncate((kept.rows() / 10).max(5));
    let tenth = evenly(&tenth, BEST);
    let room = (PLACES / shown.len().max(1)).clamp(tenth.len(), ROWS);
    let all: Vec<usize> = (0..kept.rows()).collect();
    let mut rows = evenly(&all, room - tenth.len().min(room));
    rows.extend(&tenth);
    rows.sort_unstable();
    rows.dedup();
    let is_best: std::collections::HashSet<usize> = tenth.into_iter().collect();
    let mut sample = Sample::default();
    for &row in &rows {
        let trial = trial(row);
        sample.trial.push(trial.trial);
        sample.order.push(kept.order(row));
        sample.time.push(digits(digest.clock(trial.end), 6));
        sample.value.push(trial.value.is_finite().then(|| digits(trial.value, 6)));
        sample.gap.push(gap(digest, trial.value));
        sample.status.push(trial.status as u8);
        sample.tenth.push(u8::from(is_best.contains(&row)));
    }
    sample.places =
        places::pack(shown.iter().flat_map(|&i| rows.iter().map(move |&row| kept.row(row)[i])));
    sample
}

fn table(digest: &Digest, shown: &[usize]) -> Table {
    let (kept, trials) = (&digest.kept, &digest.trials);
    let trial = |row: usize| &trials[kept.order(row) as usize];
    let shown = &shown[..shown.len().min(TABLE_PARAMETERS)];
    let has_violations = trials.iter().any(|trial| trial.status == TrialStatus::Infeasible);
    let width = 4 * shown.len() + 13 + if has_violations { 4 } else { 0 };
    let places = 2 * (kept.rows().min(ROWS) * kept.tracked().min(PARAMETERS)).min(PLACES);
    let room = TABLE.min(TABLE_AND_PLACES - places) / width;
    let mut rows: Vec<usize> = (0..kept.rows()).collect();
    if rows.len() > room {
        let mut best = rows.clone();
        best.sort_by_key(|&row| trial(row).rank);
        best.truncate(TABLE_BEST.min(room));
        rows = evenly(&rows, room - best.len());
        rows.extend(best);
        rows.sort_unstable();
        rows.dedup();
    }
    let floats = |number: &dyn Fn(usize) -> f64| {
        let bytes = rows.iter().flat_map(|&row| (number(row) as f32).to_le_bytes());
        places::base64(&bytes.collect::<Vec<u8>>())
    };
    let places: Vec<u8> = (shown.iter())
        .flat_map(|&i| rows.iter().flat_map(move |&row| kept.row(row)[i].to_le_bytes()))
        .collect();
    let numbers: Vec<u8> =
        rows.iter().flat_map(|&row| (trial(row).trial as u32).to_le_bytes()).collect();
    let statuses: Vec<u8> = rows.iter().map(|&row| trial(row).status as u8).collect();
    let violation = |row: usize| trial(row).rank.violation().unwrap_or(0.0);
    Table {
        rows: rows.len(),
        parameters: shown.len(),
        trial: places::base64(&numbers),
        value: floats(&|row| trial(row).value),
        violation: if has_violations { floats(&violation) } else { String::new() },
        seconds: floats(&|row| trial(row).end.saturating_sub(trial(row).start) as f64 / 1000.0),
        status: places::base64(&statuses),
        places: places::base64(&places),
    }
}

/// At most this many items of a list, evenly spaced, with the first and the last.
fn evenly<T: Copy>(list: &[T], most: usize) -> Vec<T> {
    if list.len() <= most {
        return list.to_vec();
    }
    (0..most).map(|i| list[i * (list.len() - 1) / (most.max(2) - 1)]).collect()
}

fn improvements(digest: &Digest) -> Vec<(u64, f64, f64, Option<f64>)> {
    let time = |order: u64| digest.clock(digest.trials[order as usize].end);
    (evenly(&digest.improvements, IMPROVEMENTS).into_iter())
        .map(|(order, value)| (order, digits(time(order), 6), digits(value, 9), gap(digest, value)))
        .collect()
}

fn region(digest: &Digest, shown: &[usize]) -> Value {
    let replayed = digest.replay.regions();
    let (source, regions) = match replayed.is_empty() {
        false => ("region", replayed.to_vec()),
        true => ("proposals", regions::proposals(&digest.kept)),
    };
    if regions.is_empty() {
        return Value::Null;
    }
    let pack = |side: fn(&Region) -> &Vec<f32>| {
        places::pack(shown.iter().flat_map(|&i| regions.iter().map(move |r| side(r)[i])))
    };
    json!({
        "source": source,
        "told": regions.iter().map(|region| region.told).collect::<Vec<_>>(),
        "share": regions.iter().map(|region| digits(region.share, 4)).collect::<Vec<_>>(),
        "low": pack(|region| &region.low),
        "high": pack(|region| &region.high),
    })
}

fn failures(digest: &Digest) -> Value {
    let kinds: Vec<Value> = (digest.failures.iter())
        .map(|(kind, Failures { count, examples })| {
            json!({ "kind": kind, "words": warnings::spell(kind), "count": count,
                    "examples": examples })
        })
        .collect();
    let told = digest.trials.len();
    let pieces = told.min(PIECES);
    let over: Vec<[usize; 3]> = (0..pieces)
        .map(|i| {
            let mut counts = [0; 3];
            for trial in &digest.trials[i * told / pieces..(i + 1) * told / pieces] {
                counts[trial.status as usize] += 1;
            }
            counts
        })
        .collect();
    let associations: Vec<Association> = failures::associations(digest);
    json!({ "kinds": kinds, "over": over, "associations": associations })
}
