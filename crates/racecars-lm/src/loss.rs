//! From logits of label words to a loss and an accuracy.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The loss: the mean over texts of the loss of a row of logits, one logit per label word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Minus the logarithm of the softmax of the correct word among the label words.
    #[default]
    CrossEntropy,
    /// The sum over wrong words of the amount by which their margin to the correct word is below 2.
    Hinge,
}

/// The margin of the hinge loss, as in Sun et al. 2022.
const MARGIN: f64 = 2.0;

impl Loss {
    /// The names that parse to a loss.
    pub const NAMES: [&'static str; 2] = ["cross-entropy", "hinge"];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Loss::CrossEntropy => "cross-entropy",
            Loss::Hinge => "hinge",
        }
    }

    fn of_row(self, logits: &[f32], label: usize) -> f64 {
        let right = f64::from(logits[label]);
        match self {
            Loss::CrossEntropy => {
                let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let most = f64::from(most);
                let sum: f64 = logits.iter().map(|&x| (f64::from(x) - most).exp()).sum();
                most + sum.ln() - right
            }
            Loss::Hinge => (logits.iter().enumerate())
                .filter(|&(word, _)| word != label)
                .map(|(_, &x)| (MARGIN - (right - f64::from(x))).max(0.0))
                .sum(),
        }
    }
}

impl FromStr for Loss {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "cross-entropy" => Ok(Loss::CrossEntropy),
            "hinge" => Ok(Loss::Hinge),
            _ => {
                Err(Error::input(format!("loss `{name}` is not one of {}", Loss::NAMES.join(", "))))
            }
        }
    }
}

/// The score of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// The mean loss.
    pub loss: f64,
    /// The share of texts whose correct label word has the greatest logit.
    pub accuracy: f64,
}

/// Scores `labels.len()` rows of `words` logits each.
pub fn score(loss: Loss, logits: &[f32], words: usize, labels: &[usize]) -> Score {
    let rows = logits.chunks_exact(words).zip(labels);
    let total: f64 = rows.map(|(row, &label)| loss.of_row(row, label)).sum();
    let right = right(logits, words, labels).into_iter().filter(|is_right| *is_right).count();
    let count = labels.len() as f64;
    Score { loss: total / count, accuracy: right as f64 / count }
}

/// Whether the correct label word of each row has the greatest logit.
pub fn right(logits: &[f32], words: usize, labels: &[usize]) -> Vec<bool> {
    let rows = logits.chunks_exact(words).zip(labels);
    rows.map(|(row, &label)| best(row) == Some(label)).collect()
}

/// The word with the greatest logit, the first on a tie; `None` if any logit is NaN.
pub fn best(row: &[f32]) -> Option<usize> {
    if row.iter().any(|x| x.is_nan()) {
        return None;
    }
    (0..row.len()).reduce(|best, word| if row[word] > row[best] { word } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_as_their_formulas_have_them() {
        let logits = [1.0, 2.0, 3.0, 0.5, 0.5, -1.0];
        let entropy = score(Loss::CrossEntropy, &logits, 3, &[2, 1]);
        let first = (1f64.exp() + 2f64.exp() + 3f64.exp()).ln() - 3.0;
        let second = (2.0 * 0.5f64.exp() + (-1f64).exp()).ln() - 0.5;
        assert!((entropy.loss - (first + second) / 2.0).abs() < 1e-12);
        assert_eq!(entropy.accuracy, 0.5);
        let hinge = score(Loss::Hinge, &logits, 3, &[2, 1]);
        assert!((hinge.loss - (0.0 + 1.0 + 2.0 + 0.5) / 2.0).abs() < 1e-12);
    }

    #[test]
    fn great_logits_do_not_overflow_and_nan_is_never_right() {
        assert_eq!(score(Loss::CrossEntropy, &[3e38, 0.0], 2, &[0]).loss, 0.0);
        let score = score(Loss::CrossEntropy, &[f32::NAN, 0.0], 2, &[1]);
        assert!(score.loss.is_nan());
        assert_eq!(score.accuracy, 0.0);
    }
}
