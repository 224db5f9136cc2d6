//! Quadratic models in a trust region, for smooth functions: in the manner of M. J. D. Powell's NEWUOA
//! (2006) and BOBYQA ("The BOBYQA algorithm for bound constrained optimization without derivatives", 2009).
//!
//! - `design`: the initial interpolation points, as many as the budget allows
//! - `model`: the points, and the quadratic that interpolates them
//! - `super::trust_region`: minimizes a quadratic in a ball and a box
//! - `descent`: Powell's iteration, as a state machine
//!
//! This file has the settings, the bookkeeping of pending candidates, and the restarts.
//!
//! Departures, besides those in the files: a descent that has converged is followed by another one from a
//! random point. A known point that is better than all others becomes a point of the model if it is near,
//! and otherwise the centre of a new design.

mod descent;
mod design;
mod model;
#[cfg(test)]
mod tests;

use self::descent::{Decision, Descent, Purpose};
use self::design::Design;
use super::ledger::Ledger;
use super::saved::ID_HEADROOM;
use super::settings::settings;
use super::shell::{Evaluated, Proposal, Search, Setup, Tools};
use super::unit_box::{scale_down, scale_up};
use crate::error::{Result, ensure};
use crate::outcome::Rank;
use crate::random::Random;
use crate::space::Space;
use serde::{Deserialize, Serialize};

settings! {
    /// Settings of the quadratic models. Settings that are not given are derived.
    #[derive(Copy)]
    pub struct Quadratic {
        /// The initial radius of the trust region, as a fraction of each axis. Default: 0.2.
        radius: Option<f64>,
        /// The number of points that the model interpolates. Default: 2 n + 1, and 6 for n = 2.
        points: Option<usize>,
    }
}

/// The resolution at which a descent ends, as a fraction of each axis.
const FINAL_RESOLUTION: f64 = 1e-10;

/// The greatest radius of a trust region. Axes have length 1.
const MAX_RADIUS: f64 = 1.0;

/// Candidates that are remembered, so that they are not proposed again.
const MAX_RECENT: usize = 256;

/// Up to this dimension, the initial points are around the centre, and the model is a full quadratic.
const STAR_MAX_DIMENSION: usize = 2;

/// Below this budget per coordinate, the initial points are one per axis, and at most this share of the budget.
const PAIRS_MIN_PER_COORDINATE: f64 = 2.25;
const MAX_DESIGN_SHARE: f64 = 0.9;

/// [`Quadratic`] with all settings resolved and checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Resolved {
    radius: f64,
    points: usize,
    /// The number of initial points.
    design: usize,
}

impl Quadratic {
    fn resolve(&self, dimension: usize, budget: Option<u64>) -> Result<Resolved> {
        let is_star = dimension <= STAR_MAX_DIMENSION;
        let full = (dimension + 1) * (dimension + 2) / 2;
        let budget = budget.map_or(f64::INFINITY, |budget| budget as f64);
        let is_small = budget < PAIRS_MIN_PER_COORDINATE * dimension as f64;
        let design = match is_small && !is_star {
            true => (dimension + 1).min((MAX_DESIGN_SHARE * budget) as usize).max(2),
            false => 2 * dimension + 1,
        };
        let resolved = Resolved {
            radius: self.radius.unwrap_or(0.2),
            points: self.points.unwrap_or(if is_star { full } else { 2 * dimension + 1 }),
            design,
        };
        resolved.check(dimension)?;
        Ok(resolved)
    }
}

impl Resolved {
    fn check(&self, dimension: usize) -> Result<()> {
        let Resolved { radius, points, design } = *self;
        let is_possible = (1e-9..=0.25).contains(&radius);
        ensure!(is_possible, setting, "radius = {radius} is not from 1e-9 to 0.25");
        let (least, greatest) = (2 * dimension + 1, (dimension + 1) * (dimension + 2) / 2);
        let greatest = greatest.max(least).min(1000);
        let is_possible = (least..=greatest).contains(&points);
        ensure!(is_possible, setting, "points = {points} is not from {least} to {greatest}");
        let is_possible = (2..=least).contains(&design);
        ensure!(is_possible, setting, "design = {design} is not from 2 to {least}");
        Ok(())
    }
}

/// Descents on quadratic models, one after the other.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct QuadraticSearch {
    settings: Resolved,
    /// The number of designs before the current one. Outcomes of an earlier design's points are ignored.
    run: u64,
    /// Descents that converged.
    restarts: u64,
    phase: Phase,
    /// The latest candidates that are pending, by ascending id.
    recent: Vec<Recent>,
}

#[derive(Debug, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant, reason = "there is one")]
enum Phase {
    Design(Design),
    Descent(Descent),
}

/// A pending candidate.
#[derive(Debug, Serialize, Deserialize)]
struct Recent {
    id: u64,
    point: Vec<f64>,
    purpose: Purpose,
    /// The number of outcomes told before it was asked.
    told: u64,
}

/// The data of a pending candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mark {
    run: u64,
    purpose: Option<Purpose>,
}

impl QuadraticSearch {
    pub(crate) fn new(settings: &Quadratic, setup: Setup<'_>, random: &mut Random) -> Result<Self> {
        let n = setup.space.dimension();
        let settings = settings.resolve(n, setup.budget)?;
        let design = Design::new(vec![0.5; n], None, settings.radius, settings.design, random);
        Ok(QuadraticSearch {
            settings,
            run: 0,
            restarts: 0,
            phase: Phase::Design(design),
            recent: Vec::new(),
        })
    }

    /// Begins a new design. What is pending belongs to an earlier one.
    fn begin(&mut self, center: Vec<f64>, value: Option<f64>, radius: f64, random: &mut Random) {
        self.run += 1;
        self.recent.clear();
        self.phase =
            Phase::Design(Design::new(center, value, radius, self.settings.design, random));
    }

