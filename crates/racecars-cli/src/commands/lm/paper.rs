//! `racecars paper lm`: the paper's comparison on language models.

use super::ModelArguments;
use super::tune::{Search, folder_name, status};
use crate::commands::at_least_one;
use crate::interrupt::{INTERRUPTED, on_interrupt};
use crate::output::{print, print_json};
use crate::progress::ProgressDisplay;
use anyhow::Context;
use clap::Args;
use racecars::Algorithm;
use racecars_figures::page::save_section;
use racecars_lm::{
    AlgorithmTunings, BlackBox, PROMPT, Prompt, SharedUploads, Task, TestedBaselines,
    TuneComparison, UploadedExamples, calibration, data, loss, tune,
};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

/// The paper's comparison on language models: several algorithms and seeds with the same number of calls
///
/// The paper uses RoBERTa and --task sst2,yelp,agnews,rte --dim 500 --prompt-tokens 50 --budget 8000 --seeds 5
/// --algorithm "race-cars(gamma=0.7,rho=0.002),sracos,cma-es", which takes days on a CPU. DIR/report.html gets a
/// section per task with four curves and two tables, in addition to the sections of `racecars paper --out DIR`.
/// DIR/lm has figures, tables, and every tuning with its journal: after Ctrl-C, run the same command again to
/// resume; with a larger --budget, the tunings continue.
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
    /// The algorithms, with settings in brackets: `sracos,race-cars(gamma=0.7,rho=0.002)`
    #[arg(
        long,
        value_name = "A,...",
        default_value = "race-cars,race-cars(gamma=0.7,rho=0.002),sracos,cma-es,de,zo-adam,auto"
    )]
    algorithm: AlgorithmList,
    /// The number of seeds: 0, 1, ...
    #[arg(long, value_name = "K", default_value = "5", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// These seeds instead; see `lm tune --seed`
    #[arg(long, value_name = "S,...", value_delimiter = ',', conflicts_with = "seeds")]
    seed: Vec<u64>,
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

/// Algorithms separated by commas that are not in brackets.
#[derive(Debug, Clone)]
struct AlgorithmList(Vec<Algorithm>);

impl FromStr for AlgorithmList {
    type Err = racecars::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts: Vec<String> = Vec::new();
        for part in text.split(',') {
            match parts.last_mut() {
                Some(last) if last.contains('(') && !last.contains(')') => {
                    *last += &format!(",{part}");
                }
                _ => parts.push(part.to_string()),
            }
        }
        parts.iter().map(|part| part.trim().parse()).collect::<Result<_, _>>().map(AlgorithmList)
    }
}

/// The folder of the results about language models in the directory of all results.
const FOLDER: &str = "lm";

/// An error if a name is there twice.
fn once(what: &str, names: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let mut seen = BTreeSet::new();
    for name in names {
        anyhow::ensure!(!seen.contains(&name), "{what} {name} is there twice");
        seen.insert(name);
    }
    Ok(())
}

