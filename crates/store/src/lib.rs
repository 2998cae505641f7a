//! Data tiers behind small traits named after what systems need, never after a product.
//!
//! A system holds its stores as trait objects and does not know what stands behind them. [`airline`] has the
//! traits of the airline: [`Sessions`](airline::Sessions), [`Customers`](airline::Customers) and
//! [`Bookings`](airline::Bookings). Every method returns an [`Answer`], a future that costs nothing when
//! the answer is known at once. What an acknowledged write is worth is said by [`Durability`].
//!
//! [`Embedded`] is the store that needs no server:
//!
//! ```
//! use tidemark_store::airline::{AirlineStore, Session};
//! use tidemark_store::{Durability, Embedded};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! # let dir = tempfile::tempdir().unwrap();
//! # let dir = dir.path();
//! let store = Embedded::open(dir, Durability::Synced)?;
//! let airline = AirlineStore::from(store.clone());
//!
//! let session = Session { id: 7, customer_id: "uid0@email.com".into(), created_ms: 0, expires_ms: 1000 };
//! airline.sessions.create(session.clone()).await?; // on disk now
//! assert_eq!(airline.sessions.find(7, 999).await?, Some(session));
//! assert_eq!(airline.sessions.find(7, 1000).await?, None); // expired
//! # Ok::<(), tidemark_store::StoreError>(())
//! # }).unwrap();
//! ```
//!
//! # How the embedded store works
//!
//! ```text
//! write ─▶ bounded queue ─▶ committer: append to the log, persist once ─▶ index ─▶ wake the writers
//! read ──────────────────────────────────────────────────────────────────▶ index
//! ```
//!
//! All state is in memory; the log exists to be read at the next start. So a read costs a hash lookup, whatever the
//! disk does, and a write costs its share of one sync. The price is memory: see `examples/write_speed.rs` for bytes
//! per customer. A change is visible only after it is as durable as was promised, so nobody reads what a crash
//! could take back.

pub mod airline;
mod answer;
mod change;
mod commit;
mod durability;
mod embedded;
mod error;
mod fjall_log;
mod index;
mod metrics;
mod record;

pub use answer::Answer;
pub use durability::{Durability, UnknownDurability};
pub use embedded::Embedded;
pub use error::StoreError;
pub use metrics::{Recovered, SYNC_BOUNDS_US, StoreMetrics};

/// At most this many sessions are removed by one call of [`airline::Sessions::sweep`].
pub const SWEEP_SESSIONS_MAX: usize = 1024;
