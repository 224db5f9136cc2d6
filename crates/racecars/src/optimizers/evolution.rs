//! Evolution in spaces with discrete coordinates: climbs by single changes, mixing of local optima, and
//! restarts.
//!
//! One solution is improved at a time. A candidate that is not worse takes its place. The moves:
//!
//! - *Sweep*: changes one coordinate, each in turn in a random order. Points that were evaluated before are
//!   left out.
//! - *Leap*: changes several coordinates. Their number falls with time if there is a budget, as in annealing;
//!   otherwise, and for a part of the candidates, it is learned: numbers are chosen by the improvements that
//!   they have led to.
//! - *Swap*: a sweep or leap that exchanges the values of pairs of coordinates instead of changing them, as for
//!   permutations and where the number of ones matters. How often it takes their place is learned, too.
//! - *Drift*: changes many coordinates at once whose changes have left the value as it was, if there are many of them.
//!   What matters only when something else is right, as in LeadingOnes, is then drawn anew by every candidate.
//! - *Window*: changes coordinates that stand side by side, which often belong together: a block that only another
//!   value of several of its bits improves is then found in tens of evaluations.
//! - *Mix*: copies linked coordinates from another local optimum, as in optimal mixing (Thierens, "The linkage
//!   tree genetic algorithm", 2010; Goldman and Punch, "Parameter-less population pyramid", 2014). Instead of a
//!   tree, the coordinates with the highest mutual information with a random one are taken. The information is
//!   about whether the local optima agree with the solution, so that it is the same for coordinates of any kind.
//!
//! A solution that none of them improves is kept as a local optimum. The next one starts at a random point, or
//! near the best one with a heavy-tailed number of changes (Doerr et al., "Fast genetic algorithms", 2017), by what
//! has led to improvements per evaluation.

use super::ledger::Ledger;
use super::saved::ID_HEADROOM;
use super::settings::settings;
use super::shell::{Evaluated, Proposal, Search, Setup, Tools};
use crate::classify::all_differences;
use crate::error::Result;
use crate::random::Random;
use crate::sample::Sample;
use crate::space::{Axis, Space};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

settings! {
    /// Evolution has no settings.
    pub struct Evolution {}
}

/// The local optima that are kept: as many as a word has bits, but at most this many coordinates in all.
const MAX_OPTIMA: usize = 64;
const MAX_KEPT_COORDINATES: usize = 1 << 22;
/// Candidates per coordinate after a sweep without an improvement, after which a solution is left.
const PATIENCE_PER_COORDINATE: u64 = 5;
/// If there is a budget, this share of the moves has a number of changes that falls with time, from this part
/// of the coordinates and with this power of the budget that is left.
const FALLING_SHARE: f64 = 0.7;
const FALLING_FROM: f64 = 0.2;
const FALLING_POWER: f64 = 4.0;
/// The first solution is kept for this many evaluations per coordinate, at most half of the budget: the number of
/// changes is still falling.
const FIRST_SOLUTION_PER_COORDINATE: u64 = 20;
/// The least weight of a kind of move, where the most successful one has 1.
const MIN_SHARE: f64 = 0.04;
/// The exponent of the power law of the number of changes of a start near the best point.
const LEAP_EXPONENT: f64 = 1.5;
/// Attempts at a point that was not seen before.
const MAX_TRIES: usize = 12;
/// The memory of credits, in evaluations per coordinate: of moves, and of starts.
const MOVE_MEMORY_PER_COORDINATE: f64 = 0.5;
const START_MEMORY_PER_COORDINATE: f64 = 20.0;
/// The least memory of credits, in evaluations.
const MIN_MEMORY: f64 = 20.0;
/// The evaluations in which one improvement of each kind of move is assumed to begin with.
const ASSUMED_EVALUATIONS: f64 = 4.0;
/// The same per coordinate for starts at random points and near the best one.
const ASSUMED_PER_COORDINATE: [f64; 2] = [20.0, 1.0];
/// The weight of this assumption, in improvements.
const ASSUMED_IMPROVEMENTS: f64 = 0.3;
/// The probability that a change does harm: before anything is known, its least and greatest estimates, and that up
/// to which a coordinate counts as harmless.
const ASSUMED_HARM: f64 = 0.5;
const MIN_HARM: f64 = 0.002;
const MAX_HARM: f64 = 0.99;
const HARMLESS: f64 = 0.1;
/// The coordinates that an improvement is assumed to make harmful.
const NEWLY_HARMFUL: f64 = 4.0;
/// A drift changes coordinates until the probability that none does harm is about this.
const DRIFT_CHANCE: f64 = 0.6;
/// The least share of harmless coordinates for drifts, and the greatest share of drifts.
const MIN_HARMLESS_SHARE: f64 = 0.125;
const MAX_DRIFT_SHARE: f64 = 0.5;
/// A window has from 2 to this many coordinates; this share of the windows changes all of them.
const MAX_WINDOW: usize = 8;
const WHOLE_WINDOW_SHARE: f64 = 0.3;
/// The least and greatest shares of windows, the evaluations in which one improvement by them is assumed to begin
/// with, and the weight of their squared rate: they wait until other changes have become rare.
const MIN_WINDOW_SHARE: f64 = 0.01;
const MAX_WINDOW_SHARE: f64 = 0.5;
const WINDOW_ASSUMED_EVALUATIONS: f64 = 100.0;
const WINDOW_WEIGHT: f64 = 0.1;
/// The smallest step on a continuous axis, as a fraction of its length.
const MIN_STEP: f64 = 1e-7;

