//! Messages one behind the other: in the journal of a run, and between a driver and whoever started it.
//!
//! A frame is the length of its message (`u32`, little-endian) and the message, in postcard's form.

use std::cmp::Ordering;
use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

/// Longest message that is believed, bytes.
pub const FRAME_BYTES_MAX: usize = 256 << 20;
/// Bytes before a message: its length.
pub(crate) const HEAD_BYTES: u64 = 4;
/// Most series of each kind that an interval is believed to have: each holds histograms.
pub(crate) const SERIES_MAX: usize = 1 << 14;

/// Appends a frame.
///
/// # Errors
/// Where the message is longer than [`FRAME_BYTES_MAX`]; nothing of it is appended then.
pub(crate) fn append(message: &impl Serialize, to: &mut Vec<u8>) -> io::Result<()> {
    let start = to.len();
    to.extend_from_slice(&[0; 4]);
    postcard::to_io(message, &mut *to).map_err(io::Error::other)?;
    let length = to.len() - start - 4;
    if length > FRAME_BYTES_MAX {
        to.truncate(start);
        let reason = format!("a message of {length} bytes; at most {FRAME_BYTES_MAX} are taken");
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    to[start..start + 4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(())
}

/// Writes a frame.
///
/// # Errors
/// As the writer; where the message is longer than [`FRAME_BYTES_MAX`].
pub fn write(message: &impl Serialize, to: &mut dyn Write) -> io::Result<()> {
    let mut frame = Vec::new();
    append(message, &mut frame)?;
    to.write_all(&frame)?;
    to.flush()
}

/// The bytes of the next message; none where nothing follows.
///
/// # Errors
/// As the reader; `InvalidData` where it is too long, `UnexpectedEof` where it is cut off.
pub(crate) fn bytes(from: &mut dyn Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = Vec::with_capacity(4);
    (&mut *from).take(4).read_to_end(&mut length)?;
    let length = match <[u8; 4]>::try_from(&length[..]) {
        Ok(length) => u32::from_le_bytes(length) as usize,
        Err(_) if length.is_empty() => return Ok(None),
        Err(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
    };
    if length > FRAME_BYTES_MAX {
        let reason =
            format!("a message says that it has {length} bytes; at most {FRAME_BYTES_MAX} are taken");
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    let mut bytes = Vec::new();
    let read = (&mut *from).take(length as u64).read_to_end(&mut bytes)?;
    if read == length { Ok(Some(bytes)) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// The bytes of the only message of these.
///
/// # Errors
/// `UnexpectedEof` where it is cut off, `InvalidData` where more follows.
pub(crate) fn only(frame: &[u8]) -> io::Result<&[u8]> {
    let (length, bytes) = frame.split_first_chunk().ok_or(io::ErrorKind::UnexpectedEof)?;
    match (u32::from_le_bytes(*length) as usize).cmp(&bytes.len()) {
        Ordering::Equal => Ok(bytes),
        Ordering::Greater => Err(io::ErrorKind::UnexpectedEof.into()),
        Ordering::Less => Err(io::Error::new(io::ErrorKind::InvalidData, "more than one message")),
    }
}

/// What the bytes of a message say.
///
/// # Errors
/// `InvalidData` where they are no such message.
pub(crate) fn decoded<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> io::Result<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "more bytes than the message has")),
        Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, error)),
    }
}

/// Reads a frame; none where nothing follows.
///
/// # Errors
/// As the reader; `InvalidData` where it is no such message or too long, `UnexpectedEof` where it is cut off.
pub fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    bytes(from)?.map(|bytes| decoded(&bytes)).transpose()
}

/// No more series than an interval may have.
pub(crate) fn series<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    struct Bounded<T>(std::marker::PhantomData<T>);
    impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Bounded<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "at most {SERIES_MAX} series")
        }

        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
            let mut all = Vec::new();
            while let Some(one) = seq.next_element()? {
                if all.len() == SERIES_MAX {
                    return Err(serde::de::Error::invalid_length(SERIES_MAX + 1, &self));
                }
                all.push(one);
            }
            Ok(all)
        }
    }
    from.deserialize_seq(Bounded(std::marker::PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_follow_each_other_and_what_is_no_frame_is_refused() {
        let mut stream = Vec::new();
        for message in ["first", "", "third"] {
            write(&message, &mut stream).unwrap();
        }
        let mut reader = &stream[..];
        let mut next = || read::<String>(&mut reader).unwrap();
        assert_eq!(
            [next(), next(), next(), next()].map(|of| of.unwrap_or("-".into())),
            ["first", "", "third", "-"]
        );
        for cut in [1, 4, 6] {
            let error = read::<String>(&mut &stream[..cut]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{cut}");
        }
        let too_long = [&(FRAME_BYTES_MAX as u32 + 1).to_le_bytes()[..], &[0; 9]].concat();
        assert_eq!(read::<String>(&mut &too_long[..]).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let longer = [2, 0, 0, 0, 0, 7];
        assert_eq!(read::<String>(&mut &longer[..]).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
