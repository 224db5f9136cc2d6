//! Writing GGUF files.

use std::path::Path;

/// A value of the metadata.
#[derive(Debug, Clone)]
pub(crate) enum Meta {
    Count(u32),
    Number(f32),
    Flag(bool),
    Text(String),
    Texts(Vec<String>),
    Numbers(Vec<f32>),
    Integers(Vec<i32>),
}

/// The number formats that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    F32 = 0,
    F16 = 1,
    Q8_0 = 8,
}

/// A tensor; its shape has rows first.
#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) kind: Kind,
    pub(crate) numbers: Vec<f32>,
}

impl Tensor {
    fn bytes(&self) -> Vec<u8> {
        match self.kind {
            Kind::F32 => self.numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Kind::F16 => self.numbers.iter().flat_map(|x| half(*x).to_le_bytes()).collect(),
            Kind::Q8_0 => (self.numbers.chunks(32))
                .flat_map(|block| {
                    // All numbers are below 2, so a scale of 1/64 serves every block.
                    let numbers = block.iter().map(|x| (x * 64.0).round() as i8 as u8);
                    half(1.0 / 64.0).to_le_bytes().into_iter().chain(numbers)
                })
                .collect(),
        }
    }
}

/// In half precision, rounded towards zero.
fn half(x: f32) -> u16 {
    let bits = x.to_bits();
    let size = (bits & 0x7fff_ffff).saturating_sub(112 << 23) >> 13;
    (bits >> 16 & 0x8000) as u16 | size as u16
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn list<T>(out: &mut Vec<u8>, kind: u32, values: &[T], mut write: impl FnMut(&mut Vec<u8>, &T)) {
    out.extend(kind.to_le_bytes());
    out.extend((values.len() as u64).to_le_bytes());
    values.iter().for_each(|value| write(out, value));
}

pub(crate) fn write_gguf(path: &Path, metadata: &[(String, Meta)], tensors: &[Tensor]) {
    let mut out = b"GGUF".to_vec();
    out.extend(3_u32.to_le_bytes());
    out.extend((tensors.len() as u64).to_le_bytes());
    out.extend((metadata.len() as u64).to_le_bytes());
    for (key, value) in metadata {
        text(&mut out, key);
        let kind = match value {
            Meta::Count(_) => 4_u32,
            Meta::Number(_) => 6,
            Meta::Flag(_) => 7,
            Meta::Text(_) => 8,
            Meta::Texts(_) | Meta::Numbers(_) | Meta::Integers(_) => 9,
        };
        out.extend(kind.to_le_bytes());
        match value {
            Meta::Count(x) => out.extend(x.to_le_bytes()),
            Meta::Number(x) => out.extend(x.to_le_bytes()),
            Meta::Flag(x) => out.push(u8::from(*x)),
            Meta::Text(x) => text(&mut out, x),
            Meta::Texts(all) => list(&mut out, 8, all, |out, x| text(out, x)),
            Meta::Numbers(all) => list(&mut out, 6, all, |out, x| out.extend(x.to_le_bytes())),
            Meta::Integers(all) => list(&mut out, 5, all, |out, x| out.extend(x.to_le_bytes())),
        }
    }
    let mut data: Vec<u8> = Vec::new();
    for tensor in tensors {
        text(&mut out, &tensor.name);
        out.extend((tensor.shape.len() as u32).to_le_bytes());
        for size in tensor.shape.iter().rev() {
            out.extend((*size as u64).to_le_bytes());
        }
        out.extend((tensor.kind as u32).to_le_bytes());
        out.extend((data.len() as u64).to_le_bytes());
        data.extend(tensor.bytes());
        data.resize(data.len().next_multiple_of(32), 0);
    }
    out.resize(out.len().next_multiple_of(32), 0);
    out.extend(data);
    std::fs::write(path, out).unwrap();
}
