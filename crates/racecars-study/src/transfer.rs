//! Taking over the trials of another study as known points, by the names of the parameters.

use crate::error::{Error, Result};
use crate::extract::Source;
use crate::journal::{self, Event, Lines};
use crate::known::Known;
use crate::outcome::Outcome;
use crate::point::NamedPoint;
use crate::study::FOLDER;
use crate::text::Names;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// What was taken over.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) known: Vec<Known>,
    /// How many of how many, and why not the others.
    pub(crate) note: String,
}

/// Takes over the trials of the study at `path`, a folder or a journal. Parameters that it does not have are
/// as in `assume`.
pub(crate) fn take_over(
    path: &Path,
    names: Names<'_>,
    assume: &NamedPoint,
    objective: &Source,
) -> Result<Taken> {
    let journal = journal_of(path);
    let lines = Lines::open(&journal)?;
    let mut lines = lines.ok_or_else(|| {
        Error::setting(format!("there is no study in {}; give a study's folder", path.display()))
    })?;
    let plan = lines.plan().clone();
    let has = |name: &str| plan.names().all().any(|other| other == name);
    if let Some((name, _)) =
        assume.values().iter().find(|(name, _)| !names.all().any(|n| n == name))
    {
        let all: Vec<&str> = names.all().take(20).collect();
        let all = all.join(", ");
        return Err(Error::setting(format!("assume: `{name}` is no parameter; there are {all}")));
    }
    let searched = names.space.entries().iter().map(|entry| entry.name());
    if let Some(name) = searched.clone().find(|name| !has(name) && assume.get(name).is_none()) {
        return Err(Error::setting(format!(
            "parameter `{name}` is new: the study in {} does not have it. Say which value it had there, like \
             --assume {name}=VALUE",
            path.display()
        )));
    }
    let mut take =
        Take { names, fixed: &plan.fixed, assume, known: Vec::new(), outside: 0, failed: 0 };
    for Known { point, outcome } in &plan.known {
        take.enter(point, outcome);
    }
    let mut asked: HashMap<u64, NamedPoint> = HashMap::new();
    lines.read(|_, event| -> Result<()> {
        match event? {
            Event::Ask(ask) => {
                let point = serde_json::from_str(ask.params.get()).map_err(Error::setting)?;
                asked.insert(ask.trial, point);
            }
            Event::Tell(tell) => {
                if let Some(point) = asked.remove(&tell.trial) {
                    take.enter(&point, &tell.outcome.checked());
                }
            }
            Event::Known(known) => take.enter(&known.params, &known.outcome.checked()),
            _ => {}
        }
        Ok(())
    })?;
    let Take { known, outside, failed, .. } = take;
    let mut note = format!(
        "took over {} of {} trials of {}",
        known.len(),
        known.len() + outside + failed,
        path.display()
    );
    for (count, why) in [(outside, "not of the ranges here"), (failed, "failed")] {
        if count > 0 {
            note += &format!(", {count} {why}");
        }
    }
    let gone: Vec<&str> =
        plan.names().all().filter(|name| !names.all().any(|n| n == *name)).collect();
    if !gone.is_empty() {
        note += &format!("; without its parameters {}", gone.join(", "));
    }
    if plan.objective != *objective {
        note +=
            &format!("; warning: its values are `{}`, those here `{objective}`", plan.objective);
    }
    Ok(Taken { known, note })
}

/// The journal that is meant by a study's folder, the folder that contains it, or itself.
fn journal_of(path: &Path) -> PathBuf {
    let inside = path.join(FOLDER).join(journal::FILE);
    match path {
        path if path.is_file() => path.to_path_buf(),
        path if !path.join(journal::FILE).exists() && inside.exists() => inside,
        path => path.join(journal::FILE),
    }
}

/// Takes in trials.
struct Take<'a> {
    names: Names<'a>,
    /// What the other study fixed.
    fixed: &'a NamedPoint,
    assume: &'a NamedPoint,
    known: Vec<Known>,
    outside: usize,
    failed: usize,
}

impl Take<'_> {
    fn enter(&mut self, point: &NamedPoint, outcome: &Outcome) {
        // What failed there may work here.
        if outcome.is_failure() {
            self.failed += 1;
            return;
        }
        let point = point.clone().completed(self.fixed).completed(self.assume);
        let ours = point.values().iter().filter(|(name, _)| self.names.all().any(|n| n == name));
        let point = NamedPoint::new(ours.cloned().collect());
        let point = point.without_fixed(self.names.fixed);
        match point.and_then(|point| point.of_space(self.names.space)) {
            Ok(point) => self.known.push(Known { point, outcome: outcome.clone() }),
            Err(_) => self.outside += 1,
        }
    }
}
