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
                        *total = Err(Error::input(error.unwrap_or_default()));
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
                        *logits = Err(Error::input(error.unwrap_or_default()));
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
            for answer in result? {
                // A service may be anybody's: what does not fit would be a loss of other texts, or none.
                check(&answer, &piece.upload, wanted).map_err(|what| {
                    Error::network(format!("the service's answer for a prompt has {what}"))
                })?;
                answers.push(answer);
            }
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

/// Whether an answer has what was asked for, or says why not; `Err` says what it has instead.
fn check(answer: &Answer, upload: &Upload, wanted: EvaluateOptions) -> Result<(), String> {
    let (texts, words) = (upload.texts.len(), upload.words.len());
    match answer {
        Answer { error: Some(_), .. } => Ok(()),
        Answer { logits: Some(rows), .. } if wanted.logits => {
            if rows.len() != texts {
                return Err(format!("{} rows of logits for {texts} texts", rows.len()));
            }
            for (i, row) in rows.iter().enumerate() {
                if row.len() != words {
                    return Err(format!(
                        "{} logits of text {i} for {words} label words",
                        row.len()
                    ));
                }
                if row.iter().any(|x| !x.is_finite()) {
                    return Err(format!("a logit of text {i} that is not finite"));
                }
            }
            Ok(())
        }
        _ if wanted.logits => Err("no logits".to_string()),
        Answer { loss: Some(loss), .. } if !loss.is_finite() => Err(format!("{loss} as its loss")),
        Answer { loss: Some(_), accuracy: Some(accuracy), .. } => {
            match (0.0..=1.0).contains(accuracy) {
                true => Ok(()),
                false => Err(format!("{accuracy} as its accuracy, which is a share")),
            }
        }
        _ => Err("no loss or no accuracy".to_string()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::InputText;

    #[test]
    fn answers_that_do_not_fit_are_named() {
        let text = InputText { before: "a".into(), after: String::new(), tail: String::new() };
        let words = vec!["bad".to_string(), "good".to_string()];
        let upload =
            Upload { texts: vec![text; 2], words, labels: vec![0, 1], base: String::new() };
        let logits = |rows: &[&[f32]]| Answer {
            logits: Some(rows.iter().map(|row| row.to_vec()).collect()),
            ..Answer::default()
        };
        let score = |loss, accuracy| Answer {
            loss: Some(loss),
            accuracy: Some(accuracy),
            ..Answer::default()
        };
        let failed = Answer { error: Some("too large".to_string()), ..Answer::default() };
        let of = |answer: &Answer, logits: bool| {
            check(answer, &upload, EvaluateOptions { logits, ..EvaluateOptions::default() })
        };
        for (answer, with_logits) in [
            (&logits(&[&[0.0, 1.0], &[1.0, 0.0]]), true),
            (&score(0.7, 0.5), false),
            (&failed, true),
            (&failed, false),
        ] {
            assert_eq!(of(answer, with_logits), Ok(()));
        }
        for (answer, with_logits, what) in [
            (logits(&[&[0.0, 1.0]]), true, "1 rows of logits for 2 texts"),
            (logits(&[&[0.0, 1.0], &[0.0]]), true, "1 logits of text 1 for 2 label words"),
            (logits(&[&[0.0, f32::INFINITY], &[0.0, 0.0]]), true, "text 0 that is not finite"),
            (score(0.7, 0.5), true, "no logits"),
            (logits(&[&[0.0, 1.0], &[1.0, 0.0]]), false, "no loss"),
            (score(f64::NAN, 0.5), false, "NaN as its loss"),
            (score(0.7, 50.0), false, "50 as its accuracy"),
        ] {
            let error = of(&answer, with_logits).unwrap_err();
            assert!(error.contains(what), "{what}: {error}");
        }
    }
}
