//! Calls within the limits: requests are answered from the store, or sent, several at a time.
//!
//! Before a request is sent, the most that it can cost is set aside. A prompt has at most as many tokens as its
//! request has bytes, and an answer at most `max_tokens`; so no limit is exceeded, whatever is under way.

use crate::answer::Answer;
use crate::endpoint::{Attempt, Endpoint};
use crate::error::{Error, Result};
use crate::settings::{EndpointSettings, LimitSettings};
use crate::store::{Lost, Spent, Store, request_key};
use racecars::random::Random;
use racecars_study::Interrupt;
use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Sends requests.
#[derive(Debug)]
pub(crate) struct Caller {
    endpoint: Endpoint,
    limits: LimitSettings,
    /// The prices of a token of a prompt and of an answer.
    prices: (f64, f64),
    jobs: usize,
    interrupt: Interrupt,
    state: Mutex<State>,
    /// Calls that are kept for later, while prompts are searched.
    kept_for_later: AtomicU64,
    retries: AtomicU64,
    on_retry: OnRetry,
}

/// What is told of a failed attempt that is followed by another: why it failed.
pub type OnRetry = fn(&str);

/// The shortest time between two notices of failed attempts: a busy endpoint refuses many.
const NOTICE_PERIOD: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct State {
    /// When a failed attempt was last told of.
    noticed: Option<Instant>,
    store: Store,
    /// Set aside for requests under way.
    under_way: Spent,
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) body: String,
    /// The most tokens of its answer.
    pub(crate) answer_tokens: u64,
    /// Whether the answer must have the probabilities of the first token.
    pub(crate) with_tokens: bool,
}

/// Which limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// `limits.calls`.
    Calls,
    /// `limits.tokens`.
    Tokens,
    /// `limits.money`.
    Money,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Calls => "limits.calls",
            Limit::Tokens => "limits.tokens",
            Limit::Money => "limits.money",
        })
    }
}

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// A limit is reached.
    Limit(Limit),
    /// Somebody asked to stop.
    Interrupted,
    /// The endpoint refused it for what it says.
    Refused(String),
    /// The run cannot go on.
    Fatal(Error),
}

impl From<Error> for NoAnswer {
    fn from(error: Error) -> Self {
        NoAnswer::Fatal(error)
    }
}

