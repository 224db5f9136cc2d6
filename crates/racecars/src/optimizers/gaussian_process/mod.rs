//! Trust-region Gaussian process: a model of the objective, for few and expensive evaluations.
//!
//! In the manner of TuRBO (Eriksson et al., "Scalable global optimization via local Bayesian optimization",
//! 2019) and of its extension to mixed spaces, CASMOPOLITAN (Wan et al., "Think global and act local",
//! 2021). The files by role:
//!
//! - `features`: points as the model sees them: numeric features scaled to [0, 1], and categories
//! - `warp`: values as the model sees them
//! - `kernel`: covariance, likelihood, and the fit of the hyperparameters
//! - `model`: the posterior mean and deviation
//! - `improvement` and `acquisition`: the point of the greatest expected improvement
//! - `feasibility`: how far points are from being infeasible, for a second model of that
//! - `region`: the trust region
//! - `descent`: a minimizer for smooth functions in a box, which fit and acquisition share
//!
//! Departures: the acquisition is the expected improvement with local search, not Thompson sampling, which
//! needs thousands of candidates; hyperparameters are fitted on a schedule, and values are warped. Candidates
//! satisfy the conditions of the space before they are scored. Where evaluations find points infeasible, the expected
//! improvement is multiplied by the probability of being feasible (Gardner et al., "Bayesian optimization with
//! inequality constraints", 2014).
//!
//! What is saved are the points, the hyperparameters and which points the model has. The factor of its
//! matrix is computed again, and equals the one that grew row by row to the bit.

mod acquisition;
mod descent;
mod feasibility;
mod features;
mod improvement;
mod kernel;
mod model;
mod region;
mod settings;
mod warp;

pub use settings::GaussianProcess;

use super::ledger::Ledger;
use super::quasi_random::HaltonSequence;
use super::shell::{Evaluated, Proposal, Search, Setup, Tools};
use crate::error::Result;
use crate::outcome::{Measured, Outcome, Rank};
use crate::random::Random;
use crate::sample::Sample;
use crate::space::Space;
use acquisition::{Acquisition, Effort, SearchBox};
use features::Features;
use kernel::{Kernel, Weights};
use model::{Buffers, Model};
use region::TrustRegion;
use serde::{Deserialize, Serialize};
use settings::Resolved;
use warp::{KNEES, Warp};

/// The width of the box of the initial points, as a share of a continuous space. Corners of the space are
/// far from everything else, and a model that knows them is a worse one.
const DESIGN_WIDTH: f64 = 0.5;

/// The model is fitted again when it has grown by this share.
const REFIT_SHARE: f64 = 1.0 / 8.0;

/// Evaluations of the likelihood in a fit, and in the one before the first.
const FIT_EVALUATIONS: usize = 12;
const FIRST_FIT_EVALUATIONS: usize = 25;

/// The knee that the first fit begins with, see [`KNEES`].
const FIRST_KNEE: u8 = 1;

/// One proposal in so many looks for an improvement in the whole space: in a continuous one, in one with
/// discrete coordinates, and in one of numbers and categories, of which each may have a valley of its own.
const GLOBAL_INTERVAL: u64 = 10;
const DISCRETE_GLOBAL_INTERVAL: u64 = 5;
const BRANCHED_GLOBAL_INTERVAL: u64 = 3;

/// With conditions, the improvement that counts, in deviations of the values: in the trust region and in the whole
/// space. Else a region that has converged in one branch goes on to gain less and less there while other
/// branches are hardly known.
const CONDITIONAL_MARGINS: [f64; 2] = [0.01, 0.1];

/// Points that are kept at least, of more that were told: the best and the latest.
const MAX_SAMPLES: usize = 1000;

/// The largest number of points that the hyperparameters are fitted to.
const MAX_FITTED: usize = 100;

/// Pending candidates that the model knows of.
const MAX_PENDING: usize = 64;

/// The trust-region Gaussian process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct GpSearch {
    settings: Resolved,
    /// The seed of the initial points.
    design_seed: u64,
    /// The number of initial points asked.
    designed: u64,
    samples: Vec<Told>,
    region: TrustRegion,
    fit: Option<Fit>,
    #[serde(skip)]
    derived: Derived,
}

/// An evaluated point and the number of the region it belongs to.
#[derive(Debug, Serialize, Deserialize)]
struct Told {
    sample: Sample,
    region: u64,
    /// The objective, and the constraints, at most 0 where they are met: where they were measured.
    measured: Option<Measured>,
}

