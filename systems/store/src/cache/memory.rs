//! A cache in this process, of so many bytes.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;

use super::{Cache, CacheKey, Cached, Lease};
use crate::answer::Answer;
use crate::metrics::{OwnMetric, StoreMetrics};

/// Parts that are locked apart.
const SHARDS: usize = 16;
/// What an entry takes beside its value, roughly.
const ENTRY_BYTES: usize = 160;
/// How long a lease holds. What takes longer to be read is not put.
const LEASE: Duration = Duration::from_secs(10);

/// Values in this process. When there are too many bytes the oldest go, those that were read meanwhile once later.
///
/// ```
/// use std::time::Duration;
/// use tidemark_store::cache::{Cache, CacheKey, Cached, Memory};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let (cache, key) = (Memory::new(1 << 20, Duration::from_secs(300)), CacheKey::Friends(7));
/// let Cached::Miss(lease) = cache.get(&[key]).await?[0] else { panic!("it is empty") };
/// cache.put(key, lease, "[]".into()).await?;
/// assert_eq!(cache.get(&[key]).await?, [Cached::Hit("[]".into())]);
/// # Ok::<(), tidemark_store::StoreError>(())
/// # }).unwrap();
/// ```
pub struct Memory {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    shard_bytes_max: usize,
    ttl: Duration,
    lease: AtomicU64,
    counters: Counters,
}

#[derive(Default)]
struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
    skipped: AtomicU64,
    refused: AtomicU64,
    evicted: AtomicU64,
}

#[derive(Default)]
struct Shard {
    entries: HashMap<CacheKey, Entry>,
    /// Keys in the order in which their entries came; those whose entry has another number are of one that has gone.
    order: VecDeque<(CacheKey, u64)>,
    bytes: usize,
    number: u64,
}

struct Entry {
    number: u64,
    expires: Instant,
    what: What,
}

enum What {
    Value { value: Bytes, was_read: bool },
    Lease(Lease),
}

impl Entry {
    fn bytes(&self) -> usize {
        match &self.what {
            What::Value { value, .. } => ENTRY_BYTES + value.len(),
            What::Lease(_) => ENTRY_BYTES,
        }
    }
}

impl Shard {
    fn remove(&mut self, key: CacheKey) {
        if let Some(entry) = self.entries.remove(&key) {
            self.bytes -= entry.bytes();
        }
        // what is left of entries that have gone is bounded by those that are there
        if self.order.len() > 2 * self.entries.len() + 64 {
            let entries = &self.entries;
            self.order.retain(|(key, number)| entries.get(key).is_some_and(|entry| entry.number == *number));
        }
    }

    fn insert(&mut self, key: CacheKey, expires: Instant, what: What) {
        self.remove(key);
        self.number += 1;
        let entry = Entry { number: self.number, expires, what };
        self.bytes += entry.bytes();
        self.order.push_back((key, self.number));
        self.entries.insert(key, entry);
    }

    /// Removes the oldest until there are at most so many bytes. Tells how many.
    fn evict(&mut self, bytes_max: usize, now: Instant) -> u64 {
        let mut evicted = 0;
        while self.bytes > bytes_max
            && let Some((key, number)) = self.order.pop_front()
        {
            let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.number == number) else {
                continue;
            };
            match &mut entry.what {
                What::Value { was_read, .. } if *was_read && entry.expires > now => {
                    *was_read = false;
                    self.order.push_back((key, number));
                }
                _ => {
                    self.remove(key);
                    evicted += 1;
                }
            }
        }
        evicted
    }
}

impl Memory {
    /// With at most so many bytes, roughly; each value lives so long.
    pub fn new(bytes_max: usize, ttl: Duration) -> Arc<Self> {
        Arc::new(Memory {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            shard_bytes_max: bytes_max / SHARDS,
            ttl,
            lease: AtomicU64::new(1),
            counters: Counters::default(),
        })
    }

    fn shard(&self, key: CacheKey) -> &Mutex<Shard> {
        &self.shards[self.hasher.hash_one(key) as usize % SHARDS]
    }

    fn get_one(&self, key: CacheKey, now: Instant) -> Cached {
        let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
        let mut shard = self.shard(key).lock();
        if let Some(entry) = shard.entries.get_mut(&key).filter(|entry| entry.expires > now) {
            return match &mut entry.what {
                What::Value { value, was_read } => {
                    *was_read = true;
                    count(&self.counters.hits);
                    Cached::Hit(value.clone())
                }
                What::Lease(_) => {
                    count(&self.counters.skipped);
                    Cached::Skip
                }
            };
        }
        count(&self.counters.misses);
        let lease = Lease(self.lease.fetch_add(1, Ordering::Relaxed));
        self.insert(&mut shard, key, now + LEASE, What::Lease(lease));
        Cached::Miss(lease)
    }