impl Caller {
    pub(crate) fn new(
        endpoint: Endpoint,
        settings: &EndpointSettings,
        limits: LimitSettings,
        store: Store,
        jobs: usize,
        interrupt: &Interrupt,
        on_retry: OnRetry,
    ) -> Caller {
        let price = |price: Option<f64>| price.unwrap_or(0.0) / 1e6;
        Caller {
            endpoint,
            limits,
            prices: (price(settings.input_price), price(settings.output_price)),
            jobs,
            interrupt: interrupt.clone(),
            state: Mutex::new(State { noticed: None, store, under_way: Spent::default() }),
            kept_for_later: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            on_retry,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has been spent, over all runs.
    pub(crate) fn spent(&self) -> Spent {
        self.lock().store.spent()
    }

    /// What that costs.
    pub(crate) fn money(&self, spent: Spent) -> f64 {
        spent.prompt_tokens as f64 * self.prices.0 + spent.answer_tokens as f64 * self.prices.1
    }

    /// How many requests were sent again in this run.
    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Keeps this many calls, with the tokens that calls had so far, for later.
    pub(crate) fn keep_for_later(&self, calls: u64) {
        self.kept_for_later.store(calls, Ordering::Relaxed);
    }

    /// The answers to `requests`, in their order. If one has none, those under way are still waited for and kept.
    pub(crate) fn answers(&self, requests: &[Request]) -> Result<Vec<Answer>, NoAnswer> {
        let keys: Vec<String> = requests
            .iter()
            .map(|request| request_key(self.endpoint.url(), &request.body))
            .collect();
        let missing: Vec<usize> = {
            let (state, mut seen) = (self.lock(), HashSet::new());
            let is_missing =
                |i: &usize| state.store.get(&keys[*i]).is_none() && seen.insert(&keys[*i]);
            (0..keys.len()).filter(is_missing).collect()
        };
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let failure: Mutex<Option<NoAnswer>> = Mutex::new(None);
        let work = || {
            while !stop.load(Ordering::Acquire) {
                let Some(i) = missing.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                if let Err(reason) = self.call(&requests[*i], &keys[*i]) {
                    stop.store(true, Ordering::Release);
                    let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
                    // What ends the run is said before what only ends this prompt.
                    if !matches!((&*failure, &reason), (Some(_), NoAnswer::Refused(_))) {
                        *failure = Some(reason);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.jobs.min(missing.len()) {
                scope.spawn(work);
            }
            work();
        });
        let state = self.lock();
        if !missing.is_empty() {
            state.store.sync()?;
        }
        if let Some(reason) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(reason);
        }
        let answers = keys.iter().map(|key| state.store.get(key).cloned());
        answers.collect::<Option<_>>().ok_or(NoAnswer::Interrupted)
    }

    fn call(&self, request: &Request, key: &str) -> Result<(), NoAnswer> {
        // The pauses of a request do not depend on when it is sent.
        let seed = u64::from_str_radix(&key[..16], 16).unwrap_or(0);
        let mut random = Random::new(seed);
        let mut attempt = 0;
        loop {
            if !self.endpoint.wait(&self.interrupt) {
                return Err(NoAnswer::Interrupted);
            }
            let most = self.set_aside(request)?;
            let outcome = self.endpoint.attempt(&request.body, request.with_tokens);
            let (why, pause) = {
                let mut state = self.lock();
                let under_way = &mut state.under_way;
                under_way.calls -= 1;
                under_way.prompt_tokens -= most.prompt_tokens;
                under_way.answer_tokens -= most.answer_tokens;
                match outcome {
                    Attempt::Answered(answer) => {
                        let counts = self.check_counts(&answer);
                        // It has been paid for, also if it ends the run.
                        state.store.add(key.to_string(), answer)?;
                        return counts;
                    }
                    Attempt::Lost(why) => {
                        let Spent { prompt_tokens, answer_tokens, .. } = most;
                        let lost = Lost { why: why.clone(), prompt_tokens, answer_tokens };
                        state.store.add_lost(lost)?;
                        (why, None)
                    }
                    Attempt::Busy(why, pause) => (why, pause),
                    Attempt::Refused(why) => return Err(NoAnswer::Refused(why)),
                    Attempt::Fatal(why) => return Err(self.fatal(&why)),
                }
            };
            if attempt == self.endpoint.retries() {
                let attempts = attempt + 1;
                return Err(self.fatal(&format!(
                    "{attempts} attempts failed, the last because {why}. What was answered is kept: run the same \
                     command again to resume"
                )));
            }
            self.retries.fetch_add(1, Ordering::Relaxed);
            self.notice(&why);
            self.endpoint
                .back_off(attempt, pause, &mut random, &self.interrupt)
                .map_err(|what| self.fatal(&format!("{why}, and {what}")))?;
            attempt += 1;
        }
    }

    /// Tells of a failed attempt, unless another was told of a moment ago.
    fn notice(&self, why: &str) {
        let mut state = self.lock();
        if state.noticed.is_none_or(|last| last.elapsed() >= NOTICE_PERIOD) {
            state.noticed = Some(Instant::now());
            drop(state);
            (self.on_retry)(&format!("{}: {why}", self.endpoint.url()));
        }
    }

    fn fatal(&self, why: &str) -> NoAnswer {
        NoAnswer::Fatal(Error::endpoint(format!("{}: {why}", self.endpoint.url())))
    }

    /// A limit on tokens or money needs to know them.
    fn check_counts(&self, answer: &Answer) -> Result<(), NoAnswer> {
        let LimitSettings { tokens, money, .. } = self.limits;
        let is_needed = tokens.is_some() || money.is_some();
        if is_needed && (answer.prompt_tokens.is_none() || answer.answer_tokens.is_none()) {
            return Err(self.fatal(
                "the answer has no usage.prompt_tokens and usage.completion_tokens, so limits.tokens and \
                 limits.money cannot be kept: take them out, limits.calls stays",
            ));
        }
        Ok(())
    }

    /// Sets aside the most that a request can cost, if the limits allow it.
    fn set_aside(&self, request: &Request) -> Result<Spent, NoAnswer> {
        let mut state = self.lock();
        let most = Spent {
            calls: 1,
            lost: 0,
            prompt_tokens: request.body.len() as u64,
            answer_tokens: request.answer_tokens,
        };
        let spent = state.store.spent();
        let later = self.kept_for_later.load(Ordering::Relaxed);
        let per_call =
            |tokens: u64| (tokens as f64 / spent.calls.max(1) as f64 * later as f64) as u64;
        let total = |kept: u64, each: fn(&Spent) -> u64| {
            each(&spent) + each(&state.under_way) + each(&most) + kept
        };
        let sum = Spent {
            calls: total(later, |spent| spent.calls),
            lost: 0,
            prompt_tokens: total(per_call(spent.prompt_tokens), |spent| spent.prompt_tokens),
            answer_tokens: total(per_call(spent.answer_tokens), |spent| spent.answer_tokens),
        };
        if sum.calls > self.limits.calls {
            return Err(NoAnswer::Limit(Limit::Calls));
        }
        if self.limits.tokens.is_some_and(|tokens| sum.prompt_tokens + sum.answer_tokens > tokens) {
            return Err(NoAnswer::Limit(Limit::Tokens));
        }
        if self.limits.money.is_some_and(|money| self.money(sum) > money) {
            return Err(NoAnswer::Limit(Limit::Money));
        }
        let under_way = &mut state.under_way;
        under_way.calls += 1;
        under_way.prompt_tokens += most.prompt_tokens;
        under_way.answer_tokens += most.answer_tokens;
        Ok(most)
    }
}
