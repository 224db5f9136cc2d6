//! One session of a study: this thread keeps the optimizer and the journal, the workers run the
//! program.

use crate::command::Task;
use crate::desk::Desk;
use crate::error::Result;
use crate::evaluate::{Evaluator, Halt, Report};
use crate::journal::{Repeat, Tell};
use crate::outcome::Verdict;
use crate::plan::now;
use crate::queue::Queue;
use crate::units::Time;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a session looks up from waiting.
const TICK: Duration = Duration::from_millis(100);
/// Where evaluations take less than this on average, workers get a job ahead, so that none waits for
/// this thread; where they take longer, a point asked later knows more.
const SHORT: f64 = 0.02;
/// A session ends when so many evaluations failed and none ever worked.
const FIRST_FAILURES: u64 = 5;

/// A request to end a session. Clones share it.
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
    /// can go on.
    pub fn request(&self) {
        if self.finish.swap(true, Ordering::AcqRel) {
            self.now.store(true, Ordering::Release);
        }
    }

    /// Whether the session is to end.
    pub fn is_requested(&self) -> bool {
        self.finish.load(Ordering::Acquire)
    }

    fn stop_now(&self) {
        self.now.store(true, Ordering::Release);
    }
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// All evaluations of the budget are done.
    Evaluations,
    /// The target was reached.
    Target,
    /// Every point of the space has been evaluated.
    Exhausted,
    /// The time limit has passed.
    Time,
    /// It was interrupted.
    Interrupted,
    /// The first evaluations all failed.
    FirstFailures,
}

impl Ended {
    /// A word for programs, and for the journal.
    pub fn name(self) -> &'static str {
        match self {
            Ended::Evaluations => "evaluations",
            Ended::Target => "target",
            Ended::Exhausted => "exhausted",
            Ended::Time => "time",
            Ended::Interrupted => "interrupted",
            Ended::FirstFailures => "first-failures",
        }
    }

    /// Whether the study is complete, as far as this session's settings go.
    fn is_complete(self) -> bool {
        matches!(self, Ended::Evaluations | Ended::Target | Ended::Exhausted)
    }
}

/// How a session goes.
#[derive(Debug)]
pub struct Status<'a> {
    /// The evaluations done, over all sessions.
    pub evaluations: u64,
    /// The evaluations planned.
    pub budget: u64,
    /// The evaluations done in this session.
    pub session: u64,
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
    /// The time since the session began.
    pub elapsed: Duration,
    /// The evaluation that just ended, and whether it is the best; none on a mere look.
    pub latest: Option<(&'a Tell, bool)>,
    /// While leading points are evaluated again: how many times that is done, and to be done.
    pub confirming: Option<(u64, u64)>,
}

/// Work for a worker.
struct Job {
    trial: u64,
    point: Vec<f64>,
    /// `None` for the trial itself, a number for a fresh evaluation of a leading point.
    number: Option<u64>,
}

struct Done {
    job: Job,
    worker: usize,
    report: Result<Report, Halt>,
}