impl Told {
    /// The objective, at an infeasible point as well.
    fn objective(&self) -> Option<f64> {
        let measured = || self.measured.as_ref()?.value.filter(|value| value.is_finite());
        self.sample.rank.value().or_else(measured)
    }
}

/// The result of a fit.
#[derive(Debug, Serialize, Deserialize)]
struct Fit {
    kernel: Kernel,
    warp: Warp,
    /// The samples in the model: those chosen by the fit, then those told since.
    members: Vec<u32>,
    /// The number of members that the fit chose.
    chosen: usize,
    /// The model of feasibility, if there are feasible and infeasible points.
    feasibility: Option<Kernel>,
}

/// A pending candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PendingPoint {
    point: Box<[f64]>,
    region: u64,
    /// If the objective is noisy, the model's mean at the center of the region: the value to improve on.
    limit: Option<f64>,
}

/// What is rebuilt after deserialization.
#[derive(Debug, Default)]
struct Derived {
    features: Features,
    sequence: HaltonSequence,
    model: Option<Model>,
    /// The model of the margins of feasibility and its kernel, if there are feasible and infeasible points.
    feasibility: Option<(Kernel, Model)>,
}

impl Derived {
    fn forget_models(&mut self) {
        (self.model, self.feasibility) = (None, None);
    }
}

impl GpSearch {
    pub(crate) fn new(
        settings: &GaussianProcess,
        setup: Setup<'_>,
        random: &mut Random,
    ) -> Result<Self> {
        let settings = settings.resolve(setup.space, setup.budget)?;
        Ok(GpSearch {
            region: TrustRegion::new(0, setup.space.can_repeat()),
            settings,
            design_seed: random.bits(),
            designed: 0,
            samples: Vec::new(),
            fit: None,
            derived: Derived::default(),
        })
    }

    /// Writes the next initial point: the center of the space, then a low-discrepancy sequence.
    fn write_designed(&mut self, space: &Space, random: &mut Random, point: &mut [f64]) {
        if self.designed == 0 && self.samples.is_empty() {
            space.write_center(random, point);
        } else {
            self.derived.sequence.write(self.designed, space, random, point);
            if !space.can_repeat() {
                self.shrink_designed(point);
            }
        }
        self.designed = self.designed.wrapping_add(1);
    }

    /// Moves an initial point towards the center.
    fn shrink_designed(&self, point: &mut [f64]) {
        let features = &self.derived.features;
        let mut x = vec![0.0; point.len()];
        features.encode(point, &mut x);
        x.iter_mut().for_each(|x| *x = 0.5 + DESIGN_WIDTH * (*x - 0.5));
        features.decode(&x, point);
    }

    /// Whether there are feasible points, and whether there are others.
    fn kinds(&self) -> [bool; 2] {
        let is_feasible = |told: &Told| told.sample.rank.value().is_some();
        [self.samples.iter().any(is_feasible), !self.samples.iter().all(is_feasible)]
    }

    /// The values of the samples: their objective, if it is known. If none is feasible, their violations are the
    /// values, and failed ones are as bad as the worst.
    fn values(&self) -> Vec<Option<f64>> {
        if self.kinds()[0] {
            return self.samples.iter().map(Told::objective).collect();
        }
        let violations = || self.samples.iter().map(|told| told.sample.rank.violation());
        let worst = violations().flatten().reduce(f64::max).unwrap_or(0.0);
        violations().map(|violation| Some(violation.unwrap_or(worst))).collect()
    }

