//! A message as a record of the topic: the message's place as the record's key, so that all of one place are in one
//! partition, and a record that is read again is the same message; the payload as its value; its time of writing, where the store behind goes by such times, as a header.

use bytes::Bytes;
use rdkafka::message::{Header, Headers, OwnedHeaders};

use crate::messages::{Message, MessageId, PAYLOAD_BYTES_MAX};

/// Bytes of a key without an id: user and time, the first byte the highest, then the kind.
const KEY_BYTES: usize = 8 + 8 + 3;
/// And of one with an id behind it.
const KEY_BYTES_MAX: usize = KEY_BYTES + MessageId::BYTES;

/// The key of a message's record.
pub(super) struct RecordKey([u8; KEY_BYTES_MAX], usize);

impl RecordKey {
    /// Its bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

/// The key of a message's record. A message without an id of its own has none in its key, as in earlier versions.
pub(super) fn key(message: &Message) -> RecordKey {
    let mut key = [0; KEY_BYTES_MAX];
    key[..8].copy_from_slice(&message.user.to_be_bytes());
    key[8..16].copy_from_slice(&message.time_ms.to_be_bytes());
    key[16..KEY_BYTES].copy_from_slice(&message.kind);
    key[KEY_BYTES..].copy_from_slice(message.id.as_bytes());
    RecordKey(key, if message.id == MessageId::NONE { KEY_BYTES } else { KEY_BYTES_MAX })
}

/// The message that a record is; none where somebody else wrote it.
pub(super) fn message(key: Option<&[u8]>, value: Option<&[u8]>) -> Option<Message> {
    let (user, rest) = key?.split_first_chunk()?;
    let (time, rest) = rest.split_first_chunk()?;
    let (kind, id) = rest.split_first_chunk()?;
    let id = match id {
        [] => MessageId::NONE,
        id => MessageId::from_bytes(id.try_into().ok()?),
    };
    let payload = value.filter(|value| value.len() <= PAYLOAD_BYTES_MAX)?;
    Some(Message {
        user: u64::from_be_bytes(*user),
        time_ms: u64::from_be_bytes(*time),
        kind: *kind,
        id,
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
        fn a_message_is_read_as_it_was_written(user: u64, time_ms: u64, kind: [u8; 3], id: Option<[u8; 16]>, payload: Vec<u8>) {
            let id = id.map_or(MessageId::NONE, MessageId::from_bytes);
            let written = Message { user, time_ms, kind, id, payload: payload.into() };
            prop_assert_eq!(message(Some(key(&written).bytes()), Some(&written.payload)), Some(written));
        }

        #[test]
        fn any_record_is_a_message_or_none(key: Option<Vec<u8>>, value: Option<Vec<u8>>) {
            let read = message(key.as_deref(), value.as_deref());
            let is_key = key.is_some_and(|key| [KEY_BYTES, KEY_BYTES_MAX].contains(&key.len()));
            prop_assert_eq!(read.is_some(), is_key && value.is_some());
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
