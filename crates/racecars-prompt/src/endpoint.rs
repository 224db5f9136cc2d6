//! An OpenAI-compatible endpoint: requests, retries with back-off, and what each outcome means.
//!
//! A request is sent again when its failure may pass: the endpoint is busy (408, 409, 425, 429, 5xx), was not
//! reached, did not answer in time, or sent what is no answer. All others end the run, except for a request that
//! is refused for what it says (400, 413, 422): that is the prompt's failure.

use crate::answer::Answer;
use crate::error::{Error, Result};
use crate::settings::{Api, EndpointSettings};
use racecars::random::Random;
use racecars_io::http::{Patience, bearer, client, is_untrusted};
use racecars_study::{Interrupt, units};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use ureq::http::header::RETRY_AFTER;
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};

/// The longest time for a connection.
const MAX_CONNECT: Duration = Duration::from_secs(20);
/// The first pause before a request is sent again; each next one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// If an endpoint asks for a longer pause, the run ends, and can be resumed.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(600);
/// How often a pause looks whether the run is to end.
const TICK: Duration = Duration::from_millis(50);
/// The largest answer that is read.
const MAX_ANSWER_BYTES: u64 = 16 << 20;

/// An endpoint.
pub struct Endpoint {
    agent: Agent,
    url: String,
    model: String,
    api: Api,
    key: Option<String>,
    key_variable: Option<String>,
    retries: u32,
    timeout: Duration,
    /// No request is sent before this, since the endpoint asked for a pause.
    resume_at: Mutex<Instant>,
}

/// Without the key.
impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("url", &self.url).finish_non_exhaustive()
    }
}

/// What came of one attempt.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// An answer.
    Answered(Answer),
    /// It may have been paid for, but there is no answer.
    Lost(String),
    /// It was not served, which may pass.
    Busy(String, Option<Duration>),
    /// It was refused for what it says.
    Refused(String),
    /// It is no use to go on.
    Fatal(String),
}

impl Endpoint {
    /// The endpoint of a file; the key is read from the environment.
    pub fn new(settings: &EndpointSettings) -> Result<Endpoint> {
        let key = match &settings.key_variable {
            None => None,
            Some(name) => Some(read_key(name)?),
        };
        let timeout = settings.timeout.duration();
        let agent = client(timeout.min(MAX_CONNECT), Patience::Request(timeout));
        let path = match settings.api {
            Api::Chat => "chat/completions",
            Api::Completions => "completions",
        };
        Ok(Endpoint {
            agent,
            url: format!("{}/{path}", settings.url.trim_end_matches('/')),
            model: settings.model.clone(),
            api: settings.api,
            key,
            key_variable: settings.key_variable.clone(),
            retries: settings.retries,
            timeout,
            resume_at: Mutex::new(Instant::now()),
        })
    }

    /// The address that requests go to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Which requests it takes.
    pub fn api(&self) -> Api {
        self.api
    }

    /// The model's name.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// How often a request is sent again.
    pub(crate) fn retries(&self) -> u32 {
        self.retries
    }

