//! Summaries of a list of numbers.

use serde::Serialize;

/// Mean, sample standard deviation, median and range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// The arithmetic mean.
    pub mean: f64,
    /// The sample standard deviation; 0 for one number.
    pub std: f64,
    /// The median.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Summary {
    /// The summary of some numbers, or `None` of none.
    pub fn of(numbers: &[f64]) -> Option<Summary> {
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let count = numbers.len() as f64;
        let mean = numbers.iter().sum::<f64>() / count;
        let squares: f64 = numbers.iter().map(|x| (x - mean) * (x - mean)).sum();
        let std = if numbers.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            0 => 0.5 * (sorted[middle - 1] + sorted[middle]),
            _ => sorted[middle],
        };
        Some(Summary { mean, std, median, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_what_it_says() {
        let summary = Summary::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((summary.mean, summary.median, summary.min, summary.max), (2.5, 2.5, 1.0, 4.0));
        assert!((summary.std - (5.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(Summary::of(&[7.0]).unwrap().std, 0.0);
        assert_eq!(Summary::of(&[]), None);
    }
}
