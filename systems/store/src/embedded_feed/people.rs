//! Participants and friendships: tables in memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::engine::bytes::{Malformed, Reader, write_text};
use crate::engine::rows::{Index, Keyed, Row};
use crate::people::{Friend, NAMED_MAX, Participant};

/// Parts of the friends that are locked apart.
const SHARDS: usize = 64;

impl Keyed for Participant {
    type Key = u64;

    fn key(&self) -> &u64 {
        &self.id
    }
}

impl Row for Participant {
    const TABLE: u8 = 5;
    const NAME: &'static str = "participants";
    type Index = Names;

    fn encode(&self, out: &mut Vec<u8>) {
        Self::encode_key(&self.id, out);
        write_text(&self.name, out);
    }

    fn decode(entry: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Participant { id: Self::decode_key(entry)?, name: entry.text()?.into() })
    }

    fn encode_key(id: &u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&id.to_le_bytes());
    }

    fn decode_key(entry: &mut Reader<'_>) -> Result<u64, Malformed> {
        entry.array().map(u64::from_le_bytes)
    }
}

/// Participants by their name, and the greatest id.
#[derive(Default)]
pub(crate) struct Names {
    ids: RwLock<HashMap<Arc<str>, Vec<u64>>>,
    pub(super) greatest: AtomicU64,
}

impl Names {
    /// The first ids with this name, in order.
    pub(super) fn of(&self, name: &str) -> Vec<u64> {
        let ids = self.ids.read();
        ids.get(name).map(|ids| ids.iter().take(NAMED_MAX).copied().collect()).unwrap_or_default()
    }
}

impl Index<Participant> for Names {
    fn changed(&self, old: Option<&Participant>, new: Option<&Participant>) {
        let mut ids = self.ids.write();
        if let Some(old) = old
            && let Some(with_name) = ids.get_mut(&old.name)
        {
            with_name.retain(|id| *id != old.id);
        }
        if let Some(new) = new {
            let with_name = ids.entry(new.name.clone()).or_default();
            let at = with_name.partition_point(|id| *id < new.id);
            with_name.insert(at, new.id);
            self.greatest.fetch_max(new.id, Ordering::Relaxed);
        }
    }
}

/// Two participants who are friends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Friendship {
    pub(super) pair: (u64, u64),
    pub(super) id: u64,
}

/// Two participants in the order in which a friendship has them.
pub(super) fn pair(one: u64, other: u64) -> (u64, u64) {
    (one.min(other), one.max(other))
}

impl Keyed for Friendship {
    type Key = (u64, u64);

    fn key(&self) -> &(u64, u64) {
        &self.pair
    }
}

impl Row for Friendship {
    const TABLE: u8 = 6;
    const NAME: &'static str = "friendships";
    type Index = FriendLists;

    fn encode(&self, out: &mut Vec<u8>) {
        Self::encode_key(&self.pair, out);
        out.extend_from_slice(&self.id.to_le_bytes());
    }

    fn decode(entry: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Friendship { pair: Self::decode_key(entry)?, id: u64::from_le_bytes(entry.array()?) })
    }

    fn encode_key((low, high): &(u64, u64), out: &mut Vec<u8>) {
        out.extend_from_slice(&low.to_le_bytes());
        out.extend_from_slice(&high.to_le_bytes());
    }

    fn decode_key(entry: &mut Reader<'_>) -> Result<(u64, u64), Malformed> {
        Ok((u64::from_le_bytes(entry.array()?), u64::from_le_bytes(entry.array()?)))
    }
}

/// Friends of one participant by the number of their friendship.
type Shard = RwLock<HashMap<u64, Vec<Friend>>>;

/// The friends of each participant, and the greatest number of a friendship.
pub(crate) struct FriendLists {
    shards: [Shard; SHARDS],
    pub(super) greatest: AtomicU64,
}

impl Default for FriendLists {
    fn default() -> Self {
        FriendLists { shards: std::array::from_fn(|_| RwLock::default()), greatest: AtomicU64::new(0) }
    }
}

impl FriendLists {
    fn shard(&self, participant: u64) -> &Shard {
        &self.shards[participant as usize % SHARDS]
    }

    /// The oldest friendship first.
    pub(super) fn of(&self, participant: u64) -> Vec<Friend> {
        self.shard(participant).read().get(&participant).cloned().unwrap_or_default()
    }

    pub(super) fn count_of(&self, participant: u64) -> usize {
        self.shard(participant).read().get(&participant).map_or(0, Vec::len)
    }

    fn change(&self, Friendship { pair: (low, high), id }: &Friendship, is_there: bool) {
        for (one, other) in [(*low, *high), (*high, *low)] {
            let friend = Friend { friendship: *id, participant: other };
            let mut shard = self.shard(one).write();
            let friends = shard.entry(one).or_default();
            match (friends.binary_search(&friend), is_there) {
                (Err(at), true) => friends.insert(at, friend),
                (Ok(at), false) => drop(friends.remove(at)),
                _ => {}
            }
        }
    }
}

impl Index<Friendship> for FriendLists {
    fn changed(&self, old: Option<&Friendship>, new: Option<&Friendship>) {
        if let Some(old) = old {
            self.change(old, false);
        }
        if let Some(new) = new {
            self.change(new, true);
            self.greatest.fetch_max(new.id, Ordering::Relaxed);
        }
    }
}
