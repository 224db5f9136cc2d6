//! Search spaces: coordinates, points, regions, and their encoding. No other module encodes or decodes.
//!
//! A [`Space`] is a list of named entries. Each is a [`Domain`] or an array of one domain. Optimizers
//! see a point as a flat slice of `f64`, one number per coordinate, described by its [`Axis`]. Users see
//! a [`Point`], which gives typed access by name.

mod axis;
mod builder;
mod domain;
mod numbers;
mod point;
mod region;
mod rules;
mod seen;
mod spec;
mod value;

pub(crate) use axis::draw_other_value;
pub use axis::{Axis, Interval};
pub use builder::SpaceBuilder;
pub use domain::{Domain, Scale};
pub use point::Point;
pub(crate) use region::SearchRegion;
use rules::Predicate;
use rules::Rules;
pub(crate) use rules::StepSize;
pub use rules::Structure;
pub(crate) use seen::Seen;
pub use value::{Value, Values};

use crate::error::{Error, Result, ensure};
use crate::random::{Random, mix};
use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The largest dimension of a space. A line in a file can ask for it, so such a point must not take more
/// memory than any machine has: it takes 128 MB.
pub const MAX_DIMENSION: usize = 1 << 24;

/// A search space: named coordinates and arrays of coordinates. Cheap to clone.
///
/// Built in code:
///
/// ```
/// use racecars::Space;
///
/// let space = Space::builder()
///     .log_real("rate", 1e-5, 1e-1)
///     .integer("layers", 1, 8)
///     .categorical("activation", ["relu", "tanh"])
///     .boolean("bias")
///     .reals("w", 500, -1.0, 1.0)
///     .build()?;
/// assert_eq!(space.dimension(), 504);
/// # Ok::<(), racecars::Error>(())
/// ```
///
/// or read from JSON or TOML through serde:
///
/// ```
/// use racecars::Space;
///
/// let space: Space = toml::from_str(r#"
///     [[coordinates]]
///     name = "rate"
///     type = "real"
///     low = 1e-5
///     high = 1e-1
///     scale = "log"
///
///     [[coordinates]]
///     name = "w"
///     type = "integer"
///     low = -10
///     high = 10
///     count = 500
///
///     [[coordinates]]
///     name = "activation"
///     type = "categorical"
///     choices = ["relu", "tanh"]
/// "#)?;
/// assert_eq!(space.dimension(), 502);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone)]
pub struct Space {
    inner: Arc<SpaceData>,
}

struct SpaceData {
    entries: Vec<Entry>,
    dimension: usize,
    /// The index of each coordinate's entry; empty if there is only one entry.
    entry_of: Vec<u32>,
    by_name: HashMap<String, usize>,
    cardinality: Cardinality,
    /// The factor of each coordinate in a point's key: see [`Space::key`]. Empty in continuous spaces.
    key_weights: Vec<u64>,
    /// The indices of the continuous coordinates, if there are others as well.
    continuous: Vec<u32>,
    is_continuous: bool,
    fingerprint: u64,
    /// Conditions, constraints and structures, if there are any.
    rules: Option<Rules>,
    /// With rules, the keys of the points that satisfy them, in ascending order, if the box is small.
    admitted: Option<Vec<u64>>,
}

/// The largest number of points of a box that are counted one by one.
const MAX_COUNTED: u64 = 1 << 18;
/// The same, where constraints are functions, which may be slow.
const MAX_COUNTED_BY_FUNCTIONS: u64 = 1 << 13;

/// A named coordinate of a space, or a named array of coordinates.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    name: String,
    domain: Domain,
    axis: Axis,
    offset: usize,
    /// `None` for a single coordinate, which differs from an array of length 1.
    count: Option<usize>,
    /// Whether the numeric form of the values is their position in the domain.
    is_by_position: bool,
    /// When this entry is active; always if `None`.
    condition: Option<String>,
    /// What the coordinates of an array are together.
    structure: Option<Structure>,
}

impl Entry {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The values that each coordinate can have.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The array's length, or `None` for a single coordinate.
    pub fn array_len(&self) -> Option<usize> {
        self.count
    }

    /// The condition under which this entry is active; `None` if it always is.
    pub fn condition(&self) -> Option<&str> {
        self.condition.as_deref()
    }

