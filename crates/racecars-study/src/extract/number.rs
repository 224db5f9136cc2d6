//! Reading a number that a program printed. What can be read in more than one way, such as `1,5`, is not
//! read at all.

use std::borrow::Cow;

const ESCAPE: char = '\u{1b}';
/// What may stand before and after a number without being a part of it.
const OPENING: &[char] = &['(', '[', '{', '"', '\'', '`', ESCAPE];
const CLOSING: &[char] = &[')', ']', '}', '"', '\'', '`', ESCAPE, ',', ';', ':', '!', '?'];
/// What makes the number after it an operand, or its sign.
const OPERATORS: &[&str] =
    &["-", "\u{2212}", "\u{2013}", "\u{2014}", "+", "±", "+/-", "+-", "*", "×", "/", "^", "<", ">"];
/// What is printed where there is no value.
const MISSING: &[&str] = &["none", "null", "nil", "undefined", "n/a"];

/// A text without terminal sequences. Those that change only the look are removed; others, which may move
/// the cursor, become a lone escape character, so that what they part is not joined.
pub(super) fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains([ESCAPE, '\u{9b}', '\u{feff}']) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let kind = match c {
            ESCAPE => rest.next(),
            '\u{9b}' => Some('['),
            '\u{feff}' => continue,
            _ => {
                plain.push(c);
                continue;
            }
        };
        match kind {
            // CSI: parameters, then a final character.
            Some('[') => match rest.find(|c| !(' '..='?').contains(c)) {
                Some('m') => {}
                _ => plain.push(ESCAPE),
            },
            // OSC and other strings, up to BEL or ST (escape and a backslash).
            Some(']' | 'P' | 'X' | '^' | '_') => {
                if rest.find(|c| matches!(*c, '\u{7}' | ESCAPE)) == Some(ESCAPE) {
                    rest.next();
                }
            }
            // Character sets, as in `ESC ( B`.
            Some(' '..='/') => {
                rest.next();
            }
            _ => plain.push(ESCAPE),
        }
    }
    Cow::Owned(plain)
}

/// The one number that this text is, with brackets, quotes or punctuation around it perhaps, or `%`
/// behind it. NaN and infinities are numbers, so that they are noticed.
pub(super) fn one(text: &str) -> Option<f64> {
    let text = text.trim().trim_start_matches(OPENING).trim_end_matches(CLOSING);
    let text = text.strip_suffix('.').unwrap_or(text).trim_end_matches(CLOSING);
    decimal(text.strip_suffix('%').unwrap_or(text))
}

/// A number as C, Fortran, Python and others print it.
fn decimal(text: &str) -> Option<f64> {
    let text = text.replace('\u{2212}', "-");
    let digits = text.strip_prefix(['-', '+']).unwrap_or(&text);
    match digits.to_ascii_lowercase().as_str() {
        "nan" => return Some(f64::NAN),
        "inf" | "infinity" | "∞" => {
            let is_negative = text.starts_with('-');
            return Some(if is_negative { f64::NEG_INFINITY } else { f64::INFINITY });
        }
        // Microsoft's NaN and infinities.
        "1.#qnan" | "1.#snan" | "1.#ind" | "1.#inf" => return Some(f64::NAN),
        _ => {}
    }
    let is_decimal = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.bytes().all(|b| b.is_ascii_digit() || b".+-eEdD".contains(&b));
    is_decimal.then(|| text.replace(['d', 'D'], "e").parse().ok()).flatten()
}

/// The last number on a line, or `None`. The error is the text that may be a number or not.
pub(super) fn last(line: &str) -> Result<Option<f64>, &str> {
    let words = words(line);
    for (place, &(from, to)) in words.iter().enumerate().rev() {
        let word = &line[from..to];
        let before = place.checked_sub(1).map(|before| words[before]);
        match (one(word), before) {
            (None, _) if is_unclear(word) => return Err(word),
            (None, _) => {}
            (Some(_), Some((start, end))) if is_joined(line, (start, end), (from, to)) => {
                return Err(&line[start..to]);
            }
            (Some(number), _) => return Ok(Some(number)),
        }
    }
    Ok(None)
}

/// Whether a word that is not one number may have one in it. A word that begins with a letter is a word,
/// unless a number stands at its end after a sign or the like, as in `loss:3` and `run-3`.
fn is_unclear(word: &str) -> bool {
    let bare = word.trim_start_matches(OPENING).trim_end_matches(CLOSING);
    let is_quoted =
        (word.chars().next().filter(|c| matches!(c, '"' | '\''))).is_some_and(|quote| {
            word[1..].trim_end_matches([')', ']', '}', ',', ':']).ends_with(quote)
        });
    // The exponent of `1.5 E3`.
    let is_exponent = bare.strip_prefix(['e', 'E', 'd', 'D']).is_some_and(|digits| {
        digits.ends_with(|c: char| c.is_ascii_digit())
            && digits.bytes().all(|b| b.is_ascii_digit() || b"+-".contains(&b))
    });
    match bare.chars().find(|c| c.is_alphanumeric()) {
        None => false,
        Some(c) if c.is_numeric() || is_exponent => true,
        Some(_) if MISSING.contains(&bare.to_ascii_lowercase().as_str()) => true,
        Some(_) => {
            let parts = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'));
            !is_quoted && bare.rsplit_once(parts).is_some_and(|(_, end)| one(end).is_some())
        }
    }
}

