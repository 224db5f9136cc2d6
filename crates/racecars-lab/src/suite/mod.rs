//! The suite by which a default is judged: a candidate next to the best single algorithm of each cell,
//! on many functions, dimensions and budgets.
//!
//! A good default need not be the best anywhere, but must be near the best everywhere. So the suite
//! computes ratios to the best single algorithm of each cell, and their geometric mean, spread and worst.
//!
//! - [`Suite`]: what to run
//! - [`SuiteFunction`] and [`Half`]: the functions; settings are chosen on one half, and results reported
//!   on the other
//! - [`Standing`]: the results

mod functions;
mod standing;

pub use functions::{Half, SuiteFunction};
pub use standing::{CellComparison, MedianGap, NEAR_RATIO, RatioSummary, Standing, SummaryGroup};

use crate::trials::{
    Cell, CellTrial, Completion, Store, TrialProgress, TrialResults, TrialsError, fingerprint,
    run_trials,
};
use racecars::{Budget, Cancel};
use racecars_figures::files::{self, FileError};
use std::path::PathBuf;

/// The single algorithms: all of this library that learn, except RACOS, which SRACOS replaces.
pub const SINGLES: [&str; 7] =
    ["race-cars", "sracos", "cma-es", "sep-cma-es", "l-shade", "de", "zo-adam"];
/// The dimensions of the whole suite.
pub const DIMS: [usize; 4] = [20, 50, 200, 1000];
/// Its budgets, in evaluations per dimension.
pub const BUDGETS: [f64; 4] = [10.0, 30.0, 100.0, 300.0];
/// Its number of seeds.
pub const SEEDS: usize = 10;
/// The dimensions of the quick suite.
pub const QUICK_DIMS: [usize; 2] = [20, 50];
/// Its number of seeds.
pub const QUICK_SEEDS: usize = 5;

/// The largest dimension for CMA-ES as a single algorithm: at n = 1000 a trial takes minutes, nearly all
/// of it eigendecompositions.
const MAX_CMA_ES_DIM: usize = 200;

/// A run of the suite.
#[derive(Debug, Clone)]
pub struct Suite {
    /// The algorithm that is judged.
    pub candidate: String,
    /// The algorithms it is compared with; the candidate itself is left out.
    pub singles: Vec<String>,
    /// The functions.
    pub functions: Vec<SuiteFunction>,
    /// The dimensions.
    pub dims: Vec<usize>,
    /// The budgets.
    pub budgets: Vec<Budget>,
    /// The number of seeds. Each is the seed of a trial and of its problem.
    pub seeds: usize,
    /// The first seed.
    pub seed: u64,
    /// Where trials are saved and tables are written.
    pub directory: PathBuf,
}

/// Why a suite cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// An error of the trials.
    #[error(transparent)]
    Trials(#[from] TrialsError),
    /// There are no other algorithms to compare with.
    #[error(
        "there is nothing to compare {candidate} with: no other algorithm takes one of the problems"
    )]
    Nothing {
        /// The candidate.
        candidate: String,
    },
}

/// A function in a dimension with a budget.
#[derive(Clone, Copy)]
struct SuiteCell {
    function: SuiteFunction,
    dim: usize,
    budget: Budget,
    seed: u64,
}

