//! Tuning a prompt: minimize L(f(A z + p0; X), Y) over z in a cube (Sun et al. 2022).

mod journal;
mod prompt;
mod settings;

pub use prompt::{Prompt, PromptOrigin};
pub use settings::TuneSettings;

use crate::calibration;
use crate::data::Split;
use crate::error::{Error, Result};
use crate::loss::{Score, score};
use crate::projection::Projection;
use crate::service::BlackBox;
use crate::uploaded::UploadedExamples;
use crate::wire::EvaluateOptions;
use journal::{CallResult, Calls, Look, TuneHeader, TuneJournal, TuneLine};
use racecars::{Cancel, Candidate, Optimizer, Outcome};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::Instant;

/// The scores of the best prompt on the training texts so far, or of the mean of the best.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PromptScores {
    /// The number of calls so far.
    pub calls: u64,
    /// On the training texts.
    pub train: Score,
    /// On the development texts.
    pub dev: Score,
}

/// The scores without tuning.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Baselines {
    /// Without a prompt.
    pub without: PromptScores,
    /// Of the untuned prompt, p0.
    pub untuned: PromptScores,
    /// Of the untuned prompt, with label shifts fitted on the training texts.
    pub calibrated: PromptScores,
}

/// The prompts that the baselines evaluate, each on training and development texts.
const BASELINE_EVALUATIONS: u64 = 4;

/// The progress of a tuning.
#[derive(Debug, Clone, Copy)]
pub struct TuneStatus {
    /// The number of calls so far.
    pub calls: u64,
    /// The budget.
    pub budget: u64,
    /// The number of calls of this session.
    pub session: u64,
    /// Calls per second since the first request of this session, which also uploads the texts.
    pub rate: Option<f64>,
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
    /// The scores without tuning.
    pub baselines: Baselines,
    /// The scores of the best prompt during the tuning.
    pub looks: Vec<PromptScores>,
    /// The saved prompt: of the untuned one and those in `looks`, the one with the lowest loss on the development
    /// texts. Since these texts have selected it, its score on them is a little better than on new ones.
    pub kept: PromptScores,
    /// Each improvement of the training loss as (call, loss).
    pub improvements: Vec<(u64, f64)>,
    /// The number of calls.
    pub calls: u64,
    /// The number of failed calls.
    pub failures: u64,
    /// The number of evaluations that are not calls: of the baselines, and on the development texts.
    pub other_evaluations: u64,
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
    let baselines = run.baselines()?;
    // An earlier session may have ended when this was due.
    run.score_best(false)?;
    let (from, mut first) = (run.calls, None);
    while run.calls < settings.budget && !cancel.is_cancelled() {
        let count = (settings.budget - run.calls).min(settings.batch as u64) as usize;
        let Some(candidates) = run.ask(count) else { break };
        let results = run.evaluate(&candidates)?;
        run.journal.append(&TuneLine::Calls(results.clone()))?;
        run.tell(candidates, &results)?;
        run.score_best(false)?;
        let (best, look) = (run.top.first().map(|best| best.score), run.looks.last().copied());
        let (calls, session) = (run.calls, run.calls - from);
        let (before, start) = *first.get_or_insert_with(|| (calls, Instant::now()));
        let rate =
            (calls > before).then(|| (calls - before) as f64 / start.elapsed().as_secs_f64());
        observe(&TuneStatus { calls, budget: settings.budget, session, rate, best, look });
    }
    run.score_best(true)?;
    run.finish(baselines, cancel.is_cancelled())
}

/// The score of a prompt, and its label shifts; empty without calibration.
type ScoreWithShifts = (Score, Vec<f64>);

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
    other_evaluations: u64,
    seconds: f64,
    baselines: Option<Baselines>,
    /// The best prompts on the training texts, at most `settings.average`, the best first.
    top: Vec<BestPrompt>,
    kept: Option<(BestPrompt, PromptScores)>,
    looks: Vec<PromptScores>,
    /// The label shifts of the last look.
    looked_shifts: Vec<f64>,
    improvements: Vec<(u64, f64)>,
}

