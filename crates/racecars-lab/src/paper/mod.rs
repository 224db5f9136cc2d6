//! The paper's synthetic experiments, reproduced: as data, figures and one page.
//!
//! "RACE-CARS", *RAndomized CoordinatE Classifying And Region Shrinking*; the settings are those of its
//! section "On Synthetic Functions" and of its appendix.
//!
//! - [`Paper`]: which experiments to run, at which [`PaperScale`], and where the files go
//! - `contest`, `table1` and `ablation`: the results of the three kinds of experiment
//! - `claims`: which of the paper's claims hold
//! - `tables`, `pictures`, `report` and `summary`: the CSV files, the figures and the pages

mod ablation;
mod claims;
mod contest;
mod experiment;
mod pictures;
mod report;
mod scale;
mod summary;
mod table1;
mod tables;

pub use ablation::Ablation;
pub use claims::{ClaimVerdict, Judgement};
pub use contest::{Contest, ContestEntry, ContestPanel, LeftOut};
pub use experiment::Experiment;
pub use scale::PaperScale;
pub use table1::Table1;

use crate::trials::{
    Cell, Completion, Store, TrialProgress, TrialResults, TrialsError, run_trials,
};
use racecars::Cancel;
use racecars_figures::{files, page};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::path::PathBuf;

/// A reproduction of the paper's experiments.
#[derive(Debug, Clone)]
pub struct Paper {
    /// The experiments.
    pub experiments: Vec<Experiment>,
    /// Their scale.
    pub scale: PaperScale,
    /// The number of trials of every cell, instead of the experiment's default.
    pub trials: Option<usize>,
    /// Where the files go.
    pub directory: PathBuf,
}

/// The results of the experiments. As JSON, an object with a key for each.
#[derive(Debug, Clone)]
pub struct PaperFindings {
    /// The experiments in the given order, with their results.
    pub experiments: Vec<(Experiment, Finding)>,
}

/// The results of one experiment.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(untagged)]
pub enum Finding {
    /// A comparison of algorithms.
    Contest(Contest),
    /// Table 1.
    Table1(Table1),
    /// An ablation.
    Ablation(Ablation),
}

impl Paper {
    /// Runs the missing trials on `rayon`'s current threads, and writes tables, figures and `report.html`.
    /// `finished` is called after each trial, from any thread.
    pub fn run(
        &self,
        cancel: &Cancel,
        finished: impl Fn(TrialProgress<'_>) + Sync,
    ) -> Result<Completion<PaperFindings>, TrialsError> {
        let store = Store::open(self.directory.join("cells"))?;
        let results = match run_trials(self.cells(), &store, cancel, finished)? {
            Completion::Done(results) => results,
            Completion::Interrupted { kept, of } => {
                return Ok(Completion::Interrupted { kept, of });
            }
        };
        let find = |&experiment: &Experiment| (experiment, self.find(experiment, &results));
        let findings = PaperFindings { experiments: self.experiments.iter().map(find).collect() };
        self.write(&findings)?;
        Ok(Completion::Done(findings))
    }

    /// The path of the page.
    pub fn report(&self) -> PathBuf {
        self.directory.join("report.html")
    }

    fn trials(&self, experiment: Experiment) -> usize {
        self.trials.unwrap_or_else(|| self.scale.trials(experiment))
    }

    fn cells(&self) -> Vec<(Cell, usize)> {
        let mut all = Vec::new();
        for &experiment in &self.experiments {
            let cells = match experiment {
                Experiment::Table1 => table1::cells(self.scale),
                Experiment::AblationDimension | Experiment::AblationRadius => {
                    ablation::cells(self.scale)
                }
                _ => {
                    self.scale.arenas(experiment).iter().flat_map(|arena| arena.cells().0).collect()
                }
            };
            all.extend(cells.into_iter().map(|cell| (cell, self.trials(experiment))));
        }
        all
    }

    fn find(&self, experiment: Experiment, results: &TrialResults) -> Finding {
        let (scale, trials) = (self.scale, self.trials(experiment));
        match experiment {
            Experiment::Table1 => Finding::Table1(Table1::of(scale, trials, results)),
            Experiment::AblationDimension | Experiment::AblationRadius => {
                Finding::Ablation(Ablation::of(experiment, scale, trials, results))
            }
            _ => {
                let arenas = scale.arenas(experiment);
                let panels: Vec<ContestPanel> =
                    arenas.iter().map(|arena| ContestPanel::of(arena, trials, results)).collect();
                let verdicts = claims::of_contest(experiment, &panels);
                Finding::Contest(Contest { trials, panels, verdicts })
            }
        }
    }

    fn write(&self, findings: &PaperFindings) -> Result<(), TrialsError> {
        let write = |name: &str, text: &str| files::write(&self.directory.join(name), text);
        files::create_directory(&self.directory.join("data"))?;
        files::create_directory(&self.directory.join("figures"))?;
        let mut sections = Vec::new();
        for (experiment, finding) in &findings.experiments {
            for (name, table) in tables::of(*experiment, finding) {
                write(&format!("data/{name}"), &table)?;
            }
            let pictures = pictures::of(*experiment, finding);
            for (name, picture) in &pictures {
                write(&format!("figures/{name}.svg"), &picture.to_file())?;
            }
            sections.push((*experiment, finding, pictures));
        }
        write("results.json", &serde_json::to_string_pretty(findings).unwrap_or_default())?;
        write("summary.md", &summary::page(self, findings))?;
        page::save_section(&self.directory, "1-synthetic", &report::synthetic(self, &sections))?;
        Ok(())
    }

    /// The command that makes these files.
    pub(crate) fn command(&self) -> String {
        let mut command = String::from("racecars paper");
        if self.experiments == Experiment::ALL {
            command += " all";
        } else {
            self.experiments
                .iter()
                .for_each(|experiment| command = format!("{command} {}", experiment.name()));
        }
        if self.scale == PaperScale::Quick {
            command += " --quick";
        }
        if let Some(trials) = self.trials {
            command += &format!(" --trials {trials}");
        }
        command
    }
}

impl Serialize for PaperFindings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.experiments.len()))?;
        for (experiment, finding) in &self.experiments {
            map.serialize_entry(experiment.name(), finding)?;
        }
        map.end()
    }
}

