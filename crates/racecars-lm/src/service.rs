//! The service without HTTP: a model, its uploaded batches, and its limits. It returns logits and losses,
//! and never weights, embeddings or gradients.

use crate::error::{Error, ErrorKind, Result};
use crate::loss::score;
use crate::model::{Batch, Model};
use crate::wire::{Answer, Description, EvaluateOptions, ServiceLimits, Upload, Uploaded};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A model behind an interface: in this process ([`Service`]) or another ([`Client`](crate::Client)).
pub trait BlackBox: Send + Sync {
    /// The model and the limits of requests.
    fn describe(&self) -> Result<Description>;

    /// Uploads texts; the answer has their handle.
    fn upload(&self, upload: &Upload) -> Result<Uploaded>;

    /// Evaluates prompts on the texts of a handle.
    fn evaluate(
        &self,
        batch: &str,
        prompts: &[Vec<f32>],
        wanted: EvaluateOptions,
    ) -> Result<Vec<Answer>>;

    /// Removes the texts of a handle.
    fn remove(&self, batch: &str) -> Result<()>;
}

/// A model with its uploaded batches.
pub struct Service {
    model: Model,
    limits: ServiceLimits,
    held: Mutex<HashMap<String, Held>>,
    counts: ServiceCounts,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("model", &self.model).finish_non_exhaustive()
    }
}

/// The largest number of a prompt: the squares of a token's numbers must have a finite sum in single precision,
/// or its norm is infinite, the token counts as zero, and nobody notices.
const MAX_PROMPT_NUMBER: f32 = 1e15;

struct Held {
    batch: Arc<LabelledBatch>,
    used: Instant,
}

struct LabelledBatch {
    batch: Batch,
    labels: Vec<usize>,
}

/// Counters of the work done so far.
#[derive(Debug, Default)]
pub struct ServiceCounts {
    /// Prompts evaluated.
    pub prompts: AtomicU64,
    /// Texts that prompts were evaluated on.
    pub texts: AtomicU64,
    /// Batches uploaded.
    pub uploads: AtomicU64,
    /// Batches dropped because nobody used them.
    pub dropped: AtomicU64,
    /// Microseconds spent computing.
    pub busy_micros: AtomicU64,
}

impl Service {
    /// A service of `model`.
    pub fn new(model: Model, limits: ServiceLimits) -> Self {
        Service { model, limits, held: Mutex::default(), counts: ServiceCounts::default() }
    }

    /// The counters.
    pub fn counts(&self) -> &ServiceCounts {
        &self.counts
    }

    /// The number of held batches, and their size in bytes.
    pub fn held(&self) -> (usize, usize) {
        let held = self.lock();
        (held.len(), held.values().map(|held| held.batch.batch.bytes()).sum())
    }

    /// The handles of the held batches.
    pub fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    pub(crate) fn limits(&self) -> &ServiceLimits {
        &self.limits
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        // A panic elsewhere leaves the map intact.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_upload(&self, upload: &Upload) -> Result<()> {
        let Upload { texts, words, labels, .. } = upload;
        at_most("texts", texts.len(), self.limits.texts)?;
        at_most("label words", words.len(), self.limits.words)?;
        if !labels.is_empty() && labels.len() != texts.len() {
            return Err(Error::input(format!(
                "{} labels for {} texts; there must be as many, or none",
                labels.len(),
                texts.len()
            )));
        }
        if let Some((i, label)) =
            labels.iter().enumerate().find(|(_, label)| **label >= words.len())
        {
            return Err(Error::input(format!(
                "label {label} of text {i} is beyond the {} label words",
                words.len()
            )));
        }
        // No token has more than a few hundred characters, so this avoids tokenizing texts that the limit
        // on tokens would refuse anyway.
        let bytes: usize =
            texts.iter().map(|text| text.before.len() + text.after.len() + text.tail.len()).sum();
        at_most("bytes of text", bytes, self.limits.tokens.saturating_mul(64))
    }

    /// Drops the batches that nobody has used for `keep_seconds`: those of clients that are gone.
    pub(crate) fn drop_expired(&self) {
        let keep = Duration::from_secs(self.limits.keep_seconds);
        let mut held = self.lock();
        let before = held.len();
        held.retain(|_, held| held.used.elapsed() <= keep);
        self.counts.dropped.fetch_add((before - held.len()) as u64, Ordering::Relaxed);
    }