/// A kind of candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Move {
    /// The first point of a solution.
    Start(Start),
    Sweep,
    /// Several changes: at least two to the power of this number, and less than twice as many.
    Leap(u8),
    /// Half as many exchanges as a leap of this size has changes, but at least one.
    Swap(u8),
    Mix,
    /// Changes coordinates that have done no harm.
    Drift,
    /// Changes coordinates that stand side by side.
    Window,
}

/// Where a solution starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Start {
    Random,
    NearBest,
}

/// Improvements and evaluations, both forgotten with time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Credit {
    improvements: f64,
    evaluations: f64,
}

impl Credit {
    /// One improvement is assumed in this many evaluations, with little weight.
    fn new(evaluations: f64) -> Self {
        Credit {
            improvements: ASSUMED_IMPROVEMENTS,
            evaluations: ASSUMED_IMPROVEMENTS * evaluations,
        }
    }

    fn count(&mut self, improves: bool, memory: f64) {
        let keep = 1.0 - 1.0 / memory;
        self.improvements = keep * self.improvements + f64::from(u8::from(improves));
        self.evaluations = keep * self.evaluations + 1.0;
    }

    fn rate(&self) -> f64 {
        self.improvements / self.evaluations
    }

    fn is_sound(&self) -> bool {
        self.improvements.is_finite() && self.improvements >= 0.0 && self.evaluations > 0.0
    }
}

/// The solution that is being improved, and the local optima.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EvolutionSearch {
    solution: Option<Sample>,
    start: Start,
    /// The coordinates in the order of the sweep, and the place of the next one.
    order: Vec<u32>,
    place: usize,
    /// The number of candidates since the solution last improved: up to n, and after that.
    swept: u64,
    idle: u64,
    optima: Vec<Sample>,
    /// The optimum to replace next, if there are as many as can be kept.
    oldest: usize,
    restarts: u64,
    budget: Option<u64>,
    /// The credits of the numbers of changes, by their power of two; of mixing; and of the two kinds of start.
    changes: Vec<Credit>,
    mixes: Credit,
    swaps: Credit,
    drifts: Credit,
    windows: Credit,
    starts: [Credit; 2],
    /// For each coordinate, the estimated probability that changing it makes the solution worse.
    harm: Vec<f64>,
    /// The number of coordinates that do harm with a probability of at most [`HARMLESS`].
    #[serde(skip)]
    harmless: usize,
    /// The coordinates by their axes, and the group of each coordinate.
    #[serde(skip)]
    groups: Vec<Vec<u32>>,
    #[serde(skip)]
    group_of: Vec<u32>,
    /// For each coordinate, the optima that disagree with the solution, as bits.
    #[serde(skip)]
    disagreement: Vec<u64>,
    #[serde(skip)]
    scratch: Scratch,
}

/// Buffers.
#[derive(Debug, Default)]
struct Scratch {
    /// The mutual information of each coordinate with a random one.
    information: Vec<(f64, u32)>,
    /// k ln k, for k up to the number of optima.
    entropies: Vec<f64>,
    /// The coordinates in which the latest candidate may differ from the solution that it was made from.
    touched: Vec<u32>,
    /// The id of that candidate; `None` if the solution has changed since.
    touched_by: Option<u64>,
    /// The coordinates in which a candidate differs from the solution, ascending.
    changed: Vec<u32>,
}