/// Runs a session to its end. Returns why it ended, and the first failure in words.
pub(crate) fn run(
    desk: &mut Desk,
    evaluator: &Evaluator,
    interrupt: &Interrupt,
    observe: &mut dyn FnMut(&Status<'_>),
    start: Instant,
) -> Result<(Ended, Option<String>)> {
    let plan = desk.plan();
    let jobs = match plan.deterministic {
        true => plan.jobs.min(usize::try_from(plan.lookahead).unwrap_or(usize::MAX)),
        false => plan.jobs,
    };
    let most = plan.budget.max(u64::from(plan.confirm) * plan.leaders as u64);
    let jobs = jobs.min(usize::try_from(most).unwrap_or(usize::MAX));
    let limit = plan.time_limit.map(Time::duration);
    let (to_workers, from_workers) = (Queue::new(), Queue::new());
    std::thread::scope(|scope| {
        for worker in 0..jobs {
            let (jobs, done) = (&to_workers, &from_workers);
            scope.spawn(move || work(worker, jobs, done, evaluator, interrupt));
        }
        let mut session = Session {
            told: 0,
            failed: 0,
            seconds: 0.0,
            first_failure: None,
            busy: 0,
            desk,
            evaluator,
            interrupt,
            observe,
            start,
            limit,
            jobs,
            to_workers: &to_workers,
            from_workers: &from_workers,
        };
        let ended = session.search().and_then(|ended| match ended.is_complete() {
            true => session.confirm(ended),
            false => Ok(ended),
        });
        if ended.is_err() {
            // The disk is full, or the like: what runs is ended, and will run again.
            interrupt.stop_now();
        }
        to_workers.close();
        Ok((ended?, session.first_failure.take()))
    })
}

fn work(
    worker: usize,
    jobs: &Queue<Job>,
    done: &Queue<Done>,
    evaluator: &Evaluator,
    interrupt: &Interrupt,
) {
    while let Some(job) = jobs.pop() {
        let report = match job.number {
            _ if interrupt.is_requested() => Err(Halt::Stopped),
            None => evaluator.trial(job.trial, &job.point, &interrupt.now),
            Some(number) => evaluator.again(job.trial, &job.point, number, &interrupt.now),
        };
        done.push(Done { job, worker, report });
    }
}

struct Session<'s> {
    desk: &'s mut Desk,
    evaluator: &'s Evaluator,
    interrupt: &'s Interrupt,
    observe: &'s mut dyn FnMut(&Status<'_>),
    start: Instant,
    limit: Option<Duration>,
    jobs: usize,
    to_workers: &'s Queue<Job>,
    from_workers: &'s Queue<Done>,
    /// Jobs given to workers.
    busy: usize,
    /// Outcomes of this session, failures among them, and how long they took.
    told: u64,
    failed: u64,
    seconds: f64,
    first_failure: Option<String>,
}

