//! Plain-language warnings: what a careful colleague would point out, with what to do about it.

use super::digest::{Digest, TrialStatus};
use super::importance::Importance;
use super::{failures, places};
use crate::outcome::{Direction, Outcome};
use racecars::{Axis, Space};
use serde::Serialize;

/// How many parameters a warning names.
const NAMED: usize = 6;
/// How near to the end of a range is at its edge, as a share of the range.
const EDGE: f64 = 0.01;
/// The share of failures that is worth a warning.
const MANY: f64 = 0.1;

/// Something to point out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Warning {
    level: Level,
    title: String,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    /// The result cannot be trusted.
    Bad,
    /// Something should be done.
    Warn,
    /// Good to know.
    Note,
}

/// All warnings about a study, the gravest first. `busy` is the share of time that workers were busy.
pub(super) fn warnings(digest: &Digest, importance: &Importance, busy: f64) -> Vec<Warning> {
    let mut list = List(Vec::new());
    list.journal(digest);
    list.failures(digest);
    list.values(digest);
    list.edges(digest, importance);
    list.effects(digest, importance);
    list.progress(digest);
    list.noise(digest);
    list.workers(digest, busy);
    list.0.sort_by_key(|warning| warning.level);
    list.0
}

struct List(Vec<Warning>);

impl List {
    fn add(&mut self, level: Level, title: impl Into<String>, text: impl Into<String>) {
        self.0.push(Warning { level, title: title.into(), text: text.into() });
    }

    fn journal(&mut self, digest: &Digest) {
        let damaged = &digest.damaged;
        let are = |count: usize| if count == 1 { "is" } else { "are" };
        if !damaged.is_empty() {
            let numbers: Vec<String> = damaged.iter().take(NAMED).map(u64::to_string).collect();
            let more = if damaged.len() > NAMED { ", ..." } else { "" };
            self.add(
                Level::Bad,
                "The journal is damaged",
                format!(
                    "{} could not be read and {} left out of this report: {}{more}.",
                    counted(damaged.len(), "line"),
                    are(damaged.len()),
                    numbers.join(", ")
                ),
            );
        }
        if digest.foreign > 0 {
            let count = digest.foreign as usize;
            let what = format!(
                "{} {} not of the space in the journal's first line; left out of this report.",
                counted(count, "proposal"),
                are(count)
            );
            self.add(Level::Bad, "Points of another space", what);
        }
    }

    fn failures(&mut self, digest: &Digest) {
        let (told, failed) = (digest.trials.len(), digest.count(TrialStatus::Failed));
        if told == 0 || failed == 0 {
            return;
        }
        let share = failed as f64 / told as f64;
        let common = digest.failures.iter().max_by_key(|(_, failures)| failures.count);
        let kind = common.map_or("unknown", |(kind, _)| *kind);
        let advice = match kind {
            "timeout" => "Raise --timeout, or leave slow settings out of the space.",
            "memory" => "Raise --memory, or leave greedy settings out of the space.",
            "unparseable" => "Look at what the program prints, and where the value is looked for.",
            "nan" => "The program prints a number that is none; find out when.",
            "not-started" => "The program could not be started: check its path.",
            _ => "The failures below show what the program wrote to standard error.",
        };
        if failed == told {
            self.add(
                Level::Bad,
                "Every evaluation failed",
                format!("None of {told} gave a value, mostly by {}. {advice}", spell(kind)),
            );
        } else if share >= MANY {
            let level = if share >= 0.5 { Level::Bad } else { Level::Warn };
            self.add(
                level,
                format!("{} of evaluations failed", percent(share)),
                format!("{failed} of {told}, mostly by {}. {advice}", spell(kind)),
            );
        }
        if let Some(trap) = failures::trap(digest) {
            let name = digest.plan.space.coordinate_name(trap.parameter);
            self.add(
                Level::Warn,
                format!("Failures where {name} is {}", trap.part),
                format!(
                    "There {} of evaluations failed, elsewhere {}. If that part of the range is of no \
                     use, leave it out.",
                    percent(trap.inside),
                    percent(trap.outside)
                ),
            );
        }
    }

    fn values(&mut self, digest: &Digest) {
        let values = digest.count(TrialStatus::Value);
        let infeasible = digest.count(TrialStatus::Infeasible);
        if values == 0 && infeasible > 0 {
            self.add(
                Level::Bad,
                "No feasible point yet",
                "Every point breaks a constraint; the best one is that which breaks it least.",
            );
        } else if infeasible > 4 * values.max(1) {
            self.add(
                Level::Warn,
                format!("{} of points are infeasible", percent(infeasible as f64 / digest.trials.len() as f64)),
                "Most evaluations are spent on points that break a constraint. A tighter space would help.",
            );
        }
        let mut all = digest.trials.iter().filter(|trial| trial.status == TrialStatus::Value);
        let first = all.next().map(|trial| trial.value);
        if values >= 10 && first.is_some_and(|first| all.all(|trial| trial.value == first)) {
            self.add(
                Level::Bad,
                "Every evaluation gave the same value",
                "Either no parameter reaches the program, or the wrong number of its output is read. \
                 `racecars check` shows one evaluation in full.",
            );
        }
    }

    fn edges(&mut self, digest: &Digest, importance: &Importance) {
        let Some(best) = &digest.record.best else { return };
        let space = &digest.plan.space;
        let at_edge: Vec<String> = (0..space.dimension())
            // Where the best stands along a parameter that is not known to matter means nothing.
            .filter(|&i| importance.has_weight(i))
            .filter_map(|i| edge(space, i, best.point[i]).map(|end| (i, end)))
            .map(|(i, end)| format!("{} ({end})", space.coordinate_name(i)))
            .collect();
        if at_edge.is_empty() {
            return;
        }
        let title = match at_edge.len() {
            1 => "The best point is at the edge of a range".to_string(),
            n => format!("The best point is at the edge of {n} ranges"),
        };
        let text = format!(
            "{}. The optimum may lie beyond: if larger ranges make sense, widen them.",
            listed(&at_edge)
        );
        self.add(Level::Warn, title, text);
    }

