//! Tuning a prompt: minimize L(f(A z + p0; X), Y) over z in a cube (Sun et al. 2022).

mod journal;
mod prompt;
mod settings;

pub use prompt::{Prompt, PromptOrigin};
pub use settings::TuneSettings;

use crate::data::Split;
use crate::error::{Error, Result};
use crate::loss::Score;
use crate::projection::Projection;
use crate::service::BlackBox;
use crate::uploaded::UploadedExamples;
use crate::wire::EvaluateOptions;
use journal::{CallResult, Calls, TuneHeader, TuneJournal, TuneLine};
use racecars::{Cancel, Candidate, Optimizer, Outcome, Space};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::{Duration, Instant};

/// The scores of the best prompt on the training texts so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PromptScores {
    /// The number of calls so far.
    pub calls: u64,
    /// On the training texts.
    pub train: Score,
    /// On the development texts.
    pub dev: Score,
}

/// The progress of a tuning.
#[derive(Debug, Clone, Copy)]
pub struct TuneStatus {
    /// The number of calls so far.
    pub calls: u64,
    /// The budget.
    pub budget: u64,
    /// The calls and the time of this session.
    pub session: (u64, Duration),
    /// The best score on the training texts.
    pub best: Option<Score>,
    /// The last scores of the best prompt.
    pub look: Option<PromptScores>,
}

/// The result of a tuning.
#[derive(Debug, Clone, Serialize)]
pub struct Tuned {
    /// The model's name.
    pub model: String,
    /// The source of the split.
    pub data: String,
    /// The scores without a prompt.
    pub without: PromptScores,
    /// The scores of the untuned prompt, p0.
    pub untuned: PromptScores,
    /// The scores of the best prompt during the tuning.
    pub looks: Vec<PromptScores>,
    /// The saved prompt: of those in `looks`, the one with the lowest loss on the development texts. Since
    /// these texts have selected it, its score on them is a little better than on new ones.
    pub kept: PromptScores,
    /// Each improvement of the training loss as (call, loss).
    pub improvements: Vec<(u64, f64)>,
    /// The number of calls.
    pub calls: u64,
    /// The number of failed calls.
    pub failures: u64,
    /// The time of the calls in seconds, over all sessions.
    pub seconds: f64,
    /// Whether it was interrupted before its budget was used up.
    pub is_interrupted: bool,
}

/// The file name of the journal in a tuning's folder.
pub const JOURNAL: &str = "journal.jsonl";
/// The file name of the saved prompt.
pub const PROMPT: &str = "prompt.safetensors";

/// Tunes a prompt; resumes if `folder` has a journal of the same tuning.
pub fn tune(
    service: &dyn BlackBox,
    settings: &TuneSettings,
    split: &Split,
    folder: &Path,
    cancel: &Cancel,
    mut observe: impl FnMut(&TuneStatus),
) -> Result<Tuned> {
    settings.check()?;
    let mut run = TuneRun::open(service, settings, split, folder)?;
    // An earlier session may have ended when this was due.
    run.score_best(false)?;
    let (from, start) = (run.calls, Instant::now());
    while run.calls < settings.budget && !cancel.is_cancelled() {
        let count = (settings.budget - run.calls).min(settings.batch as u64) as usize;
        let Some(candidates) = run.ask(count) else { break };
        let results = run.evaluate(&candidates)?;
        run.journal.append(&TuneLine::Calls(results.clone()))?;
        run.tell(candidates, &results)?;
        run.score_best(false)?;
        let (best, look) = (run.best.as_ref().map(|best| best.score), run.looks.last().copied());
        let session = (run.calls - from, start.elapsed());
        observe(&TuneStatus { calls: run.calls, budget: settings.budget, session, best, look });
    }
    run.score_best(true)?;
    run.finish(cancel.is_cancelled())
}

/// A running tuning.
struct TuneRun<'a> {
    settings: &'a TuneSettings,
    header: TuneHeader,
    hidden: usize,
    projection: Projection,
    optimizer: Box<dyn Optimizer>,
    train: UploadedExamples<'a>,
    dev: UploadedExamples<'a>,
    journal: TuneJournal,
    folder: &'a Path,
    calls: u64,
    failures: u64,
    seconds: f64,
    best: Option<BestPrompt>,
    kept: Option<(BestPrompt, PromptScores)>,
    looks: Vec<PromptScores>,
    improvements: Vec<(u64, f64)>,
}

