//! Printing results: tables, numbers with few digits, JSON.

use comfy_table::{CellAlignment, LineStyle, Table, presets};
use racecars::{Decision, MemberAccount, Portfolio};
use serde::Serialize;
use std::borrow::Cow;
use std::io::Write;

/// Prints a line on standard output, without [control characters](visible). Unlike `println!` it reports a
/// closed pipe instead of panicking.
pub(crate) fn print(text: impl std::fmt::Display) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", visible(&text.to_string()))?;
    Ok(())
}

/// Prints a line on standard error, without [control characters](visible).
pub(crate) fn warn(text: impl std::fmt::Display) {
    eprintln!("{}", visible(&text.to_string()));
}

/// A text with its control characters as JSON writes them, except for line ends and tabs: what a program
/// printed must not move the cursor, retitle the window or turn the direction of writing.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let is_control = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| match is_control(c) {
        true => format!("\\u{:04x}", u32::from(c)),
        false => c.to_string(),
    };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Prints a value as JSON.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(serde_json::to_string_pretty(value)?)
}

/// A table with these headings. The first `words` columns are left-aligned, the others right-aligned.
pub(crate) fn table(headings: &[&str], words: usize) -> Table {
    let mut table = Table::new();
    let rule = LineStyle::none().fill('─').junction('─');
    table.load_style(presets::NOTHING.header_separator(rule)).set_header(headings.to_vec());
    for column in table.column_iter_mut().skip(words) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The evaluations and improvements of a portfolio's members, and its decisions.
pub(crate) fn portfolio_table(portfolio: &Portfolio) -> String {
    let mut members = table(&["member", "evaluations", "improvements", "best"], 1);
    for MemberAccount { name, evaluations, improvements, best, .. } in &portfolio.members {
        let best = best.map_or("none".to_string(), short);
        members.add_row([name.clone(), evaluations.to_string(), improvements.to_string(), best]);
    }
    let mut text = format!("{members}");
    for Decision { at, what, .. } in &portfolio.decisions {
        text += &format!("\n{at:>8}  {what}");
    }
    text
}

/// A number with about four significant digits.
pub(crate) fn short(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 || !x.is_finite() {
        return format!("{x}");
    }
    if !(1e-3..1e6).contains(&size) {
        return format!("{x:.2e}");
    }
    let decimals = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
    format!("{x:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::{short, visible};

    #[test]
    fn control_characters_are_shown_and_json_stays_json() {
        let text = "a\u{1b}[2J\u{7f}\u{9b}31m\u{202e}\r\n\tβ";
        assert_eq!(visible(text), "a\\u001b[2J\\u007f\\u009b31m\\u202e\\u000d\n\tβ");
        let json = serde_json::to_string_pretty(&[text]).unwrap();
        assert_eq!(serde_json::from_str::<[String; 1]>(&visible(&json)).unwrap(), [text]);
    }

    #[test]
    fn numbers_have_about_four_digits() {
        let shown = [0.0, 1.0, -0.012345, 123.456, 98765.4, 1.5e-7, 2e9].map(short);
        assert_eq!(shown, ["0", "1.000", "-0.01235", "123.5", "98765", "1.50e-7", "2.00e9"]);
    }
}
