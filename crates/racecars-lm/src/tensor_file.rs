//! A matrix as `torch.save` writes it: a ZIP archive, not compressed, with a pickle that describes the tensor and a
//! file of its numbers. vLLM reads it by `torch.load(weights_only=True)`.

/// The folder of all entries.
const ROOT: &str = "archive";
/// The alignment of the numbers within the archive, as PyTorch has it.
const ALIGNMENT: usize = 64;

/// The bytes of the file of a matrix of single-precision numbers, row by row.
pub(crate) fn save(rows: usize, columns: usize, numbers: &[f32]) -> Vec<u8> {
    let data: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut archive = Archive::default();
    archive.add("data.pkl", &pickle(rows, columns, numbers.len()));
    archive.add("byteorder", b"little");
    archive.add("data/0", &data);
    archive.add("version", b"3\n");
    archive.finish()
}

/// `_rebuild_tensor_v2(storage, 0, (rows, columns), (columns, 1), False, OrderedDict())` in protocol 2.
fn pickle(rows: usize, columns: usize, count: usize) -> Vec<u8> {
    let mut bytes = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((".to_vec();
    text(&mut bytes, "storage");
    bytes.extend_from_slice(b"ctorch\nFloatStorage\n");
    text(&mut bytes, "0");
    text(&mut bytes, "cpu");
    integer(&mut bytes, count);
    // The storage's tuple is its persistent identity.
    bytes.extend_from_slice(b"tQ");
    integer(&mut bytes, 0);
    for (a, b) in [(rows, columns), (columns, 1)] {
        integer(&mut bytes, a);
        integer(&mut bytes, b);
        bytes.push(0x86);
    }
    bytes.extend_from_slice(b"\x89ccollections\nOrderedDict\n)RtR.");
    bytes
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(b'X');
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

fn integer(bytes: &mut Vec<u8>, number: usize) {
    bytes.push(b'J');
    bytes.extend_from_slice(&(number as u32).to_le_bytes());
}

/// A ZIP archive of stored entries.
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    entries: u16,
}

impl Archive {
    fn add(&mut self, name: &str, data: &[u8]) {
        let (name, start) = (format!("{ROOT}/{name}"), self.bytes.len());
        let mut fields = Vec::new();
        for number in [0u16, 0, 0, 0, 0x21] {
            fields.extend_from_slice(&number.to_le_bytes());
        }
        for number in [crc32fast::hash(data), data.len() as u32, data.len() as u32] {
            fields.extend_from_slice(&number.to_le_bytes());
        }
        fields.extend_from_slice(&(name.len() as u16).to_le_bytes());
        // An extra field `FB` that nobody reads fills up to the alignment.
        let header = start + 30 + name.len() + 4;
        let padding = header.next_multiple_of(ALIGNMENT) - header;
        self.bytes.extend_from_slice(b"PK\x03\x04");
        self.bytes.extend_from_slice(&fields);
        self.bytes.extend_from_slice(&(4 + padding as u16).to_le_bytes());
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(b"FB");
        self.bytes.extend_from_slice(&(padding as u16).to_le_bytes());
        self.bytes.resize(self.bytes.len() + padding, b'Z');
        self.bytes.extend_from_slice(data);
        self.directory.extend_from_slice(b"PK\x01\x02\0\0");
        self.directory.extend_from_slice(&fields);
        // No extra field, no comment, first disk, no attributes.
        self.directory.extend_from_slice(&[0; 12]);
        self.directory.extend_from_slice(&(start as u32).to_le_bytes());
        self.directory.extend_from_slice(name.as_bytes());
        self.entries += 1;
    }

    fn finish(mut self) -> Vec<u8> {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&self.directory);
        self.bytes.extend_from_slice(b"PK\x05\x06\0\0\0\0");
        for _ in 0..2 {
            self.bytes.extend_from_slice(&self.entries.to_le_bytes());
        }
        self.bytes.extend_from_slice(&(self.directory.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&start.to_le_bytes());
        self.bytes.extend_from_slice(&[0; 2]);
        self.bytes
    }
}

/// Base64 with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - chunk.len()));
        for i in 0..4 {
            match i <= chunk.len() {
                true => text.push(char::from(DIGITS[(bits >> (18 - 6 * i) & 63) as usize])),
                false => text.push('='),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        let texts = ["", "f", "fo", "foo", "foob", "fooba", "foobar"];
        let encoded = texts.map(|text| base64(text.as_bytes()));
        assert_eq!(encoded, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }

    /// PyTorch 2.15 reads these bytes by `torch.load(weights_only=True)`.
    #[test]
    fn a_matrix_is_an_archive_with_aligned_numbers() {
        let bytes = save(2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let at = |what: &[u8]| bytes.windows(what.len()).position(|part| part == what).unwrap();
        assert_eq!(at(&1f32.to_le_bytes()) % ALIGNMENT, 0);
        assert_eq!(&bytes[at(b"archive/version")..][..15], b"archive/version");
        assert!(bytes.starts_with(b"PK\x03\x04"));
        assert_eq!(&bytes[bytes.len() - 22..][..4], b"PK\x05\x06");
    }
}
