//! Measurements of what the theorems assume, in a run of RACE-CARS on a problem with known optimum.
//!
//! At about a hundred checkpoints, hypotheses are learned as the optimizer would learn them, and the share
//! of the target that each holds is estimated: the hypothesis-target shattering rate eta (Definition 4),
//! `P(Omega_eps and h) / |Omega_eps|`. The region's measure is exact.
//!
//! - [`target`]: how points of Omega_eps are drawn, and where that is unreliable
//! - [`figure`]: the measured run as a figure
//! - [`good_event`]: many runs, and how often the theorem's assumption fails before the first hit

pub mod figure;
pub mod good_event;
pub mod target;

use super::TheoryError;
use super::bounds::region;
use racecars::optimizers::Shell;
use racecars::optimizers::racos::RacosSearch;
use racecars::random::Random;
use racecars::{Axis, Classification, Interval, Optimizer, Outcome, RaceCars, Shrinking};
use racecars_problems::Problem;
use serde::Serialize;
use std::fmt::Write;
use target::Target;

/// The approximate number of checkpoints of a run.
const CHECKPOINTS: u64 = 100;
/// The number of hypotheses learned at each checkpoint.
const HYPOTHESES: usize = 50;
/// The random stream of the seed for the target's points and the hypotheses. The run has the seed itself.
const STREAM: u64 = 0x7468_656f;

/// A run to be measured.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// The problem's name.
    pub problem: String,
    /// Its dimension.
    pub dim: usize,
    /// The evaluations.
    pub budget: u64,
    /// gamma; `None` for the default.
    pub gamma: Option<f64>,
    /// rho; `None` for the default.
    pub rho: Option<f64>,
    /// lambda; `None` for the default.
    pub lambda: Option<f64>,
    /// The seed of the run and of the problem's random parts.
    pub seed: u64,
    /// The target is where f - f* is at most this.
    pub epsilon: f64,
    /// The number of points of the target to draw.
    pub samples: usize,
}

/// A run that has been measured.
#[derive(Debug, Clone, Serialize)]
pub struct MeasuredRun {
    /// The problem's name.
    pub problem: String,
    /// Its dimension.
    pub dim: usize,
    /// The evaluations.
    pub budget: u64,
    /// The seed.
    pub seed: u64,
    /// gamma.
    pub gamma: f64,
    /// rho.
    pub rho: f64,
    /// The target is where f - f* is at most this.
    pub epsilon: f64,
    /// The base-10 logarithm of the target's measure; `None` if no draw hit the target.
    pub target_log10: Option<f64>,
    /// The number of points drawn from the target.
    pub target_points: usize,
    /// The number of draws that they took.
    pub target_draws: u64,
    /// Whether the draws were from a box that holds the target, rather than from the whole domain.
    pub target_framed: bool,
    /// r: the number of initial uniform evaluations.
    pub training_size: u64,
    /// The first evaluation in the target.
    pub first_hit: Option<u64>,
    /// The number of evaluations in the target.
    pub hits: u64,
    /// The checkpoints, in order.
    pub checkpoints: Vec<Checkpoint>,
}

/// The measurements after some evaluation.
#[derive(Debug, Clone, Serialize)]
pub struct Checkpoint {
    /// The evaluations so far.
    pub evaluations: u64,
    /// The best value minus the optimum.
    pub gap: f64,
    /// The number of shrinks of the region.
    pub shrinks: u64,
    /// The base-10 logarithm of the region's measure.
    pub region_log10: f64,
    /// The same of its mean over runs, (1 - rho + rho gamma^n)^(t - r), before clipping.
    pub mean_log10: f64,
    /// The same of the bound on its mean in the proof of Theorem 3, gamma^((t - r) rho).
    pub printed_mean_log10: f64,
    /// The mean base-10 logarithm of the hypotheses' measures.
    pub hypothesis_log10: f64,
    /// The mean share of the target that a hypothesis holds.
    pub eta: Option<f64>,
    /// The least share among the hypotheses.
    pub eta_least: Option<f64>,
    /// The greatest share among the hypotheses.
    pub eta_most: Option<f64>,
    /// The share of the target that the region holds.
    pub region_share: Option<f64>,
    /// Whether the paper's condition holds, with the exponent corrected: in every coordinate
    /// gamma^((t - r) rho) |Omega| / 2 >= |best - x*| + the target's reach. `None` if the reach is
    /// not known.
    pub condition: Option<bool>,
    /// Whether the actual region holds everything within the target's reach, which the condition is
    /// meant to guarantee.
    pub covered: Option<bool>,
}

