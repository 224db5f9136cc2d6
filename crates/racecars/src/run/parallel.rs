//! Evaluation on threads: one thread keeps the session, the others evaluate.

use super::{Driver, evaluate};
use crate::error::{Result, ensure};
use crate::outcome::Outcome;
use crate::session::{Next, Order, Trial};
use crate::space::Point;

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
    /// The lookahead of [`Workers::deterministic`]. Small, since a point that is asked before the outcomes
    /// of others are told knows less (docs/parallel.md).
    pub const LOOKAHEAD: usize = 2;

    /// Deterministic on this many threads, with a lookahead of 2 whatever their number, so that at most 2
    /// are busy: for more, give the lookahead.
    pub fn deterministic(threads: usize) -> Self {
        Workers::Deterministic { threads, lookahead: Workers::LOOKAHEAD }
    }

    /// The order of tells and the number of threads, if both make sense.
    pub(super) fn checked(self) -> Result<(Order, usize)> {
        let (order, threads) = match self {
            Workers::Asynchronous(threads) => (Order::AsTheyCome, threads),
            Workers::Deterministic { threads, lookahead } => {
                (Order::InOrder { lookahead: lookahead as u64 }, threads.min(lookahead.max(1)))
            }
        };
        ensure!(threads > 0, setting, "0 worker threads; at least 1 is needed");
        Ok((order, threads))
    }
}

/// Runs to the end, with the objective on other threads.
pub(super) fn drive<F, O>(
    driver: &mut Driver<'_>,
    objective: &F,
    threads: usize,
    order: Order,
    retries: u32,
) -> Result<()>
where
    F: Fn(Point<'_>) -> O + Sync,
    O: Into<Outcome>,
{
    let space = driver.session.space().clone();
    let (to_workers, trials) = crossbeam_channel::unbounded::<Trial>();
    let (from_workers, outcomes) = crossbeam_channel::unbounded::<(Trial, Outcome)>();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (trials, from_workers) = (trials.clone(), from_workers.clone());
            let space = &space;
            scope.spawn(move || {
                while let Ok(trial) = trials.recv() {
                    let point = space.view(trial.point());
                    let outcome =
                        evaluate(&mut |point: Point<'_>| objective(point), point, retries);
                    if from_workers.send((trial, outcome)).is_err() {
                        return;
                    }
                }
            });
        }
        // When this thread leaves, the workers' queue closes and they end.
        let to_workers = to_workers;
        drop(from_workers);
        loop {
            // In order, the session itself limits what is out.
            let is_full = order == Order::AsTheyCome && driver.session.out() >= threads as u64;
            match if is_full { Next::Wait } else { driver.next()? } {
                // The receiving end is in this scope, too.
                Next::Evaluate(trial) => drop(to_workers.send(trial)),
                Next::Wait => {
                    let Ok((trial, outcome)) = outcomes.recv() else { return Ok(()) };
                    driver.session.tell(trial, outcome)?;
                }
                Next::Told | Next::Stop(_) => return Ok(()),
            }
        }
    })
}
