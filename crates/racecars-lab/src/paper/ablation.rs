//! The ablations: Ackley on [-r, r]^n by shrinking factor gamma^(n rho), dimension and radius. Both
//! experiments are made of the same cells; one compares dimensions, the other radii.

use super::claims::{ClaimVerdict, Judgement, verdict};
use super::experiment::Experiment;
use super::scale::{Grid, PaperScale};
use crate::trials::{Cell, CellTrial, TrialResults};
use racecars_figures::heat_map::HeatMap;
use racecars_figures::{Svg, grid, number};
use serde::Serialize;

/// Best factors that differ by at most this count as the same, given the noise of the trials.
const FACTOR_TOLERANCE: f64 = 0.02;

/// An ablation.
#[derive(Debug, Clone, Serialize)]
pub struct Ablation {
    /// The number of trials of a cell.
    pub trials: usize,
    /// The shrinking rates with which each factor is realized.
    pub gammas: Vec<f64>,
    /// The best factor of each dimension and radius.
    pub columns: Vec<AblationColumn>,
    /// Whether the paper's claims hold.
    pub verdicts: Vec<ClaimVerdict>,
    /// All cells.
    #[serde(skip)]
    pub cells: Vec<AblationCell>,
    #[serde(skip)]
    across_radii: bool,
}

/// A column of a heat map.
#[derive(Debug, Clone, Serialize)]
pub struct AblationColumn {
    /// The dimension.
    pub n: usize,
    /// The domain is [-radius, radius]^n.
    pub radius: f64,
    /// The shrinking factor with the least mean.
    pub best_factor: f64,
    /// That mean, over all gamma and trials.
    pub best: f64,
    /// The gamma that was best at this factor.
    pub best_gamma: f64,
    /// The mean at each factor.
    #[serde(skip)]
    means: Vec<(f64, f64)>,
}

/// One cell.
#[derive(Debug, Clone)]
pub struct AblationCell {
    /// The dimension.
    pub n: usize,
    /// The domain is [-radius, radius]^n.
    pub radius: f64,
    /// The shrinking factor gamma^(n rho).
    pub factor: f64,
    /// The shrinking rate.
    pub gamma: f64,
    /// The shrinking frequency.
    pub rho: f64,
    /// The best value of each trial, by seed.
    pub finals: Vec<f64>,
}

impl AblationCell {
    fn mean(&self) -> f64 {
        self.finals.iter().sum::<f64>() / self.finals.len() as f64
    }
}

fn each(grid: &Grid, mut visit: impl FnMut(AblationCell, Cell)) {
    for &n in &grid.dims {
        for &radius in &grid.radii {
            for &factor in &grid.factors {
                for &gamma in &grid.gammas {
                    let rho = (factor.ln() / gamma.ln() / n as f64).min(1.0);
                    let cell = AblationCell { n, radius, factor, gamma, rho, finals: Vec::new() };
                    visit(cell, Cell::ackley(n, Some(radius), gamma, rho));
                }
            }
        }
    }
}

pub(super) fn cells(scale: PaperScale) -> Vec<Cell> {
    let mut cells = Vec::new();
    each(&scale.grid(), |_, cell| cells.push(cell));
    cells
}

impl Ablation {
    pub(super) fn of(
        experiment: Experiment,
        scale: PaperScale,
        trials: usize,
        results: &TrialResults,
    ) -> Ablation {
        let grid = scale.grid();
        let mut cells = Vec::new();
        each(&grid, |mut shown, cell| {
            shown.finals = results.of(&cell, trials).iter().map(CellTrial::best).collect();
            cells.push(shown);
        });
        let across_radii = experiment == Experiment::AblationRadius;
        let columns: Vec<AblationColumn> = (grid.dims.iter())
            .flat_map(|&n| grid.radii.iter().map(move |&radius| (n, radius)))
            .filter_map(|(n, radius)| column(&cells, &grid, n, radius))
            .collect();
        let mut ablation = Ablation {
            trials,
            gammas: grid.gammas,
            columns,
            verdicts: Vec::new(),
            cells,
            across_radii,
        };
        ablation.verdicts = if across_radii {
            vec![ablation.decreases_with_radius()]
        } else {
            vec![ablation.same_in_all_dims(), ablation.factor_is_what_counts()]
        };
        ablation
    }

    /// The heat maps' columns: one list per map, with its name.
    fn maps(&self) -> Vec<(String, Vec<&AblationColumn>)> {
        let mut maps: Vec<(String, Vec<&AblationColumn>)> = Vec::new();
        for column in &self.columns {
            let name = if self.across_radii {
                format!("n = {}", column.n)
            } else {
                format!("r = {}", column.radius)
            };
            match maps.iter_mut().find(|(known, _)| *known == name) {
                Some((_, columns)) => columns.push(column),
                None => maps.push((name, vec![column])),
            }
        }
        maps
    }

