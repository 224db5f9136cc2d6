//! The saved form of an optimizer: a header with magic, version and checksum, then the algorithm's
//! name, the space (as JSON) and the state (as postcard).

use super::Optimizer;
use super::auto::Auto;
use super::cma_es::Cma;
use super::differential_evolution::Evolution;
use super::quasi_random::QuasiRandom;
use super::racos::Racos;
use super::random_search::RandomSearch;
use super::zo_adam::Descent;
use crate::error::{Error, ErrorKind, Result};
use crate::space::Space;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Counters of a saved state must leave room to go on counting.
pub(super) const ROOM: u64 = 1 << 62;

const MAGIC: &[u8; 8] = b"RACECARS";
const VERSION: u16 = 3;
/// Magic, version, checksum.
const HEADER: usize = 8 + 2 + 4;

#[derive(Serialize, Deserialize)]
struct Preamble {
    algorithm: String,
    space: String,
}

impl Preamble {
    fn space(&self) -> Result<Space> {
        serde_json::from_str(&self.space)
            .map_err(|error| Error::saved(format!("the saved space is damaged: {error}")))
    }
}

/// Restores an optimizer from the bytes of [`Optimizer::save`].
///
/// ```
/// use racecars::{Algorithm, Optimizer, Space, load};
///
/// let space = Space::cube(3, 0.0, 1.0)?;
/// let mut optimizer = Algorithm::sracos().optimizer(&space, None, 1)?;
/// let mut twin = load(&optimizer.save())?;
/// assert_eq!(optimizer.ask(), twin.ask());
///
/// assert_eq!(
///     load(b"something else").err().unwrap().to_string(),
///     "not a saved racecars optimizer: the bytes do not begin with RACECARS"
/// );
/// # Ok::<(), racecars::Error>(())
/// ```
pub fn load(bytes: &[u8]) -> Result<Box<dyn Optimizer>> {
    let (preamble, rest) = open(bytes)?;
    restore(&preamble.algorithm, preamble.space()?, rest).map_err(|error| match error.kind() {
        ErrorKind::Saved => error,
        _ => Error::saved(format!("the saved optimizer is damaged: {error}")),
    })
}

/// Restores a member of a portfolio on this space.
pub(super) fn load_race_cars(bytes: &[u8], space: &Space) -> Result<Racos> {
    Racos::restore(space.clone(), read(member(bytes, &["race-cars"], space)?)?)
}

/// Restores a member of a portfolio on this space.
pub(super) fn load_cma_es(bytes: &[u8], space: &Space) -> Result<Cma> {
    Cma::restore(space.clone(), read(member(bytes, &["cma-es", "sep-cma-es"], space)?)?)
}

/// The state of a member, which must be one of these algorithms on this space: in particular not a
/// portfolio, which a damaged save could nest without end.
fn member<'b>(bytes: &'b [u8], algorithms: &[&str], space: &Space) -> Result<&'b [u8]> {
    let (preamble, state) = open(bytes)?;
    let is_sound = algorithms.contains(&preamble.algorithm.as_str()) && preamble.space()? == *space;
    if is_sound { Ok(state) } else { Err(unsound()) }
}

fn restore(algorithm: &str, space: Space, rest: &[u8]) -> Result<Box<dyn Optimizer>> {
    match algorithm {
        "auto" => Ok(Box::new(Auto::restore(space, read(rest)?)?)),
        "racos" | "sracos" | "race-cars" => Ok(Box::new(Racos::restore(space, read(rest)?)?)),
        "cma-es" | "sep-cma-es" => Ok(Box::new(Cma::restore(space, read(rest)?)?)),
        "de" | "de-rand" | "l-shade" => Ok(Box::new(Evolution::restore(space, read(rest)?)?)),
        "zo-adam" => Ok(Box::new(Descent::restore(space, read(rest)?)?)),
        "quasi-random" => Ok(Box::new(QuasiRandom::restore(space, read(rest)?)?)),
        "random" => Ok(Box::new(RandomSearch::restore(space, read(rest)?)?)),
        other => Err(Error::saved(format!(
            "saved with algorithm `{other}`, which this version does not have"
        ))),
    }
}

/// Writes an optimizer's state.
pub(super) fn save(algorithm: &str, space: &Space, state: &impl Serialize) -> Vec<u8> {
    let preamble = Preamble {
        algorithm: algorithm.to_string(),
        // A space is strings and finite numbers, and a state is numbers: neither fails to serialize.
        space: serde_json::to_string(space).unwrap_or_default(),
    };
    let mut bytes = vec![0; HEADER];
    bytes = postcard::to_extend(&preamble, bytes).unwrap_or_default();
    bytes = postcard::to_extend(state, bytes).unwrap_or_default();
    let checksum = crc32fast::hash(&bytes[HEADER..]);
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    bytes[10..HEADER].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn open(bytes: &[u8]) -> Result<(Preamble, &[u8])> {
    if !bytes.starts_with(MAGIC) {
        let message = "not a saved racecars optimizer: the bytes do not begin with RACECARS";
        return Err(Error::saved(message));
    }
    let Some((header, payload)) = bytes.split_at_checked(HEADER) else {
        return Err(Error::saved("the saved optimizer is cut off within its header"));
    };
    let version = u16::from_le_bytes([header[8], header[9]]);
    if version != VERSION {
        return Err(Error::saved(format!(
            "saved in format {version}; this version reads format {VERSION}"
        )));
    }
    let checksum = u32::from_le_bytes([header[10], header[11], header[12], header[13]]);
    if checksum != crc32fast::hash(payload) {
        return Err(Error::saved("the saved optimizer is damaged: its checksum does not match"));
    }
    postcard::take_from_bytes(payload).map_err(undecodable)
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    match postcard::take_from_bytes(bytes).map_err(undecodable)? {
        (state, []) => Ok(state),
        _ => Err(Error::saved("the saved optimizer has bytes after its end")),
    }
}

/// The error of a state that no optimizer could have saved.
pub(super) fn unsound() -> Error {
    Error::saved("the saved optimizer is damaged: its state contradicts itself")
}

fn undecodable(error: postcard::Error) -> Error {
    Error::saved(format!("the saved optimizer cannot be decoded: {error}"))
}
