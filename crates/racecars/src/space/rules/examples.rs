//! Points that satisfy the rules, found when a space is made: walks and repairs start from them.

use super::expression::View;
use super::{MAX_EXAMPLES, Rules, StepSize, is_violated, step};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::space::Entry;

/// If draws give fewer, more are searched for.
const MIN_EXAMPLES: usize = 4;

impl Rules {
    /// Finds points that satisfy the constraints. The error names the first constraint that none satisfies
    /// together with those before it.
    pub(super) fn find_examples(&mut self, entries: &[Entry]) -> Result<()> {
        /// Numbers drawn at most to estimate the shares.
        const MAX_NUMBERS: usize = 4_000_000;
        const MAX_POINTS: usize = 500;
        let (n, count) = (self.default.len(), self.count());
        let mut random = Random::new(1);
        let mut point = vec![0.0; n];
        // Of each constraint: how often it was checked and how often it held.
        let mut checks = vec![0u32; count];
        let mut hits = vec![0u32; count];
        let mut admitted = 0u32;
        let mut examples: Vec<Box<[f64]>> = Vec::new();
        let draws = (MAX_NUMBERS / n).clamp(MAX_EXAMPLES, MAX_POINTS);
        for _ in 0..draws {
            self.draw_from_box(entries, &mut point, &mut random);
            let active = self.set_inactive(entries, &mut point);
            let view = View { entries, point: &point, active: &active };
            let mut is_admitted = true;
            for i in 0..count {
                // Functions are only called where all before them holds.
                let holds = match self.constraints.get(i) {
                    Some(constraint) => !is_violated(constraint.violation(view)),
                    None if !is_admitted => break,
                    None => self.predicate_holds(i - self.constraints.len(), &point),
                };
                checks[i] += 1;
                hits[i] += u32::from(holds);
                is_admitted &= holds;
            }
            admitted += u32::from(is_admitted);
            if is_admitted && examples.len() < MAX_EXAMPLES {
                examples.push(point.clone().into());
            }
        }
        let share =
            |hits: u32, of: u32| if of == 0 { 1.0 } else { f64::from(hits) / f64::from(of) };
        self.shares = hits.iter().zip(&checks).map(|(&hits, &of)| share(hits, of)).collect();
        self.shares.push(share(admitted, draws as u32));
        if examples.is_empty() {
            for first in 1..=count {
                let Some(found) = self.descend(entries, first, &mut random) else {
                    return Err(self.empty(first - 1));
                };
                if first == count {
                    examples.push(found);
                }
            }
        }
        for _ in examples.len()..MIN_EXAMPLES {
            examples.extend(self.descend(entries, count, &mut random));
        }
        self.examples = examples;
        Ok(())
    }

    /// Searches a point that satisfies the first `count` constraints, by random changes that do not increase
    /// the violation.
    fn descend(&self, entries: &[Entry], count: usize, random: &mut Random) -> Option<Box<[f64]>> {
        const STARTS: usize = 8;
        let n = self.default.len();
        // A function says yes or no, which leads nowhere, and may be slow.
        let is_led = count <= self.constraints.len();
        let steps = if is_led { 2000 + 40 * n.min(1000) } else { 500 };
        let mut point = vec![0.0; n];
        let mut trial = vec![0.0; n];
        for _ in 0..STARTS {
            self.draw_from_box(entries, &mut point, random);
            let active = self.set_inactive(entries, &mut point);
            let mut violation = self.violation(entries, &point, &active, count);
            for _ in 0..steps {
                if violation == 0.0 {
                    return Some(point.into());
                }
                trial.copy_from_slice(&point);
                // Mostly one coordinate, and from the whole of an axis to a millionth.
                let share = (-14.0 * random.unit()).exp();
                while {
                    let size = StepSize::draw(random);
                    step(
                        entries,
                        Some(&self.active(entries, &trial)),
                        size,
                        share,
                        &mut trial,
                        random,
                    );
                    random.below(3) == 0
                } {}
                let active = self.set_inactive(entries, &mut trial);
                let changed = self.violation(entries, &trial, &active, count);
                if changed <= violation {
                    violation = changed;
                    std::mem::swap(&mut point, &mut trial);
                }
            }
        }
        None
    }

    /// Constraint `index` leaves no point.
    fn empty(&self, index: usize) -> Error {
        let what = match (self.constraints.get(index), index.checked_sub(self.constraints.len())) {
            (None, Some(i)) => format!("constraint function `{}`", self.predicates[i].name()),
            (constraint, _) => format!("constraint `{}`", constraint.map_or("", |c| &c.text)),
        };
        let others = if index == 0 { "" } else { " and those before it" };
        Error::space(format!("{what}: no point was found that satisfies it{others}"))
    }
}