#[derive(Clone)]
struct BestPrompt {
    z: Vec<f64>,
    score: Score,
    /// Its label shifts; empty without calibration.
    shifts: Vec<f64>,
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
            texts: Some(split.fingerprint()),
        };
        std::fs::create_dir_all(folder).map_err(|error| Error::system("make", folder, error))?;
        let (mut journal, mut lines) = TuneJournal::open(&folder.join(JOURNAL))?;
        let is_other = |line: &TuneLine| matches!(line, TuneLine::Tune(first) if same(first, &header).is_err());
        // Of a tuning that ended before its first call, say by a wrong setting, there is nothing to keep.
        if lines.first().is_some_and(is_other)
            && !lines.iter().any(|line| matches!(line, TuneLine::Calls(_)))
        {
            journal.clear()?;
            lines.clear();
        }
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
        // The algorithm keeps the first budget, since with another one the replay would be another run.
        let optimizer = settings.optimizer(first.settings.budget)?;
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
            other_evaluations: 0,
            seconds: 0.0,
            baselines: None,
            top: Vec::new(),
            kept: None,
            looks: Vec::new(),
            looked_shifts: Vec::new(),
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
            TuneLine::Baselines(baselines) => {
                self.other_evaluations += BASELINE_EVALUATIONS;
                self.baselines = Some(baselines);
                Ok(())
            }
            TuneLine::Look(look) => {
                self.other_evaluations += if self.is_new() { self.look_evaluations() } else { 0 };
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
        let mut shifts = Vec::new();
        let results = (self.train_scores(&prompts)?.into_iter())
            .map(|scored| match scored {
                Ok((score, own)) => {
                    shifts.push(own);
                    CallResult::Score(score)
                }
                Err(error) => {
                    shifts.push(Vec::new());
                    CallResult::Failed(error.to_string())
                }
            })
            .collect();
        if !self.settings.calibrate {
            shifts.clear();
        }
        let seconds = start.elapsed().as_secs_f64();
        Ok(Calls { check: check(candidates), results, shifts, seconds })
    }

    /// The score of each prompt on the training texts, and its label shifts.
    fn train_scores(&self, prompts: &[Vec<f32>]) -> Result<Vec<Result<ScoreWithShifts>>> {
        if !self.settings.calibrate {
            let scores = self.train.scores(prompts, self.wanted())?.into_iter();
            return Ok(scores.map(|score| Ok((score?, Vec::new()))).collect());
        }
        let (words, labels) = (self.settings.task.words.len(), self.train.labels());
        let calibrate = |logits: Vec<f32>| {
            let shifts = calibration::fit(&logits, words, &labels);
            let shifted = calibration::shifted(&logits, &shifts);
            (score(self.settings.loss, &shifted, words, &labels), shifts)
        };
        Ok(self.train.logits(prompts)?.into_iter().map(|logits| Ok(calibrate(logits?))).collect())
    }

    /// The score on the development texts, with these label shifts unless they are empty.
    fn dev_score(&self, prompt: Vec<f32>, shifts: &[f64]) -> Result<Score> {
        if shifts.is_empty() {
            return self.dev.score(prompt, self.wanted());
        }
        let logits = self.dev.logits(&[prompt])?.into_iter().next();
        let logits = logits.unwrap_or_else(no_answer)?;
        let shifted = calibration::shifted(&logits, shifts);
        Ok(score(self.settings.loss, &shifted, shifts.len(), &self.dev.labels()))
    }

    fn tell(&mut self, candidates: Vec<Candidate>, calls: &Calls) -> Result<()> {
        self.seconds += calls.seconds;
        let mut shifts = calls.shifts.iter().cloned();
        for (candidate, told) in candidates.into_iter().zip(&calls.results) {
            let shifts = shifts.next().unwrap_or_default();
            self.calls += 1;
            let outcome = match told {
                CallResult::Score(score) => {
                    if let (1, Some(baselines)) = (self.calls, self.baselines) {
                        // z = 0: what is kept until a prompt is better on the development texts.
                        let start = match self.settings.calibrate {
                            true => baselines.calibrated,
                            false => baselines.untuned,
                        };
                        let (z, shifts) = (candidate.point().to_vec(), shifts.clone());
                        let first = BestPrompt { z, score: *score, shifts, call: 1 };
                        self.kept = Some((first, PromptScores { calls: 1, ..start }));
                    }
                    let place = self.top.partition_point(|other| other.score.loss <= score.loss);
                    if place == 0 {
                        self.improvements.push((self.calls, score.loss));
                    }
                    if place < self.settings.average {
                        let z = candidate.point().to_vec();
                        let found = BestPrompt { z, score: *score, shifts, call: self.calls };
                        self.top.insert(place, found);
                        self.top.truncate(self.settings.average);
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

    /// Evaluates the best prompt, or the mean of the best, on the development texts, if that is due.
    fn score_best(&mut self, is_last: bool) -> Result<()> {
        let Some(best) = self.top.first() else { return Ok(()) };
        let every = self.settings.look_every;
        let last = self.looks.last().map_or(0, |look| look.calls);
        let is_due = self.calls / every > last / every || is_last && self.calls > last;
        if !is_due {
            return Ok(());
        }
        let look = match self.looks.last() {
            Some(last) if !self.is_new() => {
                let shifts = self.looked_shifts.clone();
                Look { scores: PromptScores { calls: self.calls, ..*last }, shifts }
            }
            _ => {
                let prompt = self.projection.apply(&self.mean_of_top());
                let (train, shifts) = match self.top.len() {
                    1 => (best.score, best.shifts.clone()),
                    _ => {
                        let scored = self.train_scores(std::slice::from_ref(&prompt))?;
                        scored.into_iter().next().unwrap_or_else(no_answer)?
                    }
                };
                let dev = self.dev_score(prompt, &shifts)?;
                self.other_evaluations += self.look_evaluations();
                Look { scores: PromptScores { calls: self.calls, train, dev }, shifts }
            }
        };
        self.journal.append(&TuneLine::Look(look.clone()))?;
        match self.keep(look) {
            true => self.save(),
            false => Ok(()),
        }
    }

    /// The number of evaluations of a look at new prompts: a mean is evaluated on the training texts, too.
    fn look_evaluations(&self) -> u64 {
        if self.top.len() > 1 { 2 } else { 1 }
    }

    fn mean_of_top(&self) -> Vec<f64> {
        let count = self.top.len() as f64;
        let mean = |i: usize| self.top.iter().map(|one| one.z[i]).sum::<f64>() / count;
        (0..self.settings.dim).map(mean).collect()
    }

    /// Whether there are new prompts among the best since they were last evaluated on the development texts.
    fn is_new(&self) -> bool {
        let last = self.looks.last().map_or(0, |look| look.calls);
        self.top.iter().any(|best| best.call > last)
    }

    /// Keeps the prompt of this look if its score on the development texts is the best so far. Returns whether it
    /// is.
    fn keep(&mut self, look: Look) -> bool {
        let Look { scores, shifts } = look;
        self.looks.push(scores);
        self.looked_shifts.clone_from(&shifts);
        let is_better = self.kept.as_ref().is_none_or(|(_, kept)| scores.dev.loss < kept.dev.loss);
        let call = self.top.iter().map(|best| best.call).max();
        match call {
            Some(call) if is_better => {
                let z = self.mean_of_top();
                let kept = BestPrompt { z, score: scores.train, shifts, call };
                self.kept = Some((kept, scores));
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
                shifts: kept.shifts.clone(),
            },
        };
        prompt.save(&self.folder.join(PROMPT))
    }

    /// The scores without tuning; evaluated unless the journal has them.
    fn baselines(&mut self) -> Result<Baselines> {
        if let Some(baselines) = self.baselines {
            return Ok(baselines);
        }
        let prompts = [Vec::new(), vec![0.0; self.settings.prompt_tokens * self.hidden]];
        let (train, dev) = (self.train.logits(&prompts)?, self.dev.logits(&prompts)?);
        let logits = train.into_iter().chain(dev).collect::<Result<Vec<_>>>()?;
        let [train_without, train, dev_without, dev] = &logits[..] else {
            return Err(Error::network("the service did not answer for all prompts"));
        };
        let (words, labels) = (self.settings.task.words.len(), self.train.labels());
        let dev_labels = self.dev.labels();
        let scores = |train: &[f32], dev: &[f32]| {
            let of = |logits, labels| score(self.settings.loss, logits, words, labels);
            PromptScores { calls: 0, train: of(train, &labels), dev: of(dev, &dev_labels) }
        };
        let shifts = calibration::fit(train, words, &labels);
        let shifted = |logits| calibration::shifted(logits, &shifts);
        let baselines = Baselines {
            without: scores(train_without, dev_without),
            untuned: scores(train, dev),
            calibrated: scores(&shifted(train), &shifted(dev)),
        };
        self.other_evaluations += BASELINE_EVALUATIONS;
        self.journal.append(&TuneLine::Baselines(baselines))?;
        self.baselines = Some(baselines);
        Ok(baselines)
    }

    fn finish(self, baselines: Baselines, is_cancelled: bool) -> Result<Tuned> {
        // Again, in case an earlier session ended between the journal line and the file.
        self.save()?;
        Ok(Tuned {
            kept: self.kept.map_or(baselines.untuned, |(_, look)| look),
            model: self.header.model,
            data: self.header.data,
            baselines,
            looks: self.looks,
            improvements: self.improvements,
            calls: self.calls,
            failures: self.failures,
            other_evaluations: self.other_evaluations,
            seconds: self.seconds,
            is_interrupted: is_cancelled && self.calls < self.settings.budget,
        })
    }
}

fn no_answer<T>() -> Result<T> {
    Err(Error::network("there is no answer"))
}

fn same(first: &TuneHeader, now: &TuneHeader) -> Result<(), String> {
    let named = [("model", &first.model, &now.model), ("data", &first.data, &now.data)];
    for (name, then, now) in named {
        if then != now {
            return Err(format!("{name} was {then}, and is {now} now"));
        }
    }
    if first.texts.is_some() && first.texts != now.texts {
        return Err(format!("the texts in {} have changed since", now.data));
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
