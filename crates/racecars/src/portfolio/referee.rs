//! The choice of the incumbent if the objective is noisy.
//!
//! The best of many noisy values is too low by chance, and a search that trusts it stalls at a point that
//! only looked good. So a point whose value is better than the incumbent's, but not clearly, becomes a
//! challenger. Both are re-evaluated. The challenger becomes the incumbent when its fresh values, without
//! its first one, are significantly better. The member that proposed it learns their mean. An incumbent
//! without challengers is re-evaluated from time to time.
//!
//! At the beginning progress matters more than certainty, so every better value becomes the incumbent.
//!
//! A model averages noise better than challenges do. If one leads, it has no challengers: now and then, and
//! before the end, the incumbent is the point with the lowest posterior mean, and is re-evaluated. The
//! model learns these values, so that another point takes over if they are worse than it expected.

use super::MemberCandidate;
use crate::optimizers::saved::ID_HEADROOM;
use crate::sample::Sample;
use crate::space::Space;
use serde::{Deserialize, Serialize};

/// The maximum number of re-evaluations of a point.
const MAX_REPEATS: u64 = 10;
/// Standard errors by which a challenger must win before it has `MAX_REPEATS` re-evaluations.
const WINNING_ERRORS: f64 = 2.0;
/// Standard errors by which the first value must be better to become the incumbent immediately.
const CLEAR_ERRORS: f64 = 3.0;
/// Evaluations per coordinate during which every better value becomes the incumbent.
const EARLY_PER_COORDINATE: u64 = 30;
/// But at most this part of the budget.
const BUDGET_PER_EARLY: u64 = 4;
/// The last evaluations are of the incumbent, and only they make up its value: even a mean of ten is
/// biased if it was the best of many. They are a fifth of the budget, at most `MAX_REPEATS`.
const BUDGET_PER_FINAL: u64 = 5;
/// If a model leads, a twelfth, at least three and at most twice `MAX_REPEATS`: the first half chooses, and the
/// second half, the larger one, is the value. The model has averaged, and each evaluation that it does not have
/// costs more.
const BUDGET_PER_MODEL_FINAL: u64 = 12;
const MIN_MODEL_FINAL: u64 = 3;
const MAX_MODEL_FINAL: u64 = 2 * MAX_REPEATS;
/// Evaluations after which the incumbent is chosen again, if a model leads.
const MODEL_CHOICE_INTERVAL: u64 = 25;
/// The incumbent is re-evaluated after this many evaluations without a challenge.
const UNCHALLENGED_EVALUATIONS: u64 = 50;
/// A re-evaluation of the incumbent that is not told after this many evaluations is lost.
const LOST_AFTER_EVALUATIONS: u64 = 4 * UNCHALLENGED_EVALUATIONS;
/// The noise may change during the run: its variance is a mean over about this many differences.
const VARIANCE_MEMORY: u64 = 20;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Referee {
    /// The estimated variance of values at the same point, and the number of differences in the estimate.
    variance: f64,
    differences: u64,
    incumbent: FreshMean,
    /// The number of incumbents so far.
    incumbent_number: u64,
    is_incumbent_due: bool,
    is_incumbent_pending: bool,
    /// The number of evaluations since that of the incumbent.
    waited: u64,
    budget: Option<u64>,
    /// Whether a model that averages noise leads.
    is_by_model: bool,
    /// The number of points asked when the model last chose the incumbent.
    chosen_at: u64,
    /// The incumbent's final re-evaluations: their number, and the mean of those told.
    final_asked: u64,
    final_mean: FreshMean,
    challengers: Vec<Challenger>,
    /// The number of challengers so far.
    challenges: u64,
}

/// The mean of a point's values since it became the incumbent or a challenger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct FreshMean {
    count: u64,
    mean: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Challenger {
    number: u64,
    /// The member that proposed it.
    pub(super) origin: MemberCandidate,
    /// The first value, which made it a challenger.
    pub(super) sample: Sample,
    fresh: FreshMean,
    is_pending: bool,
}