    /// Fits the hyperparameters, if enough was told since they were.
    fn refit(&mut self) {
        let has_feasibility = self.kinds() == [true, true];
        let is_due = self.fit.as_ref().is_none_or(|fit| {
            let new = fit.members.len() - fit.chosen;
            let interval = (fit.chosen as f64 * REFIT_SHARE) as usize;
            let is_other = has_feasibility != fit.feasibility.is_some();
            fit.chosen == 0 || (new > 0 && new >= interval) || is_other
        });
        if !is_due {
            return;
        }
        self.derived.forget_models();
        let members = self.choose_members();
        let features = &self.derived.features;
        let (n, numeric) = (features.len(), features.numeric());
        let encoded = |members: &[u32]| -> Vec<f64> {
            let mut rows = vec![0.0; members.len() * n];
            for (row, &member) in rows.chunks_exact_mut(n).zip(members) {
                features.encode(&self.samples[member as usize].sample.point, row);
            }
            rows
        };
        let values = self.values();
        let (valued, chosen): (Vec<u32>, Vec<f64>) =
            members.iter().filter_map(|&i| Some((i, values[i as usize]?))).unzip();
        let count = chosen.len().min(MAX_FITTED);
        let rows = encoded(&valued[..count]);
        let low = self.samples.iter().filter_map(|told| told.sample.rank.value()).reduce(f64::min);
        let (mut kernel, knee, feasibility, is_first) = match self.fit.take() {
            Some(fit) => (fit.kernel, fit.warp.knee(), fit.feasibility, false),
            None => (Kernel::new(n, self.settings.noisy), FIRST_KNEE, None, true),
        };
        let feasibility = has_feasibility.then(|| {
            let is_first = feasibility.is_none();
            let mut kernel = feasibility.unwrap_or_else(|| Kernel::new(n, self.settings.noisy));
            let margins = feasibility::margins(&self.samples);
            let fitted = &members[..members.len().min(MAX_FITTED)];
            let margins: Vec<f64> = fitted.iter().map(|&i| margins[i as usize]).collect();
            let evaluations = if is_first { FIRST_FIT_EVALUATIONS } else { FIT_EVALUATIONS };
            kernel.fit(&encoded(fitted), &margins, numeric, evaluations);
            kernel
        });
        let mut warp = Warp::new(&mut chosen.clone(), low, knee);
        let values = &chosen[..count];
        let warped = |warp: &Warp| -> Vec<f64> { values.iter().map(|x| warp.apply(*x)).collect() };
        if is_first {
            kernel.fit(&rows, &warped(&warp), numeric, FIRST_FIT_EVALUATIONS);
        }
        choose_knee(&mut warp, &kernel, &rows, values, n, numeric);
        kernel.fit(&rows, &warped(&warp), numeric, FIT_EVALUATIONS);
        self.fit = Some(Fit { kernel, warp, chosen: members.len(), members, feasibility });
    }

    /// The samples for the model: all, or the best and those nearest to the best of the region. The most
    /// relevant ones come first.
    fn choose_members(&self) -> Vec<u32> {
        let order_by = |key: &mut dyn FnMut(usize) -> (f64, Rank)| -> Vec<usize> {
            let keys: Vec<(f64, Rank)> = (0..self.samples.len()).map(key).collect();
            let mut order: Vec<usize> = (0..self.samples.len()).collect();
            order.sort_by(|&a, &b| {
                keys[a].0.total_cmp(&keys[b].0).then(keys[a].1.cmp(&keys[b].1)).then(a.cmp(&b))
            });
            order
        };
        let by_rank = order_by(&mut |i| (0.0, self.samples[i].sample.rank));
        let here = by_rank.iter().find(|&&i| self.samples[i].region == self.region.number);
        let Some(&center) = here.or(by_rank.first()) else { return Vec::new() };
        let features = &self.derived.features;
        let n = features.len();
        let (mut x, mut y) = (vec![0.0; n], vec![0.0; n]);
        features.encode(&self.samples[center].sample.point, &mut x);
        let covariance = match &self.fit {
            Some(fit) => fit.kernel.covariance(features.numeric()),
            None => Kernel::new(n, false).covariance(features.numeric()),
        };
        let by_distance = order_by(&mut |i| {
            features.encode(&self.samples[i].sample.point, &mut y);
            (covariance.squared_distance(&x, &y), self.samples[i].sample.rank)
        });
        let mut place = vec![usize::MAX; self.samples.len()];
        for order in [&by_rank, &by_distance] {
            order.iter().enumerate().for_each(|(at, &i)| place[i] = place[i].min(at));
        }
        let mut members = by_distance;
        members.sort_by_key(|&i| place[i]);
        members.truncate(self.settings.points);
        members.into_iter().map(|i| i as u32).collect()
    }

