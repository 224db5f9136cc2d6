//! Reading GGUF files: metadata and weights, in one file or split into several
//! (`NAME-00001-of-00003.gguf`).
//!
//! A file has a header with the metadata (keys and values) and the names, shapes, formats and places of its
//! tensors, and then their bytes. Every length is checked against that of the file before memory is
//! taken for it, so that a damaged file is refused.

use super::quantized::{Format, Table};
use crate::error::{Error, Result};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Open GGUF files of one model.
#[derive(Debug)]
pub(super) struct Gguf {
    /// The files, the one with the metadata first.
    files: Vec<(PathBuf, File)>,
    metadata: HashMap<String, Value>,
    tensors: HashMap<String, TensorPlace>,
}

/// A value of the metadata.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Flag(bool),
    Integer(i128),
    Number(f64),
    Text(String),
    List(Vec<Value>),
}

/// Where a tensor is.
#[derive(Debug)]
struct TensorPlace {
    file: usize,
    format: Format,
    /// Rows first.
    shape: Vec<usize>,
    offset: u64,
    bytes: usize,
}

/// No count of a real model is larger; a damaged file must not exhaust memory.
const MAX_COUNT: usize = 1 << 28;
/// The maximum number of lists within each other.
const MAX_DEPTH: u32 = 4;

impl Gguf {
    /// Opens a file, and the others of the same model if it is split.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let mut model =
            Gguf { files: Vec::new(), metadata: HashMap::new(), tensors: HashMap::new() };
        for path in split_files(path) {
            model.read(&path).map_err(|error| {
                error.within(format!("{} cannot be read as GGUF", path.display()))
            })?;
        }
        Ok(model)
    }

    /// Reads the header of another file.
    fn read(&mut self, path: &Path) -> Result<()> {
        let file = File::open(path).map_err(|error| Error::system("open", path, error))?;
        let length = file.metadata().map_err(|error| Error::system("read", path, error))?.len();
        let mut header = Header { reader: BufReader::new(file), place: 0, length };
        let (metadata, tensors) = header.read(self.files.len())?;
        if self.files.is_empty() {
            self.metadata = metadata;
        }
        for (name, place) in tensors {
            if self.tensors.contains_key(&name) {
                return Err(Error::model(format!("`{name}` is there twice")));
            }
            self.tensors.insert(name, place);
        }
        self.files.push((path.to_path_buf(), header.reader.into_inner()));
        Ok(())
    }

    fn path(&self) -> std::path::Display<'_> {
        self.files[0].0.display()
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.metadata.get(key)
    }

    fn value(&self, key: &str) -> Result<&Value> {
        self.get(key)
            .ok_or_else(|| Error::model(format!("{} has no `{key}` in its metadata", self.path())))
    }

    /// An error about the value of `key`.
    pub(super) fn wrong(&self, key: &str, error: impl std::fmt::Display) -> Error {
        Error::model(format!("`{key}` of {}: {error}", self.path()))
    }

    pub(super) fn text(&self, key: &str) -> Result<&str> {
        match self.value(key)? {
            Value::Text(text) => Ok(text),
            other => Err(self.wrong(key, format!("{} is not a text", other.shown()))),
        }
    }

    pub(super) fn count(&self, key: &str) -> Result<usize> {
        match self.value(key)? {
            Value::Integer(x) => match usize::try_from(*x) {
                Ok(count @ 1..=MAX_COUNT) => Ok(count),
                _ => Err(self.wrong(key, format!("{x} is not between 1 and {MAX_COUNT}"))),
            },
            other => Err(self.wrong(key, format!("{} is not a count", other.shown()))),
        }
    }

    /// As [`Gguf::count`], for a key that may be missing.
    pub(super) fn count_or(&self, key: &str, default: usize) -> Result<usize> {
        self.get(key).map_or(Ok(default), |_| self.count(key))
    }

    /// A number of a token.
    pub(super) fn token(&self, key: &str, vocabulary: usize) -> Result<u32> {
        match self.value(key)? {
            Value::Integer(x) if (0..vocabulary as i128).contains(x) => Ok(*x as u32),
            _ => Err(self.wrong(key, format!("not a token, of which there are {vocabulary}"))),
        }
    }

    pub(super) fn number(&self, key: &str) -> Result<f64> {
        match self.value(key)? {
            Value::Number(x) if x.is_finite() => Ok(*x),
            other => Err(self.wrong(key, format!("{} is not a number", other.shown()))),
        }
    }

    /// As [`Gguf::number`], for a key that may be missing.
    pub(super) fn number_or(&self, key: &str, default: f64) -> Result<f64> {
        self.get(key).map_or(Ok(default), |_| self.number(key))
    }

    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        match self.get(key) {
            Some(Value::Flag(flag)) => Some(*flag),
            _ => None,
        }
    }

    pub(super) fn list(&self, key: &str) -> Result<&[Value]> {
        match self.value(key)? {
            Value::List(values) => Ok(values),
            other => Err(self.wrong(key, format!("{} is not a list", other.shown()))),
        }
    }

    pub(super) fn texts(&self, key: &str) -> Result<Vec<&str>> {
        let values = self.list(key)?.iter();
        (values.map(|value| match value {
            Value::Text(text) => Ok(&**text),
            other => Err(self.wrong(key, format!("{} is not a text", other.shown()))),
        }))
        .collect()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// The shape of a tensor, rows first.
    pub(super) fn shape(&self, name: &str) -> Result<&[usize]> {
        Ok(&self.place(name)?.shape)
    }

    fn place(&self, name: &str) -> Result<&TensorPlace> {
        let place = self.tensors.get(name);
        place.ok_or_else(|| Error::model(format!("`{name}` of {} is missing", self.path())))
    }

    /// The bytes of a tensor, which must be of this shape, and their format.
    fn bytes(&self, name: &str, shape: &[usize]) -> Result<(Format, Vec<u8>)> {
        let place = self.place(name)?;
        let (path, file) = &self.files[place.file];
        if place.shape != shape {
            let found = &place.shape;
            let of = path.display();
            return Err(Error::model(format!("`{name}` of {of} is {found:?}, not {shape:?}")));
        }
        let mut bytes = vec![0; place.bytes];
        let mut reader: &File = file;
        (reader.seek(SeekFrom::Start(place.offset)))
            .and_then(|_| reader.read_exact(&mut bytes))
            .map_err(|error| Error::system("read", path, error))?;
        Ok((place.format, bytes))
    }

    /// A weight as single-precision numbers, which must be of this shape.
    pub(super) fn tensor(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let (format, bytes) = self.bytes(name, shape)?;
        let mut numbers = Vec::new();
        format.read(&bytes, &mut numbers);
        Ok(numbers)
    }

    /// As [`Gguf::tensor`], for a weight that may be missing.
    pub(super) fn tensor_if_any(&self, name: &str, shape: &[usize]) -> Result<Option<Vec<f32>>> {
        self.has(name).then(|| self.tensor(name, shape)).transpose()
    }

    /// A matrix in its format.
    pub(super) fn table(&self, name: &str, rows: usize, width: usize) -> Result<Table> {
        let (format, bytes) = self.bytes(name, &[rows, width])?;
        Ok(Table::new(format, width, bytes))
    }
}

