//! A study: open it, run it, or ask and tell from outside.

use crate::error::{Error, ErrorKind, Result};
use crate::evaluate::{DryRun, Evaluator};
use crate::journal::{self, Lines, Tell};
use crate::journaled::JournaledSearch;
use crate::known;
use crate::lock::Lock;
use crate::outcome::value_and_violation;
use crate::plan::{Plan, check_text, now};
use crate::platform;
use crate::point::NamedPoint;
use crate::record::{BestTrial, Totals};
use crate::recorder::Recorder;
use crate::runner::{self, Interrupt, Status};
use crate::search::{Search, Step};
use crate::settings::Settings;
use crate::summary::{BestKnown, Chosen, Summary};
use racecars::StopReason;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The name of a study's folder if none is given.
pub const FOLDER: &str = "racecars-study";
/// How long a run waits: a process that was killed can leave programs that it was just starting, which
/// have the lock for a moment.
pub(crate) const MOMENT: Duration = Duration::from_millis(500);
/// How long asking and telling wait for another process that does the same.
const PATIENCE: Duration = Duration::from_secs(10);

/// A study that is open: its folder is locked until this is dropped.
#[derive(Debug)]
pub struct Study {
    search: JournaledSearch,
    evaluator: Option<Evaluator>,
}

/// A point to be evaluated outside of racecars.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Asked {
    /// Its number, to tell the outcome with.
    pub trial: u64,
    /// The values by name.
    pub params: serde_json::Value,
    /// A seed for it.
    pub seed: u64,
    /// The study's command with the values in place, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// An outcome that is told from outside: a value, a violation, or a failure.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Told {
    /// The trial.
    pub trial: Option<u64>,
    /// Instead of a trial: the parameters of a point that was not asked for.
    pub params: Option<NamedPoint>,
    /// The value, if there is one.
    pub value: Option<f64>,
    /// By how much constraints are violated; 0 is feasible.
    #[serde(deserialize_with = "known::violation")]
    pub infeasible: Option<f64>,
    /// Why it failed, if it did.
    pub failed: Option<String>,
    /// How long it took, if known.
    pub seconds: Option<f64>,
}

impl Study {
    /// Opens the study in `folder` to run it, or begins one there. Programs that a killed process
    /// left running are ended. `base` is the folder that commands are relative to.
    pub fn open(folder: &Path, settings: &Settings, base: &Path) -> Result<Study> {
        let (folder, lock) = enter(folder, MOMENT)?;
        platform::kill_left_behind(&folder);
        let mut evaluator = None;
        let mut search = JournaledSearch::open(&folder, lock, |old| {
            let plan = Plan::new(settings, base, old)?;
            // A command that cannot be right is refused before there is a study.
            evaluator = Some(Evaluator::new(&plan, &folder)?);
            Ok(plan)
        })?;
        if search.is_resumed() {
            search.note_resumed()?;
        }
        Ok(Study { search, evaluator })
    }

    /// Opens the study in `folder` to ask for points and tell outcomes, or begins one there; it needs no
    /// command.
    pub fn open_to_ask(folder: &Path, settings: &Settings, base: &Path) -> Result<Study> {
        let (folder, lock) = enter(folder, PATIENCE)?;
        let search = JournaledSearch::open(&folder, lock, |old| Plan::new(settings, base, old))?;
        let evaluator = match search.plan().command.is_empty() {
            true => None,
            false => Some(Evaluator::new(search.plan(), &folder)?),
        };
        Ok(Study { search, evaluator })
    }

    /// Moves the journal in `folder` aside, so that a study with these settings begins afresh there;
    /// returns where to.
    pub fn restart(folder: &Path, settings: &Settings, base: &Path) -> Result<Option<PathBuf>> {
        if !folder.join(journal::FILE).exists() {
            return Ok(None);
        }
        // What cannot begin does not take the place of what there is.
        Plan::new(settings, base, None)?;
        Recorder::restart(folder)
    }

