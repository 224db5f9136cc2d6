//! One search of the page.

use racecars::{Algorithm, Direction, Next, Session, StopRules};
use racecars_problems::Problem;
use serde::Serialize;
use std::time::Duration;

/// A search, and its problem.
#[derive(Debug)]
pub(crate) struct Panel {
    problem: Problem,
    session: Session,
}

/// What a search did, and where it is.
#[derive(Serialize)]
pub(crate) struct Seen {
    /// The points evaluated by this step.
    points: Vec<Evaluated>,
    /// All evaluations so far.
    evaluations: u64,
    best: Option<f64>,
    best_point: Option<Vec<f64>>,
    /// Where the search is confined to, if it is.
    region: Option<Region>,
    /// Why it ended, if it has.
    stopped: Option<String>,
    /// What a portfolio decided, and after how many evaluations.
    decisions: Vec<racecars::Decision>,
}

/// First coordinate, second coordinate, value.
#[derive(Serialize)]
struct Evaluated(f64, f64, f64);

#[derive(Serialize)]
struct Region {
    low: [f64; 2],
    high: [f64; 2],
    share: f64,
}

impl Panel {
    pub(crate) fn start(
        problem: Problem,
        algorithm: &str,
        budget: u64,
        seed: u64,
    ) -> Result<Self, String> {
        let algorithm: Algorithm = algorithm.parse().map_err(said)?;
        let optimizer = algorithm.optimizer(problem.space(), Some(budget), seed).map_err(said)?;
        let mut session = Session::new(optimizer, Direction::Minimize);
        let mut rules = StopRules::default();
        rules.evaluations = Some(budget);
        session.set_rules(rules).map_err(said)?;
        Ok(Panel { problem, session })
    }

    /// Makes up to so many evaluations.
    pub(crate) fn step(&mut self, evaluations: u64) -> Result<Seen, String> {
        let mut points = Vec::new();
        let mut stopped = None;
        for _ in 0..evaluations {
            match self.session.next(Duration::ZERO).map_err(said)? {
                Next::Evaluate(trial) => {
                    let point = trial.point();
                    let value = self.problem.value_at(point);
                    points.push(Evaluated(point[0], point[1], value));
                    self.session.tell(trial, value).map_err(said)?;
                }
                Next::Told | Next::Wait => {}
                Next::Stop(reason) => {
                    stopped = Some(reason.to_string());
                    break;
                }
            }
        }
        Ok(Seen {
            points,
            evaluations: self.session.counts().evaluations,
            best: self.session.value(),
            best_point: self.session.point().map(|point| point.coordinates().to_vec()),
            region: self.region(),
            stopped,
            decisions: self.session.portfolio().map_or_else(Vec::new, |report| report.decisions),
        })
    }

    fn region(&self) -> Option<Region> {
        let region = self.session.optimizer().region()?;
        let sides =
            [0, 1].map(|i| self.session.space().axis(i).around(region.center[i], region.share));
        Some(Region {
            low: sides.map(|side| side.low),
            high: sides.map(|side| side.high),
            share: region.share,
        })
    }
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}
