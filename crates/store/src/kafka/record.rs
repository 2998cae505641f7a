//! A message as a record of the topic: the message's key as the record's, so that all of one key are in one partition;
//! the payload as its value; its time of writing, where the store behind goes by such times, as a header.

use bytes::Bytes;
use rdkafka::message::{Header, Headers, OwnedHeaders};

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

/// The header with the time of writing in microseconds since 1970: 8 bytes, the first the highest.
const WRITTEN: &str = "written";

/// The headers of a message's record.
pub(super) fn headers(at_us: i64) -> OwnedHeaders {
    let at = at_us.to_be_bytes();
    OwnedHeaders::new_with_capacity(1).insert(Header { key: WRITTEN, value: Some(&at) })
}

/// The time of writing that a record has.
pub(super) fn written_us(headers: Option<&impl Headers>) -> Option<i64> {
    let header = headers?.iter().find(|header| header.key == WRITTEN)?;
    Some(i64::from_be_bytes(header.value?.try_into().ok()?))
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
    fn a_time_of_writing_is_read_as_it_was_written() {
        for at_us in [0, 1, -1, i64::MAX, 1_700_000_000_000_000] {
            assert_eq!(written_us(Some(&headers(at_us))), Some(at_us));
        }
        let foreign = |key, value: Option<&[u8]>| OwnedHeaders::new().insert(Header { key, value });
        assert_eq!(written_us(Some(&foreign(WRITTEN, Some(b"seven b")))), None);
        assert_eq!(written_us(Some(&foreign(WRITTEN, None))), None);
        assert_eq!(written_us(Some(&foreign("other", Some(&[0; 8])))), None);
        assert_eq!(written_us(None::<&OwnedHeaders>), None);
    }

    #[test]
    fn what_no_store_takes_is_no_message() {
        let key = [b'1'; KEY_BYTES];
        assert!(message(Some(&key), Some(&[0; PAYLOAD_BYTES_MAX])).is_some());
        assert!(message(Some(&key), Some(&[0; PAYLOAD_BYTES_MAX + 1])).is_none());
    }
}
