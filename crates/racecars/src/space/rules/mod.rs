//! What a point must satisfy beyond the ranges of its coordinates: conditions under which a coordinate is
//! active, constraints, and arrays whose coordinates belong together.
//!
//! Inactive coordinates have their default code, so that points that differ in nothing else are equal.
//! Optimizers propose points of the box, and [`Rules::settle`] makes them satisfy the rules.

mod examples;
mod expression;
mod predicate;
mod structure;
mod syntax;

pub(super) use predicate::Predicate;
pub(crate) use structure::StepSize;
pub use structure::Structure;

use super::{Axis, Entry, Interval, Space};
use crate::error::{Error, Result};
use crate::random::Random;
use expression::{Expression, View};

/// The rules of a space.
#[derive(Debug)]
pub(super) struct Rules {
    /// The condition of each entry.
    conditions: Vec<Option<Expression>>,
    /// The entries that have a condition, each after those that its condition depends on.
    conditional: Vec<usize>,
    constraints: Vec<Expression>,
    /// Constraints that are functions. They are called only where everything else is satisfied.
    predicates: Vec<Predicate>,
    /// For functions: the same entries without constraints.
    unconstrained: Option<Space>,
    /// The entries that have a structure.
    structured: Vec<usize>,
    /// The codes of inactive coordinates.
    default: Vec<f64>,
    /// Some points that satisfy the rules. At least one.
    examples: Vec<Box<[f64]>>,
    /// The share of draws from the box that satisfied each constraint alone, each function where it was called, and
    /// then all.
    shares: Vec<f64>,
}

/// Points that satisfy the rules to start walks from.
const MAX_EXAMPLES: usize = 16;
/// Draws from the box before a point is drawn by a walk.
const MAX_DRAWS: usize = 64;

/// Halvings of the way between a point that satisfies the constraints and one that does not.
const HALVINGS: usize = 24;

impl Rules {
    /// The rules of these entries; `None` if there are none. The error names the condition or constraint that
    /// cannot be read or satisfied.
    pub(super) fn new(
        entries: &[Entry],
        constraints: &[String],
        predicates: &[Predicate],
    ) -> Result<Option<Rules>> {
        let structured: Vec<usize> =
            (0..entries.len()).filter(|&i| entries[i].structure.is_some()).collect();
        let is_free = constraints.is_empty()
            && predicates.is_empty()
            && structured.is_empty()
            && entries.iter().all(|entry| entry.condition.is_none());
        if is_free {
            return Ok(None);
        }
        let condition = |entry: &Entry| {
            let Some(text) = &entry.condition else { return Ok(None) };
            Expression::new(text, entries).map(Some).map_err(|what| {
                Error::space(format!("coordinate `{}`: condition `{text}`: {what}", entry.name))
            })
        };
        let conditions = entries.iter().map(condition).collect::<Result<Vec<_>>>()?;
        let constraint = |text: &String| {
            Expression::new(text, entries)
                .map_err(|what| Error::space(format!("constraint `{text}`: {what}")))
        };
        let mut rules = Rules {
            conditional: in_order(entries, &conditions)?,
            conditions,
            constraints: constraints.iter().map(constraint).collect::<Result<_>>()?,
            predicates: predicates.to_vec(),
            unconstrained: match predicates {
                [] => None,
                _ => Some(Space::from_entries(entries.to_vec(), &[], &[])?),
            },
            structured,
            default: Vec::new(),
            examples: Vec::new(),
            shares: Vec::new(),
        };
        for entry in entries {
            let start = rules.default.len();
            rules.default.resize(entry.range().end, entry.axis.middle());
            if let Some(structure) = &entry.structure {
                let codes = &mut rules.default[start..];
                codes.iter_mut().enumerate().for_each(|(i, code)| {
                    *code = if let Structure::Permutation = structure { i as f64 } else { 0.0 };
                });
                structure.mend(codes, &mut Random::new(0));
            }
        }
        rules.find_examples(entries)?;
        Ok(Some(rules))
    }

    /// Whether each entry is active.
    pub(super) fn active(&self, entries: &[Entry], point: &[f64]) -> Vec<bool> {
        let mut active: Vec<bool> = self.conditions.iter().map(Option::is_none).collect();
        for &entry in &self.conditional {
            let Some(condition) = &self.conditions[entry] else { continue };
            active[entry] =
                condition.violation(View { entries, point, active: &active }) == Some(0.0);
        }
        active
    }

