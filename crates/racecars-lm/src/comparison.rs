//! The paper's comparison on a task: algorithms side by side, over seeds, with the same calls; four
//! curves, as the paper has them, and a table.

use crate::loss::Score;
use crate::tune::{Look, Tuned};
use racecars_lab::figures::curves::{Chart, Curve, Sample, Style};
use racecars_lab::figures::{Svg, grid, number};
use racecars_lab::statistics::Summary;
use serde::Serialize;

/// The tunings of one algorithm on a task, one per seed.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// The algorithm's name.
    pub algorithm: String,
    /// What came of it with each seed.
    pub tuned: Vec<Tuned>,
    /// The prompts that were kept on the test texts, if they were tried.
    pub tested: Vec<Score>,
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
    /// No prompt and the untuned one on the test texts, if they were tried.
    pub tested: Option<[Score; 2]>,
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
        let room = 0.05 * (high - low).max(0.1);
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

    /// A table of what came out, in Markdown: the prompts that were kept.
    pub fn table(&self) -> String {
        let heading = ["prompt", "seeds", "train loss", "accuracy", "dev loss", "dev accuracy"];
        let mut lines = vec![heading.map(String::from).to_vec(), vec!["---".to_string(); 6]];
        // What is untuned is the same for all algorithms.
        let first = self.entries.first().map_or(&[][..], |entry| &entry.tuned);
        let [without, untuned] =
            [|t: &Tuned| t.without, |t: &Tuned| t.untuned].map(|of| first.iter().map(of).collect());
        let tests = self.tested.map_or([None, None], |tests| tests.map(Some));
        lines.push(row("none", without, tests[0].as_slice()));
        lines.push(row("untuned", untuned, tests[1].as_slice()));
        for Entry { algorithm, tuned, tested } in &self.entries {
            lines.push(row(algorithm, tuned.iter().map(|t| t.kept).collect(), tested));
        }
        if self.tested.is_some() {
            lines[0].push("test accuracy".to_string());
            lines[1].push("---".to_string());
        }
        let all = || self.entries.iter().flat_map(|entry| &entry.tuned);
        let calls: u64 = all().map(|tuned| tuned.calls).sum();
        let failures: u64 = all().map(|tuned| tuned.failures).sum();
        let lines: String =
            lines.iter().map(|cells| format!("| {} |\n", cells.join(" | "))).collect();
        format!("{lines}\n{calls} calls in all, {failures} failed.\n")
    }
}

/// A line of the table: means and deviations over looks, and over tests if there are any.
fn row(name: &str, looks: Vec<Look>, tests: &[Score]) -> Vec<String> {
    let share = |values: Vec<f64>| {
        Summary::of(&values).map_or("none".to_string(), |Summary { mean, std, .. }| {
            format!("{:.1} ± {:.1} %", 100.0 * mean, 100.0 * std)
        })
    };
    let mut cells = vec![name.to_string(), looks.len().to_string()];
    for (title, of) in QUANTITIES {
        let values: Vec<f64> = looks.iter().map(of).collect();
        cells.push(match title.ends_with("accuracy") {
            true => share(values),
            false => Summary::of(&values)
                .map_or("none".to_string(), |Summary { mean, std, .. }| {
                    format!("{mean:.3} ± {std:.3}")
                }),
        });
    }
    match tests {
        [] => {}
        [one] => cells.push(format!("{:.1} %", 100.0 * one.accuracy)),
        more => cells.push(share(more.iter().map(|score| score.accuracy).collect())),
    }
    cells
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
            kept: look(20, 0.6 + shift),
            improvements: Vec::new(),
            calls: 40,
            failures: 1,
            seconds: 1.0,
            is_interrupted: false,
        }
    }

    #[test]
    fn tables_and_figures_have_means_over_seeds() {
        let entry = |name: &str| Entry {
            algorithm: name.into(),
            tuned: vec![tuned(0.1), tuned(-0.1)],
            tested: Vec::new(),
        };
        let entries = vec![entry("race-cars"), entry("cma-es")];
        let mut comparison = Comparison { task: "sst2".into(), budget: 40, entries, tested: None };
        let table = comparison.table();
        assert!(table.contains("| untuned | 2 | 0.900 ± 0.000 | 55.0 ± 0.0 % |"), "{table}");
        assert!(table.contains("| race-cars | 2 | 0.600 ± 0.1"), "{table}");
        assert!(!table.contains("test"), "{table}");
        assert!(table.contains("160 calls in all, 4 failed."), "{table}");
        let score = |accuracy: f64| Score { loss: 1.0, accuracy };
        comparison.tested = Some([score(0.5), score(0.55)]);
        comparison.entries[0].tested = vec![score(0.6), score(0.8)];
        let table = comparison.table();
        assert!(table.contains("| dev accuracy | test accuracy |"), "{table}");
        assert!(table.contains("% | 55.0 % |") && table.contains("% | 70.0 ± 14.1 % |"), "{table}");
        let figure = comparison.figure().to_file();
        assert!(figure.contains("race-cars 0.400") && !figure.contains("NaN"), "{figure}");
    }
}
