//! The data tier: customers, sessions and bookings in one process, for any number of airlines.
//!
//! [`AirlineData`] is the reference system `airline-data`: the embedded store behind calls over a WebSocket
//! (`tidemark_rpc`), which share frames and connections. [`DataStore`] is an airline's side of it, a store like any
//! other.
//!
//! ```
//! use tidemark_airline::data::{AirlineData, DataStore, Options};
//! use tidemark_service::{Durability, ReferenceSystem, Stop};
//! use tidemark_store::sessions::{Session, Sessions};
//!
//! let durability = Durability::Memory;
//! let server = AirlineData::bind(tidemark_service::Options {
//!     listen: "127.0.0.1:0".parse()?,
//!     durability,
//!     workers: Some(1),
//!     announce: false,
//!     ..Default::default()
//! })?;
//! let (url, stop) = (format!("http://{}", server.addr()), Stop::new());
//! let serving = std::thread::spawn({
//!     let stop = stop.clone();
//!     move || server.serve(stop.triggered())
//! });
//! let store = DataStore::open(Options { url, durability, ..Options::default() })?;
//! let session = Session { id: 7, customer_id: "uid0@email.com".into(), created_ms: 0, expires_ms: 1000 };
//! tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//!     store.create(session.clone()).await?;
//!     assert_eq!(store.find(7, 999).await?, Some(session));
//!     Ok::<(), tidemark_store::StoreError>(())
//! })?;
//! stop.trigger();
//! serving.join().unwrap()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What holds
//!
//! - One process carries every write and read out, so all airlines see the same: a booking that one has acknowledged is in
//!   the list that another reads afterwards.
//! - A write says what it is to be worth. A process that keeps less (begun again with another durability, say) refuses it.
//! - No call is sent twice. One whose connection was cut, or whose answer does not come in time, may have been done: an
//!   error. Sending it again would be safe for the removal of a session or booking and for a new session, whose id nobody
//!   knows yet. It would not be for a customer or a booking, which another may have changed or cancelled in between.
//! - Calls about one customer, or one session, go over one connection, whose calls begin in the order in which they were
//!   sent: what was given up does not overtake what was sent after it, unless the connection was lost.
//! - A long list of bookings comes in parts, all of one moment; if it changes between them, it is read again.
//! - What waits is bounded here by [`Options::waiting_max`], there by the bounds of the server and of the embedded store.
//! - Whoever reaches its address can read and change everything, passwords too: it belongs on a network of its own.

mod client;
mod rows;
mod serve;
mod service;

pub use client::{DataStore, Options};
pub use serve::AirlineData;
