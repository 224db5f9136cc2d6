//! The service over HTTP: JSON, and a binary format for prompts.
//!
//! | request | answer |
//! |---|---|
//! | `GET /health` | `{"status":"ok"}` |
//! | `GET /metrics` | counters and histograms, in Prometheus' text form |
//! | `GET /v1/model` | [`Description`](crate::wire::Description) |
//! | `POST /v1/batches` with [`Upload`] | [`Uploaded`](crate::wire::Uploaded) |
//! | `POST /v1/batches/{batch}/evaluate` with [`EvaluateRequest`], or binary | [`EvaluateResponse`] |
//! | `DELETE /v1/batches/{batch}` | nothing |
//!
//! An invalid request is answered with a [`Refusal`]. Requests are computed one at a time, since each uses all
//! cores. A limited number of requests waits; further ones are refused. What a client has uploaded is dropped
//! if it has gone before it got the answer, or does not use it for some time.

use crate::error::{Error, ErrorKind, Result};
use crate::metrics::{Histogram, MetricsText};
use crate::service::{BlackBox, Service};
use crate::wire::{
    BinaryQuery, EvaluateOptions, EvaluateRequest, EvaluateResponse, Reason, Refusal, Upload,
};
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// The API key; requests without it are refused.
    pub key: Option<String>,
    /// The maximum number of requests that wait or are computed.
    pub waiting: usize,
    /// The time limit of a request, from its first byte.
    pub timeout: Duration,
}

impl Default for ServerSettings {
    fn default() -> Self {
        ServerSettings { key: None, waiting: 32, timeout: Duration::from_secs(300) }
    }
}

/// The time that a stopping server waits for running requests.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// A running server. It stops when dropped.
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<std::io::Result<()>>>,
    runtime: Option<Runtime>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

struct ServerState {
    service: Arc<Service>,
    key: Option<[u8; 32]>,
    timeout: Duration,
    /// Permits to wait or be computed.
    queue: Arc<Semaphore>,
    /// The permit to be computed.
    turn: Arc<Semaphore>,
    /// The number of answers by status class: 1xx to 5xx.
    answers: [AtomicU64; 5],
    /// The time from a request's headers to its answer.
    latency: Histogram,
    /// The time that requests wait for their turn.
    queued: Histogram,
    /// The number of requests that may wait or be computed.
    places: usize,
}

/// The time between two looks for batches that are not used any more.
const SWEEP: Duration = Duration::from_secs(1);

