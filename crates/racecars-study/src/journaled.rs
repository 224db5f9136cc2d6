//! A study's search with its journal: where points are proposed and outcomes come in, and what is known of
//! the study so far. It does not care how points are evaluated.
//!
//! Every event is in the journal before it reaches the optimizer. So the journal is all there is to save:
//! a study is resumed by replaying it.
//!
//! **Deterministic studies.** Outcomes are told to the optimizer in the order asked, and point
//! `i + lookahead` is asked when outcome `i` has been told, whenever evaluations end and however often
//! the study is interrupted. An outcome that is early is in the journal, but waits to be told; an
//! `ask` line says how many had been told by then.

use crate::error::{Error, Result};
use crate::journal::{
    self, Ask, End, Entry, Event, Journal, KnownTold, Lines, Part, Repeat, Resume, Stop, Tell,
};
use crate::lock::Lock;
use crate::noise::Recommended;
use crate::outcome::Outcome;
use crate::plan::{Plan, now};
use crate::point::NamedPoint;
use crate::record::Record;
use crate::search::{Search, Step};
use racecars::{Portfolio, StopReason};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A study open for asking and telling.
#[derive(Debug)]
pub(crate) struct JournaledSearch {
    folder: PathBuf,
    journal: Journal,
    state: State,
    is_resumed: bool,
    _lock: Lock,
}

/// What a journal says.
#[derive(Debug)]
struct State {
    plan: Plan,
    search: Search,
    record: Record,
    /// The repetitions that have ended of trials that have not.
    parts: HashMap<u64, Vec<Part>>,
    /// How many points are known that were not proposed.
    known: usize,
}

impl State {
    /// The state of a study that has just begun.
    fn new(plan: &Plan) -> Result<State> {
        let (search, record, plan) = (Search::new(plan)?, Record::new(plan), plan.clone());
        let (parts, known) = (HashMap::new(), plan.known.len());
        Ok(State { plan, search, record, parts, known })
    }

    /// Enters a line of the journal; `Err` says what is wrong with it.
    fn replay(&mut self, event: Event<'_>) -> Result<()> {
        match event {
            Event::Ask(ask) => self.replay_ask(&ask),
            Event::Part(part) => self.enter_part(part),
            Event::Tell(tell) => self.tell(tell),
            Event::Repeat(repeat) => {
                self.record.enter_repeat(&repeat);
                Ok(())
            }
            Event::Known(known) => self.enter_known(&known),
            // The plan so far: what a resuming process changed stays so.
            Event::Resume(Resume { budget, jobs, .. }) => {
                self.plan.budget = self.plan.budget.max(budget.unwrap_or(0));
                self.plan.jobs = jobs.unwrap_or(self.plan.jobs);
                Ok(())
            }
            Event::Stop(_) => Ok(()),
        }
    }

    fn enter_known(&mut self, known: &KnownTold) -> Result<()> {
        self.known += 1;
        self.search.replay_known(known)
    }

    /// Enters a repetition; they end one after the other.
    fn enter_part(&mut self, part: Part) -> Result<()> {
        self.search.point(part.trial)?;
        let parts = self.parts.entry(part.trial).or_default();
        if part.number != parts.len() as u64 || part.outcome.is_failure() {
            let (number, trial) = (part.number, part.trial);
            return Err(Error::setting(format!(
                "repetition {number} of trial {trial} is not the next, or failed"
            )));
        }
        parts.push(part);
        Ok(())
    }

    fn replay_ask(&mut self, ask: &Ask<&RawValue>) -> Result<()> {
        let space = &self.plan.space;
        let point = self.search.replay_ask(ask.trial, ask.told)?;
        let ours = serde_json::to_string(&space.view(point)).map_err(Error::setting)?;
        if ours != ask.params.get() && !is_same_json(&ours, ask.params.get()) {
            return Err(Error::setting(format!(
                "trial {} is not the point that {} proposes there: another version of racecars may \
                 have written it",
                ask.trial, self.plan.algorithm
            )));
        }
        self.record.counts.asked += 1;
        Ok(())
    }

