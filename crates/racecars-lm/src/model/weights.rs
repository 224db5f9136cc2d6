//! Weights from safetensors files: `model.safetensors`, or those that `model.safetensors.index.json` names.

use super::quantized::Format;
use crate::error::{Error, Result};
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// The file of a model whose weights are in one file.
const FILE: &str = "model.safetensors";
/// The list of the files of a model whose weights are in several.
pub(crate) const INDEX: &str = "model.safetensors.index.json";

/// The floating-point tensors of a model, by name.
pub(super) struct Weights {
    tensors: HashMap<String, (Vec<usize>, Vec<f32>)>,
}

#[derive(Deserialize)]
struct Index {
    weight_map: HashMap<String, String>,
}

/// The files of weights that an index names.
pub(crate) fn indexed_files(index: &Path) -> Result<Vec<String>> {
    let text =
        std::fs::read_to_string(index).map_err(|error| Error::system("read", index, error))?;
    let wrong = |error: String| Error::model(format!("{}: {error}", index.display()));
    let read: Index = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let names: BTreeSet<String> = read.weight_map.into_values().collect();
    let is_name = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            && name.ends_with(".safetensors")
            && !name.starts_with('.')
    };
    match names.iter().find(|name| !is_name(name)) {
        Some(name) => Err(wrong(format!("{name:?} is not the name of a safetensors file"))),
        None if names.is_empty() => Err(wrong("it names no files".to_string())),
        None => Ok(names.into_iter().collect()),
    }
}

impl Weights {
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let (file, index) = (folder.join(FILE), folder.join(INDEX));
        let files: Vec<PathBuf> = match !file.is_file() && index.is_file() {
            true => indexed_files(&index)?.iter().map(|name| folder.join(name)).collect(),
            false => vec![file],
        };
        let mut weights = Weights { tensors: HashMap::new() };
        for file in files {
            let bytes =
                std::fs::read(&file).map_err(|error| Error::system("read", &file, error))?;
            weights.add(&bytes).map_err(|error| error.within(file.display()))?;
        }
        Ok(weights)
    }

    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let file = SafeTensors::deserialize(bytes).map_err(Error::model)?;
        for (name, view) in file.iter() {
            let format = match view.dtype() {
                Dtype::F32 => Format::F32,
                Dtype::F16 => Format::F16,
                Dtype::BF16 => Format::Bf16,
                // Such as the numbers of positions.
                _ => continue,
            };
            let mut numbers = Vec::new();
            format.read(view.data(), &mut numbers);
            self.tensors.insert(name.to_string(), (view.shape().to_vec(), numbers));
        }
        Ok(())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Takes a weight of any shape.
    pub(super) fn take_any(&mut self, name: &str) -> Result<Vec<f32>> {
        let tensor = self.tensors.remove(name).map(|(_, numbers)| numbers);
        tensor
            .ok_or_else(|| Error::model(format!("`{name}` is missing, or not of F32, F16 or BF16")))
    }

    /// Takes a weight, which must be of this shape.
    pub(super) fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        match self.tensors.get(name) {
            Some((found, _)) if found != shape => {
                Err(Error::model(format!("`{name}` is {found:?}, not {shape:?}")))
            }
            _ => self.take_any(name),
        }
    }
}
