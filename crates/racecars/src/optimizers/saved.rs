//! The file format of saved optimizers: a header with magic, version and checksum, then the algorithm's
//! name, the space (as JSON) and the state (as postcard).

use super::{Optimizer, registry};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::space::Space;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Counters and ids of a saved state must be below this, so that they cannot overflow later.
pub(crate) const ID_HEADROOM: u64 = 1 << 62;

const MAGIC: &[u8; 8] = b"RACECARS";
/// The version of the format.
const VERSION: u16 = 14;
/// Magic, version, checksum.
const HEADER_BYTES: usize = 8 + 2 + 4;
/// The maximum depth of nested optimizers. Without a limit, a damaged save could recurse without end.
pub(super) const MAX_NESTING: usize = 6;

#[derive(Serialize, Deserialize)]
struct Preamble {
    algorithm: String,
    space: String,
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
///     load(b"something else").unwrap_err().to_string(),
///     "not a saved racecars optimizer: the bytes do not begin with RACECARS"
/// );
/// # Ok::<(), racecars::Error>(())
/// ```
pub fn load(bytes: &[u8]) -> Result<Box<dyn Optimizer>> {
    load_nested(bytes, None, 0)
}

/// Restores an optimizer of this space, whose [functions](crate::SpaceBuilder::subject_to_function) a save does
/// not have.
pub fn load_in(space: &Space, bytes: &[u8]) -> Result<Box<dyn Optimizer>> {
    let optimizer = load_nested(bytes, Some(space), 0)?;
    let is_same = optimizer.space() == space;
    ensure!(is_same, saved, "the saved optimizer searches another space");
    Ok(optimizer)
}

/// Restores an optimizer nested in `depth` others. If it was saved with a space like the given one, it gets
/// that.
pub(crate) fn load_nested(
    bytes: &[u8],
    given: Option<&Space>,
    depth: usize,
) -> Result<Box<dyn Optimizer>> {
    if depth > MAX_NESTING {
        return Err(unsound());
    }
    let (preamble, state) = open(bytes)?;
    let is_saved = |space: &&Space| preamble.space == written(space);
    let space = match given.filter(is_saved) {
        Some(space) => space.clone(),
        None => serde_json::from_str(&preamble.space).map_err(|error| {
            Error::saved(format!("the saved space is damaged: {error}")).caused_by(error)
        })?,
    };
    space.check_functions()?;
    let restored = registry::restore(&preamble.algorithm, space, state, depth);
    restored.map_err(|error| match error.kind() {
        ErrorKind::Saved => error,
        _ => Error::saved(format!("the saved optimizer is damaged: {error}")).caused_by(error),
    })
}

/// Saves an optimizer's state.
#[expect(clippy::expect_used, reason = "see the message")]
pub(super) fn save(algorithm: &str, space: &Space, state: &impl Serialize) -> Vec<u8> {
    let bytes = postcard::to_extend(state, preamble(algorithm, space));
    finish(bytes.expect("a state is numbers in sequences"))
}

/// Space for the header, and the preamble.
#[expect(clippy::expect_used, reason = "see the message")]
fn preamble(algorithm: &str, space: &Space) -> Vec<u8> {
    let preamble = Preamble { algorithm: algorithm.to_string(), space: written(space) };
    postcard::to_extend(&preamble, vec![0; HEADER_BYTES]).expect("a preamble is two strings")
}

#[expect(clippy::expect_used, reason = "see the message")]
fn written(space: &Space) -> String {
    serde_json::to_string(space).expect("a space is strings and finite numbers")
}

/// Fills in the header.
fn finish(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = crc32fast::hash(&bytes[HEADER_BYTES..]);
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    bytes[10..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn open(bytes: &[u8]) -> Result<(Preamble, &[u8])> {
    ensure!(
        bytes.starts_with(MAGIC),
        saved,
        "not a saved racecars optimizer: the bytes do not begin with RACECARS"
    );
    let Some((header, payload)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err(Error::saved("the saved optimizer is truncated within its header"));
    };
    let version = u16::from_le_bytes([header[8], header[9]]);
    let is_read = version == VERSION;
    ensure!(is_read, saved, "saved in format {version}; this version reads format {VERSION}");
    let checksum = u32::from_le_bytes([header[10], header[11], header[12], header[13]]);
    let is_whole = checksum == crc32fast::hash(payload);
    ensure!(is_whole, saved, "the saved optimizer is damaged: its checksum does not match");
    postcard::take_from_bytes(payload).map_err(undecodable)
}

pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    match postcard::take_from_bytes(bytes).map_err(undecodable)? {
        (state, []) => Ok(state),
        _ => Err(Error::saved("the saved optimizer has extra bytes at its end")),
    }
}

/// The error of a state that violates its invariants.
pub(crate) fn unsound() -> Error {
    Error::saved("the saved optimizer is damaged: its state contradicts itself")
}

fn undecodable(error: postcard::Error) -> Error {
    Error::saved(format!("the saved optimizer cannot be decoded: {error}")).caused_by(error)
}
