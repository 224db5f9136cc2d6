//! Progress on standard error: a bar on a terminal, otherwise a plain line from time to time.

use indicatif::{ProgressBar, ProgressStyle};
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
            let template = "{wide_bar:.green/dim} {pos}/{len} {msg} ({eta} left)";
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
        let Ok(mut shown) = self.shown.try_lock() else { return };
        let period = if self.bar.is_some() { REFRESH } else { PLAIN };
        if shown.elapsed() < period {
            return;
        }
        *shown = Instant::now();
        match &self.bar {
            Some(bar) => {
                bar.set_position(done);
                bar.set_message(message());
            }
            None => {
                let elapsed = self.started.elapsed().as_secs_f64();
                let left = elapsed / done.max(1) as f64 * self.total.saturating_sub(done) as f64;
                let total = self.total;
                eprintln!("{done}/{total} {} ({left:.0} s left)", message());
            }
        }
    }
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
