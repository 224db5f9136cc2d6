//! Table 1: Ackley on [-10, 10]^n by shrinking frequency and dimension, next to the 510 published
//! cells.

use super::claims::{ClaimVerdict, Judgement, verdict};
use super::scale::PaperScale;
use crate::trials::{Cell, CellTrial, TrialResults};
use racecars_figures::heat_map::HeatMap;
use racecars_figures::statistics::{SummaryStatistics, spearman};
use racecars_figures::{Svg, grid};
use serde::Serialize;

/// The published cells, transcribed from the paper: `rho,n,mean,std`.
const PUBLISHED: &str = include_str!("../../data/table1.csv");
const GAMMA: f64 = 0.95;
/// A cell is worse than published if its mean exceeds the published one by more than this plus two
/// published standard deviations.
const MEAN_TOLERANCE: f64 = 0.5;

/// Table 1, ours next to the published one.
#[derive(Debug, Clone, Serialize)]
pub struct Table1 {
    /// The number of trials of a cell.
    pub trials: usize,
    /// Spearman's rank correlation of our means with the published ones.
    pub spearman: f64,
    /// The mean difference of our means and the published ones.
    pub mean_difference: f64,
    /// The best cell of each dimension.
    pub columns: Vec<Table1Column>,
    /// The number of cells worse than published by more than 0.5 + 2 published standard deviations.
    pub worse_cells: usize,
    /// Those cells.
    pub worse: Vec<Table1Cell>,
    /// Whether the paper's claims hold.
    pub verdicts: Vec<ClaimVerdict>,
    /// All cells, in the order of the published file.
    #[serde(skip)]
    pub cells: Vec<Table1Cell>,
}

/// The best cell of a dimension; on a tie, that of the smallest rho.
#[derive(Debug, Clone, Serialize)]
pub struct Table1Column {
    /// The dimension.
    pub n: usize,
    /// The least mean.
    pub best: f64,
    /// Its frequency.
    pub best_rho: f64,
    /// The least published mean.
    pub published_best: f64,
    /// Its frequency.
    pub published_rho: f64,
}

/// One cell.
#[derive(Debug, Clone, Serialize)]
pub struct Table1Cell {
    /// The shrinking frequency; 0 is SRACOS.
    pub rho: f64,
    /// The dimension.
    pub n: usize,
    /// Our mean.
    pub mean: f64,
    /// Our standard deviation.
    pub std: f64,
    /// The published mean.
    pub published_mean: f64,
    /// The published standard deviation.
    pub published_std: f64,
    /// The best value of each of our trials, by seed.
    pub finals: Vec<f64>,
}

struct Published {
    rho: f64,
    n: usize,
    mean: f64,
    std: f64,
}

fn published(scale: PaperScale) -> impl Iterator<Item = Published> {
    let parse = |line: &str| {
        let mut fields = line.split(',');
        let mut next = || fields.next()?.trim().parse::<f64>().ok();
        Some(Published { rho: next()?, n: next()? as usize, mean: next()?, std: next()? })
    };
    let rows = PUBLISHED.lines().skip(1).filter_map(parse);
    rows.filter(move |row| scale.runs_column(row.n))
}

pub(super) fn cells(scale: PaperScale) -> Vec<Cell> {
    published(scale).map(|row| Cell::ackley(row.n, None, GAMMA, row.rho)).collect()
}

impl Table1 {
    pub(super) fn of(scale: PaperScale, trials: usize, results: &TrialResults) -> Table1 {
        let cells: Vec<Table1Cell> = published(scale)
            .filter_map(|row| {
                let cell = Cell::ackley(row.n, None, GAMMA, row.rho);
                let finals: Vec<f64> =
                    results.of(&cell, trials).iter().map(CellTrial::best).collect();
                let SummaryStatistics { mean, std, .. } = SummaryStatistics::of(&finals)?;
                let (rho, n) = (row.rho, row.n);
                Some(Table1Cell {
                    rho,
                    n,
                    mean,
                    std,
                    published_mean: row.mean,
                    published_std: row.std,
                    finals,
                })
            })
            .collect();
        let ours: Vec<f64> = cells.iter().map(|cell| cell.mean).collect();
        let theirs: Vec<f64> = cells.iter().map(|cell| cell.published_mean).collect();
        let differences = ours.iter().zip(&theirs).map(|(ours, theirs)| ours - theirs);
        let is_worse = |cell: &&Table1Cell| {
            cell.mean > cell.published_mean + MEAN_TOLERANCE + 2.0 * cell.published_std
        };
        let worse: Vec<Table1Cell> = cells.iter().filter(is_worse).cloned().collect();
        let mut table = Table1 {
            trials,
            spearman: spearman(&ours, &theirs),
            mean_difference: differences.sum::<f64>() / cells.len() as f64,
            columns: columns(&cells),
            worse_cells: worse.len(),
            worse,
            verdicts: Vec::new(),
            cells,
        };
        table.verdicts = table.judge();
        table
    }

