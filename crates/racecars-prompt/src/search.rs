//! The search: candidates race on the training texts, the development texts choose among the best, the test texts
//! say how good the chosen prompt is.
//!
//! The study's folder has the journal (`racecars report` and `export` read it), the answers, and what must stay
//! the same. After the first ones, candidates are evaluated one after the other, the requests of a minibatch at
//! once: so the result does not depend on the number of jobs, nor on interruptions.

mod first;

use crate::caller::{Caller, Limit, NoAnswer, OnRetry, Request};
use crate::data::Row;
use crate::endpoint::Endpoint;
use crate::error::{Error, ErrorKind, Result};
use crate::metric::Score;
use crate::propose::Proposals;
use crate::race::{Rule, Verdict, mean};
use crate::report::{Report, Stop};
use crate::store::{Spent, Store};
use crate::task::{Candidate, Task};
use first::{FIRST_PROMPTS, first_prompts};
use racecars::{Algorithm, Budget, Next, StopRules, Trial};
use racecars_figures::files;
use racecars_study::journal::{self, Event, Tell};
use racecars_study::{
    FailureKind, Interrupt, NamedPoint, Outcome, Recorded, Recorder, Settings as StudySettings,
    Source, StopReason,
};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The name of the file with the hashes of what must stay the same.
const MANIFEST: &str = "prompt-study.json";
/// A run ends when this many prompts were refused and none ever worked.
const FIRST_FAILURES: u64 = 3;
/// Up to this many prompts and coordinates the default algorithm is the Gaussian process.
const GP_CANDIDATES: u64 = 300;
const GP_COORDINATES: usize = 1000;

/// The progress of a search.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Progress {
    /// Prompts that have been looked at.
    pub candidates: u64,
    /// Prompts planned.
    pub planned: u64,
    /// The best mean score.
    pub best: Option<f64>,
    /// What has been spent.
    pub spent: Spent,
    /// The limit on calls.
    pub calls: u64,
    /// What it costs, if prices are known.
    pub money: f64,
    /// What is being done.
    pub stage: &'static str,
}

/// A prompt whose scores on all training texts are known.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) trial: u64,
    pub(crate) candidate: Candidate,
    pub(crate) point: NamedPoint,
    pub(crate) scores: Vec<Score>,
}

/// What a journal says of the prompts so far.
#[derive(Debug, Default)]
struct Past {
    /// Trial, point, and the score of each text.
    complete: Vec<(u64, Vec<f64>, Vec<f64>)>,
    /// Trial and point of all that have an outcome.
    told: Vec<(u64, Vec<f64>)>,
    /// The number of first prompts, if one of them has an outcome.
    first: Option<u64>,
    /// The very first prompt, if it was dropped: point and scores.
    dropped_start: Option<(Vec<f64>, Vec<f64>)>,
    dropped: u64,
    failures: u64,
}

struct Search<'a> {
    task: &'a Task,
    caller: Caller,
    proposals: Proposals,
    rule: Rule,
    standings: Vec<Standing>,
    /// The very first prompt, with its scores on all or some of the training texts.
    first: Option<Standing>,
    /// First prompts in a race that has not ended.
    racing: u64,
    dropped: u64,
    failures: u64,
    first_failure: Option<String>,
    planned: u64,
    progress: &'a mut dyn FnMut(&Progress),
}

/// The number of prompts that a search plans with: each is expected to take a third of the texts. An error if the limits
/// are too low for two.
pub fn planned_prompts(task: &Task) -> Result<u64> {
    let limits = task.settings.limits;
    let (tokens, money) = task.most_of_request()?;
    if let Some(most) = limits.tokens.filter(|most| *most < tokens) {
        return Err(Error::setting(format!(
            "limits.tokens is {most}, and a single request may take {tokens}: as many as it has bytes, and max_tokens"
        )));
    }
    if let Some(most) = limits.money.filter(|most| *most < money) {
        return Err(Error::setting(format!(
            "limits.money is {most}, and a single request may cost {money}: as many tokens as it has bytes, and \
             max_tokens"
        )));
    }
    let search_calls = limits.calls.saturating_sub(task.final_calls());
    let texts = task.train.len() as u64;
    if search_calls < 2 * texts {
        return Err(Error::setting(format!(
            "limits.calls is {}: {} are kept for the {} finalists on {} development texts and two prompts on {} \
             test texts, and the search needs at least {}, two prompts on {texts} training texts. Set it to {} or more, or \
             use fewer texts (data.dev_texts, data.test_texts)",
            limits.calls,
            task.final_calls(),
            task.settings.search.finalists,
            task.dev.len(),
            task.test.len(),
            2 * texts,
            task.final_calls() + 2 * texts
        )));
    }
    Ok(task.settings.search.candidates.unwrap_or((3 * search_calls / texts).max(20)))
}

