//! How many programs the host has room for. Where descriptors, processes or memory are short, an
//! evaluation waits for another to end and is tried again: the point is not to blame.

use crate::error::{Error, ErrorKind};
use crate::evaluate::Halt;
use crate::platform::is_shortage;
use crate::queue::Queue;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a shortage may last while nothing of ours runs.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time between two tries, and two looks at whether to stop.
const TICK: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Room {
    jobs: usize,
    patience: Duration,
    notices: Arc<Queue<String>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    running: usize,
    /// How many may run.
    allowed: usize,
    /// Since when none could be started.
    short_since: Option<Instant>,
    has_told: bool,
}

impl Room {
    pub(crate) fn new(jobs: usize, notices: Arc<Queue<String>>) -> Room {
        Room {
            jobs,
            patience: PATIENCE,
            notices,
            state: Mutex::new(State {
                running: 0,
                allowed: jobs,
                short_since: None,
                has_told: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Does `work` once there is room for it, until it meets no shortage. With each shortage one less may
    /// run, with each success one more.
    pub(crate) fn run<T>(
        &self,
        is_to_stop: impl Fn() -> bool,
        mut work: impl FnMut() -> io::Result<T>,
    ) -> Result<T, Halt> {
        loop {
            let mut state = self.lock();
            while state.running >= state.allowed {
                if is_to_stop() {
                    return Err(Halt::Stopped);
                }
                state = self.wait(state);
            }
            state.running += 1;
            drop(state);
            let result = work();
            let mut state = self.lock();
            state.running -= 1;
            self.changed.notify_all();
            let error = match result {
                Ok(result) => {
                    state.short_since = None;
                    state.allowed = self.jobs.min(state.allowed + 1);
                    return Ok(result);
                }
                Err(error) if is_shortage(&error) => error,
                Err(error) => return Err(Halt::System(Error::new(ErrorKind::System, error))),
            };
            state.allowed = state.running.max(1);
            let since = *state.short_since.get_or_insert_with(Instant::now);
            if !std::mem::replace(&mut state.has_told, true) {
                self.notices.push(format!(
                    "the system has no room for another program ({error}); trying again, with fewer at a time"
                ));
            }
            if state.running == 0 {
                if since.elapsed() >= self.patience {
                    return Err(Halt::System(self.gives_up(&error)));
                }
                if is_to_stop() {
                    return Err(Halt::Stopped);
                }
                drop(self.wait(state));
            }
        }
    }

    fn gives_up(&self, error: &io::Error) -> Error {
        let message = format!(
            "cannot start the program: {error}, for {} s with no other evaluation running. Raise the \
             limit (`ulimit -a` shows it) or end other programs, then run the same command again to \
             resume; no evaluation is lost",
            self.patience.as_secs()
        );
        Error::new(ErrorKind::System, message)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn room(jobs: usize, patience: Duration) -> Room {
        Room { patience, ..Room::new(jobs, Arc::new(Queue::new())) }
    }

    #[test]
    fn all_work_is_done_with_less_room_than_jobs() {
        let room = room(8, Duration::from_secs(60));
        let (inside, most, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
            let result = if now > 3 { Err(Errno::MFILE.into()) } else { Ok(()) };
            if result.is_ok() {
                most.fetch_max(now, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(1));
            }
            inside.fetch_sub(1, Ordering::SeqCst);
            result
        };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        room.run(|| false, work).unwrap();
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 160);
        assert!(most.into_inner() <= 3);
        assert!(room.notices.pop_within(Duration::ZERO).unwrap().contains("with fewer at a time"));
        assert_eq!(room.notices.pop_within(Duration::ZERO), None);
    }

    #[test]
    fn a_shortage_that_lasts_is_an_error_and_others_are_at_once() {
        let mut tries = 0;
        let never = || -> io::Result<()> {
            tries += 1;
            Err(Errno::AGAIN.into())
        };
        let Err(Halt::System(error)) = room(2, TICK).run(|| false, never) else {
            panic!("no error")
        };
        assert!(error.to_string().contains("no evaluation is lost"), "{error}");
        assert!(tries > 1);
        let full = || -> io::Result<()> { Err(Errno::NOSPC.into()) };
        assert!(matches!(room(2, PATIENCE).run(|| false, full), Err(Halt::System(_))));
        let never = || -> io::Result<()> { Err(Errno::NOMEM.into()) };
        assert_eq!(room(2, PATIENCE).run(|| true, never), Err(Halt::Stopped));
    }
}
