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

mod choice;
mod draft;
mod harm;
mod mixing;
#[cfg(test)]
mod tests;

use super::ledger::Ledger;
use super::saved::ID_HEADROOM;
use super::settings::settings;
use super::shell::{Evaluated, Proposal, Search, Setup, Tools};
use crate::classify::all_differences;
use crate::error::Result;
use crate::random::Random;
use crate::sample::Sample;
use crate::space::Space;
use choice::{
    ASSUMED_EVALUATIONS, ASSUMED_PER_COORDINATE, Credit, MIN_MEMORY, MOVE_MEMORY_PER_COORDINATE,
    START_MEMORY_PER_COORDINATE, WINDOW_ASSUMED_EVALUATIONS, sizes,
};
use draft::{Draft, heavy_tailed};
use harm::{ASSUMED_HARM, HARMLESS, MAX_HARM, MIN_HARM};
use mixing::{MAX_OPTIMA, disagreeing};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

settings! {
    /// Evolution has no settings.
    pub struct Evolution {}
}

/// The exponent of the power law of the number of changes of a start near the best point.
const LEAP_EXPONENT: f64 = 1.5;
/// Attempts at a point that was not seen before.
const MAX_TRIES: usize = 12;

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