impl EvolutionSearch {
    pub(crate) fn new(setup: Setup<'_>, random: &mut Random) -> Self {
        let n = setup.space.dimension();
        let mut order: Vec<u32> = (0..n as u32).collect();
        random.shuffle(&mut order);
        EvolutionSearch {
            solution: None,
            start: Start::Random,
            order,
            place: 0,
            swept: 0,
            idle: 0,
            optima: Vec::new(),
            oldest: 0,
            restarts: 0,
            budget: setup.budget,
            changes: (0..sizes(n)).map(|_| Credit::new(ASSUMED_EVALUATIONS)).collect(),
            mixes: Credit::new(ASSUMED_EVALUATIONS),
            swaps: Credit::new(ASSUMED_EVALUATIONS),
            drifts: Credit::new(ASSUMED_EVALUATIONS),
            windows: Credit::new(WINDOW_ASSUMED_EVALUATIONS),
            harm: vec![ASSUMED_HARM; n],
            harmless: 0,
            groups: Vec::new(),
            group_of: Vec::new(),
            starts: ASSUMED_PER_COORDINATE.map(|evaluations| Credit::new(evaluations * n as f64)),
            disagreement: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// Chooses the next move.
    fn choose(&self, asked: u64, random: &mut Random) -> Move {
        if self.solution.is_none() {
            return Move::Start(Start::Random);
        }
        let n = self.order.len() as u64;
        if let Some(budget) = self.budget
            && random.chance(FALLING_SHARE)
        {
            let left = 1.0 - (asked as f64 / budget as f64).min(1.0);
            let mean = FALLING_FROM * n as f64 * left.powf(FALLING_POWER);
            let size = mean.max(1.0).log2().round() as usize;
            return self.of_size(size.min(self.changes.len() - 1), random);
        }
        if self.swept < n {
            return self.choose_by_credit(false, random);
        }
        let is_first = asked < FIRST_SOLUTION_PER_COORDINATE * n;
        let is_early = is_first && self.budget.is_some_and(|budget| asked < budget / 2);
        if is_early || self.idle < PATIENCE_PER_COORDINATE * n {
            return self.choose_by_credit(self.optima.len() >= 2, random);
        }
        let [anew, near] = self.starts.map(|credit| credit.rate());
        let share = anew / (anew + near).max(f64::MIN_POSITIVE);
        Move::Start(if random.chance(share) { Start::Random } else { Start::NearBest })
    }

    /// A move with two to the power of `size` changes, or one of the other moves that change as many or more, by what
    /// has led to improvements.
    fn of_size(&self, size: usize, random: &mut Random) -> Move {
        let change = self.changes[size].rate().powi(2);
        let mut takes = |credit: &Credit, weight: f64, least: f64, most: f64| {
            let other = weight * credit.rate().powi(2);
            let share = other / (other + change).max(f64::MIN_POSITIVE);
            random.chance(share.clamp(least, most))
        };
        if !self.groups.is_empty() && takes(&self.swaps, 1.0, MIN_SHARE, 1.0 - MIN_SHARE) {
            return Move::Swap(size as u8);
        }
        let n = self.order.len();
        if self.harmless as f64 >= MIN_HARMLESS_SHARE * n as f64
            && takes(&self.drifts, 1.0, MIN_SHARE, MAX_DRIFT_SHARE)
        {
            return Move::Drift;
        }
        if n > MAX_WINDOW && takes(&self.windows, WINDOW_WEIGHT, MIN_WINDOW_SHARE, MAX_WINDOW_SHARE)
        {
            return Move::Window;
        }
        if size == 0 { Move::Sweep } else { Move::Leap(size as u8) }
    }

    /// Chooses a move by the improvements that each kind has led to.
    fn choose_by_credit(&self, mixes: bool, random: &mut Random) -> Move {
        let mixes = mixes.then_some(&self.mixes);
        let kinds = || self.changes.iter().chain(mixes);
        let highest = kinds().map(Credit::rate).fold(f64::MIN_POSITIVE, f64::max);
        let share = |credit: &Credit| (credit.rate() / highest).powi(2).max(MIN_SHARE);
        let mut left = random.unit() * kinds().map(share).sum::<f64>();
        for (size, credit) in self.changes.iter().enumerate() {
            left -= share(credit);
            if left < 0.0 {
                return self.of_size(size, random);
            }
        }
        if mixes.is_some() { Move::Mix } else { Move::Sweep }
    }

    /// Writes a candidate of this kind, and returns its key. The point holds the solution.
    fn write(
        &mut self,
        kind: Move,
        tools: &mut Tools<'_, Move>,
        point: &mut [f64],
        key: u64,
    ) -> u64 {
        match self.swept < self.order.len() as u64 {
            true => self.swept += 1,
            false => self.idle += 1,
        }
        let Tools { space, random, .. } = tools;
        let touched = std::mem::take(&mut self.scratch.touched);
        let mut draft = Draft { space, random, point, key, touched };
        match kind {
            Move::Start(_) => {
                let most = draft.point.len().div_ceil(2);
                let count = 1 + heavy_tailed(LEAP_EXPONENT, most, draft.random);
                draft.change_any(count);
            }
            Move::Leap(size) => {
                let least = 1 << size;
                let count = (least + draft.random.index(least)).min(draft.point.len());
                draft.change_any(count);
            }
            Move::Sweep => {
                if self.place == self.order.len() {
                    draft.random.shuffle(&mut self.order);
                    self.place = 0;
                }
                let coordinate = self.order[self.place] as usize;
                self.place += 1;
                draft.change(coordinate);
            }
            Move::Swap(size) => {
                let pairs = (1 << size >> 1).max(1);
                (0..pairs).for_each(|_| draft.swap(&self.groups, &self.group_of));
            }
            Move::Mix => self.mix(&mut draft),
            Move::Drift => self.drift(&mut draft),
            Move::Window => draft.change_window(),
        }
        let Draft { key, touched, .. } = draft;
        self.scratch.touched = touched;
        key
    }

    /// Changes coordinates until the probability that none of them does harm is about [`DRIFT_CHANCE`].
    fn drift(&self, draft: &mut Draft<'_>) {
        /// The chance that is left is near enough below this multiple.
        const NEAR: f64 = 1.05;
        let Some(solution) = &self.solution else { return };
        let mut chance = 1.0;
        for _ in 0..2 * self.harm.len() {
            let i = draft.random.index(self.harm.len());
            let next = chance * (1.0 - self.harm[i]);
            if next < DRIFT_CHANCE || draft.point[i] != solution.point[i] {
                continue;
            }
            chance = next;
            draft.change(i);
            if chance < NEAR * DRIFT_CHANCE {
                break;
            }
        }
        if draft.touched.is_empty() {
            draft.change_any(1);
        }
    }

    /// Learns from a candidate which coordinates do harm when they are changed, as in group testing: a candidate is
    /// worse if any of its changes does harm.
    fn blame(&mut self, improves: bool, is_no_worse: bool) {
        let EvolutionSearch { harm, harmless, scratch: Scratch { changed, .. }, .. } = self;
        let mut set = |harm: &mut f64, new: f64| {
            *harmless -= usize::from(*harm <= HARMLESS);
            *harm = new.clamp(MIN_HARM, MAX_HARM);
            *harmless += usize::from(*harm <= HARMLESS);
        };
        if improves {
            let newly = NEWLY_HARMFUL / harm.len() as f64;
            harm.iter_mut().for_each(|harm| set(harm, *harm + newly * (1.0 - *harm)));
        }
        let are_safe: f64 = changed.iter().map(|&i| 1.0 - harm[i as usize]).product();
        let share = 1.0 / changed.len() as f64;
        for &i in &*changed {
            let harm = &mut harm[i as usize];
            let after = match (improves, is_no_worse) {
                // Some of the changes are what made it better, and must stay.
                (true, _) => harm.max(share),
                (_, true) => MIN_HARM,
                _ => *harm / (1.0 - are_safe),
            };
            set(harm, after);
        }
    }

    /// Lists the coordinates in which a candidate differs from the solution.
    fn find_changed(&mut self, id: Option<u64>, point: &[f64]) {
        /// Sorting a list of more than one in this many coordinates takes longer than reading both points.
        const SHARE_SORTED: usize = 16;
        let EvolutionSearch { solution, scratch, .. } = self;
        let Scratch { touched, touched_by, changed, .. } = scratch;
        changed.clear();
        let Some(solution) = solution else { return };
        if id.is_some() && id == *touched_by && SHARE_SORTED * touched.len() <= point.len() {
            let differs = |&&i: &&u32| solution.point[i as usize] != point[i as usize];
            changed.extend(touched.iter().filter(differs));
            changed.sort_unstable();
            changed.dedup();
            return;
        }
        all_differences(&solution.point, point, |i| {
            changed.push(i as u32);
            true
        });
    }

    /// Copies linked coordinates from an optimum that disagrees in some of them.
    fn mix(&mut self, draft: &mut Draft<'_>) {
        let EvolutionSearch { optima, disagreement, scratch, .. } = self;
        let Scratch { information, entropies, .. } = scratch;
        let n = disagreement.len();
        let first = draft.random.index(n);
        let size = heavy_tailed(1.0, n.div_ceil(2), draft.random);
        linked(disagreement, first, optima.len(), entropies, information);
        let size = size.min(information.len());
        if size < information.len() {
            let descending = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0);
            information.select_nth_unstable_by(size, descending);
        }
        let mask = &information[..size];
        let donors = mask.iter().fold(0, |donors, &(_, i)| donors | disagreement[i as usize]);
        if donors == 0 {
            return;
        }
        let donor = nth_bit(donors, draft.random.index(donors.count_ones() as usize));
        let donor = &optima[donor].point;
        for &(_, i) in mask {
            let (i, old) = (i as usize, draft.point[i as usize]);
            draft.set(i, old, donor[i]);
        }
    }

    /// Makes a sample, whose changes are listed, the solution.
    fn replace(&mut self, sample: Sample) -> Option<Box<[f64]>> {
        let EvolutionSearch { solution, optima, disagreement, scratch, .. } = self;
        scratch.touched_by = None;
        let old = solution.replace(sample);
        let new = &solution.as_ref()?.point;
        if old.is_none() {
            disagreement
                .iter_mut()
                .enumerate()
                .for_each(|(i, word)| *word = disagreeing(optima, i, new[i]));
        } else if !optima.is_empty() {
            for &i in &scratch.changed {
                disagreement[i as usize] = disagreeing(optima, i as usize, new[i as usize]);
            }
        }
        old.map(|old| old.point)
    }

    /// Keeps the solution as a local optimum.
    fn keep_optimum(&mut self) {
        let Some(solution) = &self.solution else { return };
        if self.optima.iter().any(|optimum| optimum.point == solution.point) {
            return;
        }
        let most = (MAX_KEPT_COORDINATES / solution.point.len()).clamp(2, MAX_OPTIMA);
        if self.optima.len() < most {
            self.optima.push(solution.clone());
        } else {
            self.optima[self.oldest] = solution.clone();
            self.oldest = (self.oldest + 1) % most;
        }
        self.compare();
    }

    /// Compares the solution with the local optima.
    fn compare(&mut self) {
        let EvolutionSearch { solution, optima, disagreement, .. } = self;
        let word = |i: usize| match &*solution {
            Some(solution) => disagreeing(optima, i, solution.point[i]),
            None => 0,
        };
        disagreement.iter_mut().enumerate().for_each(|(i, old)| *old = word(i));
        let entropy =
            |count: usize| if count == 0 { 0.0 } else { count as f64 * (count as f64).ln() };
        self.scratch.entropies = (0..=optima.len()).map(entropy).collect();
    }
}

/// The optima that have another value of this coordinate, as bits.
fn disagreeing(optima: &[Sample], coordinate: usize, value: f64) -> u64 {
    let bit = |(p, optimum): (usize, &Sample)| u64::from(optimum.point[coordinate] != value) << p;
    optima.iter().enumerate().map(bit).fold(0, |word, bit| word | bit)
}

/// Lists the coordinates with their mutual information with the first one, in which some optimum disagrees. The
/// first one has more than any other.
fn linked(
    words: &[u64],
    first: usize,
    optima: usize,
    entropies: &[f64],
    information: &mut Vec<(f64, u32)>,
) {
    let (word, all) = (words[first], u64::MAX >> (64 - optima.clamp(1, 64)));
    let h = |bits: u64| entropies[bits.count_ones() as usize];
    information.clear();
    information.push((f64::INFINITY, first as u32));
    for (i, &other) in words.iter().enumerate() {
        // Where all agree, there is nothing to copy.
        if i == first || other == 0 {
            continue;
        }
        // P times the mutual information, but for a constant that depends on the first one only.
        let joint =
            h(word & other) + h(word & !other) + h(other & !word) + h(all & !(word | other));
        information.push((joint - h(other) - h(all & !other), i as u32));
    }
}

/// The position of the bit of this rank among those that are set.
fn nth_bit(mut word: u64, rank: usize) -> usize {
    (0..rank).for_each(|_| word &= word - 1);
    word.trailing_zeros() as usize
}

/// The number of sizes of changes: 1, 2 to 3, and so on to about a quarter of the coordinates.
fn sizes(n: usize) -> usize {
    1 + (n / 4).max(2).ilog2() as usize
}

/// A number from 1 to `most` with probability about proportional to its power `-exponent`.
fn heavy_tailed(exponent: f64, most: usize, random: &mut Random) -> usize {
    let (u, top) = (random.unit(), most as f64 + 1.0);
    let drawn = if exponent == 1.0 {
        top.powf(u)
    } else {
        let power = 1.0 - exponent;
        (1.0 + u * (top.powf(power) - 1.0)).powf(1.0 / power)
    };
    (drawn as usize).clamp(1, most)
}

/// A point that is being changed, with its key and the coordinates that were changed.
struct Draft<'a> {
    space: &'a Space,
    random: &'a mut Random,
    point: &'a mut [f64],
    key: u64,
    touched: Vec<u32>,
}