    /// What the coordinates of this array are together; `None` if they are independent.
    pub fn structure(&self) -> Option<&Structure> {
        self.structure.as_ref()
    }

    /// Whether this is a selection of items: its values are some of them, not one per coordinate.
    pub fn is_subset(&self) -> bool {
        matches!(self.structure, Some(Structure::Subset { .. }))
    }

    /// The indices of this entry's coordinates in an encoded point.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.offset..self.offset + self.count.unwrap_or(1)
    }
}

impl Entry {
    /// The values of this entry in an encoded point.
    fn decode(&self, point: &[f64]) -> Values {
        self.decode_codes(&point[self.range()])
    }

    /// The values of this entry's codes.
    fn decode_codes(&self, codes: &[f64]) -> Values {
        let decode = |&code: &f64| self.domain.decode(code);
        match (&self.structure, self.count) {
            (Some(Structure::Subset { items, .. }), _) => {
                let selected = items.iter().zip(codes).filter(|(_, code)| **code != 0.0);
                Values::Many(selected.map(|(item, _)| item.clone()).collect())
            }
            (_, None) => Values::One(decode(&codes[0])),
            (_, Some(_)) => Values::Many(codes.iter().map(decode).collect()),
        }
    }

    /// Writes the codes of these values, one per coordinate.
    pub fn encode(&self, values: &Values, codes: &mut [f64]) -> Result<()> {
        self.write_codes(values, codes).map_err(|what| Error::point(format!("coordinate {what}")))
    }

    fn write_codes(&self, values: &Values, codes: &mut [f64]) -> Result<(), String> {
        let Entry { name, domain, count, structure, .. } = self;
        if let (Some(Structure::Subset { items, .. }), Values::Many(values)) = (structure, values) {
            codes.fill(0.0);
            for value in values {
                let is_item = |item: &Value| item.identity() == value.identity();
                let place = items.iter().position(is_item);
                let place = place.ok_or_else(|| format!("`{name}`: {value} is not an item"))?;
                if std::mem::replace(&mut codes[place], 1.0) != 0.0 {
                    return Err(format!("`{name}`: {value} is given twice"));
                }
            }
            return Ok(());
        }
        let values = match (values, count) {
            (Values::One(value), None) => std::slice::from_ref(value),
            (Values::Many(values), Some(count)) if values.len() == *count => values,
            (given, count) => {
                let given = match given {
                    Values::One(_) => "one value".to_string(),
                    Values::Many(values) => format!("{} values", values.len()),
                };
                let wanted = count.map_or("one value".into(), |n| format!("an array of {n}"));
                return Err(format!("`{name}` takes {wanted}, not {given}"));
            }
        };
        for (i, (code, value)) in codes.iter_mut().zip(values).enumerate() {
            *code = domain.encode(value).map_err(|what| match count {
                Some(_) => format!("`{name}[{i}]`: {what}"),
                None => format!("`{name}`: {what}"),
            })?;
        }
        Ok(())
    }
}

/// The number of points of a space.
enum Cardinality {
    /// At least one coordinate is continuous.
    Infinite,
    /// This many points.
    Counted(u64),
    /// Discrete, with more points than fit in 64 bits.
    Countless,
}

impl Space {
    /// A builder of a space.
    pub fn builder() -> SpaceBuilder {
        SpaceBuilder::default()
    }

    /// `dimension` reals named `x`, each from `low` to `high`.
    pub fn cube(dimension: usize, low: f64, high: f64) -> Result<Space> {
        Space::builder().reals("x", dimension, low, high).build()
    }