    /// Checks settings and runs the program once, without a journal. The point is the first that a
    /// run would propose.
    pub fn check(
        folder: &Path,
        settings: &Settings,
        base: &Path,
        stop: &AtomicBool,
    ) -> Result<(Plan, DryRun)> {
        let old = Lines::open(&folder.join(journal::FILE))?;
        let old = old.as_ref().map(Lines::plan);
        let plan = Plan::new(settings, base, old)?;
        if let Some(old) = old {
            plan.check_continues(old, folder)?;
        }
        let folder = std::path::absolute(folder)
            .map_err(|error| Error::system("find the folder", folder, error))?;
        check_text(&folder)?;
        let evaluator = Evaluator::new(&plan, &folder)?;
        let mut search = Search::new(&plan)?;
        let Step::Asked(trial) = search.step()? else {
            return Err(Error::setting("the space has no points"));
        };
        let dry_run = evaluator.dry_run(search.point(trial)?, stop)?;
        Ok((plan, dry_run))
    }

    /// The settings.
    pub fn plan(&self) -> &Plan {
        self.search.plan()
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.search.folder()
    }

    /// Whether the study was begun by an earlier process.
    pub fn is_resumed(&self) -> bool {
        self.search.is_resumed()
    }

    /// What has been counted so far.
    pub fn totals(&self) -> Totals {
        self.search.record().counts
    }

    /// The number of points that are known without having been asked for.
    pub fn known(&self) -> usize {
        self.search.known_count()
    }

    /// The best trial so far.
    pub fn best(&self) -> Option<&BestTrial> {
        self.search.record().best.as_ref()
    }

