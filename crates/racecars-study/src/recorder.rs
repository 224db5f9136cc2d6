//! The journal of a search that somebody else drives: the Python package, which calls a function in its own
//! process or on workers of its own. Opening replays the journal into a session; from then on the driver has
//! the session, and the recorder writes down what it says.
//!
//! The plan of such a study has no command, as that of a study which is only asked and told. `report`, `watch`
//! and `export` need none.

use crate::error::{Error, ErrorKind, Result};
use crate::journal::{Ask, Entry, Event, FILE, Journal, KnownTold, Resume, Stop, Tell};
use crate::journaled::JournaledSearch;
use crate::known::Known;
use crate::lock::Lock;
use crate::outcome::Outcome;
use crate::plan::{Plan, now};
use crate::point::NamedPoint;
use crate::settings::Settings;
use crate::study::{MOMENT, enter};
use crate::trace::{self, Reader, not_begun};
use racecars::{Session, Space, StopReason, Trial};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// Writes the journal of a search; the study's folder is locked until this is dropped.
#[derive(Debug)]
pub struct Recorder {
    folder: PathBuf,
    plan: Plan,
    journal: Journal,
    _lock: Lock,
}

/// A search as its journal has it, to be driven on.
#[derive(Debug)]
#[non_exhaustive]
pub struct Recorded {
    /// What writes the journal from here on.
    pub recorder: Recorder,
    /// The session, with all outcomes of the journal, and without stop rules.
    pub session: Session,
    /// The trials that were asked and whose outcome is not in the journal, oldest first. They are out.
    pub out: Vec<Trial>,
    /// Whether the study was begun before.
    pub is_resumed: bool,
}

/// A trial that has ended, as a journal has it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RecordedTrial {
    /// Its number, in the order asked.
    pub trial: u64,
    /// The encoded point.
    pub point: Vec<f64>,
    /// The outcome, in the user's sense.
    pub outcome: Outcome,
    /// How often it was evaluated: 0 if a constraint showed without it that it is infeasible.
    pub attempts: u32,
    /// How long the evaluation took.
    pub seconds: f64,
    /// Which worker made it.
    pub worker: usize,
    /// When the outcome came in, in milliseconds since 1970.
    pub at: u64,
}

impl Recorder {
    /// Opens the study of a search in `folder`, or begins one there. Of the settings those count that a search
    /// without a program has; the start points, the known points and the seed of a study that is resumed are
    /// those that it was begun with.
    pub fn open(folder: &Path, space: &Space, settings: &Settings) -> Result<Recorded> {
        let (folder, lock) = enter(folder, MOMENT)?;
        let base = std::env::current_dir()
            .map_err(|error| Error::system("find the folder", Path::new("."), error))?;
        let search = JournaledSearch::open(&folder, lock, |old| {
            let mut settings = settings.clone();
            if let Some(old) = old {
                if !old.command.is_empty() {
                    let (folder, command) = (folder.display(), old.command.join(" "));
                    return Err(Error::setting(format!(
                        "the study in {folder} is of a program (`{command}`), not of a function; choose \
                         another folder, or resume it with `racecars run --study {folder}`"
                    )));
                }
                (settings.start, settings.seed) = (None, None);
                // Fewer evaluations than planned are a matter of the session's stop rules.
                settings.budget = settings
                    .budget
                    .filter(|budget| budget.evaluations(old.space.dimension()) > old.budget);
            }
            Plan::in_space((space.clone(), NamedPoint::default()), &settings, &base, old)
        })?;
        let is_resumed = search.is_resumed();
        let (search, plan, journal, _lock) = search.into_parts();
        let mut recorder = Recorder { folder, plan, journal, _lock };
        if is_resumed {
            let (budget, jobs) = (Some(recorder.plan.budget), Some(recorder.plan.jobs));
            recorder.journal.append(&Entry::Resume(&Resume { at: now(), budget, jobs }))?;
        }
        let (session, out) = search.into_parts();
        Ok(Recorded { recorder, session, out, is_resumed })
    }

