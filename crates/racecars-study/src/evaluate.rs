//! One evaluation from start to end: prepare, run, find the value, try again, repeat.

use crate::command::{Recipe, Task, remove};
use crate::error::{Error, Result};
use crate::extract::Finder;
use crate::journal::Part;
use crate::noise::{aggregated, mean};
use crate::outcome::{self, FailureKind, Outcome};
use crate::plan::{Keep, Plan, now};
use crate::process::{self, Ending, Finished, Invocation, Limits};
use crate::text::{Text, command_line};
use crate::units::{Memory, Time};
use racecars::random::Random;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// How much of standard error the journal keeps of a failure.
const STDERR_SHOWN: usize = 2000;
/// Repetitions of a trial have seeds of their own; the numbers of confirming ones begin here.
pub(crate) const CONFIRMING: u64 = 1 << 16;

/// What evaluates trials; shared by the workers.
#[derive(Debug, Clone)]
pub(crate) struct Evaluator {
    plan: Plan,
    recipe: Recipe,
    objective: Finder,
    constraints: Vec<Finder>,
    limits: Limits,
}

/// Why an evaluation has no result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Halt {
    /// It was stopped on request.
    Stopped,
    /// Its folder could not be made, as on a full disk: nothing that the point is to blame for.
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
}

/// One run of the program outside of a study, with all there is to see of it.
#[derive(Debug, Clone)]
pub struct DryRun {
    /// What was run, as a line for a shell.
    pub command: String,
    /// What it got on standard input.
    pub input: Option<String>,
    /// The variables that it got.
    pub environment: Vec<(String, String)>,
    /// The folder that it ran in.
    pub folder: Option<std::path::PathBuf>,
    /// How it went.
    pub finished: Finished,
    /// What that means.
    pub outcome: Outcome,
}

impl Evaluator {
    pub(crate) fn new(plan: &Plan, study: &Path) -> Result<Evaluator> {
        let objective = Finder::new(&plan.objective, &plan.space)?;
        let constraints = (plan.constraints.iter())
            .map(|constraint| Finder::new(constraint, &plan.space))
            .collect::<Result<Vec<_>>>()?;
        let sources: Vec<&Finder> = std::iter::once(&objective).chain(&constraints).collect();
        let recipe = Recipe::new(plan, study, &sources)?;
        let limits = Limits {
            time: plan.timeout.map(Time::duration),
            memory: plan.memory.map(Memory::bytes),
        };
        Ok(Evaluator { plan: plan.clone(), recipe, objective, constraints, limits })
    }

    pub(crate) fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// The seed of a repetition of a trial: small enough for any program to take.
    pub(crate) fn seed(&self, trial: u64, repetition: u64) -> u64 {
        Random::stream(self.plan.seed, (trial << 20) + repetition).bits() >> 33
    }

    /// Evaluates a trial, all its repetitions included. `parts` are those that have ended before; of each
    /// other one that is not the last, `each` learns when it ends.
    pub(crate) fn trial(
        &self,
        trial: u64,
        point: &[f64],
        parts: &[Part],
        each: &mut dyn FnMut(Part),
        stop: &AtomicBool,
    ) -> Result<Measurement, Halt> {
        self.evaluate(trial, point, 0, self.plan.repeat, parts, each, stop)
    }

    /// Evaluates a trial again.
    pub(crate) fn reevaluate(
        &self,
        trial: u64,
        point: &[f64],
        count: u64,
        stop: &AtomicBool,
    ) -> Result<Measurement, Halt> {
        self.evaluate(trial, point, CONFIRMING + count, 1, &[], &mut |_| {}, stop)
    }

