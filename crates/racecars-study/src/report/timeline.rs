//! The timeline of the workers: who was busy when, over the running time (interruptions are cut out).

use super::digest::{Digest, TrialSummary};
use serde::Serialize;
use std::collections::BTreeMap;

/// Up to this many evaluations are drawn one by one.
const BARS: usize = 1500;
/// Beyond that, each worker's time is cut into this many pieces.
const PIECES: usize = 240;
/// How many workers are drawn.
const WORKERS: usize = 64;

/// What the page draws.
#[derive(Debug, Default, Serialize)]
pub(super) struct Timeline {
    /// The running time, in seconds.
    span: f64,
    workers: Vec<Worker>,
    /// How many workers there are beyond those drawn.
    more: usize,
    /// Where the study went on after an interruption.
    resumed: Vec<f64>,
    /// The share of the workers' time in which they were busy.
    pub(super) busy: f64,
}

#[derive(Debug, Serialize)]
struct Worker {
    worker: u32,
    evaluations: u64,
    busy: f64,
    /// Start, end, and 0 for a value, 1 for an infeasible point, 2 for a failure.
    bars: Vec<(f64, f64, u8)>,
    /// For each piece, the percentages of time spent on values, infeasible points and failures.
    pieces: Vec<[u8; 3]>,
}

/// The timeline of a study.
pub(super) fn timeline(digest: &Digest) -> Timeline {
    let span = digest.elapsed();
    if span <= 0.0 || digest.trials.is_empty() {
        return Timeline::default();
    }
    let mut by_worker: BTreeMap<u32, Vec<&TrialSummary>> = BTreeMap::new();
    digest.trials.iter().for_each(|trial| by_worker.entry(trial.worker).or_default().push(trial));
    let count = by_worker.len();
    let workers: Vec<Worker> = (by_worker.into_iter().take(WORKERS))
        .map(|(worker, trials)| of_worker(digest, worker, &trials, span))
        .collect();
    let slots = workers.len().max(digest.plan.jobs.min(WORKERS)) as f64;
    Timeline {
        span,
        busy: workers.iter().map(|worker| worker.busy).sum::<f64>() / slots,
        more: count - workers.len(),
        workers,
        resumed: digest.stretches[1..].iter().map(|session| digest.clock(session.start)).collect(),
    }
}

fn of_worker(digest: &Digest, worker: u32, trials: &[&TrialSummary], span: f64) -> Worker {
    let is_short = digest.trials.len() <= BARS;
    let (mut bars, mut busy) = (Vec::new(), 0.0);
    let mut spent = vec![[0.0f64; 3]; if is_short { 0 } else { PIECES }];
    let width = span / PIECES as f64;
    for trial in trials {
        let (start, end) = (digest.clock(trial.start), digest.clock(trial.end));
        busy += end - start;
        if is_short {
            let round = |t: f64| (t * 1000.0).round() / 1000.0;
            bars.push((round(start), round(end), trial.status as u8));
            continue;
        }
        let first = ((start / width) as usize).min(PIECES - 1);
        let last = ((end / width) as usize).min(PIECES - 1);
        for (i, piece) in spent.iter_mut().enumerate().take(last + 1).skip(first) {
            let (from, to) = (i as f64 * width, (i + 1) as f64 * width);
            piece[trial.status as usize] += (end.min(to) - start.max(from)).max(0.0);
        }
    }
    let percent = |time: f64| (100.0 * time / width).round().clamp(0.0, 100.0) as u8;
    Worker {
        worker,
        evaluations: trials.len() as u64,
        busy: (busy / span).min(1.0),
        bars,
        pieces: spent.into_iter().map(|piece| piece.map(percent)).collect(),
    }
}
