//! A row as bytes, the same in the log and in the runs: its key, the length of its value (2 bytes), the value.

use std::fmt::Debug;
use std::ops::Range;

use crate::engine::bytes::{Malformed, Reader};

/// The longest value.
pub(crate) const VALUE_BYTES_MAX: usize = 16 * 1024;
/// Bytes that stand before a value, beside its key.
const LENGTH_BYTES: usize = 2;

/// What the rows of a table are ordered by: a few numbers.
pub(crate) trait Key: Copy + Ord + Debug + Send + Sync + 'static {
    /// Writes it down.
    fn write(&self, to: &mut Vec<u8>);

    /// Reads it from the front of the bytes.
    fn read(bytes: &mut Reader<'_>) -> Result<Self, Malformed>;

    /// A number that is about the same for rows that are written about the same time, as a rule: a moment, or a
    /// sequence number. It makes counting quick, and is right whatever it is.
    fn locality(&self) -> u64;
}

/// Appends a row.
pub(crate) fn write<K: Key>(key: &K, value: &[u8], to: &mut Vec<u8>) {
    debug_assert!(value.len() <= VALUE_BYTES_MAX, "rows are checked before they are written");
    key.write(to);
    to.extend_from_slice(&(value.len() as u16).to_be_bytes());
    to.extend_from_slice(value);
}

/// Takes a row from the front of the bytes: its key and its value.
pub(crate) fn take<'a, K: Key>(bytes: &mut Reader<'a>) -> Result<(K, &'a [u8]), Malformed> {
    let key = K::read(bytes)?;
    let length = u16::from_be_bytes(bytes.array()?) as usize;
    if length > VALUE_BYTES_MAX {
        return Err("a value is too long");
    }
    Ok((key, bytes.bytes(length)?))
}

/// The row at `at`: its key, and where its value is; the next row begins behind that. Nothing if the bytes hold no
/// whole row there.
pub(crate) fn read<K: Key>(bytes: &[u8], at: usize) -> Option<(K, Range<usize>)> {
    let mut reader = Reader(bytes.get(at..)?);
    let (key, value) = take(&mut reader).ok()?;
    let end = bytes.len() - reader.0.len();
    Some((key, end - value.len()..end))
}

/// At least so many bytes are a row.
pub(crate) const ROW_BYTES_MIN: u64 = LENGTH_BYTES as u64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::tests::FeedKey;

    proptest! {
        #[test]
        fn rows_read_back(reader: u64, at: u64, value in proptest::collection::vec(any::<u8>(), 0..200)) {
            let key = FeedKey(reader, at);
            let mut bytes = vec![7];
            write(&key, &value, &mut bytes);
            let (found, range) = read::<FeedKey>(&bytes, 1).unwrap();
            prop_assert_eq!(found, key);
            prop_assert_eq!(&bytes[range.clone()], value.as_slice());
            prop_assert_eq!(range.end, bytes.len());
            for end in 1..bytes.len() {
                prop_assert_eq!(read::<FeedKey>(&bytes[..end], 1), None);
            }
        }

        #[test]
        fn any_bytes_are_a_row_within_them_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..100), at in 0usize..120) {
            if let Some((_, range)) = read::<FeedKey>(&bytes, at) {
                prop_assert!(range.end <= bytes.len() && range.start <= range.end);
            }
        }
    }
}
