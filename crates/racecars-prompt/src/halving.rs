//! The schedule of the first prompts: successive halving (Jamieson and Talwalkar 2016, "Non-stochastic Best Arm
//! Identification and Hyperparameter Optimization").
//!
//! While there is no good prompt yet, a race against the best one so far drops few: with calls for five prompts on
//! all texts, most of them go to the first two or three, however bad they are. So the first prompts are tried
//! side by side, each on one minibatch. The better half goes on to twice as many texts, and so on, until those that
//! are left have seen all of them.

/// The numbers of texts after which half of the prompts are dropped, and at the end the number of all texts.
pub(crate) fn rungs(batch: usize, texts: usize) -> Vec<usize> {
    let doubled = std::iter::successors(Some(batch.max(1)), |rung| rung.checked_mul(2));
    doubled.take_while(|rung| *rung < texts).chain([texts]).collect()
}

/// How many of `count` prompts go on.
pub(crate) fn survivors(count: usize) -> usize {
    count.div_ceil(2)
}

/// The number of calls that `count` prompts take.
fn cost(count: usize, batch: usize, texts: usize) -> u64 {
    let (mut calls, mut alive, mut seen) = (0, count as u64, 0);
    for rung in rungs(batch, texts) {
        calls += alive * (rung - seen) as u64;
        (alive, seen) = (survivors(alive as usize) as u64, rung);
    }
    calls
}

/// The largest number of prompts, up to `most`, that `calls` are enough for.
pub(crate) fn affordable(most: usize, calls: u64, batch: usize, texts: usize) -> usize {
    (1..=most).rev().find(|count| cost(*count, batch, texts) <= calls).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_prompts_go_on_to_twice_the_texts() {
        assert_eq!(rungs(4, 16), [4, 8, 16]);
        assert_eq!(rungs(4, 30), [4, 8, 16, 30]);
        assert_eq!((rungs(4, 4), rungs(8, 3)), (vec![4], vec![3]));
        // 12 on 4 texts, 6 on 4 more, 3 on 8 more.
        assert_eq!(cost(12, 4, 16), 12 * 4 + 6 * 4 + 3 * 8);
        assert_eq!((cost(1, 4, 16), cost(5, 4, 4)), (16, 20));
    }

    #[test]
    fn as_many_prompts_as_can_be_paid_for() {
        assert_eq!(affordable(12, 80, 4, 16), 9);
        assert_eq!(affordable(12, 1000, 4, 16), 12);
        assert_eq!(affordable(12, 15, 4, 16), 0);
        assert_eq!(affordable(12, u64::MAX, 4, 1 << 40), 12);
    }
}