    /// An error if there is no room for another batch.
    fn check_room(&self, held: &HashMap<String, Held>, bytes: usize) -> Result<()> {
        let total: usize = held.values().map(|held| held.batch.batch.bytes()).sum();
        if held.len() < self.limits.batches && total + bytes <= self.limits.held_bytes {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Busy,
            format!(
                "{} batches of {total} bytes are held, and this one takes {bytes}; at most {} batches and {} \
                 bytes are: delete one",
                held.len(),
                self.limits.batches,
                self.limits.held_bytes
            ),
        ))
    }

    fn find(&self, name: &str) -> Result<Arc<LabelledBatch>> {
        match self.lock().get_mut(name) {
            Some(held) => {
                held.used = Instant::now();
                Ok(Arc::clone(&held.batch))
            }
            None => Err(unknown(name)),
        }
    }

    fn at_work<T>(&self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        let micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.counts.busy_micros.fetch_add(micros, Ordering::Relaxed);
        result
    }
}

impl BlackBox for Service {
    fn describe(&self) -> Result<Description> {
        Ok(Description { info: self.model.info().clone(), limits: self.limits.clone() })
    }

    fn upload(&self, upload: &Upload) -> Result<Uploaded> {
        self.check_upload(upload)?;
        let batch = self.at_work(|| {
            self.model.prepare(&upload.texts, &upload.words, &upload.base, self.limits.tokens)
        })?;
        let answer = |batch: &Batch, name: String| Uploaded {
            batch: name,
            texts: batch.len(),
            tokens: batch.tokens(),
        };
        self.drop_expired();
        let mut held = self.lock();
        self.check_room(&held, batch.bytes())?;
        let name = fresh_name(&held);
        let answer = answer(&batch, name.clone());
        let batch = Arc::new(LabelledBatch { batch, labels: upload.labels.clone() });
        held.insert(name, Held { batch, used: Instant::now() });
        self.counts.uploads.fetch_add(1, Ordering::Relaxed);
        Ok(answer)
    }

    fn evaluate(
        &self,
        batch: &str,
        prompts: &[Vec<f32>],
        wanted: EvaluateOptions,
    ) -> Result<Vec<Answer>> {
        let held = self.find(batch)?;
        let LabelledBatch { batch, labels } = &*held;
        if prompts.is_empty() {
            return Err(Error::input("there are no prompts"));
        }
        at_most("prompts", prompts.len(), self.limits.prompts)?;
        let longest = prompts.iter().map(Vec::len).max().unwrap_or(0);
        let hidden = self.model.info().hidden;
        at_most("tokens of a prompt", longest.div_ceil(hidden), self.limits.prompt_tokens)?;
        for (i, prompt) in prompts.iter().enumerate() {
            if let Some(place) = prompt.iter().position(|x| x.abs() > MAX_PROMPT_NUMBER) {
                return Err(Error::input(format!(
                    "number {place} of prompt {i} is {:e}; at most ±{MAX_PROMPT_NUMBER:e} are allowed",
                    prompt[place]
                )));
            }
        }
        let logits = self.at_work(|| self.model.logits(batch, prompts))?;
        self.counts.prompts.fetch_add(prompts.len() as u64, Ordering::Relaxed);
        self.counts.texts.fetch_add((prompts.len() * batch.len()) as u64, Ordering::Relaxed);
        Ok(logits.iter().map(|logits| answer(logits, batch.words(), labels, wanted)).collect())
    }

    fn remove(&self, batch: &str) -> Result<()> {
        self.lock().remove(batch).map(|_| ()).ok_or_else(|| unknown(batch))
    }
}

pub(crate) fn answer(
    logits: &[f32],
    words: usize,
    labels: &[usize],
    wanted: EvaluateOptions,
) -> Answer {
    if logits.iter().any(|x| !x.is_finite()) {
        let error = Some("the logits are not finite; the prompt is too large".to_string());
        return Answer { error, ..Answer::default() };
    }
    let score = (!labels.is_empty()).then(|| score(wanted.loss, logits, words, labels));
    let rows = || logits.chunks(words).map(<[f32]>::to_vec).collect();
    Answer {
        loss: score.map(|score| score.loss),
        accuracy: score.map(|score| score.accuracy),
        logits: (wanted.logits || labels.is_empty()).then(rows),
        error: None,
    }
}

fn at_most(what: &str, count: usize, most: usize) -> Result<()> {
    match count <= most {
        true => Ok(()),
        false => Err(Error::input(format!("{count} {what}; at most {most} are allowed"))),
    }
}

fn unknown(name: &str) -> Error {
    // A name from a request is truncated.
    let shown: String = name.chars().take(40).collect();
    Error::new(ErrorKind::Unknown, format!("there is no batch {shown:?}"))
}

/// A new name that cannot be guessed.
fn fresh_name(held: &HashMap<String, Held>) -> String {
    loop {
        let [a, b] = [0; 2]
            .map(|_: u8| std::collections::hash_map::RandomState::new().build_hasher().finish());
        let name = format!("{a:016x}{b:016x}");
        if !held.contains_key(&name) {
            return name;
        }
    }
}
