//! Sessions, customers, bookings and flights, and the people of a news feed, in PostgreSQL, 12 or later.
//!
//! ```no_run
//! use tidemark_store::bookings::Bookings;
//! use tidemark_store::postgres::{Options, Postgres};
//!
//! # async fn example(bookings: &[tidemark_store::bookings::Booking]) -> Result<(), tidemark_store::StoreError> {
//! let store = Postgres::open(Options { url: "postgres://me@127.0.0.1:5432/db".into(), ..Options::default() })?;
//! store.add(bookings).await?; // committed, all or none
//! # Ok(()) }
//! ```
//!
//! **One statement, one transaction.** Every request is one prepared statement, so it is done whole or not at all, and
//! costs one round trip. It is acknowledged after its own commit was: a connection that is lost before leaves it unknown,
//! which is an error.
//!
//! **Connections.** Of a few connections each carries many requests one behind the other, so commits of different connections
//! share a sync of the server. Each is made again when it is lost. A statement that takes longer than
//! [`Options::timeout`] is ended by the server, and the connection given up when not even that is heard.
//!
//! **Order.** A booking has the number of its addition from a sequence, and its place in it.
//!
//! **Durability.** `synced` commits with `synchronous_commit = on` to a server with `fsync = on`; every new connection
//! looks, and is not used where it is otherwise. `buffered` and `memory` commit with `synchronous_commit = off`: what was acknowledged
//! survives this process, and the server's end but for the last moments (three times its `wal_writer_delay`).

mod airline;
mod flights;
mod link;
mod options;
mod people;
mod roles;
mod schema;
mod text;

use std::sync::Arc;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::durability::Durability;
use crate::error::StoreError;
use crate::links::{Links, THREADS};
use crate::metrics::OwnMetric;
use crate::threads::{Threads, once_there};

use airline::Do;
use link::{Connector, Link, failed};
pub use options::Options;
pub use people::PostgresPeople;
use schema::Schema;

/// Sessions, customers, bookings and flights in PostgreSQL.
pub struct Postgres {
    server: Server,
}

type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Postgres {
    /// Connects, waiting for a server that is not there yet, and makes the tables where they are not there. Blocks; not to be
    /// called on a thread of an async runtime.
    ///
    /// # Errors
    /// Options that cannot work, a server that is not there in time, refuses, has tables of a later version, or keeps
    /// less than was asked for.
    pub fn open(options: Options) -> Result<Arc<Self>, StoreError> {
        Ok(Arc::new(Postgres { server: Server::open(options, &airline::SCHEMA)? }))
    }

    /// What an acknowledged write is worth here.
    pub fn durability(&self) -> Durability {
        self.server.durability
    }

    /// What is counted about connections and requests.
    pub fn metrics(&self) -> Vec<OwnMetric> {
        self.server.links.metrics()
    }

    async fn rows(&self, of: Do, parameters: Parameters<'_>) -> Result<Vec<Row>, StoreError> {
        self.server.rows(of as usize, parameters).await
    }

    async fn change(&self, of: Do, parameters: Parameters<'_>) -> Result<u64, StoreError> {
        self.server.change(of as usize, parameters).await
    }

    async fn count_of(&self, of: Do) -> Result<u64, StoreError> {
        let rows = self.rows(of, &[]).await?;
        let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(StoreError::no_answer)?;
        Ok(count as u64)
    }
}

/// The connections to a database with some schema, and who carries them on.
struct Server {
    links: Arc<Links<Connector>>,
    durability: Durability,
    /// Reads and writes the connections.
    _threads: Threads,
}

impl Server {
    fn open(options: Options, schema: &'static Schema) -> Result<Self, StoreError> {
        options.check()?;
        let threads = Threads::new(THREADS, "postgres")?;
        let (durability, bounds) = (options.durability, options.bounds());
        let connector = Connector::new(options, schema)?;
        let links = threads.block_on(async {
            once_there("PostgreSQL", bounds.start_timeout, async || connector.migrate().await).await?;
            Links::start(connector, bounds).await
        })?;
        Ok(Server { links, durability, _threads: threads })
    }

    /// The rows that a statement gives.
    async fn rows(&self, statement: usize, parameters: Parameters<'_>) -> Result<Vec<Row>, StoreError> {
        let request = |link: Arc<Link>| async move {
            link.client.query(link.statement(statement), parameters).await.map_err(failed)
        };
        self.links.ask(request).await
    }

    /// How many rows a statement changes.
    async fn change(&self, statement: usize, parameters: Parameters<'_>) -> Result<u64, StoreError> {
        let request = |link: Arc<Link>| async move {
            link.client.execute(link.statement(statement), parameters).await.map_err(failed)
        };
        self.links.ask(request).await
    }
}
