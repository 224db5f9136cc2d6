//! A space with the Python objects that its choices stand for.

use crate::error::refused;
use crate::predicate::{Raised, predicate};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};
use racecars::{Domain, Scale, Structure, Value, Values};
use std::borrow::Cow;
use std::sync::Arc;

/// What Python says of one name: `(name, count or None, kind, numbers, is_log, labels, objects)`.
type Entry<'py> = (
    String,
    Option<usize>,
    String,
    Vec<Bound<'py, PyAny>>,
    bool,
    Vec<Bound<'py, PyAny>>,
    Vec<Py<PyAny>>,
);

/// A constraint that is a Python function, and its name.
type Function = (String, Py<PyAny>);

/// What pickle keeps of a space: the core's space as JSON, the objects of its choices, whether points are dicts, and
/// the functions.
type Parts = (String, Vec<Vec<Py<PyAny>>>, bool, Vec<Function>);

#[pyclass(frozen, module = "racecars._core")]
pub(crate) struct Space {
    pub(crate) core: racecars::Space,
    pub(crate) is_plain: bool,
    /// For each entry, the objects that the user gave as choices; empty for other entries.
    objects: Vec<Vec<Py<PyAny>>>,
    names: Vec<Py<PyString>>,
    /// Whether the user gave names, and so wants points as dicts.
    #[pyo3(get)]
    pub(crate) is_by_name: bool,
    functions: Vec<Function>,
    /// What a function raised.
    pub(crate) raised: Arc<Raised>,
}