/// The re-evaluation of a point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Reevaluation {
    /// The incumbent with this number.
    Incumbent(u64),
    /// The incumbent with this number, at the end of the run.
    Final(u64),
    /// The challenger with this number.
    Challenger(u64),
}

/// The end of a challenge.
pub(super) struct Verdict {
    pub(super) challenger: Challenger,
    /// Whether it becomes the incumbent.
    pub(super) wins: bool,
    /// The mean of its fresh values; `None` if a re-evaluation failed.
    pub(super) mean: Option<f64>,
}

impl FreshMean {
    /// Adds a value. Returns an estimate of the variance, from the second value on.
    fn take(&mut self, value: f64) -> Option<f64> {
        let (before, difference) = (self.count as f64, value - self.mean);
        self.count += 1;
        let count = self.count as f64;
        // Not `difference / count`, since the difference of two large numbers may overflow.
        self.mean += value / count - self.mean / count;
        (self.count > 1).then(|| difference * difference * before / count)
    }
}

impl Referee {
    /// A referee. Two values of the same point give a first estimate of the noise.
    pub(super) fn new(values: Option<(f64, f64)>, budget: Option<u64>, is_by_model: bool) -> Self {
        let mut referee = Referee { budget, is_by_model, ..Referee::default() };
        if let Some((one, other)) = values {
            let mut fresh = FreshMean::default();
            fresh.take(one);
            referee.learn(fresh.take(other));
        }
        referee
    }

    fn learn(&mut self, estimate: Option<f64>) {
        if let Some(estimate) = estimate.filter(|estimate| estimate.is_finite()) {
            self.differences += 1;
            self.variance +=
                (estimate - self.variance) / self.differences.min(VARIANCE_MEMORY) as f64;
        }
    }

    /// The number of final evaluations.
    fn final_evaluations(&self) -> u64 {
        let reserved = self.reserved_evaluations();
        if self.is_by_model { reserved.min(2).max(reserved.div_ceil(2)) } else { reserved }
    }

    /// The number of final evaluations, and of those that choose the incumbent before them.
    fn reserved_evaluations(&self) -> u64 {
        let budget = self.budget.unwrap_or(0);
        let fifth = budget / BUDGET_PER_FINAL;
        match self.is_by_model {
            true => {
                (budget / BUDGET_PER_MODEL_FINAL).clamp(MIN_MODEL_FINAL, MAX_MODEL_FINAL).min(fifth)
            }
            false => fifth.min(MAX_REPEATS),
        }
    }

    /// Whether the evaluations choose the incumbent, when this many points have been asked.
    fn is_choosing(&self, asked: u64) -> bool {
        let begin = |budget: u64| budget - self.reserved_evaluations();
        self.is_by_model
            && self.budget.is_some_and(|budget| (begin(budget)..budget).contains(&asked))
            && !self.is_final(asked)
    }

    /// Whether a model chooses the incumbent now, when this many points have been asked. It is re-evaluated
    /// then. The last time is before the final evaluations.
    pub(super) fn is_model_due(&self, asked: u64) -> bool {
        let is_late = asked >= self.chosen_at.saturating_add(MODEL_CHOICE_INTERVAL);
        self.is_by_model
            && match self.is_final(asked) {
                true => self.final_asked == 0 && self.final_evaluations() > 0,
                false => !self.is_incumbent_pending && (is_late || self.is_choosing(asked)),
            }
    }

    /// The model has chosen an incumbent, when this many points have been asked.
    pub(super) fn take_choice(&mut self, is_new: bool, asked: u64) {
        if is_new {
            self.new_incumbent();
        }
        self.chosen_at = asked;
        self.is_incumbent_due = !self.is_final(asked)
            && (self.is_choosing(asked) || self.incumbent.count < MAX_REPEATS);
    }