    /// Enters an outcome that is in the journal, as it is read from there.
    fn tell(&mut self, mut tell: Tell) -> Result<()> {
        tell.outcome = tell.outcome.checked();
        let point = self.search.point(tell.trial)?;
        self.record.enter(&tell, point);
        self.parts.remove(&tell.trial);
        self.search.tell(tell.trial, tell.outcome)
    }
}

/// Whether two texts are the same JSON, written differently.
fn is_same_json(a: &str, b: &str) -> bool {
    let parsed = |text| serde_json::from_str::<serde_json::Value>(text).ok();
    parsed(a).is_some_and(|a| Some(a) == parsed(b))
}

impl JournaledSearch {
    /// Opens the study in `folder`. `make` completes the plan, given the study's plan so far.
    pub(crate) fn open(
        folder: &Path,
        lock: Lock,
        mut make: impl FnMut(Option<&Plan>) -> Result<Plan>,
    ) -> Result<JournaledSearch> {
        let path = folder.join(journal::FILE);
        let (mut state, end, is_resumed) = match Lines::open(&path)? {
            Some(mut lines) => {
                let first = lines.plan();
                // Before the replay, which takes its time.
                let plan = make(Some(first))?;
                plan.check_continues(first, folder)?;
                // An equal space, which has its functions: a journal only has their names.
                let first = Plan { space: plan.space, ..first.clone() };
                let mut state = State::new(&first)?;
                lines.read(|line, event| {
                    state.replay(event?).map_err(|what| {
                        let path = path.display();
                        Error::journal(format!("line {line} of {path} cannot be right: {what}"))
                    })
                })?;
                state.plan = make(Some(&state.plan))?;
                (state, lines.end(), true)
            }
            None => (State::new(&make(None)?)?, End::default(), false),
        };
        state.search.apply_rules(&state.plan)?;
        let file = lock.journal().map_err(|error| Error::system("open", &path, error))?;
        let mut journal = Journal::open(&path, file, end, state.plan.sync)?;
        if !is_resumed {
            journal.append(&Entry::Study(&state.plan))?;
            journal.flush()?;
        }
        let folder = folder.to_path_buf();
        Ok(JournaledSearch { folder, journal, state, is_resumed, _lock: lock })
    }

