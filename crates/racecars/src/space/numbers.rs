//! The numeric form of a point: one number per coordinate, for callers that work with arrays. A
//! numeric value is itself; any other value (string, boolean) is its position in the domain.

use super::{Domain, Entry, Space, Value};
use crate::error::{Error, Result};

impl Space {
    /// Whether the numeric form of a point equals its encoding: all coordinates are reals on a linear
    /// scale, and always active.
    pub fn is_plain(&self) -> bool {
        let is_plain = |entry: &Entry| entry.domain().is_plain() && entry.condition().is_none();
        self.entries().iter().all(is_plain)
    }

    /// Writes the numeric form of an encoded point. Both slices must have one number per coordinate. Inactive
    /// coordinates are NaN.
    ///
    /// ```
    /// use racecars::Space;
    ///
    /// let space = Space::builder().integer("n", 5, 9).categorical("mode", ["a", "b"]).build()?;
    /// let point = space.encode([("n", 7.into()), ("mode", "b".into())])?;
    /// let mut numbers = [0.0; 2];
    /// space.to_numbers(&point, &mut numbers);
    /// assert_eq!(numbers, [7.0, 1.0]);
    /// assert_eq!(space.from_numbers(&numbers)?, point);
    /// # Ok::<(), racecars::Error>(())
    /// ```
    pub fn to_numbers(&self, point: &[f64], numbers: &mut [f64]) {
        for entry in self.entries() {
            entry.to_numbers(&point[entry.range()], &mut numbers[entry.range()]);
        }
        if self.has_rules() {
            let inactive = self.entries().iter().zip(self.active(point)).filter(|(_, is)| !is);
            inactive.for_each(|(entry, _)| numbers[entry.range()].fill(f64::NAN));
        }
    }

    /// Encodes a point given in numeric form. The error names the number that is not allowed.
    pub fn from_numbers(&self, numbers: &[f64]) -> Result<Vec<f64>> {
        self.check_length(numbers)?;
        let mut point = Vec::with_capacity(numbers.len());
        for entry in self.entries() {
            for (i, &number) in numbers[entry.range()].iter().enumerate() {
                if number.is_nan() && entry.condition().is_some() {
                    point.push(number);
                    continue;
                }
                let code = encode(entry, number).map_err(|what| {
                    let coordinate = self.coordinate_name(entry.range().start + i);
                    Error::point(format!("coordinate `{coordinate}`: {what}"))
                })?;
                point.push(code);
            }
        }
        self.complete(point)
    }
}

impl Entry {
    /// Writes the numeric form of this entry's encoded coordinates.
    #[expect(clippy::expect_used, reason = "see the message")]
    fn to_numbers(&self, codes: &[f64], numbers: &mut [f64]) {
        const NUMERIC: &str = "a domain not encoded by position is numeric";
        match &self.domain {
            domain if self.is_by_position || domain.is_plain() => numbers.copy_from_slice(codes),
            // Exact, as both are integers up to 2^53.
            Domain::Integer { low, high, .. } => {
                let (low, high) = (*low as f64, *high as f64);
                let pairs = numbers.iter_mut().zip(codes);
                pairs.for_each(|(number, code)| *number = (low + code).min(high));
            }
            Domain::Levels(values) | Domain::Categorical(values) => {
                for (number, &code) in numbers.iter_mut().zip(codes) {
                    *number =
                        values[(code as usize).min(values.len() - 1)].as_real().expect(NUMERIC);
                }
            }
            domain => {
                for (number, &code) in numbers.iter_mut().zip(codes) {
                    *number = domain.decode(code).as_real().expect(NUMERIC);
                }
            }
        }
    }
}

/// Whether the numeric form of this domain's values is their position in the domain.
pub(super) fn is_by_position(domain: &Domain) -> bool {
    match domain {
        Domain::Levels(values) | Domain::Categorical(values) => {
            values.iter().any(|value| value.as_real().is_none())
        }
        Domain::Boolean => true,
        _ => false,
    }
}

#[expect(clippy::expect_used, reason = "see the message")]
fn encode(entry: &Entry, number: f64) -> Result<f64, String> {
    let domain = entry.domain();
    if !entry.is_by_position {
        return domain.encode(&Value::Real(number));
    }
    let count = entry.axis.count().expect("a domain encoded by position is discrete");
    if number.fract() == 0.0 && (0.0..count as f64).contains(&number) {
        Ok(number)
    } else {
        Err(format!("{number} is not a position from 0 to {}", count - 1))
    }
}