/// All files of the model that `path` is a file of.
pub(crate) fn split_files(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().and_then(|name| name.to_str());
    match name.and_then(split_name) {
        Some((stem, count)) => (1..=count)
            .map(|i| path.with_file_name(format!("{stem}-{i:05}-of-{count:05}.gguf")))
            .collect(),
        None => vec![path.to_path_buf()],
    }
}

/// The part of the name that the files of a split model share, and their number.
pub(super) fn split_name(name: &str) -> Option<(&str, u32)> {
    let number = |text: &str| match text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit()) {
        true => text.parse::<u32>().ok(),
        false => None,
    };
    let (rest, count) = name.strip_suffix(".gguf")?.rsplit_once("-of-")?;
    let (stem, i) = rest.rsplit_once('-')?;
    let (i, count) = (number(i)?, number(count)?);
    (1..=count).contains(&i).then_some((stem, count))
}

impl Value {
    /// For messages.
    fn shown(&self) -> String {
        match self {
            Value::List(values) => format!("a list of {}", values.len()),
            other => format!("{other:?}"),
        }
    }
}

/// A header that is being read.
struct Header {
    reader: BufReader<File>,
    place: u64,
    length: u64,
}

type Contents = (HashMap<String, Value>, Vec<(String, TensorPlace)>);

