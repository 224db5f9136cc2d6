//! How often the theorem's assumption fails before the first hit: the added term of its good-event version.
//!
//! tau is the first step at which the mean share of the target in a hypothesis, over the random training and
//! given the run so far, is below eta. RACE-CARS fails with probability at most the theorem's bound plus
//! Pr(tau comes before the first hit). Here many runs are followed, and the mean share is estimated at every step
//! up to the first hit from hypotheses that are learned like the step's own.
//!
//! The estimate is noisy, and the least of thousands of noisy numbers is too small. So a step whose estimate is
//! near the least so far is estimated again, from more hypotheses and points, and that counts.

use super::target::Target;
use crate::theory::TheoryError;
use racecars::random::Random;
use racecars::{Axis, Classification, Interval, Optimizer, Outcome, RaceCars};
use racecars_problems::Problem;
use rayon::prelude::*;
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};

/// The hypotheses learned, and the points of the target tried, for the estimate at a step.
const COARSE: (usize, usize) = (12, 100);
/// The same for the estimate that counts.
const FINE: (usize, usize) = (200, 1000);
/// A step is estimated again if its first estimate is below this multiple of the least so far.
const NEAR: f64 = 1.5;
/// The random stream of the seed for the target's points and the hypotheses.
const STREAM: u64 = 0x7461_7500;

/// Runs to be followed.
#[derive(Debug, Clone)]
pub struct GoodEvent {
    /// The problem's name.
    pub problem: String,
    /// Its dimension.
    pub dim: usize,
    /// The evaluations of a run without a hit.
    pub budget: u64,
    /// gamma.
    pub gamma: f64,
    /// rho.
    pub rho: f64,
    /// u: the number of coordinates that a draw renews; `None` for the optimizer's default. The theorem assumes
    /// all of them.
    pub uncertain: Option<usize>,
    /// The target is where f - f* is at most this.
    pub epsilon: f64,
    /// The number of runs; run i has the seed `seed + i`.
    pub trials: u64,
    /// The first seed, which the problem's random parts have as well.
    pub seed: u64,
}

/// A run up to its first hit, or to the end of its budget.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct FollowedRun {
    /// The first evaluation in the target.
    pub first_hit: Option<u64>,
    /// The least mean share of the target in a hypothesis, over the steps before the first hit.
    pub least_eta: f64,
    /// The evaluation at which that was.
    pub least_at: u64,
    /// The least share of the target in the region, over the same steps.
    pub least_region_share: f64,
    /// The shrinks of the region by the end.
    pub shrinks: u64,
}

impl GoodEvent {
    /// Follows the runs, on all cores; each is a function of its seed alone. `seen` is called with the number of
    /// finished runs.
    pub fn run(&self, seen: impl Fn(u64) + Sync) -> Result<Vec<FollowedRun>, TheoryError> {
        if !(self.epsilon > 0.0 && self.epsilon.is_finite()) {
            return Err(TheoryError::Epsilon(self.epsilon));
        }
        let problem = Problem::named(&self.problem, self.dim, self.seed)?;
        if !problem.space().is_continuous() {
            return Err(TheoryError::NotContinuous(self.problem.clone()));
        }
        let mut random = Random::stream(self.seed, STREAM);
        let target = Target::walked(&problem, self.epsilon, FINE.1, &mut random);
        let done = AtomicU64::new(0);
        let follow = |trial: u64| {
            let run = self.follow(&problem, &target, self.seed.wrapping_add(trial))?;
            seen(done.fetch_add(1, Ordering::Relaxed) + 1);
            Ok(run)
        };
        (0..self.trials).into_par_iter().map(follow).collect()
    }