    pub(super) fn is_by_model(&self) -> bool {
        self.is_by_model
    }

    /// Has the incumbent re-evaluated.
    pub(super) fn request(&mut self) {
        self.is_incumbent_due = true;
    }

    /// Whether the incumbent is re-evaluated although it is not due, since there is no other point left.
    pub(super) fn is_uncertain(&self) -> bool {
        !self.is_incumbent_pending && self.incumbent.count < MAX_REPEATS
    }

    /// Whether the incumbent is final, when this many points have been asked. A run that is continued
    /// beyond its budget has no end.
    fn is_final(&self, asked: u64) -> bool {
        let begin = |budget: u64| budget - self.final_evaluations();
        self.budget.is_some_and(|budget| (begin(budget)..=budget).contains(&asked))
    }

    /// Counts an evaluation.
    pub(super) fn count_evaluation(&mut self) {
        self.waited += 1;
        self.is_incumbent_due |=
            self.waited >= UNCHALLENGED_EVALUATIONS && self.incumbent.count < MAX_REPEATS;
        // By then, a pending re-evaluation is lost.
        self.is_incumbent_pending &= self.waited < LOST_AFTER_EVALUATIONS;
    }

    /// Whether a value that is better than `best` becomes the incumbent immediately, when this many points
    /// have been asked. A single value replaces a mean only if it is clearly better.
    pub(super) fn is_clear(&self, value: f64, best: f64, asked: u64, n: usize) -> bool {
        let early = EARLY_PER_COORDINATE.saturating_mul(n as u64);
        let is_early =
            asked < self.budget.map_or(early, |budget| early.min(budget / BUDGET_PER_EARLY));
        !self.is_final(asked)
            && (is_early && self.incumbent.count <= 1
                || value < best - CLEAR_ERRORS * self.error(1))
    }

    /// The standard error of the difference between a mean of `count` values and the incumbent's.
    fn error(&self, count: u64) -> f64 {
        let of_mean = |count: u64| self.variance / count.max(1) as f64;
        (of_mean(count) + of_mean(self.incumbent.count)).sqrt()
    }

    /// Adds a challenger: a point whose value is better than the incumbent's, but not clearly.
    pub(super) fn challenge(&mut self, origin: MemberCandidate, sample: Sample) {
        let number = self.challenges;
        self.challenges += 1;
        let fresh = FreshMean::default();
        self.challengers.push(Challenger { number, origin, sample, fresh, is_pending: false });
        self.is_incumbent_due = self.incumbent.count < MAX_REPEATS;
        debug_assert!(
            self.challengers.is_sorted_by(|a, b| a.number < b.number),
            "challengers are sorted by number"
        );
    }

    /// A point becomes the incumbent immediately, by its first value.
    pub(super) fn new_incumbent(&mut self) {
        self.install(FreshMean::default());
    }

    fn install(&mut self, incumbent: FreshMean) {
        (self.incumbent, self.final_mean) = (incumbent, FreshMean::default());
        self.incumbent_number += 1;
        (self.is_incumbent_due, self.is_incumbent_pending, self.waited) = (false, false, 0);
    }

    /// The point to re-evaluate, if any, when this many points have been asked.
    pub(super) fn next(&mut self, asked: u64) -> Option<Reevaluation> {
        if self.is_final(asked) && self.final_asked < self.final_evaluations() {
            self.final_asked += 1;
            return Some(Reevaluation::Final(self.incumbent_number));
        }
        if self.is_incumbent_due && !self.is_incumbent_pending {
            (self.is_incumbent_due, self.is_incumbent_pending) = (false, true);
            return Some(Reevaluation::Incumbent(self.incumbent_number));
        }
        let challenger = self.challengers.iter_mut().find(|challenger| !challenger.is_pending)?;
        challenger.is_pending = true;
        Some(Reevaluation::Challenger(challenger.number))
    }

