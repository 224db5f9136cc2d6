//! Heat maps: a column of cells for each case, with the best cells light, and the best cell of each
//! column joined by a line.

use crate::{FAINT, INK, Svg};

/// A heat map.
#[derive(Debug, Clone)]
pub struct HeatMap {
    /// The title.
    pub title: String,
    /// The label of the horizontal axis.
    pub x_label: String,
    /// The label of the vertical axis.
    pub y_label: String,
    /// The columns' names.
    pub columns: Vec<String>,
    /// The rows' names, from the bottom upwards.
    pub rows: Vec<String>,
    /// Only every n-th row is labelled.
    pub rows_per_name: usize,
    /// The value of each cell, by column; smaller is better.
    pub values: Vec<Vec<f64>>,
}

const WIDTH: f64 = 330.0;
const HEIGHT: f64 = 430.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 258.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 374.0;
/// The left edge of the colour scale next to the map.
const SCALE_LEFT: f64 = 272.0;
const SCALE_WIDTH: f64 = 12.0;

/// The colour-blind safe palette Cividis, from dark to light.
const CIVIDIS: [[f64; 3]; 9] = [
    [0.0, 34.0, 78.0],
    [18.0, 53.0, 112.0],
    [59.0, 73.0, 108.0],
    [87.0, 93.0, 109.0],
    [112.0, 113.0, 115.0],
    [138.0, 134.0, 120.0],
    [165.0, 156.0, 116.0],
    [195.0, 179.0, 105.0],
    [254.0, 232.0, 56.0],
];

impl HeatMap {
    /// The row with the least value of each column.
    pub fn best_rows(&self) -> Vec<usize> {
        self.values.iter().map(|column| least(column)).collect()
    }

    /// Draws the map. Colours run from the least to the greatest value of each column.
    pub fn draw(&self) -> Svg {
        let mut svg = Svg::new(WIDTH, HEIGHT);
        svg.text(LEFT, 20.0, &self.title).size(14.0).bold().draw();
        let width = (RIGHT - LEFT) / self.columns.len().max(1) as f64;
        let height = (BOTTOM - TOP) / self.rows.len().max(1) as f64;
        let center = |column: usize, row: usize| {
            (LEFT + width * (column as f64 + 0.5), BOTTOM - height * (row as f64 + 0.5))
        };
        for (column, values) in self.values.iter().enumerate() {
            for (row, share) in normalized(values).into_iter().enumerate() {
                let corner = (LEFT + width * column as f64, BOTTOM - height * (row + 1) as f64);
                // A little larger than the cell, to avoid visible seams.
                svg.rectangle(corner, (width + 0.3, height + 0.3), &color(share));
            }
        }
        let best: Vec<_> = self.best_rows().into_iter().enumerate().collect();
        let line: Vec<_> = best.iter().map(|&(column, row)| center(column, row)).collect();
        svg.polyline(&line, "#ffffff", 4.5, "");
        svg.polyline(&line, "#000000", 2.0, "");
        line.iter().for_each(|&at| svg.dot(at, 3.5, "#000000"));

        // With many columns, labels would overlap.
        let columns_per_name = self.columns.len().div_ceil(6);
        for (column, name) in self.columns.iter().enumerate().step_by(columns_per_name.max(1)) {
            let (x, _) = center(column, 0);
            svg.text(x, BOTTOM + 17.0, name).size(11.0).centered().color(FAINT).draw();
        }
        for (row, name) in self.rows.iter().enumerate().step_by(self.rows_per_name.max(1)) {
            let (_, y) = center(0, row);
            svg.text(LEFT - 6.0, y + 4.0, name).size(11.0).flush_right().color(FAINT).draw();
        }
        let middle = 0.5 * (LEFT + RIGHT);
        svg.text(middle, BOTTOM + 38.0, &self.x_label).centered().color(INK).draw();
        svg.text(14.0, 0.5 * (TOP + BOTTOM), &self.y_label).centered().upright().draw();
        draw_scale(&mut svg);
        svg
    }
}

/// The colours, from the best of a column to its worst.
fn draw_scale(svg: &mut Svg) {
    const STEPS: usize = 40;
    let height = (BOTTOM - TOP) / STEPS as f64;
    for step in 0..STEPS {
        let share = (step as f64 + 0.5) / STEPS as f64;
        let corner = (SCALE_LEFT, BOTTOM - height * (step + 1) as f64);
        svg.rectangle(corner, (SCALE_WIDTH, height + 0.3), &color(share));
    }
    let x = SCALE_LEFT + SCALE_WIDTH + 4.0;
    svg.text(x, TOP + 10.0, "worst").size(11.0).color(FAINT).draw();
    svg.text(x, BOTTOM, "best").size(11.0).color(FAINT).draw();
}

fn least(values: &[f64]) -> usize {
    let better = |a: &(usize, &f64), b: &(usize, &f64)| a.1.total_cmp(b.1);
    values.iter().enumerate().min_by(better).map_or(0, |(row, _)| row)
}

/// Values from 0 for the least to 1 for the greatest.
fn normalized(values: &[f64]) -> Vec<f64> {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let range = if high > low { high - low } else { 1.0 };
    values.iter().map(|value| (value - low) / range).collect()
}

/// Light for 0, the best, and dark for 1.
fn color(share: f64) -> String {
    let place = (1.0 - share.clamp(0.0, 1.0)) * (CIVIDIS.len() - 1) as f64;
    let below = (place.floor() as usize).min(CIVIDIS.len() - 2);
    let part = place - below as f64;
    let mix = |i: usize| {
        let (a, b) = (CIVIDIS[below][i], CIVIDIS[below + 1][i]);
        (a + part * (b - a)).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_each_column_is_found_and_light() {
        let map = HeatMap {
            title: "t".into(),
            x_label: "n".into(),
            y_label: "rho".into(),
            columns: vec!["50".into(), "100".into()],
            rows: vec!["0.1".into(), "0.2".into(), "0.3".into()],
            rows_per_name: 1,
            values: vec![vec![3.0, 1.0, 2.0], vec![1.0, 1.0, 1.0]],
        };
        assert_eq!(map.best_rows(), [1, 0]);
        assert_eq!(normalized(&map.values[0]), [1.0, 0.0, 0.5]);
        assert_eq!(normalized(&map.values[1]), [0.0; 3]);
        let drawn = map.draw().to_file();
        assert!(drawn.contains(&color(0.0)) && drawn.contains(&color(1.0)));
        assert_eq!((color(0.0).as_str(), color(1.0).as_str()), ("#fee838", "#00224e"));
    }
}