    /// Brings the models up to date, and returns the samples of the rows of that of the objective. `None` if there is no
    /// positive definite matrix, which damaged states may lead to.
    fn update_models(&mut self) -> Option<Vec<u32>> {
        self.refit();
        let values = self.values();
        let GpSearch { samples, fit, derived, .. } = self;
        let Derived { features, model, feasibility, .. } = derived;
        let fit = fit.as_mut()?;
        let (rows, values): (Vec<u32>, Vec<f64>) =
            fit.members.iter().filter_map(|&i| Some((i, values[i as usize]?))).unzip();
        let grown = grow(model, &mut fit.kernel, features, samples, &rows)?;
        grown.set_values(values.iter().map(|value| fit.warp.apply(*value)).collect());
        // Where the noise must be raised, that of the fit stays as it was: the next fit begins with it.
        let kernel = feasibility.take().map(|(kernel, model)| (kernel, Some(model)));
        let kernel = kernel.or_else(|| Some((fit.feasibility.clone()?, None)));
        if let Some((mut kernel, mut model)) = kernel
            && let Some(grown) = grow(&mut model, &mut kernel, features, samples, &fit.members)
        {
            let margins = feasibility::margins(samples);
            grown.set_values(fit.members.iter().map(|&i| margins[i as usize]).collect());
            *feasibility = model.map(|model| (kernel, model));
        }
        Some(rows)
    }

    /// The features of the point to evaluate next, by the model, and its mean at the center of the region.
    fn propose_by_model(&mut self, tools: &mut Tools<'_, PendingPoint>) -> Option<(Vec<f64>, f64)> {
        let members = self.update_models()?;
        let GpSearch { samples, region, fit, derived, .. } = self;
        let Derived { features, model, feasibility, .. } = derived;
        let (fit, model) = (fit.as_ref()?, model.as_mut()?);
        let n = features.len();
        let is_branched = (1..n).contains(&features.numeric());
        let interval = match tools.space.can_repeat() {
            true if is_branched && !tools.space.has_orders_or_selections() => {
                BRANCHED_GLOBAL_INTERVAL
            }
            true => DISCRETE_GLOBAL_INTERVAL,
            false => GLOBAL_INTERVAL,
        };
        let is_global = tools.ledger.next_id() % interval == interval - 1;
        let sample = |at: usize| &samples[members[at] as usize];
        let is_allowed =
            |&at: &usize| feasibility.is_none() || sample(at).sample.rank.value().is_some();
        let by_mean = |&a: &usize, &b: &usize| model.fitted(a).total_cmp(&model.fitted(b));
        let allowed = || (0..model.told()).filter(is_allowed);
        let is_here = |&at: &usize| sample(at).region == region.number;
        if !is_global && !samples.iter().any(|told| told.region == region.number) {
            return None;
        }
        // A new region may have no feasible point yet.
        let is_global = is_global || !allowed().any(|at| is_here(&at));
        let center = allowed().filter(|at| is_global || is_here(at)).min_by(by_mean)?;
        let best = model.fitted(center);
        let center = model.row(center).to_vec();
        let sides = if is_global { vec![4.0; n] } else { region.sides(fit.kernel.log_scales()) };
        let mut area = SearchBox {
            low: vec![0.0; n],
            high: vec![1.0; n],
            redraw: if is_global { 1.0 } else { region.length.min(1.0) },
            center,
        };
        for (j, side) in sides.iter().enumerate().take(features.numeric()) {
            let center = area.center[j];
            let (low, high) = ((center - 0.5 * side).max(0.0), (center + 0.5 * side).min(1.0));
            (area.low[j], area.high[j]) = features.within(j, center, low, high);
        }
        let pending = tools.ledger.marks().rev().take(MAX_PENDING);
        let mut rows = vec![0.0; n * pending.clone().count()];
        for (row, pending) in rows.chunks_exact_mut(n).zip(pending) {
            features.encode(&pending.point, row);
        }
        model.set_pending(rows.chunks_exact(n));
        if let Some((_, feasibility)) = feasibility {
            feasibility.set_pending(rows.chunks_exact(n));
        }

        let (space, ledger) = (tools.space, &*tools.ledger);
        let mut point = vec![0.0; n];
        let center = area.center.clone();
        let is_new = |x: &[f64]| {
            if !space.can_repeat() {
                // What changed may be inactive.
                return !space.has_conditions() || x != center;
            }
            features.decode(x, &mut point);
            !ledger.has_seen(space.key(&point))
        };
        let effort = Effort { candidates: 80, starts: 2, gradients: 15, exchanges: 60 };
        let buffers = Buffers::default();
        let margin = match space.has_conditions() {
            true => CONDITIONAL_MARGINS[usize::from(is_global)],
            false => 0.0,
        };
        let target = best - margin;
        let feasibility = feasibility.as_ref().map(|(_, model)| model);
        let mut acquisition =
            Acquisition { model, feasibility, features, best: target, is_new, buffers };
        Some((acquisition.search(&area, effort, tools.random)?, fit.warp.invert(best)))
    }

