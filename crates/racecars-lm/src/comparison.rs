//! The paper's comparison on a task: several algorithms and seeds with the same number of calls. The training
//! loss by calls, which the paper's claim is about, and the kept prompts on texts that the search did not see:
//! as a figure of four charts, two tables, and a section of the paper's page.

use crate::loss::Score;
use crate::task::Position;
use crate::tune::{PromptScores, TuneSettings, Tuned};
use racecars_figures::curves::{Chart, Curve, CurvePoint, Style};
use racecars_figures::dots::{Dot, DotPlot, DotRow};
use racecars_figures::statistics::SummaryStatistics;
use racecars_figures::{FAINT, Svg, escape, grid, number};
use serde::Serialize;
use std::collections::BTreeSet;

/// The tunings of one algorithm on a task, one per seed.
#[derive(Debug, Clone, Serialize)]
pub struct AlgorithmTunings {
    /// The algorithm with its settings.
    pub algorithm: String,
    /// The tuning of each seed.
    pub tuned: Vec<Tuned>,
    /// The scores of the kept prompts on the test texts; empty if they were not evaluated.
    pub tested: Vec<Score>,
    /// The same, with label shifts fitted on the training texts after the tuning.
    pub tested_calibrated: Vec<Score>,
    /// For each test text, the number of seeds in which the kept prompt is right about it minus those in which the
    /// calibrated untuned one is; empty if they were not evaluated.
    pub gain_by_text: Vec<f64>,
}

/// The scores without tuning on the test texts.
#[derive(Debug, Clone, Serialize)]
pub struct TestedBaselines {
    /// The number of texts.
    pub texts: usize,
    /// Without a prompt.
    pub without: Score,
    /// Of the untuned prompt.
    pub untuned: Score,
    /// Of the untuned prompt with the label shifts of each seed.
    pub calibrated: Vec<Score>,
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
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The scores without tuning on the test texts, if they were evaluated.
    pub tested: Option<TestedBaselines>,
}

/// A quantity that a curve shows.
#[derive(Clone, Copy)]
enum Quantity {
    /// The lowest training loss so far.
    BestTrainLoss,
    /// A score of the best prompt on the training texts so far.
    OfLook(fn(&PromptScores) -> f64),
}

/// The curves: the lowest training loss, and the scores of the prompt that has it on the development texts.
const QUANTITIES: [(&str, Quantity); 3] = [
    ("Training loss", Quantity::BestTrainLoss),
    ("Development loss", Quantity::OfLook(|look| look.dev.loss)),
    ("Development accuracy", Quantity::OfLook(|look| look.dev.accuracy)),
];
/// What the differences are.
const DIFFERENCES: &str = "The loss minus that of sracos, paired by seed, with its standard error over seeds, and the \
                           number of seeds in which it is less";
/// The greatest number of algorithms whose curves have bands.
const MAX_BANDS: usize = 3;
/// The approximate maximum number of points of a curve.
const MAX_CURVE_POINTS: usize = 200;

impl TuneComparison {
    /// Three charts by calls and one of the kept prompts: means over seeds, with bands of one standard deviation if
    /// there are few algorithms.
    pub fn figure(&self) -> Svg {
        let mut charts: Vec<Svg> =
            QUANTITIES.map(|(title, of)| self.chart(title, of).draw()).into();
        charts.insert(1, self.kept_chart().draw());
        let of = match &self.seeds[..] {
            [seed] => format!("seed {seed}"),
            _ if self.has_bands() => "mean and deviation over seeds".to_string(),
            seeds => format!("mean over {} seeds", seeds.len()),
        };
        grid(&format!("{}: {of}", self.task), &charts, 2)
    }