    /// Sends a request once.
    pub(crate) fn attempt(&self, body: &str, with_tokens: bool) -> Attempt {
        let mut request = self.agent.post(&self.url).header("Content-Type", "application/json");
        if let Some(key) = &self.key {
            request = request.header("Authorization", bearer(key));
        }
        match request.send(body) {
            Ok(response) => self.judge(response, with_tokens),
            Err(error) => {
                let what = self.shown(&error.to_string());
                if is_untrusted(&error) {
                    return Attempt::Fatal(format!("its certificate is not trusted: {what}"));
                }
                match error {
                    ureq::Error::HostNotFound
                    | ureq::Error::ConnectionFailed
                    | ureq::Error::Tls(_)
                    | ureq::Error::Rustls(_)
                    | ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                        Attempt::Busy(format!("it was not reached: {what}"), None)
                    }
                    ureq::Error::Io(error)
                        if error.kind() == std::io::ErrorKind::ConnectionRefused
                            || is_failed_lookup(&error) =>
                    {
                        Attempt::Busy(format!("it was not reached: {what}"), None)
                    }
                    ureq::Error::BadUri(_) | ureq::Error::Http(_) => Attempt::Fatal(what),
                    ureq::Error::Timeout(_) => Attempt::Lost(self.late()),
                    _ => Attempt::Lost(format!("the answer did not arrive: {what}")),
                }
            }
        }
    }

    fn judge(&self, mut response: Response<Body>, with_tokens: bool) -> Attempt {
        let status = response.status();
        let pause = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let pause = pause.and_then(retry_after);
        let body = response.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_vec();
        if status.is_success() {
            let body = match body {
                Ok(body) => body,
                Err(ureq::Error::Timeout(_)) => return Attempt::Lost(self.late()),
                Err(error) => {
                    return Attempt::Lost(format!(
                        "the answer was cut off: {}",
                        self.shown(&error.to_string())
                    ));
                }
            };
            return match Answer::read(&body, with_tokens) {
                Ok(answer) => Attempt::Answered(answer),
                Err(what) => {
                    Attempt::Lost(format!("the answer cannot be used: {}", self.shown(&what)))
                }
            };
        }
        let body = body.unwrap_or_default();
        let said = message(&body);
        let what = format!("it answered {status}: {}", self.shown(&said));
        match status {
            StatusCode::REQUEST_TIMEOUT
            | StatusCode::CONFLICT
            | StatusCode::TOO_EARLY
            | StatusCode::TOO_MANY_REQUESTS => Attempt::Busy(what, pause),
            status if status.is_server_error() => Attempt::Busy(what, pause),
            StatusCode::BAD_REQUEST
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNPROCESSABLE_ENTITY => Attempt::Refused(what),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let key = match &self.key_variable {
                    Some(name) => format!("the key in the environment variable {name} was sent"),
                    None => "no key was sent; endpoint.key_variable names the variable that has it"
                        .to_string(),
                };
                Attempt::Fatal(format!("{what} ({key})"))
            }
            StatusCode::NOT_FOUND => Attempt::Fatal(format!(
                "{what} (check endpoint.url, which ends with /v1 as a rule, and endpoint.model, {})",
                self.model
            )),
            status if status.is_redirection() => Attempt::Fatal(format!(
                "{what} (redirects are not followed: endpoint.url must be the final address)"
            )),
            _ => Attempt::Fatal(what),
        }
    }

    fn late(&self) -> String {
        format!("there was no whole answer within {} (endpoint.timeout)", units::show(self.timeout))
    }

    /// Waits as long as the endpoint asked for; false if the run is to end.
    pub(crate) fn wait(&self, interrupt: &Interrupt) -> bool {
        loop {
            if interrupt.is_requested() {
                return false;
            }
            let resume_at = *self.resume_at.lock().unwrap_or_else(PoisonError::into_inner);
            let left = resume_at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(TICK));
        }
    }

    /// Pauses before the next attempt: as long as the endpoint asks, which then holds for all requests, or twice
    /// as long as before, with a random part so that requests do not come back together. `Err` if it asks for
    /// too long.
    pub(crate) fn back_off(
        &self,
        attempt: u32,
        asked: Option<Duration>,
        random: &mut Random,
        interrupt: &Interrupt,
    ) -> Result<(), String> {
        let doubled = FIRST_PAUSE.saturating_mul(1 << attempt.min(10)).min(LONGEST_PAUSE);
        let pause = asked.unwrap_or_else(|| doubled.mul_f64(random.between(0.75, 1.25)));
        if pause > MAX_RETRY_AFTER {
            return Err(format!(
                "it asks for a pause of {} s; run the same command again then",
                pause.as_secs()
            ));
        }
        let until = Instant::now() + pause;
        if asked.is_some() {
            let mut resume_at = self.resume_at.lock().unwrap_or_else(PoisonError::into_inner);
            *resume_at = (*resume_at).max(until);
        }
        while !interrupt.is_requested() && Instant::now() < until {
            std::thread::sleep(until.saturating_duration_since(Instant::now()).min(TICK));
        }
        Ok(())
    }

    /// A message of somebody else: short, and without the key.
    fn shown(&self, text: &str) -> String {
        let text = match &self.key {
            Some(key) => text.replace(key.as_str(), "***"),
            None => text.to_string(),
        };
        let mut shown: String = text.trim().chars().take(300).collect();
        if shown.len() < text.trim().len() {
            shown += " ...";
        }
        if shown.is_empty() { "no message".to_string() } else { shown }
    }
}