    fn from_entries(
        entries: Vec<Entry>,
        constraints: &[String],
        predicates: &[Predicate],
    ) -> Result<Space> {
        let rules = Rules::new(&entries, constraints, predicates)?;
        let dimension = entries.last().map_or(0, |last| last.range().end);
        let mut entry_of = Vec::new();
        if entries.len() > 1 {
            entry_of.reserve_exact(dimension);
            for (i, entry) in entries.iter().enumerate() {
                entry_of.extend(std::iter::repeat_n(i as u32, entry.range().len()));
            }
        }
        let by_name =
            (entries.iter().enumerate()).map(|(i, entry)| (entry.name.clone(), i)).collect();
        let is_real = |entry: &&Entry| matches!(entry.axis, Axis::Continuous { .. });
        let is_continuous = entries.iter().all(|entry| is_real(&entry));
        let (mut key_weights, mut continuous) = (Vec::new(), Vec::new());
        let cardinality = if is_continuous {
            Cardinality::Infinite
        } else {
            continuous
                .extend(entries.iter().filter(is_real).flat_map(Entry::range).map(|i| i as u32));
            key_weights.reserve_exact(dimension);
            Cardinality::of(&entries, dimension, &mut key_weights)
        };
        let mut hasher = DefaultHasher::new();
        format!("{entries:?}{constraints:?}").hash(&mut hasher);
        predicates.iter().for_each(|predicate| predicate.name().hash(&mut hasher));
        let fingerprint = hasher.finish();
        let mut space = Space {
            inner: Arc::new(SpaceData {
                entries,
                dimension,
                entry_of,
                by_name,
                cardinality,
                key_weights,
                continuous,
                is_continuous,
                fingerprint,
                rules,
                admitted: None,
            }),
        };
        let admitted = space.count_admitted();
        if let Some(inner) = Arc::get_mut(&mut space.inner) {
            inner.admitted = admitted;
        }
        Ok(space)
    }

    /// The keys of the points that satisfy the rules, if there are rules and the box is small.
    fn count_admitted(&self) -> Option<Vec<u64>> {
        let rules = self.inner.rules.as_ref()?;
        let has_functions = !rules.predicates().is_empty();
        let limit = if has_functions { MAX_COUNTED_BY_FUNCTIONS } else { MAX_COUNTED };
        let points = self.box_cardinality().filter(|points| *points <= limit)?;
        let mut point = vec![0.0; self.dimension()];
        let is_admitted = |key: &u64| {
            self.point_of_key(*key, &mut point);
            rules.admits(self.entries(), &point)
        };
        Some((0..points).filter(is_admitted).collect())
    }

    /// A hash of the space, for comparisons within one process.
    #[inline]
    pub(crate) fn fingerprint(&self) -> u64 {
        self.inner.fingerprint
    }

    /// The number of coordinates.
    #[inline]
    pub fn dimension(&self) -> usize {
        self.inner.dimension
    }

