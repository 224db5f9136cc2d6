//! A service of which several tunings share the uploads. To upload a text is to run the model over it, which takes
//! as long as many calls with a short prompt.

use crate::error::{Error, ErrorKind, Result};
use crate::service::BlackBox;
use crate::wire::{Answer, Description, EvaluateOptions, Upload, Uploaded};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Uploads the same texts only once, and removes them when it is dropped.
pub struct SharedUploads<'a> {
    service: &'a dyn BlackBox,
    /// By the upload's JSON.
    held: Mutex<HashMap<String, Uploaded>>,
}

impl std::fmt::Debug for SharedUploads<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedUploads").field("held", &self.lock().len()).finish_non_exhaustive()
    }
}

impl<'a> SharedUploads<'a> {
    /// Shares the uploads to `service`.
    pub fn new(service: &'a dyn BlackBox) -> Self {
        SharedUploads { service, held: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Uploaded>> {
        // A panic elsewhere leaves the map intact.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BlackBox for SharedUploads<'_> {
    fn describe(&self) -> Result<Description> {
        self.service.describe()
    }

    fn upload(&self, upload: &Upload) -> Result<Uploaded> {
        let key = serde_json::to_string(upload).map_err(Error::input)?;
        let mut held = self.lock();
        if let Some(uploaded) = held.get(&key) {
            return Ok(uploaded.clone());
        }
        let uploaded = self.service.upload(upload)?;
        held.insert(key, uploaded.clone());
        Ok(uploaded)
    }

    fn evaluate(
        &self,
        batch: &str,
        prompts: &[Vec<f32>],
        wanted: EvaluateOptions,
    ) -> Result<Vec<Answer>> {
        let result = self.service.evaluate(batch, prompts, wanted);
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unknown) {
            // The service was restarted or dropped it: the next upload is a new one.
            self.lock().retain(|_, uploaded| uploaded.batch != batch);
        }
        result
    }

    /// Does nothing: another tuning may use the texts.
    fn remove(&self, _batch: &str) -> Result<()> {
        Ok(())
    }
}

impl Drop for SharedUploads<'_> {
    fn drop(&mut self) {
        for (_, uploaded) in self.lock().drain() {
            // A batch that cannot be removed expires.
            let _ = self.service.remove(&uploaded.batch);
        }
    }
}