    /// The accuracy of the kept prompts, with bars of one standard deviation over seeds.
    fn kept_chart(&self) -> DotPlot {
        let dot = |accuracies: Vec<f64>| {
            let SummaryStatistics { mean, std, .. } = SummaryStatistics::of(&accuracies)?;
            let of = |x: f64| 100.0 * x;
            Some(Dot { middle: of(mean), low: of(mean - std), high: of(mean + std) })
        };
        let row = |name: &str, color: &'static str, scores: Vec<PromptScores>, tests: &[Score]| {
            let open = dot(scores.iter().map(|scores| scores.dev.accuracy).collect());
            let filled = dot(tests.iter().map(|score| score.accuracy).collect());
            let shown = filled.or(open).map_or(String::new(), |dot| format!("{:.1}", dot.middle));
            DotRow { label: format!("{} {shown}", short_name(name)), color, open, filled }
        };
        let first = self.entries.first().map_or(&[][..], |entry| &entry.tuned);
        let untuned = first.iter().map(|tuned| tuned.baselines.calibrated).collect();
        let tested = self.tested.as_ref().map_or(&[][..], |tested| &tested.calibrated);
        let mut rows = vec![row("untuned, calibrated", FAINT, untuned, tested)];
        for AlgorithmTunings { algorithm, tuned, tested, .. } in &self.entries {
            let kept = tuned.iter().map(|tuned| tuned.kept).collect();
            rows.push(row(algorithm, style(algorithm).color, kept, tested));
        }
        let filled = if self.tested.is_some() { ", test (filled)" } else { "" };
        DotPlot {
            title: format!("Kept prompt: development (open){filled}"),
            x_label: "accuracy, %".to_string(),
            rows,
        }
    }

    /// Many bands hide each other.
    fn has_bands(&self) -> bool {
        self.entries.len() <= MAX_BANDS
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

    /// The curve of an algorithm: means over seeds, at every number of calls at which some seed changes.
    fn curve(&self, entry: &AlgorithmTunings, of: Quantity) -> Curve {
        let places: BTreeSet<u64> = match of {
            Quantity::BestTrainLoss => {
                let improved = entry.tuned.iter().flat_map(|tuned| &tuned.improvements);
                // Also the call before: the loss falls in steps.
                improved
                    .flat_map(|(call, _)| [(call - 1).max(1), *call])
                    .chain([self.budget])
                    .collect()
            }
            Quantity::OfLook(_) => {
                let looks = entry.tuned.iter().flat_map(|tuned| &tuned.looks);
                looks.map(|look| look.calls).chain([0]).collect()
            }
        };
        let step = places.len().div_ceil(MAX_CURVE_POINTS);
        let mut places: Vec<u64> = places.into_iter().rev().step_by(step).collect();
        places.reverse();
        let at = |tuned: &Tuned, calls: u64| match of {
            Quantity::BestTrainLoss => best_train_loss(tuned, calls),
            Quantity::OfLook(of) => of(&self.scores_at(tuned, calls)),
        };
        let samples: Vec<CurvePoint> = places
            .into_iter()
            .filter_map(|calls| {
                let values: Vec<f64> = entry.tuned.iter().map(|t| at(t, calls)).collect();
                let SummaryStatistics { mean, std, .. } = SummaryStatistics::of(&values)?;
                let width = if self.has_bands() { std } else { 0.0 };
                let (low, high) = (mean - width, mean + width);
                Some(CurvePoint { x: calls as f64, middle: mean, low, high })
            })
            .collect();
        let last = samples.last().map_or(String::new(), |last| number(last.middle));
        let label = format!("{} {last}", short_name(&entry.algorithm));
        Curve { label, style: style(&entry.algorithm), samples }
    }

    /// The last scores at or before this number of calls; before the first, those that the search starts with.
    fn scores_at(&self, tuned: &Tuned, calls: u64) -> PromptScores {
        *tuned.looks.iter().rfind(|look| look.calls <= calls).unwrap_or(
            match self.settings.calibrate {
                true => &tuned.baselines.calibrated,
                false => &tuned.baselines.untuned,
            },
        )
    }

    /// Both tables in Markdown.
    pub fn table(&self) -> String {
        let markdown = |mut lines: Vec<Vec<String>>| -> String {
            lines.insert(1, vec!["---".to_string(); lines[0].len()]);
            lines.iter().map(|cells| format!("| {} |\n", cells.join(" | "))).collect()
        };
        format!(
            "Lowest training loss{} after a number of calls:\n\n{}\n{}The kept prompts, {}:\n\n{}\n{}\n",
            if self.settings.calibrate { ", calibrated," } else { "" },
            markdown(self.training_lines()),
            self.difference_lines()
                .map_or(String::new(), |lines| format!("{DIFFERENCES}:\n\n{}\n", markdown(lines))),
            self.tested_texts(),
            markdown(self.kept_lines()),
            self.calls()
        )
    }

    /// The difference in the lowest training loss from SRACOS, which the paper's claim is about, by calls, the heading
    /// first. `None` without SRACOS or others.
    fn difference_lines(&self) -> Option<Vec<Vec<String>>> {
        let reference = self.entries.iter().find(|entry| entry.algorithm == "sracos")?;
        let others = self.entries.iter().filter(|entry| entry.algorithm != reference.algorithm);
        let places = self.places();
        let lines = others.map(|AlgorithmTunings { algorithm, tuned, .. }| {
            let cells = places.iter().map(|calls| {
                let pairs = tuned.iter().zip(&reference.tuned);
                let loss = |tuned| best_train_loss(tuned, *calls);
                let differences: Vec<f64> =
                    pairs.map(|(ours, theirs)| loss(ours) - loss(theirs)).collect();
                let less = differences.iter().filter(|difference| **difference < 0.0).count();
                let mean = SummaryStatistics::of(&differences).map_or(f64::NAN, |of| of.mean);
                let error = standard_error(&differences)
                    .map_or(String::new(), |error| format!(" ({error:.3})"));
                format!("{mean:+.3}{error}, {less} of {}", differences.len())
            });
            [algorithm.clone()].into_iter().chain(cells).collect()
        });
        let heading = places.iter().map(|calls| format!("{calls} calls"));
        let heading = ["algorithm".to_string()].into_iter().chain(heading).collect();
        let lines: Vec<Vec<String>> = [heading].into_iter().chain(lines).collect();
        (lines.len() > 1).then_some(lines)
    }

    fn tested_texts(&self) -> String {
        match &self.tested {
            Some(tested) => format!("with {} test texts", tested.texts),
            None => "without test texts".to_string(),
        }
    }

    /// The numbers of calls of the tables.
    fn places(&self) -> BTreeSet<u64> {
        [16, 8, 4, 2, 1].map(|share| (self.budget / share).max(1)).into_iter().collect()
    }

    /// The lowest training loss by calls, the heading first.
    fn training_lines(&self) -> Vec<Vec<String>> {
        let places = self.places();
        let heading = ["algorithm".to_string(), "seeds".to_string()].into_iter();
        let mut lines: Vec<Vec<String>> =
            vec![heading.chain(places.iter().map(|calls| format!("{calls} calls"))).collect()];
        for AlgorithmTunings { algorithm, tuned, .. } in &self.entries {
            let losses = places.iter().map(|calls| {
                plain(&tuned.iter().map(|tuned| best_train_loss(tuned, *calls)).collect::<Vec<_>>())
            });
            let start = [algorithm.clone(), tuned.len().to_string()];
            lines.push(start.into_iter().chain(losses).collect());
        }
        lines
    }

    /// The scores of the kept prompts and of the baselines, the heading first.
    fn kept_lines(&self) -> Vec<Vec<String>> {
        let heading = ["prompt", "train loss", "dev loss", "dev accuracy"];
        let mut lines = vec![heading.map(String::from).to_vec()];
        let is_after = self.tested.is_some() && !self.settings.calibrate;
        let mut add = |name: &str, scores: Vec<PromptScores>, tests: &[Score], after: &[Score]| {
            let of = |of: fn(&PromptScores) -> f64| scores.iter().map(of).collect::<Vec<_>>();
            let mut cells = vec![
                name.to_string(),
                plain(&of(|look| look.train.loss)),
                plain(&of(|look| look.dev.loss)),
                percent(&of(|look| look.dev.accuracy)),
            ];
            let accuracies =
                |tests: &[Score]| tests.iter().map(|score| score.accuracy).collect::<Vec<_>>();
            if self.tested.is_some() {
                cells.push(percent(&accuracies(tests)));
            }
            if is_after {
                cells.push(percent(&accuracies(after)));
            }
            lines.push(cells);
        };
        // The baselines are the same for all algorithms.
        let first = self.entries.first().map_or(&[][..], |entry| &entry.tuned);
        let of = |of: fn(&Tuned) -> PromptScores| first.iter().map(of).collect::<Vec<_>>();
        let tested = self.tested.as_ref();
        let without = tested.map(|tested| tested.without);
        let untuned = tested.map(|tested| tested.untuned);
        let calibrated = tested.map_or(&[][..], |tested| &tested.calibrated);
        add("none", of(|tuned| tuned.baselines.without), without.as_slice(), &[]);
        add("untuned", of(|tuned| tuned.baselines.untuned), untuned.as_slice(), calibrated);
        let shifted = of(|tuned| tuned.baselines.calibrated);
        add("untuned, calibrated", shifted, calibrated, calibrated);
        for AlgorithmTunings { algorithm, tuned, tested, tested_calibrated, .. } in &self.entries {
            let kept = tuned.iter().map(|tuned| tuned.kept).collect();
            add(algorithm, kept, tested, tested_calibrated);
        }
        if tested.is_some() {
            lines[0].push("test accuracy".to_string());
        }
        if is_after {
            lines[0].push("calibrated afterwards".to_string());
        }
        if tested.is_some() && self.settings.calibrate {
            let gains = self.entries.iter().map(|entry| gain(entry, calibrated));
            let heading =
                "gain over untuned, calibrated (standard errors: over seeds, over test texts)"
                    .to_string();
            let baselines = [const { String::new() }; 3];
            let cells = [heading].into_iter().chain(baselines).chain(gains);
            lines.iter_mut().zip(cells).for_each(|(line, cell)| line.push(cell));
        }
        lines
    }

    fn calls(&self) -> String {
        let all = || self.entries.iter().flat_map(|entry| &entry.tuned);
        let sum = |of: fn(&Tuned) -> u64| all().map(of).sum::<u64>();
        format!(
            "{} calls in all, {} failed; {} other evaluations.",
            sum(|tuned| tuned.calls),
            sum(|tuned| tuned.failures),
            sum(|tuned| tuned.other_evaluations)
        )
    }

    /// A section of the paper's page: HTML, with tables and figure.
    pub fn section(&self) -> String {
        let cells = |cells: &[String], tag: &str| -> String {
            cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect()
        };
        let table = |lines: Vec<Vec<String>>| {
            let rows: String =
                lines[1..].iter().map(|line| format!("<tr>{}</tr>\n", cells(line, "td"))).collect();
            format!(
                "<table><thead><tr>{}</tr></thead>\n<tbody>\n{rows}</tbody></table>\n",
                cells(&lines[0], "th")
            )
        };
        format!(
            "<h2 id=\"lm-{0}\">Prompts for a language model: {0}</h2>\n\
             <p><b>The paper says.</b> With RoBERTa on SST-2, Yelp, AG's News and RTE, 500 coordinates, 50 \
             prompt tokens, 8000 calls and 5 seeds, RACE-CARS consistently accelerates SRACOS; CMA-ES is \
             better on all but SST-2, with signs of overfitting, and RACE-CARS comparable.</p>\n\
             <p><b>We got.</b> {1}</p>\n<figure id=\"figure-lm-{0}\">\n{2}</figure>\n\
             <p>The lowest training loss after a number of calls, which the paper's claim is about:</p>\n\
             {3}{7}<p>The kept prompts, {4}:</p>\n{5}\
             <p>Mean ± standard deviation over seeds. A prompt is kept if it has the lowest loss on the \
             development texts of those in the figure; so these texts have chosen it, and only test texts \
             have not. Calibrated: with one number per label word, fitted on the training texts and added to \
             its logit. {6}</p>\n",
            escape(&self.task),
            self.about(),
            self.figure().to_inline(),
            table(self.training_lines()),
            self.tested_texts(),
            table(self.kept_lines()),
            self.calls(),
            self.difference_lines().map_or(String::new(), |lines| {
                format!("<p>{DIFFERENCES}:</p>\n{}", table(lines))
            }),
        )
    }

    /// Model and settings, as HTML.
    fn about(&self) -> String {
        let TuneSettings {
            shots, dim, bound, prompt_tokens, position, base, loss, calibrate, ..
        } = &self.settings;
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
        let seeds: Vec<String> = self.seeds.iter().map(ToString::to_string).collect();
        format!(
            "{}: {shots} texts of each label, {dim} coordinates within ±{bound}, {prompt_tokens} prompt \
             tokens {place} the text, p0 {start}, {}{}, {} calls, seeds {}.",
            escape(model),
            loss.name(),
            if *calibrate { " calibrated" } else { "" },
            self.budget,
            seeds.join(", ")
        )
    }
}