    /// Why a point of the box breaks the rules; `None` if it does not.
    pub(super) fn obstacle(&self, entries: &[Entry], point: &[f64]) -> Option<String> {
        for &i in &self.structured {
            if let Some(structure) = &entries[i].structure
                && !structure.admits(&point[entries[i].range()])
            {
                let name = &entries[i].name;
                return Some(match structure {
                    Structure::Permutation => format!("`{name}` has an item twice"),
                    Structure::Subset { least, most, .. } => {
                        format!("`{name}` does not have {least} to {most} items")
                    }
                    Structure::Simplex => format!("the shares of `{name}` do not add up to 1"),
                });
            }
        }
        let active = self.active(entries, point);
        let is_default = |i: usize| point[entries[i].range()] == self.default[entries[i].range()];
        if let Some(i) = (0..entries.len()).find(|&i| !active[i] && !is_default(i)) {
            let name = &entries[i].name;
            return Some(format!("`{name}` is inactive, but does not have its default value"));
        }
        let view = View { entries, point, active: &active };
        let is_broken = |constraint: &&Expression| is_violated(constraint.violation(view));
        if let Some(broken) = self.constraints.iter().find(is_broken) {
            return Some(format!("it does not satisfy `{}`", broken.text));
        }
        let broken = (0..self.predicates.len()).find(|&i| !self.predicate_holds(i, point))?;
        Some(format!("it does not satisfy the function `{}`", self.predicates[broken].name()))
    }

    /// The number of constraints, functions included.
    fn count(&self) -> usize {
        self.constraints.len() + self.predicates.len()
    }

    fn predicate_holds(&self, i: usize, point: &[f64]) -> bool {
        let space = self.unconstrained.as_ref();
        space.is_none_or(|space| self.predicates[i].holds(space, point))
    }

    /// Whether a point of the box satisfies the rules.
    pub(super) fn admits(&self, entries: &[Entry], point: &[f64]) -> bool {
        self.obstacle(entries, point).is_none()
    }

    /// Sets inactive coordinates to their default. Returns which entries are active.
    pub(super) fn set_inactive(&self, entries: &[Entry], point: &mut [f64]) -> Vec<bool> {
        let active = self.active(entries, point);
        for &entry in self.conditional.iter().filter(|&&entry| !active[entry]) {
            let range = entries[entry].range();
            point[range.clone()].copy_from_slice(&self.default[range]);
        }
        active
    }

    /// The sum of the violations of the first `count` constraints. A function that does not hold counts 1, and so
    /// does each that is not called.
    fn violation(&self, entries: &[Entry], point: &[f64], active: &[bool], count: usize) -> f64 {
        let view = View { entries, point, active };
        let expressions = &self.constraints[..count.min(self.constraints.len())];
        let sum: f64 = expressions.iter().map(|c| c.violation(view).unwrap_or(0.0)).sum();
        let called = count - expressions.len();
        let holds = |i: &usize| sum == 0.0 && self.predicate_holds(*i, point);
        sum + (called - (0..called).take_while(holds).count()) as f64
    }

    /// Sets inactive coordinates to their default, and says whether the constraints are satisfied.
    fn is_satisfied(&self, entries: &[Entry], point: &mut [f64]) -> bool {
        let active = self.set_inactive(entries, point);
        self.violation(entries, point, &active, self.count()) == 0.0
    }

    /// Changes a point of the box so that it satisfies the rules. Where it breaks a constraint, it moves
    /// towards `anchor`, which satisfies them, no farther than it has to. A coordinate that is active here but
    /// not in the anchor, and has its default only for that reason, is drawn.
    pub(super) fn settle(
        &self,
        entries: &[Entry],
        point: &mut [f64],
        anchor: Option<&[f64]>,
        random: &mut Random,
    ) {
        let anchor = anchor.unwrap_or_else(|| self.example(random));
        self.activate(entries, point, anchor, random);
        if !self.is_satisfied(entries, point) {
            self.approach(entries, point, anchor, random);
        }
        debug_assert_eq!(
            self.obstacle(entries, point),
            None,
            "a settled point satisfies the rules"
        );
    }

    /// Mends arrays that belong together, sets inactive coordinates to their default, and draws those that are active
    /// here but not in the anchor, and have their default only for that reason. Satisfies structures and conditions,
    /// and no constraints.
    pub(super) fn activate(
        &self,
        entries: &[Entry],
        point: &mut [f64],
        anchor: &[f64],
        random: &mut Random,
    ) {
        for &i in &self.structured {
            if let Some(structure) = &entries[i].structure
                && !structure.admits(&point[entries[i].range()])
            {
                structure.mend(&mut point[entries[i].range()], random);
            }
        }
        let before = self.active(entries, anchor);
        for &entry in &self.conditional {
            let active = self.set_inactive(entries, point);
            let range = entries[entry].range();
            let is_new = active[entry]
                && !before[entry]
                && point[range.clone()] == self.default[range.clone()];
            if is_new {
                draw(&entries[entry], &mut point[range], random);
            }
        }
        self.set_inactive(entries, point);
    }