impl Suite {
    /// Runs the trials that are not on disk yet, on `rayon`'s current threads, and writes `cells.csv` and
    /// `results.json`. `finished` is called after each trial, from any thread.
    ///
    /// Saved trials of single algorithms are used as long as a probe of the algorithm gives the same
    /// values; those of the candidate, which is being worked on, only by the same build.
    pub fn run(
        &self,
        cancel: &Cancel,
        finished: impl Fn(TrialProgress<'_>) + Sync,
    ) -> Result<Completion<Standing>, SuiteError> {
        let build = build()?;
        let store = Store::open(self.directory.join("cells"))?;
        let mut cells = Vec::new();
        for place in self.places() {
            cells.push((self.candidate_cell(place, &build), self.seeds));
            cells.extend(self.single_cells(place).into_iter().map(|cell| (cell, self.seeds)));
        }
        let results = match run_trials(cells, &store, cancel, finished)? {
            Completion::Done(results) => results,
            Completion::Interrupted { kept, of } => {
                return Ok(Completion::Interrupted { kept, of });
            }
        };
        let standing = self.standing(&results, &build);
        let standing =
            standing.ok_or_else(|| SuiteError::Nothing { candidate: self.candidate.clone() })?;
        self.write(&standing).map_err(TrialsError::from)?;
        Ok(Completion::Done(standing))
    }

    fn write(&self, standing: &Standing) -> Result<(), FileError> {
        let write = |name: &str, text: &str| files::write(&self.directory.join(name), text);
        write("cells.csv", &standing.csv())?;
        write("results.json", &serde_json::to_string_pretty(standing).unwrap_or_default())
    }

    fn places(&self) -> Vec<SuiteCell> {
        let mut places = Vec::new();
        for &function in &self.functions {
            for &dim in &self.dims {
                places.extend(self.budgets.iter().map(|&budget| SuiteCell {
                    function,
                    dim,
                    budget,
                    seed: self.seed,
                }));
            }
        }
        places
    }

    fn candidate_cell(&self, place: SuiteCell, build: &str) -> Cell {
        Cell { build: Some(build.to_string()), ..place.cell(&self.candidate) }
    }

    fn single_cells(&self, place: SuiteCell) -> Vec<Cell> {
        let others = self.singles.iter().filter(|name| **name != self.candidate);
        let is_cheap = |cell: &Cell| cell.algorithm != "cma-es" || cell.dim <= MAX_CMA_ES_DIM;
        let cells = others.map(|name| place.cell(name));
        cells.filter(|cell| is_cheap(cell) && takes(cell)).collect()
    }

    fn standing(&self, results: &TrialResults, build: &str) -> Option<Standing> {
        let median = |cell: &Cell| {
            let trials = results.of(cell, self.seeds);
            let bests: Vec<f64> = trials.iter().map(CellTrial::best).collect();
            MedianGap::of(&cell.algorithm, &bests)
        };
        let compare = |place: SuiteCell| {
            let candidate = median(&self.candidate_cell(place, build))?;
            let singles = self.single_cells(place).iter().filter_map(median).collect();
            CellComparison::of(place.function, place.dim, place.budget, &candidate, singles)
        };
        let cells = self.places().into_iter().filter_map(compare).collect();
        Standing::of(self.candidate.clone(), self.seeds, cells, &self.singles)
    }
}

impl SuiteCell {
    fn cell(self, algorithm: &str) -> Cell {
        Cell {
            problem: self.function.problem(self.dim),
            dim: self.dim,
            radius: None,
            budget: self.budget.evaluations(self.dim),
            algorithm: algorithm.to_string(),
            shrinking: None,
            checkpoints: 1,
            seed: self.seed,
            build: None,
        }
    }
}

/// Whether the algorithm supports the problem's space, which does not depend on the dimension.
fn takes(cell: &Cell) -> bool {
    Cell { dim: cell.dim.min(4), ..cell.clone() }.taken().is_ok()
}

/// A fingerprint of this build of the program.
fn build() -> Result<String, TrialsError> {
    let path = std::env::current_exe().unwrap_or_default();
    let program = std::fs::read(&path).map_err(|source| FileError::reading(&path, source))?;
    Ok(fingerprint(&program))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn suite(directory: &Path, candidate: &str) -> Suite {
        Suite {
            candidate: candidate.into(),
            singles: ["race-cars", "random", "zo-adam"].map(String::from).to_vec(),
            functions: ["rotated-sphere", "mixed-ackley"]
                .map(|f| SuiteFunction::named(f).unwrap())
                .into(),
            dims: vec![6],
            budgets: vec![Budget::PerDimension(10.0), Budget::PerDimension(50.0)],
            seeds: 3,
            seed: 0,
            directory: directory.into(),
        }
    }

    fn run(suite: &Suite) -> (Standing, usize) {
        let trials = AtomicUsize::new(0);
        let count = |_: TrialProgress<'_>| {
            trials.fetch_add(1, Ordering::Relaxed);
        };
        let Completion::Done(standing) = suite.run(&Cancel::new(), count).unwrap() else {
            panic!("interrupted");
        };
        (standing, trials.into_inner())
    }

    #[test]
    fn another_candidate_finds_the_trials_of_the_single_algorithms() {
        let directory = tempfile::tempdir().unwrap();
        let (first, trials) = run(&suite(directory.path(), "sracos"));
        // zo-adam does not support integers: 4 cells of the candidate, 10 of single algorithms.
        assert_eq!((first.cells.len(), trials), (4, 14 * 3));
        assert_eq!(run(&suite(directory.path(), "sracos")).1, 0);
        let (second, trials) = run(&suite(directory.path(), "quasi-random"));
        assert_eq!(trials, 4 * 3);
        assert!(second.summary.geometric_mean > first.summary.geometric_mean);
        for (first, second) in first.cells.iter().zip(&second.cells) {
            assert_eq!((first.best, &first.best_single), (second.best, &second.best_single));
        }
        assert!(directory.path().join("cells.csv").is_file());
    }

    #[test]
    fn a_candidate_is_not_its_own_rival() {
        let directory = tempfile::tempdir().unwrap();
        let mut suite = suite(directory.path(), "race-cars");
        let (standing, _) = run(&suite);
        assert!(standing.cells.iter().all(|cell| cell.best_single != "race-cars"));
        suite.singles = vec!["race-cars".into()];
        let error = suite.run(&Cancel::new(), |_| {}).unwrap_err().to_string();
        assert!(error.contains("nothing to compare race-cars with"), "{error}");
    }
}
