//! The first prompts of a search, tried side by side by successive halving (see [`halving`]).

use super::{Past, Search, Standing};
use crate::caller::NoAnswer;
use crate::error::Result;
use crate::halving::{self, rungs, survivors};
use crate::metric::Score;
use crate::race::mean;
use crate::task::{Candidate, Task};
use racecars_study::journal::Tell;
use racecars_study::{FailureKind, NamedPoint, Outcome, Recorder};
use std::time::Instant;

/// At most this many.
pub(super) const FIRST_PROMPTS: usize = 12;

/// One of the first prompts.
struct Runner {
    trial: u64,
    point: NamedPoint,
    candidate: Candidate,
    scores: Vec<Score>,
    /// Why the endpoint refused it.
    refused: Option<String>,
    seconds: f64,
}

impl Runner {
    fn standing(&self) -> Standing {
        Standing {
            trial: self.trial,
            candidate: self.candidate.clone(),
            point: self.point.clone(),
            scores: self.scores.clone(),
        }
    }
}

/// Those that have been tried, by their scores so far, best first.
fn ranked(runners: &[Runner]) -> Vec<Standing> {
    let tried = runners.iter().filter(|runner| !runner.scores.is_empty());
    let mut ranked: Vec<Standing> = tried.map(Runner::standing).collect();
    ranked.sort_by(|a, b| mean(&b.scores).total_cmp(&mean(&a.scores)));
    ranked
}

/// How many prompts are tried side by side; 1 if the race is off, or if limits are too low for more.
pub(super) fn first_prompts(task: &Task, planned: u64) -> Result<usize> {
    let (search, limits) = (&task.settings.search, task.settings.limits);
    let texts = task.train.len();
    if search.drop_level == 0.0 || search.batch >= texts {
        return Ok(1);
    }
    // For tokens and money, with the most that a request can cost.
    let (tokens, money) = task.most_of_request()?;
    let by_tokens = limits.tokens.map_or(f64::INFINITY, |most| most as f64 / tokens as f64);
    let by_money = limits.money.map_or(f64::INFINITY, |most| most / money);
    let calls = (limits.calls as f64).min(by_tokens).min(by_money) as u64;
    let calls = calls.saturating_sub(task.final_calls());
    let most = FIRST_PROMPTS.min(usize::try_from(planned).unwrap_or(usize::MAX));
    Ok(halving::affordable(most, calls, search.batch, texts).max(1))
}

impl Past {
    /// Forgets the outcomes of the first prompts if some of them have none yet, and returns their points. Their race is
    /// run again, from the answers that are kept.
    pub(super) fn take_unfinished_first(&mut self) -> Vec<(u64, Vec<f64>)> {
        if self.first.is_none_or(|first| self.told.len() as u64 >= first) {
            return Vec::new();
        }
        let told = std::mem::take(&mut self.told);
        *self = Past { first: self.first, ..Past::default() };
        told
    }
}

impl Search<'_> {
    /// Races the first prompts; what the journal is told of them, in their order. If a limit or an interrupt ends it,
    /// those that have seen all texts can still be chosen, and nothing is told: the race is run again when the study is
    /// resumed.
    pub(super) fn race_first(&mut self, trials: &[(u64, Vec<f64>)]) -> Result<Vec<Tell>, NoAnswer> {
        let mut runners = Vec::new();
        for (trial, point) in trials {
            runners.push(Runner {
                trial: *trial,
                point: NamedPoint::decode(&self.task.space, point),
                candidate: self.task.candidate(point)?,
                scores: Vec::new(),
                refused: None,
                seconds: 0.0,
            });
        }
        let raced = self.run_first(&mut runners);
        let texts = self.task.train.len();
        let is_complete = |runner: &&Runner| runner.scores.len() == texts;
        self.standings.extend(runners.iter().filter(is_complete).map(Runner::standing));
        self.first = runners.first().filter(|first| first.trial == 0).map(Runner::standing);
        let is_racing = |runner: &&Runner| !runner.scores.is_empty() && !is_complete(runner);
        self.racing = runners.iter().filter(is_racing).count() as u64;
        raced?;
        self.dropped += std::mem::take(&mut self.racing);
        let best = self.best().map(|best| best.scores.clone()).unwrap_or_default();
        let told = runners.into_iter().map(|runner| {
            let outcome = match runner.refused {
                Some(why) => Outcome::failure(FailureKind::Error, why),
                None if runner.scores.len() == texts => Outcome::Value(mean(&runner.scores)),
                None => Outcome::Value(self.rule.estimate(&runner.scores, &best)),
            };
            Tell {
                trial: runner.trial,
                outcome,
                attempts: 1,
                seconds: runner.seconds,
                worker: 0,
                values: runner.scores.iter().map(|score| score.value).collect(),
                at: Recorder::now(),
                stderr: None,
            }
        });
        Ok(told.collect())
    }

    fn run_first(&mut self, runners: &mut [Runner]) -> Result<(), NoAnswer> {
        let (batch, texts) = (self.task.settings.search.batch, self.task.train.len());
        let mut alive: Vec<usize> = (0..runners.len()).collect();
        // Texts that the model is to write come last: it sees how the others fared.
        alive.sort_by_key(|i| !runners[*i].candidate.open().is_empty());
        for rung in rungs(batch, texts) {
            for &i in &alive {
                let started = Instant::now();
                let ranked = match runners[i].candidate.open() {
                    [] => Vec::new(),
                    _ => ranked(runners),
                };
                let run = self.run_to(&mut runners[i], rung, &ranked);
                runners[i].seconds += started.elapsed().as_secs_f64();
                match run {
                    Err(NoAnswer::Refused(why)) => {
                        runners[i].scores.clear();
                        runners[i].refused = Some(why.clone());
                        let has_worked = runners.iter().any(|runner| !runner.scores.is_empty());
                        self.refused(&why, has_worked)?;
                    }
                    other => other?,
                }
                let is_racing = |runner: &&Runner| !runner.scores.is_empty();
                self.racing = runners.iter().filter(is_racing).count() as u64;
                self.show("searching");
            }
            alive.retain(|i| runners[*i].refused.is_none());
            // Of equals the earliest; the best first, so that it is complete if a limit ends the race.
            let mean_of = |i: usize| mean(&runners[i].scores);
            alive.sort_by(|a, b| mean_of(*b).total_cmp(&mean_of(*a)).then(a.cmp(b)));
            if rung < texts {
                alive.truncate(survivors(alive.len()));
            }
        }
        Ok(())
    }

    /// Tries a prompt until it has seen `rung` texts.
    fn run_to(
        &mut self,
        runner: &mut Runner,
        rung: usize,
        ranked: &[Standing],
    ) -> Result<(), NoAnswer> {
        self.proposals.fill(&mut runner.candidate, self.task, &self.caller, ranked)?;
        let task = self.task;
        while runner.scores.len() < rung {
            let rows = task.train[runner.scores.len()..rung].iter();
            let rows: Vec<_> = rows.take(task.settings.search.batch).collect();
            runner.scores.extend(self.scores(&runner.candidate, &rows)?);
        }
        Ok(())
    }
}
