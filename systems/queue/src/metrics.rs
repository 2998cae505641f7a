//! What a queue has done so far.

use std::sync::atomic::Ordering;

use crate::ring::Ring;

/// What a queue has done since it was made, over all its ends. Reading it disturbs nobody; the figures are of slightly
/// different moments while the queue is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Metrics {
    /// Messages accepted.
    pub sent: u64,
    /// Messages taken out by a receiver.
    pub received: u64,
    /// Batches handed over because they were full.
    pub batches_full: u64,
    /// Batches handed over by [`flush`](crate::Sender::flush), a batch call, or a sender that had no room.
    pub batches_by_hand: u64,
    /// Messages of unfinished batches that idle receivers took.
    pub taken_early: u64,
    /// Times that a sender found no room and waited.
    pub sender_waits: u64,
    /// Messages refused by `try_send` since there was no room.
    pub refused: u64,
    /// Times that a receiver found nothing and waited.
    pub receiver_waits: u64,
}

impl Metrics {
    /// Messages that are in the queue.
    pub fn queued(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// Adds what one ring has done.
    pub(crate) fn add<T>(&mut self, ring: &Ring<T>) {
        let counts = ring.counts();
        // what was received first: it is never more than what was sent by then
        self.received += ring.taken();
        self.sent += ring.accepted();
        self.batches_full += counts.batches_full.load(Ordering::Relaxed);
        self.batches_by_hand += counts.batches_by_hand.load(Ordering::Relaxed);
        self.sender_waits += counts.waits.load(Ordering::Relaxed);
        self.refused += counts.refused.load(Ordering::Relaxed);
        self.taken_early += ring.taken_early();
    }
}
