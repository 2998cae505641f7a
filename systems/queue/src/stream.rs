//! Streams with demand: a queue's messages for subscribers that say how many they want.
//!
//! The semantics are those of Reactive Streams: a [`Subscriber`] gets a [`Subscription`] first, asks by it for so many
//! more messages ([`request`](Subscription::request)), gets at most that many, one signal after the other, may
//! [`cancel`](Subscription::cancel) at any time, and gets one terminal signal at most, complete or error.
//!
//! Three ways to share a queue:
//!
//! - [`unicast`]: one subscriber; a second is refused.
//! - [`round_robin`]: each message goes to one of many, in turn, by message or by batch ([`Turn`]).
//! - [`multicast`]: each message goes to all; the slowest sets the pace, or is dropped with an error ([`Slow`]).
//!
//! Each gives two halves. With a [`Publisher`], which can be cloned, one subscribes, from any thread. A [`Distribution`]
//! takes messages out of the queue and signals subscribers, all on the thread (or task) that runs it; so signals are
//! serial without locks, and a batch goes from the queue to the subscriber without being copied. Where nobody wants more
//! the messages stay in the queue, which makes its senders wait: that is the back-pressure. Nothing is lost by a cancel:
//! what was not signalled stays in the queue, for other subscribers or the next.
//!
//! ```
//! use tidemark_queue::stream::{self, StreamError, Subscriber, Subscription};
//!
//! /// Asks for ten at a time.
//! struct Printer(Option<Subscription>, u64);
//!
//! impl Subscriber<&'static str> for Printer {
//!     fn on_subscribe(&mut self, subscription: Subscription) {
//!         subscription.request(10);
//!         self.0 = Some(subscription);
//!     }
//!     fn on_next(&mut self, message: &'static str) {
//!         println!("{message}");
//!         self.1 += 1;
//!         if self.1 % 10 == 0 {
//!             self.0.as_ref().unwrap().request(10);
//!         }
//!     }
//!     fn on_complete(&mut self) {}
//!     fn on_error(&mut self, error: StreamError) {
//!         eprintln!("{error}");
//!     }
//! }
//!
//! let (mut sender, receiver) = tidemark_queue::queue();
//! let (publisher, mut distribution) = stream::unicast(receiver);
//! publisher.subscribe(Printer(None, 0));
//! sender.send_batch(["a", "b", "c"])?;
//! drop(sender);
//! distribution.run(); // until the queue has ended and everything was signalled
//! # Ok::<(), tidemark_queue::BatchError>(())
//! ```
//!
//! A subscriber on a thread or task of its own is a [`Subscribed`], which is a [`Stream`](futures_core::Stream):
//! [`Publisher::stream`]. It has a queue of its own and asks for more as it is used up.

mod distribution;
mod messages;
mod share;
mod subscribed;
mod subscription;

pub use distribution::{Distribution, Publisher};
pub use messages::Messages;
pub use share::{Multicast, RoundRobin, Share, Slow, Turn, Unicast};
pub use subscribed::Subscribed;
pub use subscription::Subscription;

use crate::Receiver;
use crate::hub::Failure;

/// Gets a stream's messages. Its signals come one after the other; it may request and cancel in any of them.
pub trait Subscriber<T> {
    /// The first signal: how to ask for messages. None comes before it was asked for.
    fn on_subscribe(&mut self, subscription: Subscription);

    /// A message that was asked for. If this panics the subscription is cancelled, and the panic goes on out of the
    /// distribution, which can be run again for others.
    fn on_next(&mut self, message: T);

    /// Messages that were asked for and lie ready together. What is not taken stays with the stream and comes again at once
    /// (of a multicast, unless another took it). As it is, each goes to [`on_next`](Subscriber::on_next); who works on all of
    /// them together ([`Messages::as_slice`]) gets them at the rate of the bare queue.
    fn on_batch(&mut self, messages: &mut Messages<'_, T>) {
        messages.for_each(|message| self.on_next(message));
    }

    /// The last signal: the queue has ended, and everything was signalled.
    fn on_complete(&mut self);

    /// The last signal: it goes no further.
    fn on_error(&mut self, error: StreamError);
}

/// Why a stream ended for a subscriber before it was complete.
#[derive(Debug, Clone)]
pub enum StreamError {
    /// A sender ended with this ([`Sender::fail`](crate::Sender::fail)).
    Failed(Failure),
    /// It has its one subscriber already (unicast).
    Taken,
    /// The subscriber asked for no messages at all, which is a mistake (rule 3.9).
    RequestedNone,
    /// The subscriber asked for nothing for too long while others waited (multicast with [`Slow::Fails`]).
    TooSlow,
    /// The distribution was dropped.
    Stopped,
}

impl std::fmt::Display for StreamError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StreamError::Failed(error) => error.fmt(f),
            StreamError::Taken => f.write_str("the stream has a subscriber already, and is for one only"),
            StreamError::RequestedNone => f.write_str(
                "the subscriber requested 0 messages; request at least 1 (Reactive Streams, rule 3.9)",
            ),
            StreamError::TooSlow => {
                f.write_str("the subscriber requested nothing for too long while others waited")
            }
            StreamError::Stopped => f.write_str("the stream was stopped before its end"),
        }
    }
}

impl std::error::Error for StreamError {}

/// A stream for one subscriber at a time. After a cancel another may subscribe, and gets what is left.
pub fn unicast<T: Send + 'static>(receiver: Receiver<T>) -> (Publisher<T>, Distribution<T, Unicast>) {
    distribution::new(receiver, Unicast)
}

/// A stream of which each message goes to one of its subscribers.
pub fn round_robin<T: Send + 'static>(
    receiver: Receiver<T>,
    turn: Turn,
) -> (Publisher<T>, Distribution<T, RoundRobin>) {
    distribution::new(receiver, RoundRobin::new(turn))
}

/// A stream of which each message goes to all who are subscribed at the time. Messages wait for the first subscriber.
pub fn multicast<T: Clone + Send + 'static>(
    receiver: Receiver<T>,
    slow: Slow,
) -> (Publisher<T>, Distribution<T, Multicast>) {
    distribution::new(receiver, Multicast::new(slow))
}
