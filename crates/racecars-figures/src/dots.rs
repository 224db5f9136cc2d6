//! Dot plots: a row for each case, with an open dot for one quantity and a filled one for another, both with bars. As
//! large as the charts of [`curves`](crate::curves), so that they fit into the same figure.

use crate::axis::PlotAxis;
use crate::curves::{BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH};
use crate::{FAINT, GRID, INK, Svg};

/// A dot plot.
#[derive(Debug, Clone)]
pub struct DotPlot {
    /// The title, which says what open and filled dots are.
    pub title: String,
    /// The label of the horizontal axis.
    pub x_label: String,
    /// The rows, from the top. The filled dot of the first one is what the others are compared with.
    pub rows: Vec<DotRow>,
}

/// A row.
#[derive(Debug, Clone)]
pub struct DotRow {
    /// The label at its end.
    pub label: String,
    /// The colour.
    pub color: &'static str,
    /// The open dot.
    pub open: Option<Dot>,
    /// The filled dot.
    pub filled: Option<Dot>,
}

/// A dot with its bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dot {
    /// The value.
    pub middle: f64,
    /// The lower end of the bar.
    pub low: f64,
    /// The upper end of the bar.
    pub high: f64,
}

const RADIUS: f64 = 4.5;
/// The distance between the two dots of a row.
const APART: f64 = 9.0;

impl DotPlot {
    /// Draws the plot.
    pub fn draw(&self) -> Svg {
        let mut svg = Svg::new(WIDTH, HEIGHT);
        svg.text(LEFT, 20.0, &self.title).size(14.0).bold().draw();
        let x = self.axis();
        for (value, label) in x.ticks() {
            let at = x.at(value);
            svg.line((at, TOP), (at, BOTTOM), GRID, 1.0);
            svg.text(at, BOTTOM + 18.0, &label).centered().color(FAINT).draw();
        }
        svg.line((LEFT, BOTTOM), (RIGHT, BOTTOM), FAINT, 1.0);
        svg.text(0.5 * (LEFT + RIGHT), BOTTOM + 36.0, &self.x_label).centered().draw();
        if let Some(baseline) = self.rows.first().and_then(|row| row.filled) {
            let at = x.at(baseline.middle);
            svg.polyline(&[(at, TOP), (at, BOTTOM)], FAINT, 1.0, "2 3");
        }
        let height = (BOTTOM - TOP) / self.rows.len().max(1) as f64;
        for (place, row) in self.rows.iter().enumerate() {
            let middle = TOP + height * (place as f64 + 0.5);
            let both = row.open.is_some() && row.filled.is_some();
            let shift = if both { 0.5 * APART } else { 0.0 };
            for (dot, y, is_open) in
                [(row.open, middle - shift, true), (row.filled, middle + shift, false)]
            {
                let Some(Dot { middle, low, high }) = dot else { continue };
                svg.line((x.at(low), y), (x.at(high), y), row.color, 1.5);
                svg.dot((x.at(middle), y), RADIUS, row.color);
                if is_open {
                    svg.dot((x.at(middle), y), RADIUS - 1.5, "#ffffff");
                }
            }
            svg.text(RIGHT + 18.0, middle + 4.0, &row.label).size(12.0).color(INK).draw();
        }
        svg
    }

    fn axis(&self) -> PlotAxis {
        let dots = || self.rows.iter().flat_map(|row| [row.open, row.filled]).flatten();
        let low = dots().map(|dot| dot.low).fold(f64::INFINITY, f64::min);
        let high = dots().map(|dot| dot.high).fold(f64::NEG_INFINITY, f64::max);
        if low > high {
            return PlotAxis::linear(0.0, 1.0, LEFT, RIGHT);
        }
        let room = 0.05 * (high - low).max(1e-3 * high.abs()).max(1e-9);
        PlotAxis::linear(low - room, high + room, LEFT, RIGHT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_and_filled_dots_are_within_the_plot() {
        let dot = |middle: f64| Some(Dot { middle, low: middle - 2.0, high: middle + 2.0 });
        let row = |label: &str, open, filled| DotRow {
            label: label.into(),
            color: "#000000",
            open,
            filled,
        };
        let plot = |rows| DotPlot { title: "Kept".into(), x_label: "accuracy".into(), rows };
        let rows = vec![row("a & b 86.0", dot(90.0), dot(86.0)), row("c", dot(80.0), None)];
        let drawn = plot(rows).draw().to_file();
        assert!(drawn.contains("a &amp; b 86.0") && drawn.contains("Kept"), "{drawn}");
        // Three dots, two of which are open.
        assert_eq!(drawn.matches("<circle").count(), 5, "{drawn}");
        for rows in [Vec::new(), vec![row("a", None, None)], vec![row("a", dot(0.0), None)]] {
            let drawn = plot(rows).draw().to_file();
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        }
    }
}
