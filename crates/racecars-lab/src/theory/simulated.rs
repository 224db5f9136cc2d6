//! An example in which RACE-CARS itself fails more often than the printed theorem allows.
//!
//! Omega = [0, 1], f(x) = |x - 1/2|, and training that returns the whole space, so that a hypothesis is the
//! region: Algorithm 4 of the paper with nothing left out but the classifier. The target is the interval of
//! measure |Omega_eps| around 1/2. The assumption with eta = 1 holds at a step if the region holds the target,
//! which is checked at every step: tau is the first step at which it does not.

use super::TheoryError;
use super::bounds::{BoundSetting, Bounds, Queries, Version};
use racecars::random::Random;
use racecars_figures::Svg;
use racecars_figures::curves::{Chart, Curve, CurvePoint, Style};
use rayon::prelude::*;
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};

/// The examples of docs/theory.md: gamma, rho, |Omega_eps|, delta. In the third, gamma = exp(-0.008), a run
/// cannot use up kappa shrinks within the queries that are claimed to suffice.
pub const EXAMPLES: [(f64, f64, f64, f64); 3] =
    [(0.9, 0.01, 1e-6, 0.05), (0.5, 0.01, 1e-6, 0.001), (0.992_031_914_837_060_7, 0.9, 1e-4, 0.05)];

/// The setting of an example: eta = 1, lambda = 0.99, r = 22, n = 1.
pub fn example((gamma, rho, target, delta): (f64, f64, f64, f64)) -> BoundSetting {
    let base = BoundSetting { eta: 1.0, gamma, rho, dimension: 1, ..BoundSetting::default() };
    BoundSetting { ln_target: target.ln(), delta, ..base }
}

/// The runs of one example.
#[derive(Debug, Clone)]
pub struct SimulatedRuns {
    setting: BoundSetting,
    bounds: Bounds,
    /// Where each run ended.
    ends: Vec<RunEnd>,
    /// The number of queries of a run without a hit.
    budget: u64,
}

/// How a run ended: the query of the first hit, and whether the assumption failed before it.
#[derive(Debug, Clone, Copy)]
struct RunEnd {
    first_hit: u64,
    tau: u64,
}

/// One row of the table: a version of the theorem, the queries that it claims to suffice, and what happens.
#[derive(Debug, Clone, Serialize)]
pub struct SimulatedRow {
    /// gamma.
    pub gamma: f64,
    /// rho.
    pub rho: f64,
    /// |Omega_eps|.
    pub target: f64,
    /// delta: the failure that the version allows.
    pub delta: f64,
    /// kappa: the number of shrinks that volumes allow.
    pub kappa: u64,
    /// The version.
    pub version: &'static str,
    /// T: the queries that it says suffice.
    pub queries: u64,
    /// F(T): the failure of a run that hits exactly as assumed.
    pub ideal: f64,
    /// The share of simulated runs without a hit in T queries.
    pub failure: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// The share of simulated runs in which the assumption failed before the first hit and by query T.
    pub tau: f64,
}

impl SimulatedRuns {
    /// Simulates `trials` runs on all cores, up to the queries of the theorem and a quarter more. Run i is a
    /// function of the seed and i alone. `seen` is called with the number of finished runs.
    pub fn new(
        setting: BoundSetting,
        trials: u64,
        seed: u64,
        seen: impl Fn(u64) + Sync,
    ) -> Result<SimulatedRuns, TheoryError> {
        let bounds = Bounds::new(setting)?;
        let budget = count(bounds.theorem(None)?.queries())? * 5 / 4;
        let done = AtomicU64::new(0);
        let run = |trial: u64| {
            let end = simulate(&setting, budget, &mut Random::stream(seed, trial));
            seen(done.fetch_add(1, Ordering::Relaxed) + 1);
            end
        };
        let ends = (0..trials).into_par_iter().map(run).collect();
        Ok(SimulatedRuns { setting, bounds, ends, budget })
    }

    /// The share of runs without a hit in this many queries.
    pub fn failure(&self, queries: u64) -> f64 {
        self.share(|end| end.first_hit > queries)
    }

    /// The printed version, the one with the mean measure, and the theorem.
    pub fn rows(&self) -> Result<Vec<SimulatedRow>, TheoryError> {
        let theorem = self.bounds.theorem(None)?;
        let versions = [
            (Version::Printed.name(), self.bounds.race_cars(Version::Printed)),
            (Version::Mean.name(), self.bounds.race_cars(Version::Mean)),
            ("theorem", theorem.queries()),
        ];
        let BoundSetting { gamma, rho, ln_target, delta, .. } = self.setting;
        let row = |(version, queries): (&'static str, Queries)| {
            let queries = count(queries)?;
            let failure = self.failure(queries);
            Ok(SimulatedRow {
                gamma,
                rho,
                target: ln_target.exp(),
                delta,
                kappa: theorem.kappa(),
                version,
                queries,
                ideal: theorem.failure(queries),
                failure,
                standard_error: (failure * (1.0 - failure) / self.ends.len() as f64).sqrt(),
                tau: self.share(|end| end.tau <= queries.min(end.first_hit)),
            })
        };
        versions.into_iter().map(row).collect()
    }

