//! A search of some coordinates of a space while the others are held: the real ones of a mixed space by
//! `auto`, or those with an order by CMA-ES. A member of portfolios that is not an algorithm of its own.

use crate::error::Result;
use crate::optimizers::ledger::Ledger;
use crate::optimizers::nested::Nested;
use crate::optimizers::shell::{Evaluated, Proposal, Search, Setup, Tools};
use crate::optimizers::{Algorithm, Candidate};
use crate::outcome::Rank;
use crate::random::Random;
use crate::space::{Axis, Interval, Space};
use serde::{Deserialize, Serialize};

/// The coordinates that are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Part {
    /// The continuous ones.
    Real,
    /// All but categories of more than two values.
    Ordered,
}

impl Part {
    fn has(self, axis: Axis) -> bool {
        match (self, axis) {
            (_, Axis::Continuous { .. }) => true,
            (Part::Real, _) => false,
            (Part::Ordered, Axis::Unordered { last }) => last <= 1.0,
            (Part::Ordered, Axis::Ordered { .. }) => true,
        }
    }

    /// The number of coordinates.
    pub(crate) fn dimension(self, space: &Space) -> usize {
        let axes = space.axes().filter(|(_, axis)| self.has(*axis));
        axes.map(|(range, _)| range.len()).sum()
    }

    /// The space of these coordinates.
    fn space(self, space: &Space) -> Result<Space> {
        let mut builder = Space::builder();
        for entry in space.entries() {
            if self.has(space.axis(entry.range().start)) {
                let (name, domain) = (entry.name(), entry.domain().clone());
                builder = match entry.array_len() {
                    None => builder.coordinate(name, domain),
                    Some(count) => builder.array(name, count, domain),
                };
            }
        }
        builder.build()
    }

    /// The indices of these coordinates.
    fn indices(self, space: &Space) -> impl Iterator<Item = usize> {
        space.axes().filter(move |(_, axis)| self.has(*axis)).flat_map(|(range, _)| range)
    }
}

/// The search of a part of the coordinates.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HeldSearch {
    part: Part,
    /// The point that has the values of the other coordinates.
    held: Box<[f64]>,
    inner: Nested,
}

/// The inner optimizer's candidate of a pending candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct InnerCandidate {
    id: u64,
    key: u64,
    point: Box<[f64]>,
}

/// The inner optimizer may propose a point again, as a descent does that has converged. It is moved by up to this
/// part of each real axis, so that no point is evaluated twice.
const NUDGE: f64 = 1e-9;
const MAX_NUDGES: usize = 8;

impl HeldSearch {
    /// The name in saved states and in reports, of a search of the real coordinates.
    pub(crate) const REALS: &'static str = "reals";
    /// The same of a search of the coordinates with an order.
    pub(crate) const ORDERED: &'static str = "ordered";

    /// A search around a point, which is told to the inner optimizer if it has an outcome.
    pub(crate) fn new(
        part: Part,
        algorithm: &Algorithm,
        setup: Setup<'_>,
        held: &[f64],
        rank: Option<Rank>,
    ) -> Result<Self> {
        let Setup { space, budget, seed } = setup;
        let inner = algorithm.optimizer(&part.space(space)?, budget, seed)?;
        let mut search = HeldSearch { part, held: held.into(), inner: Nested::Open(inner) };
        if let Some(rank) = rank {
            search.tell_known(space, held, rank)?;
        }
        Ok(search)
    }

    fn tell_known(&mut self, space: &Space, point: &[f64], rank: Rank) -> Result<()> {
        let known = self.part.indices(space).map(|i| point[i]).collect::<Box<[f64]>>();
        self.inner.optimizer_mut().tell_rank(Candidate::known(known), rank)
    }

    /// Whether a point has the values that are held.
    fn is_inside(&self, space: &Space, point: &[f64]) -> bool {
        let held = |axis: Axis| !self.part.has(axis);
        (space.axes().filter(|(_, axis)| held(*axis)))
            .all(|(range, _)| self.held[range.clone()] == point[range])
    }
}

/// Moves the real coordinates a little.
fn nudge(space: &Space, random: &mut Random, point: &mut [f64]) {
    for i in Part::Real.indices(space) {
        let Interval { low, high } = space.axis(i).extent();
        let step = NUDGE * random.between(-1.0, 1.0) * (high - low);
        point[i] = (point[i] + step).clamp(low, high);
    }
}

impl Search for HeldSearch {
    type Mark = InnerCandidate;

    fn prepare(&mut self, space: &Space, depth: usize) -> Result<()> {
        self.inner.open(&self.part.space(space)?, depth)
    }

    fn propose(
        &mut self,
        tools: &mut Tools<'_, InnerCandidate>,
    ) -> Option<Proposal<InnerCandidate>> {
        let Candidate { id, point: inner, key, .. } = self.inner.optimizer_mut().ask()?;
        let mut point = tools.buffer();
        point.copy_from_slice(&self.held);
        for (i, x) in self.part.indices(tools.space).zip(&inner) {
            point[i] = *x;
        }
        let mark = InnerCandidate { id, key, point: inner };
        let key = tools.unseen(MAX_NUDGES, &mut point, |tools, attempt, point| {
            if attempt > 0 {
                nudge(tools.space, tools.random, point);
            }
            tools.space.key(point)
        })?;
        Some(Proposal { point, key, mark })
    }