impl PaperLm {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let tasks = self.task.iter().map(|name| Task::find(name)).collect::<Result<Vec<_>, _>>()?;
        // What is there twice would count twice in means and standard errors.
        once("task", tasks.iter().map(|task| task.name.clone()))?;
        once("algorithm", self.algorithm.0.iter().map(ToString::to_string))?;
        once("seed", self.seed.iter().map(ToString::to_string))?;
        let (folder, algorithms) = (self.out.join(FOLDER), &self.algorithm.0);
        let seeds = match &self.seed[..] {
            [] => (0..self.seeds).collect(),
            given => given.to_vec(),
        };
        // Before the model is loaded, and before hours of runs.
        for (task, algorithm) in
            tasks.iter().flat_map(|task| algorithms.iter().map(move |a| (task, a)))
        {
            self.search.settings(task.clone(), algorithm, 0).check()?;
        }
        for (task, seed) in tasks.iter().flat_map(|task| seeds.iter().map(move |s| (task, *s))) {
            data::split(&self.data, task, self.search.shots, seed)?;
        }
        let cancel = on_interrupt()?;
        let service = self.which.open()?;
        let budget = self.search.budget;
        let runs = (tasks.len() * algorithms.len() * seeds.len()) as u64;
        let progress = ProgressDisplay::new(runs * budget);
        // Calls in all, and those of this session.
        let (mut comparisons, mut done, mut fresh) = (Vec::new(), 0, 0);
        for task in &tasks {
            let mut entries: Vec<AlgorithmTunings> = (algorithms.iter())
                .map(|algorithm| AlgorithmTunings {
                    algorithm: algorithm.to_string(),
                    tuned: Vec::new(),
                    tested: Vec::new(),
                    tested_calibrated: Vec::new(),
                    gain_by_text: Vec::new(),
                })
                .collect();
            for &seed in &seeds {
                let split = data::split(&self.data, task, self.search.shots, seed)?;
                let shared = SharedUploads::new(&*service);
                for (algorithm, entry) in algorithms.iter().zip(&mut entries) {
                    let settings = self.search.settings(task.clone(), algorithm, seed);
                    let name = folder_name(task, algorithm, seed);
                    let mut session = 0;
                    let tuned =
                        tune(&shared, &settings, &split, &folder.join(&name), &cancel, |seen| {
                            session = seen.session;
                            progress.show_resumed(done + seen.calls, fresh + session, || {
                                format!("{name}: {}", status(seen))
                            });
                        })?;
                    if tuned.is_interrupted {
                        drop(progress);
                        let folder = folder.display();
                        eprintln!(
                            "interrupted: finished calls are saved in {folder}; run the same command again to resume"
                        );
                        return Ok(ExitCode::from(INTERRUPTED));
                    }
                    done += budget;
                    fresh += session;
                    entry.tuned.push(tuned);
                }
            }
            let settings = self.search.settings(task.clone(), &algorithms[0], seeds[0]);
            let (task_name, seeds) = (task.name.clone(), seeds.clone());
            let mut comparison =
                TuneComparison { task: task_name, budget, settings, entries, seeds, tested: None };
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

    /// Evaluates the kept prompts on rows of the test file, all at once: as they are, and with label shifts
    /// fitted on their training texts.
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
        let settings = &comparison.settings;
        let panel = |examples: &[data::Example]| {
            UploadedExamples::new(service, task, settings.position, &settings.base, examples)
        };
        let test = panel(&rows)?;
        let (words, labels) = (task.words.len(), test.labels());
        let scored = |logits: &[f32]| loss::score(settings.loss, logits, words, &labels);
        let mut kept = Vec::new();
        for &seed in &comparison.seeds {
            for algorithm in &self.algorithm.0 {
                let name = folder_name(task, algorithm, seed);
                kept.push(Prompt::load(&self.out.join(FOLDER).join(name).join(PROMPT))?);
            }
        }
        let numbers: Vec<_> = kept.iter().map(|prompt| prompt.numbers.clone()).collect();
        let untuned = vec![0.0; numbers.first().map_or(0, Vec::len)];
        // Without prompt, untuned, and the kept ones in one call, so that long files are uploaded once.
        let all = [&[Vec::new(), untuned.clone()], &numbers[..]].concat();
        let logits = test.logits(&all)?.into_iter().collect::<Result<Vec<_>, _>>()?;
        let [without, base, logits @ ..] = &logits[..] else {
            anyhow::bail!("the service did not answer for all prompts");
        };
        let mut calibrated = Vec::new();
        let count = self.algorithm.0.len();
        let runs = numbers.chunks(count).zip(kept.chunks(count)).zip(logits.chunks(count));
        for (&seed, ((numbers, kept), logits)) in comparison.seeds.iter().zip(runs) {
            let train = panel(&data::split(&self.data, task, self.search.shots, seed)?.train)?;
            let train_labels = train.labels();
            let mut shifts = Vec::new();
            for logits in train.logits(&[std::slice::from_ref(&untuned), numbers].concat())? {
                shifts.push(calibration::fit(&logits?, words, &train_labels));
            }
            let baseline = calibration::shifted(base, &shifts[0]);
            calibrated.push(scored(&baseline));
            let baseline_right = loss::right(&baseline, words, &labels);
            for (i, entry) in comparison.entries.iter_mut().enumerate() {
                let ours = kept[i].calibrated(logits[i].clone());
                entry.tested.push(scored(&ours));
                entry.gain_by_text.resize(rows.len(), 0.0);
                let pairs = loss::right(&ours, words, &labels).into_iter().zip(&baseline_right);
                for (gain, (ours, other)) in entry.gain_by_text.iter_mut().zip(pairs) {
                    *gain += f64::from(u8::from(ours)) - f64::from(u8::from(*other));
                }
                let shifted = calibration::shifted(&logits[i], &shifts[i + 1]);
                entry.tested_calibrated.push(scored(&shifted));
            }
        }
        let (without, untuned) = (scored(without), scored(base));
        comparison.tested =
            Some(TestedBaselines { texts: rows.len(), without, untuned, calibrated });
        Ok(())
    }
}