impl Measurement {
    fn settings(&self) -> RaceCars {
        let classification = Classification::default().exploitation(self.lambda);
        RaceCars::default().classification(classification).gamma(self.gamma).rho(self.rho)
    }

    /// Runs and measures. `seen` is called at every checkpoint.
    pub fn run(&self, mut seen: impl FnMut(u64)) -> Result<MeasuredRun, TheoryError> {
        if !(self.epsilon > 0.0 && self.epsilon.is_finite()) {
            return Err(TheoryError::Epsilon(self.epsilon));
        }
        let problem = Problem::named(&self.problem, self.dim, self.seed)?;
        let space = problem.space();
        if !space.is_continuous() {
            return Err(TheoryError::NotContinuous(self.problem.clone()));
        }
        let settings = self.settings();
        let budget = Some(self.budget);
        let Shrinking { gamma, rho, .. } = settings.shrinking(self.dim, budget)?;
        let mut optimizer = settings.optimizer(space, budget, self.seed)?;
        let mut random = Random::stream(self.seed, STREAM);
        let target = Target::of(&problem, self.epsilon, self.samples, &mut random);
        let minimizer = problem.minimizer();
        let mut probe =
            RunProbe { gamma, rho, reach: target.reach(&minimizer), target, minimizer, random };

        let mut training_size = None;
        let (mut first_hit, mut hits) = (None, 0);
        let mut checkpoints = Vec::new();
        for evaluation in 1..=self.budget {
            let Some(candidate) = optimizer.ask() else { break };
            let value = problem.value_at(candidate.point());
            optimizer.tell(candidate, Outcome::from(value))?;
            if value - problem.optimum() <= self.epsilon {
                first_hit.get_or_insert(evaluation);
                hits += 1;
            }
            if training_size.is_none() && optimizer.hypothesis(&mut probe.random).is_some() {
                training_size = Some(evaluation);
            }
            let is_due = |evaluation| evaluation * CHECKPOINTS / self.budget;
            if is_due(evaluation) > is_due(evaluation - 1) || self.budget <= CHECKPOINTS {
                let steps = evaluation - training_size.unwrap_or(evaluation);
                checkpoints.extend(probe.look(&optimizer, problem.optimum(), steps));
                seen(evaluation);
            }
        }
        let RunProbe { target, .. } = probe;
        Ok(MeasuredRun {
            problem: self.problem.clone(),
            dim: self.dim,
            budget: self.budget,
            seed: self.seed,
            gamma,
            rho,
            epsilon: self.epsilon,
            target_log10: target.ln_measure.map(to_log10),
            target_points: target.len(),
            target_draws: target.draws,
            target_framed: target.is_framed,
            training_size: training_size.unwrap_or(self.budget),
            first_hit,
            hits,
            checkpoints,
        })
    }
}

/// The reference that the optimizer is compared with at a checkpoint.
struct RunProbe {
    gamma: f64,
    rho: f64,
    target: Target,
    /// The target's reach from the minimizer in each coordinate.
    reach: Option<Vec<f64>>,
    minimizer: Vec<f64>,
    random: Random,
}

