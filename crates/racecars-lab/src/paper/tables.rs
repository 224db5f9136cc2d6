//! The CSV files of an experiment: every cell, every trial, and the curves of the figures.

use super::ablation::Ablation;
use super::contest::{BAND, Contest};
use super::experiment::Experiment;
use super::table1::Table1;
use super::{ContestPanel, Finding};
use racecars_figures::statistics::{SummaryStatistics, quantile};

/// The file of single trials has every n-th checkpoint of a curve.
const THINNING: usize = 4;

/// The files as (name, content).
pub(super) fn of(experiment: Experiment, finding: &Finding) -> Vec<(String, String)> {
    let name = |part: &str| format!("{}-{part}.csv", experiment.name());
    match finding {
        Finding::Contest(contest) => vec![
            (name("cells"), contest_cells(contest)),
            (name("curves"), contest_curves(contest)),
            (name("trials"), contest_trials(contest)),
        ],
        Finding::Table1(table) => {
            vec![(name("cells"), table_cells(table)), (name("trials"), table_trials(table))]
        }
        Finding::Ablation(ablation) => vec![
            (name("cells"), ablation_cells(ablation)),
            (name("trials"), ablation_trials(ablation)),
        ],
    }
}

/// A CSV file from its heading and lines.
fn csv(heading: &str, lines: impl IntoIterator<Item = String>) -> String {
    let mut text = format!("{heading}\n");
    for line in lines {
        text += &line;
        text.push('\n');
    }
    text
}

fn figures(summary: &SummaryStatistics) -> String {
    let SummaryStatistics { mean, std, median, min, max } = summary;
    format!("{mean},{std},{median},{min},{max}")
}

fn contest_cells(contest: &Contest) -> String {
    let line = |panel: &ContestPanel| -> Vec<String> {
        let ContestPanel { problem, dim, budget, .. } = panel;
        let entries = panel.algorithms.iter();
        entries
            .map(|entry| {
                let (gamma, rho) = match entry.cell.shrinking {
                    Some((gamma, rho)) => (gamma.to_string(), rho.to_string()),
                    None => Default::default(),
                };
                format!(
                    "{problem},{dim},{budget},{},{gamma},{rho},{},{},{}",
                    entry.algorithm,
                    entry.finals.len(),
                    figures(&entry.summary),
                    entry.perturbed
                )
            })
            .collect()
    };
    let heading = "problem,dim,budget,algorithm,gamma,rho,trials,mean,std,median,min,max,perturbed";
    csv(heading, contest.panels.iter().flat_map(line))
}

fn contest_curves(contest: &Contest) -> String {
    let mut lines = Vec::new();
    for panel in &contest.panels {
        for entry in &panel.algorithms {
            for place in 0..entry.cell.checkpoints {
                let bests = entry.at(place);
                let Some(SummaryStatistics { mean, std, median, .. }) =
                    SummaryStatistics::of(&bests)
                else {
                    continue;
                };
                let (low, high) = (quantile(&bests, BAND.0), quantile(&bests, BAND.1));
                lines.push(format!(
                    "{},{},{},{},{mean},{std},{median},{low},{high}",
                    panel.problem,
                    panel.dim,
                    entry.algorithm,
                    entry.cell.checkpoint(place)
                ));
            }
        }
    }
    csv("problem,dim,algorithm,evaluations,mean,std,median,quantile_10,quantile_90", lines)
}

fn contest_trials(contest: &Contest) -> String {
    let mut lines = Vec::new();
    for panel in &contest.panels {
        for entry in &panel.algorithms {
            for (seed, trial) in entry.trials.iter().enumerate() {
                // Counted from the end, so that the last checkpoint is included.
                let places = (0..trial.bests.len()).rev().step_by(THINNING);
                let mut places: Vec<usize> = places.collect();
                places.reverse();
                lines.extend(places.into_iter().map(|place| {
                    let (problem, dim, algorithm) = (&panel.problem, panel.dim, &entry.algorithm);
                    let evaluations = entry.cell.checkpoint(place);
                    let best = trial.bests[place];
                    format!("{problem},{dim},{algorithm},{seed},{evaluations},{best}")
                }));
            }
        }
    }
    csv("problem,dim,algorithm,seed,evaluations,best", lines)
}

fn table_cells(table: &Table1) -> String {
    let lines = table.cells.iter().map(|cell| {
        format!(
            "{},{},{},{},{},{}",
            cell.rho, cell.n, cell.mean, cell.std, cell.published_mean, cell.published_std
        )
    });
    csv("rho,n,mean,std,published_mean,published_std", lines)
}

fn table_trials(table: &Table1) -> String {
    let lines = table.cells.iter().flat_map(|cell| {
        let finals = cell.finals.iter().enumerate();
        finals.map(|(seed, best)| format!("{},{},{seed},{best}", cell.rho, cell.n))
    });
    csv("rho,n,seed,best", lines)
}

fn ablation_cells(ablation: &Ablation) -> String {
    let lines = ablation.cells.iter().filter_map(|cell| {
        let summary = figures(&SummaryStatistics::of(&cell.finals)?);
        let super::ablation::AblationCell { n, radius, factor, gamma, rho, finals } = cell;
        Some(format!("{n},{radius},{factor},{gamma},{rho},{},{summary}", finals.len()))
    });
    csv("n,radius,factor,gamma,rho,trials,mean,std,median,min,max", lines)
}

fn ablation_trials(ablation: &Ablation) -> String {
    let lines = ablation.cells.iter().flat_map(|cell| {
        let finals = cell.finals.iter().enumerate();
        finals.map(|(seed, best)| {
            format!("{},{},{},{},{seed},{best}", cell.n, cell.radius, cell.factor, cell.gamma)
        })
    });
    csv("n,radius,factor,gamma,seed,best", lines)
}
