//! Counters, gauges and histograms in Prometheus' text form.

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper ends of a histogram's buckets in seconds.
const BUCKETS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0];

/// How long something took, by buckets.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// By bucket, not cumulative; the last is for what is longer than all.
    counts: [AtomicU64; BUCKETS.len() + 1],
    micros: AtomicU64,
}

impl Histogram {
    pub(crate) fn observe(&self, time: Duration) {
        let bucket = BUCKETS.partition_point(|end| *end < time.as_secs_f64());
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }
}

/// The text of all metrics. Every name has one `# HELP` and one `# TYPE` line, before its values.
#[derive(Debug, Default)]
pub(crate) struct MetricsText(String);

impl MetricsText {
    fn line(&mut self, text: impl Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{text}");
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP racecars_lm_{name} {help}"));
        self.line(format_args!("# TYPE racecars_lm_{name} {kind}"));
    }

    /// A counter or gauge.
    pub(crate) fn value(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.head(name, kind, help);
        self.line(format_args!("racecars_lm_{name} {value}"));
    }

    /// A counter with a value for each of several labels, such as `status="2xx"`.
    pub(crate) fn counters<'a>(
        &mut self,
        name: &str,
        help: &str,
        values: impl Iterator<Item = (String, &'a AtomicU64)>,
    ) {
        self.head(name, "counter", help);
        for (label, value) in values {
            let value = value.load(Ordering::Relaxed);
            self.line(format_args!("racecars_lm_{name}{{{label}}} {value}"));
        }
    }

    pub(crate) fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, "histogram", help);
        let mut total = 0;
        let ends = BUCKETS.iter().map(ToString::to_string).chain(["+Inf".to_string()]);
        for (end, count) in ends.zip(&histogram.counts) {
            total += count.load(Ordering::Relaxed);
            self.line(format_args!("racecars_lm_{name}_bucket{{le=\"{end}\"}} {total}"));
        }
        let sum = histogram.micros.load(Ordering::Relaxed) as f64 / 1e6;
        self.line(format_args!("racecars_lm_{name}_sum {sum}"));
        self.line(format_args!("racecars_lm_{name}_count {total}"));
    }

    pub(crate) fn text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative() {
        let histogram = Histogram::default();
        for millis in [5, 6, 2000, 3_600_000] {
            histogram.observe(Duration::from_millis(millis));
        }
        let mut text = MetricsText::default();
        text.histogram("wait_seconds", "h", &histogram);
        let text = text.text();
        for line in [
            "# TYPE racecars_lm_wait_seconds histogram\n",
            "racecars_lm_wait_seconds_bucket{le=\"0.005\"} 1\n",
            "racecars_lm_wait_seconds_bucket{le=\"0.01\"} 2\n",
            "racecars_lm_wait_seconds_bucket{le=\"1\"} 2\n",
            "racecars_lm_wait_seconds_bucket{le=\"2.5\"} 3\n",
            "racecars_lm_wait_seconds_bucket{le=\"+Inf\"} 4\n",
            "racecars_lm_wait_seconds_sum 3602.011\n",
            "racecars_lm_wait_seconds_count 4\n",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
    }
}
