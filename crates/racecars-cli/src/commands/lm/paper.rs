//! `racecars paper lm`: the paper's comparison on language models.

use super::ModelArguments;
use super::tune::{Search, status};
use crate::commands::at_least_one;
use crate::interrupt::{INTERRUPTED, on_interrupt};
use crate::output::{print, print_json};
use crate::progress::ProgressDisplay;
use anyhow::Context;
use clap::Args;
use racecars::Algorithm;
use racecars_figures::page::save_section;
use racecars_lm::wire::EvaluateOptions;
use racecars_lm::{
    AlgorithmTunings, BlackBox, PROMPT, Prompt, Task, TuneComparison, UploadedExamples, data, tune,
};
use std::path::PathBuf;
use std::process::ExitCode;

/// The paper's comparison on language models: several algorithms and seeds with the same number of calls
///
/// The paper uses RoBERTa and --task sst2,yelp,agnews,rte --dim 500 --prompt-tokens 50 --budget 8000 --gamma
/// 0.7 --rho 0.002 --seeds 5, which takes days on a CPU. DIR/report.html gets a section per task with four
/// curves and a table, in addition to the sections of `racecars paper --out DIR`. DIR/lm has figures, tables,
/// and every tuning with its journal: after Ctrl-C, run the same command again to resume; with a larger
/// --budget, the tunings continue.
#[derive(Args)]
pub(crate) struct PaperLm {
    /// The tasks: sst2, yelp, agnews, rte, or TOML files
    #[arg(long, value_name = "NAME|FILE,...", value_delimiter = ',', default_value = "sst2")]
    task: Vec<String>,
    /// A folder with a subfolder for each task
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    #[command(flatten)]
    which: ModelArguments,
    /// The algorithms
    #[arg(
        long,
        value_name = "A,...",
        value_delimiter = ',',
        default_value = "race-cars,sracos,cma-es"
    )]
    algorithm: Vec<Algorithm>,
    /// The number of seeds: 0, 1, ...
    #[arg(long, value_name = "K", default_value = "5", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    #[command(flatten)]
    search: Search,
    /// Also evaluate the kept prompts on this many rows of each task's test file, evenly spread over it
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    test: Option<usize>,
    /// The directory of the results
    #[arg(long, value_name = "DIR", default_value = "paper-results")]
    out: PathBuf,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

impl PaperLm {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let tasks = self.task.iter().map(|name| Task::find(name)).collect::<Result<Vec<_>, _>>()?;
        let cancel = on_interrupt()?;
        let service = self.which.open()?;
        let folder = self.out.join("lm");
        let runs = (tasks.len() * self.algorithm.len()) as u64 * self.seeds;
        let progress = ProgressDisplay::new(runs * self.search.budget);
        let (mut comparisons, mut done) = (Vec::new(), 0);
        for task in &tasks {
            let mut entries: Vec<AlgorithmTunings> = (self.algorithm.iter())
                .map(|algorithm| AlgorithmTunings {
                    algorithm: algorithm.to_string(),
                    tuned: Vec::new(),
                    tested: Vec::new(),
                })
                .collect();
            for seed in 0..self.seeds {
                let split = data::split(&self.data, task, self.search.shots, seed)?;
                for (algorithm, entry) in self.algorithm.iter().zip(&mut entries) {
                    let settings = self.search.settings(task.clone(), algorithm, seed);
                    let name = format!("{}-{algorithm}-{seed}", task.name);
                    let tuned =
                        tune(&*service, &settings, &split, &folder.join(&name), &cancel, |seen| {
                            progress
                                .show(done + seen.calls, || format!("{name}: {}", status(seen)));
                        })?;
                    if tuned.is_interrupted {
                        drop(progress);
                        let folder = folder.display();
                        eprintln!(
                            "interrupted: finished calls are saved in {folder}; run the same command again to resume"
                        );
                        return Ok(ExitCode::from(INTERRUPTED));
                    }
                    done += self.search.budget;
                    entry.tuned.push(tuned);
                }
            }
            let budget = self.search.budget;
            let settings = self.search.settings(task.clone(), &self.algorithm[0], 0);
            let mut comparison =
                TuneComparison { task: task.name.clone(), budget, settings, entries, tested: None };
            if let Some(count) = self.test {
                self.test(&*service, task, count, &mut comparison)?;
            }
            comparisons.push(comparison);
        }
        drop(progress);
        let mut page = String::new();
        for comparison in &comparisons {
            let (task, table) = (&comparison.task, comparison.table());
            let figure = folder.join(format!("fig-lm-{task}.svg"));
            std::fs::write(&figure, comparison.figure().to_file())
                .with_context(|| format!("cannot write {}", figure.display()))?;
            page += &format!("## {task}\n\n{table}\n![{task}](fig-lm-{task}.svg)\n\n");
        }
        let path = folder.join("summary.md");
        std::fs::write(&path, &page).with_context(|| format!("cannot write {}", path.display()))?;
        for comparison in &comparisons {
            let name = format!("2-lm-{}", comparison.task);
            save_section(&self.out, &name, &comparison.section())?;
        }
        match self.json {
            true => print_json(&comparisons)?,
            false => print(format!("{page}the page: {}", self.out.join("report.html").display()))?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Evaluates the kept prompts on rows of the test file, all at once.
    fn test(
        &self,
        service: &dyn BlackBox,
        task: &Task,
        count: usize,
        comparison: &mut TuneComparison,
    ) -> anyhow::Result<()> {
        let all = data::read(&data::test_file(&self.data, task)?, task)?;
        let rows: Vec<_> =
            all.iter().step_by((all.len() / count).max(1)).take(count).cloned().collect();
        let settings = self.search.settings(task.clone(), &self.algorithm[0], 0);
        let panel = UploadedExamples::new(service, task, settings.position, &settings.base, &rows)?;
        let wanted = EvaluateOptions { loss: settings.loss, logits: false };
        let names = comparison.entries.iter().flat_map(|entry| {
            (0..self.seeds).map(|seed| format!("{}-{}-{seed}", task.name, entry.algorithm))
        });
        let mut prompts = names
            .map(|name| Ok(Prompt::load(&self.out.join("lm").join(name).join(PROMPT))?.numbers))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let length = prompts.first().map_or(0, Vec::len);
        prompts.push(vec![0.0; length]);
        let mut scores =
            panel.scores(&prompts, wanted)?.into_iter().collect::<Result<Vec<_>, _>>()?;
        let untuned = scores.pop().context("the service gave no scores")?;
        let without = panel.score(Vec::new(), wanted)?;
        comparison.tested = Some([without, untuned]);
        for (entry, scores) in comparison.entries.iter_mut().zip(scores.chunks(self.seeds as usize))
        {
            entry.tested = scores.to_vec();
        }
        Ok(())
    }
}
