//! Scales from values to pixels, with ticks.

/// An axis that maps values from `low` to `high` to pixels from `start` to `end`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlotAxis {
    low: f64,
    high: f64,
    start: f64,
    end: f64,
    is_log: bool,
}

impl PlotAxis {
    pub(crate) fn linear(low: f64, high: f64, start: f64, end: f64) -> Self {
        PlotAxis { low, high, start, end, is_log: false }
    }

    /// A logarithmic axis; `low` must be positive.
    pub(crate) fn log(low: f64, high: f64, start: f64, end: f64) -> Self {
        PlotAxis { low, high, start, end, is_log: true }
    }

    /// The pixel of a value; values beyond an end are clamped to it.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let scale = |x: f64| if self.is_log { x.max(f64::MIN_POSITIVE).ln() } else { x };
        let share = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low));
        self.start + share.clamp(0.0, 1.0) * (self.end - self.start)
    }

    /// The ticks as (value, label).
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        if self.is_log { self.log_ticks() } else { self.linear_ticks() }
    }

    fn linear_ticks(&self) -> Vec<(f64, String)> {
        let step = nice_step((self.high - self.low) / 5.0);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|i| i as f64 * step).map(|x| (x, plain(x))).collect()
    }

    fn log_ticks(&self) -> Vec<(f64, String)> {
        let decades = (self.high / self.low).log10();
        let (first, last) =
            (self.low.log10().floor() as i32, (self.high.log10() + 1e-9).floor() as i32);
        let inside = |x: &f64| (self.low * (1.0 - 1e-9)..=self.high * (1.0 + 1e-9)).contains(x);
        // Ticks between powers of ten if there are few decades, only some powers if there are many.
        let within: &[f64] = if decades < 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let every = (decades / 7.0).ceil().max(1.0) as i32;
        let powers = (first..=last).filter(|power| power.rem_euclid(every) == 0);
        powers
            .flat_map(|power| within.iter().map(move |digit| digit * 10f64.powi(power)))
            .filter(inside)
            .map(|x| (x, plain(x)))
            .collect()
    }
}

/// 1, 2 or 5 times a power of ten, at least `least`.
fn nice_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0].map(|digit| digit * power).into_iter().find(|step| *step >= least);
    step.unwrap_or(10.0 * power)
}

/// A tick's label without superfluous digits.
fn plain(x: f64) -> String {
    if x != 0.0 && !(1e-3..1e6).contains(&x.abs()) {
        return format!("{x:.0e}");
    }
    let rounded = (x * 1e6).round() / 1e6;
    format!("{rounded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: PlotAxis) -> Vec<String> {
        axis.ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_numbers_within_the_axis() {
        let linear = PlotAxis::linear(0.0, 5000.0, 0.0, 1.0);
        assert_eq!(labels(linear), ["0", "1000", "2000", "3000", "4000", "5000"]);
        let decades = PlotAxis::log(1e-3, 1e2, 0.0, 1.0);
        assert_eq!(labels(decades), ["0.001", "0.01", "0.1", "1", "10", "100"]);
        assert_eq!(labels(PlotAxis::log(1.5, 25.0, 0.0, 1.0)), ["2", "5", "10", "20"]);
        assert!(labels(PlotAxis::log(1e-8, 1e4, 0.0, 1.0)).len() <= 8);
    }

    #[test]
    fn values_land_on_their_pixels() {
        let axis = PlotAxis::log(1.0, 100.0, 300.0, 100.0);
        let pixels = [1.0, 10.0, 100.0, 1e9, 0.0].map(|value| axis.at(value));
        let right = [300.0, 200.0, 100.0, 100.0, 300.0];
        assert!(pixels.iter().zip(right).all(|(pixel, right)| (pixel - right).abs() < 1e-9));
    }
}