    /// The mean that is the incumbent's value: of the final evaluations, as soon as there are half as many
    /// of them as others.
    fn mean(&self) -> FreshMean {
        let is_final =
            self.final_mean.count > 0 && 2 * self.final_mean.count >= self.incumbent.count;
        if is_final { self.final_mean } else { self.incumbent }
    }

    /// The number of evaluations averaged in the incumbent's value.
    pub(super) fn incumbent_evaluations(&self) -> u64 {
        self.mean().count.max(1)
    }

    pub(super) fn challengers(&self) -> impl Iterator<Item = &Challenger> {
        self.challengers.iter()
    }

    /// The challenger with this number.
    pub(super) fn challenger(&self, number: u64) -> Option<&Challenger> {
        self.challengers.iter().find(|challenger| challenger.number == number)
    }

    /// Learns a re-evaluation of the incumbent with this number. Returns the mean that is its value now,
    /// unless there is a new incumbent.
    pub(super) fn tell_incumbent(
        &mut self,
        incumbent_number: u64,
        is_final: bool,
        value: Option<f64>,
    ) -> Option<f64> {
        if incumbent_number != self.incumbent_number {
            return None;
        }
        let mean = if is_final {
            &mut self.final_mean
        } else {
            (self.is_incumbent_pending, self.waited) = (false, 0);
            &mut self.incumbent
        };
        let estimate = mean.take(value?);
        self.learn(estimate);
        Some(self.mean().mean)
    }

    /// Learns a re-evaluation of a challenger, when this many points have been asked. `best` is the
    /// incumbent's value. Returns the end of the challenge, if it is decided. None is while the incumbent
    /// is final.
    pub(super) fn tell_challenger(
        &mut self,
        number: u64,
        value: Option<f64>,
        best: f64,
        asked: u64,
    ) -> Option<Verdict> {
        let place = self.challengers.iter().position(|challenger| challenger.number == number)?;
        self.challengers[place].is_pending = false;
        let Some(value) = value else {
            let challenger = self.challengers.remove(place);
            return Some(Verdict { challenger, wins: false, mean: None });
        };
        let estimate = self.challengers[place].fresh.take(value);
        self.learn(estimate);
        let FreshMean { count, mean } = self.challengers[place].fresh;
        let wins = mean < best
            && (count >= MAX_REPEATS || mean < best - WINNING_ERRORS * self.error(count));
        if mean < best && (!wins || self.is_final(asked)) {
            return None;
        }
        let challenger = self.challengers.remove(place);
        if wins {
            self.install(challenger.fresh);
        }
        Some(Verdict { challenger, wins, mean: Some(mean) })
    }

