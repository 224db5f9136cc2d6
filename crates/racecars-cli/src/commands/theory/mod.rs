//! `racecars theory`: the query bounds of the paper, and measurements of what they assume.

mod measure;

use super::at_least_one;
use crate::output::{print, print_json, short, table};
use anyhow::bail;
use clap::Args;
use measure::MeasureArguments;
use racecars::Budget;
use racecars_lab::theory::bounds::{ln_ball, region};
use racecars_lab::theory::{BoundSetting, Bounds, Queries, Version};
use serde::Serialize;
use std::process::ExitCode;

/// Query bounds of SRACOS and RACE-CARS, printed and corrected; or measure what they assume
///
/// The bounds say how many evaluations find, with probability 1 - delta, a point of the target: the points
/// whose value is within epsilon of the optimum. Theorem 2 of the paper is about SRACOS, Theorem 3 about
/// RACE-CARS. The proof of Theorem 3 has mistakes, which are corrected one by one. docs/theory.md has the
/// derivations.
///
/// With --measure, run RACE-CARS on a problem instead, and measure at a hundred checkpoints the share of the
/// target that the learned hypotheses hold (the shattering rate eta), the size of the region, and whether
/// the paper's sufficient condition on gamma and rho holds.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TheoryCommand {
    /// eta: the share of the target that each hypothesis holds at least [default: 0.1]
    #[arg(long, value_name = "E", conflicts_with = "measure")]
    eta: Option<f64>,
    /// p: the greatest measure of a hypothesis, relative to the space [default: 1]
    #[arg(long, value_name = "P", conflicts_with = "measure")]
    p: Option<f64>,
    /// lambda: the probability of a draw from the hypothesis rather than from the whole space
    /// [default: 0.99]
    #[arg(long, value_name = "L")]
    pub(super) lambda: Option<f64>,
    /// gamma: each shrink multiplies the region's width by this [default: 0.9; with --measure 0.95]
    #[arg(long, value_name = "G")]
    pub(super) gamma: Option<f64>,
    /// rho: the probability of a shrink at each step [default: 0.01; with --measure 55 / budget]
    #[arg(long, value_name = "R")]
    pub(super) rho: Option<f64>,
    /// The number of coordinates [default: 50; with --measure 5]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(super) dim: Option<usize>,
    /// The target is the set of points whose value is within this of the optimum. Without --measure it is
    /// that of Sphere on [-10,10]^n, a ball [default: 1]
    #[arg(long, value_name = "E")]
    pub(super) epsilon: Option<f64>,
    /// The target's measure relative to the space, in place of --epsilon; may be as small as 1e-5000
    #[arg(long, value_name = "M", conflicts_with_all = ["measure", "epsilon"], value_parser = ln_of)]
    epsilon_measure: Option<f64>,
    /// delta: the allowed probability of failure [default: 0.05]
    #[arg(long, value_name = "D", conflicts_with = "measure")]
    delta: Option<f64>,
    /// r: the number of initial uniform draws [default: 22]
    #[arg(long, value_name = "R", conflicts_with = "measure")]
    training_size: Option<u64>,
    /// The number of evaluations, as a number or per dimension: of the run with --measure, else those after
    /// which the probability of failure is given
    #[arg(long, value_name = "T|30n", default_value = "100n")]
    pub(super) budget: Budget,
    /// Run on this problem and measure (see `racecars problem`)
    #[arg(long, value_name = "PROBLEM")]
    pub(super) measure: Option<String>,
    #[command(flatten)]
    pub(super) measuring: MeasureArguments,
    /// Print the results as JSON
    #[arg(long)]
    pub(super) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  racecars theory                                       the paper's experiment at n = 50
  racecars theory --dim 500 --gamma 0.95 --rho 0.001 --budget 50000
  racecars theory --dim 1 --gamma 0.5 --rho 0.01 --epsilon-measure 1e-6 --delta 0.001
  racecars theory --measure shifted-ackley --dim 5 --out measured";