impl Draft<'_> {
    /// Changes this many coordinates, some perhaps twice.
    fn change_any(&mut self, count: usize) {
        for _ in 0..count {
            let coordinate = self.random.index(self.point.len());
            self.change(coordinate);
        }
    }

    /// Changes coordinates that stand side by side: all of them, or each with probability one half.
    fn change_window(&mut self) {
        let length = 1 + heavy_tailed(1.0, MAX_WINDOW - 1, self.random);
        let first = self.random.index(self.point.len() - length + 1);
        let share = if self.random.chance(WHOLE_WINDOW_SHARE) { 1.0 } else { 0.5 };
        for i in first..first + length {
            if self.random.chance(share) {
                self.change(i);
            }
        }
        if self.touched.is_empty() {
            self.change(first);
        }
    }

    /// Changes a coordinate to another value.
    #[inline]
    fn change(&mut self, i: usize) {
        let (axis, old) = (self.space.axis(i), self.point[i]);
        let random = &mut *self.random;
        let new = match axis {
            Axis::Unordered { last: 1.0 } => 1.0 - old,
            Axis::Unordered { .. } => axis.draw_other_within(axis.extent(), old, random),
            Axis::Ordered { last: 1.0, .. } => 1.0 - old,
            Axis::Ordered { last, .. } => {
                let step = heavy_tailed(1.0, (last as usize).max(1), random) as f64;
                let step = if random.chance(0.5) { step } else { -step };
                let (there, back) = (old + step, old - step);
                let is_inside = |x: &f64| (0.0..=last).contains(x);
                [there, back].into_iter().find(is_inside).unwrap_or_else(|| axis.draw(random))
            }
            Axis::Continuous { low, high } => {
                let length = MIN_STEP.powf(random.unit()) * (high - low);
                let step = if random.chance(0.5) { length } else { -length };
                (old + step).clamp(low, high)
            }
        };
        self.set(i, old, new);
    }

    /// Exchanges the values of two coordinates of the same group. If none has another value, one is changed.
    fn swap(&mut self, groups: &[Vec<u32>], group_of: &[u32]) {
        let i = self.random.index(self.point.len());
        let group = &groups[group_of[i] as usize];
        for _ in 0..MAX_TRIES {
            let j = group[self.random.index(group.len())] as usize;
            let (old, new) = (self.point[i], self.point[j]);
            if old != new {
                self.set(i, old, new);
                self.set(j, new, old);
                return;
            }
        }
        self.change(i);
    }

    #[inline]
    fn set(&mut self, i: usize, old: f64, new: f64) {
        self.point[i] = new;
        self.key = self.space.changed_key(self.key, i, old, new);
        self.touched.push(i as u32);
    }
}

