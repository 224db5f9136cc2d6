//! Experiments that compare algorithms: the final values on each problem, and how fast they were reached.

use super::claims::ClaimVerdict;
use super::scale::{ALGORITHMS, Arena};
use crate::trials::{Cell, CellTrial, TrialResults};
use racecars_figures::curves::CurvePoint;
use racecars_figures::statistics::{SummaryStatistics, quantile, share_smaller};
use serde::Serialize;

/// The number of evaluations of a trial at which its best value is recorded.
const CHECKPOINTS: usize = 200;
/// The quantiles between which the bands of the figures lie.
pub(super) const BAND: (f64, f64) = (0.1, 0.9);
pub(super) const OURS: &str = "race-cars";

/// An experiment that compares algorithms.
#[derive(Debug, Clone, Serialize)]
pub struct Contest {
    /// The number of trials of each algorithm on each problem.
    pub trials: usize,
    /// The problems.
    pub panels: Vec<ContestPanel>,
    /// Whether the paper's claims hold.
    pub verdicts: Vec<ClaimVerdict>,
}

/// A problem and the results of the algorithms on it.
#[derive(Debug, Clone, Serialize)]
pub struct ContestPanel {
    /// The problem's name.
    pub problem: String,
    /// Its dimension.
    pub dim: usize,
    /// The evaluations of a trial.
    pub budget: u64,
    /// RACE-CARS: the shrinking rate.
    pub gamma: f64,
    /// RACE-CARS: the shrinking frequency.
    pub rho: f64,
    /// The algorithms.
    pub algorithms: Vec<ContestEntry>,
    /// The algorithms that do not support the problem.
    pub left_out: Vec<LeftOut>,
}

/// The results of an algorithm on a problem.
#[derive(Debug, Clone, Serialize)]
pub struct ContestEntry {
    /// Its name.
    pub algorithm: String,
    /// Statistics of the trials' best values.
    #[serde(flatten)]
    pub summary: SummaryStatistics,
    /// The share of pairs of trials, one of each algorithm, in which RACE-CARS has the better final value.
    pub beaten: Option<f64>,
    /// The number of evaluations after which the mean of RACE-CARS reached this algorithm's final mean;
    /// `None` if it never did.
    pub reached_after: Option<u64>,
    /// The share of evaluations whose value a jump of the problem changed.
    pub perturbed: f64,
    /// The evaluations of all trials.
    pub evaluations: u64,
    /// The best value of each trial, by seed.
    pub finals: Vec<f64>,
    #[serde(skip)]
    pub(super) cell: Cell,
    #[serde(skip)]
    pub(super) trials: Vec<CellTrial>,
}

/// An algorithm that does not support the problem, and why.
#[derive(Debug, Clone, Serialize)]
pub struct LeftOut {
    /// Its name.
    pub algorithm: String,
    /// Why.
    pub reason: String,
}

impl Arena {
    pub(super) fn cell(&self, algorithm: &str) -> Cell {
        Cell {
            problem: self.problem.clone(),
            dim: self.dim,
            radius: None,
            budget: self.budget,
            algorithm: algorithm.to_string(),
            shrinking: (algorithm == OURS).then_some(self.shrinking),
            checkpoints: CHECKPOINTS,
            seed: 0,
            build: None,
        }
    }

    /// The cells of the algorithms that support the problem, and why the others do not.
    pub(super) fn cells(&self) -> (Vec<Cell>, Vec<LeftOut>) {
        let (mut cells, mut left_out) = (Vec::new(), Vec::new());
        for algorithm in ALGORITHMS {
            let cell = self.cell(algorithm);
            match cell.taken() {
                Ok(()) => cells.push(cell),
                Err(reason) => left_out.push(LeftOut { algorithm: algorithm.into(), reason }),
            }
        }
        (cells, left_out)
    }
}

impl Contest {
    /// A sentence about each algorithm that was left out.
    pub(super) fn left_out(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for LeftOut { algorithm, reason } in self.panels.iter().flat_map(|panel| &panel.left_out) {
            let sentence = format!("Without {}: {reason}.", display_name(algorithm));
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
        sentences
    }
}

impl ContestPanel {
    pub(super) fn of(arena: &Arena, trials: usize, results: &TrialResults) -> ContestPanel {
        let (cells, left_out) = arena.cells();
        let entries = cells.into_iter().filter_map(|cell| ContestEntry::of(cell, trials, results));
        let mut panel = ContestPanel {
            problem: arena.problem.clone(),
            dim: arena.dim,
            budget: arena.budget,
            gamma: arena.shrinking.0,
            rho: arena.shrinking.1,
            algorithms: entries.collect(),
            left_out,
        };
        if let Some(ours) = panel.entry(OURS).cloned() {
            for rival in panel.algorithms.iter_mut().filter(|entry| entry.algorithm != OURS) {
                rival.beaten = Some(share_smaller(&ours.finals, &rival.finals));
                rival.reached_after = (ours.curve().iter())
                    .find(|sample| sample.middle <= rival.summary.mean)
                    .map(|sample| sample.x as u64);
            }
        }
        panel
    }

    pub(super) fn entry(&self, algorithm: &str) -> Option<&ContestEntry> {
        self.algorithms.iter().find(|entry| entry.algorithm == algorithm)
    }

    /// The problem's name for people: `Ackley`, `stepped Levy`.
    pub(super) fn title(&self) -> String {
        let (prefix, name) = self.problem.rsplit_once('-').unwrap_or(("", &self.problem));
        let mut letters = name.chars();
        let name: String =
            letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
        let half = self.dim / 2;
        match prefix {
            "" => name,
            "mixed" => format!("mixed {name}, n1 = n2 = {half}"),
            prefix => format!("{prefix} {name}"),
        }
    }
}

impl ContestEntry {
    fn of(cell: Cell, count: usize, results: &TrialResults) -> Option<ContestEntry> {
        let trials = results.of(&cell, count).to_vec();
        let finals: Vec<f64> = trials.iter().map(CellTrial::best).collect();
        let evaluations: u64 = trials.iter().map(|trial| trial.evaluations).sum();
        let perturbed: u64 = trials.iter().map(|trial| trial.perturbed).sum();
        Some(ContestEntry {
            algorithm: cell.algorithm.clone(),
            summary: SummaryStatistics::of(&finals)?,
            beaten: None,
            reached_after: None,
            perturbed: perturbed as f64 / evaluations.max(1) as f64,
            evaluations,
            finals,
            cell,
            trials,
        })
    }

    /// The mean over trials at each checkpoint, with its band.
    pub(super) fn curve(&self) -> Vec<CurvePoint> {
        (0..self.cell.checkpoints)
            .map(|place| {
                let bests = self.at(place);
                CurvePoint {
                    x: self.cell.checkpoint(place) as f64,
                    middle: bests.iter().sum::<f64>() / bests.len() as f64,
                    low: quantile(&bests, BAND.0),
                    high: quantile(&bests, BAND.1),
                }
            })
            .collect()
    }

    /// The best values of all trials at a checkpoint, sorted.
    pub(super) fn at(&self, place: usize) -> Vec<f64> {
        let mut bests: Vec<f64> =
            self.trials.iter().filter_map(|trial| trial.bests.get(place)).copied().collect();
        bests.sort_by(f64::total_cmp);
        bests
    }
}

/// An algorithm's name for people.
pub(super) fn display_name(algorithm: &str) -> String {
    match algorithm {
        "zo-adam" => "ZO-Adam".to_string(),
        other => other.to_uppercase(),
    }
}
