//! What makes two requests one message.

use std::fmt;
use std::str::FromStr;

use axum::http::{HeaderMap, HeaderName};
use tidemark_store::messages::MessageId;

use crate::payload::NotAMessage;

/// A client that sends the same content again with the same value of this header has one message.
static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Which requests are one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// None: each request is a message of its own, unless it has the `Idempotency-Key` and the content of another.
    Message,
    /// Those of the same user, time and type, of which the last stays.
    Key,
}

impl Identity {
    /// Its name in settings and metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Identity::Message => "message",
            Identity::Key => "key",
        }
    }

    /// The id of a message with this whole payload, whose request has these headers.
    ///
    /// # Errors
    /// The `Idempotency-Key` is empty, or there are several.
    pub(crate) fn id_of(self, headers: &HeaderMap, payload: &[u8]) -> Result<MessageId, NotAMessage> {
        if self == Identity::Key {
            return Ok(MessageId::NONE);
        }
        let mut keys = headers.get_all(&IDEMPOTENCY_KEY).iter();
        match (keys.next(), keys.next()) {
            (None, _) => Ok(MessageId::unique()),
            (Some(_), Some(_)) => Err(NotAMessage::SeveralIdempotencyKeys),
            (Some(key), None) if key.as_bytes().iter().all(|byte| b" \t\"".contains(byte)) => {
                Err(NotAMessage::EmptyIdempotencyKey)
            }
            (Some(key), None) => Ok(MessageId::of_idempotency_key(key.as_bytes(), payload)),
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Identity {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        [Identity::Message, Identity::Key].into_iter().find(|one| one.as_str() == text).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_request_is_a_message_of_its_own_unless_it_says_otherwise() {
        let none = HeaderMap::new();
        let header = |key| (IDEMPOTENCY_KEY.clone(), HeaderValue::from_static(key));
        let with = |key| HeaderMap::from_iter([header(key)]);
        let id = |headers: &HeaderMap| Identity::Message.id_of(headers, b"text");
        assert_ne!(id(&none), id(&none));
        assert_ne!(id(&none), Ok(MessageId::NONE));
        assert_eq!(id(&with("a")), id(&with("a")));
        assert_ne!(id(&with("a")), id(&with("b")));
        assert_ne!(id(&with("a")), Identity::Message.id_of(&with("a"), b"another"));
        for empty in ["", " ", "\"\""] {
            assert_eq!(id(&with(empty)), Err(NotAMessage::EmptyIdempotencyKey), "{empty:?}");
        }
        let mut twice = with("a");
        twice.append(IDEMPOTENCY_KEY.clone(), HeaderValue::from_static("a"));
        assert_eq!(id(&twice), Err(NotAMessage::SeveralIdempotencyKeys));
        for headers in [none, with("a"), with(""), twice] {
            assert_eq!(Identity::Key.id_of(&headers, b"text"), Ok(MessageId::NONE));
        }
    }
}