    /// Moves the journal in `folder` aside, if there is one, so that a study begins afresh there.
    pub fn restart(folder: &Path) -> Result<Option<PathBuf>> {
        if !folder.join(FILE).exists() {
            return Ok(None);
        }
        let (folder, mut lock) = enter(folder, MOMENT)?;
        let aside = crate::journal::free_name(&folder);
        lock.move_journal(&aside)
            .map_err(|error| Error::system("move aside", &folder.join(FILE), error))?;
        Ok(Some(aside))
    }

    /// The study's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The settings.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The descriptors of the journal and its lock. A process that is forked from this one has them as well, and would
    /// keep the study locked if it outlived this one: let it put others in their place.
    pub fn descriptors(&self) -> Vec<i32> {
        self._lock.descriptors().chain(self.journal.descriptors()).collect()
    }

    /// Writes that a point was proposed; where outcomes are told in order, after this many.
    pub fn asked(&mut self, trial: u64, point: &[f64], told: Option<u64>, at: u64) -> Result<()> {
        let params = self.plan.space.view(point);
        self.journal.append(&Entry::Ask(Ask { trial, params, told, at }))
    }

    /// Writes an outcome. The session is told it after this.
    pub fn told(&mut self, tell: &Tell) -> Result<()> {
        self.journal.append(&Entry::Tell(tell))
    }

    /// Writes that a run ended, and forces everything to disk.
    pub fn stopped(&mut self, reason: StopReason) -> Result<()> {
        self.journal.append(&Entry::Stop(&Stop { reason, at: now() }))?;
        self.journal.flush()
    }

    /// Milliseconds since 1970, the clock of journals.
    pub fn now() -> u64 {
        now()
    }

