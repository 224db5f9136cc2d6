//! The client of a service in another process.

use crate::error::{Error, ErrorKind, Result};
use crate::service::BlackBox;
use crate::wire::{
    Answer, Description, EvaluateOptions, EvaluateResponse, Refusal, Upload, Uploaded,
};
use serde::de::DeserializeOwned;
use std::time::Duration;
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body, RequestBuilder};

/// A client of a service.
pub struct Client {
    agent: Agent,
    url: String,
    key: Option<String>,
}

/// Without the key.
impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("url", &self.url).finish_non_exhaustive()
    }
}

/// The maximum number of attempts if the service is busy or not reached.
const MAX_ATTEMPTS: u32 = 6;
/// The maximum size of an answer in bytes.
const MAX_ANSWER_BYTES: u64 = 256 << 20;

impl Client {
    /// A client of the service at `url`, such as `http://127.0.0.1:8123`.
    pub fn new(url: &str, key: Option<String>) -> Result<Self> {
        let url = url.trim_end_matches('/').to_string();
        if !url.starts_with("http://") {
            return Err(Error::input(format!(
                "{url} does not begin with http://; use a proxy for TLS"
            )));
        }
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(900)))
            .timeout_connect(Some(Duration::from_secs(10)))
            .build()
            .new_agent();
        Ok(Client { agent, url, key })
    }

    fn with_key<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.key {
            Some(key) => request.header("Authorization", format!("Bearer {key}")),
            None => request,
        }
    }

    /// Sends a request, and repeats it if it was not delivered or the service was busy. All requests may be
    /// repeated: in the worst case the service holds an unused batch.
    fn send(
        &self,
        path: &str,
        request: impl Fn(&str) -> Result<Response<Body>, ureq::Error>,
    ) -> Result<Response<Body>> {
        let url = format!("{}{path}", self.url);
        let mut pause = Duration::from_millis(200);
        for attempt in 1.. {
            let failure = match request(&url) {
                Ok(response) if response.status().is_success() => return Ok(response),
                Ok(response) => refused(&url, response),
                Err(error) => Error::network(format!("{url}: {error}")),
            };
            let may_pass = matches!(failure.kind(), ErrorKind::Busy | ErrorKind::Network);
            if !may_pass || attempt == MAX_ATTEMPTS {
                return Err(failure);
            }
            std::thread::sleep(pause);
            pause *= 3;
        }
        Err(Error::network(format!("{url}: not reached")))
    }

    fn read<T: DeserializeOwned>(&self, path: &str, mut response: Response<Body>) -> Result<T> {
        let strange = |error: String| Error::network(format!("{}{path}: {error}", self.url));
        let body = (response.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_vec())
            .map_err(|error| strange(error.to_string()))?;
        serde_json::from_slice(&body).map_err(|error| strange(format!("invalid answer: {error}")))
    }

    fn post<T: DeserializeOwned>(&self, path: &str, kind: &str, body: &[u8]) -> Result<T> {
        let response = self.send(path, |url| {
            self.with_key(self.agent.post(url)).header("Content-Type", kind).send(body)
        })?;
        self.read(path, response)
    }
}

/// The error of an answer that is not a success.
fn refused(url: &str, mut response: Response<Body>) -> Error {
    let status = response.status();
    let body = response.body_mut().with_config().limit(1 << 16).read_to_vec().unwrap_or_default();
    match serde_json::from_slice::<Refusal>(&body) {
        Ok(Refusal { error }) => {
            Error::new(error.error_kind(), format!("the service at {url}: {}", error.message))
        }
        Err(_) => {
            let kind = match status {
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => ErrorKind::Busy,
                status if status.is_client_error() => ErrorKind::Input,
                _ => ErrorKind::Network,
            };
            Error::new(kind, format!("{url} answered {status}"))
        }
    }
}

impl BlackBox for Client {
    fn describe(&self) -> Result<Description> {
        let path = "/v1/model";
        let response = self.send(path, |url| self.with_key(self.agent.get(url)).call())?;
        self.read(path, response)
    }

    fn upload(&self, upload: &Upload) -> Result<Uploaded> {
        let body = serde_json::to_vec(upload).map_err(Error::input)?;
        self.post("/v1/batches", "application/json", &body)
    }

    fn evaluate(
        &self,
        batch: &str,
        prompts: &[Vec<f32>],
        wanted: EvaluateOptions,
    ) -> Result<Vec<Answer>> {
        let body: Vec<u8> = prompts.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
        let path = format!(
            "/v1/batches/{batch}/evaluate?prompts={}&loss={}&logits={}",
            prompts.len(),
            wanted.loss.name(),
            wanted.logits
        );
        let EvaluateResponse { results } = self.post(&path, "application/octet-stream", &body)?;
        match results.len() == prompts.len() {
            true => Ok(results),
            false => Err(Error::network(format!(
                "{}{path}: {} results for {} prompts",
                self.url,
                results.len(),
                prompts.len()
            ))),
        }
    }

    fn remove(&self, batch: &str) -> Result<()> {
        let path = format!("/v1/batches/{batch}");
        self.send(&path, |url| self.with_key(self.agent.delete(url)).call()).map(|_| ())
    }
}
