//! Running the trials of all cells in parallel, and saving those that are done.

use super::TrialsError;
use super::cell::{Cell, CellTrial};
use super::store::Store;
use racecars::Cancel;
use rayon::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The progress of an experiment after a trial.
#[derive(Debug, Clone, Copy)]
pub struct TrialProgress<'a> {
    /// The share of the work that is done, from 0 to 1, by estimated time.
    pub share: f64,
    /// The number of trials done in this run.
    pub trials: usize,
    /// The number of trials to do in this run, without those found on disk.
    pub of: usize,
    /// The cell of the trial just done.
    pub cell: &'a Cell,
}

/// Cells with their trials.
#[derive(Default)]
pub(crate) struct TrialResults {
    cells: Vec<(Cell, Vec<CellTrial>)>,
}

impl TrialResults {
    /// The first `count` trials of a cell; fewer if fewer were run.
    pub(crate) fn of(&self, cell: &Cell, count: usize) -> &[CellTrial] {
        let found = self.cells.iter().find(|(known, _)| known == cell);
        found.map_or(&[], |(_, trials)| &trials[..count.min(trials.len())])
    }
}

/// Whether an experiment ran to its end.
#[derive(Debug)]
pub enum Completion<T> {
    /// All trials are done: the results.
    Done(T),
    /// Cancelled. Finished trials are on disk, and the same experiment resumes from them.
    Interrupted {
        /// The number of finished trials.
        kept: usize,
        /// The number of trials of the whole experiment.
        of: usize,
    },
}

/// A cell and its trials while they are being run.
struct CellWork {
    cell: Cell,
    wanted: usize,
    trials: Mutex<Vec<Option<CellTrial>>>,
}

/// Runs the given number of trials of each cell on `rayon`'s current threads, except those that are
/// already in the store. `finished` is called after each trial, from any thread.
pub(crate) fn run(
    cells: Vec<(Cell, usize)>,
    store: &Store,
    cancel: &Cancel,
    finished: impl Fn(TrialProgress<'_>) + Sync,
) -> Result<Completion<TrialResults>, TrialsError> {
    let mut desks: Vec<CellWork> = Vec::new();
    for (cell, wanted) in cells {
        match desks.iter_mut().find(|desk| desk.cell == cell) {
            Some(desk) => desk.wanted = desk.wanted.max(wanted),
            None => desks.push(CellWork { cell, wanted, trials: Mutex::default() }),
        }
    }
    desks.par_iter_mut().try_for_each(|desk| -> Result<(), TrialsError> {
        let mut trials = store.load(&desk.cell)?;
        trials.resize(trials.len().max(desk.wanted), None);
        desk.trials = Mutex::new(trials);
        Ok(())
    })?;

    let jobs: Vec<(&CellWork, usize)> = desks.iter().flat_map(CellWork::missing).collect();
    let total: f64 = jobs.iter().map(|(desk, _)| desk.cell.effort()).sum();
    let done = Mutex::new((0, 0.0));
    jobs.par_iter().with_max_len(1).try_for_each(|&(desk, seed)| -> Result<(), TrialsError> {
        if cancel.is_cancelled() {
            return Ok(());
        }
        let Some(trial) = desk.cell.run(seed as u64, cancel)? else { return Ok(()) };
        desk.put(seed, trial, store)?;
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        done.0 += 1;
        done.1 += desk.cell.effort();
        let (trials, effort) = *done;
        drop(done);
        finished(TrialProgress { share: effort / total, trials, of: jobs.len(), cell: &desk.cell });
        Ok(())
    })?;

    if cancel.is_cancelled() {
        return interrupted(&desks, store);
    }
    let results = desks.into_iter().map(|desk| {
        let trials = desk.trials.into_inner().unwrap_or_else(PoisonError::into_inner);
        (desk.cell, trials.into_iter().flatten().collect())
    });
    Ok(Completion::Done(TrialResults { cells: results.collect() }))
}

/// Saves the finished trials of unfinished cells.
fn interrupted(desks: &[CellWork], store: &Store) -> Result<Completion<TrialResults>, TrialsError> {
    let (mut kept, mut of) = (0, 0);
    for desk in desks {
        let missing = desk.missing().count();
        kept += desk.wanted - missing;
        of += desk.wanted;
        if missing > 0 && missing < desk.wanted {
            store.save(&desk.cell, &desk.lock())?;
        }
    }
    Ok(Completion::Interrupted { kept, of })
}

impl CellWork {
    fn lock(&self) -> MutexGuard<'_, Vec<Option<CellTrial>>> {
        self.trials.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The trials still to do, as (cell, seed).
    fn missing(&self) -> impl Iterator<Item = (&CellWork, usize)> {
        let trials = self.lock();
        let missing: Vec<usize> =
            (0..self.wanted).filter(|&seed| trials.get(seed).is_none_or(Option::is_none)).collect();
        missing.into_iter().map(move |seed| (self, seed))
    }

    /// Adds a trial, and saves the cell if it was the last one.
    fn put(&self, seed: usize, trial: CellTrial, store: &Store) -> Result<(), TrialsError> {
        let mut trials = self.lock();
        trials[seed] = Some(trial);
        if trials[..self.wanted].iter().all(Option::is_some) {
            store.save(&self.cell, &trials)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells() -> Vec<(Cell, usize)> {
        [0.05, 0.1, 0.2].map(|rho| (Cell::ackley(5, None, 0.95, rho), 4)).to_vec()
    }

    fn bests(work: Completion<TrialResults>) -> Vec<Vec<f64>> {
        let Completion::Done(results) = work else { panic!("interrupted") };
        let cells = cells().into_iter();
        cells.map(|(cell, k)| results.of(&cell, k).iter().map(CellTrial::best).collect()).collect()
    }

    #[test]
    fn what_was_interrupted_goes_on_to_the_same_results() {
        let directory = tempfile::tempdir().unwrap();
        let fresh = Store::open(directory.path().join("fresh")).unwrap();
        let right = bests(run(cells(), &fresh, &Cancel::new(), |_| {}).unwrap());
        assert!(right.iter().all(|bests| bests.len() == 4));

        let store = Store::open(directory.path().join("interrupted")).unwrap();
        let cancel = Cancel::new();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let work = pool.install(|| {
            run(cells(), &store, &cancel, |step| {
                assert!(step.share > 0.0 && step.of == 12);
                if step.trials == 5 {
                    cancel.cancel();
                }
            })
        });
        let Completion::Interrupted { kept, of } = work.unwrap() else { panic!("ran to the end") };
        assert_eq!((kept, of), (5, 12));
        let count = Mutex::new(0);
        let work = run(cells(), &store, &Cancel::new(), |_| *count.lock().unwrap() += 1);
        assert_eq!(bests(work.unwrap()), right);
        assert_eq!(*count.lock().unwrap(), 7);
        let again = run(cells(), &store, &Cancel::new(), |_| panic!("ran again")).unwrap();
        assert_eq!(bests(again), right);
    }

    #[test]
    fn the_same_cell_is_run_once_with_as_many_trials_as_anyone_wants() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path().into()).unwrap();
        let cell = Cell::ackley(5, None, 0.95, 0.1);
        let twice = vec![(cell.clone(), 2), (cell.clone(), 3)];
        let Completion::Done(results) = run(twice, &store, &Cancel::new(), |_| {}).unwrap() else {
            panic!("interrupted");
        };
        assert_eq!((results.of(&cell, 2).len(), results.of(&cell, 9).len()), (2, 3));
    }
}
