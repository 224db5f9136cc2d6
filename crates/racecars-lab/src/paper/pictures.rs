//! The figures of an experiment.

use super::Finding;
use super::contest::{Contest, ContestEntry, ContestPanel, OURS, display_name};
use super::experiment::Experiment;
use racecars_figures::curves::{Chart, Curve, CurvePoint, Style};
use racecars_figures::{Svg, grid, number};

/// The figures as (file name without extension, drawing).
pub(super) fn of(experiment: Experiment, finding: &Finding) -> Vec<(String, Svg)> {
    let name = experiment.name().to_string();
    match finding {
        Finding::Contest(contest) if experiment == Experiment::Discontinuous => {
            let of_kind = |prefix: &'static str| {
                contest.panels.iter().filter(move |panel| panel.problem.starts_with(prefix))
            };
            vec![
                (
                    format!("{name}-printed"),
                    curves(
                        "As printed: 5n balls of radius 0.5, never met",
                        of_kind("discontinuous-"),
                        contest,
                    ),
                ),
                (
                    format!("{name}-stepped"),
                    curves("Steps that are met: 5n slabs of width 1", of_kind("stepped-"), contest),
                ),
            ]
        }
        Finding::Contest(contest) => {
            vec![(name, curves(experiment.title(), contest.panels.iter(), contest))]
        }
        Finding::Table1(table) => vec![(name, table.figure())],
        Finding::Ablation(ablation) => vec![(name, ablation.figure())],
    }
}

fn curves<'a>(
    title: &str,
    panels: impl Iterator<Item = &'a ContestPanel>,
    contest: &Contest,
) -> Svg {
    let charts: Vec<Svg> = panels.map(chart).collect();
    let title = format!("{title}: mean best value of {} trials, band 10–90 %", contest.trials);
    grid(&title, &charts, 2)
}

fn chart(panel: &ContestPanel) -> Svg {
    let curve = |entry: &ContestEntry| Curve {
        label: format!("{} {}", display_name(&entry.algorithm), number(entry.summary.mean)),
        style: style(&entry.algorithm),
        samples: thinned(&entry.curve()),
    };
    Chart {
        title: format!("{}, n = {}", panel.title(), panel.dim),
        x_label: "evaluations".into(),
        y_label: "best value so far".into(),
        linear: None,
        curves: panel.algorithms.iter().map(curve).collect(),
    }
    .draw()
}

/// Every other point, including the last: the points are then a few pixels apart.
fn thinned(samples: &[CurvePoint]) -> Vec<CurvePoint> {
    let mut thinned: Vec<CurvePoint> = samples.iter().rev().step_by(2).copied().collect();
    thinned.reverse();
    thinned
}

/// The colour-blind safe palette of Okabe and Ito, with dashes in addition.
fn style(algorithm: &str) -> Style {
    let (color, dash) = match algorithm {
        OURS => return Style { color: "#d55e00", width: 2.6, dash: "" },
        "sracos" => ("#0072b2", ""),
        "zo-adam" => ("#cc79a7", "2 4"),
        "de" => ("#009e73", "8 4"),
        _ => ("#333333", "8 3 2 3"),
    };
    Style { color, width: 1.8, dash }
}