#[derive(Clone)]
struct BestPrompt {
    z: Vec<f64>,
    score: Score,
    /// The call that found it, counted from 1.
    call: u64,
}

impl<'a> TuneRun<'a> {
    fn open(
        service: &'a dyn BlackBox,
        settings: &'a TuneSettings,
        split: &Split,
        folder: &'a Path,
    ) -> Result<Self> {
        let description = service.describe()?;
        let hidden = description.info.hidden;
        if settings.prompt_tokens > description.limits.prompt_tokens {
            return Err(Error::input(format!(
                "{} tokens of prompt; the service takes at most {}",
                settings.prompt_tokens, description.limits.prompt_tokens
            )));
        }
        let panel = |examples| {
            UploadedExamples::new(
                service,
                &settings.task,
                settings.position,
                &settings.base,
                examples,
            )
        };
        let (train, dev) = (panel(&split.train)?, panel(&split.dev)?);
        let projection = Projection::new(
            &settings.projection,
            description.info.embedding,
            settings.dim,
            settings.prompt_tokens * hidden,
        )?;
        let header = TuneHeader {
            settings: settings.clone(),
            model: description.info.name.clone(),
            data: split.source.clone(),
        };
        std::fs::create_dir_all(folder).map_err(|error| Error::system("make", folder, error))?;
        let (mut journal, lines) = TuneJournal::open(&folder.join(JOURNAL))?;
        let mut lines = lines.into_iter();
        let first = match lines.next() {
            None => {
                journal.append(&TuneLine::Tune(Box::new(header.clone())))?;
                header.clone()
            }
            Some(TuneLine::Tune(first)) => *first,
            Some(_) => {
                let path = journal.path().display();
                return Err(Error::journal(format!("{path} is not the journal of a tuning")));
            }
        };
        same(&first, &header).map_err(|what| {
            let path = journal.path().display();
            Error::journal(format!("{path} belongs to another tuning: {what}; use another folder"))
        })?;
        let space = Space::cube(settings.dim, -settings.bound, settings.bound)?;
        // The algorithm keeps the first budget, since with another one the replay would be another run.
        let budget = first.settings.budget;
        let optimizer = settings.algorithm()?.optimizer(&space, Some(budget), settings.seed)?;
        let mut run = TuneRun {
            settings,
            header,
            hidden,
            projection,
            optimizer,
            train,
            dev,
            journal,
            folder,
            calls: 0,
            failures: 0,
            seconds: 0.0,
            best: None,
            kept: None,
            looks: Vec::new(),
            improvements: Vec::new(),
        };
        for line in lines {
            run.replay(line)?;
        }
        Ok(run)
    }

    /// Replays a line of the journal.
    fn replay(&mut self, line: TuneLine) -> Result<()> {
        let strange = |what: &str| Error::journal(format!("the journal does not fit: {what}"));
        match line {
            TuneLine::Tune(_) => Err(strange("it begins twice")),
            TuneLine::Look(look) => {
                self.keep(look);
                Ok(())
            }
            TuneLine::Calls(calls) => {
                let candidates = self.ask(calls.results.len());
                let candidates = candidates.ok_or_else(|| strange("there is nothing to ask"))?;
                if check(&candidates) != calls.check {
                    return Err(strange(
                        "the search proposes other points; is it another version?",
                    ));
                }
                self.tell(candidates, &calls)
            }
        }
    }

    /// The next candidates. The first is p0, z = 0, so that the result is never worse.
    fn ask(&mut self, count: usize) -> Option<Vec<Candidate>> {
        if self.calls == 0 {
            return Some(vec![Candidate::known(vec![0.0; self.settings.dim])]);
        }
        let candidates: Vec<_> = (0..count).map_while(|_| self.optimizer.ask()).collect();
        (!candidates.is_empty()).then_some(candidates)
    }

    fn wanted(&self) -> EvaluateOptions {
        EvaluateOptions { loss: self.settings.loss, logits: false }
    }

    /// Evaluates candidates in one request.
    fn evaluate(&self, candidates: &[Candidate]) -> Result<Calls> {
        let prompts: Vec<_> =
            candidates.iter().map(|candidate| self.projection.apply(candidate.point())).collect();
        let start = Instant::now();
        let scores = self.train.scores(&prompts, self.wanted())?;
        let results = (scores.into_iter())
            .map(|score| match score {
                Ok(score) => CallResult::Score(score),
                Err(error) => CallResult::Failed(error.to_string()),
            })
            .collect();
        Ok(Calls { check: check(candidates), results, seconds: start.elapsed().as_secs_f64() })
    }