    /// Reads the trials that have ended of the study in `folder`, in the order told. Returns its plan, and the points
    /// that are known without a trial. `begun` gets the plan before the first trial.
    pub fn read(
        folder: &Path,
        begun: impl FnOnce(&Plan) -> Result<()>,
        mut each: impl FnMut(RecordedTrial),
    ) -> Result<(Plan, Vec<Known>)> {
        let refuse = |error: io::Error| Error::new(ErrorKind::System, error);
        let reader = Reader::open(folder).map_err(refuse)?;
        let mut reader = reader.ok_or_else(|| refuse(not_begun(folder)))?;
        let plan = reader.plan().clone();
        begun(&plan)?;
        let mut known = plan.known.clone();
        let mut out: HashMap<u64, Vec<f64>> = HashMap::new();
        let read = reader.read(|event| {
            match event {
                Event::Ask(ask) => {
                    let point = trace::encode(&plan.space, ask.params)?;
                    out.entry(ask.trial).or_insert(point);
                }
                Event::Tell(Tell { trial, outcome, attempts, seconds, worker, at, .. }) => {
                    if let Some(point) = out.remove(&trial) {
                        let outcome = outcome.checked();
                        let trial =
                            RecordedTrial { trial, point, outcome, attempts, seconds, worker, at };
                        each(trial);
                    }
                }
                Event::Known(KnownTold { params: point, outcome, .. }) => {
                    known.push(Known { point, outcome: outcome.checked() });
                }
                _ => {}
            }
            Ok(())
        });
        read.map_err(refuse)?;
        Ok((plan, known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::{Format, export};
    use crate::report;
    use racecars::{Next, StopRules};
    use std::time::Duration;

    fn settings(budget: u64) -> Settings {
        let mut settings = Settings::parse("algorithm = 'race-cars'\nseed = 3").unwrap();
        settings.budget = Some(racecars::Budget::Evaluations(budget));
        settings
    }

    fn drive(recorded: &mut Recorded, evaluations: u64, keep_last: bool) -> Vec<(u64, f64)> {
        let mut rules = StopRules::default();
        rules.evaluations = Some(evaluations);
        recorded.session.set_rules(rules).unwrap();
        let (mut again, mut seen) = (std::mem::take(&mut recorded.out), Vec::new());
        loop {
            let trial = match again.pop() {
                Some(trial) => trial,
                None => match recorded.session.next(Duration::ZERO).unwrap() {
                    Next::Evaluate(trial) => {
                        recorded.recorder.asked(trial.number(), trial.point(), None, 1).unwrap();
                        trial
                    }
                    _ => return seen,
                },
            };
            if keep_last && trial.number() + 1 == evaluations {
                return seen;
            }
            let value = trial.point().iter().map(|x| x * x).sum::<f64>();
            let tell = Tell {
                trial: trial.number(),
                outcome: value.into(),
                attempts: 1,
                seconds: 0.5,
                worker: 2,
                values: Vec::new(),
                at: 7,
                stderr: None,
            };
            recorded.recorder.told(&tell).unwrap();
            seen.push((trial.number(), value));
            recorded.session.tell(trial, value).unwrap();
        }
    }

    #[test]
    fn a_search_is_resumed_where_it_was_and_its_trials_are_read() {
        let space = Space::cube(3, -1.0, 1.0).unwrap();
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut whole = Recorder::open(one.path(), &space, &settings(60)).unwrap();
        let expected = drive(&mut whole, 60, false);
        let mut first = Recorder::open(two.path(), &space, &settings(60)).unwrap();
        let mut seen = drive(&mut first, 31, true);
        drop(first);
        let mut second = Recorder::open(two.path(), &space, &settings(60)).unwrap();
        assert!(second.is_resumed && second.out.len() == 1 && second.out[0].number() == 30);
        seen.extend(drive(&mut second, 60, false));
        assert_eq!(seen, expected);
        second.recorder.stopped(StopReason::Evaluations).unwrap();
        let exported = export(two.path(), Format::Csv, &mut io::sink()).unwrap();
        let page = two.path().join("report.html");
        report::write(two.path(), &page).unwrap();
        let has_page = std::fs::read_to_string(page).unwrap().contains("race-cars");
        assert!(exported.trials == 60 && has_page);
        let mut trials = Vec::new();
        let read = Recorder::read(two.path(), |_| Ok(()), |trial| trials.push(trial)).unwrap();
        assert_eq!((read.0.budget, read.1.len()), (60, 0));
        assert_eq!((trials.len(), trials[59].worker), (60, 2));
        assert_eq!(trials[59].outcome.value(), Some(expected[59].1));
    }

    #[test]
    fn another_search_and_the_study_of_a_program_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let space = Space::cube(3, -1.0, 1.0).unwrap();
        drop(Recorder::open(folder.path(), &space, &settings(60)).unwrap());
        let other = Space::cube(3, -1.0, 2.0).unwrap();
        let refused = |space: &Space| {
            Recorder::open(folder.path(), space, &settings(60)).unwrap_err().to_string()
        };
        assert!(refused(&other).contains("parameter `x` has another range"));
        assert!(Recorder::restart(folder.path()).unwrap().is_some());
        let program = Settings::parse("command = ['true', '{x}']\nparameters = ['x=0:1']").unwrap();
        drop(crate::Study::open(folder.path(), &program, folder.path()).unwrap());
        assert!(refused(&space).contains("is of a program (`true {x}`), not of a function"));
    }

    #[test]
    fn a_search_without_a_limit_plans_with_none() {
        let folder = tempfile::tempdir().unwrap();
        let space = Space::cube(2, -1.0, 1.0).unwrap();
        let recorded = Recorder::open(folder.path(), &space, &settings(Plan::NO_LIMIT)).unwrap();
        assert_eq!(recorded.recorder.plan().limit(), None);
        drop(recorded);
        let again = Recorder::open(folder.path(), &space, &settings(60)).unwrap();
        assert_eq!(again.recorder.plan().limit(), None);
    }
}
