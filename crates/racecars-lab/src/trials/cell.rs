//! A cell: an algorithm with its settings on a problem. Experiments are made of cells, and their trials
//! are saved by cell.

use super::TrialsError;
use racecars::{Algorithm, Cancel, StopReason, minimize};
use racecars_problems::Problem;
use serde::{Deserialize, Serialize};

/// All settings of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The problem's name.
    pub problem: String,
    /// Its dimension.
    pub dim: usize,
    /// The domain is [-radius, radius]^n; the problem's default domain if `None`.
    pub radius: Option<f64>,
    /// The evaluations of a trial.
    pub budget: u64,
    /// The algorithm's name.
    pub algorithm: String,
    /// RACE-CARS: the shrinking rate and frequency.
    pub shrinking: Option<(f64, f64)>,
    /// The number of checkpoints at which the best value so far is recorded, evenly spaced over the
    /// budget. The last is at its end.
    pub checkpoints: usize,
    /// The seed of the first trial.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seed: u64,
    /// The build of the program that must have run the trials. If `None`, any build that behaves the
    /// same in a probe will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
}

fn is_zero(seed: &u64) -> bool {
    *seed == 0
}

/// The result of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CellTrial {
    /// The best value at each checkpoint.
    pub(crate) bests: Vec<f64>,
    /// The number of evaluations.
    pub(crate) evaluations: u64,
    /// The number of evaluations whose value a jump of the problem changed.
    pub(crate) perturbed: u64,
}

impl CellTrial {
    /// The best value at the end.
    pub(crate) fn best(&self) -> f64 {
        self.bests.last().copied().unwrap_or(f64::INFINITY)
    }
}

impl Cell {
    /// RACE-CARS with these settings on Ackley, as in Table 1 and the ablations; SRACOS if rho is 0.
    pub(crate) fn ackley(dim: usize, radius: Option<f64>, gamma: f64, rho: f64) -> Cell {
        let (algorithm, shrinking) =
            if rho == 0.0 { ("sracos", None) } else { ("race-cars", Some((gamma, rho))) };
        Cell {
            problem: "ackley".into(),
            dim,
            radius,
            budget: 30 * dim as u64,
            algorithm: algorithm.into(),
            shrinking,
            checkpoints: 1,
            seed: 0,
            build: None,
        }
    }

    /// The number of evaluations at checkpoint `place`, counted from 0.
    pub(crate) fn checkpoint(&self, place: usize) -> u64 {
        ((place as u64 + 1) * self.budget).div_ceil(self.checkpoints.max(1) as u64)
    }

    pub(crate) fn problem(&self, seed: u64) -> Result<Problem, TrialsError> {
        Ok(match self.radius {
            None => Problem::named(&self.problem, self.dim, seed)?,
            Some(radius) => Problem::with_radius(&self.problem, self.dim, radius)?,
        })
    }

    pub(crate) fn algorithm(&self) -> Result<Algorithm, TrialsError> {
        let mut algorithm: Algorithm = self.algorithm.parse()?;
        if let (Algorithm::RaceCars(settings), Some((gamma, rho))) =
            (&mut algorithm, self.shrinking)
        {
            *settings = settings.gamma(gamma).rho(rho);
        }
        Ok(algorithm)
    }

    /// Ok if the algorithm supports the problem's space, else why not.
    pub(crate) fn taken(&self) -> Result<(), String> {
        let algorithm = self.algorithm().map_err(|error| error.to_string())?;
        // The space does not depend on the seed.
        let problem = self.problem(0).map_err(|error| error.to_string())?;
        let optimizer = algorithm.optimizer(problem.space(), Some(self.budget), 0);
        optimizer.map(drop).map_err(|error| error.to_string())
    }

    /// Runs trial 0, 1, ... Its seed is also the seed of the problem's random parts. `None` if it was
    /// cancelled.
    pub(crate) fn run(
        &self,
        index: u64,
        cancel: &Cancel,
    ) -> Result<Option<CellTrial>, TrialsError> {
        let seed = self.seed.wrapping_add(index);
        let problem = self.problem(seed)?;
        let mut trial =
            CellTrial { bests: Vec::with_capacity(self.checkpoints), evaluations: 0, perturbed: 0 };
        let mut best = f64::INFINITY;
        let solution = minimize(problem.space())
            .algorithm(self.algorithm()?)
            .budget(self.budget)
            .seed(seed)
            .cancel(cancel)
            .run(|point| {
                let value = problem.evaluate(point);
                best = best.min(value);
                trial.evaluations += 1;
                let is_perturbed = problem.perturbation_at(point.coordinates()) > 0.0;
                trial.perturbed += u64::from(is_perturbed);
                while trial.bests.len() < self.checkpoints
                    && self.checkpoint(trial.bests.len()) <= trial.evaluations
                {
                    trial.bests.push(best);
                }
                value
            })?;
        // A trial that stops early keeps its last value until the end.
        trial.bests.resize(self.checkpoints, best);
        Ok((solution.stop() != StopReason::Interrupted).then_some(trial))
    }

    /// A rough estimate of a trial's time in microseconds, for the progress display.
    pub(crate) fn effort(&self) -> f64 {
        let n = self.dim as f64;
        let optimizer = match self.algorithm.as_str() {
            "race-cars" | "sracos" => 0.2 + 0.0025 * n,
            "l-shade" => 0.4 + 0.005 * n,
            "de" => 0.3 + 0.006 * n,
            "zo-adam" => 0.3 + 0.014 * n,
            "sep-cma-es" => 0.5 + 0.025 * n,
            _ => 1.0 + 0.03 * n + 0.00025 * n * n,
        };
        let turn = match self.problem.as_str() {
            name if name.contains("rotated-") => 0.0004 * n * n,
            name if name.contains("turned-") => 0.03 * n,
            _ => 0.0,
        };
        self.budget as f64 * (optimizer + turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell() -> Cell {
        Cell {
            problem: "stepped-sphere".into(),
            dim: 6,
            radius: None,
            budget: 250,
            algorithm: "race-cars".into(),
            shrinking: Some((0.9, 0.05)),
            checkpoints: 100,
            seed: 0,
            build: None,
        }
    }

    #[test]
    fn a_trial_is_recorded_over_its_whole_budget() {
        let trial = cell().run(3, &Cancel::new()).unwrap().unwrap();
        assert_eq!((trial.bests.len(), trial.evaluations), (100, 250));
        assert!(trial.bests.is_sorted_by(|a, b| a >= b));
        assert!(trial.perturbed > 0);
        assert_eq!((cell().checkpoint(0), cell().checkpoint(99)), (3, 250));
    }

    #[test]
    fn a_trial_is_the_run_of_its_seed_with_the_cells_settings() {
        let cell = Cell::ackley(5, Some(2.0), 0.9, 0.02);
        let problem = Problem::with_radius("ackley", 5, 2.0).unwrap();
        let solution = minimize(problem.space())
            .algorithm(cell.algorithm().unwrap())
            .budget(150)
            .seed(4)
            .run(|point| problem.evaluate(point))
            .unwrap();
        let trial = cell.run(4, &Cancel::new()).unwrap().unwrap();
        assert_eq!(Some(trial.best()), solution.value());
        assert_eq!(trial.bests.len(), 1);
    }
}
