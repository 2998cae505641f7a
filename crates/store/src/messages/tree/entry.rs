//! A message as bytes, the same in the log and in the runs: user, time (each 8 bytes, big end first), kind, length of
//! the payload (2 bytes), payload.

use super::super::{Message, PAYLOAD_BYTES_MAX, Place};

/// User and place: the order of everything.
pub(crate) type Key = (u64, Place);

/// Bytes of an entry in front of its payload.
pub(crate) const HEAD_BYTES: usize = 8 + 8 + 3 + 2;

const _: () = assert!(PAYLOAD_BYTES_MAX <= u16::MAX as usize);

/// Appends a message. Its payload has been checked to be no longer than [`PAYLOAD_BYTES_MAX`].
pub(crate) fn write_message(message: &Message, to: &mut Vec<u8>) {
    write(&(message.user, message.place()), &message.payload, to);
}

/// Appends an entry.
pub(crate) fn write(key: &Key, payload: &[u8], to: &mut Vec<u8>) {
    debug_assert!(payload.len() <= PAYLOAD_BYTES_MAX);
    write_key(key, to);
    to.extend_from_slice(&(payload.len() as u16).to_be_bytes());
    to.extend_from_slice(payload);
}

/// Bytes of a key.
pub(crate) const KEY_BYTES: usize = 8 + 8 + 3;

pub(crate) fn write_key((user, place): &Key, to: &mut Vec<u8>) {
    to.extend_from_slice(&user.to_be_bytes());
    to.extend_from_slice(&place.time_ms.to_be_bytes());
    to.extend_from_slice(&place.kind);
}

/// The key that the bytes begin with.
pub(crate) fn read_key(bytes: &[u8]) -> Option<Key> {
    let user = u64::from_be_bytes(bytes.get(..8)?.try_into().ok()?);
    let time_ms = u64::from_be_bytes(bytes.get(8..16)?.try_into().ok()?);
    let kind = bytes.get(16..19)?.try_into().ok()?;
    Some((user, Place { time_ms, kind }))
}

/// The entry at `at`: its key, where its payload is, where the next entry begins. Nothing if the bytes hold no whole
/// entry there.
pub(crate) fn read(bytes: &[u8], at: usize) -> Option<(Key, std::ops::Range<usize>)> {
    let head = bytes.get(at..at + HEAD_BYTES)?;
    let key = read_key(head)?;
    let length = u16::from_be_bytes([head[19], head[20]]) as usize;
    let begin = at + HEAD_BYTES;
    (length <= PAYLOAD_BYTES_MAX && begin + length <= bytes.len()).then_some((key, begin..begin + length))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn entries_read_back(user: u64, time_ms: u64, kind: [u8; 3], payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            let message = Message { user, time_ms, kind, payload: Bytes::from(payload.clone()) };
            let mut bytes = vec![7];
            write_message(&message, &mut bytes);
            let (key, range) = read(&bytes, 1).unwrap();
            prop_assert_eq!(key, (user, message.place()));
            prop_assert_eq!(&bytes[range.clone()], payload.as_slice());
            prop_assert_eq!(range.end, bytes.len());
            for end in 1..bytes.len() {
                prop_assert_eq!(read(&bytes[..end], 1), None);
            }
        }

        #[test]
        fn any_bytes_are_an_entry_within_them_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..100), at in 0usize..120) {
            if let Some((_, range)) = read(&bytes, at) {
                prop_assert!(range.end <= bytes.len() && range.start <= range.end);
            }
        }
    }
}
