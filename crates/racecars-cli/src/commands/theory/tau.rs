//! `racecars theory --tau PROBLEM`: how often the theorem's assumption fails before the first hit.

use super::TheoryCommand;
use crate::output::{print, print_json, table};
use crate::progress::ProgressDisplay;
use racecars_lab::theory::BoundSetting;
use racecars_lab::theory::measured::good_event::{FollowedRun, GoodEvent, tau_share};
use serde::Serialize;
use std::process::ExitCode;

/// The number of runs.
const TRIALS: usize = 100;
/// The eta for which tau is given.
const ETAS: [f64; 5] = [0.1, 0.03, 0.01, 0.001, 0.0001];

#[derive(Serialize)]
struct TauReport {
    problem: String,
    dim: usize,
    budget: u64,
    gamma: f64,
    rho: f64,
    uncertain: Option<usize>,
    epsilon: f64,
    seed: u64,
    /// eta, and the share of runs in which a step before the first hit had less in the mean.
    tau: Vec<(f64, f64)>,
    runs: Vec<FollowedRun>,
}

pub(super) fn run(problem: &str, theory: &TheoryCommand) -> anyhow::Result<ExitCode> {
    let paper = BoundSetting::default();
    let dim = theory.dim.unwrap_or(paper.dimension);
    let event = GoodEvent {
        problem: problem.to_string(),
        dim,
        budget: theory.budget.evaluations(dim),
        gamma: theory.gamma.unwrap_or(paper.gamma),
        rho: theory.rho.unwrap_or(paper.rho),
        uncertain: theory.uncertain,
        epsilon: theory.epsilon.unwrap_or(1.0),
        trials: theory.random.trials.unwrap_or(TRIALS) as u64,
        seed: theory.random.seed,
    };
    let progress = ProgressDisplay::new(event.trials);
    let runs = event.run(|done| progress.show(done, || "runs".into()))?;
    drop(progress);
    let GoodEvent { budget, gamma, rho, uncertain, epsilon, trials, seed, .. } = event;
    let tau: Vec<(f64, f64)> = ETAS.map(|eta| (eta, tau_share(&runs, eta))).into();
    if theory.json {
        let problem = problem.to_string();
        let report =
            TauReport { problem, dim, budget, gamma, rho, uncertain, epsilon, seed, tau, runs };
        print_json(&report)?;
        return Ok(ExitCode::SUCCESS);
    }
    let draws = uncertain.map_or("as published".to_string(), |u| format!("u = {u} coordinates"));
    print(format!(
        "{problem}, n = {dim}, T = {budget}, gamma = {gamma}, rho = {rho}, epsilon = {epsilon}, draws {draws}; \
         {trials} runs, seed {seed}\n"
    ))?;
    let mut table = table(&["eta", "tau before the first hit", "± s.e."], 0);
    for (eta, share) in &tau {
        let error = (share * (1.0 - share) / trials as f64).sqrt();
        table.add_row([eta.to_string(), format!("{share:.2}"), format!("{error:.2}")]);
    }
    print(table)?;
    let mut hits: Vec<u64> = runs.iter().filter_map(|run| run.first_hit).collect();
    hits.sort_unstable();
    let when = match (hits.first(), hits.get(hits.len() / 2), hits.last()) {
        (Some(first), Some(middle), Some(last)) => {
            format!(", at {first} to {last}, median {middle}")
        }
        _ => String::new(),
    };
    print(format!("\nfirst hit    in {} of {trials} runs{when}", hits.len()))?;
    // The least, the median and the greatest.
    let spread = |value: fn(&FollowedRun) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(value).collect();
        values.sort_unstable_by(f64::total_cmp);
        [0, values.len() / 2, values.len().saturating_sub(1)]
            .map(|place| values.get(place).copied().unwrap_or(f64::NAN))
    };
    let [least, median, most] = spread(|run| run.shrinks as f64);
    print(format!("shrinks      before it: {least} to {most}, median {median}"))?;
    let [_, median, most] = spread(|run| run.least_eta);
    print(format!(
        "hypotheses   least mean share of the target before it: median {median:.4}, at most {most:.4}"
    ))?;
    let [_, median, most] = spread(|run| run.least_region_share);
    print(format!(
        "region       least share of the target before it: median {median:.4}, at most {most:.4}"
    ))?;
    Ok(ExitCode::SUCCESS)
}
