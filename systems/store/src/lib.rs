//! Data tiers behind small traits named after what systems need, never after a product.
//!
//! A system holds its stores as trait objects and does not know what stands behind them. There is a trait for each role:
//! [`Sessions`](sessions::Sessions), [`Customers`](customers::Customers), [`Bookings`](bookings::Bookings), [`Flights`](flights::Flights),
//! [`Messages`](messages::Messages), and of a news feed [`People`](people::People), [`Feeds`](feeds::Feeds),
//! [`Search`](search::Search) and [`Cache`](cache::Cache); what a system tells of itself goes into an
//! [`EventLog`](events::EventLog). Every other method returns an [`Answer`], a future that costs nothing when
//! the answer is known at once. What an acknowledged write is worth is said by [`Durability`].
//!
//! | module | roles | cargo feature |
//! | --- | --- | --- |
//! | [`Embedded`] | sessions, customers, bookings | |
//! | [`messages::Tree`], [`messages::Memory`] | messages | |
//! | [`EmbeddedFeed`] | people, feeds | |
//! | [`InvertedIndex`] | search | |
//! | [`cache::Memory`] | cache | |
//! | [`events::EventFile`] | events | |
//! | `postgres` | sessions, customers, bookings, flights, people | `postgres` |
//! | `mariadb` | customers, bookings, people | `mariadb` |
//! | `redis` | sessions, cache | `redis` |
//! | `cassandra` | customers, bookings, messages, feeds | `cassandra` |
//! | `kafka` | messages, as a buffer in front of any store of them; events | `kafka` |
//! | `opensearch` | search | `opensearch` |
//! | `TantivyIndex` | search | `tantivy` |
//!
//! [`Embedded`] is the store that needs no server:
//!
//! ```
//! use tidemark_store::sessions::{Session, Sessions};
//! use tidemark_store::{Durability, Embedded};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! # let dir = tempfile::tempdir().unwrap();
//! # let dir = dir.path();
//! let store = Embedded::open(dir, Durability::Synced)?;
//!
//! let session = Session { id: 7, customer_id: "uid0@email.com".into(), created_ms: 0, expires_ms: 1000 };
//! store.create(session.clone()).await?; // on disk now
//! assert_eq!(Sessions::find(&*store, 7, 999).await?, Some(session));
//! assert_eq!(Sessions::find(&*store, 7, 1000).await?, None); // expired
//! # Ok::<(), tidemark_store::StoreError>(())
//! # }).unwrap();
//! ```
//!
//! # What holds
//!
//! - `synced` means on disk before the answer: one committer thread, one sync for each group of waiting writes; tests
//!   take the power away at any moment.
//! - Nothing acknowledged is lost in silence: entries are counted, a marker written before each answer says how far
//!   they were acknowledged, a manifest names each file, and checksums hold only in their place. Tests let every step
//!   fail (the files all go through `engine::disk`) and change every byte.
//! - The engine knows no system: it is handed its tables, each a type with a number that its entries in the log begin
//!   with.
//! - Of two messages with one key in Cassandra the one sent after the other was acknowledged stays
//!   (`cassandra::clock`): times of writing are the nodes', and are past before the answer.
//! - What a buffer acknowledged is forgotten there only once the store behind has it (`kafka`).
//! - A cached value is never stale ([`cache`]): it is put with a lease that any change takes away. What a cache could
//!   not be told to forget is a miss until it has forgotten it, and one that has begun again forgets everything first
//!   (`redis`).
//!
//! # The embedded engine
//!
//! [`Embedded`] and [`messages::Tree`] are tables of one engine, which `src/engine.rs` describes: one log, one committer,
//! one recovery. Tables in memory take 163 bytes for each customer of the reference data, measured with a million; ordered
//! ones may be larger than memory.
//!
//! `bench/store` measures both beside fjall and redb (docs/benchmarks.md). The sync decides, so run it on your own disk.

mod answer;
pub mod bookings;
pub mod cache;
#[cfg(feature = "cassandra")]
pub mod cassandra;
mod checks;
pub mod customers;
mod durability;
mod embedded;
mod embedded_feed;
mod engine;
mod error;
pub mod events;
pub mod feeds;
pub mod flights;
mod inverted;
#[cfg(feature = "kafka")]
pub mod kafka;
#[cfg(any(feature = "mariadb", feature = "opensearch", feature = "postgres", feature = "redis"))]
mod links;
#[cfg(feature = "mariadb")]
pub mod mariadb;
pub mod messages;
mod metrics;
#[cfg(feature = "opensearch")]
pub mod opensearch;
pub mod people;
#[cfg(feature = "postgres")]
pub mod postgres;
mod reach;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(any(feature = "cassandra", feature = "kafka", feature = "opensearch"))]
mod remote;
pub mod scheduling;
pub mod search;
pub mod sessions;
#[cfg(feature = "tantivy")]
mod tantivy_index;
#[cfg(any(
    feature = "cassandra",
    feature = "mariadb",
    feature = "opensearch",
    feature = "postgres",
    feature = "redis"
))]
mod threads;

pub use answer::Answer;
pub use durability::{Durability, UnknownDurability};
pub use embedded::{Embedded, Recovered};
pub use embedded_feed::EmbeddedFeed;
pub use error::StoreError;
pub use inverted::InvertedIndex;
pub use metrics::{OwnMetric, SYNC_BOUNDS_US, StoreMetrics};
pub use reach::Reach;
#[cfg(feature = "tantivy")]
pub use tantivy_index::TantivyIndex;