#[pymethods]
impl Space {
    #[new]
    #[pyo3(signature = (
        entries, is_by_name, conditions = Vec::new(), constraints = Vec::new(), functions = Vec::new()
    ))]
    fn new(
        py: Python<'_>,
        entries: Vec<Entry<'_>>,
        is_by_name: bool,
        conditions: Vec<(String, String)>,
        constraints: Vec<String>,
        functions: Vec<Function>,
    ) -> PyResult<Self> {
        let mut builder = racecars::Space::builder();
        let mut objects = Vec::with_capacity(entries.len());
        for (name, count, kind, numbers, is_log, labels, choices) in entries {
            let condition = conditions.iter().find(|(of, _)| *of == name);
            let items = || plain_values(&name, &labels);
            builder = match (kind.as_str(), count) {
                ("permutation", _) => builder.order_of(&name, items()?),
                ("subset", _) => {
                    let sizes = numbers.iter().map(|number| number.extract::<usize>());
                    let sizes = sizes.collect::<PyResult<Vec<_>>>()?;
                    builder.subset(&name, sizes[0]..=sizes[1], items()?)
                }
                ("simplex", Some(count)) => builder.simplex(&name, count),
                (_, None) => {
                    builder.coordinate(&name, domain(&name, &kind, &numbers, is_log, &labels)?)
                }
                (_, Some(count)) => {
                    builder.array(&name, count, domain(&name, &kind, &numbers, is_log, &labels)?)
                }
            };
            if let Some((_, condition)) = condition {
                builder = builder.when(condition);
            }
            objects.push(choices);
        }
        builder = constraints.into_iter().fold(builder, |builder, text| builder.subject_to(text));
        let core = builder.build().map_err(refused)?;
        Space::with_objects(py, core, objects, is_by_name).with_functions(py, functions)
    }

    /// The number of coordinates.
    #[getter]
    fn dimension(&self) -> usize {
        self.core.dimension()
    }

    /// Says how little of the ranges satisfies the constraints, if it is little.
    #[getter]
    fn narrow_note(&self) -> Option<String> {
        self.core.narrow_note()
    }

    /// The names of the constraints that are functions.
    #[getter]
    fn functions(&self) -> Vec<&str> {
        self.core.functions().collect()
    }

    /// The names, in order.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.core.entries().iter().map(|entry| entry.name()).collect()
    }

    /// The number of points, if it is finite and fits in 64 bits.
    #[getter]
    fn cardinality(&self) -> Option<u64> {
        self.core.cardinality()
    }

    /// The space in the core's own format.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.core).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The parameters that a numeric point stands for.
    fn params<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.dict(py, &self.encode(x.as_slice()?)?)
    }

    /// The names of the coordinates, in order: those of an array have an index.
    #[getter]
    fn coordinates(&self) -> Vec<String> {
        (0..self.core.dimension()).map(|i| self.core.coordinate_name(i)).collect()
    }

    /// What each coordinate ranges over: its kind, its ends where they are numbers, whether its scale is
    /// logarithmic, and the labels of its choices.
    #[getter]
    fn ranges(&self) -> Vec<(&'static str, f64, f64, bool, Vec<String>)> {
        let range = |entry: &racecars::space::Entry| match entry.domain() {
            Domain::Real { low, high, scale } => {
                ("real", *low, *high, *scale == Scale::Log, Vec::new())
            }
            Domain::Integer { low, high, scale } => {
                ("integer", *low as f64, *high as f64, *scale == Scale::Log, Vec::new())
            }
            Domain::Grid { low, high, .. } => ("real", *low, *high, false, Vec::new()),
            Domain::Levels(values) | Domain::Categorical(values) => {
                let labels = values.iter().map(Value::to_string).collect();
                let last = values.len() as f64 - 1.0;
                ("choice", 0.0, last, false, labels)
            }
            _ => ("choice", 0.0, 1.0, false, vec!["False".into(), "True".into()]),
        };
        let entries = self.core.entries().iter();
        entries.flat_map(|entry| entry.range().map(move |_| range(entry))).collect()
    }

    /// Points of another space, one per row, as points of this one: the parameters with the same names, and those of
    /// `given`. Returns the rows that are points of this space too, and which they are.
    fn taken_over<'py>(
        &self,
        py: Python<'py>,
        other: &Space,
        x: PyReadonlyArray2<'py, f64>,
        given: &Bound<'py, PyDict>,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Vec<usize>)> {
        let is_ours = |name: &str| self.core.entries().iter().any(|entry| entry.name() == name);
        let mut added = Vec::new();
        for entry in self.core.entries() {
            let name = entry.name();
            if other.core.entries().iter().any(|entry| entry.name() == name) {
                continue;
            }
            let value = given.get_item(name)?.ok_or_else(|| {
                PyValueError::new_err(format!(
                    "from_: parameter `{name}` is new: the trials to take over do not have it. Say which value it \
                     had there, like assume={{\"{name}\": value}}"
                ))
            })?;
            added.push(self.assignment(name, &value)?);
        }
        let (mut numbers, mut rows) = (Vec::new(), Vec::new());
        for (i, row) in x.as_array().rows().into_iter().enumerate() {
            let codes = other.encode(&row.to_vec())?;
            let theirs = other.core.view(&codes).assignments().filter(|(name, _)| is_ours(name));
            let theirs = theirs.map(|(name, values)| (name.to_string(), values));
            if let Ok(codes) = self.core.encode(theirs.chain(added.iter().cloned())) {
                numbers.extend(self.numbers(&codes));
                rows.push(i);
            }
        }
        let shape = [rows.len(), self.core.dimension()];
        Ok((PyArray1::from_vec(py, numbers).reshape(shape)?, rows))
    }

    /// The numeric point of these parameters; every name must be there, and no other.
    fn x<'py>(
        &self,
        py: Python<'py>,
        params: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let codes = self.encode_dict(params)?;
        Ok(self.array(py, &codes))
    }

    fn __eq__(&self, other: &Space) -> bool {
        self.core == other.core
    }

    /// The space of these parts, which pickle keeps.
    #[staticmethod]
    fn from_parts(
        py: Python<'_>,
        json: &str,
        objects: Vec<Vec<Py<PyAny>>>,
        is_by_name: bool,
        functions: Vec<Function>,
    ) -> PyResult<Self> {
        let core: racecars::Space =
            serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))?;
        // The objects of an entry are those of its choices, or there are none.
        let counts = core.entries().iter().map(|entry| choices(entry).len());
        if !counts.eq(objects.iter().map(Vec::len)) {
            return Err(PyValueError::new_err("the space has not one object per choice"));
        }
        Space::with_objects(py, core, objects, is_by_name).with_functions(py, functions)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        let objects = self.objects.iter().map(|entry| copies_of(py, entry)).collect();
        let make = py.get_type::<Space>().getattr("from_parts")?;
        let functions = copies(py, &self.functions);
        Ok((make, (self.to_json()?, objects, self.is_by_name, functions)))
    }
}

