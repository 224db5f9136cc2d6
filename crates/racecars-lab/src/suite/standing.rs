//! The results of the suite: the candidate next to the best single algorithm, by cell and overall.

use super::functions::SuiteFunction;
use racecars::Budget;
use serde::Serialize;

/// Smaller gaps count as this one: a better value has no practical use.
const MIN_GAP: f64 = 1e-8;
/// A cell with at most this ratio counts as near the best single algorithm.
pub const NEAR_RATIO: f64 = 1.5;

/// The candidate and the single algorithms on a function in a dimension with a budget.
#[derive(Debug, Clone, Serialize)]
pub struct CellComparison {
    /// The function's name.
    pub function: &'static str,
    /// The dimension.
    pub dim: usize,
    /// The budget as it was given, such as `30n`.
    pub budget: String,
    /// The budget in evaluations.
    pub evaluations: u64,
    /// The candidate's median gap to the optimum over the seeds.
    pub candidate: f64,
    /// The best single algorithm.
    pub best_single: String,
    /// Its median.
    pub best: f64,
    /// The candidate's median divided by the best single algorithm's.
    pub ratio: f64,
    /// The medians of all single algorithms that took part.
    pub singles: Vec<MedianGap>,
}

/// An algorithm's median gap.
#[derive(Debug, Clone, Serialize)]
pub struct MedianGap {
    /// The algorithm.
    pub algorithm: String,
    /// The median gap to the optimum over the seeds; at least 1e-8.
    pub gap: f64,
}

/// Ratios to the best single algorithm, over many cells.
#[derive(Debug, Clone, Serialize)]
pub struct RatioSummary {
    /// The number of cells.
    pub cells: usize,
    /// The geometric mean of the ratios.
    pub geometric_mean: f64,
    /// The geometric mean with ratios below 1 counted as 1, so that gains in some cells do not hide losses
    /// in others.
    pub mean_loss: f64,
    /// The share of cells with a ratio of at most [`NEAR_RATIO`].
    pub share_near: f64,
    /// The greatest ratio.
    pub worst: f64,
    /// The cell with that ratio.
    pub worst_cell: String,
}

/// A summary of a group of cells, or of one algorithm.
#[derive(Debug, Clone, Serialize)]
pub struct SummaryGroup {
    /// The name of the group or algorithm.
    pub name: String,
    /// The summary.
    #[serde(flatten)]
    pub summary: RatioSummary,
}

/// The results of the suite.
#[derive(Debug, Clone, Serialize)]
pub struct Standing {
    /// The candidate's name.
    pub candidate: String,
    /// The number of seeds that the medians are over.
    pub seeds: usize,
    /// The cells.
    pub cells: Vec<CellComparison>,
    /// The candidate in all cells.
    pub summary: RatioSummary,
    /// The candidate by budget.
    pub by_budget: Vec<SummaryGroup>,
    /// The candidate by dimension.
    pub by_dim: Vec<SummaryGroup>,
    /// The candidate by function.
    pub by_function: Vec<SummaryGroup>,
    /// Each single algorithm as if it were the candidate, over the cells it took part in.
    pub singles: Vec<SummaryGroup>,
}

impl MedianGap {
    /// The median of an algorithm's final values, which are gaps because all optima are 0.
    pub(super) fn of(algorithm: &str, values: &[f64]) -> Option<MedianGap> {
        let median = racecars_figures::statistics::SummaryStatistics::of(values)?.median;
        Some(MedianGap { algorithm: algorithm.to_string(), gap: median.max(MIN_GAP) })
    }
}

impl CellComparison {
    /// `None` if no single algorithm took part.
    pub(super) fn of(
        function: SuiteFunction,
        dim: usize,
        budget: Budget,
        candidate: &MedianGap,
        singles: Vec<MedianGap>,
    ) -> Option<CellComparison> {
        let best = singles.iter().min_by(|a, b| a.gap.total_cmp(&b.gap))?;
        Some(CellComparison {
            function: function.name,
            dim,
            budget: budget.to_string(),
            evaluations: budget.evaluations(dim),
            candidate: candidate.gap,
            best_single: best.algorithm.clone(),
            best: best.gap,
            ratio: candidate.gap / best.gap,
            singles,
        })
    }

