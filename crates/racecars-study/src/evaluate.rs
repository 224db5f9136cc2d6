//! One evaluation from start to end: prepare, run, find the value, try again, repeat.

use crate::command::{Recipe, Task, remove};
use crate::error::{Error, ErrorKind, Result};
use crate::extract::Finder;
use crate::journal::Part;
use crate::noise::{aggregated, mean};
use crate::outcome::{self, FailureKind, Outcome};
use crate::plan::{Keep, Plan, now};
use crate::platform;
use crate::process::{self, Captured, Ending, Finished, Invocation, Limits};
use crate::queue::Queue;
use crate::room::Room;
use crate::shell::command_line;
use crate::text::Text;
use crate::units::{Memory, Time};
use racecars::Failure;
use racecars::random::Random;
use std::cell::Cell;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How much of standard error the journal keeps of a failure.
const STDERR_SHOWN: usize = 2000;
/// How much of standard output the message about a first failure shows.
const STDOUT_SHOWN: usize = 500;
/// How often the time of a program is taken that was paused each time.
const MAX_SPOILED: u32 = 5;
/// Repetitions of a trial have seeds of their own; the numbers of confirming ones begin here.
const CONFIRMING: u64 = 1 << 16;

/// What evaluates trials; shared by the workers.
#[derive(Debug, Clone)]
pub(crate) struct Evaluator {
    plan: Plan,
    recipe: Recipe,
    objective: Finder,
    constraints: Vec<Finder>,
    limits: Limits,
    room: Arc<Room>,
    notices: Arc<Queue<String>>,
}

/// When evaluations are to stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stop<'a> {
    /// At once.
    pub(crate) now: &'a AtomicBool,
    /// After what runs.
    pub(crate) finish: &'a AtomicBool,
    /// After what runs then.
    pub(crate) deadline: Option<Instant>,
}

impl Stop<'_> {
    /// Whether nothing more is to be started.
    pub(crate) fn is_due(self) -> bool {
        self.finish.load(Ordering::Acquire) || self.now.load(Ordering::Acquire) || self.is_late()
    }

    /// Whether the deadline has passed.
    pub(crate) fn is_late(self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// An evaluation to do.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) trial: u64,
    /// The encoded point.
    pub(crate) point: Vec<f64>,
    /// `None` for the trial itself with all its repetitions, a number for a fresh evaluation of a leading
    /// point.
    pub(crate) number: Option<u64>,
    /// The repetitions of the trial that have ended before.
    pub(crate) parts: Vec<Part>,
}

/// Why an evaluation has no result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Halt {
    /// It was stopped on request.
    Stopped,
    /// Its folder could not be made, as on a full disk, or the host has no room for a program: nothing
    /// that the point is to blame for.
    System(Error),
}

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measurement {
    /// The outcome.
    pub(crate) outcome: Outcome,
    /// How often the program was started because it failed before, and the first time.
    pub(crate) attempts: u32,
    /// The time that all its runs took.
    pub(crate) seconds: f64,
    /// The values, where the evaluation was repeated.
    pub(crate) values: Vec<f64>,
    /// Of a failure: the end of standard error.
    pub(crate) stderr: Option<String>,
    /// Of a failure: the end of standard output.
    pub(crate) stdout: Option<String>,
}

/// One run of the program outside of a study, with all there is to see of it.
#[derive(Debug, Clone)]
pub struct DryRun {
    /// What was run, as a line for a shell.
    pub command: String,
    /// The same with its variables, its standard input and its folder.
    pub invocation: Invocation,
    /// How it went.
    pub finished: Finished,
    /// What that means.
    pub outcome: Outcome,
}

impl Evaluator {
    pub(crate) fn new(plan: &Plan, study: &Path) -> Result<Evaluator> {
        let objective = Finder::new(&plan.objective, plan.names())?;
        let constraints = (plan.constraints.iter())
            .map(|constraint| Finder::new(constraint, plan.names()))
            .collect::<Result<Vec<_>>>()?;
        let sources: Vec<&Finder> = std::iter::once(&objective).chain(&constraints).collect();
        let recipe = Recipe::new(plan, study, &sources)?;
        let limits = Limits {
            time: plan.timeout.map(Time::duration),
            memory: plan.memory.map(Memory::bytes),
        };
        if limits.memory.is_some() && !platform::CAN_LIMIT_MEMORY {
            let message = "memory: limits of memory are only kept on Linux; leave the setting out, and limit \
                           the program by its own means";
            return Err(Error::setting(message));
        }
        let notices = Arc::new(Queue::new());
        let room = Arc::new(Room::new(plan.jobs, notices.clone()));
        let plan = plan.clone();
        Ok(Evaluator { plan, recipe, objective, constraints, limits, room, notices })
    }

    /// What the user should know of, once.
    pub(crate) fn notice(&self) -> Option<String> {
        self.notices.pop_within(Duration::ZERO)
    }

