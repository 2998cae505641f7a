//! A few numbers in a file that is written in place: a title, the numbers, a checksum. All of it is within one sector,
//! so that a disk has the old ones or the new ones.

use xxhash_rust::xxh3::xxh3_64;

const TITLE_BYTES: usize = 8;

/// What there was of such a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found<T> {
    /// Nothing.
    Absent,
    /// Something else.
    Damaged,
    /// What it says.
    Whole(T),
}

/// Bytes of a file with so many numbers.
pub(crate) const fn bytes_of(numbers: usize) -> usize {
    TITLE_BYTES + 8 * numbers + 8
}

/// The content of the file.
pub(crate) fn encode(title: &[u8; TITLE_BYTES], numbers: &[u64]) -> Vec<u8> {
    let mut bytes = title.to_vec();
    numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    let sum = xxh3_64(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// The numbers in a file, if it is whole and has this title.
pub(crate) fn decode<const N: usize>(title: &[u8; TITLE_BYTES], bytes: &[u8]) -> Option<[u64; N]> {
    if bytes.len() != bytes_of(N) {
        return None;
    }
    let number = |index: usize| {
        let at = TITLE_BYTES + 8 * index;
        u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
    };
    let is_whole = bytes.starts_with(title) && number(N) == xxh3_64(&bytes[..bytes_of(N) - 8]);
    (is_whole || cfg!(fuzzing)).then(|| std::array::from_fn(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back_and_a_changed_byte_is_seen() {
        let title = b"a title\n";
        let bytes = encode(title, &[1, u64::MAX, 77]);
        assert_eq!(bytes.len(), bytes_of(3));
        assert_eq!(decode(title, &bytes), Some([1, u64::MAX, 77]));
        assert_eq!(decode::<3>(b"another\n", &bytes), None);
        assert_eq!(decode::<2>(title, &bytes), None);
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 1;
            assert_eq!(decode::<3>(title, &wrong), None, "byte {at}");
            assert_eq!(decode::<3>(title, &bytes[..at]), None, "cut at {at}");
        }
    }
}