    /// Checks the invariants of a deserialized state.
    pub(super) fn is_sound(&self, space: &Space) -> bool {
        let is_fresh = |fresh: &FreshMean| fresh.count < ID_HEADROOM && fresh.mean.is_finite();
        self.variance.is_finite()
            && self.variance >= 0.0
            && self.differences < ID_HEADROOM
            && self.incumbent_number < ID_HEADROOM
            && self.waited < ID_HEADROOM
            && self.challenges < ID_HEADROOM
            && self.final_asked <= self.final_evaluations()
            && self.chosen_at < ID_HEADROOM
            && is_fresh(&self.incumbent)
            && is_fresh(&self.final_mean)
            && self.challengers.is_sorted_by(|a, b| a.number < b.number)
            && self.challengers.iter().all(|challenger| {
                challenger.number < self.challenges
                    && challenger.sample.is_sound(space)
                    && challenger.sample.rank.value().is_some()
                    && is_fresh(&challenger.fresh)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use crate::random::Random;

    const SPACE: fn() -> Space = || Space::cube(1, 0.0, 1.0).unwrap();

    fn challenge(referee: &mut Referee, value: f64) {
        let (point, rank) = (vec![0.5].into_boxed_slice(), Outcome::Value(value).rank());
        let key = SPACE().key(&point);
        referee.challenge(MemberCandidate { member: 0, id: 0 }, Sample { point, rank, key });
        assert!(referee.is_sound(&SPACE()));
    }

    /// A point with this true value challenges an incumbent with true value 0. The noise has deviation 1.
    /// Returns whether the challenger wins, and the number of evaluations.
    fn challenge_result(truth: f64, seed: u64) -> (bool, u64) {
        let mut random = Random::new(seed);
        let mut referee = Referee::new(Some((0.3, 1.3)), None, false);
        let (mut best, mut evaluations) = (-1.0, 0);
        challenge(&mut referee, -1.5);
        loop {
            evaluations += 1;
            match referee.next(evaluations).unwrap() {
                Reevaluation::Incumbent(number) | Reevaluation::Final(number) => {
                    best = referee.tell_incumbent(number, false, Some(random.normal())).unwrap();
                }
                Reevaluation::Challenger(number) => {
                    let value = truth + random.normal();
                    let verdict = referee.tell_challenger(number, Some(value), best, evaluations);
                    if let Some(verdict) = verdict {
                        assert!(referee.is_sound(&SPACE()) && referee.next(evaluations).is_none());
                        return (verdict.wins, evaluations);
                    }
                }
            }
        }
    }

    #[test]
    fn better_challengers_mostly_win_and_worse_ones_rarely() {
        let share = |truth: f64| {
            let won = (0..200).filter(|&seed| challenge_result(truth, seed).0).count();
            won as f64 / 200.0
        };
        assert!(share(-3.0) > 0.9, "{}", share(-3.0));
        assert!(share(1.0) < 0.15, "{}", share(1.0));
        assert!((0..200).all(|seed| challenge_result(-0.1, seed).1 <= 1 + MAX_REPEATS));
    }

    #[test]
    fn a_value_wins_immediately_early_in_the_run_or_if_clearly_better() {
        let mut referee = Referee::new(Some((0.0, 1.0)), None, false);
        assert!(referee.is_clear(-0.1, 0.0, 299, 10));
        assert!(!referee.is_clear(-2.9, 0.0, 300, 10));
        assert!(referee.is_clear(-3.1, 0.0, 300, 10));
        for value in [-0.5, 0.5] {
            referee.tell_incumbent(0, false, Some(value));
        }
        assert!(!referee.is_clear(-0.1, 0.0, 299, 10), "a lucky value replaces no mean");
    }

    #[test]
    fn an_unchallenged_incumbent_is_re_evaluated_a_limited_number_of_times() {
        let mut referee = Referee::new(None, None, false);
        referee.new_incumbent();
        let mut reevaluations = 0;
        for evaluation in 0..2000 {
            referee.count_evaluation();
            if let Some(Reevaluation::Incumbent(number)) = referee.next(evaluation) {
                reevaluations += 1;
                assert_eq!(referee.tell_incumbent(number, false, Some(2.0)), Some(2.0));
            }
        }
        assert_eq!(reevaluations, MAX_REPEATS);
    }

    #[test]
    fn a_lost_re_evaluation_of_the_incumbent_is_repeated() {
        let mut referee = Referee::new(None, None, false);
        referee.new_incumbent();
        let mut asked = Vec::new();
        for evaluation in 0..LOST_AFTER_EVALUATIONS {
            referee.count_evaluation();
            asked.extend(referee.next(evaluation).map(|_| evaluation));
        }
        assert_eq!(asked, [UNCHALLENGED_EVALUATIONS - 1, LOST_AFTER_EVALUATIONS - 1]);
    }

    #[test]
    fn the_last_evaluations_are_of_the_incumbent() {
        for (budget, finals) in [(1, 0), (4, 0), (5, 1), (20, 4), (50, 10), (1000, 10)] {
            let mut referee = Referee::new(None, Some(budget), false);
            referee.new_incumbent();
            referee.tell_incumbent(1, false, Some(-9.0));
            let asked: Vec<u64> =
                (0..budget + 20).filter(|asked| referee.next(*asked).is_some()).collect();
            assert_eq!(asked, (budget - finals..budget).collect::<Vec<_>>());
            for value in 0..finals {
                referee.tell_incumbent(1, true, Some(value as f64));
            }
            assert!(referee.is_sound(&SPACE()));
            assert_eq!(referee.incumbent_evaluations(), finals.max(1));
            assert_eq!(referee.is_final(budget - 1), finals > 0);
            assert!(
                !referee.is_final(budget + 1)
                    && !referee.is_final((budget - finals).wrapping_sub(1))
            );
        }
    }

    #[test]
    fn a_model_chooses_the_incumbent_before_the_final_evaluations() {
        for (budget, choices, finals) in
            [(10, 0, 2), (20, 1, 2), (50, 2, 2), (60, 2, 3), (96, 4, 4), (1000, 10, 10)]
        {
            let mut referee = Referee::new(None, Some(budget), true);
            referee.new_incumbent();
            let (mut chosen, mut finished) = (0, 0);
            for asked in 0..budget {
                let is_due = referee.is_model_due(asked);
                assert_eq!(
                    is_due,
                    referee.is_choosing(asked)
                        || asked == budget - finals
                        || asked >= referee.chosen_at + MODEL_CHOICE_INTERVAL
                            && !referee.is_final(asked)
                );
                if is_due {
                    // Another point each time.
                    referee.take_choice(true, asked);
                    chosen += u64::from(referee.is_choosing(asked));
                }
                match referee.next(asked) {
                    Some(Reevaluation::Incumbent(number)) => {
                        referee.tell_incumbent(number, false, Some(1.0));
                    }
                    Some(Reevaluation::Final(number)) => {
                        finished += 1;
                        referee.tell_incumbent(number, true, Some(1.0));
                    }
                    _ => assert!(!is_due),
                }
                assert!(referee.is_sound(&SPACE()));
            }
            assert_eq!((chosen, finished), (choices, finals), "budget {budget}");
            assert_eq!(referee.incumbent_evaluations(), finals);
        }
    }

    #[test]
    fn nothing_replaces_a_final_incumbent() {
        let mut referee = Referee::new(Some((0.0, 1.0)), Some(100), false);
        referee.new_incumbent();
        challenge(&mut referee, -5.0);
        assert_eq!(referee.next(50), Some(Reevaluation::Incumbent(1)));
        assert_eq!(referee.next(51), Some(Reevaluation::Challenger(0)));
        assert_eq!(referee.next(90), Some(Reevaluation::Final(1)));
        assert!(referee.tell_challenger(0, Some(-50.0), 0.0, 91).is_none());
        assert!(!referee.is_clear(-50.0, 0.0, 95, 10) && referee.is_clear(-50.0, 0.0, 101, 10));
    }

    #[test]
    fn late_and_failed_re_evaluations_decide_nothing() {
        let mut referee = Referee::new(None, None, false);
        challenge(&mut referee, 1.0);
        let (incumbent, challenger) = (referee.next(0), referee.next(1));
        assert_eq!(incumbent, Some(Reevaluation::Incumbent(0)));
        assert_eq!(challenger, Some(Reevaluation::Challenger(0)));
        assert_eq!(referee.next(2), None);
        let verdict = referee.tell_challenger(0, None, 2.0, 2).unwrap();
        assert!(!verdict.wins && verdict.mean.is_none());
        referee.new_incumbent();
        assert_eq!(referee.tell_incumbent(0, false, Some(-9.0)), None);
        assert!(referee.tell_challenger(0, Some(-9.0), 2.0, 2).is_none());
    }

    #[test]
    fn the_mean_of_extreme_values_is_finite() {
        let mut fresh = FreshMean::default();
        for value in [1e308, -1e308, 1e308, -1e308] {
            fresh.take(value);
            assert!(fresh.mean.is_finite());
        }
    }
}