impl Space {
    pub(crate) fn with_objects(
        py: Python<'_>,
        core: racecars::Space,
        objects: Vec<Vec<Py<PyAny>>>,
        is_by_name: bool,
    ) -> Self {
        let names = core.entries().iter();
        let names = names.map(|entry| PyString::intern(py, entry.name()).unbind()).collect();
        let (functions, raised) = (Vec::new(), Arc::default());
        Space { is_plain: core.is_plain(), core, objects, names, is_by_name, functions, raised }
    }

    /// This space with functions that all points satisfy.
    fn with_functions(self, py: Python<'_>, functions: Vec<Function>) -> PyResult<Self> {
        if functions.is_empty() {
            return Ok(self);
        }
        let raised: Arc<Raised> = Arc::default();
        let objects = self.objects.iter().map(|entry| copies_of(py, entry)).collect();
        let (mut core, is_by_name, space) = (self.core.clone(), self.is_by_name, Arc::new(self));
        for (name, function) in copies(py, &functions) {
            let holds = predicate(name.clone(), function, space.clone(), raised.clone());
            let constrained = core.with_function(&name, holds);
            raised.take()?;
            core = constrained.map_err(refused)?;
        }
        Ok(Space { functions, raised, ..Space::with_objects(py, core, objects, is_by_name) })
    }

    /// Raises what a function raised since this was called last.
    pub(crate) fn check_functions(&self) -> PyResult<()> {
        if self.functions.is_empty() { Ok(()) } else { self.raised.take() }
    }

