//! Examples of a task, uploaded to a service in pieces of a size that it accepts, and uploaded again if it
//! dropped them.

use crate::data::Example;
use crate::error::{Error, ErrorKind, Result};
use crate::loss::Score;
use crate::model::ModelKind;
use crate::service::BlackBox;
use crate::task::{Position, Task};
use crate::wire::{Answer, EvaluateOptions, Upload};
use std::sync::Mutex;

/// The maximum number of texts of a piece.
const MAX_PIECE_TEXTS: usize = 128;

/// Examples that are uploaded to a service when needed.
pub struct UploadedExamples<'a> {
    service: &'a dyn BlackBox,
    pieces: Vec<UploadPiece>,
    count: usize,
    prompts_at_once: usize,
}

impl std::fmt::Debug for UploadedExamples<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UploadedExamples").field("count", &self.count).finish_non_exhaustive()
    }
}

struct UploadPiece {
    upload: Upload,
    /// The handle, if it is uploaded.
    handle: Mutex<Option<String>>,
}

impl<'a> UploadedExamples<'a> {
    /// Examples of a task for a service; `base` is the text of p0, or empty.
    pub fn new(
        service: &'a dyn BlackBox,
        task: &Task,
        position: Position,
        base: &str,
        examples: &[Example],
    ) -> Result<Self> {
        let description = service.describe()?;
        let kind: ModelKind = description.info.kind;
        let texts = (examples.iter())
            .map(|example| task.text(kind, position, example))
            .collect::<Result<Vec<_>>>()?;
        let size = MAX_PIECE_TEXTS.min(description.limits.texts).max(1);
        let pieces =
            texts.chunks(size).zip(examples.chunks(size)).map(|(texts, examples)| UploadPiece {
                upload: Upload {
                    texts: texts.to_vec(),
                    words: task.words.clone(),
                    labels: examples.iter().map(|example| example.label).collect(),
                    base: base.to_string(),
                },
                handle: Mutex::new(None),
            });
        Ok(UploadedExamples {
            service,
            pieces: pieces.collect(),
            count: examples.len(),
            prompts_at_once: description.limits.prompts.max(1),
        })
    }

    /// The number of examples.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no examples.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The score of each prompt on all examples, or an error if the model has no score for it. A single
    /// piece stays uploaded; of several, which may be large, each is removed after use.
    pub fn scores(
        &self,
        prompts: &[Vec<f32>],
        wanted: EvaluateOptions,
    ) -> Result<Vec<Result<Score>>> {
        let mut totals: Vec<Result<Score>> =
            vec![Ok(Score { loss: 0.0, accuracy: 0.0 }); prompts.len()];
        for piece in &self.pieces {
            let answers = self.answers(piece, prompts, wanted)?;
            let share = piece.upload.texts.len() as f64 / self.count as f64;
            for (total, answer) in totals.iter_mut().zip(answers) {
                match (&mut *total, answer) {
                    (Ok(sum), Answer { loss: Some(loss), accuracy: Some(accuracy), .. }) => {
                        sum.loss += share * loss;
                        sum.accuracy += share * accuracy;
                    }
                    (Ok(_), Answer { error, .. }) => {
                        let why = error.unwrap_or_else(|| "the service gave no loss".to_string());
                        *total = Err(Error::input(why));
                    }
                    (Err(_), _) => {}
                }
            }
        }
        Ok(totals)
    }

    /// The score of one prompt.
    pub fn score(&self, prompt: Vec<f32>, wanted: EvaluateOptions) -> Result<Score> {
        let scores = self.scores(&[prompt], wanted)?;
        scores.into_iter().next().unwrap_or_else(|| Err(Error::network("there is no answer")))
    }

    /// The index of the correct label word of each example.
    pub fn labels(&self) -> Vec<usize> {
        self.pieces.iter().flat_map(|piece| &piece.upload.labels).copied().collect()
    }

    /// The logits of each prompt, the rows of the examples one after the other, or an error if the model has
    /// none for it.
    pub fn logits(&self, prompts: &[Vec<f32>]) -> Result<Vec<Result<Vec<f32>>>> {
        let wanted = EvaluateOptions { logits: true, ..EvaluateOptions::default() };
        let mut all: Vec<Result<Vec<f32>>> = vec![Ok(Vec::new()); prompts.len()];
        for piece in &self.pieces {
            for (logits, answer) in all.iter_mut().zip(self.answers(piece, prompts, wanted)?) {
                match (&mut *logits, answer) {
                    (Ok(rows), Answer { logits: Some(more), .. }) => {
                        rows.extend(more.into_iter().flatten());
                    }
                    (Ok(_), Answer { error, .. }) => {
                        let why = error.unwrap_or_else(|| "the service gave no logits".to_string());
                        *logits = Err(Error::input(why));
                    }
                    (Err(_), _) => {}
                }
            }
        }
        Ok(all)
    }

    fn answers(
        &self,
        piece: &UploadPiece,
        prompts: &[Vec<f32>],
        wanted: EvaluateOptions,
    ) -> Result<Vec<Answer>> {
        let Ok(mut handle) = piece.handle.lock() else {
            return Err(Error::input("another evaluation of the same texts broke off"));
        };
        let mut answers = Vec::with_capacity(prompts.len());
        // The binary format has one length for all prompts of a request.
        let alike = prompts.chunk_by(|a, b| a.len() == b.len());
        for some in alike.flat_map(|alike| alike.chunks(self.prompts_at_once)) {
            let name = self.handle(piece, &mut handle)?;
            let result = match self.service.evaluate(&name, some, wanted) {
                // The service was restarted, or dropped the batch. Of shared uploads the handle may be as old.
                Err(error) if error.kind() == ErrorKind::Unknown => {
                    *handle = None;
                    let name = self.handle(piece, &mut handle)?;
                    self.service.evaluate(&name, some, wanted)
                }
                result => result,
            };
            answers.extend(result?);
        }
        if self.pieces.len() > 1
            && let Some(name) = handle.take()
        {
            self.service.remove(&name)?;
        }
        Ok(answers)
    }

    fn handle(&self, piece: &UploadPiece, handle: &mut Option<String>) -> Result<String> {
        if let Some(name) = handle {
            return Ok(name.clone());
        }
        let name = self.service.upload(&piece.upload)?.batch;
        *handle = Some(name.clone());
        Ok(name)
    }
}

impl Drop for UploadedExamples<'_> {
    fn drop(&mut self) {
        for piece in &self.pieces {
            if let Ok(mut handle) = piece.handle.lock()
                && let Some(name) = handle.take()
            {
                // A batch that cannot be removed expires.
                let _ = self.service.remove(&name);
            }
        }
    }
}
