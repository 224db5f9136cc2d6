//! A tuned prompt as a safetensors file, with everything needed to use it in its metadata.

use super::settings::TuneSettings;
use crate::calibration;
use crate::error::{Error, Result};
use safetensors::{Dtype, SafeTensors, View};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

/// A tuned prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The concatenated embeddings of its tokens, without p0.
    pub numbers: Vec<f32>,
    /// Its coordinates z.
    pub z: Vec<f64>,
    /// How it was found.
    pub origin: PromptOrigin,
}

/// How a prompt was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptOrigin {
    /// The settings of its tuning.
    pub settings: TuneSettings,
    /// The model's name.
    pub model: String,
    /// The length of a token's embedding.
    pub hidden: usize,
    /// The call that found it, counted from 1.
    pub calls: u64,
    /// Its loss on the training texts.
    pub train_loss: f64,
    /// What is added to the logits of the label words; empty without calibration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shifts: Vec<f64>,
}

/// The key of the metadata.
const METADATA_KEY: &str = "racecars";
/// The maximum size of a file in bytes.
const MAX_FILE_BYTES: u64 = 1 << 30;

struct Numbers(Vec<usize>, Vec<u8>, Dtype);

impl View for Numbers {
    fn dtype(&self) -> Dtype {
        self.2
    }
    fn shape(&self) -> &[usize] {
        &self.0
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.1)
    }
    fn data_len(&self) -> usize {
        self.1.len()
    }
}

impl Prompt {
    /// Writes a temporary file and renames it, so that the file is always complete.
    pub fn save(&self, path: &Path) -> Result<()> {
        let refuse = |error: String| Error::system("write", path, error);
        let bytes = |numbers: &[f32]| numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        let shape = vec![self.numbers.len() / self.origin.hidden, self.origin.hidden];
        let z = self.z.iter().flat_map(|x| x.to_le_bytes()).collect();
        let tensors = [
            ("prompt", Numbers(shape, bytes(&self.numbers), Dtype::F32)),
            ("z", Numbers(vec![self.z.len()], z, Dtype::F64)),
        ];
        let origin =
            serde_json::to_string(&self.origin).map_err(|error| refuse(error.to_string()))?;
        let metadata = HashMap::from([(METADATA_KEY.to_string(), origin)]);
        let bytes = safetensors::serialize(tensors, Some(metadata))
            .map_err(|error| refuse(error.to_string()))?;
        let temporary = path.with_extension("safetensors.part");
        std::fs::write(&temporary, bytes)
            .and_then(|()| std::fs::rename(&temporary, path))
            .map_err(|error| refuse(error.to_string()))
    }

    /// Reads a prompt.
    pub fn load(path: &Path) -> Result<Self> {
        let wrong = |error: String| Error::data(format!("{}: {error}", path.display()));
        let size =
            std::fs::metadata(path).map_err(|error| Error::system("read", path, error))?.len();
        if size > MAX_FILE_BYTES {
            return Err(wrong(format!("{size} bytes are too many for a prompt")));
        }
        let bytes = std::fs::read(path).map_err(|error| Error::system("read", path, error))?;
        let (_, metadata) = SafeTensors::read_metadata(&bytes)
            .map_err(|error| wrong(format!("not a safetensors file: {error}")))?;
        let origin = (metadata.metadata().as_ref())
            .and_then(|metadata| metadata.get(METADATA_KEY))
            .ok_or_else(|| {
                wrong(format!("not a prompt of ours: no `{METADATA_KEY}` in its metadata"))
            })?;
        let origin: PromptOrigin = serde_json::from_str(origin)
            .map_err(|error| wrong(format!("`{METADATA_KEY}` of its metadata: {error}")))?;
        let tensors = SafeTensors::deserialize(&bytes).map_err(|error| wrong(error.to_string()))?;
        let tensor = |name: &str, dtype: Dtype| match tensors.tensor(name) {
            Ok(tensor) if tensor.dtype() == dtype => Ok(tensor.data().to_vec()),
            Ok(tensor) => Err(wrong(format!("`{name}` is {:?}, not {dtype:?}", tensor.dtype()))),
            Err(error) => Err(wrong(error.to_string())),
        };
        let numbers: Vec<f32> = (tensor("prompt", Dtype::F32)?.chunks_exact(4))
            .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            .collect();
        let z = (tensor("z", Dtype::F64)?.chunks_exact(8))
            .map(|b| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]))
            .collect();
        let expected = origin.hidden.checked_mul(origin.settings.prompt_tokens);
        if Some(numbers.len()) != expected {
            return Err(wrong(format!(
                "{} numbers are not {} tokens of {}",
                numbers.len(),
                origin.settings.prompt_tokens,
                origin.hidden
            )));
        }
        let (shifts, words) = (&origin.shifts, origin.settings.task.words.len());
        if !shifts.is_empty() && shifts.len() != words {
            return Err(wrong(format!("{} shifts for {words} label words", shifts.len())));
        }
        Ok(Prompt { numbers, z, origin })
    }

    /// Logits as this prompt predicts with them: shifted, if it was tuned with calibration.
    pub fn calibrated(&self, logits: Vec<f32>) -> Vec<f32> {
        match &*self.origin.shifts {
            [] => logits,
            shifts => calibration::shifted(&logits, shifts),
        }
    }
}
