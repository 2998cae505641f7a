//! Participants and friends: the cache is asked before the store.

use std::sync::Arc;

use serde::Deserialize;
use tidemark_store::StoreError;
use tidemark_store::cache::{Cache, CacheKey, Cached, Lease};
use tidemark_store::people::{Befriended, Friend, Participant, People};

use crate::operations::{Operation, Operations};
use crate::shapes::{FriendShape, ParticipantShape, json_of};

/// The store of participants and friends, behind a cache if there is one.
pub(crate) struct CachedPeople {
    pub(crate) store: Arc<dyn People>,
    pub(crate) cache: Option<Arc<dyn Cache>>,
    pub(crate) operations: Arc<Operations>,
}

/// A cached participant; others may have written more.
#[derive(Deserialize)]
struct CachedParticipant {
    id: u64,
    name: String,
}

#[derive(Deserialize)]
struct CachedFriend<'a> {
    id: u64,
    to: &'a str,
}

fn participant_of(value: &[u8]) -> Option<Participant> {
    let CachedParticipant { id, name } = serde_json::from_slice(value).ok()?;
    Some(Participant { id, name: name.into() })
}

fn friends_of(value: &[u8]) -> Option<Vec<Friend>> {
    let cached: Vec<CachedFriend<'_>> = serde_json::from_slice(value).ok()?;
    let friend = |CachedFriend { id, to }: CachedFriend<'_>| {
        let participant = to.strip_prefix("/participant/")?.parse().ok()?;
        Some(Friend { friendship: id, participant })
    };
    cached.into_iter().map(friend).collect()
}

/// What is to be done about a key that the cache was asked for.
enum Found<T> {
    Value(T),
    Read(Option<Lease>),
}

impl<T> Found<T> {
    fn of(cached: Option<Cached>, read: impl FnOnce(&[u8]) -> Option<T>) -> Self {
        match cached {
            Some(Cached::Hit(value)) => read(&value).map_or(Found::Read(None), Found::Value),
            Some(Cached::Miss(lease)) => Found::Read(Some(lease)),
            Some(Cached::Skip) | None => Found::Read(None),
        }
    }
}

impl CachedPeople {
    /// What the cache has for these keys; nothing for all of them if it does not answer.
    async fn cached(&self, keys: &[CacheKey]) -> std::vec::IntoIter<Cached> {
        match &self.cache {
            Some(cache) => cache.get(keys).await.unwrap_or_default().into_iter(),
            None => Vec::new().into_iter(),
        }
    }

    async fn put(&self, key: CacheKey, lease: Option<Lease>, value: impl FnOnce() -> bytes::Bytes) {
        if let (Some(cache), Some(lease)) = (&self.cache, lease) {
            // a cache that does not take it has none
            let _ = cache.put(key, lease, value()).await;
        }
    }

    async fn load_participant(
        &self,
        id: u64,
        found: Found<Participant>,
    ) -> Result<Option<Participant>, StoreError> {
        let lease = match found {
            Found::Value(participant) => return Ok(Some(participant)),
            Found::Read(lease) => lease,
        };
        let loaded = self.operations.timed(Operation::ParticipantLoad, self.store.find(id)).await?;
        if let Some(participant) = &loaded {
            let shape = || json_of(&ParticipantShape::from(participant));
            self.put(CacheKey::Participant(id), lease, shape).await;
        }
        Ok(loaded)
    }

    async fn load_friends(&self, id: u64, found: Found<Vec<Friend>>) -> Result<Vec<Friend>, StoreError> {
        let lease = match found {
            Found::Value(friends) => return Ok(friends),
            Found::Read(lease) => lease,
        };
        let friends = self.operations.timed(Operation::FriendLoad, self.store.friends(id)).await?;
        let shapes =
            || json_of(&friends.iter().map(|friend| FriendShape::new(id, *friend)).collect::<Vec<_>>());
        self.put(CacheKey::Friends(id), lease, shapes).await;
        Ok(friends)
    }

    pub(crate) async fn participant(&self, id: u64) -> Result<Option<Participant>, StoreError> {
        let mut cached = self.cached(&[CacheKey::Participant(id)]).await;
        self.load_participant(id, Found::of(cached.next(), participant_of)).await
    }

    /// A participant and their friends, none if there is no such participant.
    pub(crate) async fn with_friends(
        &self,
        id: u64,
    ) -> Result<Option<(Participant, Vec<Friend>)>, StoreError> {
        let mut cached = self.cached(&[CacheKey::Participant(id), CacheKey::Friends(id)]).await;
        let participant = Found::of(cached.next(), participant_of);
        let friends = Found::of(cached.next(), friends_of);
        let Some(participant) = self.load_participant(id, participant).await? else { return Ok(None) };
        Ok(Some((participant, self.load_friends(id, friends).await?)))
    }

    /// The friends of somebody who is there.
    pub(crate) async fn friends(&self, id: u64) -> Result<Vec<Friend>, StoreError> {
        let mut cached = self.cached(&[CacheKey::Friends(id)]).await;
        self.load_friends(id, Found::of(cached.next(), friends_of)).await
    }

    pub(crate) async fn create(&self, name: &str) -> Result<Participant, StoreError> {
        let created = self.store.create(name.into());
        let participant = self.operations.timed(Operation::ParticipantStore, created).await?;
        if let Some(cache) = &self.cache {
            let shape = json_of(&ParticipantShape::from(&participant));
            let _ = cache.put_new(CacheKey::Participant(participant.id), shape).await;
        }
        Ok(participant)
    }

    pub(crate) async fn befriend(&self, from: u64, to: u64) -> Result<Befriended, StoreError> {
        let Some(cache) = self.cache.clone() else {
            return self.operations.timed(Operation::FriendStore, self.store.befriend(from, to)).await;
        };
        // goes on if who asked for it hangs up: what is stored is forgotten by the cache, too
        let (store, operations) = (self.store.clone(), self.operations.clone());
        let both = tokio::spawn(async move {
            let befriended = operations.timed(Operation::FriendStore, store.befriend(from, to)).await;
            // where nothing is known about it they may be friends
            if !matches!(befriended, Ok(Befriended::NoSuchParticipant(_) | Befriended::TooManyFriends(_))) {
                // a cache that does not forget them now shows nothing of them until it has
                let _ = cache.invalidate(&[CacheKey::Friends(from), CacheKey::Friends(to)]).await;
            }
            befriended
        });
        both.await.unwrap_or(Err(StoreError::Closed))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_cached_is_read_back(id in 1u64.., name in ".{1,50}", friends in prop::collection::vec((1u64.., 1u64..), 0..5)) {
            let participant = Participant { id, name: name.into() };
            let cached = json_of(&ParticipantShape::from(&participant));
            prop_assert_eq!(participant_of(&cached), Some(participant));
            let friends: Vec<_> =
                friends.into_iter().map(|(friendship, participant)| Friend { friendship, participant }).collect();
            let shapes: Vec<_> = friends.iter().map(|friend| FriendShape::new(id, *friend)).collect();
            prop_assert_eq!(friends_of(&json_of(&shapes)), Some(friends));
        }

        #[test]
        fn any_bytes_are_cached_values_or_none(value in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = (participant_of(&value), friends_of(&value));
        }
    }
}
