//! Statistics of lists of numbers: summaries, quantiles, comparisons of two lists.

use serde::Serialize;

/// Mean, sample standard deviation, median and range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SummaryStatistics {
    /// The arithmetic mean.
    pub mean: f64,
    /// The sample standard deviation; 0 for one number.
    pub std: f64,
    /// The median.
    pub median: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
}

impl SummaryStatistics {
    /// The statistics of some numbers; `None` if there are none.
    pub fn of(numbers: &[f64]) -> Option<SummaryStatistics> {
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
        Some(SummaryStatistics { mean, std, median, min, max })
    }
}

/// The quantile `share` (0 to 1) of sorted numbers, linearly interpolated; NaN if there are none.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share.clamp(0.0, 1.0) * sorted.len().saturating_sub(1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    match (sorted.get(below), sorted.get(above)) {
        (Some(low), Some(high)) => low + (place - below as f64) * (high - low),
        _ => f64::NAN,
    }
}

/// Spearman's rank correlation of two lists of equal length; NaN where it is not defined.
pub fn spearman(a: &[f64], b: &[f64]) -> f64 {
    correlation(&ranks(a), &ranks(b))
}

/// The share of pairs, one number of each list, in which that of `a` is smaller; ties count half.
/// 0.5 is no difference. It is the Mann-Whitney statistic U divided by its maximum.
pub fn share_smaller(a: &[f64], b: &[f64]) -> f64 {
    let score = |(a, b): (&f64, &f64)| match a.total_cmp(b) {
        std::cmp::Ordering::Less => 1.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Greater => 0.0,
    };
    let pairs = a.iter().flat_map(|x| b.iter().map(move |y| (x, y)));
    pairs.map(score).sum::<f64>() / (a.len() * b.len()) as f64
}

/// The rank of each number, from 1; equal numbers have the mean of their ranks.
fn ranks(numbers: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by(|&i, &j| numbers[i].total_cmp(&numbers[j]));
    let mut ranks = vec![0.0; numbers.len()];
    let mut first = 0;
    for equal in order.chunk_by(|&i, &j| numbers[i] == numbers[j]) {
        let shared = first as f64 + 0.5 * (equal.len() + 1) as f64;
        equal.iter().for_each(|&place| ranks[place] = shared);
        first += equal.len();
    }
    ranks
}

/// Pearson's correlation.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (a - mean_a, b - mean_b);
        ab += a * b;
        aa += a * a;
        bb += b * b;
    }
    ab / (aa * bb).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_mean_deviation_median_and_range() {
        let summary = SummaryStatistics::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((summary.mean, summary.median, summary.min, summary.max), (2.5, 2.5, 1.0, 4.0));
        assert!((summary.std - (5.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(SummaryStatistics::of(&[7.0]).unwrap().std, 0.0);
        assert_eq!(SummaryStatistics::of(&[]), None);
    }

    #[test]
    fn quantiles_lie_between_neighbours() {
        let sorted = [1.0, 2.0, 3.0, 5.0];
        let quantiles = [0.0, 0.5, 1.0, 0.9].map(|share| quantile(&sorted, share));
        assert_eq!(&quantiles[..3], &[1.0, 2.5, 5.0]);
        assert!((quantiles[3] - 4.4).abs() < 1e-12);
        assert_eq!(quantile(&[7.0], 0.3), 7.0);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn spearman_looks_at_ranks_only_and_shares_ties() {
        assert!((spearman(&[1.0, 2.0, 3.0], &[0.1, 10.0, 1e9]) - 1.0).abs() < 1e-12);
        assert!((spearman(&[1.0, 2.0, 3.0], &[3.0, 2.0, -1.0]) + 1.0).abs() < 1e-12);
        // The ranks are 1, 2.5, 2.5, 4, 5 and 2, 1, 3.5, 3.5, 5.
        let (a, b) = ([1.0, 2.0, 2.0, 4.0, 5.0], [3.0, 1.0, 4.0, 4.0, 9.0]);
        assert!((spearman(&a, &b) - 29.0 / 38.0).abs() < 1e-12);
        assert!(spearman(&[1.0, 1.0], &[1.0, 2.0]).is_nan());
    }

    #[test]
    fn the_share_of_smaller_pairs_counts_ties_half() {
        assert_eq!(share_smaller(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
        assert_eq!(share_smaller(&[3.0, 4.0], &[1.0, 2.0]), 0.0);
        assert_eq!(share_smaller(&[1.0, 2.0], &[1.0, 2.0]), 0.5);
    }
}
