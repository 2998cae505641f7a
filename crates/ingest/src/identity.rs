//! What makes two requests one message.

use std::fmt;
use std::str::FromStr;

use axum::http::{HeaderMap, HeaderName};
use tidemark_store::messages::MessageId;

/// A client that sends a request again with the same value of this header has one message.
static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Which requests are one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// None: each request is a message of its own, unless it has the `Idempotency-Key` of another.
    Message,
    /// Those of the same user, time and kind, of which the last stays.
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

    /// The id of a message whose request has these headers.
    pub(crate) fn id_of(self, headers: &HeaderMap) -> MessageId {
        match (self, headers.get(&IDEMPOTENCY_KEY)) {
            (Identity::Key, _) => MessageId::NONE,
            (Identity::Message, None) => MessageId::unique(),
            (Identity::Message, Some(key)) => MessageId::of_idempotency_key(key.as_bytes()),
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
        let with = |key| HeaderMap::from_iter([(IDEMPOTENCY_KEY.clone(), HeaderValue::from_static(key))]);
        let id = |headers: &HeaderMap| Identity::Message.id_of(headers);
        assert_ne!(id(&none), id(&none));
        assert_ne!(id(&none), MessageId::NONE);
        assert_eq!(id(&with("a")), id(&with("a")));
        assert_ne!(id(&with("a")), id(&with("b")));
        for headers in [none, with("a")] {
            assert_eq!(Identity::Key.id_of(&headers), MessageId::NONE);
        }
    }
}
