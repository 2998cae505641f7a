//! What is read far more often than it changes, kept where it is read quickly.
//!
//! A cached value is never stale: whoever finds none gets a [`Lease`], and what is put with it counts only if nothing
//! was invalidated meanwhile. A cache that does not answer has nothing: each method that fails is a miss.

mod memory;

use bytes::Bytes;

use crate::answer::Answer;
use crate::metrics::StoreMetrics;

pub use memory::Memory;

/// What is cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheKey {
    /// A participant: `Participant::ID`.
    Participant(u64),
    /// The friends of a participant: `Friends::ID`.
    Friends(u64),
}

impl std::fmt::Display for CacheKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CacheKey::Participant(id) => write!(f, "Participant::{id}"),
            CacheKey::Friends(id) => write!(f, "Friends::{id}"),
        }
    }
}

/// Allows to put a value that is read from now on, until the key is invalidated. A random number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease(pub u64);

/// What a cache has for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cached {
    /// The value.
    Hit(Bytes),
    /// Nothing; the value may be put with this lease.
    Miss(Lease),
    /// Nothing, and nothing is to be put: somebody else has the lease, or the cache does not work.
    Skip,
}

/// A cache in front of [`People`](crate::people::People).
pub trait Cache: Send + Sync {
    /// What there is for each of these keys, in one round trip where all are there.
    fn get<'a>(&'a self, keys: &'a [CacheKey]) -> Answer<'a, Vec<Cached>>;

    /// Puts a value that was read behind the lease.
    fn put(&self, key: CacheKey, lease: Lease, value: Bytes) -> Answer<'_, ()>;

    /// Puts a value of something that was just made and never changes.
    fn put_new(&self, key: CacheKey, value: Bytes) -> Answer<'_, ()>;

    /// Forgets these keys, and all leases for them. What could not be forgotten now is not shown until it is.
    fn invalidate<'a>(&'a self, keys: &'a [CacheKey]) -> Answer<'a, ()>;

    /// The cache's counters, now.
    fn metrics(&self) -> StoreMetrics {
        StoreMetrics::default()
    }
}
