//! What tells messages of one user, time and kind apart.

use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid, Version};

/// The id of a message, given before the message is sent anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(Uuid);

impl MessageId {
    /// Bytes of an id.
    pub const BYTES: usize = 16;
    /// No id of its own: a message with the same user, time and kind, and no id either, replaces it.
    pub const NONE: MessageId = MessageId(Uuid::nil());

    /// An id that no other message has (a UUID of version 7). This process gives them in order.
    pub fn unique() -> Self {
        MessageId(Uuid::now_v7())
    }

    /// The id of every message with this whole payload that was sent with this idempotency key (a UUID of version 8). A
    /// client chooses both, so the hash is one in which nobody finds two that are alike: SHA-256, cut to a UUID.
    pub fn of_idempotency_key(key: &[u8], payload: &[u8]) -> Self {
        let mut hash = Sha256::new();
        // the length tells where the key ends
        hash.update((key.len() as u64).to_be_bytes());
        hash.update(key);
        hash.update(payload);
        let mut id = [0; Self::BYTES];
        id.copy_from_slice(&hash.finalize()[..Self::BYTES]);
        MessageId(Builder::from_bytes(id).with_version(Version::Custom).into_uuid())
    }

    /// When it was given, in milliseconds since 1970; none for an id that has no time.
    pub(crate) fn given_ms(&self) -> Option<u64> {
        let [a, b, c, d, e, f, ..] = *self.as_bytes();
        (self.0.get_version_num() == 7).then(|| u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    /// Its bytes; their order is that of ids.
    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        self.0.as_bytes()
    }

    /// The id that has these bytes.
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        MessageId(Uuid::from_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn unique_ids_are_in_order_and_differ_between_threads() {
        let give = || (0..2000).map(|_| MessageId::unique()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(give)).collect();
        let given: Vec<Vec<MessageId>> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        for of_one in &given {
            assert!(of_one.is_sorted_by(|before, after| before < after));
        }
        let all: HashSet<MessageId> = given.concat().into_iter().collect();
        assert_eq!(all.len(), 8000);
        assert!(all.iter().all(|id| id.given_ms().is_some_and(|at| at > 1_700_000_000_000)));
    }

    #[test]
    fn a_key_is_one_id_and_no_unique_one() {
        let id = MessageId::of_idempotency_key;
        let of_a = id(b"a", b"text");
        assert_eq!(of_a, id(b"a", b"text"));
        for (key, payload) in [("b", "text"), ("a", "texts"), ("at", "ext"), ("", "atext")] {
            assert_ne!(of_a, id(key.as_bytes(), payload.as_bytes()), "{key} {payload}");
        }
        assert_ne!(id(b"", b""), MessageId::NONE);
        assert_eq!((of_a.given_ms(), MessageId::NONE.given_ms()), (None, None));
        assert_eq!(MessageId::from_bytes(*of_a.as_bytes()), of_a);
    }
}
