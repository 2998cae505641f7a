//! What a message looks like on the wire.

use bytes::Bytes;
use memchr::memchr2;
use tidemark_store::messages::{Message, MessageId, PAYLOAD_BYTES_MAX};

/// The part of a message that says who, when and of which kind.
pub const KEY_BYTES: usize = USER_DIGITS + TIME_DIGITS + KIND_BYTES;
pub(crate) const USER_DIGITS: usize = 10;
const TIME_DIGITS: usize = 13;
const KIND_BYTES: usize = 3;

/// Why a text is no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAMessage {
    /// Nothing was sent.
    #[error("the message is missing; send it as /m?c=MESSAGE, or as the body of a POST")]
    Missing,
    /// It is shorter than its key.
    #[error(
        "the message has {0} bytes; it begins with 10 digits of the user, 13 of the time and 3 characters of its type"
    )]
    TooShort(usize),
    /// It is longer than the store takes.
    #[error("the message has {0} bytes; at most {PAYLOAD_BYTES_MAX} are taken")]
    TooLong(usize),
    /// The first 10 characters are no number.
    #[error("the message does not begin with the 10 digits of a user")]
    User,
    /// The next 13 are none either.
    #[error("the user is not followed by the 13 digits of a time in milliseconds")]
    Time,
    /// The next three are not printable.
    #[error("the time is not followed by the 3 characters of a type")]
    Kind,
    /// The text is not UTF-8, so it could not be shown again as it was.
    #[error("the message is not UTF-8")]
    Encoding,
    /// The key has no character.
    #[error("the Idempotency-Key is empty; give it a value, or leave the header out")]
    EmptyIdempotencyKey,
    /// Nobody says which one counts.
    #[error("there are several headers Idempotency-Key; send one")]
    SeveralIdempotencyKeys,
}

/// Reads a message, which has no id yet. Any bytes are a message or say why they are none.
pub fn read_message(payload: Bytes) -> Result<Message, NotAMessage> {
    if payload.is_empty() {
        return Err(NotAMessage::Missing);
    }
    if payload.len() < KEY_BYTES {
        return Err(NotAMessage::TooShort(payload.len()));
    }
    if payload.len() > PAYLOAD_BYTES_MAX {
        return Err(NotAMessage::TooLong(payload.len()));
    }
    let user = number(&payload[..USER_DIGITS]).ok_or(NotAMessage::User)?;
    let time_ms = number(&payload[USER_DIGITS..USER_DIGITS + TIME_DIGITS]).ok_or(NotAMessage::Time)?;
    let kind = &payload[USER_DIGITS + TIME_DIGITS..KEY_BYTES];
    let kind: [u8; KIND_BYTES] = kind.try_into().map_err(|_| NotAMessage::Kind)?;
    if !kind.iter().all(u8::is_ascii_graphic) {
        return Err(NotAMessage::Kind);
    }
    if std::str::from_utf8(&payload).is_err() {
        return Err(NotAMessage::Encoding);
    }
    Ok(Message { user, time_ms, kind, id: MessageId::NONE, payload })
}

/// Reads the message that a query has as its field `c`: `c=TEXT`, with what is special in a query percent-encoded. Any
/// query has one or says why not.
pub fn message_of_query(query: &str) -> Result<Message, NotAMessage> {
    read_message(field(query, "c").unwrap_or_default())
}

/// The number that all of these digits are.
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.wrapping_sub(b'0');
        (digit < 10).then(|| number * 10 + u64::from(digit))
    })
}

/// The value of a field of a query as it was meant: percent signs and pluses decoded. Of several the first counts.
pub(crate) fn field(query: &str, name: &str) -> Option<Bytes> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    if memchr2(b'%', b'+', value.as_bytes()).is_none() {
        return Some(Bytes::copy_from_slice(value.as_bytes()));
    }
    let spaced: Vec<u8> = value.bytes().map(|byte| if byte == b'+' { b' ' } else { byte }).collect();
    Some(percent_encoding::percent_decode(&spaced).collect::<Vec<u8>>().into())
}

#[cfg(test)]
mod tests {
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    use proptest::prelude::*;

    use super::*;

    const PUBLISHED: &str = "00000000421425000000123DEF41.7127837,42.71278370000.0";

    fn read(text: &str) -> Result<Message, NotAMessage> {
        read_message(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn the_published_form_is_read() {
        let message = read(PUBLISHED).unwrap();
        assert_eq!((message.user, message.time_ms, message.kind), (42, 1_425_000_000_123, *b"DEF"));
        assert_eq!(message.payload, PUBLISHED);
        assert_eq!(read(&PUBLISHED[..KEY_BYTES]).unwrap().payload, PUBLISHED[..KEY_BYTES]);
    }

    #[test]
    fn what_is_no_message_says_why() {
        assert_eq!(read(""), Err(NotAMessage::Missing));
        assert_eq!(read(&PUBLISHED[..25]), Err(NotAMessage::TooShort(25)));
        assert_eq!(read(&PUBLISHED.replacen('0', "x", 1)), Err(NotAMessage::User));
        assert_eq!(read(&PUBLISHED.replacen("42", "+2", 1)), Err(NotAMessage::User));
        assert_eq!(read(&PUBLISHED.replace("123DEF", "-23DEF")), Err(NotAMessage::Time));
        assert_eq!(read(&PUBLISHED.replace("DEF", "D F")), Err(NotAMessage::Kind));
        let long = PUBLISHED.to_owned() + &"x".repeat(PAYLOAD_BYTES_MAX);
        assert_eq!(read(&long), Err(NotAMessage::TooLong(long.len())));
        assert!(read(&long[..PAYLOAD_BYTES_MAX]).is_ok());
        let bytes = [PUBLISHED.as_bytes(), &[0xff]].concat();
        assert_eq!(read_message(bytes.into()), Err(NotAMessage::Encoding));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_as_sent_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(message) = read_message(bytes.clone().into()) {
                prop_assert_eq!(&message.payload[..], &bytes[..]);
            }
        }

        #[test]
        fn bytes_behind_a_key_change_nothing_but_the_payload(tail in "\\PC{0,100}") {
            let text = format!("00000000421425000000123DEF{tail}");
            let message = read(&text).unwrap();
            prop_assert_eq!((message.user, message.time_ms, message.kind), (42, 1_425_000_000_123, *b"DEF"));
        }

        #[test]
        fn what_was_encoded_is_decoded(text in ".{0,60}", other in "[a-z]{0,5}") {
            let query = format!("x={other}&c={}&c=other", utf8_percent_encode(&text, NON_ALPHANUMERIC));
            let found = field(&query, "c");
            prop_assert_eq!(found.as_deref(), Some(text.as_bytes()));
        }

        #[test]
        fn any_query_has_the_field_or_not(query in ".{0,60}") {
            let _ = field(&query, "c");
        }
    }
}