    /// Runs the study until its budget is used up or another rule stops it, and writes
    /// `best.json`. `observe` sees how it goes, after each evaluation and now and then.
    pub fn run(
        &mut self,
        interrupt: &Interrupt,
        observe: &mut dyn FnMut(&Status<'_>),
    ) -> Result<Summary> {
        let start = Instant::now();
        let Some(evaluator) = &self.evaluator else {
            return Err(Error::setting("the study has no command to run"));
        };
        let run = runner::run(&mut self.search, evaluator, interrupt, observe, start)
            .and_then(|run| self.search.note_stopped(run.0).map(|()| run));
        let (ended, first_failure) = run.map_err(|error| self.with_result(error))?;
        let summary = self.summary(ended, start.elapsed());
        summary.write(self.folder())?;
        match (ended, first_failure) {
            (StopReason::FirstFailures, Some(failure)) => {
                Err(Error::new(ErrorKind::FirstFailures, failure))
            }
            _ => Ok(summary),
        }
    }

    /// An error that leaves no journal to look at says what the run still knows.
    fn with_result(&self, error: Error) -> Error {
        if error.kind() != ErrorKind::Journal {
            return error;
        }
        let record = self.search.record();
        let best = match &record.best {
            Some(best) => format!(
                "the best is {} in trial {}, at {}",
                best.outcome,
                best.trial,
                self.plan().named(&best.point)
            ),
            None => "none gave a value".to_string(),
        };
        Error::journal(format!("{error}. Of {} evaluations {best}", record.counts.told))
    }

    fn summary(&self, ended: StopReason, elapsed: Duration) -> Summary {
        let record = self.search.record();
        let chosen = |trial: u64, value: Option<f64>, infeasible: Option<f64>, point: &[f64]| {
            let (params, command) = (self.params(point), self.paste(trial, point));
            Chosen { trial, value, evaluations: 1, infeasible, params, command }
        };
        let best = record.best.as_ref().map(|best| {
            let (value, infeasible) = value_and_violation(&best.outcome);
            chosen(best.trial, value, infeasible, &best.point)
        });
        let leader = self.search.recommended();
        let recommended = leader.as_ref().map(|leader| Chosen {
            evaluations: leader.evaluations,
            ..chosen(leader.trial, Some(leader.value), None, &leader.point)
        });
        // The last word is whose files are laid out.
        let point = (leader.as_ref().map(|leader| (leader.trial, &leader.point)))
            .or(record.best.as_ref().map(|best| (best.trial, &best.point)));
        if let (Some(evaluator), Some((trial, point))) = (&self.evaluator, point) {
            // A convenience, which a full disk may deny.
            let _ = evaluator.make_best(trial, point);
        }
        Summary {
            stop: ended,
            evaluations: record.counts.told,
            budget: self.plan().budget,
            failures: record.counts.failures,
            infeasible: record.counts.infeasible,
            retries: record.counts.retries,
            repeats: record.counts.repeats,
            seconds: elapsed.as_secs_f64(),
            direction: self.plan().direction,
            algorithm: self.plan().algorithm.to_string(),
            seed: self.plan().seed,
            best,
            recommended,
            best_known: (self.search.best_known())
                .map(|(point, value)| BestKnown { value, params: self.params(point) }),
            portfolio: self.search.portfolio(),
        }
    }

    /// The values by name.
    fn params(&self, point: &[f64]) -> serde_json::Value {
        serde_json::to_value(self.plan().named(point)).unwrap_or_default()
    }

    /// The study's command with the values of a trial, if it has one.
    fn paste(&self, trial: u64, point: &[f64]) -> Option<String> {
        self.evaluator.as_ref().map(|evaluator| evaluator.paste(trial, point))
    }

    /// Proposes up to `count` points; fewer if the budget, the space or the lookahead is used up.
    pub fn ask(&mut self, count: usize) -> Result<Vec<Asked>> {
        let mut asked = Vec::new();
        while asked.len() < count
            && let Step::Asked(trial) = self.search.step()?
        {
            asked.extend(self.asked(trial));
        }
        Ok(asked)
    }

    /// The points that were proposed and whose outcome has not been told.
    pub fn pending(&self) -> Vec<Asked> {
        self.search.pending().into_iter().filter_map(|trial| self.asked(trial)).collect()
    }

    fn asked(&self, trial: u64) -> Option<Asked> {
        let point = self.search.point(trial)?;
        let seed = self.evaluator.as_ref().map_or(trial, |evaluator| evaluator.seed(trial, 0));
        let (params, command) = (self.params(point), self.paste(trial, point));
        Some(Asked { trial, params, seed, command })
    }

    /// Tells the outcome of a trial, or of a point that was not asked for: it counts as known, not as an
    /// evaluation.
    pub fn tell(&mut self, told: &Told) -> Result<()> {
        let name = match (told.trial, &told.params) {
            (Some(trial), None) => format!("trial {trial}"),
            (None, Some(params)) => format!("the point {params}"),
            (Some(trial), Some(_)) => {
                return Err(Error::setting(format!(
                    "trial {trial}: `params` are given, too; tell the outcome of a trial or of a point that \
                     was not asked for"
                )));
            }
            (None, None) => return Err(Error::setting("`trial` is missing, or `params`")),
        };
        let outcome = known::outcome(told.value, told.infeasible, told.failed.as_deref())
            .map_err(|what| Error::setting(format!("{name}: {what}")))?;
        let trial = match (told.trial, &told.params) {
            (None, Some(params)) => return self.search.known(params, outcome),
            (trial, _) => trial.unwrap_or_default(),
        };
        self.search.tell(&Tell {
            trial,
            outcome,
            attempts: 1,
            seconds: told.seconds.filter(|seconds| seconds.is_finite()).unwrap_or(0.0),
            worker: 0,
            values: Vec::new(),
            at: now(),
            stderr: None,
        })
    }
}

/// Makes the folder if need be, and locks it; returns its full path.
pub(crate) fn enter(folder: &Path, patience: Duration) -> Result<(PathBuf, Lock)> {
    let refuse = |error| Error::system("make the study's folder", folder, error);
    check_text(&std::path::absolute(folder).map_err(refuse)?)?;
    std::fs::create_dir_all(folder).map_err(refuse)?;
    let folder = platform::whole_path(folder).map_err(refuse)?;
    check_text(&folder)?;
    let lock = Lock::take(&folder, patience)?;
    Ok((folder, lock))
}
