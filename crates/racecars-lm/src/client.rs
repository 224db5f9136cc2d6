//! The other side of the wire: a service in another process.

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

/// How often a request is tried that the service was too busy for, or that did not reach it.
const TRIES: u32 = 6;
/// The longest answer.
const LONGEST: u64 = 256 << 20;

impl Client {
    /// A client of the service at `url`, such as `http://127.0.0.1:8123`.
    pub fn new(url: &str, key: Option<String>) -> Result<Self> {
        let url = url.trim_end_matches('/').to_string();
        if !url.starts_with("http://") {
            return Err(Error::input(format!(
                "{url} does not begin with http://; for TLS put a proxy between"
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

    /// Sends a request, again if it did not arrive or came at a bad time. All requests may be sent
    /// twice: at worst a batch is held that nobody uses.
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
            if !may_pass || attempt == TRIES {
                return Err(failure);
            }
            std::thread::sleep(pause);
            pause *= 3;
        }
        Err(Error::network(format!("{url}: not reached")))
    }

    fn read<T: DeserializeOwned>(&self, path: &str, mut response: Response<Body>) -> Result<T> {
        let strange = |error: String| Error::network(format!("{}{path}: {error}", self.url));
        let body = (response.body_mut().with_config().limit(LONGEST).read_to_vec())
            .map_err(|error| strange(error.to_string()))?;
        serde_json::from_slice(&body)
            .map_err(|error| strange(format!("the answer is not as it should be: {error}")))
    }

    fn post<T: DeserializeOwned>(&self, path: &str, kind: &str, body: &[u8]) -> Result<T> {
        let response = self.send(path, |url| {
            self.with_key(self.agent.post(url)).header("Content-Type", kind).send(body)
        })?;
        self.read(path, response)
    }
}

/// Why the service refused.
fn refused(url: &str, mut response: Response<Body>) -> Error {
    let status = response.status();
    let body = response.body_mut().with_config().limit(1 << 16).read_to_vec().unwrap_or_default();
    match serde_json::from_slice::<Refusal>(&body) {
        Ok(Refusal { error }) => {
            Error::new(error.meant(), format!("the service at {url}: {}", error.message))
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