    fn place(&self) -> String {
        format!("{} n={} T={}", self.function, self.dim, self.budget)
    }
}

impl RatioSummary {
    /// The summary of cells with a ratio for each; `None` if there are none.
    fn of<'a>(ratios: impl Iterator<Item = (&'a CellComparison, f64)>) -> Option<RatioSummary> {
        let ratios: Vec<(&CellComparison, f64)> = ratios.collect();
        let (worst_cell, worst) = *ratios.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let count = ratios.len() as f64;
        let mean = |least: f64| {
            let logs: f64 = ratios.iter().map(|(_, ratio)| ratio.max(least).ln()).sum();
            (logs / count).exp()
        };
        let near = ratios.iter().filter(|(_, ratio)| *ratio <= NEAR_RATIO).count();
        Some(RatioSummary {
            cells: ratios.len(),
            geometric_mean: mean(0.0),
            mean_loss: mean(1.0),
            share_near: near as f64 / count,
            worst,
            worst_cell: worst_cell.place(),
        })
    }
}

impl Standing {
    /// `None` if there are no cells.
    pub(super) fn of(
        candidate: String,
        seeds: usize,
        cells: Vec<CellComparison>,
        singles: &[String],
    ) -> Option<Standing> {
        let summary = RatioSummary::of(cells.iter().map(|cell| (cell, cell.ratio)))?;
        let one = |name: &String| {
            let ratio = |cell: &CellComparison| {
                let median = cell.singles.iter().find(|median| median.algorithm == *name)?;
                Some(median.gap / cell.best)
            };
            let ratios = cells.iter().filter_map(|cell| Some((cell, ratio(cell)?)));
            Some(SummaryGroup { name: name.clone(), summary: RatioSummary::of(ratios)? })
        };
        Some(Standing {
            candidate,
            seeds,
            summary,
            by_budget: groups(&cells, |cell| format!("T = {}", cell.budget)),
            by_dim: groups(&cells, |cell| format!("n = {}", cell.dim)),
            by_function: groups(&cells, |cell| cell.function.to_string()),
            singles: singles.iter().filter_map(one).collect(),
            cells,
        })
    }

    /// The cells as a table, with a column for each single algorithm.
    pub(super) fn csv(&self) -> String {
        let singles: Vec<&str> = self.singles.iter().map(|group| group.name.as_str()).collect();
        let mut lines = vec![format!(
            "function,dim,budget,evaluations,candidate,best_single,best,ratio,{}",
            singles.join(",")
        )];
        for cell in &self.cells {
            let CellComparison { function, dim, budget, evaluations, candidate, .. } = cell;
            let CellComparison { best_single, best, ratio, .. } = cell;
            let mut line = format!(
                "{function},{dim},{budget},{evaluations},{candidate:e},{best_single},{best:e},\
                 {ratio:e}"
            );
            for name in &singles {
                let median = cell.singles.iter().find(|median| median.algorithm == *name);
                line += &median.map_or(",".to_string(), |median| format!(",{:e}", median.gap));
            }
            lines.push(line);
        }
        lines.join("\n") + "\n"
    }
}

