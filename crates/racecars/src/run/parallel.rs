//! Evaluation on threads: one thread keeps the optimizer, the others evaluate.

use super::{Desk, evaluate};
use crate::error::{Error, Result};
use crate::optimizers::Candidate;
use crate::outcome::Outcome;
use crate::space::Point;
use std::collections::BTreeMap;

/// How a run is spread over threads.
///
/// **Asynchronous**: a worker that becomes free gets the next candidate at once. Nothing waits, but
/// the order of tells, and with it the run, depends on how long evaluations take.
///
/// **Deterministic**: outcomes are told in the order asked, and candidate number `i + lookahead` is
/// asked when outcome `i` has been told. The run is then a function of the space, the settings, the
/// seed and `lookahead` alone: it is the same to the bit for **every number of threads** (provided
/// that the objective is a function, and that no time limit or cancellation cuts in). With
/// `lookahead` 1 it equals [`Run::run`](super::Run::run). At most `lookahead` threads can be busy,
/// and one slow evaluation holds up at most `lookahead - 1` others.
///
/// ```
/// use racecars::{Space, Workers, minimize};
///
/// let space = Space::cube(10, -5.0, 5.0)?;
/// let solve = |workers| {
///     let sphere = |p: racecars::Point| p.coordinates().iter().map(|x| x * x).sum::<f64>();
///     minimize(&space).budget(500).run_on(workers, sphere)
/// };
/// let on_two = solve(Workers::deterministic(2))?;
/// let on_four = solve(Workers::deterministic(4))?;
/// assert_eq!(on_two.value(), on_four.value());
/// # Ok::<(), racecars::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workers {
    /// This many threads, told as they finish.
    Asynchronous(usize),
    /// Told in the order asked.
    Deterministic {
        /// How many threads evaluate.
        threads: usize,
        /// How many candidates may be out; part of what determines the run.
        lookahead: usize,
    },
}

impl Workers {
    /// The lookahead of [`Workers::deterministic`].
    pub const LOOKAHEAD: usize = 8;

    /// Deterministic on this many threads, with a lookahead of 8 whatever their number.
    pub fn deterministic(threads: usize) -> Self {
        Workers::Deterministic { threads, lookahead: Workers::LOOKAHEAD }
    }
}

/// Runs `desk` to its end, with the objective on other threads.
pub(super) fn drive<F, O>(desk: &mut Desk<'_>, objective: &F, workers: Workers) -> Result<()>
where
    F: Fn(Point<'_>) -> O + Sync,
    O: Into<Outcome>,
{
    let (threads, window, is_ordered) = match workers {
        Workers::Asynchronous(threads) => (threads, threads, false),
        Workers::Deterministic { threads, lookahead } => {
            if lookahead == 0 {
                return Err(Error::setting("a lookahead of 0; at least 1 is needed"));
            }
            (threads.min(lookahead), lookahead, true)
        }
    };
    if threads == 0 {
        return Err(Error::setting("0 worker threads; at least 1 is needed"));
    }
    let space = desk.optimizer.space().clone();
    // Candidates travel with their number in the order asked.
    let (to_workers, candidates) = crossbeam_channel::unbounded::<(u64, Candidate)>();
    let (from_workers, outcomes) = crossbeam_channel::unbounded::<(u64, Candidate, Outcome)>();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (candidates, from_workers) = (candidates.clone(), from_workers.clone());
            let space = &space;
            scope.spawn(move || {
                while let Ok((number, candidate)) = candidates.recv() {
                    let outcome =
                        evaluate(&mut |point: Point<'_>| objective(point), space, &candidate);
                    if from_workers.send((number, candidate, outcome)).is_err() {
                        return;
                    }
                }
            });
        }
        // When this thread leaves, the workers' queue closes and they end.
        let to_workers = to_workers;
        drop(from_workers);
        let (mut asked, mut told) = (0, 0);
        let mut early: BTreeMap<u64, (Candidate, Outcome)> = BTreeMap::new();
        loop {
            while asked - told < window as u64 {
                let Some(candidate) = desk.next(asked - told) else { break };
                if to_workers.send((asked, candidate)).is_err() {
                    break;
                }
                asked += 1;
            }
            if asked == told {
                return Ok(());
            }
            let (candidate, outcome) = match early.remove(&told) {
                Some(done) => done,
                None => {
                    let Ok((number, candidate, outcome)) = outcomes.recv() else { return Ok(()) };
                    if is_ordered && number != told {
                        early.insert(number, (candidate, outcome));
                        continue;
                    }
                    (candidate, outcome)
                }
            };
            desk.settle(candidate, outcome)?;
            told += 1;
        }
    })
}
