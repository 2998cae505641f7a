//! The table of sessions.

use std::collections::BTreeSet;

use parking_lot::Mutex;

use crate::engine::bytes::{Malformed, Reader, write_text};
use crate::engine::rows::{Index, Keyed, Row};
use crate::sessions::Session;

impl Keyed for Session {
    type Key = u128;

    fn key(&self) -> &u128 {
        &self.id
    }
}

impl Row for Session {
    const TABLE: u8 = 1;
    const NAME: &'static str = "sessions";
    type Index = Expiries;

    fn encode(&self, out: &mut Vec<u8>) {
        let Session { id, customer_id, created_ms, expires_ms } = self;
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&created_ms.to_le_bytes());
        out.extend_from_slice(&expires_ms.to_le_bytes());
        write_text(customer_id, out);
    }

    fn decode(entry: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Session {
            id: u128::from_le_bytes(entry.array()?),
            created_ms: i64::from_le_bytes(entry.array()?),
            expires_ms: i64::from_le_bytes(entry.array()?),
            customer_id: entry.text()?.into(),
        })
    }

    fn encode_key(id: &u128, out: &mut Vec<u8>) {
        out.extend_from_slice(&id.to_le_bytes());
    }

    fn decode_key(entry: &mut Reader<'_>) -> Result<u128, Malformed> {
        entry.array().map(u128::from_le_bytes)
    }
}

/// Sessions by the moment at which they expire, so that a sweep touches only those that have.
#[derive(Default)]
pub(crate) struct Expiries(Mutex<BTreeSet<(i64, u128)>>);

impl Index<Session> for Expiries {
    fn changed(&self, old: Option<&Session>, new: Option<&Session>) {
        let mut expiries = self.0.lock();
        if let Some(old) = old {
            expiries.remove(&(old.expires_ms, old.id));
        }
        expiries.extend(new.map(|new| (new.expires_ms, new.id)));
    }
}

impl Expiries {
    /// The sessions that have expired at `now_ms`, oldest first, at most `limit`.
    pub(crate) fn until(&self, now_ms: i64, limit: usize) -> Vec<u128> {
        self.0.lock().range(..=(now_ms, u128::MAX)).take(limit).map(|(_, id)| *id).collect()
    }
}