    #[expect(clippy::too_many_arguments, reason = "the one place that runs repetitions")]
    fn evaluate(
        &self,
        trial: u64,
        point: &[f64],
        first: u64,
        repeat: u32,
        parts: &[Part],
        each: &mut dyn FnMut(Part),
        stop: &AtomicBool,
    ) -> Result<Measurement, Halt> {
        let mut measurement = Measurement {
            outcome: Outcome::failure(FailureKind::NotStarted, "not run"),
            attempts: 0,
            seconds: 0.0,
            values: Vec::new(),
            stderr: None,
        };
        let (mut values, mut violations) = (Vec::new(), Vec::new());
        let mut enter = |outcome: &Outcome| {
            values.extend(match outcome {
                Outcome::Infeasible { value, .. } => *value,
                outcome => outcome.value(),
            });
            violations.push(match outcome {
                Outcome::Infeasible { violation, .. } => *violation,
                _ => 0.0,
            });
        };
        for part in parts {
            measurement.attempts += part.attempts;
            measurement.seconds += part.seconds;
            enter(&part.outcome);
        }
        for number in parts.len() as u64..u64::from(repeat) {
            let (mut tries, mut seconds) = (0, 0.0);
            let name = match first + number {
                0 => trial.to_string(),
                other => format!("{trial}-{other}"),
            };
            let task = Task { trial, seed: self.seed(trial, first + number), point, folder: &name };
            let outcome = loop {
                tries += 1;
                let (finished, outcome) = self.run(task, stop).map_err(Halt::System)?;
                seconds += finished.elapsed.as_secs_f64();
                if finished.ending == Ending::Stopped {
                    self.tidy(task, false);
                    return Err(Halt::Stopped);
                }
                self.tidy(task, outcome.is_failure());
                if tries > self.plan.retries || !outcome.is_retryable() {
                    measurement.stderr = outcome.is_failure().then(|| end_of(&finished.stderr));
                    break outcome;
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
                each(Part { trial, number, outcome, attempts, seconds, worker: 0, at });
            }
        }
        let value = aggregated(&values, self.plan.aggregate);
        measurement.outcome = match value {
            // Even where their mean is so small that it is rounded to 0.
            _ if violations.iter().any(|&violation| violation > 0.0) => {
                Outcome::Infeasible { violation: mean(&violations), value }
            }
            Some(value) => Outcome::from(value),
            None => Outcome::failure(FailureKind::Unparseable, "no value"),
        };
        if repeat > 1 {
            measurement.values = values;
        }
        Ok(measurement)
    }

    /// One run with everything that there is to see of it.
    pub(crate) fn dry_run(&self, point: &[f64], stop: &AtomicBool) -> Result<DryRun> {
        let task = Task { trial: 0, seed: self.seed(0, 0), point, folder: "check" };
        let invocation = self.prepare(task)?;
        let (finished, outcome) = self.judge(task, &invocation, stop);
        self.tidy(task, outcome.is_failure());
        Ok(DryRun {
            command: command_line(&invocation.arguments),
            input: invocation.input,
            environment: invocation.environment,
            folder: invocation.folder,
            finished,
            outcome,
        })
    }

    fn run(&self, task: Task<'_>, stop: &AtomicBool) -> Result<(Finished, Outcome)> {
        let invocation = self.prepare(task)?;
        Ok(self.judge(task, &invocation, stop))
    }

    fn prepare(&self, task: Task<'_>) -> Result<Invocation> {
        self.recipe.prepare(task).map_err(|error| {
            Error::system("make the evaluation's folder", &self.recipe.folder(task.folder), error)
        })
    }

    fn judge(
        &self,
        task: Task<'_>,
        invocation: &Invocation,
        stop: &AtomicBool,
    ) -> (Finished, Outcome) {
        let finished = process::run(invocation, self.limits, stop);
        let outcome = outcome::of_ending(&finished.ending)
            .unwrap_or_else(|| self.find(task, &finished).unwrap_or_else(|failure| failure));
        (finished, outcome)
    }

    /// The outcome of a run that ended well.
    fn find(&self, task: Task<'_>, finished: &Finished) -> Result<Outcome, Outcome> {
        let read = |path: &Text| {
            let path = self.recipe.path(task, path);
            std::fs::read_to_string(&path)
                .map_err(|error| format!("cannot read {}: {error}", path.display()))
        };
        let mut violation = 0.0;
        for constraint in &self.constraints {
            // Each is finite; a sum that overflows is still a violation.
            violation = f64::min(violation + constraint.value(finished, read)?.max(0.0), f64::MAX);
        }
        let value = self.objective.value(finished, read);
        if violation > 0.0 {
            return Ok(Outcome::Infeasible { violation, value: value.ok() }.checked());
        }
        Ok(Outcome::from(value?))
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

/// The end of a text, cut at a line where that is near.
fn end_of(text: &str) -> String {
    let text = text.trim_end();
    let from = text.len().saturating_sub(STDERR_SHOWN);
    let from = (from..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    match text[from..].split_once('\n') {
        Some((_, rest)) if from > 0 && !rest.is_empty() => rest.to_string(),
        _ => text[from..].to_string(),
    }
}
