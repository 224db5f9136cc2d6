//! `racecars algorithms`: the algorithms and their settings.

use crate::output::{print, print_json};
use clap::Args;
use racecars::Algorithm;
use serde::Serialize;
use std::process::ExitCode;

/// List the algorithms, or the settings of one
#[derive(Args)]
pub(crate) struct AlgorithmsCommand {
    /// List the settings of this algorithm, for --set
    algorithm: Option<Algorithm>,
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct AlgorithmEntry {
    name: &'static str,
    about: &'static str,
    settings: Vec<SettingEntry>,
}

#[derive(Serialize)]
struct SettingEntry {
    name: &'static str,
    about: &'static str,
}

impl AlgorithmsCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let chosen: Vec<Algorithm> = match &self.algorithm {
            Some(algorithm) => vec![algorithm.clone()],
            None => Algorithm::all().collect(),
        };
        if self.json {
            print_json(&chosen.iter().map(entry).collect::<Vec<_>>())?;
            return Ok(ExitCode::SUCCESS);
        }
        let Some(algorithm) = &self.algorithm else {
            for AlgorithmEntry { name, about, settings } in chosen.iter().map(entry) {
                let names: Vec<&str> = settings.iter().map(|setting| setting.name).collect();
                let names = if names.is_empty() { "none".into() } else { names.join(", ") };
                print(format!("{name}\n{}\n{}", fold(about), fold(&format!("settings: {names}"))))?;
            }
            return Ok(ExitCode::SUCCESS);
        };
        let AlgorithmEntry { name, about, settings } = entry(algorithm);
        print(format!("{name}\n{}", fold(about)))?;
        for SettingEntry { name, about } in settings {
            print(format!("  --set {name}=..\n{}", fold(about)))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Breaks a text into indented lines.
fn fold(text: &str) -> String {
    const WIDTH: usize = 96;
    let mut lines = vec!["    ".to_string()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < WIDTH => *line += &format!("{word} "),
            _ => lines.push(format!("    {word} ")),
        }
    }
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

fn entry(algorithm: &Algorithm) -> AlgorithmEntry {
    let settings = algorithm.settings().into_iter();
    AlgorithmEntry {
        name: algorithm.name(),
        about: algorithm.about(),
        settings: settings
            .map(|setting| SettingEntry { name: setting.name, about: setting.about })
            .collect(),
    }
}
