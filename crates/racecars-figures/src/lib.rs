//! Presenting the results of experiments: figures, summary statistics, the report page.
//!
//! Figures are SVG written by hand: no fonts, no libraries, the same bytes on every machine.
//!
//! - [`curves`]: lines with bands over a linear axis, directly labelled
//! - [`dots`]: dots with bars, a row for each case
//! - [`heat_map`]: columns of coloured cells, with the best cell of each column joined by a line
//! - [`Svg`]: the elements of a drawing; `axis` has scales and their ticks
//! - [`statistics`]: means, quantiles, rank correlations
//! - [`page`]: the HTML page of the paper's experiments, assembled from sections
//! - [`files`]: writing files atomically

mod axis;
pub mod curves;
pub mod dots;
pub mod files;
pub mod heat_map;
pub mod page;
pub mod statistics;
mod svg;

pub use svg::{Svg, SvgText, escape};

/// The colour of axes, and of what others are compared with.
pub const FAINT: &str = "#767676";
/// The text colour, and that of grids.
const INK: &str = "#222222";
const GRID: &str = "#e4e4e4";

/// A number with three significant digits.
pub fn number(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 || !x.is_finite() {
        return format!("{x}");
    }
    if !(1e-3..1e6).contains(&size) {
        return format!("{x:.1e}");
    }
    let decimals = (2 - size.log10().floor() as i32).clamp(0, 5) as usize;
    format!("{x:.decimals$}")
}

/// A figure of several drawings, `across` in a row, with a title above.
pub fn grid(title: &str, drawings: &[Svg], across: usize) -> Svg {
    const TITLE: f64 = 34.0;
    let width = drawings.iter().map(Svg::width).fold(0.0, f64::max);
    let height = drawings.iter().map(Svg::height).fold(0.0, f64::max);
    let across = across.clamp(1, drawings.len().max(1));
    let down = drawings.len().div_ceil(across);
    let mut figure = Svg::new(width * across as f64, TITLE + height * down as f64);
    figure.text(14.0, 22.0, title).size(15.0).bold().draw();
    for (place, drawing) in drawings.iter().enumerate() {
        let (row, column) = (place / across, place % across);
        figure.place(width * column as f64, TITLE + height * row as f64, drawing);
    }
    figure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let shown = [0.0, 0.03021, 2.7, 25.34, 638.4, 12345.6, 2.13e-6].map(number);
        assert_eq!(shown, ["0", "0.0302", "2.70", "25.3", "638", "12346", "2.1e-6"]);
    }

    #[test]
    fn a_grid_fits_all_its_drawings() {
        let drawing = Svg::new(100.0, 50.0);
        let figure = grid("five", &vec![drawing; 5], 2);
        assert_eq!((figure.width(), figure.height()), (200.0, 34.0 + 150.0));
    }
}
