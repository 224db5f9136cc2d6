//! How to do it again: the command of a trial, and that of the whole study.

use super::digest::Digest;
use crate::command::Task;
use crate::evaluate::Evaluator;
use crate::outcome::Direction;
use crate::plan::{Aggregate, Plan};
use crate::text::command_line;
use racecars::space::Entry;
use racecars::{Domain, Noise, Scale, Space, Value};
use std::path::Path;

/// A command that is longer than this helps nobody.
const LONGEST: usize = 20_000;

/// The program with the values of a trial, as a line for a shell; `None` if the study has no program,
/// or its templates are gone.
pub(super) fn command(digest: &Digest, trial: u64, point: &[f64]) -> Option<String> {
    let folder = std::path::absolute(&digest.folder).ok()?;
    let evaluator = Evaluator::new(&digest.plan, &folder).ok()?;
    let seed = evaluator.seed(trial, 0);
    let line = evaluator.recipe().paste(Task { trial, seed, point, folder: "" });
    (line.len() <= LONGEST).then_some(line)
}

/// The command that goes on with the study.
pub(super) fn go_on(folder: &Path) -> String {
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    command_line(&["racecars", "run", "--study", &whole.display().to_string()].map(String::from))
}

/// The command that runs the study called `name` from the beginning, beside it; `None` if it has no
/// program.
pub(super) fn run(plan: &Plan, space: &Space, name: &str) -> Option<String> {
    if plan.command.is_empty() {
        return None;
    }
    let mut words: Vec<String> = vec!["racecars".into(), "run".into()];
    let mut add = |flag: &str, value: String| words.extend([format!("--{flag}"), value]);
    for entry in space.entries() {
        add("parameter", parameter(entry));
    }
    add("budget", plan.budget.to_string());
    add("jobs", plan.jobs.to_string());
    add("seed", plan.seed.to_string());
    add("algorithm", plan.algorithm.clone());
    let goal = match plan.direction {
        Direction::Minimize => "minimize",
        Direction::Maximize => "maximize",
    };
    add(goal, plan.objective.clone());
    plan.constraints.iter().for_each(|constraint| add("constraint", constraint.clone()));
    plan.env.iter().for_each(|variable| add("env", variable.clone()));
    plan.templates.iter().for_each(|template| add("template", template.clone()));
    add("study", format!("{name}-again"));
    if let Some(seconds) = plan.timeout {
        add("timeout", format!("{seconds}s"));
    }
    if let Some(bytes) = plan.memory {
        add("memory", bytes.to_string());
    }
    if let Some(target) = plan.target {
        add("target", target.to_string());
    }
    if plan.retries > 0 {
        add("retries", plan.retries.to_string());
    }
    if plan.repeat > 1 {
        add("repeat", plan.repeat.to_string());
    }
    if plan.aggregate == Aggregate::Median {
        add("aggregate", "median".into());
    }
    if plan.noise != Noise::Detect {
        add("noise", plan.noise.to_string());
    }
    if plan.confirm > 0 {
        add("confirm", plan.confirm.to_string());
        add("leaders", plan.leaders.to_string());
    }
    if plan.deterministic {
        add("lookahead", plan.lookahead.to_string());
    }
    for (flag, is_set) in
        [("deterministic", plan.deterministic), ("stdin", plan.stdin), ("shell", plan.shell)]
    {
        if is_set {
            words.push(format!("--{flag}"));
        }
    }
    words.push("--".into());
    words.extend(plan.command.iter().cloned());
    let line = command_line(&words).replace(" --parameter ", " -p ");
    (line.len() <= LONGEST).then_some(line)
}

/// A parameter the way people write it: see [`Parameter`](crate::Parameter).
fn parameter(entry: &Entry) -> String {
    let log = |scale: &Scale| if *scale == Scale::Log { ":log" } else { "" };
    let joined = |values: &[Value], gap: &str| {
        values.iter().map(Value::to_string).collect::<Vec<_>>().join(gap)
    };
    let number = |x: &f64| Value::from(*x).to_string();
    let range = match entry.domain() {
        Domain::Real { low, high, scale } => {
            format!("{}:{}{}", number(low), number(high), log(scale))
        }
        Domain::Integer { low, high, scale } => format!("{low}..{high}{}", log(scale)),
        Domain::Grid { low, high, step } => {
            format!("{}:{}:step={}", number(low), number(high), number(step))
        }
        Domain::Levels(values) => joined(values, "<"),
        Domain::Categorical(values) => joined(values, ","),
        _ => "bool".to_string(),
    };
    match entry.array_len() {
        None => format!("{}={range}", entry.name()),
        Some(count) => format!("{}[{count}]={range}", entry.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Parameter;

    #[test]
    fn parameters_are_written_as_they_are_read() {
        let texts = [
            "x=0:10",
            "lr=1e-5:0.1:log",
            "g=0:1:step=0.1",
            "n=1..64",
            "k=1..64:log",
            "mode=a,b,c",
            "size=small<medium<large",
            "flag=bool",
            "w[5]=-1:1",
        ];
        let parameters: Vec<Parameter> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let space = crate::parameter::space(&parameters).unwrap();
        let written: Vec<String> = space.entries().iter().map(parameter).collect();
        assert_eq!(written, texts);
    }

    #[test]
    fn the_study_s_command_has_what_matters() {
        let space = crate::parameter::space(&["x=0:10".parse().unwrap()]).unwrap();
        let command = ["./sim", "a b", "{x}"].map(String::from).to_vec();
        let mut plan = Plan { command, budget: 50, jobs: 2, ..Plan::default() };
        (plan.timeout, plan.shell, plan.direction) = (Some(60.0), true, Direction::Maximize);
        assert_eq!(
            run(&plan, &space, "s").unwrap(),
            "racecars run -p x=0:10 --budget 50 --jobs 2 --seed 0 --algorithm auto \
             --maximize last --study s-again --timeout 60s --shell -- ./sim 'a b' '{x}'"
        );
        plan.command.clear();
        assert_eq!(run(&plan, &space, "s"), None);
    }
}