    /// Writes the first point of a new region: of some draws, the one farthest from all points told.
    fn write_far(&mut self, tools: &mut Tools<'_, PendingPoint>, point: &mut [f64]) {
        const DRAWS: usize = 32;
        let Derived { features, .. } = &self.derived;
        let n = features.len();
        let mut encoded = vec![0.0; n];
        let mut rows = vec![0.0; n * self.samples.len()];
        for (row, told) in rows.chunks_exact_mut(n).zip(&self.samples) {
            features.encode(&told.sample.point, row);
        }
        let covariance = Kernel::new(n, false).covariance(features.numeric());
        let mut farthest = -1.0;
        let mut draw = point.to_vec();
        for _ in 0..DRAWS {
            tools.space.draw(tools.random, &mut draw);
            features.encode(&draw, &mut encoded);
            let distances =
                rows.chunks_exact(n).map(|row| covariance.squared_distance(&encoded, row));
            let nearest = distances.fold(f64::INFINITY, f64::min);
            if nearest > farthest {
                farthest = nearest;
                point.copy_from_slice(&draw);
            }
        }
    }

    /// Adds a sample, to the model as well.
    fn push(&mut self, told: Told) {
        self.samples.push(told);
        if let Some(fit) = &mut self.fit {
            fit.members.push(self.samples.len() as u32 - 1);
        }
        if self.samples.len() >= 2 * MAX_SAMPLES {
            self.prune();
        }
    }

    /// Drops samples when there are too many. The model begins anew.
    fn prune(&mut self) {
        let count = self.samples.len();
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&i| self.samples[i].sample.rank);
        let mut is_kept = vec![false; count];
        order.iter().take(MAX_SAMPLES / 2).for_each(|&i| is_kept[i] = true);
        is_kept[count - MAX_SAMPLES / 2..].fill(true);
        let mut kept = is_kept.into_iter();
        self.samples.retain(|_| kept.next().unwrap_or(true));
        if let Some(fit) = &mut self.fit {
            fit.members.clear();
            fit.chosen = 0;
        }
        self.derived.forget_models();
    }
}

/// Adds these samples, of which a model has the first ones, and factorizes it. Where the matrix is not positive
/// definite, it begins anew with more noise; `None` if no noise is enough.
fn grow<'a>(
    model: &'a mut Option<Model>,
    kernel: &mut Kernel,
    features: &Features,
    samples: &[Told],
    rows: &[u32],
) -> Option<&'a mut Model> {
    let n = features.len();
    let mut row = vec![0.0; n];
    let start = |kernel: &Kernel| Model::new(kernel.covariance(features.numeric()), n);
    let model = model.get_or_insert_with(|| start(kernel));
    loop {
        model.remove_pending();
        for &member in rows.iter().skip(model.told()) {
            features.encode(&samples[member as usize].sample.point, &mut row);
            model.add_told(&row);
        }
        if model.factorize().is_ok() {
            return Some(model);
        }
        if !kernel.raise_noise() {
            return None;
        }
        *model = start(kernel);
    }
}

/// Chooses the knee for which the values are most likely.
fn choose_knee(
    warp: &mut Warp,
    kernel: &Kernel,
    rows: &[f64],
    values: &[f64],
    n: usize,
    numeric: usize,
) {
    let mut model = Model::new(kernel.covariance(numeric), n);
    rows.chunks_exact(n).for_each(|row| model.add_told(row));
    if model.factorize().is_err() {
        return;
    }
    let mut greatest = f64::NEG_INFINITY;
    let mut chosen = *warp;
    for knee in 0..KNEES.len() as u8 {
        let mut other = *warp;
        other.set_knee(knee, values);
        let warped: Vec<f64> = values.iter().map(|x| other.apply(*x)).collect();
        let slopes: f64 = values.iter().map(|x| other.log_slope(*x)).sum();
        let density = Weights::new(model.factor(), &warped).log_density() + slopes;
        if density > greatest {
            (greatest, chosen) = (density, other);
        }
    }
    *warp = chosen;
}

impl Search for GpSearch {
    type Mark = PendingPoint;
    const SETTLES: bool = true;

    fn prepare(&mut self, space: &Space, _: usize) -> Result<()> {
        self.derived = Derived {
            features: Features::new(space),
            sequence: HaltonSequence::new(space.dimension(), self.design_seed),
            ..Derived::default()
        };
        Ok(())
    }

