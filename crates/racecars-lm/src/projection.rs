//! The random projection from the few searched coordinates z to the many numbers of a prompt, p = A z
//! (Sun et al. 2022, Section 3.2).

use crate::error::{Error, Result};
use crate::model::EmbeddingStatistics;
use racecars::random::Random;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The distribution of the entries of A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Draw {
    /// Normal with mean 0 and standard deviation alpha * std / (sqrt(d) * sigma), where std is that of the
    /// model's embedding table. If z has standard deviation sigma / alpha, p has that of the table.
    #[default]
    Normal,
    /// Uniform within ± 1 / sqrt(d).
    Uniform,
}

impl FromStr for Draw {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "normal" => Ok(Draw::Normal),
            "uniform" => Ok(Draw::Uniform),
            _ => Err(Error::input(format!("projection `{name}` is not one of normal, uniform"))),
        }
    }
}

/// The settings of a projection; it is a function of them and the model's [`EmbeddingStatistics`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectionSettings {
    /// The distribution of the entries.
    pub draw: Draw,
    /// The scale alpha.
    pub alpha: f64,
    /// The expected spread of z.
    pub sigma: f64,
    /// The seed of the entries.
    pub seed: u64,
}

impl ProjectionSettings {
    /// Checks the ranges of the settings.
    pub(crate) fn check(&self) -> Result<()> {
        for (name, x) in [("alpha", self.alpha), ("sigma", self.sigma)] {
            if !(x.is_finite() && x > 0.0) {
                return Err(Error::input(format!("{name} {x} is not a positive number")));
            }
        }
        Ok(())
    }
}

/// A fixed random matrix.
pub struct Projection {
    /// A row per number of the prompt.
    rows: Vec<f32>,
    dim: usize,
}

impl std::fmt::Debug for Projection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Projection").field("dim", &self.dim).finish_non_exhaustive()
    }
}

/// The random stream of the seed for the entries.
const STREAM: u64 = 0x70_72_6f_6a;
/// The maximum number of entries: 1 GiB.
const MAX_ENTRIES: usize = 1 << 28;

impl Projection {
    /// A projection from `dim` coordinates to `outputs`.
    pub fn new(
        settings: &ProjectionSettings,
        embedding: EmbeddingStatistics,
        dim: usize,
        outputs: usize,
    ) -> Result<Self> {
        settings.check()?;
        let ProjectionSettings { draw, alpha, sigma, seed } = *settings;
        match dim.checked_mul(outputs) {
            Some(1..=MAX_ENTRIES) => {}
            _ => {
                return Err(Error::input(format!(
                    "a projection from {dim} coordinates to {outputs} numbers does not have between 1 and {MAX_ENTRIES} \
                     entries: choose fewer coordinates (dim) or tokens (prompt-tokens)"
                )));
            }
        }
        let mut random = Random::stream(seed, STREAM);
        let root = (dim as f64).sqrt();
        let scale = alpha * embedding.std / (root * sigma);
        let entry = |_| match draw {
            Draw::Normal => (scale * random.normal()) as f32,
            Draw::Uniform => random.between(-1.0 / root, 1.0 / root) as f32,
        };
        Ok(Projection { rows: (0..dim * outputs).map(entry).collect(), dim })
    }

    /// A z.
    pub fn apply(&self, z: &[f64]) -> Vec<f32> {
        debug_assert_eq!(z.len(), self.dim);
        let row = |row: &[f32]| -> f32 {
            row.iter().zip(z).map(|(a, z)| f64::from(*a) * z).sum::<f64>() as f32
        };
        self.rows.par_chunks_exact(self.dim).map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(draw: Draw) -> ProjectionSettings {
        ProjectionSettings { draw, alpha: 2.0, sigma: 4.0, seed: 3 }
    }

    #[test]
    fn a_normal_projection_spreads_prompts_as_the_table_is_spread() {
        let table = EmbeddingStatistics { mean: 0.3, std: 0.12 };
        let projection = Projection::new(&settings(Draw::Normal), table, 50, 20_000).unwrap();
        // z has standard deviation sigma / alpha.
        let mut random = Random::new(1);
        let z: Vec<f64> = (0..50).map(|_| 2.0 * random.normal()).collect();
        let size = z.iter().map(|z| z * z).sum::<f64>() / 50.0 / 4.0;
        let p = projection.apply(&z);
        let square = p.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / p.len() as f64;
        assert!(((square / size).sqrt() / 0.12 - 1.0).abs() < 0.03, "{square} {size}");
        assert_eq!(
            p,
            Projection::new(&settings(Draw::Normal), table, 50, 20_000).unwrap().apply(&z)
        );
    }

    #[test]
    fn a_uniform_projection_is_bounded_and_linear() {
        let table = EmbeddingStatistics { mean: 0.0, std: 1.0 };
        let projection = Projection::new(&settings(Draw::Uniform), table, 16, 1000).unwrap();
        assert!(projection.rows.iter().all(|a| a.abs() <= 0.25));
        assert!(projection.rows.iter().any(|a| a.abs() > 0.24));
        let unit = |i: usize| (0..16).map(|j| f64::from(u8::from(i == j))).collect::<Vec<_>>();
        let (a, b) = (projection.apply(&unit(2)), projection.apply(&unit(5)));
        let both: Vec<f64> = unit(2).iter().zip(unit(5)).map(|(x, y)| x - 2.0 * y).collect();
        for ((a, b), sum) in a.iter().zip(b).zip(projection.apply(&both)) {
            assert!((a - 2.0 * b - sum).abs() < 1e-6);
        }
    }

    #[test]
    fn bad_settings_are_refused() {
        let table = EmbeddingStatistics { mean: 0.0, std: 1.0 };
        let bad = ProjectionSettings { alpha: 0.0, ..settings(Draw::Normal) };
        assert!(Projection::new(&bad, table, 5, 5).is_err());
        assert!(Projection::new(&settings(Draw::Normal), table, 0, 5).is_err());
        assert!(Projection::new(&settings(Draw::Normal), table, usize::MAX, 5).is_err());
    }
}
