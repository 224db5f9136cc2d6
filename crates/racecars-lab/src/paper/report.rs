//! The section of the page on synthetic functions: the paper's claims, our results, and whether the claims
//! hold. It has no times and no paths, so that the same command gives the same page on every machine.

use super::ablation::Ablation;
use super::claims::{ClaimVerdict, Judgement};
use super::contest::{Contest, ContestEntry, ContestPanel, display_name};
use super::experiment::Experiment;
use super::table1::{Table1, Table1Cell};
use super::{Finding, Paper, PaperScale};
use racecars_figures::{Svg, escape, number};

/// An experiment, its results, and its figures by name.
pub(super) type Section<'a> = (Experiment, &'a Finding, Vec<(String, Svg)>);

/// The experiments on synthetic functions, as a section.
pub(super) fn synthetic(paper: &Paper, sections: &[Section<'_>]) -> String {
    let mut body = head(paper);
    body += &overview(sections);
    for (experiment, finding, pictures) in sections {
        body += &section(paper, *experiment, finding, pictures);
    }
    body
}

fn head(paper: &Paper) -> String {
    let quick = match paper.scale {
        PaperScale::Full => "",
        _ => {
            "<p class=\"note quick\"><b>This is a quick tour</b> with few trials, smaller dimensions and \
             coarser grids than the paper's. Its verdicts are hints; run it without \
             <code>--quick</code> for the figures.</p>\n"
        }
    };
    format!(
        "{quick}<p>Made by racecars {} with <code>{}</code>. Trial <i>i</i> of every cell has seed <i>i</i> = 0, \
         1, …, which also decides what is random about its problem; so the same command gives the same \
         page on every machine. The numbers behind it are in the folder <code>data</code> beside it and in \
         <code>results.json</code>.</p>\n\
         <p>The paper's settings are used as printed. Those that it leaves out (exploitation rate, sizes \
         of the training set, redrawn coordinates) are those of the public SRACOS implementation that its \
         runs used. Ackley's cosine is shifted like its square, so that its minimum is 0 as the text \
         says. The rivals have this library's defaults; the paper's were tuned, it does not say how.</p>\n\
         <p>In the tables, <i>pairs won</i> is the share of pairs of trials, one of each algorithm, in \
         which RACE-CARS ended lower (50 % is no difference), and <i>there after</i> the evaluations after \
         which the mean of RACE-CARS was at the final mean of the other.</p>\n",
        env!("CARGO_PKG_VERSION"),
        escape(&paper.command())
    )
}

fn overview(sections: &[Section<'_>]) -> String {
    let mut rows = String::new();
    for (experiment, finding, _) in sections {
        for verdict in finding.verdicts() {
            rows += &format!(
                "<tr><td><a href=\"#{}\">{}</a></td><td class=\"words\">{}</td><td>{}</td></tr>\n",
                experiment.name(),
                experiment.name(),
                escape(&verdict.claim),
                badge(verdict.judgement)
            );
        }
    }
    format!(
        "<h2>What holds</h2>\n<table><thead><tr><th>experiment</th><th style=\"text-align:left\">claim\
         </th><th>in these runs</th></tr></thead>\n<tbody>\n{rows}</tbody></table>\n"
    )
}

fn badge(judgement: Judgement) -> String {
    let class = match judgement {
        Judgement::Holds => "holds",
        Judgement::HoldsInPart => "in-part",
        Judgement::DoesNotHold => "fails",
        Judgement::Untested => "untested",
    };
    format!("<span class=\"verdict {class}\">{}</span>", judgement.words())
}

fn section(
    paper: &Paper,
    experiment: Experiment,
    finding: &Finding,
    pictures: &[(String, Svg)],
) -> String {
    let figures: String = (pictures.iter())
        .map(|(name, picture)| {
            format!("<figure id=\"figure-{name}\">\n{}</figure>\n", picture.to_inline())
        })
        .collect();
    let tables = match finding {
        Finding::Contest(contest) => contest_tables(experiment, contest),
        Finding::Table1(table) => table1_tables(table),
        Finding::Ablation(ablation) => ablation_tables(ablation),
    };
    let single = Paper { experiments: vec![experiment], ..paper.clone() };
    format!(
        "<h2 id=\"{}\">{}</h2>\n<p><b>The paper says.</b> {}</p>\n{}{figures}{tables}\
         <p>Again: <code>{}</code></p>\n",
        experiment.name(),
        escape(experiment.title()),
        escape(experiment.says()),
        verdicts(finding.verdicts()),
        escape(&single.command())
    )
}

fn verdicts(verdicts: &[ClaimVerdict]) -> String {
    let line = |verdict: &ClaimVerdict| {
        format!(
            "<li>{} <b>{}.</b> {}</li>\n",
            badge(verdict.judgement),
            escape(&verdict.claim),
            escape(&verdict.detail)
        )
    };
    let lines: String = verdicts.iter().map(line).collect();
    format!("<p><b>We got.</b></p>\n<ul>\n{lines}</ul>\n")
}

fn contest_tables(experiment: Experiment, contest: &Contest) -> String {
    let mut text = String::new();
    if experiment == Experiment::Discontinuous {
        text += &jumps_table(contest);
    }
    let panels = contest.panels.iter();
    let shown = panels
        .filter(|panel| experiment != Experiment::Discontinuous || panel.problem.contains('-'));
    text += &shown.map(panel_table).collect::<String>();
    let absent = contest.left_out().into_iter();
    text + &absent.map(|line| format!("<p>{}</p>\n", escape(&line))).collect::<String>()
}

/// The means with and without jumps, side by side.
fn jumps_table(contest: &Contest) -> String {
    let find = |name: &str| contest.panels.iter().find(|panel| panel.problem == name);
    let mut rows = String::new();
    for plain in contest.panels.iter().filter(|panel| !panel.problem.contains('-')) {
        for entry in &plain.algorithms {
            let of = |prefix: &str| {
                find(&format!("{prefix}-{}", plain.problem))?.entry(&entry.algorithm)
            };
            let mean = |entry: Option<&ContestEntry>| {
                entry.map_or("–".into(), |entry| number(entry.summary.mean))
            };
            let share = |entry: Option<&ContestEntry>| {
                entry.map_or("–".into(), |entry| format!("{:.1} %", 100.0 * entry.perturbed))
            };
            let (balls, steps) = (of("discontinuous"), of("stepped"));
            rows += &format!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                plain.title(),
                display_name(&entry.algorithm),
                number(entry.summary.mean),
                mean(balls),
                share(balls),
                mean(steps),
                share(steps)
            );
        }
    }
    format!(
        "<h3>With and without jumps</h3>\n<table><thead><tr><th>function</th><th>algorithm</th>\
         <th>mean, plain</th><th>mean, balls</th><th>in a ball</th><th>mean, steps</th>\
         <th>on a step</th></tr></thead>\n<tbody>\n{rows}</tbody></table>\n"
    )
}

fn panel_table(panel: &ContestPanel) -> String {
    let best =
        panel.algorithms.iter().map(|entry| entry.summary.mean).fold(f64::INFINITY, f64::min);
    let row = |entry: &ContestEntry| {
        let summary = &entry.summary;
        let class = if summary.mean == best { " class=\"best\"" } else { "" };
        let beaten = entry.beaten.map_or("–".into(), |share| format!("{:.0} %", 100.0 * share));
        let reached = match (entry.beaten, entry.reached_after) {
            (None, _) => "–".into(),
            (Some(_), Some(after)) => format!("{after} evaluations"),
            (Some(_), None) => "never".into(),
        };
        format!(
            "<tr{class}><td>{}</td><td>{} ± {}</td><td>{}</td><td>{}</td><td>{}</td><td>{beaten}</td>\
             <td>{reached}</td></tr>\n",
            display_name(&entry.algorithm),
            number(summary.mean),
            number(summary.std),
            number(summary.median),
            number(summary.min),
            number(summary.max)
        )
    };
    let rows: String = panel.algorithms.iter().map(row).collect();
    format!(
        "<h3>{}</h3>\n<p>n = {}, {} evaluations; RACE-CARS with gamma = {}, rho = {}.</p>\n\
         <table><thead><tr><th>algorithm</th><th>mean ± std</th><th>median</th><th>best</th>\
         <th>worst</th><th>pairs won by RACE-CARS</th><th>RACE-CARS there after</th></tr></thead>\n\
         <tbody>\n{rows}</tbody></table>\n",
        panel.title(),
        panel.dim,
        panel.budget,
        panel.gamma,
        (1e6 * panel.rho).round() / 1e6
    )
}

fn table1_tables(table: &Table1) -> String {
    let columns: String = (table.columns.iter())
        .map(|column| {
            let n = column.n as f64;
            format!(
                "<tr><td>{}</td><td>{:.2}</td><td>{}</td><td>{:.2}</td><td>{:.1}</td><td>{}</td>\
                 <td>{:.2}</td></tr>\n",
                column.n,
                column.best,
                column.best_rho,
                n * column.best_rho,
                column.published_best,
                column.published_rho,
                n * column.published_rho
            )
        })
        .collect();
    let worse: Vec<String> = (table.worse.iter())
        .map(|cell| {
            let Table1Cell { rho, n, mean, published_mean, published_std, .. } = cell;
            format!("rho = {rho}, n = {n}: {mean:.2} against {published_mean} ± {published_std}")
        })
        .collect();
    let worse = match worse.is_empty() {
        true => "<p>No cell is worse than published by more than 0.5 + 2 std.</p>\n".to_string(),
        false => {
            format!("<p>Worse than published by more than 0.5 + 2 std: {}.</p>\n", worse.join("; "))
        }
    };
    format!(
        "<h3>The best cell of each dimension</h3>\n<table><thead><tr><th>n</th><th>best, ours</th>\
         <th>at rho</th><th>n rho</th><th>best, published</th><th>at rho</th><th>n rho</th></tr></thead>\n\
         <tbody>\n{columns}</tbody></table>\n{worse}<details><summary>All cells: ours (published)\
         </summary>\n{}</details>\n",
        whole_table(table)
    )
}

fn whole_table(table: &Table1) -> String {
    let heads: String =
        table.columns.iter().map(|column| format!("<th>n = {}</th>", column.n)).collect();
    let width = table.columns.len().max(1);
    let row = |cells: &[Table1Cell]| {
        let figures: String = (cells.iter())
            .map(|cell| {
                let Table1Cell { mean, std, published_mean, published_std, .. } = cell;
                format!("<td>{mean:.1} ± {std:.1} ({published_mean:.1} ± {published_std:.1})</td>")
            })
            .collect();
        let rho = cells.first().map_or(0.0, |cell| cell.rho);
        format!("<tr><td>{rho:.3}</td>{figures}</tr>\n")
    };
    let rows: String = table.cells.chunks(width).map(row).collect();
    format!(
        "<div style=\"overflow-x:auto\"><table><thead><tr><th>rho</th>{heads}</tr></thead>\n<tbody>\n\
         {rows}</tbody></table></div>\n"
    )
}

fn ablation_tables(ablation: &Ablation) -> String {
    let rows: String = (ablation.columns.iter())
        .map(|column| {
            format!(
                "<tr><td>{}</td><td>{}</td><td>{:.2}</td><td>{}</td><td>{}</td></tr>\n",
                column.n,
                column.radius,
                column.best_factor,
                number(column.best),
                column.best_gamma
            )
        })
        .collect();
    let gammas: Vec<String> = ablation.gammas.iter().map(f64::to_string).collect();
    format!(
        "<p>The paper leaves the grid open. Ours: factors evenly spaced as in the figure, each made with \
         gamma = {} and n rho = ln(factor) / ln(gamma); a pixel is the mean over these and {} trials of \
         each. The line joins the best factor of each column.</p>\n\
         <table><thead><tr><th>n</th><th>r</th><th>best factor</th><th>mean there</th>\
         <th>best gamma there</th></tr></thead>\n<tbody>\n{rows}</tbody></table>\n",
        gammas.join(", "),
        ablation.trials
    )
}
