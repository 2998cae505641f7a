//! Bounded queues between threads and tasks that hand over batches and never hold a message back.
//!
//! ```
//! let (mut sender, mut receiver) = tidemark_queue::queue();
//! let counting = std::thread::spawn(move || {
//!     let mut sum = 0_u64;
//!     while let Ok(batch) = receiver.recv_batch() {
//!         sum += batch.sum::<u64>();
//!     }
//!     sum
//! });
//! for message in 0..1_000_000 {
//!     sender.send(message)?;
//! }
//! drop(sender); // what was sent is still received
//! assert_eq!(counting.join().unwrap(), 499_999_500_000);
//! # Ok::<(), tidemark_queue::SendError<u64>>(())
//! ```
//!
//! - [`queue`]: any number of senders, one [`Receiver`]; it takes messages where they lie, without copying them.
//! - [`shared_queue`]: any number of senders and of [`SharedReceiver`]s; each message goes to one of them.
//! - [`Options`]: room, size of batches, how to wait.
//! - Each end can block (`send`, `recv`), poll (`try_send`, `try_recv`) or be awaited (`send_async`, `recv_async`), message
//!   by message or in batches; senders are [`Sink`](futures_sink::Sink)s, receivers [`Stream`](futures_core::Stream)s.
//! - A full queue makes its sender wait, or refuses by choice (`try_send`). Dropping a sender drains; dropping the receiver
//!   is an error for senders, which get their message back. [`Receiver::close`] refuses what comes later and drains: what a
//!   sender was told is accepted is received, without exception.
//! - [`stream`]s share a queue among subscribers that say how many messages they want: one, each in turn, or all.
//! - [`Metrics`] count what happened, at no cost for a message.
//! - Over the wire: with the feature `websocket` the two ends are in two processes, with `kafka` a topic is between them. The
//!   ends are the same; the modules of these names say what is claimed.
//!
//! # How it is made, and why
//!
//! **A ring for each sender, written in place.** Senders share nothing with each other, so many cost no more than one, and
//! the receiver goes round the rings. A message is written once, into its slot, and read once, from there: no batch is
//! allocated, copied or handed over as an object. What moves between cores is the messages and, once for each batch, a
//! cursor on either side.
//!
//! **Memory is asked for before it is needed.** The line that a sender writes next is in the receiver's cache, some 60 ns
//! away. Where a batch is written, the lines of the one after it are fetched meanwhile (`prefetchw`), many at a time. Batches
//! are handed over in pieces ([`Options::batch`]), so that both sides work at the same time; and rings are small by default,
//! since what does not stay in the first cache comes from farther away.
//!
//! **Two cursors for the sender.** What makes queues of single messages slow is that both sides touch the same cache line
//! for each. What makes batching queues dangerous is that the last messages stay in a batch that is never full. Here the
//! sender stores *written* with each message and *published* with each full batch. A busy receiver looks at *published* only,
//! so the line of *written* stays with the sender's core, where storing to it is next to free. A receiver that finds nothing
//! published for as long as a batch takes looks at *written*, and takes what there is. So nobody has to flush for a message
//! to arrive (a single one to an idle receiver within some two microseconds); [`Sender::flush`] and [`Options::linger`] are about the size of batches, not about their coming at all.
//!
//! **Sleeping without a fence for each message.** A receiver that goes to sleep and a sender that has just written must not
//! miss each other, which takes a full fence on both sides, and one for each message would cost more than all the rest. On
//! Linux the side that goes to sleep has the kernel fence all threads (`membarrier`), and the sender has only a load of
//! a flag. Elsewhere both sides have fences: correct, and slower message by message; batches hardly notice.
//!
//! **Several receivers claim a ring for as long as it takes to take a batch out** (one compare-and-swap for a batch), into
//! room of their own, so that none holds the ring while it works. Who goes away gives back what it holds.
//!
//! **Why not an existing ring?** What the sender of `rtrb` has not committed its receiver cannot see, and the second cursor
//! is the point. So the ring is ours, some hundred lines (`ring.rs`, `slots.rs`), every order of
//! the threads is checked with loom (`tests/loom.rs`), the rest by Miri and beside a model (`tests/properties.rs`).

mod batch;
mod end;
mod errors;
mod fence;
mod gate;
mod hub;
#[cfg(all(feature = "kafka", not(loom)))]
pub mod kafka;
mod metrics;
mod options;
mod receiver;
#[cfg(all(feature = "remote", not(loom)))]
pub mod remote;
mod ring;
mod sender;
mod shared;
mod slice;
mod slots;
#[cfg(not(loom))]
pub mod stream;
mod sync;
#[cfg(all(feature = "remote", not(loom)))]
mod taken;
mod wait;
#[cfg(all(feature = "websocket", not(loom)))]
pub mod websocket;

pub use batch::Batch;
pub use errors::{BatchError, RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};
pub use metrics::Metrics;
pub use options::Options;
pub use receiver::Receiver;
pub use sender::Sender;
pub use shared::{Held, SharedReceiver};
pub use wait::Wait;

use crate::hub::Hub;
use crate::sync::Arc;

/// A queue as it is by default: any number of senders (clone it), one receiver.
pub fn queue<T: Send>() -> (Sender<T>, Receiver<T>) {
    Options::new().queue()
}

/// A queue as it is by default: any number of senders and of receivers (clone them).
pub fn shared_queue<T: Send>() -> (Sender<T>, SharedReceiver<T>) {
    Options::new().shared_queue()
}

impl Options {
    /// A queue with any number of senders (clone it) and one receiver.
    pub fn queue<T: Send>(self) -> (Sender<T>, Receiver<T>) {
        let hub = Arc::new(Hub::new(self));
        (Sender::new(hub.clone()), Receiver::new(hub))
    }

    /// A queue with any number of senders and of receivers (clone them). Each message goes to one receiver.
    pub fn shared_queue<T: Send>(self) -> (Sender<T>, SharedReceiver<T>) {
        let hub = Arc::new(Hub::new(self));
        (Sender::new(hub.clone()), SharedReceiver::new(hub))
    }
}

// what the README shows compiles and holds
#[cfg(all(doctest, feature = "kafka", feature = "websocket"))]
#[doc = include_str!("../README.md")]
struct Readme;
