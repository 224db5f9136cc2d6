//! Who leads where the objective is noisy.
//!
//! The best of many noisy values is a lucky one, and a search that follows it stands still at a point that
//! only seemed good. So a value that is better than the leader's, but not clearly, only makes a point a
//! challenger. Both are re-evaluated, and the challenger leads once its fresh values, without the one that
//! made it a challenger, are better by more than chance. The member that proposed it learns their mean. A
//! leader that is not challenged for long is re-evaluated, too.
//!
//! At the beginning progress is worth more than certainty: there every better value leads.

use super::MemberCandidate;
use crate::optimizers::saved::ID_HEADROOM;
use crate::sample::Sample;
use crate::space::Space;
use serde::{Deserialize, Serialize};

/// The most re-evaluations of a point.
const MAX_REPEATS: u64 = 10;
/// Standard errors by which a challenger must win before it has `MAX_REPEATS` re-evaluations.
const WINNING_ERRORS: f64 = 2.0;
/// Standard errors by which the first value must be better to lead at once.
const CLEAR_ERRORS: f64 = 3.0;
/// The evaluations per coordinate at the beginning, while every better value leads.
const EARLY_PER_COORDINATE: u64 = 30;
/// From this budget on the last `MAX_REPEATS` evaluations are the leader's, and only they make up its
/// value: even the mean of ten is biased if it was the best of many.
const MIN_FINAL_BUDGET: u64 = 10 * MAX_REPEATS;
/// A leader is re-evaluated after this many evaluations without a challenge.
const UNCHALLENGED_EVALUATIONS: u64 = 50;
/// A re-evaluation of the leader that has not come back after this many evaluations is lost.
const LOST_AFTER_EVALUATIONS: u64 = 4 * UNCHALLENGED_EVALUATIONS;
/// The noise may change along the way: its variance is a mean over about this many differences.
const VARIANCE_MEMORY: u64 = 20;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Referee {
    /// The variance of values at the same point, and the number of differences it was estimated from.
    variance: f64,
    differences: u64,
    leader: FreshMean,
    /// The number of leaders so far.
    reign: u64,
    is_leader_due: bool,
    is_leader_out: bool,
    /// The evaluations since the leader's last one.
    waited: u64,
    /// Whether the last evaluations have begun.
    is_end: bool,
    challengers: Vec<Challenger>,
    /// The number of challengers so far.
    challenges: u64,
}

/// The values of a point since it became leader or challenger.
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
    /// Its rank is of the value that made it a challenger.
    pub(super) sample: Sample,
    fresh: FreshMean,
    is_out: bool,
}

/// A point that is re-evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Reevaluation {
    /// The leader of this reign.
    Leader(u64),
    /// The challenger of this number.
    Challenger(u64),
}

/// The end of a challenge.
pub(super) struct Verdict {
    pub(super) challenger: Challenger,
    pub(super) leads: bool,
    /// The mean of its fresh values; `None` if one was no value.
    pub(super) mean: Option<f64>,
}

impl FreshMean {
    /// Takes in a value, and returns an estimate of the variance from the second on.
    fn take(&mut self, value: f64) -> Option<f64> {
        let (before, difference) = (self.count as f64, value - self.mean);
        self.count += 1;
        let count = self.count as f64;
        // Not `difference / count`, since the difference of two large numbers may be none.
        self.mean += value / count - self.mean / count;
        (self.count > 1).then(|| difference * difference * before / count)
    }
}