    /// Moves a point towards the anchor until it satisfies the constraints.
    fn approach(&self, entries: &[Entry], point: &mut [f64], anchor: &[f64], random: &mut Random) {
        let target = point.to_vec();
        // What has an order moves on a straight line, everything else stays.
        let on_line = |t: f64, out: &mut [f64]| {
            out.copy_from_slice(&target);
            for entry in entries {
                let has_order = !matches!(entry.axis, Axis::Unordered { .. });
                for i in entry.range().filter(|_| has_order) {
                    let x = anchor[i] + t * (target[i] - anchor[i]);
                    let is_real = matches!(entry.axis, Axis::Continuous { .. });
                    let Interval { low, high } = entry.axis.extent();
                    out[i] = if is_real { x } else { x.round() }.clamp(low, high);
                }
            }
        };
        point.copy_from_slice(anchor);
        let mut trial = target.clone();
        on_line(0.0, &mut trial);
        if self.is_satisfied(entries, &mut trial) {
            point.copy_from_slice(&trial);
            let (mut inside, mut outside) = (0.0, 1.0);
            for _ in 0..HALVINGS {
                let middle = 0.5 * (inside + outside);
                on_line(middle, &mut trial);
                if self.is_satisfied(entries, &mut trial) {
                    inside = middle;
                    point.copy_from_slice(&trial);
                } else {
                    outside = middle;
                }
            }
        }
        self.slide(entries, point, &target, random);
    }

    /// Moves coordinates, or whole arrays that belong together, one after the other towards the target, as far
    /// as the constraints allow: along a boundary, if the point is at one. The second round makes use of what
    /// the first one left free.
    fn slide(&self, entries: &[Entry], point: &mut [f64], target: &[f64], random: &mut Random) {
        // Functions may be slow.
        let (rounds, max_units, halvings) =
            if self.predicates.is_empty() { (2, 64, 12) } else { (1, 16, 6) };
        let mut units: Vec<(usize, std::ops::Range<usize>)> = Vec::new();
        for (i, entry) in entries.iter().enumerate() {
            match entry.structure {
                Some(_) => units.push((i, entry.range())),
                None => units.extend(entry.range().map(|index| (i, index..index + 1))),
            }
        }
        let mut trial = point.to_vec();
        for _ in 0..rounds {
            units.retain(|(_, unit)| target[unit.clone()] != point[unit.clone()]);
            random.shuffle(&mut units);
            for (i, unit) in units.iter().take(max_units) {
                trial.copy_from_slice(point);
                trial[unit.clone()].copy_from_slice(&target[unit.clone()]);
                if self.is_satisfied(entries, &mut trial) {
                    point.copy_from_slice(&trial);
                    continue;
                }
                let (axis, index) = (entries[*i].axis, unit.start);
                let is_number =
                    entries[*i].structure.is_none() && !matches!(axis, Axis::Unordered { .. });
                if !is_number {
                    continue;
                }
                let (mut inside, mut outside) = (point[index], target[index]);
                for _ in 0..halvings {
                    let middle = 0.5 * (inside + outside);
                    let middle = if axis.count().is_some() { middle.round() } else { middle };
                    if middle == inside || middle == outside {
                        break;
                    }
                    trial.copy_from_slice(point);
                    trial[index] = middle;
                    if self.is_satisfied(entries, &mut trial) {
                        inside = middle;
                        point.copy_from_slice(&trial);
                    } else {
                        outside = middle;
                    }
                }
            }
        }
    }

    /// Draws a point: from the box if one of some draws satisfies the constraints, which is then uniform, and
    /// otherwise by a walk.
    pub(super) fn draw(&self, entries: &[Entry], point: &mut [f64], random: &mut Random) {
        for _ in 0..MAX_DRAWS {
            self.draw_from_box(entries, point, random);
            if self.is_satisfied(entries, point) {
                return;
            }
        }
        point.copy_from_slice(self.example(random));
        self.walk(entries, point, random);
    }

    fn draw_from_box(&self, entries: &[Entry], point: &mut [f64], random: &mut Random) {
        entries.iter().for_each(|entry| draw(entry, &mut point[entry.range()], random));
    }