#[derive(Serialize)]
struct BoundsReport {
    eta: f64,
    p: f64,
    lambda: f64,
    gamma: f64,
    rho: f64,
    dim: usize,
    training_size: u64,
    delta: f64,
    budget: u64,
    target_log10: f64,
    shrinks_allowed: f64,
    /// Add this to the proved failure if nothing is assumed after these shrinks.
    exhausted_failure: f64,
    printed_mean_holds: bool,
    printed_mean_least_rho: f64,
    uniform: Bound,
    sracos: Bound,
    race_cars: Vec<VersionRow>,
    /// The printed formula, which has T on its right side, at T = budget.
    printed_at_budget: Bound,
}

#[derive(Serialize)]
struct VersionRow {
    version: &'static str,
    #[serde(flatten)]
    bound: Bound,
    speedup_log10: f64,
}

/// A bound: the number of queries, and the bound on the probability of failure within the budget.
#[derive(Serialize)]
struct Bound {
    #[serde(skip)]
    queries: Queries,
    /// The number of queries if it is exact.
    count: Option<u64>,
    log10: Option<f64>,
    failure_at_budget: Option<f64>,
}

impl Bound {
    fn new(queries: Queries, failure_at_budget: Option<f64>) -> Bound {
        let count = match queries {
            Queries::Count(count) => Some(count),
            _ => None,
        };
        let log10 = Some(queries.log10()).filter(|log10| log10.is_finite());
        Bound { queries, count, log10, failure_at_budget }
    }
}

impl TheoryCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(problem) = &self.measure {
            return self.measuring.run(problem, &self);
        }
        let bounds = Bounds::new(self.setting()?)?;
        let report = self.report(&bounds);
        if self.json {
            print_json(&report)?;
        } else {
            show(&report)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn setting(&self) -> anyhow::Result<BoundSetting> {
        let usual = BoundSetting::default();
        let dimension = self.dim.unwrap_or(usual.dimension);
        let ln_target = match (self.epsilon_measure, self.epsilon.unwrap_or(1.0)) {
            (Some(ln_target), _) => ln_target,
            // Sphere's optimum is at 0.2, so its ball is 9.8 from the nearest border.
            (None, epsilon) if epsilon > 0.0 && epsilon <= 96.0 => {
                ln_ball(dimension, epsilon.sqrt() / 20.0)
            }
            (None, epsilon) => bail!(
                "epsilon = {epsilon} is not above 0 and at most 96, for Sphere's ball to lie within \
                 [-10,10]^n; --epsilon-measure takes any measure"
            ),
        };
        Ok(BoundSetting {
            eta: self.eta.unwrap_or(usual.eta),
            p: self.p.unwrap_or(usual.p),
            lambda: self.lambda.unwrap_or(usual.lambda),
            gamma: self.gamma.unwrap_or(usual.gamma),
            rho: self.rho.unwrap_or(usual.rho),
            dimension,
            training_size: self.training_size.unwrap_or(usual.training_size),
            ln_target,
            delta: self.delta.unwrap_or(usual.delta),
        })
    }

    fn report(&self, bounds: &Bounds) -> BoundsReport {
        let setting = *bounds.setting();
        let BoundSetting { eta, p, lambda, gamma, rho, dimension, training_size, delta, .. } =
            setting;
        let budget = self.budget.evaluations(dimension);
        let sracos = bounds.sracos();
        let row = |version: Version| {
            let queries = bounds.race_cars(version);
            VersionRow {
                version: version.name(),
                bound: Bound::new(queries, Some(bounds.race_cars_failure(version, budget))),
                speedup_log10: sracos.log10() - queries.log10(),
            }
        };
        BoundsReport {
            eta,
            p,
            lambda,
            gamma,
            rho,
            dim: dimension,
            training_size,
            delta,
            budget,
            target_log10: setting.ln_target / std::f64::consts::LN_10,
            shrinks_allowed: bounds.shrinks_allowed(),
            exhausted_failure: bounds.exhausted_failure(),
            printed_mean_holds: region::printed_mean_holds(gamma, rho, dimension),
            printed_mean_least_rho: region::least_rho(gamma, dimension),
            uniform: Bound::new(bounds.uniform(), None),
            sracos: Bound::new(sracos, Some(bounds.sracos_failure(budget))),
            race_cars: Version::ALL.map(row).into(),
            printed_at_budget: Bound::new(bounds.printed_formula(budget), None),
        }
    }
}

