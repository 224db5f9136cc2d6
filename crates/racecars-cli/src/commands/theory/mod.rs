//! `racecars theory`: the query bounds of the paper, and measurements of what they assume.

mod corollary;
mod geometry;
mod measure;
mod simulate;
mod tau;

use super::at_least_one;
use crate::output::{print, print_json, short, table};
use anyhow::{Context, bail};
use clap::Args;
use measure::MeasureArguments;
use racecars::Budget;
use racecars_figures::Svg;
use racecars_lab::theory::bounds::{geometry as shape, ln_ball, lower, region};
use racecars_lab::theory::{BoundSetting, Bounds, Queries, Theorem, Version};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The radius of Sphere's target at value 1, in units of the domain's width.
const RADIUS: f64 = 1.0 / 20.0;

/// Query bounds of SRACOS and RACE-CARS, printed and corrected; or measure what they assume
///
/// The bounds say how many evaluations find, with probability 1 - delta, a point of the target: the points
/// whose value is within epsilon of the optimum. Theorem 2 of the paper is about SRACOS, Theorem 3 about
/// RACE-CARS. The proof of Theorem 3 has mistakes, which are corrected one by one. The last row is a theorem: it
/// assumes that hypotheses hold the share eta of the target (half 1 of Theorem 3's assumption) up to kappa
/// shrinks of the region, and nothing afterwards. docs/theory.md has the derivations.
///
/// --corollary, --geometry, --simulate and --tau print the other tables of docs/theory.md.
///
/// With --measure, run RACE-CARS on a problem instead, and measure at a hundred checkpoints the share of the
/// target that the learned hypotheses hold (the shattering rate eta), the size of the region, and whether
/// the paper's sufficient condition on gamma and rho holds.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TheoryCommand {
    /// eta: the share of the target that each hypothesis holds at least [default: 0.1]
    #[arg(long, value_name = "E", conflicts_with_all = ["measure", "tau", "simulate"])]
    pub(super) eta: Option<f64>,
    /// p: the greatest measure of a hypothesis, relative to the space [default: 1]
    #[arg(long, value_name = "P", conflicts_with_all = ["measure", "tau", "simulate", "geometry"])]
    p: Option<f64>,
    /// kappa: the number of shrinks up to which eta holds [default: the greatest that volumes allow]
    #[arg(long, value_name = "K",
        conflicts_with_all = ["measure", "tau", "simulate", "geometry", "corollary"])]
    kappa: Option<u64>,
    /// lambda: the probability of a draw from the hypothesis rather than from the whole space
    /// [default: 0.99]
    #[arg(long, value_name = "L", conflicts_with_all = ["tau", "simulate", "geometry"])]
    pub(super) lambda: Option<f64>,
    /// gamma: each shrink multiplies the region's width by this [default: 0.9; with --measure 0.95]
    #[arg(long, value_name = "G", conflicts_with_all = ["simulate", "geometry", "corollary"])]
    pub(super) gamma: Option<f64>,
    /// rho: the probability of a shrink at each step [default: 0.01; with --measure 55 / budget]
    #[arg(long, value_name = "R", conflicts_with_all = ["simulate", "geometry", "corollary"])]
    pub(super) rho: Option<f64>,
    /// The number of coordinates [default: 50; with --measure 5]
    #[arg(long, value_name = "N", value_parser = at_least_one,
        conflicts_with_all = ["simulate", "geometry"])]
    pub(super) dim: Option<usize>,
    /// The target is the set of points whose value is within this of the optimum. Without --measure it is
    /// that of Sphere on [-10,10]^n, a ball [default: 1]
    #[arg(long, value_name = "E", conflicts_with_all = ["simulate", "geometry"])]
    pub(super) epsilon: Option<f64>,
    /// The target's measure relative to the space, in place of --epsilon; may be as small as 1e-5000
    #[arg(long, value_name = "M", value_parser = ln_of,
        conflicts_with_all = ["measure", "tau", "simulate", "geometry", "epsilon"])]
    epsilon_measure: Option<f64>,
    /// delta: the allowed probability of failure [default: 0.05]
    #[arg(long, value_name = "D", conflicts_with_all = ["measure", "tau", "simulate"])]
    pub(super) delta: Option<f64>,
    /// r: the number of initial uniform draws [default: 22]
    #[arg(long, value_name = "R", conflicts_with_all = ["measure", "tau", "simulate", "geometry"])]
    training_size: Option<u64>,
    /// The number of evaluations, as a number or per dimension: of a run with --measure or --tau, else those
    /// after which the probability of failure is given
    #[arg(long, value_name = "T|30n", default_value = "100n")]
    pub(super) budget: Budget,
    /// Run on this problem and measure (see `racecars problem`)
    #[arg(long, value_name = "PROBLEM", group = "task")]
    pub(super) measure: Option<String>,
    /// Run on this problem often, and count the runs in which hypotheses held less than eta of the target, in the
    /// mean over training, at some step before the first hit
    #[arg(long, value_name = "PROBLEM", group = "task")]
    tau: Option<String>,
    /// With --tau: the number of coordinates that a draw renews; the theorem assumes all of them
    /// [default: as published]
    #[arg(long, value_name = "U", requires = "tau", value_parser = at_least_one)]
    pub(super) uncertain: Option<usize>,
    /// Simulate an example in which RACE-CARS itself fails more often than the printed theorem allows
    #[arg(long, group = "task")]
    simulate: bool,
    /// Which kappa volumes and geometry allow for Sphere's target, at n = 5, 10, 20, 50 and 500
    #[arg(long, group = "task")]
    geometry: bool,
    /// The theorem's closed form, with gamma and rho chosen for it
    #[arg(long, group = "task")]
    corollary: bool,
    #[command(flatten)]
    pub(super) measuring: MeasureArguments,
    #[command(flatten)]
    pub(super) random: RandomArguments,
    /// Print the results as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The arguments of what is random or drawn.
