//! One run of a study: this thread keeps the search and its journal, the workers run the program.

use crate::error::{Error, ErrorKind, Result};
use crate::evaluate::{Evaluator, Halt, Job, Measurement, Stop};
use crate::journal::{Part, Repeat, Tell};
use crate::journaled::JournaledSearch;
use crate::outcome::Outcome;
use crate::plan::now;
use crate::queue::{CloseOnDrop, Queue};
use crate::search::Step;
use racecars::StopReason;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a run looks up from waiting.
const TICK: Duration = Duration::from_millis(100);
/// A run ends when this many of its evaluations failed and none of the study ever worked.
const FIRST_FAILURES: u64 = 5;

/// A request to end a run. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    finish: Arc<AtomicBool>,
    now: Arc<AtomicBool>,
}

impl Interrupt {
    /// No request yet.
    pub fn new() -> Self {
        Interrupt::default()
    }

    /// Finish the evaluations that run, then stop; a second time: stop now. Both leave a study that
    /// can be resumed.
    pub fn request(&self) {
        if self.finish.swap(true, Ordering::AcqRel) {
            self.now.store(true, Ordering::Release);
        }
    }

    /// Whether the run is to end.
    pub fn is_requested(&self) -> bool {
        self.finish.load(Ordering::Acquire)
    }
}

/// The progress of a run.
#[derive(Debug)]
pub struct Status<'a> {
    /// The evaluations done, over all runs of the study.
    pub evaluations: u64,
    /// The evaluations planned.
    pub budget: u64,
    /// The evaluations done in this run.
    pub this_run: u64,
    /// The best value so far, if a feasible point is known.
    pub best: Option<f64>,
    /// The evaluations since the best came in.
    pub since_best: u64,
    /// The evaluations that failed.
    pub failures: u64,
    /// The evaluations that run.
    pub busy: usize,
    /// How many may run.
    pub jobs: usize,
    /// The time since the run began.
    pub elapsed: Duration,
    /// The evaluation that just ended, and whether it is the best; `None` if time passed and none ended.
    pub latest: Option<(&'a Tell, bool)>,
    /// While leading points are evaluated again: how many of these evaluations are done, of how many.
    pub confirming: Option<(u64, u64)>,
    /// Something that the user should know of, said once.
    pub notice: Option<&'a str>,
}

/// What workers report.
enum News {
    Part(Part),
    Done(Done),
}

struct Done {
    job: Job,
    worker: usize,
    result: Result<Measurement, Halt>,
}

/// Runs a study to its end. Returns why it ended, and the first failure in words.
pub(crate) fn run(
    search: &mut JournaledSearch,
    evaluator: &Evaluator,
    interrupt: &Interrupt,
    observe: &mut dyn FnMut(&Status<'_>),
    start: Instant,
) -> Result<(StopReason, Option<String>)> {
    search.begin_run()?;
    let plan = search.plan();
    let jobs = match plan.deterministic {
        true => plan.jobs.min(usize::try_from(plan.lookahead).unwrap_or(usize::MAX)),
        false => plan.jobs,
    };
    let most = plan.budget.max(u64::from(plan.confirm) * plan.leaders as u64);
    let jobs = jobs.min(usize::try_from(most).unwrap_or(usize::MAX));
    let deadline = plan.time_limit.and_then(|limit| start.checked_add(limit.duration()));
    let stop = Stop { now: &interrupt.now, finish: &interrupt.finish, deadline };
    let (to_workers, from_workers) = (Queue::new(), Queue::new());
    std::thread::scope(|scope| {
        // Workers wait for work, and this scope for them.
        let _close = CloseOnDrop(&to_workers);
        for worker in 0..jobs {
            let (queue, news) = (&to_workers, &from_workers);
            let work = move || work(worker, queue, news, evaluator, stop);
            if let Err(error) = std::thread::Builder::new().spawn_scoped(scope, work) {
                let message = format!(
                    "cannot start thread {} of {jobs}, one for each of --jobs: {error}",
                    worker + 1
                );
                return Err(Error::new(ErrorKind::System, message));
            }
        }
        let mut runner = Runner {
            this_run: 0,
            failed: 0,
            first_failure: None,
            busy: 0,
            search,
            evaluator,
            stop,
            observe,
            start,
            jobs,
            to_workers: &to_workers,
            from_workers: &from_workers,
        };
        let ended = runner.search().and_then(|ended| match ended.is_complete() {
            true => runner.confirm(ended),
            false => Ok(ended),
        });
        if ended.is_err() {
            // The disk is full, or the like: what runs is ended, and will run again.
            interrupt.now.store(true, Ordering::Release);
        }
        Ok((ended?, runner.first_failure.take()))
    })
}

fn work(
    worker: usize,
    jobs: &Queue<Job>,
    news: &Queue<News>,
    evaluator: &Evaluator,
    stop: Stop<'_>,
) {
    while let Some(job) = jobs.pop() {
        let each = |part| news.push(News::Part(part));
        let result = match stop.finish.load(Ordering::Acquire) {
            true => Err(Halt::Stopped),
            false => evaluator.evaluate(&job, worker, each, stop),
        };
        news.push(News::Done(Done { job, worker, result }));
    }
}

struct Runner<'s> {
    search: &'s mut JournaledSearch,
    evaluator: &'s Evaluator,
    stop: Stop<'s>,
    observe: &'s mut dyn FnMut(&Status<'_>),
    start: Instant,
    jobs: usize,
    to_workers: &'s Queue<Job>,
    from_workers: &'s Queue<News>,
    /// Jobs given to workers.
    busy: usize,
    /// Outcomes of this run, and failures among them.
    this_run: u64,
    failed: u64,
    first_failure: Option<String>,
}

