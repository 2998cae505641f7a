//! A queue whose ends are in two processes, over a WebSocket.
//!
//! The receiving process listens; the sending process connects. Both get the same ends as of a queue in memory, so that batches,
//! tasks and [`stream`](crate::stream)s work on them unchanged.
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
//! - **Demand.** The receiver tells the sender up to which position it takes messages: as many as its queue has room for. The
//!   sender sends no more. It keeps what is not acknowledged, at most as many messages as its own queue has room for. So a
//!   slow receiver makes the sender wait, and memory is bounded on both sides.
//! - **Batches.** Messages that are ready are sent together, up to 256 KiB in a frame, and are handed over together.
//! - **Acknowledgements.** A message is acknowledged when the receiving program takes it. A program that takes messages one by
//!   one acknowledges each quarter of the queue. With [`Options::position`] the program itself says what is acknowledged:
//!   [`Incoming::acknowledge`].
//! - **The end.** Once all senders are dropped, the receiver ends behind the last message. [`Sender::fail`](crate::Sender::fail)
//!   becomes its [`failure`](crate::Receiver::failure), as text. A receiver that is closed or dropped is an error for senders.
//!
//! # What is claimed
//!
//! Each message has a number. The sender sends again what is not acknowledged. The receiver skips the messages that it has, and
//! takes none out of order. So connections that are cut, or stand still, lose and double nothing.
//!
//! The same holds where either process is killed, or both, if each gets back what only its memory held. The receiver starts with
//! the position that it stored together with what the messages did ([`Options::position`]). The sender sends its log again,
//! from [`Outgoing::position`] on ([`Options::replays`]). A receiver that asks for messages before its last acknowledgement does
//! not get them: the sender ends with an error.
//!
//! A link has one sender at a time. A new one takes the place of the one before, which is refused from then on, as long as the
//! receiver lives. A sender that connects again is not new. An [`Outgoing`] that is dropped gives the link up. If an
//! [`Incoming`] is dropped before its receiver, the sender waits for a receiver that is started again.
//!
//! There is neither TLS nor a password. Listen on an address that only permitted senders reach, or behind a proxy that asks for
//! a password.

mod frame;
mod incoming;
mod line;
mod outgoing;

pub use incoming::{Incoming, listen};
pub use outgoing::connect;

#[cfg(doc)]
use crate::remote::{Options, Outgoing};

/// A frame is sent as soon as it has so many bytes: it exceeds them by one message at most.
const FRAME_BYTES: usize = 256 << 10;