fn show(report: &BoundsReport) -> anyhow::Result<()> {
    let BoundsReport { eta, p, lambda, gamma, rho, dim, training_size: r, delta, budget, .. } =
        report;
    print(format!(
        "n = {dim}, gamma = {gamma}, rho = {rho}, lambda = {lambda}, eta = {eta}, p = {p}, r = {r}, \
         delta = {delta}\ntarget: {} of the space\n",
        Queries::power_of_ten(report.target_log10)
    ))?;
    let failure = format!("failure at T = {budget}");
    let mut table = table(&["bound", "queries", "speed-up", &failure], 1);
    let cell = |bound: &Bound| bound.failure_at_budget.map_or(String::new(), probability);
    table.add_row(["random search", &report.uniform.queries.to_string(), "", ""]);
    table.add_row([
        "SRACOS, Theorem 2",
        &report.sracos.queries.to_string(),
        "",
        &cell(&report.sracos),
    ]);
    let names = [
        "RACE-CARS, Theorem 3 as printed",
        "  with the geometric sum",
        "  and the region's mean measure",
        "  and the mean taken last: proved",
    ];
    for (name, row) in names.into_iter().zip(&report.race_cars) {
        let speedup = match row.speedup_log10 {
            known if known.is_finite() => Queries::power_of_ten(known),
            _ => String::new(),
        };
        table.add_row([name, &row.bound.queries.to_string(), &speedup, &cell(&row.bound)]);
    }
    print(table)?;
    print(format!(
        "\nAs printed the bound has T on either side: at T = {budget} it reads max{{{}, T}}.\n\
         The rows are the least T that satisfy it.",
        report.printed_at_budget.queries
    ))?;
    if *rho > 0.0 && report.shrinks_allowed.is_finite() {
        print(format!(
            "That hypotheses hold the share eta of the target allows at most {:.1} shrinks, on average \
             {} steps.\nAfter that the bounds count on hypotheses within the target. With nothing assumed \
             there,\n{} is to be added to the failure of the last row.",
            report.shrinks_allowed,
            short((report.shrinks_allowed / rho).ceil()),
            probability(report.exhausted_failure)
        ))?;
    }
    let least = report.printed_mean_least_rho;
    if report.printed_mean_holds {
        print(
            "The proof's bound on the region's mean measure, gamma^((t-r) rho), holds, since \
             1 - rho + rho gamma^n <= gamma^rho.",
        )
    } else {
        print(format!(
            "The proof's bound on the region's mean measure, gamma^((t-r) rho), does not hold: \
             1 - rho + rho gamma^n > gamma^rho.\nAt this n and gamma it holds from rho = {} on.",
            short(least)
        ))
    }
}

fn probability(p: f64) -> String {
    if p < 1e-3 { short(p) } else { format!("{p:.3}") }
}

/// Parses a positive number of at most 1 as its logarithm; it may be smaller than any `f64`.
fn ln_of(text: &str) -> Result<f64, String> {
    let wrong = || "not a number above 0 and at most 1, such as 1e-80".to_string();
    let (digits, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let digits: f64 = digits.parse().map_err(|_| wrong())?;
    let power: i32 = power.parse().map_err(|_| wrong())?;
    let ln = digits.ln() + f64::from(power) * std::f64::consts::LN_10;
    if ln.is_finite() && ln <= 0.0 { Ok(ln) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::ln_of;

    #[test]
    fn measures_may_be_smaller_than_any_float() {
        assert_eq!(ln_of("1"), Ok(0.0));
        assert!((ln_of("0.05").unwrap() - 0.05f64.ln()).abs() < 1e-15);
        assert!((ln_of("2.5e-3").unwrap() - 0.0025f64.ln()).abs() < 1e-12);
        assert!((ln_of("1e-5000").unwrap() + 11_512.925).abs() < 1e-2);
        for wrong in ["", "0", "2", "-1", "nan", "1e", "e-5", "inf", "1e1", "1e-99999999999"] {
            assert!(ln_of(wrong).is_err(), "{wrong}");
        }
    }
}