/// Searches prompts, or resumes the study in `folder`, and writes the best one there. `on_retry` is told why
/// requests are sent again, at most every ten seconds.
pub fn search(
    task: &Task,
    folder: &Path,
    jobs: usize,
    interrupt: &Interrupt,
    on_retry: OnRetry,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Report> {
    let started = Instant::now();
    let endpoint = Endpoint::new(&task.settings.endpoint)?;
    let planned = planned_prompts(task)?;
    check_manifest(task, folder)?;
    let mut past = read_past(task, folder)?;
    let Recorded { mut recorder, mut session, out, .. } =
        Recorder::open(folder, &task.space, &study_settings(task, planned)?)?;
    write_manifest(task, folder)?;
    let store = Store::open(folder)?;
    let damaged = store.damaged();
    let limits = task.settings.limits;
    let settings = &task.settings.endpoint;
    let caller = Caller::new(endpoint, settings, limits, store, jobs, interrupt, on_retry);
    let rule = Rule {
        texts: task.train.len(),
        level: task.settings.search.drop_level,
        is_accuracy: task.metric.is_accuracy(),
        seed: task.settings.search.seed,
    };
    let is_begun = !past.told.is_empty();
    let mut first = past.take_unfinished_first();
    let mut search = Search {
        task,
        caller,
        proposals: Proposals::open(folder)?,
        rule,
        standings: Vec::new(),
        first: None,
        racing: 0,
        dropped: past.dropped,
        failures: past.failures,
        first_failure: None,
        planned,
        progress,
    };
    search.restore(past)?;
    let mut rules = StopRules::default();
    rules.evaluations = Some(planned);
    session.set_rules(rules)?;
    search.caller.keep_for_later(task.final_calls());
    let mut again = VecDeque::from(out);
    // The first prompts race side by side; they are asked for before any of them has an outcome.
    if !is_begun {
        let count = first_prompts(task, planned)?;
        while again.len() < count {
            match session.next(Duration::ZERO)? {
                Next::Evaluate(trial) => {
                    recorder.asked(trial.number(), trial.point(), None, Recorder::now())?;
                    again.push_back(trial);
                }
                Next::Told => {}
                Next::Wait | Next::Stop(_) => break,
            }
        }
    }
    let mut ended = None;
    if !first.is_empty() || (!is_begun && again.len() > 1) {
        let told = first.len();
        first.extend(again.iter().map(|trial| (trial.number(), trial.point().to_vec())));
        match search.race_first(&first) {
            Ok(tells) => {
                for (trial, tell) in again.drain(..).zip(&tells[told..]) {
                    recorder.told(tell)?;
                    session.tell(trial, tell.outcome.clone())?;
                }
                search.show("searching");
            }
            Err(reason) => ended = Some(stopped_by(reason, &mut recorder)?),
        }
    }
    let stop = loop {
        if let Some(stop) = ended {
            break stop;
        }
        let trial = match again.pop_front() {
            Some(trial) => trial,
            None => match session.next(Duration::ZERO)? {
                Next::Evaluate(trial) => {
                    recorder.asked(trial.number(), trial.point(), None, Recorder::now())?;
                    trial
                }
                Next::Told | Next::Wait => continue,
                Next::Stop(reason) => {
                    recorder.stopped(reason)?;
                    break match reason {
                        StopReason::Exhausted => Stop::Exhausted,
                        _ => Stop::Candidates,
                    };
                }
            },
        };
        match search.evaluate(&trial) {
            Ok(tell) => {
                recorder.told(&tell)?;
                session.tell(trial, tell.outcome)?;
                search.show("searching");
            }
            Err(reason) => ended = Some(stopped_by(reason, &mut recorder)?),
        }
    };
    let mut report = search.finish(stop, folder)?;
    report.damaged_answers = damaged;
    report.seconds = started.elapsed().as_secs_f64();
    files::write(&folder.join("result.json"), &report.to_json()?)?;
    Ok(report)
}

/// Writes why a run ends.
fn stopped_by(reason: NoAnswer, recorder: &mut Recorder) -> Result<Stop> {
    let (noted, stop) = match reason {
        NoAnswer::Limit(limit) => (StopReason::Evaluations, Ok(Stop::Limit(limit))),
        NoAnswer::Interrupted => (StopReason::Interrupted, Ok(Stop::Interrupted)),
        NoAnswer::Fatal(error) => (StopReason::WorkersLost, Err(error)),
        NoAnswer::Refused(why) => return Err(Error::endpoint(why)),
    };
    recorder.stopped(noted)?;
    stop
}

/// Moves the journal of the study in `folder` aside, so that a search begins afresh; the answers stay.
pub fn restart(folder: &Path) -> Result<Option<PathBuf>> {
    let aside = Recorder::restart(folder)?;
    let manifest = folder.join(MANIFEST);
    if manifest.exists() {
        std::fs::remove_file(&manifest)
            .map_err(|error| Error::system("remove", &manifest, error))?;
    }
    if let Some(path) = Proposals::file(folder) {
        std::fs::remove_file(&path).map_err(|error| Error::system("remove", &path, error))?;
    }
    Ok(aside)
}

fn study_settings(task: &Task, planned: u64) -> Result<StudySettings> {
    let search = &task.settings.search;
    let mut settings = StudySettings::default();
    let mut algorithm = match &search.algorithm {
        Some(algorithm) => algorithm.clone(),
        // `auto` searches subsets and orders around its first point, which suits more evaluations than these.
        // Its first prompts are all over the space: how an example works with an instruction says little of others.
        None if planned <= GP_CANDIDATES && task.space.dimension() <= GP_COORDINATES => {
            format!("gp(design={FIRST_PROMPTS})").parse::<Algorithm>()?
        }
        None => Algorithm::default(),
    };
    // The same prompt has the same answers.
    if algorithm.has_setting("noise") {
        algorithm =
            Algorithm::configured(Some(algorithm), [("noise".to_string(), "no".to_string())])?;
    }
    settings.algorithm = Some(algorithm);
    settings.seed = Some(search.seed);
    settings.jobs = Some(1);
    settings.budget = Some(Budget::Evaluations(planned));
    settings.maximize = Some(Source::default());
    settings.start = Some(vec![NamedPoint::decode(&task.space, &task.start()?)]);
    Ok(settings)
}

/// What the journal in `folder` says, if there is one.
fn read_past(task: &Task, folder: &Path) -> Result<Past> {
    let mut past = Past::default();
    let path = folder.join(journal::FILE);
    if std::fs::metadata(&path).map_or(0, |found| found.len()) == 0 {
        return Ok(past);
    }
    let mut scores: HashMap<u64, Vec<f64>> = HashMap::new();
    let mut asked = 0;
    journal::read(&path, |_, event| {
        match event {
            Event::Ask(ask) => asked = asked.max(ask.trial + 1),
            Event::Tell(Tell { trial, values, .. }) => {
                past.first.get_or_insert(asked);
                scores.insert(trial, values);
            }
            _ => {}
        }
        Ok(())
    })?;
    Recorder::read(
        folder,
        |_| Ok(()),
        |trial| {
            past.told.push((trial.trial, trial.point.clone()));
            match scores.remove(&trial.trial) {
                _ if trial.outcome.is_failure() => past.failures += 1,
                Some(scores) if scores.len() >= task.train.len() => {
                    past.complete.push((trial.trial, trial.point, scores));
                }
                scores => {
                    past.dropped += 1;
                    if trial.trial == 0 {
                        past.dropped_start = Some((trial.point, scores.unwrap_or_default()));
                    }
                }
            }
        },
    )?;
    Ok(past)
}

fn check_manifest(task: &Task, folder: &Path) -> Result<()> {
    let path = folder.join(MANIFEST);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::system("read", &path, error)),
    };
    let wrong = |error| {
        let what = format!(
            "{}: {error}; --restart begins afresh with the answers that are there",
            path.display()
        );
        Error::new(ErrorKind::Study, what)
    };
    let then: BTreeMap<String, String> = serde_json::from_str(&text).map_err(wrong)?;
    let now = task.fingerprints();
    let changed: Vec<&str> = (now.iter())
        .filter(|(part, hash)| then.get(**part).is_some_and(|then| then != *hash))
        .map(|(part, _)| *part)
        .collect();
    if changed.is_empty() {
        return Ok(());
    }
    let (changed, folder) = (changed.join(", "), folder.display());
    Err(Error::setting(format!(
        "the study in {folder} was begun with another file: what has changed is {changed}. Choose another folder \
         with --study, or --restart to search afresh with the answers that are there"
    )))
}