impl RunProbe {
    /// Measures a checkpoint; `None` until there is a hypothesis.
    fn look(
        &mut self,
        optimizer: &Shell<RacosSearch>,
        optimum: f64,
        steps: u64,
    ) -> Option<Checkpoint> {
        let space = optimizer.space();
        let best = optimizer.best()?;
        let axes = || (0..space.dimension()).map(|index| space.axis(index));
        let (fraction, region): (f64, Vec<Interval>) = match optimizer.region() {
            None => (1.0, axes().map(Axis::extent).collect()),
            Some(region) => {
                let part = |(axis, &center): (Axis, &f64)| axis.around(center, region.share);
                (region.share, axes().zip(region.center).map(part).collect())
            }
        };
        let (mut shares, mut ln_measures) = (Vec::new(), 0.0);
        for _ in 0..HYPOTHESES {
            let learned = optimizer.hypothesis(&mut self.random)?;
            ln_measures += target::ln_measure(space, &learned);
            shares.extend(self.target.share_in(&learned));
        }
        let is_measured = !shares.is_empty();
        let eta = shares.iter().sum::<f64>() / shares.len() as f64;
        let least = shares.iter().copied().fold(1.0, f64::min);
        let most = shares.iter().copied().fold(0.0, f64::max);

        let remaining = (steps as f64 * -region::ln_decay_printed(self.gamma, self.rho)).exp();
        let condition = self.reach.as_ref().map(|reach| {
            axes().enumerate().all(|(i, axis)| {
                let Interval { low, high } = axis.extent();
                let half_width = 0.5 * remaining * (high - low);
                region::is_sufficient(half_width, best.point[i] - self.minimizer[i], reach[i])
            })
        });
        let covered = self.reach.as_ref().map(|reach| {
            region.iter().zip(axes()).enumerate().all(|(i, (part, axis))| {
                let (center, whole) = (self.minimizer[i], axis.extent());
                part.low <= (center - reach[i]).max(whole.low)
                    && part.high >= (center + reach[i]).min(whole.high)
            })
        });
        let decay = region::ln_decay(self.gamma, self.rho, space.dimension());
        Some(Checkpoint {
            evaluations: optimizer.told(),
            gap: best.rank.value()? - optimum,
            shrinks: (fraction.ln() / self.gamma.ln()).round() as u64,
            region_log10: to_log10(target::ln_measure(space, &region)),
            mean_log10: to_log10(-(steps as f64) * decay),
            printed_mean_log10: remaining.log10(),
            hypothesis_log10: to_log10(ln_measures / HYPOTHESES as f64),
            eta: is_measured.then_some(eta),
            eta_least: is_measured.then_some(least),
            eta_most: is_measured.then_some(most),
            region_share: self.target.share_in(&region),
            condition,
            covered,
        })
    }
}

impl MeasuredRun {
    /// The least mean share of the target that hypotheses held up to the first hit, or in the whole run
    /// if there was none: the eta for which the theorems could be applied.
    pub fn least_eta(&self) -> Option<f64> {
        let until = self.first_hit.unwrap_or(self.budget);
        let first = self.checkpoints.first().map_or(0, |first| first.evaluations);
        let looks = self.checkpoints.iter().filter(|look| look.evaluations <= until.max(first));
        looks.filter_map(|look| look.eta).min_by(f64::total_cmp)
    }

    /// The last evaluation up to which the region covered the target at all checkpoints; `None` if it
    /// always did.
    pub fn covered_until(&self) -> Option<u64> {
        last_before(&self.checkpoints, |look| look.covered == Some(false))
    }

    /// The same for the paper's condition.
    pub fn condition_until(&self) -> Option<u64> {
        last_before(&self.checkpoints, |look| look.condition == Some(false))
    }

