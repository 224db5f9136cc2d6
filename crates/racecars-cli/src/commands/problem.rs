//! `racecars problem`: lists the test problems, describes one, and evaluates it at points.

use super::at_least_one;
use crate::output::{print, print_json, short};
use anyhow::{Context, ensure};
use clap::Args;
use racecars::{Domain, Space, Values};
use racecars_problems::catalogue::{Listed, PREFIXES, PROBLEMS};
use racecars_problems::rotation::Rotation;
use racecars_problems::{Problem as TestProblem, Transformation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, stdin};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// List the test problems, describe one, or evaluate it
///
/// With `--json` the description is complete, so that other programs can optimize exactly the same function:
/// the value at x is g(center + R (x - minimizer)), where g is `function` and R is `rotation`, plus jumps
/// for discontinuous- and stepped- problems.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ProblemCommand {
    /// The problem's name [default: list all problems]
    name: Option<String>,
    /// The number of coordinates
    #[arg(long, value_name = "N", default_value = "100", value_parser = at_least_one)]
    dim: usize,
    /// The seed of its random parts, as in `solve` and `bench`
    #[arg(long, value_name = "S", default_value = "0")]
    seed: u64,
    /// Print the values at the points of this file (`-`: standard input). Each line is a point in JSON: an
    /// array of encoded coordinates, or an object with a value for each name
    #[arg(long, value_name = "FILE", requires = "name")]
    at: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  racecars problem                                          the names
  racecars problem shifted-rotated-levy --dim 5 --json      everything about one
  echo '[0.2, 0.2, 1]' | racecars problem ackley --dim 3 --at -";

#[derive(Serialize)]
struct Catalogue {
    problems: Vec<&'static str>,
    prefixes: Vec<&'static str>,
}

#[derive(Serialize)]
struct ProblemReport<'a> {
    name: &'a str,
    dim: usize,
    seed: u64,
    optimum: f64,
    minimizer: Vec<f64>,
    transformation: Option<TransformationReport>,
    space: &'a Space,
}

#[derive(Serialize)]
struct TransformationReport {
    function: &'static str,
    center: f64,
    jumps: bool,
    rotation: Option<Vec<Vec<f64>>>,
}

#[derive(Serialize)]
struct ValuesReport {
    values: Vec<f64>,
}

/// A point on a line of the input.
#[derive(Deserialize)]
#[serde(untagged)]
enum PointInput {
    Encoded(Vec<f64>),
    Named(BTreeMap<String, Values>),
}

impl ProblemCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match &self.name {
            None => self.list()?,
            Some(name) => {
                let problem = TestProblem::named(name, self.dim, self.seed)?;
                match &self.at {
                    None => self.describe(&problem)?,
                    Some(path) => self.evaluate(&problem, path)?,
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn list(&self) -> anyhow::Result<()> {
        if self.json {
            let names = |listed: &[Listed]| listed.iter().map(|listed| listed.name).collect();
            return print_json(&Catalogue {
                problems: names(&PROBLEMS),
                prefixes: names(&PREFIXES),
            });
        }
        let (functions, others): (Vec<Listed>, Vec<Listed>) =
            PROBLEMS.iter().partition(|listed| listed.takes_prefixes);
        show("functions on [-10, 10]^n", &functions)?;
        show("\nbefore their names, in this order", &PREFIXES)?;
        show("\nothers", &others)
    }

    fn describe(&self, problem: &TestProblem) -> anyhow::Result<()> {
        let minimizer = problem.minimizer();
        let transformation = problem.transformation();
        if self.json {
            return print_json(&ProblemReport {
                name: problem.name(),
                dim: self.dim,
                seed: self.seed,
                optimum: problem.optimum(),
                minimizer,
                transformation: transformation.map(TransformationReport::of),
                space: problem.space(),
            });
        }
        print(format!("problem      {}", problem.name()))?;
        for entry in problem.space().entries() {
            let (name, count) = (entry.name(), entry.range().len());
            print(format!("coordinates  {name}: {count} {}", kind(entry.domain())))?;
        }
        if let Some(made) = transformation {
            let turned = if made.rotation.is_some() { ", turned" } else { "" };
            let jumps = if made.has_jumps { ", with jumps" } else { "" };
            print(format!("made from    {}{turned}{jumps}", made.function))?;
        }
        print(format!("optimum      {}", short(problem.optimum())))?;
        print(format!("at           {}", problem.space().view(&minimizer)))
    }

    fn evaluate(&self, problem: &TestProblem, path: &Path) -> anyhow::Result<()> {
        let values = read_points(problem.space(), path)?
            .iter()
            .map(|point| problem.value_at(point))
            .collect::<Vec<f64>>();
        if self.json {
            return print_json(&ValuesReport { values });
        }
        values.iter().try_for_each(print)
    }
}

impl TransformationReport {
    fn of(transformation: Transformation<'_>) -> Self {
        TransformationReport {
            function: transformation.function,
            center: transformation.center,
            jumps: transformation.has_jumps,
            rotation: transformation.rotation.map(Rotation::rows),
        }
    }
}

fn show(heading: &str, listed: &[Listed]) -> anyhow::Result<()> {
    print(format!("{heading}:"))?;
    listed.iter().try_for_each(|Listed { name, about, .. }| print(format!("  {name:<20} {about}")))
}

fn kind(domain: &Domain) -> String {
    match domain {
        Domain::Real { low, high, .. } => format!("reals from {low} to {high}"),
        Domain::Integer { low, high, .. } => format!("integers from {low} to {high}"),
        Domain::Categorical(choices) => format!("with {} categories each", choices.len()),
        other => format!("{other:?}"),
    }
}

fn read_points(space: &Space, path: &Path) -> anyhow::Result<Vec<Vec<f64>>> {
    let reader: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(stdin().lock())
    } else {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        Box::new(BufReader::new(file))
    };
    let mut points = Vec::new();
    for (i, line) in reader.lines().enumerate() {
        let line = line.with_context(|| format!("cannot read {}", path.display()))?;
        if !line.trim().is_empty() {
            points.push(read_point(space, &line).with_context(|| format!("line {}", i + 1))?);
        }
    }
    ensure!(!points.is_empty(), "{} holds no points", path.display());
    Ok(points)
}

fn read_point(space: &Space, line: &str) -> anyhow::Result<Vec<f64>> {
    let given: PointInput = serde_json::from_str(line)
        .context("not a JSON array of numbers, nor an object with a value for each name")?;
    Ok(match given {
        PointInput::Encoded(point) => {
            space.check(&point)?;
            point
        }
        PointInput::Named(assignments) => space.encode(assignments)?,
    })
}