fn write_manifest(task: &Task, folder: &Path) -> Result<()> {
    let text = serde_json::to_string_pretty(&task.fingerprints()).map_err(Error::setting)?;
    Ok(files::write(&folder.join(MANIFEST), &text)?)
}

impl Search<'_> {
    /// Takes over the prompts of earlier runs.
    fn restore(&mut self, past: Past) -> Result<()> {
        for (trial, point, values) in past.complete {
            let standing = self.restored(trial, &point, values)?;
            self.standings.push(standing);
        }
        if let Some((point, values)) = past.dropped_start {
            self.first = Some(self.restored(0, &point, values)?);
        }
        Ok(())
    }

    fn restored(&self, trial: u64, point: &[f64], values: Vec<f64>) -> Result<Standing> {
        let mut candidate = self.task.candidate(point)?;
        self.proposals.fill_known(&mut candidate);
        let point = NamedPoint::decode(&self.task.space, point);
        // The race needs the values only; what is reported is scored again.
        let scores = values.into_iter().map(|value| Score { value, accuracy: value }).collect();
        Ok(Standing { trial, candidate, point, scores })
    }

    /// The best prompt so far: of equals the earliest.
    fn best(&self) -> Option<&Standing> {
        self.ranked().first().copied()
    }

    fn ranked(&self) -> Vec<&Standing> {
        let mut ranked: Vec<&Standing> = self.standings.iter().collect();
        ranked.sort_by(|a, b| {
            mean(&b.scores).total_cmp(&mean(&a.scores)).then(a.trial.cmp(&b.trial))
        });
        ranked
    }

    fn tried(&self) -> u64 {
        self.standings.len() as u64 + self.racing + self.dropped + self.failures
    }

    /// An earlier run may have tried more than are planned now, with more calls.
    fn planned_or_tried(&self) -> u64 {
        self.planned.max(self.tried())
    }

    fn show(&mut self, stage: &'static str) {
        let spent = self.caller.spent();
        let progress = Progress {
            candidates: self.tried(),
            planned: self.planned_or_tried(),
            best: self.best().map(|best| mean(&best.scores)),
            spent,
            calls: self.task.settings.limits.calls,
            money: self.caller.money(spent),
            stage,
        };
        (self.progress)(&progress);
    }

    /// Races a candidate; what the journal is told of it.
    fn evaluate(&mut self, trial: &Trial) -> Result<Tell, NoAnswer> {
        let started = Instant::now();
        let raced = self.race(trial);
        let (outcome, scores) = match raced {
            Ok(raced) => raced,
            Err(NoAnswer::Refused(why)) => {
                self.refused(&why, !self.standings.is_empty())?;
                (Outcome::failure(FailureKind::Error, why), Vec::new())
            }
            Err(other) => return Err(other),
        };
        Ok(Tell {
            trial: trial.number(),
            outcome,
            attempts: 1,
            seconds: started.elapsed().as_secs_f64(),
            worker: 0,
            values: scores.iter().map(|score| score.value).collect(),
            at: Recorder::now(),
            stderr: None,
        })
    }

    /// Counts a prompt that the endpoint refused; the run ends if too many were and none ever worked.
    fn refused(&mut self, why: &str, has_worked: bool) -> Result<(), NoAnswer> {
        self.failures += 1;
        let first = self.first_failure.get_or_insert_with(|| why.to_string());
        if self.failures >= FIRST_FAILURES && !has_worked {
            return Err(NoAnswer::Fatal(Error::endpoint(format!(
                "the first {FIRST_FAILURES} prompts were all refused, and none ever worked. The first: {first}"
            ))));
        }
        Ok(())
    }

    fn race(&mut self, trial: &Trial) -> Result<(Outcome, Vec<Score>), NoAnswer> {
        let mut candidate = self.task.candidate(trial.point())?;
        let ranked: Vec<Standing> = self.ranked().into_iter().cloned().collect();
        self.proposals.fill(&mut candidate, self.task, &self.caller, &ranked)?;
        let best: Option<&[Score]> = ranked.first().map(|best| &best.scores[..]);
        let mut scores = Vec::new();
        loop {
            let batch =
                self.task.train[scores.len()..].iter().take(self.task.settings.search.batch);
            let batch: Vec<&Row> = batch.collect();
            scores.extend(self.scores(&candidate, &batch)?);
            match self.rule.judge(trial.number(), &scores, best) {
                Verdict::Undecided => {}
                Verdict::Dropped(estimate) => {
                    self.dropped += 1;
                    return Ok((Outcome::Value(estimate), scores));
                }
                Verdict::Finished(mean) => {
                    let point = NamedPoint::decode(&self.task.space, trial.point());
                    let (trial, scores) = (trial.number(), scores);
                    self.standings.push(Standing {
                        trial,
                        candidate,
                        point,
                        scores: scores.clone(),
                    });
                    return Ok((Outcome::Value(mean), scores));
                }
            }
        }
    }

    /// The scores of a prompt on some texts.
    fn scores(&self, candidate: &Candidate, rows: &[&Row]) -> Result<Vec<Score>, NoAnswer> {
        let task = self.task;
        let requests: Vec<Request> = rows
            .iter()
            .map(|row| Request {
                body: task.body(candidate, row),
                answer_tokens: task.answer_tokens(candidate),
                with_tokens: task.metric.top_tokens().is_some(),
            })
            .collect();
        let answers = self.caller.answers(&requests)?;
        let scored = rows.iter().zip(&answers);
        let scored =
            scored.map(|(row, answer)| task.metric.score(task.question(candidate, row), answer));
        Ok(scored.collect::<Result<_>>()?)
    }

    /// The scores on a whole table, with progress; fewer where a limit or an interrupt ends it.
    fn score_all(
        &mut self,
        candidate: &Candidate,
        rows: &[Row],
        stage: &'static str,
    ) -> Result<(Vec<Score>, Option<Stop>)> {
        let mut scores = Vec::new();
        let batch = self.task.settings.search.batch.max(8);
        for rows in rows.chunks(batch) {
            match self.scores(candidate, &rows.iter().collect::<Vec<_>>()) {
                Ok(more) => scores.extend(more),
                Err(NoAnswer::Limit(limit)) => return Ok((scores, Some(Stop::Limit(limit)))),
                Err(NoAnswer::Interrupted) => return Ok((scores, Some(Stop::Interrupted))),
                Err(NoAnswer::Fatal(error)) => return Err(error),
                // A text that is too long for the prompt is answered wrongly.
                Err(NoAnswer::Refused(_)) => {
                    for row in rows {
                        match self.scores(candidate, &[row]) {
                            Ok(more) => scores.extend(more),
                            Err(NoAnswer::Refused(_)) if self.task.metric.is_accuracy() => {
                                scores.push(Score { value: 0.0, accuracy: 0.0 });
                            }
                            Err(NoAnswer::Refused(why)) => return Err(Error::endpoint(why)),
                            Err(NoAnswer::Limit(limit)) => {
                                return Ok((scores, Some(Stop::Limit(limit))));
                            }
                            Err(NoAnswer::Interrupted) => {
                                return Ok((scores, Some(Stop::Interrupted)));
                            }
                            Err(NoAnswer::Fatal(error)) => return Err(error),
                        }
                    }
                }
            }
            self.show(stage);
        }
        Ok((scores, None))
    }

    /// Chooses among the best by the development texts, and reports on the test texts.
    fn finish(mut self, mut stop: Stop, folder: &Path) -> Result<Report> {
        self.caller.keep_for_later(0);
        let task = self.task;
        let finalists: Vec<Standing> =
            self.ranked().into_iter().take(task.settings.search.finalists).cloned().collect();
        let mut chosen: Option<(Standing, Vec<Score>)> = None;
        let mut is_complete = true;
        if !matches!(stop, Stop::Interrupted) {
            for standing in &finalists {
                let (dev, ended) = self.score_all(&standing.candidate, &task.dev, "choosing")?;
                if let Some(ended) = ended {
                    (stop, is_complete) = (ended, false);
                    break;
                }
                // Both tables count, text by text.
                let pooled = |standing: &Standing, dev: &[Score]| {
                    let all = standing.scores.iter().chain(dev).map(|score| score.value);
                    all.sum::<f64>() / (standing.scores.len() + dev.len()) as f64
                };
                let is_better = chosen
                    .as_ref()
                    .is_none_or(|(best, best_dev)| pooled(standing, &dev) > pooled(best, best_dev));
                if is_better {
                    chosen = Some((standing.clone(), dev));
                }
            }
        }
        // While nothing could be chosen, the best by training texts.
        if !is_complete || chosen.is_none() {
            chosen = finalists.first().map(|best| (best.clone(), Vec::new()));
        }
        let complete = self.standings.iter().find(|standing| standing.trial == 0);
        let start = complete.or(self.first.as_ref()).filter(|first| !first.scores.is_empty());
        // Before one can be chosen, there is nothing to compare it with.
        let start = start.filter(|_| chosen.is_some()).cloned();
        let mut prompts = Vec::new();
        for standing in chosen.iter().map(|(best, _)| best).chain(&start) {
            // From the store: nothing is sent.
            let train: Vec<&Row> = task.train[..standing.scores.len()].iter().collect();
            let train = self.scores(&standing.candidate, &train).map_err(unexpected)?;
            let test = match stop {
                Stop::Interrupted => Vec::new(),
                _ => {
                    let (test, ended) =
                        self.score_all(&standing.candidate, &task.test, "testing")?;
                    if let Some(ended) = ended {
                        stop = ended;
                    }
                    test
                }
            };
            prompts.push((standing.clone(), train, test));
        }
        let dev = chosen.map(|(_, dev)| dev).unwrap_or_default();
        let report = Report::new(self.task, stop, prompts, dev, self.counts());
        if let Some(best) = report.best_candidate() {
            let text = report.prompt_file(self.task, best)?;
            files::write(&folder.join(crate::report::PROMPT), &text)?;
        }
        Ok(report)
    }

    fn counts(&self) -> crate::report::Counts {
        let spent = self.caller.spent();
        crate::report::Counts {
            candidates: self.tried(),
            dropped: self.dropped,
            refused: self.failures,
            planned: self.planned_or_tried(),
            spent,
            money: self.caller.money(spent),
            retries: self.caller.retries(),
            written: self.proposals.len(),
        }
    }
}

/// What the store has needs no call.
fn unexpected(reason: NoAnswer) -> Error {
    match reason {
        NoAnswer::Fatal(error) => error,
        NoAnswer::Refused(why) => Error::endpoint(why),
        NoAnswer::Limit(Limit::Calls | Limit::Tokens | Limit::Money) | NoAnswer::Interrupted => {
            Error::new(
                ErrorKind::Study,
                "an answer is missing from the study's answers: a line of it is damaged",
            )
        }
    }
}
