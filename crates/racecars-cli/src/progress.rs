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
    /// When it was last updated.
    shown: Mutex<Instant>,
    started: Instant,
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
        let now = Instant::now();
        ProgressDisplay { total, bar, shown: Mutex::new(now), started: now }
    }

    /// Shows that `done` steps are done, if an update is due; `message` is called only then.
    pub(crate) fn show(&self, done: u64, message: impl FnOnce() -> String) {
        self.show_resumed(done, done, message);
    }

    /// Like [`show`](Self::show) for resumed work, of which only `fresh` steps were done in this process: the
    /// time that is left follows from them.
    pub(crate) fn show_resumed(&self, done: u64, fresh: u64, message: impl FnOnce() -> String) {
        let Ok(mut shown) = self.shown.try_lock() else { return };
        let period = if self.bar.is_some() { REFRESH } else { PLAIN };
        if shown.elapsed() < period {
            return;
        }
        *shown = Instant::now();
        let left = time_left(self.started.elapsed(), fresh, self.total.saturating_sub(done));
        match &self.bar {
            Some(bar) => {
                bar.set_position(done);
                bar.set_message(format!("{} ({:#} left)", message(), HumanDuration(left)));
            }
            None => {
                let (total, left) = (self.total, left.as_secs());
                eprintln!("{done}/{total} {} ({left} s left)", message());
            }
        }
    }
}

/// The time that `steps` take if `fresh` of them took `elapsed`.
fn time_left(elapsed: Duration, fresh: u64, steps: u64) -> Duration {
    let seconds = elapsed.as_secs_f64() / fresh.max(1) as f64 * steps as f64;
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
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
        assert_eq!(time_left(Duration::from_secs(4), 2, 8), Duration::from_secs(16));
        assert_eq!(time_left(Duration::from_secs(4), 0, 8), Duration::from_secs(32));
        assert_eq!(time_left(Duration::from_secs(4), 1, 0), Duration::ZERO);
        assert_eq!(time_left(Duration::MAX, 1, u64::MAX), Duration::MAX);
    }
}
