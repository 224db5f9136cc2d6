//! How to do it again: the command of a trial, and that of the whole study.

use super::digest::Digest;
use crate::evaluate::Evaluator;
use crate::plan::Plan;
use crate::shell::command_line;
use std::path::Path;

/// A command that is longer than this helps nobody.
const MAX_LENGTH: usize = 20_000;

/// The program with the values of a trial, as a line for a shell; `None` if the study has no program,
/// or its templates are gone.
pub(super) fn command(digest: &Digest, trial: u64, point: &[f64]) -> Option<String> {
    let folder = std::path::absolute(&digest.folder).ok()?;
    let line = Evaluator::new(&digest.plan, &folder).ok()?.paste(trial, point);
    (line.len() <= MAX_LENGTH).then_some(line)
}

/// The command that goes on with the study; `None` if it has no program.
pub(super) fn go_on(plan: &Plan, folder: &Path) -> Option<String> {
    if plan.command.is_empty() {
        return None;
    }
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    let words = ["racecars", "run", "--study", &whole.display().to_string()].map(String::from);
    Some(command_line(&words))
}

/// The command that runs the study called `name` from the beginning, beside it; `None` if it has no
/// program.
pub(super) fn run(plan: &Plan, name: &str) -> Option<String> {
    let line = plan.command_line(Path::new(&format!("{name}-again")));
    (!plan.command.is_empty() && line.len() <= MAX_LENGTH).then_some(line)
}
