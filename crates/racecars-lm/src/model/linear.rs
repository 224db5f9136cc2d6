//! Matrix products with weights that stay.

use crate::error::Result;
use candle_core::{Device, Tensor};

/// A linear map without bias.
pub(super) struct Linear {
    /// The weight, transposed: inputs times outputs.
    weight: Tensor,
    inputs: usize,
}

impl Linear {
    /// From a weight of outputs times inputs.
    pub(super) fn new(weight: &Tensor) -> Result<Self> {
        let (_, inputs) = weight.dims2()?;
        Ok(Linear { weight: weight.t()?.contiguous()?, inputs })
    }

    /// The outputs for packed rows of inputs.
    pub(super) fn apply(&self, rows: Vec<f32>) -> Result<Vec<f32>> {
        let shape = (rows.len() / self.inputs, self.inputs);
        let x = Tensor::from_vec(rows, shape, &Device::Cpu)?;
        Ok(x.matmul(&self.weight)?.flatten_all()?.to_vec1()?)
    }
}
