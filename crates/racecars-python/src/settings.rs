//! An algorithm from its name and keyword options.

use crate::error::refused;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use racecars::{Algorithm, Noise, Replacing, Restarts};

/// The algorithm of this name with these options set. Options of `auto`, which has only `noise` of its own,
/// are those of RACE-CARS, which then has the whole budget.
pub(crate) fn algorithm(method: &str, options: &Bound<'_, PyDict>) -> PyResult<Algorithm> {
    let means_race_cars = method == "auto" && !options.is_empty() && !options.contains("noise")?;
    let method = if means_race_cars { "race-cars" } else { method };
    let mut algorithm: Algorithm = method.parse().map_err(refused)?;
    let known = known(&algorithm);
    for (key, value) in options.iter() {
        let key: String = key.extract()?;
        let value = Setting { method, key: &key, value };
        if !set(&mut algorithm, &value)? {
            let text = match known.len() {
                0 => format!("method `{method}` has no option `{key}`, nor any other"),
                _ => {
                    format!("method `{method}` has no option `{key}`; it has {}", known.join(", "))
                }
            };
            return Err(PyTypeError::new_err(text));
        }
    }
    Ok(algorithm)
}

/// The names of an algorithm's options.
fn known(algorithm: &Algorithm) -> &'static [&'static str] {
    match algorithm {
        Algorithm::Auto(_) => &["noise"],
        Algorithm::RaceCars(..) => &[
            "training_size",
            "positive_size",
            "exploitation",
            "uncertain",
            "replacing",
            "repeats",
            "gamma",
            "rho",
        ],
        Algorithm::Sracos(_) | Algorithm::Racos(_) => {
            &["training_size", "positive_size", "exploitation", "uncertain", "replacing", "repeats"]
        }
        Algorithm::CmaEs(_) => &["population", "sigma", "restarts"],
        Algorithm::DifferentialEvolution(_) => &["population", "weight", "crossover"],
        Algorithm::ZoAdam(_) => &["learning_rate", "smoothing", "directions", "beta1", "beta2"],
        _ => &[],
    }
}

/// Sets one option; false if the algorithm does not have it.
fn set(algorithm: &mut Algorithm, value: &Setting<'_, '_>) -> PyResult<bool> {
    if let Algorithm::RaceCars(_, shrinking) = algorithm {
        match value.key {
            "gamma" => shrinking.gamma = value.number()?,
            "rho" => shrinking.rho = value.number()?,
            _ => {}
        }
        if matches!(value.key, "gamma" | "rho") {
            return Ok(true);
        }
    }
    match algorithm {
        Algorithm::Auto(noise) if value.key == "noise" => {
            *noise = value.one_of(&[
                ("detect", Noise::Detect),
                ("yes", Noise::Yes),
                ("no", Noise::No),
            ])?;
        }
        Algorithm::RaceCars(settings, _)
        | Algorithm::Sracos(settings)
        | Algorithm::Racos(settings) => match value.key {
            "training_size" => settings.training_size = value.count()?,
            "positive_size" => settings.positive_size = value.count()?,
            "exploitation" => settings.exploitation = value.number()?,
            "uncertain" => settings.uncertain = value.count()?,
            "repeats" => settings.repeats = value.flag()?,
            "replacing" => {
                settings.replacing = value.one_of(&[
                    ("worst", Replacing::Worst),
                    ("random", Replacing::Random),
                    ("farthest", Replacing::Farthest),
                ])?;
            }
            _ => return Ok(false),
        },
        Algorithm::CmaEs(settings) => match value.key {
            "population" => settings.population = value.count()?,
            "sigma" => settings.sigma = value.number()?,
            "restarts" => {
                settings.restarts = value.one_of(&[
                    ("none", Restarts::None),
                    ("ipop", Restarts::Ipop),
                    ("bipop", Restarts::Bipop),
                ])?;
            }
            _ => return Ok(false),
        },
        Algorithm::DifferentialEvolution(settings) => match value.key {
            "population" => settings.population = value.count()?,
            "crossover" => settings.crossover = value.number()?,
            "weight" => settings.weight = value.range()?,
            _ => return Ok(false),
        },
        Algorithm::ZoAdam(settings) => match value.key {
            "learning_rate" => settings.learning_rate = value.number()?,
            "smoothing" => settings.smoothing = value.number()?,
            "directions" => settings.directions = value.count()?,
            "beta1" => settings.beta1 = value.number()?,
            "beta2" => settings.beta2 = value.number()?,
            _ => return Ok(false),
        },
        _ => return Ok(false),
    }
    Ok(true)
}

/// One option as it was given. `None` leaves it to be derived.
struct Setting<'a, 'py> {
    method: &'a str,
    key: &'a str,
    value: Bound<'py, PyAny>,
}

impl Setting<'_, '_> {
    fn number(&self) -> PyResult<Option<f64>> {
        self.value.extract().map_err(|_| self.refuse("a number"))
    }

    fn count(&self) -> PyResult<Option<usize>> {
        self.value.extract().map_err(|_| self.refuse("a whole number"))
    }

    fn flag(&self) -> PyResult<bool> {
        self.value.extract().map_err(|_| self.refuse("True or False"))
    }

    /// A pair, or a number for a range of no length.
    fn range(&self) -> PyResult<Option<(f64, f64)>> {
        if let Ok(Some(number)) = self.number() {
            return Ok(Some((number, number)));
        }
        self.value.extract().map_err(|_| self.refuse("a number or a pair of numbers"))
    }

    fn one_of<T: Copy>(&self, known: &[(&str, T)]) -> PyResult<T> {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let given: String = self.value.extract().map_err(|_| self.refuse("a word"))?;
        (known.iter().find(|(name, _)| *name == given))
            .map(|(_, value)| *value)
            .ok_or_else(|| self.refuse(&format!("one of {}", names.join(", "))))
    }

    fn refuse(&self, allowed: &str) -> PyErr {
        let Setting { method, key, value } = self;
        PyValueError::new_err(format!("option `{key}` of `{method}` is {value}, not {allowed}"))
    }
}
