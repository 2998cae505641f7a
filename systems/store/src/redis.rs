//! Sessions, and what is cached of a news feed ([`RedisCache`]), in Redis, 6.2 or later, or in what speaks its protocol.
//!
//! ```no_run
//! use tidemark_store::redis::{Options, Redis};
//! use tidemark_store::sessions::Sessions;
//!
//! # async fn example(session: tidemark_store::sessions::Session) -> Result<(), tidemark_store::StoreError> {
//! let store = Redis::open(Options { url: "redis://127.0.0.1:6379/1".into(), ..Options::default() })?;
//! store.create(session).await?;
//! # Ok(()) }
//! ```
//!
//! A session is one key, its id, with a time to expire: Redis itself removes it then, so there is nothing to sweep. Its
//! value also has that time, so that a session that has expired by the asker's clock is not shown. The database with
//! the number that the address names is the store's alone, and has a mark that says so: the number of sessions is that of its keys.
//!
//! **Durability** is the server's: with `appendonly yes` and `appendfsync always` an acknowledged write is on its disk
//! (`synced`); with another `appendfsync` its operating system has it (`buffered`); else, or where it may evict keys,
//! it is `memory`. Every new connection looks, and is not used where it is less than was asked for.

mod breaker;
mod cache;
mod forgetting;
mod link;
mod options;

use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue};

use crate::answer::Answer;
use crate::checks::check_id;
use crate::durability::Durability;
use crate::error::StoreError;
use crate::links::{Links, THREADS};
use crate::metrics::OwnMetric;
use crate::sessions::{Session, Sessions};
use crate::threads::Threads;

pub use cache::RedisCache;
use link::{Connector, MARK, failed};
pub use options::Options;

/// A store whose data is in Redis.
pub struct Redis {
    links: Arc<Links<Connector>>,
    durability: Durability,
    /// Reads and writes the connections.
    _threads: Threads,
}

impl Redis {
    /// Connects, waiting for a server that is not there yet. Blocks; not to be called on a thread of an async runtime.
    ///
    /// # Errors
    /// Options that cannot work, a server that is not there in time, refuses, or keeps less than was asked for, a
    /// database with other data.
    pub fn open(options: Options) -> Result<Arc<Self>, StoreError> {
        options.check()?;
        let threads = Threads::new(THREADS, "redis")?;
        let (durability, bounds) = (options.durability, options.bounds());
        let links = threads.block_on(Links::start(Connector::new(options)?, bounds))?;
        Ok(Arc::new(Redis { links, durability, _threads: threads }))
    }

    /// What an acknowledged write is worth here.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// What is counted about connections and requests.
    pub fn metrics(&self) -> Vec<OwnMetric> {
        self.links.metrics()
    }

    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        let request = |link: Arc<MultiplexedConnection>| async move {
            command.query_async(&mut MultiplexedConnection::clone(&link)).await.map_err(failed)
        };
        self.links.ask(request).await
    }
}

impl Sessions for Redis {
    fn create(&self, session: Session) -> Answer<'_, ()> {
        if let Err(error) = check_id("the session's customer id", &session.customer_id) {
            return Answer::ready(Err(error));
        }
        let mut command = redis::cmd("SET");
        // Redis takes no time before 1970
        command.arg(&key(session.id)[..]).arg(value(&session)).arg("PXAT").arg(session.expires_ms.max(1));
        Answer::boxed(async move { self.ask(&command).await })
    }

    fn find(&self, id: u128, now_ms: i64) -> Answer<'_, Option<Session>> {
        Answer::boxed(async move {
            let found: Option<Vec<u8>> = self.ask(redis::cmd("GET").arg(&key(id)[..])).await?;
            let Some(found) = found else { return Ok(None) };
            let malformed = || StoreError::no_answer("a session is not as it was written");
            let session = session(id, &found).ok_or_else(malformed)?;
            if session.expires_ms > now_ms {
                return Ok(Some(session));
            }
            self.ask::<()>(redis::cmd("DEL").arg(&key(id)[..])).await?;
            Ok(None)
        })
    }

    fn remove(&self, id: u128) -> Answer<'_, bool> {
        Answer::boxed(async move { self.ask(redis::cmd("DEL").arg(&key(id)[..])).await })
    }

    fn count(&self) -> Answer<'_, u64> {
        Answer::boxed(async move {
            let request = |link: Arc<MultiplexedConnection>| async move {
                let (keys, mark): (u64, u64) = redis::pipe()
                    .cmd("DBSIZE")
                    .exists(MARK)
                    .query_async(&mut MultiplexedConnection::clone(&link))
                    .await
                    .map_err(failed)?;
                Ok(keys.saturating_sub(mark))
            };
            self.links.ask(request).await
        })
    }

    /// Redis removes them by itself.
    fn sweep(&self, _: i64) -> Answer<'_, u64> {
        Answer::ready(Ok(0))
    }
}

/// The key of a session: its id.
fn key(id: u128) -> [u8; 16] {
    id.to_be_bytes()
}

/// What is kept of a session: both times, little-endian, and whose it is.
fn value(session: &Session) -> Vec<u8> {
    let Session { customer_id, created_ms, expires_ms, .. } = session;
    [&created_ms.to_le_bytes()[..], &expires_ms.to_le_bytes(), customer_id.as_bytes()].concat()
}

fn session(id: u128, value: &[u8]) -> Option<Session> {
    let (created_ms, rest) = value.split_first_chunk()?;
    let (expires_ms, customer_id) = rest.split_first_chunk()?;
    let customer_id = std::str::from_utf8(customer_id).ok()?.into();
    let (created_ms, expires_ms) = (i64::from_le_bytes(*created_ms), i64::from_le_bytes(*expires_ms));
    Some(Session { id, customer_id, created_ms, expires_ms })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sessions_read_back(id: u128, created_ms: i64, expires_ms: i64, customer in ".{0,20}") {
            let written = Session { id, customer_id: customer.into(), created_ms, expires_ms };
            prop_assert_eq!(session(id, &value(&written)), Some(written));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = session(1, &bytes);
        }
    }
}