#[derive(Args)]
#[group(skip)]
pub(crate) struct RandomArguments {
    /// With --measure, --tau or --simulate: the seed; of --measure's and --tau's problem, too
    #[arg(long, value_name = "S", default_value = "0", requires = "task")]
    pub(super) seed: u64,
    /// With --tau or --simulate: the number of runs [default: 100 and 20000]
    #[arg(long, value_name = "K", requires = "task", value_parser = at_least_one,
        conflicts_with_all = ["measure", "geometry", "corollary"])]
    pub(super) trials: Option<usize>,
    /// Write a figure as SVG into this directory; with --measure, every checkpoint as CSV as well
    #[arg(long, value_name = "DIR", requires = "task", conflicts_with_all = ["tau", "corollary"])]
    pub(super) out: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  racecars theory                                       the paper's experiment at n = 50
  racecars theory --dim 500 --gamma 0.95 --rho 0.001 --budget 50000
  racecars theory --dim 1 --gamma 0.5 --rho 0.01 --epsilon-measure 1e-6 --delta 0.001
  racecars theory --eta 1e-26 --kappa 45                the theorem, with an eta that geometry allows
  racecars theory --simulate --out figures              where the printed theorem is false
  racecars theory --tau sphere                          how often the assumption fails
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
    /// The number of shrinks up to which the theorem assumes eta.
    kappa: u64,
    /// The greatest kappa that volumes allow.
    kappa_by_volume: u64,
    /// The greatest kappa that geometry allows, if the target is Sphere's.
    kappa_by_geometry: Option<u64>,
    printed_mean_holds: bool,
    printed_mean_least_rho: f64,
    uniform: Bound,
    sracos: Bound,
    race_cars: Vec<VersionRow>,
    theorem: TheoremRow,
    /// What every algorithm needs that only ranks values among r stored ones.
    lower_bound: Bound,
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

