//! `racecars theory --corollary`: the theorem's closed form, with gamma and rho chosen for it.

use super::TheoryCommand;
use crate::output::{print, print_json, short, table};
use racecars_lab::theory::bounds::one_shrink;
use racecars_lab::theory::{BoundSetting, Corollary, Queries};
use serde::Serialize;
use std::process::ExitCode;

#[derive(Serialize)]
struct CorollaryReport {
    dim: usize,
    eta: f64,
    delta: f64,
    lambda: f64,
    training_size: u64,
    /// With theta = 1, for an m that is simple and one that is smaller; and, for Sphere's target, with
    /// theta = 1/2 and the largest eta that geometry does not exclude then.
    rows: Vec<CorollaryRow>,
    /// The queries if one shrink took the region to eta |Omega_eps|.
    one_shrink: String,
}

#[derive(Serialize)]
struct CorollaryRow {
    eta: f64,
    theta: f64,
    m: u64,
    gamma: f64,
    kappa: u64,
    exhausted: f64,
    closed_form: String,
    weaker_form: String,
    by_halves: String,
    exact: String,
}

pub(super) fn run(theory: &TheoryCommand) -> anyhow::Result<ExitCode> {
    let setting = theory.setting()?;
    let row = |corollary: Corollary| -> anyhow::Result<CorollaryRow> {
        Ok(CorollaryRow {
            eta: corollary.eta(),
            theta: corollary.theta(),
            m: corollary.shrinks_per_e(),
            gamma: corollary.gamma(),
            kappa: corollary.theorem().kappa(),
            exhausted: corollary.theorem().exhausted(),
            closed_form: corollary.closed_form().to_string(),
            weaker_form: corollary.weaker_form().to_string(),
            by_halves: corollary.queries_by_halves()?.to_string(),
            exact: corollary.theorem().queries().to_string(),
        })
    };
    let of_volume = [Corollary::m(&setting, 1.0), Corollary::smaller_m(&setting, 1.0)]
        .map(|m| Corollary::new(setting, m, 1.0));
    let mut rows = of_volume
        .into_iter()
        .map(|corollary| row(corollary?))
        .collect::<anyhow::Result<Vec<CorollaryRow>>>()?;
    if theory.radius().is_some()
        && let Some(corollary) = Corollary::within_geometry(&setting)
    {
        rows.push(row(corollary)?);
    }
    let BoundSetting { dimension, eta, delta, lambda, training_size, .. } = setting;
    let report = CorollaryReport {
        dim: dimension,
        eta,
        delta,
        lambda,
        training_size,
        rows,
        one_shrink: one_shrink(&setting)?.queries().to_string(),
    };
    if theory.json {
        print_json(&report)?;
        return Ok(ExitCode::SUCCESS);
    }
    print(format!(
        "n = {dimension}, rho = 0.5, lambda = {lambda}, r = {training_size}, delta = {delta:?}\n"
    ))?;
    let headings = [
        "eta",
        "theta",
        "m",
        "gamma",
        "kappa",
        "added failure",
        "T, closed form",
        "T, weaker form",
        "T, Phi <= delta/2",
        "T, F <= delta",
    ];
    let mut table = table(&headings, 0);
    for row in &report.rows {
        table.add_row([
            Queries::power_of_ten(row.eta.log10()),
            format!("{:.3}", row.theta),
            row.m.to_string(),
            format!("{:.6}", row.gamma),
            row.kappa.to_string(),
            short(row.exhausted),
            row.closed_form.clone(),
            row.weaker_form.clone(),
            row.by_halves.clone(),
            row.exact.clone(),
        ]);
    }
    print(table)?;
    print(format!(
        "\nWith gamma^n = eta |Omega_eps|, one shrink from the whole space to the target's size, \
         eta = {eta:?} gives T = {}.",
        report.one_shrink
    ))?;
    Ok(ExitCode::SUCCESS)
}
