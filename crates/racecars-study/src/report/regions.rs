//! Where the search was looking, over time: the shrinking region of RACE-CARS, which is found by
//! replaying the journal into a search like the study's own; or, for algorithms without a region,
//! the range of what was proposed.

use super::kept::Kept;
use super::places;
use crate::journal::KnownTold;
use crate::noise::Recommended;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::search::Search;
use racecars::{Axis, Portfolio, ShrunkRegion, Space};

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

/// Follows a study with a search of its own.
#[derive(Debug)]
pub(super) struct Replay {
    /// `None` when the journal no longer fits.
    search: Option<Search>,
    regions: Vec<Region>,
}

impl Replay {
    pub(super) fn new(plan: &Plan) -> Self {
        Replay { search: Search::new(plan).ok(), regions: Vec::new() }
    }

    /// The regions so far, in order; none if there are none or the journal is not what the optimizer
    /// would have done, as after a change of version.
    pub(super) fn regions(&self) -> &[Region] {
        if self.search.is_some() { &self.regions } else { &[] }
    }

    /// What a portfolio of algorithms did, if the study's algorithm is one.
    pub(super) fn portfolio(&self) -> Option<Portfolio> {
        self.search.as_ref()?.session().portfolio()
    }

    /// The point that an algorithm which knows of noise recommends.
    pub(super) fn recommended(&self) -> Option<Recommended> {
        self.search.as_ref()?.recommended()
    }

    /// The optimizer was asked, when `told` outcomes had been told if that is given.
    pub(super) fn ask(&mut self, trial: u64, point: &[f64], told: Option<u64>, tracked: usize) {
        let Some(search) = &mut self.search else { return };
        let is_same = match search.replay_ask(trial, told).map(<[f64]>::to_vec) {
            Ok(ours) => is_same(search.session().space(), &ours, point),
            Err(_) => false,
        };
        if !is_same {
            self.search = None;
            return;
        }
        let session = search.session();
        let Some(ShrunkRegion { center, share, .. }) = session.optimizer().region() else { return };
        if self.regions.last().is_some_and(|last| last.share == share) {
            return;
        }
        let space = session.space();
        let (low, high) = (0..tracked)
            .map(|i| {
                let axis = space.axis(i);
                let (low, high) = places::extent(axis, axis.around(center[i], share));
                (low as f32, high as f32)
            })
            .unzip();
        self.regions.push(Region { told: session.counts().evaluations, share, low, high });
        if self.regions.len() > REGIONS {
            let mut i = 0;
            self.regions.retain(|_| {
                i += 1;
                i % 2 == 1
            });
        }
    }

    /// A point became known that was not asked for.
    pub(super) fn known(&mut self, known: &KnownTold) {
        if self.search.as_mut().is_some_and(|search| search.replay_known(known).is_err()) {
            self.search = None;
        }
    }

    /// A trial ended.
    pub(super) fn tell(&mut self, trial: u64, outcome: &Outcome) {
        let Some(search) = &mut self.search else { return };
        let told = search.tell(trial, outcome.clone()).and_then(|()| match search.is_in_order() {
            // How much was told shows at the next ask.
            true => Ok(()),
            false => search.settle(),
        });
        if told.is_err() {
            self.search = None;
        }
    }

    /// The study ran to its end, with all outcomes told.
    pub(super) fn finish(&mut self) {
        if self.search.as_mut().is_some_and(|search| search.settle().is_err()) {
            self.search = None;
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
