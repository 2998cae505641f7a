//! The bytes of an answer until the caller takes them; short ones are kept without an allocation.

/// Bytes kept in place.
const SHORT_BYTES: usize = 30;

#[derive(Debug)]
pub(super) enum Bytes {
    Short([u8; SHORT_BYTES], u8),
    Long(Box<[u8]>),
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        let mut short = [0; SHORT_BYTES];
        match short.get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                Bytes::Short(short, bytes.len() as u8)
            }
            None => Bytes::Long(bytes.into()),
        }
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            Bytes::Short(bytes, length) => &bytes[..usize::from(*length)],
            Bytes::Long(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_length_are_kept() {
        for length in [0, 1, SHORT_BYTES, SHORT_BYTES + 1, 1000] {
            let bytes: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
            assert_eq!(Bytes::from(&bytes[..]).as_ref(), &bytes[..]);
        }
    }
}