    fn tell(&mut self, candidates: Vec<Candidate>, calls: &Calls) -> Result<()> {
        self.seconds += calls.seconds;
        for (candidate, told) in candidates.into_iter().zip(&calls.results) {
            self.calls += 1;
            let outcome = match told {
                CallResult::Score(score) => {
                    if self.best.as_ref().is_none_or(|best| score.loss < best.score.loss) {
                        let z = candidate.point().to_vec();
                        self.best = Some(BestPrompt { z, score: *score, call: self.calls });
                        self.improvements.push((self.calls, score.loss));
                    }
                    Outcome::from(score.loss)
                }
                CallResult::Failed(why) => {
                    self.failures += 1;
                    Outcome::failed(why)
                }
            };
            self.optimizer.tell(candidate, outcome)?;
        }
        Ok(())
    }

    /// Evaluates the best prompt on the development texts, if that is due.
    fn score_best(&mut self, is_last: bool) -> Result<()> {
        let Some(best) = &self.best else { return Ok(()) };
        let every = self.settings.look_every;
        let last = self.looks.last().map_or(0, |look| look.calls);
        let is_due = self.calls / every > last / every || is_last && self.calls > last;
        if !is_due {
            return Ok(());
        }
        let look = match self.looks.last() {
            // The best prompt is the same as last time.
            Some(last) if last.calls >= best.call => PromptScores { calls: self.calls, ..*last },
            _ => {
                let dev = self.dev.score(self.projection.apply(&best.z), self.wanted())?;
                PromptScores { calls: self.calls, train: best.score, dev }
            }
        };
        self.journal.append(&TuneLine::Look(look))?;
        match self.keep(look) {
            true => self.save(),
            false => Ok(()),
        }
    }

    /// Keeps the best prompt if its score on the development texts is the best so far. Returns whether it is.
    fn keep(&mut self, look: PromptScores) -> bool {
        self.looks.push(look);
        let is_better = self.kept.as_ref().is_none_or(|(_, kept)| look.dev.loss < kept.dev.loss);
        match &self.best {
            Some(best) if is_better => {
                self.kept = Some((best.clone(), look));
                true
            }
            _ => false,
        }
    }

    /// Saves the kept prompt.
    fn save(&self) -> Result<()> {
        let Some((kept, _)) = &self.kept else { return Ok(()) };
        let prompt = Prompt {
            numbers: self.projection.apply(&kept.z),
            z: kept.z.clone(),
            origin: PromptOrigin {
                settings: self.settings.clone(),
                model: self.header.model.clone(),
                hidden: self.hidden,
                calls: kept.call,
                train_loss: kept.score.loss,
            },
        };
        prompt.save(&self.folder.join(PROMPT))
    }

    /// The scores of a prompt that was not found by a call.
    fn scores_of(&self, numbers: Vec<f32>) -> Result<PromptScores> {
        let train = self.train.score(numbers.clone(), self.wanted())?;
        let dev = self.dev.score(numbers, self.wanted())?;
        Ok(PromptScores { calls: 0, train, dev })
    }

    fn finish(self, is_cancelled: bool) -> Result<Tuned> {
        let without = self.scores_of(Vec::new())?;
        let untuned = self.scores_of(vec![0.0; self.settings.prompt_tokens * self.hidden])?;
        // Again, in case an earlier session ended between the journal line and the file.
        self.save()?;
        Ok(Tuned {
            kept: self.kept.map_or(untuned, |(_, look)| look),
            model: self.header.model,
            data: self.header.data,
            without,
            untuned,
            looks: self.looks,
            improvements: self.improvements,
            calls: self.calls,
            failures: self.failures,
            seconds: self.seconds,
            is_interrupted: is_cancelled && self.calls < self.settings.budget,
        })
    }
}

fn same(first: &TuneHeader, now: &TuneHeader) -> Result<(), String> {
    let named = [("model", &first.model, &now.model), ("data", &first.data, &now.data)];
    for (name, then, now) in named {
        if then != now {
            return Err(format!("{name} was {then}, and is {now} now"));
        }
    }
    now.settings.difference(&first.settings).map_or(Ok(()), Err)
}

/// A hash of the points.
fn check(candidates: &[Candidate]) -> String {
    let mut hash = Sha256::new();
    for x in candidates.iter().flat_map(|candidate| candidate.point()) {
        hash.update(x.to_le_bytes());
    }
    hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
