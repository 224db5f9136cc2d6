//! The number formats of weights in GGUF files: plain floats, and blocks of integers of few bits that share a
//! scale and sometimes an offset (the layouts of ggml).

use crate::error::{Error, Result};

/// The numbers of a block of the K formats.
const K: usize = 256;

/// A number format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    F32,
    F16,
    Bf16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
}

/// Every format with its number in GGUF files, the numbers per block and the bytes of a block.
const FORMATS: [(Format, u32, usize, usize); 13] = [
    (Format::F32, 0, 1, 4),
    (Format::F16, 1, 1, 2),
    (Format::Q4_0, 2, 32, 18),
    (Format::Q4_1, 3, 32, 20),
    (Format::Q5_0, 6, 32, 22),
    (Format::Q5_1, 7, 32, 24),
    (Format::Q8_0, 8, 32, 34),
    (Format::Q2K, 10, K, 84),
    (Format::Q3K, 11, K, 110),
    (Format::Q4K, 12, K, 144),
    (Format::Q5K, 13, K, 176),
    (Format::Q6K, 14, K, 210),
    (Format::Bf16, 30, 1, 2),
];

impl Format {
    /// The format with this number in a GGUF file.
    pub(super) fn numbered(number: u32) -> Result<Self> {
        let found = FORMATS.iter().find(|(_, its, ..)| *its == number);
        found.map(|(format, ..)| *format).ok_or_else(|| {
            Error::model(format!(
                "number format {number} of GGUF files is not supported; F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, \
                 Q8_0 and Q2_K to Q6_K are"
            ))
        })
    }

    /// The numbers per block and the bytes of a block.
    fn block(self) -> (usize, usize) {
        let found = FORMATS.iter().find(|(format, ..)| *format == self);
        found.map_or((1, 4), |(_, _, numbers, bytes)| (*numbers, *bytes))
    }

    /// The bytes of a row of numbers, if it consists of whole blocks.
    pub(super) fn bytes(self, numbers: usize) -> Option<usize> {
        let (per_block, bytes) = self.block();
        numbers.is_multiple_of(per_block).then(|| (numbers / per_block).checked_mul(bytes))?
    }

    /// Appends the numbers of whole blocks.
    pub(super) fn read(self, bytes: &[u8], out: &mut Vec<f32>) {
        let (numbers, size) = self.block();
        out.reserve(bytes.len() / size * numbers);
        let blocks = bytes.chunks_exact(size);
        match self {
            Format::F32 => out.extend(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b))),
            Format::F16 => out.extend(bytes.as_chunks().0.iter().map(|b| half(*b))),
            Format::Bf16 => out.extend(bytes.as_chunks().0.iter().map(|b| bf16(*b))),
            Format::Q4_0 => blocks.for_each(|block| {
                let scale = half_at(block, 0);
                nibbles(&block[2..], |q, _| (f32::from(q) - 8.0) * scale, out);
            }),
            Format::Q4_1 => blocks.for_each(|block| {
                let (scale, least) = (half_at(block, 0), half_at(block, 2));
                nibbles(&block[4..], |q, _| f32::from(q) * scale + least, out);
            }),
            Format::Q5_0 => blocks.for_each(|block| {
                let (scale, fifth) = (half_at(block, 0), word(block, 2));
                let number = |q, i| (f32::from(q | bit(fifth, i) << 4) - 16.0) * scale;
                nibbles(&block[6..], number, out);
            }),
            Format::Q5_1 => blocks.for_each(|block| {
                let (scale, least, fifth) = (half_at(block, 0), half_at(block, 2), word(block, 4));
                let number = |q, i| f32::from(q | bit(fifth, i) << 4) * scale + least;
                nibbles(&block[8..], number, out);
            }),
            Format::Q8_0 => blocks.for_each(|block| {
                let scale = half_at(block, 0);
                out.extend(block[2..].iter().map(|q| f32::from(q.cast_signed()) * scale));
            }),
            Format::Q2K => blocks.for_each(|block| read_q2k(block, out)),
            Format::Q3K => blocks.for_each(|block| read_q3k(block, out)),
            Format::Q4K | Format::Q5K => blocks.for_each(|block| read_q4k_or_q5k(block, out)),
            Format::Q6K => blocks.for_each(|block| read_q6k(block, out)),
        }
    }
}

