//! The results as a short Markdown page: that of a full run is `docs/paper.md`.

use super::contest::{Contest, display_name};
use super::experiment::Experiment;
use super::table1::Table1;
use super::{Ablation, Finding, Paper, PaperFindings, PaperScale};
use racecars_figures::number;

/// The figures shown, which are committed next to the page.
const SHOWN: [Experiment; 3] = [Experiment::FigN50, Experiment::FigN500, Experiment::Table1];

pub(super) fn page(paper: &Paper, findings: &PaperFindings) -> String {
    let quick = match paper.scale {
        PaperScale::Full => "",
        _ => "**This is a quick tour; its verdicts are hints.**\n\n",
    };
    let mut page = format!(
        "# The paper's experiments, reproduced\n\n{quick}\
         Made by `{}` (racecars {}), which also writes a page for reviewers, all figures and all data. \
         CellTrial i has seed i, so the command gives these numbers on every machine.\n\n\
         ## What holds\n\n| experiment | claim | in these runs |\n|---|---|---|\n",
        paper.command(),
        env!("CARGO_PKG_VERSION")
    );
    for (experiment, finding) in &findings.experiments {
        for verdict in finding.verdicts() {
            let (name, words) = (experiment.name(), verdict.judgement.words());
            page += &format!("| `{name}` | {} | {words} |\n", verdict.claim);
        }
    }
    for (experiment, finding) in &findings.experiments {
        page += &format!("\n## {}\n\n", experiment.title());
        if SHOWN.contains(experiment) {
            let name = experiment.name();
            page += &format!("![{}](figures/{name}.svg)\n\n", experiment.title());
        }
        page += &match finding {
            Finding::Contest(contest) => contest_table(contest),
            Finding::Table1(table) => table1_table(table),
            Finding::Ablation(ablation) => ablation_table(ablation),
        };
        page.push('\n');
        for verdict in finding.verdicts() {
            let words = verdict.judgement.words();
            page += &format!("- {}: **{words}**. {}\n", verdict.claim, verdict.detail);
        }
    }
    page
}

/// The head of a Markdown table with right-aligned numbers.
fn heading(columns: &[String]) -> String {
    let rule: Vec<&str> = columns.iter().map(|_| "---:").collect();
    format!("| {} |\n| {} |\n", columns.join(" | "), rule.join(" | "))
}

/// Mean ± std of every algorithm on every problem.
fn contest_table(contest: &Contest) -> String {
    let mut names: Vec<&str> = Vec::new();
    for entry in contest.panels.iter().flat_map(|panel| &panel.algorithms) {
        if !names.contains(&entry.algorithm.as_str()) {
            names.push(&entry.algorithm);
        }
    }
    let heads = ["problem", "n", "T"].map(String::from);
    let heads: Vec<String> =
        heads.into_iter().chain(names.iter().map(|name| display_name(name))).collect();
    let mut table = format!("Mean ± standard deviation of {} trials.\n\n", contest.trials);
    table += &heading(&heads);
    for panel in &contest.panels {
        table += &format!("| {} | {} | {} |", panel.title(), panel.dim, panel.budget);
        for name in &names {
            table += &match panel.entry(name) {
                Some(entry) => {
                    let summary = &entry.summary;
                    format!(" {} ± {} |", number(summary.mean), number(summary.std))
                }
                None => " – |".to_string(),
            };
        }
        table.push('\n');
    }
    let absent = contest.left_out().into_iter();
    table + &absent.map(|line| format!("\n{line}\n")).collect::<String>()
}

fn table1_table(table: &Table1) -> String {
    let heads = ["n", "best", "at rho", "published best", "at rho"].map(String::from);
    let mut text = heading(&heads);
    for column in &table.columns {
        text += &format!(
            "| {} | {:.2} | {} | {} | {} |\n",
            column.n, column.best, column.best_rho, column.published_best, column.published_rho
        );
    }
    text
}

/// The best factors: a row per dimension, a column per radius.
fn ablation_table(ablation: &Ablation) -> String {
    let mut dims: Vec<usize> = ablation.columns.iter().map(|column| column.n).collect();
    dims.dedup();
    let Some(&first) = dims.first() else { return String::new() };
    let of = |n: usize| ablation.columns.iter().filter(move |column| column.n == n);
    let radii = of(first).map(|column| format!("r = {}", column.radius));
    let mut table = String::from("Best shrinking factor, and the mean best value there.\n\n");
    table += &heading(&[String::from("n")].into_iter().chain(radii).collect::<Vec<_>>());
    for n in dims {
        let cells = of(n).map(|c| format!("{:.2} ({})", c.best_factor, number(c.best)));
        table += &format!("| {n} | {} |\n", cells.collect::<Vec<_>>().join(" | "));
    }
    table
}
