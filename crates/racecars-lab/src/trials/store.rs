//! Finished trials on disk, so that an interrupted command can resume: one small JSON file per cell.
//!
//! A file is found by its cell's settings, the version, and a probe of the behaviour of algorithm and
//! problem, which detects most changes of the code. To publish figures, start with an empty directory
//! nevertheless. A damaged file counts as missing.

use super::TrialsError;
use super::cell::{Cell, CellTrial};
use racecars::Outcome;
use racecars_figures::files;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The evaluations of a probe.
const PROBE_EVALUATIONS: u64 = 300;
/// The largest dimension of a probe.
const PROBE_MAX_DIM: usize = 8;

pub(crate) struct Store {
    directory: PathBuf,
}

/// The content of a file with its checksum.
#[derive(Serialize, Deserialize)]
struct CellFile {
    /// The hash of `content` as JSON, in hexadecimal.
    checksum: String,
    content: CellFileContent,
}

#[derive(Serialize, Deserialize)]
struct CellFileContent {
    identity: Identity,
    /// Trial `i` has seed `i`; `None` for trials that are not done.
    trials: Vec<Option<CellTrial>>,
}

/// Everything that a cell's results depend on.
#[derive(PartialEq, Serialize, Deserialize)]
struct Identity {
    version: String,
    /// A hash of the values of a short run in few dimensions.
    probe: String,
    cell: Cell,
}

impl Store {
    pub(crate) fn open(directory: PathBuf) -> Result<Store, TrialsError> {
        files::create_directory(&directory)?;
        Ok(Store { directory })
    }

    /// The finished trials of a cell.
    pub(crate) fn load(&self, cell: &Cell) -> Result<Vec<Option<CellTrial>>, TrialsError> {
        let identity = Identity::of(cell)?;
        let Ok(text) = std::fs::read_to_string(self.path(&identity)) else { return Ok(Vec::new()) };
        let Ok(record) = serde_json::from_str::<CellFile>(&text) else { return Ok(Vec::new()) };
        let CellFile { checksum, content } = record;
        let is_whole = checksum == hash(&json(&content)) && content.identity == identity;
        Ok(if is_whole { content.trials } else { Vec::new() })
    }

    pub(crate) fn save(
        &self,
        cell: &Cell,
        trials: &[Option<CellTrial>],
    ) -> Result<(), TrialsError> {
        let identity = Identity::of(cell)?;
        let path = self.path(&identity);
        let content = CellFileContent { identity, trials: trials.to_vec() };
        let record = CellFile { checksum: hash(&json(&content)), content };
        Ok(files::write(&path, &json(&record))?)
    }

    fn path(&self, identity: &Identity) -> PathBuf {
        let Cell { problem, dim, algorithm, .. } = &identity.cell;
        let hash = hash(&json(identity));
        self.directory.join(format!("{problem}-n{dim}-{algorithm}-{hash}.json"))
    }
}

impl Identity {
    fn of(cell: &Cell) -> Result<Identity, TrialsError> {
        let version = env!("CARGO_PKG_VERSION").to_string();
        Ok(Identity { version, probe: probe(cell)?, cell: cell.clone() })
    }
}

/// A hash of the values of a short run of the cell's algorithm on its problem.
fn probe(cell: &Cell) -> Result<String, TrialsError> {
    // As many shrinks as in the cell, so that the region gets equally small.
    let stretch = cell.budget as f64 / PROBE_EVALUATIONS as f64;
    let shrinking = cell.shrinking.map(|(gamma, rho)| (gamma, (rho * stretch).min(1.0)));
    let dim = cell.dim.min(PROBE_MAX_DIM);
    let small = Cell { dim, budget: PROBE_EVALUATIONS, shrinking, ..cell.clone() };
    let problem = small.problem(0)?;
    let mut optimizer =
        small.algorithm()?.optimizer(problem.space(), Some(PROBE_EVALUATIONS), 0)?;
    let mut values = String::new();
    while optimizer.told() < PROBE_EVALUATIONS {
        let Some(candidate) = optimizer.ask() else { break };
        let value = problem.value_at(candidate.point());
        values.push_str(&format!("{:x} ", value.to_bits()));
        optimizer.tell(candidate, Outcome::from(value))?;
    }
    Ok(hash(&values))
}

/// A value as JSON. Does not fail, since all maps here have string keys.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn hash(text: &str) -> String {
    fingerprint(text.as_bytes())
}

/// FNV-1a, which is the same on every machine and in every version of Rust.
pub(crate) fn fingerprint(bytes: &[u8]) -> String {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use racecars::Cancel;

    fn cell(rho: f64) -> Cell {
        Cell::ackley(5, None, 0.95, rho)
    }

    #[test]
    fn trials_come_back_to_the_bit_to_their_own_cell_only() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path().join("cells")).unwrap();
        let trial = cell(0.1).run(0, &Cancel::new()).unwrap();
        store.save(&cell(0.1), &[None, trial.clone()]).unwrap();
        assert_eq!(store.load(&cell(0.1)).unwrap(), [None, trial]);
        assert!(store.load(&cell(0.2)).unwrap().is_empty());
    }

    #[test]
    fn a_damaged_file_counts_as_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path().into()).unwrap();
        let trial = cell(0.1).run(0, &Cancel::new()).unwrap();
        store.save(&cell(0.1), &[trial]).unwrap();
        let path = std::fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
        let whole = std::fs::read_to_string(&path).unwrap();
        let changed = whole.replace("\"evaluations\":150", "\"evaluations\":149");
        assert_ne!(whole, changed);
        for damaged in [&whole[..whole.len() / 2], "", "{}", &changed] {
            std::fs::write(&path, damaged).unwrap();
            assert!(store.load(&cell(0.1)).unwrap().is_empty());
        }
    }

    #[test]
    fn probes_tell_algorithms_settings_and_problems_apart() {
        let other_problem = Cell { problem: "levy".into(), ..cell(0.1) };
        let cells = [cell(0.0), cell(0.1), cell(0.2), other_problem];
        let mut probes: Vec<_> = cells.iter().map(|cell| probe(cell).unwrap()).collect();
        probes.sort();
        probes.dedup();
        assert_eq!(probes.len(), 4);
    }
}