/// Mean and standard deviation.
fn plain(values: &[f64]) -> String {
    match SummaryStatistics::of(values) {
        None => "none".to_string(),
        Some(SummaryStatistics { mean, .. }) if values.len() == 1 => format!("{mean:.3}"),
        Some(SummaryStatistics { mean, std, .. }) => format!("{mean:.3} ± {std:.3}"),
    }
}

/// The standard error of the mean; `None` for fewer than two values.
fn standard_error(values: &[f64]) -> Option<f64> {
    let SummaryStatistics { std, .. } = SummaryStatistics::of(values)?;
    (values.len() > 1).then(|| std / (values.len() as f64).sqrt())
}

/// The mean difference of the accuracies of each seed, in points. Its standard error is given twice: if other seeds had
/// been drawn, and if other test texts had been, since all seeds have the same ones.
fn gain(entry: &AlgorithmTunings, baseline: &[Score]) -> String {
    let pairs = entry.tested.iter().zip(baseline);
    let gains: Vec<f64> = pairs.map(|(ours, other)| ours.accuracy - other.accuracy).collect();
    let Some(SummaryStatistics { mean, .. }) = SummaryStatistics::of(&gains) else {
        return String::new();
    };
    let by_text: Vec<f64> =
        entry.gain_by_text.iter().map(|gain| gain / gains.len() as f64).collect();
    let error = |values: &[f64]| {
        standard_error(values).map_or("none".to_string(), |error| format!("{:.1}", 100.0 * error))
    };
    format!("{:+.1} ({}, {})", 100.0 * mean, error(&gains), error(&by_text))
}