impl Finding {
    /// Whether the paper's claims hold.
    pub fn verdicts(&self) -> &[ClaimVerdict] {
        match self {
            Finding::Contest(contest) => &contest.verdicts,
            Finding::Table1(table) => &table.verdicts,
            Finding::Ablation(ablation) => &ablation.verdicts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn run(directory: PathBuf, experiments: &[Experiment]) -> (PaperFindings, usize) {
        let experiments = experiments.to_vec();
        let paper = Paper { experiments, scale: PaperScale::Tiny, trials: None, directory };
        let trials = AtomicUsize::new(0);
        let count = |_: TrialProgress<'_>| {
            trials.fetch_add(1, Ordering::Relaxed);
        };
        let Completion::Done(findings) = paper.run(&Cancel::new(), count).unwrap() else {
            panic!("interrupted");
        };
        (findings, trials.into_inner())
    }

    #[test]
    fn all_experiments_give_one_page_with_all_figures_and_no_external_references() {
        let directory = tempfile::tempdir().unwrap();
        let (findings, trials) = run(directory.path().into(), &Experiment::ALL);
        assert!(trials > 100);
        let page = std::fs::read_to_string(directory.path().join("report.html")).unwrap();
        let mut figures = 0;
        for file in std::fs::read_dir(directory.path().join("figures")).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            let name = name.strip_suffix(".svg").unwrap();
            assert!(page.contains(&format!("<figure id=\"figure-{name}\">\n<svg")), "{name}");
            figures += 1;
        }
        assert_eq!(figures, Experiment::ALL.len() + 1);
        for outside in ["http", "src=", "url(", "@import", "<link", "<script"] {
            assert!(!page.contains(outside), "the page has `{outside}`");
        }
        assert!(page.contains("zo-adam takes continuous coordinates") && page.contains("holds"));
        assert!(!page.contains("NaN"));

        // A second run gives the same results without running any trial.
        let (again, trials) = run(directory.path().into(), &Experiment::ALL);
        assert_eq!(trials, 0);
        assert_eq!(page, std::fs::read_to_string(directory.path().join("report.html")).unwrap());
        let json = |findings: &PaperFindings| serde_json::to_value(findings).unwrap();
        assert_eq!(json(&again), json(&findings));
    }

    #[test]
    fn sections_of_others_stay_on_the_page_and_only_the_newest_of_each() {
        let directory = tempfile::tempdir().unwrap();
        let page = || std::fs::read_to_string(directory.path().join("report.html")).unwrap();
        let keep = |html: &str| page::save_section(directory.path(), "2-other", html).unwrap();
        keep("<h2>First</h2>\n");
        assert!(page().contains("<h1>RACE-CARS") && page().contains("<h2>First</h2>"));
        run(directory.path().into(), &[Experiment::Mixed]);
        assert!(page().contains("id=\"mixed\"") && page().contains("<h2>First</h2>"));
        assert_eq!(keep("<h2>Second</h2>\n"), directory.path().join("report.html"));
        let page = page();
        assert!(!page.contains("First"));
        assert!(page.find("id=\"mixed\"").unwrap() < page.find("<h2>Second</h2>").unwrap());
    }

    #[test]
    fn json_has_a_key_for_each_experiment_and_the_comparison_of_table_1() {
        let directory = tempfile::tempdir().unwrap();
        let chosen = [Experiment::Table1, Experiment::FigN50];
        let (findings, _) = run(directory.path().into(), &chosen);
        let json = serde_json::to_value(&findings).unwrap();
        assert_eq!(json.as_object().unwrap().len(), 2);
        let table = &json["table1"];
        for key in ["spearman", "mean_difference", "columns", "worse_cells"] {
            assert!(!table[key].is_null(), "{key} is missing");
        }
        for key in ["n", "best", "best_rho", "published_best", "published_rho"] {
            assert!(!table["columns"][0][key].is_null(), "{key} is missing");
        }
        assert!(table["spearman"].as_f64().unwrap() > 0.8);
        let panels = json["fig-n50"]["panels"].as_array().unwrap();
        assert_eq!(panels.len(), 4);
        assert!(panels[0]["algorithms"][0]["mean"].is_number());
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let paper = Paper {
            experiments: vec![Experiment::Mixed],
            scale: PaperScale::Tiny,
            trials: None,
            directory: file.path().join("inside"),
        };
        let error = paper.run(&Cancel::new(), |_| {}).unwrap_err().to_string();
        assert!(error.contains("cannot write") && error.contains("inside"), "{error}");
    }
}