impl Header {
    fn read(&mut self, file: usize) -> Result<Contents> {
        if self.array()? != *b"GGUF" {
            return Err(Error::model("it does not begin with GGUF"));
        }
        match self.u32()? {
            2 | 3 => {}
            version => {
                return Err(Error::model(format!(
                    "version {version} of the format is not supported; 2 and 3 are, little-endian"
                )));
            }
        }
        let tensor_count = self.u64()?;
        let mut metadata = HashMap::new();
        for _ in 0..self.u64()? {
            let key = self.text()?;
            let kind = self.u32()?;
            let value = self.value(kind, MAX_DEPTH).map_err(|error| error.within(&key))?;
            metadata.insert(key, value);
        }
        let mut tensors = Vec::new();
        for _ in 0..tensor_count {
            let name = self.text()?;
            let place = self.tensor(file).map_err(|error| error.within(format!("`{name}`")))?;
            tensors.push((name, place));
        }
        let alignment = match metadata.get("general.alignment") {
            None => 32,
            Some(Value::Integer(x @ 1..=65536)) => *x as u64,
            Some(other) => {
                return Err(Error::model(format!("the alignment is {}", other.shown())));
            }
        };
        let start = self.place.next_multiple_of(alignment);
        for (name, place) in &mut tensors {
            let end = (start.checked_add(place.offset))
                .and_then(|offset| offset.checked_add(place.bytes as u64));
            match end {
                Some(end) if end <= self.length => place.offset += start,
                _ => return Err(Error::model(format!("`{name}` ends after the file"))),
            }
        }
        Ok((metadata, tensors))
    }

    fn tensor(&mut self, file: usize) -> Result<TensorPlace> {
        let dimensions = self.u32()?;
        if !(1..=4).contains(&dimensions) {
            return Err(Error::model(format!("it has {dimensions} dimensions")));
        }
        let mut shape = Vec::new();
        let mut numbers = 1_usize;
        for _ in 0..dimensions {
            let size = self.u64()?;
            let total = usize::try_from(size).ok().and_then(|size| numbers.checked_mul(size));
            match total {
                Some(total @ 1..) => numbers = total,
                _ => return Err(Error::model(format!("a dimension is {size}"))),
            }
            shape.push(size as usize);
        }
        let format = Format::numbered(self.u32()?)?;
        let bytes = (format.bytes(shape[0]))
            .and_then(|row| row.checked_mul(numbers / shape[0]))
            .ok_or_else(|| Error::model(format!("rows of {} are not whole blocks", shape[0])))?;
        let offset = self.u64()?;
        shape.reverse();
        Ok(TensorPlace { file, format, shape, offset, bytes })
    }

    fn value(&mut self, kind: u32, depth: u32) -> Result<Value> {
        Ok(match kind {
            0 => Value::Integer(u8::from_le_bytes(self.array()?).into()),
            1 => Value::Integer(i8::from_le_bytes(self.array()?).into()),
            2 => Value::Integer(u16::from_le_bytes(self.array()?).into()),
            3 => Value::Integer(i16::from_le_bytes(self.array()?).into()),
            4 => Value::Integer(self.u32()?.into()),
            5 => Value::Integer(i32::from_le_bytes(self.array()?).into()),
            6 => Value::Number(f32::from_le_bytes(self.array()?).into()),
            7 => Value::Flag(self.array::<1>()? != [0]),
            8 => Value::Text(self.text()?),
            9 if depth > 0 => {
                let (kind, count) = (self.u32()?, self.u64()?);
                // Every value has at least a byte.
                self.check(count)?;
                let values = (0..count).map(|_| self.value(kind, depth - 1));
                Value::List(values.collect::<Result<_>>()?)
            }
            10 => Value::Integer(self.u64()?.into()),
            11 => Value::Integer(i64::from_le_bytes(self.array()?).into()),
            12 => Value::Number(f64::from_le_bytes(self.array()?)),
            _ => return Err(Error::model(format!("value of unknown kind {kind}"))),
        })
    }

    fn text(&mut self) -> Result<String> {
        let length = self.u64()?;
        self.check(length)?;
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| Error::model("a text is not UTF-8"))
    }

    /// Checks that the file has as many bytes more.
    fn check(&self, bytes: u64) -> Result<()> {
        match bytes <= self.length.saturating_sub(self.place) {
            true => Ok(()),
            false => Err(Error::model(format!("it ends after {} bytes, too early", self.length))),
        }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.check(bytes.len() as u64)?;
        self.reader.read_exact(bytes).map_err(Error::model)?;
        self.place += bytes.len() as u64;
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_split_model_are_found_by_any_of_them() {
        let files = split_files(Path::new("/m/big-00002-of-00003.gguf"));
        let expected = [1, 2, 3].map(|i| PathBuf::from(format!("/m/big-0000{i}-of-00003.gguf")));
        assert_eq!(files, expected);
        for name in ["big.gguf", "big-1-of-3.gguf", "big-00004-of-00003.gguf", "a-00001-of-x.gguf"]
        {
            assert_eq!(split_files(Path::new(name)), [PathBuf::from(name)]);
        }
    }
}
