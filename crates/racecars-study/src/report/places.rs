//! Places along axes: every parameter's range as 0 to 1, the way it is searched (by ratios on a log
//! scale), which is all that charts need. A discrete value owns a cell and stands in its middle.

use racecars::space::Entry;
use racecars::{Axis, Domain, Interval, Scale, Space, Value};
use serde::Serialize;

/// How many labels of a list of values the page carries.
const LABELS: usize = 60;

/// Where a code stands.
pub(super) fn place(axis: Axis, code: f64) -> f64 {
    match axis {
        Axis::Ordered { last, log_from: Some(from) } => {
            let (low, high) = ((from - 0.5).ln(), (from + last + 0.5).ln());
            ((from + code).ln() - low) / (high - low)
        }
        _ => match (axis.count(), axis.extent()) {
            // Halving first keeps the widest finite ranges from overflowing.
            (None, Interval { low, high }) => {
                (0.5 * code - 0.5 * low) / (0.5 * high - 0.5 * low).max(f64::MIN_POSITIVE)
            }
            (Some(count), _) => (code + 0.5) / count as f64,
        },
    }
}

/// The places between which an interval of codes lies, whole cells where they are discrete.
pub(super) fn extent(axis: Axis, interval: Interval) -> (f64, f64) {
    let half_a_cell = if axis.count().is_some() { 0.5 } else { 0.0 };
    (place(axis, interval.low - half_a_cell), place(axis, interval.high + half_a_cell))
}

/// The code nearest to a place.
pub(super) fn code(axis: Axis, place: f64) -> f64 {
    let Interval { low, high } = axis.extent();
    let code = match axis {
        Axis::Ordered { last, log_from: Some(from) } => {
            let (least, most) = ((from - 0.5).ln(), (from + last + 0.5).ln());
            (least + place * (most - least)).exp().round() - from
        }
        _ => match axis.count() {
            None => low + 2.0 * place * (0.5 * high - 0.5 * low),
            Some(count) => (place * count as f64 - 0.5).round(),
        },
    };
    code.clamp(low, high)
}

/// The entry of each coordinate, in order.
pub(crate) fn entries(space: &Space) -> impl Iterator<Item = &Entry> {
    space.entries().iter().flat_map(|entry| entry.range().map(move |_| entry))
}

/// What the page needs to label an axis.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Range {
    kind: &'static str,
    low: f64,
    high: f64,
    log: bool,
    /// The number of values, where there is no continuum.
    count: Option<u64>,
    /// Whether neighbours are alike.
    ordered: bool,
    /// The values of a list of them.
    labels: Vec<String>,
}

impl Range {
    pub(super) fn of(domain: &Domain, axis: Axis) -> Range {
        let (low, high, log) = match domain {
            Domain::Real { low, high, scale } => (*low, *high, *scale == Scale::Log),
            Domain::Integer { low, high, scale } => {
                (*low as f64, *high as f64, *scale == Scale::Log)
            }
            Domain::Grid { low, high, .. } => (*low, *high, false),
            _ => (0.0, axis.extent().high, false),
        };
        let labels = match domain {
            Domain::Levels(values) | Domain::Categorical(values) => {
                values.iter().take(LABELS).map(Value::to_string).collect()
            }
            Domain::Boolean => vec!["false".into(), "true".into()],
            _ => Vec::new(),
        };
        let ordered = !matches!(axis, Axis::Unordered { .. });
        Range { kind: domain.kind(), low, high, log, count: axis.count(), ordered, labels }
    }
}

/// Places as base64 of 16-bit numbers, least byte first: an eighth of what JSON numbers take.
pub(super) fn pack(places: impl IntoIterator<Item = f32>) -> String {
    let bytes: Vec<u8> = (places.into_iter())
        .flat_map(|place| ((place.clamp(0.0, 1.0) * 65535.0).round() as u16).to_le_bytes())
        .collect();
    base64(&bytes)
}

pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i)) as usize & 63];
            text.push(if i <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_codes_go_back_and_forth() {
        let space = Space::builder()
            .real("a", -3.0, 5.0)
            .log_real("b", 1e-5, 1.0)
            .integer("c", 4, 9)
            .log_integer("d", 1, 1024)
            .categorical("e", ["x", "y", "z"])
            .build()
            .unwrap();
        for (i, middle) in [1.0, 1e-5f64.ln() / 2.0, 3.0, 22.0, 1.0].into_iter().enumerate() {
            let axis = space.axis(i);
            assert!((code(axis, 0.5) - middle).abs() < 1e-12, "{i}: {}", code(axis, 0.5));
            let Interval { low, high } = axis.extent();
            for c in [low, middle, high] {
                assert!((code(axis, place(axis, c)) - c).abs() < 1e-12, "{i} {c}");
            }
            assert_eq!(extent(axis, axis.extent()), (0.0, 1.0));
        }
    }

    #[test]
    fn base64_is_the_usual_one() {
        let texts = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
        assert_eq!(pack([0.0, 1.0]), "AAD//w==");
    }
}