/// Mean and standard deviation of shares.
fn percent(values: &[f64]) -> String {
    match SummaryStatistics::of(values) {
        None => String::new(),
        Some(SummaryStatistics { mean, .. }) if values.len() == 1 => {
            format!("{:.1} %", 100.0 * mean)
        }
        Some(SummaryStatistics { mean, std, .. }) => {
            format!("{:.1} ± {:.1} %", 100.0 * mean, 100.0 * std)
        }
    }
}

/// The lowest training loss of the first `calls` calls.
fn best_train_loss(tuned: &Tuned, calls: u64) -> f64 {
    let found = tuned.improvements.iter().rfind(|(call, _)| *call <= calls);
    found.map_or(f64::NAN, |(_, loss)| *loss)
}

/// The algorithm as a curve's label, which has little room.
fn short_name(algorithm: &str) -> &str {
    match algorithm {
        "race-cars(gamma=0.7, rho=0.002)" => "race-cars, paper's",
        other => other,
    }
}

/// The same colours as in the other figures of the paper.
fn style(algorithm: &str) -> Style {
    let name = algorithm.split('(').next().unwrap_or(algorithm);
    let (color, width, dash) = match name {
        "race-cars" if name.len() < algorithm.len() => ("#d55e00", 1.8, "6 3"),
        "race-cars" => ("#d55e00", 2.6, ""),
        "sracos" => ("#0072b2", 1.8, ""),
        "auto" => ("#009e73", 2.2, ""),
        "de" => ("#cc79a7", 1.8, "2 3"),
        "zo-adam" => ("#8a6d00", 1.8, "4 2"),
        _ => ("#333333", 1.8, "8 3 2 3"),
    };
    Style { color, width, dash }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Baselines;
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
            baselines: Baselines {
                without: look(0, 1.0),
                untuned: look(0, 0.9),
                calibrated: look(0, 0.8),
            },
            looks: vec![look(20, 0.6 + shift), look(40, 0.4 + shift)],
            kept: look(20, 0.6 + shift),
            improvements: vec![(1, 0.9), (15, 0.6 + shift), (30, 0.4 + shift)],
            calls: 40,
            failures: 1,
            other_evaluations: 6,
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
            tested_calibrated: Vec::new(),
            gain_by_text: Vec::new(),
        };
        let entries = vec![entry("race-cars"), entry("sracos")];
        let settings = TuneSettings {
            task: Task::named("sst2").unwrap(),
            shots: 16,
            seed: 0,
            algorithm: "race-cars".into(),
            dim: 50,
            bound: 1.0,
            prompt_tokens: 9,
            budget: 40,
            batch: 1,
            look_every: 20,
            loss: Loss::CrossEntropy,
            calibrate: false,
            average: 1,
            position: Position::Suffix,
            projection: ProjectionSettings { draw: Draw::Normal, alpha: 1.0, sigma: 1.0, seed: 0 },
            base: "\n<p0>".into(),
        };
        let mut comparison = TuneComparison {
            task: "sst2".into(),
            budget: 40,
            settings,
            entries,
            seeds: vec![0, 1],
            tested: None,
        };
        // Ahead with one of two seeds.
        comparison.entries[1].tuned[0].improvements[2].1 = 0.8;
        let table = comparison.table();
        for part in [
            "number of seeds in which it is less:\n\n| algorithm | 2 calls",
            "| race-cars | +0.000 (0.000), 0 of 2 | +0.000 (0.000), 0 of 2 |",
            "| -0.150 (0.150), 1 of 2 |\n\nThe kept",
            "| algorithm | seeds | 2 calls | 5 calls | 10 calls | 20 calls | 40 calls |",
            "| race-cars | 2 | 0.900 ± 0.000 | 0.900 ± 0.000 | 0.900 ± 0.000 | 0.600 ± 0.141 | 0.400 ± 0.141 |",
            "| prompt | train loss | dev loss | dev accuracy |\n",
            "| untuned | 0.900 ± 0.000 | 0.900 ± 0.000 | 55.0 ± 0.0 % |",
            "| untuned, calibrated | 0.800 ± 0.000 |",
            "| race-cars | 0.600 ± 0.1",
            "160 calls in all, 4 failed; 24 other evaluations.",
        ] {
            assert!(table.contains(part), "{part} is not in {table}");
        }
        let score = |accuracy: f64| Score { loss: 1.0, accuracy };
        comparison.tested = Some(TestedBaselines {
            texts: 200,
            without: score(0.5),
            untuned: score(0.55),
            calibrated: vec![score(0.75), score(0.85)],
        });
        comparison.entries[0].tested = vec![score(0.6), score(0.8)];
        comparison.entries[0].tested_calibrated = vec![score(0.8), score(0.8)];
        let table = comparison.table();
        for part in [
            "with 200 test texts:",
            "| dev accuracy | test accuracy | calibrated afterwards |",
            "% | 55.0 % | 80.0 ± 7.1 % |",
            "% | 70.0 ± 14.1 % | 80.0 ± 0.0 % |",
        ] {
            assert!(table.contains(part), "{part} is not in {table}");
        }
        let figure = comparison.figure().to_file();
        for part in
            ["race-cars 0.400", "race-cars 70.0<", "untuned, calibrated 80.0<", "test (filled)"]
        {
            assert!(figure.contains(part), "{part} is not in {figure}");
        }
        assert!(!figure.contains("NaN"), "{figure}");
        let section = comparison.section();
        for part in [
            "<h2 id=\"lm-sst2\">",
            "<figure id=\"figure-lm-sst2\">\n<svg",
            "<td>70.0 ± 14.1 %</td><td>80.0 ± 0.0 %</td></tr>",
            "<th>40 calls</th>",
            "m: 16 texts of each label, 50 coordinates within ±1, 9 prompt tokens after the text, p0 the \
             embedding of <code>&quot;\\n&lt;p0&gt;&quot;</code>, cross-entropy, 40 calls, seeds 0, 1.",
        ] {
            assert!(section.contains(part), "{part} is not in {section}");
        }
        comparison.settings.calibrate = true;
        // Of 4 texts, the kept prompts are wrong about one that the untuned one is right about, with one of two seeds.
        comparison.entries[0].gain_by_text = vec![0.0, 0.0, -1.0, 0.0];
        let table = comparison.table();
        for part in [
            "| gain over untuned, calibrated (standard errors: over seeds, over test texts) |",
            "% | -10.0 (5.0, 12.5) |\n",
        ] {
            assert!(table.contains(part), "{part} is not in {table}");
        }
    }
}