    fn follow(
        &self,
        problem: &Problem,
        target: &Target,
        seed: u64,
    ) -> Result<FollowedRun, TheoryError> {
        let classification = Classification::default().uncertain(self.uncertain);
        let settings = RaceCars::default().classification(classification);
        let settings = settings.gamma(Some(self.gamma)).rho(Some(self.rho));
        let space = problem.space();
        let mut optimizer = settings.optimizer(space, Some(self.budget), seed)?;
        let mut random = Random::stream(seed, STREAM + 1);
        let mut run = FollowedRun {
            first_hit: None,
            least_eta: 1.0,
            least_at: 0,
            least_region_share: 1.0,
            shrinks: 0,
        };
        let mut share = 1.0;
        for evaluation in 1..=self.budget {
            let Some(candidate) = optimizer.ask() else { break };
            // After the step's coin, and with the training set that its hypothesis was learned from.
            if let Some(region) = optimizer.region().filter(|region| region.share < share) {
                share = region.share;
                let axes = (0..space.dimension()).map(|index| space.axis(index));
                let part = |(axis, &center): (Axis, &f64)| axis.around(center, region.share);
                let region: Vec<Interval> = axes.zip(region.center).map(part).collect();
                let held = target.share_in(&region).unwrap_or(0.0);
                run.least_region_share = run.least_region_share.min(held);
            }
            let mut estimate = |(hypotheses, points): (usize, usize)| -> Option<f64> {
                let mut sum = 0.0;
                for _ in 0..hypotheses {
                    let learned = optimizer.hypothesis(&mut random)?;
                    sum += target.share_of_first(points, &learned)?;
                }
                Some(sum / hypotheses as f64)
            };
            if estimate(COARSE).is_some_and(|eta| eta < NEAR * run.least_eta)
                && let Some(eta) = estimate(FINE).filter(|eta| *eta < run.least_eta)
            {
                (run.least_eta, run.least_at) = (eta, evaluation);
            }
            let value = problem.value_at(candidate.point());
            optimizer.tell(candidate, Outcome::from(value))?;
            if value - problem.optimum() <= self.epsilon {
                run.first_hit = Some(evaluation);
                break;
            }
        }
        run.shrinks = (share.ln() / self.gamma.ln()).round() as u64;
        Ok(run)
    }
}

/// The share of runs in which the mean share of the target was below `eta` at some step before the first hit:
/// an estimate of Pr(tau before the first hit).
pub fn tau_share(runs: &[FollowedRun], eta: f64) -> f64 {
    runs.iter().filter(|run| run.least_eta < eta).count() as f64 / runs.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> GoodEvent {
        GoodEvent {
            problem: "sphere".into(),
            dim: 4,
            budget: 300,
            gamma: 0.9,
            rho: 0.1,
            uncertain: None,
            epsilon: 0.5,
            trials: 2,
            seed: 3,
        }
    }

    #[test]
    fn runs_are_followed_to_their_first_hit() {
        let runs = event().run(|_| {}).unwrap();
        for run in &runs {
            let hit = run.first_hit.unwrap();
            assert!(run.least_at < hit && run.shrinks > 0, "{run:?}");
            assert!(run.least_eta < 1.0 && run.least_eta <= run.least_region_share + 1e-9);
        }
        assert_eq!((tau_share(&runs, 0.0), tau_share(&runs, 1.0)), (0.0, 1.0));
        // The same run as without being followed.
        let problem = Problem::named("sphere", 4, 3).unwrap();
        let settings = RaceCars::default().gamma(Some(0.9)).rho(Some(0.1));
        let mut plain = settings.optimizer(problem.space(), Some(300), 3).unwrap();
        let mut first = 0;
        for evaluation in 1..=300 {
            let candidate = plain.ask().unwrap();
            let value = problem.value_at(candidate.point());
            plain.tell(candidate, Outcome::from(value)).unwrap();
            if value <= 0.5 {
                first = evaluation;
                break;
            }
        }
        assert_eq!(runs[0].first_hit, Some(first));
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        let error = |event: GoodEvent| event.run(|_| {}).unwrap_err().to_string();
        assert!(error(GoodEvent { epsilon: 0.0, ..event() }).contains("not a positive"));
        let discrete = GoodEvent { problem: "integer-sphere".into(), ..event() };
        assert!(error(discrete).contains("discrete"));
        assert!(error(GoodEvent { uncertain: Some(9), ..event() }).contains("u = 9"));
    }
}