impl Search for EvolutionSearch {
    type Mark = Move;

    fn prepare(&mut self, space: &Space, _: usize) -> Result<()> {
        self.harmless = self.harm.iter().filter(|&&harm| harm <= HARMLESS).count();
        self.disagreement = vec![0; space.dimension()];
        self.compare();
        // Axes are equal if they are written alike.
        let mut places: HashMap<String, u32> = HashMap::new();
        (self.groups, self.group_of) = (Vec::new(), vec![0; space.dimension()]);
        for (range, axis) in space.axes() {
            let next = self.groups.len() as u32;
            let place = *places.entry(format!("{axis:?}")).or_insert(next);
            if place == next {
                self.groups.push(Vec::new());
            }
            self.groups[place as usize].extend(range.clone().map(|i| i as u32));
            self.group_of[range].fill(place);
        }
        if self.groups.iter().all(|group| group.len() < 2) {
            self.groups.clear();
        }
        Ok(())
    }

    fn propose(&mut self, tools: &mut Tools<'_, Move>) -> Option<Proposal<Move>> {
        let mut point = tools.buffer();
        // A sweep leaves out what was seen, however much that is.
        let tries = self.order.len().saturating_sub(self.swept as usize) + MAX_TRIES;
        let mut mark = self.choose(tools.ledger.next_id(), tools.random);
        if let Move::Start(start) = mark {
            self.keep_optimum();
            self.restarts += u64::from(self.solution.is_some());
            self.idle = 0;
            if start == Start::Random || tools.best.sample().is_none() {
                let key = tools.draw(&mut point)?;
                return Some(Proposal { point, key, mark });
            }
        }
        let mut holds_solution = false;
        self.scratch.touched_by = None;
        let found = tools.try_unseen(tries, &mut point, |tools, attempt, point| {
            if attempt > 0 && !matches!(mark, Move::Start(_)) {
                mark = match self.choose(tools.ledger.next_id(), tools.random) {
                    // Nothing near is left to try: leaps go further.
                    Move::Start(_) => Move::Leap(1),
                    other => other,
                };
            }
            let base = match mark {
                Move::Start(_) => tools.best.sample(),
                _ => self.solution.as_ref(),
            };
            let Some(Sample { point: from, key, .. }) = base else { return u64::MAX };
            let key = *key;
            // What an attempt has changed is changed back for the next.
            let touched = &mut self.scratch.touched;
            match holds_solution {
                true => touched.iter().for_each(|&i| point[i as usize] = from[i as usize]),
                false => point.copy_from_slice(from),
            }
            touched.clear();
            holds_solution = true;
            self.write(mark, tools, point, key)
        });
        let Some(key) = found else {
            let key = tools.draw(&mut point)?;
            return Some(Proposal { point, key, mark });
        };
        // Rules may change a proposed point.
        if !matches!(mark, Move::Start(_)) && !tools.space.has_rules() {
            self.scratch.touched_by = Some(tools.ledger.next_id());
        }
        Some(Proposal { point, key, mark })
    }