/// Whether a number may go on from the word before it: `1 000 000`, `- 5`, `2 ± 1`, `1.5E 03`.
fn is_joined(line: &str, before: (usize, usize), (from, to): (usize, usize)) -> bool {
    let (word, before, between) =
        (&line[from..to], &line[before.0..before.1], &line[before.1..from]);
    if OPERATORS.contains(&before) {
        return true;
    }
    let before = before.trim_start_matches(OPENING).trim_start_matches(['-', '+', '\u{2212}']);
    let is_exponent_due = before.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && before.trim_end_matches(['-', '+']).ends_with(['e', 'E', 'd', 'D']);
    let is_blank = between.chars().count() == 1 && between != "\t" && between.trim().is_empty();
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    // Of `1,000 000`.
    let group = before.rsplit([',', '\'', '_']).next().unwrap_or(before);
    let is_group = (1..=3).contains(&group.len()) && group.bytes().all(|b| b.is_ascii_digit());
    // A number does not begin with 0, but a later group may.
    is_exponent_due
        || is_blank && digits == 3 && is_group && (group.len() == 3 || !group.starts_with('0'))
}

/// The words of a line, as ranges. They end at blanks, `=`, `;`, `|`, at a comma unless it is between two
/// digits, and at the parenthesis of `tensor(0.5)`.
fn words(line: &str) -> Vec<(usize, usize)> {
    let mut words = Vec::new();
    let mut start = None;
    let mut last = ' ';
    let mut rest = line.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        let next = rest.peek().map_or(' ', |&(_, c)| c);
        let is_end = match c {
            '=' | ';' | '|' => true,
            ',' => !(last.is_ascii_digit() && next.is_ascii_digit()),
            '(' => {
                let word = start.map_or("", |start| &line[start..at]);
                let word = word.trim_start_matches(OPENING).trim_start_matches(['-', '+']);
                word.starts_with(|c: char| c.is_alphabetic() || c == '_')
                    && (last.is_alphanumeric() || last == '_')
            }
            _ => c.is_whitespace(),
        };
        match (is_end, start) {
            (true, Some(from)) => words.push((from, at)),
            (false, None) => start = Some(at),
            _ => {}
        }
        if is_end {
            start = None;
        }
        last = c;
    }
    words.extend(start.map(|start| (start, line.len())));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_number_of_a_line() {
        let cases = [
            ("3", 3.0),
            ("-3", -3.0),
            ("+3.5", 3.5),
            (".5", 0.5),
            ("-.5", -0.5),
            ("7.", 7.0),
            ("0.25.", 0.25),
            ("1e5", 1e5),
            ("1.5E+003", 1500.0),
            ("0.15D+04", 1500.0),
            ("-1d-3", -1e-3),
            ("\u{2212}2.5", -2.5),
            ("1e\u{2212}3", 1e-3),
            ("12%", 12.0),
            ("(12%).", 12.0),
            ("0123", 123.0),
            ("loss: 0.25", 0.25),
            ("loss=0.25", 0.25),
            ("loss = -0.25", -0.25),
            ("loss=3,", 3.0),
            ("epoch 3/10 loss 0.25", 0.25),
            ("10:32:07 loss 0.25", 0.25),
            ("2026-11-17 took 12ms, loss 0.25", 0.25),
            ("0.25 (best 0.2)", 0.2),
            ("loss 0.25 (epoch 7)", 7.0),
            ("[0.1, 0.2]", 0.2),
            ("[0.1 0.2]", 0.2),
            ("(0.5)", 0.5),
            ("'0.5'", 0.5),
            ("\"0.5\",", 0.5),
            ("n=3,loss=0.25", 0.25),
            ("a,b,.5", 0.5),
            ("3,-4", -4.0),
            ("0.1;0.2", 0.2),
            ("| loss | 0.25 |", 0.25),
            ("loss -> 0.25", 0.25),
            ("loss := 0.25", 0.25),
            ("result: 12 v2 x_3", 12.0),
            ("0.25 model-3.pt", 0.25),
            ("0.25 /tmp/run3/model.pt", 0.25),
            ("größe 5 größer", 5.0),
            ("tensor(0.2500, grad_fn=<MeanBackward0>)", 0.25),
            ("tensor(0.2500, device='cuda:0')", 0.25),
            ("np.float64(0.25)", 0.25),
            ("Some(0.25)", 0.25),
            ("3\t100", 100.0),
            ("3  100", 100.0),
            ("0 100", 100.0),
            ("3 1000", 1000.0),
            ("1000 100", 100.0),
            ("3 -100", -100.0),
            ("\u{1b}[32m0.25\u{1b}[0m", 0.25),
            ("\u{1b}[1;31mloss\u{1b}[0m=\u{1b}[38;5;9m0.\u{1b}[1m25\u{1b}(B\u{1b}[m", 0.25),
            ("\u{1b}]0;title 9\u{7}0.25\u{1b}[K", 0.25),
            ("\u{1b}]8;;http://a/1\u{1b}\\0.25\u{1b}]8;;\u{1b}\\", 0.25),
            ("\u{9b}32m0.25", 0.25),
            ("\u{feff}0.25", 0.25),
            ("50%\r100%\r loss 0.25", 0.25),
        ];
        for (line, value) in cases {
            assert_eq!(last(&without_escapes(line)), Ok(Some(value)), "{line:?}");
        }
    }

    #[test]
    fn what_may_be_another_number_is_not_read() {
        let cases = [
            ("loss 1,234.5", "1,234.5"),
            ("1,5", "1,5"),
            ("1.234,5", "1.234,5"),
            ("[1,2,3]", "[1,2,3]"),
            ("1 000", "1 000"),
            ("3 000 000", "000 000"),
            ("1 000 500", "000 500"),
            ("1 000 000.5", "000 000.5"),
            ("1,000 000", "1,000 000"),
            ("1.5E 03", "1.5E 03"),
            ("1.5E+ 03", "1.5E+ 03"),
            ("1.5 E3", "E3"),
            ("loss 12 345.6", "12 345.6"),
            ("1\u{a0}000", "1\u{a0}000"),
            ("1\u{202f}234\u{202f}567", "234\u{202f}567"),
            ("1_000", "1_000"),
            ("1'000", "1'000"),
            ("0x1F", "0x1F"),
            ("1.2.3", "1.2.3"),
            ("0.15-104", "0.15-104"),
            ("1e5e", "1e5e"),
            ("value 2e", "2e"),
            ("loss 0.25 in 12ms", "12ms"),
            ("0.25s", "0.25s"),
            ("1.5k", "1.5k"),
            ("3/10", "3/10"),
            ("at 10:32:07", "10:32:07"),
            ("2026-11-17", "2026-11-17"),
            ("3-4", "3-4"),
            ("0.25(3)", "0.25(3)"),
            ("0.25±0.01", "0.25±0.01"),
            ("0.25 ± 0.01", "± 0.01"),
            ("0.25 +/- 0.01", "+/- 0.01"),
            ("loss - 0.25", "- 0.25"),
            ("\u{2013}5", "\u{2013}5"),
            ("5-", "5-"),
            ("$12", "$12"),
            ("~0.25", "~0.25"),
            (">0.25", ">0.25"),
            ("#3", "#3"),
            ("1.5 x 10^3", "10^3"),
            ("0.25...", "0.25..."),
            ("epoch 3 loss-0.25", "loss-0.25"),
            ("0.25 cuda:0", "cuda:0"),
            ("w[2]", "w[2]"),
            ("{\"loss\":0.25}", "{\"loss\":0.25}"),
            ("epoch 3 loss None", "None"),
            ("epoch 3 loss=n/a", "n/a"),
            ("\u{665}", "\u{665}"),
            ("\u{ff15}", "\u{ff15}"),
            ("10²", "10²"),
            ("0.2\u{8}5", "0.2\u{8}5"),
            ("0.2\u{fffd}5", "0.2\u{fffd}5"),
            ("1\u{1b}[1C000", "1\u{1b}000"),
        ];
        for (line, unclear) in cases {
            assert_eq!(last(&without_escapes(line)), Err(unclear), "{line:?}");
        }
        for line in ["", "done.", "version v1.2.3", "nano info", "loss: -", "...", "\u{1b}[0m"] {
            assert_eq!(last(&without_escapes(line)), Ok(None), "{line:?}");
        }
    }

    #[test]
    fn what_is_not_finite_is_noticed() {
        for line in
            ["loss nan", "-nan(ind)", "NaN,", "3 inf", "-Infinity", "1.#QNAN", "-1.#IND", "∞"]
        {
            assert!(last(line).unwrap().is_some_and(|value| !value.is_finite()), "{line}");
        }
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_printed(bits: u64, before in "[a-z ]{0,9}[ =]") {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            for text in [format!("{value}"), format!("{value:e}"), format!("{value:?}"), format!("{value:E}")] {
                let read = last(&format!("{before}{text} end")).unwrap().map(f64::to_bits);
                prop_assert_eq!(read, Some(bits));
                let fortran = text.replace(['e', 'E'], "D");
                prop_assert_eq!(one(&fortran).map(f64::to_bits), Some(bits));
            }
        }

        /// No text makes it panic, and a number that is read stands there as it is.
        #[test]
        fn any_text_is_read_or_not(line in "[-+0-9.,eEdD _'x%()\\[\\]=:;a\u{1b}\u{a0}\u{2212}±]{0,12}") {
            if let Ok(Some(value)) = last(&line) {
                let holds = |part: &str| decimal(part).is_some_and(|one| one.to_bits() == value.to_bits());
                let parts = line.split(|c: char| !(c.is_ascii_alphanumeric() || "+-.\u{2212}".contains(c)));
                prop_assert!(
                    value.is_nan() || parts.clone().any(|part| holds(part) || holds(part.trim_end_matches('.'))),
                    "{:?} was read as {}", line, value
                );
            }
        }
    }
}