    /// Begins elsewhere, because a descent converged or nothing could be evaluated.
    fn restart(&mut self, tools: &mut Tools<'_, Mark>) {
        self.restarts += 1;
        let center = (0..tools.space.dimension()).map(|_| tools.random.unit()).collect();
        self.begin(center, None, self.settings.radius, tools.random);
    }

    /// Forgets candidates that are probably lost: many others were told since.
    fn forget_lost(&mut self, told: u64) {
        let patience = 4 * self.recent.len() as u64 + 20;
        self.recent.retain(|recent| told - recent.told.min(told) <= patience);
        if self.recent.len() >= MAX_RECENT {
            self.recent.remove(0);
        }
    }

    /// Learns a value of the current design or descent.
    fn learn_own(
        &mut self,
        point: &[f64],
        rank: Rank,
        purpose: Option<Purpose>,
        tools: &mut Tools<'_, Mark>,
    ) {
        match &mut self.phase {
            Phase::Design(design) => {
                if design.add(point, rank.value()) {
                    let radius = design.radius;
                    match design.finish() {
                        Some((points, values)) => {
                            self.phase = Phase::Descent(Descent::new(points, values, radius));
                        }
                        None => self.restart(tools),
                    }
                }
            }
            Phase::Descent(descent) => {
                descent.learn(point, rank, purpose, self.settings.points);
            }
        }
    }

    /// Learns a point that was not asked by this run, and is better than all others.
    fn learn_better(&mut self, point: Vec<f64>, rank: Rank, tools: &mut Tools<'_, Mark>) {
        let (center, radius, is_fresh) = match &self.phase {
            Phase::Design(design) => (design.center(), design.radius, design.is_fresh()),
            Phase::Descent(descent) => (descent.model.best_point(), descent.radius(), false),
        };
        let distance: f64 = center.iter().zip(&point).map(|(a, b)| (a - b) * (a - b)).sum();
        if !is_fresh && distance.sqrt() <= 10.0 * radius {
            self.learn_own(&point, rank, None, tools);
        } else {
            // A design of two radii must fit into the box.
            let radius = radius.clamp(1e-9, 0.25);
            self.begin(point, rank.value(), radius, tools.random);
        }
    }
}

impl Search for QuadraticSearch {
    type Mark = Mark;

    fn propose(&mut self, tools: &mut Tools<'_, Mark>) -> Option<Proposal<Mark>> {
        let told = tools.ledger.told();
        self.forget_lost(told);
        let mut point = tools.buffer();
        if let Phase::Descent(descent) = &mut self.phase {
            let pending = self.recent.iter().map(|recent| (&recent.point[..], recent.purpose));
            let best = tools.best.value().unwrap_or(f64::NEG_INFINITY);
            match descent.propose(best, pending, tools.random, &mut point) {
                Decision::Evaluate(purpose) => {
                    let id = tools.ledger.next_id();
                    self.recent.push(Recent { id, point: point.to_vec(), purpose, told });
                    scale_up(tools.space, &mut point);
                    let mark = Mark { run: self.run, purpose: Some(purpose) };
                    return Some(Proposal { point, key: 0, mark });
                }
                Decision::End => self.restart(tools),
            }
        }
        if let Phase::Design(design) = &mut self.phase {
            design.next(tools.random, &mut point);
        }
        scale_up(tools.space, &mut point);
        Some(Proposal { point, key: 0, mark: Mark { run: self.run, purpose: None } })
    }

    fn learn(
        &mut self,
        evaluated: Evaluated<Mark>,
        tools: &mut Tools<'_, Mark>,
    ) -> Result<Option<Box<[f64]>>> {
        let Evaluated { sample, asked, is_best } = evaluated;
        let mut point = vec![0.0; sample.point.len()];
        scale_down(tools.space, &sample.point, &mut point);
        if let Some(asked) = &asked {
            self.recent.retain(|recent| recent.id != asked.id);
        }
        match asked.map(|asked| asked.mark) {
            Some(mark) if mark.run == self.run => {
                self.learn_own(&point, sample.rank, mark.purpose, tools);
            }
            _ if is_best && sample.rank.value().is_some() => {
                self.learn_better(point, sample.rank, tools);
            }
            _ => {}
        }
        Ok(Some(sample.point))
    }

    fn prepare(&mut self, _: &Space, _: usize) -> Result<()> {
        if let Phase::Descent(descent) = &mut self.phase {
            descent.model.prepare();
        }
        Ok(())
    }

    fn is_sound(&self, space: &Space, ledger: &Ledger<Mark>) -> Result<bool> {
        let n = space.dimension();
        let QuadraticSearch { settings, run, restarts, phase, recent } = self;
        settings.check(n)?;
        let is_phase = match phase {
            Phase::Design(design) => design.is_sound(n),
            Phase::Descent(descent) => descent.is_sound(n, settings.points),
        };
        let is_mark =
            |mark: &Mark| mark.run <= *run && mark.purpose.is_none_or(|purpose| purpose.is_sound());
        let is_recent = |recent: &Recent| {
            recent.id < ledger.next_id()
                && recent.told <= ledger.told()
                && recent.point.len() == n
                && recent.point.iter().all(|x| (0.0..=1.0).contains(x))
                && recent.purpose.is_sound()
        };
        Ok(is_phase
            && *run < ID_HEADROOM
            && restarts <= run
            && recent.len() <= MAX_RECENT
            && recent.is_sorted_by(|a, b| a.id < b.id)
            && recent.iter().all(is_recent)
            && ledger.marks().all(is_mark))
    }

    fn restarts(&self) -> u64 {
        self.restarts
    }
}
