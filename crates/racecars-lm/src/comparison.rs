//! The paper's comparison on a task: several algorithms and seeds with the same number of calls, as four
//! curves like the paper's, a table, and a section of the paper's page.

use crate::loss::Score;
use crate::task::Position;
use crate::tune::{PromptScores, TuneSettings, Tuned};
use racecars_figures::curves::{Chart, Curve, CurvePoint, Style};
use racecars_figures::statistics::SummaryStatistics;
use racecars_figures::{Svg, escape, grid, number};
use serde::Serialize;
use std::collections::BTreeSet;

/// The tunings of one algorithm on a task, one per seed.
#[derive(Debug, Clone, Serialize)]
pub struct AlgorithmTunings {
    /// The algorithm's name.
    pub algorithm: String,
    /// The tuning of each seed.
    pub tuned: Vec<Tuned>,
    /// The scores of the kept prompts on the test texts; empty if they were not evaluated.
    pub tested: Vec<Score>,
}

/// The tunings of all algorithms on a task.
#[derive(Debug, Clone, Serialize)]
pub struct TuneComparison {
    /// The task's name.
    pub task: String,
    /// The number of calls of each tuning.
    pub budget: u64,
    /// The settings of the first algorithm's first tuning. The others differ only in algorithm and seed.
    pub settings: TuneSettings,
    /// The algorithms, ours first.
    pub entries: Vec<AlgorithmTunings>,
    /// The scores of no prompt and of the untuned prompt on the test texts, if they were evaluated.
    pub tested: Option<[Score; 2]>,
}

/// A quantity that a curve shows.
type Quantity = fn(&PromptScores) -> f64;
const QUANTITIES: [(&str, Quantity); 4] = [
    ("Training loss", |look| look.train.loss),
    ("Training accuracy", |look| look.train.accuracy),
    ("Development loss", |look| look.dev.loss),
    ("Development accuracy", |look| look.dev.accuracy),
];
/// The approximate maximum number of points of a curve.
const MAX_CURVE_POINTS: usize = 200;

impl TuneComparison {
    /// The four charts: means over seeds, with bands of one standard deviation.
    pub fn figure(&self) -> Svg {
        let charts: Vec<Svg> = QUANTITIES.map(|(title, of)| self.chart(title, of).draw()).into();
        grid(&format!("{}: mean and deviation over seeds", self.task), &charts, 2)
    }