    /// The failure over T as each version has it, and as simulated.
    pub fn figure(&self) -> Result<Svg, TheoryError> {
        let theorem = self.bounds.theorem(None)?;
        type Failure<'a> = &'a dyn Fn(u64) -> f64;
        let curve = |label: &str, color: &'static str, dash: &'static str, failure: Failure<'_>| {
            let point = |i: u64| {
                let queries = self.budget * i / 100;
                let middle = failure(queries);
                CurvePoint { x: queries as f64, middle, low: middle, high: middle }
            };
            let style = Style { color, width: if dash.is_empty() { 4.5 } else { 1.6 }, dash };
            Curve { label: label.into(), style, samples: (1..=100).map(point).collect() }
        };
        let claimed = |version| move |queries| self.bounds.race_cars_failure(version, queries);
        let BoundSetting { gamma, rho, ln_target, .. } = self.setting;
        let target = ln_target.exp();
        Ok(Chart {
            title: format!("gamma = {gamma}, rho = {rho}, target {target:.0e}"),
            x_label: "queries T".into(),
            y_label: "probability of failure".into(),
            linear: Some((0.0, 1.0)),
            curves: vec![
                // Drawn on the wide line of the simulated runs, which it should follow.
                curve("theorem", "#0072b2", "7 4", &|queries| theorem.failure(queries)),
                curve("simulated", "#b3b3b3", "", &|queries| self.failure(queries)),
                curve("mean measure", "#009e73", "2 3", &claimed(Version::Mean)),
                curve("geometric sum", "#cc79a7", "5 2 1 2", &claimed(Version::Sum)),
                curve("printed", "#d55e00", "9 3", &claimed(Version::Printed)),
            ],
        }
        .draw())
    }

    fn share(&self, is_counted: impl Fn(&RunEnd) -> bool) -> f64 {
        self.ends.iter().filter(|end| is_counted(end)).count() as f64 / self.ends.len() as f64
    }
}

fn count(queries: Queries) -> Result<u64, TheoryError> {
    match queries {
        Queries::Count(count) if count < 1 << 40 => Ok(count),
        more => Err(TheoryError::Setting(format!("{more} queries are too many to simulate"))),
    }
}

/// One run. What never happens has the number `u64::MAX`.
fn simulate(setting: &BoundSetting, budget: u64, random: &mut Random) -> RunEnd {
    let BoundSetting { lambda, gamma, rho, ln_target, training_size, .. } = *setting;
    let half_target = 0.5 * ln_target.exp();
    let (mut best, mut width) = (f64::INFINITY, 1.0f64);
    let (mut low, mut high) = (0.0f64, 1.0f64);
    let mut tau = u64::MAX;
    for query in 1..=budget {
        let is_initial = query <= training_size;
        if !is_initial && random.chance(rho) {
            width *= gamma;
            (low, high) = ((best - 0.5 * width).max(0.0), (best + 0.5 * width).min(1.0));
            if tau == u64::MAX && !(low <= 0.5 - half_target && high >= 0.5 + half_target) {
                tau = query;
            }
        }
        let x = match is_initial || !random.chance(lambda) {
            true => random.unit(),
            false => random.between(low, high),
        };
        if (x - 0.5).abs() <= half_target {
            return RunEnd { first_hit: query, tau };
        }
        if (x - 0.5).abs() < (best - 0.5).abs() {
            best = x;
        }
    }
    RunEnd { first_hit: u64::MAX, tau }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_theorem_holds_of_the_algorithm_itself_and_the_printed_bound_does_not() {
        for (example_at, trials) in [(0, 300), (1, 2000), (2, 3000)] {
            let setting = example(EXAMPLES[example_at]);
            let runs = SimulatedRuns::new(setting, trials, 1, |_| {}).unwrap();
            let rows = runs.rows().unwrap();
            let [printed, _, theorem] = rows.as_slice() else { panic!("three rows") };
            let error = |share: f64| (share * (1.0 - share) / trials as f64).sqrt();
            // The good-event version: delta, and how often the assumption failed before the first hit.
            let bound = theorem.ideal + theorem.tau;
            assert!(theorem.ideal <= setting.delta);
            assert!(theorem.failure <= bound + 3.0 * error(bound), "{theorem:?}");
            assert!(printed.failure > setting.delta + 3.0 * error(printed.failure), "{printed:?}");
            assert!(printed.failure > 5.0 * setting.delta && theorem.tau < 0.01);
        }
    }

    #[test]
    fn the_queries_are_those_of_the_document() {
        let queries = EXAMPLES.map(|example_of| {
            let bounds = Bounds::new(example(example_of)).unwrap();
            let proved = bounds.theorem(None).unwrap().queries();
            [bounds.race_cars(Version::Printed), bounds.race_cars(Version::Mean), proved]
                .map(|queries| count(queries).unwrap())
        });
        assert_eq!(queries[0], [6512, 8034, 8201]);
        assert_eq!(queries[1], [1358, 2109, 2619]);
        assert_eq!((queries[2][0], queries[2][2]), (654, 770));
        // In the third, no run can use up kappa shrinks in so many steps.
        assert!(Bounds::new(example(EXAMPLES[2])).unwrap().kappa() > 770);
    }

    #[test]
    fn runs_do_not_depend_on_the_number_of_threads() {
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let setting = example(EXAMPLES[2]);
            let runs = pool.install(|| SimulatedRuns::new(setting, 40, 3, |_| {})).unwrap();
            runs.ends.iter().map(|end| (end.first_hit, end.tau)).collect::<Vec<_>>()
        };
        assert_eq!(on(1), on(3));
    }

    #[test]
    fn the_figure_has_every_curve() {
        let runs = SimulatedRuns::new(example(EXAMPLES[2]), 50, 1, |_| {}).unwrap();
        let figure = runs.figure().unwrap().to_file();
        for label in ["simulated", "theorem", "mean measure", "geometric sum", "printed"] {
            assert!(figure.contains(label), "{label}");
        }
        assert!(!figure.contains("NaN"));
    }
}
