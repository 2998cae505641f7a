//! A message as a record of the topic: the message's key as the record's, so that all of one key are in one partition;
//! the payload as its value.

use bytes::Bytes;

use crate::messages::{Message, PAYLOAD_BYTES_MAX};

/// Bytes of a key: user and time, the first byte the highest, then the kind.
const KEY_BYTES: usize = 8 + 8 + 3;

/// The key of a message's record.
pub(super) fn key(message: &Message) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&message.user.to_be_bytes());
    key[8..16].copy_from_slice(&message.time_ms.to_be_bytes());
    key[16..].copy_from_slice(&message.kind);
    key
}

/// The message that a record is; none where somebody else wrote it.
pub(super) fn message(key: Option<&[u8]>, value: Option<&[u8]>) -> Option<Message> {
    let (user, rest) = key?.split_first_chunk()?;
    let (time, kind) = rest.split_first_chunk()?;
    let payload = value.filter(|value| value.len() <= PAYLOAD_BYTES_MAX)?;
    Some(Message {
        user: u64::from_be_bytes(*user),
        time_ms: u64::from_be_bytes(*time),
        kind: kind.try_into().ok()?,
        payload: Bytes::copy_from_slice(payload),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_message_is_read_as_it_was_written(user: u64, time_ms: u64, kind: [u8; 3], payload: Vec<u8>) {
            let written = Message { user, time_ms, kind, payload: payload.into() };
            prop_assert_eq!(message(Some(&key(&written)), Some(&written.payload)), Some(written));
        }

        #[test]
        fn any_record_is_a_message_or_none(key: Option<Vec<u8>>, value: Option<Vec<u8>>) {
            let read = message(key.as_deref(), value.as_deref());
            prop_assert_eq!(read.is_some(), key.is_some_and(|key| key.len() == KEY_BYTES) && value.is_some());
        }
    }

    #[test]
    fn what_no_store_takes_is_no_message() {
        let key = [b'1'; KEY_BYTES];
        assert!(message(Some(&key), Some(&[0; PAYLOAD_BYTES_MAX])).is_some());
        assert!(message(Some(&key), Some(&[0; PAYLOAD_BYTES_MAX + 1])).is_none());
    }
}