    /// Walks within the constraints, coordinate by coordinate: a slice sampler (R. Neal, "Slice sampling",
    /// 2003, section 4.1), whose stationary distribution is uniform. An interval shrinks towards the current
    /// value with each draw that breaks a constraint.
    fn walk(&self, entries: &[Entry], point: &mut [f64], random: &mut Random) {
        const SWEEPS: usize = 3;
        const MAX_STEPS: usize = 300;
        let n = point.len();
        let steps = (SWEEPS * n).min(MAX_STEPS);
        let mut trial = point.to_vec();
        for step in 0..steps {
            let index = if steps < SWEEPS * n { random.below(n as u64) as usize } else { step % n };
            let i = entry_at(entries, index);
            if !self.active(entries, point)[i] {
                continue;
            }
            let entry = &entries[i];
            let mut interval = entry.axis.extent();
            for _ in 0..HALVINGS {
                trial.copy_from_slice(point);
                let (old, new) = match &entry.structure {
                    Some(structure) => {
                        structure.step(StepSize::draw(random), &mut trial[entry.range()], random);
                        (0.0, 0.0)
                    }
                    None => {
                        let new = entry.axis.draw_within(interval, random);
                        trial[index] = new;
                        (point[index], new)
                    }
                };
                if self.is_satisfied(entries, &mut trial) {
                    point.copy_from_slice(&trial);
                    break;
                }
                if matches!(entry.axis, Axis::Unordered { .. }) || new == old {
                    continue;
                }
                let end = if new < old { &mut interval.low } else { &mut interval.high };
                *end = new;
            }
        }
    }

    fn example(&self, random: &mut Random) -> &[f64] {
        &self.examples[random.below(self.examples.len() as u64) as usize]
    }

    /// The default of every coordinate: the middle of its range.
    pub(super) fn default(&self) -> &[f64] {
        &self.default
    }

    /// The constraints as given.
    pub(super) fn constraints(&self) -> impl Iterator<Item = &str> {
        self.constraints.iter().map(|constraint| constraint.text.as_str())
    }

    /// The constraints that are functions.
    pub(super) fn predicates(&self) -> &[Predicate] {
        &self.predicates
    }

    /// The share of the box that satisfies each constraint alone, and then all, by draws.
    pub(super) fn shares(&self) -> &[f64] {
        &self.shares
    }
}

/// Changes one active coordinate, within `share` times its axis, or takes a step in an array that belongs
/// together. All are active if `active` is not given.
pub(super) fn step(
    entries: &[Entry],
    active: Option<&[bool]>,
    size: StepSize,
    share: f64,
    point: &mut [f64],
    random: &mut Random,
) {
    let (mut index, mut entry);
    loop {
        index = random.index(point.len());
        let i = entry_at(entries, index);
        entry = &entries[i];
        // At least one is active: conditions depend on others, and not in a circle.
        if active.is_none_or(|active| active[i]) {
            break;
        }
    }
    if let Some(structure) = &entry.structure {
        return structure.step(size, &mut point[entry.range()], random);
    }
    let old = point[index];
    let interval = match entry.axis {
        Axis::Unordered { .. } => entry.axis.extent(),
        Axis::Continuous { .. } => entry.axis.around(old, share),
        Axis::Ordered { .. } => {
            // At least the neighbours.
            let Interval { low, high } = entry.axis.around(old, share);
            let last = entry.axis.extent().high;
            Interval { low: low.min(old - 1.0).max(0.0), high: high.max(old + 1.0).min(last) }
        }
    };
    point[index] = entry.axis.draw_other_within(interval, old, random);
}

/// Whether a constraint is false: one that depends on an inactive coordinate is not.
fn is_violated(violation: Option<f64>) -> bool {
    violation.is_some_and(|violation| violation > 0.0)
}

/// The entry of a coordinate.
fn entry_at(entries: &[Entry], index: usize) -> usize {
    entries.partition_point(|entry| entry.range().end <= index)
}

pub(super) fn draw(entry: &Entry, codes: &mut [f64], random: &mut Random) {
    match &entry.structure {
        Some(structure) => structure.draw(codes, random),
        None => entry.axis.fill(random, codes),
    }
}

/// The entries that have a condition, each after those that its condition depends on.
fn in_order(entries: &[Entry], conditions: &[Option<Expression>]) -> Result<Vec<usize>> {
    let mut is_placed: Vec<bool> = conditions.iter().map(Option::is_none).collect();
    let mut order = Vec::new();
    loop {
        let is_next = |i: &usize| {
            let condition = conditions[*i].as_ref();
            !is_placed[*i] && condition.is_some_and(|c| c.entries.iter().all(|&e| is_placed[e]))
        };
        let next: Vec<usize> = (0..entries.len()).filter(is_next).collect();
        if next.is_empty() {
            break;
        }
        next.iter().for_each(|&i| is_placed[i] = true);
        order.extend(next);
    }
    match is_placed.iter().position(|is_placed| !is_placed) {
        None => Ok(order),
        Some(i) => Err(Error::space(format!(
            "coordinate `{}`: its condition depends on the coordinate itself, directly or through others",
            entries[i].name
        ))),
    }
}
