//! Continuous prompts against vLLM: `prompt_embeds` of `POST /v1/completions` (`vllm serve --enable-prompt-embeds`).
//!
//! vLLM takes the embeddings of a whole sequence. So this client has the model's file, for its tokenizer and
//! embedding table, and vLLM runs the network. It returns the most probable tokens: a label word that is not among
//! them counts as the least probable of them.

use crate::client::{Http, OnRetry, busy_or_input};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{InputText, Model};
use crate::service::{BlackBox, answer};
use crate::tensor_file::{base64, save};
use crate::wire::{Answer, Description, EvaluateOptions, ServiceLimits, Upload, Uploaded};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The tokens that vLLM lists by default at most (`--max-logprobs`).
const TOP_TOKENS: u32 = 20;

/// A client of vLLM.
#[derive(Debug)]
pub struct VllmClient {
    http: Http,
    /// The tokenizer and the embedding table.
    model: Model,
    /// The model's name in requests.
    served: String,
    held: Mutex<HashMap<String, Arc<Held>>>,
    next: AtomicU64,
}

/// Uploaded texts, as embeddings.
#[derive(Debug)]
struct Held {
    /// Before and after the prompt.
    texts: Vec<[Vec<f32>; 2]>,
    /// The tokens of the label words.
    words: Vec<u32>,
    labels: Vec<usize>,
    /// The embedding that is added to every prompt, repeated.
    base: Vec<f32>,
}

impl VllmClient {
    /// A client of the server at `url`, such as `http://127.0.0.1:8000`, which serves `model` by the name `served`.
    pub fn new(url: &str, key: Option<String>, model: Model, served: &str) -> Result<Self> {
        Ok(VllmClient {
            http: Http::new(url, key)?,
            model,
            served: served.to_string(),
            held: Mutex::default(),
            next: AtomicU64::new(0),
        })
    }

    /// Tells `on_retry` of each failed attempt that is followed by another.
    pub fn on_retry(mut self, on_retry: OnRetry) -> Self {
        self.http.on_retry(on_retry);
        self
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Held>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, batch: &str) -> Result<Arc<Held>> {
        let unknown = || Error::new(ErrorKind::Unknown, format!("there is no batch {batch:?}"));
        self.lock().get(batch).cloned().ok_or_else(unknown)
    }

    /// The label words' log-probabilities, a row per text.
    fn logits(&self, held: &Held, prompt: &[f32]) -> Result<Vec<f32>> {
        let hidden = self.model.info().hidden;
        if !prompt.len().is_multiple_of(hidden) {
            return Err(Error::input(format!(
                "a prompt has {} numbers; it must be a multiple of {hidden}",
                prompt.len()
            )));
        }
        let prompt: Vec<f32> = match held.base.is_empty() {
            true => prompt.to_vec(),
            false => prompt.iter().zip(held.base.iter().cycle()).map(|(p, b)| p + b).collect(),
        };
        if let Some(place) = prompt.iter().position(|x| !x.is_finite()) {
            return Err(Error::input(format!("number {place} of a prompt is not finite")));
        }
        let tensors: Vec<String> = (held.texts.iter())
            .map(|[before, after]| {
                let numbers = [before, &prompt, after].map(Vec::as_slice).concat();
                base64(&save(numbers.len() / hidden, hidden, &numbers))
            })
            .collect();
        let body = json!({
            "model": self.served,
            "prompt_embeds": tensors,
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": TOP_TOKENS,
            "return_tokens_as_token_ids": true,
        });
        let found: Value = self.http.post(
            "/v1/completions",
            "application/json",
            body.to_string().as_bytes(),
            busy_or_input,
        )?;
        read_logits(&found, held.texts.len(), &held.words)
            .map_err(|what| Error::network(format!("{}: {what}", self.http.url())))
    }
}