    fn learn(
        &mut self,
        evaluated: Evaluated<InnerCandidate>,
        tools: &mut Tools<'_, InnerCandidate>,
    ) -> Result<Option<Box<[f64]>>> {
        let Evaluated { sample, asked, .. } = evaluated;
        match asked.map(|asked| asked.mark) {
            Some(InnerCandidate { id, key, point }) => {
                let inner = self.inner.optimizer_mut();
                let space = inner.space().fingerprint();
                let candidate = Candidate { id, space, key, point };
                match tools.measured {
                    Some(measured) => inner.tell_measured(candidate, sample.rank, measured)?,
                    None => inner.tell_rank(candidate, sample.rank)?,
                }
            }
            None if self.is_inside(tools.space, &sample.point) => {
                self.tell_known(tools.space, &sample.point, sample.rank)?;
            }
            None => {}
        }
        Ok(Some(sample.point))
    }

    fn is_sound(&self, space: &Space, ledger: &Ledger<InnerCandidate>) -> Result<bool> {
        let inner = self.part.space(space)?;
        let is_inside = |mark: &InnerCandidate| inner.check(&mark.point).is_ok();
        Ok(space.check(&self.held).is_ok() && ledger.marks().all(is_inside))
    }

    fn restarts(&self) -> u64 {
        self.inner.optimizer().restarts()
    }

    fn is_heavy(&self, _: &Space) -> bool {
        self.inner.optimizer().is_heavy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizers::shell::Shell;
    use crate::optimizers::{Optimizer, load};
    use crate::outcome::Outcome;
    use crate::run::minimize;

    fn mixed() -> Space {
        Space::builder()
            .categorical("c", ["a", "b", "c"])
            .reals("x", 3, -5.0, 5.0)
            .integer("i", 0, 9)
            .log_real("r", 1e-3, 1.0)
            .build()
            .unwrap()
    }

    fn held(part: Part, algorithm: &Algorithm) -> Shell<HeldSearch> {
        let space = mixed();
        let setup = Setup { space: &space, budget: Some(60), seed: 1 };
        let point = [2.0, 0.5, 0.5, 0.5, 7.0, -1.0];
        let rank = Some(Outcome::from(100.0).rank());
        let make = |_: &mut Random| HeldSearch::new(part, algorithm, setup, &point, rank);
        Shell::new(HeldSearch::REALS, setup, make).unwrap()
    }

    #[test]
    fn the_other_coordinates_are_held() {
        // A point that is evaluated twice to look for noise would be moved.
        let auto = "auto(noise=no)".parse().unwrap();
        let mut reals = held(Part::Real, &auto);
        let mut ordered = held(Part::Ordered, &Algorithm::cma_es());
        let mut integers = Vec::new();
        for _ in 0..60 {
            for (search, is_real) in [(&mut reals, true), (&mut ordered, false)] {
                let candidate = search.ask().unwrap();
                let point = candidate.point();
                assert!(point[0] == 2.0 && (!is_real || point[4] == 7.0), "{point:?}");
                integers.push(point[4]);
                let value: f64 = point.iter().map(|x| x * x).sum();
                search.tell(candidate, Outcome::from(value)).unwrap();
            }
        }
        integers.sort_by(f64::total_cmp);
        integers.dedup();
        assert!(integers.len() > 3, "{integers:?}");
        assert!(reals.best().unwrap().rank.value().unwrap() < 53.1);
    }

    #[test]
    fn one_integer_does_not_cost_the_methods_for_reals() {
        let space = Space::builder().integer("i", 0, 9).reals("x", 30, -5.0, 5.0).build().unwrap();
        // A valley of neighbours that depend on each other, with a condition number of some thousands.
        let best = |algorithm: Algorithm| {
            let run = minimize(&space).algorithm(algorithm).budget(3100).seed(1);
            let solution = run.run(|point| {
                let (integer, x) = (point.coordinates()[0], &point.coordinates()[1..]);
                let term = |(i, x): (usize, &[f64])| {
                    10f64.powf(i as f64 / 10.0) * (x[1] + 0.5 * x[0] - 1.0).powi(2)
                };
                let valley: f64 = x.windows(2).enumerate().map(term).sum();
                (integer - 3.0).powi(2) + (x[0] - 2.0).powi(2) + valley
            });
            solution.unwrap().value().unwrap()
        };
        let (auto, race_cars) = (best(Algorithm::auto()), best(Algorithm::race_cars()));
        assert!(auto < 0.1 * race_cars, "{auto} {race_cars}");
    }

    #[test]
    fn a_mixed_run_can_be_saved_while_coordinates_are_held() {
        let space = mixed();
        let mut optimizer = Algorithm::auto().optimizer(&space, Some(600), 1).unwrap();
        let value = |point: &[f64]| point.iter().map(|x| x * x).sum::<f64>();
        for count in 0..600 {
            if count % 97 == 0 {
                optimizer = load(&optimizer.save()).unwrap();
            }
            let candidate = optimizer.ask().unwrap();
            let outcome = Outcome::from(value(candidate.point()));
            optimizer.tell(candidate, outcome).unwrap();
        }
        let members = optimizer.portfolio().unwrap().members;
        let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
        assert_eq!(names, ["survey", "race-cars", HeldSearch::ORDERED, HeldSearch::REALS]);
    }
}
