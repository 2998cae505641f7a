//! A queue whose ends are in two processes, over a WebSocket.
//!
//! The receiving process listens, the sending one connects. Both have the ends that a queue in memory has, so that whatever
//! stands on them stays as it is: batches, tasks, [`stream`](crate::stream)s.
//!
//! ```
//! use std::time::Duration;
//! use tidemark_queue::{remote::Options, websocket};
//!
//! // in one process
//! let (mut receiver, incoming) = websocket::listen::<u64>("127.0.0.1:0", Options::new())?;
//! let url = format!("ws://{}/", incoming.address());
//! // in another one
//! let (mut sender, outgoing) = websocket::connect::<u64>(&url, Options::new())?;
//! sender.send_batch(0..3)?;
//! drop(sender);
//! // in the first
//! let mut sum = 0;
//! while let Ok(batch) = receiver.recv_batch() {
//!     sum += batch.sum::<u64>();
//! }
//! assert_eq!(sum, 3);
//! // in the other one: everything was taken, and the receiver knows of the end
//! outgoing.finish(Duration::from_secs(10))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What crosses
//!
//! - **Demand.** The receiver says up to which position it takes messages: as many as its queue has room for. The sender
//!   sends no more, and keeps no more than its own queue has room for that are not acknowledged. So a slow receiver makes
//!   the sender wait, and memory is bounded on both sides.
//! - **Batches.** What lies ready is sent together, up to 256 KiB in a frame, and handed over together.
//! - **Acknowledgements.** A message is acknowledged when the receiving program takes it (in pieces of a quarter of the queue,
//!   where it takes them one by one), or where the program says so: [`Options::position`], [`Incoming::acknowledge`].
//! - **The end.** Senders that are dropped end the receiver when everything was taken; [`Sender::fail`](crate::Sender::fail)
//!   is its [`failure`](crate::Receiver::failure), as text. A receiver that is closed or dropped is an error for senders.
//!
//! # What is claimed
//!
//! Each message has a number. The sender sends again what is not acknowledged; the receiver passes over what it has, and takes
//! nothing out of order. So connections that are cut, or stand still, lose and double nothing. Nor does the death of either
//! process, or of both, where what only their memory held is given again: the receiver starts with the position that it stored
//! together with what the messages did ([`Options::position`]), the sender sends its log from [`Outgoing::position`] on
//! ([`Options::replays`]). The README has a table of what is lost otherwise. A receiver that asks for what it had acknowledged is
//! refused, and the sender ends with an error.
//!
//! A link has one sender at a time. One that connects anew (not one that connects again) takes the place of the one before,
//! which is refused from then on, as long as the receiver lives. An [`Outgoing`] that is dropped gives the link up; an
//! [`Incoming`] that is dropped before its receiver leaves the sender waiting for a receiver that is started again.
//!
//! There is neither TLS nor a password: listen on an address that only those reach who may send, or behind a proxy that asks.

mod frame;
mod incoming;
mod line;
mod outgoing;

pub use incoming::{Incoming, listen};
pub use outgoing::connect;

#[cfg(doc)]
use crate::remote::{Options, Outgoing};

/// A frame that has so many bytes is sent, and one message more is the most that it can have.
const FRAME_BYTES: usize = 256 << 10;
