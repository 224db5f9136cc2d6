//! Convergence curves: means with bands, each labelled at its end with its name and final value, on a
//! logarithmic or linear axis.

use crate::axis::PlotAxis;
use crate::{FAINT, GRID, INK, Svg};

/// A chart of curves.
#[derive(Debug, Clone)]
pub struct Chart {
    /// The title.
    pub title: String,
    /// The label of the horizontal axis.
    pub x_label: String,
    /// The label of the vertical axis.
    pub y_label: String,
    /// The ends of a linear vertical axis; `None` for a logarithmic one that fits the curves.
    pub linear: Option<(f64, f64)>,
    /// The curves, the most important first.
    pub curves: Vec<Curve>,
}

/// One curve.
#[derive(Debug, Clone)]
pub struct Curve {
    /// The label at its end.
    pub label: String,
    /// How it is drawn.
    pub style: Style,
    /// Its points, from left to right.
    pub samples: Vec<CurvePoint>,
}

/// Colour, line width and dash pattern (empty for none).
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// The colour.
    pub color: &'static str,
    /// The line's width.
    pub width: f64,
    /// The dash pattern.
    pub dash: &'static str,
}

/// A point of a curve with its band.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// The horizontal coordinate.
    pub x: f64,
    /// The curve's value.
    pub middle: f64,
    /// The lower end of the band.
    pub low: f64,
    /// The upper end of the band.
    pub high: f64,
}

pub(crate) const WIDTH: f64 = 575.0;
pub(crate) const HEIGHT: f64 = 350.0;
pub(crate) const LEFT: f64 = 66.0;
pub(crate) const RIGHT: f64 = 408.0;
pub(crate) const TOP: f64 = 34.0;
pub(crate) const BOTTOM: f64 = 302.0;
/// The distance between two labels.
const LABEL_SPACING: f64 = 16.0;
/// Smaller values count as 0 and end the axis.
const FLOOR: f64 = 1e-8;

impl Chart {
    /// Draws the chart.
    pub fn draw(&self) -> Svg {
        let mut svg = Svg::new(WIDTH, HEIGHT);
        svg.text(LEFT, 20.0, &self.title).size(14.0).bold().draw();
        let (x, y) = self.axes();
        self.draw_axes(&mut svg, &x, &y);
        // The most important curve last, on top.
        for curve in self.curves.iter().rev() {
            let drawn = curve.above_floor();
            let band = |end: fn(&CurvePoint) -> f64| drawn.iter().map(move |s| (s.x, end(s)));
            let outline = band(|s| s.high).chain(band(|s| s.low).rev());
            let outline: Vec<_> = outline.map(|(px, py)| (x.at(px), y.at(py))).collect();
            svg.polygon(&outline, curve.style.color, 0.13);
        }
        for curve in self.curves.iter().rev() {
            let Style { color, width, dash } = curve.style;
            let line: Vec<_> =
                curve.above_floor().iter().map(|s| (x.at(s.x), y.at(s.middle))).collect();
            svg.polyline(&line, color, width, dash);
        }
        self.draw_labels(&mut svg, &y);
        svg
    }

    fn axes(&self) -> (PlotAxis, PlotAxis) {
        let samples = || self.curves.iter().flat_map(|curve| &curve.samples);
        let last = samples().map(|s| s.x).fold(1.0, f64::max);
        let x = PlotAxis::linear(0.0, last, LEFT, RIGHT);
        if let Some((low, high)) = self.linear {
            return (x, PlotAxis::linear(low, high, BOTTOM, TOP));
        }
        let low = samples().map(|s| s.low).fold(f64::INFINITY, f64::min);
        let high = samples().map(|s| s.high).fold(2.0 * FLOOR, f64::max);
        let low = low.clamp(FLOOR, high / 2.0);
        (x, PlotAxis::log(low / 1.1, high * 1.1, BOTTOM, TOP))
    }

    fn draw_axes(&self, svg: &mut Svg, x: &PlotAxis, y: &PlotAxis) {
        for (value, label) in y.ticks() {
            let at = y.at(value);
            svg.line((LEFT, at), (RIGHT, at), GRID, 1.0);
            svg.text(LEFT - 7.0, at + 4.0, &label).flush_right().color(FAINT).draw();
        }
        for (value, label) in x.ticks() {
            let at = x.at(value);
            svg.line((at, BOTTOM), (at, BOTTOM + 4.0), FAINT, 1.0);
            svg.text(at, BOTTOM + 18.0, &label).centered().color(FAINT).draw();
        }
        svg.line((LEFT, BOTTOM), (RIGHT, BOTTOM), FAINT, 1.0);
        let middle = 0.5 * (LEFT + RIGHT);
        svg.text(middle, BOTTOM + 36.0, &self.x_label).centered().draw();
        svg.text(14.0, 0.5 * (TOP + BOTTOM), &self.y_label).centered().upright().draw();
    }

    /// Draws each label at the height of its curve's end, or as near as the other labels allow.
    fn draw_labels(&self, svg: &mut Svg, y: &PlotAxis) {
        let mut ends: Vec<(f64, &Curve)> = (self.curves.iter())
            .filter_map(|curve| Some((y.at(curve.samples.last()?.middle), curve)))
            .collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let places = spread(&ends.iter().map(|end| end.0).collect::<Vec<_>>());
        for ((end, curve), place) in ends.into_iter().zip(places) {
            let color = curve.style.color;
            svg.line((RIGHT + 2.0, end), (RIGHT + 14.0, place), color, 1.0);
            let text = svg.text(RIGHT + 18.0, place + 4.0, &curve.label).size(12.0).color(INK);
            if curve.style.width > 2.0 { text.bold().draw() } else { text.draw() }
        }
    }
}

impl Curve {
    /// The points up to the first that counts as 0.
    fn above_floor(&self) -> &[CurvePoint] {
        let first = self.samples.iter().position(|sample| sample.middle < FLOOR);
        &self.samples[..first.map_or(self.samples.len(), |first| first + 1)]
    }
}

/// Positions of labels for sorted heights: in the same order, at least `LABEL_SPACING` apart, and within
/// the chart.
fn spread(wanted: &[f64]) -> Vec<f64> {
    let mut places = wanted.to_vec();
    for i in 1..places.len() {
        places[i] = places[i].max(places[i - 1] + LABEL_SPACING);
    }
    let mut limit = BOTTOM;
    for place in places.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - LABEL_SPACING;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_apart_and_inside() {
        let places = spread(&[50.0, 295.0, 300.0, 302.0]);
        assert_eq!(places, [50.0, 270.0, 286.0, 302.0]);
        assert_eq!(spread(&[40.0, 100.0]), [40.0, 100.0]);
    }

    #[test]
    fn a_chart_has_its_names_and_no_broken_numbers() {
        let sample = |x: f64| CurvePoint { x, middle: 1.0 / x, low: 0.0, high: 2.0 / x };
        let style = Style { color: "#000000", width: 1.5, dash: "" };
        let samples = (1..50).map(f64::from).map(sample).collect();
        let curve = Curve { label: "a & b 0.02".into(), style, samples };
        let chart = Chart {
            title: "Sphere".into(),
            x_label: "evaluations".into(),
            y_label: "best".into(),
            linear: None,
            curves: vec![curve],
        };
        let drawn = chart.draw().to_file();
        assert!(drawn.contains("a &amp; b 0.02") && drawn.contains("Sphere"));
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"));
    }
}
