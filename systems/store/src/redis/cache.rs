//! A cache in Redis, under the published keys: `Participant::ID` and `Friends::ID`.
//!
//! **Never stale.** Who finds no value takes a lease, a key `tidemark:lease:KEY` that lives for some seconds, before reading
//! the store. A value is put by a script that does so only while the lease is there; whoever changes the store deletes value and lease after
//! that. What cannot be deleted, since Redis does not answer, is remembered here: such a key is a miss until Redis has
//! forgotten it. A Redis that has begun again may have lost what it was told to forget, and one that is met for the first time
//! may have anything: it is to forget everything first. Of several services with one Redis, one that cannot reach it, or is killed
//! before it could, does not tell the others: they see what they have for the time to live at most.
//!
//! **Never in the way.** Answers are waited for a short time, and after failures in a row not at all but for a probe: each
//! failure is a miss.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue, Pipeline, RedisError};

use super::breaker::Breaker;
use super::forgetting::{Due, Forgetting};
use super::link::{self, carry, described, failed};
use super::options::Options;
use crate::answer::Answer;
use crate::cache::{Cache, CacheKey, Cached, Lease};
use crate::error::StoreError;
use crate::links::{Carrier, Connect, Failed, Links, THREADS};
use crate::metrics::{OwnMetric, StoreMetrics};
use crate::threads::Threads;

/// In front of the key that a lease is for.
const LEASE: &str = "tidemark:lease:";
/// How long a lease holds. What takes longer to be read is not put.
const LEASE_MS: u64 = 10_000;
/// Keys that are looked at, or forgotten, at a time.
const SOME: usize = 1_000;
/// Until it is tried again to forget: doubled from the one to the other.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Puts a value if its lease is there, which it takes.
const PUT: &str = "if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[2])
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1";

/// A cache in Redis.
pub struct RedisCache {
    shared: Arc<Shared>,
    /// Reads and writes the connections.
    _threads: Threads,
}

struct Shared {
    links: Arc<Links<Connector>>,
    forgetting: Arc<Forgetting>,
    breaker: Breaker,
    ttl_ms: u64,
    leases: RandomState,
    counters: Counters,
}

#[derive(Default)]
struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
    skipped: AtomicU64,
    puts: AtomicU64,
    refused: AtomicU64,
    flushes: AtomicU64,
    leases: AtomicU64,
}

fn count(counter: &AtomicU64, by: usize) {
    counter.fetch_add(by as u64, Ordering::Relaxed);
}

/// Makes connections, and learns whether the server is the one that it was.
struct Connector {
    dialler: link::Connector,
    timeout: Duration,
    forgetting: Arc<Forgetting>,
    /// What the server that was connected last calls itself since it began.
    run: Mutex<Option<String>>,
}

impl Connect for Connector {
    type Link = MultiplexedConnection;

    fn place(&self) -> Arc<str> {
        self.dialler.place()
    }

    async fn connect(&self) -> Result<(MultiplexedConnection, Carrier), StoreError> {
        let mut connection = self.dialler.dial().await?;
        let asked = tokio::time::timeout(self.timeout, run_of(&mut connection)).await;
        let run =
            asked.unwrap_or_else(|_| Err(StoreError::no_answer("a new connection was not ready in time")))?;
        let mut known = self.run.lock();
        if run.is_none() || *known != run {
            // before anybody asks it
            self.forgetting.add_all();
            *known = run;
        }
        drop(known);
        Ok((connection.clone(), Box::pin(carry(connection, self.timeout))))
    }
}

/// What the server calls itself since it began; nothing where it does not tell.
async fn run_of(connection: &mut MultiplexedConnection) -> Result<Option<String>, StoreError> {
    let mut info = redis::cmd("INFO");
    let told: Result<String, RedisError> = info.arg("server").query_async(connection).await;
    match told {
        Ok(text) => {
            Ok(text.lines().find_map(|line| line.strip_prefix("run_id:")).map(|id| id.trim().to_owned()))
        }
        Err(error) if error.code() == Some("NOPERM") => Ok(None),
        Err(error) => Err(StoreError::no_answer(described(&error))),
    }
}