/// Whether a host's name was not found: nothing was sent. The standard library has no kind for it.
fn is_failed_lookup(error: &std::io::Error) -> bool {
    let of_winsock = cfg!(windows) && matches!(error.raw_os_error(), Some(11001..=11004));
    of_winsock || error.to_string().starts_with("failed to lookup address")
}

/// The key in an environment variable. It is in no message.
fn read_key(name: &str) -> Result<String> {
    let refuse = |what: &str| {
        Err(Error::setting(format!(
            "the environment variable {name} (endpoint.key_variable) {what}"
        )))
    };
    match std::env::var(name) {
        Err(std::env::VarError::NotPresent) => refuse("is not set"),
        Ok(key) if key.trim().is_empty() => refuse("is empty"),
        Ok(key) if key.trim().chars().all(|c| c.is_ascii_graphic()) => Ok(key.trim().to_string()),
        _ => refuse("has a character that no key has"),
    }
}

/// What the body of a refusal says.
fn message(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let json = serde_json::from_str::<serde_json::Value>(&text).ok();
    let said = json.as_ref().and_then(|json| {
        let error = json.get("error").unwrap_or(json);
        error.get("message").or(Some(error)).and_then(serde_json::Value::as_str)
    });
    said.map_or_else(|| text.to_string(), str::to_string)
}

/// `Retry-After`: seconds, or a date such as `Wed, 21 Oct 2026 07:28:00 GMT`.
fn retry_after(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return (seconds.is_finite() && seconds >= 0.0)
            .then(|| Duration::from_secs_f64(seconds.min(1e9)));
    }
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let [_, day, month, year, time, "GMT"] = fields[..] else { return None };
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let (day, year) = (day.parse::<i64>().ok()?, year.parse::<i64>().ok()?);
    let mut parts = time.split(':').map(|part| part.parse::<i64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    // Days since 1970 of a date of the Gregorian calendar, whose years begin in March here.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days =
        365 * y + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + (153 * m + 2) / 5 + day
            - 719_469;
    let then = 86_400 * days + 3600 * hours + 60 * minutes + seconds;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs() as i64;
    Some(Duration::from_secs(then.saturating_sub(now).max(0) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_a_number_or_a_date() {
        assert_eq!(retry_after("3"), Some(Duration::from_secs(3)));
        assert_eq!(retry_after("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        let far = retry_after("Fri, 31 Dec 2399 23:59:59 GMT").unwrap();
        assert!(far > Duration::from_secs(300 * 365 * 86_400));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        // Noon on 1 March 2040.
        let then = 2_214_216_000u64;
        assert_eq!(retry_after("Thu, 01 Mar 2040 12:00:00 GMT").unwrap().as_secs() + now, then);
        for wrong in ["soon", "-3", "NaN", "Wed, 21 Foo 2015 07:28:00 GMT", ""] {
            assert_eq!(retry_after(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn messages_of_refusals_are_found() {
        assert_eq!(message(br#"{"error":{"message":"too long"}}"#), "too long");
        assert_eq!(message(br#"{"error":"too long"}"#), "too long");
        assert_eq!(message(br#"{"message":"too long"}"#), "too long");
        assert_eq!(message(b"<html>"), "<html>");
    }
}
