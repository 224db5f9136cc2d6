//! A small convergence plot for the terminal, drawn in braille dots.

use crate::output::short;
use std::fmt::Write;

/// Width and height in characters. A character has 2 by 4 dots.
const WIDTH: usize = 64;
const HEIGHT: usize = 10;

/// The best value over evaluations as lines of text. The axis is logarithmic, over at most twelve decades,
/// if no value is negative. `None` if there is nothing to draw.
pub(crate) fn convergence(history: &[(u64, f64)], evaluations: u64) -> Option<String> {
    let (first, last) = (history.first()?, history.last()?);
    if history.len() < 2 || first.1 == last.1 || evaluations == 0 {
        return None;
    }
    let values = || history.iter().map(|&(_, value)| value);
    let greatest = first.1.max(last.1);
    let positive = values().filter(|value| *value > 0.0).fold(greatest, f64::min);
    let floor = positive.max(1e-12 * greatest);
    let is_log = values().all(|value| value >= 0.0) && greatest > 10.0 * first.1.min(last.1);
    let scale = |value: f64| if is_log { value.max(floor).ln() } else { value };
    let low = values().map(scale).fold(f64::INFINITY, f64::min);
    let high = values().map(scale).fold(f64::NEG_INFINITY, f64::max);

    let (columns, rows) = (2 * WIDTH, 4 * HEIGHT);
    let row_of = |value: f64| {
        let share = (high - scale(value)) / (high - low);
        ((share * (rows - 1) as f64).round() as usize).min(rows - 1)
    };
    let mut dots = vec![[0u8; WIDTH]; HEIGHT];
    let mut previous: Option<usize> = None;
    for column in 0..columns {
        let at = (column as u64 + 1) * evaluations / columns as u64;
        let known = history.partition_point(|&(evaluation, _)| evaluation <= at);
        let Some(&(_, value)) = known.checked_sub(1).and_then(|place| history.get(place)) else {
            continue;
        };
        let row = row_of(value);
        // A drop of several dots within a column is drawn as a line.
        let from = previous.unwrap_or(row);
        for row in from.min(row)..=from.max(row) {
            dots[row / 4][column / 2] |= braille_bit(column % 2, row % 4);
        }
        previous = Some(row);
    }

    let top = short(values().fold(f64::NEG_INFINITY, f64::max));
    let bottom = short(values().fold(f64::INFINITY, f64::min));
    let margin = top.len().max(bottom.len());
    let mut text = String::new();
    for (line, cells) in dots.iter().enumerate() {
        let label = match line {
            0 => top.as_str(),
            _ if line == HEIGHT - 1 => bottom.as_str(),
            _ => "",
        };
        let cells: String = cells.iter().map(|&cell| braille(cell)).collect();
        let _ = writeln!(text, "{label:>margin$} ┤{}", cells.trim_end_matches('\u{2800}'));
    }
    let axis = if is_log { "best value, log scale" } else { "best value" };
    let right = format!("{evaluations} evaluations");
    let gap = WIDTH.saturating_sub(axis.len() + right.len());
    let _ = writeln!(text, "{:>margin$} └{}", "", "─".repeat(WIDTH));
    let _ = write!(text, "{:>margin$}  {axis}{:gap$}{right}", "", "");
    Some(text)
}

/// The bit of a dot in a braille character.
fn braille_bit(column: usize, row: usize) -> u8 {
    match (column, row) {
        (0, 3) => 0x40,
        (_, 3) => 0x80,
        (0, row) => 1 << row,
        (_, row) => 8 << row,
    }
}

fn braille(bits: u8) -> char {
    char::from_u32(0x2800 + u32::from(bits)).unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_falling_curve_goes_from_top_left_to_bottom_right() {
        let history: Vec<(u64, f64)> = (1..=100).map(|i| (i, 1000.0 / i as f64)).collect();
        let plot = convergence(&history, 100).unwrap();
        let lines: Vec<&str> = plot.lines().collect();
        assert_eq!(lines.len(), HEIGHT + 2);
        assert!(lines[0].starts_with(" 1000 ┤") && lines[HEIGHT - 1].starts_with("10.00 ┤"));
        assert!(lines[0].chars().count() < lines[HEIGHT - 1].chars().count());
        assert!(lines[HEIGHT + 1].contains("log scale") && plot.ends_with("100 evaluations"));
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert_eq!(convergence(&[], 10), None);
        assert_eq!(convergence(&[(1, 2.0)], 10), None);
        assert_eq!(convergence(&[(1, 2.0), (2, 2.0)], 10), None);
        assert!(convergence(&[(1, 2.0), (2, -1.0)], 10).is_some());
    }
}