    fn learn(
        &mut self,
        evaluated: Evaluated<Move>,
        _: &mut Tools<'_, Move>,
    ) -> Result<Option<Box<[f64]>>> {
        let Evaluated { sample, asked, is_best } = evaluated;
        let (id, mark) = asked.map(|asked| (asked.id, asked.mark)).unzip();
        let rank = sample.rank;
        self.find_changed(id, &sample.point);
        let solution = self.solution.as_ref().map(|solution| solution.rank);
        let improves = solution.is_none_or(|solution| rank.beats(solution));
        let is_no_worse = solution.is_some_and(|solution| !solution.beats(rank));
        let n = self.order.len() as f64;
        let memory = (MOVE_MEMORY_PER_COORDINATE * n).max(MIN_MEMORY);
        match mark {
            Some(Move::Sweep) => self.changes[0].count(improves, memory),
            Some(Move::Leap(size)) => self.changes[usize::from(size)].count(improves, memory),
            Some(Move::Swap(_)) => self.swaps.count(improves, memory),
            Some(Move::Mix) => self.mixes.count(improves, memory),
            Some(Move::Drift) => self.drifts.count(improves, memory),
            Some(Move::Window) => self.windows.count(improves, memory),
            Some(Move::Start(_)) | None => {}
        }
        if !matches!(mark, Some(Move::Start(_)) | None) {
            self.blame(improves, is_no_worse);
        } else {
            self.harm.fill(ASSUMED_HARM);
            self.harmless = 0;
        }
        let memory = (START_MEMORY_PER_COORDINATE * n).max(MIN_MEMORY);
        self.starts[self.start as usize].count(is_best, memory);
        let takes = match mark {
            Some(Move::Start(start)) => {
                self.start = start;
                true
            }
            Some(_) => is_no_worse,
            None => improves,
        };
        if !takes {
            return Ok(Some(sample.point));
        }
        if improves || matches!(mark, Some(Move::Start(_))) {
            (self.swept, self.idle) = (0, 0);
        }
        Ok(self.replace(sample))
    }

