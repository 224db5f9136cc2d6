//! A measured run as a figure: measures, shattering rate and best value over evaluations, and where
//! the condition held. SVG, written by hand.

use super::{Checkpoint, MeasuredRun};
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 744.0;
/// A panel's height, and the distance between the tops of two panels.
const HEIGHT: f64 = 150.0;
const PITCH: f64 = 202.0;
const TOP: f64 = 66.0;

/// The colour-blind safe palette of Okabe and Ito.
const BLUE: &str = "#0072b2";
const ORANGE: &str = "#d55e00";
const GREEN: &str = "#009e73";
const GREY: &str = "#777777";

/// The figure.
pub fn svg(measured: &MeasuredRun) -> String {
    let looks = &measured.checkpoints;
    let height = TOP + 2.0 * PITCH + HEIGHT + 96.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    let MeasuredRun { problem, dim, gamma, rho, seed, epsilon, .. } = measured;
    let title = format!("RACE-CARS on {problem}, n = {dim}");
    text(&mut svg, LEFT, 20.0, "start", "font-size=\"15\"", &title);
    let settings = format!("gamma = {gamma}, rho = {rho:.4}, epsilon = {epsilon}, seed {seed}");
    text(&mut svg, LEFT, 37.0, "start", "fill=\"#555555\"", &settings);

    let target = measured.target_log10;
    let measures = [
        PanelCurve::new("region", BLUE, "", looks, |look| Some(look.region_log10)),
        PanelCurve::new("hypotheses", ORANGE, "", looks, |look| Some(look.hypothesis_log10)),
        PanelCurve::new("mean region", BLUE, "4 3", looks, |look| Some(look.mean_log10)),
        PanelCurve::new("as printed", GREY, "4 3", looks, |look| Some(look.printed_mean_log10)),
        PanelCurve::new("target", GREEN, "1 3", looks, |_| target),
    ];
    let panel = FigurePanel::new(measured, 0, "measure, log10", &measures, None);
    panel.draw(&mut svg, &measures);

    let rates = [
        PanelCurve::new("of the target in the region", BLUE, "", looks, |look| look.region_share),
        PanelCurve::new("eta: in hypotheses, mean and range", ORANGE, "", looks, |look| look.eta),
    ];
    let panel = FigurePanel::new(measured, 1, "share of the target", &rates, Some((0.0, 1.0)));
    panel.band(&mut svg, looks);
    panel.draw(&mut svg, &rates);
    if target.is_none() {
        let (x, y) = (0.5 * (LEFT + RIGHT), panel.top + 0.5 * HEIGHT);
        text(&mut svg, x, y, "middle", "fill=\"#555555\"", "no sample hit the target");
    }

    let level = epsilon.log10();
    let gaps = [
        PanelCurve::new("best value - optimum", BLUE, "", looks, |look| {
            (look.gap > 0.0).then(|| look.gap.log10())
        }),
        PanelCurve::new("epsilon", GREEN, "1 3", looks, |_| Some(level)),
    ];
    let panel = FigurePanel::new(measured, 2, "gap, log10", &gaps, None);
    panel.draw(&mut svg, &gaps);

    let bottom = panel.top + HEIGHT;
    text(&mut svg, 0.5 * (LEFT + RIGHT), bottom + 34.0, "middle", "", "evaluations");
    let top = bottom + 44.0;
    panel
        .strip(&mut svg, looks, top, "condition holds (exponent corrected)", |look| look.condition);
    panel.strip(&mut svg, looks, top + 20.0, "region covers the target", |look| look.covered);
    svg.push_str("</svg>\n");
    svg
}

/// A curve of a panel.
struct PanelCurve {
    name: &'static str,
    color: &'static str,
    dashes: &'static str,
    points: Vec<(u64, f64)>,
}

impl PanelCurve {
    fn new(
        name: &'static str,
        color: &'static str,
        dashes: &'static str,
        looks: &[Checkpoint],
        value: impl Fn(&Checkpoint) -> Option<f64>,
    ) -> PanelCurve {
        let point = |look: &Checkpoint| {
            value(look).filter(|value| value.is_finite()).map(|value| (look.evaluations, value))
        };
        PanelCurve { name, color, dashes, points: looks.iter().filter_map(point).collect() }
    }
}

/// One of the figure's coordinate systems.
struct FigurePanel {
    top: f64,
    label: &'static str,
    low: f64,
    high: f64,
    budget: u64,
}