    fn insert(&self, shard: &mut Shard, key: CacheKey, expires: Instant, what: What) {
        shard.insert(key, expires, what);
        let evicted = shard.evict(self.shard_bytes_max, Instant::now());
        self.counters.evicted.fetch_add(evicted, Ordering::Relaxed);
    }

    fn put_value(&self, key: CacheKey, lease: Option<Lease>, value: Bytes) {
        let now = Instant::now();
        let mut shard = self.shard(key).lock();
        let holds = |entry: &Entry| matches!(entry.what, What::Lease(held) if Some(held) == lease);
        let may = lease.is_none()
            || shard.entries.get(&key).is_some_and(|entry| holds(entry) && entry.expires > now);
        if !may {
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // one that others keep alive may be a part of something larger
        let value = Bytes::copy_from_slice(&value);
        self.insert(&mut shard, key, now + self.ttl, What::Value { value, was_read: false });
    }
}

impl Cache for Memory {
    fn get<'a>(&'a self, keys: &'a [CacheKey]) -> Answer<'a, Vec<Cached>> {
        let now = Instant::now();
        Answer::ready(Ok(keys.iter().map(|key| self.get_one(*key, now)).collect()))
    }

    fn put(&self, key: CacheKey, lease: Lease, value: Bytes) -> Answer<'_, ()> {
        self.put_value(key, Some(lease), value);
        Answer::ready(Ok(()))
    }

    fn put_new(&self, key: CacheKey, value: Bytes) -> Answer<'_, ()> {
        self.put_value(key, None, value);
        Answer::ready(Ok(()))
    }

    fn invalidate<'a>(&'a self, keys: &'a [CacheKey]) -> Answer<'a, ()> {
        keys.iter().for_each(|key| self.shard(*key).lock().remove(*key));
        Answer::ready(Ok(()))
    }

    fn metrics(&self) -> StoreMetrics {
        let Counters { hits, misses, skipped, refused, evicted } = &self.counters;
        let (mut bytes, mut entries) = (0, 0);
        for shard in &self.shards {
            let shard = shard.lock();
            bytes += shard.bytes;
            entries += shard.entries.len();
        }
        let counter = OwnMetric::counter;
        let gauge = |name, help, value: usize| OwnMetric::gauge(name, help, value as u64);
        let own = vec![
            counter("hits", "Values that were there", hits),
            counter("misses", "Values that were not there, and could be put", misses),
            counter("skipped", "Values that were not there, and that somebody else was to put", skipped),
            counter("puts_refused", "Values that were not put: the lease was gone", refused),
            counter("evicted", "Entries that went for others", evicted),
            gauge("entries", "Values and leases", entries),
            gauge("bytes", "Bytes of these, roughly", bytes),
            gauge("bytes_max", "The bound of these", self.shard_bytes_max * SHARDS),
        ];
        StoreMetrics { own, ..StoreMetrics::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait<T>(answer: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(answer)
    }

    fn metric(cache: &Memory, name: &str) -> u64 {
        cache.metrics().own.iter().find(|own| own.name == name).expect("it is counted").value
    }

    #[test]
    fn there_are_never_more_bytes_than_may_be_and_what_is_read_stays() {
        let cache = Memory::new(SHARDS * 20 * (ENTRY_BYTES + 40), Duration::from_secs(300));
        let value = Bytes::from(vec![b'x'; 40]);
        let kept = CacheKey::Participant(u64::MAX);
        wait(cache.put_new(kept, value.clone())).unwrap();
        for id in 0..5_000 {
            wait(cache.put_new(CacheKey::Participant(id), value.clone())).unwrap();
            wait(cache.get(&[CacheKey::Friends(id)])).unwrap();
            assert_eq!(wait(cache.get(&[kept])).unwrap(), [Cached::Hit(value.clone())], "{id}");
        }
        assert!(metric(&cache, "bytes") <= metric(&cache, "bytes_max") && metric(&cache, "entries") > 100);
        assert!(metric(&cache, "evicted") > 9_000);
        // one that is larger than all room is not kept, and nothing is left of it
        wait(cache.put_new(CacheKey::Participant(1), vec![0; 1 << 20].into())).unwrap();
        assert!(metric(&cache, "bytes") <= metric(&cache, "bytes_max"));
    }

    #[test]
    fn what_has_gone_leaves_nothing_behind() {
        let cache = Memory::new(1 << 30, Duration::from_secs(300));
        for id in 0..10_000 {
            let key = CacheKey::Friends(id % 3);
            wait(cache.get(&[key])).unwrap();
            wait(cache.invalidate(&[key])).unwrap();
        }
        assert_eq!((metric(&cache, "bytes"), metric(&cache, "entries")), (0, 0));
        assert!(cache.shards.iter().all(|shard| shard.lock().order.len() <= 64));
    }
}
