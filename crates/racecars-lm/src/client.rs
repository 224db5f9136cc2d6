//! The client of a service in another process.

use crate::error::{Error, ErrorKind, Result};
use crate::service::BlackBox;
use crate::wire::{
    Answer, Description, EvaluateOptions, EvaluateResponse, Refusal, Upload, Uploaded,
};
use racecars_io::http::{Patience, bearer, client, is_untrusted};
use serde::de::DeserializeOwned;
use std::time::Duration;
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body, RequestBuilder};

/// A client of a service.
#[derive(Debug)]
pub struct Client {
    http: Http,
}

/// Requests with retries, over HTTP or HTTPS.
pub(crate) struct Http {
    agent: Agent,
    url: String,
    key: Option<String>,
    /// Told of each failed attempt that is followed by another.
    on_retry: Option<OnRetry>,
}

/// What is told of a failed attempt: why it failed, and the pause before the next.
pub type OnRetry = fn(&Error, Duration);

/// Without the key.
impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").field("url", &self.url).finish_non_exhaustive()
    }
}

/// What an answer that is not a success means: the address, the status and the body.
type Judge = fn(&str, StatusCode, &[u8]) -> Error;

/// The maximum number of attempts if the service is busy or not reached.
const MAX_ATTEMPTS: u32 = 6;
/// The maximum size of an answer in bytes.
const MAX_ANSWER_BYTES: u64 = 256 << 20;

impl Client {
    /// A client of the service at `url`, such as `http://127.0.0.1:8123`.
    pub fn new(url: &str, key: Option<String>) -> Result<Self> {
        Ok(Client { http: Http::new(url, key)? })
    }

    /// Tells `on_retry` of each failed attempt that is followed by another, since these can take a minute.
    pub fn on_retry(mut self, on_retry: OnRetry) -> Self {
        self.http.on_retry(on_retry);
        self
    }
}

impl Http {
    /// Requests to `url`.
    pub(crate) fn new(url: &str, key: Option<String>) -> Result<Self> {
        let url = url.trim_end_matches('/').to_string();
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(Error::input(format!("{url} begins with neither http:// nor https://")));
        }
        let agent = client(Duration::from_secs(10), Patience::Request(Duration::from_secs(900)));
        Ok(Http { agent, url, key, on_retry: None })
    }

    pub(crate) fn on_retry(&mut self, on_retry: OnRetry) {
        self.on_retry = Some(on_retry);
    }

    /// The address.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    fn with_key<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.key {
            Some(key) => request.header("Authorization", bearer(key)),
            None => request,
        }
    }

    /// Sends a request, and repeats it if it was not delivered or the service was busy. All requests may be
    /// repeated: in the worst case the service holds an unused batch.
    fn send(
        &self,
        path: &str,
        judge: Judge,
        request: impl Fn(&str) -> Result<Response<Body>, ureq::Error>,
    ) -> Result<Vec<u8>> {
        self.send_up_to(MAX_ATTEMPTS, path, judge, request)
    }

    fn send_up_to(
        &self,
        attempts: u32,
        path: &str,
        judge: Judge,
        request: impl Fn(&str) -> Result<Response<Body>, ureq::Error>,
    ) -> Result<Vec<u8>> {
        let url = format!("{}{path}", self.url);
        let mut pause = Duration::from_millis(200);
        for attempt in 1.. {
            let failure = match request(&url) {
                Ok(mut response) if response.status().is_success() => {
                    let body = response.body_mut().with_config().limit(MAX_ANSWER_BYTES);
                    match body.read_to_vec() {
                        Ok(body) => return Ok(body),
                        Err(error) => Error::network(format!("{url}: {error}")),
                    }
                }
                Ok(mut response) => {
                    let body = response.body_mut().with_config().limit(1 << 16).read_to_vec();
                    judge(&url, response.status(), &body.unwrap_or_default())
                }
                Err(error) if is_untrusted(&error) => {
                    return Err(Error::input(format!(
                        "the certificate of {url} is not trusted: {error}"
                    )));
                }
                Err(error) => Error::network(format!("{url}: {error}")),
            };
            let may_pass = matches!(failure.kind(), ErrorKind::Busy | ErrorKind::Network);
            if !may_pass || attempt == attempts {
                return Err(failure);
            }
            if let Some(on_retry) = self.on_retry {
                on_retry(&failure, pause);
            }
            std::thread::sleep(pause);
            pause *= 3;
        }
        Err(Error::network(format!("{url}: not reached")))
    }

    fn read<T: DeserializeOwned>(&self, path: &str, body: &[u8]) -> Result<T> {
        serde_json::from_slice(body)
            .map_err(|error| Error::network(format!("{}{path}: invalid answer: {error}", self.url)))
    }

    /// Posts a body, and reads the answer.
    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        kind: &str,
        body: &[u8],
        judge: Judge,
    ) -> Result<T> {
        let answer = self.send(path, judge, |url| {
            self.with_key(self.agent.post(url)).header("Content-Type", kind).send(body)
        })?;
        self.read(path, &answer)
    }
}

/// The error of an answer of our own service that is not a success.
fn refused(url: &str, status: StatusCode, body: &[u8]) -> Error {
    match serde_json::from_slice::<Refusal>(body) {
        Ok(Refusal { error }) => {
            Error::new(error.error_kind(), format!("the service at {url}: {}", error.message))
        }
        Err(_) => busy_or_input(url, status, b""),
    }
}

/// The error of an answer that is not a success, by its status.
pub(crate) fn busy_or_input(url: &str, status: StatusCode, body: &[u8]) -> Error {
    let kind = match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => ErrorKind::Busy,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ErrorKind::Unauthorized,
        status if status.is_client_error() || status.is_redirection() => ErrorKind::Input,
        _ => ErrorKind::Network,
    };
    let said: String = String::from_utf8_lossy(body).trim().chars().take(300).collect();
    let colon = if said.is_empty() { "" } else { ": " };
    Error::new(kind, format!("{url} answered {status}{colon}{said}"))
}

impl BlackBox for Client {
    fn describe(&self) -> Result<Description> {
        let path = "/v1/model";
        let answer = self
            .http
            .send(path, refused, |url| self.http.with_key(self.http.agent.get(url)).call())?;
        self.http.read(path, &answer)
    }

    fn upload(&self, upload: &Upload) -> Result<Uploaded> {
        let body = serde_json::to_vec(upload).map_err(Error::input)?;
        self.http.post("/v1/batches", "application/json", &body, refused)
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
        let EvaluateResponse { results } =
            self.http.post(&path, "application/octet-stream", &body, refused)?;
        match results.len() == prompts.len() {
            true => Ok(results),
            false => Err(Error::network(format!(
                "{}{path}: {} results for {} prompts",
                self.http.url,
                results.len(),
                prompts.len()
            ))),
        }
    }

    fn remove(&self, batch: &str) -> Result<()> {
        let path = format!("/v1/batches/{batch}");
        let http = &self.http;
        // Once: a service that is not reached drops the texts by itself, and whoever ends should not wait.
        http.send_up_to(1, &path, refused, |url| http.with_key(http.agent.delete(url)).call())
            .map(|_| ())
    }
}
