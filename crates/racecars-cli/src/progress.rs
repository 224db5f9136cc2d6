//! Progress on standard error: a bar on a terminal, otherwise a plain line from time to time.

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The time between two updates of the bar's text.
const REFRESH: Duration = Duration::from_millis(100);
/// The time between two plain lines. Nothing is printed for shorter work.
const PLAIN: Duration = Duration::from_secs(2);

/// A progress display, which several threads may use.
pub(crate) struct ProgressDisplay {
    total: u64,
    bar: Option<ProgressBar>,
    clock: Mutex<Clock>,
}

struct Clock {
    /// When it was last updated.
    shown: Instant,
    /// When the first step was done, and how many were done then: what precedes it is no measure of the rest.
    first: Option<(Instant, u64)>,
}

impl ProgressDisplay {
    pub(crate) fn new(total: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let template = "{wide_bar:.green/dim} {pos}/{len} {msg}";
            let style =
                ProgressStyle::with_template(template).map(|style| style.progress_chars("━━─"));
            let bar = ProgressBar::new(total);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        ProgressDisplay {
            total,
            bar,
            clock: Mutex::new(Clock { shown: Instant::now(), first: None }),
        }
    }

    /// Shows that `done` steps are done, if an update is due; `message` is called only then.
    pub(crate) fn show(&self, done: u64, message: impl FnOnce() -> String) {
        self.show_resumed(done, done, message);
    }

    /// Like [`show`](Self::show) for resumed work, of which only `fresh` steps were done in this process: the
    /// time that is left follows from them.
    pub(crate) fn show_resumed(&self, done: u64, fresh: u64, message: impl FnOnce() -> String) {
        let Ok(mut clock) = self.clock.try_lock() else { return };
        let (from, before) = *clock.first.get_or_insert_with(|| (Instant::now(), fresh));
        let period = if self.bar.is_some() { REFRESH } else { PLAIN };
        if clock.shown.elapsed() < period {
            return;
        }
        clock.shown = Instant::now();
        let steps = fresh.saturating_sub(before);
        let left = time_left(from.elapsed(), steps, self.total.saturating_sub(done));
        match &self.bar {
            Some(bar) => {
                bar.set_position(done);
                let left =
                    left.map_or(String::new(), |left| format!(" ({:#} left)", HumanDuration(left)));
                bar.set_message(message() + &left);
            }
            None => {
                let left =
                    left.map_or(String::new(), |left| format!(" ({} s left)", left.as_secs()));
                eprintln!("{done}/{} {}{left}", self.total, message());
            }
        }
    }
}

/// The time that `left` steps take if `steps` took `elapsed`; `None` if there were none.
fn time_left(elapsed: Duration, steps: u64, left: u64) -> Option<Duration> {
    let seconds = elapsed.as_secs_f64() / (steps > 0).then_some(steps)? as f64 * left as f64;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_earlier_sessions_take_no_time() {
        // 90 of 100 steps were done before; 2 took 4 s, so the other 8 take 16.
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(time_left(Duration::from_secs(4), 2, 8), seconds(16));
        assert_eq!(time_left(Duration::from_secs(4), 0, 8), None);
        assert_eq!(time_left(Duration::from_secs(4), 1, 0), seconds(0));
        assert_eq!(time_left(Duration::MAX, 1, u64::MAX), Some(Duration::MAX));
    }
}
