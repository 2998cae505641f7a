//! What is kept of streams.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use bytes::Bytes;

/// Streams that were given up and whose late frames are still told from wrong ones.
const ABANDONED_STREAMS: usize = 4_096;

/// What the other end may send.
#[derive(Debug)]
pub(super) struct Granted {
    /// Bytes that it still may.
    open: u32,
    /// Bytes that are to be granted again.
    read: u32,
    /// All of them.
    most: u32,
}

impl Granted {
    pub fn new(most: u32) -> Granted {
        Granted { open: most, read: 0, most }
    }

    /// So many bytes came; whether they were granted.
    pub fn take(&mut self, bytes: u32) -> bool {
        match self.open.checked_sub(bytes) {
            Some(open) => {
                self.open = open;
                true
            }
            None => false,
        }
    }

    /// So many bytes may come once more: what the other end is told, if it is worth a word.
    pub fn release(&mut self, bytes: u32) -> Option<u32> {
        self.read += bytes;
        debug_assert!(self.open + self.read <= self.most);
        if self.read < self.most / 2 {
            return None;
        }
        self.open += self.read;
        Some(std::mem::take(&mut self.read))
    }
}

/// A stream whose answer is not whole.
#[derive(Debug)]
pub(super) struct Stream {
    pub owner: u32,
    /// What the server may send on it.
    pub granted: Granted,
    /// Bytes that came and its owner has not released.
    pub held: u32,
    pub holds: bool,
    pub is_head: bool,
    /// Whether the head of its answer came.
    pub has_answer: bool,
    /// Bytes of the body that are still to come, where that is known.
    pub missing: Option<u64>,
    /// Bytes of data that may be sent on it.
    pub window: i64,
    /// Data that waits until it may.
    pub waiting: VecDeque<Bytes>,
    /// How many bytes these are.
    pub waiting_bytes: usize,
    /// Whether nothing comes behind that.
    pub ends: bool,
    /// Whether this side is open still.
    pub is_open: bool,
    /// Whether it is among those that are ready.
    pub is_ready: bool,
}

/// Streams by their numbers.
pub(super) type Streams = HashMap<u32, Stream, BuildHasherDefault<NumberHasher>>;

/// Numbers of streams are this side's own: they need no hash that a stranger cannot foresee.
#[derive(Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        // 2^64 by the golden ratio, which spreads what is near
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Streams that this side was done with before the server was: frames of them may be on their way.
#[derive(Debug, Default)]
pub(super) struct Abandoned {
    /// The last ones.
    streams: VecDeque<u32>,
    /// The highest one before them.
    forgotten: u32,
}

impl Abandoned {
    pub fn push(&mut self, stream: u32) {
        if self.streams.len() == ABANDONED_STREAMS {
            let first = self.streams.pop_front().unwrap_or_default();
            self.forgotten = self.forgotten.max(first);
        }
        self.streams.push_back(stream);
    }

    /// Whether a stream may be one of them.
    pub fn may_have(&self, stream: u32) -> bool {
        stream <= self.forgotten || self.streams.contains(&stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_granted_again_by_halves() {
        let mut granted = Granted::new(100);
        assert!(granted.take(60) && !granted.take(41));
        assert_eq!((granted.release(49), granted.release(11)), (None, Some(60)));
        assert!(granted.take(100) && !granted.take(1));
    }

    #[test]
    fn of_those_given_up_some_are_known_and_older_ones_may_be() {
        let mut abandoned = Abandoned::default();
        (0..ABANDONED_STREAMS as u32).for_each(|n| abandoned.push(4 * n + 101));
        assert!(abandoned.may_have(101) && !abandoned.may_have(103) && !abandoned.may_have(99));
        abandoned.push(7);
        assert!(abandoned.may_have(7) && abandoned.may_have(99) && !abandoned.may_have(103));
        assert_eq!(abandoned.streams.len(), ABANDONED_STREAMS);
    }
}
