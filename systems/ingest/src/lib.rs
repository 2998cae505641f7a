//! The message intake: takes small messages, many and without end, and keeps every one that it has acknowledged.
//!
//! A message is one text: who (10 digits), when (13 digits, milliseconds since 1970), of which type (3 characters),
//! and then whatever the sender likes. `200 OK` means that the message is as durable as the server was told to make
//! messages. Each request that is acknowledged is a message of its own, however alike they are; requests with the same
//! `Idempotency-Key` and content are one. With `identity=key` the last one of a user, time and type stays.
//!
//! ```
//! use std::io::{Read, Write};
//! use tidemark_ingest::Ingest;
//! use tidemark_service::{Durability, Options, ReferenceSystem, Stop};
//!
//! let listen = "127.0.0.1:0".parse()?;
//! let options = Options { listen, durability: Durability::Memory, workers: Some(1), announce: false,
//!     ..Options::default() };
//! let ingest = Ingest::bind(options)?;
//! let addr = ingest.addr();
//! let stop = Stop::new();
//! let serving = std::thread::spawn({
//!     let stop = stop.clone();
//!     move || ingest.serve(stop.triggered())
//! });
//!
//! let answer = loop {
//!     let mut client = std::net::TcpStream::connect(addr)?;
//!     let request = "GET /m?c=00000000011700000000000ABC41.7,42.7 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
//!     client.write_all(request.as_bytes())?;
//!     let mut answer = String::new();
//!     client.read_to_string(&mut answer)?;
//!     if !answer.starts_with("HTTP/1.1 503") { // until it has started
//!         break answer;
//!     }
//! };
//! assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("OK"));
//! stop.trigger();
//! serving.join().unwrap()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it answers
//!
//! - `GET /m?c=TEXT`, `POST /m` with the text as the body: 200 `OK`; 400 with the reason for what is no message; 503
//!   with `Retry-After` when too many wait already.
//! - `GET /count`: how many messages there are.
//! - `GET /behind`: how many were acknowledged and are not counted and shown yet; 0 without a buffer.
//! - `GET /messages/USER?from=&to=&limit=&cursor=`: the user's messages in order of time, from `from` on and before
//!   `to` (milliseconds), as a JSON array. A page that is not the last has the cursor of the next one in the header
//!   `next-cursor`; it may be shorter than the limit, when its messages are large.
//! - `GET /openapi.json`: all of this as an OpenAPI document.
//!
//! # Buffer
//!
//! With `buffer=kafka` (in a build with the feature of that name) `200 OK` means that Apache Kafka has the message, with
//! the durability that was asked for; a consumer in this process stores it into the store behind, in its own time.
//! `/count` and `/messages` answer from the store behind, so what they show is everything only once `/behind` is 0. After
//! a restart the consumer goes on where it was.
//!
//! # Bounds
//!
//! Messages that wait for the store are counted here, whatever the store does by itself: one more is refused, at once
//! while few are, so that a flood of refusals does not take the processor from what is being kept. Beyond 10,000 refusals
//! a second and worker a message is held back, its connection unread, until a place is free or its turn to be refused
//! has come. Where the processor is what is short and not the store, sockets are read as fast as messages are kept: so
//! many wait in them as there are connections, and those are bounded too. A page
//! is at most a hundred thousand messages or eight megabytes of them, a few pages are read at a time, and each is
//! rendered piece by piece as the client takes it. All that clients have not taken yet have 64 MiB together: where slow
//! ones hold much of it a page is smaller, and its cursor leads on; where they hold all of it, it is 503.
//!
//! Clients wait at the system's bound, and a store has its own: the intake's line decides who waits and who is
//! refused, and how fast (`app`); a store refuses whoever else writes to it, too, as a buffer does that empties into
//! it.
//!
//! # Figures
//!
//! `bench/ingest/run` measures what it holds, what a flood does to it, and what Cassandra behind it holds. `docs/ingest.md`
//! of the repository has what came out, with the machine.

mod app;
mod buffer;
mod handlers;
mod identity;
mod openapi;
mod page;
mod payload;
mod refusal;
mod room;
mod serve;
mod settings;
mod store_metrics;
mod stores;

pub use payload::{KEY_BYTES, NotAMessage, message_of_query, read_message};
pub use serve::Ingest;