impl RedisCache {
    /// Begins to connect, and waits for as long as the start may take; a server that is not there then is used once it is. Its
    /// [`Options::durability`] means nothing here. Values live for `ttl`. Blocks; not to be called on a thread of an async runtime.
    ///
    /// # Errors
    /// Options that cannot work, a server that refuses.
    pub fn open(options: Options, ttl: Duration) -> Result<Arc<Self>, StoreError> {
        options.check()?;
        let threads = Threads::new(THREADS, "redis-cache")?;
        let (bounds, forgetting) = (options.bounds(), Arc::new(Forgetting::all()));
        let connector = Connector {
            timeout: options.timeout,
            dialler: link::Connector::new(options)?,
            forgetting: forgetting.clone(),
            run: Mutex::new(None),
        };
        let links = threads.block_on(async {
            let links = Links::begin(connector, bounds);
            match links.wait().await {
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, "nothing is cached until it is there")
                }
                Err(error) => return Err(error),
                Ok(()) => {}
            }
            Ok(links)
        })?;
        let shared = Arc::new(Shared {
            links,
            forgetting,
            breaker: Breaker::default(),
            ttl_ms: ttl.as_millis().max(1) as u64,
            leases: RandomState::new(),
            counters: Counters::default(),
        });
        threads.spawn(shared.clone().forget_what_is_left());
        Ok(Arc::new(RedisCache { shared, _threads: threads }))
    }
}

fn lease_of(key: CacheKey) -> String {
    format!("{LEASE}{key}")
}

async fn query<T: FromRedisValue>(link: &MultiplexedConnection, command: &Cmd) -> Result<T, Failed> {
    command.query_async(&mut link.clone()).await.map_err(failed)
}

impl Shared {
    /// What the server answers, nothing where it does not.
    async fn ask<T, F>(&self, request: impl FnOnce(Arc<MultiplexedConnection>) -> F) -> Option<T>
    where
        F: Future<Output = Result<T, Failed>>,
    {
        if !self.breaker.lets_through(Instant::now()) {
            return None;
        }
        let answer = self.links.ask(request).await;
        if !matches!(answer, Err(StoreError::Busy { .. })) {
            self.breaker.ended(answer.is_ok(), Instant::now());
        }
        answer.ok()
    }

    async fn get(&self, keys: &[CacheKey]) -> Vec<Cached> {
        // which connection it is is known when this is asked: one to a server that has begun again shows nothing yet
        let is_hidden = |key: &CacheKey| self.forgetting.has(*key);
        let values = self.ask(|link| async move {
            if keys.iter().all(is_hidden) {
                return Ok(None);
            }
            let hidden: Vec<bool> = keys.iter().map(is_hidden).collect();
            let mut command = redis::cmd("MGET");
            keys.iter().for_each(|key| _ = command.arg(key.to_string()));
            let values: Vec<Option<Vec<u8>>> = query(&link, &command).await?;
            Ok(Some(hidden.into_iter().zip(values).collect::<Vec<_>>()))
        });
        let Some(Some(values)) = values.await else {
            count(&self.counters.skipped, keys.len());
            return vec![Cached::Skip; keys.len()];
        };
        let mut found = vec![Cached::Skip; keys.len()];
        let mut missing = Vec::new();
        for (place, (is_hidden, value)) in values.into_iter().take(keys.len()).enumerate() {
            match value {
                _ if is_hidden => {}
                Some(value) => found[place] = Cached::Hit(value.into()),
                None => missing.push((place, self.lease())),
            }
        }
        if !missing.is_empty() {
            let mut leases = Pipeline::new();
            for (place, lease) in &missing {
                let command = leases.cmd("SET").arg(lease_of(keys[*place])).arg(lease.0);
                command.arg("NX").arg("PX").arg(LEASE_MS);
            }
            let leases = &leases;
            let request = |link: Arc<MultiplexedConnection>| async move {
                leases.query_async(&mut MultiplexedConnection::clone(&link)).await.map_err(failed)
            };
            let taken: Vec<Option<String>> = self.ask(request).await.unwrap_or_default();
            for ((place, lease), taken) in missing.into_iter().zip(taken) {
                if taken.is_some() {
                    found[place] = Cached::Miss(lease);
                }
            }
        }
        for one in &found {
            let counter = match one {
                Cached::Hit(_) => &self.counters.hits,
                Cached::Miss(_) => &self.counters.misses,
                Cached::Skip => &self.counters.skipped,
            };
            count(counter, 1);
        }
        found
    }

    /// A number that nobody else has, also no other service.
    fn lease(&self) -> Lease {
        Lease(self.leases.hash_one(self.counters.leases.fetch_add(1, Ordering::Relaxed)))
    }

    async fn put(&self, key: CacheKey, command: &Cmd) {
        let request = |link: Arc<MultiplexedConnection>| async move {
            if self.forgetting.has(key) { Ok(Some(0)) } else { query::<Option<i64>>(&link, command).await }
        };
        match self.ask(request).await {
            Some(Some(1)) => count(&self.counters.puts, 1),
            _ => count(&self.counters.refused, 1),
        }
    }

    async fn invalidate(&self, keys: &[CacheKey]) {
        let numbered = &self.forgetting.add(keys)[..];
        match self.ask(|link| async move { delete(&link, numbered).await }).await {
            Some(()) => self.forgetting.forgotten(numbered),
            None => self.forgetting.left.notify_one(),
        }
    }

