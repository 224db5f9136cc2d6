//! Where the search was looking, over time: the shrinking region of RACE-CARS, which is found by
//! replaying the journal into an optimizer like the study's own; or, for algorithms without a region,
//! the range of what was proposed.

use super::kept::Kept;
use super::places;
use crate::noise::{Favourite, Leader};
use crate::outcome::{Direction, Verdict};
use crate::plan::Plan;
use racecars::{Axis, Candidate, Optimizer, Portfolio, Space};
use std::collections::HashMap;

/// How many regions are kept; of more, every second is dropped.
const REGIONS: usize = 160;
/// Into how many stretches of time proposals are grouped.
const STRETCHES: usize = 48;

/// A region: between these places of each parameter.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Region {
    /// How many outcomes were known.
    pub(super) told: u64,
    /// The share of each axis that is inside.
    pub(super) share: f64,
    pub(super) low: Vec<f32>,
    pub(super) high: Vec<f32>,
}

/// Follows a study with an optimizer of its own.
pub(super) struct Replay {
    /// `None` when the journal no longer fits.
    optimizer: Option<Box<dyn Optimizer>>,
    out: HashMap<u64, Candidate>,
    /// In deterministic mode, outcomes whose turn has not come.
    waiting: HashMap<u64, Verdict>,
    deterministic: bool,
    direction: Direction,
    regions: Vec<Region>,
    favourite: Favourite,
}

impl Replay {
    pub(super) fn new(plan: &Plan, space: &Space) -> Self {
        let optimizer = || plan.algorithm.optimizer(space, Some(plan.budget), plan.seed).ok();
        Replay {
            optimizer: optimizer(),
            out: HashMap::new(),
            waiting: HashMap::new(),
            deterministic: plan.deterministic,
            direction: plan.direction,
            regions: Vec::new(),
            favourite: Favourite::default(),
        }
    }

    /// The regions so far, in order; none if there are none or the journal is not what the optimizer
    /// would have done, as after a change of version.
    pub(super) fn regions(&self) -> &[Region] {
        if self.optimizer.is_some() { &self.regions } else { &[] }
    }

    /// What a portfolio of algorithms did, if the study's algorithm is one.
    pub(super) fn portfolio(&self) -> Option<Portfolio> {
        let portfolio = self.optimizer.as_ref()?.portfolio()?;
        Some(portfolio.map_values(|best| self.direction.turn(best)))
    }

    /// The point that an algorithm which saw noise recommends, with the mean of its fresh values.
    pub(super) fn recommended(&self) -> Option<(Leader, f64)> {
        self.favourite.recommended(self.direction, &**self.optimizer.as_ref()?)
    }

    /// The optimizer was asked, when it knew `told` outcomes if that is given.
    pub(super) fn ask(&mut self, trial: u64, point: &[f64], told: Option<u64>, tracked: usize) {
        while let Some(optimizer) = &self.optimizer
            && let next = optimizer.told()
            && told.is_some_and(|told| next < told)
        {
            // Outcomes are told in the order asked.
            match self.waiting.remove(&next) {
                Some(outcome) => self.pass_on(next, &outcome),
                None => self.optimizer = None,
            }
        }
        let Some(optimizer) = &mut self.optimizer else { return };
        match optimizer.ask() {
            Some(candidate) if is_same(optimizer.space(), candidate.point(), point) => {
                self.out.insert(trial, candidate);
            }
            _ => {
                self.optimizer = None;
                return;
            }
        }
        let Some(region) = optimizer.region() else { return };
        let (center, share) = (region.center, region.share);
        if self.regions.last().is_some_and(|last| last.share == share) {
            return;
        }
        let space = optimizer.space();
        let (low, high) = (0..tracked)
            .map(|i| {
                let axis = space.axis(i);
                let (low, high) = places::extent(axis, axis.around(center[i], share));
                (low as f32, high as f32)
            })
            .unzip();
        self.regions.push(Region { told: optimizer.told(), share, low, high });
        if self.regions.len() > REGIONS {
            let mut i = 0;
            self.regions.retain(|_| {
                i += 1;
                i % 2 == 1
            });
        }
    }

    /// A trial ended.
    pub(super) fn tell(&mut self, trial: u64, verdict: &Verdict) {
        if self.deterministic && self.optimizer.is_some() {
            self.waiting.insert(trial, verdict.clone());
        } else {
            self.pass_on(trial, verdict);
        }
    }

    fn pass_on(&mut self, trial: u64, verdict: &Verdict) {
        let Some(optimizer) = &mut self.optimizer else { return };
        let Some(candidate) = self.out.remove(&trial) else { return };
        let point = candidate.point().to_vec();
        match optimizer.tell(candidate, verdict.outcome(self.direction)) {
            Ok(()) => self.favourite.note(trial, &point, &**optimizer),
            Err(_) => self.optimizer = None,
        }
    }
}

/// Whether two encoded points are the same, but for what writing a number on a log scale and reading
/// it again may change.
fn is_same(space: &Space, a: &[f64], b: &[f64]) -> bool {
    let near = |(i, (a, b)): (usize, (&f64, &f64))| {
        a == b
            || matches!(space.axis(i), Axis::Continuous { low, high }
                if (a - b).abs() <= 1e-9 * (high - low))
    };
    a.len() == b.len() && a.iter().zip(b).enumerate().all(near)
}

/// The range of nine tenths of the proposals, for stretches of time.
pub(super) fn proposals(kept: &Kept) -> Vec<Region> {
    let rows = kept.rows();
    let stretches = (rows / 12).min(STRETCHES);
    let mut regions = Vec::new();
    for stretch in 0..stretches {
        let span = stretch * rows / stretches..(stretch + 1) * rows / stretches;
        // A range needs no more than a couple of hundred.
        let step = span.len().div_ceil(200);
        let mut region = Region { told: kept.order(span.start), share: 0.0, ..Region::default() };
        let mut column = Vec::with_capacity(span.len());
        for i in 0..kept.tracked() {
            column.clear();
            column.extend(span.clone().step_by(step).map(|row| kept.row(row)[i]));
            column.sort_by(f32::total_cmp);
            let edge = column.len() / 20;
            region.low.push(column[edge]);
            region.high.push(column[column.len() - 1 - edge]);
        }
        regions.push(region);
    }
    regions
}