    fn same_in_all_dims(&self) -> ClaimVerdict {
        let (mut holding, mut details) = (0, Vec::new());
        let maps = self.maps();
        for (name, columns) in &maps {
            let factors: Vec<f64> = columns.iter().map(|column| column.best_factor).collect();
            let low = factors.iter().copied().fold(f64::INFINITY, f64::min);
            let high = factors.iter().copied().fold(0.0, f64::max);
            holding += usize::from(high - low <= FACTOR_TOLERANCE + 1e-9);
            details.push(format!("{name}: {}", list(&factors)));
        }
        let dims: Vec<String> =
            maps.first().map_or(Vec::new(), |map| map.1.iter().map(|c| c.n.to_string()).collect());
        let detail = format!(
            "Best factors for n = {}: {}. They count as the same within {FACTOR_TOLERANCE}.",
            dims.join(", "),
            details.join("; ")
        );
        let claim = "The best shrinking factor is insensitive to the dimension";
        verdict(claim, Judgement::of(holding, maps.len()), detail)
    }

    fn decreases_with_radius(&self) -> ClaimVerdict {
        let (mut holding, mut details) = (0, Vec::new());
        let maps = self.maps();
        for (name, columns) in &maps {
            let factors: Vec<f64> = columns.iter().map(|column| column.best_factor).collect();
            let falls = factors.first() > factors.last()
                && factors.windows(2).all(|pair| pair[1] <= pair[0] + FACTOR_TOLERANCE);
            holding += usize::from(falls);
            details.push(format!("{name}: {}", list(&factors)));
        }
        let radii: Vec<f64> =
            maps.first().map_or(Vec::new(), |map| map.1.iter().map(|c| c.radius).collect());
        let detail = format!("Best factors for r = {}: {}.", list(&radii), details.join("; "));
        let claim = "The best shrinking factor decreases as the radius increases";
        verdict(claim, Judgement::of(holding, maps.len()), detail)
    }

    /// Whether gamma and rho matter only through their factor: the spread over rates at the best factor,
    /// next to the spread over factors.
    fn factor_is_what_counts(&self) -> ClaimVerdict {
        let mut shares = Vec::new();
        for column in &self.columns {
            let at_best = self.cells.iter().filter(|cell| {
                cell.n == column.n
                    && cell.radius == column.radius
                    && cell.factor == column.best_factor
            });
            let means: Vec<f64> = at_best.map(AblationCell::mean).collect();
            let of_factors: Vec<f64> = column.means.iter().map(|&(_, mean)| mean).collect();
            shares.push(width(&means) / width(&of_factors));
        }
        let share = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        let detail = format!(
            "At the best factor, the means of gamma = {} lie apart by {:.0} % of what the factors do, \
             on average.",
            list(&self.gammas),
            100.0 * share
        );
        let claim = "gamma and rho matter through their shrinking factor";
        verdict(claim, Judgement::of(usize::from(share < 0.25), 1), detail)
    }

    /// Heat maps with the best factors joined by a line.
    pub(super) fn figure(&self) -> Svg {
        let maps = self.maps().into_iter().map(|(name, columns)| {
            let rows = columns.first().map_or(Vec::new(), |column| {
                column.means.iter().map(|(factor, _)| format!("{factor:.2}")).collect()
            });
            let label = |column: &&AblationColumn| match self.across_radii {
                true => column.radius.to_string(),
                false => column.n.to_string(),
            };
            let values = columns.iter().map(|c| c.means.iter().map(|&(_, mean)| mean).collect());
            HeatMap {
                title: name,
                x_label: if self.across_radii { "radius r" } else { "dimension n" }.into(),
                y_label: "shrinking factor".into(),
                columns: columns.iter().map(label).collect(),
                rows,
                rows_per_name: 3,
                values: values.collect(),
            }
            .draw()
        });
        let title = "Ackley on [-r, r]^n, T = 30n: mean best value, normalized by column";
        grid(title, &maps.collect::<Vec<_>>(), 4)
    }
}

fn column(cells: &[AblationCell], grid: &Grid, n: usize, radius: f64) -> Option<AblationColumn> {
    let at = |factor: f64| {
        let here = move |c: &&AblationCell| c.n == n && c.radius == radius && c.factor == factor;
        cells.iter().filter(here)
    };
    let mean_at = |factor: f64| {
        let means: Vec<f64> = at(factor).map(AblationCell::mean).collect();
        means.iter().sum::<f64>() / means.len() as f64
    };
    let means: Vec<(f64, f64)> = grid.factors.iter().map(|&f| (f, mean_at(f))).collect();
    let &(best_factor, best) = means.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let best_cell = at(best_factor).min_by(|a, b| a.mean().total_cmp(&b.mean()))?;
    Some(AblationColumn { n, radius, best_factor, best, best_gamma: best_cell.gamma, means })
}

/// The largest number minus the smallest.
fn width(numbers: &[f64]) -> f64 {
    let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let high = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    high - low
}

fn list(numbers: &[f64]) -> String {
    let shown: Vec<String> = numbers
        .iter()
        .map(|&x| if x.fract() == 0.0 { format!("{x}") } else { trimmed(&number(x)) })
        .collect();
    shown.join(", ")
}

/// A number without trailing zeros.
fn trimmed(number: &str) -> String {
    number.trim_end_matches('0').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_the_factor_of_its_settings() {
        let mut count = 0;
        each(&PaperScale::Full.grid(), |shown, cell| {
            let factor = shown.gamma.powf(shown.rho * shown.n as f64);
            assert!((factor - shown.factor).abs() < 1e-12);
            assert_eq!(cell.shrinking, Some((shown.gamma, shown.rho)));
            count += 1;
        });
        assert_eq!(count, 4 * 4 * 24 * 4);
    }
}