    fn judge(&self) -> Vec<ClaimVerdict> {
        let near =
            |column: &&Table1Column| (column.best - column.published_best).abs() <= MEAN_TOLERANCE;
        let gap = |column: &Table1Column| (column.best - column.published_best).abs();
        let widest = self.columns.iter().map(gap).fold(0.0, f64::max);
        let bests = self.columns.iter().filter(near).count();
        let products: Vec<f64> =
            self.columns.iter().map(|column| column.n as f64 * column.best_rho).collect();
        let published: Vec<f64> =
            self.columns.iter().map(|column| column.n as f64 * column.published_rho).collect();
        let range = |list: &[f64]| {
            let low = list.iter().copied().fold(f64::INFINITY, f64::min);
            let high = list.iter().copied().fold(0.0, f64::max);
            (low, high)
        };
        let (ours, theirs) = (range(&products), range(&published));
        // Since n varies by a factor of ten, a factor of two counts as constant.
        let is_constant = ours.1 <= 2.0 * ours.0;
        vec![
            verdict(
                "The printed means are reproduced",
                Judgement::of(
                    usize::from(self.spearman >= 0.97) + usize::from(self.worse_cells <= 5),
                    2,
                ),
                format!(
                    "Spearman correlation {:.3} over {} cells; ours less published {:+.2} in the mean; \
                     {} cells worse than published by more than 0.5 + 2 published standard deviations.",
                    self.spearman,
                    self.cells.len(),
                    self.mean_difference,
                    self.worse_cells
                ),
            ),
            verdict(
                "The best value of each dimension is reproduced within 0.5",
                Judgement::of(bests, self.columns.len()),
                format!(
                    "{bests} of {} dimensions; the widest gap is {widest:.2}.",
                    self.columns.len()
                ),
            ),
            verdict(
                "The best rho is in inverse proportion to n",
                Judgement::of(usize::from(is_constant), 1),
                format!(
                    "n rho of the best cell is from {:.2} to {:.2} here, from {:.2} to {:.2} in the \
                     paper, over dimensions that differ by a factor of ten.",
                    ours.0, ours.1, theirs.0, theirs.1
                ),
            ),
        ]
    }

    /// Both tables as heat maps.
    pub(super) fn figure(&self) -> Svg {
        let ours = self.map("Ours", |cell| cell.mean);
        let theirs = self.map("Published", |cell| cell.published_mean);
        grid(
            "Ackley, gamma = 0.95, T = 30n: mean best value, normalized by column",
            &[ours, theirs],
            2,
        )
    }

    fn map(&self, title: &str, value: fn(&Table1Cell) -> f64) -> Svg {
        let dims: Vec<usize> = self.columns.iter().map(|column| column.n).collect();
        let of = |n: usize| self.cells.iter().filter(move |cell| cell.n == n);
        let rows = dims.first().map_or(Vec::new(), |&n| of(n).map(|cell| cell.rho).collect());
        HeatMap {
            title: title.into(),
            x_label: "dimension n".into(),
            y_label: "shrinking frequency rho".into(),
            columns: dims.iter().map(usize::to_string).collect(),
            rows: rows.iter().map(|rho: &f64| format!("{rho:.2}")).collect(),
            rows_per_name: 5,
            values: dims.iter().map(|&n| of(n).map(value).collect()).collect(),
        }
        .draw()
    }
}

fn columns(cells: &[Table1Cell]) -> Vec<Table1Column> {
    let mut dims: Vec<usize> = cells.iter().map(|cell| cell.n).collect();
    dims.sort_unstable();
    dims.dedup();
    let least = |n: usize, value: fn(&Table1Cell) -> f64| {
        let column = cells.iter().filter(|cell| cell.n == n);
        column.min_by(|a, b| value(a).total_cmp(&value(b)))
    };
    let column = |n: usize| {
        let ours = least(n, |cell| cell.mean)?;
        let theirs = least(n, |cell| cell.published_mean)?;
        Some(Table1Column {
            n,
            best: ours.mean,
            best_rho: ours.rho,
            published_best: theirs.published_mean,
            published_rho: theirs.rho,
        })
    };
    dims.into_iter().filter_map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_table_is_whole() {
        let rows: Vec<Published> = published(PaperScale::Full).collect();
        assert_eq!(rows.len(), 510);
        assert_eq!(rows.iter().filter(|row| row.rho == 0.0).count(), 10);
        let last = &rows[509];
        assert_eq!((last.rho, last.n), (0.1, 500));
        assert_eq!(cells(PaperScale::Quick).len(), 4 * 51);
    }
}