/// A half-precision number.
fn half(bytes: [u8; 2]) -> f32 {
    let bits = u32::from(u16::from_le_bytes(bytes));
    let (sign, rest) = ((bits & 0x8000) << 16, bits & 0x7fff);
    match rest >> 10 {
        // Zero and subnormal numbers are multiples of 2^-24.
        0 => f32::from_bits(sign | (rest as f32 * 2.0_f32.powi(-24)).to_bits()),
        31 => f32::from_bits(sign | 0x7f80_0000 | (rest & 0x3ff) << 13),
        _ => f32::from_bits(sign | ((rest << 13) + (112 << 23))),
    }
}

fn bf16(bytes: [u8; 2]) -> f32 {
    f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)
}

fn half_at(block: &[u8], at: usize) -> f32 {
    half([block[at], block[at + 1]])
}

fn word(block: &[u8], at: usize) -> u32 {
    (0..4).map(|i| u32::from(block[at + i]) << (8 * i)).sum()
}

fn bit(word: u32, i: usize) -> u8 {
    (word >> i & 1) as u8
}

/// 32 numbers: those of the low halves of 16 bytes, then those of the high halves. `number` gets the four
/// bits and the index.
fn nibbles(bytes: &[u8], number: impl Fn(u8, usize) -> f32, out: &mut Vec<f32>) {
    let low = bytes.iter().enumerate().map(|(i, q)| number(q & 15, i));
    out.extend(low);
    let high = bytes.iter().enumerate().map(|(i, q)| number(q >> 4, i + 16));
    out.extend(high);
}