impl Runner<'_> {
    /// Evaluates what the optimizer proposes, beginning with what was asked before.
    fn search(&mut self) -> Result<StopReason> {
        let mut queue: VecDeque<u64> = self.search.pending().into();
        let mut latest = None;
        loop {
            let winds_down = self.winds_down();
            if let Some(reason) = winds_down {
                self.search.stop_asking(reason);
            }
            let stop = self.fill(&mut queue, winds_down.is_some())?;
            while winds_down.is_none()
                && self.busy < self.jobs
                && let Some(trial) = queue.pop_front()
            {
                let point = self.search.point(trial).unwrap_or_default().to_vec();
                let parts = self.search.parts(trial).to_vec();
                self.start(Job { trial, point, number: None, parts });
            }
            if self.busy == 0
                && let Some(reason) = winds_down.or(stop)
            {
                self.show(latest, None);
                return Ok(reason);
            }
            // Now that the workers have their next jobs.
            self.show(latest.take(), None);
            if let Some(done) = self.wait()? {
                latest = self.settle(done)?;
            }
        }
    }

    /// Asks for points: as many as workers are free, or in deterministic studies as many as the rule
    /// says, even while the run winds down, so that the order of asks and tells does not depend on
    /// interruptions; what is asked then is evaluated by the next run. Returns why there is nothing left
    /// to do, if so.
    fn fill(&mut self, queue: &mut VecDeque<u64>, winds_down: bool) -> Result<Option<StopReason>> {
        let asks_by_rule = self.search.is_in_order() || winds_down;
        while asks_by_rule || queue.len() + self.busy < self.jobs {
            match self.search.step()? {
                Step::Asked(trial) => queue.push_back(trial),
                Step::Wait => return Ok(None),
                Step::Stop(reason) => return Ok(Some(reason)),
            }
        }
        Ok(None)
    }

    /// Why no more evaluations are to be started, if so.
    fn winds_down(&self) -> Option<StopReason> {
        let counts = self.search.record().counts;
        let enough = FIRST_FAILURES.min(self.search.plan().budget);
        if self.stop.finish.load(Ordering::Acquire) {
            Some(StopReason::Interrupted)
        } else if self.stop.is_late() {
            Some(StopReason::Time)
        } else if self.failed >= enough && counts.failures == counts.told {
            Some(StopReason::FirstFailures)
        } else {
            None
        }
    }

    /// Evaluates the leading points again, so that a lucky draw does not win.
    fn confirm(&mut self, ended: StopReason) -> Result<StopReason> {
        let leaders = &self.search.record().leaders;
        let missing = leaders.missing(self.search.plan().confirm.into());
        let mut queue: VecDeque<Job> = (missing.into_iter())
            .map(|(place, number)| {
                let leader = &leaders.leaders()[place];
                let (trial, point) = (leader.trial, leader.point.clone());
                Job { trial, point, number: Some(number), parts: Vec::new() }
            })
            .collect();
        let total = queue.len() as u64;
        let mut count = 0;
        loop {
            let winds_down = self.winds_down();
            while winds_down.is_none()
                && self.busy < self.jobs
                && let Some(job) = queue.pop_front()
            {
                self.start(job);
            }
            if self.busy == 0 {
                return Ok(winds_down.unwrap_or(ended));
            }
            if let Some(done) = self.wait()? {
                count += 1;
                self.settle(done)?;
            }
            self.show(None, Some((count, total)));
        }
    }

    fn start(&mut self, job: Job) {
        self.to_workers.push(job);
        self.busy += 1;
    }

    /// Waits for an evaluation to end, or a little while.
    fn wait(&mut self) -> Result<Option<Done>> {
        match self.from_workers.pop_within(TICK) {
            None => Ok(None),
            Some(News::Part(part)) => self.search.part(part).map(|()| None),
            Some(News::Done(done)) => {
                self.busy -= 1;
                Ok(Some(done))
            }
        }
    }

    /// Enters the result of an evaluation; one that was stopped stays asked, and runs again. Returns
    /// what was told, and whether it is the best.
    fn settle(&mut self, done: Done) -> Result<Option<(Tell, bool)>> {
        let Done { job, worker, result } = done;
        let measurement = match result {
            Ok(measurement) => measurement,
            Err(Halt::Stopped) => return Ok(None),
            Err(Halt::System(error)) => return Err(error),
        };
        let Measurement { outcome, attempts, seconds, values, stderr, stdout } = measurement;
        if let Some(number) = job.number {
            let value = outcome.value();
            let (trial, at) = (job.trial, now());
            let repeat = Repeat { trial, number, value, outcome, seconds, worker, at };
            self.search.repeat(&repeat)?;
            return Ok(None);
        }
        if let (Outcome::Failed(failure), None) = (&outcome, &self.first_failure) {
            let streams = [("output", stdout.as_deref()), ("error", stderr.as_deref())];
            self.first_failure = Some(self.describe(&job, &failure.reason, streams));
        }
        let (trial, at) = (job.trial, now());
        let tell = Tell { trial, outcome, attempts, seconds, worker, values, at, stderr };
        self.search.tell(&tell)?;
        self.this_run += 1;
        self.failed += u64::from(tell.outcome.is_failure());
        let is_best = (self.search.record().best.as_ref()).is_some_and(|best| best.trial == trial);
        Ok(Some((tell, is_best)))
    }

    fn describe(&self, job: &Job, detail: &str, streams: [(&str, Option<&str>); 2]) -> String {
        let command = self.evaluator.paste(job.trial, &job.point);
        let streams = streams.map(|(name, text)| match text.unwrap_or("").trim() {
            "" => format!("it wrote nothing to standard {name}"),
            text => format!("its standard {name} ends with:\n{text}"),
        });
        format!(
            "the first evaluations all failed. The first of them: {detail}\n  {command}\n{}",
            streams.join("\n")
        )
    }

    fn show(&mut self, latest: Option<(Tell, bool)>, confirming: Option<(u64, u64)>) {
        let record = self.search.record();
        let notice = self.evaluator.notice();
        let status = Status {
            evaluations: record.counts.told,
            budget: self.search.plan().budget,
            this_run: self.this_run,
            best: record.best.as_ref().and_then(|best| best.outcome.value()),
            since_best: record.counts.told - record.counts.best_at,
            failures: record.counts.failures,
            busy: self.busy,
            jobs: self.jobs,
            elapsed: self.start.elapsed(),
            latest: latest.as_ref().map(|(tell, is_best)| (tell, *is_best)),
            confirming,
            notice: notice.as_deref(),
        };
        (self.observe)(&status);
    }
}