    /// An encoded point as Python functions take it: a dict where there are names, or an array.
    pub(crate) fn point<'py>(&self, py: Python<'py>, codes: &[f64]) -> PyResult<Bound<'py, PyAny>> {
        if self.is_by_name {
            Ok(self.dict(py, codes)?.into_any())
        } else {
            Ok(self.array(py, codes).into_any())
        }
    }

    /// A space read from a save, whose choices stand for themselves.
    pub(crate) fn bare(py: Python<'_>, core: racecars::Space) -> PyResult<Self> {
        let objects = core.entries().iter().map(|entry| {
            choices(entry).iter().map(|value| object(py, value)).collect::<PyResult<Vec<_>>>()
        });
        let objects = objects.collect::<PyResult<Vec<_>>>()?;
        // Bounds are arrays called x, x3, ...
        let is_of_bounds = |entry: &racecars::space::Entry| {
            let number = entry.name().strip_prefix('x');
            let number = number.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
            number && entry.array_len().is_some()
        };
        let is_by_name = !core.entries().iter().all(is_of_bounds);
        Ok(Space::with_objects(py, core, objects, is_by_name))
    }

    /// The numeric form of an encoded point as a new array.
    pub(crate) fn array<'py>(&self, py: Python<'py>, codes: &[f64]) -> Bound<'py, PyArray1<f64>> {
        if self.is_plain {
            return PyArray1::from_slice(py, codes);
        }
        // Copying is cheaper than a Python object that owns the vector.
        PyArray1::from_slice(py, &self.numbers(codes))
    }

    /// The numeric form of an encoded point.
    pub(crate) fn numbers(&self, codes: &[f64]) -> Vec<f64> {
        let mut numbers = vec![0.0; codes.len()];
        self.core.to_numbers(codes, &mut numbers);
        numbers
    }

    pub(crate) fn encode(&self, numbers: &[f64]) -> PyResult<Vec<f64>> {
        self.checked(self.core.from_numbers(numbers))
    }

    fn checked(&self, encoded: racecars::Result<Vec<f64>>) -> PyResult<Vec<f64>> {
        self.check_functions()?;
        encoded.map_err(refused)
    }

    /// An encoded point as a dict of parameters.
    pub(crate) fn dict<'py>(&self, py: Python<'py>, codes: &[f64]) -> PyResult<Bound<'py, PyDict>> {
        let params = PyDict::new(py);
        let numbers = self.numbers(codes);
        let active = if self.core.has_rules() { self.core.active(codes) } else { Vec::new() };
        for (i, entry) in self.core.entries().iter().enumerate() {
            // Inactive parameters are not there.
            if active.get(i) == Some(&false) {
                continue;
            }
            let (codes, numbers) = (&codes[entry.range()], &numbers[entry.range()]);
            if entry.is_subset() {
                let items = self.objects[i].iter().zip(codes).filter(|(_, code)| **code != 0.0);
                let items = items.map(|(item, _)| item.bind(py));
                params.set_item(&self.names[i], PyList::new(py, items.collect::<Vec<_>>())?)?;
                continue;
            }
            let object = |&code: &f64| self.objects[i][code as usize].bind(py);
            let name = &self.names[i];
            let is_array = entry.array_len().is_some();
            match entry.domain() {
                Domain::Integer { .. } if is_array => {
                    let integers = numbers.iter().map(|&x| x as i64);
                    params.set_item(name, PyArray1::from_iter(py, integers))?;
                }
                Domain::Integer { .. } => params.set_item(name, numbers[0] as i64)?,
                Domain::Boolean if is_array => {
                    params.set_item(name, PyList::new(py, codes.iter().map(|&x| x >= 0.5))?)?;
                }
                Domain::Boolean => params.set_item(name, codes[0] >= 0.5)?,
                Domain::Levels(_) | Domain::Categorical(_) if is_array => {
                    params.set_item(name, PyList::new(py, codes.iter().map(object))?)?;
                }
                Domain::Levels(_) | Domain::Categorical(_) => {
                    params.set_item(name, object(&codes[0]))?;
                }
                _ if is_array => params.set_item(name, PyArray1::from_slice(py, numbers))?,
                _ => params.set_item(name, numbers[0])?,
            }
        }
        Ok(params)
    }

    /// Encodes a point: a dict of parameters, or an array of numbers.
    pub(crate) fn encode_any(&self, point: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
        match point.cast::<PyDict>() {
            Ok(params) => self.encode_dict(params),
            Err(_) => self.encode(&slice(&point.extract::<PyReadonlyArray1<'_, f64>>()?)?),
        }
    }

    /// Encodes a start point. Of a dict, the parameters that are missing are in the middle of their range, or the
    /// first of unordered choices.
    pub(crate) fn encode_start(&self, point: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
        let Ok(params) = point.cast::<PyDict>() else { return self.encode_any(point) };
        let given = |name: &str| params.contains(name).unwrap_or(false);
        let missing = self.core.entries().iter().filter(|entry| !given(entry.name()));
        let missing = missing.map(|entry| (entry.name().to_string(), self.core.middle(entry)));
        let mut assignments: Vec<_> = missing.collect();
        for (name, given) in params.iter() {
            assignments.push(self.assignment(&name.extract::<String>()?, &given)?);
        }
        self.checked(self.core.encode(assignments))
    }

    /// Encodes a dict of parameters.
    pub(crate) fn encode_dict(&self, params: &Bound<'_, PyDict>) -> PyResult<Vec<f64>> {
        let mut assignments = Vec::with_capacity(params.len());
        for (name, given) in params.iter() {
            assignments.push(self.assignment(&name.extract::<String>()?, &given)?);
        }
        self.checked(self.core.encode(assignments))
    }

    /// A parameter and its value, as the core knows them.
    fn assignment(&self, name: &str, given: &Bound<'_, PyAny>) -> PyResult<(String, Values)> {
        let place = (self.core.entries().iter()).position(|entry| entry.name() == name);
        let is_array = place.is_some_and(|i| self.core.entries()[i].array_len().is_some());
        let values = if is_array {
            let one = |item: PyResult<Bound<'_, PyAny>>| self.label(place, name, &item?);
            Values::Many(given.try_iter()?.map(one).collect::<PyResult<_>>()?)
        } else {
            Values::One(self.label(place, name, given)?)
        };
        Ok((name.to_string(), values))
    }

    /// What the core knows a Python value as.
    fn label(&self, place: Option<usize>, name: &str, given: &Bound<'_, PyAny>) -> PyResult<Value> {
        if let Some(i) = place
            && let values = choices(&self.core.entries()[i])
            && !values.is_empty()
        {
            for (object, value) in self.objects[i].iter().zip(values) {
                let object = object.bind(given.py());
                if object.is(given) || object.eq(given).unwrap_or(false) {
                    return Ok(value.clone());
                }
            }
            // The core says what is allowed.
            return Ok(plain_value(given).unwrap_or_else(|| Value::Text(given.to_string())));
        }
        plain_value(given).ok_or_else(|| {
            PyTypeError::new_err(format!(
                "coordinate `{name}`: {given} is not a number, a word, True or False"
            ))
        })
    }
}

fn copies_of(py: Python<'_>, objects: &[Py<PyAny>]) -> Vec<Py<PyAny>> {
    objects.iter().map(|object| object.clone_ref(py)).collect()
}

fn copies(py: Python<'_>, functions: &[Function]) -> Vec<Function> {
    functions.iter().map(|(name, function)| (name.clone(), function.clone_ref(py))).collect()
}

/// The numbers of an array, copied only where they are not contiguous.
pub(crate) fn slice<'a>(array: &'a PyReadonlyArray1<'_, f64>) -> PyResult<Cow<'a, [f64]>> {
    Ok(match array.as_slice() {
        Ok(numbers) => numbers.into(),
        Err(_) => array.as_array().to_vec().into(),
    })
}

/// A Python number, word or truth value.
fn plain_value(given: &Bound<'_, PyAny>) -> Option<Value> {
    if let Ok(flag) = given.cast::<PyBool>() {
        Some(Value::Boolean(flag.is_true()))
    } else if let Ok(text) = given.extract::<String>() {
        Some(Value::Text(text))
    } else if let Ok(integer) = given.extract::<i64>() {
        Some(Value::Integer(integer))
    } else {
        given.extract::<f64>().ok().map(Value::Real)
    }
}

fn plain_values(name: &str, labels: &[Bound<'_, PyAny>]) -> PyResult<Vec<Value>> {
    let value = |label: &Bound<'_, PyAny>| {
        plain_value(label).ok_or_else(|| {
            PyTypeError::new_err(format!("coordinate `{name}`: {label} is not a label"))
        })
    };
    labels.iter().map(value).collect()
}

/// The choices of an entry, or the items of a subset, which Python has objects for.
fn choices(entry: &racecars::space::Entry) -> &[Value] {
    match (entry.structure(), entry.domain()) {
        (Some(Structure::Subset { items, .. }), _) => items,
        (_, Domain::Levels(values) | Domain::Categorical(values)) => values,
        _ => &[],
    }
}

pub(crate) fn object(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    Ok(match value {
        Value::Boolean(flag) => PyBool::new(py, *flag).to_owned().into_any().unbind(),
        Value::Integer(integer) => PyInt::new(py, *integer).into_any().unbind(),
        Value::Real(real) => PyFloat::new(py, *real).into_any().unbind(),
        Value::Text(text) => PyString::new(py, text).into_any().unbind(),
    })
}

fn domain(
    name: &str,
    kind: &str,
    numbers: &[Bound<'_, PyAny>],
    is_log: bool,
    labels: &[Bound<'_, PyAny>],
) -> PyResult<Domain> {
    let scale = if is_log { Scale::Log } else { Scale::Linear };
    let wrong = |what: &str, given: String| {
        PyTypeError::new_err(format!("coordinate `{name}`: {given} is not {what}"))
    };
    let real = |i: usize| {
        let number = &numbers[i];
        number.extract::<f64>().map_err(|_| wrong("a number", number.to_string()))
    };
    let integer = |i: usize| {
        let number = &numbers[i];
        number.extract::<i64>().map_err(|_| wrong("an integer of 64 bits", number.to_string()))
    };
    let values = || plain_values(name, labels);
    Ok(match kind {
        "real" => Domain::Real { low: real(0)?, high: real(1)?, scale },
        "integer" => Domain::Integer { low: integer(0)?, high: integer(1)?, scale },
        "grid" => Domain::Grid { low: real(0)?, high: real(1)?, step: real(2)? },
        "levels" => Domain::Levels(values()?),
        "categorical" => Domain::Categorical(values()?),
        "boolean" => Domain::Boolean,
        other => return Err(PyValueError::new_err(format!("coordinate `{name}`: kind {other}"))),
    })
}
