//! The race of a candidate against the best prompt so far.
//!
//! Texts are taken in minibatches. After each, the candidate's scores are compared with those that the best
//! prompt has for the same texts. The candidate is dropped
//!
//! - when it cannot become better even if it is right about all texts that are left (scores of 0 and 1), or
//! - when it is worse, and by the paired permutation test of [`sign_flip_test`] the probability of such a
//!   difference by chance is below the level.
//!
//! A dropped candidate counts as the best prompt's mean plus the mean difference, an estimate of its mean over
//! all texts from which most of the texts' own difficulty cancels. It is never above the best prompt's.

use crate::metric::Score;
use crate::statistics::sign_flip_test;
use racecars::random::Random;

/// How a race ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Verdict {
    /// Go on.
    Undecided,
    /// All texts are done: the mean.
    Finished(f64),
    /// Dropped: the estimate of the mean.
    Dropped(f64),
}

/// The rule of a race.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// The number of texts.
    pub(crate) texts: usize,
    /// The level of the test; 0: nothing is dropped.
    pub(crate) level: f64,
    /// Whether scores are 0 or 1.
    pub(crate) is_accuracy: bool,
    pub(crate) seed: u64,
}

pub(crate) fn mean(scores: &[Score]) -> f64 {
    scores.iter().map(|score| score.value).sum::<f64>() / scores.len().max(1) as f64
}

/// The differences from the best prompt, text by text.
fn differences(scores: &[Score], best: &[Score]) -> Vec<f64> {
    scores.iter().zip(best).map(|(ours, theirs)| ours.value - theirs.value).collect()
}

impl Rule {
    /// What a dropped candidate counts as, beside the best prompt, which has scores on all texts.
    pub(crate) fn estimate(&self, scores: &[Score], best: &[Score]) -> f64 {
        let differences = differences(scores, best);
        let difference = differences.iter().sum::<f64>() / differences.len().max(1) as f64;
        let estimate = mean(best) + difference.min(0.0);
        if self.is_accuracy { estimate.max(0.0) } else { estimate }
    }

    /// The verdict on a candidate with these scores, beside the best prompt's.
    pub(crate) fn judge(&self, trial: u64, scores: &[Score], best: Option<&[Score]>) -> Verdict {
        if scores.len() >= self.texts {
            return Verdict::Finished(mean(scores));
        }
        let Some(best) = best.filter(|_| self.level > 0.0 && !scores.is_empty()) else {
            return Verdict::Undecided;
        };
        let differences = differences(scores, best);
        let estimate = Verdict::Dropped(self.estimate(scores, best));
        let left = (self.texts - scores.len()) as f64;
        let total = |scores: &[Score]| scores.iter().map(|score| score.value).sum::<f64>();
        if self.is_accuracy && total(scores) + left <= total(best) {
            return estimate;
        }
        if differences.iter().sum::<f64>() >= 0.0 {
            return Verdict::Undecided;
        }
        let mut random = Random::stream(self.seed, (trial << 20) + scores.len() as u64);
        match sign_flip_test(&differences, &mut random) < self.level {
            true => estimate,
            false => Verdict::Undecided,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(values: &[u8]) -> Vec<Score> {
        let scores = values.iter().map(|value| f64::from(*value));
        scores.map(|value| Score { value, accuracy: value }).collect()
    }

    const RULE: Rule = Rule { texts: 8, level: 0.1, is_accuracy: true, seed: 0 };

    #[test]
    fn the_first_is_never_dropped_and_all_texts_give_the_mean() {
        assert_eq!(RULE.judge(0, &scores(&[0; 4]), None), Verdict::Undecided);
        let all = scores(&[1, 1, 0, 0, 1, 1, 1, 1]);
        assert_eq!(RULE.judge(1, &all, Some(&scores(&[1; 8]))), Verdict::Finished(0.75));
    }

    #[test]
    fn what_is_worse_or_cannot_win_is_dropped_below_the_best() {
        let best = scores(&[1; 8]);
        // It cannot win.
        assert_eq!(RULE.judge(1, &scores(&[1, 1]), Some(&best)), Verdict::Dropped(1.0));
        // It could, but is worse.
        let best = scores(&[1, 1, 1, 1, 0, 0, 0, 0]);
        assert_eq!(RULE.judge(1, &scores(&[0; 4]), Some(&best)), Verdict::Dropped(0.0));
        let any = Rule { is_accuracy: false, ..RULE };
        assert_eq!(any.judge(1, &scores(&[0; 4]), Some(&best)), Verdict::Dropped(-0.5));
        assert_eq!(RULE.judge(1, &scores(&[0, 1, 1, 1]), Some(&best)), Verdict::Undecided);
        let none = Rule { level: 0.0, ..RULE };
        assert_eq!(none.judge(1, &scores(&[0; 4]), Some(&best)), Verdict::Undecided);
    }
}