impl Session<'_> {
    /// Evaluates what the optimizer proposes, beginning with what was asked before.
    fn search(&mut self) -> Result<Ended> {
        let mut queue: VecDeque<u64> = self.desk.pending().into();
        let mut latest = None;
        loop {
            let winds_down = self.winds_down();
            self.fill(&mut queue, winds_down.is_some())?;
            while winds_down.is_none()
                && self.busy < self.places()
                && let Some(trial) = queue.pop_front()
            {
                self.start(trial, None, self.desk.point(trial).unwrap_or_default().to_vec());
            }
            if self.busy == 0 {
                self.show(latest, None);
                return Ok(winds_down.unwrap_or_else(|| self.reason()));
            }
            // Now that the workers have their next jobs.
            self.show(latest.take(), None);
            if let Some(done) = self.wait() {
                latest = self.settle(done)?;
            }
        }
    }

    /// Asks for points: as many as workers are free, or in deterministic mode as many as the rule
    /// says. There it goes on even while the session winds down, so that the order in which points
    /// are asked and outcomes told does not depend on interruptions; what is asked then runs in the
    /// next session.
    fn fill(&mut self, queue: &mut VecDeque<u64>, winds_down: bool) -> Result<()> {
        let is_deterministic = self.desk.plan().deterministic;
        loop {
            while self.desk.may_ask()
                && (is_deterministic || !winds_down && queue.len() + self.busy < self.places())
            {
                match self.desk.ask()? {
                    Some(trial) => queue.push_back(trial),
                    None => break,
                }
            }
            if !is_deterministic || !self.desk.tell_next()? {
                return Ok(());
            }
        }
    }

    /// How many jobs workers may have.
    fn places(&self) -> usize {
        let is_short = self.told > 0 && self.seconds < SHORT * self.told as f64;
        if is_short { 2 * self.jobs } else { self.jobs }
    }

    /// Why no more evaluations are to be started, if so.
    fn winds_down(&self) -> Option<Ended> {
        let counts = self.desk.record().counts;
        let enough = FIRST_FAILURES.min(self.desk.plan().budget);
        if self.interrupt.is_requested() {
            Some(Ended::Interrupted)
        } else if self.limit.is_some_and(|limit| self.start.elapsed() >= limit) {
            Some(Ended::Time)
        } else if self.failed >= enough && counts.failures == counts.told {
            Some(Ended::FirstFailures)
        } else {
            None
        }
    }

    /// Why there is nothing left to do.
    fn reason(&self) -> Ended {
        if self.desk.is_exhausted() {
            Ended::Exhausted
        } else if self.desk.is_at_target() {
            Ended::Target
        } else {
            Ended::Evaluations
        }
    }

    /// Evaluates the leading points again, so that a lucky draw does not win.
    fn confirm(&mut self, ended: Ended) -> Result<Ended> {
        let leaders = &self.desk.record().leaders;
        let missing = leaders.missing(self.desk.plan().confirm.into());
        let mut queue: VecDeque<Job> = (missing.into_iter())
            .map(|(place, number)| {
                let leader = &leaders.leaders()[place];
                Job { trial: leader.trial, point: leader.point.clone(), number: Some(number) }
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
                self.start(job.trial, job.number, job.point);
            }
            if self.busy == 0 {
                return Ok(winds_down.unwrap_or(ended));
            }
            if let Some(done) = self.wait() {
                count += 1;
                self.settle(done)?;
            }
            self.show(None, Some((count, total)));
        }
    }

    fn start(&mut self, trial: u64, number: Option<u64>, point: Vec<f64>) {
        self.to_workers.push(Job { trial, point, number });
        self.busy += 1;
    }

    /// Waits for an evaluation to end, or a little while.
    fn wait(&mut self) -> Option<Done> {
        let done = self.from_workers.pop_within(TICK);
        self.busy -= usize::from(done.is_some());
        done
    }

    /// Enters what came of an evaluation; one that was stopped stays asked, and runs again. Returns
    /// what was told, and whether it is the best.
    fn settle(&mut self, done: Done) -> Result<Option<(Tell, bool)>> {
        let Done { job, worker, report } = done;
        let report = match report {
            Ok(report) => report,
            Err(Halt::Stopped) => return Ok(None),
            Err(Halt::System(error)) => return Err(error),
        };
        let Report { verdict, attempts, seconds, values, stderr } = report;
        if let Some(number) = job.number {
            let value = verdict.feasible_value();
            let (trial, at) = (job.trial, now());
            let repeat = Repeat { trial, number, value, outcome: verdict, seconds, worker, at };
            self.desk.repeat(&repeat)?;
            return Ok(None);
        }
        if let (Verdict::Failed { detail, .. }, None) = (&verdict, &self.first_failure) {
            self.first_failure = Some(self.describe(&job, detail, stderr.as_deref()));
        }
        let (trial, at) = (job.trial, now());
        let tell = Tell { trial, outcome: verdict, attempts, seconds, worker, values, at, stderr };
        self.desk.tell(&tell)?;
        self.told += 1;
        self.failed += u64::from(tell.outcome.is_failure());
        self.seconds += tell.seconds;
        let is_best = (self.desk.record().best.as_ref()).is_some_and(|best| best.trial == trial);
        Ok(Some((tell, is_best)))
    }

    fn describe(&self, job: &Job, detail: &str, stderr: Option<&str>) -> String {
        let Job { trial, point, .. } = job;
        let seed = self.evaluator.seed(*trial, 0);
        let task = Task { trial: *trial, seed, point, folder: "" };
        let command = self.evaluator.recipe().paste(task);
        let stderr = match stderr.unwrap_or("").trim() {
            "" => "it wrote nothing to standard error".to_string(),
            text => format!("its standard error ends with:\n{text}"),
        };
        format!(
            "the first evaluations all failed. The first of them: {detail}\n  {command}\n{stderr}"
        )
    }

    fn show(&mut self, latest: Option<(Tell, bool)>, confirming: Option<(u64, u64)>) {
        let record = self.desk.record();
        let status = Status {
            evaluations: record.counts.told,
            budget: self.desk.plan().budget,
            session: self.told,
            best: record.best.as_ref().and_then(|best| best.verdict.feasible_value()),
            since_best: record.counts.told - record.counts.best_at,
            failures: record.counts.failures,
            busy: self.busy.min(self.jobs),
            jobs: self.jobs,
            elapsed: self.start.elapsed(),
            latest: latest.as_ref().map(|(tell, is_best)| (tell, *is_best)),
            confirming,
        };
        (self.observe)(&status);
    }
}