impl Server {
    /// Serves at `address`; port 0 takes any free port.
    pub fn start(
        service: Arc<Service>,
        address: SocketAddr,
        settings: ServerSettings,
    ) -> Result<Self> {
        let refuse = |error: std::io::Error| {
            Error::new(ErrorKind::System, format!("cannot serve at {address}: {error}"))
        };
        if settings.key.as_ref().is_some_and(String::is_empty) {
            return Err(Error::input("the API key is empty"));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("lm-serve")
            .enable_all()
            .build()
            .map_err(refuse)?;
        let listener = runtime.block_on(tokio::net::TcpListener::bind(address)).map_err(refuse)?;
        let address = listener.local_addr().map_err(refuse)?;
        let shared = Arc::new(ServerState {
            service,
            key: settings.key.map(|key| digest(&key)),
            timeout: settings.timeout,
            queue: Arc::new(Semaphore::new(settings.waiting.max(1))),
            turn: Arc::new(Semaphore::new(1)),
            answers: Default::default(),
            latency: Histogram::default(),
            queued: Histogram::default(),
            places: settings.waiting.max(1),
        });
        let swept = Arc::clone(&shared.service);
        runtime.spawn(async move {
            loop {
                tokio::time::sleep(SWEEP).await;
                swept.drop_expired();
            }
        });
        let (stop, stopped) = oneshot::channel::<()>();
        let router = router(shared);
        let task = runtime.spawn(async move {
            let serve = axum::serve(listener, router).with_graceful_shutdown(async {
                let _ = stopped.await;
            });
            serve.await
        });
        Ok(Server { address, stop: Some(stop), task: Some(task), runtime: Some(runtime) })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts no more requests, waits up to ten seconds for the running ones, and returns.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let (Some(runtime), Some(task)) = (self.runtime.take(), self.task.take()) {
            let _ = runtime.block_on(async { tokio::time::timeout(SHUTDOWN_GRACE, task).await });
            runtime.shutdown_timeout(Duration::from_millis(100));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn router(shared: Arc<ServerState>) -> Router {
    let limit = DefaultBodyLimit::max(shared.service.limits().request_bytes);
    Router::new()
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .route("/v1/model", get(describe))
        .route("/v1/batches", post(upload))
        .route("/v1/batches/{batch}", delete(remove))
        .route("/v1/batches/{batch}/evaluate", post(evaluate))
        .fallback(|method: Method, request: Request| async move {
            let path: String = request.uri().path().chars().take(80).collect();
            refusal(StatusCode::NOT_FOUND, "input", format!("there is no {method} {path}"))
        })
        .method_not_allowed_fallback(|method: Method| async move {
            let message = format!("{method} is not allowed here");
            refusal(StatusCode::METHOD_NOT_ALLOWED, "input", message)
        })
        .layer(limit)
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), guard))
        .with_state(shared)
}

/// Checks the key, enforces the time limit and counts the answer, for every request.
async fn guard(State(shared): State<Arc<ServerState>>, request: Request, next: Next) -> Response {
    let is_open = matches!(request.uri().path(), "/health");
    let start = Instant::now();
    let response = if !is_open && !has_key(&shared, request.headers()) {
        let given = request.headers().contains_key(header::AUTHORIZATION);
        let what = if given { "another API key" } else { "an API key" };
        let message = format!("{what} is needed: `Authorization: Bearer KEY`");
        let challenge = [(header::WWW_AUTHENTICATE, "Bearer realm=\"racecars lm\"")];
        (challenge, refusal(StatusCode::UNAUTHORIZED, "unauthorized", message)).into_response()
    } else {
        match tokio::time::timeout(shared.timeout, next.run(request)).await {
            Ok(response) => response,
            Err(_) => {
                let message = format!("it took more than {:?}", shared.timeout);
                refusal(StatusCode::REQUEST_TIMEOUT, "busy", message)
            }
        }
    };
    let hundred = usize::from(response.status().as_u16() / 100).clamp(1, 5);
    shared.answers[hundred - 1].fetch_add(1, Ordering::Relaxed);
    shared.latency.observe(start.elapsed());
    response
}

fn digest(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

/// Compares digests, so that the time reveals nothing about the key.
fn has_key(shared: &ServerState, headers: &HeaderMap) -> bool {
    let Some(expected) = &shared.key else { return true };
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    // The name of a scheme may be written in any case (RFC 9110, 11.1).
    (given.and_then(|value| value.split_once(' ')))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .is_some_and(|(_, key)| digest(key.trim()) == *expected)
}

async fn health() -> Response {
    Json(serde_json::json!({"status": "ok"})).into_response()
}

async fn describe(State(shared): State<Arc<ServerState>>) -> Response {
    answer(shared.service.describe().map(Json))
}

async fn upload(
    State(shared): State<Arc<ServerState>>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let upload: Upload = match read_body(body).and_then(|body| parse(&body)) {
        Ok(upload) => upload,
        Err(response) => return *response,
    };
    let work = move |service: &Service| service.upload(&upload);
    compute(shared, work, |service, uploaded| {
        let _ = service.remove(&uploaded.batch);
    })
    .await
}

async fn remove(
    State(shared): State<Arc<ServerState>>,
    batch: Result<Path<String>, PathRejection>,
) -> Response {
    match batch {
        Ok(Path(batch)) => answer(shared.service.remove(&batch).map(|()| StatusCode::NO_CONTENT)),
        Err(rejection) => refusal(StatusCode::BAD_REQUEST, "input", rejection.body_text()),
    }
}

async fn evaluate(
    State(shared): State<Arc<ServerState>>,
    batch: Result<Path<String>, PathRejection>,
    query: Result<Query<BinaryQuery>, QueryRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let batch = match batch {
        Ok(Path(batch)) => batch,
        Err(rejection) => return refusal(StatusCode::BAD_REQUEST, "input", rejection.body_text()),
    };
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let request = match content_type.map(|text| text.split(';').next().unwrap_or("").trim()) {
        Some("application/json") => {
            read_body(body).and_then(|body| parse::<EvaluateRequest>(&body))
        }
        Some("application/octet-stream") => {
            read_body(body).and_then(|body| binary(query, &body, shared.service.limits().prompts))
        }
        _ => Err(Box::new(refusal(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "input",
            "Content-Type must be application/json or application/octet-stream".to_string(),
        ))),
    };
    let EvaluateRequest { prompts, loss, logits } = match request {
        Ok(request) => request,
        Err(response) => return *response,
    };
    let work = move |service: &Service| {
        let results = service.evaluate(&batch, &prompts, EvaluateOptions { loss, logits })?;
        Ok(EvaluateResponse { results })
    };
    compute(shared, work, |_, _| {}).await
}

fn read_body(body: Result<Bytes, BytesRejection>) -> Result<Bytes, Box<Response>> {
    body.map_err(|rejection| Box::new(refusal(rejection.status(), "input", rejection.body_text())))
}

fn bad(message: String) -> Box<Response> {
    Box::new(refusal(StatusCode::BAD_REQUEST, "input", message))
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Box<Response>> {
    serde_json::from_slice(body).map_err(|error| bad(format!("invalid body: {error}")))
}

/// The binary format: prompts of equal length as little-endian `f32`.
fn binary(
    query: Result<Query<BinaryQuery>, QueryRejection>,
    body: &[u8],
    most: usize,
) -> Result<EvaluateRequest, Box<Response>> {
    let Query(BinaryQuery { prompts, loss, logits }) =
        query.map_err(|rejection| bad(rejection.body_text()))?;
    if prompts == 0 || prompts > most {
        return Err(bad(format!("{prompts} prompts; between 1 and {most} are allowed")));
    }
    if !body.len().is_multiple_of(4) || !(body.len() / 4).is_multiple_of(prompts) {
        return Err(bad(format!(
            "a body of {} bytes is not {prompts} prompts of equal length, of 4 bytes a number",
            body.len()
        )));
    }
    let numbers: Vec<f32> = (body.chunks_exact(4))
        .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        .collect();
    let prompts = match numbers.len() / prompts {
        0 => vec![Vec::new(); prompts],
        length => numbers.chunks(length).map(<[f32]>::to_vec).collect(),
    };
    Ok(EvaluateRequest { prompts, loss, logits })
}

/// Computes something with the model when it is its turn. A client that is gone by then gets `undo` for its
/// result; one that goes while it waits loses its place, since axum drops this future.
async fn compute<T: Serialize + Send + 'static>(
    shared: Arc<ServerState>,
    work: impl FnOnce(&Service) -> Result<T> + Send + 'static,
    undo: impl FnOnce(&Service, T) + Send + 'static,
) -> Response {
    let Ok(place) = Arc::clone(&shared.queue).try_acquire_owned() else {
        let message = "too many waiting requests; try again later".to_string();
        return refusal(StatusCode::SERVICE_UNAVAILABLE, "busy", message);
    };
    let start = Instant::now();
    let Ok(turn) = Arc::clone(&shared.turn).acquire_owned().await else {
        let message = "the service is shutting down".to_string();
        return refusal(StatusCode::SERVICE_UNAVAILABLE, "busy", message);
    };
    shared.queued.observe(start.elapsed());
    let service = Arc::clone(&shared.service);
    let (sender, receiver) = oneshot::channel();
    tokio::task::spawn_blocking(move || {
        // Held until the work ends, even if the client has gone.
        let _both = (place, turn);
        hand_over(work(&service), sender, |unclaimed| undo(&service, unclaimed));
    });
    match receiver.await {
        Ok(result) => answer(result.map(Json)),
        Err(_) => {
            let message = "the computation failed; this is a bug in the service".to_string();
            refusal(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
        }
    }
}

/// Gives the result to the one who waits for it; if nobody does any more, undoes it.
fn hand_over<T>(result: Result<T>, to: oneshot::Sender<Result<T>>, undo: impl FnOnce(T)) {
    if let Err(Ok(unclaimed)) = to.send(result) {
        undo(unclaimed);
    }
}

fn answer<T: IntoResponse>(result: Result<T>) -> Response {
    match result {
        Ok(body) => body.into_response(),
        Err(error) => {
            let status = match error.kind() {
                ErrorKind::Input | ErrorKind::Data => StatusCode::UNPROCESSABLE_ENTITY,
                ErrorKind::Unknown => StatusCode::NOT_FOUND,
                ErrorKind::Busy => StatusCode::TOO_MANY_REQUESTS,
                ErrorKind::Unauthorized => StatusCode::UNAUTHORIZED,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            };
            refusal(status, Reason::name(error.kind()), error.to_string())
        }
    }
}

fn refusal(status: StatusCode, kind: &str, message: String) -> Response {
    let error = Reason { kind: kind.to_string(), message };
    (status, Json(Refusal { error })).into_response()
}

async fn metrics(State(shared): State<Arc<ServerState>>) -> Response {
    let counts = shared.service.counts();
    let (batches, bytes) = shared.service.held();
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let mut text = MetricsText::default();
    let answers = (1..).zip(&shared.answers);
    let answers = answers.map(|(hundred, count)| (format!("status=\"{hundred}xx\""), count));
    text.counters("answers_total", "Answers by class of status.", answers);
    text.histogram("request_seconds", "Time from request to answer.", &shared.latency);
    text.histogram("queue_seconds", "Time waited for other requests.", &shared.queued);
    let waiting = shared.places - shared.queue.available_permits().min(shared.places);
    text.value("requests", "gauge", "Requests waiting or being computed.", waiting);
    for (name, help, value) in [
        ("prompts_total", "Prompts evaluated.", load(&counts.prompts)),
        ("texts_total", "Texts that prompts were evaluated on.", load(&counts.texts)),
        ("uploads_total", "Batches uploaded.", load(&counts.uploads)),
        ("dropped_total", "Batches dropped because nobody used them.", load(&counts.dropped)),
    ] {
        text.value(name, "counter", help, value);
    }
    let busy = load(&counts.busy_micros) as f64 / 1e6;
    text.value("busy_seconds_total", "counter", "Time spent computing.", busy);
    text.value("batches_held", "gauge", "Batches held.", batches);
    text.value("bytes_held", "gauge", "Bytes of the batches held.", bytes);
    let text = text.text();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_waits_for_is_undone() {
        let mut undone = Vec::new();
        let (to, from) = oneshot::channel();
        drop(from);
        hand_over(Ok(7), to, |x| undone.push(x));
        let (to, mut from) = oneshot::channel();
        hand_over(Ok(8), to, |x| undone.push(x));
        assert_eq!(from.try_recv().unwrap().unwrap(), 8);
        let (to, from) = oneshot::channel();
        drop(from);
        hand_over(Err(Error::input("nothing was done")), to, |x| undone.push(x));
        assert_eq!(undone, [7]);
    }
}