    /// The search and what its journal is written with, for who drives the session himself.
    pub(crate) fn into_parts(self) -> (Search, Plan, Journal, Lock) {
        (self.state.search, self.state.plan, self.journal, self._lock)
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.state.plan
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn record(&self) -> &Record {
        &self.state.record
    }

    /// Whether the study was begun by an earlier process.
    pub(crate) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Whether outcomes are told in the order asked.
    pub(crate) fn is_in_order(&self) -> bool {
        self.state.search.is_in_order()
    }

    /// The point that is best by fresh values: of those that were evaluated again at the end, or by an
    /// algorithm that knows of noise.
    pub(crate) fn recommended(&self) -> Option<Recommended> {
        self.state.record.recommended().or_else(|| self.state.search.recommended())
    }

    /// The best point and value, if these are known without an evaluation and no trial is better.
    pub(crate) fn best_known(&self) -> Option<(&[f64], f64)> {
        self.state.search.best_known()
    }

    /// What a portfolio of algorithms did, in the user's sense.
    pub(crate) fn portfolio(&self) -> Option<Portfolio> {
        self.state.search.session().portfolio()
    }

    /// The trials that are asked and whose outcome is not known, oldest first.
    pub(crate) fn pending(&self) -> Vec<u64> {
        self.state.search.out().collect()
    }

    /// The encoded point of a pending trial.
    pub(crate) fn point(&self, trial: u64) -> Option<&[f64]> {
        self.state.search.point(trial).ok()
    }

    /// Makes ready to run, also after a run that was stopped. The journal says that a study is resumed.
    pub(crate) fn begin_run(&mut self) -> Result<()> {
        self.state.search.apply_rules(&self.state.plan)
    }

    /// Writes that a process resumes the study.
    pub(crate) fn note_resumed(&mut self) -> Result<()> {
        let (budget, jobs) = (Some(self.plan().budget), Some(self.plan().jobs));
        self.journal.append(&Entry::Resume(&Resume { at: now(), budget, jobs }))
    }

    /// Writes that a run ended, and forces everything to disk.
    pub(crate) fn note_stopped(&mut self, reason: StopReason) -> Result<()> {
        self.journal.append(&Entry::Stop(&Stop { reason, at: now() }))?;
        self.journal.flush()
    }

    /// Asks for no more trials. Not in deterministic studies, where what is asked must not depend on
    /// interruptions.
    pub(crate) fn stop_asking(&mut self, reason: StopReason) {
        if !self.is_in_order() {
            self.state.search.stop(reason);
        }
    }

    /// Tells the optimizer what there is to tell, and asks for a trial if the rules allow it.
    pub(crate) fn step(&mut self) -> Result<Step> {
        let State { search, record, .. } = &mut self.state;
        let step = search.step()?;
        if let Step::Asked(trial) = step {
            let session = search.session();
            let params = session.space().view(search.point(trial)?);
            let told = search.is_in_order().then(|| session.counts().evaluations);
            self.journal.append(&Entry::Ask(Ask { trial, params, told, at: now() }))?;
            record.counts.asked += 1;
        }
        Ok(step)
    }

    /// The repetitions of a pending trial that have ended.
    pub(crate) fn parts(&self, trial: u64) -> &[Part] {
        self.state.parts.get(&trial).map_or(&[], Vec::as_slice)
    }

    /// Takes in a repetition of a pending trial.
    pub(crate) fn part(&mut self, part: Part) -> Result<()> {
        self.journal.append(&Entry::Part(&part))?;
        self.state.enter_part(part)
    }

    /// Takes in an outcome. The optimizer learns it by [`JournaledSearch::step`].
    pub(crate) fn tell(&mut self, tell: &Tell) -> Result<()> {
        self.state.search.point(tell.trial)?;
        self.journal.append(&Entry::Tell(tell))?;
        self.state.tell(tell.clone())
    }

    /// Takes in the outcome of a point that was not proposed. The optimizer learns it at once.
    pub(crate) fn known(&mut self, point: &NamedPoint, outcome: Outcome) -> Result<()> {
        let search = &mut self.state.search;
        let told = search.is_in_order().then(|| search.session().counts().evaluations);
        let outcome = outcome.checked();
        let params = point.without_fixed(&self.state.plan.fixed)?;
        let params = params.of_space(&self.state.plan.space)?;
        let known = KnownTold { params, outcome, told, at: now() };
        self.journal.append(&Entry::Known(&known))?;
        self.state.enter_known(&known)
    }

    /// How many points are known that were not proposed.
    pub(crate) fn known_count(&self) -> usize {
        self.state.known
    }

    /// Enters a fresh value of a leading point.
    pub(crate) fn repeat(&mut self, repeat: &Repeat) -> Result<()> {
        self.journal.append(&Entry::Repeat(repeat))?;
        self.state.record.enter_repeat(repeat);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::{Format, export};
    use crate::report::Digest;
    use crate::{Direction, FailureKind, Outcome, Settings};
    use proptest::prelude::*;
    use serde_json::Value;
    use std::time::Duration;

    fn outcome() -> impl Strategy<Value = Outcome> {
        let number = || prop_oneof![any::<f64>(), -1.0..1.0f64];
        prop_oneof![
            3 => number().prop_map(Outcome::Value),
            2 => (number(), prop::option::of(number()))
                .prop_map(|(violation, value)| Outcome::Infeasible { violation, value }),
            2 => (prop::option::of(number()), prop::collection::vec(number(), 0..3))
                .prop_map(|(value, constraints)| Outcome::measured(value, constraints)),
            1 => (prop::sample::select(FailureKind::ALL), "(?s).{0,9}")
                .prop_map(|(kind, reason)| Outcome::failure(kind, reason)),
        ]
    }

    /// To the bit: JSON and Rust print the shortest digits that are read as the same number.
    fn bits(outcomes: &[Outcome]) -> Vec<String> {
        outcomes.iter().map(|outcome| format!("{outcome:?}")).collect()
    }

    fn open(folder: &Path, settings: &Settings) -> JournaledSearch {
        let lock = Lock::take(folder, Duration::ZERO).unwrap();
        JournaledSearch::open(folder, lock, |old| Plan::new(settings, folder, old)).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

        #[test]
        fn every_outcome_is_the_same_in_journal_resumed_study_report_and_export(
            outcomes in prop::collection::vec(outcome(), 1..9),
            direction in prop::sample::select(&["minimize", "maximize"][..]),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            let text = format!("{direction} = 'last'\nalgorithm = 'random'\nparameters = ['x=0:1']");
            let settings = Settings::parse(&text).unwrap();
            let mut live = open(folder, &settings);
            let tell = |trial, outcome| Tell {
                trial, outcome, attempts: 1, seconds: 0.25, worker: 0, values: Vec::new(), at: 1, stderr: None,
            };
            for (trial, outcome) in outcomes.iter().enumerate() {
                prop_assert_eq!(live.step().unwrap(), Step::Asked(trial as u64));
                live.tell(&tell(trial as u64, outcome.clone())).unwrap();
            }
            let best = live.record().best.clone();
            drop(live);
            let checked: Vec<Outcome> = outcomes.iter().map(|outcome| outcome.clone().checked()).collect();

            let mut read = Vec::new();
            journal::read(&folder.join(journal::FILE), |_, event| {
                if let Event::Tell(tell) = event {
                    read.push(tell.outcome);
                }
                Ok(())
            }).unwrap();
            prop_assert_eq!(bits(&read), bits(&checked));

            let sense = Settings::parse(&text).unwrap().minimize.map_or(Direction::Maximize, |_| Direction::Minimize);
            let expected = checked.iter().filter(|outcome| !outcome.is_failure())
                .min_by_key(|outcome| outcome.rank_in(sense)).map(|outcome| format!("{outcome:?}"));
            prop_assert_eq!(best.as_ref().map(|best| format!("{:?}", best.outcome)), expected);
            let resumed = open(folder, &settings);
            prop_assert_eq!(&resumed.record().best, &best);
            let digest = Digest::read(folder).unwrap().unwrap();
            prop_assert_eq!(&digest.record.best, &best);

            let mut json = Vec::new();
            export(folder, Format::Json, &mut json).unwrap();
            let json: Value = serde_json::from_slice(&json).unwrap();
            for (outcome, row) in checked.iter().zip(json["trials"].as_array().unwrap()) {
                let number = |key: &str| row[key].as_f64();
                prop_assert_eq!(match outcome {
                    Outcome::Value(value) => ("value", Some(*value), None),
                    Outcome::Infeasible { violation, value } => ("infeasible", *value, Some(*violation)),
                    Outcome::Measured(measured) => match outcome.violation() {
                        None => ("value", measured.value, None),
                        violation => ("infeasible", measured.value, violation),
                    },
                    Outcome::Failed(failure) => (failure.kind.name(), None, None),
                }, (row["state"].as_str().unwrap(), number("value"), number("violation")));
            }
            for format in [Format::Csv, Format::Optuna] {
                let exported = export(folder, format, &mut std::io::sink()).unwrap();
                prop_assert_eq!(exported.trials, outcomes.len() as u64);
            }
        }
    }
}