    /// The entries, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.inner.entries
    }

    /// The entry of this name.
    pub fn entry(&self, name: &str) -> Result<&Entry> {
        match self.inner.by_name.get(name) {
            Some(&i) => Ok(&self.inner.entries[i]),
            None => {
                let known: Vec<&str> = self.entries().iter().take(20).map(Entry::name).collect();
                Err(Error::point(format!(
                    "no coordinate is named `{name}`; the space has {}{}",
                    known.join(", "),
                    if self.entries().len() > known.len() { ", ..." } else { "" }
                )))
            }
        }
    }

    /// The kind and extent of coordinate `index` of an encoded point.
    #[inline]
    pub fn axis(&self, index: usize) -> Axis {
        self.entry_at(index).axis
    }

    /// The axes of the entries, each with the indices of its coordinates.
    #[inline]
    pub(crate) fn axes(&self) -> impl Iterator<Item = (std::ops::Range<usize>, Axis)> {
        self.entries().iter().map(|entry| (entry.range(), entry.axis))
    }

    /// The name of coordinate `index`. Coordinates of an array have their position in brackets, those of a
    /// selection the item that they stand for.
    pub fn coordinate_name(&self, index: usize) -> String {
        let entry = self.entry_at(index);
        let place = index - entry.offset;
        match (&entry.structure, entry.count) {
            (_, None) => entry.name.clone(),
            (Some(Structure::Subset { items, .. }), _) => {
                format!("{}[{}]", entry.name, items[place])
            }
            (_, Some(_)) => format!("{}[{place}]", entry.name),
        }
    }

    /// Decodes the value of coordinate `index`.
    ///
    /// ```
    /// use racecars::{Space, Value};
    ///
    /// let space = Space::builder().integer("n", 5, 9).categorical("mode", ["a", "b"]).build()?;
    /// assert_eq!(space.decode_coordinate(0, 2.0), Value::from(7));
    /// assert_eq!(space.encode_coordinate(1, &Value::from("b"))?, 1.0);
    /// # Ok::<(), racecars::Error>(())
    /// ```
    pub fn decode_coordinate(&self, index: usize, code: f64) -> Value {
        self.entry_at(index).domain.decode(code)
    }

    /// Encodes a value of coordinate `index`.
    pub fn encode_coordinate(&self, index: usize, value: &Value) -> Result<f64> {
        self.entry_at(index).domain.encode(value).map_err(|what| {
            Error::point(format!("coordinate `{}`: {what}", self.coordinate_name(index)))
        })
    }

    #[inline]
    fn entry_at(&self, index: usize) -> &Entry {
        match self.inner.entry_of.get(index) {
            Some(&entry) => &self.inner.entries[entry as usize],
            None => &self.inner.entries[0],
        }
    }

    /// Whether every coordinate is discrete.
    pub fn is_discrete(&self) -> bool {
        !matches!(self.inner.cardinality, Cardinality::Infinite)
    }

    /// Whether a point could be drawn twice, which is when any coordinate is discrete. In continuous
    /// spaces, points are not recorded to prevent repeats.
    #[inline]
    pub(crate) fn can_repeat(&self) -> bool {
        !self.is_continuous()
    }

    /// Whether every coordinate is continuous.
    #[inline]
    pub fn is_continuous(&self) -> bool {
        self.inner.is_continuous
    }

    /// Whether every coordinate is continuous, and every point of the box is a point of the space.
    #[inline]
    pub(crate) fn is_real_box(&self) -> bool {
        self.is_continuous() && !self.has_rules()
    }

    /// The number of points, if it is finite and fits in 64 bits. With conditions or constraints, if there
    /// are few.
    pub fn cardinality(&self) -> Option<u64> {
        match (&self.inner.rules, &self.inner.admitted) {
            (None, _) => self.box_cardinality(),
            (Some(_), admitted) => admitted.as_ref().map(|keys| keys.len() as u64),
        }
    }

    /// The number of points, those that break the rules included.
    pub(crate) fn box_cardinality(&self) -> Option<u64> {
        match &self.inner.cardinality {
            Cardinality::Counted(points) => Some(*points),
            _ => None,
        }
    }

    /// With rules, the keys of all points that satisfy them, if they were counted.
    fn admitted_keys(&self) -> Option<&[u64]> {
        self.inner.admitted.as_deref()
    }

    /// Whether any coordinate has a condition, any constraint is to be satisfied, or coordinates of an array
    /// belong together. If not, every point of the box is a point of the space.
    #[inline]
    pub fn has_rules(&self) -> bool {
        self.inner.rules.is_some()
    }

    /// Whether any coordinate has a condition.
    pub(crate) fn has_conditions(&self) -> bool {
        self.entries().iter().any(|entry| entry.condition.is_some())
    }

    /// Whether the coordinates of an array are an order or a selection.
    pub(crate) fn has_orders_or_selections(&self) -> bool {
        self.orders_and_selections().next().is_some()
    }

    fn orders_and_selections(&self) -> impl Iterator<Item = &Entry> {
        let is_one = |entry: &&Entry| !matches!(entry.structure, None | Some(Structure::Simplex));
        self.entries().iter().filter(is_one)
    }

    /// Draws the coordinates that are an order or a selection: all sizes of a selection are equally likely.
    pub(crate) fn draw_orders_and_selections(&self, random: &mut Random, point: &mut [f64]) {
        for entry in self.orders_and_selections() {
            rules::draw(entry, &mut point[entry.range()], random);
        }
    }

    /// The constraints that all points satisfy, but for [functions](Space::functions).
    pub fn constraints(&self) -> impl Iterator<Item = &str> {
        self.inner.rules.iter().flat_map(Rules::constraints)
    }

    /// The names of the [functions](SpaceBuilder::subject_to_function) that all points satisfy.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.predicates().map(Predicate::name)
    }

    fn predicates(&self) -> impl Iterator<Item = &Predicate> {
        self.inner.rules.iter().flat_map(Rules::predicates)
    }

    /// This space with one more constraint, which is a function: see [`SpaceBuilder::subject_to_function`]. If the
    /// space was read from a file and has the name of this function, it gets the function.
    pub fn with_function(
        &self,
        name: &str,
        holds: impl Fn(&Point<'_>) -> bool + Send + Sync + 'static,
    ) -> Result<Space> {
        let mut predicates: Vec<Predicate> = self.predicates().cloned().collect();
        let added = Predicate::new(name.to_string(), holds);
        match predicates.iter_mut().find(|one| one.is_missing() && one.name() == name) {
            Some(missing) => *missing = added,
            None => predicates.push(added),
        }
        let constraints: Vec<String> = self.constraints().map(str::to_string).collect();
        Space::from_entries(self.entries().to_vec(), &constraints, &predicates)
    }

    /// Refuses a space with a function of which only the name is known, as in a space that was read from a file.
    pub(crate) fn check_functions(&self) -> Result<()> {
        match self.predicates().find(|predicate| predicate.is_missing()) {
            None => Ok(()),
            Some(missing) => Err(Error::space(format!(
                "constraint function `{}`: only its name is known here, since functions are not saved: give the \
                 space with its functions",
                missing.name()
            ))),
        }
    }

    /// The share of the box that satisfies each constraint alone (functions last: where the others hold), and then
    /// all together, as estimated by draws. Empty without rules.
    pub fn admitted_shares(&self) -> &[f64] {
        self.inner.rules.as_ref().map_or(&[], Rules::shares)
    }

    /// Says how little of the ranges satisfies the constraints, if it is little, and which constraint leaves least.
    pub fn narrow_note(&self) -> Option<String> {
        /// The share of the ranges that is not worth a note.
        const WIDE: f64 = 0.02;
        let (all, alone) = self.admitted_shares().split_last()?;
        let constraints = self.constraints().chain(self.functions());
        let by_share = constraints.zip(alone).min_by(|a, b| a.1.total_cmp(b.1));
        let (narrowest, share) = by_share.filter(|_| *all < WIDE)?;
        let percent = |share: f64| match share {
            0.0 => "less than 0.2 %".to_string(),
            share => format!("about {:.1} %", 100.0 * share),
        };
        Some(format!(
            "{} of the ranges satisfies the constraints; `{narrowest}` alone {}",
            percent(*all),
            percent(*share)
        ))
    }

    /// The middle of all ranges and the first of unordered values, or a point near it that satisfies the constraints.
    pub fn center(&self) -> Vec<f64> {
        let mut point: Vec<f64> = (0..self.dimension()).map(|i| self.axis(i).middle()).collect();
        self.settle(&mut point, None, &mut Random::new(0));
        point
    }

    /// The values in the middle of this entry's ranges, active or not.
    pub fn middle(&self, entry: &Entry) -> Values {
        match &self.inner.rules {
            Some(rules) => entry.decode(rules.default()),
            None => entry.decode_codes(&vec![entry.axis.middle(); entry.range().len()]),
        }
    }

    /// Whether each entry is active in a point.
    pub fn active(&self, point: &[f64]) -> Vec<bool> {
        match &self.inner.rules {
            None => vec![true; self.entries().len()],
            Some(rules) => rules.active(self.entries(), point),
        }
    }

    /// Changes a point of the box so that it satisfies the rules: see [`Rules::settle`].
    pub(crate) fn settle(&self, point: &mut [f64], anchor: Option<&[f64]>, random: &mut Random) {
        if let Some(rules) = &self.inner.rules {
            rules.settle(self.entries(), point, anchor, random);
        }
    }

    /// Changes a point of the box so that it satisfies structures and conditions: see [`Rules::activate`].
    pub(crate) fn activate(&self, point: &mut [f64], anchor: &[f64], random: &mut Random) {
        if let Some(rules) = &self.inner.rules {
            rules.activate(self.entries(), point, anchor, random);
        }
    }

    /// Changes one active coordinate, or takes a step in an array that belongs together. The point may break
    /// constraints then.
    pub(crate) fn step(&self, size: StepSize, point: &mut [f64], random: &mut Random) {
        let active = self.inner.rules.as_ref().map(|rules| rules.active(self.entries(), point));
        rules::step(self.entries(), active.as_deref(), size, size.share(), point, random);
    }

    /// Whether a point of the box satisfies the rules.
    pub(crate) fn admits(&self, point: &[f64]) -> bool {
        self.inner.rules.as_ref().is_none_or(|rules| rules.admits(self.entries(), point))
    }

    /// Fills `point` with a draw: a uniform one, unless constraints leave little of the box. It must have one
    /// number per coordinate.
    pub fn draw(&self, random: &mut Random, point: &mut [f64]) {
        if let Some(rules) = &self.inner.rules {
            return rules.draw(self.entries(), point, random);
        }
        for (range, axis) in self.axes() {
            axis.fill(random, &mut point[range]);
        }
    }

    /// Writes the point where searches begin: the middle of each range. Coordinates without an order or with two values
    /// have no middle, and are drawn: all flags set, or no item chosen, is an extreme point, and the optimum of many test
    /// functions.
    pub(crate) fn write_center(&self, random: &mut Random, point: &mut [f64]) {
        for (range, axis) in self.axes() {
            let has_middle = axis.count() != Some(2) && !matches!(axis, Axis::Unordered { .. });
            match has_middle {
                true => point[range].fill(axis.at(0.5)),
                false => axis.fill(random, &mut point[range]),
            }
        }
    }

    /// Fills `point` with a draw from a discrete space in which all indices are equally likely, on log
    /// scales as well.
    #[expect(clippy::expect_used, reason = "see the message")]
    pub(crate) fn draw_indices(&self, random: &mut Random, point: &mut [f64]) {
        for (range, axis) in self.axes() {
            let count = axis.count().expect("the space is discrete");
            point[range].iter_mut().for_each(|x| *x = random.below(count) as f64);
        }
    }

    /// Checks that an encoded point belongs to this space. The error names the first coordinate that
    /// does not, or the rule that the point breaks.
    pub fn check(&self, point: &[f64]) -> Result<()> {
        self.check_box(point)?;
        self.check_rules(point)
    }

    /// Checks the range of every coordinate, and no rules.
    pub(crate) fn check_box(&self, point: &[f64]) -> Result<()> {
        self.check_length(point)?;
        for (range, axis) in self.axes() {
            if let Some(i) = point[range.clone()].iter().position(|&x| !axis.contains(x)) {
                let Interval { low, high } = axis.extent();
                let index = range.start + i;
                return Err(Error::point(format!(
                    "coordinate `{}` is {}, not {} from {low} to {high}",
                    self.coordinate_name(index),
                    point[index],
                    if axis.count().is_some() { "an index" } else { "a number" },
                )));
            }
        }
        Ok(())
    }

    fn check_rules(&self, point: &[f64]) -> Result<()> {
        match self.inner.rules.as_ref().and_then(|rules| rules.obstacle(self.entries(), point)) {
            None => Ok(()),
            Some(obstacle) => Err(Error::point(format!("the point breaks a rule: {obstacle}"))),
        }
    }

    fn check_length(&self, point: &[f64]) -> Result<()> {
        let (given, n) = (point.len(), self.dimension());
        ensure!(given == n, point, "the point has {given} coordinates, the space has {n}");
        Ok(())
    }

    /// A view of an encoded point with typed access by name. Reading it panics if the slice does not
    /// have one number per coordinate.
    pub fn view<'a>(&'a self, point: &'a [f64]) -> Point<'a> {
        Point::new(self, point)
    }

    /// Encodes a point given by name. Every name of the space must occur exactly once, except those of
    /// inactive entries, which may be missing.
    ///
    /// ```
    /// use racecars::Space;
    ///
    /// let space = Space::builder().integer("n", 1, 9).reals("w", 2, 0.0, 1.0).build()?;
    /// let point = space.encode([("n", 3.into()), ("w", vec![0.5, 1.0].into())])?;
    /// assert_eq!(space.view(&point).integer("n")?, 3);
    /// # Ok::<(), racecars::Error>(())
    /// ```
    pub fn encode<N: AsRef<str>>(
        &self,
        assignments: impl IntoIterator<Item = (N, Values)>,
    ) -> Result<Vec<f64>> {
        let mut point = vec![f64::NAN; self.dimension()];
        for (name, values) in assignments {
            let name = name.as_ref();
            let entry = self.entry(name)?;
            let slots = &mut point[entry.range()];
            ensure!(slots[0].is_nan(), point, "coordinate `{name}` is given twice");
            entry.encode(&values, slots)?;
        }
        self.complete(point)
    }

    /// Completes encoded coordinates, of which those that are missing are NaN. Values of inactive entries may
    /// be missing, and do not matter if they are given.
    pub fn complete(&self, mut point: Vec<f64>) -> Result<Vec<f64>> {
        let is_missing =
            |point: &[f64], entry: &Entry| point[entry.range()].iter().any(|x| x.is_nan());
        if let Some(rules) = &self.inner.rules {
            rules.set_inactive(self.entries(), &mut point);
        }
        if let Some(missing) = self.entries().iter().find(|entry| is_missing(&point, entry)) {
            return Err(Error::point(format!("coordinate `{}` is missing", missing.name)));
        }
        self.check_rules(&point)?;
        Ok(point)
    }

    /// The number of continuous coordinates.
    #[inline]
    pub(crate) fn continuous_count(&self) -> usize {
        if self.inner.is_continuous { self.inner.dimension } else { self.inner.continuous.len() }
    }

    /// The index of the continuous coordinate at this place among them.
    #[inline]
    pub(crate) fn continuous_index(&self, place: usize) -> usize {
        self.inner.continuous.get(place).map_or(place, |&index| index as usize)
    }

    /// The key of a point after a coordinate, which has this axis, has changed.
    #[inline]
    pub(crate) fn changed_key(
        &self,
        key: u64,
        index: usize,
        axis: Axis,
        old: f64,
        new: f64,
    ) -> u64 {
        match self.inner.key_weights.get(index) {
            None => key,
            Some(&weight) => key.wrapping_add(axis.key_change(weight, old, new)),
        }
    }

    /// The key of a point, in spaces where points can repeat; 0 in continuous ones. It is the wrapping sum of
    /// a term for each coordinate, so that it is updated in constant time when a coordinate changes.
    ///
    /// The terms of discrete coordinates are multiples of their weights. If the number of points fits in 64
    /// bits, the weights are place values and keys are exact. Otherwise the weights are random odd numbers,
    /// and keys are 64-bit hashes.
    pub(crate) fn key(&self, point: &[f64]) -> u64 {
        if !self.can_repeat() {
            return 0;
        }
        let sums = self.axes().map(|(range, axis)| {
            let weights = &self.inner.key_weights[range.clone()];
            axis.key_sum(weights, &point[range])
        });
        sums.fold(0, u64::wrapping_add)
    }

    /// Writes the point with this key, in a space whose number of points fits in 64 bits.
    #[expect(clippy::expect_used, reason = "see the message")]
    pub(crate) fn point_of_key(&self, mut key: u64, point: &mut [f64]) {
        for (i, x) in point.iter_mut().enumerate() {
            let count = self.axis(i).count().expect("the space is discrete");
            *x = (key % count) as f64;
            key /= count;
        }
    }
}

impl Cardinality {
    /// The number of points of a space that is not continuous, and the weights of its keys.
    fn of(entries: &[Entry], dimension: usize, weights: &mut Vec<u64>) -> Cardinality {
        let counts = entries.iter().map(|entry| (entry.axis.count(), entry.range().len()));
        let mut points = Some(1u64);
        for (count, len) in counts.clone() {
            for _ in 0..len {
                let (Some(stride), Some(count)) = (points, count) else { break };
                weights.push(stride);
                points = stride.checked_mul(count);
            }
        }
        let is_discrete = counts.clone().all(|(count, _)| count.is_some());
        if let (true, Some(points)) = (is_discrete, points) {
            return Cardinality::Counted(points);
        }
        weights.clear();
        weights.extend((0..dimension as u64).map(|index| mix(index) | 1));
        if is_discrete { Cardinality::Countless } else { Cardinality::Infinite }
    }
}

impl PartialEq for Space {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
            || (self.entries() == other.entries()
                && self.constraints().eq(other.constraints())
                && self.functions().eq(other.functions()))
    }
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries()).finish()
    }
}
