//! A queue between threads whose readers sleep while it is empty. (The usual channels first spin and
//! yield, which takes time from the programs that are being run.)

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A queue that any number of threads write and read.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    inner: Mutex<Inner<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Inner<T> {
    items: VecDeque<T>,
    is_closed: bool,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        let inner = Mutex::new(Inner { items: VecDeque::new(), is_closed: false });
        Queue { inner, changed: Condvar::new() }
    }

    pub(crate) fn push(&self, item: T) {
        self.lock().items.push_back(item);
        self.changed.notify_one();
    }

    /// No more items come; readers get what is left.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// The next item, waiting for it; `None` once the queue is closed and empty.
    pub(crate) fn pop(&self) -> Option<T> {
        let is_waiting = |inner: &mut Inner<T>| inner.items.is_empty() && !inner.is_closed;
        let waited = self.changed.wait_while(self.lock(), is_waiting);
        waited.unwrap_or_else(PoisonError::into_inner).items.pop_front()
    }

    /// The next item, waiting at most so long for it.
    pub(crate) fn pop_within(&self, patience: Duration) -> Option<T> {
        let is_waiting = |inner: &mut Inner<T>| inner.items.is_empty() && !inner.is_closed;
        let waited = self.changed.wait_timeout_while(self.lock(), patience, is_waiting);
        waited.unwrap_or_else(PoisonError::into_inner).0.items.pop_front()
    }

    /// Nothing here panics while it has the lock, so that it is never left half done.
    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes a queue at the end of a scope, however it ends: readers that wait would keep a panic from
/// getting out.
#[derive(Debug)]
pub(crate) struct CloseOnDrop<'a, T>(pub(crate) &'a Queue<T>);

impl<T> Drop for CloseOnDrop<'_, T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_end_when_the_writer_panics() {
        let jobs = Queue::<i32>::new();
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            std::thread::scope(|scope| {
                let _close = CloseOnDrop(&jobs);
                scope.spawn(|| jobs.pop());
                panic!("the writer");
            })
        }));
        assert!(ended.is_err());
        assert_eq!(jobs.pop(), None);
    }

    #[test]
    fn items_arrive_once_and_in_order_and_the_end_is_heard_of() {
        let (jobs, done) = (Queue::new(), Queue::new());
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while let Some(job) = jobs.pop() {
                        done.push(job);
                    }
                });
            }
            assert_eq!(done.pop_within(Duration::from_millis(5)), None);
            (0..1000).for_each(|job| jobs.push(job));
            jobs.close();
        });
        let mut all: Vec<i32> = std::iter::from_fn(|| done.pop_within(Duration::ZERO)).collect();
        all.sort_unstable();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
        assert_eq!(jobs.pop(), None);
    }
}
