//! What a client has sent of its next requests.

use crate::buffers::{give_back, spare_buffer};

/// Bytes read behind a request, in the order in which they came. Has no buffer while there are none.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    bytes: Vec<u8>,
    /// Those before this are decoded.
    at: usize,
}

impl Ahead {
    /// Those that are not decoded yet.
    pub(super) fn left(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What it takes of the memory.
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    pub(super) fn push(&mut self, more: &[u8]) {
        if self.bytes.capacity() == 0 {
            self.bytes = spare_buffer();
        }
        // What is decoded goes, once it is as much as what has to be moved for that: a client that always has more to
        // send would have it kept for ever.
        if self.at >= self.bytes.len() - self.at {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        self.bytes.extend_from_slice(more);
    }

    /// So many of the first are decoded.
    pub(super) fn taken(&mut self, count: usize) {
        self.at += count;
        debug_assert!(self.at <= self.bytes.len());
        if self.at == self.bytes.len() {
            self.clear();
        }
    }

    pub(super) fn clear(&mut self) {
        self.at = 0;
        give_back(std::mem::take(&mut self.bytes));
    }

    /// Keeps no more memory than it needs.
    pub(super) fn shrink(&mut self) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.shrink_to_fit();
    }

    /// Those that are left, for whoever goes on with the connection.
    pub(super) fn into_left(mut self) -> Vec<u8> {
        self.bytes.split_off(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_decoded_is_not_kept() {
        let mut ahead = Ahead::default();
        for round in 0..10_000u32 {
            ahead.push(&round.to_be_bytes().repeat(256));
            if round > 0 {
                assert_eq!(ahead.left()[..1024], (round - 1).to_be_bytes().repeat(256));
                ahead.taken(1024);
            }
            assert!(ahead.bytes.len() <= 4096);
        }
        assert_eq!(ahead.left(), 9_999u32.to_be_bytes().repeat(256));
        ahead.taken(1024);
        assert!(ahead.is_empty() && ahead.held_bytes() == 0);
    }
}
