//! Customers and bookings, and the people of a news feed, in MariaDB, 10.6 or later.
//!
//! ```no_run
//! use tidemark_store::bookings::Bookings;
//! use tidemark_store::mariadb::{Mariadb, Options};
//!
//! # async fn example(bookings: &[tidemark_store::bookings::Booking]) -> Result<(), tidemark_store::StoreError> {
//! let store = Mariadb::open(Options { url: "mysql://me@127.0.0.1:3306/db".into(), ..Options::default() })?;
//! store.add(bookings).await?; // committed, all or none
//! # Ok(()) }
//! ```
//!
//! **One statement, one transaction.** Every request is one prepared statement, so it is done whole or not at all, and
//! costs one round trip. It is acknowledged after its own commit was: a connection that is lost before leaves it unknown,
//! which is an error.
//!
//! **Connections.** One carries one request at a time, so there are as many as requests at once; more wait for one, as many as
//! [`Options::waiting_max`] says. A statement that takes longer than [`Options::timeout`] is ended by the server, and the connection given up
//! when not even that is heard.
//!
//! **Durability.** `synced` takes a server with `innodb_flush_log_at_trx_commit = 1` (and `sync_binlog = 1` where it has a binary
//! log), `buffered` one with `2`; every new connection looks, and is not used where it is less than was asked for.

mod airline;
mod link;
mod options;
mod people;
mod schema;

use std::sync::Arc;

use mysql_async::prelude::FromValue;
use mysql_async::{Row, Value};

use crate::durability::Durability;
use crate::error::StoreError;
use crate::links::{Links, THREADS};
use crate::threads::{Threads, once_there};

pub use airline::Mariadb;
use link::{Connector, Statement};
pub use options::Options;
pub use people::MariadbPeople;
use schema::Schema;

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
        let threads = Threads::new(THREADS, "mariadb")?;
        let (durability, bounds) = (options.durability, options.bounds());
        let connector = Connector::new(options, schema)?;
        let links = threads.block_on(async {
            once_there("MariaDB", bounds.start_timeout, async || connector.migrate().await).await?;
            Links::start(connector, bounds).await
        })?;
        Ok(Server { links, durability, _threads: threads })
    }

    /// The rows that a statement gives.
    async fn rows(&self, text: impl Into<Statement>, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
        let text = text.into();
        self.links.ask(|link| async move { link.ask(text, values).await.map(|(rows, _)| rows) }).await
    }

    /// How many rows a statement changes.
    async fn change(&self, text: impl Into<Statement>, values: Vec<Value>) -> Result<u64, StoreError> {
        let text = text.into();
        self.links.ask(|link| async move { link.ask(text, values).await.map(|(_, changed)| changed) }).await
    }
}

/// A column of a row, where it is of the type that this program made it.
fn column<T: FromValue>(row: &Row, place: usize) -> Result<T, StoreError> {
    match row.get_opt(place) {
        Some(Ok(value)) => Ok(value),
        _ => Err(StoreError::no_answer("the tables are not as they were made")),
    }
}
