//! The progress of a study on standard error: one live line on a terminal, otherwise plain lines.

use crate::output::{short, visible, warn};
use indicatif::{ProgressBar, ProgressStyle};
use racecars_study::{Status, units};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// The time between two updates of the live line.
const REFRESH: Duration = Duration::from_millis(100);
/// The time between two plain lines if nothing improves; improvements are printed more often.
const PLAIN: Duration = Duration::from_secs(10);
const IMPROVED: Duration = Duration::from_secs(3);

pub(crate) struct Live {
    bar: Option<ProgressBar>,
    shown: Instant,
    has_news: bool,
}

impl Live {
    pub(crate) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{spinner:.green} {msg}");
            let bar = ProgressBar::new_spinner();
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar
        });
        Live { bar, shown: Instant::now(), has_news: false }
    }

    pub(crate) fn show(&mut self, status: &Status<'_>) {
        match (status.notice, &self.bar) {
            (Some(notice), Some(bar)) => bar.println(visible(notice)),
            (Some(notice), None) => warn(notice),
            (None, _) => {}
        }
        self.has_news |= status.latest.is_some_and(|(_, is_best)| is_best);
        let period = match (&self.bar, self.has_news) {
            (Some(_), _) => REFRESH,
            (None, true) => IMPROVED,
            (None, false) => PLAIN,
        };
        if self.shown.elapsed() < period {
            return;
        }
        (self.shown, self.has_news) = (Instant::now(), false);
        match &self.bar {
            Some(bar) => {
                bar.set_message(text(status));
                bar.tick();
            }
            None => eprintln!("{}", text(status)),
        }
    }

    /// Clears the live line.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Evaluations, rate, best, since improvement, failures, busy workers, remaining time.
fn text(status: &Status<'_>) -> String {
    let Status { evaluations, budget, busy, jobs, failures, since_best, .. } = status;
    if let Some((done, total)) = status.confirming {
        return format!(
            "{evaluations}/{budget} · confirming the leaders {done}/{total} · busy {busy}/{jobs}"
        );
    }
    let seconds = status.elapsed.as_secs_f64().max(1e-9);
    let rate = status.this_run as f64 / seconds;
    let best = status.best.map_or("none yet".to_string(), short);
    let mut text = format!(
        "{evaluations}/{budget} · {} · best {best}, {since_best} ago · busy {busy}/{jobs}",
        if rate >= 1.0 {
            format!("{}/s", short(rate))
        } else {
            format!("{}/min", short(60.0 * rate))
        },
    );
    if *failures > 0 {
        text += &format!(" · {failures} failed");
    }
    if status.this_run > 0 {
        let left = budget.saturating_sub(*evaluations) as f64 / rate;
        text += &format!(" · {} left", units::show(Duration::from_secs_f64(left.min(1e9))));
    }
    text
}
