//! Calibration: one number per label word, added to its logit, that takes a model's bias towards some of the
//! words away.
//!
//! The shifts b minimize the mean cross-entropy of softmax(logits + b), which makes the mean probability of
//! each word its share of the labels. Zhao et al. 2021 ("Calibrate Before Use") take the shifts from a text
//! without content; with labelled texts at hand they can be fitted.

/// The weight of |b|² / 2 beside the mean loss. It only matters if a word is nobody's label, where b would
/// otherwise be infinite.
const RIDGE: f64 = 1e-4;
/// Newton's method needs about 5 steps.
const MAX_STEPS: usize = 50;
/// The slope at which the shifts are found.
const TOLERANCE: f64 = 1e-10;

/// Fits the shifts to rows of one logit per label word; `labels` has the right word of each row. There are no
/// random numbers, and the sum of the shifts is 0.
pub fn fit(logits: &[f32], words: usize, labels: &[usize]) -> Vec<f64> {
    let mut shifts = vec![0.0; words];
    let mut now = slope(logits, &shifts, labels);
    for _ in 0..MAX_STEPS {
        if now.gradient.iter().all(|x| x.abs() < TOLERANCE) {
            break;
        }
        let step = solve(now.curvature.clone(), now.gradient.clone());
        let downhill: f64 = step.iter().zip(&now.gradient).map(|(a, b)| a * b).sum();
        // The loss is convex, so that halving the step ends.
        let mut share = 1.0;
        let next = loop {
            let there: Vec<f64> = shifts.iter().zip(&step).map(|(b, s)| b - share * s).collect();
            let value = slope(logits, &there, labels);
            if value.loss <= now.loss - 1e-4 * share * downhill || share < 1e-9 {
                break (there, value);
            }
            share *= 0.5;
        };
        if next.1.loss >= now.loss {
            break;
        }
        (shifts, now) = next;
    }
    let mean = shifts.iter().sum::<f64>() / words as f64;
    shifts.iter().map(|b| b - mean).collect()
}

/// The logits with the shifts added.
pub fn shifted(logits: &[f32], shifts: &[f64]) -> Vec<f32> {
    let rows = logits.chunks(shifts.len().max(1));
    rows.flat_map(|row| row.iter().zip(shifts).map(|(x, b)| (f64::from(*x) + b) as f32)).collect()
}

/// The loss at some shifts with its first and second derivatives.
struct Slope {
    loss: f64,
    gradient: Vec<f64>,
    /// Row by row.
    curvature: Vec<f64>,
}

fn slope(logits: &[f32], shifts: &[f64], labels: &[usize]) -> Slope {
    let words = shifts.len();
    let weight = 1.0 / labels.len().max(1) as f64;
    let mut gradient: Vec<f64> = shifts.iter().map(|b| RIDGE * b).collect();
    let mut curvature = vec![0.0; words * words];
    (0..words).for_each(|i| curvature[i * words + i] = RIDGE);
    let mut loss = 0.5 * RIDGE * shifts.iter().map(|b| b * b).sum::<f64>();
    for (row, &label) in logits.chunks_exact(words).zip(labels) {
        let row: Vec<f64> = row.iter().zip(shifts).map(|(x, b)| f64::from(*x) + b).collect();
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let shares: Vec<f64> = row.iter().map(|x| (x - most).exp()).collect();
        let sum: f64 = shares.iter().sum();
        loss += weight * (most + sum.ln() - row[label]);
        for (i, share) in shares.iter().map(|x| x / sum).enumerate() {
            gradient[i] += weight * (share - f64::from(u8::from(i == label)));
            for (j, other) in shares.iter().map(|x| x / sum).enumerate() {
                let same = if i == j { share } else { 0.0 };
                curvature[i * words + j] += weight * (same - share * other);
            }
        }
    }
    Slope { loss, gradient, curvature }
}

/// Solves a symmetric positive definite system by elimination.
fn solve(mut a: Vec<f64>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for i in 0..n {
        for j in i + 1..n {
            let factor = a[j * n + i] / a[i * n + i];
            (i..n).for_each(|k| a[j * n + k] -= factor * a[i * n + k]);
            b[j] -= factor * b[i];
        }
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| a[i * n + j] * b[j]).sum();
        b[i] = (b[i] - known) / a[i * n + i];
    }
    b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::{Loss, score};
    use racecars::random::Random;

    #[test]
    fn the_mean_probability_of_a_word_becomes_its_share_of_the_labels() {
        let mut random = Random::new(3);
        for words in [2, 3, 5] {
            let labels: Vec<usize> = (0..60).map(|i| i % words).collect();
            // A strong bias towards the first word.
            let logits: Vec<f32> = (0..60 * words)
                .map(|i| {
                    let (row, word) = (i / words, i % words);
                    let right = if labels[row] == word { 1.5 } else { 0.0 };
                    let bias = if word == 0 { 6.0 } else { 0.0 };
                    (2.0 * random.normal() + right + bias) as f32
                })
                .collect();
            let shifts = fit(&logits, words, &labels);
            assert!(shifts.iter().sum::<f64>().abs() < 1e-9);
            assert!(shifts[0] < -2.0, "{shifts:?}");
            let found = slope(&logits, &shifts, &labels);
            assert!(found.gradient.iter().all(|x| x.abs() < 1e-3), "{:?}", found.gradient);
            let accuracy = |logits: &[f32]| score(Loss::Hinge, logits, words, &labels).accuracy;
            assert!(accuracy(&shifted(&logits, &shifts)) > accuracy(&logits));
            // Shifts of all logits alike change nothing.
            let other: Vec<f32> = logits.iter().map(|x| x + 3.0).collect();
            let again = fit(&other, words, &labels);
            assert!(again.iter().zip(&shifts).all(|(a, b)| (a - b).abs() < 1e-3));
        }
    }

    #[test]
    fn shifts_are_finite_whatever_the_logits() {
        // Everything is right by far; a word that is nobody's label; all the same; great numbers.
        for (logits, labels) in [
            (vec![90.0, -90.0, -90.0, 90.0], vec![0, 1]),
            (vec![1.0, 0.0, 2.0, 0.0], vec![0, 0]),
            (vec![0.0; 6], vec![1, 0, 1]),
            (vec![3e4, -3e4, 3e4, -2e4], vec![0, 1]),
        ] {
            let shifts = fit(&logits, 2, &labels);
            assert!(shifts.iter().all(|b| b.is_finite()), "{logits:?}: {shifts:?}");
        }
        let logits = [1.0, 0.0, 1.0, 0.0];
        let shifts = fit(&logits, 2, &[0, 1]);
        assert!((shifts[0] + 0.5).abs() < 1e-3 && (shifts[1] - 0.5).abs() < 1e-3, "{shifts:?}");
    }
}
