//! `racecars theory --geometry`: which kappa volumes and geometry allow for Sphere's target, and what that costs.

use super::{RADIUS, TheoryCommand, figure_file, probability};
use crate::output::{print, print_json, table};
use racecars_figures::curves::{Chart, Curve, CurvePoint, Style};
use racecars_lab::theory::bounds::{geometry, ln_ball};
use racecars_lab::theory::{BoundSetting, Bounds, Queries};
use serde::Serialize;
use std::process::ExitCode;

/// The dimensions of the table with their gamma and rho: the paper's for 50 and 500, and those of 50 below.
const ROWS: [(usize, f64, f64); 5] =
    [(5, 0.9, 0.01), (10, 0.9, 0.01), (20, 0.9, 0.01), (50, 0.9, 0.01), (500, 0.95, 0.001)];
/// The figure shows eta from 1 down to 10 to the minus this.
const DECADES: u32 = 6;
const POINTS_PER_DECADE: u32 = 60;

#[derive(Serialize)]
struct GeometryRow {
    dim: usize,
    gamma: f64,
    rho: f64,
    target_log10: f64,
    eta: f64,
    by_volume: KappaRow,
    by_geometry: KappaRow,
    chosen: Option<ChosenRow>,
}

#[derive(Serialize)]
struct KappaRow {
    kappa: Option<u64>,
    exhausted: Option<f64>,
}

#[derive(Serialize)]
struct ChosenRow {
    kappa: u64,
    eta: f64,
    exhausted: f64,
    queries: String,
}

pub(super) fn run(theory: &TheoryCommand) -> anyhow::Result<ExitCode> {
    let eta = theory.eta.unwrap_or(BoundSetting::default().eta);
    let delta = theory.delta.unwrap_or(BoundSetting::default().delta);
    let setting_of = |(dimension, gamma, rho): (usize, f64, f64)| BoundSetting {
        eta,
        delta,
        gamma,
        rho,
        dimension,
        ln_target: ln_ball(dimension, RADIUS),
        ..BoundSetting::default()
    };
    let rows: Vec<GeometryRow> =
        ROWS.iter().map(|row| geometry_row(&setting_of(*row))).collect::<anyhow::Result<_>>()?;
    let figure = match &theory.random.out {
        Some(directory) => {
            let [_, _, _, paper, _] = ROWS;
            Some(figure_file(directory, "theory-added-failure", &added(&setting_of(paper))?)?)
        }
        None => None,
    };
    if theory.json {
        print_json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    print(format!(
        "Sphere on [-10,10]^n, value 1; lambda = 0.99, r = 22, delta = {delta:?}; first for eta = {eta}\n"
    ))?;
    let headings = [
        "n",
        "gamma",
        "rho",
        "target",
        "kappa by volume",
        "added",
        "by geometry",
        "added",
        "kappa",
        "eta",
        "added",
        "T",
    ];
    let mut table = table(&headings, 0);
    for row in &rows {
        let number = |x: Option<u64>| x.map_or("none".to_string(), |x| x.to_string());
        let share = |x: Option<f64>| x.map_or(String::new(), probability);
        let chosen = row.chosen.as_ref().map(|chosen| {
            let eta = Queries::power_of_ten(chosen.eta.log10());
            let ChosenRow { kappa, exhausted, queries, .. } = chosen;
            [kappa.to_string(), eta, probability(*exhausted), queries.clone()]
        });
        let known = [
            row.dim.to_string(),
            row.gamma.to_string(),
            row.rho.to_string(),
            Queries::power_of_ten(row.target_log10),
            number(row.by_volume.kappa),
            share(row.by_volume.exhausted),
            number(row.by_geometry.kappa),
            share(row.by_geometry.exhausted),
        ];
        table.add_row(known.into_iter().chain(chosen.into_iter().flatten()));
    }
    print(table)?;
    print(
        "\nAdded: the probability that the shrinks run out before a hit, X. The last four columns: the least \
         kappa at\nwhich X is at most delta / 2 for the largest eta that geometry does not exclude, and T with \
         F <= delta.",
    )?;
    if let Some(file) = figure {
        print(format!("wrote        {}", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn geometry_row(setting: &BoundSetting) -> anyhow::Result<GeometryRow> {
    let bounds = Bounds::new(*setting)?;
    let row = |kappa: Option<u64>| -> anyhow::Result<KappaRow> {
        let theorem = kappa.map(|kappa| bounds.theorem(Some(kappa))).transpose()?;
        Ok(KappaRow { kappa, exhausted: theorem.map(|theorem| theorem.exhausted()) })
    };
    let chosen = geometry::least_kappa(setting, RADIUS, 0.5 * setting.delta)?;
    Ok(GeometryRow {
        dim: setting.dimension,
        gamma: setting.gamma,
        rho: setting.rho,
        target_log10: setting.ln_target / std::f64::consts::LN_10,
        eta: setting.eta,
        by_volume: row(Some(bounds.kappa()))?,
        by_geometry: row(geometry::kappa(setting, RADIUS))?,
        chosen: chosen.map(|(eta, theorem)| ChosenRow {
            kappa: theorem.kappa(),
            eta,
            exhausted: theorem.exhausted(),
            queries: theorem.queries().to_string(),
        }),
    })
}

/// The added failure over eta, with the kappa that volumes allow and with the one that geometry allows.
fn added(setting: &BoundSetting) -> anyhow::Result<racecars_figures::Svg> {
    let curve =
        |label: &str, color, dash, kappa: &dyn Fn(&BoundSetting, &Bounds) -> Option<u64>| {
            let point = |i: u32| -> anyhow::Result<Option<CurvePoint>> {
                let x = f64::from(i) / f64::from(POINTS_PER_DECADE);
                let setting = BoundSetting { eta: 10f64.powf(-x), ..*setting };
                let bounds = Bounds::new(setting)?;
                let Some(kappa) = kappa(&setting, &bounds) else { return Ok(None) };
                let middle = bounds.theorem(Some(kappa))?.exhausted();
                Ok(Some(CurvePoint { x, middle, low: middle, high: middle }))
            };
            let points = (0..=DECADES * POINTS_PER_DECADE).map(point);
            let points = points.collect::<anyhow::Result<Vec<_>>>()?;
            let style = Style { color, width: 1.8, dash };
            let samples = points.into_iter().flatten().collect();
            anyhow::Ok(Curve { label: label.into(), style, samples })
        };
    let BoundSetting { dimension, gamma, rho, .. } = setting;
    let chart = Chart {
        title: format!("n = {dimension}, gamma = {gamma}, rho = {rho}: Sphere, value 1"),
        x_label: "-log10 of eta".into(),
        y_label: "added failure".into(),
        linear: Some((0.0, 1.0)),
        curves: vec![
            curve("kappa by volume", "#0072b2", "", &|_, bounds| Some(bounds.kappa()))?,
            curve("kappa by geometry", "#d55e00", "6 3", &|setting, _| {
                geometry::kappa(setting, RADIUS)
            })?,
        ],
    };
    Ok(chart.draw())
}