/// The cells by a property, in the order in which its values first appear.
fn groups(
    cells: &[CellComparison],
    property: impl Fn(&CellComparison) -> String,
) -> Vec<SummaryGroup> {
    let mut names: Vec<String> = Vec::new();
    for name in cells.iter().map(&property) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let group = |name: String| {
        let inside = cells.iter().filter(|cell| property(cell) == name);
        let summary = RatioSummary::of(inside.map(|cell| (cell, cell.ratio)))?;
        Some(SummaryGroup { name, summary })
    };
    names.into_iter().filter_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn median(algorithm: &str, gaps: &[f64]) -> MedianGap {
        MedianGap::of(algorithm, gaps).unwrap()
    }

    fn comparison(name: &str, dim: usize, candidate: f64, singles: [f64; 2]) -> CellComparison {
        CellComparison::of(
            SuiteFunction::named(name).unwrap(),
            dim,
            Budget::PerDimension(30.0),
            &median("auto", &[candidate]),
            vec![median("race-cars", &[singles[0]]), median("cma-es", &[singles[1]])],
        )
        .unwrap()
    }

    fn standing() -> Standing {
        let cells = vec![
            comparison("ackley", 20, 2.0, [1.0, 4.0]),
            comparison("ackley", 50, 16.0, [9.0, 2.0]),
            comparison("sphere", 50, 1e-12, [1e-9, 0.5]),
            comparison("sphere", 20, 0.75, [0.5, 0.5]),
            comparison("levy", 200, 0.01, [0.5, 0.1]),
        ];
        Standing::of("auto".into(), 1, cells, &["race-cars".into(), "cma-es".into()]).unwrap()
    }

    #[test]
    fn a_cell_is_the_median_beside_the_best_single_and_tiny_gaps_are_equal() {
        assert_eq!(median("x", &[3.0, 1.0, 100.0]).gap, 3.0);
        let cells = standing().cells;
        assert_eq!((cells[0].best_single.as_str(), cells[0].ratio), ("race-cars", 2.0));
        assert_eq!((cells[1].best_single.as_str(), cells[1].ratio), ("cma-es", 8.0));
        assert_eq!((cells[2].candidate, cells[2].best, cells[2].ratio), (1e-8, 1e-8, 1.0));
        assert_eq!(cells[1].evaluations, 1500);
    }

    #[test]
    fn the_summary_has_the_geometric_mean_the_share_near_and_the_worst_cell() {
        let summary = standing().summary;
        // The ratios are 2, 8, 1, 1.5 and 0.1.
        assert!((summary.geometric_mean - 2.4f64.powf(0.2)).abs() < 1e-12);
        assert!((summary.mean_loss - 24f64.powf(0.2)).abs() < 1e-12);
        assert_eq!((summary.cells, summary.share_near, summary.worst), (5, 0.6, 8.0));
        assert_eq!(summary.worst_cell, "ackley n=50 T=30n");
    }

    #[test]
    fn groups_and_single_algorithms_are_summarized_alike() {
        let standing = standing();
        let means = |groups: &[SummaryGroup]| -> Vec<(String, f64)> {
            let pair =
                |group: &SummaryGroup| (group.name.clone(), group.summary.geometric_mean.powi(2));
            groups.iter().map(pair).collect()
        };
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9 * b;
        let by_dim = means(&standing.by_dim);
        assert_eq!((by_dim[0].0.as_str(), by_dim[1].0.as_str()), ("n = 20", "n = 50"));
        assert!(close(by_dim[0].1, 3.0) && close(by_dim[1].1, 8.0));
        assert!(close(means(&standing.by_function)[1].1, 1.5));
        // race-cars alone: 1, 4.5, 1, 1, 5; cma-es alone: 4, 1, 5e7, 1, 1.
        assert!(close(standing.singles[0].summary.worst, 5.0));
        assert!(close(standing.singles[1].summary.geometric_mean, 2e8f64.powf(0.2)));
    }

    #[test]
    fn the_csv_has_a_column_for_each_single_and_gaps_where_one_did_not_take_part() {
        let mut standing = standing();
        standing.cells[1].singles.pop();
        let csv = standing.csv();
        let lines: Vec<&str> = csv.lines().collect();
        assert!(lines[0].ends_with("ratio,race-cars,cma-es"));
        assert_eq!(lines[1], "ackley,20,30n,600,2e0,race-cars,1e0,2e0,1e0,4e0");
        assert!(lines[2].ends_with(",9e0,"));
    }
}
