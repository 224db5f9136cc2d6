//! Experiments that compare algorithms: who came how far on which problem, and how fast.

use super::claims::ClaimVerdict;
use super::scale::{ALGORITHMS, Arena};
use crate::trials::{Cell, CellTrial, TrialResults};
use racecars_figures::curves::CurvePoint;
use racecars_figures::statistics::{SummaryStatistics, quantile, share_smaller};
use serde::Serialize;

/// How many evaluations of a trial are recorded.
const CHECKPOINTS: usize = 200;
/// The ends of the bands of spread in the figures.
pub(super) const BAND: (f64, f64) = (0.1, 0.9);
pub(super) const OURS: &str = "race-cars";

/// An experiment that compares algorithms.
#[derive(Debug, Clone, Serialize)]
pub struct Contest {
    /// How many trials each algorithm had on each problem.
    pub trials: usize,
    /// The problems.
    pub panels: Vec<ContestPanel>,
    /// What holds of the paper's claims.
    pub verdicts: Vec<ClaimVerdict>,
}

/// A problem and how the algorithms did on it.
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
    /// The algorithms that could not take part.
    pub left_out: Vec<LeftOut>,
}

/// How an algorithm did on a problem.
#[derive(Debug, Clone, Serialize)]
pub struct ContestEntry {
    /// Its name.
    pub algorithm: String,
    /// The best value of each trial, summarized.
    #[serde(flatten)]
    pub summary: SummaryStatistics,
    /// The share of pairs of trials, one of each, in which RACE-CARS came out better.
    pub beaten: Option<f64>,
    /// After how many evaluations the mean of RACE-CARS was at this algorithm's final mean; `None` if
    /// never.
    pub reached_after: Option<u64>,
    /// The share of evaluations that the problem's jumps touched.
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

/// An algorithm that could not take part, and why.
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
            build: None,
        }
    }

    /// The cells of the algorithms that take the problem, and why the others do not.
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
    /// A sentence on each algorithm that could not take part.
    pub(super) fn left_out(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for LeftOut { algorithm, reason } in self.panels.iter().flat_map(|panel| &panel.left_out) {
            let sentence = format!("Without {}: {reason}.", written(algorithm));
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

    /// The problem as it is written: `Ackley`, `stepped Levy`.
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

    /// The mean over trials at each checkpoint, with the band of spread.
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

/// An algorithm's name as it is written.
pub(super) fn written(algorithm: &str) -> String {
    match algorithm {
        "zo-adam" => "ZO-Adam".to_string(),
        other => other.to_uppercase(),
    }
}