    /// The program with the values of a trial, as a line for a shell.
    pub(crate) fn paste(&self, trial: u64, point: &[f64]) -> String {
        self.recipe.paste(self.task(trial, point))
    }

    /// Makes the folder that [the line](Evaluator::paste) needs, if it needs one.
    pub(crate) fn make_best(&self, trial: u64, point: &[f64]) -> io::Result<()> {
        self.recipe.make_best(self.task(trial, point))
    }

    fn task<'a>(&self, trial: u64, point: &'a [f64]) -> Task<'a> {
        Task { trial, seed: self.seed(trial, 0), point, folder: "", worker: 0 }
    }

    /// The seed of a repetition of a trial: small enough for any program to take.
    pub(crate) fn seed(&self, trial: u64, repetition: u64) -> u64 {
        Random::stream(self.plan.seed, (trial << 20) + repetition).bits() >> 33
    }

    /// Does a job as this worker. Of each repetition that is not the last, `each` learns when it ends.
    pub(crate) fn evaluate(
        &self,
        job: &Job,
        worker: usize,
        mut each: impl FnMut(Part),
        stop: Stop<'_>,
    ) -> Result<Measurement, Halt> {
        let Job { trial, point, number, parts } = job;
        let trial = *trial;
        let (first, repeat) = match number {
            None => (0, self.plan.repeat),
            Some(number) => (CONFIRMING + number, 1),
        };
        let mut measurement = Measurement {
            outcome: Outcome::failure(FailureKind::NotStarted, "not run"),
            attempts: 0,
            seconds: 0.0,
            values: Vec::new(),
            stderr: None,
            stdout: None,
        };
        let (mut values, mut constraints) = (Vec::new(), Vec::new());
        let mut enter = |outcome: &Outcome| {
            values.extend(outcome.objective());
            // Earlier versions kept only the sum of the violations.
            let sum = || {
                let mut sum = vec![0.0; self.constraints.len()];
                sum.iter_mut().take(1).for_each(|by| *by = outcome.violation().unwrap_or(0.0));
                sum
            };
            let found = outcome.constraints().filter(|found| found.len() == self.constraints.len());
            constraints.push(found.map_or_else(sum, <[f64]>::to_vec));
        };
        for part in parts {
            measurement.attempts += part.attempts;
            measurement.seconds += part.seconds;
            enter(&part.outcome);
        }
        for number in parts.len() as u64..u64::from(repeat) {
            // The repetitions that have ended are kept.
            if number > parts.len() as u64 && stop.is_due() {
                return Err(Halt::Stopped);
            }
            let (mut tries, mut seconds) = (0, 0.0);
            let name = match first + number {
                0 => trial.to_string(),
                other => format!("{trial}-{other}"),
            };
            let seed = self.seed(trial, first + number);
            let task = Task { trial, seed, point, folder: &name, worker };
            let outcome = loop {
                tries += 1;
                let (finished, outcome) = self.run(task, stop)?;
                seconds += finished.elapsed.as_secs_f64();
                if finished.ending == Ending::Stopped {
                    self.tidy(task, false);
                    return Err(Halt::Stopped);
                }
                self.tidy(task, outcome.is_failure());
                if tries > self.plan.retries || !outcome.is_retryable() {
                    if outcome.is_failure() {
                        measurement.stderr = Some(end_of(&finished.stderr.text, STDERR_SHOWN));
                        measurement.stdout = Some(end_of(&finished.stdout.text, STDOUT_SHOWN));
                    }
                    break outcome;
                }
                if stop.is_due() {
                    return Err(Halt::Stopped);
                }
            };
            measurement.attempts += tries;
            measurement.seconds += seconds;
            if outcome.is_failure() {
                measurement.outcome = outcome;
                return Ok(measurement);
            }
            enter(&outcome);
            if number + 1 < u64::from(repeat) {
                let (attempts, at) = (tries, now());
                each(Part { trial, number, outcome, attempts, seconds, worker, at });
            }
        }
        let value = aggregated(&values, self.plan.aggregate);
        measurement.outcome = match (value, self.constraints.len()) {
            (Some(value), 0) => Outcome::from(value),
            (None, 0) => Outcome::failure(FailureKind::Unparseable, "no value"),
            (value, count) => {
                Outcome::measured(value, (0..count).map(|place| together(&constraints, place)))
            }
        };
        if repeat > 1 {
            measurement.values = values;
        }
        Ok(measurement)
    }

    /// One run with everything that there is to see of it.
    pub(crate) fn dry_run(&self, point: &[f64], stop: &AtomicBool) -> Result<DryRun> {
        let task = Task { trial: 0, seed: self.seed(0, 0), point, folder: "check", worker: 0 };
        let when = Stop { now: stop, finish: stop, deadline: None };
        let ran = self.room.run(|| when.is_due(), || self.attempt(task, stop));
        let (invocation, finished, outcome) = ran.map_err(|halt| match halt {
            Halt::Stopped => {
                Error::new(ErrorKind::System, "stopped before the program was started")
            }
            Halt::System(error) => error,
        })?;
        self.tidy(task, outcome.is_failure());
        let command = command_line(&invocation.arguments);
        Ok(DryRun { command, invocation, finished, outcome })
    }

    /// One run; again if it was paused and its time counts.
    fn run(&self, task: Task<'_>, stop: Stop<'_>) -> Result<(Finished, Outcome), Halt> {
        let is_timed = self.objective.is_time() || self.constraints.iter().any(Finder::is_time);
        let mut spoiled = 0;
        loop {
            let (_, finished, outcome) =
                self.room.run(|| stop.is_due(), || self.attempt(task, stop.now))?;
            if !is_timed || !finished.is_paused || outcome.is_failure() {
                return Ok((finished, outcome));
            }
            spoiled += 1;
            if spoiled == MAX_SPOILED {
                let what =
                    format!("the run time is not known: it was paused in each of {spoiled} runs");
                return Ok((finished, Outcome::failure(FailureKind::Unparseable, what)));
            }
            let trial = task.trial;
            self.notices.push(format!(
                "trial {trial} was paused, so that its run time is not known; it is run again"
            ));
            if stop.is_due() {
                return Err(Halt::Stopped);
            }
        }
    }

    /// Prepares and runs the program once. The error is the system's: a shortage, or a full disk.
    fn attempt(
        &self,
        task: Task<'_>,
        stop: &AtomicBool,
    ) -> io::Result<(Invocation, Finished, Outcome)> {
        let invocation = self.recipe.prepare(task).map_err(|error| {
            if platform::is_shortage(&error) {
                return error;
            }
            let folder = self.recipe.folder(task.folder);
            Error::system("make the evaluation's folder", &folder, error).into()
        })?;
        let finished = process::run(&invocation, self.limits, stop)?;
        let outcome = match outcome::of_ending(&finished.ending) {
            Some(outcome) => outcome,
            None => self.find(task, &finished)?,
        };
        Ok((invocation, finished, outcome))
    }

    /// The outcome of a run that ended well.
    fn find(&self, task: Task<'_>, finished: &Finished) -> io::Result<Outcome> {
        let shortage = Cell::new(None);
        let read = |path: &Text| -> Result<Captured, String> {
            let path = self.recipe.path(task, path);
            process::read_file(&path).map_err(|error| {
                let what = format!("cannot read {}: {error}", path.display());
                shortage.set(Some(error).filter(platform::is_shortage));
                what
            })
        };
        let outcome = self.judge(finished, &read).unwrap_or_else(|failure| failure);
        shortage.take().map_or(Ok(outcome), Err)
    }

    fn judge(
        &self,
        finished: &Finished,
        read: &dyn Fn(&Text) -> Result<Captured, String>,
    ) -> Result<Outcome, Outcome> {
        let mut constraints = Vec::with_capacity(self.constraints.len());
        for (source, constraint) in self.plan.constraints.iter().zip(&self.constraints) {
            let by = constraint.value(finished, read).map_err(|outcome| match outcome {
                Outcome::Failed(Failure { kind, reason, .. }) => {
                    Outcome::failure(kind, format!("constraint {source}: {reason}"))
                }
                other => other,
            })?;
            constraints.push(by);
        }
        let value = self.objective.value(finished, read);
        if constraints.iter().any(|&by| by > 0.0) {
            return Ok(Outcome::measured(value.ok(), constraints));
        }
        Ok(match self.constraints.is_empty() {
            true => Outcome::from(value?),
            false => Outcome::measured(value?, constraints),
        })
    }

    /// Removes an evaluation's own folder, unless it is to be kept.
    fn tidy(&self, task: Task<'_>, is_failure: bool) {
        let is_kept = match self.plan.keep {
            Keep::None => false,
            Keep::Failed => is_failure,
            Keep::All => true,
        };
        if self.recipe.has_folder() && !is_kept {
            // What cannot be removed is no reason to lose the evaluation.
            let _ = remove(&self.recipe.folder(task.folder));
        }
    }
}

/// A constraint over the repetitions of a trial: the mean of its violations if one violates it, even where that is
/// so small that it is rounded to 0, else the mean of all.
fn together(repetitions: &[Vec<f64>], place: usize) -> f64 {
    let all: Vec<f64> = repetitions.iter().map(|constraints| constraints[place]).collect();
    if all.iter().all(|&by| by <= 0.0) {
        return mean(&all);
    }
    let violations: Vec<f64> = all.iter().map(|by| by.max(0.0)).collect();
    mean(&violations).max(f64::MIN_POSITIVE)
}

/// The end of a text, cut at a line where that is near.
fn end_of(text: &str, most: usize) -> String {
    let text = text.trim_end();
    let from = text.len().saturating_sub(most);
    let from = (from..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    match text[from..].split_once('\n') {
        Some((_, rest)) if from > 0 && !rest.is_empty() => rest.to_string(),
        _ => text[from..].to_string(),
    }
}