impl Referee {
    /// A referee that knows two values of the same point.
    pub(super) fn of_noise(values: Option<(f64, f64)>) -> Self {
        let mut referee = Referee::default();
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

    /// Counts an evaluation. `asked` points of the budget were asked so far.
    pub(super) fn note_evaluation(&mut self, asked: u64, budget: Option<u64>) {
        self.waited += 1;
        let is_end = budget
            .is_some_and(|budget| budget >= MIN_FINAL_BUDGET && asked + MAX_REPEATS >= budget);
        if is_end && !self.is_end {
            (self.is_end, self.leader) = (true, FreshMean::default());
        }
        self.is_leader_due |=
            (self.waited >= UNCHALLENGED_EVALUATIONS || is_end) && self.leader.count < MAX_REPEATS;
        // A re-evaluation that has not come back by then is lost with its worker.
        self.is_leader_out &= self.waited < LOST_AFTER_EVALUATIONS;
    }

    /// Whether a value that is better than the leader's `best` leads at once.
    pub(super) fn is_clear(&self, value: f64, best: f64, evaluations: u64, n: usize) -> bool {
        evaluations < EARLY_PER_COORDINATE.saturating_mul(n as u64)
            || value < best - CLEAR_ERRORS * self.error(1)
    }

    /// The standard error of the difference between a mean of `count` values and the leader's.
    fn error(&self, count: u64) -> f64 {
        let of_mean = |count: u64| self.variance / count.max(1) as f64;
        (of_mean(count) + of_mean(self.leader.count)).sqrt()
    }

    /// A point whose value is better than the leader's, but not clearly.
    pub(super) fn challenge(&mut self, origin: MemberCandidate, sample: Sample) {
        let number = self.challenges;
        self.challenges += 1;
        let fresh = FreshMean::default();
        self.challengers.push(Challenger { number, origin, sample, fresh, is_out: false });
        self.is_leader_due = self.leader.count < MAX_REPEATS;
    }

    /// A point leads at once, by its first value.
    pub(super) fn new_leader(&mut self) {
        self.install(FreshMean::default());
    }

    fn install(&mut self, leader: FreshMean) {
        self.leader = leader;
        self.reign += 1;
        (self.is_leader_due, self.is_leader_out, self.waited) = (false, false, 0);
    }

    /// The point to re-evaluate, if any.
    pub(super) fn next(&mut self) -> Option<Reevaluation> {
        if self.is_leader_due && !self.is_leader_out {
            (self.is_leader_due, self.is_leader_out) = (false, true);
            return Some(Reevaluation::Leader(self.reign));
        }
        let challenger = self.challengers.iter_mut().find(|challenger| !challenger.is_out)?;
        challenger.is_out = true;
        Some(Reevaluation::Challenger(challenger.number))
    }

    /// How many evaluations the leader's value is a mean of: its re-evaluations, or the one that made it
    /// lead.
    pub(super) fn leader_evaluations(&self) -> u64 {
        self.leader.count.max(1)
    }

    pub(super) fn challengers(&self) -> impl Iterator<Item = &Challenger> {
        self.challengers.iter()
    }

    /// The challenger of this number.
    pub(super) fn challenger(&self, number: u64) -> Option<&Challenger> {
        self.challengers.iter().find(|challenger| challenger.number == number)
    }

    /// The leader of this reign was re-evaluated: returns the mean of its fresh values, unless it leads
    /// no more.
    pub(super) fn tell_leader(&mut self, reign: u64, value: Option<f64>) -> Option<f64> {
        if reign != self.reign {
            return None;
        }
        (self.is_leader_out, self.waited) = (false, 0);
        let estimate = self.leader.take(value?);
        self.learn(estimate);
        Some(self.leader.mean)
    }

    /// A challenger was re-evaluated, the leader's value being `best`: returns the end of the challenge,
    /// once it is clear.
    pub(super) fn tell_challenger(
        &mut self,
        number: u64,
        value: Option<f64>,
        best: f64,
    ) -> Option<Verdict> {
        let place = self.challengers.iter().position(|challenger| challenger.number == number)?;
        self.challengers[place].is_out = false;
        let Some(value) = value else {
            let challenger = self.challengers.remove(place);
            return Some(Verdict { challenger, leads: false, mean: None });
        };
        let estimate = self.challengers[place].fresh.take(value);
        self.learn(estimate);
        let FreshMean { count, mean } = self.challengers[place].fresh;
        let leads = mean < best
            && (count >= MAX_REPEATS || mean < best - WINNING_ERRORS * self.error(count));
        if mean < best && !leads {
            return None;
        }
        let challenger = self.challengers.remove(place);
        if leads {
            self.install(challenger.fresh);
        }
        Some(Verdict { challenger, leads, mean: Some(mean) })
    }

    /// Checks the invariants of a deserialized state.
    pub(super) fn is_sound(&self, space: &Space) -> bool {
        let is_fresh = |fresh: &FreshMean| fresh.count < ID_HEADROOM && fresh.mean.is_finite();
        self.variance.is_finite()
            && self.variance >= 0.0
            && self.differences < ID_HEADROOM
            && self.reign < ID_HEADROOM
            && self.waited < ID_HEADROOM
            && self.challenges < ID_HEADROOM
            && is_fresh(&self.leader)
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

    /// A point of this true value challenges a leader of true value 0, noise having deviation 1: returns
    /// who leads, and how many evaluations that took.
    fn hearing(truth: f64, seed: u64) -> (bool, u64) {
        let mut random = Random::new(seed);
        let mut referee = Referee::of_noise(Some((0.3, 1.3)));
        let (mut best, mut evaluations) = (-1.0, 0);
        challenge(&mut referee, -1.5);
        loop {
            evaluations += 1;
            match referee.next().unwrap() {
                Reevaluation::Leader(reign) => {
                    best = referee.tell_leader(reign, Some(random.normal())).unwrap();
                }
                Reevaluation::Challenger(number) => {
                    let value = truth + random.normal();
                    if let Some(verdict) = referee.tell_challenger(number, Some(value), best) {
                        assert!(referee.is_sound(&SPACE()) && referee.next().is_none());
                        return (verdict.leads, evaluations);
                    }
                }
            }
        }
    }

    #[test]
    fn the_better_leads_mostly_and_the_lucky_seldom() {
        let share = |truth: f64| {
            let led = (0..200).filter(|&seed| hearing(truth, seed).0).count();
            led as f64 / 200.0
        };
        assert!(share(-3.0) > 0.9, "{}", share(-3.0));
        assert!(share(1.0) < 0.15, "{}", share(1.0));
        assert!((0..200).all(|seed| hearing(-0.1, seed).1 <= 1 + MAX_REPEATS));
    }

    #[test]
    fn a_value_leads_at_once_early_or_when_it_is_clearly_better() {
        let referee = Referee::of_noise(Some((0.0, 1.0)));
        assert!(referee.is_clear(-0.1, 0.0, 299, 10));
        assert!(!referee.is_clear(-2.9, 0.0, 300, 10));
        assert!(referee.is_clear(-3.1, 0.0, 300, 10));
    }

    #[test]
    fn who_leads_for_long_is_evaluated_again_but_not_forever() {
        let mut referee = Referee::of_noise(None);
        referee.new_leader();
        let mut again = 0;
        for evaluation in 0..2000 {
            referee.note_evaluation(evaluation, None);
            if let Some(Reevaluation::Leader(reign)) = referee.next() {
                again += 1;
                assert_eq!(referee.tell_leader(reign, Some(2.0)), Some(2.0));
            }
        }
        assert_eq!(again, MAX_REPEATS);
    }

    #[test]
    fn a_lost_evaluation_of_the_leader_is_made_again() {
        let mut referee = Referee::of_noise(None);
        referee.new_leader();
        let mut asked = Vec::new();
        for evaluation in 0..LOST_AFTER_EVALUATIONS {
            referee.note_evaluation(evaluation, None);
            asked.extend(referee.next().map(|_| evaluation));
        }
        assert_eq!(asked, [UNCHALLENGED_EVALUATIONS - 1, LOST_AFTER_EVALUATIONS - 1]);
    }

    #[test]
    fn the_last_evaluations_are_the_leaders() {
        let mut referee = Referee::of_noise(None);
        referee.new_leader();
        for (asked, budget, is_due) in [(89, 99, false), (89, 100, false), (90, 100, true)] {
            referee.note_evaluation(asked, Some(budget));
            assert_eq!(referee.next().is_some(), is_due, "{asked} of {budget}");
        }
    }

    #[test]
    fn what_comes_late_or_without_a_value_decides_nothing() {
        let mut referee = Referee::of_noise(None);
        challenge(&mut referee, 1.0);
        let (leader, challenger) = (referee.next(), referee.next());
        assert_eq!(leader, Some(Reevaluation::Leader(0)));
        assert_eq!(challenger, Some(Reevaluation::Challenger(0)));
        assert_eq!(referee.next(), None);
        let verdict = referee.tell_challenger(0, None, 2.0).unwrap();
        assert!(!verdict.leads && verdict.mean.is_none());
        referee.new_leader();
        assert_eq!(referee.tell_leader(0, Some(-9.0)), None);
        assert!(referee.tell_challenger(0, Some(-9.0), 2.0).is_none());
    }

    #[test]
    fn huge_values_have_a_mean() {
        let mut fresh = FreshMean::default();
        for value in [1e308, -1e308, 1e308, -1e308] {
            fresh.take(value);
            assert!(fresh.mean.is_finite());
        }
    }
}