    fn chart(&self, title: &str, of: Quantity) -> Chart {
        let curves: Vec<Curve> = self.entries.iter().map(|entry| curve(entry, of)).collect();
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

    /// The scores of the kept prompts as a Markdown table.
    pub fn table(&self) -> String {
        let mut lines = self.lines();
        lines.insert(1, vec!["---".to_string(); lines[0].len()]);
        let lines: String =
            lines.iter().map(|cells| format!("| {} |\n", cells.join(" | "))).collect();
        format!("{lines}\n{}\n", self.calls())
    }

    /// The rows of the table, the heading first.
    fn lines(&self) -> Vec<Vec<String>> {
        let heading = ["prompt", "seeds", "train loss", "accuracy", "dev loss", "dev accuracy"];
        let mut lines = vec![heading.map(String::from).to_vec()];
        // The untuned prompt is the same for all algorithms.
        let first = self.entries.first().map_or(&[][..], |entry| &entry.tuned);
        let [without, untuned] =
            [|t: &Tuned| t.without, |t: &Tuned| t.untuned].map(|of| first.iter().map(of).collect());
        let tests = self.tested.map_or([None, None], |tests| tests.map(Some));
        lines.push(row("none", without, tests[0].as_slice()));
        lines.push(row("untuned", untuned, tests[1].as_slice()));
        for AlgorithmTunings { algorithm, tuned, tested } in &self.entries {
            lines.push(row(algorithm, tuned.iter().map(|t| t.kept).collect(), tested));
        }
        if self.tested.is_some() {
            lines[0].push("test accuracy".to_string());
        }
        lines
    }

    fn calls(&self) -> String {
        let all = || self.entries.iter().flat_map(|entry| &entry.tuned);
        let calls: u64 = all().map(|tuned| tuned.calls).sum();
        let failures: u64 = all().map(|tuned| tuned.failures).sum();
        format!("{calls} calls in all, {failures} failed.")
    }

    /// A section of the paper's page: HTML, with table and figure.
    pub fn section(&self) -> String {
        let cells = |cells: &[String], tag: &str| -> String {
            cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect()
        };
        let lines = self.lines();
        let head = cells(&lines[0], "th");
        let rows: String =
            lines[1..].iter().map(|line| format!("<tr>{}</tr>\n", cells(line, "td"))).collect();
        format!(
            "<h2 id=\"lm-{0}\">Prompts for a language model: {0}</h2>\n\
             <p><b>The paper says.</b> With RoBERTa on SST-2, Yelp, AG's News and RTE, 500 coordinates, 50 \
             prompt tokens, 8000 calls and 5 seeds, RACE-CARS consistently accelerates SRACOS; CMA-ES is \
             better on all but SST-2, with signs of overfitting, and RACE-CARS comparable.</p>\n\
             <p><b>We got.</b> {1}</p>\n<figure id=\"figure-lm-{0}\">\n{2}</figure>\n\
             <table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table>\n\
             <p>Mean ± standard deviation over seeds. The prompts in the table are those that were kept: \
             of the ones in the figure the one with the lowest loss on the development texts, which have \
             so chosen it; only test texts have not. {3}</p>\n",
            escape(&self.task),
            self.about(),
            self.figure().to_inline(),
            self.calls(),
        )
    }

    /// Model and settings, as HTML.
    fn about(&self) -> String {
        let TuneSettings { shots, dim, bound, prompt_tokens, position, base, gamma, rho, .. } =
            &self.settings;
        let first = self.entries.first();
        let model = first.and_then(|entry| entry.tuned.first()).map_or("", |tuned| &tuned.model);
        let place = match position {
            Position::Prefix => "before",
            Position::Suffix => "after",
        };
        let start = match base.is_empty() {
            true => "zero".to_string(),
            false => format!("the embedding of <code>{}</code>", escape(&format!("{base:?}"))),
        };
        let own = match (gamma, rho) {
            (None, None) => String::new(),
            (gamma, rho) => {
                let given = [("gamma", gamma), ("rho", rho)].into_iter();
                let given = given.filter_map(|(name, x)| Some(format!("{name} = {}", (*x)?)));
                format!("; RACE-CARS with {}", given.collect::<Vec<_>>().join(", "))
            }
        };
        format!(
            "{}: {shots} texts of each label, {dim} coordinates within ±{bound}, {prompt_tokens} prompt \
             tokens {place} the text, p0 {start}, {} calls, {} seeds{own}.",
            escape(model),
            self.budget,
            first.map_or(0, |entry| entry.tuned.len())
        )
    }
}

/// The curve of an algorithm: means over seeds, at every number of calls at which some seed was evaluated.
fn curve(entry: &AlgorithmTunings, of: Quantity) -> Curve {
    let looks = entry.tuned.iter().flat_map(|tuned| &tuned.looks).map(|look| look.calls);
    let places: BTreeSet<u64> = looks.chain([0]).collect();
    let step = places.len().div_ceil(MAX_CURVE_POINTS);
    let mut places: Vec<u64> = places.into_iter().rev().step_by(step).collect();
    places.reverse();
    let samples: Vec<CurvePoint> = places
        .into_iter()
        .filter_map(|calls| {
            let values: Vec<f64> = entry.tuned.iter().map(|t| of(&scores_at(t, calls))).collect();
            let SummaryStatistics { mean, std, .. } = SummaryStatistics::of(&values)?;
            Some(CurvePoint { x: calls as f64, middle: mean, low: mean - std, high: mean + std })
        })
        .collect();
    let last = samples.last().map_or(String::new(), |last| number(last.middle));
    Curve { label: format!("{} {last}", entry.algorithm), style: style(&entry.algorithm), samples }
}

/// A row of the table: means and standard deviations over seeds, and of the test scores if there are any.
fn row(name: &str, looks: Vec<PromptScores>, tests: &[Score]) -> Vec<String> {
    let share = |values: Vec<f64>| {
        SummaryStatistics::of(&values).map_or(
            "none".to_string(),
            |SummaryStatistics { mean, std, .. }| {
                format!("{:.1} ± {:.1} %", 100.0 * mean, 100.0 * std)
            },
        )
    };
    let mut cells = vec![name.to_string(), looks.len().to_string()];
    for (title, of) in QUANTITIES {
        let values: Vec<f64> = looks.iter().map(of).collect();
        cells.push(match title.ends_with("accuracy") {
            true => share(values),
            false => SummaryStatistics::of(&values)
                .map_or("none".to_string(), |SummaryStatistics { mean, std, .. }| {
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

/// The last scores at or before this number of calls; before the first, those of the untuned prompt.
fn scores_at(tuned: &Tuned, calls: u64) -> PromptScores {
    *tuned.looks.iter().rfind(|look| look.calls <= calls).unwrap_or(&tuned.untuned)
}

/// The same colours as in the other figures of the paper.
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
    use crate::loss::Loss;
    use crate::projection::{Draw, ProjectionSettings};
    use crate::task::Task;

    fn tuned(shift: f64) -> Tuned {
        let look = |calls: u64, loss: f64| {
            let score = Score { loss, accuracy: 1.0 - loss / 2.0 };
            PromptScores { calls, train: score, dev: score }
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
        let entry = |name: &str| AlgorithmTunings {
            algorithm: name.into(),
            tuned: vec![tuned(0.1), tuned(-0.1)],
            tested: Vec::new(),
        };
        let entries = vec![entry("race-cars"), entry("cma-es")];
        let settings = TuneSettings {
            task: Task::named("sst2").unwrap(),
            shots: 16,
            seed: 0,
            algorithm: "race-cars".into(),
            gamma: Some(0.7),
            rho: None,
            dim: 50,
            bound: 1.0,
            prompt_tokens: 9,
            budget: 40,
            batch: 1,
            look_every: 20,
            loss: Loss::CrossEntropy,
            position: Position::Suffix,
            projection: ProjectionSettings { draw: Draw::Normal, alpha: 1.0, sigma: 1.0, seed: 0 },
            base: "\n<p0>".into(),
        };
        let mut comparison =
            TuneComparison { task: "sst2".into(), budget: 40, settings, entries, tested: None };
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
        let section = comparison.section();
        for part in [
            "<h2 id=\"lm-sst2\">",
            "<figure id=\"figure-lm-sst2\">\n<svg",
            "<td>70.0 ± 14.1 %</td></tr>",
            "m: 16 texts of each label, 50 coordinates within ±1, 9 prompt tokens after the text, p0 the \
             embedding of <code>&quot;\\n&lt;p0&gt;&quot;</code>, 40 calls, 2 seeds; RACE-CARS with gamma = 0.7.",
        ] {
            assert!(section.contains(part), "{part} is not in {section}");
        }
    }
}
