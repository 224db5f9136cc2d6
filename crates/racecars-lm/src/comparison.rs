//! The paper's comparison on a task: algorithms side by side, over seeds, with the same calls; four
//! curves, as the paper has them, and a table.

use crate::error::{Error, Result};
use crate::tune::{Look, Tuned};
use racecars_lab::figures::curves::{Chart, Curve, Sample, Style};
use racecars_lab::figures::{Svg, grid, number};
use racecars_lab::statistics::Summary;
use serde::Serialize;
use std::fmt::Write;

/// The tunings of one algorithm on a task, one per seed.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// The algorithm's name.
    pub algorithm: String,
    /// What came of it with each seed.
    pub tuned: Vec<Tuned>,
}

/// The algorithms on a task.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The task's name.
    pub task: String,
    /// The calls that each tuning had.
    pub budget: u64,
    /// The algorithms, ours first.
    pub entries: Vec<Entry>,
}

/// What the four curves show.
type Quantity = fn(&Look) -> f64;
const QUANTITIES: [(&str, Quantity); 4] = [
    ("Training loss", |look| look.train.loss),
    ("Training accuracy", |look| look.train.accuracy),
    ("Development loss", |look| look.dev.loss),
    ("Development accuracy", |look| look.dev.accuracy),
];
/// How many points a curve has.
const POINTS: u64 = 100;

impl Comparison {
    /// The four curves: means over seeds, with bands of one standard deviation.
    pub fn figure(&self) -> Svg {
        let charts: Vec<Svg> = QUANTITIES.map(|(title, of)| self.chart(title, of).draw()).into();
        grid(&format!("{}: mean and deviation over seeds", self.task), &charts, 2)
    }

    fn chart(&self, title: &str, of: Quantity) -> Chart {
        let curves: Vec<Curve> = self.entries.iter().map(|entry| self.curve(entry, of)).collect();
        let ends = || curves.iter().flat_map(|curve| &curve.samples);
        let low = ends().map(|sample| sample.low).fold(f64::INFINITY, f64::min);
        let high = ends().map(|sample| sample.high).fold(f64::NEG_INFINITY, f64::max);
        let room = 0.05 * (high - low).max(1e-3);
        Chart {
            title: title.to_string(),
            x_label: "calls".to_string(),
            y_label: title.to_lowercase(),
            linear: Some((low - room, high + room)),
            curves,
        }
    }

    fn curve(&self, entry: &Entry, of: Quantity) -> Curve {
        let places = (0..=POINTS).map(|i| i * self.budget / POINTS);
        let samples: Vec<Sample> = places
            .filter_map(|calls| {
                let values: Vec<f64> = entry.tuned.iter().map(|t| of(&look_at(t, calls))).collect();
                let Summary { mean, std, .. } = Summary::of(&values)?;
                Some(Sample { x: calls as f64, middle: mean, low: mean - std, high: mean + std })
            })
            .collect();
        let last = samples.last().map_or(String::new(), |last| number(last.middle));
        Curve {
            label: format!("{} {last}", entry.algorithm),
            style: style(&entry.algorithm),
            samples,
        }
    }

    /// A table of what came out, in Markdown.
    pub fn table(&self) -> Result<String> {
        let mut text = String::new();
        let mut line = |cells: [&str; 6]| writeln!(text, "| {} |", cells.join(" | "));
        let heading = ["prompt", "seeds", "train loss", "accuracy", "dev loss", "dev accuracy"];
        let mut lines = vec![line(heading), line(["---"; 6])];
        let all = || self.entries.iter().flat_map(|entry| &entry.tuned);
        // The untuned prompts are the same for all algorithms.
        let first = self.entries.first().map_or(&[][..], |entry| &entry.tuned);
        let rows = [
            ("none", first.iter().map(|t| t.without).collect()),
            ("untuned", first.iter().map(|t| t.untuned).collect::<Vec<Look>>()),
        ];
        let tuned = self.entries.iter().map(|entry| {
            let ends = entry.tuned.iter().map(|t| look_at(t, u64::MAX)).collect();
            (&*entry.algorithm, ends)
        });
        for (name, looks) in rows.into_iter().chain(tuned) {
            let shown = QUANTITIES.map(|(title, of)| {
                let values: Vec<f64> = looks.iter().map(of).collect();
                let is_share = title.ends_with("accuracy");
                Summary::of(&values).map_or("none".to_string(), |Summary { mean, std, .. }| {
                    match is_share {
                        true => format!("{:.1} ± {:.1} %", 100.0 * mean, 100.0 * std),
                        false => format!("{mean:.3} ± {std:.3}"),
                    }
                })
            });
            let seeds = looks.len().to_string();
            let [a, b, c, d] = shown.each_ref().map(String::as_str);
            lines.push(line([name, &seeds, a, b, c, d]));
        }
        let (calls, failures) =
            all().fold((0, 0), |(c, f), tuned| (c + tuned.calls, f + tuned.failures));
        lines.into_iter().collect::<std::fmt::Result>().map_err(Error::input)?;
        writeln!(text, "\n{calls} calls in all, {failures} failed.").map_err(Error::input)?;
        Ok(text)
    }
}

/// The last look at a tuning that had been taken by then; before the first, the untuned prompt.
fn look_at(tuned: &Tuned, calls: u64) -> Look {
    *tuned.looks.iter().rfind(|look| look.calls <= calls).unwrap_or(&tuned.untuned)
}

/// Colours as in the other figures of the paper.
fn style(algorithm: &str) -> Style {
    match algorithm {
        "race-cars" => Style { color: "#d55e00", width: 2.6, dash: "" },
        "sracos" => Style { color: "#0072b2", width: 1.8, dash: "" },
        _ => Style { color: "#333333", width: 1.8, dash: "8 3 2 3" },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Score;

    fn tuned(shift: f64) -> Tuned {
        let look = |calls: u64, loss: f64| {
            let score = Score { loss, accuracy: 1.0 - loss / 2.0 };
            Look { calls, train: score, dev: score }
        };
        Tuned {
            model: "m".into(),
            data: "d".into(),
            without: look(0, 1.0),
            untuned: look(0, 0.9),
            looks: vec![look(20, 0.6 + shift), look(40, 0.4 + shift)],
            improvements: Vec::new(),
            calls: 40,
            failures: 1,
            seconds: 1.0,
            is_interrupted: false,
        }
    }

    #[test]
    fn tables_and_figures_have_means_over_seeds() {
        let entry =
            |name: &str| Entry { algorithm: name.into(), tuned: vec![tuned(0.1), tuned(-0.1)] };
        let entries = vec![entry("race-cars"), entry("cma-es")];
        let comparison = Comparison { task: "sst2".into(), budget: 40, entries };
        let table = comparison.table().unwrap();
        assert!(table.contains("| untuned | 2 | 0.900 ± 0.000 | 55.0 ± 0.0 % |"), "{table}");
        assert!(table.contains("| race-cars | 2 | 0.400 ± 0.1"), "{table}");
        assert!(table.contains("160 calls in all, 4 failed."), "{table}");
        let figure = comparison.figure().to_file();
        assert!(figure.contains("race-cars 0.400") && !figure.contains("NaN"), "{figure}");
    }
}