    /// The checkpoints as CSV, with an empty cell for an unknown value.
    pub fn csv(&self) -> String {
        let mut text = String::from(
            "evaluations,gap,shrinks,region_log10,mean_log10,printed_mean_log10,hypothesis_log10,\
             eta,eta_least,eta_most,region_share,condition,covered\n",
        );
        fn known(x: Option<impl ToString>) -> String {
            x.map_or(String::new(), |x| x.to_string())
        }
        for look in &self.checkpoints {
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{},{},{},{},{}",
                look.evaluations,
                look.gap,
                look.shrinks,
                look.region_log10,
                look.mean_log10,
                look.printed_mean_log10,
                look.hypothesis_log10,
                known(look.eta),
                known(look.eta_least),
                known(look.eta_most),
                known(look.region_share),
                known(look.condition),
                known(look.covered),
            );
        }
        text
    }
}

/// The evaluations of the checkpoint before the first `wrong` one; 0 if the first one is wrong.
fn last_before(checkpoints: &[Checkpoint], wrong: impl Fn(&Checkpoint) -> bool) -> Option<u64> {
    let place = checkpoints.iter().position(wrong)?;
    Some(place.checked_sub(1).map_or(0, |before| checkpoints[before].evaluations))
}

fn to_log10(ln: f64) -> f64 {
    ln / std::f64::consts::LN_10
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurement() -> Measurement {
        Measurement {
            problem: "shifted-sphere".into(),
            dim: 3,
            budget: 400,
            gamma: Some(0.9),
            rho: Some(0.1),
            lambda: None,
            seed: 4,
            epsilon: 0.5,
            samples: 300,
        }
    }

    #[test]
    fn measuring_a_run_does_not_change_it() {
        let measured = measurement().run(|_| {}).unwrap();
        let problem = Problem::named("shifted-sphere", 3, 4).unwrap();
        let algorithm = racecars::Algorithm::RaceCars(measurement().settings());
        let plain = racecars::minimize(problem.space()).algorithm(algorithm).budget(400).seed(4);
        let solution = plain.run(|point| problem.evaluate(point)).unwrap();
        assert_eq!(measured.checkpoints.last().unwrap().gap, solution.value().unwrap());
        assert_eq!(measured.training_size, 12);
        assert!((95..=100).contains(&measured.checkpoints.len()));
    }

    #[test]
    fn measurements_are_consistent() {
        let measured = measurement().run(|_| {}).unwrap();
        for look in &measured.checkpoints {
            let (least, eta) = (look.eta_least.unwrap(), look.eta.unwrap());
            assert!(least <= eta && eta <= look.eta_most.unwrap());
            assert!(look.eta_most <= look.region_share, "a hypothesis is part of the region");
            assert!(look.hypothesis_log10 <= look.region_log10 && look.region_log10 <= 0.0);
            assert!(look.covered == Some(false) || look.region_share == Some(1.0));
            let widest = 3.0 * look.shrinks as f64 * 0.9f64.log10();
            assert!(look.region_log10 <= widest + 1e-9, "less only where it is clipped");
        }
        let shrinks = measured.checkpoints.last().unwrap().shrinks;
        assert!((20..60).contains(&shrinks), "about 39: {shrinks}");
        assert_eq!(measured.csv().lines().count(), 1 + measured.checkpoints.len());
    }

    #[test]
    fn a_target_that_no_draw_hits_is_reported_as_that() {
        let measurement =
            Measurement { problem: "griewank".into(), dim: 5, budget: 30, ..measurement() };
        let measurement = Measurement { epsilon: 1e-9, ..measurement };
        let measured = measurement.run(|_| {}).unwrap();
        assert_eq!((measured.target_log10, measured.target_points), (None, 0));
        assert!(measured.checkpoints.iter().all(|look| look.eta.is_none()));
        assert!(measured.csv().contains(",,,,"));
    }

    #[test]
    fn invalid_measurements_are_refused() {
        let error = |measurement: Measurement| measurement.run(|_| {}).unwrap_err().to_string();
        assert!(
            error(Measurement { problem: "integer-sphere".into(), ..measurement() })
                .contains("discrete")
        );
        assert!(error(Measurement { epsilon: 0.0, ..measurement() }).contains("not a positive"));
        assert!(
            error(Measurement { problem: "none".into(), ..measurement() }).contains("not known")
        );
    }
}