/// 16 groups of 16 numbers of 2 bits, with scales and offsets of 4 bits.
fn read_q2k(block: &[u8], out: &mut Vec<f32>) {
    let (scales, numbers) = (&block[..16], &block[16..80]);
    let (scale, least) = (half_at(block, 80), half_at(block, 82));
    for i in 0..K {
        let q = numbers[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
        let group = scales[i / 16];
        out.push(scale * f32::from(group & 15) * f32::from(q) - least * f32::from(group >> 4));
    }
}

/// 16 groups of 16 numbers of 3 bits, with scales of 6 bits.
fn read_q3k(block: &[u8], out: &mut Vec<f32>) {
    let (third, numbers, packed) = (&block[..32], &block[32..96], &block[96..108]);
    let scale = half_at(block, 108);
    for i in 0..K {
        let low = numbers[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
        let high = third[i % 32] >> (i / 32) & 1;
        let group = i / 16;
        let four = packed[group % 8] >> (group / 8 * 4) & 15;
        let two = packed[8 + group % 4] >> (group / 4 * 2) & 3;
        let group_scale = scale * (f32::from(four | two << 4) - 32.0);
        out.push(group_scale * (f32::from(low | high << 2) - 4.0));
    }
}

/// 8 groups of 32 numbers of 4 or 5 bits, with scales and offsets of 6 bits.
fn read_q4k_or_q5k(block: &[u8], out: &mut Vec<f32>) {
    let (scale, least) = (half_at(block, 0), half_at(block, 2));
    let packed = &block[4..16];
    // Blocks of 5 bits have the fifth ones first.
    let (fifth, numbers) = block[16..].split_at(block.len() - 16 - K / 2);
    for group in 0..8 {
        let (six, six_least) = match group {
            0..4 => (packed[group] & 63, packed[group + 4] & 63),
            _ => (
                packed[group + 4] & 15 | packed[group - 4] >> 6 << 4,
                packed[group + 4] >> 4 | packed[group] >> 6 << 4,
            ),
        };
        let (scale, least) = (scale * f32::from(six), least * f32::from(six_least));
        for i in 0..32 {
            let four = numbers[group / 2 * 32 + i] >> (group % 2 * 4) & 15;
            let high = fifth.get(i).map_or(0, |byte| byte >> group & 1);
            out.push(scale * f32::from(four | high << 4) - least);
        }
    }
}

/// 16 groups of 16 numbers of 6 bits, with scales of 8 bits.
fn read_q6k(block: &[u8], out: &mut Vec<f32>) {
    let (low, high, scales) = (&block[..128], &block[128..192], &block[192..208]);
    let scale = half_at(block, 208);
    for i in 0..K {
        let (part, j) = (i / 128, i % 128);
        let four = low[part * 64 + j % 64] >> (j / 64 * 4) & 15;
        let two = high[part * 32 + j % 32] >> (j / 32 * 2) & 3;
        let q = f32::from(four | two << 4) - 32.0;
        out.push(scale * f32::from(scales[i / 16].cast_signed()) * q);
    }
}

/// A table with a row per token, kept in its format.
pub(super) struct Table {
    format: Format,
    width: usize,
    row_bytes: usize,
    bytes: Vec<u8>,
}

impl Table {
    /// From whole rows; `width` must be whole blocks.
    pub(super) fn new(format: Format, width: usize, bytes: Vec<u8>) -> Self {
        let row_bytes = format.bytes(width).unwrap_or(bytes.len()).max(1);
        Table { format, width, row_bytes, bytes }
    }

    /// Appends a row, which must be there.
    pub(super) fn row(&self, i: usize, out: &mut Vec<f32>) {
        self.format.read(&self.bytes[i * self.row_bytes..][..self.row_bytes], out);
    }

    /// All rows, one after the other.
    pub(super) fn rows(&self) -> impl Iterator<Item = Vec<f32>> {
        self.bytes.chunks_exact(self.row_bytes).map(|bytes| {
            let mut row = Vec::with_capacity(self.width);
            self.format.read(bytes, &mut row);
            row
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_exact() {
        for (bits, number) in [
            (0x0000, 0.0),
            (0x8000, -0.0),
            (0x3c00, 1.0),
            (0xc100, -2.5),
            (0x7bff, 65504.0),
            (0x0400, 2.0_f32.powi(-14)),
            (0x8001, -(2.0_f32.powi(-24))),
            (0x03ff, 1023.0 * 2.0_f32.powi(-24)),
            (0x7c00, f32::INFINITY),
        ] {
            assert_eq!(half(u16::to_le_bytes(bits)).to_bits(), number.to_bits(), "{bits:x}");
        }
        assert!(half([1, 0x7c]).is_nan());
        assert_eq!(bf16([0x20, 0xc0]), -2.5);
    }
    /// Expected numbers and their weighted sum are those of the Python package `gguf` for the same blocks.
    #[test]
    fn blocks_are_read_as_gguf_defines_them() {
        for (format, scales, some, total) in [
            (Format::Q4_0, &[0][..], [-1.5, -3.5, -3.5, -1.5], -1118.5),
            (Format::Q4_1, &[0, 2], [7.625, 7.625, 1.625, 7.125], 5192.25),
            (Format::Q5_0, &[0], [4.5, -5.5, 0.0, -7.0], -1173.0),
            (Format::Q5_1, &[0, 2], [13.625, 9.625, 0.625, 5.625], 12436.75),
            (Format::Q8_0, &[0], [10.5, 8.5, -15.5, -42.5], -7022.0),
            (Format::Q2K, &[80, 82], [4.5, 4.875, 0.0, 5.5], 68451.875),
            (Format::Q3K, &[108], [-4.5, 31.0, 0.0, 3.0], 9527.5),
            (Format::Q4K, &[0, 2], [15.125, 155.125, 29.875, 90.0], 676_544.25),
            (Format::Q5K, &[0, 2], [172.625, 596.125, 64.875, 129.0], 1_488_755.75),
            (Format::Q6K, &[208], [138.0, 605.0, -47.0, -1104.0], -1_560_068.0),
        ] {
            let (count, size) = format.block();
            let byte = |i: usize| (((7 * i + 3) % 251) ^ (i * i % 256)) as u8;
            let mut block: Vec<u8> = (0..size).map(byte).collect();
            // 0.5 and 0.125.
            for (at, half) in scales.iter().zip([0x3800_u16, 0x3000]) {
                block[*at..at + 2].copy_from_slice(&half.to_le_bytes());
            }
            let mut numbers = Vec::new();
            format.read(&block.repeat(2), &mut numbers);
            assert_eq!(numbers[..count], numbers[count..]);
            let places = if count == 32 { [0, 1, 17, 31] } else { [0, 33, 100, 255] };
            assert_eq!(places.map(|i| numbers[i]), some, "{format:?}");
            let weighted = |(i, x): (usize, &f32)| f64::from(*x) * (i * 37 % 101) as f64;
            let sum: f64 = numbers[..count].iter().enumerate().map(weighted).sum();
            assert_eq!(sum, total, "{format:?}");
        }
        assert_eq!(Format::Q4K.bytes(255), None);
        assert!(Format::numbered(20).is_err());
    }
}