    fn is_sound(&self, space: &Space, ledger: &Ledger<Move>) -> Result<bool> {
        let n = space.dimension();
        let has_credit = |mark: &Move| match mark {
            Move::Leap(size) | Move::Swap(size) => usize::from(*size) < self.changes.len(),
            _ => true,
        };
        let mut sorted = self.order.clone();
        sorted.sort_unstable();
        Ok(sorted.iter().map(|&i| i as usize).eq(0..n)
            && self.place <= n
            && self.changes.len() == sizes(n)
            && ledger.marks().all(has_credit)
            && self.solution.iter().chain(&self.optima).all(|sample| sample.is_sound(space))
            && self.optima.len() <= MAX_OPTIMA
            && self.oldest <= self.optima.len()
            && self.harm.len() == n
            && self.harm.iter().all(|harm| (MIN_HARM..=MAX_HARM).contains(harm))
            && self.swept < ID_HEADROOM
            && self.idle < ID_HEADROOM
            && self.restarts < ID_HEADROOM
            && self
                .changes
                .iter()
                .chain([&self.mixes, &self.swaps, &self.drifts, &self.windows])
                .chain(&self.starts)
                .all(Credit::is_sound))
    }

    fn restarts(&self) -> u64 {
        self.restarts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizers::Algorithm;
    use crate::outcome::Outcome;
    use crate::space::Domain;

    fn bits(n: usize) -> Space {
        Space::builder().array("x", n, Domain::categorical([false, true])).build().unwrap()
    }

    /// The best value that an algorithm finds.
    fn best(name: &str, n: usize, budget: u64, seed: u64, value: &dyn Fn(&[f64]) -> f64) -> f64 {
        let algorithm: Algorithm = name.parse().unwrap();
        let mut optimizer = algorithm.optimizer(&bits(n), Some(budget), seed).unwrap();
        for _ in 0..budget {
            let candidate = optimizer.ask().unwrap();
            let outcome = Outcome::from(value(candidate.point()));
            optimizer.tell(candidate, outcome).unwrap();
        }
        optimizer.best().and_then(|best| best.rank.value()).unwrap()
    }

    #[test]
    fn separable_bits_are_solved_in_a_few_evaluations_per_coordinate() {
        let zeros =
            |x: &[f64]| x.iter().zip(0..).filter(|(x, i)| **x != f64::from(i % 2)).count() as f64;
        assert!((0..10).all(|seed| best("evolution", 100, 800, seed, &zeros) == 0.0));
    }

    #[test]
    fn coordinates_that_do_no_harm_drift_together() {
        // LeadingOnes: all that follows the first zero has no effect.
        let zeros = |x: &[f64]| 100.0 - x.iter().take_while(|x| **x == 1.0).count() as f64;
        let runs = 5;
        let mean = |name: &str| {
            (0..runs).map(|seed| best(name, 100, 1500, seed, &zeros)).sum::<f64>() / runs as f64
        };
        // Without drifts half of the bits are left.
        assert!(mean("evolution") < 30.0, "{}", mean("evolution"));
    }

    #[test]
    fn blocks_side_by_side_are_found_by_windows() {
        // Epistasis: changing one bit of four changes at least three bits of what counts.
        let missing = |x: &[f64]| {
            let others = x[1..].iter().sum::<f64>();
            let ones =
                x[1..].iter().filter(|x| (others - **x) % 2.0 == 1.0).count() as f64 + others % 2.0;
            if x[0] == 1.0 { ones } else { 4.0 - ones }
        };
        let blocks = |x: &[f64]| x.chunks(4).map(missing).sum::<f64>();
        let mean =
            |name: &str| (0..5).map(|seed| best(name, 128, 3840, seed, &blocks)).sum::<f64>() / 5.0;
        // Without windows 24 are left, and about 20 by a (1+1) EA whose rate falls.
        assert!(mean("evolution") < 14.0, "{}", mean("evolution"));
    }

    #[test]
    fn linked_bits_are_found_and_mixed() {
        // Blocks of four: all ones are best, and fewer ones lead away from them.
        let block = |x: &[f64]| match x.iter().sum::<f64>() {
            4.0 => 0.0,
            ones => 1.0 + ones,
        };
        let traps = |x: &[f64]| x.chunks(4).map(block).sum::<f64>();
        let mean = |name: &str| {
            (0..10).map(|seed| best(name, 40, 12_000, seed, &traps)).sum::<f64>() / 10.0
        };
        assert!(mean("evolution") < 1.0, "{}", mean("evolution"));
        assert!(mean("random") > 8.0);
    }

    #[test]
    fn the_coordinate_that_agrees_with_the_first_has_the_most_information() {
        let words = [0b1100_1010, 0b1111_0000, 0b0011_0101, 0, 0b1010_1010];
        let entropies: Vec<f64> =
            (0..=8).map(|k| if k == 0 { 0.0 } else { f64::from(k) * f64::from(k).ln() }).collect();
        let mut information = Vec::new();
        linked(&words, 0, 8, &entropies, &mut information);
        information.sort_by(|a, b| b.0.total_cmp(&a.0));
        // Always the opposite of the first; where all agree, there is nothing to copy.
        let order: Vec<u32> = information.iter().map(|entry| entry.1).collect();
        assert_eq!(order[..2], [0, 2]);
        assert_eq!(order.len(), 4);
    }

    #[test]
    fn a_swap_keeps_the_values_of_each_kind_of_coordinate() {
        let space = Space::builder()
            .array("x", 9, Domain::categorical(["a", "b", "c"]))
            .integers("i", 5, 0, 6)
            .categorical("single", ["a", "b"])
            .build()
            .unwrap();
        let mut random = Random::new(1);
        let setup = Setup { space: &space, budget: None, seed: 1 };
        let mut search = EvolutionSearch::new(setup, &mut random);
        search.prepare(&space, 0).unwrap();
        let mut point = vec![0.0; space.dimension()];
        space.draw(&mut random, &mut point);
        let sorted = |part: &[f64]| {
            let mut part = part.to_vec();
            part.sort_by(f64::total_cmp);
            part
        };
        let (mut moved, first) = (0, point.clone());
        for _ in 0..200 {
            let (before, key) = (point.clone(), space.key(&point));
            let touched = Vec::new();
            let mut draft =
                Draft { space: &space, random: &mut random, point: &mut point, key, touched };
            draft.swap(&search.groups, &search.group_of);
            assert_eq!(draft.key, space.key(draft.point));
            assert_ne!(point, before);
            // The last coordinate has none like it, and is changed.
            moved += usize::from(point[14] == before[14]);
            assert_eq!(sorted(&point[..9]), sorted(&first[..9]));
            assert_eq!(sorted(&point[9..14]), sorted(&first[9..14]));
        }
        assert!(moved > 150);
        let alone = Space::builder().boolean("a").integer("b", 0, 5).build().unwrap();
        let setup = Setup { space: &alone, ..setup };
        let mut search = EvolutionSearch::new(setup, &mut random);
        search.prepare(&alone, 0).unwrap();
        assert!(search.groups.is_empty());
    }

    #[test]
    fn permutations_are_sorted_by_swaps() {
        // Each place has a price, and a value that is taken again has a higher one.
        let space = Space::builder()
            .array("x", 16, Domain::categorical((0..16).map(i64::from)))
            .build()
            .unwrap();
        let price = |x: &[f64]| {
            let way: f64 = x.iter().enumerate().map(|(i, x)| (x - i as f64).abs()).sum();
            let repeated = (0..16).filter(|v| !x.contains(&f64::from(*v))).count();
            way + 50.0 * repeated as f64
        };
        let mean = |name: &str| {
            let run = |seed: u64| {
                let algorithm: Algorithm = name.parse().unwrap();
                let mut optimizer = algorithm.optimizer(&space, Some(3000), seed).unwrap();
                for _ in 0..3000 {
                    let candidate = optimizer.ask().unwrap();
                    let outcome = Outcome::from(price(candidate.point()));
                    optimizer.tell(candidate, outcome).unwrap();
                }
                optimizer.best().and_then(|best| best.rank.value()).unwrap()
            };
            (0..5).map(run).sum::<f64>() / 5.0
        };
        assert!(mean("evolution") < 4.0, "{}", mean("evolution"));
        assert!(mean("race-cars") > 10.0, "{}", mean("race-cars"));
    }

    #[test]
    fn heavy_tails_keep_to_their_range() {
        let mut random = Random::new(1);
        for exponent in [1.0, 1.5] {
            for most in [1, 2, 7, 1000] {
                let drawn: Vec<usize> =
                    (0..2000).map(|_| heavy_tailed(exponent, most, &mut random)).collect();
                assert!(drawn.iter().all(|size| (1..=most).contains(size)));
                let ones = drawn.iter().filter(|&&size| size == 1).count();
                assert!(most == 1 || (150..1900).contains(&ones), "{exponent} {most} {ones}");
            }
        }
        assert_eq!(nth_bit(0b1011_0000, 1), 5);
    }
}