    fn effects(&mut self, digest: &Digest, importance: &Importance) {
        let (space, is_idle) = (&digest.plan.space, &importance.is_idle);
        let idle: Vec<String> =
            (0..is_idle.len()).filter(|&i| is_idle[i]).map(|i| space.coordinate_name(i)).collect();
        if idle.is_empty() {
            return;
        }
        let title = match idle.len() {
            1 => format!("{} has little effect or none", idle[0]),
            n => format!("{n} of {} parameters have little effect or none", is_idle.len()),
        };
        let text = match idle.len() {
            1 => String::new(),
            _ => format!("{}. ", listed(&idle)),
        };
        let text = format!(
            "{text}Fixing what does not matter makes the search easier. Each has less than a tenth of the mean effect."
        );
        self.add(Level::Note, title, text);
    }

    fn progress(&mut self, digest: &Digest) {
        let told = digest.trials.len() as u64;
        let dimension = digest.plan.space.dimension() as u64;
        let is_over = digest.stop.is_some();
        if is_over && told < 5 * dimension && told > 0 {
            self.add(
                Level::Note,
                "Few evaluations for so many parameters",
                format!(
                    "{told} for {dimension}; a search of this size needs some ten per parameter."
                ),
            );
        }
        let (Some(first), Some(last)) = (digest.improvements.first(), digest.improvements.last())
        else {
            return;
        };
        if told < 50 {
            return;
        }
        let early = digest.improvements.iter().take_while(|i| i.0 < told * 9 / 10).last();
        let before = early.unwrap_or(first).1;
        let start =
            digest.improvements.iter().take_while(|i| i.0 <= told / 10).last().unwrap_or(first);
        let (late, whole) = ((last.1 - before).abs(), (last.1 - start.1).abs());
        if is_over && late > 0.1 * whole && whole > 0.0 {
            self.add(
                Level::Note,
                "Still improving when it stopped",
                format!(
                    "The last tenth of the evaluations brought {} of the improvement since the first \
                     tenth. A larger --budget is likely to pay.",
                    percent(late / whole)
                ),
            );
        }
        let since = told - 1 - last.0;
        if since as f64 > 0.6 * told as f64 && told >= 200 {
            self.add(
                Level::Note,
                "No improvement for long",
                format!(
                    "The last {since} of {told} evaluations brought none. The search may have settled: \
                     another --seed tells whether elsewhere is better."
                ),
            );
        }
    }

    fn noise(&mut self, digest: &Digest) {
        let Some(best) = &digest.record.best else { return };
        let (Outcome::Value(seen), Some(again)) = (&best.outcome, digest.repeats.get(&best.trial))
        else {
            return;
        };
        let (mean, spread) = mean_and_spread(again);
        let cost = |value: f64| digest.plan.direction.signed(value);
        if again.len() >= 2 && cost(mean) - cost(*seen) > 2.0 * spread && mean != *seen {
            let better = match digest.plan.direction {
                Direction::Minimize => "low",
                Direction::Maximize => "high",
            };
            self.add(
                Level::Warn,
                "The best value was a lucky draw",
                format!(
                    "Trial {} gave {seen} when it was found, but {} on average of {} further \
                     evaluations: the first was too {better}. Trust the recommended point.",
                    best.trial,
                    super::data::digits(mean, 5),
                    again.len()
                ),
            );
        }
    }

    fn workers(&mut self, digest: &Digest, busy: f64) {
        if digest.trials.len() >= 50 && digest.elapsed() > 10.0 && busy < 0.5 {
            self.add(
                Level::Note,
                format!("Workers were busy {} of the time", percent(busy)),
                "The rest went to starting processes or waiting for one another. Evaluations that take \
                 longer, or without --deterministic, use them better.",
            );
        }
    }
}

/// Which end of its range a coordinate is at, if it is at one.
fn edge(space: &Space, index: usize, code: f64) -> Option<String> {
    let axis = space.axis(index);
    let extent = axis.extent();
    let place = places::place(axis, code);
    let end = match axis {
        Axis::Unordered { .. } => return None,
        Axis::Ordered { last, .. } if last < 3.0 => return None,
        Axis::Ordered { last, .. } => (code == 0.0 || code == last).then_some(code)?,
        _ if place <= EDGE => extent.low,
        _ if place >= 1.0 - EDGE => extent.high,
        _ => return None,
    };
    let side = if end == extent.low { "low" } else { "high" };
    Some(format!("{side} end, {}", space.decode_coordinate(index, end)))
}

fn mean_and_spread(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, (variance / n).sqrt())
}

fn percent(share: f64) -> String {
    match 100.0 * share {
        p if p > 0.0 && p < 1.0 => "under 1 %".to_string(),
        p => format!("{p:.0} %"),
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn listed(names: &[String]) -> String {
    let mut text = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > NAMED {
        text.push_str(&format!(" and {} more", names.len() - NAMED));
    }
    text
}

/// A kind of failure in words.
pub(super) fn spell(kind: &str) -> &str {
    match kind {
        "exit" => "exit codes other than 0",
        "signal" => "signals",
        "timeout" => "timeouts",
        "unparseable" => "output without a value",
        "nan" => "values that are not numbers",
        "memory" => "the memory limit",
        "not-started" => "programs that did not start",
        "reported" => "failures told by hand",
        other => other,
    }
}