    /// Forgets what was not forgotten at once, as long as this lives.
    async fn forget_what_is_left(self: Arc<Self>) {
        let mut pause = PAUSE_MIN;
        loop {
            let done = match self.forgetting.due(SOME) {
                Due::Nothing => {
                    // who asked for it may have gone before the answer, and told nobody
                    let _ = tokio::time::timeout(PAUSE_MAX, self.forgetting.left.notified()).await;
                    continue;
                }
                Due::Keys(keys) => {
                    let numbered = &keys[..];
                    let deleted = self.links.ask(|link| async move { delete(&link, numbered).await }).await;
                    deleted.map(|()| self.forgetting.forgotten(numbered))
                }
                Due::All(number) => self.forget_all().await.map(|()| {
                    self.forgetting.all_forgotten(number);
                    count(&self.counters.flushes, 1);
                }),
            };
            match done {
                Ok(()) => {
                    self.breaker.ended(true, Instant::now());
                    pause = PAUSE_MIN;
                }
                Err(error) => {
                    tracing::debug!(%error, "not forgotten yet");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// Forgets all leases and then all values, so that no value is put with an old lease behind that.
    async fn forget_all(&self) -> Result<(), StoreError> {
        for pattern in [&*format!("{LEASE}*"), "Participant::*", "Friends::*"] {
            let mut cursor = 0u64;
            loop {
                let request = |link: Arc<MultiplexedConnection>| async move {
                    let mut scan = redis::cmd("SCAN");
                    scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(SOME);
                    let (next, keys): (u64, Vec<Vec<u8>>) = query(&link, &scan).await?;
                    if !keys.is_empty() {
                        query::<u64>(&link, redis::cmd("UNLINK").arg(keys)).await?;
                    }
                    Ok(next)
                };
                cursor = self.links.ask(request).await?;
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Deletes values and leases.
async fn delete(link: &MultiplexedConnection, keys: &[(CacheKey, u64)]) -> Result<(), Failed> {
    let mut command = redis::cmd("DEL");
    for (key, _) in keys {
        command.arg(key.to_string()).arg(lease_of(*key));
    }
    query::<u64>(link, &command).await.map(drop)
}

impl Cache for RedisCache {
    fn get<'a>(&'a self, keys: &'a [CacheKey]) -> Answer<'a, Vec<Cached>> {
        Answer::boxed(async move { Ok(self.shared.get(keys).await) })
    }

    fn put(&self, key: CacheKey, lease: Lease, value: Bytes) -> Answer<'_, ()> {
        let mut command = redis::cmd("EVAL");
        command.arg(PUT).arg(2).arg(key.to_string()).arg(lease_of(key));
        command.arg(lease.0).arg(&value[..]).arg(self.shared.ttl_ms);
        Answer::boxed(async move {
            self.shared.put(key, &command).await;
            Ok(())
        })
    }

    fn put_new(&self, key: CacheKey, value: Bytes) -> Answer<'_, ()> {
        let mut command = redis::cmd("EVAL");
        command
            .arg("redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1")
            .arg(1)
            .arg(key.to_string());
        command.arg(&value[..]).arg(self.shared.ttl_ms);
        Answer::boxed(async move {
            self.shared.put(key, &command).await;
            Ok(())
        })
    }

    fn invalidate<'a>(&'a self, keys: &'a [CacheKey]) -> Answer<'a, ()> {
        Answer::boxed(async move {
            self.shared.invalidate(keys).await;
            Ok(())
        })
    }

    fn metrics(&self) -> StoreMetrics {
        let Counters { hits, misses, skipped, puts, refused, flushes, .. } = &self.shared.counters;
        let counter = OwnMetric::counter;
        let gauge = OwnMetric::gauge;
        let (keys, all) = self.shared.forgetting.counts();
        let mut own = self.shared.links.metrics();
        own.extend([
            counter("hits", "Values that were there", hits),
            counter("misses", "Values that were not there, and could be put", misses),
            counter("skipped", "Values that were not there, or not asked for, and could not be put", skipped),
            counter("puts", "Values that were put", puts),
            counter(
                "puts_refused",
                "Values that were not put: the lease was gone, or nobody answered",
                refused,
            ),
            counter("flushes", "How often everything was forgotten, as at the start", flushes),
            gauge("forgetting", "Keys that are to be forgotten: misses until then", keys as u64),
            gauge("forgetting_all", "1 while everything is: nothing is shown until then", u64::from(all)),
            gauge(
                "breaker_open",
                "1 after failures in a row: only a probe is asked",
                u64::from(self.shared.breaker.is_open()),
            ),
        ]);
        StoreMetrics { own, ..StoreMetrics::default() }
    }
}
