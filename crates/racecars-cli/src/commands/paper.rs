//! `racecars paper`: reproduce the paper's experiments.

use super::{at_least_one, cores, say_interrupted, show_step};
use crate::interrupt::on_interrupt;
use crate::output::{print, print_json, short, table};
use crate::progress::ProgressDisplay;
use clap::Args;
use clap::builder::PossibleValuesParser;
use racecars_lab::paper::{
    Ablation, Contest, Experiment, Finding, Paper, PaperFindings, PaperScale, Table1,
};
use racecars_lab::trials::Completion;
use std::path::PathBuf;
use std::process::ExitCode;

/// Reproduce the paper's synthetic experiments as data, figures and one page
///
/// Settings, budgets and numbers of trials are the paper's. DIR gets report.html (the paper's claims, our
/// results, whether the claims hold), the figures as SVG, and every cell and trajectory as CSV. Finished
/// trials are saved in DIR/cells: after Ctrl-C, run the same command again to resume. The same command gives
/// the same files on every machine.
#[derive(Args)]
#[command(name = "paper")]
#[cfg_attr(feature = "lm", command(args_conflicts_with_subcommands = true))]
pub(crate) struct PaperCommand {
    #[cfg(feature = "lm")]
    #[command(subcommand)]
    other: Option<Other>,
    /// The experiments; `shifted` is ours, with the optima away from the centre
    #[arg(value_name = "EXPERIMENT", default_value = ALL, value_parser = PossibleValuesParser::new(names()))]
    experiments: Vec<String>,
    /// Everything in about a minute: fewer trials, smaller dimensions, coarser grids
    #[arg(long)]
    quick: bool,
    /// The number of trials of each cell [default: 30, in table1 and the ablations 5; quick: 10 and 3]
    #[arg(long, value_name = "K", value_parser = at_least_one)]
    trials: Option<usize>,
    /// The number of parallel trials [default: the number of cores]
    #[arg(long, value_name = "J", value_parser = at_least_one)]
    jobs: Option<usize>,
    /// The directory of the results
    #[arg(long, value_name = "DIR", default_value = "paper-results")]
    out: PathBuf,
    /// Print the results as JSON, an object with a key for each experiment
    #[arg(long)]
    json: bool,
}

/// Experiments that are not on synthetic functions.
#[cfg(feature = "lm")]
#[derive(clap::Subcommand)]
enum Other {
    Lm(Box<super::lm::paper::PaperLm>),
}

const ALL: &str = "all";

fn names() -> Vec<&'static str> {
    Experiment::ALL.iter().map(|experiment| experiment.name()).chain([ALL]).collect()
}

impl PaperCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        #[cfg(feature = "lm")]
        if let Some(Other::Lm(lm)) = self.other {
            return lm.run();
        }
        let paper = Paper {
            experiments: self.experiments(),
            scale: if self.quick { PaperScale::Quick } else { PaperScale::Full },
            trials: self.trials,
            directory: self.out.clone(),
        };
        let cancel = on_interrupt()?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(cores(self.jobs)).build()?;
        let progress = ProgressDisplay::new(100);
        let ending = pool.install(|| paper.run(&cancel, |step| show_step(&progress, &step)))?;
        drop(progress);
        let findings = match ending {
            Completion::Done(findings) => findings,
            Completion::Interrupted { kept, of } => {
                return Ok(say_interrupted(kept, of, &self.out));
            }
        };
        if self.json {
            print_json(&findings)?;
        } else {
            show(&findings)?;
            print(format!("\nthe page: {}", paper.report().display()))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn experiments(&self) -> Vec<Experiment> {
        if self.experiments.iter().any(|name| name == ALL) {
            return Experiment::ALL.to_vec();
        }
        let mut experiments: Vec<Experiment> = Vec::new();
        for experiment in self.experiments.iter().filter_map(|name| Experiment::named(name)) {
            if !experiments.contains(&experiment) {
                experiments.push(experiment);
            }
        }
        experiments
    }
}

fn show(findings: &PaperFindings) -> anyhow::Result<()> {
    for (experiment, finding) in &findings.experiments {
        print(format!("\n{}\n", experiment.name()))?;
        match finding {
            Finding::Contest(contest) => show_contest(contest)?,
            Finding::Table1(table) => show_table1(table)?,
            Finding::Ablation(ablation) => show_ablation(ablation)?,
        }
        print("")?;
        for verdict in finding.verdicts() {
            print(format!("{}: {}. {}", verdict.claim, verdict.judgement.words(), verdict.detail))?;
        }
    }
    Ok(())
}

fn show_contest(contest: &Contest) -> anyhow::Result<()> {
    let headings = [
        "problem",
        "algorithm",
        "dim",
        "budget",
        "trials",
        "mean",
        "std",
        "median",
        "beaten by ours",
    ];
    let mut table = table(&headings, 2);
    for panel in &contest.panels {
        for entry in &panel.algorithms {
            table.add_row([
                panel.problem.clone(),
                entry.algorithm.clone(),
                panel.dim.to_string(),
                panel.budget.to_string(),
                entry.finals.len().to_string(),
                short(entry.summary.mean),
                short(entry.summary.std),
                short(entry.summary.median),
                entry.beaten.map_or(String::new(), |share| format!("{:.0} %", 100.0 * share)),
            ]);
        }
        for left in &panel.left_out {
            let words = [&panel.problem, &left.algorithm].map(String::clone);
            table.add_row(words.into_iter().chain([panel.dim.to_string(), "left out".into()]));
        }
    }
    print(table)
}

fn show_table1(found: &Table1) -> anyhow::Result<()> {
    let headings = ["n", "best", "at rho", "published best", "at rho"];
    let mut table = table(&headings, 0);
    for column in &found.columns {
        table.add_row([
            column.n.to_string(),
            short(column.best),
            column.best_rho.to_string(),
            column.published_best.to_string(),
            column.published_rho.to_string(),
        ]);
    }
    print(table)?;
    print(format!("\nSpearman correlation   {:.4}", found.spearman))?;
    print(format!("mean difference        {:+.3}", found.mean_difference))?;
    print(format!("worse cells            {} of {}", found.worse_cells, found.cells.len()))?;
    for cell in &found.worse {
        let (rho, n, published, std) = (cell.rho, cell.n, cell.published_mean, cell.published_std);
        print(format!("  rho {rho}, n {n}: {} against {published} ± {std}", short(cell.mean)))?;
    }
    Ok(())
}

fn show_ablation(ablation: &Ablation) -> anyhow::Result<()> {
    let mut table = table(&["n", "radius", "best factor", "mean there", "best gamma there"], 0);
    for column in &ablation.columns {
        table.add_row([
            column.n.to_string(),
            column.radius.to_string(),
            format!("{:.2}", column.best_factor),
            short(column.best),
            column.best_gamma.to_string(),
        ]);
    }
    print(table)
}
