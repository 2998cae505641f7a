//! The participants and friendships of a news feed in MariaDB, 10.6 or later: tables, columns and procedures as its public
//! versions have them in MySQL.
//!
//! ```no_run
//! use tidemark_store::mariadb::{MariadbPeople, Options};
//! use tidemark_store::people::People;
//!
//! # async fn example() -> Result<(), tidemark_store::StoreError> {
//! let store = MariadbPeople::open(Options { url: "mysql://me@127.0.0.1:3306/feed".into(), ..Options::default() })?;
//! let joe = store.create("Joe".into()).await?; // committed
//! # Ok(()) }
//! ```
//!
//! **Connections.** One carries one request at a time, so there are as many as requests at once; more wait for one, as many as
//! [`Options::waiting_max`] says. A statement that takes longer than [`Options::timeout`] is ended by the server, and the connection given up
//! when not even that is heard.
//!
//! **Friendships.** A new one locks its two participants, the lesser id first, so that nobody counts beside it and two who
//! ask for each other do not wait for ever. One that is there is found without a lock.
//!
//! **Durability.** `synced` takes a server with `innodb_flush_log_at_trx_commit = 1` (and `sync_binlog = 1` where it has a binary
//! log), `buffered` one with `2`; every new connection looks, and is not used where it is less than was asked for.

mod link;
mod options;
mod schema;

use std::sync::Arc;
use std::time::{Duration, Instant};

use mysql_async::prelude::FromValue;
use mysql_async::{Row, Value};
use tokio::runtime::Runtime;

use crate::answer::Answer;
use crate::error::StoreError;
use crate::links::{Links, is_transient, runtime};
use crate::metrics::StoreMetrics;
use crate::people::{Befriended, Friend, NAMED_MAX, Participant, People, check_name};

use link::Connector;
pub use options::Options;
use schema::Do;

/// Until it is tried again to make the schema.
const PAUSE: Duration = Duration::from_millis(200);

/// Participants and friendships in MariaDB.
pub struct MariadbPeople {
    links: Arc<Links<Connector>>,
    /// Reads and writes the connections. `None` only while dropping.
    runtime: Option<Runtime>,
}

impl MariadbPeople {
    /// Connects, waiting for a server that is not there yet, and makes the tables and procedures where they are not there.
    /// Blocks; not to be called on a thread of an async runtime.
    ///
    /// # Errors
    /// Options that cannot work, a server that is not there in time, refuses, has tables of others or of a later version, or
    /// keeps less than was asked for.
    pub fn open(options: Options) -> Result<Arc<Self>, StoreError> {
        options.check()?;
        let runtime = runtime("mariadb")?;
        let bounds = options.bounds();
        let connector = Connector::new(options)?;
        let links = runtime.block_on(async {
            let (begun, mut told) = (Instant::now(), false);
            while let Err(error) = connector.migrate().await {
                if !is_transient(&error) || begun.elapsed() > bounds.start_timeout {
                    return Err(error);
                }
                if !std::mem::replace(&mut told, true) {
                    tracing::info!(%error, "waiting for MariaDB");
                }
                tokio::time::sleep(PAUSE).await;
            }
            Links::start(connector, bounds).await
        })?;
        Ok(Arc::new(MariadbPeople { links, runtime: Some(runtime) }))
    }

    async fn rows(&self, of: Do, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
        self.links.ask(|link| async move { link.rows(of, values).await }).await
    }

    /// The only row of a statement that gives one.
    async fn row(&self, of: Do, values: Vec<Value>) -> Result<Row, StoreError> {
        let row = self.rows(of, values).await?.pop();
        row.ok_or_else(|| StoreError::no_answer("a procedure that gives one row gave none"))
    }
}

impl Drop for MariadbPeople {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // waiting for its threads is not allowed where this may be dropped
            runtime.shutdown_background();
        }
    }
}

/// A column of a row, where it is of the type that this program made it.
fn column<T: FromValue>(row: &Row, place: usize) -> Result<T, StoreError> {
    match row.get_opt(place) {
        Some(Ok(value)) => Ok(value),
        _ => Err(StoreError::no_answer("the tables are not as they were made")),
    }
}

/// An id as a column has it; one that is too great for it is nobody's.
fn key(id: u64) -> Option<i32> {
    i32::try_from(id).ok()
}

impl People for MariadbPeople {
    fn create(&self, name: Arc<str>) -> Answer<'_, Participant> {
        if let Err(error) = check_name(&name) {
            return Answer::ready(Err(error));
        }
        Answer::boxed(async move {
            let row = self.row(Do::Create, vec![(&*name).into()]).await?;
            Ok(Participant { id: column(&row, 0)?, name })
        })
    }

    fn find(&self, id: u64) -> Answer<'_, Option<Participant>> {
        let Some(key) = key(id) else { return Answer::ready(Ok(None)) };
        Answer::boxed(async move {
            let rows = self.rows(Do::Find, vec![key.into()]).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            Ok(Some(Participant { id, name: column::<String>(row, 0)?.into() }))
        })
    }

    fn named(&self, name: &str) -> Answer<'_, Vec<Participant>> {
        let name: Arc<str> = name.into();
        Answer::boxed(async move {
            let rows = self.rows(Do::Named, vec![(&*name).into(), (NAMED_MAX as u64).into()]).await?;
            rows.iter().map(|row| Ok(Participant { id: column(row, 0)?, name: name.clone() })).collect()
        })
    }

    fn befriend(&self, from: u64, to: u64) -> Answer<'_, Befriended> {
        let Some(one) = key(from) else { return Answer::ready(Ok(Befriended::NoSuchParticipant(from))) };
        let Some(other) = key(to) else { return Answer::ready(Ok(Befriended::NoSuchParticipant(to))) };
        Answer::boxed(async move {
            let row = self.row(Do::Befriend, vec![one.into(), other.into()]).await?;
            match (column(&row, 0)?, column(&row, 1)?, column(&row, 2)?) {
                (Some(id), None::<u64>, None::<u64>) => Ok(Befriended::Friends(id)),
                (_, Some(missing), _) => Ok(Befriended::NoSuchParticipant(missing)),
                (_, _, Some(full)) => Ok(Befriended::TooManyFriends(full)),
                (None, None, None) => Err(StoreError::no_answer("BefriendParticipants gave no friendship")),
            }
        })
    }

    fn friends(&self, id: u64) -> Answer<'_, Vec<Friend>> {
        let Some(key) = key(id) else { return Answer::ready(Ok(Vec::new())) };
        Answer::boxed(async move {
            let rows = self.rows(Do::Friends, vec![key.into()]).await?;
            let friend = |row| Ok(Friend { friendship: column(row, 0)?, participant: column(row, 1)? });
            rows.iter().map(friend).collect()
        })
    }

    fn counts(&self) -> Answer<'_, [u64; 2]> {
        Answer::boxed(async move {
            let row = self.row(Do::Counts, Vec::new()).await?;
            Ok([column(&row, 0)?, column(&row, 1)?])
        })
    }

    fn last(&self) -> Answer<'_, u64> {
        Answer::boxed(async move { column(&self.row(Do::Last, Vec::new()).await?, 0) })
    }

    fn metrics(&self) -> StoreMetrics {
        StoreMetrics { own: self.links.metrics(), ..StoreMetrics::default() }
    }
}