#[derive(Serialize)]
struct TheoremRow {
    /// T with Phi <= delta, and F at the budget.
    #[serde(flatten)]
    bound: Bound,
    speedup_log10: f64,
    /// X: the probability that the shrinks run out before a hit.
    added_failure: f64,
    /// T with F <= delta.
    in_all: Bound,
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
        if let Some(problem) = &self.tau {
            return tau::run(problem, &self);
        }
        match (self.simulate, self.geometry, self.corollary) {
            (true, ..) => return simulate::run(&self),
            (_, true, _) => return geometry::run(&self),
            (.., true) => return corollary::run(&self),
            _ => {}
        }
        let bounds = Bounds::new(self.setting()?)?;
        let report = self.report(&bounds, &bounds.theorem(self.kappa)?);
        if self.json {
            print_json(&report)?;
        } else {
            show(&report)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The radius of Sphere's target in units of the domain's width; `None` if the target is another.
    fn radius(&self) -> Option<f64> {
        self.epsilon_measure.is_none().then(|| RADIUS * self.epsilon.unwrap_or(1.0).sqrt())
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

    /// The logarithm of a number of targets of this size that fit into the space without meeting: balls for
    /// Sphere, cubes otherwise.
    fn ln_disjoint(&self, setting: &BoundSetting) -> f64 {
        let n = setting.dimension as f64;
        match self.radius() {
            Some(radius) => lower::ln_disjoint_balls(setting.dimension, radius),
            None => n * ((-setting.ln_target / n).exp() + 1e-9).floor().ln(),
        }
    }

    fn report(&self, bounds: &Bounds, theorem: &Theorem) -> BoundsReport {
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
            kappa: theorem.kappa(),
            kappa_by_volume: bounds.kappa(),
            kappa_by_geometry: self.radius().and_then(|radius| shape::kappa(&setting, radius)),
            printed_mean_holds: region::printed_mean_holds(gamma, rho, dimension),
            printed_mean_least_rho: region::least_rho(gamma, dimension),
            uniform: Bound::new(bounds.uniform(), None),
            sracos: Bound::new(sracos, Some(bounds.sracos_failure(budget))),
            race_cars: Version::ALL.map(row).into(),
            theorem: TheoremRow {
                bound: Bound::new(theorem.queries_held(), Some(theorem.failure(budget))),
                speedup_log10: sracos.log10() - theorem.queries_held().log10(),
                added_failure: theorem.exhausted(),
                in_all: Bound::new(theorem.queries(), None),
            },
            lower_bound: Bound::new(
                lower::least_queries(training_size, self.ln_disjoint(&setting), delta),
                None,
            ),
            printed_at_budget: Bound::new(bounds.printed_formula(budget), None),
        }
    }
}

fn show(report: &BoundsReport) -> anyhow::Result<()> {
    let BoundsReport { eta, p, lambda, gamma, rho, dim, training_size: r, delta, budget, .. } =
        report;
    print(format!(
        "n = {dim}, gamma = {gamma}, rho = {rho}, lambda = {lambda}, eta = {eta:?}, p = {p}, r = {r}, \
         delta = {delta:?}\ntarget: {} of the space\n",
        Queries::power_of_ten(report.target_log10)
    ))?;
    let failure = format!("failure at T = {budget}");
    let headings = ["bound", "T, half 1 only", "added failure", "speed-up", &failure];
    let mut table = table(&headings, 1);
    let cell = |bound: &Bound| bound.failure_at_budget.map_or(String::new(), probability);
    let speedup = |log10: f64| match log10 {
        known if known.is_finite() => Queries::power_of_ten(known),
        _ => String::new(),
    };
    let least = format!("at least {}", report.lower_bound.queries);
    table.add_row(["any algorithm that ranks", &least, "", "", ""]);
    table.add_row(["random search", &report.uniform.queries.to_string(), "", "", ""]);
    table.add_row([
        "SRACOS, Theorem 2",
        &report.sracos.queries.to_string(),
        "",
        "",
        &cell(&report.sracos),
    ]);
    let names = [
        "RACE-CARS, Theorem 3 as printed",
        "  with the geometric sum",
        "  and the region's mean measure",
    ];
    for (name, row) in names.into_iter().zip(&report.race_cars) {
        let queries = row.bound.queries.to_string();
        table.add_row([
            name,
            &queries,
            "not proved",
            &speedup(row.speedup_log10),
            &cell(&row.bound),
        ]);
    }
    let theorem = &report.theorem;
    let name = match report.kappa {
        u64::MAX => "RACE-CARS, proved".to_string(),
        kappa => format!("RACE-CARS, proved, kappa = {kappa}"),
    };
    table.add_row([
        name,
        theorem.bound.queries.to_string(),
        probability(theorem.added_failure),
        speedup(theorem.speedup_log10),
        cell(&theorem.bound),
    ]);
    print(table)?;
    let in_all = match theorem.in_all.queries {
        Queries::Never => "no T".to_string(),
        queries if theorem.added_failure >= *delta => {
            format!("T = {queries}, by draws from the whole space")
        }
        queries => format!("T = {queries}"),
    };
    print(format!(
        "\nProved: T queries all miss with probability at most delta + the added failure. For delta alone: \
         {in_all}.\n\
         Theorem 3 has T on either side: at T = {budget} it reads max{{{}, T}}; its rows are the least T that \
         satisfy it.",
        report.printed_at_budget.queries
    ))?;
    if *rho > 0.0 && report.kappa < u64::MAX {
        let allowed = match report.kappa_by_geometry {
            Some(kappa) => format!("volumes allow {}, geometry {kappa}", report.kappa_by_volume),
            None => format!("volumes allow {}", report.kappa_by_volume),
        };
        print(format!(
            "eta is assumed up to {} shrinks, on average {} steps; {allowed}.",
            report.kappa,
            Queries::Count((report.kappa as f64 / rho).ceil() as u64),
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

/// Writes a figure, and gives its path.
fn figure_file(directory: &Path, name: &str, figure: &Svg) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    let file = directory.join(format!("{name}.svg"));
    std::fs::write(&file, figure.to_file())
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
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
