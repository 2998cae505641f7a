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
//! All state is in memory; the log exists to be read at the next start. The reason is the mix: most requests of an
//! airline read its store, and where a lookup in a log-structured tree goes through several tables while these are
//! being compacted, here it is one hash lookup, whatever the disk does. The price is memory: 163 bytes for each
//! customer of the reference data, measured with a million (0.2 GB with what the log keeps in memory).
//!
//! A write costs its share of one sync. A change becomes visible only after it is as durable as was promised, so
//! nobody reads what a crash could take back; then it is acknowledged, so every writer reads its own writes.
//!
//! Figures of `examples/write_speed.rs` on a virtual machine with 4 shared, busy cores, 2 threads of writers, each
//! write awaited; CPU is that of the whole process:
//!
//! | durability | writers | writes/s | mean sync | CPU per write |
//! | --- | --- | --- | --- | --- |
//! | synced | 64 | 76,500 | 249 us | 9.4 us |
//! | synced | 256 | 103,700 | 686 us | 7.5 us |
//! | buffered | 64 | 236,700 | 4 us | 5.2 us |
//! | memory | 64 | 6,700,000 | none | 0.3 us |
//!
//! Run it on your own disk: mean syncs between 250 and 2,700 us were seen on that one machine within minutes.

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
