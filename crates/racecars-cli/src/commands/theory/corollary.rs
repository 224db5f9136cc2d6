//! `racecars theory --corollary`: the theorem's closed form, with gamma and rho chosen for it.

use super::TheoryCommand;
use crate::output::{print, print_json, short, table};
use racecars_lab::theory::bounds::one_shrink;
use racecars_lab::theory::{BoundSetting, Corollary};
use serde::Serialize;
use std::process::ExitCode;

#[derive(Serialize)]
struct CorollaryReport {
    dim: usize,
    eta: f64,
    delta: f64,
    lambda: f64,
    training_size: u64,
    rows: Vec<CorollaryRow>,
    /// The queries if one shrink took the region to eta |Omega_eps|.
    one_shrink: String,
}

#[derive(Serialize)]
struct CorollaryRow {
    m: u64,
    gamma: f64,
    kappa: u64,
    exhausted: f64,
    closed_form: String,
    waiting_form: String,
    by_halves: String,
    exact: String,
}

pub(super) fn run(theory: &TheoryCommand) -> anyhow::Result<ExitCode> {
    let setting = theory.setting()?;
    let row = |m: u64| -> anyhow::Result<CorollaryRow> {
        let corollary = Corollary::new(setting, m)?;
        Ok(CorollaryRow {
            m,
            gamma: corollary.gamma(),
            kappa: corollary.theorem().kappa(),
            exhausted: corollary.theorem().exhausted(),
            closed_form: corollary.closed_form().to_string(),
            waiting_form: corollary.waiting_form().to_string(),
            by_halves: corollary.queries_by_halves()?.to_string(),
            exact: corollary.theorem().queries().to_string(),
        })
    };
    let BoundSetting { dimension, eta, delta, lambda, training_size, .. } = setting;
    let report = CorollaryReport {
        dim: dimension,
        eta,
        delta,
        lambda,
        training_size,
        rows: vec![row(Corollary::m(&setting))?, row(Corollary::smaller_m(&setting))?],
        one_shrink: one_shrink(&setting)?.queries().to_string(),
    };
    if theory.json {
        print_json(&report)?;
        return Ok(ExitCode::SUCCESS);
    }
    print(format!(
        "n = {dimension}, rho = 0.5, lambda = {lambda}, eta = {eta}, r = {training_size}, \
         delta = {delta}\n"
    ))?;
    let headings = [
        "m",
        "gamma",
        "kappa",
        "added failure",
        "T, closed form",
        "T, waiting form",
        "T, Phi <= delta/2",
        "T, F <= delta",
    ];
    let mut table = table(&headings, 0);
    for row in &report.rows {
        table.add_row([
            row.m.to_string(),
            format!("{:.6}", row.gamma),
            row.kappa.to_string(),
            short(row.exhausted),
            row.closed_form.clone(),
            row.waiting_form.clone(),
            row.by_halves.clone(),
            row.exact.clone(),
        ]);
    }
    print(table)?;
    print(format!(
        "\nWith gamma^n = eta |Omega_eps|, one shrink from the whole space to the target's size, the same \
         eta gives T = {}.",
        report.one_shrink
    ))?;
    Ok(ExitCode::SUCCESS)
}