    fn propose(&mut self, tools: &mut Tools<'_, PendingPoint>) -> Option<Proposal<PendingPoint>> {
        let mut point = tools.buffer();
        let told = self.samples.len();
        let design = self.settings.design;
        let is_designed = told < 2 || (self.designed < design as u64 && told < design);
        let found = if is_designed { None } else { self.propose_by_model(tools) };
        let key = tools.unseen(1, &mut point, |tools, _, point| {
            match &found {
                Some((features, _)) => self.derived.features.decode(features, point),
                None if is_designed => self.write_designed(tools.space, tools.random, point),
                None => self.write_far(tools, point),
            }
            tools.space.key(point)
        })?;
        let limit = found.filter(|_| self.settings.noisy).map(|(_, limit)| limit);
        let mark = PendingPoint { point: point.clone(), region: self.region.number, limit };
        Some(Proposal { point, key, mark })
    }

    fn learn(
        &mut self,
        evaluated: Evaluated<PendingPoint>,
        tools: &mut Tools<'_, PendingPoint>,
    ) -> Result<Option<Box<[f64]>>> {
        let Evaluated { sample, asked, .. } = evaluated;
        let is_asked = asked.is_some();
        let (region, limit) = match asked {
            Some(asked) => (asked.mark.region, asked.mark.limit),
            None => (self.region.number, None),
        };
        let rank = sample.rank;
        self.push(Told { sample, region, measured: tools.measured.cloned() });
        if is_asked && region == self.region.number && self.samples.len() > self.settings.design {
            let (dimension, pending) = (tools.space.dimension(), tools.ledger.pending());
            if self.region.learn(rank, limit, dimension, pending) {
                self.region = TrustRegion::new(region + 1, tools.space.can_repeat());
            }
        }
        Ok(None)
    }

    fn is_sound(&self, space: &Space, ledger: &Ledger<PendingPoint>) -> Result<bool> {
        let GpSearch { settings, samples, region, fit, .. } = self;
        settings.check()?;
        for pending in ledger.marks() {
            space.check_box(&pending.point)?;
        }
        let is_fit_sound = |fit: &Fit| {
            fit.kernel.is_sound(space.dimension())
                && fit.warp.is_sound()
                && fit.feasibility.as_ref().is_none_or(|x| x.is_sound(space.dimension()))
                && fit.chosen <= fit.members.len()
                && fit.members.len() <= samples.len()
                && fit.members.iter().all(|&member| (member as usize) < samples.len())
        };
        Ok(region.is_sound()
            && samples.len() < 2 * MAX_SAMPLES
            && samples.iter().all(|told| {
                told.sample.is_sound(space)
                    && told.region <= region.number
                    && told.measured.as_ref().is_none_or(Measured::is_sound)
            })
            && ledger.marks().all(|pending| {
                pending.region <= region.number && pending.limit.is_none_or(f64::is_finite)
            })
            && fit.as_ref().is_none_or(is_fit_sound))
    }

    fn is_heavy(&self, _: &Space) -> bool {
        true
    }

    fn restarts(&self) -> u64 {
        self.region.number
    }

    /// The model averages all values of a point; one without noise has the mean as its value.
    fn revise(&mut self, point: &[f64], latest: Rank, mean: Rank) {
        let mut told = self.samples.iter_mut().filter(|told| *told.sample.point == *point);
        if !self.settings.noisy {
            told.for_each(|told| told.sample.rank = mean);
        } else if let Some(Told { sample, region, .. }) = told.next() {
            let sample = Sample { rank: latest, ..sample.clone() };
            let region = *region;
            self.push(Told { sample, region, measured: None });
        }
    }

    /// The sample with the lowest posterior mean.
    fn favourite(&mut self) -> Option<(Box<[f64]>, Rank)> {
        if !self.settings.noisy || self.samples.len() < 2 {
            return None;
        }
        let members = self.update_models()?;
        let GpSearch { samples, derived: Derived { model, .. }, .. } = self;
        let model = model.as_ref()?;
        let sample = |at: usize| &samples[members[at] as usize].sample;
        let favourite = (0..model.told())
            .filter(|&at| sample(at).rank.value().is_some())
            .min_by(|&a, &b| model.fitted(a).total_cmp(&model.fitted(b)))?;
        let point = &sample(favourite).point;
        let same = samples.iter().filter(|told| told.sample.point == *point);
        let values: Vec<f64> = same.filter_map(|told| told.sample.rank.value()).collect();
        let count = values.len() as f64;
        let mean = values.iter().map(|value| value / count).sum::<f64>();
        Some((point.clone(), Outcome::from(mean).rank()))
    }
}

#[cfg(test)]
mod tests;