impl FigurePanel {
    fn new(
        measured: &MeasuredRun,
        place: usize,
        label: &'static str,
        curves: &[PanelCurve],
        range: Option<(f64, f64)>,
    ) -> FigurePanel {
        let values = || curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.1));
        let (low, high) = range.unwrap_or_else(|| {
            let low = values().fold(f64::INFINITY, f64::min).floor();
            let high = values().fold(f64::NEG_INFINITY, f64::max).ceil();
            if low < high { (low, high) } else { (-1.0, 1.0) }
        });
        let top = TOP + PITCH * place as f64;
        FigurePanel { top, label, low, high, budget: measured.budget }
    }

    fn x(&self, evaluations: u64) -> f64 {
        LEFT + (RIGHT - LEFT) * evaluations as f64 / self.budget as f64
    }

    fn y(&self, value: f64) -> f64 {
        self.top + HEIGHT * (self.high - value) / (self.high - self.low)
    }

    fn draw(&self, svg: &mut String, curves: &[PanelCurve]) {
        let bottom = self.top + HEIGHT;
        let _ = writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{}\" width=\"{}\" height=\"{HEIGHT}\" fill=\"none\" \
             stroke=\"#bbbbbb\"/>",
            self.top,
            RIGHT - LEFT,
        );
        for value in ticks(self.low, self.high) {
            let y = self.y(value);
            line(svg, (LEFT - 4.0, y), (LEFT, y), "#bbbbbb");
            text(svg, LEFT - 8.0, y + 4.0, "end", "", &short(value));
        }
        for value in ticks(0.0, self.budget as f64) {
            let x = self.x(value as u64);
            line(svg, (x, bottom), (x, bottom + 4.0), "#bbbbbb");
            text(svg, x, bottom + 17.0, "middle", "", &short(value));
        }
        let turn = format!("transform=\"rotate(-90 16 {0})\"", self.top + 0.5 * HEIGHT);
        text(svg, 16.0, self.top + 0.5 * HEIGHT, "middle", &turn, self.label);
        let mut x = LEFT;
        for curve in curves {
            self.curve(svg, curve);
            // The legend is above the panel; a letter is about 6.4 wide.
            let y = self.top - 9.0;
            let _ = writeln!(
                svg,
                "<line x1=\"{x}\" y1=\"{0}\" x2=\"{1}\" y2=\"{0}\" stroke=\"{2}\" \
                 stroke-width=\"2\" stroke-dasharray=\"{3}\"/>",
                y - 4.0,
                x + 22.0,
                curve.color,
                curve.dashes,
            );
            text(svg, x + 27.0, y, "start", "", curve.name);
            x += 46.0 + 6.4 * curve.name.len() as f64;
        }
    }

    fn curve(&self, svg: &mut String, curve: &PanelCurve) {
        let point = |&(evaluations, value): &(u64, f64)| {
            format!("{:.1},{:.1}", self.x(evaluations), self.y(value))
        };
        let points: Vec<String> = curve.points.iter().map(point).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" \
             stroke-dasharray=\"{}\"/>",
            points.join(" "),
            curve.color,
            curve.dashes,
        );
    }

    /// The range of eta.
    fn band(&self, svg: &mut String, looks: &[Checkpoint]) {
        let at = |look: &Checkpoint, value: Option<f64>| {
            value.map(|value| format!("{:.1},{:.1}", self.x(look.evaluations), self.y(value)))
        };
        let upper = looks.iter().filter_map(|look| at(look, look.eta_most));
        let lower = looks.iter().rev().filter_map(|look| at(look, look.eta_least));
        let points: Vec<String> = upper.chain(lower).collect();
        let _ = writeln!(
            svg,
            "<polygon points=\"{}\" fill=\"{ORANGE}\" fill-opacity=\"0.15\"/>",
            points.join(" ")
        );
    }

    /// A strip along the evaluations: green where a condition holds, orange where it does not, grey where
    /// that is unknown.
    fn strip(
        &self,
        svg: &mut String,
        looks: &[Checkpoint],
        top: f64,
        label: &str,
        holds: impl Fn(&Checkpoint) -> Option<bool>,
    ) {
        let Some(first) = looks.first() else { return };
        let mut from = first.evaluations;
        for run in looks.chunk_by(|a, b| holds(a) == holds(b)) {
            let Some(last) = run.last() else { continue };
            let color = match holds(last) {
                Some(true) => GREEN,
                Some(false) => ORANGE,
                None => GREY,
            };
            let (left, right) = (self.x(from), self.x(last.evaluations));
            let _ = writeln!(
                svg,
                "<rect x=\"{left:.1}\" y=\"{top}\" width=\"{:.1}\" height=\"14\" fill=\"{color}\" \
                 fill-opacity=\"0.35\"/>",
                right - left,
            );
            from = last.evaluations;
        }
        let x = self.x(first.evaluations) + 6.0;
        text(svg, x, top + 11.0, "start", "font-size=\"11\"", label);
    }
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, more: &str, text: &str) {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {more}>{escaped}</text>"
    );
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), color: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{color}\"/>",
        from.0, from.1, to.0, to.1
    );
}

/// About four to eight round numbers from `low` to `high`.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let step = power * steps.into_iter().find(|step| step * power >= rough).unwrap_or(10.0);
    let (first, last) = ((low / step).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|i| i as f64 * step).collect()
}

/// A tick's number without rounding errors.
fn short(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    format!("{}", rounded + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks(0.0, 1.0), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(ticks(-7.0, 0.0), [-6.0, -4.0, -2.0, 0.0]);
        assert_eq!(ticks(0.0, 2000.0), [0.0, 500.0, 1000.0, 1500.0, 2000.0]);
        assert_eq!(short(0.6000000000000001), "0.6");
        assert_eq!(short(-0.0), "0");
    }

    #[test]
    fn the_figure_has_every_curve() {
        let measurement = super::super::Measurement {
            problem: "sphere".into(),
            dim: 2,
            budget: 150,
            gamma: Some(0.95),
            rho: None,
            lambda: None,
            seed: 1,
            epsilon: 1.0,
            samples: 100,
        };
        let figure = svg(&measurement.run(|_| {}).unwrap());
        assert_eq!(figure.matches("<polyline").count(), 5 + 2 + 2);
        assert!(figure.contains("sphere, n = 2") && figure.ends_with("</svg>\n"));
        assert!(!figure.contains("NaN") && !figure.contains("inf"));
    }
}