/// The log-probabilities of `words` in the answer for each of `texts`.
fn read_logits(found: &Value, texts: usize, words: &[u32]) -> Result<Vec<f32>, String> {
    let choices = found["choices"].as_array().ok_or("invalid answer: it has no choices")?;
    if choices.len() != texts {
        return Err(format!("{} choices for {texts} texts", choices.len()));
    }
    let mut rows = vec![None; texts];
    for (i, choice) in choices.iter().enumerate() {
        let place = choice["index"].as_u64().unwrap_or(i as u64) as usize;
        let tokens = choice["logprobs"]["top_logprobs"][0]
            .as_object()
            .ok_or("invalid answer: a choice has no logprobs.top_logprobs[0]")?;
        if tokens.is_empty() {
            return Err("invalid answer: logprobs.top_logprobs[0] has no tokens".to_string());
        }
        let mut least = f64::INFINITY;
        let mut row = vec![None; words.len()];
        for (token, logprob) in tokens {
            let logprob = logprob.as_f64().filter(|x| *x <= 1e-3);
            let logprob =
                logprob.ok_or_else(|| format!("invalid answer: the log-probability of {token}"))?;
            let id = token.strip_prefix("token_id:").and_then(|id| id.parse::<u32>().ok());
            let id = id.ok_or_else(|| {
                format!("token {token:?} is not written as token_id:N (return_tokens_as_token_ids)")
            })?;
            least = least.min(logprob);
            if let Some(word) = words.iter().position(|word| *word == id) {
                row[word] = Some(logprob);
            }
        }
        let row: Vec<f32> = row.into_iter().map(|x| x.unwrap_or(least) as f32).collect();
        *rows.get_mut(place).ok_or(format!("choice {place} of {texts}"))? = Some(row);
    }
    let rows: Option<Vec<Vec<f32>>> = rows.into_iter().collect();
    rows.map(|rows| rows.concat()).ok_or("two choices have the same index".to_string())
}

impl BlackBox for VllmClient {
    fn describe(&self) -> Result<Description> {
        Ok(Description { info: self.model.info().clone(), limits: ServiceLimits::default() })
    }

    fn upload(&self, upload: &Upload) -> Result<Uploaded> {
        let Upload { texts, words, labels, base } = upload;
        if texts.is_empty() || words.len() < 2 {
            return Err(Error::input("at least one text and two label words are needed"));
        }
        let is_wrong = |label: &usize| *label >= words.len();
        if !labels.is_empty() && (labels.len() != texts.len() || labels.iter().any(is_wrong)) {
            return Err(Error::input("there must be a label for each text, among the label words"));
        }
        let embedded = (texts.iter().enumerate())
            .map(|(i, text)| {
                self.model.embedded(text).map_err(|error| error.within(format!("text {i}")))
            })
            .collect::<Result<Vec<_>>>()?;
        let base = match base.is_empty() {
            true => Vec::new(),
            // Without what begins every sequence.
            false => {
                let text = InputText { after: base.clone(), ..InputText::default() };
                let [_, base] = self.model.embedded(&text)?;
                base
            }
        };
        let words = words.iter().map(|word| self.model.word(word)).collect::<Result<_>>()?;
        let numbers: usize = embedded.iter().flatten().map(Vec::len).sum();
        let name = format!("vllm-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let (count, labels) = (texts.len(), labels.clone());
        let held = Held { texts: embedded, words, labels, base };
        self.lock().insert(name.clone(), Arc::new(held));
        Ok(Uploaded { batch: name, texts: count, tokens: numbers / self.model.info().hidden })
    }

    fn evaluate(
        &self,
        batch: &str,
        prompts: &[Vec<f32>],
        wanted: EvaluateOptions,
    ) -> Result<Vec<Answer>> {
        let held = self.find(batch)?;
        (prompts.iter())
            .map(|prompt| {
                let logits = self.logits(&held, prompt)?;
                Ok(answer(&logits, held.words.len(), &held.labels, wanted))
            })
            .collect()
    }

    fn remove(&self, batch: &str) -> Result<()> {
        self.find(batch)?;
        self.lock().remove(batch);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_by_their_tokens_and_lies_are_named() {
        let of = |tokens: Value| json!({"choices": [{"index": 0, "logprobs": {"top_logprobs": [tokens]}}]});
        let good = of(json!({"token_id:7": -0.5, "token_id:9": -3.0}));
        assert_eq!(read_logits(&good, 1, &[7, 8]).unwrap(), [-0.5, -3.0]);
        for (wrong, what) in [
            (json!({}), "no choices"),
            (json!({"choices": []}), "0 choices for 1"),
            (json!({"choices": [{}]}), "no logprobs"),
            (of(json!({})), "has no tokens"),
            (of(json!({"token_id:7": null})), "log-probability of token_id:7"),
            (of(json!({"token_id:7": 3.0})), "log-probability of token_id:7"),
            (of(json!({" great": -1.0})), "not written as token_id:N"),
        ] {
            let error = read_logits(&wrong, 1, &[7, 8]).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }
}
