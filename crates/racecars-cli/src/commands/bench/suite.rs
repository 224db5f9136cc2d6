//! `racecars bench --suite default`: a candidate for the default next to the best single algorithms.

use crate::commands::{cores, say_interrupted, show_step};
use crate::interrupt::on_interrupt;
use crate::output::{print, print_json, short, table};
use crate::progress::ProgressDisplay;
use anyhow::bail;
use clap::{Args, ValueEnum};
use racecars::{Algorithm, Budget};
use racecars_lab::suite::{
    BUDGETS, DIMS, Half, NEAR_RATIO, QUICK_DIMS, QUICK_SEEDS, RatioSummary, SEEDS, SINGLES,
    Standing, Suite, SuiteFunction, SummaryGroup,
};
use racecars_lab::trials::Completion;
use std::path::PathBuf;
use std::process::ExitCode;

/// The suites.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SuiteName {
    /// The suite by which the default algorithm is judged.
    Default,
}

#[derive(Clone, Copy, ValueEnum)]
enum HalfArgument {
    Choose,
    Report,
}

impl From<HalfArgument> for Half {
    fn from(half: HalfArgument) -> Half {
        match half {
            HalfArgument::Choose => Half::Choose,
            HalfArgument::Report => Half::Report,
        }
    }
}

/// The arguments that only a suite has.
#[derive(Args)]
#[command(next_help_heading = "A suite")]
pub(crate) struct SuiteArguments {
    /// Judge a candidate by its ratio to the best single algorithm in every cell, on shifted and rotated
    /// functions in 20 to 1000 dimensions with 10n to 300n evaluations. --problem, --dim, --budget,
    /// --algorithm (the single algorithms), --trials (the number of seeds) and --seed (the first) select a part of the suite. Finished
    /// trials are saved in DIR/cells: after Ctrl-C, run the same command again to resume. Another candidate
    /// is compared with the same trials
    #[arg(long, value_name = "NAME", conflicts_with_all = ["gamma", "rho", "lambda"])]
    pub(crate) suite: Option<SuiteName>,
    /// The algorithm to judge [default: auto]
    #[arg(long, value_name = "A", requires = "suite")]
    candidate: Option<Algorithm>,
    /// Half of the functions: choose settings on one half, report results on the other
    #[arg(long, requires = "suite")]
    half: Option<HalfArgument>,
    /// Only 20 and 50 dimensions, with 5 seeds: minutes instead of hours
    #[arg(long, requires = "suite")]
    quick: bool,
    /// The directory of the saved trials, cells.csv and results.json
    #[arg(long, value_name = "DIR", default_value = "suite-results", requires = "suite")]
    out: PathBuf,
}

/// A part of a suite; an empty list or `None` selects everything.
pub(crate) struct SuiteSelection {
    pub(crate) functions: Vec<String>,
    pub(crate) dims: Vec<usize>,
    pub(crate) budgets: Vec<Budget>,
    pub(crate) singles: Vec<Algorithm>,
    pub(crate) seeds: Option<usize>,
    pub(crate) seed: u64,
}

impl SuiteArguments {
    pub(crate) fn run(
        self,
        narrowed: SuiteSelection,
        jobs: Option<usize>,
        json: bool,
    ) -> anyhow::Result<ExitCode> {
        let suite = self.suite(narrowed)?;
        let cancel = on_interrupt()?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(cores(jobs)).build()?;
        let progress = ProgressDisplay::new(100);
        let ending = pool.install(|| suite.run(&cancel, |step| show_step(&progress, &step)))?;
        drop(progress);
        match ending {
            Completion::Interrupted { kept, of } => {
                return Ok(say_interrupted(kept, of, &self.out));
            }
            Completion::Done(standing) if json => print_json(&standing)?,
            Completion::Done(standing) => {
                show(&standing)?;
                print(format!("\nthe cells: {}", self.out.join("cells.csv").display()))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn suite(&self, narrowed: SuiteSelection) -> anyhow::Result<Suite> {
        let (dims, seeds) =
            if self.quick { (&QUICK_DIMS[..], QUICK_SEEDS) } else { (&DIMS[..], SEEDS) };
        let singles = narrowed.singles.iter().map(|algorithm| algorithm.name().to_string());
        let candidate = self.candidate.clone().unwrap_or_default();
        Ok(Suite {
            candidate: candidate.name().to_string(),
            singles: or_all(singles.collect(), SINGLES.map(String::from)),
            functions: self.functions(&narrowed.functions)?,
            dims: or_all(narrowed.dims, dims.iter().copied()),
            budgets: or_all(narrowed.budgets, BUDGETS.map(Budget::PerDimension)),
            seeds: narrowed.seeds.unwrap_or(seeds),
            seed: narrowed.seed,
            directory: self.out.clone(),
        })
    }

    /// The named functions of the half, or all of it.
    fn functions(&self, names: &[String]) -> anyhow::Result<Vec<SuiteFunction>> {
        let half = SuiteFunction::of(self.half.map(Half::from));
        let known: Vec<&str> = half.iter().map(|function| function.name).collect();
        if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
            bail!("function `{name}` is not one of {}", known.join(", "));
        }
        let is_wanted = |function: &SuiteFunction| {
            names.is_empty() || names.iter().any(|name| name == function.name)
        };
        Ok(half.into_iter().filter(is_wanted).collect())
    }
}

fn or_all<T>(given: Vec<T>, all: impl IntoIterator<Item = T>) -> Vec<T> {
    if given.is_empty() { all.into_iter().collect() } else { given }
}

fn show(standing: &Standing) -> anyhow::Result<()> {
    let candidate = standing.candidate.as_str();
    let headings = ["function", "best single", "n", "T", candidate, "best", "ratio"];
    let mut cells = table(&headings, 2);
    for cell in &standing.cells {
        cells.add_row([
            cell.function.to_string(),
            cell.best_single.clone(),
            cell.dim.to_string(),
            cell.budget.clone(),
            short(cell.candidate),
            short(cell.best),
            ratio(cell.ratio),
        ]);
    }
    print(cells)?;
    print(format!(
        "\nmedians of f - f* over {} seeds; ratios are to the best single algorithm of the cell, means \
         geometric;\na loss is a ratio, or 1 where the candidate is ahead\n",
        standing.seeds
    ))?;

    let near = format!("within {NEAR_RATIO}x");
    let headings =
        ["", "worst cell", "cells", "mean ratio", "mean loss", near.as_str(), "worst ratio"];
    let mut groups = table(&headings, 2);
    groups.add_row(summary_row(candidate, &standing.summary));
    let parts = [&standing.by_budget, &standing.by_dim, &standing.by_function];
    for SummaryGroup { name, summary } in parts.into_iter().flatten() {
        groups.add_row(summary_row(&format!("  {name}"), summary));
    }
    for SummaryGroup { name, summary } in &standing.singles {
        groups.add_row(summary_row(&format!("{name} alone"), summary));
    }
    print(groups)
}

fn summary_row(name: &str, summary: &RatioSummary) -> [String; 7] {
    [
        name.to_string(),
        summary.worst_cell.clone(),
        summary.cells.to_string(),
        ratio(summary.geometric_mean),
        ratio(summary.mean_loss),
        format!("{:.0} %", 100.0 * summary.share_near),
        ratio(summary.worst),
    ]
}

/// A ratio with its significant digits.
fn ratio(x: f64) -> String {
    if (0.1..100.0).contains(&x) { format!("{x:.2}") } else { short(x) }
}
