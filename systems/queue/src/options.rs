//! How a queue is to be.

use std::time::Duration;

use crate::wait::Wait;

/// How a queue is to be. What is not said has a sensible default.
///
/// ```
/// use std::time::Duration;
/// use tidemark_queue::{Options, Wait};
///
/// let options = Options::new().capacity(1 << 10).batch(64).wait(Wait::Park).linger(Duration::from_millis(1));
/// let (sender, receiver) = options.queue::<u64>();
/// # drop((sender, receiver));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    pub(crate) capacity: usize,
    pub(crate) batch: usize,
    pub(crate) wait: Wait,
    pub(crate) linger: Duration,
}

impl Options {
    /// Most messages that a ring can have room for.
    pub const CAPACITY_MAX: usize = 1 << 26;
    const CAPACITY_MIN: usize = 2;
    const CAPACITY: usize = 1024;
    const BATCH: usize = 256;

    /// Room for 1,024 messages, batches of 256, [`Wait::Auto`], no lingering.
    pub const fn new() -> Options {
        Options {
            capacity: Options::CAPACITY,
            batch: Options::BATCH,
            wait: Wait::Auto,
            linger: Duration::ZERO,
        }
    }

    /// Room for at least so many messages **for each sender**: each has a ring of its own. Rounded up to a power of two,
    /// between 2 and [`CAPACITY_MAX`](Options::CAPACITY_MAX). The memory is taken when a sender is made.
    ///
    /// Small rings are the fastest: all of a ring is used in turn, and one that takes up a quarter of a core's first cache
    /// (8 KiB, 1,024 messages of 8 bytes) moves between cores at twice the rate of one that fills it. Room for more is for
    /// bursts.
    pub const fn capacity(mut self, messages: usize) -> Options {
        self.capacity = if messages > Options::CAPACITY_MAX {
            Options::CAPACITY_MAX
        } else if messages < Options::CAPACITY_MIN {
            Options::CAPACITY_MIN
        } else {
            messages.next_power_of_two()
        };
        self
    }

    /// Messages that a sender collects before it hands them over (and that a [`SharedReceiver`](crate::SharedReceiver)
    /// takes at a time). At least 1, at most half of the capacity. An idle receiver does not wait for a batch to be full.
    pub const fn batch(mut self, messages: usize) -> Options {
        self.batch = messages;
        self
    }

    /// How blocking ends wait.
    pub const fn wait(mut self, wait: Wait) -> Options {
        self.wait = wait;
        self
    }

    /// How long a blocking receiver that is idle lets an unfinished batch grow before it takes it: the longest that a
    /// message stays in an unfinished batch, for a receiver that would rather be woken seldom. Zero, the default, is
    /// not at all. Polling and async receivers never linger.
    pub const fn linger(mut self, linger: Duration) -> Options {
        self.linger = linger;
        self
    }

    /// The batch within the bounds of the capacity.
    pub(crate) fn batch_within(&self) -> u64 {
        self.batch.clamp(1, self.capacity / 2) as u64
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::new()
    }
}
